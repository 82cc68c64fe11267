/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a port holds: first the frames that have left its queue and are on the way, each
 * with the time when it is due, then the frames that wait in the queue, each with the
 * time when it came. Both are in the order of their times, and one ring has them:
 *
 *	   head             split            tail
 *	    | on the way     | waiting        |
 *	... [due][due][due]  [came][came]     ...
 */
#ifndef QHCA_FABRIC_BACKLOG_H
#define QHCA_FABRIC_BACKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "frame.h"

struct fab_held {
	struct fab_frame *frame;
	uint64_t time;			/* ns: due, or when it came */
};

struct fab_backlog {
	struct fab_held *ring;		/* of @size entries, a power of two, or none */
	uint32_t size;
	uint32_t head, split, tail;	/* of all frames since the beginning, modulo 2^32 */
	uint64_t bytes;			/* fab_frame_wire_bytes() of all frames */
};

/*
 * A frame that came at @now, ns, waits; the backlog takes the caller's reference.
 * Returns false if there is no memory; the reference is then still the caller's.
 */
bool fab_backlog_push(struct fab_backlog *b, struct fab_frame *frame, uint64_t now);
/* The frame that has waited longest, or NULL. */
const struct fab_held *fab_backlog_waiting(const struct fab_backlog *b);
/* The frame that has waited longest is on the way, until @due, ns. */
void fab_backlog_depart(struct fab_backlog *b, uint64_t due);
/* The frame on the way with @index others before it, or NULL. */
const struct fab_held *fab_backlog_on_way(const struct fab_backlog *b, size_t index);
/* Removes the first frame on the way; its reference is the caller's. */
struct fab_frame *fab_backlog_pop(struct fab_backlog *b);
/* Drops all frames and frees the memory. Returns the number of frames. */
size_t fab_backlog_flush(struct fab_backlog *b);

#endif /* QHCA_FABRIC_BACKLOG_H */
