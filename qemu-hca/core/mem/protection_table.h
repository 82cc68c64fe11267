/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The protection table in host memory: where an entry lies, reading and writing
 * one, forgetting the cached copy.
 */
#ifndef HCA_CORE_PROTECTION_TABLE_H
#define HCA_CORE_PROTECTION_TABLE_H

#include "mem/protection.h"

/* Where the entry of @key lies.  OK or PROT. */
enum hca_mem_status hca_pte_address(struct hca_fn *fn, uint32_t key,
				    uint64_t *addr);
/* The entry as it is in memory, not free and well formed.  OK, PROT, DMA. */
enum hca_mem_status hca_pte_read(struct hca_fn *fn, uint32_t key,
				 struct hca_pte_host *pte);
/* Write a changed entry back, ctrl last, and forget the cached one. */
enum hca_mem_status hca_pte_write(struct hca_fn *fn, uint32_t key,
				  const struct hca_pte_host *pte);

/* Forget the protection cache's line of an index. */
void hca_pt_drop(struct hca_fn *fn, uint32_t index);

#endif /* HCA_CORE_PROTECTION_TABLE_H */
