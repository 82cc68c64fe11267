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

/* Seed 000, row 1 and 2: a warm key reads no table; the caches are two. */
static void test_two_caches(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(START, 100, 0, false);
	uint64_t reads, pt, at;
	uint8_t out[100];

	(void)state;
	(void)r;
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_misses), 1);
	assert_int_equal(COUNT(h, at_misses), 1);
	assert_int_equal(COUNT(h, at_node_reads), 1);
	reads = h->reads;
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(h->reads, reads + 1);	/* the data */
	assert_int_equal(COUNT(h, pt_hits), 1);
	assert_int_equal(COUNT(h, at_hits), 1);
	/* Only translation lines are invalidated: PT hit, AT miss. */
	inval(h, INDEX, QHCA_INVAL_AT);
	pt = COUNT(h, pt_misses), at = COUNT(h, at_misses);
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_misses), pt);
	assert_int_equal(COUNT(h, at_misses), at + 1);
	/* Only the protection line is invalidated: PT miss, AT hit. */
	inval(h, INDEX, QHCA_INVAL_PT);
	pt = COUNT(h, pt_misses), at = COUNT(h, at_misses);
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_misses), pt + 1);
	assert_int_equal(COUNT(h, at_misses), at);
	host_free(h);
}

/* Pages that follow each other in memory are one DMA. */
static void test_runs(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	uint64_t base = host_alloc(h, 3 * 4096, 4096), reads;
	struct hca_mem_req q = req(START, 10000, 0, false);
	uint8_t out[10000], expect[10000];
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++)
		put_le64(host_ptr(h, r.node + i * 8),
			 (base + i * 4096) | QHCA_ATE_PRESENT);
	for (i = 0; i < sizeof(expect); i++)
		expect[i] = (uint8_t)(i * 31 + (i >> 8));
	memcpy(host_ptr(h, base + (START & 0xfff)), expect, sizeof(expect));
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	reads = h->reads;
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(h->reads, reads + 1);
	assert_memory_equal(out, expect, sizeof(out));
	/* Pages in descending order are not adjacent. */
	put_le64(host_ptr(h, r.node), (base + 4096) | QHCA_ATE_PRESENT);
	put_le64(host_ptr(h, r.node + 8), base | QHCA_ATE_PRESENT);
	inval(h, INDEX, QHCA_INVAL_AT);
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	reads = h->reads;
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	assert_int_equal(h->reads, reads + 3);
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

/* The device finds all pages before it moves a byte. */
static void test_all_or_nothing(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(START, 8192, QHCA_ACCESS_LOCAL_WRITE, false);
	uint8_t in[8192];

	(void)state;
	memset(in, 0xee, sizeof(in));
	put_le64(host_ptr(h, r.node + 16), 0);
	assert_int_equal(hca_mem_write(h->fn, &q, in), HCA_MEM_PROT);
	assert_int_equal(h->fn->mem.reason, HCA_PROT_NOT_PRESENT);
	assert_int_equal(*byte_at(h, &r, 0), 0);
	/* The protection check alone does not look at presence. */
	assert_int_equal(hca_mem_check(h->fn, &q), HCA_MEM_OK);
	/* The page may only be read. */
	put_le64(host_ptr(h, r.node + 16), r.page[2] | QHCA_ATE_PRESENT);
	assert_int_equal(hca_mem_write(h->fn, &q, in), HCA_MEM_PROT);
	assert_int_equal(h->fn->mem.reason, HCA_PROT_READ_ONLY);
	assert_int_equal(*byte_at(h, &r, 0), 0);
	q.access = 0;
	assert_int_equal(hca_mem_read(h->fn, &q, in), HCA_MEM_OK);
	/* The line that this read has left does not permit the write, either. */
	assert_int_equal(hca_mem_write(h->fn, &q, in), HCA_MEM_PROT);
	/* The page was made writable, which needs no invalidation. */
	put_le64(host_ptr(h, r.node + 16), r.page[2] | QHCA_ATE_PRESENT |
		 QHCA_ATE_WRITE);
	q.access = QHCA_ACCESS_LOCAL_WRITE;
	assert_int_equal(hca_mem_write(h->fn, &q, in), HCA_MEM_OK);
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
 * Seed 001: the reserved L_Key
 */
static void test_reserved(void **state)
{
	struct host *h = host_new_ready();
	uint64_t at = host_alloc(h, 4096, 64), out = 0, in = 0x1234;
	struct hca_mem_req q = {
		.key = QHCA_RESERVED_LKEY, .addr = at, .len = 8, .pd = PD,
		.access = QHCA_ACCESS_LOCAL_WRITE, .kernel = true,
	};

	(void)state;
	assert_int_equal(hca_mem_write(h->fn, &q, &in), HCA_MEM_OK);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(out, in);
	assert_int_equal(COUNT(h, reserved_lkey_uses), 2);
	assert_int_equal(COUNT(h, pt_hits) + COUNT(h, pt_misses), 0);
	assert_int_equal(COUNT(h, at_hits) + COUNT(h, at_misses), 0);
	/* The key is not for a user, not an R_Key, and has no other octet. */
	q.kernel = false;
	assert_int_equal(refused(h, q), HCA_PROT_RESERVED_KEY);
	q.kernel = true, q.remote = true;
	assert_int_equal(refused(h, q), HCA_PROT_RESERVED_KEY);
	q.remote = false, q.key += 2;
	assert_int_equal(refused(h, q), HCA_PROT_INDEX);
	/* The address is not memory. */
	q.key -= 2, q.addr = 8;
	assert_int_equal(hca_mem_write(h->fn, &q, &in), HCA_MEM_DMA);
	host_free(h);
}

/* Zeros are read, what is written is lost, and no cache is looked up. */
static void test_null_lkey(void **state)
{
	struct host *h = host_new_ready();
	struct hca_mem_req q = {
		.key = QHCA_NULL_LKEY, .addr = UINT64_MAX - 7, .len = 8,
		.pd = PD, .access = QHCA_ACCESS_LOCAL_WRITE,
	};
	uint64_t out = 0x1234, in = 0x5678;

	(void)state;
	assert_int_equal(hca_mem_write(h->fn, &q, &in), HCA_MEM_OK);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(out, 0);
	assert_int_equal(COUNT(h, reserved_lkey_uses), 0);
	assert_int_equal(COUNT(h, pt_hits) + COUNT(h, pt_misses), 0);
	assert_int_equal(COUNT(h, at_hits) + COUNT(h, at_misses), 0);
	q.remote = true;
	assert_int_equal(refused(h, q), HCA_PROT_RESERVED_KEY);
	q.remote = false;
	h->fn->features &= ~QHCA_FEAT_NULL_LKEY;
	assert_int_equal(refused(h, q), HCA_PROT_RESERVED_KEY);
	host_free(h);
}

static void test_reserved_strict(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_init_hca in;
	struct hca_mem_req q = {
		.key = QHCA_RESERVED_LKEY, .len = 8, .kernel = true,
	};
	uint64_t out;

	(void)state;
	host_enable(h);
	host_init_default(h, &in);
	put_le32(&in.flags, QHCA_INIT_STRICT_LKEY);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	q.addr = host_alloc(h, 64, 64);
	assert_int_equal(refused(h, q), HCA_PROT_RESERVED_KEY);
	q.channel = true;
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Other kinds
 */
static void test_levels_zero(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(START + 8, 8, 0, false);
	uint64_t out;

	(void)state;
	put_le64(&r.pte->at_base, r.page[0]);
	set_ctrl(r.pte, QHCA_PTE_VALID, QHCA_PTE_MR, OCTET, 0, 0);
	put_le64(byte_at(h, &r, 8), 0x77);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(out, 0x77);
	assert_int_equal(COUNT(h, at_misses), 0);
	host_free(h);
}

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
	cmocka_unit_test(test_two_caches),
	cmocka_unit_test(test_runs),
	cmocka_unit_test(test_zero_length),
	cmocka_unit_test(test_span),
	cmocka_unit_test(test_again),
	cmocka_unit_test(test_protection),
	cmocka_unit_test(test_no_fetch),
	cmocka_unit_test(test_not_negative),
	cmocka_unit_test(test_fetch_dma),
	cmocka_unit_test(test_all_or_nothing),
	cmocka_unit_test(test_unmap_drops),
	cmocka_unit_test(test_reserved),
	cmocka_unit_test(test_null_lkey),
	cmocka_unit_test(test_reserved_strict),
	cmocka_unit_test(test_levels_zero),
	cmocka_unit_test(test_dma_type),
	cmocka_unit_test(test_devmem),
	cmocka_unit_test(test_atomic),
	cmocka_unit_test(test_atomic_two_pages),
};
TEST_MAIN(tests)
