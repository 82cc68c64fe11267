// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting to the work queues of kernel QPs.
 */
#include <linux/log2.h>

#include "queue.h"

static const u8 qhca_wqe_opcode[] = {
	[IB_WR_RDMA_WRITE] = QHCA_WQE_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM] = QHCA_WQE_WRITE_IMM,
	[IB_WR_SEND] = QHCA_WQE_SEND,
	[IB_WR_SEND_WITH_IMM] = QHCA_WQE_SEND_IMM,
	[IB_WR_RDMA_READ] = QHCA_WQE_READ,
	[IB_WR_ATOMIC_CMP_AND_SWP] = QHCA_WQE_CMP_SWAP,
	[IB_WR_ATOMIC_FETCH_AND_ADD] = QHCA_WQE_FETCH_ADD,
	[IB_WR_SEND_WITH_INV] = QHCA_WQE_SEND_INV,
	[IB_WR_LOCAL_INV] = QHCA_WQE_LOCAL_INV,
	[IB_WR_ATOMIC_WRITE] = QHCA_WQE_ATOMIC_WRITE,
	[IB_WR_REG_MR] = QHCA_WQE_REG_MR,
};

static void *qhca_wq_slot(const struct qhca_wq *wq, u32 index)
{
	return wq->ring + ((size_t)(index & (wq->depth - 1)) << wq->log_stride);
}

static bool qhca_wq_is_full(const struct qhca_wq *wq)
{
	return wq->pi - READ_ONCE(wq->ci) >= wq->depth;
}

/*
 * A dead device answers no doorbell.  The driver then calls the completion
 * handler of the CQ, whose owner polls it and finds the request flushed.
 */
void qhca_ring_sq(struct qhca_qp *qp)
{
	struct qhca_ib_dev *dev = to_qhca(qp->ibqp.device);
	u64 pi = READ_ONCE(qp->sq.pi);

	if (likely(!qhca_is_dead(dev)))
		qhca_ring(dev->qdev, QHCA_DB_SQ, qp->qpn | pi << 32);
	else
		schedule_work(&dev->flush_work);
}

static void qhca_put_sge(struct qhca_sge *hw, const struct ib_sge *sge, int n)
{
	for (; n; n--, hw++, sge++) {
		hw->addr = cpu_to_le64(sge->addr);
		hw->length = cpu_to_le32(sge->length);
		hw->lkey = cpu_to_le32(sge->lkey);
	}
}

/* The addresses of inline segments are virtual addresses of the kernel. */
static int qhca_put_inline(struct qhca_qp *qp, struct qhca_sq_wqe *wqe,
			   const struct ib_send_wr *wr)
{
	void *to = wqe + 1;
	u32 len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > qp->max_inline - len)
			return -EINVAL;
		memcpy(to + len, (void *)(uintptr_t)sge->addr, sge->length);
		len += sge->length;
	}
	wqe->flags |= QHCA_WQE_F_INLINE;
	wqe->inline_len = cpu_to_le32(len);
	return 0;
}

static int qhca_put_data(struct qhca_qp *qp, struct qhca_sq_wqe *wqe,
			 const struct ib_send_wr *wr)
{
	if (wr->send_flags & IB_SEND_INLINE)
		return qhca_put_inline(qp, wqe, wr);

	wqe->num_sge = wr->num_sge;
	qhca_put_sge((struct qhca_sge *)(wqe + 1), wr->sg_list, wr->num_sge);
	return 0;
}

static void qhca_put_reg(struct qhca_sq_wqe *wqe, const struct ib_reg_wr *wr)
{
	struct qhca_mr *mr = to_qmr(wr->mr);

	wqe->reg.iova = cpu_to_le64(mr->ibmr.iova);
	wqe->reg.length = cpu_to_le64(mr->ibmr.length);
	wqe->reg.pages = cpu_to_le64(mr->pages_dma);
	wqe->reg.key = cpu_to_le32(wr->key);
	wqe->reg.access = cpu_to_le32(qhca_hw_access(wr->access));
	wqe->reg.num_pages = cpu_to_le32(mr->num_pages);
	wqe->reg.page_shift = ilog2(mr->ibmr.page_size);
}

static void qhca_put_ud(struct qhca_sq_wqe *wqe, const struct ib_ud_wr *wr)
{
	wqe->ud.dest_qpn = cpu_to_le32(wr->remote_qpn);
	wqe->ud.qkey = cpu_to_le32(wr->remote_qkey);
	wqe->ud.av = to_qah(wr->ah)->av;
}

static int qhca_put_request(struct qhca_qp *qp, struct qhca_sq_wqe *wqe,
			    const struct ib_send_wr *wr)
{
	bool datagram = qp->ibqp.qp_type == IB_QPT_UD ||
			qp->ibqp.qp_type == IB_QPT_GSI;

	switch (wr->opcode) {
	case IB_WR_SEND_WITH_IMM:
		wqe->imm = (__force __le32)wr->ex.imm_data;
		fallthrough;
	case IB_WR_SEND:
		if (datagram)
			qhca_put_ud(wqe, ud_wr(wr));
		return qhca_put_data(qp, wqe, wr);
	case IB_WR_SEND_WITH_INV:
		wqe->imm = cpu_to_le32(wr->ex.invalidate_rkey);
		return qhca_put_data(qp, wqe, wr);
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm = (__force __le32)wr->ex.imm_data;
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_READ:
	case IB_WR_ATOMIC_WRITE:
		wqe->rdma.raddr = cpu_to_le64(rdma_wr(wr)->remote_addr);
		wqe->rdma.rkey = cpu_to_le32(rdma_wr(wr)->rkey);
		return qhca_put_data(qp, wqe, wr);
	case IB_WR_ATOMIC_CMP_AND_SWP:
		wqe->atomic.raddr = cpu_to_le64(atomic_wr(wr)->remote_addr);
		wqe->atomic.rkey = cpu_to_le32(atomic_wr(wr)->rkey);
		wqe->atomic.swap_add = cpu_to_le64(atomic_wr(wr)->swap);
		wqe->atomic.compare = cpu_to_le64(atomic_wr(wr)->compare_add);
		return qhca_put_data(qp, wqe, wr);
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->atomic.raddr = cpu_to_le64(atomic_wr(wr)->remote_addr);
		wqe->atomic.rkey = cpu_to_le32(atomic_wr(wr)->rkey);
		wqe->atomic.swap_add = cpu_to_le64(atomic_wr(wr)->compare_add);
		return qhca_put_data(qp, wqe, wr);
	case IB_WR_LOCAL_INV:
		wqe->imm = cpu_to_le32(wr->ex.invalidate_rkey);
		return 0;
	case IB_WR_REG_MR:
		if (reg_wr(wr)->access & IB_ACCESS_FLUSH_PERSISTENT)
			return -EOPNOTSUPP;
		qhca_put_reg(wqe, reg_wr(wr));
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int qhca_post_one_send(struct qhca_qp *qp, const struct ib_send_wr *wr)
{
	struct qhca_sq_wqe *wqe = qhca_wq_slot(&qp->sq, qp->sq.pi);
	int err;

	if (unlikely(qhca_wq_is_full(&qp->sq)))
		return -ENOMEM;
	if (unlikely(wr->num_sge > qp->sq.max_sge || wr->num_sge < 0))
		return -EINVAL;

	memset(wqe, 0, sizeof(*wqe));
	err = qhca_put_request(qp, wqe, wr);
	if (unlikely(err))
		return err;

	wqe->opcode = qhca_wqe_opcode[wr->opcode];
	qp->sq.wr_id[qp->sq.pi & (qp->sq.depth - 1)] = wr->wr_id;
	if (wr->send_flags & IB_SEND_SIGNALED)
		wqe->flags |= QHCA_WQE_F_SIGNALED;
	if (wr->send_flags & IB_SEND_FENCE)
		wqe->flags |= QHCA_WQE_F_FENCE;
	if (wr->send_flags & IB_SEND_SOLICITED)
		wqe->flags |= QHCA_WQE_F_SOLICITED;

	/* Pollers may read the request's wr_id from now on. */
	smp_store_release(&qp->sq.pi, qp->sq.pi + 1);
	return 0;
}

/*
 * The device writes to the record (sq_active) whether it will read sq_pi again
 * by itself.  It clears that word before it reads sq_pi for the last time.  So
 * either the device sees the new index or this function sees that a doorbell is
 * needed; Documentation/hardware.rst has the proof.
 */
static void qhca_publish_sq(struct qhca_qp *qp)
{
	/* The entries before the index that covers them. */
	dma_wmb();
	WRITE_ONCE(qp->rec->sq_pi, cpu_to_le32(qp->sq.pi));

	/* The index is stored before sq_active is read. */
	mb();
	if (!READ_ONCE(qp->rec->sq_active) ||
	    unlikely(qhca_is_dead(to_qhca(qp->ibqp.device))))
		qhca_ring_sq(qp);
}

int qhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	unsigned long flags;
	int err = 0;
	u32 pi;

	/* A process posts to its own rings; the kernel cannot help it. */
	if (unlikely(qp->is_user || !(qp->flags & QHCA_QP_HAS_SQ) ||
		     READ_ONCE(qp->state) < IB_QPS_RTS)) {
		*bad_wr = wr;
		return -EINVAL;
	}

	spin_lock_irqsave(&qp->sq.lock, flags);
	for (pi = qp->sq.pi; wr; wr = wr->next) {
		err = qhca_post_one_send(qp, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	if (likely(pi != qp->sq.pi))
		qhca_publish_sq(qp);
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	return err;
}

/*
 * Fill in a receive WQE, but for the link, which belongs to the SRQ's list, and
 * the wr_id, which the driver keeps for itself.
 */
void qhca_build_rwqe(struct qhca_rq_wqe *wqe, const struct ib_recv_wr *wr)
{
	wqe->num_sge = cpu_to_le16(wr->num_sge);
	qhca_put_sge((struct qhca_sge *)(wqe + 1), wr->sg_list, wr->num_sge);
}

/* No doorbell is needed, unless the QP is in error and the device is idle. */
static void qhca_publish_rq(struct qhca_qp *qp)
{
	/* The entries before the index that covers them. */
	dma_wmb();
	WRITE_ONCE(qp->rec->rq_pi, cpu_to_le32(qp->rq.pi));

	/*
	 * The index is stored before the state is read; see qhca_qp_entered().
	 */
	mb();
	if (unlikely(READ_ONCE(qp->state) == IB_QPS_ERR ||
		     qhca_is_dead(to_qhca(qp->ibqp.device))))
		qhca_ring_sq(qp);
}

int qhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		   const struct ib_recv_wr **bad_wr)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	unsigned long flags;
	int err = 0;
	u32 pi;

	if (unlikely(qp->is_user || !(qp->flags & QHCA_QP_HAS_RQ) ||
		     READ_ONCE(qp->state) == IB_QPS_RESET)) {
		*bad_wr = wr;
		return -EINVAL;
	}

	spin_lock_irqsave(&qp->rq.lock, flags);
	for (pi = qp->rq.pi; wr; wr = wr->next) {
		if (unlikely(qhca_wq_is_full(&qp->rq)))
			err = -ENOMEM;
		else if (unlikely(wr->num_sge > qp->rq.max_sge ||
				  wr->num_sge < 0))
			err = -EINVAL;
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
		qhca_build_rwqe(qhca_wq_slot(&qp->rq, qp->rq.pi), wr);
		qp->rq.wr_id[qp->rq.pi & (qp->rq.depth - 1)] = wr->wr_id;

		/* Pollers may read the wr_id, as in qhca_post_one_send(). */
		smp_store_release(&qp->rq.pi, qp->rq.pi + 1);
	}
	if (likely(pi != qp->rq.pi))
		qhca_publish_rq(qp);
	spin_unlock_irqrestore(&qp->rq.lock, flags);
	return err;
}
