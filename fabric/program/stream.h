/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The format of QEMU's `-netdev stream`: each frame is preceded by its length, four
 * bytes with the most significant one first.
 *
 * The reader takes bytes in pieces of any length, of which one may hold many frames and
 * one frame may need many. A length that no frame has leaves the reader without a way to
 * find the next frame: the connection is then of no more use.
 */
#ifndef QHCA_FABRIC_STREAM_H
#define QHCA_FABRIC_STREAM_H

#include <stddef.h>
#include <stdint.h>

#include "model/frame.h"

#define SW_STREAM_HEAD	4u

/* The reader of one connection; all zeros is one at the beginning. */
struct sw_stream {
	uint8_t head[SW_STREAM_HEAD];	/* of the frame that comes */
	uint32_t head_have;		/* bytes of the head that have come */
	uint32_t len;			/* of the frame, once the head is complete */
	uint32_t have;			/* bytes of the frame that have come */
	struct fab_frame *frame;	/* NULL: there was no memory for it */
};

enum sw_stream_result {
	SW_STREAM_MORE,			/* all bytes are used, and a frame is not complete */
	SW_STREAM_FRAME,
	SW_STREAM_NO_MEMORY,		/* a frame was complete, but is lost */
	SW_STREAM_BAD_LENGTH,		/* beyond FAB_MAX_FRAME; the caller gives up */
};

/*
 * Uses some of the @len bytes at @data, both of which it moves on, until a frame is
 * complete. With SW_STREAM_FRAME @frame is that frame, which the caller owns, and its
 * head is as sw_stream_head() sets it.
 */
enum sw_stream_result sw_stream_read(struct sw_stream *s, const uint8_t **data,
				     size_t *len, struct fab_frame **frame);
/* Drops a frame that is not complete; the reader is at the beginning. */
void sw_stream_reset(struct sw_stream *s);
/* Sets the head of a frame to its length, so that head and data can be sent at once. */
void sw_stream_head(struct fab_frame *frame);

#endif /* QHCA_FABRIC_STREAM_H */
