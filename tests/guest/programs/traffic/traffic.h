/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * qhca-traffic: what its files share.  traffic.c says what it is.
 */
#ifndef TRAFFIC_H
#define TRAFFIC_H

#include <pthread.h>

#include "flow.h"
#include "lib/peer.h"

#define LANES		4u	/* at most */
#define SRQ_SLOTS	256u
#define MOST_DEPTH	32u

enum kind { SMALL, LARGE, UD, PAGING, ANSWERS, KINDS };

struct shape {
	const char *name;
	enum ibv_qp_type type;
	uint32_t lanes;
	uint32_t depth;		/* requests that each lane has under way */
	uint32_t size;		/* bytes of a request */
	bool memory;		/* READs and WRITEs, no messages */
	bool on_demand;
	bool answers;		/* WRITEs, each after that of the peer */
};

struct lane {
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct qp_address here, there;
	uint64_t target;	/* the peer's window for this lane */
	uint32_t rkey;
	uint32_t posted, done;	/* requests */
	uint64_t sent, expected;	/* numbers of the next messages */
	bool ended;
};

struct traffic {
	struct flow flow;
	struct peer peer;
	const struct shape *shape;
	struct connection conn;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct lane lane[LANES];
	unsigned int ended;		/* lanes */
	uint32_t statuses;		/* of completions in error, a bit each */
	bool fatal;			/* the device is gone */
	bool stopped;			/* and posts no more */
	uint64_t heard;			/* when a message came that was awaited */

	/* Messages: slots to receive into, then slots to send from. */
	uint8_t *mem;
	size_t mem_size;
	struct ibv_mr *mr;
	/*
	 * Memory: per lane slots that the peer writes, as many that it reads, and as
	 * many for what was read and for what is written.
	 */
	pthread_t pager;
	bool stop_pager;
};

/* setup.c */
void traffic_open(struct traffic *t);
void traffic_close(struct traffic *t);

/* post.c */
void post_receive(struct traffic *t, uint32_t slot);
/* Posts a request as the lane's next one; returns whether its queue has taken it. */
bool lane_post(struct traffic *t, struct lane *l, struct ibv_send_wr *wr);
/* Keeps the send queue of a lane full. */
void lane_fill(struct traffic *t, struct lane *l);
void complete_send(struct traffic *t, const struct ibv_wc *wc);
void complete_receive(struct traffic *t, const struct ibv_wc *wc);

/* answer.c */
/*
 * Exchanges messages for a while.  Returns whether the peer has answered of late; otherwise it
 * is time to look elsewhere, but soon to come back.
 */
bool answer(struct traffic *t);

/* Where the parts of a lane's memory are. */
enum part { WRITTEN, READ_ONLY, READ_INTO, SOURCE, PARTS };

uint8_t *part_of(const struct traffic *t, unsigned int lane, enum part part, uint32_t slot);
uint64_t part_seed(bool server, unsigned int lane, enum part part);

#endif
