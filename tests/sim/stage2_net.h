/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * For scenarios of stage 2: another host writes to functions of one adapter.
 *
 * Two virtual functions of the first host are guests; the second host has a connection
 * to each function.  The host domain serves pin requests at once, and faults when
 * guests.absent is clear.
 */
#ifndef QHCA_STAGE2_NET_H
#define QHCA_STAGE2_NET_H

#include "guests.h"
#include "pair.h"

#define MS		1000000ull
#define BYTES		5000u		/* of write_own() */

struct conn {				/* the second host writes to a function */
	struct md *from, *to;
	struct md_cq from_cq, to_cq;
	struct md_mr from_mr, to_mr;
	struct md_qp from_qp, to_qp;
	uint32_t posted;
};

struct net {
	struct pair *p;
	struct guests g;
	struct md *vf, *other;		/* the guests */
	struct conn first, second;	/* to vf */
	struct conn to_other, to_pf;
};

void open_conn(struct conn *c, struct md *from, struct md *to);
void open_net(struct net *n, struct pair *p);
void close_net(struct net *n);
void pass(struct net *n, uint64_t ns);

/* WRITE of @len bytes to @addr by @rkey; the content follows from the number. */
void write_to(struct conn *c, uint64_t addr, uint32_t rkey, uint32_t len);
void write_own(struct conn *c);
/* Has the last request completed, and well? */
bool completed(struct conn *c);
bool same(const uint8_t *got, uint32_t len, uint32_t seed);
bool arrived(struct conn *c);

/* A WRITE that completes within @ns. */
void check_goes_on(int line, struct net *n, struct conn *c, uint64_t ns);
#define CHECK_GOES_ON(n, c) check_goes_on(__LINE__, n, c, MS)
/* All that the connections use is there. */
void warm_up(struct net *n);
void others_go_on(struct net *n);

/* Of the first guest. */
uint64_t count1(struct net *n, enum qhca_counter id);
int resume2(struct net *n, uint32_t token, uint32_t how);
/* The one fault that waits, which is of the first guest. */
const struct qhca_fault_info *only_fault(struct net *n);
void serve_faults(struct net *n);

#endif /* QHCA_STAGE2_NET_H */
