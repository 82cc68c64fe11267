/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A frame that the switch holds. Ports share the frame that is flooded to them, so it
 * has a count of references, which one thread changes.
 */
#ifndef QHCA_FABRIC_FRAME_H
#define QHCA_FABRIC_FRAME_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of an Ethernet header, which a frame must have to be forwarded. */
#define FAB_ETH_HLEN		14
/*
 * The longest frame, in bytes. QEMU's sockets take and send no longer ones (its
 * NET_BUFSIZE).
 */
#define FAB_MAX_FRAME		69632

/*
 * A frame from the destination address to the last byte of its payload, without a
 * checksum. The bytes of @head belong to whoever sends the frame, who thereby puts a
 * short header before the frame without a second buffer.
 */
struct fab_frame {
	uint32_t refs;
	uint32_t len;			/* bytes of data */
	uint8_t head[4];
	uint8_t data[];
};

/*
 * Allocates a frame of @len bytes, at most FAB_MAX_FRAME, which the caller fills.
 * Returns the frame with one reference, or NULL if there is no memory.
 */
struct fab_frame *fab_frame_new(uint32_t len);
/* Takes one more reference. */
struct fab_frame *fab_frame_get(struct fab_frame *frame);
/* Drops a reference; the last one frees the frame. */
void fab_frame_put(struct fab_frame *frame);

/*
 * The bytes that the frame takes on an Ethernet link (IEEE 802.3): it is padded to 60
 * bytes, and has 24 more for the checksum, the preamble and the gap. Rates and queues
 * count these, so that short frames are not free.
 */
uint32_t fab_frame_wire_bytes(const struct fab_frame *frame);

#endif /* QHCA_FABRIC_FRAME_H */
