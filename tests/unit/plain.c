// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "plain.h"

#include <stdio.h>
#include <stdlib.h>

/*
 * The age of the blocks of a set: a tree whose leaves are the blocks in order.
 * Each node knows which of its halves was used longer ago.
 */
struct tree {
	struct tree *lower, *upper;	/* both NULL: a leaf */
	bool upper_is_older;
	unsigned int first, last;	/* blocks below it */
};

struct set {
	struct plain_entry *list;
	struct tree *age;
};

struct plain {
	unsigned int num_sets, num_blocks;
	struct set *set;
	struct plain_counts counts;
};

static void *allocate(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory) {
		fputs("plain model: out of memory\n", stderr);
		abort();
	}
	return memory;
}

/* ---- age */

static struct tree *tree_new(unsigned int first, unsigned int last)
{
	struct tree *t = allocate(sizeof(*t));
	unsigned int half = (last - first + 1) / 2;

	t->first = first;
	t->last = last;
	if (first == last)
		return t;
	t->lower = tree_new(first, first + half - 1);
	t->upper = tree_new(first + half, last);
	return t;
}

static void tree_free(struct tree *t)
{
	if (!t)
		return;
	tree_free(t->lower);
	tree_free(t->upper);
	free(t);
}

static void tree_used(struct tree *t, unsigned int block)
{
	if (t->first == t->last)
		return;
	if (block <= t->lower->last) {
		t->upper_is_older = true;
		tree_used(t->lower, block);
	} else {
		t->upper_is_older = false;
		tree_used(t->upper, block);
	}
}

static bool is_allowed(unsigned int block, unsigned long long allowed)
{
	return allowed >> block & 1;
}

static bool tree_has(const struct tree *t, unsigned long long allowed)
{
	for (unsigned int block = t->first; block <= t->last; block++)
		if (is_allowed(block, allowed))
			return true;
	return false;
}

/* The older half, unless no block of it is allowed. */
static unsigned int tree_oldest(const struct tree *t, unsigned long long allowed)
{
	const struct tree *older, *newer;

	if (t->first == t->last)
		return t->first;
	older = t->upper_is_older ? t->upper : t->lower;
	newer = t->upper_is_older ? t->lower : t->upper;
	return tree_oldest(tree_has(older, allowed) ? older : newer, allowed);
}

/* ---- sets */

struct plain *plain_new(unsigned int sets, unsigned int blocks)
{
	struct plain *p = allocate(sizeof(*p));
	unsigned int i;

	p->num_sets = sets;
	p->num_blocks = blocks;
	p->set = allocate(sets * sizeof(*p->set));
	for (i = 0; i < sets; i++)
		p->set[i].age = tree_new(0, blocks - 1);
	return p;
}

void plain_free(struct plain *p)
{
	struct plain_entry *e, *next;
	unsigned int i;

	for (i = 0; i < p->num_sets; i++) {
		for (e = p->set[i].list; e; e = next) {
			next = e->next;
			free(e);
		}
		tree_free(p->set[i].age);
	}
	free(p->set);
	free(p);
}

static struct set *set_of(struct plain *p, struct plain_name name)
{
	return &p->set[(name.index + name.page) % p->num_sets];
}

static unsigned int length(const struct set *s)
{
	const struct plain_entry *e;
	unsigned int n = 0;

	for (e = s->list; e; e = e->next)
		n++;
	return n;
}

static struct plain_entry *in_block(struct set *s, unsigned int block)
{
	struct plain_entry *e = s->list;

	while (e && e->block != block)
		e = e->next;
	return e;
}

static void take_out(struct set *s, struct plain_entry *gone)
{
	struct plain_entry **link = &s->list;

	while (*link != gone)
		link = &(*link)->next;
	*link = gone->next;
	free(gone);
}

unsigned int plain_in_use(const struct plain *p)
{
	unsigned int i, n = 0;

	for (i = 0; i < p->num_sets; i++)
		n += length(&p->set[i]);
	return n;
}

const struct plain_counts *plain_counts(const struct plain *p)
{
	return &p->counts;
}

/* ---- accesses */

struct plain_entry *plain_find(struct plain *p, struct plain_name name)
{
	struct plain_entry *e;

	for (e = set_of(p, name)->list; e; e = e->next)
		if (e->name.guest == name.guest && e->name.index == name.index &&
		    e->name.page == name.page)
			return e;
	return NULL;
}

struct plain_entry *plain_lookup(struct plain *p, struct plain_name name)
{
	struct plain_entry *e = plain_find(p, name);

	if (!e) {
		p->counts.misses++;
		return NULL;
	}
	p->counts.hits++;
	tree_used(set_of(p, name)->age, e->block);
	return e;
}

/* Is there a free place in those blocks of any set? */
static bool any_free(const struct plain *p, unsigned long long allowed)
{
	const struct plain_entry *e;
	unsigned int free = 0;

	for (unsigned int block = 0; block < p->num_blocks; block++)
		free += is_allowed(block, allowed) ? p->num_sets : 0;
	for (unsigned int i = 0; i < p->num_sets; i++)
		for (e = p->set[i].list; e; e = e->next)
			free -= is_allowed(e->block, allowed);
	return free;
}

static void evict(struct plain *p, struct set *s, unsigned int block,
		  unsigned long long allowed)
{
	struct plain_entry *e = in_block(s, block);

	p->counts.evictions++;
	if (any_free(p, allowed))
		p->counts.conflicts++;
	if (e->dirty)
		p->counts.writebacks++;
	take_out(s, e);
}

struct plain_entry *plain_fill_in(struct plain *p, struct plain_name name,
				  unsigned long long allowed)
{
	struct set *s = set_of(p, name);
	struct plain_entry *e;
	unsigned int block = 0;

	if (!tree_has(s->age, allowed))
		allowed = ~0ull;
	while (block < p->num_blocks &&
	       (!is_allowed(block, allowed) || in_block(s, block)))
		block++;
	if (block == p->num_blocks) {
		block = tree_oldest(s->age, allowed);
		evict(p, s, block, allowed);
	}
	e = allocate(sizeof(*e));
	e->name = name;
	e->block = block;
	e->next = s->list;
	s->list = e;
	tree_used(s->age, block);
	return e;
}

struct plain_entry *plain_fill(struct plain *p, struct plain_name name)
{
	return plain_fill_in(p, name, 0);
}

bool plain_access(struct plain *p, struct plain_name name)
{
	if (plain_lookup(p, name))
		return true;
	plain_fill(p, name);
	return false;
}

/* ---- invalidation */

/* Remove entries of @guest: @all of them, or those of an index.  Returns how many. */
static unsigned int remove_if(struct plain *p, bool all, unsigned long guest,
			      unsigned long index, unsigned long first,
			      unsigned long last)
{
	struct plain_entry *e, *next;
	unsigned int i, n = 0;

	for (i = 0; i < p->num_sets; i++)
		for (e = p->set[i].list; e; e = next) {
			next = e->next;
			if (e->name.guest != guest)
				continue;
			if (!all && (e->name.index != index ||
				     e->name.page < first ||
				     e->name.page > last))
				continue;
			n++;
			take_out(&p->set[i], e);
		}
	return n;
}

void plain_invalidate(struct plain *p, unsigned long guest,
		      unsigned long index, unsigned long first,
		      unsigned long last)
{
	p->counts.invalidations += remove_if(p, false, guest, index, first,
					     last);
}

void plain_invalidate_all(struct plain *p, unsigned long guest)
{
	p->counts.invalidations += remove_if(p, true, guest, 0, 0, 0);
}

void plain_forget(struct plain *p, unsigned long guest)
{
	remove_if(p, true, guest, 0, 0, 0);
}
