// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs: states and queries.
 */
#include "queue.h"

static_assert((int)QHCA_QPS_RESET == (int)IB_QPS_RESET);
static_assert((int)QHCA_QPS_RTS == (int)IB_QPS_RTS);
static_assert((int)QHCA_QPS_SQE == (int)IB_QPS_SQE);
static_assert((int)QHCA_QPS_ERR == (int)IB_QPS_ERR);
static_assert((int)QHCA_MTU_4096 == (int)IB_MTU_4096);

/*
 * The device has put a kernel QP into an error state and reported that by a
 * completion or an event.  It may not have seen requests posted at the same
 * time; the doorbell makes it flush them.  Later posts ring by themselves.
 */
void qhca_qp_in_error(struct qhca_qp *qp, bool requester)
{
	enum ib_qp_state state = READ_ONCE(qp->state);

	if (qp->is_user)
		return;

	if (requester && !qhca_qp_is_reliable(qp)) {
		if (state == IB_QPS_RTS || state == IB_QPS_SQD)
			cmpxchg(&qp->state, state, IB_QPS_SQE);
		return;
	}

	if (state != IB_QPS_ERR &&
	    xchg(&qp->state, IB_QPS_ERR) != IB_QPS_ERR &&
	    qp->flags & QHCA_QP_HAS_SQ)
		qhca_ring_sq(qp);
}

#define QHCA_QP_ATTRS_KNOWN						\
	(IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY |	\
	 IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT |		\
	 IB_QP_QKEY | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_TIMEOUT |	\
	 IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_RQ_PSN |		\
	 IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MIN_RNR_TIMER | IB_QP_SQ_PSN |	\
	 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_DEST_QPN)

/* IB_QP_PORT has no counterpart, since there is only one port. */
static u32 qhca_qp_attr_mask(int mask)
{
	static const struct {
		u32 ib;
		u32 hw;
	} map[] = {
		{ IB_QP_STATE, QHCA_QP_ATTR_STATE },
		{ IB_QP_CUR_STATE, QHCA_QP_ATTR_CUR_STATE },
		{ IB_QP_EN_SQD_ASYNC_NOTIFY, QHCA_QP_ATTR_SQD_EVENT },
		{ IB_QP_ACCESS_FLAGS, QHCA_QP_ATTR_ACCESS },
		{ IB_QP_PKEY_INDEX, QHCA_QP_ATTR_PKEY_INDEX },
		{ IB_QP_QKEY, QHCA_QP_ATTR_QKEY },
		{ IB_QP_AV, QHCA_QP_ATTR_AV },
		{ IB_QP_PATH_MTU, QHCA_QP_ATTR_PATH_MTU },
		{ IB_QP_TIMEOUT, QHCA_QP_ATTR_TIMEOUT },
		{ IB_QP_RETRY_CNT, QHCA_QP_ATTR_RETRY_CNT },
		{ IB_QP_RNR_RETRY, QHCA_QP_ATTR_RNR_RETRY },
		{ IB_QP_RQ_PSN, QHCA_QP_ATTR_RQ_PSN },
		{ IB_QP_MAX_QP_RD_ATOMIC, QHCA_QP_ATTR_MAX_RD_ATOMIC },
		{ IB_QP_MIN_RNR_TIMER, QHCA_QP_ATTR_MIN_RNR_TIMER },
		{ IB_QP_SQ_PSN, QHCA_QP_ATTR_SQ_PSN },
		{ IB_QP_MAX_DEST_RD_ATOMIC, QHCA_QP_ATTR_MAX_DEST_RD_ATOMIC },
		{ IB_QP_DEST_QPN, QHCA_QP_ATTR_DEST_QPN },
	};
	u32 hw = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(map); i++)
		if (mask & map[i].ib)
			hw |= map[i].hw;
	return hw;
}

/* The device ignores fields whose bit is not in the mask. */
static int qhca_qp_fill_modify(struct qhca_qp *qp,
			       const struct ib_qp_attr *attr, int mask,
			       struct qhca_modify_qp *cmd)
{
	struct qhca_qpc_sw *ctx = &cmd->ctx;
	u32 dest_qpn = qp->dest_qpn;
	u32 sport;
	int err;

	cmd->attr_mask = cpu_to_le32(qhca_qp_attr_mask(mask));
	cmd->cur_state = attr->cur_qp_state;
	ctx->state = attr->qp_state;
	if (attr->en_sqd_async_notify)
		ctx->flags = cpu_to_le16(QHCA_QP_SQD_EVENT);
	ctx->access = cpu_to_le32(qhca_hw_access(attr->qp_access_flags));
	ctx->pkey_index = attr->pkey_index;
	ctx->qkey = cpu_to_le32(attr->qkey);
	ctx->path_mtu = attr->path_mtu;
	ctx->timeout = attr->timeout;
	ctx->retry_cnt = attr->retry_cnt;
	ctx->rnr_retry = attr->rnr_retry;
	ctx->rq_psn = cpu_to_le32(attr->rq_psn);
	ctx->sq_psn = cpu_to_le32(attr->sq_psn);
	ctx->max_rd_atomic = attr->max_rd_atomic;
	ctx->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	ctx->min_rnr_timer = attr->min_rnr_timer;
	ctx->dest_qpn = cpu_to_le32(attr->dest_qp_num);

	if (mask & IB_QP_PKEY_INDEX && attr->pkey_index)
		return -EINVAL;
	if (mask & IB_QP_AV) {
		err = qhca_fill_av(&ctx->av, &attr->ah_attr);
		if (err)
			return err;
		if (mask & IB_QP_DEST_QPN)
			dest_qpn = attr->dest_qp_num;
		sport = rdma_get_udp_sport(attr->ah_attr.grh.flow_label,
					   qp->qpn, dest_qpn);
		ctx->av.udp_sport = cpu_to_le16(sport);
	}
	return 0;
}

/* The CQ's lock is needed because pollers of a dead device flush the queue. */
static void qhca_wq_reset(struct qhca_wq *wq, struct ib_cq *ibcq)
{
	spin_lock(&to_qcq(ibcq)->lock);
	wq->pi = 0;
	wq->ci = 0;
	spin_unlock(&to_qcq(ibcq)->lock);
}

/* In state RESET indices of a kernel QP start anew and completions are void. */
static void qhca_qp_reset_queues(struct qhca_qp *qp)
{
	qhca_qp_forget_cqes(qp);

	spin_lock_irq(&qp->sq.lock);
	spin_lock(&qp->rq.lock);
	if (qp->flags & QHCA_QP_HAS_SQ)
		qhca_wq_reset(&qp->sq, qp->ibqp.send_cq);
	if (qp->flags & QHCA_QP_HAS_RQ)
		qhca_wq_reset(&qp->rq, qp->ibqp.recv_cq);
	WRITE_ONCE(qp->rec->sq_pi, 0);
	WRITE_ONCE(qp->rec->rq_pi, 0);
	spin_unlock(&qp->rq.lock);
	spin_unlock_irq(&qp->sq.lock);
}

static void qhca_qp_entered(struct qhca_qp *qp, enum ib_qp_state state)
{
	if (state == IB_QPS_RESET)
		WRITE_ONCE(qp->raised, 0);
	if (!qp->is_user && state == IB_QPS_RESET)
		qhca_qp_reset_queues(qp);

	WRITE_ONCE(qp->state, state);

	/* Pairs with the barrier in posting, before the state is read. */
	mb();
	if (!qp->is_user && state == IB_QPS_ERR &&
	    qp->flags & QHCA_QP_HAS_SQ)
		qhca_ring_sq(qp);
}

static int qhca_qp_modify_cmd(struct qhca_ib_dev *dev, struct qhca_qp *qp,
			      const struct ib_qp_attr *attr, int mask)
{
	struct qhca_modify_qp in = {};
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_MODIFY_QP,
		.index = qp->qpn,
		.in = &in,
		.in_len = sizeof(in),
	};
	int err;

	err = qhca_qp_fill_modify(qp, attr, mask, &in);
	if (err)
		return err;

	err = qhca_cmd_exec(dev->qdev, &cmd);

	/*
	 * A dead device has stopped all its QPs.  Kernel consumers must still
	 * be able to drain them; see qhca_flush_work().
	 */
	if (err && qhca_is_dead(dev) && !qp->is_user && mask & IB_QP_STATE &&
	    (attr->qp_state == IB_QPS_ERR || attr->qp_state == IB_QPS_RESET))
		return 0;
	return err;
}

int qhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibqp->device);
	struct qhca_qp *qp = to_qqp(ibqp);
	enum ib_qp_state cur, next;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (mask & ~QHCA_QP_ATTRS_KNOWN)
		return -EOPNOTSUPP;
	if (mask & IB_QP_PORT && attr->port_num != QHCA_IB_PORT)
		return -EINVAL;
	if (mask & IB_QP_AV && !udata) {
		err = qhca_resolve_dmac(&attr->ah_attr);
		if (err)
			return err;
	}

	mutex_lock(&qp->mutex);
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state :
				       READ_ONCE(qp->state);
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, ibqp->qp_type, mask)) {
		err = -EINVAL;
		goto out;
	}

	err = qhca_qp_modify_cmd(dev, qp, attr, mask);
	if (err)
		goto out;

	if (mask & IB_QP_DEST_QPN)
		qp->dest_qpn = attr->dest_qp_num;
	if (mask & IB_QP_STATE)
		qhca_qp_entered(qp, next);
out:
	mutex_unlock(&qp->mutex);
	return err;
}

/* ------------------------------------------------------------------------
 * Queries
 */

static int qhca_ib_access(u32 access)
{
	int ib = 0;

	if (access & QHCA_ACCESS_REMOTE_WRITE)
		ib |= IB_ACCESS_REMOTE_WRITE;
	if (access & QHCA_ACCESS_REMOTE_READ)
		ib |= IB_ACCESS_REMOTE_READ;
	if (access & QHCA_ACCESS_REMOTE_ATOMIC)
		ib |= IB_ACCESS_REMOTE_ATOMIC;
	if (access & QHCA_ACCESS_FLUSH_GLOBAL)
		ib |= IB_ACCESS_FLUSH_GLOBAL;
	if (access & QHCA_ACCESS_FLUSH_PERSISTENT)
		ib |= IB_ACCESS_FLUSH_PERSISTENT;
	return ib;
}

static void qhca_qp_read_ctx(struct qhca_qp *qp,
			     const struct qhca_query_qp *out,
			     struct ib_qp_attr *attr)
{
	const struct qhca_qpc_sw *ctx = &out->ctx;

	attr->qp_state = ctx->state;
	attr->cur_qp_state = ctx->state;
	attr->path_mtu = ctx->path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = le32_to_cpu(ctx->qkey);
	attr->rq_psn = le32_to_cpu(out->rq_psn);
	attr->sq_psn = le32_to_cpu(out->sq_psn);
	attr->dest_qp_num = le32_to_cpu(ctx->dest_qpn);
	attr->qp_access_flags = qhca_ib_access(le32_to_cpu(ctx->access));
	attr->pkey_index = ctx->pkey_index;
	attr->en_sqd_async_notify = !!(le16_to_cpu(ctx->flags) &
				       QHCA_QP_SQD_EVENT);
	attr->sq_draining = out->sq_draining;
	attr->max_rd_atomic = ctx->max_rd_atomic;
	attr->max_dest_rd_atomic = ctx->max_dest_rd_atomic;
	attr->min_rnr_timer = ctx->min_rnr_timer;
	attr->port_num = QHCA_IB_PORT;
	attr->timeout = ctx->timeout;
	attr->retry_cnt = ctx->retry_cnt;
	attr->rnr_retry = ctx->rnr_retry;
	if (ctx->state >= QHCA_QPS_RTR && (qhca_qp_is_reliable(qp) ||
					   qp->ibqp.qp_type == IB_QPT_UC))
		qhca_read_av(&ctx->av, &attr->ah_attr);
}

int qhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		  struct ib_qp_init_attr *init_attr)
{
	struct qhca_ib_dev *dev = to_qhca(ibqp->device);
	struct qhca_qp *qp = to_qqp(ibqp);
	struct qhca_query_qp out;
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_QUERY_QP,
		.index = qp->qpn,
		.out = &out,
		.out_len = sizeof(out),
	};
	int err;

	memset(attr, 0, sizeof(*attr));
	memset(init_attr, 0, sizeof(*init_attr));

	err = qhca_cmd_exec(dev->qdev, &cmd);
	if (err)
		return err;

	qhca_qp_read_ctx(qp, &out, attr);
	attr->cap.max_send_wr = qp->sq.depth;
	attr->cap.max_send_sge = qp->sq.max_sge;
	attr->cap.max_recv_wr = qp->rq.depth;
	attr->cap.max_recv_sge = qp->rq.max_sge;
	attr->cap.max_inline_data = qp->max_inline;

	init_attr->event_handler = ibqp->event_handler;
	init_attr->qp_context = ibqp->qp_context;
	init_attr->send_cq = ibqp->send_cq;
	init_attr->recv_cq = ibqp->recv_cq;
	init_attr->srq = ibqp->srq;
	init_attr->cap = attr->cap;
	init_attr->qp_type = ibqp->qp_type;
	init_attr->sq_sig_type = qp->flags & QHCA_QP_SIG_ALL ?
				 IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	if (qp->flags & QHCA_QP_MCAST_NO_LOOP)
		init_attr->create_flags = IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	return 0;
}
