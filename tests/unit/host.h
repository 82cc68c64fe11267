/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A host in memory for unit tests: RAM from RAM_BASE, DMA that can be made to
 * fail, interrupts and frames that are counted, and helpers that do what a
 * driver does.
 */
#ifndef QHCA_TEST_HOST_H
#define QHCA_TEST_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hca.h"

#define RAM_BASE	0x100000ull
#define RAM_SIZE	(8u << 20)
#define MAX_SENT	256

struct sent {
	size_t len;
	uint8_t data[QHCA_MAX_FRAME];
};

struct host {
	struct qhca_hca *hca;
	struct hca_fn *fn;		/* its physical function */
	uint8_t *ram;
	uint64_t next;			/* first free bus address */
	uint64_t now;

	/* DMA: counts, and which access fails */
	uint64_t reads, writes;
	uint64_t fail_in;		/* 1: the next one; 0: none */
	bool fail_on;			/* ... and all after it */
	uint64_t bad_first, bad_last;	/* bus addresses that fail; 0, 0: none */
	uint64_t watch_first, watch_last; /* count reads of these */
	uint64_t watch_reads, watch_writes;

	unsigned int irqs[QHCA_MAX_VECTORS];

	/* NULL, or called in each callback: a host that calls back */
	void (*meanwhile)(struct host *h);

	bool tx_full;			/* no room on the link */
	uint8_t room[QHCA_MAX_FRAME];
	size_t reserved;
	struct sent sent[MAX_SENT];	/* the first ones */
	unsigned int num_sent;

	uint64_t slots;			/* command queue */
};

/* Configuration of tests: small tables, so that bounds are near. */
void host_config(struct qhca_config *cfg);
/* A host with an HCA, link up; not enabled.  @cfg NULL: host_config(). */
struct host *host_new(const struct qhca_config *cfg);
void host_free(struct host *h);
/* Enabled, INIT_HCA done with default caches, every chunk mapped. */
struct host *host_new_ready(void);
/* The same with one cache's geometry. */
struct host *host_new_cache(enum qhca_cache_id id, uint16_t sets,
			    uint16_t blocks);
void host_enable(struct host *h);
enum qhca_cmd_status host_init_hca(struct host *h,
				   const struct qhca_init_hca *in);
void host_init_default(struct host *h, struct qhca_init_hca *in);
void host_map_table(struct host *h, enum qhca_table table);

/* Zeroed memory; the pointer for a bus address. */
uint64_t host_alloc(struct host *h, size_t len, size_t align);
void *host_ptr(struct host *h, uint64_t addr);

void host_run(struct host *h);		/* until idle, time standing still */
void host_run_at(struct host *h, uint64_t now);

/* One command through slot 0, by polling. */
enum qhca_cmd_status host_cmd(struct host *h, enum qhca_opcode opcode,
			      uint32_t index, uint32_t param, const void *in,
			      uint32_t in_len, void *out, uint32_t out_len);
/* The same, the whole slot back. */
struct qhca_cmd_slot host_cmd_slot(struct host *h,
				   const struct qhca_cmd_slot *slot,
				   unsigned int number);

struct ring {				/* of an EQ or CQ */
	uint64_t base, record;
	unsigned int log_depth;
	struct qhca_buf buf;
	uint32_t rec_offset;
};
/* Contiguous room for 2^log_depth entries of 64 bytes and a record. */
struct ring host_ring(struct host *h, unsigned int log_depth);
enum qhca_cmd_status host_create_eq(struct host *h, uint32_t eqn,
				    const struct ring *ring, uint16_t vector);
enum qhca_cmd_status host_create_cq(struct host *h, uint32_t cqn,
				    const struct ring *ring, uint32_t eqn);
struct qhca_eqe *host_eqe(struct host *h, const struct ring *ring, uint32_t i);
struct qhca_cqe *host_cqe(struct host *h, const struct ring *ring, uint32_t i);
/* Has entry @i been written (its phase is that of its pass)? */
bool host_eqe_valid(struct host *h, const struct ring *ring, uint32_t i);
bool host_cqe_valid(struct host *h, const struct ring *ring, uint32_t i);
void host_set_ci(struct host *h, const struct ring *ring, uint32_t ci);

uint64_t host_count(const struct host *h, enum qhca_counter id);
#define COUNT(h, name) host_count(h, QHCA_CNT_##name)

/* splitmix64 */
uint64_t host_random(uint64_t *state);

/* Every test program's main(): TAP, unless CMOCKA_MESSAGE_OUTPUT says else. */
#define TEST_MAIN(tests)						\
int main(void)								\
{									\
	cmocka_set_message_output(CM_OUTPUT_TAP);			\
	return cmocka_run_group_tests(tests, NULL, NULL);		\
}

#endif /* QHCA_TEST_HOST_H */
