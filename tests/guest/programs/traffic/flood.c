// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-flood: as much UDP as an interface takes, both ways.
 *
 *   qhca-flood -p PORT [-l BYTES] [-o FILE] [-r MS] HOST
 *
 * The same program runs at the other end.  Datagrams may be lost, and while there
 * is no interface or no address none can be sent; the program keeps trying.  What
 * arrives must be what was sent: each datagram has its number and length in front
 * of content that follows from them.  flow.h says how it is stopped.  Exits with
 * 0, or with 1 if anything was wrong.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "flow.h"
#include "lib/peer.h"

#define MOST	9000u	/* bytes of a datagram, some of them in fragments */
#define LEAST	((uint32_t)sizeof(struct head))
#define BATCH	32

struct head {
	uint64_t number;
	uint64_t length;
};

static struct {
	struct flow flow;
	struct sockaddr_in to;
	const char *progress;
	uint32_t most;
	int port, sock;
	uint64_t sent;		/* by the thread */
	bool stop;
} t = { .most = MOST };

/* Sends for ever; the size changes with each datagram. */
static void *sender(void *unused)
{
	static uint8_t mem[BATCH][MOST];
	struct mmsghdr msg[BATCH] = { };
	struct iovec iov[BATCH];
	uint64_t number = 0;

	(void)unused;
	while (!__atomic_load_n(&t.stop, __ATOMIC_RELAXED)) {
		int n;

		for (unsigned int i = 0; i < BATCH; i++, number++) {
			struct head head = { number, LEAST + number * 577 % (t.most - LEAST) };

			memcpy(mem[i], &head, sizeof(head));
			flow_fill(mem[i] + sizeof(head), number, 0, head.length - sizeof(head));
			iov[i] = (struct iovec){ mem[i], head.length };
			msg[i].msg_hdr = (struct msghdr){ &t.to, sizeof(t.to), &iov[i], 1 };
		}
		n = sendmmsg(t.sock, msg, BATCH, 0);
		if (n > 0)
			__atomic_add_fetch(&t.sent, n, __ATOMIC_RELAXED);
		else
			usleep(1000);	/* there is no interface or no address */
		flow_rest(&t.flow);
	}
	return NULL;
}

static void receive(void)
{
	static uint8_t mem[MOST + 1];
	struct head head;
	ssize_t n;

	for (int i = 0; i < BATCH; i++) {
		n = recv(t.sock, mem, sizeof(mem), MSG_DONTWAIT);
		if (n < 0)
			return;
		memcpy(&head, mem, sizeof(head));
		if (n < (ssize_t)sizeof(head) || head.length != (uint64_t)n ||
		    !flow_check(mem + sizeof(head), head.number, 0, n - sizeof(head)))
			flow_bad(&t.flow, "datagram %llu of %zd bytes is not what was sent",
				 (unsigned long long)head.number, n);
		else
			t.flow.verified++;
	}
}

static int open_socket(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(t.port) };
	struct timeval patience = { .tv_usec = 100000 };
	int one = 1, s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	MUST(s >= 0);
	MUST(!setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	/* A transmit queue that stands still must not keep the thread for ever. */
	MUST(!setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)));
	MUST(!bind(s, (struct sockaddr *)&any, sizeof(any)));
	return s;
}

static void run(void)
{
	struct pollfd fds[2] = {
		{ .fd = t.flow.signals, .events = POLLIN }, { .fd = t.sock, .events = POLLIN },
	};
	pthread_t thread;
	int end = 0;

	MUST(!pthread_create(&thread, NULL, sender, NULL));
	while (end < 2) {
		poll(fds, 2, 100);
		receive();
		t.flow.sent = __atomic_load_n(&t.sent, __ATOMIC_RELAXED);
		flow_progress(&t.flow, false);
		if (flow_signal(&t.flow) != SIGTERM)
			continue;
		if (!end++) {
			__atomic_store_n(&t.stop, true, __ATOMIC_RELAXED);
			printf("report: running, %llu bad\n", (unsigned long long)t.flow.bad);
			fflush(stdout);
		}
	}
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "p:l:o:r:")) != -1)
		switch (option) {
		case 'p':
			t.port = parse_number(optarg, 1, UINT16_MAX);
			break;
		case 'l':
			t.most = parse_number(optarg, LEAST + 8, MOST);
			break;
		case 'o':
			t.progress = optarg;
			break;
		case 'r':
			t.flow.rest = parse_number(optarg, 0, 10000);
			break;
		default:
			return 2;
		}
	if (optind + 1 != argc || !t.port)
		die("usage: qhca-flood -p PORT [-l BYTES] [-o FILE] [-r MS] HOST");
	t.to = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(t.port) };
	if (inet_pton(AF_INET, argv[optind], &t.to.sin_addr) != 1)
		die("%s is no IPv4 address", argv[optind]);
	flow_begin(&t.flow, t.progress);
	t.sock = open_socket();
	run();
	flow_progress(&t.flow, true);
	return t.flow.bad ? 1 : 0;
}
