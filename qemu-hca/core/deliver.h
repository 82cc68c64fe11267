/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Entry of the transport: a RoCEv2 packet that arrived.
 */
#ifndef QHCA_CORE_DELIVER_H
#define QHCA_CORE_DELIVER_H

#include "wire/roce.h"

struct qhca_hca;

void qhca_roce_rx(struct qhca_hca *hca, const struct qhca_rx_info *info);

#endif /* QHCA_CORE_DELIVER_H */
