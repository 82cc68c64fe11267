// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Receiving frames.
 *
 * A frame takes one buffer, so the MTU determines the size of buffers.  They
 * are fragments of page pool pages, and become the skb's own memory.  The
 * driver copies short frames instead, so that they do not hold on to large
 * buffers.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>
#include <net/page_pool/helpers.h>

#include "netdev.h"

#define QHCA_RX_HEADROOM	(NET_SKB_PAD + NET_IP_ALIGN)
#define QHCA_RX_COPY		256

static u32 qhca_rx_posted(const struct qhca_rx_ring *rx)
{
	return rx->pi - rx->ci;
}

/* With so few buffers the ring may become empty before NAPI runs again. */
static bool qhca_rx_low(const struct qhca_rx_ring *rx)
{
	return qhca_rx_posted(rx) <= (rx->mask + 1) / 8;
}

static dma_addr_t qhca_rx_dma(const struct qhca_rx_buf *buf)
{
	return page_pool_get_dma_addr(buf->page) + buf->offset +
	       QHCA_RX_HEADROOM;
}

static int qhca_rx_post(struct qhca_queue *q)
{
	struct qhca_rx_ring *rx = &q->rx;
	struct qhca_rx_buf *buf = &rx->buf[rx->pi & rx->mask];
	struct qhca_eth_rxd *rxd = &rx->desc[rx->pi & rx->mask];

	buf->page = page_pool_dev_alloc_frag(rx->pool, &buf->offset,
					     rx->buf_size);
	if (unlikely(!buf->page))
		return -ENOMEM;
	rxd->addr = cpu_to_le64(qhca_rx_dma(buf));
	rxd->len = cpu_to_le32(rx->room);
	rx->pi++;
	return 0;
}

/* Fill the ring as far as memory is available. */
static int qhca_rx_refill(struct qhca_queue *q)
{
	struct qhca_rx_ring *rx = &q->rx;
	u32 before = rx->pi;
	int err = 0;

	while (!err && qhca_rx_posted(rx) <= rx->mask)
		err = qhca_rx_post(q);
	if (err)
		qhca_stat_add(&q->rx_stats, &q->rx_stats.stalls, 1);
	if (rx->pi != before) {
		/*
		 * The descriptors are written before the index that covers
		 * them.
		 */
		dma_wmb();
		WRITE_ONCE(q->rec->rx_pi, cpu_to_le32(rx->pi));
	}
	return err;
}

static const struct qhca_eth_rxc *qhca_rx_next(const struct qhca_rx_ring *rx)
{
	const struct qhca_eth_rxc *rxc = &rx->comp[rx->ci & rx->mask];
	u32 wanted = rx->ci & (rx->mask + 1) ? 0 : QHCA_RXC_PHASE;

	if ((le32_to_cpu(READ_ONCE(rxc->flags)) & QHCA_RXC_PHASE) != wanted)
		return NULL;
	/* The device writes the flags last, so the rest is read after them. */
	dma_rmb();
	return rxc;
}

static struct sk_buff *qhca_rx_copy(struct qhca_queue *q,
				    struct qhca_rx_buf *buf, u32 len)
{
	struct sk_buff *skb = napi_alloc_skb(&q->napi, len);

	if (likely(skb))
		skb_put_data(skb, page_address(buf->page) + buf->offset +
			     QHCA_RX_HEADROOM, len);
	page_pool_put_full_page(q->rx.pool, buf->page, true);
	return skb;
}

static struct sk_buff *qhca_rx_build(struct qhca_queue *q,
				     struct qhca_rx_buf *buf, u32 len)
{
	struct sk_buff *skb = napi_build_skb(page_address(buf->page) +
					     buf->offset, q->rx.buf_size);

	if (unlikely(!skb)) {
		page_pool_put_full_page(q->rx.pool, buf->page, true);
		return NULL;
	}
	skb_mark_for_recycle(skb);
	skb_reserve(skb, QHCA_RX_HEADROOM);
	__skb_put(skb, len);
	return skb;
}

static void qhca_rx_set_hash(struct qhca_queue *q, struct sk_buff *skb,
			     u32 flags, u32 hash)
{
	if (flags & QHCA_RXC_HASH && q->eth->netdev->features & NETIF_F_RXHASH)
		skb_set_hash(skb, hash, flags & QHCA_RXC_HASH_L4 ?
			     PKT_HASH_TYPE_L4 : PKT_HASH_TYPE_L3);
}

static void qhca_rx_deliver(struct qhca_queue *q, struct qhca_rx_buf *buf,
			    u32 len, u32 flags, u32 hash)
{
	struct qhca_ring_stats *stats = &q->rx_stats;
	bool csum = flags & QHCA_RXC_CSUM_OK &&
		    q->eth->netdev->features & NETIF_F_RXCSUM;
	struct sk_buff *skb;

	dma_sync_single_for_cpu(qhca_device(q->eth->core), qhca_rx_dma(buf), len,
				DMA_FROM_DEVICE);
	skb = len <= QHCA_RX_COPY ? qhca_rx_copy(q, buf, len) :
				    qhca_rx_build(q, buf, len);
	if (unlikely(!skb)) {
		qhca_stat_add(stats, &stats->dropped, 1);
		return;
	}
	if (csum)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	qhca_rx_set_hash(q, skb, flags, hash);
	skb_record_rx_queue(skb, q->index);
	skb->protocol = eth_type_trans(skb, q->eth->netdev);
	napi_gro_receive(&q->napi, skb);

	u64_stats_update_begin(&stats->sync);
	u64_stats_inc(&stats->packets);
	u64_stats_add(&stats->bytes, len);
	u64_stats_add(&stats->csum, csum);
	u64_stats_update_end(&stats->sync);
}

static int qhca_rx_one(struct qhca_queue *q, const struct qhca_eth_rxc *rxc)
{
	struct qhca_rx_ring *rx = &q->rx;
	struct qhca_rx_buf *buf = &rx->buf[rx->ci & rx->mask];
	/* The device can write here at any time: each field is read once. */
	u32 flags = le32_to_cpu(READ_ONCE(rxc->flags));
	u32 len = le32_to_cpu(READ_ONCE(rxc->len));
	u32 hash = le32_to_cpu(READ_ONCE(rxc->hash));
	u16 index = le16_to_cpu(READ_ONCE(rxc->index));

	/* Frames come in order, one in a buffer; else memory is overwritten. */
	if (unlikely(!qhca_rx_posted(rx) ||
		     (len > rx->room && !(flags & QHCA_RXC_TRUNC)) ||
		     index != (rx->ci & rx->mask))) {
		qhca_die(q->eth->core, "bad receive completion");
		return -EIO;
	}
	rx->ci++;
	if (unlikely(flags & QHCA_RXC_TRUNC || len < ETH_HLEN)) {
		page_pool_put_full_page(rx->pool, buf->page, true);
		qhca_stat_add(&q->rx_stats, &q->rx_stats.errors, 1);
	} else {
		qhca_rx_deliver(q, buf, len, flags, hash);
	}
	buf->page = NULL;
	return 0;
}

/*
 * Receive up to budget frames.  NAPI context.  If memory is so short that the
 * ring may become empty, this returns the whole budget in order to be called
 * again: an empty ring receives no frame that would cause an interrupt.
 */
int qhca_rx_poll(struct qhca_queue *q, int budget)
{
	struct qhca_rx_ring *rx = &q->rx;
	const struct qhca_eth_rxc *rxc;
	int done = 0;

	while (done < budget) {
		rxc = qhca_rx_next(rx);
		if (!rxc)
			break;
		if (qhca_rx_one(q, rxc))
			return 0;
		done++;
	}
	if (budget && qhca_rx_refill(q) && qhca_rx_low(rx))
		return budget;
	return done;
}

static int qhca_rx_create_pool(struct qhca_queue *q)
{
	struct qhca_rx_ring *rx = &q->rx;
	struct page_pool_params params = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.nid = NUMA_NO_NODE,
		.dev = qhca_device(q->eth->core),
		.netdev = q->eth->netdev,
		.napi = &q->napi,
		.dma_dir = DMA_FROM_DEVICE,
	};

	rx->room = q->eth->netdev->mtu + VLAN_ETH_HLEN + VLAN_HLEN;
	rx->buf_size = SKB_DATA_ALIGN(QHCA_RX_HEADROOM + rx->room) +
		       SKB_DATA_ALIGN(sizeof(struct skb_shared_info));
	params.order = get_order(rx->buf_size);
	params.max_len = PAGE_SIZE << params.order;
	params.pool_size = rx->mask + 1;
	rx->pool = page_pool_create(&params);
	return PTR_ERR_OR_ZERO(rx->pool);
}

static void qhca_rx_free_bufs(struct qhca_queue *q)
{
	struct qhca_rx_ring *rx = &q->rx;

	for (; rx->ci != rx->pi; rx->ci++)
		page_pool_put_full_page(rx->pool,
					rx->buf[rx->ci & rx->mask].page,
					false);
}

int qhca_rx_alloc(struct qhca_queue *q)
{
	struct device *dev = qhca_device(q->eth->core);
	struct qhca_rx_ring *rx = &q->rx;
	u32 depth = 1u << q->eth->log_rx;
	int err = -ENOMEM;

	memset(rx, 0, sizeof(*rx));
	rx->mask = depth - 1;
	rx->buf = kvcalloc(depth, sizeof(*rx->buf), GFP_KERNEL);
	if (!rx->buf)
		return -ENOMEM;
	rx->desc = dma_alloc_coherent(dev, depth * sizeof(*rx->desc), &rx->dma,
				      GFP_KERNEL);
	if (!rx->desc)
		goto free_buf;
	rx->comp = dma_alloc_coherent(dev, depth * sizeof(*rx->comp),
				      &rx->comp_dma, GFP_KERNEL);
	if (!rx->comp)
		goto free_desc;
	err = qhca_rx_create_pool(q);
	if (err)
		goto free_comp;
	/* If memory is short, NAPI fills the ring later. */
	err = qhca_rx_refill(q);
	if (err && qhca_rx_low(rx))
		goto free_pool;
	return 0;

free_pool:
	qhca_rx_free_bufs(q);
	page_pool_destroy(rx->pool);
free_comp:
	dma_free_coherent(dev, depth * sizeof(*rx->comp), rx->comp,
			  rx->comp_dma);
free_desc:
	dma_free_coherent(dev, depth * sizeof(*rx->desc), rx->desc, rx->dma);
free_buf:
	kvfree(rx->buf);
	return err;
}

/* Called when the device does not use the ring and NAPI is disabled. */
void qhca_rx_free(struct qhca_queue *q)
{
	struct device *dev = qhca_device(q->eth->core);
	struct qhca_rx_ring *rx = &q->rx;
	u32 depth = rx->mask + 1;

	qhca_rx_free_bufs(q);
	page_pool_destroy(rx->pool);
	dma_free_coherent(dev, depth * sizeof(*rx->comp), rx->comp,
			  rx->comp_dma);
	dma_free_coherent(dev, depth * sizeof(*rx->desc), rx->desc, rx->dma);
	kvfree(rx->buf);
}
