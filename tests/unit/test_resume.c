// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

/* The device refuses tokens that name no fault, whatever their value. */
static void test_no_such_token(void **state)
{
	static const uint32_t tokens[] = {
		0, 1, 2, 0x00800002, 0x01000002, 0x017fffff, 0xffffffff,
	};
	struct host *h = host_new_ready();
	unsigned int i;

	(void)state;
	for (i = 0; i < sizeof(tokens) / sizeof(tokens[0]); i++) {
		assert_int_equal(host_cmd(h, QHCA_CMD_FAULT_RESUME, tokens[i],
					  QHCA_RESUME_OK, NULL, 0, NULL, 0),
				 QHCA_CMD_BAD_INDEX);
		assert_int_equal(host_cmd(h, QHCA_CMD_FAULT_RESUME, tokens[i],
					  2, NULL, 0, NULL, 0),
				 QHCA_CMD_BAD_PARAM);
	}
	assert_int_equal(qhca_counter(h->hca, 0, QHCA_CNT_fault_resumes), 0);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_no_such_token),
};
TEST_MAIN(tests)
