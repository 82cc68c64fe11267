// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "receive.h"

#include "sending.h"
#include "wire/icrc.h"

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

/* Frames that belong to Ethernet */
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
	/* Fragments, IP options and two tags make a frame plain Ethernet. */
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
	/* Another protocol has the same octets. */
	s = frame_default(false);
	len = frame_build(frame, &s);
	put_be16(frame + 12, 0x0806);
	assert_int_equal(hca_wire_steer(h->fn, frame, len, &info),
			 HCA_STEER_ETH);
	/* Before INIT_HCA the device passes everything on. */
	s = frame_default(false);
	h->fn->initialised = false;
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);
	h->fn->initialised = true;
	host_free(h);
}

/* The engine does not read beyond a frame that is cut at any octet. */
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
	/* The frame is the shortest that may be one, with padding behind it. */
	memcpy(f, good, len);
	put_be16(f + 38, 8 + 16);
	put_be16(f + 16, 44);
	RESUM;
	assert_int_equal(hca_wire_steer(h->fn, f, len, &info),
			 HCA_STEER_ROCE);
	assert_int_equal(info.bth_len, 16);
	assert_int_equal(info.len, 14 + 20 + 8 + 16);
	/* The frame is counted, and nothing else happens. */
	f[24] ^= 1;
	qhca_rx_frame(h->hca, f, len, 0);
	assert_int_equal(COUNT(h, rx_malformed), 1);
	assert_int_equal(COUNT(h, eth_rx_filtered), 0);
	host_free(h);
}

static const uint8_t group_mac[6] = { 1, 0, 0x5e, 1, 2, 3 };
static const uint8_t group_gid[16] = { [10] = 0xff, 0xff, 239, 1, 2, 3 };

/* A QP that does not exist any more is a member of the group. */
static void join_group(struct host *h)
{
	struct qhca_mgid group;

	memcpy(group.gid, group_gid, 16);
	h->fn->qps.slot[5].live = 1;
	h->fn->qps.slot[5].type = QHCA_QPT_UD;
	assert_int_equal(host_cmd(h, QHCA_CMD_ATTACH_MCAST, 5, 0, &group,
				  sizeof(group), NULL, 0), QHCA_CMD_OK);
	h->fn->qps.slot[5].live = 0;
}

static void test_steer_mcast(void **state)
{
	struct host *h = with_gids();
	struct hca_rx_info info;
	struct frame_spec s = frame_default(false);

	(void)state;
	memcpy(s.dst, group_gid, 16);
	memcpy(s.dmac, group_mac, 6);
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ETH);
	join_group(h);
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ROCE);
	assert_true(info.multicast);
	assert_int_equal(info.sgid_index, -1);
	s.tag = 55;			/* on any VLAN */
	assert_int_equal(steer(h, &s, &info), HCA_STEER_ROCE);
	/* A group's IP address with a MAC address of our own belongs to neither. */
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
	/* As the frame of others, which comes by on a hub, and to a group. */
	qhca_rx_frame(h->hca, frame, sizeof(frame), 0);
	assert_int_equal(COUNT(h, eth_rx_filtered), 1);
	frame[0] = 1;
	qhca_rx_frame(h->hca, frame, sizeof(frame), 0);
	assert_int_equal(COUNT(h, rx_dropped), 3);
	frame[0] = 0;
	qhca_rx_frame(h->hca, frame, 14, 0);
	assert_int_equal(COUNT(h, eth_rx_filtered), 2);
	qhca_inject_fatal(h->hca, 0);
	qhca_rx_frame(h->hca, frame, 14, 0);
	assert_int_equal(COUNT(h, eth_rx_filtered), 2);
	host_free(h);
}

#define VFS	2u

/*
 * As the host is, but with functions that have GIDs too.  All are in a group; the last one
 * has a VLAN, and a GID with the same tag inside of it.
 */
static void add_functions(struct host *h)
{
	struct qhca_vf_config in = { .qos = 0 };

	join_group(h);
	for (uint16_t gvmi = 1; gvmi <= VFS; gvmi++) {
		struct host *vf = host_new_vf(h, gvmi, NULL);
		struct qhca_init_hca init;
		uint8_t gid[16];

		host_enable(vf);
		host_init_default(vf, &init);
		assert_int_equal(host_init_hca(vf, &init), QHCA_CMD_OK);
		for (int t = 0; t < QHCA_NUM_TABLES; t++)
			host_map_table(vf, (enum qhca_table)t);
		memcpy(gid, frame_gid4, 16);
		gid[15] = (uint8_t)(gid[15] + gvmi);
		assert_int_equal(set_gid(vf, 0, gid, vf->fn->port.mac, 0xffff),
				 QHCA_CMD_OK);
		assert_int_equal(set_gid(vf, 1, gid, vf->fn->port.mac, 7),
				 QHCA_CMD_OK);
		join_group(vf);
	}
	put_le32(&in.fields, QHCA_VF_SET_VLAN);
	put_le16(&in.vlan, 7);
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_VF, VFS, 0, &in, sizeof(in),
				  NULL, 0), QHCA_CMD_OK);
}

/* Makes the payload behind UDP's header a SEND with its ICRC. */
static void make_send(uint8_t *frame, size_t len, const struct frame_spec *s)
{
	uint8_t *ip = frame + (s->tag < 0 ? 14 : 18);
	size_t ip_len = s->v6 ? 40 : 20;
	uint8_t *bth = ip + ip_len + 8;

	bth[0] = 0x04;			/* RC SEND Only */
	bth[1] = 0;
	put_le32(frame + len - 4, hca_icrc(ip, ip_len, s->payload - 4));
}

/* A frame for one of the functions of @h, for several, or for none. */
static size_t random_frame(const struct host *h, uint8_t *frame, uint64_t *rng)
{
	struct frame_spec s = frame_default(host_random(rng) % 2);
	unsigned int to = (unsigned int)(host_random(rng) % (VFS + 4));
	static const int tags[] = { -1, -1, 0, 7 };
	size_t len;

	s.tag = tags[host_random(rng) % 4];
	s.payload = (uint32_t)(host_random(rng) % 200);
	if (to == VFS + 3) {
		s.v6 = false;
		memcpy(s.dmac, group_mac, 6);
		memcpy(s.dst, group_gid, 16);
	} else if (to > VFS) {
		memset(s.dmac, to == VFS + 1 ? 0xff : 0x0e, 6);
	} else if (to && h->of_fn[to]) {
		memcpy(s.dmac, h->of_fn[to]->fn->port.mac, 6);
		s.dst[15] = (uint8_t)(s.dst[15] + (s.v6 ? 0 : to));
	}
	len = frame_build(frame, &s);
	if (s.payload >= 16 && host_random(rng) % 2)
		make_send(frame, len, &s);
	for (uint64_t k = host_random(rng) % 4; k > 0; k--)
		frame[host_random(rng) % len] = (uint8_t)host_random(rng);
	if (host_random(rng) % 16 == 0)
		memcpy(frame + 6, h->fn->port.mac, 6);
	return len - (host_random(rng) % 8 ? 0 : host_random(rng) % len);
}

/* Gives one host shared frames, and the other the same frames in memory of its own. */
static void shared_is_alike(struct host *h, struct host *other)
{
	static uint8_t frame[QHCA_MAX_FRAME];
	uint64_t rng = 11;

	for (unsigned int i = 0; i < 20000; i++) {
		size_t len = random_frame(h, frame, &rng);
		/* The sanitizer reports a read beyond it. */
		uint8_t *exact = malloc(len);

		assert_non_null(exact);
		memcpy(exact, frame, len);
		qhca_rx_shared(h->hca, exact, len, 0);
		qhca_rx_frame(other->hca, exact, len, 0);
		free(exact);
	}
	for (uint16_t gvmi = 0; gvmi <= VFS && (!gvmi || h->of_fn[gvmi]); gvmi++) {
		for (int id = 0; id < QHCA_NUM_COUNTERS; id++)
			assert_int_equal(qhca_counter(h->hca, gvmi, id),
					 qhca_counter(other->hca, gvmi, id));
		assert_true(qhca_counter(h->hca, gvmi, QHCA_CNT_rx_packets));
		assert_true(qhca_counter(h->hca, gvmi, QHCA_CNT_rx_icrc_errors));
	}
	assert_true(COUNT(h, rx_malformed) && COUNT(h, rx_own_mac));
	host_free(h);
	host_free(other);
}

/* A frame in shared memory has the effect that it has anywhere else. */
static void test_rx_shared(void **state)
{
	static const uint8_t frame[QHCA_MAX_FRAME + 1];
	struct host *h = with_gids(), *other = with_gids();

	(void)state;
	qhca_rx_shared(h->hca, frame, 13, 0);
	qhca_rx_shared(h->hca, frame, 0, 0);
	qhca_rx_shared(h->hca, frame, sizeof(frame), 0);
	assert_int_equal(COUNT(h, rx_dropped), 3);
	for (int n = 0; n < 3; n++)
		qhca_rx_frame(other->hca, frame, 13, 0);
	shared_is_alike(h, other);
}

static void test_rx_shared_functions(void **state)
{
	struct host *h = with_gids(), *other = with_gids();

	(void)state;
	add_functions(h);
	add_functions(other);
	shared_is_alike(h, other);
}

/* A packet for one function is read where it lies, but for its headers. */
static void test_rx_in_place(void **state)
{
	struct host *h = with_gids();
	struct frame_spec s = frame_default(false);
	uint8_t frame[QHCA_MAX_FRAME];
	size_t len;

	(void)state;
	add_functions(h);
	s.payload = 200;
	memcpy(s.dmac, h->of_fn[1]->fn->port.mac, 6);
	s.dst[15]++;
	len = frame_build(frame, &s);
	make_send(frame, len, &s);
	memset(h->hca->hca.wire.private, 0xcc, QHCA_MAX_FRAME);
	qhca_rx_shared(h->hca, frame, len, 0);
	assert_int_equal(COUNT(h->of_fn[1], rx_packets), 1);
	assert_int_equal(h->hca->hca.wire.private[HCA_ROCE_HEADERS], 0xcc);
	/* With a tag on the way it is copied whole. */
	memcpy(s.dmac, h->of_fn[2]->fn->port.mac, 6);
	s.dst[15]++;
	s.tag = 7;
	len = frame_build(frame, &s);
	make_send(frame, len, &s);
	qhca_rx_shared(h->hca, frame, len, 0);
	assert_int_equal(COUNT(h->of_fn[2], rx_packets), 1);
	assert_memory_equal(h->hca->hca.wire.private, frame, len);
	host_free(h);
}

/* An ICRC is put into a packet that has none, and into nothing else. */
static void test_fill_icrc(void **state)
{
	struct host *h = with_gids();
	uint8_t frame[QHCA_MAX_FRAME], kept[QHCA_MAX_FRAME];
	const struct frame_spec spec = frame_default(false);
	size_t len;

	(void)state;
	qhca_link_without_icrc(h->hca, true);
	for (int n = 0; n < 8; n++) {
		struct frame_spec s = frame_default(n & 1);
		size_t bth, ip;

		s.tag = n & 2 ? 0x6005 : -1;
		s.payload = 100;
		len = frame_build(frame, &s);
		ip = n & 2 ? 18 : 14;
		bth = ip + (n & 1 ? 40 : 20) + 8;
		put_le32(frame + len - 4, n & 4 ? 1 : 0);
		memcpy(kept, frame, len);
		memset(frame + len, 0, 20);		/* Ethernet padding */
		qhca_fill_icrc(h->hca, frame, len + 20);
		assert_memory_equal(frame, kept, len - 4);
		assert_int_equal(get_le32(frame + len - 4), n & 4 ? 1 :
				 hca_icrc(frame + ip, bth - 8 - ip,
					  len - bth - 4));
		for (size_t cut = 0; cut < len; cut++) {
			memcpy(frame, kept, len);
			qhca_fill_icrc(h->hca, frame, cut);
			assert_memory_equal(frame, kept, len);
		}
		frame[ip + (n & 1 ? 6 : 9)] = 6;	/* TCP */
		memcpy(kept, frame, len);
		qhca_fill_icrc(h->hca, frame, len);
		assert_memory_equal(frame, kept, len);
	}
	/* A datagram of another protocol may use the port, and end with zeros. */
	for (int n = 0; n < 2; n++) {
		size_t bth = 14 + 20 + 8;

		len = frame_build(frame, &spec);
		put_le32(frame + len - 4, 0);
		if (n == 0)
			put_be16(frame + bth - 2, 0x1234);	/* checksum */
		else
			frame[bth] = 0xff;			/* opcode */
		memcpy(kept, frame, len);
		qhca_fill_icrc(h->hca, frame, len);
		assert_memory_equal(frame, kept, len);
	}
	/* On any other link 0 is a wrong ICRC, and a capture shows it. */
	qhca_link_without_icrc(h->hca, false);
	len = frame_build(frame, &spec);
	put_le32(frame + len - 4, 0);
	memcpy(kept, frame, len);
	qhca_fill_icrc(h->hca, frame, len);
	assert_memory_equal(frame, kept, len);
	host_free(h);
}

/* The worst effect of random octets in well-formed frames is a drop. */
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

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_steer),
	cmocka_unit_test(test_rx_shared),
	cmocka_unit_test(test_rx_shared_functions),
	cmocka_unit_test(test_rx_in_place),
	cmocka_unit_test(test_fill_icrc),
	cmocka_unit_test(test_steer_eth),
	cmocka_unit_test(test_steer_short),
	cmocka_unit_test(test_steer_malformed),
	cmocka_unit_test(test_steer_mcast),
	cmocka_unit_test(test_rx_bounds),
	cmocka_unit_test(test_rx_random),
};
TEST_MAIN(tests)
