/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Completion queues: creation and destruction, resizing, removal of
 * completions.
 *
 * Resizing.  The provider appends a new ring to the present one before it calls
 * the kernel.  The device writes QHCA_CQE_RESIZED as the last entry of the old
 * ring and goes on in slot 0 of the new one with phase 1; a poller that reaches
 * that entry changes to the new ring.  Completions are never copied, the queue
 * is not locked while the kernel works, and a second resize may begin before a
 * poller has reached the end of the first ring.  The device's index does not
 * start anew.  So the index in the record and in an arm doorbell is the ring's
 * base plus the index in the ring.  The base is in the entry that ends the ring
 * before it.
 */
#include <errno.h>
#include <stdlib.h>

#include "compat.h"
#include "qhca.h"
#include "qhca-abi.h"
#include "qhcadv.h"

/* Entries of a ring beyond the completions that it must hold. */
#define QHCA_CQ_SPARE		1	/* QHCA_CQE_RESIZED */
#define QHCA_CQ_SPARE_RESIZED	2	/* the device refuses a resize that would
					   leave the new ring no room */

static struct qhca_cqe *ring_slot(const struct qhca_cq_ring *ring,
				  uint32_t index)
{
	return &ring->cqes[index & (ring->depth - 1)];
}

static bool ring_valid(const struct qhca_cq_ring *ring, uint32_t index)
{
	uint32_t flags = qhca_load(&ring_slot(ring, index)->flags);

	return !(flags & QHCA_PHASE) == !!(index & ring->depth);
}

/* Index after the last completion that the device has written. */
static uint32_t ring_end(const struct qhca_cq_ring *ring)
{
	uint32_t end = ring->ci;

	while (end - ring->ci < ring->depth && ring_valid(ring, end))
		end++;
	udma_from_device_barrier();
	return end;
}

/**
 * qhca_cq_ring_new - allocate an empty ring of completions and its record
 * @ctx: context
 * @pd: parent domain whose allocator is used, or NULL
 * @cqe: completions it must hold
 * @spare: further entries, as far as the device's largest ring allows
 *
 * Returns NULL with errno set on failure.
 */
struct qhca_cq_ring *qhca_cq_ring_new(struct qhca_context *ctx,
				      struct qhca_pd *pd, uint32_t cqe,
				      uint32_t spare)
{
	struct qhca_cq_ring *ring;
	uint64_t depth;
	size_t bytes;
	int ret;

	if (!cqe || cqe > ctx->max_cqe) {
		errno = EINVAL;
		return NULL;
	}

	ring = calloc(1, sizeof(*ring));
	if (!ring)
		return NULL;

	depth = roundup_pow_of_two((uint64_t)cqe + spare);
	if (depth > roundup_pow_of_two(ctx->max_cqe))
		depth = roundup_pow_of_two(ctx->max_cqe);

	bytes = depth * sizeof(struct qhca_cqe);
	ring->depth = depth;
	ring->rec_offset = bytes;
	ret = qhca_umem_alloc(&ring->mem, ctx, pd,
			      bytes + sizeof(struct qhca_cq_record),
			      QHCA_RESOURCE_CQ);
	if (ret) {
		free(ring);
		errno = ret;
		return NULL;
	}

	ring->cqes = ring->mem.addr;
	ring->rec = ring->mem.addr + ring->rec_offset;
	return ring;
}

/**
 * qhca_cq_ring_free - free a ring that the device does not use any more
 * @ring: ring
 */
void qhca_cq_ring_free(struct qhca_cq_ring *ring)
{
	qhca_umem_free(&ring->mem);
	free(ring);
}

static uint32_t ring_capacity(const struct qhca_cq_ring *ring)
{
	return ring->depth > 1 ? ring->depth - 1 : 1;
}

/**
 * qhca_cq_publish - store for the device how far completions have been read
 * @cq: CQ, locked
 *
 * The index is only stored in memory: the device reads it when the queue seems
 * to fill up.
 */
void qhca_cq_publish(struct qhca_cq *cq)
{
	uint32_t ci = cq->ring->base + cq->ring->ci;

	qhca_store_release(&cq->ring->rec->ci, ci);
	atomic_store_explicit(&cq->arm_ci, ci, memory_order_relaxed);
}

/**
 * qhca_cq_next_ring - change to the next ring after reading QHCA_CQE_RESIZED
 * @cq: CQ, locked
 * @base: free-running index of the next ring's first entry, from the marker
 */
void qhca_cq_next_ring(struct qhca_cq *cq, uint32_t base)
{
	struct qhca_cq_ring *ring = cq->ring;

	if (!ring->next)
		return;
	cq->ring = ring->next;
	cq->ring->base = base;
	qhca_cq_ring_free(ring);
	/* The marker counts as read, even if the next ring has no entry yet. */
	qhca_cq_publish(cq);
}

/*
 * The index after the last completion that a poll would return now.  A ring that has ended is
 * followed by the next one, and the entry that ends it counts as read: the device has written
 * it, and would raise an event for an index before it at once.
 */
static uint32_t seen(const struct qhca_cq_ring *ring)
{
	uint32_t base = ring->base, end = ring_end(ring);
	const struct qhca_cqe *last;

	while (end != ring->ci) {
		last = ring_slot(ring, end - 1);
		if (last->opcode != QHCA_CQE_RESIZED)
			break;
		if (!ring->next)
			return base + end - 1;
		base = le32toh(last->wqe);
		ring = ring->next;
		end = ring_end(ring);
	}
	return base + end;
}

/*
 * Is the CQ already armed for at least what is asked for?  The device clears
 * the word before it raises the event, so the event is then yet to come, and no
 * doorbell is needed.  If there are completions in the ring, the event may be
 * for one of these, so the provider arms anew.  During a resize the device may
 * be in the next ring already, and the word is in that ring's record.
 */
static bool is_armed(const struct qhca_cq_ring *ring, bool solicited)
{
	uint32_t armed;

	if (ring->next)
		return false;
	armed = qhca_load(&ring->rec->armed);
	/* The word must be read before the ring. */
	udma_from_device_barrier();
	return (armed == 1 || (armed == 2 && solicited)) &&
	       ring_end(ring) == ring->ci;
}

/*
 * The event must be for a completion that is added after the request: a program
 * that takes one event, arms and then polls once must not get another event for
 * what it polls.  This thread may hold the lock itself, between start_poll and
 * end_poll; then the event is raised for any completion not yet consumed.
 */
int qhca_arm_cq(struct ibv_cq *ibcq, int solicited)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	uint32_t ci = atomic_load_explicit(&cq->arm_ci, memory_order_relaxed);
	bool armed = false;

	if (qhca_trylock(&cq->lock)) {
		armed = is_armed(cq->ring, solicited);
		ci = seen(cq->ring);
		qhca_unlock(&cq->lock);
	}
	if (!armed)
		qhca_doorbell(to_qctx(ibcq->context), QHCA_DB_CQ_ARM,
			      cq->cqn |
			      (solicited ? QHCA_DB_CQ_SOLICITED : 0), ci);
	return 0;
}

/*
 * What the handle of a completion points to whose QP has been destroyed: polling
 * frees the completion's slot there.  It has no rings.
 */
static struct qhca_qp gone;

/* The SRQ outlives the QP, so its slot must be freed. */
static void free_srq_slot(const struct qhca_cqe *cqe)
{
	uint32_t flags = le32toh(cqe->flags);
	const struct qhca_qp *qp;

	if ((flags & (QHCA_CQE_SRQ | QHCA_CQE_XRC)) == QHCA_CQE_SRQ) {
		qp = (const void *)(uintptr_t)le64toh(cqe->handle);
		qhca_srq_free_slot(to_qsrq(qp->vqp.qp.srq),
				   le32toh(cqe->wqe));
	}
}

static void disown_cqe(struct qhca_cqe *cqe)
{
	free_srq_slot(cqe);
	cqe->flags &= htole32(~QHCA_CQE_SRQ);
	cqe->handle = htole64((uintptr_t)&gone);
}

static void move_cqe(struct qhca_cq_ring *ring, uint32_t to, uint32_t from)
{
	struct qhca_cqe *cqe = ring_slot(ring, to);
	uint32_t flags;

	*cqe = *ring_slot(ring, from);
	flags = le32toh(cqe->flags) & ~QHCA_PHASE;
	if (!(to & ring->depth))
		flags |= QHCA_PHASE;
	cqe->flags = htole32(flags);
}

static bool is_of(const struct qhca_cqe *cqe, const void *owner)
{
	return cqe->opcode != QHCA_CQE_RESIZED &&
	       le64toh(cqe->handle) == (uintptr_t)owner;
}

/* Go from the newest to the oldest, and move kept entries into the gaps. */
static void clean_ring(struct qhca_cq_ring *ring, const void *owner)
{
	uint32_t from = ring_end(ring);
	uint32_t to = from;
	struct qhca_cqe *cqe;

	while (from != ring->ci) {
		from--;
		cqe = ring_slot(ring, from);
		if (is_of(cqe, owner)) {
			free_srq_slot(cqe);
			continue;
		}
		to--;
		if (to != from)
			move_cqe(ring, to, from);
	}

	ring->ci = to;
}

static void disown_ring(struct qhca_cq_ring *ring, const void *owner)
{
	uint32_t end = ring_end(ring), i;

	for (i = ring->ci; i != end; i++)
		if (is_of(ring_slot(ring, i), owner))
			disown_cqe(ring_slot(ring, i));
}

static void for_each_ring(struct qhca_cq *cq, const void *owner,
			  void (*act)(struct qhca_cq_ring *ring,
				      const void *owner))
{
	struct qhca_cq_ring *ring;

	for (ring = cq->ring; ring; ring = ring->next)
		act(ring, owner);
	qhca_cq_publish(cq);
}

static void for_both_cqs(struct qhca_cq *send_cq, struct qhca_cq *recv_cq,
			 const void *owner,
			 void (*act)(struct qhca_cq_ring *ring,
				     const void *owner))
{
	struct qhca_cq *first = send_cq, *second = recv_cq;

	if (first == second)
		second = NULL;
	if (!first || (second && second->cqn < first->cqn)) {
		first = recv_cq;
		second = send_cq;
	}
	if (first)
		qhca_lock(&first->lock);
	if (second)
		qhca_lock(&second->lock);

	if (first)
		for_each_ring(first, owner, act);
	if (second)
		for_each_ring(second, owner, act);

	if (second)
		qhca_unlock(&second->lock);
	if (first)
		qhca_unlock(&first->lock);
}

/**
 * qhca_cq_clean - remove the completions of a queue that starts anew or is gone
 * @send_cq: CQ or NULL
 * @recv_cq: CQ or NULL; may be the same
 * @owner: handle of the completions: a QP, or an XRC SRQ
 *
 * Must be called after the device has acknowledged that it writes no more of
 * them.
 */
void qhca_cq_clean(struct qhca_cq *send_cq, struct qhca_cq *recv_cq,
		   const void *owner)
{
	for_both_cqs(send_cq, recv_cq, owner, clean_ring);
}

/**
 * qhca_cq_disown - keep the completions of a QP that is going to be freed
 * @send_cq: CQ or NULL
 * @recv_cq: CQ or NULL; may be the same
 * @qp: QP
 *
 * A program may destroy a QP in one thread while another has yet to poll what
 * the QP has completed.  The completions stay, without a pointer to the QP.
 * Must be called after the device has acknowledged that it writes no more of
 * them.
 */
void qhca_cq_disown(struct qhca_cq *send_cq, struct qhca_cq *recv_cq,
		    const struct qhca_qp *qp)
{
	for_both_cqs(send_cq, recv_cq, qp, disown_ring);
}

static int create_cq_cmd(struct ibv_context *context, struct qhca_cq *cq,
			 struct ibv_cq_init_attr_ex *attr)
{
	struct qhca_ucmd_create_cq_resp resp = {};
	struct qhca_ucmd_create_cq cmd = {};
	struct qhca_cq_ring *ring = cq->ring;
	int ret;

	cmd.buf_addr = (uintptr_t)ring->mem.addr;
	cmd.buf_length = ring->mem.length;
	cmd.rec_offset = ring->rec_offset;
	cmd.log_depth = qhca_log2_up(ring->depth);
	cmd.threshold = cq->threshold;

	ret = qhca_cmd_create_cq(context, attr, &cq->vcq, &cmd.ibv_cmd,
				 sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		return ret;

	cq->cqn = resp.cqn;
	cq->vcq.cq.cqe = ring_capacity(ring);
	return 0;
}

static int check_cq_attr(const struct ibv_cq_init_attr_ex *attr)
{
	if (!check_comp_mask(attr->comp_mask, IBV_CQ_INIT_ATTR_MASK_FLAGS |
			     IBV_CQ_INIT_ATTR_MASK_PD))
		return EOPNOTSUPP;

	if (!check_comp_mask(attr->wc_flags, IBV_WC_STANDARD_FLAGS |
			     IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			     IBV_WC_EX_WITH_CVLAN))
		return EOPNOTSUPP;

	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    !check_comp_mask(attr->flags, IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
			     IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))
		return EOPNOTSUPP;

	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) &&
	    !to_qpd(attr->parent_domain)->contained)
		return EINVAL;

	return 0;
}

static struct qhca_cq *create_cq(struct ibv_context *context,
				 struct ibv_cq_init_attr_ex *attr,
				 uint32_t threshold)
{
	struct qhca_cq *cq;
	bool threads = true;
	int ret;

	ret = check_cq_attr(attr);
	if (ret) {
		errno = ret;
		return NULL;
	}

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	cq->threshold = threshold;

	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		cq->pd = to_qpd(attr->parent_domain);
		threads = !qhca_single_threaded(cq->pd);
	}
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		threads = false;

	cq->ring = qhca_cq_ring_new(to_qctx(context), cq->pd, attr->cqe,
				    QHCA_CQ_SPARE);
	if (!cq->ring)
		goto err_free;

	qhca_lock_init(&cq->lock, threads);
	pthread_mutex_init(&cq->resize_lock, NULL);

	ret = create_cq_cmd(context, cq, attr);
	if (ret) {
		errno = ret;
		goto err_ring;
	}

	if (cq->pd)
		atomic_fetch_add(&cq->pd->users, 1);
	return cq;

err_ring:
	ret = errno;
	pthread_mutex_destroy(&cq->resize_lock);
	qhca_cq_ring_free(cq->ring);
	errno = ret;
err_free:
	free(cq);
	return NULL;
}

struct ibv_cq *qhca_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct qhca_cq *cq;

	if (cqe < 0) {
		errno = EINVAL;
		return NULL;
	}

	cq = create_cq(context, &attr, 0);
	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *qhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr)
{
	struct qhca_cq *cq = create_cq(context, attr, 0);

	if (!cq)
		return NULL;
	qhca_cq_set_ex_ops(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

struct ibv_cq_ex *qhcadv_create_cq(struct ibv_context *context,
				   struct ibv_cq_init_attr_ex *attr,
				   const struct qhcadv_queue_attr *queue,
				   uint32_t inlen)
{
	uint32_t threshold;
	struct qhca_cq *cq;

	if (!qhca_queue_threshold(context, queue, inlen, &threshold))
		return NULL;
	cq = create_cq(context, attr, threshold);
	if (!cq)
		return NULL;
	qhca_cq_set_ex_ops(cq, attr->wc_flags);
	verbs_init_cq(&cq->vcq.cq, context, attr->channel, attr->cq_context);
	return &cq->vcq.cq_ex;
}

int qhca_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd;

	return ibv_cmd_modify_cq(ibcq, attr, &cmd, sizeof(cmd));
}

/* Append @ring, unless more completions wait than it could hold. */
static int append_ring(struct qhca_cq *cq, struct qhca_cq_ring *ring)
{
	struct qhca_cq_ring *last;
	uint32_t unread = 0;
	int ret = 0;

	qhca_lock(&cq->lock);
	for (last = cq->ring; ; last = last->next) {
		unread += ring_end(last) - last->ci;
		if (!last->next)
			break;
	}
	if (unread + 1 < ring->depth)
		last->next = ring;
	else
		ret = EINVAL;
	qhca_unlock(&cq->lock);
	return ret;
}

static void remove_last_ring(struct qhca_cq *cq)
{
	struct qhca_cq_ring **last = &cq->ring;

	qhca_lock(&cq->lock);
	while ((*last)->next)
		last = &(*last)->next;
	qhca_cq_ring_free(*last);
	*last = NULL;
	qhca_unlock(&cq->lock);
}

/* Leave rings in which only QHCA_CQE_RESIZED is unread. */
static void skip_finished_rings(struct qhca_cq *cq)
{
	const struct qhca_cqe *cqe;
	struct qhca_cq_ring *ring;

	qhca_lock(&cq->lock);
	while (cq->ring->next) {
		ring = cq->ring;
		if (!ring_valid(ring, ring->ci))
			break;
		udma_from_device_barrier();
		cqe = ring_slot(ring, ring->ci);
		if (cqe->opcode != QHCA_CQE_RESIZED)
			break;
		ring->ci++;
		qhca_cq_next_ring(cq, le32toh(cqe->wqe));
	}
	qhca_unlock(&cq->lock);
}

static int resize_cq_cmd(struct qhca_cq *cq, struct qhca_cq_ring *ring,
			 int cqe)
{
	struct qhca_ucmd_resize_cq_resp resp = {};
	struct qhca_ucmd_resize_cq cmd = {};
	int ret;

	cmd.buf_addr = (uintptr_t)ring->mem.addr;
	cmd.buf_length = ring->mem.length;
	cmd.rec_offset = ring->rec_offset;
	cmd.log_depth = qhca_log2_up(ring->depth);
	cmd.threshold = cq->threshold < ring->depth ? cq->threshold :
						      ring->depth;

	ret = ibv_cmd_resize_cq(&cq->vcq.cq, cqe, &cmd.ibv_cmd, sizeof(cmd),
				&resp.ibv_resp, sizeof(resp));
	if (!ret)
		cq->vcq.cq.cqe = ring_capacity(ring);
	return ret;
}

int qhca_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	struct qhca_cq_ring *ring;
	int ret;

	if (cqe < 1)
		return EINVAL;

	ring = qhca_cq_ring_new(to_qctx(ibcq->context), cq->pd, cqe,
				QHCA_CQ_SPARE_RESIZED);
	if (!ring)
		return errno;

	/* The rings must be in the order in which the device gets them. */
	pthread_mutex_lock(&cq->resize_lock);

	ret = append_ring(cq, ring);
	if (ret) {
		qhca_cq_ring_free(ring);
		goto out;
	}

	ret = resize_cq_cmd(cq, ring, cqe);
	if (ret)
		remove_last_ring(cq);
	else
		skip_finished_rings(cq);
out:
	pthread_mutex_unlock(&cq->resize_lock);
	return ret;
}

int qhca_destroy_cq(struct ibv_cq *ibcq)
{
	struct qhca_cq *cq = to_qcq(ibcq);
	struct qhca_cq_ring *ring;
	int ret;

	ret = ibv_cmd_destroy_cq(ibcq);
	if (ret)
		return ret;

	while (cq->ring) {
		ring = cq->ring;
		cq->ring = ring->next;
		qhca_cq_ring_free(ring);
	}
	if (cq->pd)
		atomic_fetch_sub(&cq->pd->users, 1);
	pthread_mutex_destroy(&cq->resize_lock);
	free(cq);
	return 0;
}
