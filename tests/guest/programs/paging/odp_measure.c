// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* How long it takes to deregister regions. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "odp.h"

/* Nanoseconds for deregistering so many regions. */
static uint64_t time_dereg(struct ibv_mr **mr, unsigned int num, void *mem,
			   int access, bool present)
{
	uint64_t start;

	for (unsigned int i = 0; i < num; i++) {
		struct ibv_sge sge = { (uintptr_t)mem, LEN };

		mr[i] = ibv_reg_mr(t.pd, mem, LEN, access);
		if (!mr[i])
			die("ibv_reg_mr: %s", strerror(errno));
		sge.lkey = mr[i]->lkey;
		if (present &&
		    ibv_advise_mr(t.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				  IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1))
			die("ibv_advise_mr");
	}
	start = now_ns();
	for (unsigned int i = 0; i < num; i++)
		if (ibv_dereg_mr(mr[i]))
			die("ibv_dereg_mr: %s", strerror(errno));
	return now_ns() - start;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

#define ROUNDS	20u

/* Each kind in turn, in rounds: the median of these, since a guest may be held up. */

int measure(unsigned int num)
{
	struct ibv_mr **mr = calloc(num, sizeof(*mr));
	uint8_t *mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	static const struct {
		const char *name;
		int access;
		bool present;
	} kind[] = {
		{ "pinned", ACCESS & ~IBV_ACCESS_ON_DEMAND, false },
		{ "unused", ACCESS, false },
		{ "present", ACCESS, true },
	};
	uint64_t took[3][ROUNDS], sum;

	if (!mr || mem == MAP_FAILED)
		die("no memory");
	/* A huge page would be one thing to unpin, and 512 pages on demand. */
	madvise(mem, LEN, MADV_NOHUGEPAGE);
	memset(mem, 1, LEN);
	num /= ROUNDS;
	for (unsigned int r = 0; r < ROUNDS; r++)
		for (int k = 0; k < 3; k++)
			took[k][r] = time_dereg(mr, num, mem, kind[k].access,
						kind[k].present);
	for (int k = 0; k < 3; k++) {
		sum = 0;
		for (unsigned int r = 0; r < ROUNDS; r++)
			sum += took[k][r];
		qsort(took[k], ROUNDS, sizeof(**took), compare);
		printf("%s %llu ns (mean %llu)\n", kind[k].name,
		       (unsigned long long)took[k][ROUNDS / 2] / num,
		       (unsigned long long)sum / ROUNDS / num);
	}
	return 0;
}
