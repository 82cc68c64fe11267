// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of regions on demand: their entries, and how they come and go.
 */
#include <linux/dma-mapping.h>
#include <linux/hmm.h>
#include <linux/sched/mm.h>

#include "odp.h"

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
