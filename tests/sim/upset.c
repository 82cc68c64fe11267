/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Each operation in the middle of each kind of traffic: see upset.h.
 *
 *   upset --seeds A..B
 *   upset --seed N [-v]
 *
 * A round fills all queues, lets some of it happen, does one operation that is
 * aimed at one kind, goes on, waits until all that is under way has ended, and
 * repairs.  The matrix counts the rounds in which requests of that kind were under
 * way when the operation began.  The rounds go through all its places, and the seeds
 * of a TAP point must have met each.
 */
#include "upset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seeds.h"

#define ROUNDS		12
#define STRIDE		37u		/* through the matrix, from round to round */
#define ROOM		(10u << 20)	/* bytes that a round may allocate */
#define LIMIT		20000000000ull	/* ns for all that is under way */
#define QUIET		50000u		/* ns */

static const char *const kind_name[NUM_KINDS] = {
	[RC_SMALL] = "small", [RC_LARGE] = "large", [RC_SRQ] = "srq",
	[DATAGRAM] = "datagram", [PAGING] = "paging", [KERNEL] = "kernel",
	[ETHERNET] = "ethernet",
};

enum op { OP_DESTROY, OP_DESTROY_EQ, OP_ERR, OP_RESET_QP, OP_DRAIN, OP_CQ_RESIZE,
	  OP_SRQ_RESIZE, OP_REREG, OP_DETACH, OP_ETH_RINGS, OP_MTU, OP_LINK,
	  OP_FUNCTION_RESET, OP_RESET_INSIDE, OP_PEER_GONE, OP_DMA_OFF,
	  OP_FATAL, OP_STOPPED, NUM_OPS };

#define CONNS		((1u << NUM_CONNS) - 1)
#define ALL		((1u << NUM_KINDS) - 1)

typedef bool (*op_fn)(struct upset *u, struct conn *c, unsigned int host);

/* ---- one step for all */

static bool poll_node(struct upset *u, unsigned int host)
{
	struct node *n = &u->node[host];

	if (!n->up)
		return true;
	if (md_dead(n->md))
		return UPSET_FAIL(u, "host %u died", host);
	for (int k = 0; k < NUM_CONNS; k++)
		if (u->conn[k].half[host].live &&
		    !conn_poll(u, &u->conn[k], host))
			return false;
	return eth_poll(u, host) && node_faults(u, host);
}

static bool run_for(struct upset *u, uint64_t ns)
{
	uint64_t until = u->w.now + ns;

	while (u->w.now < until) {
		uint64_t next = u->w.now + 1 + world_pick(&u->w, 20000);

		world_wait(&u->w, next < until ? next : until);
		for (unsigned int h = 0; h < 2; h++)
			if (world_pick(&u->w, 2) && !poll_node(u, h))
				return false;
	}
	return true;
}

static void post_all(struct upset *u)
{
	for (unsigned int h = 0; h < 2; h++) {
		if (!u->node[h].up)
			continue;
		for (int k = 0; k < NUM_CONNS; k++)
			conn_post(u, &u->conn[k], h);
		eth_post(u, h);
	}
}

static uint32_t under_way(struct upset *u, int kind, unsigned int host)
{
	if (!u->node[host].up)
		return 0;
	return kind == ETHERNET ? eth_outstanding(u, host) :
				  conn_outstanding(&u->conn[kind], host, false);
}

/* All that is under way ends, on hosts that have a driver. */
static bool settle(struct upset *u)
{
	uint64_t until = u->w.now + LIMIT;
	uint32_t left;

	do {
		if (!run_for(u, 50000))
			return false;
		left = 0;
		for (unsigned int h = 0; h < 2; h++)
			for (int k = 0; k < NUM_KINDS; k++)
				left += under_way(u, k, h);
	} while (left && u->w.now < until);
	for (unsigned int h = 0; h < 2; h++)
		for (int k = 0; k < NUM_KINDS; k++)
			if (under_way(u, k, h))
				return UPSET_FAIL(u, "host %u: %u requests (%s) do not end",
						  h, under_way(u, k, h),
						  kind_name[k]);
	return true;
}

/* ---- repair */

static bool to_state(struct upset *u, struct conn *c, unsigned int host,
		     uint8_t state)
{
	return !md_qp_modify(u->node[host].md, &c->half[host].qp, state, 0,
			     NULL) ||
	       UPSET_FAIL(u, "host %u %s: MODIFY_QP to %u refused", host,
			  kind_name[c->kind], state);
}

/* Both ends in error: every request is flushed, those of an SRQ excepted. */
static bool flush_conn(struct upset *u, struct conn *c)
{
	bool done = false;

	c->hurt = c->broken = true;
	for (unsigned int h = 0; h < 2; h++)
		if (c->half[h].live && c->half[h].connected &&
		    !to_state(u, c, h, QHCA_QPS_ERR))
			return false;
	for (int i = 0; i < 100 && !done; i++) {
		if (!run_for(u, 20000))
			return false;
		done = true;
		for (unsigned int h = 0; h < 2; h++)
			done &= !c->half[h].live ||
				(!conn_outstanding(c, h, false) &&
				 (c->kind == RC_SRQ ||
				  !conn_outstanding(c, h, true)));
	}
	return done || UPSET_FAIL(u, "%s: a queue in error is not flushed",
				  kind_name[c->kind]);
}

static bool renew(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];

	if (h->live && c->kind != RC_SRQ && world_pick(&u->w, 2))
		return to_state(u, c, host, QHCA_QPS_RESET) &&
		       half_forget(u, c, host);
	if (h->live && !half_close(u, c, host))
		return false;
	half_open(u, c, host);
	return true;
}

static bool repair(struct upset *u)
{
	for (int k = 0; k < NUM_CONNS; k++) {
		struct conn *c = &u->conn[k];

		if (!c->hurt)
			continue;
		if (!flush_conn(u, c) || !renew(u, c, 0) || !renew(u, c, 1))
			return false;
		conn_connect(u, c);
	}
	return true;
}

static void hurt_all(struct upset *u)
{
	for (int k = 0; k < NUM_CONNS; k++)
		u->conn[k].hurt = true;
}

/* ---- a driver that goes, and comes */

/* All memory of the host is given back; the device has been reset. */
static void driver_gone(struct upset *u, unsigned int host)
{
	struct node *n = &u->node[host];

	n->up = false;
	hurt_all(u);
	qhca_reg_write(n->md->host.hca, 0, QHCA_REG_CONTROL, QHCA_CONTROL_RESET,
		       host_clock(&n->md->host));
	memset(md_ptr(n->md, MD_PAGE), CANARY, n->md->host.next - MD_PAGE);
	n->num_given = 0;
	n->eth.live = false;
	for (int k = 0; k < NUM_CONNS; k++) {
		struct half *h = &u->conn[k].half[host];

		u->conn[k].broken = true;
		h->live = h->eq_live = false;
		h->gen++;
		memset(h->out, 0, sizeof(h->out));
		memset(h->in, 0, sizeof(h->in));
	}
}

static void start_driver(struct upset *u, unsigned int host)
{
	struct md_init init = { 0 };

	seeds_init(&u->w, &init);	/* other caches than before */
	md_start(u->node[host].md, &init);
	node_open(u, host);
}

static bool driver_back(struct upset *u, unsigned int host)
{
	const struct md *md = u->node[host].md;
	const uint8_t *p = md->host.ram + MD_PAGE;

	if (memcmp(p, p + 1, md->host.next - MD_PAGE - 1) || *p != CANARY)
		return UPSET_FAIL(u, "host %u: the device writes after its reset",
				  host);
	start_driver(u, host);
	return true;
}

/* ---- the operations */

static bool op_destroy(struct upset *u, struct conn *c, unsigned int host)
{
	c->hurt = c->broken = true;
	return half_close(u, c, host);
}

static bool op_destroy_eq(struct upset *u, struct conn *c, unsigned int host)
{
	return op_destroy(u, c, host) && half_close_eq(u, c, host);
}

static bool op_err(struct upset *u, struct conn *c, unsigned int host)
{
	c->hurt = c->broken = true;
	return to_state(u, c, host, QHCA_QPS_ERR);
}

static bool op_reset_qp(struct upset *u, struct conn *c, unsigned int host)
{
	c->hurt = c->broken = true;
	return to_state(u, c, host, QHCA_QPS_RESET) && half_forget(u, c, host);
}

/* SQD in the middle; the rest goes on later. */
static bool op_drain(struct upset *u, struct conn *c, unsigned int host)
{
	return to_state(u, c, host, QHCA_QPS_SQD) &&
	       run_for(u, world_pick(&u->w, QUIET)) &&
	       (c->broken || to_state(u, c, host, QHCA_QPS_RTS));
}

static bool op_cq_resize(struct upset *u, struct conn *c, unsigned int host)
{
	conn_resize_cq(u, c, host);
	return true;
}

static bool op_srq_resize(struct upset *u, struct conn *c, unsigned int host)
{
	struct md_srq *srq = &c->half[host].srq;
	struct md_buf old = srq->buf;

	md_srq_grow_begin(u->node[host].md, srq);
	if (!run_for(u, world_pick(&u->w, 5000)))
		return false;
	post_all(u);
	md_srq_grow_end(u->node[host].md, srq);
	give_back(&u->node[host], &old);
	return true;
}

static bool op_rereg(struct upset *u, struct conn *c, unsigned int host)
{
	struct half *h = &c->half[host];
	struct md *md = u->node[host].md;
	const struct qhca_pte none = { 0 };
	struct md_buf old = h->mr.buf;

	c->hurt = true;
	md_pte_write(md, h->mr.key >> 8, &none);
	if (md_cmd(md, QHCA_CMD_INVALIDATE_KEY, h->mr.key >> 8,
		   QHCA_INVAL_PT | QHCA_INVAL_AT, NULL, 0, NULL, 0, NULL))
		return UPSET_FAIL(u, "INVALIDATE_KEY refused");
	/* Completed requests have changed the old region; all others end in error. */
	if (!conn_poll(u, c, host))
		return false;
	conn_region(u, c, host);
	give_back(&u->node[host], &old);
	c->broken = true;
	return true;
}

/* The group loses a member, and later has it again. */
static bool op_detach(struct upset *u, struct conn *c, unsigned int host)
{
	if (!conn_member(u, c, host, false) ||
	    !run_for(u, world_pick(&u->w, QUIET)))
		return false;
	post_all(u);
	return conn_member(u, c, host, true);
}

static bool op_eth_rings(struct upset *u, struct conn *c, unsigned int host)
{
	(void)c;
	eth_close(u, host);
	if (!run_for(u, world_pick(&u->w, QUIET)))
		return false;
	eth_open(u, host);
	return true;
}

static bool op_mtu(struct upset *u, struct conn *c, unsigned int host)
{
	struct qhca_port_config port = { 0 };

	(void)c;
	put_le32(&port.fields, QHCA_PORT_SET_MTU);
	put_le32(&port.eth_mtu, 1500 + world_pick(&u->w, 3000));
	return !md_cmd(u->node[host].md, QHCA_CMD_SET_PORT, 0, 0, &port,
		       sizeof(port), NULL, 0, NULL) ||
	       UPSET_FAIL(u, "SET_PORT refused");
}

static bool op_link(struct upset *u, struct conn *c, unsigned int host)
{
	struct md *md = u->node[host].md;
	bool ok;

	(void)c;
	hurt_all(u);		/* it may be down for longer than retries last */
	qhca_set_link(md->host.hca, false, host_clock(&md->host));
	ok = run_for(u, world_pick(&u->w, world_pick(&u->w, 3) ? QUIET :
							       50000000));
	qhca_set_link(md->host.hca, true, host_clock(&md->host));
	return ok;
}

static bool op_function_reset(struct upset *u, struct conn *c,
			      unsigned int host)
{
	(void)c;
	driver_gone(u, host);
	return run_for(u, world_pick(&u->w, QUIET)) && driver_back(u, host);
}

/* The reset register is written while the device is in the middle of an access. */
static void reset_inside(struct host *h, enum host_call call)
{
	uint64_t *left = h->meanwhile_arg;

	if (call == HOST_DMA && *left && !--*left)
		qhca_reg_write(h->hca, 0, QHCA_REG_CONTROL, QHCA_CONTROL_RESET,
			       host_clock(h));
}

static bool op_reset_inside(struct upset *u, struct conn *c, unsigned int host)
{
	struct md *md = u->node[host].md;
	uint64_t left = 1 + world_pick(&u->w, 100);
	bool ok;

	u->node[host].up = false;
	hurt_all(u);
	md->host.meanwhile_arg = &left;
	md->host.meanwhile = reset_inside;
	ok = run_for(u, QUIET);
	md->host.meanwhile = NULL;
	if (ok && !left && qhca_reg_read(md->host.hca, 0, QHCA_REG_STATUS,
				       host_clock(&md->host)) !=
			   QHCA_STATUS_READY)
		return UPSET_FAIL(u, "host %u: a reset from within is lost",
				  host);
	return ok && op_function_reset(u, c, host);
}

/* The other host's requests have to end without an answer. */
static bool op_peer_gone(struct upset *u, struct conn *c, unsigned int host)
{
	(void)c;
	driver_gone(u, host);
	return settle(u) && driver_back(u, host);
}

/*
 * Bus mastering off: every access fails, and the driver begins anew.  Half of the hosts
 * tell the device, which then stops and moves without a write.
 */
static bool op_dma_off(struct upset *u, struct conn *c, unsigned int host)
{
	struct md *md = u->node[host].md;

	(void)c;
	md->host.no_dma = world_pick(&u->w, 2);
	if (!md->host.no_dma)
		md->host.fail_in = 1 + world_pick(&u->w, 3);
	md->host.fail_on = true;
	u->node[host].up = false;
	hurt_all(u);
	if (!run_for(u, world_pick(&u->w, QUIET)))
		return false;
	md->host.fail_in = 0;
	md->host.fail_on = false;
	md->host.no_dma = false;
	qhca_may_dma(md->host.hca, host_clock(&md->host));
	if (!run_for(u, world_pick(&u->w, QUIET)))
		return false;
	return op_function_reset(u, c, host);
}

/* The machine stops, and is reset or told of the link before it goes on, or moves. */
static bool op_stopped(struct upset *u, struct conn *c, unsigned int host)
{
	struct md *md = u->node[host].md;
	struct host *h = &md->host;
	bool reset = world_pick(&u->w, 2);
	char err[100];

	hurt_all(u);
	if (!qhca_freeze(h->hca, host_clock(h), err, sizeof(err)))
		return UPSET_FAIL(u, "host %u: %s", host, err);
	qhca_set_link(h->hca, false, host_clock(h));
	if (reset) {
		u->node[host].up = false;
		qhca_pci_reset(h->hca, 0, host_clock(h));
	}
	if (world_pick(&u->w, 2))
		world_migrate(&u->w, h, world_rand(&u->w));
	else
		qhca_thaw(h->hca, host_clock(h));
	if (reset && qhca_reg_read(h->hca, 0, QHCA_REG_STATUS, host_clock(h)) !=
		     QHCA_STATUS_READY)
		return UPSET_FAIL(u, "host %u: a reset of a stopped machine is lost",
				  host);
	if (qhca_reg_read(h->hca, 0, QHCA_REG_LINK, host_clock(h)) & QHCA_LINK_UP)
		return UPSET_FAIL(u, "host %u: the link has not gone", host);
	qhca_set_link(h->hca, true, host_clock(h));
	return !reset || op_function_reset(u, c, host);
}

static bool op_fatal(struct upset *u, struct conn *c, unsigned int host)
{
	struct md *md = u->node[host].md;
	uint64_t accesses;

	u->node[host].up = false;
	hurt_all(u);
	qhca_inject_fatal(md->host.hca, 0);
	accesses = md->host.reads + md->host.writes;
	if (!run_for(u, world_pick(&u->w, QUIET)))
		return false;
	if (accesses != md->host.reads + md->host.writes)
		return UPSET_FAIL(u, "host %u: a dead device reaches memory",
				  host);
	return op_function_reset(u, c, host);
}

static const struct {
	const char *name;
	op_fn run;
	uint32_t kinds;
} ops[NUM_OPS] = {
	[OP_DESTROY] = { "destroy", op_destroy, CONNS },
	[OP_DESTROY_EQ] = { "destroy-eq", op_destroy_eq, CONNS },
	[OP_ERR] = { "to-err", op_err, CONNS },
	[OP_RESET_QP] = { "to-reset", op_reset_qp, CONNS },
	[OP_DRAIN] = { "drain", op_drain, CONNS },
	[OP_CQ_RESIZE] = { "cq-resize", op_cq_resize, CONNS },
	[OP_SRQ_RESIZE] = { "srq-resize", op_srq_resize, 1u << RC_SRQ },
	/* The pages of an on-demand region belong to the pool, and come and go anyway. */
	[OP_REREG] = { "rereg", op_rereg, CONNS & ~(1u << PAGING) },
	[OP_DETACH] = { "detach", op_detach, 1u << DATAGRAM },
	[OP_ETH_RINGS] = { "eth-rings", op_eth_rings, 1u << ETHERNET },
	[OP_MTU] = { "mtu", op_mtu, ALL },
	[OP_LINK] = { "link", op_link, ALL },
	[OP_FUNCTION_RESET] = { "function-reset", op_function_reset, ALL },
	[OP_RESET_INSIDE] = { "reset-inside", op_reset_inside, ALL },
	[OP_PEER_GONE] = { "peer-gone", op_peer_gone, ALL },
	[OP_DMA_OFF] = { "dma-off", op_dma_off, ALL },
	[OP_FATAL] = { "fatal", op_fatal, ALL },
	[OP_STOPPED] = { "stopped", op_stopped, ALL },
};

/* Operations with requests of the kind under way, since sum_up() was called. */
static uint64_t matrix[NUM_KINDS][NUM_OPS];

/* ---- the run */

/* Place @number of the matrix, of those that there are. */
static void find_place(uint64_t number, int *op, int *kind)
{
	uint32_t places = 0;

	for (int o = 0; o < NUM_OPS; o++)
		for (int k = 0; k < NUM_KINDS; k++)
			places += ops[o].kinds >> k & 1;
	number = number * STRIDE % places;
	for (*op = 0; *op < NUM_OPS; ++*op)
		for (*kind = 0; *kind < NUM_KINDS; ++*kind)
			if (ops[*op].kinds >> *kind & 1 && !number--)
				return;
}

static bool upset_round(struct upset *u, uint64_t number)
{
	unsigned int host = world_pick(&u->w, 2);
	int op, kind;

	find_place(number, &op, &kind);
	post_all(u);
	if (!run_for(u, world_pick(&u->w, 10000)))
		return false;
	post_all(u);
	/* A queue whose requests need no answer is empty soon. */
	if (kind != ETHERNET && kind != DATAGRAM)
		world_run(&u->w, u->w.now + world_pick(&u->w, 3000));
	else if (world_pick(&u->w, 2))
		qhca_run(u->node[host].md->host.hca,
			 host_clock(&u->node[host].md->host),
			 world_pick(&u->w, 8));
	if (u->w.verbose)
		printf("# round: %s, %s of host %u\n", ops[op].name,
		       kind_name[kind], host);
	if (under_way(u, kind, host))
		matrix[kind][op]++;
	if (!ops[op].run(u, kind == ETHERNET ? NULL : &u->conn[kind], host))
		return false;
	post_all(u);
	if (!settle(u) || !repair(u))
		return false;
	return check_given(u, 0) && check_given(u, 1);
}

static void setup(struct upset *u)
{
	for (unsigned int h = 0; h < 2; h++) {
		u->node[h].md = u->w.host[h];
		start_driver(u, h);
	}
	for (int k = 0; k < NUM_CONNS; k++)
		conn_connect(u, &u->conn[k]);
}

static bool run_rounds(struct upset *u, uint64_t seed)
{
	for (int i = 0; i < ROUNDS; i++) {
		for (unsigned int h = 0; h < 2; h++)
			if (u->node[h].md->host.next > MEM_LEN - ROOM &&
			    (!op_function_reset(u, NULL, h) || !settle(u) ||
			     !repair(u)))
				return false;
		if (!upset_round(u, seed * ROUNDS + i))
			return false;
	}
	for (int k = 0; k < NUM_CONNS; k++)
		u->conn[k].hurt = true;
	return repair(u) && check_given(u, 0) && check_given(u, 1);
}

static bool run_seed(uint64_t seed, bool verbose)
{
	struct upset *u = calloc(1, sizeof(*u));
	struct qhca_config cfg;
	bool ok;

	qhca_config_default(&cfg);
	cfg.log_max_qp = cfg.log_max_cq = 10;
	cfg.log_max_pt = 12;
	cfg.log_max_srq = 8;
	cfg.max_bundle = seeds_bundle(seed);
	cfg.num_db_pages = 2;
	u->w.verbose = verbose;
	world_init(&u->w, seed, 2, MEM_LEN, &cfg);
	for (int k = 0; k < NUM_CONNS; k++) {
		u->conn[k].kind = (enum kind)k;
		u->conn[k].slot_len = k == RC_LARGE || k == PAGING ? 4096 :
				      k == DATAGRAM ? 1024 : 256;
	}
	setup(u);
	seeds_link(&u->w, &u->w.link);
	/* Nothing would detect that an Ethernet frame is corrupt. */
	u->w.link.corrupt = 0;
	ok = run_rounds(u, seed);
	if (!ok)
		printf("# seed %llu at %llu ns: %s\n", (unsigned long long)seed,
		       (unsigned long long)u->w.now, u->error);
	world_fini(&u->w);
	free(u);
	return ok;
}

/* Each place of the matrix by its name, and how often it really happened. */
static bool sum_up(void)
{
	bool ok = true;

	for (int op = 0; op < NUM_OPS; op++) {
		printf("# %-15s", ops[op].name);
		for (int k = 0; k < NUM_KINDS; k++) {
			if (!(ops[op].kinds >> k & 1))
				continue;
			printf(" %s %llu", kind_name[k],
			       (unsigned long long)matrix[k][op]);
			ok &= matrix[k][op] != 0;
		}
		putchar('\n');
	}
	memset(matrix, 0, sizeof(matrix));
	if (!ok)
		printf("# each of these must happen in the seeds of a TAP point\n");
	return ok;
}

int main(int argc, char **argv)
{
	static const struct seeds seeds = {
		.name = "upset", .run = run_seed, .sum_up = sum_up,
	};

	return seeds_main(&seeds, argc, argv);
}
