// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Single properties of the cache, and the context caches.  The cache against a
 * model is test_cache_model.c.
 */
#include "unit.h"

struct counted {
	struct hca_cache c;
	uint64_t evictions, conflicts, stale, hits, misses;
};

static struct counted *counted_new(uint16_t sets, uint16_t blocks)
{
	struct counted *p = calloc(1, sizeof(*p));
	struct hca_cache_counts counts;

	assert_non_null(p);
	counts = (struct hca_cache_counts){
		.hits = &p->hits, .misses = &p->misses,
		.evictions = &p->evictions, .conflicts = &p->conflicts,
		.stale_fills = &p->stale,
	};
	assert_true(hca_cache_init(&p->c, (struct qhca_geometry){ sets, blocks },
				   sizeof(uint64_t), &counts));
	return p;
}

static void counted_free(struct counted *p)
{
	hca_cache_fini(&p->c);
	free(p);
}

/* ------------------------------------------------------------------------
 * Single properties
 */
static bool touch(struct hca_cache *c, uint32_t index)
{
	struct hca_tag tag = { .index = index };

	if (hca_cache_lookup(c, tag))
		return true;
	assert_non_null(hca_cache_install(c, tag, hca_cache_fill_begin(c)));
	return false;
}

/* Seed 000, row 5: keys a set-count apart conflict; blocks + 1 thrash. */
static void test_conflict(void **state)
{
	struct counted *p = counted_new(8, 4);
	unsigned int round, k;

	(void)state;
	for (round = 0; round < 10; round++)
		for (k = 0; k < 4; k++)
			assert_int_equal(touch(&p->c, 3 + 8 * k), round > 0);
	assert_int_equal(p->evictions, 0);
	for (round = 0; round < 10; round++)
		for (k = 0; k < 5; k++)
			touch(&p->c, 3 + 8 * k);
	assert_true(p->evictions > 10);
	assert_int_equal(p->conflicts, p->evictions);
	counted_free(p);
}

static void test_geometry(void **state)
{
	struct qhca_geometry max = { 16, 8 };
	static const struct { uint16_t s, b; bool ok; } cases[] = {
		{ 1, 1, true }, { 16, 8, true }, { 0, 1, false },
		{ 1, 0, false }, { 3, 1, false }, { 1, 3, false },
		{ 32, 1, false }, { 1, 16, false },
	};
	struct qhca_geometry g;
	struct hca_cache c;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		g = (struct qhca_geometry){ cases[i].s, cases[i].b };
		assert_int_equal(hca_geometry_valid(&g, &max), cases[i].ok);
	}
	g = (struct qhca_geometry){ 1, 128 };
	assert_false(hca_geometry_valid(&g, NULL));
	g = (struct qhca_geometry){ 32768, 64 };
	assert_false(hca_geometry_valid(&g, NULL));
	g = (struct qhca_geometry){ 3, 1 };
	assert_false(hca_cache_init(&c, g, 8, NULL));
	hca_cache_fini(&c);
}

/* A fill begun before an invalidation that covers it does not install. */
static void test_epoch(void **state)
{
	struct counted *p = counted_new(4, 2);
	struct hca_tag tag = { .index = 9, .page = 5 };
	uint64_t epoch;
	unsigned int i;

	(void)state;
	epoch = hca_cache_fill_begin(&p->c);
	hca_cache_invalidate_index(&p->c, 0, 8);
	hca_cache_invalidate_index(&p->c, 1, 9);
	hca_cache_invalidate_range(&p->c, 0, 9, 6, 100);
	hca_cache_invalidate_range(&p->c, 0, 9, 0, 4);
	assert_non_null(hca_cache_install(&p->c, tag, epoch));
	assert_int_equal(p->stale, 0);
	hca_cache_invalidate_range(&p->c, 0, 9, 5, 5);
	assert_null(hca_cache_install(&p->c, tag, epoch));
	assert_int_equal(p->stale, 1);
	assert_null(hca_cache_peek(&p->c, tag));

	epoch = hca_cache_fill_begin(&p->c);
	hca_cache_invalidate_index(&p->c, 0, 9);
	assert_null(hca_cache_install(&p->c, tag, epoch));
	epoch = hca_cache_fill_begin(&p->c);
	hca_cache_invalidate_all(&p->c);
	assert_null(hca_cache_install(&p->c, tag, epoch));

	/* what the log has forgotten may have covered it */
	epoch = hca_cache_fill_begin(&p->c);
	for (i = 0; i < HCA_CACHE_LOG_SIZE; i++)
		hca_cache_invalidate_index(&p->c, 0, 1);
	assert_non_null(hca_cache_install(&p->c, tag, epoch));
	hca_cache_invalidate_index(&p->c, 0, 1);
	assert_null(hca_cache_install(&p->c, tag, epoch));
	assert_int_equal(p->stale, 4);
	counted_free(p);
}

/* A tag that is there already keeps its line, wherever that is. */
static void test_install_again(void **state)
{
	struct counted *p = counted_new(2, 4);
	struct hca_tag tag = { .index = 0 };
	void *line[4], *again;

	(void)state;
	for (tag.index = 0; tag.index < 8; tag.index += 2) {
		touch(&p->c, tag.index);
		line[tag.index / 2] = hca_cache_peek(&p->c, tag);
		hca_cache_set_dirty(&p->c, line[tag.index / 2], true);
	}
	for (tag.index = 0; tag.index < 8; tag.index += 2) {
		again = hca_cache_install(&p->c, tag,
					  hca_cache_fill_begin(&p->c));
		assert_ptr_equal(again, line[tag.index / 2]);
		assert_false(hca_cache_is_dirty(&p->c, again));
	}
	assert_int_equal(p->c.valid, 4);
	assert_int_equal(p->evictions, 0);
	counted_free(p);
}

static void test_sticky(void **state)
{
	struct counted *p = counted_new(1, 2);
	struct hca_tag a = { .index = 1 }, b = { .index = 2 },
		       c = { .index = 3 };

	(void)state;
	touch(&p->c, 1);
	touch(&p->c, 2);
	hca_cache_set_sticky(&p->c, hca_cache_peek(&p->c, a), true);
	touch(&p->c, 3);
	assert_non_null(hca_cache_peek(&p->c, a));
	assert_null(hca_cache_peek(&p->c, b));
	hca_cache_set_sticky(&p->c, hca_cache_peek(&p->c, c), true);
	assert_null(hca_cache_install(&p->c, b, hca_cache_fill_begin(&p->c)));
	/* invalidation does not mind */
	hca_cache_invalidate_index(&p->c, 0, 1);
	assert_null(hca_cache_peek(&p->c, a));
	counted_free(p);
}

static void test_peek(void **state)
{
	struct counted *p = counted_new(1, 2);
	struct hca_tag a = { .index = 1 }, none = { .index = 7 };
	uint64_t hits, misses;

	(void)state;
	touch(&p->c, 1);
	touch(&p->c, 2);
	hits = p->hits, misses = p->misses;
	assert_non_null(hca_cache_peek(&p->c, a));
	assert_null(hca_cache_peek(&p->c, none));
	assert_int_equal(p->hits, hits);
	assert_int_equal(p->misses, misses);
	touch(&p->c, 3);		/* peek did not make 1 the younger */
	assert_null(hca_cache_peek(&p->c, a));
	counted_free(p);
}

struct walked {
	unsigned int seen[8];
	uint32_t stop_at;
};

static bool count_line(void *arg, uint32_t set, uint32_t block,
		       const struct hca_cache_tagline *line,
		       const void *payload)
{
	struct walked *w = arg;

	assert_non_null(payload);
	assert_true(block < 2);
	assert_true(line->valid);
	assert_int_equal(set, line->tag.index % 4);
	w->seen[line->tag.index]++;
	return line->tag.index != w->stop_at;
}

static void test_for_each(void **state)
{
	struct counted *p = counted_new(4, 2);
	struct walked w = { .stop_at = 99 };
	unsigned int i;

	(void)state;
	for (i = 0; i < 8; i++)
		touch(&p->c, i);
	hca_cache_invalidate_index(&p->c, 0, 5);
	hca_cache_for_each(&p->c, 0, count_line, &w);
	for (i = 0; i < 8; i++)
		assert_int_equal(w.seen[i], i != 5);
	/* from a set on, until told to stop: 2, 6, 3 */
	w = (struct walked){ .stop_at = 3 };
	hca_cache_for_each(&p->c, 2, count_line, &w);
	for (i = 0; i < 8; i++)
		assert_int_equal(w.seen[i], i == 2 || i == 6 || i == 3);
	hca_cache_for_each(&p->c, 4, count_line, &w);
	for (i = 0; i < 8; i++)
		assert_int_equal(w.seen[i], i == 2 || i == 6 || i == 3);
	counted_free(p);
}

/* ------------------------------------------------------------------------
 * Context caches, by way of completion queues
 */
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
	cmocka_unit_test(test_conflict),
	cmocka_unit_test(test_geometry),
	cmocka_unit_test(test_epoch),
	cmocka_unit_test(test_install_again),
	cmocka_unit_test(test_sticky),
	cmocka_unit_test(test_peek),
	cmocka_unit_test(test_for_each),
	cmocka_unit_test(test_ctx_writeback),
	cmocka_unit_test(test_ctx_hit),
	cmocka_unit_test(test_ctx_fetch_fails),
	cmocka_unit_test(test_ctx_corrupt),
	cmocka_unit_test(test_ctx_read),
};
TEST_MAIN(tests)
