/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packet sequence numbers: 24 bits, compared modulo 2^24 (IBTA 9.7.2).
 */
#ifndef HCA_CORE_PSN_H
#define HCA_CORE_PSN_H

#include <stdbool.h>
#include <stdint.h>

#define HCA_PSN_MASK	0xffffffu
#define HCA_PSN_HALF	0x800000u	/* most PSNs that may be outstanding */

static inline uint32_t hca_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & HCA_PSN_MASK;
}

static inline uint32_t hca_psn_sub(uint32_t psn, uint32_t n)
{
	return (psn - n) & HCA_PSN_MASK;
}

/* How far @a is ahead of @b: -2^23 to 2^23 - 1. */
static inline int32_t hca_psn_diff(uint32_t a, uint32_t b)
{
	uint32_t d = (a - b) & HCA_PSN_MASK;

	return d < HCA_PSN_HALF ? (int32_t)d : (int32_t)d - 0x1000000;
}

static inline bool hca_psn_before(uint32_t a, uint32_t b)
{
	return hca_psn_diff(a, b) < 0;
}

/* Is @psn in [@from, @to)?  The range may hold 2^23 numbers. */
static inline bool hca_psn_in(uint32_t psn, uint32_t from, uint32_t to)
{
	return ((psn - from) & HCA_PSN_MASK) < ((to - from) & HCA_PSN_MASK);
}

#endif /* HCA_CORE_PSN_H */
