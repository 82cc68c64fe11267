/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Receive side scaling: which of several queues gets a frame.
 *
 * The Toeplitz hash of addresses and ports chooses an entry of a table, which names the
 * queue.  For each bit of the input that is 1, the hash is changed by the 32 bits of the
 * key that begin at the same place.  What a nibble of the input contributes is computed
 * when the key is set, so that a frame costs a look-up for each nibble.
 */
#ifndef HCA_CORE_RSS_H
#define HCA_CORE_RSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qhca/qhca_hw.h"

#define HCA_RSS_NIBBLES		72	/* two addresses of IPv6, and two ports */

/**
 * struct hca_rss - how frames are distributed.
 * @num: entries of @queue in use, a power of two; 0: the first queue gets all frames
 * @types: QHCA_RSS_*
 * @part: contribution of each nibble of the input, by its value; hca_rss_prepare() makes
 *	it of @key
 */
struct hca_rss {
	uint16_t num, types;
	uint8_t key[QHCA_RSS_KEY_LEN];
	uint8_t queue[QHCA_RSS_MAX_ENTRIES];
	uint32_t part[HCA_RSS_NIBBLES][16];
};

/* What the hash of a frame is. */
struct hca_rss_hash {
	uint32_t value;
	bool valid;			/* it has one */
	bool l4;			/* ... to which the ports contribute */
};

/* @key has been set. */
void hca_rss_prepare(struct hca_rss *rss);
/* Can software ask for this?  Queues are below @queues. */
bool hca_rss_valid(const struct hca_rss *rss, unsigned int queues);
/* @len is at least that of an Ethernet header. */
struct hca_rss_hash hca_rss_hash(const struct hca_rss *rss, const uint8_t *frame,
				 size_t len);

#endif /* HCA_CORE_RSS_H */
