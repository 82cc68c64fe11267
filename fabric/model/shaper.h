/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The rate of a port: a token bucket, in the form of a virtual schedule.
 *
 * The bucket is described by one time: when it would be full again had nothing more
 * been sent. A frame moves that time on by the frame's length over the rate, and leaves
 * as soon as the time is no more than the bucket's depth in the future. Without a depth
 * a frame leaves when its last bit would leave a link of that rate, which makes the
 * port a serial link; with a depth of n bytes a port that was idle sends n bytes at
 * once. (The algorithm is the virtual scheduling algorithm of ITU-T I.371.)
 *
 * Example: at 1 Gb/s a frame of 1250 bytes takes 10 us. Two frames that arrive at 0
 * leave at 10 and 20 us, and with a depth of 1250 bytes at 0 and 10 us.
 *
 * The fraction of a nanosecond is kept, so that the rate is exact over any time.
 */
#ifndef QHCA_FABRIC_SHAPER_H
#define QHCA_FABRIC_SHAPER_H

#include <stdint.h>

#define FAB_MIN_RATE	1000ull			/* bit/s */
#define FAB_MAX_RATE	1000000000000ull	/* bit/s */
#define FAB_MAX_BURST	(64ull << 20)		/* bytes */

struct fab_shaper {
	uint64_t rate;			/* bit/s; 0: no limit */
	int64_t depth;			/* of the bucket, as time at the rate, ns */
	int64_t full;			/* when the bucket is full again, less the depth, ns */
	uint64_t fraction;		/* of a ns, as a number of 1 / rate */
};

/*
 * Sets the rate to 0 or FAB_MIN_RATE to FAB_MAX_RATE bit/s, and the depth to at most
 * FAB_MAX_BURST bytes. The bucket is full at @now, ns.
 */
void fab_shaper_set(struct fab_shaper *s, uint64_t rate, uint64_t burst, uint64_t now);
/*
 * When a frame of @bytes, at most FAB_MAX_FRAME and its overhead, leaves that arrived
 * at @arrival, ns. Frames are asked for in the order in which they leave, and their
 * arrivals never go back.
 */
uint64_t fab_shaper_depart(struct fab_shaper *s, uint64_t arrival, uint32_t bytes);

#endif /* QHCA_FABRIC_SHAPER_H */
