/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The Ethernet half of the adapter: queues, each with a transmit ring, a receive
 * ring, a receive completion ring and a record.
 *
 * The engine has one caller at a time, so several queues make the device no faster: they
 * divide the work of software among processors.  Queues with frames to send take turns.
 *
 * Receiving never blocks the link, for RDMA frames share it: a frame that
 * finds no buffer is dropped and counted (eth_rx_no_buffer).
 *
 * With stage 2, a fragment or a buffer may be absent.  The device asks the host domain
 * for it (hca_stage2.eth), for one at a time in a function.  Until the answer the
 * transmit side waits, and a frame for an absent buffer is dropped.  The device looks
 * at the buffers that are posted, so that it asks before a frame needs them.
 *
 * The arm doorbell carries the low 16 bits of what software has consumed: receive
 * completions and tx_ci.  If either has moved on the interrupt is raised at
 * once, else with the next change; then the queue is no longer armed.
 */
#ifndef HCA_CORE_ETH_H
#define HCA_CORE_ETH_H

#include "qhca.h"
#include "handler.h"
#include "wire/rss.h"

#define HCA_NUM_ETH_QUEUES	16
#define HCA_ETH_LOOK_AHEAD	64	/* buffers that the device looks at in one go */

struct hca_ethq {
	bool live, armed;
	bool stopped;			/* transmit: the ring is of no use */
	bool partial;			/* transmit: waits for a frame's EOP */
	bool skip;			/* drop descriptors up to the next EOP */
	bool waits;			/* transmit: for a page of stage 2 */
	uint8_t log_tx, log_rx;
	uint16_t vector;
	uint64_t tx_base, rx_base, rxc_base, rec_base;
	uint32_t tx_pi, tx_ci;		/* free-running */
	uint32_t tx_ci_told;		/* as in the record */
	uint32_t tx_sent;		/* payload of the frame at tx_ci that is sent in
					   segments, of which some have been */
	uint32_t rx_pi;			/* last fetched from the record */
	uint32_t rx_ci;			/* buffers used = completions written */
	uint32_t rx_looked;		/* buffers looked at, whether they are present */
};

/**
 * struct hca_eth - the Ethernet queues of a function.
 * @posted: queues for which hca_ethq_update() has found something to send, by number
 * @first: the lowest live queue; 0 if there is none
 * @turn: the queue that sends first, if it has something to send
 * @rss: which queue gets a frame
 */
struct hca_eth {
	struct hca_ethq queue[HCA_NUM_ETH_QUEUES];
	uint32_t posted;
	uint8_t first, turn;
	struct hca_rss rss;
	uint32_t num_mcast;
	uint8_t mcast[QHCA_MAX_ETH_MCAST][6];
};

void hca_eth_reset(struct hca_fn *fn);
/* Without ETH_RSS there is one queue. */
unsigned int hca_eth_num_queues(const struct hca_fn *fn);
/*
 * A frame that was not steered to the transport; false: the filter does not want
 * it.
 */
bool hca_eth_rx(struct hca_fn *fn, const uint8_t *frame, size_t len);
/* Send at most @budget frames; returns how many were taken from the ring. */
unsigned int hca_eth_run(struct hca_fn *fn, unsigned int budget);
bool hca_eth_pending(const struct hca_fn *fn);
/* The host domain has answered hca_stage2.eth. */
void hca_eth_resume(struct hca_fn *fn);
void hca_eth_tx_doorbell(struct hca_fn *fn, uint64_t value);
void hca_eth_arm_doorbell(struct hca_fn *fn, uint64_t value);

/* The queue of this number, if it is live; NULL: it is not. */
struct hca_ethq *hca_ethq_get(struct hca_fn *fn, uint64_t number);
/*
 * The queue has changed: it was created or destroyed, has something to send that it had
 * not, or the other way round.
 */
void hca_ethq_update(struct hca_fn *fn, struct hca_ethq *q);
/* Raise the queue's vector, and disarm it. */
void hca_ethq_interrupt(struct hca_fn *fn, struct hca_ethq *q);
/*
 * Ask the host domain for what fn->mem.fault describes.  false: it has answered that
 * there is no such page.  That is for this frame or descriptor alone: the page may be
 * there when the next one needs it.
 */
bool hca_ethq_ask(struct hca_fn *fn, enum qhca_fault_cause cause);

/* The field of struct qhca_ethq_config that is not as it must be, or -1: none. */
int hca_ethq_fault(const struct hca_fn *fn, const struct hca_ethq *q);

enum qhca_cmd_status hca_cmd_set_mcast(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_set_rss(struct hca_fn *fn,
				     struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_create_ethq(struct hca_fn *fn,
					 struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_destroy_ethq(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_ETH_H */
