// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* Completion events and asynchronous events. */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>

#include "cases.h"

static bool event_within(struct test *t, int ms)
{
	struct pollfd fd = { .fd = t->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, ms) <= 0)
		return false;
	if (!EXPECT(t, !ibv_get_cq_event(t->channel, &cq, &context), "ibv_get_cq_event"))
		return false;
	EXPECT(t, cq == t->recv_cq, "an event of another CQ");
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void send_with(struct test *t, uint64_t id, int flags)
{
	post(t, &(struct request) { .id = id, .opcode = IBV_WR_SEND, .len = 64,
				    .flags = IBV_SEND_SIGNALED | flags });
	expect_wc(t, t->send_cq, id, IBV_WC_SUCCESS);
}

static void solicited_client(struct test *t)
{
	meet(t);
	send_with(t, 1, 0);
	meet(t);
	meet(t);
	send_with(t, 2, IBV_SEND_SOLICITED);
}

static void solicited_server(struct test *t)
{
	post_receive(t, 1, 0, 64);
	post_receive(t, 2, 0, 64);
	EXPECT(t, !ibv_req_notify_cq(t->recv_cq, 1), "ibv_req_notify_cq");
	meet(t);
	meet(t);
	expect_wc(t, t->recv_cq, 1, IBV_WC_SUCCESS);
	EXPECT(t, !event_within(t, 200), "an event for an unsolicited message");
	meet(t);
	EXPECT(t, event_within(t, SOON), "no event for a solicited message");
	expect_wc(t, t->recv_cq, 2, IBV_WC_SUCCESS);
}

static void armed_client(struct test *t)
{
	for (int i = 1; i <= 3; i++) {
		meet(t);
		send_with(t, i, 0);
		meet(t);
	}
}

static void armed_server(struct test *t)
{
	for (int i = 1; i <= 3; i++)
		post_receive(t, i, 0, 64);
	/* Not armed: no event. */
	meet(t);
	meet(t);
	expect_wc(t, t->recv_cq, 1, IBV_WC_SUCCESS);
	EXPECT(t, !event_within(t, 200), "an event of a CQ that was not armed");
	/* Armed: one event. */
	EXPECT(t, !ibv_req_notify_cq(t->recv_cq, 0), "ibv_req_notify_cq");
	meet(t);
	meet(t);
	EXPECT(t, event_within(t, SOON), "no event of an armed CQ");
	expect_wc(t, t->recv_cq, 2, IBV_WC_SUCCESS);
	/* Not armed again. */
	meet(t);
	meet(t);
	expect_wc(t, t->recv_cq, 3, IBV_WC_SUCCESS);
	EXPECT(t, !event_within(t, 200), "a second event of a CQ that was armed once");
}

#define RESIZED 4	/* messages of the case below */

static void resized_client(struct test *t)
{
	meet(t);
	for (int i = 1; i <= RESIZED; i++) {
		send_with(t, i, 0);
		meet(t);
		meet(t);
	}
}

/*
 * The CQ gets room elsewhere with two completions in it that nobody has polled.  These raise
 * no event, nor does one that came between the resize and the arming.
 */
static void resized_server(struct test *t)
{
	int rc;

	for (int i = 1; i <= RESIZED; i++)
		post_receive(t, i, 0, 64);
	meet(t);
	for (int i = 1; i <= RESIZED; i++) {
		meet(t);
		if (i == 2) {
			rc = ibv_resize_cq(t->recv_cq, t->recv_cq->cqe + 100);
			EXPECT(t, !rc, "ibv_resize_cq: %s", strerror(rc));
		}
		EXPECT(t, event_within(t, i > 2 ? SOON : 0) == (i > 2),
		       "%s event with message %d", i > 2 ? "no" : "an", i);
		if (i >= 2) {
			EXPECT(t, !ibv_req_notify_cq(t->recv_cq, 0), "ibv_req_notify_cq");
			EXPECT(t, !event_within(t, 200),
			       "an event for message %d, before which the CQ was not armed", i);
		}
		meet(t);
	}
	for (int i = 1; i <= RESIZED; i++)
		expect_wc(t, t->recv_cq, i, IBV_WC_SUCCESS);
}

/* An error is a solicited event. */
static void error_event(struct test *t)
{
	post_receive(t, 1, 0, 64);
	EXPECT(t, !ibv_req_notify_cq(t->recv_cq, 1), "ibv_req_notify_cq");
	EXPECT(t, !qp_error(t->qp), "cannot move the QP to ERR");
	EXPECT(t, event_within(t, SOON), "no event for a flushed receive");
	expect_flushed(t, t->recv_cq, 1, 1);
}

static void established_client(struct test *t)
{
	meet(t);
	post_send(t, 1, 64);
	expect_wc(t, t->send_cq, 1, IBV_WC_SUCCESS);
}

static void established_server(struct test *t)
{
	post_receive(t, 1, 0, 64);
	meet(t);
	expect_event(t, IBV_EVENT_COMM_EST);
	expect_wc(t, t->recv_cq, 1, IBV_WC_SUCCESS);
	EXPECT(t, !qp_to_rts(t->qp, &t->conn, t->here.psn), "cannot go on to RTS");
}

/* -- shared receive queues -------------------------------------------------- */

static void limit_client(struct test *t)
{
	meet(t);
	for (int i = 1; i <= 4; i++) {
		post_send(t, i, 64);
		expect_wc(t, t->send_cq, i, IBV_WC_SUCCESS);
	}
}

static void limit_server(struct test *t)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };

	for (int i = 1; i <= 6; i++)
		post_receive(t, i, 0, 64);
	EXPECT(t, !ibv_modify_srq(t->srq, &attr, IBV_SRQ_LIMIT), "ibv_modify_srq");
	meet(t);
	expect_event(t, IBV_EVENT_SRQ_LIMIT_REACHED);
	for (int i = 1; i <= 4; i++)
		expect_wc(t, t->recv_cq, i, IBV_WC_SUCCESS);
	EXPECT(t, !ibv_query_srq(t->srq, &attr), "ibv_query_srq");
	EXPECT(t, attr.srq_limit == 0, "the limit is %u after its event", attr.srq_limit);
}

#define GROWN 200

/* An rxe requester stops for ever when it gets RNR NAKs with much under way. */
static void meet_if_rxe_sends(struct test *t)
{
	if (t->peer->server ? t->far_is_rxe : t->is_rxe)
		meet(t);
}

static void grows_client(struct test *t)
{
	meet(t);
	for (int i = 1; i <= GROWN; i++) {
		if (i == QUEUE_DEPTH / 2 + 1)
			meet_if_rxe_sends(t);
		post_send(t, i, 64);
		if (i % 32 == 0 || i == GROWN)
			for (int k = (i - 1) / 32 * 32 + 1; k <= i; k++)
				expect_wc(t, t->send_cq, k, IBV_WC_SUCCESS);
	}
}

/* Messages keep arriving; the receives serve them in order. */
static void grows_server(struct test *t)
{
	struct ibv_srq_attr attr = { .max_wr = GROWN };
	int posted = 0, rc;

	while (posted < QUEUE_DEPTH / 2)
		post_receive(t, ++posted, 0, 64);
	meet(t);
	for (int i = 1; i <= GROWN; i++) {
		expect_wc(t, t->recv_cq, i, IBV_WC_SUCCESS);
		if (i != 8)
			continue;
		rc = ibv_modify_srq(t->srq, &attr, IBV_SRQ_MAX_WR);
		EXPECT(t, !rc, "ibv_modify_srq: %s", strerror(rc));
		rc = ibv_query_srq(t->srq, &attr);
		EXPECT(t, !rc && attr.max_wr >= GROWN, "the SRQ has room for %u", attr.max_wr);
		while (posted < GROWN)
			post_receive(t, ++posted, 0, 64);
		meet_if_rxe_sends(t);
	}
	expect_none(t, t->recv_cq, 10);
	attr.max_wr = 0;
	EXPECT(t, ibv_modify_srq(t->srq, &attr, IBV_SRQ_MAX_WR), "an SRQ of no size");
	attr.max_wr = t->peer->attr.max_srq_wr + 1;
	EXPECT(t, ibv_modify_srq(t->srq, &attr, IBV_SRQ_MAX_WR), "an SRQ that is too large");
}

static void last_wqe_server(struct test *t)
{
	for (int i = 1; i <= 2; i++)
		post_receive(t, i, 0, 64);
	EXPECT(t, !qp_error(t->qp), "cannot move the QP to ERR");
	expect_event(t, IBV_EVENT_QP_LAST_WQE_REACHED);
	/* The SRQ keeps its receives. */
	expect_none(t, t->recv_cq, 50);
}

static void nothing(struct test *t)
{
	(void)t;
}

/* -- a completion queue that runs over -------------------------------------- */

static void overrun_client(struct test *t)
{
	meet(t);
	for (int i = 0; i < QUEUE_DEPTH / 2; i++)
		post_send(t, i, 16);
	/*
	 * Whether the peer has acknowledged the request or not: without its CQ its
	 * QP is dead.
	 */
	meet(t);
}

static void overrun_server(struct test *t)
{
	for (int i = 0; i < QUEUE_DEPTH / 2; i++)
		post_receive(t, i, 0, 64);
	meet(t);
	expect_event(t, IBV_EVENT_CQ_ERR);
	if (!t->is_rxe) {
		expect_event(t, IBV_EVENT_QP_FATAL);
		expect_state(t, IBV_QPS_ERR);
	}
	meet(t);
}

/* -- completions of a QP that has been destroyed ---------------------------- */

#define UNPOLLED 8

static void outlive_client(struct test *t)
{
	int rc;

	for (int i = 0; i < UNPOLLED; i++)
		post_receive(t, i, 0, 64);
	EXPECT(t, !ibv_req_notify_cq(t->recv_cq, 1), "ibv_req_notify_cq");
	meet(t);
	EXPECT(t, event_within(t, SOON), "no event for the last message");
	meet(t);
	rc = ibv_destroy_qp(t->qp);
	EXPECT(t, !rc, "ibv_destroy_qp: %s", strerror(rc));
	if (!rc)
		t->qp = NULL;
	for (int i = 0; i < UNPOLLED; i++)
		expect_wc(t, t->recv_cq, i, IBV_WC_SUCCESS);
	expect_none(t, t->recv_cq, 10);
}

/* Only the last message makes an event, so that all have arrived by then. */
static void outlive_server(struct test *t)
{
	meet(t);
	for (int i = 0; i < UNPOLLED; i++)
		send_with(t, i, i == UNPOLLED - 1 ? IBV_SEND_SOLICITED : 0);
	meet(t);
}

#define NO_ERROR_EVENT "an error is no solicited event to it"

const struct test_case event_cases[] = {
	{ "solicited events", solicited_client, solicited_server },
	{ "an event for each arm", armed_client, armed_server },
	{ "an event for each arm of a resized CQ", resized_client, resized_server },
	{ "a flushed receive is a solicited event", error_event, error_event,
	  .no_rxe_client = NO_ERROR_EVENT, .no_rxe_server = NO_ERROR_EVENT },
	{ "the first packet establishes communication", established_client, established_server,
	  .flags = STAY_RTR, .no_rxe_server = "raises no such event" },
	{ "an SRQ's limit", limit_client, limit_server, .flags = WITH_SRQ },
	{ "an SRQ grows", grows_client, grows_server, .flags = WITH_SRQ, .cqes = 2 * GROWN },
	{ "the last work request of an SRQ", nothing, last_wqe_server, .flags = WITH_SRQ },
	{ "completions of a destroyed QP", outlive_client, outlive_server },
	{ "completions of a destroyed QP with an SRQ", outlive_client, outlive_server, .flags = WITH_SRQ },
	{ "a CQ that runs over", overrun_client, overrun_server, .cqes = 4 },
	{ }
};
