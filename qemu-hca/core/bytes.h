/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Loads and stores of little- and big-endian words at any alignment; bits of words.
 */
#ifndef HCA_CORE_BYTES_H
#define HCA_CORE_BYTES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HCA_BIG_ENDIAN 1
#else
#define HCA_BIG_ENDIAN 0
#endif

static inline uint16_t hca_swap16(uint16_t v)
{
	return (uint16_t)(v << 8 | v >> 8);
}

static inline uint32_t hca_swap32(uint32_t v)
{
	return v << 24 | (v & 0xff00u) << 8 | (v >> 8 & 0xff00u) | v >> 24;
}

static inline uint64_t hca_swap64(uint64_t v)
{
	return (uint64_t)hca_swap32((uint32_t)v) << 32 |
	       hca_swap32((uint32_t)(v >> 32));
}

#define HCA_DEFINE_BYTES(bits)						\
static inline uint##bits##_t get_le##bits(const void *p)		\
{									\
	uint##bits##_t v;						\
									\
	memcpy(&v, p, sizeof(v));					\
	return HCA_BIG_ENDIAN ? hca_swap##bits(v) : v;			\
}									\
static inline uint##bits##_t get_be##bits(const void *p)		\
{									\
	uint##bits##_t v;						\
									\
	memcpy(&v, p, sizeof(v));					\
	return HCA_BIG_ENDIAN ? v : hca_swap##bits(v);			\
}									\
static inline void put_le##bits(void *p, uint##bits##_t v)		\
{									\
	v = HCA_BIG_ENDIAN ? hca_swap##bits(v) : v;			\
	memcpy(p, &v, sizeof(v));					\
}									\
static inline void put_be##bits(void *p, uint##bits##_t v)		\
{									\
	v = HCA_BIG_ENDIAN ? v : hca_swap##bits(v);			\
	memcpy(p, &v, sizeof(v));					\
}

HCA_DEFINE_BYTES(16)
HCA_DEFINE_BYTES(32)
HCA_DEFINE_BYTES(64)

/* 24-bit network-order fields of the transport headers. */
static inline uint32_t get_be24(const void *p)
{
	const uint8_t *b = p;

	return (uint32_t)b[0] << 16 | (uint32_t)b[1] << 8 | b[2];
}

static inline void put_be24(void *p, uint32_t v)
{
	uint8_t *b = p;

	b[0] = (uint8_t)(v >> 16);
	b[1] = (uint8_t)(v >> 8);
	b[2] = (uint8_t)v;
}

/* Does [start, start + len) lie inside [base, base + size)?  Overflow-safe. */
static inline bool hca_range_inside(uint64_t start, uint64_t len,
				    uint64_t base, uint64_t size)
{
	return start >= base && len <= size && start - base <= size - len;
}

static inline unsigned int hca_count_bits(uint64_t set)
{
	set -= set >> 1 & 0x5555555555555555ull;
	set = (set & 0x3333333333333333ull) + (set >> 2 & 0x3333333333333333ull);
	set = (set + (set >> 4)) & 0x0f0f0f0f0f0f0f0full;
	return (unsigned int)(set * 0x0101010101010101ull >> 56);
}

/* The number of the lowest bit of @set, which is not 0. */
static inline unsigned int hca_lowest_bit(uint64_t set)
{
	return (unsigned int)__builtin_ctzll(set);
}

#endif /* HCA_CORE_BYTES_H */
