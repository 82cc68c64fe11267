/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bundles: when a peer is asked again, and what late or other answers are worth.
 */
#include <string.h>

#include "bundles.h"

/* All completions of a until now were good. */
static void all_good(struct pair *p)
{
	struct qhca_cqe cqe;

	while (md_poll(&p->a.scq, &cqe))
		CHECK_EQ(cqe.status, 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_malformed), 0);
}

/* Messages of several packets for @ns, each @every. */
static void write_for(struct pair *p, uint64_t ns, uint64_t every)
{
	for (uint64_t t = 0; t < ns; t += every) {
		transfer(p, QHCA_WQE_WRITE, MESSAGE, (uint8_t)(t / every));
		all_good(p);
		sleep_for(p, every);
	}
}

/* A question that is to renew an agreement waits a second for its answer. */
static void one_question_at_a_time(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	CHECK_EQ(s.asks_of[0], 1);
	s.drop = PEER_ASK;
	s.bundles = s.single = 0;
	/* At 0.5 and 1.5 s; the agreement holds for two. */
	write_for(p, 1900000000ull, 100000000);
	CHECK_EQ(s.asks_of[0], 3);
	CHECK_EQ(s.bundles, 19);
	CHECK_EQ(s.single, 0);
	all_good(p);
	unwatch(p, &s);
}

/* What takes less than before is another device: packets, until a PROBE has come through. */
static void smaller_offer(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT_A_BUNDLE(p, &s, 2);
	p->b.md->host.made[0]->max_bundle = 4096;
	world_migrate(&p->w, &p->b.md->host, 0);
	sleep_for(p, SECOND * 6 / 10);
	s.drop = PEER_HEARD;
	/* The answer is on its way when this message is sent. */
	EXPECT_A_BUNDLE(p, &s, 3);
	CHECK_EQ(s.kind[PEER_OFFER], 2);
	CHECK_EQ(get_be32(s.last[PEER_OFFER].data + 14 + PEER_SIZE), 4096);
	EXPECT_EIGHT(p, &s, 4);
	CHECK_EQ(s.kind[PEER_PROBE], 2);
	s.drop = 0;
	sleep_for(p, 2 * SECOND);
	EXPECT_EIGHT(p, &s, 5);
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 6);
	CHECK_EQ(s.bundles, 2);
	CHECK_EQ(s.single, 0);
	all_good(p);
	unwatch(p, &s);
}

/* An answer to a question from before a loss says nothing about the path behind it. */
static void late_offer(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT_A_BUNDLE(p, &s, 2);
	sleep_for(p, SECOND * 6 / 10);
	s.drop = PEER_OFFER;
	s.limit = 1200;
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 3);
	CHECK_EQ(s.asks_of[0], 2);
	CHECK_EQ(s.kind[PEER_OFFER], 2);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(s.single, 8);
	s.limit = SIZE_MAX;
	qhca_rx_frame(p->a.md->host.hca, s.last[PEER_OFFER].data,
		      s.last[PEER_OFFER].len, host_clock(&p->a.md->host));
	settle(p);
	CHECK_EQ(s.kind[PEER_PROBE], 1);
	EXPECT_EIGHT(p, &s, 4);
	all_good(p);
	unwatch(p, &s);
}

/* The pauses after losses double up to 4.096 s. */
static void longest_pause(struct pair *p)
{
	uint64_t pause = PAUSE;
	unsigned int asks;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	/* Thirteen losses, after the last of which it is the longest one. */
	for (unsigned int i = 0; i < 13; i++) {
		lose_a_bundle(p, &s);
		asks = s.asks_of[0];
		sleep_for(p, pause);
		EXPECT_EIGHT(p, &s, 3);
		CHECK_EQ(s.asks_of[0], asks + 1);
		pause *= 2;
	}
	lose_a_bundle(p, &s);
	asks = s.asks_of[0];
	sleep_for(p, 4 * SECOND);
	EXPECT_EIGHT(p, &s, 4);
	CHECK_EQ(s.asks_of[0], asks);
	sleep_for(p, SECOND / 10);
	EXPECT_EIGHT(p, &s, 5);
	CHECK_EQ(s.asks_of[0], asks + 1);
	EXPECT_A_BUNDLE(p, &s, 6);
	all_good(p);
	unwatch(p, &s);
}

/* Who is silent is asked after 1, 2, 4 ... 64 s, and then each 64 s. */
static void longest_silence(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.drop = PEER_ASK;
	/* At 0, 1, 3, 7, 15, 31, 63 and 127 s. */
	write_for(p, 128 * SECOND, SECOND);
	CHECK_EQ(s.asks_of[0], 8);
	write_for(p, 62 * SECOND, SECOND);
	CHECK_EQ(s.asks_of[0], 8);
	/* At 191 and 255 s. */
	write_for(p, 68 * SECOND, SECOND);
	CHECK_EQ(s.asks_of[0], 10);
	all_good(p);
	unwatch(p, &s);
}

static void reconnect(struct pair *p, uint32_t psn)
{
	all_good(p);
	reconnect_pair(p, psn);
}

/* Who has never answered is asked no more often because QPs connect. */
static void never_answered(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.drop = PEER_ASK;
	/* At 0, 1 and 3 s. */
	write_for(p, 5 * SECOND, SECOND / 2);
	CHECK_EQ(s.asks_of[0], 3);
	for (uint32_t i = 0; i < 5; i++) {
		reconnect(p, 100 * i);
		transfer(p, QHCA_WQE_WRITE, MESSAGE, (uint8_t)i);
		sleep_for(p, SECOND / 5);
	}
	CHECK_EQ(s.asks_of[0], 3);
	sleep_for(p, SECOND);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 6);
	CHECK_EQ(s.asks_of[0], 4);
	all_good(p);
	unwatch(p, &s);
}

/* Who has answered once is asked as a new one when a QP connects, however silent it was. */
static void answered_once(struct pair *p)
{
	unsigned int asks;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT_A_BUNDLE(p, &s, 2);
	s.drop = PEER_ASK;
	/* The agreement ends after 2 s; from then on the intervals grow. */
	write_for(p, 12 * SECOND, SECOND / 2);
	asks = s.asks_of[0];
	reconnect(p, 100);
	/* At once, after 1 s and after 3 s. */
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 3);
	CHECK_EQ(s.asks_of[0], asks + 1);
	sleep_for(p, SECOND);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 4);
	CHECK_EQ(s.asks_of[0], asks + 2);
	sleep_for(p, SECOND);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 5);
	CHECK_EQ(s.asks_of[0], asks + 2);
	sleep_for(p, SECOND);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 6);
	CHECK_EQ(s.asks_of[0], asks + 3);
	all_good(p);
	unwatch(p, &s);
}

/*
 * No command gives a connected QP the address of a group, but contexts are in memory of
 * software: groups are not asked.
 */
static void context_with_a_group(struct pair *p)
{
	const struct pair_options o = { .type = QHCA_QPT_RC };
	struct md *md = p->a.md;
	struct qhca_qpc *context;
	struct end near, far;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	context = md_ptr(md, md->table[QHCA_TABLE_QP] +
			     sizeof(*context) * p->a.qp.qpn);
	/* The device has a place for one context, which another QP takes now. */
	open_second(p, &near, &far, &o);
	post(p, &near, QHCA_WQE_WRITE, 0, 0);
	settle(p);
	EXPECT(&near.scq, 0, 0);
	CHECK(!memcmp(context->sw.av.dmac, p->b.md->mac, 6));
	context->sw.av.dmac[0] |= 1;
	post(p, &p->a, QHCA_WQE_WRITE, MESSAGE, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_RETRY_EXC_ERR);
	CHECK_EQ(s.single, 4 * 8);
	CHECK_EQ(s.asks_of[0], 0);
	close_second(&near, &far);
	unwatch(p, &s);
}

/* After a loss and a long silence, a QP that connects asks all the same. */
static void silent_after_a_loss(struct pair *p)
{
	unsigned int asks;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT_A_BUNDLE(p, &s, 2);
	lose_a_bundle(p, &s);
	s.drop = PEER_ASK;
	sleep_for(p, 2 * MS);
	/* At 0, 1, 3, 7, 15, 31, 63 s. */
	write_for(p, 40 * SECOND, SECOND / 2);
	s.drop = 0;
	asks = s.asks_of[0];
	reconnect_pair(p, 100);
	EXPECT_EIGHT(p, &s, 3);
	CHECK_EQ(s.asks_of[0], asks + 1);
	EXPECT_A_BUNDLE(p, &s, 4);
	unwatch(p, &s);
}

/* A pause after a loss goes on, however often QPs connect. */
static void pause_outlasts_connections(struct pair *p)
{
	unsigned int asks;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	for (unsigned int i = 0; i < 10; i++) {
		EXPECT_A_BUNDLE(p, &s, 2);
		lose_a_bundle(p, &s);
		sleep_for(p, PAUSE << i);
		EXPECT_EIGHT(p, &s, 1);
	}
	EXPECT_A_BUNDLE(p, &s, 2);
	lose_a_bundle(p, &s);
	asks = s.asks_of[0];
	for (uint8_t i = 0; i < 4; i++) {
		sleep_for(p, 200 * MS);
		all_good(p);
		reconnect_pair(p, 100u * i);
		EXPECT_EIGHT(p, &s, i);
	}
	CHECK_EQ(s.asks_of[0], asks);
	unwatch(p, &s);
}

/*
 * A QP connects @behind a question that will have no answer.  The peer may be back: the
 * next question goes a second after it, although the silence was long.
 */
static void connects_behind_a_question(struct pair *p, uint64_t behind)
{
	unsigned int last, asks;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT_A_BUNDLE(p, &s, 2);
	s.drop = PEER_ASK;
	last = s.asks_of[0] + 9;
	for (unsigned int i = 0; i < 4000; i++) {
		transfer(p, QHCA_WQE_WRITE, MESSAGE, (uint8_t)i);
		all_good(p);
		if (s.asks_of[0] == last)
			break;
		sleep_for(p, SECOND / 4);
	}
	CHECK_EQ(s.asks_of[0], last);
	s.drop = 0;
	sleep_for(p, behind);
	asks = s.asks_of[0];
	reconnect_pair(p, 100);
	EXPECT_EIGHT(p, &s, 3);
	all_good(p);
	sleep_for(p, 1100 * MS);
	EXPECT_EIGHT(p, &s, 4);
	CHECK_EQ(s.asks_of[0], asks + 1);
	EXPECT_A_BUNDLE(p, &s, 5);
	unwatch(p, &s);
}

static void connects_soon_behind(struct pair *p)
{
	connects_behind_a_question(p, 50 * MS);
}

static void connects_late_behind(struct pair *p)
{
	connects_behind_a_question(p, 500 * MS);
}

/* An OFFER that comes when the agreement is over makes none: there is a PROBE first. */
static void offer_after_the_end(struct pair *p)
{
	unsigned int probes;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT_A_BUNDLE(p, &s, 2);
	sleep_for(p, 600 * MS);
	s.drop = PEER_OFFER;
	EXPECT_A_BUNDLE(p, &s, 3);
	s.drop = 0;
	probes = s.kind[PEER_PROBE];
	sleep_for(p, 60 * SECOND);
	s.limit = TOO_SHORT;
	qhca_rx_frame(p->a.md->host.hca, s.last[PEER_OFFER].data,
		      s.last[PEER_OFFER].len, host_clock(&p->a.md->host));
	settle(p);
	CHECK_EQ(s.kind[PEER_PROBE], probes + 1);
	EXPECT_EIGHT(p, &s, 4);
	unwatch(p, &s);
}

/* Whoever was stopped does not know what has become of the path meanwhile. */
static void stopped_for_an_hour(struct pair *p)
{
	struct qhca_hca *hca;
	char err[80];
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	hca = p->a.md->host.hca;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT_A_BUNDLE(p, &s, 2);
	CHECK(qhca_freeze(hca, host_clock(&p->a.md->host), err, sizeof(err)));
	sleep_for(p, 3600 * SECOND);
	qhca_thaw(hca, host_clock(&p->a.md->host));
	EXPECT_EIGHT(p, &s, 3);
	EXPECT_A_BUNDLE(p, &s, 4);
	unwatch(p, &s);
}

const struct scenario bundle_question_scenarios[] = {
	RC(one_question_at_a_time, BUNDLES),
	RC(smaller_offer, BUNDLES),
	RC(late_offer, BUNDLES),
	RC(longest_pause, BUNDLES),
	RC(longest_silence, BUNDLES),
	RC(never_answered, BUNDLES),
	RC(answered_once, BUNDLES),
	RC(context_with_a_group, BUNDLES),
	RC(silent_after_a_loss, BUNDLES),
	RC(pause_outlasts_connections, BUNDLES),
	RC(connects_soon_behind, BUNDLES),
	RC(connects_late_behind, BUNDLES),
	RC(offer_after_the_end, BUNDLES),
	RC(stopped_for_an_hour, BUNDLES),
	{ 0 }
};
