/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the parts of qhca-verify share: a job, whose lanes are connections.
 *
 *   verify.c   options, rounds, report
 *   setup.c    resources and connections
 *   round.c    what a round does: plan and posts
 *   check.c    its completions and what they tell of
 *
 * Whatever fails or is not as planned ends the program.
 */
#ifndef VERIFY_H
#define VERIFY_H

#include "lib/peer.h"
#include "plan.h"

#define SQ_DEPTH (2 * ROUND_OPS)
#define RECEIVE_ID (1ull << 63)

/* A posted receive. */
struct slot {
	struct layout layout;
	uint32_t size;
	bool done;
};

struct lane {
	unsigned int index;
	struct ibv_qp *qp;
	struct ibv_qp *target;	/* XRC: what answers; qp asks */
	struct ibv_ah *ah;
	struct qp_address remote;
	uint32_t far_srqn;	/* XRC */
	struct region arena;	/* sources, and where READs land */
	struct region window;	/* what the other side works on */
	uint8_t *far_window;	/* model of the other side's window */
	uint64_t far_addr;
	uint32_t far_rkey;

	struct op mine[ROUND_OPS], theirs[ROUND_OPS];
	unsigned int n_mine, n_theirs;
	unsigned int posted, completed;
	unsigned int arrived;	/* index in theirs behind the last that took a receive */
};

struct job {
	struct peer peer;
	struct settings set;
	bool late;		/* receives are posted while the messages arrive */
	bool grows;		/* the SRQ is to */
	struct connection connection;
	unsigned int max_sge;
	unsigned int max_inline;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	unsigned int srq_size;
	struct ibv_xrcd *xrcd;
	struct lane lane[MAX_LANES];

	struct region inbox;	/* where receives land */
	struct slot *slot;
	unsigned int n_slots, posted_slots;
	unsigned int *slot_lane;

	uint32_t round;
	const char *kept;	/* the client's: rounds follow while this file is there */
	struct rng rng;
	uint8_t *scratch;
	unsigned int expected, received;
	uint64_t count[OP_KINDS], bytes, inlined, fenced, lost, grown;
};

static inline bool is_xrc(const struct job *job)
{
	return job->set.type == IBV_QPT_XRC_SEND;
}

static inline unsigned int mine(const struct job *job)
{
	return job->peer.server;
}

/* Prints what is wrong, and in which lane and round, and exits. */
__attribute__((noreturn, format(printf, 3, 4)))
void wrong(struct job *job, const struct lane *lane, const char *format, ...);

/* ---- setup.c */
void create_all(struct job *job);
void connect_lane(struct job *job, struct lane *lane);
void destroy_all(struct job *job);

/* ---- round.c */
/* The next round of both sides, for all lanes. */
void plan_round(struct job *job);
/* The next receive of the plan; its SRQ grows if it must. */
void post_receive(struct job *job);
/* Requests of a lane, as many as one call posts. */
void post_chain(struct job *job, struct lane *lane);

/* ---- check.c */
void check_send(struct job *job, const struct ibv_wc *wc);
void check_receive(struct job *job, const struct ibv_wc *wc);

#endif
