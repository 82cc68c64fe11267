// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the host's monitor, tests and tools see.
 */
#include "hca.h"
#include "life.h"

uint64_t qhca_counter(const struct qhca_hca *dev, uint16_t gvmi,
		      enum qhca_counter id)
{
	const struct hca_fn *fn = hca_fn_find(&dev->hca, gvmi);

	return fn && (unsigned int)id < QHCA_NUM_COUNTERS ? fn->counter[id] : 0;
}

uint64_t qhca_answered(const struct qhca_hca *dev, uint16_t gvmi)
{
	const struct hca_fn *fn = hca_fn_find(&dev->hca, gvmi);

	return fn ? fn->answered : 0;
}

const char *qhca_counter_name(enum qhca_counter id)
{
#define COUNTER_NAME(name) #name,
	static const char * const names[] = { QHCA_COUNTERS(COUNTER_NAME) };
#undef COUNTER_NAME

	return (unsigned int)id < QHCA_NUM_COUNTERS ? names[id] : NULL;
}

void qhca_trace_mask(struct qhca_hca *dev, uint64_t enabled_ids)
{
	struct hca *hca = &dev->hca;

	hca->trace_mask = hca->ops.trace ? enabled_ids : 0;
}

void qhca_query_port(const struct qhca_hca *dev, uint16_t gvmi,
		     struct qhca_port_info *info)
{
	const struct hca *hca = &dev->hca;
	const struct hca_fn *fn = hca_fn_find(hca, gvmi);

	memset(info, 0, sizeof(*info));
	if (!fn)
		return;
	info->enabled = fn->status & QHCA_STATUS_ENABLED;
	info->fatal = fn->status & QHCA_STATUS_FATAL;
	info->link_up = hca_link_word(fn) & QHCA_LINK_UP;
	info->fatal_cause = QHCA_GET(QHCA_STATUS_FATAL_CAUSE, fn->status);
	memcpy(info->mac, fn->port.mac, sizeof(info->mac));
	info->eth_mtu = fn->port.eth_mtu;
	info->num_gids_valid = fn->port.num_gids_valid;
}

/* Would the switch let frames of this GID out?  See hca_switch_admit(). */
static bool may_send_from(const struct hca_fn *fn, const struct hca_gid *g)
{
	if (fn->vf.vlan && g->vlan != QHCA_GID_NO_VLAN)
		return false;
	return !(fn->vf.flags & QHCA_VF_SPOOFCHK) ||
	       !memcmp(g->smac, fn->port.mac, sizeof(g->smac));
}

/* GIDs of one address are few and near each other, so each compares with the last. */
void qhca_for_each_source(const struct qhca_hca *dev, uint16_t gvmi,
			  void (*each)(void *arg, const uint8_t *mac,
				       uint16_t vlan), void *arg)
{
	const struct hca_fn *fn = hca_fn_find(&dev->hca, gvmi);
	uint16_t tag = QHCA_GID_NO_VLAN, last_vlan = QHCA_GID_NO_VLAN;
	const uint8_t *last_mac;

	if (!fn)
		return;
	if (fn->vf.vlan)
		tag = (uint16_t)(fn->vf.qos << 13 | fn->vf.vlan);
	last_mac = fn->port.mac;
	each(arg, last_mac, tag);
	for (uint32_t i = 0; i < fn->cfg.num_gids; i++) {
		const struct hca_gid *g = hca_gid_get(fn, i);

		if (!g || !may_send_from(fn, g) ||
		    (g->vlan == last_vlan &&
		     !memcmp(g->smac, last_mac, sizeof(g->smac))))
			continue;
		last_mac = g->smac;
		last_vlan = g->vlan;
		each(arg, last_mac, fn->vf.vlan ? tag : last_vlan);
	}
}

void qhca_for_each_qp(struct qhca_hca *dev, uint16_t gvmi,
		      void (*each)(void *arg, const struct qhca_qp_info *info),
		      void *arg)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = hca_fn_find(hca, gvmi);
	struct qhca_qp_info info;
	uint32_t qpn;

	/*
	 * The engine reads contexts by DMA, and no call may change them
	 * meanwhile.  While it is frozen it knows those that are cached.
	 */
	if (!fn || (!hca->frozen && !hca_enter_again(hca)))
		return;
	for (qpn = 0; qpn < fn->qps.num_slots; qpn++)
		if (fn->qps.slot[qpn].live && hca_qp_info(fn, qpn, &info))
			each(arg, &info);
	if (!hca->frozen)
		hca_leave(hca);
}

void qhca_query_cache(const struct qhca_hca *dev, enum qhca_cache_id id,
		      struct qhca_cache_info *info)
{
	const struct hca *hca = &dev->hca;
	const struct hca_cache *c = hca_cache_of(hca, id);

	memset(info, 0, sizeof(*info));
	if (!c)
		return;
	info->geometry = c->geometry;
	info->valid = c->valid;
}

struct line_walk {
	enum qhca_cache_id id;
	bool (*each)(void *arg, const struct qhca_cache_line *line);
	void *arg;
};

static void show_translation(struct qhca_cache_line *line, uint64_t entry)
{
	line->addr = entry & QHCA_ATE_ADDR;
	line->writable = entry & QHCA_ATE_WRITE;
}

static void show_protection(struct qhca_cache_line *line,
			    const struct hca_pte_host *pte)
{
	line->key = line->index << 8 | pte->octet;
	line->pd = pte->pd;
	line->access = pte->access;
	line->start = pte->start;
	line->length = pte->length;
	line->type = pte->type;
}

static bool show_line(void *arg, uint32_t set, uint32_t block,
		      const struct hca_cache_tagline *tagline,
		      const void *payload)
{
	const struct line_walk *walk = arg;
	struct qhca_cache_line line = {
		.set = set, .block = block, .gvmi = tagline->tag.gvmi,
		.index = tagline->tag.index, .page = tagline->tag.page,
		.dirty = tagline->dirty,
	};

	if (walk->id == QHCA_CACHE_AT || walk->id == QHCA_CACHE_S2)
		show_translation(&line, *(const uint64_t *)payload);
	else if (walk->id == QHCA_CACHE_PT)
		show_protection(&line, payload);
	return walk->each(walk->arg, &line);
}

void qhca_for_each_cache_line(const struct qhca_hca *dev, enum qhca_cache_id id,
			      uint32_t first_set,
			      bool (*each)(void *arg,
					   const struct qhca_cache_line *line),
			      void *arg)
{
	const struct hca *hca = &dev->hca;
	struct line_walk walk = { .id = id, .each = each, .arg = arg };
	const struct hca_cache *c = hca_cache_of(hca, id);

	if (c)
		hca_cache_for_each(c, first_set, show_line, &walk);
}

struct qhca_bundles qhca_query_bundles(const struct qhca_hca *dev)
{
	return (struct qhca_bundles){
		.sent = dev->hca.bundles.sent,
		.received = dev->hca.bundles.received,
		.messages = dev->hca.bundles.messages,
		.packets_received = dev->hca.bundles.packets_received,
		.large_sent = dev->hca.bundles.large_sent,
		.large_received = dev->hca.bundles.large_received,
	};
}
