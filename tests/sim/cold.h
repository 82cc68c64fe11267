/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A region on demand without present pages, for scenarios that act as the driver:
 * they receive the fault, and decide when and how it is resolved.
 */
#ifndef QHCA_COLD_H
#define QHCA_COLD_H

#include "odp.h"
#include "pair.h"

#define COLD_IOVA	0x40000234ull
#define COLD_LEN	(24u << 10)
#define TIMER_NEW	1280000u	/* ns */

struct sniff {				/* what b and a say on the wire */
	struct world *w;
	uint32_t rnr, rnr_psn;
	uint8_t syndrome;
	uint64_t rnr_time;
	uint32_t acks, responses, requests;
	uint64_t request_time;		/* of the last one from a */
	uint32_t request_psn;
};

struct cold {				/* a region of an end, nothing of it there */
	struct md_odp *odp;
	struct md_frames *frames;
};

#define WRITE_FLAGS	(QHCA_FAULT_WRITE | QHCA_FAULT_RDMA)
#define PAGE_LEFT	(MD_PAGE - COLD_IOVA % MD_PAGE)

/* Sets world.filter: from now on @s counts. */
void sniff_start(struct pair *p, struct sniff *s);

struct cold cold_make(struct end *e);
/* Makes all pages present. */
void cold_map(const struct cold *c);
/* Makes all pages present and resumes the fault. */
void cold_resume(struct end *e, const struct cold *c, uint32_t token);

/* A request of @e whose local bytes are at @addr of @key, remote ones at @raddr. */
void post_at(struct pair *p, struct end *e, uint8_t opcode, uint64_t addr,
	     uint32_t key, uint32_t len, uint64_t raddr, uint32_t rkey);
/* A request of a from its plain region to b's cold one. */
void post_to_cold(struct pair *p, const struct cold *c, uint8_t opcode,
		  uint32_t len, uint32_t off);
/* Posts a receive, to the SRQ if there is one, into the beginning of @c. */
void recv_cold(struct end *e, const struct cold *c, uint32_t len);
/*
 * Access to the first @len bytes of an end's plain region, and to those of @c at @off.
 */
void fill_bytes(struct end *e, uint32_t len, uint8_t first);
void check_cold(int line, struct end *e, const struct cold *c, uint32_t off,
		uint32_t len, uint8_t first);
#define CHECK_COLD(e, c, off, len, first) \
	check_cold(__LINE__, e, c, off, len, first)

struct want {				/* of a fault */
	uint32_t flags, done;
	uint64_t addr, length;
};

/* Checks that the next fault of @e is this one, and returns its token. */
uint32_t take_fault(int line, struct end *e, const struct cold *c,
		    enum qhca_fault_cause cause, struct want want);
#define TAKE_FAULT(e, c, cause, ...) \
	take_fault(__LINE__, e, c, cause, (struct want){ __VA_ARGS__ })
void expect_no_fault(int line, struct end *e);
#define NO_FAULT(e) expect_no_fault(__LINE__, e)

#endif /* QHCA_COLD_H */
