// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables in host memory: from an index to a bus address.
 *
 * Software gives the device memory for contexts and protection entries chunk
 * by chunk.  An index whose chunk is not mapped has no entry, and each caller
 * has to say what that means for it.
 */
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

bool hca_table_check(enum qhca_table id, const struct qhca_init_table *row,
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

void hca_table_init(struct hca_fn *fn, enum qhca_table id,
		    const struct qhca_init_table *row)
{
	struct hca_table_map *map = &fn->tables.map[id];

	memset(map, 0, sizeof(*map));
	map->log_entries = row->log_entries;
	map->log_chunk = row->log_chunk;
	map->log_entry = log_entry_size[id];
	map->present = true;
}

void hca_tables_reset(struct hca_fn *fn)
{
	memset(&fn->tables, 0, sizeof(fn->tables));
}

uint32_t hca_table_size(const struct hca_fn *fn, enum qhca_table id)
{
	const struct hca_table_map *map = &fn->tables.map[id];

	return map->present ? 1u << map->log_entries : 0;
}

uint32_t hca_table_chunks(const struct hca_fn *fn, enum qhca_table id)
{
	const struct hca_table_map *map = &fn->tables.map[id];
	unsigned int log_bytes = map->log_entries + map->log_entry;

	if (!map->present)
		return 0;
	return log_bytes <= map->log_chunk ? 1 : 1u << (log_bytes - map->log_chunk);
}

uint32_t hca_table_chunk_entries(const struct hca_fn *fn,
				 enum qhca_table id)
{
	const struct hca_table_map *map = &fn->tables.map[id];

	return map->present ? 1u << (map->log_chunk - map->log_entry) : 0;
}

bool hca_table_entry(const struct hca_fn *fn, enum qhca_table id,
		     uint32_t index, uint64_t *addr)
{
	const struct hca_table_map *map = &fn->tables.map[id];
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

enum qhca_cmd_status hca_cmd_missing(const struct hca_fn *fn,
				     enum qhca_table id, uint32_t index)
{
	uint64_t addr;

	return hca_table_entry(fn, id, index, &addr) ? QHCA_CMD_BAD_STATE :
						       QHCA_CMD_NOT_MAPPED;
}

/* Index into the node at @level, counted from 1 at the leaves. */
static bool at_index(const struct hca_at_root *root, unsigned int level,
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
static uint64_t at_leaf(const struct hca_at_root *root, unsigned int level,
			uint64_t offset, uint64_t ate)
{
	unsigned int shift = root->page_shift + QHCA_AT_BITS * (level - 1);
	uint64_t span = shift < 64 ? (1ull << shift) - 1 : UINT64_MAX;
	uint64_t page = (1ull << root->page_shift) - 1;

	return (ate & QHCA_ATE_ADDR & ~span) | (offset & span & ~page) |
	       QHCA_ATE_PRESENT | (ate & QHCA_ATE_WRITE);
}

enum hca_walk hca_at_walk(struct hca_fn *fn,
			  const struct hca_at_root *root, uint64_t offset,
			  uint64_t *entry, uint64_t *reads)
{
	uint64_t node = root->base, index, ate;
	unsigned int level;
	uint8_t raw[8];

	for (level = root->levels; level > 0; level--) {
		if (!at_index(root, level, offset, &index))
			return HCA_WALK_RANGE;
		if (hca_dma_read(fn, node + index * 8, raw, sizeof(raw)))
			return HCA_WALK_DMA;
		if (reads)
			(*reads)++;
		ate = get_le64(raw);
		if (!(ate & QHCA_ATE_PRESENT))
			return HCA_WALK_ABSENT;
		if (level == 1 || ate & QHCA_ATE_LEAF) {
			*entry = at_leaf(root, level, offset, ate);
			return HCA_WALK_OK;
		}
		node = ate & QHCA_ATE_NODE;
	}
	return HCA_WALK_RANGE;
}
