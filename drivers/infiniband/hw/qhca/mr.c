// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions.
 *
 * A region is an entry of the protection table and a translation tree, both in
 * memory that the driver writes.  Registration takes no command, because the
 * device caches no key that it has not found valid.  Deregistration takes a
 * command, after which the device has neither a copy of the entry nor an access
 * under way.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "mem.h"

#define QHCA_IB_ACCESS							\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
	 IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_HUGETLB |	\
	 IB_ACCESS_FLUSH_GLOBAL | IB_ACCESS_OPTIONAL)

/*
 * Relaxed ordering and huge pages are hints, which the driver may ignore.  No
 * region supports flushing for persistence, because a guest cannot know whether
 * its memory is persistent.
 */
int qhca_check_access(struct qhca_ib_dev *dev, int access)
{
	if (access & ~QHCA_IB_ACCESS)
		return -EOPNOTSUPP;
	if (access & IB_ACCESS_FLUSH_GLOBAL && !qhca_has(dev, QHCA_FEAT_FLUSH))
		return -EOPNOTSUPP;
	return 0;
}

/* ------------------------------------------------------------------------
 * Regions of pinned memory
 */

/*
 * The device counts how often this happens.  The driver logs it once, for a
 * user who wonders why pool memory is looked up in the protection cache.
 */
static void qhca_mr_bank_full(struct qhca_ib_dev *dev)
{
	if (xchg(&dev->bank_full, true))
		return;
	dev_warn(qhca_dma_dev(dev),
		 "memory pool: the device's bank of %u keys is full; further regions and windows use the protection cache\n",
		 dev->qdev->caps.max_pool_keys);
}

/*
 * Have the device keep a pool-direct entry on chip.  The bank may be full; then
 * the region works all the same, only slower.
 */
static void qhca_mr_pin(struct qhca_ib_dev *dev, struct qhca_mr *mr)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_MAP_POOL_KEY,
		.index = mr->index,
	};
	int err;

	wmb(); /* The entry before the command. */
	err = qhca_cmd_exec(dev->qdev, &cmd);
	if (err == -ENOSPC)
		qhca_mr_bank_full(dev);
	else if (err && !qhca_is_dead(dev))
		ibdev_warn(&dev->ibdev, "pool key %#x not kept on chip: %d\n",
			   mr->ibmr.lkey, err);
}

/*
 * End the region's key as qhca_key_end_region() does.  Where that finds that a
 * window has just been bound, the region lives on; but the invalidation has
 * taken its key out of the device's bank, so it is put there again.
 */
static int qhca_mr_end_key(struct qhca_ib_dev *dev, struct qhca_mr *mr,
			   bool force)
{
	int err = qhca_key_end_region(dev, mr->index, force);

	if (err == -EBUSY && mr->pool)
		qhca_mr_pin(dev, mr);
	return err;
}

static void qhca_mr_publish_pool(struct qhca_ib_dev *dev, struct qhca_mr *mr,
				 u32 pdn, u64 virt, u64 length)
{
	struct qhca_pte pte = {
		.access = cpu_to_le32(qhca_hw_access(mr->access)),
		.pd = cpu_to_le32(pdn),
		.start = cpu_to_le64(mr->access & IB_ZERO_BASED ? 0 : virt),
		.length = cpu_to_le64(length),
		.at_base = cpu_to_le64(mr->offset),
		.pool_block = cpu_to_le32(mr->pool->block),
	};

	qhca_key_publish(dev, mr->index, &pte,
			 QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			 QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_POOL) |
			 QHCA_PUT(QHCA_PTE_OCTET,
				  QHCA_KEY_OCTET(mr->ibmr.lkey)));
	qhca_mr_pin(dev, mr);
}

static void qhca_mr_publish(struct qhca_ib_dev *dev, struct qhca_mr *mr,
			    u32 pdn, u64 virt, u64 length)
{
	u64 page_mask = BIT_ULL(mr->at.page_shift) - 1;
	struct qhca_pte pte = {
		.access = cpu_to_le32(qhca_hw_access(mr->access)),
		.pd = cpu_to_le32(pdn),
		.start = cpu_to_le64(mr->access & IB_ZERO_BASED ? 0 : virt),
		.length = cpu_to_le64(length),
		.at_base = cpu_to_le64(mr->at.base),
		.at_offset = cpu_to_le64(virt & page_mask),
	};

	qhca_key_publish(dev, mr->index, &pte,
			 QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			 QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_MR) |
			 QHCA_PUT(QHCA_PTE_OCTET,
				  QHCA_KEY_OCTET(mr->ibmr.lkey)) |
			 QHCA_PUT(QHCA_PTE_PAGE_SHIFT, mr->at.page_shift) |
			 QHCA_PUT(QHCA_PTE_LEVELS, mr->at.levels));
}

/*
 * Regions always have a tree, even where their memory is contiguous: they are
 * what the translation cache is for, and users of the device study its
 * counters.
 */
static int qhca_mr_translate(struct qhca_ib_dev *dev, struct qhca_at *at,
			     struct ib_umem *umem, u64 virt)
{
	unsigned long pgsz;

	pgsz = ib_umem_find_best_pgsz(umem, dev->qdev->caps.page_sizes, virt);
	if (!pgsz)
		return -EINVAL;
	return qhca_at_build(dev, at, umem, pgsz, false);
}

static int qhca_check_range(struct qhca_ib_dev *dev, u64 virt, u64 length)
{
	u64 last;

	if (length > dev->qdev->caps.max_mr_size ||
	    (length && check_add_overflow(virt, length - 1, &last)))
		return -EINVAL;
	return 0;
}

/*
 * A region without bytes has no memory and no tree.  Its keys are good for
 * accesses of length 0 alone.
 */
static void qhca_mr_no_memory(struct qhca_at *at)
{
	at->page_shift = PAGE_SHIFT;
}

/*
 * Only one of the core's functions that register memory sets these fields.  All
 * of the core's queries rely on them, and so does a change of the region that
 * keeps its memory.
 */
static void qhca_mr_set_range(struct qhca_mr *mr, u64 virt, u64 length)
{
	mr->ibmr.iova = virt;
	mr->ibmr.length = length;
}

/* Allocate a region with a key, which the device does not know yet. */
struct qhca_mr *qhca_mr_alloc(struct qhca_ib_dev *dev, int access)
{
	struct qhca_mr *mr;
	int err;

	mr = kzalloc_obj(*mr, GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);

	err = qhca_key_alloc(dev, &mr->index, &mr->ibmr.lkey);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	spin_lock_init(&mr->lock);
	mr->access = access;
	mr->ibmr.rkey = mr->ibmr.lkey;
	return mr;
}

void qhca_mr_free(struct qhca_ib_dev *dev, struct qhca_mr *mr)
{
	qhca_index_free(dev->qdev, QHCA_TABLE_PT, mr->index);
	kfree(mr);
}

/* If this succeeds, the region owns @umem, which is NULL for no memory. */
static struct ib_mr *qhca_mr_create(struct ib_pd *ibpd, struct ib_umem *umem,
				    u64 virt, u64 length, int access)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	struct qhca_mr *mr;
	int err = 0;

	mr = qhca_mr_alloc(dev, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);

	if (umem)
		err = qhca_mr_translate(dev, &mr->at, umem, virt);
	else
		qhca_mr_no_memory(&mr->at);
	if (err) {
		qhca_mr_free(dev, mr);
		return ERR_PTR(err);
	}
	mr->umem = umem;
	mr->ibmr.page_size = BIT(mr->at.page_shift);
	qhca_mr_set_range(mr, virt, length);
	qhca_mr_publish(dev, mr, to_qpd(ibpd)->pdn, virt, length);
	return &mr->ibmr;
}

/* If this succeeds, the region owns the caller's use of @buf. */
static struct ib_mr *qhca_mr_create_pool(struct ib_pd *ibpd,
					 struct qhca_pool_buf *buf, u64 offset,
					 u64 virt, u64 length, int access)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	struct qhca_mr *mr;

	mr = qhca_mr_alloc(dev, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);

	mr->pool = buf;
	mr->offset = offset;
	mr->ibmr.page_size = PAGE_SIZE;
	qhca_mr_set_range(mr, virt, length);
	qhca_mr_publish_pool(dev, mr, to_qpd(ibpd)->pdn, virt, length);
	return &mr->ibmr;
}

struct ib_mr *qhca_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
			       u64 virt, int access, QHCA_DMAH_PARAM
			       struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	struct ib_umem *umem;
	struct qhca_pool_buf *buf;
	struct ib_mr *ibmr;
	u64 offset;
	int err;

	if (QHCA_DMAH_GIVEN)
		return ERR_PTR(-EOPNOTSUPP);
	err = ib_no_udata_io(udata);
	if (!err)
		err = qhca_check_access(dev, access & ~IB_ACCESS_ON_DEMAND);
	if (!err && qhca_odp_is_implicit(start, length, access))
		return qhca_odp_reg_mr(ibpd, start, length, virt, access);
	if (!err)
		err = qhca_check_range(dev, virt, length);
	if (err)
		return ERR_PTR(err);
	if (!length)
		return qhca_mr_create(ibpd, NULL, virt, 0, access);

	buf = qhca_pool_get(ibpd, start, length, access, &offset);
	if (IS_ERR(buf))
		return ERR_CAST(buf);
	if (buf) {
		ibmr = qhca_mr_create_pool(ibpd, buf, offset, virt, length,
					   access);
		if (IS_ERR(ibmr))
			qhca_pool_put(buf);
		return ibmr;
	}
	if (access & IB_ACCESS_ON_DEMAND)
		return qhca_odp_reg_mr(ibpd, start, length, virt, access);

	umem = qhca_umem_get(dev, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);

	ibmr = qhca_mr_create(ibpd, umem, virt, length, access);
	if (IS_ERR(ibmr))
		ib_umem_release(umem);
	return ibmr;
}

struct ib_mr *qhca_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
				      u64 length, u64 virt, int fd,
				      int access, QHCA_DMAH_PARAM
				      struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	struct ib_umem_dmabuf *umem_dmabuf;
	struct ib_mr *ibmr;
	int err;

	if (QHCA_DMAH_GIVEN)
		return ERR_PTR(-EOPNOTSUPP);
	err = qhca_check_access(dev, access);
	if (!err)
		err = length ? qhca_check_range(dev, virt, length) : -EINVAL;
	if (!err)
		err = qhca_umem_may_pin(dev);
	if (err)
		return ERR_PTR(err);

	umem_dmabuf = ib_umem_dmabuf_get_pinned(&dev->ibdev, offset, length,
						fd, access);
	if (IS_ERR(umem_dmabuf))
		return ERR_CAST(umem_dmabuf);

	ibmr = qhca_mr_create(ibpd, &umem_dmabuf->umem, virt, length, access);
	if (IS_ERR(ibmr))
		ib_umem_release(&umem_dmabuf->umem);
	return ibmr;
}

/*
 * The parts of a region that a change may replace.  They are made before the
 * old ones are ended.
 */
struct qhca_rereg {
	struct ib_umem *umem;
	struct qhca_pool_buf *pool;
	u64 offset;
	struct qhca_at at;
	u64 virt;
	u64 length;
	int access;
	bool new_memory;
};

static int qhca_rereg_pin(struct qhca_ib_dev *dev, struct ib_pd *ibpd,
			  struct qhca_rereg *re, u64 start)
{
	int err;

	err = qhca_check_range(dev, re->virt, re->length);
	if (err)
		return err;
	if (!re->length) {
		qhca_mr_no_memory(&re->at);
		re->new_memory = true;
		return 0;
	}

	re->pool = qhca_pool_get(ibpd, start, re->length, re->access,
				 &re->offset);
	if (IS_ERR(re->pool))
		return PTR_ERR(re->pool);
	if (re->pool) {
		re->new_memory = true;
		return 0;
	}

	re->umem = qhca_umem_get(dev, start, re->length, re->access);
	if (IS_ERR(re->umem))
		return PTR_ERR(re->umem);

	err = qhca_mr_translate(dev, &re->at, re->umem, re->virt);
	if (err)
		ib_umem_release(re->umem);
	else
		re->new_memory = true;
	return err;
}

static int qhca_rereg_prepare(struct qhca_ib_dev *dev, struct qhca_mr *mr,
			      struct ib_pd *ibpd, struct qhca_rereg *re,
			      int flags, u64 start)
{
	if (flags & IB_MR_REREG_TRANS)
		return qhca_rereg_pin(dev, ibpd, re, start);
	if (mr->pool || !mr->umem)
		return 0;

	/*
	 * Pages that were pinned for reading have to be pinned anew for
	 * writing.
	 */
	if (mr->umem->writable || !ib_access_writable(re->access))
		return 0;
	if (mr->umem->is_dmabuf || mr->umem->owning_mm != current->mm)
		return -EOPNOTSUPP;
	return qhca_rereg_pin(dev, ibpd, re, mr->umem->address);
}

static void qhca_rereg_drop(struct qhca_ib_dev *dev, struct qhca_rereg *re)
{
	if (!re->new_memory)
		return;
	if (re->pool) {
		qhca_pool_put(re->pool);
		return;
	}
	qhca_at_free(dev, &re->at);
	ib_umem_release(re->umem);
}

/* The region is changed in place and keeps its keys. */
struct ib_mr *qhca_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				 u64 length, u64 virt, int access,
				 struct ib_pd *pd, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibmr->device);
	struct qhca_mr *mr = to_qmr(ibmr);
	struct qhca_rereg re = {
		.virt = flags & IB_MR_REREG_TRANS ? virt : ibmr->iova,
		.length = flags & IB_MR_REREG_TRANS ? length : ibmr->length,
		.access = flags & IB_MR_REREG_ACCESS ? access : mr->access,
	};
	int err;

	err = ib_no_udata_io(udata);
	if (!err)
		err = qhca_check_access(dev, re.access);
	/* Pinned memory and memory on demand cannot replace each other. */
	if (!err && mr->odp)
		err = -EOPNOTSUPP;
	if (!err)
		err = qhca_rereg_prepare(dev, mr, pd, &re, flags, start);
	if (err)
		return ERR_PTR(err);

	err = qhca_mr_end_key(dev, mr, false);
	if (err) {
		qhca_rereg_drop(dev, &re);
		return ERR_PTR(err);
	}

	/*
	 * Whoever reads the region meanwhile must not find the old, freed
	 * buffer.
	 */
	spin_lock(&mr->lock);
	if (re.new_memory) {
		swap(mr->umem, re.umem);
		swap(mr->pool, re.pool);
		swap(mr->offset, re.offset);
		swap(mr->at, re.at);
		ibmr->page_size = mr->pool ? PAGE_SIZE :
					     BIT(mr->at.page_shift);
	}
	mr->access = re.access;
	qhca_mr_set_range(mr, re.virt, re.length);
	spin_unlock(&mr->lock);
	if (mr->pool)
		qhca_mr_publish_pool(dev, mr, to_qpd(pd)->pdn, re.virt,
				     re.length);
	else
		qhca_mr_publish(dev, mr, to_qpd(pd)->pdn, re.virt, re.length);
	qhca_rereg_drop(dev, &re);
	return NULL;
}

/*
 * Deregistration fails only while memory windows are bound to the region.  It
 * must not fail when the core undoes a registration, because the core ignores
 * errors there; yet another thread may have guessed the key and bound a
 * window.  The object of such a region is in no list yet.
 */
int qhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibmr->device);
	struct qhca_mr *mr = to_qmr(ibmr);
	/*
	 * A kernel consumer's region has no uobject, but other data in its
	 * place.
	 */
	bool undo = ibmr->pd->uobject && list_empty(&ibmr->uobject->list);
	int err;

	err = qhca_mr_end_key(dev, mr, undo);
	if (err)
		return err;

	if (mr->odp)
		qhca_odp_dereg_mr(dev, mr);
	qhca_at_free(dev, &mr->at);
	qhca_page_list_free(dev, mr);
	if (mr->umem)
		ib_umem_release(mr->umem);
	if (mr->pool)
		qhca_pool_put(mr->pool);
	qhca_mr_free(dev, mr);
	return 0;
}

/* ------------------------------------------------------------------------
 * Regions of device memory
 */

/* The core has checked the range, and always asks for zero-based access. */
struct ib_mr *qhca_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
			     struct ib_dm_mr_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	struct qhca_pte pte = {
		.access = cpu_to_le32(qhca_hw_access(attr->access_flags)),
		.pd = cpu_to_le32(to_qpd(ibpd)->pdn),
		.length = cpu_to_le64(attr->length),
	};
	struct qhca_mr *mr;
	int err;

	/* Windows cannot be bound to device memory. */
	if (attr->access_flags & IB_ACCESS_MW_BIND)
		return ERR_PTR(-EOPNOTSUPP);
	err = qhca_check_access(dev, attr->access_flags);
	if (err)
		return ERR_PTR(err);

	mr = qhca_mr_alloc(dev, attr->access_flags);
	if (IS_ERR(mr))
		return ERR_CAST(mr);

	mr->offset = to_qdm(ibdm)->buf->mmap.addr - dev->qdev->devmem_phys +
		     attr->offset;
	qhca_mr_set_range(mr, 0, attr->length);
	pte.at_base = cpu_to_le64(mr->offset);
	qhca_key_publish(dev, mr->index, &pte,
			 QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			 QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_DEVMEM) |
			 QHCA_PUT(QHCA_PTE_OCTET,
				  QHCA_KEY_OCTET(mr->ibmr.lkey)));
	return &mr->ibmr;
}
