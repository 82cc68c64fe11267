/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * TEARDOWN_HCA: what INIT_HCA and later commands made is forgotten.
 */
#ifndef HCA_CORE_MODE_H
#define HCA_CORE_MODE_H

struct hca_fn;

/* INIT_HCA undone: no queue, table, cache or object is left. */
void hca_teardown(struct hca_fn *fn);

#endif /* HCA_CORE_MODE_H */
