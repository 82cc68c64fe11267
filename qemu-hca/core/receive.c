// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames in: the device decides for each frame who gets it.
 *
 * The switch says which functions a frame is for.  In each of them, a frame that is
 * RoCEv2 and for an address of this port goes to the transport, any other to flow rules
 * and then to the Ethernet queue.  The same path serves frames from the wire, looped-back
 * frames and those that the injector has held.  A frame is handled where it lies; the
 * injector, which may change a frame, works on a copy.
 */
#include <stdlib.h>

#include "hca.h"
#include "life.h"
#include "deliver.h"
#include "flow_rx.h"
#include "receive.h"
#include "wire/icrc.h"
#include "wire/pkt.h"
#include "wire/bundle.h"
#include "wire/large_segment.h"

#define IP_PROTO_UDP	17
#define IPV4_HLEN	20
#define IPV6_HLEN	40
#define IPV4_FRAGMENT	0x3fff		/* more-fragments and offset */

/* ------------------------------------------------------------------------
 * Steering (hardware.rst, "Packets received")
 */
static const uint8_t mapped_prefix[12] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff,
};

static void map_ipv4(uint8_t gid[16], const uint8_t *addr)
{
	memcpy(gid, mapped_prefix, sizeof(mapped_prefix));
	memcpy(gid + sizeof(mapped_prefix), addr, 4);
}

/*
 * Is the IP packet at ip_off UDP to the RoCE port?  Fills in offsets and
 * addresses.
 */
static inline bool parse_ip(struct hca_rx_info *info, uint16_t ethertype)
{
	const uint8_t *ip = info->frame + info->ip_off;
	size_t room = info->len - info->ip_off;

	if (ethertype == HCA_ETHERTYPE_IPV4) {
		if (room < IPV4_HLEN + HCA_UDP_HLEN || ip[0] != 0x45 ||
		    ip[9] != IP_PROTO_UDP || get_be16(ip + 6) & IPV4_FRAGMENT)
			return false;
		info->ip_version = 4;
		info->udp_off = (uint16_t)(info->ip_off + IPV4_HLEN);
		map_ipv4(info->sgid, ip + 12);
		map_ipv4(info->dgid, ip + 16);
	} else if (ethertype == HCA_ETHERTYPE_IPV6) {
		if (room < IPV6_HLEN + HCA_UDP_HLEN || ip[0] >> 4 != 6 ||
		    ip[6] != IP_PROTO_UDP)
			return false;
		info->ip_version = 6;
		info->udp_off = (uint16_t)(info->ip_off + IPV6_HLEN);
		memcpy(info->sgid, ip + 8, 16);
		memcpy(info->dgid, ip + 24, 16);
	} else {
		return false;
	}
	info->bth_off = (uint16_t)(info->udp_off + HCA_UDP_HLEN);
	return get_be16(info->frame + info->udp_off + 2) ==
	       HCA_ROCE_UDP_PORT;
}

/*
 * Is the packet addressed to one of the port's GIDs, or to a group with
 * members?
 */
static bool is_for_us(struct hca_fn *fn, struct hca_rx_info *info)
{
	uint16_t vid = info->vlan == HCA_VLAN_NONE ? 0 : info->vlan & 0xfff;

	if (info->frame[0] & 1) {
		info->multicast = true;
		info->sgid_index = -1;
		return hca_mcast_any(fn, info->dgid);
	}
	if (!hca_mac_is_ours(fn, info->frame))
		return false;
	info->multicast = false;
	info->sgid_index = (int16_t)hca_gid_find(fn, info->dgid, vid ? vid :
						 HCA_VLAN_NONE);
	return info->sgid_index >= 0;
}

/*
 * Do the lengths agree, and is the IPv4 header sound?  Removes Ethernet
 * padding.
 */
static inline bool lengths_agree(struct hca_rx_info *info)
{
	const uint8_t *ip = info->frame + info->ip_off;
	uint32_t udp_len = get_be16(info->frame + info->udp_off + 4);
	uint32_t ip_payload;

	if (info->ip_version == 4) {
		if (hca_csum_fold(hca_csum_add(0, ip, IPV4_HLEN)))
			return false;
		if (get_be16(ip + 2) < IPV4_HLEN)
			return false;
		ip_payload = get_be16(ip + 2) - (uint32_t)IPV4_HLEN;
	} else {
		ip_payload = get_be16(ip + 4);
	}
	if (udp_len != ip_payload ||
	    udp_len < HCA_UDP_HLEN + HCA_MIN_ROCE_LEN ||
	    info->udp_off + udp_len > info->len)
		return false;
	info->len = info->udp_off + udp_len;
	info->bth_len = (uint16_t)(udp_len - HCA_UDP_HLEN);
	return true;
}

/* Is the frame a packet of RoCEv2, for whomever? */
static inline bool find_roce(const uint8_t *frame, size_t len,
			     struct hca_rx_info *info)
{
	uint16_t ethertype;

	if (len < HCA_ETH_HLEN + IPV4_HLEN + HCA_UDP_HLEN)
		return false;
	info->frame = frame;
	info->body = frame;
	info->len = len;
	info->vlan = HCA_VLAN_NONE;
	info->ip_off = HCA_ETH_HLEN;
	ethertype = get_be16(frame + 12);
	if (ethertype == HCA_ETHERTYPE_VLAN) {
		info->vlan = get_be16(frame + 14);
		info->ip_off += HCA_VLAN_HLEN;
		ethertype = get_be16(frame + 16);
	}
	return parse_ip(info, ethertype);
}

enum hca_steer hca_wire_steer(struct hca_fn *fn, const uint8_t *frame,
			      size_t len, struct hca_rx_info *info)
{
	if (!fn->initialised || fn->restore || !find_roce(frame, len, info) ||
	    !is_for_us(fn, info))
		return HCA_STEER_ETH;
	return lengths_agree(info) ? HCA_STEER_ROCE : HCA_STEER_DROP;
}

/* ------------------------------------------------------------------------
 * Receiving
 */

/* On a hub, the bundles of others come by. */
static void count_too_long(struct hca_fn *fn, const uint8_t *frame)
{
	hca_count(fn, frame[0] & 1 || hca_mac_is_ours(fn, frame) ?
			      QHCA_CNT_rx_dropped : QHCA_CNT_eth_rx_filtered);
}

static void deliver(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	struct hca_rx_info info;

	if (hca_is_dead(fn))
		return;
	if (fn->restore) {		/* rules and rings lead to contexts and memory */
		hca_count(fn, QHCA_CNT_rx_dropped);
		return;
	}
	if (fn->flows.of_type[QHCA_FLOW_SNIFFER]) {
		hca_flow_sniff(fn, frame, len);
		if (hca_is_dead(fn))
			return;
	}
	switch (hca_wire_steer(fn, frame, len, &info)) {
	case HCA_STEER_ROCE:
		hca_roce_rx(fn, &info);
		break;
	case HCA_STEER_DROP:
		hca_count(fn, QHCA_CNT_rx_malformed);
		break;
	case HCA_STEER_ETH:
		if (len > QHCA_MAX_FRAME) {
			count_too_long(fn, frame);
		} else if (!fn->flows.num) {
			hca_eth_rx(fn, frame, len);
		} else if (!hca_flow_steer(fn, frame, len) &&
			   !hca_is_dead(fn) &&
			   !hca_eth_rx(fn, frame, len)) {
			hca_flow_default(fn, frame, len);
		}
		break;
	}
}

static void receive_packet(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	struct hca_inject *inj = &fn->hca->inject;
	struct hca_wire *w = &fn->hca->wire;
	struct hca_rx_info info;

	if (!hca_inject_active(inj, true) || hca_is_dead(fn) ||
	    hca_wire_steer(fn, frame, len, &info) != HCA_STEER_ROCE) {
		deliver(fn, frame, len);
		return;
	}
	memcpy(w->rx_scratch, frame, len);
	if (!hca_inject_apply(fn, w->rx_scratch, info.len, info.bth_off, true))
		return;
	deliver(fn, w->rx_scratch, len);
	hca_inject_passed(inj, true, fn->hca->now);
}

/*
 * Sniffers and the injector get the packets of a bundle one by one; sniffers get what is
 * dropped as one frame whole.
 */
static bool receive_bundle(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	struct hca_rx_info info;
	struct hca_pkt bundle, pkt;
	unsigned int num;

	if (hca_is_dead(fn) ||
	    hca_wire_steer(fn, frame, len, &info) != HCA_STEER_ROCE ||
	    !hca_pkt_parse(frame + info.bth_off, info.bth_len, &bundle) ||
	    !(num = hca_bundle_packets(&bundle)))
		return false;
	if (info.multicast || !hca_roce_icrc_right(fn, &info)) {
		deliver(fn, frame, len);
		return true;
	}
	fn->hca->bundles.received++;
	for (unsigned int i = 0; i < num; i++) {
		uint8_t *packet = fn->hca->wire.packet;

		hca_bundle_packet(&bundle, i, num, &pkt);
		receive_packet(fn, packet,
			       hca_bundle_frame(frame, info.ip_off,
						info.bth_off, &pkt, packet));
	}
	return true;
}

/* Whoever gets frames of the wire gets the segments of a large one, one by one. */
static bool receive_large(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	HCA_UNINITIALIZED uint8_t hdr[QHCA_MAX_TSO_HDR];
	uint8_t *segment = fn->hca->wire.packet;
	struct hca_tso tso = { 0 };

	if (hca_is_dead(fn) || !hca_mac_is_ours(fn, frame) ||
	    !hca_large_parse(frame, len, &tso, hdr))
		return false;
	fn->hca->bundles.large_received++;
	for (uint32_t off = 0; off < tso.len - tso.hdr_len; off += tso.mss) {
		uint32_t part = hca_tso_payload(&tso, off);

		memcpy(segment, hdr, tso.hdr_len);
		memcpy(segment + tso.hdr_len, frame + tso.hdr_len + off, part);
		hca_tso_finish(&tso, segment, off, part);
		part += tso.hdr_len;
		if (part < HCA_MIN_FRAME)
			memset(segment + part, 0, HCA_MIN_FRAME - part);
		deliver(fn, segment, part < HCA_MIN_FRAME ? HCA_MIN_FRAME : part);
	}
	return true;
}

/* Nearly all frames are, as packets of RoCE.  false also if there is a tag. */
static inline bool is_udp(const uint8_t *frame, size_t len)
{
	uint16_t type = get_be16(frame + 12);

	if (len < HCA_ETH_HLEN + IPV4_HLEN)
		return false;
	return (type == HCA_ETHERTYPE_IPV4 &&
		frame[HCA_ETH_HLEN + 9] == IP_PROTO_UDP) ||
	       (type == HCA_ETHERTYPE_IPV6 &&
		frame[HCA_ETH_HLEN + 6] == IP_PROTO_UDP);
}

/*
 * What is nobody's data as it is: what adapters say to each other, and large segments.  Own
 * frames of functions are paid for one by one, and stay as they are.
 */
static bool take_apart(struct hca_fn *fn, const struct hca_fn *from,
		       const uint8_t *frame, size_t len)
{
	if (is_udp(frame, len))
		return false;
	return hca_peers_rx(fn, frame, len) ||
	       (!from && receive_large(fn, frame, len));
}

/*
 * Handle a frame from the wire, or one that was looped back, after the
 * injector.  @from: the function that has sent it; NULL: it came from the wire.
 */
static void receive(struct hca_fn *fn, const struct hca_fn *from,
		    const uint8_t *frame, size_t len)
{
	bool watched;

	if (take_apart(fn, from, frame, len))
		return;
	watched = hca_inject_active(&fn->hca->inject, true) ||
		  fn->flows.of_type[QHCA_FLOW_SNIFFER];
	if (!watched || !receive_bundle(fn, frame, len))
		receive_packet(fn, frame, len);
}

/* A frame out of the switch for a function. */
static void receive_at(struct hca_fn *fn, const struct hca_fn *from,
		       const uint8_t *frame, size_t len)
{
	if (!hca_fn_linked(fn)) {
		hca_count(fn, QHCA_CNT_rx_dropped);
		return;
	}
	/* The switch has compared the tag, but SET_VF may have changed it since. */
	if (fn->vf.vlan && !hca_switch_has_tag(fn, frame, len)) {
		hca_count(fn, QHCA_CNT_rx_dropped);
		return;
	}
	if (fn->vf.vlan) {
		len = hca_switch_untag(frame, len, fn->hca->wire.untagged);
		frame = fn->hca->wire.untagged;
	}
	receive(fn, from, frame, len);
}

/* @from: the function that has sent the frame; NULL: it came from the wire. */
static unsigned int receive_all(struct hca *hca, uint64_t to,
				const struct hca_fn *from,
				const uint8_t *frame, size_t len)
{
	unsigned int num = 0;

	for (; to; to &= to - 1) {
		struct hca_fn *fn = hca->fn[hca_lowest_bit(to)];

		if (!fn->enabled)
			continue;
		if (from && from != fn)
			hca_count(fn, QHCA_CNT_switched_packets);
		receive_at(fn, from, frame, len);
		num++;
	}
	return num;
}

/* A frame that comes from one of our own addresses shows a loop, or an impostor. */
static inline void count_own_mac(struct hca *hca, const uint8_t *frame,
				 size_t len)
{
	struct hca_fn *source = hca_pf(hca);

	if (!hca_switch_idle(&hca->sw))
		source = hca_switch_source(hca, frame, len);
	else if (memcmp(frame + 6, source->port.mac, sizeof(source->port.mac)))
		return;
	if (source)
		hca_count(source, QHCA_CNT_rx_own_mac);
}

static inline void receive_checked(struct hca *hca, const uint8_t *frame,
				   size_t len)
{
	struct hca_fn *pf = hca_pf(hca);
	struct hca_route r;

	if (len < HCA_ETH_HLEN) {
		hca_count(pf, QHCA_CNT_rx_dropped);
		return;
	}
	if (len > hca_wire_longest(hca)) {
		count_too_long(pf, frame);
		return;
	}
	if (hca_switch_idle(&hca->sw)) {
		if (hca_is_dead(pf))
			return;
		count_own_mac(hca, frame, len);
		receive(pf, NULL, frame, len);
		return;
	}
	count_own_mac(hca, frame, len);
	hca_switch_route(hca, NULL, frame, len, &r);
	receive_all(hca, r.fns, NULL, frame, len);
}

size_t qhca_max_frame(const struct qhca_hca *dev)
{
	return hca_wire_longest(&dev->hca);
}

void qhca_rx_frame(struct qhca_hca *dev, const uint8_t *frame, size_t len,
		   uint64_t now)
{
	struct hca *hca = &dev->hca;

	if (!hca_enter(hca, now)) {
		hca_count(hca_pf(hca), QHCA_CNT_rx_dropped);
		return;
	}
	receive_checked(hca, frame, len);
	hca_leave(hca);
}

/* ------------------------------------------------------------------------
 * Frames in memory that their sender can change
 */

/*
 * Could the device have sent it?  Its packets have no checksum of UDP.  Programs that use
 * the port for a protocol of their own have one, and their zeros are theirs.
 */
static bool is_of_device(const struct hca_rx_info *info)
{
	return !get_be16(info->frame + info->udp_off + 6) &&
	       hca_pkt_what(info->frame[info->bth_off]);
}

static void fill_icrc(const struct hca *hca, uint8_t *frame, size_t len)
{
	bool rxe_flush = hca->fn[0]->cfg.rxe_flush;
	struct hca_rx_info info;
	uint8_t *icrc;
	size_t ip_len;

	if (!find_roce(frame, len, &info) || !lengths_agree(&info) ||
	    !is_of_device(&info))
		return;
	ip_len = info.udp_off - info.ip_off;
	icrc = frame + info.bth_off + info.bth_len - HCA_ICRC_LEN;
	if (!get_le32(icrc))
		put_le32(icrc, hca_icrc_to_send(rxe_flush, frame + info.ip_off,
						ip_len, info.bth_len -
							HCA_ICRC_LEN));
}

void qhca_fill_icrc(const struct qhca_hca *dev, uint8_t *frame, size_t len)
{
	if (dev->hca.wire.no_icrc)
		fill_icrc(&dev->hca, frame, len);
}

/* Does anybody look at packets that come, but the QP that a packet is for? */
static bool is_watched(const struct hca *hca)
{
	if (hca_inject_active(&hca->inject, true))
		return true;
	for (uint16_t gvmi = 0; gvmi <= hca->num_vfs; gvmi++)
		if (hca->fn[gvmi] && hca->fn[gvmi]->flows.of_type[QHCA_FLOW_SNIFFER])
			return true;
	return false;
}

/* The only function that gets a frame, and gets it as it is; NULL: there is no such one. */
static struct hca_fn *only_receiver(const struct hca *hca, const uint8_t *head,
				    size_t len)
{
	struct hca_route r = { .fns = 1 };
	struct hca_fn *fn;

	if (!hca_switch_idle(&hca->sw))
		hca_switch_route(hca, NULL, head, len, &r);
	fn = hca->fn[hca_lowest_bit(r.fns)];
	if (r.fns & (r.fns - 1) || !fn->enabled || !hca_fn_linked(fn) ||
	    fn->vf.vlan || hca_is_dead(fn))
		return NULL;
	return fn;
}

_Static_assert(HCA_ROCE_HEADERS >= HCA_MAX_OVERHEAD - HCA_ICRC_LEN,
	       "headers are copied whole");

/* Deliver a packet for one function, whose headers are copied.  false: it is none. */
static bool receive_in_place(struct hca *hca, const uint8_t *shared, size_t len)
{
	uint8_t *head = hca->wire.private;
	struct hca_rx_info info;
	struct hca_fn *fn;

	memcpy(head, shared, len < HCA_ROCE_HEADERS ? len : HCA_ROCE_HEADERS);
	fn = only_receiver(hca, head, len);
	if (!fn || hca_wire_steer(fn, head, len, &info) != HCA_STEER_ROCE)
		return false;
	count_own_mac(hca, head, len);
	info.body = shared;
	hca_roce_rx(fn, &info);
	return true;
}

static void receive_shared(struct hca *hca, const uint8_t *shared, size_t len)
{
	uint8_t *copy = hca->wire.private;

	if (len > hca_wire_longest(hca) || len < HCA_ETH_HLEN) {
		hca_count(hca_pf(hca), QHCA_CNT_rx_dropped);
		return;
	}
	if (!is_watched(hca) && receive_in_place(hca, shared, len))
		return;
	memcpy(copy, shared, len);
	/* What is not for this port goes to software, such as Soft-RoCE, or on to others. */
	if (hca->wire.no_icrc)
		fill_icrc(hca, copy, len);
	receive_checked(hca, copy, len);
}

void qhca_rx_shared(struct qhca_hca *dev, const uint8_t *shared, size_t len,
		    uint64_t now)
{
	struct hca *hca = &dev->hca;

	if (!hca_enter(hca, now)) {
		hca_count(hca_pf(hca), QHCA_CNT_rx_dropped);
		return;
	}
	receive_shared(hca, shared, len);
	hca_leave(hca);
}

/* ------------------------------------------------------------------------
 * Frames that wait here
 */

static bool release_one(struct hca *hca)
{
	struct hca_inject_frame *f = hca_inject_due(&hca->inject, hca->now);

	if (!f)
		return false;
	if (!f->rx) {
		if (!hca_tx_release(hca_fn_of(hca, f->gvmi), f))
			return false;
		hca_inject_drop(&hca->inject, f);
		return true;
	}
	/*
	 * The injector may hold answers to this frame in the store, so free its
	 * slot only afterwards.
	 */
	deliver(hca_fn_of(hca, f->gvmi), hca_inject_data(&hca->inject, f),
		f->len);
	hca_inject_drop(&hca->inject, f);
	return true;
}

/* Returns how many functions got the frame, and 1 at least. */
static unsigned int loop_one(struct hca *hca)
{
	struct hca_wire *w = &hca->wire;
	uint32_t slot = w->loop_ci % HCA_LOOP_FRAMES;
	const struct hca_looped *l = &w->looped[slot];
	unsigned int num;

	/* The frame stays in its slot, and answers to it take other slots. */
	num = receive_all(hca, l->to, hca_fn_of(hca, l->from),
			  w->loop + (size_t)slot * QHCA_MAX_FRAME, l->len);
	hca_wire_looped_done(hca);
	return num ? num : 1;
}

unsigned int hca_wire_run(struct hca *hca, unsigned int budget)
{
	unsigned int done = 0;

	while (done < budget) {
		if (hca_wire_pending(hca)) {
			done += loop_one(hca);
			continue;
		}
		if (!hca->inject.held || !release_one(hca))
			break;
		done++;
	}
	return done;
}

bool hca_wire_looped(const struct hca *hca)
{
	return hca->wire.loop_ci != hca->wire.loop_pi;
}

bool hca_wire_pending(const struct hca *hca)
{
	return hca_wire_looped(hca) && !hca_stalled(hca);
}
