/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The extended posting interface (ibv_wr_start() and on).
 *
 * Requests are written into the ring, behind the index that the device knows.
 * wr_complete hands them over together; wr_abort, or the first error, discards
 * them.
 */
#include <errno.h>

#include "qhca.h"
#include "wqe.h"

static void fail(struct qhca_qp *qp, int err)
{
	if (!qp->wr_err)
		qp->wr_err = err;
}

/*
 * Start one more request and write its common part; NULL if there is no room.
 */
static inline struct qhca_sq_wqe *begin(struct ibv_qp_ex *ibqp,
					uint8_t opcode) ALWAYS_INLINE;
static inline struct qhca_sq_wqe *begin(struct ibv_qp_ex *ibqp, uint8_t opcode)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);
	struct qhca_sq_wqe *wqe;

	if (unlikely(qp->wr_err))
		return NULL;
	if (unlikely(qhca_wq_full(&qp->sq, qp->wr_pi))) {
		fail(qp, ENOMEM);
		return NULL;
	}

	wqe = qhca_wq_slot(&qp->sq, qp->wr_pi++);
	qhca_wqe_begin(wqe, opcode, ibqp->wr_id, ibqp->wr_flags);
	qp->wr_wqe = wqe;
	return wqe;
}

/* The request being written, or NULL after an error. */
static struct qhca_sq_wqe *current(struct qhca_qp *qp)
{
	if (unlikely(qp->wr_err))
		return NULL;
	if (unlikely(!qp->wr_wqe))
		fail(qp, EINVAL);
	return qp->wr_wqe;
}

static void wr_start(struct ibv_qp_ex *ibqp)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);

	qhca_lock(&qp->sq.lock);
	qp->wr_pi = qp->sq.pi;
	qp->wr_wqe = NULL;
	qp->wr_err = qhca_may_send(qp) ? 0 : EINVAL;
}

static int wr_complete(struct ibv_qp_ex *ibqp)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);
	int err = qp->wr_err;

	if (likely(!err) && qp->wr_pi != qp->sq.pi)
		qhca_sq_publish(qp, qp->wr_pi);
	qhca_unlock(&qp->sq.lock);
	return err;
}

static void wr_abort(struct ibv_qp_ex *ibqp)
{
	qhca_unlock(&to_qqp_ex(ibqp)->sq.lock);
}

static void wr_send(struct ibv_qp_ex *ibqp)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);

	if (unlikely(!qhca_wr_flags_known(qp, ibqp->wr_flags)))
		fail(qp, EINVAL);
	begin(ibqp, QHCA_WQE_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ibqp, __be32 imm)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_SEND_IMM);

	if (wqe)
		qhca_wqe_imm(wqe, imm);
}

static void wr_send_inv(struct ibv_qp_ex *ibqp, uint32_t rkey)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_SEND_INV);

	if (wqe)
		qhca_wqe_inv(wqe, rkey);
}

static void wr_rdma_write(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t raddr)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_WRITE);

	if (wqe)
		qhca_wqe_rdma(wqe, raddr, rkey);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ibqp, uint32_t rkey,
			      uint64_t raddr, __be32 imm)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_WRITE_IMM);

	if (wqe) {
		qhca_wqe_rdma(wqe, raddr, rkey);
		qhca_wqe_imm(wqe, imm);
	}
}

static void wr_rdma_read(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t raddr)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_READ);

	if (wqe)
		qhca_wqe_rdma(wqe, raddr, rkey);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ibqp, uint32_t rkey,
			      uint64_t raddr, uint64_t compare, uint64_t swap)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_CMP_SWAP);

	if (wqe)
		qhca_wqe_atomic(wqe, raddr, rkey, swap, compare);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ibqp, uint32_t rkey,
				uint64_t raddr, uint64_t add)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_FETCH_ADD);

	if (wqe)
		qhca_wqe_atomic(wqe, raddr, rkey, add, 0);
}

static void wr_atomic_write(struct ibv_qp_ex *ibqp, uint32_t rkey,
			    uint64_t raddr, const void *value)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_ATOMIC_WRITE);
	struct qhca_qp *qp = to_qqp_ex(ibqp);

	if (!wqe)
		return;
	qhca_wqe_rdma(wqe, raddr, rkey);
	if (!qhca_wqe_inline(qp, wqe, value, sizeof(uint64_t)))
		fail(qp, EINVAL);
}

static void wr_flush(struct ibv_qp_ex *ibqp, uint32_t rkey, uint64_t raddr,
		     size_t length, uint8_t type, uint8_t level)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_FLUSH);

	if (!wqe)
		return;
	if (!type || (type & ~(IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT)) ||
	    level > IBV_FLUSH_MR || length > UINT32_MAX) {
		fail(to_qqp_ex(ibqp), EINVAL);
		return;
	}
	wqe->flush.raddr = htole64(raddr);
	wqe->flush.rkey = htole32(rkey);
	wqe->flush.length = htole32(length);
	wqe->flush.type = type;
	wqe->flush.level = level;
}

static void wr_local_inv(struct ibv_qp_ex *ibqp, uint32_t rkey)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_LOCAL_INV);

	if (wqe)
		qhca_wqe_inv(wqe, rkey);
}

static void wr_bind_mw(struct ibv_qp_ex *ibqp, struct ibv_mw *mw,
		       uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	struct qhca_sq_wqe *wqe = begin(ibqp, QHCA_WQE_BIND_MW);

	if (!wqe)
		return;
	if (mw->type != IBV_MW_TYPE_2 || !qhca_wqe_bind(wqe, mw, rkey, info))
		fail(to_qqp_ex(ibqp), EINVAL);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ibqp, struct ibv_ah *ah,
			   uint32_t qpn, uint32_t qkey)
{
	struct qhca_sq_wqe *wqe = current(to_qqp_ex(ibqp));

	if (wqe)
		qhca_wqe_ud(wqe, ah, qpn, qkey);
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ibqp, uint32_t srqn)
{
	struct qhca_sq_wqe *wqe = current(to_qqp_ex(ibqp));

	if (wqe)
		wqe->xrc_srqn = htole32(srqn);
}

/* Inline, since most requests have one element, for which no loop is needed. */
static inline void set_sges(struct qhca_qp *qp, size_t num,
			    const struct ibv_sge *list) ALWAYS_INLINE;
static inline void set_sges(struct qhca_qp *qp, size_t num,
			    const struct ibv_sge *list)
{
	struct qhca_sq_wqe *wqe = current(qp);

	if (!wqe)
		return;
	if (unlikely(num > qp->sq.max_sge)) {
		fail(qp, EINVAL);
		return;
	}
	qhca_wqe_sges(wqe, list, num);
}

static void wr_set_sge_list(struct ibv_qp_ex *ibqp, size_t num,
			    const struct ibv_sge *list)
{
	set_sges(to_qqp_ex(ibqp), num, list);
}

static void wr_set_sge(struct ibv_qp_ex *ibqp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

	set_sges(to_qqp_ex(ibqp), 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ibqp, size_t num,
				    const struct ibv_data_buf *list)
{
	struct qhca_qp *qp = to_qqp_ex(ibqp);
	struct qhca_sq_wqe *wqe = current(qp);
	size_t i;

	if (!wqe)
		return;
	for (i = 0; i < num; i++)
		if (!qhca_wqe_inline(qp, wqe, list[i].addr, list[i].length)) {
			fail(qp, EINVAL);
			return;
		}
}

static void wr_set_inline_data(struct ibv_qp_ex *ibqp, void *addr,
			       size_t length)
{
	struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ibqp, 1, &buf);
}

static uint64_t ops_of_type(enum qhca_qp_type type)
{
	const uint64_t send = IBV_QP_EX_WITH_SEND |
			      IBV_QP_EX_WITH_SEND_WITH_IMM;
	const uint64_t unreliable = send | IBV_QP_EX_WITH_RDMA_WRITE |
				    IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
				    IBV_QP_EX_WITH_LOCAL_INV |
				    IBV_QP_EX_WITH_BIND_MW;

	switch (type) {
	case QHCA_QPT_RAW:
		return IBV_QP_EX_WITH_SEND;
	case QHCA_QPT_UD:
		return send;
	case QHCA_QPT_UC:
		return unreliable;
	case QHCA_QPT_RC:
	case QHCA_QPT_XRC_INI:
		return unreliable | IBV_QP_EX_WITH_SEND_WITH_INV |
		       IBV_QP_EX_WITH_RDMA_READ |
		       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		       IBV_QP_EX_WITH_FLUSH | IBV_QP_EX_WITH_ATOMIC_WRITE;
	default:
		return 0;
	}
}

/* Operations that a device may not support. */
static uint64_t ops_of_device(uint64_t features)
{
	uint64_t ops = ~0ull;

	if (!(features & QHCA_FEAT_ATOMIC))
		ops &= ~(uint64_t)(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
				   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);
	if (!(features & QHCA_FEAT_MW2B))
		ops &= ~(uint64_t)IBV_QP_EX_WITH_BIND_MW;
	if (!(features & (QHCA_FEAT_MW2B | QHCA_FEAT_FAST_REG)))
		ops &= ~(uint64_t)(IBV_QP_EX_WITH_LOCAL_INV |
				   IBV_QP_EX_WITH_SEND_WITH_INV);
	if (!(features & QHCA_FEAT_FLUSH))
		ops &= ~(uint64_t)IBV_QP_EX_WITH_FLUSH;
	if (!(features & QHCA_FEAT_ATOMIC_WRITE))
		ops &= ~(uint64_t)IBV_QP_EX_WITH_ATOMIC_WRITE;
	return ops;
}

/**
 * qhca_qp_set_wr_ops - set the operations of ibv_qp_ex
 * @qp: QP, type set
 * @ctx: context
 * @ops: IBV_QP_EX_WITH_* that the program is going to post
 *
 * Returns 0, or EOPNOTSUPP if the QP's type or the device does not support one.
 */
int qhca_qp_set_wr_ops(struct qhca_qp *qp, struct qhca_context *ctx,
		       uint64_t ops)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

	if (ops & ~(ops_of_type(qp->type) & ops_of_device(ctx->features)))
		return EOPNOTSUPP;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
	if (qp->type == QHCA_QPT_UD)
		ex->wr_set_ud_addr = wr_set_ud_addr;
	if (qp->type == QHCA_QPT_XRC_INI)
		ex->wr_set_xrc_srqn = wr_set_xrc_srqn;

	if (ops & IBV_QP_EX_WITH_SEND)
		ex->wr_send = wr_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = wr_send_imm;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_INV)
		ex->wr_send_inv = wr_send_inv;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = wr_rdma_write;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = wr_rdma_write_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = wr_rdma_read;
	if (ops & IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP)
		ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	if (ops & IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
		ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	if (ops & IBV_QP_EX_WITH_ATOMIC_WRITE)
		ex->wr_atomic_write = wr_atomic_write;
	if (ops & IBV_QP_EX_WITH_FLUSH)
		ex->wr_flush = wr_flush;
	if (ops & IBV_QP_EX_WITH_LOCAL_INV)
		ex->wr_local_inv = wr_local_inv;
	if (ops & IBV_QP_EX_WITH_BIND_MW)
		ex->wr_bind_mw = wr_bind_mw;
	return 0;
}
