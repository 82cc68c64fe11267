/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the device reads and writes in the records of a send queue and its CQ
 * (seed 003), and how often software has to ring, for the ways in which programs
 * post.  The simulator's host counts accesses by their addresses; the counters of
 * the device must say the same.
 */
#include "pair.h"

struct records {
	struct host_watch cq, sq, active;
};

static void watch(struct records *r, struct end *e)
{
	const struct md_qp *qp = &e->qp;

	e->md->host.watches = NULL;
	md_watch(e->md, &r->cq, &e->scq.buf, e->scq.rec_offset, 4);
	md_watch(e->md, &r->sq, &qp->buf, qp->rec_offset, 4);
	md_watch(e->md, &r->active, &qp->buf, qp->rec_offset + 64, 4);
}

static void post_signaled(struct pair *p)
{
	struct md_sge sge = { p->a.mr.iova, 8, p->a.mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.wr_id = p->a.qp.sq_pi, .num_sge = 1, .sge = &sge,
		.raddr = p->b.mr.iova + 32768, .rkey = p->b.mr.key,
	};

	md_post_send(p->a.md, &p->a.qp, &wr);
	md_ring(p->a.md, &p->a.qp);
}

#define REQUESTS	400u

struct pattern {
	const char *name;
	uint32_t window;	/* requests that the program may have outstanding */
	uint32_t every;		/* ns from post to post; 0: as soon as it may */
	uint32_t delay;		/* ns, of the link */
	/* the most accesses for REQUESTS requests */
	uint32_t rings, cq_reads, sq_reads, active_writes;
};

static void run_pattern(struct pair *p, const struct pattern *pattern)
{
	uint32_t done = 0, posted = 0;
	struct qhca_cqe cqe;

	while (done < REQUESTS && check_ok()) {
		if (posted < REQUESTS && posted - done < pattern->window) {
			post_signaled(p);
			posted++;
		}
		if (pattern->every)
			world_wait(&p->w, p->w.now + pattern->every);
		else if (posted - done == pattern->window || posted == REQUESTS)
			CHECK(world_step(&p->w, p->w.now + 1000));
		if (posted < REQUESTS && pattern->every &&
		    posted - done < pattern->window)
			continue;
		while (md_poll(&p->a.scq, &cqe)) {
			CHECK_EQ(cqe.status, 0);
			done++;
			if (pattern->every)
				break;
		}
	}
}

static void check_most(const struct pattern *pattern, const char *what,
		       uint64_t is, uint64_t most)
{
	note("%s: %llu %s", pattern->name, (unsigned long long)is, what);
	if (is > most)
		check_failed(__LINE__, "%s: %llu %s, at most %llu",
			     pattern->name, (unsigned long long)is, what,
			     (unsigned long long)most);
}

static void one_pattern(struct pair *p, const struct pattern *pattern)
{
	const struct pair_options o = {
		.type = QHCA_QPT_RC, .roomy = true,
	};
	struct records r;

	restart_pair(p, &o);
	p->w.link.delay = pattern->delay;
	watch(&r, &p->a);
	connect_pair(p);
	run_pattern(p, pattern);
	p->a.md->host.watches = NULL;
	check_most(pattern, "doorbells", count_of(&p->a, QHCA_CNT_sq_doorbells),
		   pattern->rings);
	check_most(pattern, "reads of the CQ's index", r.cq.reads,
		   pattern->cq_reads);
	check_most(pattern, "reads of the send queue's index", r.sq.reads,
		   pattern->sq_reads);
	check_most(pattern, "writes of sq_active", r.active.writes,
		   pattern->active_writes);
	/* The device counts each of its accesses. */
	CHECK_EQ(r.cq.reads, count_of(&p->a, QHCA_CNT_cq_refetches));
	CHECK_EQ(r.sq.reads, count_of(&p->a, QHCA_CNT_sq_refetches));
	CHECK_EQ(r.active.writes, count_of(&p->a, QHCA_CNT_sq_active_writes));
	CHECK_EQ(r.cq.reads + r.sq.reads, count_of(&p->a, QHCA_CNT_refetches));
}

static void reads_and_rings(struct pair *p)
{
	static const struct pattern patterns[] = {
		{ "one at a time", 1, 0, 5000, 400, 6, 1, 0 },
		{ "one at a time, near", 1, 5000, 500, 400, 6, 1, 0 },
		{ "two", 2, 0, 5000, 400, 16, 1140, 760 },
		{ "two, near", 2, 5000, 500, 400, 60, 800, 520 },
		{ "four, near", 4, 5000, 500, 4, 10, 700, 4 },
		{ "window of 16", 16, 0, 5000, 16, 10, 120, 2 },
		{ "window of 64", 64, 0, 5000, 64, 10, 80, 2 },
		{ "window of 16, near", 16, 5000, 500, 4, 60, 700, 4 },
		{ "window of 60, near", 60, 5000, 500, 4, 60, 700, 4 },
	};

	for (unsigned int i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
		one_pattern(p, &patterns[i]);
}

#define WINDOW		256u	/* packets that a QP may have unacknowledged */

/*
 * The device reads each WQE once, although a whole window of them waits for
 * acknowledgements: what an acknowledgement needs of a WQE, the device keeps.
 */
static void whole_window(struct pair *p)
{
	struct host_watch page[(WINDOW << 8) / HOST_PAGE];
	uint64_t reads = 0;

	p->w.link.delay = 100000;
	connect_pair(p);
	for (uint32_t i = 0; i < sizeof(page) / sizeof(*page); i++)
		md_watch(p->a.md, &page[i], &p->a.qp.buf, i * HOST_PAGE,
			 HOST_PAGE);
	for (uint32_t i = 0; i < WINDOW; i++)
		post_signaled(p);
	settle(p);
	p->a.md->host.watches = NULL;
	for (uint32_t i = 0; i < sizeof(page) / sizeof(*page); i++)
		reads += page[i].reads;
	for (uint32_t i = 0; i < WINDOW; i++) {
		struct qhca_cqe cqe;

		CHECK(md_poll(&p->a.scq, &cqe) && !cqe.status);
	}
	note("%u requests at once: %llu reads of the send queue", WINDOW,
	     (unsigned long long)reads);
	CHECK_EQ(reads, WINDOW);
}

const struct scenario economy_scenarios[] = {
	RC(reads_and_rings),
	RC(whole_window, .roomy = true, .log_sq = 8, .log_cq = 9),
	{ 0 }
};
