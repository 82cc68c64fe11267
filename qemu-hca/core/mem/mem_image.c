// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Tables, pool bank and stage 2 of a function in its image.
 */
#include "mem/mem_image.h"

#include "hca.h"

HCA_IMAGE_COVERS(struct hca_table_map, 8 + 8 * QHCA_MAX_CHUNKS);
HCA_IMAGE_COVERS(struct hca_pool_block, 16);
HCA_IMAGE_COVERS(struct hca_pool, 40);
HCA_IMAGE_COVERS(struct hca_gvm, 24);
HCA_IMAGE_COVERS(struct hca_s2_ask, 40);
HCA_IMAGE_COVERS(struct hca_stage2, 96);

void hca_geometry_image(struct hca_image *im, struct qhca_geometry *g,
			const struct qhca_geometry *max)
{
	hca_image_u16(im, "sets", &g->sets);
	hca_image_u16(im, "blocks", &g->blocks);
	hca_image_check(im, "geometry", hca_geometry_valid(g, max));
}

/* ---- tables */

static void table(struct hca_image *im, struct hca_fn *fn, enum qhca_table id,
		  unsigned int log_max)
{
	struct hca_table_map *map = &fn->tables.map[id];
	struct qhca_init_table row = {
		.log_entries = map->log_entries, .log_chunk = map->log_chunk,
	};
	uint32_t chunks;

	hca_image_u8(im, "log_entries", &row.log_entries);
	hca_image_u8(im, "log_chunk", &row.log_chunk);
	hca_image_check(im, "log_entries", hca_table_check(id, &row, log_max));
	if (hca_image_failed(im))
		return;
	if (im->loading)
		hca_table_init(fn, id, &row);
	chunks = hca_table_chunks(fn, id);
	for (uint32_t i = 0; i < chunks; i++) {
		uint64_t *chunk = &map->chunk[i];

		hca_image_u64(im, "chunk", chunk);
		hca_image_check(im, "chunk", !*chunk || (*chunk & 4095) == 1);
	}
}

void hca_tables_image(struct hca_image *im, struct hca_fn *fn)
{
	const struct qhca_config *cfg = &fn->cfg;

	table(im, fn, QHCA_TABLE_PT, cfg->log_max_pt);
	table(im, fn, QHCA_TABLE_QP, cfg->log_max_qp);
	table(im, fn, QHCA_TABLE_CQ, cfg->log_max_cq);
	table(im, fn, QHCA_TABLE_SRQ, cfg->log_max_srq);
	table(im, fn, QHCA_TABLE_EQ, cfg->log_max_eq);
}

/* ---- the pool bank */

static void blocks(struct hca_image *im, struct hca_fn *fn)
{
	uint32_t n = fn->cfg.max_pool_blocks;

	for (uint32_t i = 0; i < n; i++) {
		struct hca_pool_block *b = &fn->pool.block[i];

		hca_image_u64(im, "block address", &b->addr);
		hca_image_u64(im, "block length", &b->length);
		hca_image_check(im, "block length", b->length ?
				hca_pool_block_valid(b) : !b->addr);
	}
}

/*
 * An entry is a copy of memory that software has asked the device to keep, so its index is
 * enough; hca_pool_restore() reads it again.
 */
static void keys(struct hca_image *im, struct hca_fn *fn)
{
	static const struct hca_pte_host none = { .state = QHCA_PTE_FREE };
	uint32_t n = fn->pool.num_keys, place = 0, index = 0;
	uint32_t size = hca_table_size(fn, QHCA_TABLE_PT);

	hca_image_count(im, "number of keys", &n, fn->cfg.max_pool_keys);
	for (; n && !hca_image_failed(im); n--) {
		if (!im->loading)
			index = hca_pool_next_key(fn, &place);
		hca_image_u32(im, "key index", &index);
		hca_image_check(im, "key index",
				index >= QHCA_FIRST_KEY_INDEX && index < size &&
				!(im->loading && hca_pool_key(fn, index)));
		if (im->loading && !hca_image_failed(im))
			hca_pool_key_add(fn, index, &none);
	}
}

void hca_pool_image(struct hca_image *im, struct hca_fn *fn)
{
	blocks(im, fn);
	keys(im, fn);
}

void hca_pool_restore(struct hca_fn *fn)
{
	uint32_t next = 0;

	while (!hca_is_dead(fn) && !hca_pool_refresh(fn, &next))
		continue;
}

/* ---- stage 2 */

static void row(struct hca_image *im, struct hca_fn *fn)
{
	struct hca_gvm *r = &fn->hca->gvm[fn->cfg.gvmi];

	hca_image_u32(im, "generation", &r->generation);
	hca_image_u16(im, "uplink_attr", &r->uplink_attr);
	hca_image_bool(im, "row", &r->on);
	hca_image_bool(im, "lost", &r->lost);
	hca_image_u64(im, "base", &r->base);
	hca_image_u8(im, "page_shift", &r->page_shift);
	hca_image_u8(im, "levels", &r->levels);
	hca_image_check(im, "row", hca_gvm_valid(r) &&
			(!r->on || hca_pf(fn->hca)->features &
				   QHCA_FEAT_STAGE2) && (r->on || !r->lost));
}

static void ask(struct hca_image *im, const struct hca_fn *fn,
		struct hca_s2_ask *a, uint32_t bit)
{
	uint32_t token;

	hca_image_u8(im, "token generation", &a->gen);
	hca_image_bool(im, "request waits", &a->waits);
	hca_image_bool(im, "request failed", &a->failed);
	hca_image_bool(im, "request to be posted", &a->unposted);
	hca_image_u64(im, "request address", &a->addr);
	hca_image_u64(im, "request length", &a->len);
	hca_image_check(im, "request length", a->len ?
			a->addr + (a->len - 1) >= a->addr : !a->waits);
	hca_image_u64(im, "request time", &a->time);
	hca_image_check(im, "request time", a->time <= fn->hca->now);
	hca_image_u8(im, "request cause", &a->cause);
	hca_image_check(im, "request cause", a->cause <= QHCA_FAULT_COMMAND);
	hca_image_bool(im, "request writes", &a->write);
	token = (uint32_t)a->gen << 24 | bit;
	if (im->loading)
		a->token = a->waits || a->failed ? token : 0;
	hca_image_check(im, "request waits",
			(fn->s2.mode == HCA_S2_ON && a->gen) ||
			!(a->waits || a->failed || a->unposted));
	hca_image_check(im, "request to be posted", a->waits || !a->unposted);
}

/* Mode and attribute follow from the row, unless the function has died of stage 2. */
void hca_stage2_image(struct hca_image *im, struct hca_fn *fn)
{
	bool dead = fn->s2.mode == HCA_S2_DEAD;

	if (fn->cfg.gvmi)
		row(im, fn);
	hca_image_bool(im, "dead", &dead);
	hca_image_check(im, "dead", !dead || fn->status & QHCA_STATUS_FATAL ||
			fn->late & HCA_LATE_RESET);
	if (im->loading) {
		hca_s2_reset(fn);
		if (dead)
			fn->s2.mode = HCA_S2_DEAD;
	}
	ask(im, fn, &fn->s2.pin, 0);
	ask(im, fn, &fn->s2.eth, HCA_S2_TOKEN_ETH);
	if (im->loading && (fn->s2.pin.unposted || fn->s2.eth.unposted))
		hca_s2_post_later(fn);
}
