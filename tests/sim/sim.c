/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The simulator: sim [--storm | --guests] [--migrate] [--memory] --seeds A..B, or --seed N [-v] to
 * repeat one.
 */
#include <stdio.h>
#include <string.h>

#include "seeds.h"
#include "workload.h"

#define MEM_LEN		(48u << 20)

/* The device has room for 1, 2 or 4 queue descriptors, fewer than there are queues. */
static void few_descriptors(struct world *w, struct md_init *init)
{
	static const struct qhca_geometry g[] = {
		{ 1, 1 }, { 2, 1 }, { 1, 2 }, { 4, 1 }, { 2, 2 }, { 1, 4 },
	};
	static const enum qhca_cache_id id[] = {
		QHCA_CACHE_QD, QHCA_CACHE_CQ, QHCA_CACHE_SRQ,
	};

	for (size_t i = 0; i < sizeof(id) / sizeof(*id); i++)
		init->cache[id[i]] = g[world_pick(w, sizeof(g) / sizeof(*g))];
}

/* --guests: the first host has virtual functions with stage 2. */
static bool guests;

static void make_guests(struct world *w, struct plan *p,
			const struct qhca_config *cfg)
{
	static const struct qhca_geometry s2[] = {
		{ 1, 1 }, { 1, 2 }, { 4, 2 }, { 16, 4 }, { 0, 0 },
	};

	p->guests = cfg;
	p->init[0].s2 = s2[world_pick(w, 5)];
	p->init[0].log_eq = ONE_OF(w, 1, 2, 10);
	/* A READ is repeated seven times, and each time may find a page gone. */
	p->guest_fault_ns = ONE_OF(w, 1, 20000, 500000, 3000000);
	p->guest_take = p->guest_fault_ns > 500000 ? 5000 :
			p->guest_fault_ns > 20000 ? ONE_OF(w, 5000, 50000) :
			ONE_OF(w, 5000, 50000, 300000);
	p->guest_upset = ONE_OF(w, 0, 2000, 20000);
}

/* --storm: all memory is on demand, and the host takes pages away all the time. */
static bool storm;

static void make_storm(struct world *w, struct plan *p)
{
	p->odp = 1000000;
	p->frames = ONE_OF(w, 24, 60, 300);
	p->take = ONE_OF(w, 50000, 200000, 500000);
	p->fault_ns = ONE_OF(w, 1, 5000, 50000);
	for (int h = 0; h < 2; h++) {
		static const struct qhca_geometry tiny[] = {
			{ 1, 1 }, { 1, 2 }, { 2, 1 }, { 4, 2 },
		};

		for (int id = QHCA_CACHE_PT; id <= QHCA_CACHE_AT; id++)
			p->init[h].cache[id] = tiny[world_pick(w, 4)];
		p->init[h].log_eq = ONE_OF(w, 1, 2, 10);
		p->init[h].flags = world_chance(w, 300000) ?
				   QHCA_INIT_NO_UNSOL_ACK : 0;
	}
}

static void make_plan(struct world *w, struct plan *p,
		      const struct qhca_config *cfg)
{
	memset(p, 0, sizeof(*p));
	seeds_link(w, &p->link);
	for (int h = 0; h < 2; h++) {
		seeds_init(w, &p->init[h]);
		few_descriptors(w, &p->init[h]);
	}
	p->pairs = 1 + world_pick(w, 4);
	p->ops = ONE_OF(w, 4, 20, 60, 150);
	p->max_len = ONE_OF(w, 64, 1000, 5000, 5000, 16384);
	p->big_ppm = ONE_OF(w, 0, 0, 50000);
	p->srq = world_chance(w, 400000);
	p->slow_recv = world_chance(w, 200000);
	if (storm) {
		make_storm(w, p);
	} else if (world_chance(w, 250000)) {
		p->odp = ONE_OF(w, 300000, 1000000);
		p->frames = ONE_OF(w, 24, 100, 1000);
		p->take = ONE_OF(w, 0, 5000, 50000);
		p->fault_ns = ONE_OF(w, 1, 20000, 500000, 3000000);
		for (int h = 0; h < 2; h++) {
			p->init[h].log_eq = ONE_OF(w, 1, 2, 10);
			p->init[h].flags = world_chance(w, 300000) ?
					   QHCA_INIT_NO_UNSOL_ACK : 0;
		}
	}
	if (guests)
		make_guests(w, p, cfg);
}

/* Some devices are charged for what their caches miss. */
static bool set_costs(struct world *w)
{
	bool ok = true;
	char err[100];

	for (int h = 0; h < 2; h++) {
		struct qhca_fetch_cost cost = {
			.pt_ns = ONE_OF(w, 0, 0, 50, 400),
			.at_ns = ONE_OF(w, 0, 0, 50, 200),
			.context_ns = ONE_OF(w, 0, 0, 0, 300),
		};

		ok &= qhca_fetch_cost_set(w->host[h]->host.hca, &cost, err,
					  sizeof(err));
	}
	return ok;
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
	cfg.max_bundle = seeds_bundle(seed);
	cfg.num_db_pages = 16;
	world_init(&w, seed, 2, MEM_LEN, &cfg);
	make_plan(&w, &plan, &cfg);
	error = set_costs(&w) ? workload_run(&w, &plan) : "bad costs";
	if (error)
		printf("# seed %llu: %s\n", (unsigned long long)seed, error);
	if (verbose)
		printf("# seed %llu: %llu ns, %llu frames, %llu lost, %llu moves\n",
		       (unsigned long long)seed, (unsigned long long)w.now,
		       (unsigned long long)w.frames,
		       (unsigned long long)w.lost,
		       (unsigned long long)w.moved);
	world_fini(&w);
	return !error;
}

int main(int argc, char **argv)
{
	struct seeds seeds = { .name = "sim", .run = run_seed };

	if (argc > 1 && !strcmp(argv[1], "--storm")) {
		storm = true;
		seeds.name = "sim --storm";
		argv++;
		argc--;
	} else if (argc > 1 && !strcmp(argv[1], "--guests")) {
		guests = true;
		seeds.name = "sim --guests";
		seeds.sum_up = workload_guests_sum_up;
		argv++;
		argc--;
	}
	return seeds_main(&seeds, argc, argv);
}
