// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: creation, resize, events.
 */
#include "queue.h"

/* Look a CQ up for an event.  The caller drops the reference. */
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
 * May completions arrive at this CQ?  A consumer in the kernel destroys its QPs
 * before it stops polling, and then frees what the handler uses before it
 * destroys the CQ (ib_free_cq()).  So the driver does not call the handler of a
 * CQ whose last QP is gone, even if an event arrives late; see
 * qhca_cq_quiesce().  The CQs of processes have handlers of the core, which may
 * be called at any time.
 */
static bool qhca_cq_is_used(const struct qhca_cq *cq)
{
	return !cq->ring || READ_ONCE(cq->num_qps);
}

/*
 * May the handler be called for an event?  If not, the event is remembered,
 * since it has disarmed the CQ.
 */
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
 * The consumer has armed the CQ once and waits for the handler.  If an event
 * has arrived while the handler could not be called, the driver arms the CQ
 * again for the consumer.
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

/* A completion event.  Destruction waits for it by qhca_eq_synchronize(). */
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
 * When this returns no handler is running, and none will be called.  Sleeps.
 */
void qhca_cq_quiesce(struct qhca_ib_dev *dev, struct qhca_cq *cq)
{
	qhca_eq_synchronize(cq->eq);
	mutex_lock(&dev->flush_mutex);
	mutex_unlock(&dev->flush_mutex);
}

/*
 * A CQ that its consumer polls directly (IB_POLL_DIRECT) has a handler that
 * warns when it is called.  On a living device no such CQ is ever armed, and
 * after the device's death qhca_flush_work() leaves it out.
 */
static bool qhca_cq_is_direct(const struct qhca_cq *cq)
{
	return cq->ibcq.wc && cq->ibcq.poll_ctx == IB_POLL_DIRECT;
}

/*
 * The device is dead.  Whoever polls a CQ completes what was posted to its QPs,
 * so this calls the handlers, which poll.  qhca_cq_quiesce() takes the mutex
 * before the consumer may free what a handler uses.  Handlers may be called in
 * interrupts, so they never wait for a caller of qhca_cq_quiesce().
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

/* Give the CQ its number, create it in the device, and let events find it. */
static int qhca_cq_start(struct qhca_ib_dev *dev, struct qhca_cq *cq,
			 u32 rec_offset, u32 threshold, u8 flags)
{
	int err;

	cq->threshold = threshold ?:
			qhca_default_threshold(dev, QHCA_THRESHOLD_CQ,
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
 * Only processes resize CQs; kernel consumers do not.  When the command has
 * completed, the device writes to the new ring.  The process reads what is left
 * in the old ring, which need not be pinned for that.
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
		cq->threshold = threshold;
		cq->log_depth = req.log_depth;
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
