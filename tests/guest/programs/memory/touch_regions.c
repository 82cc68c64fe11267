// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Regions of qhca-touch: their memory, and what it must hold in the end. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <linux/memfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "touch.h"

static void check_regions(const struct touch *t)
{
	for (unsigned int k = 0; k < t->num_regions; k++)
		for (unsigned int p = 0; p < t->pages; p++) {
			uint64_t is = *word_of(t, &t->region[k], p);
			uint64_t should = t->region[k].written[p % WORDS];

			if (is != should)
				die("page %u of key %u holds %" PRIu64 ", not %" PRIu64, p, k,
				    is, should);
		}
}

/* One page for each region, mapped as often as it is to have pages. */
static void map_pages(struct touch *t)
{
	unsigned int huge = t->memory == MEMORY_HUGE ? MFD_HUGETLB | MFD_HUGE_2MB : 0;
	int fd = memfd_create("qhca-touch", huge);
	uint8_t *room;

	if (fd < 0 || ftruncate(fd, t->num_regions * t->page_size))
		die("no file in memory: %s", strerror(errno));
	/* There is room to begin at a multiple of the page size. */
	t->mapped_size = t->memory_size + t->page_size;
	room = mmap(NULL, t->mapped_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		die("no room for %zu bytes: %s", t->mapped_size, strerror(errno));
	t->mapped = room;
	t->memory_base = room + -(uintptr_t)room % t->page_size;
	for (unsigned int k = 0; k < t->num_regions; k++)
		for (unsigned int p = 0; p < t->pages; p++)
			if (mmap(t->memory_base + (k * t->pages + p) * t->page_size,
				 t->page_size, PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
				 k * t->page_size) == MAP_FAILED)
				die("page %u of region %u: %s", p, k, strerror(errno));
	close(fd);
}

static void map_memory(struct touch *t)
{
	t->memory_size = t->page_size * t->pages * t->num_regions;
	if (t->memory == MEMORY_SMALL || t->memory == MEMORY_HUGE) {
		map_pages(t);
		return;
	}
	/* The pages are not one and the same, so each needs a word of its own. */
	if (t->pages > WORDS)
		die("%u pages are more than %d", t->pages, WORDS);
	if (t->memory == MEMORY_MALLOC) {
		t->memory_base = aligned_alloc(t->page_size, t->memory_size);
		if (!t->memory_base)
			die("out of memory");
		memset(t->memory_base, 0, t->memory_size);
		return;
	}
	t->pool = touch_pool_alloc(t->ctx, t->memory_size);
	t->memory_base = t->pool->addr;
}

static void unmap_memory(struct touch *t)
{
	if (t->memory == MEMORY_POOL)
		touch_pool_free(t->ctx, t->pool);
	else if (t->memory == MEMORY_MALLOC)
		free(t->memory_base);
	else
		munmap(t->mapped, t->mapped_size);
}

void drop_regions(struct touch *t)
{
	check_regions(t);
	for (unsigned int k = 0; k < t->num_regions; k++) {
		int err = ibv_dereg_mr(t->region[k].mr);

		if (err)
			die("ibv_dereg_mr: %s", strerror(err));
	}
	if (t->num_regions)
		unmap_memory(t);
	free(t->region);
	t->region = NULL;
	t->num_regions = 0;
}

static enum memory memory_of(const char *kind)
{
	if (!strcmp(kind, "small"))
		return MEMORY_SMALL;
	if (!strcmp(kind, "huge"))
		return MEMORY_HUGE;
	if (!strcmp(kind, "malloc"))
		return MEMORY_MALLOC;
	if (!strcmp(kind, "pool"))
		return MEMORY_POOL;
	die("there is no memory of kind %s", kind);
}

void do_regions(struct touch *t, unsigned int num, unsigned int pages,
		const char *kind)
{
	drop_regions(t);
	if (!num || !pages)
		die("no regions of no pages");
	t->memory = memory_of(kind);
	t->page_size = t->memory == MEMORY_HUGE ? HUGE_PAGE : SMALL_PAGE;
	t->num_regions = num;
	t->pages = pages;
	t->region = calloc(num, sizeof(*t->region));
	if (!t->region)
		die("out of memory");
	map_memory(t);
	for (unsigned int k = 0; k < num; k++) {
		struct region *r = &t->region[k];

		r->base = t->memory_base + k * pages * t->page_size;
		r->mr = ibv_reg_mr(t->pd, r->base, pages * t->page_size, ACCESS);
		if (!r->mr)
			die("ibv_reg_mr: %s", strerror(errno));
		if (r->mr->rkey >> 8 != (t->region[0].mr->rkey >> 8) + k)
			die("key %u has index %u, and key 0 %u", k, r->mr->rkey >> 8,
			    t->region[0].mr->rkey >> 8);
	}
}

void do_churn(struct touch *t, unsigned int num)
{
	static uint8_t bytes[SMALL_PAGE] __attribute__((aligned(SMALL_PAGE)));

	while (num--) {
		struct ibv_mr *mr = ibv_reg_mr(t->pd, bytes, sizeof(bytes), ACCESS);

		if (!mr || ibv_dereg_mr(mr))
			die("churn: %s", strerror(errno));
	}
}
