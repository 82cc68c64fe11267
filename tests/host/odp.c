/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#include "odp.h"

#include <stdlib.h>
#include <string.h>

#include "bytes.h"

#define CANARY		0xdb
#define NODE		512u		/* entries */

/* ---- frames */

struct md_frames *md_frames_new(struct md *md, uint32_t num)
{
	struct md_frames *f = md_own(md, 1, sizeof(*f));
	uint64_t base = md_alloc(md, (uint64_t)num * MD_PAGE, MD_PAGE);

	f->free = md_own(md, num, sizeof(*f->free));
	f->num_free = num;
	for (uint32_t i = 0; i < num; i++)
		f->free[i] = base + (uint64_t)i * MD_PAGE;
	memset(md_ptr(md, base), CANARY, (uint64_t)num * MD_PAGE);
	return f;
}

static bool intact(struct md *md, uint64_t frame)
{
	const uint8_t *p = md_ptr(md, frame);

	return p[0] == CANARY && !memcmp(p, p + 1, MD_PAGE - 1);
}

uint32_t md_frames_check(struct md *md, struct md_frames *frames)
{
	for (uint32_t i = 0; i < frames->num_free; i++)
		frames->corrupt += !intact(md, frames->free[i]);
	return frames->corrupt;
}

/* Take away the next page in turn that is resident. */
static void reclaim(struct md_frames *f)
{
	for (uint32_t regions = 0; regions <= f->num_odp;) {
		struct md_odp *odp = f->odp[f->hand % f->num_odp];

		if (f->hand_page >= odp->mr.buf.num_pages) {
			f->hand++;
			f->hand_page = 0;
			regions++;
		} else if (odp->mr.buf.page[f->hand_page++]) {
			md_odp_take(odp, f->hand_page - 1);
			return;
		}
	}
}

static uint64_t frame_get(struct md *md, struct md_frames *f)
{
	uint64_t frame;

	if (!f->num_free)
		reclaim(f);
	if (!f->num_free)
		return 0;
	/* The allocator reuses the frame freed last, so that the canary shows a late write. */
	frame = f->free[--f->num_free];
	f->corrupt += !intact(md, frame);
	return frame;
}

static void frame_put(struct md *md, struct md_frames *f, uint64_t frame)
{
	memset(md_ptr(md, frame), CANARY, MD_PAGE);
	f->free[f->num_free++] = frame;
}

/* ---- regions */

uint32_t md_odp_pages(const struct md_odp *odp)
{
	return odp->mr.buf.num_pages;
}

uint32_t md_odp_page(const struct md_odp *odp, uint64_t addr)
{
	return (addr - (odp->mr.iova & ~(uint64_t)(MD_PAGE - 1))) / MD_PAGE;
}

struct md_odp *md_odp_reg(struct md *md, struct md_frames *frames, uint32_t pd,
			  uint64_t iova, uint64_t len, uint32_t access)
{
	struct md_odp *odp = md_own(md, 1, sizeof(*odp));
	uint32_t index = md->next_key++, octet = index * 37 & 0xff;
	uint32_t pages = (iova % MD_PAGE + len + MD_PAGE - 1) / MD_PAGE;
	uint32_t nodes = (pages + NODE - 1) / NODE;
	uint64_t root = md_alloc(md, 8 * nodes, 64), node = 0;
	struct qhca_pte pte = { 0 };

	odp->md = md;
	odp->frames = frames;
	odp->mr = (struct md_mr){
		.buf = { .page = md_own(md, pages, 8), .num_pages = pages,
			 .root = root, .levels = 2,
			 .len = len + iova % MD_PAGE, .odp = odp },
		.iova = iova, .len = len, .key = index << 8 | octet, .pd = pd,
		.access = access,
	};
	if (frames->num_odp == MD_MAX_ODP)
		host_die("too many regions on demand");
	frames->odp[frames->num_odp++] = odp;
	odp->leaf = md_own(md, pages, 8);
	odp->up = md_own(md, pages, 8);
	odp->store = md_own(md, pages, MD_PAGE);
	for (uint32_t i = 0; i < pages; i++) {
		if (i % NODE == 0)
			node = md_alloc(md, 8 * NODE, 64);
		odp->leaf[i] = node + 8 * (i % NODE);
		odp->up[i] = root + 8 * (i / NODE);
	}
	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_MR << 4 | octet << 8 |
			    12u << 16 | 2u << 24 | QHCA_PTE_ODP);
	put_le32(&pte.access, access);
	put_le32(&pte.pd, pd);
	put_le32(&pte.at_key, index);
	put_le64(&pte.start, iova);
	put_le64(&pte.length, len);
	put_le64(&pte.at_base, root);
	put_le64(&pte.at_offset, iova % MD_PAGE);
	md_pte_write(md, index, &pte);
	return odp;
}

bool md_odp_touch(struct md_odp *odp, uint32_t page)
{
	uint64_t *frame = &odp->mr.buf.page[page];

	if (*frame)
		return true;
	*frame = frame_get(odp->md, odp->frames);
	if (!*frame)
		return false;
	memcpy(md_ptr(odp->md, *frame), odp->store + (size_t)page * MD_PAGE,
	       MD_PAGE);
	return true;
}

bool md_odp_is_mapped(const struct md_odp *odp, uint32_t page)
{
	return get_le64(md_ptr(odp->md, odp->leaf[page]));
}

bool md_odp_map(struct md_odp *odp, uint32_t page, bool write)
{
	uint64_t *frame = &odp->mr.buf.page[page], entry;

	if (odp->hole || !md_odp_touch(odp, page))
		return false;
	odp->mapped += !md_odp_is_mapped(odp, page);
	entry = get_le64(md_ptr(odp->md, odp->leaf[page]));
	entry |= *frame | QHCA_ATE_PRESENT | QHCA_ATE_LEAF |
		 (write ? QHCA_ATE_WRITE : 0);
	put_le64(md_ptr(odp->md, odp->leaf[page]), entry);
	put_le64(md_ptr(odp->md, odp->up[page]),
		 (odp->leaf[page] - 8 * (page % NODE)) | QHCA_ATE_PRESENT);
	return true;
}

void md_odp_unmap(struct md_odp *odp, uint32_t page, uint32_t num)
{
	uint64_t first = (odp->mr.iova & ~(uint64_t)(MD_PAGE - 1)) +
			 (uint64_t)page * MD_PAGE;
	uint64_t end = first + (uint64_t)num * MD_PAGE;
	struct qhca_range range;
	bool any = false;

	for (uint32_t i = page; i < page + num; i++) {
		bool mapped = md_odp_is_mapped(odp, i);

		put_le64(md_ptr(odp->md, odp->leaf[i]), 0);
		odp->mapped -= mapped;
		any |= mapped;
		if (!odp->mapped)
			put_le64(md_ptr(odp->md, odp->up[i]), 0);
	}
	if (!any)
		return;
	/* Bytes counted from the region's start. */
	first = first > odp->mr.iova ? first - odp->mr.iova : 0;
	end -= odp->mr.iova;
	put_le64(&range.start, first);
	put_le64(&range.length, end - first);
	if (md_cmd(odp->md, QHCA_CMD_INVALIDATE_RANGE, odp->mr.key >> 8, 0,
		   &range, sizeof(range), NULL, 0, NULL))
		host_die("INVALIDATE_RANGE refused");
	odp->taken++;
}

void md_odp_take(struct md_odp *odp, uint32_t page)
{
	uint64_t *frame = &odp->mr.buf.page[page];

	md_odp_unmap(odp, page, 1);
	if (!*frame)
		return;
	memcpy(odp->store + (size_t)page * MD_PAGE, md_ptr(odp->md, *frame),
	       MD_PAGE);
	frame_put(odp->md, odp->frames, *frame);
	*frame = 0;
}

void md_odp_move(struct md_odp *odp, uint32_t page)
{
	uint64_t *frame = &odp->mr.buf.page[page], old = *frame;

	if (!old || !odp->frames->num_free)
		return;
	md_odp_unmap(odp, page, 1);
	*frame = frame_get(odp->md, odp->frames);
	memcpy(md_ptr(odp->md, *frame), md_ptr(odp->md, old), MD_PAGE);
	frame_put(odp->md, odp->frames, old);
}

/* ---- faults */

bool md_fault(struct md *md, uint32_t *qpn, struct qhca_fault_info *info)
{
	struct qhca_eqe eqe;

	while (md_event(md, &eqe)) {
		if (eqe.type != QHCA_EVENT_PAGE_FAULT)
			continue;
		*qpn = get_le32(&eqe.number);
		*info = eqe.fault;
		return true;
	}
	return false;
}

int md_resume(struct md *md, uint32_t token, bool ok)
{
	return md_cmd(md, QHCA_CMD_FAULT_RESUME, token,
		      ok ? QHCA_RESUME_OK : QHCA_RESUME_FAIL, NULL, 0, NULL, 0,
		      NULL);
}
