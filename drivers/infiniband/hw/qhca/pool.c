// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The memory pool: physically contiguous blocks, which the driver allocates
 * when it binds, and each of which the device knows by one row of its bank.
 * Processes allocate parts of blocks, map them, and register them as
 * pool-direct regions.  Such a region needs no pinned pages and no translation
 * tree, and the device looks up none of its caches for it.
 *
 * A block larger than the largest piece of the page allocator is made of pieces
 * that happen to be neighbours.
 */
#include <linux/dma-mapping.h>
#include <linux/genalloc.h>
#include <linux/list_sort.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "pool.h"

/* A smaller piece of free memory is not worth a row of the bank. */
#define QHCA_POOL_MIN_ORDER	4

static u64 qhca_pool_piece_size(struct page *page)
{
	return (u64)PAGE_SIZE << page_private(page);
}

static void qhca_pool_piece_free(struct page *page)
{
	unsigned int order = page_private(page);

	list_del(&page->lru);
	set_page_private(page, 0);
	__free_pages(page, order);
}

/*
 * Allocate @want bytes in pieces that are as large as possible.  Returns how
 * many bytes were available.
 */
static u64 qhca_pool_take(struct qhca_ib_dev *dev, struct list_head *pieces,
			  u64 want, unsigned int order)
{
	int node = dev_to_node(qhca_dma_dev(dev));
	struct page *page;
	u64 have = 0;

	while (have < want) {
		page = alloc_pages_node(node, GFP_KERNEL | __GFP_NORETRY |
					__GFP_NOWARN, order);
		if (page) {
			set_page_private(page, order);
			list_add_tail(&page->lru, pieces);
			have += PAGE_SIZE << order;
		} else if (order > QHCA_POOL_MIN_ORDER) {
			order--;
		} else {
			break;
		}
	}
	return have;
}

static int qhca_pool_piece_cmp(void *priv, const struct list_head *a,
			       const struct list_head *b)
{
	unsigned long pfn_a = page_to_pfn(list_entry(a, struct page, lru));
	unsigned long pfn_b = page_to_pfn(list_entry(b, struct page, lru));

	return pfn_a < pfn_b ? -1 : pfn_a > pfn_b;
}

/* Does @page directly follow @block, and may the block become that large? */
static bool qhca_pool_joins(const struct qhca_pool_block *block,
			    struct page *page, u64 block_size)
{
	return page_to_pfn(block->page) + PHYS_PFN(block->length) ==
	       page_to_pfn(page) &&
	       block->length + qhca_pool_piece_size(page) <= block_size;
}

/* Join neighbours to blocks; @block has room for one block for each piece. */
static u32 qhca_pool_join(struct list_head *pieces,
			  struct qhca_pool_block *block, u64 block_size)
{
	struct page *page;
	u32 n = 0;

	list_sort(NULL, pieces, qhca_pool_piece_cmp);
	list_for_each_entry(page, pieces, lru) {
		if (n && qhca_pool_joins(&block[n - 1], page, block_size)) {
			block[n - 1].length += qhca_pool_piece_size(page);
			continue;
		}
		block[n].page = page;
		block[n].length = qhca_pool_piece_size(page);
		n++;
	}
	return n;
}

/* Sort the largest blocks first. */
static int qhca_pool_block_cmp(const void *a, const void *b)
{
	const struct qhca_pool_block *block_a = a, *block_b = b;

	if (block_a->length != block_b->length)
		return block_a->length < block_b->length ? 1 : -1;
	return page_to_pfn(block_a->page) < page_to_pfn(block_b->page) ? -1 : 1;
}

/* Free a block.  Its pieces are in sequence in the list. */
static void qhca_pool_block_free(const struct qhca_pool_block *block)
{
	struct page *page = block->page, *next;
	u64 left = block->length;

	while (left) {
		left -= qhca_pool_piece_size(page);
		next = list_next_entry(page, lru);
		qhca_pool_piece_free(page);
		page = next;
	}
}

static int qhca_pool_gather(struct qhca_ib_dev *dev, struct qhca_pool *pool)
{
	u64 block_size = dev->qdev->pool_block_size;
	u32 rows = dev->qdev->caps.max_pool_blocks;
	u32 asked = min(dev->qdev->pool_blocks, rows);
	u64 want = asked * block_size, limit;
	unsigned int order;
	u32 n;

	/* The pool takes at most half of what is free. */
	limit = (u64)max(si_mem_available(), 0L) / 2 << PAGE_SHIFT;
	limit = min(want, round_down(limit, PAGE_SIZE << QHCA_POOL_MIN_ORDER));
	order = min_t(unsigned int, get_order(block_size), MAX_PAGE_ORDER);
	qhca_pool_take(dev, &pool->pieces, limit, order);

	pool->block = kvcalloc(list_count_nodes(&pool->pieces) + 1,
			       sizeof(*pool->block), GFP_KERNEL);
	if (!pool->block)
		return -ENOMEM;
	n = qhca_pool_join(&pool->pieces, pool->block, block_size);
	sort(pool->block, n, sizeof(*pool->block), qhca_pool_block_cmp, NULL);
	/* There may be more and smaller blocks, but no more than rows. */
	for (; n > rows; n--)
		qhca_pool_block_free(&pool->block[n - 1]);
	pool->num_blocks = n;
	return 0;
}

static int qhca_pool_block_map(struct qhca_ib_dev *dev, struct qhca_pool *pool,
			       u32 row)
{
	struct qhca_pool_block *block = &pool->block[row];
	struct qhca_pool_row in = {};
	int err;

	block->dma = dma_map_page(qhca_dma_dev(dev), block->page, 0,
				  block->length, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(qhca_dma_dev(dev), block->dma))
		return -ENOMEM;
	/* Processes map the block itself, not its bounce buffer. */
	if (qhca_dma_is_bounced(dev, block->dma)) {
		err = -EOPNOTSUPP;
		goto err_unmap;
	}

	in.addr = cpu_to_le64(block->dma);
	in.length = cpu_to_le64(block->length);
	err = qhca_create_object(dev, QHCA_CMD_MAP_POOL_BLOCK, row, &in,
				 sizeof(in));
	if (err)
		goto err_unmap;
	err = gen_pool_add_owner(pool->gen,
				 (unsigned long)page_address(block->page), -1,
				 block->length, dev_to_node(qhca_dma_dev(dev)),
				 (void *)(uintptr_t)row);
	if (err)
		goto err_row;
	return 0;

err_row:
	qhca_destroy_object(dev, QHCA_CMD_UNMAP_POOL_BLOCK, row);
err_unmap:
	dma_unmap_page(qhca_dma_dev(dev), block->dma, block->length,
		       DMA_BIDIRECTIONAL);
	return err;
}

/* Log what the pool has, so that whoever asked for more finds out. */
static void qhca_pool_report(struct qhca_ib_dev *dev,
			     const struct qhca_pool *pool)
{
	const struct qhca_dev *qdev = dev->qdev;
	u64 size = gen_pool_size(pool->gen);

	if (pool->num_mapped == qdev->pool_blocks &&
	    size == qdev->pool_blocks * qdev->pool_block_size)
		dev_info(qhca_dma_dev(dev),
			 "memory pool: %u blocks of %llu KiB\n",
			 qdev->pool_blocks, qdev->pool_block_size >> 10);
	else
		dev_warn(qhca_dma_dev(dev),
			 "memory pool: wanted %u blocks of %llu KiB, got %u with %llu KiB in all, the largest %llu KiB: %s\n",
			 qdev->pool_blocks, qdev->pool_block_size >> 10,
			 pool->num_mapped, size >> 10,
			 pool->num_mapped ? pool->block[0].length >> 10 : 0,
			 pool->num_refused ? "not all blocks could be mapped" :
					     "memory is short or fragmented");
}

/* Map all blocks for the device, and free those that cannot be mapped. */
static void qhca_pool_map(struct qhca_ib_dev *dev, struct qhca_pool *pool)
{
	u32 i, num = pool->num_blocks;

	for (i = 0; i < num; i++) {
		struct qhca_pool_block *block = &pool->block[pool->num_mapped];

		if (block != &pool->block[i])
			*block = pool->block[i];
		if (qhca_pool_block_map(dev, pool, pool->num_mapped)) {
			qhca_pool_block_free(block);
			pool->num_refused++;
		} else {
			pool->num_mapped++;
		}
	}
	pool->num_blocks = pool->num_mapped;
}

/**
 * qhca_pool_create - allocate the memory of the pool and map it for the device
 * @dev: device, not registered yet
 *
 * It is no error if there is less memory than was asked for, or none, because
 * RDMA works without the pool.  The driver logs one line about the result.
 */
void qhca_pool_create(struct qhca_ib_dev *dev)
{
	struct qhca_pool *pool;

	if (!qhca_has(dev, QHCA_FEAT_POOL) || !dev->qdev->pool_blocks)
		return;
	if (dev->bounced) {
		dev_warn(qhca_dma_dev(dev),
			 "memory pool: none, since DMA is bounced\n");
		return;
	}

	pool = kzalloc_obj(*pool);
	if (!pool)
		goto err_report;
	INIT_LIST_HEAD(&pool->pieces);
	dev->pool = pool;
	pool->gen = gen_pool_create(PAGE_SHIFT,
				    dev_to_node(qhca_dma_dev(dev)));
	if (!pool->gen)
		goto err_destroy;
	gen_pool_set_algo(pool->gen, gen_pool_best_fit, NULL);

	if (qhca_pool_gather(dev, pool))
		goto err_destroy;
	qhca_pool_map(dev, pool);
	qhca_pool_report(dev, pool);
	if (!pool->num_mapped)
		qhca_pool_destroy(dev);
	return;

err_destroy:
	qhca_pool_destroy(dev);
err_report:
	dev_warn(qhca_dma_dev(dev), "memory pool: none, memory is short\n");
}

/**
 * qhca_pool_destroy - undo qhca_pool_create()
 * @dev: device, all of whose contexts have been freed
 */
void qhca_pool_destroy(struct qhca_ib_dev *dev)
{
	struct qhca_pool *pool = dev->pool;
	struct page *page, *next;
	u32 row;

	if (!pool)
		return;
	for (row = 0; row < pool->num_mapped; row++) {
		qhca_destroy_object(dev, QHCA_CMD_UNMAP_POOL_BLOCK, row);
		dma_unmap_page(qhca_dma_dev(dev), pool->block[row].dma,
			       pool->block[row].length, DMA_BIDIRECTIONAL);
	}
	if (pool->gen)
		gen_pool_destroy(pool->gen);
	list_for_each_entry_safe(page, next, &pool->pieces, lru)
		qhca_pool_piece_free(page);
	kvfree(pool->block);
	kfree(pool);
	dev->pool = NULL;
}
