// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cq_setup.h"

static void test_arm_next(void **state)
{
	struct setup s = setup((struct options){ 4, 16, 0, 0, 0 });

	(void)state;
	post(&s, 0, 0, false);
	assert_int_equal(events(&s), 0);
	arm(&s, 0, false);		/* 0 was not consumed */
	assert_int_equal(events(&s), 1);
	assert_int_equal(armed(&s), 0);
	arm(&s, 1, false);
	assert_int_equal(events(&s), 1);
	assert_int_equal(armed(&s), 1);
	post(&s, 1, 0, false);
	post(&s, 2, 0, false);
	assert_int_equal(events(&s), 2);
	assert_int_equal(armed(&s), 0);
	assert_int_equal(get_le32(&host_eqe(s.h, &s.eq, 1)->number), CQN);
	assert_int_equal(get_le32(&host_eqe(s.h, &s.eq, 1)->detail), 2);
	assert_int_equal(COUNT(s.h, cq_arms), 2);
	/* An entry that was seen is not consumed yet. */
	assert_int_equal(get_le32(&query(&s)->ci), 0);
	host_free(s.h);
}

static void test_arm_solicited(void **state)
{
	struct setup s = setup((struct options){ 4, 16, 0, 0, 0 });

	(void)state;
	post(&s, 0, 0, false);
	arm(&s, 0, true);		/* unseen, but not solicited */
	assert_int_equal(events(&s), 0);
	assert_int_equal(armed(&s), 2);
	post(&s, 1, 0, false);
	assert_int_equal(events(&s), 0);
	post(&s, 2, 0, true);
	assert_int_equal(events(&s), 1);
	arm(&s, 0, true);		/* the last one written is solicited */
	assert_int_equal(events(&s), 2);
	post(&s, 3, 0, false);
	arm(&s, 2, true);		/* number 2 is solicited and unseen */
	assert_int_equal(events(&s), 3);
	arm(&s, 3, true);		/* seen: number 3 is not */
	assert_int_equal(events(&s), 3);
	post(&s, 4, QHCA_WC_WR_FLUSH_ERR, false); /* an error counts */
	assert_int_equal(events(&s), 4);
	host_free(s.h);
}

static void test_arm_both(void **state)
{
	struct setup s = setup((struct options){ 4, 16, 0, 0, 0 });

	(void)state;
	arm(&s, 0, false);
	arm(&s, 0, true);		/* does not weaken */
	assert_int_equal(armed(&s), 1);
	post(&s, 0, 0, false);
	assert_int_equal(events(&s), 1);
	arm(&s, 1, true);
	arm(&s, 1, false);		/* strengthens */
	assert_int_equal(armed(&s), 1);
	post(&s, 1, 0, false);
	assert_int_equal(events(&s), 2);
	host_free(s.h);
}

static void test_arm_beyond(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	uint32_t i;

	(void)state;
	arm(&s, 100, false);
	assert_int_equal(events(&s), 1);
	arm(&s, UINT32_MAX - 5, true);
	assert_int_equal(events(&s), 2);
	for (i = 0; i < 9; i++) {
		post(&s, i, 0, false);
		host_set_ci(s.h, &s.cq, i + 1);
	}
	arm(&s, 2, false);		/* an index of long ago */
	assert_int_equal(events(&s), 3);
	host_free(s.h);
}

static void test_arm_ignored(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	uint64_t ignored = COUNT(s.h, doorbells_ignored);

	(void)state;
	qhca_doorbell(s.h->hca, 0, PAGE + 1, QHCA_DB_CQ_ARM, CQN, 0);
	qhca_doorbell(s.h->hca, 0, 0, QHCA_DB_CQ_ARM, CQN, 0);
	qhca_doorbell(s.h->hca, 0, PAGE, QHCA_DB_CQ_ARM, CQN + 1, 0);
	qhca_doorbell(s.h->hca, 0, PAGE, QHCA_DB_CQ_ARM, 0xffffff, 0);
	assert_int_equal(COUNT(s.h, doorbells_ignored), ignored + 4);
	post(&s, 0, 0, false);
	assert_int_equal(events(&s), 0);
	host_free(s.h);
}

/*
 * No wake-up is lost, whatever the order of posting, polling and arming: whenever a
 * completion that software has armed for is unseen, an event is on its way, or the queue
 * is armed for later completions only.
 */
static void test_arm_random(void **state)
{
	unsigned int seed;

	(void)state;
	for (seed = 0; seed < 50; seed++) {
		struct setup s = setup((struct options){ 3, seed % 9, 0, 0,
							 0 });
		uint64_t rng = seed;
		uint32_t pi = 0, ci = 0, seen = 0, asked_ci = 0;
		bool asked = false;
		unsigned int i;

		for (i = 0; i < 400; i++) {
			switch (host_random(&rng) % 3) {
			case 0:
				if (pi - ci < 8)
					assert_true(post(&s, pi++, 0, false));
				break;
			case 1:
				ci += (uint32_t)(host_random(&rng) %
						 (pi - ci + 1));
				host_set_ci(s.h, &s.cq, ci);
				break;
			default:
				if (asked)
					break;
				arm(&s, ci, false);
				asked = true;
				asked_ci = ci;
			}
			if (!asked)
				continue;
			if (pi != asked_ci) {
				assert_int_equal(events(&s), ++seen);
				asked = false;
				/* The consumer takes the event. */
				host_set_ci(s.h, &s.eq, seen);
			} else {
				assert_int_equal(events(&s), seen);
			}
		}
		host_free(s.h);
	}
}

static bool in_vain(struct setup *s, uint16_t gvmi, uint32_t page, uint32_t cqn,
		    uint32_t ci)
{
	return qhca_polls_in_vain(s->h->hca, gvmi, page,
				  cqn | (uint64_t)ci << 32);
}

/* The hint of a program that polls is true as long as it has seen all that there is. */
static void test_polls_in_vain(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	uint64_t ignored = COUNT(s.h, doorbells_ignored);

	(void)state;
	assert_true(in_vain(&s, 0, PAGE, CQN, 0));
	assert_true(in_vain(&s, 0, PAGE, CQN | QHCA_DB_POLL_MORE, 0));
	post(&s, 0, 0, false);
	assert_false(in_vain(&s, 0, PAGE, CQN, 0));
	assert_true(in_vain(&s, 0, PAGE, CQN, 1));
	assert_false(in_vain(&s, 0, PAGE, CQN, 2));
	/* Others' queues, and those that there are not. */
	assert_false(in_vain(&s, 0, PAGE + 1, CQN, 1));
	assert_false(in_vain(&s, 0, PAGE, CQN + 1, 0));
	assert_false(in_vain(&s, 0, PAGE, 0xffffff, 0));
	assert_false(in_vain(&s, 1, PAGE, CQN, 1));
	/* The hint itself is no doorbell of the engine's, and changes nothing. */
	qhca_doorbell(s.h->hca, 0, PAGE, QHCA_DB_POLL, CQN, s.h->now);
	qhca_doorbell(s.h->hca, 0, 0, QHCA_DB_POLL, 0xffffff, s.h->now);
	assert_int_equal(events(&s), 0);
	assert_int_equal(COUNT(s.h, doorbells_ignored), ignored);
	qhca_reset(s.h->hca, 0, s.h->now);
	assert_false(in_vain(&s, 0, PAGE, CQN, 1));
	host_free(s.h);
}

/* A CQ in error, a function without the feature, and one that has died. */
static void test_polls_of_no_use(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	uint32_t i;

	(void)state;
	s.h->fn->features &= ~QHCA_FEAT_POLL_HINT;
	assert_false(in_vain(&s, 0, PAGE, CQN, 0));
	s.h->fn->features |= QHCA_FEAT_POLL_HINT;
	assert_true(in_vain(&s, 0, PAGE, CQN, 0));
	for (i = 0; post(&s, i, 0, false); i++)
		;
	assert_false(in_vain(&s, 0, PAGE, CQN, i));
	host_free(s.h);

	s = setup((struct options){ 2, 4, 0, 0, 0 });
	assert_true(in_vain(&s, 0, PAGE, CQN, 0));
	qhca_inject_fatal(s.h->hca, 0);
	assert_false(in_vain(&s, 0, PAGE, CQN, 0));
	host_free(s.h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_arm_next),
	cmocka_unit_test(test_arm_solicited),
	cmocka_unit_test(test_arm_both),
	cmocka_unit_test(test_arm_beyond),
	cmocka_unit_test(test_arm_ignored),
	cmocka_unit_test(test_arm_random),
	cmocka_unit_test(test_polls_in_vain),
	cmocka_unit_test(test_polls_of_no_use),
};
TEST_MAIN(tests)
