/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The image: the state of the adapter as bytes, for migration and snapshots
 * (Documentation/engine.rst, Saving and loading).
 *
 * Format.  All numbers are little-endian.
 *
 *   0    8    "QHCAIMG1"
 *   8    ...  sections, in the order of sections.h
 *
 * A section is a header and its fields, one behind the other, without padding:
 *
 *   0    16   name, padded with zeros
 *   16   4    version, from 1
 *   20   4    GVMI of the function that it describes; 0 also for the adapter
 *   24   4    length of the fields in bytes
 *
 * Each part of the engine describes its fields once, by calls of the functions below.
 * While the image is written they copy from the state, while it is read they copy to
 * it, so the two cannot differ.  A part that has a field more than before raises the
 * version of its section, and asks for the field only if struct hca_image has that
 * version: so it reads what an older engine has written.
 *
 * An image is hostile input.  The first thing wrong with it is described by a sentence,
 * which names section and field; from then on every field reads as zero, and the caller
 * of the part sees hca_image_failed().  Memory is never accessed outside the section.
 */
#ifndef HCA_CORE_IMAGE_H
#define HCA_CORE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HCA_IMAGE_MAGIC		"QHCAIMG1"
#define HCA_IMAGE_MAGIC_LEN	8u
#define HCA_IMAGE_NAME_LEN	16u	/* of a section, its final zero included */
#define HCA_IMAGE_HEADER	28u	/* of a section */

/**
 * struct hca_image - an image that is being written, or read.
 * @loading: it is read
 * @failed: something is wrong with it; @err has the sentence
 * @out: being written: its bytes, on the heap
 * @in: being read: its bytes
 * @len: bytes written, or bytes that there are to read
 * @cap: bytes that there is room for in @out
 * @pos: being read: the next byte
 * @end: being read: the end of the section, or of the image outside of sections
 * @start: being written: the header of the section
 * @section: name of the section; NULL: outside of sections
 * @version: of the section
 * @gvmi: the function that the section is about
 */
struct hca_image {
	bool loading;
	bool failed;
	uint8_t *out;
	const uint8_t *in;
	size_t len, cap, pos, end, start;
	const char *section;
	uint32_t version;
	uint16_t gvmi;
	char *err;
	size_t err_len;
};

/* Begin to write.  @err receives a sentence if memory is short. */
void hca_image_write(struct hca_image *im, char *err, size_t err_len);
/* Begin to read @len bytes at @in, which the caller keeps. */
void hca_image_read(struct hca_image *im, const void *in, size_t len, char *err,
		    size_t err_len);

static inline bool hca_image_failed(const struct hca_image *im)
{
	return im->failed;
}

/* The image is refused: @why, with the section in front.  Only the first call counts. */
void hca_image_refuse(struct hca_image *im, const char *why, ...)
	__attribute__((format(printf, 2, 3)));
/* A field that was read has a value that the state cannot have. */
void hca_image_check(struct hca_image *im, const char *field, bool possible);

/* ---- sections */

/* Write a header, or go to the end of the one before it. */
void hca_image_section(struct hca_image *im, const char *name, uint32_t version,
		       uint16_t gvmi);
/* Read a header.  @name has HCA_IMAGE_NAME_LEN bytes.  false: the image has ended. */
bool hca_image_next(struct hca_image *im, char *name, uint32_t *version,
		    uint32_t *gvmi);
/* Is the header that hca_image_next() will read that of this section? */
bool hca_image_follows(const struct hca_image *im, const char *name,
		       uint16_t gvmi);
/* Enter the section whose header was read last. */
void hca_image_enter(struct hca_image *im, const char *name, uint32_t version,
		     uint16_t gvmi);
/* All fields of the section have been written or read; none may be left. */
void hca_image_leave(struct hca_image *im);

/* ---- fields: @field names it in sentences */

void hca_image_u8(struct hca_image *im, const char *field, uint8_t *v);
void hca_image_u16(struct hca_image *im, const char *field, uint16_t *v);
void hca_image_u32(struct hca_image *im, const char *field, uint32_t *v);
void hca_image_u64(struct hca_image *im, const char *field, uint64_t *v);
void hca_image_s64(struct hca_image *im, const char *field, int64_t *v);
void hca_image_bool(struct hca_image *im, const char *field, bool *v);
void hca_image_bytes(struct hca_image *im, const char *field, void *p,
		     size_t len);
/* The number of things that follow: at most @max, or the image is refused. */
void hca_image_count(struct hca_image *im, const char *field, uint32_t *n,
		     uint32_t max);

/*
 * The layout of contexts in the guest's memory, which travel beside the image: the last
 * field of a section, from version @since on.  Before that it was 1.  @is: that of this
 * engine; it reads older ones as well, and returns which one it will find.
 */
uint32_t hca_image_layout(struct hca_image *im, uint32_t since, uint32_t is);

/*
 * To be put beside the fields of a struct, with its size: whoever changes the struct
 * has to look whether the image has what is new.  Sizes are those of 64-bit hosts.
 */
#define HCA_IMAGE_COVERS(type, size)					\
	_Static_assert(sizeof(void *) != 8 || sizeof(type) == (size),	\
		       "does the image have the new field of " #type "?")

#endif /* HCA_CORE_IMAGE_H */
