// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TEARDOWN_HCA: what INIT_HCA and later commands made is forgotten.
 */
#include "mode.h"

#include "hca.h"

void hca_teardown(struct qhca_hca *hca)
{
	hca_qps_fini(hca);
	hca_srqs_fini(hca);
	hca_cqs_fini(hca);
	hca_eqs_reset(hca);
	hca_mem_fini(hca);
	hca_pool_reset(hca);
	hca_tables_reset(hca);
	hca_eth_reset(hca);
	hca_ports_teardown(hca);
	hca_flows_reset(hca);
	hca_wire_reset(hca);
	hca_inject_reset(hca);
	hca_cost_forget(hca);
	hca->initialised = false;
	hca->init_flags = 0;
}
