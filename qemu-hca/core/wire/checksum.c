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

	/* byte order does not matter to the sum until it is folded */
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
