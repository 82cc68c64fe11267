// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "host.h"

/* ------------------------------------------------------------------------
 * Configuration
 */
static int refuse_dma(void *host, uint16_t gvmi, uint64_t addr, void *buf,
		      size_t len)
{
	(void)host;
	(void)gvmi;
	(void)addr;
	(void)buf;
	(void)len;
	return -1;
}

static void test_config_errors(void **state)
{
	static const struct qhca_host_ops ops = { .dma_read = refuse_dma };
	struct qhca_config good, cfg;
	struct qhca_hca *hca;
	char err[256];

	(void)state;
	host_config(&good);
#define BAD(word, change) do {						\
	cfg = good;							\
	change;								\
	err[0] = 0;							\
	assert_null(qhca_create(&cfg, &ops, NULL, err, sizeof(err)));	\
	if (!strstr(err, word))						\
		fail_msg("\"%s\" does not say \"%s\"", err, word);	\
} while (0)
	BAD("mac", cfg.mac[0] = 1);
	BAD("mac", memset(cfg.mac, 0, 6));
	BAD("log-max-pt", cfg.log_max_pt = 25);
	BAD("log-max-qp", cfg.log_max_qp = 24);
	BAD("log-max-cq", cfg.log_max_cq = 25);
	BAD("log-max-srq", cfg.log_max_srq = 0);
	BAD("log-max-eq", cfg.log_max_eq = 9);
	BAD("log-max-wq-depth", cfg.log_max_wq_depth = 17);
	BAD("log-max-cq-depth", cfg.log_max_cq_depth = 25);
	BAD("log-max-eq-depth", cfg.log_max_eq_depth = 21);
	BAD("vectors", cfg.num_vectors = 65);
	BAD("vectors", cfg.num_vectors = 0);
	BAD("gids", cfg.num_gids = 257);
	BAD("doorbell-pages", cfg.num_db_pages = 0);
	BAD("flows", cfg.max_flows = QHCA_MAX_FLOWS + 1);
	BAD("link-speed", cfg.link_speed = 0x10000);
	BAD("link-speed", cfg.link_speed = 0);
	BAD("devmem-size", cfg.devmem_size = 1);
	BAD("pt-cache-max-sets=3", cfg.cache_max[QHCA_CACHE_PT].sets = 3);
	BAD("cq-cache-sets=2048", cfg.cache_default[QHCA_CACHE_CQ].sets = 2048);
	hca = qhca_create(&good, &ops, NULL, err, sizeof(err));
	assert_non_null(hca);
	qhca_destroy(hca);
	qhca_destroy(NULL);
}

static void test_defaults(void **state)
{
	struct qhca_config cfg;
	struct host *h;

	(void)state;
	qhca_config_default(&cfg);
	h = host_new(&cfg);
	/* 131,072 regions, 16,384 QPs and CQs, 4,096 SRQs at the least */
	assert_true(cfg.log_max_pt >= 17 && cfg.log_max_qp >= 14);
	assert_true(cfg.log_max_cq >= 14 && cfg.log_max_srq >= 12);
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Who works when
 */
static void test_budget(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_cmd_slot *slots = host_ptr(h, h->slots);
	uint64_t before = COUNT(h, commands);
	unsigned int i;

	(void)state;
	for (i = 0; i < 32; i++) {
		memset(&slots[i], 0, sizeof(slots[i]));
		put_le32(&slots[i].status, QHCA_CMD_OWN);
	}
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_DOORBELL, ~0u, 0);
	assert_true(qhca_run(h->hca, 0, 0).more);
	assert_int_equal(COUNT(h, commands), before);
	assert_true(qhca_run(h->hca, 0, 5).more);
	assert_int_equal(COUNT(h, commands), before + 5);
	assert_false(qhca_run(h->hca, 0, 1000).more);
	assert_int_equal(COUNT(h, commands), before + 32);
	host_free(h);
}

/* With a budget of one, an endless supply of one kind starves no other. */
static void test_fairness(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_cmd_slot *slots = host_ptr(h, h->slots);
	static const uint8_t mac[6] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 };
	uint8_t *room;
	unsigned int i;

	(void)state;
	memset(&slots[0], 0, sizeof(slots[0]));
	put_le32(&slots[0].status, QHCA_CMD_OWN);
	qhca_reg_write(h->hca, QHCA_REG_CMDQ_DOORBELL, 1, 0);
	for (i = 0; i < 8 && get_le32(&slots[0].status) & QHCA_CMD_OWN; i++) {
		while ((room = hca_tx_begin(h->fn, 60)) != NULL) {
			memset(room, 0, 60);
			memcpy(room, mac, 6);
			hca_tx_end(h->fn, 60);
		}
		assert_true(qhca_run(h->hca, 0, 1).more);
	}
	assert_int_equal(get_le32(&slots[0].status), QHCA_CMD_OK);
	host_free(h);
}

/* Whose turn it is changes, so that the last in the list comes first too. */
static void test_turns(void **state)
{
	struct host *h = host_new_ready();
	static const uint8_t mac[6] = { 0x52, 0x54, 0x00, 0x12, 0x34, 0x56 };
	uint64_t ring = host_alloc(h, 4096, 64), frame = host_alloc(h, 64, 64);
	struct qhca_eth_txd *txd = host_ptr(h, ring);
	struct qhca_ethq_config in = { .log_tx = 3, .log_rx = 3 };
	uint8_t *room;
	unsigned int i;

	(void)state;
	put_le64(&in.tx_base, ring);
	put_le64(&in.rx_base, ring + 1024);
	put_le64(&in.rxc_base, ring + 2048);
	put_le64(&in.rec_base, ring + 3072);
	assert_int_equal(host_cmd(h, QHCA_CMD_CREATE_ETHQ, 0, 0, &in,
				  sizeof(in), NULL, 0), QHCA_CMD_OK);
	put_le64(&txd->addr, frame);
	put_le32(&txd->len, 60);
	put_le16(&txd->flags, QHCA_TXD_EOP);
	qhca_doorbell(h->hca, 0, QHCA_DB_ETH_TX, 1ull << 32, 0);
	for (i = 0; i < 8 && h->num_sent == 0; i++) {
		while ((room = hca_tx_begin(h->fn, 60)) != NULL) {
			memset(room, 0, 60);
			memcpy(room, mac, 6);
			hca_tx_end(h->fn, 60);
		}
		qhca_run(h->hca, 0, 1);
	}
	assert_int_equal(h->num_sent, 1);
	host_free(h);
}

static void test_idle(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_run_result r = qhca_run(h->hca, 12345, 100);

	(void)state;
	assert_false(r.more);
	assert_int_equal(r.deadline, QHCA_NEVER);
	host_free(h);
}

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

/* Reset in the middle of anything, many times: nothing leaks or dangles. */
static void test_reset_again(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_init_hca in;
	struct ring eq, cq;
	unsigned int i;

	(void)state;
	for (i = 0; i < 20; i++) {
		h->next = RAM_BASE;
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

/* What a guest can make of a callback, by way of its own registers. */
static void call_back(struct host *h)
{
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

/* One command, whether it is answered or not. */
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

/* As after a reset, whatever came after it in work(). */
static bool is_reset(const struct host *h)
{
	return !h->fn->initialised && !(h->fn->status & QHCA_STATUS_ENABLED);
}

/*
 * A reset register written in each callback in turn: the call goes on with what it
 * had, does little more, and the function is as after any reset.
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

/* The call that is being served makes no more accesses than it must. */
static void reset_once(struct host *h)
{
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

/* What comes in a callback besides a reset is done after it, or lost. */
static void link_and_fatal(struct host *h)
{
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

/* A link that was full is asked again after a reset: nobody else may say so. */
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

/* ------------------------------------------------------------------------
 * Observation
 */
static void test_counter_names(void **state)
{
	struct host *h = host_new(NULL);
	unsigned int i;

	(void)state;
	assert_string_equal(qhca_counter_name(QHCA_CNT_pt_hits), "pt_hits");
	assert_string_equal(qhca_counter_name(QHCA_CNT_inject_delayed),
			    "inject_delayed");
	for (i = 0; i < QHCA_NUM_COUNTERS; i++)
		assert_non_null(qhca_counter_name((enum qhca_counter)i));
	assert_null(qhca_counter_name(QHCA_NUM_COUNTERS));
	assert_int_equal(qhca_counter(h->hca, QHCA_NUM_COUNTERS), 0);
	host_free(h);
}

struct seen {
	unsigned int num;
	struct qhca_cache_line last;
};

static bool on_line(void *arg, const struct qhca_cache_line *line)
{
	struct seen *s = arg;

	s->num++;
	s->last = *line;
	return true;
}

static void test_cache_lines(void **state)
{
	struct host *h = host_new_ready();
	struct ring eq = host_ring(h, 2), cq = host_ring(h, 2);
	struct qhca_cache_info info;
	struct seen seen = { 0 };
	struct hca_tag tag = { .index = 5, .page = 9 };
	struct hca_pte_host *pte;
	uint64_t *entry;
	int id;

	(void)state;
	assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
	assert_int_equal(host_create_cq(h, 37, &cq, 0), QHCA_CMD_OK);
	for (id = 0; id < QHCA_NUM_CACHES; id++) {
		qhca_query_cache(h->hca, (enum qhca_cache_id)id, &info);
		assert_int_equal(info.geometry.sets,
				 h->fn->cfg.cache_default[id].sets);
		assert_int_equal(info.valid, id == QHCA_CACHE_CQ);
	}
	qhca_for_each_cache_line(h->hca, QHCA_CACHE_CQ, 0, on_line, &seen);
	assert_int_equal(seen.num, 1);
	assert_false(seen.last.dirty || seen.last.sticky);
	qhca_for_each_cache_line(h->hca, QHCA_CACHE_CQ, 38, on_line, &seen);
	assert_int_equal(seen.num, 1);
	assert_int_equal(seen.last.index, 37);
	assert_int_equal(seen.last.set, 37);
	assert_int_equal(seen.last.page, 0);
	entry = hca_cache_install(&h->fn->hca->cache.at, tag,
				  hca_cache_fill_begin(&h->fn->hca->cache.at));
	*entry = 0x7000 | QHCA_ATE_PRESENT | QHCA_ATE_WRITE;
	hca_cache_set_dirty(&h->fn->hca->cache.at, entry, true);
	hca_cache_set_sticky(&h->fn->hca->cache.at, entry, true);
	qhca_for_each_cache_line(h->hca, QHCA_CACHE_AT, 0, on_line, &seen);
	assert_int_equal(seen.num, 2);
	assert_int_equal(seen.last.page, 9);
	assert_int_equal(seen.last.addr, 0x7000);
	assert_true(seen.last.writable);
	assert_true(seen.last.dirty && seen.last.sticky);
	tag.page = 0;
	pte = hca_cache_install(&h->fn->hca->cache.pt, tag,
				hca_cache_fill_begin(&h->fn->hca->cache.pt));
	*pte = (struct hca_pte_host){
		.octet = 0x42, .type = QHCA_PTE_MR, .pd = 7, .access = 3,
		.start = 0x1000, .length = 0x500,
	};
	qhca_for_each_cache_line(h->hca, QHCA_CACHE_PT, 0, on_line, &seen);
	assert_int_equal(seen.num, 3);
	assert_int_equal(seen.last.key, 0x542);
	assert_int_equal(seen.last.type, QHCA_PTE_MR);
	assert_int_equal(seen.last.pd, 7);
	assert_int_equal(seen.last.access, 3);
	assert_int_equal(seen.last.start, 0x1000);
	assert_int_equal(seen.last.length, 0x500);
	assert_int_equal(seen.last.addr, 0);
	host_free(h);

	h = host_new(NULL);		/* before there are any */
	qhca_query_cache(h->hca, QHCA_CACHE_PT, &info);
	assert_int_equal(info.geometry.sets, 0);
	seen.num = 0;
	qhca_for_each_cache_line(h->hca, QHCA_CACHE_PT, 0, on_line, &seen);
	qhca_for_each_cache_line(h->hca, (enum qhca_cache_id)9, 0, on_line,
				 &seen);
	assert_int_equal(seen.num, 0);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_config_errors),
	cmocka_unit_test(test_defaults),
	cmocka_unit_test(test_budget),
	cmocka_unit_test(test_fairness),
	cmocka_unit_test(test_turns),
	cmocka_unit_test(test_idle),
	cmocka_unit_test(test_fatal),
	cmocka_unit_test(test_reset_again),
	cmocka_unit_test(test_reset_in_callback),
	cmocka_unit_test(test_reset_cuts_work),
	cmocka_unit_test(test_late),
	cmocka_unit_test(test_reset_unblocks),
	cmocka_unit_test(test_counter_names),
	cmocka_unit_test(test_cache_lines),
};
TEST_MAIN(tests)
