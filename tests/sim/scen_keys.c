/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Keys that end while packets use them: invalidation by either side and by commands.
 * The rule under test: once the invalidation has completed, the key does not move a
 * byte.
 */
#include "keys.h"

#include <string.h>

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
	/* The peer may not invalidate this key. */
	uint32_t key = new_fast_reg(&p->b, 0);

	connect_pair(p);
	post_reg(&p->b, key, ALL_ACCESS);
	settle(p);
	EXPECT(&p->b.scq, 0, QHCA_WC_SUCCESS);
	post_recv(&p->b, 100);
	post_recv(&p->b, 100);
	/* What came before it is acknowledged. */
	post(p, &p->a, QHCA_WQE_SEND, 8, 0);
	post_inv(&p->a, QHCA_WQE_SEND_INV, key);
	settle(p);
	EXPECT(&p->b.rcq, 0, QHCA_WC_SUCCESS, QHCA_WC_MW_BIND_ERR);
	CHECK_EQ(next_event(&p->b, p->b.qp.qpn), QHCA_EVENT_QP_ACCESS_ERROR);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS, QHCA_WC_RETRY_EXC_ERR);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_tx_nak_access), 0);
}

/* ---- under traffic */

enum how {				/* ... the key dies */
	BY_LOCAL_INV, BY_SEND_INV, BY_REBIND, BY_COMMAND, NUM_HOW
};

/* Posts the request that ends @key; BY_COMMAND has ended it on return. */
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
		/* The NAK may have been lost, or have arrived early. */
		if (cqe.status == QHCA_WC_RETRY_EXC_ERR)
			CHECK(p->w.link.loss || p->w.link.jitter);
		else if (cqe.status)
			CHECK_EQ(cqe.status, QHCA_WC_REM_ACCESS_ERR);
	}
	CHECK_EQ(n, posted);
	CHECK_EQ(state_of(&p->a), refused ? QHCA_QPS_ERR : QHCA_QPS_RTS);
	/* B refuses a repeated READ, and continues. */
	if (state_of(&p->b) != QHCA_QPS_RTS ||
	    !(p->w.link.loss || p->w.link.jitter))
		CHECK_EQ(state_of(&p->b), refused ? QHCA_QPS_ERR : QHCA_QPS_RTS);
	return refused;
}

/*
 * @opcode streams through a key of b, which @how ends after a while, on another QP of
 * the same PD.  No access may change what b's software writes from then on.  Returns
 * whether requests were still under way.
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
	/* The key is dead from here on. */
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
 * A READ has completed, and its key has ended, when its request arrives once more: this
 * is no error of either side and has no effect.
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
	qhca_rx_frame(p->b.md->host.hca, late.data, late.len, p->w.now);
	settle(p);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_duplicate_requests), 1);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_protection_errors), 1);
	CHECK_EQ(state_of(&p->b), QHCA_QPS_RTS);
	CHECK_WORKS(p);
}

/* ---- pages move under traffic */

/* Moves page @n of b's region; the old page gets a canary. */
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

const struct scenario key_scenarios[] = {
	KERNEL(send_inv),
	KERNEL(send_inv_refused),
	KERNEL(writes_meet_invalidation),
	KERNEL(reads_meet_invalidation),
	KERNEL(local_key_dies),
	KERNEL(receive_key_dies),
	KERNEL(late_read_of_dead_key),
	KERNEL(pages_move),
	/* The caches have stale lines that nothing but invalidation removes. */
	ROOMY(send_inv),
	ROOMY(writes_meet_invalidation),
	ROOMY(reads_meet_invalidation),
	ROOMY(local_key_dies),
	ROOMY(pages_move),
	{ 0 }
};
