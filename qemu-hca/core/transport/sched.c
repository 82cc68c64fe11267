/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "transport/transport.h"

#include <stdlib.h>

bool hca_sched_init(struct qhca_hca *hca, uint32_t num_slots)
{
	struct hca_sched *s = &hca->sched;

	hca_sched_fini(hca);
	s->heap = calloc(num_slots + 1, sizeof(*s->heap));
	s->heap_cap = num_slots;
	return s->heap;
}

void hca_sched_fini(struct qhca_hca *hca)
{
	free(hca->sched.heap);
	hca->sched = (struct hca_sched){ 0 };
}

/* ---- list of QPs with work: FIFO, through hca_qpslot.next */

static void push(struct qhca_hca *hca, uint32_t qpn)
{
	struct hca_sched *s = &hca->sched;

	hca->qps.slot[qpn].next = 0;
	if (s->last)
		hca->qps.slot[s->last].next = qpn;
	else
		s->first = qpn;
	s->last = qpn;
	s->queued++;
}

uint32_t hca_sched_pop(struct qhca_hca *hca)
{
	struct hca_sched *s = &hca->sched;
	uint32_t qpn = s->first;

	s->first = hca->qps.slot[qpn].next;
	if (!s->first)
		s->last = 0;
	s->queued--;
	return qpn;
}

void hca_sched_work(struct qhca_hca *hca, uint32_t qpn, uint8_t work)
{
	struct hca_qpslot *slot = &hca->qps.slot[qpn];

	if (!(slot->work & HCA_WORK_QUEUED))
		push(hca, qpn);
	slot->work |= work | HCA_WORK_QUEUED;
}

/* ---- timers: a binary heap of QPNs by deadline, 1-based */

uint64_t hca_sched_due(const struct qhca_hca *hca, uint32_t pos)
{
	return hca->qps.slot[hca->sched.heap[pos]].deadline;
}

static void place(struct qhca_hca *hca, uint32_t pos, uint32_t qpn)
{
	hca->sched.heap[pos] = qpn;
	hca->qps.slot[qpn].heap_pos = pos;
}

static void sift_up(struct qhca_hca *hca, uint32_t pos)
{
	uint32_t qpn = hca->sched.heap[pos];
	uint64_t deadline = hca->qps.slot[qpn].deadline;

	for (; pos > 1 && hca_sched_due(hca, pos / 2) > deadline; pos /= 2)
		place(hca, pos, hca->sched.heap[pos / 2]);
	place(hca, pos, qpn);
}

static void sift_down(struct qhca_hca *hca, uint32_t pos)
{
	struct hca_sched *s = &hca->sched;
	uint32_t qpn = s->heap[pos];
	uint64_t deadline = hca->qps.slot[qpn].deadline;

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
	place(hca, pos, qpn);
}

void hca_sched_timer(struct qhca_hca *hca, uint32_t qpn, uint64_t deadline)
{
	struct hca_qpslot *slot = &hca->qps.slot[qpn];
	struct hca_sched *s = &hca->sched;
	uint64_t old = slot->deadline;

	slot->deadline = deadline;
	if (!slot->heap_pos) {
		place(hca, ++s->heap_len, qpn);
		sift_up(hca, s->heap_len);
	} else if (deadline < old) {
		sift_up(hca, slot->heap_pos);
	} else {
		sift_down(hca, slot->heap_pos);
	}
}

void hca_sched_timer_stop(struct qhca_hca *hca, uint32_t qpn)
{
	struct hca_qpslot *slot = &hca->qps.slot[qpn];
	struct hca_sched *s = &hca->sched;
	uint32_t pos = slot->heap_pos, last;

	if (!pos)
		return;
	slot->heap_pos = 0;
	last = s->heap[s->heap_len--];
	if (last == qpn)
		return;
	place(hca, pos, last);
	sift_up(hca, pos);
	sift_down(hca, hca->qps.slot[last].heap_pos);
}

void hca_sched_expire(struct qhca_hca *hca, unsigned int budget)
{
	struct hca_sched *s = &hca->sched;

	for (; budget && s->heap_len && hca_sched_due(hca, 1) <= hca->now;
	     budget--) {
		uint32_t qpn = s->heap[1];

		hca_sched_timer_stop(hca, qpn);
		hca_sched_work(hca, qpn, HCA_WORK_TIMER);
	}
}

void hca_sched_forget(struct qhca_hca *hca, uint32_t qpn)
{
	hca_sched_timer_stop(hca, qpn);
	hca->qps.slot[qpn].work &= HCA_WORK_QUEUED;
}
