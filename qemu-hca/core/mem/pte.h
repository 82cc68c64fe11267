/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Protection table entries: decoded, checked, encoded.
 */
#ifndef QHCA_CORE_PTE_H
#define QHCA_CORE_PTE_H

#include "qhca.h"
#include "mem/cache.h"

/* Outcome of anything that is done with a key. */
enum qhca_mem_status {
	QHCA_MEM_OK,
	QHCA_MEM_PROT,			/* refused: protection error */
	QHCA_MEM_FAULT,			/* page not present: hca->mem.fault */
	QHCA_MEM_DMA,			/* memory unreachable */
};

/* Why the last access was refused: the reason of QHCA_TRACE_PROTECTION. */
enum qhca_mem_reason {
	QHCA_PROT_NONE,
	QHCA_PROT_RESERVED_KEY,		/* reserved L_Key not allowed here */
	QHCA_PROT_INDEX,		/* index 0, 1 or beyond the table */
	QHCA_PROT_NOT_MAPPED,		/* PT chunk not mapped */
	QHCA_PROT_PTE,			/* malformed entry */
	QHCA_PROT_STATE,		/* free or invalidated */
	QHCA_PROT_OCTET,
	QHCA_PROT_TYPE,			/* e.g. a window used as an L_Key */
	QHCA_PROT_PD,
	QHCA_PROT_QPN,			/* type 2B window of another QP */
	QHCA_PROT_ACCESS,
	QHCA_PROT_RANGE,
	QHCA_PROT_NOT_PRESENT,		/* entry absent without ODP */
	QHCA_PROT_READ_ONLY,		/* entry without WRITE, without ODP */
	QHCA_PROT_POOL,			/* pool row missing or too short */
	QHCA_PROT_WINDOWS,		/* region has windows bound */
	QHCA_PROT_ARGUMENT,		/* bind, registration: bad work request */
};

/**
 * struct qhca_pte_host - a protection table entry in host order, as cached.
 * Fields as in struct qhca_pte; ctrl taken apart.
 */
struct qhca_pte_host {
	uint64_t start, length;
	uint64_t at_base, at_offset;
	uint32_t access, pd, at_key, qpn;
	uint32_t windows, pool_block;
	uint16_t gvmi;
	uint8_t state, type, octet;
	uint8_t page_shift, levels;
	bool odp, remote_inv;
	bool gvmi_ok;			/* the word fits a GVMI */
};

static inline bool qhca_pte_is_window(const struct qhca_pte_host *pte)
{
	return pte->type == QHCA_PTE_MW1 || pte->type == QHCA_PTE_MW2B;
}

void qhca_pte_decode(const struct qhca_pte *raw, struct qhca_pte_host *pte);
void qhca_pte_encode(const struct qhca_pte_host *pte, struct qhca_pte *raw);
/* hardware.rst, "Protection check", condition 2, but for state VALID. */
bool qhca_pte_well_formed(const struct qhca_hca *hca,
			  const struct qhca_pte_host *pte);

/* Count, trace and remember a refusal.  PROT. */
enum qhca_mem_status qhca_pte_refuse(struct qhca_hca *hca, uint32_t key,
				     uint64_t addr, uint64_t len,
				     enum qhca_mem_reason reason);
enum qhca_mem_status qhca_pte_refuse_key(struct qhca_hca *hca, uint32_t key,
					 enum qhca_mem_reason reason);

#endif /* QHCA_CORE_PTE_H */
