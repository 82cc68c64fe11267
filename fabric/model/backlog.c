// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What a port holds. backlog.h explains it. */
#include "backlog.h"

#include <stdlib.h>

#define FIRST_SIZE	64u

static struct fab_held *at(const struct fab_backlog *b, uint32_t index)
{
	return &b->ring[index & (b->size - 1)];
}

static bool grow(struct fab_backlog *b)
{
	struct fab_backlog larger = *b;

	larger.size = b->size ? b->size * 2 : FIRST_SIZE;
	larger.ring = malloc(larger.size * sizeof(*larger.ring));
	if (!larger.ring)
		return false;
	for (uint32_t i = b->head; i != b->tail; i++)
		*at(&larger, i) = *at(b, i);
	free(b->ring);
	*b = larger;
	return true;
}

bool fab_backlog_push(struct fab_backlog *b, struct fab_frame *frame, uint64_t now)
{
	if (b->tail - b->head == b->size && !grow(b))
		return false;
	*at(b, b->tail++) = (struct fab_held){ .frame = frame, .time = now };
	b->bytes += fab_frame_wire_bytes(frame);
	return true;
}

const struct fab_held *fab_backlog_waiting(const struct fab_backlog *b)
{
	return b->split == b->tail ? NULL : at(b, b->split);
}

void fab_backlog_depart(struct fab_backlog *b, uint64_t due)
{
	at(b, b->split++)->time = due;
}

const struct fab_held *fab_backlog_on_way(const struct fab_backlog *b, size_t index)
{
	return index < b->split - b->head ? at(b, b->head + (uint32_t)index) : NULL;
}

struct fab_frame *fab_backlog_pop(struct fab_backlog *b)
{
	struct fab_frame *frame = at(b, b->head++)->frame;

	b->bytes -= fab_frame_wire_bytes(frame);
	return frame;
}

size_t fab_backlog_flush(struct fab_backlog *b)
{
	size_t num = b->tail - b->head;

	for (uint32_t i = b->head; i != b->tail; i++)
		fab_frame_put(at(b, i)->frame);
	free(b->ring);
	*b = (struct fab_backlog){ .ring = NULL };
	return num;
}
