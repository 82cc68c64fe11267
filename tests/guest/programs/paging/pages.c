// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-pages: memory on demand of one machine, used by another.
 *
 *   qhca-pages -d DEVICE -g GID-INDEX -p PORT -m MODE [-i] [-n PAGES] [-M MIB]
 *              [-T SECONDS] [HOST]
 *
 * The server has the memory and never touches it first; the client writes and
 * reads it.  Both are given the same options.  -i: an implicit region, else one
 * of the memory alone.  Each side prints TAP.
 *
 * scatter  The client touches PAGES pages of which no two are neighbours.  The
 *          translation tables, of which the driver tells, grow with them, stay
 *          below a quarter of the pages, and shrink when pages go.
 * bulk     MIB of memory, more than there is, written and read back whole.
 * storm    For SECONDS, and until an access has failed, the server takes pages
 *          away under the client's traffic: in zone KEEP by swapping them out
 *          and by forking, in DROP by discarding and replacing them, in LOSE by
 *          unmapping them for a while, so that accesses fail.  What is in a
 *          place is its own pattern, or zeros where pages may be new; pages
 *          that were freed are taken and hold canaries.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/tap.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define PAGE		4096ull
#define STRETCH		(512 * PAGE)	/* what one table of the driver covers */
#define EVERY		20u		/* scatter: one page of so many */
#define LANES		16u
#define SLOT		(256u << 10)	/* of a lane's buffer; most of a request */
#define TOUCH		64u		/* bytes in a scattered page */
#define ZONE		(8ull << 20)	/* bytes of a zone of the storm */
#define CANARY		0xdbdbdbdbdbdbdbdbull

enum zone { KEEP, DROP, LOSE, ZONES };

struct lane {
	struct ibv_qp *qp;
	struct qp_address here, there;
	enum zone zone;
	uint64_t *buf;
	bool read;
	uint64_t off;
	uint32_t len;
};

struct target {
	uint64_t addr;
	uint32_t rkey;
	uint32_t pad;
};

enum message_type { RESET, DONE };

struct message {
	uint32_t type, lane, psn, pad;
};

static struct {
	struct peer peer;
	struct connection conn;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr, *buf_mr;
	struct lane lane[LANES];
	struct target target;
	uint8_t *mem;
	uint64_t size;

	const char *mode;
	bool implicit;
	uint64_t pages, mib;
	unsigned int seconds;

	uint64_t seed, next, end;	/* client: where a pass is */
	bool reading;
	uint64_t done, refused;
} t = { .pages = 5000, .mib = 64, .seconds = 5, .seed = 88172645463325252ull };

static void point(bool ok, const char *what)
{
	tap_point(ok, "%s: %s", t.mode, what);
}

static uint32_t below(uint64_t *seed, uint32_t limit)
{
	/* This is xorshift64*: Vigna, "An experimental exploration of Marsaglia's xorshift". */
	*seed ^= *seed >> 12;
	*seed ^= *seed << 25;
	*seed ^= *seed >> 27;
	return (uint32_t)(*seed * 0x2545f4914f6cdd1dull >> 32) % limit;
}

/* What belongs into the word at @off, never zero. */
static uint64_t word_of(uint64_t off)
{
	return (off / 8 + 1) * 0x9e3779b97f4a7c15ull | 1;
}

static void fill(uint64_t *to, uint64_t off, size_t len)
{
	for (size_t i = 0; i < len / 8; i++)
		to[i] = word_of(off + 8 * i);
}

static bool is_right(const volatile uint64_t *from, uint64_t off, size_t len, bool or_zero)
{
	for (size_t i = 0; i < len / 8; i++) {
		uint64_t word = from[i];

		if (word == word_of(off + 8 * i) || (or_zero && !word))
			continue;
		printf("# at %#llx: %#llx, not %#llx\n", (unsigned long long)off + 8 * i,
		       (unsigned long long)word, (unsigned long long)word_of(off + 8 * i));
		return false;
	}
	return true;
}

/* ---- both sides */

static void bring_up(struct lane *l)
{
	int rc = qp_reset(l->qp);

	if (!rc)
		rc = qp_connect(l->qp, &t.conn, t.peer.gid_index, &l->there, l->here.psn);
	if (rc)
		die("connecting a QP: %s", strerror(rc));
}

static void connect_all(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 1, 1, 1, 0 } };

	t.conn = (struct connection) {
		/*
		 * Eight times 4.3 s: a READ is answered when its pages are there, and
		 * others' come first from a disk for swapping.
		 */
		.type = IBV_QPT_RC, .mtu = IBV_MTU_4096, .timeout = 20, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 4, .dest_rd_atomic = 4,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};
	t.pd = ibv_alloc_pd(t.peer.ctx);
	t.cq = ibv_create_cq(t.peer.ctx, 8 * LANES, NULL, NULL, 0);
	if (!t.pd || !t.cq)
		die("set-up: %s", strerror(errno));
	init.send_cq = init.recv_cq = t.cq;
	for (unsigned int i = 0; i < LANES; i++) {
		struct lane *l = &t.lane[i];

		l->qp = ibv_create_qp(t.pd, &init);
		if (!l->qp)
			die("ibv_create_qp: %s", strerror(errno));
		l->here = (struct qp_address) {
			.qpn = l->qp->qp_num, .psn = i, .gid = t.peer.gid,
		};
		peer_exchange(&t.peer, &l->here, &l->there, sizeof(l->here));
		bring_up(l);
	}
	peer_barrier(&t.peer);
}

static void disconnect_all(void)
{
	for (unsigned int i = 0; i < LANES; i++)
		if (ibv_destroy_qp(t.lane[i].qp))
			die("ibv_destroy_qp: %s", strerror(errno));
	if (ibv_destroy_cq(t.cq) || ibv_dealloc_pd(t.pd))
		die("ending: %s", strerror(errno));
}

/* ---- client */

static void post(struct lane *l, bool read, uint64_t off, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)l->buf, len, t.buf_mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = l - t.lane,
		.opcode = read ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED, .num_sge = 1, .sg_list = &sge,
		.wr.rdma = { t.target.addr + off, t.target.rkey },
	};

	l->read = read;
	l->off = off;
	l->len = len;
	if (read)
		memset(l->buf, 0xee, len);
	else
		fill(l->buf, off, len);
	if (ibv_post_send(l->qp, &wr, &bad))
		die("ibv_post_send: %s", strerror(errno));
}

/* Connects again after an access that was refused. */
static void reset_lane(struct lane *l)
{
	struct message m = { .type = RESET, .lane = l - t.lane };

	l->here.psn = m.psn = below(&t.seed, 1 << 24);
	peer_send(&t.peer, &m, sizeof(m));
	peer_receive(&t.peer, &m, sizeof(m));
	l->there.psn = m.psn;
	bring_up(l);
}

/* Gives each lane one request after another until @next has none. */
static bool run(bool (*next)(struct lane *l), bool or_zero)
{
	unsigned int under_way = 0;
	bool good = true;
	struct ibv_wc wc;

	for (unsigned int i = 0; i < LANES; i++)
		under_way += next(&t.lane[i]);
	while (under_way) {
		struct lane *l;

		if (!ibv_poll_cq(t.cq, 1, &wc))
			continue;
		l = &t.lane[wc.wr_id];
		if (wc.status == IBV_WC_SUCCESS) {
			t.done++;
			if (l->read && !is_right(l->buf, l->off, l->len,
						 or_zero && l->zone != KEEP))
				good = false;
		} else if (or_zero && l->zone == LOSE && wc.status == IBV_WC_REM_ACCESS_ERR) {
			t.refused++;
			reset_lane(l);
		} else {
			die("at %#llx: %s", (unsigned long long)l->off,
			    ibv_wc_status_str(wc.status));
		}
		under_way -= !(good && next(l));
	}
	return good;
}

static bool next_chunk(struct lane *l)
{
	uint64_t left = t.end - t.next;
	uint32_t len = left < SLOT ? left : SLOT;

	if (!len)
		return false;
	post(l, t.reading, t.next, len);
	t.next += len;
	return true;
}

static bool pass(bool read, uint64_t from, uint64_t to)
{
	t.reading = read;
	t.next = from;
	t.end = to;
	return run(next_chunk, false);
}

/* The @i-th page of scatter's, in an order without order. */
static uint64_t scattered(uint64_t i, uint64_t from, uint64_t to)
{
	uint64_t n = to - from, k = from + i * 7919 % n;

	return (k * EVERY + k * 2654435761u % (EVERY - 1)) * PAGE;
}

static uint64_t part_from;

static bool next_page(struct lane *l)
{
	if (t.next == t.end)
		return false;
	post(l, t.reading, scattered(t.next++ - part_from, part_from, t.end), TOUCH);
	return true;
}

static bool touch(bool read, uint64_t from, uint64_t to)
{
	t.reading = read;
	t.next = part_from = from;
	t.end = to;
	return run(next_page, false);
}

static uint64_t deadline;

static bool next_in_storm(struct lane *l)
{
	uint32_t len = (1 + below(&t.seed, 4096)) * 16;
	uint64_t off = below(&t.seed, (ZONE - len) / 8) * 8;

	/*
	 * The storm lasts until an access has met a hole, too, which may take longer on a slow
	 * machine.
	 */
	if (now_ns() > deadline && (l->zone != LOSE || t.refused))
		return false;
	post(l, below(&t.seed, 2), l->zone * ZONE + off, len);
	return true;
}

static void client(void)
{
	uint64_t quarter = t.pages / 4;

	t.buf_mr = NULL;
	for (unsigned int i = 0; i < LANES; i++) {
		struct lane *l = &t.lane[i];

		l->zone = i < LANES / 2 ? KEEP : i < LANES - 2 ? DROP : LOSE;
	}
	t.lane[0].buf = mmap(NULL, (size_t)LANES * SLOT, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned int i = 1; i < LANES; i++)
		t.lane[i].buf = t.lane[0].buf + (size_t)i * SLOT / 8;
	t.buf_mr = ibv_reg_mr(t.pd, t.lane[0].buf, (size_t)LANES * SLOT, IBV_ACCESS_LOCAL_WRITE);
	if (!t.buf_mr)
		die("ibv_reg_mr: %s", strerror(errno));
	peer_receive(&t.peer, &t.target, sizeof(t.target));

	if (!strcmp(t.mode, "scatter")) {
		touch(false, 0, quarter);
		peer_barrier(&t.peer);
		peer_barrier(&t.peer);
		touch(false, quarter, t.pages);
		peer_barrier(&t.peer);
		peer_barrier(&t.peer);
		point(touch(true, 0, t.pages), "every page holds what was written");
		peer_barrier(&t.peer);
		point(t.done == 2 * t.pages, "all pages were touched twice");
	} else if (!strcmp(t.mode, "bulk")) {
		point(pass(false, 0, t.size), "all of the memory is written");
		point(pass(true, 0, t.size), "all of the memory holds what was written");
		peer_barrier(&t.peer);
	} else {
		struct message m = { .type = DONE };
		bool good;

		pass(false, 0, t.size);
		peer_barrier(&t.peer);
		t.done = 0;
		deadline = now_ns() + t.seconds * 1000000000ull;
		good = run(next_in_storm, true);
		printf("# %llu requests, %llu refused\n", (unsigned long long)t.done,
		       (unsigned long long)t.refused);
		point(good, "no read returns data of other memory");
		point(t.done > LANES && t.refused, "some accesses succeeded, and some were refused");
		peer_send(&t.peer, &m, sizeof(m));
		peer_barrier(&t.peer);
		good = pass(false, 0, t.size) && pass(true, 0, t.size);
		point(good, "all of the memory is accessible afterwards");
		peer_barrier(&t.peer);
	}
	ibv_dereg_mr(t.buf_mr);
}

/* ---- server */

struct tables {
	unsigned long stretches, kib;
};

/* What the driver tells of our regions on demand. */
static struct tables tables(void)
{
	struct tables sum = { 0 };
	char word[64], last[64] = "";
	FILE *f;

	snprintf(word, sizeof(word), "rdma -dd resource show mr pid %d", getpid());
	f = popen(word, "r");
	if (!f)
		die("rdma: %s", strerror(errno));
	while (fscanf(f, "%63s", word) == 1) {
		/* The driver reports drv_stretches. */
		if (strstr(last, "stretches"))
			sum.stretches += strtoul(word, NULL, 0);
		if (strstr(last, "table_kib"))
			sum.kib += strtoul(word, NULL, 0);
		strcpy(last, word);
	}
	pclose(f);
	if (!sum.kib)
		die("the driver does not tell of tables");
	printf("# %lu stretches, tables of %lu KiB\n", sum.stretches, sum.kib);
	return sum;
}

/* Tables are given back some time after their last page. */
static bool shrink_to(unsigned long stretches, unsigned long kib)
{
	uint64_t limit = now_ns() + 60000000000ull;
	struct tables now;

	do {
		usleep(100000);
		now = tables();
	} while ((now.stretches > stretches || now.kib > kib) && now_ns() < limit);
	return now.stretches <= stretches && now.kib <= kib;
}

static uint64_t resident(void)
{
	static unsigned char vec[1 << 20];
	uint64_t count = 0;

	for (uint64_t off = 0; off < t.size; off += sizeof(vec) * PAGE) {
		uint64_t n = (t.size - off) / PAGE;

		if (n > sizeof(vec))
			n = sizeof(vec);
		if (mincore(t.mem + off, n * PAGE, vec))
			die("mincore: %s", strerror(errno));
		for (uint64_t i = 0; i < n; i++)
			count += vec[i] & 1;
	}
	return count;
}

/* @empty: what the tables took before the client could touch anything. */
static void serve_scatter(struct tables empty)
{
	uint64_t quarter = t.pages / 4, half = quarter * EVERY * PAGE;
	uint64_t covered = t.size / STRETCH;
	struct tables some, all;

	peer_barrier(&t.peer);
	some = tables();
	point(some.stretches >= covered / 4 && some.stretches <= covered / 4 + 2,
	      "there are tables for the pages that were touched");
	peer_barrier(&t.peer);
	peer_barrier(&t.peer);
	all = tables();
	point(all.stretches >= covered && all.stretches <= covered + 2 &&
	      all.kib - empty.kib >= 3 * (some.kib - empty.kib),
	      "tables grow with the pages that are touched");
	point(all.kib - empty.kib < t.pages, "tables take less than a quarter of the pages");
	point(resident() == t.pages, "only these pages are resident");
	peer_barrier(&t.peer);
	peer_barrier(&t.peer);

	madvise(t.mem + half, t.size - half, MADV_DONTNEED);
	point(shrink_to(covered / 4 + 2, some.kib + some.kib / 8), "tables shrink when pages are taken away");
	munmap(t.mem, t.size);
	point(shrink_to(empty.stretches, empty.kib), "no tables are left when all pages are gone");
}

static unsigned long status_kib(const char *file, const char *what)
{
	unsigned long kib = 0;
	char line[200];
	FILE *f = fopen(file, "r");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, what, strlen(what)))
			kib = strtoul(line + strlen(what), NULL, 10);
	if (f)
		fclose(f);
	return kib;
}

static void serve_bulk(void)
{
	unsigned long rss, swapped;
	bool good = true;

	peer_barrier(&t.peer);
	rss = status_kib("/proc/self/status", "VmRSS:");
	swapped = status_kib("/proc/self/status", "VmSwap:");
	printf("# %lu KiB in memory, %lu KiB in swap\n", rss, swapped);
	point(swapped > 0, "pages of the memory were swapped out");
	for (uint64_t off = 0; off < t.size && good; off += t.size / 64)
		good = is_right((void *)(t.mem + off), off, PAGE, false);
	point(good, "the process reads the same data");
}

static volatile bool stop;
static unsigned long broken;

/*
 * Each thread maps in a place of its own: not in the holes of LOSE, which the
 * client may write to.
 */
#define ROOM		(1ull << 20)
static uint8_t *room;

static void *map_at(void *addr, size_t len, int flags)
{
	void *p = mmap(addr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags,
		       -1, 0);

	if (p == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	return p;
}

/* The content stays. */
static void *keeper(void *arg)
{
	uint8_t *zone = t.mem + KEEP * ZONE;
	uint64_t seed = 77 + (uintptr_t)arg;

	while (!stop) {
		uint64_t len = (1 + below(&seed, 128)) * PAGE;
		uint64_t off = below(&seed, (ZONE - len) / PAGE + 1) * PAGE;
		pid_t pid;

		madvise(zone + off, len, MADV_PAGEOUT);
		usleep(below(&seed, 2000));
		if (below(&seed, 16))
			continue;
		/* The kernel copies on write in all zones. */
		pid = fork();
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return NULL;
}

/* Pages go, others take their place at once. */
static void *dropper(void *arg)
{
	uint64_t seed = 77 + (uintptr_t)arg, base = DROP * ZONE;
	uint64_t *spare = (void *)(room + (uintptr_t)arg * ROOM);

	while (!stop) {
		uint64_t len = (1 + below(&seed, 64)) * PAGE;
		uint64_t off = base + below(&seed, (ZONE - len) / PAGE + 1) * PAGE;

		switch (below(&seed, 3)) {
		case 0:
			madvise(t.mem + off, len, MADV_DONTNEED);
			break;
		case 1:
			map_at(t.mem + off, len, MAP_FIXED);
			break;
		default:
			map_at(spare, len, MAP_FIXED);
			fill(spare, off, len);
			if (mremap(spare, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
				   t.mem + off) == MAP_FAILED)
				die("mremap: %s", strerror(errno));
		}
		usleep(below(&seed, 500));
	}
	return NULL;
}

/* For a while nothing is mapped. */
static void *loser(void *arg)
{
	uint64_t seed = 77 + (uintptr_t)arg, base = LOSE * ZONE;
	uint8_t *mine = room + (uintptr_t)arg * ROOM;

	while (!stop) {
		uint64_t len = (1 + below(&seed, 256)) * PAGE;
		uint64_t off = base + below(&seed, (ZONE - len) / PAGE + 1) * PAGE;
		uint8_t *at = t.mem + off, *away = NULL;

		/* mremap() fails for a range with several mappings. */
		if (below(&seed, 2) && mremap(at, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
					      mine) == mine)
			away = mine;
		else
			munmap(at, len);
		usleep(below(&seed, 3000));
		if (!away)
			map_at(at, len, MAP_FIXED_NOREPLACE);
		else if (mremap(away, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, at) == MAP_FAILED)
			die("mremap: %s", strerror(errno));
		usleep(below(&seed, 20000));
	}
	return NULL;
}

/* Takes pages that have just been freed, and sees to it that nobody writes them. */
static void *canary(void *arg)
{
	uint64_t seed = 77 + (uintptr_t)arg;

	while (!stop) {
		size_t len = (1 + below(&seed, 128)) * PAGE;
		volatile uint64_t *p = map_at(room + (uintptr_t)arg * ROOM, len, MAP_FIXED);

		for (size_t i = 0; i < len / 8; i++)
			p[i] = CANARY;
		usleep(below(&seed, 3000));
		for (size_t i = 0; i < len / 8; i++)
			if (p[i] != CANARY)
				__atomic_fetch_add(&broken, 1, __ATOMIC_RELAXED);
		map_at((void *)p, len, MAP_FIXED);
	}
	return NULL;
}

static void serve_storm(void)
{
	static void *(*const work[])(void *) = { keeper, dropper, dropper, loser, canary, canary };
	const unsigned int num = sizeof(work) / sizeof(work[0]);
	unsigned long swap = status_kib("/proc/meminfo", "SwapTotal:");
	unsigned long before = status_kib("/proc/vmstat", "pswpout ");
	struct message m = { .type = RESET };
	pthread_t thread[num];

	peer_barrier(&t.peer);
	room = map_at(NULL, num * ROOM, MAP_NORESERVE);
	for (unsigned int i = 0; i < num; i++)
		if (pthread_create(&thread[i], NULL, work[i], (void *)(uintptr_t)i))
			die("pthread_create");
	for (;;) {
		struct lane *l;

		peer_receive(&t.peer, &m, sizeof(m));
		if (m.type == DONE)
			break;
		l = &t.lane[m.lane % LANES];
		l->there.psn = m.psn;
		l->here.psn = m.psn ^ 0x5a5a5a;
		bring_up(l);
		m.psn = l->here.psn;
		peer_send(&t.peer, &m, sizeof(m));
	}
	stop = true;
	for (unsigned int i = 0; i < num; i++)
		pthread_join(thread[i], NULL);
	munmap(room, num * ROOM);
	printf("# %lu pages were swapped out\n",
	       status_kib("/proc/vmstat", "pswpout ") - before);
	point(!broken, "no page was written after it was freed");
	point(!swap || status_kib("/proc/vmstat", "pswpout ") > before,
	      "pages were swapped out under traffic");
	peer_barrier(&t.peer);
	peer_barrier(&t.peer);
}

static void server(void)
{
	int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_ON_DEMAND;
	struct tables empty = { 0 };

	/*
	 * The last table is the memory's alone, too: a fault brings in what is
	 * there of the next pages, be they of other memory, and that would keep it.
	 */
	t.mem = map_at(NULL, t.size + 2 * STRETCH, MAP_NORESERVE);
	t.mem = (uint8_t *)(((uintptr_t)t.mem + STRETCH - 1) & ~(uintptr_t)(STRETCH - 1));
	madvise(t.mem, t.size, MADV_NOHUGEPAGE);
	t.mr = t.implicit ? ibv_reg_mr(t.pd, NULL, SIZE_MAX, access) :
			    ibv_reg_mr(t.pd, t.mem, t.size, access);
	if (!t.mr)
		die("ibv_reg_mr on demand: %s", strerror(errno));
	if (!strcmp(t.mode, "scatter"))
		empty = tables();
	t.target = (struct target) { .addr = (uintptr_t)t.mem, .rkey = t.mr->rkey };
	peer_send(&t.peer, &t.target, sizeof(t.target));
	if (!strcmp(t.mode, "scatter"))
		serve_scatter(empty);
	else if (!strcmp(t.mode, "bulk"))
		serve_bulk();
	else
		serve_storm();
	if (ibv_dereg_mr(t.mr))
		die("ibv_dereg_mr: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	int opt;

	while ((opt = getopt(argc, argv, PEER_OPTIONS "m:in:M:T:")) != -1) {
		if (peer_option(&t.peer, opt, optarg))
			continue;
		switch (opt) {
		case 'm':
			t.mode = optarg;
			break;
		case 'i':
			t.implicit = true;
			break;
		case 'n':
			t.pages = parse_number(optarg, 0, ULONG_MAX);
			break;
		case 'M':
			t.mib = parse_number(optarg, 0, ULONG_MAX);
			break;
		case 'T':
			t.seconds = parse_number(optarg, 0, INT_MAX);
			break;
		default:
			t.mode = NULL;
		}
	}
	if (!t.mode || (strcmp(t.mode, "scatter") && strcmp(t.mode, "bulk") &&
			strcmp(t.mode, "storm")) || t.pages < 400 || !t.mib)
		die("usage: qhca-pages -d DEVICE -g GID-INDEX -p PORT -m scatter|bulk|storm [-i] "
		    "[-n PAGES] [-M MIB] [-T SECONDS] [HOST]");
	t.size = !strcmp(t.mode, "scatter") ? t.pages * EVERY * PAGE :
		 !strcmp(t.mode, "bulk") ? t.mib << 20 : ZONES * ZONE;
	t.peer.host = optind < argc ? argv[optind] : NULL;
	ibv_fork_init();
	peer_open(&t.peer);
	connect_all();
	if (t.peer.server)
		server();
	else
		client();
	disconnect_all();
	peer_close(&t.peer);
	return tap_end();
}
