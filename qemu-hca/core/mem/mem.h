/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory access: from a key and a virtual address to DMA (seeds 000 to 002).
 * Entries are pte.h's, what changes them key.h's, the pool bank pool.h's.
 *
 *   reserved-key gate -> pool bank, else protection cache (tag: GVMI, key
 *   index) -> octet, state, PD, window's QP, rights, range -> pool bank, device
 *   memory or bus address, else translation cache -> node walk -> not present?
 *   fault -> DMA
 *
 * Protection is checked before presence: a bad key never faults, and never
 * reads a translation node.
 *
 * What software must know beyond qhca_hw.h:
 *
 *  - The index of a key must be below the size given to INIT_HCA for the PT;
 *    0 and 1 are never looked up.
 *  - A PTE is refused (protection error) unless: state and type are known,
 *    page_shift >= 12, levels <= 5, gvmi is the function's, no unknown access
 *    bit is set, start + length and at_offset + length do not wrap, a root node
 *    is 64-byte aligned.  Only VALID entries are cached.
 *  - The translated space: byte `va - start + at_offset`.  Levels 0: the bus
 *    address is at_base + that (MR, FAST_REG, windows); POOL: row.addr +
 *    at_base + that, inside the row; DEVMEM: at_base + that, inside BAR 4; DMA:
 *    the virtual address is the bus address.  A window on a POOL region has
 *    its row's address added to at_base when it is bound.
 *  - A translation entry needs QHCA_ATE_WRITE for any access that writes, atomic
 *    operations included.  Without QHCA_PTE_ODP an absent entry, or a write to one
 *    without QHCA_ATE_WRITE, is a protection error; with it, a page fault.
 *  - Translation cache lines are tagged {gvmi, at_key, byte >> page_shift}.
 *    INVALIDATE_RANGE takes bytes relative to the region's `start`; the device
 *    adds the PTE's at_offset.
 */
#ifndef HCA_CORE_MEM_H
#define HCA_CORE_MEM_H

#include "qhca.h"
#include "mem/cache.h"
#include "cmd.h"
#include "mem/pte.h"

/* Longest read or write in one call: payload of any packet fits. */
#define HCA_MEM_MAX_LEN		12288u

struct hca_mem {
	struct {
		uint64_t addr;		/* first address that is not present */
		uint64_t len;		/* bytes wanted from there */
		uint64_t done;		/* bytes of the access before it */
		uint32_t key;
	} fault;			/* of the last HCA_MEM_FAULT */
	enum hca_mem_reason reason;	/* of the last HCA_MEM_PROT */
};

/**
 * struct hca_mem_req - one access to one range of one region or window.
 * @span:   bytes from @addr of which protection is asked, if more than @len: a
 *          message's first packet asks for all of it, with its one look-up
 * @access: QHCA_ACCESS_* needed; 0: local read
 * @remote: @key is an R_Key
 * @kernel: the QP may use the reserved L_Key
 * @channel: segment of a send or receive (strict mode of the reserved L_Key)
 * @qpn:    the QP for which this is done (type 2B windows)
 * @whole:  all of the region or window is meant, whatever @addr and @len say
 * @again:  the look-up of @key is counted already, with the request that this
 *          access is a part of; it counts only if the entry has left the cache
 */
struct hca_mem_req {
	uint64_t addr, len, span;
	uint32_t key;
	uint32_t pd;
	uint32_t access;
	uint32_t qpn;
	bool remote, kernel, channel, whole, again;
};

enum hca_mem_atomic_op {
	HCA_ATOMIC_CMP_SWAP, HCA_ATOMIC_FETCH_ADD, HCA_ATOMIC_WRITE,
};

/* At INIT_HCA; false: geometry or memory.  fini is safe at any time. */
bool hca_mem_init(struct hca_fn *fn, struct qhca_geometry pt,
		  struct qhca_geometry at);
void hca_mem_fini(struct hca_fn *fn);

/*
 * Protection of the whole range, nothing moved, presence not looked at.  In
 * this and all below a length of 0 is always OK and looks up nothing.
 */
enum hca_mem_status hca_mem_check(struct hca_fn *fn,
				  const struct hca_mem_req *req);
/* The same, but the key is looked up even if the length is 0. */
enum hca_mem_status hca_mem_check_key(struct hca_fn *fn,
				      const struct hca_mem_req *req);
/*
 * Copy between memory and @buf (req->len bytes, at most HCA_MEM_MAX_LEN).  All or
 * nothing as to protection and presence; after HCA_MEM_DMA a part may have
 * been written.
 */
enum hca_mem_status hca_mem_read(struct hca_fn *fn,
				 const struct hca_mem_req *req, void *buf);
enum hca_mem_status hca_mem_write(struct hca_fn *fn,
				  const struct hca_mem_req *req,
				  const void *buf);
/*
 * req->len is 8 and req->addr 8-byte aligned (else PROT).  Operands and @orig
 * in host order; memory holds little-endian.  WRITE stores @swap_add; @orig may
 * be NULL for it.  Atomic towards other operations of this HCA; a value is
 * stored at once, after everything written before.
 */
enum hca_mem_status hca_mem_atomic(struct hca_fn *fn,
				   const struct hca_mem_req *req,
				   enum hca_mem_atomic_op op,
				   uint64_t compare, uint64_t swap_add,
				   uint64_t *orig);

#endif /* HCA_CORE_MEM_H */
