// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pages of the virtual machine, into a tree and out of it.
 *
 * VFIO pins a page, and counts it against RLIMIT_MEMLOCK of the process that
 * mapped it.  The page is mapped for the virtual function, whose requests the
 * platform sees.  It is writable if the process has mapped the range writable.
 */
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/slab.h>

#include "qhca_vfio.h"

static int qhca_s2_pin(struct qhca_vfio *vf, u64 addr, bool write,
		       struct page **page, u64 *rights)
{
	struct vfio_device *vdev = &vf->core.vdev;
	int ret;

	*rights = QHCA_ATE_WRITE;
	ret = vfio_pin_pages(vdev, addr, 1, IOMMU_READ | IOMMU_WRITE, page);
	if (ret == -EPERM && !write) {
		*rights = 0;
		ret = vfio_pin_pages(vdev, addr, 1, IOMMU_READ, page);
	}
	if (ret == 1)
		return 0;
	return ret < 0 ? ret : -EFAULT;
}

static enum dma_data_direction qhca_s2_direction(u64 entry)
{
	return entry & QHCA_ATE_WRITE ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

static int qhca_s2_map(struct qhca_vfio *vf, struct page *page, u64 *entry)
{
	struct device *dev = &vf->core.pdev->dev;
	enum dma_data_direction dir = qhca_s2_direction(*entry);
	dma_addr_t dma = dma_map_page(dev, page, 0, PAGE_SIZE, dir);

	if (dma_mapping_error(dev, dma))
		return -ENOMEM;
	/* A copy that has to be kept the same is not memory of the guest. */
	if (dma_need_sync(dev, dma)) {
		dma_unmap_page(dev, dma, PAGE_SIZE, dir);
		return -EOPNOTSUPP;
	}
	*entry |= dma | QHCA_ATE_PRESENT;
	return 0;
}

static unsigned long *qhca_s2_count(struct qhca_vfio *vf, u64 entry)
{
	return entry & QHCA_ATE_PINNED ? &vf->stats.pages_device :
					 &vf->stats.pages_fault;
}

/* The page is in the tree already; it may have to stay there from now on. */
static int qhca_s2_upgrade(struct qhca_vfio *vf, struct qhca_s2_tree *tree,
			   u64 addr, u64 entry, bool write, bool device)
{
	if (write && !(entry & QHCA_ATE_WRITE))
		return -EPERM;
	if (!device || entry & QHCA_ATE_PINNED)
		return 0;
	--*qhca_s2_count(vf, entry);
	entry |= QHCA_ATE_PINNED;
	++*qhca_s2_count(vf, entry);
	return qhca_s2_tree_set(vf, tree, addr, entry);
}

/**
 * qhca_s2_fill - bring a page in
 * @vf:     function
 * @tree:   tree
 * @addr:   address of the page, at most QHCA_S2_MAX_ADDR
 * @write:  it must be writable
 * @device: the device itself needs it: it stays as long as the tree
 *
 * Return: 0 or a negative errno: the process has not mapped the page, or not
 *	writable, or may not pin more.
 */
int qhca_s2_fill(struct qhca_vfio *vf, struct qhca_s2_tree *tree, u64 addr,
		 bool write, bool device)
{
	u64 entry = qhca_s2_tree_get(tree, addr);
	struct page *page;
	int err;

	lockdep_assert_held(&vf->lock);
	if (entry & QHCA_ATE_PRESENT)
		return qhca_s2_upgrade(vf, tree, addr, entry, write, device);
	/*
	 * Nodes are made for pages that exist alone, so that a function cannot
	 * use up the host's memory by faults.
	 */
	err = qhca_s2_pin(vf, addr, write, &page, &entry);
	if (err)
		return err;
	if (device)
		entry |= QHCA_ATE_PINNED;
	err = qhca_s2_map(vf, page, &entry);
	if (err) {
		vfio_unpin_pages(&vf->core.vdev, addr, 1);
		return err;
	}
	++*qhca_s2_count(vf, entry);
	err = qhca_s2_tree_set(vf, tree, addr, entry);
	if (err)
		qhca_s2_drop(vf, addr, entry);
	return err;
}

/* Give a page up that no tree names. */
void qhca_s2_drop(struct qhca_vfio *vf, u64 addr, u64 entry)
{
	lockdep_assert_held(&vf->lock);
	dma_unmap_page(&vf->core.pdev->dev, entry & QHCA_ATE_ADDR, PAGE_SIZE,
		       qhca_s2_direction(entry));
	vfio_unpin_pages(&vf->core.vdev, addr, 1);
	--*qhca_s2_count(vf, entry);
}

static void qhca_s2_tree_free(struct qhca_vfio *vf, struct qhca_s2_tree *tree)
{
	qhca_s2_tree_clear(vf, tree, 0, QHCA_S2_MAX_ADDR);
	qhca_s2_tree_release(vf, tree, 0, QHCA_S2_MAX_ADDR);
	qhca_s2_node_free(vf, tree->root);
	kfree(tree);
}

/* Pairs with the release in qhca_s2_replaced(). */
static bool qhca_s2_is_quiet(struct qhca_s2_tree *tree)
{
	/* After this, what the device did with the tree is complete. */
	return smp_load_acquire(&tree->quiet);
}

/* The first tree that was replaced, if it can be emptied or @wait says so. */
static struct qhca_s2_tree *qhca_s2_take_dead(struct qhca_vfio *vf, bool wait)
{
	struct qhca_s2_tree *tree;

	spin_lock(&vf->tree_lock);
	tree = list_first_entry_or_null(&vf->dead, struct qhca_s2_tree, entry);
	if (tree && !wait && !qhca_s2_is_quiet(tree))
		tree = NULL;
	if (tree)
		list_del(&tree->entry);
	spin_unlock(&vf->tree_lock);
	return tree;
}

/**
 * qhca_s2_reap - empty the trees that have been replaced
 * @vf:   function
 * @wait: wait for those that the device may still use; otherwise the work item
 *	takes them later
 *
 * Who replaces a tree does not take the lock, so that it can be waited for.
 *
 * Context: process, @vf->lock held.
 */
void qhca_s2_reap(struct qhca_vfio *vf, bool wait)
{
	struct qhca_s2_tree *tree;

	lockdep_assert_held(&vf->lock);
	while ((tree = qhca_s2_take_dead(vf, wait))) {
		wait_event(vf->wait, qhca_s2_is_quiet(tree));
		/* The device has not acknowledged it. */
		if (READ_ONCE(vf->broken))
			qhca_s2_silence(vf);
		qhca_s2_tree_free(vf, tree);
	}
}

/**
 * qhca_s2_unmap - the process takes a range away
 * @vdev:   device
 * @iova:   first address
 * @length: bytes
 *
 * When this returns, nothing of the range is pinned, and the device reaches
 * nothing of it.
 */
void qhca_s2_unmap(struct vfio_device *vdev, u64 iova, u64 length)
{
	struct qhca_vfio *vf = qhca_vfio_of(vdev);
	u64 last = min(iova + length - 1, QHCA_S2_MAX_ADDR);
	struct qhca_s2_tree *tree;

	if (!length || iova > last)
		return;
	mutex_lock(&vf->lock);
	qhca_s2_hold(vf, iova, last);
	tree = qhca_s2_live(vf);
	if (tree && qhca_s2_tree_clear(vf, tree, iova, last)) {
		vf->stats.invalidations++;
		if (qhca_stage2_invalidate(&vf->s2, iova, last - iova + 1))
			qhca_s2_unacknowledged(vf, tree);
		qhca_s2_tree_release(vf, tree, iova, last);
	}
	/* Others that may name pages of the range. */
	qhca_s2_reap(vf, true);
	mutex_unlock(&vf->lock);
}
