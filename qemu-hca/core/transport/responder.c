/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The order of the requests that an RC QP receives (IBTA 9.7.4): which PSN is
 * next, which packets are duplicates, and what the responder owes for them.  The
 * order of the checks is that of Documentation/hardware.rst, Responder.
 */
#include "transport/transport.h"

/* ---- NAKs */

static void owe_nak(struct hca_fn *fn, struct hca_qp *qp, uint8_t syndrome)
{
	if (qp->r_state != HCA_RESP_FATAL_NAK_DUE)
		hca_qp_enter(fn, qp, QHCA_PART_RESPONDER, HCA_RESP_NAK_DUE);
	qp->r_syndrome = syndrome;
	qp->r_nak_psn = qp->r_psn;
	hca_qp_dirty(fn, qp);
	hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
}

/*
 * Refuse a request.  After a fatal verdict the QP goes to ERR when the NAK, or the
 * ACK in its place, has been sent, behind everything that the responder owes before
 * it.
 */
static void refuse(struct hca_fn *fn, struct hca_qp *qp,
		   enum hca_verdict verdict)
{
	static const uint8_t syndrome[] = {
		[HCA_V_INVALID] = HCA_NAK_INVALID,
		[HCA_V_ACCESS] = HCA_NAK_ACCESS,
		[HCA_V_OPERATION] = HCA_NAK_OP,
		[HCA_V_SILENT] = HCA_AETH_ACK | HCA_AETH_NO_CREDITS,
	};

	if (verdict == HCA_V_RNR) {
		hca_qp_count(fn, qp, QHCA_CNT_tx_rnr_no_wqe);
		owe_nak(fn, qp, HCA_AETH_RNR | qp->sw.min_rnr_timer);
		return;
	}
	if (verdict == HCA_V_FAULT || verdict == HCA_V_FAULT_AGAIN) {
		hca_qp_count(fn, qp,
			     hca_fault_is_stage2(&qp->fault[HCA_FAULT_DIR_RESP]) ?
			     QHCA_CNT_tx_rnr_fault2 : QHCA_CNT_tx_rnr_fault1);
		if (qp->f_resp == HCA_RESPF_READ)
			hca_qp_enter(fn, qp, QHCA_PART_RESPONDER_FAULT,
				     HCA_RESPF_READ_NAKED);
		owe_nak(fn, qp, HCA_AETH_RNR |
			hca_fault_timer(fn, qp, verdict == HCA_V_FAULT_AGAIN));
		return;
	}
	hca_qp_enter(fn, qp, QHCA_PART_RESPONDER, HCA_RESP_FATAL_NAK_DUE);
	owe_nak(fn, qp, syndrome[verdict]);
	/* The last answer is an ACK of what came before the request. */
	if (verdict == HCA_V_SILENT)
		qp->r_nak_psn = hca_psn_add(qp->r_psn, HCA_PSN_MASK);
}

/* ---- page faults */

void hca_request_fault_failed(struct hca_fn *fn, struct hca_qp *qp,
			      enum qhca_fault_cause cause)
{
	bool rwqe = qp->r_flags & HCA_RF_RWQE;
	enum hca_verdict verdict = HCA_V_ACCESS;

	if (cause == QHCA_FAULT_RECV && !rwqe)
		return;
	if (cause == QHCA_FAULT_RECV || (cause == QHCA_FAULT_RDMA_W && rwqe))
		verdict = hca_request_recv_failed(fn, qp, cause);
	if (qp->state != QHCA_QPS_ERR)
		refuse(fn, qp, verdict);
}

/* ---- ACKs and duplicates */

/* The responder owes an ACK of @psn, which covers everything before it. */
static void owe_ack(struct hca_fn *fn, struct hca_qp *qp, uint32_t psn)
{
	if (!(qp->r_flags & HCA_RF_ACK) ||
	    hca_psn_before(qp->r_ack_psn, psn))
		qp->r_ack_psn = psn;
	qp->r_flags |= HCA_RF_ACK;
	qp->r_unacked = 0;
	hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
}

/*
 * The PSN with which the device acknowledges a duplicate SEND or WRITE: the last
 * one completed, but not beyond a READ, atomic, ... that followed the duplicate.
 * The peer that repeats this request will ask for that answer again, and an ACK
 * beyond it would report to the peer that the answer was lost.
 */
static uint32_t duplicate_ack_psn(const struct hca_qp *qp, uint32_t psn)
{
	uint32_t ack = hca_psn_add(qp->r_psn, HCA_PSN_MASK);

	for (unsigned int i = 0; i < HCA_MAX_RD_ATOMIC; i++) {
		const struct hca_resource *r = &qp->res[i];

		if (r->type && hca_psn_before(psn, r->psn) &&
		    !hca_psn_before(ack, r->psn))
			ack = hca_psn_add(r->psn, HCA_PSN_MASK);
	}
	return ack;
}

static void duplicate(struct hca_fn *fn, struct hca_qp *qp,
		      const struct hca_pkt *pkt)
{
	uint8_t type = hca_request_resource(pkt);
	struct hca_resource *r;

	hca_qp_count(fn, qp, QHCA_CNT_duplicate_requests);
	/* The peer has gone back, so a gap after this packet is a new gap. */
	if (qp->r_state == HCA_RESP_NAK_SENT)
		hca_qp_enter(fn, qp, QHCA_PART_RESPONDER, HCA_RESP_READY);
	if (type == HCA_RES_NONE) {
		owe_ack(fn, qp, duplicate_ack_psn(qp, pkt->psn));
		return;
	}
	r = hca_resource_find(qp, type, pkt);
	if (r && hca_resource_repeat(qp, r, pkt->psn))
		hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
}

/* ---- order */

void hca_request_rx(struct hca_fn *fn, struct hca_qp *qp,
		    const struct hca_pkt *pkt)
{
	int32_t ahead = hca_psn_diff(pkt->psn, qp->r_psn);
	enum hca_verdict verdict;

	if (hca_qp_has(qp, QHCA_PART_RESPONDER, HCA_PS_NO_REQUESTS))
		return;
	hca_qp_dirty(fn, qp);
	if (ahead > 0) {
		hca_qp_count(fn, qp, QHCA_CNT_out_of_sequence);
		if (qp->r_state == HCA_RESP_READY)
			owe_nak(fn, qp, HCA_NAK_SEQ);
		return;
	}
	if (ahead < 0) {
		duplicate(fn, qp, pkt);
		return;
	}
	/* The request that an unsent NAK would ask for has arrived. */
	hca_qp_enter(fn, qp, QHCA_PART_RESPONDER, HCA_RESP_READY);
	/*
	 * Requests that change memory wait in order: while one waits, the next
	 * request in order is the same one again.
	 */
	if (hca_qp_has(qp, QHCA_PART_RESPONDER_FAULT, HCA_PS_HOLDS_REQUEST)) {
		hca_fault_coalesce(fn);
		refuse(fn, qp, HCA_V_FAULT_AGAIN);
		return;
	}
	verdict = hca_request_execute(fn, qp, pkt);
	if (qp->state == QHCA_QPS_ERR)
		return;
	if (verdict != HCA_V_ACCEPT) {
		refuse(fn, qp, verdict);
		return;
	}
	if (hca_request_resource(pkt) != HCA_RES_NONE)
		return;
	if (!pkt->ack_req && ++qp->r_unacked < HCA_ACK_EVERY)
		return;
	fn->answered += qp->r_op == HCA_RMSG_NONE;
	owe_ack(fn, qp, pkt->psn);
}
