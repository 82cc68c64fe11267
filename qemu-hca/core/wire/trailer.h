/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What is behind the packet of IP in a frame with several segments of TCP, and in the frame
 * that shows that such come through: hardware.rst (Large segments).
 */
#ifndef HCA_CORE_TRAILER_H
#define HCA_CORE_TRAILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_TRAILER	8u		/* bytes */

/* Put it to @p.  @mss: bytes of payload in a segment. */
void hca_trailer_put(uint8_t *p, uint16_t mss);
/* Does a frame end with one? */
bool hca_trailer_find(const uint8_t *frame, size_t len, uint16_t *mss);

#endif /* HCA_CORE_TRAILER_H */
