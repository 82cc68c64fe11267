// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Buffers of the memory pool, which processes own.
 *
 * A buffer belongs to the context that allocated it.  It is given back when
 * its object has been destroyed, which the last of its regions prevents, and
 * nobody maps it any more.  It is cleared when it is given out, at the cost of
 * who asks for it, and not when it is given back, which may be in munmap() or
 * at the end of a process.
 * Destroying a region invalidates its key and waits for the device, so there is
 * no access left by then.  What the kernel does at a process's end is the same.
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
