/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Traffic between keys that churn: see churn.h.
 *
 *   churn --seeds A..B
 *   churn --seed N [-v]
 *
 * Each seed runs for ten minutes of virtual time: rounds of work, and rest.
 */
#include "churn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "seeds.h"

#define MEM_LEN		(4u << 20)
#define DURATION	600000000000ull		/* ns */
#define MEAN_REST	7500000000ull
#define SETTLE		20000000000ull
#define MAX_OUT		20u		/* requests of a QP under way */
#define STRAY_KEYS	4u

struct churn {
	struct world w;
	struct node host[2];
	struct conn conn[NUM_CONNS];
	char error[300];
};

/* ---- books */

struct req *req_new(struct node *h, struct conn *c, bool recv, uint8_t opcode,
		    uint64_t *wr_id)
{
	uint32_t i;

	for (i = 0; i < MAX_REQS && h->req[i].busy; i++)
		;
	if (i == MAX_REQS)
		host_die("too many requests");
	h->req[i] = (struct req){ .busy = true, .recv = recv, .conn = c,
				  .opcode = opcode };
	if (recv)
		c->recv_out[h->number]++;
	else
		c->out[h->number]++;
	*wr_id = i;
	return &h->req[i];
}

bool conn_room(struct conn *c, unsigned int host)
{
	return c->out[host] < MAX_OUT && c->recv_out[host] < MAX_OUT;
}

struct use use_of(struct node *h, struct conn *c, struct obj *o, uint64_t off,
		  uint64_t len, uint32_t right, bool local)
{
	bool window = o->type == QHCA_PTE_MW1 || o->type == QHCA_PTE_MW2B;
	struct use u = { .obj = o, .changes = o->changes, .expect = NEVER };

	(void)h;
	if (o->state == BORN_SOON || o->state == DEAD_SOON)
		u.expect = MAYBE;
	else if (o->state == LIVE && !(right & ~o->access) &&
		 off <= o->len && len <= o->len - off && o->pd == CHURN_PD &&
		 !(local && window) && (!o->conn || o->conn == c))
		u.expect = SURE;
	return u;
}

static enum expect outcome(const struct use *u)
{
	if (!u->obj || u->changes == u->obj->changes)
		return u->expect;
	return MAYBE;
}

static void taint_by(struct req *r)
{
	if (r->use[0].expect != SURE || r->use[1].expect != SURE)
		r->conn->tainted = true;
}

void req_post(struct node *h, struct req *r, struct md_wr *wr)
{
	struct md_qp *qp = &r->conn->qp[h->number];

	taint_by(r);
	md_post_send(h->md, qp, wr);
	md_ring(h->md, qp);
	churn_counts.requests++;
}

/* ---- choosing keys */

struct choice {				/* a piece of memory by a key */
	struct use use;
	struct md_sge sge;
};

static struct use stray(void)
{
	return (struct use){ .expect = NEVER };
}

/* A key that was never valid, or is no longer valid. */
static void choose_stray(struct node *h, struct conn *c, struct choice *to)
{
	struct obj *o = &h->obj[world_pick(h->w, NUM_OBJS)];
	const uint32_t key[STRAY_KEYS] = {
		QHCA_RESERVED_LKEY, 0, 0xffffff00,
		(o->key & ~0xffu) | ((o->key - 1 - world_pick(h->w, 20)) & 0xff),
	};

	to->sge.addr = o->start;
	to->sge.key = key[world_pick(h->w, STRAY_KEYS)];
	/* Only QPs of the kernel may use the reserved key, and here there are none. */
	to->use = stray();
	(void)c;
}

/* Chooses a key of @h, in most cases a usable one, and at most @len bytes of it. */
static void choose(struct node *h, struct conn *c, uint32_t len, uint32_t right,
		   bool local, struct choice *to)
{
	bool bad = world_chance(h->w, 40000);
	struct obj *o = NULL;
	uint64_t off = 0;

	to->sge.len = len;
	if (bad && world_pick(h->w, 2)) {
		choose_stray(h, c, to);
		return;
	}
	for (uint32_t i = 0; i < (bad ? 1 : 12); i++) {
		o = &h->obj[world_pick(h->w, NUM_OBJS)];
		to->sge.len = o->len < len && !bad ? o->len : len;
		if (!bad && o->len > to->sge.len)
			off = 8 * world_pick(h->w, (o->len - to->sge.len) / 8);
		else
			off = bad ? 8 * world_pick(h->w, 64) : 0;
		to->use = use_of(h, c, o, off, to->sge.len, right, local);
		if (to->use.expect == SURE)
			break;
	}
	to->sge.addr = o->start + off;
	to->sge.key = o->state == BORN_SOON && world_pick(h->w, 2) ?
		      o->next_key : o->key;
}

/* Cuts both ranges to the shorter length, which may make an invalid range valid. */
static void level(struct choice *a, struct choice *b)
{
	struct choice *longer = a->sge.len > b->sge.len ? a : b;

	if (a->sge.len == b->sge.len)
		return;
	longer->sge.len = longer == a ? b->sge.len : a->sge.len;
	if (longer->use.obj && longer->use.expect == NEVER)
		longer->use.expect = MAYBE;
}

/* ---- posting */

struct req *recv_post(struct node *h, struct conn *c, struct obj *o)
{
	uint64_t wr_id;
	struct req *r = req_new(h, c, true, 0, &wr_id);

	(void)o;
	md_post_recv(h->md, &c->qp[h->number], wr_id, NULL, 0);
	return r;
}

static void post_send(struct node *h, struct conn *c, uint32_t len)
{
	struct md_wr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 1,
			    .flags = QHCA_WQE_F_SIGNALED };
	struct choice from, to;
	struct req *r, *recv;
	uint64_t wr_id;

	choose(h->peer, c, len, QHCA_ACCESS_LOCAL_WRITE, true, &to);
	choose(h, c, to.sge.len, 0, true, &from);
	level(&to, &from);
	recv = req_new(h->peer, c, true, 0, &wr_id);
	recv->use[0] = to.use;
	taint_by(recv);
	md_post_recv(h->peer->md, &c->qp[h->peer->number], wr_id, &to.sge, 1);
	r = req_new(h, c, false, QHCA_WQE_SEND, &wr.wr_id);
	r->use[0] = from.use;
	r->use[1] = to.use;
	wr.sge = &from.sge;
	req_post(h, r, &wr);
}

static void post_request(struct node *h, struct conn *c)
{
	static const struct {
		uint8_t opcode;
		uint32_t local, remote;
	} kind[] = {
		{ QHCA_WQE_WRITE, 0, QHCA_ACCESS_REMOTE_WRITE },
		{ QHCA_WQE_READ, QHCA_ACCESS_LOCAL_WRITE,
		  QHCA_ACCESS_REMOTE_READ },
		{ QHCA_WQE_FETCH_ADD, QHCA_ACCESS_LOCAL_WRITE,
		  QHCA_ACCESS_REMOTE_ATOMIC },
		{ QHCA_WQE_CMP_SWAP, QHCA_ACCESS_LOCAL_WRITE,
		  QHCA_ACCESS_REMOTE_ATOMIC },
		{ QHCA_WQE_WRITE, 0, QHCA_ACCESS_REMOTE_WRITE },
		{ QHCA_WQE_READ, QHCA_ACCESS_LOCAL_WRITE,
		  QHCA_ACCESS_REMOTE_READ },
	};
	uint32_t k = world_pick(h->w, 7), len = 8 + 8 * world_pick(h->w, 127);
	struct choice local, remote;
	struct md_wr wr = { .num_sge = 1, .flags = QHCA_WQE_F_SIGNALED };
	struct req *r;

	if (!conn_room(c, h->number) || !conn_room(c, h->peer->number))
		return;
	if (k == 6) {
		post_send(h, c, len);
		return;
	}
	if (kind[k].remote == QHCA_ACCESS_REMOTE_ATOMIC)
		len = 8;
	choose(h->peer, c, len, kind[k].remote, false, &remote);
	choose(h, c, remote.sge.len, kind[k].local, true, &local);
	level(&remote, &local);
	r = req_new(h, c, false, kind[k].opcode, &wr.wr_id);
	r->use[0] = local.use;
	r->use[1] = remote.use;
	wr.opcode = kind[k].opcode;
	wr.sge = &local.sge;
	wr.raddr = remote.sge.addr;
	wr.rkey = remote.sge.key;
	wr.swap_add = wr.opcode == QHCA_WQE_FETCH_ADD ?
		      world_pick(h->w, 16) : live_word(h);
	wr.compare = live_word(h);
	req_post(h, r, &wr);
}

/* ---- completions */

static bool bad_status(struct node *h, const struct req *r, uint8_t status)
{
	return churn_fail(h, "host %u connection %u: %s (opcode %u) ends with status %u, keys %u and %u%s",
			  h->number, r->conn->number,
			  r->recv ? "receive" : "request", r->opcode, status,
			  outcome(&r->use[0]), outcome(&r->use[1]),
			  r->conn->tainted ? ", tainted" : "");
}

static bool status_right(struct node *h, const struct req *r, uint8_t status)
{
	enum expect local = outcome(&r->use[0]), remote = outcome(&r->use[1]);

	switch (status) {
	case QHCA_WC_SUCCESS:
		if (local == NEVER || remote == NEVER)
			return churn_fail(h, "host %u: opcode %u succeeds with a key that cannot be used",
					  h->number, r->opcode);
		return true;
	case QHCA_WC_WR_FLUSH_ERR:
	case QHCA_WC_RETRY_EXC_ERR:
		churn_counts.flushed++;
		return r->conn->tainted || bad_status(h, r, status);
	case QHCA_WC_LOC_PROT_ERR:
		churn_counts.refused++;
		return local != SURE || bad_status(h, r, status);
	case QHCA_WC_REM_ACCESS_ERR:
		churn_counts.refused++;
		return (remote != SURE && r->opcode != QHCA_WQE_SEND) ||
		       bad_status(h, r, status);
	case QHCA_WC_REM_OP_ERR:
		return (remote != SURE && r->opcode == QHCA_WQE_SEND) ||
		       bad_status(h, r, status);
	default:
		return bad_status(h, r, status);
	}
}

static bool poll_host(struct churn *c, unsigned int number, uint32_t max)
{
	struct node *h = &c->host[number];
	struct qhca_cqe cqe;

	while (max-- && md_poll(&h->cq, &cqe)) {
		struct req *r = &h->req[get_le64(&cqe.wr_id) % MAX_REQS];
		bool good;

		if (!r->busy || !(get_le32(&cqe.flags) & QHCA_CQE_REQUESTER) !=
				r->recv)
			return churn_fail(h, "host %u: a completion of nothing",
					  number);
		good = status_right(h, r, cqe.status);
		r->busy = false;
		if (r->recv)
			r->conn->recv_out[number]--;
		else
			r->conn->out[number]--;
		if (cqe.status)
			r->conn->broken = true;
		else
			churn_counts.done++;
		churn_counts.bytes += get_le32(&cqe.byte_len);
		if (r->obj)
			obj_settled(h, r->obj, !cqe.status);
		if (!good)
			return false;
	}
	return true;
}

static bool poll_both(struct churn *c)
{
	struct qhca_eqe eqe;

	for (unsigned int i = 0; i < 2; i++) {
		if (!poll_host(c, i, ~0u))
			return false;
		while (md_event(c->host[i].md, &eqe))
			;
		if (md_dead(c->host[i].md))
			return churn_fail(&c->host[i], "host %u died", i);
	}
	return true;
}

/* ---- life */

static void connect(struct churn *c, struct conn *n)
{
	uint32_t psn[2] = { world_rand(&c->w) & 0xffffff,
			    world_rand(&c->w) & 0xffffff };

	for (unsigned int i = 0; i < 2; i++) {
		n->attr[i].sq_psn = psn[i];
		n->attr[i].rq_psn = psn[!i];
		md_qp_connect(c->host[i].md, &n->qp[i], &n->attr[i]);
	}
	n->broken = n->tainted = false;
}

static void open_conn(struct churn *c, unsigned int number)
{
	struct conn *n = &c->conn[number];

	n->number = number;
	for (unsigned int i = 0; i < 2; i++) {
		struct md_qp_init init = {
			.type = QHCA_QPT_RC, .pd = CHURN_PD,
			.flags = number ? 0 : QHCA_QP_KERNEL,
			.sq_log_depth = 6, .sq_log_stride = 7,
			.rq_log_depth = 6, .rq_log_stride = 5,
			.send_cq = &c->host[i].cq, .recv_cq = &c->host[i].cq,
		};

		if (md_qp_create(c->host[i].md, &n->qp[i], &init))
			host_die("CREATE_QP refused");
	}
	for (unsigned int i = 0; i < 2; i++) {
		n->attr[i] = (struct md_conn){
			.dest_qpn = n->qp[!i].qpn,
			.mtu = 1 + world_pick(&c->w, 2),
			.access = ALL_REMOTE, .timeout = 8, .retry_cnt = 7,
			.rnr_retry = 7, .min_rnr_timer = 1, .max_rd_atomic = 4,
			.max_dest_rd_atomic = 4,
		};
		n->attr[i].mtu = n->attr[0].mtu;
		md_av(c->host[i].md, &n->attr[i].av, !i + 1, false);
	}
	connect(c, n);
}

static void setup(struct churn *c)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct node *h = &c->host[i];
		struct md_init init = { 0 };

		seeds_init(&c->w, &init);
		init.log_pt = 11;
		init.log_qp = init.log_cq = init.log_srq = 4;
		h->w = &c->w;
		h->md = c->w.host[i];
		h->number = i;
		h->peer = &c->host[!i];
		h->error = c->error;
		md_start(h->md, &init);
		md_cq_create(h->md, &h->cq, 9);
		keys_setup(h);
	}
	for (unsigned int i = 0; i < NUM_CONNS; i++)
		open_conn(c, i);
}

static bool all_back(struct churn *c)
{
	for (unsigned int i = 0; i < NUM_CONNS; i++)
		for (unsigned int k = 0; k < 2; k++)
			if (c->conn[i].out[k] ||
			    (c->conn[i].recv_out[k] && !c->conn[i].broken))
				return churn_fail(&c->host[k], "host %u connection %u: %u requests and %u receives do not end",
						  k, i, c->conn[i].out[k],
						  c->conn[i].recv_out[k]);
	return true;
}

static bool settle(struct churn *c)
{
	uint64_t until = c->w.now + SETTLE;

	while (c->w.now < until && world_step(&c->w, until))
		if (world_chance(&c->w, 300000) && !poll_both(c))
			return false;
	return poll_both(c) && all_back(c);
}

/* The driver connects broken connections again. */
static bool mend(struct churn *c)
{
	bool any = false;

	for (unsigned int i = 0; i < NUM_CONNS; i++) {
		struct conn *n = &c->conn[i];

		if (!n->broken)
			continue;
		any = true;
		for (unsigned int k = 0; k < 2; k++)
			md_qp_modify(c->host[k].md, &n->qp[k], QHCA_QPS_ERR, 0,
				     NULL);
	}
	if (any && !settle(c))
		return false;
	for (unsigned int i = 0; i < NUM_CONNS; i++) {
		struct conn *n = &c->conn[i];

		n->tainted = false;	/* no request is under way */
		if (!n->broken)
			continue;
		if (n->recv_out[0] || n->recv_out[1])
			return churn_fail(c->host, "connection %u: receives are not flushed",
					  i);
		for (unsigned int k = 0; k < 2; k++)
			if (md_qp_modify(c->host[k].md, &n->qp[k],
					 QHCA_QPS_RESET, 0, NULL))
				return churn_fail(c->host, "to RESET: refused");
		connect(c, n);
	}
	return true;
}

static bool act(struct churn *c)
{
	struct node *h = &c->host[world_pick(&c->w, 2)];
	struct conn *n = &c->conn[1 + world_pick(&c->w, NUM_CONNS - 1)];

	if (world_chance(&c->w, 450000))
		keys_churn(h, h->peer, c->conn);
	for (uint32_t i = world_pick(&c->w, 4); i && !n->broken; i--)
		post_request(h, n);
	if (world_pick(&c->w, 2))
		world_run(&c->w, c->w.now + world_pick(&c->w, 6000));
	if (c->error[0])
		return false;
	return !world_chance(&c->w, 300000) ||
	       poll_host(c, world_pick(&c->w, 2), 1 + world_pick(&c->w, 8));
}

static bool check(struct churn *c)
{
	return keys_check(&c->host[0]) && keys_check(&c->host[1]);
}

static bool run_rounds(struct churn *c)
{
	while (c->w.now < DURATION) {
		for (uint32_t i = 1 + world_pick(&c->w, 16); i; i--)
			if (!act(c))
				return false;
		if (world_pick(&c->w, 4) == 0) {	/* no rest yet */
			if (!check(c))
				return false;
			continue;
		}
		if (!settle(c) || !mend(c) || !check(c))
			return false;
		world_wait(&c->w, c->w.now +
			   2 * MEAN_REST / 1000 * world_pick(&c->w, 1000));
	}
	return settle(c) && mend(c) && check(c);
}

static bool run_seed(uint64_t seed, bool verbose)
{
	struct churn *c = calloc(1, sizeof(*c));
	struct qhca_config cfg;
	bool ok;

	qhca_config_default(&cfg);
	cfg.log_max_qp = cfg.log_max_cq = cfg.log_max_srq = 4;
	cfg.log_max_pt = 11;
	cfg.max_bundle = seeds_bundle(seed);
	cfg.num_db_pages = 2;
	c->w.verbose = verbose;
	world_init(&c->w, seed, 2, MEM_LEN, &cfg);
	setup(c);
	seeds_link(&c->w, &c->w.link);
	ok = run_rounds(c);
	if (!ok)
		printf("# seed %llu at %llu ns: %s\n", (unsigned long long)seed,
		       (unsigned long long)c->w.now, c->error);
	world_fini(&c->w);
	free(c);
	return ok;
}

/* A run that did nothing would pass, too: the counts must show work of each kind. */
static bool sum_up(void)
{
	struct churn_counts n = churn_counts;
	bool ok = n.births && n.deaths && n.done && n.refused && n.flushed &&
		  n.windows && n.regs && n.invs && n.rereg && n.bytes;

	memset(&churn_counts, 0, sizeof(churn_counts));
	printf("# %llu keys born, %llu died (%llu windows, %llu fast registrations, %llu invalidations, %llu reregistrations); %llu requests, %llu done, %llu refused, %llu flushed\n",
	       (unsigned long long)n.births, (unsigned long long)n.deaths,
	       (unsigned long long)n.windows, (unsigned long long)n.regs,
	       (unsigned long long)n.invs, (unsigned long long)n.rereg,
	       (unsigned long long)n.requests, (unsigned long long)n.done,
	       (unsigned long long)n.refused, (unsigned long long)n.flushed);
	if (!ok)
		printf("# something of this must happen in a hundred seeds\n");
	return ok;
}

int main(int argc, char **argv)
{
	static const struct seeds seeds = {
		.name = "churn", .run = run_seed, .sum_up = sum_up,
	};

	return seeds_main(&seeds, argc, argv);
}
