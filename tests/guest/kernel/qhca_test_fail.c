// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_fail.ko: makes one call fail of those by which qhca's drivers get
 * memory, DMA mappings and the like.
 *
 * The kernel's own fault injection knows allocations but not DMA mappings, and
 * distributions' kernels are built without it.  This module has a kprobe at the
 * entry of each function below.  Calls whose return address is in the text of
 * qhca.ko or qhca_ib.ko are counted, and the one whose turn it is does not happen:
 * the probe moves the instruction pointer to a function that only returns, with
 * the value by which the function would report failure.
 *
 * /sys/module/qhca_test_fail/parameters/
 *   nth	write n: the n-th call from now on fails, once; 0: none does
 *   calls	calls since nth was written
 *   failed	which call failed, and where from; empty if none did
 *   repeat	how many calls from one place in sequence count, as in a loop that
 *		fills a ring; 0: all, the default
 *   kinds	bits of what may fail, see below; by default all
 *
 * Both drivers must be loaded before this module, and go after it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/dma-mapping.h>
#include <linux/kprobes.h>
#include <linux/linkage.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <rdma/ib_verbs.h>

/* What fails; bits of the parameter. */
#define MEMORY	BIT(0)		/* allocations, which failslab has, too */
#define MAPPING	BIT(1)		/* for DMA */
#define OBJECT	BIT(2)		/* of other parts of the kernel, or of qhca.ko */
#define COPY	BIT(3)		/* from and to user memory */

static uint kinds = MEMORY | MAPPING | OBJECT | COPY;
module_param(kinds, uint, 0444);
MODULE_PARM_DESC(kinds, "1: memory, 2: DMA mappings, 4: other objects, 8: copies; a sum");

static uint repeat;
module_param(repeat, uint, 0644);
MODULE_PARM_DESC(repeat, "calls from one place in sequence that count; 0: all");

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

/* Not all are there in each kernel. */
static struct site sites[] = {
	{ "__kmalloc_noprof", MEMORY, NOTHING },
	{ "__kmalloc_cache_noprof", MEMORY, NOTHING },
	{ "__kmalloc_large_noprof", MEMORY, NOTHING },
	{ "__kvmalloc_node_noprof", MEMORY, NOTHING },
	{ "kmem_cache_alloc_noprof", MEMORY, NOTHING },
	{ "alloc_pages_noprof", MEMORY, NOTHING },
	{ "__alloc_pages_noprof", MEMORY, NOTHING },
	{ "get_free_pages_noprof", MEMORY, NOTHING },
	{ "memdup_user", MEMORY, NO_MEMORY },
	{ "xa_store", MEMORY, NO_ENTRY },
	{ "__xa_insert", MEMORY, NO_MEMORY },
	{ "napi_alloc_skb", MEMORY, NOTHING },
	{ "napi_build_skb", MEMORY, NOTHING },
	{ "page_pool_alloc_frag", MEMORY, NOTHING },
	{ "page_pool_alloc_frag_netmem", MEMORY, NOTHING },

	{ "dma_alloc_attrs", MAPPING, NOTHING },
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

static DEFINE_SPINLOCK(lock);
static unsigned long nth, calls;
static unsigned long last_caller, in_sequence;
static char failed[160];
static const struct module *drivers[2];

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
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(drivers); i++)
		if (within_module(address, drivers[i]))
			return true;
	return false;
}

/* Is it this call's turn? */
static bool fails(const struct site *site, unsigned long caller)
{
	unsigned long flags;
	bool now = false;

	spin_lock_irqsave(&lock, flags);
	in_sequence = caller == last_caller ? in_sequence + 1 : 1;
	last_caller = caller;
	if (!repeat || in_sequence <= repeat)
		now = ++calls == nth;
	if (now)
		snprintf(failed, sizeof(failed), "%s of %pS", site->name,
			 (void *)caller);
	spin_unlock_irqrestore(&lock, flags);
	return now;
}

static int at_entry(struct kprobe *probe, struct pt_regs *regs)
{
	struct site *site = container_of(probe, struct site, probe);
	unsigned long caller = *(unsigned long *)regs->sp;

	if (!of_drivers(caller) || !fails(site, caller))
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
	unsigned long n;
	int err = kstrtoul(text, 0, &n);

	if (err)
		return err;
	spin_lock_irq(&lock);
	nth = n;
	calls = 0;
	last_caller = 0;
	failed[0] = 0;
	spin_unlock_irq(&lock);
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
	int n;

	spin_lock_irq(&lock);
	n = sysfs_emit(text, "%s\n", failed);
	spin_unlock_irq(&lock);
	return n;
}

static const struct kernel_param_ops nth_ops = { .set = set_nth, .get = get_nth };
static const struct kernel_param_ops calls_ops = { .get = get_calls };
static const struct kernel_param_ops failed_ops = { .get = get_failed };

module_param_cb(nth, &nth_ops, NULL, 0644);
MODULE_PARM_DESC(nth, "the call that fails, counted from now; 0: none");
module_param_cb(calls, &calls_ops, NULL, 0444);
MODULE_PARM_DESC(calls, "calls since nth was written");
module_param_cb(failed, &failed_ops, NULL, 0444);
MODULE_PARM_DESC(failed, "the call that failed");

/* ------------------------------------------------------------------------
 * Probes
 */

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

static int find_drivers(void)
{
	struct device_driver *pci = driver_find("qhca", &pci_bus_type);
	int err = ib_register_client(&client);

	if (err)
		return err;
	ib_unregister_client(&client);
	if (pci)
		drivers[0] = pci->owner;
	return drivers[0] && drivers[1] ? 0 : -ENODEV;
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
	return find_drivers() ?: place_probes();
}
module_init(qhca_test_fail_init);

static void __exit qhca_test_fail_exit(void)
{
	remove_probes();
}
module_exit(qhca_test_fail_exit);

MODULE_DESCRIPTION("Fault injection for the drivers of qhca");
MODULE_LICENSE("Dual BSD/GPL");
