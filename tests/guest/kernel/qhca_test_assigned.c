// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_assigned.ko: while it is loaded, all virtual functions of qhca devices
 * look as if a hypervisor had given them to guests.
 */
#include <linux/module.h>
#include <linux/pci.h>

#include <qhca/qhca_hw.h>

static void mark(bool assigned)
{
	struct pci_dev *pdev = NULL;

	while ((pdev = pci_get_device(QHCA_PCI_VENDOR_ID,
				      QHCA_PCI_VF_DEVICE_ID, pdev))) {
		if (assigned)
			pci_set_dev_assigned(pdev);
		else
			pci_clear_dev_assigned(pdev);
	}
}

static int __init test_init(void)
{
	mark(true);
	return 0;
}

static void __exit test_exit(void)
{
	mark(false);
}

module_init(test_init);
module_exit(test_exit);

MODULE_DESCRIPTION("virtual functions that guests seem to use");
MODULE_LICENSE("Dual BSD/GPL");
