// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Several segments of TCP in one frame, between devices that agree.
 */
#include "large.h"
#include "wire/large_segment.h"
#include "wire/pkt.h"

#define OWN	32768u
#define OVERHEAD 118u
#define LOG	7		/* of the receiver's rings */
#define MS	1000000ull

static void set_mac(struct host *h, const uint8_t mac[6])
{
	struct qhca_port_config in = { .rsvd0 = 0 };

	put_le32(&in.fields, QHCA_PORT_SET_MAC);
	memcpy(in.mac, mac, 6);
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_PORT, 0, 0, &in, sizeof(in),
				  NULL, 0), QHCA_CMD_OK);
}

/* The sender a and the receiver b have the addresses of the model's frames. */
struct two {
	struct nic a, b;
	uint32_t seen;			/* of b's completions */
};

static struct two two_new(uint32_t max_a, uint32_t max_b)
{
	struct two t = { .seen = 0 };
	struct tcp_spec s = { .mss = 100, .payload = 1 };

	tcp_whole(&s, want);
	t.a = nic_on(host_new_bundles(max_a), 0, 5);
	set_mac(t.a.h, want + 6);
	t.b = nic_on(host_new_bundles(max_b), 0, LOG);
	set_mac(t.b.h, want);
	for (unsigned int i = 0; i < 1u << LOG; i++)
		post_rx(&t.b, 2048);
	return t;
}

static void two_free(struct two *t)
{
	host_free(t->a.h);
	host_free(t->b.h);
}

static void pass(struct host *from, struct host *to)
{
	unsigned int num = from->num_sent;

	for (unsigned int i = 0; i < num; i++)
		qhca_rx_frame(to->hca, from->sent[i].data, from->sent[i].len,
			      to->now);
	host_run(to);
	from->num_sent = 0;
}

/* Send a frame of @s.  Returns how many frames of the wire that was. */
static unsigned int post(struct two *t, const struct tcp_spec *s)
{
	unsigned int before = t->a.h->num_sent;

	put_tso(&t->a, s, 2);
	kick(&t->a);
	return t->a.h->num_sent - before;
}

/* b has got what the model sends, and no more. */
static void expect_received(struct two *t, const struct tcp_spec *s)
{
	uint32_t off, part, len;

	for (off = 0; off < s->payload; off += part, t->seen++) {
		uint32_t i = t->seen;

		part = part_of(s, off, s->mss);
		len = tcp_segment(s, want, off, part);
		if (len < 60)
			memset(want + len, 0, 60 - len);
		len = len < 60 ? 60 : len;
		assert_true(rxc_valid(&t->b, i));
		assert_int_equal(get_le32(&rxc(&t->b, i)->len), len);
		assert_true(get_le32(&rxc(&t->b, i)->flags) & QHCA_RXC_CSUM_OK);
		assert_memory_equal(host_ptr(t->b.h, t->b.buf + 2048 * slot(&t->b, i)),
				    want, len);
		post_rx(&t->b, 2048);
	}
	assert_false(rxc_valid(&t->b, t->seen));
}

static const uint8_t *sent(const struct two *t, unsigned int i)
{
	assert_true(i < t->a.h->num_sent);
	return t->a.h->sent[i].data;
}

static struct qhca_bundles bundles(const struct nic *n)
{
	return qhca_query_bundles(n->h->hca);
}

/* The first frame leads to a question; its answer, and that to the PROBE, come. */
static void agree(struct two *t)
{
	struct tcp_spec s = { .mss = 1000, .payload = 2500 };
	const uint8_t *f;

	assert_int_equal(post(t, &s), 4);
	f = sent(t, 0);
	assert_int_equal(get_be16(f + 12), HCA_ETHERTYPE_PEERS);
	assert_int_equal(f[14 + 5], 1);
	for (unsigned int i = 0; i < 16; i++)
		assert_int_equal(f[14 + 16 + i], 0);
	pass(t->a.h, t->b.h);
	expect_received(t, &s);
	assert_int_equal(t->b.h->num_sent, 1);
	pass(t->b.h, t->a.h);
	assert_int_equal(t->a.h->num_sent, 1);
	assert_int_equal(t->a.h->sent[0].len, OWN + OVERHEAD);
	assert_int_equal(get_be16(sent(t, 0) + 12), HCA_ETHERTYPE_IPV4);
	pass(t->a.h, t->b.h);
	pass(t->b.h, t->a.h);
	assert_int_equal(t->a.h->num_sent, 0);
}

static void test_agreed(void **state)
{
	struct two t = two_new(OWN, OWN);
	struct tcp_spec s = { .mss = 1448, .payload = 60000, .seq = 5, .id = 9,
			      .flags = 0x98, .tcp_options = 3 };
	uint64_t bytes = COUNT(t.a.h, eth_tx_bytes);

	(void)state;
	agree(&t);
	assert_int_equal(bundles(&t.a).large_sent, 0);
	/* 42 segments: 16 in a turn of the worker, and what is left. */
	assert_int_equal(post(&t, &s), 3);
	assert_int_equal(bundles(&t.a).large_sent, 3);
	assert_int_equal(COUNT(t.a.h, eth_tx_packets), 3 + 42);
	assert_int_equal(COUNT(t.a.h, eth_tx_tso), 2);
	assert_memory_equal(sent(&t, 0) + t.a.h->sent[0].len - 8, "qhca\1\0\5\xa8", 8);
	pass(t.a.h, t.b.h);
	expect_received(&t, &s);
	assert_int_equal(bundles(&t.b).large_received, 3);
	assert_int_equal(COUNT(t.b.h, eth_rx_packets), 3 + 42);
	assert_int_equal(COUNT(t.a.h, eth_tx_bytes) - bytes,
			 COUNT(t.b.h, eth_rx_bytes));
	/* The last of them is shorter than a frame may be. */
	s = (struct tcp_spec){ .v6 = false, .mss = 500, .payload = 1501 };
	assert_int_equal(post(&t, &s), 1);
	pass(t.a.h, t.b.h);
	expect_received(&t, &s);
	assert_int_equal(COUNT(t.a.h, eth_tx_bytes) - bytes,
			 COUNT(t.b.h, eth_rx_bytes));
	s.v6 = true;
	assert_int_equal(post(&t, &s), 1);
	pass(t.a.h, t.b.h);
	expect_received(&t, &s);
	two_free(&t);
}

/* What never goes together, though the peer takes it. */
static void test_alone(void **state)
{
	static const struct tcp_spec alone[] = {
		{ .mss = 1000, .payload = 1000 },
		{ .mss = 1000, .payload = 3000, .tags = 1 },
		{ .mss = 1000, .payload = 3000, .v6 = true, .extensions = 1 },
		{ .mss = 1000, .payload = 3000, .ip_options = 1 },
	};
	struct two t = two_new(OWN, OWN);
	struct qhca_eth_txd *txd;
	struct tcp_spec s = { .mss = 1000, .payload = 3000 };

	(void)state;
	agree(&t);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(post(&t, &alone[i]), tcp_num_segments(&alone[i]));
		t.a.h->num_sent = 0;
	}
	/* Its source is not the function, to which the answer would not come. */
	set_mac(t.a.h, frame_mac);
	assert_int_equal(post(&t, &s), 3);
	t.a.h->num_sent = 0;
	tcp_whole(&s, want);
	set_mac(t.a.h, want + 6);
	/* The tag has a priority, and no VLAN. */
	txd = put_tso(&t.a, &s, 2);
	put_le16(&txd->flags, QHCA_TXD_TSO | QHCA_TXD_CSUM | QHCA_TXD_VLAN);
	put_le16(&txd->vlan, 0x4000);
	kick(&t.a);
	assert_int_equal(t.a.h->num_sent, 3);
	assert_int_equal(bundles(&t.a).large_sent, 0);
	/* What is none of this is not alone. */
	t.a.h->num_sent = 0;
	assert_int_equal(post(&t, &s), 1);
	two_free(&t);
}

/* The VLAN is another path, with an agreement of its own. */
static void test_vlan(void **state)
{
	struct two t = two_new(OWN, OWN);
	struct tcp_spec s = { .mss = 1000, .payload = 3000 };

	(void)state;
	agree(&t);
	for (unsigned int turn = 0; turn < 2; turn++) {
		struct qhca_eth_txd *txd = put_tso(&t.a, &s, 2);

		put_le16(&txd->flags, QHCA_TXD_TSO | QHCA_TXD_CSUM | QHCA_TXD_VLAN);
		put_le16(&txd->vlan, 0x4007);
		kick(&t.a);
		assert_int_equal(t.a.h->num_sent, turn ? 1 : 4);
		for (unsigned int i = 0; !turn && i < 2; i++) {
			pass(t.a.h, t.b.h);
			pass(t.b.h, t.a.h);
		}
	}
	assert_int_equal(get_be32(sent(&t, 0) + 12), 0x81004007);
	pass(t.a.h, t.b.h);
	assert_int_equal(COUNT(t.b.h, eth_rx_packets), 9);
	assert_int_equal(COUNT(t.a.h, eth_tx_bytes), COUNT(t.b.h, eth_rx_bytes));
	for (t.seen = 6; t.seen < 9; t.seen++) {
		uint8_t *f = host_ptr(t.b.h, t.b.buf + 2048 * t.seen);

		assert_int_equal(get_le16(&rxc(&t.b, t.seen)->vlan), 0x4007);
		memmove(f + 12, f + 16, 1054);
		tcp_segment(&s, want, (t.seen - 6) * 1000, 1000);
		assert_memory_equal(f, want, 1054);
	}
	two_free(&t);
}

/* Whoever does not take them gets segments. */
static void test_nobody(void **state)
{
	struct tcp_spec s = { .mss = 1000, .payload = 1000 };
	struct two t = two_new(OWN, 0);

	(void)state;
	/* One segment is no reason to ask. */
	assert_int_equal(post(&t, &s), 1);
	pass(t.a.h, t.b.h);
	expect_received(&t, &s);
	s.payload = 3000;
	assert_int_equal(post(&t, &s), 4);
	t.a.h->num_sent--;
	memmove(&t.a.h->sent[0], &t.a.h->sent[1], 3 * sizeof(t.a.h->sent[0]));
	pass(t.a.h, t.b.h);
	expect_received(&t, &s);
	assert_int_equal(t.b.h->num_sent, 0);
	assert_int_equal(post(&t, &s), 3);
	two_free(&t);
	/* The sender may not. */
	t = two_new(0, OWN);
	assert_int_equal(post(&t, &s), 3);
	two_free(&t);
}

/* A bridge that looks at IP takes away what is behind a packet: no agreement comes of it. */
static void test_trimmed(void **state)
{
	struct tcp_spec s = { .mss = 1000, .payload = 3000 };
	struct two t = two_new(OWN, OWN);

	(void)state;
	for (unsigned int turn = 0; turn < 5; turn++) {
		post(&t, &s);
		for (unsigned int i = 0; i < 4; i++) {
			struct sent *f = t.a.h->sent;

			for (unsigned int j = 0; j < t.a.h->num_sent; j++)
				if (get_be16(f[j].data + 12) == HCA_ETHERTYPE_IPV4)
					f[j].len = 14 + get_be16(f[j].data + 16);
			pass(t.a.h, t.b.h);
			pass(t.b.h, t.a.h);
		}
		expect_received(&t, &s);
		t.a.h->now += 65000 * MS;
		t.b.h->now += 65000 * MS;
	}
	assert_int_equal(bundles(&t.a).large_sent, 0);
	/* What was a PROBE is for nobody. */
	assert_int_equal(COUNT(t.b.h, rx_dropped), 5);
	two_free(&t);
}

/*
 * A PROBE without a GID that is no packet of IP shows nothing.  A packet with another header is
 * none, and goes on as any frame.
 */
static void test_probe(void **state)
{
	struct two t = two_new(OWN, OWN);
	struct tcp_spec s = { .mss = 1000, .payload = 3000 };
	static uint8_t probe[OWN + OVERHEAD];
	uint8_t *p = probe + 34;

	(void)state;
	post(&t, &s);
	pass(t.a.h, t.b.h);
	pass(t.b.h, t.a.h);
	memcpy(probe, sent(&t, 0), sizeof(probe));
	assert_int_equal(t.b.h->num_sent, 0);
	rx(&t.b, probe, sizeof(probe));
	assert_int_equal(t.b.h->num_sent, 1);
#define SILENT(change) do {						\
	uint8_t was[64];						\
									\
	memcpy(was, probe, sizeof(was));				\
	change;								\
	rx(&t.b, probe, sizeof(probe));					\
	memcpy(probe, was, sizeof(was));				\
	assert_int_equal(t.b.h->num_sent, 1);				\
} while (0)
#define GOES_ON(change) do {						\
	uint64_t dropped = COUNT(t.b.h, rx_dropped);			\
									\
	SILENT(change);							\
	assert_int_equal(COUNT(t.b.h, rx_dropped), dropped + 1);	\
} while (0)
	/* These are all fields of the header, in their order. */
	GOES_ON((probe[14] = 0x46, frame_ipv4_sum(probe + 14)));
	GOES_ON((probe[15] = 4, frame_ipv4_sum(probe + 14)));
	GOES_ON((probe[17]++, frame_ipv4_sum(probe + 14)));
	GOES_ON((probe[19] = 1, frame_ipv4_sum(probe + 14)));
	GOES_ON((probe[20] = 0x40, frame_ipv4_sum(probe + 14)));
	GOES_ON((probe[22] = 2, frame_ipv4_sum(probe + 14)));
	GOES_ON((probe[23] = 17, frame_ipv4_sum(probe + 14)));
	GOES_ON(probe[24] ^= 1);
	GOES_ON((probe[29] = 1, frame_ipv4_sum(probe + 14)));
	GOES_ON((probe[30] = 1, frame_ipv4_sum(probe + 14)));
	SILENT(p[5] = 1);
	SILENT(p[16] = 1);
	SILENT((put_be16(probe + 12, HCA_ETHERTYPE_PEERS), memmove(probe + 14, p, 32)));
	/* A part of it, in memory that is no longer. */
	for (size_t len = 14; len < 80; len++) {
		uint8_t *exact = malloc(len);

		assert_non_null(exact);
		memcpy(exact, probe, len);
		rx(&t.b, exact, len);
		/* It may be right but for what is in it. */
		if (len >= 42) {
			put_be16(exact + 16, (uint16_t)(len - 14 - HCA_TRAILER));
			frame_ipv4_sum(exact + 14);
			hca_trailer_put(exact + len - HCA_TRAILER, 0);
			rx(&t.b, exact, len);
		}
		free(exact);
	}
	probe[sizeof(probe) - 8] = 'Q';
	GOES_ON((void)0);
#undef GOES_ON
#undef SILENT
	two_free(&t);
}

/* TCP to however many neighbours takes no places from peers of RoCE, and they none from it. */
static void test_places(void **state)
{
	struct host *h = host_new_bundles(OWN);
	struct hca_path path = { .vlan = HCA_VLAN_NONE, .dmac = { 2 } };
	unsigned int tcp, roce;

	(void)state;
	memcpy(path.smac, h->fn->port.mac, 6);
	for (unsigned int i = 0; i < 200; i++) {
		path.dmac[5] = (uint8_t)i;
		hca_peer_bundle(h->fn, &path, 1000, true);
	}
	tcp = h->num_sent;
	assert_in_range(tcp, HCA_PEERS_WAYS, HCA_PEERS_WITHOUT_GID);
	memcpy(path.dgid, frame_gid4, 16);
	for (unsigned int i = 0; i < 200; i++) {
		path.dmac[5] = path.dgid[15] = (uint8_t)i;
		hca_peer_bundle(h->fn, &path, 1000, true);
	}
	roce = h->num_sent - tcp;
	assert_in_range(roce, HCA_PEERS_WITHOUT_GID + 1, HCA_PEERS);
	host_free(h);
}

/* The question is about the address that Ethernet has. */
static void test_asked(void **state)
{
	static const uint8_t other[6] = { 2, 4, 6, 8, 10, 12 };
	static uint8_t ask[60];
	struct two t = two_new(OWN, OWN);
	struct tcp_spec s = { .mss = 1000, .payload = 3000 };

	(void)state;
	post(&t, &s);
	memcpy(ask, sent(&t, 0), sizeof(ask));
	rx(&t.b, ask, sizeof(ask));
	assert_int_equal(t.b.h->num_sent, 1);
	/* RoCE has another one as well, which the queues do not. */
	assert_int_equal(set_gid(t.b.h, 2, frame_gid4, other, 0xffff), QHCA_CMD_OK);
	memcpy(ask, other, 6);
	rx(&t.b, ask, sizeof(ask));
	assert_int_equal(t.b.h->num_sent, 1);
	two_free(&t);
}

/* An agreement ends two seconds after it was renewed. */
static void test_ends(void **state)
{
	struct two t = two_new(OWN, OWN);
	struct tcp_spec s = { .mss = 1000, .payload = 3000 };

	(void)state;
	agree(&t);
	assert_int_equal(post(&t, &s), 1);
	/* It is renewed by a PROBE, as nobody tells of a loss. */
	t.a.h->num_sent = 0;
	t.a.h->now += 600 * MS;
	assert_int_equal(post(&t, &s), 2);
	pass(t.a.h, t.b.h);
	pass(t.b.h, t.a.h);
	assert_int_equal(t.a.h->num_sent, 1);
	assert_int_equal(t.a.h->sent[0].len, OWN + OVERHEAD);
	pass(t.a.h, t.b.h);
	assert_int_equal(t.b.h->num_sent, 1);
	pass(t.b.h, t.a.h);
	/* More than two seconds after it was made it holds, with a question that nobody answers. */
	t.a.h->now += 1900 * MS;
	assert_int_equal(post(&t, &s), 2);
	t.a.h->num_sent = 0;
	t.a.h->now += 100 * MS;
	assert_int_equal(post(&t, &s), 3);
	two_free(&t);
}

/* With its link the adapter forgets the peer. */
static void test_link(void **state)
{
	struct two t = two_new(OWN, OWN);
	struct tcp_spec s = { .mss = 1000, .payload = 3000 };

	(void)state;
	agree(&t);
	assert_int_equal(post(&t, &s), 1);
	t.a.h->num_sent = 0;
	qhca_set_link(t.a.h->hca, false, t.a.h->now);
	qhca_set_link(t.a.h->hca, true, t.a.h->now);
	assert_int_equal(post(&t, &s), 4);
	two_free(&t);
}

/* Frames that come anyway, for whoever. */
static void test_received(void **state)
{
	struct two t = two_new(OWN, OWN);
	struct tcp_spec s = { .mss = 1000, .payload = 12000 };
	uint32_t len = make_large(&s, 0, 12);

	(void)state;
	rx(&t.b, large, len);
	expect_received(&t, &s);
	/* It is for somebody else, which is no error. */
	large[0] ^= 4;
	rx(&t.b, large, len);
	assert_int_equal(COUNT(t.b.h, rx_dropped), 0);
	assert_int_equal(COUNT(t.b.h, eth_rx_filtered), 1);
	/* It is damaged. */
	make_large(&s, 0, 12);
	large[6000] ^= 1;
	rx(&t.b, large, len);
	assert_int_equal(COUNT(t.b.h, rx_dropped), 1);
	/* The interface is down. */
	make_large(&s, 0, 12);
	assert_int_equal(set_rx(t.b.h, 0), QHCA_CMD_OK);
	rx(&t.b, large, len);
	assert_int_equal(COUNT(t.b.h, eth_rx_filtered), 13);
	assert_int_equal(bundles(&t.b).large_received, 2);
	assert_false(rxc_valid(&t.b, t.seen));
	two_free(&t);
}

/* In the middle of a frame its sender moves to an adapter that sends none. */
static void test_moves(void **state)
{
	struct two t = two_new(OWN, OWN);
	struct tcp_spec s = { .mss = 1000, .payload = 30000 };

	(void)state;
	agree(&t);
	put_tso(&t.a, &s, 3);
	qhca_doorbell(t.a.h->hca, 0, 0, QHCA_DB_ETH_TX,
		      (uint64_t)t.a.tx_pi << 32, t.a.h->now);
	assert_int_equal(hca_eth_run(t.a.h->fn, 7), 7);
	assert_int_equal(t.a.h->num_sent, 1);
	assert_int_equal(t.a.h->sent[0].len, 54 + 7000 + HCA_TRAILER);
	t.a.h->made[0]->max_bundle = 0;
	host_move(t.a.h, 5);
	host_run(t.a.h);
	assert_int_equal(t.a.h->num_sent, 1 + 23);
	pass(t.a.h, t.b.h);
	expect_received(&t, &s);
	two_free(&t);
}

/* A frame of the ring goes on with what is left of the budget. */
static void test_budget(void **state)
{
	struct two t = two_new(OWN, OWN);
	struct tcp_spec s = { .mss = 1400, .payload = 45 * 1400 };

	(void)state;
	agree(&t);
	put_tso(&t.a, &s, 3);
	qhca_doorbell(t.a.h->hca, 0, 0, QHCA_DB_ETH_TX,
		      (uint64_t)t.a.tx_pi << 32, t.a.h->now);
	assert_int_equal(hca_eth_run(t.a.h->fn, 30), 30);
	assert_int_equal(t.a.h->num_sent, 2);
	/* There is one that cannot go with another. */
	assert_int_equal(hca_eth_run(t.a.h->fn, 1), 1);
	assert_int_equal(t.a.h->sent[2].len, 1454);
	assert_int_equal(hca_eth_run(t.a.h->fn, 30), 14);
	pass(t.a.h, t.b.h);
	expect_received(&t, &s);
	two_free(&t);
}

/* However long the headers are, there is room for what the peer takes. */
static void check_room(struct host *h)
{
	struct hca_fn *fn = h->fn;
	struct tcp_spec s = { .payload = 65000 };

	for (unsigned int options = 0; options <= 10; options++) {
		struct hca_tso tso;
		uint32_t len;

		s.tcp_options = (uint8_t)options;
		for (s.mss = 500; s.mss < 9000; s.mss = (uint16_t)(s.mss * 9 / 8)) {
			tcp_whole(&s, large);
			memcpy(large + 6, fn->port.mac, 6);
			tso = (struct hca_tso){
				.len = tcp_hdr_len(&s) + s.payload, .mss = s.mss,
				.hdr_len = (uint16_t)tcp_hdr_len(&s),
				.l4 = (uint16_t)tcp_at(&s),
			};
			assert_true(hca_tso_parse(&tso, large));
			len = hca_large_payload(fn, &tso, large, HCA_VLAN_NONE, 0,
						1000);
			assert_true(len / s.mss <= HCA_LARGE_SEGMENTS);
			assert_in_range(len, OWN - s.mss - 800, OWN);
			assert_int_equal(len % s.mss, 0);
			len += tso.hdr_len + HCA_TRAILER + HCA_VLAN_HLEN;
			assert_true(len <= OWN + OVERHEAD);
			assert_non_null(hca_tx_eth_begin(fn, len));
		}
	}
}

/* A function with a VLAN of its port, whose tag is inserted after all; b gets it with the tag. */
static void test_function(void **state)
{
	struct two t = two_new(OWN, OWN);
	struct tcp_spec s = { .mss = 1000, .payload = 12000 };
	struct qhca_vf_config vlan = { .vlan = 7, .qos = 2 };
	struct qhca_init_hca in;
	struct host *vf;
	uint64_t frame;
	struct nic n;
	uint32_t len;

	(void)state;
	agree(&t);
	check_room(t.a.h);
	vf = host_new_vf(t.a.h, 2, NULL);
	host_enable(vf);
	host_init_default(vf, &in);
	assert_int_equal(host_init_hca(vf, &in), QHCA_CMD_OK);
	put_le32(&vlan.fields, QHCA_VF_SET_VLAN);
	assert_int_equal(host_cmd(t.a.h, QHCA_CMD_SET_VF, 2, 0, &vlan, sizeof(vlan),
				  NULL, 0), QHCA_CMD_OK);
	n = nic_on(vf, 0, 5);
	tcp_whole(&s, want);
	set_mac(t.a.h, frame_mac);
	set_mac(vf, want + 6);
	for (unsigned int turn = 0; turn < 2; turn++) {
		put_tso(&n, &s, 2);
		qhca_doorbell(vf->hca, 2, 0, QHCA_DB_ETH_TX,
			      (uint64_t)n.tx_pi << 32, vf->now);
		host_run(t.a.h);
		assert_int_equal(t.a.h->num_sent, turn ? 1 : 13);
		for (unsigned int i = 0; i < t.a.h->num_sent; i++)
			assert_int_equal(get_be32(sent(&t, i) + 12), 0x81004007);
		pass(t.a.h, t.b.h);
		pass(t.b.h, t.a.h);
		if (!turn) {
			pass(t.a.h, t.b.h);
			pass(t.b.h, t.a.h);
		}
	}
	check_room(vf);
	assert_int_equal(COUNT(t.b.h, eth_rx_packets), 3 + 24);
	assert_int_equal(bundles(&t.b).large_received, 1);
	/* What software makes itself is one frame to a function of the same device. */
	s = (struct tcp_spec){ .mss = 8, .payload = 512 };
	len = make_large(&s, 0, 64);
	memcpy(large, frame_mac, 6);
	frame = host_alloc(vf, len, 1);
	memcpy(host_ptr(vf, frame), large, len);
	put_txd(&n, frame, len, QHCA_TXD_EOP);
	vlan.vlan = 0;
	put_le32(&vlan.fields, QHCA_VF_SET_VLAN);
	assert_int_equal(host_cmd(t.a.h, QHCA_CMD_SET_VF, 2, 0, &vlan, sizeof(vlan),
				  NULL, 0), QHCA_CMD_OK);
	qhca_doorbell(vf->hca, 2, 0, QHCA_DB_ETH_TX, (uint64_t)n.tx_pi << 32,
		      vf->now);
	host_run(t.a.h);
	assert_int_equal(COUNT(t.a.h, eth_rx_no_buffer), 1);
	assert_int_equal(bundles(&t.a).large_received, 0);
	two_free(&t);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_agreed),
	cmocka_unit_test(test_alone),
	cmocka_unit_test(test_vlan),
	cmocka_unit_test(test_nobody),
	cmocka_unit_test(test_trimmed),
	cmocka_unit_test(test_probe),
	cmocka_unit_test(test_places),
	cmocka_unit_test(test_asked),
	cmocka_unit_test(test_ends),
	cmocka_unit_test(test_link),
	cmocka_unit_test(test_received),
	cmocka_unit_test(test_moves),
	cmocka_unit_test(test_budget),
	cmocka_unit_test(test_function),
};
TEST_MAIN(tests)
