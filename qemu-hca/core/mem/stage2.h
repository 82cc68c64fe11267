/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The second stage of translation (seed 004; Documentation/hardware.rst, Stage 2).
 *
 * Problem.  A virtual machine that owns a function writes bus addresses that are its
 * idea of physical memory.  Each of them must lead to memory of that machine, or
 * nowhere, and the machine's memory is not pinned.
 *
 * Idea.  The host domain gives the function a row of the GVM identifier table, with the
 * root of translation tables in its own memory.  Every access that the function makes
 * goes through them, in one of two ways:
 *
 *   payload        (hca_s2_map(), hca_s2_fetch()) may find no page.  This is a page
 *                  fault, which fn->mem.fault describes, and the caller waits for
 *                  the host domain as for a page of stage 1.
 *   the device's   (hca_dma_read() and its like, through hca_s2_read()) must find
 *   own            a page that is present and pinned.  Commands see to that before
 *                  they execute (pin.h); otherwise the function dies.
 *
 * Invariants.
 *
 *  - hca_machine_read() and its like take machine addresses.  Of a function whose mode
 *    is not HCA_S2_OFF, only hca_s2_page() makes those, from the row as it is now.
 *  - A function dies before its row changes, and is HCA_S2_DEAD from then on: not
 *    even the event that reports its death is written.
 *  - The tag of a line has the second key: the GVMI, and the generation of its row.
 *  - A cached line never refuses: if it lacks what an access needs, the nodes are
 *    walked again, as in stage 1.
 *
 * Example.  Function 3 has page_shift 12 and one level.  The entry of its bus page
 * 0x10 is machine page 0x7700, present and writable but not pinned.  A packet that
 * writes to bus address 0x10040 is written to 0x7700040.  If software names 0x10000
 * as the ring of a CQ, CREATE_CQ is held, and the host domain gets a pin request.  If
 * software changes a node so that the ring leads there later, the next CQE is not
 * written, and the function dies.
 */
#ifndef HCA_CORE_STAGE2_H
#define HCA_CORE_STAGE2_H

#include "qhca.h"
#include "mem/cache.h"
#include "mem/protection.h"

struct hca;
struct hca_fn;

/* A row of the GVM identifier table, and of the uplink table. */
struct hca_gvm {
	uint64_t base;			/* machine address of the root node */
	uint32_t generation;
	uint16_t uplink_attr;
	uint8_t page_shift, levels;
	bool on;			/* QHCA_GVM_STAGE2 */
	bool lost;			/* the host domain has gone: on, and of no use */
};

/* May the row of a function be like this? */
bool hca_gvm_valid(const struct hca_gvm *row);

enum hca_s2_mode {
	HCA_S2_OFF,			/* bus addresses are machine addresses */
	HCA_S2_ON,
	HCA_S2_LOST,			/* dies at its first access */
	HCA_S2_DEAD,			/* makes no access until it is reset */
};

/* Something that a function as a whole asks the host domain for. */
struct hca_s2_ask {
	uint64_t addr, len;
	uint64_t time;			/* ns */
	uint32_t token;
	uint8_t gen;			/* of the token; survives resets */
	uint8_t cause;			/* enum qhca_fault_cause */
	bool write;
	bool waits;			/* for STAGE2_RESUME */
	bool unposted;			/* its event is to be written */
	bool failed;			/* the last answer was RESUME_FAIL */
};

/**
 * struct hca_stage2 - what a function knows of its second stage.
 * @mode: enum hca_s2_mode.  Not HCA_S2_OFF: no access without this file
 * @uplink_attr: accompanies each access
 * @pin: for a command that is held
 * @eth: for a frame or a receive buffer of an Ethernet queue
 * @first, @last: QPs with a fault whose event is to be written; 0: none
 */
struct hca_stage2 {
	uint8_t mode;
	uint16_t uplink_attr;
	struct hca_s2_ask pin;
	struct hca_s2_ask eth;
	uint32_t first, last;
};

/* Tokens of asks have the QPN 0, which no QP has; this bit is that of Ethernet. */
#define HCA_S2_TOKEN_ETH	0x00800000u

/* What an entry needs besides being present: QHCA_ATE_WRITE, QHCA_ATE_PINNED. */
#define HCA_S2_NEEDS	(QHCA_ATE_WRITE | QHCA_ATE_PINNED)

enum hca_s2_result {
	HCA_S2_OK,
	HCA_S2_ABSENT,			/* not present, or not what is needed */
	HCA_S2_NONE,			/* the function is dead, perhaps just now */
};

/* At INIT_HCA of the physical function; false: geometry or memory. */
bool hca_s2_init(struct hca *hca, struct qhca_geometry geometry);
void hca_s2_fini(struct hca *hca);

/* The function is reset: it follows its row as that is now, and waits for nothing. */
void hca_s2_reset(struct hca_fn *fn);
/* It forgets what it waits for; mode and row stay. */
void hca_s2_forget(struct hca_fn *fn);
/* The command queue is disabled: nobody waits for memory to be pinned. */
void hca_s2_forget_pin(struct hca_fn *fn);
/* It dies with QHCA_FATAL_STAGE2, and makes no access from now on. */
void hca_s2_die(struct hca_fn *fn, enum qhca_fatal_stage2 why);
/* The physical function is reset, torn down or dead: no row is of any use. */
void hca_s2_host_gone(struct hca *hca);
/* Replace the row of @fn, which has died or is idle. */
void hca_s2_set_row(struct hca_fn *fn, const struct hca_gvm *row);
/* The lines of @gvmi whose pages are in a range of bus addresses. */
void hca_s2_lines(const struct hca *hca, uint16_t gvmi, uint64_t first,
		  uint64_t last, struct hca_cache_inval *inval);

/*
 * Translate @addr: its machine address and the number of bytes up to the end of the
 * page.  @need is a part of HCA_S2_NEEDS.
 */
enum hca_s2_result hca_s2_page(struct hca_fn *fn, uint64_t addr, uint64_t need,
			       uint64_t *machine, uint64_t *room);

/* The device's own accesses; hca.h calls these.  -1 also when the function dies. */
int hca_s2_read(struct hca_fn *fn, uint64_t addr, void *buf, size_t len);
/*
 * What hca_s2_read() would read, for the monitor: it counts no look-up, fills no line,
 * and does not kill the function.  -1: the device cannot read it.
 */
int hca_s2_peek(struct hca_fn *fn, uint64_t addr, void *buf, size_t len);
int hca_s2_write(struct hca_fn *fn, uint64_t addr, const void *buf, size_t len,
		 bool release);

/*
 * Payload that is not an access by a key: nodes, page lists, Ethernet buffers.
 * FAULT: fn->mem.fault says what is absent.  With stage 2 off never FAULT.
 */
enum hca_mem_status hca_s2_fetch(struct hca_fn *fn, uint64_t addr,
				 uint64_t need, void *buf, size_t len);
enum hca_mem_status hca_s2_store(struct hca_fn *fn, uint64_t addr,
				 const void *buf, size_t len);
/* Only look whether it is there. */
enum hca_mem_status hca_s2_present(struct hca_fn *fn, uint64_t addr,
				   uint64_t len, bool write);
/* The fault of an access to @len bytes at @addr.  FAULT. */
enum hca_mem_status hca_s2_fault(struct hca_fn *fn, uint64_t addr,
				 uint64_t len, bool write);

/* Ask the host domain, unless @ask waits already. */
void hca_s2_ask(struct hca_fn *fn, struct hca_s2_ask *ask,
		enum qhca_fault_cause cause, uint64_t addr, uint64_t len,
		bool write);
bool hca_s2_has_events(const struct hca_fn *fn);
/* An event of @fn is to be written when this call of the engine ends. */
void hca_s2_post_later(struct hca_fn *fn);

#endif /* HCA_CORE_STAGE2_H */
