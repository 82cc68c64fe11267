// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Virtual functions of a physical function: their number, and what the
 * administrator of the host lays down for each of them.
 *
 * The device forgets these settings when a PCI reset of the physical function
 * removes the virtual functions, which the PCI core then enables again.  So the
 * driver keeps a copy of what the device has accepted, and each start writes it
 * again before it does anything else with the device that is ready for
 * commands.  A setting that the device has not taken, because it refused it or
 * is being recovered, is not kept: the administrator gets the error, and "ip
 * link show" what is in force.
 *
 * Settings last as long as the virtual functions, as with other drivers: those
 * that are enabled next begin with the defaults.  A driver that is bound to a
 * function with virtual functions, which guests use, asks the device for theirs.
 *
 * The PCI core holds the device lock of the physical function while it calls
 * qhca_sriov_configure(), probe, remove, and the handlers of resets, which
 * therefore exclude each other.  Virtual functions are probed and removed
 * meanwhile, and take the devlink instance lock of their own and RTNL.  So
 * neither lock may be held while virtual functions come or go.
 */
#include <linux/slab.h>

#include "netdev.h"

#define QHCA_VF_SET_ALL		(QHCA_VF_SET_MAC | QHCA_VF_SET_VLAN |	\
				 QHCA_VF_SET_LINK |			\
				 QHCA_VF_SET_SPOOFCHK |			\
				 QHCA_VF_SET_TRUST | QHCA_VF_SET_RATE |	\
				 QHCA_VF_SET_BLOCKS)

static void qhca_vf_default(struct qhca_vf_config *config)
{
	*config = (struct qhca_vf_config) {
		.flags = cpu_to_le16(QHCA_VF_SPOOFCHK),
	};
}

/* @starting: as for qhca_vf_query() */
static int qhca_vf_write(struct qhca_core *core, int vf,
			 const struct qhca_vf_config *config, u32 fields,
			 bool starting)
{
	struct qhca_vf_config in = *config;
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_SET_VF,
		.index = vf + 1,
		.in = &in,
		.in_len = sizeof(in),
	};

	lockdep_assert_held(&core->vf_lock);
	in.fields = cpu_to_le32(fields);
	return starting ? qhca_core_exec(core, &cmd) :
			  qhca_cmd_exec(&core->qdev, &cmd);
}

/* A device that is being recovered, reset or suspended takes no command now. */
static int qhca_vf_errno(int err)
{
	return err == -EIO ? -EBUSY : err;
}

/* The number of virtual functions that exist and have settings. */
static int qhca_num_vfs(struct qhca_core *core)
{
	return min_t(int, pci_num_vf(core->qdev.pdev), core->num_vf);
}

static int qhca_vfs_write(struct qhca_core *core, int num, bool starting)
{
	int vf, err;

	for (vf = 0; vf < num; vf++) {
		err = qhca_vf_write(core, vf, &core->vf[vf], QHCA_VF_SET_ALL,
				    starting);
		if (err) {
			dev_err(qhca_device(core),
				"virtual function %d not set up: %d\n", vf,
				err);
			return err;
		}
	}
	return 0;
}

/* The driver that was bound before has left virtual functions enabled. */
static int qhca_vfs_read(struct qhca_core *core)
{
	struct qhca_vf_state state;
	int vf, err;

	for (vf = 0; vf < qhca_num_vfs(core); vf++) {
		err = qhca_vf_query(core, vf, &state, true);
		if (err) {
			dev_err(qhca_device(core),
				"settings of virtual function %d not read: %d\n",
				vf, err);
			return err;
		}
		core->vf[vf] = state.config;
		qhca_stage2_found(core, vf, le32_to_cpu(state.status));
	}
	return 0;
}

static int qhca_vfs_alloc(struct qhca_core *core)
{
	struct pci_dev *pdev = core->qdev.pdev;
	int total = core->qdev.caps.total_vfs;
	int i, err;

	/* The PCI core refuses more.  This fails if some are enabled already. */
	pci_sriov_set_totalvfs(pdev, min_t(int, total,
					   pci_sriov_get_totalvfs(pdev)));
	if (!total)
		return 0;
	core->vf = kcalloc(total, sizeof(*core->vf), GFP_KERNEL);
	if (!core->vf)
		return -ENOMEM;
	for (i = 0; i < total; i++)
		qhca_vf_default(&core->vf[i]);
	core->num_vf = total;
	err = qhca_vfs_read(core);
	if (err) {
		kfree(core->vf);
		core->vf = NULL;
		core->num_vf = 0;
	}
	return err;
}

/**
 * qhca_vfs_start - agree with the device on the settings of virtual functions
 * @core: function that is being started and takes commands
 *
 * Context: process, devlink instance lock held.
 * Return: 0 or a negative errno.  Then the function must not run, since its
 *	virtual functions could do what the administrator has forbidden.
 */
int qhca_vfs_start(struct qhca_core *core)
{
	int err = 0;

	mutex_lock(&core->vf_lock);
	if (core->vf)
		err = qhca_vfs_write(core, qhca_num_vfs(core), true);
	else
		err = qhca_vfs_alloc(core);
	mutex_unlock(&core->vf_lock);
	return err;
}

/* What those that were enabled last have left behind is not for the next. */
static int qhca_vfs_forget(struct qhca_core *core, int num)
{
	int vf, err = -EINVAL;

	mutex_lock(&core->vf_lock);
	if (num <= core->num_vf) {
		for (vf = 0; vf < num; vf++)
			qhca_vf_default(&core->vf[vf]);
		err = qhca_vfs_write(core, num, false);
	}
	mutex_unlock(&core->vf_lock);
	return qhca_vf_errno(err);
}

static int qhca_vfs_enable(struct qhca_core *core, int num)
{
	int err;

	if (!core->num_vf)
		return -EOPNOTSUPP;
	err = qhca_vfs_forget(core, num);
	if (!err)
		err = qhca_stage2_clear(core, num);
	if (!err)
		err = pci_enable_sriov(core->qdev.pdev, num);
	if (err) {
		dev_err(qhca_device(core),
			"%d virtual functions not enabled: %d\n", num, err);
		return err;
	}
	return num;
}

/* Called by the PCI core, for the attribute sriov_numvfs. */
int qhca_sriov_configure(struct pci_dev *pdev, int num)
{
	struct qhca_core *core = pci_get_drvdata(pdev);

	if (num)
		return qhca_vfs_enable(core, num);
	if (pci_vfs_assigned(pdev)) {
		dev_err(&pdev->dev,
			"virtual functions that guests use are not disabled\n");
		return -EBUSY;
	}
	pci_disable_sriov(pdev);
	return 0;
}

/**
 * qhca_vfs_evict - unbind drivers of virtual functions that call this one
 * @core: function whose driver is being unbound, or could not be bound
 *
 * They wait until their users have gone.  None comes any more.
 *
 * Context: process, device lock held.
 */
void qhca_vfs_evict(struct qhca_core *core)
{
	struct pci_dev *vf;

	qhca_stage2_shut(core);
	while ((vf = qhca_stage2_get_vf(core))) {
		device_release_driver(&vf->dev);
		pci_dev_put(vf);
	}
}

/**
 * qhca_vfs_remove - the driver is being unbound, or the device is unplugged
 * @core: function
 *
 * Virtual functions that guests use stay, as nobody can take them away; a
 * driver that binds again finds them.  Only those stay without a driver whose
 * driver needs this one.
 *
 * Context: process, device lock held.
 */
void qhca_vfs_remove(struct qhca_core *core)
{
	struct pci_dev *pdev = core->qdev.pdev;

	if (!pci_num_vf(pdev))
		return;
	if (pci_vfs_assigned(pdev)) {
		dev_warn(&pdev->dev,
			 "virtual functions that guests use stay enabled\n");
		qhca_vfs_evict(core);
	} else {
		pci_disable_sriov(pdev);
	}
}

void qhca_vfs_init(struct qhca_core *core)
{
	mutex_init(&core->vf_lock);
}

void qhca_vfs_fini(struct qhca_core *core)
{
	kfree(core->vf);
	mutex_destroy(&core->vf_lock);
}

static struct qhca_core *qhca_core_of_netdev(struct net_device *netdev)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	return eth->core;
}

/* Begin a change of settings; qhca_vf_commit() follows. */
static int qhca_vf_begin(struct qhca_core *core, int vf,
			 struct qhca_vf_config *config)
{
	mutex_lock(&core->vf_lock);
	if (vf < 0 || vf >= qhca_num_vfs(core)) {
		mutex_unlock(&core->vf_lock);
		return -EINVAL;
	}
	*config = core->vf[vf];
	return 0;
}

static int qhca_vf_commit(struct qhca_core *core, int vf,
			  const struct qhca_vf_config *config, u32 fields)
{
	int err = qhca_vf_write(core, vf, config, fields, false);

	if (!err)
		core->vf[vf] = *config;
	mutex_unlock(&core->vf_lock);
	return qhca_vf_errno(err);
}

int qhca_set_vf_mac(struct net_device *netdev, int vf, u8 *mac)
{
	struct qhca_core *core = qhca_core_of_netdev(netdev);
	struct qhca_vf_config config;
	int err;

	/* All zeroes: the virtual function may choose. */
	if (is_multicast_ether_addr(mac))
		return -EINVAL;
	err = qhca_vf_begin(core, vf, &config);
	if (err)
		return err;
	ether_addr_copy(config.mac, mac);
	return qhca_vf_commit(core, vf, &config, QHCA_VF_SET_MAC);
}

int qhca_set_vf_vlan(struct net_device *netdev, int vf, u16 vlan, u8 qos,
		     __be16 proto)
{
	struct qhca_core *core = qhca_core_of_netdev(netdev);
	struct qhca_vf_config config;
	int err;

	if (proto != htons(ETH_P_8021Q))
		return -EPROTONOSUPPORT;
	/* A priority belongs to a tag. */
	if (vlan >= VLAN_VID_MASK || qos > 7 || (qos && !vlan))
		return -EINVAL;
	err = qhca_vf_begin(core, vf, &config);
	if (err)
		return err;
	config.vlan = cpu_to_le16(vlan);
	config.qos = qos;
	return qhca_vf_commit(core, vf, &config, QHCA_VF_SET_VLAN);
}

int qhca_set_vf_rate(struct net_device *netdev, int vf, int min_rate,
		     int max_rate)
{
	struct qhca_core *core = qhca_core_of_netdev(netdev);
	struct qhca_vf_config config;
	int err;

	if (min_rate < 0 || max_rate < 0 || (max_rate && min_rate > max_rate))
		return -EINVAL;
	err = qhca_vf_begin(core, vf, &config);
	if (err)
		return err;
	config.min_rate = cpu_to_le32(min_rate);
	config.max_rate = cpu_to_le32(max_rate);
	return qhca_vf_commit(core, vf, &config, QHCA_VF_SET_RATE);
}

static int qhca_set_vf_flag(struct net_device *netdev, int vf, u16 flag,
			    bool on, u32 field)
{
	struct qhca_core *core = qhca_core_of_netdev(netdev);
	struct qhca_vf_config config;
	int err;

	err = qhca_vf_begin(core, vf, &config);
	if (err)
		return err;
	if (on)
		config.flags |= cpu_to_le16(flag);
	else
		config.flags &= ~cpu_to_le16(flag);
	return qhca_vf_commit(core, vf, &config, field);
}

int qhca_set_vf_spoofchk(struct net_device *netdev, int vf, bool on)
{
	return qhca_set_vf_flag(netdev, vf, QHCA_VF_SPOOFCHK, on,
				QHCA_VF_SET_SPOOFCHK);
}

int qhca_set_vf_trust(struct net_device *netdev, int vf, bool on)
{
	return qhca_set_vf_flag(netdev, vf, QHCA_VF_TRUST, on,
				QHCA_VF_SET_TRUST);
}

int qhca_set_vf_link_state(struct net_device *netdev, int vf, int state)
{
	struct qhca_core *core = qhca_core_of_netdev(netdev);
	struct qhca_vf_config config;
	int err;

	/* enum qhca_vf_link has the numbers of IFLA_VF_LINK_STATE_*. */
	if (state < 0 || state > QHCA_VF_LINK_DOWN)
		return -EINVAL;
	err = qhca_vf_begin(core, vf, &config);
	if (err)
		return err;
	config.link = state;
	return qhca_vf_commit(core, vf, &config, QHCA_VF_SET_LINK);
}

/* The address that a virtual function uses, if the device is up to say so. */
static void qhca_vf_current_mac(struct qhca_core *core, int vf, u8 *mac)
{
	struct qhca_vf_state state;

	if (!qhca_vf_query(core, vf, &state, false))
		ether_addr_copy(mac, state.mac);
}

int qhca_get_vf_config(struct net_device *netdev, int vf,
		       struct ifla_vf_info *info)
{
	struct qhca_core *core = qhca_core_of_netdev(netdev);
	struct qhca_vf_config config;
	int err;

	err = qhca_vf_begin(core, vf, &config);
	if (err)
		return err;
	mutex_unlock(&core->vf_lock);
	info->vf = vf;
	ether_addr_copy(info->mac, config.mac);
	if (is_zero_ether_addr(config.mac))
		qhca_vf_current_mac(core, vf, info->mac);
	info->vlan = le16_to_cpu(config.vlan);
	info->qos = config.qos;
	info->vlan_proto = htons(ETH_P_8021Q);
	info->min_tx_rate = le32_to_cpu(config.min_rate);
	info->max_tx_rate = le32_to_cpu(config.max_rate);
	info->spoofchk = !!(le16_to_cpu(config.flags) & QHCA_VF_SPOOFCHK);
	info->trusted = !!(le16_to_cpu(config.flags) & QHCA_VF_TRUST);
	info->linkstate = config.link;
	return 0;
}

/* Frames of Ethernet, and those of RDMA, which the stack does not see. */
int qhca_get_vf_stats(struct net_device *netdev, int vf,
		      struct ifla_vf_stats *stats)
{
	struct qhca_core *core = qhca_core_of_netdev(netdev);
	u32 num = core->qdev.caps.num_counters;
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_QUERY_VF_COUNTERS,
		.index = vf + 1,
		.out_len = num * sizeof(__le64),
	};
	__le64 *value;
	int err;

	if (vf < 0 || vf >= qhca_num_vfs(core))
		return -EINVAL;
	if (num <= QHCA_CNT_spoofed)
		return -EOPNOTSUPP;
	value = kcalloc(num, sizeof(*value), GFP_KERNEL);
	if (!value)
		return -ENOMEM;
	cmd.out = value;
	err = qhca_cmd_exec(&core->qdev, &cmd);
	if (err)
		goto free;

#define QHCA_VF_COUNTER(name)	le64_to_cpu(value[QHCA_CNT_##name])
	stats->rx_packets = QHCA_VF_COUNTER(eth_rx_packets) +
			    QHCA_VF_COUNTER(rx_packets) +
			    QHCA_VF_COUNTER(raw_rx_packets);
	stats->tx_packets = QHCA_VF_COUNTER(eth_tx_packets) +
			    QHCA_VF_COUNTER(tx_packets) +
			    QHCA_VF_COUNTER(raw_tx_packets);
	stats->rx_bytes = QHCA_VF_COUNTER(eth_rx_bytes) +
			  QHCA_VF_COUNTER(rx_bytes);
	stats->tx_bytes = QHCA_VF_COUNTER(eth_tx_bytes) +
			  QHCA_VF_COUNTER(tx_bytes);
	stats->rx_dropped = QHCA_VF_COUNTER(eth_rx_no_buffer) +
			    QHCA_VF_COUNTER(raw_rx_dropped);
	stats->tx_dropped = QHCA_VF_COUNTER(eth_tx_errors) +
			    QHCA_VF_COUNTER(switch_dropped) +
			    QHCA_VF_COUNTER(spoofed);
#undef QHCA_VF_COUNTER

free:
	kfree(value);
	return err;
}
