/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The run queue and the timers of QPs.
 *
 * They are the adapter's: all PCI functions share the wire, so entries name the
 * function as well.  QPs with work wait in one FIFO list that is threaded through
 * the tables of slots.  The device serves them in turn, a quantum of packets each.
 * Timers (local ACK timeout, RNR wait; a QP has one at a time) are in a binary heap
 * over the same tables.  At an empty send queue the device may linger: linger.h.
 */
#ifndef HCA_CORE_SCHED_H
#define HCA_CORE_SCHED_H

#include <stdbool.h>
#include <stdint.h>

struct hca;
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

struct hca_qpref {			/* a QP of the adapter */
	uint32_t qpn;			/* 0: none, since QP 0 does not exist */
	uint16_t gvmi;			/* its function */
};

struct hca_sched {
	struct hca_qpref *heap;		/* heap[1] is due first */
	uint32_t heap_len;
	uint32_t heap_cap;		/* slots of all functions */
	struct hca_qpref first, last;	/* list */
	uint64_t unblocked;		/* when the link last took frames again */
	bool was_blocked;
};

/*
 * Make room for the timers of a function with @num_slots slots; drop its timers and
 * queued QPs, and the room.  init: false when memory is short.  fini may be called
 * at any time, while the function's slots exist.
 */
bool hca_sched_init(struct hca_fn *fn, uint32_t num_slots);
void hca_sched_fini(struct hca_fn *fn);

/* ---- for the transport */
void hca_sched_work(struct hca_fn *fn, uint32_t qpn, uint8_t work);
void hca_sched_timer(struct hca_fn *fn, uint32_t qpn, uint64_t deadline);
void hca_sched_timer_stop(struct hca_fn *fn, uint32_t qpn);
/* When the timer at place @pos of the heap is due. */
uint64_t hca_sched_due(const struct hca *hca, uint32_t pos);
/* Queue at most @budget QPs whose timer is due. */
void hca_sched_expire(struct hca *hca, unsigned int budget);
/* Take the QP whose turn it is from the list. */
struct hca_qpref hca_sched_pop(struct hca *hca);
/* The QP has been destroyed, created or reset: drop its timer and its work. */
void hca_sched_forget(struct hca_fn *fn, uint32_t qpn);

#endif /* HCA_CORE_SCHED_H */
