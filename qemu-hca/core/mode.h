/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TEARDOWN_HCA: what INIT_HCA and later commands made is forgotten.
 */
#ifndef QHCA_CORE_MODE_H
#define QHCA_CORE_MODE_H

struct qhca_hca;

/* INIT_HCA undone: no queue, table, cache or object is left. */
void qhca_teardown(struct qhca_hca *hca);

#endif /* QHCA_CORE_MODE_H */
