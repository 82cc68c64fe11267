// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A machine that moves while its function may make no DMA: contexts and work travel in
 * the image, and are in memory before anything is read there again.
 */
#include "image/image.h"
#include "mode.h"
#include "qp_setup.h"

static char err[300];

static uint64_t accesses(const struct host *h)
{
	return h->reads + h->writes;
}

static void post(struct host *h, uint32_t qpn, const struct qhca_qpc_sw *sw)
{
	((uint8_t *)host_ptr(h, get_le64(&sw->buf.base)))[0] = QHCA_WQE_SEND;
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, 1ull << 32 | qpn, h->now);
	host_run(h);
}

/* Two QPs with a packet outstanding, one of them not cached; a CQ with a CQE. */
static struct host *at_work(void)
{
	struct host *h = ready((struct qhca_geometry){ 1, 1 });
	struct qhca_qpc_sw sw = good(h), other = good(h);
	struct qhca_cqe cqe = { 0 };

	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	assert_int_equal(create(h, QPN + 1, &other), QHCA_CMD_OK);
	to_rts(h, QPN);
	to_rts(h, QPN + 1);
	post(h, QPN, &sw);
	post(h, QPN + 1, &other);
	assert_true(hca_cq_post(h->fn, CQN, &cqe));
	assert_null(hca_ctx_peek(h->fn, &h->fn->hca->cache.qd, QPN));
	return h;
}

static void check_goes_on(struct host *h, const uint64_t *deadline)
{
	const struct hca_cq *cq;

	for (uint32_t i = 0; i < 2; i++) {
		const struct hca_qp *qp = hca_qp_get(h->fn, QPN + i);

		assert_non_null(qp);
		assert_int_equal(qp->s_max - qp->s_una, 1);
		assert_int_equal(h->fn->qps.slot[QPN + i].deadline, deadline[i]);
		assert_int_not_equal(h->fn->qps.slot[QPN + i].heap_pos, 0);
	}
	cq = hca_ctx_get(h->fn, &h->fn->hca->cache.cq, CQN);
	assert_int_equal(cq->pi, 1);
	assert_int_equal(h->fn->cqs.slot[CQN].refs, 4);
	assert_false(hca_is_dead(h->fn));
}

static void test_moves(void **state)
{
	struct host *h = at_work();
	uint64_t deadline[2], before, ignored;

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		deadline[i] = h->fn->qps.slot[QPN + i].deadline;
	h->no_dma = true;
	before = accesses(h);
	host_move(h, 1000);
	host_move(h, 77);		/* again, before anything could be written */
	ignored = COUNT(h, doorbells_ignored);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, 1ull << 32 | QPN, host_clock(h));
	assert_int_equal(COUNT(h, doorbells_ignored), ignored + 1);
	assert_false(qhca_run(h->hca, host_clock(h), 100).more);
	qhca_may_dma(h->hca, host_clock(h));	/* it may not yet */
	assert_int_equal(accesses(h), before);
	assert_false(hca_is_dead(h->fn));
	h->no_dma = false;
	qhca_may_dma(h->hca, host_clock(h));
	check_goes_on(h, deadline);
	host_free(h);
}

/* Bus Master Enable has been set where the machine has arrived, before it runs. */
static void test_arrives_with(void **state)
{
	struct host *h = at_work();
	uint64_t deadline[2];
	size_t len;
	void *image;

	(void)state;
	for (uint32_t i = 0; i < 2; i++)
		deadline[i] = h->fn->qps.slot[QPN + i].deadline;
	h->no_dma = true;
	assert_true(qhca_freeze(h->hca, h->now, err, sizeof(err)));
	image = qhca_save(h->hca, &len, err, sizeof(err));
	assert_non_null(image);
	assert_true(qhca_load(h->hca, image, len, err, sizeof(err)));
	h->no_dma = false;
	qhca_thaw(h->hca, h->now);
	check_goes_on(h, deadline);
	free(image);
	host_free(h);
}

/* Frames do not reach a QP whose context cannot be read yet. */
static void test_frame(void **state)
{
	const uint8_t frame[64] = { [12] = 0x88, [13] = 0xb5 };
	struct qhca_flow rule = { .type = QHCA_FLOW_SNIFFER };
	struct host *h = at_work();
	struct qhca_qpc_sw sw = good(h);

	(void)state;
	sw.type = QHCA_QPT_RAW;
	assert_int_equal(create(h, QPN + 2, &sw), QHCA_CMD_OK);
	assert_int_equal(modify(h, QPN + 2, QHCA_QPS_INIT, 0, NULL), QHCA_CMD_OK);
	assert_int_equal(modify(h, QPN + 2, QHCA_QPS_RTR, 0, NULL), QHCA_CMD_OK);
	put_le32(&rule.qpn, QPN + 2);
	assert_int_equal(host_cmd(h, QHCA_CMD_CREATE_FLOW, 0, 0, &rule, sizeof(rule),
				  NULL, 0), QHCA_CMD_OK);
	h->no_dma = true;
	host_move(h, 5);
	qhca_rx_frame(h->hca, frame, sizeof(frame), host_clock(h));
	assert_false(hca_is_dead(h->fn));
	assert_int_equal(COUNT(h, rx_dropped), 1);
	h->no_dma = false;
	qhca_may_dma(h->hca, host_clock(h));
	qhca_rx_frame(h->hca, frame, sizeof(frame), host_clock(h));
	assert_int_equal(COUNT(h, rx_dropped), 1);
	assert_false(hca_is_dead(h->fn));
	host_free(h);
}

/* The host domain answers a fault of such a function, as an older one could have it. */
static void test_resume(void **state)
{
	struct host *h = at_work();

	(void)state;
	h->no_dma = true;
	host_move(h, 5);
	assert_false(hca_fault_resume_stage2(h->fn, QPN, true));
	assert_false(hca_is_dead(h->fn));
	h->no_dma = false;
	qhca_may_dma(h->hca, host_clock(h));
	assert_false(hca_is_dead(h->fn));
	host_free(h);
}

/* Commands wait as well, since they would read contexts. */
static void test_command(void **state)
{
	struct host *h = at_work();
	struct qhca_cmd_slot slot = { 0 };
	uint64_t commands = COUNT(h, commands), before;

	(void)state;
	h->no_dma = true;
	host_move(h, 5);
	before = accesses(h);
	put_le16(&slot.opcode, QHCA_CMD_NOP);
	host_cmd_begin(h, &slot, 0);
	assert_false(qhca_run(h->hca, host_clock(h), 100).more);
	assert_int_equal(accesses(h), before);
	assert_false(hca_is_dead(h->fn));
	h->no_dma = false;
	qhca_may_dma(h->hca, host_clock(h));
	assert_true(qhca_run(h->hca, host_clock(h), 0).more);
	host_run(h);
	assert_int_equal(COUNT(h, commands), commands + 1);
	host_free(h);
}

/* A CQ with an entry whose event a timer writes in 50 us. */
static void post_moderated(struct host *h)
{
	struct ring ring = host_ring(h, 3);
	struct qhca_cqc_sw in = { .buf = ring.buf, .log_depth = 3 };
	struct qhca_cqe cqe = { 0 };

	put_le32(&in.rec_offset, ring.rec_offset);
	put_le16(&in.moder_usec, 50);
	assert_int_equal(host_cmd(h, QHCA_CMD_CREATE_CQ, CQN + 1, 0, &in,
				  sizeof(in), NULL, 0), QHCA_CMD_OK);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_CQ_ARM, CQN + 1, h->now);
	assert_true(hca_cq_post(h->fn, CQN + 1, &cqe));
	assert_int_equal(h->fn->cqs.num_timers, 1);
}

/* Timers, events and Ethernet frames wait too, in spite of a link that changes. */
static void test_events(void **state)
{
	struct host *h = at_work();
	struct qhca_eth_txd *txd;
	struct hca_eq *eq;
	uint64_t before;
	uint32_t pi;

	(void)state;
	post_moderated(h);
	h->fn->eth.queue[0] = (struct hca_ethq){
		.live = true, .log_tx = 3, .log_rx = 3, .tx_pi = 1,
		.tx_base = host_alloc(h, 4096, 64),
		.rx_base = host_alloc(h, 4096, 64),
		.rxc_base = host_alloc(h, 4096, 64),
		.rec_base = host_alloc(h, 4096, 64),
	};
	txd = host_ptr(h, h->fn->eth.queue[0].tx_base);
	put_le32(&txd->len, 60);
	put_le16(&txd->flags, QHCA_TXD_EOP);
	h->no_dma = true;
	host_move(h, 5);
	eq = &h->fn->eqs.eq[0];
	pi = eq->pi;
	before = accesses(h);
	qhca_set_link(h->hca, false, host_clock(h));
	for (int i = 0; i < 3; i++, h->now += 1000000) {
		const struct qhca_run_result r =
			qhca_run(h->hca, host_clock(h), 100);

		assert_false(r.more);
		assert_true(r.deadline == QHCA_NEVER);
	}
	assert_int_equal(accesses(h), before);
	assert_int_equal(eq->pi, pi);
	assert_false(hca_is_dead(h->fn));
	h->no_dma = false;
	qhca_may_dma(h->hca, host_clock(h));
	host_run(h);
	/* The link's event, and that of the CQ. */
	assert_int_equal(eq->pi, pi + 2);
	assert_int_equal(h->fn->eth.queue[0].tx_ci, 1);
	assert_false(hca_is_dead(h->fn) || h->fn->eth.queue[0].stopped);
	host_free(h);
}

/* TEARDOWN_HCA leaves nothing to be read or written. */
static void test_teardown(void **state)
{
	struct host *h = at_work();

	(void)state;
	h->no_dma = true;
	host_move(h, 5);
	assert_true(h->fn->withheld.num_ctxs);
	hca_teardown(h->fn);
	assert_false(h->fn->restore);
	assert_int_equal(h->fn->withheld.num_ctxs, 0);
	host_free(h);
}

/* A reset ends it, before or after the move. */
static void test_reset(void **state)
{
	struct host *h = at_work();

	(void)state;
	h->no_dma = true;
	assert_true(qhca_freeze(h->hca, h->now, err, sizeof(err)));
	qhca_pci_reset(h->hca, 0, h->now);
	qhca_thaw(h->hca, h->now);
	assert_false(h->fn->initialised);
	h->no_dma = false;
	host_free(h);

	h = at_work();
	h->no_dma = true;
	host_move(h, 5);
	assert_true(h->fn->restore);
	qhca_reset(h->hca, 0, host_clock(h));
	h->no_dma = false;
	qhca_may_dma(h->hca, host_clock(h));
	assert_false(h->fn->initialised || hca_is_dead(h->fn));
	host_free(h);
}

/* Memory of the table is gone when it can be written. */
static void test_not_written(void **state)
{
	struct host *h = at_work();

	(void)state;
	h->no_dma = true;
	host_move(h, 5);
	h->no_dma = false;
	h->fail_in = 1;
	qhca_may_dma(h->hca, host_clock(h));
	assert_int_equal(QHCA_GET(QHCA_STATUS_FATAL_CAUSE, h->fn->status),
			 QHCA_FATAL_TABLE_DMA);
	host_free(h);
}

/* Another function needs the place of a context that cannot be written. */
static void test_evicted(void **state)
{
	struct host *h = at_work(), *vf = host_new_vf(h, 1, NULL);
	struct hca_ctxcache *qd = &h->fn->hca->cache.qd;
	struct qhca_init_hca in;

	(void)state;
	host_enable(vf);
	host_init_default(vf, &in);
	assert_int_equal(host_init_hca(vf, &in), QHCA_CMD_OK);
	host_map_table(vf, QHCA_TABLE_QP);
	h->no_dma = true;
	assert_non_null(hca_ctx_peek(h->fn, qd, QPN + 1));
	assert_false(hca_is_dead(h->fn));
	assert_non_null(hca_ctx_new(vf->fn, qd, QPN));
	assert_true(hca_is_dead(h->fn));
	assert_int_equal(QHCA_GET(QHCA_STATUS_FATAL_CAUSE, h->fn->status),
			 QHCA_FATAL_TABLE_DMA);
	assert_false(hca_is_dead(vf->fn));
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_moves),
	cmocka_unit_test(test_arrives_with),
	cmocka_unit_test(test_frame),
	cmocka_unit_test(test_resume),
	cmocka_unit_test(test_command),
	cmocka_unit_test(test_events),
	cmocka_unit_test(test_teardown),
	cmocka_unit_test(test_reset),
	cmocka_unit_test(test_not_written),
	cmocka_unit_test(test_evicted),
};
TEST_MAIN(tests)
