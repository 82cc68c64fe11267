/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A connection between two hosts, for scenarios: what each scenario sets up, and its
 * checks.  A failed check fails the scenario, which nevertheless runs to its end.
 */
#ifndef QHCA_PAIR_H
#define QHCA_PAIR_H

#include "bytes.h"
#include "world.h"

#define PAIR_IOVA	0x10000000ull
#define PAIR_LEN	(64u << 10)	/* bytes of each end's region */
#define PAIR_QKEY	0x111
#define PAIR_PD		3
#define PAIR_XRCD	7
#define ALL_ACCESS	(QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE | \
			 QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC | \
			 QHCA_ACCESS_FLUSH_GLOBAL)

struct end {
	struct md *md;
	struct md_cq scq, rcq;
	struct md_qp qp;
	struct md_mr mr;
	struct md_srq srq;
	struct md_conn conn;
	unsigned int host;
};

struct pair {
	struct world w;
	struct end a, b;
	uint8_t type;
	struct qhca_wqe_ud ud;		/* a's WQEs carry this: to b */
};

struct pair_options {
	uint8_t type;			/* enum qhca_qp_type */
	bool srq;			/* each end has one */
	bool xrc;			/* a is initiator, b target; SRQs are XRC */
	bool loop;			/* both ends on one host */
	bool roomy;			/* caches in which nothing is replaced */
	uint8_t hosts;			/* 0: 2 */
	uint16_t qp_flags;		/* QHCA_QP_* */
	uint8_t log_cq;			/* 0: 8 */
	uint8_t log_eq;			/* 0: 10 */
	uint8_t log_sq;			/* 0: 6 */
	uint32_t init_flags;		/* QHCA_INIT_* */
	bool rxe_flush;			/* as qhca_config has it */
	uint32_t max_bundle;		/* as qhca_config has it */
	uint16_t moder_count, moder_usec;	/* of the receive CQs */
	uint64_t seed;
};

struct scenario {
	const char *name;
	void (*run)(struct pair *p);
	struct pair_options options;
};

/* Scenarios of a table: with QPs of a type, and with options where they matter. */
#define NAMED(qpt, name, fn, ...) \
	{ name, fn, { .type = QHCA_QPT_##qpt, __VA_ARGS__ } }
#define ON(qpt, fn, ...) NAMED(qpt, #fn, fn, __VA_ARGS__)
#define RC(fn, ...) ON(RC, fn, __VA_ARGS__)

extern const struct scenario error_scenarios[], key_scenarios[],
	window_scenarios[], fast_reg_scenarios[],
	queue_scenarios[], wire_scenarios[], state_scenarios[], dma_scenarios[],
	fault_scenarios[], fault_end_scenarios[], xrc_scenarios[],
	doorbell_scenarios[], cost_scenarios[], threshold_scenarios[],
	place_scenarios[], raw_scenarios[], economy_scenarios[],
	lookup_scenarios[], isolation_scenarios[], study_scenarios[],
	share_scenarios[], function_scenarios[], stage2_scenarios[],
	stage2_key_scenarios[], stage2_isolation_scenarios[],
	bundle_watched_scenarios[], bundle_question_scenarios[],
	bundle_scenarios[], bundle_between_scenarios[], bundle_end_scenarios[],
	bundle_function_scenarios[], bundle_hostile_scenarios[],
	bundle_doubt_scenarios[], bundle_reasons_scenarios[];

/* ---- checks */

void check_failed(int line, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
bool check_ok(void);
/* Prints more about a failure. */
void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#define CHECK(cond) \
	do { \
		if (!(cond)) \
			check_failed(__LINE__, "%s", #cond); \
	} while (0)

#define CHECK_EQ(a, b) \
	do { \
		long long a_ = (long long)(a), b_ = (long long)(b); \
		if (a_ != b_) \
			check_failed(__LINE__, "%s is %#llx, not %#llx", #a, \
				     a_, b_); \
	} while (0)

/*
 * Checks that the next completions have these statuses, in order of wr_id, and that
 * there are no more.
 */
void expect(int line, struct md_cq *cq, const uint8_t *status, uint32_t n,
	    uint32_t first);
#define EXPECT(cq, first, ...) \
	expect(__LINE__, cq, (const uint8_t[]){ __VA_ARGS__ }, \
	       sizeof((const uint8_t[]){ __VA_ARGS__ }), first)
void expect_none(struct md_cq *cq);

/* The next event but COMM_EST and completions; 0: none.  It is of @number. */
int next_event(struct end *e, uint32_t number);
int state_of(struct end *e);

static inline uint64_t count_of(const struct end *e, enum qhca_counter id)
{
	return qhca_counter(e->md->host.hca, e->md->host.gvmi, id);
}

/* ---- life */

/* Hosts, regions, QPs in RESET; attributes may still be changed. */
void open_pair(struct pair *p, const struct pair_options *o);
/* The same again after a reset of all hosts: all memory is as new. */
void restart_pair(struct pair *p, const struct pair_options *o);
void connect_pair(struct pair *p);
/* Both QPs to RESET and connected again, from other PSNs. */
void reconnect_pair(struct pair *p, uint32_t psn);
void close_pair(struct pair *p);
/* A second connection of the same hosts, regions and SRQs, in RTS. */
void open_second(struct pair *p, struct end *a, struct end *b,
		 const struct pair_options *o);
void close_second(struct end *a, struct end *b);
/* Runs until no host has work left, at most for 10 s of virtual time. */
void settle(struct pair *p);
void run_for(struct pair *p, uint64_t ns);

/* ---- work */

/* A signalled request of @len bytes between the ends' regions; rings. */
void post(struct pair *p, struct end *e, uint8_t opcode, uint32_t len,
	  uint8_t flags);
/* wr_id becomes the WQE's number. */
void post_wr(struct end *e, struct md_wr *wr);
void post_recv(struct end *e, uint32_t len);
/* Checks that a SEND of 8 bytes from a to b works; it posts one WQE on either side. */
void check_works(int line, struct pair *p);
#define CHECK_WORKS(p) check_works(__LINE__, p)

bool is_datagram(const struct pair *p);

/* Bytes of an end's region. */
void get_bytes(struct end *e, uint32_t off, void *data, uint32_t len);
void put_bytes(struct end *e, uint32_t off, const void *data, uint32_t len);

/* A world.filter that drops every frame. */
bool drop_all(struct world *w, unsigned int from, uint8_t *frame, size_t len);

#endif /* QHCA_PAIR_H */
