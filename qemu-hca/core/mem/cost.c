// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The cost model: how long the transport stalls for reads of tables.
 *
 * The model only moves a deadline on, since the engine must not wait.
 */
#include <stdio.h>

#include "hca.h"

void hca_charge(struct hca_fn *fn, uint64_t ns)
{
	const struct hca *hca = fn->hca;
	struct hca_cost *cost = &fn->hca->cost;
	uint64_t from, room;

	if (!ns)
		return;
	from = cost->until > hca->now ? cost->until : hca->now;
	room = hca->now + HCA_MAX_STALL - from;
	if (ns > room)
		ns = room;
	cost->until = from + ns;
	hca_count_n(fn, QHCA_CNT_fetch_stall_ns, ns);
}

bool hca_stalled(const struct hca *hca)
{
	return hca->cost.until > hca->now;
}

void hca_cost_forget(struct hca *hca)
{
	hca->cost.until = 0;
}

bool qhca_fetch_cost_set(struct qhca_hca *dev,
			 const struct qhca_fetch_cost *fetch, char *err,
			 size_t err_len)
{
	struct hca *hca = &dev->hca;
	const struct {
		const char *name;
		uint32_t ns;
	} cost[] = {
		{ "x-pt-fetch-ns", fetch->pt_ns },
		{ "x-at-fetch-ns", fetch->at_ns },
		{ "x-context-fetch-ns", fetch->context_ns },
	};
	size_t i;

	for (i = 0; i < sizeof(cost) / sizeof(cost[0]); i++)
		if (cost[i].ns > HCA_MAX_FETCH_NS) {
			snprintf(err, err_len,
				 "%s=%u is over %u",
				 cost[i].name, cost[i].ns, HCA_MAX_FETCH_NS);
			return false;
		}
	hca->cost.fetch = *fetch;
	return true;
}

void qhca_fetch_cost_get(const struct qhca_hca *dev,
			 struct qhca_fetch_cost *fetch)
{
	const struct hca *hca = &dev->hca;

	*fetch = hca->cost.fetch;
}
