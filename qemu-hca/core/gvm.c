// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * SET_GVM, INVALIDATE_STAGE2 and STAGE2_RESUME: how the host domain rules the second
 * stage of other functions.
 */
#include "gvm.h"

#include "hca.h"

static bool page_shift_valid(uint8_t shift)
{
	return shift == 12 || shift == 21 || shift == 30;
}

static enum qhca_cmd_status decode_row(struct hca_cmd_ctx *ctx,
				       struct hca_gvm *row)
{
	const struct qhca_gvm_entry *in = (const void *)ctx->in;
	uint32_t flags = get_le32(&in->flags);

	*row = (struct hca_gvm){
		.uplink_attr = get_le16(&in->uplink_attr),
		.on = flags & QHCA_GVM_STAGE2,
	};
	if (flags & ~QHCA_GVM_STAGE2)
		return hca_cmd_bad(ctx, offsetof(struct qhca_gvm_entry, flags));
	if (!row->on)
		return QHCA_CMD_OK;
	row->base = get_le64(&in->at_base);
	row->page_shift = in->page_shift;
	row->levels = in->levels;
	if (row->base & 63)
		return hca_cmd_bad(ctx, offsetof(struct qhca_gvm_entry, at_base));
	if (!page_shift_valid(row->page_shift))
		return hca_cmd_bad(ctx, offsetof(struct qhca_gvm_entry,
						 page_shift));
	if (row->levels == 0 || row->levels > QHCA_MAX_AT_LEVELS)
		return hca_cmd_bad(ctx, offsetof(struct qhca_gvm_entry, levels));
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_set_gvm(struct hca_fn *fn,
				     struct hca_cmd_ctx *ctx)
{
	struct hca_fn *of = fn->hca->fn[ctx->index];
	enum qhca_cmd_status status;
	struct hca_gvm row;

	status = decode_row(ctx, &row);
	if (status)
		return status;
	if (hca_fn_busy(of))
		hca_s2_die(of, QHCA_STAGE2_REPLACED);
	hca_s2_set_row(of, &row);
	return QHCA_CMD_OK;
}

/* Lines that are filled between two slices come from memory as it is now. */
enum qhca_cmd_status hca_cmd_invalidate_stage2(struct hca_fn *fn,
					       struct hca_cmd_ctx *ctx)
{
	const struct qhca_range *in = (const void *)ctx->in;
	uint64_t start = get_le64(&in->start), length = get_le64(&in->length);
	struct hca_cache *s2 = &fn->hca->cache.s2;
	struct hca_fn *of = fn->hca->fn[ctx->index];
	struct hca_cache_inval inval;

	if (length == 0 || start + (length - 1) < start)
		return hca_cmd_bad(ctx, offsetof(struct qhca_range, length));
	if (ctx->step == 0) {
		ctx->step = 1;
		hca_s2_lines(fn->hca, (uint16_t)ctx->index, start,
			     start + (length - 1), &inval);
		hca_cache_sweep_begin(s2, &ctx->sweep, &inval);
	}
	return hca_cache_sweep(s2, &of->cache[QHCA_CACHE_S2], &ctx->sweep) ?
	       QHCA_CMD_OK : HCA_CMD_AGAIN;
}

/* A pin request, or a fault of Ethernet.  false: it does not wait, or is another. */
static bool answer(struct hca_fn *of, struct hca_s2_ask *ask, uint32_t token,
		   bool ok)
{
	if (!ask->waits || ask->token != token)
		return false;
	ask->waits = false;
	ask->unposted = false;
	ask->failed = !ok;
	hca_trace(of, QHCA_TRACE_RESUME, 0, token,
		  ok ? QHCA_RESUME_OK : QHCA_RESUME_FAIL,
		  of->hca->now - ask->time);
	return true;
}

static bool resume(struct hca_fn *of, uint32_t token, bool ok)
{
	uint64_t time = of->s2.eth.time;

	if (hca_is_dead(of))
		return false;
	hca_fn_wake(of);
	if (token & HCA_FAULT_TOKEN_QPN)
		return hca_fault_resume_stage2(of, token, ok);
	if (!(token & HCA_S2_TOKEN_ETH))
		return answer(of, &of->s2.pin, token, ok);
	if (!answer(of, &of->s2.eth, token, ok))
		return false;
	hca_fault_answered(of, time, ok);
	hca_eth_resume(of);
	return true;
}

enum qhca_cmd_status hca_cmd_stage2_resume(struct hca_fn *fn,
					   struct hca_cmd_ctx *ctx)
{
	uint32_t gvmi = QHCA_GET(QHCA_RESUME_GVMI, ctx->param);
	uint32_t how = ctx->param & ~QHCA_RESUME_GVMI;
	struct hca_fn *of;

	if (how != QHCA_RESUME_OK && how != QHCA_RESUME_FAIL)
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
	if (gvmi == 0 || gvmi >= HCA_MAX_FNS || !fn->hca->fn[gvmi])
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
	of = fn->hca->fn[gvmi];
	return resume(of, ctx->index, how == QHCA_RESUME_OK) ?
	       QHCA_CMD_OK : QHCA_CMD_BAD_INDEX;
}
