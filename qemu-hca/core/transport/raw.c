/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Raw packet QPs receive whole Ethernet frames without a change.  The flow rules
 * (flow.c) decide which frames a QP receives.
 */
#include "transport/transport.h"

void hca_raw_rx(struct hca_fn *fn, uint32_t qpn, const uint8_t *frame,
		size_t len)
{
	const uint8_t ready = 1u << QHCA_QPS_RTR | 1u << QHCA_QPS_RTS |
			      1u << QHCA_QPS_SQD | 1u << QHCA_QPS_SQE;
	struct qhca_cqe cqe = { .opcode = QHCA_CQE_RECV };
	struct hca_qp *qp;

	/* The device drops a frame without the context if the QP is not ready. */
	if (!(ready >> fn->qps.slot[qpn].state & 1)) {
		hca_count(fn, QHCA_CNT_raw_rx_dropped);
		return;
	}
	qp = hca_qp_get(fn, qpn);
	if (!qp ||
	    !hca_datagram_take(fn, qp, (uint32_t)len,
			       QHCA_CNT_raw_rx_dropped) ||
	    !hca_datagram_scatter(fn, qp, 0, frame, (uint32_t)len))
		return;
	hca_count(fn, QHCA_CNT_raw_rx_packets);
	put_le32(&cqe.byte_len, (uint32_t)len);
	memcpy(cqe.smac, frame + 6, 6);
	put_le16(&cqe.vlan, HCA_VLAN_NONE);
	if (!hca_complete_recv(fn, qp, &cqe))
		hca_qp_error_event(fn, qp, QHCA_EVENT_QP_FATAL);
}
