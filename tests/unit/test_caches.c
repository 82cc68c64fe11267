// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The five caches of the adapter, and the functions that use them.
 */
#include "unit.h"

/* The counters of a cache.  Caches of tables write no line back. */
struct counters {
	enum qhca_counter hits, misses, evictions, conflicts, invalidations;
	enum qhca_counter stale_fills, writebacks;
};

static const struct counters counters[QHCA_NUM_CACHES] = {
	[QHCA_CACHE_PT] = {
		QHCA_CNT_pt_hits, QHCA_CNT_pt_misses, QHCA_CNT_pt_evictions,
		QHCA_CNT_pt_conflicts, QHCA_CNT_pt_invalidations,
		QHCA_CNT_pt_stale_fills, QHCA_NUM_COUNTERS,
	},
	[QHCA_CACHE_AT] = {
		QHCA_CNT_at_hits, QHCA_CNT_at_misses, QHCA_CNT_at_evictions,
		QHCA_CNT_at_conflicts, QHCA_CNT_at_invalidations,
		QHCA_CNT_at_stale_fills, QHCA_NUM_COUNTERS,
	},
	[QHCA_CACHE_QD] = {
		QHCA_CNT_qpc_hits, QHCA_CNT_qpc_misses, QHCA_CNT_qpc_evictions,
		QHCA_CNT_qpc_conflicts, QHCA_CNT_qpc_invalidations,
		QHCA_CNT_qpc_stale_fills, QHCA_CNT_qpc_writebacks,
	},
	[QHCA_CACHE_CQ] = {
		QHCA_CNT_cqc_hits, QHCA_CNT_cqc_misses, QHCA_CNT_cqc_evictions,
		QHCA_CNT_cqc_conflicts, QHCA_CNT_cqc_invalidations,
		QHCA_CNT_cqc_stale_fills, QHCA_CNT_cqc_writebacks,
	},
	[QHCA_CACHE_SRQ] = {
		QHCA_CNT_srqc_hits, QHCA_CNT_srqc_misses,
		QHCA_CNT_srqc_evictions, QHCA_CNT_srqc_conflicts,
		QHCA_CNT_srqc_invalidations, QHCA_CNT_srqc_stale_fills,
		QHCA_CNT_srqc_writebacks,
	},
};

static void *install(struct host *h, unsigned int id, uint32_t index)
{
	struct hca_cache *c = (void *)hca_cache_of(h->fn->hca, id);

	return hca_cache_install(c, &h->fn->cache[id],
				 (struct hca_tag){ .index = index },
				 hca_cache_fill_begin(c));
}

/* What an access does is counted for the cache and the function it belongs to. */
static void test_counts(void **state)
{
	struct host *h = host_new_ready();

	(void)state;
	for (unsigned int id = 0; id < QHCA_NUM_CACHES; id++) {
		struct hca_cache *c = (void *)hca_cache_of(h->fn->hca, id);
		const struct hca_cache_user *user = &h->fn->cache[id];
		struct hca_tag tag = { .index = 9 };

		assert_int_equal(host_count(h, counters[id].misses), 0);
		assert_null(hca_cache_lookup(c, user, tag));
		assert_int_equal(host_count(h, counters[id].misses), 1);
		assert_non_null(install(h, id, tag.index));
		assert_non_null(hca_cache_lookup(c, user, tag));
		assert_int_equal(host_count(h, counters[id].hits), 1);
	}
	assert_null(hca_cache_of(h->fn->hca, QHCA_NUM_CACHE_IDS));
	host_free(h);
}

/*
 * A set that gets one key more than it has blocks evicts a line although the other
 * sets are empty, which is a conflict.  An invalidation removes a line, and refuses
 * the fill that began before it.
 */
static void test_counts_of_lines(void **state)
{
	struct host *h = host_new_ready();

	(void)state;
	for (unsigned int id = 0; id < QHCA_NUM_CACHES; id++) {
		struct hca_cache *c = (void *)hca_cache_of(h->fn->hca, id);
		const struct hca_cache_user *user = &h->fn->cache[id];
		uint32_t sets = c->geometry.sets, blocks = c->geometry.blocks;
		uint64_t epoch;

		assert_true(sets > 1);
		for (uint32_t i = 0; i < blocks; i++)
			assert_non_null(install(h, id, i * sets));
		assert_int_equal(host_count(h, counters[id].evictions), 0);
		assert_non_null(install(h, id, blocks * sets));
		assert_int_equal(host_count(h, counters[id].evictions), 1);
		assert_int_equal(host_count(h, counters[id].conflicts), 1);
		epoch = hca_cache_fill_begin(c);
		hca_cache_invalidate_index(c, user, blocks * sets);
		assert_int_equal(host_count(h, counters[id].invalidations), 1);
		assert_int_equal(host_count(h, counters[id].stale_fills), 0);
		assert_null(hca_cache_install(c, user, (struct hca_tag){
					      .index = blocks * sets }, epoch));
		assert_int_equal(host_count(h, counters[id].stale_fills), 1);
	}
	host_free(h);
}

/* Only the caches of contexts write a line back when another key takes its place. */
static void test_counts_of_contexts(void **state)
{
	struct host *h = host_new_ready();

	(void)state;
	for (unsigned int id = 0; id < QHCA_NUM_CACHES; id++) {
		struct hca_cache *c = (void *)hca_cache_of(h->fn->hca, id);
		uint32_t sets = c->geometry.sets, blocks = c->geometry.blocks;

		if (counters[id].writebacks == QHCA_NUM_COUNTERS)
			continue;
		for (uint32_t i = 0; i < blocks; i++)
			hca_cache_set_dirty(c, install(h, id, i * sets), true);
		assert_int_equal(host_count(h, counters[id].writebacks), 0);
		assert_non_null(install(h, id, blocks * sets));
		assert_int_equal(host_count(h, counters[id].writebacks), 1);
	}
	host_free(h);
}

static enum qhca_cmd_status init(struct host *h, uint16_t sets, uint16_t blocks)
{
	struct qhca_init_hca in;

	host_init_default(h, &in);
	put_le16(&in.cache[QHCA_CACHE_AT].sets, sets);
	put_le16(&in.cache[QHCA_CACHE_AT].blocks, blocks);
	return host_init_hca(h, &in);
}

static void teardown(struct host *h)
{
	assert_int_equal(host_cmd(h, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
}

/* What the function reports of the translation cache. */
static void assert_reports(struct host *h, struct qhca_geometry geometry,
			   struct qhca_geometry max)
{
	struct qhca_caps caps;

	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps,
				  sizeof(caps)), QHCA_CMD_OK);
	assert_int_equal(get_le16(&caps.cache_default[QHCA_CACHE_AT].sets),
			 geometry.sets);
	assert_int_equal(get_le16(&caps.cache_default[QHCA_CACHE_AT].blocks),
			 geometry.blocks);
	assert_int_equal(get_le16(&caps.cache_max[QHCA_CACHE_AT].sets),
			 max.sets);
	assert_int_equal(get_le16(&caps.cache_max[QHCA_CACHE_AT].blocks),
			 max.blocks);
}

/* The PF chooses the geometry while no other function uses the caches. */
static void test_geometry(void **state)
{
	struct host *pf = host_new(NULL), *vf = host_new_vf(pf, 1, NULL);
	struct qhca_geometry none = pf->fn->cfg.cache_default[QHCA_CACHE_AT];
	struct qhca_geometry max = pf->fn->cfg.cache_max[QHCA_CACHE_AT];
	struct qhca_geometry two = { 2, 2 };

	(void)state;
	host_enable(pf);
	host_enable(vf);
	assert_reports(vf, none, none);
	assert_int_equal(init(pf, 2, 2), QHCA_CMD_OK);
	assert_reports(pf, none, max);
	assert_reports(vf, two, two);
	assert_int_equal(init(vf, none.sets, none.blocks), QHCA_CMD_BAD_PARAM);
	assert_int_equal(init(vf, 1, 1), QHCA_CMD_BAD_PARAM);
	assert_int_equal(init(vf, 2, 2), QHCA_CMD_OK);
	teardown(vf);
	assert_int_equal(init(vf, 0, 0), QHCA_CMD_OK);

	/* The PF begins anew while the VF goes on. */
	qhca_reset(pf->hca, 0, pf->now);
	host_enable(pf);
	assert_reports(vf, two, two);
	assert_int_equal(init(pf, 4, 2), QHCA_CMD_BAD_STATE);
	assert_int_equal(init(pf, 3, 2), QHCA_CMD_BAD_PARAM);
	assert_int_equal(init(pf, 0, 0), QHCA_CMD_OK);
	assert_int_equal(hca_cache_of(pf->fn->hca, QHCA_CACHE_AT)->geometry.sets,
			 2);
	teardown(pf);
	assert_int_equal(init(pf, 2, 2), QHCA_CMD_OK);
	teardown(pf);
	teardown(vf);
	assert_int_equal(init(pf, 4, 2), QHCA_CMD_OK);
	teardown(pf);

	/* A VF that is first has the PF's default. */
	assert_int_equal(init(vf, 0, 0), QHCA_CMD_OK);
	assert_int_equal(init(pf, none.sets, none.blocks), QHCA_CMD_OK);
	host_free(pf);
}

/* Each cache has a mask of its own, which holds from the next fill on. */
static void test_limit(void **state)
{
	static const uint16_t none[8];
	struct host *h = host_new_ready();

	(void)state;
	for (unsigned int id = 0; id < QHCA_NUM_CACHES; id++) {
		struct hca_cache *c = (void *)hca_cache_of(h->fn->hca, id);
		const struct hca_cache_user *user = &h->fn->cache[id];
		uint16_t last = (uint16_t)(1u << (c->geometry.blocks - 1));
		uint16_t blocks[8] = { [0] = 0 };
		struct hca_tag tag = { .index = 0 };

		blocks[id] = last;
		hca_caches_limit(h->fn, blocks);
		hca_cache_install(c, user, tag, c->epoch);
		assert_true(c->line[c->geometry.blocks - 1].valid);
		tag.index += c->geometry.sets;
		hca_caches_limit(h->fn, none);
		hca_cache_install(c, user, tag, c->epoch);
		assert_int_equal(c->line[0].valid, true);
	}
	host_free(h);
}

/* A function that goes leaves every cache to the others. */
static void test_reset_of_one(void **state)
{
	struct host *pf = host_new_ready(), *vf = host_new_vf(pf, 63, NULL);

	(void)state;
	host_enable(vf);
	assert_int_equal(init(vf, 0, 0), QHCA_CMD_OK);
	for (unsigned int id = 0; id < QHCA_NUM_CACHES; id++) {
		struct hca_cache *c = (void *)hca_cache_of(pf->fn->hca, id);
		struct hca_tag tag = { .gvmi = 63 };

		hca_cache_install(c, &vf->fn->cache[id], tag, c->epoch);
		tag.gvmi = 0;
		hca_cache_install(c, &pf->fn->cache[id], tag, c->epoch);
		assert_int_equal(c->valid, 2);
	}
	qhca_reset(pf->hca, 63, pf->now);
	for (unsigned int id = 0; id < QHCA_NUM_CACHES; id++) {
		assert_int_equal(hca_cache_of(pf->fn->hca, id)->valid, 1);
		assert_int_equal(hca_cache_of(pf->fn->hca, id)->held[0], 1);
	}
	host_free(pf);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_geometry),
	cmocka_unit_test(test_limit),
	cmocka_unit_test(test_reset_of_one),
	cmocka_unit_test(test_counts),
	cmocka_unit_test(test_counts_of_lines),
	cmocka_unit_test(test_counts_of_contexts),
};
TEST_MAIN(tests)
