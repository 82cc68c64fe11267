/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "load.h"

/* ---- slices */

/* Returns false if there is no room now. */
static bool claim(struct claims *r, uint32_t len, uint32_t align, uint32_t *off,
		  uint32_t *taken)
{
	uint32_t pos = r->head % r->size, skip;

	skip = (align - (pos & (align - 1))) & (align - 1);
	/* A slice does not wrap around the end of the region. */
	if (pos + skip + len > r->size)
		skip = r->size - pos;
	if (r->head + skip + len - r->tail > r->size)
		return false;
	*off = r->base + (pos + skip) % r->size;
	*taken = skip + len;
	r->head += *taken;
	return true;
}

void load_fill(uint64_t seed, uint8_t *p, uint32_t len)
{
	for (; len; p += 8 < len ? 8 : len, len -= 8 < len ? 8 : len) {
		uint64_t v = seed += 0x9e3779b97f4a7c15ull;

		v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
		memcpy(p, &v, 8 < len ? 8 : len);
	}
}

void load_payload(const struct side *s, const struct op *op, uint8_t *p)
{
	load_fill(op->seed, p, op->len);
	if (unreliable(s))
		put_le32(p, op - s->op);
}

/* ---- posting */

static uint32_t random_len(struct load *l, const struct side *s)
{
	struct world *w = l->w;
	uint32_t max = l->plan->max_len;

	if (s->type == QHCA_QPT_UD)
		return 4 + world_pick(w, s->mtu - 3);
	switch (world_pick(w, 8)) {
	case 0:
		return 0;
	case 1:
		return 1 + world_pick(w, 16);
	case 2:		/* about a multiple of the MTU */
		return s->mtu * (1 + world_pick(w, 3)) + world_pick(w, 3) - 1;
	default:
		if (world_chance(w, l->plan->big_ppm))
			return 1 + world_pick(w, MAX_BIG);
		return 1 + world_pick(w, max);
	}
}

static uint8_t random_opcode(struct load *l, const struct side *s)
{
	static const uint8_t rc[] = {
		QHCA_WQE_SEND, QHCA_WQE_SEND_IMM, QHCA_WQE_WRITE,
		QHCA_WQE_WRITE_IMM, QHCA_WQE_READ, QHCA_WQE_CMP_SWAP,
		QHCA_WQE_FETCH_ADD, QHCA_WQE_SEND, QHCA_WQE_WRITE,
		QHCA_WQE_READ, QHCA_WQE_NOP, QHCA_WQE_ATOMIC_WRITE,
		QHCA_WQE_FLUSH,
	};
	static const uint8_t uc[] = {
		QHCA_WQE_SEND, QHCA_WQE_SEND_IMM, QHCA_WQE_SEND,
		QHCA_WQE_WRITE_IMM,
	};

	if (!unreliable(s))
		return rc[world_pick(l->w, sizeof(rc))];
	if (s->type == QHCA_QPT_UC)
		return uc[world_pick(l->w, sizeof(uc))];
	return uc[world_pick(l->w, 2)];
}

static bool is_atomic(uint8_t opcode)
{
	return opcode == QHCA_WQE_CMP_SWAP || opcode == QHCA_WQE_FETCH_ADD;
}

/* Is its target one of a few words that all such requests share? */
static bool shares_words(uint8_t opcode)
{
	return is_atomic(opcode) || opcode == QHCA_WQE_ATOMIC_WRITE;
}

/* Chooses any range of the target region, or all of it, followed by anything. */
static void plan_flush(struct load *l, const struct side *s, struct op *op)
{
	const struct md_mr *to = &s->peer->dst;
	uint32_t off = world_pick(l->w, to->len + 1);

	op->len = 0;
	op->flush_level = world_pick(l->w, 2);
	op->flush_addr = to->iova + off;
	op->flush_len = world_pick(l->w, to->len - off + 1);
	if (op->flush_level == QHCA_FLUSH_REGION) {
		op->flush_addr = world_rand(l->w);
		op->flush_len = world_rand(l->w);
	}
}

static bool plan_op(struct load *l, struct side *s, struct op *op)
{
	struct world *w = l->w;
	struct side *p = s->peer;
	struct claims src = s->src_ring;

	memset(op, 0, sizeof(*op));
	op->opcode = random_opcode(l, s);
	op->len = op->opcode == QHCA_WQE_NOP ? 0 : random_len(l, s);
	/* A message that may be lost or repeated has its number in its payload. */
	if (unreliable(s) && op->len < 4)
		op->len = 4;
	op->seed = (uint64_t)world_rand(w) << 32 | world_rand(w);
	op->imm = unreliable(s) ? s->posted : world_rand(w);
	op->srq = world_pick(w, XRC_SRQS);
	if (op->opcode == QHCA_WQE_FLUSH)
		plan_flush(l, s, op);
	if (shares_words(op->opcode)) {
		op->len = 8;
		op->dst = 8 * world_pick(w, ATOMIC_AREA / 8 / 64);
		op->swap_add = world_rand(w);
		/* The values come from a small set, so that the comparison often holds. */
		op->compare = get_le64(p->dst_model + op->dst);
	}
	if (op->len > p->recv_len && takes_recv(op->opcode) &&
	    op->opcode != QHCA_WQE_WRITE_IMM)
		op->len = p->recv_len;
	if (!claim(&s->src_ring, op->len, is_atomic(op->opcode) ? 8 : 1,
		   &op->src, &op->src_claim))
		return false;
	if (!is_send(op->opcode) && !shares_words(op->opcode) &&
	    !claim(&p->dst_ring, op->len, 1, &op->dst, &op->dst_claim)) {
		s->src_ring = src;
		return false;
	}
	op->flags = 0;
	if (world_chance(w, 600000))
		op->flags |= QHCA_WQE_F_SIGNALED;
	if (world_chance(w, 100000))
		op->flags |= QHCA_WQE_F_FENCE;
	if (world_chance(w, 200000))
		op->flags |= QHCA_WQE_F_SOLICITED;
	return true;
}

/* Cut [off, off + len) of @mr into random segments. */
static uint32_t split(struct load *l, const struct md_mr *mr, uint32_t off,
		      uint32_t len, uint32_t max, struct md_sge *sge)
{
	struct world *w = l->w;
	uint32_t n = 0;

	while (n + 1 < max && world_chance(w, 500000)) {
		uint32_t part = len ? world_pick(w, len + 1) : 0;

		/* A segment of no length may have any key. */
		sge[n++] = (struct md_sge){
			mr->iova + off, part, part ? mr->key : 0xdead00,
		};
		off += part;
		len -= part;
	}
	if (len || world_chance(w, 500000))
		sge[n++] = (struct md_sge){ mr->iova + off, len,
					    len ? mr->key : 0 };
	return n;
}

static uint32_t max_segs(uint32_t log_stride, uint32_t header)
{
	uint32_t n = ((1u << log_stride) - header) / 16;

	return n < MD_MAX_SGE ? n : MD_MAX_SGE;
}

static void post_op(struct load *l, struct side *s, struct op *op)
{
	struct world *w = l->w;
	struct md_sge sge[MD_MAX_SGE];
	uint8_t data[16 * MD_MAX_SGE];
	uint32_t segs = max_segs(s->qp.init.sq_log_stride, 64);
	struct md_wr wr = {
		.opcode = op->opcode, .flags = op->flags, .imm = op->imm,
		.wr_id = s->posted | (uint64_t)s->qp.qpn << 32,
		.raddr = s->peer->dst.iova + op->dst, .rkey = s->peer->dst.key,
		.swap_add = op->swap_add, .compare = op->compare, .sge = sge,
		.flush_type = QHCA_FLUSH_GLOBAL, .flush_len = op->flush_len,
		.flush_level = op->flush_level,
	};
	uint8_t *model = s->src_model + op->src;

	if (op->opcode == QHCA_WQE_FLUSH) {
		wr.raddr = op->flush_addr;
	} else if (op->opcode != QHCA_WQE_READ && !is_atomic(op->opcode)) {
		load_payload(s, op, model);
		md_buf_write(s->md, &s->src.buf, op->src + s->src.iova % 4096,
			     model, op->len);
		if (op->len <= segs * 16 && world_chance(w, 300000)) {
			wr.flags |= QHCA_WQE_F_INLINE;
			memcpy(data, model, op->len);
			wr.inline_data = data;
			wr.inline_len = op->len;
		}
	}
	if (s->type == QHCA_QPT_UD)
		wr.ud = &s->ud;
	if (is_xrc(s))
		wr.xrc_srqn = s->peer->xsrq[op->srq].srqn;
	if (!(wr.flags & QHCA_WQE_F_INLINE))
		wr.num_sge = split(l, &s->src, op->src, op->len, segs, sge);
	md_post_send(s->md, &s->qp, &wr);
	s->posted++;
}

void load_post_sends(struct load *l, struct side *s)
{
	uint32_t burst = 1 + world_pick(l->w, 8);
	bool ring = false;

	while (burst-- && s->posted < s->total &&
	       s->posted - s->completed < s->depth) {
		struct op *op = &s->op[s->posted];

		if (!plan_op(l, s, op))
			break;
		/* Without a signalled request nobody would learn that the others have completed. */
		if (s->posted + 1 == s->total || s->posted % 4 == 3 ||
		    s->posted + 1 - s->completed == s->depth)
			op->flags |= QHCA_WQE_F_SIGNALED;
		op->signaled = op->flags & QHCA_WQE_F_SIGNALED;
		post_op(l, s, op);
		ring = true;
		if (world_chance(l->w, 300000))
			md_ring(s->md, &s->qp);
	}
	if (ring)
		md_ring(s->md, &s->qp);
}

void load_post_recvs(struct load *l, struct side *s)
{
	uint32_t burst = 1 + world_pick(l->w, 6);

	while (burst--) {
		struct md_sge sge[MD_MAX_SGE];
		struct md_srq *srq;
		uint32_t slot, n;

		for (slot = 0; slot < RECV_SLOTS && s->recv_busy[slot]; slot++)
			;
		if (slot == RECV_SLOTS ||
		    s->recv_posted - s->recv_done >= RECV_SLOTS - 1)
			return;
		srq = srq_of(s, slot);
		n = split(l, &s->recv, recv_off(s, slot), s->recv_len,
			  max_segs(srq ? srq->log_stride :
					 s->qp.init.rq_log_stride, 16), sge);
		if (!srq)
			md_post_recv(s->md, &s->qp, slot, sge, n);
		else if (!md_srq_post(s->md, srq, slot, sge, n))
			return;
		s->recv_busy[slot] = true;
		s->recv_posted++;
	}
}
