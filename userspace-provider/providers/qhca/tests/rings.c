/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Rings, lists and work requests without a device: the test plays the device
 * by reading what is posted and writing completions by hand.  TAP on stdout.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rings.h"
#include "wqe.h"

static struct qhca_context ctx;
static __le64 db_page[QHCA_DB_PAGE_SIZE / 8];
static int failures;

void check_at(bool ok, const char *what, int line)
{
	if (ok)
		return;
	failures++;
	printf("# line %d: %s\n", line, what);
}

struct qhca_context *test_context(void)
{
	return &ctx;
}

uint64_t take_doorbell(unsigned int offset)
{
	uint64_t value = le64toh(db_page[offset / 8]);

	db_page[offset / 8] = 0;
	return value;
}

static void init_context(void)
{
	ctx.db_page = db_page;
	ctx.page_size = 4096;
	ctx.features = QHCA_FEAT_ATOMIC | QHCA_FEAT_MW2B | QHCA_FEAT_FLUSH |
		       QHCA_FEAT_ATOMIC_WRITE;
	ctx.max_inline = 960;
	ctx.max_sge = 32;
	ctx.max_send_wr = 32768;
	ctx.max_recv_wr = 32768;
	ctx.max_cqe = 65535;
	ctx.max_srq_wr = 32767;
}

struct qhca_qp *new_qp(enum qhca_qp_type type, uint32_t send_wr,
		       uint32_t recv_wr, uint32_t sge, uint32_t inl)
{
	struct ibv_qp_cap cap = {
		.max_send_wr = send_wr,
		.max_recv_wr = recv_wr,
		.max_send_sge = sge,
		.max_recv_sge = sge,
		.max_inline_data = inl,
	};
	struct qhca_qp *qp = calloc(1, sizeof(*qp));

	qp->type = type;
	qp->vqp.qp.context = &ctx.vctx.context;
	qp->vqp.qp.qp_num = 0x1234;
	qp->vqp.qp.state = IBV_QPS_RTS;
	check(!qhca_qp_init_rings(qp, &ctx, &cap, recv_wr));
	check(cap.max_send_wr >= send_wr && cap.max_recv_wr >= recv_wr);
	check(cap.max_send_sge >= sge && cap.max_inline_data >= inl);
	return qp;
}

void free_qp(struct qhca_qp *qp)
{
	qhca_umem_free(&qp->mem);
	free(qp);
}

struct qhca_cq *new_cq(uint32_t cqe)
{
	struct qhca_cq *cq = calloc(1, sizeof(*cq));

	cq->vcq.cq.context = &ctx.vctx.context;
	cq->cqn = 7;
	cq->ring = qhca_cq_ring_new(&ctx, NULL, cqe, 1);
	check(cq->ring);
	qhca_lock_init(&cq->lock, true);
	qhca_cq_set_ex_ops(cq, IBV_WC_STANDARD_FLAGS |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			       IBV_WC_EX_WITH_CVLAN);
	return cq;
}

void free_cq(struct qhca_cq *cq)
{
	qhca_cq_ring_free(cq->ring);
	free(cq);
}

void put_cqe(struct qhca_cq_ring *ring, uint32_t pi, const void *handle,
	     uint32_t wqe, uint8_t opcode, uint32_t flags)
{
	struct qhca_cqe *cqe = &ring->cqes[pi & (ring->depth - 1)];

	if (!(pi & ring->depth))
		flags |= QHCA_PHASE;
	memset(cqe, 0, sizeof(*cqe));
	cqe->handle = htole64((uintptr_t)handle);
	cqe->wr_id = htole64(1000 + wqe);
	cqe->wqe = htole32(wqe);
	cqe->opcode = opcode;
	cqe->qpn = htole32(0x1234);
	cqe->timestamp = htole64(55);
	cqe->flags = htole32(flags);
}

static void test_sizes(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_RC, 100, 50, 5, 0);
	struct ibv_qp_cap cap = { .max_send_wr = 1, .max_send_sge = 33 };

	check(qp->sq.depth == 128 && qp->sq.log_stride == 8);
	check(qp->sq.max_sge == 12 && qp->max_inline == 192);
	check(qp->rq.depth == 64 && qp->rq.log_stride == 7);
	check(qp->rq.max_sge == 7);
	check(qp->rq.offset == 128 * 256);
	check(qp->rec_offset == 128 * 256 + 64 * 128);
	check(qp->mem.length >= qp->rec_offset + sizeof(*qp->rec));
	free_qp(qp);

	qp = new_qp(QHCA_QPT_RC, 1, 0, 1, 0);
	check(qp->sq.depth == 16 && qp->sq.log_stride == 7);
	check(qp->sq.max_sge == 4 && !qp->rq.depth);
	check(qhca_qp_init_rings(qp, &ctx, &cap, false) == EINVAL);
	free_qp(qp);

	qp = new_qp(QHCA_QPT_RC, 1, 1, 32, 960);
	check(qp->sq.log_stride == 10 && qp->max_inline == 960);
	check(qp->sq.max_sge == 32 && qp->rq.max_sge == 32);
	free_qp(qp);

	/* A ring begins at a multiple of its stride. */
	cap = (struct ibv_qp_cap){ .max_send_wr = 1, .max_recv_wr = 1,
				   .max_recv_sge = 32 };
	qp = calloc(1, sizeof(*qp));
	check(!qhca_qp_init_rings(qp, &ctx, &cap, true));
	check(qp->sq.depth == 16 && qp->rq.offset == 2048);
	free_qp(qp);
}

static void test_send_layout(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_RC, 8, 0, 4, 0);
	struct ibv_sge sge[2] = {
		{ .addr = 0x1000, .length = 10, .lkey = 0x55 },
		{ .addr = 0x2000, .length = 20, .lkey = 0x66 },
	};
	struct ibv_send_wr wr = {
		.wr_id = 42, .sg_list = sge, .num_sge = 2,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		.imm_data = htobe32(0xa1b2c3d4),
		.wr.rdma = { .remote_addr = 0x77, .rkey = 0x88 },
	};
	struct qhca_sq_wqe *wqe = qp->sq.ring;
	struct qhca_sge *out = (struct qhca_sge *)(wqe + 1);
	uint8_t imm[4] = { 0xa1, 0xb2, 0xc3, 0xd4 };
	struct ibv_send_wr *bad;

	check(!qhca_post_send(&qp->vqp.qp, &wr, &bad));
	check(take_doorbell(QHCA_DB_SQ) == (1ull << 32 | 0x1234));
	check(qhca_load(&qp->rec->sq_pi) == 1);
	check(wqe->opcode == QHCA_WQE_WRITE_IMM && wqe->num_sge == 2);
	check(wqe->flags == (QHCA_WQE_F_SIGNALED | QHCA_WQE_F_SOLICITED));
	check(!memcmp(&wqe->imm, imm, 4));
	check(le64toh(wqe->wr_id) == 42);
	check(le64toh(wqe->rdma.raddr) == 0x77);
	check(le32toh(wqe->rdma.rkey) == 0x88);
	check(le64toh(out[1].addr) == 0x2000 && le32toh(out[1].lkey) == 0x66);

	/* The device is at work, so it needs no doorbell. */
	qhca_store(&qp->rec->sq_active, 1);
	wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 3;
	wr.wr.atomic.swap = 4;
	wr.wr.atomic.rkey = 5;
	wr.send_flags = IBV_SEND_FENCE;
	check(!qhca_post_send(&qp->vqp.qp, &wr, &bad));
	check(!take_doorbell(QHCA_DB_SQ));
	wqe = qhca_wq_slot(&qp->sq, 1);
	check(wqe->flags == QHCA_WQE_F_FENCE);
	check(le64toh(wqe->atomic.compare) == 3);
	check(le64toh(wqe->atomic.swap_add) == 4);
	check(le32toh(wqe->atomic.rkey) == 5);
	free_qp(qp);
}

static void test_send_refused(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_UC, 16, 0, 1, 0);
	struct ibv_sge sge[8] = {};
	struct ibv_send_wr wr[17] = {}, *bad;
	int i;

	for (i = 0; i < 17; i++)
		wr[i].next = i < 16 ? wr + i + 1 : NULL;

	check(qhca_post_send(&qp->vqp.qp, wr, &bad) == ENOMEM);
	check(bad == wr + 16);
	check(take_doorbell(QHCA_DB_SQ) >> 32 == 16);

	/* The completion of the last request frees all. */
	atomic_store(&qp->sq.ci, 16);
	wr[1].opcode = IBV_WR_RDMA_READ;
	check(qhca_post_send(&qp->vqp.qp, wr, &bad) == EINVAL);
	check(bad == wr + 1);
	check(take_doorbell(QHCA_DB_SQ) >> 32 == 17);

	wr[0].next = NULL;
	wr[0].sg_list = sge;
	wr[0].num_sge = 5;
	check(qhca_post_send(&qp->vqp.qp, wr, &bad) == EINVAL && bad == wr);
	wr[0].num_sge = 1;
	wr[0].send_flags = IBV_SEND_INLINE;
	sge[0].length = qp->max_inline + 1;
	check(qhca_post_send(&qp->vqp.qp, wr, &bad) == EINVAL && bad == wr);
	wr[0].send_flags = 0;
	wr[0].opcode = 77;
	check(qhca_post_send(&qp->vqp.qp, wr, &bad) == EINVAL && bad == wr);
	wr[0].opcode = IBV_WR_SEND;
	qp->vqp.qp.state = IBV_QPS_RTR;
	check(qhca_post_send(&qp->vqp.qp, wr, &bad) == EINVAL && bad == wr);
	check(!take_doorbell(QHCA_DB_SQ));
	free_qp(qp);
}

/* Whole frames: no address, and no checksum that the device would not compute. */
static void test_raw(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_RAW, 4, 0, 2, 0);
	struct ibv_sge sge[2] = { { .length = 14 }, { .length = 46 } };
	struct ibv_send_wr wr = {
		.sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND,
	};
	struct qhca_sq_wqe *wqe = qp->sq.ring;
	struct ibv_send_wr *bad = NULL;

	check(!qhca_post_send(&qp->vqp.qp, &wr, &bad));
	check(wqe->opcode == QHCA_WQE_SEND && wqe->num_sge == 2);
	check(!wqe->ud.dest_qpn && take_doorbell(QHCA_DB_SQ));
	wr.send_flags = IBV_SEND_IP_CSUM;
	check(qhca_post_send(&qp->vqp.qp, &wr, &bad) == EINVAL && bad == &wr);
	wr.send_flags = 0;
	wr.opcode = IBV_WR_SEND_WITH_IMM;
	check(qhca_post_send(&qp->vqp.qp, &wr, &bad) == EINVAL);
	check(!take_doorbell(QHCA_DB_SQ));
	free_qp(qp);
}

static void test_datagram(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_UD, 4, 0, 1, 64);
	struct qhca_ah ah = { .av = { .dgid = { 1, 2, 3 }, .sgid_index = 9 } };
	char text[] = "inline data";
	struct ibv_sge sge[2] = {
		{ .addr = (uintptr_t)text, .length = 7 },
		{ .addr = (uintptr_t)text + 7, .length = 5 },
	};
	struct ibv_send_wr wr = {
		.sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
		.wr.ud = { .ah = &ah.ah, .remote_qpn = 3, .remote_qkey = 4 },
	};
	struct qhca_sq_wqe *wqe = qp->sq.ring;
	struct ibv_send_wr *bad;

	check(!qhca_post_send(&qp->vqp.qp, &wr, &bad));
	check(wqe->flags == QHCA_WQE_F_INLINE && !wqe->num_sge);
	check(le32toh(wqe->inline_len) == sizeof(text));
	check(!memcmp(wqe + 1, text, sizeof(text)));
	check(le32toh(wqe->ud.dest_qpn) == 3 && le32toh(wqe->ud.qkey) == 4);
	check(!memcmp(&wqe->ud.av, &ah.av, sizeof(ah.av)));
	take_doorbell(QHCA_DB_SQ);
	free_qp(qp);
}

static void test_wr_api(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_RC, 4, 0, 4, 64);
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct qhca_sq_wqe *wqe = qp->sq.ring;
	uint64_t value = 0x0123456789abcdef;
	int i;

	check(qhca_qp_set_wr_ops(qp, &ctx, IBV_QP_EX_WITH_TSO) == EOPNOTSUPP);
	check(!qhca_qp_set_wr_ops(qp, &ctx, IBV_QP_EX_WITH_SEND_WITH_INV |
				  IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_FLUSH |
				  IBV_QP_EX_WITH_ATOMIC_WRITE));

	ibv_wr_start(ex);
	ex->wr_id = 5;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_write(ex, 11, 22);
	ibv_wr_set_sge(ex, 33, 44, 55);
	ex->wr_id = 6;
	ibv_wr_send_inv(ex, 0x99);
	ibv_wr_set_inline_data(ex, &value, 8);
	ibv_wr_atomic_write(ex, 1, 8, &value);
	check(!qhca_load(&qp->rec->sq_pi) && !take_doorbell(QHCA_DB_SQ));
	check(!ibv_wr_complete(ex));
	check(take_doorbell(QHCA_DB_SQ) >> 32 == 3);
	check(wqe->opcode == QHCA_WQE_WRITE && le64toh(wqe->wr_id) == 5);
	check(wqe->num_sge == 1 && wqe->flags == QHCA_WQE_F_SIGNALED);
	wqe = qhca_wq_slot(&qp->sq, 1);
	check(wqe->opcode == QHCA_WQE_SEND_INV && le64toh(wqe->wr_id) == 6);
	check(le32toh(wqe->imm) == 0x99 && le32toh(wqe->inline_len) == 8);
	wqe = qhca_wq_slot(&qp->sq, 2);
	check(wqe->opcode == QHCA_WQE_ATOMIC_WRITE);
	check(!memcmp(wqe + 1, &value, 8));

	/* The device sees nothing of a batch that was abandoned or failed. */
	ibv_wr_start(ex);
	ibv_wr_rdma_write(ex, 1, 2);
	ibv_wr_abort(ex);
	ibv_wr_start(ex);
	ibv_wr_set_sge(ex, 1, 2, 3);
	check(ibv_wr_complete(ex) == EINVAL);
	ibv_wr_start(ex);
	ibv_wr_flush(ex, 1, 2, 3, 0, IBV_FLUSH_RANGE);
	check(ibv_wr_complete(ex) == EINVAL);
	ibv_wr_start(ex);
	for (i = 0; i < 14; i++) {
		ibv_wr_rdma_write(ex, 1, 2);
		ibv_wr_set_sge(ex, 1, 2, 3);
	}
	check(ibv_wr_complete(ex) == ENOMEM);
	check(qhca_load(&qp->rec->sq_pi) == 3 && !take_doorbell(QHCA_DB_SQ));
	free_qp(qp);
}

/* A program chooses the octet of a window's key, and finds the key in the window. */
static void test_windows(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_RC, 4, 0, 1, 0);
	struct ibv_mw mw = { .type = IBV_MW_TYPE_2, .rkey = 0x1234500 };
	struct qhca_sq_wqe *wqe = qp->sq.ring;
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	struct ibv_mr mr = { .lkey = 0x777 };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { .mw = &mw, .rkey = 0x99999942,
			     .bind_info = { &mr, 0x1000, 64, 0 } },
	};

	check(!qhca_post_send(&qp->vqp.qp, &wr, &bad));
	check(le32toh(wqe->bind.mw_rkey) == 0x1234500);
	check(le32toh(wqe->bind.new_rkey) == 0x1234542);
	check(mw.rkey == 0x1234542);

	check(!qhca_qp_set_wr_ops(qp, &ctx, IBV_QP_EX_WITH_BIND_MW));
	wqe = qhca_wq_slot(&qp->sq, 1);
	ibv_wr_start(ex);
	ibv_wr_bind_mw(ex, &mw, 0x43, &wr.bind_mw.bind_info);
	check(!ibv_wr_complete(ex));
	check(le32toh(wqe->bind.mw_rkey) == 0x1234542);
	check(le32toh(wqe->bind.new_rkey) == 0x1234543);
	check(mw.rkey == 0x1234543);

	/* A request that is refused leaves the window as it is. */
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
	check(qhca_post_send(&qp->vqp.qp, &wr, &bad) == EINVAL);
	check(mw.rkey == 0x1234543);

	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_FLUSH_GLOBAL;
	check(!qhca_post_send(&qp->vqp.qp, &wr, &bad));
	wqe = qhca_wq_slot(&qp->sq, 2);
	check(le32toh(wqe->bind.access) == QHCA_ACCESS_FLUSH_GLOBAL);
	take_doorbell(QHCA_DB_SQ);
	free_qp(qp);
}

/* A region of no memory costs no call of the kernel, if the device has its key. */
static void test_null_region(void)
{
	struct ibv_pd pd = { .context = &ctx.vctx.context };
	struct ibv_mr *mr;

	check(!qhca_alloc_null_mr(&pd) && errno == EOPNOTSUPP);
	ctx.features |= QHCA_FEAT_NULL_LKEY;
	mr = qhca_alloc_null_mr(&pd);
	check(mr && mr->lkey == QHCA_NULL_LKEY && mr->pd == &pd);
	if (mr)
		check(!qhca_dereg_mr(verbs_get_mr(mr)));
	ctx.features &= ~QHCA_FEAT_NULL_LKEY;
}

/* Posting, completing and polling over several passes of all rings. */
static void test_passes(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_RC, 4, 2, 1, 0);
	struct qhca_cq *cq = new_cq(3);
	struct ibv_send_wr swr = { .opcode = IBV_WR_SEND }, *bad_swr;
	struct ibv_recv_wr rwr = {}, *bad_rwr;
	struct ibv_wc wc[4];
	uint32_t i;

	for (i = 0; i < 100; i++) {
		check(!qhca_post_send(&qp->vqp.qp, &swr, &bad_swr));
		check(!qhca_post_recv(&qp->vqp.qp, &rwr, &bad_rwr));
		check(qhca_load(&qp->rec->rq_pi) == i + 1);
		check(!qhca_poll_cq(&cq->vcq.cq, 4, wc));
		put_cqe(cq->ring, 2 * i, qp, i, QHCA_CQE_RECV, QHCA_CQE_GRH);
		put_cqe(cq->ring, 2 * i + 1, qp, i, QHCA_WQE_SEND,
			QHCA_CQE_REQUESTER);
		check(qhca_poll_cq(&cq->vcq.cq, 4, wc) == 2);
		check(wc[0].opcode == IBV_WC_RECV);
		check(wc[0].wc_flags == IBV_WC_GRH && wc[0].wr_id == 1000 + i);
		check(wc[1].opcode == IBV_WC_SEND && wc[1].qp_num == 0x1234);
		check(qhca_load(&cq->ring->rec->ci) == 2 * i + 2);
	}
	check(qhca_arm_cq(&cq->vcq.cq, 1) == 0);
	check(take_doorbell(QHCA_DB_CQ_ARM) ==
	      (200ull << 32 | QHCA_DB_CQ_SOLICITED | 7));

	check(!qhca_post_recv(&qp->vqp.qp, &rwr, &bad_rwr));
	check(!qhca_post_recv(&qp->vqp.qp, &rwr, &bad_rwr));
	check(qhca_post_recv(&qp->vqp.qp, &rwr, &bad_rwr) == ENOMEM);
	check(bad_rwr == &rwr);
	take_doorbell(QHCA_DB_SQ);
	free_cq(cq);
	free_qp(qp);
}

static void test_extended_poll(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_RC, 4, 4, 1, 0);
	struct qhca_cq *cq = new_cq(7);
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;
	struct ibv_poll_cq_attr attr = {};

	check(ibv_start_poll(ex, &attr) == ENOENT);
	put_cqe(cq->ring, 0, qp, 0, QHCA_CQE_RECV, QHCA_CQE_INV);
	cq->ring->cqes[0].imm = htole32(0x321);
	put_cqe(cq->ring, 1, qp, 2, QHCA_WQE_READ, QHCA_CQE_REQUESTER);
	check(!ibv_start_poll(ex, &attr));
	check(ex->wr_id == 1000 && ibv_wc_read_opcode(ex) == IBV_WC_RECV);
	check(ibv_wc_read_wc_flags(ex) == IBV_WC_WITH_INV);
	check(ibv_wc_read_invalidated_rkey(ex) == 0x321);
	check(ibv_wc_read_completion_ts(ex) == 55);
	check(!ibv_next_poll(ex));
	check(ibv_wc_read_opcode(ex) == IBV_WC_RDMA_READ);
	check(atomic_load(&qp->sq.ci) == 3 && atomic_load(&qp->rq.ci) == 1);
	check(ibv_next_poll(ex) == ENOENT);
	check(!qhca_load(&cq->ring->rec->ci));
	ibv_end_poll(ex);
	check(qhca_load(&cq->ring->rec->ci) == 2);

	/*
	 * The library publishes a batch by halves of the ring, and not the half that is being
	 * read.
	 */
	put_cqe(cq->ring, 2, qp, 3, QHCA_WQE_READ, QHCA_CQE_REQUESTER);
	put_cqe(cq->ring, 3, qp, 4, QHCA_WQE_READ, QHCA_CQE_REQUESTER);
	put_cqe(cq->ring, 4, qp, 5, QHCA_WQE_READ, QHCA_CQE_REQUESTER);
	check(!ibv_start_poll(ex, &attr) && !ibv_next_poll(ex));
	check(qhca_load(&cq->ring->rec->ci) == 2);
	check(!ibv_next_poll(ex));
	check(qhca_load(&cq->ring->rec->ci) == 4);
	ibv_end_poll(ex);
	check(qhca_load(&cq->ring->rec->ci) == 5);
	free_cq(cq);
	free_qp(qp);
}

/* The type of the network header is in `sl`, as mlx5 codes it; no priority is. */
static void test_service_level(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_UD, 4, 4, 1, 0);
	struct qhca_cq *cq = new_cq(7);
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc wc[3];
	int i;

	for (i = 0; i < 4; i++) {
		put_cqe(cq->ring, i, qp, i, QHCA_CQE_RECV,
			i == 2 ? 0 : QHCA_CQE_GRH | QHCA_CQE_VLAN);
		cq->ring->cqes[i].net_type = i == 1 ? 6 : 4;
		cq->ring->cqes[i].vlan = htole16(5 << 13 | 7);
		cq->ring->cqes[i].sl = 5;
	}
	check(qhca_poll_cq(&cq->vcq.cq, 3, wc) == 3);
	check(wc[0].sl == 0xa && wc[1].sl == 0x9 && wc[2].sl == 0);
	check(!ibv_start_poll(ex, &attr));
	check(ibv_wc_read_sl(ex) == 0xa);
	check(ibv_wc_read_cvlan(ex) == (5 << 13 | 7));
	ibv_end_poll(ex);
	free_cq(cq);
	free_qp(qp);
}

/* Remove one QP's completions where the ring wraps, then go on. */
static void test_clean(void)
{
	struct qhca_qp *dead = new_qp(QHCA_QPT_RC, 64, 0, 1, 0);
	struct qhca_qp *live = new_qp(QHCA_QPT_RC, 64, 0, 1, 0);
	struct qhca_cq *cq = new_cq(7);
	uint32_t pi, expect = 0;
	struct ibv_wc wc[8];
	int n, i, round;

	for (pi = 0, round = 0; round < 50; round++) {
		for (n = 0; n < 3 + round % 6; n++, pi++)
			put_cqe(cq->ring, pi, n * 5 % 3 ? live : dead, pi,
				QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
		qhca_cq_clean(cq, cq, dead);
		n = qhca_poll_cq(&cq->vcq.cq, 8, wc);
		for (i = 0; i < 3 + round % 6; i++, expect++)
			if (i * 5 % 3) {
				check(n-- > 0);
				check(wc[i - 1 - i / 3].wr_id == 1000 + expect);
			}
		check(!n && cq->ring->ci == pi);
		check(qhca_load(&cq->ring->rec->ci) == pi);
		check(!qhca_poll_cq(&cq->vcq.cq, 8, wc));
	}
	free_cq(cq);
	free_qp(live);
	free_qp(dead);
}

/*
 * A QP's completions outlive it: polling touches neither the QP nor its SRQ,
 * which may be gone as well, but has had its slot back.
 */
static void test_disown(void)
{
	struct qhca_qp *dead = new_qp(QHCA_QPT_RC, 64, 64, 1, 0);
	struct qhca_qp *live = new_qp(QHCA_QPT_RC, 64, 0, 1, 0);
	struct qhca_srq *srq = calloc(1, sizeof(*srq));
	struct ibv_recv_wr wr = {}, *bad;
	struct qhca_cq *cq = new_cq(7);
	struct ibv_wc wc[8];
	int i;

	check(!qhca_srq_init_ring(srq, &ctx, 3, 1));
	for (i = 0; !qhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad); i++)
		;
	dead->vqp.qp.srq = &srq->vsrq.srq;
	put_cqe(cq->ring, 0, dead, 0, QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
	put_cqe(cq->ring, 1, live, 3, QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
	put_cqe(cq->ring, 2, dead, 1, QHCA_CQE_RECV, QHCA_CQE_SRQ);
	put_cqe(cq->ring, 3, dead, 2, QHCA_CQE_RECV, 0);
	put_cqe(cq->ring, 4, dead, 4, QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
	cq->ring->cqes[4].status = QHCA_WC_WR_FLUSH_ERR;

	qhca_cq_disown(cq, cq, dead);
	check(!qhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad));
	check(qhca_post_srq_recv(&srq->vsrq.srq, &wr, &bad) == ENOMEM);
	qhca_umem_free(&srq->mem);
	memset(srq, 0xa5, sizeof(*srq));
	qhca_umem_free(&dead->mem);
	memset(dead, 0xa5, sizeof(*dead));

	check(qhca_poll_cq(&cq->vcq.cq, 8, wc) == 5);
	check(wc[0].wr_id == 1000 && wc[1].wr_id == 1003 && wc[2].wr_id == 1001);
	check(wc[3].wr_id == 1002 && wc[4].wr_id == 1004);
	check(wc[2].qp_num == 0x1234 && wc[2].opcode == IBV_WC_RECV);
	check(wc[4].status == IBV_WC_WR_FLUSH_ERR && !wc[3].status);
	check(!take_doorbell(QHCA_DB_SQ) && atomic_load(&live->sq.ci) == 4);
	for (i = 0; i < (int)sizeof(*dead); i++)
		check(((uint8_t *)dead)[i] == 0xa5);
	free_cq(cq);
	free_qp(live);
	free(dead);
	free(srq);
}

/* The device went on in a second and a third ring before we looked. */
static void test_resized(void)
{
	struct qhca_qp *dead = new_qp(QHCA_QPT_RC, 64, 0, 1, 0);
	struct qhca_qp *live = new_qp(QHCA_QPT_RC, 64, 0, 1, 0);
	struct qhca_cq *cq = new_cq(3);
	struct qhca_cq_ring *second = qhca_cq_ring_new(&ctx, NULL, 15, 1);
	struct qhca_cq_ring *third = qhca_cq_ring_new(&ctx, NULL, 1, 1);
	struct ibv_wc wc[8];

	put_cqe(cq->ring, 0, live, 0, QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
	put_cqe(cq->ring, 1, dead, 0, QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
	put_cqe(cq->ring, 2, dead, 32, QHCA_CQE_RESIZED, 0);
	put_cqe(second, 0, dead, 1, QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
	put_cqe(second, 1, live, 1, QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
	put_cqe(second, 2, NULL, 36, QHCA_CQE_RESIZED, 0);
	put_cqe(third, 0, live, 2, QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
	cq->ring->next = second;
	second->next = third;

	/* One entry is removed in each of the first two; the numbers go on: 3, 3 + 3. */
	qhca_cq_clean(cq, NULL, dead);
	check(qhca_load(&cq->ring->rec->ci) == 1);
	check(!qhca_load(&second->rec->ci));
	qhca_arm_cq(&cq->vcq.cq, 0);
	/* All that can be polled was seen, through to the third ring. */
	check(take_doorbell(QHCA_DB_CQ_ARM) >> 32 == 37);

	check(qhca_poll_cq(&cq->vcq.cq, 8, wc) == 3);
	check(wc[0].wr_id == 1000 && wc[1].wr_id == 1001);
	check(wc[2].wr_id == 1002 && cq->ring == third);
	check(qhca_load(&third->rec->ci) == 37);
	qhca_arm_cq(&cq->vcq.cq, 0);
	check(take_doorbell(QHCA_DB_CQ_ARM) >> 32 == 37);

	/* The end of a ring alone is no completion, but it has been read. */
	second = qhca_cq_ring_new(&ctx, NULL, 1, 1);
	put_cqe(cq->ring, 1, NULL, 40, QHCA_CQE_RESIZED, 0);
	cq->ring->next = second;
	qhca_arm_cq(&cq->vcq.cq, 0);
	check(take_doorbell(QHCA_DB_CQ_ARM) >> 32 == 40);
	check(!qhca_poll_cq(&cq->vcq.cq, 8, wc) && cq->ring == second);
	qhca_arm_cq(&cq->vcq.cq, 0);
	check(take_doorbell(QHCA_DB_CQ_ARM) >> 32 == 40);
	free_cq(cq);
	free_qp(live);
	free_qp(dead);
}

/* Receives that are posted in ERR are flushed only if the device is rung. */
static void test_error_state(void)
{
	struct qhca_qp *qp = new_qp(QHCA_QPT_RC, 4, 4, 1, 0);
	struct ibv_recv_wr rwr = {}, *bad_rwr;
	struct qhca_cq *cq = new_cq(7);
	struct ibv_wc wc[4];

	check(!qhca_post_recv(&qp->vqp.qp, &rwr, &bad_rwr));
	check(!take_doorbell(QHCA_DB_SQ));
	put_cqe(cq->ring, 0, qp, 0, QHCA_CQE_RECV, 0);
	put_cqe(cq->ring, 1, qp, 0, QHCA_WQE_SEND, QHCA_CQE_REQUESTER);
	cq->ring->cqes[0].status = QHCA_WC_WR_FLUSH_ERR;
	cq->ring->cqes[1].status = QHCA_WC_WR_FLUSH_ERR;
	check(qhca_poll_cq(&cq->vcq.cq, 1, wc) == 1);
	check(wc[0].status == IBV_WC_WR_FLUSH_ERR);
	check(take_doorbell(QHCA_DB_SQ) == 0x1234);
	check(qhca_poll_cq(&cq->vcq.cq, 1, wc) == 1);
	check(!take_doorbell(QHCA_DB_SQ));
	check(!qhca_post_recv(&qp->vqp.qp, &rwr, &bad_rwr));
	check(take_doorbell(QHCA_DB_SQ) == 0x1234);
	free_cq(cq);
	free_qp(qp);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} tests[] = {
		{ "ring sizes", test_sizes },
		{ "send request layout and doorbell", test_send_layout },
		{ "send requests refused", test_send_refused },
		{ "raw frames", test_raw },
		{ "datagram and inline data", test_datagram },
		{ "extended posting", test_wr_api },
		{ "keys of windows", test_windows },
		{ "null region", test_null_region },
		{ "many passes", test_passes },
		{ "extended polling", test_extended_poll },
		{ "empty polls that the device is told of", test_polls },
		{ "empty polls in streams", test_polls_in_streams },
		{ "empty polls after a reset", test_polls_after_reset },
		{ "empty polls of a server", test_polls_of_server },
		{ "service level of datagrams", test_service_level },
		{ "removal of completions", test_clean },
		{ "completions outlive their queue", test_disown },
		{ "resized completion queue", test_resized },
		{ "error state", test_error_state },
		{ "shared receive queue", test_srq },
		{ "growing shared receive queue", test_srq_grows },
		{ "lock, with threads that begin late", test_lock },
	};
	const size_t num = sizeof(tests) / sizeof(tests[0]);
	int before, total = 0;
	size_t i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	init_context();
	printf("TAP version 13\n1..%zu\n", num);
	for (i = 0; i < num; i++) {
		before = failures;
		tests[i].run();
		printf("%sok %zu - %s\n", failures == before ? "" : "not ",
		       i + 1, tests[i].name);
		total += failures != before;
	}
	return total ? EXIT_FAILURE : EXIT_SUCCESS;
}
