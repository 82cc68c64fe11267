/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests that a UC QP receives (IBTA 9.8.2): what is out of place ends the
 * message, silently.  A receive WQE that a dropped message had taken serves the
 * next one.
 */
#include "transport/transport.h"

static void drop_message(struct qhca_hca *hca, struct hca_qp *qp)
{
	if (!(qp->r_flags & HCA_RF_DROP))
		hca_count(hca, QHCA_CNT_uc_dropped);
	qp->r_flags |= HCA_RF_DROP;
	qp->r_op = HCA_RMSG_NONE;
}

void hca_uc_rx(struct qhca_hca *hca, struct hca_qp *qp,
	       const struct hca_pkt *pkt)
{
	enum hca_rmsg kind = pkt->what & HCA_OPF_SEND ? HCA_RMSG_SEND :
							HCA_RMSG_WRITE;

	hca_qp_dirty(hca, qp);
	if (pkt->what & HCA_OPF_FIRST) {
		/* the one before was not finished */
		if (qp->r_op != HCA_RMSG_NONE)
			drop_message(hca, qp);
		qp->r_flags &= ~HCA_RF_DROP;
		qp->r_psn = pkt->psn;
	} else if (pkt->psn != qp->r_psn || qp->r_op != kind) {
		drop_message(hca, qp);
		return;
	}
	switch (hca_request_execute(hca, qp, pkt)) {
	case HCA_V_ACCEPT:
		break;
	case HCA_V_OPERATION:
		hca_qp_error_event(hca, qp, QHCA_EVENT_QP_FATAL);
		break;
	case HCA_V_FAULT:
	case HCA_V_FAULT_AGAIN:
		hca_count(hca, QHCA_CNT_fault_dropped);
		drop_message(hca, qp);
		break;
	default:
		drop_message(hca, qp);
		break;
	}
}
