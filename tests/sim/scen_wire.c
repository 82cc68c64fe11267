/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Paths of a packet: loopback, multicast, VLANs, IPv6, the GSI, and senders that are not
 * the peer.
 */
#include <string.h>

#include "pair.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

#define VLAN	7
#define GSI_QKEY 0x80010000u

static uint64_t count(struct end *e, enum qhca_counter id)
{
	return count_of(e, id);
}

/* ---- loopback */

static void one_of_each(struct pair *p)
{
	uint8_t one[3000], two[3000];

	memset(one, 0x3c, sizeof(one));
	put_bytes(&p->a, 0, one, sizeof(one));
	CHECK_WORKS(p);
	post(p, &p->a, QHCA_WQE_WRITE, 3000, 0);
	post(p, &p->a, QHCA_WQE_READ, 3000, 0);
	post(p, &p->a, QHCA_WQE_FETCH_ADD, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 1, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
	get_bytes(&p->b, 32768, two, sizeof(two));
	/* Nothing was added: the operand of post() is 0. */
	CHECK(!memcmp(one, two, sizeof(one)));
}

static void loopback(struct pair *p)
{
	connect_pair(p);
	one_of_each(p);
	CHECK_EQ(p->w.frames, 0);
	CHECK_EQ(count(&p->a, QHCA_CNT_loopback_packets),
		 count(&p->a, QHCA_CNT_rx_packets));
	/* Loopback needs no link. */
	qhca_set_link(p->a.md->host.hca, false, p->w.now);
	reconnect_pair(p, 4);
	one_of_each(p);
}

/* A QP that is its own peer. */
static void loopback_to_itself(struct pair *p)
{
	struct end *e = &p->a;

	p->b.mr = e->mr;
	e->conn.dest_qpn = e->qp.qpn;
	e->conn.rnr_retry = 7;
	md_av(e->md, &e->conn.av, e->md->mac[5], false);
	md_qp_connect(e->md, &e->qp, &e->conn);
	post_recv(e, 4000);
	post(p, e, QHCA_WQE_SEND, 3000, 0);
	post(p, e, QHCA_WQE_READ, 5000, 0);
	post(p, e, QHCA_WQE_FETCH_ADD, 8, 0);
	post(p, e, QHCA_WQE_WRITE, 3000, 0);
	/* The message waits for a receive. */
	post(p, e, QHCA_WQE_SEND, 8, 0);
	world_run(&p->w, p->w.now + 50000);
	post_recv(e, 4000);
	settle(p);
	EXPECT(&e->scq, 0, 0, 0, 0, 0, 0);
	EXPECT(&e->rcq, 0, 0, 0);
}

static void loopback_of_datagrams(struct pair *p)
{
	connect_pair(p);
	CHECK_WORKS(p);
	CHECK_EQ(p->w.frames, 0);
}

/* ---- VLAN and IPv6 */

static bool is_tagged(struct world *w, unsigned int from, uint8_t *frame,
		      size_t len)
{
	uint32_t *bad = w->filter_arg;

	(void)from; (void)len;
	*bad += frame[12] != 0x81 || frame[13] != 0 || frame[15] != VLAN;
	return true;
}

static void use_gid(struct end *e, const struct end *o, bool v6, uint16_t vlan)
{
	CHECK_EQ(md_set_gid(e->md, 2, 9, v6, vlan), 0);
	md_av_net(e->md, &e->conn.av, o->md->mac[5], 2, 9, v6);
}

static void use_gids(struct pair *p, bool v6, uint16_t a, uint16_t b)
{
	use_gid(&p->a, &p->b, v6, a);
	use_gid(&p->b, &p->a, v6, b);
	p->ud.av = p->a.conn.av;
}

static void vlan(struct pair *p)
{
	uint32_t bad = 0;

	for (int v6 = 0; v6 < 2; v6++) {
		use_gids(p, v6, VLAN, VLAN);
		connect_pair(p);
		p->w.filter = is_tagged;
		p->w.filter_arg = &bad;
		one_of_each(p);
		CHECK_EQ(bad, 0);
		CHECK(p->w.frames);
		md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RESET, 0, NULL);
		md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET, 0, NULL);
	}
}

static void vlan_of_others(struct pair *p)
{
	use_gids(p, false, VLAN, VLAN + 1);
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_RETRY_EXC_ERR);
	CHECK_EQ(count(&p->b, QHCA_CNT_rx_packets), 0);
}

static void vlan_of_datagrams(struct pair *p)
{
	struct qhca_cqe cqe;

	use_gids(p, false, VLAN, VLAN);
	p->ud.av.sl = 5;
	connect_pair(p);
	post_recv(&p->b, 100);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK(md_poll(&p->b.rcq, &cqe));
	CHECK_EQ(get_le32(&cqe.flags) & ~QHCA_PHASE,
		 QHCA_CQE_GRH | QHCA_CQE_VLAN);
	CHECK_EQ(get_le16(&cqe.vlan), 5 << 13 | VLAN);
	CHECK_EQ(cqe.sl, 5);
}

static void ipv6(struct pair *p)
{
	md_av(p->a.md, &p->a.conn.av, p->b.md->mac[5], true);
	md_av(p->b.md, &p->b.conn.av, p->a.md->mac[5], true);
	connect_pair(p);
	one_of_each(p);
}

static void ipv6_of_datagrams(struct pair *p)
{
	struct qhca_cqe cqe;
	uint8_t grh[40];

	md_av(p->a.md, &p->ud.av, p->b.md->mac[5], true);
	p->ud.av.traffic_class = 0x42;
	connect_pair(p);
	post_recv(&p->b, 100);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK(md_poll(&p->b.rcq, &cqe));
	CHECK_EQ(cqe.net_type, 6);
	get_bytes(&p->b, 16384, grh, 40);
	CHECK_EQ(grh[0] << 8 | grh[1], 0x6420);
	CHECK_EQ(grh[6], 17);
	CHECK(!memcmp(grh + 24, p->ud.av.dgid, 16));
}

/* Each datagram has the headers of its own path, also if one doorbell is for them all. */
static void paths_by_turns(struct pair *p)
{
	static const uint8_t length[] = { 8, 8, 9, 64, 64, 8 };
	const uint32_t num = sizeof(length);
	struct md_sge sge = { p->a.mr.iova, 0, p->a.mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_SEND, .num_sge = 1, .sge = &sge,
	};
	struct qhca_wqe_ud ud = p->ud;
	struct qhca_cqe cqe;
	uint8_t grh[40];

	connect_pair(p);
	wr.ud = &ud;
	for (uint32_t i = 0; i < num; i++) {
		md_av(p->a.md, &ud.av, p->b.md->mac[5], i & 1);
		ud.av.traffic_class = (uint8_t)(4 * i);
		sge.len = length[i];
		md_post_send(p->a.md, &p->a.qp, &wr);
		post_recv(&p->b, 200);
	}
	md_ring(p->a.md, &p->a.qp);
	for (uint32_t i = 0; i < num; i++) {
		while (!md_poll(&p->b.rcq, &cqe) && world_step(&p->w, UINT64_MAX))
			;
		CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
		CHECK_EQ(get_le32(&cqe.byte_len), 40 + length[i]);
		CHECK_EQ(cqe.net_type, i & 1 ? 6 : 4);
	}
	settle(p);
	/* All wrote to the same buffer: it has the header of the last one, an IPv6 header. */
	get_bytes(&p->b, 16384, grh, 40);
	CHECK_EQ(grh[0] << 8 | grh[1], 0x6000 | 4 * (num - 1) << 4);
	CHECK_EQ(count(&p->b, QHCA_CNT_rx_packets), num);
}

static void family_must_agree(struct pair *p)
{
	connect_pair(p);
	md_av(p->a.md, &p->ud.av, p->b.md->mac[5], true);
	p->ud.av.sgid_index = 0;		/* IPv4 to IPv6 */
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_LOC_QP_OP_ERR);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_SQE);
}

/* ---- GSI */

static void gsi(struct pair *p)
{
	p->a.conn.qkey = p->b.conn.qkey = GSI_QKEY;
	put_le32(&p->ud.qkey, GSI_QKEY);
	connect_pair(p);
	CHECK_EQ(p->a.qp.qpn, 1);
	CHECK_WORKS(p);
	CHECK_EQ(count(&p->b, QHCA_CNT_rx_bad_qkey), 0);
}

/* ---- multicast */

static int member(struct end *e, bool attach, const uint8_t mgid[16])
{
	return md_cmd(e->md, attach ? QHCA_CMD_ATTACH_MCAST :
				      QHCA_CMD_DETACH_MCAST,
		      e->qp.qpn, 0, mgid, 16, NULL, 0, NULL);
}

/* Send to @mgid: @at_a and @at_b copies are received. */
static void to_group(int line, struct pair *p, const uint8_t mgid[16], bool v6,
		     bool at_a, bool at_b)
{
	struct qhca_cqe cqe;

	post_recv(&p->a, 100);
	post_recv(&p->b, 100);
	md_av(p->a.md, &p->ud.av, 2, v6);
	memcpy(p->ud.av.dgid, mgid, 16);
	memcpy(p->ud.av.dmac, v6 ? "\x33\x33" : "\x01\x00\x5e", v6 ? 2 : 3);
	put_le32(&p->ud.dest_qpn, 0xffffff);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK(md_poll(&p->a.scq, &cqe));
	CHECK_EQ(cqe.status, 0);
	if (md_poll(&p->a.rcq, &cqe) != at_a ||
	    md_poll(&p->b.rcq, &cqe) != at_b ||
	    md_poll(&p->a.rcq, &cqe) || md_poll(&p->b.rcq, &cqe))
		check_failed(line, "not the copies that were expected");
}

static void multicast(struct pair *p)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };
	static const uint8_t v6[16] = { 0xff, 0x0e, [15] = 1 };
	static const uint8_t not_a_group[16] = { [10] = 0xff, 0xff, 10, 1, 2, 3 };

	connect_pair(p);
	CHECK_EQ(member(&p->b, true, not_a_group), QHCA_CMD_BAD_PARAM);
	CHECK_EQ(member(&p->b, false, v4), QHCA_CMD_BAD_STATE);
	to_group(__LINE__, p, v4, false, false, false);
	CHECK_EQ(member(&p->b, true, v4), 0);
	/* A second membership changes nothing. */
	CHECK_EQ(member(&p->b, true, v4), 0);
	to_group(__LINE__, p, v4, false, false, true);
	CHECK_EQ(member(&p->a, true, v4), 0);
	/* The sender receives a copy, too. */
	to_group(__LINE__, p, v4, false, true, true);
	CHECK_EQ(member(&p->b, true, v6), 0);
	to_group(__LINE__, p, v6, true, false, true);
	CHECK_EQ(member(&p->b, false, v4), 0);
	to_group(__LINE__, p, v4, false, true, false);
	CHECK_EQ(member(&p->a, false, v4), 0);
	to_group(__LINE__, p, v4, false, false, false);
}

static void multicast_without_loop(struct pair *p)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };

	connect_pair(p);
	CHECK_EQ(member(&p->a, true, v4), 0);
	CHECK_EQ(member(&p->b, true, v4), 0);
	to_group(__LINE__, p, v4, false, false, true);
}

/* ---- a third host */

/* Its packets have the right QPN and PSN, but it is not the peer. */
static void stranger(struct pair *p)
{
	struct md_qp_init init = p->a.qp.init;
	struct end c = p->a;

	c.md = p->w.host[2];
	md_cq_create(c.md, &c.scq, 4);
	md_reg_mr(c.md, &c.mr, PAIR_PD, PAIR_IOVA, 4096, ALL_ACCESS);
	init.send_cq = init.recv_cq = &c.scq;
	CHECK_EQ(md_qp_create(c.md, &c.qp, &init), 0);
	connect_pair(p);
	md_qp_connect(c.md, &c.qp, &c.conn);
	post(p, &c, QHCA_WQE_WRITE, 8, 0);
	CHECK_WORKS(p);
	EXPECT(&c.scq, 0, QHCA_WC_RETRY_EXC_ERR);
	CHECK_EQ(count(&p->b, QHCA_CNT_rx_dropped), 4);
	CHECK_EQ(md_qp_destroy(c.md, &c.qp), 0);
}

#define IP	14u
#define UDP	34u
#define BTH	42u

/* ---- a link without ICRC */

/* What of the packets on the link has an ICRC. */
static bool look_at_icrc(struct world *w, unsigned int from, uint8_t *frame,
			 size_t len)
{
	uint32_t *sealed = w->filter_arg;

	(void)from;
	*sealed += get_le32(frame + len - HCA_ICRC_LEN) != 0;
	return true;
}

/* Damages the next packet that the device receives or sends; @nth 0: no packet. */
static void inject(struct end *e, bool rx, uint64_t nth)
{
	struct qhca_inject_config cfg = { .on_rx = rx, .on_tx = !rx };
	char err[160];

	cfg.rule[QHCA_INJECT_CORRUPT].nth = nth;
	CHECK(qhca_inject_set(e->md->host.hca, &cfg, err, sizeof(err)));
}

/* A packet goes without, unless the injector may damage it: then that is noticed. */
static void without_icrc(struct pair *p)
{
	uint32_t sealed = 0;

	world_use_memory(&p->w);
	p->w.filter = look_at_icrc;
	p->w.filter_arg = &sealed;
	connect_pair(p);
	one_of_each(p);
	CHECK(p->w.frames > 6);
	CHECK_EQ(sealed, 0);
	for (uint32_t n = 1; n <= 16; n++) {
		/* Not both at once: an injector that may damage gives all packets one. */
		inject(&p->a, false, n % 2);
		inject(&p->b, true, !(n % 2));
		CHECK_WORKS(p);
		CHECK_EQ(count(&p->b, QHCA_CNT_rx_icrc_errors), n);
	}
	CHECK(sealed >= 8);
}

/* What stays in the device has an ICRC, whatever the link does when it arrives. */
static void looped_with_icrc(struct pair *p)
{
	qhca_link_without_icrc(p->a.md->host.hca, true);
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_WRITE, 3000, 0);
	qhca_run(p->a.md->host.hca, p->w.now, 1);
	CHECK(count(&p->a, QHCA_CNT_loopback_packets) > 0);
	CHECK_EQ(count(&p->a, QHCA_CNT_rx_packets), 0);
	qhca_link_without_icrc(p->a.md->host.hca, false);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	CHECK_EQ(count(&p->a, QHCA_CNT_rx_icrc_errors), 0);
	CHECK_EQ(count(&p->a, QHCA_CNT_retransmitted_packets), 0);
}

/* A device that has not agreed takes nothing without ICRC. */
static void one_without_icrc(struct pair *p)
{
	qhca_link_without_icrc(p->a.md->host.hca, true);
	p->a.conn.retry_cnt = 0;
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_RETRY_EXC_ERR);
	CHECK_EQ(count(&p->b, QHCA_CNT_rx_icrc_errors), 1);
	qhca_link_without_icrc(p->a.md->host.hca, false);
}

/* ---- what was received */

/* What each end has sent, the other one has received, to the octet. */
static void traffic_is_counted(struct pair *p)
{
	const uint64_t send = BTH + 12 + 8 + HCA_ICRC_LEN;
	const uint64_t ack = BTH + 12 + 4 + HCA_ICRC_LEN;

	connect_pair(p);
	for (int i = 0; i < 3; i++)
		CHECK_WORKS(p);
	CHECK_EQ(count(&p->a, QHCA_CNT_tx_packets), 3);
	CHECK_EQ(count(&p->a, QHCA_CNT_tx_bytes), 3 * send);
	CHECK_EQ(count(&p->b, QHCA_CNT_rx_packets), 3);
	CHECK_EQ(count(&p->b, QHCA_CNT_rx_bytes), 3 * send);
	CHECK_EQ(count(&p->b, QHCA_CNT_tx_acks), 3);
	CHECK_EQ(count(&p->b, QHCA_CNT_tx_bytes), 3 * ack);
	CHECK_EQ(count(&p->a, QHCA_CNT_rx_acks), 3);
	CHECK_EQ(count(&p->a, QHCA_CNT_rx_bytes), 3 * ack);
}

/*
 * A device asks for an acknowledgement in each 32nd packet of a long message.  Only that of the
 * last one answers the message.
 */
static void messages_are_answered(struct pair *p)
{
	const uint64_t before = qhca_answered(p->b.md->host.hca, 0);

	p->a.conn.mtu = p->b.conn.mtu = QHCA_MTU_256;
	connect_pair(p);
	for (unsigned int n = 1; n <= 5; n++) {
		post(p, &p->a, QHCA_WQE_WRITE, 32 * 1024, 0);
		settle(p);
		CHECK_EQ(qhca_answered(p->b.md->host.hca, 0), before + n);
	}
	EXPECT(&p->a.scq, 0, 0, 0, 0, 0, 0);
	CHECK(count(&p->b, QHCA_CNT_tx_acks) > 5);
	post_recv(&p->b, 8192);
	post(p, &p->a, QHCA_WQE_SEND, 8192, 0);
	post(p, &p->a, QHCA_WQE_READ, 8192, 0);
	settle(p);
	EXPECT(&p->a.scq, 5, 0, 0);
	CHECK_EQ(qhca_answered(p->b.md->host.hca, 0), before + 6);
	CHECK_EQ(qhca_answered(p->a.md->host.hca, 0), 0);
	CHECK_EQ(qhca_answered(p->b.md->host.hca, 1), 0);
}

/* Changes an octet of the BTH of each packet that a sends, and its ICRC. */
struct changed {
	size_t at;
	uint8_t bits;
};

static bool change(struct world *w, unsigned int from, uint8_t *frame,
		   size_t len)
{
	const struct changed *c = w->filter_arg;

	if (from)
		return true;
	frame[BTH + c->at] ^= c->bits;
	put_le32(frame + len - HCA_ICRC_LEN,
		 hca_icrc(frame + IP, UDP - IP, len - BTH - HCA_ICRC_LEN));
	return true;
}

/* Each reason to drop a packet of a peer has a counter, and only that one counts. */
static void dropped_packets_are_counted(struct pair *p)
{
	static const struct {
		enum qhca_counter reason;
		struct changed changed;
	} cases[] = {
		{ QHCA_CNT_rx_bad_pkey, { 3, 0x01 } },
		{ QHCA_CNT_rx_no_qp, { 5, 0x40 } },
		{ QHCA_CNT_rx_bad_state, { 0 } },
	};
	const size_t num = sizeof(cases) / sizeof(*cases);
	const struct pair_options o = { .type = QHCA_QPT_RC };

	for (size_t i = 0; i < num; i++) {
		struct changed changed = cases[i].changed;

		restart_pair(p, &o);
		p->a.conn.retry_cnt = 0;
		connect_pair(p);
		if (cases[i].reason == QHCA_CNT_rx_bad_state)
			CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET,
					      0, NULL), 0);
		p->w.filter = change;
		p->w.filter_arg = &changed;
		post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
		settle(p);
		EXPECT(&p->a.scq, 0, QHCA_WC_RETRY_EXC_ERR);
		p->w.filter = NULL;
		for (size_t k = 0; k < num; k++)
			CHECK_EQ(count(&p->b, cases[k].reason), k == i);
		CHECK_EQ(count(&p->b, QHCA_CNT_rx_dropped), 0);
		CHECK_EQ(count(&p->b, QHCA_CNT_rx_icrc_errors), 0);
	}
}

/* ---- padding */

#define PAD	3u

struct padder {
	struct pair *p;
	uint8_t op;			/* of the packets that get padding */
};

/* Behind the whole payload of a packet come octets of padding. */
static bool pad(struct world *w, unsigned int from, uint8_t *frame, size_t len)
{
	const struct padder *to = w->filter_arg;
	uint8_t padded[2000] = { 0 };
	size_t more = len + PAD;

	if (from || (frame[BTH] & 0x1f) != to->op)
		return true;
	memcpy(padded, frame, len - HCA_ICRC_LEN);
	padded[BTH + 1] |= PAD << 4;
	put_be16(padded + IP + 2, (uint16_t)(more - IP));
	put_be16(padded + UDP + 4, (uint16_t)(more - UDP));
	put_be16(padded + IP + 10, 0);
	put_be16(padded + IP + 10, hca_ipv4_checksum(padded + IP));
	put_le32(padded + more - HCA_ICRC_LEN,
		 hca_icrc(padded + IP, UDP - IP, more - BTH - HCA_ICRC_LEN));
	qhca_rx_frame(to->p->b.md->host.hca, padded, more, to->p->b.md->host.now);
	return false;
}

static void padding_between(struct pair *p)
{
	static const uint8_t ops[] = {
		HCA_OP_SEND_FIRST, HCA_OP_SEND_MIDDLE, HCA_OP_WRITE_FIRST,
		HCA_OP_WRITE_MIDDLE,
	};
	struct padder to = { .p = p };

	for (unsigned int i = 0; i < sizeof(ops); i++) {
		const struct pair_options o = { .type = QHCA_QPT_RC };

		restart_pair(p, &o);
		connect_pair(p);
		to.op = ops[i];
		p->w.filter = pad;
		p->w.filter_arg = &to;
		post_recv(&p->b, 8000);
		post(p, &p->a, i < 2 ? QHCA_WQE_SEND : QHCA_WQE_WRITE, 3500, 0);
		settle(p);
		EXPECT(&p->a.scq, 0, QHCA_WC_REM_INV_REQ_ERR);
		CHECK_EQ(count(&p->b, QHCA_CNT_tx_nak_invalid), 1);
		p->w.filter = NULL;
	}
}

/* ---- as many PSNs as may be outstanding */

/* A region of 2 GiB with few pages of memory. */
static void reg_vast(struct end *e)
{
	struct qhca_pte pte = { 0 };
	uint32_t index = e->md->next_key++;

	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_MR << 4 | 12u << 16);
	put_le32(&pte.access, ALL_ACCESS);
	put_le32(&pte.pd, PAIR_PD);
	put_le32(&pte.at_key, index);
	put_le64(&pte.start, PAIR_IOVA);
	put_le64(&pte.length, 1ull << 31);
	put_le64(&pte.at_base, e->mr.buf.page[0]);
	md_pte_write(e->md, index, &pte);
	e->mr.key = index << 8;
}

/*
 * A READ of 2^23 packets takes half of the PSN space: the requester mistakes no response
 * for an old one, and requests it once.
 */
static void read_of_half_the_numbers(struct pair *p)
{
	struct md_sge sge;
	struct md_wr wr = {
		.opcode = QHCA_WQE_READ, .flags = QHCA_WQE_F_SIGNALED,
		.num_sge = 1, .sge = &sge,
	};
	struct qhca_query_qp q;

	p->a.conn.mtu = p->b.conn.mtu = QHCA_MTU_256;
	p->w.link.delay = 1000;
	connect_pair(p);
	reg_vast(&p->a);
	reg_vast(&p->b);
	sge = (struct md_sge){ PAIR_IOVA, 1u << 31, p->a.mr.key };
	wr.raddr = PAIR_IOVA;
	wr.rkey = p->b.mr.key;
	/* An answer to an earlier request moves no index back. */
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	post_wr(&p->a, &wr);
	while (count(&p->a, QHCA_CNT_rx_packets) < 100)
		CHECK(world_step(&p->w, p->w.now + 1000));
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	CHECK_EQ(count(&p->a, QHCA_CNT_tx_packets), 2);
	CHECK_EQ(count(&p->a, QHCA_CNT_retransmitted_packets), 0);
	CHECK_EQ(count(&p->b, QHCA_CNT_duplicate_requests), 0);
	CHECK_EQ(md_qp_query(p->a.md, &p->a.qp, &q), 0);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_RTS);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RESET, 0, NULL), 0);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET, 0, NULL), 0);
}

const struct scenario wire_scenarios[] = {
	ON(RC, loopback, .loop = true), ON(RC, loopback_to_itself),
	ON(UD, loopback_of_datagrams, .loop = true), ON(RC, vlan),
	ON(RC, vlan_of_others), ON(UD, vlan_of_datagrams), ON(RC, ipv6),
	ON(UD, ipv6_of_datagrams), ON(UD, paths_by_turns),
	ON(UD, family_must_agree), ON(GSI, gsi),
	ON(UD, multicast),
	ON(UD, multicast_without_loop, .qp_flags = QHCA_QP_MCAST_NO_LOOP),
	ON(RC, stranger, .hosts = 3),
	RC(traffic_is_counted), RC(messages_are_answered),
	RC(dropped_packets_are_counted),
	RC(padding_between), RC(read_of_half_the_numbers),
	RC(without_icrc), RC(one_without_icrc),
	ON(RC, looped_with_icrc, .loop = true),
	{ 0 }
};
