// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Segmentation of TCP.  tso.h says what goes in and comes out.
 */
#include "wire/tso.h"

#include "bytes.h"
#include "qhca.h"
#include "wire/ether.h"

#define ETHERTYPE_8021AD	0x88a8
#define MAX_TAGS	2
#define IPV4_HLEN	20
#define IPV6_HLEN	40
#define IPV4_FRAGMENT	0x3fff		/* more-fragments and offset */
#define PROTO_TCP	6
#define TCP_HLEN	20

#define TCP_SEQ		4		/* offsets in the TCP header */
#define TCP_DATA	12
#define TCP_FLAGS	13
#define TCP_FIN		0x01
#define TCP_PSH		0x08
#define TCP_CWR		0x80

bool hca_tso_valid(const struct hca_tso *tso, uint32_t max)
{
	return tso->len <= QHCA_MAX_TSO_FRAME && tso->mss >= QHCA_MIN_TSO_MSS &&
	       tso->hdr_len <= QHCA_MAX_TSO_HDR &&
	       tso->hdr_len >= tso->l4 + TCP_HLEN && tso->hdr_len < tso->len &&
	       (uint32_t)tso->hdr_len + tso->mss <= max;
}

uint16_t hca_tso_ethertype(const uint8_t *frame, size_t len, uint16_t *off)
{
	uint16_t type;

	*off = HCA_ETH_HLEN;
	if (*off > len)
		return 0;
	type = get_be16(frame + *off - 2);
	for (unsigned int tags = 0; tags < MAX_TAGS &&
	     (type == HCA_ETHERTYPE_VLAN || type == ETHERTYPE_8021AD); tags++) {
		*off += HCA_VLAN_HLEN;
		if (*off > len)
			return 0;
		type = get_be16(frame + *off - 2);
	}
	return type;
}

static bool is_ipv4(const uint8_t *ip, uint32_t len)
{
	return len >= IPV4_HLEN && ip[0] >> 4 == 4 &&
	       (uint32_t)(ip[0] & 15) * 4 == len && ip[9] == PROTO_TCP &&
	       !(get_be16(ip + 6) & IPV4_FRAGMENT);
}

/* Extension headers are copied, and say that TCP follows. */
static bool is_ipv6(const uint8_t *ip, uint32_t len)
{
	return len >= IPV6_HLEN && ip[0] >> 4 == 6 &&
	       (len > IPV6_HLEN || ip[6] == PROTO_TCP);
}

bool hca_tso_parse(struct hca_tso *tso, const uint8_t *hdr)
{
	uint16_t type = hca_tso_ethertype(hdr, tso->hdr_len, &tso->l3);

	tso->v6 = type == HCA_ETHERTYPE_IPV6;
	if (tso->l3 > tso->l4 || (type != HCA_ETHERTYPE_IPV4 && !tso->v6))
		return false;
	if (tso->v6 ? !is_ipv6(hdr + tso->l3, tso->l4 - (uint32_t)tso->l3) :
		      !is_ipv4(hdr + tso->l3, tso->l4 - (uint32_t)tso->l3))
		return false;
	return (hdr[tso->l4 + TCP_DATA] >> 4) * 4u ==
	       tso->hdr_len - (uint32_t)tso->l4;
}

uint32_t hca_tso_payload(const struct hca_tso *tso, uint32_t off)
{
	uint32_t left = tso->len - tso->hdr_len - off;

	return left < tso->mss ? left : tso->mss;
}

static void finish_ip(const struct hca_tso *tso, uint8_t *ip, uint32_t off,
		      uint32_t len)
{
	uint32_t rest = tso->hdr_len - (uint32_t)tso->l3 + len;
	size_t hlen = tso->l4 - (size_t)tso->l3;

	if (tso->v6) {
		put_be16(ip + 4, (uint16_t)(rest - IPV6_HLEN));
		return;
	}
	put_be16(ip + 2, (uint16_t)rest);
	put_be16(ip + 4, (uint16_t)(get_be16(ip + 4) + off / tso->mss));
	put_be16(ip + 10, 0);
	put_be16(ip + 10, hca_csum_fold(hca_csum_add(0, ip, hlen)));
}

/* A number of bytes as the sum of a pseudo-header has it, in one's complement. */
static uint16_t folded(uint32_t bytes)
{
	return (uint16_t)~hca_csum_fold(bytes);
}

void hca_tso_finish(const struct hca_tso *tso, uint8_t *p, uint32_t off,
		    uint32_t len)
{
	uint32_t hlen = tso->hdr_len - (uint32_t)tso->l4, sum;
	bool last = off + len == tso->len - tso->hdr_len;
	uint8_t *tcp = p + tso->l4;

	finish_ip(tso, p + tso->l3, off, len);
	put_be32(tcp + TCP_SEQ, get_be32(tcp + TCP_SEQ) + off);
	if (!last)
		tcp[TCP_FLAGS] &= (uint8_t)~(TCP_FIN | TCP_PSH);
	if (off)
		tcp[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
	/* The pseudo-header has the length of this segment instead of that of all. */
	sum = get_be16(tcp + HCA_TSO_CSUM);
	sum += (uint16_t)~folded(tso->len - tso->l4);
	sum += folded(hlen + len);
	put_be16(tcp + HCA_TSO_CSUM, folded(sum));
	sum = hca_csum_fold(hca_csum_add(0, tcp, hlen + len));
	put_be16(tcp + HCA_TSO_CSUM, sum ? (uint16_t)sum : 0xffff);
}
