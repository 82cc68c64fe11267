/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a miss costs: an optional model of hardware whose tables are a bus away.
 *
 * Each read of a table that a cache has not spared the device is charged a
 * time.  Reads follow one another, so what is charged adds up to a moment
 * until which the transport stalls: nothing is sent, no looped-back frame is
 * taken in, no transport timer is served.  Nothing waits or spins for that: the
 * moment is a deadline of qhca_run() like any other.  A frame from the wire is
 * handled when it comes, for the engine keeps none; what it is charged delays
 * the answer, and so the peer.
 *
 * A stall never reaches further than HCA_MAX_STALL from now; what is over is
 * neither charged nor counted.
 */
#ifndef HCA_CORE_COST_H
#define HCA_CORE_COST_H

#include "qhca.h"

#define HCA_MAX_FETCH_NS	1000000u	/* of one read */
#define HCA_MAX_STALL		50000000ull	/* ns */

struct hca_cost {
	struct qhca_fetch_cost fetch;	/* outlives resets: it is the host's */
	uint64_t until;			/* the stall's end */
};

/*
 * Charge @ns, which is one of hca->cost.fetch or a multiple, for a read of @fn.  All
 * functions wait, since the device makes one read after the other.
 */
void hca_charge(struct hca_fn *fn, uint64_t ns);
/* Is the transport stalled now? */
bool hca_stalled(const struct hca *hca);
/* Nothing is charged any more (teardown). */
void hca_cost_forget(struct hca *hca);

#endif /* HCA_CORE_COST_H */
