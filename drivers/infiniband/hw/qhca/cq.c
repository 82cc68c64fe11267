// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: creation, resize, events, and polling by the kernel.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>

#include "queue.h"

static_assert((int)QHCA_WC_WR_FLUSH_ERR == (int)IB_WC_WR_FLUSH_ERR);
static_assert((int)QHCA_WC_REM_ACCESS_ERR == (int)IB_WC_REM_ACCESS_ERR);
static_assert((int)QHCA_WC_REM_ABORT_ERR == (int)IB_WC_REM_ABORT_ERR);
static_assert((int)QHCA_WC_GENERAL_ERR == (int)IB_WC_GENERAL_ERR);

/* For events; the caller drops the reference. */
struct qhca_cq *qhca_cq_get(struct qhca_ib_dev *dev, u32 cqn)
{
	struct qhca_cq *cq;
	unsigned long flags;

	xa_lock_irqsave(&dev->cqs, flags);
	cq = xa_load(&dev->cqs, cqn);
	if (cq)
		refcount_inc(&cq->ref.count);
	xa_unlock_irqrestore(&dev->cqs, flags);
	return cq;
}

/*
 * May completions arrive here?  A consumer of the kernel destroys its QPs before
 * it stops polling, and then frees what the handler uses before it destroys the
 * CQ (ib_free_cq()).  So the handler of a CQ whose last QP has gone is not called
 * any more, whatever arrives late; see qhca_cq_quiesce().  Processes' CQs have
 * handlers of the core, which may be called at any time.
 */
static bool qhca_cq_is_used(const struct qhca_cq *cq)
{
	return !cq->ring || READ_ONCE(cq->num_qps);
}

/* The same for an event, which is remembered if not: it has disarmed the CQ. */
static bool qhca_cq_take_event(struct qhca_cq *cq)
{
	unsigned long flags;
	bool used;

	if (likely(qhca_cq_is_used(cq)))
		return true;

	spin_lock_irqsave(&cq->lock, flags);
	used = cq->num_qps;
	if (!used)
		cq->missed = true;
	spin_unlock_irqrestore(&cq->lock, flags);
	return used;
}

/**
 * qhca_cq_join - note one more use of a kernel CQ by a QP
 * @dev: its device
 * @cq:  the CQ, with its lock held
 *
 * Its consumer armed it once and waits for the handler.  If an event came while
 * no handler was called, the CQ is armed again in the consumer's place.
 */
void qhca_cq_join(struct qhca_ib_dev *dev, struct qhca_cq *cq)
{
	lockdep_assert_held(&cq->lock);
	WRITE_ONCE(cq->num_qps, cq->num_qps + 1);
	if (!cq->missed)
		return;
	cq->missed = false;
	if (!qhca_is_dead(dev))
		qhca_ring(dev->qdev, QHCA_DB_CQ_ARM,
			  cq->cqn | (u64)cq->ci << 32);
}

/* A completion event; qhca_eq_synchronize() keeps the CQ alive. */
void qhca_cq_event(void *ctx, const struct qhca_eqe *eqe)
{
	struct qhca_ib_dev *dev = ctx;
	struct qhca_cq *cq;

	if (eqe->type != QHCA_EVENT_COMPLETION)
		return;

	rcu_read_lock();
	cq = xa_load(&dev->cqs, le32_to_cpu(eqe->number));
	if (cq && cq->ibcq.comp_handler && qhca_cq_take_event(cq))
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
	rcu_read_unlock();
}

/**
 * qhca_cq_quiesce - wait for handlers of a CQ that no QP uses any more
 * @dev: its device
 * @cq:  kernel CQ whose @num_qps has become 0
 *
 * Afterwards no handler is running, and none will be called.  Sleeps.
 */
void qhca_cq_quiesce(struct qhca_ib_dev *dev, struct qhca_cq *cq)
{
	qhca_eq_synchronize(cq->eq);
	mutex_lock(&dev->flush_mutex);
	mutex_unlock(&dev->flush_mutex);
}

/*
 * A CQ that its consumer polls when he likes (IB_POLL_DIRECT) has a handler that
 * warns when it is called, but on a living device no such CQ is ever armed.
 */
static bool qhca_cq_is_direct(const struct qhca_cq *cq)
{
	return cq->ibcq.wc && cq->ibcq.poll_ctx == IB_POLL_DIRECT;
}

/*
 * The device is dead.  What its QPs still had to do is flushed by the pollers
 * of their CQs, who have to be woken for it.  The mutex is for those who must
 * not free what a handler uses, see qhca_cq_quiesce(); handlers may be called in
 * interrupts, so they do not wait for such a one.
 */
void qhca_flush_work(struct work_struct *work)
{
	struct qhca_ib_dev *dev = container_of(work, struct qhca_ib_dev,
					       flush_work);
	struct qhca_cq *cq;
	unsigned long cqn;

	mutex_lock(&dev->flush_mutex);
	xa_for_each(&dev->cqs, cqn, cq) {
		cq = qhca_cq_get(dev, cqn);
		if (!cq)
			continue;
		if (cq->ring && qhca_cq_is_used(cq) &&
		    cq->ibcq.comp_handler && !qhca_cq_is_direct(cq))
			cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
		qhca_ref_put(&cq->ref);
	}
	mutex_unlock(&dev->flush_mutex);

	qhca_qp_flush_events(dev);
}

/* ------------------------------------------------------------------------
 * Creation and destruction
 */

static u32 qhca_cq_record_offset(u8 log_depth)
{
	return ALIGN(sizeof(struct qhca_cqe) << log_depth,
		     sizeof(struct qhca_cq_record));
}

static int qhca_cq_alloc_kernel(struct qhca_ib_dev *dev, struct qhca_cq *cq,
				u32 *rec_offset)
{
	int err;

	*rec_offset = qhca_cq_record_offset(cq->log_depth);
	err = qhca_qbuf_alloc(dev, &cq->buf,
			      *rec_offset + sizeof(struct qhca_cq_record));
	if (err)
		return err;

	cq->ring = cq->buf.cpu;
	cq->rec = cq->buf.cpu + *rec_offset;
	return 0;
}

static bool qhca_cq_geometry_ok(struct qhca_ib_dev *dev, u32 log_depth,
				u32 cqe, u32 length, u32 rec_offset)
{
	return log_depth <= dev->qdev->caps.log_max_cq_depth &&
	       cqe <= BIT(log_depth) &&
	       qhca_qbuf_holds(length, 0,
			       (u64)sizeof(struct qhca_cqe) << log_depth, 64) &&
	       qhca_qbuf_holds(length, rec_offset,
			       sizeof(struct qhca_cq_record),
			       sizeof(struct qhca_cq_record));
}

static int qhca_cq_create_cmd(struct qhca_ib_dev *dev, struct qhca_cq *cq,
			      u32 rec_offset, u8 flags)
{
	struct qhca_cqc_sw cqc = {
		.rec_offset = cpu_to_le32(rec_offset),
		.eqn = cpu_to_le32(qhca_eq_number(cq->eq)),
		.db_page = cpu_to_le32(cq->db_page),
		.threshold = cpu_to_le32(cq->threshold),
		.log_depth = cq->log_depth,
		.flags = flags,
	};

	qhca_qbuf_encode(&cq->buf, &cqc.buf);
	return qhca_create_object(dev, QHCA_CMD_CREATE_CQ, cq->cqn, &cqc,
				  sizeof(cqc));
}

/* Give the CQ its number, tell the device of it, make it known to events. */
static int qhca_cq_start(struct qhca_ib_dev *dev, struct qhca_cq *cq,
			 u32 rec_offset, u32 threshold, u8 flags)
{
	int err;

	cq->threshold = threshold ?: qhca_default_threshold(dev,
							   QHCA_THRESHOLD_CQ,
							   cq->log_depth);

	err = qhca_index_alloc(dev->qdev, QHCA_TABLE_CQ, &cq->cqn);
	if (err)
		return err;

	qhca_ref_init(&cq->ref);
	err = xa_insert_irq(&dev->cqs, cq->cqn, cq, GFP_KERNEL);
	if (err)
		goto err_index;

	err = qhca_cq_create_cmd(dev, cq, rec_offset, flags);
	if (err)
		goto err_erase;
	return 0;

err_erase:
	xa_erase_irq(&dev->cqs, cq->cqn);
	qhca_eq_synchronize(cq->eq);
	qhca_ref_drain(&cq->ref);
err_index:
	qhca_index_free(dev->qdev, QHCA_TABLE_CQ, cq->cqn);
	return err;
}

static void qhca_cq_stop(struct qhca_ib_dev *dev, struct qhca_cq *cq)
{
	qhca_destroy_object(dev, QHCA_CMD_DESTROY_CQ, cq->cqn);
	xa_erase_irq(&dev->cqs, cq->cqn);
	qhca_eq_synchronize(cq->eq);
	qhca_ref_drain(&cq->ref);
	qhca_index_free(dev->qdev, QHCA_TABLE_CQ, cq->cqn);
}

static int qhca_create_user_cq(struct qhca_ib_dev *dev, struct qhca_cq *cq,
			       const struct ib_cq_init_attr *attr,
			       struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = &attrs->driver_udata;
	struct qhca_create_cq_resp resp = {};
	struct qhca_create_cq_req req;
	struct qhca_ucontext *uc;
	u8 flags = 0;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, reserved, 0);
	if (err)
		return err;
	if (req.flags || req.reserved)
		return -EOPNOTSUPP;
	if (!qhca_cq_geometry_ok(dev, req.log_depth, attr->cqe, req.buf_length,
				 req.rec_offset) ||
	    req.threshold > BIT(req.log_depth))
		return -EINVAL;

	uc = rdma_udata_to_drv_context(udata, struct qhca_ucontext, ibuc);
	cq->db_page = uc->db_page;
	cq->log_depth = req.log_depth;
	if (attr->flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN)
		flags |= QHCA_CQ_IGNORE_OVERRUN;

	err = qhca_qbuf_pin_cq(dev, &cq->buf, attrs, req.buf_addr,
			       req.buf_length);
	if (err)
		return err;

	err = qhca_cq_start(dev, cq, req.rec_offset, req.threshold, flags);
	if (err)
		goto err_buf;

	resp.cqn = cq->cqn;
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_stop;
	return 0;

err_stop:
	qhca_cq_stop(dev, cq);
err_buf:
	qhca_qbuf_free(dev, &cq->buf);
	return err;
}

static int qhca_create_kernel_cq(struct qhca_ib_dev *dev, struct qhca_cq *cq,
				 const struct ib_cq_init_attr *attr)
{
	u32 rec_offset;
	int err;

	if (attr->cqe > BIT(dev->qdev->caps.log_max_cq_depth))
		return -EINVAL;
	cq->log_depth = order_base_2(attr->cqe);

	err = qhca_cq_alloc_kernel(dev, cq, &rec_offset);
	if (err)
		return err;

	err = qhca_cq_start(dev, cq, rec_offset, 0, 0);
	if (err)
		qhca_qbuf_free(dev, &cq->buf);
	return err;
}

int qhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		   struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dev *dev = to_qhca(ibcq->device);
	struct qhca_cq *cq = to_qcq(ibcq);
	int err;

	if (attr->flags & ~(u32)(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION |
				 IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN))
		return -EOPNOTSUPP;

	cq->eq = dev->eqs[attr->comp_vector % dev->num_eqs];
	mutex_init(&cq->mutex);
	spin_lock_init(&cq->lock);
	INIT_LIST_HEAD(&cq->send_qps);
	INIT_LIST_HEAD(&cq->recv_qps);

	if (attrs)
		err = qhca_create_user_cq(dev, cq, attr, attrs);
	else
		err = qhca_create_kernel_cq(dev, cq, attr);
	if (err)
		return err;

	ibcq->cqe = BIT(cq->log_depth);
	return 0;
}

int qhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibcq->device);
	struct qhca_cq *cq = to_qcq(ibcq);

	qhca_cq_stop(dev, cq);
	qhca_qbuf_free(dev, &cq->buf);
	mutex_destroy(&cq->mutex);
	return 0;
}

static int qhca_cq_modify_cmd(struct qhca_ib_dev *dev, struct qhca_cq *cq,
			      const struct qhca_cqc_sw *cqc, u32 attrs)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_MODIFY_CQ,
		.index = cq->cqn,
		.param = attrs,
		.in = cqc,
		.in_len = sizeof(*cqc),
	};

	return qhca_cmd_exec(dev->qdev, &cmd);
}

/*
 * Users only: kernel consumers do not resize.  When the command is done the
 * device writes to the new ring; what is left in the old one the process
 * reads from its own memory, which need not be pinned for that.
 */
int qhca_resize_cq(struct ib_cq *ibcq, QHCA_RESIZE_CQE cqe,
		   struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibcq->device);
	struct qhca_cq *cq = to_qcq(ibcq);
	struct qhca_resize_cq_req req;
	struct qhca_cqc_sw cqc = {};
	struct qhca_qbuf buf;
	u32 threshold;
	int err;

	if (!udata)
		return -EOPNOTSUPP;

	err = ib_copy_validate_udata_in(udata, req, threshold);
	if (err)
		return err;
	if (!qhca_cq_geometry_ok(dev, req.log_depth, cqe, req.buf_length,
				 req.rec_offset) ||
	    req.threshold > BIT(req.log_depth))
		return -EINVAL;
	threshold = req.threshold ?: qhca_default_threshold(dev,
							   QHCA_THRESHOLD_CQ,
							   req.log_depth);

	err = qhca_qbuf_pin(dev, &buf, req.buf_addr, req.buf_length);
	if (err)
		return err;

	qhca_qbuf_encode(&buf, &cqc.buf);
	cqc.rec_offset = cpu_to_le32(req.rec_offset);
	cqc.log_depth = req.log_depth;
	cqc.threshold = cpu_to_le32(threshold);

	mutex_lock(&cq->mutex);
	err = qhca_cq_modify_cmd(dev, cq, &cqc, QHCA_CQ_ATTR_RESIZE);
	if (!err) {
		swap(cq->buf, buf);
		cq->log_depth = req.log_depth;
		cq->threshold = threshold;
		ibcq->cqe = BIT(req.log_depth);
	}
	mutex_unlock(&cq->mutex);

	qhca_qbuf_free(dev, &buf);
	return err ? err : ib_respond_empty_udata(udata);
}

int qhca_modify_cq(struct ib_cq *ibcq, u16 count, u16 usec)
{
	struct qhca_ib_dev *dev = to_qhca(ibcq->device);
	struct qhca_cq *cq = to_qcq(ibcq);
	struct qhca_cqc_sw cqc = {
		.moder_count = cpu_to_le16(count),
		.moder_usec = cpu_to_le16(usec),
	};
	int err;

	mutex_lock(&cq->mutex);
	err = qhca_cq_modify_cmd(dev, cq, &cqc, QHCA_CQ_ATTR_MODERATION);
	if (!err) {
		cq->moder_count = count;
		cq->moder_usec = usec;
	}
	mutex_unlock(&cq->mutex);
	return err;
}

/* ------------------------------------------------------------------------
 * Polling
 */

static struct qhca_cqe *qhca_cq_slot(struct qhca_cq *cq, u32 index)
{
	return &cq->ring[index & (BIT(cq->log_depth) - 1)];
}

static u32 qhca_cq_phase(struct qhca_cq *cq, u32 index)
{
	return index & BIT(cq->log_depth) ? 0 : QHCA_PHASE;
}

/* The CQE at @index if the device has written it, complete and readable. */
static struct qhca_cqe *qhca_cq_peek(struct qhca_cq *cq, u32 index)
{
	struct qhca_cqe *cqe = qhca_cq_slot(cq, index);
	u32 flags = le32_to_cpu(READ_ONCE(cqe->flags));

	if ((flags & QHCA_PHASE) != qhca_cq_phase(cq, index))
		return NULL;

	/* The phase was written last; what it covers is read after it. */
	dma_rmb();
	return cqe;
}

/* Slots up to @ci are the device's again. */
static void qhca_cq_store_ci(struct qhca_cq *cq, u32 ci)
{
	cq->ci = ci;
	/* Loads from the slots, and the caller's copy of them, come first. */
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
 * The kernel QP that a CQE is about.  The number is the device's word, so it is
 * looked up, and must be that of a QP that completes such requests here.  The QP
 * stays as long as the CQ's lock is held: having left the xarray, it has to
 * leave its CQs, which takes that lock, before it is freed.
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

/* Entry @index of a work queue is done, and those before it. */
static bool qhca_wq_complete(struct qhca_wq *wq, u32 index, u64 *wr_id)
{
	/* Pairs with the release of those who post. */
	u32 pi = smp_load_acquire(&wq->pi);

	if (index - wq->ci >= pi - wq->ci)
		return false;
	*wr_id = wq->wr_id[index & (wq->depth - 1)];
	WRITE_ONCE(wq->ci, index + 1);
	return true;
}

/*
 * Return the slot that a CQE is about to its queue, and find the request that
 * was in it.  false: the queue has posted no such request.
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
 * A completion of a request that nobody has posted.  The one that it stands for
 * would never complete, so the device is done for, and its consumers find their
 * requests flushed.
 */
static void qhca_cq_bad_cqe(struct qhca_cq *cq, const struct qhca_cqe *cqe)
{
	struct qhca_ib_dev *dev = to_qhca(cq->ibcq.device);

	/* It may have been on its way when what it is about was flushed. */
	if (qhca_is_dead(dev))
		return;

	ibdev_err_ratelimited(&dev->ibdev,
			      "cq %u: completion of nothing that was posted: qp %#x, entry %#x, flags %#x\n",
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

		/* First, or a post that uses the slot could overrun the CQ. */
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

/* One queue of a dead device's QP: complete what was posted to it. */
static int qhca_flush_wq(struct qhca_qp *qp, struct qhca_wq *wq, int room,
			 struct ib_wc *wc)
{
	/* Entries up to pi are complete. */
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

	/* A process that asks the kernel to poll its own ring gets nothing. */
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
 * The device clears the word before it raises the event.  So one that is armed
 * for as much has yet to raise it, and needs no doorbell.
 */
static bool qhca_cq_is_armed(struct qhca_cq *cq, bool solicited)
{
	u32 armed;

	/* The ring was read before. */
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
 * A QP is gone from the device, or in state RESET.  Take its completions out of
 * the ring, since their number would lead to no QP or to requests that it has
 * not posted, and close the gaps.
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
