/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Set-associative caches (seed 000).
 *
 * A cache is `blocks` groups of `sets` sets.  An entry with tag {gvmi, index,
 * page} may lie in set (index + page) mod sets of any block; page is 0 in all
 * caches but the translation cache, so there the set is the low bits of the
 * index as the seed has it.  Within a set, replacement is tree pseudo-LRU over
 * the blocks, free lines first.  There are no negative entries.  A function may be
 * limited to some of the blocks: it fills only these, and finds its lines in all.
 *
 * Epochs: a fill reads memory, and an invalidation may come between the read
 * and the install.  Every invalidation advances the cache's epoch and is kept in a
 * short log; an install says at which epoch its read began, and is refused if
 * an invalidation since then, or one the log has forgotten, covers its tag.
 */
#ifndef HCA_CORE_CACHE_H
#define HCA_CORE_CACHE_H

#include "qhca.h"

#define HCA_CACHE_MAX_SETS	65536u
#define HCA_CACHE_MAX_BLOCKS	64u	/* pseudo-LRU bits fit a word */
#define HCA_CACHE_MAX_LINES	(1u << 20)
#define HCA_CACHE_LOG_SIZE	32u
#define HCA_CACHE_FILTER	1024u

struct hca_tag {
	uint64_t page;
	uint32_t index;
	uint16_t gvmi;
};

/* What a function counts in a cache; any pointer may be NULL. */
struct hca_cache_counts {
	uint64_t *hits;
	uint64_t *misses;
	uint64_t *evictions;
	uint64_t *conflicts;		/* evictions though its blocks had room */
	uint64_t *invalidations;	/* lines dropped by invalidation */
	uint64_t *stale_fills;		/* installs refused by the epoch */
	uint64_t *writebacks;
};

/*
 * A function that uses a cache.  All functions share the lines of a cache; what
 * an access does is counted for the function that made the access.
 */
struct hca_cache_user {
	struct hca_cache_counts count;	/* no pointer is NULL */
	uint64_t sink;			/* where counts go that nobody wants */
	uint64_t blocks;		/* it may fill, by bit; none that exist: all */
	uint16_t gvmi;
};

struct hca_cache_tagline {
	struct hca_tag tag;
	bool valid, dirty;
};

struct hca_cache_inval {		/* one entry of the invalidation log */
	uint64_t first_page, last_page;
	uint32_t index;
	uint16_t gvmi;
	bool all;			/* indices of that GVMI */
};

struct hca_cache_path {			/* to a block, in the tree of a set */
	uint64_t nodes;			/* on the way, by bit */
	uint64_t lower;			/* those of them left by their lower child */
};

struct hca_cache {
	struct qhca_geometry geometry;
	uint32_t set_mask;
	uint32_t log_blocks;
	uint32_t valid;			/* lines in use */
	size_t size;			/* payload bytes a line */
	/* Made with the cache from its geometry and size, so an image does not have them: */
	uint64_t size_inverse;		/* of its odd factor, modulo 2^64 */
	uint32_t size_shift;		/* and its factors of two */
	struct hca_cache_path path[HCA_CACHE_MAX_BLOCKS];
	struct hca_cache_tagline *line; /* [set * blocks + block] */
	uint8_t *payload;
	uint64_t *plru;			/* [set] */
	uint32_t population[HCA_CACHE_FILTER]; /* valid lines, by index */
	uint32_t held[QHCA_MAX_VFS + 1];	/* valid lines, by GVMI */
	uint32_t in_block[HCA_CACHE_MAX_BLOCKS]; /* valid lines, by block */
	uint64_t users;			/* functions that have joined, bit by GVMI */
	uint64_t epoch;
	struct hca_cache_inval log[HCA_CACHE_LOG_SIZE];
	/*
	 * Write back a dirty line about to be lost.  false: there was nobody to
	 * write it to.  May be NULL.
	 */
	bool (*writeback)(void *arg, const struct hca_tag *tag, void *payload);
	void *arg;
};

/* Powers of two, not zero, within the engine's bounds and @max (if not NULL). */
bool hca_geometry_valid(const struct qhca_geometry *g,
			const struct qhca_geometry *max);

/* @counts is copied; NULL: nothing is counted. */
void hca_cache_user_init(struct hca_cache_user *user, uint16_t gvmi,
			 const struct hca_cache_counts *counts);

/*
 * @user begins to use the cache.  If nobody else does, the cache is made with
 * @geometry and @size bytes of payload a line; otherwise it is as it is.  false: bad
 * geometry or no memory.
 */
bool hca_cache_join(struct hca_cache *c, const struct hca_cache_user *user,
		    struct qhca_geometry geometry, size_t size);
/*
 * @user uses the cache no more: its lines are dropped, without write-back and without
 * being counted, and the lines of others stay.  With the last user the cache is
 * freed, and all zero then.  Nothing happens if @user has not joined.
 */
void hca_cache_leave(struct hca_cache *c, const struct hca_cache_user *user);

/* Payload of @tag, counting a hit or a miss, marking it recently used. */
void *hca_cache_lookup(struct hca_cache *c, const struct hca_cache_user *user,
		       struct hca_tag tag);
/* The same, but a payload that @serves rejects is a miss.  @serves may be NULL. */
void *hca_cache_lookup_if(struct hca_cache *c,
			  const struct hca_cache_user *user,
			  struct hca_tag tag,
			  bool (*serves)(const void *payload));
/* Payload of @tag, without any effect. */
void *hca_cache_peek(const struct hca_cache *c, struct hca_tag tag);

static inline uint64_t hca_cache_fill_begin(const struct hca_cache *c)
{
	return c->epoch;
}

/*
 * Room for @tag: its present line if there is one, else a free one or a victim of any
 * function (written back if dirty).  The line is valid, clean and the most recent; the
 * payload is the caller's to write.  NULL: an invalidation overtook a fill
 * begun at @epoch (counted), or the cache has no lines.
 */
void *hca_cache_install(struct hca_cache *c, const struct hca_cache_user *user,
			struct hca_tag tag, uint64_t epoch);

/* Whether a line is dirty, by its payload pointer. */
void hca_cache_set_dirty(struct hca_cache *c, const void *payload, bool on);
bool hca_cache_is_dirty(const struct hca_cache *c, const void *payload);

/* Invalidation drops lines of @user without write-back. */
void hca_cache_invalidate_index(struct hca_cache *c,
				const struct hca_cache_user *user,
				uint32_t index);
void hca_cache_invalidate_range(struct hca_cache *c,
				const struct hca_cache_user *user,
				uint32_t index, uint64_t first_page,
				uint64_t last_page);
void hca_cache_invalidate_all(struct hca_cache *c,
			      const struct hca_cache_user *user);

/*
 * Commands invalidate in slices, since a cache may have a million lines.
 * hca_cache_sweep_begin() advances the epoch.  Each call of hca_cache_sweep()
 * looks at about HCA_CACHE_SLICE lines, and the last one returns true.  A line
 * that is filled between two slices comes from memory as it was after the
 * beginning, so it may stay.
 */
#define HCA_CACHE_SLICE		4096u
struct hca_cache_sweep {
	struct hca_cache_inval inval;
	uint64_t next;			/* line, or page from the first, to look at */
};
void hca_cache_sweep_begin(struct hca_cache *c,
			   struct hca_cache_sweep *sweep,
			   const struct hca_cache_inval *inval);
bool hca_cache_sweep(struct hca_cache *c, const struct hca_cache_user *user,
		     struct hca_cache_sweep *sweep);

/*
 * Call @fn for each valid line from @first_set on, by set and block, until it
 * returns false.  The cache is not affected.
 */
void hca_cache_for_each(const struct hca_cache *c, uint32_t first_set,
			bool (*fn)(void *arg, uint32_t set, uint32_t block,
				   const struct hca_cache_tagline *line,
				   const void *payload),
			void *arg);

#endif /* HCA_CORE_CACHE_H */
