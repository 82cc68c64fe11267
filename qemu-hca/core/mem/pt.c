// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The protection table in host memory.
 */
#include "hca.h"

enum qhca_mem_status qhca_pte_address(struct qhca_hca *hca, uint32_t key,
					uint64_t *addr)
{
	uint32_t index = QHCA_KEY_INDEX(key);

	if (index < QHCA_FIRST_KEY_INDEX ||
	    index >= qhca_table_size(hca, QHCA_TABLE_PT))
		return qhca_pte_refuse_key(hca, key, QHCA_PROT_INDEX);
	if (!qhca_table_entry(hca, QHCA_TABLE_PT, index, addr))
		return qhca_pte_refuse_key(hca, key, QHCA_PROT_NOT_MAPPED);
	return QHCA_MEM_OK;
}

enum qhca_mem_status qhca_pte_read(struct qhca_hca *hca, uint32_t key,
				     struct qhca_pte_host *pte)
{
	enum qhca_mem_status status;
	struct qhca_pte raw;
	uint64_t addr;

	status = qhca_pte_address(hca, key, &addr);
	if (status)
		return status;
	if (qhca_dma_read(hca, addr, &raw, sizeof(raw)))
		return QHCA_MEM_DMA;
	qhca_pte_decode(&raw, pte);
	if (pte->state == QHCA_PTE_FREE)
		return qhca_pte_refuse_key(hca, key, QHCA_PROT_STATE);
	if (!qhca_pte_well_formed(hca, pte))
		return qhca_pte_refuse_key(hca, key, QHCA_PROT_PTE);
	return QHCA_MEM_OK;
}

void qhca_pt_drop(struct qhca_hca *hca, uint32_t index)
{
	qhca_cache_invalidate_range(&hca->mem.pt, hca->cfg.gvmi, index, 0, 0);
}

enum qhca_mem_status qhca_pte_write(struct qhca_hca *hca, uint32_t key,
				      const struct qhca_pte_host *pte)
{
	enum qhca_mem_status status;
	struct qhca_pte raw;
	uint64_t addr;

	status = qhca_pte_address(hca, key, &addr);
	if (status)
		return status;
	qhca_pte_encode(pte, &raw);
	qhca_pt_drop(hca, QHCA_KEY_INDEX(key));
	if (qhca_dma_write(hca, addr + sizeof(raw.ctrl), &raw.access,
			   sizeof(raw) - sizeof(raw.ctrl)) ||
	    qhca_dma_write_release(hca, addr, &raw.ctrl, sizeof(raw.ctrl)))
		return QHCA_MEM_DMA;
	return QHCA_MEM_OK;
}
