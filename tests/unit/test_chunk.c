// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tables.h"

static void test_map_errors(void **state)
{
	struct host *h = with_tables();
	uint64_t addr[2] = { 0x10000, 0x20000 }, bad = 0x10800, at;

	(void)state;
	assert_int_equal(map(h, 0, 7 | 1 << 8, addr, 1), QHCA_CMD_BAD_PARAM);
	assert_int_equal(map(h, 0, QHCA_TABLE_PT, addr, 1),
			 QHCA_CMD_BAD_PARAM);
	assert_int_equal(map(h, 0, QHCA_TABLE_PT | 513 << 8, addr, 1),
			 QHCA_CMD_BAD_PARAM);
	assert_int_equal(map(h, 16, QHCA_TABLE_PT | 1 << 8, addr, 1),
			 QHCA_CMD_BAD_INDEX);
	assert_int_equal(map(h, 15, QHCA_TABLE_PT | 2 << 8, addr, 2),
			 QHCA_CMD_BAD_INDEX);
	assert_int_equal(map(h, UINT32_MAX, QHCA_TABLE_PT | 2 << 8, addr, 2),
			 QHCA_CMD_BAD_INDEX);
	assert_int_equal(map(h, 0, QHCA_TABLE_PT | 2 << 8, addr, 1),
			 QHCA_CMD_BAD_LEN);
	assert_int_equal(map(h, 0, QHCA_TABLE_PT | 1 << 8, &bad, 1),
			 QHCA_CMD_BAD_PARAM);
	/* The device maps all chunks or none. */
	assert_int_equal(map(h, 1, QHCA_TABLE_PT | 1 << 8, addr, 1),
			 QHCA_CMD_OK);
	assert_int_equal(map(h, 0, QHCA_TABLE_PT | 2 << 8, addr, 2),
			 QHCA_CMD_IN_USE);
	assert_false(hca_table_entry(h->fn, QHCA_TABLE_PT, 2, &at));
	assert_int_equal(unmap(h, 0, QHCA_TABLE_PT | 2 << 8),
			 QHCA_CMD_NOT_MAPPED);
	assert_true(hca_table_entry(h->fn, QHCA_TABLE_PT, 64, &at));
	assert_int_equal(unmap(h, 1, QHCA_TABLE_PT | 1 << 8), QHCA_CMD_OK);
	assert_false(hca_table_entry(h->fn, QHCA_TABLE_PT, 64, &at));
	host_free(h);
}

/* The device does not unmap a chunk with a live object. */
static void test_unmap_live(void **state)
{
	struct host *h = host_new_ready();
	struct ring eq = host_ring(h, 4), cq = host_ring(h, 4);

	(void)state;
	assert_int_equal(host_create_eq(h, 1, &eq, 0), QHCA_CMD_OK);
	assert_int_equal(host_create_cq(h, 33, &cq, 1), QHCA_CMD_OK);
	assert_int_equal(unmap(h, 0, QHCA_TABLE_EQ | 1 << 8), QHCA_CMD_IN_USE);
	/* 64 CQ contexts of 128 bytes need two chunks. */
	assert_int_equal(unmap(h, 1, QHCA_TABLE_CQ | 1 << 8), QHCA_CMD_IN_USE);
	assert_int_equal(unmap(h, 0, QHCA_TABLE_CQ | 1 << 8), QHCA_CMD_OK);
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_CQ, 33, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	assert_int_equal(unmap(h, 1, QHCA_TABLE_CQ | 1 << 8), QHCA_CMD_OK);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_map_errors),
	cmocka_unit_test(test_unmap_live),
};
TEST_MAIN(tests)
