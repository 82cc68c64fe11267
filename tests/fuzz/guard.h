/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A host that checks the behaviour of the device.
 *
 * It uses the small driver of tests/host with other host operations. These
 * operations know where the device may write and how many accesses one call may
 * make, can change memory between two reads of the device, and add all that
 * leaves the device to a digest.
 *
 * Two runs of one input must have the same digest, though one uses a new
 * device and the other one that has been reset, and though what neither has
 * written (stack, heap, room for frames) holds other bytes.  Otherwise
 * something survives a reset, or memory that was never written goes out.
 */
#ifndef QHCA_FUZZ_GUARD_H
#define QHCA_FUZZ_GUARD_H

#include "hca.h"
#include "minidrv.h"
#include "target.h"
#include "wire/pkt.h"

#define GUARD_MEM	(3u << 19)	/* bytes of guest memory */
#define GUARD_BLOCK	64u		/* granularity of what the device may write */
#define GUARD_FRAMES	128		/* on the wire; more are lost */
#define GUARD_CHANGES	8
#define GUARD_DEVMEM	4096
/* All devices take bundles, some of which are longer than any other frame. */
#define GUARD_BUNDLE	10240u
#define GUARD_FRAME	(GUARD_BUNDLE + HCA_MAX_OVERHEAD + HCA_VLAN_HLEN)
_Static_assert(GUARD_FRAME > QHCA_MAX_FRAME, "room for any frame");

/* How this input is being run. */
struct guard_mode {
	bool fresh;			/* a new device, freed afterwards */
	/* somebody compares this run's digest with another's */
	bool compared;
	bool thorough;			/* stain the stack too */
	uint8_t stain;
};
extern struct guard_mode guard_mode;

struct guard_frame {
	size_t len;
	bool message;			/* of the device to a peer, not software's frame */
	uint8_t data[GUARD_FRAME];
};

struct guard {
	struct md *md;
	struct qhca_hca *hca;
	size_t at_rest;			/* bytes of heap of a reset device */
	uint64_t digest;

	bool anything;			/* the device may write anywhere */
	uint8_t writable[GUARD_MEM / GUARD_BLOCK];
	uint64_t fail_in;		/* DMA: the n-th from now fails */
	bool fail_on;			/* ... and all accesses after it */
	/* in the n-th access software writes the reset register */
	uint64_t reset_in;
	/* the byte changes once the device has read it */
	struct {
		uint64_t addr;		/* 0: unused */
		uint8_t value;
	} change[GUARD_CHANGES];

	bool memory;			/* frames come in memory that their sender changes */
	uint8_t *shared;		/* the one that is being received */
	size_t shared_len;
	uint64_t dma;			/* accesses asked for so far */
	uint64_t dma_left;		/* of the call being made */
	uint64_t frames_left;
	unsigned int messages_left;	/* the same of messages of the peers */
	bool blocked;			/* the link takes no frame */
	bool ours;			/* frames are the transport's, or raw: check */
	/* when room was asked for: raw_tx_packets, and the messages to peers */
	uint64_t raw_before, messages_before;
	struct guard_frame wire[GUARD_FRAMES];
	unsigned int first, num;
	uint8_t devmem[GUARD_DEVMEM];
};

/* The configuration of all fuzzing: small tables, so that bounds are near. */
void guard_config(struct qhca_config *cfg);

/*
 * Host @number (1, 2, 3), its memory zero, its device reset, the link up.  After
 * the input: guard_give(), in any order.
 */
struct guard *guard_take(unsigned int number);
void guard_give(struct guard *g);
/* Checks, when all hosts are given back, that the engine's heap has not grown. */
void guard_check_heap(void);
/* Do not report the memory of hosts that a failed test has not given back. */
void guard_forget(void);

/* Lets the device write whole blocks; at first it may write none. */
void guard_allow(struct guard *g, uint64_t addr, uint64_t len);
void guard_allow_buf(struct guard *g, const struct md_buf *b, uint64_t off,
		     uint64_t len);
/* Lets the device write a page, or forbids it. */
void guard_page(struct guard *g, uint64_t addr, bool allowed);
/* Lets the device write contexts, EQ 0, the command slot and the output mailbox. */
void guard_allow_driver(struct guard *g);

/* Calls into the engine, each with a bound on what it may do. */
struct qhca_run_result guard_run(struct guard *g, unsigned int budget);
void guard_rx(struct guard *g, const uint8_t *frame, size_t len);
void guard_doorbell(struct guard *g, uint32_t page, uint32_t offset,
		    uint64_t value);
void guard_reg_write(struct guard *g, uint32_t offset, uint32_t value);
uint32_t guard_reg_read(struct guard *g, uint32_t offset);
/* Clears ENABLE and waits until the device has finished the command that it executes. */
void guard_disable(struct guard *g);
/*
 * Makes a command of the driver, as md_cmd() does, on a device that may die of it.
 * Returns the status, or -1 if the device does not answer.
 */
int guard_cmd(struct guard *g, uint16_t opcode, uint32_t index, uint32_t param,
	      const void *in, uint32_t in_len);
void guard_observe(struct guard *g);	/* the monitor's functions */
/* Runs the device until it has no work left; the clock does not advance. */
void guard_settle(struct guard *g);
void guard_unblock(struct guard *g);

/* Oldest frame on the wire, NULL: none; good until the next call. */
const struct guard_frame *guard_sent(struct guard *g);

void guard_digest(struct guard *g, const void *data, size_t len);

/*
 * Checks that the device executes commands, or is dead and does so after a reset.  Leaves
 * a device that is reset, with its command queue enabled.
 */
void guard_check_alive(struct guard *g);

/* Reports a finding and aborts. */
void guard_fail(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));

#endif /* QHCA_FUZZ_GUARD_H */
