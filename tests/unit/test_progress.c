// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "qp_setup.h"

#define T	(4096ull << 14)		/* ACK timeout of attributes() */

/* A QP whose first request has been sent.  Nobody answers. */
static struct host *unanswered(void)
{
	struct host *h = ready((struct qhca_geometry){ 4, 2 });
	struct qhca_qpc_sw sw = good(h);
	struct qhca_sq_wqe *wqe = host_ptr(h, get_le64(&sw.buf.base));

	assert_int_equal(create(h, QPN, &sw), QHCA_CMD_OK);
	to_rts(h, QPN);
	wqe->opcode = QHCA_WQE_SEND;
	wqe->flags = QHCA_WQE_F_SIGNALED;
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, 1ull << 32 | QPN, h->now);
	host_run(h);
	assert_int_equal(h->num_sent, 1);
	return h;
}

/* Until so many ns from now. */
static void pass(struct host *h, uint64_t ns)
{
	host_run_at(h, h->now + ns);
}

/* The link is full for a moment, as a sender that is fast makes it. */
static void fill_link(struct host *h)
{
	h->tx_full = true;
	assert_null(hca_tx_begin(h->fn, 60));
	host_run(h);
	h->tx_full = false;
	qhca_tx_ready(h->hca, h->now);
	host_run(h);
}

static void test_timeout(void **state)
{
	struct host *h = unanswered();

	(void)state;
	pass(h, T - 1);
	assert_int_equal(h->num_sent, 1);
	pass(h, 1);
	assert_int_equal(h->num_sent, 2);
	assert_int_equal(COUNT(h, ack_timeouts), 1);
	host_free(h);
}

/* A peer that is gone ends the QP after T, 2 T and six times 4 T: 27 T. */
static void test_gives_up(void **state)
{
	struct host *h = unanswered();

	(void)state;
	for (unsigned int i = 0; i < 27; i++) {
		assert_int_equal(COUNT(h, retry_exceeded), 0);
		pass(h, T);
	}
	assert_int_equal(COUNT(h, ack_timeouts), 8);
	assert_int_equal(COUNT(h, retry_exceeded), 1);
	assert_int_equal(h->num_sent, 8);
	host_free(h);
}

/* After the link was full, the timer runs once more before the packet counts as lost. */
static void test_link_was_full(void **state)
{
	struct host *h = unanswered();

	(void)state;
	pass(h, T / 2);
	fill_link(h);
	pass(h, T / 2);
	assert_int_equal(h->num_sent, 1);
	assert_int_equal(COUNT(h, ack_timeouts), 0);
	pass(h, T);
	assert_int_equal(h->num_sent, 2);
	assert_int_equal(COUNT(h, ack_timeouts), 1);
	host_free(h);
}

/*
 * The link is full again and again: a lost packet is nevertheless sent again, and a peer
 * that is gone ends the QP, after twice the time of a link that is free: T, 2 T and six
 * times 4 T.
 */
static void test_link_is_often_full(void **state)
{
	struct host *h = unanswered();
	unsigned int quarters = 0;

	(void)state;
	while (!COUNT(h, retry_exceeded) && quarters < 1000) {
		pass(h, T / 4);
		fill_link(h);
		quarters++;
		assert_int_equal(COUNT(h, ack_timeouts) >= 1, quarters >= 2 * 4);
	}
	assert_int_equal(COUNT(h, ack_timeouts), 8);
	assert_int_equal(h->num_sent, 8);
	assert_int_equal(quarters, 2 * (1 + 2 + 6 * 4) * 4);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_timeout),
	cmocka_unit_test(test_gives_up),
	cmocka_unit_test(test_link_was_full),
	cmocka_unit_test(test_link_is_often_full),
};
TEST_MAIN(tests)
