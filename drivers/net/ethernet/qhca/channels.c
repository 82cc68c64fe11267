// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How many queues are in use, and how frames are distributed to them.
 *
 * There are as many queues as online CPUs, vectors and the device allow, or as the
 * administrator chooses.  The CPUs send by them in turn (XPS), and the device distributes
 * what it receives by the hash of addresses and ports (RSS).  With one queue RSS is off.
 */
#include <linux/cpumask.h>
#include <linux/ethtool.h>

#include "netdev.h"

#define QHCA_RSS_USED	(QHCA_RSS_IPV4 | QHCA_RSS_TCP_IPV4 | QHCA_RSS_UDP_IPV4 | \
			 QHCA_RSS_IPV6 | QHCA_RSS_TCP_IPV6 | QHCA_RSS_UDP_IPV6)

/**
 * qhca_channels_max - the number of queues that can be in use
 * @eth: port
 */
u32 qhca_channels_max(struct qhca_eth *eth)
{
	return min_t(u32, eth->max_queues, eth->core->eth_vectors);
}

/**
 * qhca_xps_set - divide the CPUs among the queues
 * @eth: port
 *
 * What cannot be set stays as the stack has it.  The stack frees these settings when it
 * unregisters the netdev, so they are made only while it is registered.
 *
 * Context: process, RTNL held.
 */
void qhca_xps_set(struct qhca_eth *eth)
{
	unsigned int i, n, cpu;
	cpumask_var_t mask;

	if (eth->netdev->reg_state != NETREG_REGISTERED || eth->num_queues == 1 ||
	    !zalloc_cpumask_var(&mask, GFP_KERNEL))
		return;
	for (i = 0; i < eth->num_queues; i++) {
		cpumask_clear(mask);
		n = 0;
		for_each_online_cpu(cpu)
			if (n++ % eth->num_queues == i)
				cpumask_set_cpu(cpu, mask);
		netif_set_xps_queue(eth->netdev, mask, i);
	}
	free_cpumask_var(mask);
}

static void qhca_rss_default(struct qhca_eth *eth)
{
	unsigned int i;

	for (i = 0; i < QHCA_RSS_MAX_ENTRIES; i++)
		eth->rss_queue[i] = ethtool_rxfh_indir_default(i, eth->num_queues);
}

/* The administrator's table stays, unless it names queues that are not in use. */
static void qhca_rss_adapt(struct qhca_eth *eth)
{
	unsigned int i;

	if (!netif_is_rxfh_configured(eth->netdev)) {
		qhca_rss_default(eth);
		return;
	}
	for (i = 0; i < QHCA_RSS_MAX_ENTRIES; i++)
		if (eth->rss_queue[i] >= eth->num_queues)
			eth->rss_queue[i] %= eth->num_queues;
}

/**
 * qhca_rss_write - program the distribution into the device
 * @eth: port
 *
 * Return: 0 or a negative errno.
 */
int qhca_rss_write(struct qhca_eth *eth)
{
	struct qhca_rss_config config = {
		.types = cpu_to_le16(QHCA_RSS_USED),
	};
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_SET_RSS,
		.in = &config,
		.in_len = sizeof(config),
	};

	if (!(eth->core->qdev.caps.features & QHCA_FEAT_ETH_RSS))
		return 0;
	if (eth->num_queues > 1)
		config.num_entries = cpu_to_le16(QHCA_RSS_MAX_ENTRIES);
	memcpy(config.key, eth->rss_key, sizeof(config.key));
	memcpy(config.queue, eth->rss_queue, sizeof(config.queue));
	return qhca_cmd_exec(&eth->core->qdev, &cmd);
}

/**
 * qhca_channels_adopt - use this number of queues from now on
 * @eth: port, whose queues do not exist
 * @num: number, up to qhca_channels_max()
 *
 * Context: process, RTNL held unless the netdev has not been registered.
 * Return: 0 or a negative errno; then the number stays.
 */
int qhca_channels_adopt(struct qhca_eth *eth, u32 num)
{
	int err = netif_set_real_num_queues(eth->netdev, num, num);

	if (err)
		return err;
	eth->num_queues = num;
	qhca_rss_adapt(eth);
	qhca_xps_set(eth);
	return 0;
}

void qhca_channels_init(struct qhca_eth *eth)
{
	netdev_rss_key_fill(eth->rss_key, sizeof(eth->rss_key));
}

void qhca_get_channels(struct net_device *netdev,
		       struct ethtool_channels *channels)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	channels->max_combined = qhca_channels_max(eth);
	channels->combined_count = eth->num_queues;
}

int qhca_set_channels(struct net_device *netdev,
		      struct ethtool_channels *channels)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	return qhca_eth_set_queues(eth, channels->combined_count);
}

u32 qhca_get_rx_ring_count(struct net_device *netdev)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	return eth->num_queues;
}

static bool qhca_has_rss(struct net_device *netdev)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	return eth->core->qdev.caps.features & QHCA_FEAT_ETH_RSS;
}

u32 qhca_get_rxfh_key_size(struct net_device *netdev)
{
	return qhca_has_rss(netdev) ? QHCA_RSS_KEY_LEN : 0;
}

u32 qhca_get_rxfh_indir_size(struct net_device *netdev)
{
	return qhca_has_rss(netdev) ? QHCA_RSS_MAX_ENTRIES : 0;
}

int qhca_get_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	unsigned int i;

	if (!qhca_has_rss(netdev))
		return -EOPNOTSUPP;
	rxfh->hfunc = ETH_RSS_HASH_TOP;
	for (i = 0; rxfh->indir && i < QHCA_RSS_MAX_ENTRIES; i++)
		rxfh->indir[i] = eth->rss_queue[i];
	if (rxfh->key)
		memcpy(rxfh->key, eth->rss_key, sizeof(eth->rss_key));
	return 0;
}

/* The stack has compared the entries with qhca_get_rx_ring_count(). */
int qhca_set_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh,
		  struct netlink_ext_ack *extack)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	u8 queue[QHCA_RSS_MAX_ENTRIES], key[QHCA_RSS_KEY_LEN];
	unsigned int i;
	int err;

	if (!qhca_has_rss(netdev))
		return -EOPNOTSUPP;
	if (rxfh->hfunc != ETH_RSS_HASH_NO_CHANGE &&
	    rxfh->hfunc != ETH_RSS_HASH_TOP) {
		NL_SET_ERR_MSG(extack, "the hash is Toeplitz's");
		return -EOPNOTSUPP;
	}
	memcpy(queue, eth->rss_queue, sizeof(queue));
	memcpy(key, eth->rss_key, sizeof(key));
	for (i = 0; rxfh->indir && i < QHCA_RSS_MAX_ENTRIES; i++)
		eth->rss_queue[i] = rxfh->indir[i];
	if (rxfh->key)
		memcpy(eth->rss_key, rxfh->key, sizeof(eth->rss_key));
	/* Otherwise the next start programs it. */
	err = eth->started ? qhca_rss_write(eth) : 0;
	if (err) {
		memcpy(eth->rss_queue, queue, sizeof(queue));
		memcpy(eth->rss_key, key, sizeof(key));
	}
	return err;
}
