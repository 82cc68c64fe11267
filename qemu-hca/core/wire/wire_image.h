/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sections of the image for what wire/ keeps.  Each function is for both directions:
 * see image.h.  @fn of those that concern the adapter is the physical function.
 */
#ifndef HCA_CORE_WIRE_IMAGE_H
#define HCA_CORE_WIRE_IMAGE_H

#include "image/image.h"

struct hca_fn;

void hca_ports_image(struct hca_image *im, struct hca_fn *fn);
void hca_flows_image(struct hca_image *im, struct hca_fn *fn);
void hca_rate_image(struct hca_image *im, struct hca_fn *fn);
/* Frames that are looped back; the functions have been loaded. */
void hca_wire_image(struct hca_image *im, struct hca_fn *fn);
/* Rules and random numbers of the injector, and the frames it holds; as before. */
void hca_inject_image(struct hca_image *im, struct hca_fn *fn);

#endif /* HCA_CORE_WIRE_IMAGE_H */
