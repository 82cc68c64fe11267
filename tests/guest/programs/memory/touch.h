/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the parts of qhca-touch share.
 */
#ifndef TOUCH_H
#define TOUCH_H

#include "lib/counters.h"
#include "lib/peer.h"
#include "message.h"
#include "pattern.h"
#include "touch_pool.h"

#define SMALL_PAGE	4096ul
#define HUGE_PAGE	(2ul << 20)
#define BATCH		64
#define WORDS		512		/* of a page that are written */
#define ACCESS		(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
			 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)
#define NUM_COUNTERS	20

struct region {
	struct ibv_mr *mr;
	uint8_t *base;
	uint64_t written[WORDS];	/* number of the last access, by word */
};

enum memory { MEMORY_SMALL, MEMORY_HUGE, MEMORY_MALLOC, MEMORY_POOL };

struct touch {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
	int gid_index;

	struct region *region;
	unsigned int num_regions, pages;
	enum memory memory;
	size_t page_size;
	uint8_t *memory_base, *mapped;
	struct qhcadv_pool_mem *pool;
	size_t memory_size, mapped_size;

	uint64_t value[BATCH];		/* what the batch writes */
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH];
	unsigned int batched;
	uint64_t num_accesses;

	struct ibv_qp *(*queue)[2];
	unsigned int num_queues;
	uint64_t *words;		/* one for each queue; then one read */
	struct ibv_mr *words_mr;

	struct qhcadv_pool_mem *room;	/* the local side of messages; NULL: not yet */
	struct ibv_mr *room_mr;

	struct counters counters;
	uint64_t mark[NUM_COUNTERS];
	uint64_t mark_time, mark_accesses;
	bool timing;
};

/* touch.c */
void do_mark(struct touch *t);
/* Where page @page of @r is written. */
uint64_t *word_of(const struct touch *t, const struct region *r, unsigned int page);

/* touch_regions.c */
void drop_regions(struct touch *t);
/* Keys are numbered one after the other: region K has the index of region 0 + K. */
void do_regions(struct touch *t, unsigned int num, unsigned int pages,
		const char *kind);
void do_churn(struct touch *t, unsigned int num);

/* touch_queues.c */
void make_pair(struct touch *t, struct ibv_qp *qp[2], unsigned int depth);
void end_pair(struct ibv_qp *qp[2]);
/* Neighbours in the numbers of QPs, as keys are: the sets are filled evenly. */
void do_queues(struct touch *t, unsigned int num);
void do_queue_pattern(struct touch *t, const char *name, unsigned int queues);
void drop_queues(struct touch *t);

/* touch_message.c */
/*
 * Everything once; then, counted, the messages of an order of pattern.h, one at a
 * time.  Each is checked.
 */
void do_messages(struct touch *t, const struct message *m, const char *order,
		 unsigned int keys, unsigned int pages);
void drop_room(struct touch *t);

#endif /* TOUCH_H */
