// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: polling by the kernel.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include "queue.h"

static_assert((int)QHCA_WC_WR_FLUSH_ERR == (int)IB_WC_WR_FLUSH_ERR);
static_assert((int)QHCA_WC_REM_ACCESS_ERR == (int)IB_WC_REM_ACCESS_ERR);
static_assert((int)QHCA_WC_REM_ABORT_ERR == (int)IB_WC_REM_ABORT_ERR);
static_assert((int)QHCA_WC_GENERAL_ERR == (int)IB_WC_GENERAL_ERR);

static struct qhca_cqe *qhca_cq_slot(struct qhca_cq *cq, u32 index)
{
	return &cq->ring[index & (BIT(cq->log_depth) - 1)];
}

static u32 qhca_cq_phase(struct qhca_cq *cq, u32 index)
{
	return index & BIT(cq->log_depth) ? 0 : QHCA_PHASE;
}

/* Returns the CQE at @index if the device has written all of it, or NULL. */
static struct qhca_cqe *qhca_cq_peek(struct qhca_cq *cq, u32 index)
{
	struct qhca_cqe *cqe = qhca_cq_slot(cq, index);
	u32 flags = le32_to_cpu(READ_ONCE(cqe->flags));

	if ((flags & QHCA_PHASE) != qhca_cq_phase(cq, index))
		return NULL;

	/* The device writes the phase last, so the rest is read after it. */
	dma_rmb();
	return cqe;
}

/* Return the slots before @ci to the device. */
static void qhca_cq_store_ci(struct qhca_cq *cq, u32 ci)
{
	cq->ci = ci;
	/* All loads from these slots precede the store. */
	smp_store_release(&cq->rec->ci, cpu_to_le32(ci));
}

static const enum ib_wc_opcode qhca_send_wc_opcode[] = {
	[QHCA_WQE_SEND] = IB_WC_SEND,
	[QHCA_WQE_SEND_IMM] = IB_WC_SEND,
	[QHCA_WQE_SEND_INV] = IB_WC_SEND,
	[QHCA_WQE_WRITE] = IB_WC_RDMA_WRITE,
	[QHCA_WQE_WRITE_IMM] = IB_WC_RDMA_WRITE,
	[QHCA_WQE_READ] = IB_WC_RDMA_READ,
	[QHCA_WQE_CMP_SWAP] = IB_WC_COMP_SWAP,
	[QHCA_WQE_FETCH_ADD] = IB_WC_FETCH_ADD,
	[QHCA_WQE_BIND_MW] = IB_WC_BIND_MW,
	[QHCA_WQE_LOCAL_INV] = IB_WC_LOCAL_INV,
	[QHCA_WQE_REG_MR] = IB_WC_REG_MR,
	[QHCA_WQE_ATOMIC_WRITE] = IB_WC_ATOMIC_WRITE,
	[QHCA_WQE_FLUSH] = IB_WC_FLUSH,
};

static void qhca_fill_recv_wc(const struct qhca_cqe *cqe, u32 flags,
			      struct ib_wc *wc)
{
	u16 tag;

	wc->opcode = cqe->opcode == QHCA_CQE_RECV_RDMA_IMM ?
		     IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV;
	if (flags & QHCA_CQE_IMM) {
		wc->ex.imm_data = (__force __be32)cqe->imm;
		wc->wc_flags |= IB_WC_WITH_IMM;
	} else if (flags & QHCA_CQE_INV) {
		wc->ex.invalidate_rkey = le32_to_cpu(cqe->imm);
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
	}
	if (!(flags & QHCA_CQE_GRH))
		return;

	wc->src_qp = le32_to_cpu(cqe->src_qpn);
	wc->sl = cqe->sl;
	ether_addr_copy(wc->smac, cqe->smac);
	wc->network_hdr_type = cqe->net_type == 4 ? RDMA_NETWORK_IPV4 :
						    RDMA_NETWORK_IPV6;
	wc->wc_flags |= IB_WC_GRH | IB_WC_WITH_SMAC |
			IB_WC_WITH_NETWORK_HDR_TYPE;
	if (flags & QHCA_CQE_VLAN) {
		tag = le16_to_cpu(cqe->vlan);
		wc->vlan_id = tag & VLAN_VID_MASK;
		wc->wc_flags |= IB_WC_WITH_VLAN;
	}
}

/*
 * Find the kernel QP of a CQE.  The driver does not trust the number that the
 * device has written: it must be the number of a QP that completes such
 * requests here.  The QP stays valid as long as the CQ's lock is held, because
 * a QP that has left the xarray leaves its CQs, under that lock, before it is
 * freed.
 */
static struct qhca_qp *qhca_cq_find_qp(struct qhca_cq *cq, u32 qpn,
				       bool requester)
{
	struct qhca_ib_dev *dev = to_qhca(cq->ibcq.device);
	struct ib_cq *ibcq = NULL;
	struct qhca_qp *qp;

	lockdep_assert_held(&cq->lock);

	xa_lock(&dev->qps);
	qp = xa_load(&dev->qps, qpn);
	if (qp && !qp->is_user)
		ibcq = requester ? qp->ibqp.send_cq : qp->ibqp.recv_cq;
	xa_unlock(&dev->qps);
	return ibcq == &cq->ibcq ? qp : NULL;
}

/* Complete entry @index of a work queue, and all entries before it. */
static bool qhca_wq_complete(struct qhca_wq *wq, u32 index, u64 *wr_id)
{
	/* Pairs with the release in posting. */
	u32 pi = smp_load_acquire(&wq->pi);

	if (index - wq->ci >= pi - wq->ci)
		return false;
	*wr_id = wq->wr_id[index & (wq->depth - 1)];
	WRITE_ONCE(wq->ci, index + 1);
	return true;
}

/*
 * Return the slot of a CQE to its queue, and find the request that was in it.
 * Returns false if no such request was posted.
 */
static bool qhca_cqe_release(struct qhca_qp *qp, u32 index, u32 flags,
			     u64 *wr_id)
{
	if (flags & QHCA_CQE_REQUESTER)
		return qhca_wq_complete(&qp->sq, index, wr_id);
	if (!(flags & QHCA_CQE_SRQ))
		return qhca_wq_complete(&qp->rq, index, wr_id);
	return qp->ibqp.srq &&
	       qhca_srq_free_slot(to_qsrq(qp->ibqp.srq), index, wr_id);
}

static void qhca_cqe_to_wc(const struct qhca_cqe *cqe, u32 flags,
			   struct qhca_qp *qp, u64 wr_id, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wr_id;
	wc->status = cqe->status;
	wc->qp = &qp->ibqp;
	wc->port_num = QHCA_IB_PORT;

	if (unlikely(cqe->status != QHCA_WC_SUCCESS)) {
		wc->vendor_err = le32_to_cpu(cqe->syndrome);
		qhca_qp_in_error(qp, flags & QHCA_CQE_REQUESTER);
		return;
	}

	wc->byte_len = le32_to_cpu(cqe->byte_len);
	if (!(flags & QHCA_CQE_REQUESTER))
		qhca_fill_recv_wc(cqe, flags, wc);
	else if (cqe->opcode < ARRAY_SIZE(qhca_send_wc_opcode))
		wc->opcode = qhca_send_wc_opcode[cqe->opcode];
}

/*
 * The device has completed a request that was not posted.  The request that it
 * should have completed would then never complete.  So the driver declares the
 * device dead, and consumers find their requests flushed.
 */
static void qhca_cq_bad_cqe(struct qhca_cq *cq, const struct qhca_cqe *cqe)
{
	struct qhca_ib_dev *dev = to_qhca(cq->ibcq.device);

	/* On a dead device the request may have been flushed already. */
	if (qhca_is_dead(dev))
		return;

	ibdev_err_ratelimited(&dev->ibdev,
			      "cq %u: completion of a request that was not posted: qp %#x, entry %#x, flags %#x\n",
			      cq->cqn, le32_to_cpu(cqe->qpn),
			      le32_to_cpu(cqe->wqe), le32_to_cpu(cqe->flags));
	qhca_abandon(dev->qdev, "bad completion");
}

static bool qhca_poll_one(struct qhca_cq *cq, struct ib_wc *wc)
{
	const struct qhca_cqe *slot;
	struct qhca_cqe cqe;
	struct qhca_qp *qp;
	u32 flags;
	u64 wr_id;

	while ((slot = qhca_cq_peek(cq, cq->ci))) {
		cqe = *slot;
		flags = le32_to_cpu(cqe.flags);
		qp = qhca_cq_find_qp(cq, le32_to_cpu(cqe.qpn),
				     flags & QHCA_CQE_REQUESTER);

		/*
		 * This comes first: a post that uses the slot may need the
		 * room.
		 */
		qhca_cq_store_ci(cq, cq->ci + 1);
		if (likely(qp && qhca_cqe_release(qp, le32_to_cpu(cqe.wqe),
						  flags, &wr_id))) {
			qhca_cqe_to_wc(&cqe, flags, qp, wr_id, wc);
			return true;
		}
		qhca_cq_bad_cqe(cq, &cqe);
	}
	return false;
}

/* Complete what was posted to a queue of a dead device. */
static int qhca_flush_wq(struct qhca_qp *qp, struct qhca_wq *wq, int room,
			 struct ib_wc *wc)
{
	/* Entries before pi have been written. */
	u32 pi = smp_load_acquire(&wq->pi);
	int n = 0;

	for (; n < room && wq->ci != pi; n++, wc++) {
		memset(wc, 0, sizeof(*wc));
		wc->wr_id = wq->wr_id[wq->ci & (wq->depth - 1)];
		wc->status = IB_WC_WR_FLUSH_ERR;
		wc->qp = &qp->ibqp;
		wc->port_num = QHCA_IB_PORT;
		WRITE_ONCE(wq->ci, wq->ci + 1);
	}
	return n;
}

static int qhca_flush_cq(struct qhca_cq *cq, int room, struct ib_wc *wc)
{
	struct qhca_qp *qp;
	int n = 0;

	lockdep_assert_held(&cq->lock);

	list_for_each_entry(qp, &cq->send_qps, send_entry)
		n += qhca_flush_wq(qp, &qp->sq, room - n, wc + n);
	list_for_each_entry(qp, &cq->recv_qps, recv_entry)
		n += qhca_flush_wq(qp, &qp->rq, room - n, wc + n);
	return n;
}

int qhca_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct qhca_ib_dev *dev = to_qhca(ibcq->device);
	struct qhca_cq *cq = to_qcq(ibcq);
	unsigned long flags;
	int n = 0;

	/* The kernel does not poll the rings of processes. */
	if (unlikely(!cq->ring))
		return -EINVAL;

	spin_lock_irqsave(&cq->lock, flags);
	while (n < num_entries && qhca_poll_one(cq, &wc[n]))
		n++;
	if (unlikely(qhca_is_dead(dev)))
		n += qhca_flush_cq(cq, num_entries - n, wc + n);
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

/*
 * The device clears the word before it raises the event.  So if the CQ is still
 * armed for at least what is asked for, the event is yet to come, and no
 * doorbell is needed.
 */
static bool qhca_cq_is_armed(struct qhca_cq *cq, bool solicited)
{
	u32 armed;

	/* The ring is read before the word. */
	mb();
	armed = le32_to_cpu(READ_ONCE(cq->rec->armed));
	return armed == 1 || (armed == 2 && solicited);
}

int qhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct qhca_ib_dev *dev = to_qhca(ibcq->device);
	struct qhca_cq *cq = to_qcq(ibcq);
	unsigned long irq_flags;
	u64 arm = cq->cqn;
	int missed = 0;

	if (unlikely(!cq->ring))
		return -EINVAL;

	if ((flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED)
		arm |= QHCA_DB_CQ_SOLICITED;

	spin_lock_irqsave(&cq->lock, irq_flags);
	if (likely(!qhca_is_dead(dev)) &&
	    !qhca_cq_is_armed(cq, arm & QHCA_DB_CQ_SOLICITED))
		qhca_ring(dev->qdev, QHCA_DB_CQ_ARM, arm | (u64)cq->ci << 32);
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		missed = !!qhca_cq_peek(cq, cq->ci);
	spin_unlock_irqrestore(&cq->lock, irq_flags);
	return missed;
}

/*
 * Remove the completions of a QP that the device has destroyed, or that is in
 * state RESET, and close the gaps.  Their number would lead to no QP, or to
 * requests that have not been posted since.
 */
void qhca_cq_forget_qp(struct qhca_cq *cq, struct qhca_qp *qp)
{
	u32 pi, i, freed = 0;
	unsigned long flags;
	u64 wr_id;

	spin_lock_irqsave(&cq->lock, flags);
	for (pi = cq->ci; pi - cq->ci < BIT(cq->log_depth); pi++)
		if (!qhca_cq_peek(cq, pi))
			break;

	for (i = pi; i != cq->ci;) {
		struct qhca_cqe *cqe = qhca_cq_slot(cq, --i);
		u32 cqe_flags = le32_to_cpu(cqe->flags);
		struct qhca_cqe *to;

		if (le32_to_cpu(cqe->qpn) == qp->qpn) {
			if (cqe_flags & QHCA_CQE_SRQ)
				qhca_cqe_release(qp, le32_to_cpu(cqe->wqe),
						 cqe_flags, &wr_id);
			freed++;
		} else if (freed) {
			to = qhca_cq_slot(cq, i + freed);
			*to = *cqe;
			cqe_flags &= ~QHCA_PHASE;
			cqe_flags |= qhca_cq_phase(cq, i + freed);
			to->flags = cpu_to_le32(cqe_flags);
		}
	}
	if (freed)
		qhca_cq_store_ci(cq, cq->ci + freed);
	spin_unlock_irqrestore(&cq->lock, flags);
}
