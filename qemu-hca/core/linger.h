/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Staying at a send queue that has run dry.
 *
 * Whoever posts meanwhile need not ring: sq_active stays set.  The queue is
 * looked at with each acknowledgement, and every QHCA_LINGER_NS
 * (QHCA_LINGER_IDLE_NS when none is due), until QHCA_LINGER_END_NS after
 * requests were last found.  A request that is posted meanwhile waits for the
 * next look.  So it is done where many are posted at a time, and not for those
 * who post one, wait for its end and post the next:
 *
 *  - while two or more requests are under way;
 *  - while one is, if the queue is in debt, or if several requests were found
 *    together since the doorbell before the last;
 *  - while none is, if it is deep in debt.
 *
 * Only on reliable QPs: others are done with a request when it is sent.
 *
 * Debt is what doorbells cost: QHCA_RING_COST for each, less one for each
 * request that had none of its own.  It starts anew with a doorbell that may be
 * the answer to something, that is, QHCA_PROMPT_NS after the requests before,
 * and after a completion or a request of the peer's.  The third case is that of a
 * busy host, which after each doorbell runs the peer until its answer is there,
 * and only then goes on with the guest that posts.  There a look may find what
 * was posted one at a time after all: nothing is gained then, debt starts anew,
 * and every two such looks (with none between that found several) double the
 * debt that it takes to linger like this again.
 */
#ifndef QHCA_CORE_LINGER_H
#define QHCA_CORE_LINGER_H

#include <stdbool.h>
#include <stdint.h>

struct qhca_hca;
struct qhca_qp;

#define QHCA_LINGER_MAX		64u	/* QPs at a time */
#define QHCA_LINGER_NS		100000u	/* from look to look */
#define QHCA_LINGER_IDLE_NS	50000u
#define QHCA_LINGER_END_NS	1000000u
#define QHCA_PROMPT_NS		20000u	/* no answer comes sooner */
#define QHCA_RING_COST		32u
#define QHCA_RING_DEBT		64u	/* deep */
#define QHCA_RING_SHY_MAX	15u
#define QHCA_LONE		2u	/* doorbells in a row: one at a time */

/* What is known of who posts to a QP; in its qhca_qpslot. */
struct qhca_linger_qp {
	uint32_t moved;			/* us, when sq_pi moved */
	uint16_t debt;
	uint8_t shy;			/* looks in vain */
	uint8_t lone;			/* doorbells since several were found */
	bool on;			/* is among qhca_linger.qp */
	bool idle;			/* ... with nothing under way */
	bool heard;			/* qhca_linger_heard(), since sq_pi moved */
};

/* Where the device lingers. */
struct qhca_linger {
	struct {
		uint64_t due;		/* ns, of the next look */
		uint32_t qpn;
	} qp[QHCA_LINGER_MAX];		/* unordered */
	uint32_t num;
	uint64_t first_due;		/* or before it; QHCA_NEVER: none */
};

/* Nowhere, as after reset. */
void qhca_linger_init(struct qhca_hca *hca);

/*
 * What happens to a QP.  rung: a doorbell told of @n WQEs; found: as many were
 * found without one; heard: a completion was written or a request of the peer's
 * came; forget: the QP is gone, or as new.  O(QHCA_LINGER_MAX), no DMA.
 */
void qhca_linger_rung(struct qhca_hca *hca, uint32_t qpn, uint32_t n);
void qhca_linger_found(struct qhca_hca *hca, uint32_t qpn, uint32_t n);
void qhca_linger_heard(struct qhca_hca *hca, uint32_t qpn);
void qhca_linger_forget(struct qhca_hca *hca, uint32_t qpn);

/*
 * The send queue of @qp has run dry.  true: stay, sq_active remains set and
 * qhca_linger_run() will schedule the QP; false: turn away.
 */
bool qhca_linger_stay(struct qhca_hca *hca, const struct qhca_qp *qp);

/* Schedule the QPs whose next look is due. */
void qhca_linger_run(struct qhca_hca *hca);

#endif /* QHCA_CORE_LINGER_H */
