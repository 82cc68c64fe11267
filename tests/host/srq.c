// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Shared receive queues */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"

static int srq_create(struct md *md, struct md_srq *srq, uint32_t pd,
		      uint32_t log_depth, uint32_t log_stride,
		      struct qhca_srqc_sw *in)
{
	uint32_t depth = 1u << log_depth;
	int status;

	memset(srq, 0, sizeof(*srq));
	srq->srqn = md->next_srqn++;
	srq->log_depth = log_depth;
	srq->log_stride = log_stride;
	srq->rec_offset = ((depth << log_stride) + 127) & ~127u;
	md_buf_alloc(md, &srq->buf, srq->rec_offset + 128);
	for (uint32_t i = 0; i < depth; i++) {
		uint16_t next;

		put_le16(&next, (i + 1) & (depth - 1));
		md_buf_write(md, &srq->buf, ((uint64_t)i << log_stride) + 10,
			     &next, 2);
	}
	srq->tail = depth - 1;
	srq->wr_id = md_own(md, depth, sizeof(*srq->wr_id));
	md_buf_describe(&srq->buf, &in->buf);
	put_le64(&in->handle, MD_SRQ_HANDLE | srq->srqn);
	put_le32(&in->rec_offset, srq->rec_offset);
	put_le32(&in->pd, pd);
	in->log_depth = log_depth;
	in->log_stride = log_stride;
	in->max_sge = ((1u << log_stride) - 16) / 16 < 32 ?
		      ((1u << log_stride) - 16) / 16 : 32;
	status = md_cmd(md, QHCA_CMD_CREATE_SRQ, srq->srqn, 0, in, sizeof(*in),
			NULL, 0, NULL);
	if (status)
		md->next_srqn--;
	return status;
}

void md_srq_create(struct md *md, struct md_srq *srq, uint32_t pd,
		   uint32_t log_depth, uint32_t log_stride, uint32_t limit)
{
	struct qhca_srqc_sw in = { 0 };

	put_le32(&in.limit, limit);
	put_le32(&in.threshold, 1u << log_depth >> 2);
	md_must(srq_create(md, srq, pd, log_depth, log_stride, &in),
	     "CREATE_SRQ");
}

void md_srq_create_threshold(struct md *md, struct md_srq *srq, uint32_t pd,
			     uint32_t log_depth, uint32_t log_stride,
			     uint32_t threshold)
{
	struct qhca_srqc_sw in = { 0 };

	put_le32(&in.threshold, threshold);
	md_must(srq_create(md, srq, pd, log_depth, log_stride, &in),
	     "CREATE_SRQ");
}

int md_xsrq_create(struct md *md, struct md_srq *srq, uint32_t pd,
		   uint32_t log_depth, uint32_t log_stride, uint32_t xrcd,
		   const struct md_cq *cq)
{
	struct qhca_srqc_sw in = { .flags = QHCA_SRQ_XRC };

	put_le32(&in.threshold, 1u << log_depth >> 2);
	put_le32(&in.xrcd, xrcd);
	put_le32(&in.cqn, cq->cqn);
	return srq_create(md, srq, pd, log_depth, log_stride, &in);
}

static void set_next(struct md *md, const struct md_srq *srq,
		     const struct md_buf *b, uint32_t slot, uint32_t to)
{
	uint16_t next;

	put_le16(&next, to);
	md_buf_write(md, b, ((uint64_t)slot << srq->log_stride) + 10, &next, 2);
}

bool md_srq_post(struct md *md, struct md_srq *srq, uint64_t wr_id,
		 const struct md_sge *sge, uint32_t num_sge)
{
	uint64_t off = (uint64_t)srq->free << srq->log_stride;
	uint16_t next;

	if (srq->free == srq->tail)
		return false;
	md_buf_read(md, &srq->buf, off + 10, &next, 2);
	md_fill_rwqe(md, &srq->buf, off, wr_id, sge, num_sge);
	if (srq->grown_rec)
		md_fill_rwqe(md, &srq->grown, off, wr_id, sge, num_sge);
	srq->wr_id[srq->free] = wr_id;
	srq->free = get_le16(&next);
	md_buf_put32(md, &srq->buf, srq->rec_offset, ++srq->pi);
	if (srq->grown_rec)
		md_buf_put32(md, &srq->grown, srq->grown_rec, srq->pi);
	return true;
}

void md_srq_free(struct md *md, struct md_srq *srq, uint32_t slot)
{
	set_next(md, srq, &srq->buf, srq->tail, slot);
	if (srq->grown_rec)
		set_next(md, srq, &srq->grown, srq->tail, slot);
	srq->tail = slot;
}

void md_srq_grow_begin(struct md *md, struct md_srq *srq)
{
	uint64_t len = 1ull << (srq->log_depth + srq->log_stride);
	uint8_t *copy = malloc(len);

	srq->grown_rec = (2 * len + 127) & ~127u;
	md_buf_alloc(md, &srq->grown, srq->grown_rec + 128);
	md_buf_read(md, &srq->buf, 0, copy, len);
	md_buf_write(md, &srq->grown, 0, copy, len);
	free(copy);
	md_buf_put32(md, &srq->grown, srq->grown_rec, srq->pi);
}

void md_srq_grow_end(struct md *md, struct md_srq *srq)
{
	uint32_t depth = 1u << srq->log_depth;
	struct md_buf old = srq->buf;
	struct qhca_srqc_sw in = { .log_depth = srq->log_depth + 1 };
	uint64_t *wr_id = md_own(md, 2 * depth, sizeof(*wr_id));
	uint8_t *rubbish;

	md_buf_describe(&srq->grown, &in.buf);
	put_le32(&in.rec_offset, srq->grown_rec);
	put_le32(&in.threshold, depth >> 1);
	md_must(md_cmd(md, QHCA_CMD_RESIZE_SRQ, srq->srqn, 0, &in, sizeof(in),
		    NULL, 0, NULL), "RESIZE_SRQ");

	rubbish = malloc(old.len);
	memset(rubbish, 0xee, old.len);
	md_buf_write(md, &old, 0, rubbish, old.len);
	free(rubbish);
	srq->buf = srq->grown;
	srq->rec_offset = srq->grown_rec;
	srq->grown_rec = 0;
	srq->log_depth++;
	memcpy(wr_id, srq->wr_id, depth * sizeof(*wr_id));
	srq->wr_id = wr_id;
	for (uint32_t i = depth; i < 2 * depth; i++)
		md_srq_free(md, srq, i);
}
