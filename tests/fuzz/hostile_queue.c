// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Queues with false numbers: the record of bugs, hostile.h. */
#include "alloc.h"
#include "hostile.h"
#include "wire/pkt.h"

/* ------------------------------------------------------------------------
 * num_sge: counts of segments that nobody checked
 */
static void test_num_sge_send(void **state)
{
	static const unsigned int counts[] = { MAX_SGE + 1, 16, 32, 33, 128,
					       255 };
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE };
	struct rig r;

	(void)state;
	for (unsigned int i = 0; i < 6; i++) {
		rig_new(&r, false);
		wr.rkey = r.mr.key;
		wr.raddr = IOVA;
		md_post_send(r.md, &r.qp[0], &wr);
		((uint8_t *)md_ptr(r.md, r.qp[0].buf.page[0]))[2] = counts[i];
		rig_watch(&r, r.qp[0].buf.page[0] + (1 << LOG_STRIDE));
		rig_ring(&r, &r.qp[0], 1);
		assert_int_equal(rig_poll(&r), QHCA_WC_LOC_QP_OP_ERR);
		assert_int_equal(rig_state(&r, 0), QHCA_QPS_ERR);
		rig_assert_not_read(&r);
		rig_free(&r);
	}
}

static void receive_with(bool srq, uint16_t count)
{
	struct rig r;
	struct md_sge sge = { IOVA, 64, 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 1, .sge = &sge };
	uint64_t slot;

	rig_new(&r, srq);
	sge.key = r.mr.key;
	if (srq)
		md_srq_post(r.md, &r.srq, 1, &sge, 1);
	else
		md_post_recv(r.md, &r.qp[1], 1, &sge, 1);
	slot = srq ? r.srq.buf.page[0] :
		     r.qp[1].buf.page[0] + r.qp[1].rq_offset;
	put_le16(md_ptr(r.md, slot + 8), count);
	rig_watch(&r, slot + (1 << LOG_RSTRIDE));
	md_post_send(r.md, &r.qp[0], &wr);
	rig_ring(&r, &r.qp[0], 1);
	assert_int_equal(rig_poll(&r), QHCA_WC_LOC_QP_OP_ERR);
	assert_int_equal(rig_state(&r, 1), QHCA_QPS_ERR);
	rig_assert_not_read(&r);
	rig_free(&r);
}

static void test_num_sge_receive(void **state)
{
	static const uint16_t counts[] = { 4, 32, 33, 255, 256, 0x7fff,
					   0xffff };

	(void)state;
	for (unsigned int i = 0; i < 7; i++) {
		receive_with(false, counts[i]);
		receive_with(true, counts[i]);
	}
}

static void test_num_sge_create(void **state)
{
	struct qhca_qpc_sw in;
	struct rig r;

	(void)state;
	rig_new(&r, false);
	rig_fill_qp(&r, &in);
	for (unsigned int n = 5; n < 256; n++) {
		in.sq_max_sge = (uint8_t)n;
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_PARAM);
	}
	in.sq_max_sge = 4;
	for (unsigned int n = 4; n < 256; n++) {
		in.rq_max_sge = (uint8_t)n;
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_PARAM);
	}
	in.rq_max_sge = 3;
	guard_allow(r.g, get_le64(&in.buf.base) + RECORD, 128);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in, sizeof(in)),
			 QHCA_CMD_OK);
	rig_free(&r);
}

/* ------------------------------------------------------------------------
 * huge_queue: sizes that the host then allocated
 */
static void test_huge_queue(void **state)
{
	struct qhca_qpc_sw qp;
	struct qhca_cqc_sw cq = { 0 };
	struct qhca_srqc_sw srq = { 0 };
	struct qhca_eqc_sw eq = { 0 };
	uint64_t calls, base;
	struct rig r;

	(void)state;
	rig_new(&r, false);
	rig_fill_qp(&r, &qp);
	base = get_le64(&qp.buf.base);
	put_le64(&cq.buf.base, base);
	put_le64(&srq.buf.base, base);
	put_le64(&eq.buf.base, base);
	put_le32(&cq.buf.length, UINT32_MAX);
	put_le32(&srq.buf.length, UINT32_MAX);
	put_le32(&eq.buf.length, UINT32_MAX);
	put_le32(&qp.buf.length, UINT32_MAX);
	srq.log_stride = 12;
	calls = alloc_calls();
	for (unsigned int log = 11; log < 256; log++) {
		cq.log_depth = eq.log_depth = srq.log_depth = (uint8_t)log;
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq,
				     sizeof(cq)), QHCA_CMD_BAD_PARAM);
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_EQ, 3, 0, &eq,
				     sizeof(eq)), QHCA_CMD_BAD_PARAM);
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_SRQ, 3, 0, &srq,
				     sizeof(srq)), QHCA_CMD_BAD_PARAM);
		qp.sq_log_depth = (uint8_t)log;
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &qp,
				     sizeof(qp)), QHCA_CMD_BAD_PARAM);
		qp.sq_log_depth = LOG_DEPTH;
		qp.rq_log_stride = (uint8_t)log;
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &qp,
				     sizeof(qp)), QHCA_CMD_BAD_PARAM);
		qp.rq_log_stride = LOG_RSTRIDE;
	}
	/* Commands that are accepted do not cost the host memory, either. */
	guard_allow(r.g, base, GUARD_MEM - base);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &qp, sizeof(qp)),
			 QHCA_CMD_OK);
	cq.log_depth = 4;
	assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq, sizeof(cq)),
			 QHCA_CMD_OK);
	assert_int_equal(alloc_calls(), calls);
	rig_free(&r);
}

/* INIT_HCA is what allocates: by the geometry, which is bounded. */
static void test_huge_cache(void **state)
{
	struct qhca_init_hca in;
	size_t rest;
	struct rig r;

	(void)state;
	memset(&r, 0, sizeof(r));
	rig_start(&r);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0),
			 QHCA_CMD_OK);
	rest = alloc_live();
	for (uint32_t sets = 32; sets < 0x10000; sets *= 2) {
		rig_fill_init(&in, (uint16_t)sets);
		assert_int_equal(rig_cmd(&r, QHCA_CMD_INIT_HCA, 0, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_PARAM);
	}
	rig_fill_init(&in, 4);
	/* Each of its allocations fails once. */
	for (unsigned int n = 1;; n++) {
		int status;

		alloc_fail_in(n);
		status = rig_cmd(&r, QHCA_CMD_INIT_HCA, 0, 0, &in, sizeof(in));
		if (status == QHCA_CMD_OK)
			break;
		assert_int_equal(status, QHCA_CMD_NO_RESOURCE);
		assert_int_equal(alloc_live(), rest);
		assert_true(n < 100);
	}
	alloc_fail_in(0);
	rig_free(&r);
}

/* ------------------------------------------------------------------------
 * read: a register that can be written and has no way to be read
 */
static void test_read(void **state)
{
	struct rig r;

	(void)state;
	rig_new(&r, false);
	for (uint32_t offset = 0; offset < QHCA_BAR_REGS_SIZE; offset++)
		guard_reg_read(r.g, offset);
	for (unsigned int bit = 2; bit < 32; bit++)
		guard_reg_read(r.g, 1u << bit);
	assert_int_equal(guard_reg_read(r.g, QHCA_REG_CMDQ_DOORBELL), 0);
	rig_assert_works(&r, 1000);
	rig_free(&r);
}

/* ------------------------------------------------------------------------
 * loop: for as long as the guest's indices say
 */
static const uint32_t wild[] = {
	DEPTH + 1, 64, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0x80000001,
	0xfffffff0, 0xffffffff,
};
#define NUM_WILD	(sizeof(wild) / sizeof(*wild))

/* Software's words of every record, and the numbers in doorbells, are wild. */
static void test_loop_indices(void **state)
{
	struct rig r;

	(void)state;
	for (unsigned int i = 0; i < NUM_WILD; i++) {
		rig_new(&r, true);
		md_buf_put32(r.md, &r.qp[0].buf, r.qp[0].rec_offset, wild[i]);
		md_buf_put32(r.md, &r.qp[0].buf, r.qp[0].rec_offset + 4,
			     wild[i]);
		md_buf_put32(r.md, &r.cq.buf, r.cq.rec_offset, wild[i]);
		md_buf_put32(r.md, &r.srq.buf, r.srq.rec_offset, wild[i]);
		put_le32(md_ptr(r.md, r.md->eq_rec), wild[i]);
		guard_doorbell(r.g, 0, QHCA_DB_CQ_ARM, r.cq.cqn |
			       (uint64_t)wild[i] << 32);
		guard_doorbell(r.g, 0, QHCA_DB_EQ_ARM,
			       (uint64_t)wild[i] << 32);
		guard_doorbell(r.g, 0, QHCA_DB_ETH_TX,
			       (uint64_t)wild[i] << 32);
		rig_ring(&r, &r.qp[0], wild[i]);
		guard_settle(r.g);
		/* An index behind the device's own is late; one beyond the ring is an error. */
		assert_int_equal(rig_state(&r, 0), wild[i] < 0x80000000 ?
				 QHCA_QPS_ERR : QHCA_QPS_RTS);
		/* In ERR the device reads the records once more, and does not use their values. */
		md_qp_modify(r.md, &r.qp[0], QHCA_QPS_ERR, 0, NULL);
		rig_ring(&r, &r.qp[0], wild[i]);
		guard_settle(r.g);
		assert_true(qhca_counter(r.g->hca, 0, QHCA_CNT_completions) <= 2);
		rig_free(&r);
	}
}

static void test_loop_srq_list(void **state)
{
	struct md_sge sge = { IOVA, 64, 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 1,
			    .sge = &sge };
	struct rig r;

	(void)state;
	rig_new(&r, true);
	sge.key = r.mr.key;
	for (int i = 0; i < 3; i++)
		assert_true(md_srq_post(r.md, &r.srq, 1, &sge, 1));
	/* A slot whose successor is the slot itself serves as many messages as were posted. */
	put_le16(md_ptr(r.md, r.srq.buf.page[0] + 10), 0);
	for (int i = 0; i < 5; i++)
		md_post_send(r.md, &r.qp[0], &wr);
	rig_ring(&r, &r.qp[0], r.qp[0].sq_pi);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rig_poll(&r), QHCA_WC_SUCCESS);
	rig_pass_time(&r, 100000000);
	assert_int_equal(rig_poll(&r), QHCA_WC_RNR_RETRY_EXC_ERR);
	rig_free(&r);
	/* A slot beyond the ring ends the SRQ. */
	rig_new(&r, true);
	sge.key = r.mr.key;
	assert_true(md_srq_post(r.md, &r.srq, 1, &sge, 1));
	put_le16(md_ptr(r.md, r.srq.buf.page[0] + 10), DEPTH);
	md_post_send(r.md, &r.qp[0], &wr);
	rig_ring(&r, &r.qp[0], 1);
	assert_int_equal(rig_poll(&r), QHCA_WC_REM_OP_ERR);
	assert_true(rig_have_event(&r, QHCA_EVENT_SRQ_ERROR));
	rig_free(&r);
}

/* Nodes that lead to themselves are walked as deep as a table may be. */
static void test_loop_nodes(void **state)
{
	struct qhca_cqc_sw cq = { .log_depth = 3 };
	struct qhca_pte pte = { 0 };
	struct md_sge sge = { IOVA, 64, 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 1,
			    .sge = &sge };
	uint64_t node, reads;
	struct rig r;

	(void)state;
	rig_new(&r, false);
	node = md_alloc(r.md, MD_PAGE, MD_PAGE);
	for (unsigned int i = 0; i < 512; i++)
		put_le64(md_ptr(r.md, node + 8 * i), node | QHCA_ATE_PRESENT);
	put_le64(&cq.buf.base, node);
	put_le32(&cq.buf.length, RECORD);
	cq.buf.page_shift = 12;
	cq.buf.levels = QHCA_MAX_AT_LEVELS;
	put_le32(&cq.rec_offset, 4096);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq, sizeof(cq)),
			 QHCA_CMD_OK);
	/* The leaf has no write bit: the CQ fails, and the device writes nothing. */
	guard_doorbell(r.g, 0, QHCA_DB_CQ_ARM, 3);
	guard_settle(r.g);
	assert_true(rig_have_event(&r, QHCA_EVENT_CQ_ERROR));
	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_MR << 4 | 12u << 16 |
			    (uint32_t)QHCA_MAX_AT_LEVELS << 24);
	put_le32(&pte.pd, PD);
	put_le64(&pte.start, IOVA);
	put_le64(&pte.length, 4096);
	put_le64(&pte.at_base, node);
	put_le32(&pte.at_key, 100);
	md_pte_write(r.md, 100, &pte);
	sge.key = 100 << 8;
	reads = qhca_counter(r.g->hca, 0, QHCA_CNT_at_node_reads);
	md_post_send(r.md, &r.qp[0], &wr);
	rig_ring(&r, &r.qp[0], 1);
	guard_settle(r.g);
	assert_int_equal(qhca_counter(r.g->hca, 0, QHCA_CNT_at_node_reads) - reads,
			 QHCA_MAX_AT_LEVELS);
	rig_free(&r);
}

/* Descriptors of an Ethernet frame that has no end. */
static void test_loop_ethernet(void **state)
{
	struct qhca_ethq_config in = { .log_tx = 12, .log_rx = 3 };
	uint64_t ring_base, rec;
	struct rig r;

	(void)state;
	rig_new(&r, false);
	ring_base = md_alloc(r.md, 32u << 12, MD_PAGE);
	rec = md_alloc(r.md, MD_PAGE, MD_PAGE);
	put_le64(&in.tx_base, ring_base);
	put_le64(&in.rx_base, ring_base);
	put_le64(&in.rxc_base, rec + 512);
	put_le64(&in.rec_base, rec);
	guard_allow(r.g, rec + 64, 64);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_ETHQ, 0, 0, &in, sizeof(in)),
			 QHCA_CMD_OK);
	for (uint32_t pi = 0; pi < 4096; pi += 509) {
		guard_doorbell(r.g, 0, QHCA_DB_ETH_TX, (uint64_t)pi << 32);
		guard_settle(r.g);
	}
	guard_doorbell(r.g, 0, QHCA_DB_ETH_TX, 0xffffffffull << 32);
	guard_settle(r.g);
	rig_assert_works(&r, 100);
	rig_free(&r);
}

/*
 * A request of three packets is made shorter while it waits for its
 * acknowledgement: then two PSNs are outstanding for which there is no
 * request.  Giving up on them must not complete what was never posted, for
 * then the queue's indices cross, and flushing goes once round 2^32.
 */
static void test_loop_shrunk(void **state)
{
	struct md_sge sge = { IOVA, 3 * 256, 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 1, .sge = &sge,
			    .flags = QHCA_WQE_F_SIGNALED };
	uint64_t completions;
	struct rig r;

	(void)state;
	rig_new(&r, false);
	sge.key = r.mr.key;
	md_qp_modify(r.md, &r.qp[0], QHCA_QPS_RESET, 0, NULL);
	/* This test writes the answers of this peer. */
	rig_connect(&r, &r.qp[0], 0x55, 2);
	md_post_send(r.md, &r.qp[0], &wr);
	rig_ring(&r, &r.qp[0], 1);
	guard_settle(r.g);
	/* The first packet comes behind a question about bundles. */
	assert_int_equal(r.g->num, 4);
	/* This access evicts the context of the first QP. */
	rig_state(&r, 1);
	((uint8_t *)md_ptr(r.md, r.qp[0].buf.page[0]))[2] = 0;
	/* Time passes until the first timeout. */
	rig_pass_time(&r, 2000000);
	rig_answer(&r, &r.qp[0], HCA_OP_ACK, 7);
	assert_int_equal(rig_poll(&r), QHCA_WC_SUCCESS);
	rig_pass_time(&r, 1000000000);
	assert_int_equal(rig_state(&r, 0), QHCA_QPS_ERR);
	assert_true(rig_have_event(&r, QHCA_EVENT_QP_FATAL));
	completions = qhca_counter(r.g->hca, 0, QHCA_CNT_completions);
	assert_int_equal(completions, 1);
	rig_free(&r);
}

/* ------------------------------------------------------------------------
 * ring_page: a ring with fewer pages than entries
 */

/* A node that holds @pages of the pages that the ring needs. */
static uint64_t short_node(struct rig *r, unsigned int pages)
{
	uint64_t node = md_alloc(r->md, 64, 64), page;

	for (unsigned int i = 0; i < pages; i++) {
		page = md_alloc(r->md, MD_PAGE, MD_PAGE);
		put_le64(md_ptr(r->md, node + 8 * i), page | QHCA_ATE_PRESENT |
			 QHCA_ATE_WRITE);
		guard_allow(r->g, page, MD_PAGE);
	}
	return node;
}

static void test_ring_page_reach(void **state)
{
	struct qhca_cqc_sw cq = { .log_depth = 3 };
	struct rig r;

	(void)state;
	rig_new(&r, false);
	put_le64(&cq.buf.base, short_node(&r, 1));
	put_le32(&cq.rec_offset, 4096);
	cq.buf.page_shift = 12;
	cq.buf.levels = 1;
	put_le32(&cq.buf.length, (512 << 12) + 1);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq, sizeof(cq)),
			 QHCA_CMD_BAD_PARAM);
	cq.buf.levels = QHCA_MAX_AT_LEVELS + 1;
	put_le32(&cq.buf.length, 8192);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq, sizeof(cq)),
			 QHCA_CMD_BAD_PARAM);
	cq.buf.levels = 1;
	for (unsigned int shift = 0; shift < 256; shift++) {
		cq.buf.page_shift = (uint8_t)shift;
		if (shift < 12 || shift > 39)
			assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq,
					     sizeof(cq)), QHCA_CMD_BAD_PARAM);
	}
	rig_free(&r);
}

/* The record's page is missing, or the ring's second one. */
static void test_ring_page_absent(void **state)
{
	struct qhca_cqc_sw cq = { .log_depth = 7 };
	struct md_wr wr = { .opcode = QHCA_WQE_NOP,
			    .flags = QHCA_WQE_F_SIGNALED };
	uint64_t node;
	struct rig r;

	(void)state;
	rig_new(&r, false);
	node = short_node(&r, 1);
	put_le64(&cq.buf.base, node);
	put_le32(&cq.buf.length, 3 << 12);
	cq.buf.page_shift = 12;
	cq.buf.levels = 1;
	put_le32(&cq.rec_offset, 2 << 12);
	put_le32(&cq.threshold, 128);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq, sizeof(cq)),
			 QHCA_CMD_OK);
	r.cq.cqn = 3;			/* queue pairs complete there */
	rig_make_qp(&r, 0, NULL);
	rig_connect(&r, &r.qp[0], r.qp[0].qpn, 1);
	for (int i = 0; i < 64; i++) {	/* the page holds so many entries */
		md_post_send(r.md, &r.qp[0], &wr);
		rig_ring(&r, &r.qp[0], r.qp[0].sq_pi);
		guard_settle(r.g);
	}
	assert_int_equal(rig_state(&r, 0), QHCA_QPS_RTS);
	md_post_send(r.md, &r.qp[0], &wr);
	rig_ring(&r, &r.qp[0], r.qp[0].sq_pi);
	guard_settle(r.g);
	assert_int_equal(rig_state(&r, 0), QHCA_QPS_ERR);
	assert_true(rig_have_event(&r, QHCA_EVENT_CQ_ERROR));
	rig_free(&r);
}

/*
 * A request is rewritten when the device has to read it again, as what cannot
 * be: inline and an atomic.  What the device made of an earlier request in the
 * same place must not be taken for its segments.
 */
static void test_ring_page_rewritten(void **state)
{
	struct md_qp_init init = {
		.type = QHCA_QPT_RC, .sq_log_depth = 9,
		.sq_log_stride = LOG_STRIDE, .no_rq = true, .pd = PD,
	};
	struct md_sge sge = { IOVA, 3 * 256, 0 };
	struct md_wr first = { .opcode = QHCA_WQE_SEND, .inline_len = 64,
			       .flags = QHCA_WQE_F_INLINE };
	struct md_wr second = { .opcode = QHCA_WQE_SEND, .num_sge = 1,
				.sge = &sge };
	struct md_wr other = { .opcode = QHCA_WQE_SEND };
	struct md_wr local = { .opcode = QHCA_WQE_NOP };
	struct hca_sgl evil = { .num = UINT32_MAX, .hint = 1u << 20 };
	struct qhca_sq_wqe *wqe;
	struct rig r;

	(void)state;
	rig_new(&r, false);
	sge.key = r.mr.key;
	first.inline_data = &evil;
	init.send_cq = init.recv_cq = &r.cq;
	assert_int_equal(md_qp_create(r.md, &r.qp[0], &init), QHCA_CMD_OK);
	rig_allow_queue(&r, &r.qp[0].buf, r.qp[0].rec_offset);
	rig_connect(&r, &r.qp[0], 0x55, 2);
	md_post_send(r.md, &r.qp[0], &first);
	md_post_send(r.md, &r.qp[0], &second);
	/* The window alone is not longer than what the device remembers. */
	for (int i = 0; i < 8; i++)
		md_post_send(r.md, &r.qp[0], &local);
	while (r.qp[0].sq_pi <= HCA_SUM_RING)
		md_post_send(r.md, &r.qp[0], &other);
	rig_ring(&r, &r.qp[0], r.qp[0].sq_pi);
	guard_settle(r.g);
	/*
	 * The ACK is for the first request, which the device reads again, and for a third of the
	 * second, which it remembers.
	 */
	rig_answer(&r, &r.qp[0], HCA_OP_ACK, 8);
	/* This request makes the device forget the second one. */
	md_post_send(r.md, &r.qp[0], &other);
	rig_ring(&r, &r.qp[0], r.qp[0].sq_pi);
	guard_settle(r.g);
	wqe = md_ptr(r.md, r.qp[0].buf.page[0] + (1 << LOG_STRIDE));
	wqe->opcode = QHCA_WQE_CMP_SWAP;
	wqe->flags = QHCA_WQE_F_INLINE;
	rig_answer(&r, &r.qp[0], HCA_OP_ATOMIC_ACK, 9);
	guard_settle(r.g);
	assert_int_equal(rig_state(&r, 0), QHCA_QPS_ERR);
	rig_free(&r);
}

/* The device reports errors to an EQ: without one it is dead. */
static void test_ring_page_eq(void **state)
{
	struct qhca_eqc_sw eq = { .log_depth = 7 };
	struct rig r;

	(void)state;
	rig_new(&r, false);
	put_le64(&eq.buf.base, short_node(&r, 0));
	put_le32(&eq.buf.length, 3 << 12);
	eq.buf.page_shift = 12;
	eq.buf.levels = 1;
	put_le32(&eq.rec_offset, 2 << 12);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_DESTROY_CQ, 9, 0, NULL, 0),
			 QHCA_CMD_BAD_STATE);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_DESTROY_EQ, 0, 0, NULL, 0),
			 QHCA_CMD_IN_USE);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_EQ, 1, 0, &eq, sizeof(eq)),
			 QHCA_CMD_OK);
	assert_int_equal(md_qp_destroy(r.md, &r.qp[0]), QHCA_CMD_OK);
	assert_int_equal(md_qp_destroy(r.md, &r.qp[1]), QHCA_CMD_OK);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_DESTROY_CQ, r.cq.cqn, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_DESTROY_EQ, 0, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_EQ, 0, 0, &eq, sizeof(eq)),
			 QHCA_CMD_OK);
	/* The device posts an event. */
	qhca_set_link(r.g->hca, false, r.md->host.now);
	assert_true(hca_is_dead(&r.g->hca->pf));
	assert_int_equal(QHCA_GET(QHCA_STATUS_FATAL_CAUSE,
				  guard_reg_read(r.g, QHCA_REG_STATUS)),
			 QHCA_FATAL_EQ_DMA);
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_num_sge_send),
		cmocka_unit_test(test_num_sge_receive),
		cmocka_unit_test(test_num_sge_create),
		cmocka_unit_test(test_huge_queue),
		cmocka_unit_test(test_huge_cache),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_loop_indices),
		cmocka_unit_test(test_loop_srq_list),
		cmocka_unit_test(test_loop_nodes),
		cmocka_unit_test(test_loop_ethernet),
		cmocka_unit_test(test_loop_shrunk),
		cmocka_unit_test(test_ring_page_reach),
		cmocka_unit_test(test_ring_page_absent),
		cmocka_unit_test(test_ring_page_rewritten),
		cmocka_unit_test(test_ring_page_eq),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
