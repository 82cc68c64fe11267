/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The packet codec: headers of RoCEv2 packets, parsed and built.
 *
 * One table says for each opcode which extended headers a packet has, and both
 * directions read it.  The codec knows no device and does no DMA, so that a
 * test can call it alone.
 */
#include "wire/pkt.h"

#include <string.h>

#include "bytes.h"

#define ETHERTYPE_IPV4	0x0800
#define ETHERTYPE_IPV6	0x86dd
#define ETHERTYPE_VLAN	0x8100
#define NO_VLAN		0xffff
#define IP_PROTO_UDP	17
#define IPV4_DF		0x4000

#define V	HCA_H_VALID
#define PAY	HCA_OPF_PAYLOAD
#define FIRST	HCA_OPF_FIRST
#define LAST	HCA_OPF_LAST
#define ONLY	(FIRST | LAST)
#define SEND	(HCA_OPF_SEND | PAY | V)
#define WRITE	(HCA_OPF_WRITE | PAY | V)
#define RESP	(HCA_OPF_RESPONSE | V)
#define RETH	HCA_H_RETH
#define AETH	HCA_H_AETH
#define IMM	HCA_H_IMM
#define IETH	HCA_H_IETH

/* The operations of reliable connections (IBTA table 38). */
static const uint32_t op_table[HCA_NUM_OPS] = {
	[HCA_OP_SEND_FIRST]	= SEND | FIRST,
	[HCA_OP_SEND_MIDDLE]	= SEND,
	[HCA_OP_SEND_LAST]	= SEND | LAST,
	[HCA_OP_SEND_LAST_IMM]	= SEND | LAST | IMM,
	[HCA_OP_SEND_ONLY]	= SEND | ONLY,
	[HCA_OP_SEND_ONLY_IMM]	= SEND | ONLY | IMM,
	[HCA_OP_SEND_LAST_INV]	= SEND | LAST | IETH,
	[HCA_OP_SEND_ONLY_INV]	= SEND | ONLY | IETH,
	[HCA_OP_WRITE_FIRST]	= WRITE | FIRST | RETH,
	[HCA_OP_WRITE_MIDDLE]	= WRITE,
	[HCA_OP_WRITE_LAST]	= WRITE | LAST,
	[HCA_OP_WRITE_LAST_IMM] = WRITE | LAST | IMM,
	[HCA_OP_WRITE_ONLY]	= WRITE | ONLY | RETH,
	[HCA_OP_WRITE_ONLY_IMM] = WRITE | ONLY | RETH | IMM,
	[HCA_OP_READ_REQ]	= V | ONLY | RETH,
	[HCA_OP_CMP_SWAP]	= V | ONLY | HCA_H_ATOMIC,
	[HCA_OP_FETCH_ADD]	= V | ONLY | HCA_H_ATOMIC,
	[HCA_OP_READ_RESP_FIRST] = RESP | FIRST | AETH | PAY,
	[HCA_OP_READ_RESP_MIDDLE] = RESP | PAY,
	[HCA_OP_READ_RESP_LAST] = RESP | LAST | AETH | PAY,
	[HCA_OP_READ_RESP_ONLY] = RESP | ONLY | AETH | PAY,
	[HCA_OP_ACK]		= RESP | ONLY | AETH,
	[HCA_OP_ATOMIC_ACK]	= RESP | ONLY | AETH | HCA_H_ATOMICACK,
	[HCA_OP_FLUSH]		= V | ONLY | HCA_H_FETH | RETH,
	[HCA_OP_ATOMIC_WRITE]	= V | ONLY | RETH | PAY,
};

#define RC_BIT(op)	(1u << (op))

/* Unreliable connections have no responses and no invalidation. */
#define UC_OPS	(RC_BIT(HCA_OP_SEND_FIRST) | RC_BIT(HCA_OP_SEND_MIDDLE) | \
		 RC_BIT(HCA_OP_SEND_LAST) | RC_BIT(HCA_OP_SEND_LAST_IMM) | \
		 RC_BIT(HCA_OP_SEND_ONLY) | RC_BIT(HCA_OP_SEND_ONLY_IMM) | \
		 RC_BIT(HCA_OP_WRITE_FIRST) | RC_BIT(HCA_OP_WRITE_MIDDLE) | \
		 RC_BIT(HCA_OP_WRITE_LAST) | RC_BIT(HCA_OP_WRITE_LAST_IMM) | \
		 RC_BIT(HCA_OP_WRITE_ONLY) | RC_BIT(HCA_OP_WRITE_ONLY_IMM))
#define UD_OPS	(RC_BIT(HCA_OP_SEND_ONLY) | RC_BIT(HCA_OP_SEND_ONLY_IMM))

uint32_t hca_pkt_what(uint8_t opcode)
{
	uint8_t op = opcode & ~HCA_SVC_MASK;
	uint32_t what = op_table[op];

	switch (opcode & HCA_SVC_MASK) {
	case HCA_SVC_RC:
		return what;
	case HCA_SVC_UC:
		return UC_OPS & RC_BIT(op) ? what : 0;
	case HCA_SVC_UD:
		return UD_OPS & RC_BIT(op) ? what | HCA_H_DETH : 0;
	case HCA_SVC_XRC:
		if (!what || what & HCA_OPF_RESPONSE)
			return what;
		return what | HCA_H_XRCETH;
	default:
		return 0;
	}
}

static const struct {
	uint32_t header;
	uint8_t len;
} header_len[] = {
	{ HCA_H_XRCETH, 4 }, { HCA_H_DETH, 8 }, { HCA_H_FETH, 4 },
	{ HCA_H_RETH, 16 },
	{ HCA_H_ATOMIC, 28 }, { HCA_H_AETH, 4 }, { HCA_H_ATOMICACK, 8 },
	{ HCA_H_IMM, 4 }, { HCA_H_IETH, 4 },
};

static size_t headers_len(uint32_t what)
{
	size_t len = HCA_BTH_LEN;

	for (size_t i = 0; i < sizeof(header_len) / sizeof(*header_len); i++)
		if (what & header_len[i].header)
			len += header_len[i].len;
	return len;
}

size_t hca_pkt_header_len(uint8_t opcode)
{
	return headers_len(hca_pkt_what(opcode));
}

/*
 * Read the headers in the order of the wire.  The caller has checked the
 * length.
 */
static const uint8_t *parse_extended(const uint8_t *p, struct hca_pkt *pkt)
{
	uint32_t what = pkt->what;

	if (what & HCA_H_XRCETH) {
		pkt->xrc_srqn = get_be32(p) & 0xffffff;
		p += 4;
	}
	if (what & HCA_H_DETH) {
		pkt->qkey = get_be32(p);
		pkt->src_qpn = get_be32(p + 4) & 0xffffff;
		p += 8;
	}
	if (what & HCA_H_FETH) {
		pkt->feth = get_be32(p);
		p += 4;
	}
	if (what & (HCA_H_RETH | HCA_H_ATOMIC)) {
		pkt->va = get_be64(p);
		pkt->rkey = get_be32(p + 8);
		p += 12;
	}
	if (what & HCA_H_RETH) {
		pkt->dma_len = get_be32(p);
		p += 4;
	}
	if (what & HCA_H_ATOMIC) {
		pkt->swap_add = get_be64(p);
		pkt->compare = get_be64(p + 8);
		p += 16;
	}
	if (what & HCA_H_AETH) {
		pkt->syndrome = p[0];
		pkt->msn = get_be32(p) & 0xffffff;
		p += 4;
	}
	if (what & HCA_H_ATOMICACK) {
		pkt->orig = get_be64(p);
		p += 8;
	}
	if (what & HCA_H_IMM) {
		memcpy(pkt->imm, p, 4);
		p += 4;
	}
	if (what & HCA_H_IETH) {
		pkt->rkey = get_be32(p);
		p += 4;
	}
	return p;
}

bool hca_pkt_parse(const uint8_t *bth, size_t len, struct hca_pkt *pkt)
{
	uint32_t pad = bth[1] >> 4 & 3;
	size_t need;

	pkt->opcode = bth[0];
	pkt->op = bth[0] & ~HCA_SVC_MASK;
	pkt->service = bth[0] & HCA_SVC_MASK;
	pkt->what = hca_pkt_what(bth[0]);
	pkt->solicited = bth[1] & 0x80;
	pkt->pkey = get_be16(bth + 2);
	pkt->dest_qpn = get_be32(bth + 4) & 0xffffff;
	pkt->ack_req = bth[8] & 0x80;
	pkt->psn = get_be32(bth + 8) & 0xffffff;
	if (!pkt->what || bth[1] & 0x0f)
		return false;

	need = headers_len(pkt->what) + 4;	/* ICRC */
	if (len < need + pad)
		return false;
	pkt->payload = parse_extended(bth + HCA_BTH_LEN, pkt);
	pkt->payload_len = len - need - pad;
	pkt->pad = pad;
	if (!(pkt->what & HCA_OPF_PAYLOAD) && (pkt->payload_len || pad))
		return false;
	return true;
}

static uint8_t *build_extended(const struct hca_pkt *pkt, uint32_t what,
			       uint8_t *p)
{
	if (what & HCA_H_XRCETH) {
		put_be32(p, pkt->xrc_srqn & 0xffffff);
		p += 4;
	}
	if (what & HCA_H_DETH) {
		put_be32(p, pkt->qkey);
		put_be32(p + 4, pkt->src_qpn & 0xffffff);
		p += 8;
	}
	if (what & HCA_H_FETH) {
		put_be32(p, pkt->feth);
		p += 4;
	}
	if (what & (HCA_H_RETH | HCA_H_ATOMIC)) {
		put_be64(p, pkt->va);
		put_be32(p + 8, pkt->rkey);
		p += 12;
	}
	if (what & HCA_H_RETH) {
		put_be32(p, pkt->dma_len);
		p += 4;
	}
	if (what & HCA_H_ATOMIC) {
		put_be64(p, pkt->swap_add);
		put_be64(p + 8, pkt->compare);
		p += 16;
	}
	if (what & HCA_H_AETH) {
		put_be32(p, (uint32_t)pkt->syndrome << 24 |
			    (pkt->msn & 0xffffff));
		p += 4;
	}
	if (what & HCA_H_ATOMICACK) {
		put_be64(p, pkt->orig);
		p += 8;
	}
	if (what & HCA_H_IMM) {
		memcpy(p, pkt->imm, 4);
		p += 4;
	}
	if (what & HCA_H_IETH) {
		put_be32(p, pkt->rkey);
		p += 4;
	}
	return p;
}

size_t hca_pkt_build(const struct hca_pkt *pkt, uint8_t *to)
{
	uint32_t what = hca_pkt_what(pkt->opcode);

	to[0] = pkt->opcode;
	/* MigReq is 1 in the migrated state, where a path without APM stays */
	to[1] = (pkt->solicited ? 0x80 : 0) | 0x40 |
		hca_pkt_pad(pkt->payload_len) << 4;
	put_be16(to + 2, pkt->pkey);
	put_be32(to + 4, pkt->dest_qpn & 0xffffff);
	put_be32(to + 8, (pkt->ack_req ? 0x80000000u : 0) |
			 (pkt->psn & 0xffffff));
	return build_extended(pkt, what, to + HCA_BTH_LEN) - to;
}

bool hca_gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, prefix, sizeof(prefix));
}

uint16_t hca_ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += get_be16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return ~sum & 0xffff;
}

size_t hca_path_header_len(const struct hca_path *path)
{
	return 14 + (path->vlan != NO_VLAN ? 4 : 0) +
	       (hca_gid_is_ipv4(path->sgid) ? 20 : 40) + 8;
}

static size_t build_ipv4(const struct hca_path *path, uint8_t *ip, size_t len)
{
	ip[0] = 0x45;
	ip[1] = path->traffic_class;
	put_be16(ip + 2, 20 + len);
	put_be16(ip + 4, 0);
	put_be16(ip + 6, IPV4_DF);
	ip[8] = path->hop_limit;
	ip[9] = IP_PROTO_UDP;
	put_be16(ip + 10, 0);
	memcpy(ip + 12, path->sgid + 12, 4);
	memcpy(ip + 16, path->dgid + 12, 4);
	put_be16(ip + 10, hca_ipv4_checksum(ip));
	return 20;
}

static size_t build_ipv6(const struct hca_path *path, uint8_t *ip, size_t len)
{
	put_be32(ip, 6u << 28 | (uint32_t)path->traffic_class << 20 |
		     (path->flow_label & 0xfffff));
	put_be16(ip + 4, len);
	ip[6] = IP_PROTO_UDP;
	ip[7] = path->hop_limit;
	memcpy(ip + 8, path->sgid, 16);
	memcpy(ip + 24, path->dgid, 16);
	return 40;
}

size_t hca_path_build(const struct hca_path *path, uint8_t *to, size_t len,
		      size_t *ip_off)
{
	bool v4 = hca_gid_is_ipv4(path->sgid);
	uint8_t *p = to;

	memcpy(p, path->dmac, 6);
	memcpy(p + 6, path->smac, 6);
	p += 12;
	if (path->vlan != NO_VLAN) {
		put_be16(p, ETHERTYPE_VLAN);
		put_be16(p + 2, (path->sl & 7) << 13 | (path->vlan & 0xfff));
		p += 4;
	}
	put_be16(p, v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
	p += 2;
	*ip_off = p - to;
	p += v4 ? build_ipv4(path, p, len + 8) : build_ipv6(path, p, len + 8);

	put_be16(p, path->sport);
	put_be16(p + 2, 4791);
	put_be16(p + 4, len + 8);
	put_be16(p + 6, 0);	/* no checksum: the ICRC covers it */
	return p + 8 - to;
}
