// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions whose tree grows with what is used of them: implicit ones, which are
 * all of a process's memory by one key, and large ones of a part of it.
 *
 * The device walks one tree over the region's space, whose nodes need not
 * be there.  Where pages are brought in the memory is watched in stretches of
 * one node of the lowest level, each with a notifier of its own, so that tables
 * and notifiers are as many as what is used.  The nodes above are mirrored in
 * struct qhca_odp_dir, by which stretches are found too.
 *
 * A stretch whose last page went is given back a while later, if nobody has
 * brought one in by then: it leaves the tree, the device finishes the accesses
 * that may have seen it, then it is freed; and so are the nodes above it that
 * refer to nothing any more.
 *
 * Who brings pages in holds a reference, which does not keep a stretch in the
 * tree: having taken @umem_mutex he finds out, and begins again with another.
 * Nobody waits for him.
 *
 * What is allocated in the course of it is charged to the memory control group
 * of the process that registered the region, although a kernel thread does it.
 */
#include <linux/dma-mapping.h>
#include <linux/memcontrol.h>
#include <linux/sched/mm.h>

#include "odp.h"

#define QHCA_DIR_ENTRIES	BIT(QHCA_AT_BITS)

/* Memory that is given back and used again at once stays as it is. */
#define QHCA_REAP_DELAY		(HZ / 10)

/**
 * struct qhca_odp_dir - a node above the lowest level.
 * @ent:    entries, as the device reads them
 * @dma:    where it does
 * @parent: NULL: the root, or out of the tree
 * @slot:   in @parent
 * @used:   entries that are present
 * @leave:  for those that leave the tree
 * @child:  by entry: a dir, or at level 2 a stretch
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
 * qhca_stretch_put - give up a reference
 * @s: of an implicit region that is there, or that one has a reference on
 */
void qhca_stretch_put(struct qhca_stretch *s)
{
	if (!refcount_dec_and_test(&s->ref))
		return;
	ib_umem_odp_release(s->umem);
	kfree(s);
}

/*
 * The entries are taken from faults under way, and freed: the device does not
 * know them, or has no key to use them by.
 */
static void qhca_stretch_end(struct qhca_stretch *s)
{
	mutex_lock(&s->umem->umem_mutex);
	s->umem->private = NULL;
	mutex_unlock(&s->umem->umem_mutex);
	qhca_at_free(s->odp->dev, &s->own);
	qhca_stretch_put(s);
}

/* The last one ends with the region. */
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
 * qhca_implicit_get - the stretch of a page
 * @odp:  an implicit region
 * @page: number in the address space, below the region's end
 *
 * Makes it if there is none.  Returns it with a reference, or an error.  Sleeps.
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
 * What is empty goes
 */

/**
 * qhca_implicit_idle - a stretch was seen without a page
 * @s: kept by its @umem_mutex, or by a reference
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

/* Out of the tree with @s, and with the nodes above that it was the last of. */
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

/* Free what has left the tree and the device knows no more. */
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

	/* Nobody but this work frees stretches, or takes them off @seen. */
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
	 * Their translations have gone with their pages; but an access may be
	 * on its way through the nodes.  An invalidation waits for all that
	 * have begun, whatever it invalidates.
	 */
	s = list_first_entry(&odp->gone, struct qhca_stretch, idle);
	qhca_odp_invalidate_hw(odp, s->offset, qhca_stretch_size(s));
	qhca_implicit_release(odp);
}

/* ------------------------------------------------------------------------
 * Regions
 */

/**
 * qhca_implicit_init - make the tree of a region, empty
 * @odp:    its @dev, @mr, @origin, @pages are set
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
		/* The root holds none, and stretches may be made at any time. */
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
 * @odp: whose key has ended
 *
 * Notifiers, faults and advice may be under way, and find no stretch any more.
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
