/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion queues: a producer over a cached descriptor (seed 003).
 *
 * Occupancy is pi - ci, with the ci last fetched from the record, so it is never
 * too small.  Past the descriptor's threshold, ci is fetched again with the
 * next completion, once; and always before an overrun is declared.  An overrun
 * raises one CQ_ERROR event, leaves the last CQE intact, and ends the CQ.
 *
 * Arming: the doorbell carries the ci up to which software has polled.  If
 * completions (solicited ones, if so armed) were written beyond it the event is
 * due at once, so none is lost between the last poll and the doorbell.  A
 * CQ armed for the next completion stays so when armed for a solicited one.
 * The record's `armed` word follows.
 *
 * Moderation: with moder_usec > 0 and moder_count != 1 a due event waits until
 * moder_count completions are due (0: no count) or moder_usec have passed
 * since the first.  At most HCA_CQ_MAX_TIMERS wait; a further one does not.
 *
 * Resize (MODIFY_CQ with QHCA_CQ_ATTR_RESIZE; buf, rec_offset and log_depth
 * apply): the device writes one CQE of opcode QHCA_CQE_RESIZED, the marker, at pi of
 * the old ring and continues in the new one.  Indices continue as well: the first
 * index in the new ring is the next multiple of twice the new depth, which is in
 * slot 0 and has phase 1.  The marker's `wqe` field and the command's out_param hold
 * that index, and software's ci in the new record continues from it.  The marker
 * counts as a completion for an arm for the next completion.  Until software has
 * consumed the marker it counts the old ring's ci, and the device reports an event
 * at once when software arms with that ci.  A full old ring has no room for the
 * marker, so the command ends with QHCA_CMD_BAD_STATE; software therefore sizes a
 * ring with one slot to spare.
 */
#ifndef HCA_CORE_CQ_H
#define HCA_CORE_CQ_H

#include "qhca.h"
#include "mem/descriptor_cache.h"
#include "handler.h"
#include "queue/qbuf.h"

#define HCA_CQ_MAX_TIMERS	256

enum hca_cq_state { HCA_CQ_FREE = 0, HCA_CQ_LIVE = 1, HCA_CQ_ERROR = 2 };
enum hca_cq_arm { HCA_ARM_NONE = 0, HCA_ARM_NEXT = 1, HCA_ARM_SOLICITED = 2 };

/* detail of QHCA_EVENT_CQ_ERROR */
#define HCA_CQ_ERR_OVERRUN	1u
#define HCA_CQ_ERR_DMA		2u

struct hca_cq {				/* decoded struct qhca_cqc */
	struct hca_qbuf buf;
	uint32_t rec_offset, eqn, db_page, threshold;
	uint32_t pi, ci;
	uint32_t last_sol;		/* index after the last solicited CQE */
	uint32_t events, pending;	/* pending: due, held by moderation */
	uint16_t moder_count, moder_usec;
	uint8_t log_depth, flags;
	uint8_t state;			/* enum hca_cq_state */
	uint8_t arm;			/* enum hca_cq_arm */
};

struct hca_cq_slot {			/* on chip, for each number */
	uint32_t refs;			/* queues that complete here */
	bool live;
	bool timer;			/* is among hca_cqs.timer */
};

struct hca_cqs {
	struct hca_cq_slot *slot;	/* [1 << cfg.log_max_cq] */
	uint32_t num;			/* usable, by INIT_HCA */
	struct {
		uint64_t due;
		uint32_t cqn;
	} timer[HCA_CQ_MAX_TIMERS];	/* moderation, unordered */
	uint32_t num_timers;
	uint64_t first_due;		/* lower bound; QHCA_NEVER: none */
};

bool hca_cqs_create(struct hca_fn *fn);		/* false: no memory */
void hca_cqs_destroy(struct hca_fn *fn);
/* At INIT_HCA; false: geometry or memory.  fini is safe at any time. */
bool hca_cqs_init(struct hca_fn *fn, struct qhca_geometry geometry);
void hca_cqs_fini(struct hca_fn *fn);

bool hca_cq_exists(const struct hca_fn *fn, uint32_t cqn);
/* One more queue completes to @cqn; false: no such CQ. */
bool hca_cq_ref(struct hca_fn *fn, uint32_t cqn);
void hca_cq_unref(struct hca_fn *fn, uint32_t cqn);

/*
 * Write a completion.  @cqe is little-endian, all but the timestamp and the
 * phase, which this fills in.  It is solicited if QHCA_CQE_SOLICITED is set or status
 * is not success.  false: no such CQ, or it is or now went into error.
 */
bool hca_cq_post(struct hca_fn *fn, uint32_t cqn, struct qhca_cqe *cqe);

/*
 * For heuristics only: neither function disturbs the order of the cache.  written:
 * how many entries the device has written.  refetch: read the consumer index again,
 * as past the threshold.  false: the descriptor is not in the cache, the CQ is in
 * error, or the record cannot be read.
 */
bool hca_cq_written(const struct hca_fn *fn, uint32_t cqn, uint32_t *pi);
bool hca_cq_refetch(struct hca_fn *fn, uint32_t cqn, uint32_t *ci);

/*
 * Has a program whose doorbell page is @page, and which has consumed @ci entries, seen all
 * that were written?  As above, this is for heuristics; false if it is not known.
 */
bool hca_cq_is_drained(const struct hca_fn *fn, uint32_t cqn, uint32_t page,
		       uint32_t ci);

/* QHCA_DB_CQ_ARM through doorbell page @page. */
void hca_cq_doorbell(struct hca_fn *fn, uint32_t page, uint64_t value);
/* Moderation timers that are due. */
void hca_cqs_run(struct hca_fn *fn);
uint64_t hca_cqs_deadline(const struct hca_fn *fn);

enum qhca_cmd_status hca_cmd_create_cq(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_destroy_cq(struct hca_fn *fn,
					struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_query_cq(struct hca_fn *fn,
				      struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_modify_cq(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_CQ_H */
