/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Work queue entries: reading them from rings, checking them, and copying data
 * between memory and their segments.
 *
 * An entry is copied from the ring once and checked in the copy, since
 * software can change the ring while the device works on it.
 */
#include "queue/wq.h"

#include "hca.h"
#include "wire/frame.h"

#define HEADER		64	/* bytes of a send WQE before its segments */
#define RHEADER		16	/* ... of a receive WQE */
#define SEG		16
#define FIRST_READ	128	/* most WQEs are no longer than this */

#define T(type)		(1u << QHCA_QPT_##type)
#define T_RC		(T(RC) | T(XRC_INI))
#define T_CONNECTED	(T_RC | T(UC))
#define T_ALL		(T_CONNECTED | T(UD) | T(GSI))

static const struct hca_wqe_info wqe_table[QHCA_WQE_NUM_OPCODES] = {
	[QHCA_WQE_SEND]		= { HCA_WK_SEND, T_ALL | T(RAW), 0 },
	[QHCA_WQE_SEND_IMM]	= { HCA_WK_SEND | HCA_WK_IMM, T_ALL, 0 },
	[QHCA_WQE_SEND_INV]	= { HCA_WK_SEND | HCA_WK_INV, T_RC, 0 },
	[QHCA_WQE_WRITE]	= { HCA_WK_WRITE, T_CONNECTED, 0 },
	[QHCA_WQE_WRITE_IMM]	= { HCA_WK_WRITE | HCA_WK_IMM, T_CONNECTED, 0 },
	[QHCA_WQE_READ]		= { HCA_WK_READ, T_RC, 0 },
	[QHCA_WQE_CMP_SWAP]	= { HCA_WK_ATOMIC, T_RC, QHCA_FEAT_ATOMIC },
	[QHCA_WQE_FETCH_ADD]	= { HCA_WK_ATOMIC, T_RC, QHCA_FEAT_ATOMIC },
	[QHCA_WQE_BIND_MW]	= { HCA_WK_LOCAL, T_CONNECTED, 0 },
	[QHCA_WQE_LOCAL_INV]	= { HCA_WK_LOCAL, T_CONNECTED, 0 },
	[QHCA_WQE_REG_MR]	= { HCA_WK_LOCAL, T_CONNECTED, QHCA_FEAT_FAST_REG },
	[QHCA_WQE_ATOMIC_WRITE]	= { HCA_WK_PLACE, T_RC, QHCA_FEAT_ATOMIC_WRITE },
	[QHCA_WQE_FLUSH]	= { HCA_WK_PLACE, T_RC, QHCA_FEAT_FLUSH },
	[QHCA_WQE_NOP]		= { HCA_WK_LOCAL, T_ALL | T(RAW), 0 },
};

static void sgl_load(struct hca_sgl *sgl, const uint8_t *raw, uint32_t num)
{
	uint64_t length = 0;

	for (uint32_t i = 0; i < num; i++, raw += SEG) {
		sgl->seg[i].addr = get_le64(raw);
		sgl->seg[i].length = get_le32(raw + 8);
		sgl->seg[i].lkey = get_le32(raw + 12);
		length += sgl->seg[i].length;
	}
	sgl->num = num;
	sgl->hint = 0;
	sgl->base = 0;
	sgl->length = length;
}

/* Copy [offset, offset + len) between @buf and the segments. */
static enum hca_mem_status sgl_copy(struct hca_fn *fn, struct hca_sgl *sgl,
				    struct hca_mem_req *req, uint64_t offset,
				    uint8_t *buf, uint32_t len)
{
	bool write = req->access & QHCA_ACCESS_LOCAL_WRITE;
	uint64_t first = offset;
	enum hca_mem_status status;

	if (offset < sgl->base) {
		sgl->hint = 0;
		sgl->base = 0;
	}
	while (len) {
		const struct hca_seg *seg = &sgl->seg[sgl->hint];
		uint64_t skip = offset - sgl->base;

		if (sgl->hint >= sgl->num)
			return HCA_MEM_PROT;
		if (skip >= seg->length) {
			sgl->base += seg->length;
			sgl->hint++;
			continue;
		}
		req->addr = seg->addr + skip;
		req->key = seg->lkey;
		req->len = seg->length - skip < len ? seg->length - skip : len;
		status = write ? hca_mem_write(fn, req, buf) :
				 hca_mem_read(fn, req, buf);
		if (status == HCA_MEM_FAULT) {
			/*
			 * The fault is reported up to the end of the segment; of
			 * stage 2, up to the end of what is contiguous.
			 */
			fn->mem.fault.len = seg->addr + seg->length -
					    fn->mem.fault.addr;
			fn->mem.fault.done += offset - first;
		}
		if (status != HCA_MEM_OK)
			return status;
		buf += req->len;
		offset += req->len;
		len -= req->len;
	}
	return HCA_MEM_OK;
}

/* ---- send queue */

/* Read the segments or inline data.  false: the ring cannot be read. */
static bool fetch_tail(struct hca_fn *fn, struct hca_qp *qp,
		       uint32_t offset, uint8_t *raw, uint32_t have,
		       uint32_t need)
{
	return need <= have || !hca_qbuf_read(fn, &qp->buf, offset + have,
					      raw + have, need - have);
}

/* The length that the WQE states for its part behind the header; UINT32_MAX: bad. */
static uint32_t tail_len(const struct hca_qp *qp, const struct hca_swqe *w)
{
	uint32_t inline_len = get_le32(&w->wire.inline_len);
	uint32_t stride = 1u << qp->sw.sq_log_stride;

	if (w->kind & HCA_WK_LOCAL)
		return 0;
	if (w->flags & QHCA_WQE_F_INLINE) {
		if (!hca_swqe_has_data(w) || inline_len > qp->max_inline ||
		    inline_len > stride - HEADER)
			return UINT32_MAX;
		return inline_len;
	}
	if (w->opcode == QHCA_WQE_FLUSH)
		return 0;
	if (w->wire.num_sge > qp->sw.sq_max_sge ||
	    w->wire.num_sge * SEG > stride - HEADER)
		return UINT32_MAX;
	return w->wire.num_sge * SEG;
}

static uint8_t check_length(struct hca_fn *fn, const struct hca_qp *qp,
			    const struct hca_swqe *w, uint64_t length)
{
	if ((w->kind & HCA_WK_ATOMIC || w->opcode == QHCA_WQE_ATOMIC_WRITE) &&
	    length != 8)
		return QHCA_WC_LOC_LEN_ERR;
	if (hca_type_is_datagram(qp->type) && w->kind & HCA_WK_SEND &&
	    length > hca_port_mtu(fn))
		return QHCA_WC_LOC_LEN_ERR;
	if (qp->type == QHCA_QPT_RAW &&
	    (length < HCA_ETH_HLEN ||
	     length > fn->port.eth_mtu + HCA_ETH_HLEN + HCA_VLAN_HLEN))
		return QHCA_WC_LOC_LEN_ERR;
	return length > HCA_MAX_MSG_SIZE ? QHCA_WC_LOC_LEN_ERR : 0;
}

/* A FLUSH carries no bytes: its length is that of the range to flush. */
static uint8_t flush_load(struct hca_swqe *w)
{
	const struct qhca_wqe_flush *flush = &w->wire.flush;

	if (!flush->type || flush->type & ~QHCA_FLUSH_TYPES ||
	    flush->level > QHCA_FLUSH_REGION)
		return QHCA_WC_LOC_QP_OP_ERR;
	w->length = get_le32(&flush->length);
	w->packets = 1;
	return 0;
}

static uint8_t swqe_load(struct hca_fn *fn, struct hca_qp *qp,
			 struct hca_swqe *w, const uint8_t *raw, uint32_t tail)
{
	uint64_t length;
	uint8_t error;

	if (w->kind & HCA_WK_LOCAL)
		return 0;
	if (w->opcode == QHCA_WQE_FLUSH)
		return flush_load(w);
	if (w->flags & QHCA_WQE_F_INLINE) {
		memcpy(w->data, raw + HEADER, tail);
		length = tail;
	} else {
		sgl_load(&w->sgl, raw + HEADER, w->wire.num_sge);
		length = w->sgl.length;
	}
	error = check_length(fn, qp, w, length);
	if (error)
		return error;
	w->length = length;
	w->packets = hca_type_is_framed(qp->type) ? 1 :
		     hca_packets(length, qp->mtu);
	return 0;
}

/* May this QP use the opcode, as hardware.rst's table of send opcodes says? */
static bool opcode_allowed(const struct hca_fn *fn, const struct hca_qp *qp,
			   uint8_t opcode, const struct hca_wqe_info *info)
{
	const uint64_t windows = QHCA_FEAT_MW1 | QHCA_FEAT_MW2B;

	if (!(info->types >> qp->type & 1) || (info->feature & ~fn->features))
		return false;
	if (opcode == QHCA_WQE_BIND_MW)
		return fn->features & windows;
	if (opcode == QHCA_WQE_REG_MR)
		return qp->flags & QHCA_QP_KERNEL;
	return true;
}

int hca_swqe_fetch(struct hca_fn *fn, struct hca_qp *qp, uint32_t num,
		   struct hca_swqe *w)
{
	uint32_t stride = 1u << qp->sw.sq_log_stride;
	uint32_t offset = qp->sq_offset +
			  ((num & (qp->sq_depth - 1)) << qp->sw.sq_log_stride);
	uint32_t have = stride < FIRST_READ ? stride : FIRST_READ;
	const struct hca_wqe_info *info;
	HCA_UNINITIALIZED uint8_t raw[HEADER + HCA_MAX_SGE * SEG];
	uint32_t tail;

	w->valid = false;
	if (hca_qbuf_read(fn, &qp->buf, offset, raw, have))
		return -1;
	memcpy(&w->wire, raw, sizeof(w->wire));
	w->num = num;
	w->opcode = w->wire.opcode;
	w->flags = w->wire.flags;
	w->wr_id = get_le64(&w->wire.wr_id);
	w->length = 0;
	w->packets = 0;
	w->kind = 0;
	w->error = QHCA_WC_LOC_QP_OP_ERR;
	w->valid = true;
	/* Clear the segments: inline data of an earlier WQE may be in their place. */
	w->sgl.num = 0;
	w->sgl.hint = 0;
	w->sgl.base = 0;
	w->sgl.length = 0;

	if (w->opcode >= QHCA_WQE_NUM_OPCODES)
		return 0;
	info = &wqe_table[w->opcode];
	w->kind = info->kind;
	if (!opcode_allowed(fn, qp, w->opcode, info))
		return 0;
	tail = tail_len(qp, w);
	if (tail > sizeof(raw) - HEADER)
		return 0;
	if (!fetch_tail(fn, qp, offset, raw, have, HEADER + tail)) {
		w->valid = false;
		return -1;
	}
	w->error = swqe_load(fn, qp, w, raw, tail);
	return 0;
}

static void swqe_req(const struct hca_qp *qp, const struct hca_swqe *w,
		     struct hca_mem_req *req, uint32_t access)
{
	*req = (struct hca_mem_req){
		.pd = qp->pd,
		.access = access,
		.qpn = qp->qpn,
		.kernel = qp->flags & QHCA_QP_KERNEL,
		.channel = w->kind & HCA_WK_SEND,
	};
}

enum hca_mem_status hca_swqe_gather(struct hca_fn *fn,
				    const struct hca_qp *qp,
				    struct hca_swqe *w, uint32_t offset,
				    void *buf, uint32_t len)
{
	struct hca_mem_req req;

	if (w->flags & QHCA_WQE_F_INLINE) {
		if (offset > sizeof(w->data) || len > sizeof(w->data) - offset)
			return HCA_MEM_PROT;
		memcpy(buf, w->data + offset, len);
		return HCA_MEM_OK;
	}
	swqe_req(qp, w, &req, 0);
	return sgl_copy(fn, &w->sgl, &req, offset, buf, len);
}

enum hca_mem_status hca_swqe_scatter(struct hca_fn *fn,
				     const struct hca_qp *qp,
				     struct hca_swqe *w, uint32_t offset,
				     const void *data, uint32_t len)
{
	struct hca_mem_req req;

	swqe_req(qp, w, &req, QHCA_ACCESS_LOCAL_WRITE);
	return sgl_copy(fn, &w->sgl, &req, offset, (uint8_t *)data, len);
}

/* ---- receive queues */

static int rwqe_fetch(struct hca_fn *fn, struct hca_qbuf *qb,
		      uint32_t offset, uint32_t log_stride, uint32_t max_sge,
		      struct hca_rwqe *w)
{
	uint32_t stride = 1u << log_stride, num_sge, need;
	uint32_t have = stride < FIRST_READ ? stride : FIRST_READ;
	HCA_UNINITIALIZED uint8_t raw[RHEADER + HCA_MAX_SGE * SEG];

	w->valid = false;
	if (hca_qbuf_read(fn, qb, offset, raw, have))
		return -1;
	w->wr_id = get_le64(raw);
	num_sge = get_le16(raw + 8);
	w->next = get_le16(raw + 10);
	w->error = 0;
	w->sgl.num = 0;
	w->sgl.length = 0;
	w->valid = true;
	if (num_sge > max_sge || num_sge > HCA_MAX_SGE) {
		w->error = QHCA_WC_LOC_QP_OP_ERR;
		return 0;
	}
	need = RHEADER + num_sge * SEG;
	if (need > have &&
	    hca_qbuf_read(fn, qb, offset + have, raw + have, need - have)) {
		w->valid = false;
		return -1;
	}
	sgl_load(&w->sgl, raw + RHEADER, num_sge);
	return 0;
}

int hca_rwqe_fetch(struct hca_fn *fn, struct hca_qp *qp, uint32_t num,
		   struct hca_rwqe *w)
{
	uint32_t slot = num & (qp->rq_depth - 1);

	w->num = num;
	w->pd = qp->pd;
	w->kernel = qp->flags & QHCA_QP_KERNEL;
	return rwqe_fetch(fn, &qp->buf,
			  qp->rq_offset + (slot << qp->sw.rq_log_stride),
			  qp->sw.rq_log_stride, qp->sw.rq_max_sge, w);
}

int hca_rwqe_fetch_srq(struct hca_fn *fn, struct hca_srq *srq,
		       uint32_t slot, struct hca_rwqe *w)
{
	w->num = slot;
	w->pd = srq->pd;
	w->kernel = srq->flags & QHCA_SRQ_KERNEL;
	return rwqe_fetch(fn, &srq->buf, slot << srq->log_stride,
			  srq->log_stride, srq->max_sge, w);
}

enum hca_mem_status hca_rwqe_scatter(struct hca_fn *fn,
				     const struct hca_qp *qp,
				     struct hca_rwqe *w, uint32_t offset,
				     const void *data, uint32_t len)
{
	struct hca_mem_req req = {
		.pd = w->pd,
		.access = QHCA_ACCESS_LOCAL_WRITE,
		.qpn = qp->qpn,
		.kernel = w->kernel,
		.channel = true,
	};

	return sgl_copy(fn, &w->sgl, &req, offset, (uint8_t *)data, len);
}
