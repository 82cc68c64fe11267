/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Entry of the transport: a RoCEv2 packet that arrived.
 */
#ifndef HCA_CORE_DELIVER_H
#define HCA_CORE_DELIVER_H

#include "wire/roce.h"

struct hca_fn;

/* Is its ICRC right, or absent where the link does without? */
bool hca_roce_icrc_right(const struct hca_fn *fn,
			 const struct hca_rx_info *info);
/* A packet, or a bundle of some. */
void hca_roce_rx(struct hca_fn *fn, const struct hca_rx_info *info);

#endif /* HCA_CORE_DELIVER_H */
