// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The port: GIDs, multicast groups, MAC addresses and MTU.
 *
 * The tables are small.  The GIDs and MAC addresses of a frame are looked up by hashes,
 * which are made anew when the GID table changes; the GID found last is tried first,
 * because most frames have the same.  The other lookups scan the tables.
 */
#include <stdlib.h>

#include "hca.h"

#define DEFAULT_ETH_MTU	1500

static const uint8_t mapped_prefix[12] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff,
};

bool hca_mac_usable(const uint8_t mac[6])
{
	static const uint8_t zero[6];

	return !(mac[0] & 1) && memcmp(mac, zero, sizeof(zero));
}

bool hca_ports_create(struct hca_fn *fn)
{
	struct hca_ports *port = &fn->port;

	port->gid = calloc(fn->cfg.num_gids, sizeof(*port->gid));
	port->member = calloc(fn->cfg.max_mcast_members + 1u,
			      sizeof(*port->member));
	return port->gid && port->member;
}

void hca_ports_destroy(struct hca_fn *fn)
{
	free(fn->port.gid);
	free(fn->port.member);
	fn->port.gid = NULL;
	fn->port.member = NULL;
}

void hca_ports_teardown(struct hca_fn *fn)
{
	struct hca_ports *port = &fn->port;

	memset(port->gid, 0, fn->cfg.num_gids * sizeof(*port->gid));
	memset(port->member, 0,
	       fn->cfg.max_mcast_members * sizeof(*port->member));
	port->num_members = 0;
	hca_gids_changed(fn);
}

void hca_ports_reset(struct hca_fn *fn)
{
	struct hca_ports *port = &fn->port;

	memcpy(port->permanent, hca_mac_usable(fn->vf.mac) ? fn->vf.mac :
							 fn->cfg.mac, 6);
	memcpy(port->mac, port->permanent, sizeof(port->mac));
	port->mac_set = false;
	port->eth_mtu = DEFAULT_ETH_MTU;
	port->rx_flags = 0;
	port->qkey_violations = 0;
	port->pkey_violations = 0;
	hca_ports_teardown(fn);
}

uint32_t hca_link_word(const struct hca_fn *fn)
{
	const struct hca *hca = fn->hca;
	bool up = hca_fn_linked(fn) &&
		  (fn->vf.link == QHCA_VF_LINK_UP || hca->link_up);

	return (up ? QHCA_LINK_UP : 0) |
	       QHCA_PUT(QHCA_LINK_SPEED, hca_pf(hca)->cfg.link_speed);
}

uint32_t hca_rx_flags(const struct hca_fn *fn)
{
	return fn->vf.flags & QHCA_VF_TRUST ? fn->port.rx_flags :
	       fn->port.rx_flags & QHCA_RX_ENABLE;
}

/* Flow rules can take any frame, so they make a trusted function promiscuous. */
static bool is_promiscuous(const struct hca_fn *fn)
{
	const uint32_t all = QHCA_RX_ENABLE | QHCA_RX_PROMISC;

	return (hca_rx_flags(fn) & all) == all ||
	       (fn->vf.flags & QHCA_VF_TRUST && fn->flows.num);
}

static void set_bit(uint64_t *set, uint16_t gvmi, bool on)
{
	*set &= ~(1ull << gvmi);
	*set |= (uint64_t)on << gvmi;
}

static uint8_t claim_of(const struct hca_fn *fn)
{
	const struct hca_ports *port = &fn->port;

	if (!fn->cfg.gvmi || (hca_mac_usable(fn->vf.mac) &&
			      !memcmp(port->mac, fn->vf.mac, sizeof(port->mac))))
		return HCA_MAC_ASSIGNED;
	return memcmp(port->mac, port->permanent, sizeof(port->mac)) ?
	       HCA_MAC_CHOSEN : HCA_MAC_PERMANENT;
}

void hca_ports_publish(struct hca_fn *fn)
{
	struct hca_switch *sw = &fn->hca->sw;
	uint16_t gvmi = fn->cfg.gvmi;

	set_bit(&sw->fns, gvmi, fn->enabled);
	/* What a VF may not send from is not its own. */
	set_bit(&sw->smacs, gvmi, fn->port.num_smacs &&
		!(fn->vf.flags & QHCA_VF_SPOOFCHK));
	set_bit(&sw->promisc, gvmi, fn->enabled && is_promiscuous(fn));
	sw->mac[gvmi] = hca_mac_word(fn->port.mac);
	sw->claim[gvmi] = claim_of(fn);
}

/* ---- GIDs */

static bool is_mapped(const uint8_t gid[16])
{
	return !memcmp(gid, mapped_prefix, sizeof(mapped_prefix));
}

bool hca_gid_is_multicast(const uint8_t gid[16])
{
	return gid[0] == 0xff || (is_mapped(gid) && (gid[12] & 0xf0) == 0xe0);
}

const struct hca_gid *hca_gid_get(const struct hca_fn *fn,
				  unsigned int index)
{
	const struct hca_gid *gid;

	if (index >= fn->cfg.num_gids)
		return NULL;
	gid = &fn->port.gid[index];
	return gid->flags & QHCA_GID_VALID ? gid : NULL;
}

static bool gid_is(const struct hca_gid *entry, const uint8_t gid[16],
		   uint16_t vlan)
{
	return entry->flags & QHCA_GID_VALID && entry->vlan == vlan &&
	       !memcmp(entry->gid, gid, sizeof(entry->gid));
}

/* ---- hashes (Knuth's multiplicative one) */

#define HASH_FACTOR	0x9e3779b97f4a7c15ull
_Static_assert(1 << HCA_LOG_PORT_HASH > HCA_MAX_GIDS, "a search finds a free place");

static uint32_t hash_of(uint64_t word)
{
	return (uint32_t)(word * HASH_FACTOR >> (64 - HCA_LOG_PORT_HASH));
}

static uint32_t hash_of_gid(const uint8_t gid[16], uint16_t vlan)
{
	uint64_t word[2];

	memcpy(word, gid, sizeof(word));
	word[0] = (word[0] + vlan) * HASH_FACTOR ^ word[1];
	return hash_of(word[0] ^ word[0] >> 32);
}

static uint32_t next_place(uint32_t place)
{
	return (place + 1) % (1u << HCA_LOG_PORT_HASH);
}

/* The place of the lowest of equal entries, or the free one where it would be. */
static uint32_t place_of_gid(const struct hca_ports *port,
			     const uint8_t gid[16], uint16_t vlan)
{
	const uint16_t *hash = port->by_gid.place;
	uint32_t place = hash_of_gid(gid, vlan);

	while (hash[place] && !gid_is(&port->gid[hash[place] - 1], gid, vlan))
		place = next_place(place);
	return place;
}

static uint32_t place_of_smac(const struct hca_ports *port,
			      const uint8_t mac[6])
{
	const uint16_t *hash = port->by_smac.place;
	uint32_t place = hash_of(hca_mac_word(mac));

	while (hash[place] && memcmp(port->gid[hash[place] - 1].smac, mac, 6))
		place = next_place(place);
	return place;
}

static void enter(uint16_t *place, unsigned int index)
{
	if (!*place)
		*place = (uint16_t)(index + 1);
}

/* The lowest of equal entries is the one that is found. */
void hca_gids_changed(struct hca_fn *fn)
{
	struct hca_ports *port = &fn->port;
	unsigned int i;

	port->last_gid = 0;
	port->num_gids_valid = 0;
	port->num_smacs = 0;
	memset(&port->by_gid, 0, sizeof(port->by_gid));
	memset(&port->by_smac, 0, sizeof(port->by_smac));
	for (i = 0; i < fn->cfg.num_gids; i++) {
		const struct hca_gid *gid = &port->gid[i];

		if (!(gid->flags & QHCA_GID_VALID))
			continue;
		port->num_gids_valid++;
		enter(&port->by_gid.place[place_of_gid(port, gid->gid,
						       gid->vlan)], i);
		if (!memcmp(gid->smac, port->mac, sizeof(port->mac)))
			continue;
		port->num_smacs++;
		enter(&port->by_smac.place[place_of_smac(port, gid->smac)], i);
	}
	hca_ports_publish(fn);
}

int hca_gid_find(struct hca_fn *fn, const uint8_t gid[16], uint16_t vlan)
{
	struct hca_ports *port = &fn->port;
	unsigned int found;

	if (gid_is(&port->gid[port->last_gid], gid, vlan))
		return (int)port->last_gid;
	found = port->by_gid.place[place_of_gid(port, gid, vlan)];
	if (!found)
		return -1;
	port->last_gid = found - 1;
	return (int)port->last_gid;
}

void hca_ports_assign(struct hca_fn *fn)
{
	if (hca_mac_usable(fn->vf.mac)) {
		/* A choice of software's is for one that is trusted. */
		if (!(fn->vf.flags & QHCA_VF_TRUST))
			fn->port.mac_set = false;
		if (!fn->port.mac_set)
			memcpy(fn->port.mac, fn->vf.mac, sizeof(fn->port.mac));
	}
	if (fn->port.gid)
		hca_gids_changed(fn);
}

bool hca_mac_is_ours(const struct hca_fn *fn, const uint8_t mac[6])
{
	const struct hca_ports *port = &fn->port;

	if (!memcmp(mac, port->mac, sizeof(port->mac)))
		return true;
	return port->num_smacs &&
	       port->by_smac.place[place_of_smac(port, mac)];
}

enum hca_gid_wrong hca_gid_valid(const struct hca_gid *entry)
{
	static const uint8_t zero[16];

	if (!memcmp(entry->gid, zero, sizeof(zero)) ||
	    hca_gid_is_multicast(entry->gid))
		return HCA_GID_BAD_GID;
	if (!(entry->flags & QHCA_GID_VALID) ||
	    entry->flags & ~(QHCA_GID_VALID | QHCA_GID_IPV4) ||
	    is_mapped(entry->gid) != !!(entry->flags & QHCA_GID_IPV4))
		return HCA_GID_BAD_FLAGS;
	if (!hca_mac_usable(entry->smac))
		return HCA_GID_BAD_SMAC;
	return entry->vlan > 4094 && entry->vlan != QHCA_GID_NO_VLAN ?
	       HCA_GID_BAD_VLAN : HCA_GID_OK;
}

enum qhca_cmd_status hca_cmd_set_gid(struct hca_fn *fn,
				     struct hca_cmd_ctx *ctx)
{
	static const size_t field[] = {
		[HCA_GID_BAD_GID] = offsetof(struct qhca_gid_entry, gid),
		[HCA_GID_BAD_FLAGS] = offsetof(struct qhca_gid_entry, flags),
		[HCA_GID_BAD_SMAC] = offsetof(struct qhca_gid_entry, smac),
		[HCA_GID_BAD_VLAN] = offsetof(struct qhca_gid_entry, vlan),
	};
	const struct qhca_gid_entry *in = (const void *)ctx->in;
	struct hca_gid entry = {
		.vlan = get_le16(&in->vlan), .flags = get_le32(&in->flags),
	};
	enum hca_gid_wrong wrong;

	if (!(entry.flags & QHCA_GID_VALID)) {
		memset(&fn->port.gid[ctx->index], 0, sizeof(entry));
		hca_gids_changed(fn);
		return QHCA_CMD_OK;
	}
	memcpy(entry.gid, in->gid, sizeof(entry.gid));
	memcpy(entry.smac, in->smac, sizeof(entry.smac));
	wrong = hca_gid_valid(&entry);
	if (wrong)
		return hca_cmd_bad(ctx, field[wrong]);
	fn->port.gid[ctx->index] = entry;
	hca_gids_changed(fn);
	return QHCA_CMD_OK;
}

/* ---- multicast members */

bool hca_mcast_for_each(struct hca_fn *fn, const uint8_t mgid[16],
			bool (*each)(struct hca_fn *fn, uint32_t qpn,
				     void *arg),
			void *arg)
{
	const struct hca_mcast_member *m = fn->port.member;
	bool any = false;
	unsigned int i;

	for (i = 0; fn->port.num_members && i < fn->cfg.max_mcast_members;
	     i++) {
		if (!m[i].used || memcmp(m[i].mgid, mgid, sizeof(m[i].mgid)))
			continue;
		any = true;
		if (!each(fn, m[i].qpn, arg))
			break;
	}
	return any;
}

bool hca_mcast_any(const struct hca_fn *fn, const uint8_t mgid[16])
{
	const struct hca_mcast_member *m = fn->port.member;
	unsigned int i;

	for (i = 0; fn->port.num_members && i < fn->cfg.max_mcast_members;
	     i++)
		if (m[i].used && !memcmp(m[i].mgid, mgid, sizeof(m[i].mgid)))
			return true;
	return false;
}

static struct hca_mcast_member *member_find(const struct hca_fn *fn,
					    const uint8_t mgid[16],
					    uint32_t qpn)
{
	struct hca_mcast_member *m = fn->port.member;
	unsigned int i;

	for (i = 0; i < fn->cfg.max_mcast_members; i++)
		if (m[i].used && m[i].qpn == qpn &&
		    !memcmp(m[i].mgid, mgid, sizeof(m[i].mgid)))
			return &m[i];
	return NULL;
}

static void member_drop(struct hca_fn *fn, struct hca_mcast_member *m)
{
	memset(m, 0, sizeof(*m));
	fn->port.num_members--;
}

bool hca_mcast_is_member(const struct hca_fn *fn, const uint8_t mgid[16],
			 uint32_t qpn)
{
	return member_find(fn, mgid, qpn);
}

bool hca_mcast_join(struct hca_fn *fn, const uint8_t mgid[16], uint32_t qpn)
{
	struct hca_mcast_member *m = fn->port.member;
	unsigned int i;

	for (i = 0; i < fn->cfg.max_mcast_members; i++)
		if (!m[i].used)
			break;
	if (i == fn->cfg.max_mcast_members)
		return false;
	memcpy(m[i].mgid, mgid, sizeof(m[i].mgid));
	m[i].qpn = qpn;
	m[i].used = true;
	fn->port.num_members++;
	return true;
}

void hca_mcast_leave(struct hca_fn *fn, const uint8_t mgid[16], uint32_t qpn)
{
	member_drop(fn, member_find(fn, mgid, qpn));
}

void hca_mcast_drop_qp(struct hca_fn *fn, uint32_t qpn)
{
	struct hca_mcast_member *m = fn->port.member;
	unsigned int i;

	for (i = 0; fn->port.num_members && i < fn->cfg.max_mcast_members;
	     i++)
		if (m[i].used && m[i].qpn == qpn)
			member_drop(fn, &m[i]);
}

/* ---- settings */

enum qhca_cmd_status hca_cmd_query_port(struct hca_fn *fn,
					struct hca_cmd_ctx *ctx)
{
	struct qhca_port *out = (void *)ctx->out;

	put_le32(&out->link, hca_link_word(fn));
	put_le32(&out->eth_mtu, fn->port.eth_mtu);
	memcpy(out->mac, fn->port.mac, sizeof(out->mac));
	put_le32(&out->qkey_violations, fn->port.qkey_violations);
	put_le32(&out->pkey_violations, fn->port.pkey_violations);
	return QHCA_CMD_OK;
}

/* The host domain may have given an untrusted VF its address. */
static bool may_have_mac(const struct hca_fn *fn, const uint8_t mac[6])
{
	return fn->vf.flags & QHCA_VF_TRUST || !hca_mac_usable(fn->vf.mac) ||
	       !memcmp(mac, fn->vf.mac, 6);
}

enum qhca_cmd_status hca_cmd_set_port(struct hca_fn *fn,
				      struct hca_cmd_ctx *ctx)
{
	const struct qhca_port_config *in = (const void *)ctx->in;
	uint32_t fields = get_le32(&in->fields);
	uint32_t mtu = get_le32(&in->eth_mtu);
	uint32_t rx_flags = get_le32(&in->rx_flags);

	if (fields & ~(QHCA_PORT_SET_MTU | QHCA_PORT_SET_MAC | QHCA_PORT_SET_RX))
		return hca_cmd_bad(ctx,
				   offsetof(struct qhca_port_config, fields));
	if (fields & QHCA_PORT_SET_MTU &&
	    (mtu < HCA_MIN_ETH_MTU || mtu > HCA_LIMIT_ETH_MTU))
		return hca_cmd_bad(ctx,
				   offsetof(struct qhca_port_config, eth_mtu));
	if (fields & QHCA_PORT_SET_MAC && !hca_mac_usable(in->mac))
		return hca_cmd_bad(ctx, offsetof(struct qhca_port_config, mac));
	if (fields & QHCA_PORT_SET_RX &&
	    rx_flags & ~HCA_RX_FLAGS)
		return hca_cmd_bad(ctx,
				   offsetof(struct qhca_port_config, rx_flags));
	if (fields & QHCA_PORT_SET_MAC && !may_have_mac(fn, in->mac))
		return QHCA_CMD_NOT_PERMITTED;
	if (fields & QHCA_PORT_SET_MTU)
		fn->port.eth_mtu = mtu;
	if (fields & QHCA_PORT_SET_MAC) {
		memcpy(fn->port.mac, in->mac, sizeof(fn->port.mac));
		fn->port.mac_set = true;
	}
	if (fields & QHCA_PORT_SET_RX)
		fn->port.rx_flags = rx_flags;
	hca_gids_changed(fn);
	return QHCA_CMD_OK;
}
