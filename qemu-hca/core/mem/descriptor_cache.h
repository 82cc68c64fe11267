/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The queue descriptor cache (seed 003): contexts of one table, decoded, written
 * back when dirty on eviction and flush.
 *
 * A pointer from get or new is good until the next get, new or flush on the
 * same cache: code handles one context at a time, so that 1 x 1 works.
 */
#ifndef HCA_CORE_DESCRIPTOR_CACHE_H
#define HCA_CORE_DESCRIPTOR_CACHE_H

#include "mem/cache.h"

struct hca;
struct hca_fn;

#define HCA_CTX_MAX_IMAGE	1024	/* bytes of a context in memory */

struct hca_ctx_ops {
	size_t size;			/* bytes of a decoded context */
	/* false: the image is corrupt; the engine then declares FATAL_CONTEXT */
	bool (*decode)(struct hca_fn *fn, uint32_t index, const void *image,
		       void *ctx);
	void (*encode)(const void *ctx, void *image);
};

struct hca_ctxcache {
	struct hca_cache cache;
	struct hca *hca;
	const struct hca_ctx_ops *ops;
	enum qhca_cache_id id;
	enum qhca_table table;
	size_t image_size;		/* bytes, of the table's entry */
	void *last;			/* context last handed out, and its number */
	uint32_t last_index;
	const struct hca_fn *last_fn;
};

/*
 * As hca_cache_join() and hca_cache_leave().  @id selects the counters, @ops must
 * outlive the cache.  leave forgets dirty lines of the function, too.
 */
bool hca_ctxcache_join(struct hca_fn *fn, struct hca_ctxcache *cc,
		       enum qhca_cache_id id, enum qhca_table table,
		       const struct hca_ctx_ops *ops,
		       struct qhca_geometry geometry);
void hca_ctxcache_leave(struct hca_fn *fn, struct hca_ctxcache *cc);

/*
 * The context of @index, which a miss fetches.  NULL: the chunk is not mapped,
 * or a DMA has failed or the context is corrupt, and then the HCA is dead.
 */
void *hca_ctx_get(struct hca_fn *fn, struct hca_ctxcache *cc,
		  uint32_t index);
/*
 * Room for a context that is being created: zeroed and dirty, without a fetch.
 * NULL: the chunk is not mapped.
 */
void *hca_ctx_new(struct hca_fn *fn, struct hca_ctxcache *cc,
		  uint32_t index);
void hca_ctx_dirty(struct hca_ctxcache *cc, void *ctx);
/* Write back if cached and dirty; then forget it if @drop.  0, or -1: dead. */
int hca_ctx_flush(struct hca_fn *fn, struct hca_ctxcache *cc,
		  uint32_t index, bool drop);
/*
 * Write back all that are dirty, of all functions; those of dead ones are left, and of those
 * that may make no DMA.
 */
void hca_ctxcache_clean(struct hca_ctxcache *cc);
/* Cached context or NULL; no effect. */
const void *hca_ctx_peek(const struct hca_fn *fn, const struct hca_ctxcache *cc,
			 uint32_t index);
/*
 * Copy the context to @ctx (ops->size bytes) from the cache or else from memory; the
 * cache stays as it is.  false: not mapped, DMA error, corrupt, or it would have to be
 * read from memory while the engine is frozen.
 */
bool hca_ctx_read(struct hca_fn *fn, const struct hca_ctxcache *cc,
		  uint32_t index, void *ctx);
/* The same for the monitor: nothing is changed or counted by it. */
bool hca_ctx_observe(struct hca_fn *fn, const struct hca_ctxcache *cc,
		     uint32_t index, void *ctx);

#endif /* HCA_CORE_DESCRIPTOR_CACHE_H */
