/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Flow rules: which frames a raw packet QP asked for.
 *
 * A frame is taken apart once, and then compared with each rule as a masked
 * key.  Rules are kept in the order of their priority.
 */
#include <stdlib.h>

#include "hca.h"

#define IPV4_HLEN	20
#define IPV6_HLEN	40
#define IPV4_OFFSET	0x1fff		/* of a fragment */
#define PROTO_TCP	6
#define PROTO_UDP	17

#define NO_RULE		QHCA_MAX_FLOWS
#define NO_QP		UINT32_MAX

bool hca_flows_create(struct hca_fn *fn)
{
	size_t n = fn->cfg.max_flows + 1u;

	fn->flows.rule = calloc(n, sizeof(*fn->flows.rule));
	fn->flows.order = calloc(n, sizeof(*fn->flows.order));
	return fn->flows.rule && fn->flows.order;
}

void hca_flows_destroy(struct hca_fn *fn)
{
	free(fn->flows.rule);
	free(fn->flows.order);
	memset(&fn->flows, 0, sizeof(fn->flows));
}

void hca_flows_reset(struct hca_fn *fn)
{
	struct hca_flows *f = &fn->flows;

	memset(f->rule, 0, fn->cfg.max_flows * sizeof(*f->rule));
	memset(f->of_type, 0, sizeof(f->of_type));
	f->num = 0;
	hca_ports_publish(fn);
}

/* ---- what a frame is */

/* @p: the transport header, if the packet has one in this frame. */
static void see_ports(struct hca_flow_seen *s, const uint8_t *p, size_t room)
{
	if (room < 4)
		return;
	if (s->key.proto == PROTO_UDP)
		s->layers |= QHCA_FLOW_UDP;
	else if (s->key.proto == PROTO_TCP)
		s->layers |= QHCA_FLOW_TCP;
	else
		return;
	memcpy(s->key.sport, p, 2);
	memcpy(s->key.dport, p + 2, 2);
}

static void see_ipv4(struct hca_flow_seen *s, const uint8_t *ip, size_t room)
{
	size_t ihl;

	if (room < IPV4_HLEN || ip[0] >> 4 != 4)
		return;
	ihl = (size_t)(ip[0] & 15) * 4;
	if (ihl < IPV4_HLEN || ihl > room)
		return;
	s->layers |= QHCA_FLOW_IPV4;
	s->key.tos = ip[1];
	s->key.ttl = ip[8];
	s->key.proto = ip[9];
	memcpy(s->key.src_ip, ip + 12, 4);
	memcpy(s->key.dst_ip, ip + 16, 4);
	if (!(get_be16(ip + 6) & IPV4_OFFSET))
		see_ports(s, ip + ihl, room - ihl);
}

static void see_ipv6(struct hca_flow_seen *s, const uint8_t *ip, size_t room)
{
	if (room < IPV6_HLEN || ip[0] >> 4 != 6)
		return;
	s->layers |= QHCA_FLOW_IPV6;
	s->key.tos = (uint8_t)(get_be16(ip) >> 4);
	put_be32(s->key.flow_label, get_be32(ip) & 0xfffff);
	s->key.proto = ip[6];
	s->key.ttl = ip[7];
	memcpy(s->key.src_ip, ip + 8, 16);
	memcpy(s->key.dst_ip, ip + 24, 16);
	see_ports(s, ip + IPV6_HLEN, room - IPV6_HLEN);
}

void hca_flow_see(const uint8_t *frame, size_t len, struct hca_flow_seen *s)
{
	size_t off = HCA_ETH_HLEN;
	uint16_t type = get_be16(frame + 12);

	memset(s, 0, sizeof(*s));
	memcpy(s->key.dmac, frame, 6);
	memcpy(s->key.smac, frame + 6, 6);
	if (type == HCA_ETHERTYPE_VLAN && len >= off + HCA_VLAN_HLEN) {
		s->layers |= QHCA_FLOW_VLAN;
		memcpy(s->key.vlan, frame + 14, 2);
		type = get_be16(frame + 16);
		off += HCA_VLAN_HLEN;
	}
	put_be16(s->key.ethertype, type);
	if (type == HCA_ETHERTYPE_IPV4)
		see_ipv4(s, frame + off, len - off);
	else if (type == HCA_ETHERTYPE_IPV6)
		see_ipv6(s, frame + off, len - off);
}

/* Compare word by word, because each frame is compared with each rule. */
bool hca_flow_matches(const struct hca_flow_rule *r,
		      const struct hca_flow_seen *s)
{
	const uint8_t *want = (const uint8_t *)&r->key;
	const uint8_t *mask = (const uint8_t *)&r->mask;
	const uint8_t *is = (const uint8_t *)&s->key;
	uint64_t w, m, v;

	if (r->layers & ~s->layers)
		return false;
	for (size_t i = 0; i < sizeof(r->key); i += sizeof(w)) {
		memcpy(&w, want + i, sizeof(w));
		memcpy(&m, mask + i, sizeof(m));
		memcpy(&v, is + i, sizeof(v));
		if ((v ^ w) & m)
			return false;
	}
	return true;
}

const struct hca_flow_rule *hca_flow_at(const struct hca_flows *f, uint32_t i)
{
	return &f->rule[f->order[i]];
}

bool hca_flow_wants(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	const struct hca_flows *f = &fn->flows;
	struct hca_flow_seen s;

	if (!f->of_type[QHCA_FLOW_NORMAL])
		return false;
	hca_flow_see(frame, len, &s);
	for (uint32_t i = 0; i < f->num; i++)
		if (hca_flow_at(f, i)->type == QHCA_FLOW_NORMAL &&
		    hca_flow_matches(hca_flow_at(f, i), &s))
			return true;
	return false;
}

/* ---- the table of rules */

/* Is rule @a evaluated before rule @b? */
static bool before(const struct hca_flows *f, uint16_t a, uint16_t b)
{
	return f->rule[a].priority != f->rule[b].priority ?
	       f->rule[a].priority < f->rule[b].priority : a < b;
}

void hca_flow_add(struct hca_fn *fn, uint16_t index,
		  const struct hca_flow_rule *rule)
{
	struct hca_flows *f = &fn->flows;
	uint32_t at = f->num++;

	f->rule[index] = *rule;
	for (; at && before(f, index, f->order[at - 1]); at--)
		f->order[at] = f->order[at - 1];
	f->order[at] = index;
	f->of_type[f->rule[index].type]++;
	f->rule[index].used = true;
	hca_ports_publish(fn);
}

/*
 * Forget rule @index (unless it is NO_RULE) and the rules of @qpn (unless it is
 * NO_QP).
 */
static void forget(struct hca_flows *f, uint32_t index, uint32_t qpn)
{
	uint32_t left = 0;

	for (uint32_t i = 0; i < f->num; i++) {
		struct hca_flow_rule *r = &f->rule[f->order[i]];

		if (f->order[i] != index && r->qpn != qpn) {
			f->order[left++] = f->order[i];
			continue;
		}
		f->of_type[r->type]--;
		r->used = false;
	}
	f->num = left;
}

void hca_flow_drop(struct hca_fn *fn, uint16_t index)
{
	forget(&fn->flows, index, NO_QP);
	hca_ports_publish(fn);
}

void hca_flow_drop_qp(struct hca_fn *fn, uint32_t qpn)
{
	forget(&fn->flows, NO_RULE, qpn);
	hca_ports_publish(fn);
}
