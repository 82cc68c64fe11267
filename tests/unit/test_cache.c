// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Single properties of the cache.  The cache against a model is
 * test_cache_model.c.
 */
#include "unit.h"

struct counted {
	struct hca_cache c;
	struct hca_cache_user user, other;	/* GVMI 0 and 1 */
	uint64_t evictions, conflicts, stale, hits, misses;
	uint64_t invalidations;
};

static struct counted *counted_new(uint16_t sets, uint16_t blocks)
{
	struct counted *p = calloc(1, sizeof(*p));
	struct hca_cache_counts counts;

	assert_non_null(p);
	counts = (struct hca_cache_counts){
		.hits = &p->hits, .misses = &p->misses,
		.evictions = &p->evictions, .conflicts = &p->conflicts,
		.stale_fills = &p->stale, .invalidations = &p->invalidations,
	};
	hca_cache_user_init(&p->user, 0, &counts);
	hca_cache_user_init(&p->other, 1, NULL);
	assert_true(hca_cache_join(&p->c, &p->user,
				   (struct qhca_geometry){ sets, blocks },
				   sizeof(uint64_t)));
	return p;
}

static void counted_free(struct counted *p)
{
	hca_cache_leave(&p->c, &p->user);
	assert_null(p->c.line);
	free(p);
}

/* ------------------------------------------------------------------------
 * Single properties
 */
static bool touch(struct counted *p, uint32_t index)
{
	struct hca_tag tag = { .index = index };

	if (hca_cache_lookup(&p->c, &p->user, tag))
		return true;
	assert_non_null(hca_cache_install(&p->c, &p->user, tag,
					  hca_cache_fill_begin(&p->c)));
	return false;
}

/* The line of a payload is found for payloads of any size. */
static void test_sizes(void **state)
{
	const struct qhca_geometry g = { 8, 2 };
	struct hca_cache_user user;

	(void)state;
	hca_cache_user_init(&user, 0, NULL);
	for (size_t size = 1; size < 3000; size += size < 300 ? 1 : 91) {
		struct hca_cache c = { 0 };

		assert_true(hca_cache_join(&c, &user, g, size));
		for (uint32_t i = 0; i < 16; i++)
			assert_non_null(hca_cache_install(
				&c, &user, (struct hca_tag){ .index = i },
				hca_cache_fill_begin(&c)));
		for (uint32_t i = 0; i < 16; i++) {
			struct hca_tag tag = { .index = i };

			hca_cache_set_dirty(&c, hca_cache_peek(&c, tag), true);
			for (uint32_t k = 0; k < 16; k++)
				assert_int_equal(c.line[k].dirty,
						 c.line[k].tag.index <= i);
		}
		hca_cache_leave(&c, &user);
	}
}

/* Seed 000, row 5: keys a set-count apart conflict; blocks + 1 thrash. */
static void test_conflict(void **state)
{
	struct counted *p = counted_new(8, 4);
	unsigned int round, k;

	(void)state;
	for (round = 0; round < 10; round++)
		for (k = 0; k < 4; k++)
			assert_int_equal(touch(p, 3 + 8 * k), round > 0);
	assert_int_equal(p->evictions, 0);
	for (round = 0; round < 10; round++)
		for (k = 0; k < 5; k++)
			touch(p, 3 + 8 * k);
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
	struct hca_cache_user user;
	struct hca_cache c = { 0 };
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
	hca_cache_user_init(&user, 0, NULL);
	assert_false(hca_cache_join(&c, &user, g, 8));
	hca_cache_leave(&c, &user);
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
	hca_cache_invalidate_index(&p->c, &p->user, 8);
	hca_cache_invalidate_index(&p->c, &p->other, 9);
	hca_cache_invalidate_range(&p->c, &p->user, 9, 6, 100);
	hca_cache_invalidate_range(&p->c, &p->user, 9, 0, 4);
	assert_non_null(hca_cache_install(&p->c, &p->user, tag, epoch));
	assert_int_equal(p->stale, 0);
	hca_cache_invalidate_range(&p->c, &p->user, 9, 5, 5);
	assert_null(hca_cache_install(&p->c, &p->user, tag, epoch));
	assert_int_equal(p->stale, 1);
	assert_null(hca_cache_peek(&p->c, tag));

	epoch = hca_cache_fill_begin(&p->c);
	hca_cache_invalidate_index(&p->c, &p->user, 9);
	assert_null(hca_cache_install(&p->c, &p->user, tag, epoch));
	epoch = hca_cache_fill_begin(&p->c);
	hca_cache_invalidate_all(&p->c, &p->user);
	assert_null(hca_cache_install(&p->c, &p->user, tag, epoch));

	/* A range that the log has forgotten may have covered the line. */
	epoch = hca_cache_fill_begin(&p->c);
	for (i = 0; i < HCA_CACHE_LOG_SIZE; i++)
		hca_cache_invalidate_index(&p->c, &p->user, 1);
	assert_non_null(hca_cache_install(&p->c, &p->user, tag, epoch));
	hca_cache_invalidate_index(&p->c, &p->user, 1);
	assert_null(hca_cache_install(&p->c, &p->user, tag, epoch));
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
		touch(p, tag.index);
		line[tag.index / 2] = hca_cache_peek(&p->c, tag);
		hca_cache_set_dirty(&p->c, line[tag.index / 2], true);
	}
	for (tag.index = 0; tag.index < 8; tag.index += 2) {
		again = hca_cache_install(&p->c, &p->user, tag,
					  hca_cache_fill_begin(&p->c));
		assert_ptr_equal(again, line[tag.index / 2]);
		assert_false(hca_cache_is_dirty(&p->c, again));
	}
	assert_int_equal(p->c.valid, 4);
	assert_int_equal(p->evictions, 0);
	counted_free(p);
}

static void test_peek(void **state)
{
	struct counted *p = counted_new(1, 2);
	struct hca_tag a = { .index = 1 }, none = { .index = 7 };
	uint64_t hits, misses;

	(void)state;
	touch(p, 1);
	touch(p, 2);
	hits = p->hits, misses = p->misses;
	assert_non_null(hca_cache_peek(&p->c, a));
	assert_null(hca_cache_peek(&p->c, none));
	assert_int_equal(p->hits, hits);
	assert_int_equal(p->misses, misses);
	touch(p, 3);		/* peek did not make 1 the younger */
	assert_null(hca_cache_peek(&p->c, a));
	counted_free(p);
}

/* Lines of two functions with equal indices: what one does leaves the other's. */
static void test_two_functions(void **state)
{
	struct counted *p = counted_new(2, 4);
	struct hca_tag mine = { .index = 3 }, theirs = { .index = 3, .gvmi = 1 };
	uint64_t epoch, *line;

	(void)state;
	assert_true(hca_cache_join(&p->c, &p->other,
				   (struct qhca_geometry){ 64, 64 }, 8));
	assert_int_equal(p->c.geometry.sets, 2);	/* it is as it was */
	epoch = hca_cache_fill_begin(&p->c);
	line = hca_cache_install(&p->c, &p->other, theirs, epoch);
	touch(p, 3);
	*line = 77;
	hca_cache_set_dirty(&p->c, line, true);

	hca_cache_invalidate_index(&p->c, &p->user, 3);
	assert_null(hca_cache_peek(&p->c, mine));
	assert_ptr_equal(hca_cache_peek(&p->c, theirs), line);
	touch(p, 3);
	hca_cache_invalidate_all(&p->c, &p->user);
	assert_null(hca_cache_peek(&p->c, mine));
	assert_ptr_equal(hca_cache_peek(&p->c, theirs), line);
	assert_int_equal(p->invalidations, 2);

	/* The function goes, and its fills that are under way do not install. */
	touch(p, 3);
	epoch = hca_cache_fill_begin(&p->c);
	hca_cache_leave(&p->c, &p->user);
	assert_null(hca_cache_peek(&p->c, mine));
	assert_null(hca_cache_install(&p->c, &p->user, mine, epoch));
	assert_int_equal(p->invalidations, 2);		/* not counted */
	assert_ptr_equal(hca_cache_peek(&p->c, theirs), line);
	assert_int_equal(*line, 77);
	assert_true(hca_cache_is_dirty(&p->c, line));
	assert_non_null(hca_cache_install(&p->c, &p->other, theirs, epoch));
	hca_cache_leave(&p->c, &p->user);		/* once more: nothing */
	assert_non_null(p->c.line);
	hca_cache_leave(&p->c, &p->other);
	counted_free(p);
}

/*
 * A neighbour that fills without end takes every line of a victim, and takes only lines
 * of its own blocks if it is limited to those.
 */
static void test_mask(void **state)
{
	(void)state;
	for (int limited = 0; limited < 2; limited++) {
		struct counted *p = counted_new(4, 4);
		struct hca_tag theirs = { .gvmi = 1 };
		unsigned int i;

		p->user.blocks = limited ? 0x7 : 0;
		p->other.blocks = limited ? 0x8 : 0;
		assert_true(hca_cache_join(&p->c, &p->other,
					   p->c.geometry, 8));
		for (i = 0; i < 12; i++)
			touch(p, i);
		for (theirs.index = 0; theirs.index < 400; theirs.index++)
			assert_non_null(hca_cache_install(&p->c, &p->other,
							  theirs,
							  p->c.epoch));
		for (i = 0; i < 12; i++)
			assert_int_equal(!!hca_cache_peek(&p->c,
							  (struct hca_tag){ .index = i }),
					 limited);
		hca_cache_leave(&p->c, &p->other);
		counted_free(p);
	}
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
		touch(p, i);
	hca_cache_invalidate_index(&p->c, &p->user, 5);
	hca_cache_for_each(&p->c, 0, count_line, &w);
	for (i = 0; i < 8; i++)
		assert_int_equal(w.seen[i], i != 5);
	/* The walk begins at a set and stops when the callback says so: 2, 6, 3. */
	w = (struct walked){ .stop_at = 3 };
	hca_cache_for_each(&p->c, 2, count_line, &w);
	for (i = 0; i < 8; i++)
		assert_int_equal(w.seen[i], i == 2 || i == 6 || i == 3);
	hca_cache_for_each(&p->c, 4, count_line, &w);
	for (i = 0; i < 8; i++)
		assert_int_equal(w.seen[i], i == 2 || i == 6 || i == 3);
	counted_free(p);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_conflict),
	cmocka_unit_test(test_geometry),
	cmocka_unit_test(test_epoch),
	cmocka_unit_test(test_install_again),
	cmocka_unit_test(test_peek),
	cmocka_unit_test(test_sizes),
	cmocka_unit_test(test_two_functions),
	cmocka_unit_test(test_mask),
	cmocka_unit_test(test_for_each),
};
TEST_MAIN(tests)
