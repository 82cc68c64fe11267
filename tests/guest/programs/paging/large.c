// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * qhca-large: regions that are larger than what is in them, within one process.
 *
 *   qhca-large -d DEVICE -g GID-INDEX
 *   qhca-large -d DEVICE -c FILE
 *
 * Prints TAP.  A region on demand of 64 GiB costs what is used of it: tables, and
 * the time in which memory is taken away from it.  With -c the tables of many
 * regions are to be charged to the memory control group of the process, whose
 * memory.stat is FILE.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define PAGE	4096ul
#define MIB	(1ul << 20)
#define GIB	(1ul << 30)
#define LARGE	(64 * GIB)
#define SMALL	(64 * MIB)
#define STRETCH	(2 * MIB)
#define ACCESS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_READ)

static struct {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];
} t;

static uint8_t *map(size_t length)
{
	void *mem = mmap(NULL, length, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mem == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	/* No huge page stands for several pages. */
	madvise(mem, length, MADV_NOHUGEPAGE);
	return mem;
}

static struct ibv_mr *reg(void *mem, size_t length, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(t.pd, mem, length, access);

	if (!mr)
		die("ibv_reg_mr of %zu bytes: %s", length, strerror(errno));
	return mr;
}

static void make_qps(int gid_index)
{
	const struct connection c = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 18,
		.retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12,
		.rd_atomic = 4, .dest_rd_atomic = 4, .access = ACCESS,
	};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};

	t.cq = ibv_create_cq(t.ctx, 64, NULL, NULL, 0);
	if (!t.cq)
		die("ibv_create_cq: %s", strerror(errno));
	init.send_cq = init.recv_cq = t.cq;
	for (int i = 0; i < 2; i++) {
		t.qp[i] = ibv_create_qp(t.pd, &init);
		if (!t.qp[i])
			die("ibv_create_qp: %s", strerror(errno));
	}
	errno = qp_connect_pair(t.qp, &c, gid_index);
	if (errno)
		die("the QPs do not connect: %s", strerror(errno));
}

static bool move(enum ibv_wr_opcode opcode, struct ibv_mr *l, uint8_t *local,
		 struct ibv_mr *r, uint8_t *remote, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)local, length, l->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { (uintptr_t)remote, r->rkey },
	};
	uint64_t limit = now_ns() + 60000000000ull;
	struct ibv_wc wc;

	if (ibv_post_send(t.qp[0], &wr, &bad))
		die("ibv_post_send: %s", strerror(errno));
	while (now_ns() < limit)
		if (ibv_poll_cq(t.cq, 1, &wc) > 0)
			return wc.status == IBV_WC_SUCCESS;
	return false;
}

/* What the driver tells of our regions on demand: KiB of tables. */
static unsigned long tables(void)
{
	char word[64], last[64] = "";
	unsigned long kib = 0;
	FILE *f;

	snprintf(word, sizeof(word), "rdma -dd resource show mr pid %d", getpid());
	f = popen(word, "r");
	if (!f)
		die("rdma: %s", strerror(errno));
	while (fscanf(f, "%63s", word) == 1) {
		if (strstr(last, "table_kib"))
			kib += strtoul(word, NULL, 0);
		strcpy(last, word);
	}
	pclose(f);
	printf("# tables of %lu KiB\n", kib);
	return kib;
}

static bool tables_shrink_to(unsigned long kib)
{
	uint64_t limit = now_ns() + 60000000000ull;

	while (tables() > kib) {
		if (now_ns() > limit)
			return false;
		usleep(100000);
	}
	return true;
}

/* ------------------------------------------------------------------------
 * Regions on demand
 */

/* Places far from each other, at borders of stretches, and both ends. */
static const size_t places[] = {
	0, STRETCH - 5000, 3 * GIB + 77, 31 * GIB - 4096, 48 * GIB - 3,
	LARGE - STRETCH - 1000, LARGE - 3 * PAGE - 123 - 8192,
};

#define NUM_PLACES	(sizeof(places) / sizeof(places[0]))
#define PIECE		8192u

static bool moved(struct ibv_mr *near, uint8_t *mem, struct ibv_mr *mr,
		  uint8_t *start)
{
	bool ok = true;

	for (unsigned int i = 0; ok && i < NUM_PLACES; i++) {
		memset(mem, i + 1, PIECE);
		ok = move(IBV_WR_RDMA_WRITE, near, mem, mr, start + places[i],
			  PIECE);
	}
	for (unsigned int i = 0; ok && i < NUM_PLACES; i++) {
		memset(mem, 0, PIECE);
		ok = move(IBV_WR_RDMA_READ, near, mem, mr, start + places[i],
			  PIECE);
		for (unsigned int k = 0; ok && k < PIECE; k++)
			ok = mem[k] == i + 1 && start[places[i] + k] == i + 1;
	}
	return ok;
}

/* The least time in which memory without pages is taken away, ns. */
static uint64_t time_away(uint8_t *mem, size_t length, uint64_t least)
{
	uint64_t begin = now_ns(), took;

	madvise(mem, length, MADV_DONTNEED);
	took = now_ns() - begin;
	return took < least ? took : least;
}

static void test_on_demand(int gid_index)
{
	uint8_t *mem = map(LARGE), *small = map(SMALL), *near = map(PIECE);
	uint64_t large_ns = UINT64_MAX, small_ns = UINT64_MAX;
	/* The range neither begins nor ends at a page. */
	uint8_t *start = mem + PAGE + 123;
	unsigned long empty;
	struct ibv_mr *mr, *small_mr, *near_mr;

	make_qps(gid_index);
	near_mr = reg(near, PIECE, ACCESS);
	mr = reg(start, LARGE - 3 * PAGE - 123, ACCESS | IBV_ACCESS_ON_DEMAND);
	empty = tables();
	tap_point(empty < 64, "a region without pages needs almost no tables");
	tap_point(moved(near_mr, near, mr, start), "the device reads and writes all parts of it");
	tap_point(tables() < 1024, "its tables grow with the pages in use");

	madvise(mem, LARGE, MADV_DONTNEED);
	tap_point(tables_shrink_to(empty), "its tables shrink when its pages are taken away");

	small_mr = reg(small, SMALL, ACCESS | IBV_ACCESS_ON_DEMAND);
	for (int i = 0; i < 10; i++) {
		large_ns = time_away(mem, LARGE, large_ns);
		small_ns = time_away(small, SMALL, small_ns);
	}
	printf("# %lu us to take nothing away from 64 GiB, %lu us from 64 MiB\n",
	       large_ns / 1000, small_ns / 1000);
	tap_point(large_ns < 20 * small_ns,
		  "taking away no pages takes no longer in a large region");

	tap_point(moved(near_mr, near, mr, start), "the device reads and writes it again");
	munmap(mem, LARGE);
	tap_point(!move(IBV_WR_RDMA_WRITE, near_mr, near, mr, start, 8),
		  "the device does not reach memory that is unmapped");
	for (int i = 0; i < 2; i++)
		ibv_destroy_qp(t.qp[i]);
	tap_point(!ibv_dereg_mr(mr) && !ibv_dereg_mr(small_mr), "the regions are deregistered");
	munmap(small, SMALL);
}

/* ------------------------------------------------------------------------
 * Who pays
 */

#define REGIONS		500u
#define PAGES		1024u	/* pages of each region, none next to another */
#define STRETCHES	1000u

/* KiB of kernel memory that a control group is charged for. */
static unsigned long charged(const char *file)
{
	unsigned long value, found = 0;
	char name[64];
	FILE *f = fopen(file, "r");

	while (f && fscanf(f, "%63s %lu", name, &value) == 2)
		if (!strcmp(name, "kernel"))
			found = value >> 10;
	if (!f || !found)
		die("%s tells nothing of kernel memory", file);
	fclose(f);
	return found;
}

/* Memory of which each page has an entry of its own in a region's tree. */
static uint8_t *map_backwards(void)
{
	int fd = memfd_create("qhca-large", 0);
	uint8_t *mem = map(PAGES * PAGE);

	if (fd < 0 || ftruncate(fd, PAGES * PAGE))
		die("memfd: %s", strerror(errno));
	for (unsigned int i = 0; i < PAGES; i++) {
		/* The loop touches every other page, backwards. */
		unsigned int at = (PAGES - 1 - i) * 511 % PAGES;

		if (mmap(mem + i * PAGE, PAGE, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_FIXED, fd, at * PAGE) == MAP_FAILED)
			die("mmap: %s", strerror(errno));
		mem[i * PAGE] = 1;
	}
	return mem;
}

static void test_charges(const char *file)
{
	static struct ibv_mr *mr[REGIONS];
	struct ibv_sge sge[100] = { 0 };
	size_t length = STRETCHES * STRETCH;
	unsigned long before, after;
	struct ibv_mr *on_demand;
	uint8_t *mem;

	mem = map_backwards();
	reg(mem, PAGES * PAGE, ACCESS);
	before = charged(file);
	for (unsigned int i = 0; i < REGIONS; i++)
		mr[i] = reg(mem, PAGES * PAGE, ACCESS);
	after = charged(file);
	printf("# %u regions: %lu KiB, then %lu\n", REGIONS, before, after);
	tap_point(after > before + REGIONS * PAGES * 8 / 1024 * 9 / 10,
		  "the group is charged for tables of pinned memory");
	for (unsigned int i = 0; i < REGIONS; i++)
		ibv_dereg_mr(mr[i]);

	mem = map(length);
	for (size_t at = 0; at < length; at += STRETCH)
		mem[at] = 1;
	before = charged(file);
	on_demand = reg(mem, length, ACCESS | IBV_ACCESS_ON_DEMAND);
	for (unsigned int i = 0; i < STRETCHES; i++) {
		unsigned int k = i % 100;

		sge[k] = (struct ibv_sge){ (uintptr_t)mem + i * STRETCH, 8,
					   on_demand->lkey };
		if (k == 99 && ibv_advise_mr(t.pd,
					     IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
					     IBV_ADVISE_MR_FLAG_FLUSH, sge, 100))
			die("ibv_advise_mr: %s", strerror(errno));
	}
	after = charged(file);
	printf("# %u stretches: %lu KiB, then %lu\n", STRETCHES, before, after);
	tap_point(after > before + STRETCHES * 4 * 9 / 10,
		  "the group is charged for tables of on-demand memory");
	tap_point(!ibv_dereg_mr(on_demand), "the on-demand region is deregistered");
}

int main(int argc, char **argv)
{
	const char *device = NULL, *file = NULL;
	int gid_index = 0, opt;

	while ((opt = getopt(argc, argv, "d:g:c:")) != -1)
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			gid_index = parse_number(optarg, 0, 255);
			break;
		case 'c':
			file = optarg;
			break;
		default:
			die("usage: %s -d DEVICE -g GID-INDEX | -c FILE",
			    argv[0]);
		}
	t.ctx = device_open(device);
	t.pd = ibv_alloc_pd(t.ctx);
	if (!t.pd)
		die("ibv_alloc_pd: %s", strerror(errno));
	if (file)
		test_charges(file);
	else
		test_on_demand(gid_index);
	return tap_end();
}
