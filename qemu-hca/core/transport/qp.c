/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QP contexts: between memory and host order, and what every part of the
 * transport does with one.
 *
 * A context that comes back from memory is not trusted: everything that is
 * used as an index, a length or a state is checked here once, so that the rest
 * need not.
 */
#include "transport/transport.h"

#include <stdatomic.h>
#include <stdlib.h>

#define REC_SQ_PI	offsetof(struct qhca_qp_record, sq_pi)
#define REC_RQ_PI	offsetof(struct qhca_qp_record, rq_pi)
#define REC_ACTIVE	offsetof(struct qhca_qp_record, sq_active)

/* ---- the software part */

/* A ring of 2^log_depth entries of 2^log_stride bytes at @offset. */
static bool ring_fits(const struct qhca_qbuf *qb, uint32_t offset,
		      unsigned int log_depth, unsigned int log_stride)
{
	uint32_t stride = 1u << log_stride;

	return !(offset & (stride - 1)) &&
	       qhca_qbuf_holds(qb, offset, (uint64_t)stride << log_depth);
}

static bool sq_sane(struct qhca_hca *hca, struct qhca_qp *qp)
{
	const struct qhca_qpc_sw *sw = &qp->sw;

	qp->sq_depth = 0;
	if (!(qp->flags & QHCA_QP_HAS_SQ))
		return true;
	if (sw->sq_log_depth > hca->cfg.log_max_wq_depth ||
	    sw->sq_log_stride < QHCA_MIN_LOG_WQE_STRIDE ||
	    sw->sq_log_stride > QHCA_MAX_LOG_WQE_STRIDE ||
	    sw->sq_max_sge > QHCA_MAX_SGE ||
	    qp->max_inline > QHCA_MAX_INLINE)
		return false;
	qp->sq_depth = 1u << sw->sq_log_depth;
	return ring_fits(&qp->buf, qp->sq_offset, sw->sq_log_depth,
			 sw->sq_log_stride);
}

static bool rq_sane(struct qhca_hca *hca, struct qhca_qp *qp)
{
	const struct qhca_qpc_sw *sw = &qp->sw;

	qp->rq_depth = 0;
	if (!(qp->flags & QHCA_QP_HAS_RQ))
		return true;
	if (qp->flags & QHCA_QP_SRQ ||
	    sw->rq_log_depth > hca->cfg.log_max_wq_depth ||
	    sw->rq_log_stride < QHCA_MIN_LOG_RWQE_STRIDE ||
	    sw->rq_log_stride > QHCA_MAX_LOG_RWQE_STRIDE ||
	    sw->rq_max_sge > QHCA_MAX_SGE)
		return false;
	qp->rq_depth = 1u << sw->rq_log_depth;
	return qp->rq_threshold <= qp->rq_depth &&
	       ring_fits(&qp->buf, qp->rq_offset, sw->rq_log_depth,
			 sw->rq_log_stride);
}

/* Attributes that MODIFY_QP sets; zero before it has set them. */
static bool attrs_sane(struct qhca_qp *qp)
{
	const struct qhca_qpc_sw *sw = &qp->sw;

	if (sw->path_mtu > QHCA_MTU_4096 || sw->timeout > 31 ||
	    sw->retry_cnt > 7 || sw->rnr_retry > 7 || sw->min_rnr_timer > 31 ||
	    sw->max_rd_atomic > QHCA_MAX_RD_ATOMIC ||
	    sw->max_dest_rd_atomic > QHCA_MAX_RD_ATOMIC || sw->pkey_index)
		return false;
	qp->mtu = sw->path_mtu ? 128u << sw->path_mtu : 256;
	return !(qp->dest_qpn & ~QHCA_QPN_MASK) &&
	       !(get_le32(&sw->sq_psn) & ~QHCA_PSN_MASK) &&
	       !(get_le32(&sw->rq_psn) & ~QHCA_PSN_MASK);
}

bool qhca_qp_load_sw(struct qhca_hca *hca, struct qhca_qp *qp)
{
	const struct qhca_qpc_sw *sw = &qp->sw;

	qhca_qbuf_decode(&qp->buf, &sw->buf);
	qp->handle = get_le64(&sw->handle);
	qp->sq_offset = get_le32(&sw->sq_offset);
	qp->rq_offset = get_le32(&sw->rq_offset);
	qp->rec_offset = get_le32(&sw->rec_offset);
	qp->flags = get_le16(&sw->flags);
	qp->type = sw->type;
	qp->pd = get_le32(&sw->pd);
	qp->db_page = get_le32(&sw->db_page);
	qp->send_cqn = get_le32(&sw->send_cqn);
	qp->recv_cqn = get_le32(&sw->recv_cqn);
	qp->srqn = get_le32(&sw->srqn);
	qp->xrcd = get_le32(&sw->xrcd);
	qp->rq_threshold = get_le32(&sw->rq_threshold);
	qp->qkey = get_le32(&sw->qkey);
	qp->dest_qpn = get_le32(&sw->dest_qpn);
	qp->access = get_le32(&sw->access);
	qp->max_inline = get_le16(&sw->max_inline);

	return qp->type <= QHCA_QPT_RAW && qhca_qbuf_valid(&qp->buf) &&
	       !(qp->rec_offset % sizeof(struct qhca_qp_record)) &&
	       qhca_qbuf_holds(&qp->buf, qp->rec_offset,
			       sizeof(struct qhca_qp_record)) &&
	       qp->db_page < hca->cfg.num_db_pages &&
	       sq_sane(hca, qp) && rq_sane(hca, qp) && attrs_sane(qp);
}

/* ---- the hardware part */

#define load_8(p)	(*(p))
#define load_16(p)	get_le16(p)
#define load_32(p)	get_le32(p)
#define load_64(p)	get_le64(p)
#define store_8(p, v)	(*(p) = (v))
#define store_16(p, v)	put_le16(p, v)
#define store_32(p, v)	put_le32(p, v)
#define store_64(p, v)	put_le64(p, v)

static void decode_resource(const struct qhca_resource_hw *from,
			    struct qhca_resource *r)
{
	uint32_t psn = get_le32(&from->psn), start = get_le32(&from->start);

	r->addr = get_le64(&from->addr);
	r->value = get_le64(&from->value);
	r->srq = 0;
	r->rkey = get_le32(&from->rkey);
	r->psn = psn & QHCA_PSN_MASK;
	r->start = start & QHCA_PSN_MASK;
	r->next = get_le32(&from->next) & QHCA_PSN_MASK;
	r->type = psn >> 24;
	r->flags = start >> 24;
	if (r->type == QHCA_RES_READ) {
		r->srq = r->value >> 32;
		r->value &= UINT32_MAX;
	}
}

static void encode_resource(const struct qhca_resource *r,
			    struct qhca_resource_hw *to)
{
	put_le64(&to->addr, r->addr);
	put_le64(&to->value, r->value | (uint64_t)r->srq << 32);
	put_le32(&to->rkey, r->rkey);
	put_le32(&to->psn, r->psn | (uint32_t)r->type << 24);
	put_le32(&to->start, r->start | (uint32_t)r->flags << 24);
	put_le32(&to->next, r->next);
}

static void decode_fault(const struct qhca_fault_hw *from,
			 struct qhca_fault *f)
{
	f->addr = get_le64(&from->addr);
	f->len = get_le64(&from->len);
	f->time = get_le64(&from->time);
	f->token = get_le32(&from->token);
	f->key = get_le32(&from->key);
	f->flags = get_le32(&from->flags);
	f->done = get_le32(&from->done);
	f->psn = get_le32(&from->psn) & QHCA_PSN_MASK;
}

static void encode_fault(const struct qhca_fault *f,
			 struct qhca_fault_hw *to)
{
	put_le64(&to->addr, f->addr);
	put_le64(&to->len, f->len);
	put_le64(&to->time, f->time);
	put_le32(&to->token, f->token);
	put_le32(&to->key, f->key);
	put_le32(&to->flags, f->flags);
	put_le32(&to->done, f->done);
	put_le32(&to->psn, f->psn);
}

static bool requester_sane(const struct qhca_qp *qp)
{
	uint32_t posted = qp->sq_pi - qp->sq_ci;
	uint32_t begun = qp->sq_max - qp->sq_ci;

	return posted <= qp->sq_depth && begun <= posted &&
	       qp->sq_cur - qp->sq_ci <= begun &&
	       !((qp->s_psn | qp->s_una | qp->s_max | qp->s_cur_psn |
		  qp->s_ci_psn | qp->s_asked) & ~QHCA_PSN_MASK) &&
	       ((qp->s_max - qp->s_una) & QHCA_PSN_MASK) <= QHCA_PSN_HALF &&
	       ((qp->s_psn - qp->s_una) & QHCA_PSN_MASK) <=
	       ((qp->s_max - qp->s_una) & QHCA_PSN_MASK) &&
	       qp->s_reads <= QHCA_MAX_RD_ATOMIC && qp->s_retry <= 7 &&
	       qp->s_rnr <= 7;
}

/* Does PSN @psn lie in the range of @r, its end included? */
static bool res_psn_sane(const struct qhca_qp *qp,
			 const struct qhca_resource *r, uint32_t psn)
{
	uint32_t packets = r->type == QHCA_RES_READ ?
			   qhca_packets(r->value, qp->mtu) : 1;

	return ((psn - r->psn) & QHCA_PSN_MASK) <= packets;
}

static bool responder_sane(const struct qhca_qp *qp)
{
	unsigned int pending = 0;

	if (qp->rq_pi - qp->rq_ci > qp->rq_depth ||
	    (qp->r_psn | qp->r_msn | qp->r_ack_psn | qp->r_nak_psn) &
	    ~QHCA_PSN_MASK || qp->r_op > QHCA_RMSG_WRITE ||
	    qp->res_head >= QHCA_MAX_RD_ATOMIC)
		return false;
	for (unsigned int i = 0; i < QHCA_MAX_RD_ATOMIC; i++) {
		const struct qhca_resource *r = &qp->res[i];

		if (r->type > QHCA_RES_PLACE ||
		    (r->type == QHCA_RES_READ && r->value > QHCA_MAX_MSG_SIZE))
			return false;
		if (!(r->flags & QHCA_RES_F_PENDING))
			continue;
		if (!r->type || !res_psn_sane(qp, r, r->start) ||
		    !res_psn_sane(qp, r, r->next))
			return false;
		pending++;
	}
	return pending == qp->res_pending;
}

static bool decode(struct qhca_hca *hca, uint32_t index, const void *image,
		   void *ctx)
{
	const struct qhca_qpc *c = image;
	const struct qhca_qpc_hw *hw = (const void *)c->hw;
	struct qhca_qp *qp = ctx;

	memset(qp, 0, sizeof(*qp));
	qp->qpn = index;
	memcpy(&qp->sw, &c->sw, sizeof(qp->sw));
	if (!qhca_qp_load_sw(hca, qp))
		return false;
#define DECODE(bits, name) qp->name = load_##bits(&hw->name);
	QHCA_QPC_HW_FIELDS(DECODE)
#undef DECODE
	for (unsigned int i = 0; i < QHCA_MAX_RD_ATOMIC; i++)
		decode_resource(&hw->res[i], &qp->res[i]);
	for (unsigned int i = 0; i < QHCA_NUM_FAULT_DIRS; i++)
		decode_fault(&hw->fault[i], &qp->fault[i]);

	/* what the chip knows by itself decides */
	return qp->state == hca->qps.slot[index].state &&
	       qp->type == hca->qps.slot[index].type &&
	       !(qp->f_state & ~QHCA_FS_ALL) &&
	       requester_sane(qp) && responder_sane(qp);
}

static void encode(const void *ctx, void *image)
{
	const struct qhca_qp *qp = ctx;
	struct qhca_qpc *c = image;
	struct qhca_qpc_hw *hw = (void *)c->hw;

	memset(c, 0, sizeof(*c));
	memcpy(&c->sw, &qp->sw, sizeof(c->sw));
#define ENCODE(bits, name) store_##bits(&hw->name, qp->name);
	QHCA_QPC_HW_FIELDS(ENCODE)
#undef ENCODE
	for (unsigned int i = 0; i < QHCA_MAX_RD_ATOMIC; i++)
		encode_resource(&qp->res[i], &hw->res[i]);
	for (unsigned int i = 0; i < QHCA_NUM_FAULT_DIRS; i++)
		encode_fault(&qp->fault[i], &hw->fault[i]);
}

static const struct qhca_ctx_ops qp_ctx_ops = {
	.size = sizeof(struct qhca_qp),
	.decode = decode,
	.encode = encode,
};

/* ---- the table of QPs */

bool qhca_qps_init(struct qhca_hca *hca, struct qhca_geometry geometry)
{
	struct qhca_qps *qps = &hca->qps;

	qhca_qps_fini(hca);
	qps->num_slots = 1u << hca->cfg.log_max_qp;
	qps->slot = calloc(qps->num_slots, sizeof(*qps->slot));
	if (!qps->slot || !qhca_sched_init(hca, qps->num_slots) ||
	    !qhca_ctxcache_init(hca, &qps->cache, QHCA_CACHE_QD, QHCA_TABLE_QP,
				&qp_ctx_ops, geometry)) {
		qhca_qps_fini(hca);
		return false;
	}
	return true;
}

void qhca_qps_fini(struct qhca_hca *hca)
{
	struct qhca_qps *qps = &hca->qps;

	qhca_ctxcache_fini(&qps->cache);
	qhca_sched_fini(hca);
	qhca_linger_init(hca);
	free(qps->slot);
	qps->slot = NULL;
	qps->num_slots = 0;
	qps->live = 0;
}

struct qhca_qp *qhca_qp_get(struct qhca_hca *hca, uint32_t qpn)
{
	if (qpn >= hca->qps.num_slots || !hca->qps.slot[qpn].live)
		return NULL;
	return qhca_ctx_get(hca, &hca->qps.cache, qpn);
}

void qhca_qp_dirty(struct qhca_hca *hca, struct qhca_qp *qp)
{
	qhca_ctx_dirty(&hca->qps.cache, qp);
}

bool qhca_qp_is_ud(const struct qhca_hca *hca, uint32_t qpn)
{
	return qpn < hca->qps.num_slots && hca->qps.slot[qpn].live &&
	       hca->qps.slot[qpn].type == QHCA_QPT_UD;
}

bool qhca_qp_is_raw(const struct qhca_hca *hca, uint32_t qpn)
{
	return qpn < hca->qps.num_slots && hca->qps.slot[qpn].live &&
	       hca->qps.slot[qpn].type == QHCA_QPT_RAW;
}

bool qhca_qp_info(struct qhca_hca *hca, uint32_t qpn,
		  struct qhca_qp_info *info)
{
	struct qhca_qp qp;

	if (qpn >= hca->qps.num_slots || !hca->qps.slot[qpn].live)
		return false;
	memset(info, 0, sizeof(*info));
	info->qpn = qpn;
	info->type = hca->qps.slot[qpn].type;
	info->state = hca->qps.slot[qpn].state;
	info->cached = qhca_ctx_peek(&hca->qps.cache, qpn);
	if (!qhca_ctx_read(hca, &hca->qps.cache, qpn, &qp))
		return true;
	info->dest_qpn = qp.dest_qpn;
	info->sq_pi = qp.sq_pi;
	info->sq_ci = qp.sq_ci;
	info->rq_pi = qp.rq_pi;
	info->rq_ci = qp.rq_ci;
	info->sq_psn = qp.s_psn;
	info->una_psn = qp.s_una;
	info->rq_psn = qp.r_psn;
	return true;
}

/* ---- state */

void qhca_qp_set_state(struct qhca_hca *hca, struct qhca_qp *qp,
		       enum qhca_qp_state state)
{
	qhca_trace(hca, QHCA_TRACE_QP_STATE, qp->qpn, qp->state, state, 0);
	qp->state = state;
	hca->qps.slot[qp->qpn].state = state;
	qhca_qp_dirty(hca, qp);
}

void qhca_qp_error(struct qhca_hca *hca, struct qhca_qp *qp)
{
	if (qp->state == QHCA_QPS_ERR)
		return;
	qhca_sched_timer_stop(hca, qp->qpn);
	qp->s_flags &= ~(QHCA_SF_RNR_WAIT | QHCA_SF_ACK_WAIT |
			 QHCA_SF_DRAINING);
	qp->r_flags &= ~(QHCA_RF_ACK | QHCA_RF_NAK | QHCA_RF_UNSOLICITED);
	qhca_fault_forget(hca, qp);
	for (unsigned int i = 0; i < QHCA_MAX_RD_ATOMIC; i++)
		qp->res[i].flags = 0;
	qp->res_pending = 0;
	qhca_qp_set_state(hca, qp, QHCA_QPS_ERR);
	/* before the flush looks at sq_pi: later posts ring */
	qhca_qp_set_active(hca, qp, false);
	qhca_sched_work(hca, qp->qpn, QHCA_WORK_FLUSH);
}

void qhca_qp_error_event(struct qhca_hca *hca, struct qhca_qp *qp,
			 enum qhca_event event)
{
	if (qp->state == QHCA_QPS_ERR)
		return;
	qhca_event(hca, event, qp->qpn, 0);
	qhca_qp_error(hca, qp);
}

/* ---- the record */

void qhca_qp_set_active(struct qhca_hca *hca, struct qhca_qp *qp, bool on)
{
	if (!(qp->flags & QHCA_QP_HAS_SQ) || on == !!(qp->s_flags & QHCA_SF_ACTIVE))
		return;
	if (on)
		qp->s_flags |= QHCA_SF_ACTIVE;
	else
		qp->s_flags &= ~QHCA_SF_ACTIVE;
	qhca_qp_dirty(hca, qp);
	/* a record that cannot be written cannot be read: found out there */
	qhca_qbuf_write32(hca, &qp->buf, qp->rec_offset + REC_ACTIVE, on);
	if (!on)
		atomic_thread_fence(memory_order_seq_cst);
}

/* Is @pi ahead of @old with at most @depth entries since @ci? */
static bool pi_moved(uint32_t pi, uint32_t old, uint32_t ci, uint32_t depth)
{
	return pi != old && pi - ci <= depth && pi - old <= depth;
}

static bool refetch(struct qhca_hca *hca, struct qhca_qp *qp, uint32_t field,
		    uint32_t *pi, uint32_t ci, uint32_t depth)
{
	uint32_t v;

	if (qhca_qbuf_read32(hca, &qp->buf, qp->rec_offset + field, &v)) {
		qhca_qp_error_event(hca, qp, QHCA_EVENT_QP_FATAL);
		return false;
	}
	if (!pi_moved(v, *pi, ci, depth))
		return false;
	*pi = v;
	qhca_qp_dirty(hca, qp);
	return true;
}

bool qhca_qp_refetch_sq(struct qhca_hca *hca, struct qhca_qp *qp)
{
	uint32_t old = qp->sq_pi;

	if (!qp->sq_depth || !refetch(hca, qp, REC_SQ_PI, &qp->sq_pi,
				      qp->sq_ci, qp->sq_depth))
		return false;
	qhca_count_n(hca, QHCA_CNT_sq_wqes_found, qp->sq_pi - old);
	qhca_linger_posted(hca, qp, old);
	return true;
}

bool qhca_qp_refetch_rq(struct qhca_hca *hca, struct qhca_qp *qp)
{
	bool moved;

	if (!qp->rq_depth)
		return false;
	qhca_count(hca, QHCA_CNT_refetches);
	qhca_count(hca, QHCA_CNT_rq_refetches);
	moved = refetch(hca, qp, REC_RQ_PI, &qp->rq_pi, qp->rq_ci,
			qp->rq_depth);
	if (!moved)
		qhca_count(hca, QHCA_CNT_refetches_unchanged);
	return moved;
}

/* ---- completions */

static void post(struct qhca_hca *hca, struct qhca_qp *qp, uint32_t cqn,
		 uint64_t handle, struct qhca_cqe *cqe)
{
	put_le32(&cqe->qpn, qp->qpn);
	put_le64(&cqe->handle, handle);
	if (!qhca_cq_post(hca, cqn, cqe))
		qhca_qp_error_event(hca, qp, QHCA_EVENT_QP_FATAL);
}

void qhca_complete_send(struct qhca_hca *hca, struct qhca_qp *qp,
			const struct qhca_send_wc *wc)
{
	struct qhca_cqe cqe = { .status = wc->status, .opcode = wc->opcode };

	put_le64(&cqe.wr_id, wc->wr_id);
	put_le32(&cqe.byte_len, wc->byte_len);
	put_le32(&cqe.wqe, wc->wqe);
	put_le32(&cqe.syndrome, wc->syndrome);
	put_le16(&cqe.vlan, QHCA_VLAN_NONE);
	put_le32(&cqe.flags, QHCA_CQE_REQUESTER);
	post(hca, qp, qp->send_cqn, qp->handle, &cqe);
	qhca_linger_told(hca, qp, wc->wqe);
}

void qhca_complete_recv(struct qhca_hca *hca, struct qhca_qp *qp,
			struct qhca_cqe *cqe)
{
	struct qhca_xsrq to = { .cqn = qp->recv_cqn, .handle = qp->handle };
	uint32_t flags = get_le32(&cqe->flags);

	put_le64(&cqe->wr_id, qp->rwqe.wr_id);
	put_le32(&cqe->wqe, qp->r_slot);
	qp->r_flags &= ~QHCA_RF_RWQE;
	qp->rwqe.valid = false;
	qhca_qp_dirty(hca, qp);
	if (qhca_qp_uses_srq(qp))
		flags |= QHCA_CQE_SRQ;
	if (qp->type == QHCA_QPT_XRC_TGT) {
		if (!qhca_srq_xrc_again(hca, qp->r_srq, qp->xrcd, &to))
			return;
		flags |= QHCA_CQE_XRC;
	}
	put_le32(&cqe->flags, flags);
	post(hca, qp, to.cqn, to.handle, cqe);
}

/* ---- receive queue */

static enum qhca_take take_rq(struct qhca_hca *hca, struct qhca_qp *qp)
{
	bool flushing = qp->state == QHCA_QPS_ERR;
	uint32_t left = qp->rq_pi - qp->rq_ci;

	if (!qp->rq_depth)
		return QHCA_TAKE_EMPTY;
	if (!left)
		qhca_count(hca, QHCA_CNT_refetches_before_rnr);
	if (!left || left < qp->rq_threshold) {
		qhca_qp_refetch_rq(hca, qp);
		if (qp->state == QHCA_QPS_ERR && !flushing)
			return QHCA_TAKE_ERROR;	/* by the refetch */
	}
	if (qp->rq_pi == qp->rq_ci)
		return QHCA_TAKE_EMPTY;
	if (qhca_rwqe_fetch(hca, qp, qp->rq_ci, &qp->rwqe))
		return QHCA_TAKE_ERROR;
	qp->r_slot = qp->rq_ci++;
	return QHCA_TAKE_OK;
}

/* After an eviction the entry in progress is read again. */
static enum qhca_take reread(struct qhca_hca *hca, struct qhca_qp *qp)
{
	struct qhca_xsrq x;

	if (qp->rwqe.valid && qp->rwqe.num == qp->r_slot)
		return QHCA_TAKE_OK;
	if (qp->type == QHCA_QPT_XRC_TGT) {
		if (!qhca_srq_xrc_again(hca, qp->r_srq, qp->xrcd, &x))
			return QHCA_TAKE_ERROR;
		return qhca_srq_reread(hca, x.srqn, qp->r_slot, &qp->rwqe);
	}
	if (qp->flags & QHCA_QP_SRQ)
		return qhca_srq_reread(hca, qp->srqn, qp->r_slot, &qp->rwqe);
	if (!qp->rq_depth || qhca_rwqe_fetch(hca, qp, qp->r_slot, &qp->rwqe))
		return QHCA_TAKE_ERROR;
	return QHCA_TAKE_OK;
}

enum qhca_take qhca_take_rwqe(struct qhca_hca *hca, struct qhca_qp *qp)
{
	struct qhca_xsrq x = { .srqn = qp->srqn };
	enum qhca_take take;

	if (qp->r_flags & QHCA_RF_RWQE)
		return reread(hca, qp);
	if (qhca_qp_uses_srq(qp)) {
		if (qp->type == QHCA_QPT_XRC_TGT &&
		    !qhca_srq_xrc_again(hca, qp->r_srq, qp->xrcd, &x))
			return QHCA_TAKE_ERROR;
		take = qhca_srq_take(hca, x.srqn, &qp->rwqe);
		if (take == QHCA_TAKE_OK)
			qp->r_slot = qp->rwqe.num;
	} else {
		take = take_rq(hca, qp);
	}
	if (take == QHCA_TAKE_OK) {
		qp->r_flags |= QHCA_RF_RWQE;
		qhca_qp_dirty(hca, qp);
	}
	return take;
}
