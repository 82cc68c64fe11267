/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Staying at a send queue that has run dry.
 *
 * Whoever posts meanwhile need not ring: sq_active stays set.  The queue is
 * looked at with each acknowledgement, and every HCA_LINGER_NS, until
 * HCA_LINGER_END_NS after requests were last found.  A request that is posted
 * meanwhile waits for the next look: no loss to software that posts on without
 * waiting for ends, but all the more to software that posts one, waits for its
 * end and posts the next.  Which of the two it is tells its *window*: how many
 * requests it had posted without having seen their ends, when the last of
 * them was noticed.  The device may long have done all of them.
 *
 * An end is seen when software has taken the CQE that tells of it, by the
 * consumer index that it stores in the CQ's record; requests without a CQE end
 * with the next that has one.  A message of the peer's may tell of ends as
 * well.  It is taken to do so where as many of them as the time before came
 * between two posts, and at least one, HCA_LINGER_SURE times in succession:
 * two streams that cross do not keep such a rhythm.
 *
 * The device lingers
 *
 *  - while two or more requests are under way;
 *  - while one or none is, if the window is HCA_LINGER_WINDOW or more.
 *
 * Only on reliable QPs: others are done with a request when it is sent, and
 * nothing makes the device look again.
 *
 * A window shrinks by a quarter when something is posted after all before it
 * are known to have ended.  Not known to the device are messages of other QPs
 * that tell of ends: software that waits for these, and asks for no CQEs, may
 * wait for a look each time.
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

/* What is known of who posts to a QP; in its hca_qpslot. */
struct hca_linger_qp {
	uint32_t moved;			/* us, when sq_pi moved */
	uint32_t seen;			/* software has seen all before this WQE */
	uint32_t told;			/* ... and then before this one, */
	uint32_t told_cqe;		/* with the CQE before this index, */
	bool telling;			/* if this is set */
	bool on;			/* is among hca_linger.qp */
	uint8_t window;			/* requests; does not count further */
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
 * What happens to a QP.  O(HCA_LINGER_MAX); only the first makes DMA: it reads
 * the record of the send CQ, if the CQ's descriptor is at hand.
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

/* Schedule the QPs whose next look is due. */
void hca_linger_run(struct hca_fn *fn);

#endif /* HCA_CORE_LINGER_H */
