// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The network device.
 *
 * The Ethernet queues exist while the interface is up and the function is
 * started, which RTNL serialises.  The netdev holds the settings of the port
 * (addresses, MTU, filter), and the driver programs them into the device after
 * each reset.
 */
#include <linux/dma-mapping.h>
#include <linux/rtnetlink.h>

#include "netdev.h"

#define QHCA_TX_TIMEOUT		(10 * HZ)

/* Bounds of the delay before another attempt to start the queue. */
#define QHCA_RESTART_MIN	HZ
#define QHCA_RESTART_MAX	(32 * HZ)

static int qhca_eth_write(struct qhca_eth *eth, u32 fields, u32 rx_flags)
{
	struct qhca_port_config config = {
		.fields = cpu_to_le32(fields),
		.eth_mtu = cpu_to_le32(eth->netdev->mtu),
		.rx_flags = cpu_to_le32(rx_flags),
	};
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_SET_PORT,
		.in = &config,
		.in_len = sizeof(config),
	};

	ether_addr_copy(config.mac, eth->netdev->dev_addr);
	return qhca_cmd_exec(&eth->core->qdev, &cmd);
}

/* Copy the multicast list; false: it is too long for the device. */
static bool qhca_filter_list(struct net_device *netdev,
			     struct qhca_mcast_list *list)
{
	struct netdev_hw_addr *ha;
	u32 n = 0;

	netif_addr_lock_bh(netdev);
	if (netdev_mc_count(netdev) > QHCA_MAX_ETH_MCAST) {
		netif_addr_unlock_bh(netdev);
		return false;
	}
	netdev_for_each_mc_addr(ha, netdev)
		ether_addr_copy(list->entry[n++].mac, ha->addr);
	netif_addr_unlock_bh(netdev);
	list->count = cpu_to_le32(n);
	return true;
}

static int qhca_filter_write(struct qhca_eth *eth)
{
	struct net_device *netdev = eth->netdev;
	struct qhca_mcast_list list = {};
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_SET_MCAST,
		.in = &list,
		.in_len = sizeof(list),
	};
	u32 flags = QHCA_RX_ENABLE;
	int err;

	lockdep_assert_held(&eth->filter_lock);
	if (netdev->flags & IFF_PROMISC)
		flags |= QHCA_RX_PROMISC;
	if (netdev->flags & IFF_ALLMULTI || !qhca_filter_list(netdev, &list))
		flags |= QHCA_RX_ALLMULTI;
	if (!(flags & QHCA_RX_ALLMULTI)) {
		err = qhca_cmd_exec(&eth->core->qdev, &cmd);
		if (err)
			return err;
	}
	return qhca_eth_write(eth, QHCA_PORT_SET_RX, flags);
}

static void qhca_filter_work(struct work_struct *work)
{
	struct qhca_eth *eth = container_of(work, struct qhca_eth,
					      filter_work);
	int err = 0;

	mutex_lock(&eth->filter_lock);
	if (eth->receiving)
		err = qhca_filter_write(eth);
	mutex_unlock(&eth->filter_lock);
	if (err && qhca_state(eth->core) == QHCA_DEV_UP)
		netdev_warn(eth->netdev, "receive filter not set: %d\n", err);
}

/* Called in atomic context; commands sleep, so a work item sends them. */
static void qhca_set_rx_mode(struct net_device *netdev)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	queue_work(eth->core->wq, &eth->filter_work);
}

static int qhca_receive(struct qhca_eth *eth, bool on)
{
	int err;

	mutex_lock(&eth->filter_lock);
	eth->receiving = on;
	err = on ? qhca_filter_write(eth) :
		   qhca_eth_write(eth, QHCA_PORT_SET_RX, 0);
	mutex_unlock(&eth->filter_lock);
	return err;
}

/* Destroy the first @num queues, which are closed. */
static void qhca_eth_undo(struct qhca_eth *eth, unsigned int num)
{
	unsigned int i;

	for (i = 0; i < num; i++)
		qhca_queue_silence(&eth->queue[i]);
	/* Reclaim may have woken queues while they were being closed. */
	netif_tx_disable(eth->netdev);
	synchronize_net();
	for (i = 0; i < num; i++)
		qhca_queue_free(&eth->queue[i]);
}

/*
 * Queues that were in use before are stopped.  The stack sends nothing by them, but its
 * watchdog takes any queue that is stopped for one that does not send.
 */
static void qhca_eth_release_unused(struct qhca_eth *eth)
{
	unsigned int i;

	for (i = eth->num_queues; i < eth->max_queues; i++)
		netif_tx_start_queue(netdev_get_tx_queue(eth->netdev, i));
}

static int qhca_eth_start(struct qhca_eth *eth)
{
	unsigned int i, num = 0;
	int err = 0;

	ASSERT_RTNL();
	if (eth->started)
		return 0;
	for (i = 0; i < eth->num_queues && !err; i++) {
		err = qhca_queue_start(&eth->queue[i]);
		num += !err;
	}
	if (!err)
		err = qhca_rss_write(eth);
	if (err)
		goto undo;
	err = qhca_receive(eth, true);
	if (err) {
		qhca_receive(eth, false);
		goto undo;
	}
	eth->started = true;
	eth->restart_delay = QHCA_RESTART_MIN;
	qhca_report_sends(eth);
	for (i = 0; i < num; i++)
		qhca_queue_open(&eth->queue[i]);
	qhca_eth_release_unused(eth);
	queue_work(eth->core->wq, &eth->link_work);
	return 0;

undo:
	qhca_eth_undo(eth, num);
	return err;
}

/*
 * The rings have three users: the stack posts frames, the device reads and
 * writes the rings, and NAPI reclaims and receives.  It is not enough to stop
 * the transmit queue: the commands below sleep, and NAPI runs meanwhile and
 * wakes a queue whose frames have been sent.  So the driver first clears a flag
 * that makes it drop the stack's frames, and that only a start sets again.
 */
static void qhca_eth_stop(struct qhca_eth *eth)
{
	unsigned int i;

	ASSERT_RTNL();
	if (!eth->started)
		return;
	eth->started = false;
	for (i = 0; i < eth->num_queues; i++)
		qhca_queue_close(&eth->queue[i]);
	qhca_receive(eth, false);
	qhca_eth_undo(eth, eth->num_queues);
}

static int qhca_open(struct net_device *netdev)
{
	return qhca_eth_start(netdev_priv(netdev));
}

static int qhca_close(struct net_device *netdev)
{
	qhca_eth_stop(netdev_priv(netdev));
	return 0;
}

/*
 * Start the queue with the previous settings again.  If that fails, the
 * interface is up but has no queue.  Only the driver knows, so it keeps trying.
 */
static void qhca_eth_restore(struct qhca_eth *eth)
{
	int err = qhca_eth_start(eth);

	if (!err)
		return;
	netdev_err(eth->netdev, "queue not restarted: %d\n", err);
	queue_delayed_work(eth->core->wq, &eth->restart_work,
			   eth->restart_delay);
	eth->restart_delay = min_t(unsigned long, 2 * eth->restart_delay,
				   QHCA_RESTART_MAX);
}

/*
 * Should there be a queue now?  A queue that a reset has stopped is started by
 * the next start of the function, and that of an interface which is down by
 * ndo_open().
 */
static bool qhca_eth_wanted(struct qhca_eth *eth)
{
	ASSERT_RTNL();
	return netif_running(eth->netdev) && netif_device_present(eth->netdev);
}

static void qhca_restart_work(struct work_struct *work)
{
	struct qhca_eth *eth = container_of(to_delayed_work(work),
					    struct qhca_eth, restart_work);

	rtnl_lock();
	if (qhca_eth_wanted(eth))
		qhca_eth_restore(eth);
	rtnl_unlock();
}

/**
 * qhca_eth_resize - change the size of the rings
 * @eth:   port
 * @log_tx: log2 of transmit descriptors
 * @log_rx: log2 of receive descriptors
 *
 * Context: process, RTNL held.
 * Return: 0, or a negative errno; then the old sizes stay.
 */
int qhca_eth_resize(struct qhca_eth *eth, u8 log_tx, u8 log_rx)
{
	u8 old_tx = eth->log_tx, old_rx = eth->log_rx;
	int err;

	qhca_eth_stop(eth);
	eth->log_tx = log_tx;
	eth->log_rx = log_rx;
	if (!netif_running(eth->netdev))
		return 0;
	err = qhca_eth_start(eth);
	if (err) {
		eth->log_tx = old_tx;
		eth->log_rx = old_rx;
		qhca_eth_restore(eth);
	}
	return err;
}

/**
 * qhca_eth_set_queues - change the number of queues in use
 * @eth: port
 * @num: number, up to qhca_channels_max()
 *
 * Context: process, RTNL held.
 * Return: 0, or a negative errno; then the old number stays.
 */
int qhca_eth_set_queues(struct qhca_eth *eth, u32 num)
{
	u32 old = eth->num_queues;
	int err;

	qhca_eth_stop(eth);
	err = qhca_channels_adopt(eth, num);
	if (!netif_running(eth->netdev))
		return err;
	if (!err)
		err = qhca_eth_start(eth);
	if (err) {
		qhca_channels_adopt(eth, old);
		qhca_eth_restore(eth);
	}
	return err;
}

static int qhca_change_mtu(struct net_device *netdev, int mtu)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	bool running = netif_running(netdev);
	unsigned int old = netdev->mtu;
	int err;

	/* The receive buffers have the size that the MTU requires. */
	qhca_eth_stop(eth);
	WRITE_ONCE(netdev->mtu, mtu);
	err = qhca_eth_write(eth, QHCA_PORT_SET_MTU, 0);
	if (!err && running)
		err = qhca_eth_start(eth);
	if (!err)
		return 0;
	WRITE_ONCE(netdev->mtu, old);
	qhca_eth_write(eth, QHCA_PORT_SET_MTU, 0);
	if (running)
		qhca_eth_restore(eth);
	return err;
}

static int qhca_set_mac_address(struct net_device *netdev, void *addr)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	u8 old[ETH_ALEN];
	int err;

	err = eth_prepare_mac_addr_change(netdev, addr);
	if (err)
		return err;
	ether_addr_copy(old, netdev->dev_addr);
	eth_commit_mac_addr_change(netdev, addr);
	err = qhca_eth_write(eth, QHCA_PORT_SET_MAC, 0);
	if (err)
		eth_hw_addr_set(netdev, old);
	return err;
}

static void qhca_link_work(struct work_struct *work)
{
	struct qhca_eth *eth = container_of(work, struct qhca_eth,
					      link_work);
	u32 link = 0;

	if (netif_device_present(eth->netdev) &&
	    qhca_state(eth->core) == QHCA_DEV_UP)
		link = qhca_read(eth->core, QHCA_REG_LINK);
	if (link != U32_MAX && link & QHCA_LINK_UP)
		netif_carrier_on(eth->netdev);
	else
		netif_carrier_off(eth->netdev);
}

/* The link has changed, or the device has come or gone.  Any context. */
void qhca_netdev_link_event(struct qhca_core *core)
{
	struct net_device *netdev = READ_ONCE(core->qdev.netdev);

	if (netdev) {
		struct qhca_eth *eth = netdev_priv(netdev);

		queue_work(core->wq, &eth->link_work);
	}
}

/* Start a queue anew that does not send. */
int qhca_eth_restart(struct qhca_eth *eth)
{
	int err = 0;

	rtnl_lock();
	if (qhca_eth_wanted(eth)) {
		qhca_eth_stop(eth);
		qhca_eth_restore(eth);
		netif_trans_update(eth->netdev);
		err = eth->started ? 0 : -EIO;
	}
	rtnl_unlock();
	return err;
}

static void qhca_timeout_work(struct work_struct *work)
{
	qhca_report_timeout(container_of(work, struct qhca_eth, timeout_work));
}

static void qhca_tx_timeout(struct net_device *netdev, unsigned int queue)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	struct qhca_queue *q = &eth->queue[queue];

	/* The watchdog may find a queue that is being stopped or started. */
	if (!READ_ONCE(q->tx_open))
		return;
	netdev_warn(netdev, "transmit timeout of queue %u: posted %u, reclaimed %u\n",
		    queue, READ_ONCE(q->tx.pi), READ_ONCE(q->tx.ci));
	queue_work(eth->core->wq, &eth->timeout_work);
}

static const struct net_device_ops qhca_netdev_ops = {
	.ndo_open = qhca_open,
	.ndo_stop = qhca_close,
	.ndo_start_xmit = qhca_start_xmit,
	.ndo_features_check = qhca_features_check,
	.ndo_set_rx_mode = qhca_set_rx_mode,
	.ndo_set_mac_address = qhca_set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = qhca_change_mtu,
	.ndo_tx_timeout = qhca_tx_timeout,
	.ndo_get_stats64 = qhca_get_stats64,
	.ndo_set_vf_mac = qhca_set_vf_mac,
	.ndo_set_vf_vlan = qhca_set_vf_vlan,
	.ndo_set_vf_rate = qhca_set_vf_rate,
	.ndo_set_vf_spoofchk = qhca_set_vf_spoofchk,
	.ndo_set_vf_trust = qhca_set_vf_trust,
	.ndo_set_vf_link_state = qhca_set_vf_link_state,
	.ndo_get_vf_config = qhca_get_vf_config,
	.ndo_get_vf_stats = qhca_get_vf_stats,
};

static void qhca_netdev_features(struct net_device *netdev, u64 features)
{
	netdev->hw_features = NETIF_F_SG | NETIF_F_HIGHDMA;
	if (features & QHCA_FEAT_ETH_CSUM)
		netdev->hw_features |= NETIF_F_HW_CSUM | NETIF_F_RXCSUM;
	if (features & QHCA_FEAT_ETH_TSO)
		netdev->hw_features |= NETIF_F_TSO | NETIF_F_TSO6 |
				       NETIF_F_TSO_ECN;
	netdev->vlan_features = netdev->hw_features;
	netdev->hw_features |= NETIF_F_HW_VLAN_CTAG_TX;
	if (features & QHCA_FEAT_ETH_RSS)
		netdev->hw_features |= NETIF_F_RXHASH;
	netdev->features = netdev->hw_features;
}

static void qhca_netdev_address(struct net_device *netdev,
				struct qhca_core *core)
{
	u8 addr[ETH_ALEN];

	put_unaligned_le32(qhca_read(core, QHCA_REG_MAC_LO), addr);
	put_unaligned_le16(qhca_read(core, QHCA_REG_MAC_HI), addr + 4);
	if (is_valid_ether_addr(addr))
		eth_hw_addr_set(netdev, addr);
	else
		eth_hw_addr_random(netdev);
}

static void qhca_eth_init(struct qhca_eth *eth, struct qhca_core *core)
{
	u32 log_max = core->qdev.caps.log_max_eth_ring;
	unsigned int i;

	eth->core = core;
	eth->log_tx = min_t(u32, QHCA_ETH_LOG_TX, log_max);
	eth->log_rx = min_t(u32, QHCA_ETH_LOG_RX, log_max);
	qhca_channels_init(eth);
	mutex_init(&eth->filter_lock);
	INIT_WORK(&eth->filter_work, qhca_filter_work);
	INIT_WORK(&eth->link_work, qhca_link_work);
	INIT_WORK(&eth->timeout_work, qhca_timeout_work);
	INIT_DELAYED_WORK(&eth->restart_work, qhca_restart_work);
	eth->restart_delay = QHCA_RESTART_MIN;
	for (i = 0; i < eth->max_queues; i++)
		qhca_queue_init(eth, i);
}

static void qhca_eth_fini(struct qhca_eth *eth)
{
	disable_work_sync(&eth->filter_work);
	disable_work_sync(&eth->link_work);
	disable_work_sync(&eth->timeout_work);
	disable_delayed_work_sync(&eth->restart_work);
	mutex_destroy(&eth->filter_lock);
}

/*
 * Programs address and MTU.  The host domain may have given a virtual function
 * another address since the driver read it: then the device refuses the old one,
 * and the driver takes the new one.  Returns 1 if it has done so, 0, or a
 * negative errno.
 */
static int qhca_netdev_program(struct qhca_eth *eth)
{
	const u32 fields = QHCA_PORT_SET_MTU | QHCA_PORT_SET_MAC;
	struct net_device *netdev = eth->netdev;
	int err;

	err = qhca_eth_write(eth, fields, 0);
	if (err != -EPERM)
		return err;
	qhca_netdev_address(netdev, eth->core);
	err = qhca_eth_write(eth, fields, 0);
	return err ?: 1;
}

int qhca_netdev_create(struct qhca_core *core)
{
	u32 num = core->eth_vectors;
	struct net_device *netdev;
	struct qhca_eth *eth;
	int err;

	netdev = alloc_etherdev_mqs(struct_size(eth, queue, num), num, num);
	if (!netdev)
		return -ENOMEM;
	eth = netdev_priv(netdev);
	eth->netdev = netdev;
	eth->max_queues = num;
	qhca_eth_init(eth, core);
	SET_NETDEV_DEV(netdev, qhca_device(core));
	netdev->netdev_ops = &qhca_netdev_ops;
	netdev->ethtool_ops = &qhca_ethtool_ops;
	netdev->stat_ops = &qhca_stat_ops;
	netdev->watchdog_timeo = QHCA_TX_TIMEOUT;
	netdev->min_mtu = ETH_MIN_MTU;
	netdev->max_mtu = core->qdev.caps.max_eth_mtu;
	netdev->priv_flags |= IFF_LIVE_ADDR_CHANGE;
	qhca_netdev_features(netdev, core->qdev.caps.features);
	qhca_netdev_address(netdev, core);
	netif_carrier_off(netdev);
	err = qhca_channels_adopt(eth, num);
	if (err)
		goto free;
	err = qhca_netdev_program(eth);
	if (err < 0)
		goto free;
	err = register_netdev(netdev);
	if (err)
		goto free;
	rtnl_lock();
	qhca_xps_set(eth);
	rtnl_unlock();
	WRITE_ONCE(core->qdev.netdev, netdev);
	qhca_netdev_link_event(core);
	return 0;

free:
	qhca_eth_fini(eth);
	free_netdev(netdev);
	return err;
}

/* Before devlink goes.  A report takes its lock, so the caller must not. */
void qhca_netdev_disable_reports(struct qhca_core *core)
{
	struct qhca_eth *eth = netdev_priv(core->qdev.netdev);

	disable_work_sync(&eth->timeout_work);
}

/* Called when the function is stopped, or was never started. */
void qhca_netdev_destroy(struct qhca_core *core)
{
	struct net_device *netdev = core->qdev.netdev;
	struct qhca_eth *eth;

	if (!netdev)
		return;
	eth = netdev_priv(netdev);
	unregister_netdev(netdev);
	WRITE_ONCE(core->qdev.netdev, NULL);
	qhca_eth_fini(eth);
	free_netdev(netdev);
}

/* After a reset: program the settings into the device, and start the queue. */
int qhca_netdev_attach(struct qhca_core *core)
{
	struct net_device *netdev = core->qdev.netdev;
	struct qhca_eth *eth = netdev_priv(netdev);
	int err;

	rtnl_lock();
	err = qhca_netdev_program(eth);
	if (err > 0) {
		netdev_info(netdev, "the host has changed the address to %pM\n",
			    netdev->dev_addr);
		ether_addr_copy(netdev->perm_addr, netdev->dev_addr);
		call_netdevice_notifiers(NETDEV_CHANGEADDR, netdev);
		err = 0;
	}
	/* It offers fewer queues than the one before. */
	if (!err && eth->num_queues > qhca_channels_max(eth))
		err = qhca_channels_adopt(eth, qhca_channels_max(eth));
	if (!err && netif_running(netdev))
		err = qhca_eth_start(eth);
	if (!err)
		netif_device_attach(netdev);
	rtnl_unlock();
	qhca_netdev_link_event(core);
	return err;
}

/* Before a reset: stop the queue, and leave the interface as it is. */
void qhca_netdev_detach(struct qhca_core *core)
{
	struct net_device *netdev = core->qdev.netdev;
	struct qhca_eth *eth = netdev_priv(netdev);

	rtnl_lock();
	netif_device_detach(netdev);
	qhca_eth_stop(eth);
	rtnl_unlock();
	/* The work may have read the link before the interface was detached. */
	flush_work(&eth->link_work);
	netif_carrier_off(netdev);
}
