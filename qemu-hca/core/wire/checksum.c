// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The Internet checksum of IP, UDP and TCP.
 */
#include "bytes.h"
#include "wire/ether.h"

static uint32_t fold16(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum;
}

uint32_t hca_csum_add(uint32_t sum, const uint8_t *p, size_t len)
{
	uint64_t native = 0;
	uint32_t word, folded;

	/* Byte order does not matter to the sum until it is folded. */
	for (; len >= 4; p += 4, len -= 4) {
		memcpy(&word, p, sizeof(word));
		native += word;
	}
	word = 0;
	memcpy(&word, p, len);
	native += word;
	folded = fold16(native);
	if (!HCA_BIG_ENDIAN)
		folded = hca_swap16((uint16_t)folded);
	return sum + folded;
}

uint16_t hca_csum_fold(uint32_t sum)
{
	return (uint16_t)~fold16(sum);
}

/* The transport's checksum over @len bytes at @l4; addresses are @addr. */
static bool l4_csum_ok(uint8_t proto, const uint8_t *addr, size_t addr_len,
		       const uint8_t *l4, size_t len)
{
	uint32_t sum;

	if (proto == 17) {
		if (len < 8 || get_be16(l4 + 4) > len || get_be16(l4 + 4) < 8)
			return false;
		if (addr_len == 8 && get_be16(l4 + 6) == 0)
			return true;	/* UDP over IPv4 without checksum */
		len = get_be16(l4 + 4);
	} else if (proto != 6 || len < 20) {
		return false;
	}
	sum = hca_csum_add(proto, addr, addr_len);
	sum += (uint32_t)len & 0xffff;
	return !hca_csum_fold(hca_csum_add(sum, l4, len));
}

bool hca_ipv4_csum_ok(const uint8_t *ip, size_t room)
{
	size_t ihl, total;

	if (room < 20 || ip[0] >> 4 != 4)
		return false;
	ihl = (size_t)(ip[0] & 15) * 4;
	total = get_be16(ip + 2);
	if (ihl < 20 || total < ihl || total > room ||
	    get_be16(ip + 6) & 0x3fff ||
	    hca_csum_fold(hca_csum_add(0, ip, ihl)))
		return false;
	return l4_csum_ok(ip[9], ip + 12, 8, ip + ihl, total - ihl);
}

bool hca_ipv6_csum_ok(const uint8_t *ip, size_t room)
{
	if (room < 40 || ip[0] >> 4 != 6 || get_be16(ip + 4) > room - 40)
		return false;
	return l4_csum_ok(ip[6], ip + 8, 32, ip + 40, get_be16(ip + 4));
}
