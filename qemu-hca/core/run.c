// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Who works when.
 *
 * Each kind of work gets a share of a round, and rounds follow each other
 * until the budget is spent or nobody has work.  Who is first changes with
 * every round, so that a budget of one does not starve anyone.  Within a share, PCI
 * functions take turns; those that have nothing to do cost nothing.
 */
#include "hca.h"
#include "life.h"
#include "receive.h"
#include "transport/serve.h"

/* Nobody does work of the function: see hca_restore() for those that have moved. */
static bool rests(const struct hca_fn *fn)
{
	return hca_is_dead(fn) || fn->restore;
}

static bool has_commands(const struct hca_fn *fn)
{
	return !rests(fn) && hca_cmdq_pending(fn);
}

static bool has_frames(const struct hca_fn *fn)
{
	return !rests(fn) && hca_eth_pending(fn) && hca_wire_takes_eth(fn);
}

/* Does qhca_run() have to look at the function before software calls again? */
static bool is_active(const struct hca_fn *fn)
{
	return !rests(fn) &&
	       (fn->cmdq.count || fn->cmdq.running || fn->eqs.num_waiting ||
		fn->cqs.num_timers || hca_eth_pending(fn));
}

/* The active function behind @fn in order of GVMI, and the first behind NULL. */
static struct hca_fn *next_active(const struct hca *hca,
				  const struct hca_fn *fn)
{
	unsigned int gvmi = fn ? fn->cfg.gvmi + 1u : 0;

	for (; gvmi < HCA_MAX_FNS && hca->active >> gvmi; gvmi++)
		if (hca->active >> gvmi & 1)
			return hca->fn[gvmi];
	return NULL;
}

static unsigned int count_with(const struct hca *hca,
			       bool (*has)(const struct hca_fn *fn))
{
	unsigned int num = 0;

	for (struct hca_fn *fn = next_active(hca, NULL); fn;
	     fn = next_active(hca, fn))
		num += has(fn);
	return num;
}

/*
 * Give the functions that have this work equal shares of @budget, and what one leaves
 * to those behind it.  If there are more functions than work, the next call begins
 * where this one has ended.
 */
static unsigned int share_out(struct hca *hca, unsigned int budget,
			      uint16_t *turn,
			      bool (*has)(const struct hca_fn *fn),
			      unsigned int (*run)(struct hca_fn *fn,
						  unsigned int budget))
{
	unsigned int num = count_with(hca, has), done = 0;
	uint16_t gvmi = *turn;

	for (unsigned int i = 0; i < HCA_MAX_FNS && num && done < budget;
	     i++, gvmi = (uint16_t)((gvmi + 1) % HCA_MAX_FNS)) {
		if (!(hca->active >> gvmi & 1) || !has(hca->fn[gvmi]))
			continue;
		done += run(hca->fn[gvmi], (budget - done + num - 1) / num);
		num--;
	}
	*turn = gvmi;
	return done;
}

static unsigned int run_commands(struct hca *hca, unsigned int budget)
{
	return share_out(hca, budget, &hca->cmd_turn, has_commands,
			 hca_cmdq_run);
}

static unsigned int run_qps(struct hca *hca, unsigned int budget)
{
	return hca_sched_run(hca, budget);
}

static unsigned int run_ethernet(struct hca *hca, unsigned int budget)
{
	return share_out(hca, budget, &hca->eth_turn, has_frames, hca_eth_run);
}

static const struct {
	unsigned int (*run)(struct hca *hca, unsigned int budget);
	unsigned int share;		/* packets a round */
} workers[] = {
	{ run_commands, 2 },
	{ hca_wire_run, 32 },
	{ run_qps, 64 },
	{ run_ethernet, 16 },
	{ hca_peers_run, 4 },
};
#define NUM_WORKERS	(sizeof(workers) / sizeof(workers[0]))

static unsigned int run_round(struct hca *hca, unsigned int budget)
{
	unsigned int spent = 0, share, i;

	for (i = 0; i < NUM_WORKERS && spent < budget; i++) {
		unsigned int w = (hca->turn + i) % NUM_WORKERS;

		share = workers[w].share;
		if (share > budget - spent)
			share = budget - spent;
		spent += workers[w].run(hca, share);
	}
	hca->turn = (hca->turn + 1) % NUM_WORKERS;
	return spent;
}

static bool work_left(const struct hca *hca)
{
	if (count_with(hca, has_commands) || hca_wire_pending(hca) ||
	    hca_peers_pending(hca))
		return true;
	for (struct hca_fn *fn = next_active(hca, NULL); fn;
	     fn = next_active(hca, fn))
		if (!rests(fn) && hca_eqs_pending(fn))
			return true;
	return count_with(hca, has_frames) ||
	       (!hca->wire.tx_blocked && hca_sched_pending(hca));
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_deadline(const struct hca *hca)
{
	uint64_t due = hca_sched_deadline(hca), held;

	if (hca_stalled(hca) && (hca_sched_queued(hca) || hca_wire_looped(hca)))
		due = earliest(due, hca->cost.until);
	for (struct hca_fn *fn = next_active(hca, NULL); fn;
	     fn = next_active(hca, fn)) {
		if (rests(fn))
			continue;
		due = earliest(due, hca_cqs_deadline(fn));
		due = earliest(due, hca_eqs_deadline(fn));
	}
	held = hca_inject_deadline(&hca->inject);
	/* A frame that is due waits for the link, not for a timer. */
	if (!(hca->wire.tx_blocked && held <= hca->now))
		due = earliest(due, held);
	return due;
}

/* Moderation timers and held events: cheap, and a delay would harm them. */
static void run_events(struct hca *hca)
{
	for (struct hca_fn *fn = next_active(hca, NULL); fn;
	     fn = next_active(hca, fn)) {
		if (!rests(fn)) {
			hca_cqs_run(fn);
			hca_eqs_run(fn);
		}
		if (!is_active(fn))
			hca->active &= ~(1ull << fn->cfg.gvmi);
	}
}

/* An engine's time that is not in the past, as the host's; @now: the host's. */
static uint64_t host_time(const struct hca *hca, uint64_t now, uint64_t at)
{
	if (at == QHCA_NEVER || !hca->clock_offset)
		return at;
	return at > hca->now ? now + (at - hca->now) : now;
}

void qhca_timers_are_cheap(struct qhca_hca *dev, bool cheap)
{
	dev->hca.cheap_timers = cheap;
}

struct qhca_run_result qhca_run(struct qhca_hca *dev, uint64_t now,
				unsigned int budget)
{
	struct hca *hca = &dev->hca;
	struct qhca_run_result result = { .more = true, .deadline = now };
	unsigned int spent = 0, did;

	if (hca->frozen)
		return (struct qhca_run_result){ .deadline = QHCA_NEVER };
	if (!hca_enter(hca, now))
		return result;
	for (;;) {
		run_events(hca);
		if (spent >= budget)
			break;
		did = run_round(hca, budget - spent);
		if (!did)
			break;
		spent += did;
	}
	hca_leave(hca);
	result.more = work_left(hca);
	result.deadline = host_time(hca, now, next_deadline(hca));
	return result;
}
