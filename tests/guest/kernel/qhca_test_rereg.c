// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_rereg.ko: holds changes of a region in the middle, so that others
 * describe it meanwhile.
 *
 *   insmod qhca_test_rereg.ko
 *
 * A change replaces what describes the region within a few instructions.  When
 * kprobes have seen a change and a description, the module binds the two threads
 * to one processor each, and has the processors stop wherever this region's pool
 * memory or the depth of its translation tree is written.  There it holds the
 * writer until the other thread has described the region, or until that thread
 * has begun to and evidently cannot go on, which is what the region's lock is for.
 *
 * /sys/module/qhca_test_rereg/parameters/
 *   held	how often a change was held while the region was to be described;
 *		it ends with HOLDS
 *
 * What the descriptions said is for the caller to judge.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hw_breakpoint.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/sched/task.h>
#include <linux/timekeeping.h>
#include <linux/workqueue.h>

#include "mem.h"

#define HOLDS	8

/*
 * How long a description that has begun may take before it counts as waiting for
 * the change.  Where the processors take turns in one thread, each pause of one is
 * a turn of the other, however little time the thread gets.
 */
#define STUCK_NS	(100 * NSEC_PER_MSEC)
#define STUCK_PAUSES	10000

/* No description begins. */
#define PATIENCE_NS	(10 * NSEC_PER_SEC)

static uint held;
module_param(held, uint, 0444);
MODULE_PARM_DESC(held, "how often a change was held");

static struct qhca_mr *region;
static struct task_struct *changer, *describer;
static atomic_t begun, described, placed;
static struct perf_event * __percpu *stops[2];

/* Waits for the describer.  Returns whether it was there. */
static bool let_describe(void)
{
	int before = atomic_read(&described);
	u64 end = ktime_get_mono_fast_ns() + PATIENCE_NS;
	unsigned int pauses = 0;
	bool there = false;

	/* The description under way may have read the region before. */
	while (atomic_read(&described) - before < 2) {
		if (!there && atomic_read(&begun) != before) {
			there = true;
			end = ktime_get_mono_fast_ns() + STUCK_NS;
			pauses = 0;
		}
		if (ktime_get_mono_fast_ns() >= end &&
		    pauses >= STUCK_PAUSES)
			break;
		pauses++;
		cpu_relax();
	}
	return there;
}

/* In the exception that follows the write, with interrupts disabled. */
static void hold(struct perf_event *event, struct perf_sample_data *data,
		 struct pt_regs *regs)
{
	if (current == changer && held < HOLDS && let_describe())
		held++;
}

static struct perf_event * __percpu *stop_at(void *field, unsigned int len)
{
	struct perf_event_attr attr;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)field;
	attr.bp_len = len;
	attr.bp_type = HW_BREAKPOINT_W;
	return register_wide_hw_breakpoint(&attr, hold, NULL);
}

static void place_stops(struct work_struct *work)
{
	unsigned int i;

	BUILD_BUG_ON(sizeof(region->pool) != HW_BREAKPOINT_LEN_8);
	BUILD_BUG_ON(sizeof(region->at.levels) != HW_BREAKPOINT_LEN_1);
	if (set_cpus_allowed_ptr(changer, cpumask_of(0)) ||
	    set_cpus_allowed_ptr(describer, cpumask_of(1))) {
		pr_err("no two processors\n");
		return;
	}
	stops[0] = stop_at(&region->pool, HW_BREAKPOINT_LEN_8);
	stops[1] = stop_at(&region->at.levels, HW_BREAKPOINT_LEN_1);
	for (i = 0; i < ARRAY_SIZE(stops); i++) {
		/* An error is no address of any kind. */
		unsigned long value = (__force unsigned long)stops[i];

		if (IS_ERR_VALUE(value)) {
			pr_err("no breakpoint: %ld\n", value);
			stops[i] = NULL;
		}
	}
}
static DECLARE_WORK(place_work, place_stops);

static void note_thread(struct task_struct **thread)
{
	if (!READ_ONCE(*thread))
		WRITE_ONCE(*thread, get_task_struct(current));
	if (READ_ONCE(changer) && READ_ONCE(describer) &&
	    !atomic_xchg(&placed, 1))
		schedule_work(&place_work);
}
NOKPROBE_SYMBOL(note_thread);

static int note_change(struct kprobe *probe, struct pt_regs *regs)
{
	if (!region)
		region = to_qmr((void *)regs_get_kernel_argument(regs, 0));
	note_thread(&changer);
	return 0;
}
NOKPROBE_SYMBOL(note_change);

static int note_begin(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	atomic_inc(&begun);
	note_thread(&describer);
	return 0;
}
NOKPROBE_SYMBOL(note_begin);

static int note_description(struct kretprobe_instance *instance,
			    struct pt_regs *regs)
{
	atomic_inc(&described);
	return 0;
}
NOKPROBE_SYMBOL(note_description);

static struct kprobe change_probe = {
	.symbol_name = "qhca_rereg_user_mr",
	.pre_handler = note_change,
};

static struct kretprobe description_probe = {
	.kp.symbol_name = "qhca_fill_res_mr_entry",
	.entry_handler = note_begin,
	.handler = note_description,
};

static int __init qhca_test_rereg_init(void)
{
	int err = register_kretprobe(&description_probe);

	if (err)
		return err;
	err = register_kprobe(&change_probe);
	if (err)
		unregister_kretprobe(&description_probe);
	return err;
}

static void __exit qhca_test_rereg_exit(void)
{
	unsigned int i;

	unregister_kprobe(&change_probe);
	unregister_kretprobe(&description_probe);
	flush_work(&place_work);
	for (i = 0; i < ARRAY_SIZE(stops); i++)
		if (stops[i])
			unregister_wide_hw_breakpoint(stops[i]);
	if (changer)
		put_task_struct(changer);
	if (describer)
		put_task_struct(describer);
}

module_init(qhca_test_rereg_init);
module_exit(qhca_test_rereg_exit);

MODULE_DESCRIPTION("Holds changes of a region of qhca in the middle");
MODULE_LICENSE("Dual BSD/GPL");
