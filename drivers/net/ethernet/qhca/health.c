// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Death and recovery of the function.
 *
 * A function dies when it reports a fatal error, when it leaves a command
 * without an answer, and when its registers read as all ones, which is what an
 * unplugged device looks like.  Death is declared from any context and is
 * quick: bus mastering is switched off, so that memory may be given back
 * although the device cannot be told; waiting commands fail; listeners are
 * told.  The rest is a work's: take the auxiliary device away, reset, set up
 * again.
 *
 * The same work makes up for every start that fails, whoever wanted it: the
 * recovery itself, a reload, the end of a PCI reset or of suspend.  It tries at
 * once after a death and after growing delays where a start has failed, and
 * leaves the function down when five attempts follow each other closely.  Only
 * a probe that fails is left to whoever binds the driver.
 *
 * qhca_dev.state and the devlink instance lock order all this.  Only the
 * holder of that lock starts and stops the function, and only it leaves
 * QHCA_DEV_DEAD.
 */
#include "core.h"
#include "netdev.h"

#define QHCA_HEALTH_PERIOD	(2 * HZ)

/* A device that dies again so soon and so often is left alone. */
#define QHCA_RECOVERY_WINDOW	(60 * HZ)
#define QHCA_MAX_RECOVERIES	5

/* Doubled with each attempt before: the delay after a start that fails. */
#define QHCA_RECOVERY_DELAY	(HZ / 4)

static const char * const qhca_fatal_names[] = {
	[QHCA_FATAL_NONE]	 = "none",
	[QHCA_FATAL_CMDQ_DMA]	 = "command slot unreachable",
	[QHCA_FATAL_CMDQ_CONFIG] = "bad command queue",
	[QHCA_FATAL_TABLE_DMA]	 = "context table unreachable",
	[QHCA_FATAL_CONTEXT]	 = "corrupt context",
	[QHCA_FATAL_EQ_DMA]	 = "event queue unreachable",
	[QHCA_FATAL_INTERNAL]	 = "internal error",
	[QHCA_FATAL_INJECTED]	 = "injected",
};

/*
 * From now on the device neither reads nor writes memory and no command is
 * sent.  Returns the state before.  Any context.
 */
enum qhca_dev_state qhca_mark_dead(struct qhca_core *core)
{
	enum qhca_dev_state old;
	unsigned long irqflags;

	spin_lock_irqsave(&core->state_lock, irqflags);
	old = core->qdev.state;
	if (old != QHCA_DEV_DEAD) {
		/*
		 * Before the state: who sees that commands are refused frees
		 * what the device was using.
		 */
		pci_clear_master(core->qdev.pdev);
		WRITE_ONCE(core->qdev.state, QHCA_DEV_DEAD);
	}
	spin_unlock_irqrestore(&core->state_lock, irqflags);
	if (old != QHCA_DEV_DEAD)
		qhca_cmdq_fail_all(core);
	return old;
}

static void qhca_report_death(struct qhca_core *core, const char *why)
{
	u32 status = qhca_read(core, QHCA_REG_STATUS);
	u32 cause = QHCA_GET(QHCA_STATUS_FATAL_CAUSE, status);

	if (status == U32_MAX)
		dev_err(qhca_device(core), "dead: %s, device gone\n", why);
	else if (status & QHCA_STATUS_FATAL)
		dev_err(qhca_device(core), "dead: %s, cause %u (%s), info %#x\n",
			why, cause,
			cause < ARRAY_SIZE(qhca_fatal_names) ?
			qhca_fatal_names[cause] : "unknown",
			qhca_read(core, QHCA_REG_FATAL_INFO));
	else
		dev_err(qhca_device(core), "dead: %s, status %#x\n", why,
			status);
}

/**
 * qhca_die - declare the device dead
 * @core: function
 * @why:  for the log
 *
 * The first call counts, later ones do nothing.  Any context.
 */
void qhca_die(struct qhca_core *core, const char *why)
{
	struct qhca_eqe eqe = { .type = QHCA_EVENT_DEVICE_FATAL };
	enum qhca_dev_state old = qhca_mark_dead(core);

	if (old == QHCA_DEV_DEAD)
		return;
	qhca_report_death(core, why);
	/* While the function starts or stops, it has no listeners. */
	if (old == QHCA_DEV_UP) {
		atomic_notifier_call_chain(&core->notifier, eqe.type, &eqe);
		qhca_netdev_link_event(core);
	}
	/* The work waits for who starts or stops it, and looks what is left. */
	mod_delayed_work(core->wq, &core->recover_work, 0);
}

void qhca_abandon(struct qhca_dev *qdev, const char *why)
{
	qhca_die(qhca_core_of(qdev), why);
}
EXPORT_SYMBOL_GPL(qhca_abandon);

/*
 * Look at the status register; false, and the device is dead.  Only while the
 * command queue is meant to run.
 */
bool qhca_check_alive(struct qhca_core *core)
{
	u32 status;

	if (qhca_state(core) == QHCA_DEV_DEAD)
		return false;
	if (pci_channel_offline(core->qdev.pdev)) {
		qhca_die(core, "channel offline");
		return false;
	}
	status = qhca_read(core, QHCA_REG_STATUS);
	if (status == U32_MAX) {
		qhca_die(core, "no answer");
		return false;
	}
	if (status & QHCA_STATUS_FATAL) {
		qhca_die(core, "fatal error");
		return false;
	}
	if (!(status & QHCA_STATUS_ENABLED)) {
		qhca_die(core, "reset by someone else");
		return false;
	}
	return true;
}

void qhca_health_work(struct work_struct *work)
{
	struct qhca_core *core = container_of(to_delayed_work(work),
					      struct qhca_core, health_work);

	if (qhca_check_alive(core))
		queue_delayed_work(core->wq, &core->health_work,
				   QHCA_HEALTH_PERIOD);
}

void qhca_health_start(struct qhca_core *core)
{
	queue_delayed_work(core->wq, &core->health_work, QHCA_HEALTH_PERIOD);
}

void qhca_health_stop(struct qhca_core *core)
{
	cancel_delayed_work_sync(&core->health_work);
}

/* Count an attempt to recover, if there may be one more. */
static bool qhca_may_recover(struct qhca_core *core)
{
	if (time_after(jiffies, core->last_recovery + QHCA_RECOVERY_WINDOW))
		core->recoveries = 0;
	if (core->recoveries == QHCA_MAX_RECOVERIES)
		return false;
	core->recoveries++;
	atomic_inc(&core->total_recoveries);
	return true;
}

static void qhca_give_up(struct qhca_core *core)
{
	dev_err(qhca_device(core),
		"died too often, left down until it is reset or reloaded\n");
}

/**
 * qhca_recover_later - try again to start a function that did not start
 * @core: function
 *
 * Context: process, devlink instance lock held.
 */
void qhca_recover_later(struct qhca_core *core)
{
	devl_assert_locked(priv_to_devlink(core));
	if (core->recoveries == QHCA_MAX_RECOVERIES)
		qhca_give_up(core);
	else
		mod_delayed_work(core->wq, &core->recover_work,
				 QHCA_RECOVERY_DELAY << core->recoveries);
}

/* Neither well already nor somebody else's business. */
static bool qhca_needs_recovery(struct qhca_core *core)
{
	if (test_bit(QHCA_CORE_FROZEN, &core->flags) ||
	    test_bit(QHCA_CORE_REMOVING, &core->flags))
		return false;
	return !test_bit(QHCA_CORE_STARTED, &core->flags) ||
	       qhca_state(core) == QHCA_DEV_DEAD;
}

static void qhca_recover(struct qhca_core *core)
{
	int err;

	qhca_stop(core);
	/* The handlers of PCI errors start it, or it is on its way out. */
	if (pci_channel_offline(core->qdev.pdev))
		return;
	if (!qhca_may_recover(core)) {
		qhca_give_up(core);
		return;
	}
	err = pci_device_is_present(core->qdev.pdev) ? qhca_start(core) :
						       -ENODEV;
	core->last_recovery = jiffies;
	if (err) {
		dev_err(qhca_device(core), "recovery failed: %d\n", err);
		qhca_recover_later(core);
		return;
	}
	dev_info(qhca_device(core), "recovered\n");
}

void qhca_recover_work(struct work_struct *work)
{
	struct qhca_core *core = container_of(to_delayed_work(work),
					      struct qhca_core, recover_work);
	struct devlink *devlink = priv_to_devlink(core);

	devl_lock(devlink);
	if (qhca_needs_recovery(core))
		qhca_recover(core);
	devl_unlock(devlink);
}
