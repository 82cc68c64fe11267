// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What the device must count in the study, by the plain model of its caches
 * (tests/unit/plain.h): for each trace of cases.txt under each geometry of its sweep
 * a line of JSON.
 *
 *   oracle CASES PT-SETS PT-BLOCKS AT-SETS AT-BLOCKS
 *
 * The numbers are the geometry of the cache that a sweep does not study.  As the
 * guest does, the model makes every access once, which is not counted, and then those
 * that are.  The model begins each trace with empty caches; the guest registers new
 * regions, which has the same effect: deregistration has invalidated the old lines,
 * and what else a set remembers is the order in which its blocks were used, which no
 * longer matters once all of them have been filled.
 */
#include <stdlib.h>

#include "cases.h"
#include "plain.h"

struct caches {
	struct plain *pt, *at;
};

static void message(struct caches *c, const struct trace *t, struct pattern_access a)
{
	struct plain_name name = { .index = a.key };

	for (uint32_t i = 0; i < message_packets(&t->message); i++) {
		struct message_part part = message_part(&t->message, i);

		name.page = 0;
		plain_access(c->pt, name);
		for (uint32_t page = part.first; page <= part.last; page++) {
			name.page = a.page + page;
			plain_access(c->at, name);
		}
	}
}

static void show(const char *cache, const struct plain_counts *before,
		 const struct plain_counts *after)
{
	printf(", \"%s_hits\": %llu, \"%s_misses\": %llu, \"%s_evictions\": %llu, \"%s_conflicts\": %llu",
	       cache, after->hits - before->hits, cache, after->misses - before->misses,
	       cache, after->evictions - before->evictions,
	       cache, after->conflicts - before->conflicts);
}

static void predict(const struct trace *t, const struct geometry *pt,
		    const struct geometry *at)
{
	struct caches c = { plain_new(pt->sets, pt->blocks), plain_new(at->sets, at->blocks) };
	struct pattern p = pattern_begin(t->kind, t->keys, t->pages);
	struct plain_counts pt_before, at_before;
	uint64_t n;

	for (n = pattern_items(&p); n; n--)
		message(&c, t, pattern_next(&p));
	pt_before = *plain_counts(c.pt);
	at_before = *plain_counts(c.at);
	for (n = pattern_counted(&p); n; n--)
		message(&c, t, pattern_next(&p));
	printf("{\"sweep\": \"%s\", \"pattern\": \"%s\", \"keys\": %u, \"pages\": %u, "
	       "\"operation\": \"%s\", \"offset\": %u, \"bytes\": %u, "
	       "\"pt_sets\": %u, \"pt_blocks\": %u, \"at_sets\": %u, \"at_blocks\": %u, "
	       "\"accesses\": %llu", t->sweep, t->pattern, t->keys, t->pages, t->operation,
	       t->offset, t->bytes, pt->sets, pt->blocks, at->sets, at->blocks,
	       (unsigned long long)pattern_counted(&p));
	show("pt", &pt_before, plain_counts(c.pt));
	show("at", &at_before, plain_counts(c.at));
	printf("}\n");
	plain_free(c.pt);
	plain_free(c.at);
}

static struct geometry roomy(char **numbers)
{
	return (struct geometry){ .sets = (unsigned int)atoi(numbers[0]),
				  .blocks = (unsigned int)atoi(numbers[1]) };
}

int main(int argc, char **argv)
{
	struct geometry pt, at;
	static struct cases cases;
	char line[200] = "";
	FILE *file;

	if (argc != 6) {
		fprintf(stderr, "usage: oracle CASES PT-SETS PT-BLOCKS AT-SETS AT-BLOCKS\n");
		return 2;
	}
	pt = roomy(argv + 2);
	at = roomy(argv + 4);
	file = fopen(argv[1], "r");
	if (!file || !cases_read(&cases, file, line)) {
		fprintf(stderr, "oracle: %s: the line \"%s\" has no meaning\n", argv[1], line);
		return 1;
	}
	fclose(file);
	for (unsigned int g = 0; g < cases.num_geometries; g++) {
		const struct geometry *mine = &cases.geometry[g];
		bool is_pt = !strcmp(mine->cache, "pt");

		for (unsigned int t = 0; t < cases.num_traces; t++)
			if (!strcmp(cases.trace[t].sweep, mine->sweep))
				predict(&cases.trace[t], is_pt ? mine : &pt,
					is_pt ? &at : mine);
	}
	return 0;
}
