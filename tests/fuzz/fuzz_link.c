// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A hostile peer of the link in shared memory: what it writes into the queues at any
 * time, and what it sends in the introduction.
 *
 * Whatever it does, frames lie in their slots, an end's own state changes by its own
 * steps alone, memory that is accepted can be accessed, and no descriptor is left.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "input.h"
#include "intro.h"

#define CHECK(condition)						\
	do {								\
		if (!(condition)) {					\
			fprintf(stderr, "%s:%d: not true: %s\n",	\
				__FILE__, __LINE__, #condition);	\
			abort();					\
		}							\
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- queues */

/* One end's two queues, and the memory as its peer sees it. */
struct end {
	struct hca_slots tx, rx;
	uint8_t *shared;
	size_t size;
	uint8_t *frame;			/* of rx.room bytes: ASan sees one more */
};

static void write_anything(struct in *in, struct end *e)
{
	uint32_t at = in_below(in, (uint32_t)e->size);
	uint8_t num = in_u8(in);

	for (; num && at < e->size; num--, at++)
		e->shared[at] = in_u8(in);
}

/* A header, which random bytes do not hit often. */
static void write_header(struct in *in, const struct hca_slots *q)
{
	struct hca_slot *slot = (void *)(q->slots + (size_t)
					 in_below(in, q->count) * q->stride);
	uint8_t how = in_u8(in);

	slot->len = (uint16_t)(how & 1 ? q->room + how % 4 : in_number(in));
	slot->own_type = how & 2 ? HCA_SLOT_FULL | HCA_SLOT_PACKET : in_u8(in);
}

static void send_frame(struct in *in, struct end *e)
{
	struct hca_slots before = e->tx;
	uint8_t *room = hca_slots_reserve(&e->tx);
	size_t len = in_number(in) % (e->tx.room + 1);

	if (!room) {
		hca_slots_wait_room(&e->tx);
		CHECK(!memcmp(&before, &e->tx, sizeof(before)));
		return;
	}
	CHECK(room == before.slots + HCA_SLOT_HEADER +
		      (size_t)(before.pos & (before.count - 1)) * before.stride);
	memset(room, 0x5a, e->tx.room);
	hca_slots_commit(&e->tx, len);
	before.pos++;
	CHECK(!memcmp(&before, &e->tx, sizeof(before)));
	hca_slots_wakes_consumer(&e->tx);
	hca_slots_half_free(&e->tx);
}

/* @again: the peer writes between the look and the use. */
static void take_frame(struct in *in, struct end *e, bool again)
{
	struct hca_slots before = e->rx;
	const uint8_t *frame = NULL;
	size_t len = 0;
	enum hca_slots_found found = hca_slots_peek(&e->rx, &frame, &len);

	if (found == HCA_SLOTS_EMPTY) {
		hca_slots_sleep(&e->rx);
		hca_slots_pending(&e->rx);
		hca_slots_wake(&e->rx);
		CHECK(!memcmp(&before, &e->rx, sizeof(before)));
		return;
	}
	if (again)
		write_header(in, &e->rx);
	if (found == HCA_SLOTS_FRAME) {
		CHECK(len <= e->rx.room);
		CHECK(frame == before.slots + HCA_SLOT_HEADER +
			       (size_t)(before.pos & (before.count - 1)) *
			       before.stride);
		memcpy(e->frame, frame, len);
	}
	hca_slots_pop(&e->rx);
	before.pos++;
	CHECK(!memcmp(&before, &e->rx, sizeof(before)));
	hca_slots_wakes_producer(&e->rx);
}

static void run_queues(struct in *in, struct end *e)
{
	e->frame = malloc(e->rx.room);
	CHECK(e->frame);
	while (in_more(in)) {
		switch (in_u8(in) % 6) {
		case 0:
			write_anything(in, e);
			break;
		case 1:
			write_header(in, &e->rx);
			break;
		case 2:
			write_header(in, &e->tx);
			break;
		case 3:
			send_frame(in, e);
			break;
		case 4:
			take_frame(in, e, false);
			break;
		case 5:
			take_frame(in, e, true);
			break;
		}
	}
	free(e->frame);
}

/* Queues in memory of the heap, whose ends ASan watches. */
static void fuzz_queues(struct in *in)
{
	static const uint32_t rooms[] = { 1, 63, 64, 65, 200, 1500 };
	uint32_t count = HCA_SLOTS_MIN << in_below(in, 3);
	uint32_t room = IN_ONE_OF(in, rooms);
	size_t queue = hca_slots_size(count, room);
	struct end e = { .size = 2 * queue };

	e.shared = aligned_alloc(64, e.size);
	CHECK(e.shared);
	memset(e.shared, 0, e.size);
	hca_slots_init(&e.tx, e.shared, count, room);
	hca_slots_init(&e.rx, e.shared + queue, count, room);
	run_queues(in, &e);
	free(e.shared);
}

/* ---- introductions */

/* A message, as intro.c has it. */
struct message {
	uint64_t magic;
	uint32_t version, kind, flags, slots, room, rsvd;
	uint64_t size, to_connecter, to_listener;
	char text[HCA_INTRO_TEXT];
};

static int make_memory(struct in *in, uint64_t size)
{
	static const unsigned int seals[] = {
		F_SEAL_SHRINK | F_SEAL_GROW,
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, 0, F_SEAL_SHRINK,
		F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE,
	};
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0);
	if (in_chance(in, 64))
		size = in_number(in);
	CHECK(!ftruncate(fd, (off_t)(size % (1u << 30))));
	CHECK(!fcntl(fd, F_ADD_SEALS, IN_ONE_OF(in, seals)));
	return fd;
}

static void send_message(struct in *in, int to, struct message *m)
{
	union {
		char buf[CMSG_SPACE(3 * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	unsigned int num = in_chance(in, 40) ? in_below(in, 4) : 1;
	int fds[3];

	for (unsigned int i = 0; i < num; i++)
		fds[i] = make_memory(in, m->size);
	if (num) {
		struct cmsghdr *c;

		msg.msg_control = control.buf;
		msg.msg_controllen = CMSG_SPACE(num * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(num * sizeof(int));
		memcpy(CMSG_DATA(c), fds, num * sizeof(int));
	}
	if (in_chance(in, 20))
		iov.iov_len = in_below(in, sizeof(*m));
	sendmsg(to, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
	for (unsigned int i = 0; i < num; i++)
		close(fds[i]);
}

/* Mostly right, so that the checks that come late are reached. */
static void make_message(struct in *in, struct message *m, bool to_listener)
{
	size_t queue;

	memset(m, 0, sizeof(*m));
	m->magic = 0x6b6e696c61636871ull;
	m->version = 1;
	m->kind = in_chance(in, 40) ? in_u8(in) : to_listener ? 1 : 2;
	m->room = in_chance(in, 40) ? (uint32_t)in_number(in) : 300;
	m->slots = in_chance(in, 40) ? (uint32_t)in_number(in) : 8;
	queue = hca_slots_size(m->slots, m->room);
	m->size = 2 * queue;
	m->to_listener = queue;
	if (in_chance(in, 40))
		m->size = in_number(in);
	if (in_chance(in, 40))
		m->to_listener = in_number(in);
	if (in_chance(in, 40))
		m->to_connecter = in_number(in);
	if (in_chance(in, 20))
		m->magic = in_number(in);
	if (in_chance(in, 20))
		m->version = in_u8(in);
	if (in_chance(in, 20))
		m->flags = in_u8(in);
	in_fill(in, m->text, in_below(in, 8));
}

/* An end that has been introduced: all its memory is there. */
static void run_introduced(struct in *in, struct hca_intro *intro)
{
	struct hca_pair_memory pair;
	struct end e;

	hca_intro_take(intro, &pair);
	CHECK(pair.tx.room >= 300 && pair.tx.room == pair.rx.room);
	e = (struct end){
		.tx = pair.tx, .rx = pair.rx, .shared = pair.mem,
		.size = pair.size,
	};
	for (size_t at = 0; at < e.size; at += 4096)
		e.shared[at] ^= 1;
	e.shared[e.size - 1] ^= 1;
	run_queues(in, &e);
	hca_pair_free(&pair);
}

static void fuzz_introduction(struct in *in)
{
	const struct hca_intro_wish wish = { .slots = 8, .room = 300 };
	bool listener = in_u8(in) & 1;
	enum hca_intro_result result;
	struct hca_intro intro;
	int fd[2], first, last;

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fd));
	first = dup(fd[0]);
	close(first);
	result = hca_intro_begin(&intro, fd[0], listener, &wish);
	for (int n = 0; n < 4 && result == HCA_INTRO_AGAIN; n++) {
		struct message m;

		make_message(in, &m, listener);
		if (listener && n)
			m.kind = 3;
		send_message(in, fd[1], &m);
		result = hca_intro_step(&intro);
	}
	if (result == HCA_INTRO_DONE)
		run_introduced(in, &intro);
	if (result == HCA_INTRO_FAILED)
		CHECK(*intro.err && strlen(intro.err) < sizeof(intro.err));
	hca_intro_wake(fd[0]);
	hca_intro_woken(fd[0]);
	hca_intro_end(&intro);
	/* The next descriptor is the one that was free before. */
	last = dup(fd[0]);
	CHECK(last == first);
	close(last);
	close(fd[1]);
	close(fd[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct in in = { .at = data, .end = data + size };

	if (in_u8(&in) % 4)
		fuzz_queues(&in);
	else
		fuzz_introduction(&in);
	return 0;
}
