/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sections of the image for what queue/ keeps: see image.h.
 *
 * A context lies in the guest's memory, and travels with it.  The image says which
 * objects exist, with what the device alone knows of them; hca_cqs_restore() and
 * hca_srqs_restore() make the rest from the contexts, when the machine goes on.  A
 * function whose contexts are not what they were dies, as if it had read them at any
 * other time.
 */
#ifndef HCA_CORE_QUEUE_IMAGE_H
#define HCA_CORE_QUEUE_IMAGE_H

#include "image/image.h"

struct hca_fn;

/*
 * Layouts of struct qhca_cqc and struct qhca_srqc behind the part of software: see
 * HCA_QP_LAYOUT.
 */
#define HCA_CQ_LAYOUT	1u
#define HCA_SRQ_LAYOUT	1u

/* The function is initialised. */
void hca_eqs_image(struct hca_image *im, struct hca_fn *fn);
/* Events that wait for room.  The EQs have been loaded. */
void hca_held_image(struct hca_image *im, struct hca_fn *fn);
void hca_cqs_image(struct hca_image *im, struct hca_fn *fn);
void hca_srqs_image(struct hca_image *im, struct hca_fn *fn);
void hca_eth_image(struct hca_image *im, struct hca_fn *fn);
void hca_rss_image(struct hca_image *im, struct hca_fn *fn);

/* After loading, in this order: read the contexts, and count references. */
void hca_cqs_restore(struct hca_fn *fn);
void hca_srqs_restore(struct hca_fn *fn);


#endif /* HCA_CORE_QUEUE_IMAGE_H */
