/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the parts of the test of rings share.
 */
#ifndef __QHCA_TEST_RINGS_H__
#define __QHCA_TEST_RINGS_H__

#include "qhca.h"

#define check(cond) check_at(cond, #cond, __LINE__)

struct qhca_context *test_context(void);
void check_at(bool ok, const char *what, int line);
void test_srq(void);
void test_srq_grows(void);

#endif /* __QHCA_TEST_RINGS_H__ */
