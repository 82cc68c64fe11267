// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "transport/serve.h"

#include "unit.h"

#define CQN	9u
#define QPN	5u

/* An application that posts requests, and the device's view of its send queue. */
struct poster {
	struct host *h;
	struct ring cq, eq;
	struct hca_qp qp;
	uint32_t polled;		/* CQEs that software has taken */
	struct host_watch watch;	/* of the CQ's index */
};

static struct poster poster(void)
{
	struct poster p = {
		.h = host_new_ready(),
		.qp = { .qpn = QPN, .type = QHCA_QPT_RC, .send_cqn = CQN },
	};

	p.eq = host_ring(p.h, 6);
	p.cq = host_ring(p.h, 8);
	assert_int_equal(host_create_eq(p.h, 0, &p.eq, 0), QHCA_CMD_OK);
	assert_int_equal(host_create_cq(p.h, CQN, &p.cq, 0), QHCA_CMD_OK);
	p.h->fn->hca->now = 1000000000;
	hca_linger_forget(p.h->fn, QPN);
	return p;
}

/* The host counts the device's reads of the CQ's index. */
static void watch_cq(struct poster *p)
{
	host_watch(p->h, &p->watch, p->cq.record, 4);
}

/* The device notices @n requests together, and begins them. */
static void post(struct poster *p, uint32_t n)
{
	uint32_t old = p->qp.sq_pi;

	p->qp.sq_pi += n;
	p->qp.sq_cur = p->qp.sq_max = p->qp.sq_pi;
	p->h->fn->hca->now += 1000;
	hca_linger_posted(p->h->fn, &p->qp, old);
}

/* The oldest request completes, with a CQE or without. */
static void end(struct poster *p, bool signaled)
{
	struct qhca_cqe cqe = { 0 };
	uint32_t wqe = p->qp.sq_ci++;

	if (!signaled)
		return;
	put_le32(&cqe.wqe, wqe);
	assert_true(hca_cq_post(p->h->fn, CQN, &cqe));
	hca_linger_completed(p->h->fn, &p->qp, wqe);
}

static void poll(struct poster *p, uint32_t n)
{
	p->polled += n;
	host_set_ci(p->h, &p->cq, p->polled);
}

/* Returns whether the device keeps watching the queue, which is empty. */
static bool stays(struct poster *p)
{
	return hca_linger_stay(p->h->fn, &p->qp);
}

static uint64_t first_look(const struct poster *p)
{
	return p->h->fn->hca->linger.first_due;
}

static void let_time_pass(struct poster *p, uint64_t ns)
{
	p->h->fn->hca->now += ns;
	hca_linger_run(p->h->fn->hca);
}

/*
 * The application posts one request, takes its completion and posts the next: the device
 * stops watching the queue each time.
 */
static void test_one_at_a_time(void **state)
{
	struct poster p = poster();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		post(&p, 1);
		assert_false(stays(&p));
		end(&p, true);
		assert_false(stays(&p));
		poll(&p, 1);
	}
	host_free(p.h);
}

/* All requests have ended; software has not yet seen the ends of so many. */
static void test_ends_not_seen(void **state)
{
	struct poster p = poster();
	uint32_t left = 0;

	(void)state;
	/* As many follow, and the one before them, whose end software has not seen. */
	for (uint32_t i = 0; i < HCA_LINGER_WINDOW + 1; i++) {
		assert_int_equal(stays(&p), false);
		post(&p, 1);
		end(&p, true);
	}
	assert_true(stays(&p));
	/* Software sees the ends, one before each of the posts that follow. */
	for (int i = 0; i < 1000; i++) {
		poll(&p, 1);
		post(&p, 1);
		end(&p, true);
		assert_true(stays(&p));
	}
	/* Software sees all at once: the device forgets them, but not immediately. */
	poll(&p, HCA_LINGER_WINDOW + 1);
	while (stays(&p)) {
		post(&p, 1);
		end(&p, true);
		poll(&p, 1);
		assert_true(++left < 16);
	}
	assert_true(left > 1);
	host_free(p.h);
}

static uint64_t looks(const struct poster *p)
{
	return qhca_counter(p->h->hca, 0, QHCA_CNT_cq_refetches);
}

/*
 * The CQ's index is read only where it can change what the device does, each
 * read is counted, and replaces the copy that the CQ's threshold is compared with.
 */
static void test_looks_at_cq(void **state)
{
	struct poster p = poster();
	uint64_t before;

	(void)state;
	watch_cq(&p);
	/* Requests are posted one at a time: after 8 posts, 16 more, 32 more, ... */
	for (int i = 0; i < 249; i++) {
		post(&p, 1);
		assert_false(stays(&p));
		end(&p, true);
		poll(&p, 1);
	}
	assert_int_equal(looks(&p), 5);
	assert_int_equal(p.watch.reads, looks(&p));
	/* With several under way the device stays, whatever the CQ says. */
	before = looks(&p);
	post(&p, 4);
	for (int i = 0; i < 100; i++) {
		post(&p, 1);
		end(&p, true);
		assert_true(stays(&p));
	}
	assert_int_equal(looks(&p), before);
	assert_int_equal(p.watch.reads, before);
	host_free(p.h);
}

/*
 * The device never watches the queue of an unreliable QP, and does not read the index
 * for it.
 */
static void test_no_look_for_unreliable(void **state)
{
	struct poster p = poster();

	(void)state;
	p.qp.type = QHCA_QPT_UD;
	watch_cq(&p);
	for (int i = 0; i < 200; i++) {
		post(&p, 1);
		end(&p, true);
	}
	assert_int_equal(looks(&p), 0);
	assert_int_equal(p.watch.reads, 0);
	host_free(p.h);
}

/*
 * Software cannot have seen the end of a request without a CQE before that of the next
 * one with a CQE.
 */
static void test_few_cqes(void **state)
{
	struct poster p = poster();
	int turned = 0;

	(void)state;
	for (int i = 0; i < 6400; i++) {
		post(&p, 1);
		end(&p, i % 64 == 63);
		turned += !stays(&p);
		if (i % 64 == 63)
			poll(&p, 1);
	}
	assert_int_equal(turned, HCA_LINGER_WINDOW - 1);
	host_free(p.h);
}

/* Two requests under way are enough; for an unreliable QP no number is. */
static void test_under_way(void **state)
{
	struct poster p = poster();

	(void)state;
	post(&p, 1);
	assert_false(stays(&p));
	post(&p, 1);
	assert_true(stays(&p));
	p.qp.type = QHCA_QPT_UC;
	assert_false(stays(&p));
	host_free(p.h);
}

/*
 * One of the peer's messages comes before each post, and may be what the application waited
 * for.  A CQE that is taken late shows nothing that the messages have not shown, even if one
 * of them fails to come.
 */
static void test_answers(void **state)
{
	struct poster p = poster();

	(void)state;
	for (int i = 0; i < 1000; i++) {
		post(&p, 1);
		end(&p, i % 32 == 0);
		assert_false(stays(&p));
		if (i % 32 == 16)
			poll(&p, 1);
		else
			hca_linger_message(p.h->fn, QPN);
	}
	host_free(p.h);
}

/* ... but not where there are none, two, or one, as it happens. */
static void test_crossing_streams(void **state)
{
	struct poster p = poster();
	uint64_t seed = 1;
	int turned = 0;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		post(&p, 1);
		end(&p, i % 64 == 63);
		turned += !stays(&p);
		if (i % 64 == 63)
			poll(&p, 1);
		for (uint64_t n = host_random(&seed) % 3; n; n--)
			hca_linger_message(p.h->fn, QPN);
	}
	assert_in_range(turned, 0, 10000 / 32);
	host_free(p.h);
}

/*
 * The device looks at the queue after @ns, and after twice the time of the look before,
 * but within @most, until it stops.  Returns how often.
 */
static unsigned int looks_until_end(struct poster *p, uint64_t ns,
				    uint64_t most)
{
	uint64_t last = p->h->fn->hca->now;
	unsigned int num = 0;

	for (; stays(p); num++) {
		assert_in_range(p->h->fn->hca->now - last, 0, HCA_LINGER_END_NS);
		assert_int_equal(first_look(p), p->h->fn->hca->now + ns);
		assert_false(hca_sched_pending(p->h->fn->hca));
		let_time_pass(p, ns - 1);
		assert_false(hca_sched_pending(p->h->fn->hca));
		let_time_pass(p, 1);
		assert_true(hca_sched_pending(p->h->fn->hca));
		assert_int_equal(first_look(p), QHCA_NEVER);
		hca_sched_run(p->h->fn->hca, 1000);
		ns = 2 * ns < most ? 2 * ns : most;
	}
	return num;
}

/* Requests are posted, sent and acknowledged. */
static void all_acknowledged(struct poster *p)
{
	post(p, 32);
	while (p->qp.sq_ci != p->qp.sq_max)
		end(p, false);
}

/*
 * When the device looks at the queue again, and when it stops: acknowledgements make it
 * look as well, so its timer is slower while they are to come.  When they have come, a
 * program that has waited for them posts at once, and where a look costs little the device
 * looks soon.
 */
static void test_looks(void **state)
{
	struct poster p = poster();

	(void)state;
	assert_int_equal(first_look(&p), QHCA_NEVER);
	post(&p, 32);
	assert_int_equal(looks_until_end(&p, HCA_LINGER_ACKED_NS, HCA_LINGER_ACKED_NS),
			 HCA_LINGER_END_NS / HCA_LINGER_ACKED_NS + 1);

	all_acknowledged(&p);
	assert_int_equal(looks_until_end(&p, HCA_LINGER_NS, HCA_LINGER_NS),
			 HCA_LINGER_END_NS / HCA_LINGER_NS + 1);

	qhca_timers_are_cheap(p.h->hca, true);
	for (int i = 0; i < 2; i++) {
		all_acknowledged(&p);
		/* It waits 5, 10, 20 and 40 us, and then 50 until 1 ms is over. */
		assert_int_equal(looks_until_end(&p, 5000, HCA_LINGER_NS),
				 4 + 19);
	}
	host_free(p.h);
}

static void test_forget(void **state)
{
	struct poster p = poster();

	(void)state;
	post(&p, 32);
	assert_true(stays(&p));
	hca_linger_forget(p.h->fn, QPN);
	assert_int_equal(p.h->fn->hca->linger.num, 0);
	assert_false(stays(&p));	/* although requests are under way */
	host_free(p.h);
}

/*
 * When a function ends, the device goes on lingering at QPs of another one.  The test
 * changes the GVMI of the one function to have two.
 */
static void test_function_ends(void **state)
{
	struct poster p = poster();
	struct hca_fn *fn = p.h->fn;

	(void)state;
	post(&p, 32);
	assert_true(stays(&p));
	fn->cfg.gvmi++;
	hca_linger_fini(fn);
	fn->cfg.gvmi--;
	assert_int_equal(fn->hca->linger.num, 1);
	assert_int_equal(first_look(&p), fn->hca->now + HCA_LINGER_ACKED_NS);
	hca_linger_fini(fn);
	assert_int_equal(fn->hca->linger.num, 0);
	assert_int_equal(first_look(&p), QHCA_NEVER);
	host_free(p.h);
}

/* So many QPs of @fn at which the device would linger. */
static unsigned int linger_at(struct hca_fn *fn, unsigned int num)
{
	unsigned int stay = 0;

	for (uint32_t i = 0; i < num; i++) {
		struct hca_qp qp = { .qpn = 2 + i, .type = QHCA_QPT_RC,
				     .sq_pi = 32, .sq_max = 32 };

		hca_linger_posted(fn, &qp, 0);
		stay += hca_linger_stay(fn, &qp);
	}
	return stay;
}

/* One function cannot have all places while there are others, and gives up what they need. */
static void test_shares(void **state)
{
	struct host *pf = host_new_ready(), *vf[2];
	struct hca *hca = pf->fn->hca;
	struct qhca_init_hca in;

	(void)state;
	for (uint16_t i = 0; i < 2; i++) {
		vf[i] = host_new_vf(pf, i + 1, NULL);
		host_enable(vf[i]);
		host_init_default(vf[i], &in);
		assert_int_equal(host_init_hca(vf[i], &in), QHCA_CMD_OK);
	}
	assert_int_equal(linger_at(vf[0]->fn, 62), HCA_LINGER_MAX - 2);
	assert_int_equal(linger_at(pf->fn, 62), 1);
	/* When the first function has looked again, the two are equal. */
	linger_at(vf[0]->fn, 62);
	linger_at(pf->fn, 62);
	assert_int_equal(hca->linger.places.of[0], (HCA_LINGER_MAX - 1) / 2);
	assert_int_equal(hca->linger.places.of[1], (HCA_LINGER_MAX - 1) / 2);
	assert_int_equal(linger_at(vf[1]->fn, 62), 2);
	assert_int_equal(hca->linger.num, HCA_LINGER_MAX);
	hca_linger_fini(pf->fn);
	assert_int_equal(hca->linger.places.of[0], 0);
	assert_int_equal(hca->linger.places.fns, 1 << 1 | 1 << 2);
	host_free(pf);
}

/* Any value in the CQ's record, and a record that the device cannot read. */
static void test_bad_record(void **state)
{
	struct poster p = poster();
	uint64_t seed = 3;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		host_set_ci(p.h, &p.cq, (uint32_t)host_random(&seed));
		p.h->fail_in = i % 2;
		post(&p, 1);
		p.h->fail_in = 0;
		end(&p, i < 100);
		stays(&p);
	}
	assert_false(hca_is_dead(p.h->fn));
	host_free(p.h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_function_ends),
	cmocka_unit_test(test_shares),
	cmocka_unit_test(test_one_at_a_time),
	cmocka_unit_test(test_ends_not_seen),
	cmocka_unit_test(test_looks_at_cq),
	cmocka_unit_test(test_no_look_for_unreliable),
	cmocka_unit_test(test_few_cqes),
	cmocka_unit_test(test_under_way),
	cmocka_unit_test(test_answers),
	cmocka_unit_test(test_crossing_streams),
	cmocka_unit_test(test_looks),
	cmocka_unit_test(test_forget),
	cmocka_unit_test(test_bad_record),
};

TEST_MAIN(tests)
