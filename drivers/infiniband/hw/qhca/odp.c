// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions on demand: their entries, and how pages come and go.
 *
 * A small region of this kind has a whole translation tree of entries that are
 * not present.  A large one, and an implicit one, which is all of a process's
 * memory, has as much of its tree as is in use, see odp_implicit.c: what a
 * process may ask for is far more than what it has.
 * The device tells of an access that meets one, and lets that direction of the
 * QP wait; a work item pages in what is wanted, fills in the entries and lets
 * it go on, see odp_fault.c.  When the system takes pages away the notifier
 * clears the entries, and has the device drop its copies and finish its
 * accesses, before the pages are unmapped.
 *
 * What heals the races:
 *
 * - An invalidation while pages are brought in: ib_umem_odp_map_dma_and_lock()
 *   tries again until none came between, and returns with @umem_mutex held,
 *   which the notifier takes too.  Entries are filled in under it.
 * - A page that goes again before the device has used it: the access faults
 *   again, by another token.
 * - A region that goes in mid-fault: its key is ended first, then the access is
 *   tried again, without its page, and is a protection error; then the tree is
 *   taken from the fault, under @umem_mutex.
 * - A QP that goes in mid-fault: the device knows the token no more.
 *
 * No lock is held while pages are brought in.  @umem_mutex is taken in reclaim,
 * so nothing under it allocates, and neither does a command.
 *
 * Nor does anything wait for a page but the fault itself: it may come when it
 * likes, or never as long as a process lives that has the memory mapped, and
 * nothing interrupts who waits.  So neither the end of a region nor that of a
 * QP waits for faults under way.  What these use then, the umem and the QP's
 * &struct qhca_faults, goes with the last of them.
 */
#include <linux/dma-mapping.h>
#include <linux/hmm.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <net/netlink.h>

#include "odp.h"

#define QHCA_ODP_ACCESS							\
	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |		\
	 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |		\
	 IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_ON_DEMAND |	\
	 IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

/*
 * Pages of a region that is watched as one piece: 64 MiB, whose entries are
 * looked through at once when pages are taken away.
 */
#define QHCA_ODP_WHOLE		16384

/* Neighbours that a fault maps with what it brings in. */
#define QHCA_ODP_AROUND		16

/* ------------------------------------------------------------------------
 * Entries
 */

static struct qhca_at_node *qhca_odp_node(struct qhca_at *at, size_t page)
{
	return at->num_nodes == 1 ? &at->one : &at->many[page >> QHCA_AT_BITS];
}

/* The device is to see entries [@first, @first + @num) as they are now. */
static void qhca_odp_sync(struct qhca_stretch *s, size_t first, size_t num)
{
	struct qhca_at *at = s->at;

	while (num) {
		struct qhca_at_node *node = qhca_odp_node(at, first);
		size_t i = first & (BIT(QHCA_AT_BITS) - 1);
		size_t n = min(num, BIT(QHCA_AT_BITS) - i);

		dma_sync_single_range_for_device(qhca_dma_dev(s->odp->dev),
						 node->dma,
						 i * sizeof(*node->ent),
						 n * sizeof(*node->ent),
						 at->dir);
		first += n;
		num -= n;
	}
}

static __le64 *qhca_odp_entry(struct qhca_stretch *s, size_t page)
{
	return &qhca_odp_node(s->at, page)
			->ent[page & (BIT(QHCA_AT_BITS) - 1)];
}

/* Returns how many of the pages the device could have used. */
static size_t qhca_odp_clear(struct qhca_stretch *s, size_t first, size_t num)
{
	size_t i, present = 0;

	for (i = first; i < first + num; i++) {
		__le64 *entry = qhca_odp_entry(s, i);

		if (!(i & (BIT(QHCA_AT_BITS) - 1)))
			cond_resched();
		if (!*entry)
			continue;
		WRITE_ONCE(*entry, 0);
		present++;
	}
	if (present)
		qhca_odp_sync(s, first, num);
	return present;
}

/* Fill in what is mapped of [@first, @first + @num), and return how many. */
static int qhca_odp_fill(struct qhca_stretch *s, size_t first, size_t num)
{
	int present = 0;
	size_t i;

	lockdep_assert_held(&s->umem->umem_mutex);
	for (i = first; i < first + num; i++) {
		dma_addr_t addr;
		bool write;
		int ret;

		ret = qhca_compat_odp_page(s->umem, i, &addr, &write);
		if (ret < 0)
			return ret;
		if (!ret)
			continue;
		WRITE_ONCE(*qhca_odp_entry(s, i),
			   cpu_to_le64(addr | QHCA_ATE_PRESENT |
				       (write ? QHCA_ATE_WRITE : 0)));
		present++;
	}
	qhca_odp_sync(s, first, num);
	return present;
}

/* ------------------------------------------------------------------------
 * Taking pages away
 */

/**
 * qhca_odp_invalidate_hw - have the device let go of pages
 * @odp:    a region
 * @offset: byte of its translated space, at a page
 * @length: bytes, whole pages
 *
 * The device drops its copies of their translations, and finishes all accesses
 * that have begun.  Afterwards it has, or the function is dead.
 */
void qhca_odp_invalidate_hw(struct qhca_odp *odp, u64 offset, u64 length)
{
	u64 start = offset > odp->skip ? offset - odp->skip : 0;
	struct qhca_range range = {
		/* Counted from the region's first byte. */
		.start = cpu_to_le64(start),
		.length = cpu_to_le64(offset + length - odp->skip - start),
	};
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_INVALIDATE_RANGE,
		.index = odp->mr->index,
		.in = &range,
		.in_len = sizeof(range),
	};

	/* The entries before the command. */
	wmb();
	qhca_refused(odp->dev, cmd.opcode, cmd.index,
		     qhca_cmd_exec(odp->dev->qdev, &cmd));
}

static bool qhca_odp_invalidate(struct mmu_interval_notifier *mni,
				const struct mmu_notifier_range *range,
				unsigned long cur_seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp,
						notifier);
	unsigned long start, end;
	size_t first, num, gone;
	struct qhca_stretch *s;

	if (!mmu_notifier_range_blockable(range))
		return false;

	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(mni, cur_seq);
	start = max(ib_umem_start(umem), range->start);
	end = min(ib_umem_end(umem), range->end);
	s = umem->private;
	if (s && start < end) {
		first = (start - ib_umem_start(umem)) >> PAGE_SHIFT;
		num = (end - start) >> PAGE_SHIFT;
		gone = qhca_odp_clear(s, first, num);
		if (gone) {
			atomic64_add(gone, &s->odp->invalidations);
			qhca_odp_invalidate_hw(s->odp, s->offset +
					       ((u64)first << PAGE_SHIFT),
					       (u64)num << PAGE_SHIFT);
		}
	}
	ib_umem_odp_unmap_dma_pages(umem, start, end);
	if (s && s->odp->root && !umem->npages)
		qhca_implicit_idle(s);
	mutex_unlock(&umem->umem_mutex);
	return true;
}

const struct mmu_interval_notifier_ops qhca_odp_notifier_ops = {
	.invalidate = qhca_odp_invalidate,
};

/* ------------------------------------------------------------------------
 * Bringing pages in
 */

/*
 * Pages [@first, @first + @num) of a stretch, paged in if need be.  Returns how
 * many are mapped now; -ESTALE: the stretch has been given back, or the region
 * is gone.
 *
 * The core gives up when invalidations have come between for a second.  For an
 * access that is no reason to fail.
 */
static int qhca_stretch_page_in(struct qhca_stretch *s, size_t first,
				size_t num, bool write)
{
	struct ib_umem_odp *umem = s->umem;
	u64 start = ib_umem_start(umem) + ((u64)first << PAGE_SHIFT);
	u64 length = (u64)num << PAGE_SHIFT;
	int ret;

	do {
		ret = ib_umem_odp_map_dma_and_lock(umem, start, length,
						   qhca_compat_odp_mask(write),
						   true);
	} while (ret == -EBUSY && !READ_ONCE(s->odp->closing));
	if (ret < 0)
		return ret;
	if (umem->private) {
		ret = qhca_odp_fill(s, first, min_t(size_t, ret, num));
	} else {
		ib_umem_odp_unmap_dma_pages(umem, start, start + length);
		ret = -ESTALE;
	}
	mutex_unlock(&umem->umem_mutex);
	return ret;
}

/*
 * What is in memory of at most QHCA_ODP_AROUND pages: into @pfns, HMM_PFN_*.
 * false: that cannot be told now.
 */
static bool qhca_stretch_look(struct qhca_stretch *s, size_t first, size_t num,
			      unsigned long *pfns)
{
	struct ib_umem_odp *umem = s->umem;
	struct mm_struct *mm = umem->umem.owning_mm;
	struct hmm_range range = {
		.notifier = &umem->notifier,
		.start = ib_umem_start(umem) + (first << PAGE_SHIFT),
		.end = ib_umem_start(umem) + ((first + num) << PAGE_SHIFT),
		.hmm_pfns = pfns,
	};
	int err;

	if (!mmget_not_zero(mm))
		return false;
	memset(pfns, 0, num * sizeof(*pfns));
	range.notifier_seq = mmu_interval_read_begin(range.notifier);
	mmap_read_lock(mm);
	err = hmm_range_fault(&range);
	mmap_read_unlock(mm);
	mmput_async(mm);
	return !err;
}

/*
 * As qhca_stretch_page_in(), what of the pages is in memory already.  They are
 * looked for in a list of our own, and those found paged in as others are: the
 * core can do without bringing pages in, but puts what it finds into the
 * region's list before it takes @umem_mutex, over what another fault has put
 * there meanwhile.
 */
static int qhca_stretch_map(struct qhca_stretch *s, size_t first, size_t num)
{
	const unsigned long want = HMM_PFN_VALID | HMM_PFN_WRITE;
	unsigned long pfns[QHCA_ODP_AROUND];
	size_t chunk, i, n;
	int total = 0;

	for (; num; first += chunk, num -= chunk) {
		chunk = min_t(size_t, num, ARRAY_SIZE(pfns));
		if (!qhca_stretch_look(s, first, chunk, pfns))
			continue;
		for (i = 0; i < chunk; i += n) {
			bool write = pfns[i] & HMM_PFN_WRITE &&
				     s->odp->writable;
			int ret;

			for (n = 1; i + n < chunk; n++)
				if ((pfns[i] ^ pfns[i + n]) & want)
					break;
			if (!(pfns[i] & HMM_PFN_VALID))
				continue;
			ret = qhca_stretch_page_in(s, first + i, n, write);
			if (ret < 0)
				return ret;
			total += ret;
		}
	}
	return total;
}

/* Pages of one stretch of an implicit region. */
static int qhca_implicit_map(struct qhca_odp *odp, u64 first, size_t num,
			     bool write, bool fault)
{
	struct qhca_stretch *s;
	size_t at;
	int ret;

	do {
		s = qhca_implicit_get(odp, first);
		if (IS_ERR(s))
			return PTR_ERR(s);
		at = first & (QHCA_STRETCH_PAGES - 1);
		ret = fault ? qhca_stretch_page_in(s, at, num, write) :
			      qhca_stretch_map(s, at, num);
		/* It may have been made in vain. */
		if (ret <= 0) {
			mutex_lock(&s->umem->umem_mutex);
			if (!s->umem->npages)
				qhca_implicit_idle(s);
			mutex_unlock(&s->umem->umem_mutex);
		}
		qhca_stretch_put(s);
	} while (ret == -ESTALE);
	return ret;
}

/**
 * qhca_odp_map - have pages for the device
 * @odp:   a region, with a reference
 * @first: page of its translated space
 * @num:   that many of them, all in that space
 * @write: the device is to write to them
 * @fault: paged in if need be, else what of them is in memory
 *
 * Returns how many are mapped now, or the error of the first that cannot be had.
 * Sleeps, as long as a page takes.
 */
int qhca_odp_map(struct qhca_odp *odp, u64 first, size_t num, bool write,
		 bool fault)
{
	int ret, total = 0;
	size_t n;

	if (!odp->root && fault)
		return qhca_stretch_page_in(&odp->all, first, num, write);
	if (!odp->root)
		return qhca_stretch_map(&odp->all, first, num);
	for (; num; first += n, num -= n) {
		n = min_t(size_t, num, QHCA_STRETCH_PAGES -
			  (first & (QHCA_STRETCH_PAGES - 1)));
		ret = qhca_implicit_map(odp, first, n, write, fault);
		if (ret < 0)
			return ret;
		total += ret;
	}
	return total;
}

/*
 * Page in @num pages from @first on.  What cannot be had behind the first page
 * is no error: it faults by itself if the device gets there.
 */
static int qhca_odp_page_in(struct qhca_odp *odp, u64 first, size_t num,
			    bool write)
{
	int ret;

	ret = qhca_odp_map(odp, first, num, write, true);
	if (ret < 0 && num > 1)
		ret = qhca_odp_map(odp, first, 1, write, true);
	return ret;
}

/**
 * qhca_odp_fault - bring in what the device misses
 * @odp:    a region, with a reference
 * @offset: byte of its translated space that was missed
 * @len:    bytes that the access wants from there on
 * @write:  it writes
 *
 * 0: the first page is there.  Sleeps, as long as a page takes.
 */
int qhca_odp_fault(struct qhca_odp *odp, u64 offset, u64 len, bool write)
{
	u64 pages = odp->pages, first, next;
	size_t num;
	int ret;

	if (offset >= pages << PAGE_SHIFT)
		return -EFAULT;
	first = offset >> PAGE_SHIFT;
	len = min(len, (pages << PAGE_SHIFT) - offset);
	num = clamp_t(u64, DIV_ROUND_UP((offset & ~PAGE_MASK) + len, PAGE_SIZE),
		      1, QHCA_ODP_BATCH);

	ret = qhca_odp_page_in(odp, first, num, write);
	if (ret < 0)
		return ret;
	atomic64_add(ret, &odp->faults);

	/* What is in memory behind it costs little now and a fault later. */
	next = first + num;
	num = min_t(u64, pages - next, QHCA_ODP_AROUND);
	if (odp->root)	/* but is not worth another stretch */
		num = min_t(size_t, num, -next & (QHCA_STRETCH_PAGES - 1));
	if (num)
		qhca_odp_map(odp, next, num, write, false);
	return 0;
}

/* ------------------------------------------------------------------------
 * Regions
 */

/**
 * qhca_odp_get - the region on demand of a key's index
 * @dev:   the device
 * @index: any
 * @fault: NULL, or from now on among those of the region, see
 *         qhca_odp_end_faults()
 *
 * Returns it with a reference, see qhca_odp_put(), or NULL.
 */
struct qhca_odp *qhca_odp_get(struct qhca_ib_dev *dev, u32 index,
			      struct qhca_fault *fault)
{
	struct qhca_odp *odp;

	xa_lock(&dev->odps);
	odp = xa_load(&dev->odps, index);
	if (odp) {
		refcount_inc(&odp->ref);
		if (fault)
			list_add_tail(&fault->entry, &odp->served);
	}
	xa_unlock(&dev->odps);
	return odp;
}

/**
 * qhca_odp_put - give up a reference
 * @odp: the region; the last has its memory to let go
 */
void qhca_odp_put(struct qhca_odp *odp)
{
	if (!refcount_dec_and_test(&odp->ref))
		return;
	ib_umem_odp_release(odp->root ? odp->root : odp->all.umem);
	if (odp->mm)
		mmdrop(odp->mm);
	mem_cgroup_put(odp->memcg);
	kfree(odp);
}

static void qhca_odp_publish(struct qhca_mr *mr, u32 pdn, u64 length)
{
	struct qhca_pte pte = {
		.access = cpu_to_le32(qhca_hw_access(mr->access)),
		.pd = cpu_to_le32(pdn),
		.start = cpu_to_le64(mr->odp->start),
		.length = cpu_to_le64(length),
		.at_base = cpu_to_le64(mr->at.base),
		.at_offset = cpu_to_le64(mr->odp->skip),
	};

	qhca_key_publish(mr->odp->dev, mr->index, &pte, QHCA_PTE_ODP |
			 QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			 QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_MR) |
			 QHCA_PUT(QHCA_PTE_OCTET,
				  QHCA_KEY_OCTET(mr->ibmr.lkey)) |
			 QHCA_PUT(QHCA_PTE_PAGE_SHIFT, mr->at.page_shift) |
			 QHCA_PUT(QHCA_PTE_LEVELS, mr->at.levels));
}

/* The memory of a small region, and its whole tree. */
static int qhca_whole_init(struct qhca_odp *odp, u64 start, u64 length,
			   int access)
{
	struct qhca_stretch *s = &odp->all;
	struct ib_umem_odp *umem;
	int err;

	/* Huge pages are translated in parts. */
	umem = ib_umem_odp_get(&odp->dev->ibdev, start, length,
			       access & ~IB_ACCESS_HUGETLB,
			       &qhca_odp_notifier_ops);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = qhca_at_build_blank(odp->dev, &odp->mr->at, odp->pages);
	if (err) {
		ib_umem_odp_release(umem);
		return err;
	}
	s->odp = odp;
	s->umem = umem;
	s->at = &odp->mr->at;
	/* No page is mapped before this, so the notifier misses none. */
	mutex_lock(&umem->umem_mutex);
	umem->private = s;
	mutex_unlock(&umem->umem_mutex);
	return 0;
}

/*
 * Take the tree from faults under way, and free it.  The key has ended, or is
 * not there yet.
 */
static void qhca_odp_end(struct qhca_odp *odp)
{
	struct ib_umem_odp *umem = odp->all.umem;

	WRITE_ONCE(odp->closing, true);
	if (odp->root) {
		qhca_implicit_destroy(odp);
		return;
	}
	mutex_lock(&umem->umem_mutex);
	umem->private = NULL;
	mutex_unlock(&umem->umem_mutex);
	qhca_at_free(odp->dev, &odp->mr->at);
}

static int qhca_odp_init(struct qhca_odp *odp, u64 start, u64 length,
			 int access)
{
	u64 end;

	if (length == U64_MAX) {
		odp->pages = TASK_SIZE >> PAGE_SHIFT;
		return qhca_implicit_init(odp, access);
	}

	if (check_add_overflow(start, length, &end) || PAGE_ALIGN(end) < end)
		return -EOVERFLOW;
	odp->origin = start & PAGE_MASK;
	odp->pages = (PAGE_ALIGN(end) - odp->origin) >> PAGE_SHIFT;
	if (odp->pages > QHCA_ODP_WHOLE &&
	    qhca_has(odp->dev, QHCA_FEAT_ODP_IMPLICIT))
		return qhca_implicit_init(odp, access & ~IB_ACCESS_HUGETLB);
	return qhca_whole_init(odp, start, length, access);
}

static struct qhca_odp *qhca_odp_alloc(struct qhca_ib_dev *dev,
				       struct qhca_mr *mr, u64 start,
				       u64 length, int access)
{
	struct qhca_odp *odp;
	int err;

	odp = kzalloc_obj(*odp, GFP_KERNEL_ACCOUNT);
	if (!odp)
		return ERR_PTR(-ENOMEM);
	odp->dev = dev;
	odp->mr = mr;
	refcount_set(&odp->ref, 1);
	INIT_LIST_HEAD(&odp->served);
	err = qhca_odp_init(odp, start, length, access);
	if (err) {
		kfree(odp);
		return ERR_PTR(err);
	}
	return odp;
}

/* The region's key, by which faults find it. */
static int qhca_odp_add_key(struct qhca_odp *odp)
{
	struct qhca_ib_dev *dev = odp->dev;
	struct qhca_mr *mr = odp->mr;
	int err;

	err = qhca_key_alloc(dev, &mr->index, &mr->ibmr.lkey);
	if (err)
		return err;
	mr->ibmr.rkey = mr->ibmr.lkey;
	mr->ibmr.page_size = PAGE_SIZE;
	odp->lkey = mr->ibmr.lkey;
	err = xa_err(xa_store(&dev->odps, mr->index, odp, GFP_KERNEL));
	if (err)
		qhca_index_free(dev->qdev, QHCA_TABLE_PT, mr->index);
	return err;
}

/* Is this all of a process's memory? */
bool qhca_odp_is_implicit(u64 start, u64 length, int access)
{
	return access & IB_ACCESS_ON_DEMAND && !start && length == U64_MAX;
}

/**
 * qhca_odp_reg_mr - register memory on demand
 * @ibpd:   protection domain
 * @start:  address of the process
 * @length: bytes, checked; or U64_MAX: implicit
 * @virt:   address for the device, the same in a page as @start
 * @access: IB_ACCESS_*, with ON_DEMAND
 *
 * Return: the region, or %-EOPNOTSUPP if the device or the kernel has no such
 * kind, %-EINVAL and %-E2BIG for a range that cannot be, %-ENOMEM.
 */
struct ib_mr *qhca_odp_reg_mr(struct ib_pd *ibpd, u64 start, u64 length,
			      u64 virt, int access)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	bool implicit = qhca_odp_is_implicit(start, length, access);
	struct qhca_odp *odp;
	struct qhca_mr *mr;
	int err;

	if (!qhca_has(dev, QHCA_FEAT_ODP) || access & ~QHCA_ODP_ACCESS)
		return ERR_PTR(-EOPNOTSUPP);
	if (implicit && !qhca_has(dev, QHCA_FEAT_ODP_IMPLICIT))
		return ERR_PTR(-EOPNOTSUPP);
	err = qhca_umem_may_pin(dev);
	if (err)
		return ERR_PTR(err);
	/* Every address is its own. */
	if (implicit && (virt || access & IB_ZERO_BASED))
		return ERR_PTR(-EINVAL);
	if ((start ^ virt) & ~PAGE_MASK)
		return ERR_PTR(-EINVAL);
	if (!implicit &&
	    DIV_ROUND_UP((start & ~PAGE_MASK) + length, PAGE_SIZE) > U32_MAX)
		return ERR_PTR(-E2BIG);

	mr = kzalloc_obj(*mr, GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	spin_lock_init(&mr->lock);
	mr->access = access;
	mr->ibmr.iova = virt;
	mr->ibmr.length = length;
	odp = qhca_odp_alloc(dev, mr, start, length, access);
	if (IS_ERR(odp)) {
		err = PTR_ERR(odp);
		goto err_free;
	}
	mr->odp = odp;
	odp->pd = ibpd;
	odp->start = access & IB_ZERO_BASED ? 0 : virt;
	odp->skip = virt & ~PAGE_MASK;
	odp->length = implicit ? odp->pages << PAGE_SHIFT : length;
	odp->writable = ib_access_writable(access);

	err = qhca_odp_add_key(odp);
	if (err)
		goto err_odp;
	qhca_odp_publish(mr, to_qpd(ibpd)->pdn, odp->length);
	return &mr->ibmr;

err_odp:
	qhca_odp_end(odp);
	qhca_odp_put(odp);
err_free:
	kfree(mr);
	return ERR_PTR(err);
}

/*
 * The key has ended; afterwards the caller frees what is left of the region.
 * The device waits for none of its pages any more.  Faults and prefetches under
 * way have the umem, and its notifier, to the end.
 */
void qhca_odp_dereg_mr(struct qhca_ib_dev *dev, struct qhca_mr *mr)
{
	struct qhca_odp *odp = mr->odp;

	xa_erase(&dev->odps, mr->index);
	qhca_odp_end_faults(odp);
	qhca_odp_end(odp);
	mr->odp = NULL;
	qhca_odp_put(odp);
}

/* ------------------------------------------------------------------------
 * What is told of it
 */

void qhca_odp_caps(struct qhca_ib_dev *dev, struct ib_device_attr *attr)
{
	struct ib_odp_caps *caps = &attr->odp_caps;
	u32 rc = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
		 IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ;

	if (!qhca_has(dev, QHCA_FEAT_ODP) || dev->bounced ||
	    !IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING))
		return;
	if (qhca_has(dev, QHCA_FEAT_SRQ))
		rc |= IB_ODP_SUPPORT_SRQ_RECV;
	if (qhca_has(dev, QHCA_FEAT_ATOMIC))
		rc |= IB_ODP_SUPPORT_ATOMIC;
	attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
	caps->general_caps = IB_ODP_SUPPORT;
	if (qhca_has(dev, QHCA_FEAT_ODP_IMPLICIT))
		caps->general_caps |= IB_ODP_SUPPORT_IMPLICIT;
	caps->per_transport_caps.rc_odp_caps = rc;
	if (qhca_has(dev, QHCA_FEAT_XRC))
		caps->per_transport_caps.xrc_odp_caps = rc;
	/* Unreliable packets that meet a fault are lost: not for targets. */
	caps->per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	caps->per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
}

/**
 * qhca_odp_tables - what a region's translation takes
 * @odp: the region
 * @t:   result
 */
void qhca_odp_tables(struct qhca_odp *odp, struct qhca_odp_tables *t)
{
	/* the core's lists of pages and of their bus addresses */
	const size_t lists = sizeof(unsigned long) + sizeof(dma_addr_t);

	if (odp->root) {
		qhca_implicit_tables(odp, t);
		t->bytes += (u64)t->stretches * QHCA_STRETCH_PAGES * lists;
	} else {
		t->stretches = 1;
		t->nodes = odp->mr->at.num_nodes;
		t->bytes = (u64)odp->pages * (sizeof(__le64) + lists);
	}
}

int qhca_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qhca_odp *odp = to_qmr(ibmr)->odp;
	struct nlattr *nest;

	if (!odp)
		return 0;
	nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!nest)
		return -EMSGSIZE;
	if (rdma_nl_stat_hwcounter_entry(msg, "page_faults",
					 atomic64_read(&odp->faults)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_invalidations",
					 atomic64_read(&odp->invalidations)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_prefetch",
					 atomic64_read(&odp->prefetched))) {
		nla_nest_cancel(msg, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, nest);
	return 0;
}

int qhca_odp_start(struct qhca_ib_dev *dev)
{
	xa_init(&dev->odps);
	xa_init(&dev->mws);
	/*
	 * A fault, or a prefetch, may wait long for its page: for a disk, or
	 * for the process that is to bring it.  Others are served meanwhile,
	 * hence unbound, and as many at once as a workqueue has unless told
	 * otherwise, which is hundreds.  A peer waits for each of them, hence
	 * of high priority.  Nobody who is to free memory waits for one that
	 * is queued, so there is no rescuer, who could not get it a page
	 * either.
	 */
	dev->fault_wq = alloc_workqueue("qhca_ib_faults",
					WQ_UNBOUND | WQ_HIGHPRI, 0);
	return dev->fault_wq ? 0 : -ENOMEM;
}

void qhca_odp_stop(struct qhca_ib_dev *dev)
{
	destroy_workqueue(dev->fault_wq);
	WARN_ON(!xa_empty(&dev->odps));
	WARN_ON(!xa_empty(&dev->mws));
}
