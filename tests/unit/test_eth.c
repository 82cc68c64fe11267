// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "nic.h"

/* ---- transmit */

static void test_tx(void **state)
{
	struct nic n = nic_new(3);
	uint64_t a = make_frame(&n, 300);

	(void)state;
	put_txd(&n, a, 100, 0);
	put_txd(&n, a + 100, 50, 0);
	put_txd(&n, a + 150, 0, 0);	/* an empty fragment */
	put_txd(&n, a + 150, 150, QHCA_TXD_EOP);
	put_txd(&n, a, 60, QHCA_TXD_EOP);
	kick(&n);
	assert_int_equal(n.h->num_sent, 2);
	assert_int_equal(n.h->sent[0].len, 300);
	assert_memory_equal(n.h->sent[0].data, host_ptr(n.h, a), 300);
	assert_int_equal(n.h->sent[1].len, 60);
	assert_int_equal(tx_ci(&n), 5);
	assert_int_equal(COUNT(n.h, eth_tx_packets), 2);
	assert_int_equal(COUNT(n.h, eth_tx_bytes), 360);
	assert_int_equal(COUNT(n.h, tx_packets), 0);
	/* The indices go around the ring many times. */
	while (n.tx_pi < 100) {
		put_txd(&n, a, 200, QHCA_TXD_EOP);
		kick(&n);
		assert_int_equal(tx_ci(&n), n.tx_pi);
	}
	host_free(n.h);
}

/* A run sends no more than its budget. */
static void test_tx_budget(void **state)
{
	struct nic n = nic_new(5);
	uint64_t a = make_frame(&n, 100);
	unsigned int i;

	(void)state;
	for (i = 0; i < 30; i++)
		put_txd(&n, a, 100, QHCA_TXD_EOP);
	qhca_doorbell(n.h->hca, 0, 0, QHCA_DB_ETH_TX, (uint64_t)n.tx_pi << 32, 0);
	assert_int_equal(hca_eth_run(n.h->fn, 7), 7);
	assert_int_equal(n.h->num_sent, 7);
	assert_true(qhca_run(n.h->hca, 0, 10).more);
	assert_int_equal(n.h->num_sent, 17);
	assert_int_equal(hca_eth_run(n.h->fn, 100), 13);
	host_free(n.h);
}

static void test_tx_short(void **state)
{
	struct nic n = nic_new(3);
	static const uint8_t zero[60];

	(void)state;
	put_txd(&n, make_frame(&n, 14), 14, QHCA_TXD_EOP);
	kick(&n);
	assert_int_equal(n.h->sent[0].len, 60);
	assert_memory_equal(n.h->sent[0].data + 14, zero, 46);
	host_free(n.h);
}

static void test_tx_vlan(void **state)
{
	struct nic n = nic_new(3);
	uint64_t a = make_frame(&n, 200);
	struct qhca_eth_txd *txd = put_txd(&n, a, 200,
					   QHCA_TXD_EOP | QHCA_TXD_VLAN);
	const uint8_t *p = host_ptr(n.h, a), *f;

	(void)state;
	put_le16(&txd->vlan, 0x3064);
	kick(&n);
	f = n.h->sent[0].data;
	assert_int_equal(n.h->sent[0].len, 204);
	assert_memory_equal(f, p, 12);
	assert_int_equal(get_be16(f + 12), 0x8100);
	assert_int_equal(get_be16(f + 14), 0x3064);
	assert_memory_equal(f + 16, p + 12, 188);
	host_free(n.h);
}

static void test_tx_csum(void **state)
{
	struct nic n = nic_new(3);
	uint64_t a = make_frame(&n, 121);
	uint8_t expect[121], *p = host_ptr(n.h, a);
	struct qhca_eth_txd *txd;
	unsigned int tag;

	(void)state;
	put_be16(p + 40, 0x1234);	/* what stands for the pseudo-header */
	memcpy(expect, p, 121);
	put_be16(expect + 40, frame_sum(p + 34, 121 - 34, 0));
	for (tag = 0; tag < 2; tag++) {
		txd = put_txd(&n, a, 100, QHCA_TXD_CSUM |
			      (tag ? QHCA_TXD_VLAN : 0));
		put_le16(&txd->csum_start, 34);
		put_le16(&txd->csum_offset, 6);
		put_txd(&n, a + 100, 21, QHCA_TXD_EOP);
		kick(&n);
		assert_memory_equal(n.h->sent[tag].data + 12 + 4 * tag,
				    expect + 12, 109);
	}
	/* A result of zero is sent as ones. */
	memset(p, 0, 121);
	put_be16(p + 34, 0xffff);
	txd = put_txd(&n, a, 121, QHCA_TXD_CSUM | QHCA_TXD_EOP);
	put_le16(&txd->csum_start, 34);
	put_le16(&txd->csum_offset, 6);
	kick(&n);
	assert_int_equal(get_be16(n.h->sent[2].data + 40), 0xffff);
	host_free(n.h);
}

static void test_tx_errors(void **state)
{
	struct nic n = nic_new(5);
	uint64_t a = make_frame(&n, 4000);
	struct qhca_eth_txd *txd;
	unsigned int i, errors = 0;

	(void)state;
#define ERROR(what) do {						\
	what;								\
	put_txd(&n, a, 100, QHCA_TXD_EOP);	/* a good one behind it */ \
	n.h->num_sent = 0;						\
	kick(&n);							\
	assert_int_equal(COUNT(n.h, eth_tx_errors), ++errors);		\
	assert_int_equal(n.h->num_sent, 1);				\
	assert_int_equal(n.h->sent[0].len, 100);			\
	assert_int_equal(tx_ci(&n), n.tx_pi);				\
} while (0)
	put_txd(&n, a, 1522, QHCA_TXD_EOP);	/* as long as may be */
	kick(&n);
	assert_int_equal(n.h->sent[0].len, 1522);
	ERROR(put_txd(&n, a, 13, QHCA_TXD_EOP));
	ERROR(put_txd(&n, a, 1523, QHCA_TXD_EOP));
	ERROR(put_txd(&n, a, UINT32_MAX, QHCA_TXD_EOP));
	ERROR(put_txd(&n, a, UINT32_MAX, 0);
	      put_txd(&n, a, 101, QHCA_TXD_EOP));
	ERROR(put_txd(&n, 0x40, 100, QHCA_TXD_EOP));
	ERROR(put_txd(&n, a, 100, QHCA_TXD_EOP | QHCA_TXD_TSO));
	ERROR(for (i = 0; i < 20; i++) put_txd(&n, a, 20, 0);
	      put_txd(&n, a, 20, QHCA_TXD_EOP));
	ERROR(txd = put_txd(&n, a, 100, QHCA_TXD_EOP | QHCA_TXD_CSUM);
	      put_le16(&txd->csum_start, 90);
	      put_le16(&txd->csum_offset, 9));
	ERROR(txd = put_txd(&n, a, 100, QHCA_TXD_EOP | QHCA_TXD_CSUM);
	      put_le16(&txd->csum_start, 0xffff);
	      put_le16(&txd->csum_offset, 0xffff));
	/* A chain may have twenty segments. */
	for (i = 0; i < 19; i++)
		put_txd(&n, a + i * 5, 5, 0);
	put_txd(&n, a + 95, 5, QHCA_TXD_EOP);
	kick(&n);
	assert_int_equal(n.h->num_sent, 2);
	assert_memory_equal(n.h->sent[1].data, host_ptr(n.h, a), 100);
	host_free(n.h);
}

/* The device does not begin a frame before its last descriptor is posted. */
static void test_tx_partial(void **state)
{
	struct nic n = nic_new(3);
	uint64_t a = make_frame(&n, 200);

	(void)state;
	put_txd(&n, a, 100, 0);
	kick(&n);
	assert_int_equal(n.h->num_sent, 0);
	assert_int_equal(tx_ci(&n), 0);
	assert_false(qhca_run(n.h->hca, n.h->now, 16).more);
	put_txd(&n, a + 100, 100, QHCA_TXD_EOP);
	kick(&n);
	assert_int_equal(n.h->num_sent, 1);
	assert_int_equal(tx_ci(&n), 2);
	host_free(n.h);
}

/*
 * The device drops a frame that is too long up to its last descriptor, even if that is
 * posted later, and counts it once.
 */
static void test_tx_skip(void **state)
{
	struct nic n = nic_new(6);
	uint64_t a = make_frame(&n, 200);
	unsigned int i;

	(void)state;
	for (i = 0; i < 30; i++)
		put_txd(&n, a, 20, 0);
	kick(&n);
	assert_int_equal(tx_ci(&n), 30);
	put_txd(&n, a, 20, 0);
	put_txd(&n, a, 20, QHCA_TXD_EOP);
	put_txd(&n, a, 100, QHCA_TXD_EOP);
	kick(&n);
	assert_int_equal(COUNT(n.h, eth_tx_errors), 1);
	assert_int_equal(n.h->num_sent, 1);
	assert_int_equal(n.h->sent[0].len, 100);
	host_free(n.h);
}

static void test_tx_insane(void **state)
{
	struct nic n = nic_new(3);
	uint64_t a = make_frame(&n, 200);

	(void)state;
	put_txd(&n, a, 100, QHCA_TXD_EOP);
	n.tx_pi = 9;			/* more than the ring holds */
	kick(&n);
	n.tx_pi = 1;
	kick(&n);
	assert_int_equal(n.h->num_sent, 0);	/* stopped until destroyed */
	assert_false(qhca_run(n.h->hca, n.h->now, 16).more);
	host_free(n.h);

	n = nic_new(3);			/* a ring that cannot be read */
	put_txd(&n, a, 100, QHCA_TXD_EOP);
	n.h->bad_first = n.tx;
	n.h->bad_last = n.tx + 31;
	kick(&n);
	assert_false(qhca_run(n.h->hca, n.h->now, 16).more);
	assert_false(hca_is_dead(n.h->fn));
	host_free(n.h);
}

static void test_tx_blocked(void **state)
{
	struct nic n = nic_new(3);
	uint64_t a = make_frame(&n, 200);

	(void)state;
	n.h->tx_full = true;
	put_txd(&n, a, 100, QHCA_TXD_EOP);
	put_txd(&n, a, 101, QHCA_TXD_EOP);
	kick(&n);
	assert_int_equal(tx_ci(&n), 0);
	n.h->tx_full = false;
	qhca_tx_ready(n.h->hca, 0);
	host_run(n.h);
	assert_int_equal(n.h->num_sent, 2);
	assert_int_equal(tx_ci(&n), 2);
	/* The link is down: the frame completes, and is sent nowhere. */
	qhca_set_link(n.h->hca, false, 0);
	put_txd(&n, a, 102, QHCA_TXD_EOP);
	kick(&n);
	assert_int_equal(n.h->num_sent, 2);
	assert_int_equal(tx_ci(&n), 3);
	/* The rate allows 10,000 bytes at once, and then one each microsecond. */
	qhca_set_link(n.h->hca, true, 0);
	hca_rate_set(n.h->fn, 8, 0);
	for (int i = 0; i < 16; i++, kick(&n))
		put_txd(&n, n.buf, 1000, QHCA_TXD_EOP);
	assert_int_equal(n.h->num_sent, 12);
	host_run_at(n.h, n.h->now + 3000000);
	assert_int_equal(n.h->num_sent, 15);
	assert_int_equal(COUNT(n.h, rate_waits), 2);
	host_free(n.h);
}

/* ---- receive */

static size_t plain(uint8_t *f)
{
	struct frame_spec s = frame_default(false);

	s.dport = 53;
	return frame_build(f, &s);
}

static void test_rx(void **state)
{
	struct nic n = nic_new(2);
	uint8_t f[QHCA_MAX_FRAME];
	size_t len = plain(f);
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		post_rx(&n, 2048);
	for (i = 0; i < 19; i++) {
		f[60] = (uint8_t)i;
		assert_false(rxc_valid(&n, i));
		rx(&n, f, len);
		assert_true(rxc_valid(&n, i));
		assert_int_equal(get_le32(&rxc(&n, i)->len), len);
		assert_int_equal(get_le16(&rxc(&n, i)->index), i % 4);
		assert_int_equal(get_le16(&rxc(&n, i)->vlan), 0xffff);
		assert_memory_equal(host_ptr(n.h, n.buf + 2048 * (i % 4)), f,
				    len);
		post_rx(&n, 2048);
	}
	assert_int_equal(COUNT(n.h, eth_rx_packets), 19);
	assert_int_equal(COUNT(n.h, eth_rx_bytes), 19 * len);
	host_free(n.h);
}

static void test_rx_no_buffer(void **state)
{
	struct nic n = nic_new(2);
	uint8_t f[QHCA_MAX_FRAME];
	size_t len = plain(f);

	(void)state;
	rx(&n, f, len);
	assert_int_equal(COUNT(n.h, eth_rx_no_buffer), 1);
	assert_true(qhca_can_receive(n.h->hca));	/* RDMA goes on */
	put_le32(host_ptr(n.h, n.rec), 5);	/* more than the ring holds */
	rx(&n, f, len);
	assert_int_equal(COUNT(n.h, eth_rx_no_buffer), 2);
	post_rx(&n, 2048);
	rx(&n, f, len);
	assert_int_equal(COUNT(n.h, eth_rx_packets), 1);
	/* A record that cannot be read changes nothing. */
	n.h->bad_first = n.rec;
	n.h->bad_last = n.rec + 3;
	rx(&n, f, len);
	assert_int_equal(COUNT(n.h, eth_rx_no_buffer), 3);
	n.h->bad_last = 0;
	/* A buffer that is no memory loses the frame, not the queue. */
	post_rx(&n, 2048);
	n.h->bad_first = n.buf + 2048;
	n.h->bad_last = n.buf + 4095;
	rx(&n, f, len);
	assert_int_equal(COUNT(n.h, eth_rx_no_buffer), 4);
	n.h->bad_last = 0;
	rx(&n, f, len);
	assert_int_equal(COUNT(n.h, eth_rx_packets), 2);
	assert_true(rxc_valid(&n, 1));
	host_free(n.h);
}

static void test_rx_truncated(void **state)
{
	struct nic n = nic_new(2);
	uint8_t f[QHCA_MAX_FRAME];
	size_t len = plain(f);

	(void)state;
	post_rx(&n, 50);
	post_rx(&n, 0);
	rx(&n, f, len);
	rx(&n, f, len);
	assert_int_equal(get_le32(&rxc(&n, 0)->len), 50);
	assert_true(get_le32(&rxc(&n, 0)->flags) & QHCA_RXC_TRUNC);
	assert_int_equal(*(uint8_t *)host_ptr(n.h, n.buf + 50), 0);
	assert_int_equal(get_le32(&rxc(&n, 1)->len), 0);
	host_free(n.h);
}

static bool delivered(struct nic *n, const uint8_t *dmac)
{
	uint64_t before = COUNT(n->h, eth_rx_packets);
	uint64_t filtered = COUNT(n->h, eth_rx_filtered);
	uint8_t f[QHCA_MAX_FRAME];
	size_t len = plain(f);

	memcpy(f, dmac, 6);
	post_rx(n, 2048);
	rx(n, f, len);
	if (COUNT(n->h, eth_rx_packets) > before)
		return true;
	assert_int_equal(COUNT(n->h, eth_rx_filtered), filtered + 1);
	put_le32(host_ptr(n->h, n->rec), --n->rx_pi);
	return false;
}

static void test_rx_filter(void **state)
{
	static const uint8_t other[6] = { 2, 2, 2, 2, 2, 2 };
	static const uint8_t bcast[6] = { 255, 255, 255, 255, 255, 255 };
	static const uint8_t group[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	static const uint8_t group2[6] = { 0x33, 0x33, 0, 0, 0, 2 };
	struct nic n = nic_new(4);
	struct qhca_mcast_list list = { .rsvd = 0 };

	(void)state;
	assert_true(delivered(&n, frame_mac));
	assert_true(delivered(&n, bcast));
	assert_false(delivered(&n, other));
	assert_false(delivered(&n, group));
	put_le32(&list.count, 1);
	memcpy(list.entry[0].mac, group, 6);
	memcpy(list.entry[1].mac, group2, 6);
#define SET_MCAST() host_cmd(n.h, QHCA_CMD_SET_MCAST, 0, 0, &list,	\
			     sizeof(list), NULL, 0)
	assert_int_equal(SET_MCAST(), QHCA_CMD_OK);
	assert_true(delivered(&n, group));
	assert_false(delivered(&n, group2));
	put_le32(&list.count, 65);
	assert_int_equal(SET_MCAST(), QHCA_CMD_BAD_PARAM);
	put_le32(&list.count, 3);	/* the third is not multicast */
	assert_int_equal(SET_MCAST(), QHCA_CMD_BAD_PARAM);
	assert_false(delivered(&n, group2));
	set_rx(n.h, QHCA_RX_ENABLE | QHCA_RX_ALLMULTI);
	assert_true(delivered(&n, group2));
	assert_false(delivered(&n, other));
	set_rx(n.h, QHCA_RX_ENABLE | QHCA_RX_PROMISC);
	assert_true(delivered(&n, other));
	set_rx(n.h, QHCA_RX_PROMISC);
	assert_false(delivered(&n, frame_mac));
	host_free(n.h);
}

/* Writes the correct checksum into a TCP or UDP frame that frame_build() has made. */
static void set_l4(uint8_t *f, const struct frame_spec *s, size_t field)
{
	size_t ip = s->tag >= 0 ? 18 : 14, l4 = ip + (s->v6 ? 40 : 20);
	uint32_t len = 8 + s->payload, sum = 0, i;
	const uint8_t *addr = f + ip + (s->v6 ? 8 : 12);

	for (i = 0; i < (s->v6 ? 32u : 8u); i += 2)
		sum += get_be16(addr + i);
	sum += s->proto + len;
	put_be16(f + l4 + field, 0);
	put_be16(f + l4 + field, frame_sum(f + l4, len, sum));
}

static bool csum_ok(struct nic *n, const uint8_t *f, size_t len)
{
	uint32_t i = n->rx_pi;

	post_rx(n, 2048);
	rx(n, f, len);
	assert_true(rxc_valid(n, i));
	return get_le32(&rxc(n, i)->flags) & QHCA_RXC_CSUM_OK;
}

static void test_rx_csum(void **state)
{
	struct nic n = nic_new(3);
	uint8_t f[QHCA_MAX_FRAME];
	struct frame_spec s;
	size_t len;
	int v6, tcp, tag;

	(void)state;
	for (v6 = 0; v6 < 2; v6++)
		for (tcp = 0; tcp < 2; tcp++)
			for (tag = 0; tag < 2; tag++) {
				s = frame_default(v6);
				s.proto = tcp ? 6 : 17;
				s.dport = 80;
				s.tag = tag ? 5 : -1;
				s.payload = 33;
				len = frame_build(f, &s);
				set_l4(f, &s, tcp ? 16 : 6);
				assert_true(csum_ok(&n, f, len));
				if (!tcp) {	/* UDP shorter than IP */
					put_be16(f + len - 33 - 8 + 4, 40);
					set_l4(f, &s, 6);
					assert_false(csum_ok(&n, f, len));
					put_be16(f + len - 33 - 8 + 4, 41);
					set_l4(f, &s, 6);
				}
				/* The checksum does not cover padding. */
				f[len] = 0xaa;
				assert_true(csum_ok(&n, f, len + 1));
				f[len - 1] ^= 4;
				assert_false(csum_ok(&n, f, len));
				f[len - 1] ^= 4;
				/* The checksum covers the addresses. */
				f[(tag ? 18 : 14) + (v6 ? 8 : 12)] ^= 1;
				if (!v6)
					frame_ipv4_sum(f + (tag ? 18 : 14));
				assert_false(csum_ok(&n, f, len));
			}
	/* Over IPv4, UDP may have no checksum. */
	s = frame_default(false);
	s.dport = 80;
	len = frame_build(f, &s);
	assert_true(csum_ok(&n, f, len));
	f[14 + 10] ^= 1;		/* the header's own checksum */
	assert_false(csum_ok(&n, f, len));
	f[14 + 10] ^= 1;
	put_be16(f + 20, 0x2000);	/* a fragment */
	frame_ipv4_sum(f + 14);
	assert_false(csum_ok(&n, f, len));
	/* The device reports nothing for other protocols, and for lengths beyond the frame. */
	s.proto = 1;
	len = frame_build(f, &s);
	assert_false(csum_ok(&n, f, len));
	s.proto = 17;
	len = frame_build(f, &s);
	put_be16(f + 14 + 2, 2000);
	frame_ipv4_sum(f + 14);
	assert_false(csum_ok(&n, f, len));
	host_free(n.h);
}

/* The engine does not read beyond frames that are cut at any octet. */
static void test_rx_short(void **state)
{
	struct nic n = nic_new(3);
	uint8_t f[QHCA_MAX_FRAME], *exact;
	struct frame_spec s;
	size_t len, cut;
	int v6, tcp;

	(void)state;
	for (v6 = 0; v6 < 2; v6++)
		for (tcp = 0; tcp < 2; tcp++) {
			s = frame_default(v6);
			s.proto = tcp ? 6 : 17;
			s.dport = 80;
			s.tag = 5;
			len = frame_build(f, &s);
			for (cut = 14; cut < len; cut++) {
				exact = malloc(cut);
				assert_non_null(exact);
				memcpy(exact, f, cut);
				assert_false(csum_ok(&n, exact, cut));
				free(exact);
			}
		}
	host_free(n.h);
}

/* ---- arming */

static void test_arm(void **state)
{
	struct nic n = nic_new(3);
	uint8_t f[QHCA_MAX_FRAME];
	size_t len = plain(f);
	uint64_t a = make_frame(&n, 100);
	unsigned int *irq = &n.h->irqs[VECTOR];

	(void)state;
	post_rx(&n, 2048);
	rx(&n, f, len);
	assert_int_equal(*irq, 0);	/* created disarmed */
	arm(&n, 0, 0);			/* a completion it has not seen */
	assert_int_equal(*irq, 1);
	arm(&n, 1, 0);
	assert_int_equal(*irq, 1);
	post_rx(&n, 2048);
	post_rx(&n, 2048);
	rx(&n, f, len);
	rx(&n, f, len);
	assert_int_equal(*irq, 2);	/* once */
	arm(&n, 3, 0);
	put_txd(&n, a, 100, QHCA_TXD_EOP);
	put_txd(&n, a, 100, QHCA_TXD_EOP);
	kick(&n);
	assert_int_equal(*irq, 3);
	arm(&n, 3, 1);			/* tx_ci has moved on */
	assert_int_equal(*irq, 4);
	arm(&n, 3, 2);
	assert_int_equal(*irq, 4);
	/* A dropped frame has no completion. */
	rx(&n, f, len);
	assert_int_equal(*irq, 4);
	host_free(n.h);
}

static void test_create_errors(void **state)
{
	struct nic n = nic_new(2);
	struct qhca_ethq_config good = config_of(&n), in;

	(void)state;
	assert_int_equal(create(&n, &good), QHCA_CMD_IN_USE);
#define CMD(op, index) host_cmd(n.h, QHCA_CMD_##op, index, 0, NULL, 0, NULL, 0)
	assert_int_equal(CMD(DESTROY_ETHQ, 16), QHCA_CMD_BAD_INDEX);
	assert_int_equal(CMD(DESTROY_ETHQ, 15), QHCA_CMD_BAD_STATE);
	assert_int_equal(CMD(DESTROY_ETHQ, 0), QHCA_CMD_OK);
	assert_int_equal(CMD(DESTROY_ETHQ, 0), QHCA_CMD_BAD_STATE);
#define BAD(change) do {						\
	in = good;							\
	change;								\
	assert_int_equal(create(&n, &in), QHCA_CMD_BAD_PARAM);		\
} while (0)
	BAD(put_le64(&in.tx_base, n.tx + 32));
	BAD(put_le64(&in.rx_base, n.rx + 16));
	BAD(put_le64(&in.rxc_base, n.rxc + 16));
	BAD(put_le64(&in.rec_base, n.rec + 4));
	BAD(in.log_tx = HCA_LIMIT_LOG_ETH_RING + 1);
	BAD(in.log_rx = 255);
	BAD(put_le16(&in.vector, 8));
	assert_int_equal(create(&n, &good), QHCA_CMD_OK);
	qhca_reset(n.h->hca, 0, 0);
	assert_false(n.h->fn->eth.queue[0].live);
	host_free(n.h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_tx),
	cmocka_unit_test(test_tx_budget),
	cmocka_unit_test(test_tx_short),
	cmocka_unit_test(test_tx_vlan),
	cmocka_unit_test(test_tx_csum),
	cmocka_unit_test(test_tx_errors),
	cmocka_unit_test(test_tx_partial),
	cmocka_unit_test(test_tx_skip),
	cmocka_unit_test(test_tx_insane),
	cmocka_unit_test(test_tx_blocked),
	cmocka_unit_test(test_rx),
	cmocka_unit_test(test_rx_no_buffer),
	cmocka_unit_test(test_rx_truncated),
	cmocka_unit_test(test_rx_filter),
	cmocka_unit_test(test_rx_csum),
	cmocka_unit_test(test_rx_short),
	cmocka_unit_test(test_arm),
	cmocka_unit_test(test_create_errors),
};
TEST_MAIN(tests)
