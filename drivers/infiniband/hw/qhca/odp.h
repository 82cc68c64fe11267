/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory on demand, within odp.c and its companions.
 *
 * Lock order: @umem_mutex of a stretch, then qhca_odp.lock.  The notifier takes
 * both, and so reclaim does.  Code that holds either must not allocate memory.
 */
#ifndef QHCA_ODP_H
#define QHCA_ODP_H

#include <rdma/ib_umem_odp.h>

#include "queue.h"

/* The largest number of pages that are brought in at once. */
#define QHCA_ODP_BATCH		256

/* Large regions are watched in stretches of one node, which is 2 MiB. */
#define QHCA_STRETCH_PAGES	BIT(QHCA_AT_BITS)
#define QHCA_STRETCH_SHIFT	(PAGE_SHIFT + QHCA_AT_BITS)
#define QHCA_STRETCH_SIZE	BIT(QHCA_STRETCH_SHIFT)

struct qhca_odp;
struct qhca_odp_dir;

/**
 * struct qhca_stretch - memory with a notifier, and its translation entries.
 * @odp:    the region
 * @umem:   the memory.  The entries change only under @umem->umem_mutex, and
 *          only while @umem->private is the stretch.
 * @at:     the tree that has the entries of its pages
 * @offset: first byte in the region's translated space, page aligned
 *
 * The remaining fields are for stretches that are made and freed as the region
 * is used, see odp_implicit.c.
 * @own:    the tree that @at points to
 * @ref:    references of the region, and of those who bring pages in; the umem
 *          is freed with the last
 * @dir:    the node that refers to the stretch
 * @linked: @dir does refer to it; under the region's lock
 * @idle:   in qhca_odp.idle, under the region's lock, if the stretch was seen
 *          without a page; also links stretches that are about to be freed
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
 * struct qhca_odp - the further state of a region on demand.
 * @dev: its device
 * @mr: the region; invalid once the stretches have been taken from their umems
 * @pd: the region's protection domain, which is only compared
 * @lkey: the region's L_Key
 * @writable: the region may be written
 * @start: first address for the device
 * @skip: bytes of the translated space before @start
 * @length: bytes of the region
 * @ref: references of the region, and of faults and prefetches under way
 * @served: faults under way that the device waits for, struct qhca_fault.entry;
 *          under the lock of qhca_ib_dev.odps
 * @pages: pages of the translated space
 * @origin: address in the process where that space begins, page aligned
 * @faults: pages brought in because of page faults of the device
 * @invalidations: pages that the device could use and that were taken away
 * @prefetched: pages brought in because of ibv_advise_mr()
 * @closing: the region is being deregistered; no operation may begin
 * @all: the only stretch of a small region
 *
 * The remaining fields are for a region whose stretches are made and freed as
 * it is used.
 * @root: umem of the whole process; NULL if the region is not of that kind
 * @mm: the process's address space, held to find out whether the process has
 *      ended
 * @memcg: control group that its tables are charged to, NULL if there are none
 * @lock: protects the tree below @top, @idle and the numbers
 * @top: the tree's root
 * @idle: stretches that may have no page any more
 * @reap: frees empty stretches
 * @gone: stretches that have left the tree and that the device may still read;
 *        only @reap uses the list
 * @gone_dirs: nodes likewise
 * @num_stretches: stretches in the tree, or not yet freed
 * @num_dirs: nodes likewise
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
