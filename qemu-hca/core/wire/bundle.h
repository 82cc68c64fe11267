/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bundles: consecutive packets of one message in one frame.
 *
 * A link between two QEMUs costs as much for a small frame as for a large one, so a device
 * joins packets for a peer that takes them (peers.h).  A bundle looks like one packet with a
 * payload of several: its headers are those of the first packet, but that the operation
 * says whether the bundle ends the message, with the AETH that the last READ response has, and
 * that the solicited event and the request for an acknowledgement are those of the last.
 * The version of the transport header, 1, tells a bundle from a packet: whoever does not know
 * bundles drops it, as packets have 0.  The seven reserved bits beside AckReq say what each
 * packet but the last carries.  The PSNs follow each other from that in the BTH on, and one
 * ICRC covers all of it.
 *
 * The transport knows nothing of bundles: the sender's frame.c joins what the transport sends
 * anyway, and the receiver takes a bundle apart before anybody looks at it.
 */
#ifndef HCA_CORE_BUNDLE_H
#define HCA_CORE_BUNDLE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/pkt.h"

#define HCA_BUNDLE_MIN		(2u * 256)	/* bytes of payload */
/* More are no bundle: whoever receives a frame handles all its packets at once. */
#define HCA_BUNDLE_PACKETS	32

/* What the reserved bits of the BTH say of packets with @mtu bytes, a power of two. */
uint8_t hca_bundle_code(uint32_t mtu);
/*
 * May a packet of wire opcode @next join a bundle of @opcode whose headers, from the BTH on, have
 * @header_len bytes?  @joined: the opcode that the bundle has then.  false: the packet has headers
 * that the bundle lacks, or belongs to another message.
 */
bool hca_bundle_joins(uint8_t opcode, size_t header_len, uint8_t next, uint8_t *joined);
/* The opcode of a bundle that begins with a packet of @opcode and ends the message. */
uint8_t hca_bundle_to_end(uint8_t opcode);
/* How many packets has @pkt, whose version is that of a bundle?  0: it is not what one is. */
unsigned int hca_bundle_packets(const struct hca_pkt *pkt);
/* Packet @i of a bundle of @num. */
void hca_bundle_packet(const struct hca_pkt *bundle, unsigned int i,
		     unsigned int num, struct hca_pkt *pkt);
/*
 * Make the frame of a packet of a bundle, with its ICRC.  @bundle: the frame of the bundle; @to
 * has room for QHCA_MAX_FRAME.  Returns its length.
 */
size_t hca_bundle_frame(const uint8_t *bundle, size_t ip_off, size_t bth_off,
			const struct hca_pkt *pkt, uint8_t *to);

#endif /* HCA_CORE_BUNDLE_H */
