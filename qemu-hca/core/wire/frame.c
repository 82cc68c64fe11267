// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RoCEv2 frames out: headers, padding, the invariant CRC.
 */
#include "wire/frame.h"

#include "hca.h"
#include "wire/icrc.h"
#include "wire/psn.h"

#define DEFAULT_TTL	64
#define MTU_OVERHEAD	96	/* IPv6, UDP, BTH, XRCETH, AtomicETH, ICRC */

/* Derive the port as Linux does, so that networks see the same entropy. */
static uint16_t udp_sport(const struct qhca_av *av, uint32_t qpn,
			  uint32_t dest_qpn)
{
	uint32_t label = get_le32(&av->flow_label) & 0xfffff;
	uint16_t sport = get_le16(&av->udp_sport);
	uint64_t v;

	if (sport)
		return sport;
	if (!label) {
		v = (uint64_t)qpn * dest_qpn;
		label = (v ^ v >> 20 ^ v >> 40) & 0xfffff;
	}
	return ((label & 0x3fff) ^ label >> 14) | 0xc000;
}

bool hca_path_of_av(struct hca_fn *fn, const struct qhca_av *av,
		    uint32_t qpn, uint32_t dest_qpn, struct hca_path *path)
{
	const struct hca_gid *gid = hca_gid_get(fn, av->sgid_index);

	if (!gid || hca_gid_is_ipv4(gid->gid) != hca_gid_is_ipv4(av->dgid))
		return false;
	memcpy(path->dmac, av->dmac, 6);
	memcpy(path->smac, gid->smac, 6);
	memcpy(path->sgid, gid->gid, 16);
	memcpy(path->dgid, av->dgid, 16);
	path->vlan = gid->vlan;
	path->sl = av->sl;
	path->traffic_class = av->traffic_class;
	path->hop_limit = av->hop_limit ? av->hop_limit : DEFAULT_TTL;
	path->flow_label = get_le32(&av->flow_label) & 0xfffff;
	path->sport = udp_sport(av, qpn, dest_qpn);
	return true;
}

static void build_headers(struct hca_frame_to *to, size_t udp_len)
{
	if (to->len)
		hca_path_set_len(to->headers, to->len, to->ip_off, udp_len);
	else
		to->len = hca_path_build(&to->path, to->headers, udp_len,
					 &to->ip_off);
	to->udp_len = udp_len;
}

static bool ends_message(uint8_t opcode)
{
	return hca_pkt_what(opcode) & HCA_OPF_LAST;
}

/* How much payload may a frame get that begins with this packet?  Bytes. */
static uint32_t payload_room(struct hca_fn *fn, const struct hca_frame_to *to,
			     const struct hca_pkt *pkt)
{
	uint32_t each = pkt->payload_len, max, packets;
	bool blind;

	if (ends_message(pkt->opcode) || to->left <= each)
		return each;
	/* Who waits for a READ response may give up without another word. */
	blind = (pkt->opcode & HCA_SVC_MASK) == HCA_SVC_UC ||
		hca_pkt_what(pkt->opcode) & HCA_OPF_RESPONSE;
	packets = hca_peer_bundle(fn, &to->path, each, blind) / each;
	if (packets > HCA_BUNDLE_PACKETS)
		packets = HCA_BUNDLE_PACKETS;
	if (packets < 2)
		return each;
	max = packets * each;
	return max < to->left ? max : to->left;
}

/* Of what is from the BTH to the payload. */
static size_t header_len(const struct hca_frame *f)
{
	return f->payload - (f->data + f->bth_off);
}

/* May the packet join those that wait? */
static bool joins(const struct hca_open_bundle *bundle, const struct hca_pkt *pkt)
{
	const struct hca_frame *f = &bundle->frame;
	uint8_t joined;

	return pkt->psn == bundle->next &&
	       f->room - f->payload_len >= pkt->payload_len &&
	       hca_bundle_joins(f->opcode, header_len(f), pkt->opcode, &joined);
}

/* Will the frame have the rest of the message? */
static bool goes_to_end(const struct hca_frame_to *to, const struct hca_frame *f,
			const struct hca_pkt *pkt)
{
	return f->room > pkt->payload_len && f->room >= to->left;
}

static bool begin_first(struct hca_fn *fn, struct hca_frame_to *to,
			const struct hca_pkt *pkt, struct hca_frame *f)
{
	HCA_UNINITIALIZED struct hca_pkt end;
	size_t headers, udp_len;

	f->room = payload_room(fn, to, pkt);
	if (goes_to_end(to, f, pkt)) {
		end = *pkt;
		end.opcode = hca_bundle_to_end(pkt->opcode);
		pkt = &end;
	}
	headers = hca_pkt_header_len(pkt->opcode) + HCA_ICRC_LEN;
	udp_len = headers + pkt->payload_len + hca_pkt_pad(pkt->payload_len);
	if (!to->len || to->udp_len != udp_len)
		build_headers(to, udp_len);
	f->data = hca_tx_begin(fn, to->len + headers + f->room +
				   hca_pkt_pad(f->room));
	if (!f->data)
		return false;
	memcpy(f->data, to->headers, to->len);
	f->ip_off = to->ip_off;
	f->bth_off = to->len;
	f->ip_len = f->bth_off - f->ip_off - HCA_UDP_HLEN;
	f->payload = f->data + f->bth_off +
		     hca_pkt_build(pkt, f->data + f->bth_off);
	return true;
}

bool hca_frame_begin(struct hca_fn *fn, struct hca_frame_to *to,
		     const struct hca_pkt *pkt, uint32_t qpn,
		     struct hca_frame *f)
{
	struct hca_frame *first = &to->bundle.frame;

	f->joins = first->data && joins(&to->bundle, pkt);
	if (f->joins) {
		f->payload = first->payload + first->payload_len;
	} else {
		hca_frame_finish(fn, to);
		if (!begin_first(fn, to, pkt, f))
			return false;
	}
	f->payload_len = pkt->payload_len;
	f->qpn = qpn;
	f->psn = pkt->psn;
	f->opcode = pkt->opcode;
	f->ack_req = pkt->ack_req;
	f->solicited = pkt->solicited;
	return true;
}

static size_t frame_len(const struct hca_frame *f)
{
	return f->payload + f->payload_len + hca_pkt_pad(f->payload_len) +
	       HCA_ICRC_LEN - f->data;
}

/* Pad, ICRC, send. */
static void send_frame(struct hca_fn *fn, const struct hca_frame *f)
{
	uint32_t pad = hca_pkt_pad(f->payload_len);
	uint8_t *end = f->payload + f->payload_len + pad;
	size_t len = end - (f->data + f->bth_off);

	memset(end - pad, 0, pad);
	if (fn->hca->wire.no_icrc)
		put_le32(end, 0);
	else if (fn->cfg.rxe_flush)
		put_le32(end, hca_icrc_to_send(true, f->data + f->ip_off,
					       f->ip_len, len));
	else
		put_le32(end, hca_icrc(f->data + f->ip_off, f->ip_len, len));
	hca_tx_end(fn, frame_len(f), f->ip_off, f->ip_len);
}

/* The packet begun is the first of those that will wait. */
static void open_bundle(struct hca_open_bundle *bundle, const struct hca_frame *f)
{
	*bundle = (struct hca_open_bundle){
		.frame = *f, .each = f->payload_len, .packets = 1,
		.next = hca_psn_add(f->psn, 1),
	};
}

static void join(struct hca_open_bundle *bundle, const struct hca_frame *f)
{
	struct hca_frame *first = &bundle->frame;

	hca_bundle_joins(first->opcode, header_len(first), f->opcode,
			 &first->opcode);
	first->payload_len += f->payload_len;
	first->ack_req |= f->ack_req;
	first->solicited = f->solicited;
	bundle->next = hca_psn_add(bundle->next, 1);
	bundle->packets++;
}

/* Octets that the frame has for the end of its message, which is not in it. */
static size_t unused_headers(const struct hca_frame *f)
{
	return header_len(f) - hca_pkt_header_len(f->opcode);
}

static void drop_unused_headers(struct hca_frame *f)
{
	size_t unused = unused_headers(f);

	if (unused) {
		memmove(f->payload - unused, f->payload, f->payload_len);
		f->payload -= unused;
	}
}

/* Headers were those of the first packet alone, or of a bundle to the end of the message. */
static void change_headers(const struct hca_open_bundle *bundle)
{
	const struct hca_frame *f = &bundle->frame;
	const struct hca_pkt pkt = {
		.opcode = f->opcode, .payload_len = f->payload_len,
		.solicited = f->solicited, .ack_req = f->ack_req,
		.bundle = bundle->packets > 1 ?
			  hca_bundle_code(bundle->each) : 0,
	};

	hca_path_set_len(f->data, f->bth_off, f->ip_off,
			 frame_len(f) - f->bth_off);
	hca_pkt_change(f->data + f->bth_off, &pkt);
}

void hca_frame_finish(struct hca_fn *fn, struct hca_frame_to *to)
{
	struct hca_open_bundle *bundle = &to->bundle;

	if (!bundle->frame.data)
		return;
	drop_unused_headers(&bundle->frame);
	change_headers(bundle);
	fn->hca->bundles.sent += bundle->packets > 1;
	send_frame(fn, &bundle->frame);
	hca_count_n(fn, QHCA_CNT_tx_packets, bundle->packets - 1);
	bundle->frame.data = NULL;
}

size_t hca_frame_end(struct hca_fn *fn, struct hca_frame_to *to,
		     struct hca_frame *f)
{
	struct hca_frame *first = &to->bundle.frame;
	size_t len;

	if (f->joins) {
		size_t before = hca_pkt_header_len(first->opcode);

		join(&to->bundle, f);
		len = f->payload_len + hca_pkt_pad(f->payload_len) +
		      hca_pkt_header_len(first->opcode) - before;
	} else {
		len = frame_len(f);
		if (f->room > f->payload_len)
			len -= unused_headers(f);
	}
	hca_trace(fn, QHCA_TRACE_TX, f->qpn, f->opcode, f->psn, len);
	if (!f->joins && f->room == f->payload_len) {
		send_frame(fn, f);
		return len;
	}
	if (!f->joins)
		open_bundle(&to->bundle, f);
	if (ends_message(first->opcode) ||
	    first->payload_len == first->room)
		hca_frame_finish(fn, to);
	return len;
}

uint32_t hca_port_mtu(const struct hca_fn *fn)
{
	uint32_t mtu = 4096;

	while (mtu > 256 && mtu + MTU_OVERHEAD > fn->port.eth_mtu)
		mtu /= 2;
	return mtu;
}
