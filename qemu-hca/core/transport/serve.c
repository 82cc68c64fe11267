// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a QP does when it is its turn.
 */
#include "transport/serve.h"

#include "transport/transport.h"

uint64_t hca_sched_deadline(const struct hca *hca)
{
	uint64_t next, rates;

	/* While the link is full no timer counts; the host will call qhca_tx_ready(). */
	if (hca->wire.tx_blocked)
		return QHCA_NEVER;
	next = hca->linger.first_due;
	if (hca->sched.heap_len && hca_sched_due(hca, 1) < next)
		next = hca_sched_due(hca, 1);
	/* During a stall the device serves no QP either. */
	if (hca_stalled(hca) && next < hca->cost.until)
		next = hca->cost.until;
	/* Ethernet frames wait for rates as well, and for no stall. */
	rates = hca->rates.held ? hca_rates_deadline(hca) : QHCA_NEVER;
	return next < rates ? next : rates;
}

/* ---- doorbells */

void hca_sched_doorbell(struct hca_fn *fn, uint32_t page, uint32_t qpn,
			uint32_t pi)
{
	struct hca_qpslot *slot;

	if (qpn >= fn->qps.num_slots)
		goto ignore;
	slot = &fn->qps.slot[qpn];
	if (!slot->live || slot->db_page != page ||
	    slot->state <= QHCA_QPS_RTR ||
	    (!slot->has_sq && slot->state != QHCA_QPS_ERR))
		goto ignore;
	hca_count(fn, QHCA_CNT_sq_doorbells);
	slot->db_pi = pi;
	hca_sched_work(fn, qpn, HCA_WORK_DOORBELL);
	return;
ignore:
	hca_count(fn, QHCA_CNT_doorbells_ignored);
	hca_trace(fn, QHCA_TRACE_DOORBELL_IGNORED, page, QHCA_DB_SQ,
		  (uint64_t)pi << 32 | qpn, 0);
}

/* Take the producer index of a doorbell over into the context. */
static void take_doorbell(struct hca_fn *fn, struct hca_qp *qp,
			  uint32_t pi)
{
	uint32_t old = qp->sq_pi;

	if ((int32_t)(pi - old) <= 0)
		return;		/* the device has read it in the record before */
	if (pi - qp->sq_ci > qp->sq_depth) {
		hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
		return;
	}
	qp->sq_pi = pi;
	hca_qp_dirty(fn, qp);
	hca_linger_posted(fn, qp, old);
}

/* ---- a turn */

static void serve_flush(struct hca_fn *fn, struct hca_qp *qp,
			unsigned int budget, unsigned int *spent)
{
	bool more;

	*spent += hca_qp_flush(fn, qp, budget, &more);
	if (more)
		hca_sched_work(fn, qp->qpn, HCA_WORK_FLUSH);
}

/*
 * The send queue is empty: linger, or end doorbell suppression by clearing
 * sq_active and reading sq_pi once more (Documentation/hardware.rst, Doorbell
 * suppression).  true: software has posted new requests.
 */
static bool end_suppression(struct hca_fn *fn, struct hca_qp *qp)
{
	/* Elsewhere the device takes no posts; a context in memory may claim it does. */
	if (!(qp->s_flags & HCA_SF_ACTIVE) || qp->state != QHCA_QPS_RTS)
		return false;
	/* The device finds posts at the lowest cost before it writes sq_active. */
	if (hca_qp_refetch_sq(fn, qp))
		return true;
	if (hca_linger_stay(fn, qp))
		return false;
	hca_qp_set_active(fn, qp, false);
	return hca_qp_refetch_sq(fn, qp);
}

/*
 * Is there more to send than one request, or will the device linger after that
 * one?  Then software need not ring from now on.  Otherwise sq_active stays zero:
 * the device has nothing to clear when it has sent the request, and software rings
 * if it posts meanwhile.
 */
static bool has_more(struct hca_fn *fn, const struct hca_qp *qp)
{
	return qp->sq_pi - qp->sq_cur > 1 || hca_linger_likely(fn, qp);
}

static enum hca_send_stop send_some(struct hca_fn *fn, struct hca_qp *qp,
				    unsigned int budget, unsigned int *spent)
{
	enum hca_send_stop stop;

	if (qp->state == QHCA_QPS_RTS && qp->sq_cur != qp->sq_pi &&
	    has_more(fn, qp))
		hca_qp_set_active(fn, qp, true);
	stop = hca_requester_run(fn, qp, budget, spent);
	/* Some requests wait, so the device will come back without a doorbell. */
	if (qp->state == QHCA_QPS_RTS && qp->sq_cur != qp->sq_pi &&
	    stop != HCA_SEND_IDLE)
		hca_qp_set_active(fn, qp, true);
	return stop;
}

static void serve_send(struct hca_fn *fn, struct hca_qp *qp,
		       unsigned int budget, unsigned int *spent)
{
	unsigned int limit = *spent + budget;
	enum hca_send_stop stop = HCA_SEND_BUDGET;

	while (hca_requester_may_run(qp) && *spent < limit) {
		stop = send_some(fn, qp, limit - *spent, spent);
		if (stop != HCA_SEND_IDLE || !end_suppression(fn, qp))
			break;
		stop = HCA_SEND_BUDGET;
	}
	if (!hca_requester_may_run(qp))
		return;
	if (stop == HCA_SEND_BLOCKED || stop == HCA_SEND_BUDGET)
		hca_sched_work(fn, qp->qpn, HCA_WORK_SEND);
	else if (stop == HCA_SEND_RATE)
		hca_sched_wait(fn, qp->qpn);
}

static void serve_reply(struct hca_fn *fn, struct hca_qp *qp,
			unsigned int budget, unsigned int *spent)
{
	switch (hca_reply_run(fn, qp, budget, spent)) {
	case HCA_REPLY_MORE:
		hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
		break;
	case HCA_REPLY_RATE:
		hca_sched_wait(fn, qp->qpn);
		break;
	case HCA_REPLY_DONE:
		break;
	}
}

static unsigned int serve(struct hca_fn *fn, uint32_t qpn,
			  unsigned int budget)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];
	uint8_t work = slot->work;
	unsigned int half = (budget + 1) / 2, spent = 0, left;
	struct hca_qp *qp;

	slot->work &= HCA_WORK_PLACES;
	qp = slot->live ? hca_qp_get(fn, qpn) : NULL;
	if (!qp)
		return 1;	/* the QP no longer exists; the turn counts */
	if (work & HCA_WORK_DOORBELL)
		take_doorbell(fn, qp, slot->db_pi);
	if (work & HCA_WORK_REFETCH)
		hca_qp_refetch_sq(fn, qp);
	if (work & HCA_WORK_TIMER)
		hca_requester_timer(fn, qp);
	if (hca_reply_owed(qp))
		serve_reply(fn, qp, half, &spent);
	/* Bundles of answers may have taken all of the turn, and do not starve the send queue. */
	left = spent + half < budget ? budget - spent : half;
	if (qp->state == QHCA_QPS_ERR || qp->state == QHCA_QPS_SQE) {
		if (work & (HCA_WORK_FLUSH | HCA_WORK_DOORBELL) ||
		    slot->work & HCA_WORK_FLUSH) {
			slot->work &= ~HCA_WORK_FLUSH;
			serve_flush(fn, qp, budget, &spent);
		}
	} else {
		serve_send(fn, qp, left, &spent);
	}
	hca_qp_check(qp);
	/* A turn without packets took time as well. */
	return spent ? spent : 1;
}

bool hca_sched_pending(const struct hca *hca)
{
	const struct hca_sched *s = &hca->sched;

	return (hca_sched_queued(hca) ||
		(s->heap_len && hca_sched_due(hca, 1) <= hca->now)) &&
	       !hca->wire.tx_blocked && !hca_stalled(hca);
}

unsigned int hca_sched_run(struct hca *hca, unsigned int budget)
{
	struct hca_sched *s = &hca->sched;
	struct hca_turn turn;
	unsigned int spent = 0;

	if (hca->wire.tx_blocked) {
		s->was_blocked = true;
		return 0;
	}
	if (s->was_blocked) {
		s->was_blocked = false;
		s->unblocked = hca->now;
	}
	hca_sched_release(hca);
	if (hca_stalled(hca))
		return 0;
	hca_sched_expire(hca, budget);
	hca_linger_run(hca);
	while (spent < budget && !hca->wire.tx_blocked && !hca_stalled(hca) &&
	       hca_sched_next(hca, &turn)) {
		unsigned int left = budget - spent, did = 1;

		/* A QP of a dead function leaves the list unserved. */
		hca->wire.copies = 0;
		if (!hca_is_dead(turn.fn))
			did = serve(turn.fn, turn.qpn, left < turn.quantum ?
				    left : turn.quantum);
		did += hca->wire.copies;
		hca_sched_end(&turn, did);
		spent += did;
	}
	return spent;
}
