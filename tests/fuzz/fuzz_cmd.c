// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registers, commands, doorbells: a hostile guest kernel.  It may put its device into
 * the fatal state and make the device write anywhere in the guest's memory; it must not
 * make the engine crash, hang, allocate without bound, or stay dead after a reset.
 *
 * An input is a script: where to start from (a device just reset, or one that
 * a driver has brought up), then commands with mailboxes that are mostly good,
 * registers, doorbells, frames, memory that changes or fails, time.
 */
#include <stdlib.h>

#include "alloc.h"
#include "cmd_script.h"

/* ------------------------------------------------------------------------
 * Commands
 */
static uint32_t param_of(struct script *s, const struct template *t,
			 uint32_t in_len)
{
	switch (t->opcode) {
	case QHCA_CMD_MAP_CHUNKS:
		return in_below(s->in, QHCA_NUM_TABLES) | in_len / 8 << 8;
	case QHCA_CMD_UNMAP_CHUNKS:
		return in_below(s->in, QHCA_NUM_TABLES) |
		       (1 + in_below(s->in, 8)) << 8;
	default:
		return in_below(s->in, 4);
	}
}

/* Makes something in the slot or mailbox invalid. */
static void spoil(struct script *s, uint8_t *to, uint32_t len)
{
	uint8_t how = in_u8(s->in);

	if (how < 160 || !len)
		return;
	for (unsigned int n = 1 + how % 4; n > 0; n--) {
		uint32_t at = in_below(s->in, len);
		uint64_t v = in_number(s->in);

		for (unsigned int i = 0; i < (how < 200 ? 1 : 4) &&
		     at + i < len; i++)
			to[at + i] = (uint8_t)(v >> 8 * i);
	}
}

static void command(struct script *s)
{
	const struct template *t = pick_template(s);
	uint32_t number = in_below(s->in, HCA_NUM_CMD_SLOTS), in_len = 0;
	struct qhca_cmd_slot *slot = md_ptr(s->md, s->slots + 64 * number);
	uint8_t *mailbox = md_ptr(s->md, s->mailbox);

	memset(slot, 0, sizeof(*slot));
	memset(mailbox, 0, QHCA_MAILBOX_SIZE);
	if (t->fill)
		in_len = t->fill(s, mailbox);
	put_le16(&slot->opcode, t->opcode);
	put_le16(&slot->token, (uint16_t)number);
	put_le32(&slot->flags, in_u8(s->in) & QHCA_CMD_F_EVENT);
	put_le32(&slot->index, num_of(s));
	put_le32(&slot->param, param_of(s, t, in_len));
	put_le64(&slot->in_addr, s->mailbox);
	put_le64(&slot->out_addr, s->out);
	put_le32(&slot->in_len, in_len);
	put_le32(&slot->out_len, t->out_len);
	put_le32(&slot->status, QHCA_CMD_OWN);
	spoil(s, mailbox, in_len);
	spoil(s, (uint8_t *)slot, sizeof(*slot));
	guard_reg_write(s->g, QHCA_REG_CMDQ_DOORBELL, 1u << number);
	if (!in_chance(s->in, 16))
		guard_run(s->g, 1 + in_below(s->in, 4));
}

/* ------------------------------------------------------------------------
 * Queue pairs at work, so that commands and doorbells meet some
 */
#define WORK_KEY	(QHCA_FIRST_KEY_INDEX << 8)

static void plain(struct script *s, uint16_t opcode, uint32_t index,
		  uint32_t in_len)
{
	struct qhca_cmd_slot *slot = md_ptr(s->md, s->slots);

	memset(slot, 0, sizeof(*slot));
	put_le16(&slot->opcode, opcode);
	put_le32(&slot->index, index);
	put_le64(&slot->in_addr, s->mailbox);
	put_le32(&slot->in_len, in_len);
	put_le32(&slot->status, QHCA_CMD_OWN);
	guard_reg_write(s->g, QHCA_REG_CMDQ_DOORBELL, 1);
	guard_run(s->g, 4);
}

static void *plain_mailbox(struct script *s)
{
	return memset(md_ptr(s->md, s->mailbox), 0, QHCA_MAILBOX_SIZE);
}

/* Writes a key for all of memory. */
static void give_key(struct script *s)
{
	struct qhca_pte pte = { 0 };

	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_DMA << 4);
	put_le32(&pte.access, QHCA_ACCESS_MASK);
	put_le64(&pte.length, UINT64_MAX);
	if (s->md->pt)
		md_pte_write(s->md, WORK_KEY >> 8, &pte);
}

static void modify_to(struct script *s, uint32_t qpn, uint8_t state,
		      uint32_t mask)
{
	struct qhca_modify_qp *m = plain_mailbox(s);

	put_le32(&m->attr_mask, QHCA_QP_ATTR_STATE | mask);
	m->ctx.state = state;
	m->ctx.path_mtu = QHCA_MTU_256;
	m->ctx.timeout = 8;
	m->ctx.retry_cnt = 1;
	m->ctx.rnr_retry = 1;
	m->ctx.max_rd_atomic = m->ctx.max_dest_rd_atomic = 2;
	put_le32(&m->ctx.dest_qpn, qpn);
	put_le32(&m->ctx.access, QHCA_ACCESS_MASK);
	md_av(s->md, &m->ctx.av, 1, false);
	plain(s, QHCA_CMD_MODIFY_QP, qpn, sizeof(*m));
}

/* Brings a QP from RESET to RTS, connected to itself, as far as the device allows. */
static void bring_up(struct script *s)
{
	static const uint32_t rtr = QHCA_QP_ATTR_AV | QHCA_QP_ATTR_PATH_MTU |
				    QHCA_QP_ATTR_DEST_QPN | QHCA_QP_ATTR_RQ_PSN;
	uint32_t qpn = 2 + in_below(s->in, 4);
	uint8_t type = in_below(s->in, 3);
	bool dgram = type == QHCA_QPT_UD, rc = type == QHCA_QPT_RC;
	struct qhca_cqc_sw *cq = plain_mailbox(s);
	struct qhca_qpc_sw *qp;

	give_key(s);
	put_le64(&cq->buf.base, s->buf[4].root);
	put_le32(&cq->buf.length, BUF_LEN);
	put_le32(&cq->rec_offset, REC_OFFSET);
	cq->log_depth = 6;
	plain(s, QHCA_CMD_CREATE_CQ, 0, sizeof(*cq));
	qp = plain_mailbox(s);
	fill_qp(s, (uint8_t *)qp);
	qp->type = type;
	qp->send_cqn = qp->recv_cqn = 0;
	put_le64(&qp->buf.base, s->buf[qpn].root);
	qp->buf.levels = s->buf[qpn].levels;
	plain(s, QHCA_CMD_CREATE_QP, qpn, sizeof(*qp));
	modify_to(s, qpn, QHCA_QPS_INIT, QHCA_QP_ATTR_PKEY_INDEX |
		  (dgram ? QHCA_QP_ATTR_QKEY : QHCA_QP_ATTR_ACCESS));
	modify_to(s, qpn, QHCA_QPS_RTR, dgram ? 0 : rc ?
		  rtr | QHCA_QP_ATTR_MAX_DEST_RD_ATOMIC |
		  QHCA_QP_ATTR_MIN_RNR_TIMER : rtr);
	modify_to(s, qpn, QHCA_QPS_RTS, QHCA_QP_ATTR_SQ_PSN | (rc ?
		  QHCA_QP_ATTR_TIMEOUT | QHCA_QP_ATTR_RETRY_CNT |
		  QHCA_QP_ATTR_RNR_RETRY | QHCA_QP_ATTR_MAX_RD_ATOMIC : 0));
}

/* Posts a work request and a receive for it, in the queues that bring_up() makes. */
static void post(struct script *s)
{
	static const uint8_t opcode[] = {
		QHCA_WQE_SEND, QHCA_WQE_WRITE, QHCA_WQE_READ, QHCA_WQE_FETCH_ADD,
		QHCA_WQE_NOP, QHCA_WQE_LOCAL_INV, QHCA_WQE_WRITE_IMM,
		QHCA_WQE_REG_MR,
	};
	uint32_t qpn = 2 + in_below(s->in, 4), i = in_below(s->in, 8), posted;
	uint8_t raw[128] = { 0 }, flags = in_u8(s->in), seg[16] = { 0 };
	struct qhca_sq_wqe *w = (void *)raw;
	struct md_buf *b = &s->buf[qpn];

	w->opcode = opcode[flags >> 5];
	w->flags = flags & 7;
	w->num_sge = 1;
	put_le64(&w->rdma.raddr, s->chunks + 64 * i);
	put_le32(&w->rdma.rkey, WORK_KEY);
	if (qpn & 1) {			/* some are datagrams */
		put_le32(&w->ud.dest_qpn, qpn);
		md_av(s->md, &w->ud.av, 1, false);
	}
	put_le64(seg, s->chunks);
	put_le32(seg + 8, w->opcode == QHCA_WQE_FETCH_ADD ? 8 :
		 in_below(s->in, 1000));
	put_le32(seg + 12, WORK_KEY);
	memcpy(raw + 64, seg, 16);
	md_buf_write(s->md, b, 128 * i, raw, sizeof(raw));
	put_le32(seg + 8, 4000);
	put_le16(raw + 8, 1);
	memcpy(raw + 16, seg, 16);
	md_buf_write(s->md, b, 4096 + 64 * i, raw, 64);
	posted = 1 + in_below(s->in, 8);
	md_buf_put32(s->md, b, REC_OFFSET, posted);
	md_buf_put32(s->md, b, REC_OFFSET + 4, posted);
	guard_doorbell(s->g, 0, QHCA_DB_SQ, (uint64_t)posted << 32 | qpn);
}

/* ------------------------------------------------------------------------
 * Everything else
 */
static void registers(struct script *s)
{
	static const uint32_t offset[] = {
		QHCA_REG_CONTROL, QHCA_REG_CMDQ_DOORBELL,
		QHCA_REG_CMDQ_LOG_SLOTS, QHCA_REG_CMDQ_BASE_LO,
		QHCA_REG_CMDQ_BASE_HI, QHCA_REG_STATUS, QHCA_REG_CLOCK_LO,
	};
	uint8_t how = in_u8(s->in);

	if (how < 32)
		guard_reg_read(s->g, in_below(s->in, QHCA_REG_END + 8));
	else if (how < 64)
		guard_reg_write(s->g, (uint32_t)in_number(s->in),
				(uint32_t)in_number(s->in));
	else if (how < 96)
		guard_reg_write(s->g, QHCA_REG_CMDQ_DOORBELL,
				(uint32_t)in_word(s->in, 4));
	else
		guard_reg_write(s->g, IN_ONE_OF(s->in, offset),
				(uint32_t)in_number(s->in));
}

static void doorbell(struct script *s)
{
	uint32_t page = in_chance(s->in, 16) ? (uint32_t)in_number(s->in) :
					       in_below(s->in, 2);
	uint32_t offset = in_chance(s->in, 8) ? (uint32_t)in_number(s->in) :
						8 * in_below(s->in, 5);
	uint64_t value = num_of(s);
	uint8_t how = in_u8(s->in);

	if (how & 1)
		value |= QHCA_DB_CQ_SOLICITED;
	value |= (how < 240 ? how >> 2 : in_number(s->in)) << 32;
	guard_doorbell(s->g, page, offset, value);
}

/* Makes a frame that is to be segmented of the ring: TCP over IPv4 or IPv6. */
static void segmented(struct script *s, struct qhca_eth_txd *txd)
{
	uint64_t at = s->buf[2].root + 8192 + 256;
	uint8_t *hdr = md_ptr(s->md, at), how = in_u8(s->in);
	uint16_t l4 = how & 1 ? 54 : 34;

	memset(hdr, 0, 80);
	put_be16(hdr + 12, how & 1 ? 0x86dd : 0x0800);
	hdr[14] = how & 1 ? 0x60 : 0x45;
	hdr[how & 1 ? 20 : 23] = 6;
	hdr[l4 + 12] = 0x50;
	put_le64(&txd->addr, at);
	put_le32(&txd->len, l4 + 20u);
	put_le16(&txd->flags, QHCA_TXD_TSO | QHCA_TXD_CSUM |
			      (how & 2 ? QHCA_TXD_VLAN : 0));
	put_le16(&txd->csum_start, l4);
	put_le16(&txd->csum_offset, 16);
	put_le16(&txd->mss, (uint16_t)(how & 4 ? 8 + in_u8(s->in) : 1000));
	put_le16(&txd->hdr_len, (uint16_t)(l4 + 20));
}

/* Posts work to the Ethernet queue that fill_ethq() describes. */
static void ethernet(struct script *s)
{
	struct qhca_eth_txd *txd = md_ptr(s->md, s->buf[0].root);
	struct qhca_eth_rxd *rxd = md_ptr(s->md, s->buf[0].root + 4096);
	struct qhca_eth_record *rec = md_ptr(s->md, s->buf[2].root + 8192);
	uint8_t how = in_u8(s->in), n = in_below(s->in, 24);

	for (unsigned int i = 0; i < 128; i++) {
		bool last = i % 24 == n;

		put_le64(&txd[i].addr, s->chunks + 16 * i);
		put_le32(&txd[i].len, how & 0x40 ? 2 : 64u + i);
		put_le16(&txd[i].flags, (last ? QHCA_TXD_EOP : 0) |
					(how & 15) * 2u);
		put_le16(&txd[i].csum_start, how & 0x20 ? 14 : i);
		put_le16(&txd[i].csum_offset, how & 0x20 ? 16 : 16 * i);
		put_le64(&rxd[i].addr, s->chunks + 2048 * (i % 64));
		put_le32(&rxd[i].len, how & 0x80 ? 100 : 2048);
	}
	if (how & 0x10)
		segmented(s, txd);
	spoil(s, (uint8_t *)txd, 256);
	spoil(s, (uint8_t *)rxd, 256);
	put_le32(&rec->rx_pi, get_le32(&rec->rx_pi) + in_below(s->in, 9));
	n = how & 0x20 ? 3 : 0;
	guard_doorbell(s->g, 0, QHCA_DB_ETH_TX,
		       n | (uint64_t)(s->g->hca->pf.eth.queue[n].tx_ci +
				      in_below(s->in, 40)) << 32);
}

static void frame(struct script *s)
{
	static const uint32_t lens[] = { 0, 13, 14, 17, 18, 60, 64, 1518, 9018,
					 QHCA_MAX_FRAME, QHCA_MAX_FRAME + 1 };
	static uint8_t data[QHCA_MAX_FRAME + 1];
	uint8_t how = in_u8(s->in), n = in_below(s->in, 64);
	uint32_t len = IN_ONE_OF(s->in, lens);

	memset(data, how, sizeof(data));
	memcpy(data, s->md->mac, 6);
	if (how & 1)
		memset(data, how & 2 ? 0xff : 0x01, 6);
	put_be16(data + 12, how & 4 ? 0x86dd : how & 8 ? 0x8100 : 0x0800);
	data[14] = how & 4 ? 0x60 : 0x45;
	put_be16(data + 16, len > 14 ? (uint16_t)(len - 14) : 0);
	in_fill(s->in, data + 14, n < 40 ? n : 0);
	guard_rx(s->g, data, len);
}

/* Chooses any byte of memory, mostly one of the queues. */
static uint64_t pick_byte(struct script *s)
{
	uint8_t how = in_u8(s->in);
	const struct md_buf *b = &s->buf[how % NUM_BUFS];

	if (how < 128)
		return b->page[in_below(s->in, b->num_pages)] +
		       in_below(s->in, 4096);
	if (how < 160)			/* records */
		return b->page[REC_OFFSET / 4096] + REC_OFFSET % 4096 +
		       in_below(s->in, 128);
	if (how < 192)
		return s->slots + in_below(s->in, 2048);
	if (how < 224)
		return s->mailbox + in_below(s->in, 512);
	if (how < 240)
		return s->chunks + in_below(s->in, CHUNK_ROOM);
	return in_below(s->in, GUARD_MEM - 8);
}

static void scribble(struct script *s)
{
	uint64_t at = pick_byte(s), v = in_number(s->in);

	for (unsigned int i = 0; i < 8 && at + i < GUARD_MEM; i++)
		s->md->host.ram[at + i] = (uint8_t)(v >> 8 * i);
}

static void change_later(struct script *s)
{
	unsigned int i = in_below(s->in, GUARD_CHANGES);

	s->g->change[i].addr = pick_byte(s);
	s->g->change[i].value = in_u8(s->in);
}

static void inject(struct script *s)
{
	struct qhca_inject_config cfg = {
		.delay_ns = in_below(s->in, 100000), .on_rx = true,
		.on_tx = true, .seed = 1,
	};
	char err[100];

	for (int k = 0; k < QHCA_NUM_INJECT_KINDS; k++) {
		cfg.rule[k].ppm = in_u8(s->in) & 3 ? 0 : 300000;
		cfg.rule[k].nth = in_u8(s->in) & 7;
	}
	if (!qhca_inject_set(s->g->hca, &cfg, err, sizeof(err)))
		guard_fail("%s", err);
}

static void pass_time(struct script *s)
{
	static const uint32_t step[] = { 0, 100, 30000, 200000, 5000000,
					 1000000000 };

	s->md->host.now += IN_ONE_OF(s->in, step);
	guard_run(s->g, 1 + in_below(s->in, 64));
}

static void rarely(struct script *s)
{
	switch (in_u8(s->in) & 15) {
	case 0:
	case 1:
		s->g->fail_in = 1 + in_below(s->in, 64);
		s->g->fail_on = in_chance(s->in, 16);
		break;
	case 2:
		alloc_fail_in(1 + in_below(s->in, 16));
		break;
	case 3:
		qhca_inject_fatal(s->g->hca, 0);
		break;
	case 4:
	case 5:
		guard_reg_write(s->g, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
		break;
	case 6:
		inject(s);
		break;
	case 7:
	case 8:
		qhca_set_link(s->g->hca, in_chance(s->in, 128), s->md->host.now);
		break;
	case 9:
	case 10:
		s->g->blocked = !s->g->blocked;
		if (!s->g->blocked)
			guard_unblock(s->g);
		break;
	case 11:
		s->g->fail_in = 0;
		break;
	case 12:
		s->g->reset_in = 1 + in_below(s->in, 64);
		break;
	default:
		guard_observe(s->g);
		break;
	}
}

static void step(struct script *s)
{
	uint8_t op = in_u8(s->in);

	if (op < 104)
		command(s);
	else if (op < 110)
		bring_up(s);
	else if (op < 128)
		post(s);
	else if (op < 140)
		registers(s);
	else if (op < 172)
		doorbell(s);
	else if (op < 182)
		ethernet(s);
	else if (op < 194)
		frame(s);
	else if (op < 208)
		scribble(s);
	else if (op < 216)
		change_later(s);
	else if (op < 242)
		pass_time(s);
	else
		rarely(s);
}

/* ------------------------------------------------------------------------
 * Where to start
 */
static void enable(struct script *s)
{
	guard_disable(s->g);
	guard_reg_write(s->g, QHCA_REG_CMDQ_LOG_SLOTS, QHCA_MAX_LOG_CMD_SLOTS);
	guard_reg_write(s->g, QHCA_REG_CMDQ_BASE_LO, (uint32_t)s->slots);
	guard_reg_write(s->g, QHCA_REG_CMDQ_BASE_HI, 0);
	guard_reg_write(s->g, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
}

static void begin(struct script *s)
{
	struct md_init init = { .log_pt = 8, .log_qp = 5, .log_cq = 4,
				.log_srq = 3 };
	uint8_t how = in_u8(s->in);

	s->md->host.next = MD_PAGE;
	if (how & 1) {
		if (how & 2)
			for (int c = 0; c < QHCA_NUM_CACHES; c++)
				init.cache[c] = (struct qhca_geometry){ 1, 1 };
		md_start(s->md, &init);
	}
	s->slots = md_alloc(s->md, MD_PAGE, MD_PAGE);
	s->mailbox = md_alloc(s->md, QHCA_MAILBOX_SIZE, MD_PAGE);
	s->out = md_alloc(s->md, QHCA_MAILBOX_SIZE, MD_PAGE);
	s->chunks = md_alloc(s->md, CHUNK_ROOM, MD_PAGE);
	for (unsigned int i = 0; i < NUM_BUFS; i++) {
		s->md->init.scatter = i & 1;
		md_buf_alloc(s->md, &s->buf[i], BUF_LEN);
	}
	if (how & 5)
		enable(s);
}

uint64_t fuzz_one(const uint8_t *data, size_t size)
{
	struct in in = { data, data + size };
	struct script s = { .g = guard_take(1), .in = &in };
	uint64_t digest;

	s.md = s.g->md;
	begin(&s);
	for (int i = 0; i < MAX_OPS && in_more(&in); i++)
		step(&s);
	alloc_fail_in(0);
	guard_check_alive(s.g);
	digest = s.g->digest;
	guard_give(s.g);
	return digest;
}
