// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Ranges that VFIO is taking away.
 *
 * VFIO calls the driver before it forgets a range, and looks afterwards whether a
 * page of it is pinned.  If one is, it calls again; type 1 stops the kernel after
 * eleven calls.  But the function may fault in the range at any time.  So its faults
 * there wait until the thread in which VFIO has called is back in user space.  The
 * range is gone then, or the process has mapped it anew.
 */
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/task_work.h>

#include "qhca_vfio.h"

/**
 * struct qhca_s2_hold - a range that VFIO is taking away
 * @work:  runs when the thread returns to user space
 * @entry: in the list of holds
 * @vf:    function
 * @task:  the thread, which takes one range away at a time
 * @first: first address
 * @last:  last address
 */
struct qhca_s2_hold {
	struct callback_head work;
	struct list_head entry;
	struct qhca_vfio *vf;
	struct task_struct *task;
	u64 first;
	u64 last;
};

static struct qhca_s2_hold *qhca_s2_find_hold(struct qhca_vfio *vf,
					      struct task_struct *task)
{
	struct qhca_s2_hold *hold;

	list_for_each_entry(hold, &vf->holds, entry)
		if (hold->task == task)
			return hold;
	return NULL;
}

static void qhca_s2_end_hold(struct callback_head *work)
{
	struct qhca_s2_hold *hold = container_of(work, struct qhca_s2_hold,
						 work);
	struct qhca_vfio *vf = hold->vf;

	spin_lock(&vf->tree_lock);
	list_del(&hold->entry);
	/* Whoever waits for the last hold to end takes the lock, too. */
	wake_up_all(&vf->wait);
	spin_unlock(&vf->tree_lock);
	kfree(hold);
}

/**
 * qhca_s2_hold - let faults in a range wait for the calling thread
 * @vf:    function
 * @first: first address
 * @last:  last address
 *
 * Faults in a range that the thread has named earlier in the same system call do
 * not wait any more.  Without memory, or in a thread that is about to end, faults do
 * not wait: then VFIO may have to call again.
 */
void qhca_s2_hold(struct qhca_vfio *vf, u64 first, u64 last)
{
	struct qhca_s2_hold *hold, *new = NULL;

	if (!(current->flags & PF_KTHREAD))
		new = kzalloc(sizeof(*new), GFP_KERNEL);
	spin_lock(&vf->tree_lock);
	hold = qhca_s2_find_hold(vf, current);
	if (!hold && new) {
		hold = new;
		hold->vf = vf;
		hold->task = current;
		list_add_tail(&hold->entry, &vf->holds);
	}
	if (hold) {
		hold->first = first;
		hold->last = last;
	}
	spin_unlock(&vf->tree_lock);
	if (!new || hold != new) {
		kfree(new);
		return;
	}
	init_task_work(&hold->work, qhca_s2_end_hold);
	if (task_work_add(current, &hold->work, TWA_RESUME))
		qhca_s2_end_hold(&hold->work);
}

/* Must a fault at @addr wait? */
bool qhca_s2_held(struct qhca_vfio *vf, u64 addr)
{
	struct qhca_s2_hold *hold;
	bool held = false;

	spin_lock(&vf->tree_lock);
	list_for_each_entry(hold, &vf->holds, entry)
		held |= addr >= hold->first && addr <= hold->last;
	spin_unlock(&vf->tree_lock);
	return held;
}

static bool qhca_s2_no_holds(struct qhca_vfio *vf)
{
	bool none;

	spin_lock(&vf->tree_lock);
	none = list_empty(&vf->holds);
	spin_unlock(&vf->tree_lock);
	return none;
}

/* VFIO calls no more; wait for the threads in which it has called. */
void qhca_s2_holds_end(struct qhca_vfio *vf)
{
	wait_event(vf->wait, qhca_s2_no_holds(vf));
}
