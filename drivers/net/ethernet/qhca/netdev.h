/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The Ethernet port: one transmit and one receive ring that share an
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

#define QHCA_ETHQ		0	/* the queue of the device */
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
 * struct qhca_eth - private part of the netdev
 * @core:       the function
 * @netdev:     back pointer
 * @napi:       for both rings
 * @arm_timer:  arms the queue @usecs after NAPI has consumed everything
 * @usecs:      that time, in microseconds; 0: NAPI arms at once.  Changed
 *              under RTNL.
 * @tx:         transmit ring
 * @rx:         receive ring
 * @rec:        record of the Ethernet queue
 * @rec_dma:    bus address of @rec
 * @tx_stats:   counters of the transmit ring, which outlive it
 * @rx_stats:   counters of the receive ring, likewise
 * @irq_name:   name of the interrupt
 * @log_tx:     log2 of the wanted size of the transmit ring; under RTNL
 * @log_rx:     log2 of the wanted size of the receive ring; under RTNL
 * @started:    the queue exists; under RTNL
 * @tx_open:    frames may be posted; changed under the transmit queue's lock,
 *              which qhca_start_xmit() runs under
 * @filter_lock: serialises programming of the receive filter
 * @receiving:  the device is to deliver frames; under @filter_lock
 * @filter_work: programs the receive filter
 * @link_work:  sets the carrier as the device's link is
 * @timeout_work: restarts a queue that does not send
 * @restart_work: starts a queue that could not be restarted
 * @restart_delay: delay before the next attempt of @restart_work, in jiffies;
 *              under RTNL
 */
struct qhca_eth {
	struct qhca_core *core;
	struct net_device *netdev;
	struct napi_struct napi;
	struct hrtimer arm_timer;
	u32 usecs;
	struct qhca_tx_ring tx;
	struct qhca_rx_ring rx;
	struct qhca_eth_record *rec;
	dma_addr_t rec_dma;
	struct qhca_ring_stats tx_stats;
	struct qhca_ring_stats rx_stats;
	char irq_name[48];
	u8 log_tx;
	u8 log_rx;
	bool started;
	bool tx_open;
	struct mutex filter_lock;	/* receiving, the device's filter */
	bool receiving;
	struct work_struct filter_work;
	struct work_struct link_work;
	struct work_struct timeout_work;
	struct delayed_work restart_work;
	unsigned long restart_delay;
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

/* tx.c */
int qhca_tx_alloc(struct qhca_eth *eth);
void qhca_tx_free(struct qhca_eth *eth);
void qhca_tx_open(struct qhca_eth *eth);
void qhca_tx_close(struct qhca_eth *eth);
void qhca_tx_reclaim(struct qhca_eth *eth, int budget);
netdev_tx_t qhca_start_xmit(struct sk_buff *skb, struct net_device *netdev);
netdev_features_t qhca_features_check(struct sk_buff *skb,
				      struct net_device *netdev,
				      netdev_features_t features);

/* rx.c */
int qhca_rx_alloc(struct qhca_eth *eth);
void qhca_rx_free(struct qhca_eth *eth);
int qhca_rx_poll(struct qhca_eth *eth, int budget);

/* coalesce.c */
void qhca_coalesce_init(struct qhca_eth *eth);
void qhca_coalesce_stop(struct qhca_eth *eth);
void qhca_eth_arm(struct qhca_eth *eth);
void qhca_eth_arm_later(struct qhca_eth *eth);
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
extern const struct netdev_stat_ops qhca_stat_ops;

/* ethtool.c */
extern const struct ethtool_ops qhca_ethtool_ops;

#endif /* QHCA_NETDEV_H */
