/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Declarations that the files of qhca_vfio.ko share.
 *
 * The driver passes a virtual function to a virtual machine, and does for its
 * memory what an IOMMU driver and VFIO do together for other devices, with one
 * difference: nothing is pinned before the device needs it.
 *
 * A tree (struct qhca_s2_tree) is what a function can reach: the PA2MA tables
 * that the device reads, and the pages that they name.  Each page in a tree is
 * pinned exactly once for it, from the moment before its entry becomes present
 * to the moment after the device has acknowledged that the entry is gone.
 *
 *	tree.c	 the tables: nodes, entries, large entries
 *	pages.c	 pages into a tree, and out of it
 *	hold.c	 where no page may come in for the moment
 *	fault.c	 what the device asks for
 *	row.c	 which tree the device uses: the life of the function
 *	config.c the configuration space, interrupts, bus mastering
 *	main.c	 VFIO and PCI
 *	stats.c	 what is pinned, and why
 *
 * Locks, in this order:
 *
 *	user_lock	calls of the user that write the command register
 *	lock		the contents of trees
 *	row_lock	which tree the device uses
 *	tree_lock	the pointers to trees, and the list of holds
 *	master_lock	bus mastering
 *
 * A reset of the function that its user asks for comes while VFIO holds the
 * semaphore of its BARs, for which a page fault may be waiting with mmap_lock
 * held.  Pinning and unpinning take mmap_lock, and are done with "lock" held.  So
 * a reset takes neither: it replaces the tree by an empty one, and leaves it to
 * a work item to empty the old one.
 */
#ifndef QHCA_VFIO_H
#define QHCA_VFIO_H

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mempool.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/srcu.h>
#include <linux/vfio_pci_core.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <linux/qhca/driver.h>

#define QHCA_S2_PAGE_SHIFT	12
#define QHCA_S2_LEVELS		4	/* addresses of 48 bits */
#define QHCA_S2_ENTRIES		BIT(QHCA_AT_BITS)
#define QHCA_S2_MAX_ADDR	\
	(BIT_ULL(QHCA_S2_PAGE_SHIFT + QHCA_S2_LEVELS * QHCA_AT_BITS) - 1)

/* Pages brought in for one fault; the device asks for what is missing. */
#define QHCA_S2_FAULT_PAGES	512

/* Faults noted at a time: more than a function has that waits for the answers. */
#define QHCA_S2_MAX_FAULTS	131072

/* Faults that can be taken when the system has no memory for interrupts. */
#define QHCA_S2_SPARE_FAULTS	64

/**
 * struct qhca_s2_node - a node of the PA2MA tables
 * @entry: what the device reads.  An entry that is not present but not zero
 *	either is on its way out: the device may still use what it named.
 * @dma:   address of @entry for the physical function
 * @used:  number of entries that are present
 * @large: level 1: the entry above is a large page, and not this node
 * @child: above level 1: the nodes that entries refer to
 */
struct qhca_s2_node {
	__le64 *entry;
	dma_addr_t dma;
	unsigned int used;
	bool large;
	struct qhca_s2_node *child[];
};

/**
 * struct qhca_s2_tree - what a function can reach
 * @root:  root node
 * @entry: in the list of trees that have been replaced
 * @quiet: the device does not use the tree any more
 */
struct qhca_s2_tree {
	struct qhca_s2_node *root;
	struct list_head entry;
	bool quiet;
};

/*
 * Numbers for the administrator.  All are changed with "lock" held, but @nodes
 * and @tables.
 */
struct qhca_s2_stats {
	unsigned long pages_fault;	/* pinned at present because of a fault */
	unsigned long pages_device;	/* ... for the device itself */
	unsigned long large;		/* large entries at present */
	atomic_long_t nodes;		/* nodes at present */
	atomic_long_t tables;		/* times the function got new tables */
	unsigned long faults;		/* faults of payload served */
	unsigned long pin_requests;	/* pin requests served */
	unsigned long refused;		/* of both, those that got no page */
	unsigned long invalidations;	/* ranges taken away while in use */
};

/**
 * struct qhca_vfio - a virtual function
 * @core:     the device as VFIO knows it
 * @s2:       stage 2 of the physical function
 * @row_lock: see above
 * @open:     a user has the device; under @row_lock
 * @user_lock: see above; taken by nobody else
 * @master_lock: see above
 * @master:   bus mastering as the user has set it
 * @broken:   bus mastering is off, and stays off, because the physical
 *            function could not be asked to end the function's DMA
 * @srcu:     protects calls of the user that write the command register
 *            against @broken
 * @tree_lock: see above
 * @live:     the tree that the device uses, or NULL
 * @dead:     trees that have been replaced
 * @holds:    ranges that VFIO is taking away
 * @wait:     for a tree to become quiet, or a hold to end
 * @empty:    a root without entries, for want of memory for another
 * @lock:     see above
 * @stats:    statistics
 * @pool:     memory for @faults
 * @faults:   faults to serve
 * @noted:    number of @faults and of those being served
 * @lost:     a fault found no memory, or too many before it
 * @wq:       where @work runs
 * @work:     serves faults, and empties dead trees
 */
struct qhca_vfio {
	struct vfio_pci_core_device core;
	struct qhca_stage2 s2;
	struct mutex row_lock;	/* open, and which tree the device uses */
	bool open;
	struct mutex user_lock;	/* calls that write the command register */
	spinlock_t master_lock;	/* master, broken */
	bool master;
	bool broken;
	struct srcu_struct srcu;
	spinlock_t tree_lock;	/* live, dead, holds */
	struct qhca_s2_tree *live;
	struct list_head dead;
	struct list_head holds;
	wait_queue_head_t wait;
	struct qhca_s2_node *empty;
	struct mutex lock;	/* contents of trees, stats */
	struct qhca_s2_stats stats;
	mempool_t *pool;
	struct llist_head faults;
	atomic_long_t noted;
	bool lost;
	struct workqueue_struct *wq;
	struct work_struct work;
};

static inline struct qhca_vfio *qhca_vfio_of(struct vfio_device *vdev)
{
	return container_of(vdev, struct qhca_vfio, core.vdev);
}

/* tree.c */
struct qhca_s2_node *qhca_s2_node_alloc(struct qhca_vfio *vf, int level);
void qhca_s2_node_free(struct qhca_vfio *vf, struct qhca_s2_node *node);
struct qhca_s2_tree *qhca_s2_tree_alloc(struct qhca_vfio *vf);
u64 qhca_s2_tree_get(struct qhca_s2_tree *tree, u64 addr);
int qhca_s2_tree_set(struct qhca_vfio *vf, struct qhca_s2_tree *tree, u64 addr,
		     u64 entry);
unsigned long qhca_s2_tree_clear(struct qhca_vfio *vf,
				 struct qhca_s2_tree *tree, u64 first,
				 u64 last);
void qhca_s2_tree_release(struct qhca_vfio *vf, struct qhca_s2_tree *tree,
			  u64 first, u64 last);

/* pages.c */
int qhca_s2_fill(struct qhca_vfio *vf, struct qhca_s2_tree *tree, u64 addr,
		 bool write, bool device);
void qhca_s2_drop(struct qhca_vfio *vf, u64 addr, u64 entry);
void qhca_s2_unmap(struct vfio_device *vdev, u64 iova, u64 length);
void qhca_s2_reap(struct qhca_vfio *vf, bool wait);

/* hold.c */
void qhca_s2_hold(struct qhca_vfio *vf, u64 first, u64 last);
bool qhca_s2_held(struct qhca_vfio *vf, u64 addr);
void qhca_s2_holds_end(struct qhca_vfio *vf);

/* fault.c */
int qhca_s2_faults_init(struct qhca_vfio *vf);
void qhca_s2_faults_exit(struct qhca_vfio *vf);
void qhca_s2_fault(void *priv, const struct qhca_eqe *eqe);

/* row.c */
int qhca_s2_open(struct qhca_vfio *vf);
void qhca_s2_leave(struct qhca_vfio *vf);
void qhca_s2_close(struct qhca_vfio *vf);
void qhca_s2_reset(struct qhca_vfio *vf);
void qhca_s2_restart(void *priv);
void qhca_s2_silence(struct qhca_vfio *vf);
void qhca_s2_unacknowledged(struct qhca_vfio *vf, struct qhca_s2_tree *tree);
struct qhca_s2_tree *qhca_s2_live(struct qhca_vfio *vf);

/* config.c */
void qhca_vfio_want_master(struct qhca_vfio *vf, bool want);
void qhca_vfio_set_broken(struct qhca_vfio *vf, bool broken);
ssize_t qhca_vfio_write_config(struct qhca_vfio *vf, const char __user *buf,
			       size_t count, loff_t *ppos);
long qhca_vfio_set_irqs(struct qhca_vfio *vf, unsigned long arg);

/* stats.c */
extern const struct attribute_group *qhca_vfio_groups[];

#endif /* QHCA_VFIO_H */
