/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Queue buffers: a queue's rings and its record, in its owner's memory, reached
 * through translation nodes.  Pinned, so never a page fault; a few
 * translations are remembered beside the descriptor.
 */
#ifndef HCA_CORE_QBUF_H
#define HCA_CORE_QBUF_H

#include "qhca.h"

#define HCA_QBUF_WAYS		4

struct hca_qbuf {
	uint64_t base;
	uint32_t length;		/* bytes */
	uint8_t page_shift;
	uint8_t levels;
	/* translations: page number (direct-mapped by its low bits) to entry */
	uint32_t page[HCA_QBUF_WAYS];
	uint64_t entry[HCA_QBUF_WAYS];	/* page address | QHCA_ATE_*; 0: none */
};

/* Decode; forgets translations. */
void hca_qbuf_decode(struct hca_qbuf *qb, const struct qhca_buf *image);
void hca_qbuf_encode(const struct hca_qbuf *qb, struct qhca_buf *image);

/* Levels, page shift, alignment and length make sense together. */
bool hca_qbuf_valid(const struct hca_qbuf *qb);
/* ... and [offset, offset + len) is inside the buffer. */
static inline bool hca_qbuf_holds(const struct hca_qbuf *qb, uint64_t offset,
				  uint64_t len)
{
	return offset <= qb->length && len <= qb->length - offset;
}

/*
 * Copy from or to the buffer.  0, or -1: out of bounds, not present, not
 * writable, DMA error.  Reads and writes may cross pages and are then not
 * atomic; a release write must not (64-byte aligned entries never do).
 */
int hca_qbuf_read(struct hca_fn *fn, struct hca_qbuf *qb, uint32_t offset,
		  void *buf, size_t len);
int hca_qbuf_write(struct hca_fn *fn, struct hca_qbuf *qb, uint32_t offset,
		   const void *buf, size_t len);
int hca_qbuf_write_release(struct hca_fn *fn, struct hca_qbuf *qb,
			   uint32_t offset, const void *buf, size_t len);
/*
 * The software half of a record: two words at a multiple of 8, read by one access
 * and so together.  The rest of the half is reserved.
 */
struct hca_software_half {
	uint32_t first, second;
};
int hca_qbuf_read_half(struct hca_fn *fn, struct hca_qbuf *qb, uint32_t offset,
		       struct hca_software_half *half);
/* One aligned little-endian word, host order in @v; atomic; the write releases. */
int hca_qbuf_read32(struct hca_fn *fn, struct hca_qbuf *qb,
		    uint32_t offset, uint32_t *v);
int hca_qbuf_write32(struct hca_fn *fn, struct hca_qbuf *qb,
		     uint32_t offset, uint32_t v);

#endif /* HCA_CORE_QBUF_H */
