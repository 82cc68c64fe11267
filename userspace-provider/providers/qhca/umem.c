/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory of queues.  It is page aligned and zeroed, and a forked child does not
 * inherit it, so that the device and the parent keep using the same pages.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "qhca.h"

static int umem_alloc_custom(struct qhca_umem *mem, struct qhca_pd *pd,
			     size_t alignment)
{
	mem->addr = pd->alloc(&pd->pd, pd->pd_context, mem->length, alignment,
			      (uint64_t)RDMA_DRIVER_UNKNOWN << 32 |
			      mem->resource);
	if (!mem->addr)
		return ENOMEM;
	if (mem->addr == IBV_ALLOCATOR_USE_DEFAULT)
		return EAGAIN;

	/* Old contents could be taken for a completion of the device. */
	memset(mem->addr, 0, mem->length);
	mem->owner = pd;
	atomic_fetch_add(&pd->users, 1);
	return 0;
}

/**
 * qhca_umem_alloc - allocate memory for the rings and record of one queue
 * @mem: filled in
 * @ctx: context
 * @pd: domain of the queue, whose allocator is used if it has one; may be NULL
 * @length: bytes, rounded up to pages
 * @resource: type of the queue, passed to the allocator
 *
 * Returns 0 or an errno value.
 */
int qhca_umem_alloc(struct qhca_umem *mem, struct qhca_context *ctx,
		    struct qhca_pd *pd, size_t length,
		    enum qhca_resource resource)
{
	int ret;

	mem->length = align(length, ctx->page_size);
	mem->owner = NULL;
	mem->resource = resource;

	if (pd && pd->alloc) {
		ret = umem_alloc_custom(mem, pd, ctx->page_size);
		if (ret != EAGAIN)
			return ret;
	}

	mem->addr = mmap(NULL, mem->length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem->addr == MAP_FAILED)
		return ENOMEM;

	ret = ibv_dontfork_range(mem->addr, mem->length);
	if (ret)
		munmap(mem->addr, mem->length);
	return ret ? ENOMEM : 0;
}

/**
 * qhca_umem_free - free the memory of qhca_umem_alloc()
 * @mem: memory the device no longer uses
 */
void qhca_umem_free(struct qhca_umem *mem)
{
	struct qhca_pd *pd = mem->owner;

	if (!mem->length)
		return;

	if (pd) {
		pd->free(&pd->pd, pd->pd_context, mem->addr,
			 (uint64_t)RDMA_DRIVER_UNKNOWN << 32 | mem->resource);
		atomic_fetch_sub(&pd->users, 1);
	} else {
		ibv_dofork_range(mem->addr, mem->length);
		munmap(mem->addr, mem->length);
	}
	mem->length = 0;
}
