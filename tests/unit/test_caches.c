// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The five caches of the adapter, and the functions that use them.
 */
#include "unit.h"

/* What an access does is counted for the cache and the function it belongs to. */
static void test_counts(void **state)
{
	static const struct {
		enum qhca_counter hits, misses;
	} counters[QHCA_NUM_CACHES] = {
		[QHCA_CACHE_PT] = { QHCA_CNT_pt_hits, QHCA_CNT_pt_misses },
		[QHCA_CACHE_AT] = { QHCA_CNT_at_hits, QHCA_CNT_at_misses },
		[QHCA_CACHE_QD] = { QHCA_CNT_qpc_hits, QHCA_CNT_qpc_misses },
		[QHCA_CACHE_CQ] = { QHCA_CNT_cqc_hits, QHCA_CNT_cqc_misses },
		[QHCA_CACHE_SRQ] = { QHCA_CNT_srqc_hits, QHCA_CNT_srqc_misses },
	};
	struct host *h = host_new_ready();

	(void)state;
	for (unsigned int id = 0; id < QHCA_NUM_CACHES; id++) {
		struct hca_cache *c = (void *)hca_cache_of(h->fn->hca, id);
		const struct hca_cache_user *user = &h->fn->cache[id];
		struct hca_tag tag = { .index = 9 };

		assert_int_equal(host_count(h, counters[id].misses), 0);
		assert_null(hca_cache_lookup(c, user, tag));
		assert_int_equal(host_count(h, counters[id].misses), 1);
		assert_non_null(hca_cache_install(c, user, tag,
						  hca_cache_fill_begin(c)));
		assert_non_null(hca_cache_lookup(c, user, tag));
		assert_int_equal(host_count(h, counters[id].hits), 1);
	}
	assert_null(hca_cache_of(h->fn->hca, QHCA_NUM_CACHES));
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_counts),
};
TEST_MAIN(tests)
