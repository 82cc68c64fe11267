/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The orders in which the study touches a working set of keys x pages.  The
 * program that drives the device and the unit test that drives the cache
 * alone include this, and so make the same accesses.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum pattern_kind {
	PATTERN_CYCLE,		/* one after the other, again and again */
	PATTERN_RANDOM,		/* each with the same probability */
	PATTERN_HOT,		/* nine in ten to a tenth of them */
	PATTERN_NUM_KINDS
};

struct pattern {
	enum pattern_kind kind;
	uint32_t keys;
	uint32_t pages;			/* of each key */
	uint64_t count;			/* accesses made so far */
	uint64_t rng;
};

struct pattern_access {
	uint32_t key;			/* below keys */
	uint32_t page;			/* below pages */
};

static inline bool pattern_kind_of(const char *name, enum pattern_kind *kind)
{
	static const char *const names[PATTERN_NUM_KINDS] = {
		"cycle", "random", "hot",
	};
	unsigned int i;

	for (i = 0; i < PATTERN_NUM_KINDS; i++)
		if (!strcmp(name, names[i])) {
			*kind = (enum pattern_kind)i;
			return true;
		}
	return false;
}

static inline struct pattern pattern_begin(enum pattern_kind kind,
					   uint32_t keys, uint32_t pages)
{
	struct pattern p = {
		.kind = kind, .keys = keys, .pages = pages, .rng = 1,
	};

	return p;
}

static inline uint64_t pattern_items(const struct pattern *p)
{
	return (uint64_t)p->keys * p->pages;
}

/* Accesses to make: everything once, which is not counted, and then these. */
static inline uint64_t pattern_counted(const struct pattern *p)
{
	uint64_t n = 2 * pattern_items(p);

	return n < 2048 ? 2048 : n;
}

static inline uint64_t pattern_random(struct pattern *p)
{
	uint64_t z = p->rng += 0x9e3779b97f4a7c15ull;	/* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static inline uint64_t pattern_item(struct pattern *p)
{
	uint64_t n = pattern_items(p), hot = (n + 9) / 10, i = p->count++;

	/* The first round meets everything, whatever comes after it. */
	if (i < n || p->kind == PATTERN_CYCLE)
		return i % n;
	if (p->kind == PATTERN_HOT && pattern_random(p) % 10)
		n = hot;
	return pattern_random(p) % n;
}

static inline struct pattern_access pattern_next(struct pattern *p)
{
	uint64_t item = pattern_item(p);
	struct pattern_access a = {
		.key = (uint32_t)(item % p->keys),
		.page = (uint32_t)(item / p->keys),
	};

	return a;
}

#endif /* PATTERN_H */
