// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RoCEv2 frames out: headers, padding, the invariant CRC.
 */
#include "wire/frame.h"

#include "hca.h"
#include "wire/icrc.h"

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

bool hca_frame_begin(struct hca_fn *fn, struct hca_frame_to *to,
		     const struct hca_pkt *pkt, uint32_t qpn,
		     struct hca_frame *f)
{
	size_t udp_len = hca_pkt_header_len(pkt->opcode) + pkt->payload_len +
			 hca_pkt_pad(pkt->payload_len) + HCA_ICRC_LEN;

	if (!to->len || to->udp_len != udp_len)
		build_headers(to, udp_len);
	f->data = hca_tx_begin(fn, to->len + udp_len);
	if (!f->data)
		return false;
	memcpy(f->data, to->headers, to->len);
	f->ip_off = to->ip_off;
	f->bth_off = to->len;
	f->ip_len = f->bth_off - f->ip_off - HCA_UDP_HLEN;
	f->payload = f->data + f->bth_off +
		     hca_pkt_build(pkt, f->data + f->bth_off);
	f->payload_len = pkt->payload_len;
	f->qpn = qpn;
	f->psn = pkt->psn;
	f->opcode = pkt->opcode;
	return true;
}

size_t hca_frame_end(struct hca_fn *fn, struct hca_frame *f)
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
	len = end + HCA_ICRC_LEN - f->data;
	hca_trace(fn, QHCA_TRACE_TX, f->qpn, f->opcode, f->psn, len);
	hca_tx_end(fn, len, f->ip_off, f->ip_len);
	return len;
}

uint32_t hca_port_mtu(const struct hca_fn *fn)
{
	uint32_t mtu = 4096;

	while (mtu > 256 && mtu + MTU_OVERHEAD > fn->port.eth_mtu)
		mtu /= 2;
	return mtu;
}
