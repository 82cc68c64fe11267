// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "hca.h"

static const uint8_t log_entry_size[QHCA_NUM_TABLES] = {
	[QHCA_TABLE_PT] = 6,
	[QHCA_TABLE_QP] = 10,
	[QHCA_TABLE_CQ] = 7,
	[QHCA_TABLE_SRQ] = 7,
	[QHCA_TABLE_EQ] = 7,
};

_Static_assert(sizeof(struct qhca_pte) == 1 << 6, "PT entry");
_Static_assert(sizeof(struct qhca_qpc) == 1 << 10, "QP context");
_Static_assert(sizeof(struct qhca_cqc) == 1 << 7, "CQ context");
_Static_assert(sizeof(struct qhca_srqc) == 1 << 7, "SRQ context");
_Static_assert(sizeof(struct qhca_eqc) == 1 << 7, "EQ context");

bool qhca_table_check(enum qhca_table id, const struct qhca_init_table *row,
		      unsigned int log_max)
{
	unsigned int log_bytes = row->log_entries + log_entry_size[id];

	if (row->log_entries == 0 || row->log_entries > log_max ||
	    row->log_entries > 31)
		return false;
	if (row->log_chunk < QHCA_MIN_LOG_CHUNK ||
	    row->log_chunk > QHCA_MAX_LOG_CHUNK)
		return false;
	return log_bytes <= row->log_chunk ||
	       1ull << (log_bytes - row->log_chunk) <= QHCA_MAX_CHUNKS;
}

void qhca_table_init(struct qhca_hca *hca, enum qhca_table id,
		     const struct qhca_init_table *row)
{
	struct qhca_table_map *map = &hca->tables.map[id];

	memset(map, 0, sizeof(*map));
	map->log_entries = row->log_entries;
	map->log_chunk = row->log_chunk;
	map->log_entry = log_entry_size[id];
	map->present = true;
}

void qhca_tables_reset(struct qhca_hca *hca)
{
	memset(&hca->tables, 0, sizeof(hca->tables));
}

uint32_t qhca_table_size(const struct qhca_hca *hca, enum qhca_table id)
{
	const struct qhca_table_map *map = &hca->tables.map[id];

	return map->present ? 1u << map->log_entries : 0;
}

uint32_t qhca_table_chunks(const struct qhca_hca *hca, enum qhca_table id)
{
	const struct qhca_table_map *map = &hca->tables.map[id];
	unsigned int log_bytes = map->log_entries + map->log_entry;

	if (!map->present)
		return 0;
	return log_bytes <= map->log_chunk ? 1 : 1u << (log_bytes - map->log_chunk);
}

uint32_t qhca_table_chunk_entries(const struct qhca_hca *hca,
				  enum qhca_table id)
{
	const struct qhca_table_map *map = &hca->tables.map[id];

	return map->present ? 1u << (map->log_chunk - map->log_entry) : 0;
}

bool qhca_table_entry(const struct qhca_hca *hca, enum qhca_table id,
		      uint32_t index, uint64_t *addr)
{
	const struct qhca_table_map *map = &hca->tables.map[id];
	uint64_t offset = (uint64_t)index << map->log_entry;
	uint64_t chunk;

	if (!map->present || index >> map->log_entries)
		return false;
	chunk = map->chunk[offset >> map->log_chunk];
	if (!chunk)
		return false;
	*addr = (chunk & ~1ull) + (offset & ((1ull << map->log_chunk) - 1));
	return true;
}

enum qhca_cmd_status qhca_cmd_missing(const struct qhca_hca *hca,
				      enum qhca_table id, uint32_t index)
{
	uint64_t addr;

	return qhca_table_entry(hca, id, index, &addr) ? QHCA_CMD_BAD_STATE :
							 QHCA_CMD_NOT_MAPPED;
}

/* Index into the node at @level, counted from 1 at the leaves. */
static bool at_index(const struct qhca_at_root *root, unsigned int level,
		     uint64_t offset, uint64_t *index)
{
	unsigned int shift = root->page_shift + QHCA_AT_BITS * (level - 1);

	*index = shift < 64 ? offset >> shift : 0;
	if (level == root->levels)	/* the root's index is not masked */
		return *index < 1u << QHCA_AT_BITS;
	*index &= (1u << QHCA_AT_BITS) - 1;
	return true;
}

/* The part of a leaf at @level that holds the page of @offset. */
static uint64_t at_leaf(const struct qhca_at_root *root, unsigned int level,
			uint64_t offset, uint64_t ate)
{
	unsigned int shift = root->page_shift + QHCA_AT_BITS * (level - 1);
	uint64_t span = shift < 64 ? (1ull << shift) - 1 : UINT64_MAX;
	uint64_t page = (1ull << root->page_shift) - 1;

	return (ate & QHCA_ATE_ADDR & ~span) | (offset & span & ~page) |
	       QHCA_ATE_PRESENT | (ate & QHCA_ATE_WRITE);
}

enum qhca_walk qhca_at_walk(struct qhca_hca *hca,
			    const struct qhca_at_root *root, uint64_t offset,
			    uint64_t *entry, uint64_t *reads)
{
	uint64_t node = root->base, index, ate;
	unsigned int level;
	uint8_t raw[8];

	for (level = root->levels; level > 0; level--) {
		if (!at_index(root, level, offset, &index))
			return QHCA_WALK_RANGE;
		if (qhca_dma_read(hca, node + index * 8, raw, sizeof(raw)))
			return QHCA_WALK_DMA;
		if (reads)
			(*reads)++;
		ate = get_le64(raw);
		if (!(ate & QHCA_ATE_PRESENT))
			return QHCA_WALK_ABSENT;
		if (level == 1 || ate & QHCA_ATE_LEAF) {
			*entry = at_leaf(root, level, offset, ate);
			return QHCA_WALK_OK;
		}
		node = ate & QHCA_ATE_NODE;
	}
	return QHCA_WALK_RANGE;
}

/* ---- commands */

struct chunk_args {
	enum qhca_table table;
	uint32_t first, count;
};

static enum qhca_cmd_status chunk_args(const struct qhca_hca *hca,
				       struct qhca_cmd_ctx *ctx,
				       struct chunk_args *args)
{
	uint32_t table = ctx->param & 0xff, chunks;

	args->count = ctx->param >> 8;
	args->first = ctx->index;
	if (table >= QHCA_NUM_TABLES || args->count == 0 ||
	    args->count > QHCA_MAX_CHUNKS)
		return qhca_cmd_bad(ctx, QHCA_SYN_SLOT(param));
	args->table = (enum qhca_table)table;
	chunks = qhca_table_chunks(hca, args->table);
	if (args->first >= chunks || args->count > chunks - args->first)
		return QHCA_CMD_BAD_INDEX;
	return QHCA_CMD_OK;
}

enum qhca_cmd_status qhca_cmd_map_chunks(struct qhca_hca *hca,
					 struct qhca_cmd_ctx *ctx)
{
	struct chunk_args args;
	enum qhca_cmd_status status = chunk_args(hca, ctx, &args);
	uint64_t *chunk;
	uint32_t i;

	if (status)
		return status;
	if (ctx->in_len != args.count * 8)
		return QHCA_CMD_BAD_LEN;
	chunk = &hca->tables.map[args.table].chunk[args.first];
	for (i = 0; i < args.count; i++)
		if (get_le64(ctx->in + i * 8) & 4095)
			return qhca_cmd_bad(ctx, i * 8);
	for (i = 0; i < args.count; i++)
		if (chunk[i])
			return QHCA_CMD_IN_USE;
	for (i = 0; i < args.count; i++)
		chunk[i] = get_le64(ctx->in + i * 8) | 1;
	return QHCA_CMD_OK;
}

static bool object_live(const struct qhca_hca *hca, enum qhca_table table,
			uint32_t index)
{
	switch (table) {
	case QHCA_TABLE_QP:
		return index < hca->qps.num_slots && hca->qps.slot[index].live;
	case QHCA_TABLE_SRQ:
		return index < hca->srqs.num_slots && hca->srqs.slot[index].live;
	case QHCA_TABLE_CQ:
		return qhca_cq_exists(hca, index);
	case QHCA_TABLE_EQ:
		return qhca_eq_live(hca, index);
	default:
		return false;		/* protection entries are never held */
	}
}

/* Entries of a table that one call of UNMAP_CHUNKS looks at. */
#define UNMAP_SLICE	QHCA_CACHE_SLICE

/* The chunks are free if no object in them lives; commands alone make objects. */
static enum qhca_cmd_status find_live(const struct qhca_hca *hca,
				      struct qhca_cmd_ctx *ctx,
				      enum qhca_table table, uint32_t end)
{
	uint32_t stop = end - ctx->next > UNMAP_SLICE ?
			ctx->next + UNMAP_SLICE : end;

	for (; ctx->next < stop; ctx->next++)
		if (object_live(hca, table, ctx->next))
			return QHCA_CMD_IN_USE;
	return stop == end ? QHCA_CMD_OK : QHCA_CMD_AGAIN;
}

/*
 * Lines of protection entries that are not mapped any more, so that none is filled
 * again meanwhile: each where it would be, or all if that is less to look at.
 */
static enum qhca_cmd_status drop_lines(struct qhca_hca *hca,
				       struct qhca_cmd_ctx *ctx,
				       uint32_t first, uint32_t end)
{
	const struct qhca_cache_inval all = { .all = true };
	struct qhca_cache *pt = &hca->mem.pt;
	bool few = end - first <= pt->geometry.sets;
	uint32_t looked;

	if (ctx->step == 1) {
		ctx->step = 2;
		ctx->next = first;
		qhca_pool_key_drop(hca, first, end - 1);
		if (!few)
			qhca_cache_sweep_begin(pt, &ctx->sweep, &all);
	}
	if (!few)
		return qhca_cache_sweep(pt, &ctx->sweep) ? QHCA_CMD_OK :
							   QHCA_CMD_AGAIN;
	for (looked = 0; looked < UNMAP_SLICE && ctx->next < end;
	     looked += pt->geometry.blocks)
		qhca_pt_drop(hca, ctx->next++);
	return ctx->next == end ? QHCA_CMD_OK : QHCA_CMD_AGAIN;
}

enum qhca_cmd_status qhca_cmd_unmap_chunks(struct qhca_hca *hca,
					   struct qhca_cmd_ctx *ctx)
{
	struct chunk_args args;
	enum qhca_cmd_status status = chunk_args(hca, ctx, &args);
	uint64_t *chunk;
	uint32_t i, per_chunk, first, end;

	if (status)
		return status;
	chunk = &hca->tables.map[args.table].chunk[args.first];
	per_chunk = qhca_table_chunk_entries(hca, args.table);
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
		status = find_live(hca, ctx, args.table, end);
	if (status)
		return status;
	memset(chunk, 0, args.count * sizeof(*chunk));
	return args.table == QHCA_TABLE_PT ? drop_lines(hca, ctx, first, end) :
					     QHCA_CMD_OK;
}
