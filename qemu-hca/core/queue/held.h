/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What only the files of the event queues share: the ring of an EQ, and the events
 * that wait for room in it.
 */
#ifndef HCA_CORE_HELD_H
#define HCA_CORE_HELD_H

#include "hca.h"

#define HCA_EQE_SIZE	((uint32_t)sizeof(struct qhca_eqe))

/*
 * The node that holds an event, and the kind under which the node notes it: the
 * position of the event's type among those of the source.  A QP's kinds from
 * HCA_KIND_FAULT on are page faults, one for each direction.
 */
struct hca_event_origin {
	uint32_t node;
	uint8_t kind;			/* below 16 */
};

#define HCA_KIND_FAULT	8

/* ---- eq.c: the ring */

uint32_t hca_num_eqs(const struct hca_fn *fn);
void hca_eq_interrupt(struct hca_fn *fn, unsigned int vector);
/* Take over a consumer index if it is sane: between the old one and pi. */
bool hca_eq_take_ci(struct hca_eq *eq, uint32_t ci);
/* Is there room for an entry?  A refetch precedes the answer no. */
bool hca_eq_has_room(struct hca_fn *fn, struct hca_eq *eq);
void hca_eqe_fill(struct qhca_eqe *eqe, uint8_t type, uint32_t number,
		  uint32_t detail);
/* Write an entry for which there is room, with its phase.  -1: DMA failed. */
int hca_eq_put(struct hca_fn *fn, struct hca_eq *eq, struct qhca_eqe *eqe);
/* The same, with the interrupt.  A DMA error is fatal for the function. */
void hca_eq_write(struct hca_fn *fn, struct hca_eq *eq, struct qhca_eqe *eqe);

/* ---- eq_cmd.c */

/* The field of struct qhca_eqc_sw that is not as it must be, or -1: none. */
int hca_eq_fault(const struct hca_fn *fn, const struct hca_eq *eq);

/* ---- held.c: events that wait for room */

/* Nodes that there are. */
uint32_t hca_num_nodes(const struct hca_fn *fn);
/* Whose node it is: @node is one. */
enum hca_event_source hca_held_source(const struct hca_eqs *eqs, uint32_t node);
/* Can the kinds of @h wait at @node? */
bool hca_held_possible(const struct hca_fn *fn, uint32_t node,
		       const struct hca_held *h);
/* The events of @h wait at @node, which holds none. */
void hca_held_load(struct hca_fn *fn, struct hca_eq *eq, uint32_t node,
		   const struct hca_held *h);

/* false: the device does not hold this event. */
bool hca_event_origin_of(const struct hca_fn *fn, enum qhca_event type,
			 uint32_t number, struct hca_event_origin *o);
/* Does @eq hold anything, so that a new event must wait behind it? */
bool hca_eq_holds(const struct hca_fn *fn, const struct hca_eq *eq);
bool hca_held_has(const struct hca_fn *fn, const struct hca_event_origin *o);
void hca_held_add(struct hca_fn *fn, struct hca_eq *eq,
		  const struct hca_event_origin *o, uint32_t detail);
/* One more event is held for @eq. */
void hca_held_count(struct hca_fn *fn, struct hca_eq *eq);
/*
 * Write the events that are held for @eq while there is room, at most *@budget.
 * *@budget decreases by the number of events taken.
 */
void hca_held_drain(struct hca_fn *fn, struct hca_eq *eq, uint32_t *budget);
/*
 * After draining, count the EQs for which events are held; there are few EQs.
 * @more: the budget was spent, and the next call continues.
 */
void hca_held_recount(struct hca_fn *fn, bool more);
/* Fill in the next stage-2 event of function @gvmi.  false: it has none. */
bool hca_event_fill_stage2(struct hca_fn *pf, uint32_t gvmi,
			   struct qhca_eqe *eqe);
void hca_held_unlink(struct hca_fn *fn, struct hca_eq *eq, uint32_t node);

#endif /* HCA_CORE_HELD_H */
