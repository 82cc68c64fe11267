// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a QP does when it is its turn.
 */
#include "transport/serve.h"

#include "transport/transport.h"

uint64_t qhca_sched_deadline(const struct qhca_hca *hca)
{
	uint64_t next;

	/* a full link stops timers too: qhca_tx_ready() will come */
	if (hca->wire.tx_blocked)
		return QHCA_NEVER;
	next = hca->linger.first_due;
	if (hca->sched.heap_len && qhca_sched_due(hca, 1) < next)
		next = qhca_sched_due(hca, 1);
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

bool qhca_sched_pending(const struct qhca_hca *hca)
{
	const struct qhca_sched *s = &hca->sched;

	return (s->first || (s->heap_len && qhca_sched_due(hca, 1) <= hca->now)) &&
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
	qhca_sched_expire(hca, budget);
	qhca_linger_run(hca);
	while (spent < budget && s->first && !hca->wire.tx_blocked &&
	       !qhca_stalled(hca) && !qhca_is_dead(hca)) {
		unsigned int left = budget - spent;

		spent += serve(hca, qhca_sched_pop(hca), left < QHCA_SCHED_QUANTUM ?
			       left : QHCA_SCHED_QUANTUM);
	}
	return spent;
}
