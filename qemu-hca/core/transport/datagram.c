/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * UD and GSI: addresses of what is sent, and what is received (IBTA 9.8.3,
 * A17.4.5).
 */
#include "transport/transport.h"

#define GRH_LEN		40
#define IPV4_LEN	20

bool hca_datagram_address(struct hca_fn *fn, const struct hca_qp *qp,
			  const struct hca_swqe *w, struct hca_path *path,
			  struct hca_pkt *pkt)
{
	const struct qhca_wqe_ud *ud = &w->wire.ud;

	pkt->dest_qpn = get_le32(&ud->dest_qpn) & HCA_QPN_MASK;
	pkt->qkey = get_le32(&ud->qkey);
	if (pkt->qkey & HCA_QKEY_CONTROLLED)
		pkt->qkey = qp->qkey;
	pkt->src_qpn = qp->qpn;
	return hca_path_of_av(fn, &ud->av, qp->qpn, pkt->dest_qpn, path);
}

static bool qkey_right(const struct hca_qp *qp, const struct hca_pkt *pkt)
{
	return pkt->qkey == (qp->type == QHCA_QPT_GSI ? HCA_GSI_QKEY :
							qp->qkey);
}

/* The header before the payload: IPv6's, or IPv4's in the last 20 octets. */
static void fill_grh(const struct hca_rx_info *info, uint8_t grh[GRH_LEN])
{
	const uint8_t *ip = info->frame + info->ip_off;

	memset(grh, 0, GRH_LEN);
	if (info->ip_version == 6)
		memcpy(grh, ip, GRH_LEN);
	else
		memcpy(grh + GRH_LEN - IPV4_LEN, ip, IPV4_LEN);
}

static void fail_recv(struct hca_fn *fn, struct hca_qp *qp, uint8_t status)
{
	struct qhca_cqe cqe = { .status = status, .opcode = QHCA_CQE_RECV };

	put_le16(&cqe.vlan, HCA_VLAN_NONE);
	hca_complete_recv(fn, qp, &cqe);
	hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
}

static void complete(struct hca_fn *fn, struct hca_qp *qp,
		     const struct hca_pkt *pkt,
		     const struct hca_rx_info *info)
{
	struct qhca_cqe cqe = {
		.opcode = QHCA_CQE_RECV, .net_type = info->ip_version,
	};
	uint32_t flags = QHCA_CQE_GRH;

	put_le32(&cqe.byte_len, GRH_LEN + pkt->payload_len);
	put_le32(&cqe.src_qpn, pkt->src_qpn);
	memcpy(cqe.smac, info->frame + 6, 6);
	put_le16(&cqe.vlan, info->vlan);
	if (info->vlan != HCA_VLAN_NONE) {
		flags |= QHCA_CQE_VLAN;
		cqe.sl = info->vlan >> 13;
	}
	if (pkt->what & HCA_H_IMM) {
		memcpy(&cqe.imm, pkt->imm, 4);
		flags |= QHCA_CQE_IMM;
	}
	if (pkt->solicited)
		flags |= QHCA_CQE_SOLICITED;
	put_le32(&cqe.flags, flags);
	if (!hca_complete_recv(fn, qp, &cqe))
		hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
}

bool hca_datagram_take(struct hca_fn *fn, struct hca_qp *qp, uint32_t len,
		       enum qhca_counter dropped)
{
	enum hca_take take = hca_take_rwqe(fn, qp);

	if (take == HCA_TAKE_ERROR) {
		hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
		return false;
	}
	if (take == HCA_TAKE_OK && qp->rwqe.error) {
		fail_recv(fn, qp, qp->rwqe.error);
		return false;
	}
	if (take == HCA_TAKE_EMPTY || len > qp->rwqe.sgl.length) {
		hca_qp_count(fn, qp, dropped);
		return false;
	}
	return true;
}

/*
 * If the device may not write the receive buffer, the QP goes to ERR.  If a page of
 * the buffer is absent, the device drops the datagram and keeps the WQE for the
 * next one.
 */
bool hca_datagram_scatter(struct hca_fn *fn, struct hca_qp *qp,
			  uint32_t offset, const void *data, uint32_t len)
{
	enum hca_mem_status status = hca_rwqe_scatter(fn, qp, &qp->rwqe,
						      offset, data, len);

	if (status == HCA_MEM_OK)
		return true;
	if (status == HCA_MEM_FAULT &&
	    hca_fault_raise(fn, qp, QHCA_FAULT_RECV, offset, len) !=
	    HCA_FAULT_BAD)
		hca_count(fn, QHCA_CNT_fault_dropped);
	else
		fail_recv(fn, qp, QHCA_WC_LOC_PROT_ERR);
	return false;
}

void hca_datagram_rx(struct hca_fn *fn, struct hca_qp *qp,
		     const struct hca_pkt *pkt,
		     const struct hca_rx_info *info)
{
	uint8_t grh[GRH_LEN];

	if (!qkey_right(qp, pkt)) {
		hca_port_violation(&fn->port.qkey_violations);
		hca_qp_count(fn, qp, QHCA_CNT_rx_bad_qkey);
		return;
	}
	if (!hca_datagram_take(fn, qp, GRH_LEN + pkt->payload_len,
			       QHCA_CNT_ud_dropped))
		return;
	fill_grh(info, grh);
	if (hca_datagram_scatter(fn, qp, 0, grh, GRH_LEN) &&
	    hca_datagram_scatter(fn, qp, GRH_LEN, pkt->payload,
				 pkt->payload_len))
		complete(fn, qp, pkt, info);
}
