/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* The cases of qhca-vfio: each opens the function, closes it, and prints points. */
#ifndef QHCA_TEST_VFIO_CASES_H
#define QHCA_TEST_VFIO_CASES_H

#include "guest.h"

#define PAGE	HOST_PAGE

/* What the driver's attributes say. */
struct pinned {
	unsigned long fault, device, faults, refused;
};
struct pinned pinned(const struct guest *g);

/* A pattern by address and seed, so that bytes of another page do not match. */
void fill(struct guest *g, const struct md_mr *mr, unsigned int seed);
bool matches(struct guest *g, const struct md_mr *mr, unsigned int seed);
/* Copies all of a region to another; the status of the last request. */
int copy(struct guest *g, const struct md_mr *from, const struct md_mr *to);

/*
 * changes.c: a clock, and how long a case lasts that goes on and on; what a process keeps in
 * memory that nobody else may write to, and pages of that kind, which others gave back.
 */
double seconds(void);
double duration(void);
#define CANARY		0xc5
#define CANARIES	(32u << 20)
bool is_canary(const uint8_t *p, uint64_t len);
uint8_t *canaries_new(void);
/* Returns false if somebody has written there. */
bool canaries_free(uint8_t *p);

/* hostile.c: the function lives and copies. */
void check_alive(struct guest *g);
/* Addresses that no table of the guest leads to. */
#define NUM_OUTSIDE	8
extern const uint64_t outside[NUM_OUTSIDE];
/*
 * A region of one page, which begins with the byte at @at, or whose root node is there.
 */
uint32_t key_at(struct guest *g, uint64_t at, unsigned int levels, uint32_t gvmi);

/* memory.c: what is pinned, and when */
void case_copy(const char *address);
void case_interrupt(const char *address);
void case_reset(const char *address);
void case_read_only(const char *address);
void case_bus_addresses(const char *address);
void case_large(const char *address);
/* users.c: processes that open the function more than once, or two functions */
void case_twice(const char *address);
void case_beside(const char *address);
/* changes.c: memory that comes and goes */
void case_replace(const char *address);
void case_traffic(const char *address);
void case_both(const char *address);
void case_limit(const char *address);
void case_discard(const char *address);
void case_swapped(const char *address);
/* ends.c: a life of the function that ends */
void case_flr(const char *address);
void case_death(const char *address);
void case_broken(const char *address);
/* hostile.c: software that breaks the rules */
void case_commands(const char *address);
void case_outside(const char *address);
void case_promises(const char *address);
void case_vectors(const char *address);
/* ways.c: each way in which software can name memory */
void case_nodes(const char *address);
void case_pool(const char *address);
void case_queues(const char *address);
void case_changed(const char *address);
void case_frames(const char *address);

#endif
