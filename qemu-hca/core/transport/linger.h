/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Staying at a send queue that has run dry.
 *
 * A doorbell costs a guest an exit.  While the device stays at a send queue,
 * sq_active remains set and nobody rings: the device reads sq_pi with each
 * acknowledgement and every HCA_LINGER_NS, until HCA_LINGER_END_NS after it last
 * found requests.  A request that is posted meanwhile waits for the next read.
 * Software that posts on without waiting for completions loses nothing by that.
 * Software that posts one request, waits for its completion and posts the next
 * loses up to HCA_LINGER_NS with each.  The device tells the two apart by the
 * number of requests that software has posted and does not know to be complete.
 * All of them may long have been executed.
 *
 * Software knows of a completion when it has consumed the CQE, by the consumer
 * index in the CQ's record; requests without a CQE are complete with the next
 * that has one.  Each read of that index is a refetch of the CQ's descriptor, so
 * the device reads it only where it can change the decision:
 *
 *  - never while two or more requests are under way, since it stays then, nor
 *    for a QP that is not reliable, since it never stays there;
 *  - never while the newest CQE is HCA_LINGER_WINDOW requests old, since then
 *    software cannot know of those;
 *  - else it notes a CQE and reads the index once, when HCA_LINGER_WINDOW more
 *    requests have been posted: has software consumed it?
 *
 * Each read that finds one request at a time doubles the number of posts to the
 * next read, up to HCA_LINGER_WINDOW << HCA_LINGER_PATIENCE.  Where the device
 * stays, a read that finds all CQEs consumed is one vote against it, and the
 * device reads again with the next post: HCA_LINGER_SURE votes in succession make
 * it turn away, so that software which consumes CQEs in batches is not mistaken.
 *
 * A message of the peer may tell of completions as well.  It is taken to do so
 * where as many of them as the time before came between two posts, and at least
 * one, HCA_LINGER_SURE times in succession: two streams that cross do not keep
 * such a rhythm.  The device does not know of messages of other QPs that tell of
 * completions: software that waits for these, and asks for no CQEs, may wait for
 * a read each time.
 *
 * Only reliable QPs are stayed at: others have completed a request when it is
 * sent, and nothing makes the device look again.
 */
#ifndef HCA_CORE_LINGER_H
#define HCA_CORE_LINGER_H

#include <stdbool.h>
#include <stdint.h>

struct hca_fn;
struct hca_qp;

#define HCA_LINGER_MAX		64u	/* QPs at a time */
#define HCA_LINGER_NS		50000u	/* from look to look */
#define HCA_LINGER_END_NS	1000000u
#define HCA_LINGER_WINDOW	8u
#define HCA_LINGER_SURE		4u
#define HCA_LINGER_PATIENCE	4u

/* What is known of who posts to a QP; in its hca_qpslot. */
struct hca_linger_qp {
	uint32_t moved;			/* us, when sq_pi moved */
	uint32_t looked;		/* sq_pi, when the CQ's index was read */
	/* the newest CQE tells of all WQEs before @last, and has the index before: */
	uint32_t last, last_cqe;
	/* the CQE that was noted, likewise */
	uint32_t told, told_cqe;
	bool telling;			/* one is noted */
	bool on;			/* is among hca_linger.qp */
	bool doubt;			/* the last read was a vote against staying */
	uint8_t votes;			/* left before the device turns away; 0: does */
	uint8_t patience;		/* reads that confirmed turning away */
	uint8_t heard, heard_before;	/* messages since sq_pi moved, and before */
	uint8_t answers;		/* in succession: as many, and not none */
};

/* Where the device lingers. */
struct hca_linger {
	struct {
		uint64_t due;		/* ns, of the next look */
		uint32_t qpn;
	} qp[HCA_LINGER_MAX];		/* unordered */
	uint32_t num;
	uint64_t first_due;		/* or before it; QHCA_NEVER: none */
};

/* Nowhere, as after reset. */
void hca_linger_init(struct hca_fn *fn);

/*
 * What happens to a QP.  O(HCA_LINGER_MAX); only the first makes DMA: it may
 * refetch the index of the send CQ, if the CQ's descriptor is in the cache.
 */

/* sq_pi has moved, from @old: by a doorbell, or by a look at the record. */
void hca_linger_posted(struct hca_fn *fn, const struct hca_qp *qp,
		       uint32_t old);
/* A CQE for the send queue was written: WQE @wqe and those before have ended. */
void hca_linger_told(struct hca_fn *fn, const struct hca_qp *qp,
		     uint32_t wqe);
/* A message of the peer's came, or a part of it. */
void hca_linger_heard(struct hca_fn *fn, uint32_t qpn);
/* The QP is gone, or as new. */
void hca_linger_forget(struct hca_fn *fn, uint32_t qpn);

/*
 * The send queue of @qp has run dry.  true: stay, sq_active remains set and
 * hca_linger_run() will schedule the QP; false: turn away.
 */
bool hca_linger_stay(struct hca_fn *fn, const struct hca_qp *qp);

/*
 * Will hca_linger_stay() say true when what is posted has been sent?  To know
 * before: then posts need not ring from the beginning.
 */
bool hca_linger_likely(struct hca_fn *fn, const struct hca_qp *qp);

/* Schedule the QPs whose next look is due. */
void hca_linger_run(struct hca_fn *fn);

#endif /* HCA_CORE_LINGER_H */
