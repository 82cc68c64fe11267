/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Errors: one connection between two hosts, one mistake or loss, and the completions,
 * events and states that the specification defines for both sides.
 */
#include <string.h>

#include "pair.h"

/* ---- responder refuses */

/* The NAK behind @status, as its sender and as its receiver count it. */
static void count_naks(struct pair *p, uint8_t status)
{
	static const enum qhca_counter sent[] = {
		[QHCA_WC_REM_INV_REQ_ERR] = QHCA_CNT_tx_nak_invalid,
		[QHCA_WC_REM_ACCESS_ERR] = QHCA_CNT_tx_nak_access,
		[QHCA_WC_REM_OP_ERR] = QHCA_CNT_tx_nak_op,
	}, received[] = {
		[QHCA_WC_REM_INV_REQ_ERR] = QHCA_CNT_rx_nak_invalid,
		[QHCA_WC_REM_ACCESS_ERR] = QHCA_CNT_rx_nak_access,
		[QHCA_WC_REM_OP_ERR] = QHCA_CNT_rx_nak_op,
	};

	CHECK_EQ(count_of(&p->b, sent[status]), 1);
	CHECK_EQ(count_of(&p->a, received[status]), 1);
}

/* Checks that @b is in ERR with @event, and that @a's first request has @status. */
static void refused(struct pair *p, uint8_t status, int event)
{
	settle(p);
	count_naks(p, status);
	EXPECT(&p->a.scq, 0, status, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), event);
	CHECK_EQ(next_event(&p->a, 0), 0);
}

static void post_bad(struct pair *p, struct md_wr *wr)
{
	struct md_sge sge = { p->a.mr.iova, 8, p->a.mr.key };

	wr->flags |= QHCA_WQE_F_SIGNALED;
	if (!wr->sge) {
		wr->sge = &sge;
		wr->num_sge = 1;
	}
	post_wr(&p->a, wr);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
}

static void write_bad_rkey(struct pair *p)
{
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE, .raddr = p->b.mr.iova,
			    .rkey = p->b.mr.key ^ 1 };

	connect_pair(p);
	post_bad(p, &wr);
	refused(p, QHCA_WC_REM_ACCESS_ERR, QHCA_EVENT_QP_ACCESS_ERROR);
}

static void write_out_of_range(struct pair *p)
{
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE,
			    .raddr = p->b.mr.iova + PAIR_LEN - 7,
			    .rkey = p->b.mr.key };

	connect_pair(p);
	post_bad(p, &wr);
	refused(p, QHCA_WC_REM_ACCESS_ERR, QHCA_EVENT_QP_ACCESS_ERROR);
}

static void long_write_end_out_of_range(struct pair *p)
{
	struct md_sge sge = { p->a.mr.iova, 5000, p->a.mr.key };
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE, .sge = &sge,
			    .num_sge = 1, .raddr = p->b.mr.iova + PAIR_LEN - 4999,
			    .rkey = p->b.mr.key };
	uint8_t before[5000], after[5000];

	connect_pair(p);
	md_buf_read(p->b.md, &p->b.mr.buf, PAIR_LEN - 4999, before, 4999);
	post_bad(p, &wr);
	refused(p, QHCA_WC_REM_ACCESS_ERR, QHCA_EVENT_QP_ACCESS_ERROR);
	/* The device refuses the message as a whole at its first packet. */
	md_buf_read(p->b.md, &p->b.mr.buf, PAIR_LEN - 4999, after, 4999);
	CHECK(!memcmp(before, after, 4999));
}

static void read_bad_rkey(struct pair *p)
{
	struct md_wr wr = { .opcode = QHCA_WQE_READ, .raddr = p->b.mr.iova,
			    .rkey = 0 };

	connect_pair(p);
	post_bad(p, &wr);
	refused(p, QHCA_WC_REM_ACCESS_ERR, QHCA_EVENT_QP_ACCESS_ERROR);
}

static void atomic_bad_rkey(struct pair *p)
{
	struct md_wr wr = { .opcode = QHCA_WQE_FETCH_ADD,
			    .raddr = p->b.mr.iova,
			    .rkey = QHCA_RESERVED_LKEY };

	connect_pair(p);
	post_bad(p, &wr);
	refused(p, QHCA_WC_REM_ACCESS_ERR, QHCA_EVENT_QP_ACCESS_ERROR);
}

static void atomic_misaligned(struct pair *p)
{
	struct md_wr wr = { .opcode = QHCA_WQE_CMP_SWAP,
			    .raddr = p->b.mr.iova + 4, .rkey = p->b.mr.key };

	connect_pair(p);
	post_bad(p, &wr);
	refused(p, QHCA_WC_REM_INV_REQ_ERR, QHCA_EVENT_QP_REQ_ERROR);
}

static void write_not_enabled(struct pair *p)
{
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE, .raddr = p->b.mr.iova,
			    .rkey = p->b.mr.key };

	p->b.conn.access = QHCA_ACCESS_REMOTE_READ;
	connect_pair(p);
	post_bad(p, &wr);
	refused(p, QHCA_WC_REM_INV_REQ_ERR, QHCA_EVENT_QP_REQ_ERROR);
}

static void read_not_enabled(struct pair *p)
{
	struct md_wr wr = { .opcode = QHCA_WQE_READ, .raddr = p->b.mr.iova,
			    .rkey = p->b.mr.key };

	p->b.conn.access = QHCA_ACCESS_REMOTE_WRITE;
	connect_pair(p);
	post_bad(p, &wr);
	refused(p, QHCA_WC_REM_INV_REQ_ERR, QHCA_EVENT_QP_REQ_ERROR);
}

static void too_many_reads(struct pair *p)
{
	p->b.conn.max_dest_rd_atomic = 0;
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_READ, 8, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	refused(p, QHCA_WC_REM_INV_REQ_ERR, QHCA_EVENT_QP_REQ_ERROR);
}

static void send_too_long(struct pair *p)
{
	connect_pair(p);
	post_recv(&p->b, 1500);
	post_recv(&p->b, 1500);
	post(p, &p->a, QHCA_WQE_SEND, 3000, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	refused(p, QHCA_WC_REM_INV_REQ_ERR, QHCA_EVENT_QP_REQ_ERROR);
	EXPECT(&p->b.rcq, 0, QHCA_WC_LOC_LEN_ERR, QHCA_WC_WR_FLUSH_ERR);
}

static void recv_bad_lkey(struct pair *p)
{
	struct md_sge sge = { PAIR_IOVA, 100, 0x500 };

	connect_pair(p);
	md_post_recv(p->b.md, &p->b.qp, 0, &sge, 1);
	post(p, &p->a, QHCA_WQE_SEND, 80, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	refused(p, QHCA_WC_REM_OP_ERR, QHCA_EVENT_QP_FATAL);
	EXPECT(&p->b.rcq, 0, QHCA_WC_LOC_PROT_ERR);
}

static void recv_malformed(struct pair *p)
{
	struct md_sge sge[8] = { { PAIR_IOVA, 1, 0 } };

	connect_pair(p);
	md_post_recv(p->b.md, &p->b.qp, 0, sge, 8);	/* 7 fit the stride */
	post(p, &p->a, QHCA_WQE_SEND, 80, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	refused(p, QHCA_WC_REM_OP_ERR, QHCA_EVENT_QP_FATAL);
	EXPECT(&p->b.rcq, 0, QHCA_WC_LOC_QP_OP_ERR);
}

/* The WQE that is taken for the immediate says why (IBTA 11.6.2). */
static void write_imm_bad_rkey(struct pair *p)
{
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE_IMM,
			    .raddr = p->b.mr.iova, .rkey = 0x400 };

	connect_pair(p);
	post_recv(&p->b, 100);
	post_recv(&p->b, 100);
	post_bad(p, &wr);
	refused(p, QHCA_WC_REM_ACCESS_ERR, QHCA_EVENT_QP_ACCESS_ERROR);
	EXPECT(&p->b.rcq, 0, QHCA_WC_LOC_ACCESS_ERR, QHCA_WC_WR_FLUSH_ERR);
}

static void earlier_reads_are_answered(struct pair *p)
{
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE, .raddr = p->b.mr.iova,
			    .rkey = 0x400 };

	connect_pair(p);
	post(p, &p->a, QHCA_WQE_READ, 20000, 0);
	post(p, &p->a, QHCA_WQE_READ, 20000, 0);
	post_bad(p, &wr);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS,
	       QHCA_WC_REM_ACCESS_ERR, QHCA_WC_WR_FLUSH_ERR);
}

/* ---- requester finds out by itself */

static void local_error(struct pair *p, struct md_wr *wr, uint8_t status)
{
	connect_pair(p);
	post_recv(&p->b, 100);
	post(p, &p->a, QHCA_WQE_SEND, 50, 0);
	post_wr(&p->a, wr);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS, status, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
	CHECK_EQ(next_event(&p->a, 0), 0);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	/* Requests that are posted later are flushed too. */
	post_recv(&p->a, 8);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 3, QHCA_WC_WR_FLUSH_ERR);
	EXPECT(&p->a.rcq, 0, QHCA_WC_WR_FLUSH_ERR);
}

static void send_bad_lkey(struct pair *p)
{
	struct md_sge sge = { PAIR_IOVA, 100, 0x500 };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .sge = &sge,
			    .num_sge = 1 };

	local_error(p, &wr, QHCA_WC_LOC_PROT_ERR);
}

static void send_lkey_of_other_pd(struct pair *p)
{
	struct md_mr other;
	struct md_sge sge = { PAIR_IOVA, 100, 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .sge = &sge,
			    .num_sge = 1 };

	md_reg_mr(p->a.md, &other, PAIR_PD + 1, PAIR_IOVA, PAIR_LEN, ALL_ACCESS);
	sge.key = other.key;
	local_error(p, &wr, QHCA_WC_LOC_PROT_ERR);
}

static void user_reserved_lkey(struct pair *p)
{
	struct md_sge sge = { 0x4000, 100, QHCA_RESERVED_LKEY };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .sge = &sge,
			    .num_sge = 1 };

	local_error(p, &wr, QHCA_WC_LOC_PROT_ERR);
}

static void read_into_read_only(struct pair *p)
{
	struct md_mr ro;
	struct md_sge sge = { PAIR_IOVA, 100, 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_READ, .sge = &sge,
			    .num_sge = 1, .raddr = p->b.mr.iova,
			    .rkey = p->b.mr.key };

	md_reg_mr(p->a.md, &ro, PAIR_PD, PAIR_IOVA, PAIR_LEN, 0);
	sge.key = ro.key;
	local_error(p, &wr, QHCA_WC_LOC_PROT_ERR);
}

static void unknown_opcode(struct pair *p)
{
	struct md_wr wr = { .opcode = 0x77 };

	local_error(p, &wr, QHCA_WC_LOC_QP_OP_ERR);
}

static void too_many_segments(struct pair *p)
{
	struct md_sge sge[12] = { { PAIR_IOVA, 0, 0 } };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 12,
			    .sge = sge };

	wr.num_sge = 12;
	connect_pair(p);
	md_post_send(p->a.md, &p->a.qp, &wr);
	/* The stride holds 12 segments: claim one more. */
	md_buf_write(p->a.md, &p->a.qp.buf, 2, "\x0d", 1);
	md_ring(p->a.md, &p->a.qp);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_LOC_QP_OP_ERR);
}

static void message_too_long(struct pair *p)
{
	struct md_sge sge[2] = { { PAIR_IOVA, 0x80000000u, p->a.mr.key },
				 { PAIR_IOVA, 1, p->a.mr.key } };
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE, .sge = sge,
			    .num_sge = 2 };

	local_error(p, &wr, QHCA_WC_LOC_LEN_ERR);
}

static void atomic_wrong_length(struct pair *p)
{
	struct md_sge sge = { PAIR_IOVA, 16, p->a.mr.key };
	struct md_wr wr = { .opcode = QHCA_WQE_FETCH_ADD, .sge = &sge,
			    .num_sge = 1, .raddr = p->b.mr.iova,
			    .rkey = p->b.mr.key };

	local_error(p, &wr, QHCA_WC_LOC_LEN_ERR);
}

static void read_without_depth(struct pair *p)
{
	struct md_sge sge = { PAIR_IOVA, 16, p->a.mr.key };
	struct md_wr wr = { .opcode = QHCA_WQE_READ, .sge = &sge,
			    .num_sge = 1, .raddr = p->b.mr.iova,
			    .rkey = p->b.mr.key };

	p->a.conn.max_rd_atomic = 0;
	local_error(p, &wr, QHCA_WC_LOC_QP_OP_ERR);
}

/*
 * The message before the bad READ has not asked for an ACK, and is sent again to
 * ask.  What is sent has to be that message: its ACK is what the error waits for.
 */
static void read_without_depth_behind(struct pair *p)
{
	struct md_sge sge = { PAIR_IOVA, 5000, p->a.mr.key };
	struct md_sge one = { PAIR_IOVA, 50, p->a.mr.key };
	struct md_wr send = { .opcode = QHCA_WQE_SEND, .sge = &one,
			      .num_sge = 1, .wr_id = 9 };
	struct md_wr wr = { .opcode = QHCA_WQE_READ, .sge = &sge,
			    .num_sge = 1, .raddr = p->b.mr.iova,
			    .rkey = p->b.mr.key };

	p->a.conn.max_rd_atomic = 0;
	connect_pair(p);
	post_recv(&p->b, 100);
	md_post_send(p->a.md, &p->a.qp, &send);
	md_post_send(p->a.md, &p->a.qp, &wr);
	md_ring(p->a.md, &p->a.qp);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_LOC_QP_OP_ERR);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
}

static void local_inv_of_nothing(struct pair *p)
{
	struct md_wr wr = { .opcode = QHCA_WQE_LOCAL_INV, .imm = 0x6600 };

	local_error(p, &wr, QHCA_WC_MW_BIND_ERR);
}

/* ---- silence */

static void retry_exceeded(struct pair *p)
{
	uint64_t start;

	connect_pair(p);
	p->w.filter = drop_all;
	start = p->w.now;
	post(p, &p->a, QHCA_WQE_WRITE, 3000, 0);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_RETRY_EXC_ERR, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 4);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retry_exceeded), 1);
	CHECK(p->w.now - start >= 4 * (4096ull << 8));
}

static void no_timeout_waits_for_ever(struct pair *p)
{
	p->a.conn.timeout = 0;
	connect_pair(p);
	p->w.filter = drop_all;
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	settle(p);
	expect_none(&p->a.scq);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
}

static void rnr_exceeded(struct pair *p)
{
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_RNR_RETRY_EXC_ERR, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_rx_rnr), 4);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_rnr_retry_exceeded), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_rnr_no_wqe), 4);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
}

static void rnr_recovers(struct pair *p)
{
	p->a.conn.rnr_retry = 7;
	p->b.conn.min_rnr_timer = 0;		/* 655.36 ms */
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_SEND, 3000, 0);
	world_run(&p->w, p->w.now + 600000000);
	expect_none(&p->a.scq);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_rx_rnr), 1);
	post_recv(&p->b, 4000);
	world_run(&p->w, p->w.now + 100000000);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS);
}

/* ---- states */

static void error_flushes_both(struct pair *p)
{
	connect_pair(p);
	p->w.filter = drop_all;
	for (int i = 0; i < 3; i++) {
		post(p, &p->a, QHCA_WQE_SEND, 8, 0);
		post_recv(&p->a, 8);
	}
	world_run(&p->w, p->w.now + 10000);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_ERR, 0, NULL), 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_WR_FLUSH_ERR, QHCA_WC_WR_FLUSH_ERR,
	       QHCA_WC_WR_FLUSH_ERR);
	EXPECT(&p->a.rcq, 0, QHCA_WC_WR_FLUSH_ERR, QHCA_WC_WR_FLUSH_ERR,
	       QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(next_event(&p->a, 0), 0);
}

static void reset_and_again(struct pair *p)
{
	connect_pair(p);
	post_recv(&p->b, 100);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RESET, 0, NULL), 0);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET, 0, NULL), 0);
	p->a.conn.sq_psn = p->b.conn.rq_psn = 77;
	connect_pair(p);
	post_recv(&p->b, 100);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS);
}

static bool drop_acks(struct world *w, unsigned int from, uint8_t *frame,
		      size_t len)
{
	(void)w; (void)frame; (void)len;
	return from != 1;
}

static void drain(struct pair *p)
{
	struct qhca_query_qp q;

	connect_pair(p);
	p->w.filter = drop_acks;
	for (int i = 0; i < 4; i++)
		post_recv(&p->b, 3000);
	post(p, &p->a, QHCA_WQE_SEND, 3000, 0);
	world_run(&p->w, p->w.now + 100000);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_SQD,
			      QHCA_QP_ATTR_SQD_EVENT, NULL), 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	world_run(&p->w, p->w.now + 100000);
	CHECK_EQ(md_qp_query(p->a.md, &p->a.qp, &q), 0);
	CHECK_EQ(q.sq_draining, 1);
	CHECK_EQ(next_event(&p->a, 0), 0);
	/* The command is refused while the queue drains. */
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_SQD,
			      QHCA_QP_ATTR_TIMEOUT, &p->a.conn),
		 QHCA_CMD_BAD_STATE);
	p->w.filter = NULL;
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	CHECK_EQ(next_event(&p->a, p->a.qp.qpn), QHCA_EVENT_QP_SQ_DRAINED);
	CHECK_EQ(md_qp_query(p->a.md, &p->a.qp, &q), 0);
	CHECK_EQ(q.sq_draining, 0);
	CHECK_EQ(q.ctx.state, QHCA_QPS_SQD);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_SQD,
			      QHCA_QP_ATTR_TIMEOUT, &p->a.conn), 0);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RTS, 0, NULL), 0);
	settle(p);
	EXPECT(&p->a.scq, 1, QHCA_WC_SUCCESS);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
}

static void drain_idle(struct pair *p)
{
	connect_pair(p);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_SQD,
			      QHCA_QP_ATTR_SQD_EVENT, NULL), 0);
	settle(p);
	CHECK_EQ(next_event(&p->a, p->a.qp.qpn), QHCA_EVENT_QP_SQ_DRAINED);
}

static void transitions_checked(struct pair *p)
{
	struct md_qp *qp = &p->a.qp;
	struct md *md = p->a.md;
	uint32_t init = QHCA_QP_ATTR_PKEY_INDEX | QHCA_QP_ATTR_ACCESS;

	CHECK_EQ(md_qp_modify(md, qp, QHCA_QPS_RTS, 0, &p->a.conn),
		 QHCA_CMD_BAD_STATE);
	CHECK_EQ(md_qp_modify(md, qp, QHCA_QPS_INIT, QHCA_QP_ATTR_ACCESS,
			      &p->a.conn), QHCA_CMD_BAD_PARAM);
	CHECK_EQ(md_qp_modify(md, qp, QHCA_QPS_INIT,
			      init | QHCA_QP_ATTR_QKEY, &p->a.conn),
		 QHCA_CMD_BAD_PARAM);
	CHECK_EQ(md_qp_modify(md, qp, QHCA_QPS_ERR, 0, NULL),
		 QHCA_CMD_BAD_STATE);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_RESET);
	connect_pair(p);
	CHECK_EQ(md_qp_modify(md, qp, QHCA_QPS_SQE, 0, NULL),
		 QHCA_CMD_BAD_STATE);
	CHECK_EQ(md_qp_modify(md, qp, QHCA_QPS_RTR, 0, NULL),
		 QHCA_CMD_BAD_STATE);
	CHECK_EQ(md_qp_modify(md, qp, QHCA_QPS_SQD, 0, NULL), 0);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_SQD);
}

/* ---- datagrams, unreliable connections, SRQs */

static void ud_bad_qkey(struct pair *p)
{
	connect_pair(p);
	post_recv(&p->b, 200);
	put_le32(&p->ud.qkey, PAIR_QKEY + 1);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	expect_none(&p->b.rcq);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_bad_qkey), 1);
	/* The high bit asks for the QP's own. */
	put_le32(&p->ud.qkey, 0x80000000u);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS);
}

static void ud_too_long(struct pair *p)
{
	connect_pair(p);
	post_recv(&p->b, 47);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);	/* 40 of header and 8 */
	post(p, &p->a, QHCA_WQE_SEND, 7, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_ud_dropped), 1);
}

static void ud_header(struct pair *p)
{
	struct qhca_cqe cqe;
	uint8_t grh[40];

	connect_pair(p);
	post_recv(&p->b, 100);
	post(p, &p->a, QHCA_WQE_SEND, 8, QHCA_WQE_F_SOLICITED);
	settle(p);
	CHECK(md_poll(&p->b.rcq, &cqe));
	CHECK_EQ(get_le32(&cqe.byte_len), 48);
	CHECK_EQ(get_le32(&cqe.src_qpn), p->a.qp.qpn);
	CHECK_EQ(cqe.net_type, 4);
	CHECK_EQ(get_le16(&cqe.vlan), 0xffff);
	CHECK(!memcmp(cqe.smac, p->a.md->mac, 6));
	CHECK_EQ(get_le32(&cqe.flags) & ~QHCA_PHASE,
		 QHCA_CQE_GRH | QHCA_CQE_SOLICITED);
	md_buf_read(p->b.md, &p->b.mr.buf, 16384, grh, 40);
	CHECK_EQ(grh[19], 0);
	CHECK_EQ(grh[20], 0x45);
	CHECK(!memcmp(grh + 32, p->a.md->gid + 12, 4));
	CHECK(!memcmp(grh + 36, p->b.md->gid + 12, 4));
}

static void ud_over_mtu_sqe(struct pair *p)
{
	connect_pair(p);
	post_recv(&p->a, 100);
	post(p, &p->a, QHCA_WQE_SEND, 4097, 0);
	post(p, &p->a, QHCA_WQE_SEND, 1, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_LOC_LEN_ERR, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_SQE);
	expect_none(&p->a.rcq);
	/* Requests are flushed until software lets the queue continue. */
	post(p, &p->a, QHCA_WQE_SEND, 1, 0);
	settle(p);
	EXPECT(&p->a.scq, 2, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RTS, 0, NULL), 0);
	post_recv(&p->b, 100);
	post(p, &p->a, QHCA_WQE_SEND, 1, 0);
	settle(p);
	EXPECT(&p->a.scq, 3, QHCA_WC_SUCCESS);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS);
}

/* Drops the n-th frame (from 1). */
static bool drop_nth(struct world *w, unsigned int from, uint8_t *frame,
		     size_t len)
{
	uint32_t *n = w->filter_arg;

	(void)from; (void)frame; (void)len;
	return --*n != 0;
}

static void uc_gap(struct pair *p)
{
	uint32_t n = 2;

	connect_pair(p);
	post_recv(&p->b, 4000);
	p->w.filter = drop_nth;
	p->w.filter_arg = &n;
	post(p, &p->a, QHCA_WQE_SEND, 3000, 0);
	post(p, &p->a, QHCA_WQE_SEND, 2000, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
	/* The WQE of the lost message serves the next one. */
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_uc_dropped), 1);
}

static void nak_repairs_gap(struct pair *p)
{
	uint32_t n = 2;

	connect_pair(p);
	post_recv(&p->b, 8000);
	p->w.filter = drop_nth;
	p->w.filter_arg = &n;
	post(p, &p->a, QHCA_WQE_SEND, 8000, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_nak_seq), 1);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_rx_nak_seq), 1);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
}

/* The next event but COMM_EST. */
static bool event_of_end(struct end *e, struct qhca_eqe *eqe)
{
	do {
		if (!md_event(e->md, eqe))
			return false;
	} while (eqe->type == QHCA_EVENT_QP_COMM_EST);
	return true;
}

static void srq_limit_and_last_wqe(struct pair *p)
{
	struct qhca_eqe eqe;

	connect_pair(p);
	for (int i = 0; i < 4; i++)
		post_recv(&p->b, 1000);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_MODIFY_SRQ, p->b.srq.srqn, 3, NULL,
			0, NULL, 0, NULL), 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK_EQ(next_event(&p->b, 0), 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK(event_of_end(&p->b, &eqe));
	CHECK_EQ(eqe.type, QHCA_EVENT_SRQ_LIMIT);
	CHECK_EQ(get_le32(&eqe.number), p->b.srq.srqn);
	CHECK_EQ(get_le32(&eqe.detail), 3);
	CHECK_EQ(next_event(&p->b, 0), 0);
	EXPECT(&p->b.rcq, 0, 0, 0, 0);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_ERR, 0, NULL), 0);
	settle(p);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_LAST_WQE);
	expect_none(&p->b.rcq);		/* the SRQ's are not flushed */
}

static void sq_pi_runs_over(struct pair *p)
{
	connect_pair(p);
	qhca_doorbell(p->a.md->host.hca, 0, 0, QHCA_DB_SQ,
		      (uint64_t)65 << 32 | p->a.qp.qpn, p->w.now);
	settle(p);
	CHECK_EQ(next_event(&p->a, p->a.qp.qpn), QHCA_EVENT_QP_FATAL);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
}

static void doorbell_of_other_page(struct pair *p)
{
	connect_pair(p);
	qhca_doorbell(p->a.md->host.hca, 0, 1, QHCA_DB_SQ,
		      (uint64_t)1 << 32 | p->a.qp.qpn, p->w.now);
	settle(p);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_doorbells_ignored), 1);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_RTS);
}

/* ---- */

const struct scenario error_scenarios[] = {
	RC(write_bad_rkey), RC(write_out_of_range),
	RC(long_write_end_out_of_range), RC(read_bad_rkey),
	RC(atomic_bad_rkey), RC(atomic_misaligned), RC(write_not_enabled),
	RC(read_not_enabled), RC(too_many_reads), RC(send_too_long),
	RC(recv_bad_lkey), RC(recv_malformed),
	RC(write_imm_bad_rkey), RC(earlier_reads_are_answered),
	RC(send_bad_lkey), RC(send_lkey_of_other_pd), RC(user_reserved_lkey),
	RC(read_into_read_only), RC(unknown_opcode), RC(too_many_segments),
	RC(message_too_long), RC(atomic_wrong_length), RC(read_without_depth),
	RC(read_without_depth_behind),
	RC(local_inv_of_nothing), RC(retry_exceeded),
	RC(no_timeout_waits_for_ever), RC(rnr_exceeded), RC(rnr_recovers),
	RC(error_flushes_both), RC(reset_and_again), RC(drain), RC(drain_idle),
	RC(transitions_checked), RC(nak_repairs_gap), RC(sq_pi_runs_over),
	RC(doorbell_of_other_page),
	ON(UD, ud_bad_qkey),
	ON(UD, ud_too_long),
	ON(UD, ud_header),
	ON(UD, ud_over_mtu_sqe),
	ON(UC, uc_gap),
	{ "srq_limit_and_last_wqe", srq_limit_and_last_wqe,
	  { .type = QHCA_QPT_RC, .srq = true } },
	{ 0 }
};
