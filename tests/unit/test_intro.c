// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The introduction at a socket: two honest ends, and peers that send what they like.
 */
#define _GNU_SOURCE
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "intro.h"

static const struct hca_intro_wish wish = { .slots = 16, .room = 9216 };

/* A message as it goes over the socket. */
struct raw {
	uint64_t magic;
	uint32_t version, kind, flags, slots, room, offers;
	uint64_t size, to_connecter, to_listener;
	char text[160];
};

enum { HELLO = 1, MEMORY, READY, REFUSE };

struct world {
	int fd[2];
	struct hca_intro listener, connecter;
};

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0,
				    w->fd), 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	hca_intro_end(&w->listener);
	hca_intro_end(&w->connecter);
	for (int i = 0; i < 2; i++)
		if (w->fd[i] >= 0)
			close(w->fd[i]);
	free(w);
	return 0;
}

static void begin_listener(struct world *w)
{
	assert_int_equal(hca_intro_begin(&w->listener, w->fd[0], true, &wish),
			 HCA_INTRO_AGAIN);
}

static void begin_connecter(struct world *w)
{
	assert_int_equal(hca_intro_begin(&w->connecter, w->fd[1], false, &wish),
			 HCA_INTRO_AGAIN);
}

static void raw_send(int fd, struct raw *m, int num_fds, const int *fds)
{
	union {
		char buf[CMSG_SPACE(4 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (num_fds) {
		struct cmsghdr *c;

		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, num_fds * sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &msg, 0), sizeof(*m));
}

static struct raw raw(uint32_t kind)
{
	return (struct raw){
		.magic = 0x6b6e696c61636871ull, .version = 1, .kind = kind,
		.room = 9216,
	};
}

static void raw_receive(int fd, struct raw *m)
{
	assert_int_equal(recv(fd, m, sizeof(*m), MSG_DONTWAIT), sizeof(*m));
}

static void fails(struct hca_intro *i, const char *sentence)
{
	assert_int_equal(hca_intro_step(i), HCA_INTRO_FAILED);
	if (!strstr(i->err, sentence))
		fail_msg("'%s' does not say '%s'", i->err, sentence);
	assert_null(i->mem);
}

/* How many descriptors this process has. */
static int num_fds(void)
{
	int num = 0;

	for (int fd = 0; fd < 256; fd++)
		num += fcntl(fd, F_GETFD) >= 0;
	return num;
}

/* ---- honest ends */

static void introduce(struct world *w, struct hca_pair_memory *l,
		      struct hca_pair_memory *c)
{
	begin_listener(w);
	assert_int_equal(hca_intro_step(&w->listener), HCA_INTRO_AGAIN);
	begin_connecter(w);
	assert_int_equal(hca_intro_step(&w->connecter), HCA_INTRO_AGAIN);
	assert_int_equal(hca_intro_step(&w->listener), HCA_INTRO_AGAIN);
	assert_int_equal(hca_intro_step(&w->connecter), HCA_INTRO_DONE);
	assert_int_equal(hca_intro_step(&w->listener), HCA_INTRO_DONE);
	hca_intro_take(&w->listener, l);
	hca_intro_take(&w->connecter, c);
}

static void carries(struct hca_slots *tx, struct hca_slots *rx)
{
	const uint8_t *frame;
	size_t len;

	for (uint32_t i = 0; i < tx->count; i++) {
		uint8_t *room = hca_slots_reserve(tx);

		assert_non_null(room);
		memset(room, (uint8_t)i, tx->room);
		hca_slots_commit(tx, tx->room);
	}
	assert_null(hca_slots_reserve(tx));
	for (uint32_t i = 0; i < tx->count; i++) {
		assert_int_equal(hca_slots_peek(rx, &frame, &len),
				 HCA_SLOTS_FRAME);
		assert_int_equal(len, 9216);
		assert_int_equal(frame[0], i);
		assert_int_equal(frame[9215], i);
		hca_slots_pop(rx);
	}
	assert_false(hca_slots_pending(rx));
}

static void test_introduction(void **state)
{
	struct hca_pair_memory l, c;
	struct world *w = *state;
	int before = num_fds();

	introduce(w, &l, &c);
	assert_int_equal(l.tx.count, 16);
	carries(&l.tx, &c.rx);
	carries(&c.tx, &l.rx);
	/* Both at once: the queues do not overlap. */
	memset(hca_slots_reserve(&l.tx), 1, 9216);
	memset(hca_slots_reserve(&c.tx), 2, 9216);
	assert_int_equal(hca_slots_reserve(&l.tx)[9215], 1);
	hca_pair_free(&l);
	hca_pair_free(&c);
	assert_int_equal(num_fds(), before);
}

/* What both are willing to do, and nothing else, is agreed on at both ends. */
static void agree(uint32_t ours, uint32_t theirs)
{
	struct hca_intro_wish mine = wish, yours = wish;
	struct hca_pair_memory l, c;
	struct world *w;
	void *state;

	setup(&state);
	w = state;
	mine.offers = ours;
	yours.offers = theirs;
	hca_intro_begin(&w->listener, w->fd[0], true, &mine);
	hca_intro_begin(&w->connecter, w->fd[1], false, &yours);
	hca_intro_step(&w->listener);
	assert_int_equal(hca_intro_step(&w->connecter), HCA_INTRO_DONE);
	assert_int_equal(hca_intro_step(&w->listener), HCA_INTRO_DONE);
	hca_intro_take(&w->listener, &l);
	hca_intro_take(&w->connecter, &c);
	assert_int_equal(l.offers, ours & theirs);
	assert_int_equal(c.offers, ours & theirs);
	hca_pair_free(&l);
	hca_pair_free(&c);
	teardown(&state);
}

static void test_offers(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 16; n++)
		agree(n & 3, n >> 2);
}

/* Neither may change the size of the memory later. */
static void test_memory_is_sealed(void **state)
{
	struct world *w = *state;
	struct raw m = raw(HELLO);
	struct cmsghdr *c;
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { .iov_base = &m, .iov_len = sizeof(m) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	int fd;

	begin_listener(w);
	raw_send(w->fd[1], &m, 0, NULL);
	assert_int_equal(hca_intro_step(&w->listener), HCA_INTRO_AGAIN);
	assert_int_equal(recvmsg(w->fd[1], &msg, 0), sizeof(m));
	c = CMSG_FIRSTHDR(&msg);
	assert_non_null(c);
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	assert_int_equal(ftruncate(fd, 4096), -1);
	assert_int_equal(ftruncate(fd, 1 << 30), -1);
	close(fd);
}

/* The larger need decides, so that nobody's frames are cut. */
static void test_room_of_the_larger(void **state)
{
	struct world *w = *state;
	struct raw m = raw(HELLO), answer;

	m.room = 20000;
	begin_listener(w);
	raw_send(w->fd[1], &m, 0, NULL);
	assert_int_equal(hca_intro_step(&w->listener), HCA_INTRO_AGAIN);
	raw_receive(w->fd[1], &answer);
	assert_int_equal(answer.kind, MEMORY);
	assert_int_equal(answer.room, 20000);
}

/* ---- what the listener refuses */

static void test_listener_refuses(void **state)
{
	struct world *w = *state;
	struct raw m = raw(HELLO), answer;

	m.room = 70000;
	begin_listener(w);
	raw_send(w->fd[1], &m, 0, NULL);
	fails(&w->listener, "no queues of 16 slots for frames of 70000 bytes");
	raw_receive(w->fd[1], &answer);
	assert_int_equal(answer.kind, REFUSE);
	assert_string_equal(answer.text, w->listener.err);
}

static void listener_fails(struct raw m, const char *sentence)
{
	void *state;

	setup(&state);
	begin_listener(state);
	raw_send(((struct world *)state)->fd[1], &m, 0, NULL);
	fails(&((struct world *)state)->listener, sentence);
	teardown(&state);
}

static void test_strange_messages(void **state)
{
	struct raw m = raw(HELLO);

	(void)state;
	m.magic++;
	listener_fails(m, "does not speak the protocol");
	m = raw(HELLO);
	m.version = 2;
	listener_fails(m, "speaks version 2 of the protocol, and not 1");
	m = raw(HELLO);
	m.flags = 4;
	listener_fails(m, "features 0x4");
	listener_fails(raw(READY), "out of turn");
	listener_fails(raw(MEMORY), "out of turn");
	listener_fails(raw(77), "message 77 is out of turn");
	m = raw(REFUSE);
	memset(m.text, 'x', sizeof(m.text));
	m.text[0] = '\n';
	m.text[1] = '\x1b';
	listener_fails(m, "the peer refuses: ??xxx");
}

static void test_hello_twice(void **state)
{
	struct world *w = *state;
	struct raw m = raw(HELLO);

	begin_listener(w);
	raw_send(w->fd[1], &m, 0, NULL);
	assert_int_equal(hca_intro_step(&w->listener), HCA_INTRO_AGAIN);
	raw_send(w->fd[1], &m, 0, NULL);
	assert_int_equal(hca_intro_step(&w->listener), HCA_INTRO_FAILED);
	assert_non_null(strstr(w->listener.err, "out of turn"));
}

static void test_short_and_long(void **state)
{
	struct world *w = *state;
	char bytes[1000] = { 0 };

	begin_listener(w);
	memcpy(bytes, "qhcalink", 8);
	assert_int_equal(send(w->fd[1], bytes, 8, 0), 8);
	fails(&w->listener, "does not speak");
	begin_listener(w);
	assert_int_equal(send(w->fd[1], bytes, sizeof(bytes), 0), sizeof(bytes));
	fails(&w->listener, "does not speak");
}

static void test_peer_ends(void **state)
{
	struct world *w = *state;

	begin_listener(w);
	begin_connecter(w);
	assert_int_equal(hca_intro_step(&w->listener), HCA_INTRO_AGAIN);
	close(w->fd[0]);
	w->fd[0] = -1;
	/* What was offered is there, but nobody is. */
	assert_int_equal(hca_intro_step(&w->connecter), HCA_INTRO_FAILED);
	assert_non_null(strstr(w->connecter.err, "ended"));
}

/* ---- what the connecter refuses */

static int memfd(size_t size, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

#define BOTH	(F_SEAL_SHRINK | F_SEAL_GROW)

static struct raw offer(void)
{
	struct raw m = raw(MEMORY);
	size_t queue = hca_slots_size(16, 9216);

	m.slots = 16;
	m.size = 2 * queue;
	m.to_listener = queue;
	return m;
}

/* A listener that answers with more than was offered to it. */
static void test_too_many_offers(void **state)
{
	struct raw m = offer();
	struct hca_pair_memory c;
	struct world *w = *state;
	int fd = memfd(m.size, BOTH);

	begin_connecter(w);
	m.offers = ~0u;
	raw_send(w->fd[0], &m, 1, &fd);
	assert_int_equal(hca_intro_step(&w->connecter), HCA_INTRO_DONE);
	hca_intro_take(&w->connecter, &c);
	assert_int_equal(c.offers, 0);
	hca_pair_free(&c);
	close(fd);
}

/* The offer @m with @num descriptors @fds, which are closed. */
static void connecter_fails(struct raw m, int num, const int *fds,
			    const char *sentence)
{
	struct raw hello, answer;
	struct world *w;
	int before;
	void *state;

	setup(&state);
	w = state;
	before = num_fds();
	begin_connecter(w);
	raw_receive(w->fd[0], &hello);
	assert_int_equal(hello.kind, HELLO);
	assert_int_equal(hello.room, 9216);
	raw_send(w->fd[0], &m, num, fds);
	fails(&w->connecter, sentence);
	raw_receive(w->fd[0], &answer);
	assert_int_equal(answer.kind, REFUSE);
	assert_string_equal(answer.text, w->connecter.err);
	assert_int_equal(num_fds(), before);
	teardown(&state);
	for (int i = 0; i < num; i++)
		close(fds[i]);
}

/* A message without a byte, but with a descriptor. */
static void empty_fails(int fd)
{
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct msghdr msg = {
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	struct world *w;
	void *state;
	int before;

	setup(&state);
	w = state;
	begin_connecter(w);
	before = num_fds();
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	assert_int_equal(sendmsg(w->fd[0], &msg, 0), 0);
	fails(&w->connecter, "ended");
	assert_int_equal(num_fds(), before);
	teardown(&state);
	close(fd);
}

static void test_bad_memory(void **state)
{
	struct raw m = offer();
	int fds[3];

	(void)state;
	connecter_fails(m, 0, NULL, "without a descriptor");
	fds[0] = memfd(m.size, 0);
	connecter_fails(m, 1, fds, "lacks the seals");
	fds[0] = memfd(m.size, F_SEAL_GROW);
	connecter_fails(m, 1, fds, "lacks the seals");
	fds[0] = memfd(m.size - 1, BOTH);
	connecter_fails(m, 1, fds, "too few for its queues");
	fds[0] = open("/dev/zero", O_RDWR | O_CLOEXEC);
	connecter_fails(m, 1, fds, "memory");
	fds[0] = fileno(tmpfile());
	connecter_fails(m, 1, fds, "memory");
	for (int i = 0; i < 3; i++)
		fds[i] = memfd(m.size, BOTH);
	connecter_fails(m, 3, fds, "without a descriptor");
	fds[0] = memfd(m.size, BOTH);
	empty_fails(fds[0]);
	/* Cannot be written, so it cannot be mapped. */
	fds[0] = memfd(m.size, BOTH | F_SEAL_WRITE);
	connecter_fails(m, 1, fds, "cannot map");
}

static void offer_fails(struct raw m, const char *sentence)
{
	int fd = memfd(m.size < 1 << 28 ? m.size : 4096, BOTH);

	connecter_fails(m, 1, &fd, sentence);
}

static void test_bad_offers(void **state)
{
	struct raw m = offer();
	size_t queue = m.to_listener;

	(void)state;
	m.room = 9215;
	offer_fails(m, "frames of 9215 bytes are too small: this end sends up to 9216");
	m = offer();
	m.room = 65473;
	offer_fails(m, "no queues");
	m = offer();
	m.slots = 15;
	offer_fails(m, "no queues");
	m = offer();
	m.size = 1ull << 40;
	offer_fails(m, "more than");
	m = offer();
	m.to_listener++;
	offer_fails(m, "do not lie");
	m = offer();
	m.to_listener += 64;
	offer_fails(m, "do not lie");
	m = offer();
	m.to_listener = -64ull;
	offer_fails(m, "do not lie");
	m = offer();
	m.to_connecter = queue - 64;
	m.size += 4096;
	offer_fails(m, "overlap");
	m = offer();
	m.to_connecter = m.to_listener;
	offer_fails(m, "overlap");
	m = offer();
	m.size--;
	offer_fails(m, "do not lie");
}

/* ---- paths */

static char path[64];

static int make_path(void **state)
{
	char folder[] = "/tmp/qhca-test-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/link", folder);
	return 0;
}

static int remove_path(void **state)
{
	(void)state;
	unlink(path);
	*strrchr(path, '/') = '\0';
	return rmdir(path);
}

static void test_meeting(void **state)
{
	char err[160];
	int listening, there, here;
	bool busy;

	(void)state;
	assert_int_equal(hca_intro_connect(path, &busy, err, sizeof(err)), -1);
	assert_true(busy);
	assert_non_null(strstr(err, path));
	listening = hca_intro_listen(path, &busy, err, sizeof(err));
	assert_true(listening >= 0);
	assert_int_equal(hca_intro_accept(listening), -1);
	there = hca_intro_connect(path, NULL, err, sizeof(err));
	assert_true(there >= 0);
	here = hca_intro_accept(listening);
	assert_true(here >= 0);
	close(there);
	close(here);
	/* Somebody listens: it is not replaced. */
	assert_int_equal(hca_intro_listen(path, &busy, err, sizeof(err)), -1);
	assert_true(busy);
	close(listening);
	/* Nobody does: the socket that is left is replaced. */
	assert_int_equal(hca_intro_connect(path, &busy, err, sizeof(err)), -1);
	assert_true(busy);
	listening = hca_intro_listen(path, NULL, err, sizeof(err));
	assert_true(listening >= 0);
	close(listening);
}

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

static int send_descriptor(int to, int fd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = "", .iov_len = 1 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	return sendmsg(to, &msg, MSG_NOSIGNAL) == 1 ? 0 : errno;
}

/*
 * Nobody can send a descriptor to a listener, not even before it accepts; a connecter
 * takes one.  To drop them may take long.
 */
static void test_no_descriptors(void **state)
{
	struct hca_intro listener, connecter;
	int listening, there, here, no = 0;
	char err[160];

	(void)state;
	listening = hca_intro_listen(path, NULL, err, sizeof(err));
	assert_true(listening >= 0);
	if (setsockopt(listening, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no))) {
		close(listening);
		skip();				/* Linux before 6.16 */
	}
	there = hca_intro_connect(path, NULL, err, sizeof(err));
	assert_true(there >= 0);
	assert_int_equal(send_descriptor(there, 0), EPERM);
	here = hca_intro_accept(listening);
	assert_true(here >= 0);
	assert_int_equal(send_descriptor(there, 0), EPERM);
	assert_int_equal(hca_intro_begin(&listener, here, true, &wish),
			 HCA_INTRO_AGAIN);
	assert_int_equal(hca_intro_begin(&connecter, there, false, &wish),
			 HCA_INTRO_AGAIN);
	assert_int_equal(hca_intro_step(&listener), HCA_INTRO_AGAIN);
	assert_int_equal(hca_intro_step(&connecter), HCA_INTRO_DONE);
	assert_int_equal(hca_intro_step(&listener), HCA_INTRO_DONE);
	assert_int_equal(send_descriptor(here, 0), EPERM);
	hca_intro_end(&listener);
	hca_intro_end(&connecter);
	close(there);
	close(here);
	close(listening);
}

static void test_bad_paths(void **state)
{
	char err[160], longer[200];
	bool busy;
	int fd;

	(void)state;
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(hca_intro_listen(longer, &busy, err, sizeof(err)), -1);
	assert_false(busy);
	assert_string_equal(err, "the path of a socket has 1 to 107 bytes, not 199");
	assert_int_equal(hca_intro_connect("", &busy, err, sizeof(err)), -1);
	assert_false(busy);
	/* A file of the user's stays. */
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(hca_intro_listen(path, &busy, err, sizeof(err)), -1);
	assert_int_equal(access(path, F_OK), 0);
}

/* ---- wake-ups */

/* A look takes a limited time, whatever the peer sends. */
static void test_many_wakes(void **state)
{
	struct world *w = *state;
	char byte;
	int left;

	for (int i = 0; i < 200; i++)
		assert_int_equal(send(w->fd[1], "", 1, 0), 1);
	assert_true(hca_intro_woken(w->fd[0]));
	for (left = 0; recv(w->fd[0], &byte, 1, 0) == 1; left++)
		;
	assert_int_equal(left, 200 - 128);
}

static void test_wake(void **state)
{
	struct world *w = *state;

	assert_true(hca_intro_woken(w->fd[0]));
	for (int i = 0; i < 100000; i++)
		hca_intro_wake(w->fd[1]);	/* it does not block */
	for (int i = 0; i < 10000; i++)
		assert_true(hca_intro_woken(w->fd[0]));
	/* A message with a descriptor is a wake-up like any other. */
	raw_send(w->fd[1], &(struct raw){ 0 }, 1, &w->fd[1]);
	assert_true(hca_intro_woken(w->fd[0]));
	close(w->fd[1]);
	w->fd[1] = -1;
	assert_false(hca_intro_woken(w->fd[0]));
	hca_intro_wake(w->fd[0]);		/* no SIGPIPE */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	TEST(test_introduction), TEST(test_offers), TEST(test_too_many_offers),
	TEST(test_memory_is_sealed),
	TEST(test_room_of_the_larger),
	TEST(test_listener_refuses),
	cmocka_unit_test(test_strange_messages),
	TEST(test_hello_twice),
	TEST(test_short_and_long),
	TEST(test_peer_ends),
	cmocka_unit_test(test_bad_memory),
	cmocka_unit_test(test_bad_offers),
	cmocka_unit_test_setup_teardown(test_meeting, make_path, remove_path),
	cmocka_unit_test_setup_teardown(test_no_descriptors, make_path, remove_path),
	cmocka_unit_test_setup_teardown(test_bad_paths, make_path, remove_path),
	TEST(test_many_wakes), TEST(test_wake),
};

TEST_MAIN(tests)
