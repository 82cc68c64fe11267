/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Lingering: watching a send queue that is empty.
 *
 * Problem.  Ringing a doorbell costs the guest an exit, and most applications
 * post their next request within microseconds.  While the device lingers at an
 * empty send queue, sq_active stays set in the queue's record, software does not
 * ring, and the device reads sq_pi itself: with each acknowledgement, and every
 * HCA_LINGER_NS, or every HCA_LINGER_ACKED_NS while requests are outstanding.  These
 * will be acknowledged, so the timer is only for a peer that is slow or a packet that
 * is lost; in QEMU each look by a timer mostly is a turn of the main loop.  Where it is not
 * (qhca_timers_are_cheap()), the first look follows HCA_LINGER_FIRST_NS after all are
 * acknowledged, as an application that has waited for that posts at once, and each later
 * one after twice the time, up to HCA_LINGER_NS.  The device stops
 * when it has found no requests for HCA_LINGER_END_NS.  But a request that is posted
 * meanwhile waits for the next read.  An application that has many requests
 * outstanding loses nothing by that; one that keeps three to seven on a link whose
 * acknowledgements are far apart may wait up to HCA_LINGER_ACKED_NS after each.  An
 * application that posts one request, waits for its completion and posts the next would
 * lose up to HCA_LINGER_NS with each request.
 *
 * Idea.  The device tells these applications apart by the number of requests that
 * the application has posted and does not know to be complete.  The number of
 * requests that the device has outstanding would not do: when the doorbell runs
 * the peer before the guest continues, each request is complete before the next
 * is posted, even if the application would post 64 without waiting.
 *
 * An application knows of a completion when it has consumed the CQE, which the
 * consumer index in the CQ's record shows.  A request without a CQE is complete
 * with the next request that has one.  Each read of that index is a refetch of
 * the CQ's descriptor, so the device reads it only where it can change the
 * decision:
 *
 *  - It does not read while two or more requests are outstanding, because it
 *    lingers then anyway.
 *  - It does not read for an unreliable QP, because it never lingers there: a
 *    request is complete when it has been sent, and no acknowledgement makes the
 *    device look again.
 *  - It does not read while the newest CQE is HCA_LINGER_WINDOW requests old,
 *    because the application cannot know these to be complete.
 *  - Otherwise it notes a CQE, and reads the index once when HCA_LINGER_WINDOW
 *    more requests have been posted.  If software has not consumed the noted CQE
 *    by then, many requests are outstanding for the application.
 *
 * A read that confirms one request at a time doubles the number of posts until
 * the next read, up to HCA_LINGER_WINDOW << HCA_LINGER_PATIENCE.  Where the device
 * lingers, a read that finds all CQEs consumed is one vote against it, and the
 * device reads again with the next post.  It stops after HCA_LINGER_SURE votes in
 * succession, so that it does not misjudge software that consumes CQEs in batches.
 *
 * A message of the peer may report completions as well, for example the response
 * of a remote procedure call.  The device assumes this where each post follows as
 * many messages as the post before, and at least one, HCA_LINGER_SURE times in
 * succession; two independent streams do not keep such a rhythm.  The device does
 * not know what messages of other QPs report.  An application that waits for those
 * and requests no CQEs may wait for a read each time.
 *
 * Invariant.  Lingering delays the end of doorbell suppression and changes nothing
 * else: before the device stops watching a queue it clears sq_active, executes a
 * full barrier and reads sq_pi once more.  A wrong decision costs time, never a
 * request.
 *
 * Shares.  The device lingers at no more than HCA_LINGER_MAX QPs, and at no more of a
 * function's than its share (places.h).  A function that has more keeps each until its
 * next read.
 *
 * Example.  A ping-pong posts WQE 0, which has a CQE.  The device notes this CQE
 * and does not linger.  When WQE 8 has been posted, the device reads the consumer
 * index and finds that software has consumed all CQEs: one request at a time.  It
 * reads again after 16 more posts, then after 32, 64 and 128, then after every 128
 * posts: 6 reads for 400 requests.  A stream posts WQEs 0 to 63 and then polls the
 * CQ.  When WQE 8 has been posted, software has not consumed the noted CQE, so the
 * device lingers from then on.
 */
#ifndef HCA_CORE_LINGER_H
#define HCA_CORE_LINGER_H

#include <stdbool.h>
#include <stdint.h>

#include "qhca.h"
#include "wire/places.h"

struct hca;
struct hca_fn;
struct hca_qp;

#define HCA_LINGER_MAX		64u	/* QPs at a time, of all functions */
#define HCA_LINGER_FIRST_NS	5000u	/* before the first read, if timers are cheap */
#define HCA_LINGER_NS		50000u	/* between two, at most */
#define HCA_LINGER_ACKED_NS	200000u	/* ... while acknowledgements are to come */
#define HCA_LINGER_END_NS	1000000u
#define HCA_LINGER_WINDOW	8u	/* requests */
#define HCA_LINGER_SURE		4u	/* votes, or posts in rhythm, in succession */
#define HCA_LINGER_PATIENCE	4u	/* doublings */

/**
 * struct hca_linger_qp - what the device knows of the application that posts to a
 *	QP (in hca_qpslot)
 * @moved: time in microseconds at which sq_pi last moved
 * @read_at: sq_pi when the device last read the CQ's consumer index
 * @newest: the newest CQE completes all WQEs before this one
 * @newest_cqe: number of CQEs in the CQ up to and including the newest one
 * @noted: as @newest, for the noted CQE
 * @noted_cqe: as @newest_cqe, for the noted CQE
 * @has_noted: a CQE is noted
 * @on: the QP is among hca_linger.qp
 * @read_next: the last read was a vote against lingering, so the device reads
 *	again with the next post
 * @votes: votes against lingering after which the device still lingers
 * @patience: reads in succession that found one request at a time
 * @waits: early looks that the device has scheduled since sq_pi last moved
 * @messages: messages that the peer has sent since the last post
 * @messages_before: messages that the peer sent between the two last posts
 * @rhythm: posts in succession that followed as many messages as the post before
 */
struct hca_linger_qp {
	uint32_t moved;
	uint32_t read_at;
	uint32_t newest, newest_cqe;
	uint32_t noted, noted_cqe;
	bool has_noted;
	bool on;
	bool read_next;
	uint8_t votes;
	uint8_t patience : 4, waits : 4;
	uint8_t messages, messages_before;
	uint8_t rhythm;
};

/* The QPs of all functions at which the device lingers. */
struct hca_linger {
	struct {
		uint64_t due;		/* ns, when sq_pi is read next */
		uint32_t qpn;
		uint16_t gvmi;		/* its function */
	} qp[HCA_LINGER_MAX];		/* unordered */
	uint32_t num;
	struct hca_places places;	/* of the functions of these QPs */
	uint64_t first_due;		/* no later than any due; QHCA_NEVER: none */
};

/* The device lingers at no QP of the function any more, as after reset. */
void hca_linger_fini(struct hca_fn *fn);

/*
 * The transport reports what happens to a QP.  Each call takes O(HCA_LINGER_MAX)
 * steps.  Only hca_linger_posted() uses DMA: it may refetch the index of the send
 * CQ, if the CQ's descriptor is in the cache.
 */

/* sq_pi has moved from @old, by a doorbell or by a read of the record. */
void hca_linger_posted(struct hca_fn *fn, const struct hca_qp *qp,
		       uint32_t old);
/* The device has written a CQE that completes @wqe and the WQEs before it. */
void hca_linger_completed(struct hca_fn *fn, const struct hca_qp *qp,
			  uint32_t wqe);
/* The peer has sent the last packet of a message. */
void hca_linger_message(struct hca_fn *fn, uint32_t qpn);
/* The QP has been destroyed or reset. */
void hca_linger_forget(struct hca_fn *fn, uint32_t qpn);

/*
 * The send queue of @qp is empty: begin to linger there, or go on lingering.  true:
 * sq_active remains set, and hca_linger_run() will schedule the QP.  false: the
 * device does not linger, and must end doorbell suppression.
 */
bool hca_linger_stay(struct hca_fn *fn, const struct hca_qp *qp);

/*
 * Will hca_linger_stay() return true when the posted requests have been sent?  If
 * this is known before, sq_active can be set at once, and posts need not ring from
 * the beginning.
 */
bool hca_linger_likely(struct hca_fn *fn, const struct hca_qp *qp);

/* Schedule the QPs whose sq_pi is to be read now. */
void hca_linger_run(struct hca *hca);

#endif /* HCA_CORE_LINGER_H */
