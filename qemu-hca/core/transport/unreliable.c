/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests that a UC QP receives (IBTA 9.8.2): what is out of place ends the
 * message, silently.  A receive WQE that a dropped message had taken serves the
 * next one.
 */
#include "transport/transport.h"

static void drop_message(struct hca_fn *fn, struct hca_qp *qp)
{
	if (!(qp->r_flags & HCA_RF_DROP))
		hca_count(fn, QHCA_CNT_uc_dropped);
	qp->r_flags |= HCA_RF_DROP;
	qp->r_op = HCA_RMSG_NONE;
}

void hca_uc_rx(struct hca_fn *fn, struct hca_qp *qp,
	       const struct hca_pkt *pkt)
{
	enum hca_rmsg kind = pkt->what & HCA_OPF_SEND ? HCA_RMSG_SEND :
							HCA_RMSG_WRITE;

	hca_qp_dirty(fn, qp);
	if (pkt->what & HCA_OPF_FIRST) {
		/* the one before was not finished */
		if (qp->r_op != HCA_RMSG_NONE)
			drop_message(fn, qp);
		qp->r_flags &= ~HCA_RF_DROP;
		qp->r_psn = pkt->psn;
	} else if (pkt->psn != qp->r_psn || qp->r_op != kind) {
		drop_message(fn, qp);
		return;
	}
	switch (hca_request_execute(fn, qp, pkt)) {
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
