// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "alloc.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static size_t live;
static uint64_t calls, fail_in;
static uint8_t stain;

void *fuzz_malloc(size_t size);
void *fuzz_calloc(size_t num, size_t size);
void fuzz_free(void *p);

size_t alloc_live(void)
{
	return live;
}

uint64_t alloc_calls(void)
{
	return calls;
}

void alloc_fail_in(uint64_t n)
{
	fail_in = n;
}

void alloc_stain(uint8_t value)
{
	stain = value;
}

static bool refused(void)
{
	calls++;
	return fail_in && --fail_in == 0;
}

static void *counted(void *p)
{
	if (p)
		live += malloc_usable_size(p);
	return p;
}

void *fuzz_malloc(size_t size)
{
	void *p = refused() ? NULL : counted(malloc(size));

	if (p)
		memset(p, stain, size);
	return p;
}

void *fuzz_calloc(size_t num, size_t size)
{
	return refused() ? NULL : counted(calloc(num, size));
}

void fuzz_free(void *p)
{
	if (p)
		live -= malloc_usable_size(p);
	free(p);
}
