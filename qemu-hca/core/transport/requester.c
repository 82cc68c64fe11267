/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The send queue: packets out (IBTA 9.7.3, 9.7.5, 9.8).
 *
 * Each step sends the packet at the cursor, or executes the WQE there if it has
 * no packets; progress.c explains the cursor.
 *
 * UC, UD and raw packet QPs use the same code.  The device treats each packet of
 * theirs as acknowledged as soon as it has sent the packet.
 */
#include "transport/transport.h"

struct sender {
	struct hca_frame_to to;
	bool path_ok;			/* else packets are lost at once */
	unsigned int spent;
};

enum step { STEP_GO, STEP_IDLE, STEP_WAIT, STEP_BLOCKED, STEP_RATE };

/* The first WQE that must not be started. */
static uint32_t send_limit(const struct hca_qp *qp)
{
	return qp->state == QHCA_QPS_SQD ? qp->sq_max : qp->sq_pi;
}

/* ---- WQEs without packets */

/* WQEs without packets that ask_again() passes over before it gives up. */
#define ASK_BACK	8

/*
 * Send the newest packet before the WQE at the cursor again, since a last packet
 * that is sent again asks for an acknowledgement, and that covers all before it.
 */
static void ask_again(struct hca_fn *fn, struct hca_qp *qp)
{
	for (unsigned int i = 0; i < ASK_BACK && qp->sq_cur != qp->sq_ci; i++) {
		const struct hca_swqe_sum *sum =
			hca_requester_summary(fn, qp, qp->sq_cur - 1);

		if (!sum)
			break;		/* the fetch after the rewind reports this */
		qp->sq_cur--;
		qp->s_cur_psn = hca_psn_sub(qp->s_cur_psn, sum->packets);
		if (!sum->packets)
			continue;
		qp->s_psn = hca_psn_add(qp->s_cur_psn, sum->packets - 1);
		hca_qp_dirty(fn, qp);
		return;
	}
	hca_requester_rewind(fn, qp);
}

/*
 * The WQE at the cursor waits until all packets before it are acknowledged.  If
 * none of those asks for that, the newest of them does now.  There are none before
 * the oldest WQE, whatever the PSNs say.
 */
static enum step wait_for_acks(struct hca_fn *fn, struct hca_qp *qp,
			       enum step otherwise)
{
	if (hca_qp_is_reliable(qp) && qp->sq_cur != qp->sq_ci &&
	    hca_psn_before(qp->s_una, qp->s_cur_psn) &&
	    hca_psn_before(qp->s_asked, qp->s_cur_psn)) {
		ask_again(fn, qp);
		return STEP_GO;
	}
	return otherwise;
}

/* Report an error of the WQE at the cursor once all WQEs before it are done. */
static enum step local_error(struct hca_fn *fn, struct hca_qp *qp,
			     uint8_t status)
{
	if (qp->sq_cur != qp->sq_ci)
		return wait_for_acks(fn, qp, STEP_WAIT);
	/* No WQE before this one has a PSN left, so all of them are done. */
	if (qp->sq_max == qp->sq_cur)
		qp->sq_max++;
	hca_requester_fail(fn, qp, status, 0);
	return STEP_IDLE;
}

static enum hca_mem_status execute(struct hca_fn *fn, struct hca_qp *qp,
				   const struct hca_swqe *w)
{
	switch (w->opcode) {
	case QHCA_WQE_BIND_MW:
		return hca_mem_bind(fn, qp->pd, qp->qpn, &w->wire.bind);
	case QHCA_WQE_LOCAL_INV:
		return hca_mem_local_inv(fn, qp->pd, qp->qpn,
					 get_le32(&w->wire.imm));
	case QHCA_WQE_REG_MR:
		return hca_mem_reg(fn, qp->pd, qp->flags & QHCA_QP_KERNEL,
				   &w->wire.reg);
	default:
		return HCA_MEM_OK;
	}
}

/*
 * Is the page of the packet at the cursor unavailable?  An acknowledgement may
 * have made that packet unnecessary meanwhile.
 */
static bool fault_bad(struct hca_fn *fn, struct hca_qp *qp)
{
	uint32_t psn = qp->fault[HCA_FAULT_DIR_REQ].psn;

	if (qp->f_req != HCA_REQF_FAILED || hca_psn_before(qp->s_psn, psn))
		return false;
	if (qp->s_psn == psn)
		return true;
	hca_qp_enter(fn, qp, QHCA_PART_REQUESTER_FAULT, HCA_REQF_NONE);
	return false;
}

/*
 * A page of the list or of the nodes of a REG_MR is absent in stage 2: the WQE waits
 * as a packet does that waits for its payload.
 */
static enum step reg_fault(struct hca_fn *fn, struct hca_qp *qp)
{
	hca_fault_raise(fn, qp, QHCA_FAULT_GATHER, 0, 0);
	hca_requester_rearm(fn, qp);
	return STEP_WAIT;
}

static enum step local_op(struct hca_fn *fn, struct hca_qp *qp,
			  struct sender *s)
{
	const struct hca_swqe *w = &qp->cur;
	enum hca_mem_status status;

	if (qp->sq_cur == qp->sq_max) {		/* for the first time */
		if (qp->sq_cur - qp->sq_ci >= HCA_SEND_WQES)
			return wait_for_acks(fn, qp, STEP_WAIT);
		if (w->opcode == QHCA_WQE_LOCAL_INV && qp->sq_cur != qp->sq_ci)
			return wait_for_acks(fn, qp, STEP_WAIT);
		if (w->flags & QHCA_WQE_F_FENCE && qp->s_reads)
			return STEP_WAIT;
		if (fault_bad(fn, qp))
			return local_error(fn, qp, QHCA_WC_MW_BIND_ERR);
		status = execute(fn, qp, w);
		if (status == HCA_MEM_FAULT)
			return reg_fault(fn, qp);
		if (status != HCA_MEM_OK)
			return local_error(fn, qp, QHCA_WC_MW_BIND_ERR);
		qp->sq_max++;
	}
	hca_requester_summarise(qp, w);
	qp->sq_cur++;
	s->spent++;
	hca_requester_retire(fn, qp, qp->s_una);
	return STEP_GO;
}

/* ---- packets */

static uint8_t wire_op(const struct hca_swqe *w, bool first, bool last)
{
	static const uint8_t send[] = {
		HCA_OP_SEND_MIDDLE, HCA_OP_SEND_LAST,
		HCA_OP_SEND_FIRST, HCA_OP_SEND_ONLY,
	};
	static const uint8_t write[] = {
		HCA_OP_WRITE_MIDDLE, HCA_OP_WRITE_LAST,
		HCA_OP_WRITE_FIRST, HCA_OP_WRITE_ONLY,
	};
	unsigned int place = first << 1 | last;

	switch (w->opcode) {
	case QHCA_WQE_READ:
		return HCA_OP_READ_REQ;
	case QHCA_WQE_CMP_SWAP:
		return HCA_OP_CMP_SWAP;
	case QHCA_WQE_FETCH_ADD:
		return HCA_OP_FETCH_ADD;
	case QHCA_WQE_ATOMIC_WRITE:
		return HCA_OP_ATOMIC_WRITE;
	case QHCA_WQE_FLUSH:
		return HCA_OP_FLUSH;
	case QHCA_WQE_SEND_INV:
		if (last)
			return first ? HCA_OP_SEND_ONLY_INV :
				       HCA_OP_SEND_LAST_INV;
		return send[place];
	default:
		/* The opcode with immediate data follows the one without. */
		return (w->kind & HCA_WK_SEND ? send : write)[place] +
		       (last && w->kind & HCA_WK_IMM);
	}
}

static void fill_headers(const struct hca_swqe *w, uint64_t offset,
			 struct hca_pkt *pkt)
{
	memcpy(pkt->imm, &w->wire.imm, 4);
	switch (w->opcode) {
	case QHCA_WQE_SEND_INV:
		pkt->rkey = get_le32(&w->wire.imm);
		break;
	case QHCA_WQE_WRITE:
	case QHCA_WQE_WRITE_IMM:
	case QHCA_WQE_READ:
	case QHCA_WQE_ATOMIC_WRITE:
		pkt->va = get_le64(&w->wire.rdma.raddr) + offset;
		pkt->rkey = get_le32(&w->wire.rdma.rkey);
		pkt->dma_len = w->length - offset;
		break;
	case QHCA_WQE_FLUSH:
		pkt->va = get_le64(&w->wire.flush.raddr);
		pkt->rkey = get_le32(&w->wire.flush.rkey);
		pkt->dma_len = w->length;
		pkt->feth = QHCA_PUT(HCA_FETH_TYPE, w->wire.flush.type) |
			    QHCA_PUT(HCA_FETH_LEVEL, w->wire.flush.level);
		break;
	case QHCA_WQE_CMP_SWAP:
	case QHCA_WQE_FETCH_ADD:
		pkt->va = get_le64(&w->wire.atomic.raddr);
		pkt->rkey = get_le32(&w->wire.atomic.rkey);
		pkt->swap_add = get_le64(&w->wire.atomic.swap_add);
		pkt->compare = get_le64(&w->wire.atomic.compare);
		break;
	default:
		break;
	}
}

/*
 * LOCAL_INV and errors wait until all earlier packets are acknowledged.  The last of
 * those packets therefore asks for an acknowledgement, since the device would
 * otherwise have to send it again.  It asks before any WQE without packets, since
 * LOCAL_INV may follow that WQE.
 */
static bool next_may_wait(struct hca_fn *fn, struct hca_qp *qp)
{
	struct hca_swqe *w = &qp->ahead;
	uint32_t num = qp->sq_cur + 1;

	if ((!w->valid || w->num != num) && hca_swqe_fetch(fn, qp, num, w))
		return false;		/* the step for that WQE reports it */
	return w->error || w->kind & HCA_WK_LOCAL;
}

/* Must the packet ask for an acknowledgement? */
static bool ask(struct hca_fn *fn, struct hca_qp *qp,
		const struct hca_swqe *w, bool last)
{
	if (w->kind & HCA_WK_RESPONSE)
		return true;
	if (last && (w->flags & QHCA_WQE_F_SIGNALED ||
		     qp->flags & QHCA_QP_SIG_ALL ||
		     qp->sq_cur + 1 == send_limit(qp) ||
		     hca_psn_before(qp->s_psn, qp->s_max)))
		return true;
	if (hca_psn_diff(qp->s_psn, qp->s_asked) >= HCA_ACK_EVERY - 1)
		return true;
	return last && next_may_wait(fn, qp);
}

/* May the packet at the cursor go now? */
static enum step may_send(struct hca_fn *fn, struct hca_qp *qp)
{
	const struct hca_swqe *w = &qp->cur;
	uint32_t flying = (qp->s_psn - qp->s_una) & HCA_PSN_MASK;

	/* Beyond that only if software makes WQEs that were begun into others. */
	if (qp->sq_cur == qp->sq_max &&
	    qp->sq_cur - qp->sq_ci >= HCA_SEND_BEGUN)
		return STEP_WAIT;
	if (!hca_qp_is_reliable(qp))
		return STEP_GO;
	if (w->flags & QHCA_WQE_F_FENCE && qp->s_reads &&
	    qp->s_psn == qp->s_cur_psn)
		return STEP_WAIT;
	if (!(w->kind & HCA_WK_RESPONSE))
		return flying < HCA_SEND_WINDOW ? STEP_GO : STEP_WAIT;
	if (!qp->sw.max_rd_atomic)
		return local_error(fn, qp, QHCA_WC_LOC_QP_OP_ERR);
	if (qp->s_reads >= qp->sw.max_rd_atomic ||
	    flying + w->packets > HCA_PSN_HALF)
		return STEP_WAIT;
	return STEP_GO;
}

/* The packet of @psns PSNs at the cursor has been sent. */
static void advance_cursor(struct hca_fn *fn, struct hca_qp *qp, uint32_t psns,
			   bool last, bool asked)
{
	if (hca_psn_before(qp->s_psn, qp->s_max))
		hca_qp_count(fn, qp, QHCA_CNT_retransmitted_packets);
	if (qp->sq_max == qp->sq_cur) {
		hca_requester_summarise(qp, &qp->cur);
		qp->sq_max++;
	}
	qp->s_psn = hca_psn_add(qp->s_psn, psns);
	if (asked)
		qp->s_asked = qp->s_psn;
	if (((qp->s_psn - qp->s_una) & HCA_PSN_MASK) >
	    ((qp->s_max - qp->s_una) & HCA_PSN_MASK))
		qp->s_max = qp->s_psn;
	if (last) {
		if (qp->cur.kind & HCA_WK_RESPONSE)
			qp->s_reads++;
		qp->sq_cur++;
		qp->s_cur_psn = qp->s_psn;
	}
	hca_qp_dirty(fn, qp);
}

/* A page of the payload is absent: this packet and all later ones wait. */
static enum step gather_fault(struct hca_fn *fn, struct hca_qp *qp,
			      uint32_t offset)
{
	hca_fault_raise(fn, qp, QHCA_FAULT_GATHER, offset,
			qp->cur.length - offset);
	hca_requester_rearm(fn, qp);
	return STEP_WAIT;
}

static enum step put_packet(struct hca_fn *fn, struct hca_qp *qp,
			    struct sender *s, const struct hca_pkt *pkt,
			    uint32_t offset)
{
	enum hca_mem_status status;
	struct hca_frame f;

	if (!s->path_ok)
		return STEP_GO;
	if (!hca_frame_begin(fn, &s->to, pkt, qp->qpn, &f))
		return STEP_BLOCKED;
	status = hca_swqe_gather(fn, qp, &qp->cur, offset, f.payload,
				 pkt->payload_len);
	if (status == HCA_MEM_FAULT)
		return gather_fault(fn, qp, offset);
	if (status != HCA_MEM_OK)
		return local_error(fn, qp, QHCA_WC_LOC_PROT_ERR);
	fn->hca->wire.tx_no_loop = qp->flags & QHCA_QP_MCAST_NO_LOOP;
	hca_qp_frame_end(fn, qp, &s->to, &f);
	return STEP_GO;
}

/* A whole frame of a raw packet QP. */
static enum step send_frame(struct hca_fn *fn, struct hca_qp *qp,
			    struct sender *s)
{
	uint32_t len = qp->cur.length;
	uint32_t pad = len < HCA_MIN_FRAME ? HCA_MIN_FRAME - len : 0;
	uint8_t *frame = hca_tx_begin(fn, len + pad);
	enum hca_mem_status status;

	if (!frame)
		return STEP_BLOCKED;
	status = hca_swqe_gather(fn, qp, &qp->cur, 0, frame, len);
	if (status == HCA_MEM_FAULT)
		return gather_fault(fn, qp, 0);
	if (status != HCA_MEM_OK)
		return local_error(fn, qp, QHCA_WC_LOC_PROT_ERR);
	memset(frame + len, 0, pad);
	hca_tx_raw(fn, len + pad);
	s->spent++;
	advance_cursor(fn, qp, 1, true, false);
	hca_requester_retire(fn, qp, qp->s_psn);
	return STEP_GO;
}

/*
 * May the packet go in a bundle?  What was lost may have been so for the size of its
 * bundle, and what is lost without a timer never goes again.
 */
static bool may_be_joined(const struct hca_qp *qp)
{
	if (!hca_qp_is_reliable(qp))
		return true;
	return qp->sw.timeout && !(qp->s_flags & HCA_SF_AGAIN &&
				   hca_psn_before(qp->s_psn, qp->s_max));
}

static enum step send_packet(struct hca_fn *fn, struct hca_qp *qp,
			     struct sender *s)
{
	const struct hca_swqe *w = &qp->cur;
	uint32_t index = (qp->s_psn - qp->s_cur_psn) & HCA_PSN_MASK;
	bool response = w->kind & HCA_WK_RESPONSE;
	bool last = response || index + 1 == w->packets;
	uint64_t offset = (uint64_t)index * qp->mtu;
	uint32_t old_cur = qp->sq_cur;
	HCA_UNINITIALIZED struct hca_pkt pkt;
	enum step step;

	if (index >= w->packets) {	/* software has changed the ring */
		hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
		return STEP_IDLE;
	}
	pkt.opcode = hca_service(qp) | wire_op(w, !index, last);
	pkt.solicited = last && w->flags & QHCA_WQE_F_SOLICITED &&
			(w->kind & HCA_WK_SEND || w->kind & HCA_WK_IMM);
	pkt.ack_req = hca_qp_is_reliable(qp) && ask(fn, qp, w, last);
	pkt.pkey = HCA_PKEY_DEFAULT;
	pkt.dest_qpn = qp->dest_qpn;
	pkt.psn = qp->s_psn;
	pkt.xrc_srqn = get_le32(&w->wire.xrc_srqn);
	pkt.payload_len = !hca_swqe_has_data(w) ? 0 :
			  last ? w->length - offset : qp->mtu;
	fill_headers(w, offset, &pkt);
	s->to.left = pkt.payload_len && may_be_joined(qp) ? w->length - offset : 0;
	if (hca_type_is_datagram(qp->type)) {
		s->to.len = 0;
		s->path_ok = hca_datagram_address(fn, qp, w, &s->to.path, &pkt);
		if (!s->path_ok)
			return local_error(fn, qp, QHCA_WC_LOC_QP_OP_ERR);
	}

	step = put_packet(fn, qp, s, &pkt, offset);
	if (step != STEP_GO || qp->sq_cur != old_cur || qp->s_psn != pkt.psn)
		return step;	/* not sent, or an error has moved the cursor */
	s->spent++;
	advance_cursor(fn, qp, response ? w->packets - index : 1, last,
		       pkt.ack_req);
	if (!hca_qp_is_reliable(qp))
		hca_requester_retire(fn, qp, qp->s_psn);
	else if (qp->s_state != HCA_REQ_ACK_WAIT)
		hca_requester_rearm(fn, qp);
	return STEP_GO;
}

/* Read the WQE at the cursor, unless next_may_wait() has read it already. */
static int load_cur(struct hca_fn *fn, struct hca_qp *qp)
{
	if (!qp->ahead.valid || qp->ahead.num != qp->sq_cur)
		return hca_swqe_fetch(fn, qp, qp->sq_cur, &qp->cur);
	qp->cur = qp->ahead;
	return 0;
}

static enum step do_step(struct hca_fn *fn, struct hca_qp *qp,
			 struct sender *s)
{
	struct hca_swqe *w = &qp->cur;
	enum step step;

	if (!hca_requester_may_run(qp))
		return STEP_IDLE;
	if (hca_requester_fault_holds(qp, qp->s_psn))
		return STEP_WAIT;
	if (qp->sq_cur == send_limit(qp))
		return wait_for_acks(fn, qp, STEP_IDLE);
	if ((!w->valid || w->num != qp->sq_cur) && load_cur(fn, qp)) {
		hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
		return STEP_IDLE;
	}
	if (w->error)
		return local_error(fn, qp, w->error);
	if (w->kind & HCA_WK_LOCAL)
		return local_op(fn, qp, s);
	if (fault_bad(fn, qp))
		return local_error(fn, qp, QHCA_WC_LOC_PROT_ERR);
	if (qp->type == QHCA_QPT_RAW)
		return hca_rate_waits(fn) ? STEP_RATE : send_frame(fn, qp, s);
	step = may_send(fn, qp);
	/* An error may have moved the cursor back to a packet that asks for an ACK. */
	if (step != STEP_GO || qp->sq_cur != w->num)
		return step;
	return hca_rate_waits(fn) ? STEP_RATE : send_packet(fn, qp, s);
}

static void check_drained(struct hca_fn *fn, struct hca_qp *qp)
{
	if (qp->state != QHCA_QPS_SQD ||
	    !(qp->s_flags & HCA_SF_DRAINING) || qp->sq_ci != qp->sq_max)
		return;
	qp->s_flags &= ~HCA_SF_DRAINING;
	hca_qp_dirty(fn, qp);
	if (qp->flags & QHCA_QP_SQD_EVENT)
		hca_event(fn, QHCA_EVENT_QP_SQ_DRAINED, qp->qpn, 0);
}

enum hca_send_stop hca_requester_run(struct hca_fn *fn,
				     struct hca_qp *qp, unsigned int budget,
				     unsigned int *spent)
{
	static const enum hca_send_stop stop[] = {
		[STEP_GO] = HCA_SEND_BUDGET, [STEP_IDLE] = HCA_SEND_IDLE,
		[STEP_WAIT] = HCA_SEND_WAIT,
		[STEP_BLOCKED] = HCA_SEND_BLOCKED, [STEP_RATE] = HCA_SEND_RATE,
	};
	HCA_UNINITIALIZED struct sender s;
	enum step step = STEP_GO;

	s.spent = 0;
	s.path_ok = false;
	hca_frame_to_start(&s.to);
	if (!hca_type_is_framed(qp->type))
		s.path_ok = hca_path_of_av(fn, &qp->sw.av, qp->qpn,
					   qp->dest_qpn, &s.to.path);
	while (step == STEP_GO && hca_frame_goes_on(&s.to, s.spent, budget))
		step = do_step(fn, qp, &s);
	/*
	 * If the last packet has taken the rest of the budget, this finds out that nothing is
	 * left, and spares the QP a turn.  Where software does not ring, it has that turn, which
	 * reads sq_pi: the later it comes, the more it finds.
	 */
	if (step == STEP_GO && qp->sq_cur == send_limit(qp) &&
	    !(qp->s_flags & HCA_SF_ACTIVE))
		step = do_step(fn, qp, &s);
	hca_frame_finish(fn, &s.to);
	if (step == STEP_RATE)
		hca_requester_held(fn, qp);
	check_drained(fn, qp);
	*spent += s.spent;
	return stop[step];
}
