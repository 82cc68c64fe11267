/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The Ethernet port: queues, each with a transmit and a receive ring that share an
 * interrupt and a NAPI context.
 */
#ifndef QHCA_NETDEV_H
#define QHCA_NETDEV_H

#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/if_vlan.h>
#include <linux/netdevice.h>
#include <linux/u64_stats_sync.h>
#include <net/page_pool/types.h>

#include "core.h"

#define QHCA_ETH_MIN_LOG_RING	6	/* two frames of the most fragments */
#define QHCA_ETH_LOG_TX		9
#define QHCA_ETH_LOG_RX		9
#define QHCA_ETH_MAX_USECS	1000	/* between two interrupts */

/**
 * struct qhca_ring_stats - counters of a ring
 * @sync:    makes reads of 64 bits consistent on any machine
 * @packets: frames
 * @bytes:   length of these frames
 * @dropped: frames lost in the driver
 * @csum:    frames whose checksum the device completed or verified
 * @tso:     tx: frames of the stack that the device sent in segments, each of which
 *           counts as a frame above
 * @errors:  tx: frames that could not be mapped; rx: truncated frames
 * @stalls:  tx: times the queue was stopped; rx: allocations that failed
 *
 * Each counter has one writer at a time, which is enough on 64-bit machines.
 * Of the transmit ring, NAPI writes packets and bytes, and the sender writes
 * the others.
 */
struct qhca_ring_stats {
	struct u64_stats_sync sync;
	u64_stats_t packets;
	u64_stats_t bytes;
	u64_stats_t dropped;
	u64_stats_t csum;
	u64_stats_t tso;
	u64_stats_t errors;
	u64_stats_t stalls;
};

/**
 * struct qhca_tx_buf - the buffer of a transmit descriptor
 * @skb:  the frame, at its last descriptor, with which it is freed
 * @packets: how many frames the device sends for @skb
 * @bytes: their length
 * @dma:  bus address, for unmapping
 * @len:  bytes, for unmapping
 * @page: mapped as a page; otherwise as a single buffer
 */
struct qhca_tx_buf {
	struct sk_buff *skb;
	u32 packets;
	u32 bytes;
	dma_addr_t dma;
	u32 len;
	bool page;
};

/**
 * struct qhca_tx_ring - transmit ring
 * @desc:  descriptors
 * @dma:   bus address of @desc
 * @buf:   one for each descriptor
 * @mask:  number of descriptors less one
 * @pi:    free-running number of descriptors written; under the queue's xmit
 *         lock
 * @rung:  @pi at the last doorbell; under that lock
 * @ci:    free-running number of descriptors reclaimed; advanced by NAPI
 */
struct qhca_tx_ring {
	struct qhca_eth_txd *desc;
	dma_addr_t dma;
	struct qhca_tx_buf *buf;
	u32 mask;
	u32 pi;
	u32 rung;
	u32 ci;
};

struct qhca_rx_buf {
	struct page *page;
	u32 offset;
};

/**
 * struct qhca_rx_ring - receive ring; only NAPI uses it once it runs
 * @desc:     descriptors
 * @dma:      bus address of @desc
 * @comp:     completions
 * @comp_dma: bus address of @comp
 * @buf:      one for each descriptor
 * @pool:     page pool that the buffers are from
 * @mask:     number of descriptors less one
 * @pi:       free-running number of buffers posted
 * @ci:       free-running number of completions consumed
 * @buf_size: bytes of a buffer, headroom and skb_shared_info included
 * @room:     bytes of a buffer that a frame may fill
 */
struct qhca_rx_ring {
	struct qhca_eth_rxd *desc;
	dma_addr_t dma;
	struct qhca_eth_rxc *comp;
	dma_addr_t comp_dma;
	struct qhca_rx_buf *buf;
	struct page_pool *pool;
	u32 mask;
	u32 pi;
	u32 ci;
	u32 buf_size;
	u32 room;
};

/**
 * struct qhca_queue - an Ethernet queue of the device: two rings and their NAPI context
 * @eth:        the port
 * @index:      number of the queue, in the device and in the stack
 * @napi:       for both rings; the netdev lists it only while it is enabled
 * @arm_timer:  arms the queue @eth->usecs after NAPI has consumed everything
 * @tx:         transmit ring
 * @rx:         receive ring
 * @rec:        record of the queue
 * @rec_dma:    bus address of @rec
 * @tx_stats:   counters of the transmit ring, which outlive it
 * @rx_stats:   counters of the receive ring, likewise
 * @tx_open:    frames may be posted; changed under the transmit queue's lock, which
 *              qhca_start_xmit() runs under
 * @irq_name:   name of the interrupt
 */
struct qhca_queue {
	struct qhca_eth *eth;
	unsigned int index;
	struct napi_struct napi;
	struct hrtimer arm_timer;
	struct qhca_tx_ring tx;
	struct qhca_rx_ring rx;
	struct qhca_eth_record *rec;
	dma_addr_t rec_dma;
	struct qhca_ring_stats tx_stats;
	struct qhca_ring_stats rx_stats;
	bool tx_open;
	char irq_name[48];
};

/**
 * struct qhca_eth - private part of the netdev
 * @core:       the function
 * @netdev:     back pointer
 * @usecs:      least time between two interrupts of a queue, in microseconds; 0: NAPI
 *              arms at once.  Changed under RTNL.
 * @log_tx:     log2 of the wanted size of transmit rings; under RTNL
 * @log_rx:     log2 of the wanted size of receive rings; under RTNL
 * @num_queues: queues in use, from 0 on; under RTNL, changed while none exists
 * @rss_key:    key of the hash; under RTNL
 * @rss_queue:  queue of each entry of the table; under RTNL
 * @started:    the queues exist; under RTNL
 * @filter_lock: serialises programming of the receive filter
 * @receiving:  the device is to deliver frames; under @filter_lock
 * @filter_work: programs the receive filter
 * @link_work:  sets the carrier as the device's link is
 * @timeout_work: restarts queues that do not send
 * @restart_work: starts queues that could not be restarted
 * @restart_delay: delay before the next attempt of @restart_work, in jiffies;
 *              under RTNL
 * @max_queues: length of @queue
 * @queue:      queues
 */
struct qhca_eth {
	struct qhca_core *core;
	struct net_device *netdev;
	u32 usecs;
	u8 log_tx;
	u8 log_rx;
	u32 num_queues;
	u8 rss_key[QHCA_RSS_KEY_LEN];
	u8 rss_queue[QHCA_RSS_MAX_ENTRIES];
	bool started;
	struct mutex filter_lock;	/* receiving, the device's filter */
	bool receiving;
	struct work_struct filter_work;
	struct work_struct link_work;
	struct work_struct timeout_work;
	struct delayed_work restart_work;
	unsigned long restart_delay;
	u32 max_queues;
	struct qhca_queue queue[] __counted_by(max_queues);
};

static inline void qhca_stat_add(struct qhca_ring_stats *stats,
				 u64_stats_t *counter, unsigned int n)
{
	u64_stats_update_begin(&stats->sync);
	u64_stats_add(counter, n);
	u64_stats_update_end(&stats->sync);
}

/* netdev.c */
int qhca_netdev_create(struct qhca_core *core);
void qhca_netdev_destroy(struct qhca_core *core);
int qhca_netdev_attach(struct qhca_core *core);
void qhca_netdev_detach(struct qhca_core *core);
void qhca_netdev_link_event(struct qhca_core *core);
void qhca_netdev_disable_reports(struct qhca_core *core);
int qhca_eth_restart(struct qhca_eth *eth);
int qhca_eth_resize(struct qhca_eth *eth, u8 log_tx, u8 log_rx);
int qhca_eth_set_queues(struct qhca_eth *eth, u32 num);

/* queue.c */
void qhca_queue_init(struct qhca_eth *eth, unsigned int index);
int qhca_queue_start(struct qhca_queue *q);
void qhca_queue_close(struct qhca_queue *q);
void qhca_queue_silence(struct qhca_queue *q);
void qhca_queue_free(struct qhca_queue *q);
void qhca_queue_open(struct qhca_queue *q);

/* channels.c */
void qhca_channels_init(struct qhca_eth *eth);
int qhca_channels_adopt(struct qhca_eth *eth, u32 num);
u32 qhca_channels_max(struct qhca_eth *eth);
void qhca_xps_set(struct qhca_eth *eth);
int qhca_rss_write(struct qhca_eth *eth);
void qhca_get_channels(struct net_device *netdev,
		       struct ethtool_channels *channels);
int qhca_set_channels(struct net_device *netdev,
		      struct ethtool_channels *channels);
u32 qhca_get_rx_ring_count(struct net_device *netdev);
u32 qhca_get_rxfh_key_size(struct net_device *netdev);
u32 qhca_get_rxfh_indir_size(struct net_device *netdev);
int qhca_get_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh);
int qhca_set_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh,
		  struct netlink_ext_ack *extack);

/* tx.c */
int qhca_tx_alloc(struct qhca_queue *q);
void qhca_tx_free(struct qhca_queue *q);
void qhca_tx_open(struct qhca_queue *q);
void qhca_tx_close(struct qhca_queue *q);
void qhca_tx_reclaim(struct qhca_queue *q, int budget);
netdev_tx_t qhca_start_xmit(struct sk_buff *skb, struct net_device *netdev);
netdev_features_t qhca_features_check(struct sk_buff *skb,
				      struct net_device *netdev,
				      netdev_features_t features);

/* rx.c */
int qhca_rx_alloc(struct qhca_queue *q);
void qhca_rx_free(struct qhca_queue *q);
int qhca_rx_poll(struct qhca_queue *q, int budget);

/* coalesce.c */
void qhca_coalesce_init(struct qhca_queue *q);
void qhca_coalesce_stop(struct qhca_queue *q);
void qhca_queue_arm(struct qhca_queue *q);
void qhca_queue_arm_later(struct qhca_queue *q);
int qhca_get_coalesce(struct net_device *netdev,
		      struct ethtool_coalesce *coalesce,
		      struct kernel_ethtool_coalesce *kernel_coalesce,
		      struct netlink_ext_ack *extack);
int qhca_set_coalesce(struct net_device *netdev,
		      struct ethtool_coalesce *coalesce,
		      struct kernel_ethtool_coalesce *kernel_coalesce,
		      struct netlink_ext_ack *extack);

/* sriov.c */
int qhca_set_vf_mac(struct net_device *netdev, int vf, u8 *mac);
int qhca_set_vf_vlan(struct net_device *netdev, int vf, u16 vlan, u8 qos,
		     __be16 proto);
int qhca_set_vf_rate(struct net_device *netdev, int vf, int min_rate,
		     int max_rate);
int qhca_set_vf_spoofchk(struct net_device *netdev, int vf, bool on);
int qhca_set_vf_trust(struct net_device *netdev, int vf, bool on);
int qhca_set_vf_link_state(struct net_device *netdev, int vf, int state);
int qhca_get_vf_config(struct net_device *netdev, int vf,
		       struct ifla_vf_info *info);
int qhca_get_vf_stats(struct net_device *netdev, int vf,
		      struct ifla_vf_stats *stats);

/* reporter.c */
void qhca_report_timeout(struct qhca_eth *eth);
void qhca_report_sends(struct qhca_eth *eth);

/* queue_stats.c */
void qhca_get_stats64(struct net_device *netdev,
		      struct rtnl_link_stats64 *stats);
extern const struct netdev_stat_ops qhca_stat_ops;

/* ethtool.c */
extern const struct ethtool_ops qhca_ethtool_ops;

#endif /* QHCA_NETDEV_H */
