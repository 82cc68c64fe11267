// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_fail.ko: makes things go wrong for qhca's drivers.
 *
 * First of all it makes calls fail by which the drivers get memory, DMA mappings
 * and the like.  The kernel's own fault injection knows allocations but not DMA
 * mappings, and distributions' kernels are built without it.  This module has a
 * kprobe at the entry of each function below.  Calls whose return address is in
 * the text of qhca.ko or qhca_ib.ko are counted, and the one whose turn it is does
 * not happen: the probe moves the instruction pointer to a function that only
 * returns, with the value by which the function would report failure.
 *
 * /sys/module/qhca_test_fail/parameters/
 *   nth	write n: the n-th call from now on fails; 0: none does
 *   times	how many calls fail from the n-th on; 1 by default
 *   calls	calls since nth was written
 *   failed	which call failed last, and where from; empty if none did
 *   repeat	how many calls from one place in sequence count, as in a loop that
 *		fills a ring; 0: all, the default
 *   size	count only allocations of so many bytes of memory that the device
 *		is to use; 0: all calls, the default
 *   of		count only calls from functions whose names begin so; empty: all,
 *		the default
 *   kinds	bits of what may fail, see below; by default all
 *   die	write n: the n-th call from now on that counts finds the device
 *		reset.  The next command is then not answered, so that the device
 *		dies while the driver starts it.
 *	sync	write 1: the kernel takes the device for one whose DMA needs to be
 *		synchronised, as after its first bounced part of a page; for good
 *
 * With kinds=16 only memory that the device is to use counts.  All starts of the
 * function, and all starts of its Ethernet queue, allocate such memory, so nth and
 * die then say which start fails.
 *
 * The drivers may be loaded and unloaded while this module is there.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/linkage.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/ptrace.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include <qhca/qhca_hw.h>

/* What fails; bits of the parameter. */
#define MEMORY	BIT(0)		/* allocations, which failslab has, too */
#define MAPPING	BIT(1)		/* for DMA */
#define OBJECT	BIT(2)		/* of other parts of the kernel, or of qhca.ko */
#define COPY	BIT(3)		/* from and to user memory */
#define COHERENT BIT(4)		/* memory that the device is to use */

static uint kinds = MEMORY | MAPPING | OBJECT | COPY | COHERENT;
module_param(kinds, uint, 0444);
MODULE_PARM_DESC(kinds, "1: memory, 2: DMA mappings, 4: other objects, 8: copies, 16: coherent memory; a sum");

static uint times = 1;
module_param(times, uint, 0644);
MODULE_PARM_DESC(times, "calls that fail from the n-th on");

static uint repeat;
module_param(repeat, uint, 0644);
MODULE_PARM_DESC(repeat, "calls from one place in sequence that count; 0: all");

static uint size;
module_param(size, uint, 0644);
MODULE_PARM_DESC(size, "count only coherent memory of so many bytes; 0: all calls");

static char of[32];
module_param_string(of, of, sizeof(of), 0644);
MODULE_PARM_DESC(of, "count only calls from functions whose names begin so");

static uint die;
module_param(die, uint, 0644);
MODULE_PARM_DESC(die, "the call, counted from now, that finds the device reset; 0: none");

/* What a function returns when it fails. */
#define NOTHING		0UL
#define NO_MEMORY	((unsigned long)-ENOMEM)
#define NO_MAPPING	((unsigned long)DMA_MAPPING_ERROR)
#define NO_ENTRY	((unsigned long)-ENOMEM << 2 | 2)	/* XA_ERROR() */
#define NOT_COPIED	1UL	/* bytes */
#define NO_ACCESS	((unsigned long)-EFAULT)

struct site {
	const char *name;
	unsigned int kind;
	unsigned long value;
	struct kprobe probe;
	bool placed;
};

/* Not every kernel has all of these functions. */
static struct site sites[] = {
	{ "__kmalloc_noprof", MEMORY, NOTHING },
	{ "__kmalloc_cache_noprof", MEMORY, NOTHING },
	{ "__kmalloc_large_noprof", MEMORY, NOTHING },
	{ "__kvmalloc_node_noprof", MEMORY, NOTHING },
	{ "kmem_cache_alloc_noprof", MEMORY, NOTHING },
	{ "alloc_pages_noprof", MEMORY, NOTHING },
	{ "alloc_pages_node_noprof", MEMORY, NOTHING },
	{ "__alloc_pages_noprof", MEMORY, NOTHING },
	{ "get_free_pages_noprof", MEMORY, NOTHING },
	{ "memdup_user", MEMORY, NO_MEMORY },
	{ "xa_store", MEMORY, NO_ENTRY },
	{ "__xa_insert", MEMORY, NO_MEMORY },
	{ "napi_alloc_skb", MEMORY, NOTHING },
	{ "napi_build_skb", MEMORY, NOTHING },
	{ "page_pool_alloc_frag", MEMORY, NOTHING },
	{ "page_pool_alloc_frag_netmem", MEMORY, NOTHING },

	{ "dma_alloc_attrs", COHERENT, NOTHING },
	{ "dma_map_page_attrs", MAPPING, NO_MAPPING },
	{ "dma_map_phys", MAPPING, NO_MAPPING },
	{ "dma_map_resource", MAPPING, NO_MAPPING },
	{ "dma_map_sg_attrs", MAPPING, 0 },
	{ "dma_map_sgtable", MAPPING, NO_MEMORY },
	{ "dma_set_mask", MAPPING, (unsigned long)-EIO },
	{ "dma_set_coherent_mask", MAPPING, (unsigned long)-EIO },
	{ "ib_umem_get", MAPPING, NO_MEMORY },
	{ "ib_umem_get_va", MAPPING, NO_MEMORY },
	{ "ib_umem_get_cq_buf_or_va", MAPPING, NO_MEMORY },
	{ "ib_umem_odp_get", MAPPING, NO_MEMORY },
	{ "ib_umem_odp_alloc_implicit", MAPPING, NO_MEMORY },
	{ "ib_umem_odp_alloc_child", MAPPING, NO_MEMORY },
	{ "ib_umem_odp_map_dma_and_lock", MAPPING, NO_MEMORY },
	{ "hmm_range_fault", MAPPING, NO_MEMORY },
	{ "ib_umem_dmabuf_get_pinned", MAPPING, NO_MEMORY },
	{ "hmm_dma_map_pfn", MAPPING, NO_MAPPING },

	{ "alloc_workqueue", OBJECT, NOTHING },
	{ "alloc_workqueue_noprof", OBJECT, NOTHING },
	{ "ida_alloc_range", OBJECT, NO_MEMORY },
	{ "gen_pool_create", OBJECT, NOTHING },
	{ "gen_pool_add_owner", OBJECT, NO_MEMORY },
	{ "gen_pool_alloc_algo_owner", OBJECT, NOTHING },
	{ "devlink_alloc_ns", OBJECT, NOTHING },
	{ "devl_params_register", OBJECT, NO_MEMORY },
	{ "pci_enable_device_mem", OBJECT, (unsigned long)-EIO },
	{ "pci_request_selected_regions", OBJECT, (unsigned long)-EBUSY },
	{ "pci_iomap", OBJECT, NOTHING },
	{ "pci_iomap_range", OBJECT, NOTHING },
	{ "ioremap_wc", OBJECT, NOTHING },
	{ "pci_alloc_irq_vectors", OBJECT, (unsigned long)-ENOSPC },
	{ "pci_alloc_irq_vectors_affinity", OBJECT, (unsigned long)-ENOSPC },
	{ "request_threaded_irq", OBJECT, NO_MEMORY },
	{ "alloc_etherdev_mqs", OBJECT, NOTHING },
	{ "register_netdev", OBJECT, NO_MEMORY },
	{ "page_pool_create", OBJECT, NO_MEMORY },
	{ "auxiliary_device_init", OBJECT, NO_MEMORY },
	{ "__auxiliary_device_add", OBJECT, NO_MEMORY },
	{ "_ib_alloc_device", OBJECT, NOTHING },
	{ "ib_device_set_netdev", OBJECT, NO_MEMORY },
	{ "ib_register_device", OBJECT, NO_MEMORY },
	{ "rdma_alloc_hw_stats_struct", OBJECT, NOTHING },
	{ "rdma_user_mmap_entry_insert", OBJECT, NO_MEMORY },
	{ "rdma_user_mmap_entry_insert_range", OBJECT, NO_MEMORY },
	{ "register_netdevice_notifier", OBJECT, NO_MEMORY },
	{ "qhca_index_alloc", OBJECT, NO_MEMORY },
	{ "qhca_db_page_alloc", OBJECT, NO_MEMORY },
	{ "qhca_eq_create", OBJECT, NO_MEMORY },
	{ "qhca_notifier_register", OBJECT, NO_MEMORY },

	{ "_copy_from_user", COPY, NOT_COPIED },
	{ "_copy_to_user", COPY, NOT_COPIED },
	{ "uverbs_copy_to", COPY, NO_ACCESS },
	{ "uverbs_copy_to_struct_or_zero", COPY, NO_ACCESS },
};

static const char * const driver_names[] = { "qhca", "qhca_ib" };

/*
 * The parameters and what follows.  A probe is a breakpoint, which lockdep takes
 * for an NMI: it accepts none of its own locks there.  This lock is safe, since
 * interrupts are disabled while it is held, and its holder calls no function
 * that has a probe.
 */
static arch_spinlock_t lock = __ARCH_SPIN_LOCK_UNLOCKED;
static unsigned long nth, calls;
static unsigned long last_caller, in_sequence;
static char failed[200];
static const struct module *drivers[ARRAY_SIZE(driver_names)];
static void __iomem *registers;

void qhca_test_fail_return(void);
asm(".pushsection .text, \"ax\"\n"
	".globl qhca_test_fail_return\n"
	".type qhca_test_fail_return, @function\n"
	"qhca_test_fail_return:\n"
	ASM_ENDBR
	ASM_RET
	".size qhca_test_fail_return, .-qhca_test_fail_return\n"
	".popsection\n");

static bool of_drivers(unsigned long address)
{
	const struct module *driver;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(drivers); i++) {
		driver = READ_ONCE(drivers[i]);
		if (driver && within_module(address, driver))
			return true;
	}
	return false;
}

/* The caller holds the lock. */
static bool counts(const struct site *site, unsigned long caller,
		   struct pt_regs *regs)
{
	/* The second argument of dma_alloc_attrs(). */
	if (size && (site->kind != COHERENT ||
		     regs_get_kernel_argument(regs, 1) != size))
		return false;
	if (of[0]) {
		char name[sizeof(of)];

		snprintf(name, sizeof(name), "%ps", (void *)caller);
		if (strncmp(name, of, strcspn(of, "\n")))
			return false;
	}
	in_sequence = caller == last_caller ? in_sequence + 1 : 1;
	last_caller = caller;
	return !repeat || in_sequence <= repeat;
}

static unsigned long take_lock(void)
{
	unsigned long flags;

	local_irq_save(flags);
	arch_spin_lock(&lock);
	return flags;
}

static void drop_lock(unsigned long flags)
{
	arch_spin_unlock(&lock);
	local_irq_restore(flags);
}

/* The caller holds the lock. */
static void note_failure(const struct site *site, unsigned long caller,
			 struct pt_regs *regs)
{
	/* The fourth argument of dma_alloc_attrs(). */
	gfp_t gfp = regs_get_kernel_argument(regs, 3);
	int n = snprintf(failed, sizeof(failed), "%s of %pS", site->name,
			 (void *)caller);

	if (site->kind == COHERENT && n < sizeof(failed))
		snprintf(failed + n, sizeof(failed) - n, ", %pGg", &gfp);
}

/* Returns whether this is the call that has to fail. */
static bool fails(const struct site *site, unsigned long caller,
		  struct pt_regs *regs)
{
	unsigned long flags = take_lock();
	bool now = false;

	if (counts(site, caller, regs)) {
		calls++;
		now = nth && calls >= nth && calls - nth < times;
		if (die && !--die && registers)
			writel(QHCA_CONTROL_RESET, registers + QHCA_REG_CONTROL);
	}
	if (now)
		note_failure(site, caller, regs);
	drop_lock(flags);
	return now;
}

static int at_entry(struct kprobe *probe, struct pt_regs *regs)
{
	struct site *site = container_of(probe, struct site, probe);
	unsigned long caller = *(unsigned long *)regs->sp;

	if (!of_drivers(caller) || !fails(site, caller, regs))
		return 0;
	regs_set_return_value(regs, site->value);
	regs->ip = (unsigned long)qhca_test_fail_return;
	return 1;
}
NOKPROBE_SYMBOL(at_entry);

/* A probe that has one is not turned into a jump, which could not go elsewhere. */
static void after_entry(struct kprobe *probe, struct pt_regs *regs,
			unsigned long flags)
{
}
NOKPROBE_SYMBOL(after_entry);

/* ------------------------------------------------------------------------
 * Parameters
 */

static int set_nth(const char *text, const struct kernel_param *kp)
{
	unsigned long n, flags;
	int err = kstrtoul(text, 0, &n);

	if (err)
		return err;
	flags = take_lock();
	nth = n;
	calls = 0;
	last_caller = 0;
	failed[0] = 0;
	drop_lock(flags);
	return 0;
}

static int get_nth(char *text, const struct kernel_param *kp)
{
	return sysfs_emit(text, "%lu\n", nth);
}

static int get_calls(char *text, const struct kernel_param *kp)
{
	return sysfs_emit(text, "%lu\n", READ_ONCE(calls));
}

static int get_failed(char *text, const struct kernel_param *kp)
{
	unsigned long flags = take_lock();
	int n;

	n = sysfs_emit(text, "%s\n", failed);
	drop_lock(flags);
	return n;
}

static int set_sync(const char *text, const struct kernel_param *kp)
{
	struct pci_dev *pdev = pci_get_device(QHCA_PCI_VENDOR_ID,
					      QHCA_PCI_DEVICE_ID, NULL);

	if (!pdev)
		return -ENODEV;
	dma_reset_need_sync(&pdev->dev);
	pci_dev_put(pdev);
	return 0;
}

static const struct kernel_param_ops nth_ops = { .set = set_nth, .get = get_nth };
static const struct kernel_param_ops calls_ops = { .get = get_calls };
static const struct kernel_param_ops failed_ops = { .get = get_failed };
static const struct kernel_param_ops sync_ops = { .set = set_sync };

module_param_cb(nth, &nth_ops, NULL, 0644);
MODULE_PARM_DESC(nth, "the call that fails, counted from now; 0: none");
module_param_cb(calls, &calls_ops, NULL, 0444);
MODULE_PARM_DESC(calls, "calls since nth was written");
module_param_cb(failed, &failed_ops, NULL, 0444);
MODULE_PARM_DESC(failed, "the call that failed");
module_param_cb(sync, &sync_ops, NULL, 0200);
MODULE_PARM_DESC(sync, "have DMA of the device synchronised");

/* ------------------------------------------------------------------------
 * Probes
 */

static int driver_event(struct notifier_block *nb, unsigned long state,
			void *data)
{
	const struct module *module = data;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(drivers); i++) {
		if (strcmp(module->name, driver_names[i]))
			continue;
		/* A module is freed an RCU grace period after it has said so. */
		if (state == MODULE_STATE_COMING)
			WRITE_ONCE(drivers[i], module);
		else if (state == MODULE_STATE_GOING)
			WRITE_ONCE(drivers[i], NULL);
	}
	return NOTIFY_OK;
}

static struct notifier_block driver_events = { .notifier_call = driver_event };

/* The core shows its devices to clients alone; this one wants none of them. */
static int note_driver(struct ib_device *dev)
{
	if (!strncmp(dev_name(&dev->dev), "qhca", 4))
		drivers[1] = dev->ops.owner;
	return -EOPNOTSUPP;
}

static struct ib_client client = {
	.name = KBUILD_MODNAME,
	.add = note_driver,
};

/* Finds the modules that are loaded already. */
static int find_drivers(void)
{
	struct device_driver *pci = driver_find("qhca", &pci_bus_type);
	int err = ib_register_client(&client);

	if (err)
		return err;
	ib_unregister_client(&client);
	if (pci)
		drivers[0] = pci->owner;
	return 0;
}

static void map_registers(void)
{
	struct pci_dev *pdev = pci_get_device(QHCA_PCI_VENDOR_ID,
					      QHCA_PCI_DEVICE_ID, NULL);

	if (!pdev)
		return;
	registers = ioremap(pci_resource_start(pdev, QHCA_BAR_REGS),
			    QHCA_REG_END);
	pci_dev_put(pdev);
}

static void remove_probes(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sites); i++)
		if (sites[i].placed)
			unregister_kprobe(&sites[i].probe);
}

static int place_probes(void)
{
	unsigned int i, n = 0;
	int err;

	for (i = 0; i < ARRAY_SIZE(sites); i++) {
		struct site *site = &sites[i];

		if (!(site->kind & kinds))
			continue;
		site->probe.symbol_name = site->name;
		site->probe.pre_handler = at_entry;
		site->probe.post_handler = after_entry;
		err = register_kprobe(&site->probe);
		if (err) {
			pr_info("no probe at %s: %d\n", site->name, err);
			continue;
		}
		site->placed = true;
		n++;
	}
	pr_info("%u probes\n", n);
	return n ? 0 : -ENOENT;
}

static int __init qhca_test_fail_init(void)
{
	int err;

	err = find_drivers() ?: register_module_notifier(&driver_events);
	if (err)
		return err;
	map_registers();
	err = place_probes();
	if (err) {
		unregister_module_notifier(&driver_events);
		if (registers)
			iounmap(registers);
	}
	return err;
}
module_init(qhca_test_fail_init);

static void __exit qhca_test_fail_exit(void)
{
	remove_probes();
	unregister_module_notifier(&driver_events);
	if (registers)
		iounmap(registers);
}
module_exit(qhca_test_fail_exit);

MODULE_DESCRIPTION("Fault injection for the drivers of qhca");
MODULE_LICENSE("Dual BSD/GPL");
