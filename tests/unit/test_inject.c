// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "host.h"

static struct qhca_inject_config rule(enum qhca_inject_kind kind, uint32_t ppm,
				      uint64_t nth)
{
	struct qhca_inject_config cfg = { .on_tx = true, .seed = 42 };

	cfg.rule[kind].ppm = ppm;
	cfg.rule[kind].nth = nth;
	return cfg;
}

static void set(struct host *h, struct qhca_inject_config cfg)
{
	char err[100] = "";

	assert_true(qhca_inject_set(h->hca, &cfg, err, sizeof(err)));
}

static void test_set(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_inject_config cfg = rule(QHCA_INJECT_DROP, 1000001, 0), got;
	char err[100] = "";

	(void)state;
	assert_false(qhca_inject_set(h->hca, &cfg, err, sizeof(err)));
	assert_non_null(strstr(err, "1000001"));
	cfg = rule(QHCA_INJECT_DELAY, 5, 0);
	cfg.delay_ns = HCA_INJECT_MAX_DELAY + 1;
	assert_false(qhca_inject_set(h->hca, &cfg, err, sizeof(err)));
	assert_false(hca_inject_active(&h->fn->hca->inject, false));
	cfg.delay_ns = HCA_INJECT_MAX_DELAY;
	set(h, cfg);
	assert_true(hca_inject_active(&h->fn->hca->inject, false));
	assert_false(hca_inject_active(&h->fn->hca->inject, true));
	qhca_inject_get(h->hca, &got);
	assert_int_equal(got.rule[QHCA_INJECT_DELAY].ppm, 5);
	assert_int_equal(got.delay_ns, HCA_INJECT_MAX_DELAY);
	set(h, rule(QHCA_INJECT_DROP, 0, 0));
	assert_false(hca_inject_active(&h->fn->hca->inject, false));
	host_free(h);
}

static void test_nth(void **state)
{
	struct host *h = host_new(NULL);
	unsigned int i;

	(void)state;
	set(h, rule(QHCA_INJECT_CORRUPT, 0, 3));
	for (i = 1; i < 100; i++)
		assert_int_equal(hca_inject_decide(&h->fn->hca->inject),
				 i == 3 ? 1u << QHCA_INJECT_CORRUPT : 0);
	set(h, rule(QHCA_INJECT_CORRUPT, 0, 1));	/* from now */
	assert_int_equal(hca_inject_decide(&h->fn->hca->inject),
			 1u << QHCA_INJECT_CORRUPT);
	host_free(h);
}

static void test_probability(void **state)
{
	struct host *h = host_new(NULL);
	unsigned int k, i, hits;

	(void)state;
	for (k = 0; k < QHCA_NUM_INJECT_KINDS; k++) {
		set(h, rule((enum qhca_inject_kind)k, 20000, 0));
		for (i = hits = 0; i < 100000; i++)
			hits += hca_inject_decide(&h->fn->hca->inject) ==
				1u << k;
		assert_in_range(hits, 1800, 2200);
	}
	set(h, rule(QHCA_INJECT_DROP, 1000000, 0));
	for (i = 0; i < 100; i++)
		assert_int_equal(hca_inject_decide(&h->fn->hca->inject), 1);
	host_free(h);
}

/* The same seed, the same fates. */
static void test_seed(void **state)
{
	struct host *a = host_new(NULL), *b = host_new(NULL);
	struct qhca_inject_config cfg = rule(QHCA_INJECT_DROP, 500000, 0);
	unsigned int i, differ = 0;

	(void)state;
	set(a, cfg);
	set(b, cfg);
	for (i = 0; i < 1000; i++)
		assert_int_equal(hca_inject_decide(&a->fn->hca->inject),
				 hca_inject_decide(&b->fn->hca->inject));
	cfg.seed++;
	set(b, cfg);
	for (i = 0; i < 1000; i++)
		differ += hca_inject_decide(&a->fn->hca->inject) !=
			  hca_inject_decide(&b->fn->hca->inject);
	assert_in_range(differ, 400, 600);
	host_free(a);
	host_free(b);
}

static void test_flip(void **state)
{
	struct host *h = host_new(NULL);
	uint8_t frame[100], bits;
	bool seen[100] = { false };
	unsigned int i, k, changed;

	(void)state;
	for (i = 0; i < 5000; i++) {
		memset(frame, 0x55, sizeof(frame));
		hca_inject_flip(&h->fn->hca->inject, frame, 42, 90);
		for (k = changed = 0; k < sizeof(frame); k++) {
			bits = frame[k] ^ 0x55;
			if (!bits)
				continue;
			assert_int_equal(bits & (bits - 1), 0);
			assert_in_range(k, 42, 89);
			seen[k] = true;
			changed++;
		}
		assert_int_equal(changed, 1);
	}
	assert_true(seen[42] && seen[89]);
	/* nothing to flip */
	hca_inject_flip(&h->fn->hca->inject, frame, 5, 5);
	host_free(h);
}

static void test_store(void **state)
{
	struct host *h = host_new(NULL);
	struct hca_inject *inj = &h->fn->hca->inject;
	struct hca_inject_frame *f;
	uint8_t data[4];
	unsigned int i;

	(void)state;
	assert_int_equal(hca_inject_deadline(inj), QHCA_NEVER);
	assert_null(hca_inject_due(inj, QHCA_NEVER - 1));
	for (i = 0; i < HCA_INJECT_STORE; i++) {
		put_le32(data, i);
		assert_true(hca_inject_hold(inj, data, 4, false, false,
					    1000 - i));
	}
	assert_false(hca_inject_hold(inj, data, 4, false, false, 0));
	assert_int_equal(hca_inject_deadline(inj), 1000 - i + 1);
	assert_null(hca_inject_due(inj, 1000 - i));
	/* among those due the oldest goes first */
	f = hca_inject_due(inj, 1000 - i + 3);
	assert_int_equal(get_le32(hca_inject_data(inj, f)), i - 3);
	for (i = 0; i < HCA_INJECT_STORE; i++) {
		f = hca_inject_due(inj, 1000);
		assert_int_equal(get_le32(hca_inject_data(inj, f)), i);
		hca_inject_drop(inj, f);
	}
	assert_null(hca_inject_due(inj, 1000));
	assert_false(hca_inject_hold(inj, data, QHCA_MAX_FRAME + 1, false,
				     false, 0));
	host_free(h);
}

static void test_swap(void **state)
{
	struct host *h = host_new(NULL);
	struct hca_inject *inj = &h->fn->hca->inject;
	uint8_t data[4] = { 0 };

	(void)state;
	assert_true(hca_inject_hold(inj, data, 4, true, true, 5000));
	hca_inject_passed(inj, false, 10);	/* the other way */
	assert_null(hca_inject_due(inj, 10));
	hca_inject_passed(inj, true, 10);
	assert_non_null(hca_inject_due(inj, 10));
	hca_inject_reset(h->fn->hca);
	assert_null(hca_inject_due(inj, 10000));
	/* alone, it goes when its time has come */
	assert_true(hca_inject_hold(inj, data, 4, true, true, 5000));
	assert_non_null(hca_inject_due(inj, 5000));
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_set),
	cmocka_unit_test(test_nth),
	cmocka_unit_test(test_probability),
	cmocka_unit_test(test_seed),
	cmocka_unit_test(test_flip),
	cmocka_unit_test(test_store),
	cmocka_unit_test(test_swap),
};
TEST_MAIN(tests)
