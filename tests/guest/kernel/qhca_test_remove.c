// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_remove.ko: what happens at the same time as the removal of the RDMA
 * device.
 *
 *   insmod qhca_test_remove.ko netdev=eth0
 *   insmod qhca_test_remove.ko netdev=eth0 shutdown=1
 *
 * Without shutdown, a thread on one processor declares the device dead.  A kprobe
 * holds the event of that death at the entry of ib_dispatch_event(), and
 * meanwhile a thread on another processor unbinds the RDMA driver.  The driver
 * must not begin to unregister the device, because the core then waits only for
 * events that have been dispatched; it has to wait for a grace period first.
 * The death is not left to an interrupt of the device: that might arrive on the
 * processor of the other thread, which could then not go on anyhow.
 *
 * With shutdown, the module says "ready", and the caller reloads the device.
 * When the removal has reached this module, which waits for a receive request,
 * the module shuts the function down, as the kernel does when it reboots.  That
 * must flush the request.  Afterwards the function has to be bound again.
 *
 * Needs two processors.  The results are TAP in the kernel's log.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/ptrace.h>
#include <linux/timekeeping.h>

#include <linux/qhca/driver.h>
#include <rdma/ib_verbs.h>

#include "rdma_device.h"
#include "tap.h"

#define PATIENCE	(60 * HZ)
/* The remover neither waits nor goes on. */
#define HOLD_NS		(10 * NSEC_PER_SEC)

static char *netdev = "eth0";
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "network interface of the RDMA device");

static bool shutdown;
module_param(shutdown, bool, 0444);
MODULE_PARM_DESC(shutdown, "shut the function down in the middle of a removal");

/*
 * @dev:     only compared, once it is being removed
 * @rdma:    the auxiliary device that the RDMA driver is bound to
 * @removal: the core removes the device from its clients
 * @flushed: the receive request has been completed
 * @held:    an event is being dispatched
 * @remover: the thread that removes the driver
 * @waits:   it waits meanwhile for a grace period
 * @crossed: the core removes the device from its clients meanwhile
 */
static struct test {
	struct ib_device *dev;
	struct pci_dev *pdev;
	struct device *rdma;
	struct completion removal;
	struct completion flushed;
	struct completion removed;
	bool held;
	bool was_held;
	struct task_struct *remover;
	bool waits;
	bool crossed;
	bool was_flushed;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
} t;

/* ------------------------------------------------------------------------
 * A consumer that waits for a receive request when its device is removed
 */

static void handle_completion(struct ib_cq *cq, void *context)
{
	struct ib_wc wc;

	if (ib_poll_cq(cq, 1, &wc) == 1 && wc.status == IB_WC_WR_FLUSH_ERR)
		complete(&t.flushed);
}

static int make_queues(void)
{
	const struct ib_cq_init_attr cq_attr = { .cqe = 16 };
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	const struct ib_recv_wr wr = {};

	t.pd = ib_alloc_pd(t.dev, 0);
	if (IS_ERR(t.pd))
		return PTR_ERR(t.pd);
	t.cq = ib_create_cq(t.dev, handle_completion, NULL, NULL, &cq_attr);
	if (IS_ERR(t.cq))
		return PTR_ERR(t.cq);
	init.send_cq = t.cq;
	init.recv_cq = t.cq;
	t.qp = ib_create_qp(t.pd, &init);
	if (IS_ERR(t.qp))
		return PTR_ERR(t.qp);
	return ib_modify_qp(t.qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			    IB_QP_PORT | IB_QP_ACCESS_FLAGS) ?:
	       ib_post_recv(t.qp, &wr, NULL);
}

static void drop_queues(void)
{
	if (!IS_ERR_OR_NULL(t.qp))
		ib_destroy_qp(t.qp);
	if (!IS_ERR_OR_NULL(t.cq))
		ib_destroy_cq(t.cq);
	if (!IS_ERR_OR_NULL(t.pd))
		ib_dealloc_pd(t.pd);
	t.qp = NULL;
	t.cq = NULL;
	t.pd = NULL;
}

/* ------------------------------------------------------------------------
 * Client of the core
 */

static int client_add(struct ib_device *dev)
{
	return 0;
}

static void client_remove(struct ib_device *dev, void *data)
{
	if (dev != t.dev)
		return;
	WRITE_ONCE(t.crossed, READ_ONCE(t.held));
	complete(&t.removal);
	if (shutdown)
		t.was_flushed = wait_for_completion_timeout(&t.flushed,
							    PATIENCE);
	drop_queues();
	/* Another device may get its address. */
	t.dev = NULL;
	complete(&t.removed);
}

static struct ib_client client = {
	.name = KBUILD_MODNAME,
	.add = client_add,
	.remove = client_remove,
};

/* ------------------------------------------------------------------------
 * An event that is dispatched meanwhile
 */

/*
 * Under RCU, as all events of the device are dispatched.  So once the remover waits
 * for a grace period, it goes on only after this.
 */
static int hold_event(struct kprobe *probe, struct pt_regs *regs)
{
	const struct ib_event *event = (void *)regs_get_kernel_argument(regs, 0);
	u64 end = ktime_get_mono_fast_ns() + HOLD_NS;

	if (event->event != IB_EVENT_DEVICE_FATAL ||
	    event->device != READ_ONCE(t.dev) || READ_ONCE(t.was_held))
		return 0;
	WRITE_ONCE(t.was_held, true);
	WRITE_ONCE(t.held, true);
	while (!READ_ONCE(t.waits) && !READ_ONCE(t.crossed) &&
	       ktime_get_mono_fast_ns() < end)
		cpu_relax();
	WRITE_ONCE(t.held, false);
	return 0;
}
NOKPROBE_SYMBOL(hold_event);

static int note_wait(struct kprobe *probe, struct pt_regs *regs)
{
	if (current == READ_ONCE(t.remover) && READ_ONCE(t.held))
		WRITE_ONCE(t.waits, true);
	return 0;
}
NOKPROBE_SYMBOL(note_wait);

static struct kprobe probes[] = {
	{ .symbol_name = "ib_dispatch_event", .pre_handler = hold_event },
	{ .symbol_name = "synchronize_rcu", .pre_handler = note_wait },
};

/* Does nothing more until it is stopped. */
static int rest(void)
{
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

static int declare_dead(void *arg)
{
	qhca_abandon(qhca_dev_of_aux(to_auxiliary_dev(t.rdma)), "test");
	return rest();
}

static int unbind(void *arg)
{
	WRITE_ONCE(t.remover, current);
	while (!READ_ONCE(t.held) && !kthread_should_stop())
		usleep_range(1000, 2000);
	if (!kthread_should_stop())
		device_release_driver(t.rdma);
	return rest();
}

/* Takes a reference on the auxiliary device of the RDMA driver. */
static int find_rdma(struct device *child, void *found)
{
	if (!strstarts(dev_name(child), "qhca.rdma"))
		return 0;
	*(struct device **)found = get_device(child);
	return 1;
}

static struct task_struct *start(int (*function)(void *), int cpu)
{
	struct task_struct *task;

	task = kthread_create(function, NULL, "qhca-test/%d", cpu);
	if (IS_ERR(task))
		return NULL;
	kthread_bind(task, cpu);
	wake_up_process(task);
	return task;
}

static void run_event(void)
{
	struct task_struct *remover = start(unbind, 1);
	struct task_struct *killer = remover ? start(declare_dead, 0) : NULL;

	point(killer && wait_for_completion_timeout(&t.removed, PATIENCE) &&
	      READ_ONCE(t.was_held),
	      "the driver is removed while an event is being dispatched");
	if (killer)
		kthread_stop(killer);
	if (remover)
		kthread_stop(remover);
	point(READ_ONCE(t.waits) && !READ_ONCE(t.crossed),
	      "the device is unregistered after the event has been dispatched");
}

static void run_shutdown(void)
{
	pr_info("ready\n");
	if (!wait_for_completion_timeout(&t.removal, PATIENCE)) {
		point(false, "the function is being stopped");
		return;
	}
	t.pdev->driver->shutdown(t.pdev);
	point(wait_for_completion_timeout(&t.removed, 2 * PATIENCE),
	      "the function is shut down in the middle of a stop");
	point(t.was_flushed, "a request that the stop waits for is flushed");
}

static int set_up(void)
{
	int err = 0;

	t.dev = find_rdma_device(netdev);
	if (!t.dev)
		return -ENODEV;
	t.pdev = pci_dev_get(to_pci_dev(t.dev->dev.parent));
	if (!device_for_each_child(&t.pdev->dev, &t.rdma, find_rdma))
		err = -ENODEV;
	else if (shutdown)
		err = make_queues();
	if (err)
		drop_queues();
	/* Its removal waits for the last user. */
	ib_device_put(t.dev);
	return err;
}

static void remove_probes(unsigned int n)
{
	while (n)
		unregister_kprobe(&probes[--n]);
}

static int place_probes(void)
{
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		err = register_kprobe(&probes[i]);
		if (err) {
			remove_probes(i);
			return err;
		}
	}
	return 0;
}

static int __init qhca_test_remove_init(void)
{
	int err;

	init_completion(&t.removal);
	init_completion(&t.flushed);
	init_completion(&t.removed);
	err = set_up();
	if (err)
		goto put;
	err = ib_register_client(&client);
	if (err)
		goto put;
	if (!shutdown)
		err = place_probes();
	if (err)
		goto unregister;
	if (shutdown)
		run_shutdown();
	else
		run_event();
	err = tap_end();
	if (!shutdown)
		remove_probes(ARRAY_SIZE(probes));
unregister:
	ib_unregister_client(&client);
put:
	put_device(t.rdma);
	pci_dev_put(t.pdev);
	return err;
}

static void __exit qhca_test_remove_exit(void)
{
}

module_init(qhca_test_remove_init);
module_exit(qhca_test_remove_exit);

MODULE_DESCRIPTION("Test of what crosses the removal of the RDMA device");
MODULE_LICENSE("Dual BSD/GPL");
