/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pool memory for qhca-touch; failures end the program.
 */
#ifndef TOUCH_POOL_H
#define TOUCH_POOL_H

#include <errno.h>
#include <string.h>

#include <infiniband/qhcadv.h>

#include "lib/peer.h"

static inline struct qhcadv_pool_mem *touch_pool_alloc(struct ibv_context *ctx, size_t size)
{
	struct qhcadv_pool_mem *mem = qhcadv_alloc_pool(ctx, size);

	if (!mem)
		die("no %zu bytes of the memory pool: %s", size, strerror(errno));
	return mem;
}

static inline void touch_pool_free(struct ibv_context *ctx, struct qhcadv_pool_mem *mem)
{
	int err = qhcadv_free_pool(ctx, mem);

	if (err)
		die("memory of the pool is not freed: %s", strerror(err));
}

#endif /* TOUCH_POOL_H */
