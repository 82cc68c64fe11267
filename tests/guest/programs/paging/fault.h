/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* What the parts of qhca-fault share. */
#ifndef FAULT_H
#define FAULT_H

#include "lib/peer.h"
#include "lib/tap.h"

#define DEPTH		64		/* of queues */
#define ADDEND		5
#define COLD_ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
			 IBV_ACCESS_ON_DEMAND)

enum { WR_SEND = 1, WR_RECV };		/* wr_id */

struct area {
	uint8_t *mem;
	size_t len;
	struct ibv_mr *mr;
};

struct region {				/* of the other side */
	uint64_t addr;
	uint32_t rkey;
};

struct qp_pair {			/* one QP of ours, one of theirs */
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;		/* UD */
	struct qp_address mine, theirs;
};

struct fault_test {
	struct peer peer;
	struct ibv_pd *pd;
	struct connection conn;
	unsigned int hold_ms, rounds, run_ms, turns, page_size;
	unsigned int settle_ms;		/* of a turn, before what is measured */
	bool datagram, only_remote, until_told;
	const char *mode;		/* NULL: each */
};
extern struct fault_test t;

struct area area_of(void *mem, size_t len, int access);
struct area area_anon(size_t len, int access);
void area_drop(struct area *a);

/* Both sides at once; RC and UD. */
void pair_open(struct qp_pair *p, enum ibv_qp_type type);
void pair_connect(struct qp_pair *p, enum ibv_qp_type type);
void pair_close(struct qp_pair *p);
struct region exchange_region(const struct area *a);

void post_send(struct qp_pair *p, enum ibv_wr_opcode opcode, const struct area *a, size_t off,
	       uint32_t len, struct region to);
void post_recv(struct qp_pair *p, const struct area *a, size_t off, uint32_t len);
/* The next completion; it is an error if there is none. */
struct ibv_wc spin_wc(struct qp_pair *p);
struct ibv_wc sleep_wc(struct qp_pair *p);

struct held;
/* A held area whose first page the device can use. */
struct held *open_cold(struct area *a, unsigned int pages);

void run_beside(void);
void run_isolate(void);
void run_cost(void);

#endif
