// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Several Ethernet queues: which of them gets a frame, and who sends when.  test_rss.c
 * has the hash.
 */
#include "nic.h"
#include "wire/icrc.h"

#define QUEUES	3u

static const uint8_t key[QHCA_RSS_KEY_LEN] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43,
	0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb,
};

/* A table of eight entries, which name @queue in turn. */
static struct qhca_rss_config table(const uint8_t *queue, unsigned int num)
{
	struct qhca_rss_config in = { .rsvd0 = 0 };

	put_le16(&in.num_entries, 8);
	put_le16(&in.types, QHCA_RSS_TYPES);
	memcpy(in.key, key, sizeof(key));
	for (unsigned int i = 0; i < 8; i++)
		in.queue[i] = queue[i % num];
	return in;
}

static enum qhca_cmd_status set_rss(struct host *h,
				    const struct qhca_rss_config *in)
{
	return host_cmd(h, QHCA_CMD_SET_RSS, 0, 0, in, sizeof(*in), NULL, 0);
}

static void open_queues(struct host *h, struct nic *n)
{
	for (unsigned int i = 0; i < QUEUES; i++) {
		n[i] = nic_on(h, 2 * i, 4);
		for (unsigned int b = 0; b < 16; b++)
			post_rx(&n[i], 2048);
	}
}

/* A TCP frame of the flow @flow. */
static size_t flow_frame(uint8_t *f, uint16_t flow)
{
	struct frame_spec s = frame_default(flow & 1);

	s.proto = 6;
	s.dport = flow;
	return frame_build(f, &s);
}

static uint32_t received(struct nic *n)
{
	return n->h->fn->eth.queue[n->number].rx_ci;
}

/* The queue that the hash of this frame chooses in the table of all queues. */
static unsigned int chosen(struct host *h, const uint8_t *f, size_t len)
{
	return hca_rss_hash(&h->fn->eth.rss, f, len).value % 8 % QUEUES;
}

static void test_steering(void **state)
{
	static const uint8_t numbers[QUEUES] = { 0, 2, 4 };
	struct qhca_rss_config in = table(numbers, QUEUES);
	struct host *h = host_new_ready();
	unsigned int seen = 0;
	struct nic n[QUEUES];
	uint8_t f[QHCA_MAX_FRAME];

	(void)state;
	open_queues(h, n);
	assert_int_equal(set_rss(h, &in), QHCA_CMD_OK);
	for (uint16_t flow = 0; flow < 12; flow++) {
		size_t len = flow_frame(f, flow);
		unsigned int q = chosen(h, f, len);
		uint32_t i = received(&n[q]);

		arm(&n[q], (uint16_t)i, 0);
		h->irqs[(5 + 2 * q) % 8] = 0;
		rx(&n[q], f, len);
		assert_int_equal(received(&n[q]), i + 1);
		assert_int_equal(h->irqs[(5 + 2 * q) % 8], 1);
		assert_int_equal(get_le32(&rxc(&n[q], i)->hash),
				 hca_rss_hash(&h->fn->eth.rss, f, len).value);
		assert_int_equal(get_le32(&rxc(&n[q], i)->flags) &
				 (QHCA_RXC_HASH | QHCA_RXC_HASH_L4),
				 QHCA_RXC_HASH | QHCA_RXC_HASH_L4);
		seen |= 1u << q;
	}
	assert_int_equal(seen, 7);
	host_free(h);
}

/* Frames without hash, tables that name what there is not, and no table. */
static void test_lowest(void **state)
{
	static const uint8_t last = 4, absent = 5;
	struct qhca_rss_config in = table(&last, 1);
	struct host *h = host_new_ready();
	struct nic n[QUEUES];
	uint8_t f[QHCA_MAX_FRAME];
	size_t len;

	(void)state;
	open_queues(h, n);
	len = flow_frame(f, 1);
	rx(n, f, len);
	assert_int_equal(received(&n[0]), 1);
	assert_int_equal(get_le32(&rxc(n, 0)->flags), QHCA_RXC_PHASE);
	assert_int_equal(set_rss(h, &in), QHCA_CMD_OK);
	rx(n, f, len);
	assert_int_equal(received(&n[2]), 1);
	put_be16(f + 12, 0x0806);		/* ARP */
	rx(n, f, len);
	assert_int_equal(received(&n[0]), 2);
	len = flow_frame(f, 1);
	in = table(&absent, 1);
	assert_int_equal(set_rss(h, &in), QHCA_CMD_OK);
	rx(n, f, len);
	assert_int_equal(received(&n[0]), 3);
	/* The lowest of those that are left. */
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_ETHQ, 0, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	rx(n, f, len);
	assert_int_equal(received(&n[1]), 1);
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_ETHQ, 2, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	put_le16(&in.num_entries, 0);
	assert_int_equal(set_rss(h, &in), QHCA_CMD_OK);
	rx(n, f, len);
	assert_int_equal(received(&n[2]), 2);
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_ETHQ, 4, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	rx(n, f, len);
	assert_int_equal(COUNT(h, eth_rx_filtered), 1);
	host_free(h);
}

static void test_set_rss_errors(void **state)
{
	static const uint8_t zero = 0, beyond = 16;
	struct qhca_rss_config good = table(&zero, 1), in;
	struct host *h = host_new_ready();
	struct qhca_caps caps;

	(void)state;
#define BAD(change) do {						\
	in = good;							\
	change;								\
	assert_int_equal(set_rss(h, &in), QHCA_CMD_BAD_PARAM);		\
	assert_int_equal(h->fn->eth.rss.num, 0);			\
} while (0)
	BAD(put_le16(&in.num_entries, 3));
	BAD(put_le16(&in.num_entries, 256));
	BAD(put_le16(&in.types, QHCA_RSS_TYPES + 1));
	BAD(in.queue[7] = beyond);
	assert_int_equal(set_rss(h, &good), QHCA_CMD_OK);
	assert_int_equal(h->fn->eth.rss.num, 8);
	hca_caps_fill(h->fn, &caps);
	assert_int_equal(caps.max_eth_queues, 16);
	/* TEARDOWN_HCA forgets it. */
	assert_int_equal(host_cmd(h, QHCA_CMD_TEARDOWN_HCA, 0, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	assert_int_equal(h->fn->eth.rss.num, 0);
	host_free(h);
}

/* As the device was without the feature: there is one queue. */
static void test_without_rss(void **state)
{
	static const uint8_t zero = 0;
	struct qhca_rss_config in = table(&zero, 1);
	struct host *h = host_new_ready();
	struct qhca_ethq_config config;
	struct qhca_caps caps;
	struct nic n;

	(void)state;
	h->fn->features &= ~QHCA_FEAT_ETH_RSS;
	hca_caps_fill(h->fn, &caps);
	assert_int_equal(caps.max_eth_queues, 1);
	assert_int_equal(set_rss(h, &in), QHCA_CMD_UNSUPPORTED);
	n = nic_on(h, 0, 3);
	n.number = 1;
	config = config_of(&n);
	assert_int_equal(create(&n, &config), QHCA_CMD_BAD_INDEX);
	host_free(h);
}

/* The numbers of the queues in the order in which their frames were sent. */
static void sent_by(const struct host *h, uint8_t *by)
{
	for (unsigned int i = 0; i < h->num_sent; i++)
		by[i] = h->sent[i].data[20];
}

/* Queues send in turns, and each in its order. */
static void test_turns(void **state)
{
	struct host *h = host_new_ready();
	struct nic n[QUEUES];
	uint8_t by[64];

	(void)state;
	open_queues(h, n);
	for (unsigned int q = 0; q < QUEUES; q++) {
		for (unsigned int i = 0; i < 12; i++) {
			uint64_t a = make_frame(&n[q], 100);
			uint8_t *p = host_ptr(h, a);

			p[20] = (uint8_t)q;
			p[21] = (uint8_t)i;
			put_txd(&n[q], a, 100, QHCA_TXD_EOP);
		}
		qhca_doorbell(h->hca, 0, 0, QHCA_DB_ETH_TX,
			      12ull << 32 | n[q].number, h->now);
	}
	for (unsigned int i = 0; i < 9; i++)
		assert_int_equal(hca_eth_run(h->fn, 4), 4);
	assert_false(hca_eth_pending(h->fn));
	assert_int_equal(hca_eth_run(h->fn, 4), 0);
	assert_int_equal(h->num_sent, 36);
	sent_by(h, by);
	for (unsigned int i = 0; i < 36; i++) {
		assert_int_equal(by[i], i / 4 % QUEUES);
		assert_int_equal(h->sent[i].data[21], i / 12 * 4 + i % 4);
	}
	for (unsigned int q = 0; q < QUEUES; q++)
		assert_int_equal(tx_ci(&n[q]), 12);
	/* A queue that is stopped or waits for the end of a frame stops no other. */
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_ETH_TX, 99ull << 32, h->now);
	put_txd(&n[1], n[1].buf, 100, 0);
	kick(&n[1]);
	put_txd(&n[2], n[2].buf, 100, QHCA_TXD_EOP);
	kick(&n[2]);
	assert_int_equal(h->num_sent, 37);
	assert_int_equal(tx_ci(&n[2]), 13);
	assert_false(hca_eth_pending(h->fn));
	host_free(h);
}

/* The queues and the table move with the adapter, and so does what was posted. */
static void test_moves(void **state)
{
	static const uint8_t last = 4;
	struct qhca_rss_config in = table(&last, 1);
	struct host *h = host_new_ready();
	struct nic n[QUEUES];
	uint8_t f[QHCA_MAX_FRAME];
	uint32_t hash;

	(void)state;
	open_queues(h, n);
	assert_int_equal(set_rss(h, &in), QHCA_CMD_OK);
	put_txd(&n[1], n[1].buf, 100, QHCA_TXD_EOP);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_ETH_TX, 1ull << 32 | 2, h->now);
	hash = hca_rss_hash(&h->fn->eth.rss, f, flow_frame(f, 2)).value;
	host_move(h, 7);
	rx(n, f, flow_frame(f, 2));
	assert_int_equal(received(&n[2]), 1);
	assert_int_equal(get_le32(&rxc(&n[2], 0)->hash), hash);
	host_run(h);
	assert_int_equal(tx_ci(&n[1]), 1);
	assert_int_equal(h->num_sent, 1);
	/* The lowest queue is still known. */
	put_be16(f + 12, 0x0806);
	rx(n, f, 60);
	assert_int_equal(received(&n[0]), 1);
	host_free(h);
}

/* Software behind an Ethernet queue, such as Soft-RoCE, gets packets with their ICRC. */
static void test_rx_without_icrc(void **state)
{
	struct nic n = nic_new(4);
	struct frame_spec s = frame_default(false);
	uint8_t frame[QHCA_MAX_FRAME];
	size_t len, bth = 14 + 20 + 8;

	(void)state;
	assert_int_equal(set_rx(n.h, QHCA_RX_ENABLE | QHCA_RX_PROMISC), QHCA_CMD_OK);
	s.payload = 60;
	len = frame_build(frame, &s);
	put_le32(frame + len - 4, 0);
	qhca_link_without_icrc(n.h->hca, true);
	post_rx(&n, 2048);
	qhca_rx_shared(n.h->hca, frame, len, n.h->now);
	assert_true(rxc_valid(&n, 0));
	put_le32(frame + len - 4, hca_icrc(frame + 14, 20, len - bth - 4));
	assert_memory_equal(host_ptr(n.h, n.buf), frame, len);
	host_free(n.h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_steering),
	cmocka_unit_test(test_lowest),
	cmocka_unit_test(test_set_rss_errors),
	cmocka_unit_test(test_without_rss),
	cmocka_unit_test(test_turns),
	cmocka_unit_test(test_moves),
	cmocka_unit_test(test_rx_without_icrc),
};
TEST_MAIN(tests)
