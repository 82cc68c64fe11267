/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests that a UC QP receives (IBTA 9.8.2).  A packet that is out of place ends
 * the message, and the peer gets no report.  A receive WQE that a dropped message
 * had taken serves the next message.
 */
#include "transport/transport.h"

static void drop_message(struct hca_fn *fn, struct hca_qp *qp)
{
	if (qp->r_state != HCA_RESP_DROPPING)
		hca_qp_count(fn, qp, QHCA_CNT_uc_dropped);
	hca_qp_enter(fn, qp, QHCA_PART_RESPONDER, HCA_RESP_DROPPING);
	qp->r_op = HCA_RMSG_NONE;
}

void hca_uc_rx(struct hca_fn *fn, struct hca_qp *qp,
	       const struct hca_pkt *pkt)
{
	enum hca_rmsg kind = pkt->what & HCA_OPF_SEND ? HCA_RMSG_SEND :
							HCA_RMSG_WRITE;
	enum hca_verdict verdict;

	hca_qp_dirty(fn, qp);
	if (pkt->what & HCA_OPF_FIRST) {
		/* The previous message lacks its last packet. */
		if (qp->r_op != HCA_RMSG_NONE)
			drop_message(fn, qp);
		hca_qp_enter(fn, qp, QHCA_PART_RESPONDER, HCA_RESP_READY);
		qp->r_psn = pkt->psn;
	} else if (pkt->psn != qp->r_psn || qp->r_op != kind) {
		drop_message(fn, qp);
		return;
	}
	verdict = hca_request_execute(fn, qp, pkt);
	if (qp->state == QHCA_QPS_ERR)
		return;
	switch (verdict) {
	case HCA_V_ACCEPT:
		break;
	case HCA_V_OPERATION:
		hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
		break;
	case HCA_V_FAULT:
	case HCA_V_FAULT_AGAIN:
		hca_count(fn, QHCA_CNT_fault_dropped);
		drop_message(fn, qp);
		break;
	default:
		drop_message(fn, qp);
		break;
	}
}
