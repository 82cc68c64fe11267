/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The life of an HCA: the end of each call.
 */
#ifndef QHCA_CORE_LIFE_H
#define QHCA_CORE_LIFE_H

struct qhca_hca;

/* The end of a call: what came meanwhile takes effect. */
void hca_leave(struct qhca_hca *hca);

#endif /* QHCA_CORE_LIFE_H */
