/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Translation trees (qhca_hw.h, QHCA_ATE_*): from an offset to the entry of its page.
 * Both stages of translation have trees of this format, in different memory, so the
 * caller says how a node is read.
 */
#ifndef HCA_CORE_TRANSLATION_H
#define HCA_CORE_TRANSLATION_H

#include <stdbool.h>
#include <stdint.h>

struct hca_fn;

/**
 * struct hca_at_root - an address translation tree.
 * @base: root node; with 0 levels the bus address of offset 0
 * @may_fault: nodes may be absent in stage 2, for they are payload
 * @need: what their pages need there, if they may: QHCA_ATE_PINNED or 0
 */
struct hca_at_root {
	uint64_t base;
	uint8_t page_shift;
	uint8_t levels;
	bool may_fault;
	uint64_t need;
};

enum hca_walk {
	HCA_WALK_OK,
	HCA_WALK_ABSENT,		/* a node or leaf is not present */
	HCA_WALK_RANGE,			/* offset beyond what the root can index */
	HCA_WALK_DMA,
	HCA_WALK_STAGE2,		/* a node is absent: fn->mem.fault */
};

/* Read 8 bytes of a node. */
typedef enum hca_walk (*hca_walk_read)(struct hca_fn *fn,
				       const struct hca_at_root *root,
				       uint64_t addr, uint8_t raw[8]);

/*
 * Translate the page (2^page_shift bytes) of @offset.  On OK @entry is the address of
 * that page | QHCA_ATE_PRESENT | QHCA_ATE_WRITE if it may be written
 * | QHCA_ATE_PINNED as in the entry; a large leaf is resolved to the part that holds
 * the page.  At most QHCA_MAX_AT_LEVELS reads, counted in @reads when not NULL.
 */
enum hca_walk hca_walk(struct hca_fn *fn, const struct hca_at_root *root,
		       uint64_t offset, hca_walk_read read, uint64_t *entry,
		       uint64_t *reads);

#endif /* HCA_CORE_TRANSLATION_H */
