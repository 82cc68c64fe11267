// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The protection table in host memory.
 */
#include "hca.h"

enum hca_mem_status hca_pte_address(struct hca_fn *fn, uint32_t key,
					uint64_t *addr)
{
	uint32_t index = QHCA_KEY_INDEX(key);

	if (index < QHCA_FIRST_KEY_INDEX ||
	    index >= hca_table_size(fn, QHCA_TABLE_PT))
		return hca_pte_refuse_key(fn, key, HCA_PROT_INDEX);
	if (!hca_table_entry(fn, QHCA_TABLE_PT, index, addr))
		return hca_pte_refuse_key(fn, key, HCA_PROT_NOT_MAPPED);
	return HCA_MEM_OK;
}

enum hca_mem_status hca_pte_read(struct hca_fn *fn, uint32_t key,
				     struct hca_pte_host *pte)
{
	enum hca_mem_status status;
	struct qhca_pte raw;
	uint64_t addr;

	status = hca_pte_address(fn, key, &addr);
	if (status)
		return status;
	if (hca_dma_read(fn, addr, &raw, sizeof(raw)))
		return HCA_MEM_DMA;
	hca_pte_decode(&raw, pte);
	if (pte->state == QHCA_PTE_FREE)
		return hca_pte_refuse_key(fn, key, HCA_PROT_STATE);
	if (!hca_pte_well_formed(fn, pte))
		return hca_pte_refuse_key(fn, key, HCA_PROT_PTE);
	return HCA_MEM_OK;
}

void hca_pt_drop(struct hca_fn *fn, uint32_t index)
{
	hca_cache_invalidate_range(&fn->hca->cache.pt,
				   &fn->cache[QHCA_CACHE_PT], index, 0, 0);
}

enum hca_mem_status hca_pte_write(struct hca_fn *fn, uint32_t key,
				      const struct hca_pte_host *pte)
{
	enum hca_mem_status status;
	struct qhca_pte raw;
	uint64_t addr;

	status = hca_pte_address(fn, key, &addr);
	if (status)
		return status;
	hca_pte_encode(pte, &raw);
	hca_pt_drop(fn, QHCA_KEY_INDEX(key));
	if (hca_dma_write(fn, addr + sizeof(raw.ctrl), &raw.access,
			  sizeof(raw) - sizeof(raw.ctrl)) ||
	    hca_dma_write_release(fn, addr, &raw.ctrl, sizeof(raw.ctrl)))
		return HCA_MEM_DMA;
	return HCA_MEM_OK;
}
