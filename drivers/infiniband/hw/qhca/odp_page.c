// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of regions on demand: their entries, and how they come and go.
 */
#include <linux/dma-mapping.h>
#include <linux/hmm.h>
#include <linux/sched/mm.h>

#include "odp.h"

/* How many pages behind those of a fault are mapped with them if present. */
#define QHCA_ODP_AROUND		16

/* ------------------------------------------------------------------------
 * Entries
 */

static struct qhca_at_node *qhca_odp_node(struct qhca_at *at, size_t page)
{
	return at->num_nodes == 1 ? &at->one : &at->many[page >> QHCA_AT_BITS];
}

/* Make the present entries [@first, @first + @num) visible to the device. */
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

/* Clear entries, and return how many pages of them the device could use. */
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

/* Fill in the mapped pages of [@first, @first + @num); return their number. */
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
 * qhca_odp_invalidate_hw - have the device stop using pages
 * @odp:    a region
 * @offset: first byte in the region's translated space, page aligned
 * @length: bytes, whole pages
 *
 * The device drops its copies of the translations, and finishes all accesses
 * that have begun.  When this returns it has done so, or the function is dead.
 */
void qhca_odp_invalidate_hw(struct qhca_odp *odp, u64 offset, u64 length)
{
	u64 start = offset > odp->skip ? offset - odp->skip : 0;
	struct qhca_range range = {
		/* The device counts from the region's first byte. */
		.start = cpu_to_le64(start),
		.length = cpu_to_le64(offset + length - odp->skip - start),
	};
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_INVALIDATE_RANGE,
		.index = odp->mr->index,
		.in = &range,
		.in_len = sizeof(range),
	};

	/* The entries are cleared before the command. */
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
 * Map pages [@first, @first + @num) of a stretch, and bring them in if
 * necessary.  Returns how many are mapped now, or -ESTALE if the stretch has
 * been freed or the region has been deregistered.
 *
 * The call gives up if invalidations interfere.  An access must not fail for
 * that reason, so the driver tries again.
 */
static int qhca_stretch_page_in(struct qhca_stretch *s, size_t first,
				size_t num, bool write)
{
	struct ib_umem_odp *umem = s->umem;
	u64 start = ib_umem_start(umem) + ((u64)first << PAGE_SHIFT);
	u64 length = (u64)num << PAGE_SHIFT;
	int ret;

	do {
		ret = qhca_compat_odp_map(umem, start, length, write);
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
 * Find out which of at most QHCA_ODP_AROUND pages are in memory, and write
 * their HMM_PFN_* to @pfns.  Returns false if that cannot be determined now.
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
 * Map those of the pages that are in memory already, as qhca_stretch_page_in()
 * does.  The driver looks for them with a list of its own, and then maps those
 * that it has found like any others.  The core could map pages without bringing
 * them in, but it writes what it finds to the region's list before it takes
 * @umem_mutex, and so overwrites what another fault has written there
 * meanwhile.
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

/* Map pages of one stretch of an implicit region. */
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
		/* Nothing is mapped, so the stretch may be empty. */
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
 * qhca_odp_map - map pages for the device
 * @odp:   a region, with a reference
 * @first: first page in the region's translated space
 * @num:   number of pages, all in that space
 * @write: the device is going to write to them
 * @fault: bring in pages that are not in memory; otherwise leave them out
 *
 * Return: how many pages are mapped now, or the error of the first page that is
 * unavailable.  Sleeps until all pages have arrived.
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
 * Bring in @num pages from @first on.  Only the first page has to be available:
 * if the device reaches one of the others, that access faults by itself.
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
 * qhca_odp_fault - bring in the pages of a fault
 * @odp:    a region, with a reference
 * @offset: byte in the region's translated space where the access faulted
 * @len:    bytes that the access needs from there on
 * @write:  the access writes
 *
 * Return: 0 if the first page is mapped.  Sleeps until the pages have arrived.
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

	/* Map what follows if it is in memory: that saves later faults. */
	next = first + num;
	num = min_t(u64, pages - next, QHCA_ODP_AROUND);
	if (odp->root)	/* That is not worth another stretch. */
		num = min_t(size_t, num, -next & (QHCA_STRETCH_PAGES - 1));
	if (num)
		qhca_odp_map(odp, next, num, write, false);
	return 0;
}
