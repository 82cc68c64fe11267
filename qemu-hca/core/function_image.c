// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The adapter and its functions as such in the image: limits, registers, settings,
 * counters.
 */
#include "parts_image.h"

#include "config.h"
#include "hca.h"
#include "mem/mem_image.h"

HCA_IMAGE_COVERS(struct qhca_config, 136);
HCA_IMAGE_COVERS(struct hca_vf, 32);
HCA_IMAGE_COVERS(struct hca_regs, 4);
HCA_IMAGE_COVERS(struct hca_counter_sets,
		 8 * HCA_NUM_COUNTER_SETS * HCA_SET_COUNTERS);
HCA_IMAGE_COVERS(struct hca, 46616);
HCA_IMAGE_COVERS(struct hca_fn, 94896);

/* ---- limits */

static uint64_t existing(const struct hca *hca)
{
	uint64_t fns = 0;

	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS; gvmi++)
		fns |= (uint64_t)(hca->fn[gvmi] != NULL) << gvmi;
	return fns;
}

/* Both must have the same; @name is what the user calls it. */
static void same(struct hca_image *im, const char *name, uint64_t here)
{
	uint64_t there = here;

	hca_image_u64(im, name, &there);
	if (im->loading && there != here)
		hca_image_refuse(im, "%s is %#llx (%llu) there and %#llx (%llu) here",
				 name, (unsigned long long)there,
				 (unsigned long long)there,
				 (unsigned long long)here,
				 (unsigned long long)here);
}

static void same_geometry(struct hca_image *im, const char *sets,
			  const char *blocks, const struct qhca_geometry *g)
{
	same(im, sets, g->sets);
	same(im, blocks, g->blocks);
}

static void caches(struct hca_image *im, const struct qhca_config *cfg)
{
#define CACHE(name, is, max)						\
	same_geometry(im, name "-cache-sets", name "-cache-blocks", is);\
	same_geometry(im, name "-cache-max-sets",			\
		      name "-cache-max-blocks", max)
#define CACHE_ID(name, id) \
	CACHE(name, &cfg->cache_default[id], &cfg->cache_max[id])

	CACHE_ID("pt", QHCA_CACHE_PT);
	CACHE_ID("at", QHCA_CACHE_AT);
	CACHE_ID("qp", QHCA_CACHE_QD);
	CACHE_ID("cq", QHCA_CACHE_CQ);
	CACHE_ID("srq", QHCA_CACHE_SRQ);
	CACHE("s2", &cfg->s2_default, &cfg->s2_max);
#undef CACHE_ID
#undef CACHE
}

/*
 * Software has read the features once, and goes on with them until the function is
 * reset.  Then it finds those of the properties here, which must be the same or more.
 */
static void features(struct hca_image *im, struct hca_fn *fn)
{
	uint64_t there = fn->features, lacking;

	hca_image_u64(im, "features", &there);
	if (!im->loading)
		return;
	lacking = there & ~fn->offers;
	/* A device may always ignore hints, so software may go on giving them. */
	lacking &= ~QHCA_FEAT_STREAM_HINT;
	if (!fn->cfg.gvmi)
		lacking &= ~QHCA_FEAT_POLL_HINT;
	if (lacking)
		hca_image_refuse(im, "features is %#llx there and %#llx here, which lacks %#llx",
				 (unsigned long long)there,
				 (unsigned long long)fn->offers,
				 (unsigned long long)lacking);
	hca_image_check(im, "features", hca_features_usable(there) == there);
	if (!hca_image_failed(im))
		fn->features = there;
}

void hca_config_image(struct hca_image *im, struct hca_fn *fn)
{
	const struct qhca_config *cfg = &fn->cfg;

	if (!cfg->gvmi)
		same(im, "the set of functions (sriov-vfs)", existing(fn->hca));
	same(im, "mac", hca_mac_word(cfg->mac));
	same(im, "log-max-pt", cfg->log_max_pt);
	same(im, "log-max-qp", cfg->log_max_qp);
	same(im, "log-max-cq", cfg->log_max_cq);
	same(im, "log-max-srq", cfg->log_max_srq);
	same(im, "log-max-eq", cfg->log_max_eq);
	same(im, "log-max-wq-depth", cfg->log_max_wq_depth);
	same(im, "log-max-cq-depth", cfg->log_max_cq_depth);
	same(im, "log-max-eq-depth", cfg->log_max_eq_depth);
	same(im, "vectors", cfg->num_vectors);
	same(im, "gids", cfg->num_gids);
	same(im, "doorbell-pages", cfg->num_db_pages);
	same(im, "pool-blocks", cfg->max_pool_blocks);
	same(im, "pool-keys", cfg->max_pool_keys);
	same(im, "mcast-members", cfg->max_mcast_members);
	same(im, "flows", cfg->max_flows);
	caches(im, cfg);
	same(im, "link-speed", cfg->link_speed);
	features(im, fn);
	same(im, "devmem-size", cfg->devmem_size);
	same(im, "rxe-flush", cfg->rxe_flush);
	same(im, "vf-block-masks", cfg->vf_blocks);
}

/* ---- the adapter */

void hca_adapter_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca *hca = fn->hca;

	hca_image_u64(im, "clock", &hca->now);
	hca_image_check(im, "clock", hca->now <= INT64_MAX);
	hca_image_bool(im, "link_up", &hca->link_up);
	hca_image_bool(im, "vfs_kept_off", &hca->sw.vfs_kept_off);
	hca_image_u8(im, "late", &hca->late);
	hca_image_check(im, "late",
			!(hca->late & ~(HCA_LATE_LINK | HCA_LATE_UP)));
	hca_image_u64(im, "stall", &hca->cost.until);
	hca_image_check(im, "stall", hca->cost.until <= hca->now + HCA_MAX_STALL);
}

/* ---- a function */

#define LATE_OF_FN	(HCA_LATE_RESET | HCA_LATE_PCI | HCA_LATE_DISABLE | \
			 HCA_LATE_ENABLE | HCA_LATE_FATAL | HCA_LATE_DIED)

static void status(struct hca_image *im, struct hca_fn *fn)
{
	uint32_t known = QHCA_STATUS_READY | QHCA_STATUS_ENABLED |
			 QHCA_STATUS_FATAL | QHCA_STATUS_FATAL_CAUSE;

	hca_image_u32(im, "status", &fn->status);
	hca_image_check(im, "status", !(fn->status & ~known) &&
			fn->status & QHCA_STATUS_READY);
	hca_image_u32(im, "control", &fn->control);
	hca_image_check(im, "control", !(fn->control & ~QHCA_CONTROL_ENABLE));
	hca_image_u32(im, "fatal_info", &fn->fatal_info);
	hca_image_u8(im, "late", &fn->late);
	hca_image_check(im, "late", !(fn->late & ~LATE_OF_FN) &&
			(fn->late & HCA_LATE_RESET ||
			 !(fn->late & (HCA_LATE_PCI | HCA_LATE_DISABLE))));
	hca_image_check(im, "late", !(fn->late & HCA_LATE_DIED) ||
			fn->status & QHCA_STATUS_FATAL);
	if (im->loading && fn->late)
		hca_fn_later(fn, fn->late);
}

void hca_function_image(struct hca_image *im, struct hca_fn *fn)
{
	const uint32_t init = QHCA_INIT_STRICT_LKEY | QHCA_INIT_NO_UNSOL_ACK;

	hca_image_bool(im, "enabled", &fn->enabled);
	hca_image_check(im, "enabled", fn->enabled || fn->cfg.gvmi);
	hca_image_u32(im, "generation", &fn->generation);
	hca_image_u64(im, "reset_time", &fn->reset_time);
	hca_image_check(im, "reset_time", fn->reset_time <= fn->hca->now);
	hca_image_u32(im, "clock_hi", &fn->regs.clock_hi);
	status(im, fn);
	hca_image_bool(im, "initialised", &fn->initialised);
	hca_image_check(im, "initialised", !fn->initialised || fn->enabled);
	hca_image_u32(im, "init_flags", &fn->init_flags);
	hca_image_check(im, "init_flags", !(fn->init_flags & ~init));
	/* One that dies or is reset before it goes on has nothing to write. */
	if (hca_is_dead(fn))
		fn->withheld.on = false;
	if (im->version < 2)
		return;
	hca_image_bool(im, "withheld", &fn->withheld.on);
	hca_image_check(im, "withheld", !fn->withheld.on ||
			(fn->initialised && !hca_is_dead(fn)));
}

void hca_vf_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_vf vf = fn->vf;

	hca_image_bytes(im, "mac", vf.mac, sizeof(vf.mac));
	hca_image_u16(im, "vlan", &vf.vlan);
	hca_image_u8(im, "qos", &vf.qos);
	hca_image_u8(im, "link", &vf.link);
	hca_image_u16(im, "flags", &vf.flags);
	hca_image_u32(im, "max_rate", &vf.max_rate);
	hca_image_u32(im, "min_rate", &vf.min_rate);
	for (unsigned int i = 0; i < QHCA_NUM_CACHE_IDS; i++)
		hca_image_u16(im, "blocks", &vf.blocks[i]);
	hca_image_check(im, "settings", hca_vf_valid(&vf));
	if (!im->loading || hca_image_failed(im))
		return;
	hca_image_check(im, "settings", fn->cfg.gvmi ||
			!memcmp(&vf, &fn->vf, sizeof(vf)));
	hca_vf_load(fn, &vf);
}

/* ---- caches */

static bool join(struct hca_fn *fn, const struct qhca_geometry *g, bool s2)
{
	return hca_mem_init(fn, g[QHCA_CACHE_PT], g[QHCA_CACHE_AT]) &&
	       hca_cqs_init(fn, g[QHCA_CACHE_CQ]) &&
	       hca_qps_init(fn, g[QHCA_CACHE_QD]) &&
	       hca_srqs_init(fn, g[QHCA_CACHE_SRQ]) &&
	       (!s2 || hca_s2_init(fn->hca, g[QHCA_CACHE_S2]));
}

/* All functions share the caches, so they agree about their geometry. */
void hca_caches_image(struct hca_image *im, struct hca_fn *fn)
{
	const struct qhca_config *cfg = &hca_pf(fn->hca)->cfg;
	bool s2 = fn == hca_pf(fn->hca) && fn->features & QHCA_FEAT_STAGE2;
	bool shared = im->loading && hca_caches_in_use(fn->hca);
	struct qhca_geometry g[QHCA_NUM_CACHE_IDS];

	for (unsigned int i = 0; i < QHCA_NUM_CACHE_IDS; i++) {
		struct qhca_geometry is =
			hca_caches_geometry(fn->hca, (enum qhca_cache_id)i);

		g[i] = is;
		if (i == QHCA_CACHE_S2 && !s2)
			continue;
		hca_geometry_image(im, &g[i], i == QHCA_CACHE_S2 ?
				   &cfg->s2_max : &cfg->cache_max[i]);
		hca_image_check(im, "geometry", !shared || i == QHCA_CACHE_S2 ||
				(g[i].sets == is.sets &&
				 g[i].blocks == is.blocks));
	}
	if (im->loading && !hca_image_failed(im) && !join(fn, g, s2))
		hca_image_refuse(im, "out of memory");
}

/* ---- counters */

static void sets(struct hca_image *im, struct hca_counter_sets *s)
{
	uint32_t num = HCA_SET_COUNTERS, used = 0, set = 0;

	for (uint32_t i = 0; i < HCA_NUM_COUNTER_SETS; i++)
		used += !hca_counter_set_empty(s, i);
	hca_image_count(im, "number of counters in a set", &num,
			HCA_SET_COUNTERS);
	hca_image_count(im, "number of sets", &used, HCA_NUM_COUNTER_SETS);
	for (; used && !hca_image_failed(im); used--, set++) {
		while (!im->loading && hca_counter_set_empty(s, set))
			set++;
		hca_image_u32(im, "set", &set);
		hca_image_check(im, "set", set < HCA_NUM_COUNTER_SETS);
		for (uint32_t i = 0; i < num && !hca_image_failed(im); i++)
			hca_image_u64(im, "counter of a set", &s->count[set][i]);
	}
}

/* Counters are only ever added at the end, so an older image has the first ones. */
void hca_counters_image(struct hca_image *im, struct hca_fn *fn)
{
	uint32_t n = QHCA_NUM_COUNTERS;

	hca_image_count(im, "number of counters", &n, QHCA_NUM_COUNTERS);
	for (uint32_t i = 0; i < n; i++)
		hca_image_u64(im, "counter", &fn->counter[i]);
	for (uint32_t i = 0; i < n; i++)
		hca_image_u64(im, "past counter", &fn->past[i]);
	sets(im, &fn->sets);
}
