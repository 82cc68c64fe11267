// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Peers that take bundles: questions, answers, and what is known.
 */
#include "wire/peers.h"

#include "hca.h"
#include "wire/bundle.h"
#include "wire/trailer.h"

static const uint8_t magic[4] = { 'q', 'h', 'c', 'a' };

enum kind { ASK = 1, OFFER, PROBE, HEARD };

/* Behind the Ethernet header and the tag. */
struct message {
	uint8_t magic[4];
	uint8_t version;		/* 1 */
	uint8_t kind;
	uint8_t rsvd[2];
	uint8_t size[4];		/* bytes of payload, big endian */
	uint8_t token[4];
	uint8_t gid[16];
};

#define VERSION		1
#define VLAN_ID		0x0fffu
#define IPV4_HLEN	20
#define IPV4_TTL	8
#define IPV4_PROTO	9
#define IPV4_CSUM	10
#define PROTO_TEST	253		/* RFC 3692: for experiments */

/* What the adapter sends and takes in one frame, bytes of payload. */
static uint32_t own_size(const struct hca_fn *fn)
{
	return hca_pf(fn->hca)->cfg.max_bundle;
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* ---- places */

/* Has it been so long, or longer?  The host's clock may go back a little between two calls. */
static bool is_over(const struct hca_fn *fn, uint64_t since, uint64_t ns)
{
	return (int64_t)(fn->hca->now - since) >= (int64_t)ns;
}

static bool is_peer(const struct hca_peer *p, const uint8_t mac[6],
		    uint16_t vlan, const uint8_t gid[16])
{
	return p->used && p->vlan == vlan &&
	       !memcmp(p->mac, mac, sizeof(p->mac)) &&
	       !memcmp(p->gid, gid, sizeof(p->gid));
}

static bool is_zero(const uint8_t gid[16])
{
	static const uint8_t none[16];

	return !memcmp(gid, none, sizeof(none));
}

/* The places that the peer may have.  TCP to many takes none of those of RoCE. */
static struct hca_peer *places(struct hca_fn *fn, const uint8_t mac[6],
			       uint16_t vlan, const uint8_t gid[16])
{
	bool tcp = is_zero(gid);
	uint32_t first = tcp ? HCA_PEERS : 0;
	uint32_t num = tcp ? HCA_PEERS_WITHOUT_GID : HCA_PEERS;
	uint64_t key = mix((uint64_t)get_be32(mac + 2) << 16 | vlan) ^
		       mix((uint64_t)get_be32(gid + 8) << 32 | get_be32(gid + 12)) ^ get_be16(mac);

	return &fn->peers.peer[first + key % (num / HCA_PEERS_WAYS) *
			       HCA_PEERS_WAYS];
}

static struct hca_peer *find(struct hca_fn *fn, const uint8_t mac[6],
			     uint16_t vlan, const uint8_t gid[16])
{
	struct hca_peer *p = places(fn, mac, vlan, gid);

	for (unsigned int i = 0; i < HCA_PEERS_WAYS; i++)
		if (is_peer(&p[i], mac, vlan, gid))
			return &p[i];
	return NULL;
}

static struct hca_peer *find_path(struct hca_fn *fn, const struct hca_path *path)
{
	return find(fn, path->dmac, path->vlan, path->dgid);
}

/* A place for the peer; NULL: others are in use in all that it may have. */
static struct hca_peer *take_place(struct hca_fn *fn, const struct hca_path *path)
{
	struct hca_peer *p = places(fn, path->dmac, path->vlan, path->dgid);
	struct hca_peer *oldest = p;

	for (unsigned int i = 1; i < HCA_PEERS_WAYS; i++)
		if (p[i].used < oldest->used)
			oldest = &p[i];
	if (oldest->used && !is_over(fn, oldest->used, HCA_PEERS_USE_NS))
		return NULL;
	memset(oldest, 0, sizeof(*oldest));
	memcpy(oldest->mac, path->dmac, sizeof(oldest->mac));
	memcpy(oldest->gid, path->dgid, sizeof(oldest->gid));
	oldest->vlan = path->vlan;
	return oldest;
}

/* ---- frames out */

static size_t tag_len(uint16_t tci)
{
	return tci == HCA_VLAN_NONE ? 0 : HCA_VLAN_HLEN;
}

/* A PROBE is as long as the longest bundle of its size, without a tag. */
static size_t probe_len(uint32_t size)
{
	return size + HCA_MAX_OVERHEAD;
}

static bool is_packet(const struct hca_peer_message *msg)
{
	return msg->kind == PROBE && is_zero(msg->gid);
}

/* The header of a packet of IP from nobody to nobody.  @len: bytes of it and of a trailer. */
static void make_header(uint8_t ip[IPV4_HLEN], size_t len)
{
	memset(ip, 0, IPV4_HLEN);
	ip[0] = 0x45;
	put_be16(ip + 2, (uint16_t)(len - HCA_TRAILER));
	ip[IPV4_TTL] = 1;
	ip[IPV4_PROTO] = PROTO_TEST;
	put_be16(ip + IPV4_CSUM,
		 hca_csum_fold(hca_csum_add(0, ip, IPV4_HLEN)));
}

/* false: there is no room now. */
static bool send(struct hca_fn *fn, const struct hca_peer_message *out)
{
	size_t tag = tag_len(out->tci), at = tag + HCA_ETH_HLEN;
	size_t len = tag + (out->kind == PROBE ? probe_len(out->size) :
						 HCA_MIN_FRAME);
	struct message m = { .version = VERSION, .kind = out->kind };
	uint8_t *frame = hca_tx_eth_begin(fn, len);

	if (!frame)
		return false;
	memset(frame, 0, len);
	memcpy(frame, out->head, sizeof(out->head));
	if (tag) {
		put_be16(frame + 12, HCA_ETHERTYPE_VLAN);
		put_be16(frame + 14, out->tci);
	}
	put_be16(frame + tag + 12, is_packet(out) ? HCA_ETHERTYPE_IPV4 :
						    HCA_ETHERTYPE_PEERS);
	if (is_packet(out)) {
		make_header(frame + at, len - at);
		hca_trailer_put(frame + len - HCA_TRAILER, 0);
		at += IPV4_HLEN;
	}
	memcpy(m.magic, magic, sizeof(magic));
	put_be32(m.size, out->size);
	put_be32(m.token, out->token);
	memcpy(m.gid, out->gid, sizeof(m.gid));
	memcpy(frame + at, &m, sizeof(m));
	fn->hca->bundles.messages++;
	hca_rate_sent(fn, len);
	hca_tx_eth_end(fn, len);	/* the switch may refuse it */
	return true;
}

/*
 * Send it when there is room.  false: the function owes too much already.  Anybody may ask,
 * so that OFFERs leave places to what follows from the function's own questions.
 */
static bool owe(struct hca_fn *fn, const struct hca_peer_message *out)
{
	struct hca_peers *peers = &fn->peers;
	unsigned int max = out->kind == OFFER ? HCA_PEERS_OWED / 2 :
						HCA_PEERS_OWED;

	if (peers->num_owed >= max)
		return false;
	peers->owed[peers->num_owed++] = *out;
	fn->hca->bundles.owing |= 1ull << fn->cfg.gvmi;
	return true;
}

static bool may_send_owed(const struct hca *hca, const struct hca_fn *fn)
{
	return hca->bundles.owing >> fn->cfg.gvmi & 1 && !hca_is_dead(fn) &&
	       hca_wire_takes_eth(fn);
}

static unsigned int run_owed(struct hca_fn *fn, unsigned int budget)
{
	struct hca_peers *peers = &fn->peers;
	unsigned int done = 0;

	/* What cannot be sent though there is room never can. */
	while (done < peers->num_owed && done < budget &&
	       (send(fn, &peers->owed[done]) || hca_wire_takes_eth(fn)))
		done++;
	peers->num_owed -= done;
	memmove(peers->owed, peers->owed + done,
		peers->num_owed * sizeof(*peers->owed));
	if (!peers->num_owed)
		fn->hca->bundles.owing &= ~(1ull << fn->cfg.gvmi);
	return done;
}

unsigned int hca_peers_run(struct hca *hca, unsigned int budget)
{
	struct hca_bundles *b = &hca->bundles;
	unsigned int done = 0;

	/* One message for each function, in turns. */
	for (unsigned int i = 0; i < HCA_MAX_FNS && b->owing && done < budget;
	     i++) {
		uint16_t gvmi = b->turn;

		b->turn = (uint16_t)((gvmi + 1) % HCA_MAX_FNS);
		if (b->owing >> gvmi & 1 && may_send_owed(hca, hca->fn[gvmi]))
			done += run_owed(hca->fn[gvmi], 1);
	}
	return done;
}

bool hca_peers_pending(const struct hca *hca)
{
	for (uint64_t fns = hca->bundles.owing; fns; fns &= fns - 1)
		if (may_send_owed(hca, hca->fn[hca_lowest_bit(fns)]))
			return true;
	return false;
}

/* Whoever has not seen the question has to guess it, if the host has made the secret. */
static uint32_t new_token(struct hca *hca)
{
	uint64_t secret = hca_pf(hca)->cfg.secret;
	uint32_t token = (uint32_t)(mix(mix(++hca->bundles.asked ^ secret) +
					hca->now) >> 16);

	return token ? token : 1;
}

static void ask(struct hca_fn *fn, const struct hca_path *path,
		struct hca_peer *p)
{
	struct hca *hca = fn->hca;
	struct hca_peer_message out = {
		.tci = path->vlan, .kind = ASK, .size = own_size(fn),
		.token = new_token(hca),
	};

	memcpy(out.head, path->dmac, 6);
	memcpy(out.head + 6, path->smac, 6);
	memcpy(out.gid, path->dgid, sizeof(out.gid));
	if (!send(fn, &out))
		return;			/* with the next message */
	p->token = out.token;
	p->probed = 0;
	p->asked = hca->now;
	p->proved = p->carried;
	p->carried = false;
	if (p->size) {
		p->ask = hca->now + HCA_PEERS_AGAIN_NS;
		return;
	}
	p->silence = p->silence ? 2 * p->silence : HCA_PEERS_ASK_NS;
	if (p->silence > HCA_PEERS_ASK_MAX_NS)
		p->silence = HCA_PEERS_ASK_MAX_NS;
	p->ask = hca->now + p->silence;
}

/* ---- what is known */

/*
 * Could the function send bundles along the path at all?  What functions of this device
 * say to each other is packets, as are frames that one of them gets besides.
 */
static bool permitted(const struct hca_fn *fn, const struct hca_path *path)
{
	const struct hca *hca = fn->hca;

	/* The switch refuses what a function tags that has a VLAN of its port. */
	if (fn->vf.vlan && path->vlan != HCA_VLAN_NONE)
		return false;
	return hca->link_up && hca_fn_linked(fn) && !hca->wire.shared &&
	       !fn->rate.max.rate &&
	       !(hca->sw.promisc & ~(1ull << fn->cfg.gvmi)) &&
	       !hca_inject_active(&hca->inject, false) &&
	       !(path->dmac[0] & 1) &&
	       !hca_switch_is_local(fn, path->dmac, path->vlan);
}

/* May an answer to the last question still come? */
static bool awaits(const struct hca_fn *fn, const struct hca_peer *p)
{
	return p->token && !is_over(fn, p->asked, HCA_PEERS_ASK_NS);
}

/* An agreement that has not been renewed ends. */
static void expire(const struct hca_fn *fn, struct hca_peer *p)
{
	if (is_over(fn, p->heard, HCA_PEERS_HOLD_NS))
		p->size = 0;
}

uint32_t hca_peer_bundle(struct hca_fn *fn, const struct hca_path *path,
			 uint32_t each, bool blind)
{
	uint64_t now = fn->hca->now;
	struct hca_peer *p;

	if (own_size(fn) < 2 * each || !permitted(fn, path))
		return 0;
	p = find_path(fn, path);
	if (!p)
		p = take_place(fn, path);
	if (!p)
		return 0;
	p->used = now ? now : 1;
	expire(fn, p);
	if (p->ask <= now && !awaits(fn, p))
		ask(fn, path, p);
	if (p->size) {
		p->blind |= blind;
		p->carried = true;
	}
	return p->size;
}

void hca_peer_doubt(struct hca_fn *fn, const struct hca_path *path)
{
	struct hca_peer *p = find_path(fn, path);

	if (!p || !p->size)
		return;
	p->size = 0;
	p->token = 0;
	p->doubted = true;
	p->carried = p->proved = false;
	p->doubt = p->doubt ? 2 * p->doubt : HCA_PEERS_DOUBT_NS;
	if (p->doubt > HCA_PEERS_DOUBT_MAX_NS)
		p->doubt = HCA_PEERS_DOUBT_MAX_NS;
	p->ask = fn->hca->now + p->doubt;
}

void hca_peer_connect(struct hca_fn *fn, const struct hca_path *path)
{
	struct hca_peer *p = find_path(fn, path);

	/* Who has never answered is asked no more often for that. */
	if (!p || !p->heard)
		return;
	p->silence = 0;
	if (is_over(fn, p->asked, HCA_PEERS_CONNECT_NS))
		p->size = 0;
	/* An answer that is due counts; if there is none, the next pauses are short. */
	if (awaits(fn, p)) {
		p->ask = p->asked + HCA_PEERS_ASK_NS;
		return;
	}
	/* A pause after a loss goes on; it is over once a question has gone. */
	if (!p->size && (!p->doubted || p->token))
		p->ask = fn->hca->now;
	p->token = 0;
}

void hca_peers_forget(struct hca_fn *fn)
{
	memset(&fn->peers, 0, sizeof(fn->peers));
	fn->hca->bundles.owing &= ~(1ull << fn->cfg.gvmi);
}

/* ---- frames in */

static uint16_t vid_of(uint16_t tci)
{
	uint16_t vid = tci == HCA_VLAN_NONE ? 0 : tci & VLAN_ID;

	return vid ? vid : HCA_VLAN_NONE;
}

/* false: it cannot be sent, neither now nor soon. */
static bool answer(struct hca_fn *fn, const struct hca_peer_message *in,
		   enum kind kind, uint32_t size)
{
	struct hca_peer_message out = *in;

	memcpy(out.head, in->head + 6, 6);
	memcpy(out.head + 6, in->head, 6);
	out.kind = (uint8_t)kind;
	out.size = size;
	return (!fn->peers.num_owed && send(fn, &out)) || owe(fn, &out);
}

/* The peer that has been asked, if the message answers the question. */
static struct hca_peer *asked(struct hca_fn *fn,
			      const struct hca_peer_message *in)
{
	struct hca_peer *p = find(fn, in->head + 6, vid_of(in->tci), in->gid);

	return p && in->token && p->token == in->token ? p : NULL;
}

static bool size_sane(const struct hca_fn *fn, uint32_t size)
{
	return size >= HCA_BUNDLE_MIN && size <= own_size(fn);
}

/*
 * Would RoCE to that GID be this function's?  Without a GID: would TCP to that address be that
 * of its Ethernet queues?
 */
static bool is_own(struct hca_fn *fn, const struct hca_peer_message *in)
{
	if (is_zero(in->gid))
		return !memcmp(in->head, fn->port.mac, sizeof(fn->port.mac));
	return hca_gid_find(fn, in->gid, vid_of(in->tci)) >= 0;
}

/*
 * The agreement holds, for that size.  If bundles went there before the question, and no
 * doubt came of them, the next pause is short.
 */
static void renew(struct hca_fn *fn, struct hca_peer *p, uint32_t size)
{
	if (!p->doubted && p->proved)
		p->doubt = 0;
	p->doubted = false;
	p->size = size;
	p->token = 0;
	p->heard = fn->hca->now ? fn->hca->now : 1;
	p->ask = fn->hca->now + HCA_PEERS_AGAIN_NS;
}

/*
 * A PROBE follows, once for each question.  Where losses are noticed the bundles themselves
 * have shown that the path passes them.
 */
static void peer_offers(struct hca_fn *fn, const struct hca_peer_message *in)
{
	struct hca_peer *p = asked(fn, in);

	if (!p || p->probed || !size_sane(fn, in->size))
		return;
	expire(fn, p);
	if (in->size < p->size)		/* it is another device by now */
		p->size = 0;
	if (p->size == in->size && !p->blind)
		renew(fn, p, in->size);
	else if (answer(fn, in, PROBE, in->size))
		p->probed = in->size;
}

static void peer_has_heard(struct hca_fn *fn, const struct hca_peer_message *in)
{
	struct hca_peer *p = asked(fn, in);

	if (!p || !p->probed || p->probed != in->size)
		return;
	p->blind = false;
	p->silence = 0;
	renew(fn, p, in->size);
}

/* @len: of the frame without a tag */
static void take(struct hca_fn *fn, const struct hca_peer_message *in, size_t len)
{
	uint32_t size = in->size;

	switch (in->kind) {
	case ASK:
		if (size > own_size(fn))
			size = own_size(fn);
		if (size >= HCA_BUNDLE_MIN && is_own(fn, in))
			answer(fn, in, OFFER, size);
		break;
	case OFFER:
		peer_offers(fn, in);
		break;
	case PROBE:
		if (size_sane(fn, size) && len >= probe_len(size) &&
		    is_own(fn, in))
			answer(fn, in, HEARD, size);
		break;
	case HEARD:
		peer_has_heard(fn, in);
		break;
	default:
		break;
	}
}

/* Is it such a packet, and has nobody taken away what is behind it? */
static bool is_whole_packet(const uint8_t *ip, size_t len)
{
	uint8_t header[IPV4_HLEN];
	uint16_t mss;

	if (len < IPV4_HLEN + HCA_TRAILER || ip[IPV4_PROTO] != PROTO_TEST)
		return false;
	make_header(header, len);
	return !memcmp(ip, header, sizeof(header)) &&
	       hca_trailer_find(ip, len, &mss);
}

bool hca_peers_rx(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	struct hca_peer_message in = { .tci = HCA_VLAN_NONE };
	uint16_t type = get_be16(frame + 12);
	size_t tag = 0, at;
	struct message m;
	bool packet;

	if (!own_size(fn))
		return false;
	if (type == HCA_ETHERTYPE_VLAN && len >= HCA_ETH_HLEN + HCA_VLAN_HLEN) {
		tag = HCA_VLAN_HLEN;
		in.tci = get_be16(frame + 14);
		type = get_be16(frame + 16);
	}
	at = HCA_ETH_HLEN + tag;
	packet = type == HCA_ETHERTYPE_IPV4 &&
		 is_whole_packet(frame + at, len - at);
	if (packet)
		at += IPV4_HLEN;
	if ((type != HCA_ETHERTYPE_PEERS && !packet) || !fn->initialised ||
	    fn->restore || hca_is_dead(fn) || len < at + sizeof(m) ||
	    !hca_mac_is_ours(fn, frame) || frame[6] & 1)
		return false;
	memcpy(&m, frame + at, sizeof(m));
	if (memcmp(m.magic, magic, sizeof(magic)) || m.version != VERSION)
		return false;
	memcpy(in.head, frame, sizeof(in.head));
	memcpy(in.gid, m.gid, sizeof(in.gid));
	in.kind = m.kind;
	in.size = get_be32(m.size);
	in.token = get_be32(m.token);
	if (packet == is_packet(&in))
		take(fn, &in, len - tag);
	return true;
}
