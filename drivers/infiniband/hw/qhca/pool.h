/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The memory pool, within pool.c and pool_buf.c.
 */
#ifndef QHCA_POOL_H
#define QHCA_POOL_H

#include "mem.h"

/**
 * struct qhca_pool_block - one row of the device's bank.
 * @page:   first page
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
 * @gen:        allocator of kernel addresses; each of its chunks is a block,
 *              and the owner of the chunk is the number of the block
 * @pieces:     pieces of the page allocator, linked by page.lru, by address;
 *              the order of each is in its page_private()
 * @block:      blocks, by row
 * @num_blocks: length of @block
 * @num_mapped: number of blocks that are mapped for the device
 * @num_refused: number of blocks that could not be mapped, and were freed
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
