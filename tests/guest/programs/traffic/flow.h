/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the programs share that make the traffic of test_matrix.py. They run until a
 * signal stops them, count their messages, and verify what they receive.
 *
 *   SIGUSR1   resize the completion queues
 *   SIGUSR2   resize the shared receive queue
 *   SIGTERM   report; the queues stay, so that the peer has no error from this end
 *   SIGTERM   once more: clean up and exit
 *
 * The file of -o has one line, which is rewritten several times a second: the
 * number of messages that arrived and were verified, the number of messages
 * sent, and the number of resizes.
 */
#ifndef FLOW_H
#define FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow {
	int signals;		/* a signalfd */
	int progress;		/* the file of -o, or -1 */
	uint64_t written;	/* when the line was */
	unsigned int rest;	/* ms of each pause, see flow_rest() */
	uint64_t rested;	/* when the last pause ended */
	uint64_t verified, sent, resizes;
	uint64_t bad;		/* messages with wrong content, calls that failed */
};

/* Before any thread is created: the program's threads share the signal mask. */
void flow_begin(struct flow *f, const char *progress);
/* Writes the line, if that is due, or now. */
void flow_progress(struct flow *f, bool now);
/*
 * Pauses for f->rest ms after each 50 ms of work.  In a guest on a slow kernel,
 * traffic without pauses takes so much of the processors that the operation in
 * its middle hardly gets on.  What has been posted is under way during a pause.
 */
void flow_rest(struct flow *f);
/* The signal that has arrived, or 0. */
int flow_signal(struct flow *f);
/* Complains of a message or a call, on stderr, the first few times. */
__attribute__((format(printf, 2, 3)))
void flow_bad(struct flow *f, const char *format, ...);

/*
 * Content that depends on nothing but @seed and the position: the bytes from
 * @off, a multiple of 8, on; both ends know it.
 */
void flow_fill(void *mem, uint64_t seed, uint64_t off, size_t len);
bool flow_check(const void *mem, uint64_t seed, uint64_t off, size_t len);
/* The same where each byte may be zero, because it may not have been written yet. */
bool flow_check_partly(const void *mem, uint64_t seed, uint64_t off, size_t len);

#endif
