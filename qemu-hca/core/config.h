/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Limits and cache geometries of an HCA.
 */
#ifndef HCA_CORE_CONFIG_H
#define HCA_CORE_CONFIG_H

#include "qhca.h"

/* false, with a sentence in @err: not acceptable. */
bool hca_config_ok(const struct qhca_config *cfg, char *err, size_t err_len);
/* The features that an HCA of these limits has. */
uint64_t hca_config_features(const struct qhca_config *cfg);
/* @features without those that need one which is not among them. */
uint64_t hca_features_usable(uint64_t features);

#endif /* HCA_CORE_CONFIG_H */
