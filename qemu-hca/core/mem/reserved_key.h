/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The reserved L_Key (seed 001) and the null one: L_Keys that are not in the protection
 * table.  The first names memory by its bus address, the second names none.
 */
#ifndef HCA_CORE_RESERVED_KEY_H
#define HCA_CORE_RESERVED_KEY_H

#include "mem/mem.h"

static inline bool hca_key_is_reserved(uint32_t key)
{
	/* The two differ in the lowest bit. */
	return (key | 1) == (QHCA_RESERVED_LKEY | QHCA_NULL_LKEY);
}

/*
 * May the request use its key, which is one of the two?  OK or PROT.  A use of the reserved
 * L_Key is counted.
 */
enum hca_mem_status hca_reserved_key_check(struct hca_fn *fn,
					   const struct hca_mem_req *req);

#endif /* HCA_CORE_RESERVED_KEY_H */
