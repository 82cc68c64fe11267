/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Posting to a QP's own receive queue.  This only writes memory, and rings no
 * doorbell unless the device has to flush.
 */
#include <errno.h>

#include "qhca.h"
#include "wqe.h"

int qhca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	struct qhca_wq *rq = &qp->rq;
	uint32_t pi;
	int ret = 0;

	if (unlikely(!rq->depth || ibqp->state == IBV_QPS_RESET)) {
		*bad_wr = wr;
		return EINVAL;
	}

	qhca_lock(&rq->lock);
	for (pi = rq->pi; wr; wr = wr->next) {
		if (unlikely(qhca_wq_full(rq, pi))) {
			ret = ENOMEM;
			break;
		}
		if (unlikely(wr->num_sge < 0 ||
			     (uint32_t)wr->num_sge > rq->max_sge)) {
			ret = EINVAL;
			break;
		}
		qhca_rwqe_fill(qhca_wq_slot(rq, pi), wr);
		pi++;
	}

	if (pi != rq->pi) {
		rq->pi = pi;
		qhca_store_release(&qp->rec->rq_pi, pi);
		/* This barrier replaces the order that the lock gives, see qhca_qp_in_error(). */
		if (!rq->lock.needed)
			qhca_store_load_barrier();
		if (unlikely(atomic_load_explicit(&qp->in_error,
						  memory_order_relaxed)))
			qhca_doorbell(to_qctx(ibqp->context), QHCA_DB_SQ,
				      ibqp->qp_num,
				      qhca_load(&qp->rec->sq_pi));
	}
	if (unlikely(ret))
		*bad_wr = wr;
	qhca_unlock(&rq->lock);
	return ret;
}
