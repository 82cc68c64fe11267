/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Sending what the responder owes: READ responses, results, ACKs and NAKs, in order
 * of PSN (IBTA 9.7.5.1).  READs and requests with a result wait in the ring of
 * resources, and the device answers the oldest first.  It sends an ACK as soon as it
 * owes nothing before that ACK, and a NAK last.
 */
#include "transport/transport.h"

struct reply {
	struct hca_frame_to to;
	bool path_ok;			/* else the device drops each packet */
};

/* The responder answers nothing more but a fatal NAK with @syndrome and @psn. */
static void refuse(struct hca_fn *fn, struct hca_qp *qp, uint8_t syndrome,
		   uint32_t psn)
{
	hca_resource_settle_all(qp);
	hca_qp_enter(fn, qp, QHCA_PART_RESPONDER, HCA_RESP_FATAL_NAK_DUE);
	qp->r_flags &= ~HCA_RF_ACK;
	qp->r_syndrome = syndrome;
	qp->r_nak_psn = psn;
}

static void headers(const struct hca_qp *qp, uint8_t op, uint32_t psn,
		    uint8_t syndrome, struct hca_pkt *pkt)
{
	pkt->opcode = hca_service(qp) | op;
	pkt->solicited = false;
	pkt->ack_req = false;
	pkt->pkey = HCA_PKEY_DEFAULT;
	pkt->dest_qpn = qp->dest_qpn;
	pkt->psn = psn;
	pkt->syndrome = syndrome;
	pkt->msn = qp->r_msn;
	pkt->payload_len = 0;
}

/* Send a packet without payload.  false: the link is full. */
static bool put(struct hca_fn *fn, const struct hca_qp *qp,
		struct reply *reply, const struct hca_pkt *pkt)
{
	struct hca_frame f;

	if (!reply->path_ok)
		return true;
	if (!hca_frame_begin(fn, &reply->to, pkt, qp->qpn, &f))
		return false;
	hca_qp_frame_end(fn, qp, &reply->to, &f);
	return true;
}

static bool put_ack(struct hca_fn *fn, struct hca_qp *qp,
		    struct reply *reply)
{
	HCA_UNINITIALIZED struct hca_pkt pkt;

	headers(qp, HCA_OP_ACK, qp->r_ack_psn,
		HCA_AETH_ACK | HCA_AETH_NO_CREDITS, &pkt);
	if (!put(fn, qp, reply, &pkt))
		return false;
	qp->r_flags &= ~HCA_RF_ACK;
	hca_qp_count(fn, qp, QHCA_CNT_tx_acks);
	return true;
}

/* Tell the peer that the page is present, behind everything else that is owed. */
static bool put_unsolicited(struct hca_fn *fn, struct hca_qp *qp,
			    struct reply *reply)
{
	HCA_UNINITIALIZED struct hca_pkt pkt;

	headers(qp, HCA_OP_ACK, hca_psn_add(qp->r_psn, HCA_PSN_MASK),
		HCA_AETH_ACK | HCA_AETH_NO_CREDITS, &pkt);
	if (!put(fn, qp, reply, &pkt))
		return false;
	qp->r_flags &= ~HCA_RF_UNSOLICITED;
	hca_count(fn, QHCA_CNT_tx_unsolicited_acks);
	return true;
}

/* Send the old value of an atomic, or that an ATOMIC WRITE or FLUSH is done. */
static bool put_result(struct hca_fn *fn, struct hca_qp *qp,
		       struct reply *reply, struct hca_resource *r)
{
	uint8_t op = r->type == HCA_RES_ATOMIC ? HCA_OP_ATOMIC_ACK :
						 HCA_OP_READ_RESP_ONLY;
	HCA_UNINITIALIZED struct hca_pkt pkt;

	headers(qp, op, r->psn, HCA_AETH_ACK | HCA_AETH_NO_CREDITS, &pkt);
	pkt.orig = r->value;
	if (!put(fn, qp, reply, &pkt))
		return false;
	hca_resource_settle(qp, r);
	return true;
}

static uint8_t read_op(bool first, bool last)
{
	if (first)
		return last ? HCA_OP_READ_RESP_ONLY : HCA_OP_READ_RESP_FIRST;
	return last ? HCA_OP_READ_RESP_LAST : HCA_OP_READ_RESP_MIDDLE;
}

/*
 * A READ's response does not go now.  The ACK that is due may stand for requests before
 * and behind the READ; the part behind it has to wait, so the device sends an ACK of the
 * part before it.
 */
static void put_ack_before(struct hca_fn *fn, struct hca_qp *qp, struct reply *reply,
			   const struct hca_resource *r)
{
	HCA_UNINITIALIZED struct hca_pkt pkt;

	if (!(qp->r_flags & HCA_RF_ACK) || r->next != r->psn)
		return;
	headers(qp, HCA_OP_ACK, hca_psn_add(r->psn, HCA_PSN_MASK),
		HCA_AETH_ACK | HCA_AETH_NO_CREDITS, &pkt);
	if (put(fn, qp, reply, &pkt))	/* otherwise the peer will ask again */
		hca_qp_count(fn, qp, QHCA_CNT_tx_acks);
}

/* A page of a READ's data is absent: this response and all later ones wait. */
static void read_fault(struct hca_fn *fn, struct hca_qp *qp,
		       struct reply *reply, const struct hca_resource *r,
		       uint64_t offset)
{
	hca_fault_raise(fn, qp, QHCA_FAULT_RDMA_R, (uint32_t)offset,
			r->value - offset);
	/* The fault may be that of a request, which the READ then waits for too. */
	if (qp->f_resp == HCA_RESPF_REQUEST)
		hca_qp_enter(fn, qp, QHCA_PART_RESPONDER_FAULT,
			     HCA_RESPF_REQUEST_READ);
	put_ack_before(fn, qp, reply, r);
}

void hca_reply_fault_failed(struct hca_fn *fn, struct hca_qp *qp)
{
	const struct hca_fault *f = &qp->fault[HCA_FAULT_DIR_RESP];
	struct hca_resource *r = hca_resource_owed(qp);

	/* A duplicate may have made another answer the next one meanwhile. */
	if (!r || r->type != HCA_RES_READ || r->rkey != f->key ||
	    f->addr - r->addr >= r->value)
		return;
	if (r->flags & HCA_RES_F_REPLAY)
		r->flags |= HCA_RES_F_BAD;
	else
		refuse(fn, qp, HCA_NAK_ACCESS, r->next);
	hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
}

static void count_nak(struct hca_fn *fn, const struct hca_qp *qp,
		      uint8_t syndrome)
{
	switch (syndrome) {
	case HCA_NAK_SEQ:
		hca_qp_count(fn, qp, QHCA_CNT_tx_nak_seq);
		break;
	case HCA_NAK_INVALID:
		hca_qp_count(fn, qp, QHCA_CNT_tx_nak_invalid);
		break;
	case HCA_NAK_ACCESS:
		hca_qp_count(fn, qp, QHCA_CNT_tx_nak_access);
		break;
	case HCA_NAK_OP:
		hca_qp_count(fn, qp, QHCA_CNT_tx_nak_op);
		break;
	case HCA_AETH_ACK | HCA_AETH_NO_CREDITS:
		hca_qp_count(fn, qp, QHCA_CNT_tx_acks);
		break;
	default:			/* RNR NAKs are counted by cause */
		break;
	}
}

/*
 * Refuse a duplicate READ whose key no longer permits it.  The application may
 * have ended the key after the first answer, so the QP does not go to state ERR.
 * A peer that still needs the data fails by this NAK; a peer that has received
 * the first answer ignores the NAK as a late one.
 */
static bool put_refusal(struct hca_fn *fn, struct hca_qp *qp,
			struct reply *reply, struct hca_resource *r)
{
	HCA_UNINITIALIZED struct hca_pkt pkt;

	headers(qp, HCA_OP_ACK, r->next, HCA_NAK_ACCESS, &pkt);
	if (!put(fn, qp, reply, &pkt))
		return false;
	count_nak(fn, qp, HCA_NAK_ACCESS);
	hca_trace(fn, QHCA_TRACE_NAK, qp->qpn, HCA_NAK_ACCESS, r->next, 0);
	hca_resource_settle(qp, r);
	return true;
}

/* The protection domain of a READ's data.  false: its XRC SRQ no longer exists. */
static bool read_pd(struct hca_fn *fn, const struct hca_qp *qp,
		    const struct hca_resource *r, uint32_t *pd)
{
	struct hca_xsrq x = { .pd = qp->pd };

	if (qp->type == QHCA_QPT_XRC_TGT &&
	    !hca_srq_xrc_again(fn, r->srq, qp->xrcd, &x))
		return false;
	*pd = x.pd;
	return true;
}

/* Send one packet of a READ response.  false: the link is full. */
static bool put_read(struct hca_fn *fn, struct hca_qp *qp,
		     struct reply *reply, struct hca_resource *r)
{
	uint32_t index = (r->next - r->psn) & HCA_PSN_MASK;
	uint32_t packets = hca_packets(r->value, qp->mtu);
	uint64_t offset = (uint64_t)index * qp->mtu;
	bool last = index + 1 >= packets;
	struct hca_mem_req req = {
		.addr = r->addr + offset, .key = r->rkey,
		.access = QHCA_ACCESS_REMOTE_READ, .qpn = qp->qpn,
		.remote = true, .again = r->flags & HCA_RES_F_CHECKED,
	};
	enum hca_mem_status status;
	struct hca_frame f;
	HCA_UNINITIALIZED struct hca_pkt pkt;

	if (r->flags & HCA_RES_F_BAD)
		return put_refusal(fn, qp, reply, r);
	headers(qp, read_op(r->next == r->start, last), r->next,
		HCA_AETH_ACK | HCA_AETH_NO_CREDITS, &pkt);
	if (offset < r->value)
		pkt.payload_len = last ? r->value - offset : qp->mtu;
	req.len = pkt.payload_len;
	if (!read_pd(fn, qp, r, &req.pd)) {
		if (r->flags & HCA_RES_F_REPLAY)
			return put_refusal(fn, qp, reply, r);
		refuse(fn, qp, HCA_NAK_ACCESS, r->next);
		return true;
	}
	if (reply->path_ok) {
		/* What was lost may have been so for the size of its bundle. */
		reply->to.left = r->flags & HCA_RES_F_AGAIN ? 0 :
				 r->value - offset;
		if (!hca_frame_begin(fn, &reply->to, &pkt, qp->qpn, &f))
			return false;
		status = hca_mem_read(fn, &req, f.payload);
		r->flags &= ~HCA_RES_F_CHECKED;
		if (r->flags & HCA_RES_F_REPLAY && status == HCA_MEM_PROT)
			return put_refusal(fn, qp, reply, r);
		if (status == HCA_MEM_FAULT) {
			read_fault(fn, qp, reply, r, offset);
			return true;
		}
		if (status != HCA_MEM_OK) {
			refuse(fn, qp, status == HCA_MEM_PROT ?
				       HCA_NAK_ACCESS : HCA_NAK_OP, r->next);
			return true;
		}
		hca_qp_frame_end(fn, qp, &reply->to, &f);
	}
	r->next = hca_psn_add(r->next, 1);
	if (last)
		hca_resource_settle(qp, r);
	return true;
}

static bool put_nak(struct hca_fn *fn, struct hca_qp *qp,
		    struct reply *reply)
{
	uint8_t syndrome = qp->r_syndrome;
	HCA_UNINITIALIZED struct hca_pkt pkt;

	headers(qp, HCA_OP_ACK, qp->r_nak_psn, syndrome, &pkt);
	if (!put(fn, qp, reply, &pkt))
		return false;
	count_nak(fn, qp, syndrome);
	if (syndrome & HCA_AETH_NAK)
		hca_trace(fn, QHCA_TRACE_NAK, qp->qpn, syndrome, qp->r_nak_psn,
			  0);
	/* A NAK acknowledges everything before it. */
	qp->r_flags &= ~HCA_RF_ACK;
	if (qp->r_state == HCA_RESP_NAK_DUE)
		hca_qp_enter(fn, qp, QHCA_PART_RESPONDER, HCA_RESP_NAK_SENT);
	else
		hca_qp_error_event(fn, qp,
				   syndrome == HCA_NAK_INVALID ?
				   QHCA_EVENT_QP_REQ_ERROR :
				   syndrome == HCA_NAK_OP ?
				   QHCA_EVENT_QP_FATAL :
				   QHCA_EVENT_QP_ACCESS_ERROR);
	return true;
}

bool hca_reply_owed(const struct hca_qp *qp)
{
	return qp->r_flags & (HCA_RF_ACK | HCA_RF_UNSOLICITED) ||
	       qp->res_pending ||
	       hca_qp_has(qp, QHCA_PART_RESPONDER, HCA_PS_NAK_DUE);
}

/* Is an ACK due, and no answer before it?  @r: the oldest answer that is owed, or NULL. */
static bool ack_is_next(const struct hca_qp *qp, const struct hca_resource *r)
{
	return qp->r_flags & HCA_RF_ACK &&
	       (!r || hca_psn_before(qp->r_ack_psn, r->next));
}

static void begin_reply(struct hca_fn *fn, const struct hca_qp *qp,
			struct reply *reply)
{
	hca_frame_to_start(&reply->to);
	reply->path_ok = hca_path_of_av(fn, &qp->sw.av, qp->qpn, qp->dest_qpn,
					&reply->to.path);
}

/* Send the NAK that ends the QP, so that the peer reports its reason and not a timeout. */
static void put_last_nak(struct hca_fn *fn, struct hca_qp *qp, struct reply *reply)
{
	HCA_UNINITIALIZED struct hca_pkt pkt;

	headers(qp, HCA_OP_ACK, qp->r_nak_psn, qp->r_syndrome, &pkt);
	if (put(fn, qp, reply, &pkt))
		count_nak(fn, qp, qp->r_syndrome);
}

void hca_reply_leave(struct hca_fn *fn, struct hca_qp *qp)
{
	HCA_UNINITIALIZED struct reply reply;
	bool ok = true;

	/*
	 * Requests that did not ask for an ACK are complete as well, and no later answer comes.
	 * The NAK of a READ says what is before it, and those that came after are not complete.
	 */
	if (qp->r_unacked && hca_qp_is_reliable(qp) && qp->state != QHCA_QPS_ERR &&
	    (qp->r_state != HCA_RESP_FATAL_NAK_DUE || qp->res_pending)) {
		qp->r_ack_psn = hca_psn_add(qp->r_psn, HCA_PSN_MASK);
		qp->r_flags |= HCA_RF_ACK;
	}
	while (ok) {
		struct hca_resource *r = hca_resource_owed(qp);
		bool ack = ack_is_next(qp, r);

		if (!ack && !r && qp->r_state != HCA_RESP_FATAL_NAK_DUE)
			return;
		begin_reply(fn, qp, &reply);
		if (!ack && !r) {
			put_last_nak(fn, qp, &reply);
			return;
		}
		if (!ack && r->type == HCA_RES_READ) {
			put_ack_before(fn, qp, &reply, r);
			return;
		}
		ok = ack ? put_ack(fn, qp, &reply) :
			   put_result(fn, qp, &reply, r);
	}
}

enum hca_reply_stop hca_reply_run(struct hca_fn *fn, struct hca_qp *qp,
				  unsigned int budget, unsigned int *spent)
{
	bool ok = true, idle = false, held = false;
	unsigned int sent = 0;
	HCA_UNINITIALIZED struct reply reply;

	begin_reply(fn, qp, &reply);
	hca_qp_dirty(fn, qp);
	while (hca_frame_goes_on(&reply.to, sent, budget) && ok) {
		struct hca_resource *r = hca_resource_owed(qp);

		if (ack_is_next(qp, r))
			ok = put_ack(fn, qp, &reply);
		else if (r && hca_qp_has(qp, QHCA_PART_RESPONDER_FAULT,
					 HCA_PS_HOLDS_READS))
			idle = true;	/* until FAULT_RESUME */
		else if (r && r->type == HCA_RES_READ && hca_rate_waits(fn))
			held = true;
		else if (r && r->type == HCA_RES_READ)
			ok = put_read(fn, qp, &reply, r);
		else if (r)
			ok = put_result(fn, qp, &reply, r);
		else if (hca_qp_has(qp, QHCA_PART_RESPONDER, HCA_PS_NAK_DUE))
			ok = put_nak(fn, qp, &reply);
		else if (qp->r_flags & HCA_RF_UNSOLICITED)
			ok = put_unsolicited(fn, qp, &reply);
		else
			idle = true;
		if (idle || held)
			break;
		sent += ok;
	}
	hca_frame_finish(fn, &reply.to);
	*spent += sent;
	if (held)
		return HCA_REPLY_RATE;
	return idle || (ok && !hca_reply_owed(qp)) ? HCA_REPLY_DONE :
						     HCA_REPLY_MORE;
}
