/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QP contexts: between memory and host order, and the table of QPs.
 *
 * A context that comes back from memory is not trusted: everything that is
 * used as an index, a length or a state is checked here once, so that the rest
 * need not.
 */
#include "transport/transport.h"

#include <stdlib.h>

/* ---- the software part */

/* A ring of 2^log_depth entries of 2^log_stride bytes at @offset. */
static bool ring_fits(const struct hca_qbuf *qb, uint32_t offset,
		      unsigned int log_depth, unsigned int log_stride)
{
	uint32_t stride = 1u << log_stride;

	return !(offset & (stride - 1)) &&
	       hca_qbuf_holds(qb, offset, (uint64_t)stride << log_depth);
}

static bool sq_sane(struct hca_fn *fn, struct hca_qp *qp)
{
	const struct qhca_qpc_sw *sw = &qp->sw;

	qp->sq_depth = 0;
	if (!(qp->flags & QHCA_QP_HAS_SQ))
		return true;
	if (sw->sq_log_depth > fn->cfg.log_max_wq_depth ||
	    sw->sq_log_stride < QHCA_MIN_LOG_WQE_STRIDE ||
	    sw->sq_log_stride > HCA_MAX_LOG_WQE_STRIDE ||
	    sw->sq_max_sge > HCA_MAX_SGE ||
	    qp->max_inline > HCA_MAX_INLINE)
		return false;
	qp->sq_depth = 1u << sw->sq_log_depth;
	return ring_fits(&qp->buf, qp->sq_offset, sw->sq_log_depth,
			 sw->sq_log_stride);
}

static bool rq_sane(struct hca_fn *fn, struct hca_qp *qp)
{
	const struct qhca_qpc_sw *sw = &qp->sw;

	qp->rq_depth = 0;
	if (!(qp->flags & QHCA_QP_HAS_RQ))
		return true;
	if (qp->flags & QHCA_QP_SRQ ||
	    sw->rq_log_depth > fn->cfg.log_max_wq_depth ||
	    sw->rq_log_stride < QHCA_MIN_LOG_RWQE_STRIDE ||
	    sw->rq_log_stride > HCA_MAX_LOG_RWQE_STRIDE ||
	    sw->rq_max_sge > HCA_MAX_SGE)
		return false;
	qp->rq_depth = 1u << sw->rq_log_depth;
	return qp->rq_threshold <= qp->rq_depth &&
	       ring_fits(&qp->buf, qp->rq_offset, sw->rq_log_depth,
			 sw->rq_log_stride);
}

/* Attributes that MODIFY_QP sets; zero before it has set them. */
static bool attrs_sane(struct hca_qp *qp)
{
	const struct qhca_qpc_sw *sw = &qp->sw;

	if (sw->path_mtu > QHCA_MTU_4096 || sw->timeout > 31 ||
	    sw->retry_cnt > 7 || sw->rnr_retry > 7 || sw->min_rnr_timer > 31 ||
	    sw->max_rd_atomic > HCA_MAX_RD_ATOMIC ||
	    sw->max_dest_rd_atomic > HCA_MAX_RD_ATOMIC || sw->pkey_index)
		return false;
	qp->mtu = sw->path_mtu ? 128u << sw->path_mtu : 256;
	return !(qp->dest_qpn & ~HCA_QPN_MASK) &&
	       !(get_le32(&sw->sq_psn) & ~HCA_PSN_MASK) &&
	       !(get_le32(&sw->rq_psn) & ~HCA_PSN_MASK);
}

bool hca_qp_load_sw(struct hca_fn *fn, struct hca_qp *qp)
{
	const struct qhca_qpc_sw *sw = &qp->sw;

	hca_qbuf_decode(&qp->buf, &sw->buf);
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

	return qp->type <= QHCA_QPT_RAW && hca_qbuf_valid(&qp->buf) &&
	       !(qp->rec_offset % sizeof(struct qhca_qp_record)) &&
	       hca_qbuf_holds(&qp->buf, qp->rec_offset,
			      sizeof(struct qhca_qp_record)) &&
	       qp->db_page < fn->cfg.num_db_pages &&
	       sq_sane(fn, qp) && rq_sane(fn, qp) && attrs_sane(qp);
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

static void decode_resource(const struct hca_resource_hw *from,
			    struct hca_resource *r)
{
	uint32_t psn = get_le32(&from->psn), start = get_le32(&from->start);

	r->addr = get_le64(&from->addr);
	r->value = get_le64(&from->value);
	r->srq = 0;
	r->rkey = get_le32(&from->rkey);
	r->psn = psn & HCA_PSN_MASK;
	r->start = start & HCA_PSN_MASK;
	r->next = get_le32(&from->next) & HCA_PSN_MASK;
	r->type = psn >> 24;
	r->flags = start >> 24;
	if (r->type == HCA_RES_READ) {
		r->srq = r->value >> 32;
		r->value &= UINT32_MAX;
	}
}

static void encode_resource(const struct hca_resource *r,
			    struct hca_resource_hw *to)
{
	put_le64(&to->addr, r->addr);
	put_le64(&to->value, r->value | (uint64_t)r->srq << 32);
	put_le32(&to->rkey, r->rkey);
	put_le32(&to->psn, r->psn | (uint32_t)r->type << 24);
	put_le32(&to->start, r->start | (uint32_t)r->flags << 24);
	put_le32(&to->next, r->next);
}

static void decode_fault(const struct hca_fault_hw *from,
			 struct hca_fault *f)
{
	f->addr = get_le64(&from->addr);
	f->len = get_le64(&from->len);
	f->time = get_le64(&from->time);
	f->token = get_le32(&from->token);
	f->key = get_le32(&from->key);
	f->flags = get_le32(&from->flags);
	f->done = get_le32(&from->done);
	f->psn = get_le32(&from->psn) & HCA_PSN_MASK;
	f->bus = get_le64(&from->bus);
	f->bus_len = get_le32(&from->bus_len);
}

static void encode_fault(const struct hca_fault *f,
			 struct hca_fault_hw *to)
{
	put_le64(&to->addr, f->addr);
	put_le64(&to->len, f->len);
	put_le64(&to->time, f->time);
	put_le32(&to->token, f->token);
	put_le32(&to->key, f->key);
	put_le32(&to->flags, f->flags);
	put_le32(&to->done, f->done);
	put_le32(&to->psn, f->psn);
	put_le64(&to->bus, f->bus);
	put_le32(&to->bus_len, f->bus_len);
}

/* The oldest PSN is one of WQE sq_ci, which has at most HCA_PSN_HALF of them. */
static bool oldest_sane(const struct hca_qp *qp)
{
	return ((qp->s_una - qp->s_ci_psn) & HCA_PSN_MASK) <= HCA_PSN_HALF;
}

static bool requester_sane(const struct hca_qp *qp)
{
	uint32_t posted = qp->sq_pi - qp->sq_ci;
	uint32_t begun = qp->sq_max - qp->sq_ci;

	return posted <= qp->sq_depth && begun <= posted &&
	       begun <= HCA_SEND_BEGUN &&
	       qp->sq_cur - qp->sq_ci <= begun &&
	       !((qp->s_psn | qp->s_una | qp->s_max | qp->s_cur_psn |
		  qp->s_ci_psn | qp->s_asked) & ~HCA_PSN_MASK) &&
	       oldest_sane(qp) &&
	       ((qp->s_max - qp->s_una) & HCA_PSN_MASK) <= HCA_PSN_HALF &&
	       ((qp->s_psn - qp->s_una) & HCA_PSN_MASK) <=
	       ((qp->s_max - qp->s_una) & HCA_PSN_MASK) &&
	       qp->s_reads <= HCA_MAX_RD_ATOMIC && qp->s_retry <= 7 &&
	       qp->s_rnr <= 7;
}

/* Does PSN @psn lie in the range of @r, its end included? */
static bool res_psn_sane(const struct hca_qp *qp,
			 const struct hca_resource *r, uint32_t psn)
{
	uint32_t packets = r->type == HCA_RES_READ ?
			   hca_packets(r->value, qp->mtu) : 1;

	return ((psn - r->psn) & HCA_PSN_MASK) <= packets;
}

static bool responder_sane(const struct hca_qp *qp)
{
	unsigned int pending = 0;

	if (qp->rq_pi - qp->rq_ci > qp->rq_depth ||
	    (qp->r_psn | qp->r_msn | qp->r_ack_psn | qp->r_nak_psn) &
	    ~HCA_PSN_MASK || qp->r_op > HCA_RMSG_WRITE ||
	    qp->res_head >= HCA_MAX_RD_ATOMIC)
		return false;
	for (unsigned int i = 0; i < HCA_MAX_RD_ATOMIC; i++) {
		const struct hca_resource *r = &qp->res[i];

		if (r->type > HCA_RES_PLACE ||
		    (r->type == HCA_RES_READ && r->value > HCA_MAX_MSG_SIZE))
			return false;
		if (!(r->flags & HCA_RES_F_PENDING))
			continue;
		if (!r->type || !res_psn_sane(qp, r, r->start) ||
		    !res_psn_sane(qp, r, r->next))
			return false;
		pending++;
	}
	return pending == qp->res_pending &&
	       (!pending || hca_qp_is_reliable(qp));
}

static bool decode(struct hca_fn *fn, uint32_t index, const void *image,
		   void *ctx)
{
	const struct qhca_qpc *c = image;
	const struct hca_qpc_hw *hw = (const void *)c->hw;
	struct hca_qp *qp = ctx;

	memset(qp, 0, offsetof(struct hca_qp, sum));
	qp->qpn = index;
	memcpy(&qp->sw, &c->sw, sizeof(qp->sw));
	if (!hca_qp_load_sw(fn, qp))
		return false;
#define DECODE(bits, name) qp->name = load_##bits(&hw->name);
	HCA_QPC_HW_FIELDS(DECODE)
#undef DECODE
	for (unsigned int i = 0; i < HCA_MAX_RD_ATOMIC; i++)
		decode_resource(&hw->res[i], &qp->res[i]);
	for (unsigned int i = 0; i < HCA_NUM_FAULT_DIRS; i++)
		decode_fault(&hw->fault[i], &qp->fault[i]);

	/* Memory may not contradict what the slot says of the QP. */
	return qp->state == fn->qps.slot[index].state &&
	       qp->type == fn->qps.slot[index].type &&
	       qp->counter_set < HCA_NUM_COUNTER_SETS &&
	       hca_qp_parts_sane(qp) &&
	       hca_qp_faults_sane(qp) &&
	       requester_sane(qp) && responder_sane(qp);
}

static void encode(const void *ctx, void *image)
{
	const struct hca_qp *qp = ctx;
	struct qhca_qpc *c = image;
	struct hca_qpc_hw *hw = (void *)c->hw;

	hca_qp_check(qp);
	memset(c, 0, sizeof(*c));
	memcpy(&c->sw, &qp->sw, sizeof(c->sw));
#define ENCODE(bits, name) store_##bits(&hw->name, qp->name);
	HCA_QPC_HW_FIELDS(ENCODE)
#undef ENCODE
	for (unsigned int i = 0; i < HCA_MAX_RD_ATOMIC; i++)
		encode_resource(&qp->res[i], &hw->res[i]);
	for (unsigned int i = 0; i < HCA_NUM_FAULT_DIRS; i++)
		encode_fault(&qp->fault[i], &hw->fault[i]);
}

static const struct hca_ctx_ops qp_ctx_ops = {
	.size = sizeof(struct hca_qp),
	.decode = decode,
	.encode = encode,
};

/* ---- the table of QPs */

bool hca_qps_create(struct hca_fn *fn)
{
	fn->qps.fault_gen = calloc(1u << fn->cfg.log_max_qp,
				   sizeof(*fn->qps.fault_gen));
	return fn->qps.fault_gen;
}

bool hca_qps_init(struct hca_fn *fn, struct qhca_geometry geometry)
{
	struct hca_qps *qps = &fn->qps;

	hca_qps_fini(fn);
	qps->num_slots = 1u << fn->cfg.log_max_qp;
	qps->slot = calloc(qps->num_slots, sizeof(*qps->slot));
	if (fn->cfg.gvmi)
		qps->s2_link = calloc(qps->num_slots, sizeof(*qps->s2_link));
	else
		/* Its own software answers its faults, and has forgotten them. */
		memset(qps->fault_gen, 0, qps->num_slots);
	if (!qps->slot || (fn->cfg.gvmi && !qps->s2_link) ||
	    !hca_sched_init(fn, qps->num_slots) ||
	    !hca_ctxcache_join(fn, &fn->hca->cache.qd, QHCA_CACHE_QD,
			       QHCA_TABLE_QP, &qp_ctx_ops, geometry)) {
		hca_qps_fini(fn);
		return false;
	}
	return true;
}

void hca_qps_fini(struct hca_fn *fn)
{
	struct hca_qps *qps = &fn->qps;

	hca_ctxcache_leave(fn, &fn->hca->cache.qd);
	hca_sched_fini(fn);
	hca_linger_fini(fn);
	free(qps->slot);
	free(qps->s2_link);
	qps->slot = NULL;
	qps->s2_link = NULL;
	qps->num_slots = 0;
}

void hca_qps_destroy(struct hca_fn *fn)
{
	hca_qps_fini(fn);
	free(fn->qps.fault_gen);
	fn->qps.fault_gen = NULL;
}

struct hca_qp *hca_qp_get(struct hca_fn *fn, uint32_t qpn)
{
	if (qpn >= fn->qps.num_slots || !fn->qps.slot[qpn].live)
		return NULL;
	return hca_ctx_get(fn, &fn->hca->cache.qd, qpn);
}

void hca_qp_dirty(struct hca_fn *fn, struct hca_qp *qp)
{
	hca_ctx_dirty(&fn->hca->cache.qd, qp);
}

bool hca_qp_is_ud(const struct hca_fn *fn, uint32_t qpn)
{
	return qpn < fn->qps.num_slots && fn->qps.slot[qpn].live &&
	       fn->qps.slot[qpn].type == QHCA_QPT_UD;
}

bool hca_qp_is_raw(const struct hca_fn *fn, uint32_t qpn)
{
	return qpn < fn->qps.num_slots && fn->qps.slot[qpn].live &&
	       fn->qps.slot[qpn].type == QHCA_QPT_RAW;
}

bool hca_qp_info(struct hca_fn *fn, uint32_t qpn,
		 struct qhca_qp_info *info)
{
	struct hca_qp qp;

	if (qpn >= fn->qps.num_slots || !fn->qps.slot[qpn].live)
		return false;
	memset(info, 0, sizeof(*info));
	info->qpn = qpn;
	info->type = fn->qps.slot[qpn].type;
	info->state = fn->qps.slot[qpn].state;
	info->cached = hca_ctx_peek(fn, &fn->hca->cache.qd, qpn);
	if (!hca_ctx_observe(fn, &fn->hca->cache.qd, qpn, &qp))
		return true;
	info->dest_qpn = qp.dest_qpn;
	info->sq_pi = qp.sq_pi;
	info->sq_ci = qp.sq_ci;
	info->rq_pi = qp.rq_pi;
	info->rq_ci = qp.rq_ci;
	info->sq_psn = qp.s_psn;
	info->una_psn = qp.s_una;
	info->rq_psn = qp.r_psn;
	hca_qp_part_info(&qp, info);
	return true;
}
