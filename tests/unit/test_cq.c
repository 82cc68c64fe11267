// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cq_setup.h"

/* ------------------------------------------------------------------------
 * Producing
 */
static void test_post(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	uint32_t i;

	(void)state;
	s.h->fn->hca->now = 5000;
	for (i = 0; i < 19; i++) {
		assert_false(host_cqe_valid(s.h, &s.cq, i));
		assert_true(post(&s, i, 0, false));
		assert_true(host_cqe_valid(s.h, &s.cq, i));
		assert_int_equal(get_le32(&host_cqe(s.h, &s.cq, i)->wqe), i);
		host_set_ci(s.h, &s.cq, i + 1);
	}
	assert_int_equal(get_le64(&host_cqe(s.h, &s.cq, 0)->timestamp), 5000);
	assert_true(get_le32(&host_cqe(s.h, &s.cq, 0)->flags) &
		    QHCA_CQE_REQUESTER);
	assert_int_equal(COUNT(s.h, completions), 19);
	assert_int_equal(COUNT(s.h, completions_error), 0);
	post(&s, 0, QHCA_WC_WR_FLUSH_ERR, false);
	post(&s, 0, QHCA_WC_LOC_PROT_ERR, false);
	assert_int_equal(COUNT(s.h, completions_error), 1);
	assert_int_equal(COUNT(s.h, completions_flushed), 1);
	assert_false(hca_cq_exists(s.h->fn, 8));
	assert_false(hca_cq_post(s.h->fn, 8, &(struct qhca_cqe){ 0 }));
	assert_false(hca_cq_post(s.h->fn, UINT32_MAX,
				 &(struct qhca_cqe){ 0 }));
	host_free(s.h);
}

/* Seed 003, row 4: with threshold t refetching begins at utilisation t + 1. */
static void test_threshold(void **state)
{
	uint32_t t, i;

	(void)state;
	for (t = 0; t <= 16; t++) {
		struct setup s = setup((struct options){ 4, t, 0, 0, 0 });

		for (i = 0; i < 16; i++) {
			assert_true(post(&s, i, 0, false));
			/* At post i + 1 the utilisation is i. */
			assert_int_equal(COUNT(s.h, refetches),
					 i > t ? i - t : 0);
		}
		assert_int_equal(COUNT(s.h, refetches_unchanged),
				 COUNT(s.h, refetches));
		assert_int_equal(COUNT(s.h, refetches_before_overrun), 0);
		host_free(s.h);
	}
}

/*
 * With a consumer that keeps up the device reads its index once in t + 1 completions.
 */
static void test_few_refetches(void **state)
{
	struct setup s = setup((struct options){ 6, 31, 0, 0, 0 });
	uint32_t i;

	(void)state;
	for (i = 0; i < 3200; i++) {
		assert_true(post(&s, i, 0, false));
		host_set_ci(s.h, &s.cq, i + 1);
	}
	assert_in_range(COUNT(s.h, refetches), 95, 100);
	assert_int_equal(COUNT(s.h, refetches_unchanged), 0);
	host_free(s.h);
}

/* A queue that seems full but has been drained does not overrun. */
static void test_refetch_before_overrun(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		post(&s, i, 0, false);
	assert_int_equal(COUNT(s.h, refetches), 0);
	host_set_ci(s.h, &s.cq, 1);
	assert_true(post(&s, 4, 0, false));
	assert_int_equal(COUNT(s.h, refetches_before_overrun), 1);
	assert_int_equal(COUNT(s.h, cq_overruns), 0);
	host_free(s.h);
}

/*
 * A full queue overruns: one event, the last entry is intact, and the device writes no
 * more.
 */
static void test_overrun(void **state)
{
	struct setup s = setup((struct options){ 2, 2, 0, 0, 0 });
	struct qhca_cqe ring[4];
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_true(post(&s, i, 0, false));
	/*
	 * The doorbell reports the entry as seen, but software has not consumed it: there is no
	 * room.
	 */
	arm(&s, 4, false);
	assert_false(post(&s, 4, 0, false));
	host_free(s.h);

	s = setup((struct options){ 2, 2, 0, 0, 0 });
	for (i = 0; i < 4; i++)
		post(&s, i, 0, false);
	memcpy(ring, host_ptr(s.h, s.cq.base), sizeof(ring));
	assert_false(post(&s, 4, 0, false));
	assert_false(post(&s, 5, 0, false));
	host_set_ci(s.h, &s.cq, 4);
	assert_false(post(&s, 6, 0, false));
	assert_memory_equal(host_ptr(s.h, s.cq.base), ring, sizeof(ring));
	assert_int_equal(COUNT(s.h, cq_overruns), 1);
	assert_int_equal(events(&s), 1);
	assert_int_equal(host_eqe(s.h, &s.eq, 0)->type, QHCA_EVENT_CQ_ERROR);
	assert_int_equal(get_le32(&host_eqe(s.h, &s.eq, 0)->number), CQN);
	assert_int_equal(get_le32(&query(&s)->state), HCA_CQ_ERROR);
	host_free(s.h);
}

/* An armed queue that overruns also posts its completion event. */
static void test_overrun_wakes(void **state)
{
	struct setup s = setup((struct options){ 1, 1, 0, 0, 0 });

	(void)state;
	arm(&s, 0, true);
	post(&s, 0, 0, false);
	post(&s, 1, 0, false);
	assert_int_equal(events(&s), 0);
	assert_false(post(&s, 2, 0, false));
	assert_int_equal(events(&s), 2);
	assert_int_equal(host_eqe(s.h, &s.eq, 0)->type, QHCA_EVENT_CQ_ERROR);
	assert_int_equal(host_eqe(s.h, &s.eq, 1)->type, QHCA_EVENT_COMPLETION);
	host_free(s.h);
}

static void test_ignore_overrun(void **state)
{
	struct setup s = setup((struct options){ 2, 1, 0, 0,
						 QHCA_CQ_IGNORE_OVERRUN });
	uint32_t i;

	(void)state;
	for (i = 0; i < 11; i++)
		assert_true(post(&s, i, 0, false));
	for (i = 7; i < 11; i++)
		assert_int_equal(get_le32(&host_cqe(s.h, &s.cq, i)->wqe), i);
	assert_int_equal(COUNT(s.h, refetches), 0);
	assert_int_equal(get_le32(&query(&s)->ci), 7);
	host_free(s.h);
}

/* Consumer indices in the record that are beyond the producer index. */
static void test_insane_ci(void **state)
{
	static const uint32_t insane[] = { 5, 100, UINT32_MAX, 0x80000000 };
	unsigned int k, i;

	(void)state;
	for (k = 0; k < sizeof(insane) / sizeof(insane[0]); k++) {
		struct setup s = setup((struct options){ 2, 0, 0, 0, 0 });

		for (i = 0; i < 4; i++)
			post(&s, i, 0, false);
		host_set_ci(s.h, &s.cq, insane[k]);
		assert_false(post(&s, 4, 0, false));
		host_free(s.h);
	}
}

static void test_dma_error(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });

	(void)state;
	s.h->bad_first = s.cq.base;
	s.h->bad_last = s.cq.base;
	assert_false(post(&s, 0, 0, false));
	assert_int_equal(host_eqe(s.h, &s.eq, 0)->type, QHCA_EVENT_CQ_ERROR);
	assert_int_equal(COUNT(s.h, cq_overruns), 0);
	assert_false(hca_is_dead(s.h->fn));
	host_free(s.h);

	s = setup((struct options){ 2, 0, 0, 0, 0 });
	s.h->bad_first = s.cq.record;
	s.h->bad_last = s.cq.record;
	assert_true(post(&s, 0, 0, false));
	assert_false(post(&s, 1, 0, false));
	assert_int_equal(events(&s), 1);
	host_free(s.h);
}

static void test_modify(void **state)
{
	struct setup s = setup((struct options){ 4, 16, 0, 0, 0 });
	struct qhca_cqc_sw in = { 0 };

	(void)state;
	put_le16(&in.moder_count, 3);
	put_le16(&in.moder_usec, 500);
	assert_int_equal(host_cmd(s.h, QHCA_CMD_MODIFY_CQ, CQN, 0, &in,
				  sizeof(in), NULL, 0), QHCA_CMD_BAD_PARAM);
	assert_int_equal(host_cmd(s.h, QHCA_CMD_MODIFY_CQ, CQN, 4, &in,
				  sizeof(in), NULL, 0), QHCA_CMD_BAD_PARAM);
	assert_int_equal(host_cmd(s.h, QHCA_CMD_MODIFY_CQ, CQN + 1, 1, &in,
				  sizeof(in), NULL, 0), QHCA_CMD_BAD_STATE);
	assert_int_equal(host_cmd(s.h, QHCA_CMD_MODIFY_CQ, CQN,
				  QHCA_CQ_ATTR_MODERATION, &in, sizeof(in),
				  NULL, 0), QHCA_CMD_OK);
	assert_int_equal(get_le16(&query(&s)->sw.moder_usec), 500);
	assert_int_equal(query(&s)->sw.log_depth, 4);
	arm(&s, 0, false);
	post(&s, 0, 0, false);
	post(&s, 1, 0, false);
	assert_int_equal(events(&s), 0);
	post(&s, 2, 0, false);
	assert_int_equal(events(&s), 1);
	host_free(s.h);
}

/* ------------------------------------------------------------------------
 * Life
 */
static void test_create_errors(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	struct ring r = host_ring(s.h, 2);
	struct qhca_cqc_sw good = { .buf = r.buf, .log_depth = 2 }, in;

	(void)state;
	put_le32(&good.rec_offset, r.rec_offset);
#define CREATE(index) host_cmd(s.h, QHCA_CMD_CREATE_CQ, index, 0, &in,	\
			       sizeof(in), NULL, 0)
#define BAD(change) do {						\
	in = good;							\
	change;								\
	assert_int_equal(CREATE(1), QHCA_CMD_BAD_PARAM);		\
} while (0)
	BAD(in.log_depth = 3);
	BAD(in.log_depth = 11);
	BAD(in.log_depth = 64);
	BAD(in.flags = 2);
	BAD(put_le32(&in.threshold, 5));
	BAD(put_le32(&in.db_page, 16));
	BAD(put_le32(&in.eqn, 8));
	BAD(put_le32(&in.rec_offset, r.rec_offset + 64));
	BAD(put_le32(&in.rec_offset, UINT32_MAX - 127));
	BAD(put_le32(&in.buf.length, 0));
	BAD(in.buf.levels = 6);
	in = good;
	put_le32(&in.eqn, 3);		/* not live */
	assert_int_equal(CREATE(1), QHCA_CMD_BAD_STATE);
	in = good;
	assert_int_equal(CREATE(64), QHCA_CMD_BAD_INDEX);
	assert_int_equal(CREATE(CQN), QHCA_CMD_IN_USE);
	assert_int_equal(CREATE(1), QHCA_CMD_OK);
	host_free(s.h);
}

static void test_references(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	struct qhca_cqc *in_table;
	uint64_t addr;

	(void)state;
#define CMD(op, index) host_cmd(s.h, QHCA_CMD_##op, index, 0, NULL, 0, NULL, 0)
	assert_int_equal(CMD(DESTROY_EQ, 0), QHCA_CMD_IN_USE);
	assert_true(hca_cq_ref(s.h->fn, CQN));
	assert_true(hca_cq_ref(s.h->fn, CQN));
	assert_false(hca_cq_ref(s.h->fn, CQN + 1));
	assert_int_equal(CMD(DESTROY_CQ, CQN), QHCA_CMD_IN_USE);
	hca_cq_unref(s.h->fn, CQN);
	assert_int_equal(CMD(DESTROY_CQ, CQN), QHCA_CMD_IN_USE);
	hca_cq_unref(s.h->fn, CQN);
	assert_int_equal(CMD(DESTROY_CQ, CQN), QHCA_CMD_OK);
	assert_int_equal(CMD(DESTROY_CQ, CQN), QHCA_CMD_BAD_STATE);
	assert_int_equal(CMD(DESTROY_EQ, 0), QHCA_CMD_OK);
	assert_true(hca_table_entry(s.h->fn, QHCA_TABLE_CQ, CQN, &addr));
	in_table = host_ptr(s.h, addr);
	assert_int_equal(get_le32(&in_table->state), HCA_CQ_FREE);
	assert_null(hca_ctx_peek(s.h->fn,
				     &s.h->fn->hca->cache.cq, CQN));
	host_free(s.h);
}

/* Held events of a destroyed CQ do not appear as events of its successor. */
static void test_destroy_forgets(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	uint32_t i;

	(void)state;
	for (i = 0; i < 64; i++)
		hca_event(s.h->fn, QHCA_EVENT_QP_FATAL, 1, 0);
	arm(&s, 0, false);
	post(&s, 0, 0, false);
	s.h->bad_first = s.cq.base;
	s.h->bad_last = s.cq.base + 255;
	post(&s, 1, 0, false);		/* a CQ error, held too */
	s.h->bad_last = 0;
	assert_int_equal(COUNT(s.h, events_held), 2);
	assert_int_equal(CMD(DESTROY_CQ, CQN), QHCA_CMD_OK);
	assert_int_equal(host_create_cq(s.h, CQN, &s.cq, 0), QHCA_CMD_OK);
	host_set_ci(s.h, &s.eq, 64);
	host_run_at(s.h, HCA_EQ_POLL_NS);
	assert_int_equal(events(&s), 64);
	host_free(s.h);
}

static void test_features(void **state)
{
	struct qhca_config cfg;
	struct qhca_init_hca init;
	struct setup s;
	struct qhca_cqc_sw in;

	(void)state;
	host_config(&cfg);
	cfg.features = ~(QHCA_FEAT_CQ_MODERATION | QHCA_FEAT_CQ_RESIZE);
	s.h = host_new(&cfg);
	host_enable(s.h);
	host_init_default(s.h, &init);
	assert_int_equal(host_init_hca(s.h, &init), QHCA_CMD_OK);
	host_map_table(s.h, QHCA_TABLE_EQ);
	host_map_table(s.h, QHCA_TABLE_CQ);
	s.eq = host_ring(s.h, 2);
	s.cq = host_ring(s.h, 2);
	assert_int_equal(host_create_eq(s.h, 0, &s.eq, 0), QHCA_CMD_OK);
	memset(&in, 0, sizeof(in));
	in.buf = s.cq.buf;
	in.log_depth = 2;
	put_le32(&in.rec_offset, s.cq.rec_offset);
	put_le16(&in.moder_usec, 1);
	assert_int_equal(CREATE(1), QHCA_CMD_BAD_PARAM);
	put_le16(&in.moder_usec, 0);
	assert_int_equal(CREATE(1), QHCA_CMD_OK);
	assert_int_equal(host_cmd(s.h, QHCA_CMD_MODIFY_CQ, 1,
				  QHCA_CQ_ATTR_MODERATION, &in, sizeof(in),
				  NULL, 0), QHCA_CMD_UNSUPPORTED);
	assert_int_equal(host_cmd(s.h, QHCA_CMD_MODIFY_CQ, 1,
				  QHCA_CQ_ATTR_RESIZE, &in, sizeof(in), NULL,
				  0), QHCA_CMD_UNSUPPORTED);
	host_free(s.h);
}

/* All fields of a context survive eviction, with a cache of one line. */
static void test_eviction(void **state)
{
	struct host *h = host_new_cache(QHCA_CACHE_CQ, 1, 1);
	struct setup s = { .h = h };
	struct qhca_cqc before, after;
	struct ring other;

	(void)state;
	s.eq = host_ring(h, 6);
	s.cq = host_ring(h, 3);
	other = host_ring(h, 3);
	assert_int_equal(host_create_eq(h, 0, &s.eq, 0), QHCA_CMD_OK);
	assert_int_equal(host_create_cq(h, CQN, &s.cq, 0), QHCA_CMD_OK);
	assert_int_equal(host_create_cq(h, 1, &other, 0), QHCA_CMD_OK);
	post(&s, 0, 0, true);
	post(&s, 1, 0, false);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_CQ_ARM,
		      CQN | QHCA_DB_CQ_SOLICITED | 1ull << 32, 0);
	before = *query(&s);
	assert_true(hca_cq_post(h->fn, 1, &(struct qhca_cqe){ 0 }));
	assert_null(hca_ctx_peek(h->fn,
				     &h->fn->hca->cache.cq, CQN));
	after = *query(&s);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(get_le32(&after.arm), HCA_ARM_SOLICITED);
	assert_int_equal(get_le32(&after.pi), 2);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_post),
	cmocka_unit_test(test_threshold),
	cmocka_unit_test(test_few_refetches),
	cmocka_unit_test(test_refetch_before_overrun),
	cmocka_unit_test(test_overrun),
	cmocka_unit_test(test_overrun_wakes),
	cmocka_unit_test(test_ignore_overrun),
	cmocka_unit_test(test_insane_ci),
	cmocka_unit_test(test_dma_error),
	cmocka_unit_test(test_modify),
	cmocka_unit_test(test_create_errors),
	cmocka_unit_test(test_references),
	cmocka_unit_test(test_destroy_forgets),
	cmocka_unit_test(test_features),
	cmocka_unit_test(test_eviction),
};
TEST_MAIN(tests)
