// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands that attach a QP to frames of the port: flow rules and multicast
 * groups.  The tables lie in wire/, which knows no QP; whether the QP may have
 * the frames is checked here.
 */
#include "attach.h"

#include "hca.h"

enum qhca_cmd_status hca_cmd_create_flow(struct hca_fn *fn,
					 struct hca_cmd_ctx *ctx)
{
	const struct qhca_flow *in = (const void *)ctx->in;
	uint32_t qpn = get_le32(&in->qpn);
	struct hca_flow_rule rule;

	if (fn->flows.rule[ctx->index].used)
		return QHCA_CMD_IN_USE;
	if (in->type >= QHCA_FLOW_NUM_TYPES)
		return hca_cmd_bad(ctx, offsetof(struct qhca_flow, type));
	if (in->layers & ~QHCA_FLOW_LAYERS)
		return hca_cmd_bad(ctx, offsetof(struct qhca_flow, layers));
	if (in->flags & ~QHCA_FLOW_F_DONT_TRAP)
		return hca_cmd_bad(ctx, offsetof(struct qhca_flow, flags));
	if (!hca_qp_is_raw(fn, qpn))
		return hca_cmd_bad(ctx, offsetof(struct qhca_flow, qpn));
	rule = (struct hca_flow_rule){
		.key = in->key, .mask = in->mask, .qpn = qpn,
		.priority = get_le16(&in->priority), .type = in->type,
		.layers = in->layers, .flags = in->flags,
	};
	hca_flow_add(fn, (uint16_t)ctx->index, &rule);
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_destroy_flow(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx)
{
	if (!fn->flows.rule[ctx->index].used)
		return QHCA_CMD_BAD_STATE;
	hca_flow_drop(fn, (uint16_t)ctx->index);
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_attach_mcast(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx)
{
	const struct qhca_mgid *in = (const void *)ctx->in;

	if (!hca_gid_is_multicast(in->gid))
		return hca_cmd_bad(ctx, offsetof(struct qhca_mgid, gid));
	if (!hca_qp_is_ud(fn, ctx->index))
		return hca_cmd_missing(fn, QHCA_TABLE_QP, ctx->index);
	if (hca_mcast_is_member(fn, in->gid, ctx->index))
		return QHCA_CMD_OK;
	return hca_mcast_join(fn, in->gid, ctx->index) ? QHCA_CMD_OK :
							 QHCA_CMD_NO_RESOURCE;
}

enum qhca_cmd_status hca_cmd_detach_mcast(struct hca_fn *fn,
					  struct hca_cmd_ctx *ctx)
{
	const struct qhca_mgid *in = (const void *)ctx->in;

	if (!hca_gid_is_multicast(in->gid))
		return hca_cmd_bad(ctx, offsetof(struct qhca_mgid, gid));
	if (!hca_mcast_is_member(fn, in->gid, ctx->index))
		return hca_cmd_missing(fn, QHCA_TABLE_QP, ctx->index);
	hca_mcast_leave(fn, in->gid, ctx->index);
	return QHCA_CMD_OK;
}
