// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

#include "wire/psn.h"

static void test_diff(void **state)
{
	(void)state;
	assert_int_equal(hca_psn_diff(5, 3), 2);
	assert_int_equal(hca_psn_diff(3, 5), -2);
	assert_int_equal(hca_psn_diff(0, 0xffffff), 1);
	assert_int_equal(hca_psn_diff(0xffffff, 0), -1);
	assert_int_equal(hca_psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(hca_psn_diff(0x800000, 0), -0x800000);
	assert_true(hca_psn_before(0xfffff0, 0x10));
	assert_false(hca_psn_before(0x10, 0xfffff0));
	assert_false(hca_psn_before(7, 7));
}

static void test_add(void **state)
{
	(void)state;
	assert_int_equal(hca_psn_add(0xffffff, 1), 0);
	assert_int_equal(hca_psn_add(0xfffffe, 0x800003), 0x800001);
	/* Adding all ones goes one back. */
	assert_int_equal(hca_psn_add(0, HCA_PSN_MASK), 0xffffff);
}

static void test_in(void **state)
{
	(void)state;
	assert_true(hca_psn_in(5, 5, 6));
	assert_false(hca_psn_in(6, 5, 6));
	assert_false(hca_psn_in(5, 5, 5));
	assert_true(hca_psn_in(2, 0xfffffe, 3));
	assert_false(hca_psn_in(3, 0xfffffe, 3));
	assert_false(hca_psn_in(0xfffffd, 0xfffffe, 3));
	/* A READ of 2 GiB at MTU 256 covers half the number space. */
	assert_true(hca_psn_in(0x800009, 10, 0x80000a));
	assert_false(hca_psn_in(0x80000a, 10, 0x80000a));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_diff),
	cmocka_unit_test(test_add),
	cmocka_unit_test(test_in),
};

TEST_MAIN(tests)
