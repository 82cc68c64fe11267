// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Queue buffers: an offset in a queue's memory becomes bus addresses.
 *
 * Software keeps these pages pinned and does not change their translation
 * while the queue lives, so that the descriptor may remember a few
 * translations without any invalidation.
 */
#include "hca.h"

void hca_qbuf_decode(struct hca_qbuf *qb, const struct qhca_buf *image)
{
	memset(qb, 0, sizeof(*qb));
	qb->base = get_le64(&image->base);
	qb->length = get_le32(&image->length);
	qb->page_shift = image->page_shift;
	qb->levels = image->levels;
}

void hca_qbuf_encode(const struct hca_qbuf *qb, struct qhca_buf *image)
{
	memset(image, 0, sizeof(*image));
	put_le64(&image->base, qb->base);
	put_le32(&image->length, qb->length);
	image->page_shift = qb->page_shift;
	image->levels = qb->levels;
}

bool hca_qbuf_valid(const struct hca_qbuf *qb)
{
	unsigned int reach;

	if (qb->length == 0 || qb->base & 63)
		return false;
	if (qb->levels == 0)
		return qb->base <= UINT64_MAX - qb->length;
	if (qb->levels > QHCA_MAX_AT_LEVELS ||
	    qb->page_shift < HCA_MIN_PAGE_SHIFT ||
	    qb->page_shift > HCA_MAX_PAGE_SHIFT)
		return false;
	reach = qb->page_shift + QHCA_AT_BITS * qb->levels;
	return reach >= 32 || qb->length <= 1ull << reach;
}

/* Translation of a page of the buffer; 0: none. */
static uint64_t qbuf_page(struct hca_fn *fn, struct hca_qbuf *qb,
			  uint32_t offset)
{
	uint32_t page = (uint32_t)((uint64_t)offset >> qb->page_shift);
	unsigned int way = page % HCA_QBUF_WAYS;
	struct hca_at_root root = {
		.base = qb->base, .page_shift = qb->page_shift,
		.levels = qb->levels,
	};
	uint64_t entry;

	if (qb->page[way] == page && qb->entry[way])
		return qb->entry[way];
	if (hca_at_walk(fn, &root, offset, &entry, NULL) != HCA_WALK_OK)
		return 0;
	qb->page[way] = page;
	qb->entry[way] = entry;
	return entry;
}

/*
 * Bus address of @offset and how many of @len bytes follow it there.  -1: out
 * of bounds, not present, or not writable though @write.
 */
static int qbuf_map(struct hca_fn *fn, struct hca_qbuf *qb, uint32_t offset,
		    size_t len, bool write, uint64_t *addr, size_t *here)
{
	uint64_t entry, in_page, room;

	if (!hca_qbuf_holds(qb, offset, len))
		return -1;
	if (qb->levels == 0) {
		*addr = qb->base + offset;
		*here = len;
		return 0;
	}
	entry = qbuf_page(fn, qb, offset);
	if (!entry || (write && !(entry & QHCA_ATE_WRITE)))
		return -1;
	in_page = offset & ((1ull << qb->page_shift) - 1);
	room = (1ull << qb->page_shift) - in_page;
	*addr = (entry & QHCA_ATE_ADDR) + in_page;
	*here = len < room ? len : (size_t)room;
	return 0;
}

int hca_qbuf_read(struct hca_fn *fn, struct hca_qbuf *qb, uint32_t offset,
		  void *buf, size_t len)
{
	uint8_t *to = buf;
	uint64_t addr;
	size_t here;

	for (; len > 0; len -= here, to += here, offset += (uint32_t)here)
		if (qbuf_map(fn, qb, offset, len, false, &addr, &here) ||
		    hca_dma_read(fn, addr, to, here))
			return -1;
	return 0;
}

int hca_qbuf_write(struct hca_fn *fn, struct hca_qbuf *qb, uint32_t offset,
		   const void *buf, size_t len)
{
	const uint8_t *from = buf;
	uint64_t addr;
	size_t here;

	for (; len > 0; len -= here, from += here, offset += (uint32_t)here)
		if (qbuf_map(fn, qb, offset, len, true, &addr, &here) ||
		    hca_dma_write(fn, addr, from, here))
			return -1;
	return 0;
}

int hca_qbuf_write_release(struct hca_fn *fn, struct hca_qbuf *qb,
			   uint32_t offset, const void *buf, size_t len)
{
	uint64_t addr;
	size_t here;

	if (qbuf_map(fn, qb, offset, len, true, &addr, &here) || here != len)
		return -1;
	return hca_dma_write_release(fn, addr, buf, len);
}

int hca_qbuf_read32(struct hca_fn *fn, struct hca_qbuf *qb,
		    uint32_t offset, uint32_t *v)
{
	uint8_t raw[4];

	if (hca_qbuf_read(fn, qb, offset, raw, sizeof(raw)))
		return -1;
	*v = get_le32(raw);
	return 0;
}

int hca_qbuf_read_half(struct hca_fn *fn, struct hca_qbuf *qb, uint32_t offset,
		       struct hca_software_half *half)
{
	uint8_t raw[8];

	if (hca_qbuf_read(fn, qb, offset, raw, sizeof(raw)))
		return -1;
	half->first = get_le32(raw);
	half->second = get_le32(raw + 4);
	return 0;
}

int hca_qbuf_write32(struct hca_fn *fn, struct hca_qbuf *qb,
		     uint32_t offset, uint32_t v)
{
	uint8_t raw[4];

	put_le32(raw, v);
	return hca_qbuf_write_release(fn, qb, offset, raw, sizeof(raw));
}
