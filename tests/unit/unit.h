/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the unit tests share: cmocka, the fake host (tests/host/host.h) with a small
 * HCA, and the engine's own structures.
 */
#ifndef QHCA_TEST_UNIT_H
#define QHCA_TEST_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hca.h"
#include "host.h"

#define RAM_SIZE	(8u << 20)

/* Configuration of tests: the tables are small, so that their bounds are near. */
void host_config(struct qhca_config *cfg);
/* A host with an HCA, link up; not enabled.  @cfg NULL: host_config(). */
struct host *host_new(const struct qhca_config *cfg);
/* A virtual function of the adapter of @pf, enabled in PCI; host_free(@pf) frees it. */
struct host *host_new_vf(struct host *pf, uint16_t gvmi,
			 const struct qhca_config *cfg);
void host_free(struct host *h);
/* Enabled, INIT_HCA done with default caches, every chunk mapped. */
struct host *host_new_ready(void);
/* Enabled, INIT_HCA done; it sends and takes @max_bundle bytes of payload in a frame. */
struct host *host_new_bundles(uint32_t max_bundle);
/* As host_new_ready(), with one cache's geometry. */
struct host *host_new_cache(enum qhca_cache_id id, uint16_t sets,
			    uint16_t blocks);
/* host_migrate() for hosts of this file.  Length of the image. */
size_t host_move(struct host *pf, uint64_t skew);
void host_init_default(struct host *h, struct qhca_init_hca *in);

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

#endif /* QHCA_TEST_UNIT_H */
