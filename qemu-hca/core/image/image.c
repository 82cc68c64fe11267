// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Writing and reading images: bytes, bounds and sentences.  It knows no state.
 */
#include "image/image.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bytes.h"

#define FIRST_ROOM	65536u

void hca_image_write(struct hca_image *im, char *err, size_t err_len)
{
	char magic[] = HCA_IMAGE_MAGIC;

	*im = (struct hca_image){ .err = err, .err_len = err_len };
	hca_image_bytes(im, "magic", magic, HCA_IMAGE_MAGIC_LEN);
}

void hca_image_read(struct hca_image *im, const void *in, size_t len, char *err,
		    size_t err_len)
{
	char magic[HCA_IMAGE_MAGIC_LEN];

	*im = (struct hca_image){
		.loading = true, .in = in, .len = len, .end = len,
		.err = err, .err_len = err_len,
	};
	hca_image_bytes(im, "magic", magic, sizeof(magic));
	if (!im->failed && memcmp(magic, HCA_IMAGE_MAGIC, sizeof(magic)))
		hca_image_refuse(im, "this is no image of a qhca adapter");
}

void hca_image_refuse(struct hca_image *im, const char *why, ...)
{
	int n = 0;
	va_list args;

	if (im->failed)
		return;
	im->failed = true;
	if (im->section && im->gvmi)
		n = snprintf(im->err, im->err_len, "section %s of function %u: ",
			     im->section, im->gvmi);
	else if (im->section)
		n = snprintf(im->err, im->err_len, "section %s: ", im->section);
	if (n < 0 || (size_t)n >= im->err_len)
		return;
	va_start(args, why);
	vsnprintf(im->err + n, im->err_len - (size_t)n, why, args);
	va_end(args);
}

/*
 * The same holds of a state that is being written, or the engine has a defect.  Builds
 * with HCA_CHECKED stop there; the others leave it to the reader to refuse the image.
 */
void hca_image_check(struct hca_image *im, const char *field, bool possible)
{
	if (possible || im->failed)
		return;
	if (im->loading)
		hca_image_refuse(im, "%s has a value that it cannot have", field);
#ifdef HCA_CHECKED
	else {
		fprintf(stderr, "section %s of function %u: impossible %s\n",
			im->section, im->gvmi, field);
		abort();
	}
#endif
}

/* ---- bytes */

/* Room for @len bytes more; NULL: memory is short. */
static uint8_t *append(struct hca_image *im, size_t len)
{
	size_t cap = im->cap ? im->cap : FIRST_ROOM;
	uint8_t *p;

	if (im->failed)
		return NULL;
	while (cap - im->len < len)
		cap *= 2;
	if (cap != im->cap) {
		p = malloc(cap);
		if (!p) {
			hca_image_refuse(im, "out of memory");
			return NULL;
		}
		if (im->len)
			memcpy(p, im->out, im->len);
		free(im->out);
		im->out = p;
		im->cap = cap;
	}
	p = im->out + im->len;
	im->len += len;
	return p;
}

/* The next @len bytes; NULL: there are not so many. */
static const uint8_t *take(struct hca_image *im, const char *field, size_t len)
{
	const uint8_t *p = im->in + im->pos;

	if (im->failed)
		return NULL;
	if (len > im->end - im->pos) {
		hca_image_refuse(im, "it ends before %s", field);
		return NULL;
	}
	im->pos += len;
	return p;
}

/* Write *@v as @len bytes, or read it. */
static void number(struct hca_image *im, const char *field, uint64_t *v,
		   size_t len)
{
	uint8_t raw[8] = { 0 };

	if (!im->loading)
		put_le64(raw, *v);
	hca_image_bytes(im, field, raw, len);
	if (im->loading)
		*v = get_le64(raw);
}

void hca_image_bytes(struct hca_image *im, const char *field, void *p,
		     size_t len)
{
	const uint8_t *from;
	uint8_t *to;

	if (!len)
		return;
	if (im->loading) {
		from = take(im, field, len);
		if (from)
			memcpy(p, from, len);
		else
			memset(p, 0, len);
		return;
	}
	to = append(im, len);
	if (to)
		memcpy(to, p, len);
}

/* ---- sections */

void hca_image_section(struct hca_image *im, const char *name, uint32_t version,
		       uint16_t gvmi)
{
	char raw[HCA_IMAGE_NAME_LEN] = { 0 };
	uint64_t v = version, of = gvmi, len = 0;

	im->section = name;
	im->version = version;
	im->gvmi = gvmi;
	im->start = im->len;
	memcpy(raw, name, strlen(name));
	hca_image_bytes(im, "name", raw, sizeof(raw));
	number(im, "version", &v, 4);
	number(im, "function", &of, 4);
	number(im, "length", &len, 4);
}

bool hca_image_next(struct hca_image *im, char *name, uint32_t *version,
		    uint32_t *gvmi)
{
	uint64_t v = 0, of = 0, len = 0;

	im->section = NULL;
	im->end = im->len;
	if (im->failed || im->pos == im->end)
		return false;
	hca_image_bytes(im, "the name of a section", name, HCA_IMAGE_NAME_LEN);
	number(im, "the version of a section", &v, 4);
	number(im, "the function of a section", &of, 4);
	number(im, "the length of a section", &len, 4);
	if (im->failed)
		return false;
	if (name[HCA_IMAGE_NAME_LEN - 1]) {
		hca_image_refuse(im, "the name of a section is too long");
		return false;
	}
	if (len > im->end - im->pos) {
		hca_image_refuse(im, "it ends in section %s", name);
		return false;
	}
	im->end = im->pos + (size_t)len;
	*version = (uint32_t)v;
	*gvmi = (uint32_t)of;
	return true;
}

bool hca_image_follows(const struct hca_image *im, const char *name,
		       uint16_t gvmi)
{
	struct hca_image ahead = *im;
	char err[1], next[HCA_IMAGE_NAME_LEN];
	uint32_t version, of;

	ahead.err = err;
	ahead.err_len = sizeof(err);
	return hca_image_next(&ahead, next, &version, &of) && of == gvmi &&
	       !strcmp(next, name);
}

void hca_image_enter(struct hca_image *im, const char *name, uint32_t version,
		     uint16_t gvmi)
{
	im->section = name;
	im->version = version;
	im->gvmi = gvmi;
}

void hca_image_leave(struct hca_image *im)
{
	if (im->failed)
		return;
	if (!im->loading)
		put_le32(im->out + im->start + HCA_IMAGE_HEADER - 4,
			 (uint32_t)(im->len - im->start - HCA_IMAGE_HEADER));
	else if (im->pos != im->end)
		hca_image_refuse(im, "it is %zu bytes too long",
				 im->end - im->pos);
	im->section = NULL;
	im->gvmi = 0;
}

/* ---- fields */

void hca_image_u8(struct hca_image *im, const char *field, uint8_t *v)
{
	hca_image_bytes(im, field, v, 1);
}

void hca_image_u16(struct hca_image *im, const char *field, uint16_t *v)
{
	uint64_t n = *v;

	number(im, field, &n, 2);
	*v = (uint16_t)n;
}

void hca_image_u32(struct hca_image *im, const char *field, uint32_t *v)
{
	uint64_t n = *v;

	number(im, field, &n, 4);
	*v = (uint32_t)n;
}

void hca_image_u64(struct hca_image *im, const char *field, uint64_t *v)
{
	number(im, field, v, 8);
}

void hca_image_s64(struct hca_image *im, const char *field, int64_t *v)
{
	uint64_t n = (uint64_t)*v;

	number(im, field, &n, 8);
	*v = (int64_t)n;
}

void hca_image_bool(struct hca_image *im, const char *field, bool *v)
{
	uint8_t n = *v;

	hca_image_bytes(im, field, &n, 1);
	hca_image_check(im, field, n <= 1);
	*v = n == 1 && !im->failed;
}

uint32_t hca_image_layout(struct hca_image *im, uint32_t since, uint32_t is)
{
	uint32_t layout = is;

	if (im->version < since)
		return 1;
	hca_image_u32(im, "layout of contexts", &layout);
	hca_image_check(im, "layout of contexts", layout);
	if (im->loading && layout > is)
		hca_image_refuse(im, "contexts in memory have layout %u, and up to %u can be read here",
				 layout, is);
	return layout;
}

void hca_image_count(struct hca_image *im, const char *field, uint32_t *n,
		     uint32_t max)
{
	hca_image_u32(im, field, n);
	if (im->loading && *n > max) {
		hca_image_refuse(im, "%s is %u, and there can be %u", field, *n,
				 max);
		*n = 0;
	}
}
