/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a QP does when it is its turn.
 */
#ifndef HCA_CORE_SERVE_H
#define HCA_CORE_SERVE_H

#include <stdbool.h>
#include <stdint.h>

struct hca;
struct hca_fn;

/* A write to QHCA_DB_SQ.  O(1), no DMA; counts what it ignores. */
void hca_sched_doorbell(struct hca_fn *fn, uint32_t page, uint32_t qpn,
			uint32_t pi);

/* Serve due timers and queued QPs; returns packets (or like work) spent. */
unsigned int hca_sched_run(struct hca *hca, unsigned int budget);

/*
 * Is a QP queued or its timer due (and could it run: nothing runs while the wire is
 * blocked)?
 */
bool hca_sched_pending(const struct hca *hca);
/* Of the timer (or end of lingering) due first, ns; QHCA_NEVER. */
uint64_t hca_sched_deadline(const struct hca *hca);

#endif /* HCA_CORE_SERVE_H */
