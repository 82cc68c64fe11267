/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Flow rules: which Ethernet frames go to raw packet QPs (hardware.rst, "Flow
 * rules").
 */
#ifndef QHCA_CORE_FLOW_H
#define QHCA_CORE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qhca.h"
#include "cmd.h"

#define QHCA_MAX_FLOWS		1024	/* each frame is compared with each rule */

struct qhca_flow_rule {
	struct qhca_flow_key key, mask;
	uint32_t qpn;
	uint16_t priority;
	uint8_t type;			/* enum qhca_flow_type */
	uint8_t layers, flags;		/* QHCA_FLOW_* */
	bool used;
};

struct qhca_flows {
	struct qhca_flow_rule *rule;	/* [cfg.max_flows] */
	uint16_t *order;		/* rules in use, as they are asked */
	uint32_t num;			/* ... and how many; 0: frames pass by */
	uint32_t of_type[QHCA_FLOW_NUM_TYPES];
};

bool qhca_flows_create(struct qhca_hca *hca);	/* false: no memory */
void qhca_flows_destroy(struct qhca_hca *hca);
/* Reset and TEARDOWN_HCA: all rules go. */
void qhca_flows_reset(struct qhca_hca *hca);

/* Give a copy of the frame to each sniffer. */
void qhca_flow_sniff(struct qhca_hca *hca, const uint8_t *frame, size_t len);
/* Give the frame to whom NORMAL rules name; true: it is theirs alone. */
bool qhca_flow_steer(struct qhca_hca *hca, const uint8_t *frame, size_t len);
/* Nobody else wants the frame: to whom the default rules name. */
void qhca_flow_default(struct qhca_hca *hca, const uint8_t *frame, size_t len);
/* Is there a NORMAL rule for a frame of our own? */
bool qhca_flow_wants(struct qhca_hca *hca, const uint8_t *frame, size_t len);
/* A QP is being destroyed: forget its rules. */
void qhca_flow_drop_qp(struct qhca_hca *hca, uint32_t qpn);

enum qhca_cmd_status qhca_cmd_create_flow(struct qhca_hca *hca,
					  struct qhca_cmd_ctx *ctx);
enum qhca_cmd_status qhca_cmd_destroy_flow(struct qhca_hca *hca,
					   struct qhca_cmd_ctx *ctx);

#endif /* QHCA_CORE_FLOW_H */
