/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory whose pages come when we like: a private mapping of a file that this
 * process serves (FUSE), so that whoever faults on a page waits for us.
 * userfaultfd would not do: the faults of regions on demand cannot wait for it.
 * Needs root, and /dev/fuse.
 */
#ifndef HELD_H
#define HELD_H

#include <stddef.h>
#include <stdint.h>

#define HELD_PAGE	4096u
#define HELD_FOREVER	UINT64_MAX

struct held;

/* @len bytes, whole pages; each byte is held_byte() of its offset. */
struct held *held_open(size_t len);
uint8_t *held_mem(struct held *h);
uint8_t held_byte(size_t offset);

/* From now on a requested page arrives after @ns, or never. */
void held_set(struct held *h, uint64_t ns);
/* Waits until @n pages have been asked for since held_open(). */
void held_wait(struct held *h, unsigned int n);
unsigned int held_asked(struct held *h);

#endif
