// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "transport/serve.h"

#include "unit.h"

#define QPNS	64

/* The heap against a plain array. */
static void test_timers(void **state)
{
	struct host *h = host_new_ready();
	uint64_t due[QPNS], seed = 7;

	(void)state;
	memset(due, 0xff, sizeof(due));
	for (int round = 0; round < 20000; round++) {
		uint32_t qpn = 2 + host_random(&seed) % (QPNS - 2);
		uint64_t first = QHCA_NEVER;

		if (host_random(&seed) % 3) {
			due[qpn] = 1 + host_random(&seed) % 1000;
			hca_sched_timer(h->fn, qpn, due[qpn]);
		} else {
			due[qpn] = QHCA_NEVER;
			hca_sched_timer_stop(h->fn, qpn);
		}
		for (int i = 0; i < QPNS; i++)
			if (due[i] < first)
				first = due[i];
		assert_int_equal(hca_sched_deadline(h->fn), first);
	}
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_timers),
};

TEST_MAIN(tests)
