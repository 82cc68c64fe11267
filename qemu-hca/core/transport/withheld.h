/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What a function that may make no DMA cannot write when the machine stops.
 *
 * Software may clear Bus Master Enable while the device has changed contexts, and set
 * it again later.  The machine may stop and move in between.  On the same host nothing is
 * needed: the caches keep what they have, unless a miss of another function needs the
 * place of a changed context.  Then the context cannot be written, and the function dies
 * (hardware.rst, Shared caches).  An image of such a function has the changed
 * contexts, and the kept_* of QPs at work (qp_image.h); the engine that loads it keeps
 * them until the function may make DMA, writes them to the guest's memory, and only then
 * reads contexts as after any other move (hca_restore()).
 */
#ifndef HCA_CORE_WITHHELD_H
#define HCA_CORE_WITHHELD_H

#include "image/image.h"
#include "mem/descriptor_cache.h"

struct hca_fn;

/* A context as it is to be in memory. */
struct hca_withheld_ctx {
	uint32_t index;
	uint8_t table;			/* enum qhca_table */
	_Alignas(8) uint8_t bytes[HCA_CTX_MAX_IMAGE];
};

/* Fields of a QP's context. */
struct hca_withheld_qp {
	uint32_t qpn, work, db_pi;
	uint64_t deadline;
};

/**
 * struct hca_withheld - what a function has not written.
 * @on: it could not write when the machine stopped last; while an image is being
 *	saved and after it has been loaded, the rest of this struct says what
 */
struct hca_withheld {
	bool on;
	uint32_t num_ctxs, num_qps;
	struct hca_withheld_ctx *ctx;
	struct hca_withheld_qp *qp;
};

/* The function withholds something, and the tables and the QPs have been loaded. */
void hca_withheld_image(struct hca_image *im, struct hca_fn *fn);
/* Write it.  A failed DMA is fatal for the function. */
void hca_withheld_write(struct hca_fn *fn);
void hca_withheld_forget(struct hca_fn *fn);

#endif /* HCA_CORE_WITHHELD_H */
