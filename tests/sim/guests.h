/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Virtual functions with stage 2, which are the functions of guests, and the host
 * domain that lends them memory: it pins what commands name, brings what faults, and
 * takes pages away.
 *
 * The fake host is the judge: a DMA, for reading or writing, that does not go to a page
 * which the function has at that moment ends the program (host.h).
 */
#ifndef QHCA_GUESTS_H
#define QHCA_GUESTS_H

#include "odp.h"
#include "world.h"

#define MAX_GUESTS	3u
#define MAX_ASKS	64u

struct guest_ask {			/* an event that has not been served */
	uint64_t due;
	struct qhca_eqe eqe;
};

struct guest {
	struct md *md;
	uint32_t pins, faults;		/* events received */
	uint32_t refused;		/* resumes that the device did not know */
	uint32_t taken;			/* pages */
};

struct guests {				/* of one adapter */
	struct world *w;
	struct md *pf;
	struct guest guest[1 + MAX_GUESTS];	/* by GVMI; the first is not used */
	struct guest_ask ask[MAX_ASKS];
	uint32_t num_asks;
	uint64_t events, served;
	uint32_t fault_ns;		/* a fault is served within so long */
	bool absent;			/* faults are not served, pin requests are */
	bool careless;			/* some pages are brought late, or not all */
	char error[200];		/* "" while the device does as it should */
};

/* The adapter of @pf, which has no guests yet, and whose software has not begun. */
void guests_init(struct guests *g, struct world *w, struct md *pf);
void guest_create(struct guests *g, uint16_t gvmi, uint64_t mem_len,
		  const struct qhca_config *cfg);
void guests_destroy(struct guests *g);

/* A new life, in which nothing is present.  The driver of @pf has started. */
void guest_start(struct guests *g, uint16_t gvmi, const struct md_init *init);

/* A reset of the function: its row stays, and it waits for nothing. */
void guest_reset(struct guests *g, uint16_t gvmi);

/* Takes events, and serves those that are due.  false: see guests.error. */
bool guests_work(struct guests *g);
/* Are faults of the function waiting? */
bool guest_waits(const struct guests *g, uint16_t gvmi);

/* Takes a page away unless it is pinned or absent; true if it was taken. */
bool guest_take(struct guests *g, uint16_t gvmi, uint64_t addr);
/* The page may be read only. */
void guest_protect(struct guests *g, uint16_t gvmi, uint64_t addr);
/* Takes all pages, as after the end of the function. */
void guest_take_all(struct guests *g, uint16_t gvmi);
static inline uint64_t guest_count(const struct guests *g, uint16_t gvmi,
				   enum qhca_counter id)
{
	return qhca_counter(g->pf->host.hca, gvmi, id);
}

#endif /* QHCA_GUESTS_H */
