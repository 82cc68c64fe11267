// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* The raw packet QP, its receives, and its flow rules. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "raw.h"

void make_qp(struct run *r)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RAW_PACKET, .send_cq = r->send_cq, .recv_cq = r->recv_cq,
		.cap = { 16, RECEIVES, 2, 1, INLINE },
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	r->qp = ibv_create_qp(r->pd, &init);
	if (!r->qp)
		die("ibv_create_qp: %s", strerror(errno));
	if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_PORT))
		die("to INIT: %s", strerror(errno));
	for (attr.qp_state = IBV_QPS_RTR; attr.qp_state <= IBV_QPS_RTS; attr.qp_state++)
		if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE))
			die("to state %d: %s", attr.qp_state, strerror(errno));
}

void end_qp(struct run *r)
{
	struct ibv_wc wc;
	int rc = ibv_destroy_qp(r->qp);

	if (rc)
		die("ibv_destroy_qp: %s", strerror(rc));
	while (ibv_poll_cq(r->recv_cq, 1, &wc) > 0)
		;
}

void give_receives(struct run *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct ibv_sge sge = { (uintptr_t)r->buf + i * SLOT, SLOT, r->mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

		if (ibv_post_recv(r->qp, &wr, &bad))
			die("ibv_post_recv fails");
	}
}

struct rule rule_for(const struct run *r, int vlan, uint16_t port)
{
	struct rule rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 3,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
		.ip = { .type = IBV_FLOW_SPEC_IPV4, .size = sizeof(rule.ip) },
		.udp = { .type = IBV_FLOW_SPEC_UDP, .size = sizeof(rule.udp) },
	};

	memcpy(rule.eth.val.dst_mac, r->here.mac, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	rule.eth.val.ether_type = htons(0x0800);
	rule.eth.mask.ether_type = 0xffff;
	if (vlan != UNTAGGED) {
		rule.eth.val.vlan_tag = htons(vlan);
		rule.eth.mask.vlan_tag = htons(0xfff);
	}
	memcpy(&rule.ip.val.dst_ip, r->here.ip, 4);
	rule.ip.mask.dst_ip = 0xffffffff;
	rule.udp.val.dst_port = htons(port);
	rule.udp.mask.dst_port = 0xffff;
	return rule;
}

struct ibv_flow *add_rule(struct run *r, struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow = ibv_create_flow(r->qp, attr);

	if (!flow)
		die("ibv_create_flow: %s", strerror(errno));
	return flow;
}

struct ibv_flow *add_plain_rule(struct run *r, enum ibv_flow_attr_type type)
{
	struct ibv_flow_attr attr = { .type = type, .size = sizeof(attr), .port = 1 };

	return add_rule(r, &attr);
}

void end_rule(struct ibv_flow *flow)
{
	int rc = ibv_destroy_flow(flow);

	if (rc)
		die("ibv_destroy_flow: %s", strerror(rc));
}
