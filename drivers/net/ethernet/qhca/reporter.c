// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * devlink health reporters.
 *
 * "fatal" is about the function: the driver reports each of its deaths.  "tx"
 * is about the transmit queues, of which the stack's watchdog finds one not to send.
 * devlink counts the reports, keeps the first dump until the administrator has
 * cleared it, and recovers at once or, with auto_recover off, on request.
 *
 * A report takes the devlink instance lock, and so does recovery, under which
 * it takes RTNL.  Work items report, which hold neither.
 */
#include <linux/rtnetlink.h>

#define QHCA_COMPAT_DEVLINK
#include <linux/qhca/compat.h>

#include "core.h"
#include "netdev.h"

static const char * const qhca_state_names[] = {
	[QHCA_DEV_DOWN]	= "down",
	[QHCA_DEV_UP]	= "up",
	[QHCA_DEV_DEAD]	= "dead",
};

/* ------------------------------------------------------------------------
 * The function
 */
static void qhca_death_show(struct devlink_fmsg *fmsg,
			    const struct qhca_death *death)
{
	devlink_fmsg_string_pair_put(fmsg, "reason", death->why);
	devlink_fmsg_bool_pair_put(fmsg, "answers", death->answers);
	if (!death->answers)
		return;
	devlink_fmsg_u32_pair_put(fmsg, "status", death->status);
	if (!(death->status & QHCA_STATUS_FATAL))
		return;
	devlink_fmsg_string_pair_put(fmsg, "cause",
				     qhca_fatal_name(death->status));
	devlink_fmsg_u32_pair_put(fmsg, "info", death->info);
}

static void qhca_commands_show(struct devlink_fmsg *fmsg,
			       struct qhca_core *core)
{
	devlink_fmsg_u32_pair_put(fmsg, "command_timeouts",
				  atomic_read(&core->cmdq.timeouts));
	devlink_fmsg_u32_pair_put(fmsg, "command_events_lost",
				  atomic_read(&core->cmdq.lost_events));
	devlink_fmsg_u32_pair_put(fmsg, "recoveries",
				  atomic_read(&core->total_recoveries));
}

static int qhca_fatal_recover(struct devlink_health_reporter *reporter,
			      void *priv_ctx, struct netlink_ext_ack *extack)
{
	return qhca_recover_now(devlink_health_reporter_priv(reporter),
				!priv_ctx, extack);
}

/* @priv_ctx: the death that is reported; NULL: the last one. */
static int qhca_fatal_dump(struct devlink_health_reporter *reporter,
			   struct devlink_fmsg *fmsg, void *priv_ctx,
			   struct netlink_ext_ack *extack)
{
	struct qhca_core *core = devlink_health_reporter_priv(reporter);
	struct qhca_death last;

	qhca_last_death(core, &last);
	qhca_death_show(fmsg, priv_ctx ?: &last);
	qhca_commands_show(fmsg, core);
	return 0;
}

static int qhca_fatal_diagnose(struct devlink_health_reporter *reporter,
			       struct devlink_fmsg *fmsg,
			       struct netlink_ext_ack *extack)
{
	struct qhca_core *core = devlink_health_reporter_priv(reporter);
	struct qhca_death last;

	devlink_fmsg_string_pair_put(fmsg, "state",
				     qhca_state_names[qhca_state(core)]);
	qhca_commands_show(fmsg, core);
	qhca_last_death(core, &last);
	if (!last.why[0])
		return 0;
	devlink_fmsg_pair_nest_start(fmsg, "last_death");
	devlink_fmsg_obj_nest_start(fmsg);
	qhca_death_show(fmsg, &last);
	devlink_fmsg_obj_nest_end(fmsg);
	devlink_fmsg_pair_nest_end(fmsg);
	return 0;
}

static int qhca_fatal_test(struct devlink_health_reporter *reporter,
			   struct netlink_ext_ack *extack)
{
	qhca_die(devlink_health_reporter_priv(reporter), "test of the reporter");
	return 0;
}

static const struct devlink_health_reporter_ops qhca_fatal_ops = {
	.name = "fatal",
	.recover = qhca_fatal_recover,
	.dump = qhca_fatal_dump,
	.diagnose = qhca_fatal_diagnose,
	.test = qhca_fatal_test,
};

/*
 * Returns -ECANCELED if devlink leaves the recovery to the caller, because an
 * earlier one has not succeeded yet.
 */
int qhca_report_death(struct qhca_core *core, struct qhca_death *death)
{
	return devlink_health_report(core->fatal_reporter, death->why, death);
}

/* The function has been started, by whomever. */
void qhca_report_healthy(struct qhca_core *core)
{
	if (test_bit(QHCA_CORE_REPORTING, &core->flags))
		devlink_health_reporter_state_update(core->fatal_reporter,
						     DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
}

/* ------------------------------------------------------------------------
 * Transmit queues
 */
static struct qhca_eth *qhca_reporter_eth(struct devlink_health_reporter *reporter)
{
	struct qhca_core *core = devlink_health_reporter_priv(reporter);

	return netdev_priv(core->qdev.netdev);
}

static int qhca_tx_recover(struct devlink_health_reporter *reporter,
			   void *priv_ctx, struct netlink_ext_ack *extack)
{
	int err = qhca_eth_restart(qhca_reporter_eth(reporter));

	if (err)
		NL_SET_ERR_MSG(extack, "the queue does not start");
	return err;
}

static void qhca_queue_show(struct devlink_fmsg *fmsg, struct qhca_queue *q)
{
	struct netdev_queue *nq = netdev_get_tx_queue(q->eth->netdev, q->index);

	devlink_fmsg_obj_nest_start(fmsg);
	devlink_fmsg_u32_pair_put(fmsg, "queue", q->index);
	devlink_fmsg_u32_pair_put(fmsg, "descriptors", q->tx.mask + 1);
	devlink_fmsg_u32_pair_put(fmsg, "posted", READ_ONCE(q->tx.pi));
	devlink_fmsg_u32_pair_put(fmsg, "rung", READ_ONCE(q->tx.rung));
	devlink_fmsg_u32_pair_put(fmsg, "sent",
				  le32_to_cpu(READ_ONCE(q->rec->tx_ci)));
	devlink_fmsg_u32_pair_put(fmsg, "reclaimed", READ_ONCE(q->tx.ci));
	/* By the driver or by byte queue limits, as the watchdog asks. */
	devlink_fmsg_bool_pair_put(fmsg, "stopped", netif_xmit_stopped(nq));
	devlink_fmsg_obj_nest_end(fmsg);
}

static int qhca_tx_diagnose(struct devlink_health_reporter *reporter,
			    struct devlink_fmsg *fmsg,
			    struct netlink_ext_ack *extack)
{
	struct qhca_eth *eth = qhca_reporter_eth(reporter);
	unsigned int i;

	rtnl_lock();
	devlink_fmsg_bool_pair_put(fmsg, "started", eth->started);
	if (eth->started) {
		devlink_fmsg_arr_pair_nest_start(fmsg, "queues");
		for (i = 0; i < eth->num_queues; i++)
			qhca_queue_show(fmsg, &eth->queue[i]);
		devlink_fmsg_arr_pair_nest_end(fmsg);
	}
	rtnl_unlock();
	return 0;
}

static int qhca_tx_dump(struct devlink_health_reporter *reporter,
			struct devlink_fmsg *fmsg, void *priv_ctx,
			struct netlink_ext_ack *extack)
{
	return qhca_tx_diagnose(reporter, fmsg, extack);
}

static const struct devlink_health_reporter_ops qhca_tx_ops = {
	.name = "tx",
	.recover = qhca_tx_recover,
	.dump = qhca_tx_dump,
	.diagnose = qhca_tx_diagnose,
};

/* If an earlier restart has failed, the driver is trying again anyway. */
void qhca_report_timeout(struct qhca_eth *eth)
{
	struct qhca_core *core = eth->core;

	if (test_bit(QHCA_CORE_REPORTING, &core->flags))
		devlink_health_report(core->tx_reporter, "transmit timeout",
				      eth);
	else
		qhca_eth_restart(eth);
}

/* The queues have been started, by whomever.  RTNL held. */
void qhca_report_sends(struct qhca_eth *eth)
{
	struct qhca_core *core = eth->core;

	if (test_bit(QHCA_CORE_REPORTING, &core->flags))
		devlink_health_reporter_state_update(core->tx_reporter,
						     DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
}

/* ------------------------------------------------------------------------
 * Both
 */

/* Context: process, devlink instance lock held. */
int qhca_reporters_create(struct qhca_core *core)
{
	struct devlink *devlink = priv_to_devlink(core);
	struct devlink_health_reporter *reporter;

	reporter = devl_health_reporter_create(devlink, &qhca_fatal_ops, core);
	if (IS_ERR(reporter))
		return PTR_ERR(reporter);
	core->fatal_reporter = reporter;
	reporter = devl_health_reporter_create(devlink, &qhca_tx_ops, core);
	if (IS_ERR(reporter)) {
		devl_health_reporter_destroy(core->fatal_reporter);
		core->fatal_reporter = NULL;
		return PTR_ERR(reporter);
	}
	core->tx_reporter = reporter;
	return 0;
}

/* Context: process, devlink instance lock held. */
void qhca_reporters_destroy(struct qhca_core *core)
{
	devl_health_reporter_destroy(core->tx_reporter);
	devl_health_reporter_destroy(core->fatal_reporter);
	core->tx_reporter = NULL;
	core->fatal_reporter = NULL;
}
