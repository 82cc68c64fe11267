// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "region.h"

/* ------------------------------------------------------------------------
 * Access
 */
static void test_data(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	uint8_t in[10000], out[10000];
	struct hca_mem_req w = req(START + 77, 10000, QHCA_ACCESS_REMOTE_WRITE,
				   true);
	uint64_t rng = 1, i;

	(void)state;
	for (i = 0; i < sizeof(in); i++)
		in[i] = (uint8_t)host_random(&rng);
	assert_int_equal(hca_mem_write(h->fn, &w, in), HCA_MEM_OK);
	for (i = 0; i < sizeof(in); i++)
		assert_int_equal(*byte_at(h, &r, 77 + i), in[i]);
	assert_int_equal(*byte_at(h, &r, 76), 0);
	assert_int_equal(*byte_at(h, &r, 77 + 10000), 0);
	w.access = 0;
	w.remote = false;
	assert_int_equal(hca_mem_read(h->fn, &w, out), HCA_MEM_OK);
	assert_memory_equal(in, out, sizeof(in));
	host_free(h);
}

static void test_zero_length(void **state)
{
	struct host *h = host_new_ready();
	struct hca_mem_req q = {
		.key = 0xffffffff, .addr = UINT64_MAX, .remote = true,
		.access = QHCA_ACCESS_REMOTE_WRITE,
	};
	uint64_t reads = h->reads;

	(void)state;
	assert_int_equal(hca_mem_check(h->fn, &q), HCA_MEM_OK);
	assert_int_equal(hca_mem_read(h->fn, &q, NULL), HCA_MEM_OK);
	assert_int_equal(hca_mem_write(h->fn, &q, NULL), HCA_MEM_OK);
	assert_int_equal(h->reads, reads);
	assert_int_equal(COUNT(h, pt_misses), 0);
	host_free(h);
}

/* Every part of the check alone, on hit and on miss. */
/* All that a message asks for is checked with the look-up of its first packet. */
static void test_span(void **state)
{
	struct host *h = host_new_ready();
	struct hca_mem_req q = req(START, 8, QHCA_ACCESS_REMOTE_WRITE, true);
	uint64_t in = 0;

	(void)state;
	make_region(h);
	q.span = LENGTH;
	assert_int_equal(hca_mem_write(h->fn, &q, &in), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_hits) + COUNT(h, pt_misses), 1);
	/* The access needs a page for its bytes alone. */
	assert_int_equal(COUNT(h, at_hits) + COUNT(h, at_misses), 1);
	q.span = LENGTH + 1;
	assert_int_equal(refused(h, q), HCA_PROT_RANGE);
	q.span = UINT64_MAX;
	assert_int_equal(refused(h, q), HCA_PROT_RANGE);
	/* A span that is shorter than the access does not matter. */
	q.span = 4;
	assert_int_equal(hca_mem_write(h->fn, &q, &in), HCA_MEM_OK);
	host_free(h);
}

/* A look-up made again is counted if it reads the table, and only then. */
static void test_again(void **state)
{
	struct host *h = host_new_ready();
	struct hca_mem_req q = req(START, 8, QHCA_ACCESS_REMOTE_READ, true);
	struct region r = make_region(h);
	uint64_t out;

	(void)state;
	assert_int_equal(hca_mem_check(h->fn, &q), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_misses), 1);
	q.again = true;
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_hits), 0);
	assert_int_equal(COUNT(h, pt_misses), 1);
	inval(h, INDEX, QHCA_INVAL_PT);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_hits), 0);
	assert_int_equal(COUNT(h, pt_misses), 2);
	/* It counts as a check like any other. */
	put_le32(&r.pte->ctrl, 0);
	inval(h, INDEX, QHCA_INVAL_PT);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_PROT);
	host_free(h);
}

static void test_protection(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req good = req(START, 8, 0, false), q;
	uint8_t out[8];
	int pass;

	(void)state;
	for (pass = 0; pass < 2; pass++) {
		q = good, q.key ^= 1;
		assert_int_equal(refused(h, q), HCA_PROT_OCTET);
		q = good, q.pd++;
		assert_int_equal(refused(h, q), HCA_PROT_PD);
		q = good, q.addr = START - 1;
		assert_int_equal(refused(h, q), HCA_PROT_RANGE);
		q = good, q.addr = START + LENGTH - 7;
		assert_int_equal(refused(h, q), HCA_PROT_RANGE);
		q = good, q.addr = UINT64_MAX - 3;
		assert_int_equal(refused(h, q), HCA_PROT_RANGE);
		q = good, q.len = HCA_MEM_MAX_LEN, q.addr += LENGTH - 100;
		assert_int_equal(refused(h, q), HCA_PROT_RANGE);
		q = good, q.key = 0;
		assert_int_equal(refused(h, q), HCA_PROT_INDEX);
		q = good, q.key = 0x1ff;
		assert_int_equal(refused(h, q), HCA_PROT_INDEX);
		q = good, q.key = (1024 + INDEX) << 8 | OCTET;
		assert_int_equal(refused(h, q), HCA_PROT_INDEX);
		q = good, q.key = (INDEX + 1) << 8 | OCTET;
		assert_int_equal(refused(h, q), HCA_PROT_STATE);
		assert_int_equal(hca_mem_read(h->fn, &good, out),
				 HCA_MEM_OK);
	}
	put_le32(&r.pte->access, QHCA_ACCESS_REMOTE_READ);
	inval_both(h, INDEX);
	q = good, q.access = QHCA_ACCESS_LOCAL_WRITE;
	assert_int_equal(refused(h, q), HCA_PROT_ACCESS);
	q = good, q.remote = true, q.access = QHCA_ACCESS_REMOTE_WRITE;
	assert_int_equal(refused(h, q), HCA_PROT_ACCESS);
	q = good, q.remote = true, q.access = QHCA_ACCESS_REMOTE_ATOMIC;
	assert_int_equal(refused(h, q), HCA_PROT_ACCESS);
	q = good, q.remote = true, q.access = QHCA_ACCESS_REMOTE_READ;
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	host_free(h);
}

/* For an index beyond the table, or in an unmapped chunk, the device reads nothing. */
static void test_no_fetch(void **state)
{
	struct host *h = host_new_ready();
	struct hca_mem_req q = req(START, 8, 0, false);
	uint64_t reads;

	(void)state;
	assert_int_equal(host_cmd(h, QHCA_CMD_UNMAP_CHUNKS, 15,
				  QHCA_TABLE_PT | 1 << 8, NULL, 0, NULL, 0),
			 QHCA_CMD_OK);
	reads = h->reads;
	q.key = 1024u << 8;
	assert_int_equal(refused(h, q), HCA_PROT_INDEX);
	q.key = 0xffffff00;
	assert_int_equal(refused(h, q), HCA_PROT_INDEX);
	q.key = 1023u << 8;
	assert_int_equal(refused(h, q), HCA_PROT_NOT_MAPPED);
	assert_int_equal(h->reads, reads);
	assert_int_equal(COUNT(h, pt_misses), 0);
	host_free(h);
}

/*
 * The cache keeps no negative entries: an entry that is written later works without a
 * command.
 */
static void test_not_negative(void **state)
{
	struct host *h = host_new_ready();
	struct hca_mem_req q = req(START, 8, 0, false);
	uint8_t out[8];

	(void)state;
	assert_int_equal(refused(h, q), HCA_PROT_STATE);
	make_region(h);
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	host_free(h);
}

/* A DMA error while an entry is fetched is an error of its own. */
static void test_fetch_dma(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(START, 8, 0, false);
	uint8_t out[8];

	(void)state;
	(void)r;
	h->fail_in = 1;			/* the protection entry */
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_DMA);
	h->fail_in = 2;			/* the node */
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_PROT);
	h->fail_in = 2;			/* the data (the entry is cached) */
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_DMA);
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_false(hca_is_dead(h->fn));
	host_free(h);
}

/* UNMAP_CHUNKS drops the protection lines of its chunks. */
static void test_unmap_drops(void **state)
{
	struct host *h = host_new_ready();
	struct hca_mem_req q = req(START, 8, 0, false);
	uint64_t out;
	__le64 chunk;

	(void)state;
	make_region(h);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(host_cmd(h, QHCA_CMD_UNMAP_CHUNKS, 0,
				  QHCA_TABLE_PT | 1 << 8, NULL, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(refused(h, q), HCA_PROT_NOT_MAPPED);
	put_le64(&chunk, host_alloc(h, 4096, 4096));
	assert_int_equal(host_cmd(h, QHCA_CMD_MAP_CHUNKS, 0,
				  QHCA_TABLE_PT | 1 << 8, &chunk, 8, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(refused(h, q), HCA_PROT_STATE);
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Other kinds
 */
static void test_dma_type(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(0, 8, 0, false);
	uint64_t out;

	(void)state;
	put_le64(&r.pte->start, 0);
	put_le64(&r.pte->length, UINT64_MAX);
	put_le64(&r.pte->at_offset, 0);
	set_ctrl(r.pte, QHCA_PTE_VALID, QHCA_PTE_DMA, OCTET, 0, 0);
	q.addr = r.page[3] + 40;
	put_le64(host_ptr(h, q.addr), 0x99);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(out, 0x99);
	q.addr = UINT64_MAX - 3;
	assert_int_equal(refused(h, q), HCA_PROT_RANGE);
	host_free(h);
}

static void test_devmem(void **state)
{
	static uint8_t devmem[4096];
	struct qhca_config cfg;
	struct qhca_init_hca in;
	struct host *h;
	struct region r;
	struct hca_mem_req q = req(START, 8, QHCA_ACCESS_LOCAL_WRITE, false);
	uint64_t v = 0x4242, orig;

	(void)state;
	host_config(&cfg);
	cfg.devmem = devmem;
	cfg.devmem_size = sizeof(devmem);
	h = host_new(&cfg);
	host_enable(h);
	host_init_default(h, &in);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	host_map_table(h, QHCA_TABLE_PT);
	r = make_region(h);
	put_le64(&r.pte->at_base, 4096 - 16);
	put_le64(&r.pte->at_offset, 0);
	set_ctrl(r.pte, QHCA_PTE_VALID, QHCA_PTE_DEVMEM, OCTET, 0, 0);
	q.addr = START + 8;
	assert_int_equal(hca_mem_write(h->fn, &q, &v), HCA_MEM_OK);
	assert_memory_equal(devmem + 4096 - 8, &v, 8);
	q.addr = START + 9;		/* beyond the device's memory */
	assert_int_equal(hca_mem_write(h->fn, &q, &v), HCA_MEM_PROT);
	assert_int_equal(COUNT(h, devmem_uses), 1);
	put_le64(&r.pte->start, 0);
	inval_both(h, INDEX);
	q.addr = 8;
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_FETCH_ADD, 0,
					1, &orig), HCA_MEM_OK);
	assert_int_equal(orig, 0x4242);
	assert_int_equal(get_le64(devmem + 4096 - 8), 0x4243);
	host_free(h);
}

static void test_atomic(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req((START + 7) & ~7ull, 8,
				   QHCA_ACCESS_REMOTE_ATOMIC, true);
	uint64_t at = q.addr - START, orig, writes;

	(void)state;
	put_le64(byte_at(h, &r, at), UINT64_MAX);
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_FETCH_ADD, 0,
					3, &orig), HCA_MEM_OK);
	assert_int_equal(orig, UINT64_MAX);
	assert_int_equal(get_le64(byte_at(h, &r, at)), 2);
	writes = h->writes;
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_CMP_SWAP, 3,
					9, &orig), HCA_MEM_OK);
	assert_int_equal(orig, 2);
	assert_int_equal(h->writes, writes);
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_CMP_SWAP, 2,
					9, &orig), HCA_MEM_OK);
	assert_int_equal(orig, 2);
	assert_int_equal(get_le64(byte_at(h, &r, at)), 9);
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_WRITE, 0, 11,
					NULL), HCA_MEM_OK);
	assert_int_equal(get_le64(byte_at(h, &r, at)), 11);
	q.addr += 4;
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_WRITE, 0, 1,
					NULL), HCA_MEM_PROT);
	q.addr -= 4, q.len = 4;
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_WRITE, 0, 1,
					NULL), HCA_MEM_PROT);
	/* A page that may only be read stops it before it reads. */
	q.len = 8;
	put_le64(host_ptr(h, r.node), r.page[0] | QHCA_ATE_PRESENT);
	inval(h, INDEX, QHCA_INVAL_AT);
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_CMP_SWAP, 0,
					0, &orig), HCA_MEM_PROT);
	host_free(h);
}

/*
 * The address of an atomic is aligned, but software may lay a region out so that its
 * memory is not.  A word in two pages is stored to both, and to nothing beside them.
 */
static void test_atomic_two_pages(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(0, 8, QHCA_ACCESS_REMOTE_ATOMIC, true);
	uint64_t beside = r.page[0] + 4096, orig, value = 0;
	uint8_t before[8], *first, *second;

	(void)state;
	assert_int_not_equal(r.page[1], beside);
	memset(host_ptr(h, beside), 0x5a, sizeof(before));
	memcpy(before, host_ptr(h, beside), sizeof(before));
	put_le64(&r.pte->start, 0);
	put_le64(&r.pte->at_offset, 4096 - 3);
	inval_both(h, INDEX);
	first = host_ptr(h, r.page[0] + 4096 - 3);
	second = host_ptr(h, r.page[1]);
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_WRITE, 0,
					0x0807060504030201, NULL), HCA_MEM_OK);
	assert_memory_equal(first, "\1\2\3", 3);
	assert_memory_equal(second, "\4\5\6\7\10", 5);
	assert_int_equal(hca_mem_atomic(h->fn, &q, HCA_ATOMIC_FETCH_ADD, 0,
					1ull << 56, &orig), HCA_MEM_OK);
	assert_int_equal(orig, 0x0807060504030201);
	assert_int_equal(hca_mem_read(h->fn, &q, &value), HCA_MEM_OK);
	assert_int_equal(get_le64(&value), 0x0907060504030201);
	assert_memory_equal(host_ptr(h, beside), before, sizeof(before));
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_data),
	cmocka_unit_test(test_zero_length),
	cmocka_unit_test(test_span),
	cmocka_unit_test(test_again),
	cmocka_unit_test(test_protection),
	cmocka_unit_test(test_no_fetch),
	cmocka_unit_test(test_not_negative),
	cmocka_unit_test(test_fetch_dma),
	cmocka_unit_test(test_unmap_drops),
	cmocka_unit_test(test_dma_type),
	cmocka_unit_test(test_devmem),
	cmocka_unit_test(test_atomic),
	cmocka_unit_test(test_atomic_two_pages),
};
TEST_MAIN(tests)
