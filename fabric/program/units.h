/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Numbers with units, as users write them in options and in control messages. Each
 * function reads the whole of the text, and returns false if it is no such number or
 * does not fit in 64 bits.
 */
#ifndef QHCA_FABRIC_UNITS_H
#define QHCA_FABRIC_UNITS_H

#include <stdbool.h>
#include <stdint.h>

/* A number without a unit */
bool sw_parse_number(const char *text, uint64_t *value);
/* bit/s, with k, M, G or T for powers of 1000: "25G" */
bool sw_parse_rate(const char *text, uint64_t *value);
/* bytes, with k, M or G for powers of 1024: "16M" */
bool sw_parse_bytes(const char *text, uint64_t *value);
/* A time with its unit, which is ns, us, ms or s, in ns: "5us"; 0 needs no unit. */
bool sw_parse_time(const char *text, uint64_t *value);

#endif /* QHCA_FABRIC_UNITS_H */
