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
	struct qhca_hca *dev;
	struct hca_fn *fn;
	struct hca *hca;

	if (!hca_config_ok(cfg, err, err_len))
		return NULL;
	dev = calloc(1, sizeof(*dev));
	if (!dev) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	hca = &dev->hca;
	fn = &dev->pf;
	hca->pf = fn;
	fn->hca = hca;
	fn->cfg = *cfg;
	hca->ops = *ops;
	hca->host = host;
	fn->features = hca_config_features(cfg);
	if (!hca_pool_create(fn) || !hca_eqs_create(fn, hca_fault_info) ||
	    !hca_cqs_create(fn) || !hca_ports_create(fn) ||
	    !hca_flows_create(fn) || !hca_wire_create(hca) ||
	    !hca_inject_create(hca)) {
		qhca_destroy(dev);
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	qhca_reset(dev, 0);
	return dev;
}

void qhca_destroy(struct qhca_hca *dev)
{
	struct hca_fn *fn;

	if (!dev)
		return;
	fn = &dev->pf;
	hca_qps_fini(fn);
	hca_srqs_fini(fn);
	hca_cqs_destroy(fn);
	hca_eqs_destroy(fn);
	hca_mem_fini(fn);
	hca_pool_destroy(fn);
	hca_ports_destroy(fn);
	hca_flows_destroy(fn);
	hca_wire_destroy(&dev->hca);
	hca_inject_destroy(&dev->hca);
	free(dev);
}

static void reset_registers(struct hca_fn *fn)
{
	fn->regs.clock_hi = 0;
	fn->control = 0;
	fn->status = QHCA_STATUS_READY;
	fn->fatal_info = 0;
}

/* qhca_reset() from inside. */
static void reset_now(struct hca_fn *fn)
{
	fn->late = 0;
	fn->reset_time = fn->hca->now;
	fn->hca->turn = 0;
	hca_teardown(fn);
	hca_ports_reset(fn);
	hca_cmdq_reset(fn);
	reset_registers(fn);
	memset(fn->counter, 0, sizeof(fn->counter));
	hca_trace(fn, QHCA_TRACE_RESET, 0, 0, 0, 0);
}

void qhca_reset(struct qhca_hca *dev, uint64_t now)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = &dev->pf;

	if (!hca_enter(hca, now)) {
		fn->late |= HCA_LATE_RESET;
		return;
	}
	reset_now(fn);
	hca_leave(hca);
}

static void change_link(struct hca *hca, bool up)
{
	if (hca->link_up == up)
		return;
	hca->link_up = up;
	if (!up)
		hca->wire.tx_blocked = false;	/* frames are dropped now */
	hca_event(hca->pf, QHCA_EVENT_PORT_CHANGE, 1, hca_link_word(hca));
}

/*
 * The function is already dead, so an error while it posts the event has no
 * consequence.
 */
static void report_fatal(struct hca_fn *fn)
{
	hca_cmdq_stop(fn);
	hca_event_fatal(fn, QHCA_GET(QHCA_STATUS_FATAL_CAUSE, fn->status),
			fn->fatal_info);
}

/* The effects of these may call the host, which may call the engine again. */
void hca_leave(struct hca *hca)
{
	struct hca_fn *fn = hca->pf;

	while (hca->late || fn->late) {
		uint8_t late = hca->late, of_fn = fn->late;

		hca->late = 0;
		fn->late = 0;
		if (late & HCA_LATE_LINK && of_fn & HCA_LATE_RESET)
			hca->link_up = late & HCA_LATE_UP;
		else if (late & HCA_LATE_LINK)
			change_link(hca, late & HCA_LATE_UP);
		if (of_fn & HCA_LATE_RESET)
			reset_now(fn);
		else if (of_fn & HCA_LATE_DIED)
			report_fatal(fn);
		else if (of_fn & HCA_LATE_FATAL)
			hca_fatal(fn, QHCA_FATAL_INJECTED, 0);
	}
	hca->entered = false;
}

bool qhca_is_entered(const struct qhca_hca *dev)
{
	const struct hca *hca = &dev->hca;

	return hca->entered;
}

void qhca_inject_fatal(struct qhca_hca *dev)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = &dev->pf;

	if (!hca_enter(hca, hca->now)) {
		fn->late |= HCA_LATE_FATAL;
		return;
	}
	hca_fatal(fn, QHCA_FATAL_INJECTED, 0);
	hca_leave(hca);
}

void qhca_set_link(struct qhca_hca *dev, bool up, uint64_t now)
{
	struct hca *hca = &dev->hca;

	if (!hca_enter(hca, now)) {
		hca->late &= (uint8_t)~HCA_LATE_UP;
		hca->late |= HCA_LATE_LINK | (up ? HCA_LATE_UP : 0);
		return;
	}
	change_link(hca, up);
	hca_leave(hca);
}
