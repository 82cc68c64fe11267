// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the device charges, and when a stall ends; tests/sim tests how it delays work.
 */
#include "unit.h"

static void test_limits(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_fetch_cost cost = { 1, 2, HCA_MAX_FETCH_NS + 1 }, now;
	char err[100];

	(void)state;
	qhca_fetch_cost_get(h->hca, &now);
	assert_int_equal(now.pt_ns | now.at_ns | now.context_ns, 0);
	assert_false(qhca_fetch_cost_set(h->hca, &cost, err, sizeof(err)));
	assert_string_equal(err, "x-context-fetch-ns=1000001 is over 1000000");
	qhca_fetch_cost_get(h->hca, &now);
	assert_int_equal(now.pt_ns, 0);
	cost.context_ns = HCA_MAX_FETCH_NS;
	assert_true(qhca_fetch_cost_set(h->hca, &cost, err, sizeof(err)));
	/* The cost belongs to the host, and outlives a reset. */
	qhca_reset(h->hca, 0, 5);
	qhca_fetch_cost_get(h->hca, &now);
	assert_memory_equal(&now, &cost, sizeof(now));
	host_free(h);
}

/* Charges add up, one behind the other, and begin now at the earliest. */
static void test_sum(void **state)
{
	struct host *h = host_new_ready();

	(void)state;
	host_run_at(h, 1000);
	assert_false(hca_stalled(h->fn->hca));
	hca_charge(h->fn, 0);
	assert_false(hca_stalled(h->fn->hca));
	hca_charge(h->fn, 300);
	hca_charge(h->fn, 200);
	assert_int_equal(h->fn->hca->cost.until, 1500);
	assert_int_equal(COUNT(h, fetch_stall_ns), 500);
	host_run_at(h, 1499);
	assert_true(hca_stalled(h->fn->hca));
	host_run_at(h, 1500);
	assert_false(hca_stalled(h->fn->hca));
	host_run_at(h, 9000);
	hca_charge(h->fn, 1);
	assert_int_equal(h->fn->hca->cost.until, 9001);
	host_free(h);
}

static void test_longest(void **state)
{
	struct host *h = host_new_ready();
	unsigned int i;

	(void)state;
	host_run_at(h, 1000);
	for (i = 0; i < 60; i++)
		hca_charge(h->fn, HCA_MAX_FETCH_NS);
	assert_int_equal(h->fn->hca->cost.until, 1000 + HCA_MAX_STALL);
	assert_int_equal(COUNT(h, fetch_stall_ns), HCA_MAX_STALL);
	host_run_at(h, 2000);
	hca_charge(h->fn, HCA_MAX_FETCH_NS);
	assert_int_equal(h->fn->hca->cost.until, 2000 + HCA_MAX_STALL);
	assert_int_equal(COUNT(h, fetch_stall_ns), HCA_MAX_STALL + 1000);
	assert_int_equal(host_cmd(h, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	assert_false(hca_stalled(h->fn->hca));
	host_free(h);
}

/* A stall without work behind it sets no deadline. */
static void test_idle(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_run_result r;

	(void)state;
	host_run_at(h, 1000);
	hca_charge(h->fn, 300);
	r = qhca_run(h->hca, 1000, 10);
	assert_false(r.more);
	assert_int_equal(r.deadline, QHCA_NEVER);
	host_free(h);
}

/* The function whose read it is counts the charge, and all wait. */
static void test_function(void **state)
{
	struct host *h = host_new_ready(), *vf = host_new_vf(h, 1, NULL);

	(void)state;
	hca_charge(vf->fn, 300);
	assert_true(hca_stalled(h->fn->hca));
	assert_int_equal(COUNT(h, fetch_stall_ns), 0);
	assert_int_equal(COUNT(vf, fetch_stall_ns), 300);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_function),
	cmocka_unit_test(test_limits),
	cmocka_unit_test(test_sum),
	cmocka_unit_test(test_longest),
	cmocka_unit_test(test_idle),
};
TEST_MAIN(tests)
