/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A region whose pages come and go, by an input's word: faults are served,
 * failed, answered too early, twice or by another's token; pages are taken away
 * under traffic.  The device may write those that are there for writing, and
 * no others: guard.h sees to it.
 */
#ifndef QHCA_FUZZ_PAGING_H
#define QHCA_FUZZ_PAGING_H

#include "guard.h"
#include "input.h"

#define PAGING_PAGES	8u

struct paging {
	struct guard *g;
	struct md_mr *mr;
	uint64_t leaf[PAGING_PAGES];	/* entries of pages that are there */
	uint32_t token;			/* of the last fault */
};

/*
 * @mr, registered on a host whose buffers are scattered, is on demand from now
 * on, and none of it is there.
 */
void paging_start(struct paging *p, struct guard *g, struct md_mr *mr);
/* Something happens to its pages or faults. */
void paging_step(struct paging *p, struct in *in);

#endif /* QHCA_FUZZ_PAGING_H */
