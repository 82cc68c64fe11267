// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "frames.h"

static void test_counter_names(void **state)
{
	struct host *h = host_new(NULL);
	unsigned int i;

	(void)state;
	assert_string_equal(qhca_counter_name(QHCA_CNT_pt_hits), "pt_hits");
	assert_string_equal(qhca_counter_name(QHCA_CNT_inject_delayed),
			    "inject_delayed");
	for (i = 0; i < QHCA_NUM_COUNTERS; i++)
		assert_non_null(qhca_counter_name((enum qhca_counter)i));
	assert_null(qhca_counter_name(QHCA_NUM_COUNTERS));
	assert_int_equal(qhca_counter(h->hca, 0, QHCA_NUM_COUNTERS), 0);
	host_free(h);
}

struct seen {
	unsigned int num;
	struct qhca_cache_line last;
};

static bool on_line(void *arg, const struct qhca_cache_line *line)
{
	struct seen *s = arg;

	s->num++;
	s->last = *line;
	return true;
}

static void test_cache_lines(void **state)
{
	struct host *h = host_new_ready();
	struct ring eq = host_ring(h, 2), cq = host_ring(h, 2);
	struct qhca_cache_info info;
	struct seen seen = { 0 };
	struct hca_tag tag = { .index = 5, .page = 9 };
	struct hca_pte_host *pte;
	uint64_t *entry;
	int id;

	(void)state;
	assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
	assert_int_equal(host_create_cq(h, 37, &cq, 0), QHCA_CMD_OK);
	for (id = 0; id < QHCA_NUM_CACHES; id++) {
		qhca_query_cache(h->hca, (enum qhca_cache_id)id, &info);
		assert_int_equal(info.geometry.sets,
				 h->fn->cfg.cache_default[id].sets);
		assert_int_equal(info.valid, id == QHCA_CACHE_CQ);
	}
	qhca_for_each_cache_line(h->hca, QHCA_CACHE_CQ, 0, on_line, &seen);
	assert_int_equal(seen.num, 1);
	assert_false(seen.last.dirty);
	qhca_for_each_cache_line(h->hca, QHCA_CACHE_CQ, 38, on_line, &seen);
	assert_int_equal(seen.num, 1);
	assert_int_equal(seen.last.index, 37);
	assert_int_equal(seen.last.set, 37);
	assert_int_equal(seen.last.page, 0);
	entry = hca_cache_install(&h->fn->hca->cache.at,
				  &h->fn->cache[QHCA_CACHE_AT], tag,
				  hca_cache_fill_begin(&h->fn->hca->cache.at));
	*entry = 0x7000 | QHCA_ATE_PRESENT | QHCA_ATE_WRITE;
	hca_cache_set_dirty(&h->fn->hca->cache.at, entry, true);
	qhca_for_each_cache_line(h->hca, QHCA_CACHE_AT, 0, on_line, &seen);
	assert_int_equal(seen.num, 2);
	assert_int_equal(seen.last.page, 9);
	assert_int_equal(seen.last.addr, 0x7000);
	assert_true(seen.last.writable);
	assert_true(seen.last.dirty);
	tag.page = 0;
	pte = hca_cache_install(&h->fn->hca->cache.pt,
				  &h->fn->cache[QHCA_CACHE_PT], tag,
				hca_cache_fill_begin(&h->fn->hca->cache.pt));
	*pte = (struct hca_pte_host){
		.octet = 0x42, .type = QHCA_PTE_MR, .pd = 7, .access = 3,
		.start = 0x1000, .length = 0x500,
	};
	qhca_for_each_cache_line(h->hca, QHCA_CACHE_PT, 0, on_line, &seen);
	assert_int_equal(seen.num, 3);
	assert_int_equal(seen.last.key, 0x542);
	assert_int_equal(seen.last.type, QHCA_PTE_MR);
	assert_int_equal(seen.last.pd, 7);
	assert_int_equal(seen.last.access, 3);
	assert_int_equal(seen.last.start, 0x1000);
	assert_int_equal(seen.last.length, 0x500);
	assert_int_equal(seen.last.addr, 0);
	host_free(h);

	h = host_new(NULL);		/* before there are any */
	qhca_query_cache(h->hca, QHCA_CACHE_PT, &info);
	assert_int_equal(info.geometry.sets, 0);
	seen.num = 0;
	qhca_for_each_cache_line(h->hca, QHCA_CACHE_PT, 0, on_line, &seen);
	qhca_for_each_cache_line(h->hca, (enum qhca_cache_id)9, 0, on_line,
				 &seen);
	assert_int_equal(seen.num, 0);
	host_free(h);
}

struct sources {
	unsigned int num;
	struct {
		uint8_t mac[6];
		uint16_t tag;
	} of[8];
};

static void on_source(void *arg, const uint8_t *mac, uint16_t tag)
{
	struct sources *s = arg;

	assert_true(s->num < 8);
	memcpy(s->of[s->num].mac, mac, 6);
	s->of[s->num++].tag = tag;
}

static struct sources sources_of(const struct host *h)
{
	struct sources s = { 0 };

	qhca_for_each_source(h->hca, h->gvmi, on_source, &s);
	return s;
}

static void check_source(const struct sources *s, unsigned int i,
			 const uint8_t *mac, uint16_t tag)
{
	assert_memory_equal(s->of[i].mac, mac, 6);
	assert_int_equal(s->of[i].tag, tag);
}

/* What the switch lets a virtual function send from, with the tags that it puts there. */
static void test_sources(void **state)
{
	static const uint8_t foreign[6] = { 2, 3, 3, 3, 3, 3 };
	struct host *pf = host_new_ready(), *h = host_new_vf(pf, 2, NULL);
	const uint8_t *mac = h->fn->port.mac;
	struct qhca_init_hca in;
	struct sources s;

	(void)state;
	host_enable(h);
	host_init_default(h, &in);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	assert_int_equal(set_gid(h, 0, frame_gid4, mac, QHCA_GID_NO_VLAN), 0);
	assert_int_equal(set_gid(h, 1, frame_gid4, mac, 5), 0);
	assert_int_equal(set_gid(h, 2, frame_gid6, foreign, QHCA_GID_NO_VLAN), 0);
	s = sources_of(h);		/* its spoof check is on */
	assert_int_equal(s.num, 2);
	check_source(&s, 0, mac, QHCA_GID_NO_VLAN);
	check_source(&s, 1, mac, 5);
	h->fn->vf.flags = 0;
	s = sources_of(h);
	assert_int_equal(s.num, 3);
	check_source(&s, 2, foreign, QHCA_GID_NO_VLAN);
	h->fn->vf.vlan = 9;
	h->fn->vf.qos = 3;
	s = sources_of(h);
	assert_int_equal(s.num, 2);
	check_source(&s, 0, mac, 3 << 13 | 9);
	check_source(&s, 1, foreign, 3 << 13 | 9);
	host_free(pf);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_counter_names),
	cmocka_unit_test(test_cache_lines),
	cmocka_unit_test(test_sources),
};
TEST_MAIN(tests)
