/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The run queue and the timers of QPs.
 *
 * Both are threaded through the tables of slots, so that queueing a QP and
 * starting its timer need neither memory nor a context, which may be evicted.
 */
#include "transport/transport.h"

#include <stdlib.h>

static struct hca_qpref ref_of(const struct hca_fn *fn, uint32_t qpn)
{
	return (struct hca_qpref){ .qpn = qpn, .gvmi = fn->cfg.gvmi };
}

static struct hca_qpslot *qpslot_of(const struct hca *hca, struct hca_qpref ref)
{
	return &hca_fn_of(hca, ref.gvmi)->qps.slot[ref.qpn];
}

/* ---- the functions with work: a round */

static void append(struct hca *hca, struct hca_fn *fn)
{
	struct hca_sched *s = &hca->sched;

	fn->sched.next = NULL;
	if (s->first)
		s->last->sched.next = fn;
	else
		s->first = fn;
	s->last = fn;
}

static void take_out(struct hca *hca, struct hca_fn *fn)
{
	struct hca_sched *s = &hca->sched;
	struct hca_fn *before = NULL;

	for (struct hca_fn *at = s->first; at != fn; at = at->sched.next)
		before = at;
	if (before)
		before->sched.next = fn->sched.next;
	else
		s->first = fn->sched.next;
	if (s->last == fn)
		s->last = before;
}

static void enter(struct hca_fn *fn)
{
	if (fn->sched.in_round)
		return;
	fn->sched.in_round = true;
	if (fn->sched.credit <= 0)
		fn->sched.credit += HCA_SCHED_QUANTUM;
	append(fn->hca, fn);
}

/* What the function has overdrawn stays; credit that it does not use is lost. */
static void leave(struct hca_fn *fn)
{
	if (!fn->sched.in_round)
		return;
	fn->sched.in_round = false;
	if (fn->sched.credit > 0)
		fn->sched.credit = 0;
	take_out(fn->hca, fn);
}

/* The visit is over: to the end of the round, with credit for the next one. */
static void move_back(struct hca_fn *fn)
{
	fn->sched.credit += HCA_SCHED_QUANTUM;
	take_out(fn->hca, fn);
	append(fn->hca, fn);
}

/* ---- QPs with work: FIFO, through hca_qpslot.next */

void hca_sched_work(struct hca_fn *fn, uint32_t qpn, uint8_t work)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];
	struct hca_fnsched *s = &fn->sched;

	if (!(slot->work & HCA_WORK_QUEUED)) {
		slot->next = 0;
		if (s->first)
			fn->qps.slot[s->last].next = qpn;
		else
			s->first = qpn;
		s->last = qpn;
		enter(fn);
	}
	slot->work |= work | HCA_WORK_QUEUED;
}

void hca_sched_wait(struct hca_fn *fn, uint32_t qpn)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];
	struct hca_fnsched *s = &fn->sched;

	if (slot->work & HCA_WORK_WAITS)
		return;
	slot->work |= HCA_WORK_WAITS;
	s->waiting[(s->wait_first + s->num_waiting++) &
		   (fn->qps.num_slots - 1)] = qpn;
}

static uint32_t pop_waiting(struct hca_fn *fn)
{
	struct hca_fnsched *s = &fn->sched;
	uint32_t qpn = s->waiting[s->wait_first];

	s->wait_first = (s->wait_first + 1) & (fn->qps.num_slots - 1);
	s->num_waiting--;
	fn->qps.slot[qpn].work &= (uint8_t)~HCA_WORK_WAITS;
	return qpn;
}

static uint32_t pop_queued(struct hca_fn *fn)
{
	uint32_t qpn = fn->sched.first;

	fn->sched.first = fn->qps.slot[qpn].next;
	fn->qps.slot[qpn].work &= (uint8_t)~HCA_WORK_QUEUED;
	return qpn;
}

/* May QPs of the ring have turns? */
static bool serves_waiting(const struct hca_fn *fn)
{
	return fn->sched.num_waiting && !hca_rate_is_held(fn);
}

static bool has_work(const struct hca_fn *fn)
{
	return fn->sched.first || serves_waiting(fn);
}

static bool has_turn(const struct hca_fn *fn)
{
	return has_work(fn) && hca_wire_has_room(fn);
}

/* There is no turn to be had for the function. */
static void leave_for_now(struct hca_fn *fn)
{
	if (has_work(fn))
		fn->hca->sched.no_room |= 1ull << fn->cfg.gvmi;
	leave(fn);
}

static void find_room(struct hca *hca)
{
	struct hca_sched *s = &hca->sched;

	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS && s->no_room >> gvmi;
	     gvmi++) {
		struct hca_fn *fn = hca->fn[gvmi];

		if (!(s->no_room >> gvmi & 1) || !hca_wire_has_room(fn))
			continue;
		s->no_room &= ~(1ull << gvmi);
		if (has_work(fn))
			enter(fn);
	}
}

static void released(struct hca_fn *fn)
{
	if (fn->sched.num_waiting)
		enter(fn);
}

void hca_sched_release(struct hca *hca)
{
	if (hca->rates.held)
		hca_rates_release(hca, released);
	if (hca->sched.no_room)
		find_room(hca);
}

/* ---- turns */

bool hca_sched_queued(const struct hca *hca)
{
	const struct hca_wire *w = &hca->wire;

	/* While the loopback queue has frames, their delivery keeps the device awake. */
	return hca->sched.first ||
	       (hca->sched.no_room && w->loop_pi == w->loop_ci);
}

/* The first function in the round that has precedence. */
static struct hca_fn *preferred(const struct hca *hca, unsigned int *owed)
{
	for (struct hca_fn *fn = hca->sched.first; fn; fn = fn->sched.next) {
		*owed = fn->sched.passed || !has_turn(fn) ? 0 :
							    hca_rate_owed(fn);
		if (*owed)
			return fn;
	}
	return NULL;
}

/* The function whose place in the round it is. */
static struct hca_fn *in_order(const struct hca *hca)
{
	const struct hca_sched *s = &hca->sched;

	while (s->first) {
		/* A frame of an Ethernet queue may have used up the last tokens. */
		if (!has_turn(s->first))
			leave_for_now(s->first);
		else if (s->first->sched.credit <= 0)
			move_back(s->first);
		else
			break;
	}
	return s->first;
}

bool hca_sched_next(struct hca *hca, struct hca_turn *turn)
{
	turn->owed = 0;
	turn->quantum = HCA_SCHED_QUANTUM;
	turn->fn = hca->rates.guaranteed ? preferred(hca, &turn->owed) : NULL;
	if (!turn->fn)
		turn->fn = in_order(hca);
	if (!turn->fn)
		return false;
	if (turn->owed && turn->owed < turn->quantum)
		turn->quantum = turn->owed;
	turn->qpn = serves_waiting(turn->fn) ? pop_waiting(turn->fn) :
					       pop_queued(turn->fn);
	return true;
}

void hca_sched_end(const struct hca_turn *turn, unsigned int spent)
{
	struct hca_fnsched *s = &turn->fn->sched;

	if (turn->owed) {
		s->passed = !hca_rate_used(turn->fn);
	} else {
		s->passed = false;
		s->credit -= (int32_t)spent;
	}
	if (!has_turn(turn->fn))
		leave_for_now(turn->fn);
}

/* The function has no QPs with work any more. */
static void drop_queued(struct hca_fn *fn)
{
	struct hca_fnsched *s = &fn->sched;

	leave(fn);
	fn->hca->sched.no_room &= ~(1ull << fn->cfg.gvmi);
	free(s->waiting);
	*s = (struct hca_fnsched){ .first = 0 };
}

/* ---- timers: a binary heap of QPs by deadline, 1-based */

uint64_t hca_sched_due(const struct hca *hca, uint32_t pos)
{
	return qpslot_of(hca, hca->sched.heap[pos])->deadline;
}

static void place(struct hca *hca, uint32_t pos, struct hca_qpref ref)
{
	hca->sched.heap[pos] = ref;
	qpslot_of(hca, ref)->heap_pos = pos;
}

static void sift_up(struct hca *hca, uint32_t pos)
{
	struct hca_qpref ref = hca->sched.heap[pos];
	uint64_t deadline = hca_sched_due(hca, pos);

	for (; pos > 1 && hca_sched_due(hca, pos / 2) > deadline; pos /= 2)
		place(hca, pos, hca->sched.heap[pos / 2]);
	place(hca, pos, ref);
}

static void sift_down(struct hca *hca, uint32_t pos)
{
	struct hca_sched *s = &hca->sched;
	struct hca_qpref ref = s->heap[pos];
	uint64_t deadline = hca_sched_due(hca, pos);

	for (;;) {
		uint32_t child = 2 * pos;

		if (child > s->heap_len)
			break;
		if (child < s->heap_len &&
		    hca_sched_due(hca, child + 1) < hca_sched_due(hca, child))
			child++;
		if (hca_sched_due(hca, child) >= deadline)
			break;
		place(hca, pos, s->heap[child]);
		pos = child;
	}
	place(hca, pos, ref);
}

/* What has expired and had no turn yet was another timer than the one that begins, or ends. */
static void forget_expiry(struct hca_qpslot *slot)
{
	slot->work &= (uint8_t)~HCA_WORK_TIMER;
}

void hca_sched_timer(struct hca_fn *fn, uint32_t qpn, uint64_t deadline)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];
	struct hca_sched *s = &fn->hca->sched;
	uint64_t old = slot->deadline;

	forget_expiry(slot);
	slot->deadline = deadline;
	if (!slot->heap_pos) {
		place(fn->hca, ++s->heap_len, ref_of(fn, qpn));
		sift_up(fn->hca, s->heap_len);
	} else if (deadline < old) {
		sift_up(fn->hca, slot->heap_pos);
	} else {
		sift_down(fn->hca, slot->heap_pos);
	}
}

void hca_sched_timer_stop(struct hca_fn *fn, uint32_t qpn)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];
	struct hca_sched *s = &fn->hca->sched;
	uint32_t pos = slot->heap_pos, end = s->heap_len;
	struct hca_qpref last;

	forget_expiry(slot);
	if (!pos)
		return;
	slot->heap_pos = 0;
	last = s->heap[s->heap_len--];
	if (pos == end)
		return;
	place(fn->hca, pos, last);
	sift_up(fn->hca, pos);
	sift_down(fn->hca, qpslot_of(fn->hca, last)->heap_pos);
}

void hca_sched_expire(struct hca *hca, unsigned int budget)
{
	struct hca_sched *s = &hca->sched;

	for (; budget && s->heap_len && hca_sched_due(hca, 1) <= hca->now;
	     budget--) {
		struct hca_qpref ref = s->heap[1];
		struct hca_fn *fn = hca_fn_of(hca, ref.gvmi);

		hca_sched_timer_stop(fn, ref.qpn);
		hca_sched_work(fn, ref.qpn, HCA_WORK_TIMER);
	}
}

/* Take the timers of @fn out of the heap: what that costs is no affair of others. */
static void drop_timers(struct hca_fn *fn)
{
	for (uint32_t qpn = 0; qpn < fn->qps.num_timers; qpn++)
		hca_sched_timer_stop(fn, qpn);
}

/* ---- functions that come and go */

bool hca_sched_init(struct hca_fn *fn, uint32_t num_slots)
{
	struct hca_sched *s = &fn->hca->sched;
	uint32_t cap = s->heap_cap + num_slots;
	struct hca_qpref *heap = calloc((size_t)cap + 1, sizeof(*heap));

	if (!heap)
		return false;
	if (s->heap_len)
		memcpy(heap, s->heap, (s->heap_len + 1) * sizeof(*heap));
	free(s->heap);
	s->heap = heap;
	s->heap_cap = cap;
	fn->qps.num_timers = num_slots;
	/* All is allowed to the physical function. */
	if (!fn->cfg.gvmi)
		return true;
	fn->sched.waiting = calloc(num_slots, sizeof(*fn->sched.waiting));
	return fn->sched.waiting;
}

void hca_sched_fini(struct hca_fn *fn)
{
	struct hca_sched *s = &fn->hca->sched;

	drop_queued(fn);
	drop_timers(fn);
	s->heap_cap -= fn->qps.num_timers;
	fn->qps.num_timers = 0;
	if (!s->heap_cap) {
		free(s->heap);
		*s = (struct hca_sched){ .heap = NULL };
	}
}

void hca_sched_forget(struct hca_fn *fn, uint32_t qpn)
{
	hca_sched_timer_stop(fn, qpn);
	fn->qps.slot[qpn].work &= HCA_WORK_PLACES;
}
