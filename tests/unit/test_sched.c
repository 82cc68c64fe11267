// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "transport/serve.h"

#include "unit.h"

#define QPNS	64

/* Compares the heap with a plain array. */
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
		assert_int_equal(hca_sched_deadline(h->fn->hca), first);
	}
	host_free(h);
}

/*
 * When a function ends, the QPs and timers of another one stay, in their order.
 * There is one function today, so the test changes its GVMI to have two.
 */
static void test_function_ends(void **state)
{
	struct host *h = host_new_ready();
	struct hca_fn *fn = h->fn;
	struct hca *hca = fn->hca;
	uint16_t gvmi = fn->cfg.gvmi;
	uint32_t room = fn->qps.num_timers;

	(void)state;
	hca->fn[gvmi + 1] = fn;
	for (uint32_t qpn = 2; qpn < QPNS; qpn++) {
		fn->cfg.gvmi = qpn & 1 ? gvmi + 1 : gvmi;
		hca_sched_timer(fn, qpn, 1000 - qpn);
		hca_sched_work(fn, qpn, HCA_WORK_SEND);
	}
	fn->cfg.gvmi = gvmi + 1;
	fn->qps.num_timers = 0;		/* the room is that of the one function */
	hca_sched_fini(fn);
	fn->cfg.gvmi = gvmi;
	fn->qps.num_timers = room;
	hca->fn[gvmi + 1] = NULL;

	assert_int_equal(hca->sched.heap_len, QPNS / 2 - 1);
	for (uint32_t qpn = QPNS - 2; qpn >= 2; qpn -= 2) {
		assert_int_equal(hca->sched.heap[1].qpn, qpn);
		assert_int_equal(hca_sched_deadline(hca), 1000 - qpn);
		hca_sched_timer_stop(fn, qpn);
	}
	assert_int_equal(hca_sched_deadline(hca), QHCA_NEVER);
	for (uint32_t qpn = 2; qpn < QPNS; qpn += 2)
		assert_int_equal(hca_sched_pop(hca).qpn, qpn);
	assert_false(hca_sched_pending(hca));
	for (uint32_t qpn = 3; qpn < QPNS; qpn += 2)
		assert_int_equal(fn->qps.slot[qpn].heap_pos, 0);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_function_ends),
	cmocka_unit_test(test_timers),
};

TEST_MAIN(tests)
