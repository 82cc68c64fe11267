// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "host.h"

#define QPN	5
#define CQN	3

static const uint8_t peer_gid[16] = { [10] = 0xff, 0xff, 10, 0, 0, 2 };

/* A host with EQ 0, a CQ and a GID. */
static struct host *ready(struct qhca_geometry qd)
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
static struct qhca_qpc_sw good(struct host *h)
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

static int create(struct host *h, uint32_t qpn, const struct qhca_qpc_sw *sw)
{
	return host_cmd(h, QHCA_CMD_CREATE_QP, qpn, 0, sw, sizeof(*sw), NULL,
			0);
}

static int destroy(struct host *h, uint32_t qpn)
{
	return host_cmd(h, QHCA_CMD_DESTROY_QP, qpn, 0, NULL, 0, NULL, 0);
}

static int modify(struct host *h, uint32_t qpn, uint8_t state, uint32_t mask,
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

static struct qhca_qpc_sw attributes(void)
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

static void to_rts(struct host *h, uint32_t qpn)
{
	struct qhca_qpc_sw sw = attributes();

	assert_int_equal(modify(h, qpn, QHCA_QPS_INIT, TO_INIT, &sw), 0);
	assert_int_equal(modify(h, qpn, QHCA_QPS_RTR, TO_RTR, &sw), 0);
	assert_int_equal(modify(h, qpn, QHCA_QPS_RTS, TO_RTS, &sw), 0);
}

static void test_create_destroy(void **state)
{
	struct host *h = ready((struct qhca_geometry){ 4, 2 });
	struct qhca_qpc_sw sw = good(h);

	(void)state;
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_IN_USE);
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_CQ, CQN, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_IN_USE);
	assert_int_equal(destroy(h, QPN), QHCA_CMD_OK);
	assert_int_equal(destroy(h, QPN), QHCA_CMD_BAD_STATE);
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	assert_int_equal(destroy(h, QPN), QHCA_CMD_OK);
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_CQ, CQN, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
	host_free(h);
}

/* Each mistake alone is enough. */
static void test_create_refused(void **state)
{
	struct host *h = ready((struct qhca_geometry){ 4, 2 });
	const struct qhca_qpc_sw sw = good(h);
	struct qhca_qpc_sw bad;

#define REFUSED(status, change) \
	do { \
		bad = sw; \
		change; \
		assert_int_equal(create(h, QPN, &bad), status); \
	} while (0)
#define BAD(change)	REFUSED(QHCA_CMD_BAD_PARAM, change)

	(void)state;
	BAD(bad.type = QHCA_QPT_RAW + 1);
	BAD(bad.type = QHCA_QPT_GSI);
	BAD(bad.state = QHCA_QPS_INIT);
	BAD(put_le32(&bad.db_page, 0xffffffff));
	BAD(bad.sq_log_depth = 4);		/* runs over the buffer's end */
	BAD(bad.sq_log_depth = 32);
	BAD(bad.sq_log_depth = 255);
	BAD(bad.sq_log_stride = 6);
	BAD(bad.sq_log_stride = 11);
	BAD(bad.sq_log_stride = 200);
	BAD(bad.sq_max_sge = 5);
	BAD(bad.sq_max_sge = 255);
	BAD(put_le16(&bad.max_inline, 65));
	BAD(put_le32(&bad.sq_offset, 64));	/* not a multiple of 128 */
	BAD(put_le32(&bad.sq_offset, 0xffffff80));
	BAD(bad.rq_log_depth = 3);
	BAD(bad.rq_log_stride = 4);
	BAD(bad.rq_log_stride = 64);
	BAD(bad.rq_max_sge = 4);
	BAD(put_le32(&bad.rq_offset, 1024 + 32));
	BAD(put_le32(&bad.rq_threshold, 5));
	BAD(put_le32(&bad.rec_offset, 1344));
	BAD(put_le32(&bad.rec_offset, 1408));
	BAD(put_le32(&bad.rec_offset, 0xffffff80));
	BAD(put_le32(&bad.buf.length, 1407));
	BAD(bad.buf.levels = 6);
	BAD(put_le16(&bad.flags, QHCA_QP_HAS_RQ | QHCA_QP_SRQ));
	REFUSED(QHCA_CMD_BAD_STATE, put_le32(&bad.send_cqn, CQN + 1));
	REFUSED(QHCA_CMD_BAD_STATE, put_le32(&bad.recv_cqn, CQN + 1));
	assert_int_equal(create(h, 0, &sw), QHCA_CMD_BAD_INDEX);
	assert_int_equal(create(h, 0xffffff, &sw), QHCA_CMD_BAD_INDEX);
	assert_int_equal(create(h, 1, &sw), QHCA_CMD_BAD_PARAM);
	/* no reference was left behind */
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_CQ, CQN, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_OK);
	host_free(h);
}

static void test_attributes_refused(void **state)
{
	struct host *h = ready((struct qhca_geometry){ 1, 1 });
	struct qhca_qpc_sw sw = good(h), ok = attributes(), bad;

#define RTR(change) \
	do { \
		bad = ok; \
		change; \
		assert_int_equal(modify(h, QPN, QHCA_QPS_RTR, TO_RTR, &bad), \
				 QHCA_CMD_BAD_PARAM); \
	} while (0)

	(void)state;
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	assert_int_equal(modify(h, QPN, QHCA_QPS_INIT, TO_INIT, &ok), 0);
	RTR(bad.path_mtu = 0);
	RTR(bad.path_mtu = 6);
	RTR(bad.max_dest_rd_atomic = 17);
	RTR(bad.min_rnr_timer = 32);
	RTR(put_le32(&bad.rq_psn, 1u << 24));
	RTR(put_le32(&bad.dest_qpn, 1u << 24));
	RTR(bad.av.sgid_index = 1);
	RTR(memset(bad.av.dgid, 0, 16));
	RTR(bad.av.dgid[0] = 0xfe);		/* another family */
	RTR(bad.av.dmac[0] = 3);
	RTR(memset(bad.av.dmac, 0, 6));
	RTR(bad.av.sl = 16);
	RTR(put_le32(&bad.av.flow_label, 1u << 20));
	assert_int_equal(modify(h, QPN, QHCA_QPS_RTR, TO_RTR, &ok), 0);
	bad = ok;
	bad.timeout = 32;
	assert_int_equal(modify(h, QPN, QHCA_QPS_RTS, TO_RTS, &bad),
			 QHCA_CMD_BAD_PARAM);
	bad = ok;
	bad.retry_cnt = 8;
	assert_int_equal(modify(h, QPN, QHCA_QPS_RTS, TO_RTS, &bad),
			 QHCA_CMD_BAD_PARAM);
	assert_int_equal(modify(h, QPN, QHCA_QPS_RTS, TO_RTS, &ok), 0);
	assert_int_equal(destroy(h, QPN), QHCA_CMD_OK);
	host_free(h);
}

/* What is queried is what was set, through a cache of one line. */
static void test_query(void **state)
{
	struct host *h = ready((struct qhca_geometry){ 1, 1 });
	struct qhca_qpc_sw sw = good(h), other = good(h);
	struct qhca_query_qp q;

	(void)state;
	put_le64(&sw.handle, 0x1122334455667788);
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	assert_int_equal(create(h, QPN + 1, &other), QHCA_CMD_OK);
	to_rts(h, QPN);
	to_rts(h, QPN + 1);
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_QP, QPN, 0, NULL, 0, &q,
				  sizeof(q)), QHCA_CMD_OK);
	assert_int_equal(q.ctx.state, QHCA_QPS_RTS);
	assert_int_equal(q.ctx.path_mtu, QHCA_MTU_1024);
	assert_int_equal(get_le64(&q.ctx.handle), 0x1122334455667788);
	assert_int_equal(get_le32(&q.ctx.dest_qpn), 77);
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_QP, QPN + 2, 0, NULL, 0, &q,
				  sizeof(q)), QHCA_CMD_BAD_STATE);
	host_free(h);
}

/*
 * Whatever a context in memory is scribbled over with, the engine goes on
 * or says that it is corrupt.
 */
static void test_scribbled_context(void **state)
{
	uint64_t seed = 11, fatal = 0;

	(void)state;
	for (int round = 0; round < 400; round++) {
		struct host *h = ready((struct qhca_geometry){ 1, 1 });
		struct qhca_qpc_sw sw = good(h), other = good(h);
		uint64_t addr;
		uint8_t *c;

		assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
		assert_int_equal(create(h, QPN + 1, &other), QHCA_CMD_OK);
		to_rts(h, QPN);
		to_rts(h, QPN + 1);		/* evicts the first */
		assert_true(hca_table_entry(h->fn, QHCA_TABLE_QP, QPN,
					    &addr));
		c = host_ptr(h, addr);
		for (int n = 1 + host_random(&seed) % 8; n; n--)
			c[host_random(&seed) % 1024] = host_random(&seed);
		qhca_doorbell(h->hca, 0, QHCA_DB_SQ, 1ull << 32 | QPN, 0);
		host_run_at(h, 1000);
		host_run_at(h, 3000000000);
		fatal += hca_is_dead(h->fn);
		host_free(h);
	}
	assert_true(fatal > 20);		/* the check does check */
}

static void test_doorbell_states(void **state)
{
	struct host *h = ready((struct qhca_geometry){ 1, 1 });
	struct qhca_qpc_sw sw = good(h);
	uint64_t value = (uint64_t)1 << 32 | QPN;

	(void)state;
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	qhca_doorbell(h->hca, 0, QHCA_DB_SQ, value, 0);
	assert_int_equal(COUNT(h, doorbells_ignored), 1);
	to_rts(h, QPN);
	qhca_doorbell(h->hca, 1, QHCA_DB_SQ, value, 0);
	assert_int_equal(COUNT(h, doorbells_ignored), 2);
	qhca_doorbell(h->hca, 0, QHCA_DB_SQ, value, 0);
	assert_int_equal(COUNT(h, doorbells_ignored), 2);
	assert_int_equal(COUNT(h, sq_doorbells), 1);
	assert_int_equal(destroy(h, QPN), QHCA_CMD_OK);
	host_run(h);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_create_destroy),
	cmocka_unit_test(test_create_refused),
	cmocka_unit_test(test_attributes_refused),
	cmocka_unit_test(test_query),
	cmocka_unit_test(test_scribbled_context),
	cmocka_unit_test(test_doorbell_states),
};

TEST_MAIN(tests)
