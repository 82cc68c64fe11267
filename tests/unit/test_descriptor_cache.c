// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queue descriptor caches, by way of completion queues.
 */
#include "unit.h"

static struct host *with_cqs(unsigned int num, uint16_t sets, uint16_t blocks,
			     struct ring *cq)
{
	struct host *h = host_new_cache(QHCA_CACHE_CQ, sets, blocks);
	struct ring eq = host_ring(h, 4);
	unsigned int i;

	assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
	for (i = 0; i < num; i++) {
		cq[i] = host_ring(h, 4);
		assert_int_equal(host_create_cq(h, i, &cq[i], 0), QHCA_CMD_OK);
	}
	return h;
}

static bool post(struct host *h, uint32_t cqn)
{
	struct qhca_cqe cqe = { 0 };

	return hca_cq_post(h->fn, cqn, &cqe);
}

/* With one line, each change of object writes back, and nothing is lost. */
static void test_ctx_writeback(void **state)
{
	struct ring cq[4];
	struct host *h = with_cqs(4, 1, 1, cq);
	uint64_t misses = COUNT(h, cqc_misses), wb = COUNT(h, cqc_writebacks);
	uint64_t hits = COUNT(h, cqc_hits);
	unsigned int round, i;

	(void)state;
	for (round = 0; round < 10; round++)
		for (i = 0; i < 4; i++)
			assert_true(post(h, i));
	assert_int_equal(COUNT(h, cqc_misses) - misses, 40);
	/* The first access evicts a clean line. */
	assert_int_equal(COUNT(h, cqc_writebacks) - wb, 39);
	assert_int_equal(COUNT(h, cqc_hits), hits);
	for (i = 0; i < 4; i++) {
		assert_true(host_cqe_valid(h, &cq[i], 9));
		assert_false(host_cqe_valid(h, &cq[i], 10));
	}
	host_free(h);
}

/* The same object again: no DMA for its context at all. */
static void test_ctx_hit(void **state)
{
	struct ring cq[2];
	struct host *h = with_cqs(2, 1, 2, cq);
	uint64_t reads, hits;

	(void)state;
	post(h, 0);
	post(h, 1);
	reads = h->reads;
	hits = COUNT(h, cqc_hits);
	post(h, 0);
	post(h, 1);
	post(h, 1);
	assert_int_equal(h->reads, reads);
	assert_int_equal(COUNT(h, cqc_hits), hits + 3);
	host_free(h);
}

static void test_ctx_fetch_fails(void **state)
{
	struct ring cq[2];
	struct host *h = with_cqs(2, 1, 1, cq);

	(void)state;
	post(h, 0);
	h->fail_in = 2;			/* the write-back of 0 */
	assert_false(post(h, 1));
	assert_int_equal(h->fn->status & QHCA_STATUS_FATAL_CAUSE,
			 QHCA_FATAL_TABLE_DMA << 8);
	assert_int_equal(h->fn->fatal_info, QHCA_TABLE_CQ << 24 | 0);
	assert_false(post(h, 1));
	host_free(h);

	h = with_cqs(2, 1, 1, cq);
	h->fail_in = 1;			/* the fetch of 0 */
	assert_false(post(h, 0));
	assert_int_equal(h->fn->fatal_info, QHCA_TABLE_CQ << 24 | 0);
	host_free(h);
}

/* A context that the device did not write is fatal, not believed. */
static void test_ctx_corrupt(void **state)
{
	struct ring cq[2];
	struct host *h = with_cqs(2, 1, 1, cq);
	struct qhca_cqc *c;
	uint64_t addr;

	(void)state;
	assert_true(hca_table_entry(h->fn, QHCA_TABLE_CQ, 0, &addr));
	c = host_ptr(h, addr);
	assert_int_equal(get_le32(&c->state), 1);
	c->sw.log_depth = 31;
	assert_false(post(h, 0));
	assert_int_equal(h->fn->status & QHCA_STATUS_FATAL_CAUSE,
			 QHCA_FATAL_CONTEXT << 8);
	assert_int_equal(h->fn->fatal_info, QHCA_TABLE_CQ << 24 | 0);
	host_free(h);
}

static void test_ctx_read(void **state)
{
	struct ring cq[2];
	struct host *h = with_cqs(2, 1, 1, cq);
	struct hca_cq copy;
	uint64_t hits, misses;

	(void)state;
	post(h, 0);
	post(h, 1);
	post(h, 1);
	hits = COUNT(h, cqc_hits), misses = COUNT(h, cqc_misses);
	assert_true(hca_ctx_read(h->fn, &h->fn->hca->cache.cq, 0, &copy));
	assert_int_equal(copy.pi, 1);
	assert_true(hca_ctx_read(h->fn, &h->fn->hca->cache.cq, 1, &copy));
	assert_int_equal(copy.pi, 2);
	assert_non_null(hca_ctx_peek(h->fn,
				     &h->fn->hca->cache.cq, 1));
	assert_null(hca_ctx_peek(h->fn,
				     &h->fn->hca->cache.cq, 0));
	assert_int_equal(COUNT(h, cqc_hits), hits);
	assert_int_equal(COUNT(h, cqc_misses), misses);
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Two functions and one line: each fill evicts the context of the other
 */
struct two {
	struct host *pf, *vf;
	struct ring cq[2];		/* CQ 0 of each */
};

static struct two two_functions(void)
{
	struct two t = { .pf = host_new_cache(QHCA_CACHE_CQ, 1, 1) };
	struct qhca_init_hca in;
	struct ring eq;

	t.vf = host_new_vf(t.pf, 3, NULL);
	host_enable(t.vf);
	host_init_default(t.vf, &in);
	assert_int_equal(host_init_hca(t.vf, &in), QHCA_CMD_OK);
	for (unsigned int i = 0; i < QHCA_NUM_TABLES; i++)
		host_map_table(t.vf, (enum qhca_table)i);
	for (int i = 0; i < 2; i++) {
		struct host *h = i ? t.vf : t.pf;

		eq = host_ring(h, 4);
		assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
		t.cq[i] = host_ring(h, 4);
		assert_int_equal(host_create_cq(h, 0, &t.cq[i], 0),
				 QHCA_CMD_OK);
	}
	return t;
}

/* What is in memory as the producer index of the function's CQ 0. */
static uint32_t pi_in_memory(struct host *h)
{
	struct qhca_cqc *c;
	uint64_t addr;

	assert_true(hca_table_entry(h->fn, QHCA_TABLE_CQ, 0, &addr));
	c = host_ptr(h, addr);
	return get_le32(&c->pi);
}

/* A victim is written to the memory of its own function, for which the other counts. */
static void test_evicts_the_other(void **state)
{
	struct two t = two_functions();
	uint64_t pf, vf;

	(void)state;
	assert_true(post(t.pf, 0));
	pf = COUNT(t.pf, cqc_writebacks);
	vf = COUNT(t.vf, cqc_writebacks);
	for (uint32_t i = 1; i < 10; i++) {
		assert_true(post(t.vf, 0));
		assert_int_equal(pi_in_memory(t.pf), i);
		assert_int_equal(COUNT(t.vf, cqc_writebacks), vf + i);
		assert_true(post(t.pf, 0));
		assert_int_equal(pi_in_memory(t.vf), i);
		assert_int_equal(COUNT(t.pf, cqc_writebacks), pf + i);
	}
	host_free(t.pf);
}

/* The context of a dead function is evicted, and its memory stays as it is. */
static void test_victim_is_dead(void **state)
{
	struct two t = two_functions();
	uint64_t writebacks;
	uint32_t before;

	(void)state;
	assert_true(post(t.vf, 0));
	before = pi_in_memory(t.vf);
	hca_fatal(t.vf->fn, QHCA_FATAL_INJECTED, 0);
	writebacks = COUNT(t.pf, cqc_writebacks);
	assert_true(post(t.pf, 0));
	assert_int_equal(pi_in_memory(t.vf), before);
	assert_int_equal(COUNT(t.pf, cqc_writebacks), writebacks);
	host_free(t.pf);
}

/* A victim that cannot be written is fatal to its own function alone. */
static void test_victim_is_unreachable(void **state)
{
	struct two t = two_functions();

	(void)state;
	assert_true(post(t.vf, 0));
	t.vf->fail_in = 1;
	assert_true(post(t.pf, 0));
	assert_false(hca_is_dead(t.pf->fn));
	assert_int_equal(t.vf->fn->status & QHCA_STATUS_FATAL_CAUSE,
			 QHCA_FATAL_TABLE_DMA << 8);
	assert_int_equal(t.vf->fn->fatal_info, QHCA_TABLE_CQ << 24 | 0);
	assert_true(host_cqe_valid(t.pf, &t.cq[0], 0));
	host_free(t.pf);
}

/* TEARDOWN_HCA drops the contexts of its function, whose memory is software's again. */
static void test_teardown_of_one(void **state)
{
	struct two t = two_functions();
	uint32_t before;

	(void)state;
	assert_true(post(t.pf, 0));
	before = pi_in_memory(t.pf);
	assert_int_equal(host_cmd(t.vf, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
	assert_int_equal(pi_in_memory(t.pf), before);	/* dirty, and it stays */
	assert_non_null(hca_ctx_peek(t.pf->fn, &t.pf->fn->hca->cache.cq, 0));
	assert_true(post(t.pf, 0));
	assert_true(host_cqe_valid(t.pf, &t.cq[0], 1));

	qhca_reset(t.pf->hca, 0, t.pf->now);
	assert_int_equal(t.pf->fn->hca->cache.cq.cache.valid, 0);
	host_free(t.pf);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_evicts_the_other),
	cmocka_unit_test(test_victim_is_dead),
	cmocka_unit_test(test_victim_is_unreachable),
	cmocka_unit_test(test_teardown_of_one),
	cmocka_unit_test(test_ctx_writeback),
	cmocka_unit_test(test_ctx_hit),
	cmocka_unit_test(test_ctx_fetch_fails),
	cmocka_unit_test(test_ctx_corrupt),
	cmocka_unit_test(test_ctx_read),
};
TEST_MAIN(tests)
