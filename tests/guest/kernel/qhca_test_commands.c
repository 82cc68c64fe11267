// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_commands.ko: commands and object numbers as qhca.ko offers them.
 *
 *   rmmod qhca_ib; insmod qhca_test_commands.ko
 *
 * It binds to the auxiliary device in place of qhca_ib.ko and runs when it does.
 * The results are TAP in the kernel's log.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/auxiliary_bus.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include <linux/qhca/driver.h>

#include "tap.h"

/* Ordinary commands at once: five times as many as there are slots. */
#define ORDINARY	160
#define VECTOR_ASYNC	0

static uint numbers;
module_param(numbers, uint, 0444);
MODULE_PARM_DESC(numbers, "key indices to take, one after the other; 0: none");

struct crowd {
	struct qhca_dev *qdev;
	struct task_struct *task[ORDINARY];
	atomic_t begun, left, failed;
};

static int ordinary(void *arg)
{
	struct qhca_cmd cmd = { .opcode = QHCA_CMD_NOP };
	struct crowd *crowd = arg;

	atomic_inc(&crowd->begun);
	if (qhca_cmd_exec(crowd->qdev, &cmd))
		atomic_inc(&crowd->failed);
	atomic_dec(&crowd->left);
	return 0;
}

static int gather(struct crowd *crowd)
{
	struct task_struct *task;
	int i;

	atomic_set(&crowd->left, ORDINARY);
	for (i = 0; i < ORDINARY; i++) {
		task = kthread_create(ordinary, crowd, "qhca-test/%d", i);
		if (IS_ERR(task))
			return PTR_ERR(task);
		crowd->task[i] = get_task_struct(task);
		wake_up_process(task);
	}
	while (atomic_read(&crowd->begun) < ORDINARY)
		schedule_timeout_uninterruptible(1);
	return 0;
}

static void disperse(struct crowd *crowd)
{
	int i;

	for (i = 0; i < ORDINARY && crowd->task[i]; i++) {
		kthread_stop(crowd->task[i]);
		put_task_struct(crowd->task[i]);
	}
}

/*
 * While the interrupt of the commands' events is off, each command takes the
 * second after which its waiter looks for itself.  So as many as there are slots
 * are done in a second, and an invalidation that has to wait for its turn comes
 * after all the others.
 */
static void test_reserved_slots(struct qhca_dev *qdev)
{
	int irq = pci_irq_vector(qdev->pdev, VECTOR_ASYNC);
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_INVALIDATE_KEY,
		.param = QHCA_INVAL_PT,
	};
	struct crowd *crowd;
	int err, left;

	crowd = kzalloc(sizeof(*crowd), GFP_KERNEL);
	err = crowd ? qhca_index_alloc(qdev, QHCA_TABLE_PT, &cmd.index) :
		      -ENOMEM;
	point(!err, "memory and a key index");
	if (err)
		goto free;
	crowd->qdev = qdev;
	disable_irq(irq);
	err = gather(crowd);
	if (!err)
		err = qhca_cmd_exec(qdev, &cmd);
	left = atomic_read(&crowd->left);
	enable_irq(irq);
	disperse(crowd);
	pr_info("# %d of %d commands were left\n", left, ORDINARY);
	point(!err && !atomic_read(&crowd->failed), "all commands succeed");
	point(left > ORDINARY / 2,
	      "an invalidation does not wait for other commands' slots");
	qhca_index_free(qdev, QHCA_TABLE_PT, cmd.index);
free:
	kfree(crowd);
}

/* Someone else sees to it that there is no memory for more of the table. */
static void test_numbers(struct qhca_dev *qdev)
{
	int err = 0;
	u32 n, i;

	for (n = 0; n < numbers && !err; n++) {
		err = qhca_index_alloc(qdev, QHCA_TABLE_PT, &i);
		if (!err)
			qhca_index_free(qdev, QHCA_TABLE_PT, i);
	}
	pr_info("# %u numbers, %d\n", n, err);
	point(!err, "numbers come from the part of the table that there is");
}

static int qhca_test_probe(struct auxiliary_device *adev,
			   const struct auxiliary_device_id *id)
{
	struct qhca_dev *qdev = qhca_dev_of_aux(adev);

	if (numbers)
		test_numbers(qdev);
	else
		test_reserved_slots(qdev);
	return tap_end();
}

static void qhca_test_remove(struct auxiliary_device *adev)
{
}

static const struct auxiliary_device_id qhca_test_ids[] = {
	{ .name = "qhca." QHCA_AUX_RDMA },
	{ }
};
MODULE_DEVICE_TABLE(auxiliary, qhca_test_ids);

static struct auxiliary_driver qhca_test_driver = {
	.name = "test",
	.probe = qhca_test_probe,
	.remove = qhca_test_remove,
	.id_table = qhca_test_ids,
};
module_auxiliary_driver(qhca_test_driver);

MODULE_DESCRIPTION("Test of commands and object numbers of qhca.ko");
MODULE_LICENSE("Dual BSD/GPL");
