// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Registers and doorbells: what the guest reads and writes in the BARs.
 *
 * A register that does not exist reads as zero, and a doorbell that names
 * nothing is counted and otherwise ignored, since the guest may write anything
 * at any time.  A write does a bounded amount of work: what a doorbell of a
 * send queue asks for is left to qhca_run().
 */
#include "hca.h"
#include "life.h"
#include "transport/serve.h"

static uint32_t read_clock(struct hca_fn *fn)
{
	uint64_t clock = fn->hca->now - fn->reset_time;

	fn->regs.clock_hi = (uint32_t)(clock >> 32);
	return (uint32_t)clock;
}

static uint32_t read_register(struct hca_fn *fn, uint32_t offset)
{
	const uint8_t *mac = fn->port.permanent;

	switch (offset) {
	case QHCA_REG_MAGIC:
		return QHCA_MAGIC;
	case QHCA_REG_VERSION:
		return QHCA_ABI_MAJOR << 16 | QHCA_ABI_MINOR;
	case QHCA_REG_STATUS:
		return fn->status;
	case QHCA_REG_CONTROL:
		return fn->control;
	case QHCA_REG_GVMI:
		return fn->cfg.gvmi;
	case QHCA_REG_CMDQ_LOG_SLOTS:
		return fn->cmdq.log_slots;
	case QHCA_REG_CMDQ_BASE_LO:
		return (uint32_t)fn->cmdq.base;
	case QHCA_REG_CMDQ_BASE_HI:
		return (uint32_t)(fn->cmdq.base >> 32);
	case QHCA_REG_FATAL_INFO:
		return fn->fatal_info;
	case QHCA_REG_MAC_LO:
		return get_le32(mac);
	case QHCA_REG_MAC_HI:
		return get_le16(mac + 4);
	case QHCA_REG_CLOCK_LO:
		return read_clock(fn);
	case QHCA_REG_CLOCK_HI:
		return fn->regs.clock_hi;
	case QHCA_REG_LINK:
		return hca_link_word(fn);
	default:
		return 0;
	}
}

uint32_t qhca_reg_read(struct qhca_hca *dev, uint16_t gvmi, uint32_t offset,
		       uint64_t now)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = hca_fn_find(hca, gvmi);

	if (!hca->entered)
		hca->now = now + hca->clock_offset;
	return fn ? read_register(fn, offset) : ~0u;
}

static void enable(struct hca_fn *fn)
{
	if (fn->cmdq.log_slots > QHCA_MAX_LOG_CMD_SLOTS)
		hca_fatal(fn, QHCA_FATAL_CMDQ_CONFIG, 0);
	else if (fn->cmdq.base & 4095)
		hca_fatal(fn, QHCA_FATAL_CMDQ_CONFIG, 1);
	else
		fn->status |= QHCA_STATUS_ENABLED;
}

static void write_control(struct hca_fn *fn, uint32_t value)
{
	bool was = fn->control & QHCA_CONTROL_ENABLE;
	bool on = value & QHCA_CONTROL_ENABLE;

	fn->control = value & QHCA_CONTROL_ENABLE;
	if (on && !was) {
		enable(fn);
	} else if (!on && was) {
		hca_cmdq_disable(fn);
	}
}

static void write_cmdq(struct hca_fn *fn, uint32_t offset, uint32_t value)
{
	struct hca_cmdq *q = &fn->cmdq;

	if (fn->status & QHCA_STATUS_ENABLED)
		return;
	if (offset == QHCA_REG_CMDQ_LOG_SLOTS)
		q->log_slots = value;
	else if (offset == QHCA_REG_CMDQ_BASE_LO)
		q->base = (q->base & ~0xffffffffull) | value;
	else
		q->base = (q->base & 0xffffffffull) | (uint64_t)value << 32;
}

static void write_register(struct hca_fn *fn, uint32_t offset,
			   uint32_t value)
{
	if (hca_is_dead(fn))
		return;
	switch (offset) {
	case QHCA_REG_CONTROL:
		write_control(fn, value);
		break;
	case QHCA_REG_CMDQ_LOG_SLOTS:
	case QHCA_REG_CMDQ_BASE_LO:
	case QHCA_REG_CMDQ_BASE_HI:
		write_cmdq(fn, offset, value);
		break;
	case QHCA_REG_CMDQ_DOORBELL:
		hca_cmdq_doorbell(fn, value);
		break;
	default:
		break;			/* read-only, or no register */
	}
}

void qhca_reg_write(struct qhca_hca *dev, uint16_t gvmi, uint32_t offset,
		    uint32_t value, uint64_t now)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = hca_fn_find(hca, gvmi);

	if (offset == QHCA_REG_CONTROL && value & QHCA_CONTROL_RESET) {
		qhca_reset(dev, gvmi, now);
		return;
	}
	if (!fn || !hca_enter(hca, now))
		return;
	write_register(fn, offset, value);
	hca_leave(hca);
}

/* ---- doorbells */

static bool doorbell_known(const struct hca_fn *fn, uint32_t page,
			   uint32_t offset)
{
	if (hca_is_dead(fn) || !fn->initialised || fn->restore ||
	    page >= fn->cfg.num_db_pages)
		return false;
	switch (offset) {
	case QHCA_DB_SQ:
	case QHCA_DB_CQ_ARM:
		return true;
	case QHCA_DB_EQ_ARM:
	case QHCA_DB_ETH_TX:
	case QHCA_DB_ETH_ARM:
		return page == 0;
	default:
		return false;
	}
}

void qhca_doorbell(struct qhca_hca *dev, uint16_t gvmi, uint32_t page,
		   uint32_t offset, uint64_t value, uint64_t now)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = hca_fn_find(hca, gvmi);
	uint64_t ignored;

	/* A hint is the host's, see qhca_polls_in_vain(). */
	if (!fn || offset == QHCA_DB_POLL)
		return;
	if (!hca_enter(hca, now)) {
		hca_count(fn, QHCA_CNT_doorbells_ignored);
		return;
	}
	ignored = fn->counter[QHCA_CNT_doorbells_ignored];
	hca_trace(fn, QHCA_TRACE_DOORBELL, page, offset, value, 0);
	if (!doorbell_known(fn, page, offset))
		hca_count(fn, QHCA_CNT_doorbells_ignored);
	else if (offset == QHCA_DB_SQ)
		hca_sched_doorbell(fn, page, (uint32_t)value & QHCA_DB_NUMBER,
				   (uint32_t)(value >> 32));
	else if (offset == QHCA_DB_CQ_ARM)
		hca_cq_doorbell(fn, page, value);
	else if (offset == QHCA_DB_EQ_ARM)
		hca_eq_doorbell(fn, value);
	else if (offset == QHCA_DB_ETH_TX)
		hca_eth_tx_doorbell(fn, value);
	else
		hca_eth_arm_doorbell(fn, value);
	if (fn->counter[QHCA_CNT_doorbells_ignored] != ignored)
		hca_trace(fn, QHCA_TRACE_DOORBELL_IGNORED, page, offset,
			  value, 0);
	hca_leave(hca);
}

bool qhca_polls_in_vain(struct qhca_hca *dev, uint16_t gvmi, uint32_t page,
			uint64_t value)
{
	const struct hca_fn *fn = hca_fn_find(&dev->hca, gvmi);

	return fn && fn->features & QHCA_FEAT_POLL_HINT && !hca_is_dead(fn) &&
	       fn->initialised && !fn->restore &&
	       hca_cq_is_drained(fn, (uint32_t)value & QHCA_DB_NUMBER, page,
				 (uint32_t)(value >> 32));
}
