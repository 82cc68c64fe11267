// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The configuration space as its user writes it, and bus mastering.
 *
 * The user writes the command register by way of VFIO's library, which also writes
 * it back as it was after each step of a change of interrupts, when nobody has asked
 * for that.  The driver writes it, too: it ends the function's DMA when the physical
 * function cannot be asked to, and puts back what the user had set when that one has
 * returned.  Each reads the register, changes it, and writes it.  The library does so
 * without a lock that the driver could take elsewhere: it waits for a semaphore that
 * the callers of a reset hold.
 *
 * So the register does not tell what the user wants.  The driver takes that from
 * the bytes that the user writes, and whoever has changed something sets the
 * register afterwards, under a lock, to what all of them want.  Bus Master Enable
 * is the only bit of the register that a virtual function has, so that there is no
 * other to lose.
 *
 * Calls of the user are one at a time, up to the end of what they set afterwards.  A
 * call that began after the function broke would otherwise read what one from before
 * has just undone, and write it when nobody waits any more.
 *
 * What the library does besides needs no such care.  A reset is followed by a new
 * life (row.c), which sets the register.  An expansion ROM, for which the library
 * writes the register as well, is nothing that a virtual function has; and without
 * the library's runtime power management no function is suspended.
 */
#include <linux/pci.h>
#include <linux/uaccess.h>

#include "qhca_vfio.h"

/* The user may have bus mastering on, unless the function is broken. */
static void qhca_vfio_set_master(struct qhca_vfio *vf)
{
	lockdep_assert_held(&vf->master_lock);
	if (vf->master && !READ_ONCE(vf->broken))
		pci_set_master(vf->core.pdev);
	else
		pci_clear_master(vf->core.pdev);
}

/**
 * qhca_vfio_want_master - note what the user wants
 * @vf:   function
 * @want: bus mastering is to be on
 */
void qhca_vfio_want_master(struct qhca_vfio *vf, bool want)
{
	spin_lock(&vf->master_lock);
	vf->master = want;
	qhca_vfio_set_master(vf);
	spin_unlock(&vf->master_lock);
}

/**
 * qhca_vfio_set_broken - bus mastering is off, and stays off; or no longer
 * @vf:     function
 * @broken: the function is broken
 *
 * A call of the user that is under way may switch bus mastering on once more, but
 * not for longer than until the end of a grace period of @vf->srcu.
 */
void qhca_vfio_set_broken(struct qhca_vfio *vf, bool broken)
{
	spin_lock(&vf->master_lock);
	WRITE_ONCE(vf->broken, broken);
	qhca_vfio_set_master(vf);
	spin_unlock(&vf->master_lock);
}

/* What remains after a call of the user, which may have been under way for long. */
static void qhca_vfio_settle(struct qhca_vfio *vf)
{
	spin_lock(&vf->master_lock);
	qhca_vfio_set_master(vf);
	spin_unlock(&vf->master_lock);
}

/**
 * qhca_vfio_write_config - write to the configuration space for the user
 * @vf:    function
 * @buf:   what to write
 * @count: bytes
 * @ppos:  where to, with the index of the region
 *
 * Return: the number of bytes written, or a negative errno: -EIO for a write to the
 *	command register of a broken function.
 */
ssize_t qhca_vfio_write_config(struct qhca_vfio *vf, const char __user *buf,
			       size_t count, loff_t *ppos)
{
	loff_t pos = *ppos & VFIO_PCI_OFFSET_MASK;
	bool command = pos <= PCI_COMMAND && pos + count > PCI_COMMAND;
	ssize_t ret = -EIO;
	u8 low = 0;
	int idx;

	if (command && get_user(low, (const u8 __user *)buf + PCI_COMMAND - pos))
		return -EFAULT;
	if (mutex_lock_killable(&vf->user_lock))
		return -EINTR;
	idx = srcu_read_lock(&vf->srcu);
	if (!command || !READ_ONCE(vf->broken))
		ret = vfio_pci_core_write(&vf->core.vdev, buf, count, ppos);
	/* A change of the power state writes the command register, too. */
	if (command && ret > PCI_COMMAND - pos)
		qhca_vfio_want_master(vf, low & PCI_COMMAND_MASTER);
	else if (command || READ_ONCE(vf->broken))
		qhca_vfio_settle(vf);
	srcu_read_unlock(&vf->srcu, idx);
	mutex_unlock(&vf->user_lock);
	return ret;
}

/**
 * qhca_vfio_set_irqs - change the function's interrupts for the user
 * @vf:  function
 * @arg: argument of VFIO_DEVICE_SET_IRQS
 *
 * The library reads the command register, changes something, which may take
 * milliseconds, and writes what it has read.
 *
 * Return: 0 or a negative errno.
 */
long qhca_vfio_set_irqs(struct qhca_vfio *vf, unsigned long arg)
{
	long ret;
	int idx;

	if (mutex_lock_killable(&vf->user_lock))
		return -EINTR;
	idx = srcu_read_lock(&vf->srcu);
	ret = vfio_pci_core_ioctl(&vf->core.vdev, VFIO_DEVICE_SET_IRQS, arg);
	/* Bus mastering may be off as well, though it should be on again. */
	qhca_vfio_settle(vf);
	srcu_read_unlock(&vf->srcu, idx);
	mutex_unlock(&vf->user_lock);
	return ret;
}
