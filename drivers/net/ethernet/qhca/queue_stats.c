// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Statistics of the two queues, for netdev's generic netlink.  The rings'
 * counters outlive the rings, so all that the interface has ever counted is the
 * queues'.
 */
#include <net/netdev_queues.h>

#include "netdev.h"

static u64 qhca_stat(struct qhca_ring_stats *stats, const u64_stats_t *counter)
{
	unsigned int start;
	u64 value;

	do {
		start = u64_stats_fetch_begin(&stats->sync);
		value = u64_stats_read(counter);
	} while (u64_stats_fetch_retry(&stats->sync, start));
	return value;
}

static void qhca_get_queue_stats_rx(struct net_device *netdev, int queue,
				    struct netdev_queue_stats_rx *rx)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	struct qhca_ring_stats *stats = &eth->rx_stats;

	rx->packets = qhca_stat(stats, &stats->packets);
	rx->bytes = qhca_stat(stats, &stats->bytes);
	rx->alloc_fail = qhca_stat(stats, &stats->stalls);
	rx->csum_unnecessary = qhca_stat(stats, &stats->csum);
}

static void qhca_get_queue_stats_tx(struct net_device *netdev, int queue,
				    struct netdev_queue_stats_tx *tx)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	struct qhca_ring_stats *stats = &eth->tx_stats;

	tx->packets = qhca_stat(stats, &stats->packets);
	tx->bytes = qhca_stat(stats, &stats->bytes);
	tx->needs_csum = qhca_stat(stats, &stats->csum);
	tx->hw_gso_packets = qhca_stat(stats, &stats->tso);
	tx->stop = qhca_stat(stats, &stats->stalls);
}

static void qhca_get_base_stats(struct net_device *netdev,
				struct netdev_queue_stats_rx *rx,
				struct netdev_queue_stats_tx *tx)
{
	rx->packets = 0;
	rx->bytes = 0;
	rx->alloc_fail = 0;
	rx->csum_unnecessary = 0;
	tx->packets = 0;
	tx->bytes = 0;
	tx->needs_csum = 0;
	tx->hw_gso_packets = 0;
	tx->stop = 0;
}

const struct netdev_stat_ops qhca_stat_ops = {
	.get_queue_stats_rx = qhca_get_queue_stats_rx,
	.get_queue_stats_tx = qhca_get_queue_stats_tx,
	.get_base_stats = qhca_get_base_stats,
};
