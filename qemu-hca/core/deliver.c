// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RoCEv2 packets in: to which QP a packet belongs, and whether that QP may take
 * it.
 */
#include "deliver.h"

#include "transport/transport.h"
#include "wire/icrc.h"
#include "wire/bundle.h"

#define NO_VLAN		0xffff
#define VLAN_ID		0x0fff

static void drop(struct hca_fn *fn, uint32_t qpn, enum qhca_counter why)
{
	hca_count(fn, why);
	hca_trace(fn, QHCA_TRACE_RX_DROP, qpn, why, 0, 0);
}

bool hca_roce_icrc_right(const struct hca_fn *fn,
			 const struct hca_rx_info *info)
{
	const uint8_t *ip = info->frame + info->ip_off;
	const uint8_t *bth = info->frame + info->bth_off;
	const uint8_t *body = info->body + info->bth_off;
	size_t ip_len = info->udp_off - info->ip_off;
	size_t len = info->bth_len - HCA_ICRC_LEN;
	uint32_t icrc = get_le32(body + len);

	if (!icrc && fn->hca->wire.no_icrc)
		return true;
	if (hca_icrc_of(ip, ip_len, body + HCA_BTH_LEN, len) == icrc)
		return true;
	return fn->cfg.rxe_flush &&
	       bth[0] == (HCA_SVC_RC | HCA_OP_FLUSH) &&
	       hca_icrc_rxe_flush(ip, ip_len, len) == icrc;
}

static uint16_t vlan_id(uint16_t tci)
{
	return tci == NO_VLAN ? 0 : tci & VLAN_ID;
}

/*
 * A connected QP accepts packets only from its peer, at the address with which
 * it was connected.
 */
static bool from_peer(struct hca_fn *fn, const struct hca_qp *qp,
		      const struct hca_rx_info *info)
{
	const struct hca_gid *gid = hca_gid_get(fn, qp->sw.av.sgid_index);

	return gid && !info->multicast &&
	       !memcmp(info->sgid, qp->sw.av.dgid, 16) &&
	       !memcmp(info->dgid, gid->gid, 16) &&
	       vlan_id(info->vlan) ==
	       (gid->vlan == HCA_VLAN_NONE ? 0 : gid->vlan);
}

/*
 * Does the QP accept the packet in its state?  See Documentation/hardware.rst,
 * "What a state does".
 */
static bool state_takes(uint8_t state, bool response)
{
	const uint8_t requests = 1u << QHCA_QPS_RTR | 1u << QHCA_QPS_RTS |
				 1u << QHCA_QPS_SQD | 1u << QHCA_QPS_SQE;
	const uint8_t responses = 1u << QHCA_QPS_RTS | 1u << QHCA_QPS_SQD;

	return (response ? responses : requests) >> state & 1;
}

static void comm_est(struct hca_fn *fn, struct hca_qp *qp)
{
	if (qp->state != QHCA_QPS_RTR || qp->r_flags & HCA_RF_COMM_EST)
		return;
	qp->r_flags |= HCA_RF_COMM_EST;
	hca_qp_dirty(fn, qp);
	hca_event(fn, QHCA_EVENT_QP_COMM_EST, qp->qpn, 0);
}

static void count_packet(struct hca_fn *fn, const struct hca_qp *qp,
			 const struct hca_rx_info *info)
{
	hca_qp_count_too(fn, qp, QHCA_CNT_rx_packets, 1);
	hca_qp_count_too(fn, qp, QHCA_CNT_rx_bytes, info->len);
}

static void deliver_connected(struct hca_fn *fn, uint32_t qpn,
			      const struct hca_pkt *pkt,
			      const struct hca_rx_info *info)
{
	struct hca_qp *qp = hca_qp_get(fn, qpn);

	if (!qp)
		return;
	if (!from_peer(fn, qp, info)) {
		drop(fn, qpn, QHCA_CNT_rx_dropped);
		return;
	}
	count_packet(fn, qp, info);
	if (pkt->what & HCA_OPF_RESPONSE) {
		hca_response_rx(fn, qp, pkt);
		return;
	}
	comm_est(fn, qp);
	if (qp->type == QHCA_QPT_UC)
		hca_uc_rx(fn, qp, pkt);
	else
		hca_request_rx(fn, qp, pkt);
}

/*
 * Make the checks that need no context: the table of slots has the type and the
 * state of each QPN.
 */
static bool admit(struct hca_fn *fn, uint32_t qpn,
		  const struct hca_pkt *pkt)
{
	static const uint8_t service[] = {
		[QHCA_QPT_RC] = HCA_SVC_RC, [QHCA_QPT_UC] = HCA_SVC_UC,
		[QHCA_QPT_UD] = HCA_SVC_UD, [QHCA_QPT_GSI] = HCA_SVC_UD,
		[QHCA_QPT_XRC_INI] = HCA_SVC_XRC,
		[QHCA_QPT_XRC_TGT] = HCA_SVC_XRC,
		[QHCA_QPT_RAW] = HCA_SVC_NONE,
	};
	const struct hca_qpslot *slot = &fn->qps.slot[qpn];
	bool response = pkt->what & HCA_OPF_RESPONSE;
	enum qhca_counter why = QHCA_NUM_COUNTERS;

	if (service[slot->type] != pkt->service ||
	    (slot->type == QHCA_QPT_XRC_INI && !response) ||
	    (slot->type == QHCA_QPT_XRC_TGT && response))
		why = QHCA_CNT_rx_dropped;
	else if (!state_takes(slot->state, response))
		why = QHCA_CNT_rx_bad_state;
	else if ((pkt->pkey & 0x7fff) != (HCA_PKEY_DEFAULT & 0x7fff))
		why = QHCA_CNT_rx_bad_pkey;
	if (why == QHCA_NUM_COUNTERS)
		return true;
	if (why == QHCA_CNT_rx_bad_pkey)
		hca_port_violation(&fn->port.pkey_violations);
	drop(fn, qpn, why);
	return false;
}

static void deliver_datagram(struct hca_fn *fn, uint32_t qpn,
			     const struct hca_pkt *pkt,
			     const struct hca_rx_info *info)
{
	struct hca_qp *qp = hca_qp_get(fn, qpn);

	if (!qp)
		return;
	count_packet(fn, qp, info);
	hca_datagram_rx(fn, qp, pkt, info);
}

struct multicast {
	const struct hca_pkt *pkt;
	const struct hca_rx_info *info;
};

static bool deliver_member(struct hca_fn *fn, uint32_t qpn, void *arg)
{
	const struct multicast *m = arg;

	if (qpn < fn->qps.num_slots && fn->qps.slot[qpn].live &&
	    admit(fn, qpn, m->pkt))
		deliver_datagram(fn, qpn, m->pkt, m->info);
	return !hca_is_dead(fn);
}

static void deliver_multicast(struct hca_fn *fn, const struct hca_pkt *pkt,
			      const struct hca_rx_info *info)
{
	struct multicast m = { .pkt = pkt, .info = info };

	if (pkt->dest_qpn != HCA_QPN_MCAST || pkt->service != HCA_SVC_UD)
		drop(fn, pkt->dest_qpn, QHCA_CNT_rx_dropped);
	else if (!hca_mcast_for_each(fn, info->dgid, deliver_member, &m))
		drop(fn, pkt->dest_qpn, QHCA_CNT_rx_no_qp);
}

static void take_packet(struct hca_fn *fn, const struct hca_pkt *pkt,
			const struct hca_rx_info *info)
{
	uint32_t qpn = pkt->dest_qpn;

	if (!qpn || qpn >= fn->qps.num_slots || !fn->qps.slot[qpn].live) {
		drop(fn, qpn, QHCA_CNT_rx_no_qp);
		return;
	}
	if (!admit(fn, qpn, pkt))
		return;
	if (pkt->service == HCA_SVC_UD)
		deliver_datagram(fn, qpn, pkt, info);
	else
		deliver_connected(fn, qpn, pkt, info);
}

static void take_bundle(struct hca_fn *fn, const struct hca_pkt *bundle,
			const struct hca_rx_info *info)
{
	unsigned int num = hca_bundle_packets(bundle);
	HCA_UNINITIALIZED struct hca_pkt pkt;
	struct hca_rx_info part = *info;

	fn->hca->bundles.received++;
	fn->hca->bundles.packets_received += num - 1;
	hca_count_n(fn, QHCA_CNT_rx_packets, num - 1);
	/* The headers and the ICRC count with the first packet. */
	part.len = info->len - bundle->payload_len - bundle->pad;
	for (unsigned int i = 0; i < num && !hca_is_dead(fn); i++) {
		hca_bundle_packet(bundle, i, num, &pkt);
		part.len += pkt.payload_len + pkt.pad;
		take_packet(fn, &pkt, &part);
		part.len = 0;
	}
}

void hca_roce_rx(struct hca_fn *fn, const struct hca_rx_info *info)
{
	HCA_UNINITIALIZED struct hca_pkt pkt;
	uint32_t qpn;

	if (!hca_pkt_parse(info->frame + info->bth_off, info->bth_len, &pkt) ||
	    (pkt.bundle && (info->multicast || !hca_bundle_packets(&pkt)))) {
		drop(fn, pkt.dest_qpn, QHCA_CNT_rx_malformed);
		return;
	}
	if (!hca_roce_icrc_right(fn, info)) {
		drop(fn, pkt.dest_qpn, QHCA_CNT_rx_icrc_errors);
		return;
	}
	pkt.payload = info->body + (pkt.payload - info->frame);
	qpn = pkt.dest_qpn;
	fn->hca->bundles.packets_received++;
	hca_count(fn, QHCA_CNT_rx_packets);
	hca_count_n(fn, QHCA_CNT_rx_bytes, info->len);
	hca_trace(fn, QHCA_TRACE_RX, qpn, pkt.opcode, pkt.psn, info->bth_len);
	if (info->multicast) {
		deliver_multicast(fn, &pkt, info);
		return;
	}
	if (pkt.bundle)
		take_bundle(fn, &pkt, info);
	else
		take_packet(fn, &pkt, info);
}
