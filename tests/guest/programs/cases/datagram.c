// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Messages that UC and UD lose, and messages that they deliver. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "cases.h"

#define GRH_LEN 40

static struct ibv_ah *ah;

static void post_datagram(struct test *t, uint64_t id, uint32_t len, uint32_t qkey, uint32_t qpn)
{
	struct ibv_ah_attr path = path_to(&t->there.gid, t->peer->gid_index);
	struct ibv_sge sge = { (uintptr_t)t->buf, len, t->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = id, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .remote_qpn = qpn, .remote_qkey = qkey },
	}, *bad;
	int rc;

	if (!ah)
		ah = ibv_create_ah(t->pd, &path);
	if (!EXPECT(t, ah, "ibv_create_ah: %s", strerror(errno)))
		return;
	wr.wr.ud.ah = ah;
	rc = ibv_post_send(t->qp, &wr, &bad);
	EXPECT(t, !rc, "posting datagram %llu: %s", (unsigned long long)id, strerror(rc));
}

static void done(struct test *t)
{
	if (ah && ibv_destroy_ah(ah))
		EXPECT(t, false, "ibv_destroy_ah");
	ah = NULL;
}

static void send_ok(struct test *t, uint64_t id, uint32_t len, uint32_t qkey, uint32_t qpn)
{
	post_datagram(t, id, len, qkey, qpn);
	expect_wc(t, t->send_cq, id, IBV_WC_SUCCESS);
}

static void dropped_client(struct test *t)
{
	meet(t);
	send_ok(t, 1, 64, TEST_QKEY ^ 1, t->there.qpn);		/* wrong Q_Key */
	send_ok(t, 2, 64, TEST_QKEY, t->there.qpn ^ 0x40000);	/* no such QP */
	send_ok(t, 3, 64, TEST_QKEY, t->there.qpn);
	done(t);
}

static void dropped_server(struct test *t)
{
	struct ibv_wc wc;

	post_receive(t, 1, 0, 1024 + GRH_LEN);
	meet(t);
	if (EXPECT(t, next_wc(t, t->recv_cq, &wc, SOON), "the good datagram did not arrive"))
		EXPECT(t, wc.status == IBV_WC_SUCCESS && wc.byte_len == 64 + GRH_LEN,
		       "status %s, %u bytes", ibv_wc_status_str(wc.status), wc.byte_len);
	expect_state(t, IBV_QPS_RTS);
}

/* Of two datagrams the first is longer than the only receive. */
static void short_client(struct test *t)
{
	meet(t);
	send_ok(t, 1, 512, TEST_QKEY, t->there.qpn);
	send_ok(t, 2, 64, TEST_QKEY, t->there.qpn);
	done(t);
}

static void short_server(struct test *t)
{
	struct ibv_wc wc;

	post_receive(t, 1, 0, 128 + GRH_LEN);
	meet(t);
	if (EXPECT(t, next_wc(t, t->recv_cq, &wc, SOON), "the short datagram did not arrive"))
		EXPECT(t, wc.status == IBV_WC_SUCCESS && wc.byte_len == 64 + GRH_LEN,
		       "status %s, %u bytes", ibv_wc_status_str(wc.status), wc.byte_len);
}

static void long_client(struct test *t)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE };

	meet(t);
	post_datagram(t, 1, 4097, TEST_QKEY, t->there.qpn);
	post_datagram(t, 2, 64, TEST_QKEY, t->there.qpn);
	expect_wc(t, t->send_cq, 1, IBV_WC_LOC_LEN_ERR);
	expect_flushed(t, t->send_cq, 2, 1);
	expect_state(t, IBV_QPS_SQE);
	EXPECT(t, !ibv_modify_qp(t->qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), "SQE to RTS");
	send_ok(t, 3, 64, TEST_QKEY, t->there.qpn);
	done(t);
}

static void one_server(struct test *t)
{
	post_receive(t, 1, 0, 4096 + GRH_LEN);
	meet(t);
	expect_wc(t, t->recv_cq, 1, IBV_WC_SUCCESS);
}

/* -- unreliable connection -------------------------------------------------- */

static void uc_client(struct test *t)
{
	meet(t);
	post_send(t, 1, 3000);			/* no receive is that long */
	post_rdma(t, 2, IBV_WR_RDMA_WRITE, 3000);
	post(t, &(struct request) { .id = 3, .opcode = IBV_WR_RDMA_WRITE, .len = 3000,
				    .addr = t->far.addr, .rkey = t->far.rkey ^ 1,
				    .flags = IBV_SEND_SIGNALED });
	post_send(t, 4, 100);
	for (int i = 1; i <= 4; i++)
		expect_wc(t, t->send_cq, i, IBV_WC_SUCCESS);
	expect_state(t, IBV_QPS_RTS);
}

static void uc_server(struct test *t)
{
	struct ibv_wc wc;

	post_receive(t, 1, 8192, 2048);
	meet(t);
	if (EXPECT(t, next_wc(t, t->recv_cq, &wc, SOON), "the short message did not arrive"))
		EXPECT(t, wc.status == IBV_WC_SUCCESS && wc.byte_len == 100, "status %s, %u bytes",
		       ibv_wc_status_str(wc.status), wc.byte_len);
	expect_state(t, IBV_QPS_RTS);
}

const struct test_case datagram_cases[] = {
	{ "UD drops a wrong Q_Key and an unknown QP", dropped_client, dropped_server, IBV_QPT_UD },
	{ "UD drops what no receive holds", short_client, short_server, IBV_QPT_UD },
	{ "UD refuses more than the MTU, and recovers", long_client, one_server, IBV_QPT_UD,
	  .no_rxe_client = "reports success for a datagram that it does not send" },
	{ "UC drops and goes on", uc_client, uc_server, IBV_QPT_UC,
	  .no_rxe_server = "completes the receive of a message that is too long for it" },
	{ }
};
