/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RoCEv2 frames out: headers, padding, the invariant CRC.
 */
#ifndef HCA_CORE_FRAME_H
#define HCA_CORE_FRAME_H

#include "qhca.h"
#include "wire/pkt.h"

struct hca_fn;

struct hca_frame {
	uint8_t *data;			/* Ethernet header first */
	uint8_t *payload;
	size_t ip_off;
	size_t ip_len;
	size_t bth_off;
	uint32_t payload_len;
	uint32_t qpn, psn;		/* for the trace */
	uint8_t opcode;
};

/**
 * struct hca_frame_to - where a sequence of packets goes
 * @path: of all of them; who changes it clears @len
 * @headers: the Ethernet, IP and UDP headers that all of them have, whose lengths are
 *	those of the packet before
 * @len: bytes of @headers; 0: they have not been built yet
 * @ip_off: where the IP header begins
 * @udp_len: bytes of UDP payload of the packet before
 *
 * It is on the stack of a function that sends packets and calls nothing that executes
 * commands: the path, the GID and the port cannot change while it exists.
 */
struct hca_frame_to {
	struct hca_path path;
	uint8_t headers[HCA_MAX_PATH_LEN];
	size_t len, ip_off, udp_len;
};

/* false: the source GID is not valid. */
bool hca_path_of_av(struct hca_fn *fn, const struct qhca_av *av,
		    uint32_t qpn, uint32_t dest_qpn, struct hca_path *path);
/*
 * Begin a packet of QP @qpn and write all its headers, those below the BTH by a copy of
 * the headers of the packet before.  The caller fills
 * @f->payload with @pkt->payload_len bytes.  false: the link has no room now.  A
 * packet that is begun and not ended is forgotten.
 */
bool hca_frame_begin(struct hca_fn *fn, struct hca_frame_to *to,
		     const struct hca_pkt *pkt, uint32_t qpn,
		     struct hca_frame *f);
/* Pad, ICRC, send.  Returns the length of the frame. */
size_t hca_frame_end(struct hca_fn *fn, struct hca_frame *f);

/* Largest RoCE MTU that fits the port's Ethernet MTU, bytes. */
uint32_t hca_port_mtu(const struct hca_fn *fn);

#endif /* HCA_CORE_FRAME_H */
