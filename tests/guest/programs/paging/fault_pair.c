// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Areas, pairs of QPs, requests and completions: what all cases of qhca-fault use. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fault.h"

struct area area_of(void *mem, size_t len, int access)
{
	struct area a = { .mem = mem, .len = len };

	if (mem == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	a.mr = ibv_reg_mr(t.pd, mem, len, access);
	if (!a.mr)
		die("ibv_reg_mr, access %#x: %s", access, strerror(errno));
	return a;
}

struct area area_anon(size_t len, int access)
{
	return area_of(mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
		       len, access);
}

void area_drop(struct area *a)
{
	CHECK(!ibv_dereg_mr(a->mr));
	CHECK(!munmap(a->mem, a->len));
}

void pair_connect(struct qp_pair *p, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = p->cq, .recv_cq = p->cq, .qp_type = type,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct connection c = t.conn;

	c.type = type;
	p->qp = ibv_create_qp(t.pd, &init);
	if (!p->qp)
		die("ibv_create_qp: %s", strerror(errno));
	p->mine = (struct qp_address){ p->qp->qp_num, lrand48() & 0xffffff, t.peer.gid };
	peer_exchange(&t.peer, &p->mine, &p->theirs, sizeof(p->mine));
	errno = qp_connect(p->qp, &c, t.peer.gid_index, &p->theirs, p->mine.psn);
	if (errno)
		die("QP to RTS: %s", strerror(errno));
}

void pair_open(struct qp_pair *p, enum ibv_qp_type type)
{
	p->channel = ibv_create_comp_channel(t.peer.ctx);
	p->cq = ibv_create_cq(t.peer.ctx, 2 * DEPTH, NULL, p->channel, 0);
	if (!p->channel || !p->cq)
		die("ibv_create_cq: %s", strerror(errno));
	pair_connect(p, type);
}

void pair_close(struct qp_pair *p)
{
	CHECK(!ibv_destroy_qp(p->qp));
	CHECK(!ibv_destroy_cq(p->cq));
	CHECK(!ibv_destroy_comp_channel(p->channel));
}

struct region exchange_region(const struct area *a)
{
	struct region mine = { (uintptr_t)a->mem, a->mr->rkey }, theirs;

	peer_exchange(&t.peer, &mine, &theirs, sizeof(mine));
	return theirs;
}

void post_send(struct qp_pair *p, enum ibv_wr_opcode opcode, const struct area *a, size_t off,
	       uint32_t len, struct region to)
{
	struct ibv_sge sge = { (uintptr_t)a->mem + off, len, a->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .num_sge = 1, .sg_list = &sge,
		.wr_id = WR_SEND,
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = to.addr;
		wr.wr.atomic.rkey = to.rkey;
		wr.wr.atomic.compare_add = ADDEND;
	} else {
		wr.wr.rdma.remote_addr = to.addr;
		wr.wr.rdma.rkey = to.rkey;
	}
	if (p->qp->qp_type == IBV_QPT_UD) {
		wr.wr.ud.ah = p->ah;
		wr.wr.ud.remote_qpn = p->theirs.qpn;
		wr.wr.ud.remote_qkey = TEST_QKEY;
	}
	if (ibv_post_send(p->qp, &wr, &bad))
		die("ibv_post_send: %s", strerror(errno));
}

void post_recv(struct qp_pair *p, const struct area *a, size_t off, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)a->mem + off, len, a->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .num_sge = 1, .sg_list = &sge, .wr_id = WR_RECV };

	if (ibv_post_recv(p->qp, &wr, &bad))
		die("ibv_post_recv: %s", strerror(errno));
}

struct ibv_wc spin_wc(struct qp_pair *p)
{
	uint64_t limit = now_ns() + 30000000000ull;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(p->cq, 1, &wc)))
		if (now_ns() > limit)
			die("no completion within 30 s");
	if (n < 0)
		die("ibv_poll_cq");
	return wc;
}

/* Much longer than any page is held, on the slowest machine. */
#define PATIENCE_MS	300000

/* Asleep meanwhile, so that nobody else on this processor is in its way. */
struct ibv_wc sleep_wc(struct qp_pair *p)
{
	struct pollfd ready = { .fd = p->channel->fd, .events = POLLIN };
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;
	int n;

	while (!(n = ibv_poll_cq(p->cq, 1, &wc))) {
		if (ibv_req_notify_cq(p->cq, 0))
			die("ibv_req_notify_cq");
		n = ibv_poll_cq(p->cq, 1, &wc);
		if (n)
			break;
		if (!poll(&ready, 1, PATIENCE_MS))
			die("no completion");
		if (ibv_get_cq_event(p->channel, &cq, &context))
			die("ibv_get_cq_event: %s", strerror(errno));
		ibv_ack_cq_events(cq, 1);
	}
	if (n < 0)
		die("ibv_poll_cq");
	return wc;
}
