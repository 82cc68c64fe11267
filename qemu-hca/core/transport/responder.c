/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Requests that an RC QP receives (IBTA 9.7.4).  The order of the checks is
 * that of Documentation/hardware.rst, Responder.  Nothing of the QP's state
 * changes before the packet is accepted, so that a packet refused with an RNR
 * NAK can come again.
 */
#include "transport/transport.h"

/* ---- refusing */

static void owe_nak(struct qhca_hca *hca, struct qhca_qp *qp, uint8_t syndrome)
{
	qp->r_flags |= QHCA_RF_NAK | QHCA_RF_NAK_SENT;
	qp->r_syndrome = syndrome;
	qp->r_nak_psn = qp->r_psn;
	qhca_qp_dirty(hca, qp);
	qhca_sched_work(hca, qp->qpn, QHCA_WORK_RESPOND);
}

/* The QP ends when the NAK has gone out behind what is owed before it. */
static void refuse(struct qhca_hca *hca, struct qhca_qp *qp,
		   enum qhca_verdict verdict)
{
	static const uint8_t syndrome[] = {
		[QHCA_V_INVALID] = QHCA_NAK_INVALID,
		[QHCA_V_ACCESS] = QHCA_NAK_ACCESS,
		[QHCA_V_OPERATION] = QHCA_NAK_OP,
	};

	if (verdict == QHCA_V_RNR) {
		qhca_count(hca, QHCA_CNT_tx_rnr_no_wqe);
		owe_nak(hca, qp, QHCA_AETH_RNR | qp->sw.min_rnr_timer);
		return;
	}
	if (verdict == QHCA_V_FAULT || verdict == QHCA_V_FAULT_AGAIN) {
		qhca_count(hca, QHCA_CNT_tx_rnr_fault1);
		qp->f_state |= QHCA_FS_NAKED;
		owe_nak(hca, qp, QHCA_AETH_RNR |
			qhca_fault_timer(qp, verdict == QHCA_V_FAULT_AGAIN));
		return;
	}
	qp->r_flags |= QHCA_RF_DEAD;
	owe_nak(hca, qp, syndrome[verdict]);
}

/* The receive WQE in use ends with @status. */
static enum qhca_verdict receive_error(struct qhca_hca *hca,
				       struct qhca_qp *qp, uint8_t status,
				       enum qhca_verdict verdict)
{
	struct qhca_cqe cqe = { .status = status, .opcode = QHCA_CQE_RECV };

	/* unreliable: the message is dropped, the WQE kept for the next */
	if (qp->type == QHCA_QPT_UC && status == QHCA_WC_LOC_LEN_ERR)
		return verdict;
	put_le16(&cqe.vlan, QHCA_VLAN_NONE);
	qhca_complete_recv(hca, qp, &cqe);
	return verdict;
}

/*
 * A page is not present: the responder waits for it.  @before and @want as
 * qhca_fault_raise() has them; @bad: what becomes of a page that is not to be
 * had.
 */
static enum qhca_verdict write_fault(struct qhca_hca *hca, struct qhca_qp *qp,
				     enum qhca_fault_cause cause,
				     uint32_t before, uint64_t want,
				     enum qhca_verdict bad)
{
	switch (qhca_fault_raise(hca, qp, cause, before, want)) {
	case QHCA_FAULT_NEW:
		return QHCA_V_FAULT;
	case QHCA_FAULT_AGAIN:
		return QHCA_V_FAULT_AGAIN;
	default:
		return bad;
	}
}

/*
 * Requests that change memory wait in order: while one does, the next in order
 * is the same one again.
 */
static bool request_waits(const struct qhca_qp *qp)
{
	return qhca_fault_waits(qp, QHCA_FAULT_DIR_RESP) &&
	       qhca_fault_cause(&qp->fault[QHCA_FAULT_DIR_RESP]) !=
	       QHCA_FAULT_RDMA_R;
}

static enum qhca_verdict remote_verdict(enum qhca_mem_status status)
{
	switch (status) {
	case QHCA_MEM_OK:
		return QHCA_V_ACCEPT;
	case QHCA_MEM_PROT:
		return QHCA_V_ACCESS;
	default:
		return QHCA_V_OPERATION;
	}
}

/* ---- pieces */

static enum qhca_verdict need_rwqe(struct qhca_hca *hca, struct qhca_qp *qp)
{
	switch (qhca_take_rwqe(hca, qp)) {
	case QHCA_TAKE_EMPTY:
		return QHCA_V_RNR;
	case QHCA_TAKE_ERROR:
		return QHCA_V_OPERATION;
	default:
		break;
	}
	if (qp->rwqe.error)
		return receive_error(hca, qp, qp->rwqe.error,
				     QHCA_V_OPERATION);
	return QHCA_V_ACCEPT;
}

/* Is the packet in its place: kind @msg, begun or not? */
static bool in_sequence(const struct qhca_qp *qp, const struct qhca_pkt *pkt,
			enum qhca_rmsg msg)
{
	if (pkt->what & QHCA_OPF_FIRST)
		return qp->r_op == QHCA_RMSG_NONE;
	return qp->r_op == msg;
}

/* Payload as its place in the message demands. */
static bool length_fits(const struct qhca_qp *qp, const struct qhca_pkt *pkt)
{
	if (!(pkt->what & QHCA_OPF_LAST))
		return pkt->payload_len == qp->mtu;
	return pkt->payload_len <= qp->mtu &&
	       (pkt->payload_len || pkt->what & QHCA_OPF_FIRST);
}

static void complete_recv(struct qhca_hca *hca, struct qhca_qp *qp,
			  const struct qhca_pkt *pkt, uint8_t opcode,
			  uint32_t byte_len)
{
	struct qhca_cqe cqe = { .opcode = opcode };
	uint32_t flags = 0;

	put_le32(&cqe.byte_len, byte_len);
	put_le16(&cqe.vlan, QHCA_VLAN_NONE);
	if (pkt->what & QHCA_H_IMM) {
		memcpy(&cqe.imm, pkt->imm, 4);
		flags |= QHCA_CQE_IMM;
	}
	if (pkt->what & QHCA_H_IETH) {
		put_le32(&cqe.imm, pkt->rkey);
		flags |= QHCA_CQE_INV;
	}
	if (pkt->solicited)
		flags |= QHCA_CQE_SOLICITED;
	put_le32(&cqe.flags, flags);
	qhca_complete_recv(hca, qp, &cqe);
}

static void request_done(struct qhca_qp *qp, uint32_t psns, bool last)
{
	qp->r_psn = qhca_psn_add(qp->r_psn, psns);
	if (last)
		qp->r_msn = (qp->r_msn + 1) & QHCA_PSN_MASK;
}

/* An ACK of PSN @psn is owed; one stands for all that went before. */
static void owe_ack(struct qhca_hca *hca, struct qhca_qp *qp, uint32_t psn)
{
	if (!(qp->r_flags & QHCA_RF_ACK) ||
	    qhca_psn_before(qp->r_ack_psn, psn))
		qp->r_ack_psn = psn;
	qp->r_flags |= QHCA_RF_ACK;
	qp->r_unacked = 0;
	qhca_sched_work(hca, qp->qpn, QHCA_WORK_RESPOND);
}

/* ---- SEND */

static enum qhca_verdict send_payload(struct qhca_hca *hca, struct qhca_qp *qp,
				      const struct qhca_pkt *pkt, uint32_t done)
{
	enum qhca_verdict verdict;

	if (!length_fits(qp, pkt) ||
	    done > QHCA_MAX_MSG_SIZE - pkt->payload_len)
		return QHCA_V_INVALID;
	if ((uint64_t)done + pkt->payload_len > qp->rwqe.sgl.length)
		return receive_error(hca, qp, QHCA_WC_LOC_LEN_ERR,
				     QHCA_V_INVALID);
	switch (qhca_rwqe_scatter(hca, qp, &qp->rwqe, done, pkt->payload,
				  pkt->payload_len)) {
	case QHCA_MEM_OK:
		return QHCA_V_ACCEPT;
	case QHCA_MEM_FAULT:
		verdict = write_fault(hca, qp, QHCA_FAULT_RECV, done,
				      pkt->payload_len, QHCA_V_OPERATION);
		if (verdict != QHCA_V_OPERATION)
			return verdict;
		/* fall through */
	default:
		return receive_error(hca, qp, QHCA_WC_LOC_PROT_ERR,
				     QHCA_V_OPERATION);
	}
}

static enum qhca_verdict request_send(struct qhca_hca *hca, struct qhca_qp *qp,
				      const struct qhca_pkt *pkt)
{
	bool last = pkt->what & QHCA_OPF_LAST;
	uint32_t done = pkt->what & QHCA_OPF_FIRST ? 0 : qp->r_len;
	enum qhca_verdict verdict;

	if (!in_sequence(qp, pkt, QHCA_RMSG_SEND))
		return QHCA_V_INVALID;
	verdict = need_rwqe(hca, qp);
	if (verdict == QHCA_V_ACCEPT)
		verdict = send_payload(hca, qp, pkt, done);
	if (verdict != QHCA_V_ACCEPT)
		return verdict;
	if (pkt->what & QHCA_H_IETH &&
	    qhca_mem_remote_inv(hca, qp->pd, qp->qpn, pkt->rkey) != QHCA_MEM_OK)
		return receive_error(hca, qp, QHCA_WC_MW_BIND_ERR,
				     QHCA_V_ACCESS);

	done += pkt->payload_len;
	qp->r_len = done;
	qp->r_op = last ? QHCA_RMSG_NONE : QHCA_RMSG_SEND;
	request_done(qp, 1, last);
	if (last)
		complete_recv(hca, qp, pkt, QHCA_CQE_RECV, done);
	return QHCA_V_ACCEPT;
}

/* ---- WRITE */

static void remote_req(const struct qhca_qp *qp, struct qhca_mem_req *req,
		       uint64_t addr, uint64_t len, uint32_t rkey,
		       uint32_t access)
{
	*req = (struct qhca_mem_req){
		.addr = addr, .len = len, .key = rkey, .pd = qp->pd,
		.access = access, .qpn = qp->qpn, .remote = true,
	};
}

struct write_state {			/* of the message, with this packet */
	uint64_t addr;
	uint32_t rkey, left, done;
};

static enum qhca_verdict write_payload(struct qhca_hca *hca, struct qhca_qp *qp,
				       const struct qhca_pkt *pkt,
				       const struct write_state *w)
{
	enum qhca_verdict verdict = QHCA_V_ACCEPT;
	enum qhca_mem_status status;
	struct qhca_mem_req req;

	if (!length_fits(qp, pkt) || w->left > QHCA_MAX_MSG_SIZE ||
	    (pkt->what & QHCA_OPF_LAST ? pkt->payload_len != w->left :
					 pkt->payload_len >= w->left))
		return QHCA_V_INVALID;
	remote_req(qp, &req, w->addr, w->left, w->rkey,
		   QHCA_ACCESS_REMOTE_WRITE);
	if (pkt->what & QHCA_OPF_FIRST && !(pkt->what & QHCA_OPF_LAST))
		verdict = remote_verdict(qhca_mem_check(hca, &req));
	if (verdict != QHCA_V_ACCEPT)
		return verdict;
	req.len = pkt->payload_len;
	status = qhca_mem_write(hca, &req, pkt->payload);
	if (status == QHCA_MEM_FAULT)
		return write_fault(hca, qp, QHCA_FAULT_RDMA_W, w->done, w->left,
				   QHCA_V_ACCESS);
	return remote_verdict(status);
}

static enum qhca_verdict request_write(struct qhca_hca *hca, struct qhca_qp *qp,
				       const struct qhca_pkt *pkt)
{
	bool first = pkt->what & QHCA_OPF_FIRST;
	bool last = pkt->what & QHCA_OPF_LAST;
	struct write_state w = {
		.addr = first ? pkt->va : qp->r_addr,
		.rkey = first ? pkt->rkey : qp->r_rkey,
		.left = first ? pkt->dma_len : qp->r_left,
		.done = first ? 0 : qp->r_len,
	};
	enum qhca_verdict verdict = QHCA_V_ACCEPT;

	if (!in_sequence(qp, pkt, QHCA_RMSG_WRITE) ||
	    !(qp->access & QHCA_ACCESS_REMOTE_WRITE))
		return QHCA_V_INVALID;
	if (pkt->what & QHCA_H_IMM)
		verdict = need_rwqe(hca, qp);
	if (verdict == QHCA_V_ACCEPT)
		verdict = write_payload(hca, qp, pkt, &w);
	if (verdict != QHCA_V_ACCEPT)
		return verdict;

	qp->r_addr = w.addr + pkt->payload_len;
	qp->r_rkey = w.rkey;
	qp->r_left = w.left - pkt->payload_len;
	qp->r_len = w.done + pkt->payload_len;
	qp->r_op = last ? QHCA_RMSG_NONE : QHCA_RMSG_WRITE;
	request_done(qp, 1, last);
	if (pkt->what & QHCA_H_IMM)
		complete_recv(hca, qp, pkt, QHCA_CQE_RECV_RDMA_IMM, qp->r_len);
	return QHCA_V_ACCEPT;
}

/* ---- READ and atomics */

static struct qhca_resource *oldest_slot(struct qhca_qp *qp)
{
	return &qp->res[qp->res_head];
}

/*
 * Is there a resource for one more answer?  Answers given again do not count: the
 * peer may have them long ago.
 */
static bool resource_left(const struct qhca_qp *qp)
{
	return qp->res[qp->res_head].flags != QHCA_RES_F_PENDING;
}

/* ... of a READ or an atomic, of which the peer may ask for so many. */
static bool resource_free(const struct qhca_qp *qp)
{
	unsigned int owed = 0;

	for (unsigned int i = 0; i < QHCA_MAX_RD_ATOMIC; i++)
		owed += qp->res[i].flags == QHCA_RES_F_PENDING &&
			qp->res[i].type != QHCA_RES_PLACE;
	return owed < qp->sw.max_dest_rd_atomic && resource_left(qp);
}

static struct qhca_resource *new_resource(struct qhca_qp *qp, uint8_t type,
					  const struct qhca_pkt *pkt)
{
	struct qhca_resource *r = oldest_slot(qp);

	if (r->flags & QHCA_RES_F_PENDING)
		qp->res_pending--;
	*r = (struct qhca_resource){
		.addr = pkt->va,
		.rkey = pkt->rkey,
		.psn = pkt->psn,
		.start = pkt->psn,
		.next = pkt->psn,
		.type = type,
		.flags = QHCA_RES_F_PENDING,
	};
	qp->res_head = (qp->res_head + 1) % QHCA_MAX_RD_ATOMIC;
	qp->res_pending++;
	return r;
}

static enum qhca_verdict request_read(struct qhca_hca *hca, struct qhca_qp *qp,
				      const struct qhca_pkt *pkt)
{
	struct qhca_resource *r;
	struct qhca_mem_req req;
	enum qhca_verdict verdict;

	if (qp->r_op != QHCA_RMSG_NONE ||
	    !(qp->access & QHCA_ACCESS_REMOTE_READ) || !resource_free(qp) ||
	    pkt->dma_len > QHCA_MAX_MSG_SIZE)
		return QHCA_V_INVALID;
	remote_req(qp, &req, pkt->va, pkt->dma_len, pkt->rkey,
		   QHCA_ACCESS_REMOTE_READ);
	/* presence is asked when the response is sent */
	verdict = remote_verdict(qhca_mem_check(hca, &req));
	if (verdict != QHCA_V_ACCEPT)
		return verdict;
	r = new_resource(qp, QHCA_RES_READ, pkt);
	r->value = pkt->dma_len;
	if (qp->type == QHCA_QPT_XRC_TGT)
		r->srq = qp->r_srq;
	request_done(qp, qhca_packets(pkt->dma_len, qp->mtu), true);
	qhca_sched_work(hca, qp->qpn, QHCA_WORK_RESPOND);
	return QHCA_V_ACCEPT;
}

static enum qhca_verdict request_atomic(struct qhca_hca *hca, struct qhca_qp *qp,
					const struct qhca_pkt *pkt)
{
	bool cmp_swap = pkt->op == QHCA_OP_CMP_SWAP;
	enum qhca_mem_status status;
	struct qhca_mem_req req;
	enum qhca_verdict verdict;
	uint64_t orig;

	if (qp->r_op != QHCA_RMSG_NONE ||
	    !(qp->access & QHCA_ACCESS_REMOTE_ATOMIC) ||
	    !(hca->features & QHCA_FEAT_ATOMIC) ||
	    !resource_free(qp) || pkt->va & 7)
		return QHCA_V_INVALID;
	remote_req(qp, &req, pkt->va, 8, pkt->rkey,
		   QHCA_ACCESS_REMOTE_ATOMIC);
	status = qhca_mem_atomic(hca, &req, cmp_swap ? QHCA_ATOMIC_CMP_SWAP :
						       QHCA_ATOMIC_FETCH_ADD,
				 pkt->compare, pkt->swap_add, &orig);
	if (status == QHCA_MEM_FAULT)
		return write_fault(hca, qp, QHCA_FAULT_ATOMIC, 0, 8,
				   QHCA_V_ACCESS);
	verdict = remote_verdict(status);
	if (verdict != QHCA_V_ACCEPT)
		return verdict;
	new_resource(qp, QHCA_RES_ATOMIC, pkt)->value = orig;
	request_done(qp, 1, true);
	qhca_sched_work(hca, qp->qpn, QHCA_WORK_RESPOND);
	return QHCA_V_ACCEPT;
}

/* ---- ATOMIC WRITE and FLUSH (IBTA A19) */

static void place_done(struct qhca_hca *hca, struct qhca_qp *qp,
		       const struct qhca_pkt *pkt)
{
	new_resource(qp, QHCA_RES_PLACE, pkt);
	request_done(qp, 1, true);
	qhca_sched_work(hca, qp->qpn, QHCA_WORK_RESPOND);
}

static enum qhca_verdict request_atomic_write(struct qhca_hca *hca,
					      struct qhca_qp *qp,
					      const struct qhca_pkt *pkt)
{
	enum qhca_mem_status status;
	enum qhca_verdict verdict;
	struct qhca_mem_req req;

	if (qp->r_op != QHCA_RMSG_NONE ||
	    !(qp->access & QHCA_ACCESS_REMOTE_WRITE) ||
	    !(hca->features & QHCA_FEAT_ATOMIC_WRITE) ||
	    !resource_left(qp) || pkt->dma_len != 8 || pkt->payload_len != 8 ||
	    pkt->va & 7)
		return QHCA_V_INVALID;
	remote_req(qp, &req, pkt->va, 8, pkt->rkey, QHCA_ACCESS_REMOTE_WRITE);
	status = qhca_mem_atomic(hca, &req, QHCA_ATOMIC_WRITE, 0,
				 get_le64(pkt->payload), NULL);
	if (status == QHCA_MEM_FAULT)
		return write_fault(hca, qp, QHCA_FAULT_RDMA_W, 0, 8,
				   QHCA_V_ACCESS);
	verdict = remote_verdict(status);
	if (verdict == QHCA_V_ACCEPT)
		place_done(hca, qp, pkt);
	return verdict;
}

/* What came before has been written to memory, where all see it. */
static enum qhca_verdict request_flush(struct qhca_hca *hca,
				       struct qhca_qp *qp,
				       const struct qhca_pkt *pkt)
{
	uint32_t type = QHCA_GET(QHCA_FETH_TYPE, pkt->feth);
	uint32_t level = QHCA_GET(QHCA_FETH_LEVEL, pkt->feth);
	enum qhca_verdict verdict;
	struct qhca_mem_req req;
	uint32_t access = 0;

	if (type & QHCA_FLUSH_GLOBAL)
		access |= QHCA_ACCESS_FLUSH_GLOBAL;
	if (type & QHCA_FLUSH_PERSISTENT)
		access |= QHCA_ACCESS_FLUSH_PERSISTENT;
	if (qp->r_op != QHCA_RMSG_NONE || access & ~qp->access ||
	    !(hca->features & QHCA_FEAT_FLUSH) || !resource_left(qp) ||
	    !type || type & ~QHCA_FLUSH_TYPES || level > QHCA_FLUSH_REGION)
		return QHCA_V_INVALID;
	remote_req(qp, &req, pkt->va, pkt->dma_len, pkt->rkey, access);
	req.whole = level == QHCA_FLUSH_REGION;
	verdict = remote_verdict(qhca_mem_check_key(hca, &req));
	if (verdict == QHCA_V_ACCEPT)
		place_done(hca, qp, pkt);
	return verdict;
}

/* ---- duplicates */

static struct qhca_resource *find_resource(struct qhca_qp *qp,
					   const struct qhca_pkt *pkt)
{
	for (unsigned int i = 0; i < QHCA_MAX_RD_ATOMIC; i++) {
		struct qhca_resource *r = &qp->res[i];
		uint32_t index = (pkt->psn - r->psn) & QHCA_PSN_MASK;
		uint64_t skip = (uint64_t)index * qp->mtu;

		if (r->type == QHCA_RES_ATOMIC && !index &&
		    pkt->what & QHCA_H_ATOMIC)
			return r;
		if (r->type == QHCA_RES_PLACE && !index &&
		    (pkt->op == QHCA_OP_ATOMIC_WRITE ||
		     pkt->op == QHCA_OP_FLUSH))
			return r;
		/* the tail of the READ, as whoever misses it asks for it */
		if (r->type == QHCA_RES_READ &&
		    pkt->op == QHCA_OP_READ_REQ &&
		    index < qhca_packets(r->value, qp->mtu) &&
		    pkt->rkey == r->rkey && pkt->va == r->addr + skip &&
		    pkt->dma_len == r->value - skip)
			return r;
	}
	return NULL;
}

static void replay(struct qhca_hca *hca, struct qhca_qp *qp,
		   const struct qhca_pkt *pkt)
{
	struct qhca_resource *r = find_resource(qp, pkt);

	if (!r)
		return;
	if (r->flags & QHCA_RES_F_PENDING) {
		/* what is yet to be sent need not be sent twice */
		if (!qhca_psn_before(pkt->psn, r->next))
			return;
	} else {
		r->flags = QHCA_RES_F_PENDING | QHCA_RES_F_REPLAY;
		qp->res_pending++;
	}
	r->start = r->next = pkt->psn;
	qhca_sched_work(hca, qp->qpn, QHCA_WORK_RESPOND);
}

/*
 * The PSN with which a duplicate SEND or WRITE is acknowledged: the last one
 * completed, but not beyond a READ, atomic, ... that followed it, since the peer
 * who repeats this will ask for that answer again, and an ACK past it would
 * tell him that it was lost.
 */
static uint32_t duplicate_ack_psn(const struct qhca_qp *qp, uint32_t psn)
{
	uint32_t ack = qhca_psn_add(qp->r_psn, QHCA_PSN_MASK);

	for (unsigned int i = 0; i < QHCA_MAX_RD_ATOMIC; i++) {
		const struct qhca_resource *r = &qp->res[i];

		if (r->type && qhca_psn_before(psn, r->psn) &&
		    !qhca_psn_before(ack, r->psn))
			ack = qhca_psn_add(r->psn, QHCA_PSN_MASK);
	}
	return ack;
}

static void duplicate(struct qhca_hca *hca, struct qhca_qp *qp,
		      const struct qhca_pkt *pkt)
{
	qhca_count(hca, QHCA_CNT_duplicate_requests);
	/* the peer went back: a gap after this is a new one */
	if (!(qp->r_flags & QHCA_RF_NAK))
		qp->r_flags &= ~QHCA_RF_NAK_SENT;
	if (pkt->what & (QHCA_OPF_SEND | QHCA_OPF_WRITE))
		owe_ack(hca, qp, duplicate_ack_psn(qp, pkt->psn));
	else
		replay(hca, qp, pkt);
}

/* ---- a page that is not to be had */

void qhca_request_fault_failed(struct qhca_hca *hca, struct qhca_qp *qp,
			       enum qhca_fault_cause cause)
{
	enum qhca_verdict verdict = QHCA_V_ACCESS;

	if (cause == QHCA_FAULT_RECV) {
		if (!(qp->r_flags & QHCA_RF_RWQE))
			return;
		verdict = need_rwqe(hca, qp);	/* copied anew if it was lost */
		if (verdict == QHCA_V_ACCEPT)
			verdict = receive_error(hca, qp, QHCA_WC_LOC_PROT_ERR,
						QHCA_V_OPERATION);
		if (qp->state == QHCA_QPS_ERR)
			return;
	}
	refuse(hca, qp, verdict);
}

/* ---- XRC */

/*
 * Each request names an SRQ, whose protection domain is that of all it reaches
 * (IBTA A14); a message stays with the SRQ that it began with.
 */
static bool find_srq(struct qhca_hca *hca, struct qhca_qp *qp,
		     const struct qhca_pkt *pkt)
{
	bool begun = qp->r_op != QHCA_RMSG_NONE || qp->r_flags & QHCA_RF_RWQE;
	struct qhca_xsrq x;

	if (!qhca_srq_xrc(hca, pkt->xrc_srqn, qp->xrcd, &x) ||
	    (begun && x.token != qp->r_srq))
		return false;
	qp->r_srq = x.token;
	qp->pd = x.pd;
	return true;
}

/* ---- entry */

enum qhca_verdict qhca_request_execute(struct qhca_hca *hca,
				       struct qhca_qp *qp,
				       const struct qhca_pkt *pkt)
{
	if (pkt->what & QHCA_OPF_LAST)
		qhca_linger_heard(hca, qp->qpn);
	if (qp->type == QHCA_QPT_XRC_TGT && !find_srq(hca, qp, pkt))
		return QHCA_V_INVALID;
	if (pkt->what & QHCA_OPF_SEND)
		return request_send(hca, qp, pkt);
	if (pkt->what & QHCA_OPF_WRITE)
		return request_write(hca, qp, pkt);
	if (pkt->op == QHCA_OP_READ_REQ)
		return request_read(hca, qp, pkt);
	if (pkt->what & QHCA_H_ATOMIC)
		return request_atomic(hca, qp, pkt);
	if (pkt->op == QHCA_OP_ATOMIC_WRITE)
		return request_atomic_write(hca, qp, pkt);
	if (pkt->op == QHCA_OP_FLUSH)
		return request_flush(hca, qp, pkt);
	return QHCA_V_INVALID;
}

void qhca_request_rx(struct qhca_hca *hca, struct qhca_qp *qp,
		     const struct qhca_pkt *pkt)
{
	int32_t ahead = qhca_psn_diff(pkt->psn, qp->r_psn);
	enum qhca_verdict verdict;

	if (qp->r_flags & QHCA_RF_DEAD)
		return;
	qhca_qp_dirty(hca, qp);
	if (ahead > 0) {
		qhca_count(hca, QHCA_CNT_out_of_sequence);
		if (!(qp->r_flags & QHCA_RF_NAK_SENT))
			owe_nak(hca, qp, QHCA_NAK_SEQ);
		return;
	}
	if (ahead < 0) {
		duplicate(hca, qp, pkt);
		return;
	}
	/* what a NAK not sent yet would ask for is here */
	qp->r_flags &= ~(QHCA_RF_NAK | QHCA_RF_NAK_SENT);
	if (request_waits(qp)) {
		qhca_fault_coalesce(hca);
		refuse(hca, qp, QHCA_V_FAULT_AGAIN);
		return;
	}
	verdict = qhca_request_execute(hca, qp, pkt);
	if (qp->state == QHCA_QPS_ERR)
		return;
	if (verdict != QHCA_V_ACCEPT) {
		refuse(hca, qp, verdict);
		return;
	}
	if (!(pkt->what & (QHCA_OPF_SEND | QHCA_OPF_WRITE)))
		return;
	if (pkt->ack_req || ++qp->r_unacked >= QHCA_ACK_EVERY)
		owe_ack(hca, qp, pkt->psn);
}
