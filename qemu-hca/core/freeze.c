// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Freezing: the machine is stopped, to be saved, to move, or to be looked at.
 *
 * What travels with the machine's memory has to be there before that memory is sent for
 * the last time, which is when the machine stops, so the device writes it then, and
 * makes no access from then on.  To the host a frozen engine is inside one long call,
 * that of qhca_freeze() up to qhca_thaw(): what comes meanwhile waits for its end.
 *
 * The engine's clock is the host's with an offset, and the offset is chosen at
 * qhca_thaw() so that the clock continues where it stopped, also if the host is another
 * one with another clock.  So all times that the engine keeps, in its own memory and in
 * the guest's, stay true without being touched.
 */
#include <stdio.h>

#include "hca.h"
#include "life.h"
#include "migrate.h"
#include "transport/qp_image.h"

static void finish_commands(struct hca *hca)
{
	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS; gvmi++)
		if (hca->fn[gvmi])
			hca_cmdq_finish(hca->fn[gvmi]);
}

/* A function that may not write goes on with its caches, or takes them with it. */
static void keep(struct hca_fn *fn)
{
	if (fn->restore)
		return;			/* it has read nothing yet */
	fn->withheld.on = fn->initialised && !hca_is_dead(fn) &&
			  !hca_fn_may_dma(fn);
	if (!fn->withheld.on)
		hca_qps_keep(fn);
}

/* Write what is newer here than in memory.  A failure is fatal for a function. */
static void write_back(struct hca *hca)
{
	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS; gvmi++)
		if (hca->fn[gvmi])
			keep(hca->fn[gvmi]);
	hca_ctxcache_clean(&hca->cache.qd);
	hca_ctxcache_clean(&hca->cache.srq);
	hca_ctxcache_clean(&hca->cache.cq);
}

bool qhca_freeze(struct qhca_hca *dev, uint64_t now, char *err, size_t err_len)
{
	struct hca *hca = &dev->hca;

	if (hca->frozen || !hca_enter(hca, now)) {
		snprintf(err, err_len, hca->frozen ?
			 "the adapter is frozen already" :
			 "the adapter is in the middle of a call");
		return false;
	}
	finish_commands(hca);
	hca_settle(hca);
	write_back(hca);
	hca_settle(hca);		/* a function may have died of it */
	hca->frozen = true;
	return true;
}

/* The clock has stood still, and the path to a peer may be another one by now. */
static void thaw(struct hca_fn *fn)
{
	hca_peers_forget(fn);
	if (!fn->restore)
		hca_withheld_forget(fn);
}

void qhca_thaw(struct qhca_hca *dev, uint64_t now)
{
	struct hca *hca = &dev->hca;

	if (!hca->frozen)
		return;
	hca->clock_offset = hca->now - now;
	hca->frozen = false;
	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS; gvmi++)
		if (hca->fn[gvmi])
			thaw(hca->fn[gvmi]);
	hca_restore(hca);
	hca_leave(hca);
}

bool qhca_is_frozen(const struct qhca_hca *dev)
{
	const struct hca *hca = &dev->hca;

	return hca->frozen;
}
