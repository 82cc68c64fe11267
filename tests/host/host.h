/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The fake host: what the engine sees of a machine, and nothing of a driver.
 *
 * Its memory is one array, and a bus address is an offset into it; the first page
 * does not exist.  Each access of the device is counted, may be watched and may be
 * made to fail.  Interrupts are counted by vector.  A frame that the device sends
 * goes to a function, or is recorded when there is none.
 *
 * The unit tests use the host as it is, with commands and rings that they make by
 * hand.  The simulator and the fuzz targets put a small driver on top (minidrv.h).
 *
 * A call that cannot succeed ends the program with a message.
 */
#ifndef QHCA_HOST_H
#define QHCA_HOST_H

#include "qhca.h"

#define HOST_PAGE	4096u
#define HOST_MAX_SENT	256
#define HOST_RUN_LIMIT	1000000

struct host;
struct hca_fn;

/* What the engine calls the host for. */
enum host_call { HOST_DMA, HOST_IRQ, HOST_TX };

/* DMA accesses that touch @len bytes from bus address @first. */
struct host_watch {
	uint64_t first, len;
	uint64_t reads, writes;
	struct host_watch *next;
};

/*
 * A page of machine memory that the host domain has lent to a virtual function with
 * stage 2.  Its content stays where the function's software sees it, so that the page
 * may come and go; a DMA by any other machine address ends the program.
 */
struct host_frame {
	uint64_t page;			/* bus address in that function */
	uint16_t gvmi;			/* 0: given up */
};

#define HOST_FRAMES	(1ull << 40)	/* machine address of the first frame */

struct sent {
	size_t len;
	uint8_t data[QHCA_MAX_BUNDLE_FRAME];
};

struct host {
	struct qhca_hca *hca;
	/*
	 * Unit tests look into the engine: the host's function.  No file of this folder
	 * uses it.
	 */
	struct hca_fn *fn;
	uint64_t now;			/* ns; the engine is given host_clock() */
	uint64_t skew;			/* of the PF's host: its clock is so far ahead */
	struct qhca_config *made[QHCA_MAX_VFS + 1]; /* ... and what functions it has */
	/* Of the function: each function of an adapter has a host of its own. */
	uint16_t gvmi;
	struct host *of_fn[QHCA_MAX_VFS + 1];	/* of the PF's host; others: the PF's */

	bool no_dma;			/* Bus Master Enable is clear */
	uint8_t *ram;
	uint64_t ram_len;
	uint64_t first;			/* where the driver's memory begins */
	uint64_t next;			/* the first bus address not allocated */

	/* DMA: what was counted, and which accesses fail */
	uint64_t reads, writes, failed;
	uint64_t fail_in;		/* the n-th access from now; 0: none */
	bool fail_on;			/* ... and all accesses after it */
	uint64_t bad_first, bad_last;	/* bus addresses that fail; 0, 0: none */
	struct host_watch *watches;	/* added by host_watch() */

	unsigned int irqs[QHCA_MAX_VECTORS];

	/* NULL, or called in each call of the engine: what software does meanwhile */
	void (*meanwhile)(struct host *h, enum host_call call);
	void *meanwhile_arg;

	/* the link */
	bool tx_full;			/* it has no room */
	bool (*tx_room)(void *arg);	/* NULL, or whether it has */
	void (*tx)(void *arg, const uint8_t *frame, size_t len);
	void *tx_arg;
	uint8_t frame[QHCA_MAX_BUNDLE_FRAME];	/* the room for the frame being made */
	size_t reserved;
	struct sent *sent;		/* without tx(): the first HOST_MAX_SENT */
	unsigned int num_sent;

	/* NULL, or receives what the engine traces */
	void (*trace)(struct host *h, enum qhca_trace_id id, uint64_t a,
		      uint64_t b, uint64_t c, uint64_t d);

	/* NULL, or called when the engine is idle: false if there was nothing to do */
	bool (*idle)(struct host *h);
	void *idle_arg;

	/* stage 2 (stage2.c): of the physical function, and of a virtual one */
	struct host_frame *frames;
	uint32_t num_frames, cap_frames;
	uint64_t s2_root;		/* 0: no stage 2 */
	uint64_t s2_node;		/* its leaf nodes, one behind the other */
	uint16_t s2_attr;		/* the uplink attribute that DMA must carry */

	uint64_t slots;			/* the command queue */
	struct qhca_init_hca init;	/* of the last INIT_HCA */
};

/* The time on the machine of @h, of which each has its own. */
static inline uint64_t host_clock(const struct host *h)
{
	return h->now + h->of_fn[0]->skew;
}

/* Gives @h memory and an HCA whose link is up and which is not enabled. */
void host_open(struct host *h, uint64_t ram_len, const struct qhca_config *cfg);
void host_close(struct host *h);
/*
 * Gives @h memory and VF @gvmi of the adapter of @pf, which is enabled in PCI; @pf has
 * the link.  @h is closed before @pf is, and its function is not used any more then.
 */
void host_open_vf(struct host *h, uint64_t ram_len, struct host *pf,
		  uint16_t gvmi, const struct qhca_config *cfg);
void host_close_vf(struct host *h);

/* Zeroed memory; the pointer for a bus address. */
uint64_t host_alloc(struct host *h, uint64_t len, uint64_t align);
void *host_ptr(struct host *h, uint64_t addr);

/* Counts the accesses to @len bytes at @addr from now on. */
void host_watch(struct host *h, struct host_watch *w, uint64_t addr,
		uint64_t len);

/* Lets the engine work until it has nothing to do now, or at @now. */
void host_run(struct host *h);
void host_run_at(struct host *h, uint64_t now);

/*
 * The machine moves: the HCA of @pf, with all its functions, is frozen unless it is
 * already, saved and destroyed, and another one, on a machine whose clock is ahead by
 * @skew, loads that and goes on.  An access of the frozen HCA, or a state that is another one when it is
 * saved again, ends the program.  Returns the size of the image.
 */
size_t host_migrate(struct host *pf, uint64_t skew);

/* ---- commands (command.c) */

/* Allocates a queue of 2^@log_slots commands and enables the device. */
void host_enable_slots(struct host *h, unsigned int log_slots);
void host_enable(struct host *h);	/* ... of as many as there can be */
/* Writes a slot, which the device then owns, and rings its doorbell. */
struct qhca_cmd_slot *host_cmd_begin(struct host *h,
				     const struct qhca_cmd_slot *slot,
				     unsigned int number);
/* The same, runs the engine until it is idle, and returns the slot. */
struct qhca_cmd_slot host_cmd_slot(struct host *h,
				   const struct qhca_cmd_slot *slot,
				   unsigned int number);
/* A command in slot 0 with mailboxes of its own. */
enum qhca_cmd_status host_cmd(struct host *h, enum qhca_opcode opcode,
			      uint32_t index, uint32_t param, const void *in,
			      uint32_t in_len, void *out, uint32_t out_len);

/* ---- from enabled to ready (tables.c) */

enum qhca_cmd_status host_init_hca(struct host *h,
				   const struct qhca_init_hca *in);
/* Maps all chunks of a table, one after the other; the address of the first. */
uint64_t host_map_table(struct host *h, enum qhca_table table);

/* ---- stage 2 of a virtual function (stage2.c) */

/*
 * Gives @vf a row with stage 2 and nothing present; @pf is initialised.  The frames of
 * an earlier row are given up.
 */
void host_s2_open(struct host *pf, struct host *vf, uint16_t uplink_attr);
/* Gives @vf a row without stage 2; its addresses are machine addresses again. */
void host_s2_close(struct host *pf, struct host *vf);
/* Makes the page at bus address @addr present, in a frame that it never had. */
void host_s2_map(struct host *pf, struct host *vf, uint64_t addr, uint64_t bits);
/* Changes the bits of a page that is present; nothing is invalidated. */
void host_s2_bits(struct host *pf, struct host *vf, uint64_t addr, uint64_t bits);
/* Takes the page away, as the host domain does; its frame is given up. */
void host_s2_unmap(struct host *pf, struct host *vf, uint64_t addr);
/* Takes all pages away, pinned ones included. */
void host_s2_unmap_all(struct host *pf, struct host *vf);
/* The lines of so many bytes. */
void host_s2_invalidate(struct host *pf, struct host *vf, uint64_t addr,
			uint64_t len);
bool host_s2_present(struct host *pf, struct host *vf, uint64_t addr);
/* The entry: QHCA_ATE_*. */
uint64_t host_s2_entry(struct host *pf, struct host *vf, uint64_t addr);

/* ---- rings of EQs and CQs, made by hand (ring.c) */

struct ring {
	uint64_t base, record;
	unsigned int log_depth;
	struct qhca_buf buf;
	uint32_t rec_offset;
};
/* Contiguous room for 2^log_depth entries of 64 bytes and a record. */
struct ring host_ring(struct host *h, unsigned int log_depth);
enum qhca_cmd_status host_create_eq(struct host *h, uint32_t eqn,
				    const struct ring *ring, uint16_t vector);
enum qhca_cmd_status host_create_cq(struct host *h, uint32_t cqn,
				    const struct ring *ring, uint32_t eqn);
struct qhca_eqe *host_eqe(struct host *h, const struct ring *ring, uint32_t i);
struct qhca_cqe *host_cqe(struct host *h, const struct ring *ring, uint32_t i);
/* Has the device written entry @i (its phase is that of its pass)? */
bool host_eqe_valid(struct host *h, const struct ring *ring, uint32_t i);
bool host_cqe_valid(struct host *h, const struct ring *ring, uint32_t i);
void host_set_ci(struct host *h, const struct ring *ring, uint32_t ci);

void host_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

#endif /* QHCA_HOST_H */
