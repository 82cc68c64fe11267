// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Frames and their references. */
#include "frame.h"

#include <stdlib.h>

#define MIN_PADDED	60
#define CHECKSUM	4
#define PREAMBLE	8
#define GAP		12

/* One buffer holds the header of the sender and the frame behind it. */
_Static_assert(offsetof(struct fab_frame, data) ==
	       offsetof(struct fab_frame, head) + 4, "head is before data");

struct fab_frame *fab_frame_new(uint32_t len)
{
	struct fab_frame *frame = malloc(sizeof(*frame) + len);

	if (!frame)
		return NULL;
	frame->refs = 1;
	frame->len = len;
	return frame;
}

struct fab_frame *fab_frame_get(struct fab_frame *frame)
{
	frame->refs++;
	return frame;
}

void fab_frame_put(struct fab_frame *frame)
{
	if (!--frame->refs)
		free(frame);
}

uint32_t fab_frame_wire_bytes(const struct fab_frame *frame)
{
	uint32_t len = frame->len < MIN_PADDED ? MIN_PADDED : frame->len;

	return len + CHECKSUM + PREAMBLE + GAP;
}
