// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Protection and translation.  See mem.h for the pipeline and its rules, and
 * Documentation/hardware.rst, section Memory.
 *
 * The hit path: one set of the protection cache, a handful of compares, one
 * set of the translation cache for each page, one DMA for each run of pages that
 * follow each other.
 */
#include "hca.h"
#include "mem/reserved_key.h"

#include <stdatomic.h>

/* Pages that HCA_MEM_MAX_LEN bytes can touch. */
#define MAX_RUNS	(HCA_MEM_MAX_LEN / 4096 + 1)

struct run {				/* bus-contiguous piece of an access */
	uint64_t addr;
	uint64_t len;
};

bool hca_mem_init(struct hca_fn *fn, struct qhca_geometry pt,
		  struct qhca_geometry at)
{
	struct hca_caches *caches = &fn->hca->cache;

	return hca_cache_join(&caches->pt, &fn->cache[QHCA_CACHE_PT], pt,
			      sizeof(struct hca_pte_host)) &&
	       hca_cache_join(&caches->at, &fn->cache[QHCA_CACHE_AT], at,
			      sizeof(uint64_t));
}

void hca_mem_fini(struct hca_fn *fn)
{
	hca_cache_leave(&fn->hca->cache.pt, &fn->cache[QHCA_CACHE_PT]);
	hca_cache_leave(&fn->hca->cache.at, &fn->cache[QHCA_CACHE_AT]);
}

/* ------------------------------------------------------------------------
 * Protection
 */
static struct hca_tag hca_pt_tag(const struct hca_fn *fn, uint32_t index)
{
	return (struct hca_tag){ .gvmi = fn->cfg.gvmi, .index = index };
}

/*
 * Serve a miss: read the entry, and install it if it is VALID.  *@pte is the
 * line or @copy.
 */
static enum hca_mem_status pte_fill(struct hca_fn *fn, uint32_t key,
				    struct hca_pte_host *copy,
				    const struct hca_pte_host **pte)
{
	uint64_t epoch = hca_cache_fill_begin(&fn->hca->cache.pt);
	uint32_t index = QHCA_KEY_INDEX(key);
	enum hca_mem_status status;
	struct hca_pte_host *line;

	hca_trace(fn, QHCA_TRACE_CACHE_MISS, QHCA_CACHE_PT, index, 0, 0);
	hca_charge(fn, fn->hca->cost.fetch.pt_ns);
	status = hca_pte_read(fn, key, copy);
	if (status)
		return status;
	*pte = copy;
	if (copy->state != QHCA_PTE_VALID)
		return HCA_MEM_OK;
	line = hca_cache_install(&fn->hca->cache.pt, &fn->cache[QHCA_CACHE_PT],
				 hca_pt_tag(fn, index), epoch);
	if (line) {
		*line = *copy;
		*pte = line;
	}
	return HCA_MEM_OK;
}

/*
 * The entry of the request's key from the pool bank or through the protection
 * cache.  *@pte is good until the next lookup.
 */
static enum hca_mem_status pte_get(struct hca_fn *fn,
				   const struct hca_mem_req *req,
				   struct hca_pte_host *copy,
				   const struct hca_pte_host **pte)
{
	uint32_t key = req->key, index = QHCA_KEY_INDEX(key);
	enum hca_mem_status status;
	uint64_t addr;

	*pte = hca_pool_key(fn, index);
	if (*pte) {
		if (!req->again)
			hca_count(fn, QHCA_CNT_pool_bank_hits);
		return HCA_MEM_OK;
	}
	if (index >= QHCA_FIRST_KEY_INDEX &&
	    index < hca_table_size(fn, QHCA_TABLE_PT) &&
	    hca_table_entry(fn, QHCA_TABLE_PT, index, &addr)) {
		*pte = NULL;
		if (req->again)
			*pte = hca_cache_peek(&fn->hca->cache.pt,
					      hca_pt_tag(fn, index));
		if (!*pte)
			*pte = hca_cache_lookup(&fn->hca->cache.pt,
						&fn->cache[QHCA_CACHE_PT],
						hca_pt_tag(fn, index));
		return *pte ? HCA_MEM_OK : pte_fill(fn, key, copy, pte);
	}
	status = hca_pte_address(fn, key, &addr);	/* says why */
	return status ? status : HCA_MEM_PROT;
}

static uint64_t span(const struct hca_mem_req *req)
{
	return req->span > req->len ? req->span : req->len;
}

static enum hca_mem_reason pte_refusal(const struct hca_pte_host *pte,
				       const struct hca_mem_req *req)
{
	if (pte->state != QHCA_PTE_VALID)
		return HCA_PROT_STATE;
	if (pte->octet != QHCA_KEY_OCTET(req->key))
		return HCA_PROT_OCTET;
	if (pte->pd != req->pd)
		return HCA_PROT_PD;
	if (pte->type == QHCA_PTE_MW2B && pte->qpn != req->qpn)
		return HCA_PROT_QPN;
	if (hca_pte_is_window(pte) && !req->remote)
		return HCA_PROT_TYPE;
	if (req->access & ~pte->access)
		return HCA_PROT_ACCESS;
	if (!req->whole &&
	    !hca_range_inside(req->addr, span(req), pte->start, pte->length))
		return HCA_PROT_RANGE;
	return HCA_PROT_NONE;
}

/* All of protection; *@pte is NULL for the reserved and the null L_Key. */
static enum hca_mem_status protect(struct hca_fn *fn,
				   const struct hca_mem_req *req,
				   struct hca_pte_host *copy,
				   const struct hca_pte_host **pte)
{
	enum hca_mem_reason reason;
	enum hca_mem_status status;

	*pte = NULL;
	if (hca_key_is_reserved(req->key))
		return hca_reserved_key_check(fn, req);
	status = pte_get(fn, req, copy, pte);
	if (status)
		return status;
	reason = pte_refusal(*pte, req);
	if (reason)
		return hca_pte_refuse(fn, req->key, req->addr, span(req),
				      reason);
	return HCA_MEM_OK;
}

enum hca_mem_status hca_mem_check(struct hca_fn *fn,
				  const struct hca_mem_req *req)
{
	const struct hca_pte_host *pte;
	struct hca_pte_host copy;

	return req->len ? protect(fn, req, &copy, &pte) : HCA_MEM_OK;
}

enum hca_mem_status hca_mem_check_key(struct hca_fn *fn,
				      const struct hca_mem_req *req)
{
	const struct hca_pte_host *pte;
	struct hca_pte_host copy;

	return protect(fn, req, &copy, &pte);
}

/* ------------------------------------------------------------------------
 * Translation
 */
struct access {
	const struct hca_mem_req *req;
	const struct hca_pte_host *pte;
	bool write;
	uint8_t *devmem;		/* not NULL: in device memory, no runs */
	unsigned int num_runs;		/* 0 without devmem: the null L_Key */
	struct run run[MAX_RUNS];
};

static enum hca_mem_status refuse_access(struct hca_fn *fn,
					 const struct access *a,
					 enum hca_mem_reason reason)
{
	return hca_pte_refuse(fn, a->req->key, a->req->addr, a->req->len, reason);
}

static void add_run(struct access *a, uint64_t addr, uint64_t len)
{
	struct run *last = a->num_runs ? &a->run[a->num_runs - 1] : NULL;

	if (last && last->addr + last->len == addr)
		last->len += len;
	else
		a->run[a->num_runs++] = (struct run){ addr, len };
}

/* @done bytes of the access precede the page that faults. */
static enum hca_mem_status page_fault(struct hca_fn *fn, const struct access *a,
				      uint64_t done)
{
	fn->mem.fault.addr = a->req->addr + done;
	fn->mem.fault.len = a->req->len - done;
	fn->mem.fault.done = done;
	fn->mem.fault.key = a->req->key;
	return HCA_MEM_FAULT;
}

/*
 * The page is not present: this is a page fault if the region may fault, and a
 * protection error otherwise.
 */
static enum hca_mem_status absent(struct hca_fn *fn, const struct access *a,
				  uint64_t done, enum hca_mem_reason reason)
{
	if (!a->pte->odp)
		return refuse_access(fn, a, reason);
	fn->mem.fault.stage2 = false;
	return page_fault(fn, a, done);
}

static enum hca_mem_status at_fill(struct hca_fn *fn,
				   const struct access *a, uint64_t offset,
				   uint64_t done, uint64_t *entry)
{
	const struct hca_pte_host *pte = a->pte;
	struct hca_at_root root = {
		.base = pte->at_base, .page_shift = pte->page_shift,
		.levels = pte->levels, .may_fault = true,
	};
	struct hca_tag tag = {
		.page = offset >> pte->page_shift, .index = pte->at_key,
		.gvmi = fn->cfg.gvmi,
	};
	uint64_t epoch = hca_cache_fill_begin(&fn->hca->cache.at);
	uint64_t *reads = &fn->counter[QHCA_CNT_at_node_reads];
	uint64_t before = *reads, *line;
	enum hca_walk walk;

	hca_trace(fn, QHCA_TRACE_CACHE_MISS, QHCA_CACHE_AT, pte->at_key,
		  tag.page, 0);
	walk = hca_at_walk(fn, &root, offset, entry, reads);
	hca_charge(fn, (*reads - before) * fn->hca->cost.fetch.at_ns);
	switch (walk) {
	case HCA_WALK_OK:
		break;
	case HCA_WALK_ABSENT:
		return absent(fn, a, done, HCA_PROT_NOT_PRESENT);
	case HCA_WALK_STAGE2:
		return page_fault(fn, a, done);
	default:
		/* The offset is beyond the root, or a node cannot be read. */
		return refuse_access(fn, a, HCA_PROT_NOT_PRESENT);
	}
	line = hca_cache_install(&fn->hca->cache.at, &fn->cache[QHCA_CACHE_AT],
				 tag, epoch);
	if (line)
		*line = *entry;
	return HCA_MEM_OK;
}

/*
 * Software may make a page writable without an invalidation.  A line without
 * QHCA_ATE_WRITE therefore does not serve a write: the device walks again.
 */
static bool serves_write(const void *line)
{
	return *(const uint64_t *)line & QHCA_ATE_WRITE;
}

/* Translation of one page through the cache; @done bytes precede it. */
static enum hca_mem_status at_get(struct hca_fn *fn, const struct access *a,
				  uint64_t offset, uint64_t done,
				  uint64_t *entry)
{
	const struct hca_pte_host *pte = a->pte;
	enum hca_mem_status status;
	struct hca_tag tag = {
		.page = offset >> pte->page_shift, .index = pte->at_key,
		.gvmi = fn->cfg.gvmi,
	};
	const uint64_t *line = hca_cache_lookup_if(&fn->hca->cache.at,
						   &fn->cache[QHCA_CACHE_AT],
						   tag,
						   a->write ? serves_write :
							      NULL);

	if (line) {
		*entry = *line;
		return HCA_MEM_OK;
	}
	status = at_fill(fn, a, offset, done, entry);
	if (status)
		return status;
	if (a->write && !(*entry & QHCA_ATE_WRITE))
		return absent(fn, a, done, HCA_PROT_READ_ONLY);
	return HCA_MEM_OK;
}

static enum hca_mem_status translate_pages(struct hca_fn *fn,
					   struct access *a, uint64_t offset)
{
	uint64_t page_size = 1ull << a->pte->page_shift;
	uint64_t done = 0, in_page, here, entry;
	enum hca_mem_status status;

	while (done < a->req->len) {
		status = at_get(fn, a, offset + done, done, &entry);
		if (status)
			return status;
		in_page = (offset + done) & (page_size - 1);
		here = a->req->len - done;
		if (here > page_size - in_page)
			here = page_size - in_page;
		add_run(a, (entry & QHCA_ATE_ADDR) + in_page, here);
		done += here;
	}
	return HCA_MEM_OK;
}

static enum hca_mem_status translate_pool(struct hca_fn *fn,
					  struct access *a, uint64_t offset)
{
	const struct hca_pte_host *pte = a->pte;
	uint64_t at = pte->at_base + offset, addr;

	if (at < offset ||
	    !hca_pool_resolve(fn, pte->pool_block, at, a->req->len, &addr))
		return refuse_access(fn, a, HCA_PROT_POOL);
	hca_count(fn, QHCA_CNT_pool_direct_uses);
	add_run(a, addr, a->req->len);
	return HCA_MEM_OK;
}

static enum hca_mem_status translate_devmem(struct hca_fn *fn,
					    struct access *a, uint64_t offset)
{
	uint64_t at = a->pte->at_base + offset;

	if (at < offset ||
	    !hca_range_inside(at, a->req->len, 0, fn->cfg.devmem_size))
		return refuse_access(fn, a, HCA_PROT_RANGE);
	hca_count(fn, QHCA_CNT_devmem_uses);
	a->devmem = (uint8_t *)fn->cfg.devmem + at;
	return HCA_MEM_OK;
}

/*
 * Find every page of an access that has passed the protection check, before any
 * byte moves.
 */
static enum hca_mem_status translate(struct hca_fn *fn, struct access *a)
{
	const struct hca_pte_host *pte = a->pte;
	uint64_t offset;

	if (!pte && a->req->key == QHCA_NULL_LKEY)
		return HCA_MEM_OK;
	if (!pte || pte->type == QHCA_PTE_DMA) {
		add_run(a, a->req->addr, a->req->len);
		return HCA_MEM_OK;
	}
	offset = a->req->addr - pte->start + pte->at_offset;
	if (hca_pte_is_pool(pte))
		return translate_pool(fn, a, offset);
	if (pte->type == QHCA_PTE_DEVMEM)
		return translate_devmem(fn, a, offset);
	if (pte->levels)
		return translate_pages(fn, a, offset);
	add_run(a, pte->at_base + offset, a->req->len);
	return HCA_MEM_OK;
}

/*
 * Stage 2: from runs of bus addresses to runs of machine addresses.  Pages of stage 2
 * are no smaller than those of stage 1, so that the runs become no more than there is
 * room for.
 */
static enum hca_mem_status to_machine(struct hca_fn *fn, struct access *a)
{
	uint64_t need = a->write ? QHCA_ATE_WRITE : 0, done = 0, machine, room;
	unsigned int num = a->num_runs, i;
	struct run bus[MAX_RUNS];

	memcpy(bus, a->run, sizeof(bus));
	a->num_runs = 0;
	for (i = 0; i < num; i++)
		while (bus[i].len) {
			switch (hca_s2_page(fn, bus[i].addr, need, &machine,
					    &room)) {
			case HCA_S2_OK:
				break;
			case HCA_S2_ABSENT:
				hca_s2_fault(fn, bus[i].addr, bus[i].len,
					     a->write);
				return page_fault(fn, a, done);
			default:
				return HCA_MEM_DMA;
			}
			room = room < bus[i].len ? room : bus[i].len;
			add_run(a, machine, room);
			bus[i].addr += room;
			bus[i].len -= room;
			done += room;
		}
	return HCA_MEM_OK;
}

/* ------------------------------------------------------------------------
 * Data
 */
static enum hca_mem_status begin_access(struct hca_fn *fn, struct access *a,
					struct hca_pte_host *copy)
{
	enum hca_mem_status status;

	if (a->req->len > HCA_MEM_MAX_LEN)
		return refuse_access(fn, a, HCA_PROT_ARGUMENT);
	status = protect(fn, a->req, copy, &a->pte);
	if (!status)
		status = translate(fn, a);
	return status || !fn->s2.mode ? status : to_machine(fn, a);
}

static enum hca_mem_status copy_in(struct hca_fn *fn,
				   const struct access *a, uint8_t *to)
{
	unsigned int i;

	if (a->devmem) {
		memcpy(to, a->devmem, (size_t)a->req->len);
		return HCA_MEM_OK;
	}
	if (!a->num_runs)
		memset(to, 0, (size_t)a->req->len);
	for (i = 0; i < a->num_runs; to += a->run[i].len, i++)
		if (hca_machine_read(fn, a->run[i].addr, to,
				     (size_t)a->run[i].len))
			return HCA_MEM_DMA;
	return HCA_MEM_OK;
}

static enum hca_mem_status copy_out(struct hca_fn *fn,
				    const struct access *a,
				    const uint8_t *from)
{
	unsigned int i;

	if (a->devmem) {
		memcpy(a->devmem, from, (size_t)a->req->len);
		return HCA_MEM_OK;
	}
	for (i = 0; i < a->num_runs; from += a->run[i].len, i++)
		if (hca_machine_write(fn, a->run[i].addr, from,
				      (size_t)a->run[i].len))
			return HCA_MEM_DMA;
	return HCA_MEM_OK;
}

/*
 * The 8 bytes are one word of memory, unless software has laid the region out so that
 * its memory is not aligned as its addresses are.  Then they can be in two pages.
 */
static enum hca_mem_status store_atomic(struct hca_fn *fn,
					const struct access *a,
					const uint8_t *raw)
{
	if (a->devmem || a->num_runs > 1) {
		atomic_thread_fence(memory_order_release);
		return copy_out(fn, a, raw);
	}
	return hca_machine_write_release(fn, a->run[0].addr, raw, 8) ?
	       HCA_MEM_DMA : HCA_MEM_OK;
}

enum hca_mem_status hca_mem_read(struct hca_fn *fn,
				 const struct hca_mem_req *req, void *buf)
{
	struct access a = { .req = req };
	struct hca_pte_host copy;
	enum hca_mem_status status;

	if (!req->len)
		return HCA_MEM_OK;
	status = begin_access(fn, &a, &copy);
	return status ? status : copy_in(fn, &a, buf);
}

enum hca_mem_status hca_mem_write(struct hca_fn *fn,
				  const struct hca_mem_req *req,
				  const void *buf)
{
	struct access a = { .req = req, .write = true };
	struct hca_pte_host copy;
	enum hca_mem_status status;

	if (!req->len)
		return HCA_MEM_OK;
	status = begin_access(fn, &a, &copy);
	return status ? status : copy_out(fn, &a, buf);
}

enum hca_mem_status hca_mem_atomic(struct hca_fn *fn,
				   const struct hca_mem_req *req,
				   enum hca_mem_atomic_op op,
				   uint64_t compare, uint64_t swap_add,
				   uint64_t *orig)
{
	struct access a = { .req = req, .write = true };
	struct hca_pte_host copy;
	enum hca_mem_status status;
	uint64_t old, new_value = swap_add;
	uint8_t raw[8] = { 0 };

	if (req->len != sizeof(raw) || req->addr % sizeof(raw))
		return refuse_access(fn, &a, HCA_PROT_ARGUMENT);
	status = begin_access(fn, &a, &copy);
	if (!status && op != HCA_ATOMIC_WRITE)
		status = copy_in(fn, &a, raw);
	if (status)
		return status;
	old = get_le64(raw);
	if (orig)
		*orig = old;
	if (op == HCA_ATOMIC_FETCH_ADD)
		new_value = old + swap_add;
	else if (op == HCA_ATOMIC_CMP_SWAP && old != compare)
		return HCA_MEM_OK;
	put_le64(raw, new_value);
	return store_atomic(fn, &a, raw);
}
