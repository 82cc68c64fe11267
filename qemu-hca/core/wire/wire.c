// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <stdlib.h>

#include "hca.h"

#define IP_PROTO_UDP	17
#define IPV4_HLEN	20
#define IPV6_HLEN	40
#define IPV4_FRAGMENT	0x3fff		/* more-fragments and offset */

bool qhca_wire_create(struct qhca_hca *hca)
{
	struct qhca_wire *w = &hca->wire;

	w->scratch = malloc(QHCA_MAX_FRAME);
	w->rx_scratch = malloc(QHCA_MAX_FRAME);
	w->loop = malloc((size_t)QHCA_LOOP_FRAMES * QHCA_MAX_FRAME);
	return w->scratch && w->rx_scratch && w->loop;
}

void qhca_wire_destroy(struct qhca_hca *hca)
{
	free(hca->wire.scratch);
	free(hca->wire.rx_scratch);
	free(hca->wire.loop);
	memset(&hca->wire, 0, sizeof(hca->wire));
}

void qhca_wire_reset(struct qhca_hca *hca)
{
	hca->wire.tx_frame = NULL;
	hca->wire.loop_ci = hca->wire.loop_pi;
	hca->wire.tx_no_loop = false;
	/* a host without room says so again; one that has lost what it held may not */
	hca->wire.tx_blocked = false;
}

/* ------------------------------------------------------------------------
 * Internet checksum
 */
static uint32_t fold16(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)sum;
}

uint32_t qhca_csum_add(uint32_t sum, const uint8_t *p, size_t len)
{
	uint64_t native = 0;
	uint32_t word, folded;

	/* the sum does not care about byte order until it is folded */
	for (; len >= 4; p += 4, len -= 4) {
		memcpy(&word, p, sizeof(word));
		native += word;
	}
	word = 0;
	memcpy(&word, p, len);
	native += word;
	folded = fold16(native);
	if (!QHCA_BIG_ENDIAN)
		folded = qhca_swap16((uint16_t)folded);
	return sum + folded;
}

uint16_t qhca_csum_fold(uint32_t sum)
{
	return (uint16_t)~fold16(sum);
}

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

/* Is the IP packet at ip_off UDP to the RoCE port?  Fills in what it learns. */
static bool parse_ip(struct qhca_rx_info *info, uint16_t ethertype)
{
	const uint8_t *ip = info->frame + info->ip_off;
	size_t room = info->len - info->ip_off;

	if (ethertype == QHCA_ETHERTYPE_IPV4) {
		if (room < IPV4_HLEN + QHCA_UDP_HLEN || ip[0] != 0x45 ||
		    ip[9] != IP_PROTO_UDP || get_be16(ip + 6) & IPV4_FRAGMENT)
			return false;
		info->ip_version = 4;
		info->udp_off = (uint16_t)(info->ip_off + IPV4_HLEN);
		map_ipv4(info->sgid, ip + 12);
		map_ipv4(info->dgid, ip + 16);
	} else if (ethertype == QHCA_ETHERTYPE_IPV6) {
		if (room < IPV6_HLEN + QHCA_UDP_HLEN || ip[0] >> 4 != 6 ||
		    ip[6] != IP_PROTO_UDP)
			return false;
		info->ip_version = 6;
		info->udp_off = (uint16_t)(info->ip_off + IPV6_HLEN);
		memcpy(info->sgid, ip + 8, 16);
		memcpy(info->dgid, ip + 24, 16);
	} else {
		return false;
	}
	info->bth_off = (uint16_t)(info->udp_off + QHCA_UDP_HLEN);
	return get_be16(info->frame + info->udp_off + 2) ==
	       QHCA_ROCE_UDP_PORT;
}

/* Does the packet come to one of our GIDs, or to members of a group? */
static bool is_for_us(struct qhca_hca *hca, struct qhca_rx_info *info)
{
	uint16_t vid = info->vlan == QHCA_VLAN_NONE ? 0 : info->vlan & 0xfff;

	if (info->frame[0] & 1) {
		info->multicast = true;
		info->sgid_index = -1;
		return qhca_mcast_any(hca, info->dgid);
	}
	if (!qhca_mac_is_ours(hca, info->frame))
		return false;
	info->multicast = false;
	info->sgid_index = (int16_t)qhca_gid_find(hca, info->dgid, vid ? vid :
						  QHCA_VLAN_NONE);
	return info->sgid_index >= 0;
}

/* Lengths agree, and the IPv4 header is sound.  Cuts padding off. */
static bool lengths_agree(struct qhca_rx_info *info)
{
	const uint8_t *ip = info->frame + info->ip_off;
	uint32_t udp_len = get_be16(info->frame + info->udp_off + 4);
	uint32_t ip_payload;

	if (info->ip_version == 4) {
		if (qhca_csum_fold(qhca_csum_add(0, ip, IPV4_HLEN)))
			return false;
		if (get_be16(ip + 2) < IPV4_HLEN)
			return false;
		ip_payload = get_be16(ip + 2) - (uint32_t)IPV4_HLEN;
	} else {
		ip_payload = get_be16(ip + 4);
	}
	if (udp_len != ip_payload ||
	    udp_len < QHCA_UDP_HLEN + QHCA_MIN_ROCE_LEN ||
	    info->udp_off + udp_len > info->len)
		return false;
	info->len = info->udp_off + udp_len;
	info->bth_len = (uint16_t)(udp_len - QHCA_UDP_HLEN);
	return true;
}

enum qhca_steer qhca_wire_steer(struct qhca_hca *hca, const uint8_t *frame,
				size_t len, struct qhca_rx_info *info)
{
	uint16_t ethertype;

	if (!hca->initialised ||
	    len < QHCA_ETH_HLEN + IPV4_HLEN + QHCA_UDP_HLEN)
		return QHCA_STEER_ETH;
	info->frame = frame;
	info->len = len;
	info->vlan = QHCA_VLAN_NONE;
	info->ip_off = QHCA_ETH_HLEN;
	ethertype = get_be16(frame + 12);
	if (ethertype == QHCA_ETHERTYPE_VLAN) {
		info->vlan = get_be16(frame + 14);
		info->ip_off += QHCA_VLAN_HLEN;
		ethertype = get_be16(frame + 16);
	}
	if (!parse_ip(info, ethertype) || !is_for_us(hca, info))
		return QHCA_STEER_ETH;
	return lengths_agree(info) ? QHCA_STEER_ROCE : QHCA_STEER_DROP;
}

/* ------------------------------------------------------------------------
 * Receiving
 */
static void deliver(struct qhca_hca *hca, const uint8_t *frame, size_t len)
{
	struct qhca_rx_info info;

	if (hca->flows.of_type[QHCA_FLOW_SNIFFER]) {
		qhca_flow_sniff(hca, frame, len);
		if (qhca_is_dead(hca))
			return;
	}
	switch (qhca_wire_steer(hca, frame, len, &info)) {
	case QHCA_STEER_ROCE:
		qhca_roce_rx(hca, &info);
		break;
	case QHCA_STEER_DROP:
		qhca_count(hca, QHCA_CNT_rx_malformed);
		break;
	case QHCA_STEER_ETH:
		if (!hca->flows.num) {
			qhca_eth_rx(hca, frame, len);
		} else if (!qhca_flow_steer(hca, frame, len) &&
			   !qhca_is_dead(hca) &&
			   !qhca_eth_rx(hca, frame, len)) {
			qhca_flow_default(hca, frame, len);
		}
		break;
	}
}

#define FATE(kind)	(1u << QHCA_INJECT_##kind)

/*
 * What the injector does to a frame of @len bytes at @frame, writable:
 * returns how often it goes on now.  @payload is where corruption may begin.
 */
static unsigned int inject(struct qhca_hca *hca, uint8_t *frame, size_t len,
			   size_t payload, bool rx)
{
	struct qhca_inject *inj = &hca->inject;
	uint32_t fate = qhca_inject_decide(inj);

	if (fate & FATE(DROP)) {
		qhca_count(hca, QHCA_CNT_inject_dropped);
		return 0;
	}
	if (fate & FATE(CORRUPT)) {
		qhca_inject_flip(inj, frame, payload, len);
		qhca_count(hca, QHCA_CNT_inject_corrupted);
	}
	if (fate & FATE(DUPLICATE) &&
	    qhca_inject_hold(inj, frame, len, rx, false, hca->now))
		qhca_count(hca, QHCA_CNT_inject_duplicated);
	if (fate & FATE(DELAY) &&
	    qhca_inject_hold(inj, frame, len, rx, false,
			     hca->now + inj->cfg.delay_ns)) {
		qhca_count(hca, QHCA_CNT_inject_delayed);
		return 0;
	}
	if (fate & FATE(REORDER) &&
	    qhca_inject_hold(inj, frame, len, rx, true,
			     hca->now + QHCA_INJECT_REORDER_NS)) {
		qhca_count(hca, QHCA_CNT_inject_reordered);
		return 0;
	}
	return 1;
}

/* A frame from the wire or looped back, through the injector. */
static void receive(struct qhca_hca *hca, const uint8_t *frame, size_t len)
{
	struct qhca_wire *w = &hca->wire;
	struct qhca_rx_info info;

	if (!qhca_inject_active(&hca->inject, true) ||
	    qhca_wire_steer(hca, frame, len, &info) != QHCA_STEER_ROCE) {
		deliver(hca, frame, len);
		return;
	}
	memcpy(w->rx_scratch, frame, len);
	if (!inject(hca, w->rx_scratch, info.len, info.bth_off, true))
		return;
	deliver(hca, w->rx_scratch, len);
	qhca_inject_passed(&hca->inject, true, hca->now);
}

static void receive_checked(struct qhca_hca *hca, const uint8_t *frame,
			    size_t len)
{
	if (len > QHCA_MAX_FRAME || len < QHCA_ETH_HLEN) {
		qhca_count(hca, QHCA_CNT_rx_dropped);
		return;
	}
	if (!memcmp(frame + 6, hca->port.mac, sizeof(hca->port.mac)))
		qhca_count(hca, QHCA_CNT_rx_own_mac);
	receive(hca, frame, len);
}

void qhca_rx_frame(struct qhca_hca *hca, const uint8_t *frame, size_t len,
		   uint64_t now)
{
	if (!hca_enter(hca, now)) {
		qhca_count(hca, QHCA_CNT_rx_dropped);
		return;
	}
	if (!qhca_is_dead(hca))
		receive_checked(hca, frame, len);
	hca_leave(hca);
}

/* ------------------------------------------------------------------------
 * Sending
 */
static bool loop_full(const struct qhca_wire *w)
{
	return w->loop_pi - w->loop_ci == QHCA_LOOP_FRAMES;
}

static void loop_push(struct qhca_hca *hca, const uint8_t *frame, size_t len)
{
	struct qhca_wire *w = &hca->wire;
	uint32_t slot = w->loop_pi % QHCA_LOOP_FRAMES;

	if (loop_full(w))
		return;			/* lost as on a wire */
	memcpy(w->loop + (size_t)slot * QHCA_MAX_FRAME, frame, len);
	w->loop_len[slot] = (uint32_t)len;
	w->loop_pi++;
	qhca_count(hca, QHCA_CNT_loopback_packets);
}

uint8_t *qhca_tx_begin(struct qhca_hca *hca, size_t max_len)
{
	struct qhca_wire *w = &hca->wire;

	w->tx_frame = NULL;
	if (max_len > QHCA_MAX_FRAME || loop_full(w))
		return NULL;
	w->tx_scratch = !hca->link_up;
	if (w->tx_scratch) {
		w->tx_frame = w->scratch;
	} else if (!w->tx_blocked) {
		w->tx_frame = hca->ops.tx_reserve(hca->host, max_len);
		w->tx_blocked = !w->tx_frame;
	}
	w->tx_room = max_len;
	return w->tx_frame;
}

/* Where the frame at @frame goes: to us, to the link, or both. */
static bool loops_only(struct qhca_hca *hca, const uint8_t *frame)
{
	return !(frame[0] & 1) && qhca_mac_is_ours(hca, frame);
}

static bool loops_too(const struct qhca_hca *hca, const uint8_t *frame)
{
	return frame[0] & 1 && hca->port.num_members && !hca->wire.tx_no_loop;
}

/* Commit the frame last reserved, or loop it back. */
static void emit(struct qhca_hca *hca, const uint8_t *frame, size_t len)
{
	if (loops_only(hca, frame)) {
		loop_push(hca, frame, len);
		return;
	}
	if (loops_too(hca, frame))
		loop_push(hca, frame, len);
	if (!hca->wire.tx_scratch)
		hca->ops.tx_commit(hca->host, len);
}

/* Where the BTH begins in a frame of our own making. */
static size_t own_bth_offset(const uint8_t *frame)
{
	size_t off = QHCA_ETH_HLEN;
	uint16_t ethertype = get_be16(frame + 12);

	if (ethertype == QHCA_ETHERTYPE_VLAN) {
		ethertype = get_be16(frame + 16);
		off += QHCA_VLAN_HLEN;
	}
	return off + QHCA_UDP_HLEN +
	       (ethertype == QHCA_ETHERTYPE_IPV6 ? IPV6_HLEN : IPV4_HLEN);
}

void qhca_tx_end(struct qhca_hca *hca, size_t len)
{
	struct qhca_wire *w = &hca->wire;
	uint8_t *frame = w->tx_frame;

	w->tx_frame = NULL;
	if (!frame || len > w->tx_room || len < QHCA_ETH_HLEN)
		return;
	qhca_count(hca, QHCA_CNT_tx_packets);
	qhca_count_n(hca, QHCA_CNT_tx_bytes, len);
	if (!qhca_inject_active(&hca->inject, false)) {
		emit(hca, frame, len);
	} else if (inject(hca, frame, len, own_bth_offset(frame), false)) {
		emit(hca, frame, len);
		qhca_inject_passed(&hca->inject, false, hca->now);
	}
	w->tx_no_loop = false;
}

void qhca_tx_raw(struct qhca_hca *hca, size_t len)
{
	struct qhca_wire *w = &hca->wire;
	uint8_t *frame = w->tx_frame;
	bool stays;

	w->tx_frame = NULL;
	if (!frame || len > w->tx_room || len < QHCA_ETH_HLEN)
		return;
	stays = loops_only(hca, frame);
	qhca_count(hca, QHCA_CNT_raw_tx_packets);
	if (stays || qhca_flow_wants(hca, frame, len))
		loop_push(hca, frame, len);
	if (!stays && !w->tx_scratch)
		hca->ops.tx_commit(hca->host, len);
}

void qhca_tx_ready(struct qhca_hca *hca, uint64_t now)
{
	if (!hca->entered)
		hca->now = now;
	hca->wire.tx_blocked = false;
}

/* ------------------------------------------------------------------------
 * Frames that wait here
 */

/* Send a frame that the injector held; false: no room now. */
static bool release_tx(struct qhca_hca *hca, const struct qhca_inject_frame *f)
{
	uint8_t *frame = qhca_tx_begin(hca, f->len);

	if (!frame)
		return false;
	memcpy(frame, qhca_inject_data(&hca->inject, f), f->len);
	hca->wire.tx_frame = NULL;
	emit(hca, frame, f->len);
	return true;
}

static bool release_one(struct qhca_hca *hca)
{
	struct qhca_inject_frame *f = qhca_inject_due(&hca->inject, hca->now);

	if (!f)
		return false;
	if (!f->rx) {
		if (!release_tx(hca, f))
			return false;
		qhca_inject_drop(&hca->inject, f);
		return true;
	}
	/* handling a frame may hold others: free the slot only afterwards */
	deliver(hca, qhca_inject_data(&hca->inject, f), f->len);
	qhca_inject_drop(&hca->inject, f);
	return true;
}

static void loop_one(struct qhca_hca *hca)
{
	struct qhca_wire *w = &hca->wire;
	uint32_t slot = w->loop_ci % QHCA_LOOP_FRAMES;

	/* handled in place: answers to it take other slots */
	receive(hca, w->loop + (size_t)slot * QHCA_MAX_FRAME,
		w->loop_len[slot]);
	w->loop_ci++;
}

unsigned int qhca_wire_run(struct qhca_hca *hca, unsigned int budget)
{
	unsigned int done = 0;

	while (done < budget && !qhca_is_dead(hca)) {
		if (qhca_wire_pending(hca))
			loop_one(hca);
		else if (!hca->inject.held || !release_one(hca))
			break;
		done++;
	}
	return done;
}

bool qhca_wire_looped(const struct qhca_hca *hca)
{
	return hca->wire.loop_ci != hca->wire.loop_pi;
}

bool qhca_wire_pending(const struct qhca_hca *hca)
{
	return qhca_wire_looped(hca) && !qhca_stalled(hca);
}
