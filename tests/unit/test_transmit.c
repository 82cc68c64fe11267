// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "receive.h"

#include "frames.h"

static struct host *with_gids(void)
{
	struct host *h = host_new_ready();

	assert_int_equal(set_gid(h, 2, frame_gid4, frame_mac, 0xffff),
			 QHCA_CMD_OK);
	assert_int_equal(set_gid(h, 3, frame_gid6, frame_mac, 0xffff),
			 QHCA_CMD_OK);
	assert_int_equal(set_gid(h, 4, frame_gid4, frame_mac, 100),
			 QHCA_CMD_OK);
	return h;
}

/* ------------------------------------------------------------------------
 * Checksum
 */
static void test_csum(void **state)
{
	/* RFC 1071, section 3 */
	static const uint8_t rfc[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5,
				       0xf6, 0xf7 };
	uint8_t data[300];
	uint64_t rng = 1;
	unsigned int off, len, cut;
	uint32_t sum;

	(void)state;
	assert_int_equal(hca_csum_fold(hca_csum_add(0, rfc, 8)),
			 (uint16_t)~0xddf2);
	for (off = 0; off < sizeof(data); off++)
		data[off] = (uint8_t)host_random(&rng);
	for (off = 0; off < 9; off++)
		for (len = 0; len < 200; len += off + 1)
			assert_int_equal(hca_csum_fold(hca_csum_add(0,
					 data + off, len)),
					 frame_sum(data + off, len, 0));
	/* carried on at an even offset */
	for (cut = 0; cut <= 200; cut += 2) {
		sum = hca_csum_add(0, data, cut);
		sum = hca_csum_add(sum, data + cut, 201 - cut);
		assert_int_equal(hca_csum_fold(sum), frame_sum(data, 201, 0));
	}
	memset(data, 0xff, sizeof(data));
	assert_int_equal(hca_csum_fold(hca_csum_add(0, data, 300)), 0);
}

/* ------------------------------------------------------------------------
 * Steering
 */
static enum hca_steer steer(struct host *h, const struct frame_spec *s,
			    struct hca_rx_info *info)
{
	static uint8_t frame[QHCA_MAX_FRAME];

	return hca_wire_steer(h->fn, frame, frame_build(frame, s), info);
}

static void test_steer(void **state)
{
	struct host *h = with_gids();
	struct hca_rx_info info;
	struct frame_spec s = frame_default(false);

	(void)state;
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ROCE);
	assert_int_equal(info.len, 14 + 20 + 8 + 32);
	assert_int_equal(info.ip_off, 14);
	assert_int_equal(info.udp_off, 34);
	assert_int_equal(info.bth_off, 42);
	assert_int_equal(info.bth_len, 32);
	assert_int_equal(info.ip_version, 4);
	assert_int_equal(info.vlan, 0xffff);
	assert_int_equal(info.sgid_index, 2);
	assert_false(info.multicast);
	assert_memory_equal(info.sgid, s.src, 16);
	assert_memory_equal(info.dgid, s.dst, 16);

	s.tag = 0x6000 | 100;
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ROCE);
	assert_int_equal(info.vlan, 0x6064);
	assert_int_equal(info.sgid_index, 4);
	assert_int_equal(info.bth_off, 46);
	s.tag = 0x6000;			/* a priority tag is no VLAN */
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ROCE);
	assert_int_equal(info.sgid_index, 2);
	s.tag = 101;
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);

	s = frame_default(true);
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ROCE);
	assert_int_equal(info.ip_version, 6);
	assert_int_equal(info.sgid_index, 3);
	assert_int_equal(info.bth_off, 62);
	assert_memory_equal(info.sgid, s.src, 16);
	s.tag = 100;
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);
	host_free(h);
}

/* What is Ethernet's */
static void test_steer_eth(void **state)
{
	struct host *h = with_gids();
	struct hca_rx_info info;
	struct frame_spec s;
	uint8_t frame[QHCA_MAX_FRAME];
	size_t len;
	int v6;

	(void)state;
	for (v6 = 0; v6 < 2; v6++) {
		s = frame_default(v6);
		s.dport = 4790;
		assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);
		s = frame_default(v6);
		s.proto = 6;
		assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);
		s = frame_default(v6);
		s.dst[15] ^= 1;
		assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);
		s = frame_default(v6);
		s.dmac[5] ^= 1;
		assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);
	}
	/* fragments, options, two tags */
	s = frame_default(false);
	len = frame_build(frame, &s);
	put_be16(frame + 14 + 6, 0x2000);
	assert_int_equal(hca_wire_steer(h->fn, frame, len, &info),
			 HCA_STEER_ETH);
	put_be16(frame + 14 + 6, 1);
	assert_int_equal(hca_wire_steer(h->fn, frame, len, &info),
			 HCA_STEER_ETH);
	put_be16(frame + 14 + 6, 0);
	frame[14] = 0x46;
	assert_int_equal(hca_wire_steer(h->fn, frame, len, &info),
			 HCA_STEER_ETH);
	frame[14] = 0x55;
	assert_int_equal(hca_wire_steer(h->fn, frame, len, &info),
			 HCA_STEER_ETH);
	s.tag = 100;
	len = frame_build(frame, &s);
	put_be16(frame + 16, 0x8100);
	assert_int_equal(hca_wire_steer(h->fn, frame, len, &info),
			 HCA_STEER_ETH);
	/* another protocol with the same octets */
	s = frame_default(false);
	len = frame_build(frame, &s);
	put_be16(frame + 12, 0x0806);
	assert_int_equal(hca_wire_steer(h->fn, frame, len, &info),
			 HCA_STEER_ETH);
	/* before INIT_HCA everything */
	s = frame_default(false);
	h->fn->initialised = false;
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);
	h->fn->initialised = true;
	host_free(h);
}

/* Every length of every frame, cut at each octet: no read beyond it. */
static void test_steer_short(void **state)
{
	struct host *h = with_gids();
	struct hca_rx_info info;
	struct frame_spec s;
	uint8_t frame[QHCA_MAX_FRAME], *exact;
	size_t len, cut;
	int v6, tag;
	enum hca_steer got;

	(void)state;
	for (v6 = 0; v6 < 2; v6++)
		for (tag = 0; tag < 2; tag++) {
			s = frame_default(v6);
			s.tag = tag ? 0 : -1;
			len = frame_build(frame, &s);
			for (cut = 14; cut < len; cut++) {
				exact = malloc(cut);
				assert_non_null(exact);
				memcpy(exact, frame, cut);
				got = hca_wire_steer(h->fn, exact, cut,
						     &info);
				assert_true(got != HCA_STEER_ROCE);
				free(exact);
			}
		}
	host_free(h);
}

static void test_steer_malformed(void **state)
{
	struct host *h = with_gids();
	struct hca_rx_info info;
	struct frame_spec s = frame_default(false);
	uint8_t good[QHCA_MAX_FRAME], f[QHCA_MAX_FRAME];
	size_t len = frame_build(good, &s);

	(void)state;
#define DROPPED(change) do {						\
	memcpy(f, good, len);						\
	change;								\
	assert_int_equal(hca_wire_steer(h->fn, f, len, &info),		\
			 HCA_STEER_DROP);				\
} while (0)
#define RESUM frame_ipv4_sum(f + 14)
	DROPPED(f[14 + 8] ^= 1);		/* header checksum */
	DROPPED(put_be16(f + 16, 61); RESUM);	/* longer than the frame */
	DROPPED(put_be16(f + 16, 59); RESUM);	/* not as UDP says */
	DROPPED(put_be16(f + 16, 19); RESUM);	/* less than a header */
	DROPPED(put_be16(f + 16, 0); RESUM);
	DROPPED(put_be16(f + 38, 41));
	DROPPED(put_be16(f + 38, 7); put_be16(f + 16, 27); RESUM);
	DROPPED(put_be16(f + 38, 8 + 15); put_be16(f + 16, 43); RESUM);
	/* the shortest that may be one, with padding behind it */
	memcpy(f, good, len);
	put_be16(f + 38, 8 + 16);
	put_be16(f + 16, 44);
	RESUM;
	assert_int_equal(hca_wire_steer(h->fn, f, len, &info),
			 HCA_STEER_ROCE);
	assert_int_equal(info.bth_len, 16);
	assert_int_equal(info.len, 14 + 20 + 8 + 16);
	/* counted, and no more */
	f[24] ^= 1;
	qhca_rx_frame(h->hca, f, len, 0);
	assert_int_equal(COUNT(h, rx_malformed), 1);
	assert_int_equal(COUNT(h, eth_rx_filtered), 0);
	host_free(h);
}

static void test_steer_mcast(void **state)
{
	struct host *h = with_gids();
	struct hca_rx_info info;
	struct frame_spec s = frame_default(false);
	struct qhca_mgid group = { .gid = { [10] = 0xff, [11] = 0xff, 239, 1,
					    2, 3 } };

	(void)state;
	memcpy(s.dst, group.gid, 16);
	memcpy(s.dmac, (uint8_t[]){ 1, 0, 0x5e, 1, 2, 3 }, 6);
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);
	h->fn->qps.slot[5].live = 1;
	h->fn->qps.slot[5].type = QHCA_QPT_UD;
	assert_int_equal(host_cmd(h, QHCA_CMD_ATTACH_MCAST, 5, 0, &group,
				  sizeof(group), NULL, 0), QHCA_CMD_OK);
	h->fn->qps.slot[5].live = 0;
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ROCE);
	assert_true(info.multicast);
	assert_int_equal(info.sgid_index, -1);
	s.tag = 55;			/* on any VLAN */
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ROCE);
	/* a group's IP address with an address of our own is neither */
	memcpy(s.dmac, frame_mac, 6);
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);
	host_free(h);
}

static void test_rx_bounds(void **state)
{
	struct host *h = with_gids();
	static uint8_t frame[QHCA_MAX_FRAME + 1];

	(void)state;
	qhca_rx_frame(h->hca, frame, 13, 0);
	qhca_rx_frame(h->hca, frame, 0, 0);
	qhca_rx_frame(h->hca, frame, sizeof(frame), 0);
	assert_int_equal(COUNT(h, rx_dropped), 3);
	qhca_rx_frame(h->hca, frame, 14, 0);
	assert_int_equal(COUNT(h, eth_rx_filtered), 1);
	qhca_inject_fatal(h->hca);
	qhca_rx_frame(h->hca, frame, 14, 0);
	assert_int_equal(COUNT(h, eth_rx_filtered), 1);
	host_free(h);
}

/* Random octets in well-formed frames: nothing worse than a drop. */
static void test_rx_random(void **state)
{
	struct host *h = with_gids();
	uint8_t frame[QHCA_MAX_FRAME];
	uint64_t rng = 9;
	unsigned int i, k;

	(void)state;
	for (i = 0; i < 20000; i++) {
		struct frame_spec s = frame_default(host_random(&rng) % 2);
		size_t len;

		s.tag = host_random(&rng) % 2 ? -1 : 0;
		s.payload = (uint32_t)(host_random(&rng) % 200);
		len = frame_build(frame, &s);
		for (k = (unsigned int)(host_random(&rng) % 4); k > 0; k--)
			frame[12 + host_random(&rng) % (len - 12)] =
				(uint8_t)host_random(&rng);
		qhca_rx_frame(h->hca, frame, len, 0);
	}
	assert_false(hca_is_dead(h->fn));
	host_run(h);
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Sending
 */
static bool send_to(struct host *h, const uint8_t *dmac, uint32_t payload,
		    uint8_t mark)
{
	struct frame_spec s = frame_default(false);
	static uint8_t built[QHCA_MAX_FRAME];
	uint8_t *room;
	size_t len;

	s.payload = payload;
	s.dst[15] = 200;
	len = frame_build(built, &s);
	memcpy(built, dmac, 6);
	built[len - 1] = mark;
	room = hca_tx_begin(h->fn, len + 10);	/* less than asked is fine */
	if (!room)
		return false;
	memcpy(room, built, len);
	hca_tx_end(h->fn, len);
	return true;
}

static const uint8_t peer[6] = { 2, 9, 9, 9, 9, 9 };

static uint8_t mark_of(struct host *h, unsigned int i)
{
	return h->sent[i].data[h->sent[i].len - 1];
}

static void test_tx(void **state)
{
	struct host *h = with_gids();

	(void)state;
	assert_true(send_to(h, peer, 32, 7));
	hca_tx_begin(h->fn, 100);
	hca_tx_end(h->fn, 101);		/* more than was asked for: nothing */
	assert_int_equal(h->num_sent, 1);
	assert_int_equal(h->sent[0].len, 74);
	assert_int_equal(mark_of(h, 0), 7);
	assert_int_equal(COUNT(h, tx_packets), 1);
	assert_int_equal(COUNT(h, tx_bytes), 74);
	/* one begun and not ended is dropped */
	assert_non_null(hca_tx_begin(h->fn, 100));
	assert_true(send_to(h, peer, 32, 8));
	assert_int_equal(h->num_sent, 2);
	hca_tx_end(h->fn, 50);		/* without a begin: nothing */
	assert_int_equal(h->num_sent, 2);
	assert_null(hca_tx_begin(h->fn, QHCA_MAX_FRAME + 1));
	host_free(h);
}

static void test_tx_blocked(void **state)
{
	struct host *h = with_gids();

	(void)state;
	h->tx_full = true;
	assert_false(send_to(h, peer, 32, 1));
	assert_true(h->fn->hca->wire.tx_blocked);
	h->tx_full = false;
	assert_false(send_to(h, peer, 32, 1));	/* until the host says so */
	qhca_tx_ready(h->hca, 0);
	assert_true(send_to(h, peer, 32, 1));
	/* a reset forgets that the link was full, the host tells again */
	h->tx_full = true;
	assert_false(send_to(h, peer, 32, 1));
	qhca_reset(h->hca, 0);
	assert_false(h->fn->hca->wire.tx_blocked);
	assert_false(send_to(h, peer, 32, 1));
	qhca_tx_ready(h->hca, 0);
	/* a link that goes down takes everything and sends nothing */
	assert_false(send_to(h, peer, 32, 1));
	qhca_set_link(h->hca, false, 0);
	assert_true(send_to(h, peer, 32, 1));
	assert_int_equal(h->num_sent, 1);
	host_free(h);
}

static void test_loopback(void **state)
{
	struct host *h = with_gids();
	static const uint8_t other[6] = { 2, 0, 0, 0, 0, 2 };
	unsigned int i;

	(void)state;
	/* our destination GID is not ours, so the frames end as Ethernet */
	assert_true(send_to(h, frame_mac, 32, 1));
	assert_int_equal(h->num_sent, 0);
	assert_int_equal(COUNT(h, loopback_packets), 1);
	assert_int_equal(COUNT(h, eth_rx_filtered), 0);	/* not at once */
	assert_true(hca_wire_pending(h->fn->hca));
	host_run(h);
	assert_int_equal(COUNT(h, eth_rx_filtered), 1);
	/* the smac of a GID is ours too; the link does not matter */
	set_gid(h, 5, frame_gid6, other, 0xffff);
	qhca_set_link(h->hca, false, 0);
	assert_true(send_to(h, other, 32, 1));
	assert_int_equal(COUNT(h, loopback_packets), 2);
	host_run(h);
	qhca_set_link(h->hca, true, 0);
	/* bounded: a full ring takes no more, whoever it is for */
	for (i = 0; i < HCA_LOOP_FRAMES; i++)
		assert_true(send_to(h, frame_mac, 32, 1));
	assert_false(send_to(h, frame_mac, 32, 1));
	assert_false(send_to(h, peer, 32, 1));
	assert_false(h->fn->hca->wire.tx_blocked);
	assert_int_equal(hca_wire_run(h->fn->hca, 10), 10);
	assert_true(send_to(h, peer, 32, 1));
	host_run(h);
	assert_int_equal(COUNT(h, eth_rx_filtered), 2 + HCA_LOOP_FRAMES);
	host_free(h);
}

static void test_loopback_mcast(void **state)
{
	struct host *h = with_gids();
	static const uint8_t group[6] = { 1, 0, 0x5e, 1, 2, 3 };

	(void)state;
	assert_true(send_to(h, group, 32, 1));	/* no members */
	assert_int_equal(COUNT(h, loopback_packets), 0);
	h->fn->port.num_members = 1;
	assert_true(send_to(h, group, 32, 2));
	assert_int_equal(COUNT(h, loopback_packets), 1);
	assert_int_equal(h->num_sent, 2);
	h->fn->hca->wire.tx_no_loop = true;
	assert_true(send_to(h, group, 32, 3));
	assert_int_equal(COUNT(h, loopback_packets), 1);
	assert_false(h->fn->hca->wire.tx_no_loop);	/* for one frame */
	h->fn->port.num_members = 0;
	host_free(h);
}

/* ------------------------------------------------------------------------
 * The injector's place
 */
static void inject(struct host *h, enum qhca_inject_kind kind, uint64_t nth,
		   bool rx)
{
	struct qhca_inject_config cfg = { .seed = 1, .delay_ns = 1000 };
	char err[100];

	cfg.rule[kind].nth = nth;
	cfg.on_rx = rx;
	cfg.on_tx = !rx;
	assert_true(qhca_inject_set(h->hca, &cfg, err, sizeof(err)));
}

static void send_three(struct host *h)
{
	uint8_t i;

	h->num_sent = 0;
	for (i = 1; i <= 3; i++)
		assert_true(send_to(h, peer, 32, i));
	host_run(h);
}

static void test_inject_tx(void **state)
{
	struct host *h = with_gids();
	uint8_t good[QHCA_MAX_FRAME];
	size_t i, differ = 0;

	(void)state;
	send_three(h);
	memcpy(good, h->sent[1].data, 74);
	inject(h, QHCA_INJECT_DROP, 2, false);
	send_three(h);
	assert_int_equal(h->num_sent, 2);
	assert_int_equal(mark_of(h, 1), 3);
	assert_int_equal(COUNT(h, inject_dropped), 1);

	inject(h, QHCA_INJECT_DUPLICATE, 2, false);
	send_three(h);
	assert_int_equal(h->num_sent, 4);
	assert_int_equal(mark_of(h, 1), 2);
	assert_int_equal(mark_of(h, 3), 2);

	inject(h, QHCA_INJECT_REORDER, 2, false);
	send_three(h);
	assert_int_equal(h->num_sent, 3);
	assert_int_equal(mark_of(h, 1), 3);
	assert_int_equal(mark_of(h, 2), 2);

	inject(h, QHCA_INJECT_CORRUPT, 2, false);
	send_three(h);
	assert_int_equal(h->num_sent, 3);
	for (i = 0; i < 74; i++)
		if (h->sent[1].data[i] != good[i]) {
			assert_true(i >= 42);	/* BTH or later */
			differ++;
		}
	assert_int_equal(differ, 1);

	inject(h, QHCA_INJECT_DELAY, 2, false);
	send_three(h);
	assert_int_equal(h->num_sent, 2);
	assert_int_equal(qhca_run(h->hca, h->now, 1).deadline, h->now + 1000);
	host_run_at(h, h->now + 1000);
	assert_int_equal(h->num_sent, 3);
	assert_int_equal(mark_of(h, 2), 2);
	assert_int_equal(COUNT(h, inject_delayed), 1);
	/* what the sender did is counted, whatever became of it */
	assert_int_equal(COUNT(h, tx_packets), 18);
	host_free(h);
}

/* Corruption begins with the BTH, whatever the headers before it are. */
static void test_inject_offset(void **state)
{
	struct host *h = with_gids();
	uint8_t built[QHCA_MAX_FRAME], *room;
	struct frame_spec s;
	size_t len, bth, i, lowest;
	int kind, turn;

	(void)state;
	for (kind = 0; kind < 4; kind++) {
		s = frame_default(kind & 1);
		s.tag = kind & 2 ? 7 : -1;
		s.payload = 1;
		memcpy(s.dmac, peer, 6);
		len = frame_build(built, &s);
		bth = 14 + (kind & 2 ? 4 : 0) + (kind & 1 ? 40 : 20) + 8;
		assert_int_equal(bth + 1, len);
		for (turn = 0, lowest = len; turn < 20; turn++) {
			inject(h, QHCA_INJECT_CORRUPT, 1, false);
			h->num_sent = 0;
			room = hca_tx_begin(h->fn, len);
			memcpy(room, built, len);
			hca_tx_end(h->fn, len);
			for (i = 0; i < len; i++)
				if (h->sent[0].data[i] != built[i] &&
				    i < lowest)
					lowest = i;
		}
		assert_int_equal(lowest, bth);
	}
	host_free(h);
}

/* The last frame of a conversation is held, and goes by itself. */
static void test_inject_reorder_alone(void **state)
{
	struct host *h = with_gids();

	(void)state;
	inject(h, QHCA_INJECT_REORDER, 1, false);
	assert_true(send_to(h, peer, 32, 1));
	host_run(h);
	assert_int_equal(h->num_sent, 0);
	host_run_at(h, h->now + HCA_INJECT_REORDER_NS);
	assert_int_equal(h->num_sent, 1);
	host_free(h);
}

/* A link without room keeps what the injector wants to release. */
static void test_inject_blocked(void **state)
{
	struct host *h = with_gids();

	(void)state;
	inject(h, QHCA_INJECT_DELAY, 1, false);
	assert_true(send_to(h, peer, 32, 1));
	h->tx_full = true;
	host_run_at(h, 5000);
	assert_int_equal(h->num_sent, 0);
	assert_false(qhca_run(h->hca, h->now, 1).more);
	assert_int_equal(qhca_run(h->hca, h->now, 1).deadline, QHCA_NEVER);
	h->tx_full = false;
	qhca_tx_ready(h->hca, h->now);
	host_run(h);
	assert_int_equal(h->num_sent, 1);
	host_free(h);
}

/* Received frames: malformed ones stand for those delivered. */
static void test_inject_rx(void **state)
{
	struct host *h = with_gids();
	struct frame_spec s = frame_default(false), eth = frame_default(false);
	uint8_t frame[QHCA_MAX_FRAME], other[QHCA_MAX_FRAME];
	size_t len = frame_build(frame, &s), olen;

	(void)state;
	eth.dport = 53;
	olen = frame_build(other, &eth);
	inject(h, QHCA_INJECT_DROP, 1, true);
	qhca_rx_frame(h->hca, other, olen, 0);	/* not RDMA: not counted */
	assert_int_equal(COUNT(h, eth_rx_filtered), 1);
	qhca_rx_frame(h->hca, frame, len, 0);
	assert_int_equal(COUNT(h, inject_dropped), 1);
	assert_int_equal(COUNT(h, rx_icrc_errors), 0);
	qhca_rx_frame(h->hca, frame, len, 0);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 1);

	inject(h, QHCA_INJECT_DUPLICATE, 1, true);
	qhca_rx_frame(h->hca, frame, len, 0);
	host_run(h);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 3);
	inject(h, QHCA_INJECT_DELAY, 1, true);
	qhca_rx_frame(h->hca, frame, len, 0);
	host_run(h);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 3);
	host_run_at(h, 1000);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 4);
	/* reordered: behind the next one, and no later than that */
	inject(h, QHCA_INJECT_REORDER, 1, true);
	qhca_rx_frame(h->hca, frame, len, h->now);
	host_run(h);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 4);
	qhca_rx_frame(h->hca, frame, len, h->now);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 5);
	host_run(h);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 6);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_csum),
	cmocka_unit_test(test_steer),
	cmocka_unit_test(test_steer_eth),
	cmocka_unit_test(test_steer_short),
	cmocka_unit_test(test_steer_malformed),
	cmocka_unit_test(test_steer_mcast),
	cmocka_unit_test(test_rx_bounds),
	cmocka_unit_test(test_rx_random),
	cmocka_unit_test(test_tx),
	cmocka_unit_test(test_tx_blocked),
	cmocka_unit_test(test_loopback),
	cmocka_unit_test(test_loopback_mcast),
	cmocka_unit_test(test_inject_tx),
	cmocka_unit_test(test_inject_offset),
	cmocka_unit_test(test_inject_reorder_alone),
	cmocka_unit_test(test_inject_blocked),
	cmocka_unit_test(test_inject_rx),
};
TEST_MAIN(tests)
