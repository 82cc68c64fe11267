// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The command queue.
 *
 * The driver copies a command into a slot and its mailbox, and hands it to the
 * device with the slot's doorbell bit.  The command is complete when the device
 * has cleared the slot's OWN bit.  The event that follows only wakes the
 * waiter, which also reads the slot by itself from time to time.  So a lost
 * event costs time, but does not make the driver give the device up.
 *
 * A few slots are reserved for invalidations, so that these wait for the device
 * and for each other, but never for commands that have not been posted.
 *
 * After a timeout the slot still belongs to the device, which may yet write to
 * it and its mailbox.  Therefore a timeout ends in a reset (qhca_die()), and
 * the driver does not free the memory before.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>

#include "core.h"

#define QHCA_MBOX_IN(ctx)	((ctx)->mbox)
#define QHCA_MBOX_OUT(ctx)	((ctx)->mbox + QHCA_MAILBOX_SIZE)

/* How often a waiter for an event reads the slot by itself. */
#define QHCA_CMD_LOOK		HZ

/* Bounds of the sleep between two reads of a polled slot, in us. */
#define QHCA_CMD_POLL_MIN	20
#define QHCA_CMD_POLL_MAX	2000

static int qhca_cmd_errno(u8 status)
{
	switch (status) {
	case QHCA_CMD_OK:
		return 0;
	case QHCA_CMD_BAD_PARAM:
	case QHCA_CMD_BAD_INDEX:
	case QHCA_CMD_BAD_LEN:
		return -EINVAL;
	case QHCA_CMD_BAD_STATE:
	case QHCA_CMD_IN_USE:
		return -EBUSY;
	case QHCA_CMD_NOT_MAPPED:
	case QHCA_CMD_NOT_INIT:
		return -ENXIO;
	case QHCA_CMD_DMA_ERR:
		return -EFAULT;
	case QHCA_CMD_NO_RESOURCE:
		return -ENOSPC;
	case QHCA_CMD_BAD_OPCODE:
	case QHCA_CMD_UNSUPPORTED:
		return -EOPNOTSUPP;
	case QHCA_CMD_NOT_PERMITTED:
		return -EPERM;
	default:
		return -EREMOTEIO;
	}
}

static bool qhca_cmd_owned(struct qhca_cmdq *cmdq, unsigned int i)
{
	u32 status = le32_to_cpu(READ_ONCE(cmdq->slot[i].status));

	if (status & QHCA_CMD_OWN)
		return true;
	/* The device writes the status last, so all else is read after it. */
	dma_rmb();
	return false;
}

/*
 * Memory reclaim, munmap() and the end of a process wait for invalidations, in
 * notifiers for which other processes wait in turn.
 */
static bool qhca_cmd_is_invalidation(const struct qhca_cmd *cmd)
{
	return cmd->opcode == QHCA_CMD_INVALIDATE_KEY ||
	       cmd->opcode == QHCA_CMD_INVALIDATE_RANGE ||
	       cmd->opcode == QHCA_CMD_INVALIDATE_STAGE2 ||
	       cmd->opcode == QHCA_CMD_INVALIDATE_ALL;
}

/* Wait for a slot that the command may use. */
static struct semaphore *qhca_cmd_get_unit(struct qhca_cmdq *cmdq,
					   const struct qhca_cmd *cmd)
{
	if (!qhca_cmd_is_invalidation(cmd)) {
		down(&cmdq->free);
		return &cmdq->free;
	}
	if (!down_trylock(&cmdq->free))
		return &cmdq->free;
	down(&cmdq->reserved);
	return &cmdq->reserved;
}

static unsigned int qhca_cmd_get_slot(struct qhca_cmdq *cmdq,
				      const struct qhca_cmd *cmd)
{
	struct semaphore *unit = qhca_cmd_get_unit(cmdq, cmd);
	unsigned long irqflags;
	unsigned int i;

	spin_lock_irqsave(&cmdq->lock, irqflags);
	for (i = 0; i < QHCA_CMD_SLOTS; i++)
		if (!cmdq->ctx[i].busy)
			break;
	/* The semaphores guarantee a free slot. */
	if (WARN_ON_ONCE(i == QHCA_CMD_SLOTS))
		i = 0;
	cmdq->ctx[i].busy = true;
	cmdq->ctx[i].unit = unit;
	cmdq->ctx[i].token = ++cmdq->token;
	reinit_completion(&cmdq->ctx[i].done);
	spin_unlock_irqrestore(&cmdq->lock, irqflags);
	return i;
}

static void qhca_cmd_put_slot(struct qhca_cmdq *cmdq, unsigned int i)
{
	struct semaphore *unit = cmdq->ctx[i].unit;
	unsigned long irqflags;

	spin_lock_irqsave(&cmdq->lock, irqflags);
	cmdq->ctx[i].busy = false;
	spin_unlock_irqrestore(&cmdq->lock, irqflags);
	up(unit);
}

/*
 * The waiter was woken by the event, which the device sends after the answer,
 * or by qhca_cmdq_fail_all().  A device that sends an event without an answer
 * may still write to memory that the caller is about to free, so it is declared
 * dead.
 */
static int qhca_cmd_woken(struct qhca_core *core, unsigned int i)
{
	if (!qhca_cmd_owned(&core->cmdq, i))
		return 0;
	qhca_die(core, "event of a command without its answer");
	return -EIO;
}

static int qhca_cmd_wait_event(struct qhca_core *core, unsigned int i)
{
	struct qhca_cmdq *cmdq = &core->cmdq;
	unsigned long deadline = jiffies + QHCA_CMD_TIMEOUT;

	do {
		if (wait_for_completion_timeout(&cmdq->ctx[i].done,
						QHCA_CMD_LOOK))
			return qhca_cmd_woken(core, i);
		if (!qhca_cmd_owned(cmdq, i)) {
			/* The event may only be late, on a busy host. */
			atomic_inc(&cmdq->lost_events);
			dev_dbg(qhca_device(core),
				"command %#x done, event missing\n",
				le16_to_cpu(cmdq->slot[i].opcode));
			return 0;
		}
		if (!qhca_check_alive(core))
			return -EIO;
	} while (time_before(jiffies, deadline));
	return -ETIMEDOUT;
}

static int qhca_cmd_wait_poll(struct qhca_core *core, unsigned int i)
{
	struct qhca_cmdq *cmdq = &core->cmdq;
	unsigned long deadline = jiffies + QHCA_CMD_TIMEOUT;
	unsigned long look = jiffies + QHCA_CMD_LOOK;
	unsigned int us = QHCA_CMD_POLL_MIN;

	while (qhca_cmd_owned(cmdq, i)) {
		if (qhca_state(core) == QHCA_DEV_DEAD)
			return -EIO;
		if (time_after(jiffies, look)) {
			if (!qhca_check_alive(core))
				return -EIO;
			look = jiffies + QHCA_CMD_LOOK;
		}
		if (time_after(jiffies, deadline))
			return -ETIMEDOUT;
		usleep_range(us, 2 * us);
		us = min(2 * us, QHCA_CMD_POLL_MAX);
	}
	return 0;
}

static void qhca_cmd_post(struct qhca_core *core, unsigned int i,
			  const struct qhca_cmd *cmd, bool events)
{
	struct qhca_cmd_slot *slot = &core->cmdq.slot[i];
	struct qhca_cmd_ctx *ctx = &core->cmdq.ctx[i];

	if (cmd->in_len)
		memcpy(QHCA_MBOX_IN(ctx), cmd->in, cmd->in_len);
	slot->opcode = cpu_to_le16(cmd->opcode);
	slot->token = cpu_to_le16(ctx->token);
	slot->flags = cpu_to_le32(events ? QHCA_CMD_F_EVENT : 0);
	slot->index = cpu_to_le32(cmd->index);
	slot->param = cpu_to_le32(cmd->param);
	slot->in_addr = cpu_to_le64(cmd->in_len ? ctx->dma : 0);
	slot->out_addr = cpu_to_le64(cmd->out_len ?
				     ctx->dma + QHCA_MAILBOX_SIZE : 0);
	slot->in_len = cpu_to_le32(cmd->in_len);
	slot->out_len = cpu_to_le32(cmd->out_len);
	slot->out_param = 0;
	slot->syndrome = 0;
	/* OWN is written last, when all else is in memory. */
	dma_wmb();
	WRITE_ONCE(slot->status, cpu_to_le32(QHCA_CMD_OWN));
	qhca_write(core, QHCA_REG_CMDQ_DOORBELL, BIT(i));
}

static int qhca_cmd_finish(struct qhca_core *core, unsigned int i,
			   struct qhca_cmd *cmd)
{
	struct qhca_cmd_slot *slot = &core->cmdq.slot[i];
	u32 status = le32_to_cpu(READ_ONCE(slot->status)) & QHCA_CMD_STATUS;

	if (status != QHCA_CMD_OK) {
		dev_dbg(qhca_device(core),
			"command %#x index %#x: status %#x, syndrome %#x\n",
			cmd->opcode, cmd->index, status,
			le32_to_cpu(slot->syndrome));
		return qhca_cmd_errno(status);
	}
	if (cmd->out_len)
		memcpy(cmd->out, QHCA_MBOX_OUT(&core->cmdq.ctx[i]),
		       cmd->out_len);
	cmd->out_param = le64_to_cpu(READ_ONCE(slot->out_param));
	return 0;
}

static void qhca_cmd_timed_out(struct qhca_core *core,
			       const struct qhca_cmd *cmd)
{
	struct qhca_cmdq *cmdq = &core->cmdq;

	atomic_inc(&cmdq->timeouts);
	dev_err(qhca_device(core), "command %#x index %#x timed out\n",
		cmd->opcode, cmd->index);
	qhca_die(core, "command timeout");
}

static int qhca_cmd_run(struct qhca_core *core, struct qhca_cmd *cmd,
			enum qhca_dev_state wanted)
{
	struct qhca_cmdq *cmdq = &core->cmdq;
	bool events;
	unsigned int i;
	int err;

	might_sleep();
	if (WARN_ON_ONCE(cmd->in_len > QHCA_MAILBOX_SIZE ||
			 cmd->out_len > QHCA_MAILBOX_SIZE))
		return -EINVAL;

	i = qhca_cmd_get_slot(cmdq, cmd);
	/*
	 * The slot is marked busy, so from here on either this sees that the
	 * device died, or qhca_cmdq_fail_all() sees the slot.
	 */
	if (!READ_ONCE(cmdq->running) || qhca_state(core) == QHCA_DEV_DEAD ||
	    (wanted == QHCA_DEV_UP && qhca_state(core) != QHCA_DEV_UP)) {
		err = -EIO;
		goto put;
	}
	events = READ_ONCE(cmdq->events);
	qhca_cmd_post(core, i, cmd, events);
	err = events ? qhca_cmd_wait_event(core, i) :
		       qhca_cmd_wait_poll(core, i);
	if (!err)
		err = qhca_cmd_finish(core, i, cmd);
	else if (err == -ETIMEDOUT)
		qhca_cmd_timed_out(core, cmd);
put:
	qhca_cmd_put_slot(cmdq, i);
	return err;
}

/* Execute a command in any state of the function that has a command queue. */
int qhca_core_exec(struct qhca_core *core, struct qhca_cmd *cmd)
{
	return qhca_cmd_run(core, cmd, QHCA_DEV_DOWN);
}

/* As qhca_core_exec(), for a command without mailboxes. */
int qhca_core_simple(struct qhca_core *core, u16 opcode, u32 index, u32 param)
{
	struct qhca_cmd cmd = {
		.opcode = opcode,
		.index = index,
		.param = param,
	};

	return qhca_core_exec(core, &cmd);
}

int qhca_cmd_exec(struct qhca_dev *qdev, struct qhca_cmd *cmd)
{
	return qhca_cmd_run(qhca_core_of(qdev), cmd, QHCA_DEV_UP);
}
EXPORT_SYMBOL_GPL(qhca_cmd_exec);

/* An event of type QHCA_EVENT_CMD.  Hard interrupt context. */
void qhca_cmdq_event(struct qhca_core *core, const struct qhca_eqe *eqe)
{
	struct qhca_cmdq *cmdq = &core->cmdq;
	u32 i = le32_to_cpu(eqe->number);
	unsigned long irqflags;

	if (i >= QHCA_CMD_SLOTS)
		return;
	spin_lock_irqsave(&cmdq->lock, irqflags);
	/*
	 * A late event, of a command that a waiter found complete, differs
	 * here.
	 */
	if (cmdq->ctx[i].busy &&
	    cmdq->ctx[i].token == le16_to_cpu(eqe->token))
		complete(&cmdq->ctx[i].done);
	spin_unlock_irqrestore(&cmdq->lock, irqflags);
}

/* The device is dead: wake all waiters.  Any context. */
void qhca_cmdq_fail_all(struct qhca_core *core)
{
	struct qhca_cmdq *cmdq = &core->cmdq;
	unsigned long irqflags;
	unsigned int i;

	spin_lock_irqsave(&cmdq->lock, irqflags);
	for (i = 0; i < QHCA_CMD_SLOTS; i++)
		if (cmdq->ctx[i].busy)
			complete(&cmdq->ctx[i].done);
	spin_unlock_irqrestore(&cmdq->lock, irqflags);
}

/* Wait for the commands under way.  The caller ensures that none is added. */
void qhca_cmdq_drain(struct qhca_core *core)
{
	struct qhca_cmdq *cmdq = &core->cmdq;
	unsigned int i;

	for (i = 0; i < QHCA_CMD_SLOTS - QHCA_CMD_RESERVED; i++)
		down(&cmdq->free);
	for (i = 0; i < QHCA_CMD_RESERVED; i++)
		down(&cmdq->reserved);
	for (i = 0; i < QHCA_CMD_RESERVED; i++)
		up(&cmdq->reserved);
	for (i = 0; i < QHCA_CMD_SLOTS - QHCA_CMD_RESERVED; i++)
		up(&cmdq->free);
}

/* Must be called only while no command is under way. */
void qhca_cmdq_use_events(struct qhca_core *core, bool on)
{
	WRITE_ONCE(core->cmdq.events, on);
}

static int qhca_cmdq_wait_enabled(struct qhca_core *core)
{
	unsigned long deadline = jiffies + QHCA_RESET_TIMEOUT;
	u32 status;

	for (;;) {
		if (!qhca_answers(core))
			return -ENODEV;
		status = qhca_read(core, QHCA_REG_STATUS);
		if (status & QHCA_STATUS_FATAL)
			return -EIO;
		if (status & QHCA_STATUS_ENABLED)
			return 0;
		if (time_after(jiffies, deadline))
			return -ETIMEDOUT;
		usleep_range(100, 200);
	}
}

/* Program the address of the queue into a device after its reset; enable it. */
int qhca_cmdq_start(struct qhca_core *core)
{
	struct qhca_cmdq *cmdq = &core->cmdq;
	int err;

	memset(cmdq->slot, 0, QHCA_CMD_SLOTS * sizeof(*cmdq->slot));
	cmdq->events = false;
	qhca_write(core, QHCA_REG_CMDQ_LOG_SLOTS, QHCA_MAX_LOG_CMD_SLOTS);
	qhca_write(core, QHCA_REG_CMDQ_BASE_LO, lower_32_bits(cmdq->dma));
	qhca_write(core, QHCA_REG_CMDQ_BASE_HI, upper_32_bits(cmdq->dma));
	qhca_write(core, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
	err = qhca_cmdq_wait_enabled(core);
	if (err) {
		dev_err(qhca_device(core), "command queue not enabled: %d\n",
			err);
		return err;
	}
	WRITE_ONCE(cmdq->running, true);
	return 0;
}

void qhca_cmdq_stop(struct qhca_core *core)
{
	WRITE_ONCE(core->cmdq.running, false);
	qhca_cmdq_drain(core);
}

int qhca_cmdq_alloc(struct qhca_core *core)
{
	struct qhca_cmdq *cmdq = &core->cmdq;
	struct device *dev = qhca_device(core);
	unsigned int i;

	spin_lock_init(&cmdq->lock);
	sema_init(&cmdq->free, QHCA_CMD_SLOTS - QHCA_CMD_RESERVED);
	sema_init(&cmdq->reserved, QHCA_CMD_RESERVED);
	/* The device requires page alignment, which coherent memory has. */
	cmdq->slot = dma_alloc_coherent(dev,
					QHCA_CMD_SLOTS * sizeof(*cmdq->slot),
					&cmdq->dma, GFP_KERNEL);
	if (!cmdq->slot)
		return -ENOMEM;
	for (i = 0; i < QHCA_CMD_SLOTS; i++) {
		struct qhca_cmd_ctx *ctx = &cmdq->ctx[i];

		init_completion(&ctx->done);
		ctx->mbox = dma_alloc_coherent(dev, 2 * QHCA_MAILBOX_SIZE,
					       &ctx->dma, GFP_KERNEL);
		if (!ctx->mbox) {
			qhca_cmdq_free(core);
			return -ENOMEM;
		}
	}
	return 0;
}

void qhca_cmdq_free(struct qhca_core *core)
{
	struct qhca_cmdq *cmdq = &core->cmdq;
	struct device *dev = qhca_device(core);
	unsigned int i;

	for (i = 0; i < QHCA_CMD_SLOTS; i++) {
		struct qhca_cmd_ctx *ctx = &cmdq->ctx[i];

		if (ctx->mbox)
			dma_free_coherent(dev, 2 * QHCA_MAILBOX_SIZE,
					  ctx->mbox, ctx->dma);
		ctx->mbox = NULL;
	}
	if (cmdq->slot)
		dma_free_coherent(dev, QHCA_CMD_SLOTS * sizeof(*cmdq->slot),
				  cmdq->slot, cmdq->dma);
	cmdq->slot = NULL;
}

/* @first: the field of @cmd that says which counter is the first. */
static int qhca_query_values(struct qhca_dev *qdev, struct qhca_cmd *cmd,
			     u32 *first, u32 count, u64 *values)
{
	const u32 most = QHCA_MAILBOX_SIZE / sizeof(__le64);
	u32 i, n;
	int err;

	while (count) {
		n = min(count, most);
		cmd->out = values;
		cmd->out_len = n * sizeof(__le64);
		err = qhca_cmd_exec(qdev, cmd);
		if (err)
			return err;
		for (i = 0; i < n; i++)
			le64_to_cpus(&values[i]);
		*first += n;
		values += n;
		count -= n;
	}
	return 0;
}

int qhca_query_counters(struct qhca_dev *qdev, u32 first, u32 count,
			u64 *values)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_QUERY_COUNTERS,
		.index = first,
	};

	return qhca_query_values(qdev, &cmd, &cmd.index, count, values);
}
EXPORT_SYMBOL_GPL(qhca_query_counters);

int qhca_query_counter_set(struct qhca_dev *qdev, u32 set, u32 first,
			   u32 count, u64 *values)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_QUERY_COUNTER_SET,
		.index = set,
		.param = first,
	};

	return qhca_query_values(qdev, &cmd, &cmd.param, count, values);
}
EXPORT_SYMBOL_GPL(qhca_query_counter_set);

/* @starting: the physical function is being started; otherwise it must be up */
int qhca_vf_query(struct qhca_core *core, int vf, struct qhca_vf_state *state,
		  bool starting)
{
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_QUERY_VF,
		.index = vf + 1,
		.out = state,
		.out_len = sizeof(*state),
	};

	return starting ? qhca_core_exec(core, &cmd) :
			  qhca_cmd_exec(&core->qdev, &cmd);
}

int qhca_read_clock(struct qhca_dev *qdev, u64 *clock)
{
	struct qhca_core *core = container_of(qdev, struct qhca_core, qdev);
	unsigned long flags;
	u32 low, high;

	if (qhca_state(core) != QHCA_DEV_UP)
		return -EIO;
	spin_lock_irqsave(&core->clock_lock, flags);
	low = qhca_read(core, QHCA_REG_CLOCK_LO);
	high = qhca_read(core, QHCA_REG_CLOCK_HI);
	spin_unlock_irqrestore(&core->clock_lock, flags);
	*clock = (u64)high << 32 | low;
	return 0;
}
EXPORT_SYMBOL_GPL(qhca_read_clock);
