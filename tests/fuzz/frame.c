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
