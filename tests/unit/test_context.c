// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "qp_setup.h"

/*
 * Whatever software writes over a context in memory, the engine continues or reports that
 * the context is corrupt.
 */
static void test_scribbled_context(void **state)
{
	uint64_t seed = 11, fatal = 0;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct host *h = ready((struct qhca_geometry){ 1, 1 });
		struct qhca_qpc_sw sw = good(h), other = good(h);
		uint64_t addr;
		uint8_t *c;

		assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
		assert_int_equal(create(h, QPN + 1, &other), QHCA_CMD_OK);
		to_rts(h, QPN);
		to_rts(h, QPN + 1);		/* evicts the first */
		assert_true(hca_table_entry(h->fn, QHCA_TABLE_QP, QPN,
					    &addr));
		c = host_ptr(h, addr);
		for (int n = 1 + host_random(&seed) % 8; n; n--)
			c[host_random(&seed) % 1024] = host_random(&seed);
		qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, 1ull << 32 | QPN, 0);
		host_run_at(h, 1000);
		host_run_at(h, 3000000000);
		fatal += hca_is_dead(h->fn);
		host_free(h);
	}
	assert_true(fatal > 20);		/* the check does check */
}

/* A context whose parts are in states that exclude each other is corrupt. */
static void test_impossible_parts(void **state)
{
	static const struct {
		size_t offset;
		uint8_t value;
	} parts[] = {
		{ offsetof(struct hca_qpc_hw, s_state), HCA_NUM_REQ },
		{ offsetof(struct hca_qpc_hw, r_state), HCA_RESP_STOPPED },
		{ offsetof(struct hca_qpc_hw, r_state), HCA_RESP_DROPPING },
		{ offsetof(struct hca_qpc_hw, f_req), HCA_NUM_REQF },
		{ offsetof(struct hca_qpc_hw, f_resp), HCA_RESPF_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct host *h = ready((struct qhca_geometry){ 1, 1 });
		struct qhca_qpc_sw sw = good(h), other = good(h);
		uint64_t addr;

		assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
		assert_int_equal(create(h, QPN + 1, &other), QHCA_CMD_OK);
		to_rts(h, QPN);
		to_rts(h, QPN + 1);		/* evicts the first */
		assert_true(hca_table_entry(h->fn, QHCA_TABLE_QP, QPN, &addr));
		addr += offsetof(struct qhca_qpc, hw) + parts[i].offset;
		*(uint8_t *)host_ptr(h, addr) = parts[i].value;
		assert_null(hca_qp_get(h->fn, QPN));
		host_free(h);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_scribbled_context),
	cmocka_unit_test(test_impossible_parts),
};
TEST_MAIN(tests)
