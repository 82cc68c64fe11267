/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * With whom bundles are agreed upon: hosts that move, frames of impostors, more peers than
 * a function has places for, and functions of one adapter.
 */
#include <string.h>

#include "bundles.h"

#define SKEW		123456789ull
#define LONG_MESSAGE	32768u		/* two bundles of the size agreed upon */

static uint64_t sum_of(const struct pair *p, enum qhca_counter id)
{
	return count_of(&p->a, id) + count_of(&p->b, id);
}

/* ---- hosts that move */

/* The host of @e goes on in an adapter that takes @max_bundle. */
static void move_to(struct pair *p, struct end *e, uint32_t max_bundle)
{
	e->md->host.made[0]->max_bundle = max_bundle;
	world_migrate(&p->w, &e->md->host, SKEW);
}

static void expect_good(struct pair *p, uint32_t *next)
{
	EXPECT(&p->a.scq, (*next)++, 0);
}

/* Frames with a payload that a message of MESSAGE has for a peer that takes @size. */
static void expect_frames(const struct seen *s, uint32_t size)
{
	unsigned int whole = size / MTU;

	CHECK_EQ(s->bundles, whole > 1 ? (8 + whole - 1) / whole : 0);
	CHECK_EQ(s->single, whole > 1 ? 0 : 8);
}

/* From now on; a frame with one packet is as long as ever. */
static void count_anew(struct seen *s)
{
	s->bundles = s->single = 0;
	s->longest = 0;
}

static size_t longest_for(uint32_t size)
{
	return (size > MTU ? size : MTU) + PEER_OVERHEAD;
}

/* The sender moves in the middle of a message; what it sends then fits its new adapter. */
static void sender_moves(struct pair *p)
{
	static const uint32_t to[] = { 4096, 0, 512, 16384, 8192 };
	uint32_t next = 0;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	expect_good(p, &next);
	for (unsigned int i = 0; i < sizeof(to) / sizeof(*to); i++) {
		unsigned int asks = s.asks_of[0];

		/* Sixteen packets of the message are still to be sent. */
		p->w.budget = 16;
		count_anew(&s);
		begin_write(p, LONG_MESSAGE, (uint8_t)(i + 2));
		while (!s.bundles && !s.single && world_step(&p->w, p->w.now + 1))
			;
		CHECK(s.bundles + s.single <= 16);
		move_to(p, &p->a, to[i]);
		p->w.budget = 64;
		count_anew(&s);
		settle(p);
		expect_good(p, &next);
		CHECK(has_arrived(p, LONG_MESSAGE, (uint8_t)(i + 2)));
		/* It knows nothing of what was agreed upon. */
		CHECK_EQ(s.bundles, 0);
		CHECK(s.single >= 16);
		CHECK_EQ(s.asks_of[0] - asks, to[i] >= 2 * MTU);
		s.bundles = s.single = 0;
		transfer(p, QHCA_WQE_WRITE, MESSAGE, (uint8_t)(i + 20));
		expect_good(p, &next);
		expect_frames(&s, to[i]);
		CHECK(s.longest <= longest_for(to[i]));
	}
	CHECK_EQ(sum_of(p, QHCA_CNT_ack_timeouts), 0);
	CHECK_EQ(sum_of(p, QHCA_CNT_retransmitted_packets), 0);
	CHECK_EQ(sum_of(p, QHCA_CNT_rx_dropped), 0);
	unwatch(p, &s);
}

/*
 * The receiver moves while @bundles of a long message are under way, of which the new
 * adapter takes all or, since they are too long for it, none.
 */
static void receiver_moves_to(struct pair *p, struct seen *s, uint32_t len,
			      uint32_t to, unsigned int bundles, bool lost)
{
	uint64_t dropped = count_of(&p->b, QHCA_CNT_rx_dropped);
	uint64_t timeouts = count_of(&p->a, QHCA_CNT_ack_timeouts);
	uint32_t next = p->a.qp.sq_pi;

	count_anew(s);
	begin_write(p, len, (uint8_t)(next + 9));
	until_bundles(p, s, bundles);
	move_to(p, &p->b, to);
	settle(p);
	expect_good(p, &next);
	CHECK(has_arrived(p, len, (uint8_t)(next + 8)));
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_dropped) - dropped,
		 lost ? bundles : 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts) - timeouts, lost);
	CHECK_EQ(s->bundles, bundles);
	CHECK_EQ(s->single, lost ? len / MTU : 0);
}

/*
 * The receiver moves to an adapter that takes less: what the sender, who does not know of
 * that, still sends too long is lost and comes again as packets.
 */
static void receiver_moves(struct pair *p)
{
	uint32_t next;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT(&p->a.scq, 0, 0);
	receiver_moves_to(p, &s, 2 * 16384, 10240, 2, true);
	next = p->a.qp.sq_pi;
	sleep_for(p, 2 * PAUSE);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 3);
	expect_good(p, &next);
	count_anew(&s);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	expect_good(p, &next);
	expect_frames(&s, 10240);
	CHECK(s.longest <= longest_for(10240));
	/* Any adapter takes a frame of 9216 bytes, but not these. */
	receiver_moves_to(p, &s, 3 * 10240, 0, 3, true);
	next = p->a.qp.sq_pi;
	for (unsigned int i = 0; i < 6; i++) {
		sleep_for(p, SECOND);
		count_anew(&s);
		transfer(p, QHCA_WQE_WRITE, MESSAGE, (uint8_t)(3 + i));
		expect_good(p, &next);
		expect_frames(&s, 0);
		CHECK(s.longest <= longest_for(0));
	}
	/* It is asked at most 4 s after the last time. */
	move_to(p, &p->b, 4096);
	sleep_for(p, 4 * SECOND);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 10);
	count_anew(&s);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 11);
	expect_frames(&s, 4096);
	EXPECT(&p->a.scq, next, 0, 0);
	/* These fit, and whoever takes no bundles understands one nevertheless. */
	receiver_moves_to(p, &s, 8 * 4096, 0, 8, false);
	CHECK(qhca_query_bundles(p->b.md->host.hca).received >= 8);
	next = p->a.qp.sq_pi;
	/* The first question after that is not answered, and then it is time. */
	sleep_for(p, 2 * SECOND);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 12);
	sleep_for(p, 2 * SECOND);
	count_anew(&s);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 13);
	expect_frames(&s, 0);
	EXPECT(&p->a.scq, next, 0, 0);
	unwatch(p, &s);
}

/* Both move while READ responses are under way. */
static void responder_moves(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_READ, MESSAGE, 1);
	count_anew(&s);
	fill_at(&p->b, 32768, 2, 32768);
	post(p, &p->a, QHCA_WQE_READ, 32768, 0);
	until_bundles(p, &s, 2);
	move_to(p, &p->b, 4096);
	s.longest = 0;
	move_to(p, &p->a, 0);
	settle(p);
	/*
	 * The bundles on their way were too long for the new adapter, which asks again as
	 * soon as it is there.
	 */
	EXPECT(&p->a.scq, 0, 0, 0);
	CHECK(holds(&p->a, 0, 2, 32768));
	CHECK(s.longest <= longest_for(4096));
	CHECK_EQ(s.kind[PEER_OFFER], 1);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_rx_dropped), 2);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 1);
	unwatch(p, &s);
}

/* ---- impostors */

/* A frame for @to with a message of the peers, in which nothing is right but its form. */
struct forged {
	uint8_t dst, src[6];
	int tag;			/* -1: none */
	uint8_t kind;
	uint32_t size, token;
	uint8_t gid[16];
	size_t len;			/* 0: the shortest */
};

static void send_forged(struct end *to, const struct forged *f)
{
	static uint8_t frame[QHCA_MAX_BUNDLE_FRAME];
	size_t at = f->tag < 0 ? 12 : 16;

	memset(frame, 0, sizeof(frame));
	memcpy(frame, to->md->mac, 6);
	memcpy(frame + 6, f->src, 6);
	if (f->tag >= 0) {
		put_be16(frame + 12, 0x8100);
		put_be16(frame + 14, (uint16_t)f->tag);
	}
	put_be16(frame + at, PEER_TYPE);
	memcpy(frame + at + 2, "qhca", 4);
	frame[at + 2 + 4] = 1;
	frame[at + 2 + PEER_KIND] = f->kind;
	put_be32(frame + at + 2 + PEER_SIZE, f->size);
	put_be32(frame + at + 2 + PEER_TOKEN, f->token);
	memcpy(frame + at + 2 + PEER_GID, f->gid, 16);
	qhca_rx_frame(to->md->host.hca, frame, f->len ? f->len : 64,
		      to->md->host.now);
}

static uint32_t token_of(const struct kept *frame)
{
	return get_be32(frame->data + 14 + PEER_TOKEN);
}

/* What b would say to a about a's question. */
static struct forged as_b(struct pair *p, const struct seen *s, uint8_t kind)
{
	struct forged f = {
		.tag = -1, .kind = kind, .size = 16384,
		.token = token_of(&s->last[PEER_ASK]),
	};

	memcpy(f.src, p->b.md->mac, 6);
	memcpy(f.gid, s->last[PEER_ASK].data + 14 + PEER_GID, 16);
	return f;
}

/* The agreement that a has not got: each message goes packet by packet. */
static void expect_none_agreed(struct pair *p, struct seen *s, uint8_t mark)
{
	s->bundles = s->single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, mark);
	expect_frames(s, 0);
}

/* The wire loses what b says, and somebody else says something instead. */
static void forged_offers(struct pair *p)
{
	struct forged good, f;
	unsigned int asked;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.drop = PEER_OFFER;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	asked = s.kind[PEER_ASK];
	CHECK_EQ(asked, 1);
	good = as_b(p, &s, PEER_OFFER);
#define WITHOUT_PROBE(change) do {					\
	f = good;							\
	change;								\
	send_forged(&p->a, &f);						\
	settle(p);							\
	CHECK_EQ(s.kind[PEER_PROBE], 0);				\
} while (0)
	WITHOUT_PROBE(f.token++);
	WITHOUT_PROBE(f.token = 0);
	WITHOUT_PROBE(f.src[5]++);
	WITHOUT_PROBE(memset(f.src, 0, 6));
	WITHOUT_PROBE((memset(f.src, 0, 6), f.token = 0));
	WITHOUT_PROBE((memset(f.src, 0, 6), f.token = 0, f.tag = 0));
	WITHOUT_PROBE(f.src[0] |= 1);
	WITHOUT_PROBE(memset(f.src, 0xff, 6));
	WITHOUT_PROBE(f.tag = 7);
	WITHOUT_PROBE(f.gid[15]++);
	WITHOUT_PROBE(memset(f.gid, 0, 16));
	WITHOUT_PROBE(f.size = 16385);
	WITHOUT_PROBE(f.size = 511);
	WITHOUT_PROBE(f.size = 0xffffffff);
	/* HEARD comes before there was a PROBE. */
	WITHOUT_PROBE(f.kind = PEER_HEARD);
#undef WITHOUT_PROBE
	expect_none_agreed(p, &s, 2);
	CHECK_EQ(s.kind[PEER_HEARD], 0);
	/* The right one gets a PROBE, and no other one does, until a asks again. */
	s.drop = PEER_HEARD;
	for (unsigned int i = 0; i < 5; i++) {
		send_forged(&p->a, &good);
		settle(p);
		good.size -= 1024;
	}
	CHECK_EQ(s.kind[PEER_PROBE], 1);
	CHECK_EQ(s.last[PEER_PROBE].len, 16384 + PEER_OVERHEAD);
	expect_none_agreed(p, &s, 3);
	sleep_for(p, 3 * SECOND);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 4);
	CHECK_EQ(s.kind[PEER_ASK], 2);
	/* Now b's own OFFER has come. */
	CHECK_EQ(s.kind[PEER_PROBE], 2);
	send_forged(&p->a, &good);
	settle(p);
	CHECK_EQ(s.kind[PEER_PROBE], 2);
	EXPECT(&p->a.scq, 0, 0, 0, 0, 0);
	unwatch(p, &s);
}

static void forged_answers(struct pair *p)
{
	struct forged good, f;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.drop = PEER_HEARD;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	CHECK_EQ(s.kind[PEER_HEARD], 1);
	good = as_b(p, &s, PEER_HEARD);
	CHECK_EQ(good.token, token_of(&s.last[PEER_HEARD]));
#define IN_VAIN(change) do {						\
	f = good;							\
	change;								\
	send_forged(&p->a, &f);						\
	expect_none_agreed(p, &s, (uint8_t)(f.token + f.size));		\
} while (0)
	IN_VAIN(f.token ^= 0x80000000);
	IN_VAIN(f.token = 0);
	IN_VAIN(f.src[5]++);
	IN_VAIN(memset(f.src, 0, 6));
	IN_VAIN(f.src[0] |= 1);
	IN_VAIN(f.tag = 7);
	IN_VAIN(f.gid[15]++);
	IN_VAIN(f.size = 16385);
	IN_VAIN(f.size = 0);
	IN_VAIN(f.size = 511);
#undef IN_VAIN
	/* What b has said arrives late. */
	send_forged(&p->a, &good);
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 99);
	expect_frames(&s, 16384);
	/* ... and again, about a question that is answered already. */
	good.size = 2048;
	send_forged(&p->a, &good);
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 98);
	expect_frames(&s, 16384);
	CHECK_EQ(s.kind[PEER_ASK], 1);
	CHECK_EQ(s.kind[PEER_PROBE], 1);
	unwatch(p, &s);
}

/* HEARD says what came: more than was sent cannot have. */
static void heard_more_than_sent(struct pair *p)
{
	struct forged offer, heard;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	s.drop = PEER_OFFER;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	offer = as_b(p, &s, PEER_OFFER);
	offer.size = 2048;
	s.drop = PEER_HEARD;
	send_forged(&p->a, &offer);
	settle(p);
	CHECK_EQ(s.last[PEER_PROBE].len, 2048 + PEER_OVERHEAD);
	heard = as_b(p, &s, PEER_HEARD);
	send_forged(&p->a, &heard);
	s.longest = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	CHECK(s.longest <= longest_for(2048));
	unwatch(p, &s);
}

/*
 * Everybody may ask and probe.  Each such frame gets one answer at most, as short as an
 * answer is, and the device does not remember who it was.
 */
static void flood_of_questions(struct pair *p)
{
	struct forged f = { .tag = -1, .size = 16384, .src = { 2, 0, 0, 0, 0, 9 } };
	unsigned int asks = 0, probes = 0;
	struct seen s;

	md_make_gid(f.gid, p->a.md->mac[5], 0, false);
	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	memset(s.kind, 0, sizeof(s.kind));
	count_anew(&s);
	for (unsigned int i = 0; i < 200; i++) {
		f.kind = i % 2 ? PEER_PROBE : PEER_ASK;
		f.len = i % 2 ? f.size + PEER_OVERHEAD : 64;
		f.src[4] = (uint8_t)i;
		f.token = i;
		asks += f.kind == PEER_ASK;
		probes += f.kind == PEER_PROBE;
		send_forged(&p->a, &f);
	}
	settle(p);
	CHECK_EQ(s.kind[PEER_OFFER], asks);
	CHECK_EQ(s.kind[PEER_HEARD], probes);
	CHECK_EQ(s.kind[PEER_ASK] + s.kind[PEER_PROBE], 0);
	CHECK_EQ(s.longest, 60);
	/* What claims to be longer than it is shows nothing. */
	f.kind = PEER_PROBE;
	f.len = f.size / 2;
	send_forged(&p->a, &f);
	f.len = 64;
	send_forged(&p->a, &f);
	settle(p);
	CHECK_EQ(s.kind[PEER_HEARD], probes);
	f.len = f.size + PEER_OVERHEAD;
	/* What goes to another's GID is not for this device, whoever routes it. */
	f.gid[15]++;
	send_forged(&p->a, &f);
	f.kind = PEER_ASK;
	send_forged(&p->a, &f);
	settle(p);
	CHECK_EQ(s.kind[PEER_OFFER], asks);
	CHECK_EQ(s.kind[PEER_HEARD], probes);
	f.gid[15]--;
	f.kind = PEER_PROBE;
	/* Multicast sources get nothing; who has no address has no place either. */
	memset(s.kind, 0, sizeof(s.kind));
	f.src[0] = 3;
	send_forged(&p->a, &f);
	f.kind = PEER_ASK;
	send_forged(&p->a, &f);
	settle(p);
	CHECK_EQ(s.kind[PEER_OFFER] + s.kind[PEER_HEARD], 0);
	memset(f.src, 0, 6);
	send_forged(&p->a, &f);
	settle(p);
	CHECK_EQ(s.kind[PEER_OFFER], 1);
	CHECK_EQ(s.kind[PEER_PROBE], 0);
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	expect_frames(&s, 16384);
	unwatch(p, &s);
}

/* ---- more peers than places */

#define PLACES		32u		/* of hardware.rst: an eighth of all GIDs has four */
#define STRANGERS	128u

/* Sends a message of two packets to each of many addresses, where nobody is. */
static void meet_strangers(struct pair *p, struct end *e, uint8_t group)
{
	for (unsigned int i = 0; i < STRANGERS; i++) {
		CHECK_EQ(md_qp_modify(e->md, &e->qp, QHCA_QPS_RESET, 0, NULL), 0);
		e->conn.av.dmac[4] = group;
		e->conn.av.dmac[5] = (uint8_t)(0x80 + i);
		md_qp_connect(e->md, &e->qp, &e->conn);
		e->qp.sq_pi = e->qp.rq_pi = 0;
		post(p, e, QHCA_WQE_WRITE, 2 * MTU, 0);
		run_for(p, 10000);
	}
}

static void crowd(struct pair *p)
{
	struct pair_options o = { .type = QHCA_QPT_UC };
	unsigned int asks;
	struct end far, near;
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	open_second(p, &near, &far, &o);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 3);
	count_anew(&s);
	asks = s.kind[PEER_ASK];
	meet_strangers(p, &near, 1);
	/* All places but b's are taken, and the others are not even asked. */
	CHECK_EQ(s.kind[PEER_ASK] - asks, PLACES - 1);
	CHECK_EQ(s.bundles, 0);
	CHECK_EQ(s.single, 2 * STRANGERS);
	/* Strangers who are in use keep their places, and wait before they are asked again. */
	meet_strangers(p, &near, 1);
	asks = s.kind[PEER_ASK];
	meet_strangers(p, &near, 2);
	CHECK_EQ(s.kind[PEER_ASK], asks);
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 4);
	expect_frames(&s, 16384);
	/* Of all peers b alone is in use when others come. */
	sleep_for(p, SECOND);
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 5);
	expect_frames(&s, 16384);
	asks = s.kind[PEER_ASK];
	meet_strangers(p, &near, 3);
	CHECK_EQ(s.kind[PEER_ASK] - asks, PLACES - 1);
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 6);
	expect_frames(&s, 16384);
	/* Nobody is: b's place is another's, until b is met again. */
	sleep_for(p, SECOND);
	asks = s.kind[PEER_ASK];
	meet_strangers(p, &near, 4);
	CHECK_EQ(s.kind[PEER_ASK] - asks, PLACES);
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 7);
	expect_frames(&s, 0);
	sleep_for(p, SECOND);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 8);
	s.bundles = s.single = 0;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 9);
	expect_frames(&s, 16384);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
	unwatch(p, &s);
}

/* A device that was reset has all its places, whoever had them a moment ago. */
static void reset_frees_places(struct pair *p)
{
	const struct pair_options o = { .type = QHCA_QPT_UC };
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	meet_strangers(p, &p->a, 1);
	CHECK_EQ(s.kind[PEER_ASK], PLACES);
	meet_strangers(p, &p->a, 2);
	CHECK_EQ(s.kind[PEER_ASK], PLACES);
	restart_pair(p, &o);
	connect_pair(p);
	meet_strangers(p, &p->a, 2);
	CHECK_EQ(s.kind[PEER_ASK], 2 * PLACES);
	unwatch(p, &s);
}

const struct scenario bundle_between_scenarios[] = {
	RC(sender_moves, BUNDLES),
	RC(receiver_moves, BUNDLES),
	RC(responder_moves, BUNDLES),
	RC(forged_offers, BUNDLES),
	RC(forged_answers, BUNDLES),
	RC(heard_more_than_sent, BUNDLES),
	RC(flood_of_questions, BUNDLES),
	RC(crowd, BUNDLES),
	ON(UC, reset_frees_places, BUNDLES),
	{ 0 }
};
