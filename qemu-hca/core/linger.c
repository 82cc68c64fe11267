/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "hca.h"

void qhca_linger_init(struct qhca_hca *hca)
{
	hca->linger = (struct qhca_linger){ .first_due = QHCA_NEVER };
}

static struct qhca_linger_qp *known_of(struct qhca_hca *hca, uint32_t qpn)
{
	return &hca->qps.slot[qpn].linger;
}

static uint32_t microseconds(const struct qhca_hca *hca)
{
	return hca->now / 1000;
}

/* ---- who posts */

static bool moved_within(const struct qhca_hca *hca,
			 const struct qhca_linger_qp *l, uint32_t ns)
{
	return microseconds(hca) - l->moved <= ns / 1000;
}

static void moved(struct qhca_hca *hca, struct qhca_linger_qp *l)
{
	l->moved = microseconds(hca);
	l->heard = false;
}

static uint32_t deep_debt(const struct qhca_linger_qp *l)
{
	return QHCA_RING_DEBT << l->shy / 2;
}

static void pay(struct qhca_linger_qp *l, uint32_t n)
{
	l->debt -= n < l->debt ? n : l->debt;
}

static void in_vain(struct qhca_linger_qp *l)
{
	l->debt = 0;
	if (l->shy < QHCA_RING_SHY_MAX)
		l->shy++;
}

void qhca_linger_rung(struct qhca_hca *hca, uint32_t qpn, uint32_t n)
{
	const uint32_t most = QHCA_RING_DEBT << QHCA_RING_SHY_MAX / 2;
	struct qhca_linger_qp *l = known_of(hca, qpn);

	if (l->heard && !moved_within(hca, l, QHCA_PROMPT_NS))
		l->debt = 0;
	else if (l->debt < most)
		l->debt += QHCA_RING_COST;
	if (l->lone < QHCA_LONE)
		l->lone++;
	pay(l, n - 1);
	moved(hca, l);
}

void qhca_linger_found(struct qhca_hca *hca, uint32_t qpn, uint32_t n)
{
	struct qhca_linger_qp *l = known_of(hca, qpn);

	pay(l, n);
	if (n > 1)
		l->shy = l->lone = 0;
	else if (l->idle)
		in_vain(l);
	l->idle = false;
	moved(hca, l);
}

void qhca_linger_heard(struct qhca_hca *hca, uint32_t qpn)
{
	known_of(hca, qpn)->heard = true;
}

/* ---- where the device stays */

static void leave_place(struct qhca_hca *hca, uint32_t i)
{
	struct qhca_linger *at = &hca->linger;

	known_of(hca, at->qp[i].qpn)->on = false;
	at->qp[i] = at->qp[--at->num];
}

/* first_due may stay too early: the run after it finds the true one. */
static void leave(struct qhca_hca *hca, uint32_t qpn)
{
	for (uint32_t i = 0; known_of(hca, qpn)->on; i++)
		if (hca->linger.qp[i].qpn == qpn)
			leave_place(hca, i);
}

void qhca_linger_forget(struct qhca_hca *hca, uint32_t qpn)
{
	leave(hca, qpn);
	*known_of(hca, qpn) = (struct qhca_linger_qp){
		/* its first request is not one of many */
		.moved = microseconds(hca) - QHCA_LINGER_END_NS / 1000 - 1,
		.heard = true,
		.lone = QHCA_LONE,
	};
}

/* How long to stay at a queue that has run dry, ns; 0: it is not worth it. */
static uint32_t patience(const struct qhca_hca *hca, const struct qhca_qp *qp,
			 bool *idle)
{
	const struct qhca_linger_qp *l = &hca->qps.slot[qp->qpn].linger;
	uint32_t under_way = qp->sq_max - qp->sq_ci;

	*idle = false;
	if (!qhca_qp_is_reliable(qp) ||
	    !moved_within(hca, l, QHCA_LINGER_END_NS))
		return 0;
	if (under_way > 1 ||
	    (under_way && (l->debt || l->lone < QHCA_LONE)))
		return QHCA_LINGER_NS;
	if (under_way || l->debt < deep_debt(l))
		return 0;
	*idle = true;
	return QHCA_LINGER_IDLE_NS;
}

bool qhca_linger_stay(struct qhca_hca *hca, const struct qhca_qp *qp)
{
	struct qhca_linger_qp *l = known_of(hca, qp->qpn);
	struct qhca_linger *at = &hca->linger;
	bool was_idle = l->idle, idle;
	uint32_t ns = patience(hca, qp, &idle);
	uint64_t due = hca->now + ns;

	leave(hca, qp->qpn);
	l->idle = false;
	if (!ns && was_idle)
		in_vain(l);
	if (!ns || at->num == QHCA_LINGER_MAX)
		return false;
	at->qp[at->num].due = due;
	at->qp[at->num++].qpn = qp->qpn;
	l->on = true;
	l->idle = idle;
	if (due < at->first_due)
		at->first_due = due;
	return true;
}

void qhca_linger_run(struct qhca_hca *hca)
{
	struct qhca_linger *at = &hca->linger;
	uint64_t first = QHCA_NEVER;
	uint32_t i = 0;

	if (hca->now < at->first_due)
		return;
	while (i < at->num) {
		if (at->qp[i].due <= hca->now) {
			qhca_sched_work(hca, at->qp[i].qpn, QHCA_WORK_SEND);
			leave_place(hca, i);
			continue;
		}
		if (at->qp[i].due < first)
			first = at->qp[i].due;
		i++;
	}
	at->first_due = first;
}
