// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The security record of QEMU's former paravirtual RDMA device, as a list of
 * what must not happen here: one test for each kind of bug, named by the kind.
 * tests/qtest has them under /qhca/record too, for what the adapter adds; there
 * `chunks` is both remap and length.
 *
 *   num_sge        CVE-2018-20124          huge_queue  CVE-2018-20125
 *   leak           CVE-2018-20123, 20126   read        CVE-2018-20191
 *   loop           CVE-2018-20216          remap       CVE-2021-3582
 *   length         CVE-2021-3607           unmap       CVE-2021-3608
 *   early          CVE-2022-1050           ring_page   CVE-2023-1544
 *
 * The host is the fuzzer's (guard.h): it ends the program when the device
 * writes what is not its own, does without end in a call, or does not come to
 * rest.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "alloc.h"
#include "frame.h"
#include "guard.h"
#include "psn.h"

#define PD		1
#define IOVA		0x10000000ull
#define MR_LEN		(4 * 4096u)
#define LOG_DEPTH	3
#define DEPTH		(1u << LOG_DEPTH)
#define LOG_STRIDE	7
#define LOG_RSTRIDE	6
#define MAX_SGE		4		/* of a send WQE, by the stride */
#define RECORD		(1u << 13)	/* of queues made here */
#define RIGHTS		(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
			 QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC)

/* A device with two queue pairs that are connected to each other. */
struct rig {
	struct guard *g;
	struct md *md;
	struct md_cq cq;
	struct md_srq srq;
	struct md_qp qp[2];
	struct md_mr mr;
};

static void connect_to(struct rig *r, struct md_qp *qp, uint32_t dest_qpn,
		       unsigned int host)
{
	struct md_conn c = {
		.dest_qpn = dest_qpn, .access = RIGHTS, .mtu = QHCA_MTU_256,
		.timeout = 8, .retry_cnt = 2, .rnr_retry = 2,
		.min_rnr_timer = 1, .max_rd_atomic = 1,
		.max_dest_rd_atomic = 1, .sq_psn = 7, .rq_psn = 7,
	};

	md_av(r->md, &c.av, host, false);
	md_qp_connect(r->md, qp, &c);
}

/* Caches of one line each, so that everything comes from memory again. */
static void start(struct rig *r)
{
	struct md_init init = { .log_pt = 8, .log_qp = 5, .log_cq = 4,
				.log_srq = 3 };

	for (int c = 0; c < QHCA_NUM_CACHES; c++)
		init.cache[c] = (struct qhca_geometry){ 1, 1 };
	guard_forget();
	guard_mode = (struct guard_mode){ .fresh = true, .stain = 0x5a };
	r->g = guard_take(1);
	r->md = r->g->md;
	md_start(r->md, &init);
	guard_allow_driver(r->g);
}

static void allow_queue(struct rig *r, const struct md_buf *b,
			uint32_t rec_offset)
{
	guard_allow_buf(r->g, b, rec_offset + 64, 64);
}

static void make_qp(struct rig *r, unsigned int i, struct md_srq *srq)
{
	struct md_qp_init init = {
		.type = QHCA_QPT_RC, .sq_log_depth = LOG_DEPTH,
		.sq_log_stride = LOG_STRIDE, .rq_log_depth = LOG_DEPTH,
		.rq_log_stride = LOG_RSTRIDE, .pd = PD, .send_cq = &r->cq,
		.recv_cq = &r->cq, .srq = srq,
	};

	assert_int_equal(md_qp_create(r->md, &r->qp[i], &init), QHCA_CMD_OK);
	allow_queue(r, &r->qp[i].buf, r->qp[i].rec_offset);
}

static void rig_new(struct rig *r, bool srq)
{
	memset(r, 0, sizeof(*r));
	start(r);
	md_reg_mr(r->md, &r->mr, PD, IOVA, MR_LEN, RIGHTS);
	guard_allow_buf(r->g, &r->mr.buf, 0, MR_LEN);
	md_cq_create(r->md, &r->cq, 6);
	guard_allow_buf(r->g, &r->cq.buf, 0, r->cq.rec_offset);
	allow_queue(r, &r->cq.buf, r->cq.rec_offset);
	if (srq)
		md_srq_create(r->md, &r->srq, PD, LOG_DEPTH, LOG_RSTRIDE, 0);
	make_qp(r, 0, NULL);
	make_qp(r, 1, srq ? &r->srq : NULL);
	connect_to(r, &r->qp[0], r->qp[1].qpn, 1);
	connect_to(r, &r->qp[1], r->qp[0].qpn, 1);
}

static void rig_free(struct rig *r)
{
	guard_settle(r->g);
	guard_check_alive(r->g);
	guard_give(r->g);
	guard_check_heap();
}

static int cmd(struct rig *r, uint16_t opcode, uint32_t index, uint32_t param,
	       const void *in, uint32_t in_len)
{
	int status = guard_cmd(r->g, opcode, index, param, in, in_len);

	assert_int_not_equal(status, -1);
	return status;
}

static void ring(struct rig *r, struct md_qp *qp, uint32_t pi)
{
	guard_doorbell(r->g, 0, QHCA_DB_SQ, (uint64_t)pi << 32 | qp->qpn);
}

static uint8_t state_of(struct rig *r, unsigned int i)
{
	struct qhca_query_qp out;

	assert_int_equal(md_qp_query(r->md, &r->qp[i], &out), QHCA_CMD_OK);
	return out.ctx.state;
}

/* The next completion's status; -1: none. */
static int poll(struct rig *r)
{
	struct qhca_cqe cqe;

	guard_settle(r->g);
	return md_poll(&r->cq, &cqe) ? cqe.status : -1;
}

static void pass_time(struct rig *r, uint64_t ns)
{
	uint64_t until = r->md->now + ns;
	struct qhca_run_result res;

	while (r->md->now < until) {
		guard_settle(r->g);
		res = guard_run(r->g, 16);
		r->md->now = res.deadline < until ? res.deadline : until;
	}
	guard_settle(r->g);
}

/* A message of @len bytes from the first to the second goes through. */
static void assert_works(struct rig *r, uint32_t len)
{
	struct md_sge sge = { IOVA, len, r->mr.key };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 1, .sge = &sge,
			    .flags = QHCA_WQE_F_SIGNALED };

	if (r->qp[1].init.srq)
		assert_true(md_srq_post(r->md, &r->srq, 1, &sge, 1));
	else
		md_post_recv(r->md, &r->qp[1], 1, &sge, 1);
	md_post_send(r->md, &r->qp[0], &wr);
	ring(r, &r->qp[0], r->qp[0].sq_pi);
	assert_int_equal(poll(r), QHCA_WC_SUCCESS);
	assert_int_equal(poll(r), QHCA_WC_SUCCESS);
	assert_int_equal(poll(r), -1);
}

/* Does the device read this byte before not_read()? */
static void watch(struct rig *r, uint64_t addr)
{
	r->g->change[0].addr = addr;
	r->g->change[0].value = *(uint8_t *)md_ptr(r->md, addr);
}

static void assert_not_read(struct rig *r)
{
	assert_int_not_equal(r->g->change[0].addr, 0);
	r->g->change[0].addr = 0;
}

static bool have_event(struct rig *r, uint8_t type)
{
	struct qhca_eqe eqe;
	bool found = false;

	while (md_event(r->md, &eqe))
		found |= eqe.type == type;
	return found;
}

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
		watch(&r, r.qp[0].buf.page[0] + (1 << LOG_STRIDE));
		ring(&r, &r.qp[0], 1);
		assert_int_equal(poll(&r), QHCA_WC_LOC_QP_OP_ERR);
		assert_int_equal(state_of(&r, 0), QHCA_QPS_ERR);
		assert_not_read(&r);
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
	watch(&r, slot + (1 << LOG_RSTRIDE));
	md_post_send(r.md, &r.qp[0], &wr);
	ring(&r, &r.qp[0], 1);
	assert_int_equal(poll(&r), QHCA_WC_LOC_QP_OP_ERR);
	assert_int_equal(state_of(&r, 1), QHCA_QPS_ERR);
	assert_not_read(&r);
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

static void fill_qp(struct rig *r, struct qhca_qpc_sw *in)
{
	memset(in, 0, sizeof(*in));
	put_le64(&in->buf.base, md_alloc(r->md, RECORD + 128, MD_PAGE));
	put_le32(&in->buf.length, RECORD + 128);
	put_le32(&in->rq_offset, 4096);
	put_le32(&in->rec_offset, RECORD);
	put_le16(&in->flags, QHCA_QP_HAS_SQ | QHCA_QP_HAS_RQ);
	in->sq_log_depth = in->rq_log_depth = LOG_DEPTH;
	in->sq_log_stride = LOG_STRIDE;
	in->rq_log_stride = LOG_RSTRIDE;
	in->sq_max_sge = 4;
	in->rq_max_sge = 3;
}

static void test_num_sge_create(void **state)
{
	struct qhca_qpc_sw in;
	struct rig r;

	(void)state;
	rig_new(&r, false);
	fill_qp(&r, &in);
	for (unsigned int n = 5; n < 256; n++) {
		in.sq_max_sge = (uint8_t)n;
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_PARAM);
	}
	in.sq_max_sge = 4;
	for (unsigned int n = 4; n < 256; n++) {
		in.rq_max_sge = (uint8_t)n;
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_PARAM);
	}
	in.rq_max_sge = 3;
	guard_allow(r.g, get_le64(&in.buf.base) + RECORD, 128);
	assert_int_equal(cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in, sizeof(in)),
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
	fill_qp(&r, &qp);
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
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq,
				     sizeof(cq)), QHCA_CMD_BAD_PARAM);
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_EQ, 3, 0, &eq,
				     sizeof(eq)), QHCA_CMD_BAD_PARAM);
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_SRQ, 3, 0, &srq,
				     sizeof(srq)), QHCA_CMD_BAD_PARAM);
		qp.sq_log_depth = (uint8_t)log;
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &qp,
				     sizeof(qp)), QHCA_CMD_BAD_PARAM);
		qp.sq_log_depth = LOG_DEPTH;
		qp.rq_log_stride = (uint8_t)log;
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &qp,
				     sizeof(qp)), QHCA_CMD_BAD_PARAM);
		qp.rq_log_stride = LOG_RSTRIDE;
	}
	/* nor does what is accepted cost the host memory */
	guard_allow(r.g, base, GUARD_MEM - base);
	assert_int_equal(cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &qp, sizeof(qp)),
			 QHCA_CMD_OK);
	cq.log_depth = 4;
	assert_int_equal(cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq, sizeof(cq)),
			 QHCA_CMD_OK);
	assert_int_equal(alloc_calls(), calls);
	rig_free(&r);
}

static void fill_init(struct qhca_init_hca *in, uint16_t sets)
{
	memset(in, 0, sizeof(*in));
	for (int t = 0; t < QHCA_NUM_TABLES; t++) {
		in->table[t].log_entries = 3;
		in->table[t].log_chunk = 13;
	}
	for (int c = 0; c < QHCA_NUM_CACHES; c++) {
		put_le16(&in->cache[c].sets, sets);
		put_le16(&in->cache[c].blocks, 1);
	}
}

/* INIT_HCA is what allocates: by the geometry, which is bounded. */
static void test_huge_cache(void **state)
{
	struct qhca_init_hca in;
	size_t rest;
	struct rig r;

	(void)state;
	memset(&r, 0, sizeof(r));
	start(&r);
	assert_int_equal(cmd(&r, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0),
			 QHCA_CMD_OK);
	rest = alloc_live();
	for (uint32_t sets = 32; sets < 0x10000; sets *= 2) {
		fill_init(&in, (uint16_t)sets);
		assert_int_equal(cmd(&r, QHCA_CMD_INIT_HCA, 0, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_PARAM);
	}
	fill_init(&in, 4);
	/* each of its allocations fails once */
	for (unsigned int n = 1;; n++) {
		int status;

		alloc_fail_in(n);
		status = cmd(&r, QHCA_CMD_INIT_HCA, 0, 0, &in, sizeof(in));
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
 * leak: memory or references lost on error paths
 */
struct create {
	uint16_t create, destroy;
	uint32_t index, len;
	const void *in;
};

/* Each DMA of @c fails once; nothing may stay behind. */
static void sweep(const struct create *c, uint64_t buffers)
{
	struct rig r;
	int status;

	for (unsigned int n = 1;; n++) {
		rig_new(&r, false);
		guard_allow(r.g, buffers, 4 * RECORD);
		r.g->fail_in = n;
		status = guard_cmd(r.g, c->create, c->index, 0, c->in, c->len);
		if (r.g->fail_in) {	/* it did not come so far */
			r.g->fail_in = 0;
			assert_int_equal(status, QHCA_CMD_OK);
			rig_free(&r);
			return;
		}
		if (!qhca_is_dead(r.g->hca) && status != QHCA_CMD_OK)
			/* nobody refers to it: it goes, or was never there */
			assert_true(cmd(&r, c->destroy, c->index, 0, NULL, 0) ==
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
	fill_qp(&r, &in);
	guard_allow(r.g, get_le64(&in.buf.base) + RECORD, 128);
	put_le32(&in.send_cqn, cq.cqn);
	put_le32(&in.recv_cqn, cq.cqn);
	live = alloc_live();
	for (int i = 0; i < 300; i++) {
		put_le32(&in.recv_cqn, 9);		/* no such CQ */
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_STATE);
		put_le32(&in.recv_cqn, cq.cqn);
		put_le16(&in.flags, QHCA_QP_HAS_SQ | QHCA_QP_SRQ);
		put_le32(&in.srqn, 6);			/* no such SRQ */
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_STATE);
		put_le32(&in.srqn, r.srq.srqn);
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_OK);
		assert_int_equal(cmd(&r, QHCA_CMD_DESTROY_CQ, cq.cqn, 0, NULL,
				     0), QHCA_CMD_IN_USE);
		assert_int_equal(cmd(&r, QHCA_CMD_DESTROY_QP, 9, 0, NULL, 0),
				 QHCA_CMD_OK);
	}
	assert_int_equal(alloc_live(), live);
	assert_int_equal(cmd(&r, QHCA_CMD_DESTROY_CQ, cq.cqn, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(md_qp_destroy(r.md, &r.qp[1]), QHCA_CMD_OK);
	assert_int_equal(cmd(&r, QHCA_CMD_DESTROY_SRQ, r.srq.srqn, 0, NULL, 0),
			 QHCA_CMD_OK);
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
	assert_works(&r, 1000);
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

/* Software's words of every record, and what doorbells say. */
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
		ring(&r, &r.qp[0], wild[i]);
		guard_settle(r.g);
		/* behind the index it has: late; ahead of the ring: an error */
		assert_int_equal(state_of(&r, 0), wild[i] < 0x80000000 ?
				 QHCA_QPS_ERR : QHCA_QPS_RTS);
		/* in ERR the records are read once more, and believed no more */
		md_qp_modify(r.md, &r.qp[0], QHCA_QPS_ERR, 0, NULL);
		ring(&r, &r.qp[0], wild[i]);
		guard_settle(r.g);
		assert_true(qhca_counter(r.g->hca, QHCA_CNT_completions) <= 2);
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
	/* a slot that follows itself: as many messages as posted, no more */
	put_le16(md_ptr(r.md, r.srq.buf.page[0] + 10), 0);
	for (int i = 0; i < 5; i++)
		md_post_send(r.md, &r.qp[0], &wr);
	ring(&r, &r.qp[0], r.qp[0].sq_pi);
	for (int i = 0; i < 3; i++)
		assert_int_equal(poll(&r), QHCA_WC_SUCCESS);
	pass_time(&r, 100000000);
	assert_int_equal(poll(&r), QHCA_WC_RNR_RETRY_EXC_ERR);
	rig_free(&r);
	/* a slot beyond the ring ends the SRQ */
	rig_new(&r, true);
	sge.key = r.mr.key;
	assert_true(md_srq_post(r.md, &r.srq, 1, &sge, 1));
	put_le16(md_ptr(r.md, r.srq.buf.page[0] + 10), DEPTH);
	md_post_send(r.md, &r.qp[0], &wr);
	ring(&r, &r.qp[0], 1);
	assert_int_equal(poll(&r), QHCA_WC_REM_OP_ERR);
	assert_true(have_event(&r, QHCA_EVENT_SRQ_ERROR));
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
	assert_int_equal(cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq, sizeof(cq)),
			 QHCA_CMD_OK);
	/* the leaf has no write bit: the CQ fails, and nothing is written */
	guard_doorbell(r.g, 0, QHCA_DB_CQ_ARM, 3);
	guard_settle(r.g);
	assert_true(have_event(&r, QHCA_EVENT_CQ_ERROR));
	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_MR << 4 | 12u << 16 |
			    (uint32_t)QHCA_MAX_AT_LEVELS << 24);
	put_le32(&pte.pd, PD);
	put_le64(&pte.start, IOVA);
	put_le64(&pte.length, 4096);
	put_le64(&pte.at_base, node);
	put_le32(&pte.at_key, 100);
	md_pte_write(r.md, 100, &pte);
	sge.key = 100 << 8;
	reads = qhca_counter(r.g->hca, QHCA_CNT_at_node_reads);
	md_post_send(r.md, &r.qp[0], &wr);
	ring(&r, &r.qp[0], 1);
	guard_settle(r.g);
	assert_int_equal(qhca_counter(r.g->hca, QHCA_CNT_at_node_reads) - reads,
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
	assert_int_equal(cmd(&r, QHCA_CMD_CREATE_ETHQ, 0, 0, &in, sizeof(in)),
			 QHCA_CMD_OK);
	for (uint32_t pi = 0; pi < 4096; pi += 509) {
		guard_doorbell(r.g, 0, QHCA_DB_ETH_TX, (uint64_t)pi << 32);
		guard_settle(r.g);
	}
	guard_doorbell(r.g, 0, QHCA_DB_ETH_TX, 0xffffffffull << 32);
	guard_settle(r.g);
	assert_works(&r, 100);
	rig_free(&r);
}

/* An answer from host 2, which is ours. */
static void answer(struct rig *r, struct md_qp *qp, uint8_t opcode,
		   uint32_t psn)
{
	struct qhca_pkt pkt = {
		.opcode = opcode, .dest_qpn = qp->qpn, .psn = psn,
		.pkey = QHCA_PKEY_DEFAULT, .syndrome = QHCA_AETH_NO_CREDITS,
	};
	struct qhca_path path = { .vlan = 0xffff, .hop_limit = 64 };
	struct frame f;

	memcpy(path.dmac, r->md->mac, 6);
	memcpy(path.smac, r->md->mac, 6);
	memcpy(path.dgid, r->md->gid, 16);
	memcpy(path.sgid, r->md->gid, 16);
	path.sgid[15] = path.smac[5] = 2;
	frame_build(&f, &path, &pkt, 0);
	frame_fix(&f, FRAME_ALL);
	guard_rx(r->g, f.data, f.len);
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
	connect_to(&r, &r.qp[0], 0x55, 2);	/* who answers as we like */
	md_post_send(r.md, &r.qp[0], &wr);
	ring(&r, &r.qp[0], 1);
	guard_settle(r.g);
	assert_int_equal(r.g->num, 3);
	state_of(&r, 1);		/* evicts the context of the first */
	((uint8_t *)md_ptr(r.md, r.qp[0].buf.page[0]))[2] = 0;
	pass_time(&r, 2000000);		/* to the first timeout */
	answer(&r, &r.qp[0], QHCA_OP_ACK, 7);
	assert_int_equal(poll(&r), QHCA_WC_SUCCESS);
	pass_time(&r, 1000000000);
	assert_int_equal(state_of(&r, 0), QHCA_QPS_ERR);
	assert_true(have_event(&r, QHCA_EVENT_QP_FATAL));
	completions = qhca_counter(r.g->hca, QHCA_CNT_completions);
	assert_int_equal(completions, 1);
	rig_free(&r);
}

/* ------------------------------------------------------------------------
 * remap: a region whose pages are not what its entry says
 */
struct bad_region {
	const char *what;
	uint64_t root, leaf, length;
	uint8_t levels, shift;
};

/* Both ways: as the source of a send and as the target of a write. */
static void region_refused(const struct bad_region *b)
{
	struct qhca_pte pte = { 0 };
	struct md_sge sge = { IOVA, 8, 100 << 8 };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 1,
			    .sge = &sge };
	uint64_t node;
	struct rig r;
	int status;

	for (int remote = 0; remote < 2; remote++) {
		rig_new(&r, false);
		node = md_alloc(r.md, 64, 64);
		put_le64(md_ptr(r.md, node), b->leaf);
		put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_MR << 4 |
				    (uint32_t)b->shift << 16 |
				    (uint32_t)b->levels << 24);
		put_le32(&pte.access, RIGHTS);
		put_le32(&pte.pd, PD);
		put_le64(&pte.start, IOVA);
		put_le64(&pte.length, b->length);
		put_le64(&pte.at_base, b->root ? b->root : node);
		put_le32(&pte.at_key, 100);
		md_pte_write(r.md, 100, &pte);
		if (remote) {
			sge.key = r.mr.key;
			wr.opcode = QHCA_WQE_WRITE;
			wr.raddr = IOVA + (b->length - 8);
			wr.rkey = 100 << 8;
		} else {
			sge.addr = IOVA + (b->length - 8);
			sge.key = 100 << 8;
			wr.opcode = QHCA_WQE_SEND;
		}
		md_post_send(r.md, &r.qp[0], &wr);
		ring(&r, &r.qp[0], 1);
		status = poll(&r);
		if (remote ? status != QHCA_WC_REM_ACCESS_ERR &&
			     status != QHCA_WC_REM_OP_ERR :
			     status != QHCA_WC_LOC_PROT_ERR)
			fail_msg("%s: status %d", b->what, status);
		sge.addr = IOVA;
		rig_free(&r);
	}
}

static void test_remap(void **state)
{
	const uint64_t good = 0x100000 | QHCA_ATE_PRESENT | QHCA_ATE_WRITE;
	const uint64_t nowhere = 1ull << 40;
	const struct bad_region bad[] = {
		{ "no page", 0, 0, 4096, 1, 12 },
		{ "longer than its node", 0, good, 2 * 4096, 1, 12 },
		{ "longer than its levels reach", 0, good, 513 * 4096, 1, 12 },
		{ "page outside of memory", 0, nowhere | 5, 4096, 1, 12 },
		{ "page at the end of addresses", 0, ~0xfffull | 5, 4096, 1,
		  12 },
		{ "node outside of memory", nowhere, 0, 4096, 1, 12 },
		{ "node at the end of addresses", ~0x3full, 0, 1u << 20, 1,
		  12 },
		{ "node not aligned", 0x1001, 0, 4096, 1, 12 },
		{ "too many levels", 0, good, 4096, 6, 12 },
		{ "pages too small", 0, good, 4096, 1, 11 },
		{ "pages too large", 0, good, 4096, 1, 40 },
		{ "contiguous, outside of memory", nowhere, 0, 4096, 0, 12 },
		{ "contiguous, over the end of memory", GUARD_MEM - 4096, 0,
		  4104, 0, 12 },
		{ "contiguous, over the end of addresses", ~0xfffull, 0, 8192,
		  0, 12 },
	};

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		region_refused(&bad[i]);
}

/* A fast registration of more pages than there is room for. */
static void test_remap_fast_reg(void **state)
{
	struct md_qp_init init = {
		.type = QHCA_QPT_RC, .flags = QHCA_QP_KERNEL,
		.sq_log_depth = LOG_DEPTH, .sq_log_stride = LOG_STRIDE,
		.rq_log_depth = LOG_DEPTH, .rq_log_stride = LOG_RSTRIDE,
		.pd = PD,
	};
	struct qhca_wqe_reg reg = { .page_shift = 12 };
	struct md_wr wr = { .opcode = QHCA_WQE_REG_MR, .reg = &reg,
			    .flags = QHCA_WQE_F_SIGNALED };
	static const uint32_t pages[] = { 0, 5, 512, 513, 4096, 4097,
					  0x7fffffff, 0xffffffff };
	struct qhca_pte pte = { 0 };
	uint64_t node;
	struct rig r;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		rig_new(&r, false);
		node = md_alloc(r.md, 64, 64);
		guard_allow(r.g, node, 32);	/* four entries; 64 bytes */
		put_le32(&pte.ctrl, QHCA_PTE_INVALIDATED |
				    QHCA_PTE_FAST_REG << 4 | 12u << 16 |
				    1u << 24);
		put_le32(&pte.pd, PD);
		put_le32(&pte.at_key, 100);
		put_le64(&pte.at_base, node);
		put_le32(&pte.pool_block, 4);
		md_pte_write(r.md, 100, &pte);
		guard_allow(r.g, r.md->pt + 6400, 64);
		init.send_cq = init.recv_cq = &r.cq;
		assert_int_equal(md_qp_create(r.md, &r.qp[0], &init),
				 QHCA_CMD_OK);
		allow_queue(&r, &r.qp[0].buf, r.qp[0].rec_offset);
		connect_to(&r, &r.qp[0], r.qp[0].qpn, 1);
		put_le64(&reg.pages, r.mr.buf.page[0]);
		put_le64(&reg.length, 4096);
		put_le32(&reg.key, 100 << 8 | 1);
		put_le32(&reg.num_pages, pages[i]);
		md_post_send(r.md, &r.qp[0], &wr);
		ring(&r, &r.qp[0], 1);
		assert_int_equal(poll(&r), QHCA_WC_MW_BIND_ERR);
		rig_free(&r);
	}
}

/* ------------------------------------------------------------------------
 * length: sums and products that overflow
 */
static void test_length_chunks(void **state)
{
	static const struct {
		uint32_t first, count, len;
	} bad[] = {
		{ 0, 0, 0 }, { 0, 1, 0 }, { 0, 1, 16 }, { 0, 2, 8 },
		{ 0, 513, 4096 }, { 0, 0x200000, 0 }, { 0, 0xffffff, 4096 },
		{ 0xffffffff, 1, 8 }, { 0xffffffff, 2, 16 },
		{ 0x80000000, 1, 8 }, { 1, 0xffffff, 8 },
	};
	uint8_t in[4096] = { 0 };
	struct rig r;

	(void)state;
	rig_new(&r, false);
	/* each of the tables here has one chunk */
	for (uint32_t t = 0; t < QHCA_NUM_TABLES; t++)
		for (uint32_t count = 1; count <= QHCA_MAX_CHUNKS; count *= 2) {
			uint32_t first = count == 1, param = t | count << 8;

			assert_int_equal(cmd(&r, QHCA_CMD_MAP_CHUNKS, first,
					     param, in, 8 * count),
					 QHCA_CMD_BAD_INDEX);
			assert_int_equal(cmd(&r, QHCA_CMD_UNMAP_CHUNKS, first,
					     param, NULL, 0),
					 QHCA_CMD_BAD_INDEX);
		}
	for (unsigned int t = 0; t < 256; t++)
		for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
			uint32_t param = t | bad[i].count << 8;

			assert_int_not_equal(cmd(&r, QHCA_CMD_MAP_CHUNKS,
						 bad[i].first, param, in,
						 bad[i].len), QHCA_CMD_OK);
			if (i > 0 && i < 4)	/* only the mailbox is bad */
				continue;
			assert_int_not_equal(cmd(&r, QHCA_CMD_UNMAP_CHUNKS,
						 bad[i].first, param, NULL, 0),
					     QHCA_CMD_OK);
		}
	assert_works(&r, 300);
	rig_free(&r);
}

/* Rings and records that lie in their buffer only modulo 2^32 or 2^64. */
static void test_length_queue(void **state)
{
	static const struct {
		uint64_t base;
		uint32_t length, offset, record;
	} bad[] = {
		{ 0, RECORD, 4096, RECORD },
		{ 0, RECORD + 128, 4096, UINT32_MAX - 127 },
		{ 0, RECORD + 128, UINT32_MAX - 127, RECORD },
		{ 0, RECORD + 128, UINT32_MAX - 1023, RECORD },
		{ 0, RECORD + 127, 4096, RECORD },
		{ 0, 0, 4096, RECORD },
		{ ~63ull, RECORD + 128, 4096, RECORD },
		{ ~0ull << 12, UINT32_MAX, 4096, RECORD },
		{ 32, RECORD + 128, 4096, RECORD },
	};
	struct qhca_qpc_sw in;
	struct rig r;
	uint64_t base;

	(void)state;
	rig_new(&r, false);
	fill_qp(&r, &in);
	base = get_le64(&in.buf.base);
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		put_le64(&in.buf.base, bad[i].base < 64 ? base + bad[i].base :
							  bad[i].base);
		put_le32(&in.buf.length, bad[i].length);
		put_le32(&in.rq_offset, bad[i].offset);
		put_le32(&in.rec_offset, bad[i].record);
		assert_int_equal(cmd(&r, QHCA_CMD_CREATE_QP, 9, 0, &in,
				     sizeof(in)), QHCA_CMD_BAD_PARAM);
	}
	rig_free(&r);
}

/* Ranges of regions, requests and invalidations that wrap. */
static void test_length_range(void **state)
{
	static const struct {
		uint64_t addr;
		uint32_t len;
	} bad[] = {
		{ IOVA - 1, 8 }, { IOVA + MR_LEN - 7, 8 }, { IOVA, MR_LEN + 1 },
		{ UINT64_MAX - 3, 8 }, { UINT64_MAX, 1 }, { IOVA, 0x80000000 },
		{ 0, 8 }, { IOVA - 0x7fffffff, 0x80000000 },
	};
	struct qhca_range range;
	struct md_sge sge;
	struct md_wr wr = { .num_sge = 1, .sge = &sge };
	struct rig r;
	int status;

	(void)state;
	for (unsigned int i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		rig_new(&r, false);
		sge = (struct md_sge){ bad[i].addr, bad[i].len, r.mr.key };
		wr.opcode = QHCA_WQE_SEND;
		md_post_send(r.md, &r.qp[0], &wr);
		ring(&r, &r.qp[0], 1);
		status = poll(&r);
		/* what is good of a long message may have gone */
		assert_true(status == QHCA_WC_LOC_PROT_ERR ||
			    (bad[i].addr == IOVA && status != QHCA_WC_SUCCESS));
		put_le64(&range.start, bad[i].addr);
		put_le64(&range.length, UINT64_MAX - 1);
		assert_int_equal(cmd(&r, QHCA_CMD_INVALIDATE_RANGE,
				     r.mr.key >> 8, 0, &range, sizeof(range)),
				 bad[i].addr > 2 ? QHCA_CMD_BAD_PARAM :
						   QHCA_CMD_OK);
		rig_free(&r);
	}
}

/* Segments that together are longer than a message, or than 2^32. */
static void test_length_message(void **state)
{
	struct md_sge sge[4];
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 4,
			    .sge = sge };
	struct rig r;

	(void)state;
	rig_new(&r, false);
	for (int i = 0; i < 4; i++)
		sge[i] = (struct md_sge){ IOVA, 0x40000000, r.mr.key };
	sge[3].len = 0x40000008;	/* 8, modulo 2^32 */
	md_post_send(r.md, &r.qp[0], &wr);
	ring(&r, &r.qp[0], 1);
	assert_int_equal(poll(&r), QHCA_WC_LOC_LEN_ERR);
	rig_free(&r);
}

/* ------------------------------------------------------------------------
 * unmap: what was never made, undone
 */
static void test_unmap(void **state)
{
	static const uint16_t opcodes[] = {
		QHCA_CMD_DESTROY_QP, QHCA_CMD_DESTROY_CQ, QHCA_CMD_DESTROY_SRQ,
		QHCA_CMD_DESTROY_EQ, QHCA_CMD_QUERY_QP, QHCA_CMD_QUERY_CQ,
		QHCA_CMD_QUERY_SRQ, QHCA_CMD_QUERY_EQ, QHCA_CMD_MODIFY_SRQ,
	};
	struct qhca_mgid mgid = { { 0xff } };
	struct rig r;

	(void)state;
	rig_new(&r, false);
	for (unsigned int i = 0; i < 9; i++)
		for (uint32_t index = 5; index < 40; index++) {
			int status = cmd(&r, opcodes[i], index, 0, NULL, 0);

			assert_true(status == QHCA_CMD_BAD_STATE ||
				    status == QHCA_CMD_BAD_INDEX);
		}
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(cmd(&r, QHCA_CMD_UNMAP_POOL_BLOCK, i, 0, NULL,
				     0), QHCA_CMD_BAD_STATE);
	assert_int_equal(cmd(&r, QHCA_CMD_DESTROY_ETHQ, 0, 0, NULL, 0),
			 QHCA_CMD_BAD_STATE);
	assert_int_equal(cmd(&r, QHCA_CMD_DETACH_MCAST, r.qp[0].qpn, 0, &mgid,
			     sizeof(mgid)), QHCA_CMD_BAD_STATE);
	/* twice */
	assert_int_equal(md_qp_destroy(r.md, &r.qp[0]), QHCA_CMD_OK);
	assert_int_equal(md_qp_destroy(r.md, &r.qp[0]), QHCA_CMD_BAD_STATE);
	rig_free(&r);
}

/* A command that maps half of what it should, and then fails. */
static void test_unmap_half(void **state)
{
	struct qhca_init_hca in;
	uint64_t chunk[4];
	struct rig r;

	(void)state;
	memset(&r, 0, sizeof(r));
	start(&r);
	assert_int_equal(cmd(&r, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0),
			 QHCA_CMD_OK);
	fill_init(&in, 1);
	in.table[QHCA_TABLE_QP].log_entries = 4;
	in.table[QHCA_TABLE_QP].log_chunk = 12;
	assert_int_equal(cmd(&r, QHCA_CMD_INIT_HCA, 0, 0, &in, sizeof(in)),
			 QHCA_CMD_OK);
	for (int i = 0; i < 4; i++)
		put_le64(&chunk[i], 0x100000 + 4096 * (uint64_t)i);
	put_le64(&chunk[3], 0x100001);
	assert_int_equal(cmd(&r, QHCA_CMD_MAP_CHUNKS, 0,
			     QHCA_TABLE_QP | 4 << 8, chunk, sizeof(chunk)),
			 QHCA_CMD_BAD_PARAM);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(cmd(&r, QHCA_CMD_UNMAP_CHUNKS, i,
				     QHCA_TABLE_QP | 1 << 8, NULL, 0),
				 QHCA_CMD_NOT_MAPPED);
	/* one is taken: none of the others is */
	put_le64(&chunk[3], 0x103000);
	assert_int_equal(cmd(&r, QHCA_CMD_MAP_CHUNKS, 2,
			     QHCA_TABLE_QP | 1 << 8, chunk, 8), QHCA_CMD_OK);
	assert_int_equal(cmd(&r, QHCA_CMD_MAP_CHUNKS, 0,
			     QHCA_TABLE_QP | 4 << 8, chunk, sizeof(chunk)),
			 QHCA_CMD_IN_USE);
	assert_int_equal(cmd(&r, QHCA_CMD_UNMAP_CHUNKS, 0,
			     QHCA_TABLE_QP | 4 << 8, NULL, 0),
			 QHCA_CMD_NOT_MAPPED);
	assert_int_equal(cmd(&r, QHCA_CMD_UNMAP_CHUNKS, 2,
			     QHCA_TABLE_QP | 1 << 8, NULL, 0), QHCA_CMD_OK);
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
	pass_time(&r, 1000000000);
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
			status = cmd(r, (uint16_t)opcode, i, 1 << 8, in,
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
	ring(&r, &r.qp[0], 4);
	guard_doorbell(r.g, 0, QHCA_DB_CQ_ARM, r.cq.cqn);
	guard_run(r.g, 20);		/* some of it */
	assert_int_equal(cmd(&r, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0),
			 QHCA_CMD_OK);
	memset(r.g->writable, 0, sizeof(r.g->writable));
	dma = r.g->dma;
	ring_everything(&r);
	answer(&r, &r.qp[0], QHCA_OP_ACK, 8);
	pass_time(&r, 5000000000);
	assert_int_equal(r.g->dma, dma);
	guard_allow(r.g, r.md->cmdq, 64);
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
	ring(&r, &r.qp[0], 4);
	guard_reg_write(r.g, QHCA_REG_CMDQ_DOORBELL, 1);
	guard_run(r.g, 20);
	guard_reg_write(r.g, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
	r.g->dma = 0;
	ring_everything(&r);
	guard_reg_write(r.g, QHCA_REG_CMDQ_DOORBELL, 0xffffffff);
	answer(&r, &r.qp[0], QHCA_OP_ACK, 8);
	pass_time(&r, 5000000000);
	assert_int_equal(r.g->dma, 0);
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
	assert_int_equal(cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq, sizeof(cq)),
			 QHCA_CMD_BAD_PARAM);
	cq.buf.levels = QHCA_MAX_AT_LEVELS + 1;
	put_le32(&cq.buf.length, 8192);
	assert_int_equal(cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq, sizeof(cq)),
			 QHCA_CMD_BAD_PARAM);
	cq.buf.levels = 1;
	for (unsigned int shift = 0; shift < 256; shift++) {
		cq.buf.page_shift = (uint8_t)shift;
		if (shift < 12 || shift > 39)
			assert_int_equal(cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq,
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
	assert_int_equal(cmd(&r, QHCA_CMD_CREATE_CQ, 3, 0, &cq, sizeof(cq)),
			 QHCA_CMD_OK);
	r.cq.cqn = 3;			/* queue pairs complete there */
	make_qp(&r, 0, NULL);
	connect_to(&r, &r.qp[0], r.qp[0].qpn, 1);
	for (int i = 0; i < 64; i++) {	/* as many as the page holds */
		md_post_send(r.md, &r.qp[0], &wr);
		ring(&r, &r.qp[0], r.qp[0].sq_pi);
		guard_settle(r.g);
	}
	assert_int_equal(state_of(&r, 0), QHCA_QPS_RTS);
	md_post_send(r.md, &r.qp[0], &wr);
	ring(&r, &r.qp[0], r.qp[0].sq_pi);
	guard_settle(r.g);
	assert_int_equal(state_of(&r, 0), QHCA_QPS_ERR);
	assert_true(have_event(&r, QHCA_EVENT_CQ_ERROR));
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
		.type = QHCA_QPT_RC, .sq_log_depth = 7,
		.sq_log_stride = LOG_STRIDE, .no_rq = true, .pd = PD,
	};
	struct md_sge sge = { IOVA, 3 * 256, 0 };
	struct md_wr first = { .opcode = QHCA_WQE_SEND, .inline_len = 64,
			       .flags = QHCA_WQE_F_INLINE };
	struct md_wr second = { .opcode = QHCA_WQE_SEND, .num_sge = 1,
				.sge = &sge };
	struct md_wr other = { .opcode = QHCA_WQE_SEND };
	struct qhca_sgl evil = { .num = UINT32_MAX, .hint = 1u << 20 };
	struct qhca_sq_wqe *wqe;
	struct rig r;

	(void)state;
	rig_new(&r, false);
	sge.key = r.mr.key;
	first.inline_data = &evil;
	init.send_cq = init.recv_cq = &r.cq;
	assert_int_equal(md_qp_create(r.md, &r.qp[0], &init), QHCA_CMD_OK);
	allow_queue(&r, &r.qp[0].buf, r.qp[0].rec_offset);
	connect_to(&r, &r.qp[0], 0x55, 2);
	md_post_send(r.md, &r.qp[0], &first);
	md_post_send(r.md, &r.qp[0], &second);
	while (r.qp[0].sq_pi <= QHCA_SUM_RING)
		md_post_send(r.md, &r.qp[0], &other);
	ring(&r, &r.qp[0], r.qp[0].sq_pi);
	guard_settle(r.g);
	/* the first, read again, and a third of the second, remembered */
	answer(&r, &r.qp[0], QHCA_OP_ACK, 8);
	md_post_send(r.md, &r.qp[0], &other);	/* forgotten */
	ring(&r, &r.qp[0], r.qp[0].sq_pi);
	guard_settle(r.g);
	wqe = md_ptr(r.md, r.qp[0].buf.page[0] + (1 << LOG_STRIDE));
	wqe->opcode = QHCA_WQE_CMP_SWAP;
	wqe->flags = QHCA_WQE_F_INLINE;
	answer(&r, &r.qp[0], QHCA_OP_ATOMIC_ACK, 9);
	guard_settle(r.g);
	assert_int_equal(state_of(&r, 0), QHCA_QPS_ERR);
	rig_free(&r);
}

/* An EQ is what the device tells its troubles to: without it, it is dead. */
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
	assert_int_equal(cmd(&r, QHCA_CMD_DESTROY_CQ, 9, 0, NULL, 0),
			 QHCA_CMD_BAD_STATE);
	assert_int_equal(cmd(&r, QHCA_CMD_DESTROY_EQ, 0, 0, NULL, 0),
			 QHCA_CMD_IN_USE);
	assert_int_equal(cmd(&r, QHCA_CMD_CREATE_EQ, 1, 0, &eq, sizeof(eq)),
			 QHCA_CMD_OK);
	assert_int_equal(md_qp_destroy(r.md, &r.qp[0]), QHCA_CMD_OK);
	assert_int_equal(md_qp_destroy(r.md, &r.qp[1]), QHCA_CMD_OK);
	assert_int_equal(cmd(&r, QHCA_CMD_DESTROY_CQ, r.cq.cqn, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(cmd(&r, QHCA_CMD_DESTROY_EQ, 0, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(cmd(&r, QHCA_CMD_CREATE_EQ, 0, 0, &eq, sizeof(eq)),
			 QHCA_CMD_OK);
	qhca_set_link(r.g->hca, false, r.md->now);	/* an event */
	assert_true(qhca_is_dead(r.g->hca));
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
		cmocka_unit_test(test_leak_dma),
		cmocka_unit_test(test_leak_references),
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_loop_indices),
		cmocka_unit_test(test_loop_srq_list),
		cmocka_unit_test(test_loop_nodes),
		cmocka_unit_test(test_loop_ethernet),
		cmocka_unit_test(test_loop_shrunk),
		cmocka_unit_test(test_remap),
		cmocka_unit_test(test_remap_fast_reg),
		cmocka_unit_test(test_length_chunks),
		cmocka_unit_test(test_length_queue),
		cmocka_unit_test(test_length_range),
		cmocka_unit_test(test_length_message),
		cmocka_unit_test(test_unmap),
		cmocka_unit_test(test_unmap_half),
		cmocka_unit_test(test_early_disabled),
		cmocka_unit_test(test_early_torn_down),
		cmocka_unit_test(test_early_reset),
		cmocka_unit_test(test_ring_page_reach),
		cmocka_unit_test(test_ring_page_absent),
		cmocka_unit_test(test_ring_page_rewritten),
		cmocka_unit_test(test_ring_page_eq),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
