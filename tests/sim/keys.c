/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "keys.h"

#include <string.h>

uint32_t add_pte(struct end *e, uint32_t type, uint32_t octet,
		 uint32_t ctrl, struct qhca_pte *pte)
{
	uint32_t index = e->md->next_key++;

	put_le32(&pte->ctrl, ctrl | type << 4 | octet << 8 | 12u << 16);
	put_le32(&pte->pd, PAIR_PD);
	md_pte_write(e->md, index, pte);
	return index << 8 | octet;
}

uint32_t new_window(struct end *e, uint32_t type)
{
	struct qhca_pte pte = { 0 };

	return add_pte(e, type, 0x11, QHCA_PTE_INVALIDATED | QHCA_PTE_REMOTE_INV,
		       &pte);
}

uint32_t new_fast_reg(struct end *e, uint32_t ctrl)
{
	struct qhca_pte pte = { 0 };

	put_le64(&pte.at_base, md_alloc(e->md, 8 * PAGES, 64));
	put_le32(&pte.pool_block, PAGES);
	put_le32(&pte.at_key, e->md->next_key);
	return add_pte(e, QHCA_PTE_FAST_REG, 0x22,
		       QHCA_PTE_INVALIDATED | 1u << 24 | ctrl, &pte);
}

void allow_bind(struct end *e)
{
	struct qhca_pte *pte = md_ptr(e->md, e->md->pt +
				      64ull * (e->mr.key >> 8));

	put_le32(&pte->access, e->mr.access | QHCA_ACCESS_MW_BIND);
}

void post_bind(struct end *e, uint32_t mw, uint32_t new_key,
	       uint64_t len, uint32_t access)
{
	struct qhca_wqe_bind bind = { 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_BIND_MW,
			    .flags = QHCA_WQE_F_SIGNALED, .bind = &bind };

	put_le64(&bind.addr, e->mr.iova + TARGET);
	put_le64(&bind.length, len);
	put_le32(&bind.mr_lkey, e->mr.key);
	put_le32(&bind.mw_rkey, mw);
	put_le32(&bind.new_rkey, new_key);
	put_le32(&bind.access, access);
	post_wr(e, &wr);
}

void post_inv(struct end *e, uint8_t opcode, uint32_t key)
{
	struct md_wr wr = { .opcode = opcode, .flags = QHCA_WQE_F_SIGNALED,
			    .imm = key };

	post_wr(e, &wr);
}

void post_reg_at(struct end *e, uint32_t key, uint32_t access,
		 uint32_t off)
{
	struct qhca_wqe_reg reg = { .page_shift = 12 };
	struct md_wr wr = { .opcode = QHCA_WQE_REG_MR,
			    .flags = QHCA_WQE_F_SIGNALED, .reg = &reg };
	uint64_t list = md_alloc(e->md, 8 * PAGES, 8);

	for (uint32_t i = 0; i < PAGES; i++)
		put_le64(md_ptr(e->md, list + 8 * i),
			 e->mr.buf.page[off / MD_PAGE + i]);
	put_le64(&reg.iova, e->mr.iova + TARGET);
	put_le64(&reg.length, TARGET_LEN);
	put_le64(&reg.pages, list);
	put_le32(&reg.key, key);
	put_le32(&reg.access, access);
	put_le32(&reg.num_pages, PAGES);
	post_wr(e, &wr);
}

void post_reg(struct end *e, uint32_t key, uint32_t access)
{
	post_reg_at(e, key, access, TARGET);
}

void post_remote(struct end *e, uint8_t opcode, uint32_t rkey,
		 uint32_t len)
{
	struct md_sge sge = { e->mr.iova, len, e->mr.key };
	struct md_wr wr = {
		.opcode = opcode, .flags = QHCA_WQE_F_SIGNALED, .sge = &sge,
		.num_sge = 1, .raddr = PAIR_IOVA + TARGET, .rkey = rkey,
		.swap_add = 1,
	};

	post_wr(e, &wr);
}

void fill_target(struct end *e, uint8_t value)
{
	uint8_t data[TARGET_LEN];

	memset(data, value, sizeof(data));
	put_bytes(e, TARGET, data, sizeof(data));
}

bool bytes_are(struct end *e, uint32_t off, uint8_t value)
{
	uint8_t data[TARGET_LEN];

	get_bytes(e, off, data, sizeof(data));
	for (uint32_t i = 0; i < sizeof(data); i++)
		if (data[i] != value)
			return false;
	return true;
}

bool target_is(struct end *e, uint8_t value)
{
	return bytes_are(e, TARGET, value);
}

void fill_source(struct end *e, uint8_t value)
{
	uint8_t data[TARGET_LEN];

	memset(data, value, sizeof(data));
	put_bytes(e, 0, data, sizeof(data));
}

void check_dead(int line, struct pair *p, struct end *from,
		uint32_t rkey, uint8_t opcode)
{
	struct qhca_cqe cqe = { 0 };
	uint32_t number = from->qp.sq_pi;

	fill_target(&p->b, 0x5a);
	fill_source(from, 0xa5);
	post_remote(from, opcode, rkey, 8);
	settle(p);
	if (!md_poll(&from->scq, &cqe) || get_le64(&cqe.wr_id) != number ||
	    cqe.status != QHCA_WC_REM_ACCESS_ERR)
		check_failed(line, "status %u through a dead key", cqe.status);
	if (!target_is(&p->b, 0x5a))
		check_failed(line, "a dead key moved bytes");
}

void open_windows(struct pair *p)
{
	allow_bind(&p->b);
	connect_pair(p);
}
