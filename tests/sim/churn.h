/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Keys that are born and die under traffic, for minutes of virtual time.  The rule
 * under test: once software has seen that a key is dead, no byte moves through
 * it, in either direction.
 *
 * Memory is cut into slabs of 1 KiB across a page boundary.  A slab is of one key,
 * or of none.  In that case it holds secret words, which nobody may change, and
 * which may turn up nowhere else: not in memory that a dead key's READ, or a WRITE
 * gathered through it, would have filled.
 *
 * An object is an entry of the protection table.  Its index never changes, so
 * that what the device kept of a dead key is there to be mistaken for the next
 * one.  Work requests that make or end a key take effect at some time between
 * posting and completion: until then either outcome is right.
 */
#ifndef QHCA_CHURN_H
#define QHCA_CHURN_H

#include "bytes.h"
#include "world.h"

#define NUM_OBJS	10u
#define NUM_SLABS	24u
#define NUM_CONNS	3u		/* the first carries no user data */
#define SLAB_LEN	1024u
#define SLAB_FIRST	(MD_PAGE - SLAB_LEN / 2)	/* in its two pages */
#define MAX_REQS	256u

#define CHURN_PD	3u
#define OTHER_PD	4u
#define ALL_REMOTE	(QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ | \
			 QHCA_ACCESS_REMOTE_ATOMIC)

enum obj_state { DEAD, BORN_SOON, LIVE, DEAD_SOON };

struct conn;

struct obj {				/* one index of the protection table */
	uint32_t index, type;		/* enum qhca_pte_type */
	uint32_t key;			/* of LIVE: present; else the last one */
	uint32_t next_key;		/* of BORN_SOON, or bound anew */
	enum obj_state state;
	uint32_t changes;		/* of anything that decides who may */
	bool blank;			/* the entry is there, and not VALID */
	uint64_t start, len;
	uint32_t access, pd;
	struct conn *conn;		/* whose QP a type 2 window is of */
	int slab, next_slab;		/* -1: none */
	uint32_t slab_off;		/* of the first byte */
	uint64_t node, list;		/* translation node; page list */
};

struct slab {
	uint64_t page[2];
	struct obj *owner;
	uint32_t gen;			/* of the secret */
};

enum expect { SURE, MAYBE, NEVER };

struct use {				/* of a key by a request */
	struct obj *obj;		/* NULL: @expect stands */
	uint32_t changes;		/* of @obj when posted */
	enum expect expect;
};

struct req {
	bool busy;
	uint8_t opcode;			/* of the WQE; receives: 0 */
	bool recv;
	struct conn *conn;
	struct use use[2];
	struct obj *obj;		/* made or ended by it */
};

struct node {
	struct world *w;
	struct md *md;
	struct node *peer;
	unsigned int number;
	struct md_cq cq;
	struct md_mr arena;		/* all slabs, for windows */
	struct slab slab[NUM_SLABS];
	struct obj obj[NUM_OBJS];
	struct req req[MAX_REQS];
	uint32_t pending;		/* objects that wait for a request */
	char *error;			/* 300 bytes, for the first failure */
};

struct conn {				/* two QPs */
	struct md_qp qp[2];
	struct md_conn attr[2];
	uint32_t out[2], recv_out[2];	/* requests not completed */
	bool tainted;			/* may have gone into error */
	bool broken;			/* has: an end saw it */
	unsigned int number;
};

struct churn_counts {
	uint64_t births, deaths, requests, done, refused, flushed, windows, regs,
		 invs, rereg, bytes;
};
extern struct churn_counts churn_counts;

bool churn_fail(struct node *h, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- keys, in churn_keys.c */

void keys_setup(struct node *h);
/* Checks that no access has changed a secret, and that no secret is anywhere else. */
bool keys_check(struct node *h);
/* The rights of a key have changed. */
void obj_changed(struct node *h, struct obj *o);
/* Records the outcome of the work request that created or ended @o. */
void obj_settled(struct node *h, struct obj *o, bool done);
/* Fills memory with words that are not secrets. */
uint64_t live_word(struct node *h);
/* Chooses a change of a random key of @h, and makes it or posts its request. */
void keys_churn(struct node *h, struct node *peer, struct conn *conns);

/* ---- traffic, in churn.c */

/* Records a new request of @h. */
struct req *req_new(struct node *h, struct conn *c, bool recv, uint8_t opcode,
		    uint64_t *wr_id);
/* Is there room for a request and its receive? */
bool conn_room(struct conn *c, unsigned int host);
void req_post(struct node *h, struct req *r, struct md_wr *wr);
/* Posts a receive into @o, or into no memory, for the peer's next SEND. */
struct req *recv_post(struct node *h, struct conn *c, struct obj *o);
struct use use_of(struct node *h, struct conn *c, struct obj *o, uint64_t off,
		  uint64_t len, uint32_t right, bool local);

#endif /* QHCA_CHURN_H */
