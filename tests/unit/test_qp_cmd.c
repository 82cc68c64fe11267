// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "qp_setup.h"

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

/* The device refuses a QP for each mistake alone. */
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
	/* No reference was left behind. */
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

/* QUERY_QP returns what MODIFY_QP has set, through a cache of one line. */
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

static void test_doorbell_states(void **state)
{
	struct host *h = ready((struct qhca_geometry){ 1, 1 });
	struct qhca_qpc_sw sw = good(h);
	uint64_t value = (uint64_t)1 << 32 | QPN;

	(void)state;
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, value, 0);
	assert_int_equal(COUNT(h, doorbells_ignored), 1);
	to_rts(h, QPN);
	qhca_doorbell(h->hca, 0, 1, QHCA_DB_SQ, value, 0);
	assert_int_equal(COUNT(h, doorbells_ignored), 2);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, value, 0);
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
	cmocka_unit_test(test_doorbell_states),
};

TEST_MAIN(tests)
