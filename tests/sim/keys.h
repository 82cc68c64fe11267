/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Keys that come and go, for the scenarios of windows, fast registration and
 * invalidation: entries of the protection table, and work requests that change
 * or use them.
 */
#ifndef QHCA_SIM_KEYS_H
#define QHCA_SIM_KEYS_H

#include "pair.h"

#define TARGET		32768u		/* offset of what windows cover */
#define TARGET_LEN	8192u
#define PAGES		2u

/* Writes an entry of the protection table; returns its key. */
uint32_t add_pte(struct end *e, uint32_t type, uint32_t octet,
		 uint32_t ctrl, struct qhca_pte *pte);

uint32_t new_window(struct end *e, uint32_t type);

uint32_t new_fast_reg(struct end *e, uint32_t ctrl);

/* Lets the region of @e have windows. */
void allow_bind(struct end *e);

void post_bind(struct end *e, uint32_t mw, uint32_t new_key,
	       uint64_t len, uint32_t access);

void post_inv(struct end *e, uint8_t opcode, uint32_t key);

/* Registers pages from @off on under a fast-registered key, at the target's address. */
void post_reg_at(struct end *e, uint32_t key, uint32_t access,
		 uint32_t off);

void post_reg(struct end *e, uint32_t key, uint32_t access);

/* A request of @e to the target through @rkey. */
void post_remote(struct end *e, uint8_t opcode, uint32_t rkey,
		 uint32_t len);

void fill_target(struct end *e, uint8_t value);

bool bytes_are(struct end *e, uint32_t off, uint8_t value);

bool target_is(struct end *e, uint8_t value);

void fill_source(struct end *e, uint8_t value);

/* Checks that an access by @rkey is refused and changes nothing of the target. */
void check_dead(int line, struct pair *p, struct end *from,
		uint32_t rkey, uint8_t opcode);

#define CHECK_DEAD(p, from, rkey) \
	check_dead(__LINE__, p, from, rkey, QHCA_WQE_WRITE)

#define RIGHTS	(QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ)

void open_windows(struct pair *p);

/* Scenarios of kernel QPs; roomy: in caches that replace nothing. */
#define ROOMY(fn) \
	{ #fn " (roomy)", fn, { .type = QHCA_QPT_RC, \
				.qp_flags = QHCA_QP_KERNEL, .roomy = true } }
#define KERNEL(fn) { #fn, fn, { .type = QHCA_QPT_RC, .qp_flags = QHCA_QP_KERNEL } }

#endif /* QHCA_SIM_KEYS_H */
