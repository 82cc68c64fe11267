/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Commands on QPs: create, destroy, query, and the state machine of MODIFY_QP
 * (IBTA 10.3.1, 11.2.5.2).
 */
#include "transport/transport.h"

#define IN(field)	((uint32_t)offsetof(struct qhca_modify_qp, ctx.field))

/* ---- create and destroy */

/* Is the index in range, mapped, and (*live) in use? */
static enum qhca_cmd_status check_index(struct hca_fn *fn, uint32_t qpn,
					bool *live)
{
	uint64_t addr;

	if (!qpn || qpn >= hca_table_size(fn, QHCA_TABLE_QP) ||
	    qpn >= fn->qps.num_slots)
		return QHCA_CMD_BAD_INDEX;
	if (!hca_table_entry(fn, QHCA_TABLE_QP, qpn, &addr))
		return QHCA_CMD_NOT_MAPPED;
	*live = fn->qps.slot[qpn].live;
	return QHCA_CMD_OK;
}

static uint64_t type_feature(unsigned int type)
{
	static const uint64_t feature[] = {
		[QHCA_QPT_RC] = QHCA_FEAT_RC, [QHCA_QPT_UC] = QHCA_FEAT_UC,
		[QHCA_QPT_UD] = QHCA_FEAT_UD, [QHCA_QPT_GSI] = QHCA_FEAT_UD,
		[QHCA_QPT_XRC_INI] = QHCA_FEAT_XRC,
		[QHCA_QPT_XRC_TGT] = QHCA_FEAT_XRC,
		[QHCA_QPT_RAW] = QHCA_FEAT_RAW_PACKET,
	};

	return type <= QHCA_QPT_RAW ? feature[type] : 0;
}

static bool xrc_flags_sane(const struct hca_qp *qp)
{
	if (qp->type == QHCA_QPT_XRC_INI)
		return !(qp->flags & (QHCA_QP_HAS_RQ | QHCA_QP_SRQ));
	if (qp->type == QHCA_QPT_XRC_TGT)
		return !(qp->flags & (QHCA_QP_HAS_RQ | QHCA_QP_SRQ |
				      QHCA_QP_HAS_SQ));
	return true;
}

/* What CREATE_QP asks beyond what hca_qp_load_sw() asks of any context. */
static bool create_sane(const struct hca_qp *qp)
{
	const struct qhca_qpc_sw *sw = &qp->sw;

	if ((qp->qpn == HCA_QPN_GSI) != (qp->type == QHCA_QPT_GSI))
		return false;
	if (qp->flags & QHCA_QP_HAS_SQ &&
	    (64u + 16u * sw->sq_max_sge > 1u << sw->sq_log_stride ||
	     64u + qp->max_inline > 1u << sw->sq_log_stride))
		return false;
	if (qp->flags & QHCA_QP_HAS_RQ &&
	    16u + 16u * sw->rq_max_sge > 1u << sw->rq_log_stride)
		return false;
	return sw->state == QHCA_QPS_RESET && xrc_flags_sane(qp) &&
	       (qp->qpn == HCA_QPN_GSI || qp->qpn >= HCA_FIRST_USER_QPN);
}

/* Attributes that MODIFY_QP sets start out as zero. */
static void clear_attrs(struct qhca_qpc_sw *sw)
{
	sw->qkey = sw->dest_qpn = sw->sq_psn = sw->rq_psn = sw->access = 0;
	sw->path_mtu = sw->timeout = sw->retry_cnt = sw->rnr_retry = 0;
	sw->min_rnr_timer = sw->max_rd_atomic = sw->max_dest_rd_atomic = 0;
	sw->pkey_index = 0;
	memset(&sw->av, 0, sizeof(sw->av));
	memset(sw->rsvd, 0, sizeof(sw->rsvd));
}

static void unref(struct hca_fn *fn, const struct hca_qp *qp)
{
	if (qp->flags & QHCA_QP_HAS_SQ)
		hca_cq_unref(fn, qp->send_cqn);
	if (!hca_qp_is_xrc(qp))
		hca_cq_unref(fn, qp->recv_cqn);
	if (qp->flags & QHCA_QP_SRQ)
		hca_srq_unref(fn, qp->srqn);
}

bool hca_qp_ref(struct hca_fn *fn, const struct hca_qp *qp)
{
	bool send = qp->flags & QHCA_QP_HAS_SQ;
	bool recv = !hca_qp_is_xrc(qp);

	if (send && !hca_cq_ref(fn, qp->send_cqn))
		return false;
	if (recv && !hca_cq_ref(fn, qp->recv_cqn))
		goto err_send;
	if (qp->flags & QHCA_QP_SRQ && !hca_srq_ref(fn, qp->srqn))
		goto err_recv;
	return true;

err_recv:
	if (recv)
		hca_cq_unref(fn, qp->recv_cqn);
err_send:
	if (send)
		hca_cq_unref(fn, qp->send_cqn);
	return false;
}

enum qhca_cmd_status hca_cmd_create_qp(struct hca_fn *fn,
				       struct hca_cmd_ctx *cmd)
{
	struct hca_qp *qp, *tmp = &fn->qps.scratch;
	struct hca_qpslot *slot;
	enum qhca_cmd_status status;
	uint64_t feature;
	bool live;

	status = check_index(fn, cmd->index, &live);
	if (status == QHCA_CMD_BAD_INDEX)
		return status;
	memset(tmp, 0, sizeof(*tmp));
	tmp->qpn = cmd->index;
	memcpy(&tmp->sw, cmd->in, sizeof(tmp->sw));
	clear_attrs(&tmp->sw);
	if (!hca_qp_load_sw(fn, tmp) || !create_sane(tmp))
		return QHCA_CMD_BAD_PARAM;
	feature = type_feature(tmp->type);
	if (tmp->flags & QHCA_QP_SRQ)
		feature |= QHCA_FEAT_SRQ;
	if (feature & ~fn->features)
		return QHCA_CMD_UNSUPPORTED;
	if (status != QHCA_CMD_OK)
		return status;
	if (live)
		return QHCA_CMD_IN_USE;
	if (!hca_qp_ref(fn, tmp))
		return QHCA_CMD_BAD_STATE;

	qp = hca_ctx_new(fn, &fn->hca->cache.qd, cmd->index);
	if (!qp) {
		unref(fn, tmp);
		return QHCA_CMD_NOT_MAPPED;
	}
	*qp = *tmp;
	slot = &fn->qps.slot[cmd->index];
	*slot = (struct hca_qpslot){
		.next = slot->next,
		.work = slot->work & HCA_WORK_PLACES,
		.live = 1,
		.type = qp->type,
		.has_sq = !!(qp->flags & QHCA_QP_HAS_SQ),
		.db_page = qp->db_page,
	};
	hca_sched_forget(fn, cmd->index);
	hca_linger_forget(fn, cmd->index);
	return hca_ctx_flush(fn, &fn->hca->cache.qd, cmd->index, false) ?
	       QHCA_CMD_DMA_ERR : QHCA_CMD_OK;
}

/* No other QP completes a WQE that this QP has taken from an SRQ: complete it. */
static void release_srq_wqe(struct hca_fn *fn, struct hca_qp *qp)
{
	struct qhca_cqe cqe = {
		.status = QHCA_WC_WR_FLUSH_ERR, .opcode = QHCA_CQE_RECV,
	};

	if (!hca_qp_uses_srq(qp) || !(qp->r_flags & HCA_RF_RWQE) ||
	    hca_take_rwqe(fn, qp) != HCA_TAKE_OK)
		return;
	put_le16(&cqe.vlan, HCA_VLAN_NONE);
	hca_complete_recv(fn, qp, &cqe);
}

/* Forget everything but the software part and who counts for the QP. */
static void reset(struct hca_fn *fn, struct hca_qp *qp)
{
	struct hca_qp *tmp = &fn->qps.scratch;

	release_srq_wqe(fn, qp);
	hca_fault_forget(fn, qp);
	hca_sched_forget(fn, qp->qpn);
	hca_linger_forget(fn, qp->qpn);
	/* RESET writes sq_active in any case: software may have reused the buffer. */
	qp->s_flags |= HCA_SF_ACTIVE;
	hca_qp_set_active(fn, qp, false);
	hca_qp_set_state(fn, qp, QHCA_QPS_RESET);
	memset(tmp, 0, sizeof(*tmp));
	tmp->qpn = qp->qpn;
	tmp->sw = qp->sw;
	tmp->counter_set = qp->counter_set;
	hca_qp_load_sw(fn, tmp);	/* the device has accepted it before */
	*qp = *tmp;
	hca_qp_dirty(fn, qp);
}

enum qhca_cmd_status hca_cmd_destroy_qp(struct hca_fn *fn,
					struct hca_cmd_ctx *cmd)
{
	enum qhca_cmd_status status;
	struct hca_qpslot *slot;
	struct hca_qp *qp;
	bool live;

	status = check_index(fn, cmd->index, &live);
	if (status != QHCA_CMD_OK)
		return status;
	if (!live)
		return QHCA_CMD_BAD_STATE;
	qp = hca_qp_get(fn, cmd->index);
	if (!qp)
		return QHCA_CMD_DMA_ERR;
	hca_reply_leave(fn, qp);
	release_srq_wqe(fn, qp);
	hca_fault_forget(fn, qp);
	unref(fn, qp);
	hca_sched_forget(fn, cmd->index);
	hca_linger_forget(fn, cmd->index);
	hca_mcast_drop_qp(fn, cmd->index);
	hca_flow_drop_qp(fn, cmd->index);
	hca_event_forget_qp(fn, cmd->index);
	slot = &fn->qps.slot[cmd->index];
	slot->live = 0;
	slot->state = QHCA_QPS_RESET;

	/* An image of zeros means that the context is free: no decode accepts it. */
	memset(qp, 0, sizeof(*qp));
	hca_qp_dirty(fn, qp);
	return hca_ctx_flush(fn, &fn->hca->cache.qd, cmd->index, true) ?
	       QHCA_CMD_DMA_ERR : QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_query_qp(struct hca_fn *fn,
				      struct hca_cmd_ctx *cmd)
{
	struct qhca_query_qp *out = (void *)cmd->out;
	enum qhca_cmd_status status;
	struct hca_qp *qp;
	bool live;

	status = check_index(fn, cmd->index, &live);
	if (status != QHCA_CMD_OK)
		return status;
	if (!live)
		return QHCA_CMD_BAD_STATE;
	qp = hca_qp_get(fn, cmd->index);
	if (!qp || hca_ctx_flush(fn, &fn->hca->cache.qd, cmd->index, false))
		return QHCA_CMD_DMA_ERR;
	if (qp->state == QHCA_QPS_ERR)
		hca_sched_work(fn, cmd->index, HCA_WORK_FLUSH);
	memcpy(&out->ctx, &qp->sw, sizeof(out->ctx));
	out->ctx.state = qp->state;
	put_le32(&out->sq_psn, qp->s_psn);
	put_le32(&out->rq_psn, qp->r_psn);
	out->sq_draining = !!(qp->s_flags & HCA_SF_DRAINING);
	put_le32(&out->sq_pi, qp->sq_pi);
	put_le32(&out->sq_ci, qp->sq_ci);
	put_le32(&out->rq_pi, qp->rq_pi);
	put_le32(&out->rq_ci, qp->rq_ci);
	return QHCA_CMD_OK;
}

/* ---- transitions */

#define RC	(1u << QHCA_QPT_RC)
#define UC	(1u << QHCA_QPT_UC)
#define XI	(1u << QHCA_QPT_XRC_INI)
#define XT	(1u << QHCA_QPT_XRC_TGT)
#define D	(1u << QHCA_QPT_UD | 1u << QHCA_QPT_GSI)
#define C	(RC | UC | XI | XT)
#define RAW	(1u << QHCA_QPT_RAW)
#define ALL	(C | D | RAW)
#define A(attr)	QHCA_QP_ATTR_##attr
#define S(state) QHCA_QPS_##state

#define A_PATH	(A(AV) | A(PATH_MTU) | A(DEST_QPN) | A(RQ_PSN))
#define A_RESP	(A(MAX_DEST_RD_ATOMIC) | A(MIN_RNR_TIMER))
#define A_REQ	(A(SQ_PSN) | A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | \
		 A(MAX_RD_ATOMIC))

static const struct transition {
	uint8_t from, to, types;
	uint32_t required, permitted;
} transitions[] = {
	{ S(RESET), S(INIT), C, A(PKEY_INDEX) | A(ACCESS), 0 },
	{ S(RESET), S(INIT), D, A(PKEY_INDEX) | A(QKEY), 0 },
	{ S(RESET), S(INIT), RAW, 0, 0 },
	{ S(INIT), S(INIT), C, 0, A(PKEY_INDEX) | A(ACCESS) },
	{ S(INIT), S(INIT), D, 0, A(PKEY_INDEX) | A(QKEY) },
	{ S(INIT), S(INIT), RAW, 0, 0 },
	{ S(INIT), S(RTR), UC | XI, A_PATH, A(PKEY_INDEX) | A(ACCESS) },
	{ S(INIT), S(RTR), RC | XT, A_PATH | A_RESP,
	  A(PKEY_INDEX) | A(ACCESS) },
	{ S(INIT), S(RTR), D, 0, A(PKEY_INDEX) | A(QKEY) },
	{ S(INIT), S(RTR), RAW, 0, 0 },
	{ S(RTR), S(RTS), UC, A(SQ_PSN), A(ACCESS) },
	{ S(RTR), S(RTS), RC, A_REQ, A(ACCESS) | A(MIN_RNR_TIMER) },
	{ S(RTR), S(RTS), XI, A_REQ, A(ACCESS) },
	{ S(RTR), S(RTS), XT, A(SQ_PSN) | A(TIMEOUT),
	  A(ACCESS) | A(MIN_RNR_TIMER) },
	{ S(RTR), S(RTS), D, A(SQ_PSN), A(QKEY) },
	{ S(RTR), S(RTS), RAW, 0, 0 },
	{ S(RTS), S(RTS), UC | XI, 0, A(ACCESS) },
	{ S(RTS), S(RTS), RC | XT, 0, A(ACCESS) | A(MIN_RNR_TIMER) },
	{ S(RTS), S(RTS), D, 0, A(QKEY) },
	{ S(RTS), S(RTS), RAW, 0, 0 },
	{ S(SQD), S(RTS), UC | XI, 0, A(ACCESS) },
	{ S(SQD), S(RTS), RC | XT, 0, A(ACCESS) | A(MIN_RNR_TIMER) },
	{ S(SQD), S(RTS), D, 0, A(QKEY) },
	{ S(SQD), S(RTS), RAW, 0, 0 },
	{ S(RTS), S(SQD), ALL, 0, A(SQD_EVENT) },
	{ S(SQD), S(SQD), UC, 0, A(AV) | A(PKEY_INDEX) | A(ACCESS) },
	{ S(SQD), S(SQD), RC, 0, A(AV) | A(PKEY_INDEX) | A(ACCESS) |
	  A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MIN_RNR_TIMER) |
	  A(MAX_RD_ATOMIC) | A(MAX_DEST_RD_ATOMIC) },
	{ S(SQD), S(SQD), XI, 0, A(AV) | A(PKEY_INDEX) | A(ACCESS) |
	  A(TIMEOUT) | A(RETRY_CNT) | A(RNR_RETRY) | A(MAX_RD_ATOMIC) },
	{ S(SQD), S(SQD), XT, 0, A(AV) | A(PKEY_INDEX) | A(ACCESS) |
	  A(TIMEOUT) | A(MIN_RNR_TIMER) | A(MAX_DEST_RD_ATOMIC) },
	{ S(SQD), S(SQD), D, 0, A(PKEY_INDEX) | A(QKEY) },
	{ S(SQD), S(SQD), RAW, 0, 0 },
	{ S(SQE), S(RTS), UC, 0, A(ACCESS) },
	{ S(SQE), S(RTS), D, 0, A(QKEY) },
	{ S(SQE), S(RTS), RAW, 0, 0 },
};

static const struct transition *find_transition(uint8_t type, uint8_t from,
						uint8_t to)
{
	static const struct transition no_attributes;

	if (to == QHCA_QPS_RESET ||
	    (to == QHCA_QPS_ERR && from != QHCA_QPS_RESET))
		return &no_attributes;
	for (size_t i = 0; i < sizeof(transitions) / sizeof(*transitions); i++)
		if (transitions[i].from == from && transitions[i].to == to &&
		    transitions[i].types >> type & 1)
			return &transitions[i];
	return NULL;
}

static bool av_sane(struct hca_fn *fn, const struct qhca_av *av)
{
	static const uint8_t zero[16];
	const struct hca_gid *gid = hca_gid_get(fn, av->sgid_index);

	return gid && memcmp(av->dgid, zero, 16) &&
	       memcmp(av->dmac, zero, 6) && !(av->dmac[0] & 1) &&
	       hca_gid_is_ipv4(av->dgid) == hca_gid_is_ipv4(gid->gid) &&
	       av->sl < 16 && get_le32(&av->flow_label) < 1u << 20;
}

/* Copy the attributes of @mask from @from to @to. */
static void merge_attrs(struct qhca_qpc_sw *to, const struct qhca_qpc_sw *from,
			uint32_t mask)
{
#define MERGE(attr, field) \
	do { if (mask & A(attr)) to->field = from->field; } while (0)
	MERGE(ACCESS, access);
	MERGE(PKEY_INDEX, pkey_index);
	MERGE(QKEY, qkey);
	MERGE(AV, av);
	MERGE(PATH_MTU, path_mtu);
	MERGE(TIMEOUT, timeout);
	MERGE(RETRY_CNT, retry_cnt);
	MERGE(RNR_RETRY, rnr_retry);
	MERGE(RQ_PSN, rq_psn);
	MERGE(MAX_RD_ATOMIC, max_rd_atomic);
	MERGE(MIN_RNR_TIMER, min_rnr_timer);
	MERGE(SQ_PSN, sq_psn);
	MERGE(MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	MERGE(DEST_QPN, dest_qpn);
#undef MERGE
	if (mask & A(SQD_EVENT)) {
		uint16_t event = get_le16(&from->flags) & QHCA_QP_SQD_EVENT;

		put_le16(&to->flags, (get_le16(&to->flags) &
				      ~QHCA_QP_SQD_EVENT) | event);
	}
}

static enum qhca_cmd_status check_attrs(struct hca_fn *fn,
					const struct qhca_qpc_sw *sw,
					uint32_t mask, uint32_t *syndrome)
{
	if (mask & A(AV) && !av_sane(fn, &sw->av)) {
		*syndrome = IN(av);
		return QHCA_CMD_BAD_PARAM;
	}
	if (mask & A(PATH_MTU) &&
	    (sw->path_mtu < QHCA_MTU_256 || sw->path_mtu > QHCA_MTU_4096 ||
	     128u << sw->path_mtu > hca_port_mtu(fn))) {
		*syndrome = IN(path_mtu);
		return QHCA_CMD_BAD_PARAM;
	}
	return QHCA_CMD_OK;
}

/* ---- entering a state */

static void enter_rtr(struct hca_fn *fn, struct hca_qp *qp)
{
	struct hca_path path;

	if (!hca_type_is_framed(qp->type) &&
	    hca_path_of_av(fn, &qp->sw.av, qp->qpn, qp->dest_qpn, &path))
		hca_peer_connect(fn, &path);
	qp->r_psn = get_le32(&qp->sw.rq_psn);
	qp->r_flags &= ~HCA_RF_COMM_EST;
}

static void enter_rts(struct hca_fn *fn, struct hca_qp *qp, uint8_t from)
{
	if (from == QHCA_QPS_RTR) {
		qp->s_psn = qp->s_una = qp->s_max = qp->s_asked =
			qp->s_cur_psn = qp->s_ci_psn = get_le32(&qp->sw.sq_psn);
	}
	qp->s_retry = qp->sw.retry_cnt;
	qp->s_rnr = qp->sw.rnr_retry;
	qp->s_flags &= ~HCA_SF_DRAINING;
	hca_sched_work(fn, qp->qpn, HCA_WORK_SEND | HCA_WORK_REFETCH);
}

static void enter_sqd(struct hca_fn *fn, struct hca_qp *qp)
{
	/* Without a send queue, it is drained already. */
	if (!qp->sq_depth) {
		if (qp->flags & QHCA_QP_SQD_EVENT)
			hca_event(fn, QHCA_EVENT_QP_SQ_DRAINED, qp->qpn, 0);
		return;
	}
	/* Software rings for later posts, which the device does not serve in SQD. */
	hca_qp_set_active(fn, qp, false);
	qp->s_flags |= HCA_SF_DRAINING;
	/* The last packet sent may not have asked for an acknowledgement. */
	hca_sched_work(fn, qp->qpn, HCA_WORK_SEND);
}

static void enter(struct hca_fn *fn, struct hca_qp *qp, uint8_t to)
{
	uint8_t from = qp->state;

	switch (to) {
	case QHCA_QPS_RESET:
		hca_reply_leave(fn, qp);
		reset(fn, qp);
		return;
	case QHCA_QPS_ERR:
		hca_reply_leave(fn, qp);
		if (from == QHCA_QPS_ERR)
			hca_sched_work(fn, qp->qpn, HCA_WORK_FLUSH);
		hca_qp_error(fn, qp);
		return;
	case QHCA_QPS_RTR:
		enter_rtr(fn, qp);
		break;
	case QHCA_QPS_RTS:
		if (from != QHCA_QPS_RTS)
			enter_rts(fn, qp, from);
		break;
	case QHCA_QPS_SQD:
		if (from == QHCA_QPS_RTS)
			enter_sqd(fn, qp);
		break;
	default:
		break;
	}
	if (from != to)
		hca_qp_set_state(fn, qp, to);
}

static enum qhca_cmd_status check_transition(const struct hca_qp *qp,
					     const struct qhca_modify_qp *in,
					     uint8_t to, uint32_t *mask)
{
	const uint32_t from_states = 1u << S(RTR) | 1u << S(RTS) |
				     1u << S(SQD) | 1u << S(SQE);
	const struct transition *t;

	if (*mask & A(CUR_STATE)) {
		if (in->cur_state > S(ERR) ||
		    !(from_states >> in->cur_state & 1))
			return QHCA_CMD_BAD_PARAM;
		if (in->cur_state != qp->state)
			return QHCA_CMD_BAD_STATE;
		if (to != S(RTS))
			return QHCA_CMD_BAD_PARAM;
	}
	t = find_transition(qp->type, qp->state, to);
	if (!t)
		return QHCA_CMD_BAD_STATE;
	*mask &= ~(A(STATE) | A(CUR_STATE));
	if ((*mask & t->required) != t->required ||
	    *mask & ~(t->required | t->permitted))
		return QHCA_CMD_BAD_PARAM;
	if (to == S(SQD) && qp->state == S(SQD) &&
	    qp->s_flags & HCA_SF_DRAINING)
		return QHCA_CMD_BAD_STATE;
	return QHCA_CMD_OK;
}

enum qhca_cmd_status hca_cmd_modify_qp(struct hca_fn *fn,
				       struct hca_cmd_ctx *cmd)
{
	struct hca_qp *qp, *tmp = &fn->qps.scratch;
	struct qhca_modify_qp in;
	enum qhca_cmd_status status;
	uint32_t mask;
	uint8_t to;
	bool live;

	status = check_index(fn, cmd->index, &live);
	if (status != QHCA_CMD_OK)
		return status;
	if (!live)
		return QHCA_CMD_BAD_STATE;
	memcpy(&in, cmd->in, sizeof(in));
	mask = get_le32(&in.attr_mask);
	status = check_attrs(fn, &in.ctx, mask, &cmd->syndrome);
	if (status != QHCA_CMD_OK)
		return status;
	qp = hca_qp_get(fn, cmd->index);
	if (!qp)
		return QHCA_CMD_DMA_ERR;
	to = mask & A(STATE) ? in.ctx.state : qp->state;
	if (to > S(ERR))
		return QHCA_CMD_BAD_PARAM;
	status = check_transition(qp, &in, to, &mask);
	if (status != QHCA_CMD_OK)
		return status;

	/* Check the new software part on a copy. */
	tmp->sw = qp->sw;
	tmp->qpn = qp->qpn;
	merge_attrs(&tmp->sw, &in.ctx, mask);
	if (!hca_qp_load_sw(fn, tmp))
		return QHCA_CMD_BAD_PARAM;
	qp->sw = tmp->sw;
	hca_qp_load_sw(fn, qp);
	hca_qp_dirty(fn, qp);
	enter(fn, qp, to);
	return hca_ctx_flush(fn, &fn->hca->cache.qd, cmd->index, false) ?
	       QHCA_CMD_DMA_ERR : QHCA_CMD_OK;
}
