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
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_DOORBELL, 1, 0);
	qhca_inject_fatal(h->hca);
	assert_int_equal(qhca_reg_read(h->hca, QHCA_REG_STATUS, 0),
			 QHCA_STATUS_READY | QHCA_STATUS_ENABLED |
			 QHCA_STATUS_FATAL | QHCA_FATAL_INJECTED << 8);
	writes = h->reads + h->writes;
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_DOORBELL, 1, 0);
	qhca_doorbell(h->hca, 0, QHCA_DB_EQ_ARM, 0, 0);
	r = qhca_run(h->hca, 1ull << 60, 100);
	assert_false(r.more);
	assert_int_equal(r.deadline, QHCA_NEVER);
	assert_int_equal(h->reads + h->writes, writes);
	assert_int_equal(COUNT(h, doorbells_ignored), 1);
	assert_false(qhca_can_receive(h->hca));
	qhca_query_port(h->hca, &info);
	assert_true(info.fatal);
	assert_int_equal(info.fatal_cause, QHCA_FATAL_INJECTED);
	qhca_reset(h->hca, 1ull << 60);
	assert_int_equal(qhca_reg_read(h->hca, QHCA_REG_STATUS, 0),
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
		qhca_reset(h->hca, i);
		assert_false(hca_cq_exists(h->fn, 7));
		assert_int_equal(h->fn->init_flags, 0);
		assert_int_equal(h->fn->hca->turn, 0);	/* as a new one */
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
	qhca_doorbell(h->hca, 0, QHCA_DB_EQ_ARM, 0, 1);
	qhca_rx_frame(h->hca, own_frame, sizeof(own_frame), 1);
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_DOORBELL, 2, 1);
	qhca_reg_read(h->hca, QHCA_REG_STATUS, 1);
	assert_true(qhca_run(h->hca, 1, 10).more);
	qhca_reg_write(h->hca, QHCA_REG_CONTROL, QHCA_CONTROL_RESET, 1);
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
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_DOORBELL, 1, 0);
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
	qhca_doorbell(h->hca, 0, QHCA_DB_EQ_ARM, 0, 0);
	qhca_doorbell(h->hca, 0, QHCA_DB_CQ_ARM, 7, 0);
	qhca_set_link(h->hca, false, 0);
	qhca_set_link(h->hca, true, 0);
	try_command(h, QHCA_CMD_DESTROY_CQ, 7, NULL, 0);
	qhca_inject_fatal(h->hca);
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
		qhca_reset(h->hca, 1);
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
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_DOORBELL, ~0u, 0);
	calls = 0;
	call_at = 3;			/* the second command's slot is read */
	h->meanwhile = reset_once;
	assert_false(qhca_run(h->hca, 0, 1000).more);
	assert_true(calls <= 4);
	assert_int_equal(qhca_reg_read(h->hca, QHCA_REG_STATUS, 0),
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
	qhca_inject_fatal(h->hca);
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
	qhca_reset(h->hca, 0);
	assert_non_null(hca_tx_begin(h->fn, 60));
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_fatal),
	cmocka_unit_test(test_reset_again),
	cmocka_unit_test(test_reset_in_callback),
	cmocka_unit_test(test_reset_cuts_work),
	cmocka_unit_test(test_late),
	cmocka_unit_test(test_reset_unblocks),
};
TEST_MAIN(tests)
