/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The engine's heap: its objects are compiled to call these in place of
 * malloc, calloc and free.
 */
#ifndef QHCA_FUZZ_ALLOC_H
#define QHCA_FUZZ_ALLOC_H

#include <stddef.h>
#include <stdint.h>

/* Bytes the engine holds now, and calls it has made. */
size_t alloc_live(void);
uint64_t alloc_calls(void);
/* The n-th allocation from now fails; 0: none. */
void alloc_fail_in(uint64_t n);
/* What memory from malloc is filled with. */
void alloc_stain(uint8_t value);

#endif /* QHCA_FUZZ_ALLOC_H */
