/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What changes keys: binding windows, fast registration, invalidation by work
 * request, by packet and by command.
 *
 * Each reads the entries concerned from memory, not from the cache, checks
 * them, and writes them back.  What software must know beyond qhca_hw.h:
 *
 *  Windows
 *  - `windows` is the device's in every PTE.  In a region it counts bound
 *    windows; in a window it is 1 while the window is bound.  Software sets
 *    it to 0 when it makes a PTE and leaves it alone until INVALIDATE_KEY of
 *    that index has been acknowledged: to free a window software sets only its
 *    state to FREE, then INVALIDATE_KEY with QHCA_INVAL_PT lets the device
 *    take it off its region's count.  A region with windows != 0 must not be
 *    deregistered or reregistered: software checks `windows` after
 *    INVALIDATE_KEY of the region, and local invalidate refuses it.
 *  - A bind fills the window's start, length, access, at_key (the region's),
 *    at_base, at_offset, levels, page shift, and for type 2B qpn, and writes
 *    the PTE to memory.  Windows bind to regions of type MR, FAST_REG, POOL.
 *    A window on a POOL region has QHCA_PTE_POOLED and the region's pool_block.
 *
 *  Fast registration
 *  - Software allocates the nodes when it makes the FAST_REG PTE: at_base and
 *    levels (1 or 2), at_key its own index, pool_block = entries the
 *    leaf nodes can hold (at most HCA_FAST_REG_MAX_PAGES); with 2 levels the root's
 *    entries are already filled and present, each leaf node but the last of 512.
 *  - REG_MR (kernel QPs only; state must be INVALIDATED) reads num_pages page
 *    addresses, each aligned to its page size, writes them to the leaf nodes as PRESENT |
 *    WRITE | LEAF, drops the region's AT lines, then writes the PTE: state VALID,
 *    octet, access, page shift, start = iova (0 with ZERO_BASED), length,
 *    at_offset = iova mod page size.
 *  - Local invalidate, send-with-invalidate (needs QHCA_PTE_REMOTE_INV): state
 *    INVALIDATED, written to memory; the region's AT lines are dropped.  Done
 *    twice with the same octet it is not an error.
 */
#ifndef HCA_CORE_KEY_H
#define HCA_CORE_KEY_H

#include "qhca.h"
#include "handler.h"
#include "mem/protection.h"

#define HCA_FAST_REG_MAX_PAGES	4096u

/* Work requests on keys.  OK, PROT (refused, nothing changed) or DMA. */
enum hca_mem_status hca_mem_bind(struct hca_fn *fn, uint32_t pd,
				 uint32_t qpn,
				 const struct qhca_wqe_bind *wqe);
enum hca_mem_status hca_mem_local_inv(struct hca_fn *fn, uint32_t pd,
				      uint32_t qpn, uint32_t key);
enum hca_mem_status hca_mem_remote_inv(struct hca_fn *fn, uint32_t pd,
				       uint32_t qpn, uint32_t rkey);
/*
 * @kernel: the QP is the kernel's.  Page lists hold bus addresses, so the
 * device refuses them to any other QP.
 */
enum hca_mem_status hca_mem_reg(struct hca_fn *fn, uint32_t pd, bool kernel,
				const struct qhca_wqe_reg *wqe);

enum qhca_cmd_status hca_cmd_invalidate_key(struct hca_fn *fn,
					    struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_invalidate_range(struct hca_fn *fn,
					      struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_invalidate_all(struct hca_fn *fn,
					    struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_KEY_H */
