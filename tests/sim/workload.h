/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A random workload of verbs over a world, and the model it is checked against.
 *
 * Each pair of QPs has on each side a source region (payload of what it sends,
 * target of what it reads), a target region (what the peer writes, reads and
 * operates atomically on), and receive buffers.  Requests claim slices of both
 * regions in posting order and give them back in completion order, so that no two
 * requests under way touch the same bytes unless the order of their effects is
 * defined.  The model is a copy of each region, changed when a request completes.
 */
#ifndef QHCA_WORKLOAD_H
#define QHCA_WORKLOAD_H

#include "world.h"

struct plan {				/* what a seed decides */
	struct world_link link;
	struct md_init init[2];
	uint32_t pairs, ops;		/* QP pairs; requests a side */
	uint32_t max_len;		/* bytes of most messages */
	uint32_t big_ppm;		/* ... and how many are up to 64 KiB */
	bool srq, slow_recv, shared_cq;
	bool reliable_only;
	uint32_t odp;			/* ppm of regions that are on demand; 0: no faults */
	uint32_t frames;		/* pages of these in memory at a time */
	uint32_t take;			/* ppm of steps that take a page away */
	uint32_t fault_ns;		/* a fault is served within so long */

	/* virtual functions of the first host with stage 2 */
	const struct qhca_config *guests;	/* NULL: none */
	uint32_t guest_take;		/* ppm of steps that take one of their pages */
	uint32_t guest_fault_ns;
	uint32_t guest_upset;		/* ppm of steps that upset the third of them */
};

/* Returns NULL when the device and the model agree, else the difference. */
const char *workload_run(struct world *w, const struct plan *plan);

/* What guests have met since the last call; false: something has not happened. */
bool workload_guests_sum_up(void);

#endif /* QHCA_WORKLOAD_H */
