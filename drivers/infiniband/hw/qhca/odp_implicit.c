// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions whose tree grows as they are used: implicit regions, which are all of
 * a process's memory under one key, and large regions.
 *
 * The device walks one tree over the region's translated space, in which nodes
 * may be absent.  Where pages are brought in, the driver watches the memory in
 * stretches of one node of the lowest level, each with a notifier of its own.
 * So the number of nodes and notifiers follows the memory in use.  The driver
 * mirrors the nodes above in struct qhca_odp_dir, and finds stretches by these.
 *
 * When a stretch has lost its last page, a delayed work frees it, unless a page
 * has been brought in by then.  The work takes the stretch out of the tree, has
 * the device finish the accesses that may have read its node, and frees it,
 * together with the nodes above that refer to nothing any more.
 *
 * A fault that brings pages in holds a reference on the stretch, which does not
 * keep the stretch in the tree.  Once the fault has taken @umem_mutex it sees
 * whether the stretch has left the tree, and then begins again with another
 * one.  Nothing waits for such a fault.
 *
 * A kernel thread allocates what is needed.  It charges that to the memory
 * control group of the process that has registered the region.
 */
#include <linux/dma-mapping.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>

#include "odp.h"

#define QHCA_DIR_ENTRIES	BIT(QHCA_AT_BITS)

/* A stretch that is soon used again is worth keeping for so long. */
#define QHCA_REAP_DELAY		(HZ / 10)

/**
 * struct qhca_odp_dir - a node above the lowest level.
 * @ent:    entries, as the device reads them
 * @dma:    bus address of @ent
 * @parent: the node above; NULL for the root
 * @slot:   number of its entry in @parent
 * @used:   number of entries that are present
 * @leave:  links nodes that have left the tree
 * @child:  the node of each entry, or at level 2 the stretch
 */
struct qhca_odp_dir {
	__le64 *ent;
	dma_addr_t dma;
	struct qhca_odp_dir *parent;
	u32 slot;
	u32 used;
	struct list_head leave;
	void *child[QHCA_DIR_ENTRIES];
};

static void qhca_dir_free(struct qhca_odp *odp, struct qhca_odp_dir *dir)
{
	dma_unmap_single(qhca_dma_dev(odp->dev), dir->dma, PAGE_SIZE,
			 DMA_TO_DEVICE);
	kfree(dir->ent);
	kvfree(dir);
}

static struct qhca_odp_dir *qhca_dir_alloc(struct qhca_odp *odp)
{
	struct qhca_odp_dir *dir;

	dir = kvzalloc(sizeof(*dir), GFP_KERNEL_ACCOUNT);
	if (!dir)
		return NULL;
	dir->ent = kzalloc(PAGE_SIZE, GFP_KERNEL_ACCOUNT);
	if (!dir->ent)
		goto err_dir;
	dir->dma = dma_map_single(qhca_dma_dev(odp->dev), dir->ent, PAGE_SIZE,
				  DMA_TO_DEVICE);
	if (dma_mapping_error(qhca_dma_dev(odp->dev), dir->dma))
		goto err_ent;
	return dir;

err_ent:
	kfree(dir->ent);
err_dir:
	kvfree(dir);
	return NULL;
}

static void qhca_dir_set(struct qhca_odp *odp, struct qhca_odp_dir *dir,
			 u32 slot, u64 entry)
{
	WRITE_ONCE(dir->ent[slot], cpu_to_le64(entry));
	dma_sync_single_range_for_device(qhca_dma_dev(odp->dev), dir->dma,
					 slot * sizeof(*dir->ent),
					 sizeof(*dir->ent), DMA_TO_DEVICE);
}

/* The entry of a dir of @level that leads to @page. */
static u32 qhca_dir_slot(u64 page, int level)
{
	return page >> (QHCA_AT_BITS * (level - 1)) & (QHCA_DIR_ENTRIES - 1);
}

/* ------------------------------------------------------------------------
 * Stretches
 */

/**
 * qhca_stretch_put - drop a reference
 * @s: a stretch of an implicit region; the caller keeps the region alive
 */
void qhca_stretch_put(struct qhca_stretch *s)
{
	if (!refcount_dec_and_test(&s->ref))
		return;
	ib_umem_odp_release(s->umem);
	kfree(s);
}

/*
 * Take the entries from faults under way, and free them.  The device has no
 * reference to the entries, or no key by which to reach them.
 */
static void qhca_stretch_end(struct qhca_stretch *s)
{
	mutex_lock(&s->umem->umem_mutex);
	s->umem->private = NULL;
	mutex_unlock(&s->umem->umem_mutex);
	qhca_at_free(s->odp->dev, &s->own);
	qhca_stretch_put(s);
}

/* The last stretch ends where the region does. */
static u64 qhca_stretch_size(const struct qhca_stretch *s)
{
	return min_t(u64, QHCA_STRETCH_SIZE,
		     (s->odp->pages << PAGE_SHIFT) - s->offset);
}

static struct qhca_stretch *qhca_stretch_alloc(struct qhca_odp *odp, u64 page)
{
	struct qhca_stretch *s;
	int err;

	s = kzalloc_obj(*s, GFP_KERNEL_ACCOUNT);
	if (!s)
		return ERR_PTR(-ENOMEM);
	s->odp = odp;
	s->at = &s->own;
	s->offset = ALIGN_DOWN(page << PAGE_SHIFT, QHCA_STRETCH_SIZE);
	INIT_LIST_HEAD(&s->idle);
	refcount_set(&s->ref, 1);

	err = qhca_at_build_blank(odp->dev, &s->own, QHCA_STRETCH_PAGES);
	if (err)
		goto err_free;
	s->umem = ib_umem_odp_alloc_child(odp->root, odp->origin + s->offset,
					  qhca_stretch_size(s),
					  &qhca_odp_notifier_ops);
	if (IS_ERR(s->umem)) {
		err = PTR_ERR(s->umem);
		goto err_at;
	}
	/* No page is mapped before this, so the notifier misses none. */
	mutex_lock(&s->umem->umem_mutex);
	s->umem->private = s;
	mutex_unlock(&s->umem->umem_mutex);
	return s;

err_at:
	qhca_at_free(odp->dev, &s->own);
err_free:
	kfree(s);
	return ERR_PTR(err);
}

/**
 * qhca_implicit_get - find or make the stretch of a page
 * @odp:  an implicit region
 * @page: number of the page in the translated space, below the region's end
 *
 * Return: the stretch with a reference, or an error.  Sleeps.
 */
struct qhca_stretch *qhca_implicit_get(struct qhca_odp *odp, u64 page)
{
	struct qhca_odp_dir *dir, *next, *node = NULL;
	struct qhca_stretch *s, *spare = NULL;
	struct mem_cgroup *memcg;
	int level;
	u32 slot;

again:
	spin_lock(&odp->lock);
	if (odp->closing) {
		s = ERR_PTR(-ENOENT);
		goto out;
	}
	dir = odp->top;
	for (level = odp->mr->at.levels; level > 2; level--) {
		slot = qhca_dir_slot(page, level);
		next = dir->child[slot];
		if (!next) {
			if (!node || !spare)
				goto missing;
			next = node;
			node = NULL;
			next->parent = dir;
			next->slot = slot;
			dir->child[slot] = next;
			dir->used++;
			odp->num_dirs++;
			qhca_dir_set(odp, dir, slot,
				     next->dma | QHCA_ATE_PRESENT);
		}
		dir = next;
	}
	slot = qhca_dir_slot(page, 2);
	s = dir->child[slot];
	if (!s) {
		if (!spare)
			goto missing;
		s = spare;
		spare = NULL;
		s->dir = dir;
		s->linked = true;
		dir->child[slot] = s;
		dir->used++;
		odp->num_stretches++;
		qhca_dir_set(odp, dir, slot, s->own.base | QHCA_ATE_PRESENT);
	}
	refcount_inc(&s->ref);
out:
	spin_unlock(&odp->lock);
	if (node)
		qhca_dir_free(odp, node);
	if (spare)
		qhca_stretch_end(spare);
	return s;

missing:
	spin_unlock(&odp->lock);
	if (!spare) {
		memcg = set_active_memcg(odp->memcg);
		spare = qhca_stretch_alloc(odp, page);
		set_active_memcg(memcg);
		if (IS_ERR(spare)) {
			if (node)
				qhca_dir_free(odp, node);
			return spare;
		}
		goto again;
	}
	memcg = set_active_memcg(odp->memcg);
	node = qhca_dir_alloc(odp);
	set_active_memcg(memcg);
	if (node)
		goto again;
	qhca_stretch_end(spare);
	return ERR_PTR(-ENOMEM);
}

/* ------------------------------------------------------------------------
 * Freeing empty stretches
 */

/**
 * qhca_implicit_idle - have a stretch freed that was seen without a page
 * @s: a stretch; the caller holds its @umem_mutex or a reference
 */
void qhca_implicit_idle(struct qhca_stretch *s)
{
	struct qhca_odp *odp = s->odp;

	spin_lock(&odp->lock);
	if (s->linked && !odp->closing && list_empty(&s->idle)) {
		list_add_tail(&s->idle, &odp->idle);
		queue_delayed_work(odp->dev->fault_wq, &odp->reap,
				   QHCA_REAP_DELAY);
	}
	spin_unlock(&odp->lock);
}

/* Take @s out of the tree, and the nodes above that become empty with it. */
static void qhca_stretch_unlink(struct qhca_stretch *s)
{
	struct qhca_odp_dir *dir = s->dir, *parent;
	struct qhca_odp *odp = s->odp;
	u32 slot = qhca_dir_slot(s->offset >> PAGE_SHIFT, 2);

	lockdep_assert_held(&odp->lock);
	s->linked = false;
	for (;;) {
		dir->child[slot] = NULL;
		qhca_dir_set(odp, dir, slot, 0);
		if (--dir->used || !dir->parent)
			return;
		parent = dir->parent;
		slot = dir->slot;
		list_add_tail(&dir->leave, &odp->gone_dirs);
		dir = parent;
	}
}

/* Free what has left the tree and what the device cannot read any more. */
static void qhca_implicit_release(struct qhca_odp *odp)
{
	struct qhca_odp_dir *dir, *next_dir;
	u32 num_stretches = 0, num_dirs = 0;
	struct qhca_stretch *s, *next;

	list_for_each_entry_safe(s, next, &odp->gone, idle) {
		list_del(&s->idle);
		qhca_stretch_end(s);
		num_stretches++;
		cond_resched();
	}
	list_for_each_entry_safe(dir, next_dir, &odp->gone_dirs, leave) {
		list_del(&dir->leave);
		qhca_dir_free(odp, dir);
		num_dirs++;
	}
	spin_lock(&odp->lock);
	odp->num_stretches -= num_stretches;
	odp->num_dirs -= num_dirs;
	spin_unlock(&odp->lock);
}

static void qhca_implicit_reap(struct work_struct *work)
{
	struct qhca_odp *odp = container_of(work, struct qhca_odp, reap.work);
	struct qhca_stretch *s, *next;
	LIST_HEAD(seen);

	spin_lock(&odp->lock);
	list_splice_init(&odp->idle, &seen);
	spin_unlock(&odp->lock);

	/* Only this work frees stretches or takes them off @seen. */
	list_for_each_entry_safe(s, next, &seen, idle) {
		mutex_lock(&s->umem->umem_mutex);
		spin_lock(&odp->lock);
		if (s->umem->npages) {
			list_del_init(&s->idle);
		} else {
			list_move_tail(&s->idle, &odp->gone);
			qhca_stretch_unlink(s);
			s->umem->private = NULL;
		}
		spin_unlock(&odp->lock);
		mutex_unlock(&s->umem->umem_mutex);
		cond_resched();
	}
	if (list_empty(&odp->gone))
		return;

	/*
	 * The translations were invalidated when the pages were taken away, but
	 * an access may still be reading the nodes.  Any invalidation waits for
	 * all accesses that have begun, so one is enough for all stretches.
	 */
	s = list_first_entry(&odp->gone, struct qhca_stretch, idle);
	qhca_odp_invalidate_hw(odp, s->offset, qhca_stretch_size(s));
	qhca_implicit_release(odp);
}

/* ------------------------------------------------------------------------
 * Regions
 */

/**
 * qhca_implicit_init - make the empty tree of a region
 * @odp:    the region, with @dev, @mr, @origin and @pages set
 * @access: IB_ACCESS_*
 */
int qhca_implicit_init(struct qhca_odp *odp, int access)
{
	struct qhca_at *at = &odp->mr->at;
	int err;

	at->page_shift = PAGE_SHIFT;
	at->levels = DIV_ROUND_UP(fls64(odp->pages - 1), QHCA_AT_BITS);
	if (at->levels < 2 || at->levels > QHCA_MAX_AT_LEVELS)
		return -EOPNOTSUPP;
	spin_lock_init(&odp->lock);
	INIT_LIST_HEAD(&odp->idle);
	INIT_LIST_HEAD(&odp->gone);
	INIT_LIST_HEAD(&odp->gone_dirs);
	INIT_DELAYED_WORK(&odp->reap, qhca_implicit_reap);

	odp->top = qhca_dir_alloc(odp);
	if (!odp->top)
		return -ENOMEM;
	odp->num_dirs = 1;
	at->base = odp->top->dma;

	odp->root = ib_umem_odp_alloc_implicit(&odp->dev->ibdev, access);
	if (!IS_ERR(odp->root)) {
		/*
		 * The root umem holds no reference, and stretches need the mm.
		 */
		odp->mm = current->mm;
		mmgrab(odp->mm);
		odp->memcg = get_mem_cgroup_from_mm(odp->mm);
		return 0;
	}
	err = PTR_ERR(odp->root);
	odp->root = NULL;
	qhca_dir_free(odp, odp->top);
	return err;
}

static void qhca_implicit_clear(struct qhca_odp *odp, struct qhca_odp_dir *dir,
				int level)
{
	u32 i;

	for (i = 0; i < QHCA_DIR_ENTRIES; i++) {
		if (!dir->child[i])
			continue;
		if (level > 2)
			qhca_implicit_clear(odp, dir->child[i], level - 1);
		else
			qhca_stretch_end(dir->child[i]);
		cond_resched();
	}
	qhca_dir_free(odp, dir);
}

/**
 * qhca_implicit_destroy - free the tree
 * @odp: the region, whose key has ended
 *
 * Notifiers, faults and prefetches may be under way; they find no stretch any
 * more.
 */
void qhca_implicit_destroy(struct qhca_odp *odp)
{
	spin_lock(&odp->lock);
	odp->closing = true;
	spin_unlock(&odp->lock);
	cancel_delayed_work_sync(&odp->reap);
	qhca_implicit_release(odp);
	qhca_implicit_clear(odp, odp->top, odp->mr->at.levels);
}

void qhca_implicit_tables(struct qhca_odp *odp, struct qhca_odp_tables *t)
{
	spin_lock(&odp->lock);
	t->stretches = odp->num_stretches;
	t->nodes = odp->num_stretches + odp->num_dirs;
	t->bytes = (u64)odp->num_dirs * sizeof(*odp->top) +
		   (u64)odp->num_stretches * sizeof(struct qhca_stretch) +
		   (u64)t->nodes * PAGE_SIZE;
	spin_unlock(&odp->lock);
}
