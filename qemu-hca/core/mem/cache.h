/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Set-associative caches (seed 000) and the queue descriptor caches made of
 * them (seed 003).
 *
 * A cache is `blocks` groups of `sets` sets.  An entry with tag {gvmi, index,
 * page} may lie in set (index + page) mod sets of any block; page is 0 in all
 * caches but the translation cache, so there the set is the low bits of the
 * index as the seed has it.  Within a set, replacement is tree pseudo-LRU over
 * the blocks, free lines first.  There are no negative entries.
 *
 * Epochs: a fill reads memory, and an invalidation may come between the read
 * and the install.  Every invalidation advances the cache's epoch and is kept in a
 * short log; an install says at which epoch its read began, and is refused if
 * an invalidation since then, or one the log has forgotten, covers its tag.
 */
#ifndef QHCA_CORE_CACHE_H
#define QHCA_CORE_CACHE_H

#include "qhca.h"

#define QHCA_CACHE_MAX_SETS	65536u
#define QHCA_CACHE_MAX_BLOCKS	64u	/* pseudo-LRU bits fit a word */
#define QHCA_CACHE_MAX_LINES	(1u << 20)
#define QHCA_CACHE_LOG_SIZE	32u
#define QHCA_CACHE_FILTER	1024u

struct qhca_tag {
	uint64_t page;
	uint32_t index;
	uint16_t gvmi;
};

/* What a cache counts; any pointer may be NULL. */
struct qhca_cache_counts {
	uint64_t *hits;
	uint64_t *misses;
	uint64_t *evictions;
	uint64_t *conflicts;		/* evictions though other sets had room */
	uint64_t *invalidations;	/* lines dropped by invalidation */
	uint64_t *stale_fills;		/* installs refused by the epoch */
	uint64_t *writebacks;
};

struct qhca_cache_tagline {
	struct qhca_tag tag;
	bool valid, sticky, dirty;
};

struct qhca_cache_inval {		/* one entry of the invalidation log */
	uint64_t first_page, last_page;
	uint32_t index;
	uint16_t gvmi;
	bool all;
};

struct qhca_cache {
	struct qhca_geometry geometry;
	uint32_t set_mask;
	uint32_t log_blocks;
	uint32_t valid;			/* lines in use */
	size_t size;			/* payload bytes a line */
	struct qhca_cache_tagline *line; /* [set * blocks + block] */
	uint8_t *payload;
	uint64_t *plru;			/* [set] */
	uint32_t population[QHCA_CACHE_FILTER]; /* valid lines, by index */
	uint64_t epoch;
	struct qhca_cache_inval log[QHCA_CACHE_LOG_SIZE];
	struct qhca_cache_counts count;
	uint64_t sink;			/* where NULL counters go */
	/* Write back a dirty line about to be lost.  May be NULL. */
	void (*writeback)(void *arg, const struct qhca_tag *tag, void *payload);
	void *arg;
};

/* Powers of two, not zero, within the engine's bounds and @max (if not NULL). */
bool qhca_geometry_valid(const struct qhca_geometry *g,
			 const struct qhca_geometry *max);

/*
 * false: bad geometry or no memory; the cache is then all zero, on which
 * qhca_cache_fini() is safe.  @counts is copied.
 */
bool qhca_cache_init(struct qhca_cache *c, struct qhca_geometry geometry,
		     size_t size, const struct qhca_cache_counts *counts);
void qhca_cache_fini(struct qhca_cache *c);

/* Payload of @tag, counting a hit or a miss, marking it recently used. */
void *qhca_cache_lookup(struct qhca_cache *c, struct qhca_tag tag);
/* The same without any effect. */
void *qhca_cache_peek(const struct qhca_cache *c, struct qhca_tag tag);

static inline uint64_t qhca_cache_fill_begin(const struct qhca_cache *c)
{
	return c->epoch;
}

/*
 * Room for @tag: its present line if there is one, else a free one or a victim
 * (written back if dirty).  The line is valid, clean and the most recent; the
 * payload is the caller's to write.  NULL: an invalidation overtook a fill
 * begun at @epoch (counted), or every line of the set is sticky.
 */
void *qhca_cache_install(struct qhca_cache *c, struct qhca_tag tag,
			 uint64_t epoch);

/* Flags of a line by its payload pointer. */
void qhca_cache_set_dirty(struct qhca_cache *c, const void *payload, bool on);
bool qhca_cache_is_dirty(const struct qhca_cache *c, const void *payload);
void qhca_cache_set_sticky(struct qhca_cache *c, const void *payload, bool on);

/* Invalidation drops lines without write-back, sticky or not. */
void qhca_cache_invalidate_index(struct qhca_cache *c, uint16_t gvmi,
				 uint32_t index);
void qhca_cache_invalidate_range(struct qhca_cache *c, uint16_t gvmi,
				 uint32_t index, uint64_t first_page,
				 uint64_t last_page);
void qhca_cache_invalidate_all(struct qhca_cache *c);

/*
 * The same in slices, for commands, since a cache may have a million lines.
 * begin moves the epoch; each slice looks at about QHCA_CACHE_SLICE lines, and
 * returns true when it was the last.  A line filled between two slices comes from
 * memory as it was after begin, so it may stay.
 */
#define QHCA_CACHE_SLICE	4096u
struct qhca_cache_sweep {
	struct qhca_cache_inval inval;
	uint64_t next;			/* line, or page from the first, to look at */
};
void qhca_cache_sweep_begin(struct qhca_cache *c,
			    struct qhca_cache_sweep *sweep,
			    const struct qhca_cache_inval *inval);
bool qhca_cache_sweep(struct qhca_cache *c, struct qhca_cache_sweep *sweep);

/*
 * Observation: each valid line from @first_set on, by set and block, until @fn
 * returns false; without effect on the cache.
 */
void qhca_cache_for_each(const struct qhca_cache *c, uint32_t first_set,
			 bool (*fn)(void *arg, uint32_t set, uint32_t block,
				    const struct qhca_cache_tagline *line,
				    const void *payload),
			 void *arg);

/* ------------------------------------------------------------------------
 * Queue descriptor cache: contexts of one table, decoded, written back when
 * dirty on eviction and flush.
 *
 * A pointer from get or new is good until the next get, new or flush on the
 * same cache: code handles one context at a time, so that 1 x 1 works.
 */
#define QHCA_CTX_MAX_IMAGE	1024	/* bytes of a context in memory */

struct qhca_ctx_ops {
	size_t size;			/* bytes of a decoded context */
	/* false: the image is corrupt; the engine then declares FATAL_CONTEXT */
	bool (*decode)(struct qhca_hca *hca, uint32_t index, const void *image,
		       void *ctx);
	void (*encode)(const void *ctx, void *image);
};

struct qhca_ctxcache {
	struct qhca_cache cache;
	struct qhca_hca *hca;
	const struct qhca_ctx_ops *ops;
	enum qhca_cache_id id;
	enum qhca_table table;
	size_t image_size;		/* bytes, of the table's entry */
	void *last;			/* context last handed out, and its number */
	uint32_t last_index;
};

/*
 * @id selects the counters, @ops must outlive the cache.  false: bad geometry
 * or no memory (fini is safe then).
 */
bool qhca_ctxcache_init(struct qhca_hca *hca, struct qhca_ctxcache *cc,
			enum qhca_cache_id id, enum qhca_table table,
			const struct qhca_ctx_ops *ops,
			struct qhca_geometry geometry);
/* Forgets everything, dirty lines included. */
void qhca_ctxcache_fini(struct qhca_ctxcache *cc);

/*
 * The context of @index, fetched on a miss.  NULL: chunk not mapped, or (the
 * HCA being dead then) a failed DMA or a corrupt context.
 */
void *qhca_ctx_get(struct qhca_hca *hca, struct qhca_ctxcache *cc,
		   uint32_t index);
/* Room for a context being created: no fetch, zeroed, dirty.  NULL: not mapped. */
void *qhca_ctx_new(struct qhca_hca *hca, struct qhca_ctxcache *cc,
		   uint32_t index);
void qhca_ctx_dirty(struct qhca_ctxcache *cc, void *ctx);
/* Write back if cached and dirty; then forget it if @drop.  0, or -1: dead. */
int qhca_ctx_flush(struct qhca_hca *hca, struct qhca_ctxcache *cc,
		   uint32_t index, bool drop);
/* Cached context or NULL; no effect. */
const void *qhca_ctx_peek(const struct qhca_ctxcache *cc, uint32_t index);
/*
 * For observation: copy the context to @ctx (ops->size bytes) from the cache or
 * else from memory, changing nothing.  false: not mapped, DMA error, corrupt.
 */
bool qhca_ctx_read(struct qhca_hca *hca, const struct qhca_ctxcache *cc,
		   uint32_t index, void *ctx);

#endif /* QHCA_CORE_CACHE_H */
