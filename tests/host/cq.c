// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Events and completions */
#include "internal.h"

#include <string.h>

#include "bytes.h"

bool md_event(struct md *md, struct qhca_eqe *eqe)
{
	uint32_t depth = 1u << md->init.log_eq;
	const struct qhca_eqe *e = md_ptr(md, md->eq_ring +
					  64ull * (md->eq_ci % depth));
	bool want = !(md->eq_ci >> md->init.log_eq & 1);

	if (!!(get_le32(&e->phase) & QHCA_PHASE) != want)
		return false;
	*eqe = *e;
	md->eq_ci++;
	put_le32(md_ptr(md, md->eq_rec), md->eq_ci);
	return true;
}

void md_cq_create(struct md *md, struct md_cq *cq, uint32_t log_depth)
{
	md_cq_create_moderated(md, cq, log_depth, 0, 0);
}

void md_cq_create_moderated(struct md *md, struct md_cq *cq, uint32_t log_depth,
			    uint16_t count, uint16_t usec)
{
	struct qhca_cqc_sw in = { 0 };

	memset(cq, 0, sizeof(*cq));
	cq->md = md;
	cq->cqn = md->next_cqn++;
	cq->log_depth = log_depth;
	cq->rec_offset = 64u << log_depth;
	if (cq->rec_offset < 128)
		cq->rec_offset = 128;
	md_buf_alloc(md, &cq->buf, cq->rec_offset + 128);
	md_buf_describe(&cq->buf, &in.buf);
	put_le32(&in.rec_offset, cq->rec_offset);
	put_le32(&in.eqn, md->cq_eqn);
	put_le32(&in.threshold, 1u << log_depth >> 1);
	put_le16(&in.moder_count, count);
	put_le16(&in.moder_usec, usec);
	in.log_depth = log_depth;
	md_must(md_cmd(md, QHCA_CMD_CREATE_CQ, cq->cqn, 0, &in, sizeof(in), NULL,
		    0, NULL), "CREATE_CQ");
}

void md_arm(struct md_cq *cq, bool solicited)
{
	qhca_doorbell(cq->md->host.hca, cq->md->host.gvmi, 0, QHCA_DB_CQ_ARM,
		      (uint64_t)cq->ci << 32 | cq->cqn |
		      (solicited ? QHCA_DB_CQ_SOLICITED : 0), host_clock(&cq->md->host));
}

bool md_poll(struct md_cq *cq, struct qhca_cqe *cqe)
{
	uint32_t slot = cq->ci & ((1u << cq->log_depth) - 1);
	bool want = !(cq->ci >> cq->log_depth & 1);

	md_buf_read(cq->md, &cq->buf, 64ull * slot, cqe, sizeof(*cqe));
	if (!!(get_le32(&cqe->flags) & QHCA_PHASE) != want)
		return false;
	cq->ci++;
	md_buf_put32(cq->md, &cq->buf, cq->rec_offset, cq->ci);
	return true;
}
