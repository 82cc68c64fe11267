// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands on counter sets: which one a QP counts in, and what a set has counted.
 */
#include "transport/transport.h"

enum qhca_cmd_status hca_cmd_set_qp_counters(struct hca_fn *fn,
					     struct hca_cmd_ctx *ctx)
{
	uint32_t qpn = ctx->index;
	struct hca_qp *qp;
	uint64_t addr;

	if (!qpn || qpn >= fn->qps.num_slots)
		return QHCA_CMD_BAD_INDEX;
	if (ctx->param >= HCA_NUM_COUNTER_SETS)
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
	if (!hca_table_entry(fn, QHCA_TABLE_QP, qpn, &addr))
		return QHCA_CMD_NOT_MAPPED;
	if (!fn->qps.slot[qpn].live)
		return QHCA_CMD_BAD_STATE;
	qp = hca_qp_get(fn, qpn);
	if (!qp)
		return QHCA_CMD_DMA_ERR;
	qp->counter_set = (uint8_t)ctx->param;
	hca_qp_dirty(fn, qp);
	return QHCA_CMD_OK;
}

/*
 * What no other set has counted.  A datagram to a group counts once, and in the set
 * of each member that gets it; set 0 has nothing then, rather than less.
 */
static uint64_t rest(const struct hca_fn *fn, uint32_t id)
{
	uint64_t left = fn->counter[id];

	if (id < HCA_SET_FIRST || id > HCA_SET_LAST)
		return left;
	for (unsigned int set = 1; set < HCA_NUM_COUNTER_SETS; set++) {
		uint64_t n = fn->sets.count[set][id - HCA_SET_FIRST];

		left -= n < left ? n : left;
	}
	return left;
}

static uint64_t value(const struct hca_fn *fn, uint32_t set, uint32_t id)
{
	if (!set)
		return rest(fn, id);
	if (id < HCA_SET_FIRST || id > HCA_SET_LAST)
		return 0;
	return fn->sets.count[set][id - HCA_SET_FIRST];
}

enum qhca_cmd_status hca_cmd_query_counter_set(struct hca_fn *fn,
					       struct hca_cmd_ctx *ctx)
{
	uint32_t i, n = ctx->out_len / 8;

	if (ctx->param >= QHCA_NUM_COUNTERS)
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(param));
	for (i = 0; i < n && ctx->param + i < QHCA_NUM_COUNTERS; i++)
		put_le64(ctx->out + i * 8,
			 value(fn, ctx->index, ctx->param + i));
	return QHCA_CMD_OK;
}
