// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Random numbers, and the log of what each thread did last.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz.h"
#include "lib/peer.h"

static struct log_ring *rings;

void log_create(void)
{
	size_t size = LOG_RINGS * sizeof(*rings);

	rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(rings != MAP_FAILED);
}

struct log_ring *log_ring(unsigned int index)
{
	return &rings[index % LOG_RINGS];
}

void note(struct thread *t, const char *format, ...)
{
	struct log_line *line = &t->log->line[t->ops++ % LOG_LINES];
	va_list args;
	int n;

	n = snprintf(line->text, sizeof(line->text), "%u.%u.%u ", t->round, t->index, t->ops);
	va_start(args, format);
	vsnprintf(line->text + n, sizeof(line->text) - n, format, args);
	va_end(args);
	memcpy(line->magic, LOG_MAGIC, sizeof(line->magic));
	atomic_fetch_add_explicit(&shared->ops, 1, memory_order_relaxed);
}

static uint64_t mix64(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

struct rng rng_of(uint64_t seed, uint64_t round, uint64_t thread)
{
	return (struct rng) { mix64(seed + mix64(round + mix64(thread + 1))) };
}

uint64_t rnd(struct rng *rng)
{
	return mix64(rng->state += 0x9e3779b97f4a7c15ull);
}

uint32_t below(struct rng *rng, uint32_t n)
{
	return n ? rnd(rng) % n : 0;
}

bool chance(struct rng *rng, unsigned int percent)
{
	return below(rng, 100) < percent;
}

uint64_t odd_number(struct rng *rng)
{
	switch (below(rng, 4)) {
	case 0:
		return below(rng, 20);
	case 1:
		return (1ull << below(rng, 64)) + below(rng, 3) - 1;
	case 2:
		return -(uint64_t)below(rng, 20);
	default:
		return rnd(rng) >> below(rng, 64);
	}
}
