/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Empty polls without a device: which of them does the provider tell the device of, after
 * the completion of what?
 */
#include "rings.h"

#define MANY_POLLS	100	/* more than it takes to tell */

struct polls_play {
	struct qhca_qp *qp;
	struct qhca_cq *cq;
	uint32_t completed;
};

/* The next completion, of the oldest request if it is one; then poll in vain. */
static uint64_t told_after(struct polls_play *p, uint8_t opcode,
			   uint32_t flags, uint32_t len)
{
	struct qhca_cq_ring *ring = p->cq->ring;
	uint32_t wqe = atomic_load(&p->qp->sq.ci);
	uint64_t told = 0;
	struct ibv_wc wc;
	int i;

	if (!(flags & QHCA_CQE_REQUESTER))
		wqe = atomic_load(&p->qp->rq.ci);
	put_cqe(ring, p->completed, p->qp, wqe, opcode, flags);
	ring->cqes[p->completed & (ring->depth - 1)].byte_len = htole32(len);
	p->completed++;
	check(qhca_poll_cq(&p->cq->vcq.cq, 1, &wc) == 1);
	take_doorbell(QHCA_DB_POLL);
	for (i = 0; i < MANY_POLLS && !told; i++) {
		check(!qhca_poll_cq(&p->cq->vcq.cq, 1, &wc));
		told = take_doorbell(QHCA_DB_POLL);
	}
	return told;
}

static uint64_t sent(struct polls_play *p, uint8_t opcode, uint32_t len)
{
	return told_after(p, opcode, QHCA_CQE_REQUESTER, len);
}

void test_polls(void)
{
	struct ibv_send_wr swr = { .opcode = IBV_WR_SEND }, *bad_swr;
	struct ibv_recv_wr rwr = {}, *bad_rwr;
	struct polls_play p = {
		.qp = new_qp(QHCA_QPT_RC, 64, 4, 1, 0),
		.cq = new_cq(15),
	};
	struct qhca_cq *new = new_cq(15);
	struct ibv_wc wc;
	uint64_t ci;
	int i;

	/* The device has no use for hints. */
	check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
	check(!sent(&p, QHCA_WQE_SEND, 8));
	test_context()->features |= QHCA_FEAT_POLL_HINT;

	/* A CQ that has had no completion gives none. */
	for (i = 0; i < MANY_POLLS; i++)
		check(!qhca_poll_cq(&new->vcq.cq, 1, &wc));
	check(!take_doorbell(QHCA_DB_POLL));
	free_cq(new);

	/* Few requests are outstanding, of any kind: the program waits for a message. */
	for (i = 0; i < 4; i++)
		check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
	for (i = 0; i < 4; i++) {
		ci = (uint64_t)(p.completed + 1) << 32;
		check(sent(&p, i & 1 ? QHCA_WQE_READ : QHCA_WQE_SEND, 8) == (ci | 7));
	}

	/* It polls on, since it waits for several. */
	check(!qhca_post_recv(&p.qp->vqp.qp, &rwr, &bad_rwr));
	check(!qhca_post_recv(&p.qp->vqp.qp, &rwr, &bad_rwr));
	ci = (uint64_t)(p.completed + 1) << 32;
	check(told_after(&p, QHCA_CQE_RECV, 0, 8) == (ci | QHCA_DB_POLL_MORE | 7));
	ci = (uint64_t)(p.completed + 1) << 32;
	check(told_after(&p, QHCA_CQE_RECV, 0, 8) == (ci | 7));

	/* Many requests are outstanding; short READs and WRITEs keep the program busy. */
	for (i = 0; i < 32; i++)
		check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
	check(!sent(&p, QHCA_WQE_WRITE, 8));
	check(!sent(&p, QHCA_WQE_READ, 8192));
	check(!sent(&p, QHCA_WQE_FETCH_ADD, 8));
	check(sent(&p, QHCA_WQE_WRITE, 8193) & QHCA_DB_POLL_MORE);
	check(sent(&p, QHCA_WQE_READ, 65536) & QHCA_DB_POLL_MORE);
	check(sent(&p, QHCA_WQE_SEND, 8) & QHCA_DB_POLL_MORE);
	check(sent(&p, QHCA_WQE_WRITE_IMM, 8) & QHCA_DB_POLL_MORE);

	test_context()->features &= ~QHCA_FEAT_POLL_HINT;
	take_doorbell(QHCA_DB_SQ);
	free_cq(p.cq);
	free_qp(p.qp);
}

static uint64_t received(struct polls_play *p)
{
	struct ibv_recv_wr rwr = {}, *bad_rwr;

	check(!qhca_post_recv(&p->qp->vqp.qp, &rwr, &bad_rwr));
	return told_after(p, QHCA_CQE_RECV, 0, 8);
}

/* Devices with the feature have a use for hints in streams, and only in these. */
void test_polls_in_streams(void)
{
	struct ibv_send_wr swr = { .opcode = IBV_WR_SEND }, *bad_swr;
	struct polls_play p = {
		.qp = new_qp(QHCA_QPT_RC, 64, 16, 1, 0),
		.cq = new_cq(15),
	};
	int i;

	/* Others have none, and nothing is kept for them. */
	for (i = 0; i < 8; i++)
		check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
	for (i = 0; i < 8; i++) {
		check(!sent(&p, QHCA_WQE_SEND, 65536));
		check(!atomic_load(&p.qp->streams));
	}
	test_context()->features |= QHCA_FEAT_STREAM_HINT;

	/* Single messages and answers are none, whoever begins. */
	for (i = 0; i < 4; i++)
		check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
	for (i = 0; i < 4; i++)
		check(!sent(&p, QHCA_WQE_SEND, 65536));
	for (i = 0; i < 20; i++) {
		check(!received(&p));
		check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
		check(!sent(&p, QHCA_WQE_SEND, 65536));
	}

	/* Receives are, from the eighth without a request on; the program's next one ends it. */
	for (i = 0; i < 7; i++)
		check(!received(&p));
	check(received(&p) & QHCA_DB_POLL_STREAM);
	check(received(&p));
	check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
	check(!sent(&p, QHCA_WQE_SEND, 65536));
	check(!received(&p));

	/* So are many requests, of any kind and length, until few are left. */
	for (i = 0; i < 8; i++)
		check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
	check(sent(&p, QHCA_WQE_WRITE, 8) & QHCA_DB_POLL_STREAM);
	check(sent(&p, QHCA_WQE_READ, 65536) & QHCA_DB_POLL_MORE);
	check(received(&p));
	check(sent(&p, QHCA_WQE_SEND, 8) & QHCA_DB_POLL_MORE);
	check(!sent(&p, QHCA_WQE_SEND, 8));

	/* Receives count while requests are outstanding, too. */
	for (i = 0; i < 2; i++)
		check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
	check(sent(&p, QHCA_WQE_SEND, 8));
	for (i = 0; i < 8; i++)
		check(received(&p));
	check(!sent(&p, QHCA_WQE_SEND, 8));
	check(received(&p));
	check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));

	/* Requests are not outstanding for being unsignaled: answers, one in 16 of them signaled. */
	for (i = 0; i < 4; i++)
		check(!sent(&p, QHCA_WQE_SEND, 8));
	for (i = 0; i < 60; i++) {
		check(!received(&p));
		check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
		if (i % 16 == 15) {
			atomic_fetch_add(&p.qp->sq.ci, 15);
			check(!sent(&p, QHCA_WQE_SEND, 8));
		}
	}

	test_context()->features &= ~QHCA_FEAT_STREAM_HINT;
	take_doorbell(QHCA_DB_SQ);
	free_cq(p.cq);
	free_qp(p.qp);
}

/* A QP that is used again has sent and received nothing. */
void test_polls_after_reset(void)
{
	struct polls_play p = {
		.qp = new_qp(QHCA_QPT_RC, 64, 16, 1, 0),
		.cq = new_cq(15),
	};
	struct ibv_send_wr swr = { .opcode = IBV_WR_SEND }, *bad_swr;
	int i;

	test_context()->features |= QHCA_FEAT_STREAM_HINT;
	p.qp->vqp.qp.send_cq = p.qp->vqp.qp.recv_cq = &p.cq->vcq.cq;
	for (i = 0; i < 8; i++)
		received(&p);
	check(received(&p));
	qhca_qp_reset_rings(p.qp);
	for (i = 0; i < 7; i++)
		check(!received(&p));
	for (i = 0; i < 8; i++)
		check(!qhca_post_send(&p.qp->vqp.qp, &swr, &bad_swr));
	check(sent(&p, QHCA_WQE_SEND, 8));
	qhca_qp_reset_rings(p.qp);
	check(!received(&p));
	for (i = 0; i < 6; i++)
		check(!received(&p));
	check(received(&p));
	test_context()->features &= ~QHCA_FEAT_STREAM_HINT;
	take_doorbell(QHCA_DB_SQ);
	free_cq(p.cq);
	free_qp(p.qp);
}

#define SIGNALED	16	/* one answer in so many */

static void answer(struct polls_play *p)
{
	struct ibv_send_wr swr = { .opcode = IBV_WR_SEND }, *bad_swr;

	check(!qhca_post_send(&p->qp->vqp.qp, &swr, &bad_swr));
}

/*
 * A server looks after the completion of an answer only when it is about to ask for the next
 * one.  All answers are long done then.  With @drains it goes on until the CQ is empty.
 */
static void serve_two_cqs(bool drains)
{
	struct polls_play p = {
		.qp = new_qp(QHCA_QPT_RC, 64, 16, 1, 0),
		.cq = new_cq(15),
	};
	struct qhca_cq *send_cq = new_cq(15);
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < 8 * SIGNALED; i++) {
		check(!received(&p));
		if (i && !(i % SIGNALED)) {
			put_cqe(send_cq->ring, i / SIGNALED - 1, p.qp, i - SIGNALED,
				QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
			check(qhca_poll_cq(&send_cq->vcq.cq, 1, &wc) == 1);
			check(!drains || !qhca_poll_cq(&send_cq->vcq.cq, 1, &wc));
		}
		answer(&p);
	}
	free_cq(send_cq);
	free_cq(p.cq);
	free_qp(p.qp);
}

/*
 * Requests come by the dozen, and one CQ has their receives and, behind these, the completion
 * of the first answer.  All answers are done when the server comes to it.
 */
static void serve_one_cq(void)
{
	struct polls_play p = {
		.qp = new_qp(QHCA_QPT_RC, 64, 16, 1, 0),
		.cq = new_cq(31),
	};
	struct ibv_recv_wr rwr = {}, *bad_rwr;
	struct ibv_wc wc;
	uint32_t i, turn;

	for (turn = 0; turn < 8; turn++) {
		for (i = 0; i < SIGNALED; i++) {
			check(!qhca_post_recv(&p.qp->vqp.qp, &rwr, &bad_rwr));
			put_cqe(p.cq->ring, p.completed++, p.qp, turn * SIGNALED + i,
				QHCA_CQE_RECV, 0);
		}
		for (i = 0; i < SIGNALED - 1; i++) {
			check(qhca_poll_cq(&p.cq->vcq.cq, 1, &wc) == 1);
			answer(&p);
		}
		put_cqe(p.cq->ring, p.completed++, p.qp, turn * SIGNALED, QHCA_WQE_SEND,
			QHCA_CQE_REQUESTER);
		check(qhca_poll_cq(&p.cq->vcq.cq, 1, &wc) == 1);
		answer(&p);
		check(qhca_poll_cq(&p.cq->vcq.cq, 1, &wc) == 1);
		check(wc.opcode == IBV_WC_SEND);
		for (i = 0; i < MANY_POLLS; i++)
			check(!qhca_poll_cq(&p.cq->vcq.cq, 1, &wc));
		check(!take_doorbell(QHCA_DB_POLL));
	}
	free_cq(p.cq);
	free_qp(p.qp);
}

/* Answers are no stream for being polled late. */
void test_polls_of_server(void)
{
	test_context()->features |= QHCA_FEAT_STREAM_HINT;
	serve_two_cqs(false);
	serve_two_cqs(true);
	serve_one_cq();
	test_context()->features &= ~QHCA_FEAT_STREAM_HINT;
	take_doorbell(QHCA_DB_SQ);
}
