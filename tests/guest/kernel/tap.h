/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The results of a test that is a module: TAP in the kernel's log.
 */
#ifndef QHCA_TEST_TAP_H
#define QHCA_TEST_TAP_H

#include <linux/errno.h>
#include <linux/printk.h>

static unsigned int tap_points, tap_failures;

/* Report one point; a name with more to say takes arguments as printf() does. */
#define point(ok, name, ...)						\
	do {								\
		bool ok_ = ok;						\
									\
		tap_points++;						\
		tap_failures += !ok_;					\
		pr_info("%sok %u - " name "\n", ok_ ? "" : "not ",	\
			tap_points, ##__VA_ARGS__);			\
	} while (0)

/* Report how many points there were; the module's init function returns this. */
static inline int tap_end(void)
{
	pr_info("1..%u\n", tap_points);
	return tap_failures ? -EIO : 0;
}

#endif
