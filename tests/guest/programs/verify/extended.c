// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "extended.h"
#include "lib/peer.h"
#include "plan.h"

uint64_t extended_ops(enum ibv_qp_type type)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type == IBV_QPT_UD)
		return ops;
	ops |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (type == IBV_QPT_UC)
		return ops;
	return ops | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
}

static void begin(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	qp->wr_id = wr->wr_id;
	qp->wr_flags = wr->send_flags;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		ibv_wr_send(qp);
		break;
	case IBV_WR_SEND_WITH_IMM:
		ibv_wr_send_imm(qp, wr->imm_data);
		break;
	case IBV_WR_RDMA_WRITE:
		ibv_wr_rdma_write(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		ibv_wr_rdma_write_imm(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr,
				      wr->imm_data);
		break;
	case IBV_WR_RDMA_READ:
		ibv_wr_rdma_read(qp, wr->wr.rdma.rkey, wr->wr.rdma.remote_addr);
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
				      wr->wr.atomic.compare_add, wr->wr.atomic.swap);
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey, wr->wr.atomic.remote_addr,
					wr->wr.atomic.compare_add);
		break;
	default:
		die("no extended form of opcode %d", wr->opcode);
	}
}

static void set_data(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf buf[MAX_PIECES];
	const struct ibv_sge *sge = wr->sg_list;

	if (wr->num_sge > MAX_PIECES)
		die("%d segments", wr->num_sge);
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		if (wr->num_sge == 1)
			ibv_wr_set_sge(qp, sge->lkey, sge->addr, sge->length);
		else
			ibv_wr_set_sge_list(qp, wr->num_sge, sge);
		return;
	}
	for (int i = 0; i < wr->num_sge; i++)
		buf[i] = (struct ibv_data_buf) { (void *)(uintptr_t)sge[i].addr, sge[i].length };
	if (wr->num_sge == 1)
		ibv_wr_set_inline_data(qp, buf[0].addr, buf[0].length);
	else
		ibv_wr_set_inline_data_list(qp, wr->num_sge, buf);
}

static void add(struct ibv_qp_ex *qp, const struct ibv_send_wr *wr)
{
	enum ibv_qp_type type = qp->qp_base.qp_type;

	begin(qp, wr);
	if (type == IBV_QPT_UD)
		ibv_wr_set_ud_addr(qp, wr->wr.ud.ah, wr->wr.ud.remote_qpn, wr->wr.ud.remote_qkey);
	if (type == IBV_QPT_XRC_SEND)
		ibv_wr_set_xrc_srqn(qp, wr->qp_type.xrc.remote_srqn);
	set_data(qp, wr);
}

int extended_post_send(struct ibv_qp *base, struct ibv_send_wr *wr)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(base);

	ibv_wr_start(qp);
	add(qp, wr);
	ibv_wr_abort(qp);

	ibv_wr_start(qp);
	for (; wr; wr = wr->next)
		add(qp, wr);
	return ibv_wr_complete(qp);
}

#define FIELDS (IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | \
		IBV_WC_EX_WITH_SRC_QP)

struct ibv_cq *extended_create_cq(struct ibv_context *ctx, int cqe,
				  struct ibv_comp_channel *channel)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe, .channel = channel, .wc_flags = FIELDS,
	};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(ctx, &attr);

	return cq ? ibv_cq_ex_to_cq(cq) : NULL;
}

/* The extended CQ that a CQ made above is. */
static struct ibv_cq_ex *extended(struct ibv_cq *cq)
{
	return (struct ibv_cq_ex *)cq;
}

static void read_wc(struct ibv_cq_ex *cq, struct ibv_wc *wc)
{
	*wc = (struct ibv_wc) {
		.wr_id = cq->wr_id, .status = cq->status, .qp_num = ibv_wc_read_qp_num(cq),
	};
	if (wc->status != IBV_WC_SUCCESS) {
		wc->vendor_err = ibv_wc_read_vendor_err(cq);
		return;
	}
	wc->opcode = ibv_wc_read_opcode(cq);
	wc->wc_flags = ibv_wc_read_wc_flags(cq);
	if (!(wc->opcode & IBV_WC_RECV))
		return;
	wc->byte_len = ibv_wc_read_byte_len(cq);
	if (wc->wc_flags & IBV_WC_WITH_IMM)
		wc->imm_data = ibv_wc_read_imm_data(cq);
	wc->src_qp = ibv_wc_read_src_qp(cq);
}

int extended_poll_cq(struct ibv_cq *base, int n, struct ibv_wc *wc)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_cq_ex *cq = extended(base);
	int rc = ibv_start_poll(cq, &attr), got = 0;

	if (rc == ENOENT)
		return 0;
	while (!rc) {
		read_wc(cq, &wc[got++]);
		if (got == n)
			break;
		rc = ibv_next_poll(cq);
	}
	if (rc && rc != ENOENT)
		return -rc;
	ibv_end_poll(cq);
	return got;
}
