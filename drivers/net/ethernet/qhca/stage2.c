// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The second stage of translation, as the physical function offers it to the
 * driver that passes a virtual function to a virtual machine.
 *
 * This file knows nothing of the tables.  It sends commands on behalf of that
 * driver, gives it the faults of its function, and tells it when the device has
 * been started again and has lost the rows of the GVM identifier table.
 *
 * Lifetime: qhca_vfs_remove() disables the virtual functions, or unbinds the
 * users of this file from those that it must leave enabled.  So these are gone
 * before the struct qhca_core is.
 */
#include "core.h"

/*
 * A row that could not be switched off is owed: the user may be gone by the time
 * that the device answers again, and the function may have another driver.
 */
static int qhca_stage2_write(struct qhca_core *core, u32 gvmi,
			     const struct qhca_gvm_entry *row)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_SET_GVM,
		.index = gvmi,
		.in = row,
		.in_len = sizeof(*row),
	};
	int err;

	if (!row->flags)
		set_bit(gvmi - 1, core->stage2_owed);
	err = qhca_cmd_exec(&core->qdev, &cmd);
	if (!err)
		clear_bit(gvmi - 1, core->stage2_owed);
	return err;
}

/**
 * qhca_stage2_clear - switch stage 2 of virtual functions off
 * @core: physical function
 * @num:  number of virtual functions, which do not exist at present
 *
 * The row of a function outlives the function, and a reset of the adapter:
 * those that are enabled next must not begin with what was left.
 *
 * Return: 0 or a negative errno.
 */
int qhca_stage2_clear(struct qhca_core *core, int num)
{
	const struct qhca_gvm_entry off = {};
	int vf, err = 0;

	if (!(core->qdev.caps.features & QHCA_FEAT_STAGE2))
		return 0;
	for (vf = 0; vf < num && !err; vf++)
		err = qhca_stage2_write(core, vf + 1, &off);
	return err;
}

/**
 * qhca_stage2_found - a virtual function has been there before the driver
 * @core:   physical function that is being started for the first time
 * @vf:     number of the virtual function
 * @status: its QHCA_REG_STATUS
 *
 * The driver that was bound before may have left without switching its row off, and
 * then the reset of this start has killed the function.  One that runs has no such
 * row, and would be killed by the command.
 */
void qhca_stage2_found(struct qhca_core *core, int vf, u32 status)
{
	if (!(core->qdev.caps.features & QHCA_FEAT_STAGE2))
		return;
	if (status & QHCA_STATUS_FATAL || !(status & QHCA_STATUS_ENABLED))
		set_bit(vf, core->stage2_owed);
}

/* Hard interrupts. */
void qhca_stage2_event(struct qhca_core *core, const struct qhca_eqe *eqe)
{
	u32 gvmi = le32_to_cpu(eqe->number);
	struct qhca_stage2 *s2 = NULL;
	unsigned long irqflags;

	spin_lock_irqsave(&core->stage2_lock, irqflags);
	if (gvmi && gvmi <= QHCA_MAX_VFS)
		s2 = core->stage2[gvmi - 1];
	/*
	 * A late event of a function that has been taken away has no user; the
	 * device forgets the fault with the row.
	 */
	if (s2)
		s2->ops->fault(s2->priv, eqe);
	spin_unlock_irqrestore(&core->stage2_lock, irqflags);
}

/*
 * A function that runs has no row, or is about to find that its row is lost: it stays
 * owed until it has been seen dead.  The command would kill it.
 */
static bool qhca_stage2_runs(struct qhca_core *core, int vf)
{
	struct qhca_vf_state state;
	u32 status;

	if (qhca_vf_query(core, vf, &state, false))
		return false;
	status = le32_to_cpu(state.status);
	return status & QHCA_STATUS_ENABLED && !(status & QHCA_STATUS_FATAL);
}

/**
 * qhca_stage2_restart - the device is up again and has lost its rows
 * @core: physical function
 *
 * Context: process, devlink instance lock held.
 */
void qhca_stage2_restart(struct qhca_core *core)
{
	const struct qhca_gvm_entry off = {};
	int i;

	mutex_lock(&core->stage2_mutex);
	for (i = 0; i < QHCA_MAX_VFS; i++)
		if (core->stage2[i])
			core->stage2[i]->ops->restart(core->stage2[i]->priv);
		else if (test_bit(i, core->stage2_owed) &&
			 !qhca_stage2_runs(core, i))
			qhca_stage2_write(core, i + 1, &off);
	mutex_unlock(&core->stage2_mutex);
}

void qhca_stage2_init(struct qhca_core *core)
{
	spin_lock_init(&core->stage2_lock);
	mutex_init(&core->stage2_mutex);
}

/* No user comes any more. */
void qhca_stage2_shut(struct qhca_core *core)
{
	mutex_lock(&core->stage2_mutex);
	core->stage2_shut = true;
	mutex_unlock(&core->stage2_mutex);
}

/* A virtual function that has a user, which the caller puts; or NULL. */
struct pci_dev *qhca_stage2_get_vf(struct qhca_core *core)
{
	struct pci_dev *vf = NULL;
	int i;

	mutex_lock(&core->stage2_mutex);
	for (i = 0; i < QHCA_MAX_VFS && !vf; i++)
		if (core->stage2[i])
			vf = pci_dev_get(core->stage2[i]->vf);
	mutex_unlock(&core->stage2_mutex);
	return vf;
}

int qhca_stage2_attach(struct qhca_stage2 *s2, struct pci_dev *vf,
		       const struct qhca_stage2_ops *ops, void *priv)
{
	struct qhca_core *core = qhca_core_of_vf(vf);
	int id = pci_iov_vf_id(vf);
	int err = 0;

	/* A virtual function of before is there while the driver is probed. */
	if (IS_ERR_OR_NULL(core))
		return core ? PTR_ERR(core) : -ENODEV;
	if (id < 0 || id >= QHCA_MAX_VFS)
		return -ENODEV;
	if (!(core->qdev.caps.features & QHCA_FEAT_STAGE2))
		return -EOPNOTSUPP;
	*s2 = (struct qhca_stage2) {
		.core = core,
		.vf = vf,
		.gvmi = id + 1,
		.ops = ops,
		.priv = priv,
	};
	mutex_lock(&core->stage2_mutex);
	spin_lock_irq(&core->stage2_lock);
	if (core->stage2_shut)
		err = -ENODEV;
	else if (core->stage2[id])
		err = -EBUSY;
	else
		core->stage2[id] = s2;
	spin_unlock_irq(&core->stage2_lock);
	mutex_unlock(&core->stage2_mutex);
	return err;
}
EXPORT_SYMBOL_GPL(qhca_stage2_attach);

void qhca_stage2_detach(struct qhca_stage2 *s2)
{
	struct qhca_core *core = s2->core;

	mutex_lock(&core->stage2_mutex);
	spin_lock_irq(&core->stage2_lock);
	core->stage2[s2->gvmi - 1] = NULL;
	spin_unlock_irq(&core->stage2_lock);
	mutex_unlock(&core->stage2_mutex);
}
EXPORT_SYMBOL_GPL(qhca_stage2_detach);

struct device *qhca_stage2_table_device(struct qhca_stage2 *s2)
{
	return qhca_device(s2->core);
}
EXPORT_SYMBOL_GPL(qhca_stage2_table_device);

int qhca_stage2_set(struct qhca_stage2 *s2, dma_addr_t root, u8 page_shift,
		    u8 levels)
{
	struct qhca_gvm_entry row = {
		.at_base = cpu_to_le64(root),
		.page_shift = page_shift,
		.levels = levels,
		.flags = cpu_to_le32(QHCA_GVM_STAGE2),
	};

	return qhca_stage2_write(s2->core, s2->gvmi, &row);
}
EXPORT_SYMBOL_GPL(qhca_stage2_set);

int qhca_stage2_unset(struct qhca_stage2 *s2)
{
	const struct qhca_gvm_entry off = {};

	return qhca_stage2_write(s2->core, s2->gvmi, &off);
}
EXPORT_SYMBOL_GPL(qhca_stage2_unset);

int qhca_stage2_invalidate(struct qhca_stage2 *s2, u64 start, u64 length)
{
	struct qhca_range range = {
		.start = cpu_to_le64(start),
		.length = cpu_to_le64(length),
	};
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_INVALIDATE_STAGE2,
		.index = s2->gvmi,
		.in = &range,
		.in_len = sizeof(range),
	};

	/* The entries are cleared before the device gets the command. */
	wmb();
	return qhca_cmd_exec(&s2->core->qdev, &cmd);
}
EXPORT_SYMBOL_GPL(qhca_stage2_invalidate);

int qhca_stage2_resume(struct qhca_stage2 *s2, u32 token, bool ok)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_STAGE2_RESUME,
		.index = token,
		.param = QHCA_PUT(QHCA_RESUME_GVMI, s2->gvmi) |
			 (ok ? QHCA_RESUME_OK : QHCA_RESUME_FAIL),
	};

	/* The entries are present before the device looks again. */
	wmb();
	return qhca_cmd_exec(&s2->core->qdev, &cmd);
}
EXPORT_SYMBOL_GPL(qhca_stage2_resume);
