// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The pool bank: blocks and keys that stay on the chip.
 *
 * Keys are found by a hash of their index.  All places are allocated when the
 * device is created, and places that are not in use form a list: adding a key
 * at run time fails only when the bank is full.
 */
#include <stdlib.h>

#include "hca.h"

#define REFRESH_SLICE	64u	/* keys that one call reads the entries of */

struct hca_pool_key {
	struct hca_pte_host pte;
	uint32_t index;			/* of the key; 0: this place is free */
	uint32_t next;			/* in the list, as in hca_pool.bucket */
};

bool hca_pool_create(struct hca_fn *fn)
{
	struct hca_pool *pool = &fn->pool;

	pool->mask = 0;
	while (pool->mask + 1 < fn->cfg.max_pool_keys)
		pool->mask = pool->mask << 1 | 1;
	pool->block = calloc(fn->cfg.max_pool_blocks + 1u,
			     sizeof(*pool->block));
	pool->key = calloc(fn->cfg.max_pool_keys + 1u, sizeof(*pool->key));
	pool->bucket = calloc(pool->mask + 1u, sizeof(*pool->bucket));
	return pool->block && pool->key && pool->bucket;
}

void hca_pool_destroy(struct hca_fn *fn)
{
	free(fn->pool.block);
	free(fn->pool.key);
	free(fn->pool.bucket);
	memset(&fn->pool, 0, sizeof(fn->pool));
}

void hca_pool_reset(struct hca_fn *fn)
{
	struct hca_pool *pool = &fn->pool;
	uint32_t i, max = fn->cfg.max_pool_keys;

	memset(pool->block, 0,
	       fn->cfg.max_pool_blocks * sizeof(*pool->block));
	memset(pool->bucket, 0, (pool->mask + 1) * sizeof(*pool->bucket));
	for (i = 0; i < max; i++) {
		pool->key[i].index = 0;
		pool->key[i].next = i + 1 < max ? i + 2 : 0;
	}
	pool->free = max ? 1 : 0;
	pool->num_keys = 0;
}

bool hca_pool_resolve(const struct hca_fn *fn, uint32_t block,
		      uint64_t offset, uint64_t len, uint64_t *addr)
{
	const struct hca_pool_block *row;

	if (block >= fn->cfg.max_pool_blocks)
		return false;
	row = &fn->pool.block[block];
	if (!row->length || !hca_range_inside(offset, len, 0, row->length))
		return false;
	*addr = row->addr + offset;
	return true;
}

/* ------------------------------------------------------------------------
 * Keys
 */

/*
 * The place in the list of a bucket that holds the number of the key with
 * @index.  If there is none, this is the end of the list, which holds 0.
 */
static uint32_t *find(const struct hca_pool *pool, uint32_t index)
{
	uint32_t *at = &pool->bucket[index & pool->mask];

	while (*at && pool->key[*at - 1].index != index)
		at = &pool->key[*at - 1].next;
	return at;
}

const struct hca_pte_host *hca_pool_key(const struct hca_fn *fn,
					uint32_t index)
{
	uint32_t number;

	if (!fn->pool.num_keys)
		return NULL;
	number = *find(&fn->pool, index);
	return number ? &fn->pool.key[number - 1].pte : NULL;
}

static void drop_one(struct hca_pool *pool, uint32_t index)
{
	uint32_t *at = find(pool, index), number = *at;

	if (!number)
		return;
	*at = pool->key[number - 1].next;
	pool->key[number - 1].index = 0;
	pool->key[number - 1].next = pool->free;
	pool->free = number;
	pool->num_keys--;
}

void hca_pool_key_drop(struct hca_fn *fn, uint32_t first, uint32_t last)
{
	struct hca_pool *pool = &fn->pool;
	uint32_t i, next, number;

	if (!pool->num_keys)
		return;
	if (first == last) {
		drop_one(pool, first);
		return;
	}
	for (i = 0; i <= pool->mask; i++)
		for (number = pool->bucket[i]; number; number = next) {
			next = pool->key[number - 1].next;
			if (pool->key[number - 1].index >= first &&
			    pool->key[number - 1].index <= last)
				drop_one(pool, pool->key[number - 1].index);
		}
}

bool hca_pool_key_add(struct hca_fn *fn, uint32_t index,
		      const struct hca_pte_host *pte)
{
	struct hca_pool *pool = &fn->pool;
	uint32_t *at = find(pool, index), number = *at ? *at : pool->free;
	struct hca_pool_key *key;

	if (!number) {
		hca_count(fn, QHCA_CNT_pool_bank_full);
		return false;
	}
	key = &pool->key[number - 1];
	if (!*at) {
		pool->free = key->next;
		pool->num_keys++;
		key->index = index;
		key->next = 0;
		*at = number;
	}
	key->pte = *pte;
	return true;
}

/* The key's entry as it is in memory: valid, and of pool memory. */
static enum qhca_cmd_status read_entry(struct hca_fn *fn, uint32_t index,
				       struct hca_pte_host *pte)
{
	struct qhca_pte raw;
	uint64_t addr;

	if (!hca_table_entry(fn, QHCA_TABLE_PT, index, &addr))
		return QHCA_CMD_NOT_MAPPED;
	if (hca_dma_read(fn, addr, &raw, sizeof(raw)))
		return QHCA_CMD_DMA_ERR;
	hca_pte_decode(&raw, pte);
	if (pte->state != QHCA_PTE_VALID || !hca_pte_is_pool(pte) ||
	    !hca_pte_well_formed(fn, pte))
		return QHCA_CMD_BAD_STATE;
	return QHCA_CMD_OK;
}

bool hca_pool_refresh(struct hca_fn *fn, uint32_t *next)
{
	struct hca_pool *pool = &fn->pool;
	uint32_t end = *next + REFRESH_SLICE;
	struct hca_pte_host pte;

	for (; *next < fn->cfg.max_pool_keys && *next < end && pool->num_keys;
	     (*next)++) {
		struct hca_pool_key *key = &pool->key[*next];

		if (!key->index)
			continue;
		if (read_entry(fn, key->index, &pte))
			drop_one(pool, key->index);
		else
			key->pte = pte;
	}
	return *next >= fn->cfg.max_pool_keys || !pool->num_keys;
}

uint32_t hca_pool_next_key(const struct hca_fn *fn, uint32_t *place)
{
	while (!fn->pool.key[*place].index)
		(*place)++;
	return fn->pool.key[(*place)++].index;
}

/* ------------------------------------------------------------------------
 * Commands
 */
static bool length_valid(const struct hca_pool_block *block)
{
	return block->length && !(block->length & 4095) &&
	       block->addr + (block->length - 1) >= block->addr;
}

bool hca_pool_block_valid(const struct hca_pool_block *block)
{
	return !(block->addr & 4095) && length_valid(block);
}

enum qhca_cmd_status hca_cmd_map_pool_block(struct hca_fn *fn,
					    struct hca_cmd_ctx *ctx)
{
	const struct qhca_pool_row *row = (const void *)ctx->in;
	struct hca_pool_block *block = &fn->pool.block[ctx->index];
	struct hca_pool_block in = {
		.addr = get_le64(&row->addr), .length = get_le64(&row->length),
	};

	if (in.addr & 4095)
		return hca_cmd_bad(ctx, offsetof(struct qhca_pool_row, addr));
	if (!length_valid(&in))
		return hca_cmd_bad(ctx, offsetof(struct qhca_pool_row, length));
	if (block->length)
		return QHCA_CMD_IN_USE;
	*block = in;
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_unmap_pool_block(struct hca_fn *fn,
					      struct hca_cmd_ctx *ctx)
{
	struct hca_pool_block *block = &fn->pool.block[ctx->index];

	if (!block->length)
		return QHCA_CMD_BAD_STATE;
	block->addr = 0;
	block->length = 0;
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_map_pool_key(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx)
{
	enum qhca_cmd_status status;
	struct hca_pte_host pte;
	uint64_t addr;

	if (ctx->index < QHCA_FIRST_KEY_INDEX)
		return QHCA_CMD_BAD_INDEX;
	status = read_entry(fn, ctx->index, &pte);
	if (status)
		return status;
	/* A window enters the bank when it is bound, not by command. */
	if (pte.type != QHCA_PTE_POOL)
		return QHCA_CMD_BAD_STATE;
	/* The entry is well formed, so offset + length does not wrap. */
	if (pte.at_base + pte.at_offset < pte.at_base ||
	    !hca_pool_resolve(fn, pte.pool_block, pte.at_base + pte.at_offset,
			      pte.length, &addr))
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(index));

	return hca_pool_key_add(fn, ctx->index, &pte) ?
	       QHCA_CMD_OK : QHCA_CMD_NO_RESOURCE;
}
