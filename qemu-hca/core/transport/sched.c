/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The run queue and the timers of QPs.
 *
 * Both are threaded through the table of slots by QPN, so that queueing a QP
 * and starting its timer need neither memory nor a context, which may be
 * evicted.
 */
#include "transport/transport.h"

#include <stdlib.h>

bool hca_sched_init(struct hca_fn *fn, uint32_t num_slots)
{
	struct hca_sched *s = &fn->sched;

	hca_sched_fini(fn);
	s->heap = calloc(num_slots + 1, sizeof(*s->heap));
	s->heap_cap = num_slots;
	return s->heap;
}

void hca_sched_fini(struct hca_fn *fn)
{
	free(fn->sched.heap);
	fn->sched = (struct hca_sched){ 0 };
}

/* ---- list of QPs with work: FIFO, through hca_qpslot.next */

static void push(struct hca_fn *fn, uint32_t qpn)
{
	struct hca_sched *s = &fn->sched;

	fn->qps.slot[qpn].next = 0;
	if (s->last)
		fn->qps.slot[s->last].next = qpn;
	else
		s->first = qpn;
	s->last = qpn;
	s->queued++;
}

uint32_t hca_sched_pop(struct hca_fn *fn)
{
	struct hca_sched *s = &fn->sched;
	uint32_t qpn = s->first;

	s->first = fn->qps.slot[qpn].next;
	if (!s->first)
		s->last = 0;
	s->queued--;
	return qpn;
}

void hca_sched_work(struct hca_fn *fn, uint32_t qpn, uint8_t work)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];

	if (!(slot->work & HCA_WORK_QUEUED))
		push(fn, qpn);
	slot->work |= work | HCA_WORK_QUEUED;
}

/* ---- timers: a binary heap of QPNs by deadline, 1-based */

uint64_t hca_sched_due(const struct hca_fn *fn, uint32_t pos)
{
	return fn->qps.slot[fn->sched.heap[pos]].deadline;
}

static void place(struct hca_fn *fn, uint32_t pos, uint32_t qpn)
{
	fn->sched.heap[pos] = qpn;
	fn->qps.slot[qpn].heap_pos = pos;
}

static void sift_up(struct hca_fn *fn, uint32_t pos)
{
	uint32_t qpn = fn->sched.heap[pos];
	uint64_t deadline = fn->qps.slot[qpn].deadline;

	for (; pos > 1 && hca_sched_due(fn, pos / 2) > deadline; pos /= 2)
		place(fn, pos, fn->sched.heap[pos / 2]);
	place(fn, pos, qpn);
}

static void sift_down(struct hca_fn *fn, uint32_t pos)
{
	struct hca_sched *s = &fn->sched;
	uint32_t qpn = s->heap[pos];
	uint64_t deadline = fn->qps.slot[qpn].deadline;

	for (;;) {
		uint32_t child = 2 * pos;

		if (child > s->heap_len)
			break;
		if (child < s->heap_len &&
		    hca_sched_due(fn, child + 1) < hca_sched_due(fn, child))
			child++;
		if (hca_sched_due(fn, child) >= deadline)
			break;
		place(fn, pos, s->heap[child]);
		pos = child;
	}
	place(fn, pos, qpn);
}

void hca_sched_timer(struct hca_fn *fn, uint32_t qpn, uint64_t deadline)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];
	struct hca_sched *s = &fn->sched;
	uint64_t old = slot->deadline;

	slot->deadline = deadline;
	if (!slot->heap_pos) {
		place(fn, ++s->heap_len, qpn);
		sift_up(fn, s->heap_len);
	} else if (deadline < old) {
		sift_up(fn, slot->heap_pos);
	} else {
		sift_down(fn, slot->heap_pos);
	}
}

void hca_sched_timer_stop(struct hca_fn *fn, uint32_t qpn)
{
	struct hca_qpslot *slot = &fn->qps.slot[qpn];
	struct hca_sched *s = &fn->sched;
	uint32_t pos = slot->heap_pos, last;

	if (!pos)
		return;
	slot->heap_pos = 0;
	last = s->heap[s->heap_len--];
	if (last == qpn)
		return;
	place(fn, pos, last);
	sift_up(fn, pos);
	sift_down(fn, fn->qps.slot[last].heap_pos);
}

void hca_sched_expire(struct hca_fn *fn, unsigned int budget)
{
	struct hca_sched *s = &fn->sched;

	for (; budget && s->heap_len && hca_sched_due(fn, 1) <= fn->hca->now;
	     budget--) {
		uint32_t qpn = s->heap[1];

		hca_sched_timer_stop(fn, qpn);
		hca_sched_work(fn, qpn, HCA_WORK_TIMER);
	}
}

void hca_sched_forget(struct hca_fn *fn, uint32_t qpn)
{
	hca_sched_timer_stop(fn, qpn);
	fn->qps.slot[qpn].work &= HCA_WORK_QUEUED;
}
