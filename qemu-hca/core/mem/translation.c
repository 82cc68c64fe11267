// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Walks of translation trees.  Software may fill a tree with anything, so nothing of
 * an entry is used before it is masked.
 */
#include "mem/translation.h"

#include "hca.h"

/* Index into the node at @level, counted from 1 at the leaves. */
static bool at_index(const struct hca_at_root *root, unsigned int level,
		     uint64_t offset, uint64_t *index)
{
	unsigned int shift = root->page_shift + QHCA_AT_BITS * (level - 1);

	*index = shift < 64 ? offset >> shift : 0;
	if (level == root->levels)	/* the root's index is not masked */
		return *index < 1u << QHCA_AT_BITS;
	*index &= (1u << QHCA_AT_BITS) - 1;
	return true;
}

/* The part of a leaf at @level that holds the page of @offset. */
static uint64_t at_leaf(const struct hca_at_root *root, unsigned int level,
			uint64_t offset, uint64_t ate)
{
	unsigned int shift = root->page_shift + QHCA_AT_BITS * (level - 1);
	uint64_t span = shift < 64 ? (1ull << shift) - 1 : UINT64_MAX;
	uint64_t page = (1ull << root->page_shift) - 1;

	return (ate & QHCA_ATE_ADDR & ~span) | (offset & span & ~page) |
	       QHCA_ATE_PRESENT | (ate & (QHCA_ATE_WRITE | QHCA_ATE_PINNED));
}

enum hca_walk hca_walk(struct hca_fn *fn, const struct hca_at_root *root,
		       uint64_t offset, hca_walk_read read, uint64_t *entry,
		       uint64_t *reads)
{
	uint64_t node = root->base, index, ate;
	enum hca_walk walk;
	unsigned int level;
	uint8_t raw[8];

	for (level = root->levels; level > 0; level--) {
		if (!at_index(root, level, offset, &index))
			return HCA_WALK_RANGE;
		walk = read(fn, root, node + index * 8, raw);
		if (walk != HCA_WALK_OK)
			return walk;
		if (reads)
			(*reads)++;
		ate = get_le64(raw);
		if (!(ate & QHCA_ATE_PRESENT))
			return HCA_WALK_ABSENT;
		if (level == 1 || ate & QHCA_ATE_LEAF) {
			*entry = at_leaf(root, level, offset, ate);
			return HCA_WALK_OK;
		}
		node = ate & QHCA_ATE_NODE;
	}
	return HCA_WALK_RANGE;
}
