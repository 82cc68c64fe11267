/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * When the device reads the software pointer of a receive queue again (seed
 * 003), for each threshold there is: not while as many are left as the
 * threshold says, at the first access with fewer, and once for each pass of
 * the rest of the queue when software keeps it full.  No receive is announced
 * by a doorbell, and none is refused that lies in memory.  The same for
 * completion queues is in unit/test_cq.c.
 */
#include "pair.h"

#define LOG_DEPTH	4
#define ACCESSES	160u

/* b gets a queue of the depth and threshold wanted. */
static void make_queue(struct pair *p, bool shared, uint32_t threshold)
{
	const struct pair_options o = { .type = QHCA_QPT_RC };
	struct md_qp_init init;

	restart_pair(p, &o);
	init = p->b.qp.init;
	init.rq_log_depth = LOG_DEPTH;
	init.rq_threshold = threshold;
	if (shared) {
		md_srq_create_threshold(p->b.md, &p->b.srq, PAIR_PD, LOG_DEPTH,
					6, threshold);
		init.srq = &p->b.srq;
	}
	CHECK_EQ(md_qp_destroy(p->b.md, &p->b.qp), 0);
	CHECK_EQ(md_qp_create(p->b.md, &p->b.qp, &init), 0);
	p->a.conn.dest_qpn = p->b.qp.qpn;
	connect_pair(p);
}

static uint64_t refetches(struct pair *p, bool shared)
{
	return count_of(&p->b, shared ? QHCA_CNT_srq_refetches :
						   QHCA_CNT_rq_refetches);
}

/* One message; its buffer is posted again at once, in memory alone. */
static void access_queue(struct pair *p, bool shared)
{
	struct qhca_cqe cqe;

	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK(md_poll(&p->a.scq, &cqe) && !cqe.status);
	CHECK(md_poll(&p->b.rcq, &cqe) && !cqe.status);
	if (shared)
		md_srq_free(p->b.md, &p->b.srq, get_le32(&cqe.wqe));
	post_recv(&p->b, 8);
}

static void one_threshold(struct pair *p, bool shared, uint32_t threshold)
{
	/* an SRQ holds one less than it has slots */
	uint32_t depth = (1u << LOG_DEPTH) - shared;
	/* accesses from one refetch, which finds the queue full, to the next */
	uint32_t period = threshold ? depth - threshold + 1 : depth;
	uint64_t want = 1;

	if (threshold > depth)
		period = 1;
	make_queue(p, shared, threshold);
	for (uint32_t i = 0; i < depth; i++)
		post_recv(&p->b, 8);
	for (uint32_t i = 0; i < ACCESSES && check_ok(); i++) {
		access_queue(p, shared);
		/* the first access finds nothing that the device knows of */
		if (i && i % period == 0)
			want++;
		if (refetches(p, shared) != want)
			check_failed(__LINE__, "threshold %u of %u: %llu refetches at access %u, not %llu",
				     threshold, depth, (unsigned long long)
				     refetches(p, shared), i,
				     (unsigned long long)want);
	}
	if (threshold < depth)
		CHECK((want - 1) * (depth - threshold) < ACCESSES);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_sq_doorbells), 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_doorbells_ignored), 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_rnr_no_wqe), 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_refetches_before_rnr),
		 threshold > 1 ? 1 : want);
}

static void thresholds_of_rq(struct pair *p)
{
	for (uint32_t t = 0; t <= 1u << LOG_DEPTH && check_ok(); t++)
		one_threshold(p, false, t);
}

static void thresholds_of_srq(struct pair *p)
{
	for (uint32_t t = 0; t <= 1u << LOG_DEPTH && check_ok(); t++)
		one_threshold(p, true, t);
}

/*
 * Past the threshold each access refetches once, whether it helps or not, and
 * what is truly empty is refused.
 */
static void refetch_in_vain(struct pair *p)
{
	uint64_t before;

	make_queue(p, false, 8);
	for (uint32_t i = 0; i < 8; i++)
		post_recv(&p->b, 8);
	before = count_of(&p->b, QHCA_CNT_refetches_unchanged);
	for (uint32_t i = 0; i < 8; i++) {
		struct qhca_cqe cqe;

		post(p, &p->a, QHCA_WQE_SEND, 8, 0);
		settle(p);
		CHECK(md_poll(&p->b.rcq, &cqe) && !cqe.status);
		CHECK_EQ(refetches(p, false), i + 1);
		CHECK_EQ(count_of(&p->b,
				      QHCA_CNT_refetches_unchanged) - before, i);
	}
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_rnr_no_wqe), 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	world_run(&p->w, p->w.now + 5000);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_rnr_no_wqe), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_refetches_before_rnr), 2);
}

const struct scenario threshold_scenarios[] = {
	RC(thresholds_of_rq), RC(thresholds_of_srq), RC(refetch_in_vain),
	{ 0 }
};
