// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

/* ------------------------------------------------------------------------
 * Death and reset
 */
static void test_fatal(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_run_result r;
	struct qhca_port_info info;
	uint64_t writes;

	(void)state;
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1, 0);
	qhca_inject_fatal(h->hca, 0);
	assert_int_equal(qhca_reg_read(h->hca, 0, QHCA_REG_STATUS, 0),
			 QHCA_STATUS_READY | QHCA_STATUS_ENABLED |
			 QHCA_STATUS_FATAL | QHCA_FATAL_INJECTED << 8);
	writes = h->reads + h->writes;
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1, 0);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_EQ_ARM, 0, 0);
	r = qhca_run(h->hca, 1ull << 60, 100);
	assert_false(r.more);
	assert_int_equal(r.deadline, QHCA_NEVER);
	assert_int_equal(h->reads + h->writes, writes);
	assert_int_equal(COUNT(h, doorbells_ignored), 1);
	assert_false(qhca_can_receive(h->hca));
	qhca_query_port(h->hca, 0, &info);
	assert_true(info.fatal);
	assert_int_equal(info.fatal_cause, QHCA_FATAL_INJECTED);
	qhca_reset(h->hca, 0, 1ull << 60);
	assert_int_equal(qhca_reg_read(h->hca, 0, QHCA_REG_STATUS, 0),
			 QHCA_STATUS_READY);
	host_free(h);
}

/* Many resets in the middle of work: no memory leaks, and no object stays. */
static void test_reset_again(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_init_hca in;
	struct ring eq, cq;
	unsigned int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		h->next = HOST_PAGE;
		host_enable(h);
		host_init_default(h, &in);
		put_le32(&in.flags, i % 2 ? QHCA_INIT_STRICT_LKEY : 0);
		assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
		host_map_table(h, QHCA_TABLE_EQ);
		host_map_table(h, QHCA_TABLE_CQ);
		eq = host_ring(h, 1);
		cq = host_ring(h, 1);
		assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
		assert_int_equal(host_create_cq(h, 7, &cq, 0), QHCA_CMD_OK);
		hca_event(h->fn, QHCA_EVENT_QP_FATAL, i, 0);
		hca_event(h->fn, QHCA_EVENT_QP_FATAL, i + 1, 0);
		hca_event(h->fn, QHCA_EVENT_QP_FATAL, i + 2, 0);
		assert_int_equal(h->fn->eqs.num_waiting, 1);
		qhca_reset(h->hca, 0, i);
		assert_false(hca_cq_exists(h->fn, 7));
		assert_int_equal(h->fn->init_flags, 0);
		/* The function is as a new one. */
		assert_int_equal(h->fn->hca->turn, 0);
		assert_int_equal(hca_eqs_deadline(h->fn), QHCA_NEVER);
	}
	host_free(h);
}

/* ------------------------------------------------------------------------
 * A host that calls back
 */
static uint64_t calls, call_at;		/* callbacks so far; the one that acts */
static uint8_t own_frame[64];

/* The calls that a guest can make within a callback, by means of its own registers. */
static void call_back(struct host *h, enum host_call call)
{
	(void)call;
	if (++calls != call_at)
		return;
	assert_true(qhca_is_entered(h->hca));
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_EQ_ARM, 0, 1);
	qhca_rx_frame(h->hca, own_frame, sizeof(own_frame), 1);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 2, 1);
	qhca_reg_read(h->hca, 0, QHCA_REG_STATUS, 1);
	assert_true(qhca_run(h->hca, 1, 10).more);
	qhca_reg_write(h->hca, 0, QHCA_REG_CONTROL, QHCA_CONTROL_RESET, 1);
}

/* Makes one command, which the device may leave unanswered. */
static void try_command(struct host *h, uint16_t opcode, uint32_t index,
			const void *in, uint32_t in_len)
{
	struct qhca_cmd_slot *slot = host_ptr(h, h->slots);
	uint64_t mailbox = host_alloc(h, QHCA_MAILBOX_SIZE, 64);

	if (in_len)
		memcpy(host_ptr(h, mailbox), in, in_len);
	memset(slot, 0, sizeof(*slot));
	put_le16(&slot->opcode, opcode);
	put_le32(&slot->index, index);
	put_le64(&slot->in_addr, mailbox);
	put_le32(&slot->in_len, in_len);
	put_le32(&slot->flags, QHCA_CMD_F_EVENT);
	put_le32(&slot->status, QHCA_CMD_OWN);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1, 0);
	qhca_run(h->hca, 0, 100);
}

/* Commands with mailboxes, doorbells, events, interrupts, and death. */
static void work(struct host *h)
{
	struct ring eq = host_ring(h, 2), cq = host_ring(h, 2);
	struct qhca_eqc_sw eqc = { .buf = eq.buf, .log_depth = 2 };
	struct qhca_cqc_sw cqc = { .buf = cq.buf, .log_depth = 2 };

	put_le32(&eqc.rec_offset, eq.rec_offset);
	put_le32(&cqc.rec_offset, cq.rec_offset);
	try_command(h, QHCA_CMD_CREATE_EQ, 0, &eqc, sizeof(eqc));
	try_command(h, QHCA_CMD_CREATE_CQ, 7, &cqc, sizeof(cqc));
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_EQ_ARM, 0, 0);
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_CQ_ARM, 7, 0);
	qhca_set_link(h->hca, false, 0);
	qhca_set_link(h->hca, true, 0);
	try_command(h, QHCA_CMD_DESTROY_CQ, 7, NULL, 0);
	qhca_inject_fatal(h->hca, 0);
}

/* Is the function as after a reset, whatever work() did after it? */
static bool is_reset(const struct host *h)
{
	return !h->fn->initialised && !(h->fn->status & QHCA_STATUS_ENABLED);
}

/*
 * Software writes the reset register in each callback in turn: the call continues with the
 * state that it had and does little more, and the function is as after any reset.
 */
static void test_reset_in_callback(void **state)
{
	uint64_t all;

	(void)state;
	for (call_at = 1, all = 1; call_at <= all; call_at++) {
		struct host *h = host_new_ready();

		calls = 0;
		h->meanwhile = call_back;
		work(h);
		all = calls > all ? calls : all;
		assert_true(is_reset(h) == (calls >= call_at));
		assert_false(qhca_is_entered(h->hca));
		assert_int_equal(h->fn->late, 0);
		host_free(h);
	}
	assert_true(all > 10);
}

/* Once it is reset, the call in progress makes no more accesses than it must. */
static void reset_once(struct host *h, enum host_call call)
{
	(void)call;
	if (++calls == call_at)
		qhca_reset(h->hca, 0, 1);
}

static void test_reset_cuts_work(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_cmd_slot *slots = host_ptr(h, h->slots);

	(void)state;
	for (unsigned int i = 0; i < 32; i++) {
		memset(&slots[i], 0, sizeof(slots[i]));
		put_le32(&slots[i].status, QHCA_CMD_OWN);
	}
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, ~0u, 0);
	calls = 0;
	call_at = 3;			/* the second command's slot is read */
	h->meanwhile = reset_once;
	assert_false(qhca_run(h->hca, 0, 1000).more);
	assert_true(calls <= 4);
	assert_int_equal(qhca_reg_read(h->hca, 0, QHCA_REG_STATUS, 0),
			 QHCA_STATUS_READY);
	assert_true(get_le32(&slots[2].status) & QHCA_CMD_OWN);
	assert_false(h->fn->initialised);
	host_free(h);
}

/*
 * The engine executes other calls that software makes within a callback after it, or
 * drops them.
 */
static void link_and_fatal(struct host *h, enum host_call call)
{
	(void)call;
	if (++calls != 1)
		return;
	qhca_set_link(h->hca, false, 1);
	assert_true(h->fn->hca->link_up);
	qhca_inject_fatal(h->hca, 0);
	assert_false(h->fn->status & QHCA_STATUS_FATAL);
	qhca_rx_frame(h->hca, own_frame, sizeof(own_frame), 1);
}

static void test_late(void **state)
{
	struct host *h = host_new_ready();
	uint64_t dropped = COUNT(h, rx_dropped);

	(void)state;
	calls = 0;
	h->meanwhile = link_and_fatal;
	host_cmd(h, QHCA_CMD_NOP, 0, 0, NULL, 0, NULL, 0);
	assert_false(h->fn->hca->link_up);
	assert_true(h->fn->status & QHCA_STATUS_FATAL);
	assert_int_equal(COUNT(h, rx_dropped), dropped + 1);
	host_free(h);
}

/*
 * After a reset the engine asks a link that was full again, since the host may not call
 * qhca_tx_ready().
 */
static void test_reset_unblocks(void **state)
{
	struct host *h = host_new_ready();

	(void)state;
	h->tx_full = true;
	assert_null(hca_tx_begin(h->fn, 60));
	h->tx_full = false;
	assert_null(hca_tx_begin(h->fn, 60));	/* until qhca_tx_ready() */
	qhca_reset(h->hca, 0, 0);
	assert_non_null(hca_tx_begin(h->fn, 60));
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Virtual functions come and go
 */
static uint32_t status_of(const struct host *h, uint16_t gvmi)
{
	return qhca_reg_read(h->hca, gvmi, QHCA_REG_STATUS, 0);
}

static void test_absent(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_port_info info;

	(void)state;
	for (unsigned int i = 1; i < 70; i++) {
		uint16_t gvmi = (uint16_t)(i == 69 ? 0xffff : i);

		assert_int_equal(status_of(h, gvmi), ~0u);
		qhca_reg_write(h->hca, gvmi, QHCA_REG_CONTROL,
			       QHCA_CONTROL_RESET, 0);
		qhca_doorbell(h->hca, gvmi, 0, QHCA_DB_EQ_ARM, 0, 0);
		qhca_vf_enable(h->hca, gvmi, true, 0);
		qhca_reset(h->hca, gvmi, 0);
		qhca_inject_fatal(h->hca, gvmi);
		assert_int_equal(qhca_counter(h->hca, gvmi, 0), 0);
		qhca_query_port(h->hca, gvmi, &info);
		assert_false(info.enabled);
	}
	assert_true(h->fn->initialised);
	assert_int_equal(COUNT(h, doorbells_ignored), 0);
	host_free(h);
}

static void test_create_refused(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_config cfg;
	char err[100];

	(void)state;
	host_config(&cfg);
	assert_false(qhca_vf_create(h->hca, 0, &cfg, err, sizeof(err)));
	assert_string_equal(err, "0 is no number for a virtual function");
	assert_false(qhca_vf_create(h->hca, 64, &cfg, err, sizeof(err)));
	host_new_vf(h, 63, NULL);
	assert_false(qhca_vf_create(h->hca, 63, &cfg, err, sizeof(err)));
	cfg.num_vectors = 0;
	assert_false(qhca_vf_create(h->hca, 1, &cfg, err, sizeof(err)));
	assert_non_null(strstr(err, "vectors"));
	host_free(h);
}

/* VF Enable: the registers answer only while it is set, and clearing it is a reset. */
static void test_enable(void **state)
{
	struct host *pf = host_new_ready(), *vf = host_new_vf(pf, 5, NULL);

	(void)state;
	assert_int_equal(qhca_reg_read(vf->hca, 5, QHCA_REG_GVMI, 0), 5);
	host_enable(vf);
	assert_true(status_of(pf, 5) & QHCA_STATUS_ENABLED);
	/* VF Enable was set already, so this is no reset. */
	qhca_vf_enable(pf->hca, 5, true, 0);
	assert_true(status_of(pf, 5) & QHCA_STATUS_ENABLED);
	qhca_vf_enable(pf->hca, 5, false, 0);
	assert_int_equal(status_of(pf, 5), ~0u);
	qhca_reg_write(pf->hca, 5, QHCA_REG_CMDQ_LOG_SLOTS, 3, 0);
	qhca_doorbell(pf->hca, 5, 0, QHCA_DB_EQ_ARM, 0, 0);
	qhca_vf_enable(pf->hca, 5, true, 0);
	assert_int_equal(status_of(pf, 5), QHCA_STATUS_READY);
	assert_int_equal(qhca_reg_read(pf->hca, 5, QHCA_REG_CMDQ_LOG_SLOTS, 0),
			 0);
	assert_int_equal(COUNT(vf, doorbells_ignored), 0);
	assert_true(status_of(pf, 0) & QHCA_STATUS_ENABLED);
	host_free(pf);
}

/* Death and reset of one function leave the others as they are. */
static void test_death_is_private(void **state)
{
	struct host *pf = host_new(NULL), *vf = host_new_vf(pf, 1, NULL);

	(void)state;
	host_enable(pf);
	host_enable(vf);
	qhca_inject_fatal(pf->hca, 1);
	assert_true(status_of(pf, 1) & QHCA_STATUS_FATAL);
	assert_false(status_of(pf, 0) & QHCA_STATUS_FATAL);
	qhca_reg_write(pf->hca, 1, QHCA_REG_CONTROL, QHCA_CONTROL_RESET, 0);
	assert_int_equal(status_of(pf, 1), QHCA_STATUS_READY);
	assert_true(status_of(pf, 0) & QHCA_STATUS_ENABLED);
	host_free(pf);
}

/* What software does in a callback to one function happens to that function alone. */
static void disable_in_callback(struct host *h, enum host_call call)
{
	(void)call;
	h->meanwhile = NULL;
	qhca_vf_enable(h->hca, 1, false, 0);
	qhca_vf_enable(h->hca, 2, false, 0);
	qhca_vf_enable(h->hca, 2, true, 0);	/* only the last call counts */
}

static void test_callback(void **state)
{
	struct host *pf = host_new_ready(), *one, *two, *three;

	(void)state;
	one = host_new_vf(pf, 1, NULL);
	two = host_new_vf(pf, 2, NULL);
	three = host_new_vf(pf, 63, NULL);
	host_enable(one);
	host_enable(two);
	host_enable(three);
	pf->meanwhile = disable_in_callback;
	assert_int_equal(host_cmd(pf, QHCA_CMD_NOP, 0, 0, NULL, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(status_of(pf, 1), ~0u);
	assert_int_equal(status_of(pf, 2), QHCA_STATUS_READY);
	assert_true(status_of(pf, 63) & QHCA_STATUS_ENABLED);
	assert_int_equal(pf->hca->hca.late_fns, 0);
	host_free(pf);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_fatal),
	cmocka_unit_test(test_reset_again),
	cmocka_unit_test(test_reset_in_callback),
	cmocka_unit_test(test_reset_cuts_work),
	cmocka_unit_test(test_late),
	cmocka_unit_test(test_reset_unblocks),
	cmocka_unit_test(test_absent),
	cmocka_unit_test(test_create_refused),
	cmocka_unit_test(test_enable),
	cmocka_unit_test(test_death_is_private),
	cmocka_unit_test(test_callback),
};
TEST_MAIN(tests)
