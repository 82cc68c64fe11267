// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "region.h"

/* All fields are encoded and decoded at their places. */
static void test_codec(void **state)
{
	struct qhca_pte raw, again;
	struct hca_pte_host pte;
	uint64_t rng = 5;
	unsigned int i, k;

	(void)state;
	for (i = 0; i < 1000; i++) {
		uint8_t *p = (uint8_t *)&raw;

		for (k = 0; k < sizeof(raw); k++)
			p[k] = (uint8_t)host_random(&rng);
		put_le32(&raw.ctrl, get_le32(&raw.ctrl) & 0x3f3fffff);
		put_le32(&raw.gvmi, get_le32(&raw.gvmi) & 0xffff);
		hca_pte_decode(&raw, &pte);
		hca_pte_encode(&pte, &again);
		assert_memory_equal(&raw, &again, sizeof(raw));
	}
	memset(&raw, 0, sizeof(raw));
	put_le32(&raw.ctrl, QHCA_PTE_REMOTE_INV | 3 << 24 | 21 << 16 |
		 0xab << 8 | 4 << 4 | 2);
	hca_pte_decode(&raw, &pte);
	assert_int_equal(pte.state, QHCA_PTE_INVALIDATED);
	assert_int_equal(pte.type, QHCA_PTE_MW2B);
	assert_int_equal(pte.octet, 0xab);
	assert_int_equal(pte.page_shift, 21);
	assert_int_equal(pte.levels, 3);
	assert_false(pte.odp);
	assert_true(pte.remote_inv);
}

/* Types whose feature the function does not have never match. */
static void test_type_features(void **state)
{
	static const struct { uint64_t feature; unsigned int type; } cases[] = {
		{ QHCA_FEAT_FAST_REG, QHCA_PTE_FAST_REG },
		{ QHCA_FEAT_MW1, QHCA_PTE_MW1 },
		{ QHCA_FEAT_MW2B, QHCA_PTE_MW2B },
		{ QHCA_FEAT_POOL, QHCA_PTE_POOL },
	};
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_pte_host pte;
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set_ctrl(r.pte, QHCA_PTE_VALID, cases[i].type, OCTET, 12, 1);
		hca_pte_decode(r.pte, &pte);
		assert_true(hca_pte_well_formed(h->fn, &pte));
		h->fn->features &= ~cases[i].feature;
		assert_false(hca_pte_well_formed(h->fn, &pte));
	}
	set_ctrl(r.pte, QHCA_PTE_VALID, QHCA_PTE_DEVMEM, OCTET, 12, 1);
	hca_pte_decode(r.pte, &pte);
	assert_false(hca_pte_well_formed(h->fn, &pte));		/* no BAR 4 */
	host_free(h);
}

/* The device refuses malformed entries, and does not cache them. */
static void test_malformed(void **state)
{
	static const struct {
		size_t offset;
		uint64_t value;
		bool wide;
	} cases[] = {
		{ offsetof(struct qhca_pte, gvmi), 1, false },
		{ offsetof(struct qhca_pte, gvmi), 0x10000, false },
		{ offsetof(struct qhca_pte, access), 0x40, false },
		{ offsetof(struct qhca_pte, access), 0x80000000, false },
		{ offsetof(struct qhca_pte, length), UINT64_MAX, true },
		{ offsetof(struct qhca_pte, at_offset), UINT64_MAX - 8, true },
		{ offsetof(struct qhca_pte, at_base), 0x1020, true },
	};
	static const uint32_t ctrl[] = {
		QHCA_PUT(QHCA_PTE_STATE, 3u), QHCA_PUT(QHCA_PTE_STATE, 15u),
		QHCA_PUT(QHCA_PTE_TYPE, 8u), QHCA_PUT(QHCA_PTE_TYPE, 15u),
		QHCA_PUT(QHCA_PTE_LEVELS, 6u), QHCA_PUT(QHCA_PTE_PAGE_SHIFT, 11u),
		QHCA_PUT(QHCA_PTE_PAGE_SHIFT, 63u),
	};
	static const uint32_t mask[] = {
		QHCA_PTE_STATE, QHCA_PTE_STATE, QHCA_PTE_TYPE, QHCA_PTE_TYPE,
		QHCA_PTE_LEVELS, QHCA_PTE_PAGE_SHIFT, QHCA_PTE_PAGE_SHIFT,
	};
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct qhca_pte good = *r.pte;
	struct hca_mem_req q = req(START, 8, 0, false);
	uint8_t out[8];
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		*r.pte = good;
		if (cases[i].wide)
			put_le64((uint8_t *)r.pte + cases[i].offset,
				 cases[i].value);
		else
			put_le32((uint8_t *)r.pte + cases[i].offset,
				 (uint32_t)cases[i].value);
		assert_int_equal(refused(h, q), HCA_PROT_PTE);
	}
	for (i = 0; i < sizeof(ctrl) / sizeof(ctrl[0]); i++) {
		*r.pte = good;
		put_le32(&r.pte->ctrl,
			 (get_le32(&good.ctrl) & ~mask[i]) | ctrl[i]);
		assert_int_equal(refused(h, q), HCA_PROT_PTE);
	}
	/* Only regions and windows on them may be ODP, and only with the feature. */
	*r.pte = good;
	put_le32(&r.pte->ctrl, get_le32(&good.ctrl) | QHCA_PTE_ODP);
	h->fn->features &= ~QHCA_FEAT_ODP;
	assert_int_equal(refused(h, q), HCA_PROT_PTE);
	h->fn->features |= QHCA_FEAT_ODP;
	put_le32(&r.pte->ctrl, (get_le32(&good.ctrl) & ~QHCA_PTE_TYPE) |
		 QHCA_PUT(QHCA_PTE_TYPE, (uint32_t)QHCA_PTE_POOL) |
		 QHCA_PTE_ODP);
	assert_int_equal(refused(h, q), HCA_PROT_PTE);
	put_le32(&r.pte->ctrl, (get_le32(&good.ctrl) & ~QHCA_PTE_TYPE) |
		 QHCA_PUT(QHCA_PTE_TYPE, (uint32_t)QHCA_PTE_FAST_REG) |
		 QHCA_PTE_ODP);
	assert_int_equal(refused(h, q), HCA_PROT_PTE);
	/* Only windows refer to a row of the bank, and have no pages then. */
	put_le32(&r.pte->ctrl, get_le32(&good.ctrl) | QHCA_PTE_POOLED);
	assert_int_equal(refused(h, q), HCA_PROT_PTE);
	put_le32(&r.pte->ctrl, (get_le32(&good.ctrl) & ~QHCA_PTE_TYPE) |
		 QHCA_PUT(QHCA_PTE_TYPE, (uint32_t)QHCA_PTE_MW1) |
		 QHCA_PTE_POOLED);
	assert_int_equal(refused(h, q), HCA_PROT_PTE);
	put_le32(&r.pte->ctrl, (get_le32(&r.pte->ctrl) & ~QHCA_PTE_LEVELS) |
		 QHCA_PTE_ODP);
	assert_int_equal(refused(h, q), HCA_PROT_PTE);
	*r.pte = good;
	assert_int_equal(hca_mem_read(h->fn, &q, out), HCA_MEM_OK);
	host_free(h);
}

/* The device writes ctrl last, and drops the cached line. */
static void test_write(void **state)
{
	struct host *h = host_new_ready();
	struct region r = make_region(h);
	struct hca_mem_req q = req(START, 8, 0, false);
	struct hca_pte_host pte;
	uint32_t ctrl = get_le32(&r.pte->ctrl);
	uint64_t out;

	(void)state;
	assert_int_equal(hca_mem_read(h->fn, &q, &out), HCA_MEM_OK);
	assert_int_equal(hca_pte_read(h->fn, KEY, &pte), HCA_MEM_OK);
	pte.octet++;
	pte.pd = 99;
	h->fail_in = 2;
	assert_int_equal(hca_pte_write(h->fn, KEY, &pte), HCA_MEM_DMA);
	assert_int_equal(get_le32(&r.pte->pd), 99);
	assert_int_equal(get_le32(&r.pte->ctrl), ctrl);
	assert_int_equal(h->fn->hca->cache.pt.valid, 0);
	assert_int_equal(hca_pte_write(h->fn, KEY, &pte), HCA_MEM_OK);
	assert_int_equal(get_le32(&r.pte->ctrl), ctrl + 0x100);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_codec),
	cmocka_unit_test(test_type_features),
	cmocka_unit_test(test_malformed),
	cmocka_unit_test(test_write),
};
TEST_MAIN(tests)
