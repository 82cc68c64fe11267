// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The format of QEMU's stream sockets. stream.h explains it. */
#include "program/stream.h"

#include <stdbool.h>
#include <string.h>

void sw_stream_head(struct fab_frame *frame)
{
	for (int i = 0; i < 4; i++)
		frame->head[i] = (uint8_t)(frame->len >> (24 - 8 * i));
}

void sw_stream_reset(struct sw_stream *s)
{
	if (s->frame)
		fab_frame_put(s->frame);
	*s = (struct sw_stream){ .frame = NULL };
}

/* At most @wanted of the bytes that are left. */
static size_t use(const uint8_t **data, size_t *len, size_t wanted, uint8_t *to)
{
	size_t n = *len < wanted ? *len : wanted;

	if (to && n)
		memcpy(to, *data, n);
	*data += n;
	*len -= n;
	return n;
}

/* Returns false if the length is one that no frame has. */
static bool begin(struct sw_stream *s)
{
	const uint8_t *h = s->head;

	s->len = (uint32_t)h[0] << 24 | (uint32_t)h[1] << 16 | (uint32_t)h[2] << 8 | h[3];
	if (s->len > FAB_MAX_FRAME)
		return false;
	s->frame = fab_frame_new(s->len);
	return true;
}

enum sw_stream_result sw_stream_read(struct sw_stream *s, const uint8_t **data,
				     size_t *len, struct fab_frame **frame)
{
	if (s->head_have < SW_STREAM_HEAD) {
		s->head_have += (uint32_t)use(data, len, SW_STREAM_HEAD - s->head_have,
					      s->head + s->head_have);
		if (s->head_have < SW_STREAM_HEAD)
			return SW_STREAM_MORE;
		if (!begin(s)) {
			sw_stream_reset(s);
			return SW_STREAM_BAD_LENGTH;
		}
	}
	s->have += (uint32_t)use(data, len, s->len - s->have,
				 s->frame ? s->frame->data + s->have : NULL);
	if (s->have < s->len)
		return SW_STREAM_MORE;
	*frame = s->frame;
	s->frame = NULL;
	s->head_have = 0;
	s->have = 0;
	if (!*frame)
		return SW_STREAM_NO_MEMORY;
	sw_stream_head(*frame);
	return SW_STREAM_FRAME;
}
