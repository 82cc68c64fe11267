// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "frames.h"

static void test_csum(void **state)
{
	/* The example is that of RFC 1071, section 3. */
	static const uint8_t rfc[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5,
				       0xf6, 0xf7 };
	uint8_t data[300];
	uint64_t rng = 1;
	unsigned int off, len, cut;
	uint32_t sum;

	(void)state;
	assert_int_equal(hca_csum_fold(hca_csum_add(0, rfc, 8)),
			 (uint16_t)~0xddf2);
	for (off = 0; off < sizeof(data); off++)
		data[off] = (uint8_t)host_random(&rng);
	for (off = 0; off < 9; off++)
		for (len = 0; len < 200; len += off + 1)
			assert_int_equal(hca_csum_fold(hca_csum_add(0,
					 data + off, len)),
					 frame_sum(data + off, len, 0));
	/* The sum is continued at an even offset. */
	for (cut = 0; cut <= 200; cut += 2) {
		sum = hca_csum_add(0, data, cut);
		sum = hca_csum_add(sum, data + cut, 201 - cut);
		assert_int_equal(hca_csum_fold(sum), frame_sum(data, 201, 0));
	}
	memset(data, 0xff, sizeof(data));
	assert_int_equal(hca_csum_fold(hca_csum_add(0, data, 300)), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_csum),
};
TEST_MAIN(tests)
