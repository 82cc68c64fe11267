/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Direct verbs of qhca: memory of the pool.
 */
#ifndef __QHCADV_H__
#define __QHCADV_H__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Is this a qhca device, for which alone the calls below work? */
bool qhcadv_is_supported(struct ibv_device *device);

/*
 * What the pool has.  @comp_mask is output and has no bits yet.
 */
struct qhcadv_pool_attr {
	uint64_t comp_mask;
	uint64_t total;		/* bytes */
	uint64_t free;
	uint64_t largest_free;	/* most that one allocation may have now */
	uint32_t num_blocks;	/* rows of the device's bank */
	uint32_t page_size;	/* lengths are rounded up to a multiple */
	uint32_t max_keys;	/* regions that the device keeps on chip */
	uint32_t reserved;
};

/* 0 or an errno; @inlen is sizeof(*attr). */
int qhcadv_query_pool(struct ibv_context *context,
		      struct qhcadv_pool_attr *attr, uint32_t inlen);

/*
 * Memory of the pool, all zeroes.  It is the context's: a child process has
 * none of it.
 */
struct qhcadv_pool_mem {
	void *addr;
	size_t length;		/* bytes, a multiple of the page size */
	uint32_t block;		/* row that it lies in */
	uint32_t handle;
};

/* NULL and errno: ENOSPC if no block has so much left in one piece. */
struct qhcadv_pool_mem *qhcadv_alloc_pool(struct ibv_context *context,
					  size_t length);

/* 0 or an errno: EBUSY if regions are still registered on it. */
int qhcadv_free_pool(struct ibv_context *context, struct qhcadv_pool_mem *mem);

#ifdef __cplusplus
}
#endif

#endif /* __QHCADV_H__ */
