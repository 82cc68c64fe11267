// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address vectors and address handles.
 */
#include <linux/etherdevice.h>

#include "qhca_ib.h"

/*
 * Only of RoCEv2: the hardware has no other encapsulation.  A packet has the IP
 * version of both its addresses, so they must agree.
 */
static bool qhca_route_is_possible(const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	const struct ib_gid_attr *sgid = grh->sgid_attr;

	return attr->type == RDMA_AH_ATTR_TYPE_ROCE &&
	       rdma_ah_get_ah_flags(attr) & IB_AH_GRH && sgid &&
	       sgid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
	       ipv6_addr_v4mapped((struct in6_addr *)&sgid->gid) ==
	       ipv6_addr_v4mapped((struct in6_addr *)&grh->dgid);
}

int qhca_fill_av(struct qhca_av *av, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);

	if (!qhca_route_is_possible(attr))
		return -EINVAL;

	memset(av, 0, sizeof(*av));
	memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
	ether_addr_copy(av->dmac, attr->roce.dmac);
	av->sgid_index = grh->sgid_index;
	av->hop_limit = grh->hop_limit;
	av->traffic_class = grh->traffic_class;
	av->sl = rdma_ah_get_sl(attr);
	av->flow_label = cpu_to_le32(grh->flow_label & IB_GRH_FLOWLABEL_MASK);
	return 0;
}

void qhca_read_av(const struct qhca_av *av, struct rdma_ah_attr *attr)
{
	union ib_gid dgid;

	memcpy(dgid.raw, av->dgid, sizeof(dgid.raw));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(attr, QHCA_IB_PORT);
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_grh(attr, &dgid, le32_to_cpu(av->flow_label),
			av->sgid_index, av->hop_limit, av->traffic_class);
	ether_addr_copy(attr->roce.dmac, av->dmac);
}

struct qhca_resolution {
	struct completion done;
	int status;
};

static void qhca_resolved(int status, struct sockaddr *src,
			  struct rdma_dev_addr *addr, void *context)
{
	struct qhca_resolution *res = context;

	res->status = status;
	complete(&res->done);
}

/**
 * qhca_resolve_dmac - find the next hop if a kernel consumer did not
 * @attr: address of a connected QP's peer, with its source GID
 *
 * The core resolves the addresses of processes, and expects of kernel consumers
 * that they have done so.  SMC-R version 2 has not where the device has no
 * RoCEv1 GID: its proposal carries a MAC address only together with an offer of
 * version 1.  Sleeps.
 *
 * Return: 0 or a negative errno.
 */
int qhca_resolve_dmac(struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr);
	struct rdma_dev_addr addr = {
		.net = &init_net,
		.sgid_attr = grh->sgid_attr,
	};
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} src, dst;
	struct qhca_resolution res;
	int err;

	if (!is_zero_ether_addr(attr->roce.dmac) ||
	    !qhca_route_is_possible(attr))
		return 0;

	rdma_gid2ip(&src.sa, &grh->sgid_attr->gid);
	rdma_gid2ip(&dst.sa, &grh->dgid);
	init_completion(&res.done);
	err = rdma_resolve_ip(&src.sa, &dst.sa, &addr, QHCA_RESOLVE_MS,
			      qhca_resolved, true, &res);
	if (err)
		return err;

	wait_for_completion(&res.done);
	if (!res.status)
		ether_addr_copy(attr->roce.dmac, addr.dst_dev_addr);
	return res.status;
}

/*
 * A kernel consumer's handle holds the address vector that goes into its WQEs.
 * A process keeps handles of its own, and gets from here the MAC address, which
 * only the kernel can resolve.
 */
int qhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init_attr,
		   struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qhca(ibah->device);
	struct qhca_create_ah_resp resp = {};
	struct qhca_ah *ah = to_qah(ibah);
	int err;

	err = ib_is_udata_in_empty(udata);
	if (err)
		return err;

	err = qhca_fill_av(&ah->av, init_attr->ah_attr);
	if (err || !udata)
		return err;

	if (!atomic_add_unless(&dev->user_ahs, 1, QHCA_MAX_AH))
		return -ENOMEM;
	ah->counted = true;
	memcpy(resp.dmac, ah->av.dmac, sizeof(resp.dmac));
	err = ib_respond_udata(udata, resp);
	if (err)
		atomic_dec(&dev->user_ahs);
	return err;
}

int qhca_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	if (to_qah(ibah)->counted)
		atomic_dec(&to_qhca(ibah->device)->user_ahs);
	return 0;
}

int qhca_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	qhca_read_av(&to_qah(ibah)->av, attr);
	return 0;
}
