/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Raw packet QPs: whole frames out and in, and the rules that say which.
 */
#include <string.h>

#include "pair.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

#define BUFFER		2048u		/* bytes of a receive */
#define IPV4		0x0800
#define IPV6		0x86dd
#define VLAN		0x8100
#define UDP		17
#define TCP		6

/* ---- frames */

static const uint8_t some_mac[6] = { 0x02, 1, 2, 3, 4, 5 };

struct frame {
	uint8_t data[2048];
	uint32_t len;
};

static uint8_t *eth(struct frame *f, const uint8_t *dmac, int vlan,
		    uint16_t type)
{
	uint8_t *p = f->data;

	memset(f, 0, sizeof(*f));
	memcpy(p, dmac, 6);
	memcpy(p + 6, some_mac, 6);
	p += 12;
	if (vlan >= 0) {
		put_be16(p, VLAN);
		put_be16(p + 2, (uint16_t)vlan);
		p += 4;
	}
	put_be16(p, type);
	return p + 2;
}

static uint8_t *ip4(uint8_t *ip, uint8_t proto, uint16_t fragment)
{
	ip[0] = 0x46;			/* with an option */
	ip[1] = 0x28;
	put_be16(ip + 6, fragment);
	ip[8] = 63;
	ip[9] = proto;
	memcpy(ip + 12, "\x0a\x01\x02\x03", 4);
	memcpy(ip + 16, "\x0a\x01\x02\x04", 4);
	return ip + 24;
}

static uint8_t *ip6(uint8_t *ip, uint8_t proto)
{
	put_be32(ip, 0x62800000 | 0x12345);
	ip[6] = proto;
	ip[7] = 62;
	memset(ip + 8, 0x11, 16);
	memset(ip + 24, 0x22, 16);
	return ip + 40;
}

static void end(struct frame *f, uint8_t *l4, uint16_t sport, uint16_t dport)
{
	put_be16(l4, sport);
	put_be16(l4 + 2, dport);
	f->len = (uint32_t)(l4 + 40 - f->data);
	for (uint8_t *p = l4 + 4; p < f->data + f->len; p++)
		*p = (uint8_t)(p - f->data);
}

/* UDP over IPv4 to @dmac, port 7000 to @dport. */
static void udp4(struct frame *f, const uint8_t *dmac, uint16_t dport)
{
	end(f, ip4(eth(f, dmac, -1, IPV4), UDP, 0), 7000, dport);
}

/* What the RDMA transport takes for its own, and for malformed. */
static void roce4(struct frame *f, const struct md *md)
{
	uint8_t *ip = eth(f, md->mac, -1, IPV4);

	ip4(ip, UDP, 0);
	ip[0] = 0x45;
	memcpy(ip + 16, md->gid + 12, 4);
	end(f, ip + 20, 7000, 4791);
}

/* ---- QPs and rules */

static int add_rule(struct end *e, uint32_t index, uint32_t qpn,
		    struct qhca_flow *in)
{
	put_le32(&in->qpn, qpn);
	return md_cmd(e->md, QHCA_CMD_CREATE_FLOW, index, 0, in, sizeof(*in),
		      NULL, 0, NULL);
}

static int end_rule(struct end *e, uint32_t index)
{
	return md_cmd(e->md, QHCA_CMD_DESTROY_FLOW, index, 0, NULL, 0, NULL, 0,
		      NULL);
}

/* All frames of UDP or TCP to @dport. */
static void port_rule(struct qhca_flow *r, uint8_t layers, uint16_t dport)
{
	memset(r, 0, sizeof(*r));
	r->layers = layers;
	put_be16(r->key.dport, dport);
	put_be16(r->mask.dport, 0xffff);
}

static void give_recvs(struct end *e, uint32_t n)
{
	while (n--)
		post_recv(e, BUFFER);
}

static void arrive(struct end *e, const struct frame *f)
{
	qhca_rx_frame(e->md->host.hca, f->data, f->len, e->md->host.now);
	md_settle(e->md);
}

/* The next completion is of @f, whole. */
static void expect_frame(int line, struct end *e, const struct frame *f)
{
	uint8_t got[BUFFER];
	struct qhca_cqe cqe;

	if (!md_poll(&e->rcq, &cqe)) {
		check_failed(line, "no frame");
		return;
	}
	md_buf_read(e->md, &e->mr.buf, 16384, got, f->len);
	if (cqe.status || cqe.opcode != QHCA_CQE_RECV ||
	    get_le32(&cqe.byte_len) != f->len ||
	    get_le32(&cqe.qpn) != e->qp.qpn ||
	    memcmp(cqe.smac, f->data + 6, 6) || memcmp(got, f->data, f->len))
		check_failed(line, "status %u, %u bytes of %u", cqe.status,
			     get_le32(&cqe.byte_len), f->len);
}
#define EXPECT_FRAME(e, f) expect_frame(__LINE__, e, f)

static void send(struct end *e, const struct frame *f, bool inlined)
{
	struct md_sge sge[2] = { { e->mr.iova, 5, e->mr.key },
				 { e->mr.iova + 5, f->len - 5, e->mr.key } };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .sge = sge, .num_sge = 2,
			    .flags = QHCA_WQE_F_SIGNALED };

	put_bytes(e, 0, f->data, f->len);
	if (inlined) {
		wr.flags |= QHCA_WQE_F_INLINE;
		wr.inline_data = f->data;
		wr.inline_len = f->len;
	}
	post_wr(e, &wr);
}

/* ---- scenarios */

static bool count_frames(struct world *w, unsigned int from, uint8_t *frame,
			 size_t len)
{
	uint32_t *n = w->filter_arg;

	(void)from; (void)frame; (void)len;
	++*n;
	return true;
}

/* What one sends the other gets, to the octet. */
static void frames_cross(struct pair *p)
{
	struct qhca_flow rule;
	struct frame f;

	connect_pair(p);
	port_rule(&rule, QHCA_FLOW_IPV4 | QHCA_FLOW_UDP, 9);
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	give_recvs(&p->b, 3);
	udp4(&f, p->b.md->mac, 9);
	send(&p->a, &f, false);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	EXPECT_FRAME(&p->b, &f);
	f.data[f.len - 1] ^= 0xff;
	send(&p->a, &f, true);
	settle(p);
	EXPECT_FRAME(&p->b, &f);
	/* A frame to another port is not for this QP. */
	udp4(&f, p->b.md->mac, 10);
	send(&p->a, &f, false);
	settle(p);
	EXPECT(&p->a.scq, 1, 0, 0);
	expect_none(&p->b.rcq);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_raw_tx_packets), 3);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_raw_rx_packets), 2);
}

/* Each field and each layer decides. */
static void each_field_counts(struct pair *p)
{
	struct frame f[4];
	struct qhca_flow exact = { .layers = QHCA_FLOW_VLAN | QHCA_FLOW_IPV4 |
				   QHCA_FLOW_UDP };
	struct qhca_flow rule;
	uint8_t *key = (uint8_t *)&exact.key;

	connect_pair(p);
	end(&f[0], ip4(eth(&f[0], some_mac, 0x6123, IPV4), UDP, 0), 0x1234,
	    0x5678);
	end(&f[1], ip4(eth(&f[1], some_mac, 0x6123, IPV4), TCP, 0), 0x1234,
	    0x5678);
	end(&f[2], ip4(eth(&f[2], some_mac, -1, IPV4), UDP, 0), 0x1234, 0x5678);
	end(&f[3], ip4(eth(&f[3], some_mac, 0x6123, IPV4), UDP, 0x0010), 0x1234,
	    0x5678);
	memcpy(exact.key.dmac, some_mac, 6);
	memcpy(exact.key.smac, some_mac, 6);
	put_be16(exact.key.ethertype, IPV4);
	put_be16(exact.key.vlan, 0x6123);
	memcpy(exact.key.src_ip, "\x0a\x01\x02\x03", 4);
	memcpy(exact.key.dst_ip, "\x0a\x01\x02\x04", 4);
	exact.key.proto = UDP;
	exact.key.tos = 0x28;
	exact.key.ttl = 63;
	put_be16(exact.key.sport, 0x1234);
	put_be16(exact.key.dport, 0x5678);
	memset(&exact.mask, 0xff, sizeof(exact.mask));
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &exact), 0);
	give_recvs(&p->b, 60);
	arrive(&p->b, &f[0]);
	EXPECT_FRAME(&p->b, &f[0]);
	for (int i = 1; i < 4; i++) {	/* TCP; untagged; a later fragment */
		arrive(&p->b, &f[i]);
		expect_none(&p->b.rcq);
	}
	for (uint32_t i = 0; i < sizeof(exact.key) && check_ok(); i++) {
		CHECK_EQ(end_rule(&p->b, 0), 0);
		rule = exact;
		((uint8_t *)&rule.key)[i] = key[i] ^ 0x80;
		CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
		arrive(&p->b, &f[0]);
		expect_none(&p->b.rcq);
	}
}

static void ipv6_and_tcp(struct pair *p)
{
	struct qhca_flow rule = { .layers = QHCA_FLOW_IPV6 | QHCA_FLOW_TCP };
	struct frame f;

	connect_pair(p);
	memset(rule.key.src_ip, 0x11, 16);
	memset(rule.key.dst_ip, 0x22, 16);
	put_be32(rule.key.flow_label, 0x12345);
	rule.key.tos = 0x28;
	rule.key.ttl = 62;
	put_be16(rule.key.dport, 80);
	memset(rule.mask.src_ip, 0xff, 32);
	memset(rule.mask.flow_label, 0xff, 4);
	rule.mask.tos = rule.mask.ttl = 0xff;
	put_be16(rule.mask.dport, 0xffff);
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	give_recvs(&p->b, 4);
	end(&f, ip6(eth(&f, some_mac, -1, IPV6), TCP), 5, 80);
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
	end(&f, ip6(eth(&f, some_mac, -1, IPV6), UDP), 5, 80);
	arrive(&p->b, &f);
	expect_none(&p->b.rcq);
	/* The frame is shorter than its headers: no layer counts that is not whole. */
	end(&f, ip6(eth(&f, some_mac, -1, IPV6), TCP), 5, 80);
	for (f.len = 14; f.len < 14 + 40 + 4; f.len++)
		arrive(&p->b, &f);
	expect_none(&p->b.rcq);
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
}

/* The lowest priority first, then the number; copies go on. */
static void rules_in_order(struct pair *p)
{
	struct md_qp_init init = p->b.qp.init;
	struct end c = p->b;
	struct qhca_flow rule;
	struct frame f;

	connect_pair(p);
	md_cq_create(c.md, &c.rcq, 4);
	init.recv_cq = &c.rcq;
	CHECK_EQ(md_qp_create(c.md, &c.qp, &init), 0);
	md_qp_connect(c.md, &c.qp, &c.conn);
	give_recvs(&p->b, 8);
	give_recvs(&c, 8);
	udp4(&f, some_mac, 9);

	port_rule(&rule, QHCA_FLOW_UDP, 9);
	put_le16(&rule.priority, 5);
	CHECK_EQ(add_rule(&p->b, 1, p->b.qp.qpn, &rule), 0);
	CHECK_EQ(add_rule(&p->b, 2, c.qp.qpn, &rule), 0);
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
	expect_none(&c.rcq);
	put_le16(&rule.priority, 4);
	CHECK_EQ(add_rule(&p->b, 7, c.qp.qpn, &rule), 0);
	arrive(&p->b, &f);
	EXPECT_FRAME(&c, &f);
	expect_none(&p->b.rcq);
	CHECK_EQ(end_rule(&p->b, 7), 0);
	rule.flags = QHCA_FLOW_F_DONT_TRAP;
	CHECK_EQ(add_rule(&p->b, 7, c.qp.qpn, &rule), 0);
	arrive(&p->b, &f);
	EXPECT_FRAME(&c, &f);
	EXPECT_FRAME(&p->b, &f);
	/* The rules disappear with their QP. */
	CHECK_EQ(md_qp_destroy(c.md, &c.qp), 0);
	CHECK_EQ(end_rule(&p->b, 7), QHCA_CMD_BAD_STATE);
	CHECK_EQ(end_rule(&p->b, 2), QHCA_CMD_BAD_STATE);
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
	expect_none(&c.rcq);
}

/* Sniffers see RDMA too; default rules have what nobody wants. */
static void other_types(struct pair *p)
{
	static const uint8_t group[6] = { 1, 0, 0x5e, 1, 2, 3 };
	struct qhca_flow rule = { .type = QHCA_FLOW_SNIFFER };
	struct frame f;

	connect_pair(p);
	give_recvs(&p->b, 20);
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	roce4(&f, p->b.md);
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_malformed), 1);
	CHECK_EQ(end_rule(&p->b, 0), 0);
	/* A rule of another type does not receive the frame. */
	port_rule(&rule, QHCA_FLOW_UDP, 4791);
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	arrive(&p->b, &f);
	expect_none(&p->b.rcq);
	CHECK_EQ(end_rule(&p->b, 0), 0);
	memset(&rule, 0, sizeof(rule));

	rule.type = QHCA_FLOW_MC_DEFAULT;
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	udp4(&f, some_mac, 9);
	arrive(&p->b, &f);
	expect_none(&p->b.rcq);
	udp4(&f, group, 9);
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
	CHECK_EQ(end_rule(&p->b, 0), 0);

	rule.type = QHCA_FLOW_ALL_DEFAULT;
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	udp4(&f, some_mac, 9);
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
	expect_none(&p->b.rcq);
	/* Beside a sniffer each gets one copy. */
	rule.type = QHCA_FLOW_SNIFFER;
	CHECK_EQ(add_rule(&p->b, 1, p->b.qp.qpn, &rule), 0);
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
	expect_none(&p->b.rcq);
}

/* A sniffer gets a packet whole, also where the link does without its ICRC. */
static void sniffed_without_icrc(struct pair *p)
{
	struct qhca_flow rule = { .type = QHCA_FLOW_SNIFFER };
	struct frame f;
	uint32_t icrc;

	connect_pair(p);
	give_recvs(&p->b, 4);
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	roce4(&f, p->b.md);
	put_be16(f.data + 16, (uint16_t)(f.len - 14));
	put_be16(f.data + 38, (uint16_t)(f.len - 34));
	put_be16(f.data + 24, hca_ipv4_checksum(f.data + 14));
	/* The device sends no checksum of UDP, and this opcode: SEND Only. */
	put_be16(f.data + 40, 0);
	f.data[42] = 4;
	memset(f.data + f.len - 4, 0, 4);
	icrc = hca_icrc(f.data + 14, 20, f.len - 42 - 4);
	world_use_memory(&p->w);
	qhca_rx_shared(p->b.md->host.hca, f.data, f.len, p->b.md->host.now);
	md_settle(p->b.md);
	put_le32(f.data + f.len - 4, icrc);
	EXPECT_FRAME(&p->b, &f);
}

/* To ourselves it stays in the device; to a rule of ours it goes both ways. */
static void loops_back(struct pair *p)
{
	struct qhca_flow rule;
	uint32_t on_wire = 0;
	struct frame f;

	connect_pair(p);
	p->w.filter = count_frames;
	p->w.filter_arg = &on_wire;
	port_rule(&rule, QHCA_FLOW_UDP, 9);
	CHECK_EQ(add_rule(&p->a, 0, p->a.qp.qpn, &rule), 0);
	give_recvs(&p->a, 4);
	udp4(&f, p->a.md->mac, 9);
	send(&p->a, &f, false);
	settle(p);
	EXPECT_FRAME(&p->a, &f);
	CHECK_EQ(on_wire, 0);
	udp4(&f, some_mac, 9);
	send(&p->a, &f, false);
	settle(p);
	EXPECT_FRAME(&p->a, &f);
	CHECK_EQ(on_wire, 1);
	udp4(&f, some_mac, 10);
	send(&p->a, &f, false);
	settle(p);
	CHECK_EQ(on_wire, 2);
	expect_none(&p->a.rcq);
}

static void no_room_drops(struct pair *p)
{
	struct qhca_flow rule;
	struct frame f;

	/* The QP receives nothing before RTR. */
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_INIT, 0, NULL), 0);
	port_rule(&rule, QHCA_FLOW_UDP, 9);
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	post_recv(&p->b, BUFFER);
	udp4(&f, some_mac, 9);
	arrive(&p->b, &f);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_raw_rx_dropped), 1);
	connect_pair(p);
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
	arrive(&p->b, &f);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_raw_rx_dropped), 2);
	post_recv(&p->b, f.len - 1);
	arrive(&p->b, &f);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_raw_rx_dropped), 3);
	f.len--;
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
	/* The QP receives nothing in ERR, either. */
	post_recv(&p->b, BUFFER);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_ERR, 0, NULL), 0);
	settle(p);
	arrive(&p->b, &f);
	EXPECT(&p->b.rcq, 2, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_raw_rx_dropped), 4);
}

/* Receives of an SRQ are as good, and as easily missing. */
static void shared_receives(struct pair *p)
{
	struct qhca_flow rule;
	struct frame f;

	connect_pair(p);
	port_rule(&rule, QHCA_FLOW_UDP, 9);
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	give_recvs(&p->b, 2);
	udp4(&f, some_mac, 9);
	for (int i = 0; i < 2; i++) {
		arrive(&p->b, &f);
		EXPECT_FRAME(&p->b, &f);
	}
	arrive(&p->b, &f);
	expect_none(&p->b.rcq);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_raw_rx_dropped), 1);
}

/* The QP goes while frames come for it; its number comes without its rules. */
static void destroyed_under_traffic(struct pair *p)
{
	const struct md_qp_init init = p->b.qp.init;
	struct md *md = p->b.md;
	struct qhca_flow rule, sniffer = { .type = QHCA_FLOW_SNIFFER };
	uint32_t qpn = p->b.qp.qpn;
	uint64_t taken;
	struct frame f;

	connect_pair(p);
	port_rule(&rule, QHCA_FLOW_UDP, 9);
	CHECK_EQ(add_rule(&p->b, 0, qpn, &rule), 0);
	CHECK_EQ(add_rule(&p->b, 3, qpn, &sniffer), 0);
	give_recvs(&p->b, 32);
	udp4(&f, md->mac, 9);
	p->w.link.jitter = 1000000;	/* one by one */
	for (int i = 0; i < 12; i++)
		send(&p->a, &f, false);
	while (qhca_counter(md->host.hca, 0, QHCA_CNT_raw_rx_packets) < 6 && check_ok())
		CHECK(world_step(&p->w, p->w.now + 10000));
	CHECK_EQ(md_qp_destroy(md, &p->b.qp), 0);
	taken = qhca_counter(md->host.hca, 0, QHCA_CNT_raw_rx_packets);
	CHECK(taken < 24);
	settle(p);
	/* The other frames are for the Ethernet queue, which does not exist. */
	CHECK_EQ(qhca_counter(md->host.hca, 0, QHCA_CNT_raw_rx_packets), taken);
	CHECK_EQ(qhca_counter(md->host.hca, 0, QHCA_CNT_eth_rx_filtered),
		 12 - taken / 2);
	CHECK_EQ(end_rule(&p->b, 0), QHCA_CMD_BAD_STATE);
	CHECK_EQ(end_rule(&p->b, 3), QHCA_CMD_BAD_STATE);
	while (md_poll(&p->b.rcq, &(struct qhca_cqe){ 0 }))
		;
	CHECK_EQ(md_qp_create(md, &p->b.qp, &init), 0);
	md_qp_connect(md, &p->b.qp, &p->b.conn);
	give_recvs(&p->b, 1);
	arrive(&p->b, &f);
	expect_none(&p->b.rcq);
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	arrive(&p->b, &f);
	EXPECT_FRAME(&p->b, &f);
}

/* The attributes of UD, without those that a raw packet QP does not have. */
static void states(struct pair *p)
{
	static const struct {
		uint8_t to;
		uint32_t mask;
		int status;
	} steps[] = {
		{ QHCA_QPS_INIT, QHCA_QP_ATTR_QKEY, QHCA_CMD_BAD_PARAM },
		{ QHCA_QPS_RTR, 0, QHCA_CMD_BAD_STATE },
		{ QHCA_QPS_INIT, 0, 0 }, { QHCA_QPS_INIT, 0, 0 },
		{ QHCA_QPS_RTR, 0, 0 },
		{ QHCA_QPS_RTS, QHCA_QP_ATTR_SQ_PSN, QHCA_CMD_BAD_PARAM },
		{ QHCA_QPS_RTS, 0, 0 }, { QHCA_QPS_RTS, 0, 0 },
		{ QHCA_QPS_SQD, QHCA_QP_ATTR_SQD_EVENT, 0 },
		{ QHCA_QPS_SQD, 0, 0 }, { QHCA_QPS_RTS, 0, 0 },
		{ QHCA_QPS_ERR, 0, 0 }, { QHCA_QPS_RESET, 0, 0 },
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, steps[i].to,
				      steps[i].mask, &p->a.conn),
			 steps[i].status);
		settle(p);
	}
}

static void send_length(struct pair *p, uint32_t len, uint8_t status)
{
	struct md_sge sge = { p->a.mr.iova, len, p->a.mr.key };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .sge = &sge, .num_sge = 1,
			    .flags = QHCA_WQE_F_SIGNALED };
	struct qhca_cqe cqe;

	post_wr(&p->a, &wr);
	settle(p);
	CHECK(md_poll(&p->a.scq, &cqe));
	CHECK_EQ(cqe.status, status);
	if (status)
		CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RTS, 0, NULL),
			 0);
}

/* A raw packet QP computes checksums as Ethernet queues do. */
static void short_frames_padded(struct pair *p)
{
	struct qhca_flow rule = { 0 };
	struct frame f;

	connect_pair(p);
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), 0);
	memset(&f, 0, sizeof(f));
	for (uint32_t len = 14; len <= 61 && check_ok(); len++) {
		give_recvs(&p->b, 1);
		memset(f.data, 0xa5, len);
		memcpy(f.data, p->b.md->mac, 6);
		put_bytes(&p->a, 0, f.data, len);
		send_length(p, len, QHCA_WC_SUCCESS);
		f.len = len < 60 ? 60 : len;
		EXPECT_FRAME(&p->b, &f);
	}
}

static void lengths_and_opcodes(struct pair *p)
{
	const struct qhca_wqe_bind bind = { 0 };
	const struct qhca_wqe_reg reg = { 0 };
	struct md_wr wr = { .bind = &bind, .reg = &reg };
	struct qhca_cqe cqe;

	connect_pair(p);
	send_length(p, 13, QHCA_WC_LOC_LEN_ERR);
	send_length(p, 14, QHCA_WC_SUCCESS);
	send_length(p, 4200 + 18, QHCA_WC_SUCCESS);
	send_length(p, 4200 + 19, QHCA_WC_LOC_LEN_ERR);
	for (wr.opcode = 1; wr.opcode < QHCA_WQE_NUM_OPCODES; wr.opcode++) {
		if (wr.opcode == QHCA_WQE_NOP)
			continue;
		post_wr(&p->a, &wr);
		settle(p);
		CHECK(md_poll(&p->a.scq, &cqe));
		CHECK_EQ(cqe.status, QHCA_WC_LOC_QP_OP_ERR);
		CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RTS, 0, NULL),
			 0);
	}
}

static void rules_refused(struct pair *p)
{
	const struct pair_options rc = { .type = QHCA_QPT_RC };
	struct qhca_flow rule = { 0 };
	uint32_t qpn = p->b.qp.qpn;

	CHECK_EQ(add_rule(&p->b, 64, qpn, &rule), QHCA_CMD_BAD_INDEX);
	CHECK_EQ(add_rule(&p->b, 0, qpn + 50, &rule), QHCA_CMD_BAD_PARAM);
	rule.type = QHCA_FLOW_NUM_TYPES;
	CHECK_EQ(add_rule(&p->b, 0, qpn, &rule), QHCA_CMD_BAD_PARAM);
	rule = (struct qhca_flow){ .layers = QHCA_FLOW_LAYERS + 1 };
	CHECK_EQ(add_rule(&p->b, 0, qpn, &rule), QHCA_CMD_BAD_PARAM);
	rule = (struct qhca_flow){ .flags = QHCA_FLOW_F_DONT_TRAP << 1 };
	CHECK_EQ(add_rule(&p->b, 0, qpn, &rule), QHCA_CMD_BAD_PARAM);
	CHECK_EQ(end_rule(&p->b, 0), QHCA_CMD_BAD_STATE);
	rule = (struct qhca_flow){ 0 };
	CHECK_EQ(add_rule(&p->b, 0, qpn, &rule), 0);
	CHECK_EQ(add_rule(&p->b, 0, qpn, &rule), QHCA_CMD_IN_USE);
	/* A reset removes all rules. */
	restart_pair(p, &rc);
	CHECK_EQ(end_rule(&p->b, 0), QHCA_CMD_BAD_STATE);
	CHECK_EQ(add_rule(&p->b, 0, p->b.qp.qpn, &rule), QHCA_CMD_BAD_PARAM);
}

#define RAW(fn, ...) { #fn, fn, { .type = QHCA_QPT_RAW, __VA_ARGS__ } }

const struct scenario raw_scenarios[] = {
	RAW(frames_cross), RAW(each_field_counts), RAW(ipv6_and_tcp),
	RAW(rules_in_order), RAW(other_types), RAW(sniffed_without_icrc),
	RAW(loops_back),
	RAW(no_room_drops), RAW(shared_receives, .srq = true),
	RAW(destroyed_under_traffic), RAW(states), RAW(short_frames_padded),
	RAW(lengths_and_opcodes), RAW(rules_refused),
	{ 0 }
};
