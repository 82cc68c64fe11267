// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Leaks, and accesses that come too early or too late: the record of bugs, hostile.h.
 */
#include "alloc.h"
#include "hostile.h"
#include "wire/pkt.h"

/* ------------------------------------------------------------------------
 * leak: memory or references lost on error paths
 */
struct create {
	uint16_t create, destroy;
	uint32_t index, len;
	const void *in;
};

/* Makes each DMA of @c fail once; the device may leave nothing behind. */
static void sweep(const struct create *c, uint64_t buffers)
{
	struct rig r;
	int status;

	for (unsigned int n = 1;; n++) {
		rig_new(&r, false);
		guard_allow(r.g, buffers, 4 * RECORD);
		r.g->fail_in = n;
		status = guard_cmd(r.g, c->create, c->index, 0, c->in, c->len);
		if (r.g->fail_in) {	/* the command made fewer accesses */
			r.g->fail_in = 0;
			assert_int_equal(status, QHCA_CMD_OK);
			rig_free(&r);
			return;
		}
		if (!hca_is_dead(&r.g->hca->pf) && status != QHCA_CMD_OK)
			/* No object refers to the CQ, so this destroys it, or it never existed. */
			assert_true(rig_cmd(&r, c->destroy, c->index, 0, NULL, 0) ==
				    QHCA_CMD_BAD_STATE);
		rig_free(&r);
		assert_true(n < 100);
	}
}

#define SWEEP_BUF	(GUARD_MEM - 16 * RECORD)

static void test_leak_dma(void **state)
{
	struct qhca_cqc_sw cq = { .log_depth = 3 };
	struct qhca_eqc_sw eq = { .log_depth = 3 };
	struct qhca_srqc_sw srq = { .log_depth = 3, .log_stride = 6 };
	struct qhca_qpc_sw qp = {
		.sq_log_depth = 3, .sq_log_stride = 7, .rq_log_depth = 3,
		.rq_log_stride = 6,
	};
	const struct create creates[] = {
		{ QHCA_CMD_CREATE_CQ, QHCA_CMD_DESTROY_CQ, 3, sizeof(cq), &cq },
		{ QHCA_CMD_CREATE_EQ, QHCA_CMD_DESTROY_EQ, 3, sizeof(eq), &eq },
		{ QHCA_CMD_CREATE_SRQ, QHCA_CMD_DESTROY_SRQ, 3, sizeof(srq),
		  &srq },
		{ QHCA_CMD_CREATE_QP, QHCA_CMD_DESTROY_QP, 9, sizeof(qp), &qp },
	};

	(void)state;
	put_le64(&cq.buf.base, SWEEP_BUF);
	put_le32(&cq.buf.length, RECORD + 128);
	put_le32(&cq.rec_offset, RECORD);
	eq.buf = srq.buf = qp.buf = cq.buf;
	eq.rec_offset = srq.rec_offset = qp.rec_offset = cq.rec_offset;
	put_le32(&qp.rq_offset, 4096);
	put_le16(&qp.flags, QHCA_QP_HAS_SQ | QHCA_QP_HAS_RQ);
	for (unsigned int i = 0; i < 4; i++)
		sweep(&creates[i], SWEEP_BUF);
}

/* A QP that lacks one of its queues must not keep the others. */
static void test_leak_references(void **state)
{
	struct qhca_qpc_sw in;
	struct md_cq cq;
	struct rig r;
	size_t live;

	(void)state;
	rig_new(&r, true);
	md_cq_create(r.md, &cq, 3);
	guard_allow_buf(r.g, &cq.buf, 0, cq.buf.len);
	rig_fill_qp(&r, &in);
	guard_allow(r.g, get_le64(&in.buf.base) + RECORD, 128);
	put_le32(&in.send_cqn, cq.cqn);
	put_le32(&in.recv_cqn, cq.cqn);
	live = alloc_live();
	for (int i = 0; i < 300; i++) {
		put_le32(&in.recv_cqn, 9);		/* no such CQ */
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_STATE);
		put_le32(&in.recv_cqn, cq.cqn);
		put_le16(&in.flags, QHCA_QP_HAS_SQ | QHCA_QP_SRQ);
		put_le32(&in.srqn, 6);			/* no such SRQ */
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_STATE);
		put_le32(&in.srqn, r.srq.srqn);
		assert_int_equal(rig_cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_OK);
		assert_int_equal(rig_cmd(&r, QHCA_CMD_DESTROY_CQ, cq.cqn, 0, NULL,
				     0), QHCA_CMD_IN_USE);
		assert_int_equal(rig_cmd(&r, QHCA_CMD_DESTROY_QP, 9, 0, NULL, 0),
				 QHCA_CMD_OK);
	}
	assert_int_equal(alloc_live(), live);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_DESTROY_CQ, cq.cqn, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(md_qp_destroy(r.md, &r.qp[1]), QHCA_CMD_OK);
	assert_int_equal(rig_cmd(&r, QHCA_CMD_DESTROY_SRQ, r.srq.srqn, 0, NULL, 0),
			 QHCA_CMD_OK);
	rig_free(&r);
}

/*
 * All the queues that a guest may have take no more of the host's memory than two do.
 */
/* the tables have 16, 8 and 32; some exist already, or are reserved */
#define MORE_CQS	14u
#define MORE_SRQS	6u
#define MORE_QPS	28u

static void test_leak_queues(void **state)
{
	struct md_cq cq[MORE_CQS];
	struct md_srq srq[MORE_SRQS];
	struct md_qp qp[MORE_QPS];
	struct rig r;
	size_t live;

	(void)state;
	rig_new(&r, true);
	live = alloc_live();
	for (unsigned int i = 0; i < MORE_CQS; i++) {
		md_cq_create(r.md, &cq[i], 3);
		guard_allow_buf(r.g, &cq[i].buf, 0, cq[i].buf.len);
	}
	for (unsigned int i = 0; i < MORE_SRQS; i++) {
		md_srq_create(r.md, &srq[i], PD, LOG_DEPTH, LOG_RSTRIDE, 0);
		guard_allow_buf(r.g, &srq[i].buf, 0, srq[i].buf.len);
	}
	for (unsigned int i = 0; i < MORE_QPS; i++) {
		const struct md_qp_init init = {
			.type = QHCA_QPT_RC, .sq_log_depth = LOG_DEPTH,
			.sq_log_stride = LOG_STRIDE, .pd = PD,
			.rq_log_stride = LOG_RSTRIDE,
			.send_cq = &cq[i % MORE_CQS],
			.recv_cq = &cq[i % MORE_CQS],
			.srq = &srq[i % MORE_SRQS],
		};

		assert_int_equal(md_qp_create(r.md, &qp[i], &init),
				 QHCA_CMD_OK);
		guard_allow_buf(r.g, &qp[i].buf, 0, qp[i].buf.len);
		rig_connect(&r, &qp[i], qp[i].qpn, 1);
	}
	guard_settle(r.g);
	assert_int_equal(alloc_live(), live);
	for (unsigned int i = 0; i < MORE_QPS; i++)
		assert_int_equal(md_qp_destroy(r.md, &qp[i]), QHCA_CMD_OK);
	assert_int_equal(alloc_live(), live);
	rig_free(&r);
}

/* ------------------------------------------------------------------------
 * early: commands before there is anything to work on, and after it is gone
 */
static void ring_everything(struct rig *r)
{
	for (uint32_t page = 0; page < 5; page++)
		for (uint32_t offset = 0; offset < 64; offset += 8)
			for (uint64_t n = 0; n < 40; n++)
				guard_doorbell(r->g, page, offset,
					       n | n << 32 | n << 48);
}

static void test_early_disabled(void **state)
{
	struct rig r = { 0 };

	(void)state;
	guard_forget();
	guard_mode = (struct guard_mode){ .fresh = true };
	r.g = guard_take(1);
	r.md = r.g->md;
	r.g->anything = false;
	r.g->dma = 0;
	guard_reg_write(r.g, QHCA_REG_CMDQ_DOORBELL, 0xffffffff);
	ring_everything(&r);
	guard_settle(r.g);
	rig_pass_time(&r, 1000000000);
	assert_int_equal(r.g->dma, 0);
	rig_free(&r);
}

static void commands_refused(struct rig *r)
{
	uint8_t in[QHCA_MAILBOX_SIZE] = { 0 };
	static const uint32_t lens[] = { 0, 8, 16, 32, 64, 240, 256, 520 };

	for (uint32_t opcode = 0; opcode < 0x100; opcode++)
		for (unsigned int i = 0; i < 8; i++) {
			int status;

			if (opcode == QHCA_CMD_NOP ||
			    opcode == QHCA_CMD_QUERY_CAPS ||
			    opcode == QHCA_CMD_INIT_HCA ||
			    opcode == QHCA_CMD_QUERY_PORT ||
			    opcode == QHCA_CMD_QUERY_COUNTERS)
				continue;
			status = rig_cmd(r, (uint16_t)opcode, i, 1 << 8, in,
				     lens[i]);
			assert_true(status == QHCA_CMD_NOT_INIT ||
				    status == QHCA_CMD_BAD_OPCODE ||
				    status == QHCA_CMD_UNSUPPORTED);
		}
}

/* After TEARDOWN_HCA in the middle of traffic, timers running. */
static void test_early_torn_down(void **state)
{
	struct md_sge sge = { IOVA, 8000, 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE, .num_sge = 1,
			    .sge = &sge, .raddr = IOVA };
	struct rig r;
	uint64_t dma;

	(void)state;
	rig_new(&r, true);
	sge.key = wr.rkey = r.mr.key;
	for (int i = 0; i < 4; i++)
		md_post_send(r.md, &r.qp[0], &wr);
	rig_ring(&r, &r.qp[0], 4);
	guard_doorbell(r.g, 0, QHCA_DB_CQ_ARM, r.cq.cqn);
	guard_run(r.g, 20);		/* the device does a part of the work */
	assert_int_equal(rig_cmd(&r, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0),
			 QHCA_CMD_OK);
	memset(r.g->writable, 0, sizeof(r.g->writable));
	dma = r.g->dma;
	ring_everything(&r);
	rig_answer(&r, &r.qp[0], HCA_OP_ACK, 8);
	rig_pass_time(&r, 5000000000);
	assert_int_equal(r.g->dma, dma);
	guard_allow(r.g, r.md->host.slots, 64);
	commands_refused(&r);
	rig_free(&r);
}

static void test_early_reset(void **state)
{
	struct md_sge sge = { IOVA, 8000, 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE, .num_sge = 1,
			    .sge = &sge, .raddr = IOVA };
	struct rig r;

	(void)state;
	rig_new(&r, false);
	sge.key = wr.rkey = r.mr.key;
	for (int i = 0; i < 4; i++)
		md_post_send(r.md, &r.qp[0], &wr);
	rig_ring(&r, &r.qp[0], 4);
	guard_reg_write(r.g, QHCA_REG_CMDQ_DOORBELL, 1);
	guard_run(r.g, 20);
	guard_reg_write(r.g, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
	r.g->dma = 0;
	ring_everything(&r);
	guard_reg_write(r.g, QHCA_REG_CMDQ_DOORBELL, 0xffffffff);
	rig_answer(&r, &r.qp[0], HCA_OP_ACK, 8);
	rig_pass_time(&r, 5000000000);
	assert_int_equal(r.g->dma, 0);
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leak_dma),
		cmocka_unit_test(test_leak_references),
		cmocka_unit_test(test_leak_queues),
		cmocka_unit_test(test_early_disabled),
		cmocka_unit_test(test_early_torn_down),
		cmocka_unit_test(test_early_reset),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
