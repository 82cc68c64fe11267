/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Packets as a peer would build them, or almost.
 */
#ifndef QHCA_FUZZ_FRAME_H
#define QHCA_FUZZ_FRAME_H

#include "guard.h"
#include "input.h"
#include "wire/pkt.h"

struct frame {
	size_t len;
	uint8_t data[GUARD_FRAME];
};

/* All headers, a payload that counts up from @pattern, room for the ICRC. */
void frame_build(struct frame *f, const struct hca_path *path,
		 const struct hca_pkt *pkt, uint8_t pattern);

#define FRAME_LENGTHS	1u
#define FRAME_CHECKSUM	2u
#define FRAME_ICRC	4u
#define FRAME_ALL	7u
/* Make these right for what the frame is now. */
void frame_fix(struct frame *f, uint8_t what);

/*
 * The device gets what another one would say to it about bundles, or almost: the source has
 * the number 1, and the token is often that of the device's own question.
 */
void frame_send_message(struct guard *g, struct in *in);
/* The device gets several segments of TCP in one frame, or almost. */
void frame_send_large(struct guard *g, struct in *in);

#endif /* QHCA_FUZZ_FRAME_H */
