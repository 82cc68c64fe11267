// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The whole of one HCA: creation, reset, who works when, observation.
 */
#include <stdio.h>
#include <stdlib.h>

#include "hca.h"
#include "receive.h"
#include "transport/serve.h"

/* ------------------------------------------------------------------------
 * Configuration
 */
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
		{ "log-max-eq", cfg->log_max_eq, 1, QHCA_MAX_LOG_EQ },
		{ "log-max-wq-depth", cfg->log_max_wq_depth, 1, 16 },
		{ "log-max-cq-depth", cfg->log_max_cq_depth, 1, 24 },
		{ "log-max-eq-depth", cfg->log_max_eq_depth, 1, 20 },
		{ "vectors", cfg->num_vectors, 1, QHCA_MAX_VECTORS },
		{ "gids", cfg->num_gids, 1, QHCA_MAX_GIDS },
		{ "doorbell-pages", cfg->num_db_pages, 1, 1u << 20 },
		{ "flows", cfg->max_flows, 0, QHCA_MAX_FLOWS },
		{ "link-speed", cfg->link_speed, 1,
		  QHCA_GET(QHCA_LINK_SPEED, QHCA_LINK_SPEED) },
	};

	return limits_ok(limits, sizeof(limits) / sizeof(limits[0]), err,
			 err_len);
}

static bool caches_ok(const struct qhca_config *cfg, char *err, size_t err_len)
{
	static const char * const name[QHCA_NUM_CACHES] = {
		[QHCA_CACHE_PT] = "pt", [QHCA_CACHE_AT] = "at",
		[QHCA_CACHE_QD] = "qp", [QHCA_CACHE_CQ] = "cq",
		[QHCA_CACHE_SRQ] = "srq",
	};
	unsigned int i;

	for (i = 0; i < QHCA_NUM_CACHES; i++) {
		const struct qhca_geometry *max = &cfg->cache_max[i];
		const struct qhca_geometry *geometry = &cfg->cache_default[i];

		if (!qhca_geometry_valid(max, NULL)) {
			snprintf(err, err_len,
				 "%s-cache-max-sets=%u and %s-cache-max-blocks=%u are not powers of two within %u x %u and %u lines",
				 name[i], max->sets, name[i], max->blocks,
				 QHCA_CACHE_MAX_SETS, QHCA_CACHE_MAX_BLOCKS,
				 QHCA_CACHE_MAX_LINES);
			return false;
		}
		if (!qhca_geometry_valid(geometry, max)) {
			snprintf(err, err_len,
				 "%s-cache-sets=%u and %s-cache-blocks=%u are not powers of two within the maximum, %u x %u",
				 name[i], geometry->sets, name[i],
				 geometry->blocks, max->sets, max->blocks);
			return false;
		}
	}
	return true;
}

static bool config_ok(const struct qhca_config *cfg, char *err, size_t err_len)
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

static uint64_t features_of(const struct qhca_config *cfg)
{
	uint64_t features = cfg->features & QHCA_ENGINE_FEATURES;

	if (!cfg->devmem_size)
		features &= ~QHCA_FEAT_DEVMEM;
	if (!cfg->max_pool_blocks)
		features &= ~QHCA_FEAT_POOL;
	if (!cfg->max_mcast_members)
		features &= ~QHCA_FEAT_MCAST;
	if (!cfg->max_flows)
		features &= ~QHCA_FEAT_RAW_PACKET;
	if (!(features & QHCA_FEAT_SRQ))
		features &= ~QHCA_FEAT_SRQ_RESIZE;
	if (!(features & QHCA_FEAT_ODP))
		features &= ~(QHCA_FEAT_ODP_IMPLICIT |
			      QHCA_FEAT_UNSOLICITED_ACK);
	if (!(features & QHCA_FEAT_RESERVED_LKEY))
		features &= ~QHCA_FEAT_STRICT_LKEY;
	return features;
}

/* ------------------------------------------------------------------------
 * Life
 */
struct qhca_hca *qhca_create(const struct qhca_config *cfg,
			     const struct qhca_host_ops *ops, void *host,
			     char *err, size_t err_len)
{
	struct qhca_hca *hca;

	if (!config_ok(cfg, err, err_len))
		return NULL;
	hca = calloc(1, sizeof(*hca));
	if (!hca) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	hca->cfg = *cfg;
	hca->ops = *ops;
	hca->host = host;
	hca->features = features_of(cfg);
	if (!qhca_pool_create(hca) || !qhca_eqs_create(hca) ||
	    !qhca_cqs_create(hca) || !qhca_ports_create(hca) ||
	    !qhca_flows_create(hca) || !qhca_wire_create(hca) ||
	    !qhca_inject_create(hca)) {
		qhca_destroy(hca);
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	qhca_reset(hca, 0);
	return hca;
}

void qhca_destroy(struct qhca_hca *hca)
{
	if (!hca)
		return;
	qhca_qps_fini(hca);
	qhca_srqs_fini(hca);
	qhca_cqs_destroy(hca);
	qhca_eqs_destroy(hca);
	qhca_mem_fini(hca);
	qhca_pool_destroy(hca);
	qhca_ports_destroy(hca);
	qhca_flows_destroy(hca);
	qhca_wire_destroy(hca);
	qhca_inject_destroy(hca);
	free(hca);
}

void qhca_teardown(struct qhca_hca *hca)
{
	qhca_qps_fini(hca);
	qhca_srqs_fini(hca);
	qhca_cqs_fini(hca);
	qhca_eqs_reset(hca);
	qhca_mem_fini(hca);
	qhca_pool_reset(hca);
	qhca_tables_reset(hca);
	qhca_eth_reset(hca);
	qhca_ports_teardown(hca);
	qhca_flows_reset(hca);
	qhca_wire_reset(hca);
	qhca_inject_reset(hca);
	qhca_cost_forget(hca);
	hca->initialised = false;
	hca->init_flags = 0;
}

void qhca_reset_now(struct qhca_hca *hca)
{
	hca->late = 0;
	hca->reset_time = hca->now;
	hca->turn = 0;
	qhca_teardown(hca);
	qhca_ports_reset(hca);
	qhca_cmdq_reset(hca);
	qhca_regs_reset(hca);
	memset(hca->counter, 0, sizeof(hca->counter));
	qhca_trace(hca, QHCA_TRACE_RESET, 0, 0, 0, 0);
}

void qhca_reset(struct qhca_hca *hca, uint64_t now)
{
	if (!hca_enter(hca, now)) {
		hca->late |= QHCA_LATE_RESET;
		return;
	}
	qhca_reset_now(hca);
	hca_leave(hca);
}

static void change_link(struct qhca_hca *hca, bool up)
{
	if (hca->link_up == up)
		return;
	hca->link_up = up;
	if (!up)
		hca->wire.tx_blocked = false;	/* frames are dropped now */
	qhca_event(hca, QHCA_EVENT_PORT_CHANGE, 1, qhca_link_word(hca));
}

/* The effects of these may call the host, and it us, again. */
void hca_leave(struct qhca_hca *hca)
{
	uint8_t late;

	while ((late = hca->late)) {
		hca->late = 0;
		if (late & QHCA_LATE_LINK && late & QHCA_LATE_RESET)
			hca->link_up = late & QHCA_LATE_UP;
		else if (late & QHCA_LATE_LINK)
			change_link(hca, late & QHCA_LATE_UP);
		if (late & QHCA_LATE_RESET)
			qhca_reset_now(hca);
		else if (late & QHCA_LATE_FATAL)
			qhca_fatal(hca, QHCA_FATAL_INJECTED, 0);
	}
	hca->entered = false;
}

bool qhca_is_entered(const struct qhca_hca *hca)
{
	return hca->entered;
}

void qhca_fatal(struct qhca_hca *hca, enum qhca_fatal cause, uint32_t info)
{
	if (qhca_is_dead(hca))
		return;
	hca->status |= QHCA_STATUS_FATAL |
		       QHCA_PUT(QHCA_STATUS_FATAL_CAUSE, (uint32_t)cause);
	hca->fatal_info = info;
	qhca_cmdq_stop(hca);
	qhca_trace(hca, QHCA_TRACE_FATAL, cause, info, 0, 0);
	qhca_event_fatal(hca, cause, info);
}

void qhca_inject_fatal(struct qhca_hca *hca)
{
	if (!hca_enter(hca, hca->now)) {
		hca->late |= QHCA_LATE_FATAL;
		return;
	}
	qhca_fatal(hca, QHCA_FATAL_INJECTED, 0);
	hca_leave(hca);
}

void qhca_set_link(struct qhca_hca *hca, bool up, uint64_t now)
{
	if (!hca_enter(hca, now)) {
		hca->late &= (uint8_t)~QHCA_LATE_UP;
		hca->late |= QHCA_LATE_LINK | (up ? QHCA_LATE_UP : 0);
		return;
	}
	change_link(hca, up);
	hca_leave(hca);
}

/* ------------------------------------------------------------------------
 * Who works when
 *
 * Each kind of work gets a share of a round, and rounds follow each other
 * until the budget is spent or nobody has work.  Who is first changes with
 * every round, so that a budget of one does not starve anyone.
 */
static const struct {
	unsigned int (*run)(struct qhca_hca *hca, unsigned int budget);
	unsigned int share;		/* packets a round */
} workers[] = {
	{ qhca_cmdq_run, 2 },
	{ qhca_wire_run, 32 },
	{ qhca_sched_run, 64 },
	{ qhca_eth_run, 16 },
};
#define NUM_WORKERS	(sizeof(workers) / sizeof(workers[0]))

static unsigned int run_round(struct qhca_hca *hca, unsigned int budget)
{
	unsigned int spent = 0, share, did, i;

	for (i = 0; i < NUM_WORKERS && spent < budget; i++) {
		unsigned int w = (hca->turn + i) % NUM_WORKERS;

		share = workers[w].share;
		if (share > budget - spent)
			share = budget - spent;
		did = workers[w].run(hca, share);
		spent += did < share ? did : share;
		if (qhca_is_dead(hca))
			break;
	}
	hca->turn = (hca->turn + 1) % NUM_WORKERS;
	return spent;
}

static bool work_left(const struct qhca_hca *hca)
{
	if (qhca_is_dead(hca))
		return false;
	if (qhca_cmdq_pending(hca) || qhca_wire_pending(hca) ||
	    qhca_eqs_pending(hca))
		return true;
	return !hca->wire.tx_blocked &&
	       (qhca_eth_pending(hca) || qhca_sched_pending(hca));
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_deadline(const struct qhca_hca *hca)
{
	uint64_t due = QHCA_NEVER, held;

	if (qhca_is_dead(hca))
		return QHCA_NEVER;
	due = earliest(due, qhca_sched_deadline(hca));
	if (qhca_stalled(hca) && (hca->sched.first || qhca_wire_looped(hca)))
		due = earliest(due, hca->cost.until);
	due = earliest(due, qhca_cqs_deadline(hca));
	due = earliest(due, qhca_eqs_deadline(hca));
	held = qhca_inject_deadline(&hca->inject);
	/* a frame that is due and waits for the link needs no timer */
	if (!(hca->wire.tx_blocked && held <= hca->now))
		due = earliest(due, held);
	return due;
}

struct qhca_run_result qhca_run(struct qhca_hca *hca, uint64_t now,
				unsigned int budget)
{
	struct qhca_run_result result = { .more = true, .deadline = now };
	unsigned int spent = 0, did;

	if (!hca_enter(hca, now))
		return result;
	while (!qhca_is_dead(hca)) {
		qhca_cqs_run(hca);
		qhca_eqs_run(hca);
		if (spent >= budget)
			break;
		did = run_round(hca, budget - spent);
		if (!did)
			break;
		spent += did;
	}
	hca_leave(hca);
	result.more = work_left(hca);
	result.deadline = next_deadline(hca);
	return result;
}

/* ------------------------------------------------------------------------
 * Observation
 */
uint64_t qhca_counter(const struct qhca_hca *hca, enum qhca_counter id)
{
	return (unsigned int)id < QHCA_NUM_COUNTERS ? hca->counter[id] : 0;
}

const char *qhca_counter_name(enum qhca_counter id)
{
#define COUNTER_NAME(name) #name,
	static const char * const names[] = { QHCA_COUNTERS(COUNTER_NAME) };
#undef COUNTER_NAME

	return (unsigned int)id < QHCA_NUM_COUNTERS ? names[id] : NULL;
}

void qhca_trace_mask(struct qhca_hca *hca, uint64_t enabled_ids)
{
	hca->trace_mask = hca->ops.trace ? enabled_ids : 0;
}

void qhca_query_port(const struct qhca_hca *hca, struct qhca_port_info *info)
{
	memset(info, 0, sizeof(*info));
	info->enabled = hca->status & QHCA_STATUS_ENABLED;
	info->fatal = qhca_is_dead(hca);
	info->link_up = hca->link_up;
	info->fatal_cause = QHCA_GET(QHCA_STATUS_FATAL_CAUSE, hca->status);
	memcpy(info->mac, hca->port.mac, sizeof(info->mac));
	info->eth_mtu = hca->port.eth_mtu;
	info->num_gids_valid = hca->port.num_gids_valid;
}

void qhca_for_each_qp(struct qhca_hca *hca,
		      void (*fn)(void *arg, const struct qhca_qp_info *info),
		      void *arg)
{
	struct qhca_qp_info info;
	uint32_t qpn;

	/* reading contexts is DMA, and nothing may change meanwhile */
	if (!hca_enter(hca, hca->now))
		return;
	for (qpn = 0; qpn < hca->qps.num_slots; qpn++)
		if (hca->qps.slot[qpn].live && qhca_qp_info(hca, qpn, &info))
			fn(arg, &info);
	hca_leave(hca);
}

static const struct qhca_cache *cache_of(const struct qhca_hca *hca,
					 enum qhca_cache_id id)
{
	switch (id) {
	case QHCA_CACHE_PT:
		return &hca->mem.pt;
	case QHCA_CACHE_AT:
		return &hca->mem.at;
	case QHCA_CACHE_QD:
		return &hca->qps.cache.cache;
	case QHCA_CACHE_CQ:
		return &hca->cqs.cache.cache;
	case QHCA_CACHE_SRQ:
		return &hca->srqs.cache.cache;
	default:
		return NULL;
	}
}

void qhca_query_cache(const struct qhca_hca *hca, enum qhca_cache_id id,
		      struct qhca_cache_info *info)
{
	const struct qhca_cache *c = cache_of(hca, id);

	memset(info, 0, sizeof(*info));
	if (!c)
		return;
	info->geometry = c->geometry;
	info->valid = c->valid;
}

struct line_walk {
	enum qhca_cache_id id;
	bool (*fn)(void *arg, const struct qhca_cache_line *line);
	void *arg;
};

static void show_translation(struct qhca_cache_line *line, uint64_t entry)
{
	line->addr = entry & QHCA_ATE_ADDR;
	line->writable = entry & QHCA_ATE_WRITE;
}

static void show_protection(struct qhca_cache_line *line,
			    const struct qhca_pte_host *pte)
{
	line->key = line->index << 8 | pte->octet;
	line->pd = pte->pd;
	line->access = pte->access;
	line->start = pte->start;
	line->length = pte->length;
	line->type = pte->type;
}

static bool show_line(void *arg, uint32_t set, uint32_t block,
		      const struct qhca_cache_tagline *tagline,
		      const void *payload)
{
	const struct line_walk *walk = arg;
	struct qhca_cache_line line = {
		.set = set, .block = block, .gvmi = tagline->tag.gvmi,
		.index = tagline->tag.index, .page = tagline->tag.page,
		.dirty = tagline->dirty, .sticky = tagline->sticky,
	};

	if (walk->id == QHCA_CACHE_AT)
		show_translation(&line, *(const uint64_t *)payload);
	else if (walk->id == QHCA_CACHE_PT)
		show_protection(&line, payload);
	return walk->fn(walk->arg, &line);
}

void qhca_for_each_cache_line(const struct qhca_hca *hca, enum qhca_cache_id id,
			      uint32_t first_set,
			      bool (*fn)(void *arg,
					 const struct qhca_cache_line *line),
			      void *arg)
{
	struct line_walk walk = { .id = id, .fn = fn, .arg = arg };
	const struct qhca_cache *c = cache_of(hca, id);

	if (c)
		qhca_cache_for_each(c, first_set, show_line, &walk);
}
