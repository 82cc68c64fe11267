/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * MAP_CHUNKS and UNMAP_CHUNKS: memory of tables comes and goes.
 */
#ifndef HCA_CORE_CHUNK_H
#define HCA_CORE_CHUNK_H

#include "cmd.h"

enum qhca_cmd_status hca_cmd_map_chunks(struct hca_fn *fn,
					struct hca_cmd_ctx *ctx);
enum qhca_cmd_status hca_cmd_unmap_chunks(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx);

#endif /* HCA_CORE_CHUNK_H */
