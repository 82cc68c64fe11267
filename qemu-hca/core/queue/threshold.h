/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The threshold of a queue's descriptor (seed 003): software's index in the cached
 * descriptor is read again only when the cached one shows that little is left.
 */
#ifndef HCA_CORE_THRESHOLD_H
#define HCA_CORE_THRESHOLD_H

#include <stdbool.h>
#include <stdint.h>

/* Software owes WQEs: must its producer index be read before one of @left is taken? */
static inline bool hca_threshold_low(uint32_t left, uint32_t threshold)
{
	return !left || left < threshold;
}

/* Software owes room: must its consumer index be read before one more entry is @used? */
static inline bool hca_threshold_full(uint32_t used, uint32_t threshold,
				      uint32_t depth)
{
	return used > threshold || used == depth;
}

/*
 * A threshold that a refetch has brought.  true: it is a new one, and is taken; 0, and one
 * over the depth of the queue, is none.
 */
static inline bool hca_threshold_take(uint32_t *threshold, uint32_t fetched,
				      uint32_t depth)
{
	if (!fetched || fetched == *threshold || fetched > depth)
		return false;
	*threshold = fetched;
	return true;
}

#endif /* HCA_CORE_THRESHOLD_H */
