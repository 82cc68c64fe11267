// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Limits and cache geometries of an HCA: defaults, and what is acceptable.
 */
#include "config.h"

#include <stdio.h>

#include "hca.h"
#include "wire/bundle.h"

void qhca_config_default(struct qhca_config *cfg)
{
	static const struct qhca_config defaults = {
		.mac = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 },
		.log_max_pt = 20, .log_max_qp = 16, .log_max_cq = 16,
		.log_max_srq = 14, .log_max_eq = 6,
		.log_max_wq_depth = 15, .log_max_cq_depth = 20,
		.log_max_eq_depth = 16,
		.num_vectors = 32, .num_gids = 128, .num_db_pages = 1024,
		.max_pool_blocks = 64, .max_pool_keys = 1024,
		.max_mcast_members = 256,
		.max_flows = 64,
		.cache_max = {
			[QHCA_CACHE_PT] = { 4096, 16 },
			[QHCA_CACHE_AT] = { 16384, 16 },
			[QHCA_CACHE_QD] = { 256, 16 },
			[QHCA_CACHE_CQ] = { 1024, 16 },
			[QHCA_CACHE_SRQ] = { 256, 16 },
		},
		.cache_default = {
			[QHCA_CACHE_PT] = { 256, 4 },
			[QHCA_CACHE_AT] = { 1024, 4 },
			[QHCA_CACHE_QD] = { 64, 4 },
			[QHCA_CACHE_CQ] = { 64, 4 },
			[QHCA_CACHE_SRQ] = { 32, 4 },
		},
		.s2_max = { 16384, 16 }, .s2_default = { 1024, 4 },
		.link_speed = 1000,
		.features = ~0ull,
		.seed = 1,
	};

	*cfg = defaults;
}

/* Limits and caches are called what the host's user calls them: see qhca.h. */
struct limit {
	const char *name;
	uint64_t value, min, max;
};

static bool limits_ok(const struct limit *limit, size_t num, char *err,
		      size_t err_len)
{
	size_t i;

	for (i = 0; i < num; i++) {
		if (limit[i].value >= limit[i].min &&
		    limit[i].value <= limit[i].max)
			continue;
		snprintf(err, err_len, "%s is %llu, and must be %llu to %llu",
			 limit[i].name, (unsigned long long)limit[i].value,
			 (unsigned long long)limit[i].min,
			 (unsigned long long)limit[i].max);
		return false;
	}
	return true;
}

static bool sizes_ok(const struct qhca_config *cfg, char *err, size_t err_len)
{
	const struct limit limits[] = {
		{ "log-max-pt", cfg->log_max_pt, 2, QHCA_MAX_LOG_PT },
		{ "log-max-qp", cfg->log_max_qp, 2, 23 },
		{ "log-max-cq", cfg->log_max_cq, 1, 24 },
		{ "log-max-srq", cfg->log_max_srq, 1, 24 },
		{ "log-max-eq", cfg->log_max_eq, 1, HCA_MAX_LOG_EQ },
		{ "log-max-wq-depth", cfg->log_max_wq_depth, 1, 16 },
		{ "log-max-cq-depth", cfg->log_max_cq_depth, 1, 24 },
		{ "log-max-eq-depth", cfg->log_max_eq_depth, 1, 20 },
		{ "vectors", cfg->num_vectors, 1, QHCA_MAX_VECTORS },
		{ "gids", cfg->num_gids, 1, HCA_MAX_GIDS },
		{ "doorbell-pages", cfg->num_db_pages, 1, 1u << 20 },
		{ "flows", cfg->max_flows, 0, QHCA_MAX_FLOWS },
		{ "max-bundle", cfg->max_bundle,
		  cfg->max_bundle ? HCA_BUNDLE_MIN : 0, QHCA_MAX_BUNDLE },
		{ "link-speed", cfg->link_speed, 1,
		  QHCA_GET(QHCA_LINK_SPEED, QHCA_LINK_SPEED) },
	};

	return limits_ok(limits, sizeof(limits) / sizeof(limits[0]), err,
			 err_len);
}

static bool caches_ok(const struct qhca_config *cfg, char *err, size_t err_len)
{
	static const char * const name[QHCA_NUM_CACHE_IDS] = {
		[QHCA_CACHE_PT] = "pt", [QHCA_CACHE_AT] = "at",
		[QHCA_CACHE_QD] = "qp", [QHCA_CACHE_CQ] = "cq",
		[QHCA_CACHE_SRQ] = "srq", [QHCA_CACHE_S2] = "s2",
	};
	unsigned int i;

	for (i = 0; i < QHCA_NUM_CACHE_IDS; i++) {
		bool s2 = i == QHCA_CACHE_S2;
		const struct qhca_geometry *max =
			s2 ? &cfg->s2_max : &cfg->cache_max[i];
		const struct qhca_geometry *geometry =
			s2 ? &cfg->s2_default : &cfg->cache_default[i];

		if (!hca_geometry_valid(max, NULL)) {
			snprintf(err, err_len,
				 "%s-cache-max-sets=%u and %s-cache-max-blocks=%u are not powers of two within %u x %u and %u lines",
				 name[i], max->sets, name[i], max->blocks,
				 HCA_CACHE_MAX_SETS, HCA_CACHE_MAX_BLOCKS,
				 HCA_CACHE_MAX_LINES);
			return false;
		}
		if (!hca_geometry_valid(geometry, max)) {
			snprintf(err, err_len,
				 "%s-cache-sets=%u and %s-cache-blocks=%u are not powers of two within the maximum, %u x %u",
				 name[i], geometry->sets, name[i],
				 geometry->blocks, max->sets, max->blocks);
			return false;
		}
	}
	return true;
}

bool hca_config_ok(const struct qhca_config *cfg, char *err, size_t err_len)
{
	static const uint8_t zero[6];

	if (cfg->mac[0] & 1 || !memcmp(cfg->mac, zero, sizeof(zero))) {
		snprintf(err, err_len, "mac is zero or multicast");
		return false;
	}
	if (cfg->devmem_size && !cfg->devmem) {
		snprintf(err, err_len, "devmem-size is not 0 and there is no device memory");
		return false;
	}
	return sizes_ok(cfg, err, err_len) && caches_ok(cfg, err, err_len);
}

uint64_t hca_features_usable(uint64_t features)
{
	if (!(features & QHCA_FEAT_SRQ))
		features &= ~QHCA_FEAT_SRQ_RESIZE;
	if (!(features & QHCA_FEAT_ODP))
		features &= ~(QHCA_FEAT_ODP_IMPLICIT |
			      QHCA_FEAT_UNSOLICITED_ACK);
	if (!(features & QHCA_FEAT_RESERVED_LKEY))
		features &= ~QHCA_FEAT_STRICT_LKEY;
	if (!(features & QHCA_FEAT_ETH_CSUM))
		features &= ~QHCA_FEAT_ETH_TSO;
	return features;
}

uint64_t hca_config_features(const struct qhca_config *cfg)
{
	/* qhca_vf_create() adds FEAT_VF. */
	uint64_t features = cfg->features & HCA_ENGINE_FEATURES & ~QHCA_FEAT_VF;

	features &= ~QHCA_FEAT_STAGE2;		/* qhca_vf_create() adds it */
	/* What one function does with its hints delays the frames of all. */
	if (cfg->gvmi)
		features &= ~QHCA_FEAT_POLL_HINT;
	if (!cfg->devmem_size)
		features &= ~QHCA_FEAT_DEVMEM;
	if (!cfg->max_pool_blocks)
		features &= ~QHCA_FEAT_POOL;
	if (!cfg->max_mcast_members)
		features &= ~QHCA_FEAT_MCAST;
	if (!cfg->max_flows)
		features &= ~QHCA_FEAT_RAW_PACKET;
	return hca_features_usable(features);
}
