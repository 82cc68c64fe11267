// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Writing and reading images: what is written is read, and each way in which an image
 * can be wrong gives one sentence and no access outside of it.
 */
#include "unit.h"
#include "image/image.h"

struct sample {
	uint8_t a;
	uint16_t b;
	uint32_t c;
	uint64_t d;
	int64_t e;
	bool f;
	uint8_t g[3];
	uint32_t count;
	uint32_t list[4];
};

static const struct sample sample = {
	.a = 0xa1, .b = 0xb1b2, .c = 0xc1c2c3c4, .d = 0xd1d2d3d4d5d6d7d8,
	.e = -5, .f = true, .g = { 7, 8, 9 }, .count = 2, .list = { 11, 12 },
};

static void sample_fields(struct hca_image *im, struct sample *s)
{
	hca_image_u8(im, "a", &s->a);
	hca_image_u16(im, "b", &s->b);
	hca_image_u32(im, "c", &s->c);
	hca_image_u64(im, "d", &s->d);
	hca_image_s64(im, "e", &s->e);
	hca_image_bool(im, "f", &s->f);
	hca_image_bytes(im, "g", s->g, sizeof(s->g));
	hca_image_count(im, "count", &s->count, 4);
	for (uint32_t i = 0; i < s->count; i++)
		hca_image_u32(im, "list", &s->list[i]);
	hca_image_check(im, "c", s->c != 1);
}

static char err[200];

/* An image of two sections; free() its bytes. */
static struct hca_image sample_write(void)
{
	struct sample s = sample;
	struct hca_image im;

	hca_image_write(&im, err, sizeof(err));
	hca_image_section(&im, "first", 1, 0);
	sample_fields(&im, &s);
	hca_image_leave(&im);
	hca_image_section(&im, "second", 3, 5);
	hca_image_leave(&im);
	assert_false(hca_image_failed(&im));
	return im;
}

/* Reads @len bytes of an image; true if they were in order. */
static bool sample_read(const void *in, size_t len, struct sample *s)
{
	char name[HCA_IMAGE_NAME_LEN];
	uint32_t version, gvmi;
	struct hca_image im;

	memset(s, 0, sizeof(*s));
	err[0] = 0;
	hca_image_read(&im, in, len, err, sizeof(err));
	while (hca_image_next(&im, name, &version, &gvmi)) {
		hca_image_enter(&im, name, version, (uint16_t)gvmi);
		if (!strcmp(name, "first"))
			sample_fields(&im, s);
		else
			assert_true(version == 3 && gvmi == 5);
		hca_image_leave(&im);
	}
	assert_int_equal(hca_image_failed(&im), err[0] != 0);
	return !hca_image_failed(&im);
}

static void test_round_trip(void **state)
{
	struct hca_image im = sample_write();
	struct sample s;

	(void)state;
	assert_true(sample_read(im.out, im.len, &s));
	assert_memory_equal(&s, &sample, sizeof(s));
	free(im.out);
}

/* The bytes are those of the format, on any host. */
static void test_format(void **state)
{
	static const uint8_t first[] = {
		'Q', 'H', 'C', 'A', 'I', 'M', 'G', '1',
		'f', 'i', 'r', 's', 't', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		1, 0, 0, 0, 0, 0, 0, 0, 39, 0, 0, 0,
		0xa1, 0xb2, 0xb1, 0xc4, 0xc3, 0xc2, 0xc1,
		0xd8, 0xd7, 0xd6, 0xd5, 0xd4, 0xd3, 0xd2, 0xd1,
		0xfb, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		1, 7, 8, 9, 2, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0,
		's', 'e', 'c', 'o', 'n', 'd', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		3, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,
	};
	struct hca_image im = sample_write();

	(void)state;
	assert_int_equal(im.len, sizeof(first));
	assert_memory_equal(im.out, first, sizeof(first));
	free(im.out);
}

/* Any part of an image is refused, but for those that end with a section. */
static void test_truncated(void **state)
{
	struct hca_image im = sample_write();
	size_t whole = im.len - HCA_IMAGE_HEADER;
	struct sample s;

	(void)state;
	for (size_t len = 0; len < im.len; len++) {
		uint8_t *part = malloc(len ? len : 1);	/* ASan sees each byte */

		memcpy(part, im.out, len);
		assert_int_equal(sample_read(part, len, &s),
				 len == HCA_IMAGE_MAGIC_LEN || len == whole);
		free(part);
	}
	assert_false(sample_read(im.out, 3, &s));
	assert_string_equal(err, "it ends before magic");
	assert_false(sample_read(im.out, whole - 1, &s));
	assert_string_equal(err, "it ends in section first");
	assert_false(sample_read(im.out, whole + 1, &s));
	assert_string_equal(err, "it ends before the name of a section");
	free(im.out);
}

#define FIELDS	(HCA_IMAGE_MAGIC_LEN + HCA_IMAGE_HEADER)	/* of "first" */

/* With byte @at changed to @to the image is refused with the sentence @why. */
static void check_refused(size_t at, uint8_t to, const char *why)
{
	struct hca_image im = sample_write();
	struct sample s;

	im.out[at] = to;
	assert_false(sample_read(im.out, im.len, &s));
	assert_string_equal(err, why);
	free(im.out);
}

static void test_wrong(void **state)
{
	(void)state;
	check_refused(0, 'q', "this is no image of a qhca adapter");
	check_refused(FIELDS - 4, 38, "section first: it ends before list");
	check_refused(FIELDS - 4, 40, "section first: it is 1 bytes too long");
	check_refused(FIELDS - 1, 1, "it ends in section first");
	check_refused(HCA_IMAGE_MAGIC_LEN + HCA_IMAGE_NAME_LEN - 1, 'x',
		      "the name of a section is too long");
	check_refused(FIELDS + 23, 2,
		      "section first: f has a value that it cannot have");
	check_refused(FIELDS + 27, 5,
		      "section first: count is 5, and there can be 4");
}

/* A check names the function.  Only the first fault of an image is reported. */
static void test_refuse(void **state)
{
	struct hca_image im;
	char small[12];

	(void)state;
	hca_image_read(&im, HCA_IMAGE_MAGIC, HCA_IMAGE_MAGIC_LEN, err,
		       sizeof(err));
	hca_image_enter(&im, "queues", 1, 2);
	hca_image_check(&im, "depth", true);
	assert_false(hca_image_failed(&im));
	hca_image_check(&im, "depth", false);
	hca_image_refuse(&im, "another");
	assert_string_equal(err, "section queues of function 2: depth has a value that it cannot have");
	hca_image_leave(&im);
	assert_true(hca_image_failed(&im));
	/* A sentence that is too long is cut. */
	hca_image_read(&im, "x", 1, small, sizeof(small));
	assert_true(hca_image_failed(&im));
	assert_string_equal(small, "it ends bef");
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_round_trip),
	cmocka_unit_test(test_format),
	cmocka_unit_test(test_truncated),
	cmocka_unit_test(test_wrong),
	cmocka_unit_test(test_refuse),
};
TEST_MAIN(tests)
