// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Events that wait for room.
 *
 * Software cannot size an EQ for all events that may occur at once, and software
 * may wait for ever for an event that is lost.  The device therefore holds an event
 * that finds its EQ full, in a node of the object that raised it.  There is one node
 * for each object, and events of the same kind coalesce, so that holding an event
 * needs no memory and cannot fail.  While events are held for an EQ, new events
 * wait behind them, so that the order is kept.
 */
#include "queue/held.h"

/* ------------------------------------------------------------------------
 * Sources and kinds of events
 */

/* The types of event that objects of each source raise; there is no path migration. */
static const struct {
	uint8_t first, last;		/* enum qhca_event */
} event_types[HCA_NUM_EVENT_SOURCES] = {
	[HCA_SOURCE_QP] = { QHCA_EVENT_QP_FATAL, QHCA_EVENT_QP_LAST_WQE },
	[HCA_SOURCE_SRQ] = { QHCA_EVENT_SRQ_ERROR, QHCA_EVENT_SRQ_LIMIT },
	[HCA_SOURCE_CQ] = { QHCA_EVENT_CQ_ERROR, QHCA_EVENT_CQ_ERROR },
	[HCA_SOURCE_COMPLETION] = { QHCA_EVENT_COMPLETION,
				    QHCA_EVENT_COMPLETION },
	[HCA_SOURCE_PORT] = { QHCA_EVENT_PORT_CHANGE, QHCA_EVENT_PORT_CHANGE },
	[HCA_SOURCE_STAGE2] = { QHCA_EVENT_STAGE2_FAULT,
				QHCA_EVENT_STAGE2_FAULT },
};

#define QP_KINDS	(QHCA_EVENT_QP_LAST_WQE - QHCA_EVENT_QP_FATAL + 1)

_Static_assert(QP_KINDS <= HCA_KIND_FAULT, "a QP's kinds of event");
_Static_assert(QP_KINDS + HCA_NUM_FAULT_DIRS <= 8, "nibbles of hca_held.order");

bool hca_event_origin_of(const struct hca_fn *fn, enum qhca_event type,
			 uint32_t number, struct hca_event_origin *o)
{
	const uint32_t *base = fn->eqs.base;

	for (unsigned int i = 0; i < HCA_NUM_EVENT_SOURCES; i++) {
		if (type < event_types[i].first || type > event_types[i].last)
			continue;
		if (number >= base[i + 1] - base[i])
			return false;
		o->node = base[i] + number;
		o->kind = (uint8_t)(type - event_types[i].first);
		return true;
	}
	return false;
}

enum hca_event_source hca_held_source(const struct hca_eqs *eqs, uint32_t node)
{
	unsigned int i = HCA_NUM_EVENT_SOURCES - 1;

	while (node < eqs->base[i])
		i--;
	return (enum hca_event_source)i;
}

/* The reverse: type and number of @kind at @node. */
static uint8_t origin_type(const struct hca_eqs *eqs, uint32_t node,
			   uint8_t kind, uint32_t *number)
{
	enum hca_event_source source = hca_held_source(eqs, node);

	*number = node - eqs->base[source];
	return (uint8_t)(event_types[source].first + kind);
}

/* ------------------------------------------------------------------------
 * Held events
 */
bool hca_eq_holds(const struct hca_fn *fn, const struct hca_eq *eq)
{
	return eq->held_head != HCA_HELD_NONE ||
	       (eq == &fn->eqs.eq[QHCA_EQN_ASYNC] && fn->eqs.cmd_held);
}

void hca_held_count(struct hca_fn *fn, struct hca_eq *eq)
{
	eq->overruns++;
	hca_count(fn, QHCA_CNT_events_held);
	hca_fn_wake(fn);
	fn->eqs.poll_ns = HCA_EQ_POLL_NS;
	if (fn->eqs.num_waiting++ == 0 ||
	    fn->eqs.next_poll > fn->hca->now + HCA_EQ_POLL_NS)
		fn->eqs.next_poll = fn->hca->now + HCA_EQ_POLL_NS;
}

/* Count the EQs for which events are held, and look at them again in @ns. */
static void recount(struct hca_fn *fn, uint32_t ns)
{
	uint32_t eqn, n = 0;

	for (eqn = 0; eqn < hca_num_eqs(fn); eqn++)
		if (fn->eqs.eq[eqn].live && hca_eq_holds(fn, &fn->eqs.eq[eqn]))
			n++;
	fn->eqs.num_waiting = n;
	fn->eqs.next_poll = n ? fn->hca->now + ns : QHCA_NEVER;
}

void hca_held_recount(struct hca_fn *fn, bool more)
{
	fn->eqs.poll_ns = HCA_EQ_POLL_NS;
	recount(fn, more ? 0 : HCA_EQ_POLL_NS);
}

/* Nothing could be written.  The look after the next one is later than that. */
static void wait_longer(struct hca_fn *fn)
{
	struct hca_eqs *eqs = &fn->eqs;

	recount(fn, eqs->poll_ns);
	if (eqs->poll_ns < HCA_EQ_POLL_MAX_NS)
		eqs->poll_ns *= 2;
}

static void link_node(struct hca_fn *fn, struct hca_eq *eq, uint32_t node)
{
	struct hca_held *held = fn->eqs.held;

	held[node].linked = true;
	held[node].eqn = (uint16_t)(eq - fn->eqs.eq);
	held[node].next = HCA_HELD_NONE;
	held[node].prev = eq->held_tail;
	if (eq->held_head == HCA_HELD_NONE)
		eq->held_head = node;
	else
		held[eq->held_tail].next = node;
	eq->held_tail = node;
	fn->eqs.num_linked++;
}

void hca_held_unlink(struct hca_fn *fn, struct hca_eq *eq, uint32_t node)
{
	struct hca_held *held = fn->eqs.held, *h = &held[node];

	if (h->prev == HCA_HELD_NONE)
		eq->held_head = h->next;
	else
		held[h->prev].next = h->next;
	if (h->next == HCA_HELD_NONE)
		eq->held_tail = h->prev;
	else
		held[h->next].prev = h->prev;
	memset(h, 0, sizeof(*h));
	fn->eqs.num_linked--;
}

void hca_held_add(struct hca_fn *fn, struct hca_eq *eq,
		  const struct hca_event_origin *o, uint32_t detail)
{
	struct hca_held *h = &fn->eqs.held[o->node];
	unsigned int i;

	hca_held_count(fn, eq);
	h->detail = detail;
	for (i = 0; i < h->count; i++)
		if ((h->order >> 4 * i & 15) == o->kind)
			return;		/* it coalesces with the held event */
	h->order |= (uint32_t)o->kind << 4 * h->count++;
	if (!h->linked)
		link_node(fn, eq, o->node);
}

uint32_t hca_num_nodes(const struct hca_fn *fn)
{
	return fn->eqs.base[HCA_NUM_EVENT_SOURCES];
}

static bool kind_possible(enum hca_event_source source, uint8_t kind)
{
	if (source == HCA_SOURCE_QP && kind >= HCA_KIND_FAULT)
		return kind < HCA_KIND_FAULT + HCA_NUM_FAULT_DIRS;
	return kind <= event_types[source].last - event_types[source].first;
}

bool hca_held_possible(const struct hca_fn *fn, uint32_t node,
		       const struct hca_held *h)
{
	const struct hca_eqs *eqs = &fn->eqs;
	enum hca_event_source source;
	uint32_t kinds = 0;

	if (node >= hca_num_nodes(fn))
		return false;
	source = hca_held_source(eqs, node);
	for (unsigned int i = 0; i < h->count; i++) {
		uint8_t kind = h->order >> 4 * i & 15;

		if (kinds >> kind & 1 || !kind_possible(source, kind))
			return false;
		kinds |= 1u << kind;
	}
	/* The function is asked when there is room for the event. */
	return source != HCA_SOURCE_STAGE2 ||
	       (node > eqs->base[source] &&
		fn->hca->fn[node - eqs->base[source]]);
}

void hca_held_load(struct hca_fn *fn, struct hca_eq *eq, uint32_t node,
		   const struct hca_held *h)
{
	fn->eqs.held[node].detail = h->detail;
	fn->eqs.held[node].order = h->order;
	fn->eqs.held[node].count = h->count;
	link_node(fn, eq, node);
}

bool hca_event_fill_stage2(struct hca_fn *pf, uint32_t gvmi,
			   struct qhca_eqe *eqe)
{
	struct hca_fn *fn = hca_fn_of(pf->hca, (uint16_t)gvmi);
	enum qhca_stage2_want want;
	struct qhca_fault_info info;

	if (!pf->eqs.stage2_next(fn, &info, &want))
		return false;
	hca_eqe_fill(eqe, QHCA_EVENT_STAGE2_FAULT, gvmi, want);
	eqe->fault = info;
	return true;
}

/* Fill in event @kind of @node.  false: that fault is no longer outstanding. */
static bool fill_held(struct hca_fn *fn, uint32_t node, uint8_t kind,
		      uint32_t detail, struct qhca_eqe *eqe)
{
	uint32_t number;
	uint8_t type;

	if (node < fn->eqs.base[HCA_SOURCE_SRQ] && kind >= HCA_KIND_FAULT) {
		hca_eqe_fill(eqe, QHCA_EVENT_PAGE_FAULT, node, 0);
		return fn->eqs.fault_info(fn, node, kind - HCA_KIND_FAULT,
					  &eqe->fault);
	}
	type = origin_type(&fn->eqs, node, kind, &number);
	if (type == QHCA_EVENT_STAGE2_FAULT) {
		/* The function may have more events: those wait behind others. */
		hca_s2_post_later(hca_fn_of(fn->hca, (uint16_t)number));
		return hca_event_fill_stage2(fn, number, eqe);
	}
	hca_eqe_fill(eqe, type, number, detail);
	return true;
}

/* Take the oldest held event of @eq, which exists.  false: as fill_held(). */
static bool take_held(struct hca_fn *fn, struct hca_eq *eq,
		      struct qhca_eqe *eqe)
{
	uint32_t node = eq->held_head;
	struct hca_held *h = &fn->eqs.held[node];
	uint32_t detail = h->detail;
	uint8_t kind = h->order & 15;

	h->order >>= 4;
	if (--h->count == 0)
		hca_held_unlink(fn, eq, node);
	return fill_held(fn, node, kind, detail, eqe);
}

static bool take_held_cmd(struct hca_fn *fn, struct qhca_eqe *eqe)
{
	struct hca_eqs *eqs = &fn->eqs;
	uint32_t slot;

	for (slot = 0; slot < HCA_NUM_CMD_SLOTS; slot++)
		if (eqs->cmd_held >> slot & 1)
			break;
	if (slot == HCA_NUM_CMD_SLOTS)
		return false;
	eqs->cmd_held &= ~(1u << slot);
	hca_eqe_fill(eqe, QHCA_EVENT_CMD, slot, eqs->cmd[slot].detail);
	eqe->status = eqs->cmd[slot].status;
	put_le16(&eqe->token, eqs->cmd[slot].token);
	return true;
}

void hca_held_drain(struct hca_fn *fn, struct hca_eq *eq, uint32_t *budget)
{
	bool async = eq == &fn->eqs.eq[QHCA_EQN_ASYNC];
	struct qhca_eqe eqe;

	for (; *budget && hca_eq_holds(fn, eq) && !hca_is_dead(fn) &&
	       hca_eq_has_room(fn, eq); --*budget)
		if ((async && take_held_cmd(fn, &eqe)) ||
		    take_held(fn, eq, &eqe))
			hca_eq_write(fn, eq, &eqe);
}

/* The EQs share the budget, so a different one begins each time. */
void hca_eqs_run(struct hca_fn *fn)
{
	struct hca_eqs *eqs = &fn->eqs;
	uint32_t budget = HCA_EQ_DRAIN, n = hca_num_eqs(fn), i;

	if (eqs->num_waiting == 0 || fn->hca->now < eqs->next_poll)
		return;
	for (i = 0; i < n && budget && !hca_is_dead(fn); i++) {
		struct hca_eq *eq = &eqs->eq[(eqs->turn + i) % n];

		if (eq->live)
			hca_held_drain(fn, eq, &budget);
	}
	if (n)
		eqs->turn = (eqs->turn + 1) % n;
	if (budget == HCA_EQ_DRAIN)
		wait_longer(fn);
	else
		hca_held_recount(fn, !budget);
}

bool hca_eqs_pending(const struct hca_fn *fn)
{
	return fn->eqs.num_waiting && fn->eqs.next_poll <= fn->hca->now;
}

uint64_t hca_eqs_deadline(const struct hca_fn *fn)
{
	return fn->eqs.num_waiting ? fn->eqs.next_poll : QHCA_NEVER;
}

/* Drop the events that object @number of @source has waiting. */
static void forget(struct hca_fn *fn, enum hca_event_source source,
		   uint32_t number)
{
	uint32_t node = fn->eqs.base[source] + number;
	struct hca_held *held = fn->eqs.held;

	if (node < fn->eqs.base[source + 1] && held[node].linked)
		hca_held_unlink(fn, &fn->eqs.eq[held[node].eqn], node);
}

void hca_event_forget_qp(struct hca_fn *fn, uint32_t qpn)
{
	forget(fn, HCA_SOURCE_QP, qpn);
}

void hca_event_forget_srq(struct hca_fn *fn, uint32_t srqn)
{
	forget(fn, HCA_SOURCE_SRQ, srqn);
}

void hca_event_forget_cq(struct hca_fn *fn, uint32_t cqn)
{
	forget(fn, HCA_SOURCE_CQ, cqn);
	forget(fn, HCA_SOURCE_COMPLETION, cqn);
}

bool hca_held_has(const struct hca_fn *fn, const struct hca_event_origin *o)
{
	const struct hca_held *h = &fn->eqs.held[o->node];

	for (unsigned int i = 0; i < h->count; i++)
		if ((h->order >> 4 * i & 15) == o->kind)
			return true;
	return false;
}
