// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Device memory: ranges of BAR 4, in whole pages because processes map them.
 * As with memory of the pool, a range is freed when its object has been
 * destroyed and no process maps it any more, and it is cleared when it is
 * allocated.
 */
#include <linux/genalloc.h>
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <rdma/uverbs_std_types.h>

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

#include "mem.h"

/**
 * qhca_dms_create - take charge of device memory
 * @dev: device, not registered yet
 *
 * It is no error if device memory is unavailable, because RDMA works without
 * it.  The driver then logs one line.
 */
void qhca_dms_create(struct qhca_ib_dev *dev)
{
	const struct qhca_dev *qdev = dev->qdev;
	u64 size = qdev->caps.devmem_size;

	if (!qhca_has(dev, QHCA_FEAT_DEVMEM) || !qdev->devmem_phys ||
	    size < PAGE_SIZE)
		return;

	dev->dm_io = ioremap_wc(qdev->devmem_phys, size);
	if (!dev->dm_io)
		goto err_report;
	dev->dms = gen_pool_create(PAGE_SHIFT, -1);
	if (!dev->dms)
		goto err_unmap;
	if (gen_pool_add(dev->dms, qdev->devmem_phys, size, -1))
		goto err_pool;
	return;

err_pool:
	gen_pool_destroy(dev->dms);
	dev->dms = NULL;
err_unmap:
	iounmap(dev->dm_io);
err_report:
	dev_warn(qhca_dma_dev(dev), "device memory: none, memory is short\n");
}

/**
 * qhca_dms_destroy - undo qhca_dms_create()
 * @dev: device, all of whose contexts have been freed
 */
void qhca_dms_destroy(struct qhca_ib_dev *dev)
{
	if (!dev->dms)
		return;
	gen_pool_destroy(dev->dms);
	dev->dms = NULL;
	iounmap(dev->dm_io);
}

void qhca_dm_buf_free(struct qhca_ib_dev *dev, struct qhca_dm_buf *buf)
{
	gen_pool_free(dev->dms, buf->mmap.addr, buf->length);
	kfree(buf);
}

static void qhca_dm_clear(void __iomem *addr, u64 length)
{
	while (length) {
		u64 n = min_t(u64, length, QHCA_CLEAR_BYTES);

		memset_io(addr, 0, n);
		addr += n;
		length -= n;
		cond_resched();
	}
}

static struct qhca_dm_buf *qhca_dm_buf_alloc(struct qhca_ib_dev *dev,
					     struct qhca_ucontext *uc,
					     const struct ib_dm_alloc_attr *attr)
{
	u64 size = dev->qdev->caps.devmem_size;
	struct genpool_data_align align;
	struct qhca_dm_buf *buf;
	unsigned long addr;
	int err;

	if (!attr->length || attr->flags || attr->alignment > ilog2(size))
		return ERR_PTR(-EINVAL);
	if (attr->length > size)
		return ERR_PTR(-ENOMEM);

	buf = kzalloc_obj(*buf, GFP_KERNEL_ACCOUNT);
	if (!buf)
		return ERR_PTR(-ENOMEM);
	buf->length = PAGE_ALIGN(attr->length);
	/* BAR 4 is aligned to its size, and so to any smaller power of two. */
	align.align = 1 << attr->alignment;
	addr = gen_pool_alloc_algo(dev->dms, buf->length,
				   gen_pool_first_fit_align, &align);
	if (!addr) {
		err = -ENOMEM;
		goto err_free;
	}
	qhca_dm_clear(dev->dm_io + (addr - dev->qdev->devmem_phys),
		      buf->length);

	err = qhca_mmap_insert(uc, &buf->mmap, QHCA_MMAP_DM, addr, buf->length);
	if (err)
		goto err_range;
	return buf;

err_range:
	gen_pool_free(dev->dms, addr, buf->length);
err_free:
	kfree(buf);
	return ERR_PTR(err);
}

struct ib_dm *qhca_alloc_dm(struct ib_device *ibdev, struct ib_ucontext *ibuc,
			    struct ib_dm_alloc_attr *attr,
			    struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dev *dev = to_qhca(ibdev);
	struct qhca_dm *dm;
	u64 offset;
	int err;

	dm = kzalloc_obj(*dm, GFP_KERNEL_ACCOUNT);
	if (!dm)
		return ERR_PTR(-ENOMEM);

	dm->buf = qhca_dm_buf_alloc(dev, to_quc(ibuc), attr);
	if (IS_ERR(dm->buf)) {
		err = PTR_ERR(dm->buf);
		goto err_free;
	}
	offset = rdma_user_mmap_get_offset(&dm->buf->mmap.rdma_entry);
	err = uverbs_copy_to(attrs, QHCA_IB_ATTR_ALLOC_DM_MMAP_OFFSET, &offset,
			     sizeof(offset));
	if (err)
		goto err_buf;
	return &dm->ibdm;

err_buf:
	rdma_user_mmap_entry_remove(&dm->buf->mmap.rdma_entry);
err_free:
	kfree(dm);
	return ERR_PTR(err);
}

/* For a process that has imported the context and memory of another one. */
static int UVERBS_HANDLER(QHCA_IB_METHOD_DM_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_uobject *uobj =
		uverbs_attr_get_uobject(attrs, QHCA_IB_ATTR_DM_QUERY_HANDLE);
	struct qhca_dm *dm = to_qdm(uobj->object);
	struct qhca_dm_query_resp resp = {
		.mmap_offset =
			rdma_user_mmap_get_offset(&dm->buf->mmap.rdma_entry),
		.length = dm->ibdm.length,
	};

	return uverbs_copy_to_struct_or_zero(attrs, QHCA_IB_ATTR_DM_QUERY_RESP,
					     &resp, sizeof(resp));
}

int qhca_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs)
{
	struct qhca_dm *dm = to_qdm(ibdm);

	rdma_user_mmap_entry_remove(&dm->buf->mmap.rdma_entry);
	kfree(dm);
	return 0;
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(qhca_dm_alloc,
			     UVERBS_OBJECT_DM,
			     UVERBS_METHOD_DM_ALLOC,
			     UVERBS_ATTR_PTR_OUT(QHCA_IB_ATTR_ALLOC_DM_MMAP_OFFSET,
						 UVERBS_ATTR_TYPE(u64),
						 UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(QHCA_IB_METHOD_DM_QUERY,
			    UVERBS_ATTR_IDR(QHCA_IB_ATTR_DM_QUERY_HANDLE,
					    UVERBS_OBJECT_DM,
					    UVERBS_ACCESS_READ,
					    UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(QHCA_IB_ATTR_DM_QUERY_RESP,
						UVERBS_ATTR_STRUCT(struct qhca_dm_query_resp,
								   length),
						UA_MANDATORY));

ADD_UVERBS_METHODS(qhca_dm_query,
		   UVERBS_OBJECT_DM,
		   &UVERBS_METHOD(QHCA_IB_METHOD_DM_QUERY));

const struct uapi_definition qhca_dm_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &qhca_dm_alloc),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DM, &qhca_dm_query),
	{}
};
