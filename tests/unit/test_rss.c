// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "frames.h"

#define ALL	QHCA_RSS_TYPES

/* The key with which the hash was published, and its verification suite. */
static const uint8_t published_key[QHCA_RSS_KEY_LEN] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2,
	0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0,
	0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4,
	0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c,
	0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

static const struct {
	uint8_t src[4], dst[4];
	uint16_t sport, dport;
	uint32_t addresses, ports;
} vectors4[] = {
	{ { 66, 9, 149, 187 }, { 161, 142, 100, 80 }, 2794, 1766,
	  0x323e8fc2, 0x51ccc178 },
	{ { 199, 92, 111, 2 }, { 65, 69, 140, 83 }, 14230, 4739,
	  0xd718262a, 0xc626b0ea },
	{ { 24, 19, 198, 95 }, { 12, 22, 207, 184 }, 12898, 38024,
	  0xd2d0a5de, 0x5c2b394a },
	{ { 38, 27, 205, 30 }, { 209, 142, 163, 6 }, 48228, 2217,
	  0x82989176, 0xafc7327f },
	{ { 153, 39, 163, 191 }, { 202, 188, 127, 2 }, 44251, 1303,
	  0x5d1809c5, 0x10e828a2 },
};

static const struct {
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
	uint32_t addresses, ports;
} vectors6[] = {
	{ { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff,
	    0, 0, 0, 0, 0, 0, 0, 7 },
	  { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03,
	    0, 0, 0, 0, 0, 0, 0, 1 }, 2794, 1766, 0x2cc18cd5, 0x40207d3d },
	{ { 0x3f, 0xfe, 0x05, 0x01, 0x00, 0x08, 0, 0,
	    0x02, 0x60, 0x97, 0xff, 0xfe, 0x40, 0xef, 0xab },
	  { 0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
	  14230, 4739, 0x0f0c461c, 0xdde51bbf },
	{ { 0x3f, 0xfe, 0x19, 0x00, 0x45, 0x45, 0x00, 0x03,
	    0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf },
	  { 0xfe, 0x80, 0, 0, 0, 0, 0, 0,
	    0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21, 0x67, 0xcf },
	  44251, 38024, 0x4b61e985, 0x02d1feef },
};

static struct hca_rss rss_with(uint16_t types)
{
	struct hca_rss rss = { .num = 128, .types = types };

	memcpy(rss.key, published_key, sizeof(rss.key));
	hca_rss_prepare(&rss);
	return rss;
}

/* A frame with these addresses and ports.  Returns where the IP header is. */
static size_t build(uint8_t *f, struct frame_spec *s, const uint8_t *src,
		    const uint8_t *dst, uint16_t sport, size_t *len)
{
	size_t ip = s->tag < 0 ? 14 : 18, l = s->v6 ? 16 : 4;

	memcpy(s->src + 16 - l, src, l);
	memcpy(s->dst + 16 - l, dst, l);
	*len = frame_build(f, s);
	put_be16(f + ip + (s->v6 ? 40 : 20), sport);
	return ip;
}

static void expect(const struct hca_rss *rss, const uint8_t *f, size_t len,
		   bool l4, uint32_t value)
{
	struct hca_rss_hash hash = hca_rss_hash(rss, f, len);

	assert_true(hash.valid);
	assert_int_equal(hash.l4, l4);
	assert_int_equal(hash.value, value);
}

/* A TCP and a UDP frame with and without tag, by ports and by addresses. */
static void check_vector(bool v6, const uint8_t *src, const uint8_t *dst,
			 uint16_t sport, uint16_t dport, uint32_t addresses,
			 uint32_t ports)
{
	const uint16_t plain = v6 ? QHCA_RSS_IPV6 : QHCA_RSS_IPV4;
	const uint16_t others = ALL & (v6 ? 0x07u : 0x38u);
	uint8_t f[QHCA_MAX_FRAME];

	for (unsigned int i = 0; i < 4; i++) {
		struct hca_rss all = rss_with(ALL), one = rss_with(plain);
		struct hca_rss none = rss_with(others);
		struct frame_spec s = frame_default(v6);
		size_t len;

		s.tag = i & 1 ? 9 : -1;
		s.proto = i & 2 ? 6 : 17;
		s.dport = dport;
		build(f, &s, src, dst, sport, &len);
		expect(&all, f, len, true, ports);
		expect(&one, f, len, false, addresses);
		one.types |= (v6 ? QHCA_RSS_UDP_IPV6 : QHCA_RSS_UDP_IPV4);
		expect(&one, f, len, s.proto == 17,
		       s.proto == 17 ? ports : addresses);
		assert_false(hca_rss_hash(&none, f, len).valid);
	}
}

static void test_vectors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(vectors4) / sizeof(vectors4[0]); i++)
		check_vector(false, vectors4[i].src, vectors4[i].dst,
			     vectors4[i].sport, vectors4[i].dport,
			     vectors4[i].addresses, vectors4[i].ports);
	for (size_t i = 0; i < sizeof(vectors6) / sizeof(vectors6[0]); i++)
		check_vector(true, vectors6[i].src, vectors6[i].dst,
			     vectors6[i].sport, vectors6[i].dport,
			     vectors6[i].addresses, vectors6[i].ports);
}

/* The hash bit by bit, as its definition says it. */
static uint32_t plain_hash(const uint8_t *key, const uint8_t *p, size_t len)
{
	uint32_t hash = 0;

	for (size_t i = 0; i < 8 * len; i++) {
		if (!(p[i / 8] & 0x80 >> i % 8))
			continue;
		for (size_t b = 0; b < 32; b++)
			if (key[(i + b) / 8] & 0x80 >> (i + b) % 8)
				hash ^= 0x80000000u >> b;
	}
	return hash;
}

static void test_keys(void **state)
{
	uint8_t f[QHCA_MAX_FRAME];
	uint64_t seed = 3;

	(void)state;
	for (unsigned int i = 0; i < 200; i++) {
		struct hca_rss rss = { .num = 1, .types = ALL };
		struct frame_spec s = frame_default(true);
		size_t len = frame_build(f, &s);

		for (size_t n = 0; n < sizeof(rss.key); n++)
			rss.key[n] = (uint8_t)host_random(&seed);
		for (size_t n = 22; n < 58; n++)
			f[n] = (uint8_t)host_random(&seed);
		hca_rss_prepare(&rss);
		expect(&rss, f, len, true, plain_hash(rss.key, f + 22, 36));
		put_be16(f + 12, 0x0800);
		f[14] = 0x45;
		f[23] = 6;
		put_be16(f + 20, 0);
		expect(&rss, f, len, true, plain_hash(rss.key, f + 26, 12));
	}
}

/* Options, fragments, extension headers, headers that are cut, and no IP at all. */
static void test_headers(void **state)
{
	struct hca_rss rss = rss_with(ALL);
	struct frame_spec s = frame_default(false);
	uint8_t f[QHCA_MAX_FRAME], *exact;
	size_t len, ip;

	(void)state;
	s.proto = 6;
	s.dport = vectors4[0].dport;
	ip = build(f, &s, vectors4[0].src, vectors4[0].dst, vectors4[0].sport,
		   &len);
	f[ip] = 0x46;
	memmove(f + ip + 24, f + ip + 20, len - ip - 20);
	expect(&rss, f, len + 4, true, vectors4[0].ports);
	put_be16(f + ip + 6, 0x2000);	/* the first fragment, and a later one */
	expect(&rss, f, len + 4, false, vectors4[0].addresses);
	put_be16(f + ip + 6, 0x0001);
	expect(&rss, f, len + 4, false, vectors4[0].addresses);
	put_be16(f + ip + 6, 0x4000);	/* must not be fragmented */
	expect(&rss, f, len + 4, true, vectors4[0].ports);
	f[ip] = 0x44;			/* a length that cannot be */
	expect(&rss, f, len + 4, false, vectors4[0].addresses);
	f[ip] = 0x4f;
	expect(&rss, f, ip + 40, false, vectors4[0].addresses);
	f[ip + 9] = 47;			/* GRE has no ports */
	f[ip] = 0x45;
	expect(&rss, f, len, false, vectors4[0].addresses);
	f[ip] = 0x55;
	assert_false(hca_rss_hash(&rss, f, len).valid);
	put_be16(f + 12, 0x0806);
	assert_false(hca_rss_hash(&rss, f, len).valid);

	s = frame_default(true);
	s.proto = 0;			/* hop-by-hop options */
	build(f, &s, vectors6[0].src, vectors6[0].dst, 1, &len);
	expect(&rss, f, len, false, vectors6[0].addresses);
	for (int v6 = 0; v6 < 2; v6++) {
		s = frame_default(v6);
		s.tag = 5;
		len = frame_build(f, &s);
		for (size_t cut = 14; cut < len; cut++) {
			bool l4 = cut >= (v6 ? 62u : 42u);
			struct hca_rss_hash hash;

			exact = malloc(cut);
			assert_non_null(exact);
			memcpy(exact, f, cut);
			hash = hca_rss_hash(&rss, exact, cut);
			assert_int_equal(hash.valid, cut >= (v6 ? 58u : 38u));
			assert_int_equal(hash.l4, l4);
			free(exact);
		}
	}
}

static void test_valid(void **state)
{
	struct hca_rss rss = { .num = 0 };

	(void)state;
	assert_true(hca_rss_valid(&rss, 1));
	for (unsigned int n = 1; n <= 128; n *= 2) {
		rss.num = (uint16_t)n;
		assert_true(hca_rss_valid(&rss, 1));
	}
	rss.queue[127] = 3;
	assert_true(hca_rss_valid(&rss, 4));
	assert_false(hca_rss_valid(&rss, 3));
	rss.num = 64;			/* the entry is not in use */
	assert_true(hca_rss_valid(&rss, 1));
	rss.types = 0x40;
	assert_false(hca_rss_valid(&rss, 1));
	rss.types = ALL;
	rss.num = 3;
	assert_false(hca_rss_valid(&rss, 1));
	rss.num = 256;
	assert_false(hca_rss_valid(&rss, 1));
	rss.num = 0xffff;
	assert_false(hca_rss_valid(&rss, 1));
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_vectors),
	cmocka_unit_test(test_keys),
	cmocka_unit_test(test_headers),
	cmocka_unit_test(test_valid),
};
TEST_MAIN(tests)
