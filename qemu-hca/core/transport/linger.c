/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "hca.h"

void hca_linger_init(struct hca_fn *fn)
{
	fn->linger = (struct hca_linger){ .first_due = QHCA_NEVER };
}

static struct hca_linger_qp *known_of(struct hca_fn *fn, uint32_t qpn)
{
	return &fn->qps.slot[qpn].linger;
}

static uint32_t microseconds(const struct hca_fn *fn)
{
	return fn->hca->now / 1000;
}

/* ---- who posts */

static bool moved_within(const struct hca_fn *fn,
			 const struct hca_linger_qp *l, uint32_t ns)
{
	return microseconds(fn) - l->moved <= ns / 1000;
}

static void count(uint8_t *n)
{
	if (*n < UINT8_MAX)
		(*n)++;
}

static void saw(struct hca_linger_qp *l, uint32_t upto)
{
	if ((int32_t)(upto - l->seen) > 0)
		l->seen = upto;
}

/* Has software seen more, by its own index of the CQ? */
static void look_at_cq(struct hca_fn *fn, const struct hca_qp *qp,
		       struct hca_linger_qp *l)
{
	uint32_t ci;

	if (!l->telling)
		return;
	if (!hca_cq_taken(fn, qp->send_cqn, &ci)) {
		/* nothing is known: as if it had */
		saw(l, qp->sq_ci);
	} else if ((int32_t)(ci - l->told_cqe) >= 0) {
		saw(l, l->told);
		l->telling = false;
	}
}

/* ... or by messages of the peer's, which come before each post? */
static void look_at_rhythm(struct hca_linger_qp *l, uint32_t old)
{
	if (!l->heard || l->heard != l->heard_before)
		l->answers = 0;
	else
		count(&l->answers);
	if (l->answers >= HCA_LINGER_SURE)
		saw(l, old);
	l->heard_before = l->heard;
	l->heard = 0;
}

void hca_linger_posted(struct hca_fn *fn, const struct hca_qp *qp,
		       uint32_t old)
{
	struct hca_linger_qp *l = known_of(fn, qp->qpn);
	uint32_t unseen;

	look_at_cq(fn, qp, l);
	look_at_rhythm(l, old);
	unseen = qp->sq_pi - l->seen;
	if (old == l->seen)
		l->window -= (l->window + 3) / 4;
	if (unseen > l->window)
		l->window = unseen < UINT8_MAX ? unseen : UINT8_MAX;
	l->moved = microseconds(fn);
}

void hca_linger_told(struct hca_fn *fn, const struct hca_qp *qp,
		     uint32_t wqe)
{
	struct hca_linger_qp *l = known_of(fn, qp->qpn);

	if (l->telling)		/* one at a time: what is seen may lag */
		return;
	l->telling = hca_cq_written(fn, qp->send_cqn, &l->told_cqe);
	l->told = wqe + 1;
}

void hca_linger_heard(struct hca_fn *fn, uint32_t qpn)
{
	count(&known_of(fn, qpn)->heard);
}

/* ---- where the device stays */

static void leave_place(struct hca_fn *fn, uint32_t i)
{
	struct hca_linger *at = &fn->linger;

	known_of(fn, at->qp[i].qpn)->on = false;
	at->qp[i] = at->qp[--at->num];
}

/* first_due may stay too early: the run after it finds the true one. */
static void leave(struct hca_fn *fn, uint32_t qpn)
{
	for (uint32_t i = 0; known_of(fn, qpn)->on; i++)
		if (fn->linger.qp[i].qpn == qpn)
			leave_place(fn, i);
}

void hca_linger_forget(struct hca_fn *fn, uint32_t qpn)
{
	leave(fn, qpn);
	*known_of(fn, qpn) = (struct hca_linger_qp){
		/* its first request is not one of many */
		.moved = microseconds(fn) - HCA_LINGER_END_NS / 1000 - 1,
	};
}

static bool is_worth_it(struct hca_fn *fn, const struct hca_qp *qp)
{
	const struct hca_linger_qp *l = known_of(fn, qp->qpn);
	uint32_t under_way = qp->sq_max - qp->sq_ci;

	if (!hca_qp_is_reliable(qp) ||
	    !moved_within(fn, l, HCA_LINGER_END_NS))
		return false;
	return under_way > 1 || l->window >= HCA_LINGER_WINDOW;
}

bool hca_linger_stay(struct hca_fn *fn, const struct hca_qp *qp)
{
	struct hca_linger_qp *l = known_of(fn, qp->qpn);
	struct hca_linger *at = &fn->linger;
	uint64_t due = fn->hca->now + HCA_LINGER_NS;

	leave(fn, qp->qpn);
	if (at->num == HCA_LINGER_MAX || !is_worth_it(fn, qp))
		return false;
	at->qp[at->num].due = due;
	at->qp[at->num++].qpn = qp->qpn;
	l->on = true;
	if (due < at->first_due)
		at->first_due = due;
	return true;
}

void hca_linger_run(struct hca_fn *fn)
{
	struct hca_linger *at = &fn->linger;
	uint64_t first = QHCA_NEVER;
	uint32_t i = 0;

	if (fn->hca->now < at->first_due)
		return;
	while (i < at->num) {
		if (at->qp[i].due <= fn->hca->now) {
			hca_sched_work(fn, at->qp[i].qpn, HCA_WORK_SEND);
			leave_place(fn, i);
			continue;
		}
		if (at->qp[i].due < first)
			first = at->qp[i].due;
		i++;
	}
	at->first_due = first;
}
