/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Writing work requests: functions that both posting interfaces use.
 */
#ifndef __QHCA_WQE_H__
#define __QHCA_WQE_H__

#include <string.h>

#include "qhca.h"

static_assert((int)QHCA_ACCESS_LOCAL_WRITE == (int)IBV_ACCESS_LOCAL_WRITE &&
	      (int)QHCA_ACCESS_REMOTE_WRITE == (int)IBV_ACCESS_REMOTE_WRITE &&
	      (int)QHCA_ACCESS_REMOTE_READ == (int)IBV_ACCESS_REMOTE_READ &&
	      (int)QHCA_ACCESS_REMOTE_ATOMIC == (int)IBV_ACCESS_REMOTE_ATOMIC &&
	      (int)QHCA_ACCESS_MW_BIND == (int)IBV_ACCESS_MW_BIND &&
	      (int)QHCA_ACCESS_ZERO_BASED == (int)IBV_ACCESS_ZERO_BASED &&
	      (int)QHCA_ACCESS_FLUSH_GLOBAL == (int)IBV_ACCESS_FLUSH_GLOBAL,
	      "access rights differ");
static_assert((int)QHCA_WQE_F_SOLICITED == (int)IBV_SEND_SOLICITED,
	      "send flags differ");

#define QHCA_WINDOW_ACCESS	(IBV_ACCESS_REMOTE_WRITE | \
				 IBV_ACCESS_REMOTE_READ | \
				 IBV_ACCESS_REMOTE_ATOMIC | \
				 IBV_ACCESS_ZERO_BASED | \
				 IBV_ACCESS_FLUSH_GLOBAL)

static inline void qhca_fill_sge(struct qhca_sge *to, const struct ibv_sge *sge)
{
	to->addr = htole64(sge->addr);
	to->length = htole32(sge->length);
	to->lkey = htole32(sge->lkey);
}

/* Receive requests */

static inline uint8_t qhca_rwqe_log_stride(uint32_t max_sge)
{
	return qhca_log2_up(sizeof(struct qhca_rq_wqe) +
			    (max_sge ? max_sge : 1) * sizeof(struct qhca_sge));
}

static inline uint32_t qhca_rwqe_max_sge(const struct qhca_context *ctx,
					 uint8_t log_stride)
{
	uint32_t fit = ((1u << log_stride) - sizeof(struct qhca_rq_wqe)) /
		       sizeof(struct qhca_sge);

	return fit < ctx->max_sge ? fit : ctx->max_sge;
}

/* This does not change the `next` of an SRQ's slot. */
static inline void qhca_rwqe_fill(struct qhca_rq_wqe *wqe,
				  const struct ibv_recv_wr *wr)
{
	struct qhca_sge *sge = (struct qhca_sge *)(wqe + 1);
	int i;

	wqe->wr_id = htole64(wr->wr_id);
	wqe->num_sge = htole16(wr->num_sge);
	for (i = 0; i < wr->num_sge; i++)
		qhca_fill_sge(sge + i, wr->sg_list + i);
}

/* Send requests */

/* The device computes no checksum of raw frames, so asking for one fails. */
static inline bool qhca_wr_flags_known(const struct qhca_qp *qp,
				       unsigned int send_flags)
{
	return qp->type != QHCA_QPT_RAW || !(send_flags & IBV_SEND_IP_CSUM);
}

static inline void qhca_wqe_begin(struct qhca_sq_wqe *wqe, uint8_t opcode,
				  uint64_t wr_id, unsigned int send_flags)
{
	memset(wqe, 0, sizeof(*wqe));
	wqe->opcode = opcode;
	wqe->flags =
		(send_flags & IBV_SEND_SIGNALED ? QHCA_WQE_F_SIGNALED : 0) |
		(send_flags & IBV_SEND_FENCE ? QHCA_WQE_F_FENCE : 0) |
		(send_flags & IBV_SEND_SOLICITED ? QHCA_WQE_F_SOLICITED : 0);
	wqe->wr_id = htole64(wr_id);
}

static inline void qhca_wqe_imm(struct qhca_sq_wqe *wqe, __be32 imm)
{
	wqe->imm = (__force __le32)imm;
}

static inline void qhca_wqe_inv(struct qhca_sq_wqe *wqe, uint32_t key)
{
	wqe->imm = htole32(key);
}

static inline void qhca_wqe_rdma(struct qhca_sq_wqe *wqe, uint64_t raddr,
				 uint32_t rkey)
{
	wqe->rdma.raddr = htole64(raddr);
	wqe->rdma.rkey = htole32(rkey);
}

static inline void qhca_wqe_atomic(struct qhca_sq_wqe *wqe, uint64_t raddr,
				   uint32_t rkey, uint64_t swap_add,
				   uint64_t compare)
{
	wqe->atomic.raddr = htole64(raddr);
	wqe->atomic.rkey = htole32(rkey);
	wqe->atomic.swap_add = htole64(swap_add);
	wqe->atomic.compare = htole64(compare);
}

static inline void qhca_wqe_ud(struct qhca_sq_wqe *wqe, struct ibv_ah *ah,
			       uint32_t qpn, uint32_t qkey)
{
	wqe->ud.dest_qpn = htole32(qpn);
	wqe->ud.qkey = htole32(qkey);
	wqe->ud.av = to_qah(ah)->av;
}

/*
 * The upper bits of a window's R_Key are the window's index: a program chooses
 * the low octet alone.
 */
static inline uint32_t qhca_window_rkey(const struct ibv_mw *mw,
					uint32_t wanted)
{
	return (mw->rkey & 0xffffff00) | (wanted & 0xff);
}

/*
 * The window has its new R_Key from now on, for the program and for the
 * requests that follow, though the bind may fail.  Returns false for a bind
 * that no device could perform.
 */
static inline bool qhca_wqe_bind(struct qhca_sq_wqe *wqe, struct ibv_mw *mw,
				 uint32_t new_rkey,
				 const struct ibv_mw_bind_info *info)
{
	/*
	 * Windows are for remote access, so local write means nothing for them.
	 */
	if ((info->mw_access_flags &
	     ~(QHCA_WINDOW_ACCESS | IBV_ACCESS_LOCAL_WRITE)) ||
	    (!info->mr && info->length))
		return false;

	wqe->bind.addr = htole64(info->addr);
	wqe->bind.length = htole64(info->length);
	wqe->bind.mr_lkey = htole32(info->mr ? info->mr->lkey : 0);
	wqe->bind.mw_rkey = htole32(mw->rkey);
	mw->rkey = qhca_window_rkey(mw, new_rkey);
	wqe->bind.new_rkey = htole32(mw->rkey);
	wqe->bind.access = htole32(info->mw_access_flags & QHCA_WINDOW_ACCESS);
	return true;
}

static inline void qhca_wqe_sges(struct qhca_sq_wqe *wqe,
				 const struct ibv_sge *list, uint32_t num)
{
	struct qhca_sge *sge = (struct qhca_sge *)(wqe + 1);
	uint32_t i;

	wqe->num_sge = num;
	for (i = 0; i < num; i++)
		qhca_fill_sge(sge + i, list + i);
}

/* Append inline data; returns false if it does not fit. */
static inline bool qhca_wqe_inline(const struct qhca_qp *qp,
				   struct qhca_sq_wqe *wqe, const void *data,
				   size_t length)
{
	uint32_t have = le32toh(wqe->inline_len);

	if (length > qp->max_inline - have)
		return false;

	wqe->flags |= QHCA_WQE_F_INLINE;
	if (length) {
		memcpy((uint8_t *)(wqe + 1) + have, data, length);
		wqe->inline_len = htole32(have + length);
	}
	return true;
}

/* Does the QP's state allow posting to the send queue? */
static inline bool qhca_may_send(const struct qhca_qp *qp)
{
	switch (qp->vqp.qp.state) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
	case IBV_QPS_SQE:
	case IBV_QPS_ERR:
		return qp->sq.depth;
	default:
		return false;
	}
}

/**
 * qhca_sq_publish - hand the device what has been written to the send queue
 * @qp: QP, sq.lock held
 * @pi: new producer index
 *
 * The device keeps record.sq_active non-zero while it works on a queue, and reads
 * record.sq_pi once more after it has cleared sq_active.  The provider first
 * stores sq_pi and then reads sq_active.  If that is non-zero, the device has yet
 * to read sq_pi, and no doorbell is needed.  In any other order each side could
 * miss what the other has written.
 */
static inline void qhca_sq_publish(struct qhca_qp *qp, uint32_t pi)
{
	qp->sq.pi = pi;
	qhca_store_release(&qp->rec->sq_pi, pi);

	qhca_store_load_barrier();
	if (!qhca_load(&qp->rec->sq_active))
		qhca_doorbell(to_qctx(qp->vqp.qp.context), QHCA_DB_SQ,
			      qp->vqp.qp.qp_num, pi);
}

#endif /* __QHCA_WQE_H__ */
