/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Two-sided cases, each with its own queue pair. The client is the requester
 * unless a case says otherwise; it prints the TAP for both.
 */
#ifndef CASES_H
#define CASES_H

#include <qhca/qhca_hw.h>

#include "lib/peer.h"
#include "lib/tap.h"

/*
 * An ACK timeout of 1.07 s, of which there are eight in a row: neither side is a
 * dead one because its machine does something else for a while.
 */
#define PATIENT 18

#define BUFFER_SIZE 65536
#define QUEUE_DEPTH 64

/* What the other side's requests may be aimed at. */
struct target {
	uint64_t addr;
	uint32_t rkey;
	uint32_t len;
};

struct test {
	struct peer *peer;
	const struct test_case *tc;
	struct connection conn;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp;		/* NULL: the case has destroyed it */
	uint8_t *buf;
	struct ibv_mr *mr;		/* of buf, with all rights */
	struct qp_address here, there;
	struct target mine, far;
	bool far_is_rxe, is_rxe;
	struct failure failure;
};

enum case_flags {
	STAY_RTR = 1,			/* the server's QP does not go to RTS */
	WITH_SRQ = 2,
	UNCONNECTED = 4,		/* QPs stay in RESET */
	WITH_PLACE = 8,			/* ATOMIC WRITE and FLUSH by ibv_wr_*() */
};

struct test_case {
	const char *name;
	void (*client)(struct test *t);
	void (*server)(struct test *t);
	enum ibv_qp_type type;		/* 0: RC */
	unsigned int flags;
	const void *data;
	/* Changes what the QPs are connected with, on both sides. */
	void (*adjust)(struct connection *conn);
	unsigned int cqes;		/* 0: enough */
	/* Why rxe cannot play a role: that of the requester, that of the responder. */
	const char *no_rxe_client, *no_rxe_server;
};

extern const struct test_case remote_cases[], local_cases[], state_cases[], event_cases[],
	datagram_cases[],
	memory_cases[], place_cases[];

/* Waits until both sides have called this. */
void meet(struct test *t);

#define ANY_LKEY 0xffffffff		/* t->mr's */

struct request {
	uint64_t id;
	enum ibv_wr_opcode opcode;
	uint32_t at;			/* in buf */
	uint32_t len;
	uint64_t addr;
	uint32_t rkey;
	uint64_t compare_add, swap;
	int flags;
	uint32_t lkey;			/* 0: t->mr's */
	uint8_t flush_type, flush_level;	/* FLUSH, of @len bytes; IBV_FLUSH_* */
};

/* ATOMIC WRITE and FLUSH: a case that is WITH_PLACE. */
void post(struct test *t, const struct request *rq);
/* A signalled SEND. */
void post_send(struct test *t, uint64_t id, uint32_t len);
/* A signalled WRITE, READ or atomic of the far target's start. */
void post_rdma(struct test *t, uint64_t id, enum ibv_wr_opcode opcode, uint32_t len);
void post_receive(struct test *t, uint64_t id, uint32_t at, uint32_t len);

#define SOON 20000
/* Waits for a completion. */
bool next_wc(struct test *t, struct ibv_cq *cq, struct ibv_wc *wc, int ms);
void expect_wc(struct test *t, struct ibv_cq *cq, uint64_t id, enum ibv_wc_status status);
/* @n completions with status flushed and ids from @first on. */
void expect_flushed(struct test *t, struct ibv_cq *cq, uint64_t first, unsigned int n);
void expect_none(struct test *t, struct ibv_cq *cq, int ms);
void expect_state(struct test *t, enum ibv_qp_state state);
/* An asynchronous event; events of other types are passed over. */
void expect_event(struct test *t, enum ibv_event_type type);

/* Connects the QP, from RESET. */
void connect_qp(struct test *t);

/* -- requests that the responder refuses, in remote.c */

/*
 * A request that must fail: the requester has @status for it and flushes what
 * follows, the responder flushes its receives and raises @event.
 */
struct refused {
	enum ibv_wr_opcode opcode;
	uint32_t len;
	enum ibv_wc_status status;
	enum ibv_event_type event;
	/* What the server offers: changes t->mine. */
	void (*offer)(struct test *t);
	/* ... and what it then takes back. */
	void (*withdraw)(struct test *t);
	/* What the client changes about it. */
	/*
	 * An rxe responder serves it: it looks at the range of a window's region,
	 * not of the window.
	 */
	bool rxe_serves;
	uint32_t rkey_xor, rkey;	/* rkey: 0, or in place of the server's */
	int64_t addr_add;
	uint8_t flush_type, flush_level;
};

void refused_client(struct test *t);
void refused_server(struct test *t);
/* Offers a region of t->buf with these rights; refused_server() ends it. */
void offer_access(struct test *t, int access);

#define REFUSED(text, ...) {							\
	.name = text, .client = refused_client, .server = refused_server,	\
	.data = &(const struct refused) { __VA_ARGS__ } }

#define NO_ACCESS .status = IBV_WC_REM_ACCESS_ERR, .event = IBV_EVENT_QP_ACCESS_ERR
#define INVALID .status = IBV_WC_REM_INV_REQ_ERR, .event = IBV_EVENT_QP_REQ_ERR

#endif
