/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "transport/transport.h"

#include <stdlib.h>

bool qhca_sched_init(struct qhca_hca *hca, uint32_t num_slots)
{
	struct qhca_sched *s = &hca->sched;

	qhca_sched_fini(hca);
	s->heap = calloc(num_slots + 1, sizeof(*s->heap));
	s->heap_cap = num_slots;
	return s->heap;
}

void qhca_sched_fini(struct qhca_hca *hca)
{
	free(hca->sched.heap);
	hca->sched = (struct qhca_sched){ 0 };
	qhca_linger_init(hca);
}

/* ---- list of QPs with work: FIFO, through qhca_qpslot.next */

static void push(struct qhca_hca *hca, uint32_t qpn)
{
	struct qhca_sched *s = &hca->sched;

	hca->qps.slot[qpn].next = 0;
	if (s->last)
		hca->qps.slot[s->last].next = qpn;
	else
		s->first = qpn;
	s->last = qpn;
	s->queued++;
}

static uint32_t pop(struct qhca_hca *hca)
{
	struct qhca_sched *s = &hca->sched;
	uint32_t qpn = s->first;

	s->first = hca->qps.slot[qpn].next;
	if (!s->first)
		s->last = 0;
	s->queued--;
	return qpn;
}

void qhca_sched_work(struct qhca_hca *hca, uint32_t qpn, uint8_t work)
{
	struct qhca_qpslot *slot = &hca->qps.slot[qpn];

	if (!(slot->work & QHCA_WORK_QUEUED))
		push(hca, qpn);
	slot->work |= work | QHCA_WORK_QUEUED;
}

/* ---- timers: a binary heap of QPNs by deadline, 1-based */

static uint64_t due(const struct qhca_hca *hca, uint32_t pos)
{
	return hca->qps.slot[hca->sched.heap[pos]].deadline;
}

static void place(struct qhca_hca *hca, uint32_t pos, uint32_t qpn)
{
	hca->sched.heap[pos] = qpn;
	hca->qps.slot[qpn].heap_pos = pos;
}

static void sift_up(struct qhca_hca *hca, uint32_t pos)
{
	uint32_t qpn = hca->sched.heap[pos];
	uint64_t deadline = hca->qps.slot[qpn].deadline;

	for (; pos > 1 && due(hca, pos / 2) > deadline; pos /= 2)
		place(hca, pos, hca->sched.heap[pos / 2]);
	place(hca, pos, qpn);
}

static void sift_down(struct qhca_hca *hca, uint32_t pos)
{
	struct qhca_sched *s = &hca->sched;
	uint32_t qpn = s->heap[pos];
	uint64_t deadline = hca->qps.slot[qpn].deadline;

	for (;;) {
		uint32_t child = 2 * pos;

		if (child > s->heap_len)
			break;
		if (child < s->heap_len && due(hca, child + 1) < due(hca, child))
			child++;
		if (due(hca, child) >= deadline)
			break;
		place(hca, pos, s->heap[child]);
		pos = child;
	}
	place(hca, pos, qpn);
}

void qhca_sched_timer(struct qhca_hca *hca, uint32_t qpn, uint64_t deadline)
{
	struct qhca_qpslot *slot = &hca->qps.slot[qpn];
	struct qhca_sched *s = &hca->sched;
	uint64_t old = slot->deadline;

	slot->deadline = deadline;
	if (!slot->heap_pos) {
		place(hca, ++s->heap_len, qpn);
		sift_up(hca, s->heap_len);
	} else if (deadline < old) {
		sift_up(hca, slot->heap_pos);
	} else {
		sift_down(hca, slot->heap_pos);
	}
}

void qhca_sched_timer_stop(struct qhca_hca *hca, uint32_t qpn)
{
	struct qhca_qpslot *slot = &hca->qps.slot[qpn];
	struct qhca_sched *s = &hca->sched;
	uint32_t pos = slot->heap_pos, last;

	if (!pos)
		return;
	slot->heap_pos = 0;
	last = s->heap[s->heap_len--];
	if (last == qpn)
		return;
	place(hca, pos, last);
	sift_up(hca, pos);
	sift_down(hca, hca->qps.slot[last].heap_pos);
}

void qhca_sched_forget(struct qhca_hca *hca, uint32_t qpn)
{
	qhca_sched_timer_stop(hca, qpn);
	qhca_linger_forget(hca, qpn);
	hca->qps.slot[qpn].work &= QHCA_WORK_QUEUED;
}

uint64_t qhca_sched_deadline(const struct qhca_hca *hca)
{
	uint64_t next;

	/* a full link stops timers too: qhca_tx_ready() will come */
	if (hca->wire.tx_blocked)
		return QHCA_NEVER;
	next = hca->linger.first_due;
	if (hca->sched.heap_len && due(hca, 1) < next)
		next = due(hca, 1);
	/* nor is anything served in a stall */
	return qhca_stalled(hca) && next < hca->cost.until ? hca->cost.until :
							     next;
}

/* ---- doorbells */

void qhca_sched_doorbell(struct qhca_hca *hca, uint32_t page, uint32_t qpn,
			 uint32_t pi)
{
	struct qhca_qpslot *slot;

	if (qpn >= hca->qps.num_slots)
		goto ignore;
	slot = &hca->qps.slot[qpn];
	if (!slot->live || slot->db_page != page ||
	    slot->state <= QHCA_QPS_RTR ||
	    (!slot->has_sq && slot->state != QHCA_QPS_ERR))
		goto ignore;
	qhca_count(hca, QHCA_CNT_sq_doorbells);
	slot->db_pi = pi;
	qhca_sched_work(hca, qpn, QHCA_WORK_DOORBELL);
	return;
ignore:
	qhca_count(hca, QHCA_CNT_doorbells_ignored);
	qhca_trace(hca, QHCA_TRACE_DOORBELL_IGNORED, page, QHCA_DB_SQ,
		   (uint64_t)pi << 32 | qpn, 0);
}

/* The value of a doorbell reaches the QP. */
static void take_doorbell(struct qhca_hca *hca, struct qhca_qp *qp,
			  uint32_t pi)
{
	uint32_t old = qp->sq_pi;

	if ((int32_t)(pi - old) <= 0)
		return;		/* late: the record told us */
	if (pi - qp->sq_ci > qp->sq_depth) {
		qhca_qp_error_event(hca, qp, QHCA_EVENT_QP_FATAL);
		return;
	}
	qp->sq_pi = pi;
	qhca_qp_dirty(hca, qp);
	qhca_linger_posted(hca, qp, old);
}

/* ---- a turn */

static void serve_flush(struct qhca_hca *hca, struct qhca_qp *qp,
			unsigned int budget, unsigned int *spent)
{
	bool more;

	*spent += qhca_qp_flush(hca, qp, budget, &more);
	if (more)
		qhca_sched_work(hca, qp->qpn, QHCA_WORK_FLUSH);
}

/*
 * The send queue has nothing (more) to send: linger, or say so in the record
 * and look once more (Documentation/hardware.rst, Doorbell suppression).
 * true: there are new posts.
 */
static bool turn_away(struct qhca_hca *hca, struct qhca_qp *qp)
{
	if (!(qp->s_flags & QHCA_SF_ACTIVE))
		return false;
	/* what was posted meanwhile is cheapest found before */
	if (qhca_qp_refetch_sq(hca, qp))
		return true;
	if (qhca_linger_stay(hca, qp))
		return false;
	qhca_qp_set_active(hca, qp, false);
	return qhca_qp_refetch_sq(hca, qp);
}

static enum qhca_send_stop send_some(struct qhca_hca *hca, struct qhca_qp *qp,
				     unsigned int budget, unsigned int *spent)
{
	if (qp->state == QHCA_QPS_RTS && qp->sq_cur != qp->sq_pi)
		qhca_qp_set_active(hca, qp, true);
	return qhca_requester_run(hca, qp, budget, spent);
}

static void serve_send(struct qhca_hca *hca, struct qhca_qp *qp,
		       unsigned int budget, unsigned int *spent)
{
	unsigned int limit = *spent + budget;
	enum qhca_send_stop stop = QHCA_SEND_BUDGET;

	while (qhca_requester_may_run(qp) && *spent < limit) {
		stop = send_some(hca, qp, limit - *spent, spent);
		if (stop != QHCA_SEND_IDLE || !turn_away(hca, qp))
			break;
		stop = QHCA_SEND_BUDGET;
	}
	if (qhca_requester_may_run(qp) &&
	    (stop == QHCA_SEND_BLOCKED || stop == QHCA_SEND_BUDGET))
		qhca_sched_work(hca, qp->qpn, QHCA_WORK_SEND);
}

static unsigned int serve(struct qhca_hca *hca, uint32_t qpn,
			  unsigned int budget)
{
	struct qhca_qpslot *slot = &hca->qps.slot[qpn];
	uint8_t work = slot->work;
	unsigned int spent = 0;
	struct qhca_qp *qp;

	slot->work = 0;
	qp = slot->live ? qhca_qp_get(hca, qpn) : NULL;
	if (!qp)
		return 1;	/* it has gone, and a turn has passed */
	if (work & QHCA_WORK_DOORBELL)
		take_doorbell(hca, qp, slot->db_pi);
	if (work & QHCA_WORK_LOOK)
		qhca_qp_refetch_sq(hca, qp);
	if (work & QHCA_WORK_TIMER)
		qhca_requester_timer(hca, qp);
	if (qp->r_flags & (QHCA_RF_ACK | QHCA_RF_NAK | QHCA_RF_UNSOLICITED) ||
	    qp->res_pending)
		/* half a turn, lest a stream of READs starve our own sends */
		if (!qhca_reply_run(hca, qp, (budget + 1) / 2, &spent))
			qhca_sched_work(hca, qpn, QHCA_WORK_RESPOND);
	if (qp->state == QHCA_QPS_ERR || qp->state == QHCA_QPS_SQE) {
		if (work & (QHCA_WORK_FLUSH | QHCA_WORK_DOORBELL) ||
		    slot->work & QHCA_WORK_FLUSH) {
			slot->work &= ~QHCA_WORK_FLUSH;
			serve_flush(hca, qp, budget, &spent);
		}
	} else if (spent < budget) {
		serve_send(hca, qp, budget - spent, &spent);
	} else {
		qhca_sched_work(hca, qpn, QHCA_WORK_SEND);
	}
	/* a turn that did nothing visible still took time */
	return spent ? spent : 1;
}

/* As many of those that are due as there can be turns in a round. */
static void run_timers(struct qhca_hca *hca, unsigned int budget)
{
	struct qhca_sched *s = &hca->sched;

	for (; budget && s->heap_len && due(hca, 1) <= hca->now; budget--) {
		uint32_t qpn = s->heap[1];

		qhca_sched_timer_stop(hca, qpn);
		qhca_sched_work(hca, qpn, QHCA_WORK_TIMER);
	}
}

bool qhca_sched_pending(const struct qhca_hca *hca)
{
	const struct qhca_sched *s = &hca->sched;

	return (s->first || (s->heap_len && due(hca, 1) <= hca->now)) &&
	       !hca->wire.tx_blocked && !qhca_stalled(hca);
}

unsigned int qhca_sched_run(struct qhca_hca *hca, unsigned int budget)
{
	struct qhca_sched *s = &hca->sched;
	unsigned int spent = 0;

	if (hca->wire.tx_blocked) {
		s->was_blocked = true;
		return 0;
	}
	if (s->was_blocked) {
		s->was_blocked = false;
		s->unblocked = hca->now;
	}
	if (qhca_stalled(hca))
		return 0;
	run_timers(hca, budget);
	qhca_linger_run(hca);
	while (spent < budget && s->first && !hca->wire.tx_blocked &&
	       !qhca_stalled(hca) && !qhca_is_dead(hca)) {
		unsigned int left = budget - spent;

		spent += serve(hca, pop(hca), left < QHCA_SCHED_QUANTUM ?
			       left : QHCA_SCHED_QUANTUM);
	}
	return spent;
}
