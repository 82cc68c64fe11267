/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Protection table entries: decoded, checked, encoded.
 */
#ifndef HCA_CORE_PROTECTION_H
#define HCA_CORE_PROTECTION_H

#include "qhca.h"
#include "mem/cache.h"

struct hca_fn;

/* Outcome of anything that is done with a key. */
enum hca_mem_status {
	HCA_MEM_OK,
	HCA_MEM_PROT,			/* refused: protection error */
	HCA_MEM_FAULT,			/* page not present: fn->mem.fault */
	HCA_MEM_DMA,			/* memory unreachable */
};

/* Why the last access was refused: the reason of QHCA_TRACE_PROTECTION. */
enum hca_mem_reason {
	HCA_PROT_NONE,
	HCA_PROT_RESERVED_KEY,		/* reserved L_Key not allowed here */
	HCA_PROT_INDEX,			/* index 0, 1 or beyond the table */
	HCA_PROT_NOT_MAPPED,		/* PT chunk not mapped */
	HCA_PROT_PTE,			/* malformed entry */
	HCA_PROT_STATE,			/* free or invalidated */
	HCA_PROT_OCTET,
	HCA_PROT_TYPE,			/* e.g. a window used as an L_Key */
	HCA_PROT_PD,
	HCA_PROT_QPN,			/* type 2B window of another QP */
	HCA_PROT_ACCESS,
	HCA_PROT_RANGE,
	HCA_PROT_NOT_PRESENT,		/* entry absent without ODP */
	HCA_PROT_READ_ONLY,		/* entry without WRITE, without ODP */
	HCA_PROT_POOL,			/* pool row missing or too short */
	HCA_PROT_WINDOWS,		/* region has windows bound */
	HCA_PROT_ARGUMENT,		/* bind, registration: bad work request */
};

/**
 * struct hca_pte_host - a protection table entry in host order, as cached.
 * Fields as in struct qhca_pte; ctrl taken apart.
 */
struct hca_pte_host {
	uint64_t start, length;
	uint64_t at_base, at_offset;
	uint32_t access, pd, at_key, qpn;
	uint32_t windows, pool_block;
	uint16_t gvmi;
	uint8_t state, type, octet;
	uint8_t page_shift, levels;
	bool odp, remote_inv;
	bool pooled;			/* window on a region of type POOL */
	bool gvmi_ok;			/* the word fits a GVMI */
};

static inline bool hca_pte_is_window(const struct hca_pte_host *pte)
{
	return pte->type == QHCA_PTE_MW1 || pte->type == QHCA_PTE_MW2B;
}

/* Is the memory in a block of the pool, so that a row of the bank locates it? */
static inline bool hca_pte_is_pool(const struct hca_pte_host *pte)
{
	return pte->type == QHCA_PTE_POOL || pte->pooled;
}

void hca_pte_decode(const struct qhca_pte *raw, struct hca_pte_host *pte);
void hca_pte_encode(const struct hca_pte_host *pte, struct qhca_pte *raw);
/* hardware.rst, "Protection check", condition 2, but for state VALID. */
bool hca_pte_well_formed(const struct hca_fn *fn,
			 const struct hca_pte_host *pte);

/* Count, trace and remember a refusal.  PROT. */
enum hca_mem_status hca_pte_refuse(struct hca_fn *fn, uint32_t key,
				   uint64_t addr, uint64_t len,
				   enum hca_mem_reason reason);
enum hca_mem_status hca_pte_refuse_key(struct hca_fn *fn, uint32_t key,
				       enum hca_mem_reason reason);

#endif /* HCA_CORE_PROTECTION_H */
