// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues, and events that wait for room.
 *
 * Software cannot size an EQ for all events that may come at once, and an
 * event that is lost leaves somebody waiting for ever.  So an event that finds
 * its EQ full is held in a node of the object that raised it.  There is one
 * node for each object, and events of the same kind coalesce, so that holding
 * never needs memory and never fails.  While an EQ holds something, new events
 * queue up behind it, so that the order stays.
 */
#include <stdlib.h>

#include "hca.h"
#include "queue/held.h"

/* ------------------------------------------------------------------------
 * Sources and kinds of events
 */

/* The types of event that objects of each source raise. */
static const struct {
	uint8_t first, last;		/* enum qhca_event */
} event_types[HCA_NUM_EVENT_SOURCES] = {
	[HCA_SOURCE_QP] = { QHCA_EVENT_QP_FATAL, QHCA_EVENT_PATH_MIG_ERROR },
	[HCA_SOURCE_SRQ] = { QHCA_EVENT_SRQ_ERROR, QHCA_EVENT_SRQ_LIMIT },
	[HCA_SOURCE_CQ] = { QHCA_EVENT_CQ_ERROR, QHCA_EVENT_CQ_ERROR },
	[HCA_SOURCE_COMPLETION] = { QHCA_EVENT_COMPLETION,
				    QHCA_EVENT_COMPLETION },
	[HCA_SOURCE_PORT] = { QHCA_EVENT_PORT_CHANGE, QHCA_EVENT_PORT_CHANGE },
};

_Static_assert(QHCA_EVENT_PATH_MIG_ERROR - QHCA_EVENT_QP_FATAL < HCA_KIND_FAULT,
	       "a QP's kinds of event");

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

/* The reverse: type and number of @kind at @node. */
static uint8_t origin_type(const struct hca_eqs *eqs, uint32_t node,
			   uint8_t kind, uint32_t *number)
{
	unsigned int i = HCA_NUM_EVENT_SOURCES - 1;

	while (node < eqs->base[i])
		i--;
	*number = node - eqs->base[i];
	return (uint8_t)(event_types[i].first + kind);
}

/* How many objects of @source there can be. */
static uint32_t num_objects(const struct hca_fn *fn,
			    enum hca_event_source source)
{
	switch (source) {
	case HCA_SOURCE_QP:
		return 1u << fn->cfg.log_max_qp;
	case HCA_SOURCE_SRQ:
		return 1u << fn->cfg.log_max_srq;
	case HCA_SOURCE_CQ:
	case HCA_SOURCE_COMPLETION:
		return 1u << fn->cfg.log_max_cq;
	default:
		return 2;		/* ports count from 1 */
	}
}

static uint32_t num_nodes(const struct hca_eqs *eqs)
{
	return eqs->base[HCA_NUM_EVENT_SOURCES];
}

bool hca_eqs_create(struct hca_fn *fn, hca_fault_info_fn fault_info)
{
	struct hca_eqs *eqs = &fn->eqs;

	eqs->fault_info = fault_info;
	for (unsigned int i = 0; i < HCA_NUM_EVENT_SOURCES; i++)
		eqs->base[i + 1] = eqs->base[i] + num_objects(fn, i);
	eqs->eq = calloc((size_t)1 << fn->cfg.log_max_eq, sizeof(*eqs->eq));
	eqs->held = calloc(num_nodes(eqs), sizeof(*eqs->held));
	return eqs->eq && eqs->held;
}

void hca_eqs_destroy(struct hca_fn *fn)
{
	free(fn->eqs.eq);
	free(fn->eqs.held);
	fn->eqs.eq = NULL;
	fn->eqs.held = NULL;
}

void hca_eqs_reset(struct hca_fn *fn)
{
	memset(fn->eqs.eq, 0,
	       sizeof(*fn->eqs.eq) << fn->cfg.log_max_eq);
	if (fn->eqs.num_linked)		/* else all nodes are zero already */
		memset(fn->eqs.held, 0,
		       num_nodes(&fn->eqs) * sizeof(*fn->eqs.held));
	fn->eqs.cmd_held = 0;
	fn->eqs.num_linked = 0;
	fn->eqs.num_waiting = 0;
	fn->eqs.turn = 0;
	fn->eqs.next_poll = QHCA_NEVER;
}

uint32_t hca_num_eqs(const struct hca_fn *fn)
{
	return hca_table_size(fn, QHCA_TABLE_EQ);
}

bool hca_eq_live(const struct hca_fn *fn, uint32_t eqn)
{
	return eqn < hca_num_eqs(fn) && fn->eqs.eq[eqn].live;
}

void hca_eq_ref(struct hca_fn *fn, uint32_t eqn)
{
	fn->eqs.eq[eqn].refs++;
}

void hca_eq_unref(struct hca_fn *fn, uint32_t eqn)
{
	if (hca_eq_live(fn, eqn) && fn->eqs.eq[eqn].refs)
		fn->eqs.eq[eqn].refs--;
}

/* ------------------------------------------------------------------------
 * The ring
 */
void hca_eq_interrupt(struct hca_fn *fn, unsigned int vector)
{
	hca_count(fn, QHCA_CNT_interrupts);
	fn->hca->ops.raise_irq(fn->hca->host, vector);
}

static uint32_t depth_of(const struct hca_eq *eq)
{
	return 1u << eq->log_depth;
}

bool hca_eq_take_ci(struct hca_eq *eq, uint32_t ci)
{
	if (ci == eq->ci || ci - eq->ci > eq->pi - eq->ci)
		return false;
	eq->ci = ci;
	return true;
}

/* -1: the EQ is unreachable and the HCA dead. */
static int refetch(struct hca_fn *fn, struct hca_eq *eq)
{
	uint32_t ci;

	if (hca_qbuf_read32(fn, &eq->buf, eq->rec_offset, &ci)) {
		hca_fatal(fn, QHCA_FATAL_EQ_DMA,
			  (uint32_t)(eq - fn->eqs.eq));
		return -1;
	}
	hca_count(fn, QHCA_CNT_refetches);
	if (!hca_eq_take_ci(eq, ci))
		hca_count(fn, QHCA_CNT_refetches_unchanged);
	return 0;
}

bool hca_eq_has_room(struct hca_fn *fn, struct hca_eq *eq)
{
	if (eq->pi - eq->ci < depth_of(eq))
		return true;
	return !refetch(fn, eq) && eq->pi - eq->ci < depth_of(eq);
}

int hca_eq_put(struct hca_fn *fn, struct hca_eq *eq, struct qhca_eqe *eqe)
{
	uint32_t slot = eq->pi & (depth_of(eq) - 1);

	put_le32(&eqe->phase, eq->pi >> eq->log_depth & 1 ? 0 : QHCA_PHASE);
	if (hca_qbuf_write_release(fn, &eq->buf, slot * HCA_EQE_SIZE, eqe,
				   sizeof(*eqe)))
		return -1;
	eq->pi++;
	return 0;
}

void hca_eq_write(struct hca_fn *fn, struct hca_eq *eq, struct qhca_eqe *eqe)
{
	uint32_t eqn = (uint32_t)(eq - fn->eqs.eq);

	if (hca_eq_put(fn, eq, eqe)) {
		hca_fatal(fn, QHCA_FATAL_EQ_DMA, eqn);
		return;
	}
	hca_count(fn, QHCA_CNT_events);
	hca_trace(fn, QHCA_TRACE_EVENT, eqn, eqe->type,
		  get_le32(&eqe->number), 0);
	if (eq->armed) {
		eq->armed = false;
		hca_eq_interrupt(fn, eq->vector);
	}
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
	if (fn->eqs.num_waiting++ == 0)
		fn->eqs.next_poll = fn->hca->now + HCA_EQ_POLL_NS;
}

void hca_held_recount(struct hca_fn *fn, bool more)
{
	uint32_t eqn, n = 0;

	for (eqn = 0; eqn < hca_num_eqs(fn); eqn++)
		if (fn->eqs.eq[eqn].live && hca_eq_holds(fn, &fn->eqs.eq[eqn]))
			n++;
	fn->eqs.num_waiting = n;
	if (!n)
		fn->eqs.next_poll = QHCA_NEVER;
	else
		fn->eqs.next_poll = fn->hca->now + (more ? 0 : HCA_EQ_POLL_NS);
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
			return;		/* merged */
	h->order |= (uint32_t)o->kind << 4 * h->count++;
	if (!h->linked)
		link_node(fn, eq, o->node);
}

void hca_eqe_fill(struct qhca_eqe *eqe, uint8_t type, uint32_t number,
		  uint32_t detail)
{
	memset(eqe, 0, sizeof(*eqe));
	eqe->type = type;
	put_le32(&eqe->number, number);
	put_le32(&eqe->detail, detail);
}

/* @kind of @node, with @detail; false: nobody waits for that fault any more. */
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
	hca_eqe_fill(eqe, type, number, detail);
	return true;
}

/* Take the oldest held event of @eq, of which there is one; false: as above. */
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

/* The queues take turns at being first, since the budget is that of all. */
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

/* ------------------------------------------------------------------------
 * Raising events
 */
/* Held events that are written before a new one, which else is held behind them. */
#define DRAIN_FIRST	4u

/* Write @eqe, or hold it as @o says (NULL: it is lost). */
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

bool hca_held_has(const struct hca_fn *fn, const struct hca_event_origin *o)
{
	const struct hca_held *h = &fn->eqs.held[o->node];

	for (unsigned int i = 0; i < h->count; i++)
		if ((h->order >> 4 * i & 15) == o->kind)
			return true;
	return false;
}

void hca_event_fault(struct hca_fn *fn, uint32_t qpn, unsigned int dir,
		     const struct qhca_fault_info *info)
{
	const struct hca_event_origin o = {
		.node = qpn, .kind = (uint8_t)(HCA_KIND_FAULT + dir),
	};
	struct qhca_eqe eqe;

	/* Of a fault that is no more; what is held will tell of this one. */
	if (hca_held_has(fn, &o))
		return;
	hca_eqe_fill(&eqe, QHCA_EVENT_PAGE_FAULT, qpn, 0);
	eqe.fault = *info;
	post_eqe(fn, QHCA_EQN_ASYNC, &eqe, &o);
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

/* ------------------------------------------------------------------------
 * Doorbell and commands
 */
void hca_eq_doorbell(struct hca_fn *fn, uint64_t value)
{
	uint32_t eqn = (uint32_t)value & QHCA_DB_NUMBER;
	uint32_t ci = (uint32_t)(value >> 32), budget = HCA_EQ_DRAIN;
	struct hca_eq *eq;

	if (!hca_eq_live(fn, eqn)) {
		hca_count(fn, QHCA_CNT_doorbells_ignored);
		return;
	}
	hca_count(fn, QHCA_CNT_eq_arms);
	eq = &fn->eqs.eq[eqn];
	hca_eq_take_ci(eq, ci);
	if (hca_eq_holds(fn, eq)) {
		/* Other queues may be due at once; that must not be put off. */
		bool due = hca_eqs_pending(fn);

		hca_held_drain(fn, eq, &budget);
		hca_held_recount(fn, due || !budget);
	}
	eq->armed = eq->pi == ci;
	if (!eq->armed && !hca_is_dead(fn))
		hca_eq_interrupt(fn, eq->vector);
}

static void eqc_encode(const struct hca_eq *eq, struct qhca_eqc *image)
{
	memset(image, 0, sizeof(*image));
	hca_qbuf_encode(&eq->buf, &image->sw.buf);
	put_le32(&image->sw.rec_offset, eq->rec_offset);
	image->sw.log_depth = eq->log_depth;
	put_le16(&image->sw.vector, eq->vector);
	put_le32(&image->state, eq->live);
	put_le32(&image->pi, eq->pi);
	put_le32(&image->ci, eq->ci);
	put_le32(&image->armed, eq->armed);
	put_le32(&image->overruns, eq->overruns);
}

/* Contexts of EQs have no cache; the table gets a copy. */
static void eqc_write(struct hca_fn *fn, uint32_t eqn)
{
	struct qhca_eqc image;
	uint64_t addr;

	eqc_encode(&fn->eqs.eq[eqn], &image);
	if (hca_table_entry(fn, QHCA_TABLE_EQ, eqn, &addr) &&
	    hca_dma_write(fn, addr, &image, sizeof(image)))
		hca_fatal(fn, QHCA_FATAL_TABLE_DMA,
			  (uint32_t)QHCA_TABLE_EQ << 24 | eqn);
}

static enum qhca_cmd_status eq_check(const struct hca_fn *fn,
				     struct hca_cmd_ctx *ctx,
				     const struct hca_eq *eq)
{
	if (eq->log_depth > fn->cfg.log_max_eq_depth)
		return hca_cmd_bad(ctx, offsetof(struct qhca_eqc_sw, log_depth));
	if (eq->vector >= fn->cfg.num_vectors)
		return hca_cmd_bad(ctx, offsetof(struct qhca_eqc_sw, vector));
	if (!hca_qbuf_valid(&eq->buf) ||
	    !hca_qbuf_holds(&eq->buf, 0,
			    (uint64_t)HCA_EQE_SIZE << eq->log_depth))
		return hca_cmd_bad(ctx, offsetof(struct qhca_eqc_sw, buf));
	if (eq->rec_offset % sizeof(struct qhca_eq_record) ||
	    !hca_qbuf_holds(&eq->buf, eq->rec_offset,
			    sizeof(struct qhca_eq_record)))
		return hca_cmd_bad(ctx,
				   offsetof(struct qhca_eqc_sw, rec_offset));
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_create_eq(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx)
{
	const struct qhca_eqc_sw *sw = (const void *)ctx->in;
	struct hca_eq eq = {
		.rec_offset = get_le32(&sw->rec_offset),
		.vector = get_le16(&sw->vector), .log_depth = sw->log_depth,
		.held_head = HCA_HELD_NONE, .held_tail = HCA_HELD_NONE,
		.live = true,
	};
	enum qhca_cmd_status status;
	uint64_t addr;

	hca_qbuf_decode(&eq.buf, &sw->buf);
	status = eq_check(fn, ctx, &eq);
	if (status)
		return status;
	if (!hca_table_entry(fn, QHCA_TABLE_EQ, ctx->index, &addr))
		return QHCA_CMD_NOT_MAPPED;
	if (fn->eqs.eq[ctx->index].live)
		return QHCA_CMD_IN_USE;
	fn->eqs.eq[ctx->index] = eq;
	eqc_write(fn, ctx->index);
	return QHCA_CMD_OK;
}

/* Nodes that one call of DESTROY_EQ empties. */
#define DESTROY_SLICE	1024u

enum qhca_cmd_status hca_cmd_destroy_eq(struct hca_fn *fn,
					struct hca_cmd_ctx *ctx)
{
	struct hca_eq *eq = &fn->eqs.eq[ctx->index];
	unsigned int i;

	if (ctx->step == 0) {
		if (!eq->live)
			return hca_cmd_missing(fn, QHCA_TABLE_EQ, ctx->index);
		if (eq->refs)
			return QHCA_CMD_IN_USE;
		eq->live = false;	/* nothing is held any more */
		ctx->step = 1;
	}
	for (i = 0; i < DESTROY_SLICE && eq->held_head != HCA_HELD_NONE; i++)
		hca_held_unlink(fn, eq, eq->held_head);
	if (eq->held_head != HCA_HELD_NONE)
		return HCA_CMD_AGAIN;
	if (ctx->index == QHCA_EQN_ASYNC)
		fn->eqs.cmd_held = 0;
	hca_held_recount(fn, false);
	eqc_write(fn, ctx->index);
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_query_eq(struct hca_fn *fn,
				      struct hca_cmd_ctx *ctx)
{
	struct qhca_eqc image;

	if (!fn->eqs.eq[ctx->index].live)
		return hca_cmd_missing(fn, QHCA_TABLE_EQ, ctx->index);
	eqc_write(fn, ctx->index);
	eqc_encode(&fn->eqs.eq[ctx->index], &image);
	memcpy(ctx->out, &image, sizeof(image));
	return QHCA_CMD_OK;
}
