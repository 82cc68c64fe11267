// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/* qhca-fault: what page faults cost those who have them, and others. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "fault.h"
#include "held.h"

#define GRH		40

struct samples {
	double *us;
	unsigned int num, room;
};

static void sample(struct samples *s, uint64_t ns)
{
	if (s->num == s->room) {
		s->room = s->room ? 2 * s->room : 1024;
		s->us = realloc(s->us, s->room * sizeof(*s->us));
		if (!s->us)
			die("no memory");
	}
	s->us[s->num++] = ns / 1e3;
}

static int by_size(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double quantile(struct samples *s, double q)
{
	if (!s->num)
		die("nothing was measured");
	qsort(s->us, s->num, sizeof(*s->us), by_size);
	return s->us[(unsigned int)(q * (s->num - 1) + 0.5)];
}

static void prefetch(struct area *a, uint8_t *mem, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)mem, len, a->mr->lkey };
	int rc = ibv_advise_mr(t.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);

	if (rc)
		die("ibv_advise_mr: %s", strerror(rc));
}

/* ---- isolate: one QP waits for pages, another works */

#define BULK		65536u		/* bytes of a WRITE */
#define BULKS		8		/* under way */
#define DATAGRAM	2048u
#define WINDOW		48		/* datagrams not acknowledged */
#define ACK_EVERY	16

struct bystander {
	struct qp_pair p;
	struct area a;
	struct region to;
};

/*
 * The other QP: one WRITE after another, to a page that is cold, or there.  Then the WRITE
 * tells the server's program to ask the driver for a cold page instead, and to answer: what
 * its kernel does to bring one, from an interrupt to the page, delays everything on a machine
 * of few processors (for 25 ms a page in a machine in a machine), and is the same for both.
 * They differ in whether the device has a request that waits for the page.
 */
struct neighbour {
	struct qp_pair p;
	struct area a;
	struct region warm, cold;	/* cold: the next one */
	uint8_t *by_driver;		/* the next one that the server asks its driver for */
	bool faulting;
	atomic_bool stop;
	atomic_uint writes;		/* begun in this turn */
	pthread_t thread;
};

/* What the first octet of the warm page tells the server. */
#define BRING_A_PAGE	'b'
#define NO_MORE		'n'

/* What the bystander achieved in one round, beside a neighbour of one kind. */
struct tally {
	double mib, seconds;
	struct samples lat;
	unsigned int writes;		/* the neighbour's */
	unsigned int during;		/* of them, begun while this was measured */
};

static uint8_t *slot(struct bystander *b, unsigned int i)
{
	return b->a.mem + i * (GRH + DATAGRAM);
}

static void listen_to_datagrams(struct bystander *b)
{
	for (unsigned int i = 0; i < DEPTH; i++)
		post_recv(&b->p, &b->a, i * (GRH + DATAGRAM), GRH + DATAGRAM);
}

/*
 * Answers each 'e', and every sixteenth of the rest; ends with a 'q'.  Asleep
 * between them: two that spin leave the devices' threads no processor of two.
 */
static void serve_datagrams(struct bystander *b)
{
	unsigned int next = 0, num = 0;
	const struct region none = { 0 };
	char what;

	do {
		struct ibv_wc wc = sleep_wc(&b->p);

		if (wc.status != IBV_WC_SUCCESS)
			die("datagram: %s", ibv_wc_status_str(wc.status));
		if (wc.wr_id == WR_SEND)
			continue;
		what = slot(b, next)[GRH];
		post_recv(&b->p, &b->a, next * (GRH + DATAGRAM), GRH + DATAGRAM);
		next = (next + 1) % DEPTH;
		if (what == 'e' || (what == 'd' && ++num % ACK_EVERY == 0))
			post_send(&b->p, IBV_WR_SEND, &b->a, DEPTH * (GRH + DATAGRAM), 8, none);
	} while (what != 'q');
}

/* @next_wc: spin_wc() or sleep_wc() */
static void await_answer(struct bystander *b, struct ibv_wc (*next_wc)(struct qp_pair *p))
{
	static unsigned int next;
	struct ibv_wc wc;

	do {
		wc = next_wc(&b->p);
		if (wc.status != IBV_WC_SUCCESS)
			die("datagram: %s", ibv_wc_status_str(wc.status));
	} while (wc.wr_id != WR_RECV);
	post_recv(&b->p, &b->a, next * (GRH + DATAGRAM), GRH + DATAGRAM);
	next = (next + 1) % DEPTH;
}

static void datagram(struct bystander *b, char what, uint32_t len)
{
	const struct region none = { 0 };

	slot(b, DEPTH)[0] = what;
	post_send(&b->p, IBV_WR_SEND, &b->a, DEPTH * (GRH + DATAGRAM), len, none);
}

static void open_bystander(struct bystander *b)
{
	size_t len = (DEPTH + 1) * (GRH + DATAGRAM);

	b->a = area_anon(len > BULK ? len : BULK, COLD_ACCESS & ~IBV_ACCESS_ON_DEMAND);
	memset(b->a.mem, 1, b->a.len);
	pair_open(&b->p, t.datagram ? IBV_QPT_UD : IBV_QPT_RC);
	b->to = exchange_region(&b->a);
	if (t.datagram) {
		struct ibv_ah_attr path = path_to(&b->p.theirs.gid, t.peer.gid_index);

		b->p.ah = ibv_create_ah(t.pd, &path);
		if (!b->p.ah)
			die("ibv_create_ah: %s", strerror(errno));
		listen_to_datagrams(b);
	}
}

static void close_bystander(struct bystander *b)
{
	pair_close(&b->p);
	if (b->p.ah)
		CHECK(!ibv_destroy_ah(b->p.ah));
	area_drop(&b->a);
}

static uint64_t send_datagrams(struct bystander *b, uint64_t end)
{
	unsigned int flying = 0;
	uint64_t num = 0;

	for (;;) {
		bool late = now_ns() >= end;

		if (late && num % ACK_EVERY == 0 && !flying)
			return num * DATAGRAM;
		if (flying < WINDOW && (!late || num % ACK_EVERY)) {
			datagram(b, 'd', DATAGRAM);
			flying++;
			num++;
			continue;
		}
		await_answer(b, spin_wc);
		flying -= ACK_EVERY;
	}
}

static uint64_t send_writes(struct bystander *b, uint64_t end)
{
	unsigned int flying = 0;
	uint64_t num = 0;

	do {
		while (flying < BULKS && now_ns() < end) {
			post_send(&b->p, IBV_WR_RDMA_WRITE, &b->a, 0, BULK, b->to);
			flying++;
		}
		if (spin_wc(&b->p).status != IBV_WC_SUCCESS)
			die("WRITE failed");
		flying--;
		num++;
	} while (flying);
	return num * BULK;
}

static void bandwidth(struct bystander *b, uint64_t ns, struct tally *sum)
{
	uint64_t start = now_ns(), end = start + ns, bytes;

	bytes = t.datagram ? send_datagrams(b, end) : send_writes(b, end);
	sum->mib += bytes / 1048576.0;
	sum->seconds += (now_ns() - start) / 1e9;
}

static void rest_until(uint64_t ns)
{
	struct timespec until = { ns / 1000000000, ns % 1000000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
		;
}

/*
 * One request in each PAUSE_NS, asleep meanwhile.  Without a pause the processors of two
 * machines have no time left, and the slowest hundredth are those that waited for a
 * processor.  A program that polls takes one from the threads that bring its answer.
 */
#define PAUSE_NS	1000000

static void latencies(struct bystander *b, uint64_t ns, struct samples *s)
{
	uint64_t end = now_ns() + ns, start;
	struct ibv_wc wc;

	while ((start = now_ns()) < end) {
		if (t.datagram) {
			datagram(b, 'e', 8);
			await_answer(b, sleep_wc);
		} else {
			post_send(&b->p, IBV_WR_RDMA_WRITE, &b->a, 0, 8, b->to);
			wc = sleep_wc(&b->p);
			if (wc.status != IBV_WC_SUCCESS)
				die("WRITE failed: %s", ibv_wc_status_str(wc.status));
		}
		sample(s, now_ns() - start);
		rest_until(start + PAUSE_NS);
	}
}

static struct ibv_wc neighbour_wc(struct neighbour *n)
{
	struct ibv_wc wc = sleep_wc(&n->p);

	if (wc.status != IBV_WC_SUCCESS)
		die("the neighbour's request failed: %s", ibv_wc_status_str(wc.status));
	return wc;
}

static void write_to(struct neighbour *n, struct region page)
{
	post_send(&n->p, IBV_WR_RDMA_WRITE, &n->a, 0, 8, page);
	neighbour_wc(n);
}

static void order(struct neighbour *n, char what)
{
	n->a.mem[0] = what;
	post_send(&n->p, IBV_WR_RDMA_WRITE_WITH_IMM, &n->a, 0, 8, n->warm);
	neighbour_wc(n);
}

static void await_word(struct neighbour *n)
{
	post_recv(&n->p, &n->a, 0, 8);
}

/* Lasts until the server has the page, as a WRITE to it does. */
static void order_page(struct neighbour *n)
{
	await_word(n);
	order(n, BRING_A_PAGE);
	neighbour_wc(n);
}

static void *bring_pages(void *arg)
{
	const struct region none = { 0 };
	struct neighbour *n = arg;

	for (;;) {
		if (neighbour_wc(n).wr_id == WR_SEND)
			continue;
		if (n->a.mem[0] == NO_MORE)
			return NULL;
		await_word(n);
		prefetch(&n->a, n->by_driver, HELD_PAGE);
		n->by_driver += HELD_PAGE;
		post_send(&n->p, IBV_WR_SEND, &n->a, 0, 8, none);
	}
}

/* A page is awaited all the time: by a request in the device if it faults, or by the driver. */
static void *be_neighbour(void *arg)
{
	struct neighbour *n = arg;

	while (!atomic_load(&n->stop)) {
		atomic_fetch_add(&n->writes, 1);
		if (n->faulting) {
			write_to(n, n->cold);
			n->cold.addr += HELD_PAGE;
		} else {
			order_page(n);
		}
	}
	return NULL;
}

static void measure(struct bystander *b, struct neighbour *n, bool faulting, struct tally *sum)
{
	uint64_t ns = t.run_ms * 1000000ull;
	unsigned int writes;

	n->faulting = faulting;
	atomic_store(&n->writes, 0);
	atomic_store(&n->stop, false);
	if (pthread_create(&n->thread, NULL, be_neighbour, n))
		die("pthread_create");
	rest_until(now_ns() + t.settle_ms * 1000000ull);
	writes = atomic_load(&n->writes);
	bandwidth(b, ns, sum);
	latencies(b, ns, &sum->lat);
	sum->during += atomic_load(&n->writes) - writes;
	atomic_store(&n->stop, true);
	pthread_join(n->thread, NULL);
	sum->writes += n->writes;
}

/*
 * Turns of the two kinds alternate so often that a busy machine is as busy in
 * both, and so that neither is always the first.
 */
static void measure_pair(struct bystander *b, struct neighbour *n, unsigned int round)
{
	struct tally sum[2] = { 0 };

	for (unsigned int i = 2 * t.turns * round; i < 2 * t.turns * (round + 1); i++) {
		bool faulting = (i ^ i >> 1) & 1;

		measure(b, n, faulting, &sum[faulting]);
	}
	for (int f = 0; f < 2; f++) {
		struct tally *s = &sum[f];

		printf("isolate round=%u fault=%d rate=%.2f p99=%.2f median=%.2f n=%u writes=%u "
		       "during=%u\n",
		       round, f, s->mib / s->seconds, quantile(&s->lat, 0.99),
		       quantile(&s->lat, 0.5), s->lat.num, s->writes, s->during);
		free(s->lat.us);
	}
}

/* For turns of one kind: as many for each as it lasts for, and some if it ends late. */
static unsigned int pages_needed(void)
{
	return t.rounds * t.turns * (2 * t.run_ms / t.hold_ms + 20);
}

void run_isolate(void)
{
	size_t pages = pages_needed(), len = (1 + 2 * pages) * HELD_PAGE;
	struct neighbour n = { 0 };
	struct bystander b = { 0 };

	t.conn.mtu = IBV_MTU_4096;
	if (t.peer.server) {
		struct held *h = held_open(len);

		n.a = area_of(held_mem(h), len, COLD_ACCESS);
		n.by_driver = n.a.mem + (1 + pages) * HELD_PAGE;
		held_set(h, t.hold_ms * 1000000ull);
	} else {
		n.a = area_anon(HELD_PAGE, IBV_ACCESS_LOCAL_WRITE);
	}
	open_bystander(&b);
	pair_open(&n.p, IBV_QPT_RC);
	n.warm = n.cold = exchange_region(&n.a);
	n.cold.addr += HELD_PAGE;
	if (t.peer.server) {
		await_word(&n);
		if (pthread_create(&n.thread, NULL, bring_pages, &n))
			die("pthread_create");
	}
	peer_barrier(&t.peer);
	if (!t.peer.server) {
		write_to(&n, n.warm);	/* from now on it is */
		for (unsigned int i = 0; i < t.rounds; i++)
			measure_pair(&b, &n, i);
		if (t.datagram)
			datagram(&b, 'q', 8);
		order(&n, NO_MORE);
	} else if (t.datagram) {
		serve_datagrams(&b);
	}
	if (t.peer.server)
		pthread_join(n.thread, NULL);
	peer_barrier(&t.peer);
	pair_close(&n.p);
	close_bystander(&b);
	area_drop(&n.a);
}

/* ---- beside: one QP waits for a page, another works; no time is measured */

#define REQUESTS	500

static void use_bystander(struct bystander *b)
{
	for (unsigned int i = 0; i < REQUESTS; i++) {
		if (t.datagram) {
			datagram(b, 'e', 8);
			await_answer(b, spin_wc);
			continue;
		}
		post_send(&b->p, IBV_WR_RDMA_WRITE, &b->a, 0, i % 8 ? 8 : BULK, b->to);
		if (spin_wc(&b->p).status != IBV_WC_SUCCESS)
			die("WRITE failed");
	}
}

void run_beside(void)
{
	struct bystander b = { 0 };
	struct held *h = NULL;
	struct qp_pair p = { 0 };
	struct region page;
	struct ibv_wc wc;
	struct area a;

	t.conn.mtu = IBV_MTU_4096;
	if (t.peer.server) {
		h = open_cold(&a, 2);
		held_set(h, HELD_FOREVER);
	} else {
		a = area_anon(HELD_PAGE, IBV_ACCESS_LOCAL_WRITE);
	}
	open_bystander(&b);
	pair_open(&p, IBV_QPT_RC);
	page = exchange_region(&a);
	page.addr += HELD_PAGE;
	peer_barrier(&t.peer);

	if (t.peer.server)
		held_wait(h, 2);
	else
		post_send(&p, IBV_WR_RDMA_WRITE, &a, 0, 8, page);
	peer_barrier(&t.peer);		/* the page is awaited */
	if (!t.peer.server) {
		use_bystander(&b);
		if (t.datagram)
			datagram(&b, 'q', 8);
		CHECK(!ibv_poll_cq(p.cq, 1, &wc));
		printf("beside requests=%u\n", REQUESTS);
	} else if (t.datagram) {
		serve_datagrams(&b);
	}
	peer_barrier(&t.peer);		/* and still is absent */
	if (t.peer.server)
		held_set(h, 0);
	else
		CHECK(sleep_wc(&p).status == IBV_WC_SUCCESS);
	peer_barrier(&t.peer);
	pair_close(&p);
	close_bystander(&b);
	area_drop(&a);
}

/* ---- cost: of a page that is not there */

enum mode { COLD, ADVISED, PINNED, NUM_MODES };
static const char *const mode_names[] = { "cold", "advised", "pinned" };

static struct area open_pages(size_t len, bool on_demand)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *mem;

	if (t.page_size > HELD_PAGE)
		flags |= MAP_HUGETLB;
	mem = mmap(NULL, len, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (mem != MAP_FAILED && t.page_size == HELD_PAGE)
		madvise(mem, len, MADV_NOHUGEPAGE);
	return area_of(mem, len, on_demand ? COLD_ACCESS : COLD_ACCESS & ~IBV_ACCESS_ON_DEMAND);
}

static void prepare(struct area *a, enum mode mode, struct samples *advice)
{
	if (mode == PINNED) {
		memset(a->mem, 0, a->len);
		return;
	}
	if (madvise(a->mem, a->len, MADV_DONTNEED))
		die("MADV_DONTNEED: %s", strerror(errno));
	for (size_t off = 0; mode == ADVISED && off < a->len; off += t.page_size) {
		uint64_t start = now_ns();

		prefetch(a, a->mem + off, t.page_size);
		sample(advice, now_ns() - start);
	}
}

static void tell(const char *mode, struct samples *s)
{
	printf("cost size=%u mode=%s median=%.2f p99=%.2f n=%u\n", t.page_size, mode,
	       quantile(s, 0.5), quantile(s, 0.99), s->num);
}

static void cost_of(enum mode mode)
{
	size_t pages = t.page_size > HELD_PAGE ? 8 : 64;
	struct samples took = { 0 }, advice = { 0 };
	struct qp_pair p = { 0 };
	struct region to;
	struct area a;

	if (t.peer.server)
		a = open_pages(pages * t.page_size, mode != PINNED);
	else
		a = area_anon(t.page_size, IBV_ACCESS_LOCAL_WRITE);
	pair_open(&p, IBV_QPT_RC);
	to = exchange_region(&a);
	memset(a.mem, 0x77, a.len);
	for (unsigned int i = 0; i < t.rounds; i++) {
		if (t.peer.server)
			prepare(&a, mode, &advice);
		peer_barrier(&t.peer);
		for (size_t k = 0; !t.peer.server && k < pages; k++) {
			struct region page = { to.addr + k * t.page_size, to.rkey };
			uint64_t start = now_ns();

			post_send(&p, IBV_WR_RDMA_WRITE, &a, 0, t.page_size, page);
			CHECK(spin_wc(&p).status == IBV_WC_SUCCESS);
			sample(&took, now_ns() - start);
		}
		peer_barrier(&t.peer);
		for (size_t k = 0; t.peer.server && k < a.len; k += 4093)
			CHECK(a.mem[k] == 0x77);
	}
	if (!t.peer.server)
		tell(mode_names[mode], &took);
	else if (mode == ADVISED)
		tell("advice", &advice);
	free(took.us);
	free(advice.us);
	pair_close(&p);
	area_drop(&a);
}

void run_cost(void)
{
	if (!t.page_size || t.page_size % HELD_PAGE)
		die("-z: whole pages");
	t.conn.mtu = IBV_MTU_4096;
	for (enum mode mode = 0; mode < NUM_MODES; mode++)
		if (!t.mode || !strcmp(t.mode, mode_names[mode]))
			cost_of(mode);
}
