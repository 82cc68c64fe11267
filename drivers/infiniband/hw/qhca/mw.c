// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows: entries that only work requests make valid.
 */
#include "mem.h"

int qhca_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibmw->device);
	struct qhca_mw *mw = to_qmw(ibmw);
	bool type2 = ibmw->type == IB_MW_TYPE_2;
	struct qhca_pte pte = {
		.pd = cpu_to_le32(to_qpd(ibmw->pd)->pdn),
	};
	u32 ctrl;
	int err;

	err = ib_no_udata_io(udata);
	if (err)
		return err;
	if (!qhca_has(dev, type2 ? QHCA_FEAT_MW2B : QHCA_FEAT_MW1))
		return -EOPNOTSUPP;

	err = qhca_key_alloc(dev, &mw->index, &ibmw->rkey);
	if (err)
		return err;

	ctrl = QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_INVALIDATED) |
	       QHCA_PUT(QHCA_PTE_TYPE, type2 ? QHCA_PTE_MW2B : QHCA_PTE_MW1) |
	       QHCA_PUT(QHCA_PTE_OCTET, QHCA_KEY_OCTET(ibmw->rkey));
	if (type2)
		ctrl |= QHCA_PTE_REMOTE_INV;
	err = xa_err(xa_store(&dev->mws, mw->index, mw, GFP_KERNEL));
	if (err) {
		qhca_index_free(dev->qdev, QHCA_TABLE_PT, mw->index);
		return err;
	}
	qhca_key_publish(dev, mw->index, &pte, ctrl);
	return 0;
}

/*
 * With the invalidation the device also takes the window off the count of its
 * region.  The entry therefore keeps the type of a window when it becomes free.
 * A bind that the device executes at the same time makes the entry valid again,
 * so the driver repeats the procedure until the entry stays free.
 */
int qhca_dealloc_mw(struct ib_mw *ibmw)
{
	struct qhca_ib_dev *dev = to_qhca(ibmw->device);
	struct qhca_mw *mw = to_qmw(ibmw);
	struct qhca_pte *pte = qhca_pte(dev->qdev, mw->index);
	const __le32 state = cpu_to_le32(QHCA_PTE_STATE);

	do {
		WRITE_ONCE(pte->ctrl, READ_ONCE(pte->ctrl) & ~state);
		qhca_key_invalidate(dev, mw->index, QHCA_INVAL_PT);
	} while (!qhca_is_dead(dev) &&
		 (READ_ONCE(pte->ctrl) & state || READ_ONCE(pte->windows)));

	xa_erase(&dev->mws, mw->index);
	qhca_index_free(dev->qdev, QHCA_TABLE_PT, mw->index);
	return 0;
}
