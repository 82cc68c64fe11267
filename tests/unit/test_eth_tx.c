// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames that the device sends in segments.  test_tso.c has the headers.
 */
#include "nic_tcp.h"

static uint8_t want[QHCA_MAX_TSO_FRAME + TCP_MAX_HDR];

/* What was sent from frame @first on is what the model sends.  Returns the next one. */
static unsigned int check_sent(const struct host *h, const struct tcp_spec *s,
			       unsigned int first)
{
	uint32_t off = 0;

	while (off < s->payload) {
		uint32_t len = s->payload - off < s->mss ? s->payload - off : s->mss;
		uint32_t bytes = tcp_segment(s, want, off, len);

		if (bytes < 60) {
			memset(want + bytes, 0, 60 - bytes);
			bytes = 60;
		}
		assert_true(first < h->num_sent);
		assert_int_equal(h->sent[first].len, bytes);
		assert_memory_equal(h->sent[first].data, want, bytes);
		off += len;
		first++;
	}
	return first;
}

static void test_tso(void **state)
{
	struct nic n = nic_new(5);
	struct tcp_spec s = { .mss = 1400, .payload = 60000, .seq = 5, .id = 9,
			      .flags = 0x18, .tcp_options = 3 };
	uint64_t bytes = 0;

	(void)state;
	put_tso(&n, &s, 18);
	put_txd(&n, make_frame(&n, 100), 100, QHCA_TXD_EOP);
	kick(&n);
	assert_int_equal(check_sent(n.h, &s, 0), 43);
	assert_int_equal(n.h->num_sent, 44);
	assert_int_equal(tx_ci(&n), n.tx_pi);
	assert_int_equal(COUNT(n.h, eth_tx_packets), 44);
	for (unsigned int i = 0; i < 44; i++)
		bytes += n.h->sent[i].len;
	assert_int_equal(COUNT(n.h, eth_tx_bytes), bytes);
	assert_int_equal(COUNT(n.h, eth_tx_tso), 1);
	/* One segment, shorter than a frame may be; fragments that end in the headers. */
	n.h->num_sent = 0;
	s = (struct tcp_spec){ .mss = 1400, .payload = 1 };
	put_tso(&n, &s, 20);
	kick(&n);
	assert_int_equal(check_sent(n.h, &s, 0), 1);
	assert_int_equal(COUNT(n.h, eth_tx_tso), 2);
	assert_int_equal(COUNT(n.h, eth_tx_errors), 0);
	host_free(n.h);
}

static void test_tso_vlan(void **state)
{
	struct nic n = nic_new(5);
	struct tcp_spec s = { .v6 = true, .mss = 500, .payload = 1600,
			      .extensions = 1 };
	struct qhca_eth_txd *txd = put_tso(&n, &s, 2);

	(void)state;
	put_le16(&txd->flags, QHCA_TXD_TSO | QHCA_TXD_CSUM | QHCA_TXD_VLAN);
	put_le16(&txd->vlan, 0x4007);
	kick(&n);
	assert_int_equal(n.h->num_sent, 4);
	for (unsigned int i = 0; i < 4; i++) {
		uint8_t *f = n.h->sent[i].data;

		assert_int_equal(get_be32(f + 12), 0x81004007);
		memmove(f + 12, f + 16, n.h->sent[i].len - 16);
		n.h->sent[i].len -= 4;
	}
	check_sent(n.h, &s, 0);
	host_free(n.h);
}

/* Segments are as much work as frames: a run sends no more than its budget. */
static void test_tso_budget(void **state)
{
	struct nic n = nic_new(5);
	struct tcp_spec s = { .mss = 100, .payload = 3000 };

	(void)state;
	put_tso(&n, &s, 3);
	qhca_doorbell(n.h->hca, 0, 0, QHCA_DB_ETH_TX, (uint64_t)n.tx_pi << 32, 0);
	assert_int_equal(hca_eth_run(n.h->fn, 7), 7);
	assert_int_equal(n.h->num_sent, 7);
	assert_int_equal(tx_ci(&n), 0);
	assert_true(qhca_run(n.h->hca, 0, 10).more);
	assert_int_equal(n.h->num_sent, 17);
	/* The link takes no more, and later does. */
	n.h->tx_full = true;
	assert_int_equal(hca_eth_run(n.h->fn, 7), 0);
	n.h->tx_full = false;
	qhca_tx_ready(n.h->hca, 0);
	assert_int_equal(hca_eth_run(n.h->fn, 100), 13);
	assert_int_equal(check_sent(n.h, &s, 0), 30);
	assert_int_equal(tx_ci(&n), 3);
	host_free(n.h);
}

/* In the middle of a frame the adapter moves, and the new one goes on. */
static void test_tso_moves(void **state)
{
	struct nic n = nic_new(5);
	struct tcp_spec s = { .mss = 100, .payload = 3000 };

	(void)state;
	put_tso(&n, &s, 3);
	qhca_doorbell(n.h->hca, 0, 0, QHCA_DB_ETH_TX, (uint64_t)n.tx_pi << 32, 0);
	assert_int_equal(hca_eth_run(n.h->fn, 7), 7);
	host_move(n.h, 5);
	host_run(n.h);
	assert_int_equal(check_sent(n.h, &s, 0), 30);
	assert_int_equal(tx_ci(&n), 3);
	assert_int_equal(COUNT(n.h, eth_tx_tso), 1);
	host_free(n.h);
}

/* The rate holds segments as it holds frames. */
static void test_tso_rate(void **state)
{
	struct nic n = nic_new(5);
	struct tcp_spec s = { .mss = 946, .payload = 15 * 946 };

	(void)state;
	hca_rate_set(n.h->fn, 8, 0);	/* 10,000 bytes, then one each microsecond */
	put_tso(&n, &s, 1);
	kick(&n);
	assert_in_range(n.h->num_sent, 8, 13);
	assert_int_equal(tx_ci(&n), 0);
	host_run_at(n.h, n.h->now + 50000000);
	assert_int_equal(check_sent(n.h, &s, 0), 15);
	assert_true(COUNT(n.h, rate_waits) > 0);
	host_free(n.h);
}

static void test_tso_errors(void **state)
{
	struct nic n = nic_new(5);
	const struct tcp_spec s = { .mss = 1000, .payload = 5000 };
	struct tcp_spec t;
	struct qhca_eth_txd *txd;
	unsigned int errors = 0;

	(void)state;
	n.buf = make_frame(&n, 100);
#define ERROR(what) do {						\
	txd = put_tso(&n, &s, 2);					\
	what;								\
	put_txd(&n, n.buf, 100, QHCA_TXD_EOP);	/* a good one behind it */ \
	n.h->num_sent = 0;						\
	kick(&n);							\
	assert_int_equal(COUNT(n.h, eth_tx_errors), ++errors);		\
	assert_int_equal(n.h->num_sent, 1);				\
	assert_int_equal(n.h->sent[0].len, 100);			\
	assert_int_equal(tx_ci(&n), n.tx_pi);				\
} while (0)
	ERROR(put_le16(&txd->mss, 0));
	ERROR(put_le16(&txd->mss, 7));
	ERROR(put_le16(&txd->mss, 1469));	/* 54 of headers, MTU 1500 */
	ERROR(put_le16(&txd->hdr_len, 58));
	ERROR(put_le16(&txd->hdr_len, 0));
	ERROR(put_le16(&txd->hdr_len, 300));
	ERROR(put_le16(&txd->csum_offset, 6));
	ERROR(put_le16(&txd->csum_start, 38));
	ERROR(put_le16(&txd->flags, QHCA_TXD_TSO));
	ERROR(put_le64(&txd->addr, 0x40));
	ERROR(put_le32(&txd->len, 65000));	/* ... and half of 5054 */
	ERROR(n.h->fn->features &= ~QHCA_FEAT_ETH_TSO);
	n.h->fn->features |= QHCA_FEAT_ETH_TSO;
	/* As long as may be. */
	n.h->num_sent = 0;
	t = s;
	t.mss = 1468;
	t.payload = QHCA_MAX_TSO_FRAME - tcp_hdr_len(&s);
	put_tso(&n, &t, 1);
	kick(&n);
	check_sent(n.h, &t, 0);
	assert_int_equal(COUNT(n.h, eth_tx_tso), 1);
	host_free(n.h);
}

/* Software that changes a frame between segments loses what is left of it. */
static void test_tso_changed(void **state)
{
	struct nic n = nic_new(5);
	const struct tcp_spec s = { .mss = 100, .payload = 3000 };
	struct qhca_eth_txd *txd;

	(void)state;
#define CHANGED(what) do {						\
	txd = put_tso(&n, &s, 1);					\
	qhca_doorbell(n.h->hca, 0, 0, QHCA_DB_ETH_TX,			\
		      (uint64_t)n.tx_pi << 32, n.h->now);		\
	n.h->num_sent = 0;						\
	assert_int_equal(hca_eth_run(n.h->fn, 4), 4);			\
	what;								\
	host_run(n.h);							\
	assert_int_equal(tx_ci(&n), n.tx_pi);				\
	assert_int_equal(n.h->fn->eth.queue[0].tx_sent, 0);		\
} while (0)
	CHANGED(put_le32(&txd->len, 454));	/* all of it has been sent */
	assert_int_equal(n.h->num_sent, 4);
	assert_int_equal(COUNT(n.h, eth_tx_errors), 1);
	CHANGED(put_le16(&txd->flags, QHCA_TXD_EOP));
	assert_int_equal(COUNT(n.h, eth_tx_errors), 2);	/* too long without TSO */
	CHANGED(put_le32(&txd->len, UINT32_MAX));
	assert_int_equal(COUNT(n.h, eth_tx_errors), 3);
	CHANGED(n.h->bad_first = get_le64(&txd->addr) + 600;
		n.h->bad_last = n.h->bad_first);
	assert_int_equal(n.h->num_sent, 5);
	assert_int_equal(COUNT(n.h, eth_tx_errors), 4);
	n.h->bad_first = n.h->bad_last = 0;
	/* Without the link frames are done. */
	CHANGED(qhca_set_link(n.h->hca, false, n.h->now));
	assert_int_equal(n.h->num_sent, 4);
	assert_int_equal(COUNT(n.h, eth_tx_errors), 4);
	assert_int_equal(COUNT(n.h, eth_tx_tso), 0);
	host_free(n.h);
}

/* Software that takes the frame back between segments can move all the same. */
static void test_tso_taken_back(void **state)
{
	struct nic n = nic_new(5);
	const struct tcp_spec s = { .mss = 100, .payload = 3000 };

	(void)state;
	put_tso(&n, &s, 3);
	qhca_doorbell(n.h->hca, 0, 0, QHCA_DB_ETH_TX, (uint64_t)n.tx_pi << 32, 0);
	assert_int_equal(hca_eth_run(n.h->fn, 7), 7);
	qhca_doorbell(n.h->hca, 0, 0, QHCA_DB_ETH_TX, 0, 0);
	host_move(n.h, 5);
	host_run(n.h);
	assert_int_equal(n.h->num_sent, 7);
	/* It begins anew with what is posted next. */
	qhca_doorbell(n.h->hca, 0, 0, QHCA_DB_ETH_TX, (uint64_t)n.tx_pi << 32, 0);
	n.h->num_sent = 0;
	host_run(n.h);
	assert_int_equal(check_sent(n.h, &s, 0), 30);
	host_free(n.h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_tso),
	cmocka_unit_test(test_tso_vlan),
	cmocka_unit_test(test_tso_budget),
	cmocka_unit_test(test_tso_moves),
	cmocka_unit_test(test_tso_rate),
	cmocka_unit_test(test_tso_errors),
	cmocka_unit_test(test_tso_changed),
	cmocka_unit_test(test_tso_taken_back),
};
TEST_MAIN(tests)
