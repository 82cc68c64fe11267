// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-verify: moves data both ways over queue pairs of one type and checks
 * every byte, completion and immediate against the plan (plan.h).
 *
 *   qhca-verify -d DEVICE -g GID-INDEX -p PORT [-l] [options HOST]
 *
 * Without HOST it serves one client. Each side may choose
 *
 *   -l late receives: posted while the messages arrive (RC)
 *   -G an SRQ that is too small and grows when it is full
 *
 * and the rest is the client's choice:
 *
 *   -t rc|uc|ud|xrc   -n ROUNDS   -q QPS   -m MTU   -S LARGEST-MESSAGE   -s SEED
 *   -e completion events   -r shared receive queue   -x loss is allowed (UC, UD)
 *   -A no atomics   -w ATOMIC WRITE and FLUSH too (RC)   -1 one SGE
 *   -T SECONDS without anything happening are too many
 *   -W the extended API: ibv_wr_*(), ibv_start_poll()
 *   -z requests of no bytes are fenced (RC)
 *   -o ACK-TIMEOUT (RC)
 *   -k FILE as long as it is there, rounds follow those that -n asks for
 *
 * That is 18, over a second, if nothing is said: a busy host is no reason to repeat
 * or to give up. -z is for rxe, which warns in rxe_mr_copy() and ends its QP when a
 * READ comes again after a request of no bytes.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "extended.h"
#include "verify.h"

static const struct {
	const char *name;
	enum ibv_qp_type type;
} types[] = { { "rc", IBV_QPT_RC }, { "uc", IBV_QPT_UC }, { "ud", IBV_QPT_UD },
	      { "xrc", IBV_QPT_XRC_SEND } };

static void usage(void)
{
	die("usage: qhca-verify -d DEVICE -g GID-INDEX -p PORT [HOST [-t TYPE] ...]; see the source");
}

static void parse(struct job *job, int argc, char **argv)
{
	struct settings *s = &job->set;
	int o;

	*s = (struct settings) {
		.seed = 1, .type = IBV_QPT_RC, .mtu = 1024, .lanes = 1, .rounds = 20,
		.max_size = 65536, .seconds = 60, .timeout = 18,
	};
	while ((o = getopt(argc, argv, PEER_OPTIONS "t:n:q:m:S:s:T:o:k:erlxAwWGz1")) != -1) {
		if (peer_option(&job->peer, o, optarg))
			continue;
		switch (o) {
		case 'n': s->rounds = parse_number(optarg, 0, INT_MAX); break;
		case 'q': s->lanes = parse_number(optarg, 0, INT_MAX); break;
		case 'm': s->mtu = parse_number(optarg, 0, INT_MAX); break;
		case 'S': s->max_size = parse_number(optarg, 0, UINT_MAX); break;
		case 's': s->seed = parse_number(optarg, 0, ULONG_MAX); break;
		case 'k':
			job->kept = optarg;
			s->flags |= GO_ON;
			break;
		case 'T': s->seconds = parse_number(optarg, 0, INT_MAX); break;
		case 'o': s->timeout = parse_number(optarg, 0, INT_MAX); break;
		case 'e': s->flags |= USE_EVENTS; break;
		case 'r': s->flags |= USE_SRQ; break;
		case 'l': job->late = true; break;
		case 'x': s->flags |= LOSSY; break;
		case 'W': s->flags |= EXTENDED; break;
		case 'A': s->flags |= NO_ATOMICS; break;
		case 'w': s->flags |= USE_PLACE; break;
		case 'G': job->grows = true; break;
		case 'z': s->flags |= FENCE_EMPTY; break;
		case '1': s->flags |= NO_SPLIT; break;
		case 't':
			s->type = 0;
			for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
				if (!strcmp(optarg, types[i].name))
					s->type = types[i].type;
			break;
		default:
			usage();
		}
	}
	job->peer.host = optind < argc ? argv[optind] : NULL;
	if (!job->peer.port || s->lanes < 1 || s->lanes > MAX_LANES || !s->type ||
	    s->max_size < 1024 || s->max_size > 1u << 28)
		usage();
	if (s->type != IBV_QPT_UC && s->type != IBV_QPT_UD && s->flags & LOSSY)
		die("-x: RC and XRC lose nothing");
	if (s->flags & USE_PLACE && (s->type != IBV_QPT_RC || s->flags & NO_ATOMICS))
		die("-w: with RC, and not with -A");
	if (s->type == IBV_QPT_XRC_SEND)
		s->flags |= USE_SRQ;
}

/* -- a round ---------------------------------------------------------------- */

static unsigned int poll_cq(struct job *job, struct ibv_cq *cq,
			    void (*check)(struct job *job, const struct ibv_wc *wc))
{
	struct ibv_wc wc[16];
	int n;

	if (job->set.flags & EXTENDED)
		n = extended_poll_cq(cq, 16, wc);
	else
		n = ibv_poll_cq(cq, 16, wc);
	if (n < 0)
		wrong(job, NULL, "ibv_poll_cq gives %d", n);
	for (int i = 0; i < n; i++)
		check(job, &wc[i]);
	return n;
}

static unsigned int poll_both(struct job *job)
{
	return poll_cq(job, job->recv_cq, check_receive) + poll_cq(job, job->send_cq, check_send);
}

static void sleep_for_event(struct job *job, int ms)
{
	struct pollfd fd = { .fd = job->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (ibv_req_notify_cq(job->send_cq, 0) || ibv_req_notify_cq(job->recv_cq, 0))
		wrong(job, NULL, "ibv_req_notify_cq: %s", strerror(errno));
	if (poll_both(job) || poll(&fd, 1, ms) <= 0)
		return;
	if (ibv_get_cq_event(job->channel, &cq, &context))
		wrong(job, NULL, "ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
}

static bool finished(const struct job *job)
{
	for (unsigned int i = 0; i < job->set.lanes; i++)
		if (job->lane[i].completed < job->lane[i].n_mine)
			return false;
	return job->set.flags & LOSSY || job->received == job->expected;
}

static void stuck(struct job *job)
{
	for (unsigned int i = 0; i < job->set.lanes; i++) {
		struct lane *lane = &job->lane[i];

		fprintf(stderr, "lane %u (QP %u, state %d): %u operations, %u posted, %u completed; next: %s of %u\n",
			i, lane->qp->qp_num, qp_state(lane->qp), lane->n_mine, lane->posted,
			lane->completed, op_names[lane->mine[lane->completed % ROUND_OPS].kind],
			lane->mine[lane->completed % ROUND_OPS].size);
	}
	wrong(job, NULL, "stuck: %u messages of %u arrived, %u receives posted", job->received,
	      job->expected, job->posted_slots);
}

static void run_posted(struct job *job)
{
	uint64_t end = now_ns() + job->set.seconds * 1000000000ull;

	while (!finished(job)) {
		unsigned int did = 0;

		if (job->posted_slots < job->n_slots) {
			post_receive(job);
			did++;
		}
		for (unsigned int i = 0; i < job->set.lanes; i++) {
			struct lane *lane = &job->lane[i];

			if (lane->posted < lane->n_mine) {
				post_chain(job, lane);
				did++;
			}
		}
		did += poll_both(job);
		if (did)
			end = now_ns() + job->set.seconds * 1000000000ull;
		else if (now_ns() > end)
			stuck(job);
		if (!did && job->channel)
			sleep_for_event(job, 1000);
	}
}

/* In LOSSY mode late messages may still arrive: waits until none has for a while. */
static void drain(struct job *job)
{
	uint64_t last = now_ns();

	while (now_ns() - last < 100000000)
		if (poll_both(job))
			last = now_ns();
	if (job->received < job->expected)
		job->lost += job->expected - job->received;
	for (unsigned int i = 0; i < job->set.lanes; i++)
		if (qp_reset(job->lane[i].qp))
			wrong(job, &job->lane[i], "cannot reset the QP");
}

static void check_regions(struct job *job)
{
	const uint8_t *at = region_differs(&job->inbox);

	if (at)
		wrong(job, NULL, "byte %#zx of the inbox is wrong", at - job->inbox.mem);
	for (unsigned int i = 0; i < job->set.lanes; i++) {
		struct lane *lane = &job->lane[i];

		at = region_differs(&lane->window);
		if (at)
			wrong(job, lane, "byte %#zx of the window is %#x, not %#x", at - lane->window.mem,
			      *at, lane->window.model[at - lane->window.mem]);
		at = region_differs(&lane->arena);
		if (at)
			wrong(job, lane, "byte %#zx of the arena is %#x, not %#x", at - lane->arena.mem,
			      *at, lane->arena.model[at - lane->arena.mem]);
	}
}

static void run_round(struct job *job)
{
	plan_round(job);
	while (job->posted_slots < job->n_slots && !job->late)
		post_receive(job);
	peer_barrier(&job->peer);
	run_posted(job);
	peer_barrier(&job->peer);
	if (job->set.flags & LOSSY)
		drain(job);
	check_regions(job);
	if (job->set.flags & LOSSY) {
		/* Both QPs of a lane are reset before either is connected. */
		peer_barrier(&job->peer);
		for (unsigned int i = 0; i < job->set.lanes; i++)
			connect_lane(job, &job->lane[i]);
		peer_barrier(&job->peer);
	}
}

static void report(const struct job *job)
{
	printf("verify: ok, seed %llu, %u rounds, %u lanes, %llu bytes;",
	       (unsigned long long)job->set.seed, job->round, job->set.lanes,
	       (unsigned long long)job->bytes);
	for (int k = 0; k < OP_KINDS; k++)
		if (job->count[k])
			printf(" %s %llu", op_names[k], (unsigned long long)job->count[k]);
	printf(" inline %llu fenced %llu", (unsigned long long)job->inlined,
	       (unsigned long long)job->fenced);
	if (job->grown)
		printf(" grown %llu", (unsigned long long)job->grown);
	if (job->set.flags & LOSSY)
		printf(" lost %llu", (unsigned long long)job->lost);
	printf("\n");
}

/* Is there another round?  The client decides, when it has done those it was asked for. */
static bool goes_on(struct job *job)
{
	uint8_t on = true;

	if (job->round < job->set.rounds)
		return true;
	if (!(job->set.flags & GO_ON))
		return false;
	if (job->peer.server) {
		peer_receive(&job->peer, &on, sizeof(on));
	} else {
		on = !access(job->kept, F_OK);
		peer_send(&job->peer, &on, sizeof(on));
	}
	return on;
}

int main(int argc, char **argv)
{
	static struct job job;

	parse(&job, argc, argv);
	peer_open(&job.peer);
	if (job.peer.server)
		peer_receive(&job.peer, &job.set, sizeof(job.set));
	else
		peer_send(&job.peer, &job.set, sizeof(job.set));
	create_all(&job);
	for (unsigned int i = 0; i < job.set.lanes; i++)
		connect_lane(&job, &job.lane[i]);
	peer_barrier(&job.peer);
	for (job.round = 0; goes_on(&job); job.round++)
		run_round(&job);
	peer_barrier(&job.peer);
	destroy_all(&job);
	peer_close(&job.peer);
	report(&job);
	return 0;
}
