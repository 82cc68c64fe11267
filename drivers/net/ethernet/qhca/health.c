// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Death and recovery of the function.
 *
 * The driver declares a function dead when the function reports a fatal error,
 * when it does not answer a command, or when nothing answers where its registers
 * were, as after an unplug.  This may happen in any context and takes no
 * time: the driver switches bus mastering off, so that memory may be freed
 * although the device takes no command, fails waiting commands, and notifies
 * the listeners.  A work item does the rest: it reports the death to devlink,
 * which calls back to recover unless the administrator has set auto_recover to
 * false.  Recovery removes the auxiliary device, resets the function, and
 * starts it again.
 *
 * The same work item tries again, without a further report, when a start has
 * failed, in a recovery, in a reload, or at the end of a PCI reset or of
 * suspend.  It tries at once after a death, and after growing delays when a
 * start has failed.  It leaves the function down when five attempts have
 * followed each other closely.  It does not repeat a probe that fails; whoever
 * binds the driver may do that.
 *
 * qhca_dev.state and the devlink instance lock order these operations.  Only
 * the holder of that lock starts and stops the function, and only a start
 * leaves the state QHCA_DEV_DEAD.
 */
#include <linux/delay.h>

#include "core.h"
#include "netdev.h"

#define QHCA_HEALTH_PERIOD	(2 * HZ)

/* A device that dies so often within this time is left down. */
#define QHCA_RECOVERY_WINDOW	(60 * HZ)
#define QHCA_MAX_RECOVERIES	5

/* Delay after the first start that fails; each further attempt doubles it. */
#define QHCA_RECOVERY_DELAY	(HZ / 4)

/* A reset of the physical function takes its virtual functions away so long. */
#define QHCA_VF_RETURN_TIMEOUT	(2 * HZ)

static const char * const qhca_fatal_names[] = {
	[QHCA_FATAL_NONE]	 = "none",
	[QHCA_FATAL_CMDQ_DMA]	 = "command slot unreachable",
	[QHCA_FATAL_CMDQ_CONFIG] = "bad command queue",
	[QHCA_FATAL_TABLE_DMA]	 = "context table unreachable",
	[QHCA_FATAL_CONTEXT]	 = "corrupt context",
	[QHCA_FATAL_EQ_DMA]	 = "event queue unreachable",
	[QHCA_FATAL_INTERNAL]	 = "internal error",
	[QHCA_FATAL_INJECTED]	 = "injected",
	[QHCA_FATAL_STAGE2]	 = "stage 2 of translation",
};

/*
 * When this returns, the device neither reads nor writes memory and the driver
 * sends no command.  Returns the previous state.  Any context.
 */
enum qhca_dev_state qhca_mark_dead(struct qhca_core *core)
{
	enum qhca_dev_state old;
	unsigned long irqflags;

	spin_lock_irqsave(&core->state_lock, irqflags);
	old = core->qdev.state;
	if (old != QHCA_DEV_DEAD) {
		/*
		 * This precedes the change of state: a caller whose command is
		 * refused frees memory that the device was using.
		 */
		pci_clear_master(core->qdev.pdev);
		WRITE_ONCE(core->qdev.state, QHCA_DEV_DEAD);
	}
	spin_unlock_irqrestore(&core->state_lock, irqflags);
	if (old != QHCA_DEV_DEAD)
		qhca_cmdq_fail_all(core);
	return old;
}

/* Why the device has stopped, by its status. */
const char *qhca_fatal_name(u32 status)
{
	u32 cause = QHCA_GET(QHCA_STATUS_FATAL_CAUSE, status);

	return cause < ARRAY_SIZE(qhca_fatal_names) ? qhca_fatal_names[cause] :
						      "unknown";
}

static void qhca_note_death(struct qhca_core *core, const char *why)
{
	struct qhca_death death = {
		.status = qhca_read(core, QHCA_REG_STATUS),
		.info = qhca_read(core, QHCA_REG_FATAL_INFO),
		.answers = qhca_answers(core),
		.fresh = true,
	};
	unsigned long irqflags;

	strscpy(death.why, why);
	spin_lock_irqsave(&core->state_lock, irqflags);
	core->death = death;
	spin_unlock_irqrestore(&core->state_lock, irqflags);
	if (!death.answers)
		dev_err(qhca_device(core), "dead: %s, device gone\n", why);
	else if (death.status & QHCA_STATUS_FATAL)
		dev_err(qhca_device(core), "dead: %s, cause %u (%s), info %#x\n",
			why, QHCA_GET(QHCA_STATUS_FATAL_CAUSE, death.status),
			qhca_fatal_name(death.status), death.info);
	else
		dev_err(qhca_device(core), "dead: %s, status %#x\n", why,
			death.status);
}

/* Copies what is known; whoever gets it fresh has to report it. */
static bool qhca_take_death(struct qhca_core *core, struct qhca_death *death)
{
	unsigned long irqflags;

	spin_lock_irqsave(&core->state_lock, irqflags);
	*death = core->death;
	core->death.fresh = false;
	spin_unlock_irqrestore(&core->state_lock, irqflags);
	return death->fresh;
}

void qhca_last_death(struct qhca_core *core, struct qhca_death *death)
{
	unsigned long irqflags;

	spin_lock_irqsave(&core->state_lock, irqflags);
	*death = core->death;
	spin_unlock_irqrestore(&core->state_lock, irqflags);
}

/**
 * qhca_die - declare the device dead
 * @core: function
 * @why:  reason, for the log
 *
 * Only the first call has an effect.  Any context.
 */
void qhca_die(struct qhca_core *core, const char *why)
{
	struct qhca_eqe eqe = { .type = QHCA_EVENT_DEVICE_FATAL };
	enum qhca_dev_state old = qhca_mark_dead(core);

	if (old == QHCA_DEV_DEAD)
		return;
	qhca_note_death(core, why);
	/* A function that is being started or stopped has no listeners. */
	if (old == QHCA_DEV_UP) {
		atomic_notifier_call_chain(&core->notifier, eqe.type, &eqe);
		qhca_netdev_link_event(core);
	}
	/* The work waits for a start or stop under way, and then decides. */
	mod_delayed_work(core->wq, &core->recover_work, 0);
}

void qhca_abandon(struct qhca_dev *qdev, const char *why)
{
	qhca_die(qhca_core_of(qdev), why);
}
EXPORT_SYMBOL_GPL(qhca_abandon);

/*
 * Read the status register.  Returns false after declaring the device dead.
 * Must be called only while the command queue is supposed to run.
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
	if (!qhca_answers(core)) {
		qhca_die(core, "no answer");
		return false;
	}
	status = qhca_read(core, QHCA_REG_STATUS);
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

/* Count an attempt to recover; false: there have been too many. */
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

/* Does the function need a start that nobody else is responsible for? */
static bool qhca_needs_recovery(struct qhca_core *core)
{
	if (test_bit(QHCA_CORE_FROZEN, &core->flags) ||
	    test_bit(QHCA_CORE_REMOVING, &core->flags))
		return false;
	return !test_bit(QHCA_CORE_STARTED, &core->flags) ||
	       qhca_state(core) == QHCA_DEV_DEAD;
}

/*
 * Of a virtual function the PCI core knows only whether the physical one is
 * present.
 */
bool qhca_is_present(struct qhca_core *core)
{
	return pci_device_is_present(core->qdev.pdev) && qhca_answers(core);
}

/* Where no function answers, configuration space reads as all ones. */
static int qhca_wait_config(struct qhca_core *core)
{
	unsigned long deadline = jiffies + QHCA_VF_RETURN_TIMEOUT;
	struct pci_dev *pdev = core->qdev.pdev;
	u16 command;

	for (;;) {
		pci_read_config_word(pdev, PCI_COMMAND, &command);
		if (!PCI_POSSIBLE_ERROR(command))
			return 0;
		if (pci_channel_offline(pdev) || time_after(jiffies, deadline))
			return -ENODEV;
		msleep(20);
	}
}

/* MSI-X is enabled from probe to remove. */
static bool qhca_config_lost(struct pci_dev *pdev)
{
	u16 control;

	pci_read_config_word(pdev, pdev->msix_cap + PCI_MSIX_FLAGS, &control);
	return !(control & PCI_MSIX_FLAGS_ENABLE);
}

/*
 * A PCI reset of the physical function takes its virtual functions away for a
 * while, and resets their configuration space: bus mastering, MSI-X.  The PCI
 * core restores that of the physical function alone, and tells nobody.  A
 * driver of a virtual function finds a device that has died, or none.
 *
 * Whoever had the device before the driver may have left it bus master, and
 * then the saved state says so.
 */
static int qhca_restore_config(struct qhca_core *core)
{
	struct pci_dev *pdev = core->qdev.pdev;
	int err;

	if (!qhca_is_vf(core))
		return 0;
	err = qhca_wait_config(core);
	if (err)
		return err;
	if (qhca_config_lost(pdev)) {
		err = pci_load_saved_state(pdev, core->saved_state);
		if (err)
			return err;
		pci_restore_state(pdev);
	}
	pci_clear_master(pdev);
	return 0;
}

static int qhca_recover(struct qhca_core *core)
{
	int err = qhca_restore_config(core);

	qhca_stop(core);
	/*
	 * The handlers of PCI errors start it, or the driver is being unbound.
	 */
	if (pci_channel_offline(core->qdev.pdev))
		return -EBUSY;
	if (!qhca_may_recover(core)) {
		qhca_give_up(core);
		return -EIO;
	}
	if (!err)
		err = qhca_is_present(core) ? qhca_start(core) : -ENODEV;
	core->last_recovery = jiffies;
	if (err) {
		dev_err(qhca_device(core), "recovery failed: %d\n", err);
		qhca_recover_later(core);
		return err;
	}
	dev_info(qhca_device(core), "recovered\n");
	return 0;
}

/**
 * qhca_recover_now - recover the function, if nobody else is responsible
 * @core:    function
 * @by_user: the administrator asks for it, so earlier deaths do not count
 * @extack:  for the reason of an error, or NULL
 *
 * Context: process, devlink instance lock held.
 * Return: 0 if the function runs, or a negative errno.
 */
int qhca_recover_now(struct qhca_core *core, bool by_user,
		     struct netlink_ext_ack *extack)
{
	devl_assert_locked(priv_to_devlink(core));
	if (!qhca_needs_recovery(core)) {
		if (test_bit(QHCA_CORE_STARTED, &core->flags))
			return 0;
		NL_SET_ERR_MSG(extack,
			       "a PCI reset, suspend or removal is under way");
		return -EBUSY;
	}
	if (by_user)
		core->recoveries = 0;
	return qhca_recover(core);
}

void qhca_recover_work(struct work_struct *work)
{
	struct qhca_core *core = container_of(to_delayed_work(work),
					      struct qhca_core, recover_work);
	struct devlink *devlink = priv_to_devlink(core);
	struct qhca_death death;

	/* devlink does what is left to do, or the administrator will. */
	if (qhca_take_death(core, &death) &&
	    test_bit(QHCA_CORE_REPORTING, &core->flags) &&
	    qhca_report_death(core, &death) != -ECANCELED)
		return;
	devl_lock(devlink);
	if (qhca_needs_recovery(core) && !qhca_recover(core) &&
	    core->fatal_reporter)
		devlink_health_reporter_recovery_done(core->fatal_reporter);
	devl_unlock(devlink);
}
