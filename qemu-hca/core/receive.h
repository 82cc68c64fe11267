/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames in: steering to the transport or to Ethernet, and the frames that wait
 * in the device, looped back or held by the injector.
 */
#ifndef HCA_CORE_RECEIVE_H
#define HCA_CORE_RECEIVE_H

#include "qhca.h"
#include "wire/roce.h"

struct hca;
struct hca_fn;

/* Deliver looped-back frames and those the injector releases; returns how many. */
unsigned int hca_wire_run(struct hca *hca, unsigned int budget);
/* Is there a looped-back frame; could one be delivered now? */
bool hca_wire_looped(const struct hca *hca);
bool hca_wire_pending(const struct hca *hca);

/*
 * Steer a frame.  On ROCE @info is complete: Ethernet, IP and UDP headers, their
 * lengths and the IPv4 header checksum are right, it is no fragment, and MAC,
 * VLAN and GID (or a multicast membership) are ours.
 */
enum hca_steer {
	HCA_STEER_ETH,			/* to the Ethernet receive queue */
	HCA_STEER_ROCE,
	HCA_STEER_DROP,			/* RDMA and malformed */
};
enum hca_steer hca_wire_steer(struct hca_fn *fn, const uint8_t *frame,
			      size_t len, struct hca_rx_info *info);

#endif /* HCA_CORE_RECEIVE_H */
