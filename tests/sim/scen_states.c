/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * States that change in the middle of traffic: drained and started again, put
 * into error, reset and connected anew.  And retries that are just enough, or
 * one too few.
 */
#include <string.h>

#include "cold.h"
#include "queue/eq.h"

#define ROUNDS	60

static uint8_t random_op(struct pair *p, uint32_t *len)
{
	static const uint8_t rc[] = {
		QHCA_WQE_SEND, QHCA_WQE_WRITE, QHCA_WQE_READ,
		QHCA_WQE_FETCH_ADD, QHCA_WQE_WRITE_IMM,
	};
	uint8_t op = rc[world_pick(&p->w, p->type == QHCA_QPT_RC ? 5 :
					  p->type == QHCA_QPT_UC ? 2 : 1)];

	*len = op == QHCA_WQE_FETCH_ADD ? 8 :
	       1 + world_pick(&p->w, p->type == QHCA_QPT_RC ? 9000 : 900);
	return op;
}

/* Some requests of a, and receives for them at b. */
static uint32_t post_some(struct pair *p, uint32_t room)
{
	uint32_t n = world_pick(&p->w, room + 1), len;

	for (uint32_t i = 0; i < n; i++) {
		uint8_t op = random_op(p, &len);

		if (p->b.qp.rq_pi - p->b.qp.rq_ci < 60)
			post_recv(&p->b, 9100);
		post(p, &p->a, op, len, 0);
	}
	return n;
}

static void make_noise(struct pair *p)
{
	static const struct world_link links[] = {
		{ .delay = 1000 },
		{ .delay = 1000, .jitter = 3000 },
		{ .delay = 2000, .loss = 20000, .duplicate = 10000 },
		{ .delay = 500, .block = 20000 },
	};

	p->w.link = links[world_pick(&p->w, 4)];
}

/* Takes the completions with status success. */
static void take_sends(struct pair *p, uint32_t *done)
{
	struct qhca_cqe cqe;

	for (; md_poll(&p->a.scq, &cqe); ++*done) {
		CHECK_EQ(get_le64(&cqe.wr_id), *done);
		CHECK_EQ(cqe.status, 0);
	}
}

static void take_receives(struct pair *p)
{
	struct qhca_cqe cqe;

	for (; md_poll(&p->b.rcq, &cqe); p->b.qp.rq_ci++)
		CHECK_EQ(cqe.status, 0);
}

/* ---- SQD */

static bool draining(struct pair *p)
{
	struct qhca_query_qp q = { 0 };

	CHECK_EQ(md_qp_query(p->a.md, &p->a.qp, &q), 0);
	CHECK_EQ(q.ctx.state, QHCA_QPS_SQD);
	return q.sq_draining;
}

static void drain_once(struct pair *p, uint32_t *done, bool event)
{
	uint64_t limit = p->w.now + 1000000000;
	uint32_t after;

	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_SQD,
			      event ? QHCA_QP_ATTR_SQD_EVENT : 0, NULL), 0);
	while (draining(p) && p->w.now < limit)
		world_run(&p->w, p->w.now + 5000);
	CHECK(!draining(p));
	if (event)
		CHECK_EQ(next_event(&p->a, p->a.qp.qpn),
			 QHCA_EVENT_QP_SQ_DRAINED);
	CHECK_EQ(next_event(&p->a, 0), 0);
	take_sends(p, done);
	take_receives(p);
	/* The device sends nothing now, whatever software posts. */
	post_some(p, 5);
	after = *done;
	world_run(&p->w, p->w.now + 100000);
	take_sends(p, done);
	CHECK_EQ(*done, after);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RTS, 0, NULL), 0);
}

static void drain_cycles(struct pair *p)
{
	uint32_t done = 0;

	p->a.conn.retry_cnt = p->a.conn.rnr_retry = 7;
	connect_pair(p);
	for (int i = 0; i < ROUNDS && check_ok(); i++) {
		make_noise(p);
		take_receives(p);
		post_some(p, 50 - (p->a.qp.sq_pi - done));
		world_run(&p->w, p->w.now + world_pick(&p->w, 30000));
		take_sends(p, &done);
		/* Once software has requested the event, each drain posts it. */
		drain_once(p, &done, i >= ROUNDS / 2);
	}
	settle(p);
	take_sends(p, &done);
	CHECK_EQ(done, p->a.qp.sq_pi);
}

/* ---- ERR */

/*
 * Checks that each posted request completes once and in order: some with success, the
 * rest flushed.
 */
static void check_flushed(int line, struct md_cq *cq, uint32_t from,
			  uint32_t posted)
{
	struct qhca_cqe cqe;
	bool flushing = false;
	uint32_t n = from;

	for (; md_poll(cq, &cqe); n++) {
		if (get_le64(&cqe.wr_id) != n)
			check_failed(line, "%llu completes, not %u",
				     (unsigned long long)get_le64(&cqe.wr_id), n);
		if (cqe.status ? cqe.status != QHCA_WC_WR_FLUSH_ERR : flushing)
			check_failed(line, "status %u", cqe.status);
		flushing |= cqe.status != 0;
	}
	if (n != posted)
		check_failed(line, "%u completions of %u", n, posted);
}

static void error_in_traffic(struct pair *p)
{
	p->a.conn.retry_cnt = p->a.conn.rnr_retry = 7;
	connect_pair(p);
	for (uint32_t i = 0; i < ROUNDS && check_ok(); i++) {
		struct end *e = i & 1 ? &p->b : &p->a;

		p->w.link = (struct world_link){ .delay = 1000,
						 .jitter = i % 4 * 1000 };
		post_some(p, 40);
		world_run(&p->w, p->w.now + world_pick(&p->w, 20000));
		CHECK_EQ(md_qp_modify(e->md, &e->qp, QHCA_QPS_ERR, 0, NULL), 0);
		if (e == &p->a) {
			settle(p);
			check_flushed(__LINE__, &p->a.scq, 0, p->a.qp.sq_pi);
		} else {
			post_recv(e, 100);
			qhca_doorbell(e->md->host.hca, 0, 0, QHCA_DB_SQ, e->qp.qpn,
				      p->w.now);
			settle(p);
			check_flushed(__LINE__, &p->b.rcq, 0, p->b.qp.rq_pi);
		}
		for (struct qhca_cqe c; md_poll(&p->a.scq, &c);)
			;
		for (struct qhca_cqe c; md_poll(&p->b.rcq, &c);)
			;
		CHECK_EQ(next_event(e, 0), 0);
		reconnect_pair(p, 0xffffff - 5 * i);
	}
}

/* ---- RESET */

/* One side is reset while packets of either are on their way. */
static void reset_in_traffic(struct pair *p)
{
	p->a.conn.retry_cnt = p->a.conn.rnr_retry = 7;
	connect_pair(p);
	for (uint32_t i = 0; i < ROUNDS && check_ok(); i++) {
		struct qhca_cqe c;

		make_noise(p);
		post_some(p, 40);
		world_run(&p->w, p->w.now + world_pick(&p->w, 20000));
		/* The PSNs differ so much that packets on the way belong to neither connection. */
		reconnect_pair(p, i * 0x40000u);
		while (md_poll(&p->a.scq, &c))
			;
		while (md_poll(&p->b.rcq, &c))
			;
		settle(p);
		CHECK(!md_poll(&p->a.scq, &c));
		CHECK(!md_poll(&p->b.rcq, &c));
		p->w.link = (struct world_link){ .delay = 1000 };
		CHECK_WORKS(p);
	}
}

/* The driver destroys the QP under traffic, and uses its number again. */
static void destroy_in_traffic(struct pair *p)
{
	connect_pair(p);
	for (uint32_t i = 0; i < ROUNDS && check_ok(); i++) {
		struct md_qp_init init = p->a.qp.init;
		uint32_t qpn = p->a.qp.qpn, next = p->a.md->next_qpn;
		struct qhca_cqe c;

		post_some(p, 40);
		world_run(&p->w, p->w.now + world_pick(&p->w, 8000));
		CHECK_EQ(md_qp_destroy(p->a.md, &p->a.qp), 0);
		p->a.md->next_qpn = qpn;
		CHECK_EQ(md_qp_create(p->a.md, &p->a.qp, &init), 0);
		p->a.md->next_qpn = next;
		reconnect_pair(p, i * 0x40000u);
		while (md_poll(&p->a.scq, &c))
			;
		while (md_poll(&p->b.rcq, &c))
			;
		settle(p);
		CHECK_WORKS(p);
	}
}

/* ---- the last ACK */

static bool make_again(struct end *e)
{
	struct md_qp_init init = e->qp.init;
	uint32_t qpn = e->qp.qpn, next = e->md->next_qpn;
	bool ok = !md_qp_destroy(e->md, &e->qp);

	e->md->next_qpn = qpn;
	ok = ok && !md_qp_create(e->md, &e->qp, &init);
	e->md->next_qpn = next;
	return ok;
}

/* Two more QPs, whose traffic keeps b's device busy. */
struct busy {
	struct end a, b;
};

static void open_busy(struct pair *p, struct busy *busy)
{
	connect_pair(p);
	open_second(p, &busy->a, &busy->b,
		    &(struct pair_options){ .type = QHCA_QPT_RC });
}

static void keep_busy(struct pair *p, struct busy *busy)
{
	p->w.link = (struct world_link){ .delay = 1000 };
	for (int n = 0; n < 10; n++)
		post(p, &busy->b, QHCA_WQE_WRITE, 30000, 0);
}

/* All that the other QPs did has succeeded; connects the pair for another round. */
static void end_of_round(struct pair *p, struct busy *busy, uint32_t i)
{
	struct qhca_cqe c;

	while (md_poll(&busy->b.scq, &c))
		CHECK_EQ(c.status, 0);
	reconnect_pair(p, i * 0x40000u);
}

/* Software of b resets its QP, moves it to ERR, or destroys it, in turn. */
static void leave_in_turn(struct pair *p, uint32_t i)
{
	static const uint8_t ends[] = { QHCA_QPS_RESET, QHCA_QPS_ERR };

	if (i % 3 == 2)
		CHECK(make_again(&p->b));
	else
		CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, ends[i % 3], 0, NULL), 0);
	settle(p);
}

/* Steps until so many receives of b are complete. */
static void await_receives(struct pair *p, unsigned int num)
{
	struct qhca_cqe c;

	while (num) {
		if (md_poll(&p->b.rcq, &c))
			num--;
		else
			world_step(&p->w, QHCA_NEVER);
	}
}

/*
 * Software of b ends its QP as soon as it has polled a receive.  The peer's request is
 * complete, although the device, which is busy with another QP, may not have
 * acknowledged it by then.
 */
static void leaves_after_receive(struct pair *p)
{
	struct busy busy;

	open_busy(p, &busy);
	for (uint32_t i = 0; i < ROUNDS && check_ok(); i++) {
		keep_busy(p, &busy);
		post_recv(&p->b, 100);
		post(p, &p->a, QHCA_WQE_SEND, 8, 0);
		await_receives(p, 1);
		leave_in_turn(p, i);
		EXPECT(&p->a.scq, 0, 0);
		CHECK_EQ(state_of(&p->a), QHCA_QPS_RTS);
		end_of_round(p, &busy, i);
	}
	close_second(&busy.a, &busy.b);
}

/*
 * The same where software of b waits for the word of an ATOMIC WRITE, or for a receive
 * that follows answers which are due.
 */
static void leaves_after_answers(struct pair *p)
{
	struct md_wr store = { .opcode = QHCA_WQE_ATOMIC_WRITE,
			       .flags = QHCA_WQE_F_SIGNALED | QHCA_WQE_F_INLINE,
			       .inline_len = 8, .raddr = p->b.mr.iova,
			       .rkey = p->b.mr.key };
	struct md_wr flush = { .opcode = QHCA_WQE_FLUSH,
			       .flags = QHCA_WQE_F_SIGNALED,
			       .flush_type = QHCA_FLUSH_GLOBAL,
			       .flush_len = PAIR_LEN, .raddr = p->b.mr.iova,
			       .rkey = p->b.mr.key };
	struct busy busy;

	open_busy(p, &busy);
	for (uint32_t i = 0; i < ROUNDS && check_ok(); i++) {
		uint8_t word[8], now[8] = { 0 };

		keep_busy(p, &busy);
		put_le64(word, i + 1);
		store.inline_data = word;
		if (i & 1) {
			post_recv(&p->b, 100);
			post_wr(&p->a, &store);
			post_wr(&p->a, &flush);
			post(p, &p->a, QHCA_WQE_SEND, 8, 0);
			await_receives(p, 1);
		} else {
			post_wr(&p->a, &store);
			for (; memcmp(now, word, 8); get_bytes(&p->b, 0, now, 8))
				world_step(&p->w, QHCA_NEVER);
		}
		leave_in_turn(p, i);
		if (i & 1)
			EXPECT(&p->a.scq, 0, 0, 0, 0);
		else
			EXPECT(&p->a.scq, 0, 0);
		end_of_round(p, &busy, i);
	}
	close_second(&busy.a, &busy.b);
}

/*
 * A READ is due between two SENDs that are complete.  The first one is acknowledged; what
 * the READ would have read is software's again.
 */
static void leaves_before_a_read(struct pair *p)
{
	unsigned int unanswered = 0;
	struct busy busy;

	open_busy(p, &busy);
	for (uint32_t i = 0; i < ROUNDS && check_ok(); i++) {
		struct qhca_cqe c;

		keep_busy(p, &busy);
		post_recv(&p->b, 100);
		post_recv(&p->b, 100);
		post(p, &p->a, QHCA_WQE_SEND, 8, 0);
		post(p, &p->a, QHCA_WQE_READ, 8, 0);
		post(p, &p->a, QHCA_WQE_SEND, 8, 0);
		await_receives(p, 2);
		CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET, 0,
				      NULL), 0);
		settle(p);
		CHECK(md_poll(&p->a.scq, &c));
		CHECK_EQ(c.status, QHCA_WC_SUCCESS);
		/* The READ may have had its turn. */
		CHECK(md_poll(&p->a.scq, &c));
		unanswered += c.status == QHCA_WC_RETRY_EXC_ERR;
		while (md_poll(&p->a.scq, &c))
			;
		end_of_round(p, &busy, i);
	}
	CHECK(unanswered >= ROUNDS / 4);
	close_second(&busy.a, &busy.b);
}

static void post_quietly_at(struct pair *p, uint8_t opcode, uint8_t flags,
			    uint64_t raddr, uint32_t rkey)
{
	struct md_wr wr = {
		.opcode = opcode, .flags = flags, .wr_id = p->a.qp.sq_pi,
		.raddr = raddr, .rkey = rkey, .num_sge = 1,
		.sge = &(struct md_sge){ p->a.mr.iova, 8, p->a.mr.key },
	};

	md_post_send(p->a.md, &p->a.qp, &wr);
}

static void post_quietly(struct pair *p, uint8_t opcode, uint8_t flags)
{
	post_quietly_at(p, opcode, flags, p->b.mr.iova + 32768, p->b.mr.key);
}

/*
 * A SEND that asks for no ACK is complete, and what would have answered it as well is not.
 * It does not fail.
 */
static void leaves_after_a_quiet_one(struct pair *p, uint8_t second)
{
	struct busy busy;

	open_busy(p, &busy);
	for (uint32_t i = 0; i < ROUNDS && check_ok(); i++) {
		struct qhca_cqe c;

		keep_busy(p, &busy);
		post_recv(&p->b, 100);
		post_quietly(p, QHCA_WQE_SEND, 0);
		post_quietly(p, second, QHCA_WQE_F_SIGNALED);
		md_ring(p->a.md, &p->a.qp);
		await_receives(p, 1);
		leave_in_turn(p, i);
		/* The one that is signalled may have failed, which is the second. */
		while (md_poll(&p->a.scq, &c))
			CHECK(!c.status || get_le64(&c.wr_id));
		end_of_round(p, &busy, i);
	}
	close_second(&busy.a, &busy.b);
}

static void leaves_after_quiet_before_read(struct pair *p)
{
	leaves_after_a_quiet_one(p, QHCA_WQE_READ);
}

static void leaves_after_quiet_before_rnr(struct pair *p)
{
	leaves_after_a_quiet_one(p, QHCA_WQE_SEND);
}

/*
 * Software of b ends its QP as soon as it has polled a receive that failed.  The peer
 * still gets the reason, and no timeout.
 */
static void leaves_after_error(struct pair *p)
{
	struct busy busy;

	open_busy(p, &busy);
	for (uint32_t i = 0; i < ROUNDS && check_ok(); i++) {
		struct qhca_cqe c;

		keep_busy(p, &busy);
		post_recv(&p->b, 4);
		post(p, &p->a, QHCA_WQE_SEND, 8, 0);
		await_receives(p, 1);
		leave_in_turn(p, i);
		CHECK(md_poll(&p->a.scq, &c));
		CHECK_EQ(c.status, QHCA_WC_REM_INV_REQ_ERR);
		while (md_poll(&p->a.scq, &c))
			;
		end_of_round(p, &busy, i);
	}
	close_second(&busy.a, &busy.b);
}

/*
 * A READ meets a page that does not come, behind it a WRITE has been executed that asked for
 * no ACK, and then the QP ends.  The NAK of the READ goes before what would acknowledge the
 * WRITE, which would say that the READ's response is lost.
 */
static void leaves_after_failed_read(struct pair *p)
{
	struct busy busy;
	struct cold cold;

	p->a.conn.retry_cnt = 0;
	open_busy(p, &busy);
	cold = cold_make(&p->b);
	cold.odp->hole = true;
	for (uint32_t i = 0; i < ROUNDS && check_ok(); i++) {
		struct qhca_fault_info f;
		struct qhca_eqe event;
		struct qhca_cqe c;
		uint32_t qpn;

		p->w.link = (struct world_link){ .delay = 1000 };
		post_quietly_at(p, QHCA_WQE_READ, QHCA_WQE_F_SIGNALED, COLD_IOVA,
				cold.odp->mr.key);
		post_quietly(p, QHCA_WQE_WRITE, 0);
		post_quietly(p, QHCA_WQE_READ, QHCA_WQE_F_SIGNALED);
		md_ring(p->a.md, &p->a.qp);
		run_for(p, 1000000);
		CHECK(md_fault(p->b.md, &qpn, &f));
		keep_busy(p, &busy);
		CHECK_EQ(md_resume(p->b.md, get_le32(&f.token), false), 0);
		leave_in_turn(p, i);
		CHECK(md_poll(&p->a.scq, &c));
		CHECK_EQ(c.status, QHCA_WC_REM_ACCESS_ERR);
		while (md_poll(&p->a.scq, &c))
			;
		while (md_event(p->b.md, &event))
			;
		end_of_round(p, &busy, i);
	}
	close_second(&busy.a, &busy.b);
}

/* ---- limits */

/* Drops the first so many frames of a. */
static bool drop_first(struct world *w, unsigned int from, uint8_t *frame,
		       size_t len)
{
	uint32_t *n = w->filter_arg;

	(void)frame; (void)len;
	if (from || !*n)
		return true;
	--*n;
	return false;
}

/* @retries allow as many losses of a packet and no more. */
static void retries_just_enough(struct pair *p)
{
	for (uint32_t cnt = 0; cnt <= 7; cnt++) {
		p->a.conn.retry_cnt = cnt;
		for (uint32_t more = 0; more < 2; more++) {
			uint32_t n = cnt + more;

			reconnect_pair(p, 100 * cnt);
			p->w.filter = drop_first;
			p->w.filter_arg = &n;
			post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
			settle(p);
			EXPECT(&p->a.scq, 0, more ? QHCA_WC_RETRY_EXC_ERR : 0);
			CHECK_EQ(state_of(&p->a), more ? QHCA_QPS_ERR :
							 QHCA_QPS_RTS);
			CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
			CHECK_EQ(next_event(&p->a, 0), 0);
			p->w.filter = NULL;
		}
	}
}

/* Drops b's ACKs, and keeps the first. */
struct kept_ack {
	uint8_t frame[128];
	size_t len;
};

static bool keep_first_ack(struct world *w, unsigned int from, uint8_t *frame, size_t len)
{
	struct kept_ack *ack = w->filter_arg;

	if (!from)
		return true;
	if (!ack->len && len <= sizeof(ack->frame)) {
		memcpy(ack->frame, frame, len);
		ack->len = len;
	}
	return false;
}

/*
 * The timer of a QP has expired, and the QP has not had its turn yet, when an ACK arrives.
 * The timer begins anew, and what has expired is no timeout of the request that is left.
 */
static void ack_before_the_turn(struct pair *p)
{
	struct kept_ack ack = { .len = 0 };
	struct busy busy;

	p->a.conn.timeout = 14;		/* 67 ms */
	p->w.link.delay = 1000;
	open_busy(p, &busy);
	p->w.filter = keep_first_ack;
	p->w.filter_arg = &ack;
	for (int i = 0; i < 2; i++) {
		post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
		run_for(p, 100000);
	}
	CHECK(ack.len);
	p->w.filter = NULL;
	run_for(p, 66000000);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
	post(p, &busy.a, QHCA_WQE_WRITE, 8, 0);
	p->w.now += 2000000;
	qhca_run(p->a.md->host.hca, p->w.now, 1);
	qhca_rx_frame(p->a.md->host.hca, ack.frame, ack.len, p->w.now);
	run_for(p, 1000000);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
	settle(p);
	EXPECT(&p->a.scq, 1, 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 1);
	close_second(&busy.a, &busy.b);
}

/* Progress restores the number of retries. */
static void progress_restores_retries(struct pair *p)
{
	p->a.conn.retry_cnt = 1;
	connect_pair(p);
	for (int i = 0; i < 8; i++) {
		uint32_t n = 1;

		p->w.filter = drop_first;
		p->w.filter_arg = &n;
		post(p, &p->a, i & 1 ? QHCA_WQE_READ : QHCA_WQE_WRITE, 8, 0);
		settle(p);
		EXPECT(&p->a.scq, i, 0);
		p->w.filter = NULL;
	}
}

static void rnr_retries_just_enough(struct pair *p)
{
	p->b.conn.min_rnr_timer = 14;		/* 1.28 ms */
	for (uint32_t cnt = 0; cnt < 7; cnt++) {
		p->a.conn.rnr_retry = cnt;
		for (uint32_t more = 0; more < 2; more++) {
			uint64_t before = count_of(&p->a,
						       QHCA_CNT_rx_rnr);

			reconnect_pair(p, 100 * cnt);
			post(p, &p->a, QHCA_WQE_SEND, 3000, 0);
			/* Software posts the receive before the last try, or after it. */
			world_run(&p->w, p->w.now + 640000 +
				  (cnt + more - 1) * 1290000ull);
			if (cnt || more)
				expect_none(more ? &p->b.rcq : &p->a.scq);
			post_recv(&p->b, 4000);
			settle(p);
			EXPECT(&p->a.scq, 0,
			       more || !cnt ? QHCA_WC_RNR_RETRY_EXC_ERR : 0);
			CHECK_EQ(count_of(&p->a, QHCA_CNT_rx_rnr) -
				 before, cnt + (more || !cnt));
			CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
			CHECK_EQ(next_event(&p->b, 0), 0);
			for (struct qhca_cqe c; md_poll(&p->b.rcq, &c);)
				CHECK_EQ(c.status, 0);
		}
	}
}

/*
 * The responder repeats its ACK for a request that came twice.  In an RNR wait that looks as
 * if a page had come: the wait ends, and must not be counted as one that was of no use.
 */
static void rnr_wait_cut_short(struct pair *p)
{
	p->a.conn.timeout = 8;			/* 1.05 ms */
	p->a.conn.retry_cnt = 7;
	p->a.conn.rnr_retry = 1;
	p->b.conn.min_rnr_timer = 31;		/* 491.52 ms */
	p->w.link.delay = 2000000;
	connect_pair(p);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	world_run(&p->w, p->w.now + 20000000);
	CHECK(count_of(&p->a, QHCA_CNT_rx_rnr) > 1);
	post_recv(&p->b, 100);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0);
}

#define EACH(fn) RC(fn), NAMED(UC, #fn " (UC)", fn), \
		 NAMED(UD, #fn " (UD)", fn)

const struct scenario state_scenarios[] = {
	EACH(drain_cycles), EACH(error_in_traffic), EACH(reset_in_traffic),
	RC(destroy_in_traffic), RC(leaves_after_receive), RC(leaves_after_answers),
	RC(leaves_before_a_read), RC(leaves_after_quiet_before_read),
	RC(leaves_after_quiet_before_rnr), RC(leaves_after_error),
	RC(leaves_after_failed_read),
	RC(retries_just_enough), RC(progress_restores_retries),
	RC(rnr_retries_just_enough), RC(rnr_wait_cut_short), RC(ack_before_the_turn),
	{ 0 }
};
