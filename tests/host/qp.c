// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queue pairs */
#include "internal.h"

#include <string.h>

#include "bytes.h"

int md_qp_create(struct md *md, struct md_qp *qp,
		 const struct md_qp_init *init)
{
	struct qhca_qpc_sw in = { 0 };
	bool xrc = init->type == QHCA_QPT_XRC_INI ||
		   init->type == QHCA_QPT_XRC_TGT;
	uint32_t sq_len = 0, rq_len = 0;
	uint16_t flags = init->flags;
	int status;

	memset(qp, 0, sizeof(*qp));
	qp->init = *init;
	qp->qpn = init->type == QHCA_QPT_GSI ? 1 : md->next_qpn;
	if (init->type != QHCA_QPT_XRC_TGT)
		flags |= QHCA_QP_HAS_SQ;
	if (init->srq)
		flags |= QHCA_QP_SRQ;
	else if (!init->no_rq && !xrc)
		flags |= QHCA_QP_HAS_RQ;
	if (flags & QHCA_QP_HAS_SQ)
		sq_len = 1u << (init->sq_log_depth + init->sq_log_stride);
	if (flags & QHCA_QP_HAS_RQ)
		rq_len = 1u << (init->rq_log_depth + init->rq_log_stride);
	qp->rq_offset = sq_len;
	if (rq_len)
		qp->rq_offset = (sq_len + (1u << init->rq_log_stride) - 1) &
				~((1u << init->rq_log_stride) - 1);
	qp->rec_offset = (qp->rq_offset + rq_len + 127) & ~127u;
	md_buf_alloc(md, &qp->buf, qp->rec_offset + 128);
	md_buf_describe(&qp->buf, &in.buf);
	put_le64(&in.handle, MD_QP_HANDLE | qp->qpn);
	put_le32(&in.rq_offset, qp->rq_offset);
	put_le32(&in.rec_offset, qp->rec_offset);
	in.type = init->type;
	put_le16(&in.flags, flags);
	if (flags & QHCA_QP_HAS_SQ) {
		in.sq_log_depth = init->sq_log_depth;
		in.sq_log_stride = init->sq_log_stride;
		in.sq_max_sge = ((1u << init->sq_log_stride) - 64) / 16;
		if (in.sq_max_sge > MD_MAX_SGE)
			in.sq_max_sge = MD_MAX_SGE;
		if (init->sq_max_sge)
			in.sq_max_sge = init->sq_max_sge;
		put_le16(&in.max_inline, in.sq_max_sge * 16);
	}
	if (flags & QHCA_QP_HAS_RQ) {
		in.rq_log_depth = init->rq_log_depth;
		in.rq_log_stride = init->rq_log_stride;
		in.rq_max_sge = ((1u << init->rq_log_stride) - 16) / 16;
		if (in.rq_max_sge > MD_MAX_SGE)
			in.rq_max_sge = MD_MAX_SGE;
		if (init->rq_max_sge)
			in.rq_max_sge = init->rq_max_sge;
		put_le32(&in.rq_threshold, init->rq_threshold);
	}
	put_le32(&in.pd, init->pd);
	put_le32(&in.db_page, init->db_page);
	if (flags & QHCA_QP_HAS_SQ)
		put_le32(&in.send_cqn, init->send_cq->cqn);
	if (!xrc)
		put_le32(&in.recv_cqn, init->recv_cq->cqn);
	if (init->srq)
		put_le32(&in.srqn, init->srq->srqn);
	put_le32(&in.xrcd, init->xrcd);
	status = md_cmd(md, QHCA_CMD_CREATE_QP, qp->qpn, 0, &in, sizeof(in),
			NULL, 0, NULL);
	if (!status && init->type != QHCA_QPT_GSI)
		md->next_qpn++;
	return status;
}

int md_qp_modify(struct md *md, struct md_qp *qp, uint8_t state, uint32_t mask,
		 const struct md_conn *c)
{
	struct qhca_modify_qp in = { 0 };
	int status;

	put_le32(&in.attr_mask, mask | QHCA_QP_ATTR_STATE);
	in.ctx.state = state;
	if (mask & QHCA_QP_ATTR_SQD_EVENT)
		put_le16(&in.ctx.flags, QHCA_QP_SQD_EVENT);
	if (c) {
		put_le32(&in.ctx.qkey, c->qkey);
		put_le32(&in.ctx.dest_qpn, c->dest_qpn);
		put_le32(&in.ctx.sq_psn, c->sq_psn);
		put_le32(&in.ctx.rq_psn, c->rq_psn);
		put_le32(&in.ctx.access, c->access);
		in.ctx.path_mtu = c->mtu;
		in.ctx.timeout = c->timeout;
		in.ctx.retry_cnt = c->retry_cnt;
		in.ctx.rnr_retry = c->rnr_retry;
		in.ctx.min_rnr_timer = c->min_rnr_timer;
		in.ctx.max_rd_atomic = c->max_rd_atomic;
		in.ctx.max_dest_rd_atomic = c->max_dest_rd_atomic;
		in.ctx.av = c->av;
	}
	status = md_cmd(md, QHCA_CMD_MODIFY_QP, qp->qpn, 0, &in, sizeof(in),
			NULL, 0, NULL);
	if (!status && state == QHCA_QPS_RESET) {
		qp->sq_pi = qp->rq_pi = qp->sq_ci = qp->rq_ci = 0;
		md_buf_put32(md, &qp->buf, qp->rec_offset, 0);
		md_buf_put32(md, &qp->buf, qp->rec_offset + 4, 0);
	}
	return status;
}

void md_qp_connect(struct md *md, struct md_qp *qp, const struct md_conn *c)
{
	bool dgram = qp->init.type == QHCA_QPT_UD ||
		     qp->init.type == QHCA_QPT_GSI;
	bool requester = qp->init.type == QHCA_QPT_RC ||
			 qp->init.type == QHCA_QPT_XRC_INI;
	bool target = qp->init.type == QHCA_QPT_XRC_TGT;
	bool responder = qp->init.type == QHCA_QPT_RC || target;
	uint32_t init = QHCA_QP_ATTR_PKEY_INDEX, rtr = 0;
	uint32_t rts = QHCA_QP_ATTR_SQ_PSN;

	init |= dgram ? QHCA_QP_ATTR_QKEY : QHCA_QP_ATTR_ACCESS;
	if (!dgram)
		rtr = QHCA_QP_ATTR_AV | QHCA_QP_ATTR_PATH_MTU |
		      QHCA_QP_ATTR_DEST_QPN | QHCA_QP_ATTR_RQ_PSN;
	if (responder)
		rtr |= QHCA_QP_ATTR_MAX_DEST_RD_ATOMIC |
		       QHCA_QP_ATTR_MIN_RNR_TIMER;
	if (requester)
		rts |= QHCA_QP_ATTR_TIMEOUT | QHCA_QP_ATTR_RETRY_CNT |
		       QHCA_QP_ATTR_RNR_RETRY | QHCA_QP_ATTR_MAX_RD_ATOMIC;
	if (target)
		rts |= QHCA_QP_ATTR_TIMEOUT;
	if (qp->init.type == QHCA_QPT_RAW)	/* has none of these */
		init = rtr = rts = 0;
	md_must(md_qp_modify(md, qp, QHCA_QPS_INIT, init, c), "to INIT");
	md_must(md_qp_modify(md, qp, QHCA_QPS_RTR, rtr, c), "to RTR");
	md_must(md_qp_modify(md, qp, QHCA_QPS_RTS, rts, c), "to RTS");
}

int md_qp_query(struct md *md, struct md_qp *qp, struct qhca_query_qp *out)
{
	return md_cmd(md, QHCA_CMD_QUERY_QP, qp->qpn, 0, NULL, 0, out,
		      sizeof(*out), NULL);
}

int md_qp_destroy(struct md *md, struct md_qp *qp)
{
	return md_cmd(md, QHCA_CMD_DESTROY_QP, qp->qpn, 0, NULL, 0, NULL, 0,
		      NULL);
}

struct md_qp_init md_qp_rc(struct md_cq *cq, uint32_t pd)
{
	return (struct md_qp_init){
		.type = QHCA_QPT_RC, .pd = pd, .flags = QHCA_QP_KERNEL,
		.sq_log_depth = 3, .sq_log_stride = 7, .rq_log_depth = 3,
		.rq_log_stride = 6, .send_cq = cq, .recv_cq = cq,
	};
}

struct md_conn md_conn_rc(void)
{
	return (struct md_conn){
		.mtu = QHCA_MTU_1024, .access = 0x1f, .timeout = 12,
		.retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1,
		.max_rd_atomic = 2, .max_dest_rd_atomic = 2,
	};
}
