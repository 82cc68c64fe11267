// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Streamed frames through a queue of slots, from one thread to another: a slot that has been
 * handed over has all of its bytes.
 *
 * Built without sanitizers, which are slow enough to hide a store that is late.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "slots.h"
#include "streaming.h"

#define SLOTS	64u
#define ROOM	4224u
#define HEAD	58u		/* bytes before the payload, so that its lines are no frame's */
#define WORDS	512u		/* of payload */
#define FRAMES	200000u

static void *produce(void *arg)
{
	static uint64_t payload[WORDS];
	struct hca_slots *q = arg;

	for (uint64_t n = 1; n <= FRAMES; n++) {
		uint8_t *to;

		while (!(to = hca_slots_reserve(q)))
			sched_yield();
		for (unsigned int i = 0; i < WORDS; i++)
			payload[i] = n;
		hca_streaming_store(to + HEAD, payload, sizeof(payload));
		hca_slots_commit(q, HEAD + sizeof(payload));
	}
	return NULL;
}

/* How many of the words, from the last on, are not @n? */
static unsigned int count_stale(const uint8_t *payload, uint64_t n)
{
	unsigned int stale = 0;

	for (unsigned int i = WORDS; i--; ) {
		uint64_t word;

		memcpy(&word, payload + 8 * i, sizeof(word));
		stale += word != n;
	}
	return stale;
}

static void test_all_bytes_before_the_slot(void **state)
{
	size_t size = hca_slots_size(SLOTS, ROOM);
	void *mem = aligned_alloc(64, size);
	struct hca_slots tx, rx;
	unsigned int stale = 0;
	pthread_t thread;

	(void)state;
	assert_non_null(mem);
	memset(mem, 0, size);
	hca_slots_init(&tx, mem, SLOTS, ROOM);
	hca_slots_init(&rx, mem, SLOTS, ROOM);
	assert_int_equal(pthread_create(&thread, NULL, produce, &tx), 0);
	for (uint64_t n = 1; n <= FRAMES; n++) {
		const uint8_t *frame;
		size_t len;

		for (unsigned int i = 1; hca_slots_peek(&rx, &frame, &len) == HCA_SLOTS_EMPTY; i++)
			if (i % 1000 == 0)
				sched_yield();
		stale += count_stale(frame + HEAD, n);
		hca_slots_pop(&rx);
	}
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(stale, 0);
	free(mem);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_bytes_before_the_slot),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
