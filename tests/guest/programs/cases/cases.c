// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-cases: statuses, states and events of queue pairs, seen from both ends.
 *
 *   qhca-cases -d DEVICE -g GID-INDEX -p PORT [-k WORD] [HOST]
 *
 * With HOST it is the client, which prints TAP; -k picks cases by name.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"

static const struct test_case *const groups[] = {
	remote_cases, local_cases, state_cases, event_cases, datagram_cases,
	memory_cases, place_cases,
};

void meet(struct test *t)
{
	peer_barrier(t->peer);
}

/* -- posting and completions ------------------------------------------------ */

static void post_place(struct test *t, const struct request *rq)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(t->qp);
	int rc;

	if (!EXPECT(t, qp, "the QP has no extended interface"))
		return;
	ibv_wr_start(qp);
	qp->wr_id = rq->id;
	qp->wr_flags = rq->flags;
	if (rq->opcode == IBV_WR_FLUSH)
		ibv_wr_flush(qp, rq->rkey, rq->addr, rq->len, rq->flush_type, rq->flush_level);
	else
		ibv_wr_atomic_write(qp, rq->rkey, rq->addr, t->buf + rq->at);
	rc = ibv_wr_complete(qp);
	EXPECT(t, !rc, "posting request %llu: %s", (unsigned long long)rq->id, strerror(rc));
}

void post(struct test *t, const struct request *rq)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)t->buf + rq->at,
		.length = rq->len,
		.lkey = rq->lkey ? rq->lkey : t->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = rq->id, .opcode = rq->opcode, .sg_list = &sge, .num_sge = 1,
		.send_flags = rq->flags, .imm_data = htobe32(rq->id),
	}, *bad;
	int rc;

	if (rq->opcode == IBV_WR_ATOMIC_WRITE || rq->opcode == IBV_WR_FLUSH) {
		post_place(t, rq);
		return;
	}
	if (rq->opcode == IBV_WR_ATOMIC_CMP_AND_SWP || rq->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = rq->addr;
		wr.wr.atomic.rkey = rq->rkey;
		wr.wr.atomic.compare_add = rq->compare_add;
		wr.wr.atomic.swap = rq->swap;
	} else {
		wr.wr.rdma.remote_addr = rq->addr;
		wr.wr.rdma.rkey = rq->rkey;
	}
	rc = ibv_post_send(t->qp, &wr, &bad);
	EXPECT(t, !rc, "posting request %llu: %s", (unsigned long long)rq->id, strerror(rc));
}

void post_send(struct test *t, uint64_t id, uint32_t len)
{
	post(t, &(struct request) { .id = id, .opcode = IBV_WR_SEND, .len = len,
				    .flags = IBV_SEND_SIGNALED });
}

void post_rdma(struct test *t, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len)
{
	post(t, &(struct request) { .id = id, .opcode = opcode, .len = len, .addr = t->far.addr,
				    .rkey = t->far.rkey, .flags = IBV_SEND_SIGNALED });
}

void post_receive(struct test *t, uint64_t id, uint32_t at, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)t->buf + at, len, t->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 }, *bad;
	int rc = t->srq ? ibv_post_srq_recv(t->srq, &wr, &bad) : ibv_post_recv(t->qp, &wr, &bad);

	EXPECT(t, !rc, "posting receive %llu: %s", (unsigned long long)id, strerror(rc));
}

bool next_wc(struct test *t, struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	uint64_t end = now_ns() + ms * 1000000ull;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		if (!EXPECT(t, n >= 0, "ibv_poll_cq gives %d", n))
			return false;
		if (!n)
			usleep(100);	/* the adapter may share this processor */
	} while (!n && now_ns() < end);
	return n == 1;
}

void expect_wc(struct test *t, struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (t->failure.text[0])
		return;
	if (!next_wc(t, cq, &wc, SOON)) {
		EXPECT(t, false, "no completion of %llu, which was to give \"%s\"",
		       (unsigned long long)id, ibv_wc_status_str(status));
		return;
	}
	EXPECT(t, wc.status == status, "completion of %llu gives \"%s\" (vendor error %#x), not \"%s\"",
	       (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status), wc.vendor_err,
	       ibv_wc_status_str(status));
	EXPECT(t, wc.wr_id == id, "completion of %llu where %llu was next",
	       (unsigned long long)wc.wr_id, (unsigned long long)id);
}

void expect_flushed(struct test *t, struct ibv_cq *cq, uint64_t first, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		expect_wc(t, cq, first + i, IBV_WC_WR_FLUSH_ERR);
}

void expect_none(struct test *t, struct ibv_cq *cq, int ms)
{
	struct ibv_wc wc;

	if (!t->failure.text[0] && next_wc(t, cq, &wc, ms))
		EXPECT(t, false, "an unexpected completion of %llu: %s",
		       (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
}

void expect_state(struct test *t, enum ibv_qp_state state)
{
	enum ibv_qp_state is = qp_state(t->qp);

	EXPECT(t, is == state, "the QP is in state %d, not %d", is, state);
}

void expect_event(struct test *t, enum ibv_event_type type)
{
	struct pollfd fd = { .fd = t->peer->ctx->async_fd, .events = POLLIN };
	uint64_t end = now_ns() + SOON * 1000000ull;
	struct ibv_async_event event;
	char seen[200] = "none";

	while (!t->failure.text[0] && now_ns() < end) {
		if (poll(&fd, 1, 100) <= 0 || ibv_get_async_event(t->peer->ctx, &event))
			continue;
		ibv_ack_async_event(&event);
		if (event.event_type == type)
			return;
		snprintf(seen, sizeof(seen), "%s", ibv_event_type_str(event.event_type));
	}
	EXPECT(t, false, "no event \"%s\" (seen: %s)", ibv_event_type_str(type), seen);
}

/* -- a case's queue pair ---------------------------------------------------- */

static void create(struct test *t)
{
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = QUEUE_DEPTH, .max_sge = 1 } };
	unsigned int cqes = t->tc->cqes ? t->tc->cqes : 2 * QUEUE_DEPTH;
	struct ibv_qp_init_attr_ex init = {
		.qp_type = t->conn.type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = { QUEUE_DEPTH, QUEUE_DEPTH, 2, 2, 64 },
	};

	t->pd = ibv_alloc_pd(t->peer->ctx);
	t->channel = ibv_create_comp_channel(t->peer->ctx);
	t->send_cq = ibv_create_cq(t->peer->ctx, cqes, NULL, NULL, 0);
	t->recv_cq = ibv_create_cq(t->peer->ctx, cqes, NULL, t->channel, 0);
	if (!t->pd || !t->channel || !t->send_cq || !t->recv_cq)
		die("cannot create PD and CQs: %s", strerror(errno));
	if (t->tc->flags & WITH_SRQ) {
		t->srq = ibv_create_srq(t->pd, &srq);
		if (!t->srq)
			die("ibv_create_srq: %s", strerror(errno));
	}
	init.send_cq = t->send_cq;
	init.recv_cq = t->recv_cq;
	init.srq = t->srq;
	init.pd = t->pd;
	if (t->tc->flags & WITH_PLACE) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH;
	}
	t->qp = ibv_create_qp_ex(t->peer->ctx, &init);
	t->mr = ibv_reg_mr(t->pd, t->buf, BUFFER_SIZE, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	if (!t->qp || !t->mr)
		die("cannot create QP and MR: %s", strerror(errno));
	memset(t->buf, 0x5a, BUFFER_SIZE);
	t->here = (struct qp_address) { t->qp->qp_num, (t->qp->qp_num * 7919) & 0xffffff, t->peer->gid };
	t->mine = (struct target) { (uintptr_t)t->buf, t->mr->rkey, BUFFER_SIZE };
}

static void destroy(struct test *t)
{
	int rc = t->qp ? ibv_destroy_qp(t->qp) : 0;

	if (t->srq)
		rc |= ibv_destroy_srq(t->srq);
	rc |= ibv_dereg_mr(t->mr);
	rc |= ibv_destroy_cq(t->send_cq);
	rc |= ibv_destroy_cq(t->recv_cq);
	rc |= ibv_destroy_comp_channel(t->channel);
	rc |= ibv_dealloc_pd(t->pd);
	EXPECT(t, !rc, "destroying: %s", strerror(rc));
}

void connect_qp(struct test *t)
{
	int rc;

	peer_exchange(t->peer, &t->here, &t->there, sizeof(t->here));
	peer_exchange(t->peer, &t->mine, &t->far, sizeof(t->mine));
	rc = qp_init(t->qp, &t->conn);
	if (!rc)
		rc = qp_to_rtr(t->qp, &t->conn, t->peer->gid_index, &t->there);
	if (!rc && !(t->tc->flags & STAY_RTR && t->peer->server))
		rc = qp_to_rts(t->qp, &t->conn, t->here.psn);
	EXPECT(t, !rc, "connecting the QP: %s", strerror(rc));
	meet(t);
}

static void drop_old_events(struct test *t)
{
	struct pollfd fd = { .fd = t->peer->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	while (poll(&fd, 1, 0) > 0 && !ibv_get_async_event(t->peer->ctx, &event))
		ibv_ack_async_event(&event);
}

static void run_case(struct test *t)
{
	t->conn = (struct connection) {
		.type = t->tc->type ? t->tc->type : IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = PATIENT,
		.retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 4,
		.dest_rd_atomic = 4, .access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	if (t->conn.type == IBV_QPT_UC)
		t->conn.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	if (t->tc->adjust)
		t->tc->adjust(&t->conn);
	t->srq = NULL;
	t->failure.text[0] = '\0';
	create(t);
	if (!(t->tc->flags & UNCONNECTED))
		connect_qp(t);
	if (t->peer->server)
		t->tc->server(t);
	else
		t->tc->client(t);
	meet(t);
	destroy(t);
	drop_old_events(t);
}

/* -- the run ---------------------------------------------------------------- */

static const char *why_not(const struct test *t)
{
	bool client = t->peer->server ? t->far_is_rxe : t->is_rxe;
	bool server = t->peer->server ? t->is_rxe : t->far_is_rxe;

	if (client && t->tc->no_rxe_client)
		return t->tc->no_rxe_client;
	return server ? t->tc->no_rxe_server : NULL;
}

/* The server's verdict goes to the client, which prints. */
static void conclude(struct test *t)
{
	struct failure theirs;
	const char *skip = why_not(t);

	if (t->peer->server) {
		peer_send(t->peer, &t->failure, sizeof(t->failure));
		return;
	}
	peer_receive(t->peer, &theirs, sizeof(theirs));
	if (t->failure.text[0])
		printf("# client: %s\n", t->failure.text);
	if (theirs.text[0])
		printf("# server: %s\n", theirs.text);
	if (skip)
		tap_skip(t->tc->name, "rxe: %s", skip);
	else
		tap_point(!t->failure.text[0] && !theirs.text[0], "%s", t->tc->name);
}

static void run_all(struct test *t, const char *word)
{
	for (size_t g = 0; g < sizeof(groups) / sizeof(groups[0]); g++) {
		for (t->tc = groups[g]; t->tc->name; t->tc++) {
			if (!strstr(t->tc->name, word))
				continue;
			t->failure.text[0] = '\0';
			if (!why_not(t))
				run_case(t);
			conclude(t);
		}
	}
}

int main(int argc, char **argv)
{
	struct peer peer = { };
	struct test t = { .peer = &peer };
	char word[64] = "";
	int o;

	while ((o = getopt(argc, argv, PEER_OPTIONS "k:")) != -1) {
		if (peer_option(&peer, o, optarg))
			continue;
		switch (o) {
		case 'k': snprintf(word, sizeof(word), "%s", optarg); break;
		default: die("usage: qhca-cases -d DEVICE -g GID-INDEX -p PORT [-k WORD] [HOST]");
		}
	}
	peer.host = optind < argc ? argv[optind] : NULL;
	peer_open(&peer);
	if (peer.server)
		peer_receive(&peer, word, sizeof(word));
	else
		peer_send(&peer, word, sizeof(word));
	t.is_rxe = !strncmp(ibv_get_device_name(peer.ctx->device), "rxe", 3);
	peer_exchange(&peer, &t.is_rxe, &t.far_is_rxe, sizeof(t.is_rxe));
	t.buf = aligned_alloc(4096, BUFFER_SIZE);
	if (!t.buf)
		die("no memory");
	fcntl(peer.ctx->async_fd, F_SETFL, fcntl(peer.ctx->async_fd, F_GETFL) | O_NONBLOCK);
	run_all(&t, word);
	peer_close(&peer);
	free(t.buf);
	return tap_end();
}
