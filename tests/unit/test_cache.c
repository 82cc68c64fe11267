// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The cache against a plain model written from hardware.rst, "Cache
 * organisation", with one array of lines and one array of bits a set.
 */
#include "host.h"

/* ------------------------------------------------------------------------
 * The model
 */
#define MAX_SETS	64
#define MAX_BLOCKS	64

struct model_line {
	bool valid, dirty, sticky;
	struct qhca_tag tag;
	uint64_t value;
};

struct model {
	unsigned int sets, blocks, valid;
	struct model_line line[MAX_SETS][MAX_BLOCKS];
	uint8_t bit[MAX_SETS][MAX_BLOCKS];
	uint64_t hits, misses, evictions, conflicts, invalidations, writebacks;
};

static unsigned int model_set(const struct model *m, const struct qhca_tag *t)
{
	return (unsigned int)((t->index + t->page) % m->sets);
}

static struct model_line *model_find(struct model *m, const struct qhca_tag *t)
{
	unsigned int set = model_set(m, t), b;

	for (b = 0; b < m->blocks; b++) {
		struct model_line *l = &m->line[set][b];

		if (l->valid && l->tag.index == t->index &&
		    l->tag.page == t->page && l->tag.gvmi == t->gvmi)
			return l;
	}
	return NULL;
}

static void model_touch(struct model *m, struct model_line *l)
{
	unsigned int set = model_set(m, &l->tag);
	unsigned int n = m->blocks + (unsigned int)(l - m->line[set]);

	for (; n > 1; n /= 2)
		m->bit[set][n / 2] = n % 2 == 0;
}

static struct model_line *model_victim(struct model *m, unsigned int set)
{
	unsigned int n = 1, b, i;

	for (b = 0; b < m->blocks; b++)
		if (!m->line[set][b].valid)
			return &m->line[set][b];
	while (n < m->blocks)
		n = 2 * n + m->bit[set][n];
	for (i = 0; i < m->blocks; i++) {
		b = (n - m->blocks + i) % m->blocks;
		if (!m->line[set][b].sticky)
			return &m->line[set][b];
	}
	return NULL;
}

static struct model_line *model_fill(struct model *m, const struct qhca_tag *t)
{
	struct model_line *l = model_victim(m, model_set(m, t));

	if (!l)
		return NULL;
	if (l->valid) {
		m->evictions++;
		m->conflicts += m->valid < m->sets * m->blocks;
		m->writebacks += l->dirty;
		m->valid--;
	}
	memset(l, 0, sizeof(*l));
	l->valid = true;
	l->tag = *t;
	m->valid++;
	model_touch(m, l);
	return l;
}

static void model_invalidate(struct model *m, bool all, const struct qhca_tag *t,
			     uint64_t first, uint64_t last)
{
	unsigned int set, b;

	for (set = 0; set < m->sets; set++)
		for (b = 0; b < m->blocks; b++) {
			struct model_line *l = &m->line[set][b];

			if (!l->valid ||
			    (!all && (l->tag.index != t->index ||
				      l->tag.gvmi != t->gvmi ||
				      l->tag.page < first ||
				      l->tag.page > last)))
				continue;
			l->valid = false;
			m->invalidations++;
			m->valid--;
		}
}

/* ------------------------------------------------------------------------
 * Random traces over both
 */
struct pair {
	struct qhca_cache c;
	struct model m;
	uint64_t hits, misses, evictions, conflicts, invalidations, stale;
	uint64_t writebacks;
	uint64_t written;		/* by the write-back callback */
	uint64_t rng;
};

static void on_writeback(void *arg, const struct qhca_tag *tag, void *payload)
{
	struct pair *p = arg;
	struct model_line *l = model_find(&p->m, tag);

	assert_non_null(l);
	assert_true(l->dirty);
	assert_int_equal(*(uint64_t *)payload, l->value);
	p->written++;
}

static struct pair *pair_new(uint16_t sets, uint16_t blocks, uint64_t seed)
{
	struct pair *p = calloc(1, sizeof(*p));
	struct qhca_cache_counts counts = {
		.hits = &p->hits, .misses = &p->misses,
		.evictions = &p->evictions, .conflicts = &p->conflicts,
		.invalidations = &p->invalidations, .stale_fills = &p->stale,
		.writebacks = &p->writebacks,
	};

	assert_non_null(p);
	assert_true(qhca_cache_init(&p->c, (struct qhca_geometry){ sets, blocks },
				    sizeof(uint64_t), &counts));
	p->c.writeback = on_writeback;
	p->c.arg = p;
	p->m.sets = sets;
	p->m.blocks = blocks;
	p->rng = seed;
	return p;
}

static void pair_free(struct pair *p)
{
	qhca_cache_fini(&p->c);
	free(p);
}

static uint64_t below(struct pair *p, uint64_t n)
{
	return host_random(&p->rng) % n;
}

static void pair_compare(struct pair *p)
{
	assert_int_equal(p->hits, p->m.hits);
	assert_int_equal(p->misses, p->m.misses);
	assert_int_equal(p->evictions, p->m.evictions);
	assert_int_equal(p->conflicts, p->m.conflicts);
	assert_int_equal(p->invalidations, p->m.invalidations);
	assert_int_equal(p->writebacks, p->m.writebacks);
	assert_int_equal(p->written, p->m.writebacks);
	assert_int_equal(p->c.valid, p->m.valid);
}

static void do_access(struct pair *p, const struct qhca_tag *tag)
{
	struct model_line *l = model_find(&p->m, tag);
	uint64_t *payload = qhca_cache_lookup(&p->c, *tag);
	uint64_t epoch;

	assert_true(!payload == !l);
	if (l) {
		p->m.hits++;
		model_touch(&p->m, l);
		assert_int_equal(*payload, l->value);
	} else {
		p->m.misses++;
		epoch = qhca_cache_fill_begin(&p->c);
		/* the cache first: its write-back looks at the model's victim */
		payload = qhca_cache_install(&p->c, *tag, epoch);
		l = model_fill(&p->m, tag);
		assert_true(!payload == !l);
		if (!l)
			return;
		*payload = l->value = below(p, UINT64_MAX);
	}
	if (below(p, 4) == 0) {
		qhca_cache_set_dirty(&p->c, payload, true);
		l->dirty = true;
		*payload = ++l->value;
	}
	if (below(p, 64) == 0) {
		l->sticky = !l->sticky;
		qhca_cache_set_sticky(&p->c, payload, l->sticky);
	}
}

static void do_random(struct pair *p, bool pages)
{
	unsigned int span = p->m.sets * p->m.blocks * 3 / 2 + 2;
	struct qhca_tag tag = {
		.index = (uint32_t)below(p, span),
		.page = pages ? below(p, 5) : 0,
		.gvmi = (uint16_t)(below(p, 8) == 0),
	};
	uint64_t first, last;

	switch (below(p, 100)) {
	case 0:
		model_invalidate(&p->m, false, &tag, 0, UINT64_MAX);
		qhca_cache_invalidate_index(&p->c, tag.gvmi, tag.index);
		break;
	case 1:
	case 2:
		first = below(p, 5);
		last = first + below(p, 80);
		model_invalidate(&p->m, false, &tag, first, last);
		qhca_cache_invalidate_range(&p->c, tag.gvmi, tag.index, first,
					    last);
		break;
	case 3:
		if (below(p, 10))
			break;
		model_invalidate(&p->m, true, NULL, 0, 0);
		qhca_cache_invalidate_all(&p->c);
		break;
	default:
		do_access(p, &tag);
	}
}

static void test_model(void **state)
{
	static const uint16_t geometry[][2] = {
		{ 1, 1 }, { 1, 2 }, { 1, 4 }, { 1, 8 }, { 1, 64 }, { 2, 1 },
		{ 2, 2 }, { 4, 4 }, { 8, 1 }, { 8, 2 }, { 16, 16 }, { 64, 1 },
		{ 64, 4 }, { 32, 32 },
	};
	unsigned int g, seed, i;

	(void)state;
	for (g = 0; g < sizeof(geometry) / sizeof(geometry[0]); g++)
		for (seed = 0; seed < 8; seed++) {
			struct pair *p = pair_new(geometry[g][0],
						  geometry[g][1],
						  g * 1000 + seed);

			for (i = 0; i < 4000; i++)
				do_random(p, seed % 2);
			pair_compare(p);
			pair_free(p);
		}
}

/* ------------------------------------------------------------------------
 * Single properties
 */
static bool touch(struct qhca_cache *c, uint32_t index)
{
	struct qhca_tag tag = { .index = index };

	if (qhca_cache_lookup(c, tag))
		return true;
	assert_non_null(qhca_cache_install(c, tag, qhca_cache_fill_begin(c)));
	return false;
}

/* Seed 000, row 5: keys a set-count apart conflict; blocks + 1 thrash. */
static void test_conflict(void **state)
{
	struct pair *p = pair_new(8, 4, 1);
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
	pair_free(p);
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
	struct qhca_cache c;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		g = (struct qhca_geometry){ cases[i].s, cases[i].b };
		assert_int_equal(qhca_geometry_valid(&g, &max), cases[i].ok);
	}
	g = (struct qhca_geometry){ 1, 128 };
	assert_false(qhca_geometry_valid(&g, NULL));
	g = (struct qhca_geometry){ 32768, 64 };
	assert_false(qhca_geometry_valid(&g, NULL));
	g = (struct qhca_geometry){ 3, 1 };
	assert_false(qhca_cache_init(&c, g, 8, NULL));
	qhca_cache_fini(&c);
}

/* A fill begun before an invalidation that covers it does not install. */
static void test_epoch(void **state)
{
	struct pair *p = pair_new(4, 2, 1);
	struct qhca_tag tag = { .index = 9, .page = 5 };
	uint64_t epoch;
	unsigned int i;

	(void)state;
	epoch = qhca_cache_fill_begin(&p->c);
	qhca_cache_invalidate_index(&p->c, 0, 8);
	qhca_cache_invalidate_index(&p->c, 1, 9);
	qhca_cache_invalidate_range(&p->c, 0, 9, 6, 100);
	qhca_cache_invalidate_range(&p->c, 0, 9, 0, 4);
	assert_non_null(qhca_cache_install(&p->c, tag, epoch));
	assert_int_equal(p->stale, 0);
	qhca_cache_invalidate_range(&p->c, 0, 9, 5, 5);
	assert_null(qhca_cache_install(&p->c, tag, epoch));
	assert_int_equal(p->stale, 1);
	assert_null(qhca_cache_peek(&p->c, tag));

	epoch = qhca_cache_fill_begin(&p->c);
	qhca_cache_invalidate_index(&p->c, 0, 9);
	assert_null(qhca_cache_install(&p->c, tag, epoch));
	epoch = qhca_cache_fill_begin(&p->c);
	qhca_cache_invalidate_all(&p->c);
	assert_null(qhca_cache_install(&p->c, tag, epoch));

	/* what the log has forgotten may have covered it */
	epoch = qhca_cache_fill_begin(&p->c);
	for (i = 0; i < QHCA_CACHE_LOG_SIZE; i++)
		qhca_cache_invalidate_index(&p->c, 0, 1);
	assert_non_null(qhca_cache_install(&p->c, tag, epoch));
	qhca_cache_invalidate_index(&p->c, 0, 1);
	assert_null(qhca_cache_install(&p->c, tag, epoch));
	assert_int_equal(p->stale, 4);
	pair_free(p);
}

/* A tag that is there already keeps its line, wherever that is. */
static void test_install_again(void **state)
{
	struct pair *p = pair_new(2, 4, 1);
	struct qhca_tag tag = { .index = 0 };
	void *line[4], *again;

	(void)state;
	for (tag.index = 0; tag.index < 8; tag.index += 2) {
		touch(&p->c, tag.index);
		line[tag.index / 2] = qhca_cache_peek(&p->c, tag);
		qhca_cache_set_dirty(&p->c, line[tag.index / 2], true);
	}
	for (tag.index = 0; tag.index < 8; tag.index += 2) {
		again = qhca_cache_install(&p->c, tag,
					   qhca_cache_fill_begin(&p->c));
		assert_ptr_equal(again, line[tag.index / 2]);
		assert_false(qhca_cache_is_dirty(&p->c, again));
	}
	assert_int_equal(p->c.valid, 4);
	assert_int_equal(p->evictions, 0);
	pair_free(p);
}

static void test_sticky(void **state)
{
	struct pair *p = pair_new(1, 2, 1);
	struct qhca_tag a = { .index = 1 }, b = { .index = 2 },
			c = { .index = 3 };

	(void)state;
	touch(&p->c, 1);
	touch(&p->c, 2);
	qhca_cache_set_sticky(&p->c, qhca_cache_peek(&p->c, a), true);
	touch(&p->c, 3);
	assert_non_null(qhca_cache_peek(&p->c, a));
	assert_null(qhca_cache_peek(&p->c, b));
	qhca_cache_set_sticky(&p->c, qhca_cache_peek(&p->c, c), true);
	assert_null(qhca_cache_install(&p->c, b, qhca_cache_fill_begin(&p->c)));
	/* invalidation does not mind */
	qhca_cache_invalidate_index(&p->c, 0, 1);
	assert_null(qhca_cache_peek(&p->c, a));
	pair_free(p);
}

static void test_peek(void **state)
{
	struct pair *p = pair_new(1, 2, 1);
	struct qhca_tag a = { .index = 1 }, none = { .index = 7 };
	uint64_t hits, misses;

	(void)state;
	touch(&p->c, 1);
	touch(&p->c, 2);
	hits = p->hits, misses = p->misses;
	assert_non_null(qhca_cache_peek(&p->c, a));
	assert_null(qhca_cache_peek(&p->c, none));
	assert_int_equal(p->hits, hits);
	assert_int_equal(p->misses, misses);
	touch(&p->c, 3);		/* peek did not make 1 the younger */
	assert_null(qhca_cache_peek(&p->c, a));
	pair_free(p);
}

static void count_line(void *arg, uint32_t set, uint32_t block,
		       const struct qhca_tag *tag, const void *payload)
{
	unsigned int *seen = arg;

	assert_non_null(payload);
	assert_true(block < 2);
	assert_int_equal(set, tag->index % 4);
	seen[tag->index]++;
}

static void test_for_each(void **state)
{
	struct pair *p = pair_new(4, 2, 1);
	unsigned int seen[8] = { 0 }, i;

	(void)state;
	for (i = 0; i < 8; i++)
		touch(&p->c, i);
	qhca_cache_invalidate_index(&p->c, 0, 5);
	qhca_cache_for_each(&p->c, count_line, seen);
	for (i = 0; i < 8; i++)
		assert_int_equal(seen[i], i != 5);
	pair_free(p);
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

	return qhca_cq_post(h->hca, cqn, &cqe);
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
	assert_int_equal(h->hca->status & QHCA_STATUS_FATAL_CAUSE,
			 QHCA_FATAL_TABLE_DMA << 8);
	assert_int_equal(h->hca->fatal_info, QHCA_TABLE_CQ << 24 | 0);
	assert_false(post(h, 1));
	host_free(h);

	h = with_cqs(2, 1, 1, cq);
	h->fail_in = 1;			/* the fetch of 0 */
	assert_false(post(h, 0));
	assert_int_equal(h->hca->fatal_info, QHCA_TABLE_CQ << 24 | 0);
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
	assert_true(qhca_table_entry(h->hca, QHCA_TABLE_CQ, 0, &addr));
	c = host_ptr(h, addr);
	assert_int_equal(get_le32(&c->state), 1);
	c->sw.log_depth = 31;
	assert_false(post(h, 0));
	assert_int_equal(h->hca->status & QHCA_STATUS_FATAL_CAUSE,
			 QHCA_FATAL_CONTEXT << 8);
	assert_int_equal(h->hca->fatal_info, QHCA_TABLE_CQ << 24 | 0);
	host_free(h);
}

static void test_ctx_read(void **state)
{
	struct ring cq[2];
	struct host *h = with_cqs(2, 1, 1, cq);
	struct qhca_cq copy;
	uint64_t hits, misses;

	(void)state;
	post(h, 0);
	post(h, 1);
	post(h, 1);
	hits = COUNT(h, cqc_hits), misses = COUNT(h, cqc_misses);
	assert_true(qhca_ctx_read(h->hca, &h->hca->cqs.cache, 0, &copy));
	assert_int_equal(copy.pi, 1);
	assert_true(qhca_ctx_read(h->hca, &h->hca->cqs.cache, 1, &copy));
	assert_int_equal(copy.pi, 2);
	assert_non_null(qhca_ctx_peek(&h->hca->cqs.cache, 1));
	assert_null(qhca_ctx_peek(&h->hca->cqs.cache, 0));
	assert_int_equal(COUNT(h, cqc_hits), hits);
	assert_int_equal(COUNT(h, cqc_misses), misses);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_model),
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
