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

/* ---- list of QPs with work: FIFO, through hca_qpslot.next */

static void push(struct hca *hca, struct hca_qpref ref)
{
	struct hca_sched *s = &hca->sched;
	struct hca_qpslot *slot = qpslot_of(hca, ref), *last;

	slot->next = 0;
	if (s->last.qpn) {
		last = qpslot_of(hca, s->last);
		last->next = ref.qpn;
		last->next_gvmi = ref.gvmi;
	} else {
		s->first = ref;
	}
	s->last = ref;
}

struct hca_qpref hca_sched_pop(struct hca *hca)
{
	struct hca_sched *s = &hca->sched;
	struct hca_qpref ref = s->first;
	const struct hca_qpslot *slot = qpslot_of(hca, ref);

	s->first = (struct hca_qpref){
		.qpn = slot->next, .gvmi = slot->next_gvmi,
	};
	if (!s->first.qpn)
		s->last.qpn = 0;
	return ref;
}

void hca_sched_work(struct hca_fn *fn, uint32_t qpn, uint8_t work)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];

	if (!(slot->work & HCA_WORK_QUEUED))
		push(fn->hca, ref_of(fn, qpn));
	slot->work |= work | HCA_WORK_QUEUED;
}

/* Take the QPs of @fn out of the list; the others keep their order. */
static void drop_queued(struct hca_fn *fn)
{
	struct hca_sched *s = &fn->hca->sched;
	struct hca_sched old = *s;

	s->first.qpn = 0;
	s->last.qpn = 0;
	while (old.first.qpn) {
		struct hca_qpref ref = old.first;
		const struct hca_qpslot *slot = qpslot_of(fn->hca, ref);

		old.first = (struct hca_qpref){
			.qpn = slot->next, .gvmi = slot->next_gvmi,
		};
		if (ref.gvmi != fn->cfg.gvmi)
			push(fn->hca, ref);
	}
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

void hca_sched_timer(struct hca_fn *fn, uint32_t qpn, uint64_t deadline)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];
	struct hca_sched *s = &fn->hca->sched;
	uint64_t old = slot->deadline;

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

/* Take the timers of @fn out of the heap. */
static void drop_timers(struct hca_fn *fn)
{
	struct hca_sched *s = &fn->hca->sched;
	uint32_t kept = 0;

	for (uint32_t pos = 1; pos <= s->heap_len; pos++) {
		if (s->heap[pos].gvmi == fn->cfg.gvmi)
			qpslot_of(fn->hca, s->heap[pos])->heap_pos = 0;
		else
			place(fn->hca, ++kept, s->heap[pos]);
	}
	s->heap_len = kept;
	for (uint32_t pos = kept / 2; pos; pos--)
		sift_down(fn->hca, pos);
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
	return true;
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
		*s = (struct hca_sched){ 0 };
	}
}

void hca_sched_forget(struct hca_fn *fn, uint32_t qpn)
{
	hca_sched_timer_stop(fn, qpn);
	fn->qps.slot[qpn].work &= HCA_WORK_QUEUED;
}
