// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Numbers with units in options and commands of the switch.
 */
#include "unit.h"

#include "program/units.h"

struct row {
	bool (*parse)(const char *text, uint64_t *value);
	const char *text;
	uint64_t value;
};

static void test_good(void **state)
{
	static const struct row rows[] = {
		{ sw_parse_number, "0", 0 },
		{ sw_parse_number, "18446744073709551615", UINT64_MAX },
		{ sw_parse_number, "007", 7 },
		{ sw_parse_rate, "12", 12 },
		{ sw_parse_rate, "3k", 3000 },
		{ sw_parse_rate, "3M", 3000000 },
		{ sw_parse_rate, "100G", 100000000000 },
		{ sw_parse_rate, "1T", 1000000000000 },
		{ sw_parse_bytes, "9", 9 },
		{ sw_parse_bytes, "1k", 1024 },
		{ sw_parse_bytes, "16M", 16 << 20 },
		{ sw_parse_bytes, "1G", 1 << 30 },
		{ sw_parse_time, "0", 0 },
		{ sw_parse_time, "5ns", 5 },
		{ sw_parse_time, "5us", 5000 },
		{ sw_parse_time, "5ms", 5000000 },
		{ sw_parse_time, "5s", 5000000000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t value = 1;

		assert_true(rows[i].parse(rows[i].text, &value));
		assert_int_equal(value, rows[i].value);
	}
}

static void test_bad(void **state)
{
	static const struct row rows[] = {
		{ sw_parse_number, "", 0 }, { sw_parse_number, "-1", 0 },
		{ sw_parse_number, "+1", 0 }, { sw_parse_number, " 1", 0 },
		{ sw_parse_number, "1 ", 0 }, { sw_parse_number, "0x1", 0 },
		{ sw_parse_number, "1k", 0 },
		{ sw_parse_number, "18446744073709551616", 0 },
		{ sw_parse_number, "99999999999999999999999", 0 },
		{ sw_parse_rate, "18446744073709551615k", 0 },
		{ sw_parse_rate, "1Gb", 0 }, { sw_parse_rate, "G", 0 },
		{ sw_parse_bytes, "1T", 0 }, { sw_parse_bytes, "1.5k", 0 },
		{ sw_parse_time, "5", 0 }, { sw_parse_time, "5m", 0 },
		{ sw_parse_time, "us", 0 }, { sw_parse_time, "5 us", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		uint64_t value = 77;

		assert_false(rows[i].parse(rows[i].text, &value));
		assert_int_equal(value, 77);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_good),
	cmocka_unit_test(test_bad),
};

TEST_MAIN(tests)
