/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Fast registration, and LOCAL_INV among the requests of a send queue.
 */
#include "keys.h"

static void fast_reg_cycles(struct pair *p)
{
	uint32_t key = new_fast_reg(&p->b, 0);

	connect_pair(p);
	for (uint32_t i = 0; i < 5; i++) {
		uint32_t now = (key & ~0xffu) | (0x30 + i);
		uint32_t off = TARGET - i % 2 * TARGET_LEN;

		post_reg_at(&p->b, now, ALL_ACCESS, off);
		settle(p);
		EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
		fill_source(&p->a, i);
		post_remote(&p->a, QHCA_WQE_WRITE, now, TARGET_LEN);
		settle(p);
		EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
		CHECK(bytes_are(&p->b, off, i));
		/* This is the key with its previous octet. */
		CHECK_DEAD(p, &p->a, now - 1);
		reconnect_pair(p, 20 + i);
		post_inv(&p->b, QHCA_WQE_LOCAL_INV, now);
		settle(p);
		EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
		CHECK_DEAD(p, &p->a, now);
		reconnect_pair(p, 40 + i);
	}
}

static void fast_reg_twice(struct pair *p)
{
	uint32_t key = new_fast_reg(&p->b, 0);

	connect_pair(p);
	post_reg(&p->b, key, ALL_ACCESS);
	/* Nothing has invalidated the key in between. */
	post_reg(&p->b, key ^ 1, ALL_ACCESS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_MW_BIND_ERR);
}

/* LOCAL_INV waits for the WQEs before it: their data still use the key. */
static void local_inv_waits(struct pair *p)
{
	uint32_t key = new_fast_reg(&p->a, 0);
	struct md_sge sge = { PAIR_IOVA + TARGET, TARGET_LEN, 0 };
	struct md_wr wr = {
		.opcode = QHCA_WQE_READ, .flags = QHCA_WQE_F_SIGNALED,
		.sge = &sge, .num_sge = 1, .raddr = PAIR_IOVA + TARGET,
		.rkey = p->b.mr.key,
	};

	connect_pair(p);
	fill_target(&p->a, 0x11);
	fill_target(&p->b, 0x22);
	post_reg(&p->a, key, ALL_ACCESS);
	sge.key = key;
	post_wr(&p->a, &wr);
	post_inv(&p->a, QHCA_WQE_LOCAL_INV, key);
	post_wr(&p->a, &wr);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS,
	       QHCA_WC_LOC_PROT_ERR);
	CHECK(target_is(&p->a, 0x22));
}

#define MESSAGES	600u
#define BURST		6u		/* messages before each LOCAL_INV */
#define FIRST_PSN	100u

struct carried {
	uint8_t times[2 * MESSAGES];	/* by PSN, from FIRST_PSN on */
	uint32_t packets, again;
};

static uint32_t psn_of(const uint8_t *frame)
{
	const uint8_t *bth = frame + 14 + 20 + 8;

	return bth[9] << 16 | bth[10] << 8 | bth[11];
}

/* Count how often the link carries each PSN of a's. */
static bool count_packet(struct world *w, unsigned int from, uint8_t *frame,
			 size_t len)
{
	struct carried *c = w->filter_arg;

	(void)len;
	if (from)
		return true;
	c->packets++;
	if (c->times[psn_of(frame) - FIRST_PSN]++)
		c->again++;
	return true;
}

/* Posts unsignalled messages, and then the LOCAL_INV that waits for them. */
static void post_burst(struct pair *p, uint32_t key, uint32_t before_inv)
{
	struct md_sge sge = { p->a.mr.iova, 8, p->a.mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .sge = &sge, .num_sge = 1,
		.raddr = PAIR_IOVA + TARGET, .rkey = p->b.mr.key,
	};

	for (uint32_t i = 0; i < BURST; i++)
		md_post_send(p->a.md, &p->a.qp, &wr);
	for (uint32_t i = 0; i < before_inv; i++) {
		wr.opcode = QHCA_WQE_LOCAL_INV;
		wr.imm = key;
		md_post_send(p->a.md, &p->a.qp, &wr);
	}
	post_inv(&p->a, QHCA_WQE_LOCAL_INV, key);
}

/*
 * LOCAL_INV waits until the messages before it are acknowledged, and none of
 * those need have asked for an acknowledgement.  A link that loses nothing
 * carries each of them once.
 */
static void local_inv_sends_nothing_again(struct pair *p)
{
	uint32_t key = new_fast_reg(&p->a, 0), done = 0;
	struct carried c = { .packets = 0 };
	struct qhca_cqe cqe;

	p->a.conn.sq_psn = p->b.conn.rq_psn = FIRST_PSN;
	p->w.filter = count_packet;
	p->w.filter_arg = &c;
	p->w.link.delay = 20000;
	connect_pair(p);
	for (uint32_t i = 0; i < MESSAGES / BURST; i++) {
		post_burst(p, key, i % 3 == 2);
		if (i % 4 == 3)
			settle(p);
		for (; md_poll(&p->a.scq, &cqe); done++)
			CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
	}
	CHECK_EQ(done, MESSAGES / BURST);
	CHECK_EQ(c.packets, MESSAGES);
	CHECK_EQ(c.again, 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 0);
}

#define LOG_MANY	11u		/* WQEs of a long queue */
#define AT_ONCE		800u		/* completions of an ACK, and of a turn */

static bool drop_from_b(struct world *w, unsigned int from, uint8_t *frame,
			size_t len)
{
	(void)w;
	(void)frame;
	(void)len;
	return from == 0;
}

static void open_long(struct end *e, struct end *like, uint32_t log_depth)
{
	struct md_qp_init init = {
		.type = QHCA_QPT_RC, .pd = PAIR_PD, .sq_log_depth = log_depth,
		.sq_log_stride = 7, .rq_log_depth = 2, .rq_log_stride = 5,
		.send_cq = &e->scq, .recv_cq = &e->scq,
	};

	*e = (struct end){ .md = like->md, .mr = like->mr, .conn = like->conn,
			   .host = like->host };
	md_cq_create(e->md, &e->scq, LOG_MANY);
	if (md_qp_create(e->md, &e->qp, &init))
		host_die("CREATE_QP");
}

/*
 * WQEs without packets do not count for the window.  So any number of them may follow
 * a message, and the ACK of the message completes those that the device has begun,
 * which must not be all WQEs of a long queue.
 */
static void ack_completes_some(struct pair *p)
{
	uint32_t most = 0, done = 0, n;
	uint64_t limit;
	struct qhca_cqe cqe;
	struct end a, b;
	struct md_sge sge = { p->a.mr.iova, 8, p->a.mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.sge = &sge, .num_sge = 1, .raddr = PAIR_IOVA + TARGET,
		.rkey = p->b.mr.key,
	};

	open_long(&a, &p->a, LOG_MANY);
	open_long(&b, &p->b, 2);
	a.conn.dest_qpn = b.qp.qpn;
	b.conn.dest_qpn = a.qp.qpn;
	md_qp_connect(a.md, &a.qp, &a.conn);
	md_qp_connect(b.md, &b.qp, &b.conn);
	for (uint32_t i = 0; i < (1u << LOG_MANY) - 8; i++) {
		md_post_send(a.md, &a.qp, &wr);
		wr.opcode = QHCA_WQE_NOP;
	}
	p->w.filter = drop_from_b;
	md_ring(a.md, &a.qp);
	run_for(p, 500000);		/* less than the ACK timeout */
	CHECK(!md_poll(&a.scq, &cqe));
	p->w.filter = NULL;
	limit = p->w.now + 1000000000;
	while (done < (1u << LOG_MANY) - 8 && p->w.now < limit) {
		world_wait(&p->w, p->w.now + 1000);
		for (n = 0; md_poll(&a.scq, &cqe); n++)
			CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
		most = n > most ? n : most;
		done += n;
	}
	CHECK_EQ(done, (1u << LOG_MANY) - 8);
	CHECK(most <= AT_ONCE);
	md_qp_destroy(a.md, &a.qp);
	md_qp_destroy(b.md, &b.qp);
}

/*
 * The driver drains a queue in the middle of messages that asked for no ACK.  The
 * requester sends the newest packet again, and no other: its ACK covers all before.
 */
static void drain_sends_one_again(struct pair *p)
{
	struct md_sge sge = { p->a.mr.iova, 8, p->a.mr.key };
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .sge = &sge, .num_sge = 1,
		.raddr = PAIR_IOVA + TARGET, .rkey = p->b.mr.key,
	};
	struct carried c = { .packets = 0 };

	p->a.conn.sq_psn = p->b.conn.rq_psn = FIRST_PSN;
	p->w.filter = count_packet;
	p->w.filter_arg = &c;
	p->w.link.delay = 20000;
	connect_pair(p);
	for (uint32_t i = 0; i < 60; i++)
		md_post_send(p->a.md, &p->a.qp, &wr);
	md_ring(p->a.md, &p->a.qp);
	/* In one turn the QP sends fewer packets than all of them, and none asks for an ACK. */
	while (c.packets < 20)
		qhca_run(p->a.md->host.hca, p->w.now, 1);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_SQD,
			      QHCA_QP_ATTR_SQD_EVENT, NULL), 0);
	settle(p);
	CHECK_EQ(next_event(&p->a, p->a.qp.qpn), QHCA_EVENT_QP_SQ_DRAINED);
	CHECK(c.packets > c.again && c.packets < 60);
	CHECK_EQ(c.again, 1);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
}

const struct scenario fast_reg_scenarios[] = {
	KERNEL(fast_reg_cycles),
	KERNEL(fast_reg_twice),
	KERNEL(local_inv_waits),
	KERNEL(local_inv_sends_nothing_again),
	KERNEL(drain_sends_one_again),
	KERNEL(ack_completes_some),
	/* The caches have stale lines that nothing but invalidation removes. */
	ROOMY(fast_reg_cycles),
	{ 0 }
};
