/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames out: transmission of RDMA frames, loopback, the injector's place.
 */
#ifndef HCA_CORE_TRANSMIT_H
#define HCA_CORE_TRANSMIT_H

#include "qhca.h"
#include "wire/places.h"

struct hca_inject_frame;

#define HCA_LOOP_FRAMES		64	/* a power of two */

struct hca_wire {
	bool tx_blocked;		/* link full, until qhca_tx_ready() */
	bool tx_no_loop;		/* B sets before tx_end: no copy of this
					   multicast frame to our own members */
	uint8_t *tx_frame;		/* reserved and not yet ended */
	uint8_t *tx_slot;		/* the link's room for it, if it is built in `scratch`
					   all the same */
	size_t tx_room;
	bool tx_scratch;		/* tx_frame is `scratch`: link is down */
	bool shared;			/* the other end of the link can see and change its
					   room, see qhca_link_is_shared() */
	bool no_icrc;			/* a packet goes over the link without ICRC, that
					   is with 0, see qhca_link_without_icrc() */
	uint8_t *scratch;		/* one frame, to be sent nowhere or perhaps not */
	uint8_t *rx_scratch;		/* one frame, for the injector to corrupt */
	uint8_t *untagged;		/* one frame, without the tag of its VF */
	uint8_t *packet;		/* one frame: a packet of a bundle */
	uint8_t *private;		/* one frame, or its headers, out of memory that
					   the sender can change */
	uint8_t *loop;			/* HCA_LOOP_FRAMES frames */
	struct hca_looped {
		uint64_t to;		/* functions, bit by GVMI */
		uint32_t len;
		uint16_t from;		/* GVMI */
	} looped[HCA_LOOP_FRAMES];
	uint32_t loop_pi, loop_ci;
	struct hca_places loop_places;	/* of the senders */
	unsigned int copies;		/* receivers of frames beyond the first: the
					   workers zero and charge them */
};

bool hca_wire_create(struct hca *hca);		/* false: no memory */
void hca_wire_destroy(struct hca *hca);
/* The longest frame that the adapter sends or takes, bytes. */
size_t hca_wire_longest(const struct hca *hca);
/* The function is reset or dead: the frames that are to loop to it are dropped. */
void hca_wire_forget(struct hca_fn *fn);
/*
 * Is there room in the loopback queue for a frame of the function?  It may take no more
 * places than its share (places.h).
 */
bool hca_wire_has_room(const struct hca_fn *fn);
/* The oldest frame of the loopback queue has been delivered. */
void hca_wire_looped_done(struct hca *hca);
/* Could the function send a frame of an Ethernet queue now? */
bool hca_wire_takes_eth(const struct hca_fn *fn);

/*
 * Reserve room for a frame of at most @max_len bytes, from the Ethernet header
 * to the ICRC.  NULL: there is no room now, and the QP must stay scheduled.
 * The next begin drops a frame that was not ended.  This neither blocks nor
 * allocates.
 */
uint8_t *hca_tx_begin(struct hca_fn *fn, size_t max_len);
/*
 * The packet begun is complete and has @len bytes; its IP header is at @ip_off and has
 * @ip_len bytes.  Counts it, gives it to the injector, and sends it to functions of this
 * device, or to the wire, or to both.
 */
void hca_tx_end(struct hca_fn *fn, size_t len, size_t ip_off, size_t ip_len);
/*
 * Send a frame of a raw packet QP: the device loops it back if it is for this
 * function, and loops it back and sends it if a flow rule matches it.  The
 * injector does not change it.
 */
void hca_tx_raw(struct hca_fn *fn, size_t len);
/*
 * The same for a frame of an Ethernet queue, which is never looped back.  begin: NULL
 * with no room; end: false if the frame goes nowhere.
 */
uint8_t *hca_tx_eth_begin(struct hca_fn *fn, size_t max_len);
bool hca_tx_eth_end(struct hca_fn *fn, size_t len);
/* Can a frame of an Ethernet queue reach anybody? */
bool hca_tx_eth_linked(const struct hca_fn *fn);
/* Send a frame that the injector held; false: no room now. */
bool hca_tx_release(struct hca_fn *fn, const struct hca_inject_frame *f);

#endif /* HCA_CORE_TRANSMIT_H */
