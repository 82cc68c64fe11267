// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The queue of slots between two threads that sleep, under ThreadSanitizer; and
 * a producer that writes headers as it likes.
 *
 * A wake-up is a byte in a pipe.  An end that waits for one in vain fails the test,
 * after far longer than any machine is held up.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "slots.h"

#define SLOTS		8u
#define ROOM		128u
#define FRAMES		100000u
#define LIES		2000u
#define LOST_MS		60000

struct world {
	void *mem;
	size_t size;
	int to_consumer[2], to_producer[2];
	uint64_t consumer_sleeps, producer_sleeps;
	bool stop;
	bool never_sleep;	/* neither end has the order that a pipe gives */
};

static struct world *world_new(void)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	w->size = hca_slots_size(SLOTS, ROOM);
	w->mem = aligned_alloc(64, w->size);
	assert_non_null(w->mem);
	memset(w->mem, 0, w->size);
	assert_int_equal(pipe(w->to_consumer), 0);
	assert_int_equal(pipe(w->to_producer), 0);
	return w;
}

static void world_free(struct world *w)
{
	for (int i = 0; i < 2; i++) {
		close(w->to_consumer[i]);
		close(w->to_producer[i]);
	}
	free(w->mem);
	free(w);
}

static void wake(const int pipe[2])
{
	if (write(pipe[1], "", 1) != 1)
		abort();
}

static void sleep_until_woken(const int pipe[2], const char *who)
{
	struct pollfd p = { .fd = pipe[0], .events = POLLIN };
	char byte;

	if (poll(&p, 1, LOST_MS) != 1 || read(pipe[0], &byte, 1) != 1) {
		fprintf(stderr, "the wake-up of the %s is lost\n", who);
		abort();
	}
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 16;
}

/* Length and content of frame @n. */
static size_t frame_of(uint32_t n, uint8_t *to)
{
	size_t len = 4 + n * 7 % (ROOM - 3);

	memset(to, (uint8_t)n, len);
	memcpy(to, &n, sizeof(n));
	return len;
}

/* Sends in batches, and asks for the consumer's flag once a batch. */
static void *produce(void *arg)
{
	struct world *w = arg;
	struct hca_slots q;
	uint32_t sent = 0, seed = 1;

	hca_slots_init(&q, w->mem, SLOTS, ROOM);
	while (sent < FRAMES) {
		uint32_t batch = next_random(&seed) % 12 + 1;
		uint8_t *room;

		for (; batch && sent < FRAMES; batch--) {
			room = hca_slots_reserve(&q);
			if (!room)
				break;
			hca_slots_commit(&q, frame_of(sent++, room));
		}
		if (w->never_sleep) {
			sched_yield();
			continue;
		}
		if (hca_slots_wakes_consumer(&q))
			wake(w->to_consumer);
		if (batch && sent < FRAMES && !hca_slots_wait_room(&q)) {
			/* The wake-up may be that of an earlier wait. */
			do {
				w->producer_sleeps++;
				sleep_until_woken(w->to_producer, "producer");
			} while (!hca_slots_wait_half(&q));
		}
	}
	return NULL;
}

static void consume(struct world *w)
{
	uint8_t expected[ROOM];
	uint32_t received = 0, wrong = 0;
	struct hca_slots q;

	hca_slots_init(&q, w->mem, SLOTS, ROOM);
	while (received < FRAMES) {
		const uint8_t *frame;
		size_t len;

		while (hca_slots_peek(&q, &frame, &len) == HCA_SLOTS_FRAME) {
			assert_int_equal(len, frame_of(received++, expected));
			/* ThreadSanitizer sees reads of this file alone. */
			for (size_t i = 0; i < len; i++)
				wrong += frame[i] != expected[i];
			hca_slots_pop(&q);
			if (!w->never_sleep && hca_slots_wakes_producer(&q))
				wake(w->to_producer);
		}
		if (received == FRAMES)
			break;
		if (w->never_sleep) {
			sched_yield();
			continue;
		}
		hca_slots_sleep(&q);
		if (hca_slots_pending(&q)) {
			hca_slots_wake(&q);
			continue;
		}
		w->consumer_sleeps++;
		sleep_until_woken(w->to_consumer, "consumer");
		hca_slots_wake(&q);
	}
	assert_int_equal(wrong, 0);
	assert_false(hca_slots_pending(&q));
}

static void run_two(struct world *w)
{
	pthread_t producer;

	assert_int_equal(pthread_create(&producer, NULL, produce, w), 0);
	consume(w);
	assert_int_equal(pthread_join(producer, NULL), 0);
}

/* All frames arrive whole, and nobody sleeps for ever. */
static void test_two_threads(void **state)
{
	struct world *w = world_new();

	(void)state;
	run_two(w);
	print_message("# the consumer slept %llu times, the producer %llu\n",
		      (unsigned long long)w->consumer_sleeps,
		      (unsigned long long)w->producer_sleeps);
	assert_true(w->consumer_sleeps && w->producer_sleeps);
	world_free(w);
}

/* The owner's byte alone makes a frame seen before its slot is. */
static void test_two_threads_awake(void **state)
{
	struct world *w = world_new();

	(void)state;
	w->never_sleep = true;
	run_two(w);
	world_free(w);
}

/* Writes lengths and owners of all slots, and both flags, without end. */
static void *lie(void *arg)
{
	struct world *w = arg;
	struct hca_slots_flags *flags = w->mem;
	size_t stride = (w->size - sizeof(*flags)) / SLOTS;
	uint32_t seed = 2;

	while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
		uint32_t r = next_random(&seed);
		struct hca_slot *slot = (void *)((uint8_t *)(flags + 1) +
						 r % SLOTS * stride);

		r = next_random(&seed);
		__atomic_store_n(&slot->len, (uint16_t)r, __ATOMIC_RELAXED);
		r = next_random(&seed);
		__atomic_store_n(&slot->own_type, r & 1 ? (uint8_t)(r >> 8) :
				 HCA_SLOT_FULL | HCA_SLOT_PACKET,
				 __ATOMIC_RELEASE);
		__atomic_store_n(&flags->consumer_sleeps, r, __ATOMIC_RELAXED);
		__atomic_store_n(&flags->producer_waits, r, __ATOMIC_RELAXED);
		if (!(r % 64))
			sched_yield();
	}
	return NULL;
}

/* Whatever the peer writes, frames are in their slots and in no other place. */
static void test_liar(void **state)
{
	struct world *w = world_new();
	uint32_t frames = 0, bad = 0;
	struct hca_slots q;
	pthread_t liar;

	(void)state;
	hca_slots_init(&q, w->mem, SLOTS, ROOM);
	assert_int_equal(pthread_create(&liar, NULL, lie, w), 0);
	while (frames < LIES || bad < LIES) {
		const uint8_t *frame = NULL;
		size_t len = SIZE_MAX;

		switch (hca_slots_peek(&q, &frame, &len)) {
		case HCA_SLOTS_EMPTY:
			sched_yield();
			continue;
		case HCA_SLOTS_FRAME:
			assert_true(len <= ROOM);
			assert_ptr_equal(frame, q.slots + q.pos % SLOTS *
					 q.stride + HCA_SLOT_HEADER);
			frames++;
			break;
		default:
			bad++;
			break;
		}
		hca_slots_pop(&q);
		hca_slots_wakes_producer(&q);
	}
	__atomic_store_n(&w->stop, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(liar, NULL), 0);
	world_free(w);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_two_threads),
	cmocka_unit_test(test_two_threads_awake),
	cmocka_unit_test(test_liar),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
