/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bundles: when an agreement ends, and when the device asks anew.
 */
#include <string.h>

#include "bundles.h"

static void expect_sent_as(struct pair *p, struct seen *s, uint8_t mark, bool bundle)
{
	s->bundles = s->single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, mark);
	CHECK_EQ(s->bundles, bundle);
	CHECK_EQ(s->single, bundle ? 0 : 8);
}

/* A NAK says that a bundle is lost: it comes again as packets, and no timer fires. */
static void lost_with_a_nak(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	s.limit = TOO_SHORT;
	s.bundles = s.single = 0;
	begin_write(p, MESSAGE, 2);
	post(p, &p->a, QHCA_WQE_WRITE, 64, 0);
	settle(p);
	CHECK(has_arrived(p, MESSAGE, 2));
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_nak_seq), 1);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
	EXPECT(&p->a.scq, 0, 0, 0, 0);
	unwatch(p, &s);
}

/* After each loss the device waits longer, until an agreement has held. */
static void pauses_grow(struct pair *p)
{
	uint64_t pause = PAUSE;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	for (uint8_t i = 0; i < 6; i++, pause *= 2) {
		unsigned int asks = s.asks_of[0];

		s.limit = TOO_SHORT;
		begin_write(p, MESSAGE, 2);
		post(p, &p->a, QHCA_WQE_WRITE, 64, 0);
		settle(p);
		s.limit = SIZE_MAX;
		CHECK_EQ(s.asks_of[0], asks);
		sleep_for(p, pause / 2);
		expect_sent_as(p, &s, 3, false);
		CHECK_EQ(s.asks_of[0], asks);
		sleep_for(p, pause);
		expect_sent_as(p, &s, 4, false);
		CHECK_EQ(s.asks_of[0], asks + 1);
		expect_sent_as(p, &s, 5, true);
	}
	/* It is renewed, and then as good as new. */
	sleep_for(p, SECOND);
	expect_sent_as(p, &s, 6, true);
	sleep_for(p, SECOND);
	expect_sent_as(p, &s, 7, true);
	s.limit = TOO_SHORT;
	begin_write(p, MESSAGE, 8);
	post(p, &p->a, QHCA_WQE_WRITE, 64, 0);
	settle(p);
	s.limit = SIZE_MAX;
	sleep_for(p, 2 * PAUSE);
	expect_sent_as(p, &s, 9, false);
	expect_sent_as(p, &s, 10, true);
	unwatch(p, &s);
}

/* What is not used ends, and what is used goes on without a packet in between. */
static void agreements_end(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	for (uint8_t i = 0; i < 50; i++) {
		sleep_for(p, SECOND / 5);
		expect_sent_as(p, &s, i, true);
	}
	/* Each half second, with the next message. */
	CHECK(s.asks_of[0] >= 15 && s.asks_of[0] <= 20);
	sleep_for(p, 3600 * SECOND);
	expect_sent_as(p, &s, 60, false);
	expect_sent_as(p, &s, 61, true);
	unwatch(p, &s);
}

/* Once an adapter has not got the GID any more, it is software's, which takes packets alone. */
static void gid_leaves(struct pair *p)
{
	struct qhca_gid_entry none = { 0 };
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	CHECK_EQ(s.kind[PEER_HEARD], 1);
	sleep_for(p, 3 * SECOND);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_SET_GID, 0, 0, &none, sizeof(none),
			NULL, 0, NULL), 0);
	memset(s.kind, 0, sizeof(s.kind));
	s.bundles = 0;
	begin_write(p, MESSAGE, 2);
	for (unsigned int i = 0; i < 100; i++)
		world_step(&p->w, p->w.now + SECOND / 100);
	CHECK_EQ(s.kind[PEER_ASK], 1);
	CHECK_EQ(s.kind[PEER_OFFER], 0);
	CHECK_EQ(s.bundles, 0);
	unwatch(p, &s);
}

/* The host has read its clock for the next call before that for HEARD, which it makes first. */
static void clock_goes_back(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.drop = PEER_HEARD;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	qhca_rx_frame(p->a.md->host.hca, s.last[PEER_HEARD].data,
		      s.last[PEER_HEARD].len,
		      host_clock(&p->a.md->host) + SECOND);
	expect_sent_as(p, &s, 2, true);
	unwatch(p, &s);
}

/* A storm of connections asks once. */
static void connections_follow(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	for (unsigned int i = 0; i < 20; i++) {
		reconnect_pair(p, 100 + i);
		expect_sent_as(p, &s, (uint8_t)i, true);
	}
	CHECK_EQ(s.asks_of[0], 1);
	sleep_for(p, SECOND / 5);
	reconnect_pair(p, 99);
	expect_sent_as(p, &s, 30, false);
	CHECK_EQ(s.asks_of[0], 2);
	expect_sent_as(p, &s, 31, true);
	unwatch(p, &s);
}

/* The link of either end is full while they agree, again and again. */
static bool block_for_all(struct world *w, unsigned int from, uint8_t *frame,
			  size_t len)
{
	w->blocked[from] = true;
	return see_frame(w, from, frame, len);
}

static void full_links(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	p->w.filter = block_for_all;
	for (uint8_t i = 0; i < 40; i++) {
		post(p, &p->b, QHCA_WQE_WRITE, 4 * MTU, 0);
		transfer(p, QHCA_WQE_WRITE, 32768, i);
		sleep_for(p, SECOND / 10);
	}
	/* After the first message, two for each, and one of b's. */
	CHECK(s.bundles >= 100);
	CHECK(s.single <= 60);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_ack_timeouts), 0);
	unwatch(p, &s);
}

const struct scenario bundle_doubt_scenarios[] = {
	RC(lost_with_a_nak, BUNDLES),
	RC(pauses_grow, BUNDLES),
	RC(agreements_end, BUNDLES),
	RC(gid_leaves, BUNDLES),
	RC(clock_goes_back, BUNDLES),
	RC(connections_follow, BUNDLES),
	RC(full_links, BUNDLES),
	{ 0 }
};
