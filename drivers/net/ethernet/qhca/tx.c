// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Sending frames.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <linux/tcp.h>
#include <net/netdev_queues.h>

#include "netdev.h"

/* The queue stops when a frame may not fit, and wakes when two frames fit. */
#define QHCA_TX_STOP		QHCA_MAX_TX_FRAGS
#define QHCA_TX_WAKE		(2 * QHCA_MAX_TX_FRAGS)

static u32 qhca_tx_room(const struct qhca_tx_ring *tx)
{
	return tx->mask + 1 - (READ_ONCE(tx->pi) - READ_ONCE(tx->ci));
}

static void qhca_tx_ring_doorbell(struct qhca_queue *q)
{
	q->tx.rung = q->tx.pi;
	qhca_ring(&q->eth->core->qdev, QHCA_DB_ETH_TX,
		  q->index | (u64)q->tx.pi << 32);
}

static void qhca_tx_unmap(struct qhca_queue *q, struct qhca_tx_buf *buf)
{
	struct device *dev = qhca_device(q->eth->core);

	if (buf->page)
		dma_unmap_page(dev, buf->dma, buf->len, DMA_TO_DEVICE);
	else
		dma_unmap_single(dev, buf->dma, buf->len, DMA_TO_DEVICE);
}

/* Map the head (i < 0) or a fragment into descriptor number pi. */
static int qhca_tx_map(struct qhca_queue *q, struct sk_buff *skb, int i,
		       u32 pi)
{
	struct qhca_tx_buf *buf = &q->tx.buf[pi & q->tx.mask];
	struct qhca_eth_txd *txd = &q->tx.desc[pi & q->tx.mask];
	struct device *dev = qhca_device(q->eth->core);

	if (i < 0) {
		buf->len = skb_headlen(skb);
		buf->dma = dma_map_single(dev, skb->data, buf->len,
					  DMA_TO_DEVICE);
	} else {
		const skb_frag_t *frag = &skb_shinfo(skb)->frags[i];

		buf->len = skb_frag_size(frag);
		buf->dma = skb_frag_dma_map(dev, frag, 0, buf->len,
					    DMA_TO_DEVICE);
	}
	if (dma_mapping_error(dev, buf->dma))
		return -ENOMEM;
	buf->page = i >= 0;
	buf->skb = NULL;
	memset(txd, 0, sizeof(*txd));
	txd->addr = cpu_to_le64(buf->dma);
	txd->len = cpu_to_le32(buf->len);
	return 0;
}

static int qhca_tx_map_all(struct qhca_queue *q, struct sk_buff *skb)
{
	u32 pi = q->tx.pi;
	int i;

	for (i = -1; i < (int)skb_shinfo(skb)->nr_frags; i++, pi++)
		if (qhca_tx_map(q, skb, i, pi))
			goto unmap;
	return 0;

unmap:
	while (pi-- != q->tx.pi)
		qhca_tx_unmap(q, &q->tx.buf[pi & q->tx.mask]);
	return -ENOMEM;
}

/* How many frames the device sends for one of the stack. */
static u32 qhca_tx_segments(const struct sk_buff *skb)
{
	return skb_is_gso(skb) ? max_t(u32, skb_shinfo(skb)->gso_segs, 1) : 1;
}

/**
 * qhca_features_check - what the device can do for a frame
 * @skb: frame
 * @netdev: its interface
 * @features: what the device can do for others
 *
 * The stack segments frames that are outside of the device's limits, such as those of a
 * guest in this guest.  It also segments those that another adapter has merged without a
 * word on where their checksum is, since the device computes that of each segment.  A tag
 * that the device does not insert comes into the frame only after this.
 */
netdev_features_t qhca_features_check(struct sk_buff *skb,
				      struct net_device *netdev,
				      netdev_features_t features)
{
	if (skb_is_gso(skb) &&
	    (skb->ip_summed != CHECKSUM_PARTIAL ||
	     skb_shinfo(skb)->gso_size < QHCA_MIN_TSO_MSS ||
	     skb_tcp_all_headers(skb) + VLAN_HLEN > QHCA_MAX_TSO_HDR ||
	     skb->len + VLAN_HLEN > QHCA_MAX_TSO_FRAME))
		features &= ~NETIF_F_GSO_MASK;
	return vlan_features_check(skb, features);
}

/* Fill in the fields that concern the whole frame, in its first descriptor. */
static u16 qhca_tx_offloads(struct qhca_queue *q, const struct sk_buff *skb,
			    struct qhca_eth_txd *txd)
{
	u16 flags = 0;

	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		flags |= QHCA_TXD_CSUM;
		txd->csum_start = cpu_to_le16(skb_checksum_start_offset(skb));
		txd->csum_offset = cpu_to_le16(skb->csum_offset);
	}
	if (skb_is_gso(skb)) {
		flags |= QHCA_TXD_TSO;
		txd->mss = cpu_to_le16(skb_shinfo(skb)->gso_size);
		txd->hdr_len = cpu_to_le16(skb_tcp_all_headers(skb));
	}
	if (skb_vlan_tag_present(skb)) {
		flags |= QHCA_TXD_VLAN;
		txd->vlan = cpu_to_le16(skb_vlan_tag_get(skb));
	}
	return flags;
}

static void qhca_tx_post(struct qhca_queue *q, struct sk_buff *skb)
{
	struct qhca_tx_ring *tx = &q->tx;
	u32 last = tx->pi + skb_shinfo(skb)->nr_frags;
	struct qhca_eth_txd *txd = &tx->desc[tx->pi & tx->mask];
	struct qhca_tx_buf *buf = &tx->buf[last & tx->mask];
	u16 flags = qhca_tx_offloads(q, skb, txd);

	buf->skb = skb;
	buf->packets = qhca_tx_segments(skb);
	buf->bytes = skb->len;
	if (flags & QHCA_TXD_TSO)
		buf->bytes += (buf->packets - 1) * skb_tcp_all_headers(skb);
	if (last == tx->pi) {
		flags |= QHCA_TXD_EOP;
	} else {
		struct qhca_eth_txd *eop = &tx->desc[last & tx->mask];

		eop->flags = cpu_to_le16(QHCA_TXD_EOP);
	}
	txd->flags = cpu_to_le16(flags);
	if (flags & QHCA_TXD_CSUM)
		qhca_stat_add(&q->tx_stats, &q->tx_stats.csum,
			      buf->packets);
	if (flags & QHCA_TXD_TSO)
		qhca_stat_add(&q->tx_stats, &q->tx_stats.tso, 1);
	WRITE_ONCE(tx->pi, last + 1);
}

netdev_tx_t qhca_start_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct qhca_eth *eth = netdev_priv(netdev);
	u16 index = skb_get_queue_mapping(skb);
	struct netdev_queue *nq = netdev_get_tx_queue(netdev, index);
	struct qhca_queue *q = &eth->queue[index];
	unsigned int bytes;
	bool more = netdev_xmit_more();

	/*
	 * The stack may call this although the queue is stopped: reclaim wakes
	 * the queue until NAPI is disabled, and a sender may have tested it
	 * before.
	 */
	if (unlikely(!q->tx_open)) {
		netif_tx_stop_queue(nq);
		return NETDEV_TX_BUSY;
	}
	/* The device has a limit of fragments; other frames become linear. */
	if (unlikely(skb_shinfo(skb)->nr_frags >= QHCA_MAX_TX_FRAGS) &&
	    skb_linearize(skb))
		goto drop;
	if (unlikely(qhca_tx_room(&q->tx) <= skb_shinfo(skb)->nr_frags)) {
		netif_tx_stop_queue(nq);
		return NETDEV_TX_BUSY;
	}
	if (unlikely(qhca_tx_map_all(q, skb))) {
		qhca_stat_add(&q->tx_stats, &q->tx_stats.errors, 1);
		goto drop;
	}
	skb_tx_timestamp(skb);
	bytes = skb->len;
	qhca_tx_post(q, skb);
	if (!netif_txq_maybe_stop(nq, qhca_tx_room(&q->tx), QHCA_TX_STOP,
				  QHCA_TX_WAKE))
		qhca_stat_add(&q->tx_stats, &q->tx_stats.stalls, 1);
	if (__netdev_tx_sent_queue(nq, bytes, more))
		qhca_tx_ring_doorbell(q);
	return NETDEV_TX_OK;

drop:
	dev_kfree_skb_any(skb);
	qhca_stat_add(&q->tx_stats, &q->tx_stats.dropped, 1);
	/* Earlier frames may have relied on the doorbell of this one. */
	if (!more && q->tx.rung != q->tx.pi)
		qhca_tx_ring_doorbell(q);
	return NETDEV_TX_OK;
}

/* Free what the device has sent.  NAPI context. */
void qhca_tx_reclaim(struct qhca_queue *q, int budget)
{
	struct netdev_queue *nq = netdev_get_tx_queue(q->eth->netdev, q->index);
	struct qhca_tx_ring *tx = &q->tx;
	unsigned int skbs = 0, len = 0, packets = 0, bytes = 0;
	u32 ci = tx->ci;
	u32 done = le32_to_cpu(READ_ONCE(q->rec->tx_ci));

	if (done == ci)
		return;
	/* The posted index is read after that of the device. */
	dma_rmb();
	if (unlikely(done - ci > READ_ONCE(tx->pi) - ci)) {
		qhca_die(q->eth->core, "transmit index beyond what was posted");
		return;
	}
	for (; ci != done; ci++) {
		struct qhca_tx_buf *buf = &tx->buf[ci & tx->mask];

		qhca_tx_unmap(q, buf);
		if (!buf->skb)
			continue;
		skbs++;
		len += buf->skb->len;
		packets += buf->packets;
		bytes += buf->bytes;
		napi_consume_skb(buf->skb, budget);
		buf->skb = NULL;
	}
	WRITE_ONCE(tx->ci, ci);

	u64_stats_update_begin(&q->tx_stats.sync);
	u64_stats_add(&q->tx_stats.packets, packets);
	u64_stats_add(&q->tx_stats.bytes, bytes);
	u64_stats_update_end(&q->tx_stats.sync);

	__netif_txq_completed_wake(nq, skbs, len, qhca_tx_room(tx),
				   QHCA_TX_WAKE, !READ_ONCE(q->tx_open));
}

static void qhca_tx_set_open(struct qhca_queue *q, bool open)
{
	struct netdev_queue *nq = netdev_get_tx_queue(q->eth->netdev, q->index);

	__netif_tx_lock_bh(nq);
	WRITE_ONCE(q->tx_open, open);
	if (open)
		netif_tx_wake_queue(nq);
	else
		netif_tx_stop_queue(nq);
	__netif_tx_unlock_bh(nq);
}

/**
 * qhca_tx_open - allow the stack to send
 * @q: queue, which exists in the device
 */
void qhca_tx_open(struct qhca_queue *q)
{
	qhca_tx_set_open(q, true);
}

/**
 * qhca_tx_close - keep the stack from sending
 * @q: queue
 *
 * When this returns, qhca_start_xmit() does not use the ring until
 * qhca_tx_open(), even if the queue is woken.  NAPI may still reclaim.
 */
void qhca_tx_close(struct qhca_queue *q)
{
	qhca_tx_set_open(q, false);
}

int qhca_tx_alloc(struct qhca_queue *q)
{
	struct qhca_tx_ring *tx = &q->tx;
	u32 depth = 1u << q->eth->log_tx;

	memset(tx, 0, sizeof(*tx));
	tx->mask = depth - 1;
	tx->buf = kvcalloc(depth, sizeof(*tx->buf), GFP_KERNEL);
	if (!tx->buf)
		return -ENOMEM;
	tx->desc = dma_alloc_coherent(qhca_device(q->eth->core),
				      depth * sizeof(*tx->desc), &tx->dma,
				      GFP_KERNEL);
	if (!tx->desc) {
		kvfree(tx->buf);
		return -ENOMEM;
	}
	netdev_tx_reset_queue(netdev_get_tx_queue(q->eth->netdev, q->index));
	return 0;
}

/* Called when the device and NAPI do not use the ring, and it is closed. */
void qhca_tx_free(struct qhca_queue *q)
{
	struct qhca_tx_ring *tx = &q->tx;
	u32 ci;

	for (ci = tx->ci; ci != tx->pi; ci++) {
		struct qhca_tx_buf *buf = &tx->buf[ci & tx->mask];

		qhca_tx_unmap(q, buf);
		dev_kfree_skb_any(buf->skb);
	}
	netdev_tx_reset_queue(netdev_get_tx_queue(q->eth->netdev, q->index));
	dma_free_coherent(qhca_device(q->eth->core),
			  (tx->mask + 1) * sizeof(*tx->desc), tx->desc,
			  tx->dma);
	kvfree(tx->buf);
}
