// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * TEARDOWN_HCA: what INIT_HCA and later commands made is forgotten.
 */
#include "mode.h"

#include "hca.h"

void qhca_teardown(struct qhca_hca *hca)
{
	qhca_qps_fini(hca);
	qhca_srqs_fini(hca);
	qhca_cqs_fini(hca);
	qhca_eqs_reset(hca);
	qhca_mem_fini(hca);
	qhca_pool_reset(hca);
	qhca_tables_reset(hca);
	qhca_eth_reset(hca);
	qhca_ports_teardown(hca);
	qhca_flows_reset(hca);
	qhca_wire_reset(hca);
	qhca_inject_reset(hca);
	qhca_cost_forget(hca);
	hca->initialised = false;
	hca->init_flags = 0;
}
