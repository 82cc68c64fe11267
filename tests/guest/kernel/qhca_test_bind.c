// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * qhca_test_bind.ko: binds a window in the middle of a deregistration.
 *
 * The driver reads how many windows are bound to a region, ends the region's entry,
 * and sends INVALIDATE_KEY.  The device may have bound a window in between, which
 * the driver finds out when it reads the count again.  No program can time a bind
 * so well, so this module plays the device: it has a kprobe where the driver sends
 * commands, and at the INVALIDATE_KEY of one key it counts a window in the entry.
 *
 * /sys/module/qhca_test_bind/parameters/index
 *	write the index of the key; write 0: the window is gone again
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/ptrace.h>

#include <linux/qhca/driver.h>

static uint key_index;
static struct qhca_pte *entry;		/* whose window has been counted */

static int before_command(struct kprobe *probe, struct pt_regs *regs)
{
	struct qhca_dev *qdev = (void *)regs_get_kernel_argument(regs, 0);
	const struct qhca_cmd *cmd = (void *)regs_get_kernel_argument(regs, 1);
	uint index = READ_ONCE(key_index);

	if (index && cmd->opcode == QHCA_CMD_INVALIDATE_KEY &&
	    cmd->index == index && !entry) {
		entry = qhca_pte(qdev, index);
		WRITE_ONCE(entry->windows, cpu_to_le32(1));
	}
	return 0;
}

static struct kprobe commands = {
	.symbol_name = "qhca_cmd_exec",
	.pre_handler = before_command,
};

static int set_index(const char *text, const struct kernel_param *kp)
{
	uint index;
	int err = kstrtouint(text, 0, &index);

	if (err)
		return err;
	if (entry)
		WRITE_ONCE(entry->windows, 0);
	entry = NULL;
	WRITE_ONCE(key_index, index);
	return 0;
}

static const struct kernel_param_ops index_ops = {
	.set = set_index, .get = param_get_uint,
};

module_param_cb(index, &index_ops, &key_index, 0644);
MODULE_PARM_DESC(index, "index of the key whose deregistration meets a bind; 0: none");

static int __init qhca_test_bind_init(void)
{
	return register_kprobe(&commands);
}
module_init(qhca_test_bind_init);

static void __exit qhca_test_bind_exit(void)
{
	unregister_kprobe(&commands);
}
module_exit(qhca_test_bind_exit);

MODULE_DESCRIPTION("Binds a window while a region of qhca is deregistered");
MODULE_LICENSE("Dual BSD/GPL");
