// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cases of speed and caches, beside ordinary memory. */
#define _GNU_SOURCE
#include <stdio.h>

#include "pool.h"

#define CHURN_KEYS	256

/*
 * Ordinary keys, more than the caches hold, one after the other; between them,
 * if @pool, a request from pool memory to pool memory. Returns PT lookups.
 */
static uint64_t churn(struct ends *e, struct ibv_mr **plain, struct ibv_mr **pool, int rounds,
		      double *missed)
{
	uint64_t misses = counter("pt_misses") + counter("at_misses");
	uint64_t hits = counter("pt_hits") + counter("at_hits");

	for (int i = 0; i < rounds * CHURN_KEYS; i++) {
		int k = i % CHURN_KEYS;

		MUST(write_to(e, plain[k], plain[(k + CHURN_KEYS / 2) % CHURN_KEYS], 64) == IBV_WC_SUCCESS);
		if (pool)
			MUST(write_to(e, pool[i % 2], pool[1 - i % 2], 64) == IBV_WC_SUCCESS);
	}
	misses = counter("pt_misses") + counter("at_misses") - misses;
	hits = counter("pt_hits") + counter("at_hits") - hits;
	*missed = (double)misses / (hits + misses);
	return hits + misses;
}

void case_churn(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 2 * PAGE);
	uint8_t *plain = pages(CHURN_KEYS * PAGE);
	struct ibv_mr *key[CHURN_KEYS], *pool[2];
	uint64_t alone, with, bank, direct;
	double miss_alone, miss_with;
	const int rounds = 3;

	for (int i = 0; i < CHURN_KEYS; i++)
		MUST((key[i] = ibv_reg_mr(e.pd, plain + i * PAGE, PAGE, RW)));
	for (int i = 0; i < 2; i++)
		MUST((pool[i] = ibv_reg_mr(e.pd, (char *)mem->addr + i * PAGE, PAGE, RW)));
	alone = churn(&e, key, NULL, rounds, &miss_alone);
	bank = counter("pool_bank_hits");
	direct = counter("pool_direct_uses");
	with = churn(&e, key, pool, rounds, &miss_with);
	bank = counter("pool_bank_hits") - bank;
	direct = counter("pool_direct_uses") - direct;
	printf("# ordinary memory: %llu lookups, %.0f%% missed; with %llu accesses of the pool: %llu, %.0f%%\n",
	       (unsigned long long)alone, 100 * miss_alone, (unsigned long long)direct,
	       (unsigned long long)with, 100 * miss_with);
	MUST(miss_alone > 0.5 && miss_with > 0.5);
	/* The bank has each key, and the caches have not one look-up more. */
	MUST(direct == 2u * rounds * CHURN_KEYS && bank == direct);
	MUST(with == alone);
}

static uint64_t time_reg(struct ibv_pd *pd, void **addr, size_t length, int n, struct ibv_mr **mr)
{
	uint64_t start = now_ns(), took;

	for (int i = 0; i < n; i++)
		MUST((mr[i] = ibv_reg_mr(pd, addr[i], length, RW)));
	took = now_ns() - start;
	for (int i = 0; i < n; i++)
		MUST(!ibv_dereg_mr(mr[i]));
	return took;
}

#define TIMED	(64 * MIB)

/* 64 MiB of the pool, in pieces as large as its blocks, against pages. */
void case_registration(void)
{
	struct ends e = open_ends();
	size_t piece = query(e.ctx).largest_free;
	void *plain, *part[TIMED / (64 << 10)];
	struct ibv_mr *mr[TIMED / (64 << 10)];
	uint64_t pool = UINT64_MAX, ordinary = UINT64_MAX, t;
	int n;

	piece = piece > TIMED ? TIMED : piece;
	n = TIMED / piece;
	MUST(piece >= 64 << 10 && n * piece == TIMED);
	for (int i = 0; i < n; i++)
		part[i] = pool_mem(e.ctx, piece)->addr;
	plain = pages(TIMED);
	for (int i = 0; i < 5; i++) {
		t = time_reg(e.pd, part, piece, n, mr);
		pool = t < pool ? t : pool;
		t = time_reg(e.pd, &plain, TIMED, 1, mr);
		ordinary = t < ordinary ? t : ordinary;
	}
	printf("# 64 MiB: pool, %d of %zu KiB, %llu us; 4 KiB pages %llu us; ratio %.1f\n", n,
	       piece >> 10, (unsigned long long)pool / 1000, (unsigned long long)ordinary / 1000,
	       (double)ordinary / pool);
	MUST(ordinary >= 20 * pool);
}
