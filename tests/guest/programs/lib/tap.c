// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tap.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static unsigned int points, failures;
static bool check_failed;

bool tap_point(bool ok, const char *format, ...)
{
	va_list args;

	printf("%sok %u - ", ok ? "" : "not ", ++points);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
	failures += !ok;
	return ok;
}

void tap_skip(const char *name, const char *why, ...)
{
	va_list args;

	printf("ok %u - %s # SKIP ", ++points, name);
	va_start(args, why);
	vprintf(why, args);
	va_end(args);
	printf("\n");
	fflush(stdout);
}

void tap_check_failed(const char *file, int line, const char *what)
{
	printf("# %s:%d: %s (errno: %s)\n", file, line, what, strerror(errno));
	check_failed = true;
}

bool tap_check_has_failed(void)
{
	return check_failed;
}

void tap_checked(const char *name)
{
	tap_point(!check_failed, "%s", name);
	check_failed = false;
}

bool tap_expect(struct failure *failure, bool cond, const char *format, ...)
{
	va_list args;

	if (cond || failure->text[0])
		return cond;
	va_start(args, format);
	vsnprintf(failure->text, sizeof(failure->text), format, args);
	va_end(args);
	return false;
}

int tap_end(void)
{
	if (points)
		printf("1..%u\n", points);
	fflush(stdout);
	return failures || check_failed;
}
