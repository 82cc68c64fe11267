// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-thresholds: what the device makes of queues whose software index it knows
 * from memory alone, by its own counters.
 *
 *   qhca-thresholds -d DEVICE -g GID_INDEX COMMAND...
 *
 *   thresholds KIND DEPTH ACCESSES   KIND: cq, rq or srq; for each threshold from
 *                                    1 to DEPTH, twice: with software that keeps
 *                                    up, ACCESSES times, and with software that
 *                                    does not move, as often as the queue allows
 *   default KIND DEPTH               the latter, with the driver's threshold
 *   refilled KIND DEPTH ROUNDS       rq, srq: emptied, and refilled in memory
 *   drained DEPTH ROUNDS             a CQ: filled, and drained in memory
 *   overrun DEPTH                    a CQ that is truly full
 *   refused DEPTH                    thresholds that are none
 *   resize RESIZES poll|events       of a CQ, under traffic
 *   moderation COUNT                 of a CQ's events
 *
 * Each prints lines of JSON: what was counted, for the caller to judge.
 * Completions and data are checked here, and a wrong one is an error.
 */
#include <errno.h>
#include <infiniband/qhcadv.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "thresholds.h"

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define MESSAGE 8u		/* bytes */

static const char *const counter_names[NUM_COUNTED + 1] = {
	"cq_refetches", "rq_refetches", "srq_refetches", "refetches_unchanged",
	"refetches_before_rnr", "refetches_before_overrun",
	"sq_doorbells", "cq_arms", "doorbells_ignored",
	"tx_rnr_no_wqe", "rx_rnr", "cq_overruns", "completions", NULL,
};

/* ---- queues */

struct ibv_cq *new_cq(struct queues *q, uint32_t depth, uint32_t threshold,
		      struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = depth - 1,	/* libqhca keeps one entry for a resize */
		.channel = channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct qhcadv_queue_attr own = {
		.comp_mask = threshold ? QHCADV_QUEUE_ATTR_THRESHOLD : 0,
		.threshold = threshold,
	};
	struct ibv_cq_ex *cq = qhcadv_create_cq(q->ctx, &attr, &own, sizeof(own));

	if (!cq)
		die("qhcadv_create_cq: %s", strerror(errno));
	if (ibv_cq_ex_to_cq(cq)->cqe != (int)depth - 1)
		die("a CQ of %d entries, not %u", ibv_cq_ex_to_cq(cq)->cqe, depth - 1);
	return ibv_cq_ex_to_cq(cq);
}

struct ibv_srq *new_srq(struct queues *q, uint32_t slots, uint32_t threshold)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = slots - 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD,
		.pd = q->pd,
	};
	struct qhcadv_queue_attr own = {
		.comp_mask = threshold ? QHCADV_QUEUE_ATTR_THRESHOLD : 0,
		.threshold = threshold,
	};
	struct ibv_srq *srq = qhcadv_create_srq(q->ctx, &attr, &own, sizeof(own));

	if (!srq)
		die("qhcadv_create_srq: %s", strerror(errno));
	if (attr.attr.max_wr != slots - 1)
		die("an SRQ of %u receives, not %u", attr.attr.max_wr, slots - 1);
	return srq;
}

static struct ibv_qp *new_qp(struct queues *q, const struct pair_options *o, bool requester,
			     struct ibv_cq *idle)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = o->unreliable ? IBV_QPT_UC : IBV_QPT_RC,
		.send_cq = requester ? o->send_cq : idle,
		.recv_cq = requester ? idle : o->recv_cq,
		.srq = requester ? NULL : o->srq,
		.cap = {
			.max_send_wr = requester ? o->send_wr : 1,
			.max_recv_wr = requester || o->srq ? 0 : o->recv_wr,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = q->pd,
	};
	struct qhcadv_queue_attr own = { 0 };
	struct ibv_qp *qp;

	if (!requester && o->rq_threshold)
		own = (struct qhcadv_queue_attr) {
			.comp_mask = QHCADV_QUEUE_ATTR_THRESHOLD, .threshold = o->rq_threshold,
		};
	qp = qhcadv_create_qp(q->ctx, &attr, &own, sizeof(own));
	if (!qp)
		die("qhcadv_create_qp: %s", strerror(errno));
	if (attr.cap.max_recv_wr != (requester || o->srq ? 0 : o->recv_wr))
		die("a receive queue of %u, not %u", attr.cap.max_recv_wr, o->recv_wr);
	return qp;
}

void new_pair(struct queues *q, struct pair *pair, const struct pair_options *o)
{
	const struct connection c = {
		.type = o->unreliable ? IBV_QPT_UC : IBV_QPT_RC, .mtu = IBV_MTU_1024,
		/* No timer runs: the loopback loses nothing, and a repetition would count. */
		.timeout = 0,
		.retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12, .access = ACCESS,
	};

	pair->idle_cq = new_cq(q, 2, 0, NULL);
	for (int i = 0; i < 2; i++)
		pair->qp[i] = new_qp(q, o, !i, pair->idle_cq);
	errno = qp_connect_pair(pair->qp, &c, q->gid_index);
	if (errno)
		die("the QPs do not connect: %s", strerror(errno));
}

void end_pair(struct pair *pair)
{
	for (int i = 0; i < 2; i++)
		if (ibv_destroy_qp(pair->qp[i]))
			die("ibv_destroy_qp: %s", strerror(errno));
	end_cq(pair->idle_cq);
}

void end_cq(struct ibv_cq *cq)
{
	int err = ibv_destroy_cq(cq);

	if (err)
		die("ibv_destroy_cq: %s", strerror(err));
}

void end_srq(struct ibv_srq *srq)
{
	int err = ibv_destroy_srq(srq);

	if (err)
		die("ibv_destroy_srq: %s", strerror(err));
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(qp, wr, &bad);

	if (err)
		die("ibv_post_send: %s", strerror(err));
}

void post_write(struct queues *q, struct ibv_qp *qp, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)q->buf, MESSAGE, q->mr->lkey };

	post(qp, &(struct ibv_send_wr) {
		.wr_id = id, .opcode = IBV_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)q->buf + BUF_SIZE / 2, q->mr->rkey },
	});
}

void post_send(struct queues *q, struct ibv_qp *qp, uint64_t id, uint32_t at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)q->buf + at, len, q->mr->lkey };

	post(qp, &(struct ibv_send_wr) {
		.wr_id = id, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	});
}

void post_receive(struct queues *q, const struct pair *pair, struct ibv_srq *srq, uint64_t id,
		  uint32_t at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)q->buf + at, len, q->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;
	int err = srq ? ibv_post_srq_recv(srq, &wr, &bad) : ibv_post_recv(pair->qp[1], &wr, &bad);

	if (err)
		die("posting receive %" PRIu64 ": %s", id, strerror(err));
}

struct ibv_wc expect_completion(struct ibv_cq *cq, uint64_t id)
{
	uint64_t end = now_ns() + SOON_NS;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		if (now_ns() > end)
			die("no completion of %" PRIu64, id);
	if (n < 0)
		die("ibv_poll_cq gives %d", n);
	if (wc.status != IBV_WC_SUCCESS)
		die("%" PRIu64 ": %s, vendor error %#x", id, ibv_wc_status_str(wc.status),
		    wc.vendor_err);
	if (wc.wr_id != id)
		die("completion %" PRIu64 ", not %" PRIu64, wc.wr_id, id);
	return wc;
}

/* ---- counts */

static void since(struct queues *q, const uint64_t *before, uint64_t *change)
{
	counters_read(&q->counters, change);
	for (unsigned int i = 0; i < NUM_COUNTED; i++)
		change[i] -= before[i];
}

static void print_counts(const uint64_t *count)
{
	for (unsigned int i = 0; i < NUM_COUNTED; i++)
		printf(", \"%s\": %" PRIu64, counter_names[i], count[i]);
}

static uint64_t doorbells(const uint64_t *count)
{
	return count[SQ_DOORBELLS] + count[CQ_ARMS] + count[DOORBELLS_IGNORED];
}

/* ---- a queue of either kind, and accesses to it */

enum kind { KIND_CQ, KIND_RQ, KIND_SRQ };
static const char *const kind_names[] = { "cq", "rq", "srq" };

static enum kind kind_of(const char *name)
{
	for (unsigned int k = 0; k < 3; k++)
		if (!strcmp(name, kind_names[k]))
			return k;
	die("there is no queue of kind %s", name);
}

struct subject {
	enum kind kind;
	uint32_t depth;
	uint32_t capacity;	/* receives that may be posted */
	struct ibv_cq *cq;	/* the CQ studied */
	struct ibv_cq *large_cq; /* completions of no interest */
	struct ibv_srq *srq;
	struct pair pair;
	uint64_t posted;	/* receives, by number */
	uint64_t accesses;
};

/* Completions of no interest go where the device need not look during the run. */
static void begin(struct queues *q, struct subject *s, enum kind kind, uint32_t depth,
		  uint32_t threshold, uint32_t accesses)
{
	uint32_t large = 64;
	struct pair_options o;

	while (large < 2 * accesses + 2)
		large *= 2;
	*s = (struct subject) {
		.kind = kind, .depth = depth, .capacity = kind == KIND_SRQ ? depth - 1 : depth,
		.large_cq = new_cq(q, large, large, NULL),
	};
	if (kind == KIND_CQ)
		s->cq = new_cq(q, depth, threshold, NULL);
	if (kind == KIND_SRQ)
		s->srq = new_srq(q, depth, threshold);
	o = (struct pair_options) {
		.send_cq = kind == KIND_CQ ? s->cq : s->large_cq, .recv_cq = s->large_cq,
		.srq = s->srq, .send_wr = depth < 16 ? 16 : depth, .recv_wr = depth,
		.rq_threshold = kind == KIND_RQ ? threshold : 0,
		/*
		 * The device also refetches the send CQ of a reliable QP to tell
		 * whether to linger at its send queue. The CQ studied is one that
		 * it refetches for the threshold alone.
		 */
		.unreliable = kind == KIND_CQ,
	};
	new_pair(q, &s->pair, &o);
}

static void end(struct subject *s)
{
	end_pair(&s->pair);
	if (s->srq)
		end_srq(s->srq);
	if (s->cq)
		end_cq(s->cq);
	end_cq(s->large_cq);
}

static void refill(struct queues *q, struct subject *s, uint32_t receives)
{
	while (receives--) {
		post_receive(q, &s->pair, s->srq, s->posted,
			     BUF_SIZE / 2 + s->posted % s->capacity * MESSAGE, MESSAGE);
		s->posted++;
	}
}

static void wait_completions(struct queues *q, const uint64_t *before, uint64_t n)
{
	uint64_t end = now_ns() + SOON_NS, count[NUM_COUNTED];

	do {
		since(q, before, count);
		if (now_ns() > end)
			die("%" PRIu64 " completions, not %" PRIu64, count[COMPLETIONS], n);
	} while (count[COMPLETIONS] < n);
}

static void access_cq(struct queues *q, struct subject *s, bool keep_up, const uint64_t *before)
{
	post_write(q, s->pair.qp[0], s->accesses);
	if (keep_up)
		expect_completion(s->cq, s->accesses);
	else
		wait_completions(q, before, s->accesses + 1);
	s->accesses++;
}

/* One message, whose receive is posted again at once if software keeps up. */
static void access_rq(struct queues *q, struct subject *s, bool keep_up)
{
	uint8_t *to = q->buf + BUF_SIZE / 2 + s->accesses % s->capacity * MESSAGE;
	struct ibv_wc wc;
	bool sent = false, received = false;

	memcpy(q->buf, &s->accesses, MESSAGE);
	memset(to, 0xee, MESSAGE);
	post_send(q, s->pair.qp[0], s->accesses, 0, MESSAGE);
	/* Both ends complete to one CQ, in either order. */
	while (!sent || !received) {
		wc = expect_completion(s->large_cq, s->accesses);
		*(wc.opcode == IBV_WC_RECV ? &received : &sent) = true;
	}
	if (memcmp(to, &s->accesses, MESSAGE))
		die("message %" PRIu64 " arrived wrong", s->accesses);
	s->accesses++;
	if (keep_up)
		refill(q, s, 1);
}

static void access_queue(struct queues *q, struct subject *s, bool keep_up, const uint64_t *before)
{
	if (s->kind == KIND_CQ)
		access_cq(q, s, keep_up, before);
	else
		access_rq(q, s, keep_up);
}

/* ---- thresholds */

static void one_threshold(struct queues *q, enum kind kind, uint32_t depth, uint32_t threshold,
			  uint32_t accesses, bool keep_up)
{
	uint64_t start[NUM_COUNTED], filled[NUM_COUNTED], count[NUM_COUNTED], seen = 0;
	enum counted which = kind == KIND_CQ ? REFETCHES_CQ :
			     kind == KIND_RQ ? REFETCHES_RQ : REFETCHES_SRQ;
	const char *comma = "";
	struct subject s;

	begin(q, &s, kind, depth, threshold, accesses);
	if (!keep_up)
		accesses = s.capacity;
	counters_read(&q->counters, start);
	if (kind != KIND_CQ)
		refill(q, &s, s.capacity);
	since(q, start, filled);
	printf("{\"kind\": \"%s\", \"depth\": %u, \"threshold\": %u, \"keeps_up\": %s, "
	       "\"accesses\": %u, \"doorbells_of_filling\": %" PRIu64 ", \"refetched_at\": [",
	       kind_names[kind], depth, threshold, keep_up ? "true" : "false", accesses,
	       doorbells(filled));
	for (uint32_t i = 0; i < accesses; i++) {
		access_queue(q, &s, keep_up, start);
		since(q, start, count);
		for (; seen < count[which]; seen++, comma = ", ")
			printf("%s%u", comma, i);
	}
	printf("]");
	print_counts(count);
	printf("}\n");
	end(&s);
}

static void do_thresholds(struct queues *q, const char *kind, uint32_t depth, uint32_t accesses)
{
	for (uint32_t t = 1; t <= depth; t++) {
		one_threshold(q, kind_of(kind), depth, t, accesses, true);
		one_threshold(q, kind_of(kind), depth, t, accesses, false);
	}
}

/* ---- what seems empty, and what seems full */

static void do_refilled(struct queues *q, const char *name, uint32_t depth, uint32_t rounds)
{
	uint64_t start[NUM_COUNTED], count[NUM_COUNTED], end_time;
	struct subject s;

	/* The device looks only when the queue seems empty. */
	begin(q, &s, kind_of(name), depth, 1, depth * (rounds + 1));
	counters_read(&q->counters, start);
	for (uint32_t r = 0; r < rounds; r++) {
		refill(q, &s, s.capacity);
		for (uint32_t i = 0; i < s.capacity; i++)
			access_rq(q, &s, false);
	}
	since(q, start, count);
	printf("{\"kind\": \"%s\", \"what\": \"refilled\", \"rounds\": %u", name, rounds);
	print_counts(count);
	printf("}\n");

	/* Nothing has been posted now, until the device has said so. */
	counters_read(&q->counters, start);
	post_send(q, s.pair.qp[0], s.accesses, 0, MESSAGE);
	end_time = now_ns() + SOON_NS;
	do {
		since(q, start, count);
		if (now_ns() > end_time)
			die("a message without a receive is not refused");
	} while (!count[RX_RNR]);
	refill(q, &s, 1);
	expect_completion(s.large_cq, s.accesses);
	expect_completion(s.large_cq, s.accesses);
	printf("{\"kind\": \"%s\", \"what\": \"empty\"", name);
	print_counts(count);
	printf("}\n");
	end(&s);
}

static void do_drained(struct queues *q, uint32_t depth, uint32_t rounds)
{
	uint64_t start[NUM_COUNTED], count[NUM_COUNTED], done = 0;
	struct subject s;

	/* The device looks only when the queue seems full. */
	begin(q, &s, KIND_CQ, depth, depth, 0);
	counters_read(&q->counters, start);
	for (uint32_t r = 0; r < rounds; r++) {
		for (uint32_t i = 0; i < depth; i++)
			access_cq(q, &s, false, start);
		while (done < s.accesses)
			expect_completion(s.cq, done++);
	}
	access_cq(q, &s, true, start);
	since(q, start, count);
	printf("{\"kind\": \"cq\", \"what\": \"drained\", \"rounds\": %u", rounds);
	print_counts(count);
	printf("}\n");
	end(&s);
}

/* ---- what is full */

struct events {
	unsigned int cq_error, qp_fatal, others;
};

/* Takes the asynchronous events that come within @ms. */
static void take_events(struct queues *q, const struct ibv_cq *cq, struct events *e, int ms)
{
	struct pollfd fd = { .fd = q->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (poll(&fd, 1, ms) > 0) {
		if (ibv_get_async_event(q->ctx, &event))
			die("ibv_get_async_event: %s", strerror(errno));
		if (event.event_type == IBV_EVENT_CQ_ERR && event.element.cq == cq)
			e->cq_error++;
		else if (event.event_type == IBV_EVENT_QP_FATAL)
			e->qp_fatal++;
		else if (!event_is_of_port(event.event_type))
			e->others++;
		ibv_ack_async_event(&event);
		ms = 0;
	}
}

/*
 * Two QPs complete in one CQ. The first fills it and goes one further, and then
 * the second has something for it. All events lie in one queue of the device,
 * with the answers to commands: behind such an answer none is missing but those
 * that the driver delivers from a work, which are waited for.
 */
static void do_overrun(struct queues *q, uint32_t depth)
{
	uint64_t start[NUM_COUNTED], count[NUM_COUNTED], end_time = now_ns() + SOON_NS;
	struct events e = { 0 };
	struct pair_options o;
	struct pair pair[2];
	struct ibv_cq *cq = new_cq(q, depth, 0, NULL);
	struct ibv_wc wc;

	o = (struct pair_options) { .send_cq = cq, .recv_cq = cq, .send_wr = 2 * depth };
	new_pair(q, &pair[0], &o);
	new_pair(q, &pair[1], &o);
	counters_read(&q->counters, start);
	for (uint32_t i = 0; i <= depth; i++)
		post_write(q, pair[0].qp[0], i);
	while ((!e.cq_error || !e.qp_fatal) && now_ns() < end_time)
		take_events(q, cq, &e, 1000);
	post_write(q, pair[1].qp[0], depth + 1);
	while (e.qp_fatal < 2 && now_ns() < end_time)
		take_events(q, cq, &e, 1000);
	if (qp_state(pair[0].qp[0]) != IBV_QPS_ERR || qp_state(pair[1].qp[0]) != IBV_QPS_ERR)
		die("a QP whose CQ is of no use is not in error");
	take_events(q, cq, &e, 0);
	for (uint32_t i = 0; i < depth; i++) {
		wc = expect_completion(cq, i);
		if (wc.qp_num != pair[0].qp[0]->qp_num || wc.opcode != IBV_WC_RDMA_WRITE)
			die("completion %u is damaged: QP %u, opcode %d", i, wc.qp_num, wc.opcode);
	}
	if (ibv_poll_cq(cq, 1, &wc))
		die("there is more in the CQ than it has room for: %" PRIu64, wc.wr_id);
	since(q, start, count);
	printf("{\"kind\": \"cq\", \"what\": \"overrun\", \"cq_error_events\": %u, "
	       "\"qp_fatal_events\": %u, \"other_events\": %u", e.cq_error, e.qp_fatal, e.others);
	print_counts(count);
	printf("}\n");
	end_pair(&pair[0]);
	end_pair(&pair[1]);
	end_cq(cq);
	/* The other queues are unharmed. */
	do_drained(q, depth, 1);
}

/* ---- what is refused */

static void refuse(bool made, const char *what)
{
	if (made || errno != EINVAL)
		die("%s: %s", what, made ? "taken" : strerror(errno));
}

static void do_refused(struct queues *q, uint32_t depth)
{
	struct ibv_cq_init_attr_ex cq = { .cqe = depth - 1, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_srq_init_attr_ex srq = {
		.attr = { .max_wr = depth - 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_PD, .pd = q->pd,
	};
	struct qhcadv_queue_attr over = {
		.comp_mask = QHCADV_QUEUE_ATTR_THRESHOLD, .threshold = depth + 1,
	}, none = { .comp_mask = QHCADV_QUEUE_ATTR_THRESHOLD }, fine = over;
	struct ibv_cq *idle = new_cq(q, 2, 0, NULL);
	struct ibv_srq *shared = new_srq(q, depth, 1);
	struct ibv_qp_init_attr_ex qp = {
		.qp_type = IBV_QPT_RC, .send_cq = idle, .recv_cq = idle,
		.cap = { .max_send_wr = 1, .max_recv_wr = depth, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = q->pd,
	};

	fine.threshold = 1;
	refuse(qhcadv_create_cq(q->ctx, &cq, &over, sizeof(over)), "a CQ's threshold over its depth");
	refuse(qhcadv_create_cq(q->ctx, &cq, &none, sizeof(none)), "a CQ's threshold of 0");
	refuse(qhcadv_create_cq(q->ctx, &cq, &fine, 8), "an attribute cut short");
	refuse(qhcadv_create_qp(q->ctx, &qp, &over, sizeof(over)), "an RQ's threshold over its depth");
	refuse(qhcadv_create_srq(q->ctx, &srq, &over, sizeof(over)), "an SRQ's threshold over its depth");
	qp.srq = shared;
	refuse(qhcadv_create_qp(q->ctx, &qp, &fine, sizeof(fine)), "a threshold of no receive queue");
	end_srq(shared);
	end_cq(idle);
	printf("{\"what\": \"refused\"}\n");
}

/* ---- */

static unsigned int number(const char *text)
{
	return parse_number(text, 1, 1 << 20);
}

static void command(struct queues *q, int words, char **word)
{
	if (words == 4 && !strcmp(word[0], "thresholds"))
		do_thresholds(q, word[1], number(word[2]), number(word[3]));
	else if (words == 3 && !strcmp(word[0], "default"))
		one_threshold(q, kind_of(word[1]), number(word[2]), 0, number(word[2]), false);
	else if (words == 4 && !strcmp(word[0], "refilled"))
		do_refilled(q, word[1], number(word[2]), number(word[3]));
	else if (words == 3 && !strcmp(word[0], "drained"))
		do_drained(q, number(word[1]), number(word[2]));
	else if (words == 2 && !strcmp(word[0], "overrun"))
		do_overrun(q, number(word[1]));
	else if (words == 2 && !strcmp(word[0], "refused"))
		do_refused(q, number(word[1]));
	else if (words == 3 && !strcmp(word[0], "resize"))
		do_resize(q, number(word[1]), !strcmp(word[2], "events"));
	else if (words == 2 && !strcmp(word[0], "moderation"))
		do_moderation(q, number(word[1]));
	else
		die("there is no command %s of %d words", word[0], words);
}

int main(int argc, char **argv)
{
	struct queues q = { 0 };
	const char *device = NULL;
	int option;

	while ((option = getopt(argc, argv, "+d:g:")) != -1) {
		if (option == 'd')
			device = optarg;
		else if (option == 'g')
			q.gid_index = parse_number(optarg, 0, INT_MAX);
		else
			die("usage: qhca-thresholds -d DEVICE -g GID_INDEX COMMAND...");
	}
	if (optind == argc)
		die("no command");
	q.ctx = device_open(device);
	q.pd = ibv_alloc_pd(q.ctx);
	q.buf = calloc(1, BUF_SIZE);
	if (!q.pd || !q.buf)
		die("no PD or memory: %s", strerror(errno));
	q.mr = ibv_reg_mr(q.pd, q.buf, BUF_SIZE, ACCESS);
	if (!q.mr)
		die("ibv_reg_mr: %s", strerror(errno));
	counters_open(&q.counters, q.ctx, q.gid_index, counter_names);
	command(&q, argc - optind, argv + optind);
	counters_close(&q.counters);
	if (ibv_dereg_mr(q.mr) || ibv_dealloc_pd(q.pd) || ibv_close_device(q.ctx))
		die("not all goes away: %s", strerror(errno));
	free(q.buf);
	return 0;
}
