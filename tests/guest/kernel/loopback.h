/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Connects RC QPs of one RoCE device through its loopback.
 */
#ifndef QHCA_TEST_LOOPBACK_H
#define QHCA_TEST_LOOPBACK_H

#include <linux/etherdevice.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#define LOOPBACK_PORT	1

struct loopback {
	struct ib_device *dev;
	int gid_index;
	union ib_gid gid;
	u8 mac[ETH_ALEN];
};

/* Fills in the address of the GID with that index. */
static inline int loopback_address(struct loopback *l, struct ib_device *dev,
				   int gid_index)
{
	const struct ib_gid_attr *gid;
	int err;

	gid = rdma_get_gid_attr(dev, LOOPBACK_PORT, gid_index);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	l->dev = dev;
	l->gid_index = gid_index;
	l->gid = gid->gid;
	err = rdma_read_gid_l2_fields(gid, NULL, l->mac);
	rdma_put_gid_attr(gid);
	return err;
}

/* Moves a QP from RESET to RTS, towards another QP of the device. */
static inline int loopback_connect(struct loopback *l, struct ib_qp *qp,
				   u32 dest_qpn, int access)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = LOOPBACK_PORT,
		.qp_access_flags = access,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = dest_qpn,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 18,
		.retry_cnt = 7,
		.rnr_retry = 7,
	};
	int err;

	attr.ah_attr.type = rdma_ah_find_type(l->dev, LOOPBACK_PORT);
	rdma_ah_set_port_num(&attr.ah_attr, LOOPBACK_PORT);
	rdma_ah_set_grh(&attr.ah_attr, &l->gid, 0,
			l->gid_index, 64, 0);
	memcpy(attr.ah_attr.roce.dmac, l->mac, ETH_ALEN);

	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			   IB_QP_PORT | IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTR;
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV |
			   IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTS;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			    IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

#endif
