// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory regions of kernel consumers: all of memory, and fast registration.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "mem.h"

struct ib_mr *qhca_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	struct qhca_pte pte = {
		.pd = cpu_to_le32(to_qpd(ibpd)->pdn),
		.length = cpu_to_le64(U64_MAX),
	};
	struct qhca_mr *mr;
	int err;

	err = qhca_check_access(dev, access);
	if (err)
		return ERR_PTR(err);

	mr = qhca_mr_alloc(dev, access);
	if (IS_ERR(mr))
		return ERR_CAST(mr);

	pte.access = cpu_to_le32(qhca_hw_access(access));
	qhca_key_publish(dev, mr->index, &pte,
			 QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			 QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_DMA) |
			 QHCA_PUT(QHCA_PTE_OCTET,
				  QHCA_KEY_OCTET(mr->ibmr.lkey)));
	return &mr->ibmr;
}

/* When the device executes REG_MR it copies the list into the tree. */
static int qhca_fast_reg_alloc(struct qhca_ib_dev *dev, struct qhca_mr *mr,
			       u32 max_pages)
{
	size_t size = max_pages * sizeof(*mr->pages);
	int err;

	err = qhca_at_build_blank(dev, &mr->at, max_pages);
	if (err)
		return err;

	mr->max_pages = max_pages;
	mr->pages = kzalloc(size, GFP_KERNEL_ACCOUNT);
	if (!mr->pages)
		goto err_at;

	mr->pages_dma = dma_map_single(qhca_dma_dev(dev), mr->pages, size,
				       DMA_TO_DEVICE);
	if (dma_mapping_error(qhca_dma_dev(dev), mr->pages_dma))
		goto err_pages;
	return 0;

err_pages:
	kfree(mr->pages);
err_at:
	qhca_at_free(dev, &mr->at);
	return -ENOMEM;
}

void qhca_page_list_free(struct qhca_ib_dev *dev, struct qhca_mr *mr)
{
	if (!mr->pages)
		return;
	dma_unmap_single(qhca_dma_dev(dev), mr->pages_dma,
			 mr->max_pages * sizeof(*mr->pages), DMA_TO_DEVICE);
	kfree(mr->pages);
}

struct ib_mr *qhca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			    u32 max_num_sg)
{
	struct qhca_ib_dev *dev = to_qhca(ibpd->device);
	struct qhca_pte pte = {
		.pd = cpu_to_le32(to_qpd(ibpd)->pdn),
		.pool_block = cpu_to_le32(max_num_sg),
	};
	struct qhca_mr *mr;
	int err;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > QHCA_MAX_FAST_REG_PAGES)
		return ERR_PTR(-EINVAL);

	mr = qhca_mr_alloc(dev, 0);
	if (IS_ERR(mr))
		return ERR_CAST(mr);

	err = qhca_fast_reg_alloc(dev, mr, max_num_sg);
	if (err) {
		qhca_mr_free(dev, mr);
		return ERR_PTR(err);
	}
	pte.at_base = cpu_to_le64(mr->at.base);
	qhca_key_publish(dev, mr->index, &pte, QHCA_PTE_REMOTE_INV |
			 QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_INVALIDATED) |
			 QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_FAST_REG) |
			 QHCA_PUT(QHCA_PTE_OCTET,
				  QHCA_KEY_OCTET(mr->ibmr.lkey)) |
			 QHCA_PUT(QHCA_PTE_PAGE_SHIFT, mr->at.page_shift) |
			 QHCA_PUT(QHCA_PTE_LEVELS, mr->at.levels));
	return &mr->ibmr;
}

static int qhca_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct qhca_mr *mr = to_qmr(ibmr);

	if (unlikely(mr->num_pages == mr->max_pages))
		return -ENOMEM;
	mr->pages[mr->num_pages++] = cpu_to_le64(addr);
	return 0;
}

int qhca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int sg_nents,
		   unsigned int *sg_offset)
{
	struct qhca_ib_dev *dev = to_qhca(ibmr->device);
	struct qhca_mr *mr = to_qmr(ibmr);
	size_t size = mr->max_pages * sizeof(*mr->pages);
	int n;

	if (!(ibmr->page_size & dev->qdev->caps.page_sizes))
		return -EINVAL;

	mr->num_pages = 0;
	dma_sync_single_for_cpu(qhca_dma_dev(dev), mr->pages_dma, size,
				DMA_TO_DEVICE);
	n = ib_sg_to_pages(ibmr, sg, sg_nents, sg_offset, qhca_set_page);
	dma_sync_single_for_device(qhca_dma_dev(dev), mr->pages_dma, size,
				   DMA_TO_DEVICE);
	return n;
}
