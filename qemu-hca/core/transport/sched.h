/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The run queue and the timers of QPs.
 *
 * QPs with work wait in one FIFO list that is threaded through the table of slots.
 * The device serves them in turn, a quantum of packets each.  Timers (local ACK
 * timeout, RNR wait; a QP has one at a time) are in a binary heap over the same
 * table.  At an empty send queue the device may linger: linger.h.
 */
#ifndef HCA_CORE_SCHED_H
#define HCA_CORE_SCHED_H

#include <stdbool.h>
#include <stdint.h>

struct hca_fn;

/* hca_qpslot.work */
#define HCA_WORK_SEND		0x01u	/* send queue: doorbell, ACK, timer */
#define HCA_WORK_RESPOND	0x02u	/* read responses, ACK or NAK due */
#define HCA_WORK_FLUSH		0x04u	/* in error: flush both queues */
#define HCA_WORK_DOORBELL	0x08u	/* db_pi is news */
#define HCA_WORK_TIMER		0x10u	/* the timer fired */
#define HCA_WORK_REFETCH		0x20u	/* read sq_pi from the record */
#define HCA_WORK_QUEUED		0x80u	/* is in the list */

#define HCA_SCHED_QUANTUM	32	/* packets a turn */

struct hca_sched {
	uint32_t *heap;			/* QPNs; heap[1] is due first */
	uint32_t heap_len;
	uint32_t heap_cap;
	uint32_t first, last;		/* list of QPNs; 0: empty (QP 0 is none) */
	uint32_t queued;
	uint64_t unblocked;		/* when the link last took frames again */
	bool was_blocked;
};

bool hca_sched_init(struct hca_fn *fn, uint32_t num_slots);
void hca_sched_fini(struct hca_fn *fn);

/* ---- for the transport */
void hca_sched_work(struct hca_fn *fn, uint32_t qpn, uint8_t work);
void hca_sched_timer(struct hca_fn *fn, uint32_t qpn, uint64_t deadline);
void hca_sched_timer_stop(struct hca_fn *fn, uint32_t qpn);
/* When the timer at place @pos of the heap is due. */
uint64_t hca_sched_due(const struct hca_fn *fn, uint32_t pos);
/* Queue at most @budget QPs whose timer is due. */
void hca_sched_expire(struct hca_fn *fn, unsigned int budget);
/* Take the QP whose turn it is from the list. */
uint32_t hca_sched_pop(struct hca_fn *fn);
/* The QP has been destroyed, created or reset: drop its timer and its work. */
void hca_sched_forget(struct hca_fn *fn, uint32_t qpn);

#endif /* HCA_CORE_SCHED_H */
