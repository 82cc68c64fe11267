/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the plain programs have in common: two processes, of which one gives the other frames
 * of a size, for a time.
 *
 * The payload of a frame is a piece of a pattern that is a pseudo-random number in each word.
 * Where the piece begins depends on the number of the frame, so that a frame that is lost,
 * repeated, cut or torn differs from the one that is expected. With --check the receiver
 * compares every byte; without, it compares the first and the last word of each frame, which
 * takes no time to speak of.
 */
#ifndef QHCA_BENCH_FRAMES_H
#define QHCA_BENCH_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MAX	65536u
#define PATTERN_SIZE	(4u << 20)	/* larger than a cache near the processor */

struct frames {
	size_t size;			/* of a frame: a multiple of 8 */
	double seconds;
	bool check;			/* all bytes */
	const uint8_t *pattern;		/* PATTERN_SIZE and another FRAME_MAX */
};

/* One direction of a link between two processes, before the fork and after it. */
struct link {
	/* Sends frames until frames_go_on() is false, and says that there are no more. */
	uint64_t (*send)(void *link, const struct frames *f);
	/* Receives frames until there are no more, and compares each by frames_arrived(). */
	uint64_t (*receive)(void *link, const struct frames *f);
	void *state;
};

/* The payload of frame @number. */
const uint8_t *frames_payload(const struct frames *f, uint64_t number);

/* Frame @number has arrived at @at. A frame that is not what was sent ends the program. */
void frames_arrived(const struct frames *f, uint64_t number, const uint8_t *at);

/* Is there time for frame @number? It looks at the clock once in some frames, and some go anyway. */
bool frames_go_on(const struct frames *f, uint64_t number);

/* Parses the options, runs both processes, and prints what the receiver has counted. */
int frames_main(int argc, char **argv, struct link *link);

/* Prints a message and ends the process, which has failed. */
void frames_die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#endif
