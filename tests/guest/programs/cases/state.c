// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* States of a queue pair, and what is flushed. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "cases.h"

#define POSTED 8

static void nothing(struct test *t)
{
	(void)t;
}

/* The server posts no receive, so that the client's requests stay outstanding. */
static void flush_client(struct test *t)
{
	for (int i = 0; i < POSTED; i++) {
		post_receive(t, 100 + i, 4096, 64);
		post(t, &(struct request) { .id = i, .opcode = IBV_WR_SEND, .len = 64,
					    .flags = i & 1 ? IBV_SEND_SIGNALED : 0 });
	}
	EXPECT(t, !qp_error(t->qp), "cannot move the QP to ERR");
	/* Signalled or not. */
	expect_flushed(t, t->send_cq, 0, POSTED);
	expect_flushed(t, t->recv_cq, 100, POSTED);
	expect_state(t, IBV_QPS_ERR);

	/* The device also flushes requests that are posted later. */
	post_receive(t, 200, 4096, 64);
	expect_flushed(t, t->recv_cq, 200, 1);
	post_send(t, 50, 64);
	post_send(t, 51, 64);
	expect_flushed(t, t->send_cq, 50, 2);
	expect_none(t, t->send_cq, 50);
	expect_none(t, t->recv_cq, 50);
	meet(t);
}

static void talk(struct test *t, uint64_t id)
{
	struct ibv_wc wc;

	post_receive(t, id, 4096, 64);
	meet(t);
	post_send(t, id + 1, 64);
	expect_wc(t, t->send_cq, id + 1, IBV_WC_SUCCESS);
	if (!t->failure.text[0] && next_wc(t, t->recv_cq, &wc, SOON))
		EXPECT(t, wc.status == IBV_WC_SUCCESS && wc.wr_id == id && wc.byte_len == 64,
		       "receive %llu, status %s", (unsigned long long)wc.wr_id,
		       ibv_wc_status_str(wc.status));
	else
		EXPECT(t, false, "no message arrived");
	meet(t);
}

static void reset_both(struct test *t)
{
	talk(t, 1);
	/* A reset of the QP drops its receives without completions. */
	post_receive(t, 10, 4096, 64);
	EXPECT(t, !qp_reset(t->qp), "cannot reset the QP");
	expect_state(t, IBV_QPS_RESET);
	meet(t);
	t->here.psn = (t->here.psn + 0x800000) & 0xffffff;
	connect_qp(t);
	talk(t, 20);
	expect_none(t, t->recv_cq, 20);
}

static void error_and_back(struct test *t)
{
	post_receive(t, 1, 4096, 64);
	EXPECT(t, !qp_error(t->qp), "cannot move the QP to ERR");
	expect_flushed(t, t->recv_cq, 1, 1);
	meet(t);
	EXPECT(t, !qp_reset(t->qp), "cannot reset the QP");
	meet(t);
	connect_qp(t);
	talk(t, 20);
}

static int to_sqd(struct test *t, bool notify)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = notify };

	return ibv_modify_qp(t->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY);
}

static void sqd_client(struct test *t)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	meet(t);
	post_rdma(t, 1, IBV_WR_RDMA_WRITE, 60000);
	EXPECT(t, !to_sqd(t, true), "cannot move the QP to SQD");
	expect_event(t, IBV_EVENT_SQ_DRAINED);
	expect_wc(t, t->send_cq, 1, IBV_WC_SUCCESS);
	expect_state(t, IBV_QPS_SQD);
	post_send(t, 2, 64);
	expect_none(t, t->send_cq, 100);
	EXPECT(t, !ibv_modify_qp(t->qp, &attr, IBV_QP_STATE), "cannot go on from SQD");
	expect_wc(t, t->send_cq, 2, IBV_WC_SUCCESS);
}

static void sqd_server(struct test *t)
{
	post_receive(t, 1, 4096, 64);
	meet(t);
	expect_wc(t, t->recv_cq, 1, IBV_WC_SUCCESS);
}

static void refused(struct test *t, struct ibv_qp_attr attr, int mask, const char *what)
{
	enum ibv_qp_state before = qp_state(t->qp);
	int rc = ibv_modify_qp(t->qp, &attr, mask);

	EXPECT(t, rc == EINVAL, "%s gives %d (%s)", what, rc, strerror(rc));
	expect_state(t, before);
}

static void transitions(struct test *t)
{
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR }, rts = { .qp_state = IBV_QPS_RTS },
			   sqd = { .qp_state = IBV_QPS_SQD }, init = { .qp_state = IBV_QPS_INIT };

	expect_state(t, IBV_QPS_RESET);
	refused(t, rtr, IBV_QP_STATE, "RESET to RTR");
	refused(t, rts, IBV_QP_STATE, "RESET to RTS");
	refused(t, init, IBV_QP_STATE, "RESET to INIT without attributes");
	EXPECT(t, !qp_init(t->qp, &t->conn), "RESET to INIT");
	refused(t, rts, IBV_QP_STATE, "INIT to RTS");
	refused(t, sqd, IBV_QP_STATE, "INIT to SQD");
	refused(t, rtr, IBV_QP_STATE, "INIT to RTR without attributes");
	EXPECT(t, !qp_init(t->qp, &t->conn), "INIT to INIT");
	EXPECT(t, !qp_error(t->qp), "INIT to ERR");
	refused(t, rts, IBV_QP_STATE, "ERR to RTS");
	EXPECT(t, !qp_reset(t->qp), "ERR to RESET");
}

/* -- what is set is what is seen -------------------------------------------- */

static void query(struct test *t)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	int mask = IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_AV | IBV_QP_ACCESS_FLAGS | IBV_QP_TIMEOUT |
		   IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER |
		   IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_DEST_QPN |
		   IBV_QP_SQ_PSN | IBV_QP_RQ_PSN | IBV_QP_CAP;

	if (!EXPECT(t, !ibv_query_qp(t->qp, &a, mask, &init), "ibv_query_qp: %s", strerror(errno)))
		return;
	EXPECT(t, a.qp_state == IBV_QPS_RTS && a.path_mtu == t->conn.mtu, "state %d, MTU %d",
	       a.qp_state, a.path_mtu);
	EXPECT(t, a.dest_qp_num == t->there.qpn && a.sq_psn == t->here.psn && a.rq_psn == t->there.psn,
	       "peer %u, PSNs %#x %#x", a.dest_qp_num, a.sq_psn, a.rq_psn);
	EXPECT(t, a.timeout == t->conn.timeout && a.retry_cnt == t->conn.retry_cnt &&
	       a.rnr_retry == t->conn.rnr_retry && a.min_rnr_timer == t->conn.min_rnr_timer,
	       "timeout %u, retries %u and %u, RNR timer %u", a.timeout, a.retry_cnt, a.rnr_retry,
	       a.min_rnr_timer);
	EXPECT(t, a.max_rd_atomic == t->conn.rd_atomic && a.max_dest_rd_atomic == t->conn.dest_rd_atomic,
	       "rd_atomic %u and %u", a.max_rd_atomic, a.max_dest_rd_atomic);
	EXPECT(t, !((a.qp_access_flags ^ t->conn.access) & ~IBV_ACCESS_LOCAL_WRITE), "access %#x",
	       a.qp_access_flags);
	EXPECT(t, !memcmp(&a.ah_attr.grh.dgid, &t->there.gid, 16) &&
	       a.ah_attr.grh.sgid_index == t->peer->gid_index, "path of another GID");
	EXPECT(t, a.cap.max_send_wr >= QUEUE_DEPTH && a.cap.max_recv_wr >= QUEUE_DEPTH &&
	       a.cap.max_inline_data >= 64, "capacities %u, %u, inline %u", a.cap.max_send_wr,
	       a.cap.max_recv_wr, a.cap.max_inline_data);
}

/* -- full queues ------------------------------------------------------------ */

static void full_client(struct test *t)
{
	struct ibv_sge sge = { (uintptr_t)t->buf, 64, t->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_recv_wr rr = { .sg_list = &sge, .num_sge = 1 }, *bad_rr;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	unsigned int sends = 0, receives = 0;
	int rc;

	if (!EXPECT(t, !ibv_query_qp(t->qp, &attr, IBV_QP_CAP, &init), "ibv_query_qp"))
		return;
	while (!(rc = ibv_post_send(t->qp, &wr, &bad)) && sends < 10000)
		sends++;
	EXPECT(t, rc == ENOMEM, "a full send queue gives %d (%s)", rc, strerror(rc));
	EXPECT(t, bad == &wr, "a refused work request is not named");
	EXPECT(t, sends >= attr.cap.max_send_wr, "%u of %u sends could be posted", sends,
	       attr.cap.max_send_wr);
	while (!(rc = ibv_post_recv(t->qp, &rr, &bad_rr)) && receives < 10000)
		receives++;
	EXPECT(t, rc == ENOMEM, "a full receive queue gives %d (%s)", rc, strerror(rc));
	EXPECT(t, receives >= attr.cap.max_recv_wr, "%u of %u receives could be posted", receives,
	       attr.cap.max_recv_wr);
	meet(t);
}

const struct test_case state_cases[] = {
	{ "ERR flushes in order, and what is posted then", flush_client, meet,
	  .no_rxe_client = "does not flush a receive posted in ERR" },
	{ "RESET and connected anew", reset_both, reset_both },
	{ "ERR, RESET and connected anew", error_and_back, error_and_back },
	{ "SQD drains, holds and goes on", sqd_client, sqd_server,
	  .no_rxe_client = "does not go on from SQD" },
	{ "transitions that are not allowed", transitions, nothing, .flags = UNCONNECTED },
	{ "ibv_query_qp tells what was set", query, query },
	{ "full queues refuse", full_client, meet },
	{ }
};
