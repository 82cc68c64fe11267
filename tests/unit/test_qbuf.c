// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

static struct hca_qbuf make(uint64_t base, uint32_t length, uint8_t shift,
			    uint8_t levels)
{
	struct qhca_buf image = { .page_shift = shift, .levels = levels };
	struct hca_qbuf qb;

	put_le64(&image.base, base);
	put_le32(&image.length, length);
	hca_qbuf_decode(&qb, &image);
	return qb;
}

static void test_valid(void **state)
{
	static const struct {
		uint64_t base;
		uint32_t length;
		uint8_t shift, levels;
		bool ok;
	} cases[] = {
		{ 0x1000, 64, 0, 0, true },
		{ 0x1040, 64, 0, 0, true },
		{ 0x1020, 64, 0, 0, false },	/* alignment */
		{ 0x1000, 0, 0, 0, false },	/* nothing */
		{ UINT64_MAX - 63, 64, 0, 0, false }, /* wraps */
		{ 0x1000, 1u << 21, 12, 1, true },
		{ 0x1000, (1u << 21) + 1, 12, 1, false }, /* beyond the root */
		{ 0x1000, UINT32_MAX, 12, 3, true },
		{ 0x1000, 4096, 12, 5, true },
		{ 0x1000, 4096, 12, 6, false },
		{ 0x1000, 4096, 11, 1, false },
		{ 0x1000, 4096, 39, 1, true },
		{ 0x1000, 4096, 40, 1, false },
		{ 0x1000, 4096, 63, 5, false },
	};
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct hca_qbuf qb = make(cases[i].base, cases[i].length,
					  cases[i].shift, cases[i].levels);

		if (hca_qbuf_valid(&qb) != cases[i].ok)
			fail_msg("case %u", i);
	}
}

static void test_encode(void **state)
{
	struct hca_qbuf qb = make(0x123440, 77, 21, 2);
	struct qhca_buf image;

	(void)state;
	hca_qbuf_encode(&qb, &image);
	assert_int_equal(get_le64(&image.base), 0x123440);
	assert_int_equal(get_le32(&image.length), 77);
	assert_int_equal(image.page_shift, 21);
	assert_int_equal(image.levels, 2);
}

static void test_contiguous(void **state)
{
	struct host *h = host_new(NULL);
	uint64_t base = host_alloc(h, 256, 64);
	struct hca_qbuf qb = make(base, 200, 0, 0);
	uint8_t in[16] = "fifteen octets!", out[16];
	uint32_t v;

	(void)state;
	assert_int_equal(hca_qbuf_write(h->fn, &qb, 184, in, 16), 0);
	assert_int_equal(hca_qbuf_read(h->fn, &qb, 184, out, 16), 0);
	assert_memory_equal(in, out, 16);
	assert_memory_equal(host_ptr(h, base + 184), in, 16);
	/* The bounds hold also where a sum would wrap. */
	assert_int_equal(hca_qbuf_read(h->fn, &qb, 185, out, 16), -1);
	assert_int_equal(hca_qbuf_write(h->fn, &qb, 201, in, 1), -1);
	assert_int_equal(hca_qbuf_write(h->fn, &qb, UINT32_MAX, in, 2), -1);
	assert_int_equal(hca_qbuf_write_release(h->fn, &qb, 192, in, 16), -1);
	assert_int_equal(hca_qbuf_write32(h->fn, &qb, 8, 0x12345678), 0);
	assert_int_equal(hca_qbuf_read32(h->fn, &qb, 8, &v), 0);
	assert_int_equal(v, 0x12345678);
	assert_int_equal(*(uint8_t *)host_ptr(h, base + 8), 0x78);
	h->fail_in = 1;
	assert_int_equal(hca_qbuf_read32(h->fn, &qb, 8, &v), -1);
	h->fail_in = 1;
	assert_int_equal(hca_qbuf_write32(h->fn, &qb, 8, 1), -1);
	host_free(h);
}

#define PAGES 6

/* Pages in reverse order, the last read-only, one missing. */
static struct hca_qbuf paged(struct host *h, uint64_t *page)
{
	uint64_t node = host_alloc(h, PAGES * 8, 64), flags;
	unsigned int i;

	for (i = 0; i < PAGES; i++)
		page[PAGES - 1 - i] = host_alloc(h, 4096, 4096);
	for (i = 0; i < PAGES; i++) {
		flags = QHCA_ATE_PRESENT;
		if (i == 3)
			flags = 0;
		else if (i < PAGES - 1)
			flags |= QHCA_ATE_WRITE;
		put_le64(host_ptr(h, node + i * 8), page[i] | flags);
	}
	return make(node, PAGES * 4096, 12, 1);
}

static void test_pages(void **state)
{
	struct host *h = host_new(NULL);
	uint64_t page[PAGES], rng = 3;
	struct hca_qbuf qb = paged(h, page);
	uint8_t in[6000], out[6000];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)host_random(&rng);
	assert_int_equal(hca_qbuf_write(h->fn, &qb, 3000, in, 6000), 0);
	assert_memory_equal(host_ptr(h, page[0] + 3000), in, 1096);
	assert_memory_equal(host_ptr(h, page[1]), in + 1096, 4096);
	assert_memory_equal(host_ptr(h, page[2]), in + 5192, 808);
	assert_int_equal(hca_qbuf_read(h->fn, &qb, 3000, out, 6000), 0);
	assert_memory_equal(in, out, 6000);
	/* Page 3 is absent, and page 5 is read-only. */
	assert_int_equal(hca_qbuf_read(h->fn, &qb, 3 * 4096, out, 1), -1);
	assert_int_equal(hca_qbuf_read(h->fn, &qb, 5 * 4096, out, 8), 0);
	assert_int_equal(hca_qbuf_write(h->fn, &qb, 5 * 4096, in, 8), -1);
	assert_int_equal(hca_qbuf_write_release(h->fn, &qb, 5 * 4096, in, 8),
			 -1);
	/* A release write is one DMA, so it stays inside a page. */
	assert_int_equal(hca_qbuf_write_release(h->fn, &qb, 4096 - 32, in,
						64), -1);
	assert_int_equal(hca_qbuf_write_release(h->fn, &qb, 4096 - 64, in,
						64), 0);
	host_free(h);
}

/* The device does not translate a page again that it has just used. */
static void test_remembers(void **state)
{
	struct host *h = host_new(NULL);
	uint64_t page[PAGES], reads;
	struct hca_qbuf qb = paged(h, page);
	uint32_t v;

	(void)state;
	assert_int_equal(hca_qbuf_read32(h->fn, &qb, 0, &v), 0);
	assert_int_equal(hca_qbuf_read32(h->fn, &qb, 4096, &v), 0);
	reads = h->reads;
	assert_int_equal(hca_qbuf_read32(h->fn, &qb, 8, &v), 0);
	assert_int_equal(hca_qbuf_read32(h->fn, &qb, 4104, &v), 0);
	assert_int_equal(h->reads, reads + 2);
	/* Page 4 takes the place of page 0; both translate correctly. */
	put_le32(host_ptr(h, page[0]), 0xaaaa);
	put_le32(host_ptr(h, page[4]), 0xbbbb);
	assert_int_equal(hca_qbuf_read32(h->fn, &qb, 4 * 4096, &v), 0);
	assert_int_equal(v, 0xbbbb);
	assert_int_equal(hca_qbuf_read32(h->fn, &qb, 0, &v), 0);
	assert_int_equal(v, 0xaaaa);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_valid),
	cmocka_unit_test(test_encode),
	cmocka_unit_test(test_contiguous),
	cmocka_unit_test(test_pages),
	cmocka_unit_test(test_remembers),
};
TEST_MAIN(tests)
