/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Memory access: from a key and a virtual address to DMA (seeds 000 to 002).
 *
 * Problem.  A work request or a packet names memory by a key and a virtual
 * address.  The device must find out whether this access is permitted and which
 * pages it means, both from tables that lie in host memory, that software changes
 * while traffic runs, and that a hostile guest may fill with anything.
 *
 * Idea.  Two look-ups, each with a cache of its own:
 *
 *   reserved L_Key?            the virtual address is a bus address, no look-up
 *   null L_Key?                no memory: zeros are read, what is written is lost
 *   1. protection              pool bank, else protection cache (tag: GVMI and
 *                              key index), else the entry in the table; then
 *                              state, octet, PD, window's QP, type, rights, range
 *   2. translation             pool bank, device memory or bus address, by the
 *                              type of the entry; else, for each page, the
 *                              translation cache or a walk of the nodes
 *   3. DMA                     one for each run of pages adjacent on the bus
 *
 * Invariants.
 *
 *  - Protection is decided before a translation node is read.  A bad key never
 *    faults and never reads a node, so nobody learns from it which pages are
 *    present.
 *  - All pages of an access are found before a byte is moved.  An access that is
 *    refused or faults has no effect, and the transport may repeat it.
 *  - An entry is checked in full, in the device's own copy, before it is used.
 *    Only entries in state VALID are cached.
 *  - A cached translation never refuses a write: if it lacks QHCA_ATE_WRITE, the
 *    nodes are walked again, because software need not invalidate when it makes a
 *    page present or writable.
 *
 * Example.  A packet writes 4096 bytes at 0x7f0000001800 with key 0x12345.  The
 * index of the key is 0x123.  Its entry has the octet 0x45, start 0x7f0000001000,
 * length 0x3000, at_offset 0, page_shift 12 and one level.  The access is inside
 * the region and covers bytes 0x800 to 0x17ff, which lie in pages 0 and 1.
 *
 *  - If page 0 leads to bus address 0x10000 and page 1 to 0x11000, the device makes
 *    one DMA of 4096 bytes at 0x10800.  If page 1 leads to 0x40000, it makes two of
 *    2048 bytes, at 0x10800 and 0x40000.
 *  - If page 1 is absent and the entry has QHCA_PTE_ODP, nothing is written, and
 *    hca_mem.fault has the address 0x7f0000002000, the length 2048 and 2048 bytes
 *    done.  Without QHCA_PTE_ODP this is a protection error.
 *
 * protection.h has the decoded entries, key.h the operations that change them, pool.h the
 * pool bank.
 *
 * What software must know beyond qhca_hw.h:
 *
 *  - The index of a key must be below the size given to INIT_HCA for the PT;
 *    0 and 1 are never looked up.
 *  - The device refuses a PTE (protection error) unless: state and type are known,
 *    page_shift >= 12, levels <= 5, gvmi is the function's, no unknown access
 *    bit is set, start + length and at_offset + length do not wrap, a root node
 *    is 64-byte aligned.
 *  - A virtual address is translated as byte `va - start + at_offset`.  With 0
 *    levels the bus address is at_base + that byte (MR, FAST_REG, windows).  The
 *    bus address of POOL, and of windows on it, is row.addr + at_base + that
 *    byte, inside the row.  DEVMEM means byte at_base + that byte of BAR 4.  For
 *    DMA the virtual address is the bus address.
 *  - A translation entry needs QHCA_ATE_WRITE for any access that writes, atomic
 *    operations included.  Without QHCA_PTE_ODP an absent entry, or a write to one
 *    without QHCA_ATE_WRITE, is a protection error; with it, a page fault.
 *  - Translation cache lines have the tag {gvmi, at_key, byte >> page_shift}.
 *    INVALIDATE_RANGE takes bytes relative to the region's `start`; the device
 *    adds the PTE's at_offset.
 */
#ifndef HCA_CORE_MEM_H
#define HCA_CORE_MEM_H

#include "qhca.h"
#include "mem/cache.h"
#include "handler.h"
#include "mem/protection.h"

/* Longest read or write in one call: payload of any packet fits. */
#define HCA_MEM_MAX_LEN		12288u

struct hca_mem {
	struct {
		uint64_t addr;		/* first address that is not present */
		uint64_t len;		/* bytes wanted from there */
		uint64_t done;		/* bytes of the access before it */
		uint32_t key;

		/* with stage2: of what stage 2 lacks */
		bool stage2, write;
		uint64_t bus;		/* bus address */
		uint64_t bus_len;	/* bytes wanted from there */
	} fault;			/* of the last HCA_MEM_FAULT */
	enum hca_mem_reason reason;	/* of the last HCA_MEM_PROT */
};

/**
 * struct hca_mem_req - one access to one range of one region or window.
 * @span:   bytes from @addr whose protection is checked, if more than @len: the
 *          first packet of a message checks all of it by its one look-up
 * @access: QHCA_ACCESS_* needed; 0: local read
 * @remote: @key is an R_Key
 * @kernel: the QP may use the reserved L_Key
 * @channel: the segment belongs to a send or receive (the reserved L_Key in strict
 *          mode is limited to these)
 * @qpn:    the QP that makes the access (type 2B windows)
 * @whole:  the access means all of the region or window, whatever @addr and @len are
 * @again:  the look-up of @key was counted with an earlier access of the same
 *          request; this one counts only if the entry has left the cache
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
 * Check the protection of the whole range.  This moves nothing and does not look
 * at presence.  Here and below, a length of 0 is always OK and looks up nothing.
 */
enum hca_mem_status hca_mem_check(struct hca_fn *fn,
				  const struct hca_mem_req *req);
/* Check the same, and look the key up even if the length is 0. */
enum hca_mem_status hca_mem_check_key(struct hca_fn *fn,
				      const struct hca_mem_req *req);
/*
 * Copy req->len bytes, at most HCA_MEM_MAX_LEN, between memory and @buf.  If a byte
 * is refused or absent, nothing is copied; after HCA_MEM_DMA a part may have been
 * written.
 */
enum hca_mem_status hca_mem_read(struct hca_fn *fn,
				 const struct hca_mem_req *req, void *buf);
enum hca_mem_status hca_mem_write(struct hca_fn *fn,
				  const struct hca_mem_req *req,
				  const void *buf);
/*
 * req->len must be 8 and req->addr aligned to 8 bytes (else PROT).  Operands and
 * @orig are in host order; memory holds little-endian.  WRITE stores @swap_add, and
 * permits @orig to be NULL.  The operation is atomic with respect to other
 * operations of this HCA.  A value becomes visible as a whole, after everything
 * that was written before.
 */
enum hca_mem_status hca_mem_atomic(struct hca_fn *fn,
				   const struct hca_mem_req *req,
				   enum hca_mem_atomic_op op,
				   uint64_t compare, uint64_t swap_add,
				   uint64_t *orig);

#endif /* HCA_CORE_MEM_H */
