/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Hosts joined by a switch, under a virtual clock.  Everything random comes from
 * one seed, so a run can be repeated exactly.
 */
#ifndef QHCA_WORLD_H
#define QHCA_WORLD_H

#include "minidrv.h"

#define WORLD_HOSTS	4

struct world_link {		/* probabilities in parts in a million */
	uint32_t loss, duplicate, corrupt, reorder;
	uint32_t migrate;	/* a host moves, with its software */
	uint32_t block;		/* the link refuses a frame, for a while */
	uint32_t delay;		/* ns, least */
	uint32_t jitter;	/* ns, added at random: reorders too */
};

struct world_frame {
	uint64_t time, order;
	uint32_t to;
	uint32_t len;
	uint8_t *data;
};

struct world_port {
	struct world *w;
	unsigned int host;
};

struct world {
	uint64_t now;
	unsigned int budget;		/* of a call of the engine; 0: any */
	uint64_t rng;
	struct md *host[WORLD_HOSTS];
	unsigned int num_hosts;
	struct world_link link;
	struct world_frame *flight;	/* heap by time, then order; 1-based */
	uint32_t num_flight, cap_flight;
	uint64_t order;
	uint64_t frames, lost, moved;
	bool blocked[WORLD_HOSTS];
	/*
	 * The switch is memory that the senders can change: packets go without ICRC, and
	 * their headers are destroyed as soon as the device that receives them looks
	 * elsewhere.  What the switch damages has an ICRC.
	 */
	bool memory;
	uint32_t late;			/* steps with a deadline gone by */
	/*
	 * Prints each trace event; and at the end all counters, and a digest of the trace
	 * and of the frames, which are the same if a change of the engine changes nothing.
	 */
	bool verbose;
	uint64_t digest;
	struct world_port port[WORLD_HOSTS];
	/* NULL, or: is the frame let through? (error scenarios) */
	bool (*filter)(struct world *w, unsigned int from, uint8_t *frame,
		       size_t len);
	void *filter_arg;
};

void world_init(struct world *w, uint64_t seed, unsigned int hosts,
		uint64_t mem_len, const struct qhca_config *cfg);
void world_fini(struct world *w);

uint32_t world_rand(struct world *w);
/* From now on the switch is memory. */
void world_use_memory(struct world *w);
/* A host goes on in another engine, to which the link is what it was; see host_migrate(). */
void world_migrate(struct world *w, struct host *h, uint64_t skew);
/* 0 ... n - 1 */
uint32_t world_pick(struct world *w, uint32_t n);
bool world_chance(struct world *w, uint32_t ppm);

/*
 * Lets the engines work, and delivers frames that are due.  Returns whether anything
 * happened or is still to happen; the clock skips idle time, but does not go beyond
 * @until.
 */
bool world_step(struct world *w, uint64_t until);
/* The same for a caller that waits for something: idle time passes, too. */
void world_wait(struct world *w, uint64_t until);
/* Steps until there is nothing left to do, or until @until. */
void world_run(struct world *w, uint64_t until);

#endif /* QHCA_WORLD_H */
