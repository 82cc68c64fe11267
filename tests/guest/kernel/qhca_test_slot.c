// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_slot.ko: the reset of the device's slot after a PCI error.
 *
 *   insmod qhca_test_slot.ko lose=0
 *
 * The module does to the driver what the PCI core does when a port reports a
 * fatal error of the link below it: it calls the driver's error handlers, and
 * between them resets the bus, which takes the device's configuration away.
 * With lose=1 the port passes on no access to the device's memory meanwhile, so
 * that nothing answers where the driver has mapped the registers; the device is
 * of no use afterwards, until it is removed and found anew.  The results are TAP in the kernel's log.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/module.h>
#include <linux/pci.h>

#include <qhca/qhca_hw.h>

#include "tap.h"

static bool lose;
module_param(lose, bool, 0444);
MODULE_PARM_DESC(lose, "the device does not answer after the reset");

static pci_ers_result_t reset_slot(struct pci_dev *pdev,
				   const struct pci_error_handlers *handlers)
{
	struct pci_dev *port = pdev->bus->self;
	pci_ers_result_t result;
	u16 command;
	u32 bar;

	/*
	 * This also waits for the link, and reports -ENOTTY behind QEMU's port.  The
	 * device answers all the same.
	 */
	pci_bridge_secondary_bus_reset(port);
	pci_read_config_dword(pdev, PCI_BASE_ADDRESS_0, &bar);
	point(!(bar & PCI_BASE_ADDRESS_MEM_MASK),
	      "the device has lost its configuration");
	pci_read_config_word(port, PCI_COMMAND, &command);
	if (lose)
		pci_write_config_word(port, PCI_COMMAND,
				      command & ~PCI_COMMAND_MEMORY);
	pdev->error_state = pci_channel_io_normal;
	result = handlers->slot_reset(pdev);
	pci_write_config_word(port, PCI_COMMAND, command);
	return result;
}

static void run(struct pci_dev *pdev)
{
	const struct pci_error_handlers *handlers = pdev->driver->err_handler;
	pci_ers_result_t result;

	pdev->error_state = pci_channel_io_frozen;
	result = handlers->error_detected(pdev, pci_channel_io_frozen);
	point(result == PCI_ERS_RESULT_NEED_RESET,
	      "the driver asks for a reset of the slot");
	result = reset_slot(pdev, handlers);
	if (lose) {
		point(result == PCI_ERS_RESULT_DISCONNECT,
		      "the driver gives a device up that does not answer");
		return;
	}
	point(result == PCI_ERS_RESULT_RECOVERED,
	      "the driver has a device that answers");
	handlers->resume(pdev);
}

static int __init qhca_test_slot_init(void)
{
	struct pci_dev *pdev = pci_get_device(QHCA_PCI_VENDOR_ID,
					      QHCA_PCI_DEVICE_ID, NULL);

	if (!pdev)
		return -ENODEV;
	/* The PCI core holds this lock, too. */
	device_lock(&pdev->dev);
	if (pdev->driver && pdev->bus->self)
		run(pdev);
	else
		point(false, "a driver and a port above the device");
	device_unlock(&pdev->dev);
	pci_dev_put(pdev);
	return tap_end();
}

static void __exit qhca_test_slot_exit(void)
{
}

module_init(qhca_test_slot_init);
module_exit(qhca_test_slot_exit);

MODULE_DESCRIPTION("Test of the driver when its slot is reset");
MODULE_LICENSE("Dual BSD/GPL");
