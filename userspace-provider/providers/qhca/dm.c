/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Device memory.  The kernel allocates it, and the provider maps it and copies
 * to and from it with the processor.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/qhca-abi.h>

#include "qhca.h"

/* Offset and length must be multiples of this, as on other devices. */
#define QHCA_DM_ALIGN 4

static bool qhca_dm_holds(const struct qhca_dm *dm, uint64_t offset,
			  size_t length)
{
	return !(offset % QHCA_DM_ALIGN) && !(length % QHCA_DM_ALIGN) &&
	       offset <= dm->length && length <= dm->length - offset;
}

/* The device takes accesses of up to 8 bytes; memcpy() may use wider ones. */
static int qhca_memcpy_to_dm(struct ibv_dm *ibdm, uint64_t offset,
			     const void *from, size_t length)
{
	struct qhca_dm *dm = to_qdm(ibdm);
	uint8_t *to = (uint8_t *)dm->addr + offset;
	uint32_t word;
	size_t i;

	if (!qhca_dm_holds(dm, offset, length))
		return EINVAL;

	for (i = 0; i < length; i += sizeof(word)) {
		memcpy(&word, (const uint8_t *)from + i, sizeof(word));
		*(volatile uint32_t *)(to + i) = word;
	}
	/* Flush the write-combining buffers before the caller goes on. */
	mmio_flush_writes();
	return 0;
}

static int qhca_memcpy_from_dm(void *to, struct ibv_dm *ibdm, uint64_t offset,
			       size_t length)
{
	struct qhca_dm *dm = to_qdm(ibdm);
	const uint8_t *from = (const uint8_t *)dm->addr + offset;
	uint32_t word;
	size_t i;

	if (!qhca_dm_holds(dm, offset, length))
		return EINVAL;

	for (i = 0; i < length; i += sizeof(word)) {
		word = *(const volatile uint32_t *)(from + i);
		memcpy((uint8_t *)to + i, &word, sizeof(word));
	}
	return 0;
}

/* Map device memory into the process.  Returns 0 or an errno value. */
static int map_dm(struct qhca_dm *dm, struct ibv_context *context,
		  size_t length, uint64_t offset)
{
	dm->length = length;
	dm->map_length = align(length, to_qctx(context)->page_size);
	dm->addr = mmap(NULL, dm->map_length, PROT_READ | PROT_WRITE,
			MAP_SHARED, context->cmd_fd, offset);
	if (dm->addr == MAP_FAILED)
		return errno;

	dm->vdm.dm.memcpy_to_dm = qhca_memcpy_to_dm;
	dm->vdm.dm.memcpy_from_dm = qhca_memcpy_from_dm;
	return 0;
}

struct ibv_dm *qhca_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC,
			       1);
	struct qhca_dm *dm;
	uint64_t offset;
	int ret;

	if (!check_comp_mask(attr->comp_mask, 0)) {
		errno = EINVAL;
		return NULL;
	}
	dm = calloc(1, sizeof(*dm));
	if (!dm) {
		errno = ENOMEM;
		return NULL;
	}

	fill_attr_out_ptr(cmd, QHCA_IB_ATTR_ALLOC_DM_MMAP_OFFSET, &offset);
	ret = ibv_cmd_alloc_dm(context, attr, &dm->vdm, cmd);
	if (ret)
		goto err_free;

	ret = map_dm(dm, context, attr->length, offset);
	if (ret)
		goto err_dm;
	return &dm->vdm.dm;

err_dm:
	ibv_cmd_free_dm(&dm->vdm);
err_free:
	free(dm);
	errno = ret;
	return NULL;
}

/* Import memory that another process has allocated in the context. */
struct ibv_dm *qhca_import_dm(struct ibv_context *context, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DM, QHCA_IB_METHOD_DM_QUERY,
			       2);
	struct qhca_dm_query_resp resp = {};
	struct qhca_dm *dm;
	int ret;

	dm = calloc(1, sizeof(*dm));
	if (!dm) {
		errno = ENOMEM;
		return NULL;
	}

	fill_attr_in_obj(cmd, QHCA_IB_ATTR_DM_QUERY_HANDLE, handle);
	fill_attr_out_ptr(cmd, QHCA_IB_ATTR_DM_QUERY_RESP, &resp);
	ret = execute_ioctl(context, cmd);
	if (ret)
		goto err_free;

	ret = map_dm(dm, context, resp.length, resp.mmap_offset);
	if (ret)
		goto err_free;
	dm->vdm.dm.context = context;
	dm->vdm.dm.handle = handle;
	dm->vdm.handle = handle;
	return &dm->vdm.dm;

err_free:
	free(dm);
	errno = ret;
	return NULL;
}

void qhca_unimport_dm(struct ibv_dm *ibdm)
{
	struct qhca_dm *dm = to_qdm(ibdm);

	munmap(dm->addr, dm->map_length);
	free(dm);
}

/* The kernel is called first, as it refuses while there are regions. */
int qhca_free_dm(struct ibv_dm *ibdm)
{
	struct qhca_dm *dm = to_qdm(ibdm);
	int ret;

	ret = ibv_cmd_free_dm(&dm->vdm);
	if (ret)
		return ret;
	munmap(dm->addr, dm->map_length);
	free(dm);
	return 0;
}

struct ibv_mr *qhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *ibdm,
			      uint64_t offset, size_t length,
			      unsigned int access)
{
	struct qhca_dm *dm = to_qdm(ibdm);
	struct verbs_mr *vmr;

	vmr = calloc(1, sizeof(*vmr));
	if (!vmr) {
		errno = ENOMEM;
		return NULL;
	}

	if (ibv_cmd_reg_dm_mr(pd, &dm->vdm, offset, length, access, vmr,
			      NULL)) {
		free(vmr);
		return NULL;
	}
	return &vmr->ibv_mr;
}
