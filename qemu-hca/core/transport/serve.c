// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a QP does when it is its turn.
 */
#include "transport/serve.h"

#include "transport/transport.h"

uint64_t hca_sched_deadline(const struct qhca_hca *hca)
{
	uint64_t next;

	/* a full link stops timers too: qhca_tx_ready() will come */
	if (hca->wire.tx_blocked)
		return QHCA_NEVER;
	next = hca->linger.first_due;
	if (hca->sched.heap_len && hca_sched_due(hca, 1) < next)
		next = hca_sched_due(hca, 1);
	/* nor is anything served in a stall */
	return hca_stalled(hca) && next < hca->cost.until ? hca->cost.until :
							    next;
}

/* ---- doorbells */

void hca_sched_doorbell(struct qhca_hca *hca, uint32_t page, uint32_t qpn,
			uint32_t pi)
{
	struct hca_qpslot *slot;

	if (qpn >= hca->qps.num_slots)
		goto ignore;
	slot = &hca->qps.slot[qpn];
	if (!slot->live || slot->db_page != page ||
	    slot->state <= QHCA_QPS_RTR ||
	    (!slot->has_sq && slot->state != QHCA_QPS_ERR))
		goto ignore;
	hca_count(hca, QHCA_CNT_sq_doorbells);
	slot->db_pi = pi;
	hca_sched_work(hca, qpn, HCA_WORK_DOORBELL);
	return;
ignore:
	hca_count(hca, QHCA_CNT_doorbells_ignored);
	hca_trace(hca, QHCA_TRACE_DOORBELL_IGNORED, page, QHCA_DB_SQ,
		  (uint64_t)pi << 32 | qpn, 0);
}

/* The value of a doorbell reaches the QP. */
static void take_doorbell(struct qhca_hca *hca, struct hca_qp *qp,
			  uint32_t pi)
{
	uint32_t old = qp->sq_pi;

	if ((int32_t)(pi - old) <= 0)
		return;		/* late: the record told us */
	if (pi - qp->sq_ci > qp->sq_depth) {
		hca_qp_error_event(hca, qp, QHCA_EVENT_QP_FATAL);
		return;
	}
	qp->sq_pi = pi;
	hca_qp_dirty(hca, qp);
	hca_linger_posted(hca, qp, old);
}

/* ---- a turn */

static void serve_flush(struct qhca_hca *hca, struct hca_qp *qp,
			unsigned int budget, unsigned int *spent)
{
	bool more;

	*spent += hca_qp_flush(hca, qp, budget, &more);
	if (more)
		hca_sched_work(hca, qp->qpn, HCA_WORK_FLUSH);
}

/*
 * The send queue has nothing (more) to send: linger, or say so in the record
 * and look once more (Documentation/hardware.rst, Doorbell suppression).
 * true: there are new posts.
 */
static bool turn_away(struct qhca_hca *hca, struct hca_qp *qp)
{
	if (!(qp->s_flags & HCA_SF_ACTIVE))
		return false;
	/* what was posted meanwhile is cheapest found before */
	if (hca_qp_refetch_sq(hca, qp))
		return true;
	if (hca_linger_stay(hca, qp))
		return false;
	hca_qp_set_active(hca, qp, false);
	return hca_qp_refetch_sq(hca, qp);
}

static enum hca_send_stop send_some(struct qhca_hca *hca, struct hca_qp *qp,
				    unsigned int budget, unsigned int *spent)
{
	if (qp->state == QHCA_QPS_RTS && qp->sq_cur != qp->sq_pi)
		hca_qp_set_active(hca, qp, true);
	return hca_requester_run(hca, qp, budget, spent);
}

static void serve_send(struct qhca_hca *hca, struct hca_qp *qp,
		       unsigned int budget, unsigned int *spent)
{
	unsigned int limit = *spent + budget;
	enum hca_send_stop stop = HCA_SEND_BUDGET;

	while (hca_requester_may_run(qp) && *spent < limit) {
		stop = send_some(hca, qp, limit - *spent, spent);
		if (stop != HCA_SEND_IDLE || !turn_away(hca, qp))
			break;
		stop = HCA_SEND_BUDGET;
	}
	if (hca_requester_may_run(qp) &&
	    (stop == HCA_SEND_BLOCKED || stop == HCA_SEND_BUDGET))
		hca_sched_work(hca, qp->qpn, HCA_WORK_SEND);
}

static unsigned int serve(struct qhca_hca *hca, uint32_t qpn,
			  unsigned int budget)
{
	struct hca_qpslot *slot = &hca->qps.slot[qpn];
	uint8_t work = slot->work;
	unsigned int spent = 0;
	struct hca_qp *qp;

	slot->work = 0;
	qp = slot->live ? hca_qp_get(hca, qpn) : NULL;
	if (!qp)
		return 1;	/* it has gone, and a turn has passed */
	if (work & HCA_WORK_DOORBELL)
		take_doorbell(hca, qp, slot->db_pi);
	if (work & HCA_WORK_LOOK)
		hca_qp_refetch_sq(hca, qp);
	if (work & HCA_WORK_TIMER)
		hca_requester_timer(hca, qp);
	if (qp->r_flags & (HCA_RF_ACK | HCA_RF_NAK | HCA_RF_UNSOLICITED) ||
	    qp->res_pending)
		/* half a turn, lest a stream of READs starve our own sends */
		if (!hca_reply_run(hca, qp, (budget + 1) / 2, &spent))
			hca_sched_work(hca, qpn, HCA_WORK_RESPOND);
	if (qp->state == QHCA_QPS_ERR || qp->state == QHCA_QPS_SQE) {
		if (work & (HCA_WORK_FLUSH | HCA_WORK_DOORBELL) ||
		    slot->work & HCA_WORK_FLUSH) {
			slot->work &= ~HCA_WORK_FLUSH;
			serve_flush(hca, qp, budget, &spent);
		}
	} else if (spent < budget) {
		serve_send(hca, qp, budget - spent, &spent);
	} else {
		hca_sched_work(hca, qpn, HCA_WORK_SEND);
	}
	/* a turn that did nothing visible still took time */
	return spent ? spent : 1;
}

bool hca_sched_pending(const struct qhca_hca *hca)
{
	const struct hca_sched *s = &hca->sched;

	return (s->first || (s->heap_len && hca_sched_due(hca, 1) <= hca->now)) &&
	       !hca->wire.tx_blocked && !hca_stalled(hca);
}

unsigned int hca_sched_run(struct qhca_hca *hca, unsigned int budget)
{
	struct hca_sched *s = &hca->sched;
	unsigned int spent = 0;

	if (hca->wire.tx_blocked) {
		s->was_blocked = true;
		return 0;
	}
	if (s->was_blocked) {
		s->was_blocked = false;
		s->unblocked = hca->now;
	}
	if (hca_stalled(hca))
		return 0;
	hca_sched_expire(hca, budget);
	hca_linger_run(hca);
	while (spent < budget && s->first && !hca->wire.tx_blocked &&
	       !hca_stalled(hca) && !hca_is_dead(hca)) {
		unsigned int left = budget - spent;

		spent += serve(hca, hca_sched_pop(hca), left < HCA_SCHED_QUANTUM ?
			       left : HCA_SCHED_QUANTUM);
	}
	return spent;
}
