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

/* The state of a function for which no command is needed. */
static bool fn_create(struct hca *hca, struct hca_fn *fn, uint16_t gvmi,
		      const struct qhca_config *cfg)
{
	fn->hca = hca;
	fn->cfg = *cfg;
	fn->cfg.gvmi = gvmi;
	fn->offers = hca_config_features(&fn->cfg);
	fn->features = fn->offers;
	hca->fn[gvmi] = fn;
	hca_caches_create(fn);
	hca_vf_forget(fn);
	return hca_pool_create(fn) &&
	       hca_eqs_create(fn, hca_fault_info, hca_stage2_next) &&
	       hca_cqs_create(fn) && hca_ports_create(fn) &&
	       hca_flows_create(fn) && hca_qps_create(fn);
}

static void fn_destroy(struct hca_fn *fn)
{
	hca_withheld_forget(fn);
	hca_qps_destroy(fn);
	hca_srqs_fini(fn);
	hca_cqs_destroy(fn);
	hca_eqs_destroy(fn);
	hca_mem_fini(fn);
	hca_pool_destroy(fn);
	hca_ports_destroy(fn);
	hca_flows_destroy(fn);
	fn->hca->fn[fn->cfg.gvmi] = NULL;
}

struct qhca_hca *qhca_create(const struct qhca_config *cfg,
			     const struct qhca_host_ops *ops, void *host,
			     char *err, size_t err_len)
{
	struct qhca_hca *dev;
	struct hca *hca;

	if (!hca_config_ok(cfg, err, err_len))
		return NULL;
	dev = calloc(1, sizeof(*dev));
	if (!dev) {
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	hca = &dev->hca;
	hca->ops = *ops;
	hca->host = host;
	if (!fn_create(hca, &dev->pf, 0, cfg) || !hca_wire_create(hca) ||
	    !hca_inject_create(hca)) {
		qhca_destroy(dev);
		snprintf(err, err_len, "out of memory");
		return NULL;
	}
	dev->pf.enabled = true;
	qhca_pci_reset(dev, 0, 0);
	return dev;
}

void qhca_destroy(struct qhca_hca *dev)
{
	struct hca *hca;

	if (!dev)
		return;
	hca = &dev->hca;
	for (uint16_t gvmi = 1; gvmi < HCA_MAX_FNS; gvmi++) {
		struct hca_fn *fn = hca->fn[gvmi];

		if (fn)
			fn_destroy(fn);
		free(fn);
	}
	hca_s2_fini(hca);
	fn_destroy(&dev->pf);
	hca_wire_destroy(hca);
	hca_inject_destroy(hca);
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
	struct hca *hca = fn->hca;

	fn->late = 0;
	fn->reset_time = hca->now;
	fn->generation++;
	fn->features = fn->offers;
	if (fn == hca_pf(hca)) {
		hca->turn = 0;
		hca->cmd_turn = 0;
		hca->eth_turn = 0;
	}
	hca_teardown(fn);
	hca_s2_reset(fn);
	hca_ports_reset(fn);
	hca_cmdq_reset(fn);
	reset_registers(fn);
	hca_vf_count_on(fn);
	memset(fn->counter, 0, sizeof(fn->counter));
	memset(&fn->sets, 0, sizeof(fn->sets));
	hca_trace(fn, QHCA_TRACE_RESET, 0, 0, 0, 0);
}

void hca_fn_blank(struct hca_fn *fn)
{
	fn->enabled = !fn->cfg.gvmi;
	reset_now(fn);
	hca_vf_forget(fn);
	fn->generation = 0;
	fn->late = 0;
	memset(fn->qps.fault_gen, 0, (size_t)1 << fn->cfg.log_max_qp);
	fn->s2.pin.gen = 0;
	fn->s2.eth.gen = 0;
}

void qhca_reset(struct qhca_hca *dev, uint16_t gvmi, uint64_t now)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = hca_fn_find(hca, gvmi);

	if (!fn)
		return;
	if (!hca_enter(hca, now)) {
		hca_fn_later(fn, HCA_LATE_RESET);
		return;
	}
	reset_now(fn);
	hca_leave(hca);
}

void qhca_pci_reset(struct qhca_hca *dev, uint16_t gvmi, uint64_t now)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = hca_fn_find(hca, gvmi);

	if (!fn)
		return;
	hca_fn_later(fn, HCA_LATE_RESET | HCA_LATE_PCI);
	if (hca_enter(hca, now))
		hca_leave(hca);
}

bool qhca_vf_create(struct qhca_hca *dev, uint16_t gvmi,
		    const struct qhca_config *cfg, char *err, size_t err_len)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn;

	if (!gvmi || gvmi >= HCA_MAX_FNS || hca->fn[gvmi]) {
		snprintf(err, err_len, "%u is no number for a virtual function",
			 gvmi);
		return false;
	}
	if (!hca_config_ok(cfg, err, err_len))
		return false;
	fn = calloc(1, sizeof(*fn));
	if (!fn || !fn_create(hca, fn, gvmi, cfg)) {
		if (fn)
			fn_destroy(fn);
		free(fn);
		snprintf(err, err_len, "out of memory");
		return false;
	}
	reset_now(fn);
	if (gvmi > hca->num_vfs)
		hca->num_vfs = gvmi;
	hca_pf(hca)->offers |= hca_pf(hca)->cfg.features &
			       (QHCA_FEAT_VF | QHCA_FEAT_STAGE2);
	hca_pf(hca)->features = hca_pf(hca)->offers;
	return true;
}

void qhca_vf_enable(struct qhca_hca *dev, uint16_t gvmi, bool enabled,
		    uint64_t now)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = gvmi < HCA_MAX_FNS ? hca->fn[gvmi] : NULL;

	if (!fn || !gvmi)
		return;
	/* The last of several calls within one callback has its way. */
	fn->late &= (uint8_t)~(HCA_LATE_ENABLE | HCA_LATE_DISABLE);
	if (enabled)
		hca_fn_later(fn, HCA_LATE_ENABLE);
	else if (fn->enabled)
		hca_fn_later(fn, HCA_LATE_RESET | HCA_LATE_DISABLE);
	if (hca_enter(hca, now))
		hca_leave(hca);
}

static void change_link(struct hca *hca, bool up)
{
	if (hca->link_up == up)
		return;
	hca->link_up = up;
	if (!up)
		hca->wire.tx_blocked = false;	/* frames are dropped now */
	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS; gvmi++) {
		struct hca_fn *fn = hca->fn[gvmi];

		if (!fn)
			continue;
		hca_peers_forget(fn);
		if (fn->vf.link == QHCA_VF_LINK_AUTO && hca_fn_linked(fn))
			hca_event(fn, QHCA_EVENT_PORT_CHANGE, 1,
				  hca_link_word(fn));
	}
}

/*
 * The function is already dead, so an error while it posts the event has no
 * consequence.  What the functions share has no work of this one from now on; its
 * contexts stay for observation.
 */
static void report_fatal(struct hca_fn *fn)
{
	hca_cmdq_stop(fn);
	hca_linger_fini(fn);
	hca_sched_fini(fn);
	hca_wire_forget(fn);
	hca_inject_forget(fn);
	hca_event_fatal(fn, QHCA_GET(QHCA_STATUS_FATAL_CAUSE, fn->status),
			fn->fatal_info);
	if (fn == hca_pf(fn->hca))
		hca_s2_host_gone(fn->hca);
}

/* Events of stage 2 are written last, so that no part of the engine waits for them. */
static void post_stage2(struct hca *hca)
{
	uint64_t fns = hca->s2_unposted;

	hca->s2_unposted = 0;
	for (unsigned int gvmi = 1; gvmi < HCA_MAX_FNS && fns >> gvmi; gvmi++)
		if (fns >> gvmi & 1 && hca->fn[gvmi])
			hca_event_stage2(hca->fn[gvmi]);
}

static void finish_fn(struct hca_fn *fn)
{
	uint8_t late = fn->late;

	fn->late = 0;
	if (late & HCA_LATE_PCI && fn == hca_pf(fn->hca))
		hca_vfs_forget(fn->hca);
	if (late & HCA_LATE_RESET)
		reset_now(fn);
	else if (late & HCA_LATE_DIED)
		report_fatal(fn);
	else if (late & HCA_LATE_FATAL)
		hca_fatal(fn, QHCA_FATAL_INJECTED, 0);
	if (late & HCA_LATE_DISABLE) {
		fn->enabled = false;
		hca_vf_forget(fn);
	} else if (late & HCA_LATE_ENABLE) {
		fn->enabled = true;
	}
	hca_ports_publish(fn);
}

/* The effects of these may call the host, which may call the engine again. */
void hca_settle(struct hca *hca)
{
	while (hca->late || hca->late_fns || hca->s2_unposted) {
		uint8_t late = hca->late;
		uint64_t fns = hca->late_fns;

		hca->late = 0;
		hca->late_fns = 0;
		/* A function that is about to be reset takes no event of the link. */
		if (late & HCA_LATE_LINK)
			change_link(hca, late & HCA_LATE_UP);
		for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS && fns >> gvmi;
		     gvmi++)
			if (fns >> gvmi & 1)
				finish_fn(hca->fn[gvmi]);
		if (hca->s2_unposted)
			post_stage2(hca);
	}
}

void hca_leave(struct hca *hca)
{
	hca_settle(hca);
	hca->entered = false;
}

bool qhca_is_entered(const struct qhca_hca *dev)
{
	const struct hca *hca = &dev->hca;

	return hca->entered;
}

void qhca_inject_fatal(struct qhca_hca *dev, uint16_t gvmi)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = hca_fn_find(hca, gvmi);

	if (!fn)
		return;
	if (!hca_enter_again(hca)) {
		hca_fn_later(fn, HCA_LATE_FATAL);
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
