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

	for (uint64_t fns = sw->fns; fns; fns &= fns - 1) {
		unsigned int gvmi = hca_lowest_bit(fns);
		int claim = HCA_MAC_CHOSEN;

		if (word == sw->mac[gvmi])
			claim = sw->claim[gvmi];
		else if (!(sw->smacs >> gvmi & 1 &&
			   hca_mac_is_ours(hca->fn[gvmi], mac)))
			continue;
		else if (!gvmi)
			claim = HCA_MAC_ASSIGNED;
		if (claim > best && on_vlan(hca->fn[gvmi], vlan)) {
			owner = hca->fn[gvmi];
			best = claim;
		}
	}
	return owner;
}

/* Those among @fns that are on the VLAN. */
static uint64_t members(const struct hca *hca, uint64_t fns, uint32_t vlan)
{
	uint64_t on = 0;

	for (; fns; fns &= fns - 1)
		if (on_vlan(hca->fn[hca_lowest_bit(fns)], vlan))
			on |= fns & -fns;
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

bool hca_switch_is_local(const struct hca_fn *from, const uint8_t mac[6],
			 uint16_t vlan)
{
	const struct hca *hca = from->hca;

	if (hca_switch_idle(&hca->sw))
		return hca_mac_is_ours(from, mac);
	if (from->vf.vlan)
		vlan = from->vf.vlan;
	return owner_of(hca, mac, vlan == HCA_VLAN_NONE ? NO_TAG : vlan);
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

/*
 * A frame that a peer would take for a packet of one of our QPs must come from us.
 *
 * The peer may see more in a frame than this device does when it receives: it may remove
 * several tags, skip options and extension headers, and put fragments together.  So the
 * check follows the headers as far as a peer might.  The port is in the first fragment,
 * and without that one a peer has nothing to put together.  Where the check cannot
 * follow, the answer is no.
 */
#define MAX_TAGS	4
#define MAX_EXTENSIONS	8
#define ETHERTYPE_8021AD	0x88a8
#define ETHERTYPE_QINQ	0x9100		/* what 802.1ad replaced */
#define ETHERTYPE_ROCE1	0x8915
#define IPV4_HLEN	20
#define IPV6_HLEN	40
#define IPV4_OFFSET	0x1fff
#define IPV6_OFFSET	0xfff8
#define PROTO_UDP	17
#define PROTO_FRAGMENT	44
#define PROTO_AH	51

static bool is_tag(uint16_t type)
{
	return type == HCA_ETHERTYPE_VLAN || type == ETHERTYPE_8021AD ||
	       type == ETHERTYPE_QINQ;
}

static bool is_extension(uint8_t proto)
{
	/* Hop-by-hop, routing, fragment, AH, destination, mobility, HIP, shim6. */
	static const uint8_t known[] = {
		0, 43, PROTO_FRAGMENT, PROTO_AH, 60, 135, 139, 140,
	};

	return memchr(known, proto, sizeof(known));
}

/*
 * Is what begins at @p with header @proto not UDP to the RoCEv2 port?  @known: whether
 * the answer is certain.
 */
static bool other_than_roce(uint8_t proto, const uint8_t *p, size_t room,
			    bool *known)
{
	*known = true;
	for (unsigned int i = 0; i <= MAX_EXTENSIONS; i++) {
		size_t len = HCA_UDP_HLEN;

		if (proto != PROTO_UDP && !is_extension(proto))
			return true;
		if (room < len)
			break;
		if (proto == PROTO_UDP)
			return get_be16(p + 2) != HCA_ROCE_UDP_PORT;
		if (proto == PROTO_FRAGMENT && get_be16(p + 2) & IPV6_OFFSET)
			return true;
		if (proto == PROTO_AH)
			len = (p[1] + 2u) * 4;
		else if (proto != PROTO_FRAGMENT)
			len = (p[1] + 1u) * 8;
		if (room < len)
			break;
		proto = p[0];
		p += len;
		room -= len;
	}
	*known = false;
	return false;
}

static bool ipv4_source_right(const struct hca_fn *fn, const uint8_t *ip,
			      size_t room)
{
	uint8_t gid[16] = { [10] = 0xff, [11] = 0xff };
	size_t ihl;
	bool known;

	if (room < IPV4_HLEN || ip[0] >> 4 != 4)
		return false;
	ihl = (size_t)(ip[0] & 15) * 4;
	if (ihl < IPV4_HLEN || ihl > room)
		return false;
	if (get_be16(ip + 6) & IPV4_OFFSET ||
	    other_than_roce(ip[9], ip + ihl, room - ihl, &known))
		return true;
	memcpy(gid + 12, ip + 12, 4);
	return known && is_our_ip(fn, gid);
}

/* The GRH of RoCEv1 is an IPv6 header. */
static bool ipv6_source_right(const struct hca_fn *fn, const uint8_t *ip,
			      size_t room, bool roce)
{
	bool known = true;

	if (room < IPV6_HLEN || ip[0] >> 4 != 6)
		return false;
	if (!roce && other_than_roce(ip[6], ip + IPV6_HLEN, room - IPV6_HLEN,
				     &known))
		return true;
	return known && is_our_ip(fn, ip + 8);
}

static bool roce_source_right(const struct hca_fn *fn, const uint8_t *frame,
			      size_t len)
{
	size_t off = 12;
	uint16_t type = get_be16(frame + off);

	for (unsigned int tags = 0; is_tag(type); tags++) {
		off += HCA_VLAN_HLEN;
		if (tags == MAX_TAGS || len < off + 2)
			return false;
		type = get_be16(frame + off);
	}
	off += 2;
	if (type == HCA_ETHERTYPE_IPV4)
		return ipv4_source_right(fn, frame + off, len - off);
	if (type == HCA_ETHERTYPE_IPV6 || type == ETHERTYPE_ROCE1)
		return ipv6_source_right(fn, frame + off, len - off,
					 type == ETHERTYPE_ROCE1);
	return true;
}

bool hca_switch_admit(struct hca_fn *fn, const uint8_t *frame, size_t len,
		      bool free)
{
	if (!hca_fn_linked(fn) ||
	    (fn->vf.vlan && is_tag(get_be16(frame + 12)))) {
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
