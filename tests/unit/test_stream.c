// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The switch's reader of QEMU's stream format.
 */
#include "unit.h"

#include "program/stream.h"

static uint8_t *put(uint8_t *p, uint32_t len, uint8_t fill)
{
	for (int i = 0; i < 4; i++)
		*p++ = (uint8_t)(len >> (24 - 8 * i));
	memset(p, fill, len);
	return p + len;
}

static void test_head(void **state)
{
	struct fab_frame *f = fab_frame_new(0x010203);

	(void)state;
	sw_stream_head(f);
	assert_memory_equal(f->head, "\0\1\2\3", 4);
	fab_frame_put(f);
}

/* Frames come out as they were, however the bytes are cut into pieces. */
static void test_pieces(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 60, 0, 0, 1514, FAB_MAX_FRAME, 14, 255, 256 };
	uint8_t *bytes = malloc(2 * FAB_MAX_FRAME), *end = bytes;
	uint64_t random = 9;

	(void)state;
	assert_non_null(bytes);
	for (unsigned int i = 0; i < 10; i++)
		end = put(end, lengths[i], (uint8_t)(i + 1));
	for (unsigned int pass = 0; pass < 40; pass++) {
		struct sw_stream s = { .frame = NULL };
		unsigned int num = 0;
		const uint8_t *at = bytes;

		while (at < end) {
			size_t piece = host_random(&random) % (pass < 20 ? 7 : 5000) + 1, len;
			struct fab_frame *f;

			/* A piece has memory of its own, behind which nothing may be read. */
			piece = piece < (size_t)(end - at) ? piece : (size_t)(end - at);
			uint8_t *copy = memcpy(malloc(piece), at, piece);
			const uint8_t *data = copy;

			len = piece;
			while (sw_stream_read(&s, &data, &len, &f) == SW_STREAM_FRAME) {
				assert_int_equal(f->len, lengths[num++]);
				for (uint32_t i = 0; i < f->len; i++)
					assert_int_equal(f->data[i], num);
				assert_int_equal(f->head[3], f->len & 0xff);
				fab_frame_put(f);
			}
			assert_int_equal(len, 0);
			assert_ptr_equal(data, copy + piece);
			free(copy);
			at += piece;
		}
		assert_int_equal(num, 10);
		sw_stream_reset(&s);
	}
	free(bytes);
}

static void test_bad_lengths(void **state)
{
	static const uint32_t lengths[] = { FAB_MAX_FRAME + 1, 0x80000000, UINT32_MAX };

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct sw_stream s = { .frame = NULL };
		uint8_t bytes[4] = { (uint8_t)(lengths[i] >> 24), (uint8_t)(lengths[i] >> 16),
				     (uint8_t)(lengths[i] >> 8), (uint8_t)lengths[i] };
		const uint8_t *data = bytes;
		struct fab_frame *f;
		size_t len = 3;

		assert_int_equal(sw_stream_read(&s, &data, &len, &f), SW_STREAM_MORE);
		len = 1;
		assert_int_equal(sw_stream_read(&s, &data, &len, &f), SW_STREAM_BAD_LENGTH);
		assert_null(s.frame);
	}
}

/* After a reset in the middle of anything the next byte is the first of a head. */
static void test_reset(void **state)
{
	uint8_t bytes[64 + 4], good[8];
	size_t whole = (size_t)(put(bytes, 64, 7) - bytes);

	(void)state;
	put(good, 4, 9);
	for (size_t cut = 0; cut < whole; cut++) {
		struct sw_stream s = { .frame = NULL };
		const uint8_t *data = bytes;
		struct fab_frame *f;
		size_t len = cut;

		assert_int_equal(sw_stream_read(&s, &data, &len, &f), SW_STREAM_MORE);
		sw_stream_reset(&s);
		data = good;
		len = sizeof(good);
		assert_int_equal(sw_stream_read(&s, &data, &len, &f), SW_STREAM_FRAME);
		assert_memory_equal(f->data, "\11\11\11\11", 4);
		fab_frame_put(f);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_head),
	cmocka_unit_test(test_pieces),
	cmocka_unit_test(test_bad_lengths),
	cmocka_unit_test(test_reset),
};

TEST_MAIN(tests)
