/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The simulator: sim --seeds A..B, or sim --seed N [-v] to see one again.
 * Output is TAP, a point for each hundred seeds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload.h"

#define MEM_LEN		(48u << 20)
#define SEEDS_A_POINT	100

static struct qhca_geometry small_cache(struct world *w)
{
	static const struct qhca_geometry g[] = {
		{ 1, 1 }, { 1, 1 }, { 2, 1 }, { 1, 2 }, { 2, 2 }, { 4, 4 },
		{ 0, 0 },
	};

	return g[world_pick(w, sizeof(g) / sizeof(*g))];
}

static uint32_t one_of(struct world *w, const uint32_t *v, uint32_t n)
{
	return v[world_pick(w, n)];
}

#define ONE_OF(w, ...) \
	one_of(w, (const uint32_t[]){ __VA_ARGS__ }, \
	       sizeof((const uint32_t[]){ __VA_ARGS__ }) / 4)

static void make_plan(struct world *w, struct plan *p)
{
	memset(p, 0, sizeof(*p));
	p->link.delay = ONE_OF(w, 100, 1000, 5000, 50000);
	if (world_chance(w, 700000)) {
		p->link.loss = ONE_OF(w, 0, 1000, 10000, 30000);
		p->link.duplicate = ONE_OF(w, 0, 0, 1000, 20000);
		p->link.corrupt = ONE_OF(w, 0, 0, 1000, 10000);
		p->link.reorder = ONE_OF(w, 0, 0, 1000, 20000);
		p->link.jitter = ONE_OF(w, 0, 0, 0, 500, 3000);
	}
	p->link.block = ONE_OF(w, 0, 0, 0, 1000, 50000);
	for (int h = 0; h < 2; h++) {
		for (int c = 0; c < QHCA_NUM_CACHES; c++)
			p->init[h].cache[c] = small_cache(w);
		p->init[h].scatter = world_chance(w, 500000);
	}
	p->pairs = 1 + world_pick(w, 4);
	p->ops = ONE_OF(w, 4, 20, 60, 150);
	p->max_len = ONE_OF(w, 64, 1000, 5000, 5000, 16384);
	p->big_ppm = ONE_OF(w, 0, 0, 50000);
	p->srq = world_chance(w, 400000);
	p->slow_recv = world_chance(w, 200000);
}

static bool run_seed(uint64_t seed, bool verbose)
{
	struct qhca_config cfg;
	struct world w = { .verbose = verbose };
	const char *error;
	struct plan plan;

	qhca_config_default(&cfg);
	cfg.log_max_qp = cfg.log_max_cq = 10;
	cfg.log_max_pt = 12;
	cfg.log_max_srq = 8;
	cfg.num_db_pages = 16;
	world_init(&w, seed, 2, MEM_LEN, &cfg);
	make_plan(&w, &plan);
	error = workload_run(&w, &plan);
	if (error)
		printf("# seed %llu: %s\n# again with: sim --seed %llu -v\n",
		       (unsigned long long)seed, error,
		       (unsigned long long)seed);
	if (verbose)
		printf("# seed %llu: %llu ns, %llu frames, %llu lost\n",
		       (unsigned long long)seed, (unsigned long long)w.now,
		       (unsigned long long)w.frames,
		       (unsigned long long)w.lost);
	world_fini(&w);
	return !error;
}

static int run_range(uint64_t first, uint64_t last)
{
	uint64_t points = (last - first) / SEEDS_A_POINT + 1, failed = 0;

	printf("1..%llu\n", (unsigned long long)points);
	for (uint64_t i = 0; i < points; i++) {
		uint64_t from = first + i * SEEDS_A_POINT;
		uint64_t to = from + SEEDS_A_POINT - 1;
		uint64_t bad = 0;

		if (to > last)
			to = last;
		for (uint64_t seed = from; seed <= to && bad < 3; seed++)
			bad += !run_seed(seed, false);
		printf("%s %llu - seeds %llu to %llu\n", bad ? "not ok" : "ok",
		       (unsigned long long)i + 1, (unsigned long long)from,
		       (unsigned long long)to);
		fflush(stdout);
		failed += bad;
	}
	return failed != 0;
}

int main(int argc, char **argv)
{
	unsigned long long first = 1, last = 1000;
	bool verbose = false, one = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-v")) {
			verbose = true;
		} else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			first = strtoull(argv[++i], NULL, 0);
			one = true;
		} else if (!strcmp(argv[i], "--seeds") && i + 1 < argc &&
			   sscanf(argv[i + 1], "%llu..%llu", &first, &last) == 2 &&
			   first <= last) {
			i++;
		} else {
			fprintf(stderr, "usage: sim [--seeds A..B | --seed N [-v]]\n");
			return 2;
		}
	}
	if (one) {
		bool ok = run_seed(first, verbose);

		printf("1..1\n%s 1 - seed %llu\n", ok ? "ok" : "not ok", first);
		return !ok;
	}
	return run_range(first, last);
}
