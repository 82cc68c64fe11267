// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of processes that the device is to use for itself.
 *
 * A process and the device share such memory: no call of the DMA API comes
 * between a store of the one and a load of the other.  Where the kernel bounces
 * DMA (swiotlb, because the command line says so, the guest's memory is
 * encrypted, or the device does not reach all memory), the device would work on
 * a copy that nobody ever brings up to date.  Such memory is refused.
 * Consumers in the kernel synchronise their buffers and are not concerned, and
 * queues of theirs are coherent memory.
 */
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/iommu.h>

#include "mem.h"

/*
 * Are these whole pages bounced?  Behind an IOMMU dma_need_sync() returns true
 * whenever it cannot tell, but an IOMMU bounces only parts of pages.
 */
bool qhca_dma_is_bounced(struct qhca_ib_dev *dev, dma_addr_t dma)
{
	struct device *dma_dev = qhca_dma_dev(dev);
#ifdef CONFIG_IOMMU_API
	struct iommu_domain *domain = iommu_get_domain_for_dev(dma_dev);

	if (domain && domain->type & __IOMMU_DOMAIN_DMA_API)
		return false;
#endif
	return dma_need_sync(dma_dev, dma);
}

/**
 * qhca_dma_probe - find out whether the kernel bounces what the device uses
 * @dev: device, not registered yet
 *
 * Sets @dev->bounced if the kernel bounces any page, and logs a warning.  Where
 * only some pages are bounced, the driver finds out when it pins them.
 */
void qhca_dma_probe(struct qhca_ib_dev *dev)
{
	struct device *dma_dev = qhca_dma_dev(dev);
	struct page *page;
	dma_addr_t dma;

	page = alloc_page(GFP_KERNEL);
	if (!page)
		return;
	dma = dma_map_page(dma_dev, page, 0, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (!dma_mapping_error(dma_dev, dma)) {
		dev->bounced = qhca_dma_is_bounced(dev, dma);
		dma_unmap_page(dma_dev, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	}
	__free_page(page);

	if (dev->bounced)
		dev_warn(dma_dev,
			 "DMA is bounced (swiotlb): RDMA is for the kernel only, memory and queues of processes are refused\n");
}

static int qhca_umem_refuse(struct qhca_ib_dev *dev)
{
	ibdev_warn_ratelimited(&dev->ibdev,
			       "memory of process %d is refused: its DMA would be bounced (swiotlb)\n",
			       task_tgid_nr(current));
	return -EOPNOTSUPP;
}

/**
 * qhca_umem_may_pin - may processes share memory with the device at all?
 * @dev: the device
 *
 * The caller asks before it pins memory.  To map memory with a bounce buffer,
 * and to unmap it again, would overwrite what the process has stored meanwhile.
 *
 * Return: 0 or %-EOPNOTSUPP, which is what the core returns where it knows of
 * a reason not to bounce.
 */
int qhca_umem_may_pin(struct qhca_ib_dev *dev)
{
	return dev->bounced ? qhca_umem_refuse(dev) : 0;
}

/**
 * qhca_umem_check - does the device reach the very pages of a umem?
 * @dev:  the device
 * @umem: what the core returned, be it an error
 *
 * Return: @umem, or %-EOPNOTSUPP for one with bounced pages, which is released.
 */
struct ib_umem *qhca_umem_check(struct qhca_ib_dev *dev, struct ib_umem *umem)
{
	struct device *dma_dev = qhca_dma_dev(dev);
	struct scatterlist *sg;
	unsigned int i;

	if (IS_ERR(umem) || !dma_dev_need_sync(dma_dev))
		return umem;
	for_each_sgtable_dma_sg(&umem->sgt_append.sgt, sg, i) {
		if (qhca_dma_is_bounced(dev, sg_dma_address(sg))) {
			ib_umem_release(umem);
			return ERR_PTR(qhca_umem_refuse(dev));
		}
	}
	return umem;
}

/**
 * qhca_umem_get - pin memory of the calling process
 * @dev:    the device
 * @addr:   address of the process
 * @length: bytes
 * @access: IB_ACCESS_*
 *
 * Return: the umem or an error.
 */
struct ib_umem *qhca_umem_get(struct qhca_ib_dev *dev, u64 addr, u64 length,
			      int access)
{
	int err = qhca_umem_may_pin(dev);

	if (err)
		return ERR_PTR(err);
	return qhca_umem_check(dev, ib_umem_get_va(&dev->ibdev, addr, length,
						   access));
}
