// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Raising events.  An event that finds its EQ full is held (held.c).
 */
#include "queue/held.h"

/* Held events that a new one writes first; if more are held, it waits behind them. */
#define DRAIN_FIRST	4u

/* Write @eqe; without room, hold it at @o, or drop it if @o is NULL. */
static void post_eqe(struct hca_fn *fn, uint32_t eqn, struct qhca_eqe *eqe,
		     const struct hca_event_origin *o)
{
	uint32_t budget = DRAIN_FIRST;
	struct hca_eq *eq;

	if (hca_is_dead(fn) || !hca_eq_live(fn, eqn))
		return;
	eq = &fn->eqs.eq[eqn];
	if (hca_eq_holds(fn, eq))
		hca_held_drain(fn, eq, &budget);
	if (!hca_eq_holds(fn, eq) && hca_eq_has_room(fn, eq))
		hca_eq_write(fn, eq, eqe);
	else if (o)
		hca_held_add(fn, eq, o, get_le32(&eqe->detail));
}

static void post(struct hca_fn *fn, uint32_t eqn, enum qhca_event type,
		 uint32_t number, uint32_t detail)
{
	struct qhca_eqe eqe;
	struct hca_event_origin o;

	hca_eqe_fill(&eqe, (uint8_t)type, number, detail);
	post_eqe(fn, eqn, &eqe,
		 hca_event_origin_of(fn, type, number, &o) ? &o : NULL);
}

void hca_event(struct hca_fn *fn, enum qhca_event type, uint32_t number,
	       uint32_t detail)
{
	post(fn, QHCA_EQN_ASYNC, type, number, detail);
}

void hca_event_fault(struct hca_fn *fn, uint32_t qpn, unsigned int dir,
		     const struct qhca_fault_info *info)
{
	const struct hca_event_origin o = {
		.node = qpn, .kind = (uint8_t)(HCA_KIND_FAULT + dir),
	};
	struct qhca_eqe eqe;

	/* An event is held for an earlier fault; its entry will describe this one. */
	if (hca_held_has(fn, &o))
		return;
	hca_eqe_fill(&eqe, QHCA_EVENT_PAGE_FAULT, qpn, 0);
	eqe.fault = *info;
	post_eqe(fn, QHCA_EQN_ASYNC, &eqe, &o);
}

/*
 * An event is taken from the function only when there is room for it, since the
 * function describes it as it is then.
 */
void hca_event_stage2(struct hca_fn *fn)
{
	struct hca_fn *pf = hca_pf(fn->hca);
	struct hca_eq *eq = &pf->eqs.eq[QHCA_EQN_ASYNC];
	uint32_t budget = DRAIN_FIRST;
	struct hca_event_origin o;
	struct qhca_eqe eqe;

	if (hca_is_dead(pf) || !hca_eq_live(pf, QHCA_EQN_ASYNC) ||
	    !hca_event_origin_of(pf, QHCA_EVENT_STAGE2_FAULT, fn->cfg.gvmi, &o))
		return;
	if (hca_eq_holds(pf, eq))
		hca_held_drain(pf, eq, &budget);
	while (hca_s2_has_events(fn) && !hca_held_has(pf, &o)) {
		if (hca_eq_holds(pf, eq) || !hca_eq_has_room(pf, eq))
			hca_held_add(pf, eq, &o, 0);
		else if (hca_event_fill_stage2(pf, fn->cfg.gvmi, &eqe))
			hca_eq_write(pf, eq, &eqe);
	}
}

void hca_event_completion(struct hca_fn *fn, uint32_t eqn, uint32_t cqn,
			  uint32_t pi)
{
	post(fn, eqn, QHCA_EVENT_COMPLETION, cqn, pi);
}

void hca_event_cmd(struct hca_fn *fn, uint32_t slot, uint16_t token,
		   uint8_t status, uint32_t detail)
{
	struct hca_eq *eq = &fn->eqs.eq[QHCA_EQN_ASYNC];
	uint32_t budget = DRAIN_FIRST;
	struct qhca_eqe eqe;

	if (hca_is_dead(fn) || !hca_eq_live(fn, QHCA_EQN_ASYNC))
		return;
	if (hca_eq_holds(fn, eq))
		hca_held_drain(fn, eq, &budget);
	if (!hca_eq_holds(fn, eq) && hca_eq_has_room(fn, eq)) {
		hca_eqe_fill(&eqe, QHCA_EVENT_CMD, slot, detail);
		eqe.status = status;
		put_le16(&eqe.token, token);
		hca_eq_write(fn, eq, &eqe);
		return;
	}
	fn->eqs.cmd_held |= 1u << slot;
	fn->eqs.cmd[slot].token = token;
	fn->eqs.cmd[slot].status = status;
	fn->eqs.cmd[slot].detail = detail;
	hca_held_count(fn, eq);
}

void hca_event_fatal(struct hca_fn *fn, enum qhca_fatal cause,
		     uint32_t info)
{
	struct hca_eq *eq = &fn->eqs.eq[QHCA_EQN_ASYNC];
	struct qhca_eqe eqe;

	if (!hca_eq_live(fn, QHCA_EQN_ASYNC)) {
		hca_eq_interrupt(fn, 0);
		return;
	}
	if ((cause != QHCA_FATAL_EQ_DMA || info != QHCA_EQN_ASYNC) &&
	    hca_eq_has_room(fn, eq)) {
		hca_eqe_fill(&eqe, QHCA_EVENT_DEVICE_FATAL, cause, info);
		if (!hca_eq_put(fn, eq, &eqe))
			hca_count(fn, QHCA_CNT_events);
	}
	eq->armed = false;
	hca_eq_interrupt(fn, eq->vector);
}
