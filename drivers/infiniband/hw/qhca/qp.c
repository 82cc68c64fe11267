// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: creation and destruction.
 */
#include "queue.h"

/* Look a QP up for an event.  The caller drops the reference. */
struct qhca_qp *qhca_qp_get(struct qhca_ib_dev *dev, u32 qpn)
{
	struct qhca_qp *qp;
	unsigned long flags;

	xa_lock_irqsave(&dev->qps, flags);
	qp = xa_load(&dev->qps, qpn);
	if (qp)
		refcount_inc(&qp->ref.count);
	xa_unlock_irqrestore(&dev->qps, flags);
	return qp;
}

struct qhca_qp_layout {
	u32 length;
	u32 sq_offset;
	u32 rq_offset;
	u32 rec_offset;
	u32 rq_threshold;
	u8 sq_log_depth;
	u8 sq_log_stride;
	u8 rq_log_depth;
	u8 rq_log_stride;
};

static int qhca_qp_hw_type(struct qhca_ib_dev *dev, enum ib_qp_type type)
{
	static const struct {
		u8 hw;
		u64 feature;
	} types[] = {
		[IB_QPT_GSI] = { QHCA_QPT_GSI, QHCA_FEAT_UD },
		[IB_QPT_RC] = { QHCA_QPT_RC, QHCA_FEAT_RC },
		[IB_QPT_UC] = { QHCA_QPT_UC, QHCA_FEAT_UC },
		[IB_QPT_UD] = { QHCA_QPT_UD, QHCA_FEAT_UD },
		[IB_QPT_XRC_INI] = { QHCA_QPT_XRC_INI, QHCA_FEAT_XRC },
		[IB_QPT_XRC_TGT] = { QHCA_QPT_XRC_TGT, QHCA_FEAT_XRC },
		[IB_QPT_RAW_PACKET] = { QHCA_QPT_RAW, QHCA_FEAT_RAW_PACKET },
	};

	if (type >= ARRAY_SIZE(types) || !types[type].feature ||
	    !qhca_has(dev, types[type].feature))
		return -EOPNOTSUPP;
	return types[type].hw;
}

static int qhca_qp_check_cap(struct qhca_ib_dev *dev,
			     const struct ib_qp_init_attr *attr)
{
	const struct qhca_caps_host *caps = &dev->qdev->caps;
	const struct ib_qp_cap *cap = &attr->cap;

	if (cap->max_send_wr > BIT(caps->log_max_wq_depth) ||
	    cap->max_send_sge > caps->max_sge ||
	    cap->max_inline_data > caps->max_inline)
		return -EINVAL;
	if (!attr->srq && (cap->max_recv_wr > BIT(caps->log_max_wq_depth) ||
			   cap->max_recv_sge > caps->max_sge))
		return -EINVAL;
	return 0;
}

/* Set the flags that say which queues the QP has, and its other properties. */
static int qhca_qp_init_flags(struct qhca_qp *qp,
			      const struct ib_qp_init_attr *attr)
{
	bool target = attr->qp_type == IB_QPT_XRC_TGT;

	if (attr->create_flags & ~(u32)IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)
		return -EOPNOTSUPP;
	if (attr->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK)
		qp->flags |= QHCA_QP_MCAST_NO_LOOP;
	if (attr->sq_sig_type == IB_SIGNAL_ALL_WR)
		qp->flags |= QHCA_QP_SIG_ALL;
	if (!qp->is_user && !target)
		qp->flags |= QHCA_QP_KERNEL;

	/* A kernel QP always has a send queue, to ring when it is in error. */
	if (!target && (attr->cap.max_send_wr || !qp->is_user))
		qp->flags |= QHCA_QP_HAS_SQ;
	if (!qhca_qp_is_xrc(qp)) {
		if (attr->srq)
			qp->flags |= QHCA_QP_SRQ;
		else if (attr->cap.max_recv_wr)
			qp->flags |= QHCA_QP_HAS_RQ;
	}

	if ((qp->flags & QHCA_QP_HAS_SQ && !attr->send_cq) ||
	    (!qhca_qp_is_xrc(qp) && !attr->recv_cq) ||
	    (attr->qp_type == IB_QPT_XRC_TGT && !attr->xrcd))
		return -EINVAL;
	return 0;
}

static int qhca_qp_layout_kernel(struct qhca_ib_dev *dev, struct qhca_qp *qp,
				 const struct ib_qp_cap *cap,
				 struct qhca_qp_layout *lay)
{
	const struct qhca_caps_host *caps = &dev->qdev->caps;
	u64 sq_size = 0, rq_size = 0, end;
	u32 bytes;

	if (qp->flags & QHCA_QP_HAS_SQ) {
		bytes = sizeof(struct qhca_sq_wqe) +
			max_t(u32, cap->max_send_sge * sizeof(struct qhca_sge),
			      cap->max_inline_data);
		lay->sq_log_depth = order_base_2(max(cap->max_send_wr, 1u));
		lay->sq_log_stride = max(order_base_2(bytes),
					 QHCA_MIN_LOG_WQE_STRIDE);
		if (lay->sq_log_stride > caps->log_max_wqe_stride)
			return -EINVAL;
		sq_size = BIT_ULL(lay->sq_log_depth + lay->sq_log_stride);
	}

	if (qp->flags & QHCA_QP_HAS_RQ) {
		bytes = sizeof(struct qhca_rq_wqe) +
			cap->max_recv_sge * sizeof(struct qhca_sge);
		lay->rq_log_depth = order_base_2(cap->max_recv_wr);
		lay->rq_log_stride = max(order_base_2(bytes),
					 QHCA_MIN_LOG_RWQE_STRIDE);
		if (lay->rq_log_stride > caps->log_max_rwqe_stride)
			return -EINVAL;
		rq_size = BIT_ULL(lay->rq_log_depth + lay->rq_log_stride);
		lay->rq_threshold = qhca_default_threshold(dev,
							   QHCA_THRESHOLD_RQ,
							   lay->rq_log_depth);
	}

	end = ALIGN(sq_size, BIT_ULL(lay->rq_log_stride));
	lay->rq_offset = end;
	end = ALIGN(end + rq_size, sizeof(struct qhca_qp_record));
	lay->rec_offset = end;
	end += sizeof(struct qhca_qp_record);
	if (end > U32_MAX)
		return -EINVAL;
	lay->length = end;
	return 0;
}

static int qhca_qp_layout_user(struct qhca_ib_dev *dev, struct qhca_qp *qp,
			       const struct ib_qp_cap *cap,
			       const struct qhca_create_qp_req *req,
			       struct qhca_qp_layout *lay)
{
	const struct qhca_caps_host *caps = &dev->qdev->caps;

	lay->length = req->buf_length;
	lay->rec_offset = req->rec_offset;
	if (!qhca_qbuf_holds(lay->length, lay->rec_offset,
			     sizeof(struct qhca_qp_record),
			     sizeof(struct qhca_qp_record)))
		return -EINVAL;

	if (qp->flags & QHCA_QP_HAS_SQ) {
		if (req->sq_log_depth > caps->log_max_wq_depth ||
		    req->sq_log_stride < QHCA_MIN_LOG_WQE_STRIDE ||
		    req->sq_log_stride > caps->log_max_wqe_stride ||
		    cap->max_send_wr > BIT(req->sq_log_depth) ||
		    !qhca_qbuf_holds(lay->length, req->sq_offset,
				     BIT_ULL(req->sq_log_depth +
					     req->sq_log_stride),
				     BIT(req->sq_log_stride)))
			return -EINVAL;
		lay->sq_offset = req->sq_offset;
		lay->sq_log_depth = req->sq_log_depth;
		lay->sq_log_stride = req->sq_log_stride;
	}

	if (qp->flags & QHCA_QP_HAS_RQ) {
		if (req->rq_log_depth > caps->log_max_wq_depth ||
		    req->rq_log_stride < QHCA_MIN_LOG_RWQE_STRIDE ||
		    req->rq_log_stride > caps->log_max_rwqe_stride ||
		    cap->max_recv_wr > BIT(req->rq_log_depth) ||
		    req->rq_threshold > BIT(req->rq_log_depth) ||
		    !qhca_qbuf_holds(lay->length, req->rq_offset,
				     BIT_ULL(req->rq_log_depth +
					     req->rq_log_stride),
				     BIT(req->rq_log_stride)))
			return -EINVAL;
		lay->rq_offset = req->rq_offset;
		lay->rq_log_depth = req->rq_log_depth;
		lay->rq_log_stride = req->rq_log_stride;
		lay->rq_threshold = req->rq_threshold ?:
				    qhca_default_threshold(dev,
							   QHCA_THRESHOLD_RQ,
							   req->rq_log_depth);
	}
	return 0;
}

/* Grant as much as the strides have room for; refuse what exceeds it. */
static int qhca_qp_grant(struct qhca_ib_dev *dev, struct qhca_qp *qp,
			 const struct qhca_qp_layout *lay,
			 struct ib_qp_cap *cap)
{
	const struct qhca_caps_host *caps = &dev->qdev->caps;
	struct ib_qp_cap granted = {};
	u32 room;

	if (qp->flags & QHCA_QP_HAS_SQ) {
		room = BIT(lay->sq_log_stride) - sizeof(struct qhca_sq_wqe);
		granted.max_send_wr = BIT(lay->sq_log_depth);
		granted.max_inline_data = min(room, caps->max_inline);
		granted.max_send_sge = min_t(u32, caps->max_sge,
					     room / sizeof(struct qhca_sge));
	}
	if (qp->flags & QHCA_QP_HAS_RQ) {
		room = BIT(lay->rq_log_stride) - sizeof(struct qhca_rq_wqe);
		granted.max_recv_wr = BIT(lay->rq_log_depth);
		granted.max_recv_sge = min_t(u32, caps->max_sge,
					     room / sizeof(struct qhca_sge));
	}

	if (qp->flags & QHCA_QP_HAS_SQ &&
	    (cap->max_inline_data > granted.max_inline_data ||
	     cap->max_send_sge > granted.max_send_sge))
		return -EINVAL;
	if (qp->flags & QHCA_QP_HAS_RQ &&
	    cap->max_recv_sge > granted.max_recv_sge)
		return -EINVAL;

	qp->sq.depth = granted.max_send_wr;
	qp->sq.log_stride = lay->sq_log_stride;
	qp->sq.max_sge = granted.max_send_sge;
	qp->rq.depth = granted.max_recv_wr;
	qp->rq.log_stride = lay->rq_log_stride;
	qp->rq.max_sge = granted.max_recv_sge;
	qp->rq_threshold = lay->rq_threshold;
	qp->max_inline = granted.max_inline_data;
	*cap = granted;
	return 0;
}

static int qhca_qp_create_cmd(struct qhca_ib_dev *dev, struct qhca_qp *qp,
			      const struct ib_qp_init_attr *attr,
			      const struct qhca_qp_layout *lay, u64 handle)
{
	struct qhca_qpc_sw qpc = {
		.handle = cpu_to_le64(handle),
		.sq_offset = cpu_to_le32(lay->sq_offset),
		.rq_offset = cpu_to_le32(lay->rq_offset),
		.rec_offset = cpu_to_le32(lay->rec_offset),
		.type = qhca_qp_hw_type(dev, attr->qp_type),
		.state = QHCA_QPS_RESET,
		.flags = cpu_to_le16(qp->flags),
		.sq_log_depth = lay->sq_log_depth,
		.sq_log_stride = lay->sq_log_stride,
		.rq_log_depth = lay->rq_log_depth,
		.rq_log_stride = lay->rq_log_stride,
		.sq_max_sge = qp->sq.max_sge,
		.rq_max_sge = qp->rq.max_sge,
		.max_inline = cpu_to_le16(qp->max_inline),
		.db_page = cpu_to_le32(qp->db_page),
		.rq_threshold = cpu_to_le32(lay->rq_threshold),
	};

	qhca_qbuf_encode(&qp->buf, &qpc.buf);
	if (qp->ibqp.pd)
		qpc.pd = cpu_to_le32(to_qpd(qp->ibqp.pd)->pdn);
	if (qp->flags & QHCA_QP_HAS_SQ)
		qpc.send_cqn = cpu_to_le32(to_qcq(attr->send_cq)->cqn);
	if (!qhca_qp_is_xrc(qp))
		qpc.recv_cqn = cpu_to_le32(to_qcq(attr->recv_cq)->cqn);
	if (qp->flags & QHCA_QP_SRQ)
		qpc.srqn = cpu_to_le32(to_qsrq(attr->srq)->srqn);
	if (attr->qp_type == IB_QPT_XRC_TGT)
		qpc.xrcd = cpu_to_le32(to_qxrcd(attr->xrcd)->xrcdn);

	return qhca_create_object(dev, QHCA_CMD_CREATE_QP, qp->qpn, &qpc,
				  sizeof(qpc));
}

void qhca_qp_forget_cqes(struct qhca_qp *qp)
{
	struct qhca_cq *send_cq = NULL, *recv_cq = NULL;

	if (qp->flags & QHCA_QP_HAS_SQ)
		send_cq = to_qcq(qp->ibqp.send_cq);
	if (!qhca_qp_is_xrc(qp))
		recv_cq = to_qcq(qp->ibqp.recv_cq);

	if (recv_cq && recv_cq->ring)
		qhca_cq_forget_qp(recv_cq, qp);
	if (send_cq && send_cq != recv_cq && send_cq->ring)
		qhca_cq_forget_qp(send_cq, qp);
}

/* Give the QP its number, create it in the device, and let events find it. */
static int qhca_qp_start(struct qhca_ib_dev *dev, struct qhca_qp *qp,
			 const struct ib_qp_init_attr *attr,
			 const struct qhca_qp_layout *lay, u64 handle)
{
	int err;

	if (attr->qp_type == IB_QPT_GSI) {
		qp->qpn = QHCA_GSI_QPN;
		err = qhca_index_take(dev->qdev, QHCA_TABLE_QP, qp->qpn);
	} else {
		err = qhca_index_alloc(dev->qdev, QHCA_TABLE_QP, &qp->qpn);
	}
	if (err)
		return err;

	qp->ibqp.qp_num = qp->qpn;
	qhca_ref_init(&qp->ref);
	err = xa_insert_irq(&dev->qps, qp->qpn, qp, GFP_KERNEL);
	if (err)
		goto err_index;

	err = qhca_qp_create_cmd(dev, qp, attr, lay, handle);
	if (err)
		goto err_erase;
	return 0;

err_erase:
	xa_erase_irq(&dev->qps, qp->qpn);
	/* A poller may have found the QP; this waits for the CQs' locks. */
	if (!qp->is_user)
		qhca_qp_forget_cqes(qp);
	qhca_ref_drain(&qp->ref);
err_index:
	qhca_index_free(dev->qdev, QHCA_TABLE_QP, qp->qpn);
	return err;
}

static void qhca_qp_stop(struct qhca_ib_dev *dev, struct qhca_qp *qp)
{
	qhca_destroy_object(dev, QHCA_CMD_DESTROY_QP, qp->qpn);
	/* Pollers look the QP up as long as completions have its number. */
	if (!qp->is_user)
		qhca_qp_forget_cqes(qp);
	xa_erase_irq(&dev->qps, qp->qpn);
	qhca_ref_drain(&qp->ref);
	qhca_index_free(dev->qdev, QHCA_TABLE_QP, qp->qpn);
}

/*
 * Enter the QP in its CQs.  Pollers of a dead device flush the QPs in these
 * lists, and handlers of a CQ are called as long as it has QPs.
 */
static void qhca_qp_join_cqs(struct qhca_ib_dev *dev, struct qhca_qp *qp)
{
	struct qhca_cq *cq;

	if (qp->flags & QHCA_QP_HAS_SQ) {
		cq = to_qcq(qp->ibqp.send_cq);
		spin_lock_irq(&cq->lock);
		list_add_tail(&qp->send_entry, &cq->send_qps);
		qhca_cq_join(dev, cq);
		spin_unlock_irq(&cq->lock);
	}
	if (!qhca_qp_is_xrc(qp)) {
		cq = to_qcq(qp->ibqp.recv_cq);
		spin_lock_irq(&cq->lock);
		if (qp->flags & QHCA_QP_HAS_RQ)
			list_add_tail(&qp->recv_entry, &cq->recv_qps);
		qhca_cq_join(dev, cq);
		spin_unlock_irq(&cq->lock);
	}
}

static void qhca_qp_leave_cq(struct qhca_ib_dev *dev, struct qhca_cq *cq,
			     struct list_head *entry)
{
	bool unused;

	spin_lock_irq(&cq->lock);
	list_del_init(entry);
	WRITE_ONCE(cq->num_qps, cq->num_qps - 1);
	unused = !cq->num_qps;
	spin_unlock_irq(&cq->lock);
	if (unused)
		qhca_cq_quiesce(dev, cq);
}

static void qhca_qp_leave_cqs(struct qhca_ib_dev *dev, struct qhca_qp *qp)
{
	if (qp->flags & QHCA_QP_HAS_SQ)
		qhca_qp_leave_cq(dev, to_qcq(qp->ibqp.send_cq),
				 &qp->send_entry);
	if (!qhca_qp_is_xrc(qp))
		qhca_qp_leave_cq(dev, to_qcq(qp->ibqp.recv_cq),
				 &qp->recv_entry);
}

static int qhca_create_user_qp(struct qhca_ib_dev *dev, struct qhca_qp *qp,
			       struct ib_qp_init_attr *attr,
			       struct ib_udata *udata)
{
	struct qhca_create_qp_resp resp = {};
	struct qhca_qp_layout lay = {};
	struct qhca_create_qp_req req;
	int err;

	err = ib_copy_validate_udata_in_cm(udata, req, reserved, 0);
	if (err)
		return err;
	if (req.reserved)
		return -EOPNOTSUPP;

	err = qhca_qp_layout_user(dev, qp, &attr->cap, &req, &lay);
	if (err)
		return err;
	err = qhca_qp_grant(dev, qp, &lay, &attr->cap);
	if (err)
		return err;

	qp->db_page = rdma_udata_to_drv_context(udata, struct qhca_ucontext,
						ibuc)->db_page;
	err = qhca_qbuf_pin(dev, &qp->buf, req.buf_addr, req.buf_length);
	if (err)
		return err;

	err = qhca_qp_start(dev, qp, attr, &lay, req.handle);
	if (err)
		goto err_buf;

	resp.qpn = qp->qpn;
	err = ib_respond_udata(udata, resp);
	if (err)
		goto err_stop;
	return 0;

err_stop:
	qhca_qp_stop(dev, qp);
err_buf:
	qhca_qbuf_free(dev, &qp->buf);
	return err;
}

static int qhca_wq_alloc_ids(struct qhca_wq *wq)
{
	if (!wq->depth)
		return 0;
	wq->wr_id = kvcalloc(wq->depth, sizeof(*wq->wr_id), GFP_KERNEL);
	return wq->wr_id ? 0 : -ENOMEM;
}

static void qhca_qp_free_ids(struct qhca_qp *qp)
{
	kvfree(qp->sq.wr_id);
	kvfree(qp->rq.wr_id);
}

/* This also makes XRC targets, which belong to no process. */
static int qhca_create_kernel_qp(struct qhca_ib_dev *dev, struct qhca_qp *qp,
				 struct ib_qp_init_attr *attr)
{
	struct qhca_qp_layout lay = {};
	int err;

	/* A kernel QP needs CQs that the kernel polls. */
	if ((attr->send_cq && !to_qcq(attr->send_cq)->ring) ||
	    (attr->recv_cq && !to_qcq(attr->recv_cq)->ring))
		return -EINVAL;

	err = qhca_qp_layout_kernel(dev, qp, &attr->cap, &lay);
	if (err)
		return err;
	err = qhca_qp_grant(dev, qp, &lay, &attr->cap);
	if (err)
		return err;

	err = qhca_wq_alloc_ids(&qp->sq) ?: qhca_wq_alloc_ids(&qp->rq);
	if (err)
		goto err_ids;
	err = qhca_qbuf_alloc(dev, &qp->buf, lay.length);
	if (err)
		goto err_ids;
	qp->sq.ring = qp->buf.cpu + lay.sq_offset;
	qp->rq.ring = qp->buf.cpu + lay.rq_offset;
	qp->rec = qp->buf.cpu + lay.rec_offset;

	/* The driver finds the QP of a completion by number, not by handle. */
	err = qhca_qp_start(dev, qp, attr, &lay, 0);
	if (err)
		goto err_buf;
	qhca_qp_join_cqs(dev, qp);
	return 0;

err_buf:
	qhca_qbuf_free(dev, &qp->buf);
err_ids:
	qhca_qp_free_ids(qp);
	return err;
}

int qhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		   struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibqp->device);
	struct qhca_qp *qp = to_qqp(ibqp);
	int err;

	err = qhca_qp_hw_type(dev, attr->qp_type);
	if (err < 0)
		return err;
	err = qhca_qp_check_cap(dev, attr);
	if (err)
		return err;

	qp->is_user = udata && attr->qp_type != IB_QPT_XRC_TGT;
	err = qhca_qp_init_flags(qp, attr);
	if (err)
		return err;

	mutex_init(&qp->mutex);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	INIT_LIST_HEAD(&qp->send_entry);
	INIT_LIST_HEAD(&qp->recv_entry);
	INIT_LIST_HEAD(&qp->mcasts);
	INIT_WORK(&qp->event_work, qhca_qp_event_work);
	qp->state = IB_QPS_RESET;
	err = qhca_odp_init_qp(dev, qp);
	if (err)
		return err;

	if (qp->is_user)
		err = qhca_create_user_qp(dev, qp, attr, udata);
	else
		err = qhca_create_kernel_qp(dev, qp, attr);
	if (err)
		qhca_odp_exit_qp(qp);
	return err;
}

int qhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibqp->device);
	struct qhca_qp *qp = to_qqp(ibqp);

	qhca_qp_stop(dev, qp);
	if (!qp->is_user)
		qhca_qp_leave_cqs(dev, qp);
	qhca_odp_exit_qp(qp);
	qhca_qbuf_free(dev, &qp->buf);
	qhca_qp_free_ids(qp);
	mutex_destroy(&qp->mutex);
	return 0;
}
