/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The life of an HCA: the end of each call.
 */
#ifndef HCA_CORE_LIFE_H
#define HCA_CORE_LIFE_H

struct hca;

/* The end of a call: what came meanwhile takes effect. */
void hca_leave(struct hca *hca);

#endif /* HCA_CORE_LIFE_H */
