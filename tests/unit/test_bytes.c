// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

static void test_words(void **state)
{
	static const uint8_t b[9] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
	uint8_t w[9] = { 0 };

	(void)state;
	/* The addresses are odd on purpose. */
	assert_int_equal(get_le16(b + 1), 0x0201);
	assert_int_equal(get_be16(b + 1), 0x0102);
	assert_int_equal(get_be24(b + 1), 0x010203);
	assert_int_equal(get_le32(b + 1), 0x04030201);
	assert_int_equal(get_be32(b + 1), 0x01020304);
	assert_int_equal(get_le64(b + 1), 0x0807060504030201);
	assert_int_equal(get_be64(b + 1), 0x0102030405060708);
	put_le16(w + 1, 0x0201);
	put_be16(w + 3, 0x0304);
	put_be24(w + 5, 0x050607);
	assert_memory_equal(w + 1, b + 1, 7);
	put_le32(w + 1, 0x04030201);
	put_be32(w + 5, 0x05060708);
	assert_memory_equal(w + 1, b + 1, 8);
	put_be64(w + 1, 0x0102030405060708);
	assert_memory_equal(w + 1, b + 1, 8);
	put_le64(w + 1, 0x0807060504030201);
	assert_memory_equal(w + 1, b + 1, 8);
}

static void test_range(void **state)
{
	(void)state;
	assert_true(hca_range_inside(10, 5, 10, 5));
	assert_true(hca_range_inside(15, 0, 10, 5));
	assert_false(hca_range_inside(9, 1, 10, 5));
	assert_false(hca_range_inside(11, 5, 10, 5));
	assert_false(hca_range_inside(16, 0, 10, 5));
	/* A sum would wrap here. */
	assert_false(hca_range_inside(UINT64_MAX, 2, 0, UINT64_MAX));
	assert_true(hca_range_inside(UINT64_MAX - 1, 1, 0, UINT64_MAX));
	assert_false(hca_range_inside(4, UINT64_MAX, 0, 8));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_words),
	cmocka_unit_test(test_range),
};
TEST_MAIN(tests)
