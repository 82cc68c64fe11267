// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Stores past the caches: all bytes arrive and no others, and comparisons choose the kind.
 */
#include "unit.h"

#include "streaming.h"

#define AREA	8192u
#define EDGE	0xa5u

static uint8_t source[AREA], target[AREA];

static void fill(void)
{
	for (size_t i = 0; i < AREA; i++)
		source[i] = (uint8_t)(i * 31 + (i >> 8));
	memset(target, EDGE, AREA);
}

/* The bytes of @from are at target + @at, and nothing else has changed there. */
static void check(size_t at, const uint8_t *from, size_t len)
{
	assert_memory_equal(target + at, from, len);
	for (size_t i = 0; i < AREA; i++)
		if (i < at || i >= at + len)
			assert_int_equal(target[i], EDGE);
}

static void test_every_alignment(void **state)
{
	static const size_t lens[] = { 0, 1, 63, 64, 65, 127, 128, 129, 1000, 4096, 4159 };

	(void)state;
	for (size_t n = 0; n < sizeof(lens) / sizeof(*lens); n++)
		for (size_t at = 64; at <= 128; at++) {
			const uint8_t *from = source + (at * 7) % 64;

			fill();
			hca_streaming_store(target + at, from, lens[n]);
			check(at, from, lens[n]);
		}
}

/* Make copies, two of each size, since a comparison takes two.  Returns how many were streamed. */
static int make_copies(struct hca_streaming *v)
{
	int streamed = 0;

	for (size_t n = 0; n < 600; n++) {
		size_t i = n / 2;
		size_t len = i % 5 ? HCA_STREAMING_MIN + i * 7 : i;

		fill();
		streamed += hca_streaming_copy(v, target + 64 + n % 64, source + n % 3, len);
		check(64 + n % 64, source + n % 3, len);
	}
	return streamed;
}

/* Whatever the comparisons find, a copy is a copy. */
static void test_copies(void **state)
{
	struct hca_streaming plain = { 0 };
	struct hca_streaming streams = { .on = true, .lead = HCA_STREAMING_LEAD };
	int timed = make_copies(&plain);
	int most = make_copies(&streams);

	(void)state;
#ifdef __SSE2__
	assert_in_range(timed, 1, 2);
	assert_true(most > 400);
#else
	assert_int_equal(timed + most, 0);
#endif
}

static void test_small_ones_are_plain(void **state)
{
	struct hca_streaming v = { .on = true, .lead = HCA_STREAMING_LEAD };

	(void)state;
	for (int n = 0; n < 100; n++)
		assert_false(hca_streaming_copy(&v, target, source, HCA_STREAMING_MIN - 1));
	assert_int_equal(v.copies, 0);
	assert_true(v.on);
}

#ifdef __SSE2__
/* Of many copies between two comparisons, all are of the kind that was chosen. */
static void test_kind_of_copies(void **state)
{
	(void)state;
	for (int on = 0; on < 2; on++) {
		struct hca_streaming v = { .on = on, .copies = 2 };
		int streamed = 0;

		for (uint32_t n = 2; n < HCA_STREAMING_EVERY; n++)
			streamed += hca_streaming_copy(&v, target, source, 4096);
		assert_int_equal(streamed, on ? HCA_STREAMING_EVERY - 2 : 0);
		/* The next two are timed, one of each kind. */
		assert_false(hca_streaming_copy(&v, target, source, 4096));
		assert_true(v.plain > 0);
		assert_true(hca_streaming_copy(&v, target, source, 4096));
	}
}

/* Copies of the same size are compared, whatever comes between them. */
static void test_sizes_by_turns(void **state)
{
	struct hca_streaming v = { .lead = 2 };

	(void)state;
	assert_false(hca_streaming_copy(&v, target, source, 4096));
	assert_false(hca_streaming_copy(&v, target, source, 2500));
	assert_false(hca_streaming_copy(&v, target, source, 1000));
	assert_int_equal(v.lead, 2);
	assert_true(hca_streaming_copy(&v, target, source, 4096));
	assert_int_not_equal(v.lead, 2);
	/* There is one comparison, not one with each copy that follows. */
	assert_false(hca_streaming_copy(&v, target, source, 4096));
	assert_false(hca_streaming_copy(&v, target, source, 2500));
}

/*
 * Messages have so many packets, or so many QPs take turns, and one of these may be slower than
 * the others.  Each is timed as often with plain stores as it is with streaming ones.
 */
static void test_no_turn_is_preferred(void **state)
{
	static const unsigned int turns[] = { 2, 3, 4, 5, 8, 12, 16, 32, 64, 128, 256, 512 };

	(void)state;
	for (size_t i = 0; i < sizeof(turns) / sizeof(*turns); i++) {
		unsigned int plain[512] = { 0 }, streamed[512] = { 0 };
		struct hca_streaming v = { 0 };

		for (unsigned int n = 0; n < turns[i] * HCA_STREAMING_EVERY; n++) {
			unsigned int turn = n % turns[i];
			bool waits = v.plain_len;

			v.lead = 0;	/* No other copies are streamed. */
			if (hca_streaming_copy(&v, target, source, HCA_STREAMING_MIN))
				streamed[turn]++;
			else if (v.plain_len && !waits)
				plain[turn]++;
		}
		for (unsigned int turn = 0; turn < turns[i]; turn++) {
			assert_int_equal(plain[turn], 1);
			assert_int_equal(streamed[turn], 1);
		}
	}
}
#endif

static void compare(struct hca_streaming *v, int times, uint64_t plain, uint64_t streamed)
{
	while (times--)
		hca_streaming_compare(v, plain, streamed);
}

static void test_peer_far_away(void **state)
{
	struct hca_streaming v = { 0 };

	(void)state;
	compare(&v, HCA_STREAMING_LEAD - 1, 1600, 330);
	assert_false(v.on);
	compare(&v, 1, 1600, 330);
	assert_true(v.on);
	/* One that was interrupted changes nothing, however long it took. */
	compare(&v, 1, 1600, 1000000);
	assert_true(v.on);
	compare(&v, 100, 1600, 330);
	compare(&v, HCA_STREAMING_LEAD - 1, 120, 330);
	assert_true(v.on);
	compare(&v, 1, 120, 330);
	assert_false(v.on);
}

/* Plain stores that take somewhat longer do not outweigh what the peer would lose. */
static void test_peer_near(void **state)
{
	struct hca_streaming v = { 0 };

	(void)state;
	compare(&v, 100, 450, 330);
	assert_false(v.on);
	/* One each way by turns: neither is ahead. */
	for (int n = 0; n < 100; n++) {
		compare(&v, 1, 1600, 330);
		compare(&v, 1, 120, 330);
	}
	assert_false(v.on);
	compare(&v, 100, 660, 330);
	assert_false(v.on);
	compare(&v, HCA_STREAMING_LEAD, 662, 330);
	assert_true(v.on);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_every_alignment),
	cmocka_unit_test(test_copies),
	cmocka_unit_test(test_small_ones_are_plain),
#ifdef __SSE2__
	cmocka_unit_test(test_kind_of_copies),
	cmocka_unit_test(test_sizes_by_turns),
	cmocka_unit_test(test_no_turn_is_preferred),
#endif
	cmocka_unit_test(test_peer_far_away),
	cmocka_unit_test(test_peer_near),
};

TEST_MAIN(tests)
