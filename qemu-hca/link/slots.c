// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A queue of frames in shared memory; slots.h has the rules.
 */
#include "slots.h"

_Static_assert(sizeof(struct hca_slot) == HCA_SLOT_HEADER, "slot header");
_Static_assert(offsetof(struct hca_slot, time) == 48, "time of a slot");
_Static_assert(offsetof(struct hca_slot, own_type) == 63, "owner of a slot");
_Static_assert(sizeof(struct hca_slots_flags) == 128, "flags of a queue");

#define ALIGN	64u

size_t hca_slots_size(uint32_t count, uint32_t room)
{
	if (count < HCA_SLOTS_MIN || count > HCA_SLOTS_MAX ||
	    count & (count - 1) || !room || room > HCA_SLOT_ROOM_MAX)
		return 0;
	return sizeof(struct hca_slots_flags) +
	       (size_t)count *
	       (HCA_SLOT_HEADER + (room + ALIGN - 1) / ALIGN * ALIGN);
}

void hca_slots_init(struct hca_slots *q, void *mem, uint32_t count,
		    uint32_t room)
{
	q->flags = mem;
	q->slots = (uint8_t *)mem + sizeof(struct hca_slots_flags);
	q->count = count;
	q->room = room;
	q->stride = HCA_SLOT_HEADER + (room + ALIGN - 1) / ALIGN * ALIGN;
	q->pos = 0;
}

static struct hca_slot *slot_at(const struct hca_slots *q, uint32_t pos)
{
	return (void *)(q->slots +
			(size_t)(pos & (q->count - 1)) * q->stride);
}

static uint8_t own_type(const struct hca_slots *q, uint32_t pos)
{
	return __atomic_load_n(&slot_at(q, pos)->own_type, __ATOMIC_ACQUIRE);
}

static bool is_full(const struct hca_slots *q, uint32_t pos)
{
	return own_type(q, pos) & HCA_SLOT_FULL;
}

static void fence(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static bool test_and_clear(uint32_t *flag)
{
	if (!__atomic_load_n(flag, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(flag, 0, __ATOMIC_RELAXED);
	return true;
}

/* ---- the producer */

uint8_t *hca_slots_reserve(struct hca_slots *q)
{
	if (is_full(q, q->pos))
		return NULL;
	return (uint8_t *)(slot_at(q, q->pos) + 1);
}

void hca_slots_commit(struct hca_slots *q, size_t len)
{
	struct hca_slot *slot = slot_at(q, q->pos++);

	__atomic_store_n(&slot->len, (uint16_t)len, __ATOMIC_RELAXED);
	slot->port = 0;
	slot->time = 0;
	__atomic_store_n(&slot->own_type, HCA_SLOT_PACKET | HCA_SLOT_FULL,
			 __ATOMIC_RELEASE);
}

bool hca_slots_wakes_consumer(struct hca_slots *q)
{
	fence();	/* pairs with hca_slots_sleep() */
	/* Whoever has taken the last frame has taken all.  The wake-up is for a later one. */
	return __atomic_load_n(&q->flags->consumer_sleeps, __ATOMIC_RELAXED) &&
	       is_full(q, q->pos - 1) &&
	       test_and_clear(&q->flags->consumer_sleeps);
}

/* Ask for a wake-up, unless the slot at @pos is free by now. */
static bool wait_for(struct hca_slots *q, uint32_t pos)
{
	__atomic_store_n(&q->flags->producer_waits, 1, __ATOMIC_RELAXED);
	fence();	/* pairs with hca_slots_wakes_producer() */
	if (is_full(q, pos))
		return false;
	__atomic_store_n(&q->flags->producer_waits, 0, __ATOMIC_RELAXED);
	return true;
}

bool hca_slots_wait_room(struct hca_slots *q)
{
	return wait_for(q, q->pos);
}

bool hca_slots_wait_half(struct hca_slots *q)
{
	return wait_for(q, q->pos + q->count / 2 - 1);
}

/* The consumer hands slots back in order, so the last one of a half tells of all. */
bool hca_slots_half_free(const struct hca_slots *q)
{
	return !is_full(q, q->pos + q->count / 2 - 1);
}

/* ---- the consumer */

bool hca_slots_pending(const struct hca_slots *q)
{
	return is_full(q, __atomic_load_n(&q->pos, __ATOMIC_RELAXED));
}

enum hca_slots_found hca_slots_peek(const struct hca_slots *q,
				    const uint8_t **frame, size_t *len)
{
	const struct hca_slot *slot = slot_at(q, q->pos);
	uint8_t own = own_type(q, q->pos);
	/* Read once: the compiler must not read it again after the check. */
	size_t bytes = __atomic_load_n(&slot->len, __ATOMIC_RELAXED);

	if (!(own & HCA_SLOT_FULL))
		return HCA_SLOTS_EMPTY;
	if ((own & HCA_SLOT_TYPE) != HCA_SLOT_PACKET)
		return HCA_SLOTS_NO_FRAME;
	if (bytes > q->room)
		return HCA_SLOTS_BAD;
	*frame = (const uint8_t *)(slot + 1);
	*len = bytes;
	return HCA_SLOTS_FRAME;
}

void hca_slots_pop(struct hca_slots *q)
{
	__atomic_store_n(&slot_at(q, q->pos)->own_type, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&q->pos, q->pos + 1, __ATOMIC_RELAXED);
}

/*
 * The producer fills slots in order: if the slot half a ring ahead is empty, so are
 * those behind it.
 */
bool hca_slots_wakes_producer(struct hca_slots *q)
{
	fence();	/* pairs with hca_slots_wait_room() */
	if (!__atomic_load_n(&q->flags->producer_waits, __ATOMIC_RELAXED) ||
	    is_full(q, q->pos + q->count / 2))
		return false;
	return test_and_clear(&q->flags->producer_waits);
}

void hca_slots_sleep(const struct hca_slots *q)
{
	__atomic_store_n(&q->flags->consumer_sleeps, 1, __ATOMIC_RELAXED);
	fence();	/* pairs with hca_slots_wakes_consumer() */
}

bool hca_slots_wake(const struct hca_slots *q)
{
	bool takes_back = __atomic_load_n(&q->flags->consumer_sleeps, __ATOMIC_RELAXED);

	/* An exchange would wait for the line, which the producer reads, with each message. */
	__atomic_store_n(&q->flags->consumer_sleeps, 0, __ATOMIC_RELAXED);
	return takes_back;
}
