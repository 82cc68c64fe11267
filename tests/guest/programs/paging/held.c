// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "held.h"
#include "lib/peer.h"

#define REQUEST_MAX	(FUSE_MIN_READ_BUFFER + 4096)

struct held {
	int dev;		/* where requests come from */
	size_t len;
	uint8_t *mem;
	pthread_mutex_t lock;	/* what follows */
	pthread_cond_t moved;
	uint64_t hold;
	unsigned int asked;
};

uint8_t held_byte(size_t offset)
{
	return offset * 11 + (offset >> 12) * 29 + 1;
}

static void answer(struct held *h, uint64_t unique, int error, const void *data, size_t len)
{
	struct fuse_out_header head = {
		.len = sizeof(head) + len, .error = -error, .unique = unique,
	};
	struct iovec iov[2] = { { &head, sizeof(head) }, { (void *)data, len } };

	/* ENOENT: the process that asked has given up. */
	if (writev(h->dev, iov, 2) < 0 && errno != ENOENT)
		die("answer to FUSE: %s", strerror(errno));
}

static void wait_as_told(struct held *h)
{
	struct timespec until;
	uint64_t ns;

	pthread_mutex_lock(&h->lock);
	h->asked++;
	ns = h->hold;
	pthread_cond_broadcast(&h->moved);
	while (ns == HELD_FOREVER && h->hold == HELD_FOREVER)
		pthread_cond_wait(&h->moved, &h->lock);
	pthread_mutex_unlock(&h->lock);
	if (ns == HELD_FOREVER)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	ns += until.tv_nsec;
	until.tv_sec += ns / 1000000000;
	until.tv_nsec = ns % 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

static void serve_read(struct held *h, uint64_t unique, const struct fuse_read_in *in)
{
	static uint8_t data[REQUEST_MAX];
	size_t len = in->offset < h->len ? h->len - in->offset : 0;

	if (len > in->size)
		len = in->size;
	if (len > sizeof(data))
		die("FUSE asks for %zu bytes", len);
	for (size_t i = 0; i < len; i++)
		data[i] = held_byte(in->offset + i);
	wait_as_told(h);
	answer(h, unique, 0, data, len);
}

static void serve(struct held *h, const struct fuse_in_header *head, const void *in)
{
	struct fuse_attr_out attr = {
		.attr_valid = 3600,
		.attr = { .ino = FUSE_ROOT_ID, .size = h->len, .mode = S_IFREG | 0600,
			  .nlink = 1, .blksize = HELD_PAGE },
	};
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION,
		.max_write = HELD_PAGE, .max_background = 16, .congestion_threshold = 12,
	};
	struct fuse_open_out open = { .open_flags = FOPEN_KEEP_CACHE };

	switch (head->opcode) {
	case FUSE_INIT:
		answer(h, head->unique, 0, &init, sizeof(init));
		break;
	case FUSE_GETATTR:
		answer(h, head->unique, 0, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		answer(h, head->unique, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		serve_read(h, head->unique, in);
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		answer(h, head->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		answer(h, head->unique, ENOSYS, NULL, 0);
		break;
	}
}

static void *server(void *arg)
{
	static uint8_t buf[REQUEST_MAX];
	struct held *h = arg;

	for (;;) {
		ssize_t got = read(h->dev, buf, sizeof(buf));

		if (got < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (got < (ssize_t)sizeof(struct fuse_in_header))
			return NULL;
		serve(h, (void *)buf, buf + sizeof(struct fuse_in_header));
	}
}

struct held *held_open(size_t len)
{
	char path[] = "/tmp/held-XXXXXX", options[100];
	struct held *h = calloc(1, sizeof(*h));
	pthread_t thread;
	struct stat st;
	int fd;

	if (!h)
		die("no memory");
	h->len = len;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->moved, NULL);
	h->dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	fd = mkstemp(path);
	if (h->dev < 0 || fd < 0)
		die("/dev/fuse or %s: %s", path, strerror(errno));
	close(fd);
	snprintf(options, sizeof(options), "fd=%d,rootmode=%o,user_id=0,group_id=0", h->dev,
		 S_IFREG);
	if (mount("held", path, "fuse", MS_NOSUID | MS_NODEV, options))
		die("mount of FUSE: %s", strerror(errno));
	if (pthread_create(&thread, NULL, server, h))
		die("pthread_create");
	fd = open(path, O_RDONLY);
	/* The kernel asks for the size, without which it requests no page. */
	if (fd < 0 || fstat(fd, &st) || (size_t)st.st_size != len)
		die("%s: %s", path, strerror(errno));
	h->mem = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (h->mem == MAP_FAILED || madvise(h->mem, len, MADV_RANDOM))
		die("mmap of FUSE: %s", strerror(errno));
	/* The mapping keeps it alive. */
	close(fd);
	umount2(path, MNT_DETACH);
	unlink(path);
	return h;
}

uint8_t *held_mem(struct held *h)
{
	return h->mem;
}

void held_set(struct held *h, uint64_t ns)
{
	pthread_mutex_lock(&h->lock);
	h->hold = ns;
	pthread_cond_broadcast(&h->moved);
	pthread_mutex_unlock(&h->lock);
}

void held_wait(struct held *h, unsigned int n)
{
	pthread_mutex_lock(&h->lock);
	while (h->asked < n)
		pthread_cond_wait(&h->moved, &h->lock);
	pthread_mutex_unlock(&h->lock);
}

unsigned int held_asked(struct held *h)
{
	unsigned int n;

	pthread_mutex_lock(&h->lock);
	n = h->asked;
	pthread_mutex_unlock(&h->lock);
	return n;
}
