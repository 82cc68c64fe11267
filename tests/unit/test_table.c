// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tables.h"

static void test_check(void **state)
{
	struct qhca_init_table row = { .log_entries = 10, .log_chunk = 12 };

	(void)state;
	assert_true(hca_table_check(QHCA_TABLE_PT, &row, 10));
	assert_false(hca_table_check(QHCA_TABLE_PT, &row, 9));
	row.log_entries = 0;
	assert_false(hca_table_check(QHCA_TABLE_PT, &row, 10));
	row.log_entries = 10;
	row.log_chunk = 11;
	assert_false(hca_table_check(QHCA_TABLE_PT, &row, 10));
	row.log_chunk = 23;
	assert_false(hca_table_check(QHCA_TABLE_PT, &row, 10));
	/* 512 chunks are enough for 2^15 entries of 64 bytes in 4 KiB chunks. */
	row.log_chunk = 12;
	row.log_entries = 15;
	assert_true(hca_table_check(QHCA_TABLE_PT, &row, 24));
	row.log_entries = 16;
	assert_false(hca_table_check(QHCA_TABLE_PT, &row, 24));
	/* A context of 1 KiB is 16 times an entry. */
	row.log_entries = 11;
	assert_true(hca_table_check(QHCA_TABLE_QP, &row, 24));
	row.log_entries = 12;
	assert_false(hca_table_check(QHCA_TABLE_QP, &row, 24));
	/* The device shifts a word by no more bits than it has. */
	row.log_entries = 255;
	assert_false(hca_table_check(QHCA_TABLE_QP, &row, 255));
}

/* PT of 1024 entries in 16 chunks of 64. */
static void test_entry(void **state)
{
	struct host *h = with_tables();
	uint64_t addr[2] = { 0x10000, 0x7000 }, at = 1;

	(void)state;
	assert_int_equal(hca_table_chunks(h->fn, QHCA_TABLE_PT), 16);
	assert_false(hca_table_entry(h->fn, QHCA_TABLE_PT, 64, &at));
	assert_int_equal(at, 1);
	assert_int_equal(map(h, 1, QHCA_TABLE_PT | 2 << 8, addr, 2),
			 QHCA_CMD_OK);
	assert_false(hca_table_entry(h->fn, QHCA_TABLE_PT, 63, &at));
	assert_true(hca_table_entry(h->fn, QHCA_TABLE_PT, 64, &at));
	assert_int_equal(at, 0x10000);
	assert_true(hca_table_entry(h->fn, QHCA_TABLE_PT, 127, &at));
	assert_int_equal(at, 0x10fc0);
	assert_true(hca_table_entry(h->fn, QHCA_TABLE_PT, 128, &at));
	assert_int_equal(at, 0x7000);
	assert_false(hca_table_entry(h->fn, QHCA_TABLE_PT, 192, &at));
	/* The index is beyond the table, or so large that the shift would wrap. */
	assert_false(hca_table_entry(h->fn, QHCA_TABLE_PT, 1024 + 64, &at));
	assert_false(hca_table_entry(h->fn, QHCA_TABLE_PT, UINT32_MAX, &at));
	host_free(h);
}

/* A chunk at bus address 0 counts as mapped. */
static void test_zero_address(void **state)
{
	struct host *h = with_tables();
	uint64_t addr = 0, at = 1;

	(void)state;
	assert_int_equal(map(h, 0, QHCA_TABLE_PT | 1 << 8, &addr, 1),
			 QHCA_CMD_OK);
	assert_true(hca_table_entry(h->fn, QHCA_TABLE_PT, 2, &at));
	assert_int_equal(at, 128);
	host_free(h);
}

/* ---- walks */

static void put_ate(struct host *h, uint64_t node, unsigned int i, uint64_t ate)
{
	put_le64(host_ptr(h, node + i * 8), ate);
}

static void test_walk_levels(void **state)
{
	struct host *h = host_new(NULL);
	struct hca_at_root root = { .page_shift = 12 };
	uint64_t node[5], entry, reads, offset;
	unsigned int level;

	(void)state;
	/* Entry 3 of every node leads on: the page is at index 3,3,3... */
	for (level = 0; level < 5; level++) {
		node[level] = host_alloc(h, 512 * 8, 64);
		put_ate(h, node[level], 3, QHCA_ATE_PRESENT |
			(level ? node[level - 1] :
				 (0x5000 | QHCA_ATE_WRITE)));
	}
	for (level = 1, offset = 0; level <= 5; level++) {
		offset |= 3ull << (12 + 9 * (level - 1));
		root.base = node[level - 1];
		root.levels = (uint8_t)level;
		reads = 0;
		assert_int_equal(hca_at_walk(h->fn, &root, offset + 77,
					     &entry, &reads), HCA_WALK_OK);
		assert_int_equal(entry, 0x5000 | QHCA_ATE_PRESENT |
				 QHCA_ATE_WRITE);
		assert_int_equal(reads, level);
		/* A neighbour at the lowest level is absent. */
		assert_int_equal(hca_at_walk(h->fn, &root, offset + 4096,
					     &entry, NULL), HCA_WALK_ABSENT);
		/* The index of the root is not masked. */
		assert_int_equal(hca_at_walk(h->fn, &root,
					     1ull << (12 + 9 * level), &entry,
					     NULL), HCA_WALK_RANGE);
	}
	host_free(h);
}

static void test_walk_large_leaf(void **state)
{
	struct host *h = host_new(NULL);
	struct hca_at_root root = { .page_shift = 12, .levels = 2 };
	uint64_t entry;

	(void)state;
	root.base = host_alloc(h, 512 * 8, 64);
	/* Low bits of a leaf's address are ignored. */
	put_ate(h, root.base, 1, 0x40005000 | QHCA_ATE_PRESENT | QHCA_ATE_LEAF);
	assert_int_equal(hca_at_walk(h->fn, &root, 0x200000 + 0x7123, &entry,
				     NULL), HCA_WALK_OK);
	assert_int_equal(entry, 0x40007000 | QHCA_ATE_PRESENT);
	host_free(h);
}

/*
 * The walk reads only the entry of a level-1 node at the end of memory, and nothing
 * beyond it.
 */
static void test_walk_dma(void **state)
{
	struct host *h = host_new(NULL);
	struct hca_at_root root = {
		.base = RAM_SIZE - 64, .page_shift = 12, .levels = 1,
	};
	uint64_t entry;

	(void)state;
	assert_int_equal(hca_at_walk(h->fn, &root, 7 << 12, &entry, NULL),
			 HCA_WALK_ABSENT);
	assert_int_equal(hca_at_walk(h->fn, &root, 8 << 12, &entry, NULL),
			 HCA_WALK_DMA);
	root.levels = 0;
	assert_int_equal(hca_at_walk(h->fn, &root, 0, &entry, NULL),
			 HCA_WALK_RANGE);
	/* The walk ends a loop of nodes after the last level. */
	root.base = host_alloc(h, 512 * 8, 64);
	root.levels = 5;
	put_ate(h, root.base, 0, root.base | QHCA_ATE_PRESENT);
	assert_int_equal(hca_at_walk(h->fn, &root, 0, &entry, NULL),
			 HCA_WALK_OK);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_check),
	cmocka_unit_test(test_entry),
	cmocka_unit_test(test_zero_address),
	cmocka_unit_test(test_walk_levels),
	cmocka_unit_test(test_walk_large_leaf),
	cmocka_unit_test(test_walk_dma),
};
TEST_MAIN(tests)
