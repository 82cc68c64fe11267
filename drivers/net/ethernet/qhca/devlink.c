// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * devlink: versions of the device, and the reload, which applies the parameters
 * (params.c).
 */
#include "core.h"

static int qhca_devlink_info_get(struct devlink *devlink,
				 struct devlink_info_req *req,
				 struct netlink_ext_ack *extack)
{
	struct qhca_core *core = devlink_priv(devlink);
	struct pci_dev *pdev = core->qdev.pdev;
	char buf[32];
	u32 version;
	int err;

	snprintf(buf, sizeof(buf), "%04x:%04x", pdev->vendor, pdev->device);
	err = devlink_info_version_fixed_put(req,
					     DEVLINK_INFO_VERSION_GENERIC_ASIC_ID,
					     buf);
	if (err)
		return err;
	snprintf(buf, sizeof(buf), "%u", pdev->revision);
	err = devlink_info_version_fixed_put(req,
					     DEVLINK_INFO_VERSION_GENERIC_ASIC_REV,
					     buf);
	if (err)
		return err;
	/* A device that is not up does not answer. */
	if (qhca_state(core) != QHCA_DEV_UP)
		return 0;
	version = qhca_read(core, QHCA_REG_VERSION);
	snprintf(buf, sizeof(buf), "%u.%u", version >> 16, version & 0xffff);
	return devlink_info_version_running_put(req, "abi", buf);
}

static int qhca_devlink_reload_down(struct devlink *devlink, bool netns_change,
				    enum devlink_reload_action action,
				    enum devlink_reload_limit limit,
				    struct netlink_ext_ack *extack)
{
	struct qhca_core *core = devlink_priv(devlink);

	if (netns_change) {
		NL_SET_ERR_MSG(extack, "the network namespace cannot be changed");
		return -EOPNOTSUPP;
	}
	if (test_bit(QHCA_CORE_FROZEN, &core->flags)) {
		NL_SET_ERR_MSG(extack, "a PCI reset or suspend is under way");
		return -EBUSY;
	}
	qhca_stop(core);
	return 0;
}

static int qhca_devlink_reload_up(struct devlink *devlink,
				  enum devlink_reload_action action,
				  enum devlink_reload_limit limit,
				  u32 *actions_performed,
				  struct netlink_ext_ack *extack)
{
	struct qhca_core *core = devlink_priv(devlink);
	int err;

	*actions_performed = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT);
	/* The administrator asks for it, so earlier deaths do not count. */
	core->recoveries = 0;
	err = qhca_params_load(core, extack);
	if (err)
		goto failed;
	err = qhca_start(core);
	if (err) {
		NL_SET_ERR_MSG(extack, "the device does not start");
		goto failed;
	}
	return 0;

failed:
	/* The caller gets the error, and the driver tries again by itself. */
	qhca_recover_later(core);
	return err;
}

const struct devlink_ops qhca_devlink_ops = {
	.info_get = qhca_devlink_info_get,
	.reload_actions = BIT(DEVLINK_RELOAD_ACTION_DRIVER_REINIT),
	.reload_down = qhca_devlink_reload_down,
	.reload_up = qhca_devlink_reload_up,
};
