// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The caches of queue contexts, built on the set-associative caches.
 *
 * A miss fills a line from the table, and a changed line is written back when
 * it is evicted.  A write-back may fail, which is fatal to the function:
 * memory and the device no longer agree about that context.
 */
#include "hca.h"

static const struct hca_cache_user *user_of(const struct hca_fn *fn,
					    const struct hca_ctxcache *cc)
{
	return &fn->cache[cc->id];
}

static struct hca_tag ctx_tag(const struct hca_fn *fn, uint32_t index)
{
	return (struct hca_tag){ .gvmi = fn->cfg.gvmi, .index = index };
}

static uint32_t ctx_info(const struct hca_ctxcache *cc, uint32_t index)
{
	return (uint32_t)cc->table << 24 | index;
}

static int ctx_write(struct hca_fn *fn, struct hca_ctxcache *cc,
		     uint32_t index, const void *ctx)
{
	uint8_t image[HCA_CTX_MAX_IMAGE];
	uint64_t addr;

	if (!hca_table_entry(fn, cc->table, index, &addr)) {
		/* UNMAP_CHUNKS refuses a chunk with a live object in it. */
		hca_fatal(fn, QHCA_FATAL_INTERNAL, ctx_info(cc, index));
		return -1;
	}
	memset(image, 0, cc->image_size);
	cc->ops->encode(ctx, image);
	if (hca_dma_write(fn, addr, image, cc->image_size)) {
		hca_fatal(fn, QHCA_FATAL_TABLE_DMA, ctx_info(cc, index));
		return -1;
	}
	return 0;
}

/*
 * The fill of one function may evict the context of another.  If that one cannot be
 * written, its own function dies.  A function that is dead writes no memory any more.
 */
static bool ctx_writeback(void *arg, const struct hca_tag *tag, void *payload)
{
	struct hca_ctxcache *cc = arg;
	struct hca_fn *fn = hca_fn_of(cc->hca, tag->gvmi);

	if (hca_is_dead(fn))
		return false;
	ctx_write(fn, cc, tag->index, payload);
	return true;
}

bool hca_ctxcache_join(struct hca_fn *fn, struct hca_ctxcache *cc,
		       enum qhca_cache_id id, enum qhca_table table,
		       const struct hca_ctx_ops *ops,
		       struct qhca_geometry geometry)
{
	if (!hca_cache_join(&cc->cache, &fn->cache[id], geometry, ops->size))
		return false;
	cc->cache.writeback = ctx_writeback;
	cc->cache.arg = cc;
	cc->hca = fn->hca;
	cc->ops = ops;
	cc->id = id;
	cc->table = table;
	cc->image_size = (size_t)1 << fn->tables.map[table].log_entry;
	return true;
}

void hca_ctxcache_leave(struct hca_fn *fn, struct hca_ctxcache *cc)
{
	hca_cache_leave(&cc->cache, user_of(fn, cc));
	cc->last = NULL;
	if (!cc->cache.users)
		memset(cc, 0, sizeof(*cc));
}

static void *ctx_remember(const struct hca_fn *fn, struct hca_ctxcache *cc,
			  uint32_t index, void *ctx)
{
	cc->last = ctx;
	cc->last_fn = fn;
	cc->last_index = index;
	return ctx;
}

static void ctx_drop(const struct hca_fn *fn, struct hca_ctxcache *cc,
		     uint32_t index)
{
	cc->last = NULL;
	hca_cache_invalidate_range(&cc->cache, user_of(fn, cc), index, 0, 0);
}

/* A line for @index; NULL also when writing back its victim has failed. */
static void *ctx_install(struct hca_fn *fn, struct hca_ctxcache *cc,
			 uint32_t index, uint64_t epoch)
{
	void *ctx = hca_cache_install(&cc->cache, user_of(fn, cc),
				      ctx_tag(fn, index), epoch);

	if (ctx && hca_is_dead(fn)) {
		/* The line still holds the context of the victim. */
		ctx_drop(fn, cc, index);
		return NULL;
	}
	return ctx;
}

/* Read the image of @index.  -1: not mapped, or the HCA is dead now. */
static int ctx_fetch(struct hca_fn *fn, struct hca_ctxcache *cc,
		     uint32_t index, uint8_t *image)
{
	uint64_t addr;

	if (!hca_table_entry(fn, cc->table, index, &addr))
		return -1;
	hca_charge(fn, fn->hca->cost.fetch.context_ns);
	if (hca_dma_read(fn, addr, image, cc->image_size)) {
		hca_fatal(fn, QHCA_FATAL_TABLE_DMA, ctx_info(cc, index));
		return -1;
	}
	return 0;
}

static void *ctx_fill(struct hca_fn *fn, struct hca_ctxcache *cc,
		      uint32_t index)
{
	uint8_t image[HCA_CTX_MAX_IMAGE];
	uint64_t epoch;
	void *ctx;

	hca_trace(fn, QHCA_TRACE_CACHE_MISS, cc->id, index, 0, 0);
	cc->last = NULL;
	epoch = hca_cache_fill_begin(&cc->cache);
	if (ctx_fetch(fn, cc, index, image))
		return NULL;
	ctx = ctx_install(fn, cc, index, epoch);
	if (!ctx)
		return NULL;
	if (!cc->ops->decode(fn, index, image, ctx)) {
		ctx_drop(fn, cc, index);
		hca_fatal(fn, QHCA_FATAL_CONTEXT, ctx_info(cc, index));
		return NULL;
	}
	return ctx_remember(fn, cc, index, ctx);
}

static HCA_NOINLINE void *ctx_lookup(struct hca_fn *fn,
				     struct hca_ctxcache *cc, uint32_t index)
{
	void *ctx;

	if (!cc->hca)
		return NULL;
	ctx = hca_cache_lookup(&cc->cache, user_of(fn, cc),
			       ctx_tag(fn, index));
	if (ctx)
		return ctx_remember(fn, cc, index, ctx);
	return ctx_fill(fn, cc, index);
}

/*
 * Each packet looks its QP up, and most follow one of the same QP.  This is a function
 * of its own, so that they do not pay for the variables of a miss.
 */
void *hca_ctx_get(struct hca_fn *fn, struct hca_ctxcache *cc,
		  uint32_t index)
{
	if (cc->last && cc->last_index == index && cc->last_fn == fn) {
		(*user_of(fn, cc)->count.hits)++;
		return cc->last;
	}
	return ctx_lookup(fn, cc, index);
}

void *hca_ctx_new(struct hca_fn *fn, struct hca_ctxcache *cc,
		  uint32_t index)
{
	uint64_t addr;
	void *ctx;

	if (!cc->hca || !hca_table_entry(fn, cc->table, index, &addr))
		return NULL;
	cc->last = NULL;
	ctx = ctx_install(fn, cc, index, hca_cache_fill_begin(&cc->cache));
	if (!ctx)
		return NULL;
	memset(ctx, 0, cc->ops->size);
	hca_cache_set_dirty(&cc->cache, ctx, true);
	return ctx_remember(fn, cc, index, ctx);
}

void hca_ctx_dirty(struct hca_ctxcache *cc, void *ctx)
{
	hca_cache_set_dirty(&cc->cache, ctx, true);
}

int hca_ctx_flush(struct hca_fn *fn, struct hca_ctxcache *cc,
		  uint32_t index, bool drop)
{
	void *ctx;

	if (!cc->hca)
		return 0;
	ctx = hca_cache_peek(&cc->cache, ctx_tag(fn, index));
	if (!ctx)
		return 0;
	if (hca_cache_is_dirty(&cc->cache, ctx)) {
		(*user_of(fn, cc)->count.writebacks)++;
		if (ctx_write(fn, cc, index, ctx))
			return -1;
		hca_cache_set_dirty(&cc->cache, ctx, false);
	}
	if (drop)
		ctx_drop(fn, cc, index);
	return 0;
}

static bool clean_line(void *arg, uint32_t set, uint32_t block,
		       const struct hca_cache_tagline *line,
		       const void *payload)
{
	struct hca_ctxcache *cc = arg;
	struct hca_fn *fn = hca_fn_of(cc->hca, line->tag.gvmi);

	(void)set;
	(void)block;
	if (line->dirty && !hca_is_dead(fn) && !fn->withheld.on &&
	    !ctx_write(fn, cc, line->tag.index, payload)) {
		(*user_of(fn, cc)->count.writebacks)++;
		hca_cache_set_dirty(&cc->cache, payload, false);
	}
	return true;
}

void hca_ctxcache_clean(struct hca_ctxcache *cc)
{
	if (cc->hca)
		hca_cache_for_each(&cc->cache, 0, clean_line, cc);
}

const void *hca_ctx_peek(const struct hca_fn *fn, const struct hca_ctxcache *cc,
			 uint32_t index)
{
	return cc->hca ? hca_cache_peek(&cc->cache, ctx_tag(fn, index)) : NULL;
}

static bool ctx_copy(struct hca_fn *fn, const struct hca_ctxcache *cc,
		     uint32_t index, void *ctx,
		     int (*read)(struct hca_fn *fn, uint64_t addr, void *buf,
				 size_t len))
{
	const void *cached = hca_ctx_peek(fn, cc, index);
	uint8_t image[HCA_CTX_MAX_IMAGE];
	uint64_t addr;

	if (cached) {
		memcpy(ctx, cached, cc->ops->size);
		return true;
	}
	if (!cc->hca || hca_is_dead(fn) || fn->hca->frozen ||
	    !hca_table_entry(fn, cc->table, index, &addr) ||
	    read(fn, addr, image, cc->image_size))
		return false;
	return cc->ops->decode(fn, index, image, ctx);
}

bool hca_ctx_read(struct hca_fn *fn, const struct hca_ctxcache *cc,
		  uint32_t index, void *ctx)
{
	return ctx_copy(fn, cc, index, ctx, hca_dma_read);
}

bool hca_ctx_observe(struct hca_fn *fn, const struct hca_ctxcache *cc,
		     uint32_t index, void *ctx)
{
	return ctx_copy(fn, cc, index, ctx, hca_dma_peek);
}
