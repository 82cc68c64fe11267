// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* What the tests of the record share (hostile.h). */
#include "alloc.h"
#include "frame.h"
#include "hostile.h"

void rig_connect(struct rig *r, struct md_qp *qp, uint32_t dest_qpn,
		 unsigned int host)
{
	struct md_conn c = {
		.dest_qpn = dest_qpn, .access = RIGHTS, .mtu = QHCA_MTU_256,
		.timeout = 8, .retry_cnt = 2, .rnr_retry = 2,
		.min_rnr_timer = 1, .max_rd_atomic = 1,
		.max_dest_rd_atomic = 1, .sq_psn = 7, .rq_psn = 7,
	};

	md_av(r->md, &c.av, host, false);
	md_qp_connect(r->md, qp, &c);
}

void rig_start(struct rig *r)
{
	struct md_init init = { .log_pt = 8, .log_qp = 5, .log_cq = 4,
				.log_srq = 3 };

	for (int c = 0; c < QHCA_NUM_CACHES; c++)
		init.cache[c] = (struct qhca_geometry){ 1, 1 };
	guard_forget();
	guard_mode = (struct guard_mode){ .fresh = true, .stain = 0x5a };
	r->g = guard_take(1);
	r->md = r->g->md;
	md_start(r->md, &init);
	guard_allow_driver(r->g);
}

void rig_allow_queue(struct rig *r, const struct md_buf *b,
		     uint32_t rec_offset)
{
	guard_allow_buf(r->g, b, rec_offset + 64, 64);
}

void rig_make_qp(struct rig *r, unsigned int i, struct md_srq *srq)
{
	struct md_qp_init init = {
		.type = QHCA_QPT_RC, .sq_log_depth = LOG_DEPTH,
		.sq_log_stride = LOG_STRIDE, .rq_log_depth = LOG_DEPTH,
		.rq_log_stride = LOG_RSTRIDE, .pd = PD, .send_cq = &r->cq,
		.recv_cq = &r->cq, .srq = srq,
	};

	assert_int_equal(md_qp_create(r->md, &r->qp[i], &init), QHCA_CMD_OK);
	rig_allow_queue(r, &r->qp[i].buf, r->qp[i].rec_offset);
}

void rig_new(struct rig *r, bool srq)
{
	memset(r, 0, sizeof(*r));
	rig_start(r);
	md_reg_mr(r->md, &r->mr, PD, IOVA, MR_LEN, RIGHTS);
	guard_allow_buf(r->g, &r->mr.buf, 0, MR_LEN);
	md_cq_create(r->md, &r->cq, 6);
	guard_allow_buf(r->g, &r->cq.buf, 0, r->cq.rec_offset);
	rig_allow_queue(r, &r->cq.buf, r->cq.rec_offset);
	if (srq)
		md_srq_create(r->md, &r->srq, PD, LOG_DEPTH, LOG_RSTRIDE, 0);
	rig_make_qp(r, 0, NULL);
	rig_make_qp(r, 1, srq ? &r->srq : NULL);
	rig_connect(r, &r->qp[0], r->qp[1].qpn, 1);
	rig_connect(r, &r->qp[1], r->qp[0].qpn, 1);
}

void rig_free(struct rig *r)
{
	guard_settle(r->g);
	guard_check_alive(r->g);
	guard_give(r->g);
	guard_check_heap();
}

int rig_cmd(struct rig *r, uint16_t opcode, uint32_t index, uint32_t param,
	    const void *in, uint32_t in_len)
{
	int status = guard_cmd(r->g, opcode, index, param, in, in_len);

	assert_int_not_equal(status, -1);
	return status;
}

void rig_ring(struct rig *r, struct md_qp *qp, uint32_t pi)
{
	guard_doorbell(r->g, 0, QHCA_DB_SQ, (uint64_t)pi << 32 | qp->qpn);
}

uint8_t rig_state(struct rig *r, unsigned int i)
{
	struct qhca_query_qp out;

	assert_int_equal(md_qp_query(r->md, &r->qp[i], &out), QHCA_CMD_OK);
	return out.ctx.state;
}

int rig_poll(struct rig *r)
{
	struct qhca_cqe cqe;

	guard_settle(r->g);
	return md_poll(&r->cq, &cqe) ? cqe.status : -1;
}

void rig_pass_time(struct rig *r, uint64_t ns)
{
	uint64_t until = r->md->host.now + ns;
	struct qhca_run_result res;

	while (r->md->host.now < until) {
		guard_settle(r->g);
		res = guard_run(r->g, 16);
		r->md->host.now = res.deadline < until ? res.deadline : until;
	}
	guard_settle(r->g);
}

void rig_assert_works(struct rig *r, uint32_t len)
{
	struct md_sge sge = { IOVA, len, r->mr.key };
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 1, .sge = &sge,
			    .flags = QHCA_WQE_F_SIGNALED };

	if (r->qp[1].init.srq)
		assert_true(md_srq_post(r->md, &r->srq, 1, &sge, 1));
	else
		md_post_recv(r->md, &r->qp[1], 1, &sge, 1);
	md_post_send(r->md, &r->qp[0], &wr);
	rig_ring(r, &r->qp[0], r->qp[0].sq_pi);
	assert_int_equal(rig_poll(r), QHCA_WC_SUCCESS);
	assert_int_equal(rig_poll(r), QHCA_WC_SUCCESS);
	assert_int_equal(rig_poll(r), -1);
}

void rig_watch(struct rig *r, uint64_t addr)
{
	r->g->change[0].addr = addr;
	r->g->change[0].value = *(uint8_t *)md_ptr(r->md, addr);
}

void rig_assert_not_read(struct rig *r)
{
	assert_int_not_equal(r->g->change[0].addr, 0);
	r->g->change[0].addr = 0;
}

bool rig_have_event(struct rig *r, uint8_t type)
{
	struct qhca_eqe eqe;
	bool found = false;

	while (md_event(r->md, &eqe))
		found |= eqe.type == type;
	return found;
}

void rig_fill_qp(struct rig *r, struct qhca_qpc_sw *in)
{
	memset(in, 0, sizeof(*in));
	put_le64(&in->buf.base, md_alloc(r->md, RECORD + 128, MD_PAGE));
	put_le32(&in->buf.length, RECORD + 128);
	put_le32(&in->rq_offset, 4096);
	put_le32(&in->rec_offset, RECORD);
	put_le16(&in->flags, QHCA_QP_HAS_SQ | QHCA_QP_HAS_RQ);
	in->sq_log_depth = in->rq_log_depth = LOG_DEPTH;
	in->sq_log_stride = LOG_STRIDE;
	in->rq_log_stride = LOG_RSTRIDE;
	in->sq_max_sge = 4;
	in->rq_max_sge = 3;
}

void rig_fill_init(struct qhca_init_hca *in, uint16_t sets)
{
	memset(in, 0, sizeof(*in));
	for (int t = 0; t < QHCA_NUM_TABLES; t++) {
		in->table[t].log_entries = 3;
		in->table[t].log_chunk = 13;
	}
	for (int c = 0; c < QHCA_NUM_CACHES; c++) {
		put_le16(&in->cache[c].sets, sets);
		put_le16(&in->cache[c].blocks, 1);
	}
}

/* INIT_HCA is what allocates: by the geometry, which is bounded. */

void rig_answer(struct rig *r, struct md_qp *qp, uint8_t opcode, uint32_t psn)
{
	struct hca_pkt pkt = {
		.opcode = opcode, .dest_qpn = qp->qpn, .psn = psn,
		.pkey = HCA_PKEY_DEFAULT, .syndrome = HCA_AETH_NO_CREDITS,
	};
	struct hca_path path = { .vlan = 0xffff, .hop_limit = 64 };
	struct frame f;

	memcpy(path.dmac, r->md->mac, 6);
	memcpy(path.smac, r->md->mac, 6);
	memcpy(path.dgid, r->md->gid, 16);
	memcpy(path.sgid, r->md->gid, 16);
	path.sgid[15] = path.smac[5] = 2;
	frame_build(&f, &path, &pkt, 0);
	frame_fix(&f, FRAME_ALL);
	guard_rx(r->g, f.data, f.len);
}
