/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "load.h"

#define GRH		40

/* The request has taken effect: changes the model accordingly. */
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

bool load_same(struct load *l, const struct side *s, const struct md_mr *mr,
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
		/* The model does not know whether the message arrived. */
		goto out;
	if (!apply(l, s, op) ||
	    !load_same(l, s, &s->src, s->src_model, op->src, op->len,
		       "source of request", number) ||
	    (op->dst_claim &&
	     !load_same(l, s->peer, &s->peer->dst, s->peer->dst_model,
			op->dst, op->len, "target of request", number)))
		return false;
out:
	release(&s->src_ring, op->src_claim);
	/* A WRITE over UC may still arrive: such slices are never given back. */
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
	/* Messages arrive in order, unless the network repeats or reorders packets. */
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

	load_payload(s->peer, op, want);
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

/* The side of the completion, if its QP and its handle belong together; or NULL. */
static struct side *side_of(struct load *l, unsigned int node,
			    const struct qhca_cqe *cqe)
{
	bool send = get_le32(&cqe->flags) & QHCA_CQE_REQUESTER;
	uint32_t qpn = get_le32(&cqe->qpn);
	uint64_t handle = get_le64(&cqe->handle);

	for (uint32_t i = 0; i < 2 * l->num_pairs; i++) {
		struct side *s = &l->side[i / 2][i % 2];
		uint32_t slot = get_le64(&cqe->wr_id);

		if (s->node != node)
			continue;
		if (!is_xrc(s) || send ?
		    s->qp.qpn == qpn && handle == (MD_QP_HANDLE | qpn) :
		    s->tgt.qpn == qpn &&
		    handle == (MD_SRQ_HANDLE | srq_of(s, slot)->srqn))
			return s;
	}
	return NULL;
}

bool load_poll_cqs(struct load *l, unsigned int node, uint32_t max)
{
	struct qhca_cqe cqe;

	while (max-- && md_poll(&l->cq[node], &cqe)) {
		struct side *s = side_of(l, node, &cqe);

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
