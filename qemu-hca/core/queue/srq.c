/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared receive queues: the list of free WQEs, in software's memory.
 *
 * The device follows the list by the `next` field of each WQE and counts what
 * it has taken; it checks each link, because software can write anything
 * there.  A broken list puts the SRQ in error and is reported by an event.
 */
#include "hca.h"
#include "queue/queue_image.h"
#include "queue/threshold.h"

#include <stdlib.h>

/* `next` of a receive WQE has 16 bits. */
#define MAX_LOG_DEPTH	16

static bool load_sw(struct hca_fn *fn, struct hca_srq *srq)
{
	const struct qhca_srqc_sw *sw = &srq->sw;
	uint64_t bytes;

	hca_qbuf_decode(&srq->buf, &sw->buf);
	srq->handle = get_le64(&sw->handle);
	srq->rec_offset = get_le32(&sw->rec_offset);
	srq->pd = get_le32(&sw->pd);
	srq->cqn = get_le32(&sw->cqn);
	srq->xrcd = get_le32(&sw->xrcd);
	srq->limit = get_le32(&sw->limit);
	srq->threshold = get_le32(&sw->threshold);
	srq->log_stride = sw->log_stride;
	srq->flags = sw->flags;
	srq->max_sge = sw->max_sge;
	if (sw->log_depth < 1 || sw->log_depth > MAX_LOG_DEPTH ||
	    sw->log_depth > fn->cfg.log_max_wq_depth ||
	    sw->log_stride < QHCA_MIN_LOG_RWQE_STRIDE ||
	    sw->log_stride > HCA_MAX_LOG_RWQE_STRIDE ||
	    srq->max_sge > HCA_MAX_SGE ||
	    16u + 16u * srq->max_sge > 1u << sw->log_stride ||
	    sw->flags & ~(QHCA_SRQ_XRC | QHCA_SRQ_KERNEL))
		return false;

	srq->depth = 1u << sw->log_depth;
	bytes = (uint64_t)srq->depth << sw->log_stride;
	return srq->limit <= srq->depth && srq->threshold <= srq->depth &&
	       hca_qbuf_valid(&srq->buf) &&
	       hca_qbuf_holds(&srq->buf, 0, bytes) &&
	       !(srq->rec_offset % sizeof(struct qhca_srq_record)) &&
	       hca_qbuf_holds(&srq->buf, srq->rec_offset,
			      sizeof(struct qhca_srq_record));
}

static bool decode(struct hca_fn *fn, uint32_t index, const void *image,
		   void *ctx)
{
	const struct qhca_srqc *c = image;
	struct hca_srq *srq = ctx;

	memset(srq, 0, sizeof(*srq));
	srq->srqn = index;
	memcpy(&srq->sw, &c->sw, sizeof(srq->sw));
	if (!load_sw(fn, srq))
		return false;
	srq->state = get_le32(&c->state);
	srq->head = get_le32(&c->head);
	srq->taken = get_le32(&c->taken);
	srq->pi = get_le32(&c->pi);
	return (srq->state == HCA_SRQ_LIVE || srq->state == HCA_SRQ_ERROR) &&
	       srq->head < srq->depth && srq->pi - srq->taken <= srq->depth;
}

static void encode(const void *ctx, void *image)
{
	const struct hca_srq *srq = ctx;
	struct qhca_srqc *c = image;

	memset(c, 0, sizeof(*c));
	memcpy(&c->sw, &srq->sw, sizeof(c->sw));
	put_le32(&c->sw.limit, srq->limit);
	put_le32(&c->state, srq->state);
	put_le32(&c->head, srq->head);
	put_le32(&c->taken, srq->taken);
	put_le32(&c->pi, srq->pi);
}

static const struct hca_ctx_ops srq_ctx_ops = {
	.size = sizeof(struct hca_srq),
	.decode = decode,
	.encode = encode,
};

bool hca_srqs_init(struct hca_fn *fn, struct qhca_geometry geometry)
{
	struct hca_srqs *srqs = &fn->srqs;

	hca_srqs_fini(fn);
	srqs->num_slots = 1u << fn->cfg.log_max_srq;
	srqs->slot = calloc(srqs->num_slots, sizeof(*srqs->slot));
	if (!srqs->slot ||
	    !hca_ctxcache_join(fn, &fn->hca->cache.srq, QHCA_CACHE_SRQ,
			       QHCA_TABLE_SRQ, &srq_ctx_ops, geometry)) {
		hca_srqs_fini(fn);
		return false;
	}
	return true;
}

void hca_srqs_fini(struct hca_fn *fn)
{
	struct hca_srqs *srqs = &fn->srqs;

	hca_ctxcache_leave(fn, &fn->hca->cache.srq);
	free(srqs->slot);
	srqs->slot = NULL;
	srqs->num_slots = 0;
}

static bool live(const struct hca_fn *fn, uint32_t srqn)
{
	return srqn < fn->srqs.num_slots && fn->srqs.slot[srqn].live;
}

static struct hca_srq *get(struct hca_fn *fn, uint32_t srqn)
{
	return live(fn, srqn) ?
	       hca_ctx_get(fn, &fn->hca->cache.srq, srqn) : NULL;
}

bool hca_srq_ref(struct hca_fn *fn, uint32_t srqn)
{
	if (!live(fn, srqn) || fn->srqs.slot[srqn].xrc)
		return false;
	fn->srqs.slot[srqn].users++;
	return true;
}

void hca_srq_unref(struct hca_fn *fn, uint32_t srqn)
{
	if (live(fn, srqn) && fn->srqs.slot[srqn].users)
		fn->srqs.slot[srqn].users--;
}

void hca_srqs_restore(struct hca_fn *fn)
{
	struct hca_srq srq;

	for (uint32_t srqn = 0; srqn < fn->srqs.num_slots && !hca_is_dead(fn);
	     srqn++) {
		if (!live(fn, srqn))
			continue;
		if (hca_ctx_read(fn, &fn->hca->cache.srq, srqn, &srq) &&
		    (!(srq.flags & QHCA_SRQ_XRC) || hca_cq_ref(fn, srq.cqn)))
			fn->srqs.slot[srqn].xrc = srq.flags & QHCA_SRQ_XRC;
		else
			hca_fatal(fn, QHCA_FATAL_CONTEXT,
				  (uint32_t)QHCA_TABLE_SRQ << 24 | srqn);
	}
}

/* ---- taking entries */

/* The list is broken or unreachable: the device takes nothing from it any more. */
static enum hca_take fail_srq(struct hca_fn *fn, struct hca_srq *srq)
{
	if (srq->state != HCA_SRQ_ERROR) {
		srq->state = HCA_SRQ_ERROR;
		hca_ctx_dirty(&fn->hca->cache.srq, srq);
		hca_event(fn, QHCA_EVENT_SRQ_ERROR, srq->srqn, 0);
	}
	return HCA_TAKE_ERROR;
}

static bool refetch(struct hca_fn *fn, struct hca_srq *srq)
{
	struct hca_software_half half;		/* pi, threshold */

	hca_count(fn, QHCA_CNT_refetches);
	hca_count(fn, QHCA_CNT_srq_refetches);
	if (hca_qbuf_read_half(fn, &srq->buf, srq->rec_offset, &half))
		return false;
	if (hca_threshold_take(&srq->threshold, half.second, srq->depth)) {
		put_le32(&srq->sw.threshold, srq->threshold);
		hca_ctx_dirty(&fn->hca->cache.srq, srq);
	}
	/* A producer index that is not sane counts as unchanged. */
	if (half.first == srq->pi || half.first - srq->taken > srq->depth ||
	    half.first - srq->pi > srq->depth) {
		hca_count(fn, QHCA_CNT_refetches_unchanged);
		return true;
	}
	srq->pi = half.first;
	hca_ctx_dirty(&fn->hca->cache.srq, srq);
	return true;
}

/* Raise the limit event, once, if fewer WQEs than the limit are left. */
static bool check_limit(struct hca_fn *fn, struct hca_srq *srq)
{
	if (!srq->limit || srq->pi - srq->taken >= srq->limit)
		return true;
	/* The copy of pi may be stale, so refetch before the event. */
	if (!refetch(fn, srq))
		return false;
	if (srq->pi - srq->taken < srq->limit) {
		hca_event(fn, QHCA_EVENT_SRQ_LIMIT, srq->srqn, srq->limit);
		srq->limit = 0;
		hca_ctx_dirty(&fn->hca->cache.srq, srq);
	}
	return true;
}

enum hca_take hca_srq_take(struct hca_fn *fn, uint32_t srqn,
			   struct hca_rwqe *w)
{
	struct hca_srq *srq = get(fn, srqn);
	uint32_t left;

	if (!srq || srq->state != HCA_SRQ_LIVE)
		return HCA_TAKE_ERROR;
	left = srq->pi - srq->taken;
	if (!left)
		hca_count(fn, QHCA_CNT_refetches_before_rnr);
	if (hca_threshold_low(left, srq->threshold) && !refetch(fn, srq))
		return fail_srq(fn, srq);
	if (srq->pi == srq->taken)
		return HCA_TAKE_EMPTY;
	if (hca_rwqe_fetch_srq(fn, srq, srq->head, w) ||
	    w->next >= srq->depth)
		return fail_srq(fn, srq);

	srq->head = w->next;
	srq->taken++;
	hca_ctx_dirty(&fn->hca->cache.srq, srq);
	return check_limit(fn, srq) ? HCA_TAKE_OK : fail_srq(fn, srq);
}

enum hca_take hca_srq_reread(struct hca_fn *fn, uint32_t srqn,
			     uint32_t slot, struct hca_rwqe *w)
{
	struct hca_srq *srq = get(fn, srqn);

	if (!srq)
		return HCA_TAKE_ERROR;
	if (slot >= srq->depth || hca_rwqe_fetch_srq(fn, srq, slot, w))
		return fail_srq(fn, srq);
	return HCA_TAKE_OK;
}

/* ---- XRC */

#define TOKEN_SRQN	0xffffffu
#define TOKEN_GEN	24

static uint32_t token(const struct hca_fn *fn, uint32_t srqn)
{
	return srqn | (uint32_t)fn->srqs.slot[srqn].generation << TOKEN_GEN;
}

bool hca_srq_xrc(struct hca_fn *fn, uint32_t srqn, uint32_t xrcd,
		 struct hca_xsrq *x)
{
	const struct hca_srq *srq;

	/* The slot is enough to refuse an SRQ that is not for XRC. */
	if (!live(fn, srqn) || !fn->srqs.slot[srqn].xrc)
		return false;
	srq = get(fn, srqn);
	if (!srq || srq->xrcd != xrcd)
		return false;
	*x = (struct hca_xsrq){
		.token = token(fn, srqn), .srqn = srqn, .pd = srq->pd,
		.cqn = srq->cqn, .handle = srq->handle,
	};
	return true;
}

bool hca_srq_xrc_again(struct hca_fn *fn, uint32_t tok, uint32_t xrcd,
		       struct hca_xsrq *x)
{
	uint32_t srqn = tok & TOKEN_SRQN;

	return live(fn, srqn) && token(fn, srqn) == tok &&
	       hca_srq_xrc(fn, srqn, xrcd, x);
}

/* ---- commands */

/* QHCA_CMD_OK: the index names a live SRQ. */
static enum qhca_cmd_status check_index(struct hca_fn *fn, uint32_t srqn)
{
	uint64_t addr;

	if (!(fn->features & QHCA_FEAT_SRQ))
		return QHCA_CMD_UNSUPPORTED;
	if (srqn >= hca_table_size(fn, QHCA_TABLE_SRQ))
		return QHCA_CMD_BAD_INDEX;
	if (!hca_table_entry(fn, QHCA_TABLE_SRQ, srqn, &addr))
		return QHCA_CMD_NOT_MAPPED;
	return live(fn, srqn) ? QHCA_CMD_OK : QHCA_CMD_BAD_STATE;
}

static enum qhca_cmd_status try_create(struct hca_fn *fn, uint32_t srqn,
				       const struct qhca_srqc_sw *sw)
{
	struct hca_srq tmp = { .srqn = srqn, .sw = *sw }, *srq;
	bool xrc = sw->flags & QHCA_SRQ_XRC;

	if (!load_sw(fn, &tmp))
		return QHCA_CMD_BAD_PARAM;
	if (xrc && !(fn->features & QHCA_FEAT_XRC))
		return QHCA_CMD_UNSUPPORTED;
	if (xrc && !hca_cq_ref(fn, tmp.cqn))
		return QHCA_CMD_BAD_PARAM;
	srq = hca_ctx_new(fn, &fn->hca->cache.srq, srqn);
	if (!srq) {
		if (xrc)
			hca_cq_unref(fn, tmp.cqn);
		return QHCA_CMD_NOT_MAPPED;
	}
	*srq = tmp;
	srq->state = HCA_SRQ_LIVE;
	fn->srqs.slot[srqn] = (struct hca_srqslot){
		.live = true, .xrc = xrc,
		.generation = fn->srqs.slot[srqn].generation + 1,
	};
	return hca_ctx_flush(fn, &fn->hca->cache.srq, srqn, false) ?
	       QHCA_CMD_DMA_ERR : QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_create_srq(struct hca_fn *fn,
					struct hca_cmd_ctx *cmd)
{
	enum qhca_cmd_status status = check_index(fn, cmd->index);
	struct qhca_srqc_sw sw;

	if (status == QHCA_CMD_OK)
		return QHCA_CMD_IN_USE;
	if (status != QHCA_CMD_BAD_STATE)
		return status;
	memcpy(&sw, cmd->in, sizeof(sw));
	return try_create(fn, cmd->index, &sw);
}

enum qhca_cmd_status hca_cmd_destroy_srq(struct hca_fn *fn,
					 struct hca_cmd_ctx *cmd)
{
	enum qhca_cmd_status status = check_index(fn, cmd->index);
	struct hca_srq *srq;

	if (status != QHCA_CMD_OK)
		return status;
	if (fn->srqs.slot[cmd->index].users)
		return QHCA_CMD_IN_USE;
	srq = get(fn, cmd->index);
	if (!srq)
		return QHCA_CMD_DMA_ERR;
	if (srq->flags & QHCA_SRQ_XRC)
		hca_cq_unref(fn, srq->cqn);
	srq->state = HCA_SRQ_FREE;
	hca_ctx_dirty(&fn->hca->cache.srq, srq);
	fn->srqs.slot[cmd->index].live = false;
	hca_event_forget_srq(fn, cmd->index);
	return hca_ctx_flush(fn, &fn->hca->cache.srq, cmd->index, true) ?
	       QHCA_CMD_DMA_ERR : QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_query_srq(struct hca_fn *fn,
				       struct hca_cmd_ctx *cmd)
{
	enum qhca_cmd_status status = check_index(fn, cmd->index);
	struct hca_srq *srq;

	if (status != QHCA_CMD_OK)
		return status;
	srq = get(fn, cmd->index);
	if (!srq || hca_ctx_flush(fn, &fn->hca->cache.srq, cmd->index, false))
		return QHCA_CMD_DMA_ERR;
	encode(srq, cmd->out);
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_modify_srq(struct hca_fn *fn,
					struct hca_cmd_ctx *cmd)
{
	enum qhca_cmd_status status = check_index(fn, cmd->index);
	struct hca_srq *srq;

	if (status != QHCA_CMD_OK)
		return status;
	srq = get(fn, cmd->index);
	if (!srq)
		return QHCA_CMD_DMA_ERR;
	if (srq->state != HCA_SRQ_LIVE)
		return QHCA_CMD_BAD_STATE;
	if (cmd->param > srq->depth)
		return QHCA_CMD_BAD_PARAM;
	srq->limit = cmd->param;
	hca_ctx_dirty(&fn->hca->cache.srq, srq);
	if (!check_limit(fn, srq))
		fail_srq(fn, srq);
	return QHCA_CMD_OK;
}

/*
 * The ring moves to a larger buffer that software has filled with the same slots.
 * The device keeps its position in the list.
 */
enum qhca_cmd_status hca_cmd_resize_srq(struct hca_fn *fn,
					struct hca_cmd_ctx *cmd)
{
	enum qhca_cmd_status status = check_index(fn, cmd->index);
	const struct qhca_srqc_sw *in = (const void *)cmd->in;
	struct hca_srq tmp, *srq;

	if (status != QHCA_CMD_OK)
		return status;
	srq = get(fn, cmd->index);
	if (!srq)
		return QHCA_CMD_DMA_ERR;
	if (srq->state != HCA_SRQ_LIVE)
		return QHCA_CMD_BAD_STATE;

	tmp = *srq;
	memcpy(&tmp.sw.buf, &in->buf, sizeof(tmp.sw.buf));
	tmp.sw.rec_offset = in->rec_offset;
	tmp.sw.threshold = in->threshold;
	tmp.sw.log_depth = in->log_depth;
	put_le32(&tmp.sw.limit, srq->limit);
	if (in->log_depth < srq->sw.log_depth || !load_sw(fn, &tmp))
		return QHCA_CMD_BAD_PARAM;
	*srq = tmp;
	hca_ctx_dirty(&fn->hca->cache.srq, srq);
	return QHCA_CMD_OK;
}
