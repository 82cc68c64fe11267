// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

static uint32_t rd(struct host *h, uint32_t offset)
{
	return qhca_reg_read(h->hca, 0, offset, h->now);
}

static void wr(struct host *h, uint32_t offset, uint32_t value)
{
	qhca_reg_write(h->hca, 0, offset, value, h->now);
}

static void test_reset_values(void **state)
{
	struct host *h = host_new(NULL);

	(void)state;
	assert_int_equal(rd(h, QHCA_REG_MAGIC), QHCA_MAGIC);
	assert_int_equal(rd(h, QHCA_REG_VERSION), 0x10000);
	assert_int_equal(rd(h, QHCA_REG_STATUS), QHCA_STATUS_READY);
	assert_int_equal(rd(h, QHCA_REG_CONTROL), 0);
	assert_int_equal(rd(h, QHCA_REG_GVMI), 0);
	assert_int_equal(rd(h, QHCA_REG_CMDQ_LOG_SLOTS), 0);
	assert_int_equal(rd(h, QHCA_REG_CMDQ_BASE_LO), 0);
	assert_int_equal(rd(h, QHCA_REG_CMDQ_BASE_HI), 0);
	assert_int_equal(rd(h, QHCA_REG_CMDQ_DOORBELL), 0);
	assert_int_equal(rd(h, QHCA_REG_FATAL_INFO), 0);
	assert_int_equal(rd(h, QHCA_REG_MAC_LO), 0x12005452);
	assert_int_equal(rd(h, QHCA_REG_MAC_HI), 0x5634);
	assert_int_equal(rd(h, QHCA_REG_LINK), 1 | 1000 << 8);
	host_free(h);
}

static void test_read_only(void **state)
{
	struct host *h = host_new(NULL);
	uint32_t offset, before;

	(void)state;
	for (offset = 0; offset < 0x100; offset += 4) {
		if (offset >= QHCA_REG_CONTROL &&
		    offset <= QHCA_REG_CMDQ_DOORBELL &&
		    offset != QHCA_REG_GVMI)
			continue;
		before = rd(h, offset);
		wr(h, offset, ~before);
		assert_int_equal(rd(h, offset), before);
	}
	assert_int_equal(rd(h, 1), 0);
	assert_int_equal(rd(h, UINT32_MAX), 0);
	host_free(h);
}

static void test_clock(void **state)
{
	struct host *h = host_new(NULL);

	(void)state;
	h->now = 0x100000005ull;
	assert_int_equal(rd(h, QHCA_REG_CLOCK_LO), 5);
	h->now = 0x2fffffff0ull;
	assert_int_equal(rd(h, QHCA_REG_CLOCK_HI), 1);	/* latched */
	assert_int_equal(rd(h, QHCA_REG_CLOCK_LO), 0xfffffff0);
	assert_int_equal(rd(h, QHCA_REG_CLOCK_HI), 2);
	qhca_reset(h->hca, 0, h->now);
	h->now += 7;
	assert_int_equal(rd(h, QHCA_REG_CLOCK_LO), 7);
	assert_int_equal(rd(h, QHCA_REG_CLOCK_HI), 0);
	host_free(h);
}

static void test_enable(void **state)
{
	struct host *h = host_new(NULL);

	(void)state;
	wr(h, QHCA_REG_CMDQ_LOG_SLOTS, 2);
	wr(h, QHCA_REG_CMDQ_BASE_LO, 0xfffff000);
	wr(h, QHCA_REG_CMDQ_BASE_HI, 0xff);
	wr(h, QHCA_REG_CMDQ_BASE_LO, 0x12345000);
	wr(h, QHCA_REG_CMDQ_BASE_HI, 0x9);
	wr(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
	assert_int_equal(rd(h, QHCA_REG_STATUS),
			 QHCA_STATUS_READY | QHCA_STATUS_ENABLED);
	assert_int_equal(h->fn->cmdq.base, 0x912345000);
	/* The configuration is fixed while enabled. */
	wr(h, QHCA_REG_CMDQ_LOG_SLOTS, 3);
	wr(h, QHCA_REG_CMDQ_BASE_LO, 0);
	assert_int_equal(rd(h, QHCA_REG_CMDQ_LOG_SLOTS), 2);
	assert_int_equal(rd(h, QHCA_REG_CMDQ_BASE_LO), 0x12345000);
	/* The device forgets slots that software has rung and it has not served. */
	wr(h, QHCA_REG_CMDQ_DOORBELL, 1);
	wr(h, QHCA_REG_CONTROL, 0);
	assert_int_equal(rd(h, QHCA_REG_STATUS), QHCA_STATUS_READY);
	assert_false(qhca_run(h->hca, 0, 10).more);
	wr(h, QHCA_REG_CMDQ_LOG_SLOTS, 3);
	assert_int_equal(rd(h, QHCA_REG_CMDQ_LOG_SLOTS), 3);
	host_free(h);
}

static void test_enable_bad(void **state)
{
	struct host *h = host_new(NULL);

	(void)state;
	wr(h, QHCA_REG_CMDQ_LOG_SLOTS, 6);
	wr(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
	assert_int_equal(rd(h, QHCA_REG_STATUS), QHCA_STATUS_READY |
			 QHCA_STATUS_FATAL | QHCA_FATAL_CMDQ_CONFIG << 8);
	assert_int_equal(rd(h, QHCA_REG_FATAL_INFO), 0);
	assert_int_equal(h->irqs[0], 1);
	/* In the fatal state only a reset has an effect. */
	wr(h, QHCA_REG_CMDQ_LOG_SLOTS, 1);
	assert_int_equal(rd(h, QHCA_REG_CMDQ_LOG_SLOTS), 6);
	wr(h, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
	assert_int_equal(rd(h, QHCA_REG_STATUS), QHCA_STATUS_READY);
	assert_int_equal(rd(h, QHCA_REG_CONTROL), 0);
	assert_int_equal(rd(h, QHCA_REG_FATAL_INFO), 0);
	wr(h, QHCA_REG_CMDQ_BASE_LO, 0x800);
	wr(h, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE);
	assert_int_equal(rd(h, QHCA_REG_STATUS) & QHCA_STATUS_FATAL_CAUSE,
			 QHCA_FATAL_CMDQ_CONFIG << 8);
	assert_int_equal(rd(h, QHCA_REG_FATAL_INFO), 1);
	wr(h, QHCA_REG_CONTROL, QHCA_CONTROL_RESET);
	assert_int_equal(rd(h, QHCA_REG_FATAL_INFO), 0);
	host_free(h);
}

static void test_reset(void **state)
{
	struct host *h = host_new_ready();
	struct ring eq = host_ring(h, 2);
	unsigned int i;

	(void)state;
	assert_int_equal(host_create_eq(h, 0, &eq, 1), QHCA_CMD_OK);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_EQ_ARM, 0, 0);
	wr(h, QHCA_REG_CMDQ_DOORBELL, 1);
	/* ENABLE beside RESET is ignored. */
	wr(h, QHCA_REG_CONTROL, QHCA_CONTROL_RESET | QHCA_CONTROL_ENABLE);
	assert_int_equal(rd(h, QHCA_REG_STATUS), QHCA_STATUS_READY);
	assert_int_equal(rd(h, QHCA_REG_CONTROL), 0);
	assert_int_equal(rd(h, QHCA_REG_CMDQ_BASE_LO), 0);
	assert_int_equal(rd(h, QHCA_REG_LINK) & QHCA_LINK_UP, 1);
	for (i = 0; i < QHCA_NUM_COUNTERS; i++)
		assert_int_equal(host_count(h, (enum qhca_counter)i), 0);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 1, 0);
	assert_int_equal(h->irqs[1], 0);
	assert_false(qhca_run(h->hca, 0, 10).more);
	host_free(h);
}

/* ---- doorbells that are nobody's */

static void test_doorbells(void **state)
{
	struct host *h = host_new_ready();
	uint64_t ignored = COUNT(h, doorbells_ignored);

	(void)state;
	qhca_doorbell(h->hca, 0, 0, 0x30, 0, 0);
	qhca_doorbell(h->hca, 0, 0, 4, 0, 0);
	qhca_doorbell(h->hca, 0, 0, UINT32_MAX, 0, 0);
	qhca_doorbell(h->hca, 0, 16, QHCA_DB_SQ, 0, 0);
	qhca_doorbell(h->hca, 0, 1, QHCA_DB_ETH_TX, 0, 0);
	qhca_doorbell(h->hca, 0, 1, QHCA_DB_ETH_ARM, 0, 0);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_ETH_TX, 0, 0);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_ETH_ARM, 5, 0);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, 5, 0);
	assert_int_equal(COUNT(h, doorbells_ignored), ignored + 9);
	host_free(h);

	h = host_new(NULL);		/* before INIT_HCA */
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, 5, 0);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_EQ_ARM, 0, 0);
	assert_int_equal(COUNT(h, doorbells_ignored), 2);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_reset_values),
	cmocka_unit_test(test_read_only),
	cmocka_unit_test(test_clock),
	cmocka_unit_test(test_enable),
	cmocka_unit_test(test_enable_bad),
	cmocka_unit_test(test_reset),
	cmocka_unit_test(test_doorbells),
};
TEST_MAIN(tests)
