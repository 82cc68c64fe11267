// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The five caches of the adapter, and the functions that use them.
 */
#include "hca.h"

/* The counters of each cache.  Only contexts are ever written back. */
static const struct {
	uint16_t hits, misses, evictions, conflicts, invalidations;
	uint16_t stale_fills, writebacks;
} counters[QHCA_NUM_CACHES] = {
#define COUNTERS(name) \
	QHCA_CNT_##name##_hits, QHCA_CNT_##name##_misses, \
	QHCA_CNT_##name##_evictions, QHCA_CNT_##name##_conflicts, \
	QHCA_CNT_##name##_invalidations, QHCA_CNT_##name##_stale_fills
	[QHCA_CACHE_PT] = { COUNTERS(pt), QHCA_NUM_COUNTERS },
	[QHCA_CACHE_AT] = { COUNTERS(at), QHCA_NUM_COUNTERS },
	[QHCA_CACHE_QD] = { COUNTERS(qpc), QHCA_CNT_qpc_writebacks },
	[QHCA_CACHE_CQ] = { COUNTERS(cqc), QHCA_CNT_cqc_writebacks },
	[QHCA_CACHE_SRQ] = { COUNTERS(srqc), QHCA_CNT_srqc_writebacks },
#undef COUNTERS
};

static uint64_t *counter(struct hca_fn *fn, uint16_t id)
{
	return id < QHCA_NUM_COUNTERS ? &fn->counter[id] : NULL;
}

void hca_caches_create(struct hca_fn *fn)
{
	for (unsigned int i = 0; i < QHCA_NUM_CACHES; i++) {
		struct hca_cache_counts counts = {
			.hits = counter(fn, counters[i].hits),
			.misses = counter(fn, counters[i].misses),
			.evictions = counter(fn, counters[i].evictions),
			.conflicts = counter(fn, counters[i].conflicts),
			.invalidations = counter(fn, counters[i].invalidations),
			.stale_fills = counter(fn, counters[i].stale_fills),
			.writebacks = counter(fn, counters[i].writebacks),
		};

		hca_cache_user_init(&fn->cache[i], fn->cfg.gvmi, &counts);
	}
}

void hca_caches_limit(struct hca_fn *fn, const uint16_t *blocks)
{
	for (unsigned int i = 0; i < QHCA_NUM_CACHES; i++)
		fn->cache[i].blocks = blocks[i];
}

/* All caches have the same users; this one is joined first. */
bool hca_caches_in_use(const struct hca *hca)
{
	return hca->cache.pt.users;
}

struct qhca_geometry hca_caches_geometry(const struct hca *hca,
					 enum qhca_cache_id id)
{
	return hca_caches_in_use(hca) ? hca_cache_of(hca, id)->geometry :
					hca_pf(hca)->cfg.cache_default[id];
}

const struct hca_cache *hca_cache_of(const struct hca *hca,
				     enum qhca_cache_id id)
{
	switch (id) {
	case QHCA_CACHE_PT:
		return &hca->cache.pt;
	case QHCA_CACHE_AT:
		return &hca->cache.at;
	case QHCA_CACHE_QD:
		return &hca->cache.qd.cache;
	case QHCA_CACHE_CQ:
		return &hca->cache.cq.cache;
	case QHCA_CACHE_SRQ:
		return &hca->cache.srq.cache;
	default:
		return NULL;
	}
}
