/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Wire-fault injector: what shall happen to an RDMA frame, and a bounded store
 * of frames held back.  Deterministic for a given seed and order of frames.
 * When the store is full a frame passes unharmed and is not counted.
 */
#ifndef QHCA_CORE_INJECT_H
#define QHCA_CORE_INJECT_H

#include "qhca.h"

#define QHCA_INJECT_STORE	64	/* frames */
#define QHCA_INJECT_MAX_DELAY	10000000000ull	/* ns */
/* A reordered frame follows the next one, or goes alone after this long. */
#define QHCA_INJECT_REORDER_NS	1000000u

struct qhca_inject_frame {
	uint64_t due;			/* release at this time... */
	uint64_t order;			/* oldest first among those due */
	uint32_t len;
	bool used;
	bool rx;			/* came from the wire, else goes to it */
	bool swap;			/* ... or after the next frame of its way */
};

struct qhca_inject {
	struct qhca_inject_config cfg;
	bool any;			/* some rule is on */
	uint64_t rng;
	uint64_t seen;			/* frames since qhca_inject_set() */
	uint64_t order;
	uint32_t held;			/* frames in the store */
	struct qhca_inject_frame slot[QHCA_INJECT_STORE];
	uint8_t *data;			/* QHCA_INJECT_STORE * QHCA_MAX_FRAME */
};

bool qhca_inject_create(struct qhca_hca *hca);	/* false: no memory */
void qhca_inject_destroy(struct qhca_hca *hca);
void qhca_inject_reset(struct qhca_hca *hca);	/* drops held frames; keeps rules */

static inline bool qhca_inject_active(const struct qhca_inject *inj, bool rx)
{
	return inj->any && (rx ? inj->cfg.on_rx : inj->cfg.on_tx);
}

/* Bit k: QHCA_INJECT_* k shall happen to this frame.  Advances the sequence. */
uint32_t qhca_inject_decide(struct qhca_inject *inj);
/* Flip one bit of frame[from, len). */
void qhca_inject_flip(struct qhca_inject *inj, uint8_t *frame, size_t from,
		      size_t len);
/* Keep a copy; false: the store is full. */
bool qhca_inject_hold(struct qhca_inject *inj, const uint8_t *frame, size_t len,
		      bool rx, bool swap, uint64_t due);
/* A frame of direction @rx has passed: reordered ones may follow it now. */
void qhca_inject_passed(struct qhca_inject *inj, bool rx, uint64_t now);
/* Oldest frame that is due, or NULL; release it with qhca_inject_drop(). */
struct qhca_inject_frame *qhca_inject_due(struct qhca_inject *inj, uint64_t now);
const uint8_t *qhca_inject_data(const struct qhca_inject *inj,
				const struct qhca_inject_frame *f);
void qhca_inject_drop(struct qhca_inject *inj, struct qhca_inject_frame *f);

/*
 * What the injector does to a frame of @len bytes at @frame, writable:
 * returns how often it goes on now.  @payload is where corruption may begin.
 */
unsigned int qhca_inject_apply(struct qhca_hca *hca, uint8_t *frame, size_t len,
			       size_t payload, bool rx);

uint64_t qhca_inject_deadline(const struct qhca_inject *inj);

#endif /* QHCA_CORE_INJECT_H */
