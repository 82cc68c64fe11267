// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "tcp.h"

#define MAX_LEN		(65536u + 18)
#define MAX_SEGMENT	9018u

static uint8_t whole[MAX_LEN + TCP_MAX_HDR], want[MAX_LEN + TCP_MAX_HDR];

static struct hca_tso tso_of(const struct tcp_spec *s, uint32_t len)
{
	return (struct hca_tso){
		.len = len, .mss = s->mss, .hdr_len = (uint16_t)tcp_hdr_len(s),
		.l4 = (uint16_t)tcp_at(s),
	};
}

/* Segments in memory of exactly their length, which nobody may leave. */
static void check(const struct tcp_spec *s)
{
	struct hca_tso tso = tso_of(s, tcp_whole(s, whole));
	uint32_t hdr = tso.hdr_len, off, len, n = 0;

	assert_true(hca_tso_valid(&tso, MAX_SEGMENT));
	assert_true(hca_tso_parse(&tso, whole));
	for (off = 0; off < s->payload; off += len, n++) {
		uint8_t *p;

		len = hca_tso_payload(&tso, off);
		assert_true(len && len <= s->mss);
		p = malloc(hdr + len);
		assert_non_null(p);
		memcpy(p, whole, hdr);
		memcpy(p + hdr, whole + hdr + off, len);
		hca_tso_finish(&tso, p, off, len);
		assert_int_equal(tcp_segment(s, want, off, len), hdr + len);
		assert_memory_equal(p, want, hdr + len);
		free(p);
	}
	assert_int_equal(n, tcp_num_segments(s));
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
			.extensions = host_random(&seed) % 5,
			.tcp_options = host_random(&seed) % 11,
			.flags = (uint8_t)host_random(&seed),
			.id = (uint16_t)host_random(&seed),
			.seq = (uint32_t)host_random(&seed),
			.mss = 8 + host_random(&seed) % 8000,
		};

		s.payload = 1 + host_random(&seed) % (MAX_LEN - tcp_hdr_len(&s));
		check(&s);
	}
}

/* The least and the most of everything. */
static void test_limits(void **state)
{
	struct tcp_spec s = { .mss = 1448, .payload = 1, .flags = 0xff };

	(void)state;
	check(&s);
	s.payload = s.mss;
	check(&s);
	s.payload = s.mss + 1;
	check(&s);
	s.payload = MAX_LEN - tcp_hdr_len(&s);
	check(&s);
	s.mss = 8;
	s.seq = 0xffffff00;
	s.id = 0xfff0;
	check(&s);
	s.v6 = true;
	s.payload = MAX_LEN - tcp_hdr_len(&s);
	check(&s);
}

static void test_numbers(void **state)
{
	struct tcp_spec s = { .mss = 1000, .payload = 5000 };
	const struct hca_tso good = tso_of(&s, tcp_whole(&s, whole));
	struct hca_tso tso;

	(void)state;
	assert_true(hca_tso_valid(&good, 1518));
#define BAD(change) do {						\
	tso = good;							\
	change;								\
	assert_false(hca_tso_valid(&tso, 1518));			\
} while (0)
	BAD(tso.mss = 0);
	BAD(tso.mss = 7);
	BAD(tso.mss = (uint16_t)(1519 - tso.hdr_len));
	BAD(tso.mss = 0xffff);
	BAD(tso.len = tso.hdr_len);
	BAD(tso.len = 0);
	BAD(tso.len = MAX_LEN + 1);
	BAD(tso.hdr_len = 0);
	BAD(tso.hdr_len = 257);
	BAD(tso.hdr_len = (uint16_t)(tso.l4 + 19));
	BAD(tso.l4 = 0xffff);
	tso = good;
	tso.mss = (uint16_t)(1518 - tso.hdr_len);
	tso.len = MAX_LEN;
	assert_true(hca_tso_valid(&tso, 1518));
}

static bool parses(const struct tcp_spec *s, const struct hca_tso *numbers)
{
	struct hca_tso tso = *numbers;
	uint8_t *exact = malloc(tso.hdr_len);
	bool ok;

	(void)s;
	assert_non_null(exact);
	memcpy(exact, whole, tso.hdr_len);
	ok = hca_tso_parse(&tso, exact);
	free(exact);
	return ok;
}

/* Headers of something else, or elsewhere. */
static void check_headers(bool v6)
{
	struct tcp_spec s = { .v6 = v6, .tags = 1, .mss = 1000, .payload = 5000,
			      .tcp_options = 3 };
	struct hca_tso good = tso_of(&s, tcp_whole(&s, whole)), tso;
	uint8_t *ip = whole + tcp_ip_at(&s), *tcp = whole + tcp_at(&s);

	assert_true(parses(&s, &good));
#define BAD_BYTE(p, value) do {						\
	uint8_t was = *(p);						\
									\
	*(p) = (uint8_t)(value);					\
	assert_false(parses(&s, &good));				\
	*(p) = was;							\
} while (0)
	BAD_BYTE(ip - 1, 0x06);			/* EtherType */
	BAD_BYTE(whole + 12, 0x91);		/* a tag that is not one */
	BAD_BYTE(ip, v6 ? 0x45 : 0x65);		/* version */
	BAD_BYTE(ip + (v6 ? 6 : 9), 17);	/* UDP */
	BAD_BYTE(tcp + 12, 0x70);		/* data offset */
	BAD_BYTE(tcp + 12, 0x90);
	BAD_BYTE(tcp + 12, 0x00);
	if (!v6) {
		BAD_BYTE(ip, 0x46);		/* an option, and ends elsewhere */
		BAD_BYTE(ip, 0x40);
		BAD_BYTE(ip + 6, 0x20);		/* more fragments */
		BAD_BYTE(ip + 7, 1);		/* an offset */
	}
	/* A third tag. */
	put_be16(whole + 16, 0x8100);
	put_be16(whole + 20, 0x8100);
	assert_false(parses(&s, &good));
	tcp_whole(&s, whole);
	tso = good;				/* TCP begins earlier than IP ends */
	tso.l4 -= 4;
	assert_false(parses(&s, &tso));
	tso.l4 = 17;				/* ... or than IP begins */
	assert_false(parses(&s, &tso));
	s = (struct tcp_spec){ .v6 = v6, .tags = 2, .mss = 1000, .payload = 5000 };
	tcp_whole(&s, whole);			/* ... though TCP's length is right */
	whole[18 + 12] = 0xf0;
	tso = (struct hca_tso){ .hdr_len = 78, .l4 = 18, .mss = 1000, .len = 5000 };
	assert_false(parses(&s, &tso));
	tso = (struct hca_tso){ .hdr_len = 20, .l4 = 0, .mss = 8, .len = 100 };
	assert_false(parses(&s, &tso));
}

static void test_headers(void **state)
{
	(void)state;
	check_headers(false);
	check_headers(true);
}

/* Whatever the headers are, nothing outside of them is read or written. */
static void test_any_headers(void **state)
{
	uint64_t seed = 7;
	unsigned int parsed = 0;

	(void)state;
	for (unsigned int i = 0; i < 200000; i++) {
		struct tcp_spec s = { .v6 = i & 1, .tags = i % 3, .mss = 99,
				      .payload = 500 };
		struct hca_tso tso = tso_of(&s, tcp_whole(&s, whole));
		uint8_t *p;

		for (unsigned int n = 0; n < 3; n++)
			whole[12 + host_random(&seed) % (tso.hdr_len - 12u)] =
				(uint8_t)host_random(&seed);
		if (i % 4 == 0)
			tso.l4 = (uint16_t)(host_random(&seed) % 80);
		if (i % 8 == 0)
			tso.hdr_len = (uint16_t)(host_random(&seed) % 257);
		if (!hca_tso_valid(&tso, 1518))
			continue;
		p = malloc(tso.hdr_len + 99u);
		assert_non_null(p);
		memcpy(p, whole, tso.hdr_len + 99u);
		if (hca_tso_parse(&tso, p)) {
			hca_tso_finish(&tso, p, 99, hca_tso_payload(&tso, 99));
			parsed++;
		}
		free(p);
	}
	assert_in_range(parsed, 1000, 199000);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_segments),
	cmocka_unit_test(test_limits),
	cmocka_unit_test(test_numbers),
	cmocka_unit_test(test_headers),
	cmocka_unit_test(test_any_headers),
};
TEST_MAIN(tests)
