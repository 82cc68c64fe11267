// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Stage 2: a function whose bus addresses the host domain translates.  The fake host
 * ends the program when a DMA reaches a page that the function does not have now.
 */
#include "domain.h"

/* Everything that commands name is pinned first, once, and the command is held. */
static void test_pins(void **state)
{
	struct domain *d = domain_new();
	struct qhca_cmd_slot slot = { 0 };
	const struct qhca_cmd_slot *held;
	struct ring eq;
	unsigned int pins;

	(void)state;
	host_enable(d->vf);
	assert_int_equal(nop(d->vf), QHCA_CMD_OK);
	assert_int_equal(d->pins, 1);	/* the slots; NOP has no mailbox */
	assert_int_equal(nop(d->vf), QHCA_CMD_OK);
	assert_int_equal(d->pins, 1);
	initialise(d->vf);
	eq = host_ring(d->vf, 6);
	assert_int_equal(host_create_eq(d->vf, 0, &eq, 0), QHCA_CMD_OK);
	pins = d->pins;
	assert_true(pins > 5);
	assert_int_equal(COUNT(d->vf, pin_requests), pins);
	assert_int_equal(d->faults, 0);

	/* Nobody answers: the device holds the command, and others of the host domain go on. */
	d->absent = true;
	put_le16(&slot.opcode, QHCA_CMD_QUERY_PORT);
	put_le64(&slot.out_addr, 4096 * 1000);
	put_le32(&slot.out_len, sizeof(struct qhca_port));
	held = host_cmd_begin(d->vf, &slot, 1);
	host_run(d->vf);
	assert_true(get_le32(&held->status) & QHCA_CMD_OWN);
	assert_int_equal(nop(d->pf), QHCA_CMD_OK);
	assert_int_equal(d->pins, pins + 1);
	assert_int_equal(get_le64(&d->last.fault.addr), 4096 * 1000);
	assert_int_equal(answer(d, 1, QHCA_RESUME_OK), QHCA_CMD_BAD_INDEX);
	host_s2_map(d->pf, d->vf, 4096 * 1000, PINNED);
	assert_int_equal(answer(d, get_le32(&d->last.fault.token),
				QHCA_RESUME_OK), QHCA_CMD_OK);
	host_run(d->vf);
	assert_int_equal(get_le32(&held->status), QHCA_CMD_OK);
	/* A page that is pinned already costs no event. */
	held = host_cmd_begin(d->vf, &slot, 1);
	host_run(d->vf);
	assert_int_equal(get_le32(&held->status), QHCA_CMD_OK);
	assert_int_equal(d->pins, pins + 1);
	domain_free(d);
}

static void test_pin_refused(void **state)
{
	struct domain *d = domain_ready();
	struct ring cq = host_ring(d->vf, 6);
	struct qhca_cmd_slot slot = { 0 };
	uint8_t out[sizeof(struct qhca_port)];

	(void)state;
	cq.base = 4096 * 900;
	put_le64(&cq.buf.base, cq.base);
	assert_int_equal(host_cmd(d->vf, QHCA_CMD_QUERY_PORT, 0, 0, NULL, 0, out,
				  sizeof(out)), QHCA_CMD_OK);
	d->fail = true;
	assert_int_equal(host_create_eq(d->vf, 0, &cq, 0), QHCA_CMD_DMA_ERR);
	assert_false(status_of(d->vf) & QHCA_STATUS_FATAL);
	assert_int_equal(host_create_eq(d->vf, 0, &cq, 0), QHCA_CMD_DMA_ERR);
	d->fail = false;
	assert_int_equal(host_create_eq(d->vf, 0, &cq, 0), QHCA_CMD_OK);

	/* Disabling the function forgets a command that is held. */
	d->absent = true;
	put_le16(&slot.opcode, QHCA_CMD_QUERY_PORT);
	put_le64(&slot.out_addr, 4096 * 1000);
	put_le32(&slot.out_len, sizeof(struct qhca_port));
	host_cmd_begin(d->vf, &slot, 1);
	host_run(d->vf);
	qhca_reg_write(d->vf->hca, GVMI, QHCA_REG_CONTROL, 0, 0);
	assert_int_equal(answer(d, get_le32(&d->last.fault.token),
				QHCA_RESUME_OK), QHCA_CMD_BAD_INDEX);
	qhca_reset(d->vf->hca, GVMI, 0);

	/* Without slots no function is enabled. */
	d->absent = false;
	d->fail = true;
	d->vf->next = 4096 * 1100;
	host_enable(d->vf);
	host_cmd_begin(d->vf, &slot, 1);
	host_run(d->vf);
	check_dead(d->vf, QHCA_STAGE2_REFUSED);
	assert_int_equal(nop(d->pf), QHCA_CMD_OK);
	domain_free(d);
}

/* The function whose promise is broken dies, and nobody else. */
static void test_not_pinned(void **state)
{
	struct domain *d = domain_ready();
	struct ring eq = host_ring(d->vf, 6);

	(void)state;
	assert_int_equal(host_create_eq(d->vf, 0, &eq, 0), QHCA_CMD_OK);
	/* A page that is present but not pinned is not enough. */
	host_s2_unmap(d->pf, d->vf, eq.base);
	host_s2_map(d->pf, d->vf, eq.base, PRESENT);
	qhca_set_link(d->pf->hca, false, 0);
	host_run(d->vf);
	check_dead(d->vf, QHCA_STAGE2_NOT_PINNED);
	assert_false(status_of(d->pf) & QHCA_STATUS_FATAL);
	domain_free(d);
}

static void test_row_changes(void **state)
{
	struct domain *d = domain_ready();
	struct ring eq = host_ring(d->vf, 6);
	uint32_t generation = d->pf->hca->hca.gvm[GVMI].generation;
	uint64_t writes;

	(void)state;
	assert_int_equal(host_create_eq(d->vf, 0, &eq, 0), QHCA_CMD_OK);
	assert_true(d->pf->hca->hca.cache.s2.valid);
	writes = d->vf->writes;
	host_s2_open(d->pf, d->vf, ATTR);
	check_dead(d->vf, QHCA_STAGE2_REPLACED);
	assert_int_equal(d->vf->writes, writes);	/* no event of its death */
	assert_int_equal(d->pf->hca->hca.gvm[GVMI].generation, generation + 1);
	assert_int_equal(d->pf->hca->hca.cache.s2.valid, 0);
	/* The function begins a new life. */
	qhca_reset(d->vf->hca, GVMI, 0);
	d->pins = 0;
	host_enable(d->vf);
	assert_int_equal(nop(d->vf), QHCA_CMD_OK);
	assert_true(d->pins);
	domain_free(d);
}

/* Nobody translates by tables whose owner has gone. */
static void test_host_domain_goes(void **state)
{
	struct domain *d = domain_ready();
	struct qhca_gvm_entry off = { 0 };
	struct qhca_cmd_slot slot = { 0 };
	uint64_t reads;

	(void)state;
	reads = d->vf->reads;
	qhca_reset(d->pf->hca, 0, 0);
	check_dead(d->vf, QHCA_STAGE2_LOST);
	qhca_vf_enable(d->pf->hca, GVMI, false, 0);
	qhca_vf_enable(d->pf->hca, GVMI, true, 0);
	assert_false(status_of(d->vf) & QHCA_STATUS_FATAL);
	host_enable(d->vf);
	host_cmd_begin(d->vf, &slot, 0);
	host_run(d->pf);
	check_dead(d->vf, QHCA_STAGE2_LOST);
	assert_int_equal(d->vf->reads, reads);
	/* The host domain gives it a row again, without stage 2. */
	qhca_reset(d->vf->hca, GVMI, 0);
	host_enable(d->pf);
	initialise(d->pf);
	assert_int_equal(host_cmd(d->pf, QHCA_CMD_SET_GVM, GVMI, 0, &off,
				  sizeof(off), NULL, 0), QHCA_CMD_OK);
	d->vf->s2_root = 0;
	d->vf->idle = NULL;
	host_enable(d->vf);
	assert_int_equal(nop(d->vf), QHCA_CMD_OK);
	domain_free(d);
}

static void test_commands(void **state)
{
	struct domain *d = domain_ready();
	struct qhca_gvm_entry row = { .page_shift = 13, .levels = 1 };
	struct qhca_range range = { 0 };

	(void)state;
#define SET(gvmi) host_cmd(d->pf, QHCA_CMD_SET_GVM, gvmi, 0, &row, \
			   sizeof(row), NULL, 0)
	assert_int_equal(host_cmd(d->vf, QHCA_CMD_SET_GVM, GVMI, 0, &row,
				  sizeof(row), NULL, 0), QHCA_CMD_NOT_PERMITTED);
	assert_int_equal(host_cmd(d->vf, QHCA_CMD_INVALIDATE_STAGE2, GVMI, 0,
				  &range, sizeof(range), NULL, 0),
			 QHCA_CMD_NOT_PERMITTED);
	assert_int_equal(host_cmd(d->vf, QHCA_CMD_STAGE2_RESUME, 0, GVMI << 16,
				  NULL, 0, NULL, 0), QHCA_CMD_NOT_PERMITTED);
	assert_int_equal(SET(0), QHCA_CMD_BAD_INDEX);
	assert_int_equal(SET(1), QHCA_CMD_BAD_INDEX);
	put_le32(&row.flags, 2);
	assert_int_equal(SET(GVMI), QHCA_CMD_BAD_PARAM);
	put_le32(&row.flags, QHCA_GVM_STAGE2);
	assert_int_equal(SET(GVMI), QHCA_CMD_BAD_PARAM);	/* page_shift */
	row.page_shift = 21;
	put_le64(&row.at_base, 32);
	assert_int_equal(SET(GVMI), QHCA_CMD_BAD_PARAM);
	put_le64(&row.at_base, 64);
	row.levels = 6;
	assert_int_equal(SET(GVMI), QHCA_CMD_BAD_PARAM);
	assert_int_equal(host_cmd(d->pf, QHCA_CMD_INVALIDATE_STAGE2, GVMI, 0,
				  &range, sizeof(range), NULL, 0),
			 QHCA_CMD_BAD_PARAM);
	put_le64(&range.start, 4096);
	put_le64(&range.length, UINT64_MAX);
	assert_int_equal(host_cmd(d->pf, QHCA_CMD_INVALIDATE_STAGE2, GVMI, 0,
				  &range, sizeof(range), NULL, 0),
			 QHCA_CMD_BAD_PARAM);
	assert_int_equal(answer(d, 5, QHCA_RESUME_OK), QHCA_CMD_BAD_INDEX);
	assert_int_equal(answer(d, 5, 2), QHCA_CMD_BAD_PARAM);
	assert_int_equal(host_cmd(d->pf, QHCA_CMD_STAGE2_RESUME, 5, 0, NULL, 0,
				  NULL, 0), QHCA_CMD_BAD_PARAM);
	assert_false(status_of(d->vf) & QHCA_STATUS_FATAL);
	domain_free(d);
}

/* ---- payload */

static void check_absent(struct domain *d, uint64_t bus, uint64_t len,
			 bool write)
{
	assert_true(d->vf->fn->mem.fault.stage2);
	assert_int_equal(d->vf->fn->mem.fault.bus, bus);
	assert_int_equal(d->vf->fn->mem.fault.bus_len, len);
	assert_int_equal(d->vf->fn->mem.fault.write, write);
}

static void test_payload(void **state)
{
	struct domain *d = domain_ready();
	struct hca_fn *fn = d->vf->fn;
	uint64_t at = 4096 * 1200;
	struct hca_mem_req q = bus_req(d, at + 4000, 200,
				       QHCA_ACCESS_LOCAL_WRITE);
	uint8_t buf[200];
	uint64_t hits;

	(void)state;
	memset(buf, 0x5a, sizeof(buf));
	assert_int_equal(hca_mem_write(fn, &q, buf), HCA_MEM_FAULT);
	check_absent(d, at + 4000, 200, true);
	host_s2_map(d->pf, d->vf, at, PRESENT);
	assert_int_equal(hca_mem_write(fn, &q, buf), HCA_MEM_FAULT);
	check_absent(d, at + 4096, 104, true);
	assert_int_equal(fn->mem.fault.done, 96);
	assert_int_equal(d->vf->ram[at + 4000], 0);	/* nothing moved */
	host_s2_map(d->pf, d->vf, at + 4096, 0);	/* read only */
	assert_int_equal(hca_mem_write(fn, &q, buf), HCA_MEM_FAULT);
	host_s2_bits(d->pf, d->vf, at + 4096, PRESENT);	/* no invalidation */
	assert_int_equal(hca_mem_write(fn, &q, buf), HCA_MEM_OK);
	assert_memory_equal(d->vf->ram + at + 4000, buf, 200);
	hits = COUNT(d->vf, s2_hits);
	assert_int_equal(hca_mem_write(fn, &q, buf), HCA_MEM_OK);
	assert_int_equal(COUNT(d->vf, s2_hits), hits + 2);
	/*
	 * The page is taken away: the access faults, and the frame that was given up is not
	 * touched.
	 */
	host_s2_unmap(d->pf, d->vf, at);
	assert_int_equal(hca_mem_write(fn, &q, buf), HCA_MEM_FAULT);
	check_absent(d, at + 4000, 200, true);
	/* The reserved L_Key skips stage 1 only. */
	q.key = QHCA_RESERVED_LKEY;
	q.kernel = true;
	assert_int_equal(hca_mem_write(fn, &q, buf), HCA_MEM_FAULT);
	/* No address reaches beyond the tables. */
	q.addr = 1ull << 45;
	assert_int_equal(hca_mem_read(fn, &q, buf), HCA_MEM_FAULT);
	q.addr = HOST_FRAMES;
	assert_int_equal(hca_mem_read(fn, &q, buf), HCA_MEM_FAULT);
	assert_false(status_of(d->vf) & QHCA_STATUS_FATAL);
	domain_free(d);
}

static void test_pool_row(void **state)
{
	struct domain *d = domain_ready();
	struct qhca_pool_row row = { 0 };
	uint64_t at = 4096 * 1300, pte_addr;
	struct hca_mem_req q = bus_req(d, 0, 64, QHCA_ACCESS_LOCAL_WRITE);
	struct qhca_pte *pte;
	uint8_t buf[64] = { 7 };

	(void)state;
	put_le64(&row.addr, at);
	put_le64(&row.length, 8192);
	assert_int_equal(host_cmd(d->vf, QHCA_CMD_MAP_POOL_BLOCK, 1, 0, &row,
				  sizeof(row), NULL, 0), QHCA_CMD_OK);
	assert_true(hca_table_entry(d->vf->fn, QHCA_TABLE_PT, 9, &pte_addr));
	pte = host_ptr(d->vf, pte_addr);
	put_le32(&pte->pool_block, 1);
	put_le64(&pte->length, 8192);
	put_le32(&pte->ctrl, QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			     QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_POOL));
	assert_int_equal(hca_mem_write(d->vf->fn, &q, buf), HCA_MEM_FAULT);
	check_absent(d, at, 64, true);
	host_s2_map(d->pf, d->vf, at, PRESENT);
	assert_int_equal(hca_mem_write(d->vf->fn, &q, buf), HCA_MEM_OK);
	assert_int_equal(d->vf->ram[at], 7);
	domain_free(d);
}

/* Nodes of a region are payload: absent, they fault and do not kill. */
static void test_nodes(void **state)
{
	struct domain *d = domain_ready();
	uint64_t node = 4096 * 1400, page = 4096 * 1401, pte_addr;
	struct hca_mem_req q = bus_req(d, 100, 10, 0);
	struct qhca_pte *pte;
	uint8_t buf[10];

	(void)state;
	assert_true(hca_table_entry(d->vf->fn, QHCA_TABLE_PT, 9, &pte_addr));
	pte = host_ptr(d->vf, pte_addr);
	put_le64(&pte->at_base, node);
	put_le64(&pte->length, 4096);
	put_le32(&pte->at_key, 9);
	put_le64(d->vf->ram + node, page | QHCA_ATE_PRESENT);
	put_le32(&pte->ctrl, QHCA_PUT(QHCA_PTE_STATE, QHCA_PTE_VALID) |
			     QHCA_PUT(QHCA_PTE_TYPE, QHCA_PTE_MR) |
			     QHCA_PUT(QHCA_PTE_PAGE_SHIFT, 12u) |
			     QHCA_PUT(QHCA_PTE_LEVELS, 1u));
	assert_int_equal(hca_mem_read(d->vf->fn, &q, buf), HCA_MEM_FAULT);
	check_absent(d, node, 8, false);
	host_s2_map(d->pf, d->vf, node, PRESENT);
	assert_int_equal(hca_mem_read(d->vf->fn, &q, buf), HCA_MEM_FAULT);
	check_absent(d, page + 100, 10, false);
	host_s2_map(d->pf, d->vf, page, 0);
	assert_int_equal(hca_mem_read(d->vf->fn, &q, buf), HCA_MEM_OK);
	domain_free(d);
}

/* ---- a QP that waits */

static void test_qp_waits(void **state)
{
	struct domain *d = domain_ready();
	struct qhca_qpc_sw sw;
	struct ring eq = open_qp(d, &sw);
	unsigned int sent;
	uint32_t token;

	(void)state;
	d->absent = true;
	sent = d->pf->num_sent;
	post_send(d->vf, &sw, 4096 * 1500);
	host_run(d->vf);
	assert_int_equal(d->faults, 1);
	assert_int_equal(get_le64(&d->last.fault.addr), 4096 * 1500);
	assert_int_equal(get_le64(&d->last.fault.length), 100);
	assert_int_equal(COUNT(d->vf, page_faults2), 1);
	assert_int_equal(COUNT(d->vf, page_faults1), 0);
	assert_int_equal(COUNT(d->vf, fault_gather), 1);
	assert_int_equal(d->pf->num_sent, sent);
	/* The function's own software sees nothing of it, and cannot answer. */
	assert_false(host_eqe_valid(d->vf, &eq, 0));
	token = get_le32(&d->last.fault.token);
	assert_int_equal(host_cmd(d->vf, QHCA_CMD_FAULT_RESUME, token,
				  QHCA_RESUME_OK, NULL, 0, NULL, 0),
			 QHCA_CMD_BAD_INDEX);
	/* A fault that was answered without a page is raised again. */
	assert_int_equal(answer(d, token, QHCA_RESUME_OK), QHCA_CMD_OK);
	host_run(d->vf);
	assert_int_equal(d->faults, 2);
	assert_int_equal(answer(d, token, QHCA_RESUME_OK), QHCA_CMD_BAD_INDEX);
	host_s2_map(d->pf, d->vf, 4096 * 1500, 0);
	assert_int_equal(answer(d, get_le32(&d->last.fault.token),
				QHCA_RESUME_OK), QHCA_CMD_OK);
	host_run(d->vf);
	assert_int_equal(d->pf->num_sent, sent + 1);
	assert_int_equal(COUNT(d->vf, fault_resumes), 2);
	domain_free(d);
}

/* An answer to a fault of the function's last life is none to a fault of this one. */
static void test_answer_after_reset(void **state)
{
	struct domain *d = domain_ready();
	struct qhca_qpc_sw sw;
	uint32_t token;

	(void)state;
	open_qp(d, &sw);
	d->absent = true;
	post_send(d->vf, &sw, 4096 * 1500);
	host_run(d->vf);
	token = get_le32(&d->last.fault.token);

	qhca_reset(d->vf->hca, GVMI, 0);
	d->absent = false;
	host_enable(d->vf);
	initialise(d->vf);
	open_qp(d, &sw);
	d->absent = true;
	post_send(d->vf, &sw, 4096 * 1500);
	host_run(d->vf);
	assert_int_equal(d->faults, 2);
	assert_int_equal(answer(d, token, QHCA_RESUME_FAIL), QHCA_CMD_BAD_INDEX);
	assert_int_equal(answer(d, get_le32(&d->last.fault.token),
				QHCA_RESUME_FAIL), QHCA_CMD_OK);
	domain_free(d);
}

/* The answer comes when the function has moved and no context can be read yet. */
static void test_answer_after_move(void **state)
{
	struct domain *d = domain_ready();
	struct qhca_qpc_sw sw;
	unsigned int sent;

	(void)state;
	open_qp(d, &sw);
	d->absent = true;
	sent = d->pf->num_sent;
	post_send(d->vf, &sw, 4096 * 1500);
	host_run(d->vf);
	d->vf->no_dma = true;
	host_move(d->pf, 0);
	host_s2_map(d->pf, d->vf, 4096 * 1500, 0);
	assert_int_equal(answer(d, get_le32(&d->last.fault.token),
				QHCA_RESUME_OK), QHCA_CMD_BAD_INDEX);
	host_run(d->vf);
	assert_int_equal(d->pf->num_sent, sent);
	d->vf->no_dma = false;
	qhca_may_dma(d->vf->hca, host_clock(d->vf));
	host_run(d->vf);
	assert_int_equal(d->pf->num_sent, sent + 1);
	assert_int_equal(COUNT(d->vf, fault_resumes), 1);
	assert_false(status_of(d->vf) & QHCA_STATUS_FATAL);
	domain_free(d);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_pins),
	cmocka_unit_test(test_pin_refused),
	cmocka_unit_test(test_not_pinned),
	cmocka_unit_test(test_row_changes),
	cmocka_unit_test(test_host_domain_goes),
	cmocka_unit_test(test_commands),
	cmocka_unit_test(test_payload),
	cmocka_unit_test(test_pool_row),
	cmocka_unit_test(test_nodes),
	cmocka_unit_test(test_qp_waits),
	cmocka_unit_test(test_answer_after_reset),
	cmocka_unit_test(test_answer_after_move),
};

TEST_MAIN(tests)
