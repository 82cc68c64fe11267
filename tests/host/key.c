// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Memory regions */
#include "internal.h"

#include "bytes.h"

void md_pte_write(struct md *md, uint32_t index, const struct qhca_pte *pte)
{
	struct qhca_pte own = *pte;

	put_le32(&own.gvmi, get_le32(&pte->gvmi) | md->host.gvmi);
	memcpy(md_ptr(md, md->pt + 64ull * index), &own, sizeof(own));
}

void md_reg_mr(struct md *md, struct md_mr *mr, uint32_t pd, uint64_t iova,
	       uint64_t len, uint32_t access)
{
	uint32_t index = md->next_key++, octet = md_rand(md) & 0xff;
	struct qhca_pte pte = { 0 };

	md_buf_alloc(md, &mr->buf, len + iova % MD_PAGE);
	mr->iova = iova;
	mr->len = len;
	mr->pd = pd;
	mr->access = access;
	mr->key = index << 8 | octet;
	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_MR << 4 | octet << 8 |
			    12u << 16 | (uint32_t)mr->buf.levels << 24);
	put_le32(&pte.access, access);
	put_le32(&pte.pd, pd);
	put_le32(&pte.at_key, index);
	put_le64(&pte.start, iova);
	put_le64(&pte.length, len);
	put_le64(&pte.at_base, mr->buf.root);
	put_le64(&pte.at_offset, iova % MD_PAGE);
	md_pte_write(md, index, &pte);
}
