// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames that flow rules give to raw packet QPs.
 */
#include "flow_rx.h"

#include "transport/transport.h"

/*
 * Deliver the frame by all rules whose types are among @types (bits).  The
 * device may die while a QP receives it.
 */
static void give_copies(struct hca_fn *fn, unsigned int types,
			const uint8_t *frame, size_t len)
{
	const struct hca_flows *f = &fn->flows;

	for (uint32_t i = 0; i < f->num && !hca_is_dead(fn); i++)
		if (types >> hca_flow_at(f, i)->type & 1)
			hca_raw_rx(fn, hca_flow_at(f, i)->qpn, frame, len);
}

void hca_flow_sniff(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	give_copies(fn, 1u << QHCA_FLOW_SNIFFER, frame, len);
}

void hca_flow_default(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	unsigned int types = 1u << QHCA_FLOW_ALL_DEFAULT;

	if (frame[0] & 1)
		types |= 1u << QHCA_FLOW_MC_DEFAULT;
	give_copies(fn, types, frame, len);
}

bool hca_flow_steer(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	const struct hca_flows *f = &fn->flows;
	struct hca_flow_seen s;

	if (!f->of_type[QHCA_FLOW_NORMAL])
		return false;
	hca_flow_see(frame, len, &s);
	for (uint32_t i = 0; i < f->num && !hca_is_dead(fn); i++) {
		const struct hca_flow_rule *r = hca_flow_at(f, i);

		if (r->type != QHCA_FLOW_NORMAL || !hca_flow_matches(r, &s))
			continue;
		hca_raw_rx(fn, r->qpn, frame, len);
		if (!(r->flags & QHCA_FLOW_F_DONT_TRAP))
			return true;
	}
	return false;
}
