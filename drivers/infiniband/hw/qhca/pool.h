/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The memory pool, within pool.c and pool_buf.c.
 */
#ifndef QHCA_POOL_H
#define QHCA_POOL_H

#include "mem.h"

/**
 * struct qhca_pool_block - one row of the device's bank.
 * @page:   its first page
 * @length: bytes
 * @dma:    bus address
 */
struct qhca_pool_block {
	struct page *page;
	u64 length;
	dma_addr_t dma;
};

/**
 * struct qhca_pool - all of the pool.
 * @gen:        hands out kernel addresses; a chunk is a block, whose number is
 *              the chunk's owner
 * @pieces:     what the page allocator gave, through page.lru, by address; the
 *              order of each is in its page_private()
 * @block:      blocks, by row
 * @num_blocks: length of @block
 * @num_mapped: of these, known to the device
 * @num_refused: blocks that could not be mapped, and went back
 */
struct qhca_pool {
	struct gen_pool *gen;
	struct list_head pieces;
	struct qhca_pool_block *block;
	u32 num_blocks;
	u32 num_mapped;
	u32 num_refused;
};

#endif /* QHCA_POOL_H */
