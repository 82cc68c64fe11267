// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Objects of the device: commands that create and destroy them.
 */
#include "qhca_ib.h"

int qhca_create_object(struct qhca_ib_dev *dev, u16 opcode, u32 index,
		       const void *in, u32 in_len)
{
	struct qhca_cmd cmd = {
		.opcode = opcode,
		.index = index,
		.in = in,
		.in_len = in_len,
	};

	return qhca_cmd_exec(dev->qdev, &cmd);
}

/**
 * qhca_refused - declare the device dead if it refused a command that it must
 * not
 * @dev:    the device
 * @opcode: opcode of the command, which takes memory from the device
 * @index:  object number in the command
 * @err:    return value of qhca_cmd_exec(); 0: nothing was refused
 *
 * The core frees an object whether or not its destruction succeeded, when a
 * process ends or a creation is undone, and it ignores the failure for most
 * objects of the kernel.  Nor can the notifier of an address space refuse.  So
 * a device that will not let go of memory is declared dead: afterwards it has
 * no access to any memory, and the caller may go on to free it.
 */
void qhca_refused(struct qhca_ib_dev *dev, u16 opcode, u32 index, int err)
{
	if (!err || qhca_is_dead(dev))
		return;
	ibdev_err(&dev->ibdev, "command %#x on %#x refused: %d\n", opcode,
		  index, err);
	qhca_abandon(dev->qdev, "refuses to give memory back");
}

/* When this returns the device no longer uses the object, or it is dead. */
void qhca_destroy_object(struct qhca_ib_dev *dev, u16 opcode, u32 index)
{
	struct qhca_cmd cmd = {
		.opcode = opcode,
		.index = index,
	};

	qhca_refused(dev, opcode, index, qhca_cmd_exec(dev->qdev, &cmd));
}
