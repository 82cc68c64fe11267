/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "stage2_net.h"

#include <stdlib.h>
#include <string.h>

#define GUEST_MEM	(8u << 20)
#define REGION		(64u << 10)

/* ---- connections */

static void make_half(struct md *md, struct md_cq *cq, struct md_mr *mr,
		      struct md_qp *qp)
{
	struct md_qp_init qi = {
		.type = QHCA_QPT_RC, .pd = PAIR_PD, .flags = QHCA_QP_KERNEL,
		.sq_log_depth = 4, .sq_log_stride = 8, .rq_log_depth = 4,
		.rq_log_stride = 7, .send_cq = cq, .recv_cq = cq,
	};

	md_cq_create(md, cq, 8);
	md_reg_mr(md, mr, PAIR_PD, PAIR_IOVA, REGION, ALL_ACCESS);
	CHECK_EQ(md_qp_create(md, qp, &qi), 0);
}

void open_conn(struct conn *c, struct md *from, struct md *to)
{
	struct md_conn conn = {
		.sq_psn = 7, .rq_psn = 7, .mtu = QHCA_MTU_1024,
		.access = ALL_ACCESS, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 1, .max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
	};

	c->from = from;
	c->to = to;
	c->posted = 0;
	make_half(from, &c->from_cq, &c->from_mr, &c->from_qp);
	make_half(to, &c->to_cq, &c->to_mr, &c->to_qp);
	conn.dest_qpn = c->to_qp.qpn;
	md_av(from, &conn.av, to->mac[5], false);
	md_qp_connect(from, &c->from_qp, &conn);
	conn.dest_qpn = c->from_qp.qpn;
	md_av(to, &conn.av, from->mac[5], false);
	md_qp_connect(to, &c->to_qp, &conn);
}

void open_net(struct net *n, struct pair *p)
{
	const struct md_init init = { .scatter = true };
	struct qhca_config cfg;

	memset(n, 0, sizeof(*n));
	n->p = p;
	qhca_config_default(&cfg);
	cfg.log_max_qp = cfg.log_max_cq = 8;
	cfg.log_max_pt = 10;
	guests_init(&n->g, &p->w, p->a.md);
	for (uint16_t gvmi = 1; gvmi <= 2; gvmi++)
		guest_create(&n->g, gvmi, GUEST_MEM, &cfg);
	/* The physical function shows what it has for its guests. */
	restart_pair(p, &(struct pair_options){ .type = p->type,
						.roomy = true });
	for (uint16_t gvmi = 1; gvmi <= 2; gvmi++)
		guest_start(&n->g, gvmi, &init);
	n->vf = n->g.guest[1].md;
	n->other = n->g.guest[2].md;
	open_conn(&n->first, p->b.md, n->vf);
	open_conn(&n->second, p->b.md, n->vf);
	open_conn(&n->to_other, p->b.md, n->other);
	open_conn(&n->to_pf, p->b.md, p->a.md);
}

void close_net(struct net *n)
{
	CHECK(!n->g.error[0]);
	if (n->g.error[0])
		note("%s", n->g.error);
	guests_destroy(&n->g);
}

void pass(struct net *n, uint64_t ns)
{
	struct world *w = &n->p->w;

	for (uint64_t end = w->now + ns; w->now < end;) {
		world_wait(w, w->now + 20000 < end ? w->now + 20000 : end);
		guests_work(&n->g);
	}
}

static uint8_t byte_of(uint32_t i, uint32_t seed)
{
	return (uint8_t)(i * 7 + seed * 31 + 1);
}

void write_to(struct conn *c, uint64_t addr, uint32_t rkey, uint32_t len)
{
	struct md_sge sge = { c->from_mr.iova, len, c->from_mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.wr_id = c->posted, .num_sge = 1, .sge = &sge, .raddr = addr,
		.rkey = rkey,
	};
	uint8_t *data = malloc(len);

	c->posted++;
	for (uint32_t i = 0; i < len; i++)
		data[i] = byte_of(i, c->posted);
	md_buf_write(c->from, &c->from_mr.buf, 0, data, len);
	free(data);
	md_post_send(c->from, &c->from_qp, &wr);
	md_ring(c->from, &c->from_qp);
}

void write_own(struct conn *c)
{
	write_to(c, c->to_mr.iova + 100, c->to_mr.key, BYTES);
}

bool completed(struct conn *c)
{
	struct qhca_cqe cqe;

	if (!md_poll(&c->from_cq, &cqe))
		return false;
	CHECK_EQ(cqe.status, 0);
	CHECK_EQ(get_le64(&cqe.wr_id), c->posted - 1);
	return true;
}

bool same(const uint8_t *got, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		if (got[i] != byte_of(i, seed))
			return false;
	return true;
}

bool arrived(struct conn *c)
{
	uint8_t got[BYTES];

	md_buf_read(c->to, &c->to_mr.buf, 100, got, BYTES);
	return same(got, BYTES, c->posted);
}

void check_goes_on(int line, struct net *n, struct conn *c, uint64_t ns)
{
	write_own(c);
	pass(n, ns);
	if (!completed(c) || !arrived(c))
		check_failed(line, "function %u does not go on",
			     c->to->host.gvmi);
}

void warm_up(struct net *n)
{
	struct conn *c[] = { &n->first, &n->second, &n->to_other, &n->to_pf };

	for (int i = 0; i < 4; i++)
		check_goes_on(__LINE__, n, c[i], 100 * MS);
}

void others_go_on(struct net *n)
{
	CHECK_GOES_ON(n, &n->second);
	CHECK_GOES_ON(n, &n->to_other);
	CHECK_GOES_ON(n, &n->to_pf);
}

uint64_t count1(struct net *n, enum qhca_counter id)
{
	return guest_count(&n->g, 1, id);
}

int resume2(struct net *n, uint32_t token, uint32_t how)
{
	return md_cmd(n->p->a.md, QHCA_CMD_STAGE2_RESUME, token,
		      how | 1 << 16, NULL, 0, NULL, 0, NULL);
}

const struct qhca_fault_info *only_fault(struct net *n)
{
	CHECK_EQ(n->g.num_asks, 1);
	CHECK_EQ(get_le32(&n->g.ask[0].eqe.number), 1);
	CHECK_EQ(get_le32(&n->g.ask[0].eqe.detail), QHCA_STAGE2_PRESENT);
	return &n->g.ask[0].eqe.fault;
}

void serve_faults(struct net *n)
{
	n->g.absent = false;
	pass(n, 100 * MS);
	CHECK_EQ(n->g.num_asks, 0);
}
