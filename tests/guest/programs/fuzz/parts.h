/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The processes beside the workers; each is a child of the parent and returns never. */
#ifndef FUZZ_PARTS_H
#define FUZZ_PARTS_H

void victim_run(void);
void disrupt_run(void);
/* Reads what root reads of all processes' objects, so that none of it is stale. */
void watch_run(void);

#endif
