/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The sections of an image, in their order: X(name, version, about, when, feature,
 * fields).
 *
 * Whoever adds a field to a part raises the version of its section, writes the field
 * behind the others, and reads it only from that version on.  Whoever adds a section makes
 * it that of a feature, and puts it where what it needs has been loaded.  A golden image
 * of each version that was released is read by tests/unit/test_migrate.c.
 *
 * @about: HCA_OF_ADAPTER, one section; HCA_OF_FN, one for each function, in order of GVMI
 * @when: HCA_ALWAYS; HCA_IF_INITIALISED, of a function after INIT_HCA alone;
 *   HCA_IF_WITHHELD, of one that could not write what it had to when the machine stopped
 * @feature: the section is written if the function has this feature; without it, an image
 *   may have the section or not, and without the section the state is as after a reset.
 *   So an image from before the feature can be read.  0: each image has the section
 */
#ifndef HCA_CORE_SECTIONS_H
#define HCA_CORE_SECTIONS_H

/* Limits of each function: first, since everything else is bounded by them. */
#define HCA_SECTIONS_LIMITS(X) \
	X("config", 1, HCA_OF_FN, HCA_ALWAYS, 0, hca_config_image)

/* The adapter, before its functions. */
#define HCA_SECTIONS_ADAPTER(X) \
	X("adapter", 1, HCA_OF_ADAPTER, HCA_ALWAYS, 0, hca_adapter_image)

/* Functions, one after the other. */
#define HCA_SECTIONS_FN(X) \
	X("function", 2, HCA_OF_FN, HCA_ALWAYS, 0, hca_function_image) \
	X("vf", 1, HCA_OF_FN, HCA_ALWAYS, 0, hca_vf_image) \
	X("rate", 1, HCA_OF_FN, HCA_ALWAYS, 0, hca_rate_image) \
	X("port", 1, HCA_OF_FN, HCA_ALWAYS, 0, hca_ports_image) \
	X("stage2", 1, HCA_OF_FN, HCA_ALWAYS, 0, hca_stage2_image) \
	X("tables", 1, HCA_OF_FN, HCA_IF_INITIALISED, 0, hca_tables_image) \
	X("caches", 1, HCA_OF_FN, HCA_IF_INITIALISED, 0, hca_caches_image) \
	X("pool", 1, HCA_OF_FN, HCA_IF_INITIALISED, QHCA_FEAT_POOL, hca_pool_image) \
	X("eq", 1, HCA_OF_FN, HCA_IF_INITIALISED, 0, hca_eqs_image) \
	X("cq", 2, HCA_OF_FN, HCA_IF_INITIALISED, 0, hca_cqs_image) \
	X("srq", 2, HCA_OF_FN, HCA_IF_INITIALISED, QHCA_FEAT_SRQ, hca_srqs_image) \
	X("qp", 2, HCA_OF_FN, HCA_IF_INITIALISED, 0, hca_qps_image) \
	X("withheld", 1, HCA_OF_FN, HCA_IF_WITHHELD, 0, hca_withheld_image) \
	X("tokens", 1, HCA_OF_FN, HCA_ALWAYS, 0, hca_tokens_image) \
	X("held", 2, HCA_OF_FN, HCA_IF_INITIALISED, 0, hca_held_image) \
	X("ethernet", 2, HCA_OF_FN, HCA_IF_INITIALISED, 0, hca_eth_image) \
	X("rss", 1, HCA_OF_FN, HCA_IF_INITIALISED, QHCA_FEAT_ETH_RSS, hca_rss_image) \
	X("flow", 1, HCA_OF_FN, HCA_IF_INITIALISED, QHCA_FEAT_RAW_PACKET, hca_flows_image) \
	X("commands", 1, HCA_OF_FN, HCA_ALWAYS, 0, hca_commands_image) \
	X("counters", 1, HCA_OF_FN, HCA_ALWAYS, 0, hca_counters_image)

/* What is between functions. */
#define HCA_SECTIONS_SHARED(X) \
	X("wire", 1, HCA_OF_ADAPTER, HCA_ALWAYS, 0, hca_wire_image) \
	X("injector", 1, HCA_OF_ADAPTER, HCA_ALWAYS, 0, hca_inject_image)

#endif /* HCA_CORE_SECTIONS_H */
