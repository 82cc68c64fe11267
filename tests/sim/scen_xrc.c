/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Extended reliable connections: which SRQ a request is for, whose protection
 * domain it has, who gets the completion, and what happens when the SRQ is destroyed in
 * the middle of a message.  a is the initiator, b the target.
 */
#include <string.h>

#include "pair.h"

/* Sends 8 bytes (or asks for them) by way of SRQ @srqn. */
static void request(struct pair *p, uint8_t opcode, uint32_t len,
		    uint32_t srqn, uint32_t rkey)
{
	struct md_sge sge = { p->a.mr.iova, len, p->a.mr.key };
	struct md_wr wr = {
		.opcode = opcode, .flags = QHCA_WQE_F_SIGNALED, .num_sge = 1,
		.sge = &sge, .raddr = p->b.mr.iova + 32768, .rkey = rkey,
		.xrc_srqn = srqn,
	};

	post_wr(&p->a, &wr);
}

static void expect_recv(int line, struct end *e, struct md_cq *cq,
			const struct md_srq *srq, uint8_t status)
{
	const uint32_t want = QHCA_CQE_XRC | QHCA_CQE_SRQ;
	struct qhca_cqe cqe;

	if (!md_poll(cq, &cqe) || cqe.status != status ||
	    (get_le32(&cqe.flags) & want) != want ||
	    get_le64(&cqe.handle) != (MD_SRQ_HANDLE | srq->srqn) ||
	    get_le32(&cqe.qpn) != e->qp.qpn)
		check_failed(line, "no such receive completion");
}
#define EXPECT_RECV(e, cq, srq, status) \
	expect_recv(__LINE__, e, cq, srq, status)

/* Every kind of request, and a message of many packets, reach the right SRQ. */
static void xrc_requests(struct pair *p)
{
	static const uint8_t ops[] = {
		QHCA_WQE_SEND, QHCA_WQE_SEND_IMM, QHCA_WQE_WRITE,
		QHCA_WQE_WRITE_IMM, QHCA_WQE_READ, QHCA_WQE_FETCH_ADD,
	};
	static const bool receives[] = { true, true, false, true, false, false };
	uint8_t data[3000], now[3000];
	struct md_srq other;
	uint32_t n = 0;

	CHECK_EQ(md_xsrq_create(p->b.md, &other, PAIR_PD, 4, 6, PAIR_XRCD,
				&p->b.scq), 0);
	connect_pair(p);
	for (unsigned int i = 0; i < sizeof(data); i++)
		data[i] = i * 7 + i / 256;
	put_bytes(&p->a, 0, data, sizeof(data));
	for (unsigned int i = 0; i < sizeof(ops); i++) {
		struct md_sge sge = { p->b.mr.iova, 3000, p->b.mr.key };

		if (receives[i] && i & 1)
			md_srq_post(p->b.md, &other, 0, &sge, 1);
		else if (receives[i])
			post_recv(&p->b, 3000);
		request(p, ops[i], i == 5 ? 8 : 3000,
			i & 1 ? other.srqn : p->b.srq.srqn, p->b.mr.key);
		settle(p);
		EXPECT(&p->a.scq, n, 0);
		n++;
		if (receives[i])
			EXPECT_RECV(&p->b, i & 1 ? &p->b.scq : &p->b.rcq,
				    i & 1 ? &other : &p->b.srq, 0);
		expect_none(&p->b.scq);
		expect_none(&p->b.rcq);
	}
	get_bytes(&p->b, 0, now, sizeof(now));
	CHECK(!memcmp(now, data, sizeof(now)));		/* second SEND */
	get_bytes(&p->b, 32768 + 8, now, sizeof(now) - 8);
	CHECK(!memcmp(now, data + 8, sizeof(now) - 8));	/* WRITE */
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 0);
}

/* A request that names no SRQ of the target's domain is invalid. */
static void xrc_wrong_srq(struct pair *p)
{
	static const uint8_t ops[] = {
		QHCA_WQE_SEND, QHCA_WQE_WRITE, QHCA_WQE_READ,
		QHCA_WQE_FETCH_ADD,
	};
	struct md_srq foreign, basic;
	uint32_t wrong[4];

	CHECK_EQ(md_xsrq_create(p->b.md, &foreign, PAIR_PD, 4, 6, PAIR_XRCD + 1,
				&p->b.rcq), 0);
	md_srq_create(p->b.md, &basic, PAIR_PD, 4, 6, 0);
	wrong[0] = foreign.srqn;
	wrong[1] = basic.srqn;
	wrong[2] = 40;				/* in the table, not live */
	wrong[3] = 0xffffff;
	post_recv(&p->b, 100);
	for (unsigned int i = 0; i < 16 && check_ok(); i++) {
		if (i)
			reconnect_pair(p, 1000 * i);
		else
			connect_pair(p);
		request(p, ops[i % 4], 8, wrong[i / 4], p->b.mr.key);
		settle(p);
		EXPECT(&p->a.scq, 0, QHCA_WC_REM_INV_REQ_ERR);
		CHECK_EQ(next_event(&p->b, p->b.qp.qpn),
			 QHCA_EVENT_QP_REQ_ERROR);
		CHECK_EQ(next_event(&p->b, p->b.qp.qpn),
			 QHCA_EVENT_QP_LAST_WQE);
		CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
		expect_none(&p->b.rcq);
	}
	/* The SRQ still has the receive. */
	reconnect_pair(p, 5);
	request(p, QHCA_WQE_SEND, 8, p->b.srq.srqn, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	EXPECT_RECV(&p->b, &p->b.rcq, &p->b.srq, 0);
}

/* R_Keys are of the SRQ's protection domain. */
static void xrc_domain_of_keys(struct pair *p)
{
	struct md_mr foreign;
	struct md_srq srq;

	md_reg_mr(p->b.md, &foreign, PAIR_PD + 9, PAIR_IOVA, PAIR_LEN,
		  ALL_ACCESS);			/* the target's own: of no use */
	CHECK_EQ(md_xsrq_create(p->b.md, &srq, PAIR_PD + 9, 4, 6, PAIR_XRCD,
				&p->b.rcq), 0);
	connect_pair(p);
	request(p, QHCA_WQE_WRITE, 8, p->b.srq.srqn, p->b.mr.key);
	request(p, QHCA_WQE_WRITE, 8, srq.srqn, foreign.key);
	request(p, QHCA_WQE_READ, 8, srq.srqn, foreign.key);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0, 0);
	for (int i = 0; i < 4; i++) {
		reconnect_pair(p, 77 * i);
		request(p, i & 1 ? QHCA_WQE_READ : QHCA_WQE_WRITE, 8,
			i & 2 ? srq.srqn : p->b.srq.srqn,
			i & 2 ? p->b.mr.key : foreign.key);
		settle(p);
		EXPECT(&p->a.scq, 0, QHCA_WC_REM_ACCESS_ERR);
		CHECK_EQ(next_event(&p->b, p->b.qp.qpn),
			 QHCA_EVENT_QP_ACCESS_ERROR);
		CHECK_EQ(next_event(&p->b, p->b.qp.qpn),
			 QHCA_EVENT_QP_LAST_WQE);
	}
}

static void xrc_rnr(struct pair *p)
{
	connect_pair(p);
	p->a.conn.rnr_retry = 7;
	reconnect_pair(p, 9);
	request(p, QHCA_WQE_SEND, 8, p->b.srq.srqn, 0);
	world_run(&p->w, p->w.now + 1000000);
	CHECK(count_of(&p->b, QHCA_CNT_tx_rnr_no_wqe) > 0);
	expect_none(&p->a.scq);
	post_recv(&p->b, 8);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	EXPECT_RECV(&p->b, &p->b.rcq, &p->b.srq, 0);
}

/* Up to the first packet of a long message. */
static void begin_message(struct pair *p, uint8_t opcode)
{
	uint64_t before = count_of(&p->b, QHCA_CNT_rx_packets);

	p->w.link.delay = 1000;
	p->a.conn.mtu = p->b.conn.mtu = QHCA_MTU_256;
	connect_pair(p);
	request(p, opcode, 16384, p->b.srq.srqn, p->b.mr.key);
	while (count_of(&p->b, QHCA_CNT_rx_packets) == before &&
	       world_step(&p->w, p->w.now + 100))
		;
}

static int destroy_srq(struct end *e, uint32_t srqn)
{
	return md_cmd(e->md, QHCA_CMD_DESTROY_SRQ, srqn, 0, NULL, 0, NULL, 0,
		      NULL);
}

/*
 * A target in error flushes the receive that it holds to the SRQ's CQ, and then reports
 * the event.
 */
static void xrc_flush(struct pair *p)
{
	post_recv(&p->b, 16384);
	post_recv(&p->b, 16384);
	begin_message(p, QHCA_WQE_SEND);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_ERR, 0, NULL), 0);
	settle(p);
	EXPECT_RECV(&p->b, &p->b.rcq, &p->b.srq, QHCA_WC_WR_FLUSH_ERR);
	expect_none(&p->b.rcq);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_LAST_WQE);
	CHECK_EQ(next_event(&p->b, 0), 0);
	EXPECT(&p->a.scq, 0, QHCA_WC_RETRY_EXC_ERR);
	/* RESET does likewise, and has no events. */
	p->a.conn.sq_psn = p->b.conn.rq_psn = 4;
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_RESET, 0, NULL), 0);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET, 0, NULL), 0);
	begin_message(p, QHCA_WQE_SEND);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET, 0, NULL), 0);
	EXPECT_RECV(&p->b, &p->b.rcq, &p->b.srq, QHCA_WC_WR_FLUSH_ERR);
	CHECK_EQ(next_event(&p->b, 0), 0);
}

/*
 * No QP refers to an XRC SRQ: the driver may destroy it in the middle of a message, and
 * another SRQ may get its number, but no part of that message.
 */
static void srq_goes(struct pair *p, bool same_domain)
{
	uint32_t srqn = p->b.srq.srqn;
	struct md_srq next;

	post_recv(&p->b, 16384);
	begin_message(p, QHCA_WQE_SEND);
	CHECK_EQ(destroy_srq(&p->b, srqn), 0);
	p->b.md->next_srqn = srqn;
	CHECK_EQ(md_xsrq_create(p->b.md, &next, PAIR_PD, 4, 6,
				PAIR_XRCD + !same_domain, &p->b.scq), 0);
	CHECK_EQ(next.srqn, srqn);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_REM_INV_REQ_ERR);
	expect_none(&p->b.rcq);
	expect_none(&p->b.scq);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_REQ_ERROR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_LAST_WQE);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RESET, 0, NULL), 0);
	expect_none(&p->b.scq);
}

static void xrc_srq_goes(struct pair *p)
{
	srq_goes(p, true);
}

static void xrc_srq_goes_elsewhere(struct pair *p)
{
	srq_goes(p, false);
}

/* A READ is answered by the protection domain of its SRQ, or not at all. */
static void xrc_srq_goes_in_read(struct pair *p)
{
	begin_message(p, QHCA_WQE_READ);
	CHECK_EQ(destroy_srq(&p->b, p->b.srq.srqn), 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_REM_ACCESS_ERR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_ACCESS_ERROR);
}

/* An initiator does not answer a request. */
static void xrc_initiators(struct pair *p)
{
	struct md_qp_init init = p->a.qp.init;
	struct md_qp ini;

	init.send_cq = &p->b.scq;
	CHECK_EQ(md_qp_create(p->b.md, &ini, &init), 0);
	p->a.conn.dest_qpn = ini.qpn;
	connect_pair(p);
	md_qp_connect(p->b.md, &ini, &p->b.conn);
	post_recv(&p->b, 100);
	request(p, QHCA_WQE_SEND, 8, p->b.srq.srqn, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_RETRY_EXC_ERR);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_rx_dropped), 4);
	expect_none(&p->b.rcq);
	CHECK_EQ(next_event(&p->b, 0), 0);
}

static void xrc_commands(struct pair *p)
{
	struct md_qp_init init = { .type = QHCA_QPT_RC, .pd = PAIR_PD,
		.sq_log_depth = 2, .sq_log_stride = 7, .send_cq = &p->b.scq,
		.recv_cq = &p->b.scq, .srq = &p->b.srq };
	struct md_qp qp;

	/* An SRQ for XRC cannot be the SRQ of a QP. */
	CHECK_EQ(md_qp_create(p->b.md, &qp, &init), QHCA_CMD_BAD_STATE);
	/* The CQ cannot be destroyed before the SRQ. */
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_DESTROY_CQ, p->b.rcq.cqn, 0, NULL, 0,
			NULL, 0, NULL), QHCA_CMD_IN_USE);
	connect_pair(p);
	/* A target has nothing to drain. */
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_SQD,
			      QHCA_QP_ATTR_SQD_EVENT, NULL), 0);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_SQ_DRAINED);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_SQD,
			      QHCA_QP_ATTR_TIMEOUT, &p->b.conn), 0);
	CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, QHCA_QPS_RTS, 0, NULL), 0);
	post_recv(&p->b, 8);
	request(p, QHCA_WQE_SEND, 8, p->b.srq.srqn, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	EXPECT_RECV(&p->b, &p->b.rcq, &p->b.srq, 0);
	CHECK_EQ(destroy_srq(&p->b, p->b.srq.srqn), 0);
}

#define XRC(fn) { #fn, fn, { .type = QHCA_QPT_XRC_INI, .xrc = true } }

const struct scenario xrc_scenarios[] = {
	XRC(xrc_requests), XRC(xrc_wrong_srq), XRC(xrc_domain_of_keys),
	XRC(xrc_rnr), XRC(xrc_flush), XRC(xrc_srq_goes),
	XRC(xrc_srq_goes_elsewhere), XRC(xrc_srq_goes_in_read),
	XRC(xrc_initiators), XRC(xrc_commands),
	{ 0 }
};
