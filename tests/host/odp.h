/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Regions on demand of the fake host: pages that the model of an operating system
 * takes away and brings back.
 *
 * A page is resident (it has a frame) or its bytes lie in the swap store; and
 * the device has it mapped, for reading or also for writing, or not.  Frames come
 * from a pool that all regions of a host share; a free frame is filled with a
 * canary that is looked at when it is used again, so that a write by the device
 * to a page that was given up does not go unseen.
 *
 * The processor's accesses (md_buf_read() and _write()) make pages resident,
 * as page faults of a program do, and map nothing.
 */
#ifndef QHCA_ODP_H
#define QHCA_ODP_H

#include "minidrv.h"

#define MD_MAX_ODP	64		/* regions of a host */

struct md_frames {			/* of one host */
	uint64_t *free;
	uint32_t num_free;
	uint32_t corrupt;		/* frames whose canary was changed */
	struct md_odp *odp[MD_MAX_ODP];	/* who may have to give a page back */
	uint32_t num_odp, hand, hand_page;
};

struct md_odp {
	struct md *md;
	struct md_frames *frames;
	struct md_mr mr;		/* buf.page: frame, or 0: not resident */
	uint64_t *leaf;			/* bus address of each page's entry */
	uint64_t *up;			/* ... and of the entry of its node */
	uint8_t *store;			/* swap */
	bool hole;			/* its pages are unavailable for good */
	uint32_t mapped;		/* pages that the device may use */
	uint32_t taken;			/* times a page was taken away */
};

/* A pool of @num frames on @md. */
struct md_frames *md_frames_new(struct md *md, uint32_t num);
/* Counts the free frames whose canary somebody has overwritten. */
uint32_t md_frames_check(struct md *md, struct md_frames *frames);

/* As md_reg_mr(), but no page is present. */
struct md_odp *md_odp_reg(struct md *md, struct md_frames *frames, uint32_t pd,
			  uint64_t iova, uint64_t len, uint32_t access);
uint32_t md_odp_pages(const struct md_odp *odp);
/* The page of address @addr. */
uint32_t md_odp_page(const struct md_odp *odp, uint64_t addr);

/*
 * Make resident; other pages are taken away if the pool is empty.  false: there
 * is none to take.
 */
bool md_odp_touch(struct md_odp *odp, uint32_t page);
/* Makes the page resident and maps it, for writing too if @write. */
bool md_odp_map(struct md_odp *odp, uint32_t page, bool write);
bool md_odp_is_mapped(const struct md_odp *odp, uint32_t page);
/* Ends the device's use of the pages: clears the entries, invalidates and waits. */
void md_odp_unmap(struct md_odp *odp, uint32_t page, uint32_t num);
/* ... and its frame is free again. */
void md_odp_take(struct md_odp *odp, uint32_t page);
/*
 * As md_odp_unmap(); the page then moves to another frame (compaction, copy on
 * write).
 */
void md_odp_move(struct md_odp *odp, uint32_t page);

/* Takes the next page fault; returns false if there is none.  Skips other events. */
bool md_fault(struct md *md, uint32_t *qpn, struct qhca_fault_info *info);
/* Executes FAULT_RESUME; returns the command's status. */
int md_resume(struct md *md, uint32_t token, bool ok);

#endif /* QHCA_ODP_H */
