/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A region whose pages an input makes present and absent: it serves faults, fails them,
 * and resumes them too early, twice or with the token of another fault; it takes pages
 * away under traffic.  The device may write the pages that are present for writing, and
 * no others; guard.h checks this.
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
/* Changes the pages, or serves a fault, as the input says. */
void paging_step(struct paging *p, struct in *in);

#endif /* QHCA_FUZZ_PAGING_H */
