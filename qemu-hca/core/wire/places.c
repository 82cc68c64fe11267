// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Places that functions share.  places.h explains who gets how many.
 */
#include "wire/places.h"

#include "bytes.h"
#include "hca.h"

/*
 * Since a function with places needs more free ones than are kept for others, there is
 * a free one for a function that has none.
 */
bool hca_places_left(const struct hca_places *places, const struct hca_fn *fn,
		     unsigned int used, unsigned int total)
{
	const struct hca_switch *sw = &fn->hca->sw;
	unsigned int kept;

	if (hca_switch_idle(sw) || !(places->fns >> fn->cfg.gvmi & 1))
		return used < total;
	kept = hca_count_bits(sw->fns & ~places->fns);
	return total - used > kept &&
	       places->of[fn->cfg.gvmi] <
	       (total - kept) / hca_count_bits(places->fns);
}
