/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Completion and event queues as software uses them: sleep until an event, poll,
 * arm again; rings so small that they are full most of the time; events held
 * back on purpose.  The rule under test: software that has armed the CQ for a
 * completion that it has not consumed gets an event.  And SRQs that several QPs share.
 */
#include <string.h>

#include "pair.h"

#define MESSAGES	300u
#define CREDITS		6u		/* receives posted at a time */
#define SECOND		1000000000ull

/* ---- sleepers */

struct sleeper {
	struct md_cq *cq;
	bool woken;
	uint32_t taken;			/* CQEs consumed */
	uint32_t events, arms;
};

/* Takes the events of the device; returns false for an event without an arm. */
static bool take_events(struct end *e, struct sleeper *s)
{
	struct qhca_eqe eqe;

	while (md_event(e->md, &eqe)) {
		if (eqe.type != QHCA_EVENT_COMPLETION ||
		    get_le32(&eqe.number) != s->cq->cqn)
			continue;
		/* Each arm is good for one event. */
		if (s->events++ == s->arms)
			return false;
		s->woken = true;
	}
	/* Events that waited for room arrive when software arms the EQ. */
	qhca_doorbell(e->md->host.hca, 0, 0, QHCA_DB_EQ_ARM,
		      (uint64_t)e->md->eq_ci << 32, e->md->host.now);
	return true;
}

static uint32_t armed_word(struct sleeper *s)
{
	return md_buf_get32(s->cq->md, &s->cq->buf, s->cq->rec_offset + 64);
}

static void arm(struct pair *p, struct sleeper *s, bool solicited)
{
	uint32_t word = world_pick(&p->w, 2) ? armed_word(s) : 0;

	s->arms++;
	/* The device says that the event is yet to come. */
	if (word && word <= (solicited ? 2 : 1))
		return;
	md_arm(s->cq, solicited);
}

/* Consume one or some or all. */
static bool poll_some(struct pair *p, struct sleeper *s)
{
	uint32_t max = world_pick(&p->w, 3) ? ~0u : 1 + world_pick(&p->w, 3);
	struct qhca_cqe cqe;

	while (max-- && md_poll(s->cq, &cqe)) {
		CHECK_EQ(cqe.status, 0);
		CHECK_EQ(get_le64(&cqe.wr_id), s->taken);
		s->taken++;
		p->b.qp.rq_ci++;
	}
	return max == ~0u;
}

/* With @batches more comes only when all before has been consumed. */
static void send_some(struct pair *p, const struct sleeper *s, uint32_t *sent,
		      bool batches)
{
	uint32_t n = world_pick(&p->w, CREDITS), room = 60;

	/* A single ACK may complete all requests under way. */
	if (room > 1u << p->a.scq.log_depth)
		room = 1u << p->a.scq.log_depth;
	room -= p->a.qp.sq_pi - p->a.qp.sq_ci;
	if (n > room)
		n = room;
	if (batches && s->taken != *sent)
		n = 0;
	while (n-- && *sent < MESSAGES) {
		/* The last request, and at least each third one, wakes a sleeping program. */
		bool wake = ++*sent % 3 == 0 || *sent == MESSAGES || !n ||
			    !world_pick(&p->w, 4);

		post(p, &p->a, QHCA_WQE_SEND, 1 + world_pick(&p->w, 2000),
		     wake ? QHCA_WQE_F_SOLICITED : 0);
	}
	for (struct qhca_cqe c; md_poll(&p->a.scq, &c); p->a.qp.sq_ci++)
		CHECK_EQ(c.status, 0);
}

/*
 * Sleeps until all completions have arrived, which never happens if an event is
 * missing.
 */
static void sleep_through(struct pair *p, struct md_cq *cq, unsigned int how)
{
	struct sleeper s = { .cq = cq };
	uint64_t limit = p->w.now + SECOND / 5;
	uint32_t sent = 0;

	arm(p, &s, how & 1);
	while (s.taken < MESSAGES && p->w.now < limit && check_ok()) {
		while (p->b.qp.rq_pi - p->b.qp.rq_ci < CREDITS)
			post_recv(&p->b, 2000);
		send_some(p, &s, &sent, how & 8);
		world_wait(&p->w, p->w.now + 3000);
		if (world_pick(&p->w, 3))	/* the EQ may fill */
			continue;
		CHECK(take_events(&p->b, &s));
		if (!s.woken)
			continue;
		s.woken = false;
		poll_some(p, &s);
		/* More completions may arrive in between. */
		if (world_pick(&p->w, 2))
			world_wait(&p->w, p->w.now + 3000);
		arm(p, &s, how & 1 && world_pick(&p->w, 8));
		/* A weaker arm later does not cancel the earlier one. */
		if (!world_pick(&p->w, 4))
			arm(p, &s, true);
	}
	CHECK_EQ(s.taken, MESSAGES);
	if (!check_ok())
		note("%s, %u of %u events", how & 1 ? "solicited" : "next",
		     s.events, s.arms);
}

static void sleepers_of(struct pair *p, uint16_t count, uint16_t usec)
{
	struct pair_options o = { .type = QHCA_QPT_RC };

	for (unsigned int i = 0; i < 48 && check_ok(); i++) {
		o.log_eq = i & 2 ? 1 : 8;
		o.log_cq = i & 4 ? 3 : 8;
		o.moder_count = count;
		o.moder_usec = usec;
		restart_pair(p, &o);
		p->a.conn.rnr_retry = p->a.conn.retry_cnt = 7;
		connect_pair(p);
		p->w.link = (struct world_link){
			.delay = 1000, .jitter = i % 3 * 1500,
			.loss = i % 5 * 5000,
		};
		sleep_through(p, &p->b.rcq, i);
	}
}

static void no_event_is_lost(struct pair *p)
{
	sleepers_of(p, 0, 0);
}

/* Moderation delays the event, but not without bound. */
static void no_held_event_is_lost(struct pair *p)
{
	sleepers_of(p, 4, 50);
}

static void no_timed_event_is_lost(struct pair *p)
{
	sleepers_of(p, 0, 20);
}

static uint32_t completion_events(struct end *e)
{
	struct qhca_eqe eqe;
	uint32_t n = 0;

	while (md_event(e->md, &eqe))
		n += eqe.type == QHCA_EVENT_COMPLETION;
	return n;
}

static void solicited_only(struct pair *p)
{
	connect_pair(p);
	for (int i = 0; i < 4; i++)
		post_recv(&p->b, 100);
	md_arm(&p->b.rcq, true);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK_EQ(completion_events(&p->b), 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, QHCA_WQE_F_SOLICITED);
	settle(p);
	CHECK_EQ(completion_events(&p->b), 1);
	/* An error is always solicited. */
	md_arm(&p->b.rcq, false);
	/* Software has not consumed two of them. */
	CHECK_EQ(completion_events(&p->b), 1);
	EXPECT(&p->b.rcq, 0, 0, 0);
	md_arm(&p->b.rcq, true);
	CHECK_EQ(completion_events(&p->b), 0);
	md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_ERR, 0, NULL);
	settle(p);
	CHECK_EQ(completion_events(&p->b), 1);
	EXPECT(&p->b.rcq, 2, QHCA_WC_WR_FLUSH_ERR, QHCA_WC_WR_FLUSH_ERR);
}

/* Arming for a solicited completion takes nothing back from an earlier arm. */
static void weaker_arm_takes_nothing_back(struct pair *p)
{
	uint32_t armed = p->b.rcq.rec_offset + 64;

	connect_pair(p);
	for (int i = 0; i < 3; i++)
		post_recv(&p->b, 100);
	md_arm(&p->b.rcq, false);
	md_arm(&p->b.rcq, true);
	CHECK_EQ(md_buf_get32(p->b.md, &p->b.rcq.buf, armed), 1);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK_EQ(completion_events(&p->b), 1);
	EXPECT(&p->b.rcq, 0, 0);
	/* ... but the event has, and a stronger one replaces a weaker. */
	md_arm(&p->b.rcq, true);
	CHECK_EQ(md_buf_get32(p->b.md, &p->b.rcq.buf, armed), 2);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK_EQ(completion_events(&p->b), 0);
	EXPECT(&p->b.rcq, 1, 0);
	md_arm(&p->b.rcq, false);
	CHECK_EQ(md_buf_get32(p->b.md, &p->b.rcq.buf, armed), 1);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK_EQ(completion_events(&p->b), 1);
	CHECK_EQ(md_buf_get32(p->b.md, &p->b.rcq.buf, armed), 0);
	EXPECT(&p->b.rcq, 2, 0);
}

/* ... nor while moderation holds the event that was asked for. */
static void weaker_arm_keeps_held_event(struct pair *p)
{
	connect_pair(p);
	for (int i = 0; i < 2; i++)
		post_recv(&p->b, 100);
	md_arm(&p->b.rcq, false);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	world_run(&p->w, p->w.now + 300000);
	md_arm(&p->b.rcq, true);	/* software has polled nothing */
	CHECK_EQ(completion_events(&p->b), 0);
	settle(p);
	CHECK_EQ(completion_events(&p->b), 1);
	EXPECT(&p->b.rcq, 0, 0);
}

static void moderation_holds(struct pair *p)
{
	struct pair_options o = { .type = QHCA_QPT_RC, .moder_count = 3,
				  .moder_usec = 1000 };

	restart_pair(p, &o);
	connect_pair(p);
	for (int i = 0; i < 5; i++)
		post_recv(&p->b, 100);
	md_arm(&p->b.rcq, false);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	world_run(&p->w, p->w.now + 500000);
	CHECK_EQ(completion_events(&p->b), 0);
	world_run(&p->w, p->w.now + 600000);	/* the time has passed */
	CHECK_EQ(completion_events(&p->b), 1);
	EXPECT(&p->b.rcq, 0, 0, 0);
	md_arm(&p->b.rcq, false);
	for (int i = 0; i < 3; i++)
		post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	world_run(&p->w, p->w.now + 500000);	/* the count is reached */
	CHECK_EQ(completion_events(&p->b), 1);
}

/* ---- tiny rings */

static void cq_of_one(struct pair *p)
{
	struct md_qp_init init = p->a.qp.init;
	struct md_cq one;

	CHECK_EQ(md_qp_destroy(p->a.md, &p->a.qp), 0);
	md_cq_create(p->a.md, &one, 0);
	init.send_cq = &one;
	CHECK_EQ(md_qp_create(p->a.md, &p->a.qp, &init), 0);
	p->b.conn.dest_qpn = p->a.qp.qpn;
	connect_pair(p);
	for (int i = 0; i < 50; i++) {
		post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
		settle(p);
		EXPECT(&one, i, 0);
	}
	CHECK_EQ(count_of(&p->a, QHCA_CNT_cq_overruns), 0);
	/* Two completions at a time are one more than the ring holds. */
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	settle(p);
	CHECK_EQ(next_event(&p->a, one.cqn), QHCA_EVENT_CQ_ERROR);
	CHECK_EQ(next_event(&p->a, p->a.qp.qpn), QHCA_EVENT_QP_FATAL);
	CHECK_EQ(next_event(&p->a, 0), 0);
	EXPECT(&one, 50, 0);			/* intact */
	CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_cq_overruns), 1);
}

/*
 * The receive CQ is full: the device reports this to the peer with a NAK of the request
 * that had no room, and does not keep silent.
 */
static void overrun_of_receive_cq(struct pair *p, uint8_t opcode)
{
	const struct pair_options o = { .type = QHCA_QPT_RC, .log_cq = 2 };

	restart_pair(p, &o);
	connect_pair(p);
	for (int i = 0; i < 6; i++)
		post_recv(&p->b, 100);
	for (int i = 0; i < 4; i++) {
		post(p, &p->a, opcode, 8, 0);
		settle(p);
		EXPECT(&p->a.scq, i, 0);
	}
	post(p, &p->a, opcode, 8, 0);
	post(p, &p->a, opcode, 8, 0);
	settle(p);
	EXPECT(&p->a.scq, 4, QHCA_WC_REM_OP_ERR, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_nak_op), 1);
	CHECK_EQ(next_event(&p->b, p->b.rcq.cqn), QHCA_EVENT_CQ_ERROR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_FATAL);
	CHECK_EQ(next_event(&p->b, 0), 0);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
	EXPECT(&p->b.rcq, 0, 0, 0, 0, 0);	/* intact */
}

static void overrun_at_responder(struct pair *p)
{
	overrun_of_receive_cq(p, QHCA_WQE_SEND);
	overrun_of_receive_cq(p, QHCA_WQE_WRITE_IMM);
}

/* Another QP on the CQ also goes to error, with its next completion. */
static void cq_overrun_of_two(struct pair *p)
{
	const struct pair_options o = { .type = QHCA_QPT_RC };
	struct end a2, b2;

	connect_pair(p);
	open_second(p, &a2, &b2, &o);
	CHECK_EQ(md_qp_destroy(a2.md, &a2.qp), 0);
	a2.qp.init.send_cq = &p->a.scq;
	{
		struct md_qp_init init = a2.qp.init;

		CHECK_EQ(md_qp_create(a2.md, &a2.qp, &init), 0);
	}
	b2.conn.dest_qpn = a2.qp.qpn;
	md_qp_modify(b2.md, &b2.qp, QHCA_QPS_RESET, 0, NULL);
	md_qp_connect(a2.md, &a2.qp, &a2.conn);
	md_qp_connect(b2.md, &b2.qp, &b2.conn);
	for (int i = 0; i < 5; i++)		/* of 4 */
		post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	settle(p);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
	CHECK_EQ(state_of(&a2), QHCA_QPS_RTS);
	post(p, &a2, QHCA_WQE_WRITE, 8, 0);
	settle(p);
	CHECK_EQ(state_of(&a2), QHCA_QPS_ERR);
	EXPECT(&p->a.scq, 0, 0, 0, 0, 0);
	close_second(&a2, &b2);
}

/* ---- shared receive queues */

#define SHARERS	3u

/* A QP in error flushes what it has taken, and nothing else of the SRQ. */
static void srq_taken_is_flushed(struct pair *p)
{
	struct end a2, b2;
	struct qhca_cqe cqe;
	const struct pair_options o = { .type = QHCA_QPT_RC, .srq = true };

	p->a.conn.mtu = p->b.conn.mtu = QHCA_MTU_256;
	connect_pair(p);
	open_second(p, &a2, &b2, &o);
	for (int i = 0; i < 4; i++)
		post_recv(&p->b, 16384);
	post(p, &p->a, QHCA_WQE_SEND, 16384, 0);
	while (!count_of(&p->b, QHCA_CNT_rx_packets) &&
	       world_step(&p->w, p->w.now + 100))
		;
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_ERR, 0, NULL), 0);
	settle(p);
	CHECK(md_poll(&p->b.rcq, &cqe));
	CHECK_EQ(cqe.status, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(get_le64(&cqe.wr_id), 0);
	CHECK(get_le32(&cqe.flags) & QHCA_CQE_SRQ);
	expect_none(&p->b.rcq);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_LAST_WQE);
	/* The other QPs continue with the receives that are left. */
	for (int i = 0; i < 3; i++)
		post(p, &a2, QHCA_WQE_SEND, 1000, 0);
	settle(p);
	EXPECT(&a2.scq, 0, 0, 0, 0);
	EXPECT(&b2.rcq, 1, 0, 0, 0);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_DESTROY_SRQ, p->b.srq.srqn, 0, NULL,
			0, NULL, 0, NULL), QHCA_CMD_IN_USE);
	close_second(&a2, &b2);
}

/* Each slot serves one message of one QP, whichever QP is first. */
static void srq_of_many(struct pair *p)
{
	const struct pair_options o = { .type = QHCA_QPT_RC, .srq = true };
	struct end a[SHARERS], b[SHARERS];
	uint32_t got = 0, sent = 0;
	struct qhca_cqe cqe;

	connect_pair(p);
	p->a.conn.rnr_retry = 7;
	p->w.link.jitter = 2000;
	for (uint32_t i = 0; i < SHARERS; i++)
		open_second(p, &a[i], &b[i], &o);
	while (got < 400 && p->w.now < 20 * SECOND && check_ok()) {
		struct end *e = &a[world_pick(&p->w, SHARERS)];

		if (sent < 400 && e->qp.sq_pi - e->qp.sq_ci < 60) {
			post(p, e, QHCA_WQE_SEND, world_pick(&p->w, 4000), 0);
			sent++;
		}
		if (!world_pick(&p->w, 2))
			post_recv(&b[0], 4000);
		world_step(&p->w, p->w.now + 2000);
		for (uint32_t i = 0; i < SHARERS; i++) {
			for (; md_poll(&a[i].scq, &cqe); a[i].qp.sq_ci++)
				CHECK_EQ(cqe.status, 0);
			while (md_poll(&b[i].rcq, &cqe)) {
				CHECK_EQ(cqe.status, 0);
				md_srq_free(p->b.md, &p->b.srq,
					    get_le32(&cqe.wqe));
				got++;
			}
		}
	}
	CHECK_EQ(got, 400);
	CHECK_EQ(next_event(&p->b, 0), 0);
	for (uint32_t i = 0; i < SHARERS; i++)
		close_second(&a[i], &b[i]);
}

/* What software does while the device works on its command. */
static void post_meanwhile(struct host *h, enum host_call call)
{
	struct end *e = h->meanwhile_arg;

	if (call != HOST_DMA)
		return;
	h->meanwhile = NULL;
	post_recv(e, 4000);
	h->meanwhile = post_meanwhile;
}

static void grow(struct pair *p, struct end *e)
{
	if (!e->srq.grown_rec) {
		md_srq_grow_begin(e->md, &e->srq);
		return;
	}
	if (world_pick(&p->w, 2)) {
		e->md->host.meanwhile_arg = e;
		e->md->host.meanwhile = post_meanwhile;
	}
	md_srq_grow_end(e->md, &e->srq);
	e->md->host.meanwhile = NULL;
}

#define GROWN	400u

/*
 * The SRQ moves to larger rings while its QPs take from it and software posts;
 * the old rings are filled with rubbish.  Each receive serves once.
 */
static void srq_grows(struct pair *p)
{
	const struct pair_options o = { .type = QHCA_QPT_RC, .srq = true };
	struct end a[SHARERS], b[SHARERS];
	uint32_t got = 0, sent = 0, seen[4 * GROWN] = { 0 };
	struct md_qp_init init = p->b.qp.init;
	struct qhca_cqe cqe;

	md_srq_create_threshold(p->b.md, &p->b.srq, PAIR_PD, 3, 6, 2);
	CHECK_EQ(md_qp_destroy(p->b.md, &p->b.qp), 0);
	CHECK_EQ(md_qp_create(p->b.md, &p->b.qp, &init), 0);
	p->a.conn.dest_qpn = p->b.qp.qpn;
	connect_pair(p);
	p->a.conn.rnr_retry = 7;
	p->w.link.jitter = 2000;
	for (uint32_t i = 0; i < SHARERS; i++)
		open_second(p, &a[i], &b[i], &o);
	while (got < GROWN && p->w.now < 20 * SECOND && check_ok()) {
		struct end *e = &a[world_pick(&p->w, SHARERS)];

		if (sent < GROWN && e->qp.sq_pi - e->qp.sq_ci < 60) {
			post(p, e, QHCA_WQE_SEND, world_pick(&p->w, 4000), 0);
			sent++;
		}
		if (!world_pick(&p->w, 2))
			post_recv(&b[0], 4000);
		if (got > 60 && (p->b.srq.log_depth < 8 ||
				 p->b.srq.grown_rec) &&
		    !world_pick(&p->w, 20))
			grow(p, &p->b);
		world_step(&p->w, p->w.now + 2000);
		for (uint32_t i = 0; i < SHARERS; i++) {
			for (; md_poll(&a[i].scq, &cqe); a[i].qp.sq_ci++)
				CHECK_EQ(cqe.status, 0);
			while (md_poll(&b[i].rcq, &cqe)) {
				uint32_t id = get_le64(&cqe.wr_id);

				CHECK_EQ(cqe.status, 0);
				CHECK(id < 4 * GROWN);
				if (id < 4 * GROWN)
					CHECK_EQ(seen[id]++, 0);
				md_srq_free(p->b.md, &p->b.srq,
					    get_le32(&cqe.wqe));
				got++;
			}
		}
	}
	CHECK_EQ(got, GROWN);
	CHECK_EQ(p->b.srq.log_depth, 8);
	CHECK_EQ(next_event(&p->b, 0), 0);
	/* Receives have served in the order in which they were posted. */
	for (uint32_t i = 0; i < GROWN; i++)
		CHECK_EQ(seen[i], 1);
	for (uint32_t i = 0; i < SHARERS; i++)
		close_second(&a[i], &b[i]);
}

static int resize(struct end *e, const struct qhca_srqc_sw *in)
{
	return md_cmd(e->md, QHCA_CMD_RESIZE_SRQ, e->srq.srqn, 0, in,
		      sizeof(*in), NULL, 0, NULL);
}

/* What is refused changes nothing; the limit outlives what is not. */
static void srq_resize_refused(struct pair *p)
{
	struct qhca_srqc_sw good, in;
	struct qhca_srqc now;
	uint32_t srqn = p->b.srq.srqn;

	connect_pair(p);
	for (int i = 0; i < 4; i++)
		post_recv(&p->b, 1000);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_MODIFY_SRQ, srqn, 3, NULL, 0, NULL,
			0, NULL), 0);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_QUERY_SRQ, srqn, 0, NULL, 0, &now,
			sizeof(now), NULL), 0);
	good = now.sw;
#define REFUSED(change) \
	do { \
		in = good; \
		change; \
		CHECK_EQ(resize(&p->b, &in), QHCA_CMD_BAD_PARAM); \
	} while (0)
	REFUSED(in.log_depth--);
	/* The buffer is too small for it. */
	REFUSED(in.log_depth++);
	REFUSED(in.log_depth = 17);
	REFUSED(put_le32(&in.buf.length, 0));
	REFUSED(put_le64(&in.buf.base, 8));
	REFUSED(put_le32(&in.rec_offset, 64));
	REFUSED(put_le32(&in.rec_offset, 1u << 31));
	REFUSED(put_le32(&in.threshold, (1u << in.log_depth) + 1));
#undef REFUSED
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_RESIZE_SRQ, srqn + 1, 0, &good,
			sizeof(good), NULL, 0, NULL), QHCA_CMD_BAD_STATE);
	md_srq_grow_begin(p->b.md, &p->b.srq);
	md_srq_grow_end(p->b.md, &p->b.srq);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK_EQ(next_event(&p->b, 0), 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK_EQ(next_event(&p->b, srqn), QHCA_EVENT_SRQ_LIMIT);
	EXPECT(&p->b.rcq, 0, 0, 0);
	/* The device compares the limit with the number of receives in the new ring. */
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_MODIFY_SRQ, srqn,
			2u << good.log_depth, NULL, 0, NULL, 0, NULL), 0);
	CHECK_EQ(next_event(&p->b, srqn), QHCA_EVENT_SRQ_LIMIT);
}

/* An SRQ whose list is broken stays in error. */
static void srq_in_error_does_not_grow(struct pair *p)
{
	struct qhca_srqc now;
	uint16_t next;

	connect_pair(p);
	put_le16(&next, 0xffff);
	md_buf_write(p->b.md, &p->b.srq.buf, 10, &next, 2);
	md_buf_put32(p->b.md, &p->b.srq.buf, p->b.srq.rec_offset, 1);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	settle(p);
	CHECK_EQ(next_event(&p->b, p->b.srq.srqn), QHCA_EVENT_SRQ_ERROR);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_QUERY_SRQ, p->b.srq.srqn, 0, NULL, 0,
			&now, sizeof(now), NULL), 0);
	CHECK_EQ(resize(&p->b, &now.sw), QHCA_CMD_BAD_STATE);
}

const struct scenario queue_scenarios[] = {
	RC(no_event_is_lost), RC(no_held_event_is_lost),
	RC(no_timed_event_is_lost), RC(solicited_only),
	RC(weaker_arm_takes_nothing_back),
	RC(weaker_arm_keeps_held_event, .moder_count = 3, .moder_usec = 1000),
	RC(overrun_at_responder),
	RC(moderation_holds), RC(cq_of_one), RC(cq_overrun_of_two, .log_cq = 2),
	RC(srq_taken_is_flushed, .srq = true), RC(srq_of_many, .srq = true),
	RC(srq_grows, .srq = true), RC(srq_resize_refused, .srq = true),
	RC(srq_in_error_does_not_grow, .srq = true),
	{ 0 }
};
