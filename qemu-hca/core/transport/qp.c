/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What every part of the transport does with a QP: its state, its record in
 * software's memory, completions, receive WQEs.
 */
#include "queue/threshold.h"
#include "transport/transport.h"

#include <stdatomic.h>

#define REC_ACTIVE	offsetof(struct qhca_qp_record, sq_active)

/* ---- state */

void hca_qp_set_state(struct hca_fn *fn, struct hca_qp *qp,
		      enum qhca_qp_state state)
{
	hca_trace(fn, QHCA_TRACE_QP_STATE, qp->qpn, qp->state, state, 0);
	qp->state = state;
	fn->qps.slot[qp->qpn].state = state;
	hca_qp_dirty(fn, qp);
}

void hca_qp_error(struct hca_fn *fn, struct hca_qp *qp)
{
	if (qp->state == QHCA_QPS_ERR)
		return;
	hca_sched_timer_stop(fn, qp->qpn);
	qp->s_flags &= ~HCA_SF_DRAINING;
	qp->r_flags &= ~(HCA_RF_ACK | HCA_RF_UNSOLICITED);
	hca_qp_enter(fn, qp, QHCA_PART_REQUESTER, HCA_REQ_READY);
	hca_qp_enter(fn, qp, QHCA_PART_RESPONDER, HCA_RESP_STOPPED);
	hca_fault_forget(fn, qp);
	hca_resource_settle_all(qp);
	hca_qp_set_state(fn, qp, QHCA_QPS_ERR);
	/* The device clears sq_active before the flush reads sq_pi: later posts ring. */
	hca_qp_set_active(fn, qp, false);
	hca_sched_work(fn, qp->qpn, HCA_WORK_FLUSH);
}

void hca_qp_error_event(struct hca_fn *fn, struct hca_qp *qp,
			enum qhca_event event)
{
	if (qp->state == QHCA_QPS_ERR)
		return;
	hca_event(fn, event, qp->qpn, 0);
	hca_qp_error(fn, qp);
}

/* ---- the record */

void hca_qp_set_active(struct hca_fn *fn, struct hca_qp *qp, bool on)
{
	if (!(qp->flags & QHCA_QP_HAS_SQ) || on == !!(qp->s_flags & HCA_SF_ACTIVE))
		return;
	if (on)
		qp->s_flags |= HCA_SF_ACTIVE;
	else
		qp->s_flags &= ~HCA_SF_ACTIVE;
	hca_qp_dirty(fn, qp);
	hca_count(fn, QHCA_CNT_sq_active_writes);
	/* If the write fails, the next refetch fails as well, and reports it. */
	hca_qbuf_write32(fn, &qp->buf, qp->rec_offset + REC_ACTIVE, on);
	if (!on)
		atomic_thread_fence(memory_order_seq_cst);
}

/* Is @pi ahead of @old with at most @depth entries since @ci? */
static bool pi_moved(uint32_t pi, uint32_t old, uint32_t ci, uint32_t depth)
{
	return pi != old && pi - ci <= depth && pi - old <= depth;
}

static bool take_sq_pi(struct hca_fn *fn, struct hca_qp *qp, uint32_t pi)
{
	uint32_t old = qp->sq_pi;

	/* The device ignores the send queue before RTS. */
	if (qp->state <= QHCA_QPS_RTR ||
	    !pi_moved(pi, old, qp->sq_ci, qp->sq_depth))
		return false;
	qp->sq_pi = pi;
	hca_qp_dirty(fn, qp);
	hca_count_n(fn, QHCA_CNT_sq_wqes_found, pi - old);
	hca_linger_posted(fn, qp, old);
	return true;
}

static bool take_rq_pi(struct hca_fn *fn, struct hca_qp *qp, uint32_t pi)
{
	if (!pi_moved(pi, qp->rq_pi, qp->rq_ci, qp->rq_depth))
		return false;
	qp->rq_pi = pi;
	hca_qp_dirty(fn, qp);
	return true;
}

/* Read the software half of the record.  false: the record is unreachable. */
static bool read_record(struct hca_fn *fn, struct hca_qp *qp,
			enum qhca_counter kind, struct hca_software_half *half)
{
	hca_count(fn, QHCA_CNT_refetches);
	hca_count(fn, kind);
	if (!hca_qbuf_read_half(fn, &qp->buf, qp->rec_offset, half))
		return true;
	hca_count(fn, QHCA_CNT_refetches_unchanged);
	hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
	return false;
}

bool hca_qp_refetch_sq(struct hca_fn *fn, struct hca_qp *qp)
{
	struct hca_software_half half;		/* sq_pi, rq_pi */

	if (!qp->sq_depth ||
	    !read_record(fn, qp, QHCA_CNT_sq_refetches, &half))
		return false;
	take_rq_pi(fn, qp, half.second);
	if (take_sq_pi(fn, qp, half.first))
		return true;
	hca_count(fn, QHCA_CNT_refetches_unchanged);
	return false;
}

bool hca_qp_refetch_rq(struct hca_fn *fn, struct hca_qp *qp)
{
	struct hca_software_half half;

	if (!qp->rq_depth ||
	    !read_record(fn, qp, QHCA_CNT_rq_refetches, &half))
		return false;
	if (take_sq_pi(fn, qp, half.first))
		hca_sched_work(fn, qp->qpn, HCA_WORK_SEND);
	if (take_rq_pi(fn, qp, half.second))
		return true;
	hca_count(fn, QHCA_CNT_refetches_unchanged);
	return false;
}

/* ---- completions */

/* false: the CQ does not exist, or is in error. */
static bool post(struct hca_fn *fn, struct hca_qp *qp, uint32_t cqn,
		 uint64_t handle, struct qhca_cqe *cqe)
{
	put_le32(&cqe->qpn, qp->qpn);
	put_le64(&cqe->handle, handle);
	return hca_cq_post(fn, cqn, cqe);
}

void hca_complete_send(struct hca_fn *fn, struct hca_qp *qp,
		       const struct hca_send_wc *wc)
{
	struct qhca_cqe cqe = { .status = wc->status, .opcode = wc->opcode };

	put_le64(&cqe.wr_id, wc->wr_id);
	put_le32(&cqe.byte_len, wc->byte_len);
	put_le32(&cqe.wqe, wc->wqe);
	put_le32(&cqe.syndrome, wc->syndrome);
	put_le16(&cqe.vlan, HCA_VLAN_NONE);
	put_le32(&cqe.flags, QHCA_CQE_REQUESTER);
	if (!post(fn, qp, qp->send_cqn, qp->handle, &cqe))
		hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
	hca_linger_completed(fn, qp, wc->wqe);
}

bool hca_complete_recv(struct hca_fn *fn, struct hca_qp *qp,
		       struct qhca_cqe *cqe)
{
	struct hca_xsrq to = { .cqn = qp->recv_cqn, .handle = qp->handle };
	uint32_t flags = get_le32(&cqe->flags);

	put_le64(&cqe->wr_id, qp->rwqe.wr_id);
	put_le32(&cqe->wqe, qp->r_slot);
	qp->r_flags &= ~HCA_RF_RWQE;
	qp->rwqe.valid = false;
	hca_qp_dirty(fn, qp);
	if (hca_qp_uses_srq(qp))
		flags |= QHCA_CQE_SRQ;
	if (qp->type == QHCA_QPT_XRC_TGT) {
		if (!hca_srq_xrc_again(fn, qp->r_srq, qp->xrcd, &to))
			return true;
		flags |= QHCA_CQE_XRC;
	}
	put_le32(&cqe->flags, flags);
	return post(fn, qp, to.cqn, to.handle, cqe);
}

/* ---- receive queue */

static enum hca_take take_rq(struct hca_fn *fn, struct hca_qp *qp)
{
	bool flushing = qp->state == QHCA_QPS_ERR;
	uint32_t left = qp->rq_pi - qp->rq_ci;

	if (!qp->rq_depth)
		return HCA_TAKE_EMPTY;
	if (!left)
		hca_count(fn, QHCA_CNT_refetches_before_rnr);
	if (hca_threshold_low(left, qp->rq_threshold)) {
		hca_qp_refetch_rq(fn, qp);
		if (qp->state == QHCA_QPS_ERR && !flushing)
			return HCA_TAKE_ERROR;	/* the refetch failed */
	}
	if (qp->rq_pi == qp->rq_ci)
		return HCA_TAKE_EMPTY;
	if (hca_rwqe_fetch(fn, qp, qp->rq_ci, &qp->rwqe))
		return HCA_TAKE_ERROR;
	qp->r_slot = qp->rq_ci++;
	return HCA_TAKE_OK;
}

/* After an eviction the device reads the entry in progress again. */
static enum hca_take reread(struct hca_fn *fn, struct hca_qp *qp)
{
	struct hca_xsrq x;

	if (qp->rwqe.valid && qp->rwqe.num == qp->r_slot)
		return HCA_TAKE_OK;
	if (qp->type == QHCA_QPT_XRC_TGT) {
		if (!hca_srq_xrc_again(fn, qp->r_srq, qp->xrcd, &x))
			return HCA_TAKE_ERROR;
		return hca_srq_reread(fn, x.srqn, qp->r_slot, &qp->rwqe);
	}
	if (qp->flags & QHCA_QP_SRQ)
		return hca_srq_reread(fn, qp->srqn, qp->r_slot, &qp->rwqe);
	if (!qp->rq_depth || hca_rwqe_fetch(fn, qp, qp->r_slot, &qp->rwqe))
		return HCA_TAKE_ERROR;
	return HCA_TAKE_OK;
}

enum hca_take hca_take_rwqe(struct hca_fn *fn, struct hca_qp *qp)
{
	struct hca_xsrq x = { .srqn = qp->srqn };
	enum hca_take take;

	if (qp->r_flags & HCA_RF_RWQE)
		return reread(fn, qp);
	if (hca_qp_uses_srq(qp)) {
		if (qp->type == QHCA_QPT_XRC_TGT &&
		    !hca_srq_xrc_again(fn, qp->r_srq, qp->xrcd, &x))
			return HCA_TAKE_ERROR;
		take = hca_srq_take(fn, x.srqn, &qp->rwqe);
		if (take == HCA_TAKE_OK)
			qp->r_slot = qp->rwqe.num;
	} else {
		take = take_rq(fn, qp);
	}
	if (take == HCA_TAKE_OK) {
		qp->r_flags |= HCA_RF_RWQE;
		hca_qp_dirty(fn, qp);
	}
	return take;
}
