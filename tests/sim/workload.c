/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "workload.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"
#include "odp.h"

#define REGION		(192u << 10)
#define ATOMIC_AREA	4096u		/* first bytes of each target region */
#define MAX_BIG		65536u
#define MAX_PAIRS	6
#define MAX_OPS		400
#define RECV_SLOTS	32
#define XRC_SRQS	2
#define SRQ_LOG_DEPTH	4
#define SRQ_MAX_LOG_DEPTH 6
#define IOVA		0x7f0000000000ull
#define GRH		40
#define QKEY		0x1234
#define TIME_LIMIT	60000000000ull	/* ns of virtual time */
#define TAKE_LIMIT	30000000000ull	/* pages are left in peace then */

struct op {
	uint8_t opcode, flags;
	uint32_t len;
	uint32_t src, dst;		/* offsets in the regions */
	uint32_t src_claim, dst_claim;	/* bytes with alignment */
	uint32_t srq;			/* XRC: which of the peer's */
	uint32_t imm;
	uint64_t swap_add, compare;
	uint64_t seed;			/* of the payload */
	uint64_t flush_addr;
	uint32_t flush_len;
	uint8_t flush_level;
	bool signaled;
};

struct ring {				/* claimed bytes of a region */
	uint32_t head, tail, base, size;
};

struct side {
	struct md *md;
	struct side *peer;
	struct md_qp qp;		/* XRC: initiator, and */
	struct md_qp tgt;		/* ... target */
	struct md_cq *scq, *rcq;
	struct md_mr src, dst, recv;
	uint8_t *src_model, *dst_model;
	struct ring src_ring, dst_ring;
	struct op op[MAX_OPS];
	uint32_t posted, completed, total;
	uint32_t expected;		/* op of the peer the next receive is for */
	uint32_t recv_len;		/* bytes of a receive buffer */
	uint32_t recv_posted, recv_done;
	bool recv_busy[RECV_SLOTS];
	uint8_t type;
	uint32_t mtu;
	uint32_t depth;
	struct md_srq *srq, srq_room;
	struct md_srq xsrq[XRC_SRQS];	/* receive slot n goes to n % XRC_SRQS */
	struct qhca_wqe_ud ud;
};

#define MAX_FAULTS	64

struct fault {				/* told of, not yet served */
	uint64_t due;
	uint32_t qpn;
	struct qhca_fault_info info;
};

struct memory {				/* of a host's regions on demand */
	struct md_frames *frames;
	struct fault fault[MAX_FAULTS];
	uint32_t num_faults;
	uint32_t given_way;		/* resumes of gathers that were refused */
};

struct load {
	struct world *w;
	const struct plan *plan;
	struct side side[MAX_PAIRS][2];
	struct md_cq cq[2];
	uint32_t num_pairs;
	struct memory memory[2];
	char error[512];
};

#define FAIL(l, ...) \
	(snprintf((l)->error, sizeof((l)->error), __VA_ARGS__), false)

/* ---- slices */

/* false: no room now. */
static bool claim(struct ring *r, uint32_t len, uint32_t align, uint32_t *off,
		  uint32_t *taken)
{
	uint32_t pos = r->head % r->size, skip;

	skip = (align - (pos & (align - 1))) & (align - 1);
	if (pos + skip + len > r->size)		/* no slice wraps */
		skip = r->size - pos;
	if (r->head + skip + len - r->tail > r->size)
		return false;
	*off = r->base + (pos + skip) % r->size;
	*taken = skip + len;
	r->head += *taken;
	return true;
}

static void release(struct ring *r, uint32_t taken)
{
	r->tail += taken;
}

static void fill(uint64_t seed, uint8_t *p, uint32_t len)
{
	for (; len; p += 8 < len ? 8 : len, len -= 8 < len ? 8 : len) {
		uint64_t v = seed += 0x9e3779b97f4a7c15ull;

		v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull;
		memcpy(p, &v, 8 < len ? 8 : len);
	}
}

static bool is_xrc(const struct side *s)
{
	return s->type == QHCA_QPT_XRC_INI;
}

static bool unreliable(const struct side *s)
{
	return s->type != QHCA_QPT_RC && !is_xrc(s);
}

/* Payload of a request: an unreliable one begins with its number. */
static void payload(const struct side *s, const struct op *op, uint8_t *p)
{
	fill(op->seed, p, op->len);
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

static bool is_send(uint8_t opcode)
{
	return opcode == QHCA_WQE_SEND || opcode == QHCA_WQE_SEND_IMM;
}

static bool takes_recv(uint8_t opcode)
{
	return is_send(opcode) || opcode == QHCA_WQE_WRITE_IMM;
}

static bool has_imm(uint8_t opcode)
{
	return opcode == QHCA_WQE_SEND_IMM || opcode == QHCA_WQE_WRITE_IMM;
}

/* Any range of the target region, or all of it and then anything. */
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
	struct ring src = s->src_ring;

	memset(op, 0, sizeof(*op));
	op->opcode = random_opcode(l, s);
	op->len = op->opcode == QHCA_WQE_NOP ? 0 : random_len(l, s);
	/* what may be lost or repeated says by itself who it is */
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
		/* often right: a small set of values */
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

		/* a segment of no length may have any key */
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
		payload(s, op, model);
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

static void post_sends(struct load *l, struct side *s)
{
	uint32_t burst = 1 + world_pick(l->w, 8);
	bool ring = false;

	while (burst-- && s->posted < s->total &&
	       s->posted - s->completed < s->depth) {
		struct op *op = &s->op[s->posted];

		if (!plan_op(l, s, op))
			break;
		/* someone must tell when to go on, and when it is over */
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

static uint32_t recv_off(const struct side *s, uint32_t slot)
{
	return slot * s->recv_len;
}

static struct md_srq *srq_of(struct side *s, uint32_t slot)
{
	return is_xrc(s) ? &s->xsrq[slot % XRC_SRQS] : s->srq;
}

static void post_recvs(struct load *l, struct side *s)
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

/* ---- checking */

/* The request has taken effect: so be it in the model. */
static bool apply(struct load *l, struct side *s, struct op *op)
{
	struct side *p = s->peer;
	uint8_t *src = s->src_model + op->src, *dst = p->dst_model + op->dst;
	uint64_t old;

	switch (op->opcode) {
	case QHCA_WQE_WRITE:
	case QHCA_WQE_WRITE_IMM:
	case QHCA_WQE_ATOMIC_WRITE:
		memcpy(dst, src, op->len);
		break;
	case QHCA_WQE_READ:
		memcpy(src, dst, op->len);
		break;
	case QHCA_WQE_CMP_SWAP:
	case QHCA_WQE_FETCH_ADD:
		old = get_le64(dst);
		put_le64(src, old);
		if (op->opcode == QHCA_WQE_FETCH_ADD)
			put_le64(dst, old + op->swap_add);
		else if (old == op->compare)
			put_le64(dst, op->swap_add);
		break;
	default:
		break;
	}
	(void)l;
	return true;
}

static bool same(struct load *l, const struct side *s, const struct md_mr *mr,
		 const uint8_t *model, uint32_t off, uint32_t len,
		 const char *what, uint32_t number)
{
	static uint8_t now[REGION];

	md_buf_read(s->md, &mr->buf, off + mr->iova % 4096, now, len);
	if (!memcmp(now, model + off, len))
		return true;
	for (uint32_t i = 0; i < len; i++)
		if (now[i] != model[off + i])
			return FAIL(l, "host %u qp %u: %s %u differs at byte %u of %u: %02x, not %02x",
				    s->md->mac[5], s->qp.qpn, what, number, i,
				    len, now[i], model[off + i]);
	return true;
}

static bool check_op(struct load *l, struct side *s, uint32_t number)
{
	struct op *op = &s->op[number];

	if (unreliable(s) && op->opcode == QHCA_WQE_WRITE_IMM)
		goto out;		/* whether it arrived is not known */
	if (!apply(l, s, op) ||
	    !same(l, s, &s->src, s->src_model, op->src, op->len,
		  "source of request", number) ||
	    (op->dst_claim &&
	     !same(l, s->peer, &s->peer->dst, s->peer->dst_model, op->dst,
		   op->len, "target of request", number)))
		return false;
out:
	release(&s->src_ring, op->src_claim);
	/* what UC wrote may still arrive: such slices are never given back */
	if (!unreliable(s))
		release(&s->peer->dst_ring, op->dst_claim);
	return true;
}

static bool on_send_cqe(struct load *l, struct side *s,
			const struct qhca_cqe *cqe)
{
	uint32_t number = get_le64(&cqe->wr_id);

	if (cqe->status)
		return FAIL(l, "host %u qp %u: request %u (opcode %u) ends with status %u syndrome %#x",
			    s->md->mac[5], s->qp.qpn, number, cqe->opcode,
			    cqe->status, get_le32(&cqe->syndrome));
	if (number >= s->posted || number < s->completed)
		return FAIL(l, "host %u qp %u: request %u completes, %u done, %u posted",
			    s->md->mac[5], s->qp.qpn, number, s->completed,
			    s->posted);
	if (get_le32(&cqe->wqe) != number || cqe->opcode != s->op[number].opcode)
		return FAIL(l, "qp %u: request %u completes as WQE %u opcode %u",
			    s->qp.qpn, number, get_le32(&cqe->wqe),
			    cqe->opcode);
	for (; s->completed <= number; s->completed++) {
		if (s->completed != number && s->op[s->completed].signaled)
			return FAIL(l, "qp %u: request %u completes before %u",
				    s->qp.qpn, number, s->completed);
		if (!check_op(l, s, s->completed))
			return false;
	}
	if (!s->op[number].signaled)
		return FAIL(l, "qp %u: request %u was not signaled",
			    s->qp.qpn, number);
	return true;
}

/* The peer's request that this completion is for, or NULL. */
static struct op *find_request(struct load *l, struct side *s,
			       const struct qhca_cqe *cqe, uint32_t off)
{
	struct side *p = s->peer;
	uint32_t number;
	uint8_t head[4];

	if (!unreliable(s)) {
		while (s->expected < p->posted &&
		       !takes_recv(p->op[s->expected].opcode))
			s->expected++;
		return s->expected < p->posted ? &p->op[s->expected++] : NULL;
	}
	if (get_le32(&cqe->flags) & QHCA_CQE_IMM) {
		number = cqe->imm;
	} else {
		md_buf_read(s->md, &s->recv.buf, off + s->recv.iova % 4096,
			    head, 4);
		number = get_le32(head);
	}
	if (number >= p->posted)
		return NULL;
	/* order is kept, unless the network repeats or swaps */
	if (number < s->expected && !l->plan->link.duplicate &&
	    !l->plan->link.reorder && !l->plan->link.jitter)
		return NULL;
	s->expected = number + 1;
	return &p->op[number];
}

static bool check_payload(struct load *l, struct side *s, const struct op *op,
			  uint32_t off)
{
	static uint8_t now[MAX_BIG], want[MAX_BIG];
	uint32_t number = op - s->peer->op;

	payload(s->peer, op, want);
	md_buf_read(s->md, &s->recv.buf, off + s->recv.iova % 4096, now,
		    op->len);
	if (memcmp(now, want, op->len))
		return FAIL(l, "qp %u: message %u of %u bytes arrived wrong",
			    s->qp.qpn, number, op->len);
	return true;
}

static bool on_recv_cqe(struct load *l, struct side *s,
			const struct qhca_cqe *cqe)
{
	uint32_t slot = get_le64(&cqe->wr_id), flags = get_le32(&cqe->flags);
	uint32_t grh = s->type == QHCA_QPT_UD ? GRH : 0;
	const uint32_t xrc = QHCA_CQE_XRC | QHCA_CQE_SRQ;
	struct op *op;
	uint32_t number;

	if (cqe->status || slot >= RECV_SLOTS || !s->recv_busy[slot])
		return FAIL(l, "qp %u: receive %u ends with status %u",
			    s->qp.qpn, slot, cqe->status);
	if (srq_of(s, slot))
		md_srq_free(s->md, srq_of(s, slot), get_le32(&cqe->wqe));
	s->recv_busy[slot] = false;
	s->recv_done++;
	op = find_request(l, s, cqe, recv_off(s, slot) + grh);
	if (!op)
		return FAIL(l, "qp %u type %u: a receive that no request explains: slot %u, %u bytes, flags %#x, expected %u of %u",
			    s->qp.qpn, s->type, slot, get_le32(&cqe->byte_len),
			    flags, s->expected, s->peer->posted);
	number = op - s->peer->op;
	if (is_xrc(s) && (op->srq != slot % XRC_SRQS || ~flags & xrc))
		return FAIL(l, "qp %u: message %u for SRQ %u took receive %u, flags %#x",
			    s->tgt.qpn, number, op->srq, slot, flags);
	if (get_le32(&cqe->byte_len) != op->len + grh ||
	    !(flags & QHCA_CQE_IMM) != !has_imm(op->opcode) ||
	    (has_imm(op->opcode) && get_le32(&cqe->imm) != op->imm) ||
	    !(flags & QHCA_CQE_GRH) != !grh ||
	    cqe->opcode != (op->opcode == QHCA_WQE_WRITE_IMM ?
			    QHCA_CQE_RECV_RDMA_IMM : QHCA_CQE_RECV) ||
	    !(flags & QHCA_CQE_SOLICITED) !=
	    !(op->flags & QHCA_WQE_F_SOLICITED))
		return FAIL(l, "qp %u: receive of message %u: %u bytes, flags %#x, opcode %#x",
			    s->qp.qpn, number, get_le32(&cqe->byte_len), flags,
			    cqe->opcode);
	if (is_send(op->opcode))
		return check_payload(l, s, op, recv_off(s, slot) + grh);
	return true;
}

/* Whose completion it is, its QP and its handle belonging together; or NULL. */
static struct side *side_of(struct load *l, unsigned int host,
			    const struct qhca_cqe *cqe)
{
	bool send = get_le32(&cqe->flags) & QHCA_CQE_REQUESTER;
	uint32_t qpn = get_le32(&cqe->qpn);
	uint64_t handle = get_le64(&cqe->handle);

	for (uint32_t i = 0; i < l->num_pairs; i++) {
		struct side *s = &l->side[i][host];
		uint32_t slot = get_le64(&cqe->wr_id);

		if (!is_xrc(s) || send ?
		    s->qp.qpn == qpn && handle == (MD_QP_HANDLE | qpn) :
		    s->tgt.qpn == qpn &&
		    handle == (MD_SRQ_HANDLE | srq_of(s, slot)->srqn))
			return s;
	}
	return NULL;
}

static bool poll_cqs(struct load *l, unsigned int host, uint32_t max)
{
	struct qhca_cqe cqe;

	while (max-- && md_poll(&l->cq[host], &cqe)) {
		struct side *s = side_of(l, host, &cqe);

		if (!s)
			return FAIL(l, "completion of QP %u, handle %#llx: no such queue",
				    get_le32(&cqe.qpn),
				    (unsigned long long)get_le64(&cqe.handle));
		if (!(get_le32(&cqe.flags) & QHCA_CQE_REQUESTER ?
		      on_send_cqe(l, s, &cqe) : on_recv_cqe(l, s, &cqe)))
			return false;
	}
	return true;
}

/* ---- set-up */

static void init_region(struct load *l, struct md *md, struct md_mr *mr,
			uint8_t **model, uint32_t pd, uint32_t len,
			uint32_t access)
{
	struct memory *m = &l->memory[md == l->w->host[1]];
	/* atomics want multiples of 8 */
	uint64_t iova = IOVA + (world_pick(l->w, 4096) & ~7u);

	if (world_chance(l->w, l->plan->odp))
		*mr = md_odp_reg(md, m->frames, pd, iova, len, access)->mr;
	else
		md_reg_mr(md, mr, pd, iova, len, access);
	*model = malloc(len);
	fill(world_rand(l->w), *model, len);
	md_buf_write(md, &mr->buf, mr->iova % 4096, *model, len);
}

/* The other half of an XRC connection: a target, and SRQs that it serves. */
static void init_xrc(struct load *l, struct side *s, unsigned int host,
		     uint32_t pd, const struct md_qp_init *like)
{
	struct world *w = l->w;
	/* the domain of what is reached is the SRQ's, never the target's */
	struct md_qp_init init = {
		.type = QHCA_QPT_XRC_TGT, .pd = pd + 10, .db_page = like->db_page,
		.xrcd = 1 + world_pick(w, 2),
	};

	if (md_qp_create(s->md, &s->tgt, &init))
		md_die("CREATE_QP of an XRC target refused");
	for (int i = 0; i < XRC_SRQS; i++)
		if (md_xsrq_create(s->md, &s->xsrq[i], pd, SRQ_LOG_DEPTH,
				   5 + world_pick(w, 6), init.xrcd,
				   &l->cq[host]))
			md_die("CREATE_SRQ for XRC refused");
}

static void init_side(struct load *l, struct side *s, unsigned int host,
		      uint8_t type)
{
	struct world *w = l->w;
	struct md *md = w->host[host];
	uint32_t pd = 5 + world_pick(w, 3);
	struct md_qp_init init = {
		.type = type, .pd = pd,
		.sq_log_depth = 2 + world_pick(w, 5),
		.sq_log_stride = 7 + world_pick(w, 4),
		.rq_log_depth = 5, .rq_log_stride = 5 + world_pick(w, 6),
		.rq_threshold = world_pick(w, 33),
		.flags = world_chance(w, 100000) ? QHCA_QP_SIG_ALL : 0,
		.send_cq = &l->cq[host], .recv_cq = &l->cq[host],
	};
	uint8_t *unused;
	uint64_t base;

	s->md = md;
	s->type = type;
	s->depth = 1u << init.sq_log_depth;
	s->total = 1 + world_pick(w, l->plan->ops);
	s->recv_len = l->plan->big_ppm ? MAX_BIG : 4 * l->plan->max_len;
	if (type != QHCA_QPT_XRC_INI && l->plan->srq &&
	    world_chance(w, 500000)) {
		md_srq_create(md, &s->srq_room, pd, SRQ_LOG_DEPTH,
			      5 + world_pick(w, 6), 0);
		init.srq = s->srq = &s->srq_room;
	}
	init.flags &= ~QHCA_QP_SIG_ALL;
	if (type == QHCA_QPT_XRC_INI)
		init_xrc(l, s, host, pd, &init);
	if (md_qp_create(md, &s->qp, &init))
		md_die("CREATE_QP refused");
	init_region(l, md, &s->src, &s->src_model, pd, REGION,
		    QHCA_ACCESS_LOCAL_WRITE);
	init_region(l, md, &s->dst, &s->dst_model, pd,
		    type == QHCA_QPT_UC ? 8 * REGION : REGION,
		    QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE |
		    QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_REMOTE_ATOMIC |
		    QHCA_ACCESS_FLUSH_GLOBAL);
	base = RECV_SLOTS * (uint64_t)s->recv_len;
	init_region(l, md, &s->recv, &unused, pd, base,
		    QHCA_ACCESS_LOCAL_WRITE);
	free(unused);
	s->src_ring = (struct ring){ .size = REGION };
	s->dst_ring = (struct ring){ .base = ATOMIC_AREA,
		.size = (type == QHCA_QPT_UC ? 8 * REGION : REGION) -
			ATOMIC_AREA };
}

static void connect_pair(struct load *l, struct side *a, struct side *b)
{
	struct world *w = l->w;
	uint8_t mtu = 1 + world_pick(w, 5);
	struct side *s[2] = { a, b };
	struct md_conn c[2];
	bool v6 = world_chance(w, 300000);

	for (int i = 0; i < 2; i++) {
		/* the edge of the number space is where mistakes are */
		uint32_t psn = world_chance(w, 500000) ?
			       0xffffff - world_pick(w, 40) :
			       world_rand(w) & 0xffffff;

		c[i] = (struct md_conn){
			.sq_psn = psn, .mtu = mtu, .qkey = QKEY,
			.access = QHCA_ACCESS_REMOTE_WRITE |
				  QHCA_ACCESS_REMOTE_READ |
				  QHCA_ACCESS_REMOTE_ATOMIC |
				  QHCA_ACCESS_FLUSH_GLOBAL,
			.timeout = 8 + world_pick(w, 3), .retry_cnt = 7,
			.rnr_retry = 7, .min_rnr_timer = 1 + world_pick(w, 14),
			.max_rd_atomic = 1 + world_pick(w, 16),
		};
		md_av(s[i]->md, &c[i].av, s[!i]->md->mac[5], v6);
		s[i]->mtu = s[i]->type == QHCA_QPT_UD ? 4096 : 128u << mtu;
		s[i]->peer = s[!i];
	}
	for (int i = 0; i < 2; i++) {
		c[i].dest_qpn = s[!i]->qp.qpn;
		c[i].rq_psn = c[!i].sq_psn;
		c[i].max_dest_rd_atomic = c[!i].max_rd_atomic;
		put_le32(&s[i]->ud.dest_qpn, s[!i]->qp.qpn);
		put_le32(&s[i]->ud.qkey, QKEY);
		s[i]->ud.av = c[i].av;
		if (is_xrc(s[i])) {
			md_qp_connect(s[i]->md, &s[i]->tgt, &c[i]);
			c[i].dest_qpn = s[!i]->tgt.qpn;
		}
		md_qp_connect(s[i]->md, &s[i]->qp, &c[i]);
	}
}

static void setup(struct load *l)
{
	struct world *w = l->w;

	for (unsigned int h = 0; h < 2; h++) {
		md_start(w->host[h], &l->plan->init[h]);
		md_cq_create(w->host[h], &l->cq[h], 11);
		if (l->plan->odp)
			l->memory[h].frames =
				md_frames_new(w->host[h], l->plan->frames);
	}
	l->num_pairs = l->plan->pairs;
	for (uint32_t i = 0; i < l->num_pairs; i++) {
		static const uint8_t types[] = {
			QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_RC, QHCA_QPT_UC,
			QHCA_QPT_UD, QHCA_QPT_XRC_INI,
		};
		uint8_t type = types[world_pick(w, l->plan->reliable_only ?
						   3 : sizeof(types))];

		for (unsigned int h = 0; h < 2; h++)
			init_side(l, &l->side[i][h], h, type);
		connect_pair(l, &l->side[i][0], &l->side[i][1]);
	}
}

/* ---- the run */

static bool side_done(const struct side *s)
{
	const struct side *p = s->peer;
	uint32_t next = s->expected;

	if (s->completed < s->total)
		return false;
	if (unreliable(s))
		return true;
	while (next < p->total && !takes_recv(p->op[next].opcode))
		next++;
	return p->posted == p->total && next >= p->total;
}

static bool all_done(const struct load *l)
{
	for (uint32_t i = 0; i < l->num_pairs; i++)
		for (int h = 0; h < 2; h++)
			if (!side_done(&l->side[i][h]))
				return false;
	return true;
}

/* One of its SRQs becomes larger, in two steps with work between them. */
static void grow_srq(struct load *l, struct side *s)
{
	struct md_srq *srq = srq_of(s, world_pick(l->w, XRC_SRQS));

	if (!srq || srq->log_depth == SRQ_MAX_LOG_DEPTH)
		return;
	if (srq->grown_rec)
		md_srq_grow_end(s->md, srq);
	else
		md_srq_grow_begin(s->md, srq);
}

static void act(struct load *l, struct side *s)
{
	uint32_t recv_ppm = l->plan->slow_recv ? 20000 : 500000;

	if (world_chance(l->w, 10000))
		grow_srq(l, s);

	if (world_chance(l->w, recv_ppm))
		post_recvs(l, s);
	if (world_chance(l->w, 300000))
		post_sends(l, s);
}

/* ---- pages on demand: the operating system of a host */

static void take_pages(struct load *l, struct memory *m)
{
	struct md_frames *f = m->frames;
	struct md_odp *odp = f->odp[world_pick(l->w, f->num_odp)];
	uint32_t page = world_pick(l->w, md_odp_pages(odp)), num;

	switch (world_pick(l->w, 4)) {
	case 0:		/* protected for a while, as for copy on write */
		num = 1 + world_pick(l->w, md_odp_pages(odp) - page);
		md_odp_unmap(odp, page, num);
		break;
	case 1:
		md_odp_move(odp, page);
		break;
	default:
		for (num = 1 + world_pick(l->w, 8);
		     num-- && page < md_odp_pages(odp); page++)
			md_odp_take(odp, page);
		break;
	}
}

/* Events as they come; what is told of waits for its turn. */
static bool take_faults(struct load *l, unsigned int host)
{
	struct memory *m = &l->memory[host];

	while (m->num_faults < MAX_FAULTS) {
		struct fault *f = &m->fault[m->num_faults];

		if (!md_fault(l->w->host[host], &f->qpn, &f->info))
			break;
		if (!f->info.token || !get_le64(&f->info.length))
			return FAIL(l, "host %u qp %u: a fault without token or length",
				    host + 1, f->qpn);
		for (uint32_t i = 0; i < m->num_faults; i++)
			if (m->fault[i].info.token == f->info.token)
				return FAIL(l, "host %u qp %u: fault %#x is told twice",
					    host + 1, f->qpn,
					    get_le32(&f->info.token));
		f->due = l->w->now + world_pick(l->w, l->plan->fault_ns);
		m->num_faults++;
	}
	return true;
}

static struct md_odp *find_odp(struct md_frames *f, uint32_t key)
{
	for (uint32_t i = 0; i < f->num_odp; i++)
		if (f->odp[i]->mr.key == key)
			return f->odp[i];
	return NULL;
}

/* A gather may give way to an older request, and is unknown then. */
static bool gave_way(struct load *l, unsigned int host, const struct fault *f)
{
	uint32_t cause = get_le32(&f->info.flags) & QHCA_FAULT_CAUSE;

	return cause == QHCA_FAULT_GATHER << 4 &&
	       ++l->memory[host].given_way <=
	       qhca_counter(l->w->host[host]->hca, QHCA_CNT_faults_forgotten);
}

static bool serve_fault(struct load *l, unsigned int host,
			const struct fault *f)
{
	struct world *w = l->w;
	struct md_odp *odp = find_odp(l->memory[host].frames,
				      get_le32(&f->info.key));
	uint64_t addr = get_le64(&f->info.addr), len = get_le64(&f->info.length);
	bool write = get_le32(&f->info.flags) & QHCA_FAULT_WRITE;
	uint32_t page, last;

	if (!odp || addr < odp->mr.iova ||
	    addr - odp->mr.iova > odp->mr.len - len)
		return FAIL(l, "host %u qp %u: fault of key %#x at %#" PRIx64
			    ", %" PRIu64 " bytes: no such region", host + 1,
			    f->qpn, get_le32(&f->info.key), addr, len);
	page = md_odp_page(odp, addr);
	/* sometimes with what follows, sometimes not at all: it faults again */
	last = world_chance(w, 500000) ? md_odp_page(odp, addr + len - 1) :
					 page;
	if (world_chance(w, 950000))
		for (; page <= last; page++)
			md_odp_map(odp, page,
				   write || world_chance(w, 300000));
	if (md_resume(w->host[host], get_le32(&f->info.token), true) &&
	    !gave_way(l, host, f))
		return FAIL(l, "host %u qp %u: FAULT_RESUME refused", host + 1,
			    f->qpn);
	return true;
}

static bool page_work(struct load *l, unsigned int host)
{
	struct memory *m = &l->memory[host];

	if (!m->frames || !m->frames->num_odp)
		return true;
	/* one that goes before each retry may keep a message for ever */
	if (l->w->now < TAKE_LIMIT && world_chance(l->w, l->plan->take))
		take_pages(l, m);
	if (world_chance(l->w, 300000) && !take_faults(l, host))
		return false;
	for (uint32_t i = 0; i < m->num_faults; i++) {
		struct fault f = m->fault[i];

		if (f.due > l->w->now)
			continue;
		m->fault[i--] = m->fault[--m->num_faults];
		if (!serve_fault(l, host, &f))
			return false;
	}
	if (m->frames->corrupt)
		return FAIL(l, "host %u: a page was written after it was given up",
			    host + 1);
	return true;
}

static bool check_frames(struct load *l)
{
	for (unsigned int h = 0; h < 2; h++) {
		struct md_frames *f = l->memory[h].frames;

		if (f && md_frames_check(l->w->host[h], f))
			return FAIL(l, "host %u: %u free pages were written",
				    h + 1, f->corrupt);
	}
	return true;
}

static bool stuck(struct load *l)
{
	for (uint32_t i = 0; i < l->num_pairs; i++)
		for (int h = 0; h < 2; h++) {
			struct side *s = &l->side[i][h];

			if (!side_done(s))
				return !FAIL(l, "stuck: host %d qp %u type %u: %u of %u done, %u posted, %u receives",
					     h + 1, s->qp.qpn, s->type,
					     s->completed, s->total, s->posted,
					     s->recv_done);
		}
	return false;
}

static bool check_regions(struct load *l)
{
	for (uint32_t i = 0; i < l->num_pairs; i++)
		for (int h = 0; h < 2; h++) {
			struct side *s = &l->side[i][h];

			if (!same(l, s, &s->src, s->src_model, 0, REGION,
				  "source region", 0))
				return false;
			if (!unreliable(s) &&
			    !same(l, s, &s->dst, s->dst_model, 0, REGION,
				  "target region", 0))
				return false;
		}
	return true;
}

static bool tear_down(struct load *l)
{
	struct qhca_query_qp q;

	for (uint32_t i = 0; i < l->num_pairs; i++)
		for (int h = 0; h < 2; h++) {
			struct side *s = &l->side[i][h];

			if (md_qp_query(s->md, &s->qp, &q))
				return FAIL(l, "QUERY_QP refused");
			if (q.ctx.state != QHCA_QPS_RTS)
				return FAIL(l, "qp %u ends in state %u",
					    s->qp.qpn, q.ctx.state);
			if (md_qp_destroy(s->md, &s->qp) ||
			    (is_xrc(s) && md_qp_destroy(s->md, &s->tgt)))
				return FAIL(l, "DESTROY_QP refused");
		}
	return true;
}

static bool run(struct load *l)
{
	struct world *w = l->w;

	w->link = l->plan->link;
	while (!all_done(l)) {
		for (uint32_t i = 0; i < l->num_pairs; i++)
			for (int h = 0; h < 2; h++)
				act(l, &l->side[i][h]);
		/* all may wait for a page, and nobody for the clock */
		world_wait(w, w->now + 20000);
		if (!page_work(l, 0) || !page_work(l, 1))
			return false;
		for (unsigned int h = 0; h < 2; h++)
			if (world_chance(w, 400000) &&
			    !poll_cqs(l, h, 1 + world_pick(w, 16)))
				return false;
		if (w->now > TIME_LIMIT)
			return !stuck(l);
	}
	/* late packets must do no harm */
	world_run(w, w->now + 10000000);
	return poll_cqs(l, 0, 100000) && poll_cqs(l, 1, 100000) &&
	       check_frames(l) && check_regions(l) && tear_down(l);
}

const char *workload_run(struct world *w, const struct plan *plan)
{
	static char error[512];
	struct load *l = calloc(1, sizeof(*l));

	l->w = w;
	l->plan = plan;
	setup(l);
	if (run(l))
		l->error[0] = 0;
	for (uint32_t i = 0; i < l->num_pairs; i++)
		for (int h = 0; h < 2; h++) {
			free(l->side[i][h].src_model);
			free(l->side[i][h].dst_model);
		}
	memcpy(error, l->error, sizeof(error));
	free(l);
	return error[0] ? error : NULL;
}
