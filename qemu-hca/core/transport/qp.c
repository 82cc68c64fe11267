/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What every part of the transport does with a QP: its state, its record in
 * software's memory, completions, receive WQEs.
 */
#include "transport/transport.h"

#include <stdatomic.h>

#define REC_SQ_PI	offsetof(struct qhca_qp_record, sq_pi)
#define REC_RQ_PI	offsetof(struct qhca_qp_record, rq_pi)
#define REC_ACTIVE	offsetof(struct qhca_qp_record, sq_active)

/* ---- state */

void qhca_qp_set_state(struct qhca_hca *hca, struct qhca_qp *qp,
		       enum qhca_qp_state state)
{
	qhca_trace(hca, QHCA_TRACE_QP_STATE, qp->qpn, qp->state, state, 0);
	qp->state = state;
	hca->qps.slot[qp->qpn].state = state;
	qhca_qp_dirty(hca, qp);
}

void qhca_qp_error(struct qhca_hca *hca, struct qhca_qp *qp)
{
	if (qp->state == QHCA_QPS_ERR)
		return;
	qhca_sched_timer_stop(hca, qp->qpn);
	qp->s_flags &= ~(QHCA_SF_RNR_WAIT | QHCA_SF_ACK_WAIT |
			 QHCA_SF_DRAINING);
	qp->r_flags &= ~(QHCA_RF_ACK | QHCA_RF_NAK | QHCA_RF_UNSOLICITED);
	qhca_fault_forget(hca, qp);
	for (unsigned int i = 0; i < QHCA_MAX_RD_ATOMIC; i++)
		qp->res[i].flags = 0;
	qp->res_pending = 0;
	qhca_qp_set_state(hca, qp, QHCA_QPS_ERR);
	/* before the flush looks at sq_pi: later posts ring */
	qhca_qp_set_active(hca, qp, false);
	qhca_sched_work(hca, qp->qpn, QHCA_WORK_FLUSH);
}

void qhca_qp_error_event(struct qhca_hca *hca, struct qhca_qp *qp,
			 enum qhca_event event)
{
	if (qp->state == QHCA_QPS_ERR)
		return;
	qhca_event(hca, event, qp->qpn, 0);
	qhca_qp_error(hca, qp);
}

/* ---- the record */

void qhca_qp_set_active(struct qhca_hca *hca, struct qhca_qp *qp, bool on)
{
	if (!(qp->flags & QHCA_QP_HAS_SQ) || on == !!(qp->s_flags & QHCA_SF_ACTIVE))
		return;
	if (on)
		qp->s_flags |= QHCA_SF_ACTIVE;
	else
		qp->s_flags &= ~QHCA_SF_ACTIVE;
	qhca_qp_dirty(hca, qp);
	/* a record that cannot be written cannot be read: found out there */
	qhca_qbuf_write32(hca, &qp->buf, qp->rec_offset + REC_ACTIVE, on);
	if (!on)
		atomic_thread_fence(memory_order_seq_cst);
}

/* Is @pi ahead of @old with at most @depth entries since @ci? */
static bool pi_moved(uint32_t pi, uint32_t old, uint32_t ci, uint32_t depth)
{
	return pi != old && pi - ci <= depth && pi - old <= depth;
}

static bool refetch(struct qhca_hca *hca, struct qhca_qp *qp, uint32_t field,
		    uint32_t *pi, uint32_t ci, uint32_t depth)
{
	uint32_t v;

	if (qhca_qbuf_read32(hca, &qp->buf, qp->rec_offset + field, &v)) {
		qhca_qp_error_event(hca, qp, QHCA_EVENT_QP_FATAL);
		return false;
	}
	if (!pi_moved(v, *pi, ci, depth))
		return false;
	*pi = v;
	qhca_qp_dirty(hca, qp);
	return true;
}

bool qhca_qp_refetch_sq(struct qhca_hca *hca, struct qhca_qp *qp)
{
	uint32_t old = qp->sq_pi;

	if (!qp->sq_depth || !refetch(hca, qp, REC_SQ_PI, &qp->sq_pi,
				      qp->sq_ci, qp->sq_depth))
		return false;
	qhca_count_n(hca, QHCA_CNT_sq_wqes_found, qp->sq_pi - old);
	qhca_linger_posted(hca, qp, old);
	return true;
}

bool qhca_qp_refetch_rq(struct qhca_hca *hca, struct qhca_qp *qp)
{
	bool moved;

	if (!qp->rq_depth)
		return false;
	qhca_count(hca, QHCA_CNT_refetches);
	qhca_count(hca, QHCA_CNT_rq_refetches);
	moved = refetch(hca, qp, REC_RQ_PI, &qp->rq_pi, qp->rq_ci,
			qp->rq_depth);
	if (!moved)
		qhca_count(hca, QHCA_CNT_refetches_unchanged);
	return moved;
}

/* ---- completions */

static void post(struct qhca_hca *hca, struct qhca_qp *qp, uint32_t cqn,
		 uint64_t handle, struct qhca_cqe *cqe)
{
	put_le32(&cqe->qpn, qp->qpn);
	put_le64(&cqe->handle, handle);
	if (!qhca_cq_post(hca, cqn, cqe))
		qhca_qp_error_event(hca, qp, QHCA_EVENT_QP_FATAL);
}

void qhca_complete_send(struct qhca_hca *hca, struct qhca_qp *qp,
			const struct qhca_send_wc *wc)
{
	struct qhca_cqe cqe = { .status = wc->status, .opcode = wc->opcode };

	put_le64(&cqe.wr_id, wc->wr_id);
	put_le32(&cqe.byte_len, wc->byte_len);
	put_le32(&cqe.wqe, wc->wqe);
	put_le32(&cqe.syndrome, wc->syndrome);
	put_le16(&cqe.vlan, QHCA_VLAN_NONE);
	put_le32(&cqe.flags, QHCA_CQE_REQUESTER);
	post(hca, qp, qp->send_cqn, qp->handle, &cqe);
	qhca_linger_told(hca, qp, wc->wqe);
}

void qhca_complete_recv(struct qhca_hca *hca, struct qhca_qp *qp,
			struct qhca_cqe *cqe)
{
	struct qhca_xsrq to = { .cqn = qp->recv_cqn, .handle = qp->handle };
	uint32_t flags = get_le32(&cqe->flags);

	put_le64(&cqe->wr_id, qp->rwqe.wr_id);
	put_le32(&cqe->wqe, qp->r_slot);
	qp->r_flags &= ~QHCA_RF_RWQE;
	qp->rwqe.valid = false;
	qhca_qp_dirty(hca, qp);
	if (qhca_qp_uses_srq(qp))
		flags |= QHCA_CQE_SRQ;
	if (qp->type == QHCA_QPT_XRC_TGT) {
		if (!qhca_srq_xrc_again(hca, qp->r_srq, qp->xrcd, &to))
			return;
		flags |= QHCA_CQE_XRC;
	}
	put_le32(&cqe->flags, flags);
	post(hca, qp, to.cqn, to.handle, cqe);
}

/* ---- receive queue */

static enum qhca_take take_rq(struct qhca_hca *hca, struct qhca_qp *qp)
{
	bool flushing = qp->state == QHCA_QPS_ERR;
	uint32_t left = qp->rq_pi - qp->rq_ci;

	if (!qp->rq_depth)
		return QHCA_TAKE_EMPTY;
	if (!left)
		qhca_count(hca, QHCA_CNT_refetches_before_rnr);
	if (!left || left < qp->rq_threshold) {
		qhca_qp_refetch_rq(hca, qp);
		if (qp->state == QHCA_QPS_ERR && !flushing)
			return QHCA_TAKE_ERROR;	/* by the refetch */
	}
	if (qp->rq_pi == qp->rq_ci)
		return QHCA_TAKE_EMPTY;
	if (qhca_rwqe_fetch(hca, qp, qp->rq_ci, &qp->rwqe))
		return QHCA_TAKE_ERROR;
	qp->r_slot = qp->rq_ci++;
	return QHCA_TAKE_OK;
}

/* After an eviction the entry in progress is read again. */
static enum qhca_take reread(struct qhca_hca *hca, struct qhca_qp *qp)
{
	struct qhca_xsrq x;

	if (qp->rwqe.valid && qp->rwqe.num == qp->r_slot)
		return QHCA_TAKE_OK;
	if (qp->type == QHCA_QPT_XRC_TGT) {
		if (!qhca_srq_xrc_again(hca, qp->r_srq, qp->xrcd, &x))
			return QHCA_TAKE_ERROR;
		return qhca_srq_reread(hca, x.srqn, qp->r_slot, &qp->rwqe);
	}
	if (qp->flags & QHCA_QP_SRQ)
		return qhca_srq_reread(hca, qp->srqn, qp->r_slot, &qp->rwqe);
	if (!qp->rq_depth || qhca_rwqe_fetch(hca, qp, qp->r_slot, &qp->rwqe))
		return QHCA_TAKE_ERROR;
	return QHCA_TAKE_OK;
}

enum qhca_take qhca_take_rwqe(struct qhca_hca *hca, struct qhca_qp *qp)
{
	struct qhca_xsrq x = { .srqn = qp->srqn };
	enum qhca_take take;

	if (qp->r_flags & QHCA_RF_RWQE)
		return reread(hca, qp);
	if (qhca_qp_uses_srq(qp)) {
		if (qp->type == QHCA_QPT_XRC_TGT &&
		    !qhca_srq_xrc_again(hca, qp->r_srq, qp->xrcd, &x))
			return QHCA_TAKE_ERROR;
		take = qhca_srq_take(hca, x.srqn, &qp->rwqe);
		if (take == QHCA_TAKE_OK)
			qp->r_slot = qp->rwqe.num;
	} else {
		take = take_rq(hca, qp);
	}
	if (take == QHCA_TAKE_OK) {
		qp->r_flags |= QHCA_RF_RWQE;
		qhca_qp_dirty(hca, qp);
	}
	return take;
}
