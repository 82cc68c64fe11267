// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-soak: very many small requests, with pauses at random.
 *
 *   qhca-soak -d DEVICE -g GID-INDEX -p PORT [-n REQUESTS] [-s SEED] [HOST]
 *
 * The client (with HOST) posts WRITEs of 8 bytes and FETCH_ADDs, up to 64 at a
 * time, in bursts between which, and within which, it does nothing for a while:
 * for less or more time than the device stays at a queue after its last request.
 * It learns of their ends by polling, or sleeping until there is an event. A
 * doorbell left out that was needed, of a send queue or for an event, leaves it
 * waiting for ever, which it does not do for longer than HANG_MS.
 *
 * Each completion must be the next that is due, each FETCH_ADD return what those
 * before it make; in the end the server looks for each slot's last WRITE.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define WINDOW		64u		/* requests under way */
#define SLOTS		1024u		/* words that are written */
#define COUNTER		SLOTS		/* and the one that is added to */
#define LENGTH		((SLOTS + 1) * sizeof(uint64_t))
#define HANG_MS		30000

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

struct target {
	uint64_t addr;
	uint32_t rkey, unused;
};

struct soak {
	struct peer peer;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint64_t *words;		/* server: SLOTS and counter; client: WINDOW */
	struct target target;
	uint64_t seed;			/* of the kinds of requests: both sides' */
	uint64_t random;		/* of everything else */
	uint64_t requests, posted, done;
	uint64_t atomics;		/* that have completed */
	bool signaled[WINDOW];
	uint64_t bursts, pauses, arms;
};

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint32_t pick(struct soak *s, uint32_t n)
{
	return (mix(s->random += 0x9e3779b97f4a7c15ull) >> 32) % n;
}

/* Is request @n a FETCH_ADD?  One in 16 is. */
static bool is_atomic(const struct soak *s, uint64_t n)
{
	return !(mix(s->seed + n) % 16);
}

/* -- pauses ----------------------------------------------------------------- */

static void spin(uint64_t ns)
{
	uint64_t start = now_ns();

	while (now_ns() - start < ns)
		;
}

/* Mostly short: each length about as likely as twice it. */
static void pause_a_while(struct soak *s)
{
	uint32_t us = 1u << pick(s, 12);	/* to 2 ms */

	us += pick(s, us);
	s->pauses++;
	if (pick(s, 2))
		usleep(us);
	else
		spin(us * 1000ull / 4);
}

/* -- posting ---------------------------------------------------------------- */

static void post(struct soak *s, bool last)
{
	uint64_t n = s->posted;
	uint64_t *word = &s->words[n % WINDOW];
	struct ibv_sge sge = { (uintptr_t)word, sizeof(*word), s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 }, *bad;
	bool atomic = is_atomic(s, n), full = n + 1 - s->done == WINDOW;
	int rc;

	s->signaled[n % WINDOW] = atomic || last || full || !pick(s, 8);
	if (s->signaled[n % WINDOW])
		wr.send_flags = IBV_SEND_SIGNALED;
	*word = n + 1;
	if (atomic) {
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.wr.atomic.remote_addr = s->target.addr + COUNTER * sizeof(*word);
		wr.wr.atomic.rkey = s->target.rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.opcode = IBV_WR_RDMA_WRITE;
		wr.wr.rdma.remote_addr = s->target.addr + n % SLOTS * sizeof(*word);
		wr.wr.rdma.rkey = s->target.rkey;
		if (pick(s, 2))
			wr.send_flags |= IBV_SEND_INLINE;
	}
	rc = ibv_post_send(s->qp, &wr, &bad);
	if (rc)
		die("ibv_post_send of request %" PRIu64 ": %s", n, strerror(rc));
	s->posted++;
}

/* -- completions ------------------------------------------------------------ */

static void check(struct soak *s, const struct ibv_wc *wc)
{
	bool atomic = is_atomic(s, wc->wr_id);

	if (wc->status)
		die("request %" PRIu64 " ends with \"%s\"", wc->wr_id, ibv_wc_status_str(wc->status));
	while (s->done < s->posted && !s->signaled[s->done % WINDOW])
		s->done++;
	if (s->done == s->posted || wc->wr_id != s->done)
		die("the completion of request %" PRIu64 " is not that of %" PRIu64, wc->wr_id, s->done);
	if (wc->opcode != (atomic ? IBV_WC_FETCH_ADD : IBV_WC_RDMA_WRITE))
		die("request %" PRIu64 " ends as %d", wc->wr_id, wc->opcode);
	if (atomic && s->words[wc->wr_id % WINDOW] != s->atomics++)
		die("request %" PRIu64 " returns %" PRIu64 ", not %" PRIu64, wc->wr_id,
		    s->words[wc->wr_id % WINDOW], s->atomics - 1);
	s->done++;
}

/* What has completed; how many. */
static unsigned int reap(struct soak *s)
{
	struct ibv_wc wc[16];
	unsigned int sum = 0;
	int n;

	do {
		n = ibv_poll_cq(s->cq, 16, wc);
		if (n < 0)
			die("ibv_poll_cq: %d", n);
		for (int i = 0; i < n; i++)
			check(s, &wc[i]);
		sum += n;
	} while (n == 16);
	return sum;
}

static void lost(struct soak *s, const char *how)
{
	uint64_t done = s->done;
	unsigned int there = reap(s);

	die("after %" PRIu64 " of %" PRIu64 " requests nothing ends any more, %s; %u completions are there",
	    done, s->posted, how, there);
}

static void wait_polling(struct soak *s)
{
	uint64_t start = now_ns();

	while (!reap(s))
		if (now_ns() - start > HANG_MS * 1000000ull)
			lost(s, "polling");
}

static void wait_asleep(struct soak *s)
{
	struct pollfd fd = { .fd = s->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;
	int rc;

	rc = ibv_req_notify_cq(s->cq, 0);
	if (rc)
		die("ibv_req_notify_cq: %s", strerror(rc));
	s->arms++;
	if (reap(s))		/* the event for what comes after is not lost */
		return;
	if (poll(&fd, 1, HANG_MS) != 1)
		lost(s, "waiting for an event");
	if (ibv_get_cq_event(s->channel, &cq, &context))
		die("ibv_get_cq_event: %s", strerror(errno));
	ibv_ack_cq_events(cq, 1);
	/* There may be no completion, after an arm whose event nobody waited for. */
	reap(s);
}

/* Until at most @left are under way. */
static void wait_until(struct soak *s, uint64_t left)
{
	bool sleep = !pick(s, 3);

	while (s->posted - s->done > left) {
		if (sleep)
			wait_asleep(s);
		else
			wait_polling(s);
	}
}

/* -- the client ------------------------------------------------------------- */

static void burst(struct soak *s)
{
	uint32_t n = 1 + (pick(s, 2) ? pick(s, WINDOW) : pick(s, 4));

	s->bursts++;
	while (n-- && s->posted < s->requests) {
		if (s->posted - s->done == WINDOW)
			wait_until(s, pick(s, WINDOW));
		post(s, !n || s->posted + 1 == s->requests);
		if (!pick(s, 64))
			pause_a_while(s);
	}
}

static void run(struct soak *s)
{
	uint64_t start = now_ns();

	peer_receive(&s->peer, &s->target, sizeof(s->target));
	while (s->posted < s->requests) {
		burst(s);
		switch (pick(s, 4)) {
		case 0:
			reap(s);
			break;
		case 1:
			wait_until(s, pick(s, s->posted - s->done + 1));
			break;
		default:
			wait_until(s, 0);
			break;
		}
		if (!pick(s, 8))
			pause_a_while(s);
	}
	wait_until(s, 0);
	tap_point(true, "each request completes once, in order");
	printf("# %" PRIu64 " requests in %" PRIu64 " ms, %" PRIu64 " bursts, %" PRIu64
	       " pauses, %" PRIu64 " arms\n", s->requests, (now_ns() - start) / 1000000, s->bursts,
	       s->pauses, s->arms);
}

/* -- the server ------------------------------------------------------------- */

/* Checks that every word is that of the last request which wrote it. */
static bool words_are(struct soak *s)
{
	uint64_t atomics = 0, *want = calloc(SLOTS, sizeof(*want));
	bool good;

	for (uint64_t n = 0; n < s->requests; n++) {
		if (is_atomic(s, n))
			atomics++;
		else
			want[n % SLOTS] = n + 1;
	}
	good = s->words[COUNTER] == atomics && !memcmp(s->words, want, SLOTS * sizeof(*want));
	free(want);
	return good;
}

static void serve(struct soak *s)
{
	bool good;

	s->target = (struct target) { (uintptr_t)s->words, s->mr->rkey };
	peer_send(&s->peer, &s->target, sizeof(s->target));
	peer_receive(&s->peer, &s->requests, sizeof(s->requests));
	peer_receive(&s->peer, &s->seed, sizeof(s->seed));
	good = words_are(s);
	peer_send(&s->peer, &good, sizeof(good));
}

/* -- both ------------------------------------------------------------------- */

static void connect_qp(struct soak *s)
{
	const struct connection conn = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 8, .dest_rd_atomic = 8,
		.access = ACCESS,
	};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = s->cq, .recv_cq = s->cq,
		.cap = { WINDOW, 1, 1, 1, sizeof(uint64_t) },
	};
	struct qp_address here = { .psn = 1, .gid = s->peer.gid }, there;
	int rc;

	s->qp = ibv_create_qp(s->pd, &init);
	if (!s->qp)
		die("ibv_create_qp: %s", strerror(errno));
	here.qpn = s->qp->qp_num;
	peer_exchange(&s->peer, &here, &there, sizeof(here));
	rc = qp_connect(s->qp, &conn, s->peer.gid_index, &there, here.psn);
	if (rc)
		die("connecting the QP: %s", strerror(rc));
	peer_barrier(&s->peer);
}

int main(int argc, char **argv)
{
	struct soak s = { .requests = 100000, .seed = 1 };
	bool good;
	int o;

	while ((o = getopt(argc, argv, PEER_OPTIONS "n:s:")) != -1) {
		if (peer_option(&s.peer, o, optarg))
			continue;
		switch (o) {
		case 'n': s.requests = parse_number(optarg, 0, ULONG_MAX); break;
		case 's': s.seed = parse_number(optarg, 0, ULONG_MAX); break;
		default: die("usage: qhca-soak -d DEVICE -g GID-INDEX -p PORT [-n REQUESTS] [-s SEED] [HOST]");
		}
	}
	s.peer.host = optind < argc ? argv[optind] : NULL;
	s.random = s.seed;
	peer_open(&s.peer);
	s.pd = ibv_alloc_pd(s.peer.ctx);
	s.channel = ibv_create_comp_channel(s.peer.ctx);
	s.cq = s.channel ? ibv_create_cq(s.peer.ctx, 2 * WINDOW, NULL, s.channel, 0) : NULL;
	s.words = calloc(1, LENGTH);
	if (!s.pd || !s.cq || !s.words)
		die("cannot begin: %s", strerror(errno));
	s.mr = ibv_reg_mr(s.pd, s.words, LENGTH, ACCESS);
	if (!s.mr)
		die("ibv_reg_mr: %s", strerror(errno));
	connect_qp(&s);
	if (s.peer.server) {
		serve(&s);
	} else {
		run(&s);
		peer_send(&s.peer, &s.requests, sizeof(s.requests));
		peer_send(&s.peer, &s.seed, sizeof(s.seed));
		peer_receive(&s.peer, &good, sizeof(good));
		tap_point(good, "the server has what was written and added");
	}
	ibv_destroy_qp(s.qp);
	ibv_destroy_cq(s.cq);
	ibv_destroy_comp_channel(s.channel);
	ibv_dereg_mr(s.mr);
	ibv_dealloc_pd(s.pd);
	peer_close(&s.peer);
	free(s.words);
	return tap_end();
}
