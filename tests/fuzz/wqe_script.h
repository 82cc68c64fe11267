/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The script of fuzz_wqe, and what its parts share.
 */
#ifndef QHCA_FUZZ_WQE_SCRIPT_H
#define QHCA_FUZZ_WQE_SCRIPT_H

#include "guard.h"
#include "input.h"
#include "paging.h"

#define PD		1
#define OTHER_PD	2
#define BYSTANDER_PD	7
#define QKEY		0x1234
#define USER_PAGE	1
#define BYSTANDER_PAGE	2
#define LOG_DEPTH	3
#define DEPTH		(1u << LOG_DEPTH)
#define LOG_DEEP	7
#define LOG_STRIDE	7
#define LOG_RSTRIDE	6
#define MAX_OPS		250
#define FAST_PAGES	8u
#define BYSTANDER_LEN	3000u
#define BYSTANDER_ROUNDS 3000

enum { RC, RC_SRQ, UC, UD, GSI, RC_SELF, NUM_QPS };

enum {
	KEY_RW, KEY_READ, KEY_OTHER, KEY_FAST, KEY_MW1, KEY_MW2B, KEY_POOL,
	KEY_DEVMEM, KEY_DMA, KEY_RESERVED, NUM_KEYS
};
#define RW_IOVA		0x10000000ull
#define RW_LEN		(4 * 4096ull)
#define POOL_LEN	(2 * 4096ull)
#define ALL_RIGHTS	(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
			 QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC | \
			 QHCA_ACCESS_FLUSH_GLOBAL | QHCA_ACCESS_MW_BIND)

struct side {
	struct guard *g;
	struct md *md;
	struct md_cq cq, by_cq, lim_cq;
	struct md_srq srq;
	struct md_qp qp[NUM_QPS], by, lim;	/* lim: wqe_limits.c */
	struct md_mr rw, read, other, by_mr;
	uint64_t pool, fast_node, page_list;
	struct paging paging;
	uint32_t key[NUM_KEYS];
};

struct script {
	struct in *in;
	bool kernel, deep;		/* deep: more WQEs than are summarised */
	bool on_demand;			/* the region that most requests use */
	bool raw;			/* the UD QP is a raw packet QP instead */
	uint8_t tamper;			/* the next so many frames */
	uint32_t lim_psn;		/* of the last connect_limits() */
	struct side side[2];
};

/* wqe_setup.c */
void must(int status, const char *what);
void make_cq(struct side *s, struct md_cq *cq, uint32_t log_depth);
void connect_one(struct side *s, struct md_qp *qp, uint32_t dest_qpn,
		 unsigned int dest_host, uint8_t timeout);
void connect_all(struct script *x);
void make_side(struct script *x, unsigned int i, uint8_t how);

/* wqe_post.c */
void post_send(struct script *x, struct side *s);
/* Many that are short, and all without a completion. */
void post_many(struct script *x, struct side *s);
void post_recv(struct script *x, struct side *s);

/* wqe_limits.c */
void make_limits(struct side *s);
void connect_limits(struct script *x, uint32_t psn);
/* Posts a request and a receive, and checks whether the device executes them. */
void check_limits(struct script *x);

/* fuzz_wqe.c */
/* One round; the clock goes on to the next timer when both sides are idle. */
void pump(struct script *x, unsigned int budget);

#endif /* QHCA_FUZZ_WQE_SCRIPT_H */
