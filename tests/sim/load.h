/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the parts of the workload share: the state of one run.
 *
 *   workload.c     the run, from beginning to end
 *   load_setup.c   hosts, regions, QPs
 *   load_post.c    requests and receives, at random
 *   load_check.c   completions and memory, against the model
 *   load_pages.c   pages that come and go
 *   load_guests.c  functions with stage 2, whose pages come and go once more
 *
 * Each side of a pair is at a node, which is a function: the physical ones of two hosts,
 * or also virtual ones of the first host.
 *
 * A function that returns bool returns false when the device and the model differ;
 * load.error then describes the difference.
 */
#ifndef QHCA_LOAD_H
#define QHCA_LOAD_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "guests.h"
#include "workload.h"

#define REGION		(192u << 10)
#define ATOMIC_AREA	4096u		/* first bytes of each target region */
#define MAX_BIG		65536u
#define MAX_PAIRS	6
#define MAX_OPS		400
#define RECV_SLOTS	32
#define XRC_SRQS	2
#define MAX_FAULTS	64
#define MAX_NODES	4u

struct op {
	uint8_t opcode, flags;
	uint32_t len;
	uint32_t src, dst;		/* offsets in the regions */
	uint32_t src_claim, dst_claim;	/* bytes with alignment */
	uint32_t srq;			/* XRC: which of the peer's */
	uint32_t imm;
	uint64_t swap_add, compare;
	uint64_t seed;			/* of the payload */
	uint64_t flush_addr;
	uint32_t flush_len;
	uint8_t flush_level;
	bool signaled;
};

struct claims {				/* claimed bytes of a region */
	uint32_t head, tail, base, size;
};

struct side {
	struct md *md;
	unsigned int node;
	struct side *peer;
	struct md_qp qp;		/* XRC: initiator, and */
	struct md_qp tgt;		/* ... target */
	struct md_cq *scq, *rcq;
	struct md_mr src, dst, recv;
	uint8_t *src_model, *dst_model;
	struct claims src_ring, dst_ring;
	struct op op[MAX_OPS];
	uint32_t posted, completed, total;
	uint32_t expected;		/* op of the peer the next receive is for */
	uint32_t recv_len;		/* bytes of a receive buffer */
	uint32_t recv_posted, recv_done;
	bool recv_busy[RECV_SLOTS];
	uint8_t type;
	uint32_t mtu;
	uint32_t depth;
	struct md_srq *srq, srq_room;
	struct md_srq xsrq[XRC_SRQS];	/* receive slot n goes to n % XRC_SRQS */
	struct qhca_wqe_ud ud;
};

struct fault {				/* reported, not yet served */
	uint64_t due;
	uint32_t qpn;
	struct qhca_fault_info info;
};

struct memory {				/* of a node's regions on demand */
	struct md_frames *frames;
	struct fault fault[MAX_FAULTS];
	uint32_t num_faults;
	uint32_t given_way;		/* resumes of gathers that were refused */
};

struct visitor;

struct load {
	struct world *w;
	const struct plan *plan;
	struct side side[MAX_PAIRS][2];
	struct md *node[MAX_NODES];
	uint32_t num_nodes;
	struct md_cq cq[MAX_NODES];	/* by node, as the next */
	struct memory memory[MAX_NODES];
	uint32_t num_pairs;
	struct guests *guests;		/* NULL: no function has stage 2 */
	struct visitor *visitor;	/* load_guests.c */
	char error[512];
};

#define FAIL(l, ...) \
	(snprintf((l)->error, sizeof((l)->error), __VA_ARGS__), false)

/* What the model needs to know of the requests and receives of @s. */

static inline bool is_xrc(const struct side *s)
{
	return s->type == QHCA_QPT_XRC_INI;
}

static inline bool unreliable(const struct side *s)
{
	return s->type != QHCA_QPT_RC && !is_xrc(s);
}

static inline bool is_send(uint8_t opcode)
{
	return opcode == QHCA_WQE_SEND || opcode == QHCA_WQE_SEND_IMM;
}

static inline bool takes_recv(uint8_t opcode)
{
	return is_send(opcode) || opcode == QHCA_WQE_WRITE_IMM;
}

static inline bool has_imm(uint8_t opcode)
{
	return opcode == QHCA_WQE_SEND_IMM || opcode == QHCA_WQE_WRITE_IMM;
}

/* Where the buffer of receive @slot begins, and the SRQ that it goes to, if any. */
static inline uint32_t recv_off(const struct side *s, uint32_t slot)
{
	return slot * s->recv_len;
}

static inline struct md_srq *srq_of(struct side *s, uint32_t slot)
{
	return is_xrc(s) ? &s->xsrq[slot % XRC_SRQS] : s->srq;
}

/* The oldest claimed slice of a region, of so many bytes, is free again. */
static inline void release(struct claims *r, uint32_t taken)
{
	r->tail += taken;
}

/* ---- load_setup.c */
void load_setup(struct load *l);

/* ---- load_post.c */
/* @len bytes that follow from @seed alone. */
void load_fill(uint64_t seed, uint8_t *p, uint32_t len);
/* Payload of a request: an unreliable one begins with its number. */
void load_payload(const struct side *s, const struct op *op, uint8_t *p);
/* Posts a few more if there is room, and sometimes none. */
void load_post_sends(struct load *l, struct side *s);
void load_post_recvs(struct load *l, struct side *s);

/* ---- load_check.c */
/* Takes at most @max completions of the node's CQs. */
bool load_poll_cqs(struct load *l, unsigned int node, uint32_t max);
/* Does memory equal its model?  @what, @number: for the message. */
bool load_same(struct load *l, const struct side *s, const struct md_mr *mr,
	       const uint8_t *model, uint32_t off, uint32_t len,
	       const char *what, uint32_t number);

/* ---- load_pages.c */
/* Takes pages away, and serves faults that are due. */
bool load_page_work(struct load *l, unsigned int node);
/* At the end: checks that nothing has written to pages that were free. */
bool load_check_frames(struct load *l);

/* ---- load_guests.c; all without effect when no function has stage 2 */
/* Before software uses the adapter. */
void load_create_guests(struct load *l);
/* The functions start, and become nodes. */
void load_open_guests(struct load *l);
void load_close_guests(struct load *l);
/* The nodes of the two sides of the next pair. */
void load_pick_nodes(struct load *l, unsigned int node[2]);
bool load_guest_work(struct load *l);
/* At the end: has each guest met what the plan has for it? */
bool load_check_guests(struct load *l);

#endif /* QHCA_LOAD_H */
