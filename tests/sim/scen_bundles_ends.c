/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * How messages in bundles end: what counters say of them, faults at a packet in the middle,
 * links without room, and bundles that no device builds.
 */
#include <string.h>

#include "bundles.h"
#include "cold.h"

#define BTH		(14 + 20 + 8)	/* IPv4 without a tag */
#define SET		3		/* a counter set */
#define BAD_KEY		0xdead00u

/* The hosts agree about what a sends. */
static void agree(struct pair *p, struct seen *s)
{
	watch(p, s);
	connect_pair(p);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	EXPECT(&p->a.scq, 0, 0);
	s->bundles = s->single = 0;
}

/* ---- counters */

struct counted {
	uint64_t fn[2][QHCA_NUM_COUNTERS], set[2][QHCA_NUM_COUNTERS];
	uint64_t wire[2];		/* bytes of RoCE that the host has sent */
	unsigned int bundles;
};

static void count_end(struct pair *p, struct end *e, struct counted *c)
{
	static __le64 value[QHCA_NUM_COUNTERS];
	unsigned int i = e == &p->b;

	CHECK_EQ(md_cmd(e->md, QHCA_CMD_QUERY_COUNTER_SET, SET, 0, NULL, 0,
			value, sizeof(value), NULL), 0);
	for (unsigned int id = 0; id < QHCA_NUM_COUNTERS; id++) {
		c->fn[i][id] = count_of(e, (enum qhca_counter)id);
		c->set[i][id] = get_le64(&value[id]);
	}
}

static void use_set(struct end *e)
{
	CHECK_EQ(md_cmd(e->md, QHCA_CMD_SET_QP_COUNTERS, e->qp.qpn, SET, NULL, 0,
			NULL, 0, NULL), 0);
}

/* The same transfers in any pair, one of which is repeated since a frame of it is lost. */
static void count_transfers(struct pair *p, struct counted *c)
{
	struct seen s;

	memset(c, 0, sizeof(*c));
	watch(p, &s);
	connect_pair(p);
	use_set(&p->a);
	use_set(&p->b);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	transfer(p, QHCA_WQE_READ, MESSAGE, 2);
	transfer(p, QHCA_WQE_WRITE, MESSAGE - 3, 3);
	transfer(p, QHCA_WQE_SEND, MESSAGE, 4);
	transfer(p, QHCA_WQE_WRITE_IMM, MESSAGE, 5);
	transfer(p, QHCA_WQE_READ, MESSAGE + 1, 6);
	transfer(p, QHCA_WQE_WRITE, MTU, 7);
	transfer(p, QHCA_WQE_WRITE, 32768, 8);
	count_end(p, &p->a, c);
	count_end(p, &p->b, c);
	c->wire[0] = s.roce_bytes[0];
	c->wire[1] = s.roce_bytes[1];
	c->bundles = s.bundles;
	unwatch(p, &s);
}

/* Caches are asked as often as the device works on a QP, whatever it does there. */
static bool depends_on_frames(unsigned int id)
{
	const char *name = qhca_counter_name((enum qhca_counter)id);

	return id == QHCA_CNT_tx_bytes || id == QHCA_CNT_rx_bytes ||
	       strstr(name, "_hits") || strstr(name, "_misses") ||
	       strstr(name, "_evictions") || strstr(name, "_conflicts");
}

static void counters_are_equal(struct pair *p)
{
	struct pair_options o = { .type = p->type, .roomy = true };
	static struct counted with, without;
	static struct pair q;

	count_transfers(p, &with);
	open_pair(&q, &o);
	count_transfers(&q, &without);
	close_pair(&q);
	CHECK(with.bundles >= 6);
	CHECK_EQ(without.bundles, 0);
	for (unsigned int i = 0; i < 2; i++)
		for (unsigned int id = 0; id < QHCA_NUM_COUNTERS; id++) {
			if (depends_on_frames(id))
				continue;
			if (with.fn[i][id] != without.fn[i][id] ||
			    with.set[i][id] != without.set[i][id])
				check_failed(__LINE__, "%s of host %u: %llu, of its set %llu; without bundles %llu and %llu",
					     qhca_counter_name((enum qhca_counter)id), i,
					     (unsigned long long)with.fn[i][id],
					     (unsigned long long)with.set[i][id],
					     (unsigned long long)without.fn[i][id],
					     (unsigned long long)without.set[i][id]);
		}
	/* Bytes are those of frames. */
	for (unsigned int i = 0; i < 2; i++) {
		CHECK_EQ(with.fn[i][QHCA_CNT_tx_bytes], with.wire[i]);
		CHECK_EQ(with.fn[i][QHCA_CNT_rx_bytes], with.wire[!i]);
		CHECK_EQ(without.fn[i][QHCA_CNT_tx_bytes], without.wire[i]);
		CHECK(with.wire[i] < without.wire[i]);
		/* All packets were of one QP. */
		for (int id = QHCA_CNT_tx_packets; id <= QHCA_CNT_rx_bytes; id++) {
			CHECK_EQ(with.set[i][id], with.fn[i][id]);
			CHECK_EQ(without.set[i][id], without.fn[i][id]);
		}
	}
	CHECK(with.fn[0][QHCA_CNT_tx_packets] >= 8 * 4 + 32);
}

/* ---- faults in the middle */

static uint32_t acks_of_b(const struct end *b)
{
	return (uint32_t)count_of(b, QHCA_CNT_tx_rnr_fault1) +
	       (uint32_t)count_of(b, QHCA_CNT_tx_rnr_no_wqe);
}

/* A WRITE meets an absent page at a packet in the middle, and goes on from there. */
static void page_fault_in_the_middle(struct pair *p)
{
	uint32_t len = PAGE_LEFT + 5000, whole = PAGE_LEFT / MTU;
	uint32_t token;
	struct seen s;
	struct cold c;

	agree(p, &s);
	c = cold_make(&p->b);
	md_odp_map(c.odp, 0, true);
	fill_bytes(&p->a, len, 9);
	post_to_cold(p, &c, QHCA_WQE_WRITE, len, 0);
	run_for(p, 1000000);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(acks_of_b(&p->b), 1);
	CHECK_COLD(&p->b, &c, 0, whole * MTU, 9);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS,
			   PAGE_LEFT, COLD_IOVA + PAGE_LEFT, 5000);
	NO_FAULT(&p->b);
	cold_resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 1, 0);
	CHECK_COLD(&p->b, &c, 0, len, 9);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets),
		 (len + MTU - 1) / MTU - whole);
	CHECK_EQ(s.bundles, 2);
	CHECK_EQ(s.single, 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_nak_seq), 0);
	CHECK_EQ(md_frames_check(p->b.md, c.frames), 0);
	unwatch(p, &s);
}

/* The page of the sender's payload is absent at a packet in the middle. */
static void own_fault_in_the_middle(struct pair *p)
{
	uint32_t len = PAGE_LEFT + 5000, whole = PAGE_LEFT / MTU;
	uint8_t data[COLD_LEN];
	uint32_t token;
	struct seen s;
	struct cold c;

	agree(p, &s);
	c = cold_make(&p->a);
	md_odp_map(c.odp, 0, true);
	for (uint32_t i = 0; i < len; i++)
		data[i] = (uint8_t)(5 + i * 7);
	md_buf_write(p->a.md, &c.odp->mr.buf, COLD_IOVA % MD_PAGE, data, len);
	md_odp_unmap(c.odp, 1, md_odp_pages(c.odp) - 1);
	post_at(p, &p->a, QHCA_WQE_WRITE, COLD_IOVA, c.odp->mr.key, len,
		p->b.mr.iova, p->b.mr.key);
	run_for(p, 100000);
	/* What could be read is with b. */
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(s.single, 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets), 8 + whole);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_GATHER, QHCA_FAULT_REQUESTER,
			   PAGE_LEFT, COLD_IOVA + PAGE_LEFT, 5000);
	cold_resume(&p->a, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 1, 0);
	get_bytes(&p->b, 0, data, len);
	for (uint32_t i = 0; i < len && check_ok(); i++)
		CHECK_EQ(data[i], (uint8_t)(5 + i * 7));
	CHECK_EQ(s.bundles, 2);
	CHECK_EQ(s.single, 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 0);
	unwatch(p, &s);
}

/*
 * A page of the READ's data is absent.  The bundle that should have ended the message has an AETH
 * for its last packet, and ends without this packet, whether several precede it or only one.
 */
static void response_fault_in_the_middle(struct pair *p)
{
	const uint32_t absent = 5 * MD_PAGE - COLD_IOVA % MD_PAGE;
	uint8_t data[COLD_LEN];
	struct seen s;

	agree(p, &s);
	transfer(p, QHCA_WQE_READ, MESSAGE, 2);		/* b asks for itself */
	EXPECT(&p->a.scq, 1, 0);
	for (unsigned int i = 0; i < 2; i++) {
		const unsigned int more = i ? 1 : 3;
		uint32_t off = absent - (16 + more) * MTU - 100;
		uint32_t len = COLD_LEN - off, token;
		struct cold c = cold_make(&p->b);

		for (uint32_t at = 0; at < COLD_LEN; at++)
			data[at] = (uint8_t)(more + at * 7);
		for (unsigned int page = 0; page < 5; page++)
			md_odp_map(c.odp, page, true);
		md_buf_write(p->b.md, &c.odp->mr.buf, COLD_IOVA % MD_PAGE, data,
			     COLD_LEN);
		md_odp_unmap(c.odp, 5, md_odp_pages(c.odp) - 5);
		s.bundles = s.single = 0;
		post_to_cold(p, &c, QHCA_WQE_READ, len, off);
		run_for(p, 100000);
		/* Sixteen packets are agreed upon. */
		CHECK_EQ(s.bundles, i ? 1 : 2);
		CHECK_EQ(s.single, i);
		token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_R, QHCA_FAULT_RDMA,
				   absent - off, COLD_IOVA + absent,
				   COLD_LEN - absent);
		cold_resume(&p->b, &c, token);
		settle(p);
		EXPECT(&p->a.scq, 2 + i, 0);
		CHECK_EQ(s.bundles, i ? 2 : 3);
		CHECK_EQ(s.single, i);
		CHECK_EQ(count_of(&p->a, QHCA_CNT_rx_dropped), 0);
		get_bytes(&p->a, 0, data, len);
		for (uint32_t at = 0; at < len && check_ok(); at++)
			CHECK_EQ(data[at], (uint8_t)(more + (off + at) * 7));
	}
	unwatch(p, &s);
}

/* Nobody has posted a receive: one refusal for all packets of the bundle. */
static void no_receive(struct pair *p)
{
	struct seen s;

	agree(p, &s);
	fill_at(&p->a, 0, 3, MESSAGE);
	post(p, &p->a, QHCA_WQE_SEND, MESSAGE, 0);
	until_bundles(p, &s, 1);
	run_for(p, 5000);
	CHECK_EQ(acks_of_b(&p->b), 1);
	post_recv(&p->b, MESSAGE);
	settle(p);
	EXPECT(&p->a.scq, 1, 0);
	EXPECT(&p->b.rcq, 0, 0);
	CHECK(holds(&p->b, 16384, 3, MESSAGE));
	CHECK_EQ(s.bundles, 2);
	CHECK_EQ(acks_of_b(&p->b), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_nak_seq), 0);
	unwatch(p, &s);
}

/* Room for a message, of which what is behind the first @good bytes has a bad key. */
static void two_pieces(struct end *e, uint32_t good, struct md_sge sge[2])
{
	sge[0] = (struct md_sge){ e->mr.iova, good, e->mr.key };
	sge[1] = (struct md_sge){ e->mr.iova + good, MESSAGE - good, BAD_KEY };
}

/* The receive has room for the first packets alone: then b's QP is in error. */
static void receiver_fails_in_the_middle(struct pair *p)
{
	struct md_sge sge[2];
	uint64_t packets;
	struct seen s;

	agree(p, &s);
	packets = count_of(&p->b, QHCA_CNT_rx_packets);
	s.roce_bytes[1] = 0;
	two_pieces(&p->b, 3 * MTU, sge);
	md_post_recv(p->b.md, &p->b.qp, 0, sge, 2);
	fill_at(&p->a, 0, 7, MESSAGE);
	post(p, &p->a, QHCA_WQE_SEND, MESSAGE, 0);
	settle(p);
	EXPECT(&p->a.scq, 1, QHCA_WC_REM_OP_ERR);
	EXPECT(&p->b.rcq, 0, QHCA_WC_LOC_PROT_ERR);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
	CHECK(holds(&p->b, 0, 7, 3 * MTU));
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets) - packets, 8);
	/* The fourth is refused, and those behind it get no answer. */
	CHECK_EQ(s.roce_bytes[1], BTH + 12 + 4 + 4);
	reconnect_pair(p, 77);
	CHECK_WORKS(p);
	unwatch(p, &s);
}

/* The page is unavailable for good: an access error at a packet in the middle. */
static void access_error_in_the_middle(struct pair *p)
{
	uint32_t len = PAGE_LEFT + 5000, token;
	struct seen s;
	struct cold c;

	agree(p, &s);
	c = cold_make(&p->b);
	md_odp_map(c.odp, 0, true);
	fill_bytes(&p->a, len, 9);
	post_to_cold(p, &c, QHCA_WQE_WRITE, len, 0);
	run_for(p, 1000000);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS,
			   PAGE_LEFT, COLD_IOVA + PAGE_LEFT, 5000);
	CHECK_EQ(md_resume(p->b.md, token, false), QHCA_CMD_OK);
	settle(p);
	EXPECT(&p->a.scq, 1, QHCA_WC_REM_ACCESS_ERR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_ACCESS_ERROR);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
	reconnect_pair(p, 77);
	CHECK_WORKS(p);
	unwatch(p, &s);
}

/* The sender must not read what it would send: what precedes that has left in a bundle. */
static void sender_fails_in_the_middle(struct pair *p)
{
	struct md_sge sge[2];
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.num_sge = 2, .sge = sge, .raddr = p->b.mr.iova + 32768,
		.rkey = p->b.mr.key,
	};
	uint64_t packets;
	struct seen s;

	agree(p, &s);
	packets = count_of(&p->b, QHCA_CNT_rx_packets);
	two_pieces(&p->a, 3 * MTU + 10, sge);
	fill_at(&p->a, 0, 40, MESSAGE);
	post_wr(&p->a, &wr);
	settle(p);
	EXPECT(&p->a.scq, 1, QHCA_WC_LOC_PROT_ERR);
	CHECK_EQ(s.bundles, 1);
	CHECK_EQ(s.single, 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets) - packets, 3);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_tx_packets),
		 count_of(&p->b, QHCA_CNT_rx_packets));
	CHECK(holds(&p->b, 32768, 40, 3 * MTU));
	CHECK(!holds(&p->b, 32768, 40, 3 * MTU + 1));
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	reconnect_pair(p, 77);
	CHECK_WORKS(p);
	unwatch(p, &s);
}

/* The same for a READ: b answers in bundles, and a must not write all of it. */
static void reader_fails_in_the_middle(struct pair *p)
{
	struct md_sge sge[2];
	struct md_wr wr = {
		.opcode = QHCA_WQE_READ, .flags = QHCA_WQE_F_SIGNALED,
		.num_sge = 2, .sge = sge, .raddr = p->b.mr.iova + 32768,
		.rkey = p->b.mr.key,
	};
	struct seen s;

	agree(p, &s);
	transfer(p, QHCA_WQE_READ, MESSAGE, 1);
	s.bundles = 0;
	two_pieces(&p->a, 3 * MTU, sge);
	fill_at(&p->b, 32768, 50, MESSAGE);
	post_wr(&p->a, &wr);
	settle(p);
	EXPECT(&p->a.scq, 1, 0, QHCA_WC_LOC_PROT_ERR);
	CHECK_EQ(s.bundles, 1);
	CHECK(holds(&p->a, 0, 50, 3 * MTU));
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
	reconnect_pair(p, 77);
	CHECK_WORKS(p);
	unwatch(p, &s);
}

/* b's QP is gone, or in error, between two bundles of one message. */
static void peer_leaves(struct pair *p, bool destroy)
{
	uint64_t packets, lost;
	struct seen s;

	agree(p, &s);
	begin_write(p, 32768, 9);
	/* The first bundle arrives, the other one is under way. */
	p->w.link.delay = 5000;
	until_bundles(p, &s, 2);
	packets = count_of(&p->b, QHCA_CNT_rx_packets);
	if (destroy)
		CHECK_EQ(md_qp_destroy(p->b.md, &p->b.qp), 0);
	else
		CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_ERR, 0, NULL), 0);
	settle(p);
	EXPECT(&p->a.scq, 1, QHCA_WC_RETRY_EXC_ERR);
	lost = count_of(&p->b, destroy ? QHCA_CNT_rx_no_qp :
					 QHCA_CNT_rx_bad_state);
	/* Four times all of it, the last times packet by packet. */
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_packets) - packets, 4 * 32);
	CHECK_EQ(lost, 4 * 32);
	CHECK_EQ(s.bundles, 2);
	if (destroy) {
		struct md_qp_init init = p->b.qp.init;

		CHECK_EQ(md_qp_create(p->b.md, &p->b.qp, &init), 0);
		p->a.conn.dest_qpn = p->b.qp.qpn;
		CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RESET, 0, NULL), 0);
		connect_pair(p);
	} else {
		reconnect_pair(p, 77);
	}
	CHECK_WORKS(p);
	unwatch(p, &s);
}

static void peer_is_destroyed(struct pair *p)
{
	peer_leaves(p, true);
}

static void peer_is_in_error(struct pair *p)
{
	peer_leaves(p, false);
}

/* ---- links */

/* The link has no room from the moment on when a has sent a bundle. */
static bool block_behind_bundle(struct world *w, unsigned int from, uint8_t *frame,
				size_t len)
{
	struct seen *s = w->filter_arg;
	unsigned int before = s->bundles;
	bool through = see_frame(w, from, frame, len);

	if (!from && s->bundles > before)
		w->blocked[0] = true;
	return through;
}

static void blocked_in_the_middle(struct pair *p)
{
	struct seen s;

	agree(p, &s);
	transfer(p, QHCA_WQE_READ, MESSAGE, 2);		/* b asks for itself */
	s.single = 0;
	p->w.filter = block_behind_bundle;
	begin_write(p, 32768, 5);
	until_bundles(p, &s, 1);
	CHECK(p->w.blocked[0]);
	settle(p);
	EXPECT(&p->a.scq, 1, 0, 0);
	CHECK(has_arrived(p, 32768, 5));
	CHECK_EQ(s.bundles, 2);
	CHECK_EQ(s.single, 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_tx_packets),
		 count_of(&p->b, QHCA_CNT_rx_packets));
	memset(s.of, 0, sizeof(s.of));
	/* Now and then there is none, for whichever frame, and the host has any budget. */
	p->w.filter = see_frame;
	p->w.budget = 0;
	p->w.link.block = 300000;
	for (uint8_t i = 0; i < 20; i++) {
		transfer(p, QHCA_WQE_WRITE, 32768, i);
		EXPECT(&p->a.scq, 3 + 2u * i, 0);
		transfer(p, QHCA_WQE_READ, 32768, (uint8_t)(i + 128));
		EXPECT(&p->a.scq, 4 + 2u * i, 0);
	}
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 0);
	/* Two each: neither ends one. */
	CHECK_EQ(s.of[p->a.md->mac[5]].bundles, 40);
	CHECK_EQ(s.of[p->b.md->mac[5]].bundles, 40);
	unwatch(p, &s);
}

/* There is no room for any of the answers: they are sent when there is. */
static bool block_for_message(struct world *w, unsigned int from, uint8_t *frame,
			      size_t len)
{
	if (get_be16(frame + 12) == PEER_TYPE)
		w->blocked[!from] = true;
	return see_frame(w, from, frame, len);
}

static void blocked_for_answers(struct pair *p)
{
	struct seen s;

	watch(p, &s);
	connect_pair(p);
	p->w.filter = block_for_message;
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 1);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	for (int kind = PEER_ASK; kind < PEER_KINDS; kind++)
		CHECK_EQ(s.kind[kind], 1);
	CHECK_EQ(s.single, 8);
	CHECK_EQ(s.bundles, 1);
	EXPECT(&p->a.scq, 0, 0, 0);
	unwatch(p, &s);
}

/* The wire loses each third bundle: nothing is sent twice without need, all arrives. */
static bool lose_third_bundle(struct world *w, unsigned int from, uint8_t *frame,
			      size_t len)
{
	struct seen *s = w->filter_arg;
	unsigned int before = s->bundles;
	bool through = see_frame(w, from, frame, len);

	return through && (s->bundles == before || s->bundles % 3);
}

static void lossy_wire(struct pair *p)
{
	bool xrc = p->type == QHCA_QPT_XRC_INI;
	struct seen s;

	agree(p, &s);
	p->w.filter = lose_third_bundle;
	for (uint8_t i = 0; i < 8; i++) {
		/* An agreement that holds so long makes the next pause short. */
		sleep_for(p, SECOND);
		transfer(p, QHCA_WQE_WRITE, MESSAGE, i);
		sleep_for(p, SECOND);
		transfer(p, QHCA_WQE_WRITE, MESSAGE, i);
		transfer(p, QHCA_WQE_WRITE, 32768, i);
		transfer(p, QHCA_WQE_READ, 32768, (uint8_t)(i + 30));
		transfer(p, QHCA_WQE_SEND, 16384, (uint8_t)(i + 60));
		EXPECT(&p->a.scq, 1 + 5u * i, 0, 0, 0, 0, 0);
		if (!xrc)
			EXPECT(&p->b.rcq, i, 0);
	}
	CHECK(s.bundles >= 20);
	CHECK(count_of(&p->a, QHCA_CNT_retransmitted_packets) > 0);
	unwatch(p, &s);
}

/* XRC, whose packets have one header more. */
static void xrc_bundles(struct pair *p)
{
	struct qhca_cqe cqe;
	struct seen s;

	agree(p, &s);
	transfer(p, QHCA_WQE_WRITE, MESSAGE, 2);
	transfer(p, QHCA_WQE_SEND, MESSAGE - 7, 3);
	CHECK_EQ(s.bundles, 2);
	CHECK_EQ(s.single, 0);
	CHECK(md_poll(&p->b.rcq, &cqe) && !cqe.status);
	CHECK_EQ(get_le32(&cqe.byte_len), MESSAGE - 7);
	transfer(p, QHCA_WQE_READ, MESSAGE, 4);
	transfer(p, QHCA_WQE_READ, MESSAGE, 5);
	CHECK_EQ(s.bundles, 3);
	EXPECT(&p->a.scq, 1, 0, 0, 0, 0);
	unwatch(p, &s);
}

/* The wire loses one bundle, the first or the second, as num_kept says. */
static bool lose_one(struct world *w, unsigned int from, uint8_t *frame, size_t len)
{
	struct seen *s = w->filter_arg;
	unsigned int before = s->bundles;
	bool through = see_frame(w, from, frame, len);

	return through && (s->bundles == before || s->bundles != s->num_kept);
}

/* A message of UC of which a bundle is lost is lost, and no other one is. */
static void unreliable_loss(struct pair *p)
{
	struct seen s;

	agree(p, &s);
	for (uint32_t which = 1; which <= 2; which++) {
		uint64_t dropped = count_of(&p->b, QHCA_CNT_uc_dropped);

		p->w.filter = lose_one;
		s.num_kept = which;
		s.bundles = 0;
		post_recv(&p->b, 32768);
		fill_at(&p->a, 0, (uint8_t)(10 * which), 32768);
		post(p, &p->a, QHCA_WQE_SEND, 32768, 0);
		settle(p);
		CHECK_EQ(s.bundles, 2);
		expect_none(&p->b.rcq);
		p->w.filter = see_frame;
		/* The receive of the lost message serves the next one. */
		fill_at(&p->a, 0, (uint8_t)(10 * which + 5), MESSAGE);
		post(p, &p->a, QHCA_WQE_SEND, MESSAGE, 0);
		settle(p);
		EXPECT(&p->a.scq, 2 * which - 1, 0, 0);
		EXPECT(&p->b.rcq, which - 1, 0);
		CHECK(holds(&p->b, 16384, (uint8_t)(10 * which + 5), MESSAGE));
		CHECK_EQ(count_of(&p->b, QHCA_CNT_uc_dropped) - dropped, 1);
	}
	CHECK_EQ(s.single, 0);
	unwatch(p, &s);
}

const struct scenario bundle_end_scenarios[] = {
	RC(counters_are_equal, .roomy = true, BUNDLES),
	RC(page_fault_in_the_middle, BUNDLES),
	RC(own_fault_in_the_middle, BUNDLES),
	RC(response_fault_in_the_middle, BUNDLES),
	RC(no_receive, BUNDLES),
	RC(receiver_fails_in_the_middle, BUNDLES),
	RC(access_error_in_the_middle, BUNDLES),
	RC(sender_fails_in_the_middle, BUNDLES),
	RC(reader_fails_in_the_middle, BUNDLES),
	RC(peer_is_destroyed, BUNDLES),
	RC(peer_is_in_error, BUNDLES),
	RC(blocked_in_the_middle, BUNDLES),
	RC(blocked_for_answers, BUNDLES),
	RC(lossy_wire, BUNDLES),
	NAMED(XRC_INI, "lossy_wire (XRC)", lossy_wire, .xrc = true, BUNDLES),
	NAMED(XRC_INI, "xrc_bundles", xrc_bundles, .xrc = true, BUNDLES),
	ON(UC, unreliable_loss, BUNDLES),
	{ 0 }
};
