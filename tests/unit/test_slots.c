// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queue of slots, both ends in one thread, and a peer that lies.
 */
#include "unit.h"

#include "slots.h"

#define COUNT_	8u		/* slots */
#define ROOM	200u		/* bytes; no multiple of 64 */

struct ends {
	void *mem;
	struct hca_slots tx, rx;
};

static int setup(void **state)
{
	struct ends *e = calloc(1, sizeof(*e));
	size_t size = hca_slots_size(COUNT_, ROOM);

	assert_non_null(e);
	e->mem = aligned_alloc(64, size);
	assert_non_null(e->mem);
	memset(e->mem, 0, size);
	hca_slots_init(&e->tx, e->mem, COUNT_, ROOM);
	hca_slots_init(&e->rx, e->mem, COUNT_, ROOM);
	*state = e;
	return 0;
}

static int teardown(void **state)
{
	struct ends *e = *state;

	free(e->mem);
	free(e);
	return 0;
}

/* The header of slot @n of the ring, as the peer may write it. */
static struct hca_slot *slot(struct ends *e, uint32_t n)
{
	return (void *)((uint8_t *)e->mem + sizeof(struct hca_slots_flags) +
			(size_t)n * e->tx.stride);
}

static void send(struct ends *e, uint8_t byte, size_t len)
{
	uint8_t *to = hca_slots_reserve(&e->tx);

	assert_non_null(to);
	memset(to, byte, len);
	hca_slots_commit(&e->tx, len);
}

static void receive(struct ends *e, uint8_t byte, size_t expected)
{
	const uint8_t *frame;
	size_t len;

	assert_true(hca_slots_pending(&e->rx));
	assert_int_equal(hca_slots_peek(&e->rx, &frame, &len), HCA_SLOTS_FRAME);
	assert_int_equal(len, expected);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(frame[i], byte);
	hca_slots_pop(&e->rx);
}

static void receive_nothing(struct ends *e)
{
	const uint8_t *frame;
	size_t len;

	assert_false(hca_slots_pending(&e->rx));
	assert_int_equal(hca_slots_peek(&e->rx, &frame, &len), HCA_SLOTS_EMPTY);
}

static void test_size(void **state)
{
	(void)state;
	assert_int_equal(hca_slots_size(8, 64), 128 + 8 * (64 + 64));
	assert_int_equal(hca_slots_size(8, 65), 128 + 8 * (64 + 128));
	assert_int_equal(hca_slots_size(8, HCA_SLOT_ROOM_MAX),
			 128 + 8 * (64 + HCA_SLOT_ROOM_MAX));
	assert_int_equal(hca_slots_size(8, HCA_SLOT_ROOM_MAX + 1), 0);
	assert_int_equal(hca_slots_size(8, UINT32_MAX), 0);
	assert_int_equal(hca_slots_size(8, 0), 0);
	assert_int_equal(hca_slots_size(2, 64), 0);
	assert_int_equal(hca_slots_size(12, 64), 0);
	assert_int_equal(hca_slots_size(HCA_SLOTS_MAX * 2, 64), 0);
	assert_int_equal(hca_slots_size(0, 64), 0);
}

/* Frames arrive in order and whole, all lengths, many times around the ring. */
static void test_order(void **state)
{
	struct ends *e = *state;
	uint8_t sent = 0, received = 0;
	uint64_t random = 1;

	for (unsigned int round = 0; round < 1000; round++) {
		uint32_t num = host_random(&random) % (COUNT_ + 1);

		for (uint32_t i = 0; i < num; i++, sent++)
			send(e, sent, sent % (ROOM + 1));
		for (uint32_t i = 0; i < num; i++, received++)
			receive(e, received, received % (ROOM + 1));
		receive_nothing(e);
	}
	send(e, 1, ROOM);
	receive(e, 1, ROOM);
	send(e, 2, 0);
	receive(e, 2, 0);
}

static void test_full(void **state)
{
	struct ends *e = *state;

	for (uint32_t i = 0; i < COUNT_; i++)
		send(e, (uint8_t)i, 100);
	assert_null(hca_slots_reserve(&e->tx));
	receive(e, 0, 100);
	send(e, COUNT_, 100);
	assert_null(hca_slots_reserve(&e->tx));
	for (uint32_t i = 1; i <= COUNT_; i++)
		receive(e, (uint8_t)i, 100);
	receive_nothing(e);
}

/* A room that is reserved and not committed sends nothing, and is reserved again. */
static void test_reserved_only(void **state)
{
	struct ends *e = *state;
	uint8_t *room = hca_slots_reserve(&e->tx);

	memset(room, 0xee, ROOM);
	receive_nothing(e);
	assert_ptr_equal(hca_slots_reserve(&e->tx), room);
	send(e, 3, 10);
	receive(e, 3, 10);
}

static void test_consumer_sleeps(void **state)
{
	struct ends *e = *state;

	send(e, 1, 10);
	assert_false(hca_slots_wakes_consumer(&e->tx));
	hca_slots_sleep(&e->rx);
	assert_true(hca_slots_pending(&e->rx));
	assert_true(hca_slots_wake(&e->rx));
	assert_false(hca_slots_wake(&e->rx));
	assert_false(hca_slots_wakes_consumer(&e->tx));
	receive(e, 1, 10);
	hca_slots_sleep(&e->rx);
	assert_false(hca_slots_pending(&e->rx));
	send(e, 2, 10);
	assert_true(hca_slots_wakes_consumer(&e->tx));
	assert_false(hca_slots_wakes_consumer(&e->tx));	/* once */
	assert_false(hca_slots_wake(&e->rx));
}

/* Somebody else has taken the frames of a consumer that sleeps: it sleeps on until the next. */
static void test_taken_frames(void **state)
{
	struct ends *e = *state;

	for (uint32_t i = 0; i < 3 * COUNT_; i++) {
		hca_slots_sleep(&e->rx);
		send(e, 1, 10);
		send(e, 2, 10);
		receive(e, 1, 10);
		receive(e, 2, 10);
		assert_false(hca_slots_wakes_consumer(&e->tx));
		send(e, 3, 10);
		send(e, 4, 10);
		receive(e, 3, 10);
		assert_true(hca_slots_wakes_consumer(&e->tx));
		receive(e, 4, 10);
	}
}

static void test_producer_waits(void **state)
{
	struct ends *e = *state;

	assert_true(hca_slots_half_free(&e->tx));
	assert_true(hca_slots_wait_room(&e->tx));	/* there is room */
	for (uint32_t i = 0; i < COUNT_; i++)
		send(e, (uint8_t)i, 10);
	assert_false(hca_slots_wakes_producer(&e->rx));
	assert_false(hca_slots_half_free(&e->tx));
	assert_false(hca_slots_wait_room(&e->tx));
	for (uint32_t i = 0; i < COUNT_ / 2 - 1; i++)
		receive(e, (uint8_t)i, 10);
	assert_false(hca_slots_wakes_producer(&e->rx));
	assert_false(hca_slots_half_free(&e->tx));
	receive(e, COUNT_ / 2 - 1, 10);
	assert_true(hca_slots_half_free(&e->tx));
	assert_true(hca_slots_wakes_producer(&e->rx));
	assert_false(hca_slots_wakes_producer(&e->rx));	/* once */
}

/*
 * The consumer has seen that the queue is half empty, and is held up before it clears the
 * flag.  Meanwhile the producer fills the queue again, and waits.  The wake-up that comes
 * then took the flag with it, so the producer has to ask again.
 */
static void test_late_wake_up(void **state)
{
	struct ends *e = *state;
	struct hca_slots_flags *flags = e->mem;

	for (uint32_t i = 0; i < COUNT_; i++)
		send(e, (uint8_t)i, 10);
	for (uint32_t i = 0; i < COUNT_ / 2; i++)
		receive(e, (uint8_t)i, 10);
	assert_true(hca_slots_wait_room(&e->tx));
	for (uint32_t i = 0; i < COUNT_ / 2; i++)
		send(e, (uint8_t)(COUNT_ + i), 10);
	assert_false(hca_slots_wait_room(&e->tx));
	flags->producer_waits = 0;		/* what the consumer does at last */
	assert_false(hca_slots_wait_half(&e->tx));
	for (uint32_t i = 0; i < COUNT_ / 2; i++)
		receive(e, (uint8_t)(COUNT_ / 2 + i), 10);
	assert_true(hca_slots_wakes_producer(&e->rx));
	assert_true(hca_slots_wait_half(&e->tx));
	assert_false(hca_slots_wakes_producer(&e->rx));
}

/* ---- a peer that lies */

static void test_length_too_long(void **state)
{
	static const uint16_t bad[] = { ROOM + 1, 0x8000, 0xffff };
	struct ends *e = *state;
	const uint8_t *frame;
	size_t len;

	for (uint32_t i = 0; i < 3; i++) {
		send(e, 7, 10);
		slot(e, i)->len = bad[i];
		assert_int_equal(hca_slots_peek(&e->rx, &frame, &len),
				 HCA_SLOTS_BAD);
		hca_slots_pop(&e->rx);
	}
	send(e, 8, 10);
	receive(e, 8, 10);
}

/* What peek has returned is of private memory. */
static void test_length_changes(void **state)
{
	struct ends *e = *state;
	const uint8_t *frame;
	size_t len;

	send(e, 7, 10);
	assert_int_equal(hca_slots_peek(&e->rx, &frame, &len), HCA_SLOTS_FRAME);
	slot(e, 0)->len = 0xffff;
	slot(e, 0)->own_type = 0;
	assert_int_equal(len, 10);
	hca_slots_pop(&e->rx);
	send(e, 8, 10);
	receive(e, 8, 10);
}

static void test_other_types(void **state)
{
	static const uint8_t types[] = {
		HCA_SLOT_TERMINATE, HCA_SLOT_SYNC, 0x3f, 0x41, 0x7f,
	};
	struct ends *e = *state;
	const uint8_t *frame;
	size_t len;

	for (uint32_t i = 0; i < sizeof(types); i++) {
		send(e, 7, 10);
		slot(e, i)->own_type = HCA_SLOT_FULL | types[i];
		assert_int_equal(hca_slots_peek(&e->rx, &frame, &len),
				 HCA_SLOTS_NO_FRAME);
		hca_slots_pop(&e->rx);
	}
	send(e, 8, 10);
	receive(e, 8, 10);
}

/*
 * A consumer that hands back slots which it does not own, or keeps one, or a producer
 * that fills the ring twice: each end goes on at its own place.
 */
static void test_owners_lie(void **state)
{
	struct ends *e = *state;
	uint8_t *first = hca_slots_reserve(&e->tx);

	for (uint32_t i = 0; i < COUNT_; i++)
		send(e, (uint8_t)i, 10);
	for (uint32_t i = 0; i < COUNT_; i++)
		slot(e, i)->own_type = 0;
	assert_ptr_equal(hca_slots_reserve(&e->tx), first);
	receive_nothing(e);
	for (uint32_t i = 0; i < COUNT_; i++)
		slot(e, i)->own_type = 0xff;
	assert_null(hca_slots_reserve(&e->tx));
	for (uint32_t i = 0; i < 3 * COUNT_; i++) {
		const uint8_t *frame;
		size_t len;

		slot(e, i % COUNT_)->own_type = HCA_SLOT_FULL | HCA_SLOT_PACKET;
		assert_int_equal(hca_slots_peek(&e->rx, &frame, &len),
				 HCA_SLOTS_FRAME);
		assert_ptr_equal(frame, slot(e, i % COUNT_) + 1);
		hca_slots_pop(&e->rx);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_size),
	TEST(test_order),
	TEST(test_full),
	TEST(test_reserved_only),
	TEST(test_consumer_sleeps),
	TEST(test_taken_frames),
	TEST(test_producer_waits),
	TEST(test_late_wake_up),
	TEST(test_length_too_long),
	TEST(test_length_changes),
	TEST(test_other_types),
	TEST(test_owners_lie),
};

TEST_MAIN(tests)
