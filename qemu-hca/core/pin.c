// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Pinning: which memory each command gives the device, and whether it is pinned.
 *
 * The place that has been reached is in struct hca_pin_place, because a command may
 * name more than one call should look at, and waits in between.  A command names its
 * ranges in a fixed order; what its handler will refuse is passed over here.
 */
#include "pin.h"

#define PIN_SLICE	1024u		/* pages that one call looks at */

struct pinning {			/* one call */
	struct hca_fn *fn;
	struct hca_pin_place *at;
	uint32_t item;			/* number of the range being looked at */
	uint32_t looked;
};

static enum hca_pin ask(struct hca_fn *fn, uint64_t addr, uint64_t len,
			bool write)
{
	struct hca_s2_ask *pin = &fn->s2.pin;

	if (pin->failed)
		return HCA_PIN_REFUSED;
	if (!pin->waits)
		hca_count(fn, QHCA_CNT_pin_requests);
	hca_s2_ask(fn, pin, QHCA_FAULT_COMMAND, addr, len, write);
	return HCA_PIN_WAIT;
}

/* Look at the rest of [addr, addr + len), beginning where the last call stopped. */
static enum hca_pin look(struct pinning *p, uint64_t addr, uint64_t len,
			 bool write)
{
	uint64_t need = QHCA_ATE_PINNED | (write ? QHCA_ATE_WRITE : 0);
	uint64_t machine, room;

	if (len && addr + (len - 1) < addr)
		return HCA_PIN_REFUSED;
	while (p->at->done < len) {
		if (p->looked++ == PIN_SLICE)
			return HCA_PIN_AGAIN;
		switch (hca_s2_page(p->fn, addr + p->at->done, need, &machine,
				    &room)) {
		case HCA_S2_OK:
			break;
		case HCA_S2_ABSENT:
			return ask(p->fn, addr + p->at->done,
				   len - p->at->done, write);
		default:
			return HCA_PIN_REFUSED;
		}
		p->at->done += room;
	}
	return HCA_PIN_OK;
}

/* The next range; those before the place that has been reached are passed over. */
static enum hca_pin range(struct pinning *p, uint64_t addr, uint64_t len,
			  bool write)
{
	enum hca_pin pin;

	if (p->item++ < p->at->item)
		return HCA_PIN_OK;
	pin = look(p, addr, len, write);
	if (pin == HCA_PIN_OK) {
		p->at->item++;
		p->at->done = 0;
	}
	return pin;
}

/*
 * The next page of a queue's buffer, with the nodes that lead to it.  A page that has
 * no translation of stage 1 is the queue's own problem, as without stage 2.
 */
static enum hca_pin buffer_page(struct pinning *p, const struct hca_qbuf *qb,
				uint32_t page)
{
	struct hca_at_root root = {
		.base = qb->base, .page_shift = qb->page_shift,
		.levels = qb->levels, .may_fault = true,
		.need = QHCA_ATE_PINNED,
	};
	uint64_t size = 1ull << qb->page_shift, entry;

	switch (hca_at_walk(p->fn, &root, page * size, &entry, NULL)) {
	case HCA_WALK_OK:
		return range(p, entry & QHCA_ATE_ADDR, size,
			     entry & QHCA_ATE_WRITE);
	case HCA_WALK_STAGE2:
		return ask(p->fn, p->fn->mem.fault.bus,
			   p->fn->mem.fault.bus_len, false);
	default:
		return range(p, 0, 0, false);
	}
}

static enum hca_pin buffer(struct pinning *p, const struct qhca_buf *image)
{
	enum hca_pin pin = HCA_PIN_OK;
	struct hca_qbuf qb;
	uint64_t pages;

	hca_qbuf_decode(&qb, image);
	if (!hca_qbuf_valid(&qb))
		return HCA_PIN_OK;
	if (qb.levels == 0)
		return range(p, qb.base, qb.length, true);
	pages = (qb.length - 1ull) >> qb.page_shift;
	for (uint64_t i = p->at->item; i <= pages && pin == HCA_PIN_OK; i++) {
		if (p->looked++ >= PIN_SLICE)
			return HCA_PIN_AGAIN;
		p->item = (uint32_t)i;
		pin = buffer_page(p, &qb, (uint32_t)i);
	}
	return pin;
}

static enum hca_pin chunks(struct pinning *p, const struct hca_cmd_ctx *ctx)
{
	uint32_t table = ctx->param & 0xff, count = ctx->in_len / 8, i;
	enum hca_pin pin = HCA_PIN_OK;
	uint64_t size;

	if (table >= QHCA_NUM_TABLES)
		return HCA_PIN_OK;
	size = 1ull << p->fn->tables.map[table].log_chunk;
	for (i = 0; i < count && pin == HCA_PIN_OK; i++)
		pin = range(p, get_le64(ctx->in + i * 8), size, true);
	return pin;
}

static enum hca_pin ethernet(struct pinning *p,
			     const struct qhca_ethq_config *in)
{
	enum hca_pin pin;

	if (in->log_tx > HCA_LIMIT_LOG_ETH_RING ||
	    in->log_rx > HCA_LIMIT_LOG_ETH_RING)
		return HCA_PIN_OK;
	pin = range(p, get_le64(&in->tx_base),
		    sizeof(struct qhca_eth_txd) << in->log_tx, true);
	if (pin == HCA_PIN_OK)
		pin = range(p, get_le64(&in->rx_base),
			    sizeof(struct qhca_eth_rxd) << in->log_rx, true);
	if (pin == HCA_PIN_OK)
		pin = range(p, get_le64(&in->rxc_base),
			    sizeof(struct qhca_eth_rxc) << in->log_rx, true);
	if (pin == HCA_PIN_OK)
		pin = range(p, get_le64(&in->rec_base),
			    sizeof(struct qhca_eth_record), true);
	return pin;
}

/* When all has been found the next look begins anew. */
static enum hca_pin end(struct pinning *p, enum hca_pin pin)
{
	if (pin == HCA_PIN_OK || pin == HCA_PIN_REFUSED) {
		*p->at = (struct hca_pin_place){ 0 };
		p->fn->s2.pin.failed = false;
	}
	return pin;
}

bool hca_pin_slots(struct hca_fn *fn)
{
	struct pinning p = { .fn = fn, .at = &fn->cmdq.pin };
	struct hca_cmdq *q = &fn->cmdq;
	enum hca_pin pin;

	if (!fn->s2.mode || q->slots_pinned)
		return true;
	pin = end(&p, range(&p, q->base,
			    sizeof(struct qhca_cmd_slot) << q->log_slots, true));
	if (pin == HCA_PIN_REFUSED)
		hca_s2_die(fn, QHCA_STAGE2_REFUSED);
	q->slots_pinned = pin == HCA_PIN_OK;
	return q->slots_pinned;
}

enum hca_pin hca_pin_mailboxes(struct hca_fn *fn, uint32_t in, uint32_t out)
{
	struct pinning p = { .fn = fn, .at = &fn->cmdq.pin };
	const struct qhca_cmd_slot *slot = &fn->cmdq.slot;
	enum hca_pin pin;

	if (!fn->s2.mode)
		return HCA_PIN_OK;
	pin = range(&p, get_le64(&slot->in_addr), in, false);
	if (pin == HCA_PIN_OK)
		pin = range(&p, get_le64(&slot->out_addr), out, true);
	return end(&p, pin);
}

enum hca_pin hca_pin_named(struct hca_fn *fn, const struct hca_cmd_ctx *ctx)
{
	struct pinning p = { .fn = fn, .at = &fn->cmdq.pin };
	const struct qhca_buf *buf = NULL;

	if (!fn->s2.mode)
		return HCA_PIN_OK;
	switch (ctx->opcode) {
	case QHCA_CMD_MAP_CHUNKS:
		return end(&p, chunks(&p, ctx));
	case QHCA_CMD_CREATE_ETHQ:
		return end(&p, ethernet(&p, (const void *)ctx->in));
	case QHCA_CMD_CREATE_EQ:
		buf = &((const struct qhca_eqc_sw *)(const void *)ctx->in)->buf;
		break;
	case QHCA_CMD_MODIFY_CQ:
		if (!(ctx->param & QHCA_CQ_ATTR_RESIZE))
			break;
		/* fall through */
	case QHCA_CMD_CREATE_CQ:
		buf = &((const struct qhca_cqc_sw *)(const void *)ctx->in)->buf;
		break;
	case QHCA_CMD_CREATE_SRQ:
	case QHCA_CMD_RESIZE_SRQ:
		buf = &((const struct qhca_srqc_sw *)(const void *)ctx->in)->buf;
		break;
	case QHCA_CMD_CREATE_QP:
		buf = &((const struct qhca_qpc_sw *)(const void *)ctx->in)->buf;
		break;
	default:
		break;
	}
	return end(&p, buf ? buffer(&p, buf) : HCA_PIN_OK);
}
