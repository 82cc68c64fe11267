/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Functions of one adapter and their neighbours: RDMA between two VFs, between a VF and
 * its PF, and between a VF and another adapter.
 *
 * All functions number their objects from the same start, so that equal QPNs, CQNs and
 * key indices have different contents in each of them.  Data are different, too, and
 * compared where they arrive.
 */
#include "pair.h"

#include <string.h>

/* these are the PF, two VFs, and the other adapter's PF */
#define ENDS		4u
#define VF_MEM		(8u << 20)
#define BYTES		5000u
#define SLOT		8192u		/* of a region, by peer */
#define MS		1000000ull

/* What a function has for each of its peers: a QP, and places in its region. */
struct node {
	struct md *md;
	struct md_mr mr;
	struct md_cq cq;
	struct md_qp qp[ENDS];		/* qp[own number] is not used */
	uint8_t number;
};

struct net {
	struct pair *p;
	struct node node[ENDS];
	uint8_t type;
};

static void add_node(struct net *n, unsigned int i, struct md *md)
{
	struct node *d = &n->node[i];
	struct md_qp_init qi = {
		.type = n->type, .pd = PAIR_PD, .sq_log_depth = 4,
		.sq_log_stride = 8, .rq_log_depth = 4, .rq_log_stride = 7,
	};

	d->md = md;
	d->number = md->mac[5];
	md_cq_create(md, &d->cq, 8);
	md_reg_mr(md, &d->mr, PAIR_PD, PAIR_IOVA, PAIR_LEN, ALL_ACCESS);
	qi.send_cq = qi.recv_cq = &d->cq;
	for (unsigned int to = 0; to < ENDS; to++)
		CHECK_EQ(md_qp_create(md, &d->qp[to], &qi), 0);
}

static void connect(struct net *n, unsigned int a, unsigned int b)
{
	struct node *d = &n->node[a];
	struct md_conn conn = {
		.dest_qpn = n->node[b].qp[a].qpn, .sq_psn = 7, .rq_psn = 7,
		.mtu = QHCA_MTU_1024, .access = ALL_ACCESS, .timeout = 10,
		.retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 1,
		.max_rd_atomic = 4, .max_dest_rd_atomic = 4,
		.qkey = PAIR_QKEY,
	};

	md_av(d->md, &conn.av, n->node[b].number, false);
	md_qp_connect(d->md, &d->qp[b], &conn);
}

static void open_net(struct net *n, struct pair *p, uint8_t type)
{
	const struct md_init init = { .scatter = true };
	struct qhca_config cfg;

	memset(n, 0, sizeof(*n));
	n->p = p;
	n->type = type;
	qhca_config_default(&cfg);
	cfg.log_max_qp = cfg.log_max_cq = 8;
	cfg.log_max_pt = 10;
	add_node(n, 0, p->a.md);
	for (uint16_t gvmi = 1; gvmi <= 2; gvmi++) {
		struct md *md = md_create_vf(p->a.md, gvmi, VF_MEM, &cfg);

		md_start(md, &init);
		add_node(n, gvmi, md);
	}
	add_node(n, 3, p->b.md);
	for (unsigned int a = 0; a < ENDS; a++)
		for (unsigned int b = 0; b < ENDS; b++)
			if (a != b)
				connect(n, a, b);
}

static void close_net(struct net *n)
{
	md_destroy_vf(n->node[1].md);
	md_destroy_vf(n->node[2].md);
}

static uint8_t byte_of(unsigned int a, unsigned int b, uint32_t i)
{
	return (uint8_t)(i * 7 + a * 64 + b * 16 + 1);
}

/* The place of peer @b in the region of a function: what it gets, or what it sends. */
static uint32_t place(unsigned int b, bool sent)
{
	return (b + (sent ? ENDS : 0)) * SLOT;
}

/* Function @a writes to function @b. */
static void send_one(struct net *n, unsigned int a, unsigned int b)
{
	struct node *d = &n->node[a], *o = &n->node[b];
	struct md_sge sge = { d->mr.iova + place(b, true), BYTES, d->mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.wr_id = b, .num_sge = 1, .sge = &sge,
		.raddr = o->mr.iova + place(a, false), .rkey = o->mr.key,
	};
	uint8_t data[BYTES];

	for (uint32_t i = 0; i < BYTES; i++)
		data[i] = byte_of(a, b, i);
	md_buf_write(d->md, &d->mr.buf, place(b, true), data, BYTES);
	md_post_send(d->md, &d->qp[b], &wr);
	md_ring(d->md, &d->qp[b]);
}

static bool arrived(struct net *n, unsigned int a, unsigned int b)
{
	struct node *o = &n->node[b];
	uint8_t data[BYTES];

	md_buf_read(o->md, &o->mr.buf, place(a, false), data, BYTES);
	for (uint32_t i = 0; i < BYTES; i++)
		if (data[i] != byte_of(a, b, i))
			return false;
	return true;
}

static void pass(struct net *n, uint64_t ns)
{
	world_run(&n->p->w, n->p->w.now + ns);
}

static uint32_t good_completions(struct node *d)
{
	struct qhca_cqe cqe;
	uint32_t good = 0;

	while (md_poll(&d->cq, &cqe))
		good += !cqe.status;
	return good;
}

static uint64_t count_fn(struct net *n, unsigned int i, enum qhca_counter id)
{
	struct host *h = &n->node[i].md->host;

	return qhca_counter(h->hca, h->gvmi, id);
}

/* Everybody writes to everybody: data arrive, and only what is for others leaves. */
static void all_to_all(struct pair *p)
{
	struct net n;

	open_net(&n, p, p->type);
	for (unsigned int a = 0; a < ENDS; a++)
		for (unsigned int b = 0; b < ENDS; b++)
			if (a != b)
				send_one(&n, a, b);
	pass(&n, 100 * MS);
	for (unsigned int a = 0; a < ENDS; a++) {
		CHECK_EQ(good_completions(&n.node[a]), ENDS - 1);
		for (unsigned int b = 0; b < ENDS; b++)
			CHECK(a == b || arrived(&n, a, b));
		CHECK_EQ(count_fn(&n, a, QHCA_CNT_protection_errors), 0);
		CHECK_EQ(count_fn(&n, a, QHCA_CNT_rx_dropped), 0);
		CHECK(a == 3 || count_fn(&n, a, QHCA_CNT_switched_packets));
	}
	CHECK_EQ(count_fn(&n, 3, QHCA_CNT_switched_packets), 0);
	close_net(&n);
}

/* Numbers of objects and keys are equal in all functions, as the scenarios assume. */
static void same_numbers(struct pair *p)
{
	struct net n;

	open_net(&n, p, p->type);
	CHECK_EQ(n.node[1].mr.key >> 8, n.node[2].mr.key >> 8);
	CHECK_EQ(n.node[1].cq.cqn, n.node[2].cq.cqn);
	for (unsigned int i = 0; i < ENDS; i++)
		CHECK_EQ(n.node[1].qp[i].qpn, n.node[2].qp[i].qpn);
	close_net(&n);
}

/* The functions other than VF 1 exchange data while @upset happens to VF 1. */
static void beside(struct pair *p, void (*upset)(struct net *n))
{
	static const unsigned int others[] = { 0, 2, 3 };
	struct net n;

	open_net(&n, p, p->type);
	for (unsigned int a = 0; a < ENDS; a++)
		for (unsigned int b = 0; b < ENDS; b++)
			if (a != b)
				send_one(&n, a, b);
	pass(&n, 1500);			/* some frames are under way */
	upset(&n);
	pass(&n, 100 * MS);
	for (int i = 0; i < 3; i++) {
		struct node *d = &n.node[others[i]];

		CHECK(good_completions(d) >= 2);
		for (int j = 0; j < 3; j++)
			CHECK(i == j || arrived(&n, others[i], others[j]));
		CHECK(!md_dead(d->md));
	}
	close_net(&n);
}

static void reset_vf(struct net *n)
{
	qhca_reg_write(n->node[1].md->host.hca, 1, QHCA_REG_CONTROL,
		       QHCA_CONTROL_RESET, n->p->w.now);
}

static void disable_vf(struct net *n)
{
	qhca_vf_enable(n->node[1].md->host.hca, 1, false, n->p->w.now);
}

static void kill_vf(struct net *n)
{
	qhca_inject_fatal(n->node[1].md->host.hca, 1);
}

static void reset_beside(struct pair *p)
{
	beside(p, reset_vf);
}

static void disable_beside(struct pair *p)
{
	beside(p, disable_vf);
}

static void death_beside(struct pair *p)
{
	beside(p, kill_vf);
}

/* The PF is dead or reset; its VFs, and what they say to others, go on. */
static void without_pf(struct pair *p)
{
	struct net n;

	open_net(&n, p, p->type);
	for (unsigned int a = 1; a < ENDS; a++)
		for (unsigned int b = 1; b < ENDS; b++)
			if (a != b)
				send_one(&n, a, b);
	pass(&n, 1500);
	qhca_inject_fatal(p->a.md->host.hca, 0);
	pass(&n, 50 * MS);
	for (unsigned int a = 1; a < ENDS; a++)
		CHECK_EQ(good_completions(&n.node[a]), 2);
	CHECK(arrived(&n, 1, 2) && arrived(&n, 2, 3) && arrived(&n, 3, 1));
	qhca_reg_write(p->a.md->host.hca, 0, QHCA_REG_CONTROL,
		       QHCA_CONTROL_RESET, p->w.now);
	send_one(&n, 1, 2);
	send_one(&n, 2, 3);
	pass(&n, 50 * MS);
	CHECK_EQ(good_completions(&n.node[1]), 1);
	CHECK_EQ(good_completions(&n.node[2]), 1);
	close_net(&n);
	restart_pair(p, &(struct pair_options){ .type = p->type });
}

#define FUNCTIONS(fn) NAMED(RC, #fn, fn, .roomy = true)

const struct scenario function_scenarios[] = {
	FUNCTIONS(all_to_all), FUNCTIONS(same_numbers),
	NAMED(UC, "all_to_all_uc", all_to_all, .roomy = true),
	FUNCTIONS(reset_beside), FUNCTIONS(disable_beside),
	FUNCTIONS(death_beside), FUNCTIONS(without_pf),
	{ 0 }
};
