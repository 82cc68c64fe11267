/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Frames that flow rules give to raw packet QPs.
 */
#ifndef HCA_CORE_FLOW_RX_H
#define HCA_CORE_FLOW_RX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hca_fn;

/* Give a copy of the frame to each sniffer. */
void hca_flow_sniff(struct hca_fn *fn, const uint8_t *frame, size_t len);
/*
 * Give the frame to the QPs of NORMAL rules that match.  true: nobody else gets
 * it.
 */
bool hca_flow_steer(struct hca_fn *fn, const uint8_t *frame, size_t len);
/* Nobody else takes the frame: give it to the QPs of the default rules. */
void hca_flow_default(struct hca_fn *fn, const uint8_t *frame, size_t len);

#endif /* HCA_CORE_FLOW_RX_H */
