// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_alloc.ko: makes things go wrong where qhca.ko allocates memory that
 * the device is to use, and where it restores the device's configuration.
 *
 *   insmod qhca_test_alloc.ko
 *   cd /sys/module/qhca_test_alloc/parameters
 *   echo 3 > fail		the next three allocations fail
 *   echo 2 > die		the second one from now finds its device reset
 *   echo 1 > lose		the registers are lost when they are restored
 *
 * All starts of the function, and all starts of its Ethernet queue, allocate, so
 * this tells how often they fail.  A device that somebody else has reset leaves
 * the next command unanswered: it dies while it starts.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/ptrace.h>
#include <linux/spinlock.h>

#include <qhca/qhca_hw.h>

/* More than any allocator has, and little enough to be rounded up. */
#define TOO_LARGE	BIT(46)

static uint size;
module_param(size, uint, 0644);
MODULE_PARM_DESC(size, "count only allocations of so many bytes; 0: all");

static uint skip;
module_param(skip, uint, 0644);
MODULE_PARM_DESC(skip, "allocations that go well before any fails");

static uint fail;
module_param(fail, uint, 0644);
MODULE_PARM_DESC(fail, "allocations that fail from now on");

static uint die;
module_param(die, uint, 0644);
MODULE_PARM_DESC(die, "the allocation from now on that finds the device reset");

static uint lose;
module_param(lose, uint, 0644);
MODULE_PARM_DESC(lose, "restored configurations that leave BAR 0 unassigned");

static DEFINE_SPINLOCK(lock);	/* the parameters, against other processors */
static void __iomem *regs;

static bool is_qhca(const struct device *dev)
{
	return dev && dev->driver && !strcmp(dev->driver->name, "qhca");
}

/* Before dma_alloc_attrs(dev, size, handle, gfp, attrs). */
static int before_alloc(struct kprobe *probe, struct pt_regs *args)
{
	struct device *dev = (void *)regs_get_kernel_argument(args, 0);
	unsigned long flags;

	if (!is_qhca(dev))
		return 0;
	if (size && regs_get_kernel_argument(args, 1) != size)
		return 0;
	spin_lock_irqsave(&lock, flags);
	if (die && !--die)
		writel(QHCA_CONTROL_RESET, regs + QHCA_REG_CONTROL);
	if (fail && skip) {
		skip--;
	} else if (fail) {
		fail--;
		args->si = TOO_LARGE;
		args->cx |= __GFP_NOWARN;
	}
	spin_unlock_irqrestore(&lock, flags);
	return 0;
}

/* Before pci_restore_state(pdev). */
static int before_restore(struct kprobe *probe, struct pt_regs *args)
{
	struct pci_dev *pdev = (void *)regs_get_kernel_argument(args, 0);

	if (lose && is_qhca(&pdev->dev)) {
		lose--;
		pdev->saved_config_space[PCI_BASE_ADDRESS_0 / 4] = 0;
	}
	return 0;
}

static struct kprobe alloc_probe = {
	.symbol_name = "dma_alloc_attrs",
	.pre_handler = before_alloc,
};

static struct kprobe restore_probe = {
	.symbol_name = "pci_restore_state",
	.pre_handler = before_restore,
};

static struct kprobe *probes[] = { &alloc_probe, &restore_probe };

static int __init qhca_test_alloc_init(void)
{
	struct pci_dev *pdev = pci_get_device(QHCA_PCI_VENDOR_ID,
					      QHCA_PCI_DEVICE_ID, NULL);
	int err;

	if (!pdev)
		return -ENODEV;
	regs = ioremap(pci_resource_start(pdev, QHCA_BAR_REGS), QHCA_REG_END);
	pci_dev_put(pdev);
	if (!regs)
		return -ENOMEM;
	err = register_kprobes(probes, ARRAY_SIZE(probes));
	if (err)
		iounmap(regs);
	return err;
}

static void __exit qhca_test_alloc_exit(void)
{
	unregister_kprobes(probes, ARRAY_SIZE(probes));
	iounmap(regs);
}

module_init(qhca_test_alloc_init);
module_exit(qhca_test_alloc_exit);

MODULE_DESCRIPTION("Failures while qhca.ko starts");
MODULE_LICENSE("Dual BSD/GPL");
