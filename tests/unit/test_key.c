// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "region.h"

/* ------------------------------------------------------------------------
 * Invalidation
 */
/* After the completion of an INVALIDATE command the device uses no old entry. */
static void test_invalidate(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(START + 4096, 8, 0, false);
	struct qhca_range range = { 0 };
	uint64_t out, other = host_alloc(h, 4096, 4096);
	uint64_t lines;

	(void)state;
	put_le64(host_ptr(h, other + (START & 0xfff)), 0x1111);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(out, 0);
	put_le64(host_ptr(h, r.node + 8), other | QHCA_ATE_PRESENT);
	/* The bytes are in page 0 only, so page 1 stays. */
	put_le64(&range.start, 0);
	put_le64(&range.length, 4096 - (START & 0xfff));
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_RANGE, INDEX, 0,
				  &range, sizeof(range), NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(out, 0);
	lines = COUNT(h, at_invalidations);
	put_le64(&range.length, 4096 - (START & 0xfff) + 1);
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_RANGE, INDEX, 0,
				  &range, sizeof(range), NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(COUNT(h, at_invalidations), lines + 1);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(out, 0x1111);
	/* The key is a freed one. */
	put_le32(&r.pte->ctrl, 0);
	inval(h, INDEX, QHCA_INVAL_PT);
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_PROT);
	host_free(h);
}

static void test_invalidate_args(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_range range = { 0 };

	(void)state;
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_KEY, 5, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_BAD_PARAM);
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_KEY, 5, 4, NULL, 0,
				  NULL, 0), QHCA_CMD_BAD_PARAM);
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_KEY, 1, 1, NULL, 0,
				  NULL, 0), QHCA_CMD_BAD_INDEX);
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_KEY, 1024, 1, NULL, 0,
				  NULL, 0), QHCA_CMD_BAD_INDEX);
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_RANGE, 5, 0, &range,
				  sizeof(range), NULL, 0), QHCA_CMD_BAD_PARAM);
	put_le64(&range.start, UINT64_MAX);
	put_le64(&range.length, 2);
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_RANGE, 5, 0, &range,
				  sizeof(range), NULL, 0), QHCA_CMD_BAD_PARAM);
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_ALL, 0, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_BAD_PARAM);
	assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_ALL, 0, 3, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
	host_free(h);
}

static void test_invalidate_all(void **state)
{
	struct host *h = host_new_ready();
	struct hca_mem_req q = req(START, 8, 0, false);
	uint32_t what;
	uint64_t out;

	(void)state;
	make_region(h);
	for (what = 1; what <= 3; what++) {
		assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
		assert_int_equal(host_cmd(h, QHCA_CMD_INVALIDATE_ALL, 0, what,
					  NULL, 0, NULL, 0), QHCA_CMD_OK);
		assert_int_equal(h->fn->hca->cache.pt.valid,
				 what & QHCA_INVAL_PT ? 0 : 1);
		assert_int_equal(h->fn->hca->cache.at.valid,
				 what & QHCA_INVAL_AT ? 0 : 1);
	}
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Windows
 */
#define MW	30u

static struct qhca_pte *make_window(struct host *h, unsigned int type)
{
	struct qhca_pte *pte = pte_of(h, MW);

	memset(pte, 0, sizeof(*pte));
	put_le32(&pte->pd, PD);
	set_ctrl(pte, QHCA_PTE_INVALIDATED, type, 0x10, 0, 0);
	return pte;
}

static struct qhca_wqe_bind bind_wqe(uint64_t addr, uint64_t length,
				     uint8_t old, uint8_t octet,
				     uint32_t access)
{
	struct qhca_wqe_bind w = { 0 };

	put_le64(&w.addr, addr);
	put_le64(&w.length, length);
	put_le32(&w.mr_lkey, KEY);
	put_le32(&w.mw_rkey, MW << 8 | old);
	put_le32(&w.new_rkey, MW << 8 | octet);
	put_le32(&w.access, access);
	return w;
}

static enum hca_mem_status access_mw(struct host *h, uint8_t octet,
				     uint64_t addr, uint32_t access,
				     uint32_t qpn)
{
	struct hca_mem_req q = req(addr, 16, access, true);
	uint8_t buf[16] = { 0 };

	q.key = MW << 8 | octet;
	q.qpn = qpn;
	return access & QHCA_ACCESS_REMOTE_WRITE ?
	       hca_mem_write(h->fn, &q, buf) : hca_mem_read(h->fn, &q, buf);
}

static void test_bind_mw1(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct qhca_pte *mw = make_window(h, QHCA_PTE_MW1);
	struct qhca_wqe_bind w = bind_wqe(START + 100, 4096, 0x10, 0x11,
					  QHCA_ACCESS_REMOTE_READ);

	(void)state;
	assert_int_equal(access_mw(h, 0x10, START + 100,
				   QHCA_ACCESS_REMOTE_READ, QPN),
			 HCA_MEM_PROT);
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &w), HCA_MEM_OK);
	assert_int_equal(get_le32(&r.pte->windows), 1);
	assert_int_equal(get_le32(&mw->windows), 1);
	assert_int_equal(get_le32(&mw->at_key), INDEX);
	/*
	 * Any QP of the PD may access the window as bound, but not by L_Key, and no more than was
	 * bound.
	 */
	assert_int_equal(access_mw(h, 0x11, START + 100,
				   QHCA_ACCESS_REMOTE_READ, QPN + 1),
			 HCA_MEM_OK);
	assert_int_equal(access_mw(h, 0x10, START + 100,
				   QHCA_ACCESS_REMOTE_READ, QPN),
			 HCA_MEM_PROT);
	assert_int_equal(access_mw(h, 0x11, START + 99,
				   QHCA_ACCESS_REMOTE_READ, QPN),
			 HCA_MEM_PROT);
	assert_int_equal(access_mw(h, 0x11, START + 4196 - 15,
				   QHCA_ACCESS_REMOTE_READ, QPN),
			 HCA_MEM_PROT);
	assert_int_equal(access_mw(h, 0x11, START + 100,
				   QHCA_ACCESS_REMOTE_WRITE, QPN),
			 HCA_MEM_PROT);
	{
		struct hca_mem_req q = req(START + 100, 8, 0, false);

		q.key = MW << 8 | 0x11;
		assert_int_equal(refused(h, q), HCA_PROT_TYPE);
	}
	/* The window is bound again elsewhere, then unbound. */
	w = bind_wqe(START, 64, 0x11, 0x12, QHCA_ACCESS_REMOTE_WRITE);
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &w), HCA_MEM_OK);
	assert_int_equal(get_le32(&r.pte->windows), 1);
	assert_int_equal(access_mw(h, 0x12, START + 10,
				   QHCA_ACCESS_REMOTE_WRITE, QPN),
			 HCA_MEM_OK);
	w = bind_wqe(0, 0, 0x12, 0x13, 0);
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &w), HCA_MEM_OK);
	assert_int_equal(get_le32(&r.pte->windows), 0);
	assert_int_equal(access_mw(h, 0x13, START, QHCA_ACCESS_REMOTE_WRITE,
				   QPN), HCA_MEM_PROT);
	/* A local invalidate does not accept a window of type 1. */
	assert_int_equal(hca_mem_local_inv(h->fn, PD, QPN, MW << 8 | 0x13),
			 HCA_MEM_PROT);
	host_free(h);
}

static void test_bind_mw2b(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct qhca_pte *mw = make_window(h, QHCA_PTE_MW2B);
	/* While the window is unbound it has no key: any octet names it. */
	struct qhca_wqe_bind w = bind_wqe(START + 5000, 4096, 0x55, 0x20,
					  QHCA_ACCESS_REMOTE_WRITE |
					  QHCA_ACCESS_ZERO_BASED);

	(void)state;
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &w), HCA_MEM_OK);
	assert_int_equal(get_le32(&mw->qpn), QPN);
	/* The window is zero-based: address 3 is byte 5003 of the region. */
	*byte_at(h, &r, 5003) = 0xff;
	assert_int_equal(access_mw(h, 0x20, 3, QHCA_ACCESS_REMOTE_WRITE, QPN),
			 HCA_MEM_OK);
	assert_int_equal(*byte_at(h, &r, 5003), 0);
	assert_int_equal(access_mw(h, 0x20, 3, QHCA_ACCESS_REMOTE_WRITE,
				   QPN + 1), HCA_MEM_PROT);
	assert_int_equal(h->fn->mem.reason, HCA_PROT_QPN);
	/* The window must be invalidated before it is bound again. */
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &w), HCA_MEM_PROT);
	/* Only its QP may invalidate it. */
	assert_int_equal(hca_mem_local_inv(h->fn, PD, QPN + 1,
					   MW << 8 | 0x20), HCA_MEM_PROT);
	assert_int_equal(hca_mem_local_inv(h->fn, PD, QPN, MW << 8 | 0x21),
			 HCA_MEM_PROT);
	assert_int_equal(get_le32(&r.pte->windows), 1);
	assert_int_equal(hca_mem_local_inv(h->fn, PD, QPN, MW << 8 | 0x20),
			 HCA_MEM_OK);
	assert_int_equal(get_le32(&r.pte->windows), 0);
	assert_int_equal(get_le32(&mw->windows), 0);
	assert_int_equal(access_mw(h, 0x20, 3, QHCA_ACCESS_REMOTE_WRITE, QPN),
			 HCA_MEM_PROT);
	/* A second invalidation changes nothing. */
	assert_int_equal(hca_mem_local_inv(h->fn, PD, QPN, MW << 8 | 0x20),
			 HCA_MEM_OK);
	assert_int_equal(get_le32(&r.pte->windows), 0);
	host_free(h);
}

static void test_bind_refused(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct qhca_pte *mw = make_window(h, QHCA_PTE_MW2B);
	const struct qhca_wqe_bind good = bind_wqe(START, 64, 0x10, 0x20,
						   QHCA_ACCESS_REMOTE_READ);
	struct qhca_wqe_bind w;
	struct qhca_pte before = *mw;

	(void)state;
#define REFUSED(change) do {						\
	w = good;							\
	change;								\
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &w),		\
			 HCA_MEM_PROT);					\
	assert_memory_equal(mw, &before, sizeof(before));		\
	assert_int_equal(get_le32(&r.pte->windows), 0);			\
} while (0)
	REFUSED(put_le32(&w.new_rkey, (MW + 1) << 8 | 0x20));
	REFUSED(put_le32(&w.mr_lkey, KEY + 1));
	REFUSED(put_le32(&w.mr_lkey, MW << 8 | 0x10));
	REFUSED(put_le32(&w.mr_lkey, QHCA_RESERVED_LKEY));
	REFUSED(put_le32(&w.mw_rkey, KEY));
	REFUSED(put_le64(&w.length, 0));
	REFUSED(put_le64(&w.length, LENGTH + 1));
	REFUSED(put_le64(&w.addr, START - 1));
	REFUSED(put_le64(&w.addr, UINT64_MAX - 3));
	REFUSED(put_le32(&w.access, QHCA_ACCESS_LOCAL_WRITE));
	REFUSED(put_le32(&w.access, 0x80000000));
	assert_int_equal(hca_mem_bind(h->fn, PD + 1, QPN, &good),
			 HCA_MEM_PROT);
	/* The region forbids binding, or writing. */
	put_le32(&r.pte->access, RW & ~QHCA_ACCESS_MW_BIND);
	REFUSED((void)0);
	put_le32(&r.pte->access, RW & ~QHCA_ACCESS_LOCAL_WRITE);
	REFUSED(put_le32(&w.access, QHCA_ACCESS_REMOTE_WRITE));
	REFUSED(put_le32(&w.access, QHCA_ACCESS_REMOTE_ATOMIC));
	/* Type 1 has no zero-based windows. */
	make_window(h, QHCA_PTE_MW1);
	before = *mw;
	REFUSED(put_le32(&w.mw_rkey, MW << 8 | 0x11));
	REFUSED(put_le32(&w.access, QHCA_ACCESS_ZERO_BASED));
	host_free(h);
}

/* When software frees a bound window, the count of its region decreases once. */
static void test_free_window(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct qhca_pte *mw = make_window(h, QHCA_PTE_MW1);
	struct qhca_wqe_bind w = bind_wqe(START, 64, 0x10, 0x11,
					  QHCA_ACCESS_REMOTE_READ);

	(void)state;
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &w), HCA_MEM_OK);
	put_le32(&mw->ctrl, get_le32(&mw->ctrl) & ~QHCA_PTE_STATE);
	assert_int_equal(get_le32(&r.pte->windows), 1);
	inval(h, MW, QHCA_INVAL_PT);
	assert_int_equal(get_le32(&r.pte->windows), 0);
	assert_int_equal(get_le32(&mw->windows), 0);
	inval(h, MW, QHCA_INVAL_PT);
	assert_int_equal(get_le32(&r.pte->windows), 0);
	assert_int_equal(access_mw(h, 0x11, START, QHCA_ACCESS_REMOTE_READ,
				   QPN), HCA_MEM_PROT);
	host_free(h);
}

/* A window on pool memory reaches what the row of its region says, and no more. */
static void test_bind_pool(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct qhca_pool_row row = { 0 };
	struct qhca_wqe_bind w = bind_wqe(START + 64, 64, 0x10, 0x20,
					  QHCA_ACCESS_REMOTE_WRITE);
	uint64_t block = host_alloc(h, 8192, 4096);

	(void)state;
	make_window(h, QHCA_PTE_MW2B);
	put_le64(&row.addr, block);
	put_le64(&row.length, 8192);
	assert_int_equal(host_cmd(h, QHCA_CMD_MAP_POOL_BLOCK, 0, 0, &row,
				  sizeof(row), NULL, 0), QHCA_CMD_OK);
	put_le64(&r.pte->at_base, 4096);
	put_le64(&r.pte->at_offset, 0);
	put_le64(&r.pte->length, 8192);
	set_ctrl(r.pte, QHCA_PTE_VALID, QHCA_PTE_POOL, OCTET, 0, 0);
	memset(host_ptr(h, block + 4096 + 64), 0xff, 32);
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &w), HCA_MEM_OK);
	assert_int_equal(access_mw(h, 0x20, START + 64,
				   QHCA_ACCESS_REMOTE_WRITE, QPN),
			 HCA_MEM_OK);
	assert_int_equal(*(uint8_t *)host_ptr(h, block + 4096 + 64), 0);
	assert_int_equal(*(uint8_t *)host_ptr(h, block + 4096 + 80), 0xff);
	/* The access is beyond the block though inside the region. */
	assert_int_equal(hca_mem_local_inv(h->fn, PD, QPN, MW << 8 | 0x20),
			 HCA_MEM_OK);
	w = bind_wqe(START + 4096 - 32, 64, 0x20, 0x21,
		     QHCA_ACCESS_REMOTE_WRITE);
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &w), HCA_MEM_PROT);
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Fast registration
 */
#define FR	40u

struct fast {
	struct qhca_pte *pte;
	uint64_t node, list;
	uint64_t leaf[2];
};

/* Room for @pages leaf entries in one or two levels. */
static struct fast make_fast(struct host *h, unsigned int levels,
			     uint32_t pages)
{
	struct fast f = { .pte = pte_of(h, FR) };
	unsigned int i;

	f.leaf[0] = host_alloc(h, 4096, 64);
	f.leaf[1] = host_alloc(h, 4096, 64);
	f.node = f.leaf[0];
	f.list = host_alloc(h, HCA_FAST_REG_MAX_PAGES * 8, 64);
	if (levels == 2) {
		f.node = host_alloc(h, 64, 64);
		for (i = 0; i < 2; i++)
			put_le64(host_ptr(h, f.node + i * 8),
				 f.leaf[i] | QHCA_ATE_PRESENT);
	}
	memset(f.pte, 0, sizeof(*f.pte));
	put_le32(&f.pte->pd, PD);
	put_le32(&f.pte->at_key, FR);
	put_le64(&f.pte->at_base, f.node);
	put_le32(&f.pte->pool_block, pages);
	set_ctrl(f.pte, QHCA_PTE_INVALIDATED, QHCA_PTE_FAST_REG, 1, 12, levels);
	put_le32(&f.pte->ctrl, get_le32(&f.pte->ctrl) | QHCA_PTE_REMOTE_INV);
	return f;
}

static struct qhca_wqe_reg reg_wqe(const struct fast *f, uint64_t iova,
				   uint64_t length, uint32_t pages,
				   uint8_t octet)
{
	struct qhca_wqe_reg w = { .page_shift = 12 };

	put_le64(&w.iova, iova);
	put_le64(&w.length, length);
	put_le64(&w.pages, f->list);
	put_le32(&w.key, FR << 8 | octet);
	put_le32(&w.access, QHCA_ACCESS_LOCAL_WRITE |
		 QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_MW_BIND);
	put_le32(&w.num_pages, pages);
	return w;
}

static enum hca_mem_status write_fr(struct host *h, uint8_t octet,
				    uint64_t addr, uint64_t value)
{
	struct hca_mem_req q = req(addr, 8, QHCA_ACCESS_REMOTE_WRITE, true);
	uint8_t raw[8];

	q.key = FR << 8 | octet;
	put_le64(raw, value);
	return hca_mem_write(h->fn, &q, raw);
}

static void test_fast_reg(void **state)
{
	struct host *h = host_new_ready();
	struct fast f = make_fast(h, 1, 4);
	uint64_t page[3];
	struct qhca_wqe_reg w;
	unsigned int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		page[i] = host_alloc(h, 4096, 4096);
		put_le64(host_ptr(h, f.list + i * 8), page[i]);
	}
	w = reg_wqe(&f, 0x9100, 8192, 3, 2);
	assert_int_equal(hca_mem_reg(h->fn, PD, false, &w),
			 HCA_MEM_PROT);
	assert_int_equal(hca_mem_reg(h->fn, PD, true, &w), HCA_MEM_OK);
	assert_int_equal(write_fr(h, 2, 0x9100, 0x1), HCA_MEM_OK);
	assert_int_equal(get_le64(host_ptr(h, page[0] + 0x100)), 1);
	assert_int_equal(write_fr(h, 2, 0xb0f8, 0x2), HCA_MEM_OK);
	assert_int_equal(get_le64(host_ptr(h, page[2] + 0xf8)), 2);
	assert_int_equal(write_fr(h, 2, 0xb0f9, 0x2), HCA_MEM_PROT);
	/* Software may use the list again at once. */
	put_le64(host_ptr(h, f.list), 0);
	inval(h, FR, QHCA_INVAL_AT);
	assert_int_equal(write_fr(h, 2, 0x9100, 0x3), HCA_MEM_OK);
	/* While valid it cannot be registered anew. */
	assert_int_equal(hca_mem_reg(h->fn, PD, true, &w),
			 HCA_MEM_PROT);
	assert_int_equal(hca_mem_local_inv(h->fn, PD, QPN, FR << 8 | 2),
			 HCA_MEM_OK);
	assert_int_equal(write_fr(h, 2, 0x9100, 0x3), HCA_MEM_PROT);

	/* With other pages and another octet nothing of the old ones is left. */
	put_le64(host_ptr(h, f.list), page[2]);
	w = reg_wqe(&f, 0x9000, 4096, 1, 3);
	assert_int_equal(hca_mem_reg(h->fn, PD, true, &w), HCA_MEM_OK);
	assert_int_equal(write_fr(h, 2, 0x9000, 0x4), HCA_MEM_PROT);
	assert_int_equal(write_fr(h, 3, 0x9000, 0x4), HCA_MEM_OK);
	assert_int_equal(get_le64(host_ptr(h, page[2])), 4);
	assert_int_equal(get_le64(host_ptr(h, page[0])), 0);
	host_free(h);
}

static void test_fast_reg_levels(void **state)
{
	struct host *h = host_new_ready();
	struct fast f = make_fast(h, 2, 600);
	uint64_t page = host_alloc(h, 4096, 4096);
	struct qhca_wqe_reg w = reg_wqe(&f, 0, 600 * 4096, 600, 2);
	unsigned int i;

	(void)state;
	for (i = 0; i < 600; i++)
		put_le64(host_ptr(h, f.list + i * 8), 0x100000000ull + i * 4096);
	put_le64(host_ptr(h, f.list + 599 * 8), page);
	assert_int_equal(hca_mem_reg(h->fn, PD, true, &w), HCA_MEM_OK);
	assert_int_equal(write_fr(h, 2, 599 * 4096 + 16, 0x7), HCA_MEM_OK);
	assert_int_equal(get_le64(host_ptr(h, page + 16)), 7);
	for (i = 0; i < 599; i++)
		assert_int_equal(get_le64(host_ptr(h, f.leaf[i / 512] +
						   i % 512 * 8)) &
				 QHCA_ATE_ADDR, 0x100000000ull + i * 4096);
	/* The device wrote nothing beyond the last entry. */
	assert_int_equal(get_le64(host_ptr(h, f.leaf[1] + 88 * 8)), 0);
	host_free(h);
}

static void test_fast_reg_refused(void **state)
{
	struct host *h = host_new_ready();
	struct fast f = make_fast(h, 1, 4);
	const struct qhca_wqe_reg good = reg_wqe(&f, 0x9100, 4096, 2, 2);
	struct qhca_pte before = *f.pte;
	struct qhca_wqe_reg w;

	(void)state;
#undef REFUSED
#define REFUSED(change) do {						\
	w = good;							\
	change;								\
	assert_int_equal(hca_mem_reg(h->fn, PD, true, &w),		\
			 HCA_MEM_PROT);					\
	assert_memory_equal(f.pte, &before, sizeof(before));		\
} while (0)
	REFUSED(put_le32(&w.num_pages, 0));
	REFUSED(put_le32(&w.num_pages, 5));
	REFUSED(put_le32(&w.num_pages, UINT32_MAX));
	REFUSED(put_le64(&w.length, 8192 - 0x100 + 1));
	REFUSED(put_le64(&w.length, UINT64_MAX));
	REFUSED(w.page_shift = 11);
	REFUSED(w.page_shift = 40);
	REFUSED(w.page_shift = 255);
	REFUSED(put_le32(&w.access, 0x40));
	REFUSED(put_le32(&w.key, KEY));
	REFUSED(put_le32(&w.key, 0x100));
	assert_int_equal(hca_mem_reg(h->fn, PD + 1, true, &good),
			 HCA_MEM_PROT);
	/* The request has more pages than one node can hold, whatever the entry promises. */
	put_le32(&f.pte->pool_block, 4096);
	before = *f.pte;
	REFUSED(put_le32(&w.num_pages, 513));
	/* The entry has zero levels, or a key that would invalidate another's lines. */
	set_ctrl(f.pte, QHCA_PTE_INVALIDATED, QHCA_PTE_FAST_REG, 1, 12, 0);
	before = *f.pte;
	REFUSED((void)0);
	set_ctrl(f.pte, QHCA_PTE_INVALIDATED, QHCA_PTE_FAST_REG, 1, 12, 1);
	put_le32(&f.pte->at_key, INDEX);
	before = *f.pte;
	REFUSED((void)0);
	host_free(h);
}

static void test_remote_inv(void **state)
{
	struct host *h = host_new_ready();
	struct fast f = make_fast(h, 1, 4);
	struct qhca_wqe_reg w = reg_wqe(&f, 0, 4096, 1, 2);
	struct qhca_wqe_bind b = bind_wqe(0, 64, 0x10, 0x20,
					  QHCA_ACCESS_REMOTE_WRITE);

	(void)state;
	put_le64(host_ptr(h, f.list), host_alloc(h, 4096, 4096));
	assert_int_equal(hca_mem_reg(h->fn, PD, true, &w), HCA_MEM_OK);
	/* A window that is bound to it keeps the region. */
	make_window(h, QHCA_PTE_MW2B);
	put_le32(&b.mr_lkey, FR << 8 | 2);
	assert_int_equal(hca_mem_bind(h->fn, PD, QPN, &b), HCA_MEM_OK);
	assert_int_equal(hca_mem_remote_inv(h->fn, PD, QPN, FR << 8 | 2),
			 HCA_MEM_PROT);
	assert_int_equal(h->fn->mem.reason, HCA_PROT_WINDOWS);
	/* The window was not made for remote invalidation. */
	assert_int_equal(hca_mem_remote_inv(h->fn, PD, QPN, MW << 8 | 0x20),
			 HCA_MEM_PROT);
	assert_int_equal(hca_mem_local_inv(h->fn, PD, QPN, MW << 8 | 0x20),
			 HCA_MEM_OK);
	assert_int_equal(hca_mem_remote_inv(h->fn, PD + 1, QPN, FR << 8 | 2),
			 HCA_MEM_PROT);
	assert_int_equal(hca_mem_remote_inv(h->fn, PD, QPN, FR << 8 | 3),
			 HCA_MEM_PROT);
	assert_int_equal(write_fr(h, 2, 0, 1), HCA_MEM_OK);
	assert_int_equal(hca_mem_remote_inv(h->fn, PD, QPN, FR << 8 | 2),
			 HCA_MEM_OK);
	assert_int_equal(write_fr(h, 2, 0, 1), HCA_MEM_PROT);
	/* Nobody may invalidate a plain region. */
	make_region(h);
	assert_int_equal(hca_mem_local_inv(h->fn, PD, QPN, KEY),
			 HCA_MEM_PROT);
	host_free(h);
}

/* Each DMA of each work request on keys fails in turn: no crash, no success. */
static void test_dma_fails(void **state)
{
	unsigned int n, done = 0;

	(void)state;
	for (n = 1; n < 40 && done != 3; n++) {
		struct host *h = host_new_ready();
		struct fast f = make_fast(h, 2, 600);
		struct qhca_wqe_reg w = reg_wqe(&f, 0, 600 * 4096, 600, 2);
		struct qhca_wqe_bind b = bind_wqe(START, 64, 0x10, 0x11,
						  QHCA_ACCESS_REMOTE_READ);

		make_region(h);
		make_window(h, QHCA_PTE_MW1);
		done = 0;
		h->fail_in = n;
		done += hca_mem_reg(h->fn, PD, true, &w) == HCA_MEM_OK;
		done += hca_mem_bind(h->fn, PD, QPN, &b) == HCA_MEM_OK;
		done += hca_mem_local_inv(h->fn, PD, QPN, FR << 8 | 2) ==
			HCA_MEM_OK;
		assert_true(done == 3 || h->fail_in == 0);
		assert_true(done < 3 || h->fail_in > 0);
		host_free(h);
	}
	assert_int_equal(done, 3);
}

/* ------------------------------------------------------------------------
 * Invalidation of large caches, a slice in each call
 */
#define LARGE_SETS	4096u
#define LARGE_LINES	(4 * LARGE_SETS)

/* Lines that a call may look at; the engine's own constant proves nothing. */
#define MOST_LINES	4096u

/* Translation lines of two keys, half of the cache each. */
static struct host *large_cache(void)
{
	struct host *h = host_new_cache(QHCA_CACHE_AT, LARGE_SETS, 4);
	const struct hca_cache_user *user = &h->fn->cache[QHCA_CACHE_AT];
	struct hca_cache *at = &h->fn->hca->cache.at;

	for (uint32_t i = 0; i < LARGE_LINES; i++) {
		struct hca_tag tag = { .index = 5 + i % 2 * 2, .page = i };

		assert_non_null(hca_cache_install(at, user, tag,
						  hca_cache_fill_begin(at)));
	}
	return h;
}

static struct qhca_cmd_slot *ring_slot(struct host *h, uint16_t opcode,
				       uint32_t param)
{
	struct qhca_cmd_slot *slot = host_ptr(h, h->slots);

	memset(slot, 0, 2 * sizeof(*slot));
	put_le16(&slot[0].opcode, opcode);
	put_le32(&slot[0].index, 5);
	put_le32(&slot[0].param, param);
	put_le32(&slot[0].status, QHCA_CMD_OWN);
	put_le32(&slot[1].status, QHCA_CMD_OWN);	/* NOP */
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 3, h->now);
	return slot;
}

/*
 * Returns the number of calls that the command takes; none may drop more lines
 * than it may look at.
 */
static unsigned int slices(struct host *h, const struct qhca_cmd_slot *slot)
{
	const struct hca_caches *cache = &h->fn->hca->cache;
	unsigned int n = 0;

	while (get_le32(&slot->status) & QHCA_CMD_OWN) {
		uint32_t before = cache->at.valid + cache->pt.valid;

		assert_true(get_le32(&slot[1].status) & QHCA_CMD_OWN);
		assert_true(qhca_run(h->hca, h->now, 1).more);
		assert_true(before - cache->at.valid - cache->pt.valid <=
			    MOST_LINES);
		n++;
		assert_true(n < 100);
	}
	assert_int_equal(get_le32(&slot->status), QHCA_CMD_OK);
	host_run(h);
	assert_int_equal(get_le32(&slot[1].status), QHCA_CMD_OK);
	return n;
}

static void test_invalidate_slices(void **state)
{
	struct host *h = large_cache();
	struct qhca_cmd_slot *slot;

	(void)state;
	slot = ring_slot(h, QHCA_CMD_INVALIDATE_KEY, QHCA_INVAL_AT);
	assert_true(slices(h, slot) >= LARGE_LINES / MOST_LINES);
	assert_int_equal(h->fn->hca->cache.at.valid, LARGE_LINES / 2);
	assert_int_equal(COUNT(h, at_invalidations), LARGE_LINES / 2);
	slot = ring_slot(h, QHCA_CMD_INVALIDATE_ALL,
			 QHCA_INVAL_AT | QHCA_INVAL_PT);
	assert_true(slices(h, slot) >= LARGE_LINES / MOST_LINES);
	assert_int_equal(h->fn->hca->cache.at.valid, 0);
	host_free(h);
}

/* A line of another key that is filled between two slices stays. */
static void test_fill_between_slices(void **state)
{
	struct host *h = large_cache();
	const struct hca_cache_user *user = &h->fn->cache[QHCA_CACHE_AT];
	struct hca_cache *at = &h->fn->hca->cache.at;
	struct hca_tag tag = { .index = 9, .page = 1 };
	struct qhca_cmd_slot *slot;
	uint64_t begun = hca_cache_fill_begin(at);

	(void)state;
	slot = ring_slot(h, QHCA_CMD_INVALIDATE_KEY, QHCA_INVAL_AT);
	qhca_run(h->hca, h->now, 1);
	assert_true(get_le32(&slot->status) & QHCA_CMD_OWN);
	assert_non_null(hca_cache_install(at, user, tag, begun));
	/* The cache refuses a fill of the dead key that began before. */
	tag.index = 5;
	tag.page = 0;
	assert_null(hca_cache_install(at, user, tag, begun));
	slices(h, slot);
	assert_null(hca_cache_peek(at, tag));
	tag.index = 9;
	tag.page = 1;
	assert_non_null(hca_cache_peek(at, tag));
	host_free(h);
}

/* What ends a command in the middle: reset and a fatal error. */
static void test_slices_cut(void **state)
{
	struct qhca_cmd_slot *slot;
	struct host *h;

	(void)state;
	h = large_cache();
	slot = ring_slot(h, QHCA_CMD_INVALIDATE_KEY, QHCA_INVAL_AT);
	qhca_run(h->hca, h->now, 1);
	qhca_reset(h->hca, 0, h->now);
	assert_false(qhca_run(h->hca, h->now, 100).more);
	assert_true(get_le32(&slot->status) & QHCA_CMD_OWN);
	host_free(h);

	h = large_cache();
	slot = ring_slot(h, QHCA_CMD_INVALIDATE_KEY, QHCA_INVAL_AT);
	qhca_run(h->hca, h->now, 1);
	qhca_inject_fatal(h->hca, 0);
	assert_false(qhca_run(h->hca, h->now, 100).more);
	assert_true(get_le32(&slot->status) & QHCA_CMD_OWN);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_invalidate_slices),
	cmocka_unit_test(test_fill_between_slices),
	cmocka_unit_test(test_slices_cut),
	cmocka_unit_test(test_invalidate),
	cmocka_unit_test(test_invalidate_args),
	cmocka_unit_test(test_invalidate_all),
	cmocka_unit_test(test_bind_mw1),
	cmocka_unit_test(test_bind_mw2b),
	cmocka_unit_test(test_bind_refused),
	cmocka_unit_test(test_free_window),
	cmocka_unit_test(test_bind_pool),
	cmocka_unit_test(test_fast_reg),
	cmocka_unit_test(test_fast_reg_levels),
	cmocka_unit_test(test_fast_reg_refused),
	cmocka_unit_test(test_remote_inv),
	cmocka_unit_test(test_dma_fails),
};
TEST_MAIN(tests)
