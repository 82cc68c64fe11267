// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The size of images: it is bounded by the configuration, whatever the guest does.
 */
#include "qp_setup.h"

#define BOUND		(2u << 20)
#define NUM_QPS		10000u
#define NUM_MRS		100000u
#define RAM		(256u << 20)

static size_t move(struct host *h)
{
	size_t len = host_migrate(h, 5);

	h->fn = &h->hca->pf;
	return len;
}

/* QPs at work do not make it larger. */
static void test_flat(void **state)
{
	struct host *h = ready((struct qhca_geometry){ 4, 2 });
	struct qhca_qpc_sw sw = good(h);
	size_t len = move(h);

	(void)state;
	for (uint32_t qpn = 2; qpn < 20; qpn++) {
		assert_int_equal(create(h, qpn, &sw), QHCA_CMD_OK);
		to_rts(h, qpn);
		qhca_doorbell(h->hca, 0, 0, QHCA_DB_SQ, 1ull << 32 | qpn, h->now);
	}
	assert_int_equal(move(h), len);
	host_free(h);
}

/* The default configuration, with memory for all objects that there can be. */
static struct host *largest(uint64_t *table)
{
	struct host *h = calloc(1, sizeof(*h));
	struct qhca_init_hca in;
	struct qhca_config cfg;
	struct ring eq, cq;

	qhca_config_default(&cfg);
	host_open(h, RAM, &cfg);
	h->fn = &h->hca->pf;
	host_enable(h);
	host_init_default(h, &in);
	for (unsigned int i = 0; i < QHCA_NUM_TABLES; i++)
		in.table[i].log_chunk = 18;
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	for (unsigned int i = 0; i < QHCA_NUM_TABLES; i++)
		table[i] = host_map_table(h, (enum qhca_table)i);
	eq = host_ring(h, 0);
	cq = host_ring(h, 6);
	assert_int_equal(host_create_eq(h, 0, &eq, 0), QHCA_CMD_OK);
	assert_int_equal(host_create_cq(h, CQN, &cq, 0), QHCA_CMD_OK);
	return h;
}

static void make_objects(struct host *h, uint64_t pt)
{
	struct qhca_qpc_sw sw = good(h);
	struct qhca_pte pte = { 0 };

	for (uint32_t qpn = 2; qpn < 2 + NUM_QPS; qpn++)
		assert_int_equal(create(h, qpn, &sw), QHCA_CMD_OK);
	put_le32(&pte.ctrl, QHCA_PTE_VALID | QHCA_PTE_MR << 4 | 12u << 16);
	for (uint32_t i = 0; i < NUM_MRS; i++)
		memcpy(host_ptr(h, pt + (QHCA_FIRST_KEY_INDEX + i) * sizeof(pte)),
		       &pte, sizeof(pte));
}

/* Each object holds each event that it can raise. */
static void hold_events(struct host *h)
{
	const struct qhca_config *cfg = &h->fn->cfg;
	const struct qhca_fault_info fault = { 0 };

	for (uint32_t i = 0; i < 1u << cfg->log_max_qp; i++) {
		for (unsigned int type = QHCA_EVENT_QP_FATAL;
		     type <= QHCA_EVENT_QP_LAST_WQE; type++)
			hca_event(h->fn, (enum qhca_event)type, i, 0);
		for (unsigned int dir = 0; dir < HCA_NUM_FAULT_DIRS; dir++)
			hca_event_fault(h->fn, i, dir, &fault);
	}
	for (uint32_t i = 0; i < 1u << cfg->log_max_srq; i++) {
		hca_event(h->fn, QHCA_EVENT_SRQ_ERROR, i, 0);
		hca_event(h->fn, QHCA_EVENT_SRQ_LIMIT, i,
			  1u << cfg->log_max_wq_depth);
	}
	for (uint32_t i = 0; i < 1u << cfg->log_max_cq; i++) {
		hca_event(h->fn, QHCA_EVENT_CQ_ERROR, i, 1);
		hca_event_completion(h->fn, 0, i, UINT32_MAX - i);
	}
	hca_event(h->fn, QHCA_EVENT_PORT_CHANGE, 1, UINT32_MAX);
	assert_int_equal(h->fn->eqs.num_linked,
			 h->fn->eqs.base[HCA_SOURCE_STAGE2] - 1);
}

static void hold_frames(struct host *h)
{
	struct hca_wire *w = &h->hca->hca.wire;
	struct hca_inject *inject = &h->hca->hca.inject;

	for (uint32_t i = 0; i < HCA_LOOP_FRAMES; i++) {
		w->looped[i] = (struct hca_looped){ .to = 1, .len = QHCA_MAX_FRAME };
		memset(w->loop + i * QHCA_MAX_FRAME, 1, QHCA_MAX_FRAME);
	}
	w->loop_pi = w->loop_places.of[0] = HCA_LOOP_FRAMES;
	w->loop_places.fns = 1;
	for (uint32_t i = 0; i < HCA_INJECT_STORE; i++) {
		inject->slot[i] = (struct hca_inject_frame){
			.used = true, .len = QHCA_MAX_FRAME, .order = i,
		};
		memset(inject->data + i * QHCA_MAX_FRAME, 1, QHCA_MAX_FRAME);
	}
	inject->held = HCA_INJECT_STORE;
}

/*
 * A guest that makes as much of the image as it can, with the queues of the switch and
 * of the injector full as well.
 */
static void test_largest(void **state)
{
	uint64_t table[QHCA_NUM_TABLES];
	struct host *h = largest(table);
	size_t rest = move(h), objects, len;
	uint32_t linked;

	(void)state;
	make_objects(h, table[QHCA_TABLE_PT]);
	objects = move(h);
	assert_int_equal(objects, rest);
	hold_events(h);
	linked = h->fn->eqs.num_linked;
	hold_frames(h);
	len = move(h);
	assert_int_equal(h->fn->eqs.num_linked, linked);
	print_message("# %zu bytes for the default configuration, at most %zu\n",
		      rest, len);
	assert_true(len < BOUND);
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_flat),
	cmocka_unit_test(test_largest),
};
TEST_MAIN(tests)
