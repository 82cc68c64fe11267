// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "qp_setup.h"

#define T	(4096ull << 14)		/* ACK timeout of attributes() */

static int set_counters(struct host *h, uint32_t qpn, uint32_t set)
{
	return host_cmd(h, QHCA_CMD_SET_QP_COUNTERS, qpn, set, NULL, 0, NULL, 0);
}

static uint64_t of_set(struct host *h, uint32_t set, enum qhca_counter id)
{
	__le64 value[2] = { 0 };

	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_COUNTER_SET, set, id, NULL,
				  0, value, sizeof(value)), QHCA_CMD_OK);
	return get_le64(&value[0]);
}

/* A QP that can send; its queue has one request more than before. */
static void post(struct host *h, uint32_t qpn, const struct qhca_qpc_sw *sw,
		 uint32_t pi)
{
	struct qhca_sq_wqe *wqe = host_ptr(h, get_le64(&sw->buf.base) +
					      (pi & 7) * 128);

	wqe->opcode = QHCA_WQE_SEND;
	wqe->flags = QHCA_WQE_F_SIGNALED;
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ,
		      (uint64_t)(pi + 1) << 32 | qpn, h->now);
	host_run(h);
}

struct qhca_two {
	struct host *h;
	struct qhca_qpc_sw first, second;
};

/* Two QPs that send; the cache has one line, so each evicts the other. */
static struct qhca_two two_qps(void)
{
	struct qhca_two t = { .h = ready((struct qhca_geometry){ 1, 1 }) };

	t.first = good(t.h);
	t.second = good(t.h);
	assert_int_equal(create(t.h, QPN, &t.first), QHCA_CMD_OK);
	assert_int_equal(create(t.h, QPN + 1, &t.second), QHCA_CMD_OK);
	to_rts(t.h, QPN);
	to_rts(t.h, QPN + 1);
	return t;
}

/* What a QP sends is in its set and in the function's counters, and not in set 0. */
static void test_sent(void **state)
{
	struct qhca_two t = two_qps();
	struct host *h = t.h;
	uint64_t bytes;

	(void)state;
	assert_int_equal(set_counters(h, QPN, 7), QHCA_CMD_OK);
	post(h, QPN, &t.first, 0);
	post(h, QPN + 1, &t.second, 0);
	post(h, QPN, &t.first, 1);
	assert_int_equal(COUNT(h, tx_packets), 3);
	assert_int_equal(of_set(h, 7, QHCA_CNT_tx_packets), 2);
	assert_int_equal(of_set(h, 0, QHCA_CNT_tx_packets), 1);
	assert_int_equal(of_set(h, 6, QHCA_CNT_tx_packets), 0);
	bytes = of_set(h, 7, QHCA_CNT_tx_bytes);
	assert_int_equal(bytes, h->sent[0].len + h->sent[2].len);
	assert_int_equal(of_set(h, 0, QHCA_CNT_tx_bytes),
			 COUNT(h, tx_bytes) - bytes);
	host_free(h);
}

/* Timeouts and repetitions are the QP's, and set 0 has what sets do not count. */
static void test_repeated(void **state)
{
	struct qhca_two t = two_qps();
	struct host *h = t.h;

	(void)state;
	assert_int_equal(set_counters(h, QPN + 1, 1), QHCA_CMD_OK);
	post(h, QPN, &t.first, 0);
	post(h, QPN + 1, &t.second, 0);
	host_run_at(h, h->now + T);
	assert_int_equal(COUNT(h, ack_timeouts), 2);
	assert_int_equal(of_set(h, 1, QHCA_CNT_ack_timeouts), 1);
	assert_int_equal(of_set(h, 1, QHCA_CNT_retransmitted_packets), 1);
	assert_int_equal(of_set(h, 0, QHCA_CNT_ack_timeouts), 1);
	assert_int_equal(of_set(h, 1, QHCA_CNT_commands), 0);
	assert_true(of_set(h, 0, QHCA_CNT_commands) > 0);
	host_free(h);
}

/* Moves a QP to RTS, connected to another one of the function. */
static void connect(struct host *h, uint32_t qpn, uint32_t dest)
{
	struct qhca_qpc_sw sw = attributes();

	sw.av.dgid[15] = 1;
	sw.av.dmac[5] = 0;
	put_le32(&sw.dest_qpn, dest);
	assert_int_equal(modify(h, qpn, QHCA_QPS_INIT, TO_INIT, &sw), 0);
	assert_int_equal(modify(h, qpn, QHCA_QPS_RTR, TO_RTR, &sw), 0);
	assert_int_equal(modify(h, qpn, QHCA_QPS_RTS, TO_RTS, &sw), 0);
}

/* The request finds no receive: each end counts what it has sent and received. */
static void test_received(void **state)
{
	struct host *h = ready((struct qhca_geometry){ 1, 1 });
	struct qhca_qpc_sw first = good(h), second = good(h);
	uint64_t bytes;

	(void)state;
	assert_int_equal(create(h, QPN, &first), QHCA_CMD_OK);
	assert_int_equal(create(h, QPN + 1, &second), QHCA_CMD_OK);
	connect(h, QPN, QPN + 1);
	connect(h, QPN + 1, QPN);
	assert_int_equal(set_counters(h, QPN, 1), QHCA_CMD_OK);
	assert_int_equal(set_counters(h, QPN + 1, 2), QHCA_CMD_OK);
	post(h, QPN, &first, 0);
	assert_int_equal(COUNT(h, rx_packets), 2);
	assert_int_equal(of_set(h, 1, QHCA_CNT_tx_packets), 1);
	assert_int_equal(of_set(h, 1, QHCA_CNT_rx_packets), 1);
	assert_int_equal(of_set(h, 1, QHCA_CNT_rx_rnr), 1);
	assert_int_equal(of_set(h, 2, QHCA_CNT_rx_packets), 1);
	assert_int_equal(of_set(h, 2, QHCA_CNT_tx_rnr_no_wqe), 1);
	assert_int_equal(of_set(h, 2, QHCA_CNT_rx_rnr), 0);
	assert_int_equal(of_set(h, 0, QHCA_CNT_rx_packets), 0);
	bytes = of_set(h, 1, QHCA_CNT_rx_bytes) + of_set(h, 2, QHCA_CNT_rx_bytes);
	assert_int_equal(bytes, COUNT(h, rx_bytes));
	host_free(h);
}

/* The set survives RESET, a change moves nothing, and a set outlives its QP. */
static void test_life(void **state)
{
	struct qhca_two t = two_qps();
	struct host *h = t.h;

	(void)state;
	assert_int_equal(set_counters(h, QPN, 127), QHCA_CMD_OK);
	post(h, QPN, &t.first, 0);
	assert_int_equal(modify(h, QPN, QHCA_QPS_RESET, 0, NULL), QHCA_CMD_OK);
	to_rts(h, QPN);
	post(h, QPN, &t.first, 0);
	assert_int_equal(of_set(h, 127, QHCA_CNT_tx_packets), 2);
	assert_int_equal(set_counters(h, QPN, 0), QHCA_CMD_OK);
	post(h, QPN, &t.first, 1);
	assert_int_equal(of_set(h, 127, QHCA_CNT_tx_packets), 2);
	assert_int_equal(of_set(h, 0, QHCA_CNT_tx_packets), 1);
	assert_int_equal(set_counters(h, QPN, 127), QHCA_CMD_OK);
	assert_int_equal(destroy(h, QPN), QHCA_CMD_OK);
	assert_int_equal(of_set(h, 127, QHCA_CNT_tx_packets), 2);
	/* The next QP of that number counts in set 0. */
	assert_int_equal(create(h, QPN, &t.first), QHCA_CMD_OK);
	to_rts(h, QPN);
	post(h, QPN, &t.first, 0);
	assert_int_equal(of_set(h, 127, QHCA_CNT_tx_packets), 2);
	assert_int_equal(of_set(h, 0, QHCA_CNT_tx_packets), 2);
	host_free(h);
}

static void test_refused(void **state)
{
	struct qhca_two t = two_qps();
	struct qhca_caps caps;
	struct host *h = t.h;
	__le64 value;

	(void)state;
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps,
				  sizeof(caps)), QHCA_CMD_OK);
	assert_int_equal(get_le16(&caps.num_counter_sets), 128);
	assert_int_equal(set_counters(h, 0, 1), QHCA_CMD_BAD_INDEX);
	assert_int_equal(set_counters(h, 1u << 23, 1), QHCA_CMD_BAD_INDEX);
	assert_int_equal(set_counters(h, QPN, 128), QHCA_CMD_BAD_PARAM);
	assert_int_equal(set_counters(h, QPN + 2, 1), QHCA_CMD_BAD_STATE);
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_COUNTER_SET, 128, 0, NULL, 0,
				  &value, 8), QHCA_CMD_BAD_INDEX);
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_COUNTER_SET, 0,
				  QHCA_NUM_COUNTERS, NULL, 0, &value, 8),
			 QHCA_CMD_BAD_PARAM);
	/* Values past the last counter are 0. */
	assert_int_equal(of_set(h, 0, QHCA_NUM_COUNTERS - 1), 0);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_sent),
	cmocka_unit_test(test_repeated),
	cmocka_unit_test(test_received),
	cmocka_unit_test(test_life),
	cmocka_unit_test(test_refused),
};
TEST_MAIN(tests)
