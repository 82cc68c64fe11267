// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Receive side scaling.  rss.h explains the hash.
 */
#include "wire/rss.h"

#include "bytes.h"
#include "wire/ether.h"

#define IPV4_HLEN	20
#define IPV6_HLEN	40
#define IPV4_FRAGMENT	0x3fff		/* more-fragments and offset */
#define PROTO_TCP	6
#define PROTO_UDP	17
#define PORTS_LEN	4u

_Static_assert(HCA_RSS_NIBBLES * 4 + 32 == QHCA_RSS_KEY_LEN * 8,
	       "the last bit of the input takes the last 32 of the key");

/* The 32 bits of the key from bit @bit on. */
static uint32_t window(const uint8_t *key, unsigned int bit)
{
	uint64_t five = (uint64_t)get_be32(key + bit / 8) << 8;

	if (bit % 8)
		five |= key[bit / 8 + 4];
	return (uint32_t)(five >> (8 - bit % 8));
}

void hca_rss_prepare(struct hca_rss *rss)
{
	for (unsigned int n = 0; n < HCA_RSS_NIBBLES; n++)
		for (unsigned int v = 0; v < 16; v++) {
			rss->part[n][v] = 0;
			for (unsigned int b = 0; b < 4; b++)
				if (v & 8u >> b)
					rss->part[n][v] ^=
						window(rss->key, 4 * n + b);
		}
}

bool hca_rss_valid(const struct hca_rss *rss, unsigned int queues)
{
	if (rss->num > QHCA_RSS_MAX_ENTRIES || rss->num & (rss->num - 1) ||
	    rss->types & ~QHCA_RSS_TYPES)
		return false;
	for (unsigned int i = 0; i < rss->num; i++)
		if (rss->queue[i] >= queues)
			return false;
	return true;
}

/* Carry on a hash by @len bytes of input, which begin with byte @at of the whole. */
static uint32_t add(const struct hca_rss *rss, uint32_t hash, size_t at,
		    const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		hash ^= rss->part[2 * (at + i)][p[i] >> 4];
		hash ^= rss->part[2 * (at + i) + 1][p[i] & 15];
	}
	return hash;
}

/*
 * Hash @len bytes of addresses, and the ports that follow the IP header, if they are
 * asked for.  @l4: the transport's header; @room: bytes that there are of it.
 */
static struct hca_rss_hash hash_of(const struct hca_rss *rss, bool v6,
				   const uint8_t *addr, uint8_t proto,
				   const uint8_t *l4, size_t room)
{
	size_t len = v6 ? 32 : 8;
	uint16_t with = 0;

	if (proto == PROTO_TCP)
		with = v6 ? QHCA_RSS_TCP_IPV6 : QHCA_RSS_TCP_IPV4;
	else if (proto == PROTO_UDP)
		with = v6 ? QHCA_RSS_UDP_IPV6 : QHCA_RSS_UDP_IPV4;
	if (room >= PORTS_LEN && rss->types & with)
		return (struct hca_rss_hash){
			.value = add(rss, add(rss, 0, 0, addr, len), len, l4,
				     PORTS_LEN),
			.valid = true, .l4 = true,
		};
	if (rss->types & (v6 ? QHCA_RSS_IPV6 : QHCA_RSS_IPV4))
		return (struct hca_rss_hash){
			.value = add(rss, 0, 0, addr, len), .valid = true,
		};
	return (struct hca_rss_hash){ .valid = false };
}

static struct hca_rss_hash hash_ipv4(const struct hca_rss *rss,
				     const uint8_t *ip, size_t room)
{
	size_t ihl;

	if (room < IPV4_HLEN || ip[0] >> 4 != 4)
		return (struct hca_rss_hash){ .valid = false };
	ihl = (size_t)(ip[0] & 15) * 4;
	if (ihl < IPV4_HLEN || ihl > room || get_be16(ip + 6) & IPV4_FRAGMENT)
		ihl = room;		/* as if there were no ports */
	return hash_of(rss, false, ip + 12, ip[9], ip + ihl, room - ihl);
}

static struct hca_rss_hash hash_ipv6(const struct hca_rss *rss,
				     const uint8_t *ip, size_t room)
{
	if (room < IPV6_HLEN || ip[0] >> 4 != 6)
		return (struct hca_rss_hash){ .valid = false };
	return hash_of(rss, true, ip + 8, ip[6], ip + IPV6_HLEN,
		       room - IPV6_HLEN);
}

struct hca_rss_hash hca_rss_hash(const struct hca_rss *rss, const uint8_t *frame,
				 size_t len)
{
	size_t off = HCA_ETH_HLEN;
	uint16_t type = get_be16(frame + 12);

	if (type == HCA_ETHERTYPE_VLAN && len >= off + HCA_VLAN_HLEN) {
		type = get_be16(frame + 16);
		off += HCA_VLAN_HLEN;
	}
	if (type == HCA_ETHERTYPE_IPV4)
		return hash_ipv4(rss, frame + off, len - off);
	if (type == HCA_ETHERTYPE_IPV6)
		return hash_ipv6(rss, frame + off, len - off);
	return (struct hca_rss_hash){ .valid = false };
}
