// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Numbers with units. */
#include "program/units.h"

#include <string.h>

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit none[] = { { "", 1 }, { NULL, 0 } };
static const struct unit rates[] = {
	{ "", 1 }, { "k", 1000 }, { "M", 1000000 }, { "G", 1000000000 },
	{ "T", 1000000000000 }, { NULL, 0 },
};
static const struct unit sizes[] = {
	{ "", 1 }, { "k", 1 << 10 }, { "M", 1 << 20 }, { "G", 1 << 30 }, { NULL, 0 },
};
static const struct unit times[] = {
	{ "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 }, { NULL, 0 },
};

static bool parse(const char *text, const struct unit *units, uint64_t *value)
{
	const char *p = text;
	uint64_t number = 0;

	for (; *p >= '0' && *p <= '9'; p++) {
		uint64_t digit = (uint64_t)(*p - '0');

		if (number > (UINT64_MAX - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	if (p == text)
		return false;
	for (; units->name; units++)
		if (!strcmp(p, units->name))
			break;
	if (!units->name || number > UINT64_MAX / units->factor)
		return false;
	*value = number * units->factor;
	return true;
}

bool sw_parse_number(const char *text, uint64_t *value)
{
	return parse(text, none, value);
}

bool sw_parse_rate(const char *text, uint64_t *value)
{
	return parse(text, rates, value);
}

bool sw_parse_bytes(const char *text, uint64_t *value)
{
	return parse(text, sizes, value);
}

bool sw_parse_time(const char *text, uint64_t *value)
{
	if (!strcmp(text, "0")) {
		*value = 0;
		return true;
	}
	return parse(text, times, value);
}
