// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "extended.h"
#include "verify.h"

#define INLINE_SIZE 256

static enum ibv_mtu mtu_code(uint32_t bytes)
{
	enum ibv_mtu code = IBV_MTU_256;

	while (code < IBV_MTU_4096 && 128u << code < bytes)
		code++;
	if (128u << code != bytes)
		die("an MTU of %u", bytes);
	return code;
}

static void register_region(struct job *job, struct region *region, size_t size, int access)
{
	region_new(region, size);
	region->mr = ibv_reg_mr(job->pd, region->mem, size, access);
	if (!region->mr)
		die("ibv_reg_mr of %zu bytes: %s", size, strerror(errno));
}

static struct ibv_qp *create_qp(struct job *job)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = job->set.type,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = job->pd,
		.send_cq = job->send_cq,
		.recv_cq = is_xrc(job) ? NULL : job->recv_cq,
		.srq = is_xrc(job) ? NULL : job->srq,
		.cap = {
			.max_send_wr = SQ_DEPTH,
			.max_recv_wr = job->srq ? 0 : 2 * ROUND_OPS,
			.max_send_sge = job->max_sge,
			.max_recv_sge = is_xrc(job) ? 0 : job->max_sge,
			.max_inline_data = INLINE_SIZE,
		},
	};
	struct ibv_qp *qp;

	if (job->set.flags & (EXTENDED | USE_PLACE))
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (job->set.flags & EXTENDED)
		init.send_ops_flags |= extended_ops(job->set.type);
	if (job->set.flags & USE_PLACE)
		init.send_ops_flags |= IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH;
	qp = ibv_create_qp_ex(job->peer.ctx, &init);
	if (!qp)
		die("ibv_create_qp_ex: %s", strerror(errno));
	if (init.cap.max_inline_data < INLINE_SIZE)
		die("the QP takes %u bytes inline, not %d", init.cap.max_inline_data, INLINE_SIZE);
	job->max_inline = init.cap.max_inline_data;
	return qp;
}

static struct ibv_qp *create_target(struct job *job)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = job->xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(job->peer.ctx, &init);

	if (!qp)
		die("ibv_create_qp_ex of an XRC target: %s", strerror(errno));
	return qp;
}

static void create_lane(struct job *job, unsigned int index)
{
	struct lane *lane = &job->lane[index];
	size_t window = round_bytes(&job->set);

	lane->index = index;
	lane->qp = create_qp(job);
	if (is_xrc(job))
		lane->target = create_target(job);
	register_region(job, &lane->arena, window + ROUND_OPS * (LAYOUT_SLACK + 8) + 64,
			IBV_ACCESS_LOCAL_WRITE);
	register_region(job, &lane->window, window, job->connection.access);
	lane->far_window = malloc(window);
	if (!lane->far_window)
		die("no memory");
	fill(job->set.seed + 2 * index + mine(job), lane->window.mem, window);
	memcpy(lane->window.model, lane->window.mem, window);
	fill(job->set.seed + 2 * index + !mine(job), lane->far_window, window);
}

static struct ibv_cq *create_cq(struct job *job, int cqe)
{
	if (job->set.flags & EXTENDED)
		return extended_create_cq(job->peer.ctx, cqe, job->channel);
	return ibv_create_cq(job->peer.ctx, cqe, NULL, job->channel, 0);
}

static void create_srq(struct job *job, unsigned int slots)
{
	struct ibv_srq_init_attr_ex init = {
		.attr = { .max_wr = job->grows ? 3 : slots, .max_sge = job->max_sge },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = job->pd,
	};
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	if (is_xrc(job)) {
		job->xrcd = ibv_open_xrcd(job->peer.ctx, &domain);
		if (!job->xrcd)
			die("ibv_open_xrcd: %s", strerror(errno));
		init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		init.srq_type = IBV_SRQT_XRC;
		init.xrcd = job->xrcd;
		init.cq = job->recv_cq;
	}
	job->srq = ibv_create_srq_ex(job->peer.ctx, &init);
	if (!job->srq)
		die("ibv_create_srq_ex: %s", strerror(errno));
	job->srq_size = init.attr.max_wr;
}

void create_all(struct job *job)
{
	const struct settings *s = &job->set;
	unsigned int cqes = s->lanes * SQ_DEPTH, slots = 2 * s->lanes * ROUND_OPS;
	size_t inbox = s->lanes * round_bytes(s) + slots * (LAYOUT_SLACK + GRH_LEN + PIECE_GAP) + 64;

	job->connection = (struct connection) {
		.type = s->type, .mtu = mtu_code(s->mtu), .timeout = s->timeout, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 4, .dest_rd_atomic = 4,
		.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	if (s->flags & USE_PLACE)
		job->connection.access |= IBV_ACCESS_FLUSH_GLOBAL;
	if (s->type == IBV_QPT_UC || s->type == IBV_QPT_UD)
		job->connection.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
	job->max_sge = s->flags & NO_SPLIT ? 1 : MAX_PIECES;
	if ((int)job->max_sge > job->peer.attr.max_sge)
		die("the device takes %d SGEs", job->peer.attr.max_sge);
	if (s->flags & (USE_SRQ | LOSSY))
		inbox = slots * ((size_t)largest_message(s) + LAYOUT_SLACK + GRH_LEN);

	job->pd = ibv_alloc_pd(job->peer.ctx);
	job->channel = s->flags & USE_EVENTS ? ibv_create_comp_channel(job->peer.ctx) : NULL;
	job->send_cq = create_cq(job, cqes);
	job->recv_cq = create_cq(job, slots);
	if (!job->pd || !job->send_cq || !job->recv_cq || (s->flags & USE_EVENTS && !job->channel))
		die("cannot create PD, CQs and channel: %s", strerror(errno));
	if (s->flags & USE_SRQ)
		create_srq(job, slots);
	register_region(job, &job->inbox, inbox, IBV_ACCESS_LOCAL_WRITE);
	job->slot = calloc(slots, sizeof(*job->slot));
	job->slot_lane = calloc(slots, sizeof(*job->slot_lane));
	job->scratch = malloc(s->max_size + GRH_LEN);
	if (!job->slot || !job->slot_lane || !job->scratch)
		die("no memory");
	for (unsigned int i = 0; i < s->lanes; i++)
		create_lane(job, i);
}

static void connect_qp(struct job *job, struct ibv_qp *qp, enum ibv_qp_type type, uint32_t psn,
		       const struct qp_address *remote)
{
	struct connection c = job->connection;
	int rc;

	c.type = type;
	rc = qp_connect(qp, &c, job->peer.gid_index, remote, psn);
	if (rc)
		die("cannot connect QP %u: %s", qp->qp_num, strerror(rc));
}

void connect_lane(struct job *job, struct lane *lane)
{
	struct rng rng = rng_for(job->set.seed, 3, (uint64_t)mine(job) << 32 | lane->index, job->round);
	struct {
		struct qp_address qp, target;
		uint64_t addr;
		uint32_t rkey, srqn;
	} here = {
		.qp = { lane->qp->qp_num, rng_below(&rng, 1 << 24), job->peer.gid },
		.addr = (uintptr_t)lane->window.mem,
		.rkey = ((struct ibv_mr *)lane->window.mr)->rkey,
	}, there;

	if (is_xrc(job)) {
		here.target = (struct qp_address) {
			lane->target->qp_num, rng_below(&rng, 1 << 24), job->peer.gid,
		};
		if (ibv_get_srq_num(job->srq, &here.srqn))
			die("ibv_get_srq_num: %s", strerror(errno));
	}

	peer_exchange(&job->peer, &here, &there, sizeof(here));
	lane->remote = there.qp;
	lane->far_addr = there.addr;
	lane->far_rkey = there.rkey;
	lane->far_srqn = there.srqn;
	if (is_xrc(job)) {
		/* Who asks here is answered by the other side's target, and vice versa. */
		connect_qp(job, lane->qp, IBV_QPT_XRC_SEND, here.qp.psn, &there.target);
		connect_qp(job, lane->target, IBV_QPT_XRC_RECV, here.target.psn, &there.qp);
	} else {
		connect_qp(job, lane->qp, job->set.type, here.qp.psn, &there.qp);
	}
	if (job->set.type == IBV_QPT_UD && !lane->ah) {
		struct ibv_ah_attr path = path_to(&there.qp.gid, job->peer.gid_index);

		lane->ah = ibv_create_ah(job->pd, &path);
		if (!lane->ah)
			die("ibv_create_ah: %s", strerror(errno));
	}
}

void destroy_all(struct job *job)
{
	int rc = 0;

	for (unsigned int i = 0; i < job->set.lanes; i++) {
		struct lane *lane = &job->lane[i];

		if (lane->ah)
			rc |= ibv_destroy_ah(lane->ah);
		rc |= ibv_destroy_qp(lane->qp);
		if (lane->target)
			rc |= ibv_destroy_qp(lane->target);
		rc |= ibv_dereg_mr(lane->arena.mr);
		rc |= ibv_dereg_mr(lane->window.mr);
	}
	if (job->srq)
		rc |= ibv_destroy_srq(job->srq);
	if (job->xrcd)
		rc |= ibv_close_xrcd(job->xrcd);
	rc |= ibv_destroy_cq(job->send_cq);
	rc |= ibv_destroy_cq(job->recv_cq);
	if (job->channel)
		rc |= ibv_destroy_comp_channel(job->channel);
	rc |= ibv_dereg_mr(job->inbox.mr);
	rc |= ibv_dealloc_pd(job->pd);
	if (rc)
		die("destroying: %s", strerror(rc));
}
