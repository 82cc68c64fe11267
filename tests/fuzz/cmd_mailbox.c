// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Mailboxes of commands as a driver would fill them. */
#include "cmd_script.h"

uint32_t num_of(struct script *s)
{
	return in_chance(s->in, 8) ? (uint32_t)in_number(s->in) :
				     in_below(s->in, 8);
}

static void put_buf(struct script *s, struct qhca_buf *to)
{
	const struct md_buf *b = &s->buf[in_below(s->in, NUM_BUFS)];

	put_le64(&to->base, b->root);
	put_le32(&to->length, BUF_LEN);
	to->page_shift = 12;
	to->levels = b->levels;
}

static uint32_t fill_init(struct script *s, uint8_t *to)
{
	struct qhca_init_hca *m = (void *)to;
	uint8_t how = in_u8(s->in);

	for (int t = 0; t < QHCA_NUM_TABLES; t++) {
		m->table[t].log_entries = 1 + (how + t) % 3;
		m->table[t].log_chunk = 12 + (how >> 6);
	}
	m->table[QHCA_TABLE_QP].log_entries++;
	for (int c = 0; c < QHCA_NUM_CACHES; c++) {
		put_le16(&m->cache[c].sets, how & 1);
		put_le16(&m->cache[c].blocks, how & 1);
	}
	put_le32(&m->flags, how & 2 ? in_u8(s->in) & 3 : 0);
	return sizeof(*m);
}

static uint32_t fill_chunks(struct script *s, uint8_t *to)
{
	uint32_t n = 1 + in_below(s->in, 8);

	for (uint32_t i = 0; i < n; i++)
		put_le64(to + 8 * i, s->chunks + ((uint64_t)(in_u8(s->in) % 8 +
						   i) << 15));
	return 8 * n;
}

static uint32_t fill_port(struct script *s, uint8_t *to)
{
	struct qhca_port_config *m = (void *)to;

	put_le32(&m->fields, in_u8(s->in) & 7);
	put_le32(&m->eth_mtu, 68 + in_below(s->in, 9000));
	memcpy(m->mac, s->md->mac, 6);
	m->mac[4] = in_u8(s->in);
	put_le32(&m->rx_flags, in_u8(s->in) & 7);
	return sizeof(*m);
}

static uint32_t fill_gid(struct script *s, uint8_t *to)
{
	struct qhca_gid_entry *m = (void *)to;
	uint8_t how = in_u8(s->in);
	bool v6 = how & 1;

	if (v6) {
		m->gid[0] = 0xfe;
		m->gid[1] = 0x80;
		m->gid[15] = 1;
	} else {
		memcpy(m->gid, s->md->gid, 16);
	}
	memcpy(m->smac, s->md->mac, 6);
	m->smac[4] = how >> 5;
	put_le16(&m->vlan, how & 8 ? how & 0x10 : QHCA_GID_NO_VLAN);
	put_le32(&m->flags, (how & 4 ? 0 : QHCA_GID_VALID) |
			    (v6 ? 0 : QHCA_GID_IPV4));
	return sizeof(*m);
}

static uint32_t fill_mcast(struct script *s, uint8_t *to)
{
	struct qhca_mcast_list *m = (void *)to;
	uint32_t n = in_below(s->in, QHCA_MAX_ETH_MCAST + 2);

	put_le32(&m->count, n);
	for (uint32_t i = 0; i < QHCA_MAX_ETH_MCAST; i++)
		memset(m->entry[i].mac, 1 + 2 * (int)(i % 4), 6);
	return sizeof(*m);
}

uint32_t fill_ethq(struct script *s, uint8_t *to)
{
	struct qhca_ethq_config *m = (void *)to;

	put_le64(&m->tx_base, s->buf[0].root);
	put_le64(&m->rx_base, s->buf[0].root + 4096);
	put_le64(&m->rxc_base, s->buf[2].root);
	put_le64(&m->rec_base, s->buf[2].root + 8192);
	m->log_tx = in_below(s->in, 8);
	m->log_rx = in_below(s->in, 8);
	put_le16(&m->vector, in_below(s->in, 9));
	return sizeof(*m);
}

static uint32_t fill_rss(struct script *s, uint8_t *to)
{
	struct qhca_rss_config *m = (void *)to;
	uint8_t how = in_u8(s->in);

	put_le16(&m->num_entries, (uint16_t)(1u << how % 8));
	put_le16(&m->types, how >> 2);
	memset(m->key, how, sizeof(m->key));
	for (unsigned int i = 0; i < QHCA_RSS_MAX_ENTRIES; i++)
		m->queue[i] = (uint8_t)((i + how) % 4);
	return sizeof(*m);
}

static uint32_t fill_eq(struct script *s, uint8_t *to)
{
	struct qhca_eqc_sw *m = (void *)to;

	put_buf(s, &m->buf);
	put_le32(&m->rec_offset, REC_OFFSET);
	m->log_depth = in_below(s->in, 4);
	put_le16(&m->vector, in_below(s->in, 8));
	return sizeof(*m);
}

static uint32_t fill_cq(struct script *s, uint8_t *to)
{
	struct qhca_cqc_sw *m = (void *)to;
	uint8_t how = in_u8(s->in);

	put_buf(s, &m->buf);
	put_le32(&m->rec_offset, REC_OFFSET);
	put_le32(&m->eqn, how & 3 ? 0 : in_below(s->in, 4));
	put_le32(&m->db_page, how >> 2 & 1);
	m->log_depth = how >> 5;
	put_le32(&m->threshold, how & 8 ? 0 : (1u << m->log_depth) / 2);
	put_le16(&m->moder_count, how & 16 ? 3 : 0);
	put_le16(&m->moder_usec, how & 16 ? 20 : 0);
	m->flags = how == 0xff;
	return sizeof(*m);
}

static uint32_t fill_srq(struct script *s, uint8_t *to)
{
	struct qhca_srqc_sw *m = (void *)to;

	put_buf(s, &m->buf);
	put_le32(&m->rec_offset, REC_OFFSET);
	put_le32(&m->limit, in_below(s->in, 4));
	put_le32(&m->threshold, in_below(s->in, 3));
	m->log_depth = 1 + in_below(s->in, 5);
	m->log_stride = 6;
	m->max_sge = 3;
	m->flags = in_u8(s->in) & 2;
	return sizeof(*m);
}

uint32_t fill_qp(struct script *s, uint8_t *to)
{
	struct qhca_qpc_sw *m = (void *)to;
	uint8_t how = in_u8(s->in);

	put_buf(s, &m->buf);
	put_le32(&m->rq_offset, 4096);
	put_le32(&m->rec_offset, REC_OFFSET);
	m->type = in_chance(s->in, 32) ? QHCA_QPT_RAW : how & 3;
	put_le16(&m->flags, QHCA_QP_HAS_SQ | (how & 4 ? QHCA_QP_SRQ :
					      QHCA_QP_HAS_RQ) |
		 (how & 8 ? QHCA_QP_KERNEL : 0) |
		 (how & 16 ? QHCA_QP_SIG_ALL : 0) |
		 (how & 32 ? QHCA_QP_MCAST_NO_LOOP : 0));
	m->sq_log_depth = how >> 6;
	m->sq_log_stride = 7;
	m->sq_max_sge = 4;
	put_le16(&m->max_inline, 64);
	m->rq_log_depth = how >> 6;
	m->rq_log_stride = 6;
	m->rq_max_sge = 3;
	put_le32(&m->send_cqn, in_below(s->in, 2));
	put_le32(&m->recv_cqn, in_below(s->in, 2));
	return sizeof(*m);
}

/* A step from any state but RESET in which all attributes it needs are given. */
static uint32_t fill_modify(struct script *s, uint8_t *to)
{
	static const struct {
		uint32_t mask;
		uint8_t state;
	} step[] = {
		{ 0x6, 1 }, { 0xc, 1 }, { 0x6230, 2 }, { 0x6a30, 2 }, { 0, 2 },
		{ 0x1000, 3 }, { 0x15c0, 3 }, { 0, 3 }, { 0x8000, 4 },
		{ 0, 6 }, { 0, 0 }, { 0x10000, 3 }, { 0x12, 4 },
	};
	struct qhca_modify_qp *m = (void *)to;
	uint8_t how = in_u8(s->in) % (sizeof(step) / sizeof(*step));

	put_le32(&m->attr_mask, QHCA_QP_ATTR_STATE | step[how].mask |
		 (step[how].mask == 0x6a30 ? QHCA_QP_ATTR_MIN_RNR_TIMER : 0));
	m->cur_state = in_u8(s->in) & 7;
	m->ctx.state = step[how].state;
	m->ctx.path_mtu = QHCA_MTU_256;
	m->ctx.timeout = 8;
	m->ctx.retry_cnt = m->ctx.rnr_retry = 1;
	m->ctx.max_rd_atomic = m->ctx.max_dest_rd_atomic = 1;
	put_le32(&m->ctx.dest_qpn, 2 + (in_u8(s->in) & 3));
	put_le32(&m->ctx.access, QHCA_ACCESS_MASK);
	/* The QP is connected to itself. */
	md_av(s->md, &m->ctx.av, 1, false);
	return sizeof(*m);
}

static uint32_t fill_mgid(struct script *s, uint8_t *to)
{
	to[0] = 0xff;
	to[15] = in_u8(s->in) & 7;
	return sizeof(struct qhca_mgid);
}

static uint32_t fill_flow(struct script *s, uint8_t *to)
{
	struct qhca_flow *m = (void *)to;
	uint8_t how = in_u8(s->in);

	put_le32(&m->qpn, in_below(s->in, 8));
	put_le16(&m->priority, in_u8(s->in) & 3);
	m->type = how & 3;
	m->layers = in_u8(s->in) & QHCA_FLOW_LAYERS;
	m->flags = how >> 2 & 1;
	in_fill(s->in, (uint8_t *)&m->key, 16);
	in_fill(s->in, (uint8_t *)&m->mask, how >> 4);
	return sizeof(*m);
}

static uint32_t fill_range(struct script *s, uint8_t *to)
{
	put_le64(to, in_number(s->in));
	put_le64(to + 8, in_number(s->in));
	return sizeof(struct qhca_range);
}

static uint32_t fill_pool(struct script *s, uint8_t *to)
{
	put_le64(to, s->chunks + 4096ull * in_u8(s->in));
	put_le64(to + 8, 4096ull * in_u8(s->in));
	return sizeof(struct qhca_pool_row);
}

static const struct template templates[] = {
	{ QHCA_CMD_NOP, 1, NULL, 0 },
	{ QHCA_CMD_QUERY_CAPS, 1, NULL, sizeof(struct qhca_caps) },
	{ QHCA_CMD_INIT_HCA, 4, fill_init, 0 },
	{ QHCA_CMD_TEARDOWN_HCA, 1, NULL, 0 },
	{ QHCA_CMD_MAP_CHUNKS, 6, fill_chunks, 0 },
	{ QHCA_CMD_UNMAP_CHUNKS, 2, NULL, 0 },
	{ QHCA_CMD_QUERY_COUNTERS, 2, NULL, 800 },
	{ QHCA_CMD_QUERY_PORT, 1, NULL, sizeof(struct qhca_port) },
	{ QHCA_CMD_SET_PORT, 3, fill_port, 0 },
	{ QHCA_CMD_SET_GID, 4, fill_gid, 0 },
	{ QHCA_CMD_SET_MCAST, 2, fill_mcast, 0 },
	{ QHCA_CMD_CREATE_ETHQ, 4, fill_ethq, 0 },
	{ QHCA_CMD_DESTROY_ETHQ, 1, NULL, 0 },
	{ QHCA_CMD_CREATE_EQ, 6, fill_eq, 0 },
	{ QHCA_CMD_DESTROY_EQ, 2, NULL, 0 },
	{ QHCA_CMD_QUERY_EQ, 2, NULL, sizeof(struct qhca_eqc) },
	{ QHCA_CMD_CREATE_CQ, 8, fill_cq, 0 },
	{ QHCA_CMD_DESTROY_CQ, 3, NULL, 0 },
	{ QHCA_CMD_QUERY_CQ, 2, NULL, sizeof(struct qhca_cqc) },
	{ QHCA_CMD_MODIFY_CQ, 4, fill_cq, 0 },
	{ QHCA_CMD_CREATE_SRQ, 5, fill_srq, 0 },
	{ QHCA_CMD_DESTROY_SRQ, 2, NULL, 0 },
	{ QHCA_CMD_QUERY_SRQ, 2, NULL, sizeof(struct qhca_srqc) },
	{ QHCA_CMD_MODIFY_SRQ, 2, NULL, 0 },
	{ QHCA_CMD_RESIZE_SRQ, 3, fill_srq, 0 },
	{ QHCA_CMD_CREATE_FLOW, 3, fill_flow, 0 },
	{ QHCA_CMD_DESTROY_FLOW, 2, NULL, 0 },
	{ QHCA_CMD_CREATE_QP, 12, fill_qp, 0 },
	{ QHCA_CMD_DESTROY_QP, 4, NULL, 0 },
	{ QHCA_CMD_QUERY_QP, 3, NULL, sizeof(struct qhca_query_qp) },
	{ QHCA_CMD_MODIFY_QP, 30, fill_modify, 0 },
	{ QHCA_CMD_ATTACH_MCAST, 3, fill_mgid, 0 },
	{ QHCA_CMD_DETACH_MCAST, 2, fill_mgid, 0 },
	{ QHCA_CMD_INVALIDATE_KEY, 3, NULL, 0 },
	{ QHCA_CMD_INVALIDATE_RANGE, 3, fill_range, 0 },
	{ QHCA_CMD_INVALIDATE_ALL, 2, NULL, 0 },
	{ QHCA_CMD_MAP_POOL_BLOCK, 3, fill_pool, 0 },
	{ QHCA_CMD_UNMAP_POOL_BLOCK, 2, NULL, 0 },
	{ QHCA_CMD_MAP_POOL_KEY, 3, NULL, 0 },
	{ QHCA_CMD_FAULT_RESUME, 1, NULL, 0 },
	{ QHCA_CMD_SET_CLOCK, 1, NULL, 0 },
	{ QHCA_CMD_SET_GVM, 1, NULL, 0 },
	{ QHCA_CMD_SET_QP_COUNTERS, 3, NULL, 0 },
	{ QHCA_CMD_QUERY_COUNTER_SET, 1, NULL, 800 },
	{ QHCA_CMD_SET_RSS, 2, fill_rss, 0 },
};
#define NUM_TEMPLATES	(sizeof(templates) / sizeof(*templates))

const struct template *pick_template(struct script *s)
{
	uint8_t at = in_u8(s->in);
	unsigned int i;

	for (i = 0; at >= templates[i].weight; i = (i + 1) % NUM_TEMPLATES)
		at -= templates[i].weight;
	return &templates[i];
}
