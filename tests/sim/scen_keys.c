/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Keys that come and go while packets use them: windows, fast registration,
 * invalidation by either side and by commands.  The rule under test: once the
 * invalidation has completed, the key does not move a byte.
 */
#include <string.h>

#include "pair.h"

#define TARGET		32768u		/* offset of what windows cover */
#define TARGET_LEN	8192u
#define PAGES		2u

/* ---- keys */

/* An entry of the protection table; returns its key. */
static uint32_t add_pte(struct end *e, uint32_t type, uint32_t octet,
			uint32_t ctrl, struct qhca_pte *pte)
{
	uint32_t index = e->md->next_key++;

	put_le32(&pte->ctrl, ctrl | type << 4 | octet << 8 | 12u << 16);
	put_le32(&pte->pd, PAIR_PD);
	md_pte_write(e->md, index, pte);
	return index << 8 | octet;
}

static uint32_t new_window(struct end *e, uint32_t type)
{
	struct qhca_pte pte = { 0 };

	return add_pte(e, type, 0x11, QHCA_PTE_INVALIDATED | QHCA_PTE_REMOTE_INV,
		       &pte);
}

static uint32_t new_fast_reg(struct end *e, uint32_t ctrl)
{
	struct qhca_pte pte = { 0 };

	put_le64(&pte.at_base, md_alloc(e->md, 8 * PAGES, 64));
	put_le32(&pte.pool_block, PAGES);
	put_le32(&pte.at_key, e->md->next_key);
	return add_pte(e, QHCA_PTE_FAST_REG, 0x22,
		       QHCA_PTE_INVALIDATED | 1u << 24 | ctrl, &pte);
}

/* The region of @e may have windows. */
static void allow_bind(struct end *e)
{
	struct qhca_pte *pte = md_ptr(e->md, e->md->pt +
				      64ull * (e->mr.key >> 8));

	put_le32(&pte->access, e->mr.access | QHCA_ACCESS_MW_BIND);
}

static void post_bind(struct end *e, uint32_t mw, uint32_t new_key,
		      uint64_t len, uint32_t access)
{
	struct qhca_wqe_bind bind = { 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_BIND_MW,
			    .flags = QHCA_WQE_F_SIGNALED, .bind = &bind };

	put_le64(&bind.addr, e->mr.iova + TARGET);
	put_le64(&bind.length, len);
	put_le32(&bind.mr_lkey, e->mr.key);
	put_le32(&bind.mw_rkey, mw);
	put_le32(&bind.new_rkey, new_key);
	put_le32(&bind.access, access);
	post_wr(e, &wr);
}

static void post_inv(struct end *e, uint8_t opcode, uint32_t key)
{
	struct md_wr wr = { .opcode = opcode, .flags = QHCA_WQE_F_SIGNALED,
			    .imm = key };

	post_wr(e, &wr);
}

/* Pages from @off on under a fast-registered key, at the target's address. */
static void post_reg_at(struct end *e, uint32_t key, uint32_t access,
			uint32_t off)
{
	struct qhca_wqe_reg reg = { .page_shift = 12 };
	struct md_wr wr = { .opcode = QHCA_WQE_REG_MR,
			    .flags = QHCA_WQE_F_SIGNALED, .reg = &reg };
	uint64_t list = md_alloc(e->md, 8 * PAGES, 8);

	for (uint32_t i = 0; i < PAGES; i++)
		put_le64(md_ptr(e->md, list + 8 * i),
			 e->mr.buf.page[off / MD_PAGE + i]);
	put_le64(&reg.iova, e->mr.iova + TARGET);
	put_le64(&reg.length, TARGET_LEN);
	put_le64(&reg.pages, list);
	put_le32(&reg.key, key);
	put_le32(&reg.access, access);
	put_le32(&reg.num_pages, PAGES);
	post_wr(e, &wr);
}

static void post_reg(struct end *e, uint32_t key, uint32_t access)
{
	post_reg_at(e, key, access, TARGET);
}

/* A request of @e to the target through @rkey. */
static void post_remote(struct end *e, uint8_t opcode, uint32_t rkey,
			uint32_t len)
{
	struct md_sge sge = { e->mr.iova, len, e->mr.key };
	struct md_wr wr = {
		.opcode = opcode, .flags = QHCA_WQE_F_SIGNALED, .sge = &sge,
		.num_sge = 1, .raddr = PAIR_IOVA + TARGET, .rkey = rkey,
		.swap_add = 1,
	};

	post_wr(e, &wr);
}

static void fill_target(struct end *e, uint8_t value)
{
	uint8_t data[TARGET_LEN];

	memset(data, value, sizeof(data));
	put_bytes(e, TARGET, data, sizeof(data));
}

static bool bytes_are(struct end *e, uint32_t off, uint8_t value)
{
	uint8_t data[TARGET_LEN];

	get_bytes(e, off, data, sizeof(data));
	for (uint32_t i = 0; i < sizeof(data); i++)
		if (data[i] != value)
			return false;
	return true;
}

static bool target_is(struct end *e, uint8_t value)
{
	return bytes_are(e, TARGET, value);
}

static void fill_source(struct end *e, uint8_t value)
{
	uint8_t data[TARGET_LEN];

	memset(data, value, sizeof(data));
	put_bytes(e, 0, data, sizeof(data));
}

/* @rkey does not work, and nothing of the target changes. */
static void check_dead(int line, struct pair *p, struct end *from,
		       uint32_t rkey, uint8_t opcode)
{
	struct qhca_cqe cqe = { 0 };
	uint32_t number = from->qp.sq_pi;

	fill_target(&p->b, 0x5a);
	fill_source(from, 0xa5);
	post_remote(from, opcode, rkey, 8);
	settle(p);
	if (!md_poll(&from->scq, &cqe) || get_le64(&cqe.wr_id) != number ||
	    cqe.status != QHCA_WC_REM_ACCESS_ERR)
		check_failed(line, "status %u through a dead key", cqe.status);
	if (!target_is(&p->b, 0x5a))
		check_failed(line, "a dead key moved bytes");
}

#define CHECK_DEAD(p, from, rkey) \
	check_dead(__LINE__, p, from, rkey, QHCA_WQE_WRITE)

#define RIGHTS	(QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ)

/* ---- windows */

static void open_windows(struct pair *p)
{
	allow_bind(&p->b);
	connect_pair(p);
}

static void bound_window_works(struct pair *p)
{
	static const uint8_t types[] = { QHCA_PTE_MW1, QHCA_PTE_MW2B };

	open_windows(p);
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t mw = new_window(&p->b, types[i]);

		post_bind(&p->b, mw, mw ^ 1, TARGET_LEN, RIGHTS);
		settle(p);
		EXPECT(&p->b.scq, i, QHCA_WC_SUCCESS);
		fill_source(&p->a, 0x70 + i);
		post_remote(&p->a, QHCA_WQE_WRITE, mw ^ 1, TARGET_LEN);
		post_remote(&p->a, QHCA_WQE_READ, mw ^ 1, TARGET_LEN);
		settle(p);
		EXPECT(&p->a.scq, 2 * i, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
		CHECK(target_is(&p->b, 0x70 + i));
	}
}

static void unbound_window_is_dead(struct pair *p)
{
	open_windows(p);
	CHECK_DEAD(p, &p->a, new_window(&p->b, QHCA_PTE_MW1));
	reconnect_pair(p, 5);
	CHECK_DEAD(p, &p->a, new_window(&p->b, QHCA_PTE_MW2B));
}

static void old_window_key_is_dead(struct pair *p)
{
	uint32_t mw = new_window(&p->b, QHCA_PTE_MW1);

	open_windows(p);
	post_bind(&p->b, mw, mw ^ 1, TARGET_LEN, RIGHTS);
	post_bind(&p->b, mw ^ 1, mw ^ 2, TARGET_LEN, RIGHTS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
	post_remote(&p->a, QHCA_WQE_WRITE, mw ^ 2, 8);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	CHECK_DEAD(p, &p->a, mw ^ 1);
	reconnect_pair(p, 9);
	post_bind(&p->b, mw ^ 2, mw ^ 3, 0, 0);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	CHECK_DEAD(p, &p->a, mw ^ 2);
	reconnect_pair(p, 10);
	CHECK_DEAD(p, &p->a, mw ^ 3);
}

static void window_gives_only_its_rights(struct pair *p)
{
	uint32_t mw = new_window(&p->b, QHCA_PTE_MW2B);

	open_windows(p);
	post_bind(&p->b, mw, mw ^ 1, TARGET_LEN / 2, QHCA_ACCESS_REMOTE_READ);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	CHECK_DEAD(p, &p->a, mw ^ 1);
	reconnect_pair(p, 3);
	check_dead(__LINE__, p, &p->a, mw ^ 1, QHCA_WQE_FETCH_ADD);
}

static void window_ends_where_it_ends(struct pair *p)
{
	uint32_t mw = new_window(&p->b, QHCA_PTE_MW1);

	open_windows(p);
	post_bind(&p->b, mw, mw ^ 1, TARGET_LEN - 1, RIGHTS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	fill_target(&p->b, 0x5a);
	post_remote(&p->a, QHCA_WQE_WRITE, mw ^ 1, TARGET_LEN);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_REM_ACCESS_ERR);
	CHECK(target_is(&p->b, 0x5a));
}

static void window_of_other_qp(struct pair *p)
{
	static const struct pair_options o = { .type = QHCA_QPT_RC };
	uint32_t one = new_window(&p->b, QHCA_PTE_MW1);
	uint32_t two = new_window(&p->b, QHCA_PTE_MW2B);
	struct end a2, b2;

	open_windows(p);
	open_second(p, &a2, &b2, &o);
	post_bind(&p->b, one, one ^ 1, TARGET_LEN, RIGHTS);
	post_bind(&p->b, two, two ^ 1, TARGET_LEN, RIGHTS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
	/* type 1 is any QP's of the PD, 2B that of one QP */
	post_remote(&a2, QHCA_WQE_WRITE, one ^ 1, 8);
	settle(p);
	EXPECT(&a2.scq, 0, QHCA_WC_SUCCESS);
	post_inv(&b2, QHCA_WQE_LOCAL_INV, two ^ 1);
	settle(p);
	EXPECT(&b2.scq, 0, QHCA_WC_MW_BIND_ERR);
	post_remote(&p->a, QHCA_WQE_WRITE, two ^ 1, 8);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	close_second(&a2, &b2);
	open_second(p, &a2, &b2, &o);
	CHECK_DEAD(p, &a2, two ^ 1);
	close_second(&a2, &b2);
}

/* A bind that must be refused ends b's QP with MW_BIND_ERR. */
static void bind_refused(int line, struct pair *p, uint32_t mw,
			 uint32_t new_key, uint64_t len, uint32_t access)
{
	struct qhca_cqe cqe = { 0 };

	reconnect_pair(p, line);
	post_bind(&p->b, mw, new_key, len, access);
	settle(p);
	if (!md_poll(&p->b.scq, &cqe) || cqe.status != QHCA_WC_MW_BIND_ERR)
		check_failed(line, "status %u of a bad bind", cqe.status);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_ERR);
}

static void bad_binds(struct pair *p)
{
	uint32_t mw = new_window(&p->b, QHCA_PTE_MW2B);
	uint32_t one = new_window(&p->b, QHCA_PTE_MW1);

	connect_pair(p);
	/* no MW_BIND in the region yet */
	bind_refused(__LINE__, p, mw, mw ^ 1, 8, RIGHTS);
	allow_bind(&p->b);
	CHECK_EQ(md_cmd(p->b.md, QHCA_CMD_INVALIDATE_KEY, p->b.mr.key >> 8,
			QHCA_INVAL_PT, NULL, 0, NULL, 0, NULL), 0);
	bind_refused(__LINE__, p, mw, mw ^ 0x100, 8, RIGHTS);
	bind_refused(__LINE__, p, mw ^ 1, mw ^ 2, 8, RIGHTS);
	bind_refused(__LINE__, p, mw, mw ^ 1, 0, RIGHTS);
	bind_refused(__LINE__, p, mw, mw ^ 1, PAIR_LEN, RIGHTS);
	bind_refused(__LINE__, p, mw, mw ^ 1, 8, QHCA_ACCESS_LOCAL_WRITE);
	bind_refused(__LINE__, p, one, one ^ 1, 8,
		     RIGHTS | QHCA_ACCESS_ZERO_BASED);
	bind_refused(__LINE__, p, p->b.mr.key, p->b.mr.key, 8, RIGHTS);
	reconnect_pair(p, 1);
	CHECK_DEAD(p, &p->a, mw ^ 1);
}

/* ---- fast registration */

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
		CHECK_DEAD(p, &p->a, now - 1);	/* the octet before */
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
	post_reg(&p->b, key ^ 1, ALL_ACCESS);	/* not invalidated between */
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

/* Unsignalled messages, and then what the WQE behind them waits for. */
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
		md_die("CREATE_QP");
}

/*
 * WQEs without packets take no room of the window.  So many of them may lie behind
 * a message, and the ACK that the message waits for completes those that were
 * begun, which must not be all of a long queue.
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
	/* one turn: fewer packets than all of them, and none asks for an ACK */
	while (c.packets < 20)
		qhca_run(p->a.md->hca, p->w.now, 1);
	CHECK_EQ(md_qp_modify(p->a.md, &p->a.qp, QHCA_QPS_SQD,
			      QHCA_QP_ATTR_SQD_EVENT, NULL), 0);
	settle(p);
	CHECK_EQ(next_event(&p->a, p->a.qp.qpn), QHCA_EVENT_QP_SQ_DRAINED);
	CHECK(c.packets > c.again && c.packets < 60);
	CHECK_EQ(c.again, 1);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 0);
}

/* ---- SEND with invalidate */

static void send_inv_of(struct pair *p, uint32_t key)
{
	struct qhca_cqe cqe = { 0 };

	post_remote(&p->a, QHCA_WQE_WRITE, key, 8);
	post_recv(&p->b, 100);
	post_inv(&p->a, QHCA_WQE_SEND_INV, key);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_SUCCESS);
	CHECK(md_poll(&p->b.rcq, &cqe));
	CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
	CHECK_EQ(get_le32(&cqe.flags) & ~QHCA_PHASE, QHCA_CQE_INV);
	CHECK_EQ(get_le32(&cqe.imm), key);
	CHECK_DEAD(p, &p->a, key);
}

static void send_inv(struct pair *p)
{
	uint32_t key = new_fast_reg(&p->b, QHCA_PTE_REMOTE_INV);
	uint32_t mw = new_window(&p->b, QHCA_PTE_MW2B);

	open_windows(p);
	post_reg(&p->b, key, ALL_ACCESS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	send_inv_of(p, key);
	reconnect_pair(p, 8);
	post_bind(&p->b, mw, mw ^ 1, TARGET_LEN, RIGHTS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	send_inv_of(p, mw ^ 1);
}

static void send_inv_refused(struct pair *p)
{
	uint32_t key = new_fast_reg(&p->b, 0);	/* not by the peer */

	connect_pair(p);
	post_reg(&p->b, key, ALL_ACCESS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	post_recv(&p->b, 100);
	post_inv(&p->a, QHCA_WQE_SEND_INV, key);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_REM_ACCESS_ERR);
	EXPECT(&p->b.rcq, 0, QHCA_WC_MW_BIND_ERR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_ACCESS_ERROR);
}

/* ---- under traffic */

enum how {				/* ... the key dies */
	BY_LOCAL_INV, BY_SEND_INV, BY_REBIND, BY_COMMAND, NUM_HOW
};

/* Post what ends @key; the command has ended it on return. */
static void kill_key(struct end *by_a, struct end *by_b, struct end *b,
		     enum how how, uint32_t key)
{
	switch (how) {
	case BY_LOCAL_INV:
		post_inv(by_b, QHCA_WQE_LOCAL_INV, key);
		break;
	case BY_SEND_INV:
		post_recv(by_b, 100);
		post_inv(by_a, QHCA_WQE_SEND_INV, key);
		break;
	case BY_REBIND:
		post_bind(by_b, key, key ^ 2, 0, 0);
		break;
	default:
		put_le32(md_ptr(b->md, b->md->pt + 64ull * (key >> 8)), 0);
		CHECK_EQ(md_cmd(b->md, QHCA_CMD_INVALIDATE_KEY, key >> 8,
				QHCA_INVAL_PT | QHCA_INVAL_AT, NULL, 0, NULL,
				0, NULL), 0);
		break;
	}
}

/* All good, or: success, then one error, then flushes.  Returns which. */
static bool check_cut(struct pair *p, uint32_t posted)
{
	uint32_t n = 0, refused = 0;
	struct qhca_cqe cqe;

	for (; md_poll(&p->a.scq, &cqe); n++) {
		CHECK_EQ(get_le64(&cqe.wr_id), n);
		if (refused) {
			CHECK_EQ(cqe.status, QHCA_WC_WR_FLUSH_ERR);
			continue;
		}
		refused += cqe.status != 0;
		/* the NAK may have been lost, or come before its time */
		if (cqe.status == QHCA_WC_RETRY_EXC_ERR)
			CHECK(p->w.link.loss || p->w.link.jitter);
		else if (cqe.status)
			CHECK_EQ(cqe.status, QHCA_WC_REM_ACCESS_ERR);
	}
	CHECK_EQ(n, posted);
	CHECK_EQ(state_of(&p->a), refused ? QHCA_QPS_ERR : QHCA_QPS_RTS);
	/* a READ that was repeated is refused, and b goes on */
	if (state_of(&p->b) != QHCA_QPS_RTS ||
	    !(p->w.link.loss || p->w.link.jitter))
		CHECK_EQ(state_of(&p->b), refused ? QHCA_QPS_ERR : QHCA_QPS_RTS);
	return refused;
}

/*
 * @opcode streams through a key of b that dies by @how after a while, on another
 * QP of the same PD.  What b's software then writes stays.  Returns whether
 * anything was still to come.
 */
static bool storm(struct pair *p, uint8_t opcode, enum how how, uint32_t when)
{
	const struct pair_options o = { .type = QHCA_QPT_RC,
					.qp_flags = QHCA_QP_KERNEL };
	bool window = how == BY_REBIND;
	uint32_t key = window ? new_window(&p->b, QHCA_PTE_MW1) :
				new_fast_reg(&p->b, QHCA_PTE_REMOTE_INV);
	struct end a2, b2;
	struct qhca_cqe cqe;
	bool cut;

	open_second(p, &a2, &b2, &o);
	if (window)
		post_bind(&b2, key, key, TARGET_LEN, RIGHTS);
	else
		post_reg(&b2, key, ALL_ACCESS);
	settle(p);
	EXPECT(&b2.scq, 0, QHCA_WC_SUCCESS);
	for (int i = 0; i < 60; i++)
		post_remote(&p->a, opcode, key, TARGET_LEN);
	world_run(&p->w, p->w.now + when);
	kill_key(&a2, &b2, &p->b, how, key);
	while (how != BY_COMMAND &&
	       !md_poll(how == BY_SEND_INV ? &b2.rcq : &b2.scq, &cqe) &&
	       world_step(&p->w, p->w.now + 1000))
		;
	/* dead from here on */
	fill_target(&p->b, 0x5a);
	fill_source(&p->a, 0xa5);
	settle(p);
	if (opcode == QHCA_WQE_WRITE)
		CHECK(target_is(&p->b, 0x5a));
	cut = check_cut(p, 60);
	close_second(&a2, &b2);
	return cut;
}

static void storms(struct pair *p, uint8_t opcode)
{
	uint32_t cuts = 0;

	allow_bind(&p->b);
	connect_pair(p);
	for (uint32_t i = 0; i < 40; i++) {
		p->w.link.jitter = i % 5 * 500;
		p->w.link.loss = i % 3 * 10000;
		cuts += storm(p, opcode, i % NUM_HOW, 500 + 400 * i);
		p->w.link = (struct world_link){ .delay = 1000 };
		reconnect_pair(p, 0xfffff0 + i);
	}
	CHECK(cuts >= 20);
}

static void writes_meet_invalidation(struct pair *p)
{
	storms(p, QHCA_WQE_WRITE);
}

static void reads_meet_invalidation(struct pair *p)
{
	storms(p, QHCA_WQE_READ);
}

/* Deregistration of what the device gathers from, and scatters into. */
static void local_key_dies(struct pair *p)
{
	connect_pair(p);
	for (int i = 0; i < 20; i++)
		post(p, &p->a, QHCA_WQE_WRITE, 16384, 0);
	world_run(&p->w, p->w.now + 5000);
	kill_key(NULL, NULL, &p->a, BY_COMMAND, p->a.mr.key);
	settle(p);
	for (struct qhca_cqe cqe; md_poll(&p->a.scq, &cqe);)
		if (cqe.status) {
			CHECK_EQ(cqe.status, QHCA_WC_LOC_PROT_ERR);
			break;
		}
	CHECK_EQ(state_of(&p->a), QHCA_QPS_ERR);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
}

static void receive_key_dies(struct pair *p)
{
	p->a.conn.mtu = p->b.conn.mtu = QHCA_MTU_256;
	connect_pair(p);
	post_recv(&p->b, 16384);
	post(p, &p->a, QHCA_WQE_SEND, 16384, 0);
	while (!count_of(&p->b, QHCA_CNT_rx_packets) &&
	       world_step(&p->w, p->w.now + 100))
		;
	kill_key(NULL, NULL, &p->b, BY_COMMAND, p->b.mr.key);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_REM_OP_ERR);
	EXPECT(&p->b.rcq, 0, QHCA_WC_LOC_PROT_ERR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_FATAL);
}

/* The frame of a READ request, to come again later. */
struct late_frame {
	uint8_t data[128];
	size_t len;
};

static bool keep_read_request(struct world *w, unsigned int from,
			      uint8_t *frame, size_t len)
{
	struct late_frame *late = w->filter_arg;

	if (from == 0 && len <= sizeof(late->data)) {
		memcpy(late->data, frame, len);
		late->len = len;
	}
	return true;
}

/*
 * A READ has completed, and its key is gone, when its request comes once more:
 * that is nobody's mistake and does no harm.
 */
static void late_read_of_dead_key(struct pair *p)
{
	uint32_t key = new_fast_reg(&p->b, 0);
	struct late_frame late = { .len = 0 };

	connect_pair(p);
	post_reg(&p->b, key, ALL_ACCESS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	p->w.filter = keep_read_request;
	p->w.filter_arg = &late;
	post_remote(&p->a, QHCA_WQE_READ, key, 3000);
	settle(p);
	p->w.filter = NULL;
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	CHECK(late.len);
	kill_key(NULL, NULL, &p->b, BY_COMMAND, key);
	qhca_rx_frame(p->b.md->hca, late.data, late.len, p->w.now);
	settle(p);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_duplicate_requests), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_protection_errors), 1);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	CHECK_WORKS(p);
}

/* ---- pages move under traffic */

/* Give page @n of b's region a new place; the old one gets a canary. */
static uint64_t move_page(struct end *b, uint32_t n)
{
	uint64_t old = b->mr.buf.page[n], new = md_alloc(b->md, MD_PAGE, MD_PAGE);
	struct qhca_range range = { 0 };

	memcpy(md_ptr(b->md, new), md_ptr(b->md, old), MD_PAGE);
	put_le64(md_ptr(b->md, b->mr.buf.root + 8 * n),
		 new | QHCA_ATE_PRESENT | QHCA_ATE_WRITE | QHCA_ATE_LEAF);
	put_le64(&range.start, (uint64_t)n * MD_PAGE);
	put_le64(&range.length, MD_PAGE);
	CHECK_EQ(md_cmd(b->md, QHCA_CMD_INVALIDATE_RANGE, b->mr.key >> 8, 0,
			&range, sizeof(range), NULL, 0, NULL), 0);
	b->mr.buf.page[n] = new;
	memset(md_ptr(b->md, old), 0x77, MD_PAGE);
	return old;
}

static void pages_move(struct pair *p)
{
	uint64_t old[64];

	connect_pair(p);
	for (uint32_t i = 0; i < 64; i++) {
		post(p, &p->a, i & 1 ? QHCA_WQE_WRITE : QHCA_WQE_READ, 8000, 0);
		world_run(&p->w, p->w.now + 500 + 137 * i);
		old[i] = move_page(&p->b, TARGET / MD_PAGE + i % 2);
	}
	fill_source(&p->a, 0x99);
	post(p, &p->a, QHCA_WQE_WRITE, TARGET_LEN, 0);
	settle(p);
	CHECK(target_is(&p->b, 0x99));
	for (uint32_t i = 0; i < 64; i++)
		for (uint32_t k = 0; k < MD_PAGE; k++)
			if (*((uint8_t *)md_ptr(p->b.md, old[i]) + k) != 0x77) {
				check_failed(__LINE__, "page %u was touched", i);
				return;
			}
	for (struct qhca_cqe cqe; md_poll(&p->a.scq, &cqe);)
		CHECK_EQ(cqe.status, QHCA_WC_SUCCESS);
}

#define ROOMY(fn) \
	{ #fn " (roomy)", fn, { .type = QHCA_QPT_RC, \
				.qp_flags = QHCA_QP_KERNEL, .roomy = true } }
#define KERNEL(fn) { #fn, fn, { .type = QHCA_QPT_RC, .qp_flags = QHCA_QP_KERNEL } }

const struct scenario key_scenarios[] = {
	KERNEL(bound_window_works), KERNEL(unbound_window_is_dead),
	KERNEL(old_window_key_is_dead), KERNEL(window_gives_only_its_rights),
	KERNEL(window_ends_where_it_ends), KERNEL(window_of_other_qp), KERNEL(bad_binds),
	KERNEL(fast_reg_cycles), KERNEL(fast_reg_twice), KERNEL(local_inv_waits),
	KERNEL(local_inv_sends_nothing_again), KERNEL(drain_sends_one_again),
	KERNEL(ack_completes_some),
	KERNEL(send_inv), KERNEL(send_inv_refused), KERNEL(writes_meet_invalidation),
	KERNEL(reads_meet_invalidation), KERNEL(local_key_dies), KERNEL(receive_key_dies),
	KERNEL(late_read_of_dead_key), KERNEL(pages_move),
	/* with stale lines that nothing but invalidation removes */
	ROOMY(old_window_key_is_dead), ROOMY(fast_reg_cycles), ROOMY(send_inv),
	ROOMY(writes_meet_invalidation), ROOMY(reads_meet_invalidation),
	ROOMY(local_key_dies), ROOMY(pages_move),
	{ 0 }
};
