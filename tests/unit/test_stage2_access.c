// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Stage 2: what the cache counts for each access, and the buffers of Ethernet.
 */
#include "domain.h"

/* ---- the cache */

/* Each access of the function is a lookup: when all is cached, a hit. */
static void test_hits(void **state)
{
	struct domain *d = domain_ready();
	uint64_t dma = 0, hits = 0, misses = 0;
	struct qhca_qpc_sw sw;
	struct ring eq = open_qp(d, &sw);
	uint8_t out[sizeof(struct qhca_port)];
	uint64_t base = get_le64(&sw.buf.base);

	(void)state;
	assert_false(host_eqe_valid(d->vf, &eq, 0));
	for (uint32_t round = 1; round <= 2; round++) {
		dma = d->vf->reads + d->vf->writes;
		hits = COUNT(d->vf, s2_hits);
		misses = COUNT(d->vf, s2_misses);
		/* The accesses are to slots and mailboxes, EQs, records, WQEs and payload. */
		assert_int_equal(host_cmd(d->vf, QHCA_CMD_QUERY_PORT, 0, 0, NULL,
					  0, out, sizeof(out)), QHCA_CMD_OK);
		qhca_set_link(d->pf->hca, false, 0);
		qhca_set_link(d->pf->hca, true, 0);
		memcpy(host_ptr(d->vf, base + 128 * (round - 1)),
		       host_ptr(d->vf, base), 128);
		post_send(d->vf, &sw, 4096 * 1500);
		put_le32(host_ptr(d->vf, base + 1280), round);
		qhca_doorbell(d->vf->hca, GVMI, 0, QHCA_DB_SQ,
			      QPN | (uint64_t)round << 32, d->vf->now);
		host_run(d->vf);
		dma = d->vf->reads + d->vf->writes - dma;
		assert_true(host_eqe_valid(d->vf, &eq, 2 * round - 1));
	}
	assert_true(dma > 8);
	assert_int_equal(COUNT(d->vf, s2_misses), misses);
	assert_true(COUNT(d->vf, s2_hits) - hits >= dma);
	assert_int_equal(COUNT(d->pf, s2_hits), 0);
	domain_free(d);
}

static void test_evictions(void **state)
{
	struct domain *d = domain_new_cache(2, 1);
	struct hca_mem_req q;
	uint64_t reads, evictions, conflicts;
	uint8_t buf[8];

	(void)state;
	host_enable(d->vf);
	initialise(d->vf);
	q = bus_req(d, 4096 * 1200, 8, 0);
	host_s2_map(d->pf, d->vf, q.addr, 0);
	host_s2_map(d->pf, d->vf, q.addr + 8192, 0);
	assert_int_equal(hca_mem_read(d->vf->fn, &q, buf), HCA_MEM_OK);
	host_s2_invalidate(d->pf, d->vf, 0, d->vf->ram_len);
	assert_int_equal(hca_mem_read(d->vf->fn, &q, buf), HCA_MEM_OK);
	reads = COUNT(d->vf, s2_node_reads);
	evictions = COUNT(d->vf, s2_evictions);
	conflicts = COUNT(d->vf, s2_conflicts);
	/* Both pages belong to one set, and the other set is empty. */
	for (uint32_t i = 1; i <= 4; i++) {
		q.addr = 4096 * 1200 + (i % 2) * 8192;
		assert_int_equal(hca_mem_read(d->vf->fn, &q, buf), HCA_MEM_OK);
		assert_int_equal(COUNT(d->vf, s2_evictions), evictions + i);
		assert_int_equal(COUNT(d->vf, s2_conflicts), conflicts + i);
		assert_int_equal(COUNT(d->vf, s2_node_reads), reads + 2 * i);
	}
	domain_free(d);
}

static void on_qp(void *arg, const struct qhca_qp_info *info)
{
	*(struct qhca_qp_info *)arg = *info;
}

/* What a query of the monitor may not change. */
struct untouched {
	uint64_t hits, misses, node_reads;
	struct qhca_cache_info s2;
};

static void note(struct domain *d, struct untouched *u)
{
	u->hits = COUNT(d->vf, s2_hits);
	u->misses = COUNT(d->vf, s2_misses);
	u->node_reads = COUNT(d->vf, s2_node_reads);
	qhca_query_cache(d->vf->hca, QHCA_CACHE_S2, &u->s2);
}

static void check_untouched(struct domain *d, const struct untouched *u)
{
	struct untouched now;

	note(d, &now);
	assert_int_equal(now.hits, u->hits);
	assert_int_equal(now.misses, u->misses);
	assert_int_equal(now.node_reads, u->node_reads);
	assert_int_equal(now.s2.valid, u->s2.valid);
}

/* The monitor reads a context that is in the function's memory alone. */
static void test_observed(void **state)
{
	struct domain *d = domain_ready();
	struct hca_ctxcache *qd = &d->vf->fn->hca->cache.qd;
	struct qhca_qp_info seen = { 0 };
	struct untouched before;
	struct qhca_qpc_sw sw;
	uint64_t at;

	(void)state;
	open_qp(d, &sw);
	assert_int_equal(hca_ctx_flush(d->vf->fn, qd, QPN, true), 0);
	for (int cached = 1; cached >= 0; cached--) {
		if (!cached)
			host_s2_invalidate(d->pf, d->vf, 0, d->vf->ram_len);
		note(d, &before);
		assert_int_equal(before.s2.valid > 0, cached);
		seen = (struct qhca_qp_info){ 0 };
		qhca_for_each_qp(d->vf->hca, GVMI, on_qp, &seen);
		assert_int_equal(seen.qpn, QPN);
		assert_false(seen.cached);
		assert_int_equal(seen.dest_qpn, 77);
		check_untouched(d, &before);
	}
	/* The host domain has taken the context away, for which no caller is to blame. */
	assert_true(hca_table_entry(d->vf->fn, QHCA_TABLE_QP, QPN, &at));
	host_s2_bits(d->pf, d->vf, at & ~4095ull, QHCA_ATE_WRITE);
	note(d, &before);
	qhca_for_each_qp(d->vf->hca, GVMI, on_qp, &seen);
	assert_int_equal(seen.dest_qpn, 0);
	check_untouched(d, &before);
	assert_false(status_of(d->vf) & QHCA_STATUS_FATAL);
	domain_free(d);
}

/* An invalidation refuses the fill that began before it. */
static void test_stale_fill(void **state)
{
	struct domain *d = domain_ready();
	struct hca_cache *s2 =
		(void *)hca_cache_of(d->vf->fn->hca, QHCA_CACHE_S2);
	const struct hca_cache_user *user = &d->vf->fn->cache[QHCA_CACHE_S2];
	struct hca_tag tag = { .index = 9, .gvmi = GVMI };
	uint64_t epoch = hca_cache_fill_begin(s2);

	(void)state;
	assert_non_null(hca_cache_install(s2, user, tag, epoch));
	hca_cache_invalidate_index(s2, user, tag.index);
	assert_int_equal(COUNT(d->vf, s2_stale_fills), 0);
	assert_null(hca_cache_install(s2, user, tag, epoch));
	assert_int_equal(COUNT(d->vf, s2_stale_fills), 1);
	domain_free(d);
}

/* ---- Ethernet */

#define TX	(4096ull * 1600)	/* rings and buffers, a page each */
#define RX	(TX + 4096)
#define RXC	(TX + 8192)
#define REC	(TX + 12288)
#define FRAME	(TX + 16384)

static void open_ethq(struct domain *d, uint8_t log_rx)
{
	struct qhca_ethq_config in = { .log_tx = 3, .log_rx = log_rx };
	struct qhca_port_config port = { 0 };

	put_le64(&in.tx_base, TX);
	put_le64(&in.rx_base, RX);
	put_le64(&in.rxc_base, RXC);
	put_le64(&in.rec_base, REC);
	assert_int_equal(host_cmd(d->vf, QHCA_CMD_CREATE_ETHQ, 0, 0, &in,
				  sizeof(in), NULL, 0), QHCA_CMD_OK);
	put_le32(&port.fields, QHCA_PORT_SET_RX);
	put_le32(&port.rx_flags, QHCA_RX_ENABLE);
	assert_int_equal(host_cmd(d->vf, QHCA_CMD_SET_PORT, 0, 0, &port,
				  sizeof(port), NULL, 0), QHCA_CMD_OK);
}

static enum qhca_cmd_status answer_last(struct domain *d, uint32_t how)
{
	return answer(d, get_le32(&d->last.fault.token), how);
}

static void check_eth_fault(struct domain *d, unsigned int faults,
			    enum qhca_fault_cause cause, uint64_t addr)
{
	host_run(d->vf);
	assert_int_equal(d->faults, faults);
	assert_int_equal(QHCA_GET(QHCA_FAULT_CAUSE,
				  get_le32(&d->last.fault.flags)), cause);
	assert_int_equal(get_le64(&d->last.fault.addr), addr);
}

static void send_frame(struct domain *d, uint32_t number)
{
	struct qhca_eth_txd *txd = host_ptr(d->vf, TX + 32ull * (number - 1));
	uint8_t *frame = host_ptr(d->vf, FRAME);

	memset(frame, 0xff, 6);
	memcpy(frame + 6, d->vf->fn->port.mac, 6);
	put_le64(&txd->addr, FRAME);
	put_le32(&txd->len, 100);
	put_le16(&txd->flags, QHCA_TXD_EOP);
	qhca_doorbell(d->vf->hca, GVMI, 0, QHCA_DB_ETH_TX,
		      (uint64_t)number << 32, d->vf->now);
}

static void test_ethernet_tx(void **state)
{
	struct domain *d = domain_ready();
	unsigned int sent = d->pf->num_sent;

	(void)state;
	open_ethq(d, 3);
	d->absent = true;
	send_frame(d, 1);
	check_eth_fault(d, 1, QHCA_FAULT_ETH_TX, FRAME);
	assert_int_equal(COUNT(d->vf, fault_eth_tx), 1);
	assert_int_equal(COUNT(d->vf, page_faults2), 1);
	assert_int_equal(d->pf->num_sent, sent);
	/* Commands go on meanwhile. */
	assert_int_equal(nop(d->vf), QHCA_CMD_OK);
	host_s2_map(d->pf, d->vf, FRAME, 0);
	assert_int_equal(answer_last(d, QHCA_RESUME_OK), QHCA_CMD_OK);
	host_run(d->vf);
	assert_int_equal(d->pf->num_sent, sent + 1);
	/* The request is refused: the device drops the frame, and asks again at the next one. */
	host_s2_unmap(d->pf, d->vf, FRAME);
	send_frame(d, 2);
	check_eth_fault(d, 2, QHCA_FAULT_ETH_TX, FRAME);
	assert_int_equal(answer_last(d, QHCA_RESUME_FAIL), QHCA_CMD_OK);
	host_run(d->vf);
	assert_int_equal(d->pf->num_sent, sent + 1);
	assert_int_equal(get_le32(host_ptr(d->vf, REC + offsetof(
				  struct qhca_eth_record, tx_ci))), 2);
	send_frame(d, 3);
	check_eth_fault(d, 3, QHCA_FAULT_ETH_TX, FRAME);
	host_s2_map(d->pf, d->vf, FRAME, 0);
	assert_int_equal(answer_last(d, QHCA_RESUME_OK), QHCA_CMD_OK);
	host_run(d->vf);
	assert_int_equal(d->pf->num_sent, sent + 2);
	assert_false(status_of(d->vf) & QHCA_STATUS_FATAL);
	domain_free(d);
}

static void post_buffer(struct domain *d, uint32_t number)
{
	struct qhca_eth_rxd *rxd = host_ptr(d->vf, RX + 16ull * (number - 1));

	put_le64(&rxd->addr, FRAME);
	put_le32(&rxd->len, 2048);
	put_le32(host_ptr(d->vf, REC + offsetof(struct qhca_eth_record, rx_pi)),
		 number);
	qhca_doorbell(d->vf->hca, GVMI, 0, QHCA_DB_ETH_ARM,
		      (uint64_t)(number - 1) << 32, d->vf->now);
}

static void receive(struct domain *d)
{
	uint8_t frame[64] = { 0 };

	memcpy(frame, d->vf->fn->port.mac, 6);
	frame[13] = 6;
	qhca_rx_frame(d->pf->hca, frame, sizeof(frame), d->pf->now);
}

static void test_ethernet_rx(void **state)
{
	struct domain *d = domain_ready();

	(void)state;
	open_ethq(d, 3);
	d->absent = true;
	/* The device asks when the buffer is posted, not when a frame comes. */
	post_buffer(d, 1);
	check_eth_fault(d, 1, QHCA_FAULT_ETH_RX, FRAME);
	assert_int_equal(COUNT(d->vf, fault_eth_rx), 1);
	receive(d);
	assert_int_equal(COUNT(d->vf, eth_fault_dropped), 1);
	assert_int_equal(COUNT(d->vf, eth_rx_packets), 0);
	host_s2_map(d->pf, d->vf, FRAME, PRESENT);
	assert_int_equal(answer_last(d, QHCA_RESUME_OK), QHCA_CMD_OK);
	receive(d);
	assert_int_equal(COUNT(d->vf, eth_rx_packets), 1);
	assert_memory_equal(host_ptr(d->vf, FRAME), d->vf->fn->port.mac, 6);
	/* The page is taken away after the device looked at it, and a frame finds this out. */
	post_buffer(d, 2);
	host_s2_unmap(d->pf, d->vf, FRAME);
	receive(d);
	assert_int_equal(COUNT(d->vf, eth_fault_dropped), 2);
	check_eth_fault(d, 2, QHCA_FAULT_ETH_RX, FRAME);
	assert_int_equal(answer_last(d, QHCA_RESUME_FAIL), QHCA_CMD_OK);
	receive(d);
	assert_int_equal(COUNT(d->vf, eth_rx_no_buffer), 1);
	receive(d);
	assert_int_equal(COUNT(d->vf, eth_rx_no_buffer), 1);
	check_eth_fault(d, 3, QHCA_FAULT_ETH_RX, FRAME);
	assert_false(status_of(d->vf) & QHCA_STATUS_FATAL);
	domain_free(d);
}

/* A doorbell looks at so many buffers and no more, and the next one goes on behind them. */
static void test_looks_at_few(void **state)
{
	struct domain *d = domain_ready();
	const uint32_t posted = HCA_ETH_LOOK_AHEAD + 6;

	(void)state;
	open_ethq(d, 7);
	d->absent = true;
	host_s2_map(d->pf, d->vf, FRAME, PRESENT);
	for (uint32_t i = 0; i < posted; i++) {
		struct qhca_eth_rxd *rxd = host_ptr(d->vf, RX + 16ull * i);

		put_le64(&rxd->addr, i + 1 < posted ? FRAME : FRAME + 4096);
		put_le32(&rxd->len, 2048);
	}
	put_le32(host_ptr(d->vf, REC + offsetof(struct qhca_eth_record, rx_pi)),
		 posted);
	qhca_doorbell(d->vf->hca, GVMI, 0, QHCA_DB_ETH_ARM, 0, d->vf->now);
	host_run(d->vf);
	assert_int_equal(d->faults, 0);
	assert_int_equal(d->vf->fn->eth.queue[0].rx_looked, HCA_ETH_LOOK_AHEAD);
	qhca_doorbell(d->vf->hca, GVMI, 0, QHCA_DB_ETH_ARM, 0, d->vf->now);
	check_eth_fault(d, 1, QHCA_FAULT_ETH_RX, FRAME + 4096);
	assert_false(status_of(d->vf) & QHCA_STATUS_FATAL);
	domain_free(d);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_hits),
	cmocka_unit_test(test_evictions),
	cmocka_unit_test(test_stale_fill),
	cmocka_unit_test(test_observed),
	cmocka_unit_test(test_ethernet_tx),
	cmocka_unit_test(test_ethernet_rx),
	cmocka_unit_test(test_looks_at_few),
};

TEST_MAIN(tests)
