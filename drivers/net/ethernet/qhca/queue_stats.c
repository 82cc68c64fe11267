// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Statistics of the interface and, for netdev's generic netlink, of its queues.  The
 * rings' counters outlive the rings, so all that the interface has ever counted is the
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

/* The interface as a whole: queues that are not in use have counted, too. */
void qhca_get_stats64(struct net_device *netdev, struct rtnl_link_stats64 *stats)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	unsigned int i;

	for (i = 0; i < eth->max_queues; i++) {
		struct qhca_ring_stats *rx = &eth->queue[i].rx_stats;
		struct qhca_ring_stats *tx = &eth->queue[i].tx_stats;

		stats->rx_packets += qhca_stat(rx, &rx->packets);
		stats->rx_bytes += qhca_stat(rx, &rx->bytes);
		stats->rx_dropped += qhca_stat(rx, &rx->dropped);
		stats->rx_length_errors += qhca_stat(rx, &rx->errors);
		stats->tx_packets += qhca_stat(tx, &tx->packets);
		stats->tx_bytes += qhca_stat(tx, &tx->bytes);
		stats->tx_dropped += qhca_stat(tx, &tx->dropped);
	}
	stats->rx_errors = stats->rx_length_errors;
}

static void qhca_add_rx(struct qhca_queue *q, struct netdev_queue_stats_rx *rx)
{
	struct qhca_ring_stats *stats = &q->rx_stats;

	rx->packets += qhca_stat(stats, &stats->packets);
	rx->bytes += qhca_stat(stats, &stats->bytes);
	rx->alloc_fail += qhca_stat(stats, &stats->stalls);
	rx->csum_unnecessary += qhca_stat(stats, &stats->csum);
}

static void qhca_add_tx(struct qhca_queue *q, struct netdev_queue_stats_tx *tx)
{
	struct qhca_ring_stats *stats = &q->tx_stats;

	tx->packets += qhca_stat(stats, &stats->packets);
	tx->bytes += qhca_stat(stats, &stats->bytes);
	tx->needs_csum += qhca_stat(stats, &stats->csum);
	tx->hw_gso_packets += qhca_stat(stats, &stats->tso);
	tx->stop += qhca_stat(stats, &stats->stalls);
}

static void qhca_zero_rx(struct netdev_queue_stats_rx *rx)
{
	rx->packets = 0;
	rx->bytes = 0;
	rx->alloc_fail = 0;
	rx->csum_unnecessary = 0;
}

static void qhca_zero_tx(struct netdev_queue_stats_tx *tx)
{
	tx->packets = 0;
	tx->bytes = 0;
	tx->needs_csum = 0;
	tx->hw_gso_packets = 0;
	tx->stop = 0;
}

static void qhca_get_queue_stats_rx(struct net_device *netdev, int queue,
				    struct netdev_queue_stats_rx *rx)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	qhca_zero_rx(rx);
	qhca_add_rx(&eth->queue[queue], rx);
}

static void qhca_get_queue_stats_tx(struct net_device *netdev, int queue,
				    struct netdev_queue_stats_tx *tx)
{
	struct qhca_eth *eth = netdev_priv(netdev);

	qhca_zero_tx(tx);
	qhca_add_tx(&eth->queue[queue], tx);
}

/* What is not that of a queue which the stack shows: of those not in use. */
static void qhca_get_base_stats(struct net_device *netdev,
				struct netdev_queue_stats_rx *rx,
				struct netdev_queue_stats_tx *tx)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	unsigned int i;

	qhca_zero_rx(rx);
	qhca_zero_tx(tx);
	for (i = eth->num_queues; i < eth->max_queues; i++) {
		qhca_add_rx(&eth->queue[i], rx);
		qhca_add_tx(&eth->queue[i], tx);
	}
}

const struct netdev_stat_ops qhca_stat_ops = {
	.get_queue_stats_rx = qhca_get_queue_stats_rx,
	.get_queue_stats_tx = qhca_get_queue_stats_tx,
	.get_base_stats = qhca_get_base_stats,
};
