/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The caches of the adapter, and the functions that use them.
 */
#ifndef HCA_CORE_CACHES_H
#define HCA_CORE_CACHES_H

#include "qhca.h"
#include "mem/cache.h"
#include "mem/descriptor_cache.h"

struct hca;
struct hca_fn;

struct hca_caches {			/* tagged with the function's GVMI */
	struct hca_cache pt;		/* struct hca_pte_host */
	struct hca_cache at;		/* uint64_t: page address | QHCA_ATE_* */
	struct hca_ctxcache qd;		/* struct hca_qp */
	struct hca_ctxcache cq;
	struct hca_ctxcache srq;
	struct hca_cache s2;		/* uint64_t: machine address | QHCA_ATE_* */
};

/* At creation: the counts of the function's accesses are its counters. */
void hca_caches_create(struct hca_fn *fn);
/*
 * The blocks of each cache that the function may fill from now on, by enum qhca_cache_id,
 * as SET_VF has them.  0: those of the function's configuration.
 */
void hca_caches_limit(struct hca_fn *fn, const uint16_t *blocks);
/*
 * Is a function initialised?  Then the caches have a geometry; otherwise they would
 * have that of the PF's configuration.
 */
bool hca_caches_in_use(const struct hca *hca);
struct qhca_geometry hca_caches_geometry(const struct hca *hca,
					 enum qhca_cache_id id);
/* NULL: there is no such cache. */
const struct hca_cache *hca_cache_of(const struct hca *hca,
				     enum qhca_cache_id id);

#endif /* HCA_CORE_CACHES_H */
