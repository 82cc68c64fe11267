// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

static void test_budget(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_cmd_slot *slots = host_ptr(h, h->slots);
	uint64_t before = COUNT(h, commands);
	unsigned int i;

	(void)state;
	for (i = 0; i < 32; i++) {
		memset(&slots[i], 0, sizeof(slots[i]));
		put_le32(&slots[i].status, QHCA_CMD_OWN);
	}
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, ~0u, 0);
	assert_true(qhca_run(h->hca, 0, 0).more);
	assert_int_equal(COUNT(h, commands), before);
	assert_true(qhca_run(h->hca, 0, 5).more);
	assert_int_equal(COUNT(h, commands), before + 5);
	assert_false(qhca_run(h->hca, 0, 1000).more);
	assert_int_equal(COUNT(h, commands), before + 32);
	host_free(h);
}

/* With a budget of one, an endless supply of one kind starves no other. */
static void test_fairness(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_cmd_slot *slots = host_ptr(h, h->slots);
	static const uint8_t mac[6] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 };
	uint8_t *room;
	unsigned int i;

	(void)state;
	memset(&slots[0], 0, sizeof(slots[0]));
	put_le32(&slots[0].status, QHCA_CMD_OWN);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1, 0);
	for (i = 0; i < 8 && get_le32(&slots[0].status) & QHCA_CMD_OWN; i++) {
		while ((room = hca_tx_begin(h->fn, 60)) != NULL) {
			memset(room, 0, 60);
			memcpy(room, mac, 6);
			hca_tx_end(h->fn, 60, 14, 20);
		}
		assert_true(qhca_run(h->hca, 0, 1).more);
	}
	assert_int_equal(get_le32(&slots[0].status), QHCA_CMD_OK);
	host_free(h);
}

/*
 * The turn rotates, so that the last kind of work in the list is sometimes the first.
 */
static void test_turns(void **state)
{
	struct host *h = host_new_ready();
	static const uint8_t mac[6] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 };
	uint64_t ring = host_alloc(h, 4096, 64), frame = host_alloc(h, 64, 64);
	struct qhca_eth_txd *txd = host_ptr(h, ring);
	struct qhca_ethq_config in = { .log_tx = 3, .log_rx = 3 };
	uint8_t *room;
	unsigned int i;

	(void)state;
	put_le64(&in.tx_base, ring);
	put_le64(&in.rx_base, ring + 1024);
	put_le64(&in.rxc_base, ring + 2048);
	put_le64(&in.rec_base, ring + 3072);
	assert_int_equal(host_cmd(h, QHCA_CMD_CREATE_ETHQ, 0, 0, &in,
				  sizeof(in), NULL, 0), QHCA_CMD_OK);
	put_le64(&txd->addr, frame);
	put_le32(&txd->len, 60);
	put_le16(&txd->flags, QHCA_TXD_EOP);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_ETH_TX, 1ull << 32, 0);
	for (i = 0; i < 8 && h->num_sent == 0; i++) {
		while ((room = hca_tx_begin(h->fn, 60)) != NULL) {
			memset(room, 0, 60);
			memcpy(room, mac, 6);
			hca_tx_end(h->fn, 60, 14, 20);
		}
		qhca_run(h->hca, 0, 1);
	}
	assert_int_equal(h->num_sent, 1);
	host_free(h);
}

static void test_idle(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_run_result r = qhca_run(h->hca, 12345, 100);

	(void)state;
	assert_false(r.more);
	assert_int_equal(r.deadline, QHCA_NEVER);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_budget),
	cmocka_unit_test(test_fairness),
	cmocka_unit_test(test_turns),
	cmocka_unit_test(test_idle),
};
TEST_MAIN(tests)
