/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page faults that end without the page, and events during a fault: hardware.rst, Page
 * faults.  The scenario acts as the driver.
 */
#include <string.h>

#include "cold.h"
#include "queue/eq.h"
#include "wire/pkt.h"

/* ---- no such page */

static void fail_fault(struct end *e)
{
	struct qhca_fault_info f;
	uint32_t qpn;

	if (!md_fault(e->md, &qpn, &f))
		check_failed(__LINE__, "no fault");
	else
		CHECK_EQ(md_resume(e->md, get_le32(&f.token), false), 0);
}

static void failed_at_responder(struct pair *p)
{
	static const struct {
		uint8_t opcode, sent, received;
		enum qhca_event event;
	} cases[] = {
		{ QHCA_WQE_WRITE, QHCA_WC_REM_ACCESS_ERR, 0,
		  QHCA_EVENT_QP_ACCESS_ERROR },
		{ QHCA_WQE_WRITE_IMM, QHCA_WC_REM_ACCESS_ERR,
		  QHCA_WC_LOC_ACCESS_ERR, QHCA_EVENT_QP_ACCESS_ERROR },
		{ QHCA_WQE_READ, QHCA_WC_REM_ACCESS_ERR, 0,
		  QHCA_EVENT_QP_ACCESS_ERROR },
		{ QHCA_WQE_FETCH_ADD, QHCA_WC_REM_ACCESS_ERR, 0,
		  QHCA_EVENT_QP_ACCESS_ERROR },
		{ QHCA_WQE_SEND, QHCA_WC_REM_OP_ERR, QHCA_WC_LOC_PROT_ERR,
		  QHCA_EVENT_QP_FATAL },
	};
	struct cold c = cold_make(&p->b);

	c.odp->hole = true;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		reconnect_pair(p, 0xfffff0 + i);
		if (cases[i].received)
			recv_cold(&p->b, &c, 100);
		post_to_cold(p, &c, cases[i].opcode, 8, 4);
		run_for(p, 1000000);
		fail_fault(&p->b);
		settle(p);
		EXPECT(&p->a.scq, 0, cases[i].sent);
		if (cases[i].received)
			EXPECT(&p->b.rcq, 0, cases[i].received);
		CHECK_EQ(next_event(&p->b, p->b.qp.qpn), cases[i].event);
		CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
		CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
	}
	CHECK_EQ(count_of(&p->b, QHCA_CNT_fault_failures), 5);
}

static void failed_at_requester(struct pair *p)
{
	static const uint8_t opcodes[] = { QHCA_WQE_SEND, QHCA_WQE_READ,
					   QHCA_WQE_FETCH_ADD };
	struct cold c = cold_make(&p->a);
	bool rc = p->type == QHCA_QPT_RC;

	c.odp->hole = true;
	for (uint32_t i = 0; i < (rc ? sizeof(opcodes) : 1); i++) {
		reconnect_pair(p, 0xfffff0 + i);
		post_recv(&p->b, 2000);
		post_recv(&p->b, 2000);
		post(p, &p->a, QHCA_WQE_SEND, 1500, 0);
		post_at(p, &p->a, opcodes[i], COLD_IOVA, c.odp->mr.key, 8,
			p->b.mr.iova, p->b.mr.key);
		post(p, &p->a, QHCA_WQE_SEND, 8, 0);
		run_for(p, 1000000);
		fail_fault(&p->a);
		settle(p);
		EXPECT(&p->a.scq, 0, 0, QHCA_WC_LOC_PROT_ERR,
		       QHCA_WC_WR_FLUSH_ERR);
		CHECK_EQ(state_of(&p->a), rc ? QHCA_QPS_ERR : QHCA_QPS_SQE);
		/* A SEND behind the response had been sent already. */
		if (opcodes[i] == QHCA_WQE_SEND)
			EXPECT(&p->b.rcq, 0, 0);
		else
			EXPECT(&p->b.rcq, 0, 0, 0);
		CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	}
}

/* An unreliable QP: the next packet that needs the page finds the error. */
static void failed_unreliable(struct pair *p)
{
	struct cold c;

	connect_pair(p);
	c = cold_make(&p->b);
	c.odp->hole = true;
	recv_cold(&p->b, &c, 3000);
	post(p, &p->a, QHCA_WQE_SEND, 1000, 0);
	settle(p);
	fail_fault(&p->b);
	settle(p);
	expect_none(&p->b.rcq);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	post(p, &p->a, QHCA_WQE_SEND, 1000, 0);
	settle(p);
	EXPECT(&p->b.rcq, 0, QHCA_WC_LOC_PROT_ERR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_FATAL);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
	EXPECT(&p->a.scq, 0, 0, 0);
}

/* ---- the region goes before its page has come */

static void end_key(struct end *e, const struct cold *c)
{
	uint32_t index = c->odp->mr.key >> 8;
	struct qhca_pte *pte = md_ptr(e->md, e->md->pt + 64ull * index);

	put_le32(&pte->ctrl, 0);
	CHECK_EQ(md_cmd(e->md, QHCA_CMD_INVALIDATE_KEY, index,
			QHCA_INVAL_PT | QHCA_INVAL_AT, NULL, 0, NULL, 0, NULL),
		 0);
}

/* The QP is in error at once, although the timer of its peer is long. */
static void region_goes(struct pair *p)
{
	static const struct {
		uint8_t opcode, sent, received;
		bool local;		/* the requester's region */
	} cases[] = {
		{ QHCA_WQE_WRITE, QHCA_WC_REM_ACCESS_ERR, 0, false },
		{ QHCA_WQE_READ, QHCA_WC_REM_ACCESS_ERR, 0, false },
		{ QHCA_WQE_FETCH_ADD, QHCA_WC_REM_ACCESS_ERR, 0, false },
		{ QHCA_WQE_SEND, QHCA_WC_REM_OP_ERR, QHCA_WC_LOC_PROT_ERR,
		  false },
		{ QHCA_WQE_WRITE, QHCA_WC_LOC_PROT_ERR, 0, true },
		{ QHCA_WQE_READ, QHCA_WC_LOC_PROT_ERR, 0, true },
	};

	p->b.conn.min_rnr_timer = 31;		/* 491 ms */
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct end *e = cases[i].local ? &p->a : &p->b;
		struct qhca_fault_info f = { 0 };
		struct cold c = cold_make(e);
		uint32_t qpn;

		reconnect_pair(p, 0xfffff0 + i);
		if (cases[i].received)
			recv_cold(&p->b, &c, 100);
		if (cases[i].local)
			post_at(p, &p->a, cases[i].opcode, COLD_IOVA,
				c.odp->mr.key, 8, p->b.mr.iova, p->b.mr.key);
		else
			post_to_cold(p, &c, cases[i].opcode, 8, 4);
		run_for(p, 1000000);
		CHECK(md_fault(e->md, &qpn, &f));
		expect_none(&p->a.scq);
		end_key(e, &c);
		CHECK_EQ(md_resume(e->md, get_le32(&f.token), true), 0);
		run_for(p, 20000000);
		EXPECT(&p->a.scq, 0, cases[i].sent);
		if (cases[i].received)
			EXPECT(&p->b.rcq, 0, cases[i].received);
		CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
		CHECK_EQ(state_of(&p->b), cases[i].local ? QHCA_QPS_RTS :
							   QHCA_QPS_ERR);
		/* The page becomes present too late. */
		CHECK_EQ(md_resume(e->md, get_le32(&f.token), true),
			 QHCA_CMD_BAD_INDEX);
		NO_FAULT(e);
		CHECK_EQ(c.odp->mr.buf.page[0], 0);
		CHECK_EQ(md_frames_check(e->md, c.frames), 0);
	}
}

/* ---- protection is settled first */

static void no_oracle(struct pair *p)
{
	struct cold c = cold_make(&p->b);
	struct qhca_pte *pte = md_ptr(p->b.md, p->b.md->pt +
				      64ull * (c.odp->mr.key >> 8));

	for (int i = 0; i < 4; i++) {
		uint64_t raddr = COLD_IOVA;
		uint32_t rkey = c.odp->mr.key;

		reconnect_pair(p, 1000 + i);
		if (i == 0)
			rkey ^= 1;			/* octet */
		else if (i == 1)
			raddr += COLD_LEN - 99;		/* range */
		else if (i == 2)
			put_le32(&pte->pd, PAIR_PD + 1);
		else
			put_le32(&pte->access, QHCA_ACCESS_REMOTE_READ);
		CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_INVALIDATE_KEY,
				c.odp->mr.key >> 8, QHCA_INVAL_PT, NULL, 0,
				NULL, 0, NULL), 0);
		post_at(p, &p->a, QHCA_WQE_WRITE, p->a.mr.iova, p->a.mr.key,
			100, raddr, rkey);
		settle(p);
		EXPECT(&p->a.scq, 0, QHCA_WC_REM_ACCESS_ERR);
		put_le32(&pte->pd, PAIR_PD);
	}
	CHECK_EQ(count_of(&p->b, QHCA_CNT_page_faults1), 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_rnr_fault1), 0);
}

/* ---- faults whose QP goes */

static void make_fault(struct pair *p, const struct cold *c, uint32_t psn,
		       uint32_t *token)
{
	p->a.conn.rnr_retry = 7;
	reconnect_pair(p, psn);
	for (struct qhca_cqe cqe; md_poll(&p->a.scq, &cqe);)
		;
	post_to_cold(p, c, QHCA_WQE_WRITE, 100, 0);
	run_for(p, 1000000);
	*token = TAKE_FAULT(&p->b, c, QHCA_FAULT_RDMA_W, WRITE_FLAGS, 0,
			    COLD_IOVA, 100);
}

static void forgotten(struct pair *p)
{
	struct md_qp_init init = p->b.qp.init;
	uint32_t qpn = p->b.qp.qpn, next = p->b.md->next_qpn;
	struct cold c = cold_make(&p->b);
	uint32_t token[4];

	for (int i = 0; i < 3; i++) {
		make_fault(p, &c, 50 * i, &token[i]);
		if (i == 2) {
			CHECK_EQ(md_qp_destroy(p->b.md, &p->b.qp), 0);
			p->b.md->next_qpn = qpn;
			CHECK_EQ(md_qp_create(p->b.md, &p->b.qp, &init), 0);
			p->b.md->next_qpn = next;
		} else {
			CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, i ?
					      QHCA_QPS_RESET : QHCA_QPS_ERR, 0,
					      NULL), 0);
		}
		CHECK_EQ(count_of(&p->b, QHCA_CNT_faults_forgotten), i + 1);
		CHECK_EQ(md_resume(p->b.md, token[i], true),
			 QHCA_CMD_BAD_INDEX);
		CHECK_EQ(md_resume(p->b.md, token[i], false),
			 QHCA_CMD_BAD_INDEX);
	}
	/* A new fault of the same QPN has a new token, and the old tokens are invalid. */
	make_fault(p, &c, 1000, &token[3]);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(md_resume(p->b.md, token[i], false),
			 QHCA_CMD_BAD_INDEX);
	cold_resume(&p->b, &c, token[3]);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
}

#define QPS	12

/* The event queue is full: the device reports every fault, once, when there is room. */
static void events_wait(struct pair *p)
{
	const struct pair_options o = { .type = QHCA_QPT_RC };
	struct qhca_fault_info f;
	struct end a[QPS], b[QPS];
	bool told[QPS] = { false };
	struct cold c;
	uint32_t qpn, n = 0;

	p->a.conn.rnr_retry = p->a.conn.retry_cnt = 7;
	connect_pair(p);
	c = cold_make(&p->b);
	for (uint32_t i = 0; i < QPS; i++) {
		open_second(p, &a[i], &b[i], &o);
		post_at(p, &a[i], QHCA_WQE_WRITE, a[i].mr.iova, a[i].mr.key, 8,
			COLD_IOVA + 100 * i, c.odp->mr.key);
		post_at(p, &a[i], QHCA_WQE_WRITE, a[i].mr.iova, a[i].mr.key, 8,
			COLD_IOVA + 100 * i, c.odp->mr.key);
	}
	run_for(p, 30000000);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_page_faults1), QPS);
	CHECK(count_of(&p->b, QHCA_CNT_events_held) >= QPS - 2);
	/* The device does not report the fault that ends while its event is held. */
	CHECK_EQ(md_qp_modify(p->b.md, &b[QPS - 1].qp, QHCA_QPS_ERR, 0, NULL),
		 0);
	for (; n < 10 * QPS; n++) {
		/* Software arms no EQ, so the device has to find that there is room. */
		run_for(p, HCA_EQ_POLL_MAX_NS + 200000);
		if (!md_fault(p->b.md, &qpn, &f))
			break;
		for (uint32_t i = 0; i < QPS; i++)
			if (b[i].qp.qpn == qpn) {
				CHECK(!told[i]);
				told[i] = true;
				CHECK_EQ(get_le64(&f.addr),
					 COLD_IOVA + 100 * i);
			}
		cold_map(&c);
		CHECK_EQ(md_resume(p->b.md, get_le32(&f.token), true), 0);
	}
	CHECK_EQ(n, QPS - 1);
	CHECK(!told[QPS - 1]);
	settle(p);
	for (uint32_t i = 0; i < QPS; i++) {
		if (i < QPS - 1)
			EXPECT(&a[i].scq, 0, 0, 0);
		close_second(&a[i], &b[i]);
	}
}

/* ---- a window over a region on demand */

static void window_faults(struct pair *p)
{
	uint32_t index = p->b.md->next_key++, mw = index << 8 | 0x11;
	struct qhca_wqe_bind bind = { 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_BIND_MW,
			    .flags = QHCA_WQE_F_SIGNALED, .bind = &bind };
	struct qhca_fault_info f = { 0 };
	struct qhca_pte pte = { 0 };
	struct cold c;
	uint32_t qpn;

	connect_pair(p);
	c = cold_make(&p->b);
	put_le32(&((struct qhca_pte *)md_ptr(p->b.md, p->b.md->pt + 64ull *
					     (c.odp->mr.key >> 8)))->access,
		 ALL_ACCESS | QHCA_ACCESS_MW_BIND);
	put_le32(&pte.ctrl, QHCA_PTE_INVALIDATED | QHCA_PTE_MW2B << 4 |
			    0x11 << 8 | 12u << 16);
	put_le32(&pte.pd, PAIR_PD);
	md_pte_write(p->b.md, index, &pte);
	put_le64(&bind.addr, COLD_IOVA + 5000);
	put_le64(&bind.length, 4000);
	put_le32(&bind.mr_lkey, c.odp->mr.key);
	put_le32(&bind.mw_rkey, mw);
	put_le32(&bind.new_rkey, mw);
	put_le32(&bind.access, QHCA_ACCESS_REMOTE_WRITE |
			       QHCA_ACCESS_ZERO_BASED);
	post_wr(&p->b, &wr);
	settle(p);
	EXPECT(&p->b.scq, 0, 0);
	fill_bytes(&p->a, 3000, 8);
	post_at(p, &p->a, QHCA_WQE_WRITE, p->a.mr.iova, p->a.mr.key, 3000, 10,
		mw);
	run_for(p, 1000000);
	CHECK(md_fault(p->b.md, &qpn, &f));
	CHECK_EQ(get_le32(&f.key), mw);
	/* Addresses count as those of the key. */
	CHECK_EQ(get_le64(&f.addr), 10);
	CHECK_EQ(get_le64(&f.length), 3000);
	cold_resume(&p->b, &c, get_le32(&f.token));
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_COLD(&p->b, &c, 5010, 3000, 8);
}

/* ---- drained queues wait too */

static void drain_waits(struct pair *p)
{
	struct qhca_query_qp q;
	uint32_t token;
	struct cold c;

	connect_pair(p);
	c = cold_make(&p->a);
	md_odp_map(c.odp, 0, false);
	post_at(p, &p->a, QHCA_WQE_WRITE, COLD_IOVA, c.odp->mr.key, 9000,
		p->b.mr.iova, p->b.mr.key);
	run_for(p, 1000000);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_GATHER, QHCA_FAULT_REQUESTER,
			   PAGE_LEFT, COLD_IOVA + PAGE_LEFT, 9000 - PAGE_LEFT);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_SQD,
			      QHCA_QP_ATTR_SQD_EVENT, NULL), 0);
	run_for(p, 10000000);
	CHECK_EQ(md_qp_query(p->a.md, &p->a.qp, &q), 0);
	CHECK(q.sq_draining);
	cold_resume(&p->a, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_EQ(md_qp_query(p->a.md, &p->a.qp, &q), 0);
	CHECK(!q.sq_draining);
}

/* ---- pages go while the peer writes to them */

static void taken_in_traffic(struct pair *p)
{
	uint32_t qpn, faults = 0, done = 0;
	struct qhca_fault_info f;
	struct qhca_cqe cqe;
	struct cold c;

	p->a.conn.rnr_retry = p->a.conn.retry_cnt = 7;
	connect_pair(p);
	c = cold_make(&p->b);
	fill_bytes(&p->a, COLD_LEN, 1);
	for (uint32_t i = 0; i < 400 && check_ok(); i++) {
		if (p->a.qp.sq_pi - done < 8)
			post_to_cold(p, &c, QHCA_WQE_WRITE, COLD_LEN, 0);
		run_for(p, 1000 + world_pick(&p->w, 20000));
		md_odp_take(c.odp, world_pick(&p->w, md_odp_pages(c.odp)));
		if (i % 3 == 0)
			md_odp_move(c.odp, world_pick(&p->w,
						      md_odp_pages(c.odp)));
		for (; md_fault(p->b.md, &qpn, &f); faults++) {
			md_odp_map(c.odp, md_odp_page(c.odp,
						      get_le64(&f.addr)), true);
			CHECK_EQ(md_resume(p->b.md, get_le32(&f.token), true),
				 0);
		}
		for (; md_poll(&p->a.scq, &cqe); done++)
			CHECK_EQ(cqe.status, 0);
		CHECK_EQ(c.frames->corrupt, 0);
	}
	CHECK(faults > 20);
	CHECK(done > 5);
	CHECK_EQ(md_frames_check(p->b.md, c.frames), 0);
	for (int i = 0; i < 1000 && done != p->a.qp.sq_pi; i++) {
		run_for(p, 100000);
		for (; md_fault(p->b.md, &qpn, &f); faults++) {
			cold_map(&c);
			CHECK_EQ(md_resume(p->b.md, get_le32(&f.token), true),
				 0);
		}
		for (; md_poll(&p->a.scq, &cqe); done++)
			CHECK_EQ(cqe.status, 0);
	}
	CHECK_EQ(done, p->a.qp.sq_pi);
	CHECK_COLD(&p->b, &c, 0, COLD_LEN, 1);
}

/* ---- ATOMIC WRITE and FLUSH while pages, their region or their QP go */

#define STORED	4u			/* offset of the word that is stored, ... */
#define WRITTEN	(4u + 2 * MD_PAGE)	/* and of the one that is written before it */

static uint64_t cold_word(struct end *e, const struct cold *c, uint32_t off)
{
	uint8_t raw[8];

	md_buf_read(e->md, &c->odp->mr.buf, off + COLD_IOVA % MD_PAGE, raw, 8);
	return get_le64(raw);
}

/* Request @n: a WRITE of its number, an ATOMIC WRITE of its number, or a FLUSH. */
static void post_place(struct pair *p, const struct cold *c, uint32_t n)
{
	uint8_t raw[8];
	struct md_wr wr = {
		.opcode = n % 3 == 0 ? QHCA_WQE_WRITE :
			  n % 3 == 1 ? QHCA_WQE_ATOMIC_WRITE : QHCA_WQE_FLUSH,
		.flags = QHCA_WQE_F_SIGNALED, .rkey = c->odp->mr.key,
		.raddr = COLD_IOVA + (n % 3 ? STORED : WRITTEN),
	};

	put_le64(raw, n);
	if (n % 3 == 2) {
		wr.flush_type = QHCA_FLUSH_GLOBAL;
		wr.flush_level = n & 1 ? QHCA_FLUSH_REGION : QHCA_FLUSH_RANGE;
		wr.flush_len = COLD_LEN - STORED;
	} else {
		wr.flags |= QHCA_WQE_F_INLINE;
		wr.inline_data = raw;
		wr.inline_len = 8;
	}
	post_wr(&p->a, &wr);
}

/*
 * Take a's completions.  What a FLUSH follows is in memory, present or not.  After the
 * first error, @cause, all are flushed.
 */
static void take_placed(struct pair *p, const struct cold *c, uint32_t *done,
			bool *failed, uint8_t cause)
{
	uint64_t stored = cold_word(&p->b, c, STORED);
	struct qhca_cqe cqe;

	/* Nobody sees a stored word before what was written before it. */
	CHECK(cold_word(&p->b, c, WRITTEN) + 1 >= stored);
	for (; md_poll(&p->a.scq, &cqe); ++*done) {
		CHECK_EQ(get_le64(&cqe.wr_id), *done);
		if (*failed)
			CHECK_EQ(cqe.status, QHCA_WC_WR_FLUSH_ERR);
		else if (cqe.status)
			CHECK_EQ(cqe.status, cause);
		else if (*done % 3)
			CHECK(stored >= *done / 3 * 3 + 1);
		*failed |= cqe.status;
	}
}

/* Answers b's fault, if it has one, now or later; *@token: of one not answered yet. */
static void answer_place(struct pair *p, const struct cold *c, uint32_t *token,
			 uint32_t *faults, bool later)
{
	struct qhca_fault_info f;
	uint32_t qpn;

	if (*token && !later) {
		CHECK_EQ(md_resume(p->b.md, *token, true), 0);
		*token = 0;
	}
	if (!md_fault(p->b.md, &qpn, &f))
		return;
	CHECK(!*token);
	++*faults;
	*token = get_le32(&f.token);
	md_odp_map(c->odp, md_odp_page(c->odp, get_le64(&f.addr)), true);
}

enum place_end { END_KEY, END_KEY_IDLE, END_DESTROY, END_RESET, NUM_PLACE_ENDS };

static void end_place(struct pair *p, const struct cold *c, enum place_end how,
		      uint32_t token)
{
	struct md_qp_init init = p->b.qp.init;
	uint32_t qpn = p->b.qp.qpn, next = p->b.md->next_qpn;

	if (how == END_KEY || how == END_KEY_IDLE) {
		end_key(&p->b, c);
	} else if (how == END_DESTROY) {
		CHECK_EQ(md_qp_destroy(p->b.md, &p->b.qp), 0);
		p->b.md->next_qpn = qpn;
		CHECK_EQ(md_qp_create(p->b.md, &p->b.qp, &init), 0);
		p->b.md->next_qpn = next;
	} else {
		CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET, 0,
				      NULL), 0);
	}
	if (token)
		CHECK_EQ(md_resume(p->b.md, token, true),
			 how == END_KEY ? QHCA_CMD_OK : QHCA_CMD_BAD_INDEX);
	/* No page belongs to the device any more. */
	for (uint32_t i = 0; i < md_odp_pages(c->odp); i++)
		md_odp_take(c->odp, i);
}

static void place_in_upheaval(struct pair *p)
{
	uint32_t faults = 0;

	p->a.conn.rnr_retry = 7;
	p->a.conn.retry_cnt = 1;
	p->a.conn.max_rd_atomic = p->b.conn.max_dest_rd_atomic = 4;
	for (uint32_t round = 0; round < 80 && check_ok(); round++) {
		enum place_end how = round % NUM_PLACE_ENDS;
		uint8_t cause = how <= END_KEY_IDLE ? QHCA_WC_REM_ACCESS_ERR :
						      QHCA_WC_RETRY_EXC_ERR;
		uint32_t done = 0, token = 0;
		struct cold c = cold_make(&p->b);
		bool failed = false;

		reconnect_pair(p, 0xffffe0 + round);
		for (uint32_t i = 0; i < 10 + round && check_ok(); i++) {
			while (p->a.qp.sq_pi - done < 8)
				post_place(p, &c, p->a.qp.sq_pi);
			run_for(p, 1000 + world_pick(&p->w, 20000));
			take_placed(p, &c, &done, &failed, cause);
			md_odp_take(c.odp, world_pick(&p->w, 3));
			if (i % 3 == 0)
				md_odp_move(c.odp, world_pick(&p->w, 3));
			answer_place(p, &c, &token, &faults,
				     world_pick(&p->w, 2));
		}
		/* The first request that finds no key is a FLUSH. */
		while (how == END_KEY_IDLE && p->a.qp.sq_pi % 3 != 2)
			post_place(p, &c, p->a.qp.sq_pi);
		while (how == END_KEY_IDLE && check_ok() &&
		       done != p->a.qp.sq_pi) {
			run_for(p, 10000);
			take_placed(p, &c, &done, &failed, cause);
			answer_place(p, &c, &token, &faults, false);
		}
		CHECK(!failed);
		end_place(p, &c, how, token);
		for (uint32_t i = 0; i < 3; i++)
			post_place(p, &c, p->a.qp.sq_pi);
		settle(p);
		CHECK_EQ(md_frames_check(p->b.md, c.frames), 0);
		NO_FAULT(&p->b);
		if (how == END_KEY_IDLE) {
			EXPECT(&p->a.scq, done, cause, QHCA_WC_WR_FLUSH_ERR,
			       QHCA_WC_WR_FLUSH_ERR);
			continue;
		}
		take_placed(p, &c, &done, &failed, cause);
		CHECK(failed);
		CHECK_EQ(done, p->a.qp.sq_pi);
	}
	CHECK(faults > 100);
}

/* ---- an RNR NAK that comes late */

#define SYNDROME	(14 + 20 + 8 + 12)	/* of an ACK in a frame without a VLAN */

struct last_nak {
	uint8_t frame[128];
	size_t len;
};

static bool keep_rnr_nak(struct world *w, unsigned int from, uint8_t *frame, size_t len)
{
	struct last_nak *nak = w->filter_arg;

	if (from && len <= sizeof(nak->frame) &&
	    (frame[SYNDROME] & HCA_AETH_TYPE) == HCA_AETH_RNR) {
		memcpy(nak->frame, frame, len);
		nak->len = len;
	}
	return true;
}

/*
 * The page has come and the request goes again, when the network's second copy of the last
 * NAK arrives.  Its timer is long by then; the ACK of the request ends the wait.
 */
static void copy_of_nak(struct pair *p)
{
	struct last_nak nak = { .len = 0 };
	struct qhca_fault_info f;
	struct qhca_cqe done;
	struct cold c;
	uint32_t qpn;
	uint64_t at;

	p->a.conn.rnr_retry = 7;
	p->w.link.delay = 1000;
	connect_pair(p);
	c = cold_make(&p->b);
	p->w.filter = keep_rnr_nak;
	p->w.filter_arg = &nak;
	post_to_cold(p, &c, QHCA_WQE_WRITE, 8, 0);
	run_for(p, 700000000);
	CHECK_EQ(nak.frame[SYNDROME], HCA_AETH_RNR | 31);
	CHECK(md_fault(p->b.md, &qpn, &f));
	cold_resume(&p->b, &c, get_le32(&f.token));
	while (!count_of(&p->a, QHCA_CNT_rx_unsolicited_acks))
		world_step(&p->w, QHCA_NEVER);
	at = count_of(&p->a, QHCA_CNT_rx_rnr);
	qhca_rx_frame(p->a.md->host.hca, nak.frame, nak.len, p->w.now);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_rx_rnr), at + 1);
	at = p->w.now;
	post_to_cold(p, &c, QHCA_WQE_WRITE, 8, 8);
	for (unsigned int num = 0; num < 2; num += md_poll(&p->a.scq, &done))
		world_step(&p->w, QHCA_NEVER);
	CHECK(p->w.now - at < TIMER_NEW);
}

/*
 * The copy comes when the atomic has been answered, and the answer's target is absent: before
 * the answer, or after it.
 */
static void copy_of_nak_at_fault(struct pair *p)
{
	struct last_nak nak = { .len = 0 };
	struct qhca_fault_info f;
	struct cold to, c;
	uint32_t qpn;

	p->a.conn.rnr_retry = 7;
	p->w.link.delay = 1000;
	connect_pair(p);
	p->w.filter = keep_rnr_nak;
	p->w.filter_arg = &nak;
	for (unsigned int late = 0; late < 2; late++) {
		uint64_t known = count_of(&p->a, QHCA_CNT_rx_unsolicited_acks);
		uint64_t faults = count_of(&p->a, QHCA_CNT_fault_scatter);

		c = cold_make(&p->b);
		to = cold_make(&p->a);
		post_at(p, &p->a, QHCA_WQE_FETCH_ADD, COLD_IOVA + 4, to.odp->mr.key,
			8, COLD_IOVA + 4, c.odp->mr.key);
		run_for(p, 700000000);
		CHECK_EQ(nak.frame[SYNDROME], HCA_AETH_RNR | 31);
		CHECK(md_fault(p->b.md, &qpn, &f));
		cold_resume(&p->b, &c, get_le32(&f.token));
		while (count_of(&p->a, QHCA_CNT_rx_unsolicited_acks) == known)
			world_step(&p->w, QHCA_NEVER);
		while (late && count_of(&p->a, QHCA_CNT_fault_scatter) == faults)
			world_step(&p->w, QHCA_NEVER);
		qhca_rx_frame(p->a.md->host.hca, nak.frame, nak.len, p->w.now);
		while (count_of(&p->a, QHCA_CNT_fault_scatter) == faults)
			world_step(&p->w, QHCA_NEVER);
		CHECK(md_fault(p->a.md, &qpn, &f));
		cold_resume(&p->a, &to, get_le32(&f.token));
		run_for(p, TIMER_NEW);
		EXPECT(&p->a.scq, late, 0);
	}
}

const struct scenario fault_end_scenarios[] = {
	RC(copy_of_nak), RC(copy_of_nak_at_fault),
	RC(failed_at_responder), RC(failed_at_requester),
	NAMED(UC, "failed_at_requester (UC)", failed_at_requester),
	NAMED(UC, "failed_unreliable (UC)", failed_unreliable),
	NAMED(UD, "failed_unreliable (UD)", failed_unreliable), RC(region_goes),
	RC(no_oracle), RC(forgotten),
	RC(events_wait, .log_eq = 1),
	RC(window_faults), RC(drain_waits), RC(taken_in_traffic),
	RC(place_in_upheaval), NAMED(RC, "place_in_upheaval (roomy)", place_in_upheaval,
				   .roomy = true),
	{ 0 }
};
