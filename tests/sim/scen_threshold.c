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
	/* An SRQ holds one less than it has slots. */
	uint32_t depth = (1u << LOG_DEPTH) - shared;
	/* The period is the accesses from one refetch, which finds the queue full, to the next. */
	uint32_t period = threshold ? depth - threshold + 1 : depth;
	uint64_t want = 1;

	if (threshold > depth)
		period = 1;
	make_queue(p, shared, threshold);
	for (uint32_t i = 0; i < depth; i++)
		post_recv(&p->b, 8);
	for (uint32_t i = 0; i < ACCESSES && check_ok(); i++) {
		access_queue(p, shared);
		/* At the first access the device knows of no receive. */
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
 * Below the threshold each access refetches once, whether this yields an entry or not,
 * and the device refuses a request for which the queue is really empty.
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

/* ---- a refetch replaces all that software has written, not the pointer alone */

#define REC_THRESHOLD	4u		/* in records of CQs and SRQs */

/* An SRQ whose owner changes its threshold in memory. */
static void refetch_takes_threshold_of_srq(struct pair *p)
{
	const uint32_t full = (1u << LOG_DEPTH) - 1;
	struct qhca_srqc c;

	make_queue(p, true, 1);
	for (uint32_t i = 0; i < full; i++)
		post_recv(&p->b, 8);
	access_queue(p, true);
	CHECK_EQ(refetches(p, true), 1);
	md_buf_put32(p->b.md, &p->b.srq.buf,
		     p->b.srq.rec_offset + REC_THRESHOLD, full);
	/* The cached copy keeps the old threshold until a refetch replaces it. */
	for (uint32_t i = 1; i < full; i++)
		access_queue(p, true);
	CHECK_EQ(refetches(p, true), 1);
	access_queue(p, true);
	CHECK_EQ(refetches(p, true), 2);
	/* From now on two of three accesses find fewer receives than the threshold. */
	for (uint32_t i = 0; i < full; i++)
		access_queue(p, true);
	CHECK(refetches(p, true) >= 2 + full / 2);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_QUERY_SRQ, p->b.srq.srqn, 0, NULL, 0,
			&c, sizeof(c), NULL), 0);
	CHECK_EQ(get_le32(&c.sw.threshold), full);
	/* The device ignores a threshold beyond the depth, and a threshold of zero. */
	md_buf_put32(p->b.md, &p->b.srq.buf,
		     p->b.srq.rec_offset + REC_THRESHOLD, 17);
	access_queue(p, true);
	access_queue(p, true);
	md_buf_put32(p->b.md, &p->b.srq.buf,
		     p->b.srq.rec_offset + REC_THRESHOLD, 0);
	access_queue(p, true);
	access_queue(p, true);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_QUERY_SRQ, p->b.srq.srqn, 0, NULL, 0,
			&c, sizeof(c), NULL), 0);
	CHECK_EQ(get_le32(&c.sw.threshold), full);
}

/* A refetch for receives finds requests, and one for requests finds receives. */
static void refetch_takes_both_of_qp(struct pair *p)
{
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
	};
	struct qhca_cqe cqe;
	struct md_sge sge;

	make_queue(p, false, 1);
	sge = (struct md_sge){ p->b.mr.iova, 8, p->b.mr.key };
	wr.sge = &sge;
	wr.num_sge = 1;
	wr.raddr = p->a.mr.iova + 1024;
	wr.rkey = p->a.mr.key;
	/* B posts a request and does not ring: a message makes the device look. */
	md_post_send(p->b.md, &p->b.qp, &wr);
	post_recv(&p->b, 8);
	settle(p);
	CHECK(!md_poll(&p->b.scq, &cqe));
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK(md_poll(&p->b.rcq, &cqe) && !cqe.status);
	CHECK(md_poll(&p->b.scq, &cqe) && !cqe.status);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_sq_doorbells), 0);
	CHECK_EQ(refetches(p, false), 1);

	/* The next refetch for the send queue makes the receives known. */
	post_recv(&p->b, 8);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_SQD, 0, NULL), 0);
	settle(p);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RTS, 0, NULL), 0);
	settle(p);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK(md_poll(&p->b.rcq, &cqe) && !cqe.status);
	CHECK_EQ(refetches(p, false), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_refetches_before_rnr), 1);
}

/* A CQ that is used one entry at a time, by a QP for which nothing else looks. */
static void refetch_takes_threshold_of_cq(struct pair *p)
{
	struct md_cq *cq = &p->a.scq;
	uint64_t before;

	connect_pair(p);
	/* The minidriver's threshold is half the depth of 256. */
	md_buf_put32(p->a.md, &cq->buf, cq->rec_offset + REC_THRESHOLD, 3);
	before = count_of(&p->a, QHCA_CNT_cq_refetches);
	for (uint32_t i = 0; i < 400; i++) {
		struct qhca_cqe cqe;

		post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
		settle(p);
		CHECK(md_poll(cq, &cqe) && !cqe.status);
		if (i == 128)		/* no refetch yet */
			CHECK_EQ(count_of(&p->a, QHCA_CNT_cq_refetches),
				 before);
	}
	/* One refetch at 129 entries, and then one in four completions. */
	CHECK_EQ(count_of(&p->a, QHCA_CNT_cq_refetches), before + 1 + 270 / 4);
}

const struct scenario threshold_scenarios[] = {
	RC(thresholds_of_rq), RC(thresholds_of_srq), RC(refetch_in_vain),
	RC(refetch_takes_threshold_of_srq), RC(refetch_takes_both_of_qp),
	ON(UC, refetch_takes_threshold_of_cq, .roomy = true),
	{ 0 }
};
