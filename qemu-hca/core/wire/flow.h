/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Flow rules: which Ethernet frames go to raw packet QPs (hardware.rst, "Flow
 * rules").
 */
#ifndef HCA_CORE_FLOW_H
#define HCA_CORE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "qhca.h"
#include "handler.h"

#define QHCA_MAX_FLOWS		1024	/* each frame is compared with each rule */

struct hca_flow_rule {
	struct qhca_flow_key key, mask;
	uint32_t qpn;
	uint16_t priority;
	uint8_t type;			/* enum qhca_flow_type */
	uint8_t layers, flags;		/* QHCA_FLOW_* */
	bool used;
};

struct hca_flows {
	struct hca_flow_rule *rule;	/* [cfg.max_flows] */
	uint16_t *order;		/* rules in use, as they are asked */
	uint32_t num;			/* ... and how many; 0: frames pass by */
	uint32_t of_type[QHCA_FLOW_NUM_TYPES];
};

/* What a frame is. */
struct hca_flow_seen {
	struct qhca_flow_key key;
	uint8_t layers;
};

bool hca_flows_create(struct hca_fn *fn);	/* false: no memory */
void hca_flows_destroy(struct hca_fn *fn);
/* Reset and TEARDOWN_HCA: all rules go. */
void hca_flows_reset(struct hca_fn *fn);
/* Take a frame apart.  @len is at least that of an Ethernet header. */
void hca_flow_see(const uint8_t *frame, size_t len, struct hca_flow_seen *s);
bool hca_flow_matches(const struct hca_flow_rule *r,
		      const struct hca_flow_seen *s);
/* The rule that is evaluated in place @i. */
const struct hca_flow_rule *hca_flow_at(const struct hca_flows *f, uint32_t i);
/* Use @rule as rule @index, which is not in use.  @rule->used is ignored. */
void hca_flow_add(struct hca_fn *fn, uint16_t index,
		  const struct hca_flow_rule *rule);
void hca_flow_drop(struct hca_fn *fn, uint16_t index);
/* Is there a NORMAL rule for a frame of our own? */
bool hca_flow_wants(struct hca_fn *fn, const uint8_t *frame, size_t len);
/* A QP is being destroyed: forget its rules. */
void hca_flow_drop_qp(struct hca_fn *fn, uint32_t qpn);

#endif /* HCA_CORE_FLOW_H */
