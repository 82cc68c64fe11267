/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the handler of a command gets and returns, in whichever folder it is.  The command
 * queue that calls it lies above all of them (cmd.h).
 */
#ifndef HCA_CORE_HANDLER_H
#define HCA_CORE_HANDLER_H

#include <stddef.h>

#include "mem/cache.h"
#include "qhca.h"

struct hca_fn;

#define HCA_NUM_CMD_SLOTS	(1u << QHCA_MAX_LOG_CMD_SLOTS)

/* Limits that are not in struct qhca_config; those of work queues are in wq.h. */
#define HCA_LIMIT_LOG_ETH_RING		12
#define HCA_LIMIT_ETH_MTU		9000	/* bytes of payload */

/**
 * struct hca_cmd_ctx - a command being executed.  All of it is the engine's
 * own copy.
 * @in:  input mailbox, exactly as long as the table of commands says
 * @out: output mailbox, zeroed; the length the table says is written back
 * @in_len, @out_len: bytes; for a command of variable length software's
 * @syndrome: the handler's choice; for BAD_STATE the present state
 * @step, @next, @sweep: the handler's, zero at first: where its next slice begins
 */
struct hca_cmd_ctx {
	uint16_t opcode;
	uint32_t index, param;
	const uint8_t *in;
	uint32_t in_len;
	uint8_t *out;
	uint32_t out_len;
	uint64_t out_param;
	uint32_t syndrome;
	uint32_t step;
	uint32_t next;
	struct hca_cache_sweep sweep;
};

/*
 * What a handler returns whose work is too much for one call: it is called again
 * for its next slice, after packets and events had theirs.  No other command runs
 * meanwhile, so only traffic changes what the handler has seen.
 */
#define HCA_CMD_AGAIN	((enum qhca_cmd_status)0x100)

typedef enum qhca_cmd_status (*hca_cmd_fn)(struct hca_fn *fn,
					   struct hca_cmd_ctx *ctx);

/*
 * BAD_PARAM with the offset of the field in the input mailbox as the syndrome.
 * A person reads it; software does not.
 */
static inline enum qhca_cmd_status hca_cmd_bad(struct hca_cmd_ctx *ctx,
					       size_t offset)
{
	ctx->syndrome = (uint32_t)offset;
	return QHCA_CMD_BAD_PARAM;
}

/* ... and the offset of a field of the slot. */
#define HCA_SYN_SLOT(field) \
	(0x10000u + offsetof(struct qhca_cmd_slot, field))

#endif /* HCA_CORE_HANDLER_H */
