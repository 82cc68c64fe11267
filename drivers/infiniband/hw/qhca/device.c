// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queries of the device and of its port, and changes of its GID table.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <rdma/ib_mad.h>

#include "queue.h"

static u64 qhca_device_cap_flags(struct qhca_ib_dev *dev)
{
	u64 flags = IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |
		    IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_PORT_ACTIVE_EVENT |
		    IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN;

	if (qhca_has(dev, QHCA_FEAT_MW1))
		flags |= IB_DEVICE_MEM_WINDOW;
	if (qhca_has(dev, QHCA_FEAT_MW2B))
		flags |= IB_DEVICE_MEM_WINDOW_TYPE_2B;
	if (qhca_has(dev, QHCA_FEAT_FAST_REG))
		flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
	if (qhca_has(dev, QHCA_FEAT_XRC))
		flags |= IB_DEVICE_XRC;
	if (qhca_has(dev, QHCA_FEAT_RAW_PACKET))
		flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
	if (qhca_has(dev, QHCA_FEAT_SRQ_RESIZE))
		flags |= IB_DEVICE_SRQ_RESIZE;
	if (qhca_has(dev, QHCA_FEAT_ATOMIC_WRITE))
		flags |= IB_DEVICE_ATOMIC_WRITE;
	if (qhca_has(dev, QHCA_FEAT_FLUSH))
		flags |= IB_DEVICE_FLUSH_GLOBAL;
	return flags;
}

int qhca_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
		      struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibdev);
	const struct qhca_caps_host *caps = &dev->qdev->caps;
	struct pci_dev *pdev = dev->qdev->pdev;
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;

	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = ibdev->node_guid;
	attr->fw_ver = (u64)QHCA_ABI_MAJOR << 32 | QHCA_ABI_MINOR;
	attr->vendor_id = pdev->vendor;
	attr->vendor_part_id = pdev->device;
	attr->hw_ver = pdev->revision;
	attr->device_cap_flags = qhca_device_cap_flags(dev);
	/* In strict mode consumers get keys that are good for READs as well. */
	if (qhca_has(dev, QHCA_FEAT_RESERVED_LKEY) && !dev->qdev->strict_lkey)
		attr->kernel_cap_flags |= IBK_LOCAL_DMA_LKEY;
	if (qhca_has(dev, QHCA_FEAT_MCAST))
		attr->kernel_cap_flags |= IBK_BLOCK_MULTICAST_LOOPBACK;
	qhca_odp_caps(dev, attr);

	attr->max_mr_size = caps->max_mr_size;
	attr->page_size_cap = caps->page_sizes;
	attr->max_mr = BIT(caps->log_pt) - QHCA_FIRST_KEY_INDEX;
	if (caps->features & (QHCA_FEAT_MW1 | QHCA_FEAT_MW2B))
		attr->max_mw = attr->max_mr;
	if (qhca_has(dev, QHCA_FEAT_FAST_REG))
		attr->max_fast_reg_page_list_len = QHCA_MAX_FAST_REG_PAGES;

	attr->max_pd = QHCA_MAX_PD;
	attr->max_ah = QHCA_MAX_AH;
	attr->max_qp = BIT(caps->log_qp) - caps->first_user_qpn;
	attr->max_qp_wr = BIT(caps->log_max_wq_depth);
	attr->max_send_sge = caps->max_sge;
	attr->max_recv_sge = caps->max_sge;
	attr->max_sge_rd = caps->max_sge;
	attr->max_cq = BIT(caps->log_cq);
	attr->max_cqe = BIT(caps->log_max_cq_depth);
	if (qhca_has(dev, QHCA_FEAT_SRQ)) {
		attr->max_srq = BIT(caps->log_srq);
		attr->max_srq_wr = BIT(caps->log_max_wq_depth) - 1;
		attr->max_srq_sge = caps->max_sge;
	}

	attr->max_qp_rd_atom = caps->max_rd_atomic;
	attr->max_qp_init_rd_atom = caps->max_rd_atomic;
	attr->max_res_rd_atom = caps->max_rd_atomic * attr->max_qp;
	if (qhca_has(dev, QHCA_FEAT_ATOMIC))
		attr->atomic_cap = IB_ATOMIC_HCA;

	if (qhca_has(dev, QHCA_FEAT_MCAST)) {
		attr->max_mcast_grp = caps->max_mcast_members;
		attr->max_mcast_qp_attach = caps->max_mcast_members;
		attr->max_total_mcast_qp_attach = caps->max_mcast_members;
	}

	if (dev->dms)
		attr->max_dm_size = caps->devmem_size;

	if (qhca_has(dev, QHCA_FEAT_RAW_PACKET))
		attr->max_raw_ethy_qp = attr->max_qp;

	attr->max_pkeys = 1;
	attr->timestamp_mask = U64_MAX;
	attr->hca_core_clock = div_u64(caps->clock_hz, 1000);
	if (qhca_has(dev, QHCA_FEAT_CQ_MODERATION)) {
		attr->cq_caps.max_cq_moderation_count = U16_MAX;
		attr->cq_caps.max_cq_moderation_period = U16_MAX;
	}
	return ib_respond_empty_udata(udata);
}

enum ib_port_state qhca_port_state(struct qhca_ib_dev *dev)
{
	struct net_device *netdev = dev->qdev->netdev;

	if (!qhca_is_dead(dev) && netif_running(netdev) &&
	    netif_carrier_ok(netdev))
		return IB_PORT_ACTIVE;
	return IB_PORT_DOWN;
}

/*
 * The query of the port succeeds even if the violation counters are
 * unavailable.
 */
static void qhca_query_violations(struct qhca_ib_dev *dev,
				  struct ib_port_attr *attr)
{
	struct qhca_port port;
	struct qhca_cmd cmd = {
		.opcode = QHCA_CMD_QUERY_PORT,
		.out = &port,
		.out_len = sizeof(port),
	};

	if (qhca_cmd_exec(dev->qdev, &cmd))
		return;
	attr->bad_pkey_cntr = le32_to_cpu(port.pkey_violations);
	attr->qkey_viol_cntr = le32_to_cpu(port.qkey_violations);
}

int qhca_query_port(struct ib_device *ibdev, u32 port,
		    struct ib_port_attr *attr)
{
	struct qhca_ib_dev *dev = to_qhca(ibdev);
	struct net_device *netdev = dev->qdev->netdev;
	int mtu;

	attr->state = qhca_port_state(dev);
	if (attr->state == IB_PORT_ACTIVE)
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	else
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;

	attr->gid_tbl_len = dev->qdev->caps.max_gids;
	attr->ip_gids = true;
	attr->pkey_tbl_len = 1;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = BIT(dev->qdev->caps.max_msg_size_log);
	attr->max_vl_num = 1;

	/* enum qhca_mtu has the numbers of enum ib_mtu. */
	mtu = READ_ONCE(netdev->mtu);
	attr->phys_mtu = mtu;
	attr->max_mtu = dev->qdev->caps.max_mtu;
	attr->active_mtu = clamp_t(int, iboe_get_mtu(mtu), IB_MTU_256,
				   attr->max_mtu);

	qhca_query_violations(dev, attr);
	if (ib_get_eth_speed(ibdev, port, &attr->active_speed,
			     &attr->active_width)) {
		attr->active_speed = IB_SPEED_SDR;
		attr->active_width = IB_WIDTH_1X;
	}
	return 0;
}

int qhca_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = QHCA_IB_PKEY;
	return 0;
}

int qhca_get_port_immutable(struct ib_device *ibdev, u32 port,
			    struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = to_qhca(ibdev)->qdev->caps.max_gids;
	immutable->pkey_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	if (qhca_has(to_qhca(ibdev), QHCA_FEAT_RAW_PACKET))
		immutable->core_cap_flags |= RDMA_CORE_PORT_RAW_PACKET;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

enum rdma_link_layer qhca_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

void qhca_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u", QHCA_ABI_MAJOR,
		 QHCA_ABI_MINOR);
}

/* What ibstat shows of a device.  The subsystem's numbers say whose board it is. */
static ssize_t hca_type_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", "qhca");
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *device,
			   struct device_attribute *attr, char *buf)
{
	struct qhca_ib_dev *dev =
		rdma_device_to_drv_device(device, struct qhca_ib_dev, ibdev);

	return sysfs_emit(buf, "%x\n", dev->qdev->pdev->revision);
}
static DEVICE_ATTR_RO(hw_rev);

static ssize_t board_id_show(struct device *device,
			     struct device_attribute *attr, char *buf)
{
	struct qhca_ib_dev *dev =
		rdma_device_to_drv_device(device, struct qhca_ib_dev, ibdev);
	struct pci_dev *pdev = dev->qdev->pdev;

	return sysfs_emit(buf, "%04x:%04x\n", pdev->subsystem_vendor,
			  pdev->subsystem_device);
}
static DEVICE_ATTR_RO(board_id);

static struct attribute *qhca_identity_attrs[] = {
	&dev_attr_board_id.attr,
	&dev_attr_hca_type.attr,
	&dev_attr_hw_rev.attr,
	NULL
};

const struct attribute_group qhca_identity = {
	.attrs = qhca_identity_attrs,
};

static int qhca_set_gid(struct qhca_ib_dev *dev, u32 index,
			const struct qhca_gid_entry *entry)
{
	return qhca_create_object(dev, QHCA_CMD_SET_GID, index, entry,
				  sizeof(*entry));
}

int qhca_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct qhca_ib_dev *dev = to_qhca(attr->device);
	struct qhca_gid_entry entry = {};
	u16 vlan = VLAN_N_VID;
	u32 flags = QHCA_GID_VALID;
	int err;

	err = rdma_read_gid_l2_fields(attr, &vlan, entry.smac);
	if (err)
		return err;

	memcpy(entry.gid, attr->gid.raw, sizeof(entry.gid));
	if (ipv6_addr_v4mapped((struct in6_addr *)&attr->gid))
		flags |= QHCA_GID_IPV4;
	if (vlan >= VLAN_N_VID)
		vlan = QHCA_GID_NO_VLAN;
	entry.vlan = cpu_to_le16(vlan);
	entry.flags = cpu_to_le32(flags);
	return qhca_set_gid(dev, attr->index, &entry);
}

int qhca_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct qhca_ib_dev *dev = to_qhca(attr->device);
	struct qhca_gid_entry entry = {
		.vlan = cpu_to_le16(QHCA_GID_NO_VLAN),
	};
	int err;

	err = qhca_set_gid(dev, attr->index, &entry);
	return qhca_is_dead(dev) ? 0 : err;
}
