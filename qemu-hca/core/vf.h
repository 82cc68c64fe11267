/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What the host domain lays down for a virtual function (SET_VF).
 *
 * Each part of the engine looks up the settings that concern it where it acts: the
 * port its address, the switch tag and trust, the run queue the rates.  The physical
 * function has settings too, which nobody changes: all is allowed to it.
 */
#ifndef HCA_CORE_VF_H
#define HCA_CORE_VF_H

#include "qhca.h"
#include "cmd.h"

struct hca;
struct hca_fn;

struct hca_vf {
	uint8_t mac[6];			/* zero: the function's own choice */
	uint16_t vlan;			/* of all its frames; 0: none */
	uint8_t qos;			/* priority in that tag */
	uint8_t link;			/* enum qhca_vf_link */
	uint16_t flags;			/* QHCA_VF_* */
	uint32_t max_rate, min_rate;	/* Mb/s; 0: none */
	uint16_t blocks[QHCA_NUM_CACHE_IDS];	/* 0: those of cfg.vf_blocks */
};

/* At creation, and when the VF ends: settings, and what it has counted. */
void hca_vf_forget(struct hca_fn *fn);
/* FLR or PCI reset of the PF: all VFs are forgotten, and off the network ... */
void hca_vfs_forget(struct hca *hca);
/* ... until the PF's INIT_HCA. */
void hca_vfs_admit(struct hca *hca);
/*
 * The function's counters are about to be zeroed.  What they have counted is kept, because the
 * host domain sees totals that no reset of the function changes.
 */
void hca_vf_count_on(struct hca_fn *fn);

/* Can SET_VF have made these settings? */
bool hca_vf_valid(const struct hca_vf *vf);
/* The settings that a loaded image has apply.  No event tells of the change. */
void hca_vf_load(struct hca_fn *fn, const struct hca_vf *vf);

enum qhca_cmd_status hca_cmd_set_vf(struct hca_fn *fn, struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_query_vf(struct hca_fn *fn,
				      struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_query_vf_counters(struct hca_fn *fn,
					       struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_VF_H */
