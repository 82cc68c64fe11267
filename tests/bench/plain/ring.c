// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames through a ring in memory that both processes have: the sender copies each into a
 * slot, the receiver copies it out. A word beside the frame says whose turn the slot is. Both
 * poll; whoever has waited for long lets others run, as there may be but one processor.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "frames.h"

#define SLOTS	256u
#define PATIENCE 4096u		/* looks before the processor is given to others */

enum turn { SENDERS, RECEIVERS, LAST };

struct slot {
	_Alignas(64) _Atomic uint32_t turn;
	_Alignas(64) uint8_t payload[];
};

#define RING_SIZE	(SLOTS * (sizeof(struct slot) + FRAME_MAX))

/* Slots are as large as the frames, so that they lie in all sets of a cache. */
static struct slot *slot_of(void *ring, const struct frames *f, uint64_t n)
{
	size_t size = sizeof(struct slot) + (f->size + 63) / 64 * 64;

	return (struct slot *)((uint8_t *)ring + n % SLOTS * size);
}

static void pause_after(unsigned int looks)
{
	if (looks % PATIENCE == 0)
		sched_yield();
}

/* Wait until the slot is not @other's any more. */
static uint32_t wait_turn(struct slot *slot, bool sender)
{
	unsigned int looks = 0;
	uint32_t turn;

	while ((turn = atomic_load_explicit(&slot->turn, memory_order_acquire),
		(turn == SENDERS) != sender))
		pause_after(++looks);
	return turn;
}

static void give(struct slot *slot, enum turn turn)
{
	atomic_store_explicit(&slot->turn, turn, memory_order_release);
}

static uint64_t send_frames(void *state, const struct frames *f)
{
	uint64_t n;

	for (n = 0; frames_go_on(f, n); n++) {
		struct slot *slot = slot_of(state, f, n);

		wait_turn(slot, true);
		memcpy(slot->payload, frames_payload(f, n), f->size);
		give(slot, RECEIVERS);
	}
	wait_turn(slot_of(state, f, n), true);
	give(slot_of(state, f, n), LAST);
	return n;
}

static uint64_t receive_frames(void *state, const struct frames *f)
{
	/* Where frames go is as large as where they come from. */
	uint8_t *to = malloc(PATTERN_SIZE);
	uint64_t n, room = PATTERN_SIZE / f->size;

	if (!to)
		frames_die("no memory");
	for (n = 0;; n++) {
		struct slot *slot = slot_of(state, f, n);
		uint8_t *at = to + n % room * f->size;

		if (wait_turn(slot, false) == LAST)
			break;
		memcpy(at, slot->payload, f->size);
		give(slot, SENDERS);
		frames_arrived(f, n, at);
	}
	free(to);
	return n;
}

int main(int argc, char **argv)
{
	void *ring = mmap(NULL, RING_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct link link = { send_frames, receive_frames, ring };

	if (ring == MAP_FAILED)
		frames_die("mmap: %s", strerror(errno));
	return frames_main(argc, argv, &link);
}
