/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Operations that stop, resize, reset or remove something, each in the middle of
 * traffic of each kind.
 *
 *   upset.c        the operations, the matrix, the run
 *   upset_conn.c   hosts, connections, requests, completions
 *   upset_eth.c    Ethernet rings
 *
 * The model: each request completes exactly once, unless the driver has taken its
 * queue away; a request that succeeds has moved its bytes; after an operation that
 * hurts a connection errors are right as well, and the driver repairs it.  Memory
 * that the driver has given back holds a canary, and the device must not write to
 * it.  All that is under way comes to an end.
 *
 * A function that returns bool returns false when the device and the model differ;
 * upset.error then describes the difference.
 */
#ifndef QHCA_UPSET_H
#define QHCA_UPSET_H

#include "bytes.h"
#include "odp.h"
#include "world.h"

#define MEM_LEN		(24u << 20)
#define SLOTS		16u		/* requests of a half, as its queue is deep */
#define UPSET_PD	3u
#define UPSET_QKEY	0x77u
#define CANARY		0xa5
#define MAX_GIVEN	8192u		/* pages given back */
#define NUM_FRAMES	600u
#define ETH_SLOTS	16u
#define ETH_LEN		512u

enum kind { RC_SMALL, RC_LARGE, RC_SRQ, DATAGRAM, PAGING, KERNEL, NUM_CONNS,
	    ETHERNET = NUM_CONNS, NUM_KINDS };

/* What the slots of a half's region are for. */
enum area { SEND_FROM, READ_FROM, WRITE_TO, READ_TO, RECV_TO, NUM_AREAS };

struct req {
	bool busy;
	bool silent;			/* not signalled: ends with a later one */
	uint8_t opcode;
	uint32_t len, memory;		/* memory: the peer's region, by generation */
	uint64_t seed, order;
};

struct half {				/* of a connection, on one host */
	bool live;			/* its QP exists, and */
	bool connected;			/* ... is not in RESET */
	bool member;			/* of the multicast group */
	struct md_qp qp;
	struct md_cq cq;
	bool eq_live;
	struct md_buf eq;		/* its CQ reports here */
	uint32_t eq_ci;
	struct md_buf next_buf;		/* of a CQ that is being resized */
	uint32_t next_rec, next_log;	/* next_log 0: it is not */
	struct md_srq srq;
	struct md_mr mr;
	struct md_odp *odp;		/* PAGING: the region's pages */
	uint32_t fast_key;		/* KERNEL */
	uint64_t list;
	uint32_t memory;		/* generation of the region, and */
	uint32_t gen;			/* ... of the QP; wr_id has it */
	struct req out[SLOTS], in[SLOTS];
};

struct conn {
	enum kind kind;
	uint32_t slot_len;
	struct half half[2];
	bool hurt;			/* errors are right */
	bool broken;			/* an error has been seen */
};

struct eth {				/* rings of a host */
	bool live;
	struct md_buf tx, rx, rxc, rec, data;	/* data: of both, a slot each */
	uint32_t tx_pi, rx_pi, rx_ci;
	uint32_t received;
};

struct node {
	struct md *md;
	bool up;			/* has a driver */
	struct conn *conn;		/* [NUM_CONNS] */
	struct md_frames *frames;
	struct eth eth;
	uint64_t given[MAX_GIVEN];	/* pages that hold the canary */
	uint32_t num_given;
};

struct upset {
	struct world w;
	struct node node[2];
	struct conn conn[NUM_CONNS];
	uint64_t serial;
	char error[300];
};

#define UPSET_FAIL(u, ...) \
	(snprintf((u)->error, sizeof((u)->error), __VA_ARGS__), false)

/* ---- memory */
/* Memory that belongs to neither the driver nor the device any more. */
void give_back(struct node *n, const struct md_buf *b);
bool check_given(struct upset *u, unsigned int host);
void upset_fill(uint64_t seed, uint8_t *p, uint32_t len);

/* ---- upset_conn.c */
/* Everything of a host after md_start(). */
void node_open(struct upset *u, unsigned int host);
void half_open(struct upset *u, struct conn *c, unsigned int host);
/* QP, CQ and SRQ destroyed and given back; nothing of it may complete after. */
bool half_close(struct upset *u, struct conn *c, unsigned int host);
/* The QP has lost the posted requests, without completions. */
bool half_forget(struct upset *u, struct conn *c, unsigned int host);
void conn_connect(struct upset *u, struct conn *c);
void conn_region(struct upset *u, struct conn *c, unsigned int host);
/* DESTROY_EQ, with events in it or held; the CQ has gone. */
bool half_close_eq(struct upset *u, struct conn *c, unsigned int host);
/* DATAGRAM: the QP is of the group to which the peer sends, or not. */
bool conn_member(struct upset *u, struct conn *c, unsigned int host, bool member);
void conn_resize_cq(struct upset *u, struct conn *c, unsigned int host);
void conn_post(struct upset *u, struct conn *c, unsigned int host);
bool conn_poll(struct upset *u, struct conn *c, unsigned int host);
uint32_t conn_outstanding(const struct conn *c, unsigned int host, bool recv);
bool node_faults(struct upset *u, unsigned int host);

/* ---- upset_eth.c */
void eth_open(struct upset *u, unsigned int host);
void eth_close(struct upset *u, unsigned int host);
void eth_post(struct upset *u, unsigned int host);
bool eth_poll(struct upset *u, unsigned int host);
uint32_t eth_outstanding(struct upset *u, unsigned int host);

#endif /* QHCA_UPSET_H */
