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
	CHECK_EQ(qhca_query_bundles(p->b.md->host.hca).packets_received,
		 8 + 8 + 8 + 8 + 1);
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

/* A SEND whose last packet alone has SE. */
static void send_solicited(struct pair *p)
{
	post_recv(&p->b, MESSAGE);
	post(p, &p->a, QHCA_WQE_SEND, MESSAGE - 3, QHCA_WQE_F_SOLICITED);
	settle(p);
}

/* A new question is asked, whose answer comes after the next message. */
static void ask_anew(struct pair *p, struct seen *s)
{
	s->drop = 0;
	sleep_for(p, 3000000000ull);
}

/*
 * Packet @i of the @num in a bundle is @single, bit by bit, but for the PSN, the ICRC over it, and
 * the MSN if the packet has one.
 */
static void compare_packet(const struct kept *from, unsigned int i, unsigned int num,
			   const struct kept *single, bool has_msn)
{
	struct hca_pkt bundle, pkt;
	uint8_t frame[QHCA_MAX_BUNDLE_FRAME];
	size_t len;

	CHECK(hca_pkt_parse(from->data + BTH, from->len - BTH, &bundle));
	CHECK_EQ(hca_bundle_packets(&bundle), num);
	hca_bundle_packet(&bundle, i, num, &pkt);
	len = hca_bundle_frame(from->data, IP, BTH, &pkt, frame);
	CHECK_EQ(len, single->len);
	CHECK_EQ(get_le32(frame + len - 4),
		 hca_icrc(frame + IP, 20, len - 4 - BTH));
	memcpy(frame + BTH + 9, single->data + BTH + 9, 3);
	if (has_msn)
		memcpy(frame + BTH + 13, single->data + BTH + 13, 3);
	CHECK(!memcmp(frame, single->data, len - 4));
}

/* The packets of a bundle are those which go without. */
static void packets_of_a_bundle(struct pair *p)
{
	struct hca_pkt bundle;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.keep = true;
	s.drop = PEER_HEARD;
	fill_at(&p->a, 0, 9, MESSAGE);
	send_solicited(p);
	CHECK_EQ(s.num_kept, 8);
	ask_anew(p, &s);
	post(p, &p->a, QHCA_WQE_WRITE, MESSAGE, 0);
	settle(p);
	CHECK_EQ(s.bundles, 0);
	s.num_kept = 8;
	send_solicited(p);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(s.num_kept, 9);
	CHECK(hca_pkt_parse(s.kept[8].data + BTH, s.kept[8].len - BTH, &bundle));
	CHECK(bundle.solicited);
	for (unsigned int i = 0; i < 8; i++)
		compare_packet(&s.kept[8], i, 8, &s.kept[i], false);
	unwatch(p, &s);
}

/*
 * The same for responses, of which the first and the last have an AETH.  The last bundle begins
 * with a Middle, and has the AETH of the Last.
 */
static void packets_of_responses(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.keep = true;
	s.drop = PEER_HEARD;
	fill_at(&p->a, 32768, 9, 24 * MTU);
	post(p, &p->b, QHCA_WQE_READ, 24 * MTU, 0);
	settle(p);
	CHECK_EQ(s.num_kept, 24);
	ask_anew(p, &s);
	post(p, &p->b, QHCA_WQE_READ, MESSAGE, 0);
	settle(p);
	CHECK_EQ(s.bundles, 0);
	s.num_kept = 24;
	post(p, &p->b, QHCA_WQE_READ, 24 * MTU, 0);
	settle(p);
	CHECK_EQ(s.bundles, 2);
	CHECK_EQ(s.num_kept, 26);
	for (unsigned int i = 0; i < 24; i++)
		compare_packet(&s.kept[24 + i / 16], i % 16, i < 16 ? 16 : 8,
			       &s.kept[i], i == 0 || i == 23);
	EXPECT(&p->b.scq, 0, 0, 0, 0);
	unwatch(p, &s);
}

/* With the smallest packets a bundle ends at 32 of them, though more octets are agreed upon. */
static void smallest_packets(struct pair *p)
{
	const uint32_t most = HCA_BUNDLE_PACKETS * 256;
	struct seen s;

	CHECK_EQ(HCA_BUNDLE_PACKETS, 32);
	p->a.conn.mtu = p->b.conn.mtu = QHCA_MTU_256;
	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, 4 * 256, 1);
	s.single = 0;
	s.longest = 0;
	s.keep = true;
	transfer(p, QHCA_WQE_WRITE, 2 * most, 2);
	CHECK_EQ(s.bundles, 2);
	CHECK_EQ(s.single, 0);
	/* The first one has an RETH. */
	CHECK_EQ(s.num_kept, 2);
	CHECK_EQ(s.kept[0].len, BTH + 12 + 16 + most + 4);
	CHECK_EQ(s.kept[1].len, BTH + 12 + most + 4);
	CHECK_EQ(s.longest, s.kept[0].len);
	EXPECT(&p->a.scq, 0, 0, 0);
	unwatch(p, &s);
}

/* PSNs have 24 bits: 0 comes behind the third packet of the bundle. */
static void psns_wrap(struct pair *p)
{
	uint32_t first = 0x1000000 - 8 - 3;
	struct hca_pkt bundle;
	struct seen s;

	p->a.conn.sq_psn = p->b.conn.rq_psn = first;
	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	s.single = 0;
	s.keep = true;
	transfer(p, QHCA_WQE_SEND, MESSAGE, 2);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(s.single, 0);
	CHECK_EQ(s.num_kept, 1);
	CHECK(hca_pkt_parse(s.kept[0].data + BTH, s.kept[0].len - BTH, &bundle));
	CHECK_EQ(bundle.psn, 0xfffffd);
	EXPECT(&p->b.rcq, 0, 0);
	EXPECT(&p->a.scq, 0, 0, 0);
	unwatch(p, &s);
}

/* The same for responses, whose PSNs are those of the request. */
static void psns_of_responses_wrap(struct pair *p)
{
	struct seen s;

	p->a.conn.sq_psn = p->b.conn.rq_psn = 0x1000000 - 8 - 3;
	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_READ, MESSAGE, 1);
	s.single = 0;
	transfer(p, QHCA_WQE_READ, MESSAGE, 2);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(s.single, 0);
	EXPECT(&p->a.scq, 0, 0, 0);
	unwatch(p, &s);
}

static bool asks_for_ack(const struct kept *frame)
{
	struct hca_pkt pkt;

	CHECK(hca_pkt_parse(frame->data + BTH, frame->len - BTH, &pkt));
	return pkt.ack_req;
}

/*
 * The device asks for an acknowledgement in each 32nd packet.  Here that is in the middle of a
 * bundle, since a short message that does not ask precedes the long one: so the bundle asks.
 */
static void question_in_the_middle(struct pair *p)
{
	struct md_sge sge = { p->a.mr.iova, 4 * MTU, p->a.mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .num_sge = 1, .sge = &sge,
		.raddr = p->b.mr.iova, .rkey = p->b.mr.key,
	};
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT(&p->a.scq, 0, 0);
	s.keep = true;
	fill_at(&p->a, 0, 2, 36 * MTU);
	post_wr(&p->a, &wr);
	sge.len = 36 * MTU;
	wr.flags = QHCA_WQE_F_SIGNALED;
	post_wr(&p->a, &wr);
	settle(p);
	CHECK(holds(&p->b, 0, 2, 36 * MTU));
	/* Packets 1 to 4, 5 to 20, 21 to 36 and 37 to 40. */
	CHECK_EQ(s.bundles, 4);
	CHECK_EQ(s.num_kept, 4);
	CHECK(!asks_for_ack(&s.kept[0]));
	CHECK(!asks_for_ack(&s.kept[1]));
	CHECK(asks_for_ack(&s.kept[2]));
	CHECK(asks_for_ack(&s.kept[3]));
	EXPECT(&p->a.scq, 2, 0);
	unwatch(p, &s);
}

/* The link has been asked for the room that the bundle needs, and for no more. */
static bool see_room(struct world *w, unsigned int from, uint8_t *frame, size_t len)
{
	const struct seen *s = w->filter_arg;
	unsigned int before = s->bundles;
	bool through = see_frame(w, from, frame, len);

	if (s->bundles > before)
		CHECK_EQ(w->host[from]->host.reserved, len);
	return through;
}

/*
 * A call of the engine is for fewer packets than a bundle has, and ends a turn in its middle.
 * The packets that are left go with it.
 */
static void whole_beyond_the_budget(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	p->w.filter = see_room;
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	transfer(p, QHCA_WQE_READ, MESSAGE, 2);
	for (unsigned int budget = 1; budget <= 9; budget++) {
		s.bundles = s.single = 0;
		p->w.budget = budget;
		transfer(p, QHCA_WQE_WRITE, MESSAGE, 3);
		transfer(p, QHCA_WQE_SEND, MESSAGE, 4);
		transfer(p, QHCA_WQE_READ, MESSAGE, 5);
		CHECK_EQ(s.bundles, 3);
		CHECK_EQ(s.single, 0);
		/* Sixteen packets are agreed upon. */
		transfer(p, QHCA_WQE_READ, 24 * MTU, 6);
		CHECK_EQ(s.bundles, 5);
		CHECK_EQ(s.single, 0);
		discard_completions(&p->a.scq);
		discard_completions(&p->b.rcq);
	}
	unwatch(p, &s);
}

/*
 * Answers to READs take no more than their share of a turn, even if one bundle of them is as long
 * as the turn: requests of the same QP go meanwhile.
 */
static void reads_leave_room(struct pair *p)
{
	struct md_sge sge = { p->b.mr.iova, PAIR_LEN, p->b.mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_READ, .flags = QHCA_WQE_F_SIGNALED,
		.num_sge = 1, .sge = &sge, .raddr = p->a.mr.iova,
		.rkey = p->a.mr.key,
	};
	struct qhca_cqe cqe;
	struct seen s;

	p->b.conn.max_rd_atomic = p->a.conn.max_dest_rd_atomic = 16;
	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	discard_completions(&p->a.scq);
	for (unsigned int budget = 1; budget <= 64; budget *= 2) {
		unsigned int reads = 0;

		p->w.budget = budget;
		for (unsigned int i = 0; i < 16; i++)
			post_wr(&p->b, &wr);
		s.bundles = 0;
		while (!s.bundles && check_ok())
			world_step(&p->w, p->w.now + 1000);
		post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
		while (!md_poll(&p->a.scq, &cqe) && check_ok()) {
			world_step(&p->w, p->w.now + 1000);
			reads += md_poll(&p->b.scq, &cqe);
			CHECK(reads < 8);
		}
		CHECK(!cqe.status);
		settle(p);
		discard_completions(&p->b.scq);
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
	RC(packets_of_responses, BUNDLES),
	RC(smallest_packets, BUNDLES),
	RC(psns_wrap, BUNDLES),
	ON(UC, psns_wrap, BUNDLES),
	RC(psns_of_responses_wrap, BUNDLES),
	RC(question_in_the_middle, BUNDLES),
	RC(whole_beyond_the_budget, BUNDLES),
	RC(reads_leave_room, .max_bundle = 32768),
	RC(path_narrows, BUNDLES),
	RC(path_narrows_for_responses, BUNDLES),
	ON(UC, path_narrows_in_silence, BUNDLES),
	RC(silence, BUNDLES),
	RC(link_flaps, BUNDLES),
	RC(injector, BUNDLES),
	{ 0 }
};
