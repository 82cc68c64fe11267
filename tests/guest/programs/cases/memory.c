// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Windows, keys that have died, and keys used as what they are not. */
#include <errno.h>
#include <string.h>

#include "cases.h"

#define BIND_ID 50
#define WINDOW_LEN 1024u
#define RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* One case runs at a time. */
static struct ibv_mr *region;
static struct ibv_mw *window;
static struct ibv_qp *second;

static void make_window(struct test *t, enum ibv_mw_type type)
{
	region = ibv_reg_mr(t->pd, t->buf, BUFFER_SIZE, IBV_ACCESS_LOCAL_WRITE |
			    IBV_ACCESS_REMOTE_ATOMIC | RIGHTS | IBV_ACCESS_MW_BIND);
	window = ibv_alloc_mw(t->pd, type);
	if (EXPECT(t, region && window, "cannot make region and window: %s", strerror(errno)))
		t->mine.rkey = window->rkey;
}

/* Posts a bind of the window to the first @len bytes of @mr. */
static void post_bind(struct test *t, struct ibv_qp *qp, struct ibv_mr *mr, uint64_t len,
		      unsigned int access)
{
	struct ibv_mw_bind_info info = { mr, (uintptr_t)t->buf, len, access };
	struct ibv_mw_bind bind = { .wr_id = BIND_ID, .send_flags = IBV_SEND_SIGNALED,
				    .bind_info = info };
	struct ibv_send_wr wr = { .wr_id = BIND_ID, .opcode = IBV_WR_BIND_MW,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	int rc;

	if (!window)
		return;
	if (window->type == IBV_MW_TYPE_1) {
		rc = ibv_bind_mw(qp, window, &bind);
	} else {
		wr.bind_mw.mw = window;
		wr.bind_mw.rkey = ibv_inc_rkey(window->rkey);
		wr.bind_mw.bind_info = info;
		rc = ibv_post_send(qp, &wr, &bad);
		if (!rc)
			window->rkey = wr.bind_mw.rkey;
	}
	EXPECT(t, !rc, "posting a bind: %s", strerror(rc));
}

static void bind(struct test *t, uint64_t len, unsigned int access)
{
	post_bind(t, t->qp, region, len, access);
	expect_wc(t, t->send_cq, BIND_ID, IBV_WC_SUCCESS);
	if (window)
		t->mine.rkey = window->rkey;
}

static void invalidate(struct test *t, uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = BIND_ID + 1, .opcode = IBV_WR_LOCAL_INV,
				  .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = rkey }, *bad;
	int rc = ibv_post_send(t->qp, &wr, &bad);

	EXPECT(t, !rc, "posting LOCAL_INV: %s", strerror(rc));
	expect_wc(t, t->send_cq, BIND_ID + 1, IBV_WC_SUCCESS);
}

static void drop_window(struct test *t)
{
	/* The window goes first: for rxe it is a user of its QP. */
	if (window)
		EXPECT(t, !ibv_dealloc_mw(window), "ibv_dealloc_mw");
	if (second)
		EXPECT(t, !ibv_destroy_qp(second), "ibv_destroy_qp");
	if (region)
		EXPECT(t, !ibv_dereg_mr(region), "ibv_dereg_mr");
	second = NULL;
	window = NULL;
	region = NULL;
}

/* -- what a window does not allow ------------------------------------------- */

static void unbound_1(struct test *t)
{
	make_window(t, IBV_MW_TYPE_1);
}

static void unbound_2(struct test *t)
{
	make_window(t, IBV_MW_TYPE_2);
}

static void rebound_1(struct test *t)
{
	uint32_t old;

	make_window(t, IBV_MW_TYPE_1);
	bind(t, WINDOW_LEN, RIGHTS);
	old = t->mine.rkey;
	bind(t, WINDOW_LEN, RIGHTS);
	t->mine.rkey = old;
}

static void released_1(struct test *t)
{
	make_window(t, IBV_MW_TYPE_1);
	bind(t, WINDOW_LEN, RIGHTS);
	bind(t, 0, 0);
}

static void invalidated_2(struct test *t)
{
	make_window(t, IBV_MW_TYPE_2);
	bind(t, WINDOW_LEN, RIGHTS);
	invalidate(t, window->rkey);
}

static void read_only_1(struct test *t)
{
	make_window(t, IBV_MW_TYPE_1);
	bind(t, WINDOW_LEN, IBV_ACCESS_REMOTE_READ);
}

static void write_only_2(struct test *t)
{
	make_window(t, IBV_MW_TYPE_2);
	bind(t, WINDOW_LEN, IBV_ACCESS_REMOTE_WRITE);
}

static void rights_1(struct test *t)
{
	make_window(t, IBV_MW_TYPE_1);
	bind(t, WINDOW_LEN, RIGHTS);
}

static void rights_2(struct test *t)
{
	make_window(t, IBV_MW_TYPE_2);
	bind(t, WINDOW_LEN, RIGHTS);
}

static void atomic_1(struct test *t)
{
	make_window(t, IBV_MW_TYPE_1);
	bind(t, WINDOW_LEN, IBV_ACCESS_REMOTE_ATOMIC);
}

/* Bound through a QP that is connected to itself. */
static void other_qp_2(struct test *t)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = t->send_cq, .recv_cq = t->recv_cq,
		.cap = { 4, 4, 1, 1, 0 },
	};
	struct qp_address self = { .psn = 1, .gid = t->peer->gid };
	int rc;

	make_window(t, IBV_MW_TYPE_2);
	second = ibv_create_qp(t->pd, &init);
	if (!EXPECT(t, second, "ibv_create_qp"))
		return;
	self.qpn = second->qp_num;
	rc = qp_connect(second, &t->conn, t->peer->gid_index, &self, 1);
	EXPECT(t, !rc, "connecting a second QP: %s", strerror(rc));
	post_bind(t, second, region, WINDOW_LEN, RIGHTS);
	expect_wc(t, t->send_cq, BIND_ID, IBV_WC_SUCCESS);
	t->mine.rkey = window ? window->rkey : 0;
}

/* A change of the region takes back a right that its key had. */
static void lost_right(struct test *t)
{
	int rc;

	region = ibv_reg_mr(t->pd, t->buf, BUFFER_SIZE, IBV_ACCESS_LOCAL_WRITE | RIGHTS);
	if (!EXPECT(t, region, "ibv_reg_mr"))
		return;
	rc = ibv_rereg_mr(region, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	EXPECT(t, !rc, "ibv_rereg_mr gives %d", rc);
	t->mine.rkey = region->rkey;
}

/* -- windows that work ------------------------------------------------------ */

static void window_client(struct test *t)
{
	peer_receive(t->peer, &t->far, sizeof(t->far));
	memset(t->buf, 0xc3, 256);
	post_rdma(t, 1, IBV_WR_RDMA_WRITE, 256);
	post(t, &(struct request) { .id = 2, .opcode = IBV_WR_RDMA_READ, .at = 4096, .len = 256,
				    .addr = t->far.addr, .rkey = t->far.rkey,
				    .flags = IBV_SEND_SIGNALED });
	expect_wc(t, t->send_cq, 1, IBV_WC_SUCCESS);
	expect_wc(t, t->send_cq, 2, IBV_WC_SUCCESS);
	EXPECT(t, !memcmp(t->buf, t->buf + 4096, 256), "what was read is not what was written");
	meet(t);
}

static void window_server(struct test *t, enum ibv_mw_type type)
{
	make_window(t, type);
	bind(t, WINDOW_LEN, RIGHTS);
	peer_send(t->peer, &t->mine, sizeof(t->mine));
	meet(t);
	EXPECT(t, t->buf[0] == 0xc3 && t->buf[255] == 0xc3 && t->buf[256] == 0x5a,
	       "not the bytes of the window were written");
	expect_state(t, IBV_QPS_RTS);
	drop_window(t);
}

static void window_1_server(struct test *t)
{
	window_server(t, IBV_MW_TYPE_1);
}

static void window_2_server(struct test *t)
{
	window_server(t, IBV_MW_TYPE_2);
}

/* -- invalidation by the peer ----------------------------------------------- */

static void post_send_inv(struct test *t, uint64_t id, uint32_t rkey)
{
	struct ibv_send_wr wr = { .wr_id = id, .opcode = IBV_WR_SEND_WITH_INV,
				  .send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = rkey }, *bad;
	int rc = ibv_post_send(t->qp, &wr, &bad);

	EXPECT(t, !rc, "posting SEND with invalidate: %s", strerror(rc));
}

static void send_inv_client(struct test *t)
{
	peer_receive(t->peer, &t->far, sizeof(t->far));
	memset(t->buf, 0xc3, 256);
	post_send_inv(t, 1, t->far.rkey);
	expect_wc(t, t->send_cq, 1, IBV_WC_SUCCESS);
	post_rdma(t, 2, IBV_WR_RDMA_WRITE, 64);
	expect_wc(t, t->send_cq, 2, IBV_WC_REM_ACCESS_ERR);
	expect_state(t, IBV_QPS_ERR);
	meet(t);
}

static void send_inv_server(struct test *t)
{
	struct ibv_wc wc = { };

	make_window(t, IBV_MW_TYPE_2);
	bind(t, WINDOW_LEN, RIGHTS);
	post_receive(t, 1, 8192, 64);
	peer_send(t->peer, &t->mine, sizeof(t->mine));
	EXPECT(t, next_wc(t, t->recv_cq, &wc, SOON), "no receive");
	/* Rxe shows a process the kernel's flag, which means something else there. */
	EXPECT(t, wc.status == IBV_WC_SUCCESS &&
	       wc.wc_flags & (t->is_rxe ? IBV_WC_IP_CSUM_OK : IBV_WC_WITH_INV),
	       "the receive has status %d and flags %#x", wc.status, wc.wc_flags);
	EXPECT(t, wc.invalidated_rkey == t->mine.rkey, "key %#x was invalidated, not %#x",
	       wc.invalidated_rkey, t->mine.rkey);
	meet(t);
	EXPECT(t, t->buf[0] == 0x5a, "memory was changed through an invalidated window");
	drop_window(t);
}

static void gives_up(struct connection *c)
{
	c->timeout = 14;	/* 67 ms */
	c->retry_cnt = 1;
}

/* A region that was not made for it. */
static void send_inv_region_client(struct test *t)
{
	peer_receive(t->peer, &t->far, sizeof(t->far));
	post_send_inv(t, 1, t->far.rkey);
	/*
	 * A responder goes into error without a NAK (IBTA 9.9.6.3, class J); one of rxe
	 * has acknowledged the message before that.
	 */
	expect_wc(t, t->send_cq, 1, t->far_is_rxe ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR);
	expect_state(t, t->far_is_rxe ? IBV_QPS_RTS : IBV_QPS_ERR);
	meet(t);
}

static void send_inv_region_server(struct test *t)
{
	post_receive(t, 1, 8192, 64);
	peer_send(t->peer, &t->mine, sizeof(t->mine));
	expect_wc(t, t->recv_cq, 1, t->is_rxe ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_MW_BIND_ERR);
	expect_state(t, IBV_QPS_ERR);
	meet(t);
}

/* -- binds that are refused ------------------------------------------------- */

static void bind_fails(struct test *t, struct ibv_mr *mr, uint64_t len)
{
	post_bind(t, t->qp, mr, len, RIGHTS);
	post_send(t, 2, 16);
	/* Rxe refuses it too, and completes it as flushed: the cause is lost. */
	expect_wc(t, t->send_cq, BIND_ID, t->is_rxe ? IBV_WC_WR_FLUSH_ERR : IBV_WC_MW_BIND_ERR);
	expect_flushed(t, t->send_cq, 2, 1);
	expect_state(t, IBV_QPS_ERR);
	meet(t);
	drop_window(t);
}

static void bind_without_right_client(struct test *t)
{
	make_window(t, IBV_MW_TYPE_2);
	bind_fails(t, t->mr, WINDOW_LEN);
}

static void bind_past_end_client(struct test *t)
{
	make_window(t, IBV_MW_TYPE_2);
	bind_fails(t, region, BUFFER_SIZE + 1);
}

static void bind_twice_client(struct test *t)
{
	make_window(t, IBV_MW_TYPE_2);
	bind(t, WINDOW_LEN, RIGHTS);
	bind_fails(t, region, WINDOW_LEN);
}

static void idle_server(struct test *t)
{
	meet(t);
	expect_state(t, IBV_QPS_RTS);
}

/* -- keys that are no L_Keys ------------------------------------------------ */

/* A READ into, and a SEND from, this key's memory. */
static void no_lkey(struct test *t, uint32_t lkey)
{
	post(t, &(struct request) { .id = 1, .opcode = IBV_WR_RDMA_READ, .len = 64,
				    .addr = t->far.addr, .rkey = t->far.rkey,
				    .flags = IBV_SEND_SIGNALED, .lkey = lkey });
	post_send(t, 2, 16);
	expect_wc(t, t->send_cq, 1, IBV_WC_LOC_PROT_ERR);
	expect_flushed(t, t->send_cq, 2, 1);
	expect_state(t, IBV_QPS_ERR);
	for (int i = 0; i < 64; i++)
		EXPECT(t, t->buf[i] == 0x5a, "byte %d was written through a wrong L_Key", i);
	meet(t);
}

static void reserved_lkey_client(struct test *t)
{
	no_lkey(t, QHCA_RESERVED_LKEY);
}

static void unknown_lkey_client(struct test *t)
{
	no_lkey(t, 0xffffff00);
}

static void dead_lkey_client(struct test *t)
{
	struct ibv_mr *mr = ibv_reg_mr(t->pd, t->buf, BUFFER_SIZE, IBV_ACCESS_LOCAL_WRITE);
	uint32_t lkey = mr->lkey;

	ibv_dereg_mr(mr);
	no_lkey(t, lkey);
}

static void window_as_lkey_client(struct test *t)
{
	make_window(t, IBV_MW_TYPE_1);
	bind(t, WINDOW_LEN, RIGHTS);
	no_lkey(t, window->rkey);
	drop_window(t);
}

static void receive_by(struct test *t, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)t->buf, 4096, lkey };
	struct ibv_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 }, *bad;
	int rc = ibv_post_recv(t->qp, &wr, &bad);

	EXPECT(t, !rc, "posting a receive: %s", strerror(rc));
	meet(t);
	/* Rxe has one status for all that is wrong with a receive. */
	expect_wc(t, t->recv_cq, 1, t->is_rxe ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_LOC_PROT_ERR);
	expect_state(t, IBV_QPS_ERR);
	EXPECT(t, t->buf[0] == 0x5a, "memory was changed through a wrong L_Key");
}

static void bad_receive_client(struct test *t)
{
	memset(t->buf, 0xc3, 256);
	meet(t);
	post_send(t, 1, 256);
	expect_wc(t, t->send_cq, 1, IBV_WC_REM_OP_ERR);
	expect_state(t, IBV_QPS_ERR);
}

static void receive_reserved_server(struct test *t)
{
	receive_by(t, QHCA_RESERVED_LKEY);
}

static void receive_dead_server(struct test *t)
{
	struct ibv_mr *mr = ibv_reg_mr(t->pd, t->buf, BUFFER_SIZE, IBV_ACCESS_LOCAL_WRITE);
	uint32_t lkey = mr->lkey;

	ibv_dereg_mr(mr);
	receive_by(t, lkey);
}

#define WINDOW_REFUSED(text, make, ...)						\
	REFUSED(text, __VA_ARGS__, NO_ACCESS, .offer = make, .withdraw = drop_window)
#define LOCAL(text, fn, ...) { .name = text, .client = fn, .server = idle_server, __VA_ARGS__ }

const struct test_case memory_cases[] = {
	{ "type 1 window serves WRITE and READ", window_client, window_1_server },
	{ "type 2 window serves WRITE and READ", window_client, window_2_server },
	WINDOW_REFUSED("WRITE through a type 1 window not bound", unbound_1, IBV_WR_RDMA_WRITE, 64),
	WINDOW_REFUSED("WRITE through a type 2 window not bound", unbound_2, IBV_WR_RDMA_WRITE, 64),
	WINDOW_REFUSED("READ through a type 2 window not bound", unbound_2, IBV_WR_RDMA_READ, 64),
	WINDOW_REFUSED("WRITE through a window's former key", rebound_1, IBV_WR_RDMA_WRITE, 64),
	WINDOW_REFUSED("WRITE through a window unbound again", released_1, IBV_WR_RDMA_WRITE, 64),
	WINDOW_REFUSED("READ through an invalidated window", invalidated_2, IBV_WR_RDMA_READ, 64),
	WINDOW_REFUSED("WRITE through a read-only window", read_only_1, IBV_WR_RDMA_WRITE, 64),
	WINDOW_REFUSED("READ through a write-only window", write_only_2, IBV_WR_RDMA_READ, 64),
	WINDOW_REFUSED("FETCH_ADD in a window without that right", rights_1,
		       IBV_WR_ATOMIC_FETCH_AND_ADD, 8),
	WINDOW_REFUSED("WRITE past a type 1 window's end", rights_1, IBV_WR_RDMA_WRITE, 64,
		       .addr_add = WINDOW_LEN - 63, .rxe_serves = true),
	WINDOW_REFUSED("READ past a type 2 window's end", rights_2, IBV_WR_RDMA_READ, 64,
		       .addr_add = WINDOW_LEN - 63, .rxe_serves = true),
	WINDOW_REFUSED("CMP_SWAP behind a window", atomic_1, IBV_WR_ATOMIC_CMP_AND_SWP, 8,
		       .addr_add = WINDOW_LEN, .rxe_serves = true),
	WINDOW_REFUSED("WRITE through another QP's type 2 window", other_qp_2, IBV_WR_RDMA_WRITE, 64),
	{
		.name = "WRITE after the right was taken back",
		.client = refused_client, .server = refused_server,
		.data = &(const struct refused) { IBV_WR_RDMA_WRITE, 64, NO_ACCESS,
						  .offer = lost_right, .withdraw = drop_window },
		.no_rxe_server = "its provider cannot change a region",
	},
	{ "SEND with invalidate ends a window", send_inv_client, send_inv_server },
	{ "SEND with invalidate of a region", send_inv_region_client, send_inv_region_server,
	  .adjust = gives_up },
	LOCAL("bind to a region without that right", bind_without_right_client),
	LOCAL("bind past the region's end", bind_past_end_client),
	LOCAL("bind of a bound type 2 window", bind_twice_client),
	LOCAL("READ by the reserved key of a user's QP", reserved_lkey_client),
	LOCAL("READ by a key index beyond any table", unknown_lkey_client),
	LOCAL("READ by a deregistered region's L_Key", dead_lkey_client),
	LOCAL("READ by a window's key as L_Key", window_as_lkey_client),
	{ "receive by the reserved key of a user's QP", bad_receive_client, receive_reserved_server },
	{ "receive by a deregistered region's L_Key", bad_receive_client, receive_dead_server },
	{ }
};
