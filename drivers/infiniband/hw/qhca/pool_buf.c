// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Buffers of the memory pool, which processes own.
 *
 * A buffer belongs to the context that allocated it.  It is freed when its
 * object has been destroyed and no process maps it any more.  The object cannot
 * be destroyed while regions are registered on the buffer.  Deregistration
 * invalidates the key and waits for the device, so the device makes no access
 * to a buffer that is freed.  The same happens when a process ends.
 *
 * A buffer is cleared when it is allocated, at the expense of the process that
 * asks for it.  It is not cleared when it is freed, which may happen in
 * munmap() or at the end of a process.
 */
#include <linux/bitmap.h>
#include <linux/genalloc.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <rdma/uverbs_std_types.h>

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

#include "pool.h"

/*
 * Called when no process maps the buffer any more and its object is destroyed,
 * possibly from munmap().
 */
void qhca_pool_buf_free(struct qhca_ib_dev *dev, struct qhca_pool_buf *buf)
{
	gen_pool_free(dev->pool->gen, (unsigned long)buf->addr, buf->length);
	kfree(buf);
}

/* Clear memory; -EINTR if the process is being killed meanwhile. */
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

/* When this returns, regions may be registered on the buffer. */
static void qhca_pool_buf_publish(struct qhca_pool_buf *buf)
{
	struct qhca_ucontext *uc = buf->uc;

	mutex_lock(&uc->pool_lock);
	list_add(&buf->entry, &uc->pool_bufs);
	mutex_unlock(&uc->pool_lock);
}

/* Fails with -EBUSY while regions are registered; the core then tries again. */
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
 * Find what a range of the process maps, as a page offset in the file of its
 * context.  Returns -ENOENT if @start is not a mapping of that file, -EINVAL if
 * only a part of the range is, and -EACCES if the process itself may not write
 * there.
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
 * Return: the buffer, with one more use, to be dropped by qhca_pool_put(); NULL
 * if @start is not memory of the pool; -EINVAL if the range exceeds the buffer
 * or may not be registered with @access.
 */
struct qhca_pool_buf *qhca_pool_get(struct ib_pd *ibpd, u64 start, u64 length,
				    int access, u64 *offset)
{
	struct qhca_pool_buf *buf, *found = NULL;
	struct qhca_ucontext *uc;
	unsigned long pgoff, first;
	u64 at = 0;
	int err;

	/*
	 * Some callers in the core have no udata that would name the context.
	 */
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
	/* Memory of the pool is always present, so it cannot be on demand. */
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
 * Methods for processes
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
	 * The answer is written before the buffer is published.  Another thread
	 * may guess the offset and register a region at once, and a buffer with
	 * regions could not be freed if writing the answer failed.
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
