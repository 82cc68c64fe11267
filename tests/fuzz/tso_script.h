/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The script of fuzz_tso, and what its parts share.
 */
#ifndef QHCA_FUZZ_TSO_SCRIPT_H
#define QHCA_FUZZ_TSO_SCRIPT_H

#include "guard.h"
#include "input.h"

#define MTU		9000u
#define LOG_TX		5
#define NUM_AREAS	2u
#define TURN		64u

enum { LARGE, PLAIN, NUM_SENDERS };
enum { UNTAGGED, VLAN_7, VLAN_8, OTHER_VLAN, NUM_PATHS };

/* What the receiver's software got. */
struct got {
	uint32_t len, hash, flags;
	uint16_t vlan;
	uint8_t data[QHCA_MAX_FRAME];
};

struct counts {
	uint64_t packets, bytes, tso, errors;
};

struct sender {
	struct guard *g;
	struct counts before;		/* at the beginning of this turn */
};

struct script {
	struct in *in;
	struct sender sender[NUM_SENDERS];
	struct guard *to;
	uint32_t offer;			/* that the receiver makes */
	bool deaf;			/* its answers are lost */
	/* by path: when the last answer to a PROBE came; 0: none since the link is up */
	uint64_t heard[NUM_PATHS];
	/* the same addresses in both senders */
	uint64_t ring, rec, area[NUM_AREAS];
	unsigned int turn, waiting;
	uint32_t pi;
	uint8_t mac[6];
	/* the receiver's */
	uint64_t rx, rxc, rx_rec, rx_buf;
	uint32_t seen;
	/* of this turn: what came from the sender that has agreed, and from both */
	unsigned int num, matched;
	struct got got[2 * TURN];
};

static inline struct hca_ethq *queue_of(const struct guard *g)
{
	return &g->hca->pf.eth.queue[0];
}

static inline struct guard *large(const struct script *x)
{
	return x->sender[LARGE].g;
}

/* tso_post.c */
/* The software gives a frame. */
void post(struct script *x);
/* It changes what it has given. */
void scribble(struct script *x);

/* fuzz_tso.c */
void ring_doorbell(struct script *x);
/* The software takes back what has not been sent, in the middle of a frame or not. */
void take_back(struct script *x);
/* Both send all that is in the ring. */
void finish(struct script *x);

#endif /* QHCA_FUZZ_TSO_SCRIPT_H */
