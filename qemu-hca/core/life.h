/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The life of an HCA: the end of each call.
 */
#ifndef HCA_CORE_LIFE_H
#define HCA_CORE_LIFE_H

struct hca;

/* What came during this call takes effect. */
void hca_settle(struct hca *hca);
/* The end of a call: the same, and the next one may come. */
void hca_leave(struct hca *hca);

#endif /* HCA_CORE_LIFE_H */
