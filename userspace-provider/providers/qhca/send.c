/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Posting to the send queue.
 */
#include <errno.h>

#include <ccan/array_size.h>

#include "qhca.h"
#include "wqe.h"

#define RC	(1u << QHCA_QPT_RC)
#define UC	(1u << QHCA_QPT_UC)
#define UD	(1u << QHCA_QPT_UD)
#define XRC	(1u << QHCA_QPT_XRC_INI)
#define RAW	(1u << QHCA_QPT_RAW)

/* Further parts of a work request. */
#define HAS_SGES	0x01u
#define HAS_INLINE	0x02u	/* its data may be inline */
#define HAS_IMM		0x04u
#define HAS_INV		0x08u
#define HAS_RDMA	0x10u
#define HAS_ATOMIC	0x20u
#define HAS_BIND	0x40u

struct send_op {
	uint8_t opcode;		/* enum qhca_wqe_opcode */
	uint8_t types;		/* QP types that know it */
	uint8_t parts;		/* HAS_* */
};

static const struct send_op send_ops[] = {
	[IBV_WR_SEND] = { QHCA_WQE_SEND, RC | UC | UD | XRC | RAW,
			  HAS_SGES | HAS_INLINE },
	[IBV_WR_SEND_WITH_IMM] = { QHCA_WQE_SEND_IMM, RC | UC | UD | XRC,
				   HAS_SGES | HAS_INLINE | HAS_IMM },
	[IBV_WR_SEND_WITH_INV] = { QHCA_WQE_SEND_INV, RC | XRC,
				   HAS_SGES | HAS_INLINE | HAS_INV },
	[IBV_WR_RDMA_WRITE] = { QHCA_WQE_WRITE, RC | UC | XRC,
				HAS_SGES | HAS_INLINE | HAS_RDMA },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { QHCA_WQE_WRITE_IMM, RC | UC | XRC,
					 HAS_SGES | HAS_INLINE | HAS_RDMA |
					 HAS_IMM },
	[IBV_WR_RDMA_READ] = { QHCA_WQE_READ, RC | XRC, HAS_SGES | HAS_RDMA },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { QHCA_WQE_CMP_SWAP, RC | XRC,
					HAS_SGES | HAS_ATOMIC },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { QHCA_WQE_FETCH_ADD, RC | XRC,
					  HAS_SGES | HAS_ATOMIC },
	[IBV_WR_ATOMIC_WRITE] = { QHCA_WQE_ATOMIC_WRITE, RC | XRC,
				  HAS_SGES | HAS_INLINE | HAS_RDMA },
	[IBV_WR_BIND_MW] = { QHCA_WQE_BIND_MW, RC | UC | XRC, HAS_BIND },
	[IBV_WR_LOCAL_INV] = { QHCA_WQE_LOCAL_INV, RC | UC | XRC, HAS_INV },
};

static void build_atomic(struct qhca_sq_wqe *wqe, const struct ibv_send_wr *wr)
{
	bool swap = wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP;

	qhca_wqe_atomic(wqe, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey,
			swap ? wr->wr.atomic.swap : wr->wr.atomic.compare_add,
			swap ? wr->wr.atomic.compare_add : 0);
}

static int build_data(const struct qhca_qp *qp, struct qhca_sq_wqe *wqe,
		      const struct ibv_send_wr *wr, uint8_t parts)
{
	int i;

	if (unlikely(wr->num_sge < 0))
		return EINVAL;

	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		if (unlikely((uint32_t)wr->num_sge > qp->sq.max_sge))
			return EINVAL;
		qhca_wqe_sges(wqe, wr->sg_list, wr->num_sge);
		return 0;
	}

	if (unlikely(!(parts & HAS_INLINE)))
		return EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		if (!qhca_wqe_inline(qp, wqe,
				     (void *)(uintptr_t)wr->sg_list[i].addr,
				     wr->sg_list[i].length))
			return EINVAL;
	return 0;
}

static int build_wqe(const struct qhca_qp *qp, struct qhca_sq_wqe *wqe,
		     const struct ibv_send_wr *wr)
{
	const struct send_op *op;

	if (unlikely((unsigned int)wr->opcode >= ARRAY_SIZE(send_ops)))
		return EINVAL;
	op = &send_ops[wr->opcode];
	if (unlikely(!(op->types & 1u << qp->type)))
		return EINVAL;

	qhca_wqe_begin(wqe, op->opcode, wr->wr_id, wr->send_flags);

	if (op->parts & HAS_RDMA)
		qhca_wqe_rdma(wqe, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
	if (op->parts & HAS_IMM)
		qhca_wqe_imm(wqe, wr->imm_data);
	if (op->parts & HAS_INV)
		qhca_wqe_inv(wqe, wr->invalidate_rkey);
	if (op->parts & HAS_ATOMIC)
		build_atomic(wqe, wr);
	if (op->parts & HAS_BIND) {
		/* Only ibv_bind_mw() binds windows of type 1. */
		if (wr->bind_mw.mw->type != IBV_MW_TYPE_2 ||
		    !qhca_wqe_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey,
				   &wr->bind_mw.bind_info))
			return EINVAL;
	}

	if (qp->type == QHCA_QPT_UD)
		qhca_wqe_ud(wqe, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
			    wr->wr.ud.remote_qkey);
	else if (qp->type == QHCA_QPT_XRC_INI)
		wqe->xrc_srqn = htole32(wr->qp_type.xrc.remote_srqn);
	else if (!qhca_wr_flags_known(qp, wr->send_flags))
		return EINVAL;

	return op->parts & HAS_SGES ? build_data(qp, wqe, wr, op->parts) : 0;
}

int qhca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	struct qhca_wq *sq = &qp->sq;
	uint32_t pi;
	int ret = 0;

	if (unlikely(!qhca_may_send(qp))) {
		*bad_wr = wr;
		return EINVAL;
	}

	qhca_lock(&sq->lock);
	for (pi = sq->pi; wr; wr = wr->next) {
		if (unlikely(qhca_wq_full(sq, pi))) {
			ret = ENOMEM;
			break;
		}
		ret = build_wqe(qp, qhca_wq_slot(sq, pi), wr);
		if (unlikely(ret))
			break;
		pi++;
	}

	if (pi != sq->pi)
		qhca_sq_publish(qp, pi);
	if (unlikely(ret))
		*bad_wr = wr;
	qhca_unlock(&sq->lock);
	return ret;
}

int qhca_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *mw,
		 struct ibv_mw_bind *bind)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	struct qhca_wq *sq = &qp->sq;
	struct qhca_sq_wqe *wqe;
	int ret = 0;

	if (!qhca_may_send(qp) ||
	    !(send_ops[IBV_WR_BIND_MW].types & 1u << qp->type))
		return EINVAL;

	qhca_lock(&sq->lock);
	if (qhca_wq_full(sq, sq->pi)) {
		ret = ENOMEM;
		goto out;
	}

	wqe = qhca_wq_slot(sq, sq->pi);
	qhca_wqe_begin(wqe, QHCA_WQE_BIND_MW, bind->wr_id, bind->send_flags);
	if (!qhca_wqe_bind(wqe, mw, ibv_inc_rkey(mw->rkey),
			   &bind->bind_info)) {
		ret = EINVAL;
		goto out;
	}
	qhca_sq_publish(qp, sq->pi + 1);
out:
	qhca_unlock(&sq->lock);
	return ret;
}
