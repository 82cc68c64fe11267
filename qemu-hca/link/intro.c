// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The introduction of two processes at a Unix socket; intro.h has the protocol.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE		/* memfd_create(), accept4() */
#endif
#include "intro.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAGIC		0x6b6e696c61636871ull	/* "qhcalink" */
#define SEALS		(F_SEAL_SHRINK | F_SEAL_GROW)
#define BACKLOG		4
/* More than HCA_INTRO_WAKES: one call reads what a reader has left, and sees that it is all. */
#define WAKES_AT_ONCE	32
/* A peer that sends wake-ups without end gets no more of the reader's time than these calls. */
#define MAX_READS	4

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

enum kind {
	KIND_HELLO = 1,
	KIND_MEMORY,
	KIND_READY,
	KIND_REFUSE,
};

/* Every message of the introduction.  Byte order is the host's. */
struct message {
	uint64_t magic;
	uint32_t version;
	uint32_t kind;
	uint32_t flags;			/* 0; others are for synchronised links */
	uint32_t slots;			/* MEMORY */
	uint32_t room;			/* HELLO: needed; MEMORY: there is */
	uint32_t offers;		/* HELLO, MEMORY: HCA_INTRO_* */
	uint64_t size;			/* MEMORY, and the following */
	uint64_t to_connecter;		/* offset of the queue that the listener fills */
	uint64_t to_listener;
	char text[HCA_INTRO_TEXT];	/* REFUSE */
};

__attribute__((format(printf, 2, 3)))
static enum hca_intro_result fail(struct hca_intro *i, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(i->err, sizeof(i->err), format, args);
	va_end(args);
	return HCA_INTRO_FAILED;
}

/* ---- sockets */

/*
 * Have the kernel refuse descriptors that a peer sends.  Closing one can take as long as
 * the peer likes, also if we never took it: it may be of a TCP socket with SO_LINGER, for
 * example.  Linux before 6.16 cannot refuse them.
 */
static void refuse_descriptors(int fd)
{
	const int no = 0;

	setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &no, sizeof(no));
}

static int make_socket(const char *path, struct sockaddr_un *addr, char *err,
		       size_t err_len)
{
	int fd;

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (!*path || strlen(path) >= sizeof(addr->sun_path)) {
		snprintf(err, err_len, "the path of a socket has 1 to %zu bytes, not %zu",
			 sizeof(addr->sun_path) - 1, strlen(path));
		return -1;
	}
	strcpy(addr->sun_path, path);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		snprintf(err, err_len, "no socket: %s", strerror(errno));
	return fd;
}

static int drop_socket(int fd, const char *path, const char *what, int error,
		       char *err, size_t err_len)
{
	snprintf(err, err_len, "%s %s: %s", what, path, strerror(error));
	close(fd);
	return -1;
}

/* Remove what a process has left that listened here.  Anything else stays. */
static void remove_stale(const char *path, const struct sockaddr_un *addr)
{
	struct stat st;
	int fd;

	if (lstat(path, &st) || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const void *)addr, sizeof(*addr)) &&
	    errno == ECONNREFUSED)
		unlink(path);
	close(fd);
}

int hca_intro_listen(const char *path, bool *busy, char *err, size_t err_len)
{
	struct sockaddr_un addr;
	int fd = make_socket(path, &addr, err, err_len);

	if (busy)
		*busy = false;
	if (fd < 0)
		return -1;
	refuse_descriptors(fd);		/* on all that are accepted, too */
	remove_stale(path, &addr);
	if (bind(fd, (void *)&addr, sizeof(addr))) {
		if (busy)
			*busy = errno == EADDRINUSE;
		return drop_socket(fd, path, "cannot listen at", errno, err,
				   err_len);
	}
	if (listen(fd, BACKLOG)) {
		int error = errno;

		unlink(path);
		return drop_socket(fd, path, "cannot listen at", error, err,
				   err_len);
	}
	return fd;
}

int hca_intro_connect(const char *path, bool *busy, char *err, size_t err_len)
{
	struct sockaddr_un addr;
	int fd = make_socket(path, &addr, err, err_len);

	if (busy)
		*busy = false;
	if (fd < 0)
		return -1;
	if (connect(fd, (void *)&addr, sizeof(addr))) {
		if (busy)
			*busy = errno == ENOENT || errno == ECONNREFUSED ||
				errno == EAGAIN;
		return drop_socket(fd, path, "cannot connect to", errno, err,
				   err_len);
	}
	return fd;
}

int hca_intro_accept(int fd)
{
	return accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* ---- messages */

static enum hca_intro_result send_message(struct hca_intro *i,
					  struct message *m, int memfd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	m->magic = MAGIC;
	m->version = HCA_INTRO_VERSION;
	if (memfd >= 0) {
		struct cmsghdr *c;

		msg.msg_control = control.buf;
		msg.msg_controllen = sizeof(control.buf);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &memfd, sizeof(int));
	}
	if (sendmsg(i->fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(*m))
		return fail(i, "the peer ended during the introduction");
	return HCA_INTRO_AGAIN;
}

/* Fail, and tell the peer why. */
static enum hca_intro_result refuse_peer(struct hca_intro *i)
{
	struct message m = { .kind = KIND_REFUSE };
	struct hca_intro other = { .fd = i->fd };	/* keeps our sentence */

	memcpy(m.text, i->err, sizeof(m.text));
	send_message(&other, &m, -1);
	return HCA_INTRO_FAILED;
}

/*
 * Take the descriptors that came with a message: all but a single one are closed.  The
 * kernel may pass two where there is room for one, because of alignment.
 */
static int take_memfd(struct msghdr *msg)
{
	int fd = -1, num = 0, fds[8];

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
		    bytes > sizeof(fds))
			continue;
		memcpy(fds, CMSG_DATA(c), bytes);
		for (size_t n = 0; n < bytes / sizeof(int); n++) {
			if (num++ == 0)
				fd = fds[n];
			else
				close(fds[n]);
		}
	}
	if (num > 1) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Receive a message and check all of it that every kind has. */
static enum hca_intro_result receive_message(struct hca_intro *i,
					     struct message *m, int *memfd)
{
	union {
		char buf[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { .iov_base = m, .iov_len = sizeof(*m) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control.buf, .msg_controllen = sizeof(control.buf),
	};
	ssize_t len = recvmsg(i->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*memfd = -1;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return HCA_INTRO_AGAIN;
	if (len >= 0)		/* an empty message may bring descriptors, too */
		*memfd = take_memfd(&msg);
	if (len <= 0)
		fail(i, "the peer ended during the introduction");
	else if (len != sizeof(*m) || msg.msg_flags & MSG_TRUNC || m->magic != MAGIC)
		fail(i, "the peer does not speak the protocol of this link");
	else if (m->version != HCA_INTRO_VERSION)
		fail(i, "the peer speaks version %u of the protocol, and not %u",
		     m->version, HCA_INTRO_VERSION);
	else if (m->flags)
		fail(i, "the peer wants features 0x%x that this link has not",
		     m->flags);
	else
		return HCA_INTRO_DONE;
	if (*memfd >= 0)
		close(*memfd);
	*memfd = -1;
	return refuse_peer(i);
}

/* ---- memory */

static enum hca_intro_result map(struct hca_intro *i, int memfd, size_t size)
{
	void *mem = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, memfd,
			 0);

	if (mem == MAP_FAILED) {
		fail(i, "cannot map %zu bytes of shared memory: %s", size,
		     strerror(errno));
		return refuse_peer(i);
	}
	i->mem = mem;
	i->size = size;
	return HCA_INTRO_DONE;
}

static int make_memfd(size_t size)
{
	int memfd = memfd_create("qhca-link", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (memfd >= 0 && (ftruncate(memfd, (off_t)size) ||
			   fcntl(memfd, F_ADD_SEALS, SEALS | F_SEAL_SEAL))) {
		int error = errno;

		close(memfd);
		errno = error;
		return -1;
	}
	return memfd;
}

/* The listener: make memory, with slots that both find large enough. */
static enum hca_intro_result offer_memory(struct hca_intro *i,
					  const struct message *hello)
{
	struct message m = { .kind = KIND_MEMORY, .slots = i->wish.slots };
	enum hca_intro_result result;
	size_t queue;
	int memfd;

	m.room = hello->room > i->wish.room ? hello->room : i->wish.room;
	queue = hca_slots_size(m.slots, m.room);
	if (!queue || 2 * queue > HCA_INTRO_MAX_SIZE) {
		fail(i, "there are no queues of %u slots for frames of %u bytes",
		     m.slots, m.room);
		return refuse_peer(i);
	}
	m.size = 2 * queue;
	m.to_connecter = 0;
	m.to_listener = queue;
	m.offers = hello->offers & i->wish.offers;
	memfd = make_memfd(m.size);
	if (memfd < 0) {
		fail(i, "cannot make %zu bytes of shared memory: %s",
		     (size_t)m.size, strerror(errno));
		return refuse_peer(i);
	}
	i->slots = m.slots;
	i->room = m.room;
	i->to_connecter = m.to_connecter;
	i->to_listener = m.to_listener;
	i->offers = m.offers;
	result = map(i, memfd, m.size);
	if (result == HCA_INTRO_DONE)
		result = send_message(i, &m, memfd);
	close(memfd);
	i->memory_sent = true;
	return result;
}

/* May we map this, now and for as long as we like? */
static bool check_memfd(struct hca_intro *i, int memfd, size_t size)
{
	int seals = fcntl(memfd, F_GET_SEALS);
	struct statfs fs;
	struct stat st;

	/*
	 * What has no seals is not asked further: the file system may be a process of the
	 * peer's, which need not answer.  Huge pages can run out, which is SIGBUS as well.
	 */
	if (seals < 0 || fstatfs(memfd, &fs) || fs.f_type != TMPFS_MAGIC ||
	    fstat(memfd, &st))
		fail(i, "the peer's descriptor is not of shared memory");
	else if ((seals & SEALS) != SEALS)
		fail(i, "the peer's memory may change its size: it lacks the seals");
	else if (st.st_size < 0 || (size_t)st.st_size < size)
		fail(i, "the peer's memory has %lld bytes, too few for its queues",
		     (long long)st.st_size);
	else
		return true;
	return false;
}

/* The numbers are in private memory: @m is our copy. */
static bool check_offer(struct hca_intro *i, const struct message *m)
{
	size_t queue = hca_slots_size(m->slots, m->room);

	if (!queue)
		fail(i, "there are no queues of %u slots for frames of %u bytes",
		     m->slots, m->room);
	else if (m->room < i->wish.room)
		fail(i, "slots for frames of %u bytes are too small: this end sends up to %u",
		     m->room, i->wish.room);
	else if (m->size > HCA_INTRO_MAX_SIZE)
		fail(i, "%llu bytes of shared memory are more than %u",
		     (unsigned long long)m->size, HCA_INTRO_MAX_SIZE);
	else if (m->to_connecter % 64 || m->to_listener % 64 ||
		 m->to_connecter > m->size || m->size - m->to_connecter < queue ||
		 m->to_listener > m->size || m->size - m->to_listener < queue)
		fail(i, "the peer's queues do not lie in its memory");
	else if (m->to_connecter < m->to_listener + queue &&
		 m->to_listener < m->to_connecter + queue)
		fail(i, "the peer's queues overlap");
	else
		return true;
	return false;
}

static enum hca_intro_result take_offer(struct hca_intro *i,
					const struct message *m, int memfd)
{
	struct message ready = { .kind = KIND_READY };
	enum hca_intro_result result;

	refuse_descriptors(i->fd);	/* that was the only one */
	if (memfd < 0) {
		fail(i, "the peer's offer comes without a descriptor");
		return refuse_peer(i);
	}
	if (!check_offer(i, m) || !check_memfd(i, memfd, m->size))
		return refuse_peer(i);
	result = map(i, memfd, m->size);
	if (result != HCA_INTRO_DONE)
		return result;
	i->slots = m->slots;
	i->room = m->room;
	i->to_connecter = m->to_connecter;
	i->to_listener = m->to_listener;
	i->offers = m->offers & i->wish.offers;
	result = send_message(i, &ready, -1);
	return result == HCA_INTRO_FAILED ? result : HCA_INTRO_DONE;
}

/* ---- steps */

enum hca_intro_result hca_intro_begin(struct hca_intro *i, int fd,
				      bool listener,
				      const struct hca_intro_wish *wish)
{
	struct message hello = {
		.kind = KIND_HELLO, .room = wish->room, .offers = wish->offers,
	};

	*i = (struct hca_intro){
		.fd = fd, .listener = listener, .wish = *wish,
	};
	return listener ? HCA_INTRO_AGAIN : send_message(i, &hello, -1);
}

static enum hca_intro_result take_message(struct hca_intro *i,
					  struct message *m, int memfd)
{
	if (m->kind == KIND_REFUSE) {
		m->text[sizeof(m->text) - 1] = '\0';
		for (char *c = m->text; *c; c++)
			if (*c < ' ' || *c > '~')
				*c = '?';
		return fail(i, "the peer refuses: %.*s", HCA_INTRO_TEXT - 20,
			    m->text);
	}
	if (i->listener && m->kind == KIND_HELLO && !i->memory_sent)
		return offer_memory(i, m);
	if (i->listener && m->kind == KIND_READY && i->memory_sent)
		return HCA_INTRO_DONE;
	if (!i->listener && m->kind == KIND_MEMORY)
		return take_offer(i, m, memfd);
	fail(i, "the peer's message %u is out of turn", m->kind);
	return refuse_peer(i);
}

enum hca_intro_result hca_intro_step(struct hca_intro *i)
{
	struct message m;
	int memfd;
	enum hca_intro_result result = receive_message(i, &m, &memfd);

	if (result != HCA_INTRO_DONE)
		return result;
	result = take_message(i, &m, memfd);
	if (memfd >= 0)
		close(memfd);
	return result;
}

void hca_intro_take(struct hca_intro *i, struct hca_pair_memory *pair)
{
	uint8_t *mem = i->mem;
	uint8_t *down = mem + i->to_connecter, *up = mem + i->to_listener;

	*pair = (struct hca_pair_memory){
		.mem = mem, .size = i->size, .offers = i->offers,
	};
	hca_slots_init(&pair->tx, i->listener ? down : up, i->slots, i->room);
	hca_slots_init(&pair->rx, i->listener ? up : down, i->slots, i->room);
	i->mem = NULL;
}

void hca_intro_end(struct hca_intro *i)
{
	if (i->mem)
		munmap(i->mem, i->size);
	i->mem = NULL;
}

void hca_pair_free(struct hca_pair_memory *pair)
{
	if (pair->mem)
		munmap(pair->mem, pair->size);
	pair->mem = NULL;
}

/* ---- wake-ups */

void hca_intro_wake(int fd)
{
	/* A peer that has ended is found by the reader. */
	if (send(fd, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
}

/* Returns how many wake-ups it has read, WAKES_AT_ONCE if there may be more; -1: end. */
static int read_wakes(int fd)
{
	char byte[8];
	struct iovec iov = { .iov_base = byte, .iov_len = sizeof(byte) };
	struct mmsghdr msg[WAKES_AT_ONCE] = { 0 };
	int num;

	for (int n = 0; n < WAKES_AT_ONCE; n++) {
		msg[n].msg_hdr.msg_iov = &iov;
		msg[n].msg_hdr.msg_iovlen = 1;
	}
	num = recvmmsg(fd, msg, WAKES_AT_ONCE, MSG_DONTWAIT, NULL);
	if (num < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	/* An empty message looks like the end; nobody sends one. */
	for (int n = 0; n < num; n++)
		if (!msg[n].msg_len)
			return -1;
	return num;
}

bool hca_intro_woken(int fd)
{
	int num = WAKES_AT_ONCE;

	for (int n = 0; n < MAX_READS && num == WAKES_AT_ONCE; n++)
		num = read_wakes(fd);
	return num >= 0;
}
