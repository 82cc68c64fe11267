/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Pool memory for qhca-touch.  The provider has no calls for it yet.
 */
#ifndef TOUCH_POOL_H
#define TOUCH_POOL_H

#include <stdint.h>

#include "peer.h"

static inline uint8_t *touch_pool_alloc(struct ibv_context *ctx, size_t size)
{
	(void)ctx;
	(void)size;
	die("this library has no memory pool");
}

static inline void touch_pool_free(struct ibv_context *ctx, uint8_t *memory)
{
	(void)ctx;
	(void)memory;
}
#endif /* TOUCH_POOL_H */
