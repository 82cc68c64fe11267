/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Acknowledgements and responses that an RC requester receives (IBTA 9.7.5.1,
 * 9.7.5.2; table of effects: Documentation/hardware.rst, Requester).
 */
#include "transport/transport.h"

static void end_rnr_wait(struct hca_fn *fn, struct hca_qp *qp)
{
	hca_qp_enter(fn, qp, QHCA_PART_REQUESTER, HCA_REQ_READY);
	hca_sched_timer_stop(fn, qp->qpn);
	hca_requester_rewind(fn, qp);
}

/*
 * s_una may have moved: adjust the timer and serve the QP if it waited for that.  If it has
 * moved in an RNR wait, the responder has executed what it was not ready for.
 */
static void progressed(struct hca_fn *fn, struct hca_qp *qp)
{
	if (qp->state != QHCA_QPS_RTS && qp->state != QHCA_QPS_SQD)
		return;
	if (qp->s_state == HCA_REQ_RNR_WAIT)
		end_rnr_wait(fn, qp);
	hca_requester_rearm(fn, qp);
	if (qp->sq_cur != qp->sq_pi || qp->s_flags & HCA_SF_ACTIVE ||
	    qp->state == QHCA_QPS_SQD)
		hca_sched_work(fn, qp->qpn, HCA_WORK_SEND);
}

/*
 * The peer lacks a packet from s_una on, so go back.  Do so once until s_una moves
 * or the timer fires, since packets that are still under way may make the peer
 * report the same gap again.
 */
static void go_back(struct hca_fn *fn, struct hca_qp *qp)
{
	if (qp->s_flags & HCA_SF_WENT_BACK)
		return;
	qp->s_flags |= HCA_SF_WENT_BACK;
	hca_requester_retry(fn, qp);
}

/*
 * The peer has executed all PSNs before @upto.  false: the requester cannot go on,
 * because the response of a READ, atomic, ATOMIC WRITE or FLUSH among them is lost,
 * or because the QP has failed.
 */
static bool acknowledge(struct hca_fn *fn, struct hca_qp *qp,
			uint32_t upto)
{
	uint32_t una = qp->s_una;

	hca_requester_retire(fn, qp, upto);
	if (qp->s_una != una)
		progressed(fn, qp);
	if (qp->state != QHCA_QPS_RTS && qp->state != QHCA_QPS_SQD)
		return false;
	if (qp->s_una == upto)
		return true;
	go_back(fn, qp);
	return false;
}

static void rnr_nak(struct hca_fn *fn, struct hca_qp *qp,
		    const struct hca_pkt *pkt)
{
	uint64_t wait = hca_rnr_time(pkt->syndrome & HCA_AETH_VALUE);

	hca_qp_count(fn, qp, QHCA_CNT_rx_rnr);
	if (!acknowledge(fn, qp, pkt->psn) ||
	    qp->s_state == HCA_REQ_RNR_WAIT)
		return;
	/* The responder is alive, so earlier losses no longer count as retries. */
	qp->s_retry = qp->sw.retry_cnt;
	if (qp->sw.rnr_retry != 7) {
		if (!qp->s_rnr) {
			hca_qp_count(fn, qp, QHCA_CNT_rnr_retry_exceeded);
			hca_requester_fail(fn, qp, QHCA_WC_RNR_RETRY_EXC_ERR,
					   pkt->syndrome);
			return;
		}
		qp->s_rnr--;
	}
	hca_qp_enter(fn, qp, QHCA_PART_REQUESTER, HCA_REQ_RNR_WAIT);
	hca_qp_dirty(fn, qp);
	hca_sched_timer(fn, qp->qpn, fn->hca->now + wait);
}

static void nak(struct hca_fn *fn, struct hca_qp *qp,
		const struct hca_pkt *pkt)
{
	static const struct {
		enum qhca_counter counter;
		uint8_t status;
	} fatal[] = {
		[HCA_NAK_INVALID & HCA_AETH_VALUE] =
			{ QHCA_CNT_rx_nak_invalid, QHCA_WC_REM_INV_REQ_ERR },
		[HCA_NAK_ACCESS & HCA_AETH_VALUE] =
			{ QHCA_CNT_rx_nak_access, QHCA_WC_REM_ACCESS_ERR },
		[HCA_NAK_OP & HCA_AETH_VALUE] =
			{ QHCA_CNT_rx_nak_op, QHCA_WC_REM_OP_ERR },
	};
	uint8_t code = pkt->syndrome & HCA_AETH_VALUE;
	uint8_t status = QHCA_WC_BAD_RESP_ERR;

	if (!acknowledge(fn, qp, pkt->psn))
		return;
	if (pkt->syndrome == HCA_NAK_SEQ) {
		hca_qp_count(fn, qp, QHCA_CNT_rx_nak_seq);
		hca_requester_doubt_oldest(fn, qp);
		go_back(fn, qp);
		return;
	}
	if (code < sizeof(fatal) / sizeof(*fatal) && fatal[code].status) {
		hca_qp_count(fn, qp, fatal[code].counter);
		status = fatal[code].status;
	}
	hca_requester_fail(fn, qp, status, pkt->syndrome);
}

static void aeth(struct hca_fn *fn, struct hca_qp *qp,
		 const struct hca_pkt *pkt)
{
	uint8_t syndrome = pkt->syndrome;

	if (syndrome >> 5)
		hca_trace(fn, QHCA_TRACE_RX_NAK, qp->qpn, syndrome, pkt->psn,
			  0);
	switch (syndrome & HCA_AETH_TYPE) {
	case HCA_AETH_ACK:
		hca_qp_count(fn, qp, QHCA_CNT_rx_acks);
		acknowledge(fn, qp, hca_psn_add(pkt->psn, 1));
		break;
	case HCA_AETH_RNR:
		rnr_nak(fn, qp, pkt);
		break;
	case HCA_AETH_NAK:
		nak(fn, qp, pkt);
		break;
	default:
		if (acknowledge(fn, qp, pkt->psn))
			hca_requester_fail(fn, qp, QHCA_WC_BAD_RESP_ERR,
					   syndrome);
		break;
	}
}

/* The WQE that responses belong to: sq_ci, read again if no copy is left. */
static struct hca_swqe *answered(struct hca_fn *fn, struct hca_qp *qp)
{
	struct hca_swqe *w = &qp->ack;

	if ((!w->valid || w->num != qp->sq_ci) &&
	    hca_swqe_fetch(fn, qp, qp->sq_ci, w))
		w->error = QHCA_WC_LOC_QP_OP_ERR;
	/* The device sent no malformed WQE, so software has changed the ring since. */
	if (!w->error)
		return w;
	hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
	return NULL;
}

/* Is @pkt the response to PSN s_una, which is a part of READ @w? */
static bool read_fits(const struct hca_qp *qp, const struct hca_swqe *w,
		      const struct hca_pkt *pkt, uint32_t *offset)
{
	uint32_t index = (qp->s_una - qp->s_ci_psn) & HCA_PSN_MASK;
	bool last = index + 1 == w->packets;

	if (!(w->kind & HCA_WK_READ) || index >= w->packets ||
	    last != !!(pkt->what & HCA_OPF_LAST))
		return false;
	*offset = index * qp->mtu;
	return pkt->payload_len == (last ? w->length - *offset : qp->mtu);
}

/* Is @pkt a response to @w?  *@offset: position of its bytes in a READ. */
static bool answer_fits(const struct hca_qp *qp, const struct hca_swqe *w,
			const struct hca_pkt *pkt, uint32_t *offset)
{
	if (pkt->op == HCA_OP_ATOMIC_ACK)
		return w->kind & HCA_WK_ATOMIC;
	if (w->kind & HCA_WK_PLACE)
		return pkt->op == HCA_OP_READ_RESP_ONLY && !pkt->payload_len;
	return read_fits(qp, w, pkt, offset);
}

/* Copy the bytes of the response, if it has any, to the segments of the WQE. */
static enum hca_mem_status scatter(struct hca_fn *fn,
				   const struct hca_qp *qp,
				   struct hca_swqe *w,
				   const struct hca_pkt *pkt, uint32_t offset)
{
	uint8_t value[8];

	if (w->kind & HCA_WK_PLACE)
		return HCA_MEM_OK;
	if (pkt->op != HCA_OP_ATOMIC_ACK)
		return hca_swqe_scatter(fn, qp, w, offset, pkt->payload,
					pkt->payload_len);
	put_le64(value, pkt->orig);
	return hca_swqe_scatter(fn, qp, w, 0, value, sizeof(value));
}

/*
 * The target of a response is absent: the device drops the response, and requests it
 * again after FAULT_RESUME.  The responder has answered, so the device has all its
 * retries of either kind again.  Otherwise a single response could use them up, one lost frame
 * at a time, while pages come and go.
 */
static void scatter_fault(struct hca_fn *fn, struct hca_qp *qp,
			  const struct hca_swqe *w, uint32_t offset)
{
	qp->s_retry = qp->sw.retry_cnt;
	qp->s_rnr = qp->sw.rnr_retry;
	hca_fault_raise(fn, qp, QHCA_FAULT_SCATTER, offset,
			w->length - offset);
	if (qp->s_state == HCA_REQ_RNR_WAIT)
		end_rnr_wait(fn, qp);
	else
		hca_requester_rewind(fn, qp);
	hca_requester_rearm(fn, qp);
}

/*
 * Does the responder refuse, by @pkt, to answer the PSN that waits?  If it was not ready, it
 * has become so since, as it has answered once.
 */
static bool is_refusal(const struct hca_qp *qp, const struct hca_pkt *pkt)
{
	return pkt->op == HCA_OP_ACK && pkt->psn == qp->s_una &&
	       (pkt->syndrome & HCA_AETH_TYPE) == HCA_AETH_NAK;
}

/*
 * An ACK of a PSN that is acknowledged already ends an RNR wait: it reports that the
 * responder's page is present (hardware.rst, Unsolicited ACK).  It may also answer a request
 * that came twice, while the responder is no more ready than before, so a wait that it ends
 * is not counted.
 */
static void unsolicited_ack(struct hca_fn *fn, struct hca_qp *qp,
			    const struct hca_pkt *pkt)
{
	if (qp->s_state != HCA_REQ_RNR_WAIT ||
	    !hca_fault_unsolicited(fn) || pkt->op != HCA_OP_ACK ||
	    (pkt->syndrome & HCA_AETH_TYPE) != HCA_AETH_ACK ||
	    hca_psn_add(pkt->psn, 1) != qp->s_una)
		return;
	hca_count(fn, QHCA_CNT_rx_unsolicited_acks);
	if (qp->s_rnr < qp->sw.rnr_retry)
		qp->s_rnr++;
	end_rnr_wait(fn, qp);
	hca_requester_rearm(fn, qp);
	hca_sched_work(fn, qp->qpn, HCA_WORK_SEND);
}

static void data(struct hca_fn *fn, struct hca_qp *qp,
		 const struct hca_pkt *pkt)
{
	enum hca_mem_status status;
	struct hca_swqe *w;
	uint32_t offset = 0;

	/* A response acknowledges all earlier requests. */
	if (!acknowledge(fn, qp, pkt->psn))
		return;
	w = answered(fn, qp);
	if (!w)
		return;
	if (!answer_fits(qp, w, pkt, &offset)) {
		hca_requester_fail(fn, qp, QHCA_WC_BAD_RESP_ERR, 0);
		return;
	}
	status = scatter(fn, qp, w, pkt, offset);
	if (status == HCA_MEM_FAULT) {
		scatter_fault(fn, qp, w, offset);
		return;
	}
	if (status != HCA_MEM_OK) {
		hca_requester_fail(fn, qp, QHCA_WC_LOC_PROT_ERR, 0);
		return;
	}
	qp->s_una = hca_psn_add(qp->s_una, 1);
	qp->s_retry = qp->sw.retry_cnt;
	qp->s_rnr = qp->sw.rnr_retry;
	qp->s_flags &= ~HCA_SF_TO_PROGRESS;
	hca_requester_retire(fn, qp, qp->s_una);
	progressed(fn, qp);
}

void hca_response_rx(struct hca_fn *fn, struct hca_qp *qp,
		     const struct hca_pkt *pkt)
{
	if (!hca_qp_is_reliable(qp) || !qp->sq_depth)
		return;
	if (!hca_psn_in(pkt->psn, qp->s_una, qp->s_max)) {
		unsolicited_ack(fn, qp, pkt);
		return;
	}
	if (hca_qp_has(qp, QHCA_PART_REQUESTER_FAULT, HCA_PS_NO_RESPONSES) &&
	    !is_refusal(qp, pkt)) {
		hca_fault_coalesce(fn);
		return;
	}
	if (pkt->op == HCA_OP_ACK)
		aeth(fn, qp, pkt);
	else
		data(fn, qp, pkt);
}
