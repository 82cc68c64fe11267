// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * RoCEv2 packets in: to which QP a packet belongs, and whether that QP may take
 * it.
 */
#include "deliver.h"

#include "transport/transport.h"
#include "wire/icrc.h"

#define NO_VLAN		0xffff
#define VLAN_ID		0x0fff

static void drop(struct qhca_hca *hca, uint32_t qpn, enum qhca_counter why)
{
	hca_count(hca, why);
	hca_trace(hca, QHCA_TRACE_RX_DROP, qpn, why, 0, 0);
}

static bool icrc_right(const struct qhca_hca *hca,
		       const struct hca_rx_info *info)
{
	const uint8_t *ip = info->frame + info->ip_off;
	const uint8_t *bth = info->frame + info->bth_off;
	size_t ip_len = info->udp_off - info->ip_off;
	size_t len = info->bth_len - HCA_ICRC_LEN;
	uint32_t icrc = get_le32(bth + len);

	if (hca_icrc(ip, ip_len, len) == icrc)
		return true;
	return hca->cfg.rxe_flush &&
	       bth[0] == (HCA_SVC_RC | HCA_OP_FLUSH) &&
	       hca_icrc_rxe_flush(ip, ip_len, len) == icrc;
}

static uint16_t vlan_id(uint16_t tci)
{
	return tci == NO_VLAN ? 0 : tci & VLAN_ID;
}

/* A connected QP hears only its peer, at the address it was connected with. */
static bool from_peer(struct qhca_hca *hca, const struct hca_qp *qp,
		      const struct hca_rx_info *info)
{
	const struct hca_gid *gid = hca_gid_get(hca, qp->sw.av.sgid_index);

	return gid && !info->multicast &&
	       !memcmp(info->sgid, qp->sw.av.dgid, 16) &&
	       !memcmp(info->dgid, gid->gid, 16) &&
	       vlan_id(info->vlan) ==
	       (gid->vlan == HCA_VLAN_NONE ? 0 : gid->vlan);
}

/* What each state takes: Documentation/hardware.rst, What a state does. */
static bool state_takes(uint8_t state, bool response)
{
	const uint8_t requests = 1u << QHCA_QPS_RTR | 1u << QHCA_QPS_RTS |
				 1u << QHCA_QPS_SQD | 1u << QHCA_QPS_SQE;
	const uint8_t responses = 1u << QHCA_QPS_RTS | 1u << QHCA_QPS_SQD;

	return (response ? responses : requests) >> state & 1;
}

static void comm_est(struct qhca_hca *hca, struct hca_qp *qp)
{
	if (qp->state != QHCA_QPS_RTR || qp->r_flags & HCA_RF_COMM_EST)
		return;
	qp->r_flags |= HCA_RF_COMM_EST;
	hca_qp_dirty(hca, qp);
	hca_event(hca, QHCA_EVENT_QP_COMM_EST, qp->qpn, 0);
}

static void deliver_connected(struct qhca_hca *hca, uint32_t qpn,
			      const struct hca_pkt *pkt,
			      const struct hca_rx_info *info)
{
	struct hca_qp *qp = hca_qp_get(hca, qpn);

	if (!qp)
		return;
	if (!from_peer(hca, qp, info)) {
		drop(hca, qpn, QHCA_CNT_rx_dropped);
		return;
	}
	if (pkt->what & HCA_OPF_RESPONSE) {
		hca_response_rx(hca, qp, pkt);
		return;
	}
	comm_est(hca, qp);
	if (qp->type == QHCA_QPT_UC)
		hca_uc_rx(hca, qp, pkt);
	else
		hca_request_rx(hca, qp, pkt);
}

/* Checks that need no context, by what the chip knows of the QPN. */
static bool admit(struct qhca_hca *hca, uint32_t qpn,
		  const struct hca_pkt *pkt)
{
	static const uint8_t service[] = {
		[QHCA_QPT_RC] = HCA_SVC_RC, [QHCA_QPT_UC] = HCA_SVC_UC,
		[QHCA_QPT_UD] = HCA_SVC_UD, [QHCA_QPT_GSI] = HCA_SVC_UD,
		[QHCA_QPT_XRC_INI] = HCA_SVC_XRC,
		[QHCA_QPT_XRC_TGT] = HCA_SVC_XRC,
		[QHCA_QPT_RAW] = HCA_SVC_NONE,
	};
	const struct hca_qpslot *slot = &hca->qps.slot[qpn];
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
		hca->port.pkey_violations++;
	drop(hca, qpn, why);
	return false;
}

static void deliver_datagram(struct qhca_hca *hca, uint32_t qpn,
			     const struct hca_pkt *pkt,
			     const struct hca_rx_info *info)
{
	struct hca_qp *qp = hca_qp_get(hca, qpn);

	if (qp)
		hca_datagram_rx(hca, qp, pkt, info);
}

struct multicast {
	const struct hca_pkt *pkt;
	const struct hca_rx_info *info;
};

static bool deliver_member(struct qhca_hca *hca, uint32_t qpn, void *arg)
{
	const struct multicast *m = arg;

	if (qpn < hca->qps.num_slots && hca->qps.slot[qpn].live &&
	    admit(hca, qpn, m->pkt))
		deliver_datagram(hca, qpn, m->pkt, m->info);
	return !hca_is_dead(hca);
}

static void deliver_multicast(struct qhca_hca *hca, const struct hca_pkt *pkt,
			      const struct hca_rx_info *info)
{
	struct multicast m = { .pkt = pkt, .info = info };

	if (pkt->dest_qpn != HCA_QPN_MCAST || pkt->service != HCA_SVC_UD)
		drop(hca, pkt->dest_qpn, QHCA_CNT_rx_dropped);
	else if (!hca_mcast_for_each(hca, info->dgid, deliver_member, &m))
		drop(hca, pkt->dest_qpn, QHCA_CNT_rx_no_qp);
}

void hca_roce_rx(struct qhca_hca *hca, const struct hca_rx_info *info)
{
	struct hca_pkt pkt;
	uint32_t qpn;

	if (!hca_pkt_parse(info->frame + info->bth_off, info->bth_len, &pkt)) {
		drop(hca, pkt.dest_qpn, QHCA_CNT_rx_malformed);
		return;
	}
	if (!icrc_right(hca, info)) {
		drop(hca, pkt.dest_qpn, QHCA_CNT_rx_icrc_errors);
		return;
	}
	qpn = pkt.dest_qpn;
	hca_count(hca, QHCA_CNT_rx_packets);
	hca_count_n(hca, QHCA_CNT_rx_bytes, info->len);
	hca_trace(hca, QHCA_TRACE_RX, qpn, pkt.opcode, pkt.psn, info->bth_len);
	if (info->multicast) {
		deliver_multicast(hca, &pkt, info);
		return;
	}
	if (!qpn || qpn >= hca->qps.num_slots || !hca->qps.slot[qpn].live) {
		drop(hca, qpn, QHCA_CNT_rx_no_qp);
		return;
	}
	if (!admit(hca, qpn, &pkt))
		return;
	if (pkt.service == HCA_SVC_UD)
		deliver_datagram(hca, qpn, &pkt, info);
	else
		deliver_connected(hca, qpn, &pkt, info);
}
