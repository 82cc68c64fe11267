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
	/* the first access evicts a clean line */
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

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_ctx_writeback),
	cmocka_unit_test(test_ctx_hit),
	cmocka_unit_test(test_ctx_fetch_fails),
	cmocka_unit_test(test_ctx_corrupt),
	cmocka_unit_test(test_ctx_read),
};
TEST_MAIN(tests)
