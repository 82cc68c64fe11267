// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include "unit.h"
#include "life.h"
#include "queue/held.h"

#define VECTOR	3u

static struct host *with_eq0(unsigned int log_depth, struct ring *eq)
{
	struct host *h = host_new_ready();

	*eq = host_ring(h, log_depth);
	assert_int_equal(host_create_eq(h, 0, eq, VECTOR), QHCA_CMD_OK);
	return h;
}

static void arm(struct host *h, uint32_t eqn, uint32_t ci)
{
	qhca_doorbell(h->hca, 0, 0, QHCA_DB_EQ_ARM, eqn | (uint64_t)ci << 32,
		      h->now);
}

static void check_eqe(struct host *h, const struct ring *eq, uint32_t i,
		      enum qhca_event type, uint32_t number, uint32_t detail)
{
	const struct qhca_eqe *e = host_eqe(h, eq, i);

	assert_true(host_eqe_valid(h, eq, i));
	assert_int_equal(e->type, type);
	assert_int_equal(get_le32(&e->number), number);
	assert_int_equal(get_le32(&e->detail), detail);
}

static uint32_t written(struct host *h, uint32_t eqn)
{
	return h->fn->eqs.eq[eqn].pi;
}

/* The device writes entries in order, and the phase changes with each pass. */
static void test_phase(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(2, &eq);
	uint32_t i;

	(void)state;
	assert_false(host_eqe_valid(h, &eq, 0));
	for (i = 0; i < 11; i++) {
		hca_event(h->fn, QHCA_EVENT_QP_FATAL, i, 100 + i);
		check_eqe(h, &eq, i, QHCA_EVENT_QP_FATAL, i, 100 + i);
		assert_false(host_eqe_valid(h, &eq, i + 1));
		host_set_ci(h, &eq, i + 1);
	}
	assert_int_equal(COUNT(h, events), 11);
	assert_int_equal(COUNT(h, events_held), 0);
	/* The device reads the record only when the ring seems full. */
	assert_int_equal(COUNT(h, refetches), 2);
	assert_int_equal(COUNT(h, refetches_unchanged), 0);
	host_free(h);
}

static void test_interrupt(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(4, &eq);

	(void)state;
	/* The EQ is created disarmed. */
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 1, 0);
	assert_int_equal(h->irqs[VECTOR], 0);
	/* An entry is beyond ci: the interrupt comes at once, and the queue is not armed. */
	arm(h, 0, 0);
	assert_int_equal(h->irqs[VECTOR], 1);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 2, 0);
	assert_int_equal(h->irqs[VECTOR], 1);
	/* Software has consumed all entries: the next one raises one interrupt. */
	arm(h, 0, 2);
	assert_int_equal(h->irqs[VECTOR], 1);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 3, 0);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 4, 0);
	assert_int_equal(h->irqs[VECTOR], 2);
	assert_int_equal(COUNT(h, interrupts), 2);
	/* An index that was never written counts as moved beyond. */
	arm(h, 0, 77);
	assert_int_equal(h->irqs[VECTOR], 3);
	assert_int_equal(h->fn->eqs.eq[0].ci, 2);
	assert_int_equal(COUNT(h, eq_arms), 3);
	host_free(h);
}

static void test_doorbell_ignored(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(4, &eq);
	uint64_t ignored = COUNT(h, doorbells_ignored);

	(void)state;
	arm(h, 1, 0);			/* not live */
	arm(h, 0xffffff, 0);		/* no such number */
	qhca_doorbell(h->hca, 0, 1, QHCA_DB_EQ_ARM, 0, 0);	/* wrong page */
	assert_int_equal(COUNT(h, doorbells_ignored), ignored + 3);
	assert_int_equal(COUNT(h, eq_arms), 0);
	host_free(h);
}

/* A full queue holds events back; the device loses, overwrites and repeats none. */
static void test_hold(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(2, &eq);
	uint32_t i;

	(void)state;
	for (i = 0; i < 10; i++)
		hca_event(h->fn, QHCA_EVENT_QP_FATAL, i, i);
	assert_int_equal(written(h, 0), 4);
	assert_int_equal(COUNT(h, events_held), 6);
	for (i = 0; i < 4; i++)
		check_eqe(h, &eq, i, QHCA_EVENT_QP_FATAL, i, i);
	/* Software takes two entries and arms: two more follow, and the interrupt. */
	arm(h, 0, 2);
	assert_int_equal(h->irqs[VECTOR], 1);
	assert_int_equal(written(h, 0), 6);
	check_eqe(h, &eq, 5, QHCA_EVENT_QP_FATAL, 5, 5);
	/*
	 * Software takes more entries and reports this only in memory; the device finds it at
	 * intervals.
	 */
	host_set_ci(h, &eq, 5);
	host_run(h);
	assert_int_equal(written(h, 0), 6);
	assert_true(qhca_run(h->hca, h->now, 1).deadline <=
		    h->now + HCA_EQ_POLL_NS);
	host_run_at(h, h->now + HCA_EQ_POLL_NS);
	assert_int_equal(written(h, 0), 9);
	/* The next event finds it as well, and queues behind those held. */
	host_set_ci(h, &eq, 8);
	hca_event(h->fn, QHCA_EVENT_SRQ_LIMIT, 1, 9);
	check_eqe(h, &eq, 9, QHCA_EVENT_QP_FATAL, 9, 9);
	check_eqe(h, &eq, 10, QHCA_EVENT_SRQ_LIMIT, 1, 9);
	assert_int_equal(written(h, 0), 11);
	assert_int_equal(COUNT(h, events), 11);
	host_run_at(h, h->now + HCA_EQ_POLL_NS);
	assert_int_equal(qhca_run(h->hca, h->now, 1).deadline, QHCA_NEVER);
	host_free(h);
}

/* Held events of one object keep their order; equal ones become one. */
static void test_coalesce(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(1, &eq);
	uint32_t ci = 2;

	(void)state;
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 60, 0);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 61, 0);
	hca_event(h->fn, QHCA_EVENT_QP_LAST_WQE, 9, 1);
	hca_event(h->fn, QHCA_EVENT_QP_COMM_EST, 8, 2);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 9, 3);
	hca_event(h->fn, QHCA_EVENT_QP_LAST_WQE, 9, 4);
	hca_event(h->fn, QHCA_EVENT_PORT_CHANGE, 1, 5);
	assert_int_equal(written(h, 0), 2);
	arm(h, 0, ci);
	check_eqe(h, &eq, 2, QHCA_EVENT_QP_LAST_WQE, 9, 4);
	check_eqe(h, &eq, 3, QHCA_EVENT_QP_FATAL, 9, 4);
	arm(h, 0, 4);
	check_eqe(h, &eq, 4, QHCA_EVENT_QP_COMM_EST, 8, 2);
	check_eqe(h, &eq, 5, QHCA_EVENT_PORT_CHANGE, 1, 5);
	arm(h, 0, 6);
	assert_int_equal(written(h, 0), 6);
	host_free(h);
}

/*
 * Held events of all kinds and objects at once appear in the order in which they were
 * posted.
 */
static void test_all_kinds(void **state)
{
	static const struct { enum qhca_event type; uint32_t number; } e[] = {
		{ QHCA_EVENT_QP_FATAL, 0 }, { QHCA_EVENT_QP_FATAL, 63 },
		{ QHCA_EVENT_QP_LAST_WQE, 1 }, { QHCA_EVENT_SRQ_ERROR, 0 },
		{ QHCA_EVENT_SRQ_LIMIT, 31 }, { QHCA_EVENT_CQ_ERROR, 0 },
		{ QHCA_EVENT_CQ_ERROR, 63 }, { QHCA_EVENT_PORT_CHANGE, 1 },
	};
	const uint32_t n = sizeof(e) / sizeof(e[0]);
	struct ring eq;
	struct host *h = with_eq0(1, &eq);
	uint32_t i;

	(void)state;
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 5, 0);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 6, 0);
	for (i = 0; i < n; i++)
		hca_event(h->fn, e[i].type, e[i].number, i);
	/* Numbers out of range belong to no object. */
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 64, 0);
	hca_event(h->fn, QHCA_EVENT_CQ_ERROR, 64, 0);
	hca_event(h->fn, QHCA_EVENT_SRQ_LIMIT, 32, 0);
	for (i = 0; i < n; i++) {
		host_set_ci(h, &eq, i + 2);
		host_run_at(h, h->now + HCA_EQ_POLL_NS);
		check_eqe(h, &eq, i + 2, e[i].type, e[i].number, i);
	}
	assert_int_equal(written(h, 0), n + 2);
	host_free(h);
}

/* A loaded image cannot have other kinds: there is a nibble for each of a QP's. */
static void test_possible_kinds(void **state)
{
	struct host *h = host_new_ready();
	struct hca_held held = { .count = 1 };

	(void)state;
	for (held.order = 0; held.order < 16; held.order++)
		assert_int_equal(hca_held_possible(h->fn, 1, &held),
				 held.order < 6 || held.order == HCA_KIND_FAULT ||
				 held.order == HCA_KIND_FAULT + 1);
	held = (struct hca_held){ .count = 8, .order = 0x98543210 };
	assert_true(hca_held_possible(h->fn, 1, &held));
	host_free(h);
}

/* The device does not deliver events of a destroyed object as those of the next one. */
static void test_forget(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(1, &eq);
	uint32_t i;

	(void)state;
	for (i = 0; i < 8; i++)
		hca_event(h->fn, QHCA_EVENT_QP_FATAL, i, i);
	hca_event_forget_qp(h->fn, 3);		/* in the middle */
	hca_event_forget_qp(h->fn, 2);		/* the first held */
	hca_event_forget_qp(h->fn, 7);		/* the last */
	hca_event_forget_qp(h->fn, 7);
	hca_event_forget_qp(h->fn, 1000000);
	hca_event(h->fn, QHCA_EVENT_QP_COMM_EST, 3, 33);
	host_set_ci(h, &eq, 2);
	host_run_at(h, h->now + HCA_EQ_POLL_NS);
	check_eqe(h, &eq, 2, QHCA_EVENT_QP_FATAL, 4, 4);
	check_eqe(h, &eq, 3, QHCA_EVENT_QP_FATAL, 5, 5);
	host_set_ci(h, &eq, 4);
	host_run_at(h, h->now + HCA_EQ_POLL_NS);
	check_eqe(h, &eq, 4, QHCA_EVENT_QP_FATAL, 6, 6);
	check_eqe(h, &eq, 5, QHCA_EVENT_QP_COMM_EST, 3, 33);
	assert_int_equal(written(h, 0), 6);
	host_free(h);
}

/* Completion events of a CQ number that is used again go to the EQ of the new CQ. */
static void test_forget_cq(void **state)
{
	struct ring eq0, eq1, eq2;
	struct host *h = with_eq0(3, &eq0);
	uint32_t i;

	(void)state;
	eq1 = host_ring(h, 1);
	eq2 = host_ring(h, 1);
	assert_int_equal(host_create_eq(h, 1, &eq1, 1), QHCA_CMD_OK);
	assert_int_equal(host_create_eq(h, 2, &eq2, 2), QHCA_CMD_OK);
	for (i = 0; i < 3; i++)
		hca_event_completion(h->fn, 1, 10 + i, i);
	hca_event_forget_cq(h->fn, 12);
	for (i = 0; i < 3; i++)
		hca_event_completion(h->fn, 2, 10 + i, 50 + i);
	host_set_ci(h, &eq1, 2);
	host_set_ci(h, &eq2, 2);
	host_run_at(h, h->now + HCA_EQ_POLL_NS);
	assert_int_equal(written(h, 1), 2);
	assert_int_equal(written(h, 2), 3);
	check_eqe(h, &eq2, 2, QHCA_EVENT_COMPLETION, 12, 52);
	host_free(h);
}

/* ---- many events that wait: a few are written in each call */

#define MANY_DEPTH	8u		/* log */
#define MANY_QPS	1024u

/* EQ 0 is full, and an event of each QP waits. */
static struct host *many_held(struct ring *eq)
{
	struct qhca_config cfg;
	struct qhca_init_hca in;
	struct host *h;

	host_config(&cfg);
	cfg.log_max_qp = 10;
	h = host_new(&cfg);
	host_enable(h);
	host_init_default(h, &in);
	assert_int_equal(host_init_hca(h, &in), QHCA_CMD_OK);
	host_map_table(h, QHCA_TABLE_EQ);
	*eq = host_ring(h, MANY_DEPTH);
	assert_int_equal(host_create_eq(h, 0, eq, VECTOR), QHCA_CMD_OK);
	for (uint32_t i = 0; i < 1u << MANY_DEPTH; i++)
		hca_event(h->fn, QHCA_EVENT_SRQ_LIMIT, 1, i);
	for (uint32_t i = 0; i < MANY_QPS; i++)
		hca_event(h->fn, QHCA_EVENT_QP_FATAL, i, i);
	assert_int_equal(written(h, 0), 1u << MANY_DEPTH);
	return h;
}

static void test_arm_writes_a_few(void **state)
{
	struct ring eq;
	struct host *h = many_held(&eq);
	uint32_t first = 1u << MANY_DEPTH;
	uint64_t writes = h->writes;

	(void)state;
	arm(h, 0, first);
	assert_int_equal(written(h, 0), first + HCA_EQ_DRAIN);
	assert_true(h->writes - writes <= HCA_EQ_DRAIN);
	assert_int_equal(h->irqs[VECTOR], 1);
	/* The next calls continue at once, in order, and none writes more. */
	for (uint32_t n = 2; n <= 4; n++) {
		assert_true(qhca_run(h->hca, h->now, 1).more);
		assert_int_equal(written(h, 0), first + n * HCA_EQ_DRAIN);
	}
	/* The queue is full again: the device has nothing to do before software takes some. */
	assert_false(qhca_run(h->hca, h->now, 1).more);
	for (uint32_t i = 0; i < 1u << MANY_DEPTH; i++)
		check_eqe(h, &eq, first + i, QHCA_EVENT_QP_FATAL, i, i);
	host_free(h);
}

/* A later event waits behind the others, and the device does not write those again. */
static void test_event_behind_many(void **state)
{
	struct ring eq;
	struct host *h = many_held(&eq);
	uint32_t first = 1u << MANY_DEPTH, ci = first;
	uint64_t writes;

	(void)state;
	host_set_ci(h, &eq, ci);
	writes = h->writes;
	hca_event(h->fn, QHCA_EVENT_SRQ_LIMIT, 2, 77);
	assert_true(h->writes - writes < 16);
	for (uint32_t i = 0; i <= MANY_QPS / first; i++) {
		host_run_at(h, h->now + HCA_EQ_POLL_NS);
		ci = written(h, 0);
		host_set_ci(h, &eq, ci);
	}
	host_run_at(h, h->now + HCA_EQ_POLL_NS);
	assert_int_equal(written(h, 0), first + MANY_QPS + 1);
	check_eqe(h, &eq, first + MANY_QPS, QHCA_EVENT_SRQ_LIMIT, 2, 77);
	assert_int_equal(qhca_run(h->hca, h->now, 1).deadline, QHCA_NEVER);
	host_free(h);
}

/* How long the device waits until it looks at full queues again, after it has looked. */
static uint64_t next_look(struct host *h)
{
	uint64_t due = qhca_run(h->hca, h->now, 1).deadline, refetches;

	assert_int_not_equal(due, QHCA_NEVER);
	refetches = COUNT(h, refetches);
	host_run_at(h, due);
	assert_int_equal(COUNT(h, refetches), refetches + 1);
	return qhca_run(h->hca, due, 1).deadline - due;
}

/* Software that never empties a queue is looked at ever more seldom. */
static void test_nobody_empties(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(1, &eq);
	uint64_t wait = HCA_EQ_POLL_NS;

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		hca_event(h->fn, QHCA_EVENT_QP_FATAL, i, 0);
	for (unsigned int i = 0; i < 12; i++) {
		assert_int_equal(next_look(h), wait);
		if (wait < HCA_EQ_POLL_MAX_NS)
			wait *= 2;
	}
	assert_int_equal(wait, HCA_EQ_POLL_MAX_NS);
	/* An event that is held anew, an arm in vain, and room begin with short waits. */
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 5, 0);
	assert_int_equal(qhca_run(h->hca, h->now, 1).deadline,
			 h->now + HCA_EQ_POLL_NS);
	for (unsigned int i = 0; i < 4; i++)
		next_look(h);
	arm(h, 0, 0);
	assert_int_equal(next_look(h), HCA_EQ_POLL_NS);
	for (unsigned int i = 0; i < 4; i++)
		next_look(h);
	host_set_ci(h, &eq, 1);
	host_run_at(h, qhca_run(h->hca, h->now, 1).deadline);
	assert_int_equal(written(h, 0), 3);
	assert_int_equal(next_look(h), HCA_EQ_POLL_NS);
	host_free(h);
}

/*
 * DESTROY_EQ of such a queue leaves nothing behind, be it cut by a reset or complete.
 */
static void test_destroy_with_many(void **state)
{
	struct qhca_cmd_slot *slot;
	struct ring eq;
	struct host *h = many_held(&eq);

	(void)state;
	hca_event(h->fn, QHCA_EVENT_CQ_ERROR, 1, 0);
	slot = host_ptr(h, h->slots);
	memset(slot, 0, sizeof(*slot));
	put_le16(&slot->opcode, QHCA_CMD_DESTROY_EQ);
	put_le32(&slot->status, QHCA_CMD_OWN);
	qhca_reg_write(h->hca, 0, QHCA_REG_CMDQ_DOORBELL, 1, h->now);
	assert_true(qhca_run(h->hca, h->now, 1).more);
	assert_true(get_le32(&slot->status) & QHCA_CMD_OWN);
	/* Between two slices the queue stops accepting events. */
	hca_event(h->fn, QHCA_EVENT_QP_COMM_EST, 9, 0);
	qhca_reset(h->hca, 0, h->now);
	for (uint32_t i = 0; i < h->fn->eqs.base[HCA_NUM_EVENT_SOURCES]; i++)
		assert_false(h->fn->eqs.held[i].linked);
	host_free(h);

	h = many_held(&eq);
	hca_event(h->fn, QHCA_EVENT_CQ_ERROR, 1, 0);
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_EQ, 0, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	assert_int_equal(h->fn->eqs.num_linked, 0);
	assert_int_equal(hca_eqs_deadline(h->fn), QHCA_NEVER);
	host_free(h);
}

/* The device ignores a consumer index that is beyond its producer index. */
static void test_insane_ci(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(2, &eq);
	uint32_t i;

	(void)state;
	for (i = 0; i < 4; i++)
		hca_event(h->fn, QHCA_EVENT_QP_FATAL, i, 0);
	host_set_ci(h, &eq, 5);		/* more than was written */
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 9, 0);
	host_set_ci(h, &eq, UINT32_MAX); /* backwards */
	host_run_at(h, h->now + HCA_EQ_POLL_NS);
	assert_int_equal(written(h, 0), 4);
	host_set_ci(h, &eq, 4);
	host_run_at(h, h->now + HCA_EQ_POLL_NS);
	assert_int_equal(written(h, 0), 5);
	host_free(h);
}

static void test_create_errors(void **state)
{
	struct ring good, r;
	struct host *h = with_eq0(2, &good);

	(void)state;
	r = host_ring(h, 2);
	assert_int_equal(host_create_eq(h, 0, &r, 0), QHCA_CMD_IN_USE);
	assert_int_equal(host_create_eq(h, 8, &r, 0), QHCA_CMD_BAD_INDEX);
	assert_int_equal(host_create_eq(h, 1, &r, 8), QHCA_CMD_BAD_PARAM);
	r.log_depth = 9;
	assert_int_equal(host_create_eq(h, 1, &r, 0), QHCA_CMD_BAD_PARAM);
	r.log_depth = 255;
	assert_int_equal(host_create_eq(h, 1, &r, 0), QHCA_CMD_BAD_PARAM);
	r.log_depth = 3;		/* longer than its buffer */
	assert_int_equal(host_create_eq(h, 1, &r, 0), QHCA_CMD_BAD_PARAM);
	r.log_depth = 2;
	r.rec_offset += 128;
	assert_int_equal(host_create_eq(h, 1, &r, 0), QHCA_CMD_BAD_PARAM);
	r.rec_offset = 64;
	assert_int_equal(host_create_eq(h, 1, &r, 0), QHCA_CMD_BAD_PARAM);
	r.rec_offset = 256;
	assert_int_equal(host_create_eq(h, 1, &r, 0), QHCA_CMD_OK);
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_EQ, 2, 0, NULL, 0, NULL,
				  0), QHCA_CMD_BAD_STATE);
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_EQ, 1, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	assert_int_equal(host_cmd(h, QHCA_CMD_UNMAP_CHUNKS, 0,
				  QHCA_TABLE_EQ | 1 << 8, NULL, 0, NULL, 0),
			 QHCA_CMD_IN_USE);
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_EQ, 0, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	assert_int_equal(host_cmd(h, QHCA_CMD_UNMAP_CHUNKS, 0,
				  QHCA_TABLE_EQ | 1 << 8, NULL, 0, NULL, 0),
			 QHCA_CMD_OK);
	assert_int_equal(host_create_eq(h, 0, &r, 0), QHCA_CMD_NOT_MAPPED);
	host_free(h);
}

static void test_query(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(1, &eq);
	struct qhca_eqc out;
	uint64_t addr;

	(void)state;
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 1, 0);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 2, 0);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 3, 0);
	assert_int_equal(host_cmd(h, QHCA_CMD_QUERY_EQ, 0, 0, NULL, 0, &out,
				  sizeof(out)), QHCA_CMD_OK);
	assert_int_equal(get_le32(&out.state), 1);
	assert_int_equal(get_le32(&out.pi), 2);
	assert_int_equal(get_le32(&out.ci), 0);
	assert_int_equal(get_le32(&out.armed), 0);
	assert_int_equal(get_le32(&out.overruns), 1);
	assert_int_equal(get_le16(&out.sw.vector), VECTOR);
	assert_int_equal(out.sw.log_depth, 1);
	assert_int_equal(get_le64(&out.sw.buf.base), eq.base);
	/* The table has the same context. */
	assert_true(hca_table_entry(h->fn, QHCA_TABLE_EQ, 0, &addr));
	assert_memory_equal(host_ptr(h, addr), &out, sizeof(out));
	assert_int_equal(host_cmd(h, QHCA_CMD_DESTROY_EQ, 0, 0, NULL, 0, NULL,
				  0), QHCA_CMD_OK);
	assert_int_equal(get_le32(&((struct qhca_eqc *)host_ptr(h, addr))->state),
			 0);
	/* Events without a destination are forgotten. */
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 1, 0);
	assert_int_equal(qhca_run(h->hca, h->now, 1).deadline, QHCA_NEVER);
	host_free(h);
}

static void test_unreachable(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(1, &eq);

	(void)state;
	h->bad_first = eq.base;
	h->bad_last = eq.base + 63;
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 1, 0);
	hca_leave(h->fn->hca);
	assert_int_equal(h->fn->status & QHCA_STATUS_FATAL_CAUSE,
			 QHCA_FATAL_EQ_DMA << 8);
	assert_int_equal(h->fn->fatal_info, 0);
	assert_int_equal(h->irqs[VECTOR], 1);
	host_free(h);

	h = with_eq0(1, &eq);		/* the record */
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 1, 0);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 2, 0);
	h->bad_first = eq.record;
	h->bad_last = eq.record + 63;
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 3, 0);
	assert_true(hca_is_dead(h->fn));
	host_free(h);
}

/*
 * A fatal error posts a last event, and raises its interrupt although the EQ is not
 * armed.
 */
static void test_fatal_event(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(3, &eq);

	(void)state;
	hca_fatal(h->fn, QHCA_FATAL_TABLE_DMA, 0x2000007);
	hca_leave(h->fn->hca);
	check_eqe(h, &eq, 0, QHCA_EVENT_DEVICE_FATAL, QHCA_FATAL_TABLE_DMA,
		  0x2000007);
	assert_int_equal(h->irqs[VECTOR], 1);
	assert_int_equal(COUNT(h, events), 1);
	hca_fatal(h->fn, QHCA_FATAL_INTERNAL, 0);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 1, 0);
	hca_leave(h->fn->hca);
	assert_int_equal(h->irqs[VECTOR], 1);
	assert_int_equal(written(h, 0), 1);
	assert_int_equal(h->fn->fatal_info, 0x2000007);
	host_free(h);

	h = host_new(NULL);		/* no EQ 0: vector 0 */
	qhca_inject_fatal(h->hca, 0);
	assert_int_equal(h->irqs[0], 1);
	host_free(h);
}

/*
 * A fatal error that an EQ raises while it takes an event: software gets one
 * DEVICE_FATAL, and gets it at the end of the call, not from inside that EQ.
 */
static void test_fatal_in_post(void **state)
{
	struct ring eq0, eq1;
	struct host *h = with_eq0(3, &eq0);

	(void)state;
	eq1 = host_ring(h, 2);
	assert_int_equal(host_create_eq(h, 1, &eq1, 1), QHCA_CMD_OK);
	h->bad_first = eq1.base;
	h->bad_last = eq1.base + 63;
	assert_true(hca_enter(h->fn->hca, h->now));
	hca_event_completion(h->fn, 1, 5, 0);
	hca_event_completion(h->fn, 1, 6, 0);
	assert_true(hca_is_dead(h->fn));
	assert_int_equal(written(h, 0), 0);
	assert_int_equal(h->irqs[VECTOR], 0);
	hca_leave(h->fn->hca);
	hca_leave(h->fn->hca);
	check_eqe(h, &eq0, 0, QHCA_EVENT_DEVICE_FATAL, QHCA_FATAL_EQ_DMA, 1);
	assert_int_equal(written(h, 0), 1);
	assert_int_equal(written(h, 1), 0);
	assert_int_equal(h->irqs[VECTOR], 1);
	assert_int_equal(h->irqs[1], 0);
	host_free(h);
}

/* A second error, in the post of DEVICE_FATAL itself: the first one stays. */
static void test_fatal_in_report(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(1, &eq);

	(void)state;
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 1, 0);
	hca_event(h->fn, QHCA_EVENT_QP_FATAL, 2, 0);
	h->bad_first = eq.record;
	h->bad_last = eq.record + 63;
	qhca_inject_fatal(h->hca, 0);
	assert_int_equal(h->fn->status & QHCA_STATUS_FATAL_CAUSE,
			 QHCA_FATAL_INJECTED << 8);
	assert_int_equal(h->fn->fatal_info, 0);
	assert_int_equal(written(h, 0), 2);
	assert_int_equal(h->irqs[VECTOR], 1);
	assert_false(qhca_is_entered(h->hca));
	host_free(h);
}

/* Command events: held in their slot, which waits for its next command. */
static void test_command_events(void **state)
{
	struct ring eq;
	struct host *h = with_eq0(1, &eq);
	struct qhca_cmd_slot slot = { 0 }, done;

	(void)state;
	put_le16(&slot.opcode, QHCA_CMD_NOP);
	put_le32(&slot.flags, QHCA_CMD_F_EVENT);
	put_le16(&slot.token, 0x1111);
	done = host_cmd_slot(h, &slot, 4);
	assert_int_equal(get_le32(&done.status), QHCA_CMD_OK);
	check_eqe(h, &eq, 0, QHCA_EVENT_CMD, 4, 0);
	assert_int_equal(get_le16(&host_eqe(h, &eq, 0)->token), 0x1111);
	put_le16(&slot.opcode, 0x7f);
	put_le16(&slot.token, 0x2222);
	host_cmd_slot(h, &slot, 5);
	assert_int_equal(host_eqe(h, &eq, 1)->status, QHCA_CMD_BAD_OPCODE);

	put_le16(&slot.token, 0x3333);		/* executed, event held */
	put_le16(&slot.opcode, QHCA_CMD_INVALIDATE_ALL);
	done = host_cmd_slot(h, &slot, 4);
	assert_int_equal(get_le32(&done.status), QHCA_CMD_BAD_PARAM);
	put_le16(&slot.token, 0x4444);
	done = host_cmd_slot(h, &slot, 4);	/* the command has to wait */
	assert_true(get_le32(&done.status) & QHCA_CMD_OWN);
	host_set_ci(h, &eq, 2);
	host_run_at(h, h->now + HCA_EQ_POLL_NS);
	assert_int_equal(get_le16(&host_eqe(h, &eq, 2)->token), 0x3333);
	assert_int_equal(host_eqe(h, &eq, 2)->status, QHCA_CMD_BAD_PARAM);
	check_eqe(h, &eq, 2, QHCA_EVENT_CMD, 4, 0x1000c);	/* param */
	assert_int_equal(get_le16(&host_eqe(h, &eq, 3)->token), 0x4444);
	assert_true(host_eqe_valid(h, &eq, 3));
	host_free(h);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(test_phase),
	cmocka_unit_test(test_interrupt),
	cmocka_unit_test(test_doorbell_ignored),
	cmocka_unit_test(test_hold),
	cmocka_unit_test(test_coalesce),
	cmocka_unit_test(test_all_kinds),
	cmocka_unit_test(test_possible_kinds),
	cmocka_unit_test(test_forget),
	cmocka_unit_test(test_forget_cq),
	cmocka_unit_test(test_insane_ci),
	cmocka_unit_test(test_arm_writes_a_few),
	cmocka_unit_test(test_event_behind_many),
	cmocka_unit_test(test_nobody_empties),
	cmocka_unit_test(test_destroy_with_many),
	cmocka_unit_test(test_create_errors),
	cmocka_unit_test(test_query),
	cmocka_unit_test(test_unreachable),
	cmocka_unit_test(test_fatal_event),
	cmocka_unit_test(test_fatal_in_post),
	cmocka_unit_test(test_fatal_in_report),
	cmocka_unit_test(test_command_events),
};
TEST_MAIN(tests)
