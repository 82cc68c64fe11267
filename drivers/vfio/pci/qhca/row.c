// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The life of a function: which tree the device uses.
 *
 * Each life begins with an empty tree: when a user opens the device, when the
 * function is reset at the level of PCI, and when the physical function has been
 * reset and has lost the row.  The tree of before is dead then, and what it had
 * pinned is given up; a user who closes the device, or dies, leaves nothing.
 *
 * A reset by the function's own registers is not seen here.  What was pinned
 * for the device stays pinned, and serves the next life of the function.
 *
 * To give memory up takes the acknowledgement of the physical function.  While
 * that one is dead or being reset it gives none, but the virtual function may
 * still be running.  Then its bus mastering is switched off, which ends its DMA,
 * and the user cannot switch it on again before there is a new tree: the
 * function is "broken".
 */
#include <linux/pci.h>

#include "qhca_vfio.h"

struct qhca_s2_tree *qhca_s2_live(struct qhca_vfio *vf)
{
	struct qhca_s2_tree *tree;

	lockdep_assert_held(&vf->lock);
	spin_lock(&vf->tree_lock);
	tree = vf->live;
	spin_unlock(&vf->tree_lock);
	return tree;
}

/* Returns the tree of before, which the device may still use. */
static struct qhca_s2_tree *qhca_s2_replace(struct qhca_vfio *vf,
					    struct qhca_s2_tree *tree)
{
	struct qhca_s2_tree *old;

	lockdep_assert_held(&vf->row_lock);
	spin_lock(&vf->tree_lock);
	old = vf->live;
	if (old)
		list_add_tail(&old->entry, &vf->dead);
	vf->live = tree;
	spin_unlock(&vf->tree_lock);
	return old;
}

/**
 * qhca_s2_silence - wait until a function that is broken is silent
 * @vf: function
 *
 * Bus mastering is off by now, but a call of the user under way that has not seen
 * that may undo it for a moment.  When this returns there is no DMA by what the
 * function could reach before it broke.  If it is broken no longer, the device has
 * got another tree since, and there is none either.
 *
 * Must not be called in a write to the configuration space, nor in a change of
 * interrupts.
 */
void qhca_s2_silence(struct qhca_vfio *vf)
{
	synchronize_srcu(&vf->srcu);
}

/**
 * qhca_s2_unacknowledged - the physical function has failed to invalidate
 * @vf:   function
 * @tree: tree that was the live one when entries of it were cleared
 *
 * When this returns the device does not use these entries.  The physical function
 * may be up again, and then the device has got another tree: a function that has
 * been given a new life is left alone.
 */
void qhca_s2_unacknowledged(struct qhca_vfio *vf, struct qhca_s2_tree *tree)
{
	lockdep_assert_held(&vf->lock);
	mutex_lock(&vf->row_lock);
	if (qhca_s2_live(vf) == tree)
		qhca_vfio_set_broken(vf, true);
	mutex_unlock(&vf->row_lock);
	/* Also if it was broken because it could not get another tree. */
	if (READ_ONCE(vf->broken))
		qhca_s2_silence(vf);
}

/*
 * The device has got another tree than @old, or @err.  In the latter case the
 * function is broken, and qhca_s2_reap() waits for its silence.
 */
static void qhca_s2_replaced(struct qhca_vfio *vf, struct qhca_s2_tree *old,
			     int err)
{
	qhca_vfio_set_broken(vf, err);
	/* All this before; whoever sees the tree quiet may free it. */
	if (old)
		smp_store_release(&old->quiet, true);
	wake_up_all(&vf->wait);
	queue_work(vf->wq, &vf->work);
}

/*
 * Begin a new life.  If there is no memory for a tree the function gets one
 * that is always empty; all its accesses fail until it is reset again.
 */
static int qhca_s2_renew(struct qhca_vfio *vf)
{
	struct qhca_s2_tree *tree = qhca_s2_tree_alloc(vf);
	struct qhca_s2_node *root = tree ? tree->root : vf->empty;
	struct qhca_s2_tree *old;
	int err;

	lockdep_assert_held(&vf->row_lock);
	old = qhca_s2_replace(vf, tree);
	err = qhca_stage2_set(&vf->s2, root->dma, QHCA_S2_PAGE_SHIFT,
			      QHCA_S2_LEVELS);
	qhca_s2_replaced(vf, old, err);
	atomic_long_inc(&vf->stats.tables);
	return err;
}

/* The function is silent and has been reset; its user is about to get it. */
int qhca_s2_open(struct qhca_vfio *vf)
{
	int err = -ENOMEM;

	qhca_vfio_want_master(vf, false);
	vf->empty = qhca_s2_node_alloc(vf, 1);
	if (!vf->empty)
		return err;
	mutex_lock(&vf->row_lock);
	vf->open = true;
	err = qhca_s2_renew(vf);
	mutex_unlock(&vf->row_lock);
	if (err)
		qhca_s2_close(vf);
	return err;
}

/* The user is gone: from now on nobody switches bus mastering on. */
void qhca_s2_leave(struct qhca_vfio *vf)
{
	qhca_vfio_want_master(vf, false);
}

/* The function has been reset, and bus mastering is off. */
void qhca_s2_close(struct qhca_vfio *vf)
{
	struct qhca_s2_tree *old;

	mutex_lock(&vf->row_lock);
	vf->open = false;
	old = qhca_s2_replace(vf, NULL);
	qhca_s2_replaced(vf, old, qhca_stage2_unset(&vf->s2));
	mutex_unlock(&vf->row_lock);

	/* Faults under way; those that follow find no tree. */
	flush_work(&vf->work);
	mutex_lock(&vf->lock);
	qhca_s2_reap(vf, true);
	mutex_unlock(&vf->lock);
	qhca_s2_node_free(vf, vf->empty);
	vf->empty = NULL;
}

/*
 * The function was reset, or has to die.  Called with the semaphore of the BARs
 * held, or in the work item; see qhca_vfio.h.
 */
void qhca_s2_reset(struct qhca_vfio *vf)
{
	mutex_lock(&vf->row_lock);
	if (vf->open)
		qhca_s2_renew(vf);
	mutex_unlock(&vf->row_lock);
}

/*
 * A reset of the physical function that was more than a device reset has reset the
 * configuration space of its virtual functions, too.  Otherwise the interrupts are in
 * use, and the kernel may be changing them.  If it is just switching MSI-X off, this
 * may switch it on once more, with all entries masked, until it is used again.
 */
static void qhca_s2_restore_msix(struct pci_dev *pdev)
{
	u16 control;

	if (!pdev->msix_enabled)
		return;
	pci_read_config_word(pdev, pdev->msix_cap + PCI_MSIX_FLAGS, &control);
	if (!(control & PCI_MSIX_FLAGS_ENABLE))
		pci_restore_msi_state(pdev);
}

/*
 * The physical function is up again, and has lost the row: the function is
 * dead, and can be brought back by its own software once it has a tree.
 *
 * If the user left meanwhile, stage 2 is still to be switched off, for the driver
 * that the function is bound to next.
 */
void qhca_s2_restart(void *priv)
{
	struct qhca_vfio *vf = priv;

	mutex_lock(&vf->row_lock);
	if (!vf->open) {
		qhca_stage2_unset(&vf->s2);
	} else {
		qhca_s2_restore_msix(vf->core.pdev);
		qhca_s2_renew(vf);
	}
	mutex_unlock(&vf->row_lock);
}
