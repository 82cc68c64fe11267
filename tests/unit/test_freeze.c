// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * A frozen engine: memory has everything, nothing is accessed, the clock stands still, and
 * what comes meanwhile takes effect when the engine goes on.
 */
#include "qp_setup.h"

static char err[100];
static const struct qhca_geometry geometry = { 4, 2 };

static uint64_t accesses(const struct host *h)
{
	return h->reads + h->writes;
}

static const void *context(struct host *h, enum qhca_table table, uint32_t index)
{
	uint64_t addr;

	assert_true(hca_table_entry(h->fn, table, index, &addr));
	return host_ptr(h, addr);
}

static void test_refused(void **state)
{
	struct host *h = host_new(NULL);

	(void)state;
	qhca_thaw(h->hca, 5);		/* nothing happens */
	assert_false(qhca_is_frozen(h->hca));
	assert_true(qhca_freeze(h->hca, 5, err, sizeof(err)));
	assert_true(qhca_is_frozen(h->hca));
	assert_true(qhca_is_entered(h->hca));
	assert_false(qhca_freeze(h->hca, 5, err, sizeof(err)));
	assert_string_equal(err, "the adapter is frozen already");
	qhca_thaw(h->hca, 5);
	assert_false(qhca_is_frozen(h->hca));
	assert_false(qhca_is_entered(h->hca));
	h->fn->hca->entered = true;
	assert_false(qhca_freeze(h->hca, 5, err, sizeof(err)));
	assert_string_equal(err, "the adapter is in the middle of a call");
	h->fn->hca->entered = false;
	host_free(h);
}

/* Contexts that have changed are in memory, and stay in the cache. */
static void test_written_back(void **state)
{
	struct host *h = ready(geometry);
	const struct qhca_cqc *cqc = context(h, QHCA_TABLE_CQ, CQN);
	const struct qhca_qpc *qpc = context(h, QHCA_TABLE_QP, QPN);
	const struct hca_qpc_hw *hw = (const void *)qpc->hw;
	struct qhca_qpc_sw sw = good(h);
	const struct hca_ctxcache *qd = &h->fn->hca->cache.qd;
	struct qhca_cqe cqe = { 0 };
	struct hca_qp *qp;

	(void)state;
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	to_rts(h, QPN);
	assert_true(hca_cq_post(h->fn, CQN, &cqe));
	assert_int_equal(get_le32(&cqc->pi), 0);
	qp = hca_qp_get(h->fn, QPN);
	qp->r_msn = 7;
	hca_qp_dirty(h->fn, qp);
	assert_int_equal(get_le32(&hw->r_msn), 0);
	assert_true(qhca_freeze(h->hca, h->now, err, sizeof(err)));
	assert_int_equal(get_le32(&cqc->pi), 1);
	assert_int_equal(get_le32(&hw->r_msn), 7);
	assert_ptr_equal(hca_ctx_peek(h->fn, qd, QPN), qp);
	assert_false(hca_cache_is_dirty(&qd->cache, qp));
	qhca_thaw(h->hca, h->now);
	host_free(h);
}

/* A context that cannot be written is fatal, and the rest is written. */
static void test_not_written(void **state)
{
	struct host *h = ready(geometry);
	struct qhca_cqe cqe = { 0 };

	(void)state;
	assert_true(hca_cq_post(h->fn, CQN, &cqe));
	h->fail_in = 1;
	assert_true(qhca_freeze(h->hca, h->now, err, sizeof(err)));
	assert_true(hca_is_dead(h->fn));
	assert_int_equal(h->fn->hca->late_fns, 0);	/* and it has been reported */
	qhca_thaw(h->hca, h->now);
	host_free(h);
}

/*
 * Software has cleared Bus Master Enable: the machine stops and goes on without an
 * access, and without harm to the function.
 */
static void test_no_bus_master(void **state)
{
	struct host *h = ready(geometry);
	const struct qhca_cqc *cqc = context(h, QHCA_TABLE_CQ, CQN);
	struct qhca_qpc_sw sw = good(h);
	struct qhca_cqe cqe = { 0 };
	uint64_t before;

	(void)state;
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	to_rts(h, QPN);
	assert_true(hca_cq_post(h->fn, CQN, &cqe));
	h->no_dma = true;
	before = accesses(h);
	assert_true(qhca_freeze(h->hca, h->now, err, sizeof(err)));
	qhca_thaw(h->hca, h->now);
	assert_int_equal(accesses(h), before);
	assert_false(hca_is_dead(h->fn));
	h->no_dma = false;
	qhca_may_dma(h->hca, h->now);
	assert_int_equal(get_le32(&cqc->pi), 0);
	assert_true(qhca_freeze(h->hca, h->now, err, sizeof(err)));
	assert_int_equal(get_le32(&cqc->pi), 1);
	qhca_thaw(h->hca, h->now);
	host_free(h);
}

static void count_qp(void *arg, const struct qhca_qp_info *info)
{
	unsigned int *n = arg;

	*n += info->cached ? 100 : 1;
}

/* Everything that the host can call leaves memory and interrupts alone. */
static void test_no_access(void **state)
{
	struct host *h = ready((struct qhca_geometry){ 1, 1 });
	struct qhca_qpc_sw sw = good(h);
	struct qhca_run_result r;
	uint8_t frame[64] = { 0xff };
	unsigned int qps = 0, irqs;
	uint64_t before;

	(void)state;
	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	assert_int_equal(create(h, QPN + 1, &sw), QHCA_CMD_OK);
	assert_true(qhca_freeze(h->hca, h->now, err, sizeof(err)));
	before = accesses(h);
	irqs = h->irqs[0];
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, QPN, h->now);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_CQ_ARM, CQN, h->now);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_EQ_ARM, 0, h->now);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1, h->now);
	assert_false(qhca_can_receive(h->hca));
	qhca_rx_frame(h->hca, frame, sizeof(frame), h->now);
	qhca_set_link(h->hca, false, h->now);
	qhca_inject_fatal(h->hca, 0);
	qhca_tx_ready(h->hca, h->now);
	qhca_for_each_qp(h->hca, 0, count_qp, &qps);
	assert_int_equal(qps, 101);
	r = qhca_run(h->hca, h->now + 1000000000, 100);
	assert_false(r.more);
	assert_int_equal(r.deadline, QHCA_NEVER);
	assert_int_equal(accesses(h), before);
	assert_int_equal(h->irqs[0], irqs);
	assert_true(h->fn->hca->link_up);
	assert_false(hca_is_dead(h->fn));

	qhca_thaw(h->hca, h->now);
	assert_false(h->fn->hca->link_up);
	assert_true(hca_is_dead(h->fn));
	assert_true(accesses(h) > before);	/* of the events */
	host_free(h);
}

/* A reset waits, and the clock that software reads begins anew with it. */
static void test_reset(void **state)
{
	struct host *h = ready(geometry);
	struct qhca_port_info info;
	uint64_t before;

	(void)state;
	host_run_at(h, 5000);
	assert_true(qhca_freeze(h->hca, 7000, err, sizeof(err)));
	before = accesses(h);
	qhca_pci_reset(h->hca, 0, 9000);
	assert_true(h->fn->initialised);
	qhca_query_port(h->hca, 0, &info);
	assert_false(info.fatal);	/* it will be reset, but it has not failed */
	qhca_thaw(h->hca, 1000000);
	assert_false(h->fn->initialised);
	assert_int_equal(accesses(h), before);
	assert_int_equal(qhca_reg_read(h->hca, 0, QHCA_REG_CLOCK_LO, 1000300),
			 300);
	host_free(h);
}

/* Deadlines have as much left as they had, by whatever clock the host has now. */
static void check_clock(uint64_t thawed)
{
	struct host *h = ready(geometry);
	uint64_t clock;

	host_run_at(h, 100000);
	qhca_reg_read(h->hca, 0, QHCA_REG_CLOCK_LO, 100000);
	clock = h->fn->hca->now - h->fn->reset_time;
	hca_charge(h->fn, 0);
	h->fn->eqs.num_waiting = 1;
	h->fn->eqs.next_poll = 103000;
	hca_fn_wake(h->fn);
	assert_int_equal(qhca_run(h->hca, 100500, 1).deadline, 103000);
	assert_true(qhca_freeze(h->hca, 101000, err, sizeof(err)));
	qhca_reg_read(h->hca, 0, QHCA_REG_CLOCK_LO, 999999);
	qhca_thaw(h->hca, thawed);
	assert_int_equal(qhca_run(h->hca, thawed + 500, 1).deadline,
			 thawed + 2000);
	assert_int_equal(qhca_reg_read(h->hca, 0, QHCA_REG_CLOCK_LO,
				       thawed + 500), clock + 1500);
	/* A deadline that has passed is due now, and no deadline stays none. */
	h->fn->eqs.next_poll = 0;
	h->fn->hca->wire.tx_blocked = true;
	h->fn->eqs.num_waiting = 0;
	assert_int_equal(qhca_run(h->hca, thawed + 600, 1).deadline, QHCA_NEVER);
	/* A note without a time has the engine's. */
	qhca_inject_fatal(h->hca, 0);
	assert_int_equal(h->fn->hca->now, 101600);
	host_free(h);
}

static void test_clock(void **state)
{
	(void)state;
	check_clock(101000);		/* as if it had not been stopped */
	check_clock(5000000000);	/* a pause, or a host that is longer up */
	check_clock(10);		/* a host whose clock is younger */
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_refused),
	cmocka_unit_test(test_written_back),
	cmocka_unit_test(test_not_written),
	cmocka_unit_test(test_no_bus_master),
	cmocka_unit_test(test_no_access),
	cmocka_unit_test(test_reset),
	cmocka_unit_test(test_clock),
};
TEST_MAIN(tests)
