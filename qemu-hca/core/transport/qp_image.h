/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * QPs in the image.
 *
 * All state of a QP is in its context, which travels with the guest's memory, but for
 * what is on the chip: the work that waits for its turn, the timer, and the event of
 * stage 2 that is to be written.  When the engine freezes, it writes these into the
 * context as well (kept_*), so that the image does not grow with the QPs at work.  The
 * image has one octet for each QPN: whether the QP exists, its type and state, and
 * whether its context has such things.  Those of an earlier freeze are still in a
 * context, and mean nothing without that bit.
 */
#ifndef HCA_CORE_QP_IMAGE_H
#define HCA_CORE_QP_IMAGE_H

#include "image/image.h"

struct hca_fn;

/*
 * Layout of struct hca_qpc_hw.  Whoever gives a field another place or meaning, or takes
 * one from the reserved space, raises it: then older engines refuse the image, and
 * hca_qps_restore() has to convert older contexts before anything reads them, for which
 * it needs what hca_image_layout() returned.
 */
#define HCA_QP_LAYOUT	1u

/* Freezing: what the chip knows of QPs at work goes into their contexts. */
void hca_qps_keep(struct hca_fn *fn);
/* What has to be kept of a QP that exists: 0, or what kept_work becomes. */
uint32_t hca_qp_kept_work(const struct hca_fn *fn, uint32_t qpn);
/* The function is initialised. */
void hca_qps_image(struct hca_image *im, struct hca_fn *fn);
/* Generations of tokens, of an initialised function and of one that is not. */
void hca_tokens_image(struct hca_image *im, struct hca_fn *fn);
/* After loading: read the contexts, count references, go on with what was kept. */
void hca_qps_restore(struct hca_fn *fn);

#endif /* HCA_CORE_QP_IMAGE_H */
