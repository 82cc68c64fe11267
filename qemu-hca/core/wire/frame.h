/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * RoCEv2 frames out: headers, padding, the invariant CRC.
 */
#ifndef HCA_CORE_FRAME_H
#define HCA_CORE_FRAME_H

#include "qhca.h"
#include "wire/bundle.h"
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
	bool ack_req, solicited;
	bool joins;			/* the packets that wait: it is only payload */
	uint32_t room;			/* for payload: more than its own if others may join it */
};

/**
 * struct hca_open_bundle - packets that one frame has by now (bundle.h)
 * @frame: the frame; data NULL: there is none, or it has been sent
 * @each: bytes of payload of each packet but the last
 * @next: the PSN of the packet that it could go on with
 * @packets: how many it has
 */
struct hca_open_bundle {
	struct hca_frame frame;
	uint32_t each, next, packets;
};

/**
 * struct hca_frame_to - where a sequence of packets goes
 * @path: of all of them; who changes it clears @len
 * @headers: the Ethernet, IP and UDP headers that all of them have, whose lengths are
 *	those of the packet before
 * @len: bytes of @headers; 0: they have not been built yet
 * @ip_off: where the IP header begins
 * @udp_len: bytes of UDP payload of the packet before
 * @left: who begins a packet: what its message has from there on, bytes
 * @bundle: packets that wait to be sent, see hca_frame_finish()
 *
 * It is on the stack of a function that sends packets and calls nothing that executes
 * commands: the path, the GID and the port cannot change while it exists.
 */
struct hca_frame_to {
	struct hca_path path;
	uint8_t headers[HCA_MAX_PATH_LEN];
	size_t len, ip_off, udp_len;
	uint32_t left;
	struct hca_open_bundle bundle;
};

/* Nothing has been built yet; the caller fills in the path. */
static inline void hca_frame_to_start(struct hca_frame_to *to)
{
	to->len = 0;
	to->left = 0;
	to->bundle.frame.data = NULL;
}

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
/*
 * The packet is complete.  It goes at once, or waits for those that may join it.  Returns
 * the bytes that it adds to what goes over the wire.
 */
size_t hca_frame_end(struct hca_fn *fn, struct hca_frame_to *to,
		     struct hca_frame *f);
/*
 * May a turn go on that has sent @spent packets?  The packets that are left of a bundle go beyond
 * the budget: a link between two QEMUs costs as much for half of a bundle.
 */
static inline bool hca_frame_goes_on(const struct hca_frame_to *to,
				     unsigned int spent, unsigned int budget)
{
	return spent < budget || (to->bundle.frame.data &&
				  spent < budget + HCA_BUNDLE_PACKETS);
}
/* Send what waits.  To be called before @to is left, and before its path changes. */
void hca_frame_finish(struct hca_fn *fn, struct hca_frame_to *to);

/* Largest RoCE MTU that fits the port's Ethernet MTU, bytes. */
uint32_t hca_port_mtu(const struct hca_fn *fn);

#endif /* HCA_CORE_FRAME_H */
