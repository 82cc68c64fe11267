// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who works when.
 *
 * Each kind of work gets a share of a round, and rounds follow each other
 * until the budget is spent or nobody has work.  Who is first changes with
 * every round, so that a budget of one does not starve anyone.
 */
#include "hca.h"
#include "life.h"
#include "receive.h"
#include "transport/serve.h"

static unsigned int run_commands(struct hca *hca, unsigned int budget)
{
	unsigned int done = 0;

	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS && done < budget; gvmi++)
		if (hca->fn[gvmi])
			done += hca_cmdq_run(hca->fn[gvmi], budget - done);
	return done;
}

static unsigned int run_qps(struct hca *hca, unsigned int budget)
{
	return hca_sched_run(hca, budget);
}

static unsigned int run_ethernet(struct hca *hca, unsigned int budget)
{
	return hca_eth_run(hca_pf(hca), budget);
}

static const struct {
	unsigned int (*run)(struct hca *hca, unsigned int budget);
	unsigned int share;		/* packets a round */
} workers[] = {
	{ run_commands, 2 },
	{ hca_wire_run, 32 },
	{ run_qps, 64 },
	{ run_ethernet, 16 },
};
#define NUM_WORKERS	(sizeof(workers) / sizeof(workers[0]))

static unsigned int run_round(struct hca *hca, unsigned int budget)
{
	unsigned int spent = 0, share, did, i;

	for (i = 0; i < NUM_WORKERS && spent < budget; i++) {
		unsigned int w = (hca->turn + i) % NUM_WORKERS;

		share = workers[w].share;
		if (share > budget - spent)
			share = budget - spent;
		did = workers[w].run(hca, share);
		spent += did < share ? did : share;
		if (hca_is_dead(hca_pf(hca)))
			break;
	}
	hca->turn = (hca->turn + 1) % NUM_WORKERS;
	return spent;
}

static bool work_left(const struct hca *hca)
{
	if (hca_is_dead(hca_pf(hca)))
		return false;
	if (hca_cmdq_pending(hca_pf(hca)) || hca_wire_pending(hca) ||
	    hca_eqs_pending(hca_pf(hca)))
		return true;
	return !hca->wire.tx_blocked &&
	       (hca_eth_pending(hca_pf(hca)) || hca_sched_pending(hca));
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_deadline(const struct hca *hca)
{
	uint64_t due = QHCA_NEVER, held;

	if (hca_is_dead(hca_pf(hca)))
		return QHCA_NEVER;
	due = earliest(due, hca_sched_deadline(hca));
	if (hca_stalled(hca) && (hca->sched.first.qpn || hca_wire_looped(hca)))
		due = earliest(due, hca->cost.until);
	due = earliest(due, hca_cqs_deadline(hca_pf(hca)));
	due = earliest(due, hca_eqs_deadline(hca_pf(hca)));
	held = hca_inject_deadline(&hca->inject);
	/* a frame that is due waits for the link, not for a timer */
	if (!(hca->wire.tx_blocked && held <= hca->now))
		due = earliest(due, held);
	return due;
}

struct qhca_run_result qhca_run(struct qhca_hca *dev, uint64_t now,
				unsigned int budget)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = hca_pf(hca);
	struct qhca_run_result result = { .more = true, .deadline = now };
	unsigned int spent = 0, did;

	if (!hca_enter(hca, now))
		return result;
	while (!hca_is_dead(fn)) {
		hca_cqs_run(fn);
		hca_eqs_run(fn);
		if (spent >= budget)
			break;
		did = run_round(hca, budget - spent);
		if (!did)
			break;
		spent += did;
	}
	hca_leave(hca);
	result.more = work_left(hca);
	result.deadline = next_deadline(hca);
	return result;
}
