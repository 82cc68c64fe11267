// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-churn: keys live and die under traffic, and no byte goes through a dead
 * one.
 *
 *   qhca-churn -d DEVICE -g GID-INDEX -p PORT [-T SECONDS] [-s SEED] [HOST]
 *
 * The server gives keys to the pages of its arena and takes them back by every
 * call there is: deregistration, reregistration without remote rights, unbinding
 * and deallocation of a window.  Once such a call has returned the page is
 * painted, and has to stay as it was painted until it gets a new key.  The client
 * learns of new keys but never of deaths, so it writes, reads and adds through
 * living and dead ones alike, into and out of buffers whose own keys die too.
 * Each refusal ends the QP on both sides, which is then brought up again.
 *
 * What the painted pages hold are words of a kind that nobody writes otherwise:
 * one that turns up at the client has come out of a dead key.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define PAGE		4096u
#define SLOTS		64u		/* of the server */
#define BUFFERS		16u		/* of the client */
#define WINDOW		24u		/* requests under way */
#define MAX_LEN		(3 * 1024u)
/* one in so many, so that most requests find a living key */
#define RARELY		32u
#define WORDS		(PAGE / sizeof(uint64_t))

/* The upper half of a painted word says whose it is; the lower, which and when. */
#define DEAD_SERVER	0xdeadbea700000000ull
#define DEAD_CLIENT	0xdeadc11e00000000ull
#define LIVE		0x11fe11fe11fe11feull
#define KIND(word)	((word) & 0xffffffff00000000ull)

enum message_type { NEW_KEY, RESET, DONE };

struct message {
	uint32_t type;
	uint32_t slot;
	uint32_t rkey;
	uint32_t psn;
	uint64_t addr;
	uint64_t keys, broken;		/* DONE, of the server */
};

/* A page with a key, or painted. */
struct page {
	uint64_t *words;
	struct ibv_mr *mr;		/* of a living key that is no window's */
	struct ibv_mw *mw;
	bool bound;
	bool painted;
	uint32_t generation;
};

struct remote {
	uint64_t addr;
	uint32_t rkey;
};

struct churn {
	struct peer peer;
	struct connection conn;
	struct qp_address here, there;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_cq *bind_cq;
	struct ibv_qp *bind_qp;		/* connected to itself, for binding */
	uint8_t *arena;
	struct ibv_mr *arena_mr;	/* without remote rights, for windows */
	struct page page[SLOTS];
	struct remote remote[SLOTS];
	uint64_t seed, kind;
	unsigned int seconds, pages, under_way;
	bool failed;			/* the QP is to be brought up again */
	uint64_t keys, broken, leaked, done, refused, resets;
};

static uint32_t below(struct churn *c, uint32_t limit)
{
	/* This is xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift". */
	c->seed ^= c->seed >> 12;
	c->seed ^= c->seed << 25;
	c->seed ^= c->seed >> 27;
	return (uint32_t)(c->seed * 0x2545f4914f6cdd1dull >> 32) % limit;
}

/* -- pages ------------------------------------------------------------------ */

static uint64_t paint_of(const struct churn *c, unsigned int i)
{
	return c->kind | i << 24 | (c->page[i].generation & 0xffffff);
}

static void paint(struct churn *c, unsigned int i)
{
	struct page *p = &c->page[i];

	p->generation++;
	for (unsigned int w = 0; w < WORDS; w++)
		((volatile uint64_t *)p->words)[w] = paint_of(c, i);
	p->painted = true;
}

static void check(struct churn *c, unsigned int i)
{
	const struct page *p = &c->page[i];

	for (unsigned int w = 0; p->painted && w < WORDS; w++) {
		uint64_t found = ((volatile uint64_t *)p->words)[w];

		if (found == paint_of(c, i))
			continue;
		printf("# page %u, word %u: %#llx, painted %#llx\n", i, w,
		       (unsigned long long)found, (unsigned long long)paint_of(c, i));
		c->broken++;
		paint(c, i);
	}
}

static void check_all(struct churn *c)
{
	for (unsigned int i = 0; i < c->pages; i++)
		check(c, i);
}

static void enliven(struct churn *c, unsigned int i)
{
	struct page *p = &c->page[i];

	check(c, i);
	p->painted = false;
	for (unsigned int w = 0; w < WORDS; w++)
		((volatile uint64_t *)p->words)[w] = LIVE;
	c->keys++;
}

static struct ibv_mr *reg(struct churn *c, unsigned int i, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(c->pd, c->page[i].words, PAGE, access);

	if (!mr)
		die("ibv_reg_mr: %s", strerror(errno));
	return mr;
}

/* -- QPs -------------------------------------------------------------------- */

static struct ibv_qp *new_qp(struct churn *c, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = cq, .recv_cq = cq,
		.cap = { WINDOW, 1, 1, 1, 0 },
	};
	struct ibv_qp *qp = ibv_create_qp(c->pd, &init);

	if (!qp)
		die("ibv_create_qp: %s", strerror(errno));
	return qp;
}

static void bring_up(struct churn *c, struct ibv_qp *qp, const struct qp_address *here,
		     const struct qp_address *there)
{
	int rc = qp_reset(qp);

	if (!rc)
		rc = qp_connect(qp, &c->conn, c->peer.gid_index, there, here->psn);
	if (rc)
		die("connecting a QP: %s", strerror(rc));
}

static void connect_all(struct churn *c)
{
	c->conn = (struct connection) {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 14, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 8, .dest_rd_atomic = 8,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC,
	};
	c->cq = ibv_create_cq(c->peer.ctx, 2 * WINDOW, NULL, NULL, 0);
	if (!c->cq)
		die("ibv_create_cq: %s", strerror(errno));
	c->qp = new_qp(c, c->cq);
	c->here = (struct qp_address) {
		.qpn = c->qp->qp_num, .psn = below(c, 1 << 24), .gid = c->peer.gid,
	};
	peer_exchange(&c->peer, &c->here, &c->there, sizeof(c->here));
	bring_up(c, c->qp, &c->here, &c->there);
	peer_barrier(&c->peer);
}

/* Exactly one message, though others may follow it. */
static bool message_waits(struct churn *c)
{
	struct pollfd fd = { .fd = c->peer.sock, .events = POLLIN };

	return poll(&fd, 1, 0) > 0;
}

/* -- server ----------------------------------------------------------------- */

static void bind_window(struct churn *c, unsigned int i, size_t len)
{
	struct page *p = &c->page[i];
	struct ibv_mw_bind bind = {
		.wr_id = i, .send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = c->arena_mr, .addr = (uintptr_t)p->words, .length = len,
			.mw_access_flags = c->conn.access,
		},
	};
	struct ibv_wc wc = { 0 };
	int rc = ibv_bind_mw(c->bind_qp, p->mw, &bind);

	if (rc)
		die("ibv_bind_mw: %s", strerror(rc));
	while (!ibv_poll_cq(c->bind_cq, 1, &wc))
		;
	if (wc.status)
		die("binding a window ended with %s", ibv_wc_status_str(wc.status));
	p->bound = len;
}

static void kill_key(struct churn *c, unsigned int i)
{
	struct page *p = &c->page[i];
	int rc = 0;

	if (p->mw && below(c, 2))
		bind_window(c, i, 0);
	if (p->mw && !(p->bound == false && below(c, 2))) {
		rc = ibv_dealloc_mw(p->mw);
		p->mw = NULL;
	}
	if (p->mr && below(c, 3) == 0) {
		rc = ibv_rereg_mr(p->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				  IBV_ACCESS_LOCAL_WRITE);
		if (rc)
			die("ibv_rereg_mr: %d, %s", rc, strerror(errno));
		/* The region has lost its rights, but still exists. */
		paint(c, i);
		check(c, i);
		return;
	}
	if (p->mr) {
		rc = ibv_dereg_mr(p->mr);
		p->mr = NULL;
	}
	if (rc)
		die("taking a key back: %s", strerror(rc));
	paint(c, i);
}

static void give_key(struct churn *c, unsigned int i)
{
	struct page *p = &c->page[i];
	struct message m = { .type = NEW_KEY, .slot = i, .addr = (uintptr_t)p->words };

	if (p->mr && ibv_dereg_mr(p->mr))
		die("ibv_dereg_mr: %s", strerror(errno));
	p->mr = NULL;
	enliven(c, i);
	if (p->mw || below(c, 2)) {
		if (!p->mw)
			p->mw = ibv_alloc_mw(c->pd, IBV_MW_TYPE_1);
		if (!p->mw)
			die("ibv_alloc_mw: %s", strerror(errno));
		bind_window(c, i, PAGE);
		m.rkey = p->mw->rkey;
	} else {
		p->mr = reg(c, i, c->conn.access | IBV_ACCESS_LOCAL_WRITE);
		m.rkey = p->mr->rkey;
	}
	peer_send(&c->peer, &m, sizeof(m));
}

static void serve(struct churn *c)
{
	struct message m = { .type = NEW_KEY };
	struct qp_address self;
	unsigned int i;

	c->bind_cq = ibv_create_cq(c->peer.ctx, 4, NULL, NULL, 0);
	if (!c->bind_cq)
		die("ibv_create_cq: %s", strerror(errno));
	c->bind_qp = new_qp(c, c->bind_cq);
	self = (struct qp_address) { .qpn = c->bind_qp->qp_num, .gid = c->peer.gid };
	bring_up(c, c->bind_qp, &self, &self);
	c->arena_mr = ibv_reg_mr(c->pd, c->arena, SLOTS * PAGE,
				 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	if (!c->arena_mr)
		die("ibv_reg_mr: %s", strerror(errno));

	while (m.type != DONE) {
		i = below(c, SLOTS);
		if (c->page[i].painted)
			give_key(c, i);
		else if (below(c, RARELY) == 0)
			kill_key(c, i);
		check(c, below(c, SLOTS));
		if (!message_waits(c))
			continue;
		peer_receive(&c->peer, &m, sizeof(m));
		if (m.type != RESET)
			continue;
		c->there.psn = m.psn;
		c->here.psn = below(c, 1 << 24);
		bring_up(c, c->qp, &c->here, &c->there);
		m.psn = c->here.psn;
		peer_send(&c->peer, &m, sizeof(m));
	}
	/*
	 * Late frames have arrived by now, because the client had stopped before it reported
	 * that.
	 */
	check_all(c);
	for (i = 0; i < SLOTS; i++) {
		struct page *p = &c->page[i];

		if ((p->mw && ibv_dealloc_mw(p->mw)) || (p->mr && ibv_dereg_mr(p->mr)))
			die("taking the last keys back: %s", strerror(errno));
	}
	m = (struct message) { .type = DONE, .keys = c->keys, .broken = c->broken };
	peer_send(&c->peer, &m, sizeof(m));
	if (ibv_destroy_qp(c->bind_qp) || ibv_destroy_cq(c->bind_cq) ||
	    ibv_dereg_mr(c->arena_mr))
		die("cannot clear up: %s", strerror(errno));
}

/* -- client ----------------------------------------------------------------- */

static void take_message(struct churn *c, struct message *m)
{
	peer_receive(&c->peer, m, sizeof(*m));
	if (m->type == NEW_KEY)
		c->remote[m->slot % SLOTS] = (struct remote) { m->addr, m->rkey };
}

/*
 * Words of the server's painted pages have come out by a dead R_Key; those of
 * our own have gone out by a dead L_Key, and come back.
 */
static void look_for_leaks(struct churn *c, unsigned int i)
{
	for (unsigned int w = 0; w < WORDS; w++) {
		uint64_t found = ((volatile uint64_t *)c->page[i].words)[w];

		if (KIND(found) != DEAD_SERVER && KIND(found) != DEAD_CLIENT)
			continue;
		printf("# buffer %u, word %u: %#llx of a page whose key was dead\n", i, w,
		       (unsigned long long)found);
		if (KIND(found) == DEAD_SERVER)
			c->leaked++;
		else
			c->broken++;
		((volatile uint64_t *)c->page[i].words)[w] = LIVE;
	}
}

static void reap(struct churn *c)
{
	struct ibv_wc wc;

	while (ibv_poll_cq(c->cq, 1, &wc) > 0) {
		c->under_way--;
		if (!wc.status) {
			c->done++;
			if (!c->page[wc.wr_id].painted)
				look_for_leaks(c, wc.wr_id);
			continue;
		}
		c->failed = true;
		switch (wc.status) {
		case IBV_WC_REM_ACCESS_ERR:
		case IBV_WC_LOC_PROT_ERR:
			c->refused++;
			break;
		case IBV_WC_WR_FLUSH_ERR:
		/* The answer was lost, and the QP that could repeat it has ended. */
		case IBV_WC_RETRY_EXC_ERR:
			break;
		default:
			die("a request ended with %s", ibv_wc_status_str(wc.status));
		}
	}
}

static void post_one(struct churn *c)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	const struct remote *r = &c->remote[below(c, SLOTS)];
	unsigned int i = below(c, BUFFERS);
	struct page *p = &c->page[i];
	uint32_t len = 8 * (1 + below(c, MAX_LEN / 8));
	uint32_t room = (PAGE - len) / 8 + 1;
	struct ibv_sge sge = { .length = len };
	struct ibv_send_wr wr = {
		.wr_id = i, .sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED,
		.opcode = opcodes[below(c, 3)],
	}, *bad;
	int rc;

	if (!r->rkey || !p->mr)
		return;
	sge.lkey = p->mr->lkey;
	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		sge.length = 8;
		wr.wr.atomic.remote_addr = r->addr + 8 * below(c, WORDS);
		wr.wr.atomic.rkey = r->rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = r->addr + 8 * below(c, room);
		wr.wr.rdma.rkey = r->rkey;
	}
	sge.addr = (uintptr_t)(p->words + below(c, room));
	rc = ibv_post_send(c->qp, &wr, &bad);
	if (rc)
		die("ibv_post_send: %s", strerror(rc));
	c->under_way++;
}

/* Deregisters a buffer with requests under way, or registers it anew. */
static void turn_buffer(struct churn *c)
{
	unsigned int i = below(c, BUFFERS);
	struct page *p = &c->page[i];

	if (p->mr) {
		look_for_leaks(c, i);
		if (ibv_dereg_mr(p->mr))
			die("ibv_dereg_mr: %s", strerror(errno));
		p->mr = NULL;
		paint(c, i);
	} else {
		enliven(c, i);
		p->mr = reg(c, i, IBV_ACCESS_LOCAL_WRITE);
	}
}

static void start_again(struct churn *c)
{
	struct message m = { .type = RESET, .psn = below(c, 1 << 24) };

	c->here.psn = m.psn;
	peer_send(&c->peer, &m, sizeof(m));
	do {
		take_message(c, &m);
	} while (m.type != RESET);
	c->there.psn = m.psn;
	bring_up(c, c->qp, &c->here, &c->there);
	c->failed = false;
	c->resets++;
}

/*
 * The least number that proves something; an idle machine reaches more in a few
 * seconds.
 */
static bool is_enough(const struct churn *c)
{
	return c->keys > 20 && c->done > 100 && c->refused > 5;
}

static void use(struct churn *c)
{
	uint64_t end = now_ns() + c->seconds * 1000000000ull;
	struct message m;

	while (now_ns() < end || !is_enough(c)) {
		while (message_waits(c))
			take_message(c, &m);
		while (!c->failed && c->under_way < WINDOW && below(c, 8))
			post_one(c);
		if (below(c, RARELY) == 0)
			turn_buffer(c);
		check(c, below(c, BUFFERS));
		reap(c);
		if (c->failed && !c->under_way)
			start_again(c);
	}
	while (c->under_way)
		reap(c);
	check_all(c);
	m = (struct message) { .type = DONE };
	peer_send(&c->peer, &m, sizeof(m));
	do {
		take_message(c, &m);
	} while (m.type != DONE);
	printf("# %llu keys there and %llu here, %llu requests done, %llu refused, "
	       "%llu times up again\n", (unsigned long long)m.keys,
	       (unsigned long long)c->keys, (unsigned long long)c->done,
	       (unsigned long long)c->refused, (unsigned long long)c->resets);
	tap_point(!m.broken, "nothing is written through a dead R_Key");
	tap_point(!c->leaked, "nothing is read through a dead R_Key");
	tap_point(!c->broken, "nothing goes through a dead L_Key");
	tap_point(m.keys > 100 && is_enough(c), "keys died under traffic");
	for (unsigned int i = 0; i < BUFFERS; i++)
		if (c->page[i].mr && ibv_dereg_mr(c->page[i].mr))
			die("ibv_dereg_mr: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct churn c = { .seed = 1, .seconds = 10 };
	int o;

	while ((o = getopt(argc, argv, PEER_OPTIONS "T:s:")) != -1) {
		if (peer_option(&c.peer, o, optarg))
			continue;
		switch (o) {
		case 'T': c.seconds = parse_number(optarg, 0, INT_MAX); break;
		case 's': c.seed = parse_number(optarg, 0, ULONG_MAX); break;
		default: die("usage: qhca-churn -d DEVICE -g GID-INDEX -p PORT [-T SECONDS] "
			     "[-s SEED] [HOST]");
		}
	}
	if (!c.seed || !c.seconds)
		die("neither seed nor seconds may be 0");
	setvbuf(stdout, NULL, _IOLBF, 0);
	c.peer.host = optind < argc ? argv[optind] : NULL;
	peer_open(&c.peer);
	c.pages = c.peer.server ? SLOTS : BUFFERS;
	c.kind = c.peer.server ? DEAD_SERVER : DEAD_CLIENT;
	c.pd = ibv_alloc_pd(c.peer.ctx);
	c.arena = aligned_alloc(PAGE, c.pages * PAGE);
	if (!c.pd || !c.arena)
		die("cannot begin: %s", strerror(errno));
	for (unsigned int i = 0; i < c.pages; i++) {
		c.page[i].words = (uint64_t *)(c.arena + i * PAGE);
		paint(&c, i);
	}
	connect_all(&c);
	if (c.peer.server) {
		serve(&c);
		CHECK(!c.broken);
	} else {
		use(&c);
	}
	if (ibv_destroy_qp(c.qp) || ibv_destroy_cq(c.cq) || ibv_dealloc_pd(c.pd))
		die("cannot clear up: %s", strerror(errno));
	peer_close(&c.peer);
	free(c.arena);
	return tap_end();
}
