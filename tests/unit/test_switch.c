// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

#define FNS	4u			/* the PF and VFs 1 to 3 */
#define LEN	64u

/*
 * No function has an Ethernet queue, so that a frame which a function receives counts
 * in its eth_rx_filtered.
 */
struct net {
	struct host *h[FNS];		/* by GVMI */
	uint64_t got[FNS];		/* frames received up to the last look */
};

static struct net net_new(void)
{
	struct net n = { .h = { host_new_ready() } };

	for (uint16_t gvmi = 1; gvmi < FNS; gvmi++)
		n.h[gvmi] = host_new_vf(n.h[0], gvmi, NULL);
	return n;
}

static const uint8_t *mac_of(const struct net *n, unsigned int gvmi)
{
	return n->h[gvmi]->fn->port.mac;
}

/* Which functions have received a frame since the last look? */
static unsigned int receivers(struct net *n)
{
	unsigned int set = 0;

	host_run(n->h[0]);
	for (unsigned int i = 0; i < FNS; i++) {
		uint64_t got = COUNT(n->h[i], eth_rx_filtered);

		set |= (unsigned int)(got != n->got[i]) << i;
		n->got[i] = got;
	}
	return set;
}

static void frame_fill(uint8_t *f, const uint8_t *to, const uint8_t *from,
		       int vlan)
{
	memset(f, 0, LEN);
	memcpy(f, to, 6);
	memcpy(f + 6, from, 6);
	put_be16(f + 12, vlan < 0 ? 0x88b5 : 0x8100);
	if (vlan >= 0) {
		put_be16(f + 14, (uint16_t)vlan);
		put_be16(f + 16, 0x88b5);
	}
}

/* Function @gvmi sends a frame from @from.  Is it on the wire? */
static bool sends(struct net *n, unsigned int gvmi, const uint8_t *to,
		  const uint8_t *from, int vlan)
{
	unsigned int before = n->h[0]->num_sent;
	uint8_t *f = hca_tx_begin(n->h[gvmi]->fn, LEN);

	assert_non_null(f);
	frame_fill(f, to, from, vlan);
	hca_tx_raw(n->h[gvmi]->fn, LEN);
	return n->h[0]->num_sent != before;
}

static void set_vf(struct net *n, unsigned int gvmi,
		   const struct qhca_vf_config *in)
{
	assert_int_equal(host_cmd(n->h[0], QHCA_CMD_SET_VF, gvmi, 0, in,
				  sizeof(*in), NULL, 0), QHCA_CMD_OK);
}

static void set_vlan(struct net *n, unsigned int gvmi, uint16_t vlan)
{
	struct qhca_vf_config in = { .qos = 5 };

	put_le32(&in.fields, QHCA_VF_SET_VLAN);
	put_le16(&in.vlan, vlan);
	set_vf(n, gvmi, &in);
}

static void set_flags(struct net *n, unsigned int gvmi, uint16_t flags)
{
	struct qhca_vf_config in = { .qos = 0 };

	put_le32(&in.fields, QHCA_VF_SET_SPOOFCHK | QHCA_VF_SET_TRUST);
	put_le16(&in.flags, flags);
	set_vf(n, gvmi, &in);
}

static void set_link(struct net *n, unsigned int gvmi, uint8_t link)
{
	struct qhca_vf_config in = { .link = link };

	put_le32(&in.fields, QHCA_VF_SET_LINK);
	set_vf(n, gvmi, &in);
}

static const uint8_t stranger[6] = { 2, 9, 9, 9, 9, 9 };
static const uint8_t bcast[6] = { 255, 255, 255, 255, 255, 255 };

/* As SET_PORT does it. */
static void choose_mac(struct net *n, unsigned int gvmi, const uint8_t mac[6])
{
	struct hca_fn *fn = n->h[gvmi]->fn;

	memcpy(fn->port.mac, mac, 6);
	fn->port.mac_set = true;
	hca_ports_publish(fn);
}

static void assign_mac(struct net *n, unsigned int gvmi, const uint8_t mac[6])
{
	struct qhca_vf_config in = { .qos = 0 };

	put_le32(&in.fields, QHCA_VF_SET_MAC);
	memcpy(in.mac, mac, 6);
	set_vf(n, gvmi, &in);
}

/* ------------------------------------------------------------------------
 * Where frames go
 */

/* The other end of a link of shared memory sees only what is sent to it. */
static void test_hidden(void **state)
{
	uint8_t want[LEN], untouched[LEN];
	struct net n = net_new();
	struct host *h = n.h[0];

	(void)state;
	qhca_link_is_shared(h->hca, true);
	memset(untouched, 0xee, LEN);		/* as the host reserves it */
	assert_false(sends(&n, 1, mac_of(&n, 2), mac_of(&n, 1), -1));
	assert_int_equal(receivers(&n), 1u << 2);
	assert_memory_equal(h->frame, untouched, LEN);
	/* It may not send from this address. */
	assert_false(sends(&n, 1, stranger, mac_of(&n, 2), -1));
	assert_memory_equal(h->frame, untouched, LEN);
	assert_true(sends(&n, 1, stranger, mac_of(&n, 1), -1));
	frame_fill(want, stranger, mac_of(&n, 1), -1);
	assert_int_equal(h->sent[h->num_sent - 1].len, LEN);
	assert_memory_equal(h->sent[h->num_sent - 1].data, want, LEN);
	/* The tag that the switch inserts is in what is sent. */
	set_vlan(&n, 1, 7);
	assert_true(sends(&n, 1, stranger, mac_of(&n, 1), -1));
	assert_int_equal(h->sent[h->num_sent - 1].len, LEN + 4);
	assert_int_equal(get_be16(h->sent[h->num_sent - 1].data + 14), 5 << 13 | 7);
	assert_memory_equal(h->sent[h->num_sent - 1].data + 16, want + 12, LEN - 12);
	/* Without a peer in the same memory the frame is built in the host's room. */
	qhca_link_is_shared(h->hca, false);
	set_vlan(&n, 1, 0);
	assert_false(sends(&n, 1, mac_of(&n, 2), mac_of(&n, 1), -1));
	assert_int_equal(receivers(&n), 1u << 2);
	assert_memory_equal(h->frame, mac_of(&n, 2), 6);
	host_free(h);
}

/* A VF that imitates an address does not get its owner's frames. */
static void test_claim(void **state)
{
	struct net n = net_new();
	uint8_t mac[6];

	(void)state;
	memcpy(mac, mac_of(&n, 2), 6);
	choose_mac(&n, 1, mac);			/* VF 2's permanent one */
	assert_false(sends(&n, 3, mac, mac_of(&n, 3), -1));
	assert_int_equal(receivers(&n), 1u << 2);
	choose_mac(&n, 1, mac_of(&n, 0));
	assert_false(sends(&n, 3, mac_of(&n, 0), mac_of(&n, 3), -1));
	assert_int_equal(receivers(&n), 1u << 0);

	/* Two functions have the address: the frame goes to the lower GVMI. */
	memcpy(mac, stranger, 6);
	choose_mac(&n, 2, mac);
	choose_mac(&n, 1, mac);
	assert_false(sends(&n, 3, mac, mac_of(&n, 3), -1));
	assert_int_equal(receivers(&n), 1u << 1);
	assign_mac(&n, 2, mac);			/* ... but what SET_VF says */
	assert_false(sends(&n, 3, mac, mac_of(&n, 3), -1));
	assert_int_equal(receivers(&n), 1u << 2);
	host_free(n.h[0]);
}

static void test_owner(void **state)
{
	struct net n = net_new();

	(void)state;
	for (unsigned int a = 0; a < FNS; a++)
		for (unsigned int b = 0; b < FNS; b++) {
			assert_false(sends(&n, a, mac_of(&n, b), mac_of(&n, a),
					   -1));
			assert_int_equal(receivers(&n), 1u << b);
		}
	assert_int_equal(COUNT(n.h[1], switched_packets), FNS - 1);
	assert_int_equal(COUNT(n.h[1], loopback_packets), 1);
	host_free(n.h[0]);
}

static void test_wire(void **state)
{
	struct net n = net_new();
	uint8_t f[LEN];

	(void)state;
	for (unsigned int a = 0; a < FNS; a++) {
		assert_true(sends(&n, a, stranger, mac_of(&n, a), -1));
		assert_int_equal(receivers(&n), 0);
		assert_true(sends(&n, a, bcast, mac_of(&n, a), -1));
		assert_int_equal(receivers(&n), 0xf & ~(1u << a));
		frame_fill(f, mac_of(&n, a), stranger, -1);
		qhca_rx_frame(n.h[0]->hca, f, LEN, 0);
		assert_int_equal(receivers(&n), 1u << a);
	}
	frame_fill(f, bcast, stranger, -1);
	qhca_rx_frame(n.h[0]->hca, f, LEN, 0);
	assert_int_equal(receivers(&n), 0xf);
	frame_fill(f, stranger, mac_of(&n, 2), -1);
	qhca_rx_frame(n.h[0]->hca, f, LEN, 0);
	/* The PF receives the frame. */
	assert_int_equal(receivers(&n), 1);
	assert_int_equal(COUNT(n.h[2], rx_own_mac), 1);
	/* A frame never returns to its sender. */
	assert_int_equal(n.h[0]->num_sent, 2 * FNS);
	host_free(n.h[0]);
}

/* A function that is not enabled owns nothing and receives nothing. */
static void test_absent(void **state)
{
	struct net n = net_new();

	(void)state;
	qhca_vf_enable(n.h[0]->hca, 3, false, 0);
	assert_true(sends(&n, 0, mac_of(&n, 3), mac_of(&n, 0), -1));
	assert_int_equal(receivers(&n), 0);
	assert_true(sends(&n, 1, bcast, mac_of(&n, 1), -1));
	assert_int_equal(receivers(&n), 5);
	host_free(n.h[0]);
}

/* A dead function receives nothing, and neither does anybody else in its place. */
static void test_dead_owner(void **state)
{
	struct net n = net_new();

	(void)state;
	choose_mac(&n, 1, mac_of(&n, 2));
	set_flags(&n, 3, QHCA_VF_TRUST);
	n.h[3]->fn->port.rx_flags = QHCA_RX_ENABLE | QHCA_RX_PROMISC;
	hca_ports_publish(n.h[3]->fn);
	qhca_inject_fatal(n.h[0]->hca, 2);
	assert_false(sends(&n, 0, mac_of(&n, 2), mac_of(&n, 0), -1));
	assert_int_equal(receivers(&n), 0);
	host_free(n.h[0]);
}

/* What is on its way to a function that is reset is lost, and nothing else is. */
static void test_reset_drops_its_own(void **state)
{
	struct net n = net_new();

	(void)state;
	sends(&n, 1, mac_of(&n, 2), mac_of(&n, 1), -1);
	sends(&n, 1, mac_of(&n, 3), mac_of(&n, 1), -1);
	sends(&n, 1, bcast, mac_of(&n, 1), -1);
	sends(&n, 1, mac_of(&n, 2), mac_of(&n, 1), -1);
	qhca_reset(n.h[0]->hca, 2, 0);
	assert_int_equal(receivers(&n), 9);
	assert_int_equal(COUNT(n.h[3], switched_packets), 2);
	assert_int_equal(COUNT(n.h[2], switched_packets), 0);
	host_free(n.h[0]);
}

static unsigned int sends_until_full(struct net *n, unsigned int gvmi)
{
	unsigned int num = 0;

	for (; hca_tx_begin(n->h[gvmi]->fn, LEN); num++)
		sends(n, gvmi, mac_of(n, 2), mac_of(n, gvmi), -1);
	assert_null(hca_tx_eth_begin(n->h[gvmi]->fn, LEN));
	return num;
}

/*
 * No frame begins without room for its copy, and all that were sent arrive.  A function
 * that floods the others leaves each of them room.
 */
static void test_room(void **state)
{
	struct net n = net_new();

	(void)state;
	assert_int_equal(sends_until_full(&n, 1), HCA_LOOP_FRAMES - 3);
	assert_non_null(hca_tx_eth_begin(n.h[3]->fn, LEN));
	assert_int_equal(sends_until_full(&n, 3), 1);
	assert_int_equal(sends_until_full(&n, 0), 1);
	assert_int_equal(sends_until_full(&n, 2), 1);
	receivers(&n);
	assert_int_equal(COUNT(n.h[2], switched_packets), HCA_LOOP_FRAMES - 1);
	assert_int_equal(COUNT(n.h[2], loopback_packets), 1);
	assert_non_null(hca_tx_eth_begin(n.h[3]->fn, LEN));
	host_free(n.h[0]);
}

/* Functions that send at the same time have equal shares; a reset gives its share back. */
static void test_room_is_shared(void **state)
{
	struct net n = net_new();

	(void)state;
	sends(&n, 3, mac_of(&n, 2), mac_of(&n, 3), -1);
	assert_int_equal(sends_until_full(&n, 1), (HCA_LOOP_FRAMES - 2) / 2);
	assert_int_equal(sends_until_full(&n, 3), (HCA_LOOP_FRAMES - 2) / 2 - 1);
	qhca_reset(n.h[0]->hca, 2, 0);		/* to which they all went */
	assert_int_equal(n.h[0]->hca->hca.wire.loop_places.fns, 0);
	assert_int_equal(sends_until_full(&n, 1), HCA_LOOP_FRAMES - 3);
	host_free(n.h[0]);
}

/* Each receiver of a frame is paid for. */
static void test_receivers_are_paid(void **state)
{
	struct net n = net_new();
	struct hca_fn *fn = n.h[1]->fn;
	int64_t first;

	(void)state;
	hca_rate_set(fn, 1000, 0);
	sends(&n, 1, mac_of(&n, 2), mac_of(&n, 1), -1);
	first = fn->rate.max.level;
	assert_int_equal(first, (1000ll * 10000 - LEN * 8) * 1000);
	sends(&n, 1, bcast, mac_of(&n, 1), -1);	/* the wire, and three functions */
	assert_int_equal(first - fn->rate.max.level, 4 * LEN * 8000);
	sends(&n, 1, stranger, mac_of(&n, 1), -1);
	assert_int_equal(first - fn->rate.max.level, 5 * LEN * 8000);
	host_free(n.h[0]);
}

/* Frames of Ethernet queues: to others, and never back to the sender. */
static void test_ethernet(void **state)
{
	struct net n = net_new();
	uint8_t *f;

	(void)state;
	for (unsigned int to = 0; to < FNS; to++) {
		f = hca_tx_eth_begin(n.h[1]->fn, LEN);
		frame_fill(f, mac_of(&n, to), mac_of(&n, 1), -1);
		assert_true(hca_tx_eth_end(n.h[1]->fn, LEN));
		assert_int_equal(receivers(&n), to == 1 ? 0 : 1u << to);
	}
	assert_int_equal(n.h[0]->num_sent, 1);
	host_free(n.h[0]);
}

/* ------------------------------------------------------------------------
 * Properties of a VF
 */
static void test_vlan(void **state)
{
	struct net n = net_new();
	const uint8_t *sent;

	(void)state;
	set_vlan(&n, 1, 7);
	set_vlan(&n, 2, 7);
	assert_false(sends(&n, 1, mac_of(&n, 2), mac_of(&n, 1), -1));
	assert_int_equal(receivers(&n), 4);
	/* VF 3 is on no VLAN: its frame is not for VF 1. */
	assert_true(sends(&n, 3, mac_of(&n, 1), mac_of(&n, 3), -1));
	assert_int_equal(receivers(&n), 0);
	assert_false(sends(&n, 3, mac_of(&n, 1), mac_of(&n, 3), 0x2007));
	assert_int_equal(receivers(&n), 2);
	/* Its frames have the tag on the wire. */
	assert_true(sends(&n, 1, bcast, mac_of(&n, 1), -1));
	assert_int_equal(receivers(&n), 0xd);
	sent = n.h[0]->sent[n.h[0]->num_sent - 1].data;
	assert_int_equal(n.h[0]->sent[n.h[0]->num_sent - 1].len, LEN + 4);
	assert_int_equal(get_be16(sent + 12), 0x8100);
	assert_int_equal(get_be16(sent + 14), 5 << 13 | 7);
	assert_int_equal(get_be16(sent + 16), 0x88b5);
	assert_memory_equal(sent + 6, mac_of(&n, 1), 6);
	/* The frame has a tag of its own. */
	assert_false(sends(&n, 1, bcast, mac_of(&n, 1), 9));
	assert_int_equal(receivers(&n), 0);
	assert_int_equal(COUNT(n.h[1], switch_dropped), 1);
	host_free(n.h[0]);
}

static void test_link(void **state)
{
	struct net n = net_new();

	(void)state;
	set_link(&n, 1, QHCA_VF_LINK_DOWN);
	assert_int_equal(qhca_reg_read(n.h[0]->hca, 1, QHCA_REG_LINK, 0) & 1, 0);
	assert_false(sends(&n, 1, mac_of(&n, 2), mac_of(&n, 1), -1));
	assert_false(sends(&n, 1, bcast, mac_of(&n, 1), -1));
	assert_int_equal(COUNT(n.h[1], switch_dropped), 2);
	assert_false(sends(&n, 2, mac_of(&n, 1), mac_of(&n, 2), -1));
	assert_int_equal(receivers(&n), 0);
	assert_int_equal(COUNT(n.h[1], rx_dropped), 1);
	/* Between functions the port's link does not matter. */
	qhca_set_link(n.h[0]->hca, false, 0);
	set_link(&n, 1, QHCA_VF_LINK_UP);
	assert_int_equal(qhca_reg_read(n.h[0]->hca, 1, QHCA_REG_LINK, 0) & 1, 1);
	assert_int_equal(qhca_reg_read(n.h[0]->hca, 2, QHCA_REG_LINK, 0) & 1, 0);
	assert_false(sends(&n, 1, mac_of(&n, 2), mac_of(&n, 1), -1));
	assert_int_equal(receivers(&n), 4);
	assert_false(sends(&n, 1, stranger, mac_of(&n, 1), -1));
	host_free(n.h[0]);
}

static void test_spoof(void **state)
{
	struct net n = net_new();

	(void)state;
	assert_false(sends(&n, 1, mac_of(&n, 2), mac_of(&n, 3), -1));
	assert_false(sends(&n, 1, bcast, stranger, -1));
	assert_int_equal(receivers(&n), 0);
	assert_int_equal(COUNT(n.h[1], spoofed), 2);
	set_flags(&n, 1, 0);
	assert_false(sends(&n, 1, mac_of(&n, 2), mac_of(&n, 3), -1));
	assert_int_equal(receivers(&n), 4);
	/* The PF may send any frame. */
	assert_false(sends(&n, 0, mac_of(&n, 2), mac_of(&n, 3), -1));
	assert_int_equal(receivers(&n), 4);
	host_free(n.h[0]);
}

/* A frame to the RoCEv2 port whose source is not a GID of the VF. */
static bool sends_roce(struct net *n, uint8_t last)
{
	uint64_t before = COUNT(n->h[1], spoofed);
	uint8_t *f = hca_tx_begin(n->h[1]->fn, LEN);

	frame_fill(f, mac_of(n, 2), mac_of(n, 1), -1);
	put_be16(f + 12, 0x0800);
	f[14] = 0x45;
	f[23] = 17;
	put_be32(f + 26, 0x0a000000u | last);
	put_be16(f + 36, 4791);
	hca_tx_raw(n->h[1]->fn, LEN);
	return COUNT(n->h[1], spoofed) == before;
}

static void test_spoof_roce(void **state)
{
	struct net n = net_new();
	struct hca_gid *gid = &n.h[1]->fn->port.gid[3];

	(void)state;
	assert_false(sends_roce(&n, 1));
	gid->flags = QHCA_GID_VALID | QHCA_GID_IPV4;
	gid->gid[10] = gid->gid[11] = 0xff;
	gid->gid[12] = 10;
	gid->gid[15] = 1;
	assert_true(sends_roce(&n, 1));
	assert_false(sends_roce(&n, 2));
	host_free(n.h[0]);
}

/*
 * Ways to wrap a packet up so that a receiver finds RoCE in it and the device might not.
 * Each letter is a header; W ends the frame.
 *   t, a, q  tags of 802.1Q, 802.1ad, and the older 0x9100
 *   4, 6, 1  IPv4, with o: options, F: the first fragment, L: a later one; IPv6; the GRH
 *            of RoCEv1
 *   h d r x  extension headers: hop-by-hop and destination options, routing (two units),
 *   f l      AH; the headers of a first fragment and a later one
 *   U D T m  UDP to the RoCEv2 port and to another one, TCP, ICMPv6
 */
enum fate { IF_OURS, ALWAYS, NEVER };

static const struct {
	const char *way;
	enum fate fate;
} ways[] = {
	{ "4U", IF_OURS }, { "4oU", IF_OURS }, { "4FU", IF_OURS },
	{ "4LU", ALWAYS }, { "4T", ALWAYS }, { "4D", ALWAYS },
	{ "4xU", IF_OURS }, { "4oW", NEVER }, { "4W", NEVER }, { "4FxW", NEVER },
	{ "t4U", IF_OURS }, { "tt4U", IF_OURS }, { "a4U", IF_OURS },
	{ "at6U", IF_OURS }, { "q6hU", IF_OURS }, { "tttt4U", IF_OURS },
	{ "ttttt4T", NEVER }, { "tt4T", ALWAYS }, { "tW", NEVER },
	{ "6U", IF_OURS }, { "6D", ALWAYS }, { "6m", ALWAYS },
	{ "6hU", IF_OURS }, { "6hm", ALWAYS }, { "6hdrdU", IF_OURS },
	{ "6rxU", IF_OURS }, { "6fU", IF_OURS }, { "6hfdU", IF_OURS },
	{ "6lU", ALWAYS }, { "6fdW", NEVER }, { "6hW", NEVER }, { "6W", NEVER },
	{ "6dddddddddm", NEVER }, { "1U", IF_OURS }, { "t1U", IF_OURS },
};

static uint16_t ethertype_of(char c)
{
	switch (c) {
	case 't': return 0x8100;
	case 'a': return 0x88a8;
	case 'q': return 0x9100;
	case '4': return 0x0800;
	case '6': return 0x86dd;
	case '1': return 0x8915;
	default: return 0;
	}
}

/* The number of the header @c in the one before it; of W: UDP, which is not there. */
static uint8_t proto_of(char c)
{
	switch (c) {
	case 'h': return 0;
	case 'd': return 60;
	case 'r': return 43;
	case 'x': return 51;
	case 'f': case 'l': return 44;
	case 'T': return 6;
	case 'm': return 58;
	default: return 17;
	}
}

static size_t add_ip(uint8_t *p, const char *at, uint8_t source)
{
	if (*at != '4') {
		p[0] = 0x60;
		p[6] = proto_of(at[1]);
		p[8] = 0xfe;
		p[9] = 0x80;
		p[23] = source;
		return 40;
	}
	p[0] = at[1] == 'o' ? 0x47 : 0x45;
	p[6] = at[1] == 'F' ? 0x20 : 0;
	p[7] = at[1] == 'L';
	p[9] = proto_of(strchr("oFL", at[1]) ? at[2] : at[1]);
	put_be32(p + 12, 0x0a000000u | source);
	return 20;
}

/* Add what stands for @at[0]. */
static size_t add_header(uint8_t *p, const char *at, uint8_t source)
{
	switch (*at) {
	case 't': case 'a': case 'q':
		put_be16(p, 7);
		return 2;
	case '4': case '6': case '1':
		return add_ip(p, at, source);
	case 'F': case 'L':
		return 0;
	case 'o':
		return at[1] == 'W' ? 0 : 8;
	case 'U': case 'D':
		put_be16(p + 2, *at == 'U' ? 4791 : 53);
		return 8;
	case 'T': case 'm':
		return 20;
	}
	p[0] = proto_of(at[1]);
	p[1] = *at == 'r' ? 1 : *at == 'x' ? 2 : 0;
	p[3] = *at == 'l' ? 8 : 1;
	return *at == 'r' || *at == 'x' ? 16 : 8;
}

static size_t wrap_up(uint8_t *f, const char *way, uint8_t source)
{
	size_t len = 12;

	for (const char *at = way; *at && *at != 'W'; at++) {
		if (ethertype_of(*at)) {
			put_be16(f + len, ethertype_of(*at));
			len += 2;
		}
		len += add_header(f + len, at, source);
	}
	if (way[strlen(way) - 1] != 'W')
		return len + 20;
	return len > HCA_ETH_HLEN ? len : HCA_ETH_HLEN;
}

static void test_spoof_wrapped(void **state)
{
	struct net n = net_new();
	struct hca_fn *fn = n.h[1]->fn;

	(void)state;
	fn->port.gid[3] = (struct hca_gid){
		.gid = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 },
		.flags = QHCA_GID_VALID | QHCA_GID_IPV4,
	};
	fn->port.gid[2] = (struct hca_gid){
		.gid = { 0xfe, 0x80, [15] = 1 }, .flags = QHCA_GID_VALID,
	};
	for (unsigned int i = 0; i < 2 * sizeof(ways) / sizeof(*ways); i++) {
		const char *way = ways[i / 2].way;
		bool ours = i & 1, wanted = ways[i / 2].fate == ALWAYS ||
			(ours && ways[i / 2].fate == IF_OURS);
		uint64_t before = COUNT(n.h[1], spoofed);
		uint8_t *f = hca_tx_begin(fn, 300);
		size_t len;

		memset(f, 0, 300);
		memcpy(f, stranger, 6);
		memcpy(f + 6, mac_of(&n, 1), 6);
		len = wrap_up(f, way, ours ? 1 : 2);
		/* The octets behind the frame must not matter. */
		put_be16(f + len + 2, 53);
		hca_tx_raw(fn, len);
		if (wanted != (COUNT(n.h[1], spoofed) == before))
			fail_msg("%s from %s address", way,
				 ours ? "its own" : "another");
	}
	host_free(n.h[0]);
}

/* The tag of a VF's VLAN is the only one. */
static void test_vlan_own_tags(void **state)
{
	static const uint16_t types[] = { 0x8100, 0x88a8, 0x9100 };
	struct net n = net_new();

	(void)state;
	set_vlan(&n, 1, 7);
	for (unsigned int i = 0; i < 3; i++) {
		uint8_t *f = hca_tx_begin(n.h[1]->fn, LEN);

		frame_fill(f, stranger, mac_of(&n, 1), 9);
		put_be16(f + 12, types[i]);
		hca_tx_raw(n.h[1]->fn, LEN);
		assert_int_equal(COUNT(n.h[1], switch_dropped), i + 1);
	}
	host_free(n.h[0]);
}

/* A GID's MAC gives a VF no frames of others, unless it may send from it. */
static void test_smac(void **state)
{
	struct net n = net_new();
	struct hca_fn *vf = n.h[1]->fn;

	(void)state;
	memcpy(vf->port.gid[0].smac, mac_of(&n, 2), 6);
	vf->port.gid[0].flags = QHCA_GID_VALID;
	hca_gids_changed(vf);
	assert_false(sends(&n, 3, mac_of(&n, 2), mac_of(&n, 3), -1));
	assert_int_equal(receivers(&n), 4);
	set_flags(&n, 1, 0);
	assert_false(sends(&n, 3, mac_of(&n, 2), mac_of(&n, 3), -1));
	/* The address is the permanent one of VF 2. */
	assert_int_equal(receivers(&n), 4);
	memcpy(vf->port.gid[0].smac, stranger, 6);
	hca_gids_changed(vf);
	assert_false(sends(&n, 3, stranger, mac_of(&n, 3), -1));
	assert_int_equal(receivers(&n), 2);
	host_free(n.h[0]);
}

/* Without trust a VF gets no foreign frames, whatever it asks for. */
static void test_trust(void **state)
{
	struct net n = net_new();
	struct hca_fn *vf = n.h[1]->fn;

	(void)state;
	vf->port.rx_flags = QHCA_RX_ENABLE | QHCA_RX_PROMISC | QHCA_RX_ALLMULTI;
	hca_ports_publish(vf);
	assert_int_equal(hca_rx_flags(vf), QHCA_RX_ENABLE);
	assert_true(sends(&n, 2, stranger, mac_of(&n, 2), -1));
	assert_int_equal(receivers(&n), 0);
	set_flags(&n, 1, QHCA_VF_TRUST);
	assert_int_equal(hca_rx_flags(vf), vf->port.rx_flags);
	assert_true(sends(&n, 2, stranger, mac_of(&n, 2), -1));
	assert_int_equal(receivers(&n), 2);
	assert_false(sends(&n, 2, mac_of(&n, 3), mac_of(&n, 2), -1));
	/* No frames go to an address that another function owns. */
	assert_int_equal(receivers(&n), 8);
	host_free(n.h[0]);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_hidden),
	cmocka_unit_test(test_claim),
	cmocka_unit_test(test_owner),
	cmocka_unit_test(test_wire),
	cmocka_unit_test(test_absent),
	cmocka_unit_test(test_dead_owner),
	cmocka_unit_test(test_reset_drops_its_own),
	cmocka_unit_test(test_room),
	cmocka_unit_test(test_room_is_shared),
	cmocka_unit_test(test_receivers_are_paid),
	cmocka_unit_test(test_ethernet),
	cmocka_unit_test(test_vlan),
	cmocka_unit_test(test_link),
	cmocka_unit_test(test_spoof),
	cmocka_unit_test(test_spoof_roce),
	cmocka_unit_test(test_spoof_wrapped),
	cmocka_unit_test(test_vlan_own_tags),
	cmocka_unit_test(test_smac),
	cmocka_unit_test(test_trust),
};
TEST_MAIN(tests)
