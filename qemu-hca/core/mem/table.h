/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Tables that live in host memory: which bus address holds entry i, and the
 * walk through address translation nodes.
 *
 * A table is 2^log_entries entries of a fixed size, cut into chunks of
 * 2^log_chunk bytes.  Software maps a chunk before it uses an index in it
 * (MAP_CHUNKS), so a table costs memory only where it is used.
 */
#ifndef HCA_CORE_TABLE_H
#define HCA_CORE_TABLE_H

#include "qhca.h"
#include "mem/translation.h"
#include "handler.h"

struct hca_table_map {
	uint8_t log_entries;
	uint8_t log_chunk;		/* bytes */
	uint8_t log_entry;		/* bytes of one entry */
	bool present;			/* INIT_HCA gave it a size */
	uint64_t chunk[QHCA_MAX_CHUNKS]; /* bus address | 1; 0: not mapped */
};

struct hca_tables {
	struct hca_table_map map[QHCA_NUM_TABLES];
};

/* Page sizes of regions and queue buffers: QUERY_CAPS, 2^n bytes. */
#define HCA_MIN_PAGE_SHIFT	12
#define HCA_MAX_PAGE_SHIFT	39
/* Largest region: what five levels of 4 KiB pages reach. */
#define HCA_MAX_LOG_MR_SIZE	57

/* Check one row of INIT_HCA against @log_max entries; false: not acceptable. */
bool hca_table_check(enum qhca_table id, const struct qhca_init_table *row,
		     unsigned int log_max);
/* Take the size of a table that hca_table_check() accepted; nothing mapped. */
void hca_table_init(struct hca_fn *fn, enum qhca_table id,
		    const struct qhca_init_table *row);
void hca_tables_reset(struct hca_fn *fn);

/* Entries of a table, 0 before INIT_HCA. */
uint32_t hca_table_size(const struct hca_fn *fn, enum qhca_table id);

/* Its chunk registers, and the entries that one chunk holds. */
uint32_t hca_table_chunks(const struct hca_fn *fn, enum qhca_table id);
uint32_t hca_table_chunk_entries(const struct hca_fn *fn,
				 enum qhca_table id);

/*
 * Bus address of an entry.  false: @index is beyond the table, or its chunk is
 * not mapped; @addr is untouched then.
 */
bool hca_table_entry(const struct hca_fn *fn, enum qhca_table id,
		     uint32_t index, uint64_t *addr);

/* Why there is no live object @index: NOT_MAPPED, or BAD_STATE. */
enum qhca_cmd_status hca_cmd_missing(const struct hca_fn *fn,
				     enum qhca_table id, uint32_t index);

/* hca_walk() through a tree that the function's own software has made. */
enum hca_walk hca_at_walk(struct hca_fn *fn,
			  const struct hca_at_root *root, uint64_t offset,
			  uint64_t *entry, uint64_t *reads);

#endif /* HCA_CORE_TABLE_H */
