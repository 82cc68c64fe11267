// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "transport/serve.h"

#include "host.h"

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

static void test_doorbells_ignored(void **state)
{
	struct host *h = host_new_ready();
	uint64_t before = COUNT(h, doorbells_ignored);

	(void)state;
	hca_sched_doorbell(h->fn, 0, 0xffffff, 1);
	hca_sched_doorbell(h->fn, 0, 5, 1);		/* no such QP */
	assert_int_equal(COUNT(h, doorbells_ignored), before + 2);
	assert_false(hca_sched_pending(h->fn));
	host_free(h);
}

/* Timers that are due together are served as the budget allows, not all at once. */
static void test_many_due(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_run_result r;

	(void)state;
	for (uint32_t qpn = 2; qpn < QPNS; qpn++)
		hca_sched_timer(h->fn, qpn, 100);
	r = qhca_run(h->hca, 100, 5);
	assert_true(r.deadline <= 100);
	assert_true(h->fn->sched.heap_len >= QPNS - 2 - 5);
	host_run_at(h, 100);
	assert_int_equal(h->fn->sched.heap_len, 0);
	assert_int_equal(hca_sched_deadline(h->fn), QHCA_NEVER);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_many_due),
	cmocka_unit_test(test_timers),
	cmocka_unit_test(test_doorbells_ignored),
};

TEST_MAIN(tests)
