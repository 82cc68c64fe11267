/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Executing one request that is next in order, for RC, XRC and UC (IBTA 9.7.4,
 * 9.8.2).  A table states for each opcode what the request requires and which
 * function executes it.  Nothing of the QP's state changes before the packet is
 * accepted, so that a packet refused with an RNR NAK can come again.
 */
#include "transport/transport.h"

/* ---- verdicts */

/* Complete the receive WQE in progress with the error @status. */
static enum hca_verdict receive_error(struct hca_fn *fn,
				      struct hca_qp *qp, uint8_t status,
				      enum hca_verdict verdict)
{
	struct qhca_cqe cqe = { .status = status, .opcode = QHCA_CQE_RECV };

	/* UC drops the message and keeps the WQE for the next message. */
	if (qp->type == QHCA_QPT_UC && status == QHCA_WC_LOC_LEN_ERR)
		return verdict;
	put_le16(&cqe.vlan, HCA_VLAN_NONE);
	return hca_complete_recv(fn, qp, &cqe) ? verdict : HCA_V_OPERATION;
}

/*
 * A page is absent, so the responder waits for it.  @before and @want: see
 * hca_fault_raise(); @bad: the verdict if software has reported that the page
 * is unavailable.
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

/* ---- what several operations do */

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

enum hca_verdict hca_request_recv_failed(struct hca_fn *fn, struct hca_qp *qp,
					 enum qhca_fault_cause cause)
{
	/* The device reads the WQE again if an eviction has lost its copy. */
	enum hca_verdict verdict = need_rwqe(fn, qp);

	if (verdict != HCA_V_ACCEPT)
		return verdict;
	if (cause == QHCA_FAULT_RECV)
		return receive_error(fn, qp, QHCA_WC_LOC_PROT_ERR,
				     HCA_V_OPERATION);
	return receive_error(fn, qp, QHCA_WC_LOC_ACCESS_ERR, HCA_V_ACCESS);
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

/* The request has been executed, and the responder owes an answer. */
static struct hca_resource *owe_answer(struct hca_fn *fn, struct hca_qp *qp,
				       const struct hca_pkt *pkt,
				       uint8_t type, uint32_t psns)
{
	struct hca_resource *r = hca_resource_new(qp, type, pkt);

	request_done(qp, psns, true);
	hca_sched_work(fn, qp->qpn, HCA_WORK_RESPOND);
	return r;
}

static void remote_req(const struct hca_qp *qp, struct hca_mem_req *req,
		       uint64_t addr, uint64_t len, uint32_t rkey,
		       uint32_t access)
{
	*req = (struct hca_mem_req){
		.addr = addr, .len = len, .key = rkey, .pd = qp->pd,
		.access = access, .qpn = qp->qpn, .remote = true,
	};
}

/* ---- SEND */

static enum hca_verdict send_payload(struct hca_fn *fn, struct hca_qp *qp,
				     const struct hca_pkt *pkt, uint32_t done)
{
	enum hca_verdict verdict;

	if (done > HCA_MAX_MSG_SIZE - pkt->payload_len)
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

static enum hca_verdict execute_send(struct hca_fn *fn, struct hca_qp *qp,
				     const struct hca_pkt *pkt)
{
	bool last = pkt->what & HCA_OPF_LAST;
	uint32_t done = pkt->what & HCA_OPF_FIRST ? 0 : qp->r_len;
	enum hca_verdict verdict = send_payload(fn, qp, pkt, done);

	if (verdict != HCA_V_ACCEPT)
		return verdict;
	if (pkt->what & HCA_H_IETH &&
	    hca_mem_remote_inv(fn, qp->pd, qp->qpn, pkt->rkey) != HCA_MEM_OK)
		return receive_error(fn, qp, QHCA_WC_MW_BIND_ERR,
				     HCA_V_SILENT);	/* IBTA 9.9.6.3, class J */

	done += pkt->payload_len;
	/* r_psn moves after this, because a NAK carries the request's PSN. */
	if (last && !complete_recv(fn, qp, pkt, QHCA_CQE_RECV, done))
		return HCA_V_OPERATION;
	qp->r_len = done;
	qp->r_op = last ? HCA_RMSG_NONE : HCA_RMSG_SEND;
	request_done(qp, 1, last);
	return HCA_V_ACCEPT;
}

/* ---- WRITE */

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

	if (w->left > HCA_MAX_MSG_SIZE ||
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

static enum hca_verdict execute_write(struct hca_fn *fn, struct hca_qp *qp,
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
	enum hca_verdict verdict = write_payload(fn, qp, pkt, &w);

	if (verdict == HCA_V_ACCESS && pkt->what & HCA_H_IMM &&
	    qp->type != QHCA_QPT_UC)
		return receive_error(fn, qp, QHCA_WC_LOC_ACCESS_ERR, verdict);
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

static enum hca_verdict execute_read(struct hca_fn *fn, struct hca_qp *qp,
				     const struct hca_pkt *pkt)
{
	enum hca_verdict verdict;
	struct hca_resource *r;
	struct hca_mem_req req;

	remote_req(qp, &req, pkt->va, pkt->dma_len, pkt->rkey,
		   QHCA_ACCESS_REMOTE_READ);
	/* The device finds out whether pages are present when it responds. */
	verdict = remote_verdict(hca_mem_check(fn, &req));
	if (verdict != HCA_V_ACCEPT)
		return verdict;
	r = owe_answer(fn, qp, pkt, HCA_RES_READ,
		       hca_packets(pkt->dma_len, qp->mtu));
	r->value = pkt->dma_len;
	/* The first response belongs to the look-up just made. */
	r->flags |= HCA_RES_F_CHECKED;
	if (qp->type == QHCA_QPT_XRC_TGT)
		r->srq = qp->r_srq;
	return HCA_V_ACCEPT;
}

static enum hca_verdict execute_atomic(struct hca_fn *fn, struct hca_qp *qp,
				       const struct hca_pkt *pkt)
{
	bool cmp_swap = pkt->op == HCA_OP_CMP_SWAP;
	enum hca_mem_status status;
	enum hca_verdict verdict;
	struct hca_mem_req req;
	uint64_t orig;

	remote_req(qp, &req, pkt->va, 8, pkt->rkey,
		   QHCA_ACCESS_REMOTE_ATOMIC);
	status = hca_mem_atomic(fn, &req, cmp_swap ? HCA_ATOMIC_CMP_SWAP :
						     HCA_ATOMIC_FETCH_ADD,
				pkt->compare, pkt->swap_add, &orig);
	if (status == HCA_MEM_FAULT)
		return write_fault(fn, qp, QHCA_FAULT_ATOMIC, 0, 8,
				   HCA_V_ACCESS);
	verdict = remote_verdict(status);
	if (verdict == HCA_V_ACCEPT)
		owe_answer(fn, qp, pkt, HCA_RES_ATOMIC, 1)->value = orig;
	return verdict;
}

/* ---- ATOMIC WRITE and FLUSH (IBTA A19) */

static enum hca_verdict execute_atomic_write(struct hca_fn *fn,
					     struct hca_qp *qp,
					     const struct hca_pkt *pkt)
{
	enum hca_mem_status status;
	enum hca_verdict verdict;
	struct hca_mem_req req;

	remote_req(qp, &req, pkt->va, 8, pkt->rkey, QHCA_ACCESS_REMOTE_WRITE);
	status = hca_mem_atomic(fn, &req, HCA_ATOMIC_WRITE, 0,
				get_le64(pkt->payload), NULL);
	if (status == HCA_MEM_FAULT)
		return write_fault(fn, qp, QHCA_FAULT_RDMA_W, 0, 8,
				   HCA_V_ACCESS);
	verdict = remote_verdict(status);
	if (verdict == HCA_V_ACCEPT)
		owe_answer(fn, qp, pkt, HCA_RES_PLACE, 1);
	return verdict;
}

/*
 * The device has written all earlier requests to memory, where everybody sees
 * them, so it only has to check the range and the right.  The type of a FLUSH
 * decides which right that is.
 */
static enum hca_verdict execute_flush(struct hca_fn *fn,
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
	if (access & ~qp->access || !type || type & ~QHCA_FLUSH_TYPES ||
	    level > QHCA_FLUSH_REGION)
		return HCA_V_INVALID;
	remote_req(qp, &req, pkt->va, pkt->dma_len, pkt->rkey, access);
	req.whole = level == QHCA_FLUSH_REGION;
	verdict = remote_verdict(hca_mem_check_key(fn, &req));
	if (verdict == HCA_V_ACCEPT)
		owe_answer(fn, qp, pkt, HCA_RES_PLACE, 1);
	return verdict;
}

/* ---- rules */

enum length_rule {
	LENGTH_PLACE,		/* payload: as its place in the message demands */
	LENGTH_READ,		/* RETH: the largest message at most */
	LENGTH_8,		/* RETH and payload: 8 bytes */
	LENGTH_ANY,
};

/*
 * What an operation requires before the device looks at a queue or at memory,
 * and what it does.
 */
struct request_rule {
	enum hca_verdict (*execute)(struct hca_fn *fn, struct hca_qp *qp,
				    const struct hca_pkt *pkt);
	uint64_t feature;		/* QHCA_FEAT_* */
	uint32_t access;		/* rights that the QP must grant */
	uint8_t message;		/* enum hca_rmsg; NONE: a packet by itself */
	uint8_t resource;		/* HCA_RES_* for its answer */
	uint8_t length;			/* enum length_rule */
	uint8_t align;			/* of the remote address; 0: any */
	bool takes_rwqe;
};

#define SEND_RULE { \
	.execute = execute_send, .message = HCA_RMSG_SEND, \
	.length = LENGTH_PLACE, .takes_rwqe = true, \
}
#define WRITE_RULE(imm) { \
	.execute = execute_write, .access = QHCA_ACCESS_REMOTE_WRITE, \
	.message = HCA_RMSG_WRITE, .length = LENGTH_PLACE, \
	.takes_rwqe = (imm), \
}
#define ATOMIC_RULE { \
	.execute = execute_atomic, .access = QHCA_ACCESS_REMOTE_ATOMIC, \
	.feature = QHCA_FEAT_ATOMIC, .resource = HCA_RES_ATOMIC, \
	.length = LENGTH_ANY, .align = 8, \
}

static const struct request_rule rules[HCA_NUM_OPS] = {
	[HCA_OP_SEND_FIRST] = SEND_RULE,
	[HCA_OP_SEND_MIDDLE] = SEND_RULE,
	[HCA_OP_SEND_LAST] = SEND_RULE,
	[HCA_OP_SEND_LAST_IMM] = SEND_RULE,
	[HCA_OP_SEND_LAST_INV] = SEND_RULE,
	[HCA_OP_SEND_ONLY] = SEND_RULE,
	[HCA_OP_SEND_ONLY_IMM] = SEND_RULE,
	[HCA_OP_SEND_ONLY_INV] = SEND_RULE,
	[HCA_OP_WRITE_FIRST] = WRITE_RULE(false),
	[HCA_OP_WRITE_MIDDLE] = WRITE_RULE(false),
	[HCA_OP_WRITE_LAST] = WRITE_RULE(false),
	[HCA_OP_WRITE_LAST_IMM] = WRITE_RULE(true),
	[HCA_OP_WRITE_ONLY] = WRITE_RULE(false),
	[HCA_OP_WRITE_ONLY_IMM] = WRITE_RULE(true),
	[HCA_OP_READ_REQ] = {
		.execute = execute_read, .access = QHCA_ACCESS_REMOTE_READ,
		.resource = HCA_RES_READ, .length = LENGTH_READ,
	},
	[HCA_OP_CMP_SWAP] = ATOMIC_RULE,
	[HCA_OP_FETCH_ADD] = ATOMIC_RULE,
	[HCA_OP_ATOMIC_WRITE] = {
		.execute = execute_atomic_write,
		.access = QHCA_ACCESS_REMOTE_WRITE,
		.feature = QHCA_FEAT_ATOMIC_WRITE, .resource = HCA_RES_PLACE,
		.length = LENGTH_8, .align = 8,
	},
	[HCA_OP_FLUSH] = {
		.execute = execute_flush, .feature = QHCA_FEAT_FLUSH,
		.resource = HCA_RES_PLACE, .length = LENGTH_ANY,
	},
};

uint8_t hca_request_resource(const struct hca_pkt *pkt)
{
	return rules[pkt->op].resource;
}

/* Is the packet in its place: a part of message @msg, begun or not? */
static bool in_sequence(const struct hca_qp *qp, const struct hca_pkt *pkt,
			uint8_t msg)
{
	if (pkt->what & HCA_OPF_FIRST)
		return qp->r_op == HCA_RMSG_NONE;
	return qp->r_op == msg;
}

static bool is_aligned(const struct hca_pkt *pkt, uint8_t align)
{
	return !align || !(pkt->va & (align - 1));
}

/* Lengths that are wrong whether or not a receive WQE exists. */
static bool length_permitted(const struct hca_pkt *pkt, uint8_t rule)
{
	switch (rule) {
	case LENGTH_READ:
		return pkt->dma_len <= HCA_MAX_MSG_SIZE;
	case LENGTH_8:
		return pkt->dma_len == 8 && pkt->payload_len == 8;
	default:
		return true;
	}
}

static bool is_permitted(const struct hca_fn *fn, const struct hca_qp *qp,
			 const struct hca_pkt *pkt,
			 const struct request_rule *rule)
{
	return in_sequence(qp, pkt, rule->message) &&
	       !(rule->access & ~qp->access) &&
	       !(rule->feature & ~fn->features) &&
	       hca_resource_available(qp, rule->resource) &&
	       is_aligned(pkt, rule->align) &&
	       length_permitted(pkt, rule->length);
}

/* Is the payload as long as its place in the message demands? */
static bool fits_place(const struct hca_qp *qp, const struct hca_pkt *pkt)
{
	if (!(pkt->what & HCA_OPF_LAST))
		return pkt->payload_len == qp->mtu && !pkt->pad;
	return pkt->payload_len <= qp->mtu &&
	       (pkt->payload_len || pkt->what & HCA_OPF_FIRST);
}

/*
 * XRC: each request names an SRQ, whose protection domain is that of everything
 * the request reaches (IBTA A14).  A message stays with the SRQ that it began
 * with.
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

enum hca_verdict hca_request_execute(struct hca_fn *fn,
				     struct hca_qp *qp,
				     const struct hca_pkt *pkt)
{
	const struct request_rule *rule = &rules[pkt->op];
	enum hca_verdict verdict;

	if (pkt->what & HCA_OPF_LAST)
		hca_linger_message(fn, qp->qpn);
	if (qp->type == QHCA_QPT_XRC_TGT && !find_srq(fn, qp, pkt))
		return HCA_V_INVALID;
	if (!rule->execute || !is_permitted(fn, qp, pkt, rule))
		return HCA_V_INVALID;
	if (rule->takes_rwqe) {
		verdict = need_rwqe(fn, qp);
		if (verdict != HCA_V_ACCEPT)
			return verdict;
	}
	if (rule->length == LENGTH_PLACE && !fits_place(qp, pkt))
		return HCA_V_INVALID;
	return rule->execute(fn, qp, pkt);
}
