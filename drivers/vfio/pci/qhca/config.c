// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The configuration space as its user writes it.
 */
#include <linux/pci.h>

#include "qhca_vfio.h"

static void qhca_vfio_note_master(struct qhca_vfio *vf)
{
	u16 command;

	pci_read_config_word(vf->core.pdev, PCI_COMMAND, &command);
	/* All ones: the function is gone, or being reset. */
	if (command != U16_MAX)
		WRITE_ONCE(vf->master, command & PCI_COMMAND_MASTER);
}

/* A write to the configuration space: the user switches bus mastering there. */
ssize_t qhca_vfio_write_config(struct qhca_vfio *vf, const char __user *buf,
			       size_t count, loff_t *ppos)
{
	loff_t pos = *ppos & VFIO_PCI_OFFSET_MASK;
	bool command = pos < PCI_STATUS && pos + count > PCI_COMMAND;
	ssize_t ret = -EIO;
	int idx;

	idx = srcu_read_lock(&vf->srcu);
	if (!command || !READ_ONCE(vf->broken))
		ret = vfio_pci_core_write(&vf->core.vdev, buf, count, ppos);
	/* A change of the power state writes the command register, too. */
	if (READ_ONCE(vf->broken))
		pci_clear_master(vf->core.pdev);
	else if (command)
		qhca_vfio_note_master(vf);
	srcu_read_unlock(&vf->srcu, idx);
	return ret;
}
