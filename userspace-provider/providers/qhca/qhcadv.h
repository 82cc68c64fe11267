/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Direct verbs of qhca: memory of the pool, thresholds of queues.
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

/* Is this a qhca device?  The functions below work only for such devices. */
bool qhcadv_is_supported(struct ibv_device *device);

/*
 * Size of the pool.  @comp_mask is output and has no bits yet.
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
 * Memory of the pool, filled with zeroes.  It belongs to the context, and a
 * child process does not inherit it.
 */
struct qhcadv_pool_mem {
	void *addr;
	size_t length;		/* bytes, a multiple of the page size */
	uint32_t block;		/* row that it lies in */
	uint32_t handle;
};

/* Returns NULL with errno ENOSPC if no block has so much left in one piece. */
struct qhcadv_pool_mem *qhcadv_alloc_pool(struct ibv_context *context,
					  size_t length);

/* Returns 0 or an errno: EBUSY while regions are registered on the memory. */
int qhcadv_free_pool(struct ibv_context *context, struct qhcadv_pool_mem *mem);

enum qhcadv_queue_attr_mask {
	QHCADV_QUEUE_ATTR_THRESHOLD = 1 << 0,
};

/*
 * When the device reads the software index of a queue again.  @threshold is a
 * number of entries, from 1 to the queue's depth.  The device reads the index
 * of a CQ when more entries than this seem to be in use, and the index of a
 * receive queue or SRQ when fewer seem to be left.
 */
struct qhcadv_queue_attr {
	uint64_t comp_mask;	/* QHCADV_QUEUE_ATTR_*: what is given */
	uint32_t threshold;
	uint32_t reserved;
};

/*
 * As ibv_create_cq_ex(), ibv_create_qp_ex() and ibv_create_srq_ex(), with
 * further attributes of the CQ, the QP's receive queue or the SRQ; @inlen is
 * sizeof(*queue).  They return NULL and set errno, to EINVAL also if the queue
 * cannot have such a threshold.
 */
struct ibv_cq_ex *qhcadv_create_cq(struct ibv_context *context,
				   struct ibv_cq_init_attr_ex *attr,
				   const struct qhcadv_queue_attr *queue,
				   uint32_t inlen);
struct ibv_qp *qhcadv_create_qp(struct ibv_context *context,
				struct ibv_qp_init_attr_ex *attr,
				const struct qhcadv_queue_attr *queue,
				uint32_t inlen);
struct ibv_srq *qhcadv_create_srq(struct ibv_context *context,
				  struct ibv_srq_init_attr_ex *attr,
				  const struct qhcadv_queue_attr *queue,
				  uint32_t inlen);

#ifdef __cplusplus
}
#endif

#endif /* __QHCADV_H__ */
