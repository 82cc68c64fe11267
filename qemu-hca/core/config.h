/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Limits and cache geometries of an HCA.
 */
#ifndef QHCA_CORE_CONFIG_H
#define QHCA_CORE_CONFIG_H

#include "qhca.h"

/* false, with a sentence in @err: not acceptable. */
bool qhca_config_ok(const struct qhca_config *cfg, char *err, size_t err_len);
/* The features that an HCA of these limits has. */
uint64_t qhca_config_features(const struct qhca_config *cfg);

#endif /* QHCA_CORE_CONFIG_H */
