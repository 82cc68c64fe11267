// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-fault: page faults between two machines, in pages that come when the
 * program likes (held.h).
 *
 *   qhca-fault -d DEVICE -g GID_INDEX -p PORT -c CASE [options] [HOST]
 *
 * Both sides have the same arguments; which of them has the memory on demand is the
 * case's. It fails if data or a status are not what they must be.
 *
 *   wire -o OP      one request that meets a cold page in its middle
 *   resume          -n WRITEs, one after the other, each to a cold page
 *   status          memory unmapped, and memory made read-only
 *   leave -o OP     the side with the memory gives the region up while its page is
 *                   awaited
 *   drop -o OP      the region alone is given up; both sides learn of it, and use
 *                   their QPs anew, while the page is still awaited
 *   die -o OP       the process with the memory is killed while its page is awaited
 *   beside [-u]     a second pair of QPs (-u: UD) at work while one waits for a page
 *                   that comes only when they have done
 *   isolate [-u]    what a second pair of QPs (-u: UD) achieves beside one that faults,
 *                   and beside one that does not
 *   cost -z BYTES   WRITEs to cold, advised and pinned pages of that size
 *
 *   -o OP     write, send, atomic, read: the server's memory is cold;
 *             gather (WRITE), scatter (READ): the client's is
 *   -H MS     how long a page is awaited
 *   -w        wire: the cold page comes when the process gets SIGUSR1
 *   -t CODE   RNR timer
 *   -n N      rounds
 *   -T MS     isolate: how long bandwidth, and then latency, is measured in a turn
 *   -b MS     isolate: how long a turn lasts before that
 *   -s N      isolate: turns of each kind in a round
 *   -m MODE   cost: cold, advised or pinned alone
 *   -r        status: only what the server's memory on demand is part of
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fault.h"
#include "held.h"

struct fault_test t = {
	.conn = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 1, .rd_atomic = 4, .dest_rd_atomic = 4,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_ATOMIC,
	},
	.rounds = 5, .run_ms = 1000, .turns = 1,
};

enum op { OP_WRITE, OP_SEND, OP_ATOMIC, OP_READ, OP_GATHER, OP_SCATTER, NUM_OPS };

static const struct {
	const char *name;
	enum ibv_wr_opcode opcode;
	bool local;		/* the requester's memory is cold */
} ops[NUM_OPS] = {
	[OP_WRITE] = { "write", IBV_WR_RDMA_WRITE, false },
	[OP_SEND] = { "send", IBV_WR_SEND, false },
	[OP_ATOMIC] = { "atomic", IBV_WR_ATOMIC_FETCH_AND_ADD, false },
	[OP_READ] = { "read", IBV_WR_RDMA_READ, false },
	[OP_GATHER] = { "gather", IBV_WR_RDMA_WRITE, true },
	[OP_SCATTER] = { "scatter", IBV_WR_RDMA_READ, true },
};

static enum op op;

/* ---- wire, resume */

/*
 * The first of two cold pages is present, and a request covers the border between
 * them.
 */
#define FIRST		(HELD_PAGE / 2)
#define LEN		HELD_PAGE

static uint8_t sent_byte(size_t i)
{
	return i * 3 + 17;
}

/*
 * Checks that [from, from + len) of cold memory is what the peer sent, and that the
 * rest is unchanged.
 */
static bool only_sent(const uint8_t *mem, size_t total, size_t from, size_t len)
{
	for (size_t i = 0; i < total; i++) {
		uint8_t want = i - from < len ? sent_byte(i - from) : held_byte(i);

		if (mem[i] != want) {
			printf("byte %zu is %#x, not %#x\n", i, mem[i], want);
			return false;
		}
	}
	return true;
}

struct held *open_cold(struct area *a, unsigned int pages)
{
	struct held *h = held_open((size_t)pages * HELD_PAGE);
	struct ibv_sge sge;

	*a = area_of(held_mem(h), (size_t)pages * HELD_PAGE, COLD_ACCESS);
	sge = (struct ibv_sge){ (uintptr_t)a->mem, HELD_PAGE, a->mr->lkey };
	/* Soft-RoCE's call fails in kernel 7.3, and it has no tables to fill. */
	if (ibv_advise_mr(t.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH,
			  &sge, 1))
		*(volatile uint8_t *)a->mem = held_byte(0);
	if (held_asked(h) != 1)
		die("%u pages were asked for, not 1", held_asked(h));
	return h;
}

static void fill_sent(struct area *a, size_t off)
{
	for (size_t i = 0; i < LEN; i++)
		a->mem[off + i] = sent_byte(i);
}

static bool is_held(const uint8_t *mem)
{
	for (size_t i = 0; i < LEN; i++)
		if (mem[i] != held_byte(FIRST + i))
			return false;
	return true;
}

/* @a: cold memory, or LEN bytes that are not. */
static void check_wire(const struct area *a, bool cold)
{
	uint8_t before[8];
	uint64_t was, is;

	switch (op) {
	case OP_WRITE:
	case OP_SEND:
	case OP_SCATTER:
		if (cold)
			CHECK(only_sent(a->mem, 2 * HELD_PAGE, FIRST, LEN));
		break;
	case OP_READ:
	case OP_GATHER:
		if (!cold)
			CHECK(is_held(a->mem));
		break;
	default:
		for (size_t i = 0; i < 8; i++)
			before[i] = held_byte(HELD_PAGE + i);
		memcpy(&was, before, 8);
		memcpy(&is, a->mem + (cold ? HELD_PAGE : 0), 8);
		CHECK(is == was + (cold ? ADDEND : 0));
		break;
	}
}

static void do_wire(struct qp_pair *p, const struct area *a, struct region to)
{
	uint64_t start = now_ns();
	struct ibv_wc wc;

	if (!ops[op].local)
		to.addr += op == OP_ATOMIC ? HELD_PAGE : FIRST;
	post_send(p, ops[op].opcode, a, ops[op].local ? FIRST : 0, op == OP_ATOMIC ? 8 : LEN, to);
	wc = sleep_wc(p);
	printf("wire op=%s qpn=%u peer=%u psn=%u ns=%llu status=%d\n", ops[op].name, p->mine.qpn,
	       p->theirs.qpn, p->mine.psn, (unsigned long long)(now_ns() - start), wc.status);
	CHECK(wc.status == IBV_WC_SUCCESS);
}

static void *bring_when_told(void *held)
{
	sigset_t told;
	int number;

	sigemptyset(&told);
	sigaddset(&told, SIGUSR1);
	if (sigwait(&told, &number))
		die("sigwait: %s", strerror(errno));
	held_set(held, 0);
	return NULL;
}

/* @h: its next page is awaited as the options say. */
static void hold(struct held *h)
{
	pthread_t thread;

	held_set(h, t.until_told ? HELD_FOREVER : t.hold_ms * 1000000ull);
	if (t.until_told && pthread_create(&thread, NULL, bring_when_told, h))
		die("pthread_create");
}

static void run_wire(void)
{
	bool cold = ops[op].local != t.peer.server;
	struct qp_pair p = { 0 };
	struct held *h = NULL;
	struct region to;
	struct ibv_wc wc;
	struct area a;

	/* The timeout is over 8 s, so that only faults cause packets, and not a slow machine. */
	t.conn.timeout = 21;
	if (cold) {
		h = open_cold(&a, 2);
		hold(h);
	} else {
		a = area_anon(LEN, COLD_ACCESS & ~IBV_ACCESS_ON_DEMAND);
		fill_sent(&a, 0);
	}
	pair_open(&p, IBV_QPT_RC);
	to = exchange_region(&a);
	if (t.peer.server && op == OP_SEND)
		post_recv(&p, &a, FIRST, LEN);
	peer_barrier(&t.peer);
	if (!t.peer.server) {
		do_wire(&p, &a, to);
	} else if (op == OP_SEND) {
		wc = sleep_wc(&p);
		CHECK(wc.status == IBV_WC_SUCCESS && wc.byte_len == LEN);
	}
	peer_barrier(&t.peer);
	check_wire(&a, cold);
	if (cold)
		CHECK(held_asked(h) == 2);
	pair_close(&p);
	area_drop(&a);
}

static void run_resume(void)
{
	struct qp_pair p = { 0 };
	struct region to;
	struct area a;

	if (t.peer.server) {
		struct held *h = open_cold(&a, 1 + t.rounds);

		held_set(h, t.hold_ms * 1000000ull);
	} else {
		a = area_anon(LEN, IBV_ACCESS_LOCAL_WRITE);
		fill_sent(&a, 0);
	}
	pair_open(&p, IBV_QPT_RC);
	to = exchange_region(&a);
	peer_barrier(&t.peer);
	for (unsigned int i = 1; !t.peer.server && i <= t.rounds; i++) {
		struct region page = { to.addr + i * HELD_PAGE, to.rkey };
		uint64_t start = now_ns();

		post_send(&p, IBV_WR_RDMA_WRITE, &a, 0, LEN, page);
		CHECK(sleep_wc(&p).status == IBV_WC_SUCCESS);
		printf("resume ns=%llu\n", (unsigned long long)(now_ns() - start));
	}
	peer_barrier(&t.peer);
	for (unsigned int i = 1; t.peer.server && i <= t.rounds; i++)
		for (size_t k = 0; k < LEN; k++)
			CHECK(a.mem[i * LEN + k] == sent_byte(k));
	pair_close(&p);
	area_drop(&a);
}

/* ---- status */

static int next_event(void)
{
	struct ibv_async_event event;
	int type;

	do {
		if (ibv_get_async_event(t.peer.ctx, &event))
			die("ibv_get_async_event: %s", strerror(errno));
		type = event.event_type;
		ibv_ack_async_event(&event);
	} while (event_is_of_port(type));
	return type;
}

struct status_case {
	enum op op;
	bool read_only;		/* else unmapped */
	enum ibv_wc_status client, server;
	int event;		/* the server's; -1: none */
};

static void run_one_status(const struct status_case *c)
{
	bool local = ops[c->op].local, mine = local != t.peer.server;
	enum ibv_wr_opcode opcode = ops[c->op].opcode;
	uint32_t len = c->op == OP_ATOMIC ? 8 : LEN;
	struct qp_pair p = { 0 };
	struct region to;
	struct ibv_wc wc;
	struct area a = area_anon(2 * HELD_PAGE, mine ? COLD_ACCESS :
				  COLD_ACCESS & ~IBV_ACCESS_ON_DEMAND);

	memset(a.mem, 0x5a, a.len);
	pair_open(&p, IBV_QPT_RC);
	to = exchange_region(&a);
	/* One request comes with all pages present, so that there are mappings to take back. */
	if (t.peer.server && c->op == OP_SEND)
		post_recv(&p, &a, 0, LEN);
	peer_barrier(&t.peer);
	if (!t.peer.server) {
		post_send(&p, opcode, &a, 0, len, to);
		CHECK(sleep_wc(&p).status == IBV_WC_SUCCESS);
	} else if (c->op == OP_SEND) {
		CHECK(sleep_wc(&p).status == IBV_WC_SUCCESS);
	}
	peer_barrier(&t.peer);
	if (mine)
		CHECK(!(c->read_only ? mprotect(a.mem, a.len, PROT_READ) :
				       munmap(a.mem, a.len)));
	if (t.peer.server && c->op == OP_SEND)
		post_recv(&p, &a, 0, LEN);
	peer_barrier(&t.peer);
	if (!t.peer.server) {
		post_send(&p, opcode, &a, 0, len, to);
		wc = sleep_wc(&p);
		printf("status op=%s %s: %d\n", ops[c->op].name,
		       c->read_only ? "read-only" : "unmapped", wc.status);
		CHECK(wc.status == c->client);
		CHECK(qp_state(p.qp) == IBV_QPS_ERR);
	} else {
		if (c->server != IBV_WC_SUCCESS)
			CHECK(sleep_wc(&p).status == c->server);
		if (c->event >= 0)
			CHECK(next_event() == c->event);
		CHECK(local || qp_state(p.qp) == IBV_QPS_ERR);
	}
	peer_barrier(&t.peer);
	if (mine && c->read_only)
		for (size_t i = 16; i < a.len; i++)
			CHECK(a.mem[i] == 0x5a);
	pair_close(&p);
	CHECK(!ibv_dereg_mr(a.mr));
	if (!mine || c->read_only)
		munmap(a.mem, a.len);
}

static const struct status_case statuses[] = {
	{ OP_WRITE, false, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR },
	{ OP_SEND, false, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL },
	{ OP_ATOMIC, false, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR },
	{ OP_READ, false, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR },
	{ OP_GATHER, false, IBV_WC_LOC_PROT_ERR, 0, -1 },
	{ OP_SCATTER, false, IBV_WC_LOC_PROT_ERR, 0, -1 },
	{ OP_WRITE, true, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR },
	{ OP_SEND, true, IBV_WC_REM_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_EVENT_QP_FATAL },
	{ OP_ATOMIC, true, IBV_WC_REM_ACCESS_ERR, 0, IBV_EVENT_QP_ACCESS_ERR },
	{ OP_SCATTER, true, IBV_WC_LOC_PROT_ERR, 0, -1 },
};

#define NUM_STATUSES	(sizeof(statuses) / sizeof(*statuses))

static void run_status(void)
{
	for (unsigned int i = 0; i < NUM_STATUSES; i++)
		if (!t.only_remote || !ops[statuses[i].op].local)
			run_one_status(&statuses[i]);
}

/* ---- drop */

/* No region is as memory that is unmapped: both sides see that of a QP that lives. */
static void check_dropped(struct qp_pair *p)
{
	const struct status_case *c = statuses;
	struct ibv_wc wc;

	while (c->op != op || c->read_only)
		c++;
	if (!t.peer.server) {
		wc = sleep_wc(p);
		printf("drop op=%s: %d\n", ops[op].name, wc.status);
		CHECK(wc.status == c->client);
		CHECK(qp_state(p->qp) == IBV_QPS_ERR);
		return;
	}
	if (c->server != IBV_WC_SUCCESS)
		CHECK(sleep_wc(p).status == c->server);
	if (c->event >= 0)
		CHECK(next_event() == c->event);
	CHECK(qp_state(p->qp) == (ops[op].local ? IBV_QPS_RTS : IBV_QPS_ERR));
}

/* The same direction of the QP meets another missing page: it need not wait for the first. */
static void use_anew(struct qp_pair *p, const struct area *a)
{
	struct region to = exchange_region(a);

	CHECK(!qp_reset(p->qp));
	p->mine.psn ^= 0x5a5a5a;
	peer_exchange(&t.peer, &p->mine, &p->theirs, sizeof(p->mine));
	if (qp_init(p->qp, &t.conn) ||
	    qp_to_rtr(p->qp, &t.conn, t.peer.gid_index, &p->theirs) ||
	    qp_to_rts(p->qp, &t.conn, p->mine.psn))
		die("QP to RTS: %s", strerror(errno));
	if (t.peer.server && op == OP_SEND)
		post_recv(p, a, 0, HELD_PAGE);
	peer_barrier(&t.peer);
	if (!t.peer.server)
		post_send(p, ops[op].opcode, a, 0, 8, to);
	if (!t.peer.server || op == OP_SEND)
		CHECK(sleep_wc(p).status == IBV_WC_SUCCESS);
	peer_barrier(&t.peer);
}

static void run_drop(void)
{
	bool cold = ops[op].local != t.peer.server;
	struct held *h = NULL;
	struct qp_pair p = { 0 };
	struct area a, b = { 0 };
	struct region to;

	if (cold) {
		b = area_anon(HELD_PAGE, COLD_ACCESS);
		h = open_cold(&a, 2);
		held_set(h, HELD_FOREVER);
	} else {
		a = area_anon(HELD_PAGE, COLD_ACCESS & ~IBV_ACCESS_ON_DEMAND);
	}
	pair_open(&p, IBV_QPT_RC);
	to = exchange_region(&a);
	if (!cold)
		to.addr += HELD_PAGE;
	if (t.peer.server && op == OP_SEND)
		post_recv(&p, &a, HELD_PAGE, HELD_PAGE);
	peer_barrier(&t.peer);
	if (!t.peer.server)
		post_send(&p, ops[op].opcode, &a, cold ? HELD_PAGE : 0, 8, to);
	if (cold) {
		held_wait(h, 2);
		CHECK(!ibv_dereg_mr(a.mr));
	}
	check_dropped(&p);
	use_anew(&p, cold ? &b : &a);
	if (cold)
		held_set(h, 0);
	pair_close(&p);
	if (cold)
		area_drop(&b);
	else
		CHECK(!ibv_dereg_mr(a.mr));
	CHECK(!munmap(a.mem, a.len));
}

/* ---- die */

static atomic_bool go;

static void *advise_for_ever(void *arg)
{
	struct area *a = arg;
	struct ibv_sge sge = { (uintptr_t)a->mem + 2 * HELD_PAGE, HELD_PAGE, a->mr->lkey };

	while (!atomic_load(&go))
		usleep(1000);
	ibv_advise_mr(t.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, IBV_ADVISE_MR_FLAG_FLUSH, &sge,
		      1);
	die("an advice about a page that never comes has ended");
}

/*
 * The page that is awaited comes when the region has gone.  The QP's memory, like
 * any, cannot be unmapped before it comes: who waits has the process's mmap_lock.
 */
static void leave(struct held *h, struct qp_pair *p, struct area *a)
{
	CHECK(!qp_error(p->qp));
	CHECK(!ibv_dereg_mr(a->mr));
	held_set(h, 0);
	pair_close(p);
	shutdown(t.peer.sock, SHUT_WR);
}

static void end_early(bool killed)
{
	bool cold = ops[op].local != t.peer.server;
	struct held *h = NULL;
	struct qp_pair p = { 0 };
	struct region to;
	struct ibv_wc wc;
	pthread_t thread;
	struct area a;
	char c;

	t.conn.timeout = 14;
	if (cold) {
		h = open_cold(&a, 3);
		held_set(h, HELD_FOREVER);
		/* The thread starts now, because nothing can be mapped while a page is awaited. */
		if (killed && pthread_create(&thread, NULL, advise_for_ever, &a))
			die("pthread_create");
	} else {
		a = area_anon(2 * HELD_PAGE, COLD_ACCESS & ~IBV_ACCESS_ON_DEMAND);
	}
	pair_open(&p, IBV_QPT_RC);
	to = exchange_region(&a);
	if (!cold)
		to.addr += HELD_PAGE;
	if (t.peer.server && op == OP_SEND)
		post_recv(&p, &a, HELD_PAGE, LEN);
	peer_barrier(&t.peer);
	if (!t.peer.server)
		post_send(&p, ops[op].opcode, &a, cold ? HELD_PAGE : 0, 8, to);
	if (cold) {
		held_wait(h, 2);
		if (!killed) {
			leave(h, &p, &a);
			return;
		}
		/*
		 * The device awaits the page of the request, and a thread of ours awaits another.
		 */
		atomic_store(&go, true);
		usleep(50000);
		kill(getpid(), SIGKILL);
	}
	if (recv(t.peer.sock, &c, 1, MSG_WAITALL) > 0)
		die("the other side goes on");
	if (!t.peer.server) {
		wc = sleep_wc(&p);
		printf("early op=%s: %d\n", ops[op].name, wc.status);
		/*
		 * The QP had gone, or the page with its server before: what the
		 * process has mapped lives as long as somebody awaits a page of it.
		 */
		CHECK(wc.status == IBV_WC_RETRY_EXC_ERR ||
		      (killed && wc.status == (op == OP_SEND ? IBV_WC_REM_OP_ERR :
							       IBV_WC_REM_ACCESS_ERR)));
	} else {
		CHECK(qp_state(p.qp) == IBV_QPS_RTS);
	}
	pair_close(&p);
	area_drop(&a);
}

static void run_leave(void)
{
	end_early(false);
}

static void run_die(void)
{
	end_early(true);
}

/* ---- main */

static enum op op_of(const char *name)
{
	for (enum op i = 0; i < NUM_OPS; i++)
		if (!strcmp(ops[i].name, name))
			return i;
	die("no operation %s", name);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "wire", run_wire }, { "resume", run_resume }, { "status", run_status },
	{ "drop", run_drop }, { "leave", run_leave }, { "die", run_die }, { "beside", run_beside },
	{ "isolate", run_isolate }, { "cost", run_cost },
};

int main(int argc, char **argv)
{
	void (*run)(void) = NULL;
	sigset_t told;
	int opt;

	/* All threads inherit it: only bring_when_told() takes the signal. */
	sigemptyset(&told);
	sigaddset(&told, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &told, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, PEER_OPTIONS "c:o:H:wt:n:T:s:b:z:m:ur")) != -1) {
		if (peer_option(&t.peer, opt, optarg))
			continue;
		switch (opt) {
		case 'c':
			for (unsigned int i = 0; i < sizeof(cases) / sizeof(*cases); i++)
				if (!strcmp(cases[i].name, optarg))
					run = cases[i].run;
			break;
		case 'o':
			op = op_of(optarg);
			break;
		case 'H':
			t.hold_ms = parse_number(optarg, 0, INT_MAX);
			break;
		case 'w':
			t.until_told = true;
			break;
		case 't':
			t.conn.min_rnr_timer = parse_number(optarg, 0, INT_MAX);
			break;
		case 'n':
			t.rounds = parse_number(optarg, 0, INT_MAX);
			break;
		case 'T':
			t.run_ms = parse_number(optarg, 0, INT_MAX);
			break;
		case 's':
			t.turns = parse_number(optarg, 0, INT_MAX);
			break;
		case 'b':
			t.settle_ms = parse_number(optarg, 0, INT_MAX);
			break;
		case 'z':
			t.page_size = parse_number(optarg, 0, INT_MAX);
			break;
		case 'm':
			t.mode = optarg;
			break;
		case 'u':
			t.datagram = true;
			break;
		case 'r':
			t.only_remote = true;
			break;
		default:
			run = NULL;
			optind = argc;
			break;
		}
	}
	if (!run)
		die("usage: qhca-fault -d DEVICE -g GID_INDEX -p PORT -c CASE [options] [HOST]");
	t.peer.host = argv[optind];
	srand48(now_ns() ^ getpid());
	peer_open(&t.peer);
	t.pd = ibv_alloc_pd(t.peer.ctx);
	if (!t.pd)
		die("ibv_alloc_pd: %s", strerror(errno));
	run();
	CHECK(!ibv_dealloc_pd(t.pd));
	peer_close(&t.peer);
	return tap_end();
}
