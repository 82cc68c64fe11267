// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What a port of the switch holds.
 */
#include "unit.h"

#include "model/backlog.h"

static struct fab_frame *frame(uint32_t len)
{
	struct fab_frame *f = fab_frame_new(len);

	assert_non_null(f);
	memset(f->data, 0xee, len);
	return f;
}

static void test_wire_bytes(void **state)
{
	static const uint32_t expected[][2] = {
		{ 0, 84 }, { 14, 84 }, { 60, 84 }, { 61, 85 }, { FAB_MAX_FRAME, 69656 },
	};

	(void)state;
	for (unsigned int i = 0; i < 5; i++) {
		struct fab_frame *f = frame(expected[i][0]);

		assert_int_equal(fab_frame_wire_bytes(f), expected[i][1]);
		fab_frame_put(f);
	}
}

/* Frames wait, depart and are taken in the order in which they came, over many laps. */
static void test_order(void **state)
{
	struct fab_backlog b = { .ring = NULL };
	uint32_t pushed = 0, departed = 0, popped = 0;
	uint64_t random = 3;

	(void)state;
	/* The indices of the ring wrap. */
	b.head = b.split = b.tail = UINT32_MAX - 1000;
	for (unsigned int step = 0; step < 20000; step++) {
		struct fab_frame *f;

		switch (host_random(&random) % (step < 10000 ? 4 : 3)) {
		case 3:
		case 0:
			f = frame(100 + pushed % 50);
			assert_true(fab_backlog_push(&b, f, pushed++));
			break;
		case 1:
			if (!fab_backlog_waiting(&b)) {
				assert_int_equal(departed, pushed);
				break;
			}
			assert_int_equal(fab_backlog_waiting(&b)->time, departed);
			fab_backlog_depart(&b, 5 * departed++);
			break;
		case 2:
			assert_null(fab_backlog_on_way(&b, departed - popped));
			if (departed == popped)
				break;
			assert_int_equal(fab_backlog_on_way(&b, departed - popped - 1)->time,
					 5 * (departed - 1));
			assert_int_equal(fab_backlog_on_way(&b, 0)->time, 5 * popped);
			f = fab_backlog_pop(&b);
			assert_int_equal(f->len, 100 + popped++ % 50);
			fab_frame_put(f);
			break;
		}
	}
	assert_int_equal(fab_backlog_flush(&b), pushed - popped);
	assert_int_equal(b.bytes, 0);
}

static void test_bytes(void **state)
{
	struct fab_backlog b = { .ring = NULL };

	(void)state;
	fab_backlog_push(&b, frame(1000), 0);
	fab_backlog_push(&b, frame(20), 0);
	assert_int_equal(b.bytes, 1024 + 84);
	fab_backlog_depart(&b, 0);
	assert_int_equal(b.bytes, 1024 + 84);
	fab_frame_put(fab_backlog_pop(&b));
	assert_int_equal(b.bytes, 84);
	assert_int_equal(fab_backlog_flush(&b), 1);
	assert_int_equal(b.bytes, 0);
	assert_int_equal(fab_backlog_flush(&b), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_wire_bytes),
	cmocka_unit_test(test_order),
	cmocka_unit_test(test_bytes),
};

TEST_MAIN(tests)
