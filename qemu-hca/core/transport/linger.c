/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The device decides where to keep watching an empty send queue, and watches
 * it.
 *
 * linger.h explains the decision.  Everything here works on the slot of a QP
 * and on counters in it: the decision is due with each post and each message,
 * and must not cost a read of memory unless its outcome can change.
 */
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

/* Free-running indices. */
static bool is_behind(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

/* Everything that was posted before was complete for the poster: one vote. */
static void found_one_at_a_time(struct hca_linger_qp *l)
{
	l->doubt = l->votes;
	if (l->votes)
		l->votes--;
	else if (l->patience < HCA_LINGER_PATIENCE)
		l->patience++;
}

static void found_many(struct hca_linger_qp *l)
{
	l->votes = HCA_LINGER_SURE;
	l->patience = 0;
	l->doubt = false;
}

/*
 * Can the CQ's consumer index change what the device does next?  Not while it
 * stays anyway because several requests are under way; not while turning away
 * is certain because too few were posted since the completion in question; and
 * after an answer that confirmed the decision not before some more posts.
 */
static bool may_change(const struct hca_qp *qp, const struct hca_linger_qp *l)
{
	uint32_t since_look = qp->sq_pi - l->looked;

	if (!l->telling || qp->sq_pi - qp->sq_ci > 1)
		return false;
	if (l->votes)
		return l->doubt || since_look >= HCA_LINGER_WINDOW;
	return qp->sq_pi - l->told >= HCA_LINGER_WINDOW &&
	       since_look >= HCA_LINGER_WINDOW << l->patience;
}

/* Which of the completions that are noted has software consumed? */
static void look_at_cq(struct hca_fn *fn, const struct hca_qp *qp,
		       struct hca_linger_qp *l)
{
	uint32_t ci;

	l->looked = qp->sq_pi;
	if (!hca_cq_refetch(fn, qp->send_cqn, &ci) ||
	    !is_behind(ci, l->last_cqe)) {
		/* all of them; where nothing is known the device turns away */
		l->telling = false;
		found_one_at_a_time(l);
	} else if (!is_behind(ci, l->told_cqe)) {
		/* some: the others are yet to tell how many it has */
		l->told = l->last;
		l->told_cqe = l->last_cqe;
		l->doubt = false;
		l->patience = 0;
	} else if (qp->sq_pi - l->told >= HCA_LINGER_WINDOW) {
		found_many(l);
	} else {
		l->doubt = false;
	}
}

/* Do messages of the peer tell of completions, since they come before each post? */
static bool is_answered(struct hca_linger_qp *l)
{
	if (!l->heard || l->heard != l->heard_before)
		l->answers = 0;
	else
		count(&l->answers);
	l->heard_before = l->heard;
	l->heard = 0;
	return l->answers >= HCA_LINGER_SURE;
}

void hca_linger_posted(struct hca_fn *fn, const struct hca_qp *qp,
		       uint32_t old)
{
	struct hca_linger_qp *l = known_of(fn, qp->qpn);

	l->moved = microseconds(fn);
	if (!hca_qp_is_reliable(qp))
		return;
	if (is_answered(l)) {
		if (is_behind(l->last, old))
			l->last = old;
		l->telling = false;
		found_one_at_a_time(l);
	} else if (qp->sq_pi - l->last >= HCA_LINGER_WINDOW) {
		/* no completion has been written that could tell of so many */
		found_many(l);
	} else if (may_change(qp, l)) {
		look_at_cq(fn, qp, l);
	}
}

void hca_linger_told(struct hca_fn *fn, const struct hca_qp *qp,
		     uint32_t wqe)
{
	struct hca_linger_qp *l = known_of(fn, qp->qpn);

	l->last = wqe + 1;
	if (!hca_cq_written(fn, qp->send_cqn, &l->last_cqe))
		return;
	if (l->telling)
		return;
	l->telling = true;
	l->told = l->last;
	l->told_cqe = l->last_cqe;
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

static bool is_worth_it(struct hca_fn *fn, const struct hca_qp *qp,
			uint32_t under_way)
{
	const struct hca_linger_qp *l = known_of(fn, qp->qpn);

	if (!hca_qp_is_reliable(qp) ||
	    !moved_within(fn, l, HCA_LINGER_END_NS))
		return false;
	return under_way > 1 || l->votes;
}

bool hca_linger_likely(struct hca_fn *fn, const struct hca_qp *qp)
{
	return is_worth_it(fn, qp, qp->sq_pi - qp->sq_ci);
}

bool hca_linger_stay(struct hca_fn *fn, const struct hca_qp *qp)
{
	struct hca_linger_qp *l = known_of(fn, qp->qpn);
	struct hca_linger *at = &fn->linger;
	uint64_t due = fn->hca->now + HCA_LINGER_NS;

	leave(fn, qp->qpn);
	if (at->num == HCA_LINGER_MAX ||
	    !is_worth_it(fn, qp, qp->sq_max - qp->sq_ci))
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
