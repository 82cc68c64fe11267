// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"

static struct qhca_cmd_slot slot_of(uint16_t opcode)
{
	struct qhca_cmd_slot slot = { 0 };

	put_le16(&slot.opcode, opcode);
	return slot;
}

static uint32_t status_of(const struct qhca_cmd_slot *slot)
{
	return get_le32(&slot->status);
}

static enum qhca_cmd_status plain(struct host *h, enum qhca_opcode op)
{
	return host_cmd(h, op, 0, 0, NULL, 0, NULL, 0);
}

/* ------------------------------------------------------------------------
 * The protocol
 */
static void test_release(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_cmd_slot slot = slot_of(QHCA_CMD_NOP), done;

	(void)state;
	host_enable(h);
	put_le16(&slot.token, 0xbeef);
	put_le32(&slot.index, 77);
	put_le64(&slot.out_param, 1);
	put_le32(&slot.syndrome, 1);
	done = host_cmd_slot(h, &slot, 3);
	assert_int_equal(status_of(&done), QHCA_CMD_OK);
	assert_int_equal(get_le64(&done.out_param), 0);
	assert_int_equal(get_le32(&done.syndrome), 0);
	/* The part that software owns is unchanged. */
	assert_int_equal(get_le16(&done.token), 0xbeef);
	assert_int_equal(get_le32(&done.index), 77);
	assert_int_equal(COUNT(h, commands), 1);
	assert_int_equal(COUNT(h, command_errors), 0);
	host_free(h);
}

/* The device ignores doorbell bits without a slot, without OWN, and before ENABLE. */
static void test_doorbell(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_cmd_slot *slots;

	(void)state;
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, ~0u, 0);
	assert_false(qhca_run(h->hca, 0, 10).more);
	host_enable(h);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1, 0);
	host_run(h);
	assert_int_equal(COUNT(h, commands), 0);
	assert_int_equal(COUNT(h, doorbells_ignored), 1);
	/* A command whose doorbell is rung twice runs once. */
	slots = host_ptr(h, h->slots);
	slots[2] = slot_of(QHCA_CMD_NOP);
	put_le32(&slots[2].status, QHCA_CMD_OWN);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 4, 0);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 4, 0);
	host_run(h);
	assert_int_equal(COUNT(h, commands), 1);
	assert_int_equal(COUNT(h, doorbells_ignored), 1);
	host_free(h);

	h = host_new(NULL);		/* two slots only */
	h->slots = host_alloc(h, 4096, 4096);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_LOG_SLOTS, 1, 0);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_BASE_LO, (uint32_t)h->slots, 0);
	qhca_reg_write(h->hca, 0, QHCA_REG_CONTROL, QHCA_CONTROL_ENABLE, 0);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 0xfffffffc, 0);
	assert_int_equal(COUNT(h, doorbells_ignored), 30);
	assert_false(qhca_run(h->hca, 0, 10).more);
	host_free(h);
}

/*
 * The device serves the slots of one doorbell write in ascending order, and doorbell
 * writes in their order.
 */
static void test_order(void **state)
{
	static const unsigned int expect[] = { 4, 7, 1, 2 };
	struct host *h = host_new_ready();
	struct qhca_cmd_slot *slots;
	struct ring eq;
	unsigned int i;

	(void)state;
	eq = host_ring(h, 4);
	assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
	slots = host_ptr(h, h->slots);
	for (i = 0; i < 8; i++) {
		slots[i] = slot_of(QHCA_CMD_NOP);
		put_le32(&slots[i].flags, QHCA_CMD_F_EVENT);
		put_le32(&slots[i].status, QHCA_CMD_OWN);
	}
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1u << 7 | 1u << 4, 0);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1u << 2 | 1u << 1, 0);
	/* One command costs one unit of the budget. */
	for (i = 0; i < 4; i++) {
		assert_int_equal(qhca_run(h->hca, 0, 1).more, i < 3);
		assert_int_equal(get_le32(&host_eqe(h, &eq, i)->number),
				 expect[i]);
	}
	host_free(h);
}

/* The device copies the slot once, so later changes have no effect. */
static void test_copied_once(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_cmd_slot slot = slot_of(QHCA_CMD_NOP);
	struct host_watch slot_watch;

	(void)state;
	host_enable(h);
	host_watch(h, &slot_watch, h->slots, 64);
	host_cmd_slot(h, &slot, 0);
	assert_int_equal(slot_watch.reads, 1);
	assert_int_equal(slot_watch.writes, 1);
	host_free(h);
}

static void test_slot_unreachable(void **state)
{
	struct host *h = host_new(NULL);

	(void)state;
	host_enable(h);
	h->bad_first = h->slots + 64;
	h->bad_last = h->slots + 127;
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 2, 0);
	host_run(h);
	assert_int_equal(h->fn->status & QHCA_STATUS_FATAL_CAUSE,
			 QHCA_FATAL_CMDQ_DMA << 8);
	assert_int_equal(h->fn->fatal_info, 1);
	host_free(h);

	h = host_new(NULL);		/* can be read, not answered */
	host_enable(h);
	put_le32((uint8_t *)host_ptr(h, h->slots) +
		 offsetof(struct qhca_cmd_slot, status), QHCA_CMD_OWN);
	h->fail_in = 2;
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1, 0);
	host_run(h);
	assert_int_equal(h->fn->status & QHCA_STATUS_FATAL_CAUSE,
			 QHCA_FATAL_CMDQ_DMA << 8);
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Checks before the handler
 */
static void test_every_opcode(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_cmd_slot slot, done;
	unsigned int op, known = 0;

	(void)state;
	host_enable(h);
	/* Before INIT_HCA the device accepts five commands only; no input does harm. */
	for (op = 0; op < 0x10000; op += op < 0x100 ? 1 : 0x55) {
		bool early = op == QHCA_CMD_NOP || op == QHCA_CMD_QUERY_CAPS ||
			     op == QHCA_CMD_INIT_HCA ||
			     op == QHCA_CMD_QUERY_PORT ||
			     op == QHCA_CMD_QUERY_COUNTERS;

		slot = slot_of((uint16_t)op);
		put_le32(&slot.index, UINT32_MAX);
		put_le32(&slot.param, UINT32_MAX);
		done = host_cmd_slot(h, &slot, 0);
		if (!hca_cmd_name((uint16_t)op)) {
			assert_int_equal(status_of(&done),
					 QHCA_CMD_BAD_OPCODE);
			continue;
		}
		known++;
		if (early)
			assert_true(status_of(&done) == QHCA_CMD_OK ||
				    status_of(&done) == QHCA_CMD_BAD_LEN);
		else
			assert_true(status_of(&done) == QHCA_CMD_NOT_INIT ||
				    status_of(&done) == QHCA_CMD_UNSUPPORTED);
	}
	assert_int_equal(known, 50);	/* all that the ABI names */
	host_free(h);
}

/*
 * The device refuses every command with every length but its own, and with misaligned
 * mailboxes.
 */
static void test_lengths(void **state)
{
	struct host *h = host_new_ready();
	uint64_t box = host_alloc(h, 8192, 64);
	struct qhca_cmd_slot slot = slot_of(QHCA_CMD_SET_GID), done;

	(void)state;
	put_le64(&slot.in_addr, box);
	put_le32(&slot.in_len, 31);
	done = host_cmd_slot(h, &slot, 0);
	assert_int_equal(status_of(&done), QHCA_CMD_BAD_LEN);
	put_le32(&slot.in_len, 33);
	done = host_cmd_slot(h, &slot, 0);
	assert_int_equal(status_of(&done), QHCA_CMD_BAD_LEN);
	put_le32(&slot.in_len, UINT32_MAX);
	done = host_cmd_slot(h, &slot, 0);
	assert_int_equal(status_of(&done), QHCA_CMD_BAD_LEN);
	put_le32(&slot.in_len, 32);
	put_le64(&slot.in_addr, box + 32);
	done = host_cmd_slot(h, &slot, 0);
	assert_int_equal(status_of(&done), QHCA_CMD_BAD_PARAM);
	assert_int_equal(get_le32(&done.syndrome), 0x10010);
	put_le64(&slot.in_addr, box);
	put_le32(&slot.index, 8);
	done = host_cmd_slot(h, &slot, 0);
	assert_int_equal(status_of(&done), QHCA_CMD_BAD_INDEX);
	put_le32(&slot.index, 7);
	put_le64(&slot.in_addr, 0x40);	/* no memory there */
	done = host_cmd_slot(h, &slot, 0);
	assert_int_equal(status_of(&done), QHCA_CMD_DMA_ERR);
	assert_int_equal(get_le32(&done.syndrome), 1);

	slot = slot_of(QHCA_CMD_QUERY_CAPS);
	put_le64(&slot.out_addr, box);
	put_le32(&slot.out_len, 223);
	done = host_cmd_slot(h, &slot, 0);
	assert_int_equal(status_of(&done), QHCA_CMD_BAD_LEN);
	put_le32(&slot.out_len, 4097);
	done = host_cmd_slot(h, &slot, 0);
	assert_int_equal(status_of(&done), QHCA_CMD_BAD_LEN);
	/* More room is allowed, and the device does not write to it. */
	memset(host_ptr(h, box), 0xee, 4096);
	put_le32(&slot.out_len, 4096);
	done = host_cmd_slot(h, &slot, 0);
	assert_int_equal(status_of(&done), QHCA_CMD_OK);
	assert_int_equal(*(uint8_t *)host_ptr(h, box + 224), 0xee);
	assert_int_equal(*(uint8_t *)host_ptr(h, box + 223), 0);
	put_le64(&slot.out_addr, 0);
	done = host_cmd_slot(h, &slot, 0);
	assert_int_equal(status_of(&done), QHCA_CMD_DMA_ERR);
	assert_int_equal(get_le32(&done.syndrome), 2);
	host_free(h);
}

static void test_permission(void **state)
{
	struct qhca_config cfg;
	struct host *pf = host_new_ready(), *h;

	(void)state;
	assert_int_equal(plain(pf, QHCA_CMD_SET_GVM), QHCA_CMD_UNSUPPORTED);
	assert_int_equal(plain(pf, QHCA_CMD_SET_CLOCK), QHCA_CMD_UNSUPPORTED);

	host_config(&cfg);
	cfg.features = ~(QHCA_FEAT_POOL | QHCA_FEAT_SRQ | QHCA_FEAT_MCAST |
			 QHCA_FEAT_ODP);
	h = host_new_vf(pf, 3, &cfg);
	host_enable(h);
	assert_int_equal(plain(h, QHCA_CMD_SET_GVM), QHCA_CMD_NOT_PERMITTED);
	assert_int_equal(plain(h, (enum qhca_opcode)0x9f),
			 QHCA_CMD_BAD_OPCODE);
	assert_int_equal(plain(h, QHCA_CMD_MAP_POOL_BLOCK),
			 QHCA_CMD_UNSUPPORTED);
	assert_int_equal(plain(h, QHCA_CMD_QUERY_SRQ), QHCA_CMD_UNSUPPORTED);
	assert_int_equal(plain(h, QHCA_CMD_RESIZE_SRQ), QHCA_CMD_UNSUPPORTED);
	assert_int_equal(plain(h, QHCA_CMD_FAULT_RESUME),
			 QHCA_CMD_UNSUPPORTED);
	/* Features that need page faults disappear with them. */
	assert_false(h->fn->features & (QHCA_FEAT_ODP_IMPLICIT |
					QHCA_FEAT_UNSOLICITED_ACK));
	assert_int_equal(plain(h, QHCA_CMD_ATTACH_MCAST),
			 QHCA_CMD_UNSUPPORTED);
	host_free(pf);
}

/* ------------------------------------------------------------------------
 * HCA commands
 */
static void test_caps(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_caps caps;

	(void)state;
	host_enable(h);
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_CAPS, 0, 0, NULL, 0, &caps,
				  sizeof(caps)), QHCA_CMD_OK);
	assert_int_equal(caps.log_max_pt, 10);
	assert_int_equal(caps.num_ports, 1);
	assert_int_equal(caps.num_vectors, 8);
	assert_int_equal(get_le32(&caps.num_counters), QHCA_NUM_COUNTERS);
	assert_int_equal(get_le32(&caps.reserved_lkey), QHCA_RESERVED_LKEY);
	assert_int_equal(get_le64(&caps.clock_hz), 1000000000);
	/* The device reports only features that work. */
	assert_false(get_le64(&caps.features) & QHCA_FEAT_DEVMEM);
	assert_true(get_le64(&caps.features) & QHCA_FEAT_RC);
	assert_true(get_le64(&caps.page_sizes) & 1 << 12);
	assert_false(get_le64(&caps.page_sizes) & 1 << 11);
	assert_true(get_le64(&caps.page_sizes) & 1ull << HCA_MAX_PAGE_SHIFT);
	assert_true(get_le16(&caps.max_sge) >= 16);
	assert_true(get_le16(&caps.max_inline) >= 256);
	/* A QP's descriptor of max_sge segments fits the stride. */
	assert_true(64 + 16 * get_le16(&caps.max_sge) <=
		    1 << caps.log_max_wqe_stride);
	host_free(h);
}

static void test_init_errors(void **state)
{
	struct host *h = host_new(NULL);
	struct qhca_init_hca good, in;

	(void)state;
	host_enable(h);
	host_init_default(h, &good);
#define BAD(change) do {						\
	in = good;							\
	change;								\
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_BAD_PARAM);	\
	assert_false(h->fn->initialised);				\
} while (0)
	BAD(in.table[QHCA_TABLE_PT].log_entries = 11);
	BAD(in.table[QHCA_TABLE_PT].log_entries = 0);
	BAD(in.table[QHCA_TABLE_EQ].log_entries = 255);
	BAD(in.table[QHCA_TABLE_QP].log_chunk = 11);
	BAD(in.table[QHCA_TABLE_SRQ].log_chunk = 23);
	BAD(put_le16(&in.cache[QHCA_CACHE_PT].sets, 3);
	    put_le16(&in.cache[QHCA_CACHE_PT].blocks, 1));
	BAD(put_le16(&in.cache[QHCA_CACHE_AT].sets, 4));
	BAD(put_le16(&in.cache[QHCA_CACHE_AT].blocks, 4));
	BAD(put_le16(&in.cache[QHCA_CACHE_QD].sets, 512);
	    put_le16(&in.cache[QHCA_CACHE_QD].blocks, 1));
	BAD(put_le16(&in.cache[QHCA_CACHE_SRQ].sets, 1);
	    put_le16(&in.cache[QHCA_CACHE_SRQ].blocks, 32));
	BAD(put_le32(&in.flags, 4));
	in = good;
	put_le16(&in.cache[QHCA_CACHE_PT].sets, 1);
	put_le16(&in.cache[QHCA_CACHE_PT].blocks, 1);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_BAD_STATE);
	assert_int_equal(plain(h, QHCA_CMD_TEARDOWN_HCA), QHCA_CMD_OK);
	assert_int_equal(plain(h, QHCA_CMD_TEARDOWN_HCA), QHCA_CMD_NOT_INIT);
	assert_int_equal(host_init_hca(h, &good), QHCA_CMD_OK);
	host_free(h);
}

static void test_init_strict(void **state)
{
	struct qhca_config cfg;
	struct qhca_init_hca in;
	struct host *h;

	(void)state;
	host_config(&cfg);
	cfg.features = ~QHCA_FEAT_STRICT_LKEY;
	h = host_new(&cfg);
	host_enable(h);
	host_init_default(h, &in);
	put_le32(&in.flags, QHCA_INIT_STRICT_LKEY);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_BAD_PARAM);
	host_free(h);
}

/* TEARDOWN_HCA drops tables and queues; settings and counters stay. */
static void test_teardown(void **state)
{
	struct host *h = host_new_ready();
	struct qhca_port_config pc = { 0 };
	struct qhca_gid_entry gid = { .gid = { 0xfe, 0x80, 1 },
				      .smac = { 2 } };
	struct ring eq = host_ring(h, 2);
	struct qhca_init_hca in;
	uint64_t addr;

	(void)state;
	put_le32(&pc.fields, QHCA_PORT_SET_MTU);
	put_le32(&pc.eth_mtu, 4200);
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_PORT, 0, 0, &pc, sizeof(pc),
				  NULL, 0), QHCA_CMD_OK);
	put_le32(&gid.flags, QHCA_GID_VALID);
	put_le16(&gid.vlan, QHCA_GID_NO_VLAN);
	assert_int_equal(host_cmd(h, QHCA_CMD_SET_GID, 0, 0, &gid, sizeof(gid),
				  NULL, 0), QHCA_CMD_OK);
	assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
	assert_int_equal(plain(h, QHCA_CMD_TEARDOWN_HCA), QHCA_CMD_OK);
	assert_false(hca_table_entry(h->fn, QHCA_TABLE_PT, 2, &addr));
	assert_null(hca_gid_get(h->fn, 0));
	assert_int_equal(h->fn->port.eth_mtu, 4200);
	assert_true(COUNT(h, commands) > 3);
	host_init_default(h, &in);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	assert_false(hca_eq_live(h->fn, 0));
	host_free(h);
}

static void test_counters(void **state)
{
	struct host *h = host_new(NULL);
	__le64 out[200];
	uint32_t i, n = QHCA_NUM_COUNTERS;

	(void)state;
	host_enable(h);
	for (i = 0; i < n; i++)
		h->fn->counter[i] = 1000 + i;
	memset(out, 0xee, sizeof(out));
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_COUNTERS, 3, 0, NULL, 0,
				  out, 16), QHCA_CMD_OK);
	assert_int_equal(get_le64(&out[0]), 1003);
	assert_int_equal(get_le64(&out[1]), 1004);
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_COUNTERS, n - 1, 0, NULL,
				  0, out, 24), QHCA_CMD_OK);
	assert_int_equal(get_le64(&out[0]), 1000 + n - 1);
	assert_int_equal(get_le64(&out[1]), 0);
	assert_int_equal(get_le64(&out[2]), 0);
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_COUNTERS, n, 0, NULL, 0,
				  out, 8), QHCA_CMD_BAD_INDEX);
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_COUNTERS, 0, 0, NULL, 0,
				  out, 12), QHCA_CMD_BAD_LEN);
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_COUNTERS, 0, 0, NULL, 0,
				  out, 0), QHCA_CMD_BAD_LEN);
	host_free(h);
}

/* ------------------------------------------------------------------------
 * Hostile software: random slots and mailboxes, random DMA failures
 */
static void test_random(void **state)
{
	unsigned int seed, i;

	(void)state;
	for (seed = 0; seed < 60; seed++) {
		struct host *h = host_new_ready();
		uint64_t rng = seed, box = host_alloc(h, 4096, 64);
		struct ring eq = host_ring(h, 3);

		host_create_eq(h, 0, &eq, 0);
		for (i = 0; i < 300 && !hca_is_dead(h->fn); i++) {
			struct qhca_cmd_slot slot;
			uint16_t op = (uint16_t)(host_random(&rng) % 0x50);
			uint8_t *p = host_ptr(h, box);
			unsigned int k;

			memset(&slot, 0, sizeof(slot));
			put_le16(&slot.opcode, op);
			put_le32(&slot.flags, host_random(&rng) % 2);
			put_le32(&slot.index, (uint32_t)(host_random(&rng) %
							 (seed % 2 ? 8 : 70)));
			put_le32(&slot.param, (uint32_t)(host_random(&rng) >>
							 host_random(&rng) % 64));
			put_le64(&slot.in_addr, box);
			put_le64(&slot.out_addr, box);
			put_le32(&slot.in_len, (uint32_t)(host_random(&rng) %
							  300));
			/* The length is mostly the right one, which the test asks for. */
			if (host_random(&rng) % 4) {
				static const uint16_t lengths[] = {
					128, 32, 520, 64, 64, 64, 240, 256, 16,
					16, 32, 8,
				};

				put_le32(&slot.in_len, lengths[host_random(&rng)
					 % (sizeof(lengths) / 2)]);
			}
			put_le32(&slot.out_len, 4096);
			for (k = 0; k < 600; k++)
				p[k] = host_random(&rng) % 3 ? 0 :
				       (uint8_t)host_random(&rng);
			if (host_random(&rng) % 50 == 0)
				h->fail_in = 1 + host_random(&rng) % 6;
			host_cmd_slot(h, &slot, 0);
			if (host_random(&rng) % 4 == 0)
				qhca_doorbell(h->hca, 0,
					      (uint32_t)(host_random(&rng) % 4),
					      (uint32_t)(host_random(&rng) % 6 *
							 8),
					      host_random(&rng) &
					      0xffffffff0000000full, h->now);
			host_run_at(h, h->now + host_random(&rng) % 200000);
		}
		host_free(h);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_release),
	cmocka_unit_test(test_doorbell),
	cmocka_unit_test(test_order),
	cmocka_unit_test(test_copied_once),
	cmocka_unit_test(test_slot_unreachable),
	cmocka_unit_test(test_every_opcode),
	cmocka_unit_test(test_lengths),
	cmocka_unit_test(test_permission),
	cmocka_unit_test(test_caps),
	cmocka_unit_test(test_init_errors),
	cmocka_unit_test(test_init_strict),
	cmocka_unit_test(test_teardown),
	cmocka_unit_test(test_counters),
	cmocka_unit_test(test_random),
};
TEST_MAIN(tests)
