// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues: the doorbell that arms them, and their commands.
 */
#include "queue/held.h"

void hca_eq_doorbell(struct hca_fn *fn, uint64_t value)
{
	uint32_t eqn = (uint32_t)value & QHCA_DB_NUMBER;
	uint32_t ci = (uint32_t)(value >> 32), budget = HCA_EQ_DRAIN;
	struct hca_eq *eq;

	if (!hca_eq_live(fn, eqn)) {
		hca_count(fn, QHCA_CNT_doorbells_ignored);
		return;
	}
	hca_count(fn, QHCA_CNT_eq_arms);
	eq = &fn->eqs.eq[eqn];
	hca_eq_take_ci(eq, ci);
	if (hca_eq_holds(fn, eq)) {
		/* If other queues are due now, they stay due now. */
		bool due = hca_eqs_pending(fn);

		hca_held_drain(fn, eq, &budget);
		hca_held_recount(fn, due || !budget);
	}
	eq->armed = eq->pi == ci;
	if (!eq->armed && !hca_is_dead(fn))
		hca_eq_interrupt(fn, eq->vector);
}

static void eqc_encode(const struct hca_eq *eq, struct qhca_eqc *image)
{
	memset(image, 0, sizeof(*image));
	hca_qbuf_encode(&eq->buf, &image->sw.buf);
	put_le32(&image->sw.rec_offset, eq->rec_offset);
	image->sw.log_depth = eq->log_depth;
	put_le16(&image->sw.vector, eq->vector);
	put_le32(&image->state, eq->live);
	put_le32(&image->pi, eq->pi);
	put_le32(&image->ci, eq->ci);
	put_le32(&image->armed, eq->armed);
	put_le32(&image->overruns, eq->overruns);
}

/* Contexts of EQs have no cache, so the device writes a copy to the table. */
static void eqc_write(struct hca_fn *fn, uint32_t eqn)
{
	struct qhca_eqc image;
	uint64_t addr;

	eqc_encode(&fn->eqs.eq[eqn], &image);
	if (hca_table_entry(fn, QHCA_TABLE_EQ, eqn, &addr) &&
	    hca_dma_write(fn, addr, &image, sizeof(image)))
		hca_fatal(fn, QHCA_FATAL_TABLE_DMA,
			  (uint32_t)QHCA_TABLE_EQ << 24 | eqn);
}

int hca_eq_fault(const struct hca_fn *fn, const struct hca_eq *eq)
{
	if (eq->log_depth > fn->cfg.log_max_eq_depth)
		return offsetof(struct qhca_eqc_sw, log_depth);
	if (eq->vector >= fn->cfg.num_vectors)
		return offsetof(struct qhca_eqc_sw, vector);
	if (!hca_qbuf_valid(&eq->buf) ||
	    !hca_qbuf_holds(&eq->buf, 0,
			    (uint64_t)HCA_EQE_SIZE << eq->log_depth))
		return offsetof(struct qhca_eqc_sw, buf);
	if (eq->rec_offset % sizeof(struct qhca_eq_record) ||
	    !hca_qbuf_holds(&eq->buf, eq->rec_offset,
			    sizeof(struct qhca_eq_record)))
		return offsetof(struct qhca_eqc_sw, rec_offset);
	return -1;
}

enum qhca_cmd_status hca_cmd_create_eq(struct hca_fn *fn,
				       struct hca_cmd_ctx *ctx)
{
	const struct qhca_eqc_sw *sw = (const void *)ctx->in;
	struct hca_eq eq = {
		.rec_offset = get_le32(&sw->rec_offset),
		.vector = get_le16(&sw->vector), .log_depth = sw->log_depth,
		.held_head = HCA_HELD_NONE, .held_tail = HCA_HELD_NONE,
		.live = true,
	};
	uint64_t addr;
	int bad;

	hca_qbuf_decode(&eq.buf, &sw->buf);
	bad = hca_eq_fault(fn, &eq);
	if (bad >= 0)
		return hca_cmd_bad(ctx, (size_t)bad);
	if (!hca_table_entry(fn, QHCA_TABLE_EQ, ctx->index, &addr))
		return QHCA_CMD_NOT_MAPPED;
	if (fn->eqs.eq[ctx->index].live)
		return QHCA_CMD_IN_USE;
	fn->eqs.eq[ctx->index] = eq;
	eqc_write(fn, ctx->index);
	return QHCA_CMD_OK;
}

/* Nodes that one call of DESTROY_EQ empties. */
#define DESTROY_SLICE	1024u

enum qhca_cmd_status hca_cmd_destroy_eq(struct hca_fn *fn,
					struct hca_cmd_ctx *ctx)
{
	struct hca_eq *eq = &fn->eqs.eq[ctx->index];
	unsigned int i;

	if (ctx->step == 0) {
		if (!eq->live)
			return hca_cmd_missing(fn, QHCA_TABLE_EQ, ctx->index);
		if (eq->refs)
			return QHCA_CMD_IN_USE;
		eq->live = false;	/* the device holds no new event for it */
		ctx->step = 1;
	}
	for (i = 0; i < DESTROY_SLICE && eq->held_head != HCA_HELD_NONE; i++)
		hca_held_unlink(fn, eq, eq->held_head);
	if (eq->held_head != HCA_HELD_NONE)
		return HCA_CMD_AGAIN;
	if (ctx->index == QHCA_EQN_ASYNC)
		fn->eqs.cmd_held = 0;
	hca_held_recount(fn, false);
	eqc_write(fn, ctx->index);
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_query_eq(struct hca_fn *fn,
				      struct hca_cmd_ctx *ctx)
{
	struct qhca_eqc image;

	if (!fn->eqs.eq[ctx->index].live)
		return hca_cmd_missing(fn, QHCA_TABLE_EQ, ctx->index);
	eqc_write(fn, ctx->index);
	eqc_encode(&fn->eqs.eq[ctx->index], &image);
	memcpy(ctx->out, &image, sizeof(image));
	return QHCA_CMD_OK;
}
