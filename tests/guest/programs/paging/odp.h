/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the parts of qhca-odp share.
 */
#ifndef ODP_H
#define ODP_H

#include "lib/peer.h"
#include "lib/tap.h"

#define PAGE	4096u
#define PAGES	512u
#define LEN	((size_t)PAGES * PAGE)
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
		 IBV_ACCESS_ON_DEMAND)

struct odp_test {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	int gid_index;
	unsigned int seconds;
};
extern struct odp_test t;

struct area {
	uint8_t *mem;
	struct ibv_mr *mr;
};

/* odp.c */
void make_qps(void);
void drop_qps(void);
struct area make_area(int access);
void drop_area(struct area *a);
void fill(uint8_t *p, size_t len, uint8_t seed);
bool is_filled(const uint8_t *p, size_t len, uint8_t seed);
void post(enum ibv_wr_opcode opcode, struct area *l, size_t loff,
	  struct area *r, size_t roff, uint32_t len);
/* The next completion's status; -1: none in 20 s. */
int completion(void);
void do_op(enum ibv_wr_opcode opcode, struct area *l, size_t loff,
	   struct area *r, size_t roff, uint32_t len);
void put_away(struct area *a);

/* odp_moved.c */
void test_moved(void);
void test_merged(void);
void test_huge(void);

/* odp_implicit.c */
void test_implicit(void);

/* odp_measure.c */
int measure(unsigned int num);

#endif /* ODP_H */
