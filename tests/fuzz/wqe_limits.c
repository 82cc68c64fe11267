// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The limits of a queue pair: how many segments and how much inline data a request may
 * have, and how many segments a receive.
 *
 * An entry of a queue has room for more segments than the queue pair may have, and what
 * lies there are good segments.  A device that does not compare the number of segments
 * with the limit, or compares it wrongly, therefore executes the request, harms nothing
 * and is noticed by no other check.  Here it is known for each request whether the
 * device has to execute it: within the limits it must succeed, and beyond them it must
 * fail.  The villain cannot reach the queues of this queue pair, which belongs to the
 * bystander's process, and the frames on the link that it may change are not those of
 * this queue pair.
 */
#include "transport/transport.h"
#include "wqe_script.h"

#define LIM_LOG_STRIDE	8		/* room for 12 segments */
#define LIM_ROOM	12u
#define LIM_SEND	3u		/* segments of a request */
#define LIM_INLINE	(16 * LIM_SEND)
#define LIM_LOG_RSTRIDE	7		/* room for 7 segments */
#define LIM_RROOM	7u
#define LIM_RECV	2u		/* segments of a receive */
#define LIM_BYTES	64u		/* of a segment */
#define LIM_LEN		(LIM_ROOM * LIM_BYTES)
#define LIM_AT		4096u		/* in the bystander's region, behind its data */

void make_limits(struct side *s)
{
	struct md_qp_init init = {
		.type = QHCA_QPT_RC, .sq_log_depth = LOG_DEPTH,
		.sq_log_stride = LIM_LOG_STRIDE, .rq_log_depth = LOG_DEPTH,
		.rq_log_stride = LIM_LOG_RSTRIDE, .sq_max_sge = LIM_SEND,
		.rq_max_sge = LIM_RECV, .pd = BYSTANDER_PD,
		.db_page = BYSTANDER_PAGE, .send_cq = &s->lim_cq,
		.recv_cq = &s->lim_cq,
	};

	make_cq(s, &s->lim_cq, 5);
	must(md_qp_create(s->md, &s->lim, &init), "CREATE_QP");
	guard_allow_buf(s->g, &s->lim.buf, s->lim.rec_offset + 64, 64);
}

void connect_limits(struct script *x, uint32_t psn)
{
	struct md_conn c = {
		.sq_psn = psn, .rq_psn = psn, .access = ALL_RIGHTS,
		.mtu = QHCA_MTU_256, .timeout = 10, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 1, .max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
	};

	x->lim_psn = psn;
	for (unsigned int i = 0; i < 2; i++) {
		struct side *s = &x->side[i], *to = &x->side[!i];

		c.dest_qpn = to->lim.qpn;
		md_av(s->md, &c.av, to->md->mac[5], false);
		md_qp_connect(s->md, &s->lim, &c);
	}
}

/* The next completion of the queue pair, which must come. */
static uint8_t completion(struct script *x, struct side *s, const char *what)
{
	struct qhca_cqe cqe;

	for (int i = 0; i < BYSTANDER_ROUNDS; i++) {
		if (md_poll(&s->lim_cq, &cqe))
			return cqe.status;
		pump(x, 64);
	}
	guard_fail("the %s of the queue pair with limits does not complete", what);
}

static void good_segments(struct side *s, struct md_sge *sge, uint32_t num)
{
	for (uint32_t i = 0; i < num; i++)
		sge[i] = (struct md_sge){ RW_IOVA + LIM_AT + i * LIM_BYTES,
					  LIM_BYTES, s->by_mr.key };
}

static void post_request(struct side *s, const struct md_wr *wr, uint8_t num_sge)
{
	uint32_t slot = s->lim.sq_pi % DEPTH;

	md_post_send(s->md, &s->lim, wr);
	/* The number alone may claim more segments than the entry has room for. */
	md_buf_write(s->md, &s->lim.buf, s->lim.sq_offset +
		     ((uint64_t)slot << LIM_LOG_STRIDE) +
		     offsetof(struct qhca_sq_wqe, num_sge), &num_sge, 1);
	guard_doorbell(s->g, BYSTANDER_PAGE, QHCA_DB_SQ,
		       (uint64_t)s->lim.sq_pi << 32 | s->lim.qpn);
}

static void check(const char *what, uint32_t is, uint32_t limit, uint8_t status)
{
	if (is > limit && !status)
		guard_fail("a %s with %u is executed, at most %u are allowed",
			   what, is, limit);
	if (is <= limit && status)
		guard_fail("a %s with %u ends with status %u, %u are allowed",
			   what, is, status, limit);
}

/*
 * Both queue pairs back to work, with other PSNs: a frame of an old request that is
 * still on the link belongs to no new one.
 */
static void start_again(struct script *x)
{
	struct qhca_cqe cqe;

	for (unsigned int i = 0; i < 2; i++)
		must(md_qp_modify(x->side[i].md, &x->side[i].lim, QHCA_QPS_RESET,
				  0, NULL), "to RESET");
	for (unsigned int i = 0; i < 2; i++)
		while (md_poll(&x->side[i].lim_cq, &cqe))
			;
	connect_limits(x, x->lim_psn + 0x10000);
}

/* A WRITE of so many segments, or with so much inline data. */
static void check_request(struct script *x, struct side *from, struct side *to)
{
	struct md_sge sge[LIM_ROOM];
	uint8_t data[LIM_ROOM * 16] = { 0 }, num = in_u8(x->in);
	struct md_wr wr = {
		.opcode = QHCA_WQE_WRITE, .flags = QHCA_WQE_F_SIGNALED,
		.sge = sge, .raddr = RW_IOVA + LIM_AT, .rkey = to->by_mr.key,
	};

	if (num & 1) {
		wr.flags |= QHCA_WQE_F_INLINE;
		wr.inline_data = data;
		wr.inline_len = num / 2 % sizeof(data);
		post_request(from, &wr, 0);
		check("request", wr.inline_len, LIM_INLINE,
		      completion(x, from, "request"));
		return;
	}
	num /= 2;
	wr.num_sge = num < LIM_ROOM ? num : LIM_ROOM;
	good_segments(from, sge, wr.num_sge);
	post_request(from, &wr, num);
	check("request", num, LIM_SEND, completion(x, from, "request"));
}

/* A SEND of one segment to a receive of so many. */
static void check_receive(struct script *x, struct side *from, struct side *to)
{
	uint8_t num = 1 + in_below(x->in, LIM_RROOM), status;
	struct md_sge room[LIM_RROOM], sge;
	struct md_wr wr = {
		.opcode = QHCA_WQE_SEND, .flags = QHCA_WQE_F_SIGNALED,
		.sge = &sge, .num_sge = 1,
	};

	good_segments(to, room, num);
	good_segments(from, &sge, 1);
	md_post_recv(to->md, &to->lim, 1, room, num);
	post_request(from, &wr, 1);
	status = completion(x, to, "receive");
	check("receive", num, LIM_RECV, status);
	check("receive's sender", num, LIM_RECV, completion(x, from, "request"));
}

void check_limits(struct script *x)
{
	uint8_t how = in_u8(x->in);
	struct side *from = &x->side[how & 1], *to = &x->side[!(how & 1)];

	/* A villain in the kernel can reach all queues, so the check proves nothing. */
	if (x->kernel)
		return;
	/* The link may lose more packets than the QP repeats. */
	x->tamper = 0;
	if (how & 2)
		check_receive(x, from, to);
	else
		check_request(x, from, to);
	start_again(x);
}
