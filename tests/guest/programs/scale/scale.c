// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-scale: very many memory regions at once.
 *
 *   qhca-scale -d DEVICE -g GID-INDEX -p PORT [HOST]
 *
 * The server has regions, the client (with HOST) reads and writes through random
 * ones of them, and says what came of it as TAP:
 *
 *  1. 131,072 regions of one page each; each key leads to its page and no other;
 *  2. registering 1 MiB takes about as long among 100,000 regions as among 100;
 *  3. 1 TiB of registered addresses, by regions that overlap, of 2 MiB pages.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define REGIONS		131072u
#define PAGE		4096u
#define PAGES		8192u		/* of the server's buffer */
#define BUFFER		((size_t)PAGES * PAGE)
#define HUGE_PAGE	(2ul << 20)
#define HUGE_BUFFER	(256ul << 20)
#define HUGE_REGIONS	(unsigned int)((1ul << 40) / HUGE_BUFFER)
#define FEW		100u
#define MANY		100000u
#define SAMPLES		101u
#define SAMPLE_LEN	(1u << 20)
#define MAX_RATIO	1.5
#define ACCESSES	6000u
#define WINDOW		16u		/* requests under way */
#define SLOT		64u		/* bytes of one of them */

#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

struct key {
	uint64_t addr;
	uint32_t rkey, unused;
};

struct scale {
	struct peer peer;
	struct connection conn;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t *buf;			/* server: pages; client: slots */
	struct ibv_mr *mr;		/* client: of buf */
	struct ibv_mr **regions;
	struct key *keys;
	uint64_t seed;
};

static uint32_t pick(struct scale *s, uint32_t n)
{
	s->seed = s->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (s->seed >> 33) % n;
}

/* What the page of region @i begins with; written by the server. */
static uint64_t mark(uint32_t page, uint32_t word)
{
	return (uint64_t)page << 32 | 0xa5000000u | word;
}

/* -- the server's regions --------------------------------------------------- */

static struct ibv_mr *reg(struct scale *s, void *addr, size_t len)
{
	struct ibv_mr *mr = ibv_reg_mr(s->pd, addr, len, ACCESS);

	if (!mr)
		die("ibv_reg_mr of %zu bytes: %s", len, strerror(errno));
	return mr;
}

static void dereg(struct ibv_mr *mr)
{
	int rc = ibv_dereg_mr(mr);

	if (rc)
		die("ibv_dereg_mr: %s", strerror(rc));
}

/* Neighbours in the table are far apart in memory. */
static uint32_t page_of(uint32_t region)
{
	return region * 2654435761u % PAGES;
}

/* What registering 1 MiB takes now, ns, unless it took less before. */
static void sample(struct scale *s, uint64_t *least)
{
	uint8_t *at = s->buf + (size_t)pick(s, PAGES - SAMPLE_LEN / PAGE) * PAGE;
	uint64_t start = now_ns(), took;
	struct ibv_mr *mr = reg(s, at, SAMPLE_LEN);

	took = now_ns() - start;
	dereg(mr);
	if (took < *least)
		*least = took;
}

/*
 * The least of many samples: a machine with other work makes one take longer, none
 * take less.  Those among many regions are spread, so that not all meet such work.
 */
static void register_many(struct scale *s, uint64_t *few, uint64_t *many)
{
	*few = *many = UINT64_MAX;
	for (uint32_t i = 0; i < REGIONS; i++) {
		for (uint32_t k = 0; i == FEW && k < SAMPLES; k++)
			sample(s, few);
		if (i >= MANY && i % ((REGIONS - MANY) / SAMPLES) == 0)
			sample(s, many);
		s->regions[i] = reg(s, s->buf + (size_t)page_of(i) * PAGE, PAGE);
		s->keys[i] = (struct key) { (uintptr_t)s->regions[i]->addr, s->regions[i]->rkey };
	}
}

static void deregister(struct scale *s, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		dereg(s->regions[i]);
}

/*
 * Checks that the client's data are at their addresses, and that nothing else has
 * changed.
 */
static bool pages_are(struct scale *s, const uint8_t *written)
{
	for (uint32_t p = 0; p < PAGES; p++) {
		const uint64_t *word = (const uint64_t *)(s->buf + (size_t)p * PAGE);

		for (uint32_t i = 0; i < PAGE / 8; i++) {
			bool second = i >= SLOT / 8 && i < 2 * SLOT / 8;
			uint64_t want = second && written[p] ? ~mark(p, i) : mark(p, i);

			if (word[i] != want) {
				fprintf(stderr, "page %u word %u is %#llx, not %#llx\n", p, i,
					(unsigned long long)word[i], (unsigned long long)want);
				return false;
			}
		}
	}
	return true;
}

static void serve_many(struct scale *s)
{
	uint8_t *written = malloc(PAGES);
	uint64_t cost[2];
	bool good;

	for (uint32_t p = 0; p < PAGES; p++)
		for (uint32_t i = 0; i < PAGE / 8; i++)
			((uint64_t *)(s->buf + (size_t)p * PAGE))[i] = mark(p, i);
	register_many(s, &cost[0], &cost[1]);
	peer_send(&s->peer, s->keys, REGIONS * sizeof(*s->keys));
	peer_send(&s->peer, cost, sizeof(cost));
	peer_receive(&s->peer, written, PAGES);
	good = pages_are(s, written);
	deregister(s, REGIONS);
	peer_send(&s->peer, &good, sizeof(good));
	free(written);
}

static void serve_huge(struct scale *s)
{
	uint8_t *huge = mmap(NULL, HUGE_BUFFER, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);

	if (huge == MAP_FAILED)
		die("mmap of %lu huge pages: %s", HUGE_BUFFER / HUGE_PAGE, strerror(errno));
	for (size_t at = 0; at < HUGE_BUFFER; at += SLOT)
		*(uint64_t *)(huge + at) = at;
	for (uint32_t i = 0; i < HUGE_REGIONS; i++) {
		s->regions[i] = reg(s, huge, HUGE_BUFFER);
		s->keys[i] = (struct key) { (uintptr_t)huge, s->regions[i]->rkey };
	}
	peer_send(&s->peer, s->keys, HUGE_REGIONS * sizeof(*s->keys));
	peer_barrier(&s->peer);
	deregister(s, HUGE_REGIONS);
	peer_barrier(&s->peer);
	munmap(huge, HUGE_BUFFER);
}

/* -- the client's accesses -------------------------------------------------- */

static void post(struct scale *s, unsigned int slot, enum ibv_wr_opcode opcode,
		 const struct key *key, uint64_t off)
{
	struct ibv_sge sge = { (uintptr_t)s->buf + slot * SLOT, SLOT, s->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = slot, .opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { key->addr + off, key->rkey },
	}, *bad;
	int rc = ibv_post_send(s->qp, &wr, &bad);

	if (rc)
		die("ibv_post_send: %s", strerror(rc));
}

/* Waits for a completion; returns its slot. */
static unsigned int reap(struct scale *s)
{
	struct ibv_wc wc;
	int n;

	do
		n = ibv_poll_cq(s->cq, 1, &wc);
	while (!n);
	if (n < 0 || wc.status)
		die("an access ends with \"%s\"", n < 0 ? "error" : ibv_wc_status_str(wc.status));
	return wc.wr_id;
}

/* Half are WRITEs of the second slot of a page, half READs of the first. */
static bool access_many(struct scale *s, uint8_t *written)
{
	uint32_t page[WINDOW];
	bool read[WINDOW], good = true;

	for (uint32_t n = 0; n < ACCESSES + WINDOW; n++) {
		unsigned int slot = n < WINDOW ? n : reap(s);
		uint64_t *word = (uint64_t *)(s->buf + slot * SLOT);
		uint32_t region = pick(s, REGIONS);

		if (n >= WINDOW && read[slot])
			for (uint32_t i = 0; i < SLOT / 8; i++)
				good &= word[i] == mark(page[slot], i);
		if (n >= ACCESSES)
			continue;
		page[slot] = page_of(region);
		read[slot] = n % 2;
		for (uint32_t i = 0; i < SLOT / 8; i++)
			word[i] = read[slot] ? 0 : ~mark(page[slot], SLOT / 8 + i);
		written[page[slot]] |= !read[slot];
		post(s, slot, read[slot] ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, &s->keys[region],
		     read[slot] ? 0 : SLOT);
	}
	return good;
}

static void use_many(struct scale *s)
{
	uint8_t *written = calloc(1, PAGES);
	uint64_t cost[2];
	bool good;

	peer_receive(&s->peer, s->keys, REGIONS * sizeof(*s->keys));
	peer_receive(&s->peer, cost, sizeof(cost));
	tap_point(true, "131072 regions are registered");
	tap_point(access_many(s, written), "random regions are read and written");
	peer_send(&s->peer, written, PAGES);
	peer_receive(&s->peer, &good, sizeof(good));
	tap_point(good, "each page has what was written to it, and regions end");
	printf("# 1 MiB takes %llu us among %u regions, %llu us among %u\n",
	       (unsigned long long)cost[0] / 1000, FEW, (unsigned long long)cost[1] / 1000, MANY);
	tap_point(cost[1] <= MAX_RATIO * cost[0],
		  "registration takes within 1.5 times as long among 100000 regions as among 100");
	free(written);
}

static void use_huge(struct scale *s)
{
	bool good = true;

	peer_receive(&s->peer, s->keys, HUGE_REGIONS * sizeof(*s->keys));
	for (uint32_t n = 0; n < 1000; n++) {
		uint64_t off = (uint64_t)pick(s, HUGE_BUFFER / SLOT) * SLOT;

		post(s, 0, IBV_WR_RDMA_READ, &s->keys[pick(s, HUGE_REGIONS)], off);
		reap(s);
		good &= *(uint64_t *)s->buf == off;
	}
	peer_barrier(&s->peer);
	peer_barrier(&s->peer);
	tap_point(good, "1 TiB of addresses is registered, read and deregistered");
}

/* -- both ------------------------------------------------------------------- */

static void connect_qp(struct scale *s)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = s->cq, .recv_cq = s->cq,
		.cap = { WINDOW, 1, 1, 1, 0 },
	};
	struct qp_address here = { .psn = 1, .gid = s->peer.gid }, there;
	int rc;

	s->conn = (struct connection) {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12, .rd_atomic = 8, .dest_rd_atomic = 8,
		.access = ACCESS,
	};
	s->qp = ibv_create_qp(s->pd, &init);
	if (!s->qp)
		die("ibv_create_qp: %s", strerror(errno));
	here.qpn = s->qp->qp_num;
	peer_exchange(&s->peer, &here, &there, sizeof(here));
	rc = qp_connect(s->qp, &s->conn, s->peer.gid_index, &there, here.psn);
	if (rc)
		die("connecting the QP: %s", strerror(rc));
	peer_barrier(&s->peer);
}

int main(int argc, char **argv)
{
	struct scale s = { .seed = 1 };
	int o;

	while ((o = getopt(argc, argv, PEER_OPTIONS)) != -1)
		if (!peer_option(&s.peer, o, optarg))
			die("usage: qhca-scale -d DEVICE -g GID-INDEX -p PORT [HOST]");
	s.peer.host = optind < argc ? argv[optind] : NULL;
	peer_open(&s.peer);
	s.pd = ibv_alloc_pd(s.peer.ctx);
	s.cq = ibv_create_cq(s.peer.ctx, 2 * WINDOW, NULL, NULL, 0);
	s.keys = calloc(REGIONS, sizeof(*s.keys));
	s.regions = calloc(REGIONS, sizeof(*s.regions));
	s.buf = aligned_alloc(PAGE, s.peer.server ? BUFFER : PAGE);
	if (!s.pd || !s.cq || !s.keys || !s.regions || !s.buf)
		die("cannot begin: %s", strerror(errno));
	connect_qp(&s);
	if (s.peer.server) {
		serve_many(&s);
		serve_huge(&s);
	} else {
		s.mr = reg(&s, s.buf, PAGE);
		use_many(&s);
		use_huge(&s);
		dereg(s.mr);
	}
	ibv_destroy_qp(s.qp);
	ibv_destroy_cq(s.cq);
	ibv_dealloc_pd(s.pd);
	peer_close(&s.peer);
	free(s.buf);
	free(s.keys);
	free(s.regions);
	return tap_end();
}
