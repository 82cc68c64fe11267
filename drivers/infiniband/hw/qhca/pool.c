// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The memory pool: physically contiguous blocks, taken when the driver binds,
 * of which the device knows each by one row of its bank.  Processes get pieces
 * of blocks, map them, and register them as pool-direct: no pages to pin, no
 * translation tree, no lookup in the device's caches.
 *
 * A buffer belongs to the context that allocated it.  It is given back when
 * its object has been destroyed, which the last of its regions prevents, and
 * nobody maps it any more.  It is cleared when it is given out, at the cost of
 * who asks for it, and not when it is given back, which may be in munmap() or
 * at the end of a process.
 * Destroying a region invalidates its key and waits for the device, so there is
 * no access left by then.  What the kernel does at a process's end is the same.
 *
 * Blocks larger than the page allocator's largest piece are put together from
 * pieces that happen to be neighbours.
 */
#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/genalloc.h>
#include <linux/list_sort.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <rdma/uverbs_std_types.h>

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

#include "mem.h"

/* Smaller pieces of free memory are not worth a row. */
#define QHCA_POOL_MIN_ORDER	4

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

/* ------------------------------------------------------------------------
 * Blocks
 */

static u64 qhca_piece_size(struct page *page)
{
	return (u64)PAGE_SIZE << page_private(page);
}

static void qhca_piece_free(struct page *page)
{
	unsigned int order = page_private(page);

	list_del(&page->lru);
	set_page_private(page, 0);
	__free_pages(page, order);
}

/* Takes @want bytes in pieces as large as can be had; returns how many. */
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

static int qhca_piece_cmp(void *priv, const struct list_head *a,
			  const struct list_head *b)
{
	unsigned long pfn_a = page_to_pfn(list_entry(a, struct page, lru));
	unsigned long pfn_b = page_to_pfn(list_entry(b, struct page, lru));

	return pfn_a < pfn_b ? -1 : pfn_a > pfn_b;
}

/* Does @page follow @block, and may the block grow by it? */
static bool qhca_pool_joins(const struct qhca_pool_block *block,
			    struct page *page, u64 block_size)
{
	return page_to_pfn(block->page) + PHYS_PFN(block->length) ==
	       page_to_pfn(page) &&
	       block->length + qhca_piece_size(page) <= block_size;
}

/* Joins neighbours to blocks; @block has room for one for each piece. */
static u32 qhca_pool_join(struct list_head *pieces,
			  struct qhca_pool_block *block, u64 block_size)
{
	struct page *page;
	u32 n = 0;

	list_sort(NULL, pieces, qhca_piece_cmp);
	list_for_each_entry(page, pieces, lru) {
		if (n && qhca_pool_joins(&block[n - 1], page, block_size)) {
			block[n - 1].length += qhca_piece_size(page);
			continue;
		}
		block[n].page = page;
		block[n].length = qhca_piece_size(page);
		n++;
	}
	return n;
}

/* The largest blocks first. */
static int qhca_block_cmp(const void *a, const void *b)
{
	const struct qhca_pool_block *block_a = a, *block_b = b;

	if (block_a->length != block_b->length)
		return block_a->length < block_b->length ? 1 : -1;
	return page_to_pfn(block_a->page) < page_to_pfn(block_b->page) ? -1 : 1;
}

/* Gives back a block that there is no row for; its pieces follow each other. */
static void qhca_block_free(const struct qhca_pool_block *block)
{
	struct page *page = block->page, *next;
	u64 left = block->length;

	while (left) {
		left -= qhca_piece_size(page);
		next = list_next_entry(page, lru);
		qhca_piece_free(page);
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

	/* The machine has other uses for its memory. */
	limit = (u64)max(si_mem_available(), 0L) / 2 << PAGE_SHIFT;
	limit = min(want, round_down(limit, PAGE_SIZE << QHCA_POOL_MIN_ORDER));
	order = min_t(unsigned int, get_order(block_size), MAX_PAGE_ORDER);
	qhca_pool_take(dev, &pool->pieces, limit, order);

	pool->block = kvcalloc(list_count_nodes(&pool->pieces) + 1,
			       sizeof(*pool->block), GFP_KERNEL);
	if (!pool->block)
		return -ENOMEM;
	n = qhca_pool_join(&pool->pieces, pool->block, block_size);
	sort(pool->block, n, sizeof(*pool->block), qhca_block_cmp, NULL);
	/* Smaller ones make up for others, as far as there are rows. */
	for (; n > rows; n--)
		qhca_block_free(&pool->block[n - 1]);
	pool->num_blocks = n;
	return 0;
}

static int qhca_block_map(struct qhca_ib_dev *dev, struct qhca_pool *pool,
			  u32 row)
{
	struct qhca_pool_block *block = &pool->block[row];
	struct qhca_pool_row in = {};
	int err;

	block->dma = dma_map_page(qhca_dma_dev(dev), block->page, 0,
				  block->length, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(qhca_dma_dev(dev), block->dma))
		return -ENOMEM;
	/* Processes map the block itself, not what it is bounced to. */
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

/* One line, that those who asked for more can find. */
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

/* Maps all blocks; those that cannot be mapped go back. */
static void qhca_pool_map(struct qhca_ib_dev *dev, struct qhca_pool *pool)
{
	u32 i, num = pool->num_blocks;

	for (i = 0; i < num; i++) {
		struct qhca_pool_block *block = &pool->block[pool->num_mapped];

		if (block != &pool->block[i])
			*block = pool->block[i];
		if (qhca_block_map(dev, pool, pool->num_mapped)) {
			qhca_block_free(block);
			pool->num_refused++;
		} else {
			pool->num_mapped++;
		}
	}
	pool->num_blocks = pool->num_mapped;
}

/**
 * qhca_pool_create - take the memory of the pool and tell the device
 * @dev: device, not registered yet
 *
 * Less memory than asked for is no error, nor is none: RDMA works without the
 * pool.  One line in the log tells what came of it.
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
 * @dev: device, whose contexts have all gone
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
		qhca_piece_free(page);
	kvfree(pool->block);
	kfree(pool);
	dev->pool = NULL;
}

/* ------------------------------------------------------------------------
 * Buffers
 */

/* Called when nobody maps it and its object has gone; perhaps from munmap(). */
void qhca_pool_buf_free(struct qhca_ib_dev *dev, struct qhca_pool_buf *buf)
{
	gen_pool_free(dev->pool->gen, (unsigned long)buf->addr, buf->length);
	kfree(buf);
}

/* -EINTR: the process is being killed, and wants no memory any more. */
static int qhca_pool_clear(void *addr, u64 length)
{
	while (length) {
		u64 n = min_t(u64, length, QHCA_CLEAR_BYTES);

		if (fatal_signal_pending(current))
			return -EINTR;
		memset(addr, 0, n);
		addr += n;
		length -= n;
		cond_resched();
	}
	return 0;
}

static struct qhca_pool_buf *qhca_pool_buf_alloc(struct qhca_ib_dev *dev,
						 struct qhca_ucontext *uc,
						 u64 length)
{
	struct qhca_pool *pool = dev->pool;
	struct qhca_pool_buf *buf;
	unsigned long addr;
	void *row;
	int err;

	if (!length || length > U64_MAX - PAGE_SIZE)
		return ERR_PTR(-EINVAL);

	buf = kzalloc_obj(*buf, GFP_KERNEL_ACCOUNT);
	if (!buf)
		return ERR_PTR(-ENOMEM);

	buf->uc = uc;
	buf->length = PAGE_ALIGN(length);
	addr = gen_pool_alloc_owner(pool->gen, buf->length, &row);
	if (!addr) {
		kfree(buf);
		return ERR_PTR(-ENOSPC);
	}
	buf->addr = (void *)addr;
	buf->block = (uintptr_t)row;
	buf->offset = addr -
		      (unsigned long)page_address(pool->block[buf->block].page);

	err = qhca_pool_clear(buf->addr, buf->length);
	if (!err)
		err = qhca_mmap_insert(uc, &buf->mmap, QHCA_MMAP_POOL,
				       virt_to_phys(buf->addr), buf->length);
	if (err) {
		gen_pool_free(pool->gen, addr, buf->length);
		kfree(buf);
		return ERR_PTR(err);
	}
	return buf;
}

/* From now on regions may be registered on it. */
static void qhca_pool_buf_publish(struct qhca_pool_buf *buf)
{
	struct qhca_ucontext *uc = buf->uc;

	mutex_lock(&uc->pool_lock);
	list_add(&buf->entry, &uc->pool_bufs);
	mutex_unlock(&uc->pool_lock);
}

/* -EBUSY while regions are registered on it; the core then tries again. */
static int qhca_pool_buf_release(struct qhca_pool_buf *buf)
{
	struct qhca_ucontext *uc = buf->uc;
	int err = 0;

	mutex_lock(&uc->pool_lock);
	if (buf->regions)
		err = -EBUSY;
	else
		list_del(&buf->entry);
	mutex_unlock(&uc->pool_lock);
	if (!err)
		rdma_user_mmap_entry_remove(&buf->mmap.rdma_entry);
	return err;
}

/*
 * What a range of the process maps, in pages of the file of its context.
 * -ENOENT: @start is something else's; -EINVAL: the range is only partly that;
 * -EACCES: the process itself may not write there.
 */
static int qhca_pool_vma(struct qhca_ucontext *uc, u64 start, u64 length,
			 bool writable, unsigned long *pgoff)
{
	struct mm_struct *mm = current->mm;
	struct vm_area_struct *vma;
	int err = -ENOENT;

	mmap_read_lock(mm);
	vma = vma_lookup(mm, start);
	if (vma && vma->vm_flags & VM_PFNMAP && vma->vm_file &&
	    vma->vm_file->private_data == uc->ibuc.ufile) {
		*pgoff = vma->vm_pgoff + PHYS_PFN(start - vma->vm_start);
		err = 0;
		if (length > vma->vm_end - start)
			err = -EINVAL;
		else if (writable && !(vma->vm_flags & VM_WRITE))
			err = -EACCES;
	}
	mmap_read_unlock(mm);
	return err;
}

/**
 * qhca_pool_get - find the buffer that a range of the process lies in
 * @ibpd:   protection domain of the caller; only the buffers of its context
 *          are considered, and a domain of the kernel's has no context
 * @start:  address in the process
 * @length: bytes
 * @access: IB_ACCESS_* asked for
 * @offset: result, of the range in its block
 *
 * Return: the buffer, with one more region to be given up by qhca_pool_put();
 * NULL if @start is not memory of the pool; -EINVAL if the range runs over the
 * buffer's end or may not be registered so.
 */
struct qhca_pool_buf *qhca_pool_get(struct ib_pd *ibpd, u64 start, u64 length,
				    int access, u64 *offset)
{
	struct qhca_pool_buf *buf, *found = NULL;
	struct qhca_ucontext *uc;
	unsigned long pgoff, first;
	u64 at = 0;
	int err;

	/* Not from udata, which some callers in the core do not have. */
	if (!ibpd->uobject)
		return NULL;
	uc = to_quc(ibpd->uobject->context);
	if (list_empty_careful(&uc->pool_bufs))
		return NULL;
	start = untagged_addr(start);
	err = qhca_pool_vma(uc, start, length, ib_access_writable(access),
			    &pgoff);
	if (err == -ENOENT)
		return NULL;

	mutex_lock(&uc->pool_lock);
	list_for_each_entry(buf, &uc->pool_bufs, entry) {
		first = buf->mmap.rdma_entry.start_pgoff;
		if (pgoff < first ||
		    pgoff - first >= buf->mmap.rdma_entry.npages)
			continue;
		at = ((u64)(pgoff - first) << PAGE_SHIFT) +
		     offset_in_page(start);
		found = buf;
		break;
	}
	if (!found)
		goto out;
	/* It is always there: it does not fault. */
	if (!err && (access & IB_ACCESS_ON_DEMAND || length > found->length - at))
		err = -EINVAL;
	if (err) {
		found = ERR_PTR(err);
		goto out;
	}
	found->regions++;
	*offset = found->offset + at;
out:
	mutex_unlock(&uc->pool_lock);
	return found;
}

void qhca_pool_put(struct qhca_pool_buf *buf)
{
	mutex_lock(&buf->uc->pool_lock);
	buf->regions--;
	mutex_unlock(&buf->uc->pool_lock);
}

/* ------------------------------------------------------------------------
 * What processes ask for
 */

static int qhca_pool_cleanup(struct ib_uobject *uobject,
			     enum rdma_remove_reason why,
			     struct uverbs_attr_bundle *attrs)
{
	return qhca_pool_buf_release(uobject->object);
}

static int UVERBS_HANDLER(QHCA_IB_METHOD_POOL_ALLOC)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj =
		uverbs_attr_get_uobject(attrs, QHCA_IB_ATTR_POOL_ALLOC_HANDLE);
	struct qhca_ib_dev *dev = to_qhca(attrs->context->device);
	struct qhca_pool_alloc_resp resp = {};
	struct qhca_pool_buf *buf;
	u64 length;
	int err;

	err = uverbs_copy_from(&length, attrs, QHCA_IB_ATTR_POOL_ALLOC_LENGTH);
	if (err)
		return err;
	buf = qhca_pool_buf_alloc(dev, to_quc(attrs->context), length);
	if (IS_ERR(buf))
		return PTR_ERR(buf);

	/*
	 * The answer comes first, because a buffer with regions cannot be taken
	 * back, and another thread that guesses the offset may be quick to
	 * register one.
	 */
	resp.mmap_offset = rdma_user_mmap_get_offset(&buf->mmap.rdma_entry);
	resp.length = buf->length;
	resp.block = buf->block;
	err = uverbs_copy_to(attrs, QHCA_IB_ATTR_POOL_ALLOC_RESP, &resp,
			     sizeof(resp));
	if (err) {
		rdma_user_mmap_entry_remove(&buf->mmap.rdma_entry);
		return err;
	}

	qhca_pool_buf_publish(buf);
	uobj->object = buf;
	uverbs_finalize_uobj_create(attrs, QHCA_IB_ATTR_POOL_ALLOC_HANDLE);
	return 0;
}

static void qhca_pool_largest(struct gen_pool *gen,
			      struct gen_pool_chunk *chunk, void *data)
{
	unsigned long bits = (chunk->end_addr - chunk->start_addr + 1) >>
			     gen->min_alloc_order;
	unsigned long first, end;
	u64 *largest = data;

	for_each_clear_bitrange(first, end, chunk->bits, bits) {
		u64 length = (u64)(end - first) << gen->min_alloc_order;

		*largest = max(*largest, length);
	}
}

static int UVERBS_HANDLER(QHCA_IB_METHOD_POOL_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_ucontext *ibuc = ib_uverbs_get_ucontext(attrs);
	struct qhca_pool_query_resp resp = {};
	struct qhca_ib_dev *dev;

	if (IS_ERR(ibuc))
		return PTR_ERR(ibuc);

	dev = to_qhca(ibuc->device);
	resp.total = gen_pool_size(dev->pool->gen);
	resp.free = gen_pool_avail(dev->pool->gen);
	gen_pool_for_each_chunk(dev->pool->gen, qhca_pool_largest,
				&resp.largest_free);
	resp.num_blocks = dev->pool->num_blocks;
	resp.page_size = PAGE_SIZE;
	resp.max_keys = dev->qdev->caps.max_pool_keys;
	return uverbs_copy_to(attrs, QHCA_IB_ATTR_POOL_QUERY_RESP, &resp,
			      sizeof(resp));
}

DECLARE_UVERBS_NAMED_METHOD(QHCA_IB_METHOD_POOL_ALLOC,
			    UVERBS_ATTR_IDR(QHCA_IB_ATTR_POOL_ALLOC_HANDLE,
					    QHCA_IB_OBJECT_POOL,
					    UVERBS_ACCESS_NEW,
					    UA_MANDATORY),
			    UVERBS_ATTR_PTR_IN(QHCA_IB_ATTR_POOL_ALLOC_LENGTH,
					       UVERBS_ATTR_TYPE(u64),
					       UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(QHCA_IB_ATTR_POOL_ALLOC_RESP,
						UVERBS_ATTR_STRUCT(struct qhca_pool_alloc_resp,
								   reserved),
						UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD_DESTROY(QHCA_IB_METHOD_POOL_FREE,
				    UVERBS_ATTR_IDR(QHCA_IB_ATTR_POOL_FREE_HANDLE,
						    QHCA_IB_OBJECT_POOL,
						    UVERBS_ACCESS_DESTROY,
						    UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(QHCA_IB_METHOD_POOL_QUERY,
			    UVERBS_ATTR_PTR_OUT(QHCA_IB_ATTR_POOL_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct qhca_pool_query_resp,
								   reserved),
						UA_MANDATORY));

DECLARE_UVERBS_NAMED_OBJECT(QHCA_IB_OBJECT_POOL,
			    UVERBS_TYPE_ALLOC_IDR(qhca_pool_cleanup),
			    &UVERBS_METHOD(QHCA_IB_METHOD_POOL_ALLOC),
			    &UVERBS_METHOD(QHCA_IB_METHOD_POOL_FREE),
			    &UVERBS_METHOD(QHCA_IB_METHOD_POOL_QUERY));

static bool qhca_pool_is_supported(struct ib_device *ibdev)
{
	return to_qhca(ibdev)->pool;
}

const struct uapi_definition qhca_pool_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE_NAMED(QHCA_IB_OBJECT_POOL,
				      UAPI_DEF_IS_OBJ_SUPPORTED(qhca_pool_is_supported)),
	{}
};
