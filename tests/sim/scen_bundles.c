/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Bundles: packets of a message in one frame, between hosts that have agreed.
 */
#include <string.h>

#include "bundles.h"
#include "wire/icrc.h"

#define BTH		(14 + 20 + 8)	/* IPv4 without a tag */
#define IP		14

/* Each message in as few frames as there can be, once the hosts have agreed. */
static void agreement(struct pair *p)
{
	bool rc = p->type == QHCA_QPT_RC;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	CHECK_EQ(s.single, 8);
	CHECK_EQ(s.bundles, 0);
	for (int kind = PEER_ASK; kind < PEER_KINDS; kind++)
		CHECK_EQ(s.kind[kind], 1);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	CHECK_EQ(s.single, 8);
	CHECK_EQ(s.bundles, 1);
	transfer(p, QHCA_WQE_SEND, MESSAGE - 5, 3);
	CHECK_EQ(s.bundles, 2);
	/* The immediate data would stand before the payload. */
	transfer(p, QHCA_WQE_WRITE_IMM, MESSAGE, 4);
	CHECK_EQ(s.bundles, 3);
	CHECK_EQ(s.single, 9);
	transfer(p, QHCA_WQE_WRITE, MTU, 5);
	CHECK_EQ(s.single, 10);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets), 8 + 8 + 8 + 8 + 1);
	CHECK_EQ(qhca_query_bundles(p->a.md->host.hca).sent, 3);
	CHECK_EQ(qhca_query_bundles(p->b.md->host.hca).received, 3);
	EXPECT(&p->a.scq, 0, 0, 0, 0, 0, 0);
	EXPECT(&p->b.rcq, 0, 0, 0);
	CHECK_EQ(s.asks_of[1], 0);
	if (rc) {
		/* The other host asks for itself, since its answers are long now. */
		transfer(p, QHCA_WQE_READ, MESSAGE, 6);
		CHECK_EQ(s.asks_of[1], 1);
		CHECK_EQ(s.single, 18);
		transfer(p, QHCA_WQE_READ, MESSAGE, 7);
		CHECK_EQ(s.single, 18);
		CHECK_EQ(s.bundles, 4);
		EXPECT(&p->a.scq, 5, 0, 0);
	}
	unwatch(p, &s);
}

/* A bundle of the largest size, and a message longer than that. */
static void longest(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	s.single = 0;
	transfer(p, QHCA_WQE_WRITE, 32768, 2);
	/* 16 KiB are agreed upon. */
	CHECK_EQ(s.bundles, 2);
	CHECK_EQ(s.single, 0);
	EXPECT(&p->a.scq, 0, 0, 0);
	unwatch(p, &s);
}

/* The packets of a bundle are, bit by bit, those which go without. */
static void packets_of_a_bundle(struct pair *p)
{
	struct hca_pkt bundle, pkt;
	uint8_t frame[QHCA_MAX_FRAME];
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.keep = true;
	s.drop = PEER_HEARD;
	fill_at(&p->a, 0, 9, MESSAGE);
	post(p, &p->a, QHCA_WQE_WRITE, MESSAGE - 3, QHCA_WQE_F_SOLICITED);
	settle(p);
	CHECK_EQ(s.num_kept, 8);
	s.drop = 0;
	sleep_for(p, 3000000000ull);
	/* The answer to a new question comes after this message. */
	post(p, &p->a, QHCA_WQE_WRITE, MESSAGE, 0);
	settle(p);
	CHECK_EQ(s.bundles, 0);
	/* A connection with the same PSNs forgets the agreement, so another QP makes it anew. */
	s.num_kept = 8;
	post(p, &p->a, QHCA_WQE_WRITE, MESSAGE - 3, QHCA_WQE_F_SOLICITED);
	settle(p);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(s.num_kept, 9);
	CHECK(hca_pkt_parse(s.kept[8].data + BTH, s.kept[8].len - BTH, &bundle));
	CHECK_EQ(hca_bundle_packets(&bundle), 8);
	for (unsigned int i = 0; i < 8; i++) {
		uint8_t *single = s.kept[i].data;
		size_t len;

		/* All but the PSN, and the ICRC over it. */
		hca_bundle_packet(&bundle, i, 8, &pkt);
		len = hca_bundle_frame(s.kept[8].data, IP, BTH, &pkt, frame);
		CHECK_EQ(len, s.kept[i].len);
		CHECK_EQ(get_le32(frame + len - 4),
			 hca_icrc(frame + IP, 20, len - 4 - BTH));
		memcpy(frame + BTH + 9, single + BTH + 9, 3);
		CHECK(!memcmp(frame, single, len - 4));
	}
	unwatch(p, &s);
}

/* Frames of that size do not come through any more: packets do. */
static void path_narrows(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	s.limit = 1200;
	s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(s.single, 8);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 1);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 3);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 1);
	/* ... and do again. */
	s.limit = SIZE_MAX;
	sleep_for(p, 3000000000ull);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 4);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 5);
	CHECK_EQ(s.bundles, 2);
	EXPECT(&p->a.scq, 0, 0, 0, 0, 0, 0);
	unwatch(p, &s);
}

/*
 * The same for responses, whose sender hears of no loss but by the request that comes again.
 * It answers that with packets, and knows after two seconds.
 */
static void path_narrows_for_responses(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_READ, MESSAGE, 1);
	transfer(p, QHCA_WQE_READ, MESSAGE, 2);
	CHECK_EQ(s.bundles, 1);
	s.limit = 1200;
	transfer(p, QHCA_WQE_READ, MESSAGE, 3);
	CHECK_EQ(s.bundles, 2);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 1);
	sleep_for(p, SECOND);
	transfer(p, QHCA_WQE_READ, MESSAGE, 4);
	CHECK_EQ(s.bundles, 3);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 2);
	sleep_for(p, SECOND);
	transfer(p, QHCA_WQE_READ, MESSAGE, 5);
	CHECK_EQ(s.bundles, 3);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 2);
	EXPECT(&p->a.scq, 0, 0, 0, 0, 0, 0);
	unwatch(p, &s);
}

/* ... and for a sender that never hears of any: two questions later it knows. */
static void path_narrows_in_silence(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	s.limit = 1200;
	for (unsigned int i = 0; i < 30; i++) {
		post(p, &p->a, QHCA_WQE_WRITE, MESSAGE, 0);
		settle(p);
		sleep_for(p, 100000000);
	}
	CHECK(s.bundles >= 10 && s.bundles <= 21);
	s.bundles = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	CHECK_EQ(s.bundles, 0);
	unwatch(p, &s);
}

/* A peer that does not answer is asked more and more seldom. */
static void silence(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.drop = PEER_ASK;
	for (uint8_t i = 0; i < 50; i++) {
		transfer(p, QHCA_WQE_WRITE, MESSAGE, i);
		sleep_for(p, 100000000);
	}
	CHECK_EQ(s.bundles, 0);
	/* At 0, 1 and 3 s of the 5. */
	CHECK_EQ(s.asks_of[0], 3);
	unwatch(p, &s);
}

/* What is agreed ends with the link. */
static void link_flaps(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	qhca_set_link(p->a.md->host.hca, false, p->w.now);
	qhca_set_link(p->a.md->host.hca, true, p->w.now);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	CHECK_EQ(s.bundles, 0);
	CHECK_EQ(s.asks_of[0], 2);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 3);
	CHECK_EQ(s.bundles, 1);
	unwatch(p, &s);
}

/* While the injector works, it has packets to work on, on either side. */
static void injector(struct pair *p)
{
	struct qhca_inject_config cfg = {
		.rule[QHCA_INJECT_DROP] = { .nth = 3 }, .on_rx = true,
		.seed = 1,
	};
	struct seen s;
	char err[80];

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	CHECK(qhca_inject_set(p->b.md->host.hca, &cfg, err, sizeof(err)));
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	/* From the third packet on it comes again, as packets. */
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_inject_dropped), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_nak_seq), 1);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 6);
	cfg.rule[QHCA_INJECT_DROP].nth = 0;
	CHECK(qhca_inject_set(p->b.md->host.hca, &cfg, err, sizeof(err)));
	sleep_for(p, 2000000);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 4);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 5);
	CHECK_EQ(s.bundles, 2);
	cfg.rule[QHCA_INJECT_DROP].nth = 3;
	cfg.on_rx = false;
	cfg.on_tx = true;
	CHECK(qhca_inject_set(p->a.md->host.hca, &cfg, err, sizeof(err)));
	s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 3);
	CHECK_EQ(s.bundles, 2);
	CHECK(s.single >= 7);
	EXPECT(&p->a.scq, 0, 0, 0, 0, 0, 0);
	unwatch(p, &s);
}

const struct scenario bundle_scenarios[] = {
	ON(RC, agreement, BUNDLES),
	ON(UC, agreement, BUNDLES),
	RC(longest, BUNDLES),
	RC(packets_of_a_bundle, BUNDLES),
	RC(path_narrows, BUNDLES),
	RC(path_narrows_for_responses, BUNDLES),
	ON(UC, path_narrows_in_silence, BUNDLES),
	RC(silence, BUNDLES),
	RC(link_flaps, BUNDLES),
	RC(injector, BUNDLES),
	{ 0 }
};
