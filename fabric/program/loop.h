/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The event loop: one thread, which waits for sockets, signals and the time.
 *
 * A source is a file descriptor with a function. A function may close any source, its
 * own included, while events for it are still to be handled; the loop forgets those, and
 * frees the source after all events of the round.
 */
#ifndef QHCA_FABRIC_LOOP_H
#define QHCA_FABRIC_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct sw_loop;

/* The first member of what the functions get. */
struct sw_source {
	int fd;				/* -1: closed */
	uint32_t events;		/* EPOLL*, for which it waits */
	void (*ready)(struct sw_source *source, uint32_t events);
	/* Frees what the source has beside itself; or NULL. */
	void (*release)(struct sw_source *source);
	struct sw_source *next;		/* in the loop's list of all sources */
};

struct sw_loop {
	int epoll;
	struct sw_source timer;
	uint64_t armed;			/* time of the timer, ns, or UINT64_MAX */
	uint64_t start;			/* of the clock, ns */
	struct sw_source *sources;	/* all; those that are closed are to be freed */
	bool any_closed;
};

/* Returns 0, or a negative errno. sw_loop_fini() follows in either case. */
int sw_loop_init(struct sw_loop *loop);
/* Closes and frees all sources. */
void sw_loop_fini(struct sw_loop *loop);

/*
 * Adds a source on the heap, whose members @fd and @ready are set, and takes both the
 * source and its descriptor. Returns 0, or a negative errno: both are then the caller's.
 */
int sw_loop_add(struct sw_loop *loop, struct sw_source *source, uint32_t events);
/* Changes the events for which the source waits. */
void sw_loop_wait_for(struct sw_loop *loop, struct sw_source *source, uint32_t events);
/* Closes the descriptor; the source is freed later. */
void sw_loop_close(struct sw_loop *loop, struct sw_source *source);

/* Time since the loop began, ns */
uint64_t sw_loop_now(const struct sw_loop *loop);
/* Waits until a source is ready or it is @deadline, ns; calls the functions. */
int sw_loop_round(struct sw_loop *loop, uint64_t deadline);

#endif /* QHCA_FABRIC_LOOP_H */
