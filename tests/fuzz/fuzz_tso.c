// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames of software that the device segments, for a peer that takes large segments.
 *
 * An input is what the software of a sender does: it gives frames of TCP whose headers,
 * fragments and numbers may be hostile, changes them while they are being sent, and takes
 * them back.  Two devices get the same frames in the same memory: one has agreed on large
 * segments with the receiver, and the other one gets no answers, so that it sends segments.
 * After each turn of the former the latter goes on to the same place of the ring.
 *
 * The receiver gets what both send.  Its software must get the same frames from both, and
 * both senders must count the same.  There are two exceptions.  Frames of TCP whose checksum
 * is wrong are left out, since the receiver does not expand a large segment with a wrong
 * checksum.  Of a frame with memory that cannot be read the former may send less: what would
 * go in the same large segment is not sent.
 */
#include <string.h>

#include "tso_script.h"
#include "wire/ether.h"
#include "wire/peers.h"
#include "wire/trailer.h"

#define MAX_OPS		60
#define MAX_PACKETS	10000u		/* so that an input takes a second or so at most */
#define LOG_RX		6
#define NUM_RX		(1u << LOG_RX)
#define AREA_LEN	(66u << 10)	/* for a frame; more than any has */
#define MAX_TURNS	100u
#define FOLLOW_STEPS	5000u
#define SECOND		1000000000ull

enum { OFFER = 2, HEARD = 4 };		/* messages of devices to peers */

static void command(struct guard *g, uint16_t opcode, const void *in,
		    uint32_t in_len)
{
	int status = md_cmd(g->md, opcode, 0, 0, in, in_len, NULL, 0, NULL);

	if (status)
		guard_fail("command %#x: status %d", opcode, status);
}

/* ------------------------------------------------------------------------
 * The receiver
 */
static void *rx_ptr(const struct script *x, uint64_t addr)
{
	return md_ptr(x->to->md, addr);
}

/* A buffer for each slot. */
static void post_buffers(struct script *x)
{
	put_le32(rx_ptr(x, x->rx_rec), x->seen + NUM_RX);
}

/* The next frame that the receiver's software got, or NULL; it stays until the next call. */
static const struct got *take(struct script *x)
{
	static struct got got;
	uint32_t slot = x->seen % NUM_RX;
	const struct qhca_eth_rxc *c = rx_ptr(x, x->rxc + sizeof(*c) * slot);
	uint32_t flags = get_le32(&c->flags);

	if (!!(flags & QHCA_RXC_PHASE) != !(x->seen >> LOG_RX & 1))
		return NULL;
	x->seen++;
	got.flags = flags & ~QHCA_RXC_PHASE;
	got.len = get_le32(&c->len);
	got.hash = get_le32(&c->hash);
	got.vlan = get_le16(&c->vlan);
	if (got.len > sizeof(got.data))
		guard_fail("the receiver's software gets a frame of %u bytes", got.len);
	memcpy(got.data, rx_ptr(x, x->rx_buf + (uint64_t)QHCA_MAX_FRAME * slot),
	       got.len);
	return &got;
}

/* What comes from the sender that has agreed is kept. */
static void keep(struct script *x, const struct got *got)
{
	if (x->num == sizeof(x->got) / sizeof(*x->got))
		guard_fail("there come more frames than the sender's budget allows");
	x->got[x->num++] = *got;
}

static bool is_same(const struct got *a, const struct got *b)
{
	return a->len == b->len && a->hash == b->hash && a->flags == b->flags &&
	       a->vlan == b->vlan && !memcmp(a->data, b->data, a->len);
}

/* What differs, for whoever reads the report. */
static uint32_t first_difference(const struct got *a, const struct got *b)
{
	uint32_t i = 0;

	while (i < a->len && i < b->len && a->data[i] == b->data[i])
		i++;
	return i;
}

static uint64_t errors_of_turn(const struct sender *s)
{
	return s->g->hca->pf.counter[QHCA_CNT_eth_tx_errors] - s->before.errors;
}

/* Is it what came from the sender that has agreed, as far as it had no errors? */
static void match(struct script *x, const struct got *got)
{
	const struct got *want = &x->got[x->matched];
	bool any = x->matched < x->num;

	if (any && is_same(want, got)) {
		x->matched++;
		return;
	}
	if (errors_of_turn(&x->sender[LARGE]))
		return;
	if (!any)
		guard_fail("a segment of %u bytes has come in no large segment", got->len);
	guard_fail("frame %u of a turn has %u bytes as a segment, %u from a large one, and differs at %u",
		   x->matched, got->len, want->len, first_difference(got, want));
}

/* Could it be a large segment that the receiver has not expanded, as its checksum is wrong? */
static bool may_be_wrong(const struct got *got)
{
	bool tagged = get_be16(got->data + 12) == HCA_ETHERTYPE_VLAN;
	const uint8_t *ip = got->data + HCA_ETH_HLEN + (tagged ? HCA_VLAN_HLEN : 0);

	if (got->flags & QHCA_RXC_CSUM_OK)
		return false;
	return get_be16(ip - 2) == HCA_ETHERTYPE_IPV6 ? ip[6] == 6 :
	       get_be16(ip - 2) == HCA_ETHERTYPE_IPV4 && ip[0] == 0x45 &&
	       ip[9] == 6;
}

/* The receiver gets a frame of a sender. */
static void deliver(struct script *x, const struct guard_frame *f,
		    unsigned int from)
{
	const struct got *got;

	guard_rx(x->to, f->data, f->len);
	while ((got = take(x))) {
		/* The question to somebody else comes here as well. */
		if (f->message || may_be_wrong(got))
			continue;
		if (from == LARGE)
			keep(x, got);
		else
			match(x, got);
	}
	post_buffers(x);
}

static unsigned int path_of(const uint8_t *frame)
{
	unsigned int vlan = get_be16(frame + 14) & 0xfff;

	if (get_be16(frame + 12) != HCA_ETHERTYPE_VLAN)
		return UNTAGGED;
	return vlan == 7 ? VLAN_7 : vlan == 8 ? VLAN_8 : OTHER_VLAN;
}

/* The kind of a message of the receiver, which offers no more than the path lets through. */
static uint8_t look_at(const struct script *x, uint8_t *frame)
{
	uint8_t *m = frame + (get_be16(frame + 12) == HCA_ETHERTYPE_VLAN ? 18 : 14);

	if (get_be16(m - 2) != HCA_ETHERTYPE_PEERS)
		return 0;
	if (m[5] == OFFER && get_be32(m + 8) > x->offer)
		put_be32(m + 8, x->offer);
	return m[5];
}

/* The receiver's answers go to the sender that is to agree. */
static void answer(struct script *x, bool lost)
{
	const struct guard_frame *sent;
	struct guard_frame f;

	guard_run(x->to, 8);
	while ((sent = guard_sent(x->to))) {
		f = *sent;
		if (look_at(x, f.data) == HEARD && !lost)
			x->heard[path_of(f.data)] = x->to->md->host.now;
		if (!lost)
			guard_rx(large(x), f.data, f.len);
	}
}

/* ------------------------------------------------------------------------
 * The senders
 */
static struct counts count(const struct guard *g)
{
	const uint64_t *c = g->hca->pf.counter;

	return (struct counts){
		c[QHCA_CNT_eth_tx_packets], c[QHCA_CNT_eth_tx_bytes],
		c[QHCA_CNT_eth_tx_tso], c[QHCA_CNT_eth_tx_errors],
	};
}

static bool in_same_place(const struct script *x)
{
	const struct hca_ethq *a = queue_of(x->sender[LARGE].g);
	const struct hca_ethq *b = queue_of(x->sender[PLAIN].g);

	return a->tx_ci == b->tx_ci && a->tx_sent == b->tx_sent;
}

/*
 * A large segment has the device's address, to which answers come.  It is no longer than a
 * PROBE that has come through, along its path and not so long ago that the agreement has ended.
 */
static void check_large(const struct script *x, const struct guard_frame *f)
{
	size_t most = x->offer + HCA_MAX_OVERHEAD;
	uint64_t heard = x->heard[path_of(f->data)];
	uint16_t mss;

	if (!hca_trailer_find(f->data, f->len, &mss))
		return;
	if (f->len > most)
		guard_fail("a large segment has %zu bytes, and a PROBE of %zu has come through",
			   f->len, most);
	if (memcmp(f->data + 6, x->mac, 6))
		guard_fail("a large segment has another source address than the device");
	if (!heard || x->to->md->host.now - heard >= HCA_PEERS_HOLD_NS)
		guard_fail("there is a large segment without an agreement");
}

/* A large segment is as much work as its segments. */
static void check_budget(const struct script *x, unsigned int budget)
{
	uint64_t packets = count(large(x)).packets -
			   x->sender[LARGE].before.packets;

	if (packets > budget)
		guard_fail("one call sends %llu segments, its budget allows %u",
			   (unsigned long long)packets, budget);
}

static void send_large(struct script *x, unsigned int budget)
{
	const struct guard_frame *f;

	guard_run(large(x), budget);
	check_budget(x, budget);
	while ((f = guard_sent(large(x)))) {
		if (!f->message)
			check_large(x, f);
		deliver(x, f, LARGE);
		answer(x, x->deaf);
	}
}

/* The other sender goes on to where the first one is. */
static void follow(struct script *x)
{
	struct guard *g = x->sender[PLAIN].g;
	const struct guard_frame *f;

	for (unsigned int i = 0; !in_same_place(x); i++) {
		if (i == FOLLOW_STEPS)
			guard_fail("without an agreement the device does not come to descriptor %u, byte %u",
				   queue_of(large(x))->tx_ci,
				   queue_of(large(x))->tx_sent);
		guard_run(g, 1);
		while ((f = guard_sent(g))) {
			if (f->message)
				continue;
			deliver(x, f, PLAIN);
			answer(x, true);
		}
	}
}

static void check_counts(const struct script *x)
{
	const struct sender *s = x->sender;
	struct counts a = count(s[LARGE].g), b = count(s[PLAIN].g);

	if (x->matched < x->num)
		guard_fail("the device sends %u frames in large segments, of which %u are segments",
			   x->num, x->matched);
	if (a.errors - s[LARGE].before.errors != b.errors - s[PLAIN].before.errors ||
	    a.tso - s[LARGE].before.tso != b.tso - s[PLAIN].before.tso)
		guard_fail("with large segments the device counts other frames or errors");
	if (a.errors == s[LARGE].before.errors &&
	    (a.packets - s[LARGE].before.packets !=
	     b.packets - s[PLAIN].before.packets ||
	     a.bytes - s[LARGE].before.bytes != b.bytes - s[PLAIN].before.bytes))
		guard_fail("the segments are %llu with %llu bytes, and count as %llu with %llu",
			   (unsigned long long)(b.packets - s[PLAIN].before.packets),
			   (unsigned long long)(b.bytes - s[PLAIN].before.bytes),
			   (unsigned long long)(a.packets - s[LARGE].before.packets),
			   (unsigned long long)(a.bytes - s[LARGE].before.bytes));
}

/* Both senders send, up to @budget segments, and what they have sent is compared. */
static void run(struct script *x, unsigned int budget)
{
	for (unsigned int i = 0; i < NUM_SENDERS; i++)
		x->sender[i].before = count(x->sender[i].g);
	x->num = x->matched = 0;
	send_large(x, budget);
	follow(x);
	check_counts(x);
}

void ring_doorbell(struct script *x)
{
	for (unsigned int i = 0; i < NUM_SENDERS; i++)
		guard_doorbell(x->sender[i].g, 0, QHCA_DB_ETH_TX,
			       (uint64_t)x->pi << 32);
}

void take_back(struct script *x)
{
	x->pi = queue_of(large(x))->tx_ci;
	x->waiting = 0;
	ring_doorbell(x);
}

void finish(struct script *x)
{
	for (unsigned int i = 0; i < MAX_TURNS &&
	     queue_of(large(x))->tx_ci != x->pi; i++)
		run(x, TURN);
	x->waiting = 0;
}

/* ------------------------------------------------------------------------
 * Everything else
 */
static void set_time(struct script *x, uint64_t now)
{
	x->to->md->host.now = now;
	for (unsigned int i = 0; i < NUM_SENDERS; i++)
		x->sender[i].g->md->host.now = now;
}

/* What is in the ring is taken back first: a command lets the device run. */
static void set_mtu(struct script *x)
{
	static const uint32_t mtus[] = { MTU, 1500, 576, 68 };
	struct qhca_port_config in = { .rsvd0 = 0 };

	take_back(x);
	put_le32(&in.fields, QHCA_PORT_SET_MTU);
	put_le32(&in.eth_mtu, IN_ONE_OF(x->in, mtus));
	for (unsigned int i = 0; i < NUM_SENDERS; i++)
		command(x->sender[i].g, QHCA_CMD_SET_PORT, &in, sizeof(in));
}

static void rarely(struct script *x)
{
	bool up = large(x)->hca->hca.link_up;

	switch (in_below(x->in, 4)) {
	case 0:
		x->deaf = !x->deaf;
		break;
	case 1:
		take_back(x);
		break;
	case 2:
		for (unsigned int i = 0; i < NUM_SENDERS; i++)
			qhca_set_link(x->sender[i].g->hca, !up,
				      x->to->md->host.now);
		memset(x->heard, 0, sizeof(x->heard));
		break;
	default:
		for (unsigned int i = 0; i < NUM_SENDERS; i++) {
			struct guard *g = x->sender[i].g;

			g->blocked = !g->blocked;
			if (!g->blocked)
				guard_unblock(g);
		}
		break;
	}
}

static void step(struct script *x)
{
	static const uint64_t pause[] = { 1000, SECOND / 5, 6 * SECOND / 10,
					  11 * SECOND / 10, 21 * SECOND / 10 };
	uint8_t op = in_u8(x->in);

	if (op < 112)
		post(x);
	else if (op < 168)
		run(x, 1 + in_below(x->in, TURN));
	else if (op < 184)
		finish(x);
	else if (op < 216)
		scribble(x);
	else if (op < 236)
		set_time(x, x->to->md->host.now + IN_ONE_OF(x->in, pause));
	else if (op < 242)
		set_mtu(x);
	else
		rarely(x);
}

/* ------------------------------------------------------------------------
 * Where to start
 */
static void start(struct guard *g)
{
	const struct md_init init = { .log_pt = 8, .log_qp = 5, .log_cq = 4,
				      .log_srq = 3, .eth_mtu = MTU };

	md_start(g->md, &init);
	guard_allow_driver(g);
}

static void create_queue(struct guard *g, const struct qhca_ethq_config *q)
{
	command(g, QHCA_CMD_CREATE_ETHQ, q, sizeof(*q));
	/* The first half of the record is the software's. */
	guard_allow(g, get_le64(&q->rec_base) + 64, 64);
}

static const uint8_t *payload(void)
{
	static uint8_t octet[AREA_LEN];

	for (uint32_t at = 0; !octet[1] && at < AREA_LEN; at++)
		octet[at] = (uint8_t)(at * 11 + (at >> 8) * 3);
	return octet;
}

/* Both senders have the address of the first. */
static void make_sender(struct script *x, unsigned int i)
{
	struct guard *g = x->sender[i].g = guard_take(i == LARGE ? 1 : 3);
	struct qhca_ethq_config q = { .log_tx = LOG_TX, .log_rx = 0 };
	struct qhca_port_config port = { .rsvd0 = 0 };
	struct md *md = g->md;
	uint64_t rx;

	start(g);
	x->ring = md_alloc(md, sizeof(struct qhca_eth_txd) << LOG_TX, 64);
	x->rec = md_alloc(md, 128, 64);
	rx = md_alloc(md, 128, 64);
	for (unsigned int a = 0; a < NUM_AREAS; a++) {
		x->area[a] = md_alloc(md, AREA_LEN, 64);
		memcpy(md_ptr(md, x->area[a]), payload(), AREA_LEN);
	}
	put_le64(&q.tx_base, x->ring);
	put_le64(&q.rx_base, rx);
	put_le64(&q.rxc_base, rx + 64);
	put_le64(&q.rec_base, x->rec);
	create_queue(g, &q);
	if (i == LARGE)
		memcpy(x->mac, md->mac, 6);
	memcpy(port.mac, x->mac, 6);
	put_le32(&port.fields, QHCA_PORT_SET_MAC);
	command(g, QHCA_CMD_SET_PORT, &port, sizeof(port));
}

/* Its queue gets frames for whoever they are. */
static void make_receiver(struct script *x)
{
	struct qhca_ethq_config q = { .log_tx = 0, .log_rx = LOG_RX };
	struct qhca_port_config port = { .rsvd0 = 0 };
	uint64_t tx;

	x->to = guard_take(2);
	start(x->to);
	x->rx = md_alloc(x->to->md, sizeof(struct qhca_eth_rxd) << LOG_RX, 64);
	x->rxc = md_alloc(x->to->md, sizeof(struct qhca_eth_rxc) << LOG_RX, 64);
	x->rx_rec = md_alloc(x->to->md, 128, 64);
	x->rx_buf = md_alloc(x->to->md, (uint64_t)QHCA_MAX_FRAME << LOG_RX, 64);
	tx = md_alloc(x->to->md, 64, 64);
	for (unsigned int i = 0; i < NUM_RX; i++) {
		struct qhca_eth_rxd *d = rx_ptr(x, x->rx + sizeof(*d) * i);

		put_le64(&d->addr, x->rx_buf + (uint64_t)QHCA_MAX_FRAME * i);
		put_le32(&d->len, QHCA_MAX_FRAME);
	}
	put_le64(&q.tx_base, tx);
	put_le64(&q.rx_base, x->rx);
	put_le64(&q.rxc_base, x->rxc);
	put_le64(&q.rec_base, x->rx_rec);
	create_queue(x->to, &q);
	guard_allow(x->to, x->rxc, sizeof(struct qhca_eth_rxc) << LOG_RX);
	guard_allow(x->to, x->rx_buf, (uint64_t)QHCA_MAX_FRAME << LOG_RX);
	put_le32(&port.rx_flags, QHCA_RX_ENABLE | QHCA_RX_PROMISC);
	put_le32(&port.fields, QHCA_PORT_SET_RX);
	command(x->to, QHCA_CMD_SET_PORT, &port, sizeof(port));
	post_buffers(x);
}

uint64_t fuzz_one(const uint8_t *data, size_t size)
{
	static const uint32_t offers[] = { GUARD_BUNDLE, 4096, 1024, GUARD_BUNDLE };
	static struct script x;
	struct in in = { data, data + size };
	struct guard *all[3];
	uint64_t digest = 0;

	memset(&x, 0, offsetof(struct script, got));
	x.in = &in;
	x.offer = IN_ONE_OF(&in, offers);
	make_sender(&x, LARGE);
	make_sender(&x, PLAIN);
	/* Their drivers have written other addresses to the mailboxes. */
	memcpy(x.sender[PLAIN].g->md->host.ram, large(&x)->md->host.ram, GUARD_MEM);
	make_receiver(&x);
	for (int i = 0; i < MAX_OPS && in_more(&in) &&
	     count(large(&x)).packets < MAX_PACKETS; i++)
		step(&x);
	all[0] = x.sender[LARGE].g;
	all[1] = x.sender[PLAIN].g;
	all[2] = x.to;
	for (unsigned int i = 0; i < 3; i++) {
		if (hca_is_dead(&all[i]->hca->pf))
			guard_fail("the device of host %u is dead", i);
		guard_check_alive(all[i]);
		digest = digest * 31 + all[i]->digest;
	}
	for (unsigned int i = 0; i < 3; i++)
		guard_give(all[i]);
	return digest;
}
