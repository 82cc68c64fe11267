// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queues and doorbells of hostile processes: entries that make sense, entries that
 * do not, and anything at all anywhere in what is mapped.
 */
#include <string.h>

#include <qhca/qhca_hw.h>

#include "fuzz.h"

/* The arena is full of queues that were made by hand; this may hit one. */
static void scribble(struct thread *t)
{
	size_t len = 64;
	uint8_t *at;

	note(t, "scribble");
	for (unsigned int n = 1 + below(&t->rng, 16); n; n--) {
		at = any_memory(t, &len);
		for (size_t i = 0; i + 8 <= len; i += 8) {
			uint64_t word = odd_number(&t->rng);

			memcpy(at + i, &word, sizeof(word));
		}
		len = 64;
	}
}

static void put_segment(struct thread *t, struct qhca_sge *sge)
{
	struct file *f = any_file(t);
	size_t len = 1 << 14;

	sge->addr = (uintptr_t)any_memory(t, &len);
	sge->length = chance(&t->rng, 5) ? odd_number(&t->rng) : len;
	sge->lkey = any_number(t, f, MR);
}

static void put_send(struct thread *t, struct file *f, uint8_t *slot)
{
	struct qhca_sq_wqe *wqe = (void *)slot;
	size_t len = 1 << 14;

	*wqe = (struct qhca_sq_wqe) {
		.opcode = below(&t->rng, QHCA_WQE_NUM_OPCODES + 1), .flags = below(&t->rng, 16),
		.num_sge = below(&t->rng, 6), .wr_id = rnd(&t->rng), .imm = odd_number(&t->rng),
		.inline_len = below(&t->rng, 80), .xrc_srqn = any_number(t, f, SRQ),
	};
	wqe->rdma.raddr = (uintptr_t)any_memory(t, &len);
	wqe->rdma.rkey = any_number(t, f, chance(&t->rng, 50) ? MR : MW);
	if (chance(&t->rng, 30))
		for (size_t i = 0; i < sizeof(wqe->raw); i++)
			wqe->raw[i] = rnd(&t->rng);
	/* A datagram goes to one of this process's queues, if anywhere. */
	if (chance(&t->rng, 50)) {
		wqe->ud.dest_qpn = any_number(t, f, QP);
		memcpy(wqe->ud.av.dgid, &t->worker->gid, 16);
		wqe->ud.av.sgid_index = t->worker->gid_index;
	}
	for (unsigned int i = 0; i < 4; i++)
		put_segment(t, (struct qhca_sge *)(slot + sizeof(*wqe)) + i);
}

static void put_receive(struct thread *t, uint8_t *slot)
{
	struct qhca_rq_wqe *wqe = (void *)slot;

	*wqe = (struct qhca_rq_wqe) {
		.wr_id = rnd(&t->rng), .num_sge = below(&t->rng, 4), .next = below(&t->rng, 300),
	};
	for (unsigned int i = 0; i < 3; i++)
		put_segment(t, (struct qhca_sge *)(wqe + 1) + i);
}

/* Work for a queue pair that was made by hand, if it still is there. */
static void post(struct thread *t, struct file *f)
{
	const struct queues q = t->worker->queues[below(&t->rng, IDS)];
	uint8_t *queues = (void *)(uintptr_t)q.addr;
	struct qhca_qp_record *record = (void *)(queues + q.rec);

	note(t, "post %jx", (uintmax_t)q.addr);
	if (!q.addr)
		return;
	for (unsigned int i = 0; i < 8; i++) {
		put_send(t, f, queues + (i << QHCA_MIN_LOG_WQE_STRIDE));
		put_receive(t, queues + q.rq + (i << (QHCA_MIN_LOG_RWQE_STRIDE + 1)));
	}
	record->rq_pi += below(&t->rng, 20);
	record->sq_pi += below(&t->rng, 20);
	if (chance(&t->rng, 20))
		record->sq_active = rnd(&t->rng);
}

static void ring(struct thread *t, struct file *f)
{
	static const uint8_t offsets[] = {
		QHCA_DB_SQ, QHCA_DB_CQ_ARM, QHCA_DB_POLL, QHCA_DB_EQ_ARM, QHCA_DB_ETH_TX,
		QHCA_DB_ETH_ARM,
	};
	unsigned int offset = offsets[below(&t->rng, chance(&t->rng, 80) ? 3 : 6)];
	uint64_t value = any_number(t, f, offset == QHCA_DB_CQ_ARM || offset == QHCA_DB_POLL ? CQ : QP);

	value |= (uint64_t)below(&t->rng, 32) << 32;
	if (chance(&t->rng, 5))
		value ^= odd_number(&t->rng);
	if (chance(&t->rng, 5))
		offset = below(&t->rng, QHCA_DB_PAGE_SIZE) & ~7u;
	note(t, "ring %x %jx", offset, (uintmax_t)value);
	if (chance(&t->rng, 95))
		f->doorbell[offset / 8] = value;
	else if (chance(&t->rng, 50))
		((volatile uint32_t *)f->doorbell)[offset / 4 + below(&t->rng, 2)] = value;
	else
		((volatile uint8_t *)f->doorbell)[offset + below(&t->rng, 8)] = value;
}

void queue_step(struct thread *t)
{
	struct file *f = any_file(t);
	unsigned int p = below(&t->rng, 100);

	if (p < 20)
		scribble(t);
	else if (p < 55 || !f->doorbell)
		post(t, f);
	else
		ring(t, f);
}
