/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * qhca-odp: memory on demand, between two QPs of one device and process.
 *
 *   qhca-odp -d DEVICE -g GID_INDEX [-s SECONDS]
 *   qhca-odp -d DEVICE -g GID_INDEX -r REGIONS
 *
 * Prints TAP.  Pages are put away behind the device's back, with
 * MADV_DONTNEED, munmap, mremap, mprotect, fork and by merging equal ones, and
 * the rights of what is left are checked; -s is how long they are put away under
 * traffic.  -r measures only, how long it takes to deregister so many regions
 * of 2 MiB: pinned; on demand and never used; on demand and all present.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "odp.h"

/* As newer libraries number them than the guest's. */
#define ODP_SUPPORT_FLUSH		(1u << 6)
#define ODP_SUPPORT_ATOMIC_WRITE	(1u << 7)

struct odp_test t = { .seconds = 5 };

void make_qps(void)
{
	const struct connection c = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_1024, .timeout = 16,
		.retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12,
		.rd_atomic = 4, .dest_rd_atomic = 4,
		.access = (ACCESS & ~IBV_ACCESS_ON_DEMAND) | IBV_ACCESS_FLUSH_GLOBAL,
	};
	struct ibv_qp_init_attr_ex init = {
		.send_cq = t.cq, .recv_cq = t.cq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 64, .max_recv_wr = 64,
			 .max_send_sge = 2, .max_recv_sge = 2 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = t.pd, .send_ops_flags = IBV_QP_EX_WITH_FLUSH,
	};

	for (int i = 0; i < 2; i++) {
		t.qp[i] = ibv_create_qp_ex(t.ctx, &init);
		if (!t.qp[i])
			die("ibv_create_qp_ex: %s", strerror(errno));
	}
	errno = qp_connect_pair(t.qp, &c, t.gid_index);
	if (errno)
		die("the QPs do not connect: %s", strerror(errno));
}

void drop_qps(void)
{
	struct ibv_wc wc;

	for (int i = 0; i < 2; i++)
		CHECK(!ibv_destroy_qp(t.qp[i]));
	while (ibv_poll_cq(t.cq, 1, &wc) > 0)
		;
}

struct area make_area(int access)
{
	struct area a = {
		.mem = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	};

	if (a.mem == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	a.mr = ibv_reg_mr(t.pd, a.mem, LEN, access);
	if (!a.mr)
		die("ibv_reg_mr on demand: %s", strerror(errno));
	return a;
}

void drop_area(struct area *a)
{
	CHECK(!ibv_dereg_mr(a->mr));
	munmap(a->mem, LEN);
}

static uint8_t byte_of(size_t i, uint8_t seed)
{
	return seed + i * 7 + (i >> 12) * 13;
}

void fill(uint8_t *p, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		p[i] = byte_of(i, seed);
}

bool is_filled(const uint8_t *p, size_t len, uint8_t seed)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != byte_of(i, seed)) {
			printf("# byte %zu of %zu is %#x, not %#x\n", i, len,
			       p[i], byte_of(i, seed));
			return false;
		}
	return true;
}

void post(enum ibv_wr_opcode opcode, struct area *l, size_t loff,
	  struct area *r, size_t roff, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)l->mem + loff, len, l->mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.num_sge = 1, .sg_list = &sge,
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)r->mem + roff;
		wr.wr.atomic.rkey = r->mr->rkey;
		wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)r->mem + roff;
		wr.wr.rdma.rkey = r->mr->rkey;
	}
	if (ibv_post_send(t.qp[0], &wr, &bad))
		die("ibv_post_send: %s", strerror(errno));
}

int completion(void)
{
	uint64_t limit = now_ns() + 20000000000ull;
	struct ibv_wc wc;

	while (now_ns() < limit)
		if (ibv_poll_cq(t.cq, 1, &wc) > 0)
			return wc.status;
	return -1;
}

void do_op(enum ibv_wr_opcode opcode, struct area *l, size_t loff,
	   struct area *r, size_t roff, uint32_t len)
{
	post(opcode, l, loff, r, roff, len);
	CHECK(completion() == IBV_WC_SUCCESS);
}

void put_away(struct area *a)
{
	CHECK(!madvise(a->mem, LEN, MADV_DONTNEED));
}

/* ---- tests */

static void test_caps(void)
{
	struct ibv_device_attr_ex attr = { 0 };
	const uint32_t all = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
			     IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
			     IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV |
			     ODP_SUPPORT_FLUSH | ODP_SUPPORT_ATOMIC_WRITE;

	CHECK(!ibv_query_device_ex(t.ctx, NULL, &attr));
	CHECK(attr.odp_caps.general_caps & IBV_ODP_SUPPORT);
	CHECK((attr.odp_caps.per_transport_caps.rc_odp_caps & all) == all);
	/* A datagram that meets a fault is lost, so it should not meet one. */
	CHECK(attr.odp_caps.per_transport_caps.ud_odp_caps ==
	      IBV_ODP_SUPPORT_SEND);
	CHECK(attr.odp_caps.per_transport_caps.uc_odp_caps ==
	      IBV_ODP_SUPPORT_SEND);
}

static void test_cold(void)
{
	struct area a = make_area(ACCESS), b = make_area(ACCESS);
	struct ibv_sge sge;
	struct ibv_recv_wr *bad, recv = { .num_sge = 1, .sg_list = &sge };

	make_qps();
	fill(a.mem, LEN, 1);
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	CHECK(is_filled(b.mem, LEN, 1));

	put_away(&a);
	do_op(IBV_WR_RDMA_READ, &a, 0, &b, 0, LEN);
	CHECK(is_filled(a.mem, LEN, 1));

	put_away(&b);
	sge = (struct ibv_sge){ (uintptr_t)b.mem, LEN, b.mr->lkey };
	CHECK(!ibv_post_recv(t.qp[1], &recv, &bad));
	post(IBV_WR_SEND, &a, 0, &b, 0, LEN);
	CHECK(completion() == IBV_WC_SUCCESS);
	CHECK(completion() == IBV_WC_SUCCESS);
	CHECK(is_filled(b.mem, LEN, 1));

	put_away(&b);
	put_away(&a);
	do_op(IBV_WR_ATOMIC_FETCH_AND_ADD, &a, 4096, &b, 8192, 8);
	do_op(IBV_WR_ATOMIC_FETCH_AND_ADD, &a, 4096, &b, 8192, 8);
	CHECK(*(uint64_t *)(b.mem + 8192) == 10);
	CHECK(*(uint64_t *)(a.mem + 4096) == 5);
	drop_qps();
	drop_area(&a);
	drop_area(&b);
}

static void flush(struct area *r, size_t roff, size_t len, uint8_t level)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(t.qp[0]);

	ibv_wr_start(qp);
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_flush(qp, r->mr->rkey, (uintptr_t)r->mem + roff, len, IBV_FLUSH_GLOBAL, level);
	CHECK(!ibv_wr_complete(qp));
}

static bool is_present(struct area *a, size_t off)
{
	unsigned char in_core = 0;

	CHECK(!mincore(a->mem + off, PAGE, &in_core));
	return in_core & 1;
}

/*
 * An ATOMIC WRITE faults its page in; a FLUSH finds nothing to flush in a page
 * that is not there, and leaves it away.
 */
static void test_place(void)
{
	struct area a = make_area(ACCESS), b = make_area(ACCESS | IBV_ACCESS_FLUSH_GLOBAL);
	const uint64_t value = 0x0123456789abcdef;

	make_qps();
	*(uint64_t *)(a.mem + 4096) = value;
	for (int i = 0; i < 3; i++) {
		put_away(&b);
		do_op(IBV_WR_ATOMIC_WRITE, &a, 4096, &b, 8192, 8);
		CHECK(*(uint64_t *)(b.mem + 8192) == value);
		flush(&b, 8192, 8, IBV_FLUSH_RANGE);
		CHECK(completion() == IBV_WC_SUCCESS);
	}
	put_away(&b);
	flush(&b, 4096, LEN - 4096, IBV_FLUSH_RANGE);
	flush(&b, 0, 0, IBV_FLUSH_MR);
	CHECK(completion() == IBV_WC_SUCCESS);
	CHECK(completion() == IBV_WC_SUCCESS);
	CHECK(!is_present(&b, 0) && !is_present(&b, 8192) && !is_present(&b, LEN - PAGE));
	CHECK(!mprotect(b.mem, LEN, PROT_READ));
	post(IBV_WR_ATOMIC_WRITE, &a, 4096, &b, 8192, 8);
	CHECK(completion() == IBV_WC_REM_ACCESS_ERR);
	drop_qps();
	drop_area(&a);
	drop_area(&b);
}

/* Copy on write after fork: the child keeps what it had, the device writes ours. */
static void test_fork(void)
{
	struct area a = make_area(ACCESS), b = make_area(ACCESS);
	int status = -1, go[2];
	char c = 0;
	pid_t pid;

	make_qps();
	fill(a.mem, LEN, 2);
	fill(b.mem, LEN, 77);
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN / 2);
	CHECK(!pipe(go));
	pid = fork();
	if (!pid) {
		bool ok = read(go[0], &c, 1) == 1 &&
			  is_filled(b.mem, LEN / 2, 2) &&
			  b.mem[LEN - 1] == byte_of(LEN - 1, 77);

		_exit(!ok);
	}
	fill(a.mem, LEN, 3);
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	CHECK(is_filled(b.mem, LEN, 3));
	CHECK(write(go[1], &c, 1) == 1);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	close(go[0]);
	close(go[1]);
	drop_qps();
	drop_area(&a);
	drop_area(&b);
}

/* An access to memory that is unmapped fails on both sides. */
static void test_unmapped(void)
{
	struct area a = make_area(ACCESS), b = make_area(ACCESS);

	fill(a.mem, LEN, 4);
	make_qps();
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	munmap(b.mem, LEN);
	post(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	CHECK(completion() == IBV_WC_REM_ACCESS_ERR);
	drop_qps();
	make_qps();
	post(IBV_WR_RDMA_READ, &a, 0, &b, 0, 100);
	CHECK(completion() == IBV_WC_REM_ACCESS_ERR);
	drop_qps();
	make_qps();
	munmap(a.mem, LEN);
	post(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, 100);
	CHECK(completion() == IBV_WC_LOC_PROT_ERR);
	drop_qps();
	CHECK(!ibv_dereg_mr(a.mr));
	CHECK(!ibv_dereg_mr(b.mr));
}

/* Memory that became read-only is not written. */
static void test_protected(void)
{
	struct area a = make_area(ACCESS), b = make_area(ACCESS);

	fill(a.mem, LEN, 5);
	make_qps();
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	CHECK(!mprotect(b.mem, LEN, PROT_READ));
	fill(a.mem, LEN, 6);
	post(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, PAGE);
	CHECK(completion() == IBV_WC_REM_ACCESS_ERR);
	CHECK(is_filled(b.mem, LEN, 5));
	drop_qps();
	make_qps();
	do_op(IBV_WR_RDMA_READ, &a, 0, &b, 0, LEN);
	CHECK(is_filled(a.mem, LEN, 5));
	drop_qps();
	drop_area(&a);
	drop_area(&b);
}

static void test_advise(void)
{
	static const enum ibv_advise_mr_advice how[] = {
		IBV_ADVISE_MR_ADVICE_PREFETCH,
		IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
		IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
	};
	struct area a = make_area(ACCESS), b = make_area(ACCESS), r;
	struct ibv_sge sge = { (uintptr_t)b.mem, LEN, b.mr->lkey };

	for (int i = 0; i < 3; i++)
		for (int flush = 0; flush < 2; flush++)
			CHECK(!ibv_advise_mr(t.pd, how[i], flush ?
					     IBV_ADVISE_MR_FLAG_FLUSH : 0,
					     &sge, 1));
	sge.length = LEN + 1;
	CHECK(ibv_advise_mr(t.pd, how[0], IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1));
	sge.length = LEN;
	sge.lkey ^= 1;
	CHECK(ibv_advise_mr(t.pd, how[0], IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1) ==
	      ENOENT);
	r = make_area(IBV_ACCESS_ON_DEMAND);
	sge = (struct ibv_sge){ (uintptr_t)r.mem, LEN, r.mr->lkey };
	CHECK(ibv_advise_mr(t.pd, how[1], IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1) ==
	      EPERM);
	make_qps();
	fill(a.mem, LEN, 9);
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	CHECK(is_filled(b.mem, LEN, 9));
	drop_qps();
	drop_area(&a);
	drop_area(&b);
	drop_area(&r);
}

/* Regions and QPs that end while pages are on their way. */
static void test_dereg(void)
{
	for (int i = 0; i < 30 && !tap_check_has_failed(); i++) {
		struct area a = make_area(ACCESS), b = make_area(ACCESS);

		make_qps();
		memset(a.mem, 1, LEN);
		for (int k = 0; k < 8; k++)
			post(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
		if (i & 1)
			usleep(100 * i);
		if (i % 3 == 0)
			drop_qps();
		drop_area(&b);
		drop_area(&a);
		if (i % 3)
			drop_qps();
	}
}

/* A process that dies while faults are outstanding. */
static void test_exit(void)
{
	for (int i = 0; i < 8; i++) {
		char command[200];
		pid_t pid = fork();

		snprintf(command, sizeof(command), "%d", t.gid_index);
		if (!pid) {
			execl("/proc/self/exe", "qhca-odp", "-d",
			      ibv_get_device_name(t.ctx->device), "-g", command,
			      "-x", NULL);
			_exit(1);
		}
		usleep(300000 + 30000 * i);
		kill(pid, SIGKILL);
		CHECK(waitpid(pid, NULL, 0) == pid);
	}
}

static volatile bool stop;

/* Gives pages of the target back, and verifies the pages that it gets. */
static void *storm(void *arg)
{
	struct area *b = arg;
	unsigned int seed = 1;
	unsigned long bad = 0;

	while (!stop) {
		uint32_t page = rand_r(&seed) % PAGES;
		uint32_t num = 1 + rand_r(&seed) % 16;
		uint8_t *canary;

		if (page + num > PAGES)
			num = PAGES - page;
		madvise(b->mem + (size_t)page * PAGE, (size_t)num * PAGE,
			MADV_DONTNEED);
		/* The kernel is likely to give us the pages that were freed. */
		canary = mmap(NULL, 16 * PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(canary, 0xdb, 16 * PAGE);
		usleep(rand_r(&seed) % 300);
		for (size_t i = 0; i < 16 * PAGE; i++)
			bad += canary[i] != 0xdb;
		munmap(canary, 16 * PAGE);
	}
	return (void *)bad;
}

static void test_storm(void)
{
	struct area a = make_area(ACCESS), b = make_area(ACCESS);
	uint64_t end = now_ns() + t.seconds * 1000000000ull;
	unsigned long writes = 0;
	void *bad = NULL;
	pthread_t thread;

	make_qps();
	fill(a.mem, LEN, 11);
	stop = false;
	CHECK(!pthread_create(&thread, NULL, storm, &b));
	while ((now_ns() < end || writes <= 3) && !tap_check_has_failed()) {
		size_t off = rand() % (LEN / 2);

		do_op(writes & 3 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, &a,
		      off, &b, off, LEN / 4);
		if (!(writes++ & 3))
			fill(a.mem, LEN, 11);
	}
	stop = true;
	pthread_join(thread, &bad);
	CHECK(!bad);
	CHECK(writes > 3);
	printf("# %lu requests of %zu bytes in the storm\n", writes, LEN / 4);
	do_op(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
	CHECK(is_filled(b.mem, LEN, 11));
	drop_qps();
	drop_area(&a);
	drop_area(&b);
}

static void run(const char *name, void (*test)(void))
{
	test();
	tap_checked(name);
}

/* Keeps requests under way for ever, for test_exit(). */
static void work(void)
{
	struct area a = make_area(ACCESS), b = make_area(ACCESS);

	make_qps();
	for (;;) {
		post(IBV_WR_RDMA_WRITE, &a, 0, &b, 0, LEN);
		put_away(&b);
		put_away(&a);
		completion();
	}
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	unsigned int regions = 0;
	bool worker = false;
	int opt;

	while ((opt = getopt(argc, argv, "d:g:r:s:x")) != -1)
		switch (opt) {
		case 'd':
			device = optarg;
			break;
		case 'g':
			t.gid_index = parse_number(optarg, 0, INT_MAX);
			break;
		case 'r':
			regions = parse_number(optarg, 0, INT_MAX);
			break;
		case 's':
			t.seconds = parse_number(optarg, 0, INT_MAX);
			break;
		case 'x':
			worker = true;
			break;
		default:
			die("usage: qhca-odp -d DEVICE -g GID_INDEX [-s SECONDS] [-r REGIONS]");
		}
	ibv_fork_init();
	t.ctx = device_open(device);
	t.pd = ibv_alloc_pd(t.ctx);
	t.cq = ibv_create_cq(t.ctx, 256, NULL, NULL, 0);
	if (!t.pd || !t.cq)
		die("set-up: %s", strerror(errno));
	if (worker)
		work();
	if (regions)
		return measure(regions);
	run("caps", test_caps);
	run("cold", test_cold);
	run("place", test_place);
	run("fork", test_fork);
	run("unmapped", test_unmapped);
	run("protected", test_protected);
	run("advise", test_advise);
	run("moved", test_moved);
	run("merged", test_merged);
	run("huge", test_huge);
	run("implicit", test_implicit);
	run("dereg", test_dereg);
	run("exit", test_exit);
	run("storm", test_storm);
	CHECK(!ibv_destroy_cq(t.cq));
	CHECK(!ibv_dealloc_pd(t.pd));
	ibv_close_device(t.ctx);
	return tap_end();
}
