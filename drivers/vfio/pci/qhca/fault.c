// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the device asks for: pages of payload that a function has accessed, and
 * memory that a command of the function gives to the device.
 *
 * Faults come in interrupts.  A work item serves them one after the other, as
 * VFIO pins one page at a time for a container anyway.
 *
 * A direction of a queue pair has one fault that waits.  But the function's software
 * can reset the queue pair, or the function, and let it fault again, faster than
 * memory is read from storage.  The device has forgotten the older fault then, and
 * the driver cannot know.  So the number of faults that are noted has a limit.
 *
 * If a fault cannot be noted, the function gets new tables, and dies of that: its
 * software learns of it and recovers, while it would wait forever for a fault that
 * is not answered.
 */
#include <linux/slab.h>

#include "qhca_vfio.h"

/**
 * struct qhca_s2_fault - a fault or pin request
 * @entry:  in the list of faults
 * @addr:   first address wanted
 * @length: bytes wanted
 * @token:  for the answer
 * @write:  the memory must be writable
 * @device: the device itself needs it
 */
struct qhca_s2_fault {
	struct llist_node entry;
	u64 addr;
	u64 length;
	u32 token;
	bool write;
	bool device;
};

/* Events come one after the other, so that the limit is kept. */
static struct qhca_s2_fault *qhca_s2_new_fault(struct qhca_vfio *vf)
{
	struct qhca_s2_fault *fault;

	if (atomic_long_read(&vf->noted) >= QHCA_S2_MAX_FAULTS)
		return NULL;
	fault = mempool_alloc(vf->pool, GFP_ATOMIC);
	if (fault)
		atomic_long_inc(&vf->noted);
	return fault;
}

/* An event of the physical function.  Hard interrupts. */
void qhca_s2_fault(void *priv, const struct qhca_eqe *eqe)
{
	struct qhca_vfio *vf = priv;
	struct qhca_s2_fault *fault = qhca_s2_new_fault(vf);

	if (fault) {
		fault->addr = le64_to_cpu(eqe->fault.addr);
		fault->length = le64_to_cpu(eqe->fault.length);
		fault->token = le32_to_cpu(eqe->fault.token);
		fault->write = le32_to_cpu(eqe->fault.flags) & QHCA_FAULT_WRITE;
		fault->device = le32_to_cpu(eqe->detail) == QHCA_STAGE2_PIN;
		llist_add(&fault->entry, &vf->faults);
	} else {
		WRITE_ONCE(vf->lost, true);
	}
	queue_work(vf->wq, &vf->work);
}

/*
 * The first page decides.  Those behind it are brought in as far as they can be:
 * the device asks again for what is missing.
 */
static int qhca_s2_fill_range(struct qhca_vfio *vf, struct qhca_s2_tree *tree,
			      const struct qhca_s2_fault *fault)
{
	u64 addr = fault->addr & QHCA_ATE_ADDR, last;
	unsigned int n;
	int err;

	if (addr > QHCA_S2_MAX_ADDR)
		return -EINVAL;
	/* The length is the function's, which is not to be trusted. */
	if (check_add_overflow(fault->addr, max(fault->length, 1ull) - 1, &last))
		last = QHCA_S2_MAX_ADDR;
	last = min(last, QHCA_S2_MAX_ADDR);
	for (n = 0; n < QHCA_S2_FAULT_PAGES && addr <= last; n++) {
		if (n && qhca_s2_held(vf, addr))
			return 0;
		err = qhca_s2_fill(vf, tree, addr, fault->write, fault->device);
		if (err)
			return n ? 0 : err;
		addr += PAGE_SIZE;
	}
	return 0;
}

/* Take the lock when the page may be brought in.  Returns the live tree. */
static struct qhca_s2_tree *qhca_s2_lock_for(struct qhca_vfio *vf, u64 addr)
{
	struct qhca_s2_tree *tree;

	for (;;) {
		mutex_lock(&vf->lock);
		tree = qhca_s2_live(vf);
		if (!tree || !qhca_s2_held(vf, addr))
			return tree;
		mutex_unlock(&vf->lock);
		wait_event(vf->wait, !qhca_s2_held(vf, addr) ||
			   READ_ONCE(vf->live) != tree);
	}
}

static void qhca_s2_serve(struct qhca_vfio *vf,
			  const struct qhca_s2_fault *fault)
{
	struct qhca_s2_tree *tree = qhca_s2_lock_for(vf, fault->addr);
	int err = -ENODEV;

	if (tree)
		err = qhca_s2_fill_range(vf, tree, fault);
	if (fault->device)
		vf->stats.pin_requests++;
	else
		vf->stats.faults++;
	if (err) {
		vf->stats.refused++;
		dev_dbg(&vf->core.pdev->dev, "no page at %#llx%s: %d\n",
			fault->addr, fault->device ? " for the device" : "",
			err);
	}
	mutex_unlock(&vf->lock);
	/*
	 * If the function was reset meanwhile the device does not know the
	 * token, and there is nothing to resume.
	 */
	qhca_stage2_resume(&vf->s2, fault->token, !err);
}

static void qhca_s2_work(struct work_struct *work)
{
	struct qhca_vfio *vf = container_of(work, struct qhca_vfio, work);
	struct qhca_s2_fault *fault, *next;
	struct llist_node *list;

	mutex_lock(&vf->lock);
	qhca_s2_reap(vf, false);
	mutex_unlock(&vf->lock);

	list = llist_reverse_order(llist_del_all(&vf->faults));
	llist_for_each_entry_safe(fault, next, list, entry) {
		qhca_s2_serve(vf, fault);
		mempool_free(fault, vf->pool);
		atomic_long_dec(&vf->noted);
	}
	if (xchg(&vf->lost, false)) {
		dev_err_ratelimited(&vf->core.pdev->dev,
				    "a fault could not be noted; the function is stopped\n");
		qhca_s2_reset(vf);
	}
}

int qhca_s2_faults_init(struct qhca_vfio *vf)
{
	init_llist_head(&vf->faults);
	INIT_WORK(&vf->work, qhca_s2_work);
	vf->pool = mempool_create_kmalloc_pool(QHCA_S2_SPARE_FAULTS,
					       sizeof(struct qhca_s2_fault));
	if (!vf->pool)
		return -ENOMEM;
	/*
	 * A queue for each function: serving its faults may take as long as its
	 * memory takes to be read from storage.  Reclaim never waits for a
	 * fault.
	 */
	vf->wq = alloc_workqueue("qhca-vfio-%s", WQ_UNBOUND, 0,
				 pci_name(vf->core.pdev));
	if (!vf->wq) {
		mempool_destroy(vf->pool);
		return -ENOMEM;
	}
	return 0;
}

/* No event comes any more. */
void qhca_s2_faults_exit(struct qhca_vfio *vf)
{
	destroy_workqueue(vf->wq);
	mempool_destroy(vf->pool);
}
