/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Programs that run many seeds, and what a seed decides in all of them.
 */
#ifndef QHCA_SEEDS_H
#define QHCA_SEEDS_H

#include "world.h"

/* A random pick of the list. */
#define ONE_OF(w, ...) \
	seeds_one_of(w, (const uint32_t[]){ __VA_ARGS__ }, \
		     sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)
uint32_t seeds_one_of(struct world *w, const uint32_t *v, uint32_t n);

/* Delay, and often loss, duplicates, corruption, other order, blocking. */
void seeds_link(struct world *w, struct world_link *link);
/* Caches of 1 x 1 to 4 x 4, or the default; memory in one piece or shuffled. */
void seeds_init(struct world *w, struct md_init *init);

/* What the adapters of a seed take in one frame, bytes of payload; 0: packets alone. */
uint32_t seeds_bundle(uint64_t seed);

struct seeds {
	const char *name;		/* of the program */
	/* false: the seed failed, and has said why */
	bool (*run)(uint64_t seed, bool verbose);
	/* NULL, or what to say of the seeds since the last call; false: bad */
	bool (*sum_up)(void);
};

/*
 * main(): with --migrate hosts move in the middle of everything; --seeds A..B prints a TAP point for each hundred seeds, --seed N [-v]
 * one for that seed.
 */
int seeds_main(const struct seeds *s, int argc, char **argv);

#endif /* QHCA_SEEDS_H */
