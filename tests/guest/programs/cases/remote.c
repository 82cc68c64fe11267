// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Requests that the responder refuses. */
#include <stddef.h>
#include <string.h>

#include "cases.h"

#define FLUSHED 3

/* The region made by offer(), if any; cases run one at a time. */
static struct ibv_mr *offered;
static struct ibv_pd *other_pd;

void offer_access(struct test *t, int access)
{
	offered = ibv_reg_mr(other_pd ? other_pd : t->pd, t->buf, BUFFER_SIZE, access);
	if (EXPECT(t, offered, "ibv_reg_mr with access %#x", access))
		t->mine.rkey = offered->rkey;
}

static void offer_no_write(struct test *t)
{
	offer_access(t, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
}

static void offer_no_read(struct test *t)
{
	offer_access(t, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
}

static void offer_no_atomic(struct test *t)
{
	offer_access(t, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

static void offer_other_pd(struct test *t)
{
	other_pd = ibv_alloc_pd(t->peer->ctx);
	offer_access(t, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

static void offer_deregistered(struct test *t)
{
	offer_access(t, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	ibv_dereg_mr(offered);
	offered = NULL;
}

void refused_server(struct test *t)
{
	const struct refused *r = t->tc->data;
	uint8_t before[256];

	if (r->offer)
		r->offer(t);
	memcpy(before, t->buf, sizeof(before));
	for (int i = 0; i < FLUSHED; i++)
		post_receive(t, 100 + i, 4096, 1024);
	peer_send(t->peer, &t->mine, sizeof(t->mine));
	if (t->is_rxe && r->rxe_serves) {
		for (int i = 0; i < FLUSHED; i++)
			expect_wc(t, t->recv_cq, 100 + i, IBV_WC_SUCCESS);
	} else {
		expect_flushed(t, t->recv_cq, 100, FLUSHED);
		expect_state(t, IBV_QPS_ERR);
		EXPECT(t, !memcmp(before, t->buf, sizeof(before)),
		       "memory was changed by a refused request");
	}
	if (!t->is_rxe)
		expect_event(t, r->event);
	if (r->withdraw)
		r->withdraw(t);
	if (offered)
		ibv_dereg_mr(offered);
	if (other_pd)
		ibv_dealloc_pd(other_pd);
	offered = NULL;
	other_pd = NULL;
}

void refused_client(struct test *t)
{
	const struct refused *r = t->tc->data;

	peer_receive(t->peer, &t->far, sizeof(t->far));
	t->far.rkey ^= r->rkey_xor;
	if (r->rkey)
		t->far.rkey = r->rkey;
	t->far.addr += r->addr_add;
	memset(t->buf, 0xc3, BUFFER_SIZE);
	post(t, &(struct request) { .id = 1, .opcode = r->opcode, .len = r->len,
				    .addr = t->far.addr, .rkey = t->far.rkey,
				    .flags = IBV_SEND_SIGNALED, .flush_type = r->flush_type,
				    .flush_level = r->flush_level });
	for (int i = 0; i < FLUSHED; i++)
		post_send(t, 2 + i, 64);
	if (t->far_is_rxe && r->rxe_serves) {
		for (int i = 0; i <= FLUSHED; i++)
			expect_wc(t, t->send_cq, 1 + i, IBV_WC_SUCCESS);
		return;
	}
	expect_wc(t, t->send_cq, 1, r->status);
	expect_flushed(t, t->send_cq, 2, FLUSHED);
	expect_state(t, IBV_QPS_ERR);
}

static void no_remote_access(struct connection *c)
{
	c->access = IBV_ACCESS_LOCAL_WRITE;
}

/* -- receives that do not suit ---------------------------------------------- */

static void long_send_client(struct test *t)
{
	meet(t);
	post_send(t, 1, 2049);
	post_send(t, 2, 1);
	/* rxe has one status for all that is wrong with a receive. */
	expect_wc(t, t->send_cq, 1, t->far_is_rxe ? IBV_WC_REM_OP_ERR : IBV_WC_REM_INV_REQ_ERR);
	expect_flushed(t, t->send_cq, 2, 1);
}

static void long_send_server(struct test *t)
{
	post_receive(t, 1, 0, 2048);
	post_receive(t, 2, 4096, 2048);
	meet(t);
	expect_wc(t, t->recv_cq, 1, t->is_rxe ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_LEN_ERR);
	expect_flushed(t, t->recv_cq, 2, 1);
	expect_state(t, IBV_QPS_ERR);
	if (!t->is_rxe)
		expect_event(t, IBV_EVENT_QP_REQ_ERR);
}

static void bad_receive_client(struct test *t)
{
	meet(t);
	post_send(t, 1, 3000);
	post_send(t, 2, 1);
	expect_wc(t, t->send_cq, 1, IBV_WC_REM_OP_ERR);
	expect_flushed(t, t->send_cq, 2, 1);
}

static void receive_into(struct test *t, struct ibv_mr *mr, uint64_t addr)
{
	struct ibv_sge sge = { addr, 4096, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	int rc = ibv_post_recv(t->qp, &wr, &bad);

	EXPECT(t, !rc, "posting a receive: %s", strerror(rc));
	post_receive(t, 2, 8192, 4096);
	meet(t);
	expect_wc(t, t->recv_cq, 1, t->is_rxe ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR);
	expect_flushed(t, t->recv_cq, 2, 1);
	expect_state(t, IBV_QPS_ERR);
	if (!t->is_rxe)
		expect_event(t, IBV_EVENT_QP_FATAL);
}

static void receive_past_end_server(struct test *t)
{
	receive_into(t, t->mr, (uintptr_t)t->buf + BUFFER_SIZE - 2500);
}

static void receive_read_only_server(struct test *t)
{
	struct ibv_mr *mr = ibv_reg_mr(t->pd, t->buf, BUFFER_SIZE, IBV_ACCESS_REMOTE_READ);

	if (EXPECT(t, mr, "ibv_reg_mr")) {
		receive_into(t, mr, (uintptr_t)t->buf);
		ibv_dereg_mr(mr);
	}
}

/* -- requests of no bytes --------------------------------------------------- */

static void empty_client(struct test *t)
{
	t->far.rkey = 0xdeadbe00;
	t->far.addr = 1;
	post_rdma(t, 1, IBV_WR_RDMA_WRITE, 0);
	post_rdma(t, 2, IBV_WR_RDMA_READ, 0);
	expect_wc(t, t->send_cq, 1, IBV_WC_SUCCESS);
	expect_wc(t, t->send_cq, 2, IBV_WC_SUCCESS);
	expect_state(t, IBV_QPS_RTS);
}

static void empty_server(struct test *t)
{
	(void)t;
}

const struct test_case remote_cases[] = {
	REFUSED("WRITE with another key octet", IBV_WR_RDMA_WRITE, 64, NO_ACCESS, .rkey_xor = 1),
	REFUSED("READ with another key octet", IBV_WR_RDMA_READ, 64, NO_ACCESS, .rkey_xor = 0x80),
	REFUSED("FETCH_ADD with another key octet", IBV_WR_ATOMIC_FETCH_AND_ADD, 8, NO_ACCESS,
		.rkey_xor = 2),
	REFUSED("WRITE with an unknown key index", IBV_WR_RDMA_WRITE, 64, NO_ACCESS,
		.rkey_xor = 0x7fff0000),
	REFUSED("WRITE of two packets with an unknown key", IBV_WR_RDMA_WRITE, 2000, NO_ACCESS,
		.rkey_xor = 0x7fff0000),
	REFUSED("WRITE with a key index beyond any table", IBV_WR_RDMA_WRITE, 64, NO_ACCESS,
		.rkey = 0xffffff00),
	REFUSED("WRITE with the reserved key as R_Key", IBV_WR_RDMA_WRITE, 64, NO_ACCESS,
		.rkey = QHCA_RESERVED_LKEY),
	REFUSED("READ with the reserved key as R_Key", IBV_WR_RDMA_READ, 64, NO_ACCESS,
		.rkey = QHCA_RESERVED_LKEY),
	REFUSED("FETCH_ADD with the reserved key as R_Key", IBV_WR_ATOMIC_FETCH_AND_ADD, 8,
		NO_ACCESS, .rkey = QHCA_RESERVED_LKEY),
	REFUSED("WRITE past the region's end", IBV_WR_RDMA_WRITE, 64, NO_ACCESS,
		.addr_add = BUFFER_SIZE - 63),
	REFUSED("READ past the region's end", IBV_WR_RDMA_READ, 4096, NO_ACCESS,
		.addr_add = BUFFER_SIZE - 4095),
	REFUSED("WRITE before the region's start", IBV_WR_RDMA_WRITE, 64, NO_ACCESS, .addr_add = -1),
	REFUSED("CMP_SWAP behind the region", IBV_WR_ATOMIC_CMP_AND_SWP, 8, NO_ACCESS,
		.addr_add = BUFFER_SIZE),
	REFUSED("WRITE that wraps the address space", IBV_WR_RDMA_WRITE, 64, NO_ACCESS,
		.addr_add = INT64_MIN),
	REFUSED("WRITE to a region of another PD", IBV_WR_RDMA_WRITE, 64, NO_ACCESS,
		.offer = offer_other_pd),
	REFUSED("READ of a region of another PD", IBV_WR_RDMA_READ, 64, NO_ACCESS,
		.offer = offer_other_pd),
	REFUSED("WRITE to a region without that right", IBV_WR_RDMA_WRITE, 64, NO_ACCESS,
		.offer = offer_no_write),
	REFUSED("READ of a region without that right", IBV_WR_RDMA_READ, 64, NO_ACCESS,
		.offer = offer_no_read),
	REFUSED("CMP_SWAP in a region without that right", IBV_WR_ATOMIC_CMP_AND_SWP, 8, NO_ACCESS,
		.offer = offer_no_atomic),
	REFUSED("WRITE to a deregistered region", IBV_WR_RDMA_WRITE, 64, NO_ACCESS,
		.offer = offer_deregistered),
	{
		.name = "CMP_SWAP at an odd address",
		.client = refused_client, .server = refused_server,
		.data = &(const struct refused) { IBV_WR_ATOMIC_CMP_AND_SWP, 8, INVALID, .addr_add = 4 },
		.no_rxe_client = "its provider refuses the request",
	}, {
		.name = "FETCH_ADD at an odd address",
		.client = refused_client, .server = refused_server,
		.data = &(const struct refused) { IBV_WR_ATOMIC_FETCH_AND_ADD, 8, INVALID, .addr_add = 1 },
		.no_rxe_client = "its provider refuses the request",
	}, {
		.name = "WRITE to a QP without that right",
		.client = refused_client, .server = refused_server, .adjust = no_remote_access,
		.data = &(const struct refused) { IBV_WR_RDMA_WRITE, 64, INVALID },
	}, {
		.name = "READ from a QP without that right",
		.client = refused_client, .server = refused_server, .adjust = no_remote_access,
		.data = &(const struct refused) { IBV_WR_RDMA_READ, 64, INVALID },
	}, {
		.name = "FETCH_ADD on a QP without that right",
		.client = refused_client, .server = refused_server, .adjust = no_remote_access,
		.data = &(const struct refused) { IBV_WR_ATOMIC_FETCH_AND_ADD, 8, INVALID },
	}, {
		.name = "SEND longer than the receive",
		.client = long_send_client, .server = long_send_server,
	}, {
		.name = "SEND into a receive past its region's end",
		.client = bad_receive_client, .server = receive_past_end_server,
	}, {
		.name = "SEND into a read-only receive",
		.client = bad_receive_client, .server = receive_read_only_server,
	}, {
		.name = "WRITE and READ of 0 bytes look at no key",
		.client = empty_client, .server = empty_server,
	},
	{ }
};
