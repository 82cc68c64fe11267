// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Falling asleep while the other end sends: two threads do one step each at the same
 * moment, many times.  Without a fence in either, a processor may let both look before
 * what they have written is seen; then nobody wakes the one that sleeps.
 *
 * Built without sanitizers, which are slow enough to hide that.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "slots.h"

#define SLOTS	4u
#define ROOM	64u
#define ROUNDS	100000u

struct step {
	struct hca_slots q;
	bool (*run)(struct hca_slots *q);
	bool result;
};

static uint32_t arrived;

/* Both threads leave this at the same moment, if there is a processor for each. */
static void meet(uint32_t until)
{
	__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
	for (unsigned int i = 0;
	     __atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < until; i++)
		if (i % 1000 == 999)
			sched_yield();
}

static void *other_thread(void *arg)
{
	struct step *s = arg;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		meet(4 * round + 2);
		s->result = s->run(&s->q);
		meet(4 * round + 4);
	}
	return NULL;
}

/*
 * Run @mine and @other ROUNDS times; returns how often neither was true.  @again makes
 * the queue for the next round out of that for the first.
 */
static uint32_t count_neither(bool (*mine)(struct hca_slots *),
			      bool (*other)(struct hca_slots *),
			      void (*again)(struct hca_slots *consumer))
{
	size_t size = hca_slots_size(SLOTS, ROOM);
	void *mem = aligned_alloc(64, size);
	struct step s = { .run = other };
	struct hca_slots q, start;
	uint32_t neither = 0;
	pthread_t thread;

	assert_non_null(mem);
	memset(mem, 0, size);
	hca_slots_init(&q, mem, SLOTS, ROOM);
	start = q;
	again(&q);
	s.q = start;
	arrived = 0;
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &s), 0);
	for (uint32_t round = 0; round < ROUNDS; round++) {
		bool result;

		meet(4 * round + 2);
		result = mine(&q);
		/* The other one waits in its second meeting meanwhile. */
		while (__atomic_load_n(&arrived, __ATOMIC_SEQ_CST) <
		       4 * round + 3)
			sched_yield();
		neither += !result && !s.result;
		memset(mem, 0, size);
		q = start;
		again(&q);
		s.q = start;
		meet(4 * round + 4);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	free(mem);
	return neither;
}

static bool send_and_look(struct hca_slots *q)
{
	hca_slots_reserve(q);
	hca_slots_commit(q, 1);
	return hca_slots_wakes_consumer(q);
}

static bool sleep_and_look(struct hca_slots *q)
{
	hca_slots_sleep(q);
	return hca_slots_pending(q);
}

static void empty(struct hca_slots *q)
{
	(void)q;
}

static void test_consumer_sleeps(void **state)
{
	(void)state;
	assert_int_equal(count_neither(sleep_and_look, send_and_look, empty), 0);
}

static bool free_and_look(struct hca_slots *q)
{
	for (uint32_t i = 0; i < SLOTS; i++)
		hca_slots_pop(q);
	return hca_slots_wakes_producer(q);
}

static bool wait_and_look(struct hca_slots *q)
{
	return hca_slots_wait_room(q);
}

static void full(struct hca_slots *q)
{
	struct hca_slots producer = *q;

	for (uint32_t i = 0; i < SLOTS; i++)
		hca_slots_commit(&producer, 1);
}

static void test_producer_waits(void **state)
{
	(void)state;
	assert_int_equal(count_neither(free_and_look, wait_and_look, full), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_consumer_sleeps),
	cmocka_unit_test(test_producer_waits),
};

int main(void)
{
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
