// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "frame.h"

#include "wire/icrc.h"

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

static uint32_t token_of(const struct guard *g)
{
	const struct hca_peers *peers = &g->hca->pf.peers;

	for (unsigned int i = 0; i < HCA_PEERS; i++)
		if (peers->peer[i].token)
			return peers->peer[i].token;
	return 0;
}

void frame_send_message(struct guard *g, struct in *in)
{
	static const uint32_t sizes[] = { GUARD_BUNDLE, 4096, 512, 2048 };
	uint8_t kind = (uint8_t)(1 + in_below(in, 4)), how = in_u8(in);
	uint32_t size = how & 4 ? (uint32_t)in_number(in) : sizes[how & 3];
	struct frame f = { .len = HCA_MIN_FRAME };
	uint8_t *p = f.data + 12;

	memcpy(f.data, g->md->mac, 6);
	memcpy(f.data + 6, g->md->mac, 6);
	f.data[11] = 1;
	if (how & 8) {
		put_be16(p, HCA_ETHERTYPE_VLAN);
		put_be16(p + 2, (uint16_t)in_word(in, 2));
		p += 4;
	}
	put_be16(p, HCA_ETHERTYPE_PEERS);
	memcpy(p + 2, "qhca\1", 5);
	p[7] = kind;
	put_be32(p + 10, size);
	put_be32(p + 14, how & 16 ? (uint32_t)in_number(in) : token_of(g));
	/* A PROBE is as long as it says. */
	if (kind == 3 && size <= GUARD_BUNDLE)
		f.len = size + HCA_MAX_OVERHEAD;
	if (how & 32)
		f.len = in_below(in, (uint32_t)f.len + 1);
	if (how & 64)
		f.data[in_below(in, 32)] ^= in_u8(in);
	guard_rx(g, f.data, f.len);
}
