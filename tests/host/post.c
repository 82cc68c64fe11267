// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Work requests */
#include "internal.h"

#include "bytes.h"

void md_fill_rwqe(struct md *md, const struct md_buf *b, uint64_t off,
		      uint64_t wr_id, const struct md_sge *sge, uint32_t num_sge)
{
	uint8_t raw[16 + 16 * MD_MAX_SGE];

	put_le64(raw, wr_id);
	put_le16(raw + 8, num_sge);
	for (uint32_t i = 0; i < num_sge; i++) {
		put_le64(raw + 16 + 16 * i, sge[i].addr);
		put_le32(raw + 24 + 16 * i, sge[i].len);
		put_le32(raw + 28 + 16 * i, sge[i].key);
	}
	/* The WQE keeps `next` and what follows it in the header. */
	md_buf_write(md, b, off, raw, 10);
	md_buf_write(md, b, off + 16, raw + 16, 16 * num_sge);
}

static void fill_body(struct qhca_sq_wqe *w, const struct md_wr *wr)
{
	switch (wr->opcode) {
	case QHCA_WQE_CMP_SWAP:
	case QHCA_WQE_FETCH_ADD:
		put_le64(&w->atomic.raddr, wr->raddr);
		put_le32(&w->atomic.rkey, wr->rkey);
		put_le64(&w->atomic.swap_add, wr->swap_add);
		put_le64(&w->atomic.compare, wr->compare);
		break;
	case QHCA_WQE_FLUSH:
		put_le64(&w->flush.raddr, wr->raddr);
		put_le32(&w->flush.rkey, wr->rkey);
		put_le32(&w->flush.length, wr->flush_len);
		w->flush.type = wr->flush_type;
		w->flush.level = wr->flush_level;
		break;
	case QHCA_WQE_BIND_MW:
		w->bind = *wr->bind;
		break;
	case QHCA_WQE_REG_MR:
		w->reg = *wr->reg;
		break;
	default:
		if (wr->ud) {
			w->ud = *wr->ud;
			break;
		}
		put_le64(&w->rdma.raddr, wr->raddr);
		put_le32(&w->rdma.rkey, wr->rkey);
		break;
	}
}

void md_post_send(struct md *md, struct md_qp *qp, const struct md_wr *wr)
{
	uint32_t slot = qp->sq_pi & ((1u << qp->init.sq_log_depth) - 1);
	uint64_t off = qp->sq_offset +
		       ((uint64_t)slot << qp->init.sq_log_stride);
	struct qhca_sq_wqe w = { 0 };
	uint8_t seg[16];

	w.opcode = wr->opcode;
	w.flags = wr->flags;
	w.num_sge = wr->num_sge;
	put_le32(&w.imm, wr->imm);
	put_le64(&w.wr_id, wr->wr_id);
	put_le32(&w.inline_len, wr->inline_len);
	put_le32(&w.xrc_srqn, wr->xrc_srqn);
	fill_body(&w, wr);
	md_buf_write(md, &qp->buf, off, &w, sizeof(w));
	if (wr->flags & QHCA_WQE_F_INLINE) {
		md_buf_write(md, &qp->buf, off + 64, wr->inline_data,
			     wr->inline_len);
	} else {
		for (uint32_t i = 0; i < wr->num_sge; i++) {
			put_le64(seg, wr->sge[i].addr);
			put_le32(seg + 8, wr->sge[i].len);
			put_le32(seg + 12, wr->sge[i].key);
			md_buf_write(md, &qp->buf, off + 64 + 16 * i, seg, 16);
		}
	}
	md_buf_put32(md, &qp->buf, qp->rec_offset, ++qp->sq_pi);
}

void md_ring(struct md *md, struct md_qp *qp)
{
	if (!md_buf_get32(md, &qp->buf, qp->rec_offset + 64))
		qhca_doorbell(md->host.hca, md->host.gvmi, qp->init.db_page, QHCA_DB_SQ,
			      (uint64_t)qp->sq_pi << 32 | qp->qpn, host_clock(&md->host));
}

void md_post_recv(struct md *md, struct md_qp *qp, uint64_t wr_id,
		  const struct md_sge *sge, uint32_t num_sge)
{
	uint32_t slot = qp->rq_pi & ((1u << qp->init.rq_log_depth) - 1);

	md_fill_rwqe(md, &qp->buf, qp->rq_offset +
		  ((uint64_t)slot << qp->init.rq_log_stride), wr_id, sge,
		  num_sge);
	md_buf_put32(md, &qp->buf, qp->rec_offset + 4, ++qp->rq_pi);
}
