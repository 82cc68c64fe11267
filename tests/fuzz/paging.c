// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "odp.h"
#include "paging.h"

static uint64_t entry_of(const struct paging *p, uint32_t page)
{
	return p->mr->buf.root + 8ull * page;
}

static void take(struct paging *p, uint32_t page, uint32_t num)
{
	uint64_t skip = p->mr->iova % MD_PAGE;
	uint64_t start = (uint64_t)page * MD_PAGE;
	uint64_t end = start + (uint64_t)num * MD_PAGE - skip;
	struct qhca_range range;

	/* The range counts bytes from the region's start. */
	start = start > skip ? start - skip : 0;
	for (uint32_t i = page; i < page + num; i++)
		put_le64(md_ptr(p->g->md, entry_of(p, i)), 0);
	put_le64(&range.start, start);
	put_le64(&range.length, end - start);
	guard_cmd(p->g, QHCA_CMD_INVALIDATE_RANGE, p->mr->key >> 8, 0, &range,
		  sizeof(range));
	for (uint32_t i = page; i < page + num; i++)
		guard_page(p->g, p->mr->buf.page[i], false);
}

static void bring(struct paging *p, uint32_t page, bool write)
{
	uint64_t leaf = p->leaf[page];

	put_le64(md_ptr(p->g->md, entry_of(p, page)),
		 write ? leaf : leaf & ~(uint64_t)QHCA_ATE_WRITE);
	/* A page that the device could write stays writable until the input takes it. */
	if (write)
		guard_page(p->g, p->mr->buf.page[page], true);
}

void paging_start(struct paging *p, struct guard *g, struct md_mr *mr)
{
	uint32_t index = mr->key >> 8;
	struct qhca_pte *pte = md_ptr(g->md, g->md->pt + 64ull * index);

	*p = (struct paging){ .g = g, .mr = mr };
	if (mr->buf.levels != 1 || mr->buf.num_pages > PAGING_PAGES)
		guard_fail("a region that cannot be paged");
	for (uint32_t i = 0; i < mr->buf.num_pages; i++)
		p->leaf[i] = get_le64(md_ptr(g->md, entry_of(p, i)));
	put_le32(&pte->ctrl, get_le32(&pte->ctrl) | QHCA_PTE_ODP);
	guard_cmd(g, QHCA_CMD_INVALIDATE_KEY, index, QHCA_INVAL_PT, NULL, 0);
	take(p, 0, mr->buf.num_pages);
}

static void resume(struct paging *p, uint32_t token, uint32_t how)
{
	guard_cmd(p->g, QHCA_CMD_FAULT_RESUME, token, how, NULL, 0);
}

static void serve(struct paging *p, struct in *in)
{
	struct qhca_fault_info info;
	uint8_t how = in_u8(in);
	uint64_t page;
	uint32_t qpn;

	if (!md_fault(p->g->md, &qpn, &info))
		return;
	guard_digest(p->g, &info, sizeof(info));
	p->token = get_le32(&info.token);
	/* The addresses of a window may begin at zero. */
	page = (get_le64(&info.addr) - p->mr->iova + p->mr->iova % MD_PAGE) /
	       MD_PAGE;
	if (page >= p->mr->buf.num_pages)
		page = how % p->mr->buf.num_pages;
	if (how < 192)
		bring(p, (uint32_t)page,
		      get_le32(&info.flags) & QHCA_FAULT_WRITE || how & 1);
	resume(p, p->token, how < 224 ? QHCA_RESUME_OK : QHCA_RESUME_FAIL);
	if (how % 16 == 1)
		resume(p, p->token, QHCA_RESUME_OK);
}

void paging_step(struct paging *p, struct in *in)
{
	uint32_t pages = p->mr->buf.num_pages;
	uint32_t page = in_below(in, pages);
	uint8_t op = in_u8(in);

	if (op < 144)
		serve(p, in);
	else if (op < 208)
		take(p, page, 1 + in_below(in, pages - page));
	else if (op < 236)
		bring(p, page, op & 1);
	else if (op < 246)
		resume(p, p->token ^ 1u << in_below(in, 32), op & 1);
	else
		resume(p, (uint32_t)in_number(in), in_below(in, 3));
}
