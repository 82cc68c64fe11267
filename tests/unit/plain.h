/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A plain model of the caches, to compare the engine's with.
 *
 * Written from seed 000 (a cache is sets with an index tag each, chosen by the
 * low part of the index, in several blocks) and, for what that leaves open,
 * from hardware.rst, "Cache organisation".  It shares nothing with cache.c: no
 * header, no type, no trick.  An entry is a node of its set's list; a set is
 * chosen by division; what was used longer ago is a tree of nodes with two
 * halves each; how much is in use is found by counting.
 */
#ifndef QHCA_TEST_PLAIN_H
#define QHCA_TEST_PLAIN_H

#include <stdbool.h>

struct plain;

struct plain_name {			/* what an entry is about */
	unsigned long guest, index, page;
};

struct plain_entry {
	struct plain_name name;
	unsigned int block;		/* where it lies in its set */
	bool dirty;
	unsigned long long value;	/* the test's own */
	struct plain_entry *next;
};

struct plain_counts {
	unsigned long long hits, misses, evictions, conflicts, invalidations;
	unsigned long long writebacks;	/* evictions of what was dirty */
};

/* Ends the program when memory is short.  Any number of sets and blocks. */
struct plain *plain_new(unsigned int sets, unsigned int blocks);
void plain_free(struct plain *p);

/* The entry of that name; no effect.  Good until the next call that has one. */
struct plain_entry *plain_find(struct plain *p, struct plain_name name);
/* Look it up: the entry, now the one last used, or NULL: counted as a miss. */
struct plain_entry *plain_lookup(struct plain *p, struct plain_name name);
/* Put in what was missed: an entry, clean and the one last used. */
struct plain_entry *plain_fill(struct plain *p, struct plain_name name);
/* The same in one of the blocks that @allowed has by bit; 0: in any. */
struct plain_entry *plain_fill_in(struct plain *p, struct plain_name name,
				  unsigned long long allowed);
/* Look up, and fill if it is missed.  true: hit. */
bool plain_access(struct plain *p, struct plain_name name);

/* Remove the entries of one index whose pages are first to last; or all of a guest. */
void plain_invalidate(struct plain *p, unsigned long guest,
		      unsigned long index, unsigned long first,
		      unsigned long last);
void plain_invalidate_all(struct plain *p, unsigned long guest);
/* The same without counting: the guest has gone. */
void plain_forget(struct plain *p, unsigned long guest);

unsigned int plain_in_use(const struct plain *p);
const struct plain_counts *plain_counts(const struct plain *p);

#endif /* QHCA_TEST_PLAIN_H */
