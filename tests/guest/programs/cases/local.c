// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Requests that fail at the requester. */
#include <stddef.h>
#include <string.h>

#include "cases.h"

static void idle_server(struct test *t)
{
	post_receive(t, 1, 0, 4096);
	meet(t);
	/* What failed at the requester has not reached the responder. */
	expect_state(t, IBV_QPS_RTS);
}

static void fails(struct test *t, const struct request *rq, enum ibv_wc_status status)
{
	post(t, rq);
	post_send(t, rq->id + 1, 16);
	expect_wc(t, t->send_cq, rq->id, status);
	expect_flushed(t, t->send_cq, rq->id + 1, 1);
	expect_state(t, IBV_QPS_ERR);
	meet(t);
}

/*
 * rxe's requester completes a request that it cannot gather as flushed, and so
 * loses the cause.
 */
static enum ibv_wc_status not_gathered(struct test *t)
{
	return t->is_rxe ? IBV_WC_WR_FLUSH_ERR : IBV_WC_LOC_PROT_ERR;
}

static void bad_lkey_client(struct test *t)
{
	fails(t, &(struct request) { .id = 1, .opcode = IBV_WR_SEND, .len = 64,
				     .flags = IBV_SEND_SIGNALED, .lkey = t->mr->lkey ^ 1 },
	      not_gathered(t));
}

static void unsignalled_client(struct test *t)
{
	fails(t, &(struct request) { .id = 1, .opcode = IBV_WR_SEND, .len = 64,
				     .lkey = t->mr->lkey ^ 1 }, not_gathered(t));
}

static void past_end_client(struct test *t)
{
	fails(t, &(struct request) { .id = 1, .opcode = IBV_WR_SEND, .at = BUFFER_SIZE - 63, .len = 64,
				     .flags = IBV_SEND_SIGNALED }, not_gathered(t));
}

static void other_pd_client(struct test *t)
{
	struct ibv_pd *pd = ibv_alloc_pd(t->peer->ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, t->buf, BUFFER_SIZE, IBV_ACCESS_LOCAL_WRITE);

	fails(t, &(struct request) { .id = 1, .opcode = IBV_WR_SEND, .len = 64,
				     .flags = IBV_SEND_SIGNALED, .lkey = mr->lkey },
	      not_gathered(t));
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
}

static void read_into(struct test *t, enum ibv_wr_opcode opcode, uint32_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(t->pd, t->buf, BUFFER_SIZE, 0);

	fails(t, &(struct request) { .id = 1, .opcode = opcode, .len = len, .addr = t->far.addr,
				     .rkey = t->far.rkey, .flags = IBV_SEND_SIGNALED,
				     .lkey = mr->lkey }, IBV_WC_LOC_PROT_ERR);
	for (int i = 0; i < BUFFER_SIZE; i++)
		if (!EXPECT(t, t->buf[i] == 0x5a, "byte %d of a read-only region was written", i))
			break;
	ibv_dereg_mr(mr);
}

static void read_only_client(struct test *t)
{
	read_into(t, IBV_WR_RDMA_READ, 64);
}

static void atomic_read_only_client(struct test *t)
{
	read_into(t, IBV_WR_ATOMIC_FETCH_AND_ADD, 8);
}

/* The error is that of the second request; the first one succeeds before. */
static void after_good_client(struct test *t)
{
	post_rdma(t, 1, IBV_WR_RDMA_WRITE, 60000);
	post(t, &(struct request) { .id = 2, .opcode = IBV_WR_RDMA_WRITE, .len = 64,
				    .addr = t->far.addr, .rkey = t->far.rkey,
				    .flags = IBV_SEND_SIGNALED, .lkey = t->mr->lkey ^ 1 });
	post_send(t, 3, 16);
	expect_wc(t, t->send_cq, 1, IBV_WC_SUCCESS);
	expect_wc(t, t->send_cq, 2, IBV_WC_LOC_PROT_ERR);
	expect_flushed(t, t->send_cq, 3, 1);
	meet(t);
}

static void short_atomic_client(struct test *t)
{
	fails(t, &(struct request) { .id = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .len = 4,
				     .addr = t->far.addr, .rkey = t->far.rkey,
				     .flags = IBV_SEND_SIGNALED }, IBV_WC_LOC_LEN_ERR);
}

static void no_reads(struct connection *c)
{
	c->rd_atomic = 0;
}

static void no_reads_client(struct test *t)
{
	fails(t, &(struct request) { .id = 1, .opcode = IBV_WR_RDMA_READ, .len = 64,
				     .addr = t->far.addr, .rkey = t->far.rkey,
				     .flags = IBV_SEND_SIGNALED }, IBV_WC_LOC_QP_OP_ERR);
}

/* -- the peer does not answer ----------------------------------------------- */

static void impatient(struct connection *c)
{
	c->timeout = 10;	/* 4.2 ms */
	c->retry_cnt = 3;
}

/* With an answer, however late: only receives are lacking. */
static void impatient_for_receives(struct connection *c)
{
	c->rnr_retry = 2;
	c->min_rnr_timer = 20;	/* 10.24 ms */
}

static void silent_server(struct test *t)
{
	EXPECT(t, !qp_reset(t->qp), "cannot reset the QP");
	meet(t);
}

static void retry_client(struct test *t)
{
	uint64_t start, took;

	meet(t);
	start = now_ns();
	post_rdma(t, 1, IBV_WR_RDMA_WRITE, 3000);
	post_send(t, 2, 1);
	post_rdma(t, 3, IBV_WR_RDMA_READ, 1);
	expect_wc(t, t->send_cq, 1, IBV_WC_RETRY_EXC_ERR);
	took = (now_ns() - start) / 1000;
	expect_flushed(t, t->send_cq, 2, 2);
	expect_state(t, IBV_QPS_ERR);
	EXPECT(t, took >= 4 * 4194, "four timeouts of 4194 us took %llu us", (unsigned long long)took);
}

static void rnr_client(struct test *t)
{
	uint64_t start = now_ns(), took;

	post_send(t, 1, 100);
	post_rdma(t, 2, IBV_WR_RDMA_WRITE, 100);
	expect_wc(t, t->send_cq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	took = (now_ns() - start) / 1000;
	expect_flushed(t, t->send_cq, 2, 1);
	expect_state(t, IBV_QPS_ERR);
	EXPECT(t, took >= 2 * 10240, "two waits of 10240 us took %llu us", (unsigned long long)took);
	meet(t);
}

static void rnr_server(struct test *t)
{
	meet(t);
	expect_state(t, IBV_QPS_RTS);
}

static void patient_client(struct test *t)
{
	post_send(t, 1, 3000);
	post_rdma(t, 2, IBV_WR_RDMA_WRITE, 100);
	expect_none(t, t->send_cq, 300);
	meet(t);
	expect_wc(t, t->send_cq, 1, IBV_WC_SUCCESS);
	expect_wc(t, t->send_cq, 2, IBV_WC_SUCCESS);
}

static void patient_server(struct test *t)
{
	meet(t);
	post_receive(t, 1, 0, 4096);
	expect_wc(t, t->recv_cq, 1, IBV_WC_SUCCESS);
}

const struct test_case local_cases[] = {
	{ "SEND with another key octet", bad_lkey_client, idle_server },
	{ "unsignalled SEND with another key octet", unsignalled_client, idle_server },
	{ "SEND from past the region's end", past_end_client, idle_server },
	{ "SEND from a region of another PD", other_pd_client, idle_server },
	{ "READ into a read-only region", read_only_client, idle_server },
	{ "FETCH_ADD into a read-only region", atomic_read_only_client, idle_server },
	{ "an error waits for the requests before it", after_good_client, idle_server,
	  .no_rxe_client = "flushes what is under way too, unless it is quick" },
	{ "atomic of 4 bytes", short_atomic_client, idle_server,
	  .no_rxe_client = "its provider refuses the request" },
	{ "READ with max_rd_atomic 0", no_reads_client, idle_server, .adjust = no_reads,
	  .no_rxe_client = "waits for ever" },
	{ "retries are used up", retry_client, silent_server, .adjust = impatient },
	{ "RNR retries are used up", rnr_client, rnr_server,
	  .adjust = impatient_for_receives },
	{ "RNR retry 7 waits for ever", patient_client, patient_server },
	{ }
};
