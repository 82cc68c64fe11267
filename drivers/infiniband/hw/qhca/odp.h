/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory on demand, within odp.c and its companions.
 *
 * Lock order: @umem_mutex of a stretch, then qhca_odp.lock.  Both are taken in
 * the notifier, so in reclaim: nothing under them allocates.
 */
#ifndef QHCA_ODP_H
#define QHCA_ODP_H

#include <rdma/ib_umem_odp.h>

#include "queue.h"

/* Pages that are brought in at once, at most. */
#define QHCA_ODP_BATCH		256

/* Regions that are not watched as one piece: stretches of one node, 2 MiB. */
#define QHCA_STRETCH_PAGES	BIT(QHCA_AT_BITS)
#define QHCA_STRETCH_SHIFT	(PAGE_SHIFT + QHCA_AT_BITS)
#define QHCA_STRETCH_SIZE	BIT(QHCA_STRETCH_SHIFT)

struct qhca_odp;
struct qhca_odp_dir;

/**
 * struct qhca_stretch - memory that is watched, and its translation entries.
 * @odp:    the region
 * @umem:   the memory; entries change under @umem->umem_mutex alone, and while
 *          @umem->private is the stretch
 * @at:     where the entries of its pages are
 * @offset: byte of the region's translated space where it begins, at a page
 *
 * The rest is for stretches that come and go, see odp_implicit.c.
 * @own:    @at
 * @ref:    held by the region, and by those who bring pages in; the last has the
 *          umem to free
 * @dir:    the node that refers to it
 * @linked: by @dir; under the region's lock
 * @idle:   seen without a page; in qhca_odp.idle under the region's lock, or on
 *          its way out
 */
struct qhca_stretch {
	struct qhca_odp *odp;
	struct ib_umem_odp *umem;
	struct qhca_at *at;
	u64 offset;

	struct qhca_at own;
	refcount_t ref;
	struct qhca_odp_dir *dir;
	bool linked;
	struct list_head idle;
};

/**
 * struct qhca_odp - what a region on demand has beyond others.
 * @dev: its device
 * @mr: the region; no more when the stretches' umems have let go of these
 * @pd: the region's, to be compared only
 * @lkey: the region's
 * @writable: the region may be
 * @start: first address for the device
 * @skip: bytes of the translated space before @start
 * @length: of the region
 * @ref: held by the region, and by faults and prefetches under way
 * @served: faults under way that the device waits for, struct qhca_fault.entry;
 *          under the lock of qhca_ib_dev.odps
 * @pages: of its translated space
 * @origin: address of the process where that space begins, at a page
 * @faults: pages brought in because the device met them
 * @invalidations: pages that the device had and that were taken away
 * @prefetched: pages brought in because someone asked
 * @closing: it is about to go; nobody is to begin anything
 * @all: of a small region, its only stretch
 *
 * The rest is for a region that is watched in stretches that come and go.
 * @root: of the process; NULL: the region is not of that kind
 * @mm: the process's, held so that it can be told to have ended
 * @memcg: whom its tables are charged to, NULL without control groups
 * @lock: the tree below @top, @idle and the numbers
 * @top: the tree's root
 * @idle: stretches that may have no page any more
 * @reap: gives empty stretches back
 * @gone: stretches out of the tree that the device may still see; @reap's own
 * @gone_dirs: nodes likewise
 * @num_stretches: in the tree, or not yet given back
 * @num_dirs: likewise
 */
struct qhca_odp {
	struct qhca_ib_dev *dev;
	struct qhca_mr *mr;
	const struct ib_pd *pd;
	u32 lkey;
	bool writable;
	u64 start;
	u64 skip;
	u64 length;
	refcount_t ref;
	struct list_head served;
	u64 pages;
	u64 origin;
	atomic64_t faults;
	atomic64_t invalidations;
	atomic64_t prefetched;
	bool closing;
	struct qhca_stretch all;

	struct ib_umem_odp *root;
	struct mm_struct *mm;
	struct mem_cgroup *memcg;
	spinlock_t lock;	/* the tree */
	struct qhca_odp_dir *top;
	struct list_head idle;
	struct delayed_work reap;
	struct list_head gone;
	struct list_head gone_dirs;
	u32 num_stretches;
	u32 num_dirs;
};

/* odp.c */
struct qhca_odp *qhca_odp_get(struct qhca_ib_dev *dev, u32 index,
			      struct qhca_fault *fault);
void qhca_odp_put(struct qhca_odp *odp);
int qhca_odp_map(struct qhca_odp *odp, u64 first, size_t num, bool write,
		 bool fault);
int qhca_odp_fault(struct qhca_odp *odp, u64 offset, u64 len, bool write);
extern const struct mmu_interval_notifier_ops qhca_odp_notifier_ops;
void qhca_odp_invalidate_hw(struct qhca_odp *odp, u64 offset, u64 length);

/* odp_fault.c */
void qhca_odp_end_faults(struct qhca_odp *odp);

/* odp_implicit.c */
int qhca_implicit_init(struct qhca_odp *odp, int access);
void qhca_implicit_destroy(struct qhca_odp *odp);
struct qhca_stretch *qhca_implicit_get(struct qhca_odp *odp, u64 page);
void qhca_stretch_put(struct qhca_stretch *s);
void qhca_implicit_idle(struct qhca_stretch *s);
void qhca_implicit_tables(struct qhca_odp *odp, struct qhca_odp_tables *t);

#endif /* QHCA_ODP_H */
