/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page faults: each rule of hardware.rst, Page faults, for faults that are resolved.
 * The scenario acts as the driver, so that it can check what happens before the page is
 * present.
 */
#include <string.h>

#include "cold.h"
#include "wire/pkt.h"

/* ---- the responder refuses and waits */

/* Faults of all causes; those of @cause are @num of them, and there are no others. */
static void count_causes(const struct end *e, enum qhca_fault_cause cause,
			 uint64_t num)
{
	static const enum qhca_counter counters[] = {
		[QHCA_FAULT_GATHER] = QHCA_CNT_fault_gather,
		[QHCA_FAULT_SCATTER] = QHCA_CNT_fault_scatter,
		[QHCA_FAULT_RECV] = QHCA_CNT_fault_recv,
		[QHCA_FAULT_RDMA_W] = QHCA_CNT_fault_rdma_write,
		[QHCA_FAULT_RDMA_R] = QHCA_CNT_fault_rdma_read,
		[QHCA_FAULT_ATOMIC] = QHCA_CNT_fault_atomic,
	};

	CHECK_EQ(count_of(e, QHCA_CNT_page_faults1), num);
	CHECK_EQ(count_of(e, counters[cause]), num);
}

/* @opcode of @len bytes into cold memory of b; its fault is as @want. */
static void nak_and_hint(struct pair *p, uint8_t opcode, uint32_t len,
			 enum qhca_fault_cause cause, uint32_t flags,
			 bool hint)
{
	struct sniff s;
	struct cold c;
	uint32_t token;
	uint64_t at;

	p->b.conn.min_rnr_timer = 31;		/* 491 ms */
	connect_pair(p);
	c = cold_make(&p->b);
	sniff_start(p, &s);
	fill_bytes(&p->a, len, 3);
	if (cause == QHCA_FAULT_RECV)
		recv_cold(&p->b, &c, len);
	post_to_cold(p, &c, opcode, len, cause == QHCA_FAULT_ATOMIC ? 4 : 0);
	run_for(p, 1000000);
	CHECK_EQ(s.rnr, 1);
	CHECK_EQ(s.rnr_psn, 0xfffffa);
	CHECK_EQ(s.syndrome, 0x20 | 31);
	token = TAKE_FAULT(&p->b, &c, cause, flags, 0,
			   COLD_IOVA + (cause == QHCA_FAULT_ATOMIC ? 4 : 0),
			   len > PAGE_LEFT && cause == QHCA_FAULT_RECV ?
			   1024 : len);
	/* No byte moves, the device sends nothing and reports no other fault. */
	run_for(p, 20000000);
	CHECK_EQ(c.odp->mr.buf.page[0], 0);
	CHECK(s.request_time < s.rnr_time);
	expect_none(&p->a.scq);
	NO_FAULT(&p->b);
	at = p->w.now;
	cold_resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_EQ(s.rnr, 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_unsolicited_acks), hint);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_rx_unsolicited_acks), hint);
	if (hint)
		CHECK(s.request_time - at < 491520000u / 4);
	else
		CHECK(s.request_time - s.rnr_time >= 491520000u);
	if (cause != QHCA_FAULT_ATOMIC)
		CHECK_COLD(&p->b, &c, 0, len, 3);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_rnr_fault1), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_rnr_no_wqe), 0);
	count_causes(&p->b, cause, 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_fault_resumes), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_fault_us_65536), 1);
	CHECK_EQ(md_resume(p->b.md, token, true), QHCA_CMD_BAD_INDEX);
	CHECK_EQ(md_frames_check(p->b.md, c.frames), 0);
}

static void write_waits(struct pair *p)
{
	nak_and_hint(p, QHCA_WQE_WRITE, 9000, QHCA_FAULT_RDMA_W, WRITE_FLAGS,
		     true);
}

static void send_waits(struct pair *p)
{
	nak_and_hint(p, QHCA_WQE_SEND, 9000, QHCA_FAULT_RECV, QHCA_FAULT_WRITE,
		     true);
	if (p->b.qp.init.srq)
		CHECK_EQ(p->b.srq.pi, 1);
}

static void atomic_waits(struct pair *p)
{
	nak_and_hint(p, QHCA_WQE_FETCH_ADD, 8, QHCA_FAULT_ATOMIC, WRITE_FLAGS,
		     true);
}

/* The time from each fault to its resume is in the bin of the histogram that holds it. */
static void times_are_counted(struct pair *p)
{
	static const struct {
		enum qhca_counter bin;
		uint64_t us;
	} cases[] = {
		{ QHCA_CNT_fault_us_16, 12 }, { QHCA_CNT_fault_us_64, 40 },
		{ QHCA_CNT_fault_us_256, 160 }, { QHCA_CNT_fault_us_1024, 640 },
		{ QHCA_CNT_fault_us_4096, 2560 },
		{ QHCA_CNT_fault_us_16384, 10240 },
		{ QHCA_CNT_fault_us_65536, 40960 },
		{ QHCA_CNT_fault_us_262144, 163840 },
		{ QHCA_CNT_fault_us_more, 655360 },
	};
	struct cold c;

	p->a.conn.rnr_retry = 7;
	connect_pair(p);
	c = cold_make(&p->b);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		uint32_t token;

		post_to_cold(p, &c, QHCA_WQE_WRITE, 8, 0);
		run_for(p, cases[i].us * 1000);
		token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS, 0,
				   COLD_IOVA, 8);
		CHECK_EQ(count_of(&p->b, cases[i].bin), 0);
		cold_resume(&p->b, &c, token);
		CHECK_EQ(count_of(&p->b, cases[i].bin), 1);
		settle(p);
		EXPECT(&p->a.scq, i, 0);
		md_odp_unmap(c.odp, 0, md_odp_pages(c.odp));
	}
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		CHECK_EQ(count_of(&p->b, cases[i].bin), 1);
}

/* The same without unsolicited ACKs: the timer alone. */
static void timer_alone(struct pair *p)
{
	nak_and_hint(p, QHCA_WQE_WRITE, 9000, QHCA_FAULT_RDMA_W, WRITE_FLAGS,
		     false);
}

/* A message that meets the cold page in its middle goes on from there. */
static void middle_of_message(struct pair *p)
{
	uint32_t len = PAGE_LEFT + 5000, packets = PAGE_LEFT / 1024;
	uint32_t token;
	struct sniff s;
	struct cold c;

	connect_pair(p);
	c = cold_make(&p->b);
	md_odp_map(c.odp, 0, true);
	sniff_start(p, &s);
	fill_bytes(&p->a, len, 9);
	post_to_cold(p, &c, QHCA_WQE_WRITE, len, 0);
	run_for(p, 1000000);
	CHECK_EQ(s.rnr_psn, (0xfffffa + packets) & 0xffffff);
	/* The packet crosses the edge: not a byte of it is written. */
	CHECK_COLD(&p->b, &c, 0, packets * 1024, 9);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS,
			   PAGE_LEFT, COLD_IOVA + PAGE_LEFT, 5000);
	cold_resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_COLD(&p->b, &c, 0, len, 9);
}

/* The timer by class; one event, however often the requester repeats its request. */
static void repetitions_coalesce(struct pair *p)
{
	/* No wait is longer than the fault has lasted, once it has lasted for 10.24 ms. */
	static const uint8_t codes[] = { 14, 20, 20, 22, 24, 26, 28, 30, 31, 31 };
	const uint32_t num = sizeof(codes);
	uint32_t token, n;
	struct sniff s;
	struct cold c;

	p->a.conn.rnr_retry = 7;
	connect_pair(p);
	c = cold_make(&p->b);
	sniff_start(p, &s);
	fill_bytes(&p->a, 100, 1);
	post_to_cold(p, &c, QHCA_WQE_WRITE, 100, 0);
	run_for(p, 1000000);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS, 0,
			   COLD_IOVA, 100);
	for (n = 1; n <= num; n++) {
		CHECK_EQ(s.rnr, n);
		CHECK_EQ(s.syndrome, 0x20 | codes[n - 1]);
		run_for(p, hca_rnr_time(codes[n - 1]));
	}
	CHECK_EQ(count_of(&p->b, QHCA_CNT_faults_coalesced), n - 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_rnr_fault1), n);
	NO_FAULT(&p->b);
	cold_resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
}

/* A fault that lasts longer than the peer retries. */
static void rnr_retries_run_out(struct pair *p)
{
	struct cold c;

	p->a.conn.rnr_retry = 2;
	connect_pair(p);
	c = cold_make(&p->b);
	post_to_cold(p, &c, QHCA_WQE_WRITE, 100, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_RNR_RETRY_EXC_ERR);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
}

/* A QP that is resumed without the page faults again, with another token. */
static void resumed_too_early(struct pair *p)
{
	uint32_t token[2];
	struct cold c;

	p->a.conn.rnr_retry = 7;
	connect_pair(p);
	c = cold_make(&p->b);
	fill_bytes(&p->a, 100, 1);
	post_to_cold(p, &c, QHCA_WQE_WRITE, 100, 0);
	for (int i = 0; i < 2; i++) {
		run_for(p, 1000000);
		token[i] = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS,
				      0, COLD_IOVA, 100);
		CHECK_EQ(md_resume(p->b.md, token[i], true), 0);
	}
	CHECK(token[0] != token[1]);
	CHECK_EQ(md_resume(p->b.md, token[0], true), QHCA_CMD_BAD_INDEX);
	run_for(p, 1000000);
	cold_resume(&p->b, &c, TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS,
				     0, COLD_IOVA, 100));
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
}

/* ---- READ: the answer waits */

static void read_waits(struct pair *p)
{
	uint32_t token;
	struct sniff s;
	struct cold c;
	uint8_t data[5000];

	p->a.conn.retry_cnt = 7;
	connect_pair(p);
	c = cold_make(&p->b);
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = i;
	md_buf_write(p->b.md, &c.odp->mr.buf, COLD_IOVA % MD_PAGE, data,
		     sizeof(data));
	sniff_start(p, &s);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	post_to_cold(p, &c, QHCA_WQE_READ, sizeof(data), 0);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	run_for(p, 1000000);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_R, QHCA_FAULT_RDMA, 0,
			   COLD_IOVA, sizeof(data));
	/* The packets before it are acknowledged, those after it wait. */
	EXPECT(&p->a.scq, 0, 0);
	CHECK_EQ(s.responses, 0);
	CHECK_EQ(s.rnr, 0);
	/* When its peer repeats it, it is still one fault. */
	run_for(p, 10000000);
	CHECK(count_of(&p->b, QHCA_CNT_duplicate_requests) > 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_faults_coalesced), 0);
	CHECK_EQ(s.responses, 0);
	NO_FAULT(&p->b);
	cold_resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 1, 0, 0);
	CHECK_EQ(s.responses, 5);
	CHECK_EQ(s.rnr, 0);
	count_causes(&p->b, QHCA_FAULT_RDMA_R, 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_unsolicited_acks), 0);
	get_bytes(&p->a, 0, data, sizeof(data));
	for (uint32_t i = 0; i < sizeof(data); i++)
		CHECK_EQ(data[i], (uint8_t)i);
}

/* The other direction of a QP goes on, and so does another QP. */
static void others_go_on(struct pair *p)
{
	const struct pair_options o = { .type = QHCA_QPT_RC };
	struct end a2, b2;
	uint32_t token;
	struct cold c;

	p->a.conn.rnr_retry = 7;
	connect_pair(p);
	open_second(p, &a2, &b2, &o);
	c = cold_make(&p->b);
	post_to_cold(p, &c, QHCA_WQE_WRITE, 100, 0);
	run_for(p, 1000000);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS, 0,
			   COLD_IOVA, 100);
	for (uint32_t i = 0; i < 50; i++) {
		uint64_t from = p->w.now;
		struct qhca_cqe cqe;

		post_at(p, &a2, QHCA_WQE_WRITE, a2.mr.iova, a2.mr.key, 8000,
			b2.mr.iova + 32768, b2.mr.key);
		post(p, &p->b, QHCA_WQE_WRITE, 8000, 0);
		run_for(p, 500000);
		CHECK(md_poll(&a2.scq, &cqe) && !cqe.status);
		CHECK(md_poll(&p->b.scq, &cqe) && !cqe.status);
		CHECK(p->w.now - from < TIMER_NEW / 2);
	}
	expect_none(&p->a.scq);
	cold_resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	close_second(&a2, &b2);
}

/* ---- the requester waits */

/* The source of the message that a sends is not present. */
static void gather_waits(struct pair *p)
{
	bool ud = is_datagram(p);
	uint32_t len = ud ? 3000 : 9000, token;
	struct sniff s;
	struct cold c;

	connect_pair(p);
	c = cold_make(&p->a);
	sniff_start(p, &s);
	post_recv(&p->b, 10000);
	post_at(p, &p->a, QHCA_WQE_SEND, COLD_IOVA + 1000, c.odp->mr.key, len,
		0, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	run_for(p, 50000000);
	/* The bytes of present pages have been sent, and no more. */
	CHECK_EQ(s.requests, 0);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_GATHER, QHCA_FAULT_REQUESTER, 0,
			   COLD_IOVA + 1000, len);
	md_odp_map(c.odp, 0, false);
	CHECK_EQ(md_resume(p->a.md, token, true), 0);
	run_for(p, 50000000);
	/* Then comes the next page, in the middle of the message: nobody has to ask for it. */
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_GATHER, QHCA_FAULT_REQUESTER,
			   PAGE_LEFT - 1000, COLD_IOVA + PAGE_LEFT,
			   len - (PAGE_LEFT - 1000));
	CHECK_EQ(s.requests, ud ? 0 : (PAGE_LEFT - 1000) / 1024);
	post_recv(&p->b, 10000);
	cold_resume(&p->a, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0);
	EXPECT(&p->b.rcq, 0, 0, 0);
	count_causes(&p->a, QHCA_FAULT_GATHER, 2);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 0);
}

/* The target of a response is not present: a uses up no retry, and nothing is lost. */
static void scatter_waits(struct pair *p)
{
	uint64_t eight = 0;
	uint32_t token;
	struct cold c;

	p->a.conn.retry_cnt = 0;
	connect_pair(p);
	c = cold_make(&p->a);
	fill_bytes(&p->b, 100, 0);
	post_at(p, &p->a, QHCA_WQE_READ, COLD_IOVA, c.odp->mr.key, 9000,
		p->b.mr.iova, p->b.mr.key);
	post_at(p, &p->a, QHCA_WQE_FETCH_ADD, COLD_IOVA + 16000, c.odp->mr.key,
		8, p->b.mr.iova + 40960, p->b.mr.key);
	post(p, &p->a, QHCA_WQE_WRITE, 100, 0);
	run_for(p, 100000000);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_SCATTER, QHCA_FAULT_REQUESTER |
			   QHCA_FAULT_WRITE, 0, COLD_IOVA, 9000);
	for (uint32_t i = 0; i < 3; i++)
		md_odp_map(c.odp, i, true);
	CHECK_EQ(md_resume(p->a.md, token, true), 0);
	run_for(p, 100000000);
	EXPECT(&p->a.scq, 0, 0);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_SCATTER, QHCA_FAULT_REQUESTER |
			   QHCA_FAULT_WRITE, 0, COLD_IOVA + 16000, 8);
	cold_resume(&p->a, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 1, 0, 0);
	/* It is executed once, though it was requested twice. */
	get_bytes(&p->b, 40960, &eight, 8);
	CHECK_EQ(get_le64(&eight), 5);
	md_buf_read(p->a.md, &c.odp->mr.buf, 16000 + COLD_IOVA % MD_PAGE,
		    &eight, 8);
	CHECK_EQ(get_le64(&eight), 0);
	count_causes(&p->a, QHCA_FAULT_SCATTER, 2);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retry_exceeded), 0);
}

/*
 * The driver takes away the source of a later request as soon as it is present: the
 * device nevertheless reports the fault of the oldest request.
 */
static void scatter_is_not_starved(struct pair *p)
{
	struct qhca_fault_info f;
	struct cold c, d;
	uint32_t qpn, stale = 0;
	int faults = 0;

	p->a.conn.retry_cnt = 0;
	connect_pair(p);
	c = cold_make(&p->a);
	d = cold_make(&p->a);
	fill_bytes(&p->b, 3000, 6);
	post_at(p, &p->a, QHCA_WQE_READ, COLD_IOVA, c.odp->mr.key, 3000,
		p->b.mr.iova, p->b.mr.key);
	post_at(p, &p->a, QHCA_WQE_WRITE, COLD_IOVA, d.odp->mr.key, 100,
		p->b.mr.iova + 40960, p->b.mr.key);
	while (!md_odp_is_mapped(c.odp, 0) && ++faults < 20) {
		run_for(p, 1000000);
		if (!md_fault(p->a.md, &qpn, &f))
			continue;
		/* Its page has gone again before the packet could be repeated. */
		if (get_le32(&f.key) == d.odp->mr.key) {
			stale = get_le32(&f.token);
			md_resume(p->a.md, stale, true);
			continue;
		}
		CHECK_EQ(get_le32(&f.flags) & QHCA_FAULT_CAUSE,
			 QHCA_FAULT_SCATTER << 4);
		CHECK_EQ(md_resume(p->a.md, stale, true), QHCA_CMD_BAD_INDEX);
		cold_resume(&p->a, &c, get_le32(&f.token));
	}
	CHECK(faults < 5);
	run_for(p, 1000000);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_COLD(&p->a, &c, 0, 3000, 6);
	CHECK(md_fault(p->a.md, &qpn, &f));
	CHECK_EQ(get_le32(&f.key), d.odp->mr.key);
	cold_resume(&p->a, &d, get_le32(&f.token));
	settle(p);
	EXPECT(&p->a.scq, 1, 0);
	CHECK(count_of(&p->a, QHCA_CNT_faults_forgotten) > 0);
}

/* A page is taken while the packet that had it is sent again. */
static void gather_of_repetition(struct pair *p)
{
	uint32_t token, n = 1;
	struct sniff s;
	struct cold c;

	connect_pair(p);
	c = cold_make(&p->a);
	cold_map(&c);
	sniff_start(p, &s);
	p->w.filter = NULL;
	p->w.link.loss = 1000000;
	post_at(p, &p->a, QHCA_WQE_WRITE, COLD_IOVA, c.odp->mr.key, 3000,
		p->b.mr.iova, p->b.mr.key);
	run_for(p, 100000);
	p->w.link.loss = 0;
	md_odp_take(c.odp, 0);
	run_for(p, 100000000);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_GATHER, QHCA_FAULT_REQUESTER, 0,
			   COLD_IOVA, 3000);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), n);
	cold_resume(&p->a, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_EQ(md_frames_check(p->a.md, c.frames), 0);
}

/* ---- unreliable: dropped, and the page is there for the next */

static void unreliable_drops(struct pair *p)
{
	bool ud = is_datagram(p);
	uint32_t token;
	struct cold c;

	connect_pair(p);
	c = cold_make(&p->b);
	recv_cold(&p->b, &c, 3000);
	fill_bytes(&p->a, 2000, 4);
	post(p, &p->a, QHCA_WQE_SEND, 2000, 0);
	post(p, &p->a, QHCA_WQE_SEND, 2000, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0);
	expect_none(&p->b.rcq);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RECV, QHCA_FAULT_WRITE, 0,
			   COLD_IOVA, ud ? 40 : 1024);
	NO_FAULT(&p->b);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_fault_dropped), 2);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_faults_coalesced), 1);
	cold_resume(&p->b, &c, token);
	post(p, &p->a, QHCA_WQE_SEND, 2000, 0);
	settle(p);
	EXPECT(&p->a.scq, 2, 0);
	EXPECT(&p->b.rcq, 0, 0);
	CHECK_COLD(&p->b, &c, ud ? 40 : 0, 2000, 4);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_rnr_fault1), 0);
}

const struct scenario fault_scenarios[] = {
	RC(write_waits), RC(send_waits),
	NAMED(RC, "send_waits (SRQ)", send_waits, .srq = true),
	RC(atomic_waits),
	RC(timer_alone, .init_flags = QHCA_INIT_NO_UNSOL_ACK),
	RC(middle_of_message), RC(repetitions_coalesce), RC(rnr_retries_run_out),
	RC(times_are_counted), RC(resumed_too_early), RC(read_waits), RC(others_go_on), RC(gather_waits),
	NAMED(UC, "gather_waits (UC)", gather_waits),
	NAMED(UD, "gather_waits (UD)", gather_waits), RC(scatter_waits),
	RC(scatter_is_not_starved), RC(gather_of_repetition),
	NAMED(UC, "unreliable_drops (UC)", unreliable_drops),
	NAMED(UD, "unreliable_drops (UD)", unreliable_drops),
	{ 0 }
};
