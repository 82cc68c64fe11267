// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "transport/serve.h"

#include "unit.h"

#define QPNS	64

static void test_doorbells_ignored(void **state)
{
	struct host *h = host_new_ready();
	uint64_t before = COUNT(h, doorbells_ignored);

	(void)state;
	hca_sched_doorbell(h->fn, 0, 0xffffff, 1);
	hca_sched_doorbell(h->fn, 0, 5, 1);		/* no such QP */
	assert_int_equal(COUNT(h, doorbells_ignored), before + 2);
	assert_false(hca_sched_pending(h->fn->hca));
	host_free(h);
}

/* A run serves as many of the timers that are due together as its budget allows. */
static void test_many_due(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_run_result r;

	(void)state;
	for (uint32_t qpn = 2; qpn < QPNS; qpn++)
		hca_sched_timer(h->fn, qpn, 100);
	r = qhca_run(h->hca, 100, 5);
	assert_true(r.deadline <= 100);
	assert_true(h->fn->hca->sched.heap_len >= QPNS - 2 - 5);
	host_run_at(h, 100);
	assert_int_equal(h->fn->hca->sched.heap_len, 0);
	assert_int_equal(hca_sched_deadline(h->fn->hca), QHCA_NEVER);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_doorbells_ignored),
	cmocka_unit_test(test_many_due),
};
TEST_MAIN(tests)
