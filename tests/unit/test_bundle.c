// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "sending.h"
#include "wire/bundle.h"

#define RC(op)	(HCA_SVC_RC | HCA_OP_##op)
#define UC(op)	(HCA_SVC_UC | HCA_OP_##op)
#define XRC(op)	(HCA_SVC_XRC | HCA_OP_##op)

static void test_joined_opcodes(void **state)
{
	static const struct {
		uint8_t first, next, both;
	} may[] = {
		{ RC(SEND_FIRST), RC(SEND_MIDDLE), RC(SEND_FIRST) },
		{ RC(SEND_FIRST), RC(SEND_LAST), RC(SEND_ONLY) },
		{ RC(SEND_MIDDLE), RC(SEND_MIDDLE), RC(SEND_MIDDLE) },
		{ RC(SEND_MIDDLE), RC(SEND_LAST), RC(SEND_LAST) },
		{ UC(WRITE_FIRST), UC(WRITE_MIDDLE), UC(WRITE_FIRST) },
		{ UC(WRITE_FIRST), UC(WRITE_LAST), UC(WRITE_ONLY) },
		{ XRC(WRITE_MIDDLE), XRC(WRITE_LAST), XRC(WRITE_LAST) },
		{ RC(READ_RESP_FIRST), RC(READ_RESP_MIDDLE), RC(READ_RESP_FIRST) },
		{ RC(READ_RESP_FIRST), RC(READ_RESP_LAST), RC(READ_RESP_ONLY) },
		{ RC(READ_RESP_MIDDLE), RC(READ_RESP_MIDDLE),
		  RC(READ_RESP_MIDDLE) },
	};
	unsigned int num = 0, i, first, next;
	uint8_t both;

	(void)state;
	for (i = 0; i < sizeof(may) / sizeof(may[0]); i++) {
		both = 0xff;
		assert_true(hca_bundle_joins(may[i].first,
					     hca_pkt_header_len(may[i].first),
					     may[i].next, &both));
		assert_int_equal(both, may[i].both);
	}
	/* Of all pairs: three services; a READ response behind others has no room for AETH. */
	for (first = 0; first < 256; first++)
		for (next = 0; next < 256; next++)
			num += hca_pkt_what((uint8_t)first) &&
			       hca_pkt_what((uint8_t)next) &&
			       hca_bundle_joins((uint8_t)first,
						hca_pkt_header_len((uint8_t)first),
						(uint8_t)next, &both);
	assert_int_equal(num, 2 * (4 + 4 + 3) + 4 + 4);
	assert_false(hca_bundle_joins(RC(READ_RESP_MIDDLE),
				      hca_pkt_header_len(RC(READ_RESP_LAST)) - 1,
				      RC(READ_RESP_LAST), &both));
	assert_true(hca_bundle_joins(RC(READ_RESP_MIDDLE),
				     hca_pkt_header_len(RC(READ_RESP_LAST)),
				     RC(READ_RESP_LAST), &both));
	assert_int_equal(both, RC(READ_RESP_LAST));
	assert_int_equal(hca_bundle_to_end(RC(READ_RESP_MIDDLE)), RC(READ_RESP_LAST));
	assert_int_equal(hca_bundle_to_end(XRC(SEND_FIRST)), XRC(SEND_ONLY));
}

static void test_codes(void **state)
{
	(void)state;
	for (uint32_t mtu = 256, code = 1; mtu <= 4096; mtu *= 2, code++)
		assert_int_equal(hca_bundle_code(mtu), code);
}

/* What no device sends is malformed. */
static void test_no_bundle(void **state)
{
	struct hca_pkt good = {
		.opcode = RC(WRITE_ONLY), .op = HCA_OP_WRITE_ONLY,
		.service = HCA_SVC_RC, .what = hca_pkt_what(RC(WRITE_ONLY)),
		.payload_len = 4096, .bundle = 3,
	}, pkt;

	(void)state;
	assert_int_equal(hca_bundle_packets(&good), 4);
#define NONE(change) do {						\
	pkt = good;							\
	change;								\
	pkt.what = hca_pkt_what(pkt.opcode);				\
	assert_int_equal(hca_bundle_packets(&pkt), 0);			\
} while (0)
	NONE(pkt.bundle = 0);
	NONE(pkt.bundle = 6);
	NONE(pkt.bundle = 0x7f);
	NONE(pkt.payload_len = 1024);
	NONE(pkt.payload_len = 0);
	NONE((pkt.opcode = RC(WRITE_FIRST), pkt.payload_len = 4095));
	NONE((pkt.opcode = RC(WRITE_FIRST), pkt.pad = 4));
	NONE(pkt.payload_len = 33 * 1024);
	NONE(pkt.opcode = RC(WRITE_ONLY_IMM));
	NONE(pkt.opcode = RC(ATOMIC_WRITE));
	NONE((pkt.opcode = HCA_SVC_UD | HCA_OP_SEND_ONLY,
	      pkt.service = HCA_SVC_UD));
#undef NONE
	good.payload_len = 4097;
	assert_int_equal(hca_bundle_packets(&good), 5);
}

/* The version tells, and whoever does not know it drops the frame. */
static void test_version(void **state)
{
	struct hca_pkt pkt = {
		.opcode = RC(WRITE_MIDDLE), .payload_len = 2048, .psn = 7,
		.bundle = 3,
	}, got;
	uint8_t frame[12 + 2048 + 4] = { 0 };

	(void)state;
	hca_pkt_build(&pkt, frame);
	hca_pkt_change(frame, &pkt);
	assert_int_equal(frame[1] & 0x0f, 1);
	assert_true(hca_pkt_parse(frame, sizeof(frame), &got));
	assert_int_equal(got.bundle, 3);
	assert_int_equal(hca_bundle_packets(&got), 2);
	frame[8] &= 0x80;
	assert_false(hca_pkt_parse(frame, sizeof(frame), &got));
	frame[8] |= 3;
	frame[1]++;
	assert_false(hca_pkt_parse(frame, sizeof(frame), &got));
	/* A packet's reserved bits mean nothing. */
	frame[1] &= 0xf0;
	assert_true(hca_pkt_parse(frame, sizeof(frame), &got));
	assert_int_equal(got.bundle, 0);
}

static void test_places(void **state)
{
	static const uint8_t opcode[] = {
		RC(READ_RESP_FIRST), RC(READ_RESP_MIDDLE), RC(READ_RESP_LAST),
	};
	uint8_t payload[700];
	struct hca_pkt b = {
		.opcode = RC(READ_RESP_ONLY), .op = HCA_OP_READ_RESP_ONLY,
		.what = hca_pkt_what(RC(READ_RESP_ONLY)), .psn = 0xffffff,
		.ack_req = true, .solicited = true, .msn = 9, .bundle = 1,
		.payload = payload, .payload_len = 697, .pad = 3,
	}, pkt;

	(void)state;
	assert_int_equal(hca_bundle_packets(&b), 3);
	for (unsigned int i = 0; i < 3; i++) {
		hca_bundle_packet(&b, i, 3, &pkt);
		assert_int_equal(pkt.opcode, opcode[i]);
		assert_int_equal(pkt.what, hca_pkt_what(opcode[i]));
		assert_int_equal(pkt.psn, (0xffffff + i) & 0xffffff);
		assert_int_equal(pkt.ack_req, i == 2);
		assert_int_equal(pkt.solicited, i == 2);
		assert_int_equal(pkt.pad, i == 2 ? 3 : 0);
		assert_int_equal(pkt.payload_len, i == 2 ? 185 : 256);
		assert_ptr_equal(pkt.payload, payload + 256 * i);
		assert_int_equal(pkt.bundle, 0);
		assert_int_equal(pkt.msn, 9);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_joined_opcodes),
	cmocka_unit_test(test_codes),
	cmocka_unit_test(test_no_bundle),
	cmocka_unit_test(test_version),
	cmocka_unit_test(test_places),
};

TEST_MAIN(tests)
