/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * A host that can have QPs, and commands on them.
 */
#ifndef QHCA_TEST_QP_SETUP_H
#define QHCA_TEST_QP_SETUP_H

#include "unit.h"

#define QPN	5
#define CQN	3

static const uint8_t peer_gid[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };

/* A host with EQ 0, a CQ and a GID. */
static inline struct host *ready(struct qhca_geometry qd)
{
	struct host *h = host_new_cache(QHCA_CACHE_QD, qd.sets, qd.blocks);
	struct qhca_port_config port = { 0 };
	struct qhca_gid_entry gid = { 0 };
	struct ring eq = host_ring(h, 6), cq = host_ring(h, 6);

	assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
	assert_int_equal(host_create_cq(h, CQN, &cq, 0), QHCA_CMD_OK);
	memcpy(gid.gid, peer_gid, 16);
	gid.gid[15] = 1;
	gid.smac[0] = 2;
	put_le16(&gid.vlan, QHCA_GID_NO_VLAN);
	put_le32(&gid.flags, QHCA_GID_VALID | QHCA_GID_IPV4);
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_GID, 0, 0, &gid, sizeof(gid),
				  NULL, 0), QHCA_CMD_OK);
	put_le32(&port.fields, QHCA_PORT_SET_MTU);
	put_le32(&port.eth_mtu, 4200);
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_PORT, 0, 0, &port,
				  sizeof(port), NULL, 0), QHCA_CMD_OK);
	return h;
}

/* SQ of 8 x 128 at 0, RQ of 4 x 64 at 1024, record at 1280. */
static inline struct qhca_qpc_sw good(struct host *h)
{
	struct qhca_qpc_sw sw = { .type = QHCA_QPT_RC };

	put_le64(&sw.buf.base, host_alloc(h, 4096, 4096));
	put_le32(&sw.buf.length, 1280 + 128);
	sw.buf.page_shift = 12;
	put_le16(&sw.flags, QHCA_QP_HAS_SQ | QHCA_QP_HAS_RQ);
	sw.sq_log_depth = 3;
	sw.sq_log_stride = 7;
	sw.sq_max_sge = 4;
	put_le16(&sw.max_inline, 64);
	put_le32(&sw.rq_offset, 1024);
	sw.rq_log_depth = 2;
	sw.rq_log_stride = 6;
	sw.rq_max_sge = 3;
	put_le32(&sw.rq_threshold, 1);
	put_le32(&sw.rec_offset, 1280);
	put_le32(&sw.pd, 1);
	put_le32(&sw.send_cqn, CQN);
	put_le32(&sw.recv_cqn, CQN);
	return sw;
}

static inline int create(struct host *h, uint32_t qpn, const struct qhca_qpc_sw *sw)
{
	return host_cmd(h, QHCA_CMD_CREATE_QP, qpn, 0, sw, sizeof(*sw), NULL,
			0);
}

static inline int destroy(struct host *h, uint32_t qpn)
{
	return host_cmd(h, QHCA_CMD_DESTROY_QP, qpn, 0, NULL, 0, NULL, 0);
}

static inline int modify(struct host *h, uint32_t qpn, uint8_t state, uint32_t mask,
			 const struct qhca_qpc_sw *ctx)
{
	struct qhca_modify_qp in = { 0 };

	if (ctx)
		in.ctx = *ctx;
	in.ctx.state = state;
	put_le32(&in.attr_mask, mask | QHCA_QP_ATTR_STATE);
	return host_cmd(h, QHCA_CMD_MODIFY_QP, qpn, 0, &in, sizeof(in), NULL,
			0);
}

static inline struct qhca_qpc_sw attributes(void)
{
	struct qhca_qpc_sw sw = { .path_mtu = QHCA_MTU_1024, .timeout = 14,
				  .retry_cnt = 7, .rnr_retry = 7,
				  .max_rd_atomic = 4, .max_dest_rd_atomic = 4 };

	memcpy(sw.av.dgid, peer_gid, 16);
	sw.av.dmac[0] = 2;
	sw.av.dmac[5] = 9;
	put_le32(&sw.dest_qpn, 77);
	return sw;
}

#define TO_INIT	(QHCA_QP_ATTR_PKEY_INDEX | QHCA_QP_ATTR_ACCESS)
#define TO_RTR	(QHCA_QP_ATTR_AV | QHCA_QP_ATTR_PATH_MTU | \
		 QHCA_QP_ATTR_DEST_QPN | QHCA_QP_ATTR_RQ_PSN | \
		 QHCA_QP_ATTR_MAX_DEST_RD_ATOMIC | QHCA_QP_ATTR_MIN_RNR_TIMER)
#define TO_RTS	(QHCA_QP_ATTR_SQ_PSN | QHCA_QP_ATTR_TIMEOUT | \
		 QHCA_QP_ATTR_RETRY_CNT | QHCA_QP_ATTR_RNR_RETRY | \
		 QHCA_QP_ATTR_MAX_RD_ATOMIC)

static inline void to_rts(struct host *h, uint32_t qpn)
{
	struct qhca_qpc_sw sw = attributes();

	assert_int_equal(modify(h, qpn, QHCA_QPS_INIT, TO_INIT, &sw), 0);
	assert_int_equal(modify(h, qpn, QHCA_QPS_RTR, TO_RTR, &sw), 0);
	assert_int_equal(modify(h, qpn, QHCA_QPS_RTS, TO_RTS, &sw), 0);
}

#endif /* QHCA_TEST_QP_SETUP_H */
