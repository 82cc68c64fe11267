/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands of stage 2, which only the host domain may send.
 */
#ifndef HCA_CORE_GVM_H
#define HCA_CORE_GVM_H

#include "cmd.h"

enum qhca_cmd_status hca_cmd_set_gvm(struct hca_fn *fn,
				     struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_invalidate_stage2(struct hca_fn *fn,
					       struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_stage2_resume(struct hca_fn *fn,
					   struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_GVM_H */
