// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The caches of the adapter, and the functions that use them.
 */
#include "hca.h"

/* The counters of each cache.  Only contexts are ever written back. */
static const struct {
	uint16_t hits, misses, evictions, conflicts, invalidations;
	uint16_t stale_fills, writebacks;
} counters[QHCA_NUM_CACHE_IDS] = {
	[QHCA_CACHE_PT] = {
		QHCA_CNT_pt_hits, QHCA_CNT_pt_misses,
		QHCA_CNT_pt_evictions, QHCA_CNT_pt_conflicts,
		QHCA_CNT_pt_invalidations, QHCA_CNT_pt_stale_fills,
		QHCA_NUM_COUNTERS,
	},
	[QHCA_CACHE_AT] = {
		QHCA_CNT_at_hits, QHCA_CNT_at_misses,
		QHCA_CNT_at_evictions, QHCA_CNT_at_conflicts,
		QHCA_CNT_at_invalidations, QHCA_CNT_at_stale_fills,
		QHCA_NUM_COUNTERS,
	},
	[QHCA_CACHE_QD] = {
		QHCA_CNT_qpc_hits, QHCA_CNT_qpc_misses,
		QHCA_CNT_qpc_evictions, QHCA_CNT_qpc_conflicts,
		QHCA_CNT_qpc_invalidations, QHCA_CNT_qpc_stale_fills,
		QHCA_CNT_qpc_writebacks,
	},
	[QHCA_CACHE_CQ] = {
		QHCA_CNT_cqc_hits, QHCA_CNT_cqc_misses,
		QHCA_CNT_cqc_evictions, QHCA_CNT_cqc_conflicts,
		QHCA_CNT_cqc_invalidations, QHCA_CNT_cqc_stale_fills,
		QHCA_CNT_cqc_writebacks,
	},
	[QHCA_CACHE_SRQ] = {
		QHCA_CNT_srqc_hits, QHCA_CNT_srqc_misses,
		QHCA_CNT_srqc_evictions, QHCA_CNT_srqc_conflicts,
		QHCA_CNT_srqc_invalidations, QHCA_CNT_srqc_stale_fills,
		QHCA_CNT_srqc_writebacks,
	},
	[QHCA_CACHE_S2] = {
		QHCA_CNT_s2_hits, QHCA_CNT_s2_misses,
		QHCA_CNT_s2_evictions, QHCA_CNT_s2_conflicts,
		QHCA_CNT_s2_invalidations, QHCA_CNT_s2_stale_fills,
		QHCA_NUM_COUNTERS,
	},
};

static uint64_t *counter(struct hca_fn *fn, uint16_t id)
{
	return id < QHCA_NUM_COUNTERS ? &fn->counter[id] : NULL;
}

void hca_caches_create(struct hca_fn *fn)
{
	for (unsigned int i = 0; i < QHCA_NUM_CACHE_IDS; i++) {
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
	for (unsigned int i = 0; i < QHCA_NUM_CACHE_IDS; i++)
		fn->cache[i].blocks = blocks[i] ? blocks[i] : fn->cfg.vf_blocks;
}

/* All caches have the same users; this one is joined first. */
bool hca_caches_in_use(const struct hca *hca)
{
	return hca->cache.pt.users;
}

struct qhca_geometry hca_caches_geometry(const struct hca *hca,
					 enum qhca_cache_id id)
{
	const struct qhca_config *cfg = &hca_pf(hca)->cfg;

	if (id == QHCA_CACHE_S2)
		return hca->cache.s2.line ? hca->cache.s2.geometry :
					    cfg->s2_default;
	return hca_caches_in_use(hca) ? hca_cache_of(hca, id)->geometry :
					cfg->cache_default[id];
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
	case QHCA_CACHE_S2:
		return &hca->cache.s2;
	default:
		return NULL;
	}
}
