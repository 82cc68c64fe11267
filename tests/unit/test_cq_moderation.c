// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cq_setup.h"

static void test_moderation_count(void **state)
{
	struct setup s = setup((struct options){ 5, 32, 4, 100, 0 });
	uint32_t i;

	(void)state;
	arm(&s, 0, false);
	for (i = 0; i < 3; i++)
		post(&s, i, 0, false);
	assert_int_equal(events(&s), 0);
	assert_int_equal(get_le32(&query(&s)->pending), 3);
	post(&s, 3, 0, false);
	assert_int_equal(events(&s), 1);
	/* The timer of the CQ is gone with it. */
	arm(&s, 4, false);
	host_run_at(s.h, s.h->now + 200000);
	assert_int_equal(events(&s), 1);
	/* An arm counts the entries that software has not seen. */
	for (i = 4; i < 8; i++)
		post(&s, i, 0, false);
	assert_int_equal(events(&s), 2);
	arm(&s, 4, false);
	assert_int_equal(events(&s), 3);
	host_free(s.h);
}

static void test_moderation_time(void **state)
{
	struct setup s = setup((struct options){ 5, 32, 0, 100, 0 });
	uint32_t i;

	(void)state;
	arm(&s, 0, false);
	assert_int_equal(qhca_run(s.h->hca, 0, 1).deadline, QHCA_NEVER);
	for (i = 0; i < 20; i++)
		post(&s, i, 0, false);
	assert_int_equal(events(&s), 0);
	assert_int_equal(qhca_run(s.h->hca, 0, 1).deadline, 100000);
	host_run_at(s.h, 99999);
	assert_int_equal(events(&s), 0);
	host_run_at(s.h, 100000);
	assert_int_equal(events(&s), 1);
	assert_int_equal(qhca_run(s.h->hca, 100000, 1).deadline, QHCA_NEVER);
	host_free(s.h);
}

/* Who arms again while an event is held back has seen what it is for, and still gets it. */
static void test_moderation_arm_again(void **state)
{
	struct setup s = setup((struct options){ 5, 32, 3, 100, 0 });

	(void)state;
	arm(&s, 0, false);
	post(&s, 0, 0, false);
	arm(&s, 1, false);
	assert_int_equal(events(&s), 0);
	assert_int_equal(get_le32(&query(&s)->pending), 1);
	host_run_at(s.h, s.h->now + 100000);
	assert_int_equal(events(&s), 1);
	/* Nothing is counted twice. */
	arm(&s, 1, false);
	post(&s, 1, 0, false);
	arm(&s, 1, true);
	post(&s, 2, 0, false);
	arm(&s, 1, false);
	assert_int_equal(events(&s), 1);
	assert_int_equal(get_le32(&query(&s)->pending), 2);
	post(&s, 3, 0, false);
	assert_int_equal(events(&s), 2);
	host_free(s.h);
}

/* Several CQs are moderated at once, and each posts its event at its time. */
static void test_moderation_many(void **state)
{
	static const uint16_t usec[] = { 300, 100, 200, 100, 400 };
	struct host *h = host_new_ready();
	struct ring eq = host_ring(h, 4), cq;
	struct qhca_cqe cqe = { 0 };
	uint32_t i, seen = 0;
	uint64_t now;

	(void)state;
	assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
	for (i = 0; i < 5; i++) {
		struct qhca_cqc_sw in = { .log_depth = 2 };

		cq = host_ring(h, 2);
		in.buf = cq.buf;
		put_le32(&in.rec_offset, cq.rec_offset);
		put_le32(&in.threshold, 4);
		put_le16(&in.moder_usec, usec[i]);
		assert_int_equal(host_cmd(h, QHCA_CMD_CREATE_CQ, i, 0, &in,
					  sizeof(in), NULL, 0), QHCA_CMD_OK);
		qhca_doorbell(h->hca, 0, 0, QHCA_DB_CQ_ARM, i, 0);
		assert_true(hca_cq_post(h->fn, i, &cqe));
	}
	for (now = 50000; now <= 450000; now += 50000) {
		host_run_at(h, now);
		for (i = 0, seen = 0; i < 5; i++)
			seen += usec[i] * 1000u <= now;
		assert_int_equal(h->fn->eqs.eq[0].pi, seen);
	}
	assert_int_equal(qhca_run(h->hca, now, 1).deadline, QHCA_NEVER);
	host_free(h);
}

/*
 * A CQ that is destroyed or torn down while its timer runs posts no event and leaves no
 * timer.
 */
static void test_moderation_gone(void **state)
{
	struct setup s = setup((struct options){ 5, 32, 0, 100, 0 });

	(void)state;
	arm(&s, 0, false);
	post(&s, 0, 0, false);
	assert_int_equal(host_cmd(s.h, QHCA_CMD_DESTROY_CQ, CQN, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
	host_run_at(s.h, 200000);
	assert_int_equal(events(&s), 0);
	assert_int_equal(s.h->fn->cqs.num_timers, 0);
	host_free(s.h);

	s = setup((struct options){ 5, 32, 0, 100, 0 });
	arm(&s, 0, false);
	post(&s, 0, 0, false);
	assert_int_equal(host_cmd(s.h, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
	assert_int_equal(qhca_run(s.h->hca, 0, 1).deadline, QHCA_NEVER);
	host_run_at(s.h, 200000);
	host_free(s.h);
}

/* With more moderated CQs than timers the others post their events at once. */
static void test_moderation_bound(void **state)
{
	struct qhca_config cfg;
	struct qhca_init_hca init;
	struct setup s;
	struct qhca_cqc_sw in = { 0 };
	unsigned int n = HCA_CQ_MAX_TIMERS + 3, i;
	struct qhca_cqe cqe = { 0 };
	struct ring ring;

	(void)state;
	host_config(&cfg);
	cfg.log_max_cq = 10;
	s.h = host_new(&cfg);
	host_enable(s.h);
	host_init_default(s.h, &init);
	assert_int_equal(host_init_hca(s.h, &init), QHCA_CMD_OK);
	host_map_table(s.h, QHCA_TABLE_EQ);
	host_map_table(s.h, QHCA_TABLE_CQ);
	s.eq = host_ring(s.h, 8);
	assert_int_equal(host_create_eq(s.h, 0, &s.eq, 0), QHCA_CMD_OK);
	put_le16(&in.moder_usec, 50);
	for (i = 0; i < n; i++) {
		ring = host_ring(s.h, 1);
		in.buf = ring.buf;
		in.log_depth = 1;
		put_le32(&in.rec_offset, ring.rec_offset);
		assert_int_equal(host_cmd(s.h, QHCA_CMD_CREATE_CQ, i, 0, &in,
					  sizeof(in), NULL, 0), QHCA_CMD_OK);
		qhca_doorbell(s.h->hca, 0, 0, QHCA_DB_CQ_ARM, i, 0);
		assert_true(hca_cq_post(s.h->fn, i, &cqe));
	}
	assert_int_equal(events(&s), 3);
	host_set_ci(s.h, &s.eq, 3);
	host_run_at(s.h, 50000);
	assert_int_equal(events(&s) + COUNT(s.h, events_held), n);
	host_free(s.h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_moderation_count),
	cmocka_unit_test(test_moderation_time),
	cmocka_unit_test(test_moderation_arm_again),
	cmocka_unit_test(test_moderation_many),
	cmocka_unit_test(test_moderation_gone),
	cmocka_unit_test(test_moderation_bound),
};
TEST_MAIN(tests)
