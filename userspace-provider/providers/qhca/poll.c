/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Polling: ibv_poll_cq() and the ibv_start_poll() family over one reader of
 * completions.
 */
#include <errno.h>

#include "qhca.h"

/* Opcodes of send requests, by the device's opcode. */
static const uint8_t qhca_wc_opcode[QHCA_WQE_NUM_OPCODES] = {
	[QHCA_WQE_SEND]		= IBV_WC_SEND,
	[QHCA_WQE_SEND_IMM]	= IBV_WC_SEND,
	[QHCA_WQE_SEND_INV]	= IBV_WC_SEND,
	[QHCA_WQE_WRITE]	= IBV_WC_RDMA_WRITE,
	[QHCA_WQE_WRITE_IMM]	= IBV_WC_RDMA_WRITE,
	[QHCA_WQE_READ]		= IBV_WC_RDMA_READ,
	[QHCA_WQE_CMP_SWAP]	= IBV_WC_COMP_SWAP,
	[QHCA_WQE_FETCH_ADD]	= IBV_WC_FETCH_ADD,
	[QHCA_WQE_BIND_MW]	= IBV_WC_BIND_MW,
	[QHCA_WQE_LOCAL_INV]	= IBV_WC_LOCAL_INV,
	[QHCA_WQE_REG_MR]	= IBV_WC_DRIVER1,	/* kernel only */
	[QHCA_WQE_ATOMIC_WRITE]	= IBV_WC_ATOMIC_WRITE,
	[QHCA_WQE_FLUSH]	= IBV_WC_FLUSH,
	[QHCA_WQE_NOP]		= IBV_WC_DRIVER1,
};

static_assert((int)QHCA_CQE_RECV == (int)IBV_WC_RECV &&
	      (int)QHCA_CQE_RECV_RDMA_IMM == (int)IBV_WC_RECV_RDMA_WITH_IMM,
	      "receive opcodes differ");
static_assert((int)QHCA_WC_WR_FLUSH_ERR == (int)IBV_WC_WR_FLUSH_ERR &&
	      (int)QHCA_WC_RNR_RETRY_EXC_ERR == (int)IBV_WC_RNR_RETRY_EXC_ERR &&
	      (int)QHCA_WC_REM_ABORT_ERR == (int)IBV_WC_REM_ABORT_ERR &&
	      (int)QHCA_WC_GENERAL_ERR == (int)IBV_WC_GENERAL_ERR,
	      "completion statuses differ");

static enum ibv_wc_opcode cqe_opcode(const struct qhca_cqe *cqe)
{
	if (cqe->opcode < QHCA_WQE_NUM_OPCODES)
		return qhca_wc_opcode[cqe->opcode];
	return cqe->opcode;
}

static unsigned int cqe_wc_flags(const struct qhca_cqe *cqe)
{
	uint32_t flags = le32toh(cqe->flags);

	return (flags & QHCA_CQE_IMM ? IBV_WC_WITH_IMM : 0) |
	       (flags & QHCA_CQE_INV ? IBV_WC_WITH_INV : 0) |
	       (flags & QHCA_CQE_GRH ? IBV_WC_GRH : 0);
}

/*
 * A RoCE completion has no service level.  Programs find there what mlx5 puts
 * there: the type of a datagram's network header, and a bit for the UDP header
 * that RoCEv2 always has.  UCX up to 1.18 decides by these bits where in the
 * receive buffer the destination address is.  The priority of the VLAN tag is in
 * ibv_wc_read_cvlan().
 */
#define SL_IPV6		0x1
#define SL_IPV4		0x2
#define SL_UDP		0x8

static uint8_t cqe_sl(const struct qhca_cqe *cqe)
{
	if (!(cqe->flags & htole32(QHCA_CQE_GRH)))
		return 0;
	return SL_UDP | (cqe->net_type == 4 ? SL_IPV4 : SL_IPV6);
}

/*
 * After so many empty polls the provider tells the device, which may then do its work on
 * this processor.  That helps a program that waits for single messages, and one that has many
 * SENDs or long requests outstanding: it has little else to do.  Many short READs and WRITEs
 * take it as long to post as they take the device, which does better meanwhile, and whose
 * peer has no program that works on these.  When many hints have brought nothing, this CQ is
 * one that is looked at and seldom used.
 */
#define POLLS_TO_HINT		16
#define POLLS_TO_LATE_HINT	1024
#define MANY_HINTS		256
#define FEW_REQUESTS		4
#define SHORT_REQUEST		8192	/* bytes */
#define STREAM_RECEIVES		8

/* Work requests that are posted and not known to be completed. */
static uint32_t outstanding(const struct qhca_wq *wq)
{
	/* Another thread may be posting: both the old and the new index will do. */
	return __atomic_load_n(&wq->pi, __ATOMIC_RELAXED) -
	       atomic_load_explicit(&wq->ci, memory_order_relaxed);
}

/*
 * Unlock a CQ that was found empty.  The device may work for a while in the hint, and other
 * threads that poll this CQ must not wait for it.
 */
static void unlock_empty(struct qhca_cq *cq)
{
	struct qhca_context *ctx = to_qctx(cq->vcq.cq.context);
	uint32_t number = cq->cqn | (cq->polls_on ? QHCA_DB_POLL_MORE : 0) |
			  (cq->streams ? QHCA_DB_POLL_STREAM : 0);
	uint32_t ci = cq->ring->base + cq->ring->ci;
	bool due = ++cq->empty_polls >=
		   (cq->hints < MANY_HINTS ? POLLS_TO_HINT : POLLS_TO_LATE_HINT);
	bool hint = due && cq->tells;

	if (due) {
		cq->empty_polls = 0;
		cq->hints += cq->hints < MANY_HINTS;
	}
	qhca_unlock(&cq->lock);
	if (hint)
		qhca_doorbell(ctx, QHCA_DB_POLL, number, ci);
}

/* Is it the completion of a request in which the peer's program has no part, and a short one? */
static bool is_short_rdma(const struct qhca_cqe *cqe)
{
	switch (cqe->opcode) {
	case QHCA_WQE_WRITE:
	case QHCA_WQE_READ:
	case QHCA_WQE_CMP_SWAP:
	case QHCA_WQE_FETCH_ADD:
	case QHCA_WQE_ATOMIC_WRITE:
		return le32toh(cqe->byte_len) <= SHORT_REQUEST;
	default:
		return false;
	}
}

/*
 * Is it one of many receives between which this QP has sent nothing?  A program that answers
 * messages mostly does so by the QP that received them.
 */
static bool is_receive_of_stream(struct qhca_qp *qp)
{
	uint32_t pi = __atomic_load_n(&qp->sq.pi, __ATOMIC_RELAXED);

	if (pi != qp->received_pi)
		qp->received = 0;
	qp->received_pi = pi;
	qp->received += qp->received < STREAM_RECEIVES;
	return qp->received == STREAM_RECEIVES;
}

/*
 * Does the completion belong to a stream?  A program may want to hear of one request in many
 * only, and may look after it only when it posts the next such request.  Those between are long
 * done then, but are not known to be.  So the completion of a request shows that many others are
 * outstanding only if the program has @waited for it, and it is new.  If few are, its age does
 * not matter.  Any other one shows nothing, and the QP stays in a stream, or out of one.
 */
static bool is_of_stream(struct qhca_qp *qp, const struct qhca_cqe *cqe, bool few, bool waited)
{
	bool request = cqe->flags & htole32(QHCA_CQE_REQUESTER);

	if (request && (few || waited))
		atomic_store_explicit(&qp->streams, !few, memory_order_relaxed);
	/* The receive is counted in any case. */
	return (!request && is_receive_of_stream(qp)) ||
	       atomic_load_explicit(&qp->streams, memory_order_relaxed);
}

/*
 * Should the device be told of empty polls after this completion, and of what?  Where it does
 * no work for them but yields the processor, that helps in streams, and only in these: the
 * access itself takes time, and with TCG the lock of the thread that receives.
 */
static void expect_polls(struct qhca_cq *cq, const struct qhca_cqe *cqe,
			 struct qhca_qp *qp, bool waited)
{
	uint64_t features = to_qctx(cq->vcq.cq.context)->features;
	bool few;

	/* A device with neither has no use for what every completion would pay for here. */
	if (!(features & (QHCA_FEAT_POLL_HINT | QHCA_FEAT_STREAM_HINT)))
		return;
	few = outstanding(&qp->sq) <= FEW_REQUESTS;
	cq->streams = is_of_stream(qp, cqe, few, waited);
	if (features & QHCA_FEAT_POLL_HINT)
		cq->tells = few || !is_short_rdma(cqe);
	else
		cq->tells = cq->streams;
	cq->polls_on = !few || qp->vqp.qp.srq || outstanding(&qp->rq);
}

/* Free the slot of the work request in its ring. */
static void release_wqe(struct qhca_cq *cq, const struct qhca_cqe *cqe)
{
	void *owner = (void *)(uintptr_t)le64toh(cqe->handle);
	uint32_t flags = le32toh(cqe->flags);
	uint32_t wqe = le32toh(cqe->wqe);
	struct qhca_qp *qp = owner;
	bool waited = cq->hints;

	if (flags & QHCA_CQE_REQUESTER)
		/* This also frees earlier requests that were not signalled. */
		atomic_store_explicit(&qp->sq.ci, wqe + 1,
				      memory_order_release);
	else if (flags & QHCA_CQE_XRC)
		qhca_srq_free_slot(owner, wqe);
	else if (flags & QHCA_CQE_SRQ)
		qhca_srq_free_slot(to_qsrq(qp->vqp.qp.srq), wqe);
	else
		atomic_store_explicit(&qp->rq.ci, wqe + 1,
				      memory_order_release);

	cq->empty_polls = 0;
	cq->hints = 0;
	/* The receiving QP may be another process's, and one that is gone gets no others. */
	if (flags & QHCA_CQE_XRC || !qp->rec)
		cq->tells = false;
	else
		expect_polls(cq, cqe, qp, waited);
}

/* Consume the oldest unread completion; NULL if there is none. */
static const struct qhca_cqe *next_cqe(struct qhca_cq *cq)
{
	struct qhca_cq_ring *ring;
	struct qhca_cqe *cqe;
	uint32_t flags;

	for (;;) {
		ring = cq->ring;
		cqe = &ring->cqes[ring->ci & (ring->depth - 1)];
		flags = qhca_load(&cqe->flags);
		if (!(flags & QHCA_PHASE) != !!(ring->ci & ring->depth))
			return NULL;

		udma_from_device_barrier();
		/*
		 * In a long batch the device must see the progress, or the ring
		 * seems full.
		 */
		if (unlikely(!(ring->ci & (ring->depth / 2 - 1))))
			qhca_cq_publish(cq);
		ring->ci++;
		if (likely(cqe->opcode != QHCA_CQE_RESIZED))
			break;
		qhca_cq_next_ring(cq, le32toh(cqe->wqe));
	}

	release_wqe(cq, cqe);
	if (unlikely(cqe->status && !(flags & QHCA_CQE_XRC)))
		qhca_qp_in_error((void *)(uintptr_t)le64toh(cqe->handle));
	return cqe;
}

static void fill_wc(struct ibv_wc *wc, const struct qhca_cqe *cqe)
{
	wc->wr_id = le64toh(cqe->wr_id);
	wc->status = cqe->status;
	wc->opcode = cqe_opcode(cqe);
	wc->vendor_err = le32toh(cqe->syndrome);
	wc->byte_len = le32toh(cqe->byte_len);
	if (cqe->flags & htole32(QHCA_CQE_INV))
		wc->invalidated_rkey = le32toh(cqe->imm);
	else
		wc->imm_data = (__force __be32)cqe->imm;
	wc->qp_num = le32toh(cqe->qpn);
	wc->src_qp = le32toh(cqe->src_qpn);
	wc->wc_flags = cqe_wc_flags(cqe);
	wc->pkey_index = 0;
	wc->slid = 0;
	wc->sl = cqe_sl(cqe);
	wc->dlid_path_bits = 0;
}

int qhca_poll_cq(struct ibv_cq *ibcq, int num_entries, struct ibv_wc *wc)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	const struct qhca_cqe *cqe;
	int n;

	qhca_lock(&cq->lock);
	for (n = 0; n < num_entries; n++) {
		cqe = next_cqe(cq);
		if (!cqe)
			break;
		fill_wc(wc + n, cqe);
	}
	if (!n && num_entries > 0) {
		unlock_empty(cq);
		return 0;
	}
	qhca_cq_publish(cq);
	qhca_unlock(&cq->lock);
	return n;
}

static int advance(struct qhca_cq *cq)
{
	const struct qhca_cqe *cqe = next_cqe(cq);

	if (!cqe)
		return ENOENT;
	cq->cur = cqe;
	cq->vcq.cq_ex.status = cqe->status;
	cq->vcq.cq_ex.wr_id = le64toh(cqe->wr_id);
	return 0;
}

static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct qhca_cq *cq = to_qcq_ex(ibcq);
	int ret;

	if (unlikely(attr->comp_mask))
		return EINVAL;

	qhca_lock(&cq->lock);
	ret = advance(cq);
	if (ret)
		unlock_empty(cq);
	return ret;
}

static int next_poll(struct ibv_cq_ex *ibcq)
{
	return advance(to_qcq_ex(ibcq));
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	struct qhca_cq *cq = to_qcq_ex(ibcq);

	qhca_cq_publish(cq);
	qhca_unlock(&cq->lock);
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ibcq)
{
	return cqe_opcode(to_qcq_ex(ibcq)->cur);
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_qcq_ex(ibcq)->cur->syndrome);
}

static unsigned int read_wc_flags(struct ibv_cq_ex *ibcq)
{
	return cqe_wc_flags(to_qcq_ex(ibcq)->cur);
}

static uint32_t read_byte_len(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_qcq_ex(ibcq)->cur->byte_len);
}

/* The same call returns an invalidated key, in host order. */
static __be32 read_imm_data(struct ibv_cq_ex *ibcq)
{
	const struct qhca_cqe *cqe = to_qcq_ex(ibcq)->cur;

	if (cqe->flags & htole32(QHCA_CQE_INV))
		return (__force __be32)le32toh(cqe->imm);
	return (__force __be32)cqe->imm;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_qcq_ex(ibcq)->cur->qpn);
}

static uint32_t read_src_qp(struct ibv_cq_ex *ibcq)
{
	return le32toh(to_qcq_ex(ibcq)->cur->src_qpn);
}

static uint32_t read_slid(struct ibv_cq_ex *ibcq)
{
	return 0;
}

static uint8_t read_sl(struct ibv_cq_ex *ibcq)
{
	return cqe_sl(to_qcq_ex(ibcq)->cur);
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ibcq)
{
	return 0;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ibcq)
{
	return le64toh(to_qcq_ex(ibcq)->cur->timestamp);
}

static uint16_t read_cvlan(struct ibv_cq_ex *ibcq)
{
	return le16toh(to_qcq_ex(ibcq)->cur->vlan);
}

/**
 * qhca_cq_set_ex_ops - set the operations of ibv_cq_ex
 * @cq: CQ
 * @wc_flags: IBV_WC_EX_* that the user will read
 */
void qhca_cq_set_ex_ops(struct qhca_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;

	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		ex->read_cvlan = read_cvlan;
}
