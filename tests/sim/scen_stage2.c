/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stage 2: accesses to memory of a guest that is absent, and goes.
 */
#include "hca.h"
#include "stage2_net.h"

#include <string.h>

/* ---- one access that takes both faults */

static struct md_odp *on_demand(struct net *n)
{
	struct md_frames *frames = md_frames_new(n->vf, 8);
	struct md_odp *odp = md_odp_reg(n->vf, frames, PAIR_PD, PAIR_IOVA,
					4 * MD_PAGE, ALL_ACCESS);
	struct host *pf = &n->p->a.md->host, *vf = &n->vf->host;

	/* The nodes are present, and the pages are in neither stage. */
	if (!host_s2_present(pf, vf, odp->leaf[2]))
		host_s2_map(pf, vf, odp->leaf[2], 0);
	if (!host_s2_present(pf, vf, odp->up[2]))
		host_s2_map(pf, vf, odp->up[2], 0);
	return odp;
}

static void both_faults(struct pair *p)
{
	struct qhca_fault_info one;
	const struct qhca_fault_info *two;
	struct md_odp *odp;
	struct net n;
	uint64_t faults2;
	uint32_t qpn;

	open_net(&n, p);
	warm_up(&n);
	odp = on_demand(&n);
	n.g.absent = true;
	faults2 = count1(&n, QHCA_CNT_page_faults2);
	write_to(&n.first, odp->mr.iova + 2 * MD_PAGE + 40, odp->mr.key, 100);
	pass(&n, MS);

	/* The first stage raises an event for the function alone. */
	CHECK(md_fault(n.vf, &qpn, &one));
	CHECK_EQ(qpn, n.first.to_qp.qpn);
	CHECK_EQ(get_le64(&one.addr), odp->mr.iova + 2 * MD_PAGE + 40);
	CHECK_EQ(get_le32(&one.key), odp->mr.key);
	CHECK(!(get_le32(&one.flags) & QHCA_FAULT_STAGE2));
	CHECK_EQ(n.g.num_asks, 0);
	CHECK_EQ(resume2(&n, get_le32(&one.token), QHCA_RESUME_OK),
		 QHCA_CMD_BAD_INDEX);
	others_go_on(&n);
	CHECK(md_odp_map(odp, 2, true));
	CHECK_EQ(md_resume(n.vf, get_le32(&one.token), true), 0);
	pass(&n, 20 * MS);

	/* The second stage raises an event for the host domain alone. */
	two = only_fault(&n);
	CHECK_EQ(get_le64(&two->addr), odp->mr.buf.page[2] + 40);
	CHECK_EQ(get_le64(&two->length), 100);
	CHECK_EQ(two->key, 0);
	CHECK(get_le32(&two->flags) & QHCA_FAULT_WRITE);
	CHECK(!md_fault(n.vf, &qpn, &one));
	CHECK_EQ(md_resume(n.vf, get_le32(&two->token), true),
		 QHCA_CMD_BAD_INDEX);
	others_go_on(&n);
	serve_faults(&n);
	CHECK(completed(&n.first));
	CHECK(same(host_ptr(&n.vf->host, odp->mr.buf.page[2] + 40), 100,
		   n.first.posted));

	CHECK_EQ(count1(&n, QHCA_CNT_page_faults1), 1);
	CHECK_EQ(count1(&n, QHCA_CNT_page_faults2), faults2 + 1);
	CHECK(count1(&n, QHCA_CNT_tx_rnr_fault1) > 0);
	CHECK(count1(&n, QHCA_CNT_tx_rnr_fault2) > 0);
	CHECK(count1(&n, QHCA_CNT_tx_unsolicited_acks) >= 2);
	CHECK_EQ(guest_count(&n.g, 2, QHCA_CNT_page_faults1), 0);
	CHECK_EQ(guest_count(&n.g, 0, QHCA_CNT_page_faults2), 0);
	CHECK_EQ(guest_count(&n.g, 0, QHCA_CNT_page_faults1), 0);
	close_net(&n);
}

/* ---- addresses that skip stage 1 */

/* READ of the guest into a bus address by the reserved L_Key. */
static void read_into(struct net *n, uint64_t addr, uint32_t len)
{
	struct conn *c = &n->first;
	struct md_sge sge = { addr, len, QHCA_RESERVED_LKEY };
	struct md_wr wr = {
		.opcode = QHCA_WQE_READ, .flags = QHCA_WQE_F_SIGNALED,
		.num_sge = 1, .sge = &sge, .raddr = c->from_mr.iova,
		.rkey = c->from_mr.key,
	};

	md_post_send(c->to, &c->to_qp, &wr);
	md_ring(c->to, &c->to_qp);
}

static int read_status(struct net *n)
{
	struct qhca_cqe cqe;

	return md_poll(&n->first.to_cq, &cqe) ? cqe.status : -1;
}

static void reserved_lkey(struct pair *p)
{
	struct qhca_fault_info info;
	struct net n;
	uint64_t at;

	open_net(&n, p);
	warm_up(&n);
	at = md_alloc(n.vf, 2 * MD_PAGE, MD_PAGE);
	n.g.absent = true;
	read_into(&n, at + 4000, 200);
	pass(&n, MS);
	CHECK_EQ(get_le64(&only_fault(&n)->addr), at + 4000);
	CHECK_EQ(read_status(&n), -1);
	others_go_on(&n);
	serve_faults(&n);
	CHECK_EQ(read_status(&n), 0);
	CHECK(same(host_ptr(&n.vf->host, at + 4000), 200, n.first.posted));

	/* An address outside of the tables reaches nothing. */
	n.g.absent = true;
	read_into(&n, 1ull << 45, 8);
	pass(&n, MS);
	info = *only_fault(&n);
	n.g.num_asks = 0;
	CHECK_EQ(get_le64(&info.addr), 1ull << 45);
	CHECK_EQ(resume2(&n, get_le32(&info.token), QHCA_RESUME_FAIL), 0);
	pass(&n, MS);
	CHECK(read_status(&n) > 0);
	n.g.absent = false;
	others_go_on(&n);
	close_net(&n);
}

static void pool_row(struct pair *p)
{
	struct qhca_pool_row row = { 0 };
	struct qhca_pte pte = { 0 };
	uint32_t key = 200;
	struct net n;
	uint64_t at;

	open_net(&n, p);
	warm_up(&n);
	at = md_alloc(n.vf, 4 * MD_PAGE, MD_PAGE);
	put_le64(&row.addr, at);
	put_le64(&row.length, 4 * MD_PAGE);
	CHECK_EQ(md_cmd(n.vf, QHCA_CMD_MAP_POOL_BLOCK, 1, 0, &row, sizeof(row),
			NULL, 0, NULL), 0);
	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_POOL << 4);
	put_le32(&pte.access, ALL_ACCESS);
	put_le32(&pte.pd, PAIR_PD);
	put_le32(&pte.pool_block, 1);
	put_le64(&pte.start, PAIR_IOVA);
	put_le64(&pte.length, 4 * MD_PAGE);
	md_pte_write(n.vf, key, &pte);
	n.g.absent = true;
	write_to(&n.first, PAIR_IOVA + MD_PAGE + 8, key << 8, 100);
	pass(&n, MS);
	CHECK_EQ(get_le64(&only_fault(&n)->addr), at + MD_PAGE + 8);
	others_go_on(&n);
	serve_faults(&n);
	CHECK(completed(&n.first));
	CHECK(same(host_ptr(&n.vf->host, at + MD_PAGE + 8), 100,
		   n.first.posted));
	close_net(&n);
}

/* ---- pages that go */

/* The page of an MR where write_own() begins; a bus address. */
static uint64_t own_page(const struct conn *c)
{
	return c->to_mr.buf.page[0];
}

/* After the acknowledgement of INVALIDATE_STAGE2 nothing is written to the page. */
static void taken_away(struct pair *p)
{
	uint8_t *page, kept[MD_PAGE];
	struct net n;

	open_net(&n, p);
	warm_up(&n);
	write_own(&n.first);
	pass(&n, 1500);			/* packets are under way */
	n.g.absent = true;
	CHECK(guest_take(&n.g, 1, own_page(&n.first)));
	page = host_ptr(&n.vf->host, own_page(&n.first));
	memcpy(kept, page, MD_PAGE);
	memset(page, 0xdb, MD_PAGE);
	write_own(&n.first);
	pass(&n, 10 * MS);
	for (uint32_t i = 0; i < MD_PAGE; i++)
		CHECK_EQ(page[i], 0xdb);
	others_go_on(&n);
	memcpy(page, kept, MD_PAGE);
	serve_faults(&n);
	CHECK(arrived(&n.first));
	CHECK(count1(&n, QHCA_CNT_s2_invalidations) > 0);
	close_net(&n);
}

/* ---- ends of a function in the middle of a fault */

static void begin_life(struct net *n, bool new_row)
{
	const struct md_init init = { .scatter = true };

	if (new_row)
		guest_start(&n->g, 1, &init);
	else
		md_start(n->vf, &init);
	open_conn(&n->first, n->p->b.md, n->vf);
	open_conn(&n->second, n->p->b.md, n->vf);
	n->g.absent = false;
	warm_up(n);
	CHECK(!md_dead(n->vf));
}

static uint32_t wait_in_fault(struct net *n)
{
	open_net(n, n->p);
	warm_up(n);
	n->g.absent = true;
	CHECK(guest_take(&n->g, 1, own_page(&n->first)));
	write_own(&n->first);
	pass(n, MS);
	return get_le32(&only_fault(n)->token);
}

static void ends(struct pair *p, void (*end)(struct net *n), bool new_row)
{
	struct net n = { .p = p };
	uint32_t token = wait_in_fault(&n);

	end(&n);
	CHECK_EQ(resume2(&n, token, QHCA_RESUME_OK), QHCA_CMD_BAD_INDEX);
	CHECK_GOES_ON(&n, &n.to_other);
	CHECK_GOES_ON(&n, &n.to_pf);
	begin_life(&n, new_row);
	close_net(&n);
}

static void reset(struct net *n)
{
	guest_reset(&n->g, 1);
	guest_take_all(&n->g, 1);
}

static void new_row(struct net *n)
{
	host_s2_open(&n->p->a.md->host, &n->vf->host, 0x99);
	CHECK(md_dead(n->vf));
}

static void promise_broken(struct net *n)
{
	struct qhca_cmd_slot nop = { 0 };

	guest_take_all(&n->g, 1);
	host_cmd_begin(&n->vf->host, &nop, 0);
	pass(n, MS);
	CHECK(md_dead(n->vf));
	CHECK_EQ(qhca_reg_read(n->vf->host.hca, 1, QHCA_REG_FATAL_INFO,
			       n->p->w.now), QHCA_STAGE2_NOT_PINNED);
}

static void reset_in_fault(struct pair *p)
{
	ends(p, reset, false);
}

static void row_in_fault(struct pair *p)
{
	ends(p, new_row, true);
}

static void death_in_fault(struct pair *p)
{
	ends(p, promise_broken, true);
}

/* ---- the cache */

/* When all is there, each access of each kind hits. */
static void everything_hits(struct pair *p)
{
	uint64_t hits, misses;
	struct net n;

	open_net(&n, p);
	warm_up(&n);
	warm_up(&n);
	misses = count1(&n, QHCA_CNT_s2_misses);
	for (int i = 0; i < 10; i++) {
		hits = count1(&n, QHCA_CNT_s2_hits);
		CHECK_GOES_ON(&n, &n.first);
		/* The payload has two pages, in five packets. */
		CHECK(count1(&n, QHCA_CNT_s2_hits) >= hits + 5);
	}
	CHECK_EQ(count1(&n, QHCA_CNT_s2_misses), misses);
	CHECK_EQ(guest_count(&n.g, 0, QHCA_CNT_s2_hits), 0);
	CHECK(guest_count(&n.g, 2, QHCA_CNT_s2_hits) > 0);
	close_net(&n);
}

#define STAGE2(fn) NAMED(RC, "stage 2: " #fn, fn, .roomy = true)

const struct scenario stage2_scenarios[] = {
	STAGE2(both_faults), STAGE2(reserved_lkey), STAGE2(pool_row),
	STAGE2(taken_away), STAGE2(reset_in_fault), STAGE2(row_in_fault),
	STAGE2(death_in_fault), STAGE2(everything_hits),
	{ 0 }
};
