// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cover.h"

#include <string.h>

#define MAP		65536u		/* a power of two */

static uint8_t map[MAP], known[MAP];
static uint32_t last;

void __sanitizer_cov_trace_pc(void);

/* Places count from one of our own: where the program lies is chance. */
void __sanitizer_cov_trace_pc(void)
{
	uintptr_t pc = (uintptr_t)__builtin_return_address(0) -
		       (uintptr_t)&cover_begin;
	uint32_t place = (uint32_t)(pc * 0x9e3779b1u >> 12);

	map[(place ^ last) % MAP]++;
	last = place >> 1;
}

void cover_begin(void)
{
	memset(map, 0, sizeof(map));
	last = 0;
}

/* 1, 2, 3, 4-7, 8-15, 16-31, 32-127, 128 and more: a bit each */
static uint8_t class_of(uint8_t count)
{
	if (count < 4)
		return (uint8_t)(1u << count >> 1);
	if (count < 32)
		return count < 8 ? 8 : count < 16 ? 16 : 32;
	return count < 128 ? 64 : 128;
}

bool cover_news(void)
{
	bool news = false;
	uint64_t word;

	for (uint32_t i = 0; i < MAP; i += sizeof(word)) {
		memcpy(&word, map + i, sizeof(word));
		for (uint32_t k = i; word && k < i + sizeof(word); k++) {
			uint8_t c = map[k] ? class_of(map[k]) : 0;

			news |= c & ~known[k];
			known[k] |= c;
		}
	}
	return news;
}

uint32_t cover_known(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < MAP; i++)
		n += (uint32_t)__builtin_popcount(known[i]);
	return n;
}
