// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Translation trees of pinned memory, as the device walks them.
 *
 * A node is kernel memory of at most a page, aligned to its own size because
 * that is a power of two, and never larger than its entries need: a process
 * may hold a hundred thousand small regions, and most of them have one node.
 *
 * The nodes are charged to the memory control group of the process, because the
 * process determines how large its tables are.
 *
 * Nodes are filled from the leaves up.  Each is complete before it is mapped
 * for the device, and mapped before its parent refers to it.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "mem.h"

#define QHCA_AT_ENTRIES		BIT(QHCA_AT_BITS)

static struct qhca_at_node *qhca_at_nodes(struct qhca_at *at)
{
	return at->num_nodes == 1 ? &at->one : at->many;
}

static void qhca_at_free_node(struct qhca_ib_dev *dev, struct qhca_at *at,
			      struct qhca_at_node *node)
{
	if (node->dma != DMA_MAPPING_ERROR)
		dma_unmap_single(qhca_dma_dev(dev), node->dma, node->size,
				 at->dir);
	kfree(node->ent);
}

void qhca_at_free(struct qhca_ib_dev *dev, struct qhca_at *at)
{
	struct qhca_at_node *nodes = qhca_at_nodes(at);
	u32 i;

	for (i = 0; i < at->num_nodes; i++)
		qhca_at_free_node(dev, at, &nodes[i]);
	if (at->num_nodes > 1)
		kvfree(nodes);
	at->num_nodes = 0;
}

static int qhca_at_alloc_node(struct qhca_at_node *node, size_t entries)
{
	size_t size = min_t(size_t, entries, QHCA_AT_ENTRIES) * sizeof(u64);

	/*
	 * The hardware wants 64-byte alignment; kmalloc() aligns to the size.
	 */
	node->size = max_t(size_t, roundup_pow_of_two(size), 64);
	node->dma = DMA_MAPPING_ERROR;
	node->ent = kzalloc(node->size, GFP_KERNEL_ACCOUNT);
	return node->ent ? 0 : -ENOMEM;
}

static int qhca_at_map_node(struct qhca_ib_dev *dev, struct qhca_at *at,
			    struct qhca_at_node *node)
{
	node->dma = dma_map_single(qhca_dma_dev(dev), node->ent, node->size,
				   at->dir);
	return dma_mapping_error(qhca_dma_dev(dev), node->dma) ? -ENOMEM : 0;
}

/* How many nodes, on how many levels, it takes to translate @entries pages. */
static int qhca_at_measure(struct qhca_at *at, size_t entries)
{
	size_t nodes, total = 0;
	u8 levels = 0;

	do {
		nodes = DIV_ROUND_UP(entries, QHCA_AT_ENTRIES);
		total += nodes;
		entries = nodes;
		levels++;
	} while (nodes > 1);

	if (levels > QHCA_MAX_AT_LEVELS || total > U32_MAX)
		return -E2BIG;
	at->levels = levels;
	at->num_nodes = total;
	return 0;
}

static int qhca_at_alloc(struct qhca_ib_dev *dev, struct qhca_at *at,
			 size_t entries)
{
	struct qhca_at_node *nodes;
	u32 want, i = 0;
	int err;

	err = qhca_at_measure(at, entries);
	if (err)
		return err;

	want = at->num_nodes;
	if (want > 1) {
		at->many = kvcalloc(want, sizeof(*at->many),
				    GFP_KERNEL_ACCOUNT);
		if (!at->many)
			return -ENOMEM;
	}
	nodes = qhca_at_nodes(at);

	while (i < want) {
		size_t left = entries;

		/*
		 * The first turn allocates one level, the next the level that points to its
		 * nodes.
		 */
		entries = DIV_ROUND_UP(entries, QHCA_AT_ENTRIES);
		for (; left; i++) {
			err = qhca_at_alloc_node(&nodes[i], left);
			if (err)
				goto err_free;
			left -= min_t(size_t, left, QHCA_AT_ENTRIES);
			cond_resched();
		}
	}
	return 0;

err_free:
	while (i--)
		qhca_at_free_node(dev, at, &nodes[i]);
	if (want > 1)
		kvfree(nodes);
	at->num_nodes = 0;
	return err;
}

static void qhca_at_fill_leaves(struct qhca_at *at, struct ib_umem *umem,
				unsigned long pgsz)
{
	struct qhca_at_node *nodes = qhca_at_nodes(at);
	struct ib_block_iter biter;
	u64 flags = QHCA_ATE_PRESENT;
	size_t i = 0;

	if (umem->writable)
		flags |= QHCA_ATE_WRITE;

	rdma_umem_for_each_dma_block(umem, &biter, pgsz) {
		u64 addr = rdma_block_iter_dma_address(&biter);

		nodes[i >> QHCA_AT_BITS].ent[i & (QHCA_AT_ENTRIES - 1)] =
			cpu_to_le64(addr | flags);
		i++;
	}
}

/* Map all nodes, and enter each in its parent; the root has no parent. */
static int qhca_at_link(struct qhca_ib_dev *dev, struct qhca_at *at,
			size_t entries)
{
	struct qhca_at_node *nodes = qhca_at_nodes(at);
	struct qhca_at_node *parents;
	size_t count, i;
	int err;

	do {
		count = DIV_ROUND_UP(entries, QHCA_AT_ENTRIES);
		parents = nodes + count;
		for (i = 0; i < count; i++) {
			err = qhca_at_map_node(dev, at, &nodes[i]);
			if (err)
				return err;
			if (count == 1)
				break;
			parents[i >> QHCA_AT_BITS]
				.ent[i & (QHCA_AT_ENTRIES - 1)] =
				cpu_to_le64(nodes[i].dma | QHCA_ATE_PRESENT);
			cond_resched();
		}
		entries = count;
		nodes = count > 1 ? parents : nodes;
	} while (count > 1);

	at->base = nodes->dma;
	return 0;
}

/* Is @umem contiguous on the bus?  Then the device needs no tree to find it. */
static bool qhca_at_is_flat(struct ib_umem *umem, unsigned long pgsz, u64 *base)
{
	struct ib_block_iter biter;
	u64 next = 0;

	rdma_umem_for_each_dma_block(umem, &biter, pgsz) {
		u64 addr = rdma_block_iter_dma_address(&biter);

		if (!next)
			*base = addr;
		else if (addr != next)
			return false;
		next = addr + pgsz;
	}
	return true;
}

/**
 * qhca_at_build - translate a umem
 * @dev:  the device
 * @at:   result; free with qhca_at_free()
 * @umem: memory
 * @pgsz: page size, at most what ib_umem_find_best_pgsz() found for @umem
 * @may_be_flat: contiguous memory is translated without a tree (0 levels)
 */
int qhca_at_build(struct qhca_ib_dev *dev, struct qhca_at *at,
		  struct ib_umem *umem, unsigned long pgsz, bool may_be_flat)
{
	size_t entries = ib_umem_num_dma_blocks(umem, pgsz);
	int err;

	at->page_shift = __ffs(pgsz);
	at->num_nodes = 0;
	at->levels = 0;
	at->dir = DMA_TO_DEVICE;
	if (may_be_flat && qhca_at_is_flat(umem, pgsz, &at->base))
		return 0;

	err = qhca_at_alloc(dev, at, entries);
	if (err)
		return err;

	qhca_at_fill_leaves(at, umem, pgsz);
	err = qhca_at_link(dev, at, entries);
	if (err)
		qhca_at_free(dev, at);
	return err;
}

/*
 * Make room for @entries pages, which the device fills in (fast registration).
 */
int qhca_at_build_blank(struct qhca_ib_dev *dev, struct qhca_at *at,
			u32 entries)
{
	int err;

	at->page_shift = PAGE_SHIFT;
	at->dir = DMA_BIDIRECTIONAL;
	err = qhca_at_alloc(dev, at, entries);
	if (err)
		return err;

	err = qhca_at_link(dev, at, entries);
	if (err)
		qhca_at_free(dev, at);
	return err;
}
