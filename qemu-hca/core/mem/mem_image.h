/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sections of the image for what mem/ keeps: see image.h.  Lines of caches are not saved:
 * those that have changed are written to memory before, and the others are a copy of it.
 */
#ifndef HCA_CORE_MEM_IMAGE_H
#define HCA_CORE_MEM_IMAGE_H

#include "image/image.h"

struct hca_fn;

/* Chunks of tables.  The function is initialised. */
void hca_tables_image(struct hca_image *im, struct hca_fn *fn);
/* Rows of blocks, and which keys are in the bank. */
void hca_pool_image(struct hca_image *im, struct hca_fn *fn);
/* After loading: read the entries of these keys again. */
void hca_pool_restore(struct hca_fn *fn);
/* The row of the function, and what it asks the host domain for. */
void hca_stage2_image(struct hca_image *im, struct hca_fn *fn);

/* A geometry, which has to be within @max. */
struct qhca_geometry;
void hca_geometry_image(struct hca_image *im, struct qhca_geometry *g,
			const struct qhca_geometry *max);

#endif /* HCA_CORE_MEM_IMAGE_H */
