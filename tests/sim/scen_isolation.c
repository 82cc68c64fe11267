/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A QP that waits for pages takes nothing from its neighbour: neither bandwidth
 * nor the time that the neighbour's slowest request takes.
 *
 * One QP asks for a page every so often, while another one between the same hosts
 * writes as fast as it can.  The page is there, then it is not and comes late;
 * software does the same work both times.  The clock is virtual, so that the
 * comparison does not depend on the machine.
 */
#include "cold.h"

#define LENGTH		100000000ull	/* ns of each measurement */
#define PERIOD		5000000ull	/* a page is asked for so often, and */
#define HELD		4000000ull	/* comes so much later */
#define BYTES		8000u		/* of the neighbour's WRITEs */

struct neighbour {
	struct end a, b;
	uint64_t posted;		/* when; 0: nothing is under way */
	uint32_t done;
	uint64_t worst;			/* ns from post to completion */
};

struct asker {
	struct cold c;
	struct end *e;			/* whose page it is */
	uint8_t opcode;
	bool absent;
	bool held;			/* the page is absent */
	uint64_t next;			/* when to ask, or to bring the page */
	uint32_t asked, faults;
};

static void neighbour_go(struct pair *p, struct neighbour *n)
{
	struct qhca_cqe cqe;

	if (n->posted && md_poll(&n->a.scq, &cqe)) {
		CHECK_EQ(cqe.status, 0);
		if (p->w.now - n->posted > n->worst)
			n->worst = p->w.now - n->posted;
		n->done++;
		n->posted = 0;
	}
	if (n->posted)
		return;
	n->posted = p->w.now;
	post_at(p, &n->a, QHCA_WQE_WRITE, n->a.mr.iova, n->a.mr.key, BYTES,
		n->b.mr.iova + 32768, n->b.mr.key);
}

static void ask(struct pair *p, struct asker *s)
{
	struct qhca_cqe cqe;

	CHECK(!s->asked++ || (md_poll(&p->a.scq, &cqe) && !cqe.status));
	md_odp_take(s->c.odp, 0);
	if (!s->absent)
		cold_map(&s->c);
	if (s->e == &p->a)
		post_at(p, &p->a, s->opcode, COLD_IOVA, s->c.odp->mr.key, 100,
			p->b.mr.iova, p->b.mr.key);
	else
		post_to_cold(p, &s->c, s->opcode, 100, 0);
}

/* Makes the page present if it is not, and resumes the QP that waits for it. */
static void bring(struct asker *s)
{
	struct qhca_fault_info f;
	uint32_t qpn;

	cold_map(&s->c);
	while (md_fault(s->e->md, &qpn, &f)) {
		CHECK_EQ(md_resume(s->e->md, get_le32(&f.token), true), 0);
		s->faults++;
	}
}

static void asker_go(struct pair *p, struct asker *s)
{
	if (p->w.now < s->next)
		return;
	if (s->held)
		bring(s);
	else
		ask(p, s);
	s->next += s->held ? PERIOD - HELD : HELD;
	s->held = !s->held;
}

static void measure(struct pair *p, struct neighbour *n, struct asker *s,
		    bool absent)
{
	uint64_t end = p->w.now + LENGTH;

	n->done = 0;
	n->worst = 0;
	s->absent = absent;
	s->asked = 0;
	s->faults = 0;
	s->held = false;
	s->next = p->w.now;
	while (p->w.now < end && check_ok()) {
		neighbour_go(p, n);
		asker_go(p, s);
		world_wait(&p->w, p->w.now + 1000);
	}
	CHECK_EQ(s->asked, LENGTH / PERIOD);
	CHECK_EQ(s->faults, absent ? s->asked : 0);
	settle(p);
	neighbour_go(p, n);
	settle(p);
}

/* What the neighbour gets beside @opcode, whose page is one of @e. */
static void beside(struct pair *p, uint8_t opcode, struct end *e)
{
	const struct pair_options o = { .type = QHCA_QPT_RC };
	struct asker s = { .e = e, .opcode = opcode };
	struct neighbour n = { 0 };
	struct qhca_cqe cqe;
	uint32_t present;
	uint64_t worst;

	p->a.conn.rnr_retry = 7;
	p->a.conn.retry_cnt = 7;
	connect_pair(p);
	open_second(p, &n.a, &n.b, &o);
	s.c = cold_make(e);
	measure(p, &n, &s, false);
	CHECK(md_poll(&p->a.scq, &cqe) && !cqe.status);
	present = n.done;
	worst = n.worst;
	measure(p, &n, &s, true);
	note("%u WRITEs, the slowest %llu ns; while pages are absent %u, %llu ns",
	     present, (unsigned long long)worst, n.done,
	     (unsigned long long)n.worst);
	/* The WRITEs are so many that the loss of a part of a period would show. */
	CHECK(present > 20 * LENGTH / PERIOD);
	CHECK(n.done >= present - present / 5);
	CHECK(n.worst <= 3 * worst && n.worst < HELD / 4);
	close_second(&n.a, &n.b);
}

static void write_beside(struct pair *p)
{
	beside(p, QHCA_WQE_WRITE, &p->b);
}

static void read_beside(struct pair *p)
{
	beside(p, QHCA_WQE_READ, &p->b);
}

static void gather_beside(struct pair *p)
{
	beside(p, QHCA_WQE_WRITE, &p->a);
}

static void scatter_beside(struct pair *p)
{
	beside(p, QHCA_WQE_READ, &p->a);
}

#define ISOLATION(fn, ...) NAMED(RC, "isolation: " #fn, fn, __VA_ARGS__)

const struct scenario isolation_scenarios[] = {
	ISOLATION(write_beside), ISOLATION(read_beside),
	ISOLATION(gather_beside), ISOLATION(scatter_beside),
	ISOLATION(write_beside, .loop = true),
	ISOLATION(gather_beside, .loop = true),
	{ 0 }
};
