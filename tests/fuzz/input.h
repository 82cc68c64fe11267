/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The bytes of an input, taken from the front.  An input that has run out
 * gives zeros, so that every string of bytes is a whole script.
 */
#ifndef QHCA_FUZZ_INPUT_H
#define QHCA_FUZZ_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct in {
	const uint8_t *at, *end;
};

static inline bool in_more(const struct in *in)
{
	return in->at < in->end;
}

static inline uint8_t in_u8(struct in *in)
{
	return in_more(in) ? *in->at++ : 0;
}

/* Little-endian, of @bytes bytes. */
static inline uint64_t in_word(struct in *in, unsigned int bytes)
{
	uint64_t v = 0;

	for (unsigned int i = 0; i < bytes; i++)
		v |= (uint64_t)in_u8(in) << 8 * i;
	return v;
}

/* 0 ... n - 1, with as few bytes as that takes. */
static inline uint32_t in_below(struct in *in, uint32_t n)
{
	return (uint32_t)(in_word(in, n <= 256 ? 1 : n <= 65536 ? 2 : 4) % n);
}

/* True for @of in 256 values of a byte; the byte 0 is false. */
static inline bool in_chance(struct in *in, unsigned int of)
{
	return in_u8(in) > 255 - of;
}

static inline void in_fill(struct in *in, void *to, size_t len)
{
	uint8_t *p = to;

	while (len--)
		*p++ = in_u8(in);
}

/* A number of the kinds that reveal bugs: small, at an edge, or any. */
static inline uint64_t in_number(struct in *in)
{
	static const uint64_t edge[] = {
		0xff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff,
		0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
		0xffffffffffffffff, 0xfffffffffffff000, 4095, 4096, 4097,
		63, 64, 65, 127, 128, 512, 65535, 65536, 0xffffff, 0x1000000,
		0xfffffffe, 0x80000001,
	};
	uint8_t how = in_u8(in);

	if (how < 160)
		return how % 40;
	if (how < 160 + sizeof(edge) / sizeof(*edge))
		return edge[how - 160];
	return in_word(in, how < 200 ? 2 : how < 240 ? 4 : 8);
}

#define IN_ONE_OF(in, array) \
	((array)[in_below(in, sizeof(array) / sizeof(*(array)))])

#endif /* QHCA_FUZZ_INPUT_H */
