/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared receive queues without a device: the test takes from the list as the
 * device does, and completes in random order.
 */
#include <errno.h>
#include <stdlib.h>

#include "rings.h"

/* An SRQ and the device's side of it: any receive may end at any time. */
struct srq_play {
	struct qhca_srq *srq;
	struct xorshift32_state rng;
	void *ring;			/* that the device reads, and */
	struct qhca_srq_record *rec;	/* ... its record */
	uint32_t held[2048], num_held, head, taken, posted;
};

static void srq_play_post(struct srq_play *p)
{
	struct ibv_recv_wr wr = { .wr_id = p->posted }, *bad;
	uint32_t busy = p->posted - p->taken + p->num_held;
	int ret = qhca_post_srq_recv(&p->srq->vsrq.srq, &wr, &bad);

	check(ret == (busy < p->srq->depth - 1 ? 0 : ENOMEM));
	p->posted += !ret;
}

static void srq_play_take(struct srq_play *p)
{
	struct qhca_rq_wqe *wqe;

	if (p->taken == qhca_load(&p->rec->pi))
		return;
	wqe = p->ring + ((size_t)p->head << p->srq->log_stride);
	check(le64toh(wqe->wr_id) == p->taken++);
	p->held[p->num_held++] = p->head;
	p->head = le16toh(wqe->next);
}

static void srq_play_free(struct srq_play *p)
{
	uint32_t i;

	if (!p->num_held)
		return;
	i = xorshift32(&p->rng) % p->num_held;
	qhca_srq_free_slot(p->srq, p->held[i]);
	p->held[i] = p->held[--p->num_held];
}

static void srq_play(struct srq_play *p, unsigned int steps)
{
	while (steps--) {
		switch (xorshift32(&p->rng) % 3) {
		case 0:
			srq_play_post(p);
			break;
		case 1:
			srq_play_take(p);
			break;
		case 2:
			srq_play_free(p);
			break;
		}
	}
}

static void srq_play_start(struct srq_play *p, uint32_t max_wr, uint32_t seed)
{
	p->srq = calloc(1, sizeof(*p->srq));
	p->rng.seed = seed;
	check(!qhca_srq_init_ring(p->srq, test_context(), max_wr, 3));
	p->ring = p->srq->ring;
	p->rec = p->srq->rec;
}

static void srq_play_end(struct srq_play *p)
{
	check(qhca_load(&p->rec->pi) == p->posted && p->posted > 1000);
	qhca_umem_free(&p->srq->mem);
	free(p->srq);
}

void test_srq(void)
{
	struct qhca_srq *srq = calloc(1, sizeof(*srq));
	struct srq_play p = {};

	check(qhca_srq_init_ring(srq, test_context(), 0, 1) == EINVAL);
	check(qhca_srq_init_ring(srq, test_context(), 65536, 1) == EINVAL);
	free(srq);

	srq_play_start(&p, 40, 1);
	check(p.srq->depth == 64 && p.srq->log_stride == 6 &&
	      p.srq->max_sge == 3);
	srq_play(&p, 200000);
	srq_play_end(&p);
}

/* The device changes over at any time, or refuses: nothing is lost. */
void test_srq_grows(void)
{
	struct qhca_srq_grow grow;
	struct srq_play p = {};
	unsigned int i;

	srq_play_start(&p, 4, 2);
	check(qhca_srq_grow_begin(p.srq, test_context(), 65536, &grow) == EINVAL);
	for (i = 0; i < 40; i++) {
		bool moves = i % 5 == 4;

		srq_play(&p, xorshift32(&p.rng) % 200);
		check(!qhca_srq_grow_begin(p.srq, test_context(), p.srq->depth, &grow));
		check(grow.depth == 2 * p.srq->depth);
		srq_play(&p, xorshift32(&p.rng) % 200);
		if (moves) {
			p.ring = p.srq->new_ring;
			p.rec = p.srq->new_rec;
		}
		srq_play(&p, xorshift32(&p.rng) % 200);
		qhca_srq_grow_end(p.srq, &grow, moves);
		check(p.ring == p.srq->ring && p.rec == p.srq->rec);
	}
	check(p.srq->depth == 8 << 8);
	srq_play_end(&p);
}
