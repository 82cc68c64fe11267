// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* CQs that change while they are used: size, and moderation of events. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "verify/plan.h"
#include "thresholds.h"

#define WINDOW 32u		/* messages under way */
#define SLOT 512u		/* bytes */
#define RECEIVED_AT (BUF_SIZE / 2)

/* ---- completion events */

static void arm(struct ibv_cq *cq)
{
	int err = ibv_req_notify_cq(cq, 0);

	if (err)
		die("ibv_req_notify_cq: %s", strerror(err));
}

/* Takes an event of the CQ; false: none came in time. */
static bool take_event(struct ibv_comp_channel *channel, struct ibv_cq *cq, int ms)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct ibv_cq *of;
	void *context;

	if (poll(&fd, 1, ms) <= 0)
		return false;
	if (ibv_get_cq_event(channel, &of, &context))
		die("ibv_get_cq_event: %s", strerror(errno));
	if (of != cq)
		die("an event of another CQ");
	ibv_ack_cq_events(cq, 1);
	return true;
}

static struct ibv_comp_channel *new_channel(struct queues *q)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(q->ctx);

	if (!channel)
		die("ibv_create_comp_channel: %s", strerror(errno));
	return channel;
}

static void end_channel(struct ibv_comp_channel *channel)
{
	int err = ibv_destroy_comp_channel(channel);

	if (err)
		die("ibv_destroy_comp_channel: %s", strerror(err));
}

/* ---- resize: one thread talks, the other resizes the CQ of both ends */

struct traffic {
	struct queues *q;
	struct pair pair;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;	/* NULL: poll */
	uint64_t posted, sent;		/* messages */
	_Atomic(uint64_t) received;
	atomic_bool stop;
	uint8_t expected[SLOT];
};

static uint32_t length_of(uint64_t message)
{
	struct rng rng = rng_for(message, 5, 0, 0);

	return 1 + rng_below(&rng, SLOT);
}

static void receive_into(struct traffic *t, uint64_t message)
{
	post_receive(t->q, &t->pair, NULL, message, RECEIVED_AT + message % WINDOW * SLOT, SLOT);
}

static void talk(struct traffic *t)
{
	uint32_t at = t->posted % WINDOW * SLOT;

	fill(t->posted, t->q->buf + at, length_of(t->posted));
	post_send(t->q, t->pair.qp[0], t->posted, at, length_of(t->posted));
	t->posted++;
}

static void check_received(struct traffic *t, const struct ibv_wc *wc)
{
	uint64_t message = t->received;

	if (wc->wr_id != message)
		die("receive %" PRIu64 " completes, not %" PRIu64, wc->wr_id, message);
	if (wc->byte_len != length_of(message))
		die("message %" PRIu64 " has %u bytes", message, wc->byte_len);
	fill(message, t->expected, wc->byte_len);
	if (memcmp(t->expected, t->q->buf + RECEIVED_AT + message % WINDOW * SLOT, wc->byte_len))
		die("message %" PRIu64 " arrived wrong", message);
	receive_into(t, message + WINDOW);
	t->received = message + 1;
}

/* In order, each once: none is lost, none comes twice. */
static int take_completions(struct traffic *t)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(t->cq, 16, wc);

	if (n < 0)
		die("ibv_poll_cq gives %d", n);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			die("%" PRIu64 ": %s", wc[i].wr_id, ibv_wc_status_str(wc[i].status));
		if (wc[i].opcode == IBV_WC_RECV)
			check_received(t, &wc[i]);
		else if (wc[i].wr_id == t->sent)
			t->sent++;
		else
			die("send %" PRIu64 " completes, not %" PRIu64, wc[i].wr_id, t->sent);
	}
	return n;
}

static void await_completion(struct traffic *t, uint64_t last)
{
	if (!t->channel) {
		if (now_ns() - last > SOON_NS)
			die("%" PRIu64 " messages posted, %" PRIu64 " received, %" PRIu64
			    " completed: nothing more comes", t->posted, (uint64_t)t->received,
			    t->sent);
		return;
	}
	arm(t->cq);
	if (!take_completions(t) && !take_event(t->channel, t->cq, SOON_NS / 1000000))
		die("no event of a CQ that was armed");
}

static void *run_traffic(void *arg)
{
	struct traffic *t = arg;
	uint64_t last = now_ns();

	for (uint64_t i = 0; i < WINDOW; i++)
		receive_into(t, i);
	while (!t->stop || t->sent < t->posted || t->received < t->posted) {
		while (!t->stop && t->posted < t->sent + WINDOW && t->posted < t->received + WINDOW)
			talk(t);
		if (take_completions(t))
			last = now_ns();
		else
			await_completion(t, last);
	}
	return NULL;
}

static void resize(struct traffic *t, struct rng *rng)
{
	/* What is under way must always fit. */
	int cqe = 2 * WINDOW + 8 + rng_below(rng, 1000), err = ibv_resize_cq(t->cq, cqe);

	if (err)
		die("ibv_resize_cq to %d: %s", cqe, strerror(err));
	if (t->cq->cqe < cqe)
		die("a CQ of %d after a resize to %d", t->cq->cqe, cqe);
}

void do_resize(struct queues *q, unsigned int resizes, bool events)
{
	struct rng rng = rng_for(1, 6, events, 0);
	struct traffic t = { .q = q, .channel = events ? new_channel(q) : NULL };
	uint64_t start[NUM_COUNTED], count[NUM_COUNTED];
	pthread_t thread;

	t.cq = new_cq(q, 128, 16, t.channel);
	new_pair(q, &t.pair, &(struct pair_options) {
		.send_cq = t.cq, .recv_cq = t.cq, .send_wr = WINDOW, .recv_wr = WINDOW,
	});
	counters_read(&q->counters, start);
	if (pthread_create(&thread, NULL, run_traffic, &t))
		die("no thread");
	for (unsigned int i = 0; i < resizes; i++) {
		/* Sometimes the next resize comes before anyone has noticed this one. */
		uint64_t until = t.received + rng_below(&rng, 2) * rng_below(&rng, 100);

		resize(&t, &rng);
		while (t.received < until)
			sched_yield();
	}
	t.stop = true;
	pthread_join(thread, NULL);
	counters_read(&q->counters, count);
	for (unsigned int i = 0; i < NUM_COUNTED; i++)
		count[i] -= start[i];
	printf("{\"what\": \"resize\", \"resizes\": %u, \"messages\": %" PRIu64
	       ", \"completions\": %" PRIu64 ", \"cq_overruns\": %" PRIu64
	       ", \"tx_rnr_no_wqe\": %" PRIu64 ", \"cq_arms\": %" PRIu64 "}\n", resizes, t.posted,
	       count[COMPLETIONS], count[CQ_OVERRUNS], count[TX_RNR_NO_WQE], count[CQ_ARMS]);
	end_pair(&t.pair);
	end_cq(t.cq);
	if (t.channel)
		end_channel(t.channel);
}

/* ---- moderation */

#define PERIOD_US 65535u	/* the longest there is */

static void moderate(struct ibv_cq *cq, uint16_t count, uint16_t usec)
{
	struct ibv_modify_cq_attr attr = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { count, usec },
	};
	int err = ibv_modify_cq(cq, &attr);

	if (err)
		die("ibv_modify_cq: %s", strerror(err));
}

static void complete_one(struct queues *q, struct pair *pair, struct ibv_cq *cq, uint64_t *id)
{
	post_write(q, pair->qp[0], *id);
	expect_completion(cq, (*id)++);
}

/*
 * An event comes with the COUNT-th completion and not before. If the period has
 * passed meanwhile that tells nothing, and the attempt is repeated.
 */
static bool attempt(struct queues *q, struct pair *pair, struct ibv_cq *cq,
		    struct ibv_comp_channel *channel, unsigned int count, uint64_t *id)
{
	uint64_t start = now_ns();
	bool early, valid;

	arm(cq);
	for (unsigned int i = 1; i < count; i++)
		complete_one(q, pair, cq, id);
	early = take_event(channel, cq, 0);
	valid = now_ns() - start < PERIOD_US * 1000ull;
	if (early && valid)
		die("an event before completion %u", count);
	if (early)
		return false;
	complete_one(q, pair, cq, id);
	if (!take_event(channel, cq, SOON_NS / 1000000))
		die("no event after completion %u", count);
	return now_ns() - start < PERIOD_US * 1000ull;
}

void do_moderation(struct queues *q, unsigned int count)
{
	struct ibv_comp_channel *channel = new_channel(q);
	struct ibv_cq *cq = new_cq(q, 64, 0, channel);
	unsigned int attempts = 0, valid = 0;
	struct pair pair;
	uint64_t id = 0;

	new_pair(q, &pair, &(struct pair_options) { .send_cq = cq, .recv_cq = cq, .send_wr = 16 });

	moderate(cq, count, PERIOD_US);
	while (valid < 10) {
		if (++attempts > 1000)
			die("%u completions always take longer than %u us", count, PERIOD_US);
		valid += attempt(q, &pair, cq, channel, count, &id);
	}

	/* What does not reach the count waits for the period, and no longer. */
	arm(cq);
	complete_one(q, &pair, cq, &id);
	if (!take_event(channel, cq, SOON_NS / 1000000))
		die("no event after the period");

	/* Not moderated any more: the first completion is enough. */
	moderate(cq, 0, 0);
	arm(cq);
	complete_one(q, &pair, cq, &id);
	if (!take_event(channel, cq, SOON_NS / 1000000))
		die("no event of a CQ that is not moderated");
	if (take_event(channel, cq, 0))
		die("an event of a CQ that is not armed");
	printf("{\"what\": \"moderation\", \"attempts\": %u, \"valid\": %u}\n", attempts, valid);
	end_pair(&pair);
	end_cq(cq);
	end_channel(channel);
}
