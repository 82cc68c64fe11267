/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Stage 2 and the keys that work requests make: page lists of REG_MR and memory windows
 * name bus addresses, which are absent in stage 2 or nowhere.
 */
#include "stage2_net.h"

#define OUTSIDE		(1ull << 45)	/* no table leads there */

/* The status of the guest's last request; -1: it has not completed. */
static int own_status(struct net *n)
{
	struct qhca_cqe cqe;

	return md_poll(&n->first.to_cq, &cqe) ? cqe.status : -1;
}

static uint32_t new_pte(struct net *n, uint32_t ctrl, struct qhca_pte *pte)
{
	uint32_t index = n->vf->next_key++;

	put_le32(&pte->ctrl, ctrl | 12u << 16);
	put_le32(&pte->pd, PAIR_PD);
	put_le32(&pte->at_key, index);
	md_pte_write(n->vf, index, pte);
	return index << 8;
}

/* A key for two pages, whose leaf entries are at @leaves. */
static uint32_t fast_reg_key(struct net *n, uint64_t leaves)
{
	struct qhca_pte pte = { 0 };

	put_le64(&pte.at_base, leaves);
	put_le32(&pte.pool_block, 2);
	return new_pte(n, QHCA_PTE_INVALIDATED | QHCA_PTE_FAST_REG << 4 |
		       1u << 24, &pte);
}

/* REG_MR of @key, with the page list at @list. */
static void register_pages(struct net *n, uint32_t key, uint64_t list)
{
	struct qhca_wqe_reg reg = { .page_shift = 12 };
	struct md_wr wr = { .opcode = QHCA_WQE_REG_MR,
			    .flags = QHCA_WQE_F_SIGNALED, .reg = &reg };
	struct conn *c = &n->first;

	put_le64(&reg.iova, PAIR_IOVA);
	put_le64(&reg.length, 2 * MD_PAGE);
	put_le64(&reg.pages, list);
	put_le32(&reg.key, key);
	put_le32(&reg.access, ALL_ACCESS);
	put_le32(&reg.num_pages, 2);
	md_post_send(c->to, &c->to_qp, &wr);
	md_ring(c->to, &c->to_qp);
}

static void put_list(struct net *n, uint64_t list, uint64_t page)
{
	put_le64(host_ptr(&n->vf->host, list), page);
	put_le64(host_ptr(&n->vf->host, list + 8), page + MD_PAGE);
}

/* The one fault that waits is that of @addr.  It is served, and no other. */
static void serve_fault(int line, struct net *n, uint64_t addr, bool write)
{
	const struct qhca_fault_info *info = only_fault(n);

	if (get_le64(&info->addr) != addr ||
	    !(get_le32(&info->flags) & QHCA_FAULT_WRITE) == write)
		check_failed(line, "a fault at %#llx, with flags %#x",
			     (unsigned long long)get_le64(&info->addr),
			     get_le32(&info->flags));
	others_go_on(n);
	n->g.absent = false;
	guests_work(&n->g);
	n->g.absent = true;
	pass(n, 20 * MS);
}
#define SERVE_FAULT(n, addr, write) serve_fault(__LINE__, n, addr, write)

/* The host domain has nothing at the address of the one fault that waits, @addr. */
static void refuse_fault(int line, struct net *n, uint64_t addr)
{
	struct qhca_fault_info info = *only_fault(n);

	if (get_le64(&info.addr) != addr)
		check_failed(line, "a fault at %#llx",
			     (unsigned long long)get_le64(&info.addr));
	n->g.num_asks = 0;
	CHECK_EQ(resume2(n, get_le32(&info.token), QHCA_RESUME_FAIL), 0);
	n->g.absent = false;
	pass(n, MS);
	others_go_on(n);
	/* The connection has failed, and another one takes its place. */
	open_conn(&n->first, n->p->b.md, n->vf);
	check_goes_on(line, n, &n->first, 100 * MS);
	n->g.absent = true;
}
#define REFUSE_FAULT(n, addr) refuse_fault(__LINE__, n, addr)

/* The list, the leaves that it is copied to, and the pages that it names. */
static void page_list(struct pair *p)
{
	uint64_t list, leaves, data;
	struct net n;
	uint32_t key;

	open_net(&n, p);
	warm_up(&n);
	/* One entry is at the end of a page, and one at the beginning of the next. */
	list = md_alloc(n.vf, 2 * MD_PAGE, MD_PAGE) + MD_PAGE - 8;
	leaves = md_alloc(n.vf, MD_PAGE, MD_PAGE);
	data = md_alloc(n.vf, 2 * MD_PAGE, MD_PAGE);
	put_list(&n, list, data);
	key = fast_reg_key(&n, leaves);
	n.g.absent = true;
	register_pages(&n, key, list);
	pass(&n, MS);
	SERVE_FAULT(&n, list, false);
	CHECK_EQ(own_status(&n), -1);
	SERVE_FAULT(&n, leaves, true);
	CHECK_EQ(own_status(&n), 0);
	CHECK(!host_s2_present(&p->a.md->host, &n.vf->host, data));

	write_to(&n.first, PAIR_IOVA + MD_PAGE + 40, key, 100);
	pass(&n, MS);
	SERVE_FAULT(&n, data + MD_PAGE + 40, true);
	CHECK(completed(&n.first));
	CHECK(same(host_ptr(&n.vf->host, data + MD_PAGE + 40), 100,
		   n.first.posted));
	CHECK(!host_s2_present(&p->a.md->host, &n.vf->host, data));
	close_net(&n);
}

static void page_list_outside(struct pair *p)
{
	uint64_t list, leaves;
	struct net n;
	uint32_t key;

	open_net(&n, p);
	warm_up(&n);
	list = md_alloc(n.vf, MD_PAGE, MD_PAGE);
	leaves = md_alloc(n.vf, MD_PAGE, MD_PAGE);
	n.g.absent = true;
	register_pages(&n, fast_reg_key(&n, leaves), OUTSIDE);
	pass(&n, MS);
	REFUSE_FAULT(&n, OUTSIDE);

	put_list(&n, list, list);
	register_pages(&n, fast_reg_key(&n, OUTSIDE), list);
	pass(&n, MS);
	SERVE_FAULT(&n, list, false);
	REFUSE_FAULT(&n, OUTSIDE);

	put_list(&n, list, OUTSIDE);
	key = fast_reg_key(&n, leaves);
	register_pages(&n, key, list);
	pass(&n, MS);
	SERVE_FAULT(&n, leaves, true);
	CHECK_EQ(own_status(&n), 0);
	write_to(&n.first, PAIR_IOVA + 40, key, 100);
	pass(&n, MS);
	REFUSE_FAULT(&n, OUTSIDE + 40);
	close_net(&n);
}

/* A window of type 1 on the 2 pages from @start of the region. */
static uint32_t new_window(struct net *n, uint32_t region, uint64_t start)
{
	struct qhca_pte pte = { 0 };
	uint32_t mw = new_pte(n, QHCA_PTE_INVALIDATED | QHCA_PTE_MW1 << 4, &pte);
	struct qhca_wqe_bind bind = { 0 };
	struct md_wr wr = { .opcode = QHCA_WQE_BIND_MW,
			    .flags = QHCA_WQE_F_SIGNALED, .bind = &bind };
	struct conn *c = &n->first;

	put_le64(&bind.addr, start);
	put_le64(&bind.length, 2 * MD_PAGE);
	put_le32(&bind.mr_lkey, region);
	put_le32(&bind.mw_rkey, mw);
	put_le32(&bind.new_rkey, mw | 1);
	put_le32(&bind.access, QHCA_ACCESS_REMOTE_WRITE);
	md_post_send(c->to, &c->to_qp, &wr);
	md_ring(c->to, &c->to_qp);
	pass(n, MS);
	CHECK_EQ(own_status(n), 0);
	return mw | 1;
}

/* A region that permits windows, of 4 pages that begin at @at. */
static uint32_t bindable(struct net *n, uint64_t at)
{
	struct qhca_pte pte = { 0 };

	put_le64(&pte.at_base, at);
	put_le32(&pte.access, ALL_ACCESS | QHCA_ACCESS_MW_BIND);
	put_le64(&pte.start, PAIR_IOVA);
	put_le64(&pte.length, 4 * MD_PAGE);
	return new_pte(n, QHCA_PTE_VALID | QHCA_PTE_MR << 4, &pte);
}

/* A window names the pages of its region, which are absent, and no others. */
static void window(struct pair *p)
{
	uint64_t data;
	struct net n;
	uint32_t key;

	open_net(&n, p);
	warm_up(&n);
	data = md_alloc(n.vf, 4 * MD_PAGE, MD_PAGE);
	key = new_window(&n, bindable(&n, data), PAIR_IOVA + MD_PAGE);
	n.g.absent = true;
	write_to(&n.first, PAIR_IOVA + 2 * MD_PAGE + 40, key, 100);
	pass(&n, MS);
	SERVE_FAULT(&n, data + 2 * MD_PAGE + 40, true);
	CHECK(completed(&n.first));
	CHECK(same(host_ptr(&n.vf->host, data + 2 * MD_PAGE + 40), 100,
		   n.first.posted));

	n.g.absent = false;
	key = new_window(&n, bindable(&n, OUTSIDE), PAIR_IOVA);
	n.g.absent = true;
	write_to(&n.first, PAIR_IOVA + 40, key, 100);
	pass(&n, MS);
	REFUSE_FAULT(&n, OUTSIDE + 40);
	close_net(&n);
}

#define STAGE2(fn) NAMED(RC, "stage 2: " #fn, fn, .roomy = true)

const struct scenario stage2_key_scenarios[] = {
	STAGE2(page_list), STAGE2(page_list_outside), STAGE2(window),
	{ 0 }
};
