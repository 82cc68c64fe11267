// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Frames in: the device decides for each frame who gets it.
 *
 * A frame that is RoCEv2 and for an address of this port goes to the
 * transport, any other to flow rules and then to the Ethernet queue.  The same
 * path serves frames from the wire, looped-back frames and those that the
 * injector has held.  A frame is handled where it lies; the injector, which may
 * change a frame, works on a copy.
 */
#include <stdlib.h>

#include "hca.h"
#include "life.h"
#include "deliver.h"
#include "flow_rx.h"
#include "receive.h"

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
static bool parse_ip(struct hca_rx_info *info, uint16_t ethertype)
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
static bool lengths_agree(struct hca_rx_info *info)
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

enum hca_steer hca_wire_steer(struct hca_fn *fn, const uint8_t *frame,
			      size_t len, struct hca_rx_info *info)
{
	uint16_t ethertype;

	if (!fn->initialised ||
	    len < HCA_ETH_HLEN + IPV4_HLEN + HCA_UDP_HLEN)
		return HCA_STEER_ETH;
	info->frame = frame;
	info->len = len;
	info->vlan = HCA_VLAN_NONE;
	info->ip_off = HCA_ETH_HLEN;
	ethertype = get_be16(frame + 12);
	if (ethertype == HCA_ETHERTYPE_VLAN) {
		info->vlan = get_be16(frame + 14);
		info->ip_off += HCA_VLAN_HLEN;
		ethertype = get_be16(frame + 16);
	}
	if (!parse_ip(info, ethertype) || !is_for_us(fn, info))
		return HCA_STEER_ETH;
	return lengths_agree(info) ? HCA_STEER_ROCE : HCA_STEER_DROP;
}

/* ------------------------------------------------------------------------
 * Receiving
 */
static void deliver(struct hca_fn *fn, const uint8_t *frame, size_t len)
{
	struct hca_rx_info info;

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
		if (!fn->flows.num) {
			hca_eth_rx(fn, frame, len);
		} else if (!hca_flow_steer(fn, frame, len) &&
			   !hca_is_dead(fn) &&
			   !hca_eth_rx(fn, frame, len)) {
			hca_flow_default(fn, frame, len);
		}
		break;
	}
}

/*
 * Handle a frame from the wire, or one that was looped back, after the
 * injector.
 */
static void receive(struct hca *hca, const uint8_t *frame, size_t len)
{
	struct hca_wire *w = &hca->wire;
	struct hca_rx_info info;

	if (!hca_inject_active(&hca->inject, true) ||
	    hca_wire_steer(hca_pf(hca), frame, len, &info) != HCA_STEER_ROCE) {
		deliver(hca_pf(hca), frame, len);
		return;
	}
	memcpy(w->rx_scratch, frame, len);
	if (!hca_inject_apply(hca_pf(hca), w->rx_scratch, info.len, info.bth_off,
			      true))
		return;
	deliver(hca_pf(hca), w->rx_scratch, len);
	hca_inject_passed(&hca->inject, true, hca->now);
}

static void receive_checked(struct hca *hca, const uint8_t *frame,
			    size_t len)
{
	if (len > QHCA_MAX_FRAME || len < HCA_ETH_HLEN) {
		hca_count(hca_pf(hca), QHCA_CNT_rx_dropped);
		return;
	}
	if (!memcmp(frame + 6, hca_pf(hca)->port.mac, 6))
		hca_count(hca_pf(hca), QHCA_CNT_rx_own_mac);
	receive(hca, frame, len);
}

void qhca_rx_frame(struct qhca_hca *dev, const uint8_t *frame, size_t len,
		   uint64_t now)
{
	struct hca *hca = &dev->hca;
	struct hca_fn *fn = hca_pf(hca);

	if (!hca_enter(hca, now)) {
		hca_count(fn, QHCA_CNT_rx_dropped);
		return;
	}
	if (!hca_is_dead(fn))
		receive_checked(hca, frame, len);
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
		if (!hca_tx_release(hca_pf(hca), f))
			return false;
		hca_inject_drop(&hca->inject, f);
		return true;
	}
	/*
	 * The injector may hold answers to this frame in the store, so free its
	 * slot only afterwards.
	 */
	deliver(hca_pf(hca), hca_inject_data(&hca->inject, f), f->len);
	hca_inject_drop(&hca->inject, f);
	return true;
}

static void loop_one(struct hca *hca)
{
	struct hca_wire *w = &hca->wire;
	uint32_t slot = w->loop_ci % HCA_LOOP_FRAMES;

	/* the frame stays in its slot, and answers to it take other slots */
	receive(hca, w->loop + (size_t)slot * QHCA_MAX_FRAME,
		w->loop_len[slot]);
	w->loop_ci++;
}

unsigned int hca_wire_run(struct hca *hca, unsigned int budget)
{
	unsigned int done = 0;

	while (done < budget && !hca_is_dead(hca_pf(hca))) {
		if (hca_wire_pending(hca))
			loop_one(hca);
		else if (!hca->inject.held || !release_one(hca))
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
