/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each access to host memory fails once, one after the other: the n-th access of a
 * run of work, for all n, first by itself and then with all that follow it.  Whichever
 * access fails, the engine must come to rest, complete each request exactly once or
 * report that it (or the CQ) is dead, report no success of a request that has failed,
 * and serve again after the driver has reset the QPs.
 */
#include <string.h>

#include "pair.h"

#define RECV_OFF	16384u
#define RECV_LEN	4000u
#define NUM_RECVS	3u
#define ATOMIC_OFF	45056u
#define LIMIT_NS	20000000000ull

struct step {
	uint8_t opcode;
	uint32_t len, local, remote;	/* offsets in the regions */
};

static const struct step rc_steps[] = {
	{ QHCA_WQE_SEND, 3000, 0, RECV_OFF },
	{ QHCA_WQE_WRITE, 3000, 3000, 32768 },
	{ QHCA_WQE_READ, 2500, 8192, 40960 },
	{ QHCA_WQE_FETCH_ADD, 8, 12288, ATOMIC_OFF },
	{ QHCA_WQE_WRITE_IMM, 500, 6000, 36864 },
	{ QHCA_WQE_READ, 5000, 49152, 55000 },
	{ QHCA_WQE_SEND, 100, 7000, RECV_OFF + 2 * RECV_LEN },
	{ 0 }
};

static const struct step uc_steps[] = {
	{ QHCA_WQE_SEND, 3000, 0, RECV_OFF },
	{ QHCA_WQE_WRITE, 3000, 3000, 32768 },
	{ QHCA_WQE_WRITE_IMM, 500, 6000, 36864 },
	{ QHCA_WQE_SEND, 100, 7000, RECV_OFF + 2 * RECV_LEN },
	{ 0 }
};

static const struct step ud_steps[] = {
	{ QHCA_WQE_SEND, 1000, 0, RECV_OFF },
	{ QHCA_WQE_SEND, 2000, 3000, RECV_OFF + RECV_LEN },
	{ QHCA_WQE_SEND, 100, 7000, RECV_OFF + 2 * RECV_LEN },
	{ 0 }
};

static const struct step *steps_of(const struct pair *p)
{
	return p->type == QHCA_QPT_RC ? rc_steps :
	       p->type == QHCA_QPT_UC ? uc_steps : ud_steps;
}

/* ---- the run */

static void fill_region(struct end *e, uint8_t seed)
{
	static uint8_t data[PAIR_LEN];

	for (uint32_t i = 0; i < PAIR_LEN; i++)
		data[i] = i * 37 + (i >> 8) + seed;
	put_bytes(e, 0, data, PAIR_LEN);
}

static void post_step(struct pair *p, struct end *e, const struct end *peer,
		      const struct step *s)
{
	struct md_sge sge = { e->mr.iova + s->local, s->len, e->mr.key };
	struct md_wr wr = {
		.opcode = s->opcode, .flags = QHCA_WQE_F_SIGNALED,
		.sge = &sge, .num_sge = 1, .raddr = PAIR_IOVA + s->remote,
		.rkey = peer->mr.key, .swap_add = 1,
		.ud = p->type == QHCA_QPT_UD ? &p->ud : NULL,
	};

	post_wr(e, &wr);
}

static void post_recvs(struct end *e)
{
	for (uint32_t i = 0; i < NUM_RECVS; i++) {
		struct md_sge sge = { e->mr.iova + RECV_OFF + i * RECV_LEN,
				      RECV_LEN, e->mr.key };

		if (e->qp.init.srq)
			md_srq_post(e->md, &e->srq, i, &sge, 1);
		else
			md_post_recv(e->md, &e->qp, i, &sge, 1);
	}
}

static uint32_t post_all(struct pair *p)
{
	const struct step *s = steps_of(p);
	uint32_t n = 0;

	fill_region(&p->a, 0);
	fill_region(&p->b, 99);
	post_recvs(&p->b);
	for (; s[n].len; n++)
		post_step(p, &p->a, &p->b, &s[n]);
	return n;
}

static void rest(int line, struct pair *p)
{
	uint64_t limit = p->w.now + LIMIT_NS;

	world_run(&p->w, limit);
	if (p->w.now >= limit)
		check_failed(line, "the engines do not come to rest");
}

/* ---- what it left */

static bool cq_ok(struct end *e, struct md_cq *cq)
{
	struct qhca_cqc c = { 0 };
	int status = md_cmd(e->md, QHCA_CMD_QUERY_CQ, cq->cqn, 0, NULL, 0, &c,
			    sizeof(c), NULL);

	return !status && get_le32(&c.state) == 1;
}

static bool same_bytes(struct end *x, uint32_t xo, struct end *y, uint32_t yo,
		       uint32_t len)
{
	uint8_t a[8192], b[8192];

	get_bytes(x, xo, a, len);
	get_bytes(y, yo, b, len);
	return !memcmp(a, b, len);
}

/* Checks that a request that completed with success has taken effect. */
static void check_effect(int line, struct pair *p, const struct step *s)
{
	uint8_t now[8];

	if (s->opcode == QHCA_WQE_FETCH_ADD) {
		get_bytes(&p->b, ATOMIC_OFF, now, 8);
		if ((uint8_t)(now[0] - 1) != (uint8_t)
		    (ATOMIC_OFF * 37 + (ATOMIC_OFF >> 8) + 99))
			check_failed(line, "atomic done, but not done");
		return;
	}
	if (!same_bytes(&p->a, s->local, &p->b, s->remote, s->len))
		check_failed(line, "opcode %u done, but bytes differ",
			     s->opcode);
}

/* Returns how many completed; checks order and effects. */
static uint32_t check_sends(int line, struct pair *p)
{
	const struct step *s = steps_of(p);
	struct qhca_cqe cqe;
	bool failed = false;
	uint32_t n = 0;

	for (; md_poll(&p->a.scq, &cqe); n++) {
		if (get_le64(&cqe.wr_id) != n)
			check_failed(line, "request %llu completes after %u",
				     (unsigned long long)get_le64(&cqe.wr_id), n);
		if (!cqe.status && failed)
			check_failed(line, "success after an error");
		if (!cqe.status && p->type == QHCA_QPT_RC)
			check_effect(line, p, &s[n]);
		failed |= cqe.status != 0;
	}
	return n;
}

static uint32_t check_receives(int line, struct pair *p)
{
	struct qhca_cqe cqe;
	uint32_t seen = 0;

	while (md_poll(&p->b.rcq, &cqe)) {
		uint32_t i = get_le64(&cqe.wr_id);

		if (i >= NUM_RECVS || seen >> i & 1)
			check_failed(line, "receive %u completes twice", i);
		seen |= 1u << i;
	}
	return __builtin_popcount(seen);
}

/* A QP that could not report a completion must be in error. */
static bool can_tell(int line, struct end *e, struct md_cq *cq)
{
	if (md_dead(e->md))
		return false;
	if (cq_ok(e, cq))
		return true;
	if (state_of(e) != QHCA_QPS_ERR)
		check_failed(line, "CQ in error, QP in state %d", state_of(e));
	return false;
}

/*
 * Software learns that the QP is in error: it rings the doorbell, and the device
 * flushes.
 */
static bool in_error(struct end *e)
{
	struct qhca_query_qp q = { 0 };

	CHECK_EQ(md_qp_query(e->md, &e->qp, &q), 0);
	if (q.ctx.state != QHCA_QPS_ERR && q.ctx.state != QHCA_QPS_SQE)
		return false;
	qhca_doorbell(e->md->host.hca, 0, 0, QHCA_DB_SQ,
		      (uint64_t)e->qp.sq_pi << 32 | e->qp.qpn, e->md->host.now);
	return true;
}

static void check_end(int line, struct pair *p, uint32_t posted)
{
	bool a_alive = !md_dead(p->a.md), b_alive = !md_dead(p->b.md);
	bool b_error = b_alive && in_error(&p->b);
	uint32_t sends, receives;

	if (a_alive)
		in_error(&p->a);
	rest(line, p);
	/* The failing access may fail it only once more. */
	a_alive = can_tell(line, &p->a, &p->a.scq);
	b_alive = can_tell(line, &p->b, &p->b.rcq);
	sends = check_sends(line, p);
	receives = check_receives(line, p);
	if (a_alive && sends != posted)
		check_failed(line, "%u completions of %u", sends, posted);
	if (b_alive && b_error && !p->b.qp.init.srq && receives != NUM_RECVS)
		check_failed(line, "%u receives of %u", receives, NUM_RECVS);
	if (a_alive && b_alive && cq_ok(&p->a, &p->a.rcq) &&
	    cq_ok(&p->b, &p->b.scq) && !p->b.qp.init.srq) {
		reconnect_pair(p, 12345);
		CHECK_WORKS(p);
	}
}

/* ---- the sweep */

/* Returns false if there is no n-th access. */
static bool fail_nth(struct pair *p, const struct pair_options *o, bool at_b,
		     uint64_t n, bool on)
{
	struct md *md;
	uint32_t posted;
	bool hit;

	restart_pair(p, o);
	connect_pair(p);
	md = at_b ? p->b.md : p->a.md;
	md->host.fail_in = n;
	md->host.fail_on = on;
	posted = post_all(p);
	rest(__LINE__, p);
	hit = md->host.failed;
	md->host.fail_in = md->host.failed = 0;
	check_end(__LINE__, p, posted);
	return hit;
}

static void sweep(struct pair *p, uint8_t type, bool srq)
{
	const struct pair_options o = { .type = type, .srq = srq };

	for (unsigned int how = 0; how < 4 && check_ok(); how++) {
		uint64_t n = 1;

		while (fail_nth(p, &o, how & 1, n, how >> 1) && check_ok())
			n++;
		if (!check_ok())
			note("access %llu of host %u, %s",
			     (unsigned long long)n, (how & 1) + 1,
			     how >> 1 ? "and all after it" : "once");
		CHECK(n > 10);
	}
	/* Without this the world could not be closed. */
	restart_pair(p, &o);
}

static void sweep_rc(struct pair *p)
{
	sweep(p, QHCA_QPT_RC, false);
}

static void sweep_rc_srq(struct pair *p)
{
	sweep(p, QHCA_QPT_RC, true);
}

static void sweep_uc(struct pair *p)
{
	sweep(p, QHCA_QPT_UC, false);
}

static void sweep_ud(struct pair *p)
{
	sweep(p, QHCA_QPT_UD, false);
}

const struct scenario dma_scenarios[] = {
	RC(sweep_rc), RC(sweep_rc_srq), RC(sweep_uc), RC(sweep_ud),
	{ 0 }
};
