/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the study measures (cases.txt), for the programs in C that make the same
 * accesses: the unit test of the cache, and the oracle.
 */
#ifndef STUDY_CASES_H
#define STUDY_CASES_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "pattern.h"

#define CASES_MAX	64

struct trace {				/* in which order which messages are made */
	char sweep[16], pattern[16], operation[16];
	unsigned int keys, pages, offset, bytes;
	enum pattern_kind kind;
	struct message message;
};

struct geometry {
	char sweep[16], cache[8];
	unsigned int sets, blocks;
};

struct cases {
	struct trace trace[CASES_MAX];
	struct geometry geometry[CASES_MAX];
	unsigned int num_traces, num_geometries;
};

/* A trace is one of messages that write 8 bytes, unless its line says otherwise. */
static inline bool cases_trace(struct trace *t, const char *line)
{
	if (sscanf(line, "message %15s %15s %u %u %15s %u %u", t->sweep, t->operation,
		   &t->offset, &t->bytes, t->pattern, &t->keys, &t->pages) != 7) {
		strcpy(t->operation, "write");
		t->offset = 0;
		t->bytes = 8;
		if (sscanf(line, "trace %15s %15s %u %u", t->sweep, t->pattern, &t->keys,
			   &t->pages) != 4)
			return false;
	}
	return message_of(t->operation, t->offset, t->bytes, &t->message) &&
	       pattern_kind_of(t->pattern, &t->kind) && t->keys && t->pages;
}

/* Reads the file; false: @line is the first that it does not understand. */
static inline bool cases_read(struct cases *c, FILE *file, char line[200])
{
	memset(c, 0, sizeof(*c));
	while (fgets(line, 200, file)) {
		struct geometry *g = &c->geometry[c->num_geometries];

		if (line[0] == '#' || line[0] == '\n')
			continue;
		if (c->num_traces == CASES_MAX - 1 || c->num_geometries == CASES_MAX - 1)
			return false;
		if (cases_trace(&c->trace[c->num_traces], line))
			c->num_traces++;
		else if (sscanf(line, "geometry %15s %7s %u %u", g->sweep, g->cache, &g->sets,
				&g->blocks) == 4)
			c->num_geometries++;
		else
			return false;
	}
	return true;
}

#endif /* STUDY_CASES_H */
