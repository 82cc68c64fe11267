// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Page faults of accesses, without the transport, which the simulator tests.
 */
#include "region.h"

#include "transport/transport.h"

static void set_odp(struct region *r)
{
	put_le32(&r->pte->ctrl, get_le32(&r->pte->ctrl) | QHCA_PTE_ODP);
}

static void set_page(struct host *h, const struct region *r, unsigned int i,
		     uint64_t bits)
{
	put_le64(host_ptr(h, r->node + i * 8), bits ? r->page[i] | bits : 0);
}

static void check_fault(struct host *h, uint64_t addr, uint64_t len,
			uint64_t done)
{
	assert_int_equal(h->fn->mem.fault.addr, addr);
	assert_int_equal(h->fn->mem.fault.len, len);
	assert_int_equal(h->fn->mem.fault.done, done);
	assert_int_equal(h->fn->mem.fault.key, KEY);
}

/* The address and length of a fault of an access that begins on a present page. */
static void test_where(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	uint64_t edge = (START & ~4095ull) + 4096;
	struct hca_mem_req q = req(edge - 100, 8000, 0, false);
	uint8_t buf[8000] = { 1 };

	(void)state;
	set_odp(&r);
	assert_int_equal(hca_mem_read(h->fn, &q, buf), HCA_MEM_OK);
	set_page(h, &r, 1, 0);
	hca_cache_invalidate_all(&h->fn->hca->cache.at,
				 &h->fn->cache[QHCA_CACHE_AT]);
	assert_int_equal(hca_mem_read(h->fn, &q, buf), HCA_MEM_FAULT);
	check_fault(h, edge, 7900, 100);
	q.addr = edge + 5;
	q.len = 10;
	assert_int_equal(hca_mem_read(h->fn, &q, buf), HCA_MEM_FAULT);
	check_fault(h, edge + 5, 10, 0);
	/* The page is now present: nothing needs invalidation. */
	set_page(h, &r, 1, QHCA_ATE_PRESENT);
	assert_int_equal(hca_mem_read(h->fn, &q, buf), HCA_MEM_OK);
	q.access = QHCA_ACCESS_LOCAL_WRITE;
	assert_int_equal(hca_mem_write(h->fn, &q, buf), HCA_MEM_FAULT);
	set_page(h, &r, 1, QHCA_ATE_PRESENT | QHCA_ATE_WRITE);
	assert_int_equal(hca_mem_write(h->fn, &q, buf), HCA_MEM_OK);
	/* Without ODP the device refuses the access. */
	set_page(h, &r, 1, 0);
	put_le32(&r.pte->ctrl, get_le32(&r.pte->ctrl) & ~QHCA_PTE_ODP);
	hca_cache_invalidate_all(&h->fn->hca->cache.at,
				 &h->fn->cache[QHCA_CACHE_AT]);
	hca_cache_invalidate_all(&h->fn->hca->cache.pt,
				 &h->fn->cache[QHCA_CACHE_PT]);
	assert_int_equal(hca_mem_read(h->fn, &q, buf), HCA_MEM_PROT);
	host_free(h);
}

static uint64_t write_to_page(struct host *h, enum hca_mem_status want)
{
	struct hca_mem_req q = req(START, 8, QHCA_ACCESS_LOCAL_WRITE, false);
	uint64_t reads = COUNT(h, at_node_reads);
	uint8_t buf[8] = { 1 };

	assert_int_equal(hca_mem_write(h->fn, &q, buf), want);
	return COUNT(h, at_node_reads) - reads;
}

/* A line that may only be read does not serve a write, which is a miss. */
static void test_read_only_line(void **state)
{
	struct host *h = host_new_cache(QHCA_CACHE_AT, 1, 1);
	struct region r = make_region(h);
	struct hca_mem_req q = req(START, 8, 0, false);
	uint8_t buf[8];

	(void)state;
	set_odp(&r);
	set_page(h, &r, 0, QHCA_ATE_PRESENT);
	assert_int_equal(hca_mem_read(h->fn, &q, buf), HCA_MEM_OK);
	assert_int_equal(COUNT(h, at_misses), 1);
	assert_int_equal(write_to_page(h, HCA_MEM_FAULT), 1);
	assert_int_equal(COUNT(h, at_misses), 2);
	/* The line still serves reads. */
	assert_int_equal(hca_mem_read(h->fn, &q, buf), HCA_MEM_OK);
	assert_int_equal(COUNT(h, at_misses), 2);
	assert_int_equal(COUNT(h, at_hits), 1);
	/* Once the page may be written, the fill replaces the line in its place. */
	set_page(h, &r, 0, QHCA_ATE_PRESENT | QHCA_ATE_WRITE);
	assert_int_equal(write_to_page(h, HCA_MEM_OK), 1);
	assert_int_equal(COUNT(h, at_misses), 3);
	assert_int_equal(write_to_page(h, HCA_MEM_OK), 0);
	assert_int_equal(COUNT(h, at_misses), 3);
	assert_int_equal(COUNT(h, at_hits), 2);
	assert_int_equal(COUNT(h, at_evictions), 0);
	host_free(h);
}

/*
 * The device moves no byte before it has found all pages, and an atomic operation has no
 * effect.
 */
static void test_all_or_nothing(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	uint64_t edge = (START & ~4095ull) + 4096, orig = 77;
	struct hca_mem_req q = req(edge - 100, 200, QHCA_ACCESS_REMOTE_WRITE,
				   true);
	uint8_t buf[200];

	(void)state;
	set_odp(&r);
	memset(buf, 0xab, sizeof(buf));
	set_page(h, &r, 1, 0);
	assert_int_equal(hca_mem_write(h->fn, &q, buf), HCA_MEM_FAULT);
	check_fault(h, edge, 100, 100);
	assert_int_equal(*(uint8_t *)host_ptr(h, r.page[0] + 4095), 0);
	q = req(edge - 8, 8, QHCA_ACCESS_REMOTE_ATOMIC, true);
	/* The device may only read this page. */
	set_page(h, &r, 0, QHCA_ATE_PRESENT);
	hca_cache_invalidate_all(&h->fn->hca->cache.at,
				 &h->fn->cache[QHCA_CACHE_AT]);
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_FETCH_ADD, 0,
					5, &orig), HCA_MEM_FAULT);
	assert_int_equal(orig, 77);
	assert_int_equal(get_le64(host_ptr(h, r.page[0] + 4088)), 0);
	host_free(h);
}

/* An access that is refused does not fault, and the device reads no node for it. */
static void test_protection_first(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req good = req(START, 8, QHCA_ACCESS_LOCAL_WRITE,
				      false);
	struct hca_mem_req bad[6];
	struct host_watch nodes;
	uint8_t buf[8];
	unsigned int i;

	(void)state;
	set_odp(&r);
	for (i = 0; i < PAGES; i++)
		set_page(h, &r, i, 0);
	for (i = 0; i < 6; i++)
		bad[i] = good;
	bad[0].key ^= 1;
	bad[1].pd++;
	bad[2].access = 0x4000;
	bad[3].addr = START + LENGTH - 7;
	bad[4].addr = START - 1;
	bad[5].key += 0x100;
	host_watch(h, &nodes, r.node, PAGES * 8);
	for (i = 0; i < 6; i++)
		assert_int_equal(hca_mem_write(h->fn, &bad[i], buf),
				 HCA_MEM_PROT);
	assert_int_equal(nodes.reads, 0);
	assert_int_equal(hca_mem_write(h->fn, &good, buf), HCA_MEM_FAULT);
	assert_int_equal(nodes.reads, 1);
	host_free(h);
}

/*
 * The longer of the QP's own timer and the fault's; code 0 is the longest.  The fault's is the
 * longest one that does not exceed its age, if the request is a repetition.
 */
static void test_timer(void **state)
{
	static const struct {
		uint8_t own;
		uint64_t age;			/* ns */
		uint8_t fresh, again, again2;	/* again2: in stage 2 */
	} cases[] = {
		{ 1, 0, 14, 20, 24 }, { 14, 0, 14, 20, 24 }, { 15, 0, 15, 20, 24 },
		{ 20, 0, 20, 20, 24 }, { 21, 0, 21, 21, 24 }, { 31, 0, 31, 31, 31 },
		{ 0, 0, 0, 0, 0 },
		{ 1, 15359999, 14, 20, 24 }, { 1, 15360000, 14, 21, 24 },
		{ 1, 61440000, 14, 25, 25 }, { 26, 61440000, 26, 26, 26 },
		{ 1, 491519999, 14, 30, 30 }, { 1, 1ull << 60, 14, 31, 31 },
		{ 0, 1ull << 60, 0, 0, 0 },
	};
	struct host *h = host_new(NULL);
	struct hca_qp qp = { 0 };
	struct hca_fault *f = &qp.fault[HCA_FAULT_DIR_RESP];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		qp.sw.min_rnr_timer = cases[i].own;
		h->fn->hca->now = (1ull << 60) + 5;
		f->time = h->fn->hca->now - cases[i].age;
		f->flags = 0;
		assert_int_equal(hca_fault_timer(h->fn, &qp, false), cases[i].fresh);
		assert_int_equal(hca_fault_timer(h->fn, &qp, true), cases[i].again);
		f->flags = QHCA_FAULT_STAGE2;
		assert_int_equal(hca_fault_timer(h->fn, &qp, true), cases[i].again2);
	}
	/* The time comes from the context, which lies in the guest's memory. */
	h->fn->hca->now = 0;
	f->flags = 0;
	qp.sw.min_rnr_timer = 1;
	assert_int_equal(hca_fault_timer(h->fn, &qp, true), 20);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_where),
	cmocka_unit_test(test_read_only_line),
	cmocka_unit_test(test_all_or_nothing),
	cmocka_unit_test(test_protection_first),
	cmocka_unit_test(test_timer),
};
TEST_MAIN(tests)
