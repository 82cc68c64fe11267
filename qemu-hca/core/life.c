// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The life of an HCA: creation, reset, link, death.
 */
#include "life.h"

#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "hca.h"
#include "mode.h"

struct qhca_hca *qhca_create(const struct qhca_config *cfg,
			     const struct qhca_host_ops *ops, void *host,
			     char *err, size_t err_len)
{
	struct qhca_hca *hca;

	if (!qhca_config_ok(cfg, err, err_len))
		return NULL;
	hca = calloc(1, sizeof(*hca));
	if (!hca) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	hca->cfg = *cfg;
	hca->ops = *ops;
	hca->host = host;
	hca->features = qhca_config_features(cfg);
	if (!qhca_pool_create(hca) || !qhca_eqs_create(hca) ||
	    !qhca_cqs_create(hca) || !qhca_ports_create(hca) ||
	    !qhca_flows_create(hca) || !qhca_wire_create(hca) ||
	    !qhca_inject_create(hca)) {
		qhca_destroy(hca);
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	qhca_reset(hca, 0);
	return hca;
}

void qhca_destroy(struct qhca_hca *hca)
{
	if (!hca)
		return;
	qhca_qps_fini(hca);
	qhca_srqs_fini(hca);
	qhca_cqs_destroy(hca);
	qhca_eqs_destroy(hca);
	qhca_mem_fini(hca);
	qhca_pool_destroy(hca);
	qhca_ports_destroy(hca);
	qhca_flows_destroy(hca);
	qhca_wire_destroy(hca);
	qhca_inject_destroy(hca);
	free(hca);
}

static void reset_registers(struct qhca_hca *hca)
{
	hca->regs.clock_hi = 0;
	hca->control = 0;
	hca->status = QHCA_STATUS_READY;
	hca->fatal_info = 0;
}

/* qhca_reset() from inside. */
static void reset_now(struct qhca_hca *hca)
{
	hca->late = 0;
	hca->reset_time = hca->now;
	hca->turn = 0;
	qhca_teardown(hca);
	qhca_ports_reset(hca);
	qhca_cmdq_reset(hca);
	reset_registers(hca);
	memset(hca->counter, 0, sizeof(hca->counter));
	qhca_trace(hca, QHCA_TRACE_RESET, 0, 0, 0, 0);
}

void qhca_reset(struct qhca_hca *hca, uint64_t now)
{
	if (!hca_enter(hca, now)) {
		hca->late |= QHCA_LATE_RESET;
		return;
	}
	reset_now(hca);
	hca_leave(hca);
}

static void change_link(struct qhca_hca *hca, bool up)
{
	if (hca->link_up == up)
		return;
	hca->link_up = up;
	if (!up)
		hca->wire.tx_blocked = false;	/* frames are dropped now */
	qhca_event(hca, QHCA_EVENT_PORT_CHANGE, 1, qhca_link_word(hca));
}

/* The effects of these may call the host, and it us, again. */
void hca_leave(struct qhca_hca *hca)
{
	uint8_t late;

	while ((late = hca->late)) {
		hca->late = 0;
		if (late & QHCA_LATE_LINK && late & QHCA_LATE_RESET)
			hca->link_up = late & QHCA_LATE_UP;
		else if (late & QHCA_LATE_LINK)
			change_link(hca, late & QHCA_LATE_UP);
		if (late & QHCA_LATE_RESET)
			reset_now(hca);
		else if (late & QHCA_LATE_FATAL)
			qhca_fatal(hca, QHCA_FATAL_INJECTED, 0);
	}
	hca->entered = false;
}

bool qhca_is_entered(const struct qhca_hca *hca)
{
	return hca->entered;
}

void qhca_fatal(struct qhca_hca *hca, enum qhca_fatal cause, uint32_t info)
{
	if (qhca_is_dead(hca))
		return;
	hca->status |= QHCA_STATUS_FATAL |
		       QHCA_PUT(QHCA_STATUS_FATAL_CAUSE, (uint32_t)cause);
	hca->fatal_info = info;
	qhca_cmdq_stop(hca);
	qhca_trace(hca, QHCA_TRACE_FATAL, cause, info, 0, 0);
	qhca_event_fatal(hca, cause, info);
}

void qhca_inject_fatal(struct qhca_hca *hca)
{
	if (!hca_enter(hca, hca->now)) {
		hca->late |= QHCA_LATE_FATAL;
		return;
	}
	qhca_fatal(hca, QHCA_FATAL_INJECTED, 0);
	hca_leave(hca);
}

void qhca_set_link(struct qhca_hca *hca, bool up, uint64_t now)
{
	if (!hca_enter(hca, now)) {
		hca->late &= (uint8_t)~QHCA_LATE_UP;
		hca->late |= QHCA_LATE_LINK | (up ? QHCA_LATE_UP : 0);
		return;
	}
	change_link(hca, up);
	hca_leave(hca);
}
