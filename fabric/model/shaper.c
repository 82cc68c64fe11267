// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The rate of a port. shaper.h explains the algorithm. */
#include "shaper.h"

#define NS_PER_S	1000000000ull

void fab_shaper_set(struct fab_shaper *s, uint64_t rate, uint64_t burst, uint64_t now)
{
	*s = (struct fab_shaper){ .rate = rate };
	if (!rate)
		return;
	/* At most 2^26 bytes, so the product has 59 bits. */
	s->depth = (int64_t)(burst * 8 * NS_PER_S / rate);
	s->full = (int64_t)now - s->depth;
}

uint64_t fab_shaper_depart(struct fab_shaper *s, uint64_t arrival, uint32_t bytes)
{
	int64_t from = (int64_t)arrival, leaves;
	uint64_t time;

	if (!s->rate)
		return arrival;
	if (s->full + s->depth < from) {
		s->full = from - s->depth;
		s->fraction = 0;
	}
	time = (uint64_t)bytes * 8 * NS_PER_S;
	s->full += (int64_t)(time / s->rate);
	s->fraction += time % s->rate;
	if (s->fraction >= s->rate) {
		s->fraction -= s->rate;
		s->full++;
	}
	leaves = s->full + (s->fraction ? 1 : 0);
	return (uint64_t)(leaves > from ? leaves : from);
}
