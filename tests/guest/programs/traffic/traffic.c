// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-traffic: RDMA traffic of one kind between two guests, both ways.  All kinds but
 * the last have several queue pairs, whose send queues are kept full.
 *
 *   qhca-traffic -d DEVICE -g GID-INDEX -p PORT -k KIND [-o FILE] [-r MS] [HOST]
 *
 * rc-small  messages of up to 256 bytes into a shared receive queue
 * rc-large  WRITEs and READs of 256 KiB
 * ud        datagrams into a shared receive queue
 * paging    as rc-large, with memory on demand whose pages are taken away
 * answers   WRITEs of 64 bytes, each of which answers one of the peer's; each end polls the
 *           memory for the next one
 *
 * Content and order of what arrives are verified.  flow.h says how the program is
 * stopped.  If the device goes, or all queue pairs are in error, it cleans up and
 * exits by itself.  "report:" on stdout says what it was doing ("running" or
 * "ended"), the statuses of completions in error, "fatal" if the device is gone,
 * and the number of things that were wrong.  Exit code: 0 when nothing was
 * wrong, whether the traffic has ended or not, else 1.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "traffic.h"

#define BATCH	32
#define BATCHES	16	/* of a CQ, until the others and signals have their turn */

static const struct shape shapes[KINDS] = {
	[SMALL]	 = { "rc-small", IBV_QPT_RC, 4, 32, 272, false, false, false },
	[LARGE]	 = { "rc-large", IBV_QPT_RC, 4, 4, 256 << 10, true, false, false },
	[UD]	 = { "ud", IBV_QPT_UD, 4, 16, 1024 + 40, false, false, false },
	[PAGING] = { "paging", IBV_QPT_RC, 4, 4, 64 << 10, true, true, false },
	[ANSWERS] = { "answers", IBV_QPT_RC, 1, 16, 64, true, false, true },
};

static struct traffic t;

static void report(void)
{
	if (t.stopped)
		return;
	t.stopped = true;
	flow_progress(&t.flow, true);
	printf("report: %s,", t.fatal || t.ended == t.shape->lanes ? "ended" : "running");
	for (unsigned int i = 0; i < 32; i++)
		if (t.statuses & 1u << i)
			printf(" status %u,", i);
	printf("%s %u lanes ended, %llu bad\n", t.fatal ? " fatal," : "", t.ended,
	       (unsigned long long)t.flow.bad);
	fflush(stdout);
}

/*
 * Returns whether there may be more.  A peer that sends as fast as this end receives would
 * otherwise keep it here for ever.
 */
static bool poll_cq(struct ibv_cq *cq, void (*done)(struct traffic *t, const struct ibv_wc *wc))
{
	struct ibv_wc wc[BATCH];
	int n = BATCH;

	for (int batch = 0; batch < BATCHES && n == BATCH; batch++) {
		n = ibv_poll_cq(cq, BATCH, wc);
		for (int i = 0; i < n; i++)
			done(&t, &wc[i]);
	}
	if (n < 0 && !t.fatal)
		flow_bad(&t.flow, "ibv_poll_cq: %d", n);
	return n == BATCH;
}

/*
 * The CQ is armed first, so that a completion behind the last poll raises another
 * event.  Returns whether there may be more without one, soon.
 */
static bool completions(void)
{
	struct ibv_cq *cq;
	void *context;
	bool more;

	while (!ibv_get_cq_event(t.channel, &cq, &context)) {
		ibv_ack_cq_events(cq, 1);
		if (ibv_req_notify_cq(cq, 0) && !t.fatal)
			flow_bad(&t.flow, "ibv_req_notify_cq: %s", strerror(errno));
	}
	more = poll_cq(t.send_cq, complete_send);
	more |= poll_cq(t.recv_cq, complete_receive);
	if (t.shape->answers)
		return answer(&t) || more;
	for (unsigned int l = 0; l < t.shape->lanes && !t.stopped && !t.fatal; l++)
		lane_fill(&t, &t.lane[l]);
	return more;
}

static void asynchronous_events(void)
{
	struct ibv_async_event event;

	while (!ibv_get_async_event(t.peer.ctx, &event)) {
		switch (event.event_type) {
		case IBV_EVENT_DEVICE_FATAL:
			t.fatal = true;
			break;
		/* The peer's queue pair has ended, in the way that its completions say. */
		case IBV_EVENT_QP_LAST_WQE_REACHED:
		case IBV_EVENT_QP_FATAL:
		case IBV_EVENT_QP_REQ_ERR:
		case IBV_EVENT_QP_ACCESS_ERR:
			break;
		default:
			if (!event_is_of_port(event.event_type))
				flow_bad(&t.flow, "event %s", ibv_event_type_str(event.event_type));
		}
		ibv_ack_async_event(&event);
	}
}

/* Every other time larger, and never smaller than what may be in it. */
static void resize_cqs(void)
{
	int more = t.flow.resizes % 2 ? 0 : 1000;
	int rc = ibv_resize_cq(t.send_cq, LANES * MOST_DEPTH + more);

	if (!rc)
		rc = ibv_resize_cq(t.recv_cq, SRQ_SLOTS * 4 + more);
	if (rc && !t.fatal)
		flow_bad(&t.flow, "ibv_resize_cq: %s", strerror(rc));
	t.flow.resizes++;
}

static void resize_srq(void)
{
	struct ibv_srq_attr attr = { .max_wr = SRQ_SLOTS + (t.flow.resizes % 2 ? 0 : 1000) };
	int rc = ibv_modify_srq(t.srq, &attr, IBV_SRQ_MAX_WR);

	if (rc && !t.fatal)
		flow_bad(&t.flow, "ibv_modify_srq: %s", strerror(rc));
	t.flow.resizes++;
}

/* Returns false when the traffic has ended. */
static bool signals(void)
{
	int s;

	while ((s = flow_signal(&t.flow))) {
		if (s == SIGTERM && t.stopped)
			return false;
		if (s == SIGTERM)
			report();
		else if (s == SIGUSR1)
			resize_cqs();
		else
			resize_srq();
	}
	return true;
}

static void run(void)
{
	struct pollfd fds[] = {
		{ .fd = t.flow.signals, .events = POLLIN },
		{ .fd = t.channel->fd, .events = POLLIN },
		{ .fd = t.peer.ctx->async_fd, .events = POLLIN },
	};
	/* Of what the peer writes there is no event. */
	const int patience = t.shape->answers ? 1 : 100;

	MUST(!fcntl(t.channel->fd, F_SETFL, O_NONBLOCK));
	MUST(!fcntl(t.peer.ctx->async_fd, F_SETFL, O_NONBLOCK));
	while (signals()) {
		bool more = completions();

		flow_progress(&t.flow, false);
		flow_rest(&t.flow);
		if (t.fatal || t.ended == t.shape->lanes)
			break;
		if (poll(fds, 3, more ? 0 : patience) > 0 && fds[2].revents)
			asynchronous_events();
	}
	report();
}

static void options(int argc, char **argv)
{
	const char *kind = "", *progress = NULL;
	int option;

	while ((option = getopt(argc, argv, PEER_OPTIONS "k:o:r:")) != -1)
		switch (option) {
		case 'k':
			kind = optarg;
			break;
		case 'o':
			progress = optarg;
			break;
		case 'r':
			t.flow.rest = parse_number(optarg, 0, 10000);
			break;
		default:
			if (!peer_option(&t.peer, option, optarg))
				die("qhca-traffic: see traffic.c");
		}
	for (int i = 0; i < KINDS; i++)
		if (!strcmp(kind, shapes[i].name))
			t.shape = &shapes[i];
	if (!t.shape)
		die("-k is rc-small, rc-large, ud, paging or answers");
	t.peer.host = argv[optind];
	flow_begin(&t.flow, progress);
}

int main(int argc, char **argv)
{
	options(argc, argv);
	traffic_open(&t);
	run();
	traffic_close(&t);
	return t.flow.bad ? 1 : 0;
}
