// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Stage 2: rows, the stage-2 cache, and the accesses that go through them.
 */
#include "mem/stage2.h"

#include "hca.h"

/* ------------------------------------------------------------------------
 * Rows and modes
 */
static const struct hca_cache_user *s2_user(const struct hca_fn *fn)
{
	return &fn->cache[QHCA_CACHE_S2];
}

bool hca_s2_init(struct hca *hca, struct qhca_geometry geometry)
{
	return hca_cache_join(&hca->cache.s2, s2_user(hca_pf(hca)), geometry,
			      sizeof(uint64_t));
}

void hca_s2_fini(struct hca *hca)
{
	hca_cache_leave(&hca->cache.s2, s2_user(hca_pf(hca)));
}

bool hca_gvm_valid(const struct hca_gvm *row)
{
	if (!row->on)
		return !(row->base | row->page_shift | row->levels);
	return !(row->base & 63) && row->levels &&
	       row->levels <= QHCA_MAX_AT_LEVELS &&
	       (row->page_shift == 12 || row->page_shift == 21 ||
		row->page_shift == 30);
}

static uint8_t mode_of(const struct hca_gvm *row)
{
	if (!row->on)
		return HCA_S2_OFF;
	return row->lost ? HCA_S2_LOST : HCA_S2_ON;
}

static void forget_ask(struct hca_s2_ask *ask)
{
	*ask = (struct hca_s2_ask){ .gen = ask->gen };
}

void hca_s2_forget_pin(struct hca_fn *fn)
{
	forget_ask(&fn->s2.pin);
}

void hca_s2_forget(struct hca_fn *fn)
{
	forget_ask(&fn->s2.pin);
	forget_ask(&fn->s2.eth);
	fn->s2.first = 0;
	fn->s2.last = 0;
}

static void drop_lines(struct hca_fn *fn)
{
	hca_cache_invalidate_index(&fn->hca->cache.s2, s2_user(fn),
				   fn->hca->gvm[fn->cfg.gvmi].generation);
}

void hca_s2_reset(struct hca_fn *fn)
{
	const struct hca_gvm *row = &fn->hca->gvm[fn->cfg.gvmi];

	hca_s2_forget(fn);
	fn->s2.mode = mode_of(row);
	fn->s2.uplink_attr = row->uplink_attr;
	if (row->on)
		drop_lines(fn);
}

void hca_s2_die(struct hca_fn *fn, enum qhca_fatal_stage2 why)
{
	hca_fatal(fn, QHCA_FATAL_STAGE2, why);
	hca_s2_forget(fn);
	fn->s2.mode = HCA_S2_DEAD;
}

void hca_s2_host_gone(struct hca *hca)
{
	for (unsigned int gvmi = 1; gvmi < HCA_MAX_FNS; gvmi++) {
		struct hca_fn *fn = hca->fn[gvmi];

		if (!hca->gvm[gvmi].on)
			continue;
		hca->gvm[gvmi].lost = true;
		if (!fn || fn->s2.mode != HCA_S2_ON)
			continue;
		if (hca_fn_busy(fn))
			hca_s2_die(fn, QHCA_STAGE2_LOST);
		else
			fn->s2.mode = HCA_S2_LOST;
	}
}

void hca_s2_set_row(struct hca_fn *fn, const struct hca_gvm *row)
{
	struct hca_gvm *to = &fn->hca->gvm[fn->cfg.gvmi];
	uint32_t generation = to->generation;

	drop_lines(fn);
	*to = *row;
	to->generation = generation + 1;
	if (fn->s2.mode != HCA_S2_DEAD)
		hca_s2_reset(fn);
}

void hca_s2_lines(const struct hca *hca, uint16_t gvmi, uint64_t first,
		  uint64_t last, struct hca_cache_inval *inval)
{
	const struct hca_gvm *row = &hca->gvm[gvmi];

	*inval = (struct hca_cache_inval){
		.gvmi = gvmi, .index = row->generation,
		.first_page = first >> row->page_shift,
		.last_page = last >> row->page_shift,
	};
}

/* ------------------------------------------------------------------------
 * Translation
 */

/* What a line must have to serve an access; see serves_write() in mem.c. */
static bool serves_write(const void *line)
{
	return *(const uint64_t *)line & QHCA_ATE_WRITE;
}

static bool serves_pinned(const void *line)
{
	return *(const uint64_t *)line & QHCA_ATE_PINNED;
}

static bool serves_own_write(const void *line)
{
	return serves_write(line) && serves_pinned(line);
}

static bool (*serves(uint64_t need))(const void *line)
{
	if (need == HCA_S2_NEEDS)
		return serves_own_write;
	if (need & QHCA_ATE_PINNED)
		return serves_pinned;
	return need ? serves_write : NULL;
}

static enum hca_walk read_node(struct hca_fn *pf, const struct hca_at_root *root,
			       uint64_t addr, uint8_t raw[8])
{
	(void)root;
	return hca_machine_read(pf, addr, raw, 8) ? HCA_WALK_DMA : HCA_WALK_OK;
}

/* Walk the tables, which lie in the memory of the physical function's software. */
static enum hca_s2_result fill(struct hca_fn *fn, uint64_t addr,
			       struct hca_tag tag, uint64_t *entry)
{
	struct hca *hca = fn->hca;
	const struct hca_gvm *row = &hca->gvm[fn->cfg.gvmi];
	struct hca_at_root root = {
		.base = row->base, .page_shift = row->page_shift,
		.levels = row->levels,
	};
	uint64_t epoch = hca_cache_fill_begin(&hca->cache.s2);
	uint64_t *reads = &fn->counter[QHCA_CNT_s2_node_reads];
	uint64_t before = *reads, *line;
	enum hca_walk walk;

	hca_trace(fn, QHCA_TRACE_CACHE_MISS, QHCA_CACHE_S2, fn->cfg.gvmi,
		  tag.page, 0);
	walk = hca_walk(hca_pf(hca), &root, addr, read_node, entry, reads);
	hca_charge(fn, (*reads - before) * hca->cost.fetch.at_ns);
	if (walk == HCA_WALK_DMA) {
		hca_s2_die(fn, QHCA_STAGE2_TABLE);
		return HCA_S2_NONE;
	}
	if (walk != HCA_WALK_OK)
		return HCA_S2_ABSENT;
	line = hca_cache_install(&hca->cache.s2, s2_user(fn), tag, epoch);
	if (line)
		*line = *entry;
	return HCA_S2_OK;
}

enum hca_s2_result hca_s2_page(struct hca_fn *fn, uint64_t addr, uint64_t need,
			       uint64_t *machine, uint64_t *room)
{
	struct hca *hca = fn->hca;
	const struct hca_gvm *row = &hca->gvm[fn->cfg.gvmi];
	uint64_t in_page = addr & ((1ull << row->page_shift) - 1);
	struct hca_tag tag = {
		.page = addr >> row->page_shift, .index = row->generation,
		.gvmi = fn->cfg.gvmi,
	};
	enum hca_s2_result result;
	const uint64_t *line;
	uint64_t entry;

	if (fn->s2.mode != HCA_S2_ON) {
		if (fn->s2.mode == HCA_S2_LOST)
			hca_s2_die(fn, QHCA_STAGE2_LOST);
		return HCA_S2_NONE;
	}
	line = hca_cache_lookup_if(&hca->cache.s2, s2_user(fn), tag,
				   serves(need));
	if (line) {
		entry = *line;
	} else {
		result = fill(fn, addr, tag, &entry);
		if (result != HCA_S2_OK)
			return result;
		if (need & ~entry)
			return HCA_S2_ABSENT;
	}
	*machine = (entry & QHCA_ATE_ADDR) + in_page;
	*room = (1ull << row->page_shift) - in_page;
	return HCA_S2_OK;
}

/* ------------------------------------------------------------------------
 * The device's own accesses
 */

/* One piece of an own access.  -1: the function is dead. */
static int own_page(struct hca_fn *fn, uint64_t addr, uint64_t need,
		    uint64_t *machine, uint64_t *room)
{
	enum hca_s2_result result = hca_s2_page(fn, addr, need, machine, room);

	if (result == HCA_S2_ABSENT)
		hca_s2_die(fn, QHCA_STAGE2_NOT_PINNED);
	return result == HCA_S2_OK ? 0 : -1;
}

/* The last of the bytes that are accessed has no address. */
static bool wraps(uint64_t addr, uint64_t len)
{
	return len && addr + (len - 1) < addr;
}

int hca_s2_read(struct hca_fn *fn, uint64_t addr, void *buf, size_t len)
{
	uint8_t *to = buf;
	uint64_t machine, room;
	size_t n;

	for (; len; addr += n, to += n, len -= n) {
		if (wraps(addr, len) ||
		    own_page(fn, addr, QHCA_ATE_PINNED, &machine, &room))
			return -1;
		n = len < room ? len : (size_t)room;
		if (hca_machine_read(fn, machine, to, n))
			return -1;
	}
	return 0;
}

/* What becomes visible last is in the last piece. */
int hca_s2_write(struct hca_fn *fn, uint64_t addr, const void *buf, size_t len,
		 bool release)
{
	const uint8_t *from = buf;
	uint64_t machine, room;
	size_t n;

	for (; len; addr += n, from += n, len -= n) {
		if (wraps(addr, len) ||
		    own_page(fn, addr, HCA_S2_NEEDS, &machine, &room))
			return -1;
		n = len < room ? len : (size_t)room;
		if (release && n == len ?
		    hca_machine_write_release(fn, machine, from, n) :
		    hca_machine_write(fn, machine, from, n))
			return -1;
	}
	return 0;
}

/* As hca_s2_page() for an own read, but nothing is changed by it. */
static bool peek_page(struct hca_fn *fn, uint64_t addr, uint64_t *machine,
		      uint64_t *room)
{
	struct hca *hca = fn->hca;
	const struct hca_gvm *row = &hca->gvm[fn->cfg.gvmi];
	uint64_t in_page = addr & ((1ull << row->page_shift) - 1);
	struct hca_at_root root = {
		.base = row->base, .page_shift = row->page_shift,
		.levels = row->levels,
	};
	struct hca_tag tag = {
		.page = addr >> row->page_shift, .index = row->generation,
		.gvmi = fn->cfg.gvmi,
	};
	const uint64_t *line = hca_cache_peek(&hca->cache.s2, tag);
	uint64_t entry;

	if (line && serves_pinned(line))
		entry = *line;
	else if (hca_walk(hca_pf(hca), &root, addr, read_node, &entry, NULL) !=
		 HCA_WALK_OK || !(entry & QHCA_ATE_PINNED))
		return false;
	*machine = (entry & QHCA_ATE_ADDR) + in_page;
	*room = (1ull << row->page_shift) - in_page;
	return true;
}

int hca_s2_peek(struct hca_fn *fn, uint64_t addr, void *buf, size_t len)
{
	uint8_t *to = buf;
	uint64_t machine, room;
	size_t n;

	if (fn->s2.mode != HCA_S2_ON)
		return -1;
	for (; len; addr += n, to += n, len -= n) {
		if (wraps(addr, len) || !peek_page(fn, addr, &machine, &room))
			return -1;
		n = len < room ? len : (size_t)room;
		if (hca_machine_read(fn, machine, to, n))
			return -1;
	}
	return 0;
}

/* ------------------------------------------------------------------------
 * Payload
 */
enum hca_mem_status hca_s2_fault(struct hca_fn *fn, uint64_t addr,
				 uint64_t len, bool write)
{
	fn->mem.fault.stage2 = true;
	fn->mem.fault.bus = addr;
	fn->mem.fault.bus_len = len;
	fn->mem.fault.write = write;
	return HCA_MEM_FAULT;
}

static enum hca_mem_status payload_page(struct hca_fn *fn, uint64_t addr,
					uint64_t len, uint64_t need,
					uint64_t *machine, uint64_t *room)
{
	if (wraps(addr, len))
		return HCA_MEM_DMA;
	switch (hca_s2_page(fn, addr, need, machine, room)) {
	case HCA_S2_OK:
		return HCA_MEM_OK;
	case HCA_S2_ABSENT:
		return hca_s2_fault(fn, addr, len, need & QHCA_ATE_WRITE);
	default:
		return HCA_MEM_DMA;
	}
}

enum hca_mem_status hca_s2_fetch(struct hca_fn *fn, uint64_t addr,
				 uint64_t need, void *buf, size_t len)
{
	enum hca_mem_status status;
	uint64_t machine, room;
	uint8_t *to = buf;
	size_t n;

	if (fn->s2.mode == HCA_S2_OFF)
		return hca_machine_read(fn, addr, buf, len) ? HCA_MEM_DMA :
							      HCA_MEM_OK;
	for (; len; addr += n, to += n, len -= n) {
		status = payload_page(fn, addr, len, need, &machine, &room);
		if (status)
			return status;
		n = len < room ? len : (size_t)room;
		if (hca_machine_read(fn, machine, to, n))
			return HCA_MEM_DMA;
	}
	return HCA_MEM_OK;
}

enum hca_mem_status hca_s2_store(struct hca_fn *fn, uint64_t addr,
				 const void *buf, size_t len)
{
	const uint8_t *from = buf;
	enum hca_mem_status status;
	uint64_t machine, room;
	size_t n;

	if (fn->s2.mode == HCA_S2_OFF)
		return hca_machine_write(fn, addr, buf, len) ? HCA_MEM_DMA :
							       HCA_MEM_OK;
	for (; len; addr += n, from += n, len -= n) {
		status = payload_page(fn, addr, len, QHCA_ATE_WRITE, &machine,
				      &room);
		if (status)
			return status;
		n = len < room ? len : (size_t)room;
		if (hca_machine_write(fn, machine, from, n))
			return HCA_MEM_DMA;
	}
	return HCA_MEM_OK;
}

enum hca_mem_status hca_s2_present(struct hca_fn *fn, uint64_t addr,
				   uint64_t len, bool write)
{
	uint64_t need = write ? QHCA_ATE_WRITE : 0, machine, room;
	enum hca_mem_status status;

	if (fn->s2.mode == HCA_S2_OFF)
		return HCA_MEM_OK;
	while (len) {
		status = payload_page(fn, addr, len, need, &machine, &room);
		if (status)
			return status;
		if (room >= len)
			break;
		addr += room;
		len -= room;
	}
	return HCA_MEM_OK;
}

/* ------------------------------------------------------------------------
 * Requests to the host domain
 */

/*
 * Tokens that are not a QP's have the QPN 0, which no QP has; the direction tells a
 * pin request from a fault of Ethernet (transport/paging.h has the other bits).
 */
static uint32_t ask_token(struct hca_fn *fn, struct hca_s2_ask *ask)
{
	if (!++ask->gen)
		++ask->gen;
	return (uint32_t)ask->gen << 24 |
	       (ask == &fn->s2.eth ? HCA_S2_TOKEN_ETH : 0);
}

void hca_s2_ask(struct hca_fn *fn, struct hca_s2_ask *ask,
		enum qhca_fault_cause cause, uint64_t addr, uint64_t len,
		bool write)
{
	if (ask->waits)
		return;
	ask->token = ask_token(fn, ask);
	ask->addr = addr;
	ask->len = len;
	ask->time = fn->hca->now;
	ask->cause = (uint8_t)cause;
	ask->write = write;
	ask->waits = true;
	ask->unposted = true;
	ask->failed = false;
	hca_trace(fn, QHCA_TRACE_FAULT, 0, ask->token, addr,
		  QHCA_FAULT_STAGE2 | (write ? QHCA_FAULT_WRITE : 0) |
		  QHCA_PUT(QHCA_FAULT_CAUSE, (uint32_t)cause));
	hca_s2_post_later(fn);
}

bool hca_s2_has_events(const struct hca_fn *fn)
{
	return fn->s2.pin.unposted || fn->s2.eth.unposted || fn->s2.first;
}

void hca_s2_post_later(struct hca_fn *fn)
{
	fn->hca->s2_unposted |= 1ull << fn->cfg.gvmi;
}
