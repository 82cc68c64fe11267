// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * PA2MA tables.
 *
 * The device may read any node at any time.  So a node is complete before an
 * entry refers to it, each entry changes by one write, and a page or a node goes
 * in two steps, between which the device acknowledges an invalidation:
 *
 *   clear:	entries lose QHCA_ATE_PRESENT, in nodes that become empty also
 *		the entry that refers to the node.  What the entries named stays
 *		where it is, and so do their other bits.
 *   release:	pages and nodes that are not referred to any more are given up.
 *
 * No memory is needed to remember what was cleared, so taking memory away never
 * fails.  Both steps are one operation under the lock, so there is nothing on
 * its way out when the next begins.
 *
 * If the 512 pages of a node on level 1 follow each other in memory and have the
 * same rights, the entry above becomes one large page.  The node stays, with its
 * entries as they were, so that the large page can be split at any time by one
 * write: both translations are the same.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "qhca_vfio.h"

static unsigned int qhca_s2_index(u64 addr, int level)
{
	return (addr >> (QHCA_S2_PAGE_SHIFT + QHCA_AT_BITS * (level - 1))) &
	       (QHCA_S2_ENTRIES - 1);
}

/* The addresses below an entry of a level, less one. */
static u64 qhca_s2_span(int level)
{
	return BIT_ULL(QHCA_S2_PAGE_SHIFT + QHCA_AT_BITS * (level - 1)) - 1;
}

static u64 qhca_s2_read(const struct qhca_s2_node *node, unsigned int i)
{
	return le64_to_cpu(node->entry[i]);
}

static void qhca_s2_write(struct qhca_s2_node *node, unsigned int i, u64 entry)
{
	/* What the entry refers to is in memory first. */
	dma_wmb();
	WRITE_ONCE(node->entry[i], cpu_to_le64(entry));
}

struct qhca_s2_node *qhca_s2_node_alloc(struct qhca_vfio *vf, int level)
{
	struct qhca_s2_node *node;

	node = kvzalloc(struct_size(node, child,
				    level > 1 ? QHCA_S2_ENTRIES : 0),
			GFP_KERNEL_ACCOUNT);
	if (!node)
		return NULL;
	node->entry = dma_alloc_coherent(qhca_stage2_table_device(&vf->s2),
					 SZ_4K, &node->dma, GFP_KERNEL);
	if (!node->entry) {
		kvfree(node);
		return NULL;
	}
	atomic_long_inc(&vf->stats.nodes);
	return node;
}

void qhca_s2_node_free(struct qhca_vfio *vf, struct qhca_s2_node *node)
{
	dma_free_coherent(qhca_stage2_table_device(&vf->s2), SZ_4K, node->entry,
			  node->dma);
	kvfree(node);
	atomic_long_dec(&vf->stats.nodes);
}

struct qhca_s2_tree *qhca_s2_tree_alloc(struct qhca_vfio *vf)
{
	struct qhca_s2_tree *tree;

	tree = kzalloc(sizeof(*tree), GFP_KERNEL_ACCOUNT);
	if (!tree)
		return NULL;
	tree->root = qhca_s2_node_alloc(vf, QHCA_S2_LEVELS);
	if (!tree->root) {
		kfree(tree);
		return NULL;
	}
	INIT_LIST_HEAD(&tree->entry);
	return tree;
}

/* The node on @level in whose entries @addr is, if there is one. */
static struct qhca_s2_node *qhca_s2_find(struct qhca_s2_tree *tree, u64 addr,
					 int level)
{
	struct qhca_s2_node *node = tree->root;
	int k;

	for (k = QHCA_S2_LEVELS; node && k > level; k--)
		node = node->child[qhca_s2_index(addr, k)];
	return node;
}

/* The same on level 1, made if need be. */
static struct qhca_s2_node *qhca_s2_make(struct qhca_vfio *vf,
					 struct qhca_s2_tree *tree, u64 addr)
{
	struct qhca_s2_node *node = tree->root, *child;
	unsigned int i;
	int k;

	for (k = QHCA_S2_LEVELS; k > 1; k--) {
		i = qhca_s2_index(addr, k);
		child = node->child[i];
		if (!child) {
			child = qhca_s2_node_alloc(vf, k - 1);
			if (!child)
				return NULL;
			node->child[i] = child;
		}
		if (!(qhca_s2_read(node, i) & QHCA_ATE_PRESENT)) {
			node->used++;
			qhca_s2_write(node, i, child->dma | QHCA_ATE_PRESENT);
		}
		node = child;
	}
	return node;
}

static void qhca_s2_split(struct qhca_vfio *vf, struct qhca_s2_node *above,
			  unsigned int i)
{
	struct qhca_s2_node *node = above->child[i];

	if (!node->large)
		return;
	node->large = false;
	vf->stats.large--;
	qhca_s2_write(above, i, node->dma | QHCA_ATE_PRESENT);
}

static void qhca_s2_join(struct qhca_vfio *vf, struct qhca_s2_node *above,
			 unsigned int i)
{
	struct qhca_s2_node *node = above->child[i];
	u64 first = qhca_s2_read(node, 0);
	unsigned int k;

	if (node->used < QHCA_S2_ENTRIES ||
	    first & QHCA_ATE_ADDR & qhca_s2_span(2))
		return;
	for (k = 1; k < QHCA_S2_ENTRIES; k++)
		if (qhca_s2_read(node, k) !=
		    first + ((u64)k << QHCA_S2_PAGE_SHIFT))
			return;
	node->large = true;
	vf->stats.large++;
	qhca_s2_write(above, i, first | QHCA_ATE_LEAF);
}

/* The entry for the page at @addr; without QHCA_ATE_PRESENT there is none. */
u64 qhca_s2_tree_get(struct qhca_s2_tree *tree, u64 addr)
{
	struct qhca_s2_node *node = qhca_s2_find(tree, addr, 1);

	return node ? qhca_s2_read(node, qhca_s2_index(addr, 1)) : 0;
}

/* Make an entry present, or change the rights of one that is. */
int qhca_s2_tree_set(struct qhca_vfio *vf, struct qhca_s2_tree *tree, u64 addr,
		     u64 entry)
{
	unsigned int i = qhca_s2_index(addr, 1), k = qhca_s2_index(addr, 2);
	struct qhca_s2_node *node, *above;

	lockdep_assert_held(&vf->lock);
	node = qhca_s2_make(vf, tree, addr);
	if (!node)
		return -ENOMEM;
	above = qhca_s2_find(tree, addr, 2);
	qhca_s2_split(vf, above, k);
	if (!(qhca_s2_read(node, i) & QHCA_ATE_PRESENT))
		node->used++;
	qhca_s2_write(node, i, entry);
	qhca_s2_join(vf, above, k);
	return 0;
}

/* The part of [*first, *last] that lies below entry @i of a node at @base. */
static bool qhca_s2_clip(u64 base, unsigned int i, int level, u64 *first,
			 u64 *last)
{
	u64 start = base + i * (qhca_s2_span(level) + 1);

	*first = max(*first, start);
	*last = min(*last, start + qhca_s2_span(level));
	return *first <= *last;
}

static unsigned long qhca_s2_clear_leaves(struct qhca_s2_node *node,
					  u64 first, u64 last)
{
	unsigned int i, end = qhca_s2_index(last, 1);
	unsigned long count = 0;
	u64 entry;

	for (i = qhca_s2_index(first, 1); i <= end; i++) {
		entry = qhca_s2_read(node, i);
		if (!(entry & QHCA_ATE_PRESENT))
			continue;
		qhca_s2_write(node, i, entry & ~QHCA_ATE_PRESENT);
		node->used--;
		count++;
	}
	return count;
}

/* @base: the address of the node's first entry */
static unsigned long qhca_s2_clear(struct qhca_vfio *vf,
				   struct qhca_s2_node *node, int level,
				   u64 base, u64 first, u64 last)
{
	unsigned int i = qhca_s2_index(first, level);
	unsigned int end = qhca_s2_index(last, level);
	struct qhca_s2_node *child;
	unsigned long count = 0;
	u64 from, to;

	if (level == 1)
		return qhca_s2_clear_leaves(node, first, last);
	for (; i <= end; i++) {
		child = node->child[i];
		from = first;
		to = last;
		if (!child || !qhca_s2_clip(base, i, level, &from, &to))
			continue;
		if (level == 2)
			qhca_s2_split(vf, node, i);
		count += qhca_s2_clear(vf, child, level - 1,
				       base + i * (qhca_s2_span(level) + 1),
				       from, to);
		if (!child->used && node->entry[i]) {
			qhca_s2_write(node, i, 0);
			node->used--;
		}
	}
	return count;
}

/**
 * qhca_s2_tree_clear - first step of taking pages away
 * @vf:    function
 * @tree:  tree
 * @first: first address
 * @last:  last address, at most QHCA_S2_MAX_ADDR
 *
 * Return: the number of pages cleared.
 */
unsigned long qhca_s2_tree_clear(struct qhca_vfio *vf,
				 struct qhca_s2_tree *tree, u64 first, u64 last)
{
	lockdep_assert_held(&vf->lock);
	return qhca_s2_clear(vf, tree->root, QHCA_S2_LEVELS, 0, first, last);
}

static void qhca_s2_release_leaves(struct qhca_vfio *vf,
				   struct qhca_s2_node *node, u64 base,
				   u64 first, u64 last)
{
	unsigned int i, end = qhca_s2_index(last, 1);
	u64 entry;

	for (i = qhca_s2_index(first, 1); i <= end; i++) {
		entry = qhca_s2_read(node, i);
		if (!entry || entry & QHCA_ATE_PRESENT)
			continue;
		node->entry[i] = 0;
		qhca_s2_drop(vf, base + ((u64)i << QHCA_S2_PAGE_SHIFT), entry);
	}
}

static void qhca_s2_release(struct qhca_vfio *vf, struct qhca_s2_node *node,
			    int level, u64 base, u64 first, u64 last)
{
	unsigned int i = qhca_s2_index(first, level);
	unsigned int end = qhca_s2_index(last, level);
	struct qhca_s2_node *child;
	u64 from, to;

	if (level == 1) {
		qhca_s2_release_leaves(vf, node, base, first, last);
		return;
	}
	for (; i <= end; i++) {
		child = node->child[i];
		from = first;
		to = last;
		if (!child || !qhca_s2_clip(base, i, level, &from, &to))
			continue;
		qhca_s2_release(vf, child, level - 1,
				base + i * (qhca_s2_span(level) + 1), from, to);
		if (child->used)
			continue;
		node->child[i] = NULL;
		qhca_s2_node_free(vf, child);
	}
}

/* The second step, with the same range; the device does not use it any more. */
void qhca_s2_tree_release(struct qhca_vfio *vf, struct qhca_s2_tree *tree,
			  u64 first, u64 last)
{
	lockdep_assert_held(&vf->lock);
	qhca_s2_release(vf, tree->root, QHCA_S2_LEVELS, 0, first, last);
}
