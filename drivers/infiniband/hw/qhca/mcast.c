// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Multicast membership of datagram QPs.
 *
 * The device has one membership for each pair of QP and group.  The core
 * attaches a QP once for each pair of group and LID, because LIDs mean
 * something on InfiniBand, and it keeps the QP busy until each of those
 * attachments has been detached.  So the driver counts the attachments: the
 * first makes the membership and the last ends it.
 *
 * The core ignores the LID for a port that is Ethernet, but it drops its own
 * record of an attachment before it calls the driver, and takes the QP's use
 * count back only if the driver reports success.  A detachment that failed
 * would therefore make the QP, its CQs and its PD impossible to destroy.
 */
#include <linux/slab.h>

#include "queue.h"

/**
 * struct qhca_mcast - a group that a QP is attached to
 * @entry: in qhca_qp.mcasts, under the QP's mutex
 * @gid:   the group
 * @count: attachments that the core has made and not undone, at least 1
 */
struct qhca_mcast {
	struct list_head entry;
	union ib_gid gid;
	u32 count;
};

static struct qhca_mcast *qhca_mcast_find(struct qhca_qp *qp,
					  const union ib_gid *gid)
{
	struct qhca_mcast *mcast;

	lockdep_assert_held(&qp->mutex);
	list_for_each_entry(mcast, &qp->mcasts, entry)
		if (!memcmp(mcast->gid.raw, gid->raw, sizeof(gid->raw)))
			return mcast;
	return NULL;
}

static int qhca_mcast_cmd(struct qhca_qp *qp, const union ib_gid *gid,
			  u16 opcode)
{
	struct qhca_mgid mgid;

	memcpy(mgid.gid, gid->raw, sizeof(mgid.gid));
	return qhca_create_object(to_qhca(qp->ibqp.device), opcode, qp->qpn,
				  &mgid, sizeof(mgid));
}

static int qhca_mcast_join(struct qhca_qp *qp, const union ib_gid *gid)
{
	struct qhca_mcast *mcast;
	int err;

	mcast = kzalloc_obj(*mcast);
	if (!mcast)
		return -ENOMEM;
	mcast->gid = *gid;
	mcast->count = 1;

	err = qhca_mcast_cmd(qp, gid, QHCA_CMD_ATTACH_MCAST);
	if (err) {
		kfree(mcast);
		return err;
	}
	list_add(&mcast->entry, &qp->mcasts);
	return 0;
}

/*
 * The caller can do nothing if the device refuses: the device is dead, or has
 * no such membership.  The device ends what is left together with the QP.
 */
static void qhca_mcast_leave(struct qhca_qp *qp, struct qhca_mcast *mcast)
{
	struct qhca_ib_dev *dev = to_qhca(qp->ibqp.device);
	int err;

	err = qhca_mcast_cmd(qp, &mcast->gid, QHCA_CMD_DETACH_MCAST);
	if (err && !qhca_is_dead(dev))
		ibdev_warn(&dev->ibdev, "QP %u not taken out of %pI6: %d\n",
			   qp->qpn, mcast->gid.raw, err);
	list_del(&mcast->entry);
	kfree(mcast);
}

int qhca_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	struct qhca_mcast *mcast;
	int err = 0;

	mutex_lock(&qp->mutex);
	mcast = qhca_mcast_find(qp, gid);
	if (mcast)
		mcast->count++;
	else
		err = qhca_mcast_join(qp, gid);
	mutex_unlock(&qp->mutex);
	return err;
}

/* Fails only for a caller who has never attached the QP to the group. */
int qhca_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct qhca_qp *qp = to_qqp(ibqp);
	struct qhca_mcast *mcast;

	mutex_lock(&qp->mutex);
	mcast = qhca_mcast_find(qp, gid);
	if (mcast && !--mcast->count)
		qhca_mcast_leave(qp, mcast);
	mutex_unlock(&qp->mutex);
	return mcast ? 0 : -EINVAL;
}
