// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Buffers of queues: rings and record, the user's or the kernel's.
 */
#include <linux/dma-mapping.h>
#include <linux/overflow.h>

#include "mem.h"

int qhca_qbuf_alloc(struct qhca_ib_dev *dev, struct qhca_qbuf *buf, u32 length)
{
	buf->umem = NULL;
	buf->length = length;
	buf->cpu = dma_alloc_coherent(qhca_dma_dev(dev), length, &buf->dma,
				      GFP_KERNEL | __GFP_NOWARN);
	if (!buf->cpu)
		return -ENOMEM;

	buf->at = (struct qhca_at) {
		.base = buf->dma,
		.page_shift = QHCA_MIN_LOG_CHUNK,
	};
	return 0;
}

static int qhca_qbuf_translate(struct qhca_ib_dev *dev, struct qhca_qbuf *buf,
			       struct ib_umem *umem, u32 length)
{
	unsigned long pgsz;
	int err = -EINVAL;

	if (IS_ERR(umem))
		return PTR_ERR(umem);

	/* Offsets into the buffer are the addresses that get translated. */
	pgsz = ib_umem_find_best_pgsz(umem, dev->qdev->caps.page_sizes, 0);
	if (!pgsz)
		goto err_release;

	err = qhca_at_build(dev, &buf->at, umem, pgsz, true);
	if (err)
		goto err_release;

	buf->umem = umem;
	buf->cpu = NULL;
	buf->length = length;
	return 0;

err_release:
	ib_umem_release(umem);
	return err;
}

int qhca_qbuf_pin(struct qhca_ib_dev *dev, struct qhca_qbuf *buf, u64 addr,
		  u32 length)
{
	if (!PAGE_ALIGNED(addr) || !length)
		return -EINVAL;
	return qhca_qbuf_translate(dev, buf,
				   qhca_umem_get(dev, addr, length,
						 IB_ACCESS_LOCAL_WRITE),
				   length);
}

/*
 * As qhca_qbuf_pin(), but newer cores may find the buffer other than by @addr.
 */
int qhca_qbuf_pin_cq(struct qhca_ib_dev *dev, struct qhca_qbuf *buf,
		     const struct uverbs_attr_bundle *attrs, u64 addr,
		     u32 length)
{
	struct ib_umem *umem;
	int err;

	if (!PAGE_ALIGNED(addr) || !length)
		return -EINVAL;
	err = qhca_umem_may_pin(dev);
	if (err)
		return err;
	umem = ib_umem_get_cq_buf_or_va(&dev->ibdev, attrs, addr, length,
					IB_ACCESS_LOCAL_WRITE);
	return qhca_qbuf_translate(dev, buf, qhca_umem_check(dev, umem),
				   length);
}

void qhca_qbuf_free(struct qhca_ib_dev *dev, struct qhca_qbuf *buf)
{
	qhca_at_free(dev, &buf->at);
	if (buf->umem)
		ib_umem_release(buf->umem);
	if (buf->cpu)
		dma_free_coherent(qhca_dma_dev(dev), buf->length, buf->cpu,
				  buf->dma);
	buf->umem = NULL;
	buf->cpu = NULL;
}

void qhca_qbuf_encode(const struct qhca_qbuf *buf, struct qhca_buf *hw)
{
	hw->base = cpu_to_le64(buf->at.base);
	hw->length = cpu_to_le32(buf->length);
	hw->page_shift = buf->at.page_shift;
	hw->levels = buf->at.levels;
}

/* Do @size bytes at @offset, aligned to @align, lie in @length bytes? */
bool qhca_qbuf_holds(u32 length, u32 offset, u64 size, u32 align)
{
	u64 end;

	return IS_ALIGNED(offset, align) &&
	       !check_add_overflow((u64)offset, size, &end) && end <= length;
}
