// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "cq_setup.h"

static enum qhca_cmd_status resize(struct setup *s, const struct ring *to,
				   uint32_t *index)
{
	struct qhca_cqc_sw in = { .buf = to->buf };
	struct qhca_cmd_slot slot = { 0 };
	uint64_t addr = host_alloc(s->h, sizeof(in), 64);

	in.log_depth = (uint8_t)to->log_depth;
	put_le32(&in.rec_offset, to->rec_offset);
	memcpy(host_ptr(s->h, addr), &in, sizeof(in));
	put_le16(&slot.opcode, QHCA_CMD_MODIFY_CQ);
	put_le32(&slot.index, CQN);
	put_le32(&slot.param, QHCA_CQ_ATTR_RESIZE);
	put_le64(&slot.in_addr, addr);
	put_le32(&slot.in_len, sizeof(in));
	slot = host_cmd_slot(s->h, &slot, 0);
	*index = (uint32_t)get_le64(&slot.out_param);
	return (enum qhca_cmd_status)get_le32(&slot.status);
}

static void test_resize(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	struct ring bigger = host_ring(s.h, 4), old = s.cq;
	struct qhca_cqe *marker;
	uint32_t i, first;

	(void)state;
	for (i = 0; i < 6; i++) {
		post(&s, i, 0, false);
		host_set_ci(s.h, &s.cq, i < 4 ? i + 1 : 4);
	}
	assert_int_equal(resize(&s, &bigger, &first), QHCA_CMD_OK);
	/* Four entries are used, two of them unseen; then the marker follows. */
	marker = host_cqe(s.h, &old, 6);
	assert_true(host_cqe_valid(s.h, &old, 6));
	assert_int_equal(marker->opcode, QHCA_CQE_RESIZED);
	assert_int_equal(get_le32(&marker->wqe), first);
	assert_int_equal(get_le32(&host_cqe(s.h, &old, 5)->wqe), 5);
	assert_int_equal(first, 32);
	s.cq = bigger;
	for (i = 0; i < 16; i++) {
		assert_false(host_cqe_valid(s.h, &s.cq, first + i));
		assert_true(post(&s, 100 + i, 0, false));
		assert_true(host_cqe_valid(s.h, &s.cq, first + i));
		assert_int_equal(get_le32(&host_cqe(s.h, &s.cq, i)->wqe),
				 100 + i);
	}
	assert_false(host_cqe_valid(s.h, &old, 7));
	/* The new record counts from the first index of the new ring. */
	host_set_ci(s.h, &s.cq, first + 1);
	assert_true(post(&s, 116, 0, false));
	assert_false(post(&s, 117, 0, false));
	host_free(s.h);
}

/*
 * No event is lost when software has armed the CQ before, or arms it afterwards with an
 * index of the old ring.
 */
static void test_resize_arm(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	struct ring next = host_ring(s.h, 2);
	uint32_t first, ci;

	(void)state;
	arm(&s, 0, true);
	assert_int_equal(resize(&s, &next, &first), QHCA_CMD_OK);
	s.cq = next;
	assert_int_equal(armed(&s), 2);
	assert_int_equal(events(&s), 0);
	post(&s, 0, 0, true);
	assert_int_equal(events(&s), 1);
	/* The marker has not been consumed, so any old index reports at once. */
	for (ci = 0; ci < 2; ci++) {
		arm(&s, ci, false);
		assert_int_equal(events(&s), 2 + 2 * ci);
		arm(&s, ci, true);
		assert_int_equal(events(&s), 3 + 2 * ci);
	}
	arm(&s, first + 1, false);
	assert_int_equal(events(&s), 5);
	/* The marker wakes a consumer that waits for any completion. */
	next = host_ring(s.h, 2);
	assert_int_equal(resize(&s, &next, &first), QHCA_CMD_OK);
	s.cq = next;
	assert_int_equal(events(&s), 6);
	assert_int_equal(armed(&s), 0);
	host_free(s.h);
}

static void test_resize_errors(void **state)
{
	struct setup s = setup((struct options){ 2, 4, 0, 0, 0 });
	struct ring next = host_ring(s.h, 1), bad = next;
	uint32_t i, first;

	(void)state;
	bad.log_depth = 3;
	assert_int_equal(resize(&s, &bad, &first), QHCA_CMD_BAD_PARAM);
	bad.log_depth = 200;
	assert_int_equal(resize(&s, &bad, &first), QHCA_CMD_BAD_PARAM);
	for (i = 0; i < 4; i++)
		post(&s, i, 0, false);
	/* There is no room for the marker until the record shows some. */
	assert_int_equal(resize(&s, &next, &first), QHCA_CMD_BAD_STATE);
	host_set_ci(s.h, &s.cq, 1);
	assert_int_equal(resize(&s, &next, &first), QHCA_CMD_OK);
	host_free(s.h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_resize),
	cmocka_unit_test(test_resize_arm),
	cmocka_unit_test(test_resize_errors),
};
TEST_MAIN(tests)
