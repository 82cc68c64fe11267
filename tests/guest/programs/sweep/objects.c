// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-sweep's cases of queues and the objects around them.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "sweep.h"

/* What act() has made, and what prepare() has made for it. */
static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_comp_channel *channel;
	struct ibv_srq *srq;
	struct ibv_qp *qp;
	struct ibv_ah *ah;
	struct ibv_xrcd *xrcd;
	struct ibv_flow *flow;
} o;

static const union ibv_gid group = {
	.raw = { 0xff, 0x0e, [15] = 0x77 },
};

/* -- contexts, domains ---------------------------------------------------- */

static int open_device(struct sweep *s)
{
	o.ctx = ibv_open_device(s->ctx->device);
	return failed(o.ctx);
}

static void close_device(struct sweep *s)
{
	(void)s;
	MUST(!ibv_close_device(o.ctx));
}

static int alloc_pd(struct sweep *s)
{
	o.pd = ibv_alloc_pd(s->ctx);
	return failed(o.pd);
}

static void dealloc_pd(struct sweep *s)
{
	(void)s;
	MUST(!ibv_dealloc_pd(o.pd));
}

static int open_xrcd(struct sweep *s)
{
	struct ibv_xrcd_init_attr init = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	o.xrcd = ibv_open_xrcd(s->ctx, &init);
	return failed(o.xrcd);
}

static void close_xrcd(struct sweep *s)
{
	(void)s;
	MUST(!ibv_close_xrcd(o.xrcd));
}

static int create_ah(struct sweep *s)
{
	struct ibv_ah_attr path;
	union ibv_gid gid;

	if (ibv_query_gid(s->ctx, 1, s->gid_index, &gid))
		return errno;
	path = path_to(&gid, s->gid_index);
	o.ah = ibv_create_ah(s->pd, &path);
	return failed(o.ah);
}

static void destroy_ah(struct sweep *s)
{
	(void)s;
	MUST(!ibv_destroy_ah(o.ah));
}

/* -- completion queues ---------------------------------------------------- */

static int create_cq(struct sweep *s)
{
	o.cq = ibv_create_cq(s->ctx, 1000, NULL, o.channel, 0);
	return failed(o.cq);
}

static void destroy_cq(struct sweep *s)
{
	(void)s;
	MUST(!ibv_destroy_cq(o.cq));
}

static void prepare_channel(struct sweep *s)
{
	if (o.channel)
		return;
	o.channel = ibv_create_comp_channel(s->ctx);
	MUST(o.channel);
}

static void drop_channel(struct sweep *s)
{
	(void)s;
	MUST(!ibv_destroy_comp_channel(o.channel));
	o.channel = NULL;
}

static void destroy_cq_and_channel(struct sweep *s)
{
	destroy_cq(s);
	drop_channel(s);
}

static void prepare_cq(struct sweep *s)
{
	o.cq = ibv_create_cq(s->ctx, 100, NULL, NULL, 0);
	MUST(o.cq);
}

static int resize_cq(struct sweep *s)
{
	(void)s;
	return ibv_resize_cq(o.cq, 5000);
}

/* -- shared receive queues ------------------------------------------------ */

static int create_srq(struct sweep *s)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 500, .max_sge = 2 } };

	o.srq = ibv_create_srq(s->pd, &init);
	return failed(o.srq);
}

static void destroy_srq(struct sweep *s)
{
	(void)s;
	MUST(!ibv_destroy_srq(o.srq));
}

static void prepare_srq(struct sweep *s)
{
	MUST(!create_srq(s));
}

static int resize_srq(struct sweep *s)
{
	struct ibv_srq_attr attr = { .max_wr = 3000 };

	(void)s;
	return ibv_modify_srq(o.srq, &attr, IBV_SRQ_MAX_WR);
}

static int limit_srq(struct sweep *s)
{
	struct ibv_srq_attr attr = { .srq_limit = 10 };

	(void)s;
	return ibv_modify_srq(o.srq, &attr, IBV_SRQ_LIMIT);
}

/* -- queue pairs ---------------------------------------------------------- */

static int create_qp(struct sweep *s, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = s->cq, .recv_cq = s->cq,
		.cap = { .max_send_wr = 200, .max_recv_wr = 200, .max_send_sge = 2,
			 .max_recv_sge = 2, .max_inline_data = 64 },
	};

	o.qp = ibv_create_qp(s->pd, &init);
	return failed(o.qp);
}

static int create_rc(struct sweep *s)
{
	return create_qp(s, IBV_QPT_RC);
}

static int create_ud(struct sweep *s)
{
	return create_qp(s, IBV_QPT_UD);
}

static int create_raw(struct sweep *s)
{
	return create_qp(s, IBV_QPT_RAW_PACKET);
}

static void destroy_qp(struct sweep *s)
{
	(void)s;
	MUST(!ibv_destroy_qp(o.qp));
}

static void prepare_xrcd(struct sweep *s)
{
	MUST(!open_xrcd(s));
}

static int create_xrc_target(struct sweep *s)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = o.xrcd,
	};

	o.qp = ibv_create_qp_ex(s->ctx, &init);
	return failed(o.qp);
}

static void destroy_target_and_xrcd(struct sweep *s)
{
	destroy_qp(s);
	close_xrcd(s);
}

static int create_xrc_srq(struct sweep *s)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = 500, .max_sge = 2 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = s->pd, .xrcd = o.xrcd, .cq = s->cq,
	};

	o.srq = ibv_create_srq_ex(s->ctx, &init);
	return failed(o.srq);
}

static void destroy_srq_and_xrcd(struct sweep *s)
{
	destroy_srq(s);
	close_xrcd(s);
}

static void forget_xrcd(struct sweep *s)
{
	close_xrcd(s);
}

static void prepare_rc(struct sweep *s)
{
	MUST(!create_rc(s));
}

/* To itself, from RESET to RTS. */
static int connect_rc(struct sweep *s)
{
	static const struct connection c = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 1, .dest_rd_atomic = 1,
		.access = IBV_ACCESS_REMOTE_WRITE,
	};
	struct qp_address self = { .qpn = o.qp->qp_num };

	if (ibv_query_gid(s->ctx, 1, s->gid_index, &self.gid))
		return errno;
	return qp_connect(o.qp, &c, s->gid_index, &self, 0);
}

/* -- groups and rules ----------------------------------------------------- */

static void prepare_ud(struct sweep *s)
{
	static const struct connection c = { .type = IBV_QPT_UD };

	MUST(!create_ud(s));
	MUST(!qp_init(o.qp, &c));
}

static int attach_group(struct sweep *s)
{
	(void)s;
	return ibv_attach_mcast(o.qp, &group, 0);
}

static void leave_group(struct sweep *s)
{
	MUST(!ibv_detach_mcast(o.qp, &group, 0));
	destroy_qp(s);
}

static bool has_raw(struct sweep *s)
{
	return s->attr.raw_packet_caps || s->attr.orig_attr.max_raw_ethy_qp;
}

static void prepare_raw(struct sweep *s)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	MUST(!create_raw(s));
	MUST(!ibv_modify_qp(o.qp, &attr, IBV_QP_STATE | IBV_QP_PORT));
}

static int create_flow(struct sweep *s)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule), .num_of_specs = 1,
			  .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth),
			 .val = { .ether_type = 0xb588 }, .mask = { .ether_type = 0xffff } },
	};

	(void)s;
	o.flow = ibv_create_flow(o.qp, &rule.attr);
	return failed(o.flow);
}

static void destroy_flow(struct sweep *s)
{
	MUST(!ibv_destroy_flow(o.flow));
	destroy_qp(s);
}

const struct sweep_case sweep_objects[] = {
	{ "context", NULL, open_device, close_device },
	{ "pd", NULL, alloc_pd, dealloc_pd },
	{ "xrcd", NULL, open_xrcd, close_xrcd },
	{ "ah", NULL, create_ah, destroy_ah },
	{ "cq", NULL, create_cq, destroy_cq },
	{ "cq-channel", prepare_channel, create_cq, destroy_cq_and_channel, drop_channel },
	{ "cq-resize", prepare_cq, resize_cq, destroy_cq, destroy_cq },
	{ "srq", NULL, create_srq, destroy_srq },
	{ "srq-resize", prepare_srq, resize_srq, destroy_srq, destroy_srq },
	{ "srq-limit", prepare_srq, limit_srq, destroy_srq, destroy_srq },
	{ "srq-xrc", prepare_xrcd, create_xrc_srq, destroy_srq_and_xrcd, forget_xrcd },
	{ "qp-rc", NULL, create_rc, destroy_qp },
	{ "qp-ud", NULL, create_ud, destroy_qp },
	{ "qp-raw", NULL, create_raw, destroy_qp, NULL, has_raw },
	{ "qp-xrc", prepare_xrcd, create_xrc_target, destroy_target_and_xrcd, forget_xrcd },
	{ "qp-connect", prepare_rc, connect_rc, destroy_qp, destroy_qp },
	{ "mcast", prepare_ud, attach_group, leave_group, destroy_qp },
	{ "flow", prepare_raw, create_flow, destroy_flow, destroy_qp, has_raw },
	{ }
};
