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

/* Bytes of the headers behind the BTH. */
#define LEN(what)	(((what) & HCA_H_XRCETH ? 4 : 0) + \
			 ((what) & HCA_H_DETH ? 8 : 0) + \
			 ((what) & HCA_H_FETH ? 4 : 0) + \
			 ((what) & HCA_H_RETH ? 16 : 0) + \
			 ((what) & HCA_H_ATOMIC ? 28 : 0) + \
			 ((what) & HCA_H_AETH ? 4 : 0) + \
			 ((what) & HCA_H_ATOMICACK ? 8 : 0) + \
			 ((what) & HCA_H_IMM ? 4 : 0) + \
			 ((what) & HCA_H_IETH ? 4 : 0))

/* The operations (IBTA table 38) of all services, */
#define UD_OPS(X) \
	X(SEND_ONLY, SEND | ONLY) \
	X(SEND_ONLY_IMM, SEND | ONLY | IMM)
/* those of unreliable connections, which have no responses and no invalidation, */
#define UC_OPS(X) \
	UD_OPS(X) \
	X(SEND_FIRST, SEND | FIRST) \
	X(SEND_MIDDLE, SEND) \
	X(SEND_LAST, SEND | LAST) \
	X(SEND_LAST_IMM, SEND | LAST | IMM) \
	X(WRITE_FIRST, WRITE | FIRST | RETH) \
	X(WRITE_MIDDLE, WRITE) \
	X(WRITE_LAST, WRITE | LAST) \
	X(WRITE_LAST_IMM, WRITE | LAST | IMM) \
	X(WRITE_ONLY, WRITE | ONLY | RETH) \
	X(WRITE_ONLY_IMM, WRITE | ONLY | RETH | IMM)
/* and those of reliable ones. */
#define RC_OPS(X) \
	UC_OPS(X) \
	X(SEND_LAST_INV, SEND | LAST | IETH) \
	X(SEND_ONLY_INV, SEND | ONLY | IETH) \
	X(READ_REQ, V | ONLY | RETH) \
	X(CMP_SWAP, V | ONLY | HCA_H_ATOMIC) \
	X(FETCH_ADD, V | ONLY | HCA_H_ATOMIC) \
	X(READ_RESP_FIRST, RESP | FIRST | AETH | PAY) \
	X(READ_RESP_MIDDLE, RESP | PAY) \
	X(READ_RESP_LAST, RESP | LAST | AETH | PAY) \
	X(READ_RESP_ONLY, RESP | ONLY | AETH | PAY) \
	X(ACK, RESP | ONLY | AETH) \
	X(ATOMIC_ACK, RESP | ONLY | AETH | HCA_H_ATOMICACK) \
	X(FLUSH, V | ONLY | HCA_H_FETH | RETH) \
	X(ATOMIC_WRITE, V | ONLY | RETH | PAY)

#define ENTRY(svc, op, what) \
	[HCA_SVC_##svc | HCA_OP_##op] = { (what), LEN(what) },
#define RC(op, what)	ENTRY(RC, op, what)
#define UC(op, what)	ENTRY(UC, op, what)
#define UD(op, what)	ENTRY(UD, op, (what) | HCA_H_DETH)
/* The responses of XRC are those of RC. */
#define XRC(op, what) \
	ENTRY(XRC, op, (what) | ((what) & HCA_OPF_RESPONSE ? 0 : HCA_H_XRCETH))

const struct hca_pkt_op hca_pkt_ops[256] = {
	RC_OPS(RC) UC_OPS(UC) UD_OPS(UD) RC_OPS(XRC)
};

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
		pkt->syndrome = p[0] & HCA_AETH_MASK;
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
	uint32_t pad = bth[1] >> 4 & 3, tver = bth[1] & 0x0f;
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
	pkt->bundle = tver ? bth[8] & HCA_BTH_BUNDLE : 0;
	if (!pkt->what || tver > HCA_BTH_TVER_BUNDLE || (tver && !pkt->bundle))
		return false;

	need = hca_pkt_header_len(pkt->opcode) + 4;	/* ICRC */
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

/* What depends on the packet's place in a message. */
static void build_place(const struct hca_pkt *pkt, uint8_t *bth)
{
	bth[0] = pkt->opcode;
	/* MigReq is 1 in the migrated state, where a path without APM stays. */
	bth[1] = (pkt->solicited ? 0x80 : 0) | 0x40 |
		 hca_pkt_pad(pkt->payload_len) << 4;
}

void hca_pkt_change(uint8_t *bth, const struct hca_pkt *to)
{
	build_place(to, bth);
	bth[1] |= to->bundle ? HCA_BTH_TVER_BUNDLE : 0;
	bth[8] = (to->ack_req ? 0x80 : 0) | to->bundle;
}

size_t hca_pkt_build(const struct hca_pkt *pkt, uint8_t *to)
{
	uint32_t what = hca_pkt_what(pkt->opcode);

	build_place(pkt, to);
	put_be16(to + 2, pkt->pkey);
	put_be32(to + 4, pkt->dest_qpn & 0xffffff);
	put_be32(to + 8, (pkt->ack_req ? 0x80000000u : 0) |
			 (pkt->psn & 0xffffff));
	return build_extended(pkt, what, to + HCA_BTH_LEN) - to;
}

uint64_t hca_rnr_time(uint8_t code)
{
	static const uint32_t times[32] = {	/* in 10 us */
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288,
		16384, 24576, 32768, 49152,
	};

	return times[code] * 10000ull;
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

void hca_path_set_len(uint8_t *headers, size_t headers_len, size_t ip_off,
		      size_t len)
{
	uint8_t *ip = headers + ip_off;

	if (ip[0] >> 4 == 4) {
		put_be16(ip + 2, 20 + 8 + len);
		put_be16(ip + 10, 0);
		put_be16(ip + 10, hca_ipv4_checksum(ip));
	} else {
		put_be16(ip + 4, 8 + len);
	}
	put_be16(headers + headers_len - 4, 8 + len);
}
