/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Large segments of TCP: consecutive segments of one frame that software has given, in one
 * frame on the wire.
 *
 * A link between two QEMUs costs as much for a small frame as for a large one, so a device
 * that segments TCP leaves some segments together for a peer that takes them (peers.h).  A
 * large segment is a right packet of IP and TCP, with its checksums, but longer than the MTU;
 * behind the packet is a trailer, which tells it from any other frame and says how much payload
 * each of its segments has.  The receiver makes of it the frames that the sender would have
 * sent, before anybody looks at it.
 */
#ifndef HCA_CORE_LARGE_SEGMENT_H
#define HCA_CORE_LARGE_SEGMENT_H

#include "wire/tso.h"

struct hca_fn;

/* More are none: whoever receives a frame handles all its segments at once. */
#define HCA_LARGE_SEGMENTS	64

/*
 * Bytes of payload that the next frame carries of a frame whose headers, which were parsed, are
 * at @hdr: those of the segment that begins with byte @off of the payload, or of several, at most
 * @most, if the peer takes them in one frame.  @tci: of the tag that is inserted, HCA_VLAN_NONE:
 * none.  It may send a question to the peer.
 */
uint32_t hca_large_payload(struct hca_fn *fn, const struct hca_tso *tso,
			   const uint8_t *hdr, uint16_t tci, uint32_t off,
			   unsigned int most);
/*
 * Is the frame a large segment?  Then @tso is as hca_tso_parse() leaves it, but without the
 * trailer in its length, and @hdr, which has room for QHCA_MAX_TSO_HDR bytes, has the headers as
 * hca_tso_finish() needs them.  No segment is longer than QHCA_MAX_FRAME.
 */
bool hca_large_parse(const uint8_t *frame, size_t len, struct hca_tso *tso,
		     uint8_t *hdr);

#endif /* HCA_CORE_LARGE_SEGMENT_H */
