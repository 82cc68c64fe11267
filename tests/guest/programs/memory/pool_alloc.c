// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Cases of allocation: what is given out, and what comes back. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "pool.h"

void case_query(void)
{
	struct ibv_context *ctx = open_it();
	struct qhcadv_pool_attr attr = query(ctx);

	printf("# %llu KiB in %u blocks, the largest piece %llu KiB, %u keys on chip\n",
	       (unsigned long long)attr.total >> 10, attr.num_blocks,
	       (unsigned long long)attr.largest_free >> 10, attr.max_keys);
	MUST(attr.num_blocks && attr.page_size == PAGE);
	MUST(attr.free == attr.total && attr.largest_free <= attr.total);
	MUST(attr.largest_free * attr.num_blocks >= attr.total);
	MUST(qhcadv_query_pool(ctx, &attr, 8) == EINVAL);
	MUST(!ibv_close_device(ctx));
}

void case_allocate(void)
{
	struct ibv_context *ctx = open_it();
	struct qhcadv_pool_attr before = query(ctx);
	struct qhcadv_pool_mem *mem = pool_mem(ctx, 3 * PAGE + 1);

	MUST(mem->length == 4 * PAGE && is_all(mem->addr, 0, mem->length));
	MUST(query(ctx).free == before.free - mem->length);
	memset(mem->addr, 0xa5, mem->length);
	MUST(!qhcadv_free_pool(ctx, mem));
	MUST(query(ctx).free == before.free);
	errno = 0;
	MUST(!qhcadv_alloc_pool(ctx, 0) && errno == EINVAL);
	MUST(!qhcadv_alloc_pool(ctx, ~0ul) && errno == EINVAL);
	MUST(!ibv_close_device(ctx));
}

/* Memory that nobody maps any more returns to the pool, and no other memory does. */
void case_mapped(void)
{
	struct ibv_context *ctx = open_it();
	uint64_t before = query(ctx).free;
	struct qhcadv_pool_mem *mem = pool_mem(ctx, 2 * PAGE), whole = *mem;

	/* The library unmaps the first page only. */
	mem->length = PAGE;
	MUST(!qhcadv_free_pool(ctx, mem));
	MUST(query(ctx).free == before - 2 * PAGE);
	MUST(!munmap((char *)whole.addr + PAGE, PAGE));
	MUST(query(ctx).free == before);
}

#define UNMAPPED	(32 * MIB)

/*
 * Nanoseconds to unmap a buffer but for its first page; @last: with its object
 * and that page gone already, so that the buffer goes with it.
 */
static uint64_t time_unmap(struct ibv_context *ctx, bool last)
{
	struct qhcadv_pool_mem *mem = pool_mem(ctx, UNMAPPED);
	char *rest = (char *)mem->addr + PAGE;
	uint64_t took;

	MUST(is_all(mem->addr, 0, UNMAPPED));
	memset(mem->addr, 0x5a, UNMAPPED);
	/* The mapping belongs to the process either way. */
	MUST(!mprotect(mem->addr, PAGE, PROT_READ));
	mem->length = PAGE;
	if (last)
		MUST(!qhcadv_free_pool(ctx, mem));
	took = now_ns();
	MUST(!munmap(rest, UNMAPPED - PAGE));
	took = now_ns() - took;
	if (!last)
		MUST(!qhcadv_free_pool(ctx, mem));
	return took;
}

/* Memory is not cleared in munmap(), but before it is given out again. */
void case_unmap(void)
{
	uint64_t kept = UINT64_MAX, last = UINT64_MAX, t;
	struct ibv_context *ctx = open_it();

	for (int i = 0; i < 10; i++) {
		t = time_unmap(ctx, false);
		kept = t < kept ? t : kept;
		t = time_unmap(ctx, true);
		last = t < last ? t : last;
	}
	printf("# to unmap 32 MiB: %llu us, with their end %llu us\n",
	       (unsigned long long)kept / 1000, (unsigned long long)last / 1000);
	/* The kernel has a little more to do at the end; clearing is far more. */
	MUST(last < 20 * kept);
}

void case_exhaustion(void)
{
	struct ibv_context *ctx = open_it();
	static struct qhcadv_pool_mem *mem[MAX_PIECES];
	struct qhcadv_pool_attr attr = query(ctx);
	uint64_t sum = 0;
	int n;

	errno = 0;
	MUST(!qhcadv_alloc_pool(ctx, attr.largest_free + 1) && errno == ENOSPC);
	n = take_all(ctx, attr.largest_free, mem);
	while (n)
		MUST(!qhcadv_free_pool(ctx, mem[--n]));
	n = take_all(ctx, 16 * PAGE, mem);
	for (int i = 0; i < n; i++)
		sum += mem[i]->length;
	MUST(sum == attr.total && !query(ctx).free && !query(ctx).largest_free);
	while (n)
		MUST(!qhcadv_free_pool(ctx, mem[--n]));
	MUST(query(ctx).free == attr.total && query(ctx).largest_free == attr.largest_free);
}

/* Freeing every second piece leaves holes, and freeing the others joins them. */
void case_fragmentation(void)
{
	struct ibv_context *ctx = open_it();
	static struct qhcadv_pool_mem *mem[MAX_PIECES];
	struct qhcadv_pool_attr attr = query(ctx);
	struct qhcadv_pool_mem *again;
	int n = take_all(ctx, 16 * PAGE, mem);

	for (int i = 0; i < n; i += 2) {
		memset(mem[i]->addr, 0xee, mem[i]->length);
		MUST(!qhcadv_free_pool(ctx, mem[i]));
	}
	MUST(query(ctx).free >= attr.total / 2);
	MUST(query(ctx).largest_free < attr.largest_free);
	errno = 0;
	MUST(!qhcadv_alloc_pool(ctx, attr.largest_free) && errno == ENOSPC);
	again = pool_mem(ctx, 16 * PAGE);
	MUST(is_all(again->addr, 0, again->length));
	MUST(!qhcadv_free_pool(ctx, again));
	for (int i = 1; i < n; i += 2)
		MUST(!qhcadv_free_pool(ctx, mem[i]));
	MUST(query(ctx).largest_free == attr.largest_free);
	again = pool_mem(ctx, attr.largest_free);
	MUST(is_all(again->addr, 0, again->length));
}
