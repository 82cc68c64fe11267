/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Which ways through the engine an input has taken.  The engine's objects are
 * compiled with -fsanitize-coverage=trace-pc, which gcc has as well.
 */
#ifndef QHCA_FUZZ_COVER_H
#define QHCA_FUZZ_COVER_H

#include <stdbool.h>
#include <stdint.h>

void cover_begin(void);
/* Has the input since cover_begin() gone where none before it went? */
bool cover_news(void);
/* Ways known: pairs of consecutive places, by how often. */
uint32_t cover_known(void);

#endif /* QHCA_FUZZ_COVER_H */
