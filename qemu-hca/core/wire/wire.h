/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames out and in: transmission of RDMA frames, loopback, the injector's
 * place, and steering of received frames to the transport or to Ethernet.
 */
#ifndef QHCA_CORE_WIRE_H
#define QHCA_CORE_WIRE_H

#include "qhca.h"
#include "wire/roce.h"

#define QHCA_ETH_HLEN		14
#define QHCA_VLAN_HLEN		4
#define QHCA_UDP_HLEN		8
#define QHCA_MIN_FRAME		60	/* bytes without FCS: shorter are padded */
#define QHCA_ETHERTYPE_VLAN	0x8100
#define QHCA_ETHERTYPE_IPV4	0x0800
#define QHCA_ETHERTYPE_IPV6	0x86dd
#define QHCA_MIN_ROCE_LEN	16	/* BTH and ICRC */

#define QHCA_LOOP_FRAMES	64	/* a power of two */

struct qhca_wire {
	bool tx_blocked;		/* link full, until qhca_tx_ready() */
	bool tx_no_loop;		/* B sets before tx_end: no copy of this
					   multicast frame to our own members */
	uint8_t *tx_frame;		/* reserved and not yet ended */
	size_t tx_room;
	bool tx_scratch;		/* tx_frame is `scratch`: link is down */
	uint8_t *scratch;		/* one frame, to be sent nowhere */
	uint8_t *rx_scratch;		/* one frame, for the injector to corrupt */
	uint8_t *loop;			/* QHCA_LOOP_FRAMES frames */
	uint32_t loop_len[QHCA_LOOP_FRAMES];
	uint32_t loop_pi, loop_ci;
};

bool qhca_wire_create(struct qhca_hca *hca);	/* false: no memory */
void qhca_wire_destroy(struct qhca_hca *hca);
void qhca_wire_reset(struct qhca_hca *hca);

/*
 * Room for a frame of at most @max_len bytes, from the Ethernet header to the
 * ICRC; NULL: none now, keep the QP scheduled.  Dropped by the next begin
 * unless ended.  Neither blocks nor allocates.
 */
uint8_t *qhca_tx_begin(struct qhca_hca *hca, size_t max_len);
/*
 * The frame begun is complete, @len bytes.  Counts it, lets the injector have
 * it, loops it back when it is for us, or sends it.
 */
void qhca_tx_end(struct qhca_hca *hca, size_t len);
/*
 * The same for a frame of a raw packet QP: it is looped back when it is for us,
 * looped back and sent when a flow rule wants it.  The injector does not see it.
 */
void qhca_tx_raw(struct qhca_hca *hca, size_t len);

/* Deliver looped-back frames and those the injector releases; returns how many. */
unsigned int qhca_wire_run(struct qhca_hca *hca, unsigned int budget);
/* Is there a looped-back frame; could one be delivered now? */
bool qhca_wire_looped(const struct qhca_hca *hca);
bool qhca_wire_pending(const struct qhca_hca *hca);

/*
 * Steer a frame.  On ROCE @info is complete: Ethernet, IP and UDP headers, their
 * lengths and the IPv4 header checksum are right, it is no fragment, and MAC,
 * VLAN and GID (or a multicast membership) are ours.
 */
enum qhca_steer {
	QHCA_STEER_ETH,			/* to the Ethernet receive queue */
	QHCA_STEER_ROCE,
	QHCA_STEER_DROP,		/* RDMA and malformed */
};
enum qhca_steer qhca_wire_steer(struct qhca_hca *hca, const uint8_t *frame,
				size_t len, struct qhca_rx_info *info);

/* One's complement sum (not inverted) of @len bytes, carried on from @sum. */
uint32_t qhca_csum_add(uint32_t sum, const uint8_t *p, size_t len);
uint16_t qhca_csum_fold(uint32_t sum);	/* folded and inverted */

#endif /* QHCA_CORE_WIRE_H */
