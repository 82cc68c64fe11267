// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Ethernet queues: their commands, and what both directions use.
 */
#include "hca.h"

void hca_eth_reset(struct hca_fn *fn)
{
	memset(&fn->eth, 0, sizeof(fn->eth));
}

unsigned int hca_eth_num_queues(const struct hca_fn *fn)
{
	return fn->features & QHCA_FEAT_ETH_RSS ? HCA_NUM_ETH_QUEUES : 1;
}

void hca_ethq_update(struct hca_fn *fn, struct hca_ethq *q)
{
	struct hca_eth *eth = &fn->eth;
	uint32_t bit = 1u << (q - eth->queue);

	if (q->live && !q->stopped && !q->partial && !q->waits &&
	    q->tx_ci != q->tx_pi)
		eth->posted |= bit;
	else
		eth->posted &= ~bit;
	for (eth->first = 0; eth->first < HCA_NUM_ETH_QUEUES; eth->first++)
		if (eth->queue[eth->first].live)
			return;
	eth->first = 0;
}

struct hca_ethq *hca_ethq_get(struct hca_fn *fn, uint64_t number)
{
	if (number >= HCA_NUM_ETH_QUEUES || !fn->eth.queue[number].live)
		return NULL;
	return &fn->eth.queue[number];
}

void hca_ethq_interrupt(struct hca_fn *fn, struct hca_ethq *q)
{
	q->armed = false;
	hca_count(fn, QHCA_CNT_interrupts);
	fn->hca->ops.raise_irq(fn->hca->host, fn->cfg.gvmi, q->vector);
}

bool hca_ethq_ask(struct hca_fn *fn, enum qhca_fault_cause cause)
{
	struct hca_s2_ask *eth = &fn->s2.eth;

	if (eth->waits)
		return true;		/* in its turn */
	if (eth->failed && eth->addr == fn->mem.fault.bus) {
		eth->failed = false;
		return false;
	}
	hca_count(fn, QHCA_CNT_page_faults2);
	hca_count(fn, cause == QHCA_FAULT_ETH_TX ? QHCA_CNT_fault_eth_tx :
						   QHCA_CNT_fault_eth_rx);
	hca_s2_ask(fn, eth, cause, fn->mem.fault.bus, fn->mem.fault.bus_len,
		   fn->mem.fault.write);
	return true;
}

enum qhca_cmd_status hca_cmd_set_mcast(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx)
{
	const struct qhca_mcast_list *in = (const void *)ctx->in;
	uint32_t count = get_le32(&in->count), i;

	if (count > QHCA_MAX_ETH_MCAST)
		return hca_cmd_bad(ctx, offsetof(struct qhca_mcast_list, count));
	for (i = 0; i < count; i++)
		if (!(in->entry[i].mac[0] & 1))
			return hca_cmd_bad(ctx, offsetof(struct qhca_mcast_list,
							 entry[i]));
	for (i = 0; i < count; i++)
		memcpy(fn->eth.mcast[i], in->entry[i].mac, 6);
	fn->eth.num_mcast = count;
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_set_rss(struct hca_fn *fn,
				     struct hca_cmd_ctx *ctx)
{
	const struct qhca_rss_config *in = (const void *)ctx->in;
	struct hca_rss rss = {
		.num = get_le16(&in->num_entries), .types = get_le16(&in->types),
	};

	memcpy(rss.key, in->key, sizeof(rss.key));
	memcpy(rss.queue, in->queue, sizeof(rss.queue));
	if (!hca_rss_valid(&rss, hca_eth_num_queues(fn)))
		return hca_cmd_bad(ctx, 0);
	hca_rss_prepare(&rss);
	fn->eth.rss = rss;
	return QHCA_CMD_OK;
}

int hca_ethq_fault(const struct hca_fn *fn, const struct hca_ethq *q)
{
	if (q->tx_base & 63)
		return offsetof(struct qhca_ethq_config, tx_base);
	if (q->rx_base & 63)
		return offsetof(struct qhca_ethq_config, rx_base);
	if (q->rxc_base & 63)
		return offsetof(struct qhca_ethq_config, rxc_base);
	if (q->rec_base & 63)
		return offsetof(struct qhca_ethq_config, rec_base);
	if (q->log_tx > HCA_LIMIT_LOG_ETH_RING)
		return offsetof(struct qhca_ethq_config, log_tx);
	if (q->log_rx > HCA_LIMIT_LOG_ETH_RING)
		return offsetof(struct qhca_ethq_config, log_rx);
	if (q->vector >= fn->cfg.num_vectors)
		return offsetof(struct qhca_ethq_config, vector);
	return -1;
}

enum qhca_cmd_status hca_cmd_create_ethq(struct hca_fn *fn,
					 struct hca_cmd_ctx *ctx)
{
	const struct qhca_ethq_config *in = (const void *)ctx->in;
	struct hca_ethq q = {
		.live = true, .log_tx = in->log_tx, .log_rx = in->log_rx,
		.vector = get_le16(&in->vector),
		.tx_base = get_le64(&in->tx_base),
		.rx_base = get_le64(&in->rx_base),
		.rxc_base = get_le64(&in->rxc_base),
		.rec_base = get_le64(&in->rec_base),
	};
	int bad;

	bad = hca_ethq_fault(fn, &q);
	if (bad >= 0)
		return hca_cmd_bad(ctx, (size_t)bad);
	if (fn->eth.queue[ctx->index].live)
		return QHCA_CMD_IN_USE;
	fn->eth.queue[ctx->index] = q;
	hca_ethq_update(fn, &fn->eth.queue[ctx->index]);
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_destroy_ethq(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx)
{
	struct hca_ethq *q = hca_ethq_get(fn, ctx->index);

	if (!q)
		return QHCA_CMD_BAD_STATE;
	memset(q, 0, sizeof(*q));
	hca_ethq_update(fn, q);
	return QHCA_CMD_OK;
}
