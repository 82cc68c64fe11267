// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ethernet queues in the image.
 */
#include "queue/queue_image.h"

#include "hca.h"

HCA_IMAGE_COVERS(struct hca_ethq, 80);
HCA_IMAGE_COVERS(struct hca_eth, 6456);
HCA_IMAGE_COVERS(struct hca_rss, 4 + QHCA_RSS_KEY_LEN + QHCA_RSS_MAX_ENTRIES +
		 HCA_RSS_NIBBLES * 64);

static void flags(struct hca_image *im, const struct hca_fn *fn,
		  struct hca_ethq *q)
{
	hca_image_bool(im, "armed", &q->armed);
	hca_image_bool(im, "stopped", &q->stopped);
	hca_image_bool(im, "partial", &q->partial);
	hca_image_bool(im, "skip", &q->skip);
	hca_image_bool(im, "waits", &q->waits);
	hca_image_check(im, "waits", !q->waits || fn->s2.eth.waits ||
			hca_is_dead(fn));
}

static void queue(struct hca_image *im, const struct hca_fn *fn,
		  struct hca_ethq *q)
{
	flags(im, fn, q);
	hca_image_u8(im, "log_tx", &q->log_tx);
	hca_image_u8(im, "log_rx", &q->log_rx);
	hca_image_u16(im, "vector", &q->vector);
	hca_image_u64(im, "tx_base", &q->tx_base);
	hca_image_u64(im, "rx_base", &q->rx_base);
	hca_image_u64(im, "rxc_base", &q->rxc_base);
	hca_image_u64(im, "rec_base", &q->rec_base);
	hca_image_check(im, "ring", hca_ethq_fault(fn, q) < 0);
	hca_image_u32(im, "tx_pi", &q->tx_pi);
	hca_image_u32(im, "tx_ci", &q->tx_ci);
	hca_image_u32(im, "tx_ci_told", &q->tx_ci_told);
	hca_image_u32(im, "rx_pi", &q->rx_pi);
	hca_image_u32(im, "rx_ci", &q->rx_ci);
	hca_image_u32(im, "rx_looked", &q->rx_looked);
	if (hca_image_failed(im))
		return;
	hca_image_check(im, "tx_pi", q->tx_pi - q->tx_ci <= 1u << q->log_tx);
	hca_image_check(im, "rx_pi", q->rx_pi - q->rx_ci <= 1u << q->log_rx);
	if (im->version < 2)
		return;
	hca_image_u32(im, "tx_sent", &q->tx_sent);
	hca_image_check(im, "tx_sent", !q->tx_sent ||
			(fn->features & QHCA_FEAT_ETH_TSO &&
			 q->tx_sent < QHCA_MAX_TSO_FRAME &&
			 q->tx_ci != q->tx_pi));
}

void hca_eth_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_eth *eth = &fn->eth;
	uint32_t num = im->version < 2 ? 1 : HCA_NUM_ETH_QUEUES;

	if (im->version >= 2)
		hca_image_count(im, "number of queues", &num,
				HCA_NUM_ETH_QUEUES);
	for (uint32_t i = 0; i < num; i++) {
		hca_image_bool(im, "live", &eth->queue[i].live);
		hca_image_check(im, "live", !eth->queue[i].live ||
				i < hca_eth_num_queues(fn));
		if (eth->queue[i].live)
			queue(im, fn, &eth->queue[i]);
		if (im->loading && !hca_image_failed(im))
			hca_ethq_update(fn, &eth->queue[i]);
	}
	hca_image_count(im, "number of addresses", &eth->num_mcast,
			QHCA_MAX_ETH_MCAST);
	for (uint32_t i = 0; i < eth->num_mcast; i++) {
		hca_image_bytes(im, "address", eth->mcast[i],
				sizeof(eth->mcast[i]));
		hca_image_check(im, "address", eth->mcast[i][0] & 1);
	}
}

void hca_rss_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_rss *rss = &fn->eth.rss;

	hca_image_u16(im, "number of entries", &rss->num);
	hca_image_u16(im, "types", &rss->types);
	hca_image_bytes(im, "key", rss->key, sizeof(rss->key));
	hca_image_bytes(im, "entries", rss->queue, sizeof(rss->queue));
	hca_image_check(im, "entries",
			hca_rss_valid(rss, hca_eth_num_queues(fn)));
	if (im->loading && !hca_image_failed(im))
		hca_rss_prepare(rss);
}
