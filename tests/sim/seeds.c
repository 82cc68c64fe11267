/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "seeds.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEEDS_A_POINT	100

uint32_t seeds_one_of(struct world *w, const uint32_t *v, uint32_t n)
{
	return v[world_pick(w, n)];
}

static struct qhca_geometry small_cache(struct world *w)
{
	static const struct qhca_geometry g[] = {
		{ 1, 1 }, { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 }, { 4, 4 },
		{ 0, 0 },
	};

	return g[world_pick(w, sizeof(g) / sizeof(*g))];
}

/* --migrate: hosts move; --memory: the switch is memory. */
static bool migrate, memory;

static const char *flags(void)
{
	return memory ? (migrate ? " --memory --migrate" : " --memory") :
			(migrate ? " --migrate" : "");
}

void seeds_link(struct world *w, struct world_link *link)
{
	link->delay = ONE_OF(w, 100, 1000, 5000, 50000);
	if (world_chance(w, 700000)) {
		link->loss = ONE_OF(w, 0, 1000, 10000, 30000);
		link->duplicate = ONE_OF(w, 0, 0, 1000, 20000);
		link->corrupt = ONE_OF(w, 0, 0, 1000, 10000);
		link->reorder = ONE_OF(w, 0, 0, 1000, 20000);
		link->jitter = ONE_OF(w, 0, 0, 0, 500, 3000);
	}
	link->block = ONE_OF(w, 0, 0, 0, 1000, 50000);
	if (migrate)
		link->migrate = ONE_OF(w, 300, 2000, 10000);
	if (memory)
		world_use_memory(w);
}

uint32_t seeds_bundle(uint64_t seed)
{
	static const uint32_t size[] = { 0, 4096, 32768 };

	return size[seed % 3];
}

void seeds_init(struct world *w, struct md_init *init)
{
	for (int c = 0; c < QHCA_NUM_CACHES; c++)
		init->cache[c] = small_cache(w);
	init->scatter = world_chance(w, 500000);
}

/* The fake host and the sanitizers end the program: which seed was it? */
static struct {
	const struct seeds *s;
	uint64_t seed;
} now;

static void on_abort(int sig)
{
	(void)sig;
	printf("# again with: %s%s --seed %llu -v\n", now.s->name, flags(),
	       (unsigned long long)now.seed);
	fflush(stdout);
}

static bool run_one(const struct seeds *s, uint64_t seed, bool verbose)
{
	now.s = s;
	now.seed = seed;
	return s->run(seed, verbose);
}

static int run_range(const struct seeds *s, uint64_t first, uint64_t last)
{
	uint64_t points = (last - first) / SEEDS_A_POINT + 1, failed = 0;

	printf("1..%llu\n", (unsigned long long)points);
	for (uint64_t i = 0; i < points; i++) {
		uint64_t from = first + i * SEEDS_A_POINT;
		uint64_t to = from + SEEDS_A_POINT - 1;
		uint64_t bad = 0;

		if (to > last)
			to = last;
		for (uint64_t seed = from; seed <= to && bad < 3; seed++) {
			if (run_one(s, seed, false))
				continue;
			bad++;
			printf("# again with: %s%s --seed %llu -v\n", s->name,
			       flags(), (unsigned long long)seed);
		}
		if (s->sum_up && !s->sum_up())
			bad++;
		printf("%s %llu - seeds %llu to %llu\n", bad ? "not ok" : "ok",
		       (unsigned long long)i + 1, (unsigned long long)from,
		       (unsigned long long)to);
		fflush(stdout);
		failed += bad;
	}
	return failed != 0;
}

int seeds_main(const struct seeds *s, int argc, char **argv)
{
	unsigned long long first = 1, last = 1000;
	bool verbose = false, one = false, ok;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v")) {
			verbose = true;
		} else if (!strcmp(argv[i], "--migrate")) {
			migrate = true;
		} else if (!strcmp(argv[i], "--memory")) {
			memory = true;
		} else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			first = strtoull(argv[++i], NULL, 0);
			one = true;
		} else if (!strcmp(argv[i], "--seeds") && i + 1 < argc &&
			   sscanf(argv[i + 1], "%llu..%llu", &first, &last) == 2 &&
			   first <= last) {
			i++;
		} else {
			fprintf(stderr, "usage: %s [--migrate] [--memory] [--seeds A..B | --seed N [-v]]\n",
				s->name);
			return 2;
		}
	}
	signal(SIGABRT, on_abort);
	if (!one)
		return run_range(s, first, last);
	ok = run_one(s, first, verbose);
	if (s->sum_up)
		s->sum_up();
	printf("1..1\n%s 1 - seed %llu\n", ok ? "ok" : "not ok", first);
	return !ok;
}
