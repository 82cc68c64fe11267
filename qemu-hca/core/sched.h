/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which QP works next, and when one must be woken.
 *
 * QPs with work wait in one FIFO list threaded through the per-QPN table and
 * are served in turn, a quantum of packets each.  Timers (local ACK timeout,
 * RNR wait; a QP has one at a time) sit in a binary heap over the same table.
 *
 * Lingering.  A send queue that runs dry may be stayed at, since whoever posts
 * meanwhile need not ring: sq_active stays set.  It is looked at with each
 * acknowledgement, and every QHCA_LINGER_NS (QHCA_LINGER_IDLE_NS when none is
 * due), until QHCA_LINGER_END_NS after requests were last found.  A request
 * that is posted meanwhile waits for the next look.  So it is done where many
 * are posted at a time, and not for those who post one, wait for its end and
 * post the next:
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
#ifndef QHCA_CORE_SCHED_H
#define QHCA_CORE_SCHED_H

#include <stdbool.h>
#include <stdint.h>

struct qhca_hca;

/* qhca_qpslot.work */
#define QHCA_WORK_SEND		0x01u	/* send queue: doorbell, ACK, timer */
#define QHCA_WORK_RESPOND	0x02u	/* read responses, ACK or NAK due */
#define QHCA_WORK_FLUSH		0x04u	/* in error: flush both queues */
#define QHCA_WORK_DOORBELL	0x08u	/* db_pi is news */
#define QHCA_WORK_TIMER		0x10u	/* the timer fired */
#define QHCA_WORK_LOOK		0x20u	/* read sq_pi from the record */
#define QHCA_WORK_QUEUED	0x80u	/* is in the list */

#define QHCA_SCHED_QUANTUM	32	/* packets a turn */
#define QHCA_LINGER_MAX		64u	/* QPs at a time */
#define QHCA_LINGER_NS		100000u	/* from look to look */
#define QHCA_LINGER_IDLE_NS	50000u
#define QHCA_LINGER_END_NS	1000000u
#define QHCA_PROMPT_NS		20000u	/* no answer comes sooner */
#define QHCA_RING_COST		32u
#define QHCA_RING_DEBT		64u	/* deep */
#define QHCA_RING_SHY_MAX	15u
#define QHCA_LONE		2u	/* doorbells in a row: one at a time */

struct qhca_sched {
	uint32_t *heap;			/* QPNs; heap[1] is due first */
	uint32_t heap_len;
	uint32_t heap_cap;
	uint32_t first, last;		/* list of QPNs; 0: empty (QP 0 is none) */
	uint32_t queued;
	uint64_t unblocked;		/* when the link last took frames again */
	bool was_blocked;
	struct {
		uint64_t due;		/* ns, of the next look */
		uint32_t qpn;
	} linger[QHCA_LINGER_MAX];	/* unordered */
	uint32_t num_linger;
	uint64_t linger_due;		/* of the first, or before; QHCA_NEVER */
};

bool qhca_sched_init(struct qhca_hca *hca, uint32_t num_slots);
void qhca_sched_fini(struct qhca_hca *hca);

/* A write to QHCA_DB_SQ.  O(1), no DMA; counts what it ignores. */
void qhca_sched_doorbell(struct qhca_hca *hca, uint32_t page, uint32_t qpn,
			 uint32_t pi);

/* Serve due timers and queued QPs; returns packets (or like work) spent. */
unsigned int qhca_sched_run(struct qhca_hca *hca, unsigned int budget);

/* Is a QP queued (and could run: nothing runs while the wire is blocked)? */
bool qhca_sched_pending(const struct qhca_hca *hca);
/* Of the timer (or end of lingering) due first, ns; QHCA_NEVER. */
uint64_t qhca_sched_deadline(const struct qhca_hca *hca);

/* ---- for the transport */
void qhca_sched_work(struct qhca_hca *hca, uint32_t qpn, uint8_t work);
void qhca_sched_timer(struct qhca_hca *hca, uint32_t qpn, uint64_t deadline);
void qhca_sched_timer_stop(struct qhca_hca *hca, uint32_t qpn);
/* The QP had a completion or a request of its peer's. */
void qhca_sched_heard(struct qhca_hca *hca, uint32_t qpn);
/* @n WQEs of the send queue were found without a doorbell. */
void qhca_sched_found(struct qhca_hca *hca, uint32_t qpn, uint32_t n);
/* The QP is gone, or as new: no timer, no work, nothing known of it. */
void qhca_sched_forget(struct qhca_hca *hca, uint32_t qpn);

#endif /* QHCA_CORE_SCHED_H */
