/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Wire-fault injector: what shall happen to an RDMA frame, and a bounded store
 * of frames held back.  Deterministic for a given seed and order of frames.
 * When the store is full a frame passes unharmed and is not counted.
 */
#ifndef HCA_CORE_INJECT_H
#define HCA_CORE_INJECT_H

#include "qhca.h"

#define HCA_INJECT_STORE	64	/* frames */
#define HCA_INJECT_MAX_DELAY	10000000000ull	/* ns */
/* A reordered frame follows the next one, or goes alone after this long. */
#define HCA_INJECT_REORDER_NS	1000000u

struct hca_inject_frame {
	uint64_t due;			/* release at this time... */
	uint64_t order;			/* oldest first among those due */
	uint32_t len;
	uint16_t gvmi;			/* the function that receives or sends it */
	bool used;
	bool rx;			/* came from the wire, else goes to it */
	bool swap;			/* ... or after the next frame of its way */
};

struct hca_inject {
	struct qhca_inject_config cfg;
	bool any;			/* some rule is on */
	uint64_t rng;
	uint64_t seen;			/* frames since qhca_inject_set() */
	uint64_t order;
	uint32_t held;			/* frames in the store */
	struct hca_inject_frame slot[HCA_INJECT_STORE];
	uint8_t *data;			/* HCA_INJECT_STORE * QHCA_MAX_FRAME */
};

bool hca_inject_create(struct hca *hca);	/* false: no memory */
void hca_inject_destroy(struct hca *hca);
/* Drops the frames held for a function; the rules stay. */
void hca_inject_forget(struct hca_fn *fn);

static inline bool hca_inject_active(const struct hca_inject *inj, bool rx)
{
	return inj->any && (rx ? inj->cfg.on_rx : inj->cfg.on_tx);
}

/* Take over rules; false, with a sentence in @err: a field is out of range. */
bool hca_inject_rules(struct hca_inject *inj,
		      const struct qhca_inject_config *cfg, char *err,
		      size_t err_len);
/*
 * The faults of this frame, bit k for QHCA_INJECT_* k.  Advances the sequence.
 */
uint32_t hca_inject_decide(struct hca_inject *inj);
/* Flip one bit of frame[from, len). */
void hca_inject_flip(struct hca_inject *inj, uint8_t *frame, size_t from,
		     size_t len);
/* Keep a copy for a function; false: the store is full. */
bool hca_inject_hold(struct hca_fn *fn, const uint8_t *frame, size_t len,
		     bool rx, bool swap, uint64_t due);
/* A frame of direction @rx has passed, so a reordered one may follow it now. */
void hca_inject_passed(struct hca_inject *inj, bool rx, uint64_t now);
/* Oldest frame that is due, or NULL; release it with hca_inject_drop(). */
struct hca_inject_frame *hca_inject_due(struct hca_inject *inj, uint64_t now);
const uint8_t *hca_inject_data(const struct hca_inject *inj,
			       const struct hca_inject_frame *f);
void hca_inject_drop(struct hca_inject *inj, struct hca_inject_frame *f);

/*
 * Apply the injector to a frame of @len bytes at @frame, which it may corrupt
 * from @payload on.  Returns how many copies of the frame go on now.
 */
unsigned int hca_inject_apply(struct hca_fn *fn, uint8_t *frame, size_t len,
			      size_t payload, bool rx);

uint64_t hca_inject_deadline(const struct hca_inject *inj);

#endif /* HCA_CORE_INJECT_H */
