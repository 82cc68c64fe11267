// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Work requests and receives of the script. */
#include "transport/transport.h"
#include "wqe_script.h"

static uint32_t pick_key(struct in *in, const struct side *s)
{
	uint8_t how = in_u8(in);

	if (how < 96)
		return s->key[KEY_RW];
	if (how < 250)
		return s->key[how % NUM_KEYS];
	return (uint32_t)in_number(in);
}

static uint64_t pick_address(struct in *in)
{
	switch (in_u8(in) & 7) {
	case 0:
		return in_number(in);
	case 1:
		return RW_IOVA + RW_LEN - in_below(in, 300);
	case 2:
		return in_below(in, GUARD_MEM);
	case 3:
		return RW_IOVA + in_below(in, 16384);
	default:
		return RW_IOVA + 8 * in_below(in, 64);
	}
}

static uint32_t pick_length(struct in *in)
{
	switch (in_u8(in) & 7) {
	case 0:
		return (uint32_t)in_number(in);
	case 1:
		return 0;
	case 2:
		return 8;
	case 3:
		return in_below(in, 4000);
	default:
		return in_below(in, 256);
	}
}

static void pick_sges(struct in *in, const struct side *s, struct md_sge *sge,
		      uint32_t num)
{
	for (uint32_t i = 0; i < num; i++) {
		sge[i].addr = pick_address(in);
		sge[i].len = pick_length(in);
		sge[i].key = pick_key(in, s);
	}
}

static void pick_bind(struct in *in, const struct side *s,
		      struct qhca_wqe_bind *b)
{
	uint32_t window = s->key[in_u8(in) & 1 ? KEY_MW1 : KEY_MW2B];

	put_le64(&b->addr, pick_address(in));
	put_le64(&b->length, pick_length(in));
	put_le32(&b->mr_lkey, pick_key(in, s));
	put_le32(&b->mw_rkey, window);
	put_le32(&b->new_rkey, window);
	put_le32(&b->access, in_word(in, 2) & QHCA_ACCESS_MASK);
}

static void pick_reg(struct in *in, const struct side *s,
		     struct qhca_wqe_reg *r)
{
	put_le64(&r->iova, pick_address(in));
	put_le64(&r->length, pick_length(in));
	put_le64(&r->pages, s->page_list);
	put_le32(&r->key, s->key[KEY_FAST] & ~0xffu);
	put_le32(&r->access, in_word(in, 2) & QHCA_ACCESS_MASK);
	put_le32(&r->num_pages, in_below(in, FAST_PAGES + 2));
	r->page_shift = 12 + (in_u8(in) & 1);
}

static void pick_ud(struct script *x, struct side *s, struct qhca_wqe_ud *ud)
{
	uint8_t how = in_u8(x->in);
	struct side *to = how & 1 ? s : &x->side[s == &x->side[0]];

	put_le32(&ud->dest_qpn, how & 2 ? HCA_QPN_GSI : to->qp[UD].qpn);
	put_le32(&ud->qkey, how & 2 ? HCA_GSI_QKEY : QKEY);
	md_av(s->md, &ud->av, to->md->mac[5], how & 4);
}

/* Overwrite a few bytes of what has just been posted. */
static void spoil(struct script *x, struct side *s, const struct md_buf *b,
		  uint64_t off, uint32_t len)
{
	uint8_t how = in_u8(x->in), value;

	if (how < 160)
		return;
	for (unsigned int n = 1 + how % 6; n > 0; n--) {
		value = in_u8(x->in);
		md_buf_write(s->md, b, off + in_below(x->in, len), &value, 1);
	}
}

void post_send(struct script *x, struct side *s)
{
	struct side *peer = &x->side[s == &x->side[0]];
	unsigned int q = in_below(x->in, NUM_QPS);
	struct md_qp *qp = &s->qp[q];
	uint8_t data[64] = { 0 };
	struct md_sge sge[4];
	struct qhca_wqe_bind bind = { 0 };
	struct qhca_wqe_reg reg = { 0 };
	struct qhca_wqe_ud ud = { 0 };
	struct md_wr wr = {
		.opcode = in_below(x->in, QHCA_WQE_NUM_OPCODES),
		.flags = in_u8(x->in) & 7, .sge = sge, .wr_id = qp->sq_pi,
		.inline_data = data,
	};
	uint64_t off = qp->sq_offset +
		       ((uint64_t)(qp->sq_pi % (1u << qp->init.sq_log_depth)) <<
			LOG_STRIDE);

	if (q == RC_SELF)
		peer = s;
	if (in_chance(x->in, 32)) {
		wr.flags |= QHCA_WQE_F_INLINE;
		wr.inline_len = in_below(x->in, 65);
	} else {
		wr.num_sge = in_u8(x->in) & 3;
		pick_sges(x->in, s, sge, wr.num_sge);
	}
	wr.imm = pick_key(x->in, wr.opcode == QHCA_WQE_SEND_INV ? peer : s);
	wr.raddr = pick_address(x->in);
	wr.rkey = pick_key(x->in, peer);
	if (wr.opcode == QHCA_WQE_FLUSH) {
		wr.flush_len = in_number(x->in);
		wr.flush_type = in_chance(x->in, 64) ? in_u8(x->in) :
						       QHCA_FLUSH_GLOBAL;
		wr.flush_level = in_below(x->in, 3);
	} else if (wr.opcode == QHCA_WQE_BIND_MW) {
		pick_bind(x->in, s, &bind);
		wr.bind = &bind;
	} else if (wr.opcode == QHCA_WQE_REG_MR) {
		pick_reg(x->in, s, &reg);
		wr.reg = &reg;
	} else if (q == UD || q == GSI) {
		pick_ud(x, s, &ud);
		wr.ud = &ud;
	}
	md_post_send(s->md, qp, &wr);
	spoil(x, s, &qp->buf, off, 1u << LOG_STRIDE);
	if (!in_chance(x->in, 64))
		guard_doorbell(s->g, USER_PAGE, QHCA_DB_SQ,
			       (uint64_t)qp->sq_pi << 32 | qp->qpn);
}

void post_many(struct script *x, struct side *s)
{
	struct md_qp *qp = &s->qp[RC];
	struct md_wr wr = { .opcode = QHCA_WQE_WRITE };

	for (uint32_t n = in_below(x->in, 80); n > 0; n--)
		md_post_send(s->md, qp, &wr);
	guard_doorbell(s->g, USER_PAGE, QHCA_DB_SQ,
		       (uint64_t)qp->sq_pi << 32 | qp->qpn);
}

void post_recv(struct script *x, struct side *s)
{
	unsigned int q = in_below(x->in, NUM_QPS);
	struct md_qp *qp = &s->qp[q];
	struct md_sge sge[3];
	uint32_t num = 1 + in_below(x->in, 3);
	uint64_t off;

	pick_sges(x->in, s, sge, num);
	if (q == RC_SRQ) {
		off = (uint64_t)s->srq.free << LOG_RSTRIDE;
		md_srq_post(s->md, &s->srq, 0x5000, sge, num);
		/* The script may have damaged the list. */
		s->srq.free %= DEPTH;
		spoil(x, s, &s->srq.buf, off, 1u << LOG_RSTRIDE);
		return;
	}
	off = qp->rq_offset + ((uint64_t)(qp->rq_pi % DEPTH) << LOG_RSTRIDE);
	md_post_recv(s->md, qp, 0x6000 + qp->rq_pi, sge, num);
	spoil(x, s, &qp->buf, off, 1u << LOG_RSTRIDE);
}
