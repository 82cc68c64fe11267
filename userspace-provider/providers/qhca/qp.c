/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs: sizing, creation, state, destruction.
 */
#include <errno.h>
#include <stdlib.h>

#include "compat.h"
#include "qhca.h"
#include "qhca-abi.h"
#include "qhcadv.h"
#include "wqe.h"

static uint32_t min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * A slot becomes free only when the program has read its completion.  Yet a
 * program with one outstanding request may post the next one before: it may
 * know from the peer's answer that the first has completed.  So the queue has
 * slots to spare.
 */
#define QHCA_MIN_SQ_DEPTH 16

static int size_sq(struct qhca_qp *qp, const struct qhca_context *ctx,
		   const struct ibv_qp_cap *cap)
{
	size_t payload, room;

	if (cap->max_send_wr > ctx->max_send_wr ||
	    cap->max_send_sge > ctx->max_sge ||
	    cap->max_inline_data > ctx->max_inline)
		return EINVAL;
	if (!cap->max_send_wr)
		return 0;

	payload = cap->max_send_sge * sizeof(struct qhca_sge);
	if (payload < cap->max_inline_data)
		payload = cap->max_inline_data;

	qp->sq.depth = roundup_pow_of_two(cap->max_send_wr);
	if (qp->sq.depth < QHCA_MIN_SQ_DEPTH)
		qp->sq.depth = QHCA_MIN_SQ_DEPTH;
	qp->sq.log_stride = qhca_log2_up(sizeof(struct qhca_sq_wqe) + payload);
	if (qp->sq.log_stride < QHCA_MIN_LOG_WQE_STRIDE)
		qp->sq.log_stride = QHCA_MIN_LOG_WQE_STRIDE;

	room = ((size_t)1 << qp->sq.log_stride) - sizeof(struct qhca_sq_wqe);
	qp->sq.max_sge = min_u32(room / sizeof(struct qhca_sge), ctx->max_sge);
	qp->max_inline = min_u32(room, ctx->max_inline);
	return 0;
}

static int size_rq(struct qhca_qp *qp, const struct qhca_context *ctx,
		   const struct ibv_qp_cap *cap)
{
	if (cap->max_recv_wr > ctx->max_recv_wr ||
	    cap->max_recv_sge > ctx->max_sge)
		return EINVAL;
	if (!cap->max_recv_wr)
		return 0;

	qp->rq.depth = roundup_pow_of_two(cap->max_recv_wr);
	qp->rq.log_stride = qhca_rwqe_log_stride(cap->max_recv_sge);
	qp->rq.max_sge = qhca_rwqe_max_sge(ctx, qp->rq.log_stride);
	return 0;
}

static size_t wq_bytes(const struct qhca_wq *wq)
{
	return (size_t)wq->depth << wq->log_stride;
}

/**
 * qhca_qp_init_rings - size and allocate the rings of a QP and its record
 * @qp: QP, pd set
 * @ctx: context
 * @cap: requested capacities on entry, granted ones on return
 * @has_rq: the QP has a receive queue of its own
 *
 * Returns 0 or an errno value.
 */
int qhca_qp_init_rings(struct qhca_qp *qp, struct qhca_context *ctx,
		       struct ibv_qp_cap *cap, bool has_rq)
{
	bool threads = !qhca_single_threaded(qp->pd);
	uint64_t bytes;
	int ret;

	ret = size_sq(qp, ctx, cap);
	if (!ret && has_rq)
		ret = size_rq(qp, ctx, cap);
	if (ret)
		return ret;

	qp->rq.offset = align(wq_bytes(&qp->sq), 1ul << qp->rq.log_stride);
	bytes = (uint64_t)qp->rq.offset + wq_bytes(&qp->rq);
	bytes = align(bytes, sizeof(struct qhca_qp_record));
	if (bytes > UINT32_MAX - ctx->page_size)
		return ENOMEM;
	qp->rec_offset = bytes;

	ret = qhca_umem_alloc(&qp->mem, ctx, qp->pd,
			      bytes + sizeof(struct qhca_qp_record),
			      QHCA_RESOURCE_QP);
	if (ret)
		return ret;

	qp->sq.ring = qp->mem.addr;
	qp->rq.ring = qp->mem.addr + qp->rq.offset;
	qp->rec = qp->mem.addr + qp->rec_offset;
	qhca_lock_init(&qp->sq.lock, threads);
	qhca_lock_init(&qp->rq.lock, threads);

	cap->max_send_wr = qp->sq.depth;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->max_inline;
	cap->max_recv_wr = qp->rq.depth;
	cap->max_recv_sge = qp->rq.max_sge;
	return 0;
}

static void fini_rings(struct qhca_qp *qp)
{
	if (!qp->mem.length)
		return;
	qhca_umem_free(&qp->mem);
}

static bool qp_type(enum ibv_qp_type type, enum qhca_qp_type *hw)
{
	switch (type) {
	case IBV_QPT_RC:
		*hw = QHCA_QPT_RC;
		return true;
	case IBV_QPT_UC:
		*hw = QHCA_QPT_UC;
		return true;
	case IBV_QPT_UD:
		*hw = QHCA_QPT_UD;
		return true;
	case IBV_QPT_XRC_SEND:
		*hw = QHCA_QPT_XRC_INI;
		return true;
	case IBV_QPT_XRC_RECV:
		*hw = QHCA_QPT_XRC_TGT;
		return true;
	case IBV_QPT_RAW_PACKET:
		*hw = QHCA_QPT_RAW;
		return true;
	default:
		return false;
	}
}

static int create_qp_cmd(struct ibv_context *context, struct qhca_qp *qp,
			 struct ibv_qp_init_attr_ex *attr)
{
	struct qhca_ucmd_create_qp_resp resp = {};
	struct ibv_qp_cap cap = attr->cap;
	struct qhca_ucmd_create_qp cmd = {};
	int ret;

	cmd.buf_addr = (uintptr_t)qp->mem.addr;
	cmd.buf_length = qp->mem.length;
	cmd.handle = (uintptr_t)qp;
	cmd.sq_offset = qp->sq.offset;
	cmd.rq_offset = qp->rq.offset;
	cmd.rec_offset = qp->rec_offset;
	cmd.sq_log_depth = qhca_log2_up(qp->sq.depth);
	cmd.sq_log_stride = qp->sq.log_stride;
	cmd.rq_log_depth = qhca_log2_up(qp->rq.depth);
	cmd.rq_log_stride = qp->rq.log_stride;
	cmd.rq_threshold = qp->rq_threshold;

	ret = qhca_cmd_create_qp(context, &qp->vqp, attr, &cmd.ibv_cmd,
				 sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (!ret)
		attr->cap = cap;
	return ret;
}

static int check_qp_attr(const struct ibv_qp_init_attr_ex *attr)
{
	if (!check_comp_mask(attr->comp_mask, IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_XRCD |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;

	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	    !check_comp_mask(attr->create_flags,
			     IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))
		return EOPNOTSUPP;

	if (attr->qp_type != IBV_QPT_XRC_RECV &&
	    !(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		return EINVAL;
	return 0;
}

static int create_qp(struct ibv_context *context, struct qhca_qp *qp,
		     struct ibv_qp_init_attr_ex *attr)
{
	bool extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	struct qhca_context *ctx = to_qctx(context);
	int ret;

	ret = check_qp_attr(attr);
	if (ret)
		return ret;
	if (!qp_type(attr->qp_type, &qp->type))
		return EOPNOTSUPP;

	if (extended) {
		ret = qhca_qp_set_wr_ops(qp, ctx, attr->send_ops_flags);
		if (ret)
			return ret;
	}

	/* An XRC target has no queue of its own and belongs to no process. */
	if (qp->type != QHCA_QPT_XRC_TGT) {
		qp->pd = to_qpd(attr->pd);
		ret = qhca_qp_init_rings(qp, ctx, &attr->cap,
					 qp->type != QHCA_QPT_XRC_INI &&
					 !attr->srq);
		if (ret)
			return ret;
	}
	if (qp->rq_threshold && !qp->rq.depth) {
		fini_rings(qp);
		return EINVAL;
	}

	ret = create_qp_cmd(context, qp, attr);
	if (ret) {
		fini_rings(qp);
		return ret;
	}
	if (extended)
		qp->vqp.comp_mask |= VERBS_QP_EX;
	return 0;
}

static struct ibv_qp *new_qp(struct ibv_context *context,
			     struct ibv_qp_init_attr_ex *attr,
			     uint32_t rq_threshold)
{
	struct qhca_qp *qp;
	int ret;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;

	qp->rq_threshold = rq_threshold;
	ret = create_qp(context, qp, attr);
	if (ret) {
		free(qp);
		errno = ret;
		return NULL;
	}
	return &qp->vqp.qp;
}

struct ibv_qp *qhca_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr)
{
	return new_qp(context, attr, 0);
}

struct ibv_qp *qhcadv_create_qp(struct ibv_context *context,
				struct ibv_qp_init_attr_ex *attr,
				const struct qhcadv_queue_attr *queue,
				uint32_t inlen)
{
	uint32_t threshold;

	if (!qhca_queue_threshold(context, queue, inlen, &threshold))
		return NULL;
	return new_qp(context, attr, threshold);
}

struct ibv_qp *qhca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp;

	qp = qhca_create_qp_ex(pd->context, &attr_ex);
	if (qp)
		attr->cap = attr_ex.cap;
	return qp;
}

struct ibv_qp *qhca_open_qp(struct ibv_context *context,
			    struct ibv_qp_open_attr *attr)
{
	struct ib_uverbs_create_qp_resp resp;
	struct ibv_open_qp cmd;
	struct qhca_qp *qp;
	int ret;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;

	qp->type = QHCA_QPT_XRC_TGT;
	ret = ibv_cmd_open_qp(context, &qp->vqp, sizeof(qp->vqp), attr, &cmd,
			      sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(qp);
		errno = ret;
		return NULL;
	}
	return &qp->vqp.qp;
}

/* An XRC QP may be created with CQs that it does not use. */
static struct qhca_cq *send_cq_of(const struct qhca_qp *qp)
{
	return qp->type == QHCA_QPT_XRC_TGT ? NULL :
					      to_qcq(qp->vqp.qp.send_cq);
}

static struct qhca_cq *recv_cq_of(const struct qhca_qp *qp)
{
	return qp->type == QHCA_QPT_XRC_TGT || qp->type == QHCA_QPT_XRC_INI ?
		       NULL : to_qcq(qp->vqp.qp.recv_cq);
}

/**
 * qhca_qp_reset_rings - start at index 0, as in RESET the device has discarded all requests
 * @qp: QP
 */
void qhca_qp_reset_rings(struct qhca_qp *qp)
{
	qhca_cq_clean(send_cq_of(qp), recv_cq_of(qp), qp);
	if (!qp->rec)
		return;

	qp->sq.pi = 0;
	qp->rq.pi = 0;
	atomic_store(&qp->sq.ci, 0);
	atomic_store(&qp->rq.ci, 0);
	qp->received = 0;
	atomic_store(&qp->streams, false);
	qhca_store(&qp->rec->sq_pi, 0);
	qhca_store(&qp->rec->rq_pi, 0);
	udma_to_device_barrier();
}

/**
 * qhca_qp_in_error - a QP is or may be in state ERR
 * @qp: QP
 *
 * In ERR the device flushes new requests when a doorbell is rung.  Send posts
 * ring anyway, and receive posts do so from now on.  The doorbell rung here is
 * for posts that happened at the same time as the change of state.  This
 * function takes the receive lock: a receive post that precedes it is covered
 * by that doorbell, and one that follows it sees in_error.
 */
void qhca_qp_in_error(struct qhca_qp *qp)
{
	/*
	 * Two threads that learn of it at once both ring, which does no harm.
	 */
	if (!qp->rec || atomic_load(&qp->in_error))
		return;
	atomic_store(&qp->in_error, true);

	qhca_lock(&qp->rq.lock);
	qhca_unlock(&qp->rq.lock);
	qhca_store_load_barrier();
	qhca_doorbell(to_qctx(qp->vqp.qp.context), QHCA_DB_SQ,
		      qp->vqp.qp.qp_num, qhca_load(&qp->rec->sq_pi));
}

int qhca_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	struct ibv_modify_qp cmd;
	int ret;

	ret = ibv_cmd_modify_qp(ibqp, attr, mask, &cmd, sizeof(cmd));
	if (ret)
		return ret;

	if (!(mask & IBV_QP_STATE))
		return 0;
	if (attr->qp_state == IBV_QPS_RESET)
		qhca_qp_reset_rings(qp);
	if (attr->qp_state == IBV_QPS_ERR)
		qhca_qp_in_error(qp);
	else
		atomic_store(&qp->in_error, false);
	return 0;
}

int qhca_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	struct ibv_query_qp cmd;
	int ret;

	ret = ibv_cmd_query_qp(ibqp, attr, mask, init_attr, &cmd, sizeof(cmd));
	if (ret)
		return ret;

	attr->cap.max_send_wr = qp->sq.depth;
	attr->cap.max_send_sge = qp->sq.max_sge;
	attr->cap.max_inline_data = qp->max_inline;
	attr->cap.max_recv_wr = qp->rq.depth;
	attr->cap.max_recv_sge = qp->rq.max_sge;
	init_attr->cap = attr->cap;
	return 0;
}

int qhca_destroy_qp(struct ibv_qp *ibqp)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	int ret;

	ret = ibv_cmd_destroy_qp(ibqp);
	if (ret)
		return ret;

	qhca_cq_disown(send_cq_of(qp), recv_cq_of(qp), qp);
	fini_rings(qp);
	free(qp);
	return 0;
}
