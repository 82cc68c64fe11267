/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests that an RC QP receives (IBTA 9.7.4).  The order of the checks is
 * that of Documentation/hardware.rst, Responder.  Nothing of the QP's state
 * changes before the packet is accepted, so that a packet refused with an RNR
 * NAK can come again.
 */
#include "transport/transport.h"

/* ---- refusing */

static void owe_nak(struct hca_fn *fn, struct hca_qp *qp, uint8_t syndrome)
{
	qp->r_flags |= HCA_RF_NAK | HCA_RF_NAK_SENT;
	qp->r_syndrome = syndrome;
	qp->r_nak_psn = qp->r_psn;
	hca_qp_dirty(fn, qp);
	hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
}

/* The QP ends when the NAK has gone out behind what is owed before it. */
static void refuse(struct hca_fn *fn, struct hca_qp *qp,
		   enum hca_verdict verdict)
{
	static const uint8_t syndrome[] = {
		[HCA_V_INVALID] = HCA_NAK_INVALID,
		[HCA_V_ACCESS] = HCA_NAK_ACCESS,
		[HCA_V_OPERATION] = HCA_NAK_OP,
	};

	if (verdict == HCA_V_RNR) {
		hca_count(fn, QHCA_CNT_tx_rnr_no_wqe);
		owe_nak(fn, qp, HCA_AETH_RNR | qp->sw.min_rnr_timer);
		return;
	}
	if (verdict == HCA_V_FAULT || verdict == HCA_V_FAULT_AGAIN) {
		hca_count(fn, QHCA_CNT_tx_rnr_fault1);
		qp->f_state |= HCA_FS_NAKED;
		owe_nak(fn, qp, HCA_AETH_RNR |
			hca_fault_timer(qp, verdict == HCA_V_FAULT_AGAIN));
		return;
	}
	qp->r_flags |= HCA_RF_DEAD;
	owe_nak(fn, qp, syndrome[verdict]);
}

/* The receive WQE in use ends with @status. */
static enum hca_verdict receive_error(struct hca_fn *fn,
				      struct hca_qp *qp, uint8_t status,
				      enum hca_verdict verdict)
{
	struct qhca_cqe cqe = { .status = status, .opcode = QHCA_CQE_RECV };

	/* unreliable: the message is dropped, the WQE kept for the next */
	if (qp->type == QHCA_QPT_UC && status == QHCA_WC_LOC_LEN_ERR)
		return verdict;
	put_le16(&cqe.vlan, HCA_VLAN_NONE);
	return hca_complete_recv(fn, qp, &cqe) ? verdict : HCA_V_OPERATION;
}

/*
 * A page is not present: the responder waits for it.  @before and @want as
 * hca_fault_raise() has them; @bad: what becomes of a page that is not to be
 * had.
 */
static enum hca_verdict write_fault(struct hca_fn *fn, struct hca_qp *qp,
				    enum qhca_fault_cause cause,
				    uint32_t before, uint64_t want,
				    enum hca_verdict bad)
{
	switch (hca_fault_raise(fn, qp, cause, before, want)) {
	case HCA_FAULT_NEW:
		return HCA_V_FAULT;
	case HCA_FAULT_AGAIN:
		return HCA_V_FAULT_AGAIN;
	default:
		return bad;
	}
}

/*
 * Requests that change memory wait in order: while one does, the next in order
 * is the same one again.
 */
static bool request_waits(const struct hca_qp *qp)
{
	return hca_fault_waits(qp, HCA_FAULT_DIR_RESP) &&
	       hca_fault_cause(&qp->fault[HCA_FAULT_DIR_RESP]) !=
	       QHCA_FAULT_RDMA_R;
}

static enum hca_verdict remote_verdict(enum hca_mem_status status)
{
	switch (status) {
	case HCA_MEM_OK:
		return HCA_V_ACCEPT;
	case HCA_MEM_PROT:
		return HCA_V_ACCESS;
	default:
		return HCA_V_OPERATION;
	}
}

/* ---- pieces */

static enum hca_verdict need_rwqe(struct hca_fn *fn, struct hca_qp *qp)
{
	switch (hca_take_rwqe(fn, qp)) {
	case HCA_TAKE_EMPTY:
		return HCA_V_RNR;
	case HCA_TAKE_ERROR:
		return HCA_V_OPERATION;
	default:
		break;
	}
	if (qp->rwqe.error)
		return receive_error(fn, qp, qp->rwqe.error,
				     HCA_V_OPERATION);
	return HCA_V_ACCEPT;
}

/* Is the packet in its place: kind @msg, begun or not? */
static bool in_sequence(const struct hca_qp *qp, const struct hca_pkt *pkt,
			enum hca_rmsg msg)
{
	if (pkt->what & HCA_OPF_FIRST)
		return qp->r_op == HCA_RMSG_NONE;
	return qp->r_op == msg;
}

/* Payload as its place in the message demands. */
static bool length_fits(const struct hca_qp *qp, const struct hca_pkt *pkt)
{
	if (!(pkt->what & HCA_OPF_LAST))
		return pkt->payload_len == qp->mtu && !pkt->pad;
	return pkt->payload_len <= qp->mtu &&
	       (pkt->payload_len || pkt->what & HCA_OPF_FIRST);
}

/* false: the CQ is of no more use. */
static bool complete_recv(struct hca_fn *fn, struct hca_qp *qp,
			  const struct hca_pkt *pkt, uint8_t opcode,
			  uint32_t byte_len)
{
	struct qhca_cqe cqe = { .opcode = opcode };
	uint32_t flags = 0;

	put_le32(&cqe.byte_len, byte_len);
	put_le16(&cqe.vlan, HCA_VLAN_NONE);
	if (pkt->what & HCA_H_IMM) {
		memcpy(&cqe.imm, pkt->imm, 4);
		flags |= QHCA_CQE_IMM;
	}
	if (pkt->what & HCA_H_IETH) {
		put_le32(&cqe.imm, pkt->rkey);
		flags |= QHCA_CQE_INV;
	}
	if (pkt->solicited)
		flags |= QHCA_CQE_SOLICITED;
	put_le32(&cqe.flags, flags);
	return hca_complete_recv(fn, qp, &cqe);
}

static void request_done(struct hca_qp *qp, uint32_t psns, bool last)
{
	qp->r_psn = hca_psn_add(qp->r_psn, psns);
	if (last)
		qp->r_msn = (qp->r_msn + 1) & HCA_PSN_MASK;
}

/* An ACK of PSN @psn is owed; one stands for all that went before. */
static void owe_ack(struct hca_fn *fn, struct hca_qp *qp, uint32_t psn)
{
	if (!(qp->r_flags & HCA_RF_ACK) ||
	    hca_psn_before(qp->r_ack_psn, psn))
		qp->r_ack_psn = psn;
	qp->r_flags |= HCA_RF_ACK;
	qp->r_unacked = 0;
	hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
}

/* ---- SEND */

static enum hca_verdict send_payload(struct hca_fn *fn, struct hca_qp *qp,
				     const struct hca_pkt *pkt, uint32_t done)
{
	enum hca_verdict verdict;

	if (!length_fits(qp, pkt) ||
	    done > HCA_MAX_MSG_SIZE - pkt->payload_len)
		return HCA_V_INVALID;
	if ((uint64_t)done + pkt->payload_len > qp->rwqe.sgl.length)
		return receive_error(fn, qp, QHCA_WC_LOC_LEN_ERR,
				     HCA_V_INVALID);
	switch (hca_rwqe_scatter(fn, qp, &qp->rwqe, done, pkt->payload,
				 pkt->payload_len)) {
	case HCA_MEM_OK:
		return HCA_V_ACCEPT;
	case HCA_MEM_FAULT:
		verdict = write_fault(fn, qp, QHCA_FAULT_RECV, done,
				      pkt->payload_len, HCA_V_OPERATION);
		if (verdict != HCA_V_OPERATION)
			return verdict;
		/* fall through */
	default:
		return receive_error(fn, qp, QHCA_WC_LOC_PROT_ERR,
				     HCA_V_OPERATION);
	}
}

static enum hca_verdict request_send(struct hca_fn *fn, struct hca_qp *qp,
				     const struct hca_pkt *pkt)
{
	bool last = pkt->what & HCA_OPF_LAST;
	uint32_t done = pkt->what & HCA_OPF_FIRST ? 0 : qp->r_len;
	enum hca_verdict verdict;

	if (!in_sequence(qp, pkt, HCA_RMSG_SEND))
		return HCA_V_INVALID;
	verdict = need_rwqe(fn, qp);
	if (verdict == HCA_V_ACCEPT)
		verdict = send_payload(fn, qp, pkt, done);
	if (verdict != HCA_V_ACCEPT)
		return verdict;
	if (pkt->what & HCA_H_IETH &&
	    hca_mem_remote_inv(fn, qp->pd, qp->qpn, pkt->rkey) != HCA_MEM_OK)
		return receive_error(fn, qp, QHCA_WC_MW_BIND_ERR,
				     HCA_V_ACCESS);

	done += pkt->payload_len;
	/* before the PSN moves on, since a NAK has the request's */
	if (last && !complete_recv(fn, qp, pkt, QHCA_CQE_RECV, done))
		return HCA_V_OPERATION;
	qp->r_len = done;
	qp->r_op = last ? HCA_RMSG_NONE : HCA_RMSG_SEND;
	request_done(qp, 1, last);
	return HCA_V_ACCEPT;
}

/* ---- WRITE */

static void remote_req(const struct hca_qp *qp, struct hca_mem_req *req,
		       uint64_t addr, uint64_t len, uint32_t rkey,
		       uint32_t access)
{
	*req = (struct hca_mem_req){
		.addr = addr, .len = len, .key = rkey, .pd = qp->pd,
		.access = access, .qpn = qp->qpn, .remote = true,
	};
}

struct write_state {			/* of the message, with this packet */
	uint64_t addr;
	uint32_t rkey, left, done;
};

static enum hca_verdict write_payload(struct hca_fn *fn, struct hca_qp *qp,
				      const struct hca_pkt *pkt,
				      const struct write_state *w)
{
	enum hca_mem_status status;
	struct hca_mem_req req;

	if (!length_fits(qp, pkt) || w->left > HCA_MAX_MSG_SIZE ||
	    (pkt->what & HCA_OPF_LAST ? pkt->payload_len != w->left :
					pkt->payload_len >= w->left))
		return HCA_V_INVALID;
	remote_req(qp, &req, w->addr, pkt->payload_len, w->rkey,
		   QHCA_ACCESS_REMOTE_WRITE);
	if (pkt->what & HCA_OPF_FIRST)
		req.span = w->left;
	status = hca_mem_write(fn, &req, pkt->payload);
	if (status == HCA_MEM_FAULT)
		return write_fault(fn, qp, QHCA_FAULT_RDMA_W, w->done, w->left,
				   HCA_V_ACCESS);
	return remote_verdict(status);
}

static enum hca_verdict request_write(struct hca_fn *fn, struct hca_qp *qp,
				      const struct hca_pkt *pkt)
{
	bool first = pkt->what & HCA_OPF_FIRST;
	bool last = pkt->what & HCA_OPF_LAST;
	struct write_state w = {
		.addr = first ? pkt->va : qp->r_addr,
		.rkey = first ? pkt->rkey : qp->r_rkey,
		.left = first ? pkt->dma_len : qp->r_left,
		.done = first ? 0 : qp->r_len,
	};
	enum hca_verdict verdict = HCA_V_ACCEPT;

	if (!in_sequence(qp, pkt, HCA_RMSG_WRITE) ||
	    !(qp->access & QHCA_ACCESS_REMOTE_WRITE))
		return HCA_V_INVALID;
	if (pkt->what & HCA_H_IMM)
		verdict = need_rwqe(fn, qp);
	if (verdict == HCA_V_ACCEPT)
		verdict = write_payload(fn, qp, pkt, &w);
	if (verdict != HCA_V_ACCEPT)
		return verdict;

	w.done += pkt->payload_len;
	if (pkt->what & HCA_H_IMM &&
	    !complete_recv(fn, qp, pkt, QHCA_CQE_RECV_RDMA_IMM, w.done))
		return HCA_V_OPERATION;
	qp->r_addr = w.addr + pkt->payload_len;
	qp->r_rkey = w.rkey;
	qp->r_left = w.left - pkt->payload_len;
	qp->r_len = w.done;
	qp->r_op = last ? HCA_RMSG_NONE : HCA_RMSG_WRITE;
	request_done(qp, 1, last);
	return HCA_V_ACCEPT;
}

/* ---- READ and atomics */

static enum hca_verdict request_read(struct hca_fn *fn, struct hca_qp *qp,
				     const struct hca_pkt *pkt)
{
	struct hca_resource *r;
	struct hca_mem_req req;
	enum hca_verdict verdict;

	if (qp->r_op != HCA_RMSG_NONE ||
	    !(qp->access & QHCA_ACCESS_REMOTE_READ) || !hca_resource_available(qp, HCA_RES_READ) ||
	    pkt->dma_len > HCA_MAX_MSG_SIZE)
		return HCA_V_INVALID;
	remote_req(qp, &req, pkt->va, pkt->dma_len, pkt->rkey,
		   QHCA_ACCESS_REMOTE_READ);
	/* presence is asked when the response is sent */
	verdict = remote_verdict(hca_mem_check(fn, &req));
	if (verdict != HCA_V_ACCEPT)
		return verdict;
	r = hca_resource_new(qp, HCA_RES_READ, pkt);
	r->value = pkt->dma_len;
	/* the first response is a part of this look-up */
	r->flags |= HCA_RES_F_CHECKED;
	if (qp->type == QHCA_QPT_XRC_TGT)
		r->srq = qp->r_srq;
	request_done(qp, hca_packets(pkt->dma_len, qp->mtu), true);
	hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
	return HCA_V_ACCEPT;
}

static enum hca_verdict request_atomic(struct hca_fn *fn, struct hca_qp *qp,
				       const struct hca_pkt *pkt)
{
	bool cmp_swap = pkt->op == HCA_OP_CMP_SWAP;
	enum hca_mem_status status;
	struct hca_mem_req req;
	enum hca_verdict verdict;
	uint64_t orig;

	if (qp->r_op != HCA_RMSG_NONE ||
	    !(qp->access & QHCA_ACCESS_REMOTE_ATOMIC) ||
	    !(fn->features & QHCA_FEAT_ATOMIC) ||
	    !hca_resource_available(qp, HCA_RES_ATOMIC) || pkt->va & 7)
		return HCA_V_INVALID;
	remote_req(qp, &req, pkt->va, 8, pkt->rkey,
		   QHCA_ACCESS_REMOTE_ATOMIC);
	status = hca_mem_atomic(fn, &req, cmp_swap ? HCA_ATOMIC_CMP_SWAP :
						     HCA_ATOMIC_FETCH_ADD,
				pkt->compare, pkt->swap_add, &orig);
	if (status == HCA_MEM_FAULT)
		return write_fault(fn, qp, QHCA_FAULT_ATOMIC, 0, 8,
				   HCA_V_ACCESS);
	verdict = remote_verdict(status);
	if (verdict != HCA_V_ACCEPT)
		return verdict;
	hca_resource_new(qp, HCA_RES_ATOMIC, pkt)->value = orig;
	request_done(qp, 1, true);
	hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
	return HCA_V_ACCEPT;
}

/* ---- ATOMIC WRITE and FLUSH (IBTA A19) */

static void place_done(struct hca_fn *fn, struct hca_qp *qp,
		       const struct hca_pkt *pkt)
{
	hca_resource_new(qp, HCA_RES_PLACE, pkt);
	request_done(qp, 1, true);
	hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
}

static enum hca_verdict request_atomic_write(struct hca_fn *fn,
					     struct hca_qp *qp,
					     const struct hca_pkt *pkt)
{
	enum hca_mem_status status;
	enum hca_verdict verdict;
	struct hca_mem_req req;

	if (qp->r_op != HCA_RMSG_NONE ||
	    !(qp->access & QHCA_ACCESS_REMOTE_WRITE) ||
	    !(fn->features & QHCA_FEAT_ATOMIC_WRITE) ||
	    !hca_resource_available(qp, HCA_RES_PLACE) || pkt->dma_len != 8 || pkt->payload_len != 8 ||
	    pkt->va & 7)
		return HCA_V_INVALID;
	remote_req(qp, &req, pkt->va, 8, pkt->rkey, QHCA_ACCESS_REMOTE_WRITE);
	status = hca_mem_atomic(fn, &req, HCA_ATOMIC_WRITE, 0,
				get_le64(pkt->payload), NULL);
	if (status == HCA_MEM_FAULT)
		return write_fault(fn, qp, QHCA_FAULT_RDMA_W, 0, 8,
				   HCA_V_ACCESS);
	verdict = remote_verdict(status);
	if (verdict == HCA_V_ACCEPT)
		place_done(fn, qp, pkt);
	return verdict;
}

/* What came before has been written to memory, where all see it. */
static enum hca_verdict request_flush(struct hca_fn *fn,
				      struct hca_qp *qp,
				      const struct hca_pkt *pkt)
{
	uint32_t type = QHCA_GET(HCA_FETH_TYPE, pkt->feth);
	uint32_t level = QHCA_GET(HCA_FETH_LEVEL, pkt->feth);
	enum hca_verdict verdict;
	struct hca_mem_req req;
	uint32_t access = 0;

	if (type & QHCA_FLUSH_GLOBAL)
		access |= QHCA_ACCESS_FLUSH_GLOBAL;
	if (type & QHCA_FLUSH_PERSISTENT)
		access |= QHCA_ACCESS_FLUSH_PERSISTENT;
	if (qp->r_op != HCA_RMSG_NONE || access & ~qp->access ||
	    !(fn->features & QHCA_FEAT_FLUSH) || !hca_resource_available(qp, HCA_RES_PLACE) ||
	    !type || type & ~QHCA_FLUSH_TYPES || level > QHCA_FLUSH_REGION)
		return HCA_V_INVALID;
	remote_req(qp, &req, pkt->va, pkt->dma_len, pkt->rkey, access);
	req.whole = level == QHCA_FLUSH_REGION;
	verdict = remote_verdict(hca_mem_check_key(fn, &req));
	if (verdict == HCA_V_ACCEPT)
		place_done(fn, qp, pkt);
	return verdict;
}

/* ---- duplicates */

static uint8_t resource_type(const struct hca_pkt *pkt)
{
	if (pkt->op == HCA_OP_READ_REQ)
		return HCA_RES_READ;
	return pkt->what & HCA_H_ATOMIC ? HCA_RES_ATOMIC : HCA_RES_PLACE;
}

static void replay(struct hca_fn *fn, struct hca_qp *qp,
		   const struct hca_pkt *pkt)
{
	struct hca_resource *r = hca_resource_find(qp, resource_type(pkt), pkt);

	if (r && hca_resource_repeat(qp, r, pkt->psn))
		hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
}

/*
 * The PSN with which a duplicate SEND or WRITE is acknowledged: the last one
 * completed, but not beyond a READ, atomic, ... that followed it, since the peer
 * who repeats this will ask for that answer again, and an ACK past it would
 * tell him that it was lost.
 */
static uint32_t duplicate_ack_psn(const struct hca_qp *qp, uint32_t psn)
{
	uint32_t ack = hca_psn_add(qp->r_psn, HCA_PSN_MASK);

	for (unsigned int i = 0; i < HCA_MAX_RD_ATOMIC; i++) {
		const struct hca_resource *r = &qp->res[i];

		if (r->type && hca_psn_before(psn, r->psn) &&
		    !hca_psn_before(ack, r->psn))
			ack = hca_psn_add(r->psn, HCA_PSN_MASK);
	}
	return ack;
}

static void duplicate(struct hca_fn *fn, struct hca_qp *qp,
		      const struct hca_pkt *pkt)
{
	hca_count(fn, QHCA_CNT_duplicate_requests);
	/* the peer went back: a gap after this is a new one */
	if (!(qp->r_flags & HCA_RF_NAK))
		qp->r_flags &= ~HCA_RF_NAK_SENT;
	if (pkt->what & (HCA_OPF_SEND | HCA_OPF_WRITE))
		owe_ack(fn, qp, duplicate_ack_psn(qp, pkt->psn));
	else
		replay(fn, qp, pkt);
}

/* ---- an unavailable page */

void hca_request_fault_failed(struct hca_fn *fn, struct hca_qp *qp,
			      enum qhca_fault_cause cause)
{
	enum hca_verdict verdict = HCA_V_ACCESS;

	if (cause == QHCA_FAULT_RECV) {
		if (!(qp->r_flags & HCA_RF_RWQE))
			return;
		verdict = need_rwqe(fn, qp);	/* copied anew if it was lost */
		if (verdict == HCA_V_ACCEPT)
			verdict = receive_error(fn, qp, QHCA_WC_LOC_PROT_ERR,
						HCA_V_OPERATION);
		if (qp->state == QHCA_QPS_ERR)
			return;
	}
	refuse(fn, qp, verdict);
}

/* ---- XRC */

/*
 * Each request names an SRQ, whose protection domain is that of all it reaches
 * (IBTA A14); a message stays with the SRQ that it began with.
 */
static bool find_srq(struct hca_fn *fn, struct hca_qp *qp,
		     const struct hca_pkt *pkt)
{
	bool begun = qp->r_op != HCA_RMSG_NONE || qp->r_flags & HCA_RF_RWQE;
	struct hca_xsrq x;

	if (!hca_srq_xrc(fn, pkt->xrc_srqn, qp->xrcd, &x) ||
	    (begun && x.token != qp->r_srq))
		return false;
	qp->r_srq = x.token;
	qp->pd = x.pd;
	return true;
}

/* ---- entry */

enum hca_verdict hca_request_execute(struct hca_fn *fn,
				     struct hca_qp *qp,
				     const struct hca_pkt *pkt)
{
	if (pkt->what & HCA_OPF_LAST)
		hca_linger_heard(fn, qp->qpn);
	if (qp->type == QHCA_QPT_XRC_TGT && !find_srq(fn, qp, pkt))
		return HCA_V_INVALID;
	if (pkt->what & HCA_OPF_SEND)
		return request_send(fn, qp, pkt);
	if (pkt->what & HCA_OPF_WRITE)
		return request_write(fn, qp, pkt);
	if (pkt->op == HCA_OP_READ_REQ)
		return request_read(fn, qp, pkt);
	if (pkt->what & HCA_H_ATOMIC)
		return request_atomic(fn, qp, pkt);
	if (pkt->op == HCA_OP_ATOMIC_WRITE)
		return request_atomic_write(fn, qp, pkt);
	if (pkt->op == HCA_OP_FLUSH)
		return request_flush(fn, qp, pkt);
	return HCA_V_INVALID;
}

void hca_request_rx(struct hca_fn *fn, struct hca_qp *qp,
		    const struct hca_pkt *pkt)
{
	int32_t ahead = hca_psn_diff(pkt->psn, qp->r_psn);
	enum hca_verdict verdict;

	if (qp->r_flags & HCA_RF_DEAD)
		return;
	hca_qp_dirty(fn, qp);
	if (ahead > 0) {
		hca_count(fn, QHCA_CNT_out_of_sequence);
		if (!(qp->r_flags & HCA_RF_NAK_SENT))
			owe_nak(fn, qp, HCA_NAK_SEQ);
		return;
	}
	if (ahead < 0) {
		duplicate(fn, qp, pkt);
		return;
	}
	/* what a NAK not sent yet would ask for is here */
	qp->r_flags &= ~(HCA_RF_NAK | HCA_RF_NAK_SENT);
	if (request_waits(qp)) {
		hca_fault_coalesce(fn);
		refuse(fn, qp, HCA_V_FAULT_AGAIN);
		return;
	}
	verdict = hca_request_execute(fn, qp, pkt);
	if (qp->state == QHCA_QPS_ERR)
		return;
	if (verdict != HCA_V_ACCEPT) {
		refuse(fn, qp, verdict);
		return;
	}
	if (!(pkt->what & (HCA_OPF_SEND | HCA_OPF_WRITE)))
		return;
	if (pkt->ack_req || ++qp->r_unacked >= HCA_ACK_EVERY)
		owe_ack(fn, qp, pkt->psn);
}
