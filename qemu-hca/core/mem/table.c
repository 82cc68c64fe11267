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

/* Read an entry of a node. */
static enum hca_walk read_entry(struct hca_fn *fn,
				const struct hca_at_root *root, uint64_t addr,
				uint8_t raw[8])
{
	if (!root->may_fault || !fn->s2.mode)
		return hca_dma_read(fn, addr, raw, 8) ? HCA_WALK_DMA :
							HCA_WALK_OK;
	switch (hca_s2_fetch(fn, addr, root->need, raw, 8)) {
	case HCA_MEM_OK:
		return HCA_WALK_OK;
	case HCA_MEM_FAULT:
		return HCA_WALK_STAGE2;
	default:
		return HCA_WALK_DMA;
	}
}

enum hca_walk hca_at_walk(struct hca_fn *fn,
			  const struct hca_at_root *root, uint64_t offset,
			  uint64_t *entry, uint64_t *reads)
{
	return hca_walk(fn, root, offset, read_entry, entry, reads);
}
