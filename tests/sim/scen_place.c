/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * ATOMIC WRITE and FLUSH: what they do, what is refused, and that a request
 * whose answer was lost is answered again and not done again.
 */
#include <string.h>

#include "wire/icrc.h"
#include "pair.h"
#include "wire/pkt.h"

#define TARGET	32768u			/* offset in b's region */
#define BTH	42u			/* offset in a frame: IPv4, no VLAN */

static void set_word(struct end *e, uint32_t off, uint64_t value)
{
	uint8_t raw[8];

	put_le64(raw, value);
	put_bytes(e, off, raw, sizeof(raw));
}

static uint64_t word(struct end *e, uint32_t off)
{
	uint8_t raw[8];

	get_bytes(e, off, raw, sizeof(raw));
	return get_le64(raw);
}

/* Of the word at PAIR_IOVA + @from, or of @value inline. */
static void post_store(struct pair *p, uint32_t from, const uint64_t *value,
		       uint64_t raddr, uint32_t rkey)
{
	struct md_sge sge = { p->a.mr.iova + from, 8, p->a.mr.key };
	uint8_t raw[8];
	struct md_wr wr = {
		.opcode = QHCA_WQE_ATOMIC_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.sge = &sge, .num_sge = 1, .raddr = raddr, .rkey = rkey,
		.xrc_srqn = p->b.srq.srqn,
	};

	if (value) {
		put_le64(raw, *value);
		wr.flags |= QHCA_WQE_F_INLINE;
		wr.inline_data = raw;
		wr.inline_len = sizeof(raw);
	}
	post_wr(&p->a, &wr);
}

/* From the word at @from to the one at TARGET. */
static void store(struct pair *p, uint32_t from)
{
	post_store(p, from, NULL, p->b.mr.iova + TARGET, p->b.mr.key);
}

static void post_flush(struct pair *p, uint8_t type, uint8_t level,
		       uint64_t raddr, uint32_t len, uint32_t rkey,
		       uint8_t flags)
{
	struct md_wr wr = {
		.opcode = QHCA_WQE_FLUSH, .flags = QHCA_WQE_F_SIGNALED | flags,
		.raddr = raddr, .rkey = rkey, .flush_len = len,
		.flush_type = type, .flush_level = level,
		.xrc_srqn = p->b.srq.srqn,
	};

	post_wr(&p->a, &wr);
}

static void flush(struct pair *p)
{
	post_flush(p, QHCA_FLUSH_GLOBAL, QHCA_FLUSH_RANGE,
		   p->b.mr.iova + TARGET, 8, p->b.mr.key, 0);
}

/* ---- what they do */

static void atomic_write_stores(struct pair *p)
{
	const uint64_t value = 0x0123456789abcdefull;
	struct qhca_cqe cqe;

	connect_pair(p);
	set_word(&p->a, 0, 0xfedcba9876543210ull);
	set_word(&p->b, TARGET + 8, 99);
	store(p, 0);
	settle(p);
	CHECK(md_poll(&p->a.scq, &cqe) && !cqe.status);
	CHECK_EQ(cqe.opcode, QHCA_WQE_ATOMIC_WRITE);
	CHECK_EQ(word(&p->b, TARGET), 0xfedcba9876543210ull);
	CHECK_EQ(word(&p->b, TARGET + 8), 99);
	/* An answer does not overwrite what the requester sent. */
	CHECK_EQ(word(&p->a, 0), 0xfedcba9876543210ull);
	post_store(p, 0, &value, p->b.mr.iova + TARGET + 8, p->b.mr.key);
	settle(p);
	EXPECT(&p->a.scq, 1, QHCA_WC_SUCCESS);
	CHECK_EQ(word(&p->b, TARGET + 8), value);
}

/* Of any range, none, or all: it completes behind what it follows. */
static void flush_follows_writes(struct pair *p)
{
	struct qhca_cqe cqe;

	connect_pair(p);
	set_word(&p->a, 2992, 77);
	post(p, &p->a, QHCA_WQE_WRITE, 3000, 0);
	flush(p);
	settle(p);
	CHECK(md_poll(&p->a.scq, &cqe) && !cqe.status);
	CHECK(md_poll(&p->a.scq, &cqe) && !cqe.status);
	CHECK_EQ(cqe.opcode, QHCA_WQE_FLUSH);
	CHECK_EQ(word(&p->b, TARGET + 2992), 77);
	post_flush(p, QHCA_FLUSH_GLOBAL, QHCA_FLUSH_RANGE, p->b.mr.iova,
		   PAIR_LEN, p->b.mr.key, 0);
	post_flush(p, QHCA_FLUSH_GLOBAL, QHCA_FLUSH_RANGE,
		   p->b.mr.iova + PAIR_LEN, 0, p->b.mr.key, 0);
	post_flush(p, QHCA_FLUSH_GLOBAL, QHCA_FLUSH_REGION, 1, 0xffffffffu,
		   p->b.mr.key, 0);
	settle(p);
	EXPECT(&p->a.scq, 2, 0, 0, 0);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
}

/* One outstanding at a time, and a fence: both count as READs do. */
static void they_count_as_reads(struct pair *p)
{
	p->a.conn.max_rd_atomic = p->b.conn.max_dest_rd_atomic = 1;
	connect_pair(p);
	for (uint32_t i = 0; i < 8; i++) {
		set_word(&p->a, 8 * i, i + 1);
		store(p, 8 * i);
		flush(p);
	}
	post(p, &p->a, QHCA_WQE_READ, 8, QHCA_WQE_F_FENCE);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	CHECK_EQ(word(&p->b, TARGET), 8);
	CHECK_EQ(word(&p->a, 0), 8);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 0);
}

/* To the responder they do not: there are peers who send any number of them. */
static void responder_does_not_count(struct pair *p)
{
	p->a.conn.max_rd_atomic = 16;
	p->b.conn.max_dest_rd_atomic = 1;
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_READ, 20000, 0);
	for (int i = 0; i < 7; i++) {
		store(p, 0);
		flush(p);
	}
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
}

/* ---- what is refused by the responder */

static void refused(struct pair *p, uint8_t status, int event)
{
	uint64_t before = word(&p->b, TARGET);

	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, status, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), event);
	CHECK_EQ(word(&p->b, TARGET), before);
	restart_pair(p, &(struct pair_options){ .type = QHCA_QPT_RC });
}

static void no_access(struct pair *p)
{
	refused(p, QHCA_WC_REM_ACCESS_ERR, QHCA_EVENT_QP_ACCESS_ERROR);
}

static void invalid(struct pair *p)
{
	refused(p, QHCA_WC_REM_INV_REQ_ERR, QHCA_EVENT_QP_REQ_ERROR);
}

static void region(struct pair *p, struct md_mr *mr, uint32_t access)
{
	md_reg_mr(p->b.md, mr, PAIR_PD, PAIR_IOVA, PAIR_LEN, access);
}

static void atomic_write_refused(struct pair *p)
{
	const uint64_t at = PAIR_IOVA + TARGET;
	struct md_mr mr;

	connect_pair(p);
	post_store(p, 0, NULL, at + 4, p->b.mr.key);
	invalid(p);
	connect_pair(p);
	post_store(p, 0, NULL, at, p->b.mr.key ^ 1);
	no_access(p);
	connect_pair(p);
	post_store(p, 0, NULL, PAIR_IOVA + PAIR_LEN, p->b.mr.key);
	no_access(p);
	/* The right it needs is that of a WRITE, not of an atomic. */
	connect_pair(p);
	region(p, &mr, QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_ATOMIC |
		       QHCA_ACCESS_REMOTE_READ);
	post_store(p, 0, NULL, at, mr.key);
	no_access(p);
	p->b.conn.access = QHCA_ACCESS_REMOTE_ATOMIC | QHCA_ACCESS_REMOTE_READ;
	connect_pair(p);
	store(p, 0);
	invalid(p);
}

static void flush_refused(struct pair *p)
{
	const uint64_t at = PAIR_IOVA + TARGET;
	struct md_mr mr;

	connect_pair(p);
	post_flush(p, QHCA_FLUSH_GLOBAL, QHCA_FLUSH_RANGE, at, 8,
		   p->b.mr.key ^ 1, 0);
	no_access(p);
	connect_pair(p);
	post_flush(p, QHCA_FLUSH_GLOBAL, QHCA_FLUSH_RANGE, at,
		   PAIR_LEN - TARGET + 1, p->b.mr.key, 0);
	no_access(p);
	/* An empty range needs a valid key and an address inside the region, too. */
	connect_pair(p);
	post_flush(p, QHCA_FLUSH_GLOBAL, QHCA_FLUSH_RANGE, at, 0, 0, 0);
	no_access(p);
	connect_pair(p);
	post_flush(p, QHCA_FLUSH_GLOBAL, QHCA_FLUSH_RANGE,
		   PAIR_IOVA + PAIR_LEN + 1, 0, p->b.mr.key, 0);
	no_access(p);
	connect_pair(p);
	post_flush(p, QHCA_FLUSH_GLOBAL, QHCA_FLUSH_REGION, at, 8,
		   p->b.mr.key ^ 1, 0);
	no_access(p);
	/* The region lacks rights, ... */
	connect_pair(p);
	region(p, &mr, ALL_ACCESS & ~QHCA_ACCESS_FLUSH_GLOBAL);
	post_flush(p, QHCA_FLUSH_GLOBAL, QHCA_FLUSH_REGION, at, 8, mr.key, 0);
	no_access(p);
	p->b.conn.access |= QHCA_ACCESS_FLUSH_PERSISTENT;
	connect_pair(p);
	post_flush(p, QHCA_FLUSH_GLOBAL | QHCA_FLUSH_PERSISTENT,
		   QHCA_FLUSH_RANGE, at, 8, p->b.mr.key, 0);
	no_access(p);
	/* ... and the QP lacks them. */
	connect_pair(p);
	region(p, &mr, ALL_ACCESS | QHCA_ACCESS_FLUSH_PERSISTENT);
	post_flush(p, QHCA_FLUSH_PERSISTENT, QHCA_FLUSH_RANGE, at, 8, mr.key,
		   0);
	invalid(p);
	p->b.conn.access &= ~QHCA_ACCESS_FLUSH_GLOBAL;
	connect_pair(p);
	flush(p);
	invalid(p);
}

/* The device relies on the software's statement that memory is persistent. */
static void flush_of_lasting_memory(struct pair *p)
{
	struct md_mr mr;

	region(p, &mr, ALL_ACCESS | QHCA_ACCESS_FLUSH_PERSISTENT);
	p->b.conn.access |= QHCA_ACCESS_FLUSH_PERSISTENT;
	connect_pair(p);
	post_flush(p, QHCA_FLUSH_PERSISTENT, QHCA_FLUSH_RANGE, PAIR_IOVA, 8,
		   mr.key, 0);
	post_flush(p, QHCA_FLUSH_TYPES, QHCA_FLUSH_REGION, 0, 0, mr.key, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0);
}

/* ---- what the requester finds */

static void malformed(struct pair *p, struct md_wr *wr, uint8_t status)
{
	connect_pair(p);
	wr->flags |= QHCA_WQE_F_SIGNALED;
	wr->raddr = p->b.mr.iova + TARGET;
	wr->rkey = p->b.mr.key;
	post_wr(&p->a, wr);
	settle(p);
	EXPECT(&p->a.scq, 0, status);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	restart_pair(p, &(struct pair_options){ .type = QHCA_QPT_RC });
}

static void malformed_requests(struct pair *p)
{
	struct md_sge sge[2] = { { PAIR_IOVA, 4, p->a.mr.key },
				 { PAIR_IOVA, 5, p->a.mr.key } };
	struct md_wr store = { .opcode = QHCA_WQE_ATOMIC_WRITE, .sge = sge,
			       .num_sge = 2 };
	struct md_wr inl = { .opcode = QHCA_WQE_ATOMIC_WRITE,
			     .flags = QHCA_WQE_F_INLINE, .inline_data = "1234",
			     .inline_len = 4 };
	struct md_wr flush = { .opcode = QHCA_WQE_FLUSH };

	malformed(p, &store, QHCA_WC_LOC_LEN_ERR);
	store.num_sge = 0;
	malformed(p, &store, QHCA_WC_LOC_LEN_ERR);
	malformed(p, &inl, QHCA_WC_LOC_LEN_ERR);
	sge[0].key ^= 1;
	sge[1].len = 4;
	store.num_sge = 2;
	malformed(p, &store, QHCA_WC_LOC_PROT_ERR);
	malformed(p, &flush, QHCA_WC_LOC_QP_OP_ERR);	/* of no type */
	flush.flush_type = QHCA_FLUSH_TYPES + 1;
	malformed(p, &flush, QHCA_WC_LOC_QP_OP_ERR);
	flush.flush_type = QHCA_FLUSH_GLOBAL;
	flush.flush_level = QHCA_FLUSH_REGION + 1;
	malformed(p, &flush, QHCA_WC_LOC_QP_OP_ERR);
	flush.flush_level = QHCA_FLUSH_RANGE;
	flush.flags |= QHCA_WQE_F_INLINE;
	malformed(p, &flush, QHCA_WC_LOC_QP_OP_ERR);
	flush.flags &= ~QHCA_WQE_F_INLINE;
	p->a.conn.max_rd_atomic = 0;
	malformed(p, &flush, QHCA_WC_LOC_QP_OP_ERR);
}

/* ---- on the wire */

struct tamper {
	uint8_t op;			/* of packets that are changed */
	/* the filter passes so many packets before it, */
	int32_t skip;
	uint32_t times;			/* ... and then changes so many */
	/* the new opcode of these packets; 0xff: the packet is lost */
	uint8_t to;
	/* their new FETH, if @feths */
	uint32_t feth;
	bool feths;
};

static void sign(uint8_t *frame, size_t len)
{
	put_le32(frame + len - 4, hca_icrc(frame + 14, 20, len - 46));
}

static bool tamper(struct world *w, unsigned int from, uint8_t *frame,
		   size_t len)
{
	struct tamper *t = w->filter_arg;

	(void)from;
	if ((frame[BTH] & 0x1f) != t->op || t->skip-- > 0 || !t->times)
		return true;
	t->times--;
	if (t->to == 0xff)
		return false;
	frame[BTH] = (frame[BTH] & 0xe0) | t->to;
	if (t->feths)
		put_be32(frame + BTH + HCA_BTH_LEN, t->feth);
	sign(frame, len);
	return true;
}

static void answers_lost(struct pair *p, struct tamper *t)
{
	p->w.filter = tamper;
	p->w.filter_arg = t;
}

/*
 * The answers are lost.  Meanwhile the word changes; the requests come again,
 * are answered, and change nothing.
 */
static void done_once(struct pair *p)
{
	struct tamper t = { HCA_OP_READ_RESP_ONLY, 0, 4, 0xff, 0, false };

	connect_pair(p);
	set_word(&p->a, 0, 1);
	set_word(&p->a, 8, 2);
	answers_lost(p, &t);
	store(p, 0);
	flush(p);
	store(p, 8);
	flush(p);
	world_run(&p->w, p->w.now + 500000);
	CHECK_EQ(word(&p->b, TARGET), 2);
	expect_none(&p->a.scq);
	set_word(&p->b, TARGET, 3);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0, 0, 0);
	CHECK_EQ(word(&p->b, TARGET), 3);
	CHECK(count_of(&p->b, QHCA_CNT_duplicate_requests) >= 4);
}

/* The key has ended when the request arrives again: the responder had executed it. */
static void answered_without_key(struct pair *p)
{
	struct tamper t = { HCA_OP_READ_RESP_ONLY, 0, 2, 0xff, 0, false };
	struct qhca_pte gone = { 0 };

	connect_pair(p);
	set_word(&p->a, 0, 5);
	answers_lost(p, &t);
	store(p, 0);
	flush(p);
	world_run(&p->w, p->w.now + 500000);
	md_pte_write(p->b.md, p->b.mr.key >> 8, &gone);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_INVALIDATE_KEY, p->b.mr.key >> 8,
			QHCA_INVAL_PT | QHCA_INVAL_AT, NULL, 0, NULL, 0, NULL),
		 0);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0);
}

/* A response to a later request shows that the response to this one is lost. */
static void lost_answer_is_missed(struct pair *p)
{
	struct tamper t = { HCA_OP_READ_RESP_ONLY, 0, 1, 0xff, 0, false };

	p->a.conn.timeout = 20;			/* 4 s */
	connect_pair(p);
	set_word(&p->a, 0, 6);
	answers_lost(p, &t);
	store(p, 0);
	post_recv(&p->b, 8);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	world_run(&p->w, p->w.now + 1000000);
	EXPECT(&p->a.scq, 0, 0, 0);
	CHECK_EQ(word(&p->b, TARGET), 6);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
}

/* A response of another kind is not an answer to the request. */
static void answer_of_other_kind(struct pair *p)
{
	struct tamper t = { HCA_OP_READ_RESP_ONLY, 0, 1,
			    HCA_OP_READ_RESP_FIRST, 0, false };

	connect_pair(p);
	answers_lost(p, &t);
	store(p, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_BAD_RESP_ERR);
	p->w.filter = NULL;
	reconnect_pair(p, 100);
	/* An ACK without the response makes the requester ask again. */
	t = (struct tamper){ HCA_OP_READ_RESP_ONLY, 0, 1, HCA_OP_ACK, 0,
			     false };
	answers_lost(p, &t);
	flush(p);
	settle(p);
	CHECK_EQ(t.times, 0);
	CHECK(count_of(&p->a, QHCA_CNT_retransmitted_packets));
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
}

/* What no requester of ours sends: FLUSH of no placement, or an unknown one. */
static void foreign_flush(struct pair *p)
{
	static const uint32_t feth[] = { 0, 4, 5, 0x21, 0x31 };
	struct tamper t;

	for (unsigned int i = 0; i < 5 && check_ok(); i++) {
		t = (struct tamper){ HCA_OP_FLUSH, 0, 1, HCA_OP_FLUSH,
				     feth[i], true };
		connect_pair(p);
		answers_lost(p, &t);
		flush(p);
		invalid(p);
		p->w.filter = NULL;
	}
	/* The responder ignores reserved bits. */
	t = (struct tamper){ HCA_OP_FLUSH, 0, 1, HCA_OP_FLUSH, 0xffffffc1,
			     true };
	connect_pair(p);
	answers_lost(p, &t);
	flush(p);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
}

/* A WRITE of 8 bytes taken for an ATOMIC WRITE and the other way round. */
static void retold_requests(struct pair *p)
{
	struct tamper t = { HCA_OP_WRITE_ONLY, 0, 1, HCA_OP_ATOMIC_WRITE, 0,
			    false };

	connect_pair(p);
	answers_lost(p, &t);
	post(p, &p->a, QHCA_WQE_WRITE, 4, 0);
	invalid(p);
	t = (struct tamper){ HCA_OP_WRITE_ONLY, 0, 1, HCA_OP_ATOMIC_WRITE, 0,
			     false };
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_WRITE, 16, 0);
	invalid(p);
	/* It must not be inside a message. */
	t = (struct tamper){ HCA_OP_WRITE_LAST, 0, 1, HCA_OP_FLUSH, 0,
			     false };
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_WRITE, 1024 + 20, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK_EQ(t.times, 0);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
}

/* The ICRC of Soft-RoCE is sent, and it or the right one accepted. */
static bool sign_right(struct world *w, unsigned int from, uint8_t *frame,
		       size_t len)
{
	uint32_t *times = w->filter_arg;
	uint32_t odd = hca_icrc_rxe_flush(frame + 14, 20, len - 46);

	(void)from;
	if ((frame[BTH] & 0x1f) != HCA_OP_FLUSH)
		return true;
	CHECK_EQ(get_le32(frame + len - 4), odd);
	if (++*times > 1)
		sign(frame, len);
	return true;
}

static void flush_as_rxe_signs_it(struct pair *p)
{
	uint32_t times = 0;

	connect_pair(p);
	p->w.filter = sign_right;
	p->w.filter_arg = &times;
	flush(p);
	flush(p);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0);
	CHECK_EQ(times, 2);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_icrc_errors), 0);
}

/* ... by the device that is configured to, and by no other. */
static bool sign_as_rxe(struct world *w, unsigned int from, uint8_t *frame,
			size_t len)
{
	uint32_t *times = w->filter_arg;

	(void)from;
	if ((frame[BTH] & 0x1f) == HCA_OP_FLUSH && *times && (*times)--)
		put_le32(frame + len - 4,
			 hca_icrc_rxe_flush(frame + 14, 20, len - 46));
	return true;
}

static void flush_signed_wrongly(struct pair *p)
{
	uint32_t times = 2;

	connect_pair(p);
	p->w.filter = sign_as_rxe;
	p->w.filter_arg = &times;
	flush(p);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_icrc_errors), 2);
}

#define XRC(fn) { #fn "_xrc", fn, { .type = QHCA_QPT_RC, .xrc = true } }

const struct scenario place_scenarios[] = {
	RC(atomic_write_stores), XRC(atomic_write_stores),
	RC(flush_follows_writes), XRC(flush_follows_writes),
	RC(they_count_as_reads), RC(responder_does_not_count),
	RC(atomic_write_refused), RC(flush_refused),
	RC(flush_of_lasting_memory), RC(malformed_requests), RC(done_once),
	XRC(done_once), RC(answered_without_key), RC(lost_answer_is_missed),
	RC(answer_of_other_kind), RC(foreign_flush), RC(retold_requests),
	{ "flush_as_rxe_signs_it", flush_as_rxe_signs_it,
	  { .type = QHCA_QPT_RC, .rxe_flush = true } },
	RC(flush_signed_wrongly),
	{ 0 }
};
