// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "frame.h"

#include "wire/icrc.h"
#include "wire/trailer.h"
#include "wire/tso.h"

void frame_build(struct frame *f, const struct hca_path *path,
		 const struct hca_pkt *pkt, uint8_t pattern)
{
	uint32_t pad = hca_pkt_pad(pkt->payload_len), i;
	size_t udp_len = hca_pkt_header_len(pkt->opcode) + pkt->payload_len +
			 pad + HCA_ICRC_LEN, ip_off;
	uint8_t *p = f->data;

	memset(f->data, 0, HCA_MAX_OVERHEAD);
	p += hca_path_build(path, p, udp_len, &ip_off);
	p += hca_pkt_build(pkt, p);
	for (i = 0; i < pkt->payload_len; i++)
		*p++ = (uint8_t)(pattern + i);
	memset(p, 0, pad + HCA_ICRC_LEN);
	f->len = (size_t)(p - f->data) + pad + HCA_ICRC_LEN;
}

void frame_fix(struct frame *f, uint8_t what)
{
	size_t ip = get_be16(f->data + 12) == HCA_ETHERTYPE_VLAN ? 18 : 14;
	bool v6 = get_be16(f->data + ip - 2) == HCA_ETHERTYPE_IPV6;
	size_t udp = ip + (v6 ? 40 : 20), len;

	if (f->len < udp + HCA_UDP_HLEN + HCA_BTH_LEN + HCA_ICRC_LEN)
		return;
	len = f->len - udp;
	if (what & FRAME_LENGTHS) {
		put_be16(f->data + udp + 4, (uint16_t)len);
		put_be16(f->data + ip + (v6 ? 4 : 2),
			 (uint16_t)(v6 ? len : len + 20));
	}
	if (what & FRAME_CHECKSUM && !v6) {
		put_be16(f->data + ip + 10, 0);
		put_be16(f->data + ip + 10,
			 hca_ipv4_checksum(f->data + ip));
	}
	if (what & FRAME_ICRC)
		put_le32(f->data + f->len - HCA_ICRC_LEN,
			 hca_icrc(f->data + ip, udp - ip,
				  len - HCA_UDP_HLEN - HCA_ICRC_LEN));
}

/* A peer that the device has asked; NULL: there is none. */
static const struct hca_peer *asked(const struct guard *g)
{
	const struct hca_peer *p = g->hca->pf.peers.peer;

	for (unsigned int i = 0; i < HCA_PEERS + HCA_PEERS_WITHOUT_GID; i++)
		if (p[i].token)
			return &p[i];
	return NULL;
}

/* Behind a PROBE without a GID, which has a header of IP, there is something more. */
static void put_packet(uint8_t *ip, size_t len)
{
	ip[0] = 0x45;
	put_be16(ip + 2, (uint16_t)(len - HCA_TRAILER));
	ip[8] = 1;
	ip[9] = 253;
	put_be16(ip + 10, hca_ipv4_checksum(ip));
	hca_trailer_put(ip + len - HCA_TRAILER, 0);
}

void frame_send_message(struct guard *g, struct in *in)
{
	static const uint32_t sizes[] = { GUARD_BUNDLE, 4096, 512, 2048 };
	uint8_t kind = (uint8_t)(1 + in_below(in, 4)), how = in_u8(in);
	uint32_t size = how & 4 ? (uint32_t)in_number(in) : sizes[how & 3];
	const struct hca_peer *peer = kind % 2 ? NULL : asked(g);
	bool packet = kind == 3 && how & 128;
	struct frame f = { .len = HCA_MIN_FRAME };
	uint8_t *p = f.data + 12;

	memcpy(f.data, g->md->mac, 6);
	memcpy(f.data + 6, peer ? peer->mac : g->md->mac, 6);
	f.data[11] = peer ? peer->mac[5] : 1;
	if (how & 8) {
		put_be16(p, HCA_ETHERTYPE_VLAN);
		put_be16(p + 2, (uint16_t)in_word(in, 2));
		p += 4;
	}
	/* A PROBE is as long as it says. */
	if (kind == 3 && size <= GUARD_BUNDLE)
		f.len = size + HCA_MAX_OVERHEAD;
	put_be16(p, packet ? HCA_ETHERTYPE_IPV4 : HCA_ETHERTYPE_PEERS);
	p += 2;
	if (packet) {
		put_packet(p, f.len - (size_t)(p - f.data));
		p += 20;
	}
	memcpy(p, "qhca\1", 5);
	p[5] = kind;
	put_be32(p + 8, size);
	put_be32(p + 12, how & 16 ? (uint32_t)in_number(in) :
			 peer ? peer->token : 0);
	if (peer)
		memcpy(p + 16, peer->gid, 16);
	else if (!(how & 128))
		memcpy(p + 16, g->md->gid, 16);
	if (how & 32)
		f.len = in_below(in, (uint32_t)f.len + 1);
	if (how & 64)
		f.data[in_below(in, 64)] ^= in_u8(in);
	guard_rx(g, f.data, f.len);
}

static size_t put_ip(uint8_t *ip, bool v6, uint32_t len)
{
	if (v6) {
		ip[0] = 0x60;
		put_be16(ip + 4, (uint16_t)len);
		ip[6] = 6;
		return 40;
	}
	ip[0] = 0x45;
	put_be16(ip + 2, (uint16_t)(len + 20));
	ip[9] = 6;
	put_be16(ip + 10, hca_ipv4_checksum(ip));
	return 20;
}

void frame_send_large(struct guard *g, struct in *in)
{
	static const uint16_t sizes[] = { 100, 1448, 4096, 8 };
	uint8_t how = in_u8(in);
	uint16_t mss = how & 4 ? (uint16_t)in_number(in) : sizes[how & 3];
	uint32_t payload = in_below(in, GUARD_BUNDLE - 60);
	struct frame f = { .len = 0 };
	uint8_t *p = f.data + 12, *ip;
	bool v6 = how & 8;

	memcpy(f.data, g->md->mac, 6);
	memcpy(f.data + 6, g->md->mac, 6);
	f.data[11] = 1;
	if (how & 16) {
		put_be32(p, 0x81000007);
		p += 4;
	}
	put_be16(p, v6 ? HCA_ETHERTYPE_IPV6 : HCA_ETHERTYPE_IPV4);
	ip = p + 2;
	p = ip + put_ip(ip, v6, 20 + payload);
	p[12] = 0x50;
	p[13] = in_u8(in);
	put_be16(p + HCA_TSO_CSUM,
		 hca_csum_fold(hca_csum_add(6 + 20 + payload, p, 20)));
	f.len = (size_t)(p - f.data) + 20 + payload;
	memcpy(f.data + f.len, "qhca\1", 6);
	put_be16(f.data + f.len + 6, mss);
	f.len += HCA_TRAILER;
	if (how & 32)
		f.data[in_below(in, (uint32_t)f.len)] ^= in_u8(in);
	if (how & 64)
		f.len = in_below(in, (uint32_t)f.len + 1);
	guard_rx(g, f.data, f.len);
}
