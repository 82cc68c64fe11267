/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bundles of functions of one adapter: each function has its own agreements, and the
 * settings of the host domain hold for them.
 *
 * The functions of the first host write to the second host, where each of them has a place
 * and a QP.  All of it lies in the pair's regions, which have equal addresses everywhere.
 */
#include <string.h>

#include "bundles.h"

#define VFS		2u
#define FNS		(1 + VFS)
#define VF_MEM		(8u << 20)
#define VLAN		7

struct function {
	struct md *md;			/* NULL: it has been taken away */
	struct md_cq cq, far_cq;
	struct md_mr mr;
	struct md_qp qp, far;		/* @far: on the second host */
	uint32_t posted;
};

struct adapter {
	struct pair *p;
	struct seen s;
	struct function fn[FNS];	/* by GVMI */
};

static const struct md_init init = { .scatter = true };

static uint32_t place_of(unsigned int i)
{
	return 8192 * (i + 1);
}

/* The octet by which struct seen knows the function. */
static uint8_t number_of(const struct adapter *a, unsigned int i)
{
	return a->fn[i].md->mac[5];
}

static void make_ends(struct adapter *a, unsigned int i)
{
	struct function *f = &a->fn[i];
	struct md_qp_init qi = {
		.type = QHCA_QPT_RC, .pd = PAIR_PD, .sq_log_depth = 4,
		.sq_log_stride = 7, .rq_log_depth = 2, .rq_log_stride = 7,
	};

	md_cq_create(f->md, &f->cq, 6);
	md_reg_mr(f->md, &f->mr, PAIR_PD, PAIR_IOVA, PAIR_LEN, ALL_ACCESS);
	qi.send_cq = qi.recv_cq = &f->cq;
	CHECK_EQ(md_qp_create(f->md, &f->qp, &qi), 0);
	f->posted = 0;
}

/* @net: of the addresses, of entry @gid of the function's table and @far_gid of b's. */
static void connect_ends(struct adapter *a, unsigned int i, uint8_t net,
			 uint32_t gid, uint32_t far_gid)
{
	struct function *f = &a->fn[i];
	struct md_conn conn = {
		.sq_psn = 5, .rq_psn = 5, .mtu = QHCA_MTU_1024,
		.access = ALL_ACCESS, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 1, .max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
	};

	conn.dest_qpn = f->far.qpn;
	md_av_net(f->md, &conn.av, a->p->b.md->mac[5], gid, net, false);
	md_qp_connect(f->md, &f->qp, &conn);
	conn.dest_qpn = f->qp.qpn;
	md_av_net(a->p->b.md, &conn.av, number_of(a, i), far_gid, net, false);
	md_qp_connect(a->p->b.md, &f->far, &conn);
}

static void reset_ends(struct adapter *a, unsigned int i)
{
	struct function *f = &a->fn[i];

	CHECK_EQ(md_qp_modify(f->md, &f->qp, QHCA_QPS_RESET, 0, NULL), 0);
	CHECK_EQ(md_qp_modify(a->p->b.md, &f->far, QHCA_QPS_RESET, 0, NULL), 0);
	f->posted = 0;
}

static void make_far(struct adapter *a, unsigned int i)
{
	struct function *f = &a->fn[i];
	struct md_qp_init qi = {
		.type = QHCA_QPT_RC, .pd = PAIR_PD, .sq_log_depth = 4,
		.sq_log_stride = 7, .rq_log_depth = 2, .rq_log_stride = 7,
		.send_cq = &f->far_cq, .recv_cq = &f->far_cq,
	};

	md_cq_create(a->p->b.md, &f->far_cq, 6);
	CHECK_EQ(md_qp_create(a->p->b.md, &f->far, &qi), 0);
}

static void open_functions(struct adapter *a, struct pair *p)
{
	struct qhca_config cfg;

	memset(a, 0, sizeof(*a));
	a->p = p;
	a->fn[0].md = p->a.md;
	qhca_config_default(&cfg);
	cfg.log_max_qp = cfg.log_max_cq = 8;
	cfg.log_max_pt = 10;
	for (uint16_t gvmi = 1; gvmi < FNS; gvmi++) {
		a->fn[gvmi].md = md_create_vf(p->a.md, gvmi, VF_MEM, &cfg);
		md_start(a->fn[gvmi].md, &init);
	}
	for (unsigned int i = 0; i < FNS; i++) {
		make_ends(a, i);
		make_far(a, i);
	}
	watch(p, &a->s);
}

static void close_functions(struct adapter *a)
{
	unwatch(a->p, &a->s);
	for (unsigned int i = 1; i < FNS; i++)
		md_destroy_vf(a->fn[i].md);
}

static void set_function(struct adapter *a, uint16_t gvmi, uint32_t fields,
			 uint16_t vlan, uint32_t max_rate)
{
	struct qhca_vf_config config = { 0 };

	put_le32(&config.fields, fields);
	put_le16(&config.vlan, vlan);
	put_le32(&config.max_rate, max_rate);
	CHECK_EQ(md_cmd(a->p->a.md, QHCA_CMD_SET_VF, gvmi, 0, &config,
			sizeof(config), NULL, 0, NULL), 0);
}

/* Function @i writes a message to b, or reads one; its data arrive. */
static void carry(struct adapter *a, unsigned int i, uint8_t opcode, uint8_t mark)
{
	struct function *f = &a->fn[i];
	struct end near = { .md = f->md, .mr = f->mr };
	bool read = opcode == QHCA_WQE_READ;
	struct md_sge sge = { f->mr.iova, MESSAGE, f->mr.key };
	struct md_wr wr = {
		.opcode = opcode, .flags = QHCA_WQE_F_SIGNALED,
		.wr_id = f->posted, .num_sge = 1, .sge = &sge,
		.raddr = a->p->b.mr.iova + place_of(i),
		.rkey = a->p->b.mr.key,
	};

	if (read)
		fill_at(&a->p->b, place_of(i), mark, MESSAGE);
	else
		fill_at(&near, 0, mark, MESSAGE);
	md_post_send(f->md, &f->qp, &wr);
	md_ring(f->md, &f->qp);
	run_for(a->p, SECOND / 10);
	EXPECT(&f->cq, f->posted, 0);
	f->posted++;
	if (read)
		CHECK(holds(&near, 0, mark, MESSAGE));
	else
		CHECK(holds(&a->p->b, place_of(i), mark, MESSAGE));
}

/* Frames that function @i has sent with a message of eight packets. */
static void expect_sent(int line, struct adapter *a, unsigned int i,
			uint8_t mark, bool bundle)
{
	uint8_t n = number_of(a, i);

	memset(a->s.of, 0, sizeof(a->s.of));
	carry(a, i, QHCA_WQE_WRITE, mark);
	if (a->s.of[n].bundles != bundle || a->s.of[n].single != (bundle ? 0 : 8))
		check_failed(line, "function %u sends %u bundles and %u packets",
			     i, a->s.of[n].bundles, a->s.of[n].single);
}
#define EXPECT_BUNDLE(a, i, mark) expect_sent(__LINE__, a, i, mark, true)
#define EXPECT_PACKETS(a, i, mark) expect_sent(__LINE__, a, i, mark, false)

/* What one function agrees upon is not another's, and neither is what it forgets. */
static void each_its_own(struct pair *p)
{
	static struct adapter a;

	open_functions(&a, p);
	for (unsigned int i = 0; i < FNS; i++)
		connect_ends(&a, i, 0, 0, 0);
	for (unsigned int i = 0; i < FNS; i++) {
		EXPECT_PACKETS(&a, i, (uint8_t)(1 + i));
		CHECK_EQ(a.s.of[number_of(&a, i)].asks, 1);
		for (unsigned int j = 0; j < FNS; j++)
			CHECK(j == i || !a.s.of[number_of(&a, j)].asks);
	}
	for (unsigned int i = 0; i < FNS; i++)
		EXPECT_BUNDLE(&a, i, (uint8_t)(11 + i));
	/* Host b asks each of them when it answers its READs. */
	CHECK_EQ(a.s.asks_of[1], 0);
	for (unsigned int i = 0; i < FNS; i++) {
		carry(&a, i, QHCA_WQE_READ, (uint8_t)(20 + i));
		CHECK_EQ(a.s.asks_of[1], i + 1);
	}
	a.s.of[p->b.md->mac[5]].bundles = 0;
	for (unsigned int i = 0; i < FNS; i++)
		carry(&a, i, QHCA_WQE_READ, (uint8_t)(30 + i));
	CHECK_EQ(a.s.of[p->b.md->mac[5]].bundles, FNS);
	/* Agreements of others go on beside one that is made anew. */
	sleep_for(p, SECOND / 5);
	reset_ends(&a, 0);
	connect_ends(&a, 0, 0, 0, 0);
	EXPECT_BUNDLE(&a, 1, 40);
	EXPECT_PACKETS(&a, 0, 41);
	EXPECT_BUNDLE(&a, 2, 42);
	close_functions(&a);
}

/* A function is reset while a message of bundles is under way. */
static void reset_in_the_middle(struct pair *p)
{
	static struct adapter a;
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE, .num_sge = 1 };
	struct md_sge sge;
	uint8_t n;

	open_functions(&a, p);
	n = number_of(&a, 1);
	for (unsigned int i = 0; i < FNS; i++) {
		connect_ends(&a, i, 0, 0, 0);
		EXPECT_PACKETS(&a, i, (uint8_t)(1 + i));
		EXPECT_BUNDLE(&a, i, (uint8_t)(11 + i));
	}
	sge = (struct md_sge){ a.fn[1].mr.iova, 3 * MESSAGE, a.fn[1].mr.key };
	wr.sge = &sge;
	wr.raddr = p->b.mr.iova + place_of(1);
	wr.rkey = p->b.mr.key;
	p->w.budget = 18;
	memset(a.s.of, 0, sizeof(a.s.of));
	md_post_send(a.fn[1].md, &a.fn[1].qp, &wr);
	md_ring(a.fn[1].md, &a.fn[1].qp);
	while (!a.s.of[n].bundles && world_step(&p->w, p->w.now + 1))
		;
	CHECK(a.s.of[n].bundles <= 2);
	qhca_reg_write(a.fn[1].md->host.hca, 1, QHCA_REG_CONTROL,
		       QHCA_CONTROL_RESET, p->w.now);
	p->w.budget = 64;
	memset(a.s.of, 0, sizeof(a.s.of));
	run_for(p, SECOND / 10);
	CHECK_EQ(a.s.of[n].bundles + a.s.of[n].single, 0);
	EXPECT_BUNDLE(&a, 0, 21);
	EXPECT_BUNDLE(&a, 2, 22);
	/* It is as new, and asks. */
	md_start(a.fn[1].md, &init);
	make_ends(&a, 1);
	CHECK_EQ(md_qp_modify(p->b.md, &a.fn[1].far, QHCA_QPS_RESET, 0, NULL), 0);
	connect_ends(&a, 1, 0, 0, 0);
	EXPECT_PACKETS(&a, 1, 23);
	CHECK_EQ(a.s.of[n].asks, 1);
	EXPECT_BUNDLE(&a, 1, 24);
	close_functions(&a);
}

/* The host domain gives a function a rate: its bytes are paid for packet by packet. */
static void limited_function(struct pair *p)
{
	static struct adapter a;

	open_functions(&a, p);
	for (unsigned int i = 0; i < FNS; i++)
		connect_ends(&a, i, 0, 0, 0);
	set_function(&a, 1, QHCA_VF_SET_RATE, 0, 1000);
	for (unsigned int i = 0; i < FNS; i++)
		EXPECT_PACKETS(&a, i, (uint8_t)(1 + i));
	EXPECT_PACKETS(&a, 1, 11);
	CHECK_EQ(a.s.of[number_of(&a, 1)].asks, 0);
	EXPECT_BUNDLE(&a, 0, 12);
	EXPECT_BUNDLE(&a, 2, 13);
	/* Its peers owe it no such care. */
	carry(&a, 1, QHCA_WQE_READ, 14);
	memset(a.s.of, 0, sizeof(a.s.of));
	carry(&a, 1, QHCA_WQE_READ, 15);
	CHECK_EQ(a.s.of[p->b.md->mac[5]].bundles, 1);
	/* Without a limit it may ask; with one again, what it knows is of no use. */
	set_function(&a, 1, QHCA_VF_SET_RATE, 0, 0);
	EXPECT_PACKETS(&a, 1, 16);
	EXPECT_BUNDLE(&a, 1, 17);
	set_function(&a, 1, QHCA_VF_SET_RATE, 0, 1000);
	EXPECT_PACKETS(&a, 1, 18);
	CHECK_EQ(a.s.of[number_of(&a, 1)].asks, 0);
	close_functions(&a);
}

/* What is sent in a VLAN of the port has its tag, of which the function knows nothing. */
static void port_vlan(struct pair *p)
{
	static struct adapter a;

	open_functions(&a, p);
	set_function(&a, 1, QHCA_VF_SET_VLAN, VLAN, 0);
	/* Host b has an address in that VLAN, and its function in none. */
	CHECK_EQ(md_set_gid(p->b.md, 2, 1, false, VLAN), 0);
	CHECK_EQ(md_set_gid(a.fn[1].md, 2, 1, false, QHCA_GID_NO_VLAN), 0);
	connect_ends(&a, 0, 0, 0, 0);
	connect_ends(&a, 1, 1, 2, 2);
	EXPECT_PACKETS(&a, 1, 1);
	CHECK_EQ(get_be16(a.s.last[PEER_ASK].data + 14) & 0xfff, VLAN);
	for (int kind = PEER_ASK; kind < PEER_KINDS; kind++)
		CHECK_EQ(get_be16(a.s.last[kind].data + 12), 0x8100);
	CHECK_EQ(a.s.last[PEER_PROBE].len, 16384 + PEER_OVERHEAD + 4);
	EXPECT_BUNDLE(&a, 1, 2);
	/* Host b knows the function in that VLAN alone. */
	EXPECT_PACKETS(&a, 0, 3);
	EXPECT_BUNDLE(&a, 0, 4);
	carry(&a, 1, QHCA_WQE_READ, 5);
	memset(a.s.of, 0, sizeof(a.s.of));
	carry(&a, 1, QHCA_WQE_READ, 6);
	CHECK_EQ(a.s.of[p->b.md->mac[5]].bundles, 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_dropped), 0);
	CHECK_EQ(qhca_counter(p->a.md->host.hca, 1, QHCA_CNT_rx_dropped), 0);
	close_functions(&a);
}

/* A function's own VLAN: an agreement without a tag says nothing about it. */
static void own_vlan(struct pair *p)
{
	static struct adapter a;

	open_functions(&a, p);
	CHECK_EQ(md_set_gid(p->b.md, 2, 1, false, VLAN), 0);
	CHECK_EQ(md_set_gid(a.fn[1].md, 2, 1, false, VLAN), 0);
	connect_ends(&a, 1, 0, 0, 0);
	EXPECT_PACKETS(&a, 1, 1);
	EXPECT_BUNDLE(&a, 1, 2);
	CHECK_EQ(get_be16(a.s.last[PEER_ASK].data + 12), PEER_TYPE);
	reset_ends(&a, 1);
	connect_ends(&a, 1, 1, 2, 2);
	EXPECT_PACKETS(&a, 1, 3);
	CHECK_EQ(get_be16(a.s.last[PEER_ASK].data + 14), VLAN);
	EXPECT_BUNDLE(&a, 1, 4);
	close_functions(&a);
}

/* @md receives what nobody owns, or does not any more. */
static void set_promiscuous(struct md *md, bool on)
{
	struct qhca_port_config port = { 0 };

	put_le32(&port.fields, QHCA_PORT_SET_RX);
	put_le32(&port.rx_flags, QHCA_RX_ENABLE | (on ? QHCA_RX_PROMISC : 0));
	CHECK_EQ(md_cmd(md, QHCA_CMD_SET_PORT, 0, 0, &port, sizeof(port), NULL, 0,
			NULL), 0);
}

/* A function that gets copies of what others send gets them as packets. */
static void promiscuous_neighbour(struct pair *p)
{
	struct qhca_vf_config trusted = { 0 };
	static struct adapter a;

	open_functions(&a, p);
	for (unsigned int i = 0; i < FNS; i++) {
		connect_ends(&a, i, 0, 0, 0);
		EXPECT_PACKETS(&a, i, (uint8_t)(1 + i));
		EXPECT_BUNDLE(&a, i, (uint8_t)(11 + i));
	}
	put_le32(&trusted.fields, QHCA_VF_SET_TRUST);
	put_le16(&trusted.flags, QHCA_VF_TRUST);
	CHECK_EQ(md_cmd(p->a.md, QHCA_CMD_SET_VF, 2, 0, &trusted,
			sizeof(trusted), NULL, 0, NULL), 0);
	set_promiscuous(a.fn[2].md, true);
	EXPECT_PACKETS(&a, 0, 20);
	EXPECT_PACKETS(&a, 1, 21);
	set_promiscuous(a.fn[2].md, false);
	EXPECT_BUNDLE(&a, 0, 22);
	EXPECT_BUNDLE(&a, 1, 23);
	/* Other settings, and it asks anew. */
	EXPECT_PACKETS(&a, 2, 24);
	EXPECT_BUNDLE(&a, 2, 25);
	close_functions(&a);
}

/*
 * The same of the only function of an adapter, such as one whose guest captures what it
 * receives: nobody gets copies of what it sends.
 */
static void promiscuous_alone(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	set_promiscuous(p->a.md, true);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	CHECK_EQ(s.asks_of[0], 1);
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(s.single, 0);
	unwatch(p, &s);
}

/* Functions @from and @to of the adapter are connected with each other. */
static void connect_neighbours(struct adapter *a, unsigned int from, unsigned int to)
{
	struct function *f[2] = { &a->fn[from], &a->fn[to] };

	for (unsigned int i = 0; i < 2; i++) {
		struct md_conn conn = md_conn_rc();

		conn.dest_qpn = f[!i]->qp.qpn;
		md_av_net(f[i]->md, &conn.av, f[!i]->md->mac[5], 0, 0, false);
		md_qp_connect(f[i]->md, &f[i]->qp, &conn);
	}
}

/* Function @from writes to function @to, or reads from it. */
static void carry_inside(struct adapter *a, unsigned int from, unsigned int to,
			 uint8_t opcode, uint8_t mark)
{
	struct function *f = &a->fn[from], *g = &a->fn[to];
	struct end near = { .md = f->md, .mr = f->mr };
	struct end far = { .md = g->md, .mr = g->mr };
	bool read = opcode == QHCA_WQE_READ;
	struct md_sge sge = { f->mr.iova, MESSAGE, f->mr.key };
	struct md_wr wr = {
		.opcode = opcode, .flags = QHCA_WQE_F_SIGNALED,
		.wr_id = f->posted, .num_sge = 1, .sge = &sge,
		.raddr = g->mr.iova + 32768, .rkey = g->mr.key,
	};

	fill_at(read ? &far : &near, read ? 32768 : 0, mark, MESSAGE);
	md_post_send(f->md, &f->qp, &wr);
	md_ring(f->md, &f->qp);
	run_for(a->p, SECOND / 10);
	EXPECT(&f->cq, f->posted, 0);
	f->posted++;
	CHECK(holds(read ? &near : &far, read ? 0 : 32768, mark, MESSAGE));
}

/* What functions of one adapter say to each other is packets, and none asks another. */
static void neighbours_talk(struct pair *p)
{
	static struct adapter a;

	open_functions(&a, p);
	connect_neighbours(&a, 1, 2);
	for (uint8_t i = 0; i < 4; i++) {
		carry_inside(&a, 1, 2, QHCA_WQE_WRITE, i);
		carry_inside(&a, 1, 2, QHCA_WQE_READ, (uint8_t)(10 + i));
		carry_inside(&a, 2, 1, QHCA_WQE_WRITE, (uint8_t)(20 + i));
	}
	reset_ends(&a, 1);
	connect_neighbours(&a, 0, 1);
	carry_inside(&a, 0, 1, QHCA_WQE_WRITE, 30);
	carry_inside(&a, 0, 1, QHCA_WQE_WRITE, 31);
	CHECK_EQ(qhca_query_bundles(p->a.md->host.hca).messages, 0);
	CHECK_EQ(qhca_query_bundles(p->a.md->host.hca).sent, 0);
	CHECK_EQ(qhca_query_bundles(p->a.md->host.hca).received, 0);
	CHECK_EQ(a.s.asks_of[0], 0);
	close_functions(&a);
}

/* Neither does a function ask itself. */
static void talks_to_itself(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	for (uint8_t i = 0; i < 3; i++)
		transfer(p, QHCA_WQE_WRITE, MESSAGE, i);
	EXPECT(&p->a.scq, 0, 0, 0, 0);
	CHECK_EQ(qhca_query_bundles(p->a.md->host.hca).messages, 0);
	CHECK_EQ(qhca_query_bundles(p->a.md->host.hca).sent, 0);
	unwatch(p, &s);
}

/*
 * In a VLAN of the port the switch refuses what the function has given a tag: its packets,
 * and it asks nobody either.
 */
static void own_tag_in_port_vlan(struct pair *p)
{
	static struct adapter a;
	struct function *f = &a.fn[1];
	struct md_sge sge;
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.num_sge = 1, .sge = &sge, .rkey = p->b.mr.key,
	};

	open_functions(&a, p);
	set_function(&a, 1, QHCA_VF_SET_VLAN, VLAN, 0);
	CHECK_EQ(md_set_gid(p->b.md, 2, 1, false, VLAN), 0);
	CHECK_EQ(md_set_gid(f->md, 2, 1, false, VLAN), 0);
	connect_ends(&a, 1, 1, 2, 2);
	sge = (struct md_sge){ f->mr.iova, MESSAGE, f->mr.key };
	wr.raddr = p->b.mr.iova + place_of(1);
	md_post_send(f->md, &f->qp, &wr);
	md_ring(f->md, &f->qp);
	run_for(p, 3 * SECOND);
	EXPECT(&f->cq, 0, QHCA_WC_RETRY_EXC_ERR);
	CHECK_EQ(qhca_counter(p->a.md->host.hca, 1, QHCA_CNT_switch_dropped), 8 * 8);
	CHECK_EQ(qhca_query_bundles(p->a.md->host.hca).messages, 0);
	close_functions(&a);
}

#define ADAPTER(fn) NAMED(RC, #fn, fn, .roomy = true, BUNDLES)

const struct scenario bundle_function_scenarios[] = {
	ADAPTER(each_its_own), ADAPTER(reset_in_the_middle),
	ADAPTER(limited_function), ADAPTER(port_vlan), ADAPTER(own_vlan),
	ADAPTER(promiscuous_neighbour), ADAPTER(promiscuous_alone),
	ADAPTER(neighbours_talk), ADAPTER(own_tag_in_port_vlan),
	RC(talks_to_itself, .loop = true, .hosts = 1, BUNDLES),
	{ 0 }
};
