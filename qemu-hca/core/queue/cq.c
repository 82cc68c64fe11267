// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Completion queues: writing CQEs, arming, moderation and resizing.
 *
 * The contexts are cached; what has to be known of a CQ without its context,
 * such as whether it exists and how many queues use it, is in its slot.
 * cq.h states the rules that software relies on.
 */
#include <stdlib.h>

#include "hca.h"
#include "queue/queue_image.h"
#include "queue/threshold.h"

#define CQE_SIZE	((uint32_t)sizeof(struct qhca_cqe))

/* ------------------------------------------------------------------------
 * Contexts
 */
#define HW_LAST_SOL	0		/* words of qhca_cqc.rsvd */

static uint32_t depth_of(const struct hca_cq *cq)
{
	return 1u << cq->log_depth;
}

static void sw_decode(const struct qhca_cqc_sw *sw, struct hca_cq *cq)
{
	hca_qbuf_decode(&cq->buf, &sw->buf);
	cq->rec_offset = get_le32(&sw->rec_offset);
	cq->eqn = get_le32(&sw->eqn);
	cq->db_page = get_le32(&sw->db_page);
	cq->threshold = get_le32(&sw->threshold);
	cq->moder_count = get_le16(&sw->moder_count);
	cq->moder_usec = get_le16(&sw->moder_usec);
	cq->log_depth = sw->log_depth;
	cq->flags = sw->flags;
}

static void cqc_encode(const void *ctx, void *image)
{
	const struct hca_cq *cq = ctx;
	struct qhca_cqc *c = image;

	memset(c, 0, sizeof(*c));
	hca_qbuf_encode(&cq->buf, &c->sw.buf);
	put_le32(&c->sw.rec_offset, cq->rec_offset);
	put_le32(&c->sw.eqn, cq->eqn);
	put_le32(&c->sw.db_page, cq->db_page);
	put_le32(&c->sw.threshold, cq->threshold);
	put_le16(&c->sw.moder_count, cq->moder_count);
	put_le16(&c->sw.moder_usec, cq->moder_usec);
	c->sw.log_depth = cq->log_depth;
	c->sw.flags = cq->flags;
	put_le32(&c->state, cq->state);
	put_le32(&c->pi, cq->pi);
	put_le32(&c->ci, cq->ci);
	put_le32(&c->arm, cq->arm);
	put_le32(&c->events, cq->events);
	put_le32(&c->pending, cq->pending);
	put_le32(&c->rsvd[HW_LAST_SOL], cq->last_sol);
}

/* The offending field of a software part, or -1: none. */
static int sw_fault(const struct hca_fn *fn, const struct hca_cq *cq)
{
	if (cq->log_depth > fn->cfg.log_max_cq_depth)
		return offsetof(struct qhca_cqc_sw, log_depth);
	if (!hca_qbuf_valid(&cq->buf) ||
	    !hca_qbuf_holds(&cq->buf, 0,
			    (uint64_t)CQE_SIZE << cq->log_depth))
		return offsetof(struct qhca_cqc_sw, buf);
	if (cq->rec_offset % sizeof(struct qhca_cq_record) ||
	    !hca_qbuf_holds(&cq->buf, cq->rec_offset,
			    sizeof(struct qhca_cq_record)))
		return offsetof(struct qhca_cqc_sw, rec_offset);
	if (cq->threshold > depth_of(cq))
		return offsetof(struct qhca_cqc_sw, threshold);
	if (cq->db_page >= fn->cfg.num_db_pages)
		return offsetof(struct qhca_cqc_sw, db_page);
	if (cq->eqn >= hca_table_size(fn, QHCA_TABLE_EQ))
		return offsetof(struct qhca_cqc_sw, eqn);
	if (cq->flags & ~QHCA_CQ_IGNORE_OVERRUN)
		return offsetof(struct qhca_cqc_sw, flags);
	if ((cq->moder_count || cq->moder_usec) &&
	    !(fn->features & QHCA_FEAT_CQ_MODERATION))
		return offsetof(struct qhca_cqc_sw, moder_count);
	return -1;
}

/* A context that the device cannot have written is corrupt. */
static bool cqc_decode(struct hca_fn *fn, uint32_t index, const void *image,
		       void *ctx)
{
	const struct qhca_cqc *c = image;
	struct hca_cq *cq = ctx;
	uint32_t state = get_le32(&c->state), arm = get_le32(&c->arm);

	(void)index;
	sw_decode(&c->sw, cq);
	cq->state = (uint8_t)state;
	cq->arm = (uint8_t)arm;
	cq->pi = get_le32(&c->pi);
	cq->ci = get_le32(&c->ci);
	cq->events = get_le32(&c->events);
	cq->pending = get_le32(&c->pending);
	cq->last_sol = get_le32(&c->rsvd[HW_LAST_SOL]);
	return sw_fault(fn, cq) < 0 && cq->pi - cq->ci <= depth_of(cq) &&
	       (state == HCA_CQ_LIVE || state == HCA_CQ_ERROR) &&
	       arm <= HCA_ARM_SOLICITED;
}

static const struct hca_ctx_ops cq_ops = {
	.size = sizeof(struct hca_cq),
	.decode = cqc_decode,
	.encode = cqc_encode,
};

bool hca_cqs_create(struct hca_fn *fn)
{
	fn->cqs.slot = calloc((size_t)1 << fn->cfg.log_max_cq,
			      sizeof(*fn->cqs.slot));
	return fn->cqs.slot;
}

void hca_cqs_destroy(struct hca_fn *fn)
{
	hca_ctxcache_leave(fn, &fn->hca->cache.cq);
	free(fn->cqs.slot);
	fn->cqs.slot = NULL;
}

bool hca_cqs_init(struct hca_fn *fn, struct qhca_geometry geometry)
{
	fn->cqs.num_timers = 0;
	fn->cqs.first_due = QHCA_NEVER;
	fn->cqs.num = hca_table_size(fn, QHCA_TABLE_CQ);
	return hca_ctxcache_join(fn, &fn->hca->cache.cq, QHCA_CACHE_CQ,
				 QHCA_TABLE_CQ, &cq_ops, geometry);
}

void hca_cqs_fini(struct hca_fn *fn)
{
	hca_ctxcache_leave(fn, &fn->hca->cache.cq);
	if (fn->cqs.slot && fn->cqs.num)
		memset(fn->cqs.slot, 0, fn->cqs.num * sizeof(*fn->cqs.slot));
	fn->cqs.num = 0;
	fn->cqs.num_timers = 0;
	fn->cqs.first_due = QHCA_NEVER;
}

bool hca_cq_exists(const struct hca_fn *fn, uint32_t cqn)
{
	return cqn < fn->cqs.num && fn->cqs.slot[cqn].live;
}

bool hca_cq_ref(struct hca_fn *fn, uint32_t cqn)
{
	if (!hca_cq_exists(fn, cqn))
		return false;
	fn->cqs.slot[cqn].refs++;
	return true;
}

void hca_cq_unref(struct hca_fn *fn, uint32_t cqn)
{
	if (hca_cq_exists(fn, cqn) && fn->cqs.slot[cqn].refs)
		fn->cqs.slot[cqn].refs--;
}

static struct hca_cq *cq_get(struct hca_fn *fn, uint32_t cqn)
{
	if (!hca_cq_exists(fn, cqn))
		return NULL;
	return hca_ctx_get(fn, &fn->hca->cache.cq, cqn);
}

static void dirty(struct hca_fn *fn, struct hca_cq *cq)
{
	hca_ctx_dirty(&fn->hca->cache.cq, cq);
}

void hca_cqs_restore(struct hca_fn *fn)
{
	struct hca_cq cq;

	for (uint32_t cqn = 0; cqn < fn->cqs.num && !hca_is_dead(fn); cqn++) {
		if (!fn->cqs.slot[cqn].live)
			continue;
		if (hca_ctx_read(fn, &fn->hca->cache.cq, cqn, &cq) &&
		    hca_eq_live(fn, cq.eqn))
			hca_eq_ref(fn, cq.eqn);
		else
			hca_fatal(fn, QHCA_FATAL_CONTEXT,
				  (uint32_t)QHCA_TABLE_CQ << 24 | cqn);
	}
}

/* ------------------------------------------------------------------------
 * Arming and moderation
 */
static int tell_armed(struct hca_fn *fn, struct hca_cq *cq)
{
	return hca_qbuf_write32(fn, &cq->buf, cq->rec_offset +
				offsetof(struct qhca_cq_record, armed),
				cq->arm);
}

static void cq_error(struct hca_fn *fn, uint32_t cqn, struct hca_cq *cq,
		     uint32_t cause);

/* Raise the event that was armed. */
static void fire(struct hca_fn *fn, uint32_t cqn, struct hca_cq *cq)
{
	bool was_armed = cq->arm != HCA_ARM_NONE;

	cq->arm = HCA_ARM_NONE;
	cq->pending = 0;
	cq->events++;
	dirty(fn, cq);
	if (was_armed && tell_armed(fn, cq) && cq->state == HCA_CQ_LIVE)
		cq_error(fn, cqn, cq, HCA_CQ_ERR_DMA);
	hca_event_completion(fn, cq->eqn, cqn, cq->pi);
}

/*
 * Move the CQ to error: raise one error event, and a completion event for software
 * that waits for one.
 */
static void cq_error(struct hca_fn *fn, uint32_t cqn, struct hca_cq *cq,
		     uint32_t cause)
{
	cq->state = HCA_CQ_ERROR;
	dirty(fn, cq);
	if (cause == HCA_CQ_ERR_OVERRUN)
		hca_count(fn, QHCA_CNT_cq_overruns);
	hca_event(fn, QHCA_EVENT_CQ_ERROR, cqn, cause);
	if (cq->arm)
		fire(fn, cqn, cq);
}

/* Start the timer of moder_usec, unless it runs.  false: no timer is free. */
static bool timer_start(struct hca_fn *fn, uint32_t cqn,
			const struct hca_cq *cq)
{
	struct hca_cqs *cqs = &fn->cqs;
	uint64_t due = fn->hca->now + cq->moder_usec * 1000ull;

	if (cqs->slot[cqn].timer)
		return true;
	if (cqs->num_timers == HCA_CQ_MAX_TIMERS)
		return false;
	hca_fn_wake(fn);
	cqs->timer[cqs->num_timers].due = due;
	cqs->timer[cqs->num_timers++].cqn = cqn;
	cqs->slot[cqn].timer = true;
	if (due < cqs->first_due)
		cqs->first_due = due;
	return true;
}

static void timer_remove(struct hca_cqs *cqs, uint32_t i)
{
	cqs->slot[cqs->timer[i].cqn].timer = false;
	cqs->timer[i] = cqs->timer[--cqs->num_timers];
}

/* first_due may stay too early: the next hca_cqs_run() finds the true one. */
static void timer_stop(struct hca_fn *fn, uint32_t cqn)
{
	struct hca_cqs *cqs = &fn->cqs;
	uint32_t i;

	for (i = 0; cqs->slot[cqn].timer && i < cqs->num_timers; i++)
		if (cqs->timer[i].cqn == cqn)
			timer_remove(cqs, i);
}

/* @due more completions qualify for the armed event. */
static void event_due(struct hca_fn *fn, uint32_t cqn, struct hca_cq *cq,
		      uint32_t due)
{
	bool moderated = cq->moder_usec && cq->moder_count != 1;

	cq->pending += due;
	if (moderated && !(cq->moder_count && cq->pending >= cq->moder_count) &&
	    timer_start(fn, cqn, cq))
		return;
	timer_stop(fn, cqn);
	fire(fn, cqn, cq);
}

/* How many completions beyond @ci, which software has not polled, qualify? */
static uint32_t unseen(const struct hca_cq *cq, uint32_t ci, bool solicited)
{
	uint32_t written = cq->pi - ci, sol = cq->last_sol - ci;

	if (written > depth_of(cq))	/* all entries are newer than ci */
		return depth_of(cq);
	if (!solicited)
		return written;
	return sol > 0 && sol <= written ? 1 : 0;
}

static bool take_ci(struct hca_cq *cq, uint32_t ci)
{
	if (ci == cq->ci || ci - cq->ci > cq->pi - cq->ci)
		return false;
	cq->ci = ci;
	return true;
}

/* An event that moderation holds back is owed to an earlier arm, and stays so. */
static void arm(struct hca_fn *fn, uint32_t cqn, struct hca_cq *cq,
		uint32_t ci, bool solicited)
{
	uint8_t kind = solicited ? HCA_ARM_SOLICITED : HCA_ARM_NEXT;
	uint32_t held = cq->pending, due;

	if (cq->arm != HCA_ARM_NEXT)
		cq->arm = kind;
	cq->pending = 0;
	dirty(fn, cq);
	due = unseen(cq, ci, cq->arm == HCA_ARM_SOLICITED);
	if (due < held)
		due = held;
	if (due)
		event_due(fn, cqn, cq, due);
	if (cq->arm && tell_armed(fn, cq) && cq->state == HCA_CQ_LIVE)
		cq_error(fn, cqn, cq, HCA_CQ_ERR_DMA);
}

void hca_cq_doorbell(struct hca_fn *fn, uint32_t page, uint64_t value)
{
	uint32_t cqn = (uint32_t)value & QHCA_DB_NUMBER;
	struct hca_cq *cq = cq_get(fn, cqn);

	if (!cq || cq->db_page != page) {
		hca_count(fn, QHCA_CNT_doorbells_ignored);
		return;
	}
	hca_count(fn, QHCA_CNT_cq_arms);
	arm(fn, cqn, cq, (uint32_t)(value >> 32), value & QHCA_DB_CQ_SOLICITED);
}

void hca_cqs_run(struct hca_fn *fn)
{
	struct hca_cqs *cqs = &fn->cqs;
	uint64_t first = QHCA_NEVER;
	struct hca_cq *cq;
	uint32_t i = 0, cqn;

	if (fn->hca->now < cqs->first_due)
		return;
	while (i < cqs->num_timers) {
		if (cqs->timer[i].due > fn->hca->now) {
			if (cqs->timer[i].due < first)
				first = cqs->timer[i].due;
			i++;
			continue;
		}
		cqn = cqs->timer[i].cqn;
		timer_remove(cqs, i);
		cq = cq_get(fn, cqn);
		if (cq && cq->arm && cq->pending)
			fire(fn, cqn, cq);
	}
	cqs->first_due = first;
}

uint64_t hca_cqs_deadline(const struct hca_fn *fn)
{
	return fn->cqs.first_due;
}

/* ------------------------------------------------------------------------
 * Producing
 */

/* Read the software half of the record.  -1: the record is unreachable. */
static int refetch(struct hca_fn *fn, struct hca_cq *cq)
{
	struct hca_software_half half;		/* ci, threshold */

	hca_count(fn, QHCA_CNT_refetches);
	hca_count(fn, QHCA_CNT_cq_refetches);
	if (hca_qbuf_read_half(fn, &cq->buf, cq->rec_offset, &half))
		return -1;
	if (hca_threshold_take(&cq->threshold, half.second, depth_of(cq)))
		dirty(fn, cq);
	if (take_ci(cq, half.first))
		dirty(fn, cq);
	else
		hca_count(fn, QHCA_CNT_refetches_unchanged);
	return 0;
}

/* Room for one entry; 0, or the cause of a CQ error. */
static uint32_t make_room(struct hca_fn *fn, struct hca_cq *cq)
{
	uint32_t used = cq->pi - cq->ci;

	if (cq->flags & QHCA_CQ_IGNORE_OVERRUN) {
		if (used == depth_of(cq))
			cq->ci++;	/* the new CQE overwrites the oldest */
		return 0;
	}
	if (hca_threshold_full(used, cq->threshold, depth_of(cq))) {
		if (used == depth_of(cq))
			hca_count(fn, QHCA_CNT_refetches_before_overrun);
		if (refetch(fn, cq))
			return HCA_CQ_ERR_DMA;
	}
	return cq->pi - cq->ci < depth_of(cq) ? 0 : HCA_CQ_ERR_OVERRUN;
}

static int write_cqe(struct hca_fn *fn, struct hca_cq *cq,
		     struct qhca_cqe *cqe)
{
	uint32_t slot = cq->pi & (depth_of(cq) - 1);
	uint32_t flags = get_le32(&cqe->flags) & ~QHCA_PHASE;

	if (!(cq->pi >> cq->log_depth & 1))
		flags |= QHCA_PHASE;
	put_le32(&cqe->flags, flags);
	put_le64(&cqe->timestamp, fn->hca->now - fn->reset_time);
	if (hca_qbuf_write_release(fn, &cq->buf, slot * CQE_SIZE, cqe,
				   sizeof(*cqe)))
		return -1;
	cq->pi++;
	dirty(fn, cq);
	return 0;
}

static void count_cqe(struct hca_fn *fn, uint32_t cqn,
		      const struct qhca_cqe *cqe)
{
	hca_count(fn, QHCA_CNT_completions);
	if (cqe->status == QHCA_WC_WR_FLUSH_ERR)
		hca_count(fn, QHCA_CNT_completions_flushed);
	else if (cqe->status)
		hca_count(fn, QHCA_CNT_completions_error);
	hca_trace(fn, QHCA_TRACE_COMPLETION, cqn, get_le32(&cqe->qpn),
		  cqe->opcode, cqe->status);
}

bool hca_cq_post(struct hca_fn *fn, uint32_t cqn, struct qhca_cqe *cqe)
{
	bool solicited = cqe->status ||
			 get_le32(&cqe->flags) & QHCA_CQE_SOLICITED;
	struct hca_cq *cq = cq_get(fn, cqn);
	uint32_t cause;

	if (!cq || cq->state != HCA_CQ_LIVE)
		return false;
	cause = make_room(fn, cq);
	if (!cause && write_cqe(fn, cq, cqe))
		cause = HCA_CQ_ERR_DMA;
	if (cause) {
		cq_error(fn, cqn, cq, cause);
		return false;
	}
	count_cqe(fn, cqn, cqe);
	if (solicited)
		cq->last_sol = cq->pi;
	if (cq->arm == HCA_ARM_NEXT ||
	    (cq->arm == HCA_ARM_SOLICITED && solicited))
		event_due(fn, cqn, cq, 1);
	return true;
}

bool hca_cq_written(const struct hca_fn *fn, uint32_t cqn, uint32_t *pi)
{
	const struct hca_cq *cq = hca_ctx_peek(fn, &fn->hca->cache.cq, cqn);

	if (cq)
		*pi = cq->pi;
	return cq;
}

bool hca_cq_is_drained(const struct hca_fn *fn, uint32_t cqn, uint32_t page,
		       uint32_t ci)
{
	const struct hca_cq *cq = hca_ctx_peek(fn, &fn->hca->cache.cq, cqn);

	return cq && cq->state == HCA_CQ_LIVE && cq->db_page == page &&
	       cq->pi == ci;
}

bool hca_cq_refetch(struct hca_fn *fn, uint32_t cqn, uint32_t *ci)
{
	/* A peek leaves the order of replacement as it is; the refetch marks changes. */
	struct hca_cq *cq = (void *)hca_ctx_peek(fn, &fn->hca->cache.cq, cqn);

	if (!cq || cq->state != HCA_CQ_LIVE || refetch(fn, cq))
		return false;
	*ci = cq->ci;
	return true;
}

/* ------------------------------------------------------------------------
 * Commands
 */
enum qhca_cmd_status hca_cmd_create_cq(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx)
{
	struct hca_cq new_cq = { .state = HCA_CQ_LIVE }, *cq;
	uint64_t addr;
	int bad;

	sw_decode((const void *)ctx->in, &new_cq);
	bad = sw_fault(fn, &new_cq);
	if (bad >= 0)
		return hca_cmd_bad(ctx, (size_t)bad);
	if (!hca_table_entry(fn, QHCA_TABLE_CQ, ctx->index, &addr))
		return QHCA_CMD_NOT_MAPPED;
	if (hca_cq_exists(fn, ctx->index))
		return QHCA_CMD_IN_USE;
	if (!hca_eq_live(fn, new_cq.eqn))
		return QHCA_CMD_BAD_STATE;
	cq = hca_ctx_new(fn, &fn->hca->cache.cq, ctx->index);
	if (!cq)
		return QHCA_CMD_DMA_ERR;
	*cq = new_cq;
	fn->cqs.slot[ctx->index].live = true;
	fn->cqs.slot[ctx->index].refs = 0;
	hca_eq_ref(fn, new_cq.eqn);
	hca_ctx_flush(fn, &fn->hca->cache.cq, ctx->index, false);
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_destroy_cq(struct hca_fn *fn,
					struct hca_cmd_ctx *ctx)
{
	struct hca_cq *cq;

	if (!hca_cq_exists(fn, ctx->index))
		return hca_cmd_missing(fn, QHCA_TABLE_CQ, ctx->index);
	if (fn->cqs.slot[ctx->index].refs)
		return QHCA_CMD_IN_USE;
	cq = cq_get(fn, ctx->index);
	if (!cq)
		return QHCA_CMD_DMA_ERR;
	timer_stop(fn, ctx->index);
	hca_event_forget_cq(fn, ctx->index);
	hca_eq_unref(fn, cq->eqn);
	fn->cqs.slot[ctx->index].live = false;
	cq->state = HCA_CQ_FREE;
	dirty(fn, cq);
	hca_ctx_flush(fn, &fn->hca->cache.cq, ctx->index, true);
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_query_cq(struct hca_fn *fn,
				      struct hca_cmd_ctx *ctx)
{
	struct hca_cq *cq;

	if (!hca_cq_exists(fn, ctx->index))
		return hca_cmd_missing(fn, QHCA_TABLE_CQ, ctx->index);
	cq = cq_get(fn, ctx->index);
	if (!cq || hca_ctx_flush(fn, &fn->hca->cache.cq, ctx->index, false))
		return QHCA_CMD_DMA_ERR;
	cqc_encode(cq, ctx->out);
	return QHCA_CMD_OK;
}

/* Apply MODIFY_CQ to the copy @cq, and check the result. */
static enum qhca_cmd_status modified(const struct hca_fn *fn,
				     struct hca_cmd_ctx *ctx,
				     struct hca_cq *cq)
{
	const struct qhca_cqc_sw *sw = (const void *)ctx->in;
	int bad;

	if (!ctx->param ||
	    ctx->param & ~(QHCA_CQ_ATTR_MODERATION | QHCA_CQ_ATTR_RESIZE))
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
	if ((ctx->param & QHCA_CQ_ATTR_MODERATION &&
	     !(fn->features & QHCA_FEAT_CQ_MODERATION)) ||
	    (ctx->param & QHCA_CQ_ATTR_RESIZE &&
	     !(fn->features & QHCA_FEAT_CQ_RESIZE)))
		return QHCA_CMD_UNSUPPORTED;
	if (ctx->param & QHCA_CQ_ATTR_MODERATION) {
		cq->moder_count = get_le16(&sw->moder_count);
		cq->moder_usec = get_le16(&sw->moder_usec);
	}
	if (ctx->param & QHCA_CQ_ATTR_RESIZE) {
		hca_qbuf_decode(&cq->buf, &sw->buf);
		cq->rec_offset = get_le32(&sw->rec_offset);
		cq->log_depth = sw->log_depth;
		cq->threshold = get_le32(&sw->threshold);
	}
	bad = sw_fault(fn, cq);
	return bad < 0 ? QHCA_CMD_OK : hca_cmd_bad(ctx, (size_t)bad);
}

/*
 * End the old ring with a marker.  @new_cq continues at an index that is in slot 0
 * and has phase 1, beyond any index of the old ring.
 */
static enum qhca_cmd_status switch_ring(struct hca_fn *fn, uint32_t cqn,
					struct hca_cq *old,
					struct hca_cq *new_cq)
{
	struct qhca_cqe marker = { .opcode = QHCA_CQE_RESIZED };
	uint32_t twice = 2u << new_cq->log_depth, next;

	if (refetch(fn, old)) {
		cq_error(fn, cqn, old, HCA_CQ_ERR_DMA);
		return QHCA_CMD_BAD_STATE;
	}
	if (old->pi - old->ci == depth_of(old))
		return QHCA_CMD_BAD_STATE;
	next = (old->pi + 1 + twice - 1) & ~(twice - 1);
	put_le32(&marker.wqe, next);
	if (write_cqe(fn, old, &marker)) {
		cq_error(fn, cqn, old, HCA_CQ_ERR_DMA);
		return QHCA_CMD_BAD_STATE;
	}
	new_cq->pi = next;
	new_cq->ci = next;
	new_cq->last_sol = next;
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_modify_cq(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx)
{
	enum qhca_cmd_status status;
	struct hca_cq *cq, new_cq;

	if (!hca_cq_exists(fn, ctx->index))
		return hca_cmd_missing(fn, QHCA_TABLE_CQ, ctx->index);
	cq = cq_get(fn, ctx->index);
	if (!cq)
		return QHCA_CMD_DMA_ERR;
	new_cq = *cq;
	status = modified(fn, ctx, &new_cq);
	if (status)
		return status;
	ctx->syndrome = cq->state;
	if (cq->state != HCA_CQ_LIVE)
		return QHCA_CMD_BAD_STATE;
	if (ctx->param & QHCA_CQ_ATTR_RESIZE) {
		status = switch_ring(fn, ctx->index, cq, &new_cq);
		if (status)
			return status;
		ctx->out_param = new_cq.pi;
	}
	ctx->syndrome = 0;
	*cq = new_cq;
	dirty(fn, cq);
	if (ctx->param & QHCA_CQ_ATTR_RESIZE) {
		if (tell_armed(fn, cq))
			cq_error(fn, ctx->index, cq, HCA_CQ_ERR_DMA);
		else if (cq->arm == HCA_ARM_NEXT)	/* the marker */
			event_due(fn, ctx->index, cq, 1);
	}
	hca_ctx_flush(fn, &fn->hca->cache.cq, ctx->index, false);
	return QHCA_CMD_OK;
}
