// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues.
 */
#include "queue.h"

/* For events; the caller drops the reference. */
struct qhca_srq *qhca_srq_get(struct qhca_ib_dev *dev, u32 srqn)
{
	struct qhca_srq *srq;
	unsigned long flags;

	xa_lock_irqsave(&dev->srqs, flags);
	srq = xa_load(&dev->srqs, srqn);
	if (srq)
		refcount_inc(&srq->ref.count);
	xa_unlock_irqrestore(&dev->srqs, flags);
	return srq;
}

static struct qhca_rq_wqe *qhca_srq_slot(struct qhca_srq *srq, u32 slot)
{
	return srq->ring + ((size_t)slot << srq->log_stride);
}

static int qhca_srq_create_cmd(struct qhca_ib_dev *dev, struct qhca_srq *srq,
			       const struct ib_srq_init_attr *attr,
			       u32 rec_offset, u64 handle)
{
	struct ib_srq *ibsrq = &srq->ibsrq;
	struct qhca_srqc_sw srqc = {
		.handle = cpu_to_le64(handle),
		.rec_offset = cpu_to_le32(rec_offset),
		.pd = cpu_to_le32(to_qpd(ibsrq->pd)->pdn),
		.limit = cpu_to_le32(attr->attr.srq_limit),
		.threshold = cpu_to_le32(srq->threshold),
		.log_depth = srq->log_depth,
		.log_stride = srq->log_stride,
		.max_sge = srq->max_sge,
	};

	qhca_qbuf_encode(&srq->buf, &srqc.buf);
	if (srq->ring)
		srqc.flags |= QHCA_SRQ_KERNEL;
	if (attr->srq_type == IB_SRQT_XRC) {
		srqc.flags |= QHCA_SRQ_XRC;
		srqc.cqn = cpu_to_le32(to_qcq(ibsrq->ext.cq)->cqn);
		srqc.xrcd = cpu_to_le32(to_qxrcd(ibsrq->ext.xrc.xrcd)->xrcdn);
	}
	return qhca_create_object(dev, QHCA_CMD_CREATE_SRQ, srq->srqn, &srqc,
				  sizeof(srqc));
}

/* Give the SRQ its number, create it in the device, and let events find it. */
static int qhca_srq_start(struct qhca_ib_dev *dev, struct qhca_srq *srq,
			  const struct ib_srq_init_attr *attr, u32 rec_offset,
			  u32 threshold, u64 handle)
{
	int err;

	srq->threshold = threshold ?:
			 qhca_default_threshold(dev, QHCA_THRESHOLD_SRQ,
						srq->log_depth);

	err = qhca_index_alloc(dev->qdev, QHCA_TABLE_SRQ, &srq->srqn);
	if (err)
		return err;

	if (attr->srq_type == IB_SRQT_XRC)
		srq->ibsrq.ext.xrc.srq_num = srq->srqn;
	qhca_ref_init(&srq->ref);
	err = xa_insert_irq(&dev->srqs, srq->srqn, srq, GFP_KERNEL);
	if (err)
		goto err_index;

	err = qhca_srq_create_cmd(dev, srq, attr, rec_offset, handle);
	if (err)
		goto err_erase;
	return 0;

err_erase:
	xa_erase_irq(&dev->srqs, srq->srqn);
	qhca_ref_drain(&srq->ref);
err_index:
	qhca_index_free(dev->qdev, QHCA_TABLE_SRQ, srq->srqn);
	return err;
}

static void qhca_srq_stop(struct qhca_ib_dev *dev, struct qhca_srq *srq)
{
	qhca_destroy_object(dev, QHCA_CMD_DESTROY_SRQ, srq->srqn);
	xa_erase_irq(&dev->srqs, srq->srqn);
	qhca_ref_drain(&srq->ref);
	qhca_index_free(dev->qdev, QHCA_TABLE_SRQ, srq->srqn);
}

/* One slot is never posted; the attributes count those that may be posted. */
static void qhca_srq_grant(struct qhca_ib_dev *dev, struct qhca_srq *srq,
			   struct ib_srq_attr *attr)
{
	u32 room = BIT(srq->log_stride) - sizeof(struct qhca_rq_wqe);

	srq->max_sge = min_t(u32, room / sizeof(struct qhca_sge),
			     dev->qdev->caps.max_sge);
	attr->max_wr = BIT(srq->log_depth) - 1;
	attr->max_sge = srq->max_sge;
}

static int qhca_create_user_srq(struct qhca_ib_dev *dev, struct qhca_srq *srq,
				struct ib_srq_init_attr *attr,
				struct ib_udata *udata)
{
	const struct qhca_caps_host *caps = &dev->qdev->caps;
	struct qhca_create_srq_resp resp = {};
	struct qhca_create_srq_req req;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, threshold, 0);
	if (err)
		return err;
	if (req.reserved0)
		return -EOPNOTSUPP;
	if (req.log_depth > caps->log_max_wq_depth ||
	    req.log_stride < QHCA_MIN_LOG_RWQE_STRIDE ||
	    req.log_stride > caps->log_max_rwqe_stride ||
	    req.threshold > BIT(req.log_depth) ||
	    attr->attr.max_wr >= BIT(req.log_depth) ||
	    attr->attr.srq_limit >= BIT(req.log_depth) ||
	    !qhca_qbuf_holds(req.buf_length, 0,
			     BIT_ULL(req.log_depth + req.log_stride), 64) ||
	    !qhca_qbuf_holds(req.buf_length, req.rec_offset,
			     sizeof(struct qhca_srq_record),
			     sizeof(struct qhca_srq_record)))
		return -EINVAL;

	srq->log_depth = req.log_depth;
	srq->log_stride = req.log_stride;
	err = attr->attr.max_sge;
	qhca_srq_grant(dev, srq, &attr->attr);
	if (err > srq->max_sge)
		return -EINVAL;

	err = qhca_qbuf_pin(dev, &srq->buf, req.buf_addr, req.buf_length);
	if (err)
		return err;

	err = qhca_srq_start(dev, srq, attr, req.rec_offset, req.threshold,
			     req.handle);
	if (err)
		goto err_buf;

	resp.srqn = srq->srqn;
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_stop;
	return 0;

err_stop:
	qhca_srq_stop(dev, srq);
err_buf:
	qhca_qbuf_free(dev, &srq->buf);
	return err;
}

/* The links are kept twice: for the device, and where it cannot write. */
static void qhca_srq_link_slot(struct qhca_srq *srq, u32 slot, u32 next)
{
	srq->slots[slot].next = next;
	WRITE_ONCE(qhca_srq_slot(srq, slot)->next, cpu_to_le16(next));
}

static void qhca_srq_link_slots(struct qhca_srq *srq)
{
	u32 i;

	srq->head = 0;
	srq->tail = BIT(srq->log_depth) - 1;
	for (i = 0; i < srq->tail; i++)
		qhca_srq_link_slot(srq, i, i + 1);
}

static int qhca_create_kernel_srq(struct qhca_ib_dev *dev,
				  struct qhca_srq *srq,
				  struct ib_srq_init_attr *attr)
{
	u32 bytes, rec_offset;
	int err;

	if (attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;

	bytes = sizeof(struct qhca_rq_wqe) +
		attr->attr.max_sge * sizeof(struct qhca_sge);
	srq->log_depth = order_base_2(attr->attr.max_wr + 1);
	srq->log_stride = max(order_base_2(bytes), QHCA_MIN_LOG_RWQE_STRIDE);
	qhca_srq_grant(dev, srq, &attr->attr);

	rec_offset = ALIGN(BIT(srq->log_depth + srq->log_stride),
			   sizeof(struct qhca_srq_record));
	srq->slots = kvcalloc(BIT(srq->log_depth), sizeof(*srq->slots),
			      GFP_KERNEL);
	if (!srq->slots)
		return -ENOMEM;
	err = qhca_qbuf_alloc(dev, &srq->buf,
			      rec_offset + sizeof(struct qhca_srq_record));
	if (err)
		goto err_slots;

	srq->ring = srq->buf.cpu;
	srq->rec = srq->buf.cpu + rec_offset;
	qhca_srq_link_slots(srq);

	err = qhca_srq_start(dev, srq, attr, rec_offset, 0, 0);
	if (err)
		goto err_buf;
	return 0;

err_buf:
	qhca_qbuf_free(dev, &srq->buf);
err_slots:
	kvfree(srq->slots);
	return err;
}

int qhca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
		    struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibsrq->device);
	const struct qhca_caps_host *caps = &dev->qdev->caps;
	struct qhca_srq *srq = to_qsrq(ibsrq);

	if (attr->srq_type != IB_SRQT_BASIC && attr->srq_type != IB_SRQT_XRC)
		return -EOPNOTSUPP;
	if (attr->srq_type == IB_SRQT_XRC && !qhca_has(dev, QHCA_FEAT_XRC))
		return -EOPNOTSUPP;
	if (!attr->attr.max_wr ||
	    attr->attr.max_wr >= BIT(caps->log_max_wq_depth) ||
	    attr->attr.max_sge > caps->max_sge ||
	    attr->attr.srq_limit > attr->attr.max_wr)
		return -EINVAL;

	spin_lock_init(&srq->lock);
	mutex_init(&srq->mutex);
	if (udata)
		return qhca_create_user_srq(dev, srq, attr, udata);
	return qhca_create_kernel_srq(dev, srq, attr);
}

int qhca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibsrq->device);
	struct qhca_srq *srq = to_qsrq(ibsrq);

	qhca_srq_stop(dev, srq);
	qhca_qbuf_free(dev, &srq->buf);
	kvfree(srq->slots);
	mutex_destroy(&srq->mutex);
	return 0;
}

static bool qhca_srq_geometry_ok(struct qhca_ib_dev *dev,
				 const struct qhca_srq *srq, u32 max_wr,
				 const struct qhca_modify_srq_req *req)
{
	return req->log_depth >= srq->log_depth &&
	       req->log_depth <= dev->qdev->caps.log_max_wq_depth &&
	       max_wr && max_wr < BIT(req->log_depth) &&
	       req->threshold <= BIT(req->log_depth) &&
	       qhca_qbuf_holds(req->buf_length, 0,
			       BIT_ULL(req->log_depth + srq->log_stride), 64) &&
	       qhca_qbuf_holds(req->buf_length, req->rec_offset,
			       sizeof(struct qhca_srq_record),
			       sizeof(struct qhca_srq_record));
}

/*
 * Only processes resize SRQs; kernel consumers do not.  The process keeps the
 * contents of both buffers equal until the command has completed, which is when
 * the device uses the new one.
 */
static int qhca_resize_srq(struct qhca_ib_dev *dev, struct qhca_srq *srq,
			   u32 max_wr, struct ib_udata *udata)
{
	struct qhca_modify_srq_req req;
	struct qhca_srqc_sw srqc = {};
	struct qhca_qbuf buf;
	u32 threshold;
	int err;

	if (!udata || !qhca_has(dev, QHCA_FEAT_SRQ_RESIZE))
		return -EOPNOTSUPP;

	err = ib_copy_validate_udata_in_cm(udata, req, threshold, 0);
	if (err)
		return err;
	if (!qhca_srq_geometry_ok(dev, srq, max_wr, &req))
		return -EINVAL;

	err = qhca_qbuf_pin(dev, &buf, req.buf_addr, req.buf_length);
	if (err)
		return err;

	threshold = req.threshold ?: qhca_default_threshold(dev,
							    QHCA_THRESHOLD_SRQ,
							    req.log_depth);
	qhca_qbuf_encode(&buf, &srqc.buf);
	srqc.rec_offset = cpu_to_le32(req.rec_offset);
	srqc.threshold = cpu_to_le32(threshold);
	srqc.log_depth = req.log_depth;

	err = qhca_create_object(dev, QHCA_CMD_RESIZE_SRQ, srq->srqn, &srqc,
				 sizeof(srqc));
	if (!err) {
		swap(srq->buf, buf);
		srq->threshold = threshold;
		WRITE_ONCE(srq->log_depth, req.log_depth);
	}
	qhca_qbuf_free(dev, &buf);
	return err;
}

static int qhca_set_srq_limit(struct qhca_ib_dev *dev, struct qhca_srq *srq,
			      u32 limit)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_MODIFY_SRQ,
		.index = srq->srqn,
		.param = limit,
	};

	if (limit >= BIT(srq->log_depth))
		return -EINVAL;
	return qhca_cmd_exec(dev->qdev, &cmd);
}

int qhca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		    enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibsrq->device);
	struct qhca_srq *srq = to_qsrq(ibsrq);
	int err = 0;

	if (mask & ~(IB_SRQ_LIMIT | IB_SRQ_MAX_WR))
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_MAX_WR)) {
		err = ib_no_udata_io(udata);
		if (err)
			return err;
	}

	mutex_lock(&srq->mutex);
	if (mask & IB_SRQ_MAX_WR)
		err = qhca_resize_srq(dev, srq, attr->max_wr, udata);
	if (!err && mask & IB_SRQ_LIMIT)
		err = qhca_set_srq_limit(dev, srq, attr->srq_limit);
	mutex_unlock(&srq->mutex);
	return err;
}

/* The context as the device has it. */
int qhca_srq_query(struct qhca_srq *srq, struct qhca_srqc *srqc)
{
	struct qhca_ib_dev *dev = to_qhca(srq->ibsrq.device);
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_QUERY_SRQ,
		.index = srq->srqn,
		.out = srqc,
		.out_len = sizeof(*srqc),
	};

	return qhca_cmd_exec(dev->qdev, &cmd);
}

int qhca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct qhca_srq *srq = to_qsrq(ibsrq);
	struct qhca_srqc srqc;
	int err;

	err = qhca_srq_query(srq, &srqc);
	if (err)
		return err;

	attr->max_wr = BIT(READ_ONCE(srq->log_depth)) - 1;
	attr->max_sge = srq->max_sge;
	attr->srq_limit = le32_to_cpu(srqc.sw.limit);
	return 0;
}

/*
 * The completion of a request frees its slot, which goes to the end of the
 * list.  Returns false if the slot was not posted to the device.
 */
bool qhca_srq_free_slot(struct qhca_srq *srq, u32 slot, u64 *wr_id)
{
	unsigned long flags;
	bool posted;

	if (slot >= BIT(srq->log_depth))
		return false;

	spin_lock_irqsave(&srq->lock, flags);
	posted = srq->slots[slot].posted;
	if (posted) {
		*wr_id = srq->slots[slot].wr_id;
		srq->slots[slot].posted = false;
		qhca_srq_link_slot(srq, srq->tail, slot);
		srq->tail = slot;
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	return posted;
}

int qhca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		       const struct ib_recv_wr **bad_wr)
{
	struct qhca_srq *srq = to_qsrq(ibsrq);
	struct qhca_srq_slot *slot;
	unsigned long flags;
	int err = 0;
	u32 pi;

	/* A process posts to its own slots; the kernel cannot help it. */
	if (unlikely(!srq->ring)) {
		*bad_wr = wr;
		return -EINVAL;
	}

	spin_lock_irqsave(&srq->lock, flags);
	for (pi = srq->pi; wr; wr = wr->next) {
		if (unlikely(srq->head == srq->tail))
			err = -ENOMEM;
		else if (unlikely(wr->num_sge > srq->max_sge ||
				  wr->num_sge < 0))
			err = -EINVAL;
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
		qhca_build_rwqe(qhca_srq_slot(srq, srq->head), wr);
		slot = &srq->slots[srq->head];
		slot->wr_id = wr->wr_id;
		slot->posted = true;
		srq->head = slot->next;
		srq->pi++;
	}
	if (likely(pi != srq->pi)) {
		dma_wmb();
		WRITE_ONCE(srq->rec->pi, cpu_to_le32(srq->pi));
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	return err;
}
