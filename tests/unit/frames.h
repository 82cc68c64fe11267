/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames that tests build by hand.
 */
#ifndef QHCA_TEST_FRAMES_H
#define QHCA_TEST_FRAMES_H

#include "unit.h"

/* What the builders may vary; frame_default() gives a good RoCEv2 frame. */
struct frame_spec {
	uint8_t dmac[6];
	bool v6;
	int tag;			/* tag control, -1: none */
	uint8_t dst[16];		/* GID: the last 4 octets for IPv4 */
	uint8_t src[16];
	uint16_t dport;
	uint8_t proto;			/* IP protocol */
	uint32_t payload;		/* octets behind the UDP header */
};

static const uint8_t frame_mac[6] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 };
static const uint8_t frame_gid4[16] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1,
};
static const uint8_t frame_gid6[16] = {
	0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8,
};

static inline struct frame_spec frame_default(bool v6)
{
	struct frame_spec s = {
		.v6 = v6, .tag = -1, .dport = 4791, .proto = 17,
		.payload = 32,
	};

	memcpy(s.dmac, frame_mac, 6);
	memcpy(s.dst, v6 ? frame_gid6 : frame_gid4, 16);
	memcpy(s.src, s.dst, 16);
	s.src[15] = 99;
	return s;
}

/* A plain checksum by octet pairs, which shares no code with the engine's. */
static inline uint16_t frame_sum(const uint8_t *p, size_t len, uint32_t sum)
{
	size_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += (uint32_t)p[i] << 8 | p[i + 1];
	if (len & 1)
		sum += (uint32_t)p[len - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

static inline void frame_ipv4_sum(uint8_t *ip)
{
	put_be16(ip + 10, 0);
	put_be16(ip + 10, frame_sum(ip, (size_t)(ip[0] & 15) * 4, 0));
}

/* Builds a frame into @f, which has room for QHCA_MAX_FRAME; returns its length. */
static inline size_t frame_build(uint8_t *f, const struct frame_spec *s)
{
	static const uint8_t smac[6] = { 0x52, 0x54, 0, 1, 1, 1 };
	uint32_t udp = 8 + s->payload, i;
	uint8_t *p = f + 14;

	memcpy(f, s->dmac, 6);
	memcpy(f + 6, smac, 6);
	if (s->tag >= 0) {
		put_be16(f + 12, 0x8100);
		put_be16(f + 14, (uint16_t)s->tag);
		p += 4;
	}
	put_be16(p - 2, s->v6 ? 0x86dd : 0x0800);
	if (s->v6) {
		memset(p, 0, 40);
		p[0] = 0x60;
		put_be16(p + 4, (uint16_t)udp);
		p[6] = s->proto;
		p[7] = 64;
		memcpy(p + 8, s->src, 16);
		memcpy(p + 24, s->dst, 16);
		p += 40;
	} else {
		memset(p, 0, 20);
		p[0] = 0x45;
		put_be16(p + 2, (uint16_t)(20 + udp));
		p[8] = 64;
		p[9] = s->proto;
		memcpy(p + 12, s->src + 12, 4);
		memcpy(p + 16, s->dst + 12, 4);
		frame_ipv4_sum(p);
		p += 20;
	}
	put_be16(p, 0xc001);
	put_be16(p + 2, s->dport);
	put_be16(p + 4, (uint16_t)udp);
	put_be16(p + 6, 0);
	for (i = 0; i < s->payload; i++)
		p[8 + i] = (uint8_t)(i * 7 + 3);
	return (size_t)(p + 8 + s->payload - f);
}

static inline enum qhca_cmd_status set_gid(struct host *h, uint32_t index,
					   const uint8_t gid[16],
					   const uint8_t smac[6], uint16_t vlan)
{
	struct qhca_gid_entry in = { .rsvd = 0 };
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memcpy(in.gid, gid, 16);
	memcpy(in.smac, smac, 6);
	put_le16(&in.vlan, vlan);
	put_le32(&in.flags, QHCA_GID_VALID |
		 (memcmp(gid, mapped, 12) ? 0 : QHCA_GID_IPV4));
	return host_cmd(h, QHCA_CMD_SET_GID, index, 0, &in, sizeof(in), NULL,
			0);
}

#endif /* QHCA_TEST_FRAMES_H */
