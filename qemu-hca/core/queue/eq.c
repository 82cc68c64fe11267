// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Event queues: which exist, and the ring of each.
 */
#include <stdlib.h>

#include "hca.h"
#include "queue/held.h"

/* How many objects of @source there can be. */
static uint32_t num_objects(const struct hca_fn *fn,
			    enum hca_event_source source)
{
	switch (source) {
	case HCA_SOURCE_QP:
		return 1u << fn->cfg.log_max_qp;
	case HCA_SOURCE_SRQ:
		return 1u << fn->cfg.log_max_srq;
	case HCA_SOURCE_CQ:
	case HCA_SOURCE_COMPLETION:
		return 1u << fn->cfg.log_max_cq;
	case HCA_SOURCE_STAGE2:
		return fn->cfg.gvmi ? 0 : HCA_MAX_FNS;
	default:
		return 2;		/* ports count from 1 */
	}
}

bool hca_eqs_create(struct hca_fn *fn, hca_fault_info_fn fault_info,
		    hca_stage2_next_fn stage2_next)
{
	struct hca_eqs *eqs = &fn->eqs;

	eqs->fault_info = fault_info;
	eqs->stage2_next = stage2_next;
	for (unsigned int i = 0; i < HCA_NUM_EVENT_SOURCES; i++)
		eqs->base[i + 1] = eqs->base[i] + num_objects(fn, i);
	eqs->eq = calloc((size_t)1 << fn->cfg.log_max_eq, sizeof(*eqs->eq));
	eqs->held = calloc(eqs->base[HCA_NUM_EVENT_SOURCES], sizeof(*eqs->held));
	return eqs->eq && eqs->held;
}

void hca_eqs_destroy(struct hca_fn *fn)
{
	free(fn->eqs.eq);
	free(fn->eqs.held);
	fn->eqs.eq = NULL;
	fn->eqs.held = NULL;
}

void hca_eqs_reset(struct hca_fn *fn)
{
	memset(fn->eqs.eq, 0,
	       sizeof(*fn->eqs.eq) << fn->cfg.log_max_eq);
	if (fn->eqs.num_linked)		/* else all nodes are zero already */
		memset(fn->eqs.held, 0,
		       fn->eqs.base[HCA_NUM_EVENT_SOURCES] * sizeof(*fn->eqs.held));
	fn->eqs.cmd_held = 0;
	fn->eqs.num_linked = 0;
	fn->eqs.num_waiting = 0;
	fn->eqs.turn = 0;
	fn->eqs.next_poll = QHCA_NEVER;
}

uint32_t hca_num_eqs(const struct hca_fn *fn)
{
	return hca_table_size(fn, QHCA_TABLE_EQ);
}

bool hca_eq_live(const struct hca_fn *fn, uint32_t eqn)
{
	return eqn < hca_num_eqs(fn) && fn->eqs.eq[eqn].live;
}

void hca_eq_ref(struct hca_fn *fn, uint32_t eqn)
{
	fn->eqs.eq[eqn].refs++;
}

void hca_eq_unref(struct hca_fn *fn, uint32_t eqn)
{
	if (hca_eq_live(fn, eqn) && fn->eqs.eq[eqn].refs)
		fn->eqs.eq[eqn].refs--;
}

/* ------------------------------------------------------------------------
 * The ring
 */
void hca_eq_interrupt(struct hca_fn *fn, unsigned int vector)
{
	hca_count(fn, QHCA_CNT_interrupts);
	fn->hca->ops.raise_irq(fn->hca->host, fn->cfg.gvmi, vector);
}

static uint32_t depth_of(const struct hca_eq *eq)
{
	return 1u << eq->log_depth;
}

bool hca_eq_take_ci(struct hca_eq *eq, uint32_t ci)
{
	if (ci == eq->ci || ci - eq->ci > eq->pi - eq->ci)
		return false;
	eq->ci = ci;
	return true;
}

/* -1: the record is unreachable, which is fatal for the function. */
static int refetch(struct hca_fn *fn, struct hca_eq *eq)
{
	uint32_t ci;

	if (hca_qbuf_read32(fn, &eq->buf, eq->rec_offset, &ci)) {
		hca_fatal(fn, QHCA_FATAL_EQ_DMA,
			  (uint32_t)(eq - fn->eqs.eq));
		return -1;
	}
	hca_count(fn, QHCA_CNT_refetches);
	if (!hca_eq_take_ci(eq, ci))
		hca_count(fn, QHCA_CNT_refetches_unchanged);
	return 0;
}

bool hca_eq_has_room(struct hca_fn *fn, struct hca_eq *eq)
{
	if (fn->restore)
		return false;		/* the ring cannot be written yet */
	if (eq->pi - eq->ci < depth_of(eq))
		return true;
	return !refetch(fn, eq) && eq->pi - eq->ci < depth_of(eq);
}

int hca_eq_put(struct hca_fn *fn, struct hca_eq *eq, struct qhca_eqe *eqe)
{
	uint32_t slot = eq->pi & (depth_of(eq) - 1);

	put_le32(&eqe->phase, eq->pi >> eq->log_depth & 1 ? 0 : QHCA_PHASE);
	if (hca_qbuf_write_release(fn, &eq->buf, slot * HCA_EQE_SIZE, eqe,
				   sizeof(*eqe)))
		return -1;
	eq->pi++;
	return 0;
}

void hca_eq_write(struct hca_fn *fn, struct hca_eq *eq, struct qhca_eqe *eqe)
{
	uint32_t eqn = (uint32_t)(eq - fn->eqs.eq);

	if (hca_eq_put(fn, eq, eqe)) {
		hca_fatal(fn, QHCA_FATAL_EQ_DMA, eqn);
		return;
	}
	hca_count(fn, QHCA_CNT_events);
	hca_trace(fn, QHCA_TRACE_EVENT, eqn, eqe->type,
		  get_le32(&eqe->number), 0);
	if (eq->armed) {
		eq->armed = false;
		hca_eq_interrupt(fn, eq->vector);
	}
}

void hca_eqe_fill(struct qhca_eqe *eqe, uint8_t type, uint32_t number,
		  uint32_t detail)
{
	memset(eqe, 0, sizeof(*eqe));
	eqe->type = type;
	put_le32(&eqe->number, number);
	put_le32(&eqe->detail, detail);
}
