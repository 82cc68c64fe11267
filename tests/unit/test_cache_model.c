// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The cache against the plain model (plain.h): the same accesses to both, from
 * random seeds and from the study (tests/study/cases.txt), must hit, miss,
 * evict, conflict and invalidate alike, one by one and in sum.
 */
#include <stdio.h>

#include "unit.h"

#include "cases.h"
#include "plain.h"

#define SEEDS	1000
#define GUESTS	2

struct both {
	struct hca_cache c;
	struct hca_cache_user user[GUESTS];	/* by GVMI, which count together */
	struct plain *plain;
	uint64_t hits, misses, evictions, conflicts, invalidations, stale;
	uint64_t writebacks;
	uint64_t written;		/* by the write-back callback */
	uint64_t rng;
	unsigned int lines;
	bool masks;			/* of blocks that change */
};

static struct plain_name name_of(const struct hca_tag *tag)
{
	return (struct plain_name){
		.guest = tag->gvmi, .index = tag->index, .page = tag->page,
	};
}

/* The cache fills before the model, whose victim is still there. */
static bool on_writeback(void *arg, const struct hca_tag *tag, void *payload)
{
	struct both *b = arg;
	const struct plain_entry *e = plain_find(b->plain, name_of(tag));

	assert_non_null(e);
	assert_true(e->dirty);
	assert_int_equal(*(uint64_t *)payload, e->value);
	b->written++;
	return true;
}

static struct both *both_new(uint16_t sets, uint16_t blocks, uint64_t seed)
{
	struct both *b = calloc(1, sizeof(*b));
	struct hca_cache_counts counts;

	assert_non_null(b);
	counts = (struct hca_cache_counts){
		.hits = &b->hits, .misses = &b->misses,
		.evictions = &b->evictions, .conflicts = &b->conflicts,
		.invalidations = &b->invalidations, .stale_fills = &b->stale,
		.writebacks = &b->writebacks,
	};
	for (uint16_t gvmi = 0; gvmi < GUESTS; gvmi++) {
		hca_cache_user_init(&b->user[gvmi], gvmi, &counts);
		assert_true(hca_cache_join(&b->c, &b->user[gvmi],
					   (struct qhca_geometry){ sets, blocks },
					   sizeof(uint64_t)));
	}
	b->c.writeback = on_writeback;
	b->c.arg = b;
	b->plain = plain_new(sets, blocks);
	b->lines = (unsigned int)sets * blocks;
	b->rng = seed;
	return b;
}

static void both_free(struct both *b)
{
	plain_free(b->plain);
	for (uint16_t gvmi = 0; gvmi < GUESTS; gvmi++)
		hca_cache_leave(&b->c, &b->user[gvmi]);
	assert_null(b->c.line);
	free(b);
}

static uint64_t below(struct both *b, uint64_t n)
{
	return host_random(&b->rng) % n;
}

static void compare(const struct both *b)
{
	const struct plain_counts *counts = plain_counts(b->plain);

	assert_int_equal(b->hits, counts->hits);
	assert_int_equal(b->misses, counts->misses);
	assert_int_equal(b->evictions, counts->evictions);
	assert_int_equal(b->conflicts, counts->conflicts);
	assert_int_equal(b->invalidations, counts->invalidations);
	assert_int_equal(b->writebacks, counts->writebacks);
	assert_int_equal(b->written, counts->writebacks);
	assert_int_equal(b->stale, 0);
	assert_int_equal(b->c.valid, plain_in_use(b->plain));
}

/* An access to both, which end with the entry and the line of it. */
static struct plain_entry *access_both(struct both *b, const struct hca_tag *tag,
				       uint64_t **payload)
{
	struct plain_entry *e = plain_lookup(b->plain, name_of(tag));

	*payload = hca_cache_lookup(&b->c, &b->user[tag->gvmi], *tag);
	assert_true(!*payload == !e);
	if (e) {
		assert_int_equal(**payload, e->value);
		return e;
	}
	*payload = hca_cache_install(&b->c, &b->user[tag->gvmi], *tag,
				     hca_cache_fill_begin(&b->c));
	assert_non_null(*payload);
	e = plain_fill_in(b->plain, name_of(tag), b->user[tag->gvmi].blocks);
	**payload = e->value = host_random(&b->rng);
	return e;
}

/* ------------------------------------------------------------------------
 * Random seeds
 */
static void random_access(struct both *b, const struct hca_tag *tag)
{
	uint64_t *payload;
	struct plain_entry *e = access_both(b, tag, &payload);

	if (below(b, 4) == 0) {
		hca_cache_set_dirty(&b->c, payload, true);
		e->dirty = true;
		*payload = ++e->value;
	}
}

/* A guest leaves without a trace, and comes again. */
static void go_and_come(struct both *b, uint16_t gvmi)
{
	plain_forget(b->plain, gvmi);
	hca_cache_leave(&b->c, &b->user[gvmi]);
	compare(b);
	assert_true(hca_cache_join(&b->c, &b->user[gvmi],
				   b->c.geometry, sizeof(uint64_t)));
}

/* The guest may fill other blocks from now on; what lies elsewhere stays. */
static void limit(struct both *b, uint16_t gvmi)
{
	b->user[gvmi].blocks = below(b, 3) ? host_random(&b->rng) &
					     host_random(&b->rng) : 0;
}

static void random_step(struct both *b, bool pages)
{
	struct hca_tag tag = {
		.index = (uint32_t)below(b, b->lines * 3 / 2 + 2),
		.page = pages ? below(b, 5) : 0,
		.gvmi = (uint16_t)(below(b, 8) == 0),
	};
	uint64_t first, last;

	switch (below(b, 100)) {
	case 0:
		plain_invalidate(b->plain, tag.gvmi, tag.index, 0, UINT64_MAX);
		hca_cache_invalidate_index(&b->c, &b->user[tag.gvmi],
					   tag.index);
		break;
	case 1:
	case 2:
		first = below(b, 5);
		last = first + below(b, 80);
		plain_invalidate(b->plain, tag.gvmi, tag.index, first, last);
		hca_cache_invalidate_range(&b->c, &b->user[tag.gvmi],
					   tag.index, first, last);
		break;
	case 3:
		if (below(b, 10))
			break;
		plain_invalidate_all(b->plain, tag.gvmi);
		hca_cache_invalidate_all(&b->c, &b->user[tag.gvmi]);
		break;
	case 4:
		if (below(b, 10))
			break;
		go_and_come(b, tag.gvmi);
		break;
	case 5:
		if (b->masks)
			limit(b, tag.gvmi);
		break;
	default:
		random_access(b, &tag);
	}
}

static void test_random(void **state)
{
	static const uint16_t geometry[][2] = {
		{ 1, 1 }, { 1, 2 }, { 1, 4 }, { 1, 8 }, { 1, 64 }, { 2, 1 },
		{ 2, 2 }, { 4, 4 }, { 8, 1 }, { 8, 2 }, { 16, 16 }, { 64, 1 },
		{ 64, 4 }, { 32, 8 },
	};
	unsigned int g, seed, i;

	(void)state;
	for (g = 0; g < sizeof(geometry) / sizeof(geometry[0]); g++)
		for (seed = 0; seed < SEEDS; seed++) {
			struct both *b = both_new(geometry[g][0],
						  geometry[g][1],
						  g * SEEDS + seed);

			b->masks = seed % 4 >= 2;
			for (i = 0; i < 200 + 4 * b->lines; i++)
				random_step(b, seed % 2);
			compare(b);
			both_free(b);
		}
}

/* ------------------------------------------------------------------------
 * The study
 */
static struct cases *study_read(void)
{
	struct cases *c = calloc(1, sizeof(*c));
	FILE *file = fopen(STUDY_CASES, "r");
	char line[200] = "";

	assert_non_null(c);
	assert_non_null(file);
	if (!cases_read(c, file, line))
		fail_msg("%s: the line has no meaning: %s", STUDY_CASES, line);
	fclose(file);
	return c;
}

/* What the device looks up for a message: for each packet a key's entry, or pages. */
static uint64_t study_message(struct both *b, const struct trace *t, bool pages,
			      struct pattern_access a, uint32_t first_key)
{
	struct hca_tag tag = { .index = first_key + a.key };
	uint64_t *payload, n = 0;

	assert_in_range(a.key, 0, t->keys - 1);
	assert_in_range(a.page, 0, t->pages - 1);
	for (uint32_t i = 0; i < message_packets(&t->message); i++) {
		struct message_part part = message_part(&t->message, i);

		if (!pages)
			part.first = part.last = 0;
		for (uint32_t page = part.first; page <= part.last; page++, n++) {
			tag.page = pages ? a.page + page : 0;
			access_both(b, &tag, &payload);
		}
	}
	return n;
}

/* Returns the number of look-ups. */
static uint64_t study_trace(struct both *b, const struct trace *t,
			    const struct geometry *g, uint32_t first_key)
{
	struct pattern p = pattern_begin(t->kind, t->keys, t->pages);
	bool pages = !strcmp(g->cache, "at");
	uint64_t i, n = 0;

	for (i = 0; i < pattern_items(&p) + pattern_counted(&p); i++)
		n += study_message(b, t, pages, pattern_next(&p), first_key);
	return n;
}

/* Counts of the trace by itself, in a cache that is new. */
static struct both *study_alone(const struct trace *t, const struct geometry *g)
{
	struct both *b = both_new((uint16_t)g->sets, (uint16_t)g->blocks, 1);
	uint64_t n = study_trace(b, t, g, 1234);

	compare(b);
	assert_int_equal(b->hits + b->misses, n);
	return b;
}

static void test_study(void **state)
{
	struct cases *c = study_read();
	unsigned int t, g, done = 0;

	(void)state;
	for (t = 0; t < c->num_traces; t++)
		for (g = 0; g < c->num_geometries; g++)
			if (!strcmp(c->trace[t].sweep, c->geometry[g].sweep)) {
				both_free(study_alone(&c->trace[t],
						      &c->geometry[g]));
				done++;
			}
	assert_in_range(c->num_geometries, 12, CASES_MAX);
	assert_in_range(done, c->num_traces, CASES_MAX * CASES_MAX);
	free(c);
}

/*
 * In the guest a trace follows another: the old keys are invalidated, and the new
 * ones need not have the same indices.  The counts are those of a new cache.
 */
static void test_study_in_sequence(void **state)
{
	struct cases *c = study_read();
	unsigned int t, g, k;

	(void)state;
	for (g = 0; g < c->num_geometries; g++) {
		const struct geometry *geo = &c->geometry[g];
		struct both *b = both_new((uint16_t)geo->sets,
					  (uint16_t)geo->blocks, 1);
		uint32_t first_key = 77;

		for (t = 0; t < c->num_traces; t++) {
			const struct trace *trace = &c->trace[t];
			struct both *alone, before = *b;

			if (strcmp(trace->sweep, geo->sweep))
				continue;
			study_trace(b, trace, geo, first_key);
			alone = study_alone(trace, geo);
			assert_int_equal(b->hits - before.hits, alone->hits);
			assert_int_equal(b->misses - before.misses,
					 alone->misses);
			assert_int_equal(b->evictions - before.evictions,
					 alone->evictions);
			assert_int_equal(b->conflicts - before.conflicts,
					 alone->conflicts);
			both_free(alone);
			for (k = 0; k < trace->keys; k++) {
				plain_invalidate(b->plain, 0, first_key + k, 0,
						 UINT64_MAX);
				hca_cache_invalidate_index(&b->c, &b->user[0],
							   first_key + k);
			}
			assert_int_equal(b->c.valid, 0);
			first_key += trace->keys + 3;
		}
		both_free(b);
	}
	free(c);
}

/* The model itself, where one can count by hand. */
static void test_by_hand(void **state)
{
	static const struct { unsigned long index; bool hit; } steps[] = {
		/* The cache has one set of two blocks. */
		{ 1, false }, { 2, false }, { 1, true }, { 3, false },
		{ 1, true }, { 2, false }, { 3, false }, { 2, true },
	};
	struct plain *p = plain_new(1, 2);
	struct plain_name name = { 0 };
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		name.index = steps[i].index;
		assert_int_equal(plain_access(p, name), steps[i].hit);
	}
	assert_int_equal(plain_counts(p)->evictions, 3);
	assert_int_equal(plain_counts(p)->conflicts, 0);
	plain_invalidate(p, 0, 2, 0, 9);
	assert_int_equal(plain_in_use(p), 1);
	plain_free(p);

	/* Keys a set-count apart compete for one place, though others are free. */
	p = plain_new(4, 1);
	name.index = 3;
	assert_false(plain_access(p, name));
	name.index = 7;
	assert_false(plain_access(p, name));
	name.index = 3;
	assert_false(plain_access(p, name));
	assert_int_equal(plain_counts(p)->evictions, 2);
	assert_int_equal(plain_counts(p)->conflicts, 2);
	plain_free(p);
}

/* Masks where one can count by hand: four blocks of one set. */
static void test_mask_by_hand(void **state)
{
	struct plain *p = plain_new(1, 4);
	struct plain_name a = { .guest = 0 }, b = { .guest = 1 };
	static const unsigned int block[] = { 1, 3, 1, 3, 1 };

	(void)state;
	/* Guest 1 may fill blocks 1 and 3, in turn. */
	for (b.index = 0; b.index < 5; b.index++)
		assert_int_equal(plain_fill_in(p, b, 0xa)->block,
				 block[b.index]);
	assert_int_equal(plain_counts(p)->evictions, 3);
	assert_int_equal(plain_counts(p)->conflicts, 0);	/* not in its blocks */
	/* Guest 0 takes the two that are free, then the one that was used longest ago. */
	for (a.index = 0; a.index < 2; a.index++)
		assert_int_equal(plain_fill(p, a)->block, a.index * 2);
	b.index = 4;
	assert_non_null(plain_lookup(p, b));			/* block 1 */
	assert_int_equal(plain_fill(p, a)->block, 3);
	assert_int_equal(plain_counts(p)->conflicts, 0);
	/* Its line is found where guest 1 fills, and stays until guest 1 needs the place. */
	assert_non_null(plain_lookup(p, a));
	b.index = 7;
	assert_int_equal(plain_fill_in(p, b, 0x8)->block, 3);
	assert_null(plain_lookup(p, a));
	/* A mask without a block of this cache restricts nothing. */
	a.index = 9;
	assert_int_equal(plain_fill_in(p, a, 0xf0)->block, 0);
	plain_free(p);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_mask_by_hand),
	cmocka_unit_test(test_by_hand),
	cmocka_unit_test(test_random),
	cmocka_unit_test(test_study),
	cmocka_unit_test(test_study_in_sequence),
};
TEST_MAIN(tests)
