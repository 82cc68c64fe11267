// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Keys, and the entries of the protection table that they name.
 *
 * A key consists of the index of its entry and a low octet.  Each use of an
 * index gets another octet, so that a key which outlives its region is
 * refused.  The entry of a freed index keeps the last octet.
 *
 * The device writes to the entries that work requests change: those of windows
 * and of fast registrations, and the number of windows in those of regions.
 * Such a write may happen at the same time as one of the driver's.  So the
 * procedures that end an entry read it again after the device has invalidated
 * it, and repeat what the device has undone.
 */
#include "mem.h"

u32 qhca_hw_access(int access)
{
	u32 hw = 0;

	if (access & IB_ACCESS_LOCAL_WRITE)
		hw |= QHCA_ACCESS_LOCAL_WRITE;
	if (access & IB_ACCESS_REMOTE_WRITE)
		hw |= QHCA_ACCESS_REMOTE_WRITE;
	if (access & IB_ACCESS_REMOTE_READ)
		hw |= QHCA_ACCESS_REMOTE_READ;
	if (access & IB_ACCESS_REMOTE_ATOMIC)
		hw |= QHCA_ACCESS_REMOTE_ATOMIC;
	if (access & IB_ACCESS_MW_BIND)
		hw |= QHCA_ACCESS_MW_BIND;
	if (access & IB_ZERO_BASED)
		hw |= QHCA_ACCESS_ZERO_BASED;
	if (access & IB_ACCESS_FLUSH_GLOBAL)
		hw |= QHCA_ACCESS_FLUSH_GLOBAL;
	if (access & IB_ACCESS_FLUSH_PERSISTENT)
		hw |= QHCA_ACCESS_FLUSH_PERSISTENT;
	return hw;
}

int qhca_key_alloc(struct qhca_ib_dev *dev, u32 *index, u32 *key)
{
	u32 ctrl;
	int err;

	err = qhca_index_alloc(dev->qdev, QHCA_TABLE_PT, index);
	if (err)
		return err;

	ctrl = le32_to_cpu(READ_ONCE(qhca_pte(dev->qdev, *index)->ctrl));
	*key = *index << 8 |
	       QHCA_KEY_OCTET(QHCA_GET(QHCA_PTE_OCTET, ctrl) + 1);
	return 0;
}

/*
 * The device takes the entry for valid once @ctrl is written, so that is last.
 */
void qhca_key_publish(struct qhca_ib_dev *dev, u32 index,
		      const struct qhca_pte *pte, u32 ctrl)
{
	struct qhca_pte *hw = qhca_pte(dev->qdev, index);

	hw->access = pte->access;
	hw->pd = pte->pd;
	hw->at_key = cpu_to_le32(index);
	hw->start = pte->start;
	hw->length = pte->length;
	hw->at_base = pte->at_base;
	hw->at_offset = pte->at_offset;
	hw->qpn = 0;
	hw->gvmi = cpu_to_le32(dev->qdev->gvmi);
	hw->windows = 0;
	hw->pool_block = pte->pool_block;
	dma_wmb();
	WRITE_ONCE(hw->ctrl, cpu_to_le32(ctrl));
}

/*
 * When this returns the device has dropped its copies of what @what names and
 * has finished all accesses that used them, or it is dead.
 */
void qhca_key_invalidate(struct qhca_ib_dev *dev, u32 index, u32 what)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_INVALIDATE_KEY,
		.index = index,
		.param = what,
	};

	/* The entry's new state is written before the command. */
	wmb();
	qhca_refused(dev, cmd.opcode, index, qhca_cmd_exec(dev->qdev, &cmd));
}

/*
 * Free the entries of all windows on a region whose key has ended.  The owners
 * of the windows keep the objects.  While the lock is held, no window gives its
 * index back.
 */
static void qhca_key_end_windows(struct qhca_ib_dev *dev, u32 index)
{
	const __le32 state = cpu_to_le32(QHCA_PTE_STATE);
	struct qhca_pte *pte;
	struct qhca_mw *mw;
	unsigned long i;
	bool on;

	xa_for_each(&dev->mws, i, mw) {
		on = false;
		xa_lock(&dev->mws);
		if (xa_load(&dev->mws, i)) {
			pte = qhca_pte(dev->qdev, i);
			on = le32_to_cpu(READ_ONCE(pte->at_key)) == index;
			if (on)
				WRITE_ONCE(pte->ctrl,
					   READ_ONCE(pte->ctrl) & ~state);
		}
		xa_unlock(&dev->mws);
		if (on)
			qhca_key_invalidate(dev, i, QHCA_INVAL_PT);
		cond_resched();
	}
}

/*
 * End the region of an entry and keep its octet.  While windows are bound to
 * the region this fails, unless @force is set: then the windows are ended,
 * too.  The device may execute a fast registration or a bind at the same time.
 * The former makes the entry valid again, so the loop repeats; the latter makes
 * the region busy.
 */
int qhca_key_end_region(struct qhca_ib_dev *dev, u32 index, bool force)
{
	struct qhca_pte *pte = qhca_pte(dev->qdev, index);
	__le32 old, freed;

	do {
		if (READ_ONCE(pte->windows) && !force && !qhca_is_dead(dev))
			return -EBUSY;
		old = READ_ONCE(pte->ctrl);
		freed = old & cpu_to_le32(QHCA_PTE_OCTET);
		WRITE_ONCE(pte->ctrl, freed);

		qhca_key_invalidate(dev, index, QHCA_INVAL_PT | QHCA_INVAL_AT);
		if (qhca_is_dead(dev))
			return 0;
		if (READ_ONCE(pte->windows) && force) {
			qhca_key_end_windows(dev, index);
		} else if (READ_ONCE(pte->windows)) {
			WRITE_ONCE(pte->ctrl, old);
			return -EBUSY;
		}
	} while (READ_ONCE(pte->ctrl) != freed || READ_ONCE(pte->windows));
	return 0;
}
