/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The cost of misses: the device charges exactly the reads of tables, the whole
 * transport waits until they are paid for, and nothing else waits.
 */
#include <string.h>

#include "hca.h"
#include "pair.h"

#define WRITES	200u
#define LEN	5000u		/* bytes of each, on two pages */

static const struct qhca_fetch_cost COST = { 700, 5000, 1300 };

static void set_cost(struct end *e, const struct qhca_fetch_cost *cost)
{
	char err[100];

	CHECK(qhca_fetch_cost_set(e->md->host.hca, cost, err, sizeof(err)));
}

/* The cost of the misses so far. */
static uint64_t price(struct end *e)
{
	return COST.pt_ns * count_of(e, QHCA_CNT_pt_misses) +
	       COST.at_ns * count_of(e, QHCA_CNT_at_node_reads) +
	       COST.context_ns * (count_of(e, QHCA_CNT_qpc_misses) +
				  count_of(e, QHCA_CNT_cqc_misses) +
				  count_of(e, QHCA_CNT_srqc_misses));
}

static bool is_paid(const struct pair *p)
{
	return !hca_stalled(&p->a.md->host.hca->hca) &&
	       !hca_stalled(&p->b.md->host.hca->hca);
}

/*
 * Makes WRITEs from a to b, one after the other; returns for how long the device
 * stalled for them.
 */
static uint64_t write_some(struct pair *p)
{
	uint8_t to[LEN], from[LEN];
	uint64_t start, sum = 0;
	struct qhca_cqe cqe;
	bool done, more;

	for (uint32_t i = 0; i < WRITES; i++) {
		memset(from, i, sizeof(from));
		put_bytes(&p->a, 0, from, sizeof(from));
		start = p->w.now;
		done = false;
		post(p, &p->a, QHCA_WQE_WRITE, sizeof(from), 0);
		for (more = true; more && !(done && is_paid(p)); ) {
			/* The clock does not go beyond the end to the next deadline. */
			more = world_step(&p->w, p->w.now + 1000);
			done = done || md_poll(&p->a.scq, &cqe);
		}
		sum += p->w.now - start;
		if (!done || cqe.status)
			check_failed(__LINE__, "WRITE %u does not complete well", i);
		settle(p);
		get_bytes(&p->b, 32768, to, sizeof(to));
		CHECK(!memcmp(from, to, sizeof(to)));
	}
	return sum;
}

static void off_by_default(struct pair *p)
{
	connect_pair(p);
	write_some(p);
	/* There are two pages, and one line for them. */
	CHECK(count_of(&p->a, QHCA_CNT_at_node_reads) >= 2 * WRITES);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_fetch_stall_ns), 0);
	CHECK_EQ(count_of(&p->b, QHCA_CNT_fetch_stall_ns), 0);
}

/* The device charges exactly the reads, and stalls for as long. */
static void charged(struct pair *p)
{
	uint64_t free_of_charge, took, before, stall;

	connect_pair(p);
	free_of_charge = write_some(p);
	set_cost(&p->a, &COST);
	before = price(&p->a);
	took = write_some(p);
	stall = count_of(&p->a, QHCA_CNT_fetch_stall_ns);
	CHECK_EQ(stall, price(&p->a) - before);
	CHECK(stall >= 2 * WRITES * COST.at_ns);
	CHECK(took > free_of_charge);
	/* Nothing may have waited for the last miss. */
	CHECK(took + 10 * COST.at_ns > stall);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_retransmitted_packets), 0);
}

/* A responder whose misses are charged answers later. */
static void charged_at_the_peer(struct pair *p)
{
	uint64_t free_of_charge, took, stall;

	connect_pair(p);
	free_of_charge = write_some(p);
	set_cost(&p->b, &COST);
	took = write_some(p);
	stall = count_of(&p->b, QHCA_CNT_fetch_stall_ns);
	CHECK(stall >= 2 * WRITES * COST.at_ns);
	CHECK(took > free_of_charge);
	CHECK(took + 10 * COST.at_ns > stall);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_fetch_stall_ns), 0);
}

/* Caches that hold the whole working set cost nothing. */
static void warm_is_free(struct pair *p)
{
	uint64_t cold;

	connect_pair(p);
	set_cost(&p->a, &COST);
	write_some(p);
	cold = count_of(&p->a, QHCA_CNT_fetch_stall_ns);
	CHECK_EQ(cold, price(&p->a));
	write_some(p);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_fetch_stall_ns), cold);
}

/* A stalled device executes commands; posts and timers wait until the stall ends. */
static void only_the_transport_waits(struct pair *p)
{
	struct qhca_hca *hca = p->a.md->host.hca;
	uint64_t end, packets;

	connect_pair(p);
	hca_charge(hca_pf(&hca->hca), HCA_MAX_FETCH_NS);
	CHECK(hca_stalled(&hca->hca));
	end = hca->hca.cost.until;
	packets = count_of(&p->a, QHCA_CNT_tx_packets);
	CHECK_EQ(md_cmd(p->a.md, QHCA_CMD_NOP, 0, 0, NULL, 0, NULL, 0, NULL), 0);
	CHECK_EQ(state_of(&p->a), QHCA_QPS_RTS);
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	world_run(&p->w, end - 1);
	CHECK(p->w.now == end - 1 && hca_stalled(&hca->hca));
	CHECK_EQ(count_of(&p->a, QHCA_CNT_tx_packets), packets);
	expect_none(&p->a.scq);
	settle(p);
	EXPECT(&p->a.scq, 0, QHCA_WC_SUCCESS);
	/* A packet is lost: its timer fires during a stall, and the device serves it afterwards. */
	p->w.filter = drop_all;
	post(p, &p->a, QHCA_WQE_WRITE, 8, 0);
	world_run(&p->w, p->w.now + 100000);
	p->w.filter = NULL;
	for (int i = 0; i < 3; i++)
		hca_charge(hca_pf(&hca->hca), HCA_MAX_FETCH_NS);
	packets = count_of(&p->a, QHCA_CNT_tx_packets);
	world_run(&p->w, hca->hca.cost.until - 1);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_tx_packets), packets);
	settle(p);
	EXPECT(&p->a.scq, 1, QHCA_WC_SUCCESS);
	CHECK_EQ(count_of(&p->a, QHCA_CNT_ack_timeouts), 1);
}

/* A reset during a stall ends the stall. */
static void reset_in_a_stall(struct pair *p)
{
	static const struct pair_options options = { .type = QHCA_QPT_RC };

	connect_pair(p);
	hca_charge(hca_pf(&p->a.md->host.hca->hca),
		   HCA_MAX_FETCH_NS);
	restart_pair(p, &options);
	CHECK(!hca_stalled(&p->a.md->host.hca->hca));
	connect_pair(p);
	CHECK_WORKS(p);
}

#define COST(qpt, fn, ...) NAMED(qpt, "cost: " #fn, fn, __VA_ARGS__)

const struct scenario cost_scenarios[] = {
	COST(RC, off_by_default), COST(RC, charged), COST(RC, charged, .loop = true),
	COST(RC, charged_at_the_peer), COST(RC, warm_is_free, .roomy = true),
	COST(RC, only_the_transport_waits), COST(RC, reset_in_a_stall),
	{ 0 }
};
