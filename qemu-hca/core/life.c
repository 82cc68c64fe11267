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

	if (!hca_config_ok(cfg, err, err_len))
		return NULL;
	hca = calloc(1, sizeof(*hca));
	if (!hca) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	hca->cfg = *cfg;
	hca->ops = *ops;
	hca->host = host;
	hca->features = hca_config_features(cfg);
	if (!hca_pool_create(hca) || !hca_eqs_create(hca) ||
	    !hca_cqs_create(hca) || !hca_ports_create(hca) ||
	    !hca_flows_create(hca) || !hca_wire_create(hca) ||
	    !hca_inject_create(hca)) {
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
	hca_qps_fini(hca);
	hca_srqs_fini(hca);
	hca_cqs_destroy(hca);
	hca_eqs_destroy(hca);
	hca_mem_fini(hca);
	hca_pool_destroy(hca);
	hca_ports_destroy(hca);
	hca_flows_destroy(hca);
	hca_wire_destroy(hca);
	hca_inject_destroy(hca);
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
	hca_teardown(hca);
	hca_ports_reset(hca);
	hca_cmdq_reset(hca);
	reset_registers(hca);
	memset(hca->counter, 0, sizeof(hca->counter));
	hca_trace(hca, QHCA_TRACE_RESET, 0, 0, 0, 0);
}

void qhca_reset(struct qhca_hca *hca, uint64_t now)
{
	if (!hca_enter(hca, now)) {
		hca->late |= HCA_LATE_RESET;
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
	hca_event(hca, QHCA_EVENT_PORT_CHANGE, 1, hca_link_word(hca));
}

/* The effects of these may call the host, and it us, again. */
void hca_leave(struct qhca_hca *hca)
{
	uint8_t late;

	while ((late = hca->late)) {
		hca->late = 0;
		if (late & HCA_LATE_LINK && late & HCA_LATE_RESET)
			hca->link_up = late & HCA_LATE_UP;
		else if (late & HCA_LATE_LINK)
			change_link(hca, late & HCA_LATE_UP);
		if (late & HCA_LATE_RESET)
			reset_now(hca);
		else if (late & HCA_LATE_FATAL)
			hca_fatal(hca, QHCA_FATAL_INJECTED, 0);
	}
	hca->entered = false;
}

bool qhca_is_entered(const struct qhca_hca *hca)
{
	return hca->entered;
}

void hca_fatal(struct qhca_hca *hca, enum qhca_fatal cause, uint32_t info)
{
	if (hca_is_dead(hca))
		return;
	hca->status |= QHCA_STATUS_FATAL |
		       QHCA_PUT(QHCA_STATUS_FATAL_CAUSE, (uint32_t)cause);
	hca->fatal_info = info;
	hca_cmdq_stop(hca);
	hca_trace(hca, QHCA_TRACE_FATAL, cause, info, 0, 0);
	hca_event_fatal(hca, cause, info);
}

void qhca_inject_fatal(struct qhca_hca *hca)
{
	if (!hca_enter(hca, hca->now)) {
		hca->late |= HCA_LATE_FATAL;
		return;
	}
	hca_fatal(hca, QHCA_FATAL_INJECTED, 0);
	hca_leave(hca);
}

void qhca_set_link(struct qhca_hca *hca, bool up, uint64_t now)
{
	if (!hca_enter(hca, now)) {
		hca->late &= (uint8_t)~HCA_LATE_UP;
		hca->late |= HCA_LATE_LINK | (up ? HCA_LATE_UP : 0);
		return;
	}
	change_link(hca, up);
	hca_leave(hca);
}
