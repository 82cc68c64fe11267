/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Shared receive queues: contexts, commands, taking an entry.
 */
#ifndef HCA_CORE_SRQ_H
#define HCA_CORE_SRQ_H

#include <stdbool.h>
#include <stdint.h>

#include "qhca.h"
#include "mem/descriptor_cache.h"
#include "handler.h"
#include "queue/qbuf.h"
#include "queue/wq.h"

enum hca_srq_state {
	HCA_SRQ_FREE = 0, HCA_SRQ_LIVE = 1, HCA_SRQ_ERROR = 2,
};

struct hca_srq {
	uint32_t srqn;
	struct qhca_srqc_sw sw;		/* as given */
	struct hca_qbuf buf;
	uint64_t handle;
	uint32_t rec_offset, pd, cqn, xrcd, limit, threshold;
	uint32_t depth;
	uint8_t log_stride, flags, max_sge;
	uint32_t state, head, taken, pi;
};

/* On-chip state of each SRQN. */
struct hca_srqslot {
	uint32_t users;			/* QPs that refer to it */
	bool live;
	bool xrc;
	uint8_t generation;		/* SRQs there have been of this number */
};

struct hca_srqs {
	struct hca_srqslot *slot;	/* 2^log_max_srq */
	uint32_t num_slots;
};

/* As hca_qps_init() and hca_qps_fini(). */
bool hca_srqs_init(struct hca_fn *fn, struct qhca_geometry geometry);
void hca_srqs_fini(struct hca_fn *fn);

enum qhca_cmd_status hca_cmd_create_srq(struct hca_fn *fn,
					struct hca_cmd_ctx *cmd);
enum qhca_cmd_status hca_cmd_modify_srq(struct hca_fn *fn,
					struct hca_cmd_ctx *cmd);
enum qhca_cmd_status hca_cmd_resize_srq(struct hca_fn *fn,
					struct hca_cmd_ctx *cmd);
enum qhca_cmd_status hca_cmd_query_srq(struct hca_fn *fn,
				       struct hca_cmd_ctx *cmd);
enum qhca_cmd_status hca_cmd_destroy_srq(struct hca_fn *fn,
					 struct hca_cmd_ctx *cmd);

/*
 * QPs that refer to an SRQ: DESTROY_SRQ answers IN_USE while there are any.
 * ref: false if there is no such SRQ, or it is one for XRC, which no QP owns.
 */
bool hca_srq_ref(struct hca_fn *fn, uint32_t srqn);
void hca_srq_unref(struct hca_fn *fn, uint32_t srqn);

enum hca_take {
	HCA_TAKE_OK,
	HCA_TAKE_EMPTY,
	HCA_TAKE_ERROR,			/* ring unreadable or SRQ in error */
};

/* Take the list's head. */
enum hca_take hca_srq_take(struct hca_fn *fn, uint32_t srqn,
			   struct hca_rwqe *w);
/* Re-read slot @slot that was taken. */
enum hca_take hca_srq_reread(struct hca_fn *fn, uint32_t srqn,
			     uint32_t slot, struct hca_rwqe *w);

/*
 * An XRC SRQ as a request finds it.  No QP holds a reference to it, so software may
 * destroy it, and use its number again, in the middle of a message.  A QP keeps the
 * token, with which it finds the SRQ again or finds that it no longer exists.
 */
struct hca_xsrq {
	uint32_t token;			/* SRQN; top octet: which of that number */
	uint32_t srqn, pd, cqn;
	uint64_t handle;		/* of its completions */
};
/* false: no XRC SRQ of this number, or not one of domain @xrcd. */
bool hca_srq_xrc(struct hca_fn *fn, uint32_t srqn, uint32_t xrcd,
		 struct hca_xsrq *x);
/* The SRQ of @token.  false: it no longer exists. */
bool hca_srq_xrc_again(struct hca_fn *fn, uint32_t token, uint32_t xrcd,
		       struct hca_xsrq *x);

#endif /* HCA_CORE_SRQ_H */
