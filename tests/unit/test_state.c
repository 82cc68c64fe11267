// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The states of the parts of a QP: their names, which QPs may be in them, and
 * the trace point.
 */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_STATES	16u

/* Each state of each part has a name of its own, and nothing else has one. */
static void test_names(void **state)
{
	static const unsigned int num[QHCA_NUM_QP_PARTS] = {
		HCA_NUM_REQ, HCA_NUM_RESP, HCA_NUM_REQF, HCA_NUM_RESPF,
	};

	(void)state;
	for (unsigned int p = 0; p < QHCA_NUM_QP_PARTS; p++) {
		for (unsigned int i = 0; i < num[p]; i++) {
			assert_non_null(qhca_qp_part_state(p, i));
			for (unsigned int j = 0; j < i; j++)
				assert_string_not_equal(qhca_qp_part_state(p, i),
							qhca_qp_part_state(p, j));
		}
		for (unsigned int i = num[p]; i < MAX_STATES; i++)
			assert_null(qhca_qp_part_state(p, i));
	}
	assert_null(qhca_qp_part_state(QHCA_NUM_QP_PARTS, 0));
}

/* A QP of @type in @qp_state, whose parts do nothing. */
static struct hca_qp idle(uint8_t type, uint8_t qp_state)
{
	return (struct hca_qp){
		.type = type, .state = qp_state,
		.r_state = qp_state == QHCA_QPS_ERR ? HCA_RESP_STOPPED :
						      HCA_RESP_READY,
	};
}

static void test_idle(void **state)
{
	(void)state;
	for (uint8_t type = 0; type <= QHCA_QPT_RAW; type++)
		for (uint8_t s = 0; s <= QHCA_QPS_ERR; s++) {
			struct hca_qp qp = idle(type, s);

			assert_true(hca_qp_parts_sane(&qp));
		}
}

/* In a row: a part in a state, and the only types and states of a QP for that. */
static void test_who(void **state)
{
	static const uint8_t reliable[] = { QHCA_QPT_RC, QHCA_QPT_UC };
	static const uint8_t unreliable[] = { QHCA_QPT_UC, QHCA_QPT_RC };
	static const uint8_t both[] = { QHCA_QPT_RC, QHCA_QPT_UC };
	static const uint8_t sends = 1u << QHCA_QPS_RTS | 1u << QHCA_QPS_SQD;
	static const uint8_t receives = sends | 1u << QHCA_QPS_RTR |
					1u << QHCA_QPS_SQE;
	static const struct {
		const uint8_t *types;	/* one that may, one that may not */
		uint8_t states;
		size_t part;
		uint8_t value;
	} rows[] = {
#define PART(name)	offsetof(struct hca_qp, name)
		{ reliable, sends, PART(s_state), HCA_REQ_ACK_WAIT },
		{ reliable, sends, PART(s_state), HCA_REQ_RNR_WAIT },
		{ reliable, receives, PART(r_state), HCA_RESP_NAK_DUE },
		{ reliable, receives, PART(r_state), HCA_RESP_NAK_SENT },
		{ reliable, receives, PART(r_state), HCA_RESP_FATAL_NAK_DUE },
		{ unreliable, receives, PART(r_state), HCA_RESP_DROPPING },
		{ reliable, sends, PART(f_req), HCA_REQF_SCATTER },
		{ both, sends | 1u << QHCA_QPS_SQE, PART(f_req),
		  HCA_REQF_GATHER },
		{ both, sends, PART(f_req), HCA_REQF_FAILED },
		{ reliable, receives, PART(f_resp), HCA_RESPF_REQUEST },
		{ reliable, receives, PART(f_resp), HCA_RESPF_READ },
		{ reliable, receives, PART(f_resp), HCA_RESPF_READ_NAKED },
		{ reliable, receives, PART(f_resp), HCA_RESPF_REQUEST_READ },
		{ unreliable, receives, PART(f_resp), HCA_RESPF_DROPPED },
		{ unreliable, receives, PART(f_resp), HCA_RESPF_FAILED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (uint8_t s = 0; s <= QHCA_QPS_ERR; s++)
			for (int t = 0; t < 2; t++) {
				struct hca_qp qp = idle(rows[i].types[t], s);

				((uint8_t *)&qp)[rows[i].part] = rows[i].value;
				assert_int_equal(hca_qp_parts_sane(&qp),
						 (!t || rows[i].types == both) &&
						 rows[i].states >> s & 1);
			}
}

/* Does the engine stop when @part goes from one state to the other? */
static bool stops(struct hca_fn *fn, enum qhca_qp_part part, size_t offset,
		  uint8_t from, uint8_t to)
{
	struct hca_qp qp = idle(QHCA_QPT_RC, QHCA_QPS_RTS);
	int status = 0;
	pid_t child;

	((uint8_t *)&qp)[offset] = from;
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		signal(SIGABRT, SIG_DFL);
		fclose(stderr);
		hca_qp_enter(fn, &qp, part, to);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		assert_int_equal(WTERMSIG(status), SIGABRT);
	else
		assert_int_equal(status, 0);
	return WIFSIGNALED(status);
}

/* In checked builds no part enters a state except from those that lead there. */
static void test_transitions(void **state)
{
	static const struct {
		enum qhca_qp_part part;
		size_t offset;
		uint8_t num;
		uint8_t from[8];	/* by state: bits of those before it */
	} parts[] = {
		{ QHCA_PART_REQUESTER, PART(s_state), HCA_NUM_REQ,
		  { 0x7, 0x1, 0x3 } },
		{ QHCA_PART_RESPONDER, PART(r_state), HCA_NUM_RESP,
		  { 0x26, 0x05, 0x02, 0x07, 0x3f, 0x01 } },
		{ QHCA_PART_REQUESTER_FAULT, PART(f_req), HCA_NUM_REQF,
		  { 0xf, 0x9, 0xb, 0x2 } },
		{ QHCA_PART_RESPONDER_FAULT, PART(f_resp), HCA_NUM_RESPF,
		  { 0x7f, 0x41, 0x01, 0x01, 0x08, 0x04, 0x02 } },
	};
	struct host *h = host_new_ready();

	(void)state;
#ifndef HCA_CHECKED
	host_free(h);
	skip();
#endif
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		for (uint8_t from = 0; from < parts[i].num; from++)
			for (uint8_t to = 0; to < parts[i].num; to++)
				assert_int_equal(stops(h->fn, parts[i].part,
						       parts[i].offset, from, to),
						 from != to &&
						 !(parts[i].from[to] >> from & 1));
	host_free(h);
}

/* A value that is no state, and a responder that goes on in ERR. */
static void test_impossible(void **state)
{
	struct hca_qp qp = idle(QHCA_QPT_RC, QHCA_QPS_RTS);

	(void)state;
	qp.s_state = HCA_NUM_REQ;
	assert_false(hca_qp_parts_sane(&qp));
	qp = idle(QHCA_QPT_RC, QHCA_QPS_RTS);
	qp.f_resp = HCA_NUM_RESPF;
	assert_false(hca_qp_parts_sane(&qp));
	qp = idle(QHCA_QPT_RC, QHCA_QPS_RTS);
	qp.r_state = HCA_RESP_STOPPED;
	assert_false(hca_qp_parts_sane(&qp));
	qp = idle(QHCA_QPT_RC, QHCA_QPS_ERR);
	qp.r_state = HCA_RESP_READY;
	assert_false(hca_qp_parts_sane(&qp));
}

static unsigned int traced;

static void note(void *host, uint16_t gvmi, enum qhca_trace_id id, uint64_t a,
		 uint64_t b, uint64_t c, uint64_t d)
{
	(void)host;
	assert_int_equal(gvmi, 0);
	assert_int_equal(id, QHCA_TRACE_QP_PART);
	assert_int_equal(a, 9);
	assert_int_equal(b, QHCA_PART_REQUESTER);
	assert_string_equal(qhca_qp_part_state(b, c), "ready");
	assert_string_equal(qhca_qp_part_state(b, d), "ack-wait");
	traced++;
}

/* A change is traced once, with the states before and after it. */
static void test_trace(void **state)
{
	struct host *h = host_new_ready();
	struct hca_qp qp = idle(QHCA_QPT_RC, QHCA_QPS_RTS);

	(void)state;
	qp.qpn = 9;
	h->fn->hca->ops.trace = note;
	qhca_trace_mask(h->hca, 1ull << QHCA_TRACE_QP_PART);
	traced = 0;
	hca_qp_enter(h->fn, &qp, QHCA_PART_REQUESTER, HCA_REQ_READY);
	assert_int_equal(traced, 0);
	hca_qp_enter(h->fn, &qp, QHCA_PART_REQUESTER, HCA_REQ_ACK_WAIT);
	hca_qp_enter(h->fn, &qp, QHCA_PART_REQUESTER, HCA_REQ_ACK_WAIT);
	assert_int_equal(traced, 1);
	assert_int_equal(qp.s_state, HCA_REQ_ACK_WAIT);
	qhca_trace_mask(h->hca, 0);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_names),
	cmocka_unit_test(test_idle),
	cmocka_unit_test(test_who),
	cmocka_unit_test(test_transitions),
	cmocka_unit_test(test_impossible),
	cmocka_unit_test(test_trace),
};

TEST_MAIN(tests)
