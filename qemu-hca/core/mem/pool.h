/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The pool bank (seed 002): what the device keeps on chip of pool memory, apart
 * from the set-associative caches, so that no other key's traffic evicts it.
 *
 *  - Blocks: one row {bus address, length} for each physically contiguous
 *    block, filled by MAP_POOL_BLOCK.
 *  - Keys: copies of protection entries of type POOL, put there by
 *    MAP_POOL_KEY, and of windows on such regions, put there by the bind.
 *    They leave by INVALIDATE_KEY, when their chunk of the table is unmapped,
 *    and at TEARDOWN_HCA, and a window also when it is bound anew, unbound or
 *    invalidated by a work request.  Nothing evicts them.
 *
 * A key that finds the bank full is counted, and works through the protection
 * cache like any other.
 */
#ifndef HCA_CORE_POOL_H
#define HCA_CORE_POOL_H

#include "qhca.h"
#include "handler.h"
#include "mem/protection.h"

struct hca_pool_block {
	uint64_t addr, length;		/* length 0: an empty row */
};

struct hca_pool_key;

/**
 * struct hca_pool - the bank.
 * @block:    [cfg.max_pool_blocks]
 * @key:      [cfg.max_pool_keys], in the list of a bucket or of free ones
 * @bucket:   [mask + 1]: 1 + number of a list's first key, 0: empty
 * @mask:     of a key index: its bucket
 * @free:     1 + number of the first free key, 0: none
 * @num_keys: keys in use
 */
struct hca_pool {
	struct hca_pool_block *block;
	struct hca_pool_key *key;
	uint32_t *bucket;
	uint32_t mask;
	uint32_t free;
	uint32_t num_keys;
};

bool hca_pool_create(struct hca_fn *fn);	/* false: no memory */
void hca_pool_destroy(struct hca_fn *fn);
void hca_pool_reset(struct hca_fn *fn);		/* empty both parts */

/*
 * Bus address of byte @offset of a block, if @len bytes from there lie in it;
 * false: the row is empty, too short, or beyond the bank.
 */
bool hca_pool_resolve(const struct hca_fn *fn, uint32_t block,
		      uint64_t offset, uint64_t len, uint64_t *addr);

/* The bank's copy of a key's entry, or NULL; good until a command runs. */
const struct hca_pte_host *hca_pool_key(const struct hca_fn *fn,
					uint32_t index);
/* Keep a copy of a key's entry, in place of an older one; false: no room. */
bool hca_pool_key_add(struct hca_fn *fn, uint32_t index,
		      const struct hca_pte_host *pte);
/* Forget the copies of first ... last. */
void hca_pool_key_drop(struct hca_fn *fn, uint32_t first, uint32_t last);
/*
 * Copy a few entries from the table again, from place *@next on, and drop those
 * that are no pool keys any more.  true: these were the last.
 */
bool hca_pool_refresh(struct hca_fn *fn, uint32_t *next);

/* May a row that is not empty be like this? */
bool hca_pool_block_valid(const struct hca_pool_block *block);
/* The index of the next key in the bank, from place *@place on; there is one. */
uint32_t hca_pool_next_key(const struct hca_fn *fn, uint32_t *place);

enum qhca_cmd_status hca_cmd_map_pool_block(struct hca_fn *fn,
					    struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_unmap_pool_block(struct hca_fn *fn,
					      struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_map_pool_key(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_POOL_H */
