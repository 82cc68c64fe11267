// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What is a frame with several segments of TCP, and what comes of it.
 */
#include "large.h"
#include "wire/large_segment.h"

/* The frame has exactly its length in memory, which nobody may leave. */
static bool parses(const uint8_t *frame, size_t len)
{
	uint8_t *exact = malloc(len ? len : 1), hdr[QHCA_MAX_TSO_HDR];
	struct hca_tso tso = { 0 };
	bool ok;

	assert_non_null(exact);
	memcpy(exact, frame, len);
	ok = hca_large_parse(exact, len, &tso, hdr);
	free(exact);
	return ok;
}

static void check_segments(const struct tcp_spec *s, uint32_t off, unsigned int num)
{
	uint32_t len = make_large(s, off, num), at, part;
	uint8_t hdr[QHCA_MAX_TSO_HDR], *p;
	struct hca_tso tso = { 0 };

	assert_true(hca_large_parse(large, len, &tso, hdr));
	assert_int_equal(tso.mss, s->mss);
	assert_int_equal(tso.hdr_len, tcp_hdr_len(s));
	for (at = 0; at < tso.len - tso.hdr_len; at += part) {
		part = hca_tso_payload(&tso, at);
		p = malloc(tso.hdr_len + part);
		assert_non_null(p);
		memcpy(p, hdr, tso.hdr_len);
		memcpy(p + tso.hdr_len, large + tso.hdr_len + at, part);
		hca_tso_finish(&tso, p, at, part);
		assert_int_equal(tcp_segment(s, want, off + at,
					     part_of(s, off + at, s->mss)),
				 tso.hdr_len + part);
		assert_memory_equal(p, want, tso.hdr_len + part);
		free(p);
	}
	assert_int_equal(at, part_of(s, off, num * s->mss));
}

static void test_segments(void **state)
{
	uint64_t seed = 1;

	(void)state;
	for (unsigned int i = 0; i < 400; i++) {
		struct tcp_spec s = {
			.v6 = i & 1,
			.tags = host_random(&seed) % 3,
			.ip_options = host_random(&seed) % 11,
			.tcp_options = host_random(&seed) % 11,
			.flags = (uint8_t)host_random(&seed),
			.id = (uint16_t)host_random(&seed),
			.seq = (uint32_t)host_random(&seed),
			.mss = 8 + host_random(&seed) % 1500,
		};
		unsigned int num = 2 + host_random(&seed) % 40, all;

		if (s.v6)
			s.ip_options = 0;
		s.payload = s.mss + 1 + host_random(&seed) % 50000;
		all = tcp_num_segments(&s);
		check_segments(&s, host_random(&seed) % (all - 1) * s.mss, num);
	}
}

static void test_limits(void **state)
{
	struct tcp_spec s = { .mss = 1000, .payload = 64000, .flags = 0xff };

	(void)state;
	check_segments(&s, 0, 64);
	s.payload++;
	assert_false(parses(large, make_large(&s, 0, 65)));
	/* The packet is the longest that IP has, and the segments are as long as frames may be. */
	s.mss = 9216 - 54;
	s.payload = 65535 - 40;
	check_segments(&s, 0, 8);
	s.mss++;
	assert_false(parses(large, make_large(&s, 0, 2)));
	s.mss = 8;
	s.payload = 17;
	check_segments(&s, 0, 3);
	s.mss = 7;
	assert_false(parses(large, make_large(&s, 0, 3)));
	s.mss = 0;
	put_trailer(large + tcp_hdr_len(&s) + 17, 0);
	assert_false(parses(large, tcp_hdr_len(&s) + 17 + HCA_TRAILER));
}

/* Is it none with another octet at @at? */
static void bad_octet(uint32_t len, uint32_t at)
{
	large[at] ^= 0x11;
	assert_false(parses(large, len));
	large[at] ^= 0x11;
}

/* A damaged frame is none, wherever the damage is, and neither is a part of one. */
static void check_damage(const struct tcp_spec *s)
{
	uint32_t len = make_large(s, 0, 3), i, ip = tcp_ip_at(s);

	assert_true(parses(large, len));
	for (i = 0; i < len; i++)
		assert_false(parses(large, i));
	for (i = ip - 2; i < len - HCA_TRAILER; i++) {
		bool summed = s->v6 ? i < ip || i >= ip + 8 || i == ip + 4 ||
				      i == ip + 5 || i == ip + 6 : true;

		if (summed)
			bad_octet(len, i);
	}
	for (i = len - HCA_TRAILER; i < len - 3; i++)
		bad_octet(len, i);
	/* There is more behind the packet. */
	put_trailer(large + len - HCA_TRAILER + 4, s->mss);
	assert_false(parses(large, len + 4));
	make_large(s, 0, 3);
}

static void test_damage(void **state)
{
	struct tcp_spec s = { .mss = 100, .payload = 300, .tcp_options = 3 };

	(void)state;
	check_damage(&s);
	s.tags = 1;
	s.v6 = true;
	check_damage(&s);
}

static void test_trailer(void **state)
{
	uint16_t mss = 0;

	(void)state;
	for (size_t len = 0; len < 9; len++) {
		uint8_t *exact = malloc(len ? len : 1);

		assert_non_null(exact);
		put_trailer(want, 1448);
		memcpy(exact, want + 8 - len, len);
		assert_int_equal(hca_trailer_find(exact, len, &mss), len == 8);
		free(exact);
	}
	assert_int_equal(mss, 1448);
}

/* Right packets that are something else. */
static void test_others(void **state)
{
	struct tcp_spec s = { .mss = 100, .payload = 300 };
	uint32_t len = make_large(&s, 0, 3);
	uint8_t *ip = large + tcp_ip_at(&s);

	(void)state;
	assert_false(parses(large, len - HCA_TRAILER));
	/* A fragment, whose header is right. */
	put_be16(ip + 6, 0x2000);
	frame_ipv4_sum(ip);
	assert_false(parses(large, len));
	/* It is UDP, without a checksum. */
	len = make_large(&s, 0, 3);
	ip[9] = 17;
	put_be16(ip + 24, (uint16_t)(len - HCA_TRAILER - tcp_at(&s)));
	put_be16(ip + 26, 0);
	frame_ipv4_sum(ip);
	assert_false(parses(large, len));
	/* The header of TCP is longer than the packet. */
	s.mss = 8;
	s.payload = 9;
	len = make_large(&s, 0, 2);
	assert_true(parses(large, len));
	large[tcp_at(&s) + 12] = 0xf0;
	put_be16(large + tcp_at(&s) + 16, 0);
	put_be16(large + tcp_at(&s) + 16,
		 frame_sum(large + tcp_at(&s), 29, tcp_pseudo(&s, ip, 29)));
	assert_false(parses(large, len));
	/* There is one segment. */
	s.payload = 8;
	assert_false(parses(large, make_large(&s, 0, 1)));
	/* It has extension headers. */
	s = (struct tcp_spec){ .v6 = true, .extensions = 1, .mss = 100,
			       .payload = 300 };
	assert_false(parses(large, make_large(&s, 0, 3)));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_segments),
	cmocka_unit_test(test_limits),
	cmocka_unit_test(test_damage),
	cmocka_unit_test(test_trailer),
	cmocka_unit_test(test_others),
};
TEST_MAIN(tests)
