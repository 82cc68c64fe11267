// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Pages that the kernel moves, merges, splits and puts together. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "odp.h"

/* Pages that have moved, and others that took their place. */
void test_moved(void)
{
	struct area a = make_area(ACCESS), b = make_area(ACCESS);
	uint8_t *other = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	make_qps();
	fill(a.mem, LEN, 21);
	fill(other, LEN, 22);
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	/* Pages of b move away, and those of @other into their place. */
	uint8_t *away = mmap(NULL, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);

	CHECK(mremap(b.mem, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, away) ==
	      away);
	CHECK(mremap(other, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, b.mem) ==
	      b.mem);
	do_op(IBV_WR_RDMA_READ, &a, 0, &b, 0, LEN);
	CHECK(is_filled(a.mem, LEN, 22));
	fill(a.mem, LEN, 23);
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	CHECK(is_filled(b.mem, LEN, 23));
	CHECK(is_filled(away, LEN, 21));
	munmap(away, LEN);
	drop_qps();
	drop_area(&a);
	drop_area(&b);
}

static bool write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool ok = f && fputs(text, f) >= 0;

	return f && !fclose(f) && ok;
}

static unsigned long read_number(const char *path)
{
	unsigned long n = 0;
	FILE *f = fopen(path, "r");

	if (!f || fscanf(f, "%lu", &n) != 1)
		n = 0;
	if (f)
		fclose(f);
	return n;
}

#define KSM "/sys/kernel/mm/ksm/"

/* Equal pages that the kernel makes one are two again when one is written. */
void test_merged(void)
{
	struct area a = make_area(ACCESS), b = make_area(ACCESS);
	uint64_t limit = now_ns() + 60000000000ull;
	size_t half = LEN / 2;

	make_qps();
	memset(a.mem, 0x31, LEN);
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	CHECK(!madvise(b.mem, LEN, MADV_MERGEABLE));
	CHECK(write_file(KSM "pages_to_scan", "20000"));
	CHECK(write_file(KSM "sleep_millisecs", "0"));
	CHECK(write_file(KSM "run", "1"));
	while (read_number(KSM "pages_sharing") < PAGES / 2 &&
	       now_ns() < limit)
		usleep(20000);
	CHECK(read_number(KSM "pages_sharing") >= PAGES / 2);
	/* The requests read what is shared, and write half of it, in parts of pages. */
	do_op(IBV_WR_RDMA_READ, &a, 0, &b, 0, LEN);
	fill(a.mem, LEN, 32);
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, half - 100);
	CHECK(is_filled(b.mem, half - 100, 32));
	for (size_t i = half - 100; i < LEN; i++)
		CHECK(tap_check_has_failed() || b.mem[i] == 0x31);
	CHECK(write_file(KSM "run", "2"));
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	CHECK(is_filled(b.mem, LEN, 32));
	CHECK(write_file(KSM "run", "0"));
	drop_qps();
	drop_area(&a);
	drop_area(&b);
}

/* Huge pages, which are split, put together, and given back in parts. */
void test_huge(void)
{
	const size_t huge = 2u << 20, len = 4 * huge;
	struct area a = make_area(ACCESS), b = { 0 };
	uint8_t *map = mmap(NULL, len + huge, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	b.mem = (uint8_t *)(((uintptr_t)map + huge - 1) & ~(huge - 1));
	CHECK(!madvise(b.mem, len, MADV_HUGEPAGE));
	b.mr = ibv_reg_mr(t.pd, b.mem, len, ACCESS);
	if (!b.mr)
		die("ibv_reg_mr: %s", strerror(errno));
	make_qps();
	fill(a.mem, LEN, 41);
	for (int i = 0; i < 4; i++)
		do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, i * huge, LEN);
	/* One goes whole, a part of another goes, and a third is split by its rights. */
	CHECK(!madvise(b.mem, huge, MADV_DONTNEED));
	CHECK(!madvise(b.mem + huge + 5 * PAGE, 7 * PAGE, MADV_DONTNEED));
	CHECK(!mprotect(b.mem + 2 * huge, 3 * PAGE, PROT_READ));
	CHECK(!mprotect(b.mem + 2 * huge, 3 * PAGE, PROT_READ | PROT_WRITE));
	fill(a.mem, LEN, 42);
	for (int i = 0; i < 3; i++) {
		do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, i * huge, LEN);
		CHECK(is_filled(b.mem + i * huge, LEN, 42));
	}
	CHECK(is_filled(b.mem + 3 * huge, LEN, 41));
	drop_qps();
	CHECK(!ibv_dereg_mr(b.mr));
	munmap(map, len + huge);
	drop_area(&a);
}
