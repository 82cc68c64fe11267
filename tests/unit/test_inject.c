// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "sending.h"

static struct qhca_inject_config rule(enum qhca_inject_kind kind, uint32_t ppm,
				      uint64_t nth)
{
	struct qhca_inject_config cfg = { .on_tx = true, .seed = 42 };

	cfg.rule[kind].ppm = ppm;
	cfg.rule[kind].nth = nth;
	return cfg;
}

static void set(struct host *h, struct qhca_inject_config cfg)
{
	char err[100] = "";

	assert_true(qhca_inject_set(h->hca, &cfg, err, sizeof(err)));
}

static void test_set(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_inject_config cfg = rule(QHCA_INJECT_DROP, 1000001, 0), got;
	char err[100] = "";

	(void)state;
	assert_false(qhca_inject_set(h->hca, &cfg, err, sizeof(err)));
	assert_non_null(strstr(err, "1000001"));
	cfg = rule(QHCA_INJECT_DELAY, 5, 0);
	cfg.delay_ns = HCA_INJECT_MAX_DELAY + 1;
	assert_false(qhca_inject_set(h->hca, &cfg, err, sizeof(err)));
	assert_false(hca_inject_active(&h->fn->hca->inject, false));
	cfg.delay_ns = HCA_INJECT_MAX_DELAY;
	set(h, cfg);
	assert_true(hca_inject_active(&h->fn->hca->inject, false));
	assert_false(hca_inject_active(&h->fn->hca->inject, true));
	qhca_inject_get(h->hca, &got);
	assert_int_equal(got.rule[QHCA_INJECT_DELAY].ppm, 5);
	assert_int_equal(got.delay_ns, HCA_INJECT_MAX_DELAY);
	set(h, rule(QHCA_INJECT_DROP, 0, 0));
	assert_false(hca_inject_active(&h->fn->hca->inject, false));
	host_free(h);
}

static void test_nth(void **state)
{
	struct host *h = host_new(NULL);
	unsigned int i;

	(void)state;
	set(h, rule(QHCA_INJECT_CORRUPT, 0, 3));
	for (i = 1; i < 100; i++)
		assert_int_equal(hca_inject_decide(&h->fn->hca->inject),
				 i == 3 ? 1u << QHCA_INJECT_CORRUPT : 0);
	set(h, rule(QHCA_INJECT_CORRUPT, 0, 1));	/* from now */
	assert_int_equal(hca_inject_decide(&h->fn->hca->inject),
			 1u << QHCA_INJECT_CORRUPT);
	host_free(h);
}

static void test_probability(void **state)
{
	struct host *h = host_new(NULL);
	unsigned int k, i, hits;

	(void)state;
	for (k = 0; k < QHCA_NUM_INJECT_KINDS; k++) {
		set(h, rule((enum qhca_inject_kind)k, 20000, 0));
		for (i = hits = 0; i < 100000; i++)
			hits += hca_inject_decide(&h->fn->hca->inject) ==
				1u << k;
		assert_in_range(hits, 1800, 2200);
	}
	set(h, rule(QHCA_INJECT_DROP, 1000000, 0));
	for (i = 0; i < 100; i++)
		assert_int_equal(hca_inject_decide(&h->fn->hca->inject), 1);
	host_free(h);
}

/* The same seed selects the same frames. */
static void test_seed(void **state)
{
	struct host *a = host_new(NULL), *b = host_new(NULL);
	struct qhca_inject_config cfg = rule(QHCA_INJECT_DROP, 500000, 0);
	unsigned int i, differ = 0;

	(void)state;
	set(a, cfg);
	set(b, cfg);
	for (i = 0; i < 1000; i++)
		assert_int_equal(hca_inject_decide(&a->fn->hca->inject),
				 hca_inject_decide(&b->fn->hca->inject));
	cfg.seed++;
	set(b, cfg);
	for (i = 0; i < 1000; i++)
		differ += hca_inject_decide(&a->fn->hca->inject) !=
			  hca_inject_decide(&b->fn->hca->inject);
	assert_in_range(differ, 400, 600);
	host_free(a);
	host_free(b);
}

static void test_flip(void **state)
{
	struct host *h = host_new(NULL);
	uint8_t frame[100], bits;
	bool seen[100] = { false };
	unsigned int i, k, changed;

	(void)state;
	for (i = 0; i < 5000; i++) {
		memset(frame, 0x55, sizeof(frame));
		hca_inject_flip(&h->fn->hca->inject, frame, 42, 90);
		for (k = changed = 0; k < sizeof(frame); k++) {
			bits = frame[k] ^ 0x55;
			if (!bits)
				continue;
			assert_int_equal(bits & (bits - 1), 0);
			assert_in_range(k, 42, 89);
			seen[k] = true;
			changed++;
		}
		assert_int_equal(changed, 1);
	}
	assert_true(seen[42] && seen[89]);
	/* A frame without payload has no bit to flip. */
	hca_inject_flip(&h->fn->hca->inject, frame, 5, 5);
	host_free(h);
}

static void test_store(void **state)
{
	struct host *h = host_new(NULL);
	struct hca_inject *inj = &h->fn->hca->inject;
	struct hca_inject_frame *f;
	uint8_t data[4];
	unsigned int i;

	(void)state;
	assert_int_equal(hca_inject_deadline(inj), QHCA_NEVER);
	assert_null(hca_inject_due(inj, QHCA_NEVER - 1));
	for (i = 0; i < HCA_INJECT_STORE; i++) {
		put_le32(data, i);
		assert_true(hca_inject_hold(h->fn, data, 4, false, false,
					    1000 - i));
	}
	assert_false(hca_inject_hold(h->fn, data, 4, false, false, 0));
	assert_int_equal(hca_inject_deadline(inj), 1000 - i + 1);
	assert_null(hca_inject_due(inj, 1000 - i));
	/* Among those due the oldest is sent first. */
	f = hca_inject_due(inj, 1000 - i + 3);
	assert_int_equal(get_le32(hca_inject_data(inj, f)), i - 3);
	for (i = 0; i < HCA_INJECT_STORE; i++) {
		f = hca_inject_due(inj, 1000);
		assert_int_equal(get_le32(hca_inject_data(inj, f)), i);
		hca_inject_drop(inj, f);
	}
	assert_null(hca_inject_due(inj, 1000));
	assert_false(hca_inject_hold(h->fn, data, QHCA_MAX_FRAME + 1, false,
				     false, 0));
	host_free(h);
}

static void test_swap(void **state)
{
	struct host *h = host_new(NULL);
	struct hca_inject *inj = &h->fn->hca->inject;
	uint8_t data[4] = { 0 };

	(void)state;
	assert_true(hca_inject_hold(h->fn, data, 4, true, true, 5000));
	hca_inject_passed(inj, false, 10);	/* the other way */
	assert_null(hca_inject_due(inj, 10));
	hca_inject_passed(inj, true, 10);
	assert_non_null(hca_inject_due(inj, 10));
	hca_inject_forget(h->fn);
	assert_null(hca_inject_due(inj, 10000));
	/* A frame without a successor is sent when its time has come. */
	assert_true(hca_inject_hold(h->fn, data, 4, true, true, 5000));
	assert_non_null(hca_inject_due(inj, 5000));
	host_free(h);
}

static void inject(struct host *h, enum qhca_inject_kind kind, uint64_t nth,
		   bool rx)
{
	struct qhca_inject_config cfg = { .seed = 1, .delay_ns = 1000 };
	char err[100];

	cfg.rule[kind].nth = nth;
	cfg.on_rx = rx;
	cfg.on_tx = !rx;
	assert_true(qhca_inject_set(h->hca, &cfg, err, sizeof(err)));
}

static void send_three(struct host *h)
{
	uint8_t i;

	h->num_sent = 0;
	for (i = 1; i <= 3; i++)
		assert_true(send_to(h, peer, 32, i));
	host_run(h);
}

static void test_inject_tx(void **state)
{
	struct host *h = with_gids();
	uint8_t good[QHCA_MAX_FRAME];
	size_t i, differ = 0;

	(void)state;
	send_three(h);
	memcpy(good, h->sent[1].data, 74);
	inject(h, QHCA_INJECT_DROP, 2, false);
	send_three(h);
	assert_int_equal(h->num_sent, 2);
	assert_int_equal(mark_of(h, 1), 3);
	assert_int_equal(COUNT(h, inject_dropped), 1);

	inject(h, QHCA_INJECT_DUPLICATE, 2, false);
	send_three(h);
	assert_int_equal(h->num_sent, 4);
	assert_int_equal(mark_of(h, 1), 2);
	assert_int_equal(mark_of(h, 3), 2);

	inject(h, QHCA_INJECT_REORDER, 2, false);
	send_three(h);
	assert_int_equal(h->num_sent, 3);
	assert_int_equal(mark_of(h, 1), 3);
	assert_int_equal(mark_of(h, 2), 2);

	inject(h, QHCA_INJECT_CORRUPT, 2, false);
	send_three(h);
	assert_int_equal(h->num_sent, 3);
	for (i = 0; i < 74; i++)
		if (h->sent[1].data[i] != good[i]) {
			assert_true(i >= 42);	/* BTH or later */
			differ++;
		}
	assert_int_equal(differ, 1);

	inject(h, QHCA_INJECT_DELAY, 2, false);
	send_three(h);
	assert_int_equal(h->num_sent, 2);
	assert_int_equal(qhca_run(h->hca, h->now, 1).deadline, h->now + 1000);
	host_run_at(h, h->now + 1000);
	assert_int_equal(h->num_sent, 3);
	assert_int_equal(mark_of(h, 2), 2);
	assert_int_equal(COUNT(h, inject_duplicated), 1);
	assert_int_equal(COUNT(h, inject_reordered), 1);
	assert_int_equal(COUNT(h, inject_corrupted), 1);
	assert_int_equal(COUNT(h, inject_delayed), 1);
	/* The device counts what the sender did, whatever became of the frame. */
	assert_int_equal(COUNT(h, tx_packets), 18);
	host_free(h);
}

/* Corruption begins with the BTH, whatever the headers before it are. */
static void test_inject_offset(void **state)
{
	struct host *h = with_gids();
	uint8_t built[QHCA_MAX_FRAME], *room;
	struct frame_spec s;
	size_t len, bth, i, lowest;
	int kind, turn;

	(void)state;
	for (kind = 0; kind < 4; kind++) {
		s = frame_default(kind & 1);
		s.tag = kind & 2 ? 7 : -1;
		s.payload = 1;
		memcpy(s.dmac, peer, 6);
		len = frame_build(built, &s);
		bth = 14 + (kind & 2 ? 4 : 0) + (kind & 1 ? 40 : 20) + 8;
		assert_int_equal(bth + 1, len);
		for (turn = 0, lowest = len; turn < 20; turn++) {
			inject(h, QHCA_INJECT_CORRUPT, 1, false);
			h->num_sent = 0;
			room = hca_tx_begin(h->fn, len);
			memcpy(room, built, len);
			hca_tx_end(h->fn, len, kind & 2 ? 18 : 14,
				   kind & 1 ? 40 : 20);
			for (i = 0; i < len; i++)
				if (h->sent[0].data[i] != built[i] &&
				    i < lowest)
					lowest = i;
		}
		assert_int_equal(lowest, bth);
	}
	host_free(h);
}

/* A frame that is to be reordered and has no successor is sent after a time. */
static void test_inject_reorder_alone(void **state)
{
	struct host *h = with_gids();

	(void)state;
	inject(h, QHCA_INJECT_REORDER, 1, false);
	assert_true(send_to(h, peer, 32, 1));
	host_run(h);
	assert_int_equal(h->num_sent, 0);
	host_run_at(h, h->now + HCA_INJECT_REORDER_NS);
	assert_int_equal(h->num_sent, 1);
	host_free(h);
}

/* While the link has no room the injector keeps the frames that it has to release. */
static void test_inject_blocked(void **state)
{
	struct host *h = with_gids();

	(void)state;
	inject(h, QHCA_INJECT_DELAY, 1, false);
	assert_true(send_to(h, peer, 32, 1));
	h->tx_full = true;
	host_run_at(h, 5000);
	assert_int_equal(h->num_sent, 0);
	assert_false(qhca_run(h->hca, h->now, 1).more);
	assert_int_equal(qhca_run(h->hca, h->now, 1).deadline, QHCA_NEVER);
	h->tx_full = false;
	qhca_tx_ready(h->hca, h->now);
	host_run(h);
	assert_int_equal(h->num_sent, 1);
	host_free(h);
}

/*
 * Injection into received frames: the test counts a malformed frame as a delivered
 * one.
 */
static void test_inject_rx(void **state)
{
	struct host *h = with_gids();
	struct frame_spec s = frame_default(false), eth = frame_default(false);
	uint8_t frame[QHCA_MAX_FRAME], other[QHCA_MAX_FRAME];
	size_t len = frame_build(frame, &s), olen;

	(void)state;
	eth.dport = 53;
	olen = frame_build(other, &eth);
	inject(h, QHCA_INJECT_DROP, 1, true);
	qhca_rx_frame(h->hca, other, olen, 0);	/* not RDMA: not counted */
	assert_int_equal(COUNT(h, eth_rx_filtered), 1);
	qhca_rx_frame(h->hca, frame, len, 0);
	assert_int_equal(COUNT(h, inject_dropped), 1);
	assert_int_equal(COUNT(h, rx_icrc_errors), 0);
	qhca_rx_frame(h->hca, frame, len, 0);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 1);

	inject(h, QHCA_INJECT_DUPLICATE, 1, true);
	qhca_rx_frame(h->hca, frame, len, 0);
	host_run(h);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 3);
	inject(h, QHCA_INJECT_DELAY, 1, true);
	qhca_rx_frame(h->hca, frame, len, 0);
	host_run(h);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 3);
	host_run_at(h, 1000);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 4);
	/* A reordered frame is sent behind the next one, and no later than that. */
	inject(h, QHCA_INJECT_REORDER, 1, true);
	qhca_rx_frame(h->hca, frame, len, h->now);
	host_run(h);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 4);
	qhca_rx_frame(h->hca, frame, len, h->now);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 5);
	host_run(h);
	assert_int_equal(COUNT(h, rx_icrc_errors) + COUNT(h, rx_malformed), 6);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_set),
	cmocka_unit_test(test_nth),
	cmocka_unit_test(test_probability),
	cmocka_unit_test(test_seed),
	cmocka_unit_test(test_flip),
	cmocka_unit_test(test_store),
	cmocka_unit_test(test_swap),
	cmocka_unit_test(test_inject_tx),
	cmocka_unit_test(test_inject_offset),
	cmocka_unit_test(test_inject_reorder_alone),
	cmocka_unit_test(test_inject_blocked),
	cmocka_unit_test(test_inject_rx),
};
TEST_MAIN(tests)
