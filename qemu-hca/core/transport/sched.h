/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The run queue and the timers of QPs.
 *
 * QPs with work wait in one FIFO list for each function, which is threaded through the
 * function's table of slots.  A QP has a turn of HCA_SCHED_QUANTUM packets,
 * and of those that are left then of a bundle of answers and one of requests.
 *
 * Functions with work take part in a round, and the first of them is served: deficit
 * round robin.  A visit gives a function credit for HCA_SCHED_QUANTUM packets, and its
 * QPs have turns until it has spent this.  As a turn ends when the QP likes, a function
 * may spend more than its credit, and has so much less at the next visit.  A function
 * with a single QP therefore sends as much as one with a thousand.
 *
 *   A: QPs 1, 2 and 3 send 20, 20 and 8 packets; B: QP 7 always sends 32
 *   A 32, turns of 1 and 2, 8 overdrawn | B 32, turn of 7 | A 24, turns of 3, 1, ...
 *
 * A function that has not had its guaranteed rate (rate.h) goes before its place in the
 * round, for as many packets as it lacks, which costs no credit: its tokens pay, also for
 * what is left then of its bundles.  A bucket that is smaller than a bundle (26 Mb/s for 32
 * KiB) does not pay for a second one in such a turn, so that up to one in 10 ms is free.  If
 * the function uses such a turn to send nothing it waits for its place in the round next
 * time: otherwise it could keep all others out by work that sends nothing.
 *
 * A function that has reached its maximum rate is held.  QPs that found this when they
 * wanted to send leave the FIFO list for another one, the ring of those that wait, so
 * that nothing is asked again until there are tokens.  Such a QP may have to acknowledge
 * meanwhile, which does not wait, and is then in the FIFO list as well.
 *
 * A function without room in the loopback queue (transmit.h) could send nothing.  It
 * leaves the round until it has room again, and so pays for no turn in which its QPs
 * could only wait.
 *
 * Timers (local ACK timeout, RNR wait; a QP has one at a time) are in a binary heap
 * over the tables of all functions.  At an empty send queue the device may linger:
 * linger.h.
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
#define HCA_WORK_WAITS		0x40u	/* is in the ring of QPs that wait */
#define HCA_WORK_QUEUED		0x80u	/* is in the list */
#define HCA_WORK_PLACES		(HCA_WORK_WAITS | HCA_WORK_QUEUED)

#define HCA_SCHED_QUANTUM	32	/* packets a turn, and a visit */

struct hca_qpref {			/* a QP of the adapter */
	uint32_t qpn;			/* 0: none, since QP 0 does not exist */
	uint16_t gvmi;			/* its function */
};

struct hca_sched {
	struct hca_qpref *heap;		/* heap[1] is due first */
	uint32_t heap_len;
	uint32_t heap_cap;		/* slots of all functions */
	struct hca_fn *first, *last;	/* round */
	uint64_t unblocked;		/* when the link last took frames again */
	bool was_blocked;
	uint64_t no_room;		/* functions with work that wait for room in
					   the loopback queue, bit by GVMI */
};

/**
 * struct hca_fnsched - a function's QPs with work, and its place in the round
 * @first: of the list of QPs with work; 0: none
 * @last: valid if @first is not 0
 * @waiting: ring of QPs that wait for the function's rate; NULL: it has no rates
 * @wait_first: place in the ring of the one that has waited longest
 * @num_waiting: QPs in the ring
 * @credit: packets that the function may send in this visit; below 0: it has sent more
 * @in_round: it takes part in the round
 * @passed: it had precedence and has sent nothing
 * @next: behind it in the round
 */
struct hca_fnsched {
	uint32_t first, last;
	uint32_t *waiting;
	uint32_t wait_first, num_waiting;
	int32_t credit;
	bool in_round;
	bool passed;
	struct hca_fn *next;
};

struct hca_turn {			/* of a QP */
	struct hca_fn *fn;
	uint32_t qpn;
	unsigned int quantum;		/* packets, at most */
	unsigned int owed;		/* the precedence that it has; 0: none */
};

/*
 * Make room for the timers and the ring of a function with @num_slots slots, a power of
 * two; drop its timers and queued QPs, and the room.  init: false when memory is short.  fini may be called
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
/*
 * The QP sends nothing until its function has tokens.  It may be queued for other work
 * meanwhile.
 */
void hca_sched_wait(struct hca_fn *fn, uint32_t qpn);
/*
 * Functions that wait for their rate, or for room in the loopback queue, no longer take
 * part in the round again.
 */
void hca_sched_release(struct hca *hca);
/* Is there a QP whose turn it could be now?  True also if only _release() is due. */
bool hca_sched_queued(const struct hca *hca);
/* Take the QP whose turn it is from the list; its work is in the slot.  false: none. */
bool hca_sched_next(struct hca *hca, struct hca_turn *turn);
/* The turn is over, and was as much work as @spent packets. */
void hca_sched_end(const struct hca_turn *turn, unsigned int spent);
/* The QP has been destroyed, created or reset: drop its timer and its work. */
void hca_sched_forget(struct hca_fn *fn, uint32_t qpn);

#endif /* HCA_CORE_SCHED_H */
