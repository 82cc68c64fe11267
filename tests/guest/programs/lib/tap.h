/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The Test Anything Protocol: a program prints one line for each point that it
 * tests, and tap_end() prints their number.
 *
 * A point is decided in one of three ways:
 *
 *   tap_point()     by one condition;
 *   CHECK()         by several: the program goes on after a CHECK() that fails,
 *                   and tap_checked() prints the point for all since the last;
 *   EXPECT()        as CHECK(), but the failure is kept as a text, which can be
 *                   sent to the process that prints the points of two.
 */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>

/* Prints a point, and returns @ok. */
__attribute__((format(printf, 2, 3)))
bool tap_point(bool ok, const char *format, ...);
__attribute__((format(printf, 2, 3)))
void tap_skip(const char *name, const char *why, ...);

/* Prints what is wrong and where, if @cond is false. */
#define CHECK(cond)						\
	do {							\
		if (!(cond))					\
			tap_check_failed(__FILE__, __LINE__, #cond);	\
	} while (0)
void tap_check_failed(const char *file, int line, const char *what);
/* Has a CHECK() failed since the last tap_checked()? */
bool tap_check_has_failed(void);
void tap_checked(const char *name);

/* The first thing that went wrong in a case; empty if nothing did. */
struct failure {
	char text[320];
};

/* Keeps the text of the first failure in (t)->failure; returns @cond. */
#define EXPECT(t, cond, ...) tap_expect(&(t)->failure, cond, __VA_ARGS__)
__attribute__((format(printf, 3, 4)))
bool tap_expect(struct failure *failure, bool cond, const char *format, ...);

/*
 * Prints the number of points, if there were any. Returns the exit status of the
 * program: 1 if a point failed, or a CHECK() that no point reports.
 */
int tap_end(void);

#endif
