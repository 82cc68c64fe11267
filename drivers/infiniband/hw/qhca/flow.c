// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Flow rules: which Ethernet frames go to raw packet QPs.  The core has made
 * sure that the caller may have these (CAP_NET_RAW), that each specification is
 * as long as it says, and that the QP outlives its rules.
 */
#include <linux/bitfield.h>
#include <linux/slab.h>

#include "queue.h"

static_assert((int)QHCA_FLOW_NORMAL == (int)IB_FLOW_ATTR_NORMAL);
static_assert((int)QHCA_FLOW_ALL_DEFAULT == (int)IB_FLOW_ATTR_ALL_DEFAULT);
static_assert((int)QHCA_FLOW_MC_DEFAULT == (int)IB_FLOW_ATTR_MC_DEFAULT);
static_assert((int)QHCA_FLOW_SNIFFER == (int)IB_FLOW_ATTR_SNIFFER);

/**
 * struct qhca_ib_flow - a flow rule
 * @ibflow: the core's part, which names the QP
 * @index:  number of the device's rule, out of qhca_ib_dev.flows
 */
struct qhca_ib_flow {
	struct ib_flow ibflow;
	u32 index;
};

static void qhca_flow_put_eth(struct qhca_flow_key *key,
			      const struct ib_flow_eth_filter *f)
{
	memcpy(key->dmac, f->dst_mac, sizeof(key->dmac));
	memcpy(key->smac, f->src_mac, sizeof(key->smac));
	memcpy(key->ethertype, &f->ether_type, sizeof(key->ethertype));
	memcpy(key->vlan, &f->vlan_tag, sizeof(key->vlan));
}

static void qhca_flow_put_ipv4(struct qhca_flow_key *key,
			       const struct ib_flow_ipv4_filter *f)
{
	memcpy(key->src_ip, &f->src_ip, sizeof(f->src_ip));
	memcpy(key->dst_ip, &f->dst_ip, sizeof(f->dst_ip));
	key->proto = f->proto;
	key->tos = f->tos;
	key->ttl = f->ttl;
}

static void qhca_flow_put_ipv6(struct qhca_flow_key *key,
			       const struct ib_flow_ipv6_filter *f)
{
	memcpy(key->src_ip, f->src_ip, sizeof(key->src_ip));
	memcpy(key->dst_ip, f->dst_ip, sizeof(key->dst_ip));
	memcpy(key->flow_label, &f->flow_label, sizeof(key->flow_label));
	key->proto = f->next_hdr;
	key->tos = f->traffic_class;
	key->ttl = f->hop_limit;
}

static void qhca_flow_put_ports(struct qhca_flow_key *key,
				const struct ib_flow_tcp_udp_filter *f)
{
	memcpy(key->sport, &f->src_port, sizeof(key->sport));
	memcpy(key->dport, &f->dst_port, sizeof(key->dport));
}

static int qhca_flow_add_spec(struct qhca_flow *hw,
			      const union ib_flow_spec *spec)
{
	switch (spec->type) {
	case IB_FLOW_SPEC_ETH:
		qhca_flow_put_eth(&hw->key, &spec->eth.val);
		qhca_flow_put_eth(&hw->mask, &spec->eth.mask);
		if (spec->eth.mask.vlan_tag)
			hw->layers |= QHCA_FLOW_VLAN;
		return 0;
	case IB_FLOW_SPEC_IPV4:
		if (spec->ipv4.mask.flags)
			return -EOPNOTSUPP;
		qhca_flow_put_ipv4(&hw->key, &spec->ipv4.val);
		qhca_flow_put_ipv4(&hw->mask, &spec->ipv4.mask);
		hw->layers |= QHCA_FLOW_IPV4;
		return 0;
	case IB_FLOW_SPEC_IPV6:
		qhca_flow_put_ipv6(&hw->key, &spec->ipv6.val);
		qhca_flow_put_ipv6(&hw->mask, &spec->ipv6.mask);
		hw->layers |= QHCA_FLOW_IPV6;
		return 0;
	case IB_FLOW_SPEC_TCP:
	case IB_FLOW_SPEC_UDP:
		qhca_flow_put_ports(&hw->key, &spec->tcp_udp.val);
		qhca_flow_put_ports(&hw->mask, &spec->tcp_udp.mask);
		hw->layers |= spec->type == IB_FLOW_SPEC_TCP ? QHCA_FLOW_TCP :
							       QHCA_FLOW_UDP;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int qhca_flow_fill(struct qhca_flow *hw, struct ib_qp *ibqp,
			  const struct ib_flow_attr *attr)
{
	const union ib_flow_spec *spec = attr->flows;
	u32 seen = 0, layer;	/* bits of IB_FLOW_SPEC_LAYER_MASK */
	int i, err;

	if (attr->flags & ~(u32)IB_FLOW_ATTR_FLAGS_DONT_TRAP ||
	    attr->type > IB_FLOW_ATTR_SNIFFER ||
	    ibqp->qp_type != IB_QPT_RAW_PACKET)
		return -EOPNOTSUPP;
	if (attr->port != QHCA_IB_PORT ||
	    (attr->type != IB_FLOW_ATTR_NORMAL && attr->num_of_specs))
		return -EINVAL;

	hw->qpn = cpu_to_le32(to_qqp(ibqp)->qpn);
	hw->priority = cpu_to_le16(attr->priority);
	hw->type = attr->type;
	if (attr->flags & IB_FLOW_ATTR_FLAGS_DONT_TRAP)
		hw->flags = QHCA_FLOW_F_DONT_TRAP;

	for (i = 0; i < attr->num_of_specs; i++) {
		/* A frame has one header of each layer. */
		layer = BIT(FIELD_GET(IB_FLOW_SPEC_LAYER_MASK, spec->type));
		if (seen & layer)
			return -EINVAL;
		seen |= layer;
		err = qhca_flow_add_spec(hw, spec);
		if (err)
			return err;
		spec = (const void *)spec + spec->size;
	}
	return 0;
}

struct ib_flow *qhca_create_flow(struct ib_qp *ibqp, struct ib_flow_attr *attr,
				 struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibqp->device);
	struct qhca_flow hw = {};
	struct qhca_ib_flow *flow;
	int index, err;

	err = ib_no_udata_io(udata);
	if (err)
		return ERR_PTR(err);
	err = qhca_flow_fill(&hw, ibqp, attr);
	if (err)
		return ERR_PTR(err);

	flow = kzalloc_obj(*flow, GFP_KERNEL_ACCOUNT);
	if (!flow)
		return ERR_PTR(-ENOMEM);

	index = ida_alloc_max(&dev->flows, dev->qdev->caps.max_flows - 1,
			      GFP_KERNEL);
	if (index < 0) {
		err = index;
		goto err_free;
	}
	flow->index = index;
	err = qhca_create_object(dev, QHCA_CMD_CREATE_FLOW, index, &hw,
				 sizeof(hw));
	if (err)
		goto err_index;
	return &flow->ibflow;

err_index:
	ida_free(&dev->flows, index);
err_free:
	kfree(flow);
	return ERR_PTR(err);
}

int qhca_destroy_flow(struct ib_flow *ibflow)
{
	struct qhca_ib_flow *flow = container_of(ibflow, struct qhca_ib_flow,
						 ibflow);
	struct qhca_ib_dev *dev = to_qhca(ibflow->device);

	qhca_destroy_object(dev, QHCA_CMD_DESTROY_FLOW, flow->index);
	ida_free(&dev->flows, flow->index);
	kfree(flow);
	return 0;
}
