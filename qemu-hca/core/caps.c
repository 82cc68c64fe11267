// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a function can do: the answer to QUERY_CAPS.
 */
#include "hca.h"

static void caps_geometry(struct qhca_cache_geometry *out,
			  const struct qhca_geometry *in)
{
	put_le16(&out->sets, in->sets);
	put_le16(&out->blocks, in->blocks);
}

static void caps_sizes(const struct qhca_config *cfg, struct qhca_caps *caps)
{
	caps->log_max_pt = cfg->log_max_pt;
	caps->log_max_qp = cfg->log_max_qp;
	caps->log_max_cq = cfg->log_max_cq;
	caps->log_max_srq = cfg->log_max_srq;
	caps->log_max_eq = cfg->log_max_eq;
	caps->log_max_wq_depth = cfg->log_max_wq_depth;
	caps->log_max_cq_depth = cfg->log_max_cq_depth;
	caps->log_max_eq_depth = cfg->log_max_eq_depth;
	caps->log_max_wqe_stride = HCA_MAX_LOG_WQE_STRIDE;
	caps->log_max_rwqe_stride = HCA_MAX_LOG_RWQE_STRIDE;
	caps->log_max_eth_ring = HCA_LIMIT_LOG_ETH_RING;
	caps->max_mtu = QHCA_MTU_4096;
	caps->max_rd_atomic = HCA_MAX_RD_ATOMIC;
	caps->num_vectors = (uint8_t)cfg->num_vectors;
	caps->num_ports = 1;
	put_le16(&caps->max_sge, HCA_MAX_SGE);
	put_le16(&caps->max_inline, HCA_MAX_INLINE);
	put_le16(&caps->max_gids, cfg->num_gids);
	put_le16(&caps->max_mcast_members, cfg->max_mcast_members);
	put_le16(&caps->max_flows, cfg->max_flows);
	put_le32(&caps->num_db_pages, cfg->num_db_pages);
	put_le32(&caps->num_counters, QHCA_NUM_COUNTERS);
	put_le16(&caps->max_pool_blocks, cfg->max_pool_blocks);
	put_le16(&caps->max_pool_keys, cfg->max_pool_keys);
	put_le16(&caps->max_eth_mtu, HCA_LIMIT_ETH_MTU);
	put_le32(&caps->max_msg_size_log, 31);
}

/* A virtual function takes the caches as they are. */
static void caps_caches(const struct hca_fn *fn, struct qhca_caps *caps)
{
	for (unsigned int i = 0; i < QHCA_NUM_CACHES; i++) {
		struct qhca_geometry present =
			hca_caches_geometry(fn->hca, (enum qhca_cache_id)i);

		caps_geometry(&caps->cache_max[i],
			      fn->cfg.gvmi ? &present : &fn->cfg.cache_max[i]);
		caps_geometry(&caps->cache_default[i],
			      fn->cfg.gvmi ? &present :
					     &fn->cfg.cache_default[i]);
	}
}

void hca_caps_fill(const struct hca_fn *fn, struct qhca_caps *caps)
{
	uint64_t shifts = (2ull << HCA_MAX_PAGE_SHIFT) -
			  (1ull << HCA_MIN_PAGE_SHIFT);

	memset(caps, 0, sizeof(*caps));
	caps_sizes(&fn->cfg, caps);
	put_le64(&caps->features, fn->features);
	caps->max_eth_queues = (uint8_t)hca_eth_num_queues(fn);
	put_le64(&caps->max_mr_size, 1ull << HCA_MAX_LOG_MR_SIZE);
	put_le64(&caps->page_sizes, shifts);
	put_le64(&caps->devmem_size, fn->cfg.devmem_size);
	caps_caches(fn, caps);
	if (!fn->cfg.gvmi)
		put_le16(&caps->total_vfs, fn->hca->num_vfs);
	if (fn->features & QHCA_FEAT_QP_COUNTERS)
		put_le16(&caps->num_counter_sets, HCA_NUM_COUNTER_SETS);
	if (fn->features & QHCA_FEAT_STAGE2) {
		caps_geometry(&caps->s2_max, &fn->cfg.s2_max);
		caps_geometry(&caps->s2_default, &fn->cfg.s2_default);
	}
	put_le32(&caps->first_user_qpn, HCA_FIRST_USER_QPN);
	put_le32(&caps->reserved_lkey, QHCA_RESERVED_LKEY);
	put_le64(&caps->clock_hz, 1000000000ull);
}
