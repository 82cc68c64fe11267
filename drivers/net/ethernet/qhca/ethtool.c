// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ethtool: link, ring sizes, and the counters of rings, driver and device.
 * Coalescing is in coalesce.c, and what concerns the number of queues in channels.c.
 */
#include <linux/ethtool.h>
#include <linux/log2.h>
#include <linux/slab.h>

#define QHCA_COMPAT_ETHTOOL
#include <linux/qhca/compat.h>

#include "netdev.h"

#define QHCA_COUNTER_STRING(name) \
	[QHCA_CNT_##name] = #name,
static const char qhca_counter_names[][ETH_GSTRING_LEN] = {
	QHCA_COUNTERS(QHCA_COUNTER_STRING)
};

/* In the order of qhca_ring_values(); of each queue, with its number in front. */
static const char * const qhca_tx_names[] = {
	"packets", "bytes", "dropped", "csum_offloaded", "tso", "map_errors",
	"stopped",
};

static const char * const qhca_rx_names[] = {
	"packets", "bytes", "dropped", "csum_verified", "truncated",
	"alloc_failures",
};

/* In the order of qhca_driver_values(). */
static const char qhca_drv_names[][ETH_GSTRING_LEN] = {
	"drv_command_timeouts",
	"drv_command_events_lost",
	"drv_recoveries",
};

static void qhca_get_drvinfo(struct net_device *netdev,
			     struct ethtool_drvinfo *info)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	strscpy(info->driver, QHCA_DRV_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(eth->core->qdev.pdev),
		sizeof(info->bus_info));
}

static int qhca_get_link_ksettings(struct net_device *netdev,
				   struct ethtool_link_ksettings *settings)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	u32 link = U32_MAX;

	if (qhca_state(eth->core) == QHCA_DEV_UP)
		link = qhca_read(eth->core, QHCA_REG_LINK);
	ethtool_link_ksettings_zero_link_mode(settings, supported);
	ethtool_link_ksettings_zero_link_mode(settings, advertising);
	settings->base.port = PORT_OTHER;
	settings->base.autoneg = AUTONEG_DISABLE;
	if (netif_carrier_ok(netdev) && link != U32_MAX) {
		settings->base.speed = QHCA_GET(QHCA_LINK_SPEED, link) * 100;
		settings->base.duplex = DUPLEX_FULL;
	} else {
		settings->base.speed = SPEED_UNKNOWN;
		settings->base.duplex = DUPLEX_UNKNOWN;
	}
	return 0;
}

/* All queues that there can be, so that the number does not change between calls. */
static int qhca_get_sset_count(struct net_device *netdev, int sset)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	if (sset != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return eth->max_queues * (ARRAY_SIZE(qhca_tx_names) +
				  ARRAY_SIZE(qhca_rx_names)) +
	       ARRAY_SIZE(qhca_drv_names) + QHCA_NUM_COUNTERS;
}

static void qhca_get_strings(struct net_device *netdev, u32 sset, u8 *data)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	unsigned int i, n;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < eth->max_queues; i++) {
		for (n = 0; n < ARRAY_SIZE(qhca_tx_names); n++)
			ethtool_sprintf(&data, "txq%u_%s", i, qhca_tx_names[n]);
		for (n = 0; n < ARRAY_SIZE(qhca_rx_names); n++)
			ethtool_sprintf(&data, "rxq%u_%s", i, qhca_rx_names[n]);
	}
	memcpy(data, qhca_drv_names, sizeof(qhca_drv_names));
	memcpy(data + sizeof(qhca_drv_names), qhca_counter_names,
	       sizeof(qhca_counter_names));
}

static u64 *qhca_ring_values(struct qhca_ring_stats *stats, bool tx, u64 *values)
{
	unsigned int start;
	u64 *next;

	do {
		start = u64_stats_fetch_begin(&stats->sync);
		next = values;
		*next++ = u64_stats_read(&stats->packets);
		*next++ = u64_stats_read(&stats->bytes);
		*next++ = u64_stats_read(&stats->dropped);
		*next++ = u64_stats_read(&stats->csum);
		if (tx)
			*next++ = u64_stats_read(&stats->tso);
		*next++ = u64_stats_read(&stats->errors);
		*next++ = u64_stats_read(&stats->stalls);
	} while (u64_stats_fetch_retry(&stats->sync, start));
	return next;
}

static u64 *qhca_driver_values(struct qhca_core *core, u64 *values)
{
	*values++ = atomic_read(&core->cmdq.timeouts);
	*values++ = atomic_read(&core->cmdq.lost_events);
	*values++ = atomic_read(&core->total_recoveries);
	return values;
}

static void qhca_get_ethtool_stats(struct net_device *netdev,
				   struct ethtool_stats *stats, u64 *values)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	struct qhca_core *core = eth->core;
	unsigned int i;

	for (i = 0; i < eth->max_queues; i++) {
		values = qhca_ring_values(&eth->queue[i].tx_stats, true, values);
		values = qhca_ring_values(&eth->queue[i].rx_stats, false, values);
	}
	values = qhca_driver_values(core, values);
	/* A dead device has no counters, and an older one has fewer. */
	memset(values, 0, QHCA_NUM_COUNTERS * sizeof(*values));
	if (qhca_query_counters(&core->qdev, 0, core->qdev.caps.num_counters,
				values))
		memset(values, 0, QHCA_NUM_COUNTERS * sizeof(*values));
}

static void qhca_get_ringparam(struct net_device *netdev,
			       struct ethtool_ringparam *ring,
			       struct kernel_ethtool_ringparam *kernel_ring,
			       struct netlink_ext_ack *extack)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	u32 most = 1u << eth->core->qdev.caps.log_max_eth_ring;

	ring->rx_max_pending = most;
	ring->tx_max_pending = most;
	ring->rx_pending = 1u << eth->log_rx;
	ring->tx_pending = 1u << eth->log_tx;
}

static int qhca_set_ringparam(struct net_device *netdev,
			      struct ethtool_ringparam *ring,
			      struct kernel_ethtool_ringparam *kernel_ring,
			      struct netlink_ext_ack *extack)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	const u32 least = 1u << QHCA_ETH_MIN_LOG_RING;

	if (ring->rx_mini_pending || ring->rx_jumbo_pending)
		return -EINVAL;
	if (!is_power_of_2(ring->rx_pending) ||
	    !is_power_of_2(ring->tx_pending)) {
		NL_SET_ERR_MSG(extack, "ring sizes must be powers of two");
		return -EINVAL;
	}
	if (ring->rx_pending < least || ring->tx_pending < least) {
		NL_SET_ERR_MSG(extack, "ring too small");
		return -EINVAL;
	}
	return qhca_eth_resize(eth, ilog2(ring->tx_pending),
				ilog2(ring->rx_pending));
}

const struct ethtool_ops qhca_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS,
	.get_drvinfo = qhca_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = qhca_get_link_ksettings,
	.get_sset_count = qhca_get_sset_count,
	.get_strings = qhca_get_strings,
	.get_ethtool_stats = qhca_get_ethtool_stats,
	.get_coalesce = qhca_get_coalesce,
	.set_coalesce = qhca_set_coalesce,
	.get_ringparam = qhca_get_ringparam,
	.set_ringparam = qhca_set_ringparam,
	.get_channels = qhca_get_channels,
	.set_channels = qhca_set_channels,
	QHCA_OPS_RX_RINGS
	.get_rxfh_key_size = qhca_get_rxfh_key_size,
	.get_rxfh_indir_size = qhca_get_rxfh_indir_size,
	.get_rxfh = qhca_get_rxfh,
	.set_rxfh = qhca_set_rxfh,
	.get_ts_info = ethtool_op_get_ts_info,
};
