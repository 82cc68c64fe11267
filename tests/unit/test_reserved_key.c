// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "region.h"

/* Seed 001: the reserved L_Key, and the null one. */

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

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_reserved),
	cmocka_unit_test(test_null_lkey),
	cmocka_unit_test(test_reserved_strict),
};
TEST_MAIN(tests)
