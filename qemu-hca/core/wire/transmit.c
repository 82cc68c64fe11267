// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames out: the device reserves room for a frame, builds it there and
 * commits it.
 *
 * A frame is built in the host's transmit ring, so that it is copied only when
 * functions of this device get it.  Copies wait in the loopback queue, each with its
 * sender and with the functions that get it, which share one copy.  Room in both the
 * ring and the loopback queue is required before a frame begins, since its
 * destination is known only when it is complete: no frame is lost inside the device
 * (but one that is longer than any packet, which is never for its functions).
 * While the link is down the device builds frames in a scratch buffer, and only those
 * for functions of the device arrive.
 */
#include <stdlib.h>

#include "hca.h"
#include "wire/icrc.h"
#include "wire/pkt.h"

bool hca_wire_create(struct hca *hca)
{
	struct hca_wire *w = &hca->wire;

	w->scratch = malloc(QHCA_MAX_BUNDLE_FRAME);
	w->rx_scratch = malloc(QHCA_MAX_BUNDLE_FRAME);
	w->loop = malloc((size_t)HCA_LOOP_FRAMES * QHCA_MAX_FRAME);
	w->untagged = malloc(QHCA_MAX_BUNDLE_FRAME);
	w->private = malloc(QHCA_MAX_BUNDLE_FRAME);
	w->packet = malloc(QHCA_MAX_FRAME);
	return w->scratch && w->rx_scratch && w->loop && w->untagged &&
	       w->private && w->packet;
}

void hca_wire_destroy(struct hca *hca)
{
	free(hca->wire.scratch);
	free(hca->wire.rx_scratch);
	free(hca->wire.untagged);
	free(hca->wire.private);
	free(hca->wire.packet);
	free(hca->wire.loop);
	memset(&hca->wire, 0, sizeof(hca->wire));
}

size_t hca_wire_longest(const struct hca *hca)
{
	size_t bundle = hca_pf(hca)->cfg.max_bundle + HCA_MAX_OVERHEAD +
			HCA_VLAN_HLEN;	/* of a port VLAN */

	return bundle > QHCA_MAX_FRAME ? bundle : QHCA_MAX_FRAME;
}

_Static_assert(HCA_LOOP_FRAMES > QHCA_MAX_VFS, "a place for each function");

bool hca_wire_has_room(const struct hca_fn *fn)
{
	const struct hca_wire *w = &fn->hca->wire;

	return hca_places_left(&w->loop_places, fn, w->loop_pi - w->loop_ci,
			       HCA_LOOP_FRAMES);
}

static struct hca_looped *looped(struct hca_wire *w, uint32_t i)
{
	return &w->looped[i % HCA_LOOP_FRAMES];
}

void hca_wire_looped_done(struct hca *hca)
{
	struct hca_wire *w = &hca->wire;

	hca_places_give_back(&w->loop_places, looped(w, w->loop_ci++)->from);
}

void hca_wire_forget(struct hca_fn *fn)
{
	struct hca_wire *w = &fn->hca->wire;

	w->tx_frame = NULL;
	for (uint32_t i = w->loop_ci; i != w->loop_pi; i++)
		looped(w, i)->to &= ~(1ull << fn->cfg.gvmi);
	while (w->loop_pi != w->loop_ci && !looped(w, w->loop_pi - 1)->to)
		hca_places_give_back(&w->loop_places,
				     looped(w, --w->loop_pi)->from);
	while (w->loop_pi != w->loop_ci && !looped(w, w->loop_ci)->to)
		hca_wire_looped_done(fn->hca);
	w->tx_no_loop = false;
	/*
	 * A host without room reports this again, and one that has dropped its
	 * frames may not.
	 */
	w->tx_blocked = false;
}

bool hca_wire_takes_eth(const struct hca_fn *fn)
{
	const struct hca *hca = fn->hca;

	return !hca->wire.tx_blocked &&
	       (hca_switch_idle(&hca->sw) || hca_wire_has_room(fn));
}

/* Keep a copy for the functions @to. */
static void loop_push(struct hca_fn *fn, const uint8_t *frame, size_t len,
		      uint64_t to)
{
	struct hca_wire *w = &fn->hca->wire;
	uint32_t slot = w->loop_pi % HCA_LOOP_FRAMES;

	if (w->loop_pi - w->loop_ci == HCA_LOOP_FRAMES || len > QHCA_MAX_FRAME)
		return;			/* the frame is lost, as on a wire */
	memcpy(w->loop + (size_t)slot * QHCA_MAX_FRAME, frame, len);
	w->looped[slot] = (struct hca_looped){
		.to = to, .len = (uint32_t)len, .from = fn->cfg.gvmi,
	};
	w->loop_pi++;
	hca_places_take(&w->loop_places, fn->cfg.gvmi);
	if (to >> fn->cfg.gvmi & 1)
		hca_count(fn, QHCA_CNT_loopback_packets);
}

/*
 * Must the other end of the link see a frame only when it is sent there?  It could read, and
 * change, what functions of this device say to each other, or what the switch refuses.
 */
static bool stays_hidden(const struct hca *hca)
{
	return hca->wire.shared && !hca_switch_idle(&hca->sw);
}

/* Room for a frame of @max_len bytes, @skip bytes behind its beginning. */
static uint8_t *begin_frame(struct hca_fn *fn, size_t max_len, size_t skip)
{
	struct hca_wire *w = &fn->hca->wire;

	w->tx_frame = NULL;
	if (max_len > hca_wire_longest(fn->hca) - skip)
		return NULL;
	w->tx_scratch = !fn->hca->link_up || !hca_fn_linked(fn);
	w->tx_slot = NULL;
	if (w->tx_scratch) {
		w->tx_frame = w->scratch;
	} else if (!w->tx_blocked) {
		w->tx_frame = fn->hca->ops.tx_reserve(fn->hca->host,
						      max_len + skip);
		w->tx_blocked = !w->tx_frame;
		if (w->tx_frame && stays_hidden(fn->hca)) {
			w->tx_slot = w->tx_frame;
			w->tx_frame = w->scratch;
		}
	}
	w->tx_room = max_len;
	if (w->tx_frame)
		w->tx_frame += skip;
	return w->tx_frame;
}

uint8_t *hca_tx_begin(struct hca_fn *fn, size_t max_len)
{
	struct hca_wire *w = &fn->hca->wire;

	w->tx_frame = NULL;
	if (!hca_wire_has_room(fn))
		return NULL;
	return begin_frame(fn, max_len, hca_switch_tag_len(fn));
}

/* The frame begun, if it has @len bytes; NULL: there is none. */
static uint8_t *take_frame(struct hca_wire *w, size_t len)
{
	uint8_t *frame = w->tx_frame;

	w->tx_frame = NULL;
	return len > w->tx_room || len < HCA_ETH_HLEN ? NULL : frame;
}

/*
 * Where a frame goes that has its tag.  @copy: to its sender as well, unless it goes
 * there alone.
 */
static void route(const struct hca_fn *fn, const uint8_t *frame, size_t len,
		  bool copy, struct hca_route *r)
{
	uint64_t self = 1ull << fn->cfg.gvmi;

	if (!hca_switch_idle(&fn->hca->sw)) {
		hca_switch_route(fn->hca, fn, frame, len, r);
	} else {
		r->wire = frame[0] & 1 || !hca_mac_is_ours(fn, frame);
		r->fns = r->wire ? 0 : self;
	}
	if (copy)
		r->fns |= self;
}

/* Each receiver of a frame is paid for; the wire is one. */
static void charge_copies(struct hca_fn *fn, size_t len,
			  const struct hca_route *r)
{
	unsigned int receivers = hca_count_bits(r->fns) + r->wire;

	if (receivers < 2)
		return;
	fn->hca->wire.copies += receivers - 1;
	hca_rate_sent(fn, (receivers - 1) * (len - hca_switch_tag_len(fn)));
}

/* Commit the frame last reserved, or keep it for functions of this device. */
static void emit(struct hca_fn *fn, const uint8_t *frame, size_t len,
		 const struct hca_route *r)
{
	const struct hca_wire *w = &fn->hca->wire;

	if (!hca_switch_idle(&fn->hca->sw))
		charge_copies(fn, len, r);
	if (r->fns)
		loop_push(fn, frame, len, r->fns);
	if (!r->wire || w->tx_scratch)
		return;
	if (w->tx_slot)
		memcpy(w->tx_slot, frame, len);
	fn->hca->ops.tx_commit(fn->hca->host, len);
}

/*
 * A packet of the transport, as it is inside the switch.  It may lie in memory that the peer
 * can change, so nothing here looks for headers in it.
 */
struct packet {
	uint8_t *frame;
	size_t len;
	size_t ip_off, ip_len;		/* the IP header */
	bool sealed;			/* it has its ICRC, whatever the link does */
};

/*
 * Give a packet the ICRC that the link does without: other functions of this device, and
 * the injector, get whole packets.
 */
static void seal(const struct hca_fn *fn, struct packet *p)
{
	size_t bth_off = p->ip_off + p->ip_len + HCA_UDP_HLEN;

	if (fn->hca->wire.no_icrc && !p->sealed)
		put_le32(p->frame + p->len - HCA_ICRC_LEN,
			 hca_icrc_to_send(fn->cfg.rxe_flush,
					  p->frame + p->ip_off, p->ip_len,
					  p->len - HCA_ICRC_LEN - bth_off));
	p->sealed = true;
}

static inline void emit_packet(struct hca_fn *fn, struct packet *p)
{
	bool copy = p->frame[0] & 1 && fn->port.num_members &&
		    !fn->hca->wire.tx_no_loop;
	struct hca_route r;

	route(fn, p->frame, p->len, copy, &r);
	if (r.fns)
		seal(fn, p);
	emit(fn, p->frame, p->len, &r);
}

/* The rules of the switch are for VFs: all is allowed to the physical function. */
static bool admit(struct hca_fn *fn, const uint8_t *frame, size_t len,
		  bool free)
{
	return !fn->cfg.gvmi || hca_switch_admit(fn, frame, len, free);
}

static void inject_packet(struct hca_fn *fn, struct packet *p)
{
	struct hca_inject *inj = &fn->hca->inject;

	seal(fn, p);
	if (!hca_inject_apply(fn, p->frame, p->len,
			      p->ip_off + p->ip_len + HCA_UDP_HLEN, false))
		return;
	emit_packet(fn, p);
	hca_inject_passed(inj, false, fn->hca->now);
}

void hca_tx_end(struct hca_fn *fn, size_t len, size_t ip_off, size_t ip_len)
{
	struct hca_wire *w = &fn->hca->wire;
	uint8_t *frame = take_frame(w, len);
	struct packet p;

	if (!frame)
		return;
	hca_count(fn, QHCA_CNT_tx_packets);
	hca_count_n(fn, QHCA_CNT_tx_bytes, len);
	hca_rate_sent(fn, len);
	if (!admit(fn, frame, len, false)) {
		w->tx_no_loop = false;
		return;
	}
	p = (struct packet){
		.frame = hca_switch_tag(fn, frame),
		.len = len + hca_switch_tag_len(fn),
		.ip_off = ip_off + hca_switch_tag_len(fn), .ip_len = ip_len,
	};
	if (!hca_inject_active(&fn->hca->inject, false))
		emit_packet(fn, &p);
	else
		inject_packet(fn, &p);
	w->tx_no_loop = false;
}

void hca_tx_raw(struct hca_fn *fn, size_t len)
{
	uint8_t *frame = take_frame(&fn->hca->wire, len);
	struct hca_route r;
	bool wants;

	if (!frame)
		return;
	hca_count(fn, QHCA_CNT_raw_tx_packets);
	hca_rate_sent(fn, len);
	if (!admit(fn, frame, len, true))
		return;
	wants = hca_flow_wants(fn, frame, len);
	len += hca_switch_tag_len(fn);
	frame = hca_switch_tag(fn, frame);
	route(fn, frame, len, wants, &r);
	emit(fn, frame, len, &r);
}

bool hca_tx_release(struct hca_fn *fn, const struct hca_inject_frame *f)
{
	struct packet p = { .len = f->len, .sealed = true };

	if (!hca_wire_has_room(fn))
		return false;
	p.frame = begin_frame(fn, f->len, 0);
	if (!p.frame)
		return false;
	memcpy(p.frame, hca_inject_data(&fn->hca->inject, f), f->len);
	fn->hca->wire.tx_frame = NULL;
	emit_packet(fn, &p);
	return true;
}

/* ---- Ethernet queues */

bool hca_tx_eth_linked(const struct hca_fn *fn)
{
	return fn->hca->link_up || !hca_switch_idle(&fn->hca->sw);
}

uint8_t *hca_tx_eth_begin(struct hca_fn *fn, size_t max_len)
{
	if (!hca_wire_takes_eth(fn))
		return NULL;
	return begin_frame(fn, max_len, hca_switch_tag_len(fn));
}

bool hca_tx_eth_end(struct hca_fn *fn, size_t len)
{
	const struct hca_switch *sw = &fn->hca->sw;
	uint8_t *frame = take_frame(&fn->hca->wire, len);
	struct hca_route r = { .wire = true };

	if (!frame || !admit(fn, frame, len, true))
		return false;
	len += hca_switch_tag_len(fn);
	frame = hca_switch_tag(fn, frame);
	if (!hca_switch_idle(sw))
		hca_switch_route(fn->hca, fn, frame, len, &r);
	if (r.fns >> fn->cfg.gvmi & 1)	/* its own address: never looped back */
		r = (struct hca_route){ .wire = true };
	emit(fn, frame, len, &r);
	return r.fns || !fn->hca->wire.tx_scratch;
}

void qhca_tx_ready(struct qhca_hca *dev, uint64_t now)
{
	struct hca *hca = &dev->hca;

	if (!hca->entered)
		hca->now = now + hca->clock_offset;
	hca->wire.tx_blocked = false;
}

void qhca_link_is_shared(struct qhca_hca *dev, bool shared)
{
	dev->hca.wire.shared = shared;
}

void qhca_link_without_icrc(struct qhca_hca *dev, bool without)
{
	dev->hca.wire.no_icrc = without;
}
