/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two RC QPs of one device, connected to each other through its loopback, and
 * what the device counts meanwhile.
 */
#ifndef QUEUES_H
#define QUEUES_H

#include "lib/counters.h"
#include "lib/peer.h"

#define BUF_SIZE 65536
#define SOON_NS 20000000000ull	/* what has not happened by then does not happen */

/* In the order of counter_names. */
enum counted {
	REFETCHES_CQ, REFETCHES_RQ, REFETCHES_SRQ, REFETCHES_UNCHANGED,
	REFETCHES_BEFORE_RNR, REFETCHES_BEFORE_OVERRUN,
	SQ_DOORBELLS, CQ_ARMS, DOORBELLS_IGNORED,
	TX_RNR_NO_WQE, RX_RNR, CQ_OVERRUNS, COMPLETIONS,
	NUM_COUNTED
};

struct queues {
	struct ibv_context *ctx;
	int gid_index;
	struct ibv_pd *pd;
	struct counters counters;
	uint8_t *buf;
	struct ibv_mr *mr;
};

/* What a pair is made with. */
struct pair_options {
	struct ibv_cq *send_cq;		/* of the requester */
	struct ibv_cq *recv_cq;		/* of the responder */
	struct ibv_srq *srq;		/* of the responder, or NULL */
	uint32_t send_wr, recv_wr;
	uint32_t rq_threshold;		/* 0: the driver's */
	bool unreliable;		/* UC, not RC */
};

/* qp[0] asks, qp[1] answers. */
struct pair {
	struct ibv_qp *qp[2];
	struct ibv_cq *idle_cq;		/* of the queues that are not used */
};

/* Failures end the program. */
struct ibv_cq *new_cq(struct queues *q, uint32_t depth, uint32_t threshold,
		      struct ibv_comp_channel *channel);
struct ibv_srq *new_srq(struct queues *q, uint32_t slots, uint32_t threshold);
void new_pair(struct queues *q, struct pair *pair, const struct pair_options *options);
void end_pair(struct pair *pair);
void end_cq(struct ibv_cq *cq);
void end_srq(struct ibv_srq *srq);

void post_write(struct queues *q, struct ibv_qp *qp, uint64_t id);
void post_send(struct queues *q, struct ibv_qp *qp, uint64_t id, uint32_t at, uint32_t len);
void post_receive(struct queues *q, const struct pair *pair, struct ibv_srq *srq, uint64_t id,
		  uint32_t at, uint32_t len);
/* Waits for the next completion, which must be a success with that wr_id. */
struct ibv_wc expect_completion(struct ibv_cq *cq, uint64_t id);

/* Commands, in change.c. */
void do_resize(struct queues *q, unsigned int resizes, bool events);
void do_moderation(struct queues *q, unsigned int count);

#endif
