/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sections of the image for what core/ keeps itself: see image/image.h, and sections.h
 * for their order.
 */
#ifndef HCA_CORE_PARTS_IMAGE_H
#define HCA_CORE_PARTS_IMAGE_H

#include "image/image.h"

struct hca_fn;

/* What both adapters must have in common: the functions that exist, and each one's limits. */
void hca_config_image(struct hca_image *im, struct hca_fn *fn);
/* Clock, link, and what waits for the end of the freeze; @fn: the physical function. */
void hca_adapter_image(struct hca_image *im, struct hca_fn *fn);
/* Registers, and whether it is enabled, initialised and alive. */
void hca_function_image(struct hca_image *im, struct hca_fn *fn);
/* Settings of SET_VF. */
void hca_vf_image(struct hca_image *im, struct hca_fn *fn);
void hca_commands_image(struct hca_image *im, struct hca_fn *fn);
/* Geometry of the caches; loading joins them.  The tables have been loaded. */
void hca_caches_image(struct hca_image *im, struct hca_fn *fn);
void hca_counters_image(struct hca_image *im, struct hca_fn *fn);

#endif /* HCA_CORE_PARTS_IMAGE_H */
