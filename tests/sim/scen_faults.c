/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Page faults: each rule of hardware.rst, Page faults.  The scenario plays the
 * driver, so that it can look at what happens before a page is there.
 */
#include <string.h>

#include "odp.h"
#include "pair.h"
#include "pkt.h"

#define COLD_IOVA	0x40000234ull
#define COLD_LEN	(24u << 10)
#define TIMER_NEW	1280000u	/* ns */
#define TIMER_OLD	10240000u

struct sniff {				/* what b and a say on the wire */
	struct world *w;
	uint32_t rnr, rnr_psn;
	uint8_t syndrome;
	uint64_t rnr_time;
	uint32_t acks, responses, requests;
	uint64_t request_time;		/* of the last one from a */
	uint32_t request_psn;
};

struct cold {				/* a region of an end, nothing of it there */
	struct md_odp *odp;
	struct md_frames *frames;
};

static bool listen(struct world *w, unsigned int from, uint8_t *frame,
		   size_t len)
{
	struct sniff *s = w->filter_arg;
	const uint8_t *bth = frame + 42;
	uint32_t psn = bth[9] << 16 | bth[10] << 8 | bth[11];
	uint8_t op = bth[0] & 31;

	(void)len;
	if (!from && (op < QHCA_OP_READ_RESP_FIRST || op > QHCA_OP_ATOMIC_ACK)) {
		s->requests++;
		s->request_time = w->now;
		s->request_psn = psn;
	} else if (from && op == QHCA_OP_ACK) {
		uint8_t syndrome = bth[12];

		s->acks += !(syndrome >> 5);
		if (syndrome >> 5 == 1) {
			s->rnr++;
			s->rnr_psn = psn;
			s->syndrome = syndrome;
			s->rnr_time = w->now;
		}
	} else if (from) {
		s->responses++;
	}
	return true;
}

static void start_sniff(struct pair *p, struct sniff *s)
{
	*s = (struct sniff){ .w = &p->w };
	p->w.filter = listen;
	p->w.filter_arg = s;
}

static struct cold make_cold(struct end *e)
{
	struct cold c = { .frames = md_frames_new(e->md, 12) };

	c.odp = md_odp_reg(e->md, c.frames, PAIR_PD, COLD_IOVA, COLD_LEN,
			   ALL_ACCESS);
	return c;
}

/* A request of @e whose local bytes are at @addr of @key, remote ones at @raddr. */
static void post_at(struct pair *p, struct end *e, uint8_t opcode,
		    uint64_t addr, uint32_t key, uint32_t len, uint64_t raddr,
		    uint32_t rkey)
{
	struct md_sge sge = { addr, len, key };
	struct md_wr wr = {
		.opcode = opcode, .flags = QHCA_WQE_F_SIGNALED, .num_sge = 1,
		.sge = &sge, .raddr = raddr, .rkey = rkey, .swap_add = 5,
		.ud = is_datagram(p) ? &p->ud : NULL,
	};

	post_wr(e, &wr);
}

/* From a's plain region to b's cold one. */
static void post_to_cold(struct pair *p, const struct cold *c, uint8_t opcode,
			 uint32_t len, uint32_t off)
{
	post_at(p, &p->a, opcode, p->a.mr.iova, p->a.mr.key, len,
		COLD_IOVA + off, c->odp->mr.key);
}

static void recv_cold(struct end *e, const struct cold *c, uint32_t len)
{
	struct md_sge sge = { COLD_IOVA, len, c->odp->mr.key };

	if (e->qp.init.srq)
		md_srq_post(e->md, e->qp.init.srq, e->qp.init.srq->pi, &sge, 1);
	else
		md_post_recv(e->md, &e->qp, e->qp.rq_pi, &sge, 1);
}

static void run(struct pair *p, uint64_t ns)
{
	world_run(&p->w, p->w.now + ns);
}

struct want {				/* of a fault */
	uint32_t flags, done;
	uint64_t addr, length;
};

/* The next fault of @e is this one; returns its token. */
static uint32_t take_fault(int line, struct end *e, const struct cold *c,
			   enum qhca_fault_cause cause, struct want want)
{
	struct qhca_fault_info f = { 0 };
	uint32_t qpn;

	if (!md_fault(e->md, &qpn, &f)) {
		check_failed(line, "no fault");
		return 0;
	}
	if (qpn != e->qp.qpn || get_le32(&f.key) != c->odp->mr.key ||
	    get_le32(&f.flags) != (want.flags | (uint32_t)cause << 4) ||
	    get_le64(&f.addr) != want.addr ||
	    get_le64(&f.length) != want.length ||
	    get_le32(&f.bytes_done) != want.done)
		check_failed(line, "fault: qp %u key %#x flags %#x at %#llx, %llu bytes, %u done",
			     qpn, get_le32(&f.key), get_le32(&f.flags),
			     (unsigned long long)get_le64(&f.addr),
			     (unsigned long long)get_le64(&f.length),
			     get_le32(&f.bytes_done));
	return get_le32(&f.token);
}
#define TAKE_FAULT(e, c, cause, ...) \
	take_fault(__LINE__, e, c, cause, (struct want){ __VA_ARGS__ })

static void expect_no_fault(int line, struct end *e)
{
	struct qhca_fault_info f;
	uint32_t qpn;

	if (md_fault(e->md, &qpn, &f))
		check_failed(line, "a fault of key %#x at %#llx",
			     get_le32(&f.key),
			     (unsigned long long)get_le64(&f.addr));
}
#define NO_FAULT(e) expect_no_fault(__LINE__, e)

static void map_all(const struct cold *c)
{
	for (uint32_t i = 0; i < md_odp_pages(c->odp); i++)
		md_odp_map(c->odp, i, true);
}

/* All pages are there and the fault is over. */
static void resume(struct end *e, const struct cold *c, uint32_t token)
{
	map_all(c);
	CHECK_EQ(md_resume(e->md, token, true), QHCA_CMD_OK);
}

static uint64_t cnt(const struct end *e, enum qhca_counter id)
{
	return qhca_counter(e->md->hca, id);
}

static void fill(struct end *e, uint32_t len, uint8_t first)
{
	uint8_t data[COLD_LEN];

	for (uint32_t i = 0; i < len; i++)
		data[i] = first + i * 7;
	put_bytes(e, 0, data, len);
}

static void check_cold(int line, struct end *e, const struct cold *c,
		       uint32_t off, uint32_t len, uint8_t first)
{
	uint8_t data[COLD_LEN];

	md_buf_read(e->md, &c->odp->mr.buf, off + COLD_IOVA % MD_PAGE, data,
		    len);
	for (uint32_t i = 0; i < len; i++)
		if (data[i] != (uint8_t)(first + i * 7)) {
			check_failed(line, "byte %u is %02x", i, data[i]);
			return;
		}
}
#define CHECK_COLD(e, c, off, len, first) \
	check_cold(__LINE__, e, c, off, len, first)

#define WRITE_FLAGS	(QHCA_FAULT_WRITE | QHCA_FAULT_RDMA)
#define PAGE_LEFT	(MD_PAGE - COLD_IOVA % MD_PAGE)

/* ---- the responder refuses and waits */

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
	c = make_cold(&p->b);
	start_sniff(p, &s);
	fill(&p->a, len, 3);
	if (cause == QHCA_FAULT_RECV)
		recv_cold(&p->b, &c, len);
	post_to_cold(p, &c, opcode, len, cause == QHCA_FAULT_ATOMIC ? 4 : 0);
	run(p, 1000000);
	CHECK_EQ(s.rnr, 1);
	CHECK_EQ(s.rnr_psn, 0xfffffa);
	CHECK_EQ(s.syndrome, 0x20 | 31);
	token = TAKE_FAULT(&p->b, &c, cause, flags, 0,
			   COLD_IOVA + (cause == QHCA_FAULT_ATOMIC ? 4 : 0),
			   len > PAGE_LEFT && cause == QHCA_FAULT_RECV ?
			   1024 : len);
	/* nothing moves, nothing is sent, and no other fault is told */
	run(p, 20000000);
	CHECK_EQ(c.odp->mr.buf.page[0], 0);
	CHECK(s.request_time < s.rnr_time);
	expect_none(&p->a.scq);
	NO_FAULT(&p->b);
	at = p->w.now;
	resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_EQ(s.rnr, 1);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_tx_unsolicited_acks), hint);
	CHECK_EQ(cnt(&p->a, QHCA_CNT_rx_unsolicited_acks), hint);
	if (hint)
		CHECK(s.request_time - at < 491520000u / 4);
	else
		CHECK(s.request_time - s.rnr_time >= 491520000u);
	if (cause != QHCA_FAULT_ATOMIC)
		CHECK_COLD(&p->b, &c, 0, len, 3);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_tx_rnr_fault1), 1);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_tx_rnr_no_wqe), 0);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_page_faults1), 1);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_fault_resumes), 1);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_fault_us_65536), 1);
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
	c = make_cold(&p->b);
	md_odp_map(c.odp, 0, true);
	start_sniff(p, &s);
	fill(&p->a, len, 9);
	post_to_cold(p, &c, QHCA_WQE_WRITE, len, 0);
	run(p, 1000000);
	CHECK_EQ(s.rnr_psn, (0xfffffa + packets) & 0xffffff);
	/* the packet that crosses the edge: not a byte of it */
	CHECK_COLD(&p->b, &c, 0, packets * 1024, 9);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS,
			   PAGE_LEFT, COLD_IOVA + PAGE_LEFT, 5000);
	resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_COLD(&p->b, &c, 0, len, 9);
}

/* The timer by class, one event however often the request comes. */
static void repetitions_coalesce(struct pair *p)
{
	uint32_t token, n;
	struct sniff s;
	struct cold c;

	p->a.conn.rnr_retry = 7;
	connect_pair(p);
	c = make_cold(&p->b);
	start_sniff(p, &s);
	fill(&p->a, 100, 1);
	post_to_cold(p, &c, QHCA_WQE_WRITE, 100, 0);
	run(p, 1000000);
	CHECK_EQ(s.syndrome, 0x20 | 14);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS, 0,
			   COLD_IOVA, 100);
	run(p, TIMER_NEW);
	CHECK_EQ(s.rnr, 2);
	CHECK_EQ(s.syndrome, 0x20 | 20);
	run(p, 10 * (TIMER_OLD + 100000));
	n = s.rnr;
	CHECK(n >= 10 && n <= 13);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_faults_coalesced), n - 1);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_tx_rnr_fault1), n);
	NO_FAULT(&p->b);
	resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
}

/* A fault longer than the peer's patience. */
static void rnr_retries_run_out(struct pair *p)
{
	struct cold c;

	p->a.conn.rnr_retry = 2;
	connect_pair(p);
	c = make_cold(&p->b);
	post_to_cold(p, &c, QHCA_WQE_WRITE, 100, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_RNR_RETRY_EXC_ERR);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
}

/* Resumed without the page: it faults again, by another name. */
static void resumed_too_early(struct pair *p)
{
	uint32_t token[2];
	struct cold c;

	p->a.conn.rnr_retry = 7;
	connect_pair(p);
	c = make_cold(&p->b);
	fill(&p->a, 100, 1);
	post_to_cold(p, &c, QHCA_WQE_WRITE, 100, 0);
	for (int i = 0; i < 2; i++) {
		run(p, 1000000);
		token[i] = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS,
				      0, COLD_IOVA, 100);
		CHECK_EQ(md_resume(p->b.md, token[i], true), 0);
	}
	CHECK(token[0] != token[1]);
	CHECK_EQ(md_resume(p->b.md, token[0], true), QHCA_CMD_BAD_INDEX);
	run(p, 1000000);
	resume(&p->b, &c, TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS,
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
	c = make_cold(&p->b);
	for (uint32_t i = 0; i < sizeof(data); i++)
		data[i] = i;
	md_buf_write(p->b.md, &c.odp->mr.buf, COLD_IOVA % MD_PAGE, data,
		     sizeof(data));
	start_sniff(p, &s);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	post_to_cold(p, &c, QHCA_WQE_READ, sizeof(data), 0);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	run(p, 1000000);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_R, QHCA_FAULT_RDMA, 0,
			   COLD_IOVA, sizeof(data));
	/* what came before is acknowledged, what came after waits */
	EXPECT(&p->a.scq, 0, 0);
	CHECK_EQ(s.responses, 0);
	CHECK_EQ(s.rnr, 0);
	/* repeated by its peer, it is still one */
	run(p, 10000000);
	CHECK(cnt(&p->b, QHCA_CNT_duplicate_requests) > 0);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_faults_coalesced), 0);
	CHECK_EQ(s.responses, 0);
	NO_FAULT(&p->b);
	resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 1, 0, 0);
	CHECK_EQ(s.responses, 5);
	CHECK_EQ(s.rnr, 0);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_tx_unsolicited_acks), 0);
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
	c = make_cold(&p->b);
	post_to_cold(p, &c, QHCA_WQE_WRITE, 100, 0);
	run(p, 1000000);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RDMA_W, WRITE_FLAGS, 0,
			   COLD_IOVA, 100);
	for (uint32_t i = 0; i < 50; i++) {
		uint64_t from = p->w.now;
		struct qhca_cqe cqe;

		post_at(p, &a2, QHCA_WQE_WRITE, a2.mr.iova, a2.mr.key, 8000,
			b2.mr.iova + 32768, b2.mr.key);
		post(p, &p->b, QHCA_WQE_WRITE, 8000, 0);
		run(p, 500000);
		CHECK(md_poll(&a2.scq, &cqe) && !cqe.status);
		CHECK(md_poll(&p->b.scq, &cqe) && !cqe.status);
		CHECK(p->w.now - from < TIMER_NEW / 2);
	}
	expect_none(&p->a.scq);
	resume(&p->b, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	close_second(&a2, &b2);
}

/* ---- the requester waits */

/* The source of what a sends is not there. */
static void gather_waits(struct pair *p)
{
	bool ud = is_datagram(p);
	uint32_t len = ud ? 3000 : 9000, token;
	struct sniff s;
	struct cold c;

	connect_pair(p);
	c = make_cold(&p->a);
	start_sniff(p, &s);
	post_recv(&p->b, 10000);
	post_at(p, &p->a, QHCA_WQE_SEND, COLD_IOVA + 1000, c.odp->mr.key, len,
		0, 0);
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	run(p, 50000000);
	/* what is there has gone, and no more */
	CHECK_EQ(s.requests, 0);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_GATHER, QHCA_FAULT_REQUESTER, 0,
			   COLD_IOVA + 1000, len);
	md_odp_map(c.odp, 0, false);
	CHECK_EQ(md_resume(p->a.md, token, true), 0);
	run(p, 50000000);
	/* then the next page, in the middle of the message: it need not be asked for */
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_GATHER, QHCA_FAULT_REQUESTER,
			   PAGE_LEFT - 1000, COLD_IOVA + PAGE_LEFT,
			   len - (PAGE_LEFT - 1000));
	CHECK_EQ(s.requests, ud ? 0 : (PAGE_LEFT - 1000) / 1024);
	post_recv(&p->b, 10000);
	resume(&p->a, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0);
	EXPECT(&p->b.rcq, 0, 0, 0);
	CHECK_EQ(cnt(&p->a, QHCA_CNT_ack_timeouts), 0);
	CHECK_EQ(cnt(&p->a, QHCA_CNT_retransmitted_packets), 0);
}

/* The target of a response is not there: no retry is used up, nothing is lost. */
static void scatter_waits(struct pair *p)
{
	uint64_t eight = 0;
	uint32_t token;
	struct cold c;

	p->a.conn.retry_cnt = 0;
	connect_pair(p);
	c = make_cold(&p->a);
	fill(&p->b, 100, 0);
	post_at(p, &p->a, QHCA_WQE_READ, COLD_IOVA, c.odp->mr.key, 9000,
		p->b.mr.iova, p->b.mr.key);
	post_at(p, &p->a, QHCA_WQE_FETCH_ADD, COLD_IOVA + 16000, c.odp->mr.key,
		8, p->b.mr.iova + 40960, p->b.mr.key);
	post(p, &p->a, QHCA_WQE_WRITE, 100, 0);
	run(p, 100000000);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_SCATTER, QHCA_FAULT_REQUESTER |
			   QHCA_FAULT_WRITE, 0, COLD_IOVA, 9000);
	for (uint32_t i = 0; i < 3; i++)
		md_odp_map(c.odp, i, true);
	CHECK_EQ(md_resume(p->a.md, token, true), 0);
	run(p, 100000000);
	EXPECT(&p->a.scq, 0, 0);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_SCATTER, QHCA_FAULT_REQUESTER |
			   QHCA_FAULT_WRITE, 0, COLD_IOVA + 16000, 8);
	resume(&p->a, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 1, 0, 0);
	/* done once, though it was asked for twice */
	get_bytes(&p->b, 40960, &eight, 8);
	CHECK_EQ(get_le64(&eight), 5);
	md_buf_read(p->a.md, &c.odp->mr.buf, 16000 + COLD_IOVA % MD_PAGE,
		    &eight, 8);
	CHECK_EQ(get_le64(&eight), 0);
	CHECK_EQ(cnt(&p->a, QHCA_CNT_retry_exceeded), 0);
}

/*
 * The source of a later request goes as soon as it has come: what the oldest one
 * waits for is told all the same.
 */
static void scatter_is_not_starved(struct pair *p)
{
	struct qhca_fault_info f;
	struct cold c, d;
	uint32_t qpn, stale = 0;
	int faults = 0;

	p->a.conn.retry_cnt = 0;
	connect_pair(p);
	c = make_cold(&p->a);
	d = make_cold(&p->a);
	fill(&p->b, 3000, 6);
	post_at(p, &p->a, QHCA_WQE_READ, COLD_IOVA, c.odp->mr.key, 3000,
		p->b.mr.iova, p->b.mr.key);
	post_at(p, &p->a, QHCA_WQE_WRITE, COLD_IOVA, d.odp->mr.key, 100,
		p->b.mr.iova + 40960, p->b.mr.key);
	while (!md_odp_is_mapped(c.odp, 0) && ++faults < 20) {
		run(p, 1000000);
		if (!md_fault(p->a.md, &qpn, &f))
			continue;
		/* its page has gone again before the packet could */
		if (get_le32(&f.key) == d.odp->mr.key) {
			stale = get_le32(&f.token);
			md_resume(p->a.md, stale, true);
			continue;
		}
		CHECK_EQ(get_le32(&f.flags) & QHCA_FAULT_CAUSE,
			 QHCA_FAULT_SCATTER << 4);
		CHECK_EQ(md_resume(p->a.md, stale, true), QHCA_CMD_BAD_INDEX);
		resume(&p->a, &c, get_le32(&f.token));
	}
	CHECK(faults < 5);
	run(p, 1000000);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_COLD(&p->a, &c, 0, 3000, 6);
	CHECK(md_fault(p->a.md, &qpn, &f));
	CHECK_EQ(get_le32(&f.key), d.odp->mr.key);
	resume(&p->a, &d, get_le32(&f.token));
	settle(p);
	EXPECT(&p->a.scq, 1, 0);
	CHECK(cnt(&p->a, QHCA_CNT_faults_forgotten) > 0);
}

/* A page is taken while the packet that had it is sent again. */
static void gather_of_repetition(struct pair *p)
{
	uint32_t token, n = 1;
	struct sniff s;
	struct cold c;

	connect_pair(p);
	c = make_cold(&p->a);
	map_all(&c);
	start_sniff(p, &s);
	p->w.filter = NULL;
	p->w.link.loss = 1000000;
	post_at(p, &p->a, QHCA_WQE_WRITE, COLD_IOVA, c.odp->mr.key, 3000,
		p->b.mr.iova, p->b.mr.key);
	run(p, 100000);
	p->w.link.loss = 0;
	md_odp_take(c.odp, 0);
	run(p, 100000000);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_GATHER, QHCA_FAULT_REQUESTER, 0,
			   COLD_IOVA, 3000);
	CHECK_EQ(cnt(&p->a, QHCA_CNT_ack_timeouts), n);
	resume(&p->a, &c, token);
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
	c = make_cold(&p->b);
	recv_cold(&p->b, &c, 3000);
	fill(&p->a, 2000, 4);
	post(p, &p->a, QHCA_WQE_SEND, 2000, 0);
	post(p, &p->a, QHCA_WQE_SEND, 2000, 0);
	settle(p);
	EXPECT(&p->a.scq, 0, 0, 0);
	expect_none(&p->b.rcq);
	token = TAKE_FAULT(&p->b, &c, QHCA_FAULT_RECV, QHCA_FAULT_WRITE, 0,
			   COLD_IOVA, ud ? 40 : 1024);
	NO_FAULT(&p->b);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_fault_dropped), 2);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_faults_coalesced), 1);
	resume(&p->b, &c, token);
	post(p, &p->a, QHCA_WQE_SEND, 2000, 0);
	settle(p);
	EXPECT(&p->a.scq, 2, 0);
	EXPECT(&p->b.rcq, 0, 0);
	CHECK_COLD(&p->b, &c, ud ? 40 : 0, 2000, 4);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_tx_rnr_fault1), 0);
}

/* ---- no such page */

static void fail_fault(struct end *e)
{
	struct qhca_fault_info f;
	uint32_t qpn;

	if (!md_fault(e->md, &qpn, &f))
		check_failed(__LINE__, "no fault");
	else
		CHECK_EQ(md_resume(e->md, get_le32(&f.token), false), 0);
}

static void failed_at_responder(struct pair *p)
{
	static const struct {
		uint8_t opcode, sent, received;
		enum qhca_event event;
	} cases[] = {
		{ QHCA_WQE_WRITE, QHCA_WC_REM_ACCESS_ERR, 0,
		  QHCA_EVENT_QP_ACCESS_ERROR },
		{ QHCA_WQE_READ, QHCA_WC_REM_ACCESS_ERR, 0,
		  QHCA_EVENT_QP_ACCESS_ERROR },
		{ QHCA_WQE_FETCH_ADD, QHCA_WC_REM_ACCESS_ERR, 0,
		  QHCA_EVENT_QP_ACCESS_ERROR },
		{ QHCA_WQE_SEND, QHCA_WC_REM_OP_ERR, QHCA_WC_LOC_PROT_ERR,
		  QHCA_EVENT_QP_FATAL },
	};
	struct cold c = make_cold(&p->b);

	c.odp->hole = true;
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		reconnect_pair(p, 0xfffff0 + i);
		if (cases[i].received)
			recv_cold(&p->b, &c, 100);
		post_to_cold(p, &c, cases[i].opcode, 8, 4);
		run(p, 1000000);
		fail_fault(&p->b);
		settle(p);
		EXPECT(&p->a.scq, 0, cases[i].sent);
		if (cases[i].received)
			EXPECT(&p->b.rcq, 0, cases[i].received);
		CHECK_EQ(next_event(&p->b, p->b.qp.qpn), cases[i].event);
		CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
		CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
	}
	CHECK_EQ(cnt(&p->b, QHCA_CNT_fault_failures), 4);
}

static void failed_at_requester(struct pair *p)
{
	static const uint8_t opcodes[] = { QHCA_WQE_SEND, QHCA_WQE_READ,
					   QHCA_WQE_FETCH_ADD };
	struct cold c = make_cold(&p->a);
	bool rc = p->type == QHCA_QPT_RC;

	c.odp->hole = true;
	for (uint32_t i = 0; i < (rc ? sizeof(opcodes) : 1); i++) {
		reconnect_pair(p, 0xfffff0 + i);
		post_recv(&p->b, 2000);
		post_recv(&p->b, 2000);
		post(p, &p->a, QHCA_WQE_SEND, 1500, 0);
		post_at(p, &p->a, opcodes[i], COLD_IOVA, c.odp->mr.key, 8,
			p->b.mr.iova, p->b.mr.key);
		post(p, &p->a, QHCA_WQE_SEND, 8, 0);
		run(p, 1000000);
		fail_fault(&p->a);
		settle(p);
		EXPECT(&p->a.scq, 0, 0, QHCA_WC_LOC_PROT_ERR,
		       QHCA_WC_WR_FLUSH_ERR);
		CHECK_EQ(state_of(&p->a), rc ? QHCA_QPS_ERR : QHCA_QPS_SQE);
		/* a SEND behind the response was on its way */
		if (opcodes[i] == QHCA_WQE_SEND)
			EXPECT(&p->b.rcq, 0, 0);
		else
			EXPECT(&p->b.rcq, 0, 0, 0);
		CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	}
}

/* Unreliable: the next packet that wants the page meets the error. */
static void failed_unreliable(struct pair *p)
{
	struct cold c;

	connect_pair(p);
	c = make_cold(&p->b);
	c.odp->hole = true;
	recv_cold(&p->b, &c, 3000);
	post(p, &p->a, QHCA_WQE_SEND, 1000, 0);
	settle(p);
	fail_fault(&p->b);
	settle(p);
	expect_none(&p->b.rcq);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	post(p, &p->a, QHCA_WQE_SEND, 1000, 0);
	settle(p);
	EXPECT(&p->b.rcq, 0, QHCA_WC_LOC_PROT_ERR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_FATAL);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
	EXPECT(&p->a.scq, 0, 0, 0);
}

/* ---- the region goes before its page has come */

static void end_key(struct end *e, const struct cold *c)
{
	uint32_t index = c->odp->mr.key >> 8;
	struct qhca_pte *pte = md_ptr(e->md, e->md->pt + 64ull * index);

	put_le32(&pte->ctrl, 0);
	CHECK_EQ(md_cmd(e->md, QHCA_CMD_INVALIDATE_KEY, index,
			QHCA_INVAL_PT | QHCA_INVAL_AT, NULL, 0, NULL, 0, NULL),
		 0);
}

/* What it meets is an error at once, though its peer's timer is a long one. */
static void region_goes(struct pair *p)
{
	static const struct {
		uint8_t opcode, sent, received;
		bool local;		/* the requester's region */
	} cases[] = {
		{ QHCA_WQE_WRITE, QHCA_WC_REM_ACCESS_ERR, 0, false },
		{ QHCA_WQE_READ, QHCA_WC_REM_ACCESS_ERR, 0, false },
		{ QHCA_WQE_FETCH_ADD, QHCA_WC_REM_ACCESS_ERR, 0, false },
		{ QHCA_WQE_SEND, QHCA_WC_REM_OP_ERR, QHCA_WC_LOC_PROT_ERR,
		  false },
		{ QHCA_WQE_WRITE, QHCA_WC_LOC_PROT_ERR, 0, true },
		{ QHCA_WQE_READ, QHCA_WC_LOC_PROT_ERR, 0, true },
	};

	p->b.conn.min_rnr_timer = 31;		/* 491 ms */
	for (uint32_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct end *e = cases[i].local ? &p->a : &p->b;
		struct qhca_fault_info f = { 0 };
		struct cold c = make_cold(e);
		uint32_t qpn;

		reconnect_pair(p, 0xfffff0 + i);
		if (cases[i].received)
			recv_cold(&p->b, &c, 100);
		if (cases[i].local)
			post_at(p, &p->a, cases[i].opcode, COLD_IOVA,
				c.odp->mr.key, 8, p->b.mr.iova, p->b.mr.key);
		else
			post_to_cold(p, &c, cases[i].opcode, 8, 4);
		run(p, 1000000);
		CHECK(md_fault(e->md, &qpn, &f));
		expect_none(&p->a.scq);
		end_key(e, &c);
		CHECK_EQ(md_resume(e->md, get_le32(&f.token), true), 0);
		run(p, 20000000);
		EXPECT(&p->a.scq, 0, cases[i].sent);
		if (cases[i].received)
			EXPECT(&p->b.rcq, 0, cases[i].received);
		CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
		CHECK_EQ(state_of(&p->b), cases[i].local ? QHCA_QPS_RTS :
							   QHCA_QPS_ERR);
		/* the page comes too late */
		CHECK_EQ(md_resume(e->md, get_le32(&f.token), true),
			 QHCA_CMD_BAD_INDEX);
		NO_FAULT(e);
		CHECK_EQ(c.odp->mr.buf.page[0], 0);
		CHECK_EQ(md_frames_check(e->md, c.frames), 0);
	}
}

/* ---- protection is settled first */

static void no_oracle(struct pair *p)
{
	struct cold c = make_cold(&p->b);
	struct qhca_pte *pte = md_ptr(p->b.md, p->b.md->pt +
				      64ull * (c.odp->mr.key >> 8));

	for (int i = 0; i < 4; i++) {
		uint64_t raddr = COLD_IOVA;
		uint32_t rkey = c.odp->mr.key;

		reconnect_pair(p, 1000 + i);
		if (i == 0)
			rkey ^= 1;			/* octet */
		else if (i == 1)
			raddr += COLD_LEN - 99;		/* range */
		else if (i == 2)
			put_le32(&pte->pd, PAIR_PD + 1);
		else
			put_le32(&pte->access, QHCA_ACCESS_REMOTE_READ);
		CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_INVALIDATE_KEY,
				c.odp->mr.key >> 8, QHCA_INVAL_PT, NULL, 0,
				NULL, 0, NULL), 0);
		post_at(p, &p->a, QHCA_WQE_WRITE, p->a.mr.iova, p->a.mr.key,
			100, raddr, rkey);
		settle(p);
		EXPECT(&p->a.scq, 0, QHCA_WC_REM_ACCESS_ERR);
		put_le32(&pte->pd, PAIR_PD);
	}
	CHECK_EQ(cnt(&p->b, QHCA_CNT_page_faults1), 0);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_tx_rnr_fault1), 0);
}

/* ---- faults whose QP goes */

static void make_fault(struct pair *p, const struct cold *c, uint32_t psn,
		       uint32_t *token)
{
	p->a.conn.rnr_retry = 7;
	reconnect_pair(p, psn);
	for (struct qhca_cqe cqe; md_poll(&p->a.scq, &cqe);)
		;
	post_to_cold(p, c, QHCA_WQE_WRITE, 100, 0);
	run(p, 1000000);
	*token = TAKE_FAULT(&p->b, c, QHCA_FAULT_RDMA_W, WRITE_FLAGS, 0,
			    COLD_IOVA, 100);
}

static void forgotten(struct pair *p)
{
	struct md_qp_init init = p->b.qp.init;
	uint32_t qpn = p->b.qp.qpn, next = p->b.md->next_qpn;
	struct cold c = make_cold(&p->b);
	uint32_t token[4];

	for (int i = 0; i < 3; i++) {
		make_fault(p, &c, 50 * i, &token[i]);
		if (i == 2) {
			CHECK_EQ(md_qp_destroy(p->b.md, &p->b.qp), 0);
			p->b.md->next_qpn = qpn;
			CHECK_EQ(md_qp_create(p->b.md, &p->b.qp, &init), 0);
			p->b.md->next_qpn = next;
		} else {
			CHECK_EQ(md_qp_modify(p->b.md, &p->b.qp, i ?
					      QHCA_QPS_RESET : QHCA_QPS_ERR, 0,
					      NULL), 0);
		}
		CHECK_EQ(cnt(&p->b, QHCA_CNT_faults_forgotten), i + 1);
		CHECK_EQ(md_resume(p->b.md, token[i], true),
			 QHCA_CMD_BAD_INDEX);
		CHECK_EQ(md_resume(p->b.md, token[i], false),
			 QHCA_CMD_BAD_INDEX);
	}
	/* a new fault of the same QPN has a new name, and the old ones none */
	make_fault(p, &c, 1000, &token[3]);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(md_resume(p->b.md, token[i], false),
			 QHCA_CMD_BAD_INDEX);
	resume(&p->b, &c, token[3]);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
}

#define QPS	12

/* A full event queue: every fault is told, once, when there is room. */
static void events_wait(struct pair *p)
{
	const struct pair_options o = { .type = QHCA_QPT_RC };
	struct qhca_fault_info f;
	struct end a[QPS], b[QPS];
	bool told[QPS] = { false };
	struct cold c;
	uint32_t qpn, n = 0;

	p->a.conn.rnr_retry = p->a.conn.retry_cnt = 7;
	connect_pair(p);
	c = make_cold(&p->b);
	for (uint32_t i = 0; i < QPS; i++) {
		open_second(p, &a[i], &b[i], &o);
		post_at(p, &a[i], QHCA_WQE_WRITE, a[i].mr.iova, a[i].mr.key, 8,
			COLD_IOVA + 100 * i, c.odp->mr.key);
		post_at(p, &a[i], QHCA_WQE_WRITE, a[i].mr.iova, a[i].mr.key, 8,
			COLD_IOVA + 100 * i, c.odp->mr.key);
	}
	run(p, 30000000);
	CHECK_EQ(cnt(&p->b, QHCA_CNT_page_faults1), QPS);
	CHECK(cnt(&p->b, QHCA_CNT_events_held) >= QPS - 2);
	/* and the one that goes while its event is held is not told */
	CHECK_EQ(md_qp_modify(p->b.md, &b[QPS - 1].qp, QHCA_QPS_ERR, 0, NULL),
		 0);
	for (; n < 10 * QPS; n++) {
		run(p, 200000);
		if (!md_fault(p->b.md, &qpn, &f))
			break;
		for (uint32_t i = 0; i < QPS; i++)
			if (b[i].qp.qpn == qpn) {
				CHECK(!told[i]);
				told[i] = true;
				CHECK_EQ(get_le64(&f.addr),
					 COLD_IOVA + 100 * i);
			}
		map_all(&c);
		CHECK_EQ(md_resume(p->b.md, get_le32(&f.token), true), 0);
	}
	CHECK_EQ(n, QPS - 1);
	CHECK(!told[QPS - 1]);
	settle(p);
	for (uint32_t i = 0; i < QPS; i++) {
		if (i < QPS - 1)
			EXPECT(&a[i].scq, 0, 0, 0);
		close_second(&a[i], &b[i]);
	}
}

/* ---- a window over a region on demand */

static void window_faults(struct pair *p)
{
	uint32_t index = p->b.md->next_key++, mw = index << 8 | 0x11;
	struct qhca_wqe_bind bind = { 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_BIND_MW,
			    .flags = QHCA_WQE_F_SIGNALED, .bind = &bind };
	struct qhca_fault_info f = { 0 };
	struct qhca_pte pte = { 0 };
	struct cold c;
	uint32_t qpn;

	connect_pair(p);
	c = make_cold(&p->b);
	put_le32(&((struct qhca_pte *)md_ptr(p->b.md, p->b.md->pt + 64ull *
					     (c.odp->mr.key >> 8)))->access,
		 ALL_ACCESS | QHCA_ACCESS_MW_BIND);
	put_le32(&pte.ctrl, QHCA_PTE_INVALIDATED | QHCA_PTE_MW2B << 4 |
			    0x11 << 8 | 12u << 16);
	put_le32(&pte.pd, PAIR_PD);
	md_pte_write(p->b.md, index, &pte);
	put_le64(&bind.addr, COLD_IOVA + 5000);
	put_le64(&bind.length, 4000);
	put_le32(&bind.mr_lkey, c.odp->mr.key);
	put_le32(&bind.mw_rkey, mw);
	put_le32(&bind.new_rkey, mw);
	put_le32(&bind.access, QHCA_ACCESS_REMOTE_WRITE |
			       QHCA_ACCESS_ZERO_BASED);
	post_wr(&p->b, &wr);
	settle(p);
	EXPECT(&p->b.scq, 0, 0);
	fill(&p->a, 3000, 8);
	post_at(p, &p->a, QHCA_WQE_WRITE, p->a.mr.iova, p->a.mr.key, 3000, 10,
		mw);
	run(p, 1000000);
	CHECK(md_fault(p->b.md, &qpn, &f));
	CHECK_EQ(get_le32(&f.key), mw);
	CHECK_EQ(get_le64(&f.addr), 10);	/* as the key counts */
	CHECK_EQ(get_le64(&f.length), 3000);
	resume(&p->b, &c, get_le32(&f.token));
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_COLD(&p->b, &c, 5010, 3000, 8);
}

/* ---- drained queues wait too */

static void drain_waits(struct pair *p)
{
	struct qhca_query_qp q;
	uint32_t token;
	struct cold c;

	connect_pair(p);
	c = make_cold(&p->a);
	md_odp_map(c.odp, 0, false);
	post_at(p, &p->a, QHCA_WQE_WRITE, COLD_IOVA, c.odp->mr.key, 9000,
		p->b.mr.iova, p->b.mr.key);
	run(p, 1000000);
	token = TAKE_FAULT(&p->a, &c, QHCA_FAULT_GATHER, QHCA_FAULT_REQUESTER,
			   PAGE_LEFT, COLD_IOVA + PAGE_LEFT, 9000 - PAGE_LEFT);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_SQD,
			      QHCA_QP_ATTR_SQD_EVENT, NULL), 0);
	run(p, 10000000);
	CHECK_EQ(md_qp_query(p->a.md, &p->a.qp, &q), 0);
	CHECK(q.sq_draining);
	resume(&p->a, &c, token);
	settle(p);
	EXPECT(&p->a.scq, 0, 0);
	CHECK_EQ(md_qp_query(p->a.md, &p->a.qp, &q), 0);
	CHECK(!q.sq_draining);
}

/* ---- pages go while the peer writes to them */

static void taken_in_traffic(struct pair *p)
{
	uint32_t qpn, faults = 0, done = 0;
	struct qhca_fault_info f;
	struct qhca_cqe cqe;
	struct cold c;

	p->a.conn.rnr_retry = p->a.conn.retry_cnt = 7;
	connect_pair(p);
	c = make_cold(&p->b);
	fill(&p->a, COLD_LEN, 1);
	for (uint32_t i = 0; i < 400 && check_ok(); i++) {
		if (p->a.qp.sq_pi - done < 8)
			post_to_cold(p, &c, QHCA_WQE_WRITE, COLD_LEN, 0);
		run(p, 1000 + world_pick(&p->w, 20000));
		md_odp_take(c.odp, world_pick(&p->w, md_odp_pages(c.odp)));
		if (i % 3 == 0)
			md_odp_move(c.odp, world_pick(&p->w,
						      md_odp_pages(c.odp)));
		for (; md_fault(p->b.md, &qpn, &f); faults++) {
			md_odp_map(c.odp, md_odp_page(c.odp,
						      get_le64(&f.addr)), true);
			CHECK_EQ(md_resume(p->b.md, get_le32(&f.token), true),
				 0);
		}
		for (; md_poll(&p->a.scq, &cqe); done++)
			CHECK_EQ(cqe.status, 0);
		CHECK_EQ(c.frames->corrupt, 0);
	}
	CHECK(faults > 20);
	CHECK(done > 5);
	CHECK_EQ(md_frames_check(p->b.md, c.frames), 0);
	for (int i = 0; i < 1000 && done != p->a.qp.sq_pi; i++) {
		run(p, 100000);
		for (; md_fault(p->b.md, &qpn, &f); faults++) {
			map_all(&c);
			CHECK_EQ(md_resume(p->b.md, get_le32(&f.token), true),
				 0);
		}
		for (; md_poll(&p->a.scq, &cqe); done++)
			CHECK_EQ(cqe.status, 0);
	}
	CHECK_EQ(done, p->a.qp.sq_pi);
	CHECK_COLD(&p->b, &c, 0, COLD_LEN, 1);
}

#define ON(qpt, name, fn) { name, fn, { .type = QHCA_QPT_##qpt } }
#define RC(fn) ON(RC, #fn, fn)

const struct scenario fault_scenarios[] = {
	RC(write_waits), RC(send_waits),
	{ "send_waits (SRQ)", send_waits, { .type = QHCA_QPT_RC, .srq = true } },
	RC(atomic_waits),
	{ "timer_alone", timer_alone, { .type = QHCA_QPT_RC,
					.init_flags = QHCA_INIT_NO_UNSOL_ACK } },
	RC(middle_of_message),
	RC(repetitions_coalesce), RC(rnr_retries_run_out),
	RC(resumed_too_early), RC(read_waits), RC(others_go_on),
	RC(gather_waits), ON(UC, "gather_waits (UC)", gather_waits),
	ON(UD, "gather_waits (UD)", gather_waits),
	RC(scatter_waits), RC(scatter_is_not_starved), RC(gather_of_repetition),
	ON(UC, "unreliable_drops (UC)", unreliable_drops),
	ON(UD, "unreliable_drops (UD)", unreliable_drops),
	RC(failed_at_responder), RC(failed_at_requester),
	ON(UC, "failed_at_requester (UC)", failed_at_requester),
	ON(UC, "failed_unreliable (UC)", failed_unreliable),
	ON(UD, "failed_unreliable (UD)", failed_unreliable),
	RC(region_goes), RC(no_oracle), RC(forgotten),
	{ "events_wait", events_wait, { .type = QHCA_QPT_RC, .log_eq = 1 } },
	RC(window_faults), RC(drain_waits), RC(taken_in_traffic),
	{ 0 }
};
