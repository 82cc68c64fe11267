// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * ENABLE is cleared while the device executes a command that takes many slices.
 * Clearing it does no more work at once than any other write.
 */
#include "unit.h"

#define SETS	4096u			/* of 4 blocks: several slices */

/* A device between two slices of INVALIDATE_ALL; a NOP has been rung behind it. */
static struct host *in_a_command(struct qhca_cmd_slot **slot)
{
	struct host *h = host_new_cache(QHCA_CACHE_AT, SETS, 4);
	struct hca_cache *at = &h->fn->hca->cache.at;

	for (uint32_t i = 0; i < 4 * SETS; i++) {
		struct hca_tag tag = { .index = 5, .page = i };

		assert_non_null(hca_cache_install(at, &h->fn->cache[QHCA_CACHE_AT],
						  tag, hca_cache_fill_begin(at)));
	}
	*slot = host_ptr(h, h->slots);
	memset(*slot, 0, 2 * sizeof(**slot));
	put_le16(&(*slot)[0].opcode, QHCA_CMD_INVALIDATE_ALL);
	put_le32(&(*slot)[0].param, QHCA_INVAL_AT);
	put_le32(&(*slot)[0].status, QHCA_CMD_OWN);
	put_le32(&(*slot)[1].status, QHCA_CMD_OWN);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 3, h->now);
	qhca_run(h->hca, h->now, 1);
	assert_true(get_le32(&(*slot)[0].status) & QHCA_CMD_OWN);
	return h;
}

static void run_in_slices(struct host *h)
{
	while (qhca_run(h->hca, h->now, 1).more)
		continue;
}

static void write_reg(struct host *h, uint32_t reg, uint32_t value)
{
	qhca_reg_write(h->hca, 0, reg, value, h->now);
}

/* ENABLED is set until the command is finished, and the queue stays where it is. */
static void test_finished_later(void **state)
{
	struct qhca_cmd_slot *slot;
	struct host *h = in_a_command(&slot);
	uint64_t base = h->fn->cmdq.base;

	(void)state;
	write_reg(h, QHCA_REG_CONTROL, 0);
	assert_true(get_le32(&slot[0].status) & QHCA_CMD_OWN);
	assert_true(h->fn->status & QHCA_STATUS_ENABLED);
	write_reg(h, QHCA_REG_CMDQ_BASE_LO, 4096);
	assert_int_equal(h->fn->cmdq.base, base);
	write_reg(h, QHCA_REG_CMDQ_DOORBELL, 4);
	assert_int_equal(h->fn->cmdq.count, 0);

	run_in_slices(h);
	assert_int_equal(get_le32(&slot[0].status), QHCA_CMD_OK);
	assert_true(get_le32(&slot[1].status) & QHCA_CMD_OWN);
	assert_false(h->fn->status & QHCA_STATUS_ENABLED);
	write_reg(h, QHCA_REG_CMDQ_BASE_LO, 4096);
	assert_int_equal(h->fn->cmdq.base, 4096);
	host_free(h);
}

/* As if ENABLE had not been cleared, except for the slots that were rung. */
static void test_enabled_again(void **state)
{
	struct qhca_cmd_slot *slot;
	struct host *h = in_a_command(&slot);

	(void)state;
	write_reg(h, QHCA_REG_CONTROL, 0);
	write_reg(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
	run_in_slices(h);
	assert_int_equal(get_le32(&slot[0].status), QHCA_CMD_OK);
	assert_true(get_le32(&slot[1].status) & QHCA_CMD_OWN);
	assert_true(h->fn->status & QHCA_STATUS_ENABLED);
	write_reg(h, QHCA_REG_CMDQ_DOORBELL, 2);
	run_in_slices(h);
	assert_int_equal(get_le32(&slot[1].status), QHCA_CMD_OK);
	host_free(h);
}

/* A reset and a fatal error abandon the command. */
static void test_abandoned(void **state)
{
	(void)state;
	for (int dies = 0; dies < 2; dies++) {
		struct qhca_cmd_slot *slot;
		struct host *h = in_a_command(&slot);

		write_reg(h, QHCA_REG_CONTROL, 0);
		if (dies)
			qhca_inject_fatal(h->hca, 0);
		else
			qhca_reset(h->hca, 0, h->now);
		run_in_slices(h);
		assert_true(get_le32(&slot[0].status) & QHCA_CMD_OWN);
		host_free(h);
	}
}

/* A device that is frozen finishes it first: an image holds no command in its middle. */
static void test_frozen(void **state)
{
	struct qhca_cmd_slot *slot;
	struct host *h = in_a_command(&slot);
	char err[100];

	(void)state;
	assert_true(qhca_freeze(h->hca, h->now, err, sizeof(err)));
	assert_false(h->fn->cmdq.running);
	assert_int_equal(get_le32(&slot[0].status), QHCA_CMD_OK);
	assert_true(get_le32(&slot[1].status) & QHCA_CMD_OWN);
	qhca_thaw(h->hca, h->now);
	run_in_slices(h);
	assert_int_equal(get_le32(&slot[1].status), QHCA_CMD_OK);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_frozen),
	cmocka_unit_test(test_finished_later),
	cmocka_unit_test(test_enabled_again),
	cmocka_unit_test(test_abandoned),
};
TEST_MAIN(tests)
