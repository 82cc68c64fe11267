// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Verbs as programs use them, through libibverbs and the provider. A thread takes
 * an object out of its slot for as long as it uses it, so that the provider's locks
 * and lists are not what is tested; the kernel's handles anyone may use (write.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/qhcadv.h>

#include "fuzz.h"
#include "lib/peer.h"

#define SLOTS	8

static void *_Atomic slots[KINDS][SLOTS];

static void *take(struct thread *t, enum kind kind)
{
	unsigned int i = below(&t->rng, SLOTS);

	for (unsigned int n = 0; n < SLOTS; n++) {
		void *object = atomic_exchange(&slots[kind][(i + n) % SLOTS], NULL);

		if (object)
			return object;
	}
	return NULL;
}

static int destroy(struct worker *w, enum kind kind, void *object)
{
	switch (kind) {
	case PD: return ibv_dealloc_pd(object);
	case CQ: return ibv_destroy_cq(object);
	case QP: return ibv_destroy_qp(object);
	case MR: return ibv_dereg_mr(object);
	case MW: return ibv_dealloc_mw(object);
	case AH: return ibv_destroy_ah(object);
	case SRQ: return ibv_destroy_srq(object);
	case XRCD: return ibv_close_xrcd(object);
	case DM: return ibv_free_dm(object);
	case CHANNEL: return ibv_destroy_comp_channel(object);
	case POOL: return qhcadv_free_pool(w->ctx, object);
	default: return 0;
	}
}

/*
 * Puts the object into a slot, or destroys it if no slot is free; an object that
 * cannot be destroyed stays until the end.
 */
static void put(struct thread *t, enum kind kind, void *object)
{
	if (!object)
		return;
	for (unsigned int i = 0; i < SLOTS; i++) {
		void *none = NULL;

		if (atomic_compare_exchange_strong(&slots[kind][i], &none, object))
			return;
	}
	note(t, "ibv destroy %u", kind);
	destroy(t->worker, kind, object);
}

/* -- creation ---------------------------------------------------------------- */

static void *create_cq(struct thread *t)
{
	struct ibv_comp_channel *channel = take(t, CHANNEL);
	struct ibv_cq *cq;

	note(t, "ibv_create_cq");
	cq = ibv_create_cq(t->worker->ctx, 1 + below(&t->rng, 200), NULL, channel, below(&t->rng, 3));
	put(t, CHANNEL, channel);
	return cq;
}

static void *create_qp(struct thread *t)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
	};
	struct rng *r = &t->rng;
	struct ibv_pd *pd = take(t, PD);
	struct ibv_cq *cq = take(t, CQ);
	struct ibv_srq *srq = chance(r, 30) ? take(t, SRQ) : NULL;
	struct ibv_xrcd *xrcd = take(t, XRCD);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = types[below(r, 6)], .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = pd,
		.send_cq = cq, .recv_cq = cq, .srq = srq, .sq_sig_all = below(r, 2),
		.cap = { below(r, 64), below(r, 64), below(r, 5), below(r, 5), below(r, 100) },
	};
	struct ibv_qp *qp;

	if (init.qp_type == IBV_QPT_XRC_RECV) {
		init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		init.xrcd = xrcd;
	} else if (chance(r, 50)) {
		init.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
		init.send_ops_flags = below(r, 1 << 10);
	}
	note(t, "ibv_create_qp_ex %u", init.qp_type);
	qp = ibv_create_qp_ex(t->worker->ctx, &init);
	put(t, PD, pd);
	put(t, CQ, cq);
	put(t, SRQ, srq);
	put(t, XRCD, xrcd);
	if (qp)
		keep_id(t, &t->worker->own, QP, qp->handle, qp->qp_num);
	return qp;
}

static void *create_srq(struct thread *t)
{
	struct ibv_pd *pd = take(t, PD);
	struct ibv_cq *cq = take(t, CQ);
	struct ibv_xrcd *xrcd = take(t, XRCD);
	struct ibv_srq_init_attr_ex init = {
		.attr = { 1 + below(&t->rng, 64), 1 + below(&t->rng, 4), below(&t->rng, 4) },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC, .pd = pd,
	};
	struct ibv_srq *srq;

	if (xrcd && cq && chance(&t->rng, 30)) {
		init.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		init.srq_type = IBV_SRQT_XRC;
		init.xrcd = xrcd;
		init.cq = cq;
	}
	note(t, "ibv_create_srq_ex %u", init.srq_type);
	srq = pd ? ibv_create_srq_ex(t->worker->ctx, &init) : NULL;
	put(t, PD, pd);
	put(t, CQ, cq);
	put(t, XRCD, xrcd);
	return srq;
}

/*
 * Registers memory of the arena, all of the process's memory, device memory or pool
 * memory.
 */
static void *create_mr(struct thread *t)
{
	struct rng *r = &t->rng;
	struct ibv_pd *pd = take(t, PD);
	struct ibv_dm *dm = take(t, DM);
	struct qhcadv_pool_mem *pool = take(t, POOL);
	int access = below(r, 32);
	size_t len = 1 << 20;
	uint8_t *at = any_memory(t, &len);
	struct ibv_mr *mr = NULL;

	note(t, "ibv_reg_mr %zx %zx %x", (size_t)(at - t->worker->arena), len, access);
	if (pd && dm && chance(r, 20))
		mr = ibv_reg_dm_mr(pd, dm, 0, 1 + below(r, 4096), access | IBV_ACCESS_ZERO_BASED);
	else if (pd && pool && chance(r, 30))
		mr = ibv_reg_mr(pd, pool->addr, 1 + below(r, pool->length), access);
	else if (pd && chance(r, 5))
		mr = ibv_reg_mr(pd, NULL, SIZE_MAX, access | IBV_ACCESS_ON_DEMAND);
	else if (pd)
		mr = ibv_reg_mr(pd, at, len, access | (chance(r, 30) ? IBV_ACCESS_ON_DEMAND : 0));
	put(t, PD, pd);
	put(t, DM, dm);
	put(t, POOL, pool);
	if (mr)
		keep_id(t, &t->worker->own, MR, mr->handle, mr->lkey);
	return mr;
}

static void *create_mw(struct thread *t)
{
	struct ibv_pd *pd = take(t, PD);
	struct ibv_mw *mw = NULL;

	note(t, "ibv_alloc_mw");
	if (pd)
		mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1 + below(&t->rng, 2));
	put(t, PD, pd);
	return mw;
}

static void *create_ah(struct thread *t)
{
	struct ibv_ah_attr path = path_to(&t->worker->gid, t->worker->gid_index);
	struct ibv_pd *pd = take(t, PD);
	struct ibv_ah *ah = NULL;

	note(t, "ibv_create_ah");
	if (pd)
		ah = ibv_create_ah(pd, &path);
	put(t, PD, pd);
	return ah;
}

static void *create_other(struct thread *t, enum kind kind)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_alloc_dm_attr dm = {
		.length = 1 + below(&t->rng, 16384), .log_align_req = below(&t->rng, 16),
	};

	note(t, "ibv create %u", kind);
	switch (kind) {
	case PD: return ibv_alloc_pd(t->worker->ctx);
	case XRCD: return ibv_open_xrcd(t->worker->ctx, &domain);
	case DM: return ibv_alloc_dm(t->worker->ctx, &dm);
	case CHANNEL: return ibv_create_comp_channel(t->worker->ctx);
	case POOL: return qhcadv_alloc_pool(t->worker->ctx, 1 + below(&t->rng, 1 << 18));
	default: return NULL;
	}
}

static void step_create(struct thread *t)
{
	static const enum kind kinds[] = {
		PD, CQ, CQ, QP, QP, QP, QP, MR, MR, MR, MW, AH, SRQ, XRCD, DM, CHANNEL, POOL,
	};
	enum kind kind = kinds[below(&t->rng, sizeof(kinds) / sizeof(kinds[0]))];
	void *object;

	switch (kind) {
	case CQ: object = create_cq(t); break;
	case QP: object = create_qp(t); break;
	case SRQ: object = create_srq(t); break;
	case MR: object = create_mr(t); break;
	case MW: object = create_mw(t); break;
	case AH: object = create_ah(t); break;
	default: object = create_other(t, kind);
	}
	put(t, kind, object);
}

static void step_destroy(struct thread *t)
{
	enum kind kind = 1 + below(&t->rng, KINDS - 1);
	void *object = take(t, kind);

	if (!object)
		return;
	note(t, "ibv destroy %u", kind);
	if (destroy(t->worker, kind, object))
		put(t, kind, object);
}

/* -- use ----------------------------------------------------------------------- */

static void fill_send(struct thread *t, struct ibv_send_wr *wr, struct ibv_sge *sge,
		      struct ibv_mr *mr, struct ibv_ah *ah)
{
	struct rng *r = &t->rng;
	size_t len = 1 << 14;

	*sge = (struct ibv_sge) { (uintptr_t)any_memory(t, &len), 0, any_number(t, &t->worker->own, MR) };
	sge->length = len;
	if (mr && mr->length && mr->addr && chance(r, 90))
		*sge = (struct ibv_sge) { (uintptr_t)mr->addr, 1 + below(r, mr->length), mr->lkey };
	*wr = (struct ibv_send_wr) {
		.wr_id = rnd(r), .opcode = below(r, IBV_WR_BIND_MW), .sg_list = sge, .num_sge = below(r, 2),
		.send_flags = below(r, 16), .imm_data = rnd(r),
	};
	if (sge->length > 64)
		wr->send_flags &= ~IBV_SEND_INLINE;
	if (wr->opcode >= IBV_WR_ATOMIC_CMP_AND_SWP) {
		sge->addr &= ~7ull;
		sge->length = 8;
	}
	wr->wr.rdma.remote_addr = sge->addr;
	wr->wr.rdma.rkey = mr ? mr->rkey : 0;
	if (ah && chance(r, 50)) {
		wr->wr.ud.ah = ah;
		wr->wr.ud.remote_qpn = any_number(t, &t->worker->own, QP);
		wr->wr.ud.remote_qkey = TEST_QKEY;
	}
}

static void step_send(struct thread *t)
{
	struct ibv_qp *qp = take(t, QP);
	struct ibv_mr *mr = take(t, MR);
	struct ibv_ah *ah = qp && qp->qp_type == IBV_QPT_UD ? take(t, AH) : NULL;
	struct ibv_send_wr wr[4], *bad;
	struct ibv_sge sge[4];
	unsigned int n = 1 + below(&t->rng, 4);

	for (unsigned int i = 0; i < n; i++) {
		fill_send(t, &wr[i], &sge[i], mr, ah);
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	note(t, "ibv_post_send %u", n);
	if (qp && qp->qp_type != IBV_QPT_XRC_RECV && (qp->qp_type != IBV_QPT_UD || wr[0].wr.ud.ah == ah))
		ibv_post_send(qp, wr, &bad);
	put(t, AH, ah);
	put(t, MR, mr);
	put(t, QP, qp);
}

static void step_receive(struct thread *t)
{
	struct ibv_qp *qp = take(t, QP);
	struct ibv_srq *srq = take(t, SRQ);
	struct ibv_mr *mr = take(t, MR);
	struct ibv_recv_wr wr = { .wr_id = rnd(&t->rng), .num_sge = mr ? below(&t->rng, 2) : 0 }, *bad;
	struct ibv_sge sge = { };

	if (mr)
		sge = (struct ibv_sge) { (uintptr_t)mr->addr, below(&t->rng, mr->length), mr->lkey };
	wr.sg_list = &sge;
	note(t, "ibv_post_recv");
	for (unsigned int n = 1 + below(&t->rng, 8); n; n--) {
		if (qp && !qp->srq && qp->qp_type <= IBV_QPT_UD)
			ibv_post_recv(qp, &wr, &bad);
		if (srq)
			ibv_post_srq_recv(srq, &wr, &bad);
	}
	put(t, MR, mr);
	put(t, SRQ, srq);
	put(t, QP, qp);
}

static void step_connect(struct thread *t)
{
	struct ibv_qp *qp[2] = { take(t, QP), take(t, QP) };
	struct connection c = {
		.mtu = 1 + below(&t->rng, 5), .timeout = 8 + below(&t->rng, 8),
		.retry_cnt = below(&t->rng, 8), .rnr_retry = below(&t->rng, 8),
		.min_rnr_timer = 1 + below(&t->rng, 31), .rd_atomic = below(&t->rng, 5),
		.dest_rd_atomic = below(&t->rng, 5), .access = below(&t->rng, 16),
	};

	note(t, "connect");
	if (qp[0])
		c.type = qp[0]->qp_type;
	if (qp[0] && qp[1])
		qp_connect_pair(qp, &c, t->worker->gid_index);
	else if (qp[0])
		qp_init(qp[0], &c);
	put(t, QP, qp[0]);
	put(t, QP, qp[1]);
}

static void step_state(struct thread *t)
{
	struct ibv_qp_attr attr = { .qp_state = below(&t->rng, 7) };
	struct ibv_qp_init_attr init;
	struct ibv_qp *qp = take(t, QP);
	union ibv_gid group = { .raw = { 0xff, 0x0e, [15] = 1 + below(&t->rng, 2) } };
	uint16_t lid = chance(&t->rng, 50) ? 0xc000 + below(&t->rng, 2) : below(&t->rng, 2);

	if (!qp)
		return;
	switch (below(&t->rng, 5)) {
	case 0:
		note(t, "ibv_modify_qp %u to %u", qp->qp_num, attr.qp_state);
		ibv_modify_qp(qp, &attr, IBV_QP_STATE);
		break;
	case 1:
		note(t, "ibv_query_qp %u", qp->qp_num);
		ibv_query_qp(qp, &attr, below(&t->rng, 1 << 20), &init);
		break;
	case 2:
		note(t, "ibv_detach_mcast %u %x %x", qp->qp_num, group.raw[15], lid);
		ibv_detach_mcast(qp, &group, lid);
		break;
	default:
		note(t, "ibv_attach_mcast %u %x %x", qp->qp_num, group.raw[15], lid);
		ibv_attach_mcast(qp, &group, lid);
	}
	put(t, QP, qp);
}

static void step_cq(struct thread *t)
{
	struct ibv_cq *cq = take(t, CQ);
	struct ibv_wc wc[8];

	if (!cq)
		return;
	switch (below(&t->rng, 8)) {
	case 0:
		note(t, "ibv_resize_cq");
		ibv_resize_cq(cq, 1 + below(&t->rng, 300));
		break;
	case 1:
		note(t, "ibv_req_notify_cq");
		ibv_req_notify_cq(cq, below(&t->rng, 2));
		break;
	case 2: {
		struct ibv_modify_cq_attr attr = {
			.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { below(&t->rng, 9), below(&t->rng, 99) },
		};

		note(t, "ibv_modify_cq");
		ibv_modify_cq(cq, &attr);
		break;
	}
	default:
		note(t, "ibv_poll_cq");
		ibv_poll_cq(cq, 8, wc);
	}
	put(t, CQ, cq);
}

static void step_srq(struct thread *t)
{
	struct ibv_srq *srq = take(t, SRQ);
	struct ibv_srq_attr attr = { .max_wr = below(&t->rng, 200), .srq_limit = below(&t->rng, 9) };

	if (!srq)
		return;
	note(t, "ibv_modify_srq");
	ibv_modify_srq(srq, &attr, 1 + below(&t->rng, 3));
	ibv_query_srq(srq, &attr);
	put(t, SRQ, srq);
}

static void step_window(struct thread *t)
{
	struct ibv_qp *qp = take(t, QP);
	struct ibv_mw *mw = take(t, MW);
	struct ibv_mr *mr = take(t, MR);
	struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };

	note(t, "ibv_bind_mw");
	if (mr)
		bind.bind_info = (struct ibv_mw_bind_info) {
			mr, (uintptr_t)mr->addr, below(&t->rng, mr->length), below(&t->rng, 16),
		};
	if (qp && mw && qp->qp_type == IBV_QPT_RC)
		ibv_bind_mw(qp, mw, &bind);
	put(t, MR, mr);
	put(t, MW, mw);
	put(t, QP, qp);
}

static void step_mr(struct thread *t)
{
	struct ibv_mr *mr = take(t, MR);
	struct ibv_pd *pd = take(t, PD);
	size_t len = 1 << 18;
	uint8_t *at = any_memory(t, &len);

	if (mr && chance(&t->rng, 50)) {
		note(t, "ibv_rereg_mr");
		ibv_rereg_mr(mr, below(&t->rng, 8), pd, at, len, below(&t->rng, 32));
	} else if (mr) {
		struct ibv_sge sge = { (uintptr_t)mr->addr, mr->length, mr->lkey };

		note(t, "ibv_advise_mr");
		ibv_advise_mr(mr->pd, below(&t->rng, 3), below(&t->rng, 2), &sge, 1);
	}
	put(t, PD, pd);
	put(t, MR, mr);
}

static void step_events(struct thread *t)
{
	struct ibv_comp_channel *channel = take(t, CHANNEL);
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	note(t, "events");
	if (channel) {
		fcntl(channel->fd, F_SETFL, O_NONBLOCK);
		if (!ibv_get_cq_event(channel, &cq, &context))
			ibv_ack_cq_events(cq, 1);
	}
	if (!ibv_get_async_event(t->worker->ctx, &event))
		ibv_ack_async_event(&event);
	put(t, CHANNEL, channel);
}

void verbs_start(struct worker *w)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (int i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), opt.device))
			w->ctx = ibv_open_device(list[i]);
	if (!w->ctx)
		return;
	fcntl(w->ctx->async_fd, F_SETFL, O_NONBLOCK);
	w->own.fd = w->ctx->cmd_fd;
	for (unsigned int i = 0; i < IDS; i++) {
		w->own.id[ASYNC][i] = w->ctx->async_fd;
		for (enum kind kind = PD; kind < KINDS; kind++)
			if (kind != ASYNC)
				w->own.id[kind][i] = i;
	}
}

void verbs_step(struct thread *t)
{
	static void (*const steps[])(struct thread *t) = {
		step_create, step_create, step_create, step_create, step_create, step_create,
		step_destroy, step_destroy, step_send, step_send, step_send, step_receive, step_receive,
		step_connect, step_connect, step_state, step_state, step_cq, step_cq, step_cq,
		step_srq, step_window, step_mr, step_events,
	};

	if (t->worker->ctx)
		steps[below(&t->rng, sizeof(steps) / sizeof(steps[0]))](t);
}

void verbs_end(struct thread *t)
{
	for (unsigned int n = 0; n < 200; n++)
		step_destroy(t);
	note(t, "ibv_close_device");
	ibv_close_device(t->worker->ctx);
}
