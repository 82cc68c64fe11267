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

#define EQE_SIZE	((uint32_t)sizeof(struct qhca_eqe))

/* ------------------------------------------------------------------------
 * Objects and kinds of events
 *
 * One node for each object that can raise events: QPs, SRQs, CQs for their
 * error, CQs for completions (those may go to another EQ), the port.
 */
struct origin {
	uint32_t node;
	uint8_t kind;			/* below 16 */
};

/* Kinds of a QP from here on are page faults, one for each direction. */
#define KIND_FAULT	8

static bool origin_of(const struct hca_fn *fn, enum qhca_event type,
		      uint32_t number, struct origin *o)
{
	const struct hca_eqs *eqs = &fn->eqs;
	uint32_t base, end, first;

	if (type >= QHCA_EVENT_QP_FATAL && type <= QHCA_EVENT_PATH_MIG_ERROR) {
		base = 0, end = eqs->base_srq, first = QHCA_EVENT_QP_FATAL;
	} else if (type == QHCA_EVENT_SRQ_ERROR ||
		   type == QHCA_EVENT_SRQ_LIMIT) {
		base = eqs->base_srq, end = eqs->base_cq;
		first = QHCA_EVENT_SRQ_ERROR;
	} else if (type == QHCA_EVENT_CQ_ERROR) {
		base = eqs->base_cq, end = eqs->base_comp;
		first = QHCA_EVENT_CQ_ERROR;
	} else if (type == QHCA_EVENT_COMPLETION) {
		base = eqs->base_comp, end = eqs->base_misc;
		first = QHCA_EVENT_COMPLETION;
	} else if (type == QHCA_EVENT_PORT_CHANGE) {
		base = eqs->base_misc, end = eqs->num_nodes;
		first = QHCA_EVENT_PORT_CHANGE;
	} else {
		return false;
	}
	if (number >= end - base)
		return false;
	o->node = base + number;
	o->kind = (uint8_t)(type - first);
	return true;
}

/* The reverse: type and number of @kind at @node. */
static uint8_t origin_type(const struct hca_eqs *eqs, uint32_t node,
			   uint8_t kind, uint32_t *number)
{
	static const uint8_t first[] = {
		QHCA_EVENT_QP_FATAL, QHCA_EVENT_SRQ_ERROR, QHCA_EVENT_CQ_ERROR,
		QHCA_EVENT_COMPLETION, QHCA_EVENT_PORT_CHANGE,
	};
	const uint32_t base[] = {
		0, eqs->base_srq, eqs->base_cq, eqs->base_comp, eqs->base_misc,
	};
	unsigned int i = sizeof(first) - 1;

	while (node < base[i])
		i--;
	*number = node - base[i];
	return (uint8_t)(first[i] + kind);
}

bool hca_eqs_create(struct hca_fn *fn, hca_fault_info_fn fault_info)
{
	struct hca_eqs *eqs = &fn->eqs;

	eqs->fault_info = fault_info;
	eqs->base_srq = 1u << fn->cfg.log_max_qp;
	eqs->base_cq = eqs->base_srq + (1u << fn->cfg.log_max_srq);
	eqs->base_comp = eqs->base_cq + (1u << fn->cfg.log_max_cq);
	eqs->base_misc = eqs->base_comp + (1u << fn->cfg.log_max_cq);
	eqs->num_nodes = eqs->base_misc + 2;	/* ports count from 1 */
	eqs->eq = calloc((size_t)1 << fn->cfg.log_max_eq, sizeof(*eqs->eq));
	eqs->held = calloc(eqs->num_nodes, sizeof(*eqs->held));
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
		       fn->eqs.num_nodes * sizeof(*fn->eqs.held));
	fn->eqs.cmd_held = 0;
	fn->eqs.num_linked = 0;
	fn->eqs.num_waiting = 0;
	fn->eqs.turn = 0;
	fn->eqs.next_poll = QHCA_NEVER;
}

static uint32_t num_eqs(const struct hca_fn *fn)
{
	return hca_table_size(fn, QHCA_TABLE_EQ);
}

bool hca_eq_live(const struct hca_fn *fn, uint32_t eqn)
{
	return eqn < num_eqs(fn) && fn->eqs.eq[eqn].live;
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
static void interrupt(struct hca_fn *fn, unsigned int vector)
{
	hca_count(fn, QHCA_CNT_interrupts);
	fn->hca->ops.raise_irq(fn->hca->host, vector);
}

static uint32_t depth_of(const struct hca_eq *eq)
{
	return 1u << eq->log_depth;
}

/* Take over a consumer index if it is sane: between the old one and pi. */
static bool take_ci(struct hca_eq *eq, uint32_t ci)
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
	if (!take_ci(eq, ci))
		hca_count(fn, QHCA_CNT_refetches_unchanged);
	return 0;
}

/* Is there room for an entry?  Looks at the record before it says no. */
static bool has_room(struct hca_fn *fn, struct hca_eq *eq)
{
	if (eq->pi - eq->ci < depth_of(eq))
		return true;
	return !refetch(fn, eq) && eq->pi - eq->ci < depth_of(eq);
}

/* Write an entry for which there is room; phase is filled in. */
static int put_eqe(struct hca_fn *fn, struct hca_eq *eq,
		   struct qhca_eqe *eqe)
{
	uint32_t slot = eq->pi & (depth_of(eq) - 1);

	put_le32(&eqe->phase, eq->pi >> eq->log_depth & 1 ? 0 : QHCA_PHASE);
	if (hca_qbuf_write_release(fn, &eq->buf, slot * EQE_SIZE, eqe,
				   sizeof(*eqe)))
		return -1;
	eq->pi++;
	return 0;
}

static void write_eqe(struct hca_fn *fn, struct hca_eq *eq,
		      struct qhca_eqe *eqe)
{
	uint32_t eqn = (uint32_t)(eq - fn->eqs.eq);

	if (put_eqe(fn, eq, eqe)) {
		hca_fatal(fn, QHCA_FATAL_EQ_DMA, eqn);
		return;
	}
	hca_count(fn, QHCA_CNT_events);
	hca_trace(fn, QHCA_TRACE_EVENT, eqn, eqe->type,
		  get_le32(&eqe->number), 0);
	if (eq->armed) {
		eq->armed = false;
		interrupt(fn, eq->vector);
	}
}

/* ------------------------------------------------------------------------
 * Held events
 */
static bool waits(const struct hca_fn *fn, const struct hca_eq *eq)
{
	return eq->held_head != HCA_HELD_NONE ||
	       (eq == &fn->eqs.eq[QHCA_EQN_ASYNC] && fn->eqs.cmd_held);
}

static void count_held(struct hca_fn *fn, struct hca_eq *eq)
{
	eq->overruns++;
	hca_count(fn, QHCA_CNT_events_held);
	if (fn->eqs.num_waiting++ == 0)
		fn->eqs.next_poll = fn->hca->now + HCA_EQ_POLL_NS;
}

/*
 * Recount after draining: cheap, there are few queues.  @more: one has room still,
 * and the next call goes on.
 */
static void recount(struct hca_fn *fn, bool more)
{
	uint32_t eqn, n = 0;

	for (eqn = 0; eqn < num_eqs(fn); eqn++)
		if (fn->eqs.eq[eqn].live && waits(fn, &fn->eqs.eq[eqn]))
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

static void unlink_node(struct hca_fn *fn, struct hca_eq *eq, uint32_t node)
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

static void hold(struct hca_fn *fn, struct hca_eq *eq,
		 const struct origin *o, uint32_t detail)
{
	struct hca_held *h = &fn->eqs.held[o->node];
	unsigned int i;

	count_held(fn, eq);
	h->detail = detail;
	for (i = 0; i < h->count; i++)
		if ((h->order >> 4 * i & 15) == o->kind)
			return;		/* merged */
	h->order |= (uint32_t)o->kind << 4 * h->count++;
	if (!h->linked)
		link_node(fn, eq, o->node);
}

static void fill_eqe(struct qhca_eqe *eqe, uint8_t type, uint32_t number,
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

	if (node < fn->eqs.base_srq && kind >= KIND_FAULT) {
		fill_eqe(eqe, QHCA_EVENT_PAGE_FAULT, node, 0);
		return fn->eqs.fault_info(fn, node, kind - KIND_FAULT,
					  &eqe->fault);
	}
	type = origin_type(&fn->eqs, node, kind, &number);
	fill_eqe(eqe, type, number, detail);
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
		unlink_node(fn, eq, node);
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
	fill_eqe(eqe, QHCA_EVENT_CMD, slot, eqs->cmd[slot].detail);
	eqe->status = eqs->cmd[slot].status;
	put_le16(&eqe->token, eqs->cmd[slot].token);
	return true;
}

/*
 * Write what @eq holds, as far as there is room, and at most *@budget events, from
 * which it takes what it looked at.
 */
static void drain(struct hca_fn *fn, struct hca_eq *eq, uint32_t *budget)
{
	bool async = eq == &fn->eqs.eq[QHCA_EQN_ASYNC];
	struct qhca_eqe eqe;

	for (; *budget && waits(fn, eq) && !hca_is_dead(fn) &&
	       has_room(fn, eq); --*budget)
		if ((async && take_held_cmd(fn, &eqe)) ||
		    take_held(fn, eq, &eqe))
			write_eqe(fn, eq, &eqe);
}

/* The queues take turns at being first, since the budget is that of all. */
void hca_eqs_run(struct hca_fn *fn)
{
	struct hca_eqs *eqs = &fn->eqs;
	uint32_t budget = HCA_EQ_DRAIN, n = num_eqs(fn), i;

	if (eqs->num_waiting == 0 || fn->hca->now < eqs->next_poll)
		return;
	for (i = 0; i < n && budget && !hca_is_dead(fn); i++) {
		struct hca_eq *eq = &eqs->eq[(eqs->turn + i) % n];

		if (eq->live)
			drain(fn, eq, &budget);
	}
	if (n)
		eqs->turn = (eqs->turn + 1) % n;
	recount(fn, !budget);
}

bool hca_eqs_pending(const struct hca_fn *fn)
{
	return fn->eqs.num_waiting && fn->eqs.next_poll <= fn->hca->now;
}

uint64_t hca_eqs_deadline(const struct hca_fn *fn)
{
	return fn->eqs.num_waiting ? fn->eqs.next_poll : QHCA_NEVER;
}

/* Drop what an object has waiting. */
static void forget(struct hca_fn *fn, uint32_t node, uint32_t end)
{
	struct hca_held *held = fn->eqs.held;

	if (node < end && held[node].linked)
		unlink_node(fn, &fn->eqs.eq[held[node].eqn], node);
}

void hca_event_forget_qp(struct hca_fn *fn, uint32_t qpn)
{
	forget(fn, qpn, fn->eqs.base_srq);
}

void hca_event_forget_srq(struct hca_fn *fn, uint32_t srqn)
{
	forget(fn, fn->eqs.base_srq + srqn, fn->eqs.base_cq);
}

void hca_event_forget_cq(struct hca_fn *fn, uint32_t cqn)
{
	forget(fn, fn->eqs.base_cq + cqn, fn->eqs.base_comp);
	forget(fn, fn->eqs.base_comp + cqn, fn->eqs.base_misc);
}

/* ------------------------------------------------------------------------
 * Raising events
 */
/* Held events that are written before a new one, which else is held behind them. */
#define DRAIN_FIRST	4u

/* Write @eqe, or hold it as @o says (NULL: it is lost). */
static void post_eqe(struct hca_fn *fn, uint32_t eqn, struct qhca_eqe *eqe,
		     const struct origin *o)
{
	uint32_t budget = DRAIN_FIRST;
	struct hca_eq *eq;

	if (hca_is_dead(fn) || !hca_eq_live(fn, eqn))
		return;
	eq = &fn->eqs.eq[eqn];
	if (waits(fn, eq))
		drain(fn, eq, &budget);
	if (!waits(fn, eq) && has_room(fn, eq))
		write_eqe(fn, eq, eqe);
	else if (o)
		hold(fn, eq, o, get_le32(&eqe->detail));
}

static void post(struct hca_fn *fn, uint32_t eqn, enum qhca_event type,
		 uint32_t number, uint32_t detail)
{
	struct qhca_eqe eqe;
	struct origin o;

	fill_eqe(&eqe, (uint8_t)type, number, detail);
	post_eqe(fn, eqn, &eqe,
		 origin_of(fn, type, number, &o) ? &o : NULL);
}

void hca_event(struct hca_fn *fn, enum qhca_event type, uint32_t number,
	       uint32_t detail)
{
	post(fn, QHCA_EQN_ASYNC, type, number, detail);
}

static bool is_held(const struct hca_fn *fn, const struct origin *o)
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
	const struct origin o = {
		.node = qpn, .kind = (uint8_t)(KIND_FAULT + dir),
	};
	struct qhca_eqe eqe;

	/* Of a fault that is no more; what is held will tell of this one. */
	if (is_held(fn, &o))
		return;
	fill_eqe(&eqe, QHCA_EVENT_PAGE_FAULT, qpn, 0);
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
	if (waits(fn, eq))
		drain(fn, eq, &budget);
	if (!waits(fn, eq) && has_room(fn, eq)) {
		fill_eqe(&eqe, QHCA_EVENT_CMD, slot, detail);
		eqe.status = status;
		put_le16(&eqe.token, token);
		write_eqe(fn, eq, &eqe);
		return;
	}
	fn->eqs.cmd_held |= 1u << slot;
	fn->eqs.cmd[slot].token = token;
	fn->eqs.cmd[slot].status = status;
	fn->eqs.cmd[slot].detail = detail;
	count_held(fn, eq);
}

void hca_event_fatal(struct hca_fn *fn, enum qhca_fatal cause,
		     uint32_t info)
{
	struct hca_eq *eq = &fn->eqs.eq[QHCA_EQN_ASYNC];
	struct qhca_eqe eqe;

	if (!hca_eq_live(fn, QHCA_EQN_ASYNC)) {
		interrupt(fn, 0);
		return;
	}
	if ((cause != QHCA_FATAL_EQ_DMA || info != QHCA_EQN_ASYNC) &&
	    has_room(fn, eq)) {
		fill_eqe(&eqe, QHCA_EVENT_DEVICE_FATAL, cause, info);
		if (!put_eqe(fn, eq, &eqe))
			hca_count(fn, QHCA_CNT_events);
	}
	eq->armed = false;
	interrupt(fn, eq->vector);
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
	take_ci(eq, ci);
	if (waits(fn, eq)) {
		/* Other queues may be due at once; that must not be put off. */
		bool due = hca_eqs_pending(fn);

		drain(fn, eq, &budget);
		recount(fn, due || !budget);
	}
	eq->armed = eq->pi == ci;
	if (!eq->armed && !hca_is_dead(fn))
		interrupt(fn, eq->vector);
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
			    (uint64_t)EQE_SIZE << eq->log_depth))
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
		unlink_node(fn, eq, eq->held_head);
	if (eq->held_head != HCA_HELD_NONE)
		return HCA_CMD_AGAIN;
	if (ctx->index == QHCA_EQN_ASYNC)
		fn->eqs.cmd_held = 0;
	recount(fn, false);
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
