/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests that a UC QP receives (IBTA 9.8.2): what is out of place ends the
 * message, silently.  A receive WQE that a dropped message had taken serves the
 * next one.
 */
#include "transport/transport.h"

static void drop_message(struct qhca_hca *hca, struct qhca_qp *qp)
{
	if (!(qp->r_flags & QHCA_RF_DROP))
		qhca_count(hca, QHCA_CNT_uc_dropped);
	qp->r_flags |= QHCA_RF_DROP;
	qp->r_op = QHCA_RMSG_NONE;
}

void qhca_uc_rx(struct qhca_hca *hca, struct qhca_qp *qp,
		const struct qhca_pkt *pkt)
{
	enum qhca_rmsg kind = pkt->what & QHCA_OPF_SEND ? QHCA_RMSG_SEND :
							  QHCA_RMSG_WRITE;

	qhca_qp_dirty(hca, qp);
	if (pkt->what & QHCA_OPF_FIRST) {
		/* the one before was not finished */
		if (qp->r_op != QHCA_RMSG_NONE)
			drop_message(hca, qp);
		qp->r_flags &= ~QHCA_RF_DROP;
		qp->r_psn = pkt->psn;
	} else if (pkt->psn != qp->r_psn || qp->r_op != kind) {
		drop_message(hca, qp);
		return;
	}
	switch (qhca_request_execute(hca, qp, pkt)) {
	case QHCA_V_ACCEPT:
		break;
	case QHCA_V_OPERATION:
		qhca_qp_error_event(hca, qp, QHCA_EVENT_QP_FATAL);
		break;
	case QHCA_V_FAULT:
	case QHCA_V_FAULT_AGAIN:
		qhca_count(hca, QHCA_CNT_fault_dropped);
		drop_message(hca, qp);
		break;
	default:
		drop_message(hca, qp);
		break;
	}
}
