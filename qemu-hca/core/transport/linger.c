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

static struct hca_linger_qp *linger_of(struct hca_fn *fn, uint32_t qpn)
{
	return &fn->qps.slot[qpn].linger;
}

static uint32_t microseconds(const struct hca_fn *fn)
{
	return fn->hca->now / 1000;
}

/* ---- the application that posts */

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

/* The application knew all its requests to be complete, so lingering is of no use to it. */
static void vote_against(struct hca_linger_qp *l)
{
	l->read_next = l->votes;
	if (l->votes)
		l->votes--;
	else if (l->patience < HCA_LINGER_PATIENCE)
		l->patience++;
}

/* Many requests are outstanding for the application. */
static void vote_for(struct hca_linger_qp *l)
{
	l->votes = HCA_LINGER_SURE;
	l->patience = 0;
	l->read_next = false;
}

/*
 * Can the CQ's consumer index change what the device does next?  It cannot while
 * several requests are outstanding, because the device lingers then anyway.  Where
 * the device lingers, it reads with the next post after a vote against that, and
 * otherwise only every HCA_LINGER_WINDOW posts.  Where it does not linger, too few
 * posts since the noted CQE cannot show many outstanding requests, and each read
 * that has confirmed the decision defers the next one.
 */
static bool may_change(const struct hca_qp *qp, const struct hca_linger_qp *l)
{
	uint32_t since_read = qp->sq_pi - l->read_at;

	if (!l->has_noted || qp->sq_pi - qp->sq_ci > 1)
		return false;
	if (l->votes)
		return l->read_next || since_read >= HCA_LINGER_WINDOW;
	return qp->sq_pi - l->noted >= HCA_LINGER_WINDOW &&
	       since_read >= HCA_LINGER_WINDOW << l->patience;
}

/* Read how many CQEs software has consumed, and vote. */
static void read_consumer_index(struct hca_fn *fn, const struct hca_qp *qp,
				struct hca_linger_qp *l)
{
	uint32_t ci;

	l->read_at = qp->sq_pi;
	if (!hca_cq_refetch(fn, qp->send_cqn, &ci) ||
	    !is_behind(ci, l->newest_cqe)) {
		/*
		 * Software has consumed all CQEs.  If the device cannot read the
		 * index, it votes in the same way.
		 */
		l->has_noted = false;
		vote_against(l);
	} else if (!is_behind(ci, l->noted_cqe)) {
		/*
		 * Software has consumed the noted CQE, but not the newest one, by
		 * which a later read will show how many requests are outstanding.
		 */
		l->noted = l->newest;
		l->noted_cqe = l->newest_cqe;
		l->read_next = false;
		l->patience = 0;
	} else if (qp->sq_pi - l->noted >= HCA_LINGER_WINDOW) {
		vote_for(l);
	} else {
		l->read_next = false;
	}
}

/*
 * Do messages of the peer report completions?  The device assumes so if the posts
 * keep a rhythm with them.
 */
static bool follows_messages(struct hca_linger_qp *l)
{
	if (!l->messages || l->messages != l->messages_before)
		l->rhythm = 0;
	else
		count(&l->rhythm);
	l->messages_before = l->messages;
	l->messages = 0;
	return l->rhythm >= HCA_LINGER_SURE;
}

void hca_linger_posted(struct hca_fn *fn, const struct hca_qp *qp,
		       uint32_t old)
{
	struct hca_linger_qp *l = linger_of(fn, qp->qpn);

	l->moved = microseconds(fn);
	l->waits = 0;
	if (!hca_qp_is_reliable(qp))
		return;
	if (follows_messages(l)) {
		if (is_behind(l->newest, old))
			l->newest = old;
		l->has_noted = false;
		vote_against(l);
	} else if (qp->sq_pi - l->newest >= HCA_LINGER_WINDOW) {
		/* The device has written no CQE that could report so many. */
		vote_for(l);
	} else if (may_change(qp, l)) {
		read_consumer_index(fn, qp, l);
	}
}

void hca_linger_completed(struct hca_fn *fn, const struct hca_qp *qp,
			  uint32_t wqe)
{
	struct hca_linger_qp *l = linger_of(fn, qp->qpn);

	l->newest = wqe + 1;
	if (!hca_cq_written(fn, qp->send_cqn, &l->newest_cqe))
		return;
	if (l->has_noted)
		return;
	l->has_noted = true;
	l->noted = l->newest;
	l->noted_cqe = l->newest_cqe;
}

void hca_linger_message(struct hca_fn *fn, uint32_t qpn)
{
	count(&linger_of(fn, qpn)->messages);
}

/* ---- the QPs at which the device lingers */

static void stop_at(struct hca *hca, uint32_t i)
{
	struct hca_linger *linger = &hca->linger;
	uint16_t gvmi = linger->qp[i].gvmi;

	linger_of(hca_fn_of(hca, gvmi), linger->qp[i].qpn)->on = false;
	hca_places_give_back(&linger->places, gvmi);
	linger->qp[i] = linger->qp[--linger->num];
}

/* first_due may stay too early: the next hca_linger_run() finds the true one. */
static void stop(struct hca_fn *fn, uint32_t qpn)
{
	const struct hca_linger *linger = &fn->hca->linger;

	for (uint32_t i = 0; linger_of(fn, qpn)->on; i++)
		if (linger->qp[i].qpn == qpn &&
		    linger->qp[i].gvmi == fn->cfg.gvmi)
			stop_at(fn->hca, i);
}

void hca_linger_fini(struct hca_fn *fn)
{
	struct hca_linger *linger = &fn->hca->linger;
	uint32_t i = 0;

	while (i < linger->num)
		if (linger->qp[i].gvmi == fn->cfg.gvmi)
			stop_at(fn->hca, i);
		else
			i++;
	if (!linger->num)
		linger->first_due = QHCA_NEVER;
}

void hca_linger_forget(struct hca_fn *fn, uint32_t qpn)
{
	stop(fn, qpn);
	*linger_of(fn, qpn) = (struct hca_linger_qp){
		/* The first request of a QP does not follow others closely. */
		.moved = microseconds(fn) - HCA_LINGER_END_NS / 1000 - 1,
	};
}

/* Does the device expect more posts soon, with @outstanding requests begun? */
static bool expects_posts(struct hca_fn *fn, const struct hca_qp *qp,
			  uint32_t outstanding)
{
	const struct hca_linger_qp *l = linger_of(fn, qp->qpn);

	if (!hca_qp_is_reliable(qp) ||
	    !moved_within(fn, l, HCA_LINGER_END_NS))
		return false;
	return outstanding > 1 || l->votes;
}

_Static_assert(HCA_LINGER_MAX > QHCA_MAX_VFS, "a place for each function");

static bool has_place(const struct hca_fn *fn)
{
	const struct hca_linger *linger = &fn->hca->linger;

	return hca_places_left(&linger->places, fn, linger->num,
			       HCA_LINGER_MAX);
}

/* Where there is no place, watching the queue would only cost. */
bool hca_linger_likely(struct hca_fn *fn, const struct hca_qp *qp)
{
	return (linger_of(fn, qp->qpn)->on || has_place(fn)) &&
	       expects_posts(fn, qp, qp->sq_pi - qp->sq_ci);
}

/*
 * How long until sq_pi is to be read, with @outstanding requests begun?  Where a look is a
 * turn of the host's main loop, an early one costs more than it gains.
 */
static uint64_t time_to_look(const struct hca *hca, struct hca_linger_qp *l,
			     uint32_t outstanding)
{
	if (outstanding)
		return HCA_LINGER_ACKED_NS;
	if (!hca->cheap_timers ||
	    HCA_LINGER_FIRST_NS << l->waits >= HCA_LINGER_NS)
		return HCA_LINGER_NS;
	return HCA_LINGER_FIRST_NS << l->waits++;
}

bool hca_linger_stay(struct hca_fn *fn, const struct hca_qp *qp)
{
	struct hca_linger_qp *l = linger_of(fn, qp->qpn);
	struct hca_linger *linger = &fn->hca->linger;
	uint32_t outstanding = qp->sq_max - qp->sq_ci;
	uint64_t due;

	stop(fn, qp->qpn);
	if (!has_place(fn) || !expects_posts(fn, qp, outstanding))
		return false;
	hca_places_take(&linger->places, fn->cfg.gvmi);
	due = fn->hca->now + time_to_look(fn->hca, l, outstanding);
	linger->qp[linger->num].due = due;
	linger->qp[linger->num].gvmi = fn->cfg.gvmi;
	linger->qp[linger->num++].qpn = qp->qpn;
	l->on = true;
	if (due < linger->first_due)
		linger->first_due = due;
	return true;
}

void hca_linger_run(struct hca *hca)
{
	struct hca_linger *linger = &hca->linger;
	uint64_t first = QHCA_NEVER;
	uint32_t i = 0;

	if (hca->now < linger->first_due)
		return;
	while (i < linger->num) {
		if (linger->qp[i].due <= hca->now) {
			hca_sched_work(hca_fn_of(hca, linger->qp[i].gvmi),
				       linger->qp[i].qpn, HCA_WORK_SEND);
			stop_at(hca, i);
			continue;
		}
		if (linger->qp[i].due < first)
			first = linger->qp[i].due;
		i++;
	}
	linger->first_due = first;
}
