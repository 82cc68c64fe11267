// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Handles and numbers that a hostile process knows, and the driver's own part of
 * requests, whose queues are in the arena.
 */
#include <string.h>

#include <qhca/qhca_hw.h>
#include <uapi/rdma/qhca-abi.h>

#include "fuzz.h"

struct file *any_file(struct thread *t)
{
	return chance(&t->rng, 70) ? &t->worker->file : &t->worker->own;
}

void keep_id(struct thread *t, struct file *f, enum kind kind, uint32_t id, uint32_t number)
{
	unsigned int i = below(&t->rng, IDS);

	f->id[kind][i] = id;
	f->number[kind][i] = number;
}

uint32_t any_id(struct thread *t, struct file *f, enum kind kind)
{
	unsigned int p = below(&t->rng, 100);

	if (p < 4)
		kind = 1 + below(&t->rng, KINDS - 1);
	else if (p < 8)
		return below(&t->rng, 64);
	else if (p < 10)
		return odd_number(&t->rng);
	return f->id[kind][below(&t->rng, IDS)];
}

uint32_t any_number(struct thread *t, struct file *f, enum kind kind)
{
	unsigned int i = below(&t->rng, IDS);

	if (chance(&t->rng, 5))
		return odd_number(&t->rng);
	for (unsigned int n = 0; n < IDS; n++)
		if (f->number[kind][(i + n) % IDS])
			return f->number[kind][(i + n) % IDS];
	return 0;
}

static uint64_t buffer(struct thread *t, uint32_t length)
{
	if (chance(&t->rng, 3))
		return odd_number(&t->rng);
	return (uintptr_t)any_pages(t, length);
}

static size_t fill_cq(struct thread *t, struct qhca_create_cq_req *r)
{
	*r = (struct qhca_create_cq_req) { .log_depth = 4 + below(&t->rng, 4) };
	r->rec_offset = sizeof(struct qhca_cqe) << r->log_depth;
	r->buf_length = r->rec_offset + sizeof(struct qhca_cq_record);
	r->buf_addr = buffer(t, r->buf_length);
	r->threshold = below(&t->rng, 16);
	return sizeof(*r);
}

static size_t fill_resize(struct thread *t, struct qhca_resize_cq_req *r)
{
	*r = (struct qhca_resize_cq_req) { .log_depth = 4 + below(&t->rng, 4) };
	r->rec_offset = sizeof(struct qhca_cqe) << r->log_depth;
	r->buf_length = r->rec_offset + sizeof(struct qhca_cq_record);
	r->buf_addr = buffer(t, r->buf_length);
	return sizeof(*r);
}

static size_t fill_qp(struct thread *t, struct qhca_create_qp_req *r)
{
	*r = (struct qhca_create_qp_req) {
		.handle = rnd(&t->rng),
		.sq_log_depth = 4 + below(&t->rng, 3), .sq_log_stride = QHCA_MIN_LOG_WQE_STRIDE,
		.rq_log_depth = 4 + below(&t->rng, 3), .rq_log_stride = QHCA_MIN_LOG_RWQE_STRIDE + 1,
	};
	r->rq_offset = 1u << (r->sq_log_depth + r->sq_log_stride);
	r->rec_offset = r->rq_offset + (1u << (r->rq_log_depth + r->rq_log_stride));
	r->buf_length = r->rec_offset + sizeof(struct qhca_qp_record);
	r->buf_addr = buffer(t, r->buf_length);
	r->rq_threshold = below(&t->rng, 16);
	t->worker->queues[below(&t->rng, IDS)] = (struct queues) {
		r->buf_addr, r->rq_offset, r->rec_offset,
	};
	return sizeof(*r);
}

static size_t fill_srq(struct thread *t, struct qhca_create_srq_req *r)
{
	*r = (struct qhca_create_srq_req) {
		.handle = rnd(&t->rng), .log_depth = 4 + below(&t->rng, 4),
		.log_stride = QHCA_MIN_LOG_RWQE_STRIDE + 1,
	};
	r->rec_offset = 1u << (r->log_depth + r->log_stride);
	r->buf_length = r->rec_offset + sizeof(struct qhca_srq_record);
	r->buf_addr = buffer(t, r->buf_length);
	r->threshold = below(&t->rng, 16);
	return sizeof(*r);
}

static size_t fill_resize_srq(struct thread *t, struct qhca_modify_srq_req *r)
{
	*r = (struct qhca_modify_srq_req) { .log_depth = 5 + below(&t->rng, 4) };
	r->rec_offset = 1u << (r->log_depth + QHCA_MIN_LOG_RWQE_STRIDE + 1);
	r->buf_length = r->rec_offset + sizeof(struct qhca_srq_record);
	r->buf_addr = buffer(t, r->buf_length);
	return sizeof(*r);
}

size_t udata_fill(struct thread *t, enum udata type, void *to)
{
	size_t len = 0;

	switch (type) {
	case NO_UDATA:
		break;
	case U_CONTEXT:
		memset(to, 0, sizeof(struct qhca_alloc_ucontext_req));
		len = sizeof(struct qhca_alloc_ucontext_req);
		break;
	case U_CQ: len = fill_cq(t, to); break;
	case U_RESIZE: len = fill_resize(t, to); break;
	case U_QP: len = fill_qp(t, to); break;
	case U_SRQ: len = fill_srq(t, to); break;
	case U_RESIZE_SRQ: len = fill_resize_srq(t, to); break;
	}
	if (len && chance(&t->rng, 6))
		((uint8_t *)to)[below(&t->rng, len)] ^= 1 << below(&t->rng, 8);
	return len;
}
