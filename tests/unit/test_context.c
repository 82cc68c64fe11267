// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <unistd.h>

#include "qp_setup.h"
#include "transport/transport.h"

/* An endless loop of the engine ends the test program. */
#define TOO_LONG	20	/* seconds */

static struct qhca_qpc *context_of(struct host *h, uint32_t qpn)
{
	uint64_t addr;

	assert_true(hca_table_entry(h->fn, QHCA_TABLE_QP, qpn, &addr));
	return host_ptr(h, addr);
}

/* A QP in RTS or SQD that has sent nothing, and whose context is in memory only. */
static struct host *evicted(uint8_t state, struct qhca_qpc_sw *sw,
			    struct hca_qpc_hw **hw)
{
	struct host *h = ready((struct qhca_geometry){ 1, 1 });
	struct qhca_qpc_sw other = good(h);

	*sw = good(h);
	assert_int_equal(create(h, QPN, sw), QHCA_CMD_OK);
	assert_int_equal(create(h, QPN + 1, &other), QHCA_CMD_OK);
	to_rts(h, QPN);
	if (state == QHCA_QPS_SQD)
		assert_int_equal(modify(h, QPN, state, 0, NULL), QHCA_CMD_OK);
	host_run(h);
	to_rts(h, QPN + 1);		/* evicts the first */
	host_run(h);
	assert_null(hca_ctx_peek(h->fn, &h->fn->hca->cache.qd, QPN));
	*hw = (void *)context_of(h, QPN)->hw;
	return h;
}

static void ring(struct host *h, uint32_t pi)
{
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, (uint64_t)pi << 32 | QPN, h->now);
	host_run(h);
}

/*
 * Whatever software writes over a context in memory, the engine continues or reports that
 * the context is corrupt.
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
		qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, 1ull << 32 | QPN, 0);
		host_run_at(h, 1000);
		host_run_at(h, 3000000000);
		fatal += hca_is_dead(h->fn);
		host_free(h);
	}
	assert_true(fatal > 20);		/* the check does check */
}

/* A context whose parts are in states that exclude each other is corrupt. */
static void test_impossible_parts(void **state)
{
	static const struct {
		size_t offset;
		uint8_t value;
	} parts[] = {
		{ offsetof(struct hca_qpc_hw, s_state), HCA_NUM_REQ },
		{ offsetof(struct hca_qpc_hw, r_state), HCA_RESP_STOPPED },
		{ offsetof(struct hca_qpc_hw, r_state), HCA_RESP_DROPPING },
		{ offsetof(struct hca_qpc_hw, f_req), HCA_NUM_REQF },
		{ offsetof(struct hca_qpc_hw, f_resp), HCA_RESPF_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct host *h = ready((struct qhca_geometry){ 1, 1 });
		struct qhca_qpc_sw sw = good(h), other = good(h);
		uint64_t addr;

		assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
		assert_int_equal(create(h, QPN + 1, &other), QHCA_CMD_OK);
		to_rts(h, QPN);
		to_rts(h, QPN + 1);		/* evicts the first */
		assert_true(hca_table_entry(h->fn, QHCA_TABLE_QP, QPN, &addr));
		addr += offsetof(struct qhca_qpc, hw) + parts[i].offset;
		*(uint8_t *)host_ptr(h, addr) = parts[i].value;
		assert_null(hca_qp_get(h->fn, QPN));
		host_free(h);
	}
}

/* The QP is rung for when the first PSN of its oldest WQE is @from that in s_una. */
static struct host *rung_with_oldest(uint8_t qp_state, uint32_t from)
{
	struct qhca_qpc_sw sw;
	struct hca_qpc_hw *hw;
	struct host *h = evicted(qp_state, &sw, &hw);
	uint32_t psn = hca_psn_add(get_le32(&hw->s_una), from);

	put_le32(&hw->s_ci_psn, psn);
	put_le32(&hw->s_cur_psn, psn);
	alarm(TOO_LONG);
	ring(h, 0);
	alarm(0);
	return h;
}

static const uint8_t sending_states[] = { QHCA_QPS_RTS, QHCA_QPS_SQD };

/*
 * The first PSN of the oldest WQE is ahead of the oldest PSN that is not acknowledged: there
 * is nothing that the requester could ask for again.
 */
static void test_oldest_ahead(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct host *h = rung_with_oldest(sending_states[i], 10);

		assert_true(hca_is_dead(h->fn));
		assert_int_equal(QHCA_GET(QHCA_STATUS_FATAL_CAUSE, h->fn->status),
				 QHCA_FATAL_CONTEXT);
		host_free(h);
	}
}

/* The farthest that the PSNs may be apart is not an endless loop either. */
static void test_oldest_far_behind(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		/* As many back as ahead. */
		struct host *h = rung_with_oldest(sending_states[i], HCA_PSN_HALF);

		assert_false(hca_is_dead(h->fn));
		assert_int_equal(h->num_sent, 0);
		host_free(h);
	}
}

/*
 * Two packets of the oldest WQE are acknowledged, and then software makes it a WQE of one
 * packet: the QP ends, and s_una does not run away from the WQE.
 */
static void test_oldest_changed(void **state)
{
	struct qhca_qpc_sw sw;
	struct hca_qpc_hw *hw;
	struct host *h = evicted(QHCA_QPS_RTS, &sw, &hw);
	uint32_t psn = get_le32(&hw->s_una);
	uint8_t *ring_of = host_ptr(h, get_le64(&sw.buf.base));

	(void)state;
	put_le32(&hw->sq_pi, 1);
	put_le32(&hw->sq_cur, 1);
	put_le32(&hw->sq_max, 1);
	put_le32(&hw->s_una, hca_psn_add(psn, 2));
	put_le32(&hw->s_psn, hca_psn_add(psn, 3));
	put_le32(&hw->s_max, hca_psn_add(psn, 3));
	put_le32(&hw->s_cur_psn, hca_psn_add(psn, 3));
	put_le32(&hw->s_asked, hca_psn_add(psn, 3));
	ring_of[0] = QHCA_WQE_SEND;
	ring_of[128] = QHCA_WQE_NOP;
	ring(h, 2);
	assert_false(hca_is_dead(h->fn));
	assert_int_equal(h->fn->qps.slot[QPN].state, QHCA_QPS_ERR);
	host_free(h);
}

/* Gives @sw a send queue of 1,024 WQEs of one kind. */
static uint8_t *fill_long_ring(struct host *h, struct qhca_qpc_sw *sw, uint8_t opcode)
{
	uint8_t *wqes;

	sw->sq_log_depth = 10;
	put_le64(&sw->buf.base, host_alloc(h, 1 << 18, 4096));
	put_le32(&sw->buf.length, 1 << 18);
	put_le32(&sw->rq_offset, 1 << 17);
	put_le32(&sw->rec_offset, (1 << 17) + 4096);
	wqes = host_ptr(h, get_le64(&sw->buf.base));
	for (uint32_t i = 0; i < 1024; i++)
		wqes[128 * i] = opcode;
	return wqes;
}

/* A context in which more has been begun than a requester begins is corrupt. */
static void test_too_much_begun(void **state)
{
	(void)state;
	for (uint32_t over = 0; over < 2; over++) {
		struct host *h = ready((struct qhca_geometry){ 1, 1 });
		struct qhca_qpc_sw sw = good(h), other = good(h);
		struct hca_qpc_hw *hw;
		uint64_t reads;

		fill_long_ring(h, &sw, QHCA_WQE_NOP);
		assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
		assert_int_equal(create(h, QPN + 1, &other), QHCA_CMD_OK);
		to_rts(h, QPN);
		host_run(h);
		to_rts(h, QPN + 1);
		host_run(h);
		hw = (void *)context_of(h, QPN)->hw;
		put_le32(&hw->sq_pi, HCA_SEND_BEGUN + over);
		put_le32(&hw->sq_max, HCA_SEND_BEGUN + over);
		put_le32(&hw->sq_cur, HCA_SEND_BEGUN + over - 1);
		reads = h->reads;
		ring(h, 0);
		assert_int_equal(hca_is_dead(h->fn), over);
		if (!over)
			assert_true(h->reads - reads >= HCA_SEND_BEGUN);
		host_free(h);
	}
}

static void uc_to_rts(struct host *h, uint32_t qpn)
{
	struct qhca_qpc_sw sw = attributes();
	uint32_t to_rtr = QHCA_QP_ATTR_AV | QHCA_QP_ATTR_PATH_MTU |
			  QHCA_QP_ATTR_DEST_QPN | QHCA_QP_ATTR_RQ_PSN;

	assert_int_equal(modify(h, qpn, QHCA_QPS_INIT, TO_INIT, &sw), 0);
	assert_int_equal(modify(h, qpn, QHCA_QPS_RTR, to_rtr, &sw), 0);
	assert_int_equal(modify(h, qpn, QHCA_QPS_RTS, QHCA_QP_ATTR_SQ_PSN, &sw), 0);
}

/*
 * Software makes the oldest WQE of an unreliable QP longer while the device sends it.  It
 * is never complete then, and what is posted after it waits, so that the device writes no
 * context that it would refuse.
 */
static void test_oldest_grows(void **state)
{
	struct host *h = ready((struct qhca_geometry){ 1, 1 });
	struct qhca_qpc_sw sw = good(h), other = good(h);
	struct qhca_sge *sge;
	struct hca_qpc_hw *hw;
	uint8_t *wqes;

	(void)state;
	sw.type = QHCA_QPT_UC;
	wqes = fill_long_ring(h, &sw, QHCA_WQE_SEND);
	wqes[offsetof(struct qhca_sq_wqe, num_sge)] = 1;
	sge = (void *)(wqes + sizeof(struct qhca_sq_wqe));
	put_le32(&sge->length, 1u << 30);
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	assert_int_equal(create(h, QPN + 1, &other), QHCA_CMD_OK);
	uc_to_rts(h, QPN);
	host_run(h);
	to_rts(h, QPN + 1);		/* evicts the first */
	host_run(h);
	hw = (void *)context_of(h, QPN)->hw;
	put_le32(&hw->sq_pi, HCA_SEND_BEGUN - 1);
	put_le32(&hw->sq_max, HCA_SEND_BEGUN - 1);
	put_le32(&hw->sq_cur, HCA_SEND_BEGUN - 1);
	ring(h, HCA_SEND_BEGUN + 100);
	assert_false(hca_is_dead(h->fn));
	assert_int_equal(h->num_sent, 1);
	assert_int_equal(hca_qp_get(h->fn, QPN)->sq_max, HCA_SEND_BEGUN);
	assert_non_null(hca_qp_get(h->fn, QPN + 1));	/* evicts it again */
	assert_non_null(hca_qp_get(h->fn, QPN));
	assert_false(hca_is_dead(h->fn));
	host_free(h);
}

/* In SQD the device takes no posts, although the context says that it watches them. */
static void test_active_when_drained(void **state)
{
	struct qhca_qpc_sw sw;
	struct hca_qpc_hw *hw;
	struct host *h = evicted(QHCA_QPS_SQD, &sw, &hw);
	uint64_t record = get_le64(&sw.buf.base) + get_le32(&sw.rec_offset);

	(void)state;
	hw->s_flags |= HCA_SF_ACTIVE;
	put_le32(host_ptr(h, record), 5);
	ring(h, 0);
	assert_false(hca_is_dead(h->fn));
	assert_int_equal(hca_qp_get(h->fn, QPN)->sq_pi, 0);
	host_free(h);
}

/* An unreliable QP owes nobody an answer. */
static void test_impossible_answer(void **state)
{
	(void)state;
	for (int reliable = 0; reliable < 2; reliable++) {
		struct host *h = ready((struct qhca_geometry){ 1, 1 });
		struct qhca_qpc_sw sw = good(h), other = good(h);
		struct hca_qpc_hw *hw;

		sw.type = reliable ? QHCA_QPT_RC : QHCA_QPT_UC;
		assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
		assert_int_equal(create(h, QPN + 1, &other), QHCA_CMD_OK);
		if (reliable)
			to_rts(h, QPN);
		else
			uc_to_rts(h, QPN);
		host_run(h);
		to_rts(h, QPN + 1);		/* evicts the first */
		host_run(h);
		hw = (void *)context_of(h, QPN)->hw;
		put_le32(&hw->res[0].psn, HCA_RES_READ << 24);
		put_le32(&hw->res[0].start, (uint32_t)HCA_RES_F_PENDING << 24);
		put_le64(&hw->res[0].value, 4096);
		hw->res_pending = 1;
		assert_int_equal(!!hca_qp_get(h->fn, QPN), reliable);
		assert_int_equal(hca_is_dead(h->fn), !reliable);
		host_free(h);
	}
}

/* The record of a fault that waits is the one that the device has made, in parts at least. */
static void test_impossible_fault(void **state)
{
	const uint32_t token = QPN | HCA_FAULT_TOKEN_DIR | 1u << 24;
	const struct {
		uint32_t cause, token;
		bool sane;
	} records[] = {
		{ QHCA_FAULT_GATHER, token, true },
		{ QHCA_FAULT_SCATTER, token, true },
		{ 0, token, false },
		{ QHCA_FAULT_RECV, token, false },
		{ QHCA_FAULT_COMMAND, token, false },
		{ 15, token, false },
		{ QHCA_FAULT_GATHER, token + 1, false },
		{ QHCA_FAULT_GATHER, token & ~HCA_FAULT_TOKEN_DIR, false },
		{ QHCA_FAULT_GATHER, token & ~HCA_FAULT_TOKEN_GEN, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(records) / sizeof(records[0]); i++) {
		struct qhca_qpc_sw sw;
		struct hca_qpc_hw *hw;
		struct host *h = evicted(QHCA_QPS_RTS, &sw, &hw);
		struct hca_fault_hw *fault = &hw->fault[HCA_FAULT_DIR_REQ];

		hw->f_req = records[i].cause == QHCA_FAULT_SCATTER ?
			    HCA_REQF_SCATTER : HCA_REQF_GATHER;
		put_le32(&fault->flags, QHCA_PUT(QHCA_FAULT_CAUSE, records[i].cause));
		put_le32(&fault->token, records[i].token);
		assert_int_equal(!!hca_qp_get(h->fn, QPN), records[i].sane);
		assert_int_equal(hca_is_dead(h->fn), !records[i].sane);
		host_free(h);
	}
}

/* An event names the function that has the fault, whatever the record says of that. */
static void test_fault_of_another(void **state)
{
	const struct hca_fault f = {
		.flags = QHCA_FAULT_STAGE2 | QHCA_PUT(QHCA_FAULT_GVMI, 2u),
	};
	struct host *h = ready((struct qhca_geometry){ 1, 1 });
	struct qhca_fault_info info;

	(void)state;
	h->fn->cfg.gvmi = 1;
	hca_fault_fill_info(h->fn, &f, &info);
	h->fn->cfg.gvmi = 0;
	assert_int_equal(get_le32(&info.flags),
			 QHCA_FAULT_STAGE2 | QHCA_PUT(QHCA_FAULT_GVMI, 1u));
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_scribbled_context),
	cmocka_unit_test(test_oldest_ahead),
	cmocka_unit_test(test_oldest_far_behind),
	cmocka_unit_test(test_oldest_changed),
	cmocka_unit_test(test_too_much_begun),
	cmocka_unit_test(test_oldest_grows),
	cmocka_unit_test(test_active_when_drained),
	cmocka_unit_test(test_impossible_parts),
	cmocka_unit_test(test_impossible_answer),
	cmocka_unit_test(test_impossible_fault),
	cmocka_unit_test(test_fault_of_another),
};
TEST_MAIN(tests)
