// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Set-associative caches: tags, payloads and replacement.  No DMA is done here.
 */
#include <stdlib.h>

#include "hca.h"

static bool power_of_two(uint32_t v)
{
	return v && !(v & (v - 1));
}

static uint32_t log2_of(uint32_t v)
{
	uint32_t log = 0;

	while (v >>= 1)
		log++;
	return log;
}

bool hca_geometry_valid(const struct qhca_geometry *g,
			const struct qhca_geometry *max)
{
	if (!power_of_two(g->sets) || !power_of_two(g->blocks))
		return false;
	if (g->blocks > HCA_CACHE_MAX_BLOCKS ||
	    (uint32_t)g->sets * g->blocks > HCA_CACHE_MAX_LINES)
		return false;
	return !max || (g->sets <= max->sets && g->blocks <= max->blocks);
}

static uint32_t num_lines(const struct hca_cache *c)
{
	return (uint32_t)c->geometry.sets * c->geometry.blocks;
}

static void or_sink(struct hca_cache_user *user, uint64_t **counter)
{
	if (!*counter)
		*counter = &user->sink;
}

void hca_cache_user_init(struct hca_cache_user *user, uint16_t gvmi,
			 const struct hca_cache_counts *counts)
{
	memset(user, 0, sizeof(*user));
	user->gvmi = gvmi;
	if (counts)
		user->count = *counts;
	or_sink(user, &user->count.hits);
	or_sink(user, &user->count.misses);
	or_sink(user, &user->count.evictions);
	or_sink(user, &user->count.conflicts);
	or_sink(user, &user->count.invalidations);
	or_sink(user, &user->count.stale_fills);
	or_sink(user, &user->count.writebacks);
}

/* The way from the root of the pseudo-LRU tree to each block: see plru_touch(). */
static void make_paths(struct hca_cache *c)
{
	for (uint32_t block = 0; block < c->geometry.blocks; block++) {
		struct hca_cache_path *path = &c->path[block];
		uint32_t node = 1;

		for (uint32_t level = c->log_blocks; level > 0; level--) {
			uint32_t side = block >> (level - 1) & 1;

			path->nodes |= 1ull << node;
			if (!side)
				path->lower |= 1ull << node;
			node = node * 2 + side;
		}
	}
}

/*
 * A multiple of the size is divided by it without a division: a shift removes the
 * factors of two, and the inverse of the odd rest modulo 2^64 is multiplied with.  Each
 * step of Newton's method doubles the bits of the inverse that are right, from three.
 */
static void make_inverse(struct hca_cache *c)
{
	uint64_t odd = c->size, inverse;

	for (c->size_shift = 0; odd && !(odd & 1); odd >>= 1)
		c->size_shift++;
	inverse = odd;
	for (int bits = 3; bits < 64; bits *= 2)
		inverse *= 2 - odd * inverse;
	c->size_inverse = inverse;
}

static void destroy(struct hca_cache *c)
{
	free(c->line);
	free(c->payload);
	free(c->plru);
	memset(c, 0, sizeof(*c));
}

static bool create(struct hca_cache *c, struct qhca_geometry geometry,
		   size_t size)
{
	memset(c, 0, sizeof(*c));
	if (!hca_geometry_valid(&geometry, NULL))
		return false;
	c->geometry = geometry;
	c->set_mask = geometry.sets - 1u;
	c->log_blocks = log2_of(geometry.blocks);
	c->size = (size + 7) & ~(size_t)7;
	make_paths(c);
	make_inverse(c);
	c->line = calloc(num_lines(c), sizeof(*c->line));
	c->payload = calloc(num_lines(c), c->size);
	c->plru = calloc(geometry.sets, sizeof(*c->plru));
	if (c->line && c->payload && c->plru)
		return true;
	destroy(c);
	return false;
}

static uint64_t user_bit(const struct hca_cache_user *user)
{
	return 1ull << user->gvmi;
}

bool hca_cache_join(struct hca_cache *c, const struct hca_cache_user *user,
		    struct qhca_geometry geometry, size_t size)
{
	if (!c->users && !create(c, geometry, size))
		return false;
	c->users |= user_bit(user);
	return true;
}

/* ---- lines */

static bool tag_equal(const struct hca_tag *a, const struct hca_tag *b)
{
	return a->index == b->index && a->page == b->page &&
	       a->gvmi == b->gvmi;
}

static uint32_t set_of(const struct hca_cache *c, const struct hca_tag *tag)
{
	return (uint32_t)(tag->index + tag->page) & c->set_mask;
}

static void *payload_of(const struct hca_cache *c, uint32_t slot)
{
	return c->payload + (size_t)slot * c->size;
}

static uint32_t line_of(const struct hca_cache *c, const void *payload)
{
	uint64_t offset = (uint64_t)((const uint8_t *)payload - c->payload);

	return (uint32_t)((offset >> c->size_shift) * c->size_inverse);
}

/* Slot of @tag, or -1. */
static int64_t find(const struct hca_cache *c, const struct hca_tag *tag)
{
	uint32_t first, block;

	if (!c->line)
		return -1;
	first = set_of(c, tag) << c->log_blocks;
	for (block = 0; block < c->geometry.blocks; block++) {
		const struct hca_cache_tagline *line = &c->line[first + block];

		if (line->valid && tag_equal(&line->tag, tag))
			return first + block;
	}
	return -1;
}

/*
 * Tree pseudo-LRU: node 1 is the root, node n has children 2n and 2n + 1; bit
 * n of the set's word says which child was used longer ago (0: the lower).
 */
static void plru_touch(struct hca_cache *c, uint32_t set, uint32_t block)
{
	const struct hca_cache_path *path = &c->path[block];

	c->plru[set] = (c->plru[set] & ~path->nodes) | path->lower;
}

/* The blocks, by bit, that are leaves below @node, which is @level above them. */
static uint64_t leaves(const struct hca_cache *c, uint32_t node,
		       uint32_t level)
{
	uint64_t one = (1ull << (1u << level)) - 1;

	return one << ((node << level) - c->geometry.blocks);
}

/*
 * The oldest of the @allowed blocks: where the child that was used longer ago has none
 * of them, the way leads to the other one.
 */
static uint32_t plru_oldest(const struct hca_cache *c, uint32_t set,
			    uint64_t allowed)
{
	uint32_t node = 1, level;

	for (level = c->log_blocks; level > 0; level--) {
		node = node * 2 + (c->plru[set] >> node & 1);
		if (!(leaves(c, node, level - 1) & allowed))
			node ^= 1;
	}
	return node - c->geometry.blocks;
}

static void drop_line(struct hca_cache *c, uint32_t slot)
{
	struct hca_cache_tagline *line = &c->line[slot];

	c->population[line->tag.index % HCA_CACHE_FILTER]--;
	c->held[line->tag.gvmi]--;
	c->in_block[slot & (c->geometry.blocks - 1u)]--;
	c->valid--;
	memset(line, 0, sizeof(*line));
}

void *hca_cache_lookup_if(struct hca_cache *c,
			  const struct hca_cache_user *user,
			  struct hca_tag tag,
			  bool (*serves)(const void *payload))
{
	int64_t slot = find(c, &tag);

	if (slot < 0 || (serves && !serves(payload_of(c, (uint32_t)slot)))) {
		(*user->count.misses)++;
		return NULL;
	}
	(*user->count.hits)++;
	plru_touch(c, (uint32_t)slot >> c->log_blocks,
		   (uint32_t)slot & (c->geometry.blocks - 1u));
	return payload_of(c, (uint32_t)slot);
}

void *hca_cache_lookup(struct hca_cache *c, const struct hca_cache_user *user,
		       struct hca_tag tag)
{
	return hca_cache_lookup_if(c, user, tag, NULL);
}

void *hca_cache_peek(const struct hca_cache *c, struct hca_tag tag)
{
	int64_t slot = find(c, &tag);

	return slot < 0 ? NULL : payload_of(c, (uint32_t)slot);
}

/* ---- epochs */

static bool inval_covers(const struct hca_cache_inval *inval,
			 const struct hca_tag *tag)
{
	return inval->gvmi == tag->gvmi &&
	       (inval->all ||
		(inval->index == tag->index && tag->page >= inval->first_page &&
		 tag->page <= inval->last_page));
}

static bool fill_is_stale(const struct hca_cache *c,
			  const struct hca_tag *tag, uint64_t epoch)
{
	if (c->epoch - epoch > HCA_CACHE_LOG_SIZE)
		return true;		/* the log has forgotten: assume it */
	for (; epoch != c->epoch; epoch++)
		if (inval_covers(&c->log[epoch % HCA_CACHE_LOG_SIZE], tag))
			return true;
	return false;
}

static void log_inval(struct hca_cache *c, const struct hca_cache_inval *inval)
{
	c->log[c->epoch++ % HCA_CACHE_LOG_SIZE] = *inval;
}

/* ---- fills */

static uint64_t all_blocks(const struct hca_cache *c)
{
	return UINT64_MAX >> (HCA_CACHE_MAX_BLOCKS - c->geometry.blocks);
}

/* The blocks that @user may fill. */
static uint64_t blocks_of(const struct hca_cache *c,
			  const struct hca_cache_user *user)
{
	uint64_t blocks = user->blocks & all_blocks(c);

	return blocks ? blocks : all_blocks(c);
}

/* The slot of @set to fill next. */
static uint32_t choose_slot(const struct hca_cache *c, uint32_t set,
			    uint64_t allowed)
{
	uint32_t first = set << c->log_blocks, block;

	for (block = 0; block < c->geometry.blocks; block++)
		if (allowed >> block & 1 && !c->line[first + block].valid)
			return first + block;
	return first + plru_oldest(c, set, allowed);
}

/* Is any line of the @allowed blocks free? */
static bool has_room(const struct hca_cache *c, uint64_t allowed)
{
	uint32_t block;

	if (allowed == all_blocks(c))
		return c->valid < num_lines(c);
	for (block = 0; block < c->geometry.blocks; block++)
		if (allowed >> block & 1 &&
		    c->in_block[block] < c->geometry.sets)
			return true;
	return false;
}

static void evict(struct hca_cache *c, const struct hca_cache_user *user,
		  uint32_t slot)
{
	struct hca_cache_tagline *line = &c->line[slot];

	if (!line->valid)
		return;
	(*user->count.evictions)++;
	if (has_room(c, blocks_of(c, user)))
		(*user->count.conflicts)++;
	if (line->dirty && c->writeback &&
	    c->writeback(c->arg, &line->tag, payload_of(c, slot)))
		(*user->count.writebacks)++;
	drop_line(c, slot);
}

void *hca_cache_install(struct hca_cache *c, const struct hca_cache_user *user,
			struct hca_tag tag, uint64_t epoch)
{
	struct hca_cache_tagline *line;
	uint32_t set, slot;
	int64_t found;

	if (!c->line)
		return NULL;
	if (fill_is_stale(c, &tag, epoch)) {
		(*user->count.stale_fills)++;
		return NULL;
	}
	set = set_of(c, &tag);
	found = find(c, &tag);
	slot = found < 0 ? choose_slot(c, set, blocks_of(c, user)) :
			   (uint32_t)found;
	line = &c->line[slot];
	if (found < 0) {
		evict(c, user, slot);
		line->tag = tag;
		line->valid = true;
		c->valid++;
		c->population[tag.index % HCA_CACHE_FILTER]++;
		c->held[tag.gvmi]++;
		c->in_block[slot & (c->geometry.blocks - 1u)]++;
	}
	line->dirty = false;
	plru_touch(c, set, slot & (c->geometry.blocks - 1u));
	return payload_of(c, slot);
}

void hca_cache_set_dirty(struct hca_cache *c, const void *payload, bool on)
{
	c->line[line_of(c, payload)].dirty = on;
}

bool hca_cache_is_dirty(const struct hca_cache *c, const void *payload)
{
	return c->line[line_of(c, payload)].dirty;
}

/* ---- invalidation */

static void drop_counted(struct hca_cache *c,
			 const struct hca_cache_user *user, uint32_t slot)
{
	(*user->count.invalidations)++;
	drop_line(c, slot);
}

/*
 * Does the invalidation name so few pages that looking each of them up costs
 * less than a sweep of all lines?
 */
static bool few_pages(const struct hca_cache *c,
		      const struct hca_cache_inval *inval)
{
	return !inval->all && inval->first_page <= inval->last_page &&
	       inval->last_page - inval->first_page < c->geometry.sets;
}

/*
 * Look up a slice of the pages, each of which may be in any block of its set.
 */
static bool sweep_pages(struct hca_cache *c, const struct hca_cache_user *user,
			struct hca_cache_sweep *sweep)
{
	const struct hca_cache_inval *inval = &sweep->inval;
	struct hca_tag tag = { .index = inval->index, .gvmi = inval->gvmi };
	uint64_t last = inval->last_page - inval->first_page;
	uint32_t looked;
	int64_t slot;

	for (looked = 0; looked < HCA_CACHE_SLICE && sweep->next <= last;
	     looked += c->geometry.blocks) {
		tag.page = inval->first_page + sweep->next++;
		slot = find(c, &tag);
		if (slot >= 0)
			drop_counted(c, user, (uint32_t)slot);
	}
	return sweep->next > last;
}

/* Look at a slice of all lines. */
static bool sweep_lines(struct hca_cache *c, const struct hca_cache_user *user,
			struct hca_cache_sweep *sweep)
{
	uint64_t end = num_lines(c);
	uint32_t slot;

	if (end - sweep->next > HCA_CACHE_SLICE)
		end = sweep->next + HCA_CACHE_SLICE;
	for (slot = (uint32_t)sweep->next; slot < end; slot++)
		if (c->line[slot].valid &&
		    inval_covers(&sweep->inval, &c->line[slot].tag))
			drop_counted(c, user, slot);
	sweep->next = end;
	return end == num_lines(c);
}

void hca_cache_sweep_begin(struct hca_cache *c,
			   struct hca_cache_sweep *sweep,
			   const struct hca_cache_inval *inval)
{
	sweep->inval = *inval;
	sweep->next = 0;
	log_inval(c, inval);
}

bool hca_cache_sweep(struct hca_cache *c, const struct hca_cache_user *user,
		     struct hca_cache_sweep *sweep)
{
	const struct hca_cache_inval *inval = &sweep->inval;

	if (!c->line || !c->held[inval->gvmi])
		return true;
	if (!inval->all && !c->population[inval->index % HCA_CACHE_FILTER])
		return true;
	return few_pages(c, inval) ? sweep_pages(c, user, sweep) :
				     sweep_lines(c, user, sweep);
}

static void invalidate(struct hca_cache *c, const struct hca_cache_user *user,
		       const struct hca_cache_inval *inval)
{
	struct hca_cache_sweep sweep;

	hca_cache_sweep_begin(c, &sweep, inval);
	while (!hca_cache_sweep(c, user, &sweep))
		;
}

void hca_cache_invalidate_index(struct hca_cache *c,
				const struct hca_cache_user *user,
				uint32_t index)
{
	hca_cache_invalidate_range(c, user, index, 0, UINT64_MAX);
}

void hca_cache_invalidate_range(struct hca_cache *c,
				const struct hca_cache_user *user,
				uint32_t index, uint64_t first_page,
				uint64_t last_page)
{
	struct hca_cache_inval inval = {
		.gvmi = user->gvmi, .index = index,
		.first_page = first_page, .last_page = last_page,
	};

	invalidate(c, user, &inval);
}

void hca_cache_invalidate_all(struct hca_cache *c,
			      const struct hca_cache_user *user)
{
	struct hca_cache_inval inval = { .gvmi = user->gvmi, .all = true };

	invalidate(c, user, &inval);
}

void hca_cache_leave(struct hca_cache *c, const struct hca_cache_user *user)
{
	struct hca_cache_inval inval = { .gvmi = user->gvmi, .all = true };

	if (!(c->users & user_bit(user)))
		return;
	c->users &= ~user_bit(user);
	if (!c->users) {
		destroy(c);
		return;
	}
	log_inval(c, &inval);
	for (uint32_t slot = 0; c->held[user->gvmi]; slot++)
		if (c->line[slot].valid && c->line[slot].tag.gvmi == user->gvmi)
			drop_line(c, slot);
}

void hca_cache_for_each(const struct hca_cache *c, uint32_t first_set,
			bool (*fn)(void *arg, uint32_t set, uint32_t block,
				   const struct hca_cache_tagline *line,
				   const void *payload),
			void *arg)
{
	uint32_t slot, lines = c->line ? num_lines(c) : 0;

	if (first_set >= c->geometry.sets)
		return;
	for (slot = first_set << c->log_blocks; slot < lines; slot++)
		if (c->line[slot].valid &&
		    !fn(arg, slot >> c->log_blocks,
			slot & (c->geometry.blocks - 1u), &c->line[slot],
			payload_of(c, slot)))
			return;
}
