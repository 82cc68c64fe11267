/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Counter sets: what QPs count apart from the others of their function.
 *
 * The function counts everything.  For a QP that software has given a set, the same
 * is counted in the set as well, so that only such a QP costs anything.  Set 0 has
 * what no other set has, and no memory: it is computed when software asks for it.
 */
#ifndef HCA_CORE_COUNTER_SET_H
#define HCA_CORE_COUNTER_SET_H

#include "qhca.h"
#include "handler.h"

#define HCA_NUM_COUNTER_SETS	128	/* set 0 included */

/* The counters that sets have, which are neighbours among those of the function. */
#define HCA_SET_FIRST		QHCA_CNT_tx_packets
#define HCA_SET_LAST		QHCA_CNT_uc_dropped
#define HCA_SET_COUNTERS	(HCA_SET_LAST - HCA_SET_FIRST + 1)

struct hca_counter_sets {
	uint64_t count[HCA_NUM_COUNTER_SETS][HCA_SET_COUNTERS];
};

/* Has the set counted nothing? */
static inline bool hca_counter_set_empty(const struct hca_counter_sets *s,
					 uint32_t set)
{
	for (uint32_t i = 0; i < HCA_SET_COUNTERS; i++)
		if (s->count[set][i])
			return false;
	return true;
}

enum qhca_cmd_status hca_cmd_set_qp_counters(struct hca_fn *fn,
					     struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_query_counter_set(struct hca_fn *fn,
					       struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_COUNTER_SET_H */
