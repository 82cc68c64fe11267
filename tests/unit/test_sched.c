// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "transport/serve.h"

#include "receive.h"
#include "unit.h"

#define QPNS	64

/* Compares the heap with a plain array. */
static void test_timers(void **state)
{
	struct host *h = host_new_ready();
	uint64_t due[QPNS], seed = 7;

	(void)state;
	memset(due, 0xff, sizeof(due));
	for (int round = 0; round < 20000; round++) {
		uint32_t qpn = 2 + host_random(&seed) % (QPNS - 2);
		uint64_t first = QHCA_NEVER;

		if (host_random(&seed) % 3) {
			due[qpn] = 1 + host_random(&seed) % 1000;
			hca_sched_timer(h->fn, qpn, due[qpn]);
		} else {
			due[qpn] = QHCA_NEVER;
			hca_sched_timer_stop(h->fn, qpn);
		}
		for (int i = 0; i < QPNS; i++)
			if (due[i] < first)
				first = due[i];
		assert_int_equal(hca_sched_deadline(h->fn->hca), first);
	}
	host_free(h);
}

/* An adapter whose PF and first VFs are initialised. */
static struct host *new_functions(struct host **vf, unsigned int num)
{
	struct host *pf = host_new_ready();
	struct qhca_init_hca in;

	for (unsigned int i = 0; i < num; i++) {
		vf[i] = host_new_vf(pf, (uint16_t)(i + 1), NULL);
		host_enable(vf[i]);
		host_init_default(vf[i], &in);
		assert_int_equal(host_init_hca(vf[i], &in), QHCA_CMD_OK);
	}
	return pf;
}

/* When a function ends, the QPs and timers of another one stay, in their order. */
static void test_function_ends(void **state)
{
	struct host *vf, *pf = new_functions(&vf, 1);
	struct hca *hca = pf->fn->hca;
	struct hca_turn turn;

	(void)state;
	for (uint32_t qpn = 2; qpn < QPNS; qpn++) {
		struct hca_fn *fn = qpn & 1 ? vf->fn : pf->fn;

		hca_sched_timer(fn, qpn, 1000 - qpn);
		hca_sched_work(fn, qpn, HCA_WORK_SEND);
	}
	hca_sched_fini(vf->fn);

	assert_int_equal(hca->sched.heap_len, QPNS / 2 - 1);
	for (uint32_t qpn = QPNS - 2; qpn >= 2; qpn -= 2) {
		assert_int_equal(hca->sched.heap[1].qpn, qpn);
		assert_int_equal(hca_sched_deadline(hca), 1000 - qpn);
		hca_sched_timer_stop(pf->fn, qpn);
	}
	assert_int_equal(hca_sched_deadline(hca), QHCA_NEVER);
	for (uint32_t qpn = 2; qpn < QPNS; qpn += 2) {
		assert_true(hca_sched_next(hca, &turn));
		assert_ptr_equal(turn.fn, pf->fn);
		assert_int_equal(turn.qpn, qpn);
		hca_sched_end(&turn, 1);
	}
	assert_false(hca_sched_next(hca, &turn));
	assert_false(hca_sched_pending(hca));
	for (uint32_t qpn = 3; qpn < QPNS; qpn += 2)
		assert_int_equal(vf->fn->qps.slot[qpn].heap_pos, 0);
	host_free(pf);
}

/*
 * A function that ends without timers looks at no timer of another one.  Those are in an
 * order that is wrong, which would be put right.
 */
static void test_others_timers(void **state)
{
	struct host *vf, *pf = new_functions(&vf, 1);
	struct hca *hca = pf->fn->hca;

	(void)state;
	for (uint32_t qpn = 2; qpn < QPNS; qpn++)
		hca_sched_timer(pf->fn, qpn, 1000 + qpn);
	for (uint32_t qpn = 2; qpn < QPNS; qpn++)
		pf->fn->qps.slot[qpn].deadline = 1000 - qpn;
	hca_sched_fini(vf->fn);
	for (uint32_t qpn = 2; qpn < QPNS; qpn++)
		assert_int_equal(hca->sched.heap[qpn - 1].qpn, qpn);
	host_free(pf);
}

/* The next turn is that of @qpn, which spends @spent packets and has more if @more. */
static void turn_of(struct host *h, uint32_t qpn, unsigned int spent, bool more)
{
	struct hca_turn turn;

	assert_true(hca_sched_next(h->fn->hca, &turn));
	assert_ptr_equal(turn.fn, h->fn);
	assert_int_equal(turn.qpn, qpn);
	assert_int_equal(turn.quantum, HCA_SCHED_QUANTUM);
	if (more)
		hca_sched_work(h->fn, qpn, HCA_WORK_SEND);
	hca_sched_end(&turn, spent);
}

/* QPs of one function have turns in the order of their work, whatever they spend. */
static void test_one_function(void **state)
{
	struct host *h = host_new_ready();
	uint64_t seed = 3;

	(void)state;
	for (uint32_t qpn = 2; qpn < 10; qpn++)
		hca_sched_work(h->fn, qpn, HCA_WORK_SEND);
	for (uint32_t i = 0; i < 1000; i++)
		turn_of(h, 2 + i % 8, 1 + host_random(&seed) % 40, true);
	/* The QP is in the list already. */
	hca_sched_work(h->fn, 5, HCA_WORK_RESPOND);
	for (uint32_t qpn = 2; qpn < 10; qpn++)
		turn_of(h, qpn, 1, false);
	assert_false(hca_sched_pending(h->fn->hca));
	host_free(h);
}

/* The example of sched.h. */
static void test_credit(void **state)
{
	struct host *vf, *a = new_functions(&vf, 1), *b = vf;

	(void)state;
	for (uint32_t qpn = 2; qpn < 5; qpn++)
		hca_sched_work(a->fn, qpn, HCA_WORK_SEND);
	hca_sched_work(b->fn, 7, HCA_WORK_SEND);
	turn_of(a, 2, 20, true);
	turn_of(a, 3, 20, true);	/* 8 overdrawn */
	turn_of(b, 7, 32, true);
	turn_of(a, 4, 8, true);
	turn_of(a, 2, 20, true);	/* 4 overdrawn */
	turn_of(b, 7, 32, true);
	turn_of(a, 3, 20, false);
	turn_of(a, 4, 8, false);	/* 0 */
	turn_of(b, 7, 32, true);
	turn_of(a, 2, 31, false);	/* 1, which is lost */
	turn_of(b, 7, 20, true);
	hca_sched_work(a->fn, 3, HCA_WORK_SEND);
	turn_of(b, 7, 12, true);
	turn_of(a, 3, 31, true);
	turn_of(a, 3, 31, false);	/* 30 overdrawn, which stays */
	turn_of(b, 7, 32, true);
	hca_sched_work(a->fn, 2, HCA_WORK_SEND);
	turn_of(a, 2, 2, true);
	turn_of(b, 7, 32, true);
	turn_of(a, 2, 1, true);
	host_free(a);
}

/* Functions get equal shares, however many QPs they have and whatever these send. */
static void test_shares(void **state)
{
	enum { FNS = 4, PACKETS = 400000 };
	static const uint32_t qps[FNS] = { 1, 50, 1, 7 };
	static const unsigned int most[FNS] = { 32, 32, 3, 17 };
	struct host *vf[FNS - 1], *pf = new_functions(vf, FNS - 1);
	uint64_t sent[FNS] = { 0 }, seed = 5;
	struct hca_turn turn;

	(void)state;
	for (int i = 0; i < FNS; i++)
		for (uint32_t qpn = 2; qpn < 2 + qps[i]; qpn++)
			hca_sched_work(i ? vf[i - 1]->fn : pf->fn, qpn,
				       HCA_WORK_SEND);
	for (uint64_t all = 0; all < PACKETS;) {
		unsigned int spent;
		uint16_t gvmi;

		assert_true(hca_sched_next(pf->fn->hca, &turn));
		gvmi = turn.fn->cfg.gvmi;
		spent = 1 + host_random(&seed) % most[gvmi];
		hca_sched_work(turn.fn, turn.qpn, HCA_WORK_SEND);
		hca_sched_end(&turn, spent);
		sent[gvmi] += spent;
		all += spent;
	}
	for (int i = 0; i < FNS; i++)
		assert_in_range(sent[i], PACKETS / FNS - 64, PACKETS / FNS + 64);
	host_free(pf);
}

/*
 * A QP that waits for the rate of its function has no turn until there are tokens.
 * Meanwhile it may have one for other work.
 */
static void test_held(void **state)
{
	struct host *vf, *pf = new_functions(&vf, 1);
	struct hca *hca = pf->fn->hca;
	struct hca_turn turn;
	uint64_t due;

	(void)state;
	hca_rate_set(vf->fn, 8, 0);		/* a byte each microsecond */
	for (uint32_t qpn = 2; qpn < 5; qpn++)
		hca_sched_work(vf->fn, qpn, HCA_WORK_SEND);
	hca_rate_sent(vf->fn, 10000);
	assert_true(hca_rate_waits(vf->fn));
	for (uint32_t qpn = 2; qpn < 5; qpn++) {
		assert_true(hca_sched_next(hca, &turn));
		hca_sched_wait(vf->fn, turn.qpn);
		/* The QP waits already. */
		hca_sched_wait(vf->fn, turn.qpn);
		hca_sched_end(&turn, 1);
	}
	assert_false(hca_sched_pending(hca));
	assert_int_equal(hca_sched_run(hca, 100), 0);
	due = hca_sched_deadline(hca);
	assert_int_equal(due, hca->now + 1000000);

	hca_sched_work(vf->fn, 3, HCA_WORK_RESPOND);
	turn_of(vf, 3, 1, false);
	assert_false(hca_sched_next(hca, &turn));

	hca->now = due - 1;
	hca_sched_release(hca);
	assert_false(hca_sched_queued(hca));
	hca->now = due;
	hca_sched_work(vf->fn, 9, HCA_WORK_SEND);
	hca_sched_release(hca);
	turn_of(vf, 2, 1, true);		/* first those that have waited */
	turn_of(vf, 3, 1, false);
	turn_of(vf, 4, 1, false);
	turn_of(vf, 9, 1, false);
	turn_of(vf, 2, 1, false);
	assert_int_equal(hca_sched_deadline(hca), QHCA_NEVER);

	/* An Ethernet frame has used up the tokens before the ring had a turn. */
	hca_sched_wait(vf->fn, 2);
	hca_sched_work(vf->fn, 3, HCA_WORK_SEND);
	hca_rate_sent(vf->fn, 10000);
	assert_true(hca_rate_waits(vf->fn));
	turn_of(vf, 3, 1, false);
	assert_false(hca_sched_next(hca, &turn));
	/* It has its turn again once it is released. */
	hca->now = hca_sched_deadline(hca);
	hca_sched_release(hca);
	assert_true(hca_sched_queued(hca));
	hca_rate_sent(vf->fn, 10000);
	assert_true(hca_rate_waits(vf->fn));
	assert_false(hca_sched_next(hca, &turn));
	assert_false(hca_sched_queued(hca));
	/* Without a rate it continues at once. */
	hca_rate_set(vf->fn, 0, 0);
	hca_sched_release(hca);
	turn_of(vf, 2, 1, false);
	assert_int_equal(COUNT(vf, rate_waits), 3);
	host_free(pf);
}

/* A function below its guarantee goes first, as long as it sends. */
static void test_precedence(void **state)
{
	struct host *vf, *pf = new_functions(&vf, 1);
	struct hca *hca = pf->fn->hca;
	struct hca_turn turn;

	(void)state;
	hca_rate_set(vf->fn, 0, 100);		/* 125,000 bytes in 10 ms */
	hca_sched_work(pf->fn, 2, HCA_WORK_SEND);
	hca_sched_work(vf->fn, 3, HCA_WORK_SEND);
	for (unsigned int frames = 0; frames < 14; frames += 7) {
		assert_true(hca_sched_next(hca, &turn));
		assert_ptr_equal(turn.fn, vf->fn);
		assert_int_equal(turn.quantum, 14 - frames);
		for (int i = 0; i < 7; i++)
			hca_rate_sent(turn.fn, QHCA_MAX_FRAME);
		hca_sched_work(turn.fn, 3, HCA_WORK_SEND);
		hca_sched_end(&turn, 7);
	}
	/* The function has had its guarantee, so the shares are equal. */
	for (int i = 0; i < 3; i++) {
		turn_of(pf, 2, 32, true);
		turn_of(vf, 3, 32, true);
	}
	/*
	 * 1 ms later the function is behind its guarantee, but sends nothing: it has
	 * only one turn for that.
	 */
	hca->now += 1000000;
	assert_true(hca_sched_next(hca, &turn));
	assert_ptr_equal(turn.fn, vf->fn);
	hca_sched_work(turn.fn, 3, HCA_WORK_SEND);
	hca_sched_end(&turn, 1);
	turn_of(pf, 2, 32, true);
	/* The function keeps its place in the round. */
	turn_of(vf, 3, 32, true);
	assert_true(hca_sched_next(hca, &turn));
	assert_ptr_equal(turn.fn, vf->fn);
	hca_rate_sent(turn.fn, 8000);
	hca_sched_work(turn.fn, 3, HCA_WORK_SEND);
	hca_sched_end(&turn, 1);
	assert_true(hca_sched_next(hca, &turn));
	assert_ptr_equal(turn.fn, vf->fn);
	host_free(pf);
}

/*
 * A function without room in the loopback queue has no turns, which would be for
 * nothing, and pays for none; others have theirs.
 */
static void test_no_room(void **state)
{
	struct host *vf[2], *pf = new_functions(vf, 2);
	struct hca *hca = pf->fn->hca;
	int32_t credit;
	uint8_t *f;

	(void)state;
	while ((f = hca_tx_begin(vf[0]->fn, 60)) != NULL) {
		memset(f, 0, 60);
		memcpy(f, pf->fn->port.mac, 6);
		memcpy(f + 6, vf[0]->fn->port.mac, 6);
		hca_tx_raw(vf[0]->fn, 60);
	}
	hca_sched_work(vf[0]->fn, 5, HCA_WORK_SEND);
	hca_sched_work(vf[1]->fn, 6, HCA_WORK_SEND);
	credit = vf[0]->fn->sched.credit;
	assert_int_equal(hca_sched_run(hca, 100), 1);
	assert_true(vf[0]->fn->qps.slot[5].work & HCA_WORK_SEND);
	assert_false(vf[1]->fn->qps.slot[6].work & HCA_WORK_SEND);
	assert_true(vf[0]->fn->sched.credit == 0 ||
		    vf[0]->fn->sched.credit == credit);
	assert_false(hca_sched_pending(hca));
	assert_int_equal(hca_wire_run(hca, 1000), HCA_LOOP_FRAMES - 2);
	assert_true(hca_sched_pending(hca));
	assert_int_equal(hca_sched_run(hca, 100), 1);
	assert_false(vf[0]->fn->qps.slot[5].work & HCA_WORK_SEND);
	assert_false(hca_sched_pending(hca));
	host_free(pf);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_one_function),
	cmocka_unit_test(test_credit),
	cmocka_unit_test(test_shares),
	cmocka_unit_test(test_held),
	cmocka_unit_test(test_precedence),
	cmocka_unit_test(test_function_ends),
	cmocka_unit_test(test_others_timers),
	cmocka_unit_test(test_timers),
	cmocka_unit_test(test_no_room),
};

TEST_MAIN(tests)
