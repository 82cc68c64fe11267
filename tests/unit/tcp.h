/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A plain model of segmentation: each segment is built from its beginning, as a sender
 * without offloads would.  It shares no code with the engine.
 */
#ifndef QHCA_TEST_TCP_H
#define QHCA_TEST_TCP_H

#include "frames.h"

#define TCP_MAX_HDR	400u

/* The stream that a frame belongs to, and what its headers have. */
struct tcp_spec {
	bool v6;
	uint8_t tags;			/* in front of the IP header */
	uint8_t ip_options;		/* IPv4: words of options */
	uint8_t extensions;		/* IPv6: headers of 8 octets */
	uint8_t tcp_options;		/* words */
	uint8_t flags;			/* of TCP */
	uint16_t id;			/* of IPv4 */
	uint32_t seq;
	uint16_t mss;
	uint32_t payload;
};

static inline uint32_t tcp_ip_at(const struct tcp_spec *s)
{
	return 14 + 4u * s->tags;
}

static inline uint32_t tcp_at(const struct tcp_spec *s)
{
	return tcp_ip_at(s) + (s->v6 ? 40 + 8u * s->extensions :
				       20 + 4u * s->ip_options);
}

static inline uint32_t tcp_hdr_len(const struct tcp_spec *s)
{
	return tcp_at(s) + 20 + 4u * s->tcp_options;
}

static inline uint8_t tcp_byte(uint32_t at)
{
	return (uint8_t)(at * 11 + (at >> 8) * 3 + 1);
}

static inline void tcp_put_ip(const struct tcp_spec *s, uint8_t *ip,
			      uint32_t total, uint32_t segment)
{
	uint32_t i;

	if (s->v6) {
		ip[0] = 0x6a;
		put_be16(ip + 4, (uint16_t)(total - 40));
		ip[6] = s->extensions ? 60 : 6;
		ip[7] = 9;
		for (i = 0; i < 32; i++)
			ip[8 + i] = (uint8_t)(0x20 + i);
		for (i = 0; i < s->extensions; i++) {
			memset(ip + 40 + 8 * i, 1, 8);
			ip[40 + 8 * i] = i + 1u < s->extensions ? 60 : 6;
			ip[41 + 8 * i] = 0;
		}
		return;
	}
	ip[0] = (uint8_t)(0x45 + s->ip_options);
	ip[1] = 7;
	put_be16(ip + 2, (uint16_t)total);
	put_be16(ip + 4, (uint16_t)(s->id + segment));
	put_be16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = 6;
	for (i = 0; i < 8 + 4u * s->ip_options; i++)
		ip[12 + i] = (uint8_t)(i * 5 + 1);
	frame_ipv4_sum(ip);
}

/* The sum of the pseudo-header of @len octets, not inverted. */
static inline uint32_t tcp_pseudo(const struct tcp_spec *s, const uint8_t *ip,
				  uint32_t len)
{
	const uint8_t *addr = ip + (s->v6 ? 8 : 12);

	return (uint16_t)~frame_sum(addr, s->v6 ? 32 : 8,
				    6 + (len >> 16) + (len & 0xffff));
}

/* The segment with @len octets of payload from octet @off on.  Returns its length. */
static inline uint32_t tcp_segment(const struct tcp_spec *s, uint8_t *f,
				   uint32_t off, uint32_t len)
{
	uint32_t at = tcp_at(s), hdr = tcp_hdr_len(s), i;
	uint8_t *ip = f + tcp_ip_at(s), *tcp = f + at;

	memset(f, 0, hdr);
	for (i = 0; i < 12; i++)
		f[i] = (uint8_t)(0x10 + 2 * i);
	for (i = 0; i < s->tags; i++) {
		put_be16(f + 12 + 4 * i, i ? 0x8100 : s->tags > 1 ? 0x88a8 :
			 0x8100);
		put_be16(f + 14 + 4 * i, (uint16_t)(0x2000 + i));
	}
	put_be16(ip - 2, s->v6 ? 0x86dd : 0x0800);
	tcp_put_ip(s, ip, hdr - tcp_ip_at(s) + len, off / s->mss);
	put_be16(tcp, 5001);
	put_be16(tcp + 2, 80);
	put_be32(tcp + 4, s->seq + off);
	put_be32(tcp + 8, 77);
	tcp[12] = (uint8_t)((5 + s->tcp_options) << 4);
	tcp[13] = s->flags;
	if (off)
		tcp[13] &= (uint8_t)~0x80;
	if (off + len < s->payload)
		tcp[13] &= (uint8_t)~0x09;
	put_be16(tcp + 14, 500);
	put_be16(tcp + 18, 3);
	for (i = 0; i < 4u * s->tcp_options; i++)
		tcp[20 + i] = (uint8_t)(i + 1);
	for (i = 0; i < len; i++)
		f[hdr + i] = tcp_byte(off + i);
	put_be16(tcp + 16, frame_sum(tcp, hdr - at + len,
				     tcp_pseudo(s, ip, hdr - at + len)));
	if (!get_be16(tcp + 16))
		put_be16(tcp + 16, 0xffff);
	return hdr + len;
}

/* The frame that software gives.  Returns its length. */
static inline uint32_t tcp_whole(const struct tcp_spec *s, uint8_t *f)
{
	uint32_t len = tcp_segment(s, f, 0, s->payload), at = tcp_at(s);

	/* Of IP the lengths and the checksum are not looked at. */
	put_be16(f + tcp_ip_at(s) + (s->v6 ? 4 : 2), 0);
	if (!s->v6)
		put_be16(f + tcp_ip_at(s) + 10, 0xbeef);
	put_be16(f + at + 16, (uint16_t)tcp_pseudo(s, f + tcp_ip_at(s), len - at));
	return len;
}

static inline uint32_t tcp_num_segments(const struct tcp_spec *s)
{
	return (s->payload + s->mss - 1) / s->mss;
}

#endif /* QHCA_TEST_TCP_H */
