// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Methods of the uverbs ioctl: attributes as they ought to be, and then some left
 * out, twice, in another order, of another length or kind, or not known at all.
 */
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <uapi/rdma/qhca-abi.h>

#include "fuzz.h"
#include "lib/peer.h"

enum what {
	END,
	MAKES,		/* a handle of kind @arg */
	HANDLE,		/* one of kind @arg */
	NUMBER,		/* less than @arg, of @len bytes */
	ADDRESS, LENGTH, ACCESS,
	SOME_FD,	/* of kind @arg */
	RECORD,		/* input of @len bytes */
	SGES,
	CAPS,		/* a QP's */
	ANSWER,		/* output of @len bytes */
	REQUEST,	/* the driver's own, of type @arg */
};

struct attr {
	uint16_t id;
	uint8_t what;
	uint8_t arg;
	uint16_t len;
};

#define MOST_ATTRS	16

struct method {
	const char *name;
	uint16_t object, method;
	struct attr attr[MOST_ATTRS];
};

#define METHOD(obj, meth) \
	.name = #meth, .object = UVERBS_OBJECT_##obj, .method = UVERBS_METHOD_##meth
#define A(name, what, arg, len)		{ UVERBS_ATTR_##name, what, arg, len }
#define Q(name, what, arg, len)		{ QHCA_IB_ATTR_##name, what, arg, len }
#define DRIVER(type, out)		A(UHW_IN, REQUEST, type, 0), A(UHW_OUT, ANSWER, 0, out)
#define DESTROY(what, kind) \
	{ METHOD(what, what##_DESTROY), .attr = { A(DESTROY_##what##_HANDLE, HANDLE, kind, 0) } }
#define DESTROY_RESP(what, kind, out) \
	{ METHOD(what, what##_DESTROY), \
	  .attr = { A(DESTROY_##what##_HANDLE, HANDLE, kind, 0), A(DESTROY_##what##_RESP, ANSWER, 0, out) } }

static const struct method methods[] = {
	{ METHOD(DEVICE, INFO_HANDLES),
	  .attr = { A(INFO_OBJECT_ID, NUMBER, 20, 8), A(INFO_TOTAL_HANDLES, ANSWER, 0, 4),
		    A(INFO_HANDLES_LIST, ANSWER, 0, 64) } },
	{ METHOD(DEVICE, QUERY_PORT),
	  .attr = { A(QUERY_PORT_PORT_NUM, NUMBER, 3, 1),
		    A(QUERY_PORT_RESP, ANSWER, 0, sizeof(struct ib_uverbs_query_port_resp_ex)) } },
	{ METHOD(DEVICE, GET_CONTEXT),
	  .attr = { A(GET_CONTEXT_NUM_COMP_VECTORS, ANSWER, 0, 4),
		    A(GET_CONTEXT_CORE_SUPPORT, ANSWER, 0, 8),
		    DRIVER(U_CONTEXT, sizeof(struct qhca_alloc_ucontext_resp)) } },
	{ METHOD(DEVICE, QUERY_CONTEXT),
	  .attr = { A(QUERY_CONTEXT_NUM_COMP_VECTORS, ANSWER, 0, 4),
		    A(QUERY_CONTEXT_CORE_SUPPORT, ANSWER, 0, 8),
		    Q(QUERY_CONTEXT_RESP, ANSWER, 0, sizeof(struct qhca_alloc_ucontext_resp)) } },
	{ METHOD(DEVICE, QUERY_GID_TABLE),
	  .attr = { A(QUERY_GID_TABLE_ENTRY_SIZE, NUMBER, 64, 8), A(QUERY_GID_TABLE_FLAGS, NUMBER, 2, 4),
		    A(QUERY_GID_TABLE_RESP_ENTRIES, ANSWER, 0, 320),
		    A(QUERY_GID_TABLE_RESP_NUM_ENTRIES, ANSWER, 0, 8) } },
	{ METHOD(DEVICE, QUERY_GID_ENTRY),
	  .attr = { A(QUERY_GID_ENTRY_PORT, NUMBER, 3, 4), A(QUERY_GID_ENTRY_GID_INDEX, NUMBER, 20, 4),
		    A(QUERY_GID_ENTRY_FLAGS, NUMBER, 2, 4), A(QUERY_GID_ENTRY_RESP_ENTRY, ANSWER, 0, 32) } },
	{ METHOD(ASYNC_EVENT, ASYNC_EVENT_ALLOC),
	  .attr = { A(ASYNC_EVENT_ALLOC_FD_HANDLE, MAKES, ASYNC, 0) } },
	{ METHOD(CQ, CQ_CREATE),
	  .attr = { A(CREATE_CQ_HANDLE, MAKES, CQ, 0), A(CREATE_CQ_CQE, NUMBER, 17, 4),
		    A(CREATE_CQ_USER_HANDLE, NUMBER, 9, 8), A(CREATE_CQ_COMP_VECTOR, NUMBER, 3, 4),
		    A(CREATE_CQ_COMP_CHANNEL, SOME_FD, CHANNEL, 0), A(CREATE_CQ_FLAGS, NUMBER, 4, 4),
		    A(CREATE_CQ_EVENT_FD, SOME_FD, ASYNC, 0), A(CREATE_CQ_RESP_CQE, ANSWER, 0, 4),
		    DRIVER(U_CQ, sizeof(struct qhca_create_cq_resp)) } },
	DESTROY_RESP(CQ, CQ, 8),
	{ METHOD(QP, QP_CREATE),
	  .attr = { A(CREATE_QP_HANDLE, MAKES, QP, 0), A(CREATE_QP_PD_HANDLE, HANDLE, PD, 0),
		    A(CREATE_QP_SEND_CQ_HANDLE, HANDLE, CQ, 0), A(CREATE_QP_RECV_CQ_HANDLE, HANDLE, CQ, 0),
		    A(CREATE_QP_SRQ_HANDLE, HANDLE, SRQ, 0), A(CREATE_QP_USER_HANDLE, NUMBER, 9, 8),
		    A(CREATE_QP_CAP, CAPS, 0, sizeof(struct ib_uverbs_qp_cap)),
		    A(CREATE_QP_TYPE, NUMBER, 11, 4), A(CREATE_QP_FLAGS, NUMBER, 4, 4),
		    A(CREATE_QP_EVENT_FD, SOME_FD, ASYNC, 0),
		    A(CREATE_QP_RESP_CAP, ANSWER, 0, sizeof(struct ib_uverbs_qp_cap)),
		    A(CREATE_QP_RESP_QP_NUM, ANSWER, 0, 4),
		    DRIVER(U_QP, sizeof(struct qhca_create_qp_resp)) } },
	DESTROY_RESP(QP, QP, 4),
	{ METHOD(SRQ, SRQ_CREATE),
	  .attr = { A(CREATE_SRQ_HANDLE, MAKES, SRQ, 0), A(CREATE_SRQ_PD_HANDLE, HANDLE, PD, 0),
		    A(CREATE_SRQ_XRCD_HANDLE, HANDLE, XRCD, 0), A(CREATE_SRQ_CQ_HANDLE, HANDLE, CQ, 0),
		    A(CREATE_SRQ_USER_HANDLE, NUMBER, 9, 8), A(CREATE_SRQ_MAX_WR, NUMBER, 17, 4),
		    A(CREATE_SRQ_MAX_SGE, NUMBER, 3, 4), A(CREATE_SRQ_LIMIT, NUMBER, 3, 4),
		    A(CREATE_SRQ_TYPE, NUMBER, 3, 4), A(CREATE_SRQ_EVENT_FD, SOME_FD, ASYNC, 0),
		    A(CREATE_SRQ_RESP_MAX_WR, ANSWER, 0, 4), A(CREATE_SRQ_RESP_MAX_SGE, ANSWER, 0, 4),
		    A(CREATE_SRQ_RESP_SRQ_NUM, ANSWER, 0, 4),
		    DRIVER(U_SRQ, sizeof(struct qhca_create_srq_resp)) } },
	DESTROY_RESP(SRQ, SRQ, 4),
	{ METHOD(DM, DM_ALLOC),
	  .attr = { A(ALLOC_DM_HANDLE, MAKES, DM, 0), A(ALLOC_DM_LENGTH, LENGTH, 17, 8),
		    A(ALLOC_DM_ALIGNMENT, NUMBER, 16, 4), Q(ALLOC_DM_MMAP_OFFSET, ANSWER, 0, 8) } },
	{ METHOD(DM, DM_FREE), .attr = { A(FREE_DM_HANDLE, HANDLE, DM, 0) } },
	{ .name = "DM_QUERY", .object = UVERBS_OBJECT_DM, .method = QHCA_IB_METHOD_DM_QUERY,
	  .attr = { Q(DM_QUERY_HANDLE, HANDLE, DM, 0),
		    Q(DM_QUERY_RESP, ANSWER, 0, sizeof(struct qhca_dm_query_resp)) } },
	{ METHOD(MR, DM_MR_REG),
	  .attr = { A(REG_DM_MR_HANDLE, MAKES, MR, 0), A(REG_DM_MR_OFFSET, LENGTH, 14, 8),
		    A(REG_DM_MR_LENGTH, LENGTH, 14, 8), A(REG_DM_MR_PD_HANDLE, HANDLE, PD, 0),
		    A(REG_DM_MR_ACCESS_FLAGS, ACCESS, 0, 4), A(REG_DM_MR_DM_HANDLE, HANDLE, DM, 0),
		    A(REG_DM_MR_RESP_LKEY, ANSWER, 0, 4), A(REG_DM_MR_RESP_RKEY, ANSWER, 0, 4) } },
	DESTROY(MR, MR),
	{ METHOD(MR, ADVISE_MR),
	  .attr = { A(ADVISE_MR_PD_HANDLE, HANDLE, PD, 0), A(ADVISE_MR_ADVICE, NUMBER, 4, 4),
		    A(ADVISE_MR_FLAGS, NUMBER, 2, 4), A(ADVISE_MR_SGE_LIST, SGES, 0, 32) } },
	{ METHOD(MR, QUERY_MR),
	  .attr = { A(QUERY_MR_HANDLE, HANDLE, MR, 0), A(QUERY_MR_RESP_LKEY, ANSWER, 0, 4),
		    A(QUERY_MR_RESP_RKEY, ANSWER, 0, 4), A(QUERY_MR_RESP_LENGTH, ANSWER, 0, 8),
		    A(QUERY_MR_RESP_IOVA, ANSWER, 0, 8) } },
	{ METHOD(MR, REG_DMABUF_MR),
	  .attr = { A(REG_DMABUF_MR_HANDLE, MAKES, MR, 0), A(REG_DMABUF_MR_PD_HANDLE, HANDLE, PD, 0),
		    A(REG_DMABUF_MR_OFFSET, NUMBER, 9, 8), A(REG_DMABUF_MR_LENGTH, LENGTH, 17, 8),
		    A(REG_DMABUF_MR_IOVA, ADDRESS, 0, 8), A(REG_DMABUF_MR_FD, NUMBER, 9, 4),
		    A(REG_DMABUF_MR_ACCESS_FLAGS, ACCESS, 0, 4),
		    A(REG_DMABUF_MR_RESP_LKEY, ANSWER, 0, 4), A(REG_DMABUF_MR_RESP_RKEY, ANSWER, 0, 4) } },
	DESTROY(PD, PD),
	DESTROY(AH, AH),
	DESTROY(MW, MW),
	DESTROY(XRCD, XRCD),
	DESTROY(FLOW, FLOW),
	{ METHOD(COUNTERS, COUNTERS_CREATE), .attr = { A(CREATE_COUNTERS_HANDLE, MAKES, COUNTERS, 0) } },
	{ METHOD(COUNTERS, COUNTERS_DESTROY),
	  .attr = { A(DESTROY_COUNTERS_HANDLE, HANDLE, COUNTERS, 0) } },
	{ .name = "POOL_ALLOC", .object = QHCA_IB_OBJECT_POOL, .method = QHCA_IB_METHOD_POOL_ALLOC,
	  .attr = { Q(POOL_ALLOC_HANDLE, MAKES, POOL, 0), Q(POOL_ALLOC_LENGTH, LENGTH, 20, 8),
		    Q(POOL_ALLOC_RESP, ANSWER, 0, sizeof(struct qhca_pool_alloc_resp)) } },
	{ .name = "POOL_FREE", .object = QHCA_IB_OBJECT_POOL, .method = QHCA_IB_METHOD_POOL_FREE,
	  .attr = { Q(POOL_FREE_HANDLE, HANDLE, POOL, 0) } },
	{ .name = "POOL_QUERY", .object = QHCA_IB_OBJECT_POOL, .method = QHCA_IB_METHOD_POOL_QUERY,
	  .attr = { Q(POOL_QUERY_RESP, ANSWER, 0, sizeof(struct qhca_pool_query_resp)) } },
};

/* A request under construction. */
struct request {
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[MOST_ATTRS + 4];
	} *msg;
	uint8_t *in;		/* where the next input goes */
	uint8_t *out;
	struct ib_uverbs_attr *made;
	enum kind makes;
};

static void put_number(struct request *q, struct ib_uverbs_attr *a, uint64_t number, size_t len)
{
	(void)q;
	a->len = len;
	a->data = number;
}

static void put_input(struct thread *t, struct request *q, struct ib_uverbs_attr *a, size_t len)
{
	a->len = len;
	if (len <= 8)
		memcpy(&a->data, q->in, len);
	else
		a->data = any_pointer(t, q->in, len, 0);
	q->in += 256;
}

static void put_sges(struct thread *t, struct file *f, struct request *q)
{
	struct ib_uverbs_sge *sge = (void *)q->in;

	for (unsigned int i = 0; i < 2; i++) {
		size_t len = 1 << 18;

		sge[i].addr = (uintptr_t)any_memory(t, &len);
		sge[i].length = len;
		sge[i].lkey = any_number(t, f, MR);
	}
}

static void put_attr(struct thread *t, struct file *f, struct request *q, const struct attr *attr,
		     struct ib_uverbs_attr *a)
{
	struct rng *r = &t->rng;
	size_t len = 1 << 18;

	*a = (struct ib_uverbs_attr) { .attr_id = attr->id, .flags = UVERBS_ATTR_F_MANDATORY };
	switch (attr->what) {
	case MAKES:
		q->made = a;
		q->makes = attr->arg;
		break;
	case HANDLE:
	case SOME_FD:
		a->data = any_id(t, f, attr->arg);
		break;
	case NUMBER:
		put_number(q, a, chance(r, 3) ? odd_number(r) : below(r, attr->arg), attr->len);
		break;
	case ADDRESS:
		put_number(q, a, (uintptr_t)any_memory(t, &len), attr->len);
		break;
	case LENGTH:
		put_number(q, a, chance(r, 3) ? odd_number(r) : below(r, 1 << below(r, attr->arg)),
			   attr->len);
		break;
	case ACCESS:
		put_number(q, a, below(r, 64) | (chance(r, 50) ? IBV_ACCESS_ZERO_BASED : 0), attr->len);
		break;
	case SGES:
		put_sges(t, f, q);
		put_input(t, q, a, attr->len);
		break;
	case CAPS:
		for (unsigned int i = 0; i < attr->len / 4u; i++)
			((uint32_t *)q->in)[i] = below(r, 4);
		put_input(t, q, a, attr->len);
		break;
	case RECORD:
		put_input(t, q, a, attr->len);
		break;
	case REQUEST:
		put_input(t, q, a, udata_fill(t, attr->arg, q->in));
		break;
	default:
		a->len = attr->len;
		a->data = any_pointer(t, q->out, attr->len, 0);
		q->out += 512;
	}
}

/* Makes one thing wrong with the request, but not with the first @keep attributes. */
static void spoil(struct thread *t, struct request *q, unsigned int *n, unsigned int keep)
{
	struct ib_uverbs_attr *a = q->msg->attr, swap;
	struct rng *r = &t->rng;
	unsigned int i = keep + below(r, *n - keep), j = keep + below(r, *n - keep);

	switch (below(r, 9)) {
	case 0:			/* one less */
		a[i] = a[--*n];
		break;
	case 1:			/* one twice */
		a[(*n)++] = a[i];
		break;
	case 2:
	case 3:			/* another order */
		swap = a[i], a[i] = a[j], a[j] = swap;
		break;
	case 4:
		a[i].len += below(r, 17) - 8;
		break;
	case 5:
		a[i].attr_id = chance(r, 50) ? below(r, 20) : UVERBS_ID_DRIVER_NS + below(r, 4);
		break;
	case 6:
		a[i].flags = rnd(r);
		break;
	case 7:
		a[i].data = odd_number(r);
		break;
	default:
		a[i].attr_data.reserved = rnd(r);
	}
}

void ioctl_step(struct thread *t, struct file *f)
{
	const struct method *m = &methods[below(&t->rng, sizeof(methods) / sizeof(methods[0]))];
	struct request q = {
		.msg = (void *)(t->scratch + 32768), .in = t->scratch, .out = t->scratch + 8192,
	};
	unsigned int n = 0, keep = 0;
	int err;

	memset(q.msg, 0, sizeof(*q.msg));
	memset(t->scratch, 0, 16384);
	for (const struct attr *a = m->attr; a < m->attr + MOST_ATTRS && a->what != END; a++) {
		/*
		 * uverbs looks up a file after its device has gone unless it refuses an earlier
		 * attribute, and then the kernel oopses (users-guide.rst).
		 */
		if (a->what == SOME_FD && opt.disrupt)
			keep = 1;
		/* The request often leaves out an optional attribute. */
		if ((a->what != SOME_FD && (a->arg != SRQ && a->arg != XRCD)) || a == m->attr ||
		    chance(&t->rng, 40))
			put_attr(t, f, &q, a, &q.msg->attr[n++]);
	}
	while (n > keep && n < MOST_ATTRS && chance(&t->rng, 15))
		spoil(t, &q, &n, keep);
	q.msg->hdr = (struct ib_uverbs_ioctl_hdr) {
		.object_id = m->object, .method_id = m->method, .num_attrs = n,
		.length = sizeof(q.msg->hdr) + n * sizeof(q.msg->attr[0]),
	};
	if (chance(&t->rng, 1))
		q.msg->hdr.length += below(&t->rng, 33) - 16;
	note(t, "ioctl %s %u attrs", m->name, n);
	err = ioctl(f->fd, RDMA_VERBS_IOCTL, q.msg) ? errno : 0;
	if (!err && q.made)
		keep_id(t, f, q.makes, q.made->data, 0);
}
