// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

#include "transport/transport.h"

/* PSNs begin anew after 2^24: the newest request of a PSN is the one that comes again. */
static void test_newest_of_a_psn(void **state)
{
	static struct hca_qp qp;
	struct hca_pkt pkt = { .psn = 7 };

	(void)state;
	for (uint64_t value = 1; value <= 3; value++) {
		struct hca_resource *r = hca_resource_new(&qp, HCA_RES_ATOMIC,
							  &pkt);

		r->value = value;
		hca_resource_settle(&qp, r);
		assert_int_equal(hca_resource_find(&qp, HCA_RES_ATOMIC,
						   &pkt)->value, value);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_newest_of_a_psn),
};

TEST_MAIN(tests)
