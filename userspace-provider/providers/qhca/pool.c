/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory of the pool.  The kernel recognises such memory by its address, so
 * ibv_reg_mr() needs no support here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <ccan/minmax.h>
#include <infiniband/cmd_ioctl.h>
#include <rdma/qhca-abi.h>

#include "qhca.h"
#include "qhcadv.h"

/* The kernel has no such object for a device without a pool. */
static int qhca_pool_ioctl(struct ibv_context *context,
			   struct ibv_command_buffer *cmd)
{
	int ret = execute_ioctl(context, cmd);

	return ret == EPROTONOSUPPORT ? EOPNOTSUPP : ret;
}

int qhcadv_query_pool(struct ibv_context *context,
		      struct qhcadv_pool_attr *attr, uint32_t inlen)
{
	DECLARE_COMMAND_BUFFER(cmd, QHCA_IB_OBJECT_POOL,
			       QHCA_IB_METHOD_POOL_QUERY, 1);
	struct qhca_pool_query_resp resp = {};
	struct qhcadv_pool_attr full = {};
	int ret;

	if (!qhcadv_is_supported(context->device))
		return EOPNOTSUPP;
	if (inlen < offsetofend(struct qhcadv_pool_attr, reserved))
		return EINVAL;

	fill_attr_out_ptr(cmd, QHCA_IB_ATTR_POOL_QUERY_RESP, &resp);
	ret = qhca_pool_ioctl(context, cmd);
	if (ret)
		return ret;

	full.total = resp.total;
	full.free = resp.free;
	full.largest_free = resp.largest_free;
	full.num_blocks = resp.num_blocks;
	full.page_size = resp.page_size;
	full.max_keys = resp.max_keys;
	memset(attr, 0, inlen);
	memcpy(attr, &full, min_t(size_t, inlen, sizeof(full)));
	return 0;
}

static int qhca_pool_free(struct ibv_context *context, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, QHCA_IB_OBJECT_POOL,
			       QHCA_IB_METHOD_POOL_FREE, 1);

	fill_attr_in_obj(cmd, QHCA_IB_ATTR_POOL_FREE_HANDLE, handle);
	return execute_ioctl(context, cmd);
}

struct qhcadv_pool_mem *qhcadv_alloc_pool(struct ibv_context *context,
					  size_t length)
{
	DECLARE_COMMAND_BUFFER(cmd, QHCA_IB_OBJECT_POOL,
			       QHCA_IB_METHOD_POOL_ALLOC, 3);
	struct qhca_pool_alloc_resp resp = {};
	struct ib_uverbs_attr *handle;
	struct qhcadv_pool_mem *mem;
	uint64_t bytes = length;
	int ret;

	if (!qhcadv_is_supported(context->device)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mem = calloc(1, sizeof(*mem));
	if (!mem) {
		errno = ENOMEM;
		return NULL;
	}

	handle = fill_attr_out_obj(cmd, QHCA_IB_ATTR_POOL_ALLOC_HANDLE);
	fill_attr_in(cmd, QHCA_IB_ATTR_POOL_ALLOC_LENGTH, &bytes,
		     sizeof(bytes));
	fill_attr_out_ptr(cmd, QHCA_IB_ATTR_POOL_ALLOC_RESP, &resp);
	ret = qhca_pool_ioctl(context, cmd);
	if (ret) {
		errno = ret;
		goto err_free;
	}

	mem->handle = read_attr_obj(QHCA_IB_ATTR_POOL_ALLOC_HANDLE, handle);
	mem->length = resp.length;
	mem->block = resp.block;
	mem->addr = mmap(NULL, mem->length, PROT_READ | PROT_WRITE, MAP_SHARED,
			 context->cmd_fd, resp.mmap_offset);
	if (mem->addr == MAP_FAILED)
		goto err_pool;
	return mem;

err_pool:
	ret = errno;
	qhca_pool_free(context, mem->handle);
	errno = ret;
err_free:
	free(mem);
	return NULL;
}

/* The kernel is called first, as it refuses while there are regions. */
int qhcadv_free_pool(struct ibv_context *context, struct qhcadv_pool_mem *mem)
{
	int ret;

	ret = qhca_pool_free(context, mem->handle);
	if (ret)
		return ret;
	munmap(mem->addr, mem->length);
	free(mem);
	return 0;
}
