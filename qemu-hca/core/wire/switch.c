// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The embedded switch: which functions get a frame, and which frames a function may
 * send.
 */
#include "hca.h"
#include "wire/roce.h"

#define NO_TAG		0xffffffffu
#define VLAN_ID		0x0fffu

static bool tagged(const uint8_t *frame, size_t len)
{
	return len >= HCA_ETH_HLEN + HCA_VLAN_HLEN &&
	       get_be16(frame + 12) == HCA_ETHERTYPE_VLAN;
}

/* The VLAN of a frame, or NO_TAG. */
static uint32_t vlan_of(const uint8_t *frame, size_t len)
{
	return tagged(frame, len) ? get_be16(frame + 14) & VLAN_ID : NO_TAG;
}

/* A VF that has a VLAN is on no other one. */
static bool on_vlan(const struct hca_fn *fn, uint32_t vlan)
{
	return !fn->vf.vlan || fn->vf.vlan == vlan;
}

static struct hca_fn *owner_of(const struct hca *hca, const uint8_t mac[6],
			       uint32_t vlan)
{
	const struct hca_switch *sw = &hca->sw;
	uint64_t word = hca_mac_word(mac);
	struct hca_fn *owner = NULL;
	int best = -1;

	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS && sw->fns >> gvmi; gvmi++) {
		struct hca_fn *fn = hca->fn[gvmi];
		int claim = HCA_MAC_CHOSEN;

		if (!(sw->fns >> gvmi & 1))
			continue;
		if (word == sw->mac[gvmi])
			claim = sw->claim[gvmi];
		else if (!(sw->smacs >> gvmi & 1 && hca_mac_is_ours(fn, mac)))
			continue;
		else if (!gvmi)
			claim = HCA_MAC_ASSIGNED;
		if (claim > best && on_vlan(fn, vlan)) {
			owner = fn;
			best = claim;
		}
	}
	return owner;
}

/* Those among @fns that are on the VLAN. */
static uint64_t members(const struct hca *hca, uint64_t fns, uint32_t vlan)
{
	uint64_t on = 0;

	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS && fns >> gvmi; gvmi++)
		if (fns >> gvmi & 1 && on_vlan(hca->fn[gvmi], vlan))
			on |= 1ull << gvmi;
	return on;
}

void hca_switch_route(const struct hca *hca, const struct hca_fn *from,
		      const uint8_t *frame, size_t len, struct hca_route *r)
{
	const struct hca_switch *sw = &hca->sw;
	uint64_t self = from ? 1ull << from->cfg.gvmi : 0;
	uint32_t vlan = vlan_of(frame, len);
	bool group = frame[0] & 1;
	struct hca_fn *owner = group ? NULL : owner_of(hca, frame, vlan);

	r->wire = from && !owner;
	if (owner)
		r->fns = 1ull << owner->cfg.gvmi;
	else
		r->fns = members(hca, (group ? sw->fns : sw->promisc) & ~self,
				 vlan);
	/* The physical function looks at each frame of the wire that no other one gets. */
	if (!from && !r->fns)
		r->fns = 1;
}

struct hca_fn *hca_switch_source(const struct hca *hca, const uint8_t *frame,
				 size_t len)
{
	return owner_of(hca, frame + 6, vlan_of(frame, len));
}

/* ---- what a function may send */

/* Is there a GID of @fn with this address, on whatever VLAN? */
static bool is_our_ip(const struct hca_fn *fn, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < fn->cfg.num_gids; i++)
		if (fn->port.gid[i].flags & QHCA_GID_VALID &&
		    !memcmp(fn->port.gid[i].gid, gid, 16))
			return true;
	return false;
}

/* A frame that a peer would take for a packet of one of our QPs must come from us. */
static bool roce_source_right(const struct hca_fn *fn, const uint8_t *frame,
			      size_t len)
{
	struct hca_flow_seen s;
	uint8_t gid[16] = { [10] = 0xff, [11] = 0xff };

	hca_flow_see(frame, len, &s);
	if (!(s.layers & QHCA_FLOW_UDP) ||
	    get_be16(s.key.dport) != HCA_ROCE_UDP_PORT)
		return true;
	if (s.layers & QHCA_FLOW_IPV4)
		memcpy(gid + 12, s.key.src_ip, 4);
	else
		memcpy(gid, s.key.src_ip, 16);
	return is_our_ip(fn, gid);
}

bool hca_switch_admit(struct hca_fn *fn, const uint8_t *frame, size_t len,
		      bool free)
{
	if (!hca_fn_linked(fn) || (fn->vf.vlan && tagged(frame, len))) {
		hca_count(fn, QHCA_CNT_switch_dropped);
		return false;
	}
	if (!(fn->vf.flags & QHCA_VF_SPOOFCHK))
		return true;
	if (!memcmp(frame + 6, fn->port.mac, 6) &&
	    (!free || roce_source_right(fn, frame, len)))
		return true;
	hca_count(fn, QHCA_CNT_spoofed);
	return false;
}

/* ---- the tag */

size_t hca_switch_tag_len(const struct hca_fn *fn)
{
	return fn->vf.vlan ? HCA_VLAN_HLEN : 0;
}

uint8_t *hca_switch_tag(const struct hca_fn *fn, uint8_t *frame)
{
	if (!fn->vf.vlan)
		return frame;
	memmove(frame - HCA_VLAN_HLEN, frame, 12);
	frame -= HCA_VLAN_HLEN;
	put_be16(frame + 12, HCA_ETHERTYPE_VLAN);
	put_be16(frame + 14, (uint16_t)(fn->vf.qos << 13 | fn->vf.vlan));
	return frame;
}

bool hca_switch_has_tag(const struct hca_fn *fn, const uint8_t *frame,
			size_t len)
{
	return vlan_of(frame, len) == fn->vf.vlan;
}

size_t hca_switch_untag(const uint8_t *frame, size_t len, uint8_t *to)
{
	memcpy(to, frame, 12);
	memcpy(to + 12, frame + 12 + HCA_VLAN_HLEN, len - 12 - HCA_VLAN_HLEN);
	return len - HCA_VLAN_HLEN;
}
