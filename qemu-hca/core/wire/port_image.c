// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The port, flow rules and rates of a function in its image.
 */
#include "wire/wire_image.h"

#include "hca.h"

HCA_IMAGE_COVERS(struct hca_gid, 28);
HCA_IMAGE_COVERS(struct hca_mcast_member, 24);
HCA_IMAGE_COVERS(struct hca_ports, 72 + 2 * 1024);	/* the hashes follow from the GIDs */
HCA_IMAGE_COVERS(struct hca_flow_rule, 140);
HCA_IMAGE_COVERS(struct hca_flows, 40);
HCA_IMAGE_COVERS(struct hca_bucket, 24);
HCA_IMAGE_COVERS(struct hca_rate, 56);

/* ---- the port */

static void gid(struct hca_image *im, struct hca_gid *g)
{
	hca_image_bytes(im, "gid", g->gid, sizeof(g->gid));
	hca_image_bytes(im, "smac", g->smac, sizeof(g->smac));
	hca_image_u16(im, "vlan", &g->vlan);
	hca_image_u32(im, "gid flags", &g->flags);
	hca_image_check(im, "gid", hca_gid_valid(g) == HCA_GID_OK);
}

static void gids(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_ports *port = &fn->port;
	uint32_t n = port->num_gids_valid, index = 0;

	hca_image_count(im, "number of GIDs", &n, fn->cfg.num_gids);
	for (; n; n--, index++) {
		while (!im->loading && !hca_gid_get(fn, index))
			index++;
		hca_image_u32(im, "gid index", &index);
		hca_image_check(im, "gid index", index < fn->cfg.num_gids);
		if (hca_image_failed(im))
			return;
		gid(im, &port->gid[index]);
	}
}

static void members(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_ports *port = &fn->port;
	uint32_t n = port->num_members, next = 0;

	hca_image_count(im, "number of members", &n, fn->cfg.max_mcast_members);
	for (; n && !hca_image_failed(im); n--) {
		struct hca_mcast_member m = { .used = true };

		while (!im->loading && !port->member[next].used)
			next++;
		if (!im->loading)
			m = port->member[next++];
		hca_image_bytes(im, "mgid", m.mgid, sizeof(m.mgid));
		hca_image_u32(im, "member", &m.qpn);
		hca_image_check(im, "mgid", hca_gid_is_multicast(m.mgid) &&
				!(im->loading &&
				  hca_mcast_is_member(fn, m.mgid, m.qpn)));
		if (im->loading && !hca_image_failed(im))
			hca_mcast_join(fn, m.mgid, m.qpn);
	}
}

void hca_ports_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_ports *port = &fn->port;

	hca_image_bytes(im, "mac", port->mac, sizeof(port->mac));
	hca_image_check(im, "mac", hca_mac_usable(port->mac));
	hca_image_bytes(im, "permanent mac", port->permanent,
			sizeof(port->permanent));
	hca_image_check(im, "permanent mac", hca_mac_usable(port->permanent));
	hca_image_bool(im, "mac_set", &port->mac_set);
	hca_image_u32(im, "eth_mtu", &port->eth_mtu);
	hca_image_check(im, "eth_mtu", port->eth_mtu >= HCA_MIN_ETH_MTU &&
			port->eth_mtu <= HCA_LIMIT_ETH_MTU);
	hca_image_u32(im, "rx_flags", &port->rx_flags);
	hca_image_check(im, "rx_flags", !(port->rx_flags & ~HCA_RX_FLAGS));
	hca_image_u32(im, "qkey_violations", &port->qkey_violations);
	hca_image_u32(im, "pkey_violations", &port->pkey_violations);
	gids(im, fn);
	members(im, fn);
	if (im->loading)
		hca_gids_changed(fn);
}

/* ---- flow rules */

void hca_flows_image(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_flows *f = &fn->flows;
	uint32_t n = f->num;

	hca_image_count(im, "number of rules", &n, fn->cfg.max_flows);
	for (uint32_t i = 0; i < n && !hca_image_failed(im); i++) {
		struct hca_flow_rule rule = { .used = true };
		uint16_t index = 0;

		if (!im->loading) {
			index = f->order[i];
			rule = f->rule[index];
		}
		hca_image_u16(im, "rule", &index);
		hca_image_check(im, "rule", index < fn->cfg.max_flows &&
				!(im->loading && f->rule[index].used));
		hca_image_bytes(im, "key", &rule.key, sizeof(rule.key));
		hca_image_bytes(im, "mask", &rule.mask, sizeof(rule.mask));
		hca_image_u32(im, "qpn", &rule.qpn);
		hca_image_u16(im, "priority", &rule.priority);
		hca_image_u8(im, "type", &rule.type);
		hca_image_check(im, "type", rule.type < QHCA_FLOW_NUM_TYPES);
		hca_image_u8(im, "layers", &rule.layers);
		hca_image_check(im, "layers", !(rule.layers & ~QHCA_FLOW_LAYERS));
		hca_image_u8(im, "flags", &rule.flags);
		hca_image_check(im, "flags",
				!(rule.flags & ~QHCA_FLOW_F_DONT_TRAP));
		if (im->loading && !hca_image_failed(im))
			hca_flow_add(fn, index, &rule);
	}
}

/* ---- rates */

static void bucket(struct hca_image *im, const struct hca_fn *fn,
		   struct hca_bucket *b)
{
	/*
	 * One frame, and its copies, may be taken from a bucket that owes a window.  From
	 * one without a rate nothing is taken.
	 */
	int64_t most = (int64_t)b->rate * HCA_RATE_WINDOW_NS;
	int64_t frames = b->rate ? (int64_t)HCA_MAX_FNS * QHCA_MAX_FRAME * 8000 : 0;
	int64_t least = -most - frames;

	hca_image_u64(im, "filled", &b->filled);
	hca_image_check(im, "filled", b->filled <= fn->hca->now);
	hca_image_s64(im, "level", &b->level);
	hca_image_check(im, "level", b->level >= least && b->level <= most);
}

/* The rates themselves are those of SET_VF, which has been loaded. */
void hca_rate_image(struct hca_image *im, struct hca_fn *fn)
{
	bucket(im, fn, &fn->rate.max);
	bucket(im, fn, &fn->rate.min);
}
