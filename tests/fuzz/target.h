/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef QHCA_FUZZ_TARGET_H
#define QHCA_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

/* Every target runs an input once, and returns a digest. */
uint64_t fuzz_one(const uint8_t *data, size_t size);

/* Runs it, once or twice (twice.c); a finding aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* QHCA_FUZZ_TARGET_H */
