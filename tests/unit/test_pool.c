// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The pool bank: rows of blocks, pinned keys.
 */
#include "region.h"

#define BLOCK_LEN	8192u

static enum qhca_cmd_status map_block(struct host *h, uint32_t row,
				      uint64_t addr, uint64_t length)
{
	struct qhca_pool_row in = { 0 };

	put_le64(&in.addr, addr);
	put_le64(&in.length, length);
	return host_cmd(h, QHCA_CMD_MAP_POOL_BLOCK, row, 0, &in, sizeof(in),
			NULL, 0);
}

static enum qhca_cmd_status map_key(struct host *h, uint32_t index)
{
	return host_cmd(h, QHCA_CMD_MAP_POOL_KEY, index, 0, NULL, 0, NULL, 0);
}

/* A pool entry at @index: @length bytes from @offset of block @row. */
static struct qhca_pte *make_key(struct host *h, uint32_t index, uint32_t row,
				 uint64_t offset, uint64_t length)
{
	struct qhca_pte *pte = pte_of(h, index);

	memset(pte, 0, sizeof(*pte));
	put_le32(&pte->access, RW);
	put_le32(&pte->pd, PD);
	put_le32(&pte->at_key, index);
	put_le64(&pte->start, START);
	put_le64(&pte->length, length);
	put_le64(&pte->at_base, offset);
	put_le32(&pte->pool_block, row);
	set_ctrl(pte, QHCA_PTE_VALID, QHCA_PTE_POOL, OCTET, 0, 0);
	return pte;
}

static enum hca_mem_status get(struct host *h, uint32_t index, uint64_t *out)
{
	struct hca_mem_req q = req(START, 8, QHCA_ACCESS_REMOTE_READ, true);

	q.key = index << 8 | OCTET;
	return hca_mem_read(h->fn, &q, out);
}

static uint64_t lookups(struct host *h)
{
	return COUNT(h, pt_hits) + COUNT(h, pt_misses) + COUNT(h, at_hits) +
	       COUNT(h, at_misses);
}

static void test_blocks(void **state)
{
	struct host *h = host_new_ready();
	uint64_t block = host_alloc(h, BLOCK_LEN, 4096), out;
	struct hca_mem_req q = req(START, 8, 0, false);
	struct qhca_pte *pte;

	(void)state;
	/* The region is longer than the rest of its block. */
	pte = make_key(h, INDEX, 2, 4096, BLOCK_LEN);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_PROT);
	assert_int_equal(h->fn->mem.reason, HCA_PROT_POOL);

	assert_int_equal(map_block(h, 2, block, BLOCK_LEN + 1),
			 QHCA_CMD_BAD_PARAM);
	assert_int_equal(map_block(h, 2, block, 0), QHCA_CMD_BAD_PARAM);
	assert_int_equal(map_block(h, 2, block + 8, BLOCK_LEN),
			 QHCA_CMD_BAD_PARAM);
	assert_int_equal(map_block(h, 2, 0ull - 4096, BLOCK_LEN),
			 QHCA_CMD_BAD_PARAM);
	assert_int_equal(map_block(h, 4, block, BLOCK_LEN), QHCA_CMD_BAD_INDEX);
	assert_int_equal(map_block(h, 2, block, BLOCK_LEN), QHCA_CMD_OK);
	assert_int_equal(map_block(h, 2, block, BLOCK_LEN), QHCA_CMD_IN_USE);

	put_le64(host_ptr(h, block + 4096), 0xabcd);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(out, 0xabcd);
	assert_int_equal(COUNT(h, pool_direct_uses), 1);
	assert_int_equal(COUNT(h, at_hits) + COUNT(h, at_misses), 0);
	q.addr = START + 4096 - 8;
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	q.addr = START + 4096 - 7;	/* inside the region, not the block */
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_PROT);

	assert_int_equal(host_cmd(h, QHCA_CMD_UNMAP_POOL_BLOCK, 2, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
	assert_int_equal(host_cmd(h, QHCA_CMD_UNMAP_POOL_BLOCK, 2, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_BAD_STATE);
	q.addr = START;
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_PROT);
	/* The row is beyond the bank. */
	put_le32(&pte->pool_block, 4);
	inval_both(h, INDEX);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_PROT);
	host_free(h);
}

/* A mismatch of key, address, length or right alone is refused. */
static void test_permission(void **state)
{
	struct host *h = host_new_ready();
	uint64_t block = host_alloc(h, BLOCK_LEN, 4096);
	struct hca_mem_req good = req(START, 4096, QHCA_ACCESS_REMOTE_READ,
				      true), q;
	struct qhca_pte *pte;

	(void)state;
	assert_int_equal(map_block(h, 0, block, BLOCK_LEN), QHCA_CMD_OK);
	pte = make_key(h, INDEX, 0, 4096, 4096);
	put_le32(&pte->access, QHCA_ACCESS_REMOTE_READ);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_OK);
	assert_int_equal(hca_mem_check(h->fn, &good), HCA_MEM_OK);
	q = good;
	q.key ^= 1;
	assert_int_equal(refused(h, q), HCA_PROT_OCTET);
	q = good;
	q.addr--;
	assert_int_equal(refused(h, q), HCA_PROT_RANGE);
	q = good;
	q.len++;
	assert_int_equal(refused(h, q), HCA_PROT_RANGE);
	q = good;
	q.access = QHCA_ACCESS_REMOTE_WRITE;
	assert_int_equal(refused(h, q), HCA_PROT_ACCESS);
	q = good;
	q.pd++;
	assert_int_equal(refused(h, q), HCA_PROT_PD);
	host_free(h);
}

static void test_key_refused(void **state)
{
	struct host *h = host_new_ready();
	uint64_t block = host_alloc(h, BLOCK_LEN, 4096);
	struct qhca_pte *pte;

	(void)state;
	assert_int_equal(map_block(h, 0, block, BLOCK_LEN), QHCA_CMD_OK);
	assert_int_equal(map_key(h, 1), QHCA_CMD_BAD_INDEX);
	assert_int_equal(map_key(h, 1u << 10), QHCA_CMD_BAD_INDEX);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_BAD_STATE);

	pte = make_key(h, INDEX, 0, 4096, 4097);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_BAD_PARAM);
	put_le64(&pte->at_base, UINT64_MAX);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_BAD_PARAM);
	put_le64(&pte->at_base, BLOCK_LEN + 1);
	put_le64(&pte->length, 0);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_BAD_PARAM);
	pte = make_key(h, INDEX, 1, 0, 4096);	/* an empty row */
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_BAD_PARAM);
	pte = make_key(h, INDEX, 0, 0, 4096);
	put_le32(&pte->access, ~0u);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_BAD_STATE);
	put_le32(&pte->access, RW);
	set_ctrl(pte, QHCA_PTE_VALID, QHCA_PTE_MR, OCTET, 0, 0);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_BAD_STATE);
	set_ctrl(pte, QHCA_PTE_INVALIDATED, QHCA_PTE_POOL, OCTET, 0, 0);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_BAD_STATE);
	set_ctrl(pte, QHCA_PTE_VALID, QHCA_PTE_POOL, OCTET, 0, 0);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_OK);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_OK);
	assert_int_equal(h->fn->pool.num_keys, 1);
	host_free(h);
}

/* For a pinned key the device looks no cache up, whatever other traffic there is. */
static void test_pinned(void **state)
{
	struct host *h = host_new_cache(QHCA_CACHE_PT, 1, 1);
	uint64_t block = host_alloc(h, BLOCK_LEN, 4096), out, before, reads;
	struct hca_mem_req part = req(START, 8, QHCA_ACCESS_REMOTE_READ, true);
	struct region r;
	unsigned int i;

	(void)state;
	part.key = 100 << 8 | OCTET;
	assert_int_equal(map_block(h, 0, block, BLOCK_LEN), QHCA_CMD_OK);
	put_le64(host_ptr(h, block + 8), 0x77);
	make_key(h, 100, 0, 8, 64);
	make_key(h, 101, 0, 8, 64);
	assert_int_equal(map_key(h, 100), QHCA_CMD_OK);

	before = lookups(h);
	reads = h->reads;
	for (i = 0; i < 50; i++) {
		assert_int_equal(get(h, 100, &out), HCA_MEM_OK);
		assert_int_equal(out, 0x77);
	}
	assert_int_equal(lookups(h), before);
	assert_int_equal(COUNT(h, pool_bank_hits), 50);
	part.again = true;		/* a part of an access that is counted */
	assert_int_equal(hca_mem_check(h->fn, &part), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pool_bank_hits), 50);
	assert_int_equal(COUNT(h, pool_direct_uses), 50);
	/* The device reads the data alone. */
	assert_int_equal(h->reads, reads + 50);

	/* Two keys evict each other from a cache of one line, and leave the bank's alone. */
	r = make_region(h);
	(void)r;
	for (i = 0; i < 20; i++) {
		struct hca_mem_req q = req(START, 8, 0, false);

		assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
		assert_int_equal(get(h, 101, &out), HCA_MEM_OK);
		before = lookups(h);
		assert_int_equal(get(h, 100, &out), HCA_MEM_OK);
		assert_int_equal(lookups(h), before);
	}
	assert_int_equal(COUNT(h, pt_hits), 0);
	assert_int_equal(COUNT(h, pt_misses), 40);
	host_free(h);
}

static void test_bank_full(void **state)
{
	struct host *h = host_new_ready();
	uint64_t block = host_alloc(h, BLOCK_LEN, 4096), out;
	uint32_t i;

	(void)state;
	assert_int_equal(map_block(h, 0, block, BLOCK_LEN), QHCA_CMD_OK);
	for (i = 0; i < 4; i++)
		make_key(h, 64 + 4 * i, 0, 0, 64);	/* of one bucket */
	for (i = 0; i < 3; i++)
		assert_int_equal(map_key(h, 64 + 4 * i), QHCA_CMD_OK);
	assert_int_equal(map_key(h, 76), QHCA_CMD_NO_RESOURCE);
	/* The access works nevertheless, through the cache. */
	assert_int_equal(get(h, 76, &out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pt_misses), 1);
	/* There is room again, in the middle of a list. */
	pte_of(h, 68)->ctrl = 0;
	inval(h, 68, QHCA_INVAL_PT);
	assert_int_equal(map_key(h, 76), QHCA_CMD_OK);
	for (i = 0; i < 4; i++) {
		assert_int_equal(get(h, 64 + 4 * i, &out),
				 i == 1 ? HCA_MEM_PROT : HCA_MEM_OK);
	}
	assert_int_equal(h->fn->pool.num_keys, 3);
	host_free(h);
}

/*
 * Each command after which the device uses the table's entry also drops the bank's
 * copy.
 */
static void test_invalidation(void **state)
{
	struct host *h = host_new_ready();
	uint64_t block = host_alloc(h, BLOCK_LEN, 4096), out;
	struct qhca_pte *pte;

	(void)state;
	assert_int_equal(map_block(h, 0, block, BLOCK_LEN), QHCA_CMD_OK);
	pte = make_key(h, INDEX, 0, 0, 64);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_OK);
	put_le32(&pte->ctrl, 0);
	inval(h, INDEX, QHCA_INVAL_AT);		/* not the entry's */
	assert_int_equal(get(h, INDEX, &out), HCA_MEM_OK);
	inval(h, INDEX, QHCA_INVAL_PT);
	assert_int_equal(get(h, INDEX, &out), HCA_MEM_PROT);
	assert_int_equal(h->fn->pool.num_keys, 0);

	/* After INVALIDATE_ALL the entry is as memory has it, and still in the bank. */
	pte = make_key(h, INDEX, 0, 0, 64);
	make_key(h, INDEX + 4, 0, 0, 64);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_OK);
	assert_int_equal(map_key(h, INDEX + 4), QHCA_CMD_OK);
	put_le32(&pte->access, QHCA_ACCESS_LOCAL_WRITE);
	pte_of(h, INDEX + 4)->ctrl = 0;
	assert_int_equal(get(h, INDEX, &out), HCA_MEM_OK);
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_ALL, 0, QHCA_INVAL_PT,
				  NULL, 0, NULL, 0), QHCA_CMD_OK);
	assert_int_equal(get(h, INDEX, &out), HCA_MEM_PROT);
	assert_int_equal(h->fn->mem.reason, HCA_PROT_ACCESS);
	assert_int_equal(get(h, INDEX + 4, &out), HCA_MEM_PROT);
	assert_int_equal(h->fn->pool.num_keys, 1);

	/* The chunk of the table is unmapped. */
	assert_int_equal(host_cmd(h, QHCA_CMD_UNMAP_CHUNKS, 0,
				  QHCA_TABLE_PT | 1 << 8, NULL, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(h->fn->pool.num_keys, 0);
	assert_int_equal(get(h, INDEX, &out), HCA_MEM_PROT);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_NOT_MAPPED);
	host_free(h);
}

/* A bind counts the window in the entry and leaves the key in the bank. */
static void test_bind_keeps(void **state)
{
	struct host *h = host_new_ready();
	uint64_t block = host_alloc(h, BLOCK_LEN, 4096), out, before;
	struct qhca_wqe_bind w = { 0 };
	struct qhca_pte *mw = pte_of(h, 50);

	(void)state;
	assert_int_equal(map_block(h, 0, block, BLOCK_LEN), QHCA_CMD_OK);
	make_key(h, INDEX, 0, 0, 4096);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_OK);
	put_le32(&mw->pd, PD);
	set_ctrl(mw, QHCA_PTE_INVALIDATED, QHCA_PTE_MW1, 1, 0, 0);
	put_le64(&w.addr, START);
	put_le64(&w.length, 64);
	put_le32(&w.mr_lkey, KEY);
	put_le32(&w.mw_rkey, 50 << 8 | 1);
	put_le32(&w.new_rkey, 50 << 8 | 2);
	put_le32(&w.access, QHCA_ACCESS_REMOTE_READ);
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &w), HCA_MEM_OK);
	assert_int_equal(get_le32(&pte_of(h, INDEX)->windows), 1);
	before = lookups(h);
	assert_int_equal(get(h, INDEX, &out), HCA_MEM_OK);
	assert_int_equal(lookups(h), before);
	host_free(h);
}

#define WINDOW		50u	/* index */

static enum hca_mem_status bind(struct host *h, unsigned int octet,
				uint64_t length)
{
	struct qhca_wqe_bind w = { 0 };

	put_le64(&w.addr, START);
	put_le64(&w.length, length);
	put_le32(&w.mr_lkey, KEY);
	put_le32(&w.mw_rkey, WINDOW << 8 | octet);
	put_le32(&w.new_rkey, WINDOW << 8 | (octet + 1));
	put_le32(&w.access, QHCA_ACCESS_REMOTE_READ);
	return hca_mem_bind(h->fn, PD, QPN, &w);
}

static enum hca_mem_status get_window(struct host *h, unsigned int octet,
				      uint64_t *out)
{
	struct hca_mem_req q = req(START, 8, QHCA_ACCESS_REMOTE_READ, true);

	q.key = WINDOW << 8 | octet;
	return hca_mem_read(h->fn, &q, out);
}

/* A window on pool memory is in the bank as long as it is bound. */
static void test_window(void **state)
{
	struct host *h = host_new_ready();
	uint64_t block = host_alloc(h, BLOCK_LEN, 4096), out, before;
	struct qhca_pte *mw = pte_of(h, WINDOW);
	struct region r;

	(void)state;
	assert_int_equal(map_block(h, 0, block, BLOCK_LEN), QHCA_CMD_OK);
	put_le64(host_ptr(h, block), 0x5a);
	make_key(h, INDEX, 0, 0, 4096);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_OK);
	put_le32(&mw->pd, PD);
	set_ctrl(mw, QHCA_PTE_INVALIDATED, QHCA_PTE_MW1, 1, 0, 0);
	assert_int_equal(bind(h, 1, 64), HCA_MEM_OK);
	before = lookups(h);
	assert_int_equal(get_window(h, 2, &out), HCA_MEM_OK);
	assert_int_equal(out, 0x5a);
	assert_int_equal(lookups(h), before);
	assert_int_equal(COUNT(h, pool_bank_hits), 1);
	assert_int_equal(h->fn->pool.num_keys, 2);
	/* A command cannot bind it. */
	assert_int_equal(map_key(h, WINDOW), QHCA_CMD_BAD_STATE);

	/* The window is bound anew: the old key and the old range are invalid. */
	assert_int_equal(bind(h, 2, 4), HCA_MEM_OK);
	assert_int_equal(get_window(h, 2, &out), HCA_MEM_PROT);
	assert_int_equal(get_window(h, 3, &out), HCA_MEM_PROT);
	assert_int_equal(bind(h, 3, 64), HCA_MEM_OK);
	assert_int_equal(h->fn->pool.num_keys, 2);

	/* The bank accepts both copies anew. */
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_ALL, 0, QHCA_INVAL_PT,
				  NULL, 0, NULL, 0), QHCA_CMD_OK);
	assert_int_equal(h->fn->pool.num_keys, 2);
	before = lookups(h);
	assert_int_equal(get_window(h, 4, &out), HCA_MEM_OK);
	assert_int_equal(lookups(h), before);

	assert_int_equal(bind(h, 4, 0), HCA_MEM_OK);	/* unbound */
	assert_int_equal(h->fn->pool.num_keys, 1);
	assert_int_equal(get_window(h, 5, &out), HCA_MEM_PROT);

	/* Software frees the key by INVALIDATE_KEY. */
	assert_int_equal(bind(h, 5, 64), HCA_MEM_OK);
	put_le32(&mw->ctrl, get_le32(&mw->ctrl) & ~QHCA_PTE_STATE);
	inval(h, WINDOW, QHCA_INVAL_PT);
	assert_int_equal(h->fn->pool.num_keys, 1);
	assert_int_equal(get_window(h, 6, &out), HCA_MEM_PROT);
	assert_int_equal(get_le32(&pte_of(h, INDEX)->windows), 0);

	/* A window on other memory uses the cache. */
	inval(h, INDEX, QHCA_INVAL_PT);
	r = make_region(h);
	(void)r;
	put_le32(&pte_of(h, INDEX)->access, RW | QHCA_ACCESS_MW_BIND);
	set_ctrl(mw, QHCA_PTE_INVALIDATED, QHCA_PTE_MW1, 1, 0, 0);
	assert_int_equal(bind(h, 1, 64), HCA_MEM_OK);
	assert_int_equal(h->fn->pool.num_keys, 0);
	assert_false(get_le32(&mw->ctrl) & QHCA_PTE_POOLED);
	assert_int_equal(get_le32(&mw->pool_block), 0);
	host_free(h);
}

/*
 * A window refers to the row of its region: when software unmaps the block, the
 * window has no memory any more, and when it maps another block the window is on
 * that.
 */
static void test_window_row(void **state)
{
	struct host *h = host_new_ready();
	uint64_t block = host_alloc(h, 2 * BLOCK_LEN, 4096), out;
	struct qhca_pte *mw = pte_of(h, WINDOW);

	(void)state;
	assert_int_equal(map_block(h, 1, block, BLOCK_LEN), QHCA_CMD_OK);
	put_le64(host_ptr(h, block + 4096), 0x1234);
	put_le64(host_ptr(h, block + BLOCK_LEN + 4096), 0x5678);
	make_key(h, INDEX, 1, 4096, 4096);
	put_le32(&mw->pd, PD);
	set_ctrl(mw, QHCA_PTE_INVALIDATED, QHCA_PTE_MW1, 1, 0, 0);
	assert_int_equal(bind(h, 1, 64), HCA_MEM_OK);
	assert_int_equal(get_le32(&mw->pool_block), 1);
	assert_int_equal(get_le64(&mw->at_base), 4096);
	assert_true(get_le32(&mw->ctrl) & QHCA_PTE_POOLED);
	assert_int_equal(get_window(h, 2, &out), HCA_MEM_OK);
	assert_int_equal(out, 0x1234);
	assert_int_equal(COUNT(h, pool_direct_uses), 1);

	assert_int_equal(host_cmd(h, QHCA_CMD_UNMAP_POOL_BLOCK, 1, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
	assert_int_equal(get_window(h, 2, &out), HCA_MEM_PROT);
	assert_int_equal(h->fn->mem.reason, HCA_PROT_POOL);
	/* The device reads not even 64 bytes of the entry. */
	assert_int_equal(map_block(h, 1, block + BLOCK_LEN, 4096), QHCA_CMD_OK);
	assert_int_equal(get_window(h, 2, &out), HCA_MEM_PROT);
	assert_int_equal(host_cmd(h, QHCA_CMD_UNMAP_POOL_BLOCK, 1, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
	assert_int_equal(map_block(h, 1, block + BLOCK_LEN, BLOCK_LEN),
			 QHCA_CMD_OK);
	assert_int_equal(get_window(h, 2, &out), HCA_MEM_OK);
	assert_int_equal(out, 0x5678);
	assert_int_equal(COUNT(h, pool_direct_uses), 2);
	host_free(h);
}

/* The bind of a window succeeds when the bank is full, and the device counts it. */
static void test_window_bank_full(void **state)
{
	struct host *h = host_new_ready();
	uint64_t block = host_alloc(h, BLOCK_LEN, 4096), out;
	struct qhca_pte *mw = pte_of(h, WINDOW);
	uint32_t i;

	(void)state;
	assert_int_equal(map_block(h, 0, block, BLOCK_LEN), QHCA_CMD_OK);
	make_key(h, INDEX, 0, 0, 4096);
	for (i = 0; i < 3; i++) {
		make_key(h, 64 + i, 0, 0, 64);
		assert_int_equal(map_key(h, 64 + i), QHCA_CMD_OK);
	}
	assert_int_equal(COUNT(h, pool_bank_full), 0);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_NO_RESOURCE);
	assert_int_equal(COUNT(h, pool_bank_full), 1);
	put_le32(&mw->pd, PD);
	set_ctrl(mw, QHCA_PTE_INVALIDATED, QHCA_PTE_MW1, 1, 0, 0);
	assert_int_equal(bind(h, 1, 64), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pool_bank_full), 2);
	assert_int_equal(get_window(h, 2, &out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pool_bank_hits), 0);
	assert_int_equal(COUNT(h, pt_misses), 1);
	assert_int_equal(h->fn->pool.num_keys, 3);
	host_free(h);
}

static void test_reset(void **state)
{
	struct host *h = host_new_ready();
	uint64_t block = host_alloc(h, BLOCK_LEN, 4096);

	(void)state;
	assert_int_equal(map_block(h, 0, block, BLOCK_LEN), QHCA_CMD_OK);
	make_key(h, INDEX, 0, 0, 4096);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_OK);
	assert_int_equal(host_cmd(h, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
	assert_int_equal(h->fn->pool.num_keys, 0);
	assert_int_equal(h->fn->pool.block[0].length, 0);
	assert_null(hca_pool_key(h->fn, INDEX));
	host_free(h);
}

/* A bank without room for keys is a valid configuration. */
static void test_no_keys(void **state)
{
	struct qhca_config cfg;
	struct qhca_init_hca in;
	struct host *h;
	uint64_t out;

	(void)state;
	host_config(&cfg);
	cfg.max_pool_keys = 0;
	h = host_new(&cfg);
	host_enable(h);
	host_init_default(h, &in);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	host_map_table(h, QHCA_TABLE_PT);
	assert_int_equal(map_block(h, 0, host_alloc(h, BLOCK_LEN, 4096),
				   BLOCK_LEN), QHCA_CMD_OK);
	make_key(h, INDEX, 0, 0, 4096);
	assert_int_equal(map_key(h, INDEX), QHCA_CMD_NO_RESOURCE);
	assert_int_equal(get(h, INDEX, &out), HCA_MEM_OK);
	assert_int_equal(COUNT(h, pool_bank_hits), 0);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_blocks),
	cmocka_unit_test(test_permission),
	cmocka_unit_test(test_key_refused),
	cmocka_unit_test(test_pinned),
	cmocka_unit_test(test_bank_full),
	cmocka_unit_test(test_invalidation),
	cmocka_unit_test(test_bind_keeps),
	cmocka_unit_test(test_window),
	cmocka_unit_test(test_window_row),
	cmocka_unit_test(test_window_bank_full),
	cmocka_unit_test(test_reset),
	cmocka_unit_test(test_no_keys),
};

TEST_MAIN(tests)
