// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The page faults of the device.
 *
 * The device reports a page fault by an event.  A work item brings the pages
 * in, see odp_page.c, and lets that direction of the QP go on.  The
 * deregistration of the region lets it go on, too, without waiting for a page.
 */
#include "odp.h"

/*
 * Find the region of a fault, and the offset in the region's translated space.
 * Returns the region with a reference and with the fault in its list, or NULL
 * if there is no such region.
 */
static struct qhca_odp *qhca_odp_find(struct qhca_ib_dev *dev,
				      struct qhca_fault *fault,
				      const struct qhca_fault_info *info,
				      u64 *offset)
{
	u32 index = QHCA_KEY_INDEX(le32_to_cpu(info->key));
	u64 addr = le64_to_cpu(info->addr);
	struct qhca_odp *odp;
	struct qhca_mw *mw;
	struct qhca_pte *pte;

	/*
	 * While it is in the xarray, a window keeps its entry and its region.
	 */
	xa_lock(&dev->mws);
	mw = xa_load(&dev->mws, index);
	if (mw) {
		pte = qhca_pte(dev->qdev, index);
		*offset = addr - le64_to_cpu(pte->start) +
			  le64_to_cpu(pte->at_offset);
		index = le32_to_cpu(pte->at_key);
	}
	xa_unlock(&dev->mws);

	odp = qhca_odp_get(dev, index, fault);
	if (odp && !mw)
		*offset = addr - odp->start + odp->skip;
	return odp;
}

static void qhca_odp_resume(struct qhca_ib_dev *dev, u32 token, bool ok)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_FAULT_RESUME,
		.index = token,
		.param = ok ? QHCA_RESUME_OK : QHCA_RESUME_FAIL,
	};

	/*
	 * The entries are written before the command.  It fails if the QP is
	 * gone, and then there is nothing to resume.
	 */
	wmb();
	qhca_cmd_exec(dev->qdev, &cmd);
}

static void qhca_faults_put(struct qhca_faults *faults)
{
	if (refcount_dec_and_test(&faults->ref))
		kfree(faults);
}

/*
 * @fault has its page, or will never have it.  Returns false if the region has
 * been deregistered meanwhile, so that the QP goes on already.
 */
static bool qhca_fault_leave(struct qhca_ib_dev *dev, struct qhca_fault *fault)
{
	bool waits;

	xa_lock(&dev->odps);
	waits = !list_empty(&fault->entry);
	list_del_init(&fault->entry);
	xa_unlock(&dev->odps);
	return waits;
}

/**
 * qhca_odp_end_faults - let all QPs go on that wait for pages of a region
 * @odp: the region, whose key has ended and which no fault finds any more
 *
 * The device tries the accesses again, and refuses them because the key has
 * ended.  Work items that serve the faults may still wait for pages; afterwards
 * they find nothing to do.  Sleeps.
 */
void qhca_odp_end_faults(struct qhca_odp *odp)
{
	struct qhca_ib_dev *dev = odp->dev;
	struct qhca_fault *fault;
	u32 token = 0;

	for (;;) {
		xa_lock(&dev->odps);
		fault = list_first_entry_or_null(&odp->served,
						 struct qhca_fault, entry);
		if (fault) {
			list_del_init(&fault->entry);
			token = fault->token;
		}
		xa_unlock(&dev->odps);
		if (!fault)
			return;
		qhca_odp_resume(dev, token, true);
	}
}

static void qhca_fault_work(struct work_struct *work)
{
	struct qhca_fault *fault = container_of(work, struct qhca_fault, work);
	struct qhca_faults *faults = fault->faults;
	struct qhca_ib_dev *dev = faults->dev;
	struct qhca_fault_info info;
	struct qhca_odp *odp;
	bool waits = true;
	u64 offset = 0;
	int err = 0;

	spin_lock_irq(&faults->lock);
	info = fault->info;
	spin_unlock_irq(&faults->lock);
	fault->token = le32_to_cpu(info.token);

	/*
	 * If there is no region, the device will find that its key has ended.
	 */
	odp = qhca_odp_find(dev, fault, &info, &offset);
	if (odp) {
		err = qhca_odp_fault(odp, offset, le64_to_cpu(info.length),
				     le32_to_cpu(info.flags) &
				     QHCA_FAULT_WRITE);
		waits = qhca_fault_leave(dev, fault);
		qhca_odp_put(odp);
	}
	if (err && waits)
		ibdev_dbg(&dev->ibdev, "qp %u key %#x: no page at %#llx: %d\n",
			  faults->qpn, le32_to_cpu(info.key),
			  le64_to_cpu(info.addr), err);
	if (waits)
		qhca_odp_resume(dev, fault->token, !err);

	spin_lock_irq(&faults->lock);
	fault->queued--;
	spin_unlock_irq(&faults->lock);
	if (fault->spare)
		kfree(fault);
	qhca_faults_put(faults);
}

static void qhca_fault_init(struct qhca_fault *fault,
			    struct qhca_faults *faults)
{
	fault->faults = faults;
	INIT_WORK(&fault->work, qhca_fault_work);
	INIT_LIST_HEAD(&fault->entry);
}

/* Called before the device knows the QP. */
int qhca_odp_init_qp(struct qhca_ib_dev *dev, struct qhca_qp *qp)
{
	struct qhca_faults *faults;
	int i;

	if (!qhca_has(dev, QHCA_FEAT_ODP))
		return 0;
	faults = kzalloc_obj(*faults, GFP_KERNEL_ACCOUNT);
	if (!faults)
		return -ENOMEM;
	faults->dev = dev;
	refcount_set(&faults->ref, 1);
	spin_lock_init(&faults->lock);
	for (i = 0; i < ARRAY_SIZE(faults->dir); i++)
		qhca_fault_init(&faults->dir[i], faults);
	qp->faults = faults;
	return 0;
}

/* Called when no event finds the QP any more. */
void qhca_odp_exit_qp(struct qhca_qp *qp)
{
	if (qp->faults)
		qhca_faults_put(qp->faults);
	qp->faults = NULL;
}

/*
 * The device waits for at most one page in each direction of a QP.  If the
 * driver still serves an earlier fault, the region or the connection of that
 * one is gone, and it must not delay a QP that is used anew.  So the new fault
 * gets a structure of its own.  If there is no memory for one, the new fault is
 * served after the earlier one.
 */
static struct qhca_fault *qhca_fault_place(struct qhca_faults *faults,
					   bool requester)
{
	struct qhca_fault *fault = &faults->dir[requester], *spare;

	lockdep_assert_held(&faults->lock);
	if (!fault->queued)
		return fault;
	spare = kzalloc(sizeof(*spare), GFP_ATOMIC);
	if (!spare)
		return fault;
	qhca_fault_init(spare, faults);
	spare->spare = true;
	return spare;
}

/* Called in hard interrupts. */
void qhca_odp_event(struct qhca_ib_dev *dev, const struct qhca_eqe *eqe)
{
	bool requester = le32_to_cpu(eqe->fault.flags) & QHCA_FAULT_REQUESTER;
	struct qhca_faults *faults;
	struct qhca_fault *fault;
	unsigned long flags;
	struct qhca_qp *qp;
	bool queued;

	qp = qhca_qp_get(dev, le32_to_cpu(eqe->number));
	if (!qp)
		return;
	faults = qp->faults;
	if (!WARN_ON_ONCE(!faults)) {
		refcount_inc(&faults->ref);
		spin_lock_irqsave(&faults->lock, flags);
		faults->qpn = qp->qpn;
		fault = qhca_fault_place(faults, requester);
		fault->info = eqe->fault;
		queued = queue_work(dev->fault_wq, &fault->work);
		fault->queued += queued;
		spin_unlock_irqrestore(&faults->lock, flags);
		if (!queued)
			qhca_faults_put(faults);
	}
	qhca_ref_put(&qp->ref);
}
