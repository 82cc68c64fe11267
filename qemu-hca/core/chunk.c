// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * MAP_CHUNKS and UNMAP_CHUNKS: memory of tables comes and goes.
 */
#include "chunk.h"

#include "hca.h"

struct chunk_args {
	enum qhca_table table;
	uint32_t first, count;
};

static enum qhca_cmd_status chunk_args(const struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx,
				       struct chunk_args *args)
{
	uint32_t table = ctx->param & 0xff, chunks;

	args->count = ctx->param >> 8;
	args->first = ctx->index;
	if (table >= QHCA_NUM_TABLES || args->count == 0 ||
	    args->count > QHCA_MAX_CHUNKS)
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
	args->table = (enum qhca_table)table;
	chunks = hca_table_chunks(fn, args->table);
	if (args->first >= chunks || args->count > chunks - args->first)
		return QHCA_CMD_BAD_INDEX;
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_map_chunks(struct hca_fn *fn,
					struct hca_cmd_ctx *ctx)
{
	struct chunk_args args;
	enum qhca_cmd_status status = chunk_args(fn, ctx, &args);
	uint64_t *chunk;
	uint32_t i;

	if (status)
		return status;
	if (ctx->in_len != args.count * 8)
		return QHCA_CMD_BAD_LEN;
	chunk = &fn->tables.map[args.table].chunk[args.first];
	for (i = 0; i < args.count; i++)
		if (get_le64(ctx->in + i * 8) & 4095)
			return hca_cmd_bad(ctx, i * 8);
	for (i = 0; i < args.count; i++)
		if (chunk[i])
			return QHCA_CMD_IN_USE;
	for (i = 0; i < args.count; i++)
		chunk[i] = get_le64(ctx->in + i * 8) | 1;
	return QHCA_CMD_OK;
}

static bool object_live(const struct hca_fn *fn, enum qhca_table table,
			uint32_t index)
{
	switch (table) {
	case QHCA_TABLE_QP:
		return index < fn->qps.num_slots && fn->qps.slot[index].live;
	case QHCA_TABLE_SRQ:
		return index < fn->srqs.num_slots && fn->srqs.slot[index].live;
	case QHCA_TABLE_CQ:
		return hca_cq_exists(fn, index);
	case QHCA_TABLE_EQ:
		return hca_eq_live(fn, index);
	default:
		return false;		/* protection entries are never held */
	}
}

/* Entries of a table that one call of UNMAP_CHUNKS looks at. */
#define UNMAP_SLICE	HCA_CACHE_SLICE

/*
 * The chunks are free if no object in them lives.  Only commands create
 * objects, and no other command runs between two slices.
 */
static enum qhca_cmd_status find_live(const struct hca_fn *fn,
				      struct hca_cmd_ctx *ctx,
				      enum qhca_table table, uint32_t end)
{
	uint32_t stop = end - ctx->next > UNMAP_SLICE ?
			ctx->next + UNMAP_SLICE : end;

	for (; ctx->next < stop; ctx->next++)
		if (object_live(fn, table, ctx->next))
			return QHCA_CMD_IN_USE;
	return stop == end ? QHCA_CMD_OK : HCA_CMD_AGAIN;
}

/*
 * Drop the lines of protection entries whose chunks have been unmapped, so that
 * none of them is filled again in the meantime.  Look up each index, or sweep
 * all lines if that is less work.
 */
static enum qhca_cmd_status drop_lines(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx,
				       uint32_t first, uint32_t end)
{
	const struct hca_cache_inval all = {
		.gvmi = fn->cfg.gvmi, .all = true,
	};
	struct hca_cache *pt = &fn->hca->cache.pt;
	bool few = end - first <= pt->geometry.sets;
	uint32_t looked;

	if (ctx->step == 1) {
		ctx->step = 2;
		ctx->next = first;
		hca_pool_key_drop(fn, first, end - 1);
		if (!few)
			hca_cache_sweep_begin(pt, &ctx->sweep, &all);
	}
	if (!few)
		return hca_cache_sweep(pt, &fn->cache[QHCA_CACHE_PT],
				       &ctx->sweep) ? QHCA_CMD_OK :
						      HCA_CMD_AGAIN;
	for (looked = 0; looked < UNMAP_SLICE && ctx->next < end;
	     looked += pt->geometry.blocks)
		hca_pt_drop(fn, ctx->next++);
	return ctx->next == end ? QHCA_CMD_OK : HCA_CMD_AGAIN;
}

enum qhca_cmd_status hca_cmd_unmap_chunks(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx)
{
	struct chunk_args args;
	enum qhca_cmd_status status = chunk_args(fn, ctx, &args);
	uint64_t *chunk;
	uint32_t i, per_chunk, first, end;

	if (status)
		return status;
	chunk = &fn->tables.map[args.table].chunk[args.first];
	per_chunk = hca_table_chunk_entries(fn, args.table);
	first = args.first * per_chunk;
	end = first + args.count * per_chunk;
	for (i = 0; ctx->step == 0 && i < args.count; i++)
		if (!chunk[i])
			return QHCA_CMD_NOT_MAPPED;
	if (ctx->step == 0) {
		ctx->step = 1;
		ctx->next = first;
	}
	if (args.table != QHCA_TABLE_PT)
		status = find_live(fn, ctx, args.table, end);
	if (status)
		return status;
	memset(chunk, 0, args.count * sizeof(*chunk));
	return args.table == QHCA_TABLE_PT ? drop_lines(fn, ctx, first, end) :
					     QHCA_CMD_OK;
}
