// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands: the queue, the table of commands, and those that concern the HCA
 * as a whole.  hardware.rst, "Command queue", fixes the order of the checks.
 */
#include "attach.h"
#include "chunk.h"
#include "gvm.h"
#include "hca.h"
#include "mode.h"
#include "pin.h"

/* What the index of a command numbers, to check its range. */
enum index_kind {
	INDEX_NONE,			/* ignored, or the handler's to check */
	INDEX_PT, INDEX_QP, INDEX_CQ, INDEX_SRQ, INDEX_EQ,
	INDEX_GID, INDEX_ETHQ, INDEX_POOL, INDEX_FLOW, INDEX_COUNTER,
	INDEX_COUNTER_SET, INDEX_VF,
};

#define VARIABLE	0xffffu		/* mailbox length: the handler's to check */

struct command {
	const char *name;
	hca_cmd_fn fn;			/* NULL: reserved */
	uint64_t feature;		/* needed, or 0 */
	uint16_t in, out;		/* bytes of the mailboxes, or VARIABLE */
	uint8_t index;			/* enum index_kind */
	bool early;			/* works before INIT_HCA */
};

/* ------------------------------------------------------------------------
 * Commands of the HCA
 */
static enum qhca_cmd_status cmd_nop(struct hca_fn *fn,
				    struct hca_cmd_ctx *ctx)
{
	(void)fn;
	(void)ctx;
	return QHCA_CMD_OK;
}

static enum qhca_cmd_status cmd_query_caps(struct hca_fn *fn,
					   struct hca_cmd_ctx *ctx)
{
	hca_caps_fill(fn, (void *)ctx->out);
	return QHCA_CMD_OK;
}

static enum qhca_cmd_status init_tables_check(const struct hca_fn *fn,
					      struct hca_cmd_ctx *ctx)
{
	const struct qhca_init_hca *in = (const void *)ctx->in;
	const uint8_t log_max[QHCA_NUM_TABLES] = {
		[QHCA_TABLE_PT] = fn->cfg.log_max_pt,
		[QHCA_TABLE_QP] = fn->cfg.log_max_qp,
		[QHCA_TABLE_CQ] = fn->cfg.log_max_cq,
		[QHCA_TABLE_SRQ] = fn->cfg.log_max_srq,
		[QHCA_TABLE_EQ] = fn->cfg.log_max_eq,
	};
	unsigned int i;

	for (i = 0; i < QHCA_NUM_TABLES; i++)
		if (!hca_table_check((enum qhca_table)i, &in->table[i],
				     log_max[i]))
			return hca_cmd_bad(ctx, offsetof(struct qhca_init_hca,
							 table[i]));
	return QHCA_CMD_OK;
}

static bool is_present(const struct hca_fn *fn, unsigned int id,
		       const struct qhca_geometry *geometry)
{
	struct qhca_geometry present =
		hca_caches_geometry(fn->hca, (enum qhca_cache_id)id);

	return geometry->sets == present.sets &&
	       geometry->blocks == present.blocks;
}

static enum qhca_cmd_status init_caches_check(const struct hca_fn *fn,
					      struct hca_cmd_ctx *ctx,
					      struct qhca_geometry *geometry)
{
	const struct qhca_init_hca *in = (const void *)ctx->in;
	unsigned int i;

	for (i = 0; i < QHCA_NUM_CACHES; i++) {
		geometry[i].sets = get_le16(&in->cache[i].sets);
		geometry[i].blocks = get_le16(&in->cache[i].blocks);
		if (geometry[i].sets == 0 && geometry[i].blocks == 0)
			geometry[i] = hca_caches_geometry(fn->hca,
							  (enum qhca_cache_id)i);
		if (fn->cfg.gvmi ? !is_present(fn, i, &geometry[i]) :
		    !hca_geometry_valid(&geometry[i], &fn->cfg.cache_max[i]))
			return hca_cmd_bad(ctx, offsetof(struct qhca_init_hca,
							 cache[i]));
	}
	return QHCA_CMD_OK;
}

static enum qhca_cmd_status init_s2_check(const struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx,
					  struct qhca_geometry *s2)
{
	const struct qhca_init_hca *in = (const void *)ctx->in;

	s2->sets = get_le16(&in->s2.sets);
	s2->blocks = get_le16(&in->s2.blocks);
	if (!(fn->features & QHCA_FEAT_STAGE2))
		return QHCA_CMD_OK;
	if (s2->sets == 0 && s2->blocks == 0)
		*s2 = fn->cfg.s2_default;
	if (!hca_geometry_valid(s2, &fn->cfg.s2_max))
		return hca_cmd_bad(ctx, offsetof(struct qhca_init_hca, s2));
	return QHCA_CMD_OK;
}

static enum qhca_cmd_status init_check(const struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx,
				       struct qhca_geometry *geometry)
{
	const struct qhca_init_hca *in = (const void *)ctx->in;
	uint32_t flags = get_le32(&in->flags);
	enum qhca_cmd_status status = init_tables_check(fn, ctx);

	if (!status)
		status = init_caches_check(fn, ctx, geometry);
	if (!status)
		status = init_s2_check(fn, ctx, &geometry[QHCA_CACHE_S2]);
	if (status)
		return status;
	if (flags & ~(QHCA_INIT_STRICT_LKEY | QHCA_INIT_NO_UNSOL_ACK) ||
	    (flags & QHCA_INIT_STRICT_LKEY &&
	     !(fn->features & QHCA_FEAT_STRICT_LKEY)))
		return hca_cmd_bad(ctx, offsetof(struct qhca_init_hca, flags));
	return QHCA_CMD_OK;
}

static enum qhca_cmd_status cmd_init_hca(struct hca_fn *fn,
					 struct hca_cmd_ctx *ctx)
{
	const struct qhca_init_hca *in = (const void *)ctx->in;
	struct qhca_geometry geometry[QHCA_NUM_CACHE_IDS];
	enum qhca_cmd_status status = init_check(fn, ctx, geometry);
	unsigned int i;

	if (status)
		return status;
	if (fn->initialised)
		return QHCA_CMD_BAD_STATE;
	/* Others use the caches as they are. */
	for (i = 0; i < QHCA_NUM_CACHES; i++)
		if (hca_caches_in_use(fn->hca) &&
		    !is_present(fn, i, &geometry[i]))
			return QHCA_CMD_BAD_STATE;
	for (i = 0; i < QHCA_NUM_TABLES; i++)
		hca_table_init(fn, (enum qhca_table)i, &in->table[i]);
	if (!hca_mem_init(fn, geometry[QHCA_CACHE_PT],
			  geometry[QHCA_CACHE_AT]) ||
	    !hca_cqs_init(fn, geometry[QHCA_CACHE_CQ]) ||
	    !hca_qps_init(fn, geometry[QHCA_CACHE_QD]) ||
	    !hca_srqs_init(fn, geometry[QHCA_CACHE_SRQ]) ||
	    (fn->features & QHCA_FEAT_STAGE2 &&
	     !hca_s2_init(fn->hca, geometry[QHCA_CACHE_S2]))) {
		hca_teardown(fn);
		return QHCA_CMD_NO_RESOURCE;
	}
	fn->init_flags = get_le32(&in->flags);
	fn->initialised = true;
	if (fn == hca_pf(fn->hca))
		hca_vfs_admit(fn->hca);
	return QHCA_CMD_OK;
}

static enum qhca_cmd_status cmd_teardown_hca(struct hca_fn *fn,
					     struct hca_cmd_ctx *ctx)
{
	(void)ctx;
	hca_teardown(fn);
	return QHCA_CMD_OK;
}

static enum qhca_cmd_status cmd_query_counters(struct hca_fn *fn,
					       struct hca_cmd_ctx *ctx)
{
	uint32_t i, n = ctx->out_len / 8;

	for (i = 0; i < n && ctx->index + i < QHCA_NUM_COUNTERS; i++)
		put_le64(ctx->out + i * 8, fn->counter[ctx->index + i]);
	return QHCA_CMD_OK;
}

/* ------------------------------------------------------------------------
 * The table of commands
 */
#define SIZE(type)	((uint16_t)sizeof(struct type))

#define CMD(op, handler, feat, in_size, out_size, kind) \
	[QHCA_CMD_##op] = { #op, handler, feat, in_size, out_size, kind, false }
#define CMD_EARLY(op, handler, in_size, out_size, kind) \
	[QHCA_CMD_##op] = { #op, handler, 0, in_size, out_size, kind, true }
#define CMD_VF(op, handler, in_size, out_size) \
	[QHCA_CMD_##op] = { #op, handler, QHCA_FEAT_VF, in_size, out_size, \
			    INDEX_VF, true }
#define CMD_RESERVED(op) \
	[QHCA_CMD_##op] = { #op, NULL, 0, 0, 0, INDEX_NONE, false }

static const struct command commands[] = {
	CMD_EARLY(NOP, cmd_nop, 0, 0, INDEX_NONE),
	CMD_EARLY(QUERY_CAPS, cmd_query_caps, 0, SIZE(qhca_caps), INDEX_NONE),
	CMD_EARLY(INIT_HCA, cmd_init_hca, SIZE(qhca_init_hca), 0, INDEX_NONE),
	CMD(TEARDOWN_HCA, cmd_teardown_hca, 0, 0, 0, INDEX_NONE),
	CMD(MAP_CHUNKS, hca_cmd_map_chunks, 0, VARIABLE, 0, INDEX_NONE),
	CMD(UNMAP_CHUNKS, hca_cmd_unmap_chunks, 0, 0, 0, INDEX_NONE),
	CMD_EARLY(QUERY_COUNTERS, cmd_query_counters, 0, VARIABLE,
		  INDEX_COUNTER),

	CMD_EARLY(QUERY_PORT, hca_cmd_query_port, 0, SIZE(qhca_port),
		  INDEX_NONE),
	CMD(SET_PORT, hca_cmd_set_port, 0, SIZE(qhca_port_config), 0,
	    INDEX_NONE),
	CMD(SET_GID, hca_cmd_set_gid, 0, SIZE(qhca_gid_entry), 0, INDEX_GID),
	CMD(SET_MCAST, hca_cmd_set_mcast, 0, SIZE(qhca_mcast_list), 0,
	    INDEX_NONE),
	CMD(CREATE_ETHQ, hca_cmd_create_ethq, 0, SIZE(qhca_ethq_config), 0,
	    INDEX_ETHQ),
	CMD(DESTROY_ETHQ, hca_cmd_destroy_ethq, 0, 0, 0, INDEX_ETHQ),
	CMD(SET_RSS, hca_cmd_set_rss, QHCA_FEAT_ETH_RSS, SIZE(qhca_rss_config), 0,
	    INDEX_NONE),

	CMD(CREATE_EQ, hca_cmd_create_eq, 0, SIZE(qhca_eqc_sw), 0, INDEX_EQ),
	CMD(DESTROY_EQ, hca_cmd_destroy_eq, 0, 0, 0, INDEX_EQ),
	CMD(QUERY_EQ, hca_cmd_query_eq, 0, 0, SIZE(qhca_eqc), INDEX_EQ),
	CMD(CREATE_CQ, hca_cmd_create_cq, 0, SIZE(qhca_cqc_sw), 0, INDEX_CQ),
	CMD(DESTROY_CQ, hca_cmd_destroy_cq, 0, 0, 0, INDEX_CQ),
	CMD(QUERY_CQ, hca_cmd_query_cq, 0, 0, SIZE(qhca_cqc), INDEX_CQ),
	CMD(MODIFY_CQ, hca_cmd_modify_cq, 0, SIZE(qhca_cqc_sw), 0, INDEX_CQ),
	CMD(CREATE_SRQ, hca_cmd_create_srq, QHCA_FEAT_SRQ, SIZE(qhca_srqc_sw),
	    0, INDEX_SRQ),
	CMD(DESTROY_SRQ, hca_cmd_destroy_srq, QHCA_FEAT_SRQ, 0, 0, INDEX_SRQ),
	CMD(QUERY_SRQ, hca_cmd_query_srq, QHCA_FEAT_SRQ, 0, SIZE(qhca_srqc),
	    INDEX_SRQ),
	CMD(MODIFY_SRQ, hca_cmd_modify_srq, QHCA_FEAT_SRQ, 0, 0, INDEX_SRQ),
	CMD(RESIZE_SRQ, hca_cmd_resize_srq, QHCA_FEAT_SRQ_RESIZE,
	    SIZE(qhca_srqc_sw), 0, INDEX_SRQ),
	CMD(CREATE_FLOW, hca_cmd_create_flow, QHCA_FEAT_RAW_PACKET,
	    SIZE(qhca_flow), 0, INDEX_FLOW),
	CMD(DESTROY_FLOW, hca_cmd_destroy_flow, QHCA_FEAT_RAW_PACKET, 0, 0,
	    INDEX_FLOW),
	CMD(SET_QP_COUNTERS, hca_cmd_set_qp_counters, QHCA_FEAT_QP_COUNTERS, 0,
	    0, INDEX_QP),
	CMD(QUERY_COUNTER_SET, hca_cmd_query_counter_set,
	    QHCA_FEAT_QP_COUNTERS, 0, VARIABLE, INDEX_COUNTER_SET),
	CMD(CREATE_QP, hca_cmd_create_qp, 0, SIZE(qhca_qpc_sw), 0, INDEX_QP),
	CMD(DESTROY_QP, hca_cmd_destroy_qp, 0, 0, 0, INDEX_QP),
	CMD(QUERY_QP, hca_cmd_query_qp, 0, 0, SIZE(qhca_query_qp), INDEX_QP),
	CMD(MODIFY_QP, hca_cmd_modify_qp, 0, SIZE(qhca_modify_qp), 0,
	    INDEX_QP),
	CMD(ATTACH_MCAST, hca_cmd_attach_mcast, QHCA_FEAT_MCAST,
	    SIZE(qhca_mgid), 0, INDEX_QP),
	CMD(DETACH_MCAST, hca_cmd_detach_mcast, QHCA_FEAT_MCAST,
	    SIZE(qhca_mgid), 0, INDEX_QP),

	CMD(INVALIDATE_KEY, hca_cmd_invalidate_key, 0, 0, 0, INDEX_PT),
	CMD(INVALIDATE_RANGE, hca_cmd_invalidate_range, 0, SIZE(qhca_range), 0,
	    INDEX_PT),
	CMD(INVALIDATE_ALL, hca_cmd_invalidate_all, 0, 0, 0, INDEX_NONE),
	CMD(MAP_POOL_BLOCK, hca_cmd_map_pool_block, QHCA_FEAT_POOL,
	    SIZE(qhca_pool_row), 0, INDEX_POOL),
	CMD(UNMAP_POOL_BLOCK, hca_cmd_unmap_pool_block, QHCA_FEAT_POOL, 0, 0,
	    INDEX_POOL),
	CMD(MAP_POOL_KEY, hca_cmd_map_pool_key, QHCA_FEAT_POOL, 0, 0,
	    INDEX_PT),
	CMD(FAULT_RESUME, hca_cmd_fault_resume, QHCA_FEAT_ODP, 0, 0,
	    INDEX_NONE),
	CMD_RESERVED(SET_CLOCK),
	CMD(SET_GVM, hca_cmd_set_gvm, QHCA_FEAT_STAGE2, SIZE(qhca_gvm_entry), 0,
	    INDEX_VF),
	CMD(INVALIDATE_STAGE2, hca_cmd_invalidate_stage2, QHCA_FEAT_STAGE2,
	    SIZE(qhca_range), 0, INDEX_VF),
	CMD(STAGE2_RESUME, hca_cmd_stage2_resume, QHCA_FEAT_STAGE2, 0, 0,
	    INDEX_NONE),
	CMD_VF(SET_VF, hca_cmd_set_vf, SIZE(qhca_vf_config), 0),
	CMD_VF(QUERY_VF, hca_cmd_query_vf, 0, SIZE(qhca_vf_state)),
	CMD_VF(QUERY_VF_COUNTERS, hca_cmd_query_vf_counters, 0, VARIABLE),
};

static const struct command *find_command(uint16_t opcode)
{
	if (opcode >= sizeof(commands) / sizeof(commands[0]) ||
	    !commands[opcode].name)
		return NULL;
	return &commands[opcode];
}

const char *hca_cmd_name(uint16_t opcode)
{
	const struct command *cmd = find_command(opcode);

	return cmd ? cmd->name : NULL;
}

/* ------------------------------------------------------------------------
 * Checks before a handler sees the command
 */
static bool index_valid(const struct hca_fn *fn, uint8_t kind,
			uint32_t index)
{
	switch ((enum index_kind)kind) {
	case INDEX_PT:
		return index < hca_table_size(fn, QHCA_TABLE_PT);
	case INDEX_QP:
		return index < hca_table_size(fn, QHCA_TABLE_QP);
	case INDEX_CQ:
		return index < hca_table_size(fn, QHCA_TABLE_CQ);
	case INDEX_SRQ:
		return index < hca_table_size(fn, QHCA_TABLE_SRQ);
	case INDEX_EQ:
		return index < hca_table_size(fn, QHCA_TABLE_EQ);
	case INDEX_GID:
		return index < fn->cfg.num_gids;
	case INDEX_ETHQ:
		return index < hca_eth_num_queues(fn);
	case INDEX_POOL:
		return index < fn->cfg.max_pool_blocks;
	case INDEX_FLOW:
		return index < fn->cfg.max_flows;
	case INDEX_COUNTER:
		return index < QHCA_NUM_COUNTERS;
	case INDEX_COUNTER_SET:
		return index < HCA_NUM_COUNTER_SETS;
	case INDEX_VF:
		return index && index < HCA_MAX_FNS && fn->hca->fn[index];
	case INDEX_NONE:
		break;
	}
	return true;
}

static enum qhca_cmd_status check_permitted(const struct hca_fn *fn,
					    const struct command *cmd,
					    uint16_t opcode)
{
	if (!cmd)
		return QHCA_CMD_BAD_OPCODE;
	if (opcode >= 0x80 && opcode <= 0x9f && fn->cfg.gvmi)
		return QHCA_CMD_NOT_PERMITTED;
	if (!cmd->fn || cmd->feature & ~fn->features)
		return QHCA_CMD_UNSUPPORTED;
	if (!cmd->early && !fn->initialised)
		return QHCA_CMD_NOT_INIT;
	return QHCA_CMD_OK;
}

static enum qhca_cmd_status check_mailboxes(const struct command *cmd,
					    const struct qhca_cmd_slot *slot,
					    struct hca_cmd_ctx *ctx)
{
	if (cmd->in && (ctx->in_len > QHCA_MAILBOX_SIZE ||
			(cmd->in != VARIABLE && ctx->in_len != cmd->in)))
		return QHCA_CMD_BAD_LEN;
	if (cmd->out && ctx->out_len > QHCA_MAILBOX_SIZE)
		return QHCA_CMD_BAD_LEN;
	if (cmd->out == VARIABLE ? ctx->out_len == 0 || ctx->out_len % 8 :
				   ctx->out_len < cmd->out)
		return QHCA_CMD_BAD_LEN;
	if (cmd->in && get_le64(&slot->in_addr) & 63)
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(in_addr));
	if (cmd->out && get_le64(&slot->out_addr) & 63)
		return hca_cmd_bad(ctx, HCA_SYN_SLOT(out_addr));
	return QHCA_CMD_OK;
}

static enum qhca_cmd_status dma_error(struct hca_cmd_ctx *ctx, uint32_t which)
{
	ctx->syndrome = which;
	return QHCA_CMD_DMA_ERR;
}

static uint32_t out_len_of(const struct command *cmd,
			   const struct hca_cmd_ctx *ctx)
{
	return cmd->out == VARIABLE ? ctx->out_len : cmd->out;
}

/* All checks that need no memory but the slot. */
static enum qhca_cmd_status check_slot(struct hca_fn *fn,
				       const struct qhca_cmd_slot *slot,
				       struct hca_cmd_ctx *ctx)
{
	const struct command *cmd = find_command(ctx->opcode);
	enum qhca_cmd_status status = check_permitted(fn, cmd, ctx->opcode);

	if (!status)
		status = check_mailboxes(cmd, slot, ctx);
	if (!status && !index_valid(fn, cmd->index, ctx->index))
		status = QHCA_CMD_BAD_INDEX;
	return status;
}

/* The input mailbox is read when both mailboxes are pinned. */
static enum hca_pin read_mailbox(struct hca_fn *fn)
{
	struct hca_cmdq *q = &fn->cmdq;
	const struct command *cmd = find_command(q->ctx.opcode);
	uint32_t in_len = cmd->in ? q->ctx.in_len : 0;
	uint32_t out_len = out_len_of(cmd, &q->ctx);
	enum hca_pin pin = hca_pin_mailboxes(fn, in_len, out_len);

	if (pin != HCA_PIN_OK)
		return pin;
	if (in_len && hca_dma_read(fn, get_le64(&q->slot.in_addr), q->in,
				   in_len))
		return HCA_PIN_REFUSED;
	memset(q->out, 0, out_len);
	return HCA_PIN_OK;
}

/*
 * Bring the current command to where its handler may run.  AGAIN also while it is
 * held.
 */
static enum qhca_cmd_status prepare(struct hca_fn *fn)
{
	struct hca_cmdq *q = &fn->cmdq;
	enum hca_pin pin = HCA_PIN_OK;

	if (q->phase == HCA_CMD_MAILBOXES) {
		pin = read_mailbox(fn);
		if (pin == HCA_PIN_REFUSED)
			return dma_error(&q->ctx, 1);
		if (pin == HCA_PIN_OK)
			q->phase = HCA_CMD_NAMED;
	}
	if (q->phase == HCA_CMD_NAMED && pin == HCA_PIN_OK) {
		pin = hca_pin_named(fn, &q->ctx);
		if (pin == HCA_PIN_REFUSED)
			return dma_error(&q->ctx, 3);
		if (pin == HCA_PIN_OK)
			q->phase = HCA_CMD_EXECUTES;
	}
	return pin == HCA_PIN_OK ? QHCA_CMD_OK : HCA_CMD_AGAIN;
}

static enum qhca_cmd_status write_output(struct hca_fn *fn,
					 const struct qhca_cmd_slot *slot,
					 struct hca_cmd_ctx *ctx)
{
	uint32_t len = out_len_of(find_command(ctx->opcode), ctx);

	if (len && !hca_is_dead(fn) &&
	    hca_dma_write(fn, get_le64(&slot->out_addr), fn->cmdq.out, len))
		return dma_error(ctx, 2);
	return QHCA_CMD_OK;
}

/* ------------------------------------------------------------------------
 * The queue
 */
void hca_cmdq_reset(struct hca_fn *fn)
{
	fn->cmdq.base = 0;
	fn->cmdq.log_slots = 0;
	hca_cmdq_stop(fn);
}

static void forget_doorbells(struct hca_fn *fn)
{
	fn->cmdq.pending = 0;
	fn->cmdq.head = 0;
	fn->cmdq.count = 0;
}

void hca_cmdq_stop(struct hca_fn *fn)
{
	forget_doorbells(fn);
	fn->cmdq.running = false;
	fn->cmdq.slots_pinned = false;
	fn->cmdq.pin = (struct hca_pin_place){ 0 };
}

void hca_cmdq_doorbell(struct hca_fn *fn, uint32_t slots)
{
	struct hca_cmdq *q = &fn->cmdq;
	uint32_t slot;

	if (!(fn->status & QHCA_STATUS_ENABLED) ||
	    !(fn->control & QHCA_CONTROL_ENABLE))
		return;
	for (slot = 0; slot < HCA_NUM_CMD_SLOTS; slot++) {
		if (!(slots >> slot & 1))
			continue;
		if (slot >= 1u << q->log_slots) {
			hca_count(fn, QHCA_CNT_doorbells_ignored);
			continue;
		}
		if (q->pending >> slot & 1)
			continue;
		hca_fn_wake(fn);
		q->pending |= 1u << slot;
		q->order[(q->head + q->count++) % HCA_NUM_CMD_SLOTS] =
			(uint8_t)slot;
	}
}

/*
 * Continue the command that is between two slices, or begin the one in the
 * oldest slot.  A slot waits while the event of its last command is held, and all wait
 * for what has moved to be in memory.
 */
bool hca_cmdq_pending(const struct hca_fn *fn)
{
	const struct hca_cmdq *q = &fn->cmdq;

	if (fn->s2.pin.waits || fn->restore)
		return false;
	if (q->running)
		return true;
	return q->count && !(fn->eqs.cmd_held >> q->order[q->head] & 1);
}

/* One write stores out_param, syndrome and, last, status. */
static void complete(struct hca_fn *fn, uint32_t index,
		     const struct qhca_cmd_slot *slot,
		     const struct hca_cmd_ctx *ctx,
		     enum qhca_cmd_status status)
{
	const size_t first = offsetof(struct qhca_cmd_slot, out_param);
	struct qhca_cmd_slot done = *slot;

	put_le64(&done.out_param, ctx->out_param);
	put_le32(&done.syndrome, ctx->syndrome);
	put_le32(&done.status, status);
	if (hca_dma_write_release(fn, fn->cmdq.base +
				  index * sizeof(done) + first,
				  (const uint8_t *)&done + first,
				  sizeof(done) - first)) {
		hca_fatal(fn, QHCA_FATAL_CMDQ_DMA, index);
		return;
	}
	if (get_le32(&slot->flags) & QHCA_CMD_F_EVENT)
		hca_event_cmd(fn, index, get_le16(&slot->token),
			      (uint8_t)status, ctx->syndrome);
}

static void finish(struct hca_fn *fn, enum qhca_cmd_status status)
{
	struct hca_cmdq *q = &fn->cmdq;
	const struct hca_cmd_ctx *ctx = &q->ctx;

	hca_count(fn, QHCA_CNT_commands);
	if (status)
		hca_count(fn, QHCA_CNT_command_errors);
	hca_trace(fn, QHCA_TRACE_CMD, ctx->opcode, ctx->index, ctx->param,
		  status);
	if (!hca_is_dead(fn))
		complete(fn, q->current, &q->slot, ctx, status);
}

/* ENABLE is clear, and no command is being executed. */
static void disable_when_idle(struct hca_fn *fn)
{
	if (fn->control & QHCA_CONTROL_ENABLE || fn->cmdq.running)
		return;
	fn->status &= ~QHCA_STATUS_ENABLED;
	fn->cmdq.slots_pinned = false;
}

/* Run the next slice of the handler, which may be its only one. */
static void run_slice(struct hca_fn *fn)
{
	struct hca_cmdq *q = &fn->cmdq;
	enum qhca_cmd_status status = prepare(fn);

	if (!status)
		status = find_command(q->ctx.opcode)->fn(fn, &q->ctx);
	q->running = status == HCA_CMD_AGAIN && !hca_is_dead(fn);
	if (status == HCA_CMD_AGAIN)
		return;
	if (!status)
		status = write_output(fn, &q->slot, &q->ctx);
	finish(fn, status);
	disable_when_idle(fn);
}

static void take_slot(struct hca_cmdq *q)
{
	const struct qhca_cmd_slot *slot = &q->slot;

	q->ctx = (struct hca_cmd_ctx){
		.opcode = get_le16(&slot->opcode),
		.index = get_le32(&slot->index),
		.param = get_le32(&slot->param),
		.in = q->in, .in_len = get_le32(&slot->in_len),
		.out = q->out, .out_len = get_le32(&slot->out_len),
	};
}

bool hca_cmdq_hold(struct hca_fn *fn)
{
	struct hca_cmdq *q = &fn->cmdq;

	take_slot(q);
	return !check_slot(fn, &q->slot, &q->ctx);
}

uint32_t hca_cmdq_in_len(const struct hca_fn *fn)
{
	const struct hca_cmd_ctx *ctx = &fn->cmdq.ctx;

	return find_command(ctx->opcode)->in ? ctx->in_len : 0;
}

static void run_slot(struct hca_fn *fn, uint32_t index)
{
	struct hca_cmdq *q = &fn->cmdq;
	struct qhca_cmd_slot *slot = &q->slot;
	enum qhca_cmd_status status;

	if (hca_dma_read(fn, q->base + index * sizeof(*slot), slot,
			 sizeof(*slot))) {
		hca_fatal(fn, QHCA_FATAL_CMDQ_DMA, index);
		return;
	}
	if (!(get_le32(&slot->status) & QHCA_CMD_OWN)) {
		hca_count(fn, QHCA_CNT_doorbells_ignored);
		return;
	}
	q->current = index;
	take_slot(q);
	q->phase = HCA_CMD_MAILBOXES;
	status = check_slot(fn, slot, &q->ctx);
	if (status)
		finish(fn, status);
	else
		run_slice(fn);
}

void hca_cmdq_disable(struct hca_fn *fn)
{
	struct hca_cmdq *q = &fn->cmdq;

	forget_doorbells(fn);
	if (q->phase != HCA_CMD_EXECUTES)
		q->running = false;	/* it is held, and has no effect */
	q->pin = (struct hca_pin_place){ 0 };
	hca_s2_forget_pin(fn);
	disable_when_idle(fn);
}

/* A handler that continues needs nothing but its turn, and comes to its end. */
void hca_cmdq_finish(struct hca_fn *fn)
{
	while (fn->cmdq.running && fn->cmdq.phase == HCA_CMD_EXECUTES &&
	       !hca_is_dead(fn))
		run_slice(fn);
}

unsigned int hca_cmdq_run(struct hca_fn *fn, unsigned int budget)
{
	struct hca_cmdq *q = &fn->cmdq;
	unsigned int done = 0;
	uint32_t slot;

	for (; done < budget && !hca_is_dead(fn); done++) {
		if (!hca_cmdq_pending(fn) || !hca_pin_slots(fn))
			break;
		if (q->running) {
			run_slice(fn);
			continue;
		}
		slot = q->order[q->head];
		q->head = (q->head + 1) % HCA_NUM_CMD_SLOTS;
		q->count--;
		q->pending &= ~(1u << slot);
		run_slot(fn, slot);
	}
	return done;
}
