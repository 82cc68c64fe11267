// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Commands of uverbs, by write() and by the ioctl that carries them: most of them
 * as they ought to be, some with a wrong length, field, handle or pointer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <uapi/rdma/qhca-abi.h>

#include "fuzz.h"
#include "lib/peer.h"

#define QP_TYPES	6

/* What a field of a command is filled with; fields that are not named are zero. */
enum what { END, RESPONSE, HANDLE, SMALL, ADDRESS, LENGTH, ACCESS, GROUP, LID, ROUTE, TYPE, FD, ANY };

struct field {
	uint8_t offset, size, what, arg;
};

#define F(type, member, what, arg) \
	{ offsetof(struct ib_uverbs_##type, member), sizeof(((struct ib_uverbs_##type *)0)->member), \
	  what, arg }

struct command {
	const char *name;
	uint8_t number;
	bool extended;
	uint16_t in, out;	/* bytes of the core's request and answer */
	uint8_t driver_out;
	uint8_t udata;		/* enum udata */
	uint8_t makes;		/* a handle, first in the answer ... */
	uint8_t number_at;	/* ... and a number, here */
	struct field field[14];
};

#define COMMAND(NAME, type) \
	.name = #type, .number = IB_USER_VERBS_CMD_##NAME, .in = sizeof(struct ib_uverbs_##type)
#define ANSWER(name) .out = sizeof(struct ib_uverbs_##name##_resp)
#define QP_FIELDS(s) \
	F(s, pd_handle, HANDLE, PD), F(s, send_cq_handle, HANDLE, CQ), F(s, recv_cq_handle, HANDLE, CQ), \
	F(s, srq_handle, HANDLE, SRQ), F(s, max_send_wr, SMALL, 17), F(s, max_recv_wr, SMALL, 17), \
	F(s, max_send_sge, SMALL, 4), F(s, max_recv_sge, SMALL, 3), F(s, max_inline_data, SMALL, 33), \
	F(s, qp_type, TYPE, 0), F(s, is_srq, SMALL, 2), F(s, sq_sig_all, SMALL, 2)

static const struct command commands[] = {
	{ COMMAND(QUERY_DEVICE, query_device), ANSWER(query_device),
	  .field = { F(query_device, response, RESPONSE, 0) } },
	{ COMMAND(QUERY_PORT, query_port), ANSWER(query_port),
	  .field = { F(query_port, response, RESPONSE, 0), F(query_port, port_num, SMALL, 3) } },
	{ COMMAND(GET_CONTEXT, get_context), ANSWER(get_context), .udata = U_CONTEXT,
	  .driver_out = sizeof(struct qhca_alloc_ucontext_resp),
	  .field = { F(get_context, response, RESPONSE, 0) } },
	{ COMMAND(ALLOC_PD, alloc_pd), ANSWER(alloc_pd), .makes = PD,
	  .driver_out = sizeof(struct qhca_alloc_pd_resp),
	  .field = { F(alloc_pd, response, RESPONSE, 0) } },
	{ COMMAND(DEALLOC_PD, dealloc_pd), .field = { F(dealloc_pd, pd_handle, HANDLE, PD) } },
	{ COMMAND(CREATE_AH, create_ah), ANSWER(create_ah), .makes = AH,
	  .driver_out = sizeof(struct qhca_create_ah_resp),
	  .field = { F(create_ah, response, RESPONSE, 0), F(create_ah, pd_handle, HANDLE, PD),
		     F(create_ah, attr.grh.dgid, ROUTE, 0), F(create_ah, attr.is_global, SMALL, 2),
		     F(create_ah, attr.port_num, SMALL, 2), F(create_ah, attr.grh.sgid_index, ROUTE, 1) } },
	{ COMMAND(DESTROY_AH, destroy_ah), .field = { F(destroy_ah, ah_handle, HANDLE, AH) } },
	{ COMMAND(REG_MR, reg_mr), .out = 12, .makes = MR, .number_at = 4,
	  .field = { F(reg_mr, response, RESPONSE, 0), F(reg_mr, start, ADDRESS, 0),
		     F(reg_mr, length, LENGTH, 0), F(reg_mr, hca_va, ADDRESS, 1),
		     F(reg_mr, pd_handle, HANDLE, PD), F(reg_mr, access_flags, ACCESS, 0) } },
	{ COMMAND(REREG_MR, rereg_mr), ANSWER(rereg_mr),
	  .field = { F(rereg_mr, response, RESPONSE, 0), F(rereg_mr, mr_handle, HANDLE, MR),
		     F(rereg_mr, flags, SMALL, 8), F(rereg_mr, start, ADDRESS, 0),
		     F(rereg_mr, length, LENGTH, 0), F(rereg_mr, hca_va, ADDRESS, 1),
		     F(rereg_mr, pd_handle, HANDLE, PD), F(rereg_mr, access_flags, ACCESS, 0) } },
	{ COMMAND(DEREG_MR, dereg_mr), .field = { F(dereg_mr, mr_handle, HANDLE, MR) } },
	{ COMMAND(ALLOC_MW, alloc_mw), ANSWER(alloc_mw), .makes = MW, .number_at = 4,
	  .field = { F(alloc_mw, response, RESPONSE, 0), F(alloc_mw, pd_handle, HANDLE, PD),
		     F(alloc_mw, mw_type, SMALL, 4) } },
	{ COMMAND(DEALLOC_MW, dealloc_mw), .field = { F(dealloc_mw, mw_handle, HANDLE, MW) } },
	{ COMMAND(CREATE_COMP_CHANNEL, create_comp_channel), ANSWER(create_comp_channel),
	  .makes = CHANNEL, .field = { F(create_comp_channel, response, RESPONSE, 0) } },
	{ COMMAND(CREATE_CQ, create_cq), ANSWER(create_cq), .makes = CQ, .number_at = 8, .udata = U_CQ,
	  .driver_out = sizeof(struct qhca_create_cq_resp),
	  .field = { F(create_cq, response, RESPONSE, 0), F(create_cq, cqe, SMALL, 17),
		     F(create_cq, comp_vector, SMALL, 3), F(create_cq, comp_channel, FD, CHANNEL) } },
	{ COMMAND(CREATE_CQ, ex_create_cq), ANSWER(ex_create_cq), .extended = true, .makes = CQ,
	  .number_at = 24, .udata = U_CQ, .driver_out = sizeof(struct qhca_create_cq_resp),
	  .field = { F(ex_create_cq, cqe, SMALL, 17), F(ex_create_cq, comp_vector, SMALL, 3),
		     F(ex_create_cq, comp_channel, FD, CHANNEL), F(ex_create_cq, flags, SMALL, 4) } },
	{ COMMAND(RESIZE_CQ, resize_cq), ANSWER(resize_cq), .udata = U_RESIZE,
	  .field = { F(resize_cq, response, RESPONSE, 0), F(resize_cq, cq_handle, HANDLE, CQ),
		     F(resize_cq, cqe, SMALL, 17) } },
	{ COMMAND(DESTROY_CQ, destroy_cq), ANSWER(destroy_cq),
	  .field = { F(destroy_cq, response, RESPONSE, 0), F(destroy_cq, cq_handle, HANDLE, CQ) } },
	{ COMMAND(POLL_CQ, poll_cq), .out = 8 + 4 * sizeof(struct ib_uverbs_wc),
	  .field = { F(poll_cq, response, RESPONSE, 0), F(poll_cq, cq_handle, HANDLE, CQ),
		     F(poll_cq, ne, SMALL, 5) } },
	{ COMMAND(REQ_NOTIFY_CQ, req_notify_cq),
	  .field = { F(req_notify_cq, cq_handle, HANDLE, CQ), F(req_notify_cq, solicited_only, SMALL, 2) } },
	{ COMMAND(CREATE_QP, create_qp), ANSWER(create_qp), .makes = QP, .number_at = 4, .udata = U_QP,
	  .driver_out = sizeof(struct qhca_create_qp_resp),
	  .field = { F(create_qp, response, RESPONSE, 0), QP_FIELDS(create_qp) } },
	{ COMMAND(CREATE_QP, ex_create_qp), ANSWER(ex_create_qp), .extended = true, .makes = QP,
	  .number_at = 4, .udata = U_QP, .driver_out = sizeof(struct qhca_create_qp_resp),
	  .field = { QP_FIELDS(ex_create_qp), F(ex_create_qp, create_flags, SMALL, 4) } },
	{ COMMAND(QUERY_QP, query_qp), .out = sizeof(struct ib_uverbs_query_qp_resp),
	  .field = { F(query_qp, response, RESPONSE, 0), F(query_qp, qp_handle, HANDLE, QP),
		     F(query_qp, attr_mask, ANY, 0) } },
	{ COMMAND(MODIFY_QP, modify_qp), .field = { F(modify_qp, qp_handle, HANDLE, QP) } },
	{ COMMAND(MODIFY_QP, ex_modify_qp), ANSWER(ex_modify_qp), .extended = true,
	  .field = { F(ex_modify_qp, base.qp_handle, HANDLE, QP) } },
	{ COMMAND(DESTROY_QP, destroy_qp), ANSWER(destroy_qp),
	  .field = { F(destroy_qp, response, RESPONSE, 0), F(destroy_qp, qp_handle, HANDLE, QP) } },
	{ COMMAND(POST_SEND, post_send), ANSWER(post_send),
	  .field = { F(post_send, response, RESPONSE, 0), F(post_send, qp_handle, HANDLE, QP),
		     F(post_send, wr_count, SMALL, 3), F(post_send, sge_count, SMALL, 3),
		     F(post_send, wqe_size, ANY, 0) } },
	{ COMMAND(POST_RECV, post_recv), ANSWER(post_recv),
	  .field = { F(post_recv, response, RESPONSE, 0), F(post_recv, qp_handle, HANDLE, QP),
		     F(post_recv, wr_count, SMALL, 3), F(post_recv, wqe_size, ANY, 0) } },
	{ COMMAND(ATTACH_MCAST, attach_mcast),
	  .field = { F(attach_mcast, gid, GROUP, 0), F(attach_mcast, qp_handle, HANDLE, QP),
		     F(attach_mcast, mlid, LID, 0) } },
	{ COMMAND(DETACH_MCAST, detach_mcast),
	  .field = { F(detach_mcast, gid, GROUP, 0), F(detach_mcast, qp_handle, HANDLE, QP),
		     F(detach_mcast, mlid, LID, 0) } },
	{ COMMAND(CREATE_SRQ, create_srq), ANSWER(create_srq), .makes = SRQ, .udata = U_SRQ,
	  .number_at = 16, .driver_out = sizeof(struct qhca_create_srq_resp),
	  .field = { F(create_srq, response, RESPONSE, 0), F(create_srq, pd_handle, HANDLE, PD),
		     F(create_srq, max_wr, SMALL, 17), F(create_srq, max_sge, SMALL, 3),
		     F(create_srq, srq_limit, SMALL, 3) } },
	{ COMMAND(CREATE_XSRQ, create_xsrq), ANSWER(create_srq), .makes = SRQ, .udata = U_SRQ,
	  .number_at = 12, .driver_out = sizeof(struct qhca_create_srq_resp),
	  .field = { F(create_xsrq, response, RESPONSE, 0), F(create_xsrq, srq_type, SMALL, 3),
		     F(create_xsrq, pd_handle, HANDLE, PD), F(create_xsrq, max_wr, SMALL, 17),
		     F(create_xsrq, max_sge, SMALL, 3), F(create_xsrq, xrcd_handle, HANDLE, XRCD),
		     F(create_xsrq, cq_handle, HANDLE, CQ) } },
	{ COMMAND(MODIFY_SRQ, modify_srq), .udata = U_RESIZE_SRQ,
	  .field = { F(modify_srq, srq_handle, HANDLE, SRQ), F(modify_srq, attr_mask, SMALL, 4),
		     F(modify_srq, max_wr, SMALL, 64), F(modify_srq, srq_limit, SMALL, 8) } },
	{ COMMAND(QUERY_SRQ, query_srq), ANSWER(query_srq),
	  .field = { F(query_srq, response, RESPONSE, 0), F(query_srq, srq_handle, HANDLE, SRQ) } },
	{ COMMAND(DESTROY_SRQ, destroy_srq), ANSWER(destroy_srq),
	  .field = { F(destroy_srq, response, RESPONSE, 0), F(destroy_srq, srq_handle, HANDLE, SRQ) } },
	{ COMMAND(POST_SRQ_RECV, post_srq_recv), ANSWER(post_srq_recv),
	  .field = { F(post_srq_recv, response, RESPONSE, 0), F(post_srq_recv, srq_handle, HANDLE, SRQ),
		     F(post_srq_recv, wr_count, SMALL, 3) } },
	{ COMMAND(OPEN_XRCD, open_xrcd), ANSWER(open_xrcd), .makes = XRCD,
	  .field = { F(open_xrcd, response, RESPONSE, 0), F(open_xrcd, fd, FD, NO_KIND),
		     F(open_xrcd, oflags, SMALL, 2) } },
	{ COMMAND(CLOSE_XRCD, close_xrcd), .field = { F(close_xrcd, xrcd_handle, HANDLE, XRCD) } },
	{ COMMAND(OPEN_QP, open_qp), ANSWER(create_qp), .makes = QP, .number_at = 4,
	  .field = { F(open_qp, response, RESPONSE, 0), F(open_qp, pd_handle, HANDLE, XRCD),
		     F(open_qp, qpn, ANY, 0), F(open_qp, qp_type, TYPE, 0) } },
	{ COMMAND(QUERY_DEVICE, ex_query_device), ANSWER(ex_query_device), .extended = true },
};

/* -- fields ----------------------------------------------------------------- */

static uint64_t any_access(struct rng *r)
{
	uint64_t access = below(r, 64);

	if (chance(r, 30))
		access |= IBV_ACCESS_ON_DEMAND;
	return chance(r, 5) ? odd_number(r) : access;
}

static uint64_t number_for(struct thread *t, struct file *f, const struct field *field)
{
	static const uint8_t types[QP_TYPES] = {
		IBV_QPT_RC, IBV_QPT_RC, IBV_QPT_UD, IBV_QPT_UC, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
	};
	struct rng *r = &t->rng;
	size_t len = 1 << 20;

	if (chance(r, 2))
		return odd_number(r);
	switch (field->what) {
	case HANDLE:
		return any_id(t, f, field->arg);
	case SMALL:
		return below(r, field->arg);
	case ADDRESS:
		return field->arg && chance(r, 50) ? 0 : (uintptr_t)any_memory(t, &len);
	case LENGTH:
		return 1 + below(r, 1 << below(r, 21));
	case ACCESS:
		return any_access(r);
	case LID:
		return chance(r, 50) ? 0xc000 + below(r, 3) : below(r, 3);
	case TYPE:
		return types[below(r, QP_TYPES)];
	case FD:
		return field->arg && chance(r, 50) ? f->id[field->arg][below(r, IDS)] : ~0u;
	default:
		return chance(r, 50) ? any_number(t, f, QP) : odd_number(r);
	}
}

static void fill_field(struct thread *t, struct file *f, const struct field *field, uint8_t *to)
{
	uint64_t number;

	switch (field->what) {
	case RESPONSE:
		break;
	case GROUP:
		memset(to, 0, 16);
		to[0] = 0xff;
		to[1] = 0x0e;
		to[15] = 1 + below(&t->rng, 2);
		break;
	case ROUTE:
		if (field->arg)
			*to = t->worker->gid_index;
		else
			memcpy(to, &t->worker->gid, 16);
		break;
	default:
		number = number_for(t, f, field);
		memcpy(to, &number, field->size);
	}
}

/* A change to one of the states; the peer is a QP of the same file. */
static void fill_modify(struct thread *t, struct file *f, struct ib_uverbs_modify_qp *m)
{
	static const uint32_t masks[] = {
		[IBV_QPS_RESET] = 0,
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT,
		[IBV_QPS_RTR] = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
		[IBV_QPS_RTS] = IBV_QP_SQ_PSN,
		[IBV_QPS_SQD] = 0, [IBV_QPS_SQE] = 0, [IBV_QPS_ERR] = 0,
	};
	const uint32_t reliable[] = {
		[IBV_QPS_RTR] = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		[IBV_QPS_RTS] = IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
	};
	struct rng *r = &t->rng;
	unsigned int state = chance(r, 60) ? 1 + below(r, 3) : below(r, 7);

	m->attr_mask = IBV_QP_STATE | masks[state];
	if (state == IBV_QPS_INIT)
		m->attr_mask |= chance(r, 50) ? IBV_QP_ACCESS_FLAGS : IBV_QP_QKEY;
	else if ((state == IBV_QPS_RTR || state == IBV_QPS_RTS) && chance(r, 70))
		m->attr_mask |= reliable[state];
	m->qp_state = state;
	m->port_num = 1;
	m->path_mtu = 1 + below(r, 5);
	m->dest_qp_num = any_number(t, f, QP);
	m->qp_access_flags = below(r, 16);
	m->timeout = 8 + below(r, 8);
	m->retry_cnt = below(r, 8);
	m->rnr_retry = below(r, 8);
	m->max_rd_atomic = m->max_dest_rd_atomic = below(r, 5);
	m->min_rnr_timer = below(r, 32);
	memcpy(m->dest.dgid, &t->worker->gid, 16);
	m->dest.sgid_index = t->worker->gid_index;
	m->dest.hop_limit = 64;
	m->dest.is_global = 1;
	m->dest.port_num = 1;
	if (chance(r, 20))
		m->attr_mask ^= 1 << below(r, 22);
}

/* -- the call ----------------------------------------------------------------- */

/* One request with its answer. */
struct call {
	const struct command *cmd;
	uint8_t *in, *udata;		/* the core's part, the driver's */
	size_t in_len, udata_len;
	uint8_t *out;			/* where the answer is expected */
	size_t out_len, driver_out_len;
	uint64_t out_ptr, driver_out_ptr;	/* where the kernel is to write the answer */
};

static int call_write(struct thread *t, struct file *f, const struct call *c)
{
	uint8_t *room = t->scratch + 16384;
	struct ib_uverbs_cmd_hdr *hdr = (void *)room;
	struct ib_uverbs_ex_cmd_hdr *ex = (void *)(hdr + 1);
	size_t unit = c->cmd->extended ? 8 : 4, len = sizeof(*hdr);

	hdr->command = c->cmd->number;
	if (c->cmd->extended) {
		hdr->command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
		hdr->in_words = c->in_len / unit;
		hdr->out_words = c->out_len / unit;
		*ex = (struct ib_uverbs_ex_cmd_hdr) {
			.response = c->out_ptr, .provider_in_words = c->udata_len / unit,
			.provider_out_words = c->driver_out_len / unit,
		};
		len += sizeof(*ex);
	} else {
		hdr->in_words = (sizeof(*hdr) + c->in_len + c->udata_len) / unit;
		hdr->out_words = (c->out_len + c->driver_out_len) / unit;
	}
	memcpy(room + len, c->in, c->in_len);
	memcpy(room + len + c->in_len, c->udata, c->udata_len);
	len += c->in_len + c->udata_len;
	if (chance(&t->rng, 4))
		hdr->in_words += below(&t->rng, 5) - 2;
	if (chance(&t->rng, 4))
		hdr->out_words += below(&t->rng, 5) - 2;
	if (chance(&t->rng, 2))
		len += 4 * below(&t->rng, 5) - 8;
	return write(f->fd, (void *)any_pointer(t, room, len, 8), len) < 0 ? errno : 0;
}

static struct ib_uverbs_attr pointer_attr(unsigned int id, uint64_t ptr, size_t len, bool in)
{
	struct ib_uverbs_attr a = { .attr_id = id, .len = len, .data = ptr };

	/* The attribute itself holds short inputs. */
	if (in && len <= 8) {
		a.data = 0;
		memcpy(&a.data, (void *)(uintptr_t)ptr, len);
	}
	return a;
}

static int call_ioctl(struct thread *t, struct file *f, const struct call *c)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[5];
	} *req = (void *)(t->scratch + 24576);
	unsigned int n = 0;

	memset(req, 0, sizeof(*req));
	req->attr[n++] = (struct ib_uverbs_attr) {
		.attr_id = UVERBS_ATTR_WRITE_CMD, .flags = UVERBS_ATTR_F_MANDATORY,
		.data = c->cmd->number | (c->cmd->extended ? IB_USER_VERBS_CMD_FLAG_EXTENDED : 0),
	};
	if (c->in_len)
		req->attr[n++] = pointer_attr(UVERBS_ATTR_CORE_IN, (uintptr_t)c->in, c->in_len, true);
	if (c->out_len)
		req->attr[n++] = pointer_attr(UVERBS_ATTR_CORE_OUT, c->out_ptr, c->out_len, false);
	if (c->udata_len)
		req->attr[n++] = pointer_attr(UVERBS_ATTR_UHW_IN, (uintptr_t)c->udata, c->udata_len, true);
	if (c->driver_out_len)
		req->attr[n++] = pointer_attr(UVERBS_ATTR_UHW_OUT, c->driver_out_ptr,
					      c->driver_out_len, false);
	if (chance(&t->rng, 5))
		req->attr[below(&t->rng, n)].len += below(&t->rng, 17) - 8;
	req->hdr = (struct ib_uverbs_ioctl_hdr) {
		.length = sizeof(req->hdr) + n * sizeof(req->attr[0]), .num_attrs = n,
		.object_id = UVERBS_OBJECT_DEVICE, .method_id = UVERBS_METHOD_INVOKE_WRITE,
	};
	return ioctl(f->fd, RDMA_VERBS_IOCTL, req) ? errno : 0;
}

static void fill_command(struct thread *t, struct file *f, struct call *c)
{
	const struct command *cmd = c->cmd;

	memset(c->in, 0, 4096);
	for (const struct field *field = cmd->field; field->what != END; field++)
		fill_field(t, f, field, c->in + field->offset);
	c->in_len = cmd->in;
	if (cmd->number == IB_USER_VERBS_CMD_MODIFY_QP)
		fill_modify(t, f, (void *)c->in);
	/* Requests in a row follow, which are zero or stem from an earlier call. */
	if (cmd->number == IB_USER_VERBS_CMD_POST_SEND || cmd->number == IB_USER_VERBS_CMD_POST_RECV)
		c->in_len += 8 * below(&t->rng, 40);
	c->udata_len = cmd->number == IB_USER_VERBS_CMD_MODIFY_SRQ && chance(&t->rng, 50) ? 0 :
		       udata_fill(t, cmd->udata, c->udata);
	c->out_len = cmd->out;
	c->driver_out_len = cmd->driver_out;
	c->out_ptr = any_pointer(t, c->out, c->out_len + c->driver_out_len, c->out_len);
	c->driver_out_ptr = any_pointer(t, c->out + c->out_len, c->driver_out_len, 0);
	if (!cmd->extended && cmd->field[0].what == RESPONSE)
		memcpy(c->in, &c->out_ptr, sizeof(c->out_ptr));
	if (chance(&t->rng, 4))
		c->in[below(&t->rng, c->in_len)] ^= 1 << below(&t->rng, 8);
	memset(c->out, 0, 1024);
}

void write_step(struct thread *t, struct file *f)
{
	const struct command *cmd = &commands[below(&t->rng, sizeof(commands) / sizeof(commands[0]))];
	struct call c = {
		.cmd = cmd, .in = t->scratch, .udata = t->scratch + 4096, .out = t->scratch + 8192,
	};
	bool by_ioctl = chance(&t->rng, 40);
	uint32_t id, number = 0;
	int err;

	fill_command(t, f, &c);
	note(t, "%s %s out %jx", by_ioctl ? "invoke" : "write", cmd->name, (uintmax_t)c.out_ptr);
	err = by_ioctl ? call_ioctl(t, f, &c) : call_write(t, f, &c);
	if (err || !cmd->makes || c.out_ptr != (uintptr_t)c.out)
		return;
	memcpy(&id, c.out, sizeof(id));
	if (cmd->number_at)
		memcpy(&number, c.out + cmd->number_at, sizeof(number));
	keep_id(t, f, cmd->makes, id, number);
}

/* -- a context made by hand ------------------------------------------------------ */

void file_start(struct worker *w, struct file *f)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context core;
		struct qhca_alloc_ucontext_req driver;
	} req = {
		.hdr = { .command = IB_USER_VERBS_CMD_GET_CONTEXT, .in_words = sizeof(req) / 4 },
	};
	struct {
		struct ib_uverbs_get_context_resp core;
		struct qhca_alloc_ucontext_resp driver;
	} resp = { };
	void *page;

	f->fd = open(w->path, O_RDWR | O_CLOEXEC);
	if (f->fd < 0)
		return;
	req.hdr.out_words = sizeof(resp) / 4;
	req.core.response = (uintptr_t)&resp;
	if (write(f->fd, &req, sizeof(req)) != sizeof(req))
		return;
	f->async_fd = resp.core.async_fd;
	for (unsigned int i = 0; i < IDS; i++)
		f->id[ASYNC][i] = f->async_fd;
	page = mmap(NULL, resp.driver.db_mmap_size, PROT_WRITE, MAP_SHARED, f->fd,
		    resp.driver.db_mmap_offset);
	if (page != MAP_FAILED)
		f->doorbell = page;
}
