// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The rate of a port of the switch.
 */
#include "unit.h"

#include "model/shaper.h"

#define SECOND		1000000000ull
#define GIGABIT		1000000000ull

/* The example of shaper.h */
static void test_example(void **state)
{
	struct fab_shaper s;

	(void)state;
	fab_shaper_set(&s, GIGABIT, 0, 0);
	assert_int_equal(fab_shaper_depart(&s, 0, 1250), 10000);
	assert_int_equal(fab_shaper_depart(&s, 0, 1250), 20000);
	fab_shaper_set(&s, GIGABIT, 1250, 0);
	assert_int_equal(fab_shaper_depart(&s, 0, 1250), 0);
	assert_int_equal(fab_shaper_depart(&s, 0, 1250), 10000);
}

static void test_no_rate(void **state)
{
	struct fab_shaper s;

	(void)state;
	fab_shaper_set(&s, 0, 5000, 0);
	for (uint64_t now = 0; now < 10; now++)
		assert_int_equal(fab_shaper_depart(&s, now, 69656), now);
}

/* A link that was idle has saved nothing up beyond its depth. */
static void test_idle(void **state)
{
	struct fab_shaper s;

	(void)state;
	fab_shaper_set(&s, GIGABIT, 2500, 0);
	assert_int_equal(fab_shaper_depart(&s, SECOND, 1250), SECOND);
	assert_int_equal(fab_shaper_depart(&s, SECOND, 1250), SECOND);
	assert_int_equal(fab_shaper_depart(&s, SECOND, 1250), SECOND + 10000);
	/* Half full again after one frame's time and a half. */
	assert_int_equal(fab_shaper_depart(&s, SECOND + 25000, 1250), SECOND + 25000);
	assert_int_equal(fab_shaper_depart(&s, SECOND + 25000, 1250), SECOND + 30000);
}

/* Over a long time the rate is exact, though a frame does not take whole nanoseconds. */
static void test_exact(void **state)
{
	static const uint64_t rates[] = { FAB_MIN_RATE, 7777777, 3 * GIGABIT, 100 * GIGABIT,
					  FAB_MAX_RATE };
	static const uint32_t lengths[] = { 84, 1500, 4241, 69656 };

	(void)state;
	for (unsigned int i = 0; i < 20; i++) {
		uint64_t rate = rates[i % 5], bits = 0, left = 0, before = 0;
		uint32_t len = lengths[i / 5];
		struct fab_shaper s;

		fab_shaper_set(&s, rate, 0, 0);
		for (unsigned int n = 0; n < 5000; n++) {
			left = fab_shaper_depart(&s, 0, len);
			bits += len * 8;
			/* Never early, and late by less than a nanosecond. */
			assert_true((__uint128_t)left * rate >= (__uint128_t)bits * SECOND);
			assert_true((__uint128_t)(left - 1) * rate < (__uint128_t)bits * SECOND);
			assert_true(left >= before);
			before = left;
		}
	}
}

/* The largest depth at the smallest rate takes six days and does not overflow. */
static void test_extremes(void **state)
{
	const uint64_t days = FAB_MAX_BURST * 8 * SECOND / FAB_MIN_RATE;
	struct fab_shaper s;

	(void)state;
	fab_shaper_set(&s, FAB_MIN_RATE, FAB_MAX_BURST, 1);
	for (unsigned int i = 0; i < FAB_MAX_BURST >> 16; i++)
		assert_int_equal(fab_shaper_depart(&s, 1, 1 << 16), 1);
	assert_int_equal(fab_shaper_depart(&s, 1, 1), 1 + 8 * SECOND / FAB_MIN_RATE);
	assert_int_equal(fab_shaper_depart(&s, 2 * days, 1 << 16), 2 * days);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_example),
	cmocka_unit_test(test_no_rate),
	cmocka_unit_test(test_idle),
	cmocka_unit_test(test_exact),
	cmocka_unit_test(test_extremes),
};

TEST_MAIN(tests)
