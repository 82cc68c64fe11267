// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "extended.h"
#include "verify.h"

/* -- a round's plan --------------------------------------------------------- */

/* Fences what overlaps a READ that may have to be repeated, or may not be behind one. */
static void plan_fences(const struct settings *s, struct lane *lane)
{
	unsigned int first = 0;

	for (unsigned int i = 0; i < lane->n_mine; i++) {
		struct op *op = &lane->mine[i];
		bool empty = s->flags & FENCE_EMPTY && !op->size;

		if ((op->kind == OP_READ && !empty) || op_is_send(op->kind))
			continue;
		for (unsigned int k = first; k < i; k++) {
			const struct op *read = &lane->mine[k];

			if (read->kind == OP_READ &&
			    (empty || (read->remote < op->remote + op->size &&
				       op->remote < read->remote + read->size)))
				op->fenced = true;
		}
		if (op->fenced)
			first = i;
	}
}

static void plan_request(struct job *job, struct lane *lane, unsigned int i, uint32_t *at)
{
	struct op *op = &lane->mine[i];

	if (op_is_place(op->kind)) {
		op->local.n = 0;
	} else if (op_is_word(op->kind)) {
		*at = (*at + 7) & ~7u;
		op->local.n = 1;
		op->local.piece[0] = (struct piece) { *at, 8 };
		*at += 8 + rng_below(&job->rng, PIECE_GAP);
	} else {
		lay_out(&job->rng, op->size, job->max_sge, at, &op->local);
	}
	op->signalled = i == lane->n_mine - 1 || rng_below(&job->rng, 3);
	op->is_inline = op_gathers(op->kind) && op->size <= job->max_inline &&
			rng_below(&job->rng, 2);
	if (op_gathers(op->kind)) {
		make_payload(&job->set, mine(job), lane->index, job->round, i, job->scratch, op->size);
		scatter(lane->arena.mem, &op->local, job->scratch, op->size);
		scatter(lane->arena.model, &op->local, job->scratch, op->size);
	}
	apply(lane->far_window, op, job->scratch);
	if (!op_gathers(op->kind) && !op_is_place(op->kind))
		scatter(lane->arena.model, &op->local, job->scratch, op->size);
	job->count[op->kind]++;
	job->bytes += op->size;
	job->inlined += op->is_inline;
}

/* Receives of one lane, or any lane's with an SRQ. */
static void plan_receive(struct job *job, unsigned int lane, uint32_t size, uint32_t *at)
{
	struct slot *slot = &job->slot[job->n_slots];

	slot->size = size;
	slot->done = false;
	lay_out(&job->rng, size, job->max_sge, at, &slot->layout);
	if (*at > job->inbox.size)
		die("the inbox is too small: a mistake of the test");
	job->slot_lane[job->n_slots++] = lane;
}

static uint32_t receive_size(struct job *job, const struct op *op)
{
	uint32_t header = job->set.type == IBV_QPT_UD ? GRH_LEN : 0;

	if (job->set.flags & (USE_SRQ | LOSSY))
		return largest_message(&job->set) + header;
	if (op->kind == OP_WRITE_IMM)
		return rng_below(&job->rng, 8);
	return op->size + header + (rng_below(&job->rng, 2) ? rng_below(&job->rng, PIECE_GAP) : 0);
}

static void plan_lane(struct job *job, struct lane *lane, uint32_t *inbox_at)
{
	const struct settings *s = &job->set;
	uint32_t at = rng_below(&job->rng, 64);

	lane->n_mine = plan_ops(s, mine(job), lane->index, job->round, lane->mine);
	lane->n_theirs = plan_ops(s, !mine(job), lane->index, job->round, lane->theirs);
	lane->posted = lane->completed = lane->arrived = 0;
	fill(payload_key(s, mine(job), lane->index, job->round, ~0u), lane->arena.mem, lane->arena.size);
	memcpy(lane->arena.model, lane->arena.mem, lane->arena.size);
	for (unsigned int i = 0; i < lane->n_mine; i++)
		plan_request(job, lane, i, &at);
	if (at > lane->arena.size)
		die("the arena is too small: a mistake of the test");
	plan_fences(&job->set, lane);
	for (unsigned int i = 0; i < lane->n_theirs; i++) {
		struct op *op = &lane->theirs[i];

		if (op->kind == OP_WRITE || op->kind == OP_WRITE_IMM)
			make_payload(s, !mine(job), lane->index, job->round, i, job->scratch, op->size);
		apply(lane->window.model, op, job->scratch);
		if (!op_takes_receive(op->kind))
			continue;
		job->expected++;
		for (int copies = s->flags & LOSSY ? 2 : 1; copies; copies--)
			plan_receive(job, lane->index, receive_size(job, op), inbox_at);
	}
}

void plan_round(struct job *job)
{
	uint32_t at = 0;

	job->rng = rng_for(job->set.seed, 4, mine(job), job->round);
	job->n_slots = job->posted_slots = job->expected = job->received = 0;
	fill(payload_key(&job->set, mine(job), ~0u, job->round, 0), job->inbox.mem, job->inbox.size);
	memcpy(job->inbox.model, job->inbox.mem, job->inbox.size);
	for (unsigned int i = 0; i < job->set.lanes; i++)
		plan_lane(job, &job->lane[i], &at);
}

/* -- posting ---------------------------------------------------------------- */

static unsigned int sge_list(const struct region *region, const struct layout *layout,
			     struct ibv_sge *sge)
{
	for (unsigned int i = 0; i < layout->n; i++)
		sge[i] = (struct ibv_sge) {
			.addr = (uintptr_t)region->mem + layout->piece[i].at,
			.length = layout->piece[i].len,
			.lkey = ((struct ibv_mr *)region->mr)->lkey,
		};
	return layout->n;
}

/* Posts while messages arrive and use up receives. */
static void grow(struct job *job)
{
	struct ibv_srq_attr attr = { .max_wr = job->srq_size + 1 };
	int rc = ibv_modify_srq(job->srq, &attr, IBV_SRQ_MAX_WR);

	if (rc)
		die("ibv_modify_srq to %u: %s", attr.max_wr, strerror(rc));
	rc = ibv_query_srq(job->srq, &attr);
	if (rc || attr.max_wr <= job->srq_size)
		die("the SRQ has %u after it had %u: %s", attr.max_wr, job->srq_size, strerror(rc));
	job->srq_size = attr.max_wr;
	job->grown++;
}

void post_receive(struct job *job)
{
	unsigned int i = job->posted_slots++;
	struct slot *slot = &job->slot[i];
	struct ibv_sge sge[MAX_PIECES];
	struct ibv_recv_wr wr = { .wr_id = RECEIVE_ID | i, .sg_list = sge }, *bad;
	int rc;

	wr.num_sge = sge_list(&job->inbox, &slot->layout, sge);
	if (job->srq)
		while ((rc = ibv_post_srq_recv(job->srq, &wr, &bad)) == ENOMEM && job->grows)
			grow(job);
	else
		rc = ibv_post_recv(job->lane[job->slot_lane[i]].qp, &wr, &bad);
	if (rc)
		die("posting a receive: %s", strerror(rc));
}

static void build(struct job *job, struct lane *lane, unsigned int i, struct ibv_send_wr *wr,
		  struct ibv_sge *sge)
{
	static const enum ibv_wr_opcode opcodes[OP_KINDS] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_ATOMIC_WRITE, IBV_WR_FLUSH,
	};
	const struct op *op = &lane->mine[i];

	*wr = (struct ibv_send_wr) {
		.wr_id = (uint64_t)lane->index << 32 | i,
		.opcode = opcodes[op->kind],
		.sg_list = sge,
		.num_sge = sge_list(&lane->arena, &op->local, sge),
		.imm_data = htobe32(op->imm),
		.send_flags = (op->signalled ? IBV_SEND_SIGNALED : 0) |
			      (op->fenced ? IBV_SEND_FENCE : 0) |
			      (op->is_inline ? IBV_SEND_INLINE : 0) |
			      (op_takes_receive(op->kind) ? IBV_SEND_SOLICITED : 0),
	};
	job->fenced += op->fenced;
	if (is_xrc(job))
		wr->qp_type.xrc.remote_srqn = lane->far_srqn;
	if (job->set.type == IBV_QPT_UD) {
		wr->wr.ud.ah = lane->ah;
		wr->wr.ud.remote_qpn = lane->remote.qpn;
		wr->wr.ud.remote_qkey = TEST_QKEY;
	} else if (op->kind == OP_CMP_SWAP || op->kind == OP_FETCH_ADD) {
		bool add = op->kind == OP_FETCH_ADD;

		wr->wr.atomic.remote_addr = lane->far_addr + op->remote;
		wr->wr.atomic.rkey = lane->far_rkey;
		wr->wr.atomic.compare_add = add ? op->operand : op->compare;
		wr->wr.atomic.swap = op->operand;
	} else {
		wr->wr.rdma.remote_addr = lane->far_addr + op->remote;
		wr->wr.rdma.rkey = lane->far_rkey;
	}
}

/* Inline data are the device's once posted: what was their source is spoilt. */
static void spoil(struct lane *lane, const struct op *op)
{
	for (unsigned int i = 0; i < op->local.n; i++) {
		const struct piece *p = &op->local.piece[i];

		memset(lane->arena.mem + p->at, 0xee, p->len);
		memset(lane->arena.model + p->at, 0xee, p->len);
	}
}

static void post_place(struct job *job, struct lane *lane)
{
	unsigned int i = lane->posted;
	const struct op *op = &lane->mine[i];
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(lane->qp);
	uint64_t addr = lane->far_addr + op->remote;
	int rc;

	ibv_wr_start(qp);
	qp->wr_id = (uint64_t)lane->index << 32 | i;
	qp->wr_flags = (op->signalled ? IBV_SEND_SIGNALED : 0) |
		       (op->fenced ? IBV_SEND_FENCE : 0);
	job->fenced += op->fenced;
	if (op->kind == OP_ATOMIC_WRITE)
		ibv_wr_atomic_write(qp, lane->far_rkey, addr, &op->operand);
	else
		ibv_wr_flush(qp, lane->far_rkey, addr, op->size, IBV_FLUSH_GLOBAL,
			     op->match ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
	rc = ibv_wr_complete(qp);
	if (rc)
		die("posting %s: %s", op_names[op->kind], strerror(rc));
	lane->posted++;
}

void post_chain(struct job *job, struct lane *lane)
{
	struct ibv_send_wr wr[8], *bad;
	struct ibv_sge sge[8][MAX_PIECES];
	unsigned int most = 1 + rng_below(&job->rng, 8), first = lane->posted, n = 0;
	int rc;

	if (op_is_place(lane->mine[first].kind)) {
		post_place(job, lane);
		return;
	}
	while (n < most && first + n < lane->n_mine && !op_is_place(lane->mine[first + n].kind))
		n++;
	for (unsigned int i = 0; i < n; i++) {
		build(job, lane, first + i, &wr[i], sge[i]);
		if (i)
			wr[i - 1].next = &wr[i];
	}
	if (job->set.flags & EXTENDED)
		rc = extended_post_send(lane->qp, wr);
	else
		rc = ibv_post_send(lane->qp, wr, &bad);
	if (rc)
		die("posting %u sends: %s", n, strerror(rc));
	lane->posted += n;
	for (unsigned int i = first; i < first + n; i++)
		if (lane->mine[i].is_inline)
			spoil(lane, &lane->mine[i]);
}
