/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which QP works next, and when one must be woken.
 *
 * QPs with work wait in one FIFO list threaded through the per-QPN table and
 * are served in turn, a quantum of packets each.  Timers (local ACK timeout,
 * RNR wait; a QP has one at a time) sit in a binary heap over the same table.
 *
 * A send queue that runs dry with requests under way is lingered at: whoever
 * has several outstanding is likely to post again, and need not ring as long
 * as sq_active is set.  It is looked at with each acknowledgement, and at the
 * latest QHCA_LINGER_NS after the last look.  With one request at a time there
 * is no lingering, since the next post would wait for nothing.
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
#define QHCA_WORK_TURN		0x40u	/* has lingered enough */
#define QHCA_WORK_QUEUED	0x80u	/* is in the list */

#define QHCA_SCHED_QUANTUM	32	/* packets a turn */
#define QHCA_LINGER_NS		100000u
#define QHCA_LINGER_WQES	2u	/* under way, at least */
#define QHCA_LINGER_MAX		64u	/* QPs at a time */

struct qhca_sched {
	uint32_t *heap;			/* QPNs; heap[1] is due first */
	uint32_t heap_len;
	uint32_t heap_cap;
	uint32_t first, last;		/* list of QPNs; 0: empty (QP 0 is none) */
	uint32_t queued;
	uint64_t unblocked;		/* when the link last took frames again */
	bool was_blocked;
	struct {
		uint64_t due;
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
/* The QP is gone: no timer, no work. */
void qhca_sched_forget(struct qhca_hca *hca, uint32_t qpn);

#endif /* QHCA_CORE_SCHED_H */
