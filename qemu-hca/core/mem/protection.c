// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Protection entries: between memory and host order, and what makes one valid.
 *
 * An entry comes from software's memory, so hca_pte_well_formed() is asked
 * before any field is used in arithmetic.  A refusal is counted and traced
 * here, so that all refusals look alike.
 */
#include "hca.h"

enum hca_mem_status hca_pte_refuse(struct hca_fn *fn, uint32_t key,
				   uint64_t addr, uint64_t len,
				   enum hca_mem_reason reason)
{
	fn->mem.reason = reason;
	hca_count(fn, QHCA_CNT_protection_errors);
	hca_trace(fn, QHCA_TRACE_PROTECTION, key, addr, len, reason);
	return HCA_MEM_PROT;
}

enum hca_mem_status hca_pte_refuse_key(struct hca_fn *fn, uint32_t key,
				       enum hca_mem_reason reason)
{
	return hca_pte_refuse(fn, key, 0, 0, reason);
}

void hca_pte_decode(const struct qhca_pte *raw, struct hca_pte_host *pte)
{
	uint32_t ctrl = get_le32(&raw->ctrl);

	pte->start = get_le64(&raw->start);
	pte->length = get_le64(&raw->length);
	pte->at_base = get_le64(&raw->at_base);
	pte->at_offset = get_le64(&raw->at_offset);
	pte->access = get_le32(&raw->access);
	pte->pd = get_le32(&raw->pd);
	pte->at_key = get_le32(&raw->at_key);
	pte->qpn = get_le32(&raw->qpn);
	pte->windows = get_le32(&raw->windows);
	pte->pool_block = get_le32(&raw->pool_block);
	pte->gvmi = (uint16_t)get_le32(&raw->gvmi);
	pte->gvmi_ok = get_le32(&raw->gvmi) <= UINT16_MAX;
	pte->state = QHCA_GET(QHCA_PTE_STATE, ctrl);
	pte->type = QHCA_GET(QHCA_PTE_TYPE, ctrl);
	pte->octet = QHCA_GET(QHCA_PTE_OCTET, ctrl);
	pte->page_shift = QHCA_GET(QHCA_PTE_PAGE_SHIFT, ctrl);
	pte->levels = QHCA_GET(QHCA_PTE_LEVELS, ctrl);
	pte->odp = ctrl & QHCA_PTE_ODP;
	pte->remote_inv = ctrl & QHCA_PTE_REMOTE_INV;
	pte->pooled = ctrl & QHCA_PTE_POOLED;
}

void hca_pte_encode(const struct hca_pte_host *pte, struct qhca_pte *raw)
{
	memset(raw, 0, sizeof(*raw));
	put_le32(&raw->ctrl,
		 QHCA_PUT(QHCA_PTE_STATE, (uint32_t)pte->state) |
		 QHCA_PUT(QHCA_PTE_TYPE, (uint32_t)pte->type) |
		 QHCA_PUT(QHCA_PTE_OCTET, (uint32_t)pte->octet) |
		 QHCA_PUT(QHCA_PTE_PAGE_SHIFT, (uint32_t)pte->page_shift) |
		 QHCA_PUT(QHCA_PTE_LEVELS, (uint32_t)pte->levels) |
		 (pte->odp ? QHCA_PTE_ODP : 0) |
		 (pte->remote_inv ? QHCA_PTE_REMOTE_INV : 0) |
		 (pte->pooled ? QHCA_PTE_POOLED : 0));
	put_le64(&raw->start, pte->start);
	put_le64(&raw->length, pte->length);
	put_le64(&raw->at_base, pte->at_base);
	put_le64(&raw->at_offset, pte->at_offset);
	put_le32(&raw->access, pte->access);
	put_le32(&raw->pd, pte->pd);
	put_le32(&raw->at_key, pte->at_key);
	put_le32(&raw->qpn, pte->qpn);
	put_le32(&raw->windows, pte->windows);
	put_le32(&raw->pool_block, pte->pool_block);
	put_le32(&raw->gvmi, pte->gvmi);
}

/* Is the type known, and does this function have its feature? */
static bool type_exists(const struct hca_fn *fn, unsigned int type)
{
	static const uint64_t need[] = {
		[QHCA_PTE_FAST_REG] = QHCA_FEAT_FAST_REG,
		[QHCA_PTE_MW1] = QHCA_FEAT_MW1,
		[QHCA_PTE_MW2B] = QHCA_FEAT_MW2B,
		[QHCA_PTE_POOL] = QHCA_FEAT_POOL,
		[QHCA_PTE_DEVMEM] = QHCA_FEAT_DEVMEM,
		[QHCA_PTE_DMA] = 0,
	};

	if (type == 0 || type >= sizeof(need) / sizeof(need[0]))
		return false;
	return !(need[type] & ~fn->features);
}

static bool translated(const struct hca_pte_host *pte)
{
	return pte->type == QHCA_PTE_MR || pte->type == QHCA_PTE_FAST_REG ||
	       hca_pte_is_window(pte);
}

bool hca_pte_well_formed(const struct hca_fn *fn,
			    const struct hca_pte_host *pte)
{
	if (pte->state > QHCA_PTE_INVALIDATED || !type_exists(fn, pte->type))
		return false;
	if (!pte->gvmi_ok || pte->gvmi != fn->cfg.gvmi)
		return false;
	if (pte->access & ~QHCA_ACCESS_MASK)
		return false;
	if (pte->length &&
	    (pte->start + (pte->length - 1) < pte->start ||
	     pte->at_offset + (pte->length - 1) < pte->at_offset))
		return false;
	if (pte->odp && (!(fn->features & QHCA_FEAT_ODP) ||
			 pte->type == QHCA_PTE_FAST_REG || !translated(pte)))
		return false;
	if (pte->pooled && (!(fn->features & QHCA_FEAT_POOL) ||
			    !hca_pte_is_window(pte) || pte->levels || pte->odp))
		return false;
	if (!translated(pte) || pte->levels == 0)
		return true;
	return pte->levels <= QHCA_MAX_AT_LEVELS && !(pte->at_base & 63) &&
	       pte->page_shift >= HCA_MIN_PAGE_SHIFT &&
	       pte->page_shift <= HCA_MAX_PAGE_SHIFT;
}
