/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The progress of a send queue: which WQEs an acknowledgement completes, and which
 * packets the device sends again (IBTA 9.7.3, 9.7.6).
 *
 * Four numbers are the position of the requester: the oldest WQE not completed and
 * its first PSN (sq_ci, s_ci_psn), the WQE at the cursor and its first PSN
 * (sq_cur, s_cur_psn); and three PSNs: oldest not acknowledged, next to send,
 * one past the newest sent (s_una <= s_psn <= s_max).  The byte offset of a
 * packet in its message is (s_psn - s_cur_psn) * MTU.  s_una is always a PSN of WQE
 * sq_ci, so that going back needs no search: the cursor becomes (sq_ci,
 * s_ci_psn, s_una).  The device keeps copies of some WQEs, and reads the
 * others from the ring again.
 *
 * requester.c moves the cursor on.  hca_requester_rewind() takes it back, and
 * hca_requester_retire() completes WQEs, in order, as s_una passes them.
 */
#include "transport/transport.h"

bool hca_requester_may_run(const struct hca_qp *qp)
{
	return (qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD) &&
	       qp->sq_depth && qp->s_state != HCA_REQ_RNR_WAIT;
}

void hca_requester_rewind(struct hca_fn *fn, struct hca_qp *qp)
{
	qp->sq_cur = qp->sq_ci;
	qp->s_cur_psn = qp->s_ci_psn;
	qp->s_psn = qp->s_una;
	qp->s_asked = qp->s_una;
	qp->s_reads = 0;
	qp->s_flags &= ~HCA_SF_EXCUSED;
	hca_qp_dirty(fn, qp);
}

/* ---- page faults */

bool hca_requester_fault_holds(const struct hca_qp *qp, uint32_t psn)
{
	return hca_fault_waits(qp, HCA_FAULT_DIR_REQ) &&
	       !hca_psn_before(psn, qp->fault[HCA_FAULT_DIR_REQ].psn);
}

/*
 * Does a page fault stop the ACK timer?  While a packet waits for a page, the timer
 * runs for earlier packets only if one of them has asked for an ACK.  A message that
 * stops in its middle has not.
 */
static bool fault_stops_timer(const struct hca_qp *qp)
{
	return hca_fault_waits(qp, HCA_FAULT_DIR_REQ) &&
	       (hca_requester_fault_holds(qp, qp->s_una) ||
		!hca_psn_before(qp->s_una, qp->s_asked));
}

/* ---- timer */

/* Local ACK timeout in ns (IBTA 9.7.6.1.3): within [T, 4T], later each time. */
static uint64_t ack_timeout(const struct hca_qp *qp)
{
	unsigned int n = qp->sw.timeout < 8 ? 8 : qp->sw.timeout;
	unsigned int used = qp->sw.retry_cnt - qp->s_retry;

	return (4096ull << n) << (used < 2 ? used : 2);
}

void hca_requester_rearm(struct hca_fn *fn, struct hca_qp *qp)
{
	if (!hca_qp_is_reliable(qp) || qp->s_state == HCA_REQ_RNR_WAIT)
		return;
	if (qp->s_una == qp->s_max || !qp->sw.timeout ||
	    fault_stops_timer(qp)) {
		if (qp->s_state == HCA_REQ_ACK_WAIT)
			hca_sched_timer_stop(fn, qp->qpn);
		hca_qp_enter(fn, qp, QHCA_PART_REQUESTER, HCA_REQ_READY);
		return;
	}
	hca_qp_enter(fn, qp, QHCA_PART_REQUESTER, HCA_REQ_ACK_WAIT);
	hca_sched_timer(fn, qp->qpn, fn->hca->now + ack_timeout(qp));
}

void hca_requester_held(struct hca_fn *fn, struct hca_qp *qp)
{
	if (qp->s_state != HCA_REQ_ACK_WAIT ||
	    hca_psn_before(qp->s_una, qp->s_asked))
		return;
	hca_sched_timer_stop(fn, qp->qpn);
	hca_qp_enter(fn, qp, QHCA_PART_REQUESTER, HCA_REQ_READY);
}

/* ---- completion */

_Static_assert(HCA_SUM_RING >= HCA_SEND_WINDOW && HCA_SUM_RING % 64 == 0,
	       "what an ACK needs to know is fetched again");

void hca_requester_summarise(struct hca_qp *qp, const struct hca_swqe *w)
{
	uint32_t i = w->num % HCA_SUM_RING;

	qp->sum[i] = (struct hca_swqe_sum){
		.num = w->num,
		.length = w->length,
		.wr_id = w->wr_id,
		.packets = w->packets,
		.opcode = w->opcode,
		.flags = w->flags,
		.kind = w->kind,
	};
	qp->sum_valid[i / 64] |= 1ull << i % 64;
}

const struct hca_swqe_sum *hca_requester_summary(struct hca_fn *fn,
						 struct hca_qp *qp,
						 uint32_t num)
{
	uint32_t i = num % HCA_SUM_RING;

	if (!(qp->sum_valid[i / 64] >> i % 64 & 1) || qp->sum[i].num != num) {
		if ((!qp->ack.valid || qp->ack.num != num) &&
		    hca_swqe_fetch(fn, qp, num, &qp->ack))
			return NULL;
		hca_requester_summarise(qp, &qp->ack);
	}
	return &qp->sum[i];
}

void hca_requester_fail(struct hca_fn *fn, struct hca_qp *qp,
			uint8_t status, uint32_t syndrome)
{
	const struct hca_swqe_sum *sum = NULL;
	struct hca_send_wc wc = {
		.wqe = qp->sq_ci, .status = status, .syndrome = syndrome,
	};

	/* There are PSNs without a WQE if software has changed the ring meanwhile. */
	if (qp->sq_ci != qp->sq_pi)
		sum = hca_requester_summary(fn, qp, qp->sq_ci);
	if (!sum) {
		hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
		return;
	}
	wc.wr_id = sum->wr_id;
	wc.opcode = sum->opcode;
	qp->sq_ci++;
	qp->sq_cur = qp->sq_max = qp->sq_ci;
	qp->s_una = qp->s_psn = qp->s_cur_psn = qp->s_ci_psn = qp->s_asked =
		qp->s_max;
	qp->s_reads = 0;
	if (qp->f_req == HCA_REQF_FAILED)
		hca_qp_enter(fn, qp, QHCA_PART_REQUESTER_FAULT, HCA_REQF_NONE);
	hca_qp_dirty(fn, qp);
	hca_complete_send(fn, qp, &wc);
	if (hca_qp_is_reliable(qp)) {
		hca_qp_error(fn, qp);
	} else if (qp->state != QHCA_QPS_ERR) {
		hca_qp_set_state(fn, qp, QHCA_QPS_SQE);
		hca_qp_set_active(fn, qp, false);
		hca_sched_work(fn, qp->qpn, HCA_WORK_FLUSH);
	}
}

/* Complete WQE sq_ci. */
static void complete(struct hca_fn *fn, struct hca_qp *qp,
		     const struct hca_swqe_sum *sum)
{
	struct hca_send_wc wc = {
		.wr_id = sum->wr_id,
		.wqe = sum->num,
		.byte_len = sum->length,
		.opcode = sum->opcode,
	};
	bool signaled = sum->flags & QHCA_WQE_F_SIGNALED ||
			qp->flags & QHCA_QP_SIG_ALL;

	if (sum->kind & HCA_WK_RESPONSE &&
	    (int32_t)(qp->sq_cur - sum->num) > 0 && qp->s_reads)
		qp->s_reads--;
	qp->s_ci_psn = hca_psn_add(qp->s_ci_psn, sum->packets);
	qp->sq_ci++;
	if (signaled)
		hca_complete_send(fn, qp, &wc);
}

/*
 * Is @psn, which is one past a PSN that was sent, before s_una?  One READ may be
 * 2^23 PSNs, so a comparison of the two alone does not decide that.
 */
static bool is_behind(const struct hca_qp *qp, uint32_t psn)
{
	return ((psn - qp->s_una) & HCA_PSN_MASK) >
	       ((qp->s_max - qp->s_una) & HCA_PSN_MASK);
}

/*
 * Move s_una towards @upto, but not past the end of WQE sq_ci, whose summary is @sum.
 * false: s_una is past it already.  The device never moves it there, so software has
 * changed the ring since the packets were sent.
 */
static bool move_una(struct hca_qp *qp, const struct hca_swqe_sum *sum,
		     uint32_t upto)
{
	uint32_t done = (qp->s_una - qp->s_ci_psn) & HCA_PSN_MASK;
	uint32_t acked = (upto - qp->s_una) & HCA_PSN_MASK;

	if (done > sum->packets)
		return false;
	/* Only its response acknowledges a READ, atomic, ATOMIC WRITE or FLUSH. */
	if (sum->kind & HCA_WK_RESPONSE)
		return true;
	if (acked > sum->packets - done)
		acked = sum->packets - done;
	qp->s_una = hca_psn_add(qp->s_una, acked);
	return true;
}

void hca_requester_retire(struct hca_fn *fn, struct hca_qp *qp,
			  uint32_t upto)
{
	uint32_t old_una = qp->s_una;

	hca_qp_dirty(fn, qp);
	while (qp->sq_ci != qp->sq_max && qp->state != QHCA_QPS_ERR) {
		const struct hca_swqe_sum *sum;

		sum = hca_requester_summary(fn, qp, qp->sq_ci);
		if (!sum || !move_una(qp, sum, upto)) {
			hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
			return;
		}
		if (qp->s_una != hca_psn_add(qp->s_ci_psn, sum->packets))
			break;
		complete(fn, qp, sum);
	}
	/* The peer has acknowledged packets that the device was about to repeat. */
	if ((int32_t)(qp->sq_cur - qp->sq_ci) < 0 || is_behind(qp, qp->s_psn))
		hca_requester_rewind(fn, qp);
	if (is_behind(qp, qp->s_asked))
		qp->s_asked = qp->s_una;
	if (qp->s_una != old_una) {
		qp->s_retry = qp->sw.retry_cnt;
		qp->s_rnr = qp->sw.rnr_retry;
		qp->s_flags &= ~HCA_SF_TO_PROGRESS;
	}
}

/* ---- the timer fired */

static bool link_was_blocked(const struct hca_fn *fn,
			     const struct hca_qp *qp)
{
	const struct hca *hca = fn->hca;

	return hca->sched.unblocked &&
	       hca->now - hca->sched.unblocked < ack_timeout(qp);
}

/*
 * Is there a request of several packets among those before @end, all of which may be
 * lost?  What asks for a response is one packet, whatever PSNs it uses, and if that is
 * lost, nothing behind it is acknowledged.
 */
static bool may_have_lost_several(struct hca_fn *fn, struct hca_qp *qp, uint32_t end)
{
	for (uint32_t num = qp->sq_ci; num != end; num++) {
		const struct hca_swqe_sum *sum =
			hca_requester_summary(fn, qp, num);

		if (!sum || sum->kind & HCA_WK_RESPONSE)
			return false;
		if (sum->packets > 1)
			return true;
	}
	return false;
}

/* Doubt that the peer's path passes bundles, if one of a request before @end may be lost. */
static void doubt(struct hca_fn *fn, struct hca_qp *qp, uint32_t end)
{
	struct hca_path path;

	/* What went again did so in packets, so its size is not why it is lost. */
	if (qp->s_flags & HCA_SF_AGAIN || !may_have_lost_several(fn, qp, end))
		return;
	if (hca_path_of_av(fn, &qp->sw.av, qp->qpn, qp->dest_qpn, &path))
		hca_peer_doubt(fn, &path);
}

void hca_requester_doubt_oldest(struct hca_fn *fn, struct hca_qp *qp)
{
	if (qp->sq_ci != qp->sq_max)
		doubt(fn, qp, qp->sq_ci + 1);
}

void hca_requester_timer(struct hca_fn *fn, struct hca_qp *qp)
{
	bool rnr = qp->s_state == HCA_REQ_RNR_WAIT;

	if (!hca_requester_may_run(qp) && !rnr)
		return;
	hca_qp_dirty(fn, qp);
	if (rnr) {
		hca_qp_enter(fn, qp, QHCA_PART_REQUESTER, HCA_REQ_READY);
		hca_requester_rewind(fn, qp);
		hca_requester_rearm(fn, qp);
		return;
	}
	if (qp->s_state != HCA_REQ_ACK_WAIT)
		return;
	hca_qp_enter(fn, qp, QHCA_PART_REQUESTER, HCA_REQ_READY);
	qp->s_flags &= ~HCA_SF_WENT_BACK;
	/*
	 * The peer cannot have answered what the device could not send.  This counts
	 * once for what has been sent: a link that others fill is blocked again and
	 * again for moments, and what is lost meanwhile must be sent again as well.
	 */
	if (link_was_blocked(fn, qp) && !(qp->s_flags & HCA_SF_EXCUSED)) {
		qp->s_flags |= HCA_SF_EXCUSED;
		hca_requester_rearm(fn, qp);
		return;
	}
	hca_qp_count(fn, qp, QHCA_CNT_ack_timeouts);
	hca_trace(fn, QHCA_TRACE_TIMEOUT, qp->qpn, qp->s_una, qp->s_retry, 0);
	doubt(fn, qp, qp->sq_max);
	hca_requester_retry(fn, qp);
}

void hca_requester_retry(struct hca_fn *fn, struct hca_qp *qp)
{
	if (!qp->s_retry) {
		hca_qp_count(fn, qp, QHCA_CNT_retry_exceeded);
		hca_requester_fail(fn, qp, QHCA_WC_RETRY_EXC_ERR, 0);
		return;
	}
	qp->s_retry--;
	qp->s_flags |= HCA_SF_AGAIN;
	hca_requester_rewind(fn, qp);
	hca_requester_rearm(fn, qp);
	hca_sched_work(fn, qp->qpn, HCA_WORK_SEND);
}
