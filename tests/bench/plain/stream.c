// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames over a unix stream, as QEMU's netdev "stream" carries them: each is one writev() of
 * its length (4 bytes, the most significant first) and its payload, and the receiver reads
 * what there is into a buffer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "frames.h"

#define HEAD	sizeof(uint32_t)

static uint64_t send_frames(void *state, const struct frames *f)
{
	const int *fds = state;
	uint32_t head = htonl((uint32_t)f->size);
	uint64_t n;

	close(fds[1]);
	for (n = 0; frames_go_on(f, n); n++) {
		struct iovec iov[] = {
			{ &head, HEAD },
			{ (void *)(uintptr_t)frames_payload(f, n), f->size },
		};

		/* A blocking stream takes all of it. */
		if (writev(fds[0], iov, 2) != (ssize_t)(HEAD + f->size))
			frames_die("writev: %s", strerror(errno));
	}
	close(fds[0]);
	return n;
}

static uint64_t receive_frames(void *state, const struct frames *f)
{
	static uint8_t buf[2 * (FRAME_MAX + HEAD)];
	const int *fds = state;
	uint64_t n = 0;
	size_t have = 0;
	uint32_t head;

	close(fds[0]);
	for (;;) {
		size_t at = 0;
		ssize_t got = read(fds[1], buf + have, sizeof(buf) / 2);

		if (got < 0)
			frames_die("read: %s", strerror(errno));
		if (!got)
			break;
		for (have += (size_t)got; have - at >= HEAD + f->size; at += HEAD + f->size) {
			memcpy(&head, buf + at, HEAD);
			if (ntohl(head) != f->size)
				frames_die("a frame of %u bytes", ntohl(head));
			frames_arrived(f, n++, buf + at + HEAD);
		}
		have -= at;
		memmove(buf, buf + at, have);
	}
	if (have)
		frames_die("%zu bytes are left over", have);
	return n;
}

int main(int argc, char **argv)
{
	int fds[2];
	struct link link = { send_frames, receive_frames, fds };

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		frames_die("socketpair: %s", strerror(errno));
	return frames_main(argc, argv, &link);
}
