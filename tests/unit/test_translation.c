// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "region.h"

/* Seed 000, row 1 and 2: a warm key reads no table; the caches are two. */
static void test_two_caches(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(START, 100, 0, false);
	uint64_t reads, pt, at;
	uint8_t out[100];

	(void)state;
	(void)r;
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_misses), 1);
	assert_int_equal(COUNT(h, at_misses), 1);
	assert_int_equal(COUNT(h, at_node_reads), 1);
	reads = h->reads;
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(h->reads, reads + 1);	/* the data */
	assert_int_equal(COUNT(h, pt_hits), 1);
	assert_int_equal(COUNT(h, at_hits), 1);
	/* Only translation lines are invalidated: PT hit, AT miss. */
	inval(h, INDEX, QHCA_INVAL_AT);
	pt = COUNT(h, pt_misses), at = COUNT(h, at_misses);
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_misses), pt);
	assert_int_equal(COUNT(h, at_misses), at + 1);
	/* Only the protection line is invalidated: PT miss, AT hit. */
	inval(h, INDEX, QHCA_INVAL_PT);
	pt = COUNT(h, pt_misses), at = COUNT(h, at_misses);
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_misses), pt + 1);
	assert_int_equal(COUNT(h, at_misses), at);
	host_free(h);
}

/* Pages that follow each other in memory are one DMA. */
static void test_runs(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	uint64_t base = host_alloc(h, 3 * 4096, 4096), reads;
	struct hca_mem_req q = req(START, 10000, 0, false);
	uint8_t out[10000], expect[10000];
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		put_le64(host_ptr(h, r.node + i * 8),
			 (base + i * 4096) | QHCA_ATE_PRESENT);
	for (i = 0; i < sizeof(expect); i++)
		expect[i] = (uint8_t)(i * 31 + (i >> 8));
	memcpy(host_ptr(h, base + (START & 0xfff)), expect, sizeof(expect));
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	reads = h->reads;
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(h->reads, reads + 1);
	assert_memory_equal(out, expect, sizeof(out));
	/* Pages in descending order are not adjacent. */
	put_le64(host_ptr(h, r.node), (base + 4096) | QHCA_ATE_PRESENT);
	put_le64(host_ptr(h, r.node + 8), base | QHCA_ATE_PRESENT);
	inval(h, INDEX, QHCA_INVAL_AT);
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	reads = h->reads;
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(h->reads, reads + 3);
	host_free(h);
}

/* The device finds all pages before it moves a byte. */
static void test_all_or_nothing(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(START, 8192, QHCA_ACCESS_LOCAL_WRITE, false);
	uint8_t in[8192];

	(void)state;
	memset(in, 0xee, sizeof(in));
	put_le64(host_ptr(h, r.node + 16), 0);
	assert_int_equal(hca_mem_write(h->fn, &q, in), HCA_MEM_PROT);
	assert_int_equal(h->fn->mem.reason, HCA_PROT_NOT_PRESENT);
	assert_int_equal(*byte_at(h, &r, 0), 0);
	/* The protection check alone does not look at presence. */
	assert_int_equal(hca_mem_check(h->fn, &q), HCA_MEM_OK);
	/* The page may only be read. */
	put_le64(host_ptr(h, r.node + 16), r.page[2] | QHCA_ATE_PRESENT);
	assert_int_equal(hca_mem_write(h->fn, &q, in), HCA_MEM_PROT);
	assert_int_equal(h->fn->mem.reason, HCA_PROT_READ_ONLY);
	assert_int_equal(*byte_at(h, &r, 0), 0);
	q.access = 0;
	assert_int_equal(hca_mem_read(h->fn, &q, in), HCA_MEM_OK);
	/* The line that this read has left does not permit the write, either. */
	assert_int_equal(hca_mem_write(h->fn, &q, in), HCA_MEM_PROT);
	/* The page was made writable, which needs no invalidation. */
	put_le64(host_ptr(h, r.node + 16), r.page[2] | QHCA_ATE_PRESENT |
		 QHCA_ATE_WRITE);
	q.access = QHCA_ACCESS_LOCAL_WRITE;
	assert_int_equal(hca_mem_write(h->fn, &q, in), HCA_MEM_OK);
	host_free(h);
}

static void test_levels_zero(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(START + 8, 8, 0, false);
	uint64_t out;

	(void)state;
	put_le64(&r.pte->at_base, r.page[0]);
	set_ctrl(r.pte, QHCA_PTE_VALID, QHCA_PTE_MR, OCTET, 0, 0);
	put_le64(byte_at(h, &r, 8), 0x77);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(out, 0x77);
	assert_int_equal(COUNT(h, at_misses), 0);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_two_caches),
	cmocka_unit_test(test_runs),
	cmocka_unit_test(test_all_or_nothing),
	cmocka_unit_test(test_levels_zero),
};
TEST_MAIN(tests)
