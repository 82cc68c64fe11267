// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What changes keys: binding, fast registration, invalidation.
 *
 * Every change reads the entry from memory and not from a cache, checks it,
 * drops the cached copies and writes the entry back.  INVALIDATE commands work
 * in slices, since a range of keys can be as large as the table.
 */
#include "hca.h"

/* All translation lines that a valid entry's range can have. */
static void at_drop(struct hca_fn *fn, uint32_t index,
		    const struct hca_pte_host *pte)
{
	uint64_t last = pte->at_offset + (pte->length ? pte->length - 1 : 0);

	hca_cache_invalidate_range(&fn->hca->cache.at,
				   &fn->cache[QHCA_CACHE_AT], index,
				   pte->at_offset >> pte->page_shift,
				   last >> pte->page_shift);
}

static int write_windows(struct hca_fn *fn, uint32_t index, uint32_t count)
{
	uint64_t addr;
	uint8_t raw[4];

	if (!hca_table_entry(fn, QHCA_TABLE_PT, index, &addr))
		return -1;
	put_le32(raw, count);
	hca_pt_drop(fn, index);
	return hca_dma_write(fn, addr + offsetof(struct qhca_pte, windows),
			     raw, sizeof(raw));
}

/*
 * Take a window off the count of a region.  Software may have freed the region
 * in the meantime.
 */
static void unbind_region(struct hca_fn *fn, uint32_t index)
{
	struct qhca_pte raw;
	uint32_t windows;
	uint64_t addr;

	if (index < QHCA_FIRST_KEY_INDEX ||
	    !hca_table_entry(fn, QHCA_TABLE_PT, index, &addr) ||
	    hca_dma_read(fn, addr, &raw, sizeof(raw)))
		return;
	windows = get_le32(&raw.windows);
	if (windows)
		write_windows(fn, index, windows - 1);
}

/* Is @key's entry one that a work request of this QP may change? */
static enum hca_mem_reason pte_mine(const struct hca_pte_host *pte,
				    uint32_t key, uint32_t pd, bool octet)
{
	if (octet && pte->octet != QHCA_KEY_OCTET(key))
		return HCA_PROT_OCTET;
	return pte->pd == pd ? HCA_PROT_NONE : HCA_PROT_PD;
}

/* Write the entry of a key that the pool bank may have a copy of. */
static enum hca_mem_status change_entry(struct hca_fn *fn, uint32_t key,
					const struct hca_pte_host *pte)
{
	hca_pool_key_drop(fn, QHCA_KEY_INDEX(key), QHCA_KEY_INDEX(key));
	return hca_pte_write(fn, key, pte);
}

/* ---- binding */

#define WINDOW_ACCESS (QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ | \
		       QHCA_ACCESS_REMOTE_ATOMIC | QHCA_ACCESS_ZERO_BASED | \
		       QHCA_ACCESS_FLUSH_GLOBAL | QHCA_ACCESS_FLUSH_PERSISTENT)

struct bind {				/* a bind request in host order */
	uint64_t addr, length;
	uint32_t mr_lkey, mw_rkey, new_rkey, access;
};

static enum hca_mem_reason bind_window_refusal(const struct hca_pte_host *mw,
					       const struct bind *b,
					       uint32_t pd)
{
	/* A window of type 2 is unbound, and has no key that the octet is part of. */
	enum hca_mem_reason reason = pte_mine(mw, b->mw_rkey, pd,
					      mw->type != QHCA_PTE_MW2B);

	if (!hca_pte_is_window(mw))
		return HCA_PROT_TYPE;
	if (reason)
		return reason;
	if (QHCA_KEY_INDEX(b->new_rkey) != QHCA_KEY_INDEX(b->mw_rkey) ||
	    b->access & ~WINDOW_ACCESS)
		return HCA_PROT_ARGUMENT;
	if (mw->type == QHCA_PTE_MW1)
		return b->access & QHCA_ACCESS_ZERO_BASED ? HCA_PROT_ARGUMENT :
							    HCA_PROT_NONE;
	if (mw->state != QHCA_PTE_INVALIDATED)
		return HCA_PROT_STATE;
	return b->length ? HCA_PROT_NONE : HCA_PROT_ARGUMENT;
}

static enum hca_mem_reason bind_region_refusal(const struct hca_pte_host *mr,
					       const struct bind *b,
					       uint32_t pd)
{
	enum hca_mem_reason reason = pte_mine(mr, b->mr_lkey, pd, true);

	if (mr->state != QHCA_PTE_VALID)
		return HCA_PROT_STATE;
	if (mr->type != QHCA_PTE_MR && mr->type != QHCA_PTE_FAST_REG &&
	    mr->type != QHCA_PTE_POOL)
		return HCA_PROT_TYPE;
	if (reason)
		return reason;
	if (!(mr->access & QHCA_ACCESS_MW_BIND))
		return HCA_PROT_ACCESS;
	if (b->access & (QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_ATOMIC) &&
	    !(mr->access & QHCA_ACCESS_LOCAL_WRITE))
		return HCA_PROT_ACCESS;
	/* A window cannot make memory persistent that is not. */
	if (b->access & ~mr->access & QHCA_ACCESS_FLUSH_PERSISTENT)
		return HCA_PROT_ACCESS;
	return hca_range_inside(b->addr, b->length, mr->start, mr->length) ?
	       HCA_PROT_NONE : HCA_PROT_RANGE;
}

/* Make @mw the window on @mr that @b asks for.  false: pool row too short. */
static bool bind_fill(const struct hca_fn *fn, struct hca_pte_host *mw,
		      const struct hca_pte_host *mr, const struct bind *b,
		      uint32_t qpn)
{
	uint64_t base, addr;

	mw->state = QHCA_PTE_VALID;
	mw->octet = QHCA_KEY_OCTET(b->new_rkey);
	mw->access = b->access;
	mw->start = b->access & QHCA_ACCESS_ZERO_BASED ? 0 : b->addr;
	mw->length = b->length;
	mw->at_key = QHCA_KEY_INDEX(b->mr_lkey);
	mw->at_base = mr->at_base;
	mw->at_offset = mr->at_offset + (b->addr - mr->start);
	mw->pooled = mr->type == QHCA_PTE_POOL;
	mw->levels = mw->pooled ? 0 : mr->levels;
	mw->page_shift = mr->page_shift;
	mw->odp = mr->odp;
	mw->pool_block = mw->pooled ? mr->pool_block : 0;
	mw->windows = 1;
	mw->qpn = mw->type == QHCA_PTE_MW2B ? qpn : 0;
	if (!mw->pooled)
		return true;
	base = mr->at_base + mw->at_offset;
	return base >= mr->at_base &&
	       hca_pool_resolve(fn, mr->pool_block, base, b->length, &addr);
}

/* The new region counts the window before the window works. */
static enum hca_mem_status bind_new(struct hca_fn *fn,
				    struct hca_pte_host *mw,
				    const struct bind *b, uint32_t pd,
				    uint32_t qpn)
{
	enum hca_mem_reason reason;
	enum hca_mem_status status;
	struct hca_pte_host mr;

	status = hca_pte_read(fn, b->mr_lkey, &mr);
	if (status)
		return status;
	reason = bind_region_refusal(&mr, b, pd);
	if (reason)
		return hca_pte_refuse(fn, b->mr_lkey, b->addr, b->length, reason);
	if (!bind_fill(fn, mw, &mr, b, qpn))
		return hca_pte_refuse(fn, b->mr_lkey, b->addr, b->length,
			      HCA_PROT_POOL);
	if (write_windows(fn, mw->at_key, mr.windows + 1))
		return HCA_MEM_DMA;
	return HCA_MEM_OK;
}

enum hca_mem_status hca_mem_bind(struct hca_fn *fn, uint32_t pd,
				 uint32_t qpn,
				 const struct qhca_wqe_bind *wqe)
{
	struct bind b = {
		.addr = get_le64(&wqe->addr), .length = get_le64(&wqe->length),
		.mr_lkey = get_le32(&wqe->mr_lkey),
		.mw_rkey = get_le32(&wqe->mw_rkey),
		.new_rkey = get_le32(&wqe->new_rkey),
		.access = get_le32(&wqe->access),
	};
	struct hca_pte_host mw;
	enum hca_mem_status status = hca_pte_read(fn, b.mw_rkey, &mw);
	enum hca_mem_reason reason;
	uint32_t old_region;

	if (status)
		return status;
	reason = bind_window_refusal(&mw, &b, pd);
	if (reason)
		return hca_pte_refuse_key(fn, b.mw_rkey, reason);
	old_region = mw.windows ? mw.at_key : 0;
	if (b.length) {
		status = bind_new(fn, &mw, &b, pd, qpn);
	} else {
		mw.state = QHCA_PTE_INVALIDATED;
		mw.octet = QHCA_KEY_OCTET(b.new_rkey);
		mw.windows = 0;
	}
	if (!status)
		status = change_entry(fn, b.mw_rkey, &mw);
	if (!status && b.length && mw.pooled)
		hca_pool_key_add(fn, QHCA_KEY_INDEX(b.mw_rkey), &mw);
	if (!status && old_region)
		unbind_region(fn, old_region);
	return status;
}

/* ---- invalidation by work requests */

static enum hca_mem_reason inv_refusal(const struct hca_pte_host *pte,
				       uint32_t key, uint32_t pd,
				       uint32_t qpn, bool remote)
{
	enum hca_mem_reason reason = pte_mine(pte, key, pd, true);

	if (reason)
		return reason;
	if (remote && !pte->remote_inv)
		return HCA_PROT_ACCESS;
	if (pte->type == QHCA_PTE_FAST_REG)
		return pte->windows ? HCA_PROT_WINDOWS : HCA_PROT_NONE;
	if (pte->type != QHCA_PTE_MW2B)
		return HCA_PROT_TYPE;
	/* An unbound window belongs to no QP. */
	return pte->state == QHCA_PTE_VALID && pte->qpn != qpn ?
	       HCA_PROT_QPN : HCA_PROT_NONE;
}

static enum hca_mem_status invalidate(struct hca_fn *fn, uint32_t pd,
				      uint32_t qpn, uint32_t key, bool remote)
{
	struct hca_pte_host pte;
	enum hca_mem_status status = hca_pte_read(fn, key, &pte);
	enum hca_mem_reason reason;
	bool bound;

	if (status)
		return status;
	reason = inv_refusal(&pte, key, pd, qpn, remote);
	if (reason)
		return hca_pte_refuse_key(fn, key, reason);
	if (pte.state == QHCA_PTE_INVALIDATED)
		return HCA_MEM_OK;
	pte.state = QHCA_PTE_INVALIDATED;
	bound = pte.type == QHCA_PTE_MW2B && pte.windows;
	if (bound)
		pte.windows = 0;
	status = change_entry(fn, key, &pte);
	if (status)
		return status;
	if (pte.type == QHCA_PTE_FAST_REG)
		at_drop(fn, QHCA_KEY_INDEX(key), &pte);
	if (bound)
		unbind_region(fn, pte.at_key);
	return HCA_MEM_OK;
}

enum hca_mem_status hca_mem_local_inv(struct hca_fn *fn, uint32_t pd,
				      uint32_t qpn, uint32_t key)
{
	return invalidate(fn, pd, qpn, key, false);
}

enum hca_mem_status hca_mem_remote_inv(struct hca_fn *fn, uint32_t pd,
				       uint32_t qpn, uint32_t rkey)
{
	return invalidate(fn, pd, qpn, rkey, true);
}

/* ---- fast registration */

#define REG_ACCESS	(QHCA_ACCESS_MASK)
#define REG_BATCH	256u		/* entries copied at a time */

struct reg {				/* a registration in host order */
	uint64_t iova, length, pages;
	uint32_t key, access, num_pages;
	uint8_t page_shift;
};

static enum hca_mem_reason reg_refusal(const struct hca_pte_host *pte,
				       const struct reg *r, uint32_t pd)
{
	uint64_t page_size, offset, room;

	if (pte->type != QHCA_PTE_FAST_REG)
		return HCA_PROT_TYPE;
	if (pte->pd != pd)
		return HCA_PROT_PD;
	if (pte->state != QHCA_PTE_INVALIDATED)
		return HCA_PROT_STATE;
	if (pte->levels < 1 || pte->levels > 2 ||
	    pte->at_key != QHCA_KEY_INDEX(r->key))
		return HCA_PROT_PTE;
	if (r->num_pages == 0 || r->num_pages > pte->pool_block ||
	    r->num_pages > HCA_FAST_REG_MAX_PAGES ||
	    (pte->levels == 1 && r->num_pages > 1u << QHCA_AT_BITS) ||
	    r->page_shift < HCA_MIN_PAGE_SHIFT ||
	    r->page_shift > HCA_MAX_PAGE_SHIFT || r->access & ~REG_ACCESS)
		return HCA_PROT_ARGUMENT;
	page_size = 1ull << r->page_shift;
	offset = r->iova & (page_size - 1);
	room = page_size * r->num_pages;	/* at most 2^(39 + 12) */
	return r->length <= room - offset ? HCA_PROT_NONE : HCA_PROT_RANGE;
}

/* Bus address of leaf entry @i and how many follow it in the same node. */
static enum hca_mem_status reg_leaf(struct hca_fn *fn,
				    const struct hca_pte_host *pte, uint32_t i,
				    uint64_t *addr, uint32_t *room)
{
	uint32_t slot = i & ((1u << QHCA_AT_BITS) - 1);
	uint64_t node = pte->at_base;
	enum hca_mem_status status;
	uint8_t raw[8];

	if (pte->levels == 2) {
		status = hca_s2_fetch(fn, node + 8ull * (i >> QHCA_AT_BITS), 0,
				      raw, sizeof(raw));
		if (status)
			return status;
		hca_count(fn, QHCA_CNT_at_node_reads);
		node = get_le64(raw);
		if (!(node & QHCA_ATE_PRESENT))
			return HCA_MEM_DMA;
		node &= QHCA_ATE_NODE;
	}
	*addr = node + 8ull * slot;
	*room = (1u << QHCA_AT_BITS) - slot;
	return HCA_MEM_OK;
}

/*
 * Copy the page list into the leaf nodes.  If a page of either is absent in stage 2,
 * all of it is done again later: until then the entry is INVALIDATED, and nobody
 * looks at the leaves.
 */
static enum hca_mem_status reg_copy(struct hca_fn *fn,
				    const struct hca_pte_host *pte,
				    const struct reg *r)
{
	uint64_t page_mask = ~((1ull << r->page_shift) - 1), addr;
	enum hca_mem_status status;
	uint8_t list[REG_BATCH * 8];
	uint32_t i, j, n, room;

	for (i = 0; i < r->num_pages; i += n) {
		status = reg_leaf(fn, pte, i, &addr, &room);
		if (status)
			return status;
		n = r->num_pages - i;
		n = n < room ? n : room;
		n = n < REG_BATCH ? n : REG_BATCH;
		status = hca_s2_fetch(fn, r->pages + 8ull * i, 0, list, n * 8);
		if (status)
			return status;
		for (j = 0; j < n; j++)
			put_le64(list + j * 8,
				 (get_le64(list + j * 8) & page_mask) |
				 QHCA_ATE_PRESENT | QHCA_ATE_LEAF |
				 QHCA_ATE_WRITE);
		status = hca_s2_store(fn, addr, list, n * 8);
		if (status)
			return status;
	}
	return HCA_MEM_OK;
}

enum hca_mem_status hca_mem_reg(struct hca_fn *fn, uint32_t pd, bool kernel,
				const struct qhca_wqe_reg *wqe)
{
	struct reg r = {
		.iova = get_le64(&wqe->iova), .length = get_le64(&wqe->length),
		.pages = get_le64(&wqe->pages), .key = get_le32(&wqe->key),
		.access = get_le32(&wqe->access),
		.num_pages = get_le32(&wqe->num_pages),
		.page_shift = wqe->page_shift,
	};
	enum hca_mem_reason reason;
	enum hca_mem_status status;
	struct hca_pte_host pte;

	if (!kernel)
		return hca_pte_refuse_key(fn, r.key, HCA_PROT_TYPE);
	status = hca_pte_read(fn, r.key, &pte);
	if (status)
		return status;
	reason = reg_refusal(&pte, &r, pd);
	if (reason)
		return hca_pte_refuse(fn, r.key, r.iova, r.length, reason);
	status = reg_copy(fn, &pte, &r);
	if (status == HCA_MEM_FAULT) {
		fn->mem.fault.addr = r.pages;
		fn->mem.fault.len = 0;
		fn->mem.fault.done = 0;
		fn->mem.fault.key = r.key;
	}
	if (status)
		return status;
	pte.state = QHCA_PTE_VALID;
	pte.octet = QHCA_KEY_OCTET(r.key);
	pte.access = r.access;
	pte.page_shift = r.page_shift;
	pte.start = r.access & QHCA_ACCESS_ZERO_BASED ? 0 : r.iova;
	pte.length = r.length;
	pte.at_offset = r.iova & ((1ull << r.page_shift) - 1);
	at_drop(fn, QHCA_KEY_INDEX(r.key), &pte);
	return hca_pte_write(fn, r.key, &pte);
}

/* ------------------------------------------------------------------------
 * Commands
 */

/*
 * Software frees a window: take it off the count of its region, if it is bound.
 * The state of the entry says nothing about that, because software has already
 * set it to FREE.
 */
static void inval_window(struct hca_fn *fn, uint32_t index)
{
	struct hca_pte_host pte;
	struct qhca_pte raw;
	uint64_t addr;

	if (!hca_table_entry(fn, QHCA_TABLE_PT, index, &addr) ||
	    hca_dma_read(fn, addr, &raw, sizeof(raw)))
		return;
	hca_pte_decode(&raw, &pte);
	if (!hca_pte_is_window(&pte) || pte.windows != 1 ||
	    write_windows(fn, index, 0))
		return;
	unbind_region(fn, pte.at_key);
}

static struct hca_cache_inval inval_of(const struct hca_fn *fn,
				       uint32_t index, uint64_t first_page,
				       uint64_t last_page)
{
	return (struct hca_cache_inval){
		.gvmi = fn->cfg.gvmi, .index = index,
		.first_page = first_page, .last_page = last_page,
	};
}

/* Do the next slice of the command's sweep.  OK: it was the last. */
static enum qhca_cmd_status sweep_at(struct hca_fn *fn, struct hca_cmd_ctx *ctx)
{
	return hca_cache_sweep(&fn->hca->cache.at, &fn->cache[QHCA_CACHE_AT],
			       &ctx->sweep) ? QHCA_CMD_OK : HCA_CMD_AGAIN;
}

enum qhca_cmd_status hca_cmd_invalidate_key(struct hca_fn *fn,
					    struct hca_cmd_ctx *ctx)
{
	struct hca_cache_inval all = inval_of(fn, ctx->index, 0, UINT64_MAX);

	if (ctx->step)
		return sweep_at(fn, ctx);
	if (!ctx->param || ctx->param & ~(QHCA_INVAL_PT | QHCA_INVAL_AT))
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
	if (ctx->index < QHCA_FIRST_KEY_INDEX)
		return QHCA_CMD_BAD_INDEX;
	hca_trace(fn, QHCA_TRACE_INVALIDATE, ctx->index, ctx->param, 0, 0);
	if (ctx->param & QHCA_INVAL_PT) {
		hca_pool_key_drop(fn, ctx->index, ctx->index);
		hca_pt_drop(fn, ctx->index);
		inval_window(fn, ctx->index);
	}
	if (!(ctx->param & QHCA_INVAL_AT))
		return QHCA_CMD_OK;
	ctx->step = 1;
	hca_cache_sweep_begin(&fn->hca->cache.at, &ctx->sweep, &all);
	return sweep_at(fn, ctx);
}

/*
 * The lines of the pages that the range touches.  If the entry does not tell
 * which these are, the lines of all pages.
 */
static struct hca_cache_inval range_lines(struct hca_fn *fn, uint32_t index,
					  uint64_t start, uint64_t length)
{
	struct hca_pte_host pte;
	struct qhca_pte raw;
	uint64_t addr, first;

	if (!hca_table_entry(fn, QHCA_TABLE_PT, index, &addr) ||
	    hca_dma_read(fn, addr, &raw, sizeof(raw)))
		return inval_of(fn, index, 0, UINT64_MAX);
	hca_pte_decode(&raw, &pte);
	first = start + pte.at_offset;
	if (pte.state != QHCA_PTE_VALID || first < start ||
	    first + (length - 1) < first)
		return inval_of(fn, index, 0, UINT64_MAX);
	return inval_of(fn, index, first >> pte.page_shift,
			(first + length - 1) >> pte.page_shift);
}

enum qhca_cmd_status hca_cmd_invalidate_range(struct hca_fn *fn,
					      struct hca_cmd_ctx *ctx)
{
	const struct qhca_range *range = (const void *)ctx->in;
	uint64_t start = get_le64(&range->start);
	uint64_t length = get_le64(&range->length);
	struct hca_cache_inval lines;

	if (ctx->step)
		return sweep_at(fn, ctx);
	if (ctx->index < QHCA_FIRST_KEY_INDEX)
		return QHCA_CMD_BAD_INDEX;
	if (length == 0 || start + (length - 1) < start)
		return hca_cmd_bad(ctx, offsetof(struct qhca_range, length));
	hca_trace(fn, QHCA_TRACE_INVALIDATE, ctx->index, QHCA_INVAL_AT, start,
		  length);
	lines = range_lines(fn, ctx->index, start, length);
	ctx->step = 1;
	hca_cache_sweep_begin(&fn->hca->cache.at, &ctx->sweep, &lines);
	return sweep_at(fn, ctx);
}

/*
 * INVALIDATE_ALL drops protection lines, copies keys of the bank again, and
 * drops translation lines, in this order.
 */
enum { ALL_CHECK, ALL_PT, ALL_POOL, ALL_AT };

static void all_next(struct hca_fn *fn, struct hca_cmd_ctx *ctx)
{
	const struct hca_cache_inval all = {
		.gvmi = fn->cfg.gvmi, .all = true,
	};

	ctx->step = ctx->step == ALL_CHECK && !(ctx->param & QHCA_INVAL_PT) ?
		    ALL_AT : ctx->step + 1;
	if (ctx->step == ALL_PT)
		hca_cache_sweep_begin(&fn->hca->cache.pt, &ctx->sweep, &all);
	else if (ctx->step == ALL_AT && ctx->param & QHCA_INVAL_AT)
		hca_cache_sweep_begin(&fn->hca->cache.at, &ctx->sweep, &all);
}

static bool all_slice(struct hca_fn *fn, struct hca_cmd_ctx *ctx)
{
	switch (ctx->step) {
	case ALL_PT:
		return hca_cache_sweep(&fn->hca->cache.pt,
				       &fn->cache[QHCA_CACHE_PT], &ctx->sweep);
	case ALL_POOL:
		return hca_pool_refresh(fn, &ctx->next);
	default:
		return hca_cache_sweep(&fn->hca->cache.at,
				       &fn->cache[QHCA_CACHE_AT], &ctx->sweep);
	}
}

enum qhca_cmd_status hca_cmd_invalidate_all(struct hca_fn *fn,
					    struct hca_cmd_ctx *ctx)
{
	uint32_t last = ctx->param & QHCA_INVAL_AT ? ALL_AT : ALL_POOL;

	if (ctx->step == ALL_CHECK) {
		if (!ctx->param ||
		    ctx->param & ~(QHCA_INVAL_PT | QHCA_INVAL_AT))
			return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
		hca_trace(fn, QHCA_TRACE_INVALIDATE, UINT32_MAX, ctx->param,
			  0, 0);
		all_next(fn, ctx);
	}
	while (all_slice(fn, ctx)) {
		if (ctx->step == last)
			return QHCA_CMD_OK;
		all_next(fn, ctx);
	}
	return HCA_CMD_AGAIN;
}
