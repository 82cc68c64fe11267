/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands that attach a QP to frames of the port.
 */
#ifndef HCA_CORE_ATTACH_H
#define HCA_CORE_ATTACH_H

#include "cmd.h"

enum qhca_cmd_status hca_cmd_create_flow(struct hca_fn *fn,
					 struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_destroy_flow(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_attach_mcast(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_detach_mcast(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_ATTACH_H */
