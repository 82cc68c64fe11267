// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Rates: what a function may send over virtual time.
 */
#include "unit.h"

#define SECOND		1000000000ull

struct rated {
	struct host *pf, *vf;
	struct hca_fn *fn;
};

static unsigned int num_released;

static void on_release(struct hca_fn *fn)
{
	assert_false(hca_rate_is_held(fn));
	num_released++;
}

static struct rated rated_new(uint32_t max_rate, uint32_t min_rate)
{
	struct rated r = { .pf = host_new(NULL) };

	r.vf = host_new_vf(r.pf, 63, NULL);
	r.fn = r.vf->fn;
	r.fn->hca->now = 12345;
	hca_rate_set(r.fn, max_rate, min_rate);
	return r;
}

/* Sends frames of @len bytes as early as it may, until @end.  Returns the bytes. */
static uint64_t send_until(struct rated *r, uint64_t end, size_t len,
			   uint64_t late)
{
	struct hca *hca = r->fn->hca;
	uint64_t bytes = 0, due;

	for (;;) {
		for (; !hca_rate_waits(r->fn); bytes += len)
			hca_rate_sent(r->fn, len);
		assert_true(hca_rate_is_held(r->fn));
		due = hca_rates_deadline(hca);
		assert_true(due > hca->now);
		if (due + late >= end)
			break;
		hca->now = due - 1;
		hca_rates_release(hca, on_release);
		assert_true(hca_rate_waits(r->fn));
		hca->now = due + late;
		hca_rates_release(hca, on_release);
		assert_false(hca_rate_waits(r->fn));
	}
	hca->now = end;
	hca_rates_release(hca, on_release);
	return bytes;
}

/* Over a long time exactly the rate; over a short one at most a window and a frame more. */
static void test_rate(void **state)
{
	static const uint32_t rates[] = { 1, 8, 1000, 10000, 100000 };
	static const size_t lengths[] = { 62, 4170, QHCA_MAX_FRAME };

	(void)state;
	for (unsigned int i = 0; i < 15; i++) {
		uint64_t rate = rates[i % 5], wanted, bytes;
		size_t len = lengths[i / 5];
		struct rated r = rated_new((uint32_t)rate, 0);
		uint64_t time = rate < 1000 ? 10 * SECOND : SECOND / 100;
		uint64_t window = rate * HCA_RATE_WINDOW_NS / 8000;

		wanted = rate * time / 8000;
		bytes = send_until(&r, r.fn->hca->now + time, len, 0);
		assert_in_range(bytes, wanted + window -
				rate * HCA_RATE_PAUSE_NS / 8000 - len,
				wanted + window + len);
		/* Tokens that the function does not use allow it no more than the window later. */
		r.fn->hca->now += 77 * SECOND;
		hca_rates_release(r.fn->hca, on_release);
		bytes = send_until(&r, r.fn->hca->now + 1, len, 0);
		assert_in_range(bytes, window, window + len);
		host_free(r.pf);
	}
}

/* The largest number that fits the field overflows nothing. */
static void test_largest(void **state)
{
	struct rated r = rated_new(UINT32_MAX, UINT32_MAX);

	(void)state;
	for (int i = 0; i < 1000; i++) {
		assert_false(hca_rate_waits(r.fn));
		assert_true(hca_rate_owed(r.fn) > 1000000);
		hca_rate_sent(r.fn, QHCA_MAX_FRAME);
		r.fn->hca->now += (uint64_t)i * i * i * 1000;
	}
	host_free(r.pf);
}

/* A host that is late with each call loses nothing of the rate. */
static void test_late(void **state)
{
	struct rated r = rated_new(1000, 0);
	uint64_t bytes;

	(void)state;
	send_until(&r, r.fn->hca->now + SECOND / 10, 1500, 0);
	bytes = send_until(&r, r.fn->hca->now + SECOND, 1500, 5000000);
	assert_in_range(bytes, 123750000, 126250000);
	host_free(r.pf);
}

/* Each time that a function has to wait counts once. */
static void test_count(void **state)
{
	struct rated r = rated_new(8, 0);

	(void)state;
	assert_false(hca_rate_waits(r.fn));
	assert_false(hca_rate_waits(r.pf->fn));
	hca_rate_sent(r.fn, 10000);
	for (int i = 0; i < 9; i++)
		assert_true(hca_rate_waits(r.fn));
	assert_int_equal(COUNT(r.vf, rate_waits), 1);
	r.fn->hca->now = hca_rates_deadline(r.fn->hca);
	num_released = 0;
	hca_rates_release(r.fn->hca, on_release);
	hca_rates_release(r.fn->hca, on_release);
	assert_int_equal(num_released, 1);
	assert_int_equal(hca_rates_deadline(r.fn->hca), QHCA_NEVER);
	hca_rate_sent(r.fn, 2000);
	assert_true(hca_rate_waits(r.fn));
	assert_int_equal(COUNT(r.vf, rate_waits), 2);
	assert_int_equal(COUNT(r.pf, rate_waits), 0);
	host_free(r.pf);
}

/*
 * Acknowledgements, which do not ask, delay what does, by a window at most; and another
 * rate applies at once.
 */
static void test_acknowledgements(void **state)
{
	struct rated r = rated_new(8, 0);	/* a byte each microsecond */
	struct hca *hca = r.fn->hca;

	(void)state;
	hca_rate_sent(r.fn, 10000);
	assert_true(hca_rate_waits(r.fn));
	for (int i = 0; i < 30; i++)
		hca_rate_sent(r.fn, 100);
	assert_int_equal(hca_rates_deadline(hca), hca->now + 4000000);
	for (int i = 0; i < 3000; i++)
		hca_rate_sent(r.fn, 100);
	assert_int_equal(hca_rates_deadline(hca), hca->now + 11000000);

	/* The same rate again changes nothing. */
	hca_rate_set(r.fn, 8, 0);
	assert_int_equal(hca_rates_deadline(hca), hca->now + 11000000);
	hca_rate_set(r.fn, 80, 0);
	assert_int_equal(hca_rates_deadline(hca), hca->now);
	hca_rates_release(hca, on_release);
	assert_false(hca_rate_waits(r.fn));
	hca_rate_sent(r.fn, 100000);
	assert_true(hca_rate_waits(r.fn));
	hca_rate_set(r.fn, 0, 0);
	hca_rates_release(hca, on_release);
	assert_false(hca_rate_waits(r.fn));
	host_free(r.pf);
}

/* The guarantee: what the function sends beyond it does not count for long. */
static void test_guarantee(void **state)
{
	struct rated r = rated_new(0, 8);
	struct hca *hca = r.fn->hca;

	(void)state;
	assert_int_equal(hca_rate_owed(r.pf->fn), 0);
	assert_int_equal(hca_rate_owed(r.fn), 2);	/* 10,000 bytes */
	assert_false(hca_rate_used(r.fn));
	hca_rate_sent(r.fn, 1000);
	assert_true(hca_rate_used(r.fn));
	assert_int_equal(hca_rate_owed(r.fn), 1);
	assert_false(hca_rate_used(r.fn));
	hca_rate_sent(r.fn, 9000);
	assert_int_equal(hca_rate_owed(r.fn), 0);
	for (int i = 0; i < 1000; i++)
		hca_rate_sent(r.fn, 1000);
	hca->now += 10000000;
	assert_int_equal(hca_rate_owed(r.fn), 0);
	hca->now += 1;
	assert_int_equal(hca_rate_owed(r.fn), 1);
	assert_false(hca_rate_waits(r.fn));		/* there is no maximum */
	host_free(r.pf);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_rate),
	cmocka_unit_test(test_largest),
	cmocka_unit_test(test_late),
	cmocka_unit_test(test_count),
	cmocka_unit_test(test_acknowledgements),
	cmocka_unit_test(test_guarantee),
};
TEST_MAIN(tests)
