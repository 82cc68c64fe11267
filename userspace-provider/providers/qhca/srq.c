/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared receive queues.
 *
 * Slots become free in any order, so they form a list by their `next` fields
 * rather than a ring.  The device follows `next` from slot 0.  Software fills
 * slots from the head of the list on and appends free ones behind its tail.  It
 * never fills the last free slot, because the `next` of that one is not known
 * yet; so the list needs one slot more than may be posted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qhca.h"
#include "qhca-abi.h"
#include "qhcadv.h"
#include "wqe.h"

/* qhca_rq_wqe.next is 16 bits wide. */
#define QHCA_MAX_SRQ_SLOTS	65536

static struct qhca_rq_wqe *slot_of(void *ring, const struct qhca_srq *srq,
				   uint32_t slot)
{
	return ring + ((size_t)slot << srq->log_stride);
}

static struct qhca_rq_wqe *srq_slot(const struct qhca_srq *srq, uint32_t slot)
{
	return slot_of(srq->ring, srq, slot);
}

/* Link the slots from @first to the ring's last one after the other. */
static void link_slots(void *ring, const struct qhca_srq *srq, uint32_t first,
		       uint32_t depth)
{
	uint32_t i;

	for (i = first; i + 1 < depth; i++)
		slot_of(ring, srq, i)->next = htole16(i + 1);
}

/* Memory for @depth slots and the record. */
static int alloc_ring(const struct qhca_srq *srq, struct qhca_umem *mem,
		      struct qhca_context *ctx, uint32_t depth,
		      uint32_t *rec_offset)
{
	*rec_offset = align((size_t)depth << srq->log_stride,
			    sizeof(struct qhca_srq_record));
	return qhca_umem_alloc(mem, ctx, srq->pd,
			       *rec_offset + sizeof(struct qhca_srq_record),
			       QHCA_RESOURCE_SRQ);
}

/**
 * qhca_srq_init_ring - size, allocate and link the slots of an SRQ
 * @srq: SRQ, pd set
 * @ctx: context
 * @max_wr: requests it must hold
 * @max_sge: segments of each
 *
 * Returns 0 or an errno value.
 */
int qhca_srq_init_ring(struct qhca_srq *srq, struct qhca_context *ctx,
		       uint32_t max_wr, uint32_t max_sge)
{
	int ret;

	if (!max_wr || max_wr > ctx->max_srq_wr ||
	    max_wr >= QHCA_MAX_SRQ_SLOTS || max_sge > ctx->max_sge)
		return EINVAL;

	srq->depth = roundup_pow_of_two((uint64_t)max_wr + 1);
	srq->log_stride = qhca_rwqe_log_stride(max_sge);
	srq->max_sge = qhca_rwqe_max_sge(ctx, srq->log_stride);

	ret = alloc_ring(srq, &srq->mem, ctx, srq->depth, &srq->rec_offset);
	if (ret)
		return ret;

	srq->ring = srq->mem.addr;
	srq->rec = srq->mem.addr + srq->rec_offset;
	link_slots(srq->ring, srq, 0, srq->depth);
	srq->head = 0;
	srq->tail = srq->depth - 1;
	srq->pi = 0;
	srq->new_ring = NULL;
	qhca_lock_init(&srq->lock, !qhca_single_threaded(srq->pd));
	pthread_mutex_init(&srq->resize_lock, NULL);
	return 0;
}

static void srq_fini_ring(struct qhca_srq *srq)
{
	pthread_mutex_destroy(&srq->resize_lock);
	qhca_umem_free(&srq->mem);
}

/**
 * qhca_srq_free_slot - free a slot whose completion has been read
 * @srq: SRQ
 * @slot: slot number
 */
void qhca_srq_free_slot(struct qhca_srq *srq, uint32_t slot)
{
	qhca_lock(&srq->lock);
	slot &= srq->depth - 1;
	srq_slot(srq, srq->tail)->next = htole16(slot);
	if (unlikely(srq->new_ring))
		slot_of(srq->new_ring, srq, srq->tail)->next = htole16(slot);
	srq->tail = slot;
	qhca_unlock(&srq->lock);
}

int qhca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	struct qhca_srq *srq = to_qsrq(ibsrq);
	struct qhca_rq_wqe *wqe;
	uint32_t pi;
	int ret = 0;

	qhca_lock(&srq->lock);
	for (pi = srq->pi; wr; wr = wr->next) {
		if (unlikely(srq->head == srq->tail)) {
			ret = ENOMEM;
			break;
		}
		if (unlikely(wr->num_sge < 0 ||
			     (uint32_t)wr->num_sge > srq->max_sge)) {
			ret = EINVAL;
			break;
		}

		wqe = srq_slot(srq, srq->head);
		qhca_rwqe_fill(wqe, wr);
		if (unlikely(srq->new_ring))
			memcpy(slot_of(srq->new_ring, srq, srq->head), wqe,
			       (size_t)1 << srq->log_stride);
		srq->head = le16toh(wqe->next);
		pi++;
	}

	if (pi != srq->pi) {
		srq->pi = pi;
		qhca_store_release(&srq->rec->pi, pi);
		if (unlikely(srq->new_ring))
			qhca_store_release(&srq->new_rec->pi, pi);
	}
	if (unlikely(ret))
		*bad_wr = wr;
	qhca_unlock(&srq->lock);
	return ret;
}

static int create_srq_cmd(struct ibv_context *context, struct qhca_srq *srq,
			  struct ibv_srq_init_attr_ex *attr)
{
	struct qhca_ucmd_create_srq_resp resp = {};
	struct qhca_ucmd_create_srq cmd = {};
	int ret;

	cmd.buf_addr = (uintptr_t)srq->mem.addr;
	cmd.buf_length = srq->mem.length;
	cmd.handle = (uintptr_t)srq;
	cmd.rec_offset = srq->rec_offset;
	cmd.log_depth = qhca_log2_up(srq->depth);
	cmd.log_stride = srq->log_stride;
	cmd.threshold = srq->threshold;

	attr->attr.max_wr = srq->depth - 1;
	attr->attr.max_sge = srq->max_sge;
	ret = ibv_cmd_create_srq_ex(context, &srq->vsrq, attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;

	attr->attr.max_wr = srq->depth - 1;
	attr->attr.max_sge = srq->max_sge;
	return 0;
}

static struct ibv_srq *new_srq(struct ibv_context *context,
			       struct ibv_srq_init_attr_ex *attr,
			       uint32_t threshold)
{
	struct qhca_srq *srq;
	int ret;

	if (!check_comp_mask(attr->comp_mask, IBV_SRQ_INIT_ATTR_TYPE |
			     IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ) ||
	    ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
	     attr->srq_type != IBV_SRQT_BASIC &&
	     attr->srq_type != IBV_SRQT_XRC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD)) {
		errno = EINVAL;
		return NULL;
	}

	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;

	srq->threshold = threshold;
	srq->pd = to_qpd(attr->pd);
	ret = qhca_srq_init_ring(srq, to_qctx(context), attr->attr.max_wr,
				 attr->attr.max_sge);
	if (ret)
		goto err_free;

	ret = create_srq_cmd(context, srq, attr);
	if (ret)
		goto err_ring;

	srq->vsrq.srq.srq_context = attr->srq_context;
	srq->vsrq.srq.pd = attr->pd;
	return &srq->vsrq.srq;

err_ring:
	srq_fini_ring(srq);
err_free:
	free(srq);
	errno = ret;
	return NULL;
}

struct ibv_srq *qhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr)
{
	return new_srq(context, attr, 0);
}

struct ibv_srq *qhcadv_create_srq(struct ibv_context *context,
				  struct ibv_srq_init_attr_ex *attr,
				  const struct qhcadv_queue_attr *queue,
				  uint32_t inlen)
{
	uint32_t threshold;

	if (!qhca_queue_threshold(context, queue, inlen, &threshold))
		return NULL;
	return new_srq(context, attr, threshold);
}

struct ibv_srq *qhca_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr)
{
	struct ibv_srq_init_attr_ex attr_ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd,
	};
	struct ibv_srq *srq;

	srq = qhca_create_srq_ex(pd->context, &attr_ex);
	if (srq)
		attr->attr = attr_ex.attr;
	return srq;
}

/*
 * Resizing.  Slots keep their numbers, so the device can use a larger ring with
 * the same contents, and may change to it at any time between grow_begin() and
 * grow_end().  In between, posting and freeing slots writes to both rings.
 */

/**
 * qhca_srq_grow_begin - allocate a larger ring with the contents of the present
 * one
 * @srq: SRQ; resize_lock held, not growing
 * @ctx: context
 * @max_wr: requests it must hold, more than now
 * @grow: filled in, for qhca_srq_grow_end()
 *
 * Returns 0 or an errno value.
 */
int qhca_srq_grow_begin(struct qhca_srq *srq, struct qhca_context *ctx,
			uint32_t max_wr, struct qhca_srq_grow *grow)
{
	int ret;

	if (max_wr > ctx->max_srq_wr || max_wr >= QHCA_MAX_SRQ_SLOTS)
		return EINVAL;

	grow->depth = roundup_pow_of_two((uint64_t)max_wr + 1);
	ret = alloc_ring(srq, &grow->mem, ctx, grow->depth, &grow->rec_offset);
	if (ret)
		return ret;

	qhca_lock(&srq->lock);
	memcpy(grow->mem.addr, srq->ring,
	       (size_t)srq->depth << srq->log_stride);
	srq->new_rec = grow->mem.addr + grow->rec_offset;
	qhca_store_release(&srq->new_rec->pi, srq->pi);
	srq->new_ring = grow->mem.addr;
	qhca_unlock(&srq->lock);
	return 0;
}

/**
 * qhca_srq_grow_end - keep one of the two rings, and free the other
 * @srq: SRQ
 * @grow: as qhca_srq_grow_begin() filled it in
 * @moved: whether the device has moved to the new ring
 */
void qhca_srq_grow_end(struct qhca_srq *srq, struct qhca_srq_grow *grow,
		       bool moved)
{
	struct qhca_umem unused = grow->mem;

	qhca_lock(&srq->lock);
	if (moved) {
		link_slots(srq->new_ring, srq, srq->depth, grow->depth);
		slot_of(srq->new_ring, srq, srq->tail)->next =
			htole16(srq->depth);
		srq->tail = grow->depth - 1;
		unused = srq->mem;
		srq->mem = grow->mem;
		srq->ring = srq->new_ring;
		srq->rec = srq->new_rec;
		srq->rec_offset = grow->rec_offset;
		srq->depth = grow->depth;
	}
	srq->new_ring = NULL;
	qhca_unlock(&srq->lock);
	qhca_umem_free(&unused);
}

static int grow_cmd(struct qhca_srq *srq, const struct qhca_srq_grow *grow,
		    struct ibv_srq_attr *attr)
{
	struct qhca_ucmd_modify_srq cmd = {};

	cmd.buf_addr = (uintptr_t)grow->mem.addr;
	cmd.buf_length = grow->mem.length;
	cmd.rec_offset = grow->rec_offset;
	cmd.log_depth = qhca_log2_up(grow->depth);
	cmd.threshold = srq->threshold;
	return ibv_cmd_modify_srq(&srq->vsrq.srq, attr, IBV_SRQ_MAX_WR,
				  &cmd.ibv_cmd, sizeof(cmd));
}

/* An SRQ never shrinks: it may hold more requests than was asked for. */
int qhca_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct qhca_context *ctx = to_qctx(ibsrq->context);
	struct qhca_srq *srq = to_qsrq(ibsrq);
	struct qhca_srq_grow grow;
	struct ibv_modify_srq cmd;
	int ret;

	if (!(mask & IBV_SRQ_MAX_WR))
		return ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd, sizeof(cmd));
	if (!(ctx->features & QHCA_FEAT_SRQ_RESIZE))
		return EOPNOTSUPP;
	if (!attr->max_wr)
		return EINVAL;

	pthread_mutex_lock(&srq->resize_lock);
	if (attr->max_wr < srq->depth) {
		mask &= ~IBV_SRQ_MAX_WR;
		ret = mask ? ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd,
						sizeof(cmd)) : 0;
		goto out;
	}
	ret = qhca_srq_grow_begin(srq, ctx, attr->max_wr, &grow);
	if (ret)
		goto out;
	/* The limit takes a command of its own, which may fail by itself. */
	ret = grow_cmd(srq, &grow, attr);
	qhca_srq_grow_end(srq, &grow, !ret);
	mask &= ~IBV_SRQ_MAX_WR;
	if (!ret && mask)
		ret = ibv_cmd_modify_srq(ibsrq, attr, mask, &cmd, sizeof(cmd));
out:
	pthread_mutex_unlock(&srq->resize_lock);
	return ret;
}

int qhca_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct ibv_query_srq cmd;

	return ibv_cmd_query_srq(ibsrq, attr, &cmd, sizeof(cmd));
}

int qhca_destroy_srq(struct ibv_srq *ibsrq)
{
	struct qhca_srq *srq = to_qsrq(ibsrq);
	int ret;

	ret = ibv_cmd_destroy_srq(ibsrq);
	if (ret)
		return ret;

	/* A basic SRQ's completions were detached from it with their QPs. */
	if (srq->vsrq.srq_type == IBV_SRQT_XRC)
		qhca_cq_clean(NULL, to_qcq(srq->vsrq.cq), srq);

	srq_fini_ring(srq);
	free(srq);
	return 0;
}

int qhca_get_srq_num(struct ibv_srq *ibsrq, uint32_t *srq_num)
{
	struct qhca_srq *srq = to_qsrq(ibsrq);

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return EOPNOTSUPP;
	*srq_num = srq->vsrq.srq_num;
	return 0;
}
