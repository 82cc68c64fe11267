/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bundles: what ends an agreement, and what does not.
 */
#include <string.h>

#include "bundles.h"
#include "cold.h"

static void connect_again(struct end *e)
{
	CHECK_EQ(md_qp_modify(e->md, &e->qp, QHCA_QPS_RESET, 0, NULL), 0);
	md_qp_connect(e->md, &e->qp, &e->conn);
	e->qp.sq_pi = e->qp.rq_pi = 0;
}

/*
 * A program writes single bytes to a QP that is gone, and connects again for ever.  Each
 * connection asks the peer anew; the timeouts do not concern anybody else.
 */
static void others_time_out(struct pair *p)
{
	struct pair_options o = { .type = QHCA_QPT_RC };
	struct end near, far;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	open_second(p, &near, &far, &o);
	CHECK_EQ(md_qp_destroy(far.md, &far.qp), 0);
	near.conn.timeout = 12;
	near.conn.retry_cnt = 7;
	for (unsigned int i = 0; i < 16; i++) {
		connect_again(&near);
		post_at(p, &near, QHCA_WQE_WRITE, p->a.mr.iova, p->a.mr.key, 1,
			p->b.mr.iova, p->b.mr.key);
		for (uint8_t k = 0; k < 40; k++) {
			CHECK(goes_as_bundle(p, &s, k) || !k);
			sleep_for(p, 10 * MS);
		}
		discard_completions(&near.scq);
	}
	CHECK(count_of(&p->a, QHCA_CNT_ack_timeouts) >= 16 * 7);
	unwatch(p, &s);
}

/* Nobody asks again for responses that were lost, and yet the agreement ends in time. */
static void reads_give_up(struct pair *p)
{
	struct pair_options o = { .type = QHCA_QPT_RC };
	struct end near[12], far[12];
	unsigned int failed = 0;
	struct qhca_cqe cqe;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	p->a.conn.retry_cnt = 0;
	for (unsigned int i = 0; i < 12; i++)
		open_second(p, &near[i], &far[i], &o);
	sleep_for(p, SECOND);
	transfer(p, QHCA_WQE_READ, MESSAGE, 1);
	transfer(p, QHCA_WQE_READ, MESSAGE, 2);
	s.limit = TOO_SHORT;
	for (unsigned int i = 0; i < 12; i++) {
		post_at(p, &near[i], QHCA_WQE_READ, p->a.mr.iova, p->a.mr.key, MESSAGE,
			p->b.mr.iova + 32768, p->b.mr.key);
		run_for(p, 100 * MS);
		CHECK(md_poll(&near[i].scq, &cqe));
		failed += cqe.status != 0;
		CHECK(i < 3 || !cqe.status);
		sleep_for(p, SECOND);
	}
	CHECK(failed >= 1 && failed <= 2);
	unwatch(p, &s);
}

static bool lose_bundles(struct world *w, unsigned int from, uint8_t *frame, size_t len)
{
	struct seen *s = w->filter_arg;
	unsigned int before = s->bundles;

	return see_frame(w, from, frame, len) && s->bundles == before;
}

/* PROBEs pass and bundles do not: however seldom there are messages, fewer and fewer are lost. */
static void pauses_grow_with_seldom_messages(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	p->w.filter = lose_bundles;
	for (uint8_t i = 0; i < 80; i++) {
		transfer(p, QHCA_WQE_WRITE, MESSAGE, i);
		sleep_for(p, SECOND);
	}
	/* Once the pause is four seconds, one in five. */
	CHECK(s.bundles >= 10 && s.bundles <= 24);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), s.bundles);
	unwatch(p, &s);
}

/* Only what was asked for again, since the page was absent, goes as packets. */
static void read_of_cold_pages(struct pair *p)
{
	uint8_t b = p->b.md->mac[5];
	struct qhca_fault_info f;
	unsigned int faults = 0;
	struct seen s;
	struct cold c;
	uint32_t qpn;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_READ, MESSAGE, 1);
	transfer(p, QHCA_WQE_READ, MESSAGE, 2);
	post(p, &p->b, QHCA_WQE_WRITE, MESSAGE, 0);
	settle(p);
	c = cold_make(&p->a);
	for (unsigned int round = 0; round < 8; round++) {
		unsigned int bundles = s.of[b].bundles;

		if (md_odp_is_mapped(c.odp, 0))
			md_odp_unmap(c.odp, 0, md_odp_pages(c.odp));
		post_at(p, &p->a, QHCA_WQE_READ, COLD_IOVA, c.odp->mr.key, 2 * MESSAGE,
			p->b.mr.iova + 32768, p->b.mr.key);
		for (unsigned int k = 0; k < 50; k++) {
			run_for(p, 100000);
			if (!md_fault(p->a.md, &qpn, &f))
				continue;
			faults++;
			cold_map(&c);
			md_resume(p->a.md, get_le32(&f.token), true);
		}
		CHECK_EQ(s.of[b].bundles, bundles + 1);
		post(p, &p->b, QHCA_WQE_WRITE, MESSAGE, 0);
		settle(p);
		CHECK_EQ(s.of[b].bundles, bundles + 2);
		sleep_for(p, 20 * MS);
	}
	CHECK(faults >= 8);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
	unwatch(p, &s);
}

/* QPs connect faster than answers come, and questions have their answers nevertheless. */
static void connections_on_a_slow_link(struct pair *p)
{
	struct pair_options o = { .type = QHCA_QPT_UC };
	struct end near, far;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	open_second(p, &near, &far, &o);
	sleep_for(p, SECOND);
	p->w.link.delay = 30 * MS;
	s.bundles = 0;
	for (unsigned int i = 0; i < 100; i++) {
		connect_again(&near);
		for (unsigned int k = 0; k < 4; k++) {
			post(p, &near, QHCA_WQE_WRITE, 4 * MTU, 0);
			run_for(p, 27 * MS);
		}
		discard_completions(&near.scq);
	}
	CHECK(s.bundles >= 50);
	unwatch(p, &s);
}

/*
 * A QP sends long messages to one that is gone.  One bundle of it was lost, and what it
 * sends again are packets, whose loss says nothing about bundles of others.
 */
static void packets_time_out(struct pair *p)
{
	struct pair_options o = { .type = QHCA_QPT_RC };
	unsigned int packets = 0;
	struct end near, far;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	p->a.conn.timeout = 12;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	open_second(p, &near, &far, &o);
	CHECK_EQ(md_qp_destroy(far.md, &far.qp), 0);
	near.conn.timeout = 12;
	near.conn.retry_cnt = 7;
	connect_again(&near);
	sleep_for(p, SECOND / 5);
	goes_as_bundle(p, &s, 0);
	CHECK(goes_as_bundle(p, &s, 0));
	post_at(p, &near, QHCA_WQE_WRITE, p->a.mr.iova, p->a.mr.key, MESSAGE,
		p->b.mr.iova, p->b.mr.key);
	for (uint8_t k = 0; k < 100; k++) {
		packets += !goes_as_bundle(p, &s, k);
		sleep_for(p, 5 * MS);
	}
	CHECK(count_of(&p->a, QHCA_CNT_ack_timeouts) >= 7);
	CHECK(packets && packets <= 2);
	unwatch(p, &s);
}

/* In front of the message that is lost is a short one, which asks for no answer. */
static void short_one_in_front(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT_A_BUNDLE(p, &s, 2);
	s.limit = TOO_SHORT;
	for (uint8_t i = 0; i < 100; i++) {
		post_wr(&p->a, &(struct md_wr){
			.opcode = QHCA_WQE_WRITE, .raddr = p->b.mr.iova,
			.rkey = p->b.mr.key, .num_sge = 1,
			.sge = &(struct md_sge){ p->a.mr.iova, 8, p->a.mr.key },
		});
		transfer(p, QHCA_WQE_WRITE, MESSAGE, i);
		sleep_for(p, 100 * MS);
	}
	CHECK(count_of(&p->a, QHCA_CNT_ack_timeouts) <= 2);
	unwatch(p, &s);
}

/* Without an ACK timer nothing goes again: requests of such a QP are in no bundle. */
static void no_timer(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	p->a.conn.timeout = 0;
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT_EIGHT(p, &s, 2);
	s.limit = TOO_SHORT;
	EXPECT_EIGHT(p, &s, 3);
	EXPECT(&p->a.scq, 0, 0, 0, 0);
	/* Who answers a READ knows nothing of the other's timer. */
	s.limit = SIZE_MAX;
	transfer(p, QHCA_WQE_READ, MESSAGE, 4);
	s.bundles = 0;
	transfer(p, QHCA_WQE_READ, MESSAGE, 5);
	CHECK_EQ(s.bundles, 1);
	unwatch(p, &s);
}

static bool full;

static bool has_room(void *arg)
{
	(void)arg;
	return !full;
}

/* The link of b is full behind each bundle. */
static bool full_behind_a_bundle(struct world *w, unsigned int from, uint8_t *frame,
				 size_t len)
{
	struct seen *s = w->filter_arg;
	unsigned int before = s->bundles;
	bool through = see_frame(w, from, frame, len);

	full |= from == 1 && s->bundles > before;
	return through;
}

/* A READ is asked for again while b has not sent all of its first answer. */
static void read_before_its_answer_ends(struct pair *p)
{
	uint64_t timeouts, until;
	struct seen s;

	watch(p, &s);
	p->a.conn.timeout = 12;
	connect_pair(p);
	transfer(p, QHCA_WQE_READ, MESSAGE, 1);
	transfer(p, QHCA_WQE_READ, MESSAGE, 2);
	CHECK_EQ(s.bundles, 1);
	s.bundles = s.single = 0;
	s.limit = TOO_SHORT;
	full = false;
	p->w.filter = full_behind_a_bundle;
	p->b.md->host.tx_room = has_room;
	post(p, &p->a, QHCA_WQE_READ, 4 * MESSAGE, 0);
	for (unsigned int i = 0; i < 9; i++) {
		timeouts = count_of(&p->a, QHCA_CNT_ack_timeouts);
		until = p->w.now + SECOND / 5;
		while (count_of(&p->a, QHCA_CNT_ack_timeouts) == timeouts &&
		       p->w.now < until)
			world_wait(&p->w, until);
		run_for(p, 20000);
		full = false;
		qhca_tx_ready(p->b.md->host.hca, host_clock(&p->b.md->host));
		run_for(p, 20000);
	}
	settle(p);
	CHECK_EQ(s.bundles, 1);
	EXPECT(&p->a.scq, 0, 0, 0, 0);
	unwatch(p, &s);
}

const struct scenario bundle_reasons_scenarios[] = {
	RC(others_time_out, BUNDLES),
	RC(reads_give_up, BUNDLES),
	RC(pauses_grow_with_seldom_messages, BUNDLES),
	RC(read_of_cold_pages, BUNDLES),
	ON(UC, connections_on_a_slow_link, BUNDLES),
	RC(packets_time_out, BUNDLES),
	RC(short_one_in_front, BUNDLES),
	RC(no_timer, BUNDLES),
	RC(read_before_its_answer_ends, BUNDLES),
	{ 0 }
};
