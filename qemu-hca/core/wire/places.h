/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Places of a resource of the adapter that its functions share, for example those of
 * the loopback queue.
 *
 * While the physical function is alone it may have all.  Otherwise one place is kept for
 * each enabled function that has none, and those that have some divide the rest equally:
 * a function that wants many stops nobody but itself.  A resource must have at least as
 * many places as there are functions.
 */
#ifndef HCA_CORE_PLACES_H
#define HCA_CORE_PLACES_H

#include "qhca.h"

struct hca_fn;

struct hca_places {
	uint64_t fns;			/* functions that have some, bit by GVMI */
	uint8_t of[QHCA_MAX_VFS + 1];	/* how many, by GVMI */
};

/* May @fn take one more place where @used of @total are taken?  O(1) steps. */
bool hca_places_left(const struct hca_places *places, const struct hca_fn *fn,
		     unsigned int used, unsigned int total);

static inline void hca_places_take(struct hca_places *places, uint16_t gvmi)
{
	places->of[gvmi]++;
	places->fns |= 1ull << gvmi;
}

static inline void hca_places_give_back(struct hca_places *places, uint16_t gvmi)
{
	if (!--places->of[gvmi])
		places->fns &= ~(1ull << gvmi);
}

#endif /* HCA_CORE_PLACES_H */
