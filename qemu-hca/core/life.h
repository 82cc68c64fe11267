/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The life of an HCA: the end of each call.
 */
#ifndef HCA_CORE_LIFE_H
#define HCA_CORE_LIFE_H

struct hca;
struct hca_fn;

/* What came during this call takes effect. */
void hca_settle(struct hca *hca);
/* The end of a call: the same, and the next one may come. */
void hca_leave(struct hca *hca);

/* Loading: the function is as after its creation, whatever it was. */
void hca_fn_blank(struct hca_fn *fn);

#endif /* HCA_CORE_LIFE_H */
