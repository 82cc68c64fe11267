/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completing the requests in the queues of a QP in error (IBTA 10.3.1.7).  The
 * device flushes the send queue and the receive queue, each in the order in which
 * software posted, and later requests when software rings for them.
 */
#include "transport/transport.h"

/* In SQE only the send queue is in error. */
static unsigned int flush_sq(struct hca_fn *fn, struct hca_qp *qp,
			     unsigned int budget)
{
	unsigned int done = 0;

	while (done < budget && qp->sq_ci != qp->sq_pi) {
		struct hca_send_wc wc = { .status = QHCA_WC_WR_FLUSH_ERR };

		if (hca_swqe_fetch(fn, qp, qp->sq_ci, &qp->cur))
			break;	/* the ring is unreadable: no wr_id is known */
		wc.wr_id = qp->cur.wr_id;
		wc.opcode = qp->cur.opcode;
		wc.wqe = qp->sq_ci;
		qp->sq_ci++;
		qp->sq_cur = qp->sq_max = qp->sq_ci;
		hca_complete_send(fn, qp, &wc);
		done++;
	}
	qp->cur.valid = false;
	return done;
}

static bool flush_one_recv(struct hca_fn *fn, struct hca_qp *qp)
{
	struct qhca_cqe cqe = {
		.status = QHCA_WC_WR_FLUSH_ERR, .opcode = QHCA_CQE_RECV,
	};

	if (hca_take_rwqe(fn, qp) != HCA_TAKE_OK)
		return false;
	put_le16(&cqe.vlan, HCA_VLAN_NONE);
	hca_complete_recv(fn, qp, &cqe);
	return true;
}

static unsigned int flush_rq(struct hca_fn *fn, struct hca_qp *qp,
			     unsigned int budget)
{
	unsigned int done = 0;

	/* Of an SRQ, the QP completes only the WQE that it has taken. */
	while (done < budget &&
	       (qp->r_flags & HCA_RF_RWQE ||
		(qp->rq_depth && qp->rq_ci != qp->rq_pi))) {
		if (!flush_one_recv(fn, qp))
			break;
		done++;
	}
	return done;
}

static void last_wqe(struct hca_fn *fn, struct hca_qp *qp)
{
	if (!hca_qp_uses_srq(qp) || qp->r_flags & HCA_RF_LAST_WQE)
		return;
	qp->r_flags |= HCA_RF_LAST_WQE;
	hca_event(fn, QHCA_EVENT_QP_LAST_WQE, qp->qpn, 0);
}

unsigned int hca_qp_flush(struct hca_fn *fn, struct hca_qp *qp,
			  unsigned int budget, bool *more)
{
	bool both = qp->state == QHCA_QPS_ERR;
	unsigned int done;

	hca_qp_dirty(fn, qp);
	hca_qp_refetch_sq(fn, qp);
	done = flush_sq(fn, qp, budget);
	if (both && done < budget) {
		hca_qp_refetch_rq(fn, qp);
		done += flush_rq(fn, qp, budget - done);
		if (done < budget)
			last_wqe(fn, qp);
	}
	*more = done == budget;
	return done;
}
