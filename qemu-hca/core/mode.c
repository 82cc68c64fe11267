// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TEARDOWN_HCA: what INIT_HCA and later commands made is forgotten.
 */
#include "mode.h"

#include "hca.h"

static bool any_initialised(const struct hca *hca)
{
	for (uint16_t gvmi = 0; gvmi < HCA_MAX_FNS; gvmi++)
		if (hca->fn[gvmi] && hca->fn[gvmi]->initialised)
			return true;
	return false;
}

void hca_teardown(struct hca_fn *fn)
{
	fn->restore = false;		/* contexts that nobody reads or writes any more */
	hca_withheld_forget(fn);
	hca_qps_fini(fn);
	hca_srqs_fini(fn);
	hca_cqs_fini(fn);
	hca_eqs_reset(fn);
	hca_mem_fini(fn);
	hca_pool_reset(fn);
	hca_tables_reset(fn);
	hca_eth_reset(fn);
	hca_ports_teardown(fn);
	hca_flows_reset(fn);
	hca_wire_forget(fn);
	hca_peers_forget(fn);
	hca_inject_forget(fn);
	hca_s2_forget(fn);
	if (fn == hca_pf(fn->hca)) {
		hca_s2_host_gone(fn->hca);
		hca_s2_fini(fn->hca);
	}
	fn->initialised = false;
	fn->init_flags = 0;
	if (!any_initialised(fn->hca))
		hca_cost_forget(fn->hca);
}
