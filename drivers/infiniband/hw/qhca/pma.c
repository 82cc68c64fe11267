// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Performance management: what the port's directory `counters` in sysfs shows,
 * and what a performance manager gets in answer to a MAD.
 *
 * The device counts RDMA packets, unicast and multicast together, so the port
 * claims the extended counters without those of the IETF.  Counters of links
 * with credits, symbols and VL 15 are always 0.
 */
#include <linux/slab.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_pma.h>

#include "qhca_ib.h"

#define QHCA_PMA_OFFSET	40	/* of the attribute in ib_mad.data */

static void qhca_pma_counters(struct qhca_ib_dev *dev, const u64 *value,
			      struct ib_pma_portcounters *out)
{
	u64 downs = atomic_read(&dev->qdev->netdev->carrier_down_count);
	u64 rcv_errors = value[QHCA_CNT_rx_icrc_errors] +
			 value[QHCA_CNT_rx_malformed];
	u64 discards = value[QHCA_CNT_switch_dropped] +
		       value[QHCA_CNT_spoofed];

	/* These counters stay at their largest value. */
	out->link_downed_counter = min_t(u64, downs, U8_MAX);
	out->port_rcv_errors = cpu_to_be16(min_t(u64, rcv_errors, U16_MAX));
	out->port_xmit_discards = cpu_to_be16(min_t(u64, discards, U16_MAX));
	out->port_xmit_data =
		cpu_to_be32(min_t(u64, value[QHCA_CNT_tx_bytes] / 4, U32_MAX));
	out->port_rcv_data =
		cpu_to_be32(min_t(u64, value[QHCA_CNT_rx_bytes] / 4, U32_MAX));
	out->port_xmit_packets =
		cpu_to_be32(min_t(u64, value[QHCA_CNT_tx_packets], U32_MAX));
	out->port_rcv_packets =
		cpu_to_be32(min_t(u64, value[QHCA_CNT_rx_packets], U32_MAX));
}

static void qhca_pma_counters_ext(const u64 *value,
				  struct ib_pma_portcounters_ext *out)
{
	out->port_xmit_data = cpu_to_be64(value[QHCA_CNT_tx_bytes] / 4);
	out->port_rcv_data = cpu_to_be64(value[QHCA_CNT_rx_bytes] / 4);
	out->port_xmit_packets = cpu_to_be64(value[QHCA_CNT_tx_packets]);
	out->port_rcv_packets = cpu_to_be64(value[QHCA_CNT_rx_packets]);
}

static int qhca_pma_get_counters(struct qhca_ib_dev *dev, __be16 attr,
				 void *out)
{
	u32 num = min_t(u32, dev->qdev->caps.num_counters, QHCA_NUM_COUNTERS);
	u64 *value;
	int err;

	/* An older device has fewer counters; the others are 0. */
	value = kcalloc(QHCA_NUM_COUNTERS, sizeof(*value), GFP_KERNEL);
	if (!value)
		return -ENOMEM;
	err = qhca_query_counters(dev->qdev, 0, num, value);
	if (!err && attr == IB_PMA_PORT_COUNTERS_EXT)
		qhca_pma_counters_ext(value, out);
	else if (!err)
		qhca_pma_counters(dev, value, out);
	kfree(value);
	return err;
}

/* The header tells both kinds of counters which port they are of. */
static int qhca_pma_get(struct qhca_ib_dev *dev, const struct ib_mad *in,
			struct ib_mad *out)
{
	struct ib_class_port_info info = {
		.base_version = IB_MGMT_BASE_VERSION,
		.class_version = 1,
		.capability_mask = IB_PMA_CLASS_CAP_EXT_WIDTH_NOIETF,
	};
	void *attr = out->data + QHCA_PMA_OFFSET;

	switch (in->mad_hdr.attr_id) {
	case IB_PMA_CLASS_PORT_INFO:
		memcpy(attr, &info, sizeof(info));
		return 0;
	case IB_PMA_PORT_COUNTERS:
	case IB_PMA_PORT_COUNTERS_EXT:
		memcpy(attr, in->data + QHCA_PMA_OFFSET,
		       offsetof(struct ib_pma_portcounters, counter_select));
		return qhca_pma_get_counters(dev, in->mad_hdr.attr_id, attr);
	default:
		out->mad_hdr.status =
			cpu_to_be16(IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB);
		return 0;
	}
}

/*
 * The core asks for the counters that sysfs shows, and passes on every MAD that
 * the port receives; all others are for the consumers of MADs.
 */
int qhca_process_mad(struct ib_device *ibdev, int flags, u32 port,
		     const struct ib_wc *in_wc, const struct ib_grh *in_grh,
		     const struct ib_mad *in, struct ib_mad *out,
		     size_t *out_size, u16 *out_pkey_index)
{
	if (in->mad_hdr.mgmt_class != IB_MGMT_CLASS_PERF_MGMT ||
	    in->mad_hdr.method != IB_MGMT_METHOD_GET)
		return IB_MAD_RESULT_SUCCESS;

	memset(out, 0, sizeof(*out));
	out->mad_hdr = in->mad_hdr;
	out->mad_hdr.method = IB_MGMT_METHOD_GET_RESP;
	if (qhca_pma_get(to_qhca(ibdev), in, out))
		return IB_MAD_RESULT_FAILURE;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}
