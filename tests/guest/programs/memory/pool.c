// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Memory of the pool, through qhcadv.h, within one guest: QPs of one process
 * are connected to each other.  Each case is a process of its own, after whose
 * end the whole pool must be free again.  Prints TAP.
 *
 *   qhca-pool [-d DEVICE] [-g GID-INDEX] [CASE...]
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <infiniband/qhcadv.h>

#include "lib/peer.h"
#include "lib/tap.h"

#define PAGE		4096ul
#define MIB		(1ul << 20)
#define MAX_PIECES	32768

#define RW (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

static const char *device_name;
static int gid_index;

/* ---- device, counters, QPs */

struct ends {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2];	/* each other's peer */
};

static struct ibv_context *open_it(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	for (int i = 0; list && list[i]; i++)
		if (!device_name || !strcmp(ibv_get_device_name(list[i]), device_name)) {
			MUST(qhcadv_is_supported(list[i]));
			ctx = ibv_open_device(list[i]);
			break;
		}
	MUST(ctx);
	ibv_free_device_list(list);
	return ctx;
}

static uint64_t counter(const char *name)
{
	unsigned long long value;
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/hw_counters/lifespan", device_name);
	f = fopen(path, "w");
	MUST(f);
	fputs("0", f);
	fclose(f);
	/* values may be a tick old */
	usleep(10000);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/hw_counters/%s", device_name, name);
	f = fopen(path, "r");
	MUST(f && fscanf(f, "%llu", &value) == 1);
	fclose(f);
	return value;
}

static struct qhcadv_pool_attr query(struct ibv_context *ctx)
{
	struct qhcadv_pool_attr attr;

	errno = qhcadv_query_pool(ctx, &attr, sizeof(attr));
	MUST(!errno);
	return attr;
}

static void connect_qps(struct ends *e)
{
	const struct connection c = {
		.type = IBV_QPT_RC, .mtu = IBV_MTU_4096, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 1, .rd_atomic = 4, .dest_rd_atomic = 4,
		.access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	MUST(!qp_reset(e->qp[0]) && !qp_reset(e->qp[1]));
	MUST(!qp_connect_pair(e->qp, &c, gid_index));
}

static struct ends open_ends(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .sq_sig_all = 1,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ends e = { .ctx = open_it() };

	e.pd = ibv_alloc_pd(e.ctx);
	e.cq = ibv_create_cq(e.ctx, 64, NULL, NULL, 0);
	MUST(e.pd && e.cq);
	init.send_cq = init.recv_cq = e.cq;
	for (int i = 0; i < 2; i++)
		MUST((e.qp[i] = ibv_create_qp(e.pd, &init)));
	connect_qps(&e);
	return e;
}

/* One request of the first QP; its status. The QPs are whole again after it. */
static enum ibv_wc_status move(struct ends *e, enum ibv_wr_opcode opcode, uint64_t local,
			       uint32_t lkey, uint64_t remote, uint32_t rkey, uint32_t length)
{
	struct ibv_sge sge = { .addr = local, .lkey = lkey, .length = length };
	struct ibv_send_wr wr = {
		.opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = remote, .rkey = rkey },
	}, *bad;
	struct ibv_wc wc;
	int n;

	MUST(!ibv_post_send(e->qp[0], &wr, &bad));
	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		;
	MUST(n == 1);
	if (wc.status)
		connect_qps(e);
	return wc.status;
}

static enum ibv_wc_status write_to(struct ends *e, struct ibv_mr *from, struct ibv_mr *to,
				   uint32_t length)
{
	return move(e, IBV_WR_RDMA_WRITE, (uintptr_t)from->addr, from->lkey, (uintptr_t)to->addr,
		    to->rkey, length);
}

/* ---- memory */

static struct qhcadv_pool_mem *pool_mem(struct ibv_context *ctx, size_t length)
{
	struct qhcadv_pool_mem *mem = qhcadv_alloc_pool(ctx, length);

	MUST(mem);
	return mem;
}

static void *pages(size_t length)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	MUST(!madvise(p, length, MADV_NOHUGEPAGE));
	memset(p, 1, length);
	return p;
}

static bool is_all(const void *p, uint8_t byte, size_t length)
{
	const uint8_t *b = p;

	return b[0] == byte && !memcmp(b, b + 1, length - 1);
}

/* Takes pieces of a length until there are none; how many. */
static int take_all(struct ibv_context *ctx, size_t length, struct qhcadv_pool_mem **mem)
{
	int n = 0;

	while ((mem[n] = qhcadv_alloc_pool(ctx, length)))
		MUST(++n < MAX_PIECES);
	MUST(errno == ENOSPC);
	return n;
}

/* ---- cases */

static void case_query(void)
{
	struct ibv_context *ctx = open_it();
	struct qhcadv_pool_attr attr = query(ctx);

	printf("# %llu KiB in %u blocks, the largest piece %llu KiB, %u keys on chip\n",
	       (unsigned long long)attr.total >> 10, attr.num_blocks,
	       (unsigned long long)attr.largest_free >> 10, attr.max_keys);
	MUST(attr.num_blocks && attr.page_size == PAGE);
	MUST(attr.free == attr.total && attr.largest_free <= attr.total);
	MUST(attr.largest_free * attr.num_blocks >= attr.total);
	MUST(qhcadv_query_pool(ctx, &attr, 8) == EINVAL);
	MUST(!ibv_close_device(ctx));
}

static void case_allocate(void)
{
	struct ibv_context *ctx = open_it();
	struct qhcadv_pool_attr before = query(ctx);
	struct qhcadv_pool_mem *mem = pool_mem(ctx, 3 * PAGE + 1);

	MUST(mem->length == 4 * PAGE && is_all(mem->addr, 0, mem->length));
	MUST(query(ctx).free == before.free - mem->length);
	memset(mem->addr, 0xa5, mem->length);
	MUST(!qhcadv_free_pool(ctx, mem));
	MUST(query(ctx).free == before.free);
	errno = 0;
	MUST(!qhcadv_alloc_pool(ctx, 0) && errno == EINVAL);
	MUST(!qhcadv_alloc_pool(ctx, ~0ul) && errno == EINVAL);
	MUST(!ibv_close_device(ctx));
}

/* What nobody maps any more, and only that, goes back. */
static void case_mapped(void)
{
	struct ibv_context *ctx = open_it();
	uint64_t before = query(ctx).free;
	struct qhcadv_pool_mem *mem = pool_mem(ctx, 2 * PAGE), whole = *mem;

	/* the library unmaps the first page only */
	mem->length = PAGE;
	MUST(!qhcadv_free_pool(ctx, mem));
	MUST(query(ctx).free == before - 2 * PAGE);
	MUST(!munmap((char *)whole.addr + PAGE, PAGE));
	MUST(query(ctx).free == before);
}

#define UNMAPPED	(32 * MIB)

/*
 * Nanoseconds to unmap a buffer but for its first page; @last: with its object
 * and that page gone already, so that the buffer goes with it.
 */
static uint64_t time_unmap(struct ibv_context *ctx, bool last)
{
	struct qhcadv_pool_mem *mem = pool_mem(ctx, UNMAPPED);
	char *rest = (char *)mem->addr + PAGE;
	uint64_t took;

	MUST(is_all(mem->addr, 0, UNMAPPED));
	memset(mem->addr, 0x5a, UNMAPPED);
	/* a mapping of its own either way */
	MUST(!mprotect(mem->addr, PAGE, PROT_READ));
	mem->length = PAGE;
	if (last)
		MUST(!qhcadv_free_pool(ctx, mem));
	took = now_ns();
	MUST(!munmap(rest, UNMAPPED - PAGE));
	took = now_ns() - took;
	if (!last)
		MUST(!qhcadv_free_pool(ctx, mem));
	return took;
}

/* Memory is not cleared in munmap(), but before it is given out again. */
static void case_unmap(void)
{
	uint64_t kept = UINT64_MAX, last = UINT64_MAX, t;
	struct ibv_context *ctx = open_it();

	for (int i = 0; i < 10; i++) {
		t = time_unmap(ctx, false);
		kept = t < kept ? t : kept;
		t = time_unmap(ctx, true);
		last = t < last ? t : last;
	}
	printf("# to unmap 32 MiB: %llu us, with their end %llu us\n",
	       (unsigned long long)kept / 1000, (unsigned long long)last / 1000);
	/* the kernel has a little more to do at the end; clearing is far more */
	MUST(last < 20 * kept);
}

static void case_exhaustion(void)
{
	struct ibv_context *ctx = open_it();
	static struct qhcadv_pool_mem *mem[MAX_PIECES];
	struct qhcadv_pool_attr attr = query(ctx);
	uint64_t sum = 0;
	int n;

	errno = 0;
	MUST(!qhcadv_alloc_pool(ctx, attr.largest_free + 1) && errno == ENOSPC);
	n = take_all(ctx, attr.largest_free, mem);
	while (n)
		MUST(!qhcadv_free_pool(ctx, mem[--n]));
	n = take_all(ctx, 16 * PAGE, mem);
	for (int i = 0; i < n; i++)
		sum += mem[i]->length;
	MUST(sum == attr.total && !query(ctx).free && !query(ctx).largest_free);
	while (n)
		MUST(!qhcadv_free_pool(ctx, mem[--n]));
	MUST(query(ctx).free == attr.total && query(ctx).largest_free == attr.largest_free);
}

/* Every second piece freed leaves holes; the rest freed joins them. */
static void case_fragmentation(void)
{
	struct ibv_context *ctx = open_it();
	static struct qhcadv_pool_mem *mem[MAX_PIECES];
	struct qhcadv_pool_attr attr = query(ctx);
	struct qhcadv_pool_mem *again;
	int n = take_all(ctx, 16 * PAGE, mem);

	for (int i = 0; i < n; i += 2) {
		memset(mem[i]->addr, 0xee, mem[i]->length);
		MUST(!qhcadv_free_pool(ctx, mem[i]));
	}
	MUST(query(ctx).free >= attr.total / 2);
	MUST(query(ctx).largest_free < attr.largest_free);
	errno = 0;
	MUST(!qhcadv_alloc_pool(ctx, attr.largest_free) && errno == ENOSPC);
	again = pool_mem(ctx, 16 * PAGE);
	MUST(is_all(again->addr, 0, again->length));
	MUST(!qhcadv_free_pool(ctx, again));
	for (int i = 1; i < n; i += 2)
		MUST(!qhcadv_free_pool(ctx, mem[i]));
	MUST(query(ctx).largest_free == attr.largest_free);
	again = pool_mem(ctx, attr.largest_free);
	MUST(is_all(again->addr, 0, again->length));
}

/* Data, first and last byte of a whole block included; no translation. */
static void case_data(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, query(e.ctx).largest_free);
	uint64_t direct = counter("pool_direct_uses"), at = counter("at_hits") + counter("at_misses");
	uint64_t nodes = counter("at_node_reads");
	struct ibv_mr *mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW), *zero;
	uint8_t *b = mem->addr;

	MUST(mr);
	for (size_t i = 0; i < 8192; i++)
		b[i] = i * 7;
	b[mem->length - 1] = 1;
	MUST(move(&e, IBV_WR_RDMA_WRITE, mr->lkey ? (uintptr_t)b : 0, mr->lkey,
		   (uintptr_t)b + mem->length - 8192, mr->rkey, 8192) == IBV_WC_SUCCESS);
	MUST(!memcmp(b, b + mem->length - 8192, 8192));
	MUST(counter("pool_direct_uses") >= direct + 4);
	MUST(counter("at_hits") + counter("at_misses") == at && counter("at_node_reads") == nodes);
	/* addresses of the user's choice */
	zero = ibv_reg_mr_iova(e.pd, b + PAGE, PAGE, 0x1000000, RW);
	MUST(zero);
	memset(b, 0x3c, 64);
	MUST(move(&e, IBV_WR_RDMA_WRITE, (uintptr_t)b, mr->lkey, 0x1000000 + 100, zero->rkey, 64) ==
	      IBV_WC_SUCCESS);
	MUST(is_all(b + PAGE + 100, 0x3c, 64));
	MUST(!ibv_dereg_mr(zero) && !ibv_dereg_mr(mr) && !qhcadv_free_pool(e.ctx, mem));
}

/* Each of key, address, length and right alone makes the difference. */
static void case_permission(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 4 * PAGE);
	uintptr_t b = (uintptr_t)mem->addr;
	struct ibv_mr *mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW);
	struct ibv_mr *part = ibv_reg_mr(e.pd, (void *)(b + PAGE), PAGE, IBV_ACCESS_REMOTE_READ);
	struct ibv_pd *other_pd = ibv_alloc_pd(e.ctx);
	struct ibv_mr *other = ibv_reg_mr(other_pd, mem->addr, mem->length, RW);

	MUST(mr && part && other);
	memset(mem->addr, 0x11, PAGE);
	memset((void *)(b + PAGE), 0x22, 3 * PAGE);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE, part->rkey, PAGE) == IBV_WC_SUCCESS);
	memset(mem->addr, 0x11, PAGE);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE, part->rkey ^ 1, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE - 1, part->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE, part->rkey, PAGE + 1) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, b + PAGE, part->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE, other->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, b, part->lkey, b + PAGE, mr->rkey, 64) ==
	      IBV_WC_LOC_PROT_ERR);
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, other->lkey, b + PAGE, mr->rkey, 64) ==
	      IBV_WC_LOC_PROT_ERR);
	MUST(is_all(mem->addr, 0x11, PAGE) && is_all((void *)(b + PAGE), 0x22, 3 * PAGE));
	/* a key that is dead opens nothing */
	MUST(!ibv_dereg_mr(part));
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + PAGE, part->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
}

/* What is not all within one piece of one's own is not registered. */
static void case_refused(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *one = pool_mem(e.ctx, 4 * PAGE), *two = pool_mem(e.ctx, 4 * PAGE);
	struct ibv_context *ctx2 = open_it();
	struct ibv_pd *pd2 = ibv_alloc_pd(ctx2);
	uint64_t direct;
	struct ibv_mr *mr;
	char *at;

	/* past the end, into what follows in the block */
	MUST(!ibv_reg_mr(e.pd, one->addr, 4 * PAGE + 1, RW));
	MUST(!ibv_reg_mr(e.pd, (char *)one->addr + 4 * PAGE - 1, 2, RW));
	/* two pieces that are neighbours in the process, and perhaps in the block */
	at = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(at != MAP_FAILED);
	MUST(mremap(one->addr, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
	MUST(mremap(two->addr, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, at + 4 * PAGE) ==
	      at + 4 * PAGE);
	MUST(!ibv_reg_mr(e.pd, at, 8 * PAGE, RW));
	MUST(!ibv_reg_mr(e.pd, at + 2 * PAGE, 4 * PAGE, RW));
	/* moved, it is still itself */
	MUST((mr = ibv_reg_mr(e.pd, at + 4 * PAGE, 4 * PAGE, RW)));
	MUST(qhcadv_free_pool(e.ctx, two) == EBUSY);
	MUST(!ibv_dereg_mr(mr));
	/* another context's, though of this process */
	MUST(!ibv_reg_mr(pd2, at, PAGE, RW));
	/* does not fault, so it cannot be made to */
	MUST(!ibv_reg_mr(e.pd, at, PAGE, RW | IBV_ACCESS_ON_DEMAND));
	/* the process may not write there either */
	MUST(!mprotect(at, PAGE, PROT_READ));
	MUST(!ibv_reg_mr(e.pd, at, PAGE, RW));
	MUST((mr = ibv_reg_mr(e.pd, at, PAGE, IBV_ACCESS_REMOTE_READ)) && !ibv_dereg_mr(mr));
	/* other memory where the pool's was is other memory */
	MUST(mmap(at + PAGE, PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at + PAGE);
	direct = counter("pool_direct_uses");
	MUST((mr = ibv_reg_mr(e.pd, at + PAGE, PAGE, RW)));
	MUST(move(&e, IBV_WR_RDMA_WRITE, (uintptr_t)at + PAGE, mr->lkey, (uintptr_t)at + PAGE + 64,
		   mr->rkey, 64) == IBV_WC_SUCCESS);
	MUST(counter("pool_direct_uses") == direct);
	MUST(!ibv_reg_mr(e.pd, at + PAGE, 2 * PAGE, RW));
	MUST(!ibv_reg_mr(e.pd, at, 2 * PAGE, IBV_ACCESS_REMOTE_READ));
}

/* From ordinary memory into the pool and back, the keys staying. */
static void case_rereg(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 4 * PAGE);
	uint8_t *plain = pages(2 * PAGE);
	struct ibv_mr *from = ibv_reg_mr(e.pd, plain + PAGE, PAGE, RW);
	struct ibv_mr *mr = ibv_reg_mr(e.pd, plain, PAGE, RW);
	uint32_t rkey = mr->rkey;
	uint64_t direct;

	memset(plain + PAGE, 0x5a, PAGE);
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (char *)mem->addr + PAGE,
			    PAGE, 0) && mr->rkey == rkey);
	direct = counter("pool_direct_uses");
	MUST(write_to(&e, from, mr, PAGE) == IBV_WC_SUCCESS);
	MUST(counter("pool_direct_uses") == direct + 1);
	MUST(is_all((char *)mem->addr + PAGE, 0x5a, PAGE) && is_all(plain, 1, PAGE));
	MUST(qhcadv_free_pool(e.ctx, mem) == EBUSY);
	/* rights alone */
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_READ));
	MUST(write_to(&e, from, mr, PAGE) == IBV_WC_REM_ACCESS_ERR);
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RW));
	MUST(write_to(&e, from, mr, 64) == IBV_WC_SUCCESS);
	MUST(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem->addr, 5 * PAGE, 0));
	/* away */
	MUST(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, plain, PAGE, 0));
	MUST(!qhcadv_free_pool(e.ctx, mem));
	MUST(write_to(&e, from, mr, PAGE) == IBV_WC_SUCCESS && is_all(plain, 0x5a, PAGE));
}

/* Binds a window of type 1. */
static void bind_window(struct ends *e, struct ibv_mw *mw, struct ibv_mr *mr, uint64_t addr,
			uint64_t length)
{
	struct ibv_mw_bind bind = {
		.bind_info = { .mr = mr, .addr = addr, .length = length,
			       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;
	int n;

	MUST(!ibv_bind_mw(e->qp[1], mw, &bind));
	while (!(n = ibv_poll_cq(e->cq, 1, &wc)))
		;
	MUST(n == 1 && wc.status == IBV_WC_SUCCESS);
}

/* Binds like any region, and cannot end before the window, whose key is on chip, too. */
static void case_window(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 4 * PAGE);
	uintptr_t b = (uintptr_t)mem->addr;
	struct ibv_mr *mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW | IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	uint64_t lookups;

	MUST(mr && mw);
	bind_window(&e, mw, mr, b + PAGE, 64);
	memset(mem->addr, 0x77, 64);
	lookups = counter("pt_hits") + counter("pt_misses");
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, b + PAGE, mw->rkey, 64) == IBV_WC_SUCCESS);
	MUST(counter("pt_hits") + counter("pt_misses") == lookups);
	MUST(is_all((void *)(b + PAGE), 0x77, 64));
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, b + PAGE, mw->rkey, 65) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(ibv_dereg_mr(mr) == EBUSY);
	MUST(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr) && !qhcadv_free_pool(e.ctx, mem));
}

/*
 * More regions than the device keeps on chip, and a window: each is counted, and all
 * work. A place that becomes free is taken by the next region.
 */
static void case_bank(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 2 * PAGE);
	uint32_t places = query(e.ctx).max_keys, more = 3;
	struct ibv_mr **mr = calloc(places + more, sizeof(*mr));
	struct ibv_mw *mw = ibv_alloc_mw(e.pd, IBV_MW_TYPE_1);
	uint8_t *b = mem->addr;
	uint64_t full = counter("pool_bank_full"), bank;

	MUST(mr && mw && places >= 2);
	for (uint32_t i = 0; i < places; i++)
		MUST((mr[i] = ibv_reg_mr(e.pd, b, PAGE, RW | IBV_ACCESS_MW_BIND)));
	MUST(counter("pool_bank_full") == full);
	for (uint32_t i = places; i < places + more; i++)
		MUST((mr[i] = ibv_reg_mr(e.pd, b + PAGE, PAGE, RW)));
	MUST(counter("pool_bank_full") == full + more);
	bind_window(&e, mw, mr[0], (uintptr_t)b, 64);
	MUST(counter("pool_bank_full") == full + more + 1);

	bank = counter("pool_bank_hits");
	memset(b + PAGE, 0x3c, PAGE);
	/* from a region that has no place into the window, which has none either */
	MUST(move(&e, IBV_WR_RDMA_WRITE, (uintptr_t)b + PAGE, mr[places]->lkey, (uintptr_t)b,
		   mw->rkey, 64) == IBV_WC_SUCCESS);
	MUST(is_all(b, 0x3c, 64) && counter("pool_bank_hits") == bank);
	MUST(write_to(&e, mr[places], mr[1], PAGE) == IBV_WC_SUCCESS && is_all(b, 0x3c, PAGE));
	MUST(counter("pool_bank_hits") > bank);

	MUST(!ibv_dereg_mr(mr[1]) && (mr[1] = ibv_reg_mr(e.pd, b, PAGE, RW)));
	MUST(counter("pool_bank_full") == full + more + 1);
	MUST(!ibv_dealloc_mw(mw));
	for (uint32_t i = 0; i < places + more; i++)
		MUST(!ibv_dereg_mr(mr[i]));
	MUST(!qhcadv_free_pool(e.ctx, mem));
	free(mr);
}

static void case_fork(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 4 * PAGE);
	struct ibv_mr *mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW);
	uintptr_t b = (uintptr_t)mem->addr;
	unsigned char resident;
	int status;
	pid_t child;

	memset(mem->addr, 0x42, mem->length);
	/* it is not to be inherited, and cannot be made so */
	MUST(madvise(mem->addr, mem->length, MADV_DOFORK));
	child = fork();
	if (!child)
		_exit(!(mincore(mem->addr, PAGE, &resident) && errno == ENOMEM));
	MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	MUST(is_all(mem->addr, 0x42, mem->length));
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, b + PAGE, mr->rkey, 64) == IBV_WC_SUCCESS);
}

/* ---- cases of two processes */

struct told {				/* by the other process */
	uint64_t addr, length, total;
	uint32_t lkey, rkey;
};

/* A process that owns @length bytes of the pool (0: all there is, in pieces). */
static pid_t start_owner(size_t length, uint8_t byte, struct told *told, int *end)
{
	static struct qhcadv_pool_mem *mem[MAX_PIECES];
	int to[2], from[2];
	pid_t child;
	char c;

	MUST(!pipe(to) && !pipe(from));
	child = fork();
	MUST(child >= 0);
	if (!child) {
		struct told mine = { 0 };
		struct ends e = open_ends();
		struct ibv_mr *mr = NULL;
		int n = 1;

		close(from[1]);
		if (length)
			mem[0] = pool_mem(e.ctx, length);
		else
			n = take_all(e.ctx, 16 * PAGE, mem);
		for (int i = 0; i < n; i++) {
			memset(mem[i]->addr, byte, mem[i]->length);
			mine.total += mem[i]->length;
			MUST((mr = ibv_reg_mr(e.pd, mem[i]->addr, mem[i]->length, RW)));
		}
		MUST(mr);
		mine.addr = (uintptr_t)mem[n - 1]->addr;
		mine.length = mem[n - 1]->length;
		mine.lkey = mr->lkey;
		mine.rkey = mr->rkey;
		MUST(write(to[1], &mine, sizeof(mine)) == sizeof(mine));
		/* busy until it is told or killed */
		while (move(&e, IBV_WR_RDMA_WRITE, mine.addr, mine.lkey, mine.addr + 4 * PAGE,
			    mine.rkey, 4 * PAGE) == IBV_WC_SUCCESS)
			if (length && read(from[0], &c, 1) >= 0)
				break;
		_exit(!is_all(mem[0]->addr, byte, mem[0]->length));
	}
	close(to[1]);
	close(from[0]);
	MUST(read(to[0], told, sizeof(*told)) == sizeof(*told));
	close(to[0]);
	*end = from[1];
	return child;
}

/* Neither through the other's keys nor by its addresses through one's own. */
static void case_two_processes(void)
{
	struct qhcadv_pool_mem *mem;
	struct told told;
	struct ibv_mr *mr, *at;
	int status, end;
	struct ends e;
	uintptr_t b;
	pid_t child = start_owner(16 * PAGE, 0xbb, &told, &end);

	e = open_ends();
	mem = pool_mem(e.ctx, 16 * PAGE);
	memset(mem->addr, 0xaa, mem->length);
	b = (uintptr_t)mem->addr;
	MUST((mr = ibv_reg_mr(e.pd, mem->addr, mem->length, RW)));

	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, told.addr, told.rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_WRITE, b, mr->lkey, told.addr, told.rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_WRITE, told.addr, told.lkey, b, mr->rkey, 64) ==
	      IBV_WC_LOC_PROT_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, told.addr, told.lkey, b, mr->rkey, 64) ==
	      IBV_WC_LOC_PROT_ERR);
	/* every octet of the other's key */
	for (uint32_t octet = 0; octet < 256; octet++)
		MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, told.addr,
			   (told.rkey & ~0xffu) | octet, 64) == IBV_WC_REM_ACCESS_ERR);
	/* past one's own end, where the other's may follow in the block */
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b + 16 * PAGE, mr->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(move(&e, IBV_WR_RDMA_READ, b, mr->lkey, b - 64, mr->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	MUST(is_all(mem->addr, 0xaa, mem->length));

	/* the other's address names one's own memory */
	MUST((at = ibv_reg_mr_iova(e.pd, mem->addr, PAGE, told.addr, RW)));
	memset((void *)(b + PAGE), 0, PAGE);
	MUST(move(&e, IBV_WR_RDMA_READ, b + PAGE, mr->lkey, told.addr, at->rkey, PAGE) ==
	      IBV_WC_SUCCESS);
	MUST(is_all((void *)(b + PAGE), 0xaa, PAGE));

	close(end);
	MUST(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
}

/* The memory of a process that was killed, with its requests under way. */
static void case_killed(void)
{
	static struct qhcadv_pool_mem *mem[MAX_PIECES];
	struct qhcadv_pool_attr attr;
	struct ibv_context *ctx;
	struct told told;
	int status, end, n;
	pid_t child = start_owner(0, 0xdd, &told, &end);

	ctx = open_it();
	attr = query(ctx);
	MUST(told.total == attr.total && !attr.free);
	errno = 0;
	MUST(!qhcadv_alloc_pool(ctx, PAGE) && errno == ENOSPC);
	MUST(!kill(child, SIGKILL));
	MUST(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
	MUST(query(ctx).free == attr.total);
	n = take_all(ctx, 16 * PAGE, mem);
	for (int i = 0; i < n; i++)
		MUST(is_all(mem[i]->addr, 0, mem[i]->length));
}

/* For tests that take the device away: all of the pool, in use until killed. */
static void case_hold(void)
{
	struct told told;
	struct ends e;
	int end;

	start_owner(0, 0x99, &told, &end);
	e = open_ends();
	MUST(!query(e.ctx).free);
	printf("# holding %llu KiB\n", (unsigned long long)told.total >> 10);
	alarm(0);
	pause();
}

/* ---- cases of speed and caches */

#define CHURN_KEYS	256

/*
 * Ordinary keys, more than the caches hold, one after the other; between them,
 * if @pool, a request from pool memory to pool memory. Returns PT lookups.
 */
static uint64_t churn(struct ends *e, struct ibv_mr **plain, struct ibv_mr **pool, int rounds,
		      double *missed)
{
	uint64_t misses = counter("pt_misses") + counter("at_misses");
	uint64_t hits = counter("pt_hits") + counter("at_hits");

	for (int i = 0; i < rounds * CHURN_KEYS; i++) {
		int k = i % CHURN_KEYS;

		MUST(write_to(e, plain[k], plain[(k + CHURN_KEYS / 2) % CHURN_KEYS], 64) == IBV_WC_SUCCESS);
		if (pool)
			MUST(write_to(e, pool[i % 2], pool[1 - i % 2], 64) == IBV_WC_SUCCESS);
	}
	misses = counter("pt_misses") + counter("at_misses") - misses;
	hits = counter("pt_hits") + counter("at_hits") - hits;
	*missed = (double)misses / (hits + misses);
	return hits + misses;
}

static void case_churn(void)
{
	struct ends e = open_ends();
	struct qhcadv_pool_mem *mem = pool_mem(e.ctx, 2 * PAGE);
	uint8_t *plain = pages(CHURN_KEYS * PAGE);
	struct ibv_mr *key[CHURN_KEYS], *pool[2];
	uint64_t alone, with, bank, direct;
	double miss_alone, miss_with;
	const int rounds = 3;

	for (int i = 0; i < CHURN_KEYS; i++)
		MUST((key[i] = ibv_reg_mr(e.pd, plain + i * PAGE, PAGE, RW)));
	for (int i = 0; i < 2; i++)
		MUST((pool[i] = ibv_reg_mr(e.pd, (char *)mem->addr + i * PAGE, PAGE, RW)));
	alone = churn(&e, key, NULL, rounds, &miss_alone);
	bank = counter("pool_bank_hits");
	direct = counter("pool_direct_uses");
	with = churn(&e, key, pool, rounds, &miss_with);
	bank = counter("pool_bank_hits") - bank;
	direct = counter("pool_direct_uses") - direct;
	printf("# ordinary memory: %llu lookups, %.0f%% missed; with %llu accesses of the pool: %llu, %.0f%%\n",
	       (unsigned long long)alone, 100 * miss_alone, (unsigned long long)direct,
	       (unsigned long long)with, 100 * miss_with);
	MUST(miss_alone > 0.5 && miss_with > 0.5);
	/* from the bank, each of them, and not one lookup more in the caches */
	MUST(direct == 2u * rounds * CHURN_KEYS && bank == direct);
	MUST(with == alone);
}

static uint64_t time_reg(struct ibv_pd *pd, void **addr, size_t length, int n, struct ibv_mr **mr)
{
	uint64_t start = now_ns(), took;

	for (int i = 0; i < n; i++)
		MUST((mr[i] = ibv_reg_mr(pd, addr[i], length, RW)));
	took = now_ns() - start;
	for (int i = 0; i < n; i++)
		MUST(!ibv_dereg_mr(mr[i]));
	return took;
}

#define TIMED	(64 * MIB)

/* 64 MiB of the pool, in pieces as large as its blocks, against pages. */
static void case_registration(void)
{
	struct ends e = open_ends();
	size_t piece = query(e.ctx).largest_free;
	void *plain, *part[TIMED / (64 << 10)];
	struct ibv_mr *mr[TIMED / (64 << 10)];
	uint64_t pool = UINT64_MAX, ordinary = UINT64_MAX, t;
	int n;

	piece = piece > TIMED ? TIMED : piece;
	n = TIMED / piece;
	MUST(piece >= 64 << 10 && n * piece == TIMED);
	for (int i = 0; i < n; i++)
		part[i] = pool_mem(e.ctx, piece)->addr;
	plain = pages(TIMED);
	for (int i = 0; i < 5; i++) {
		t = time_reg(e.pd, part, piece, n, mr);
		pool = t < pool ? t : pool;
		t = time_reg(e.pd, &plain, TIMED, 1, mr);
		ordinary = t < ordinary ? t : ordinary;
	}
	printf("# 64 MiB: pool, %d of %zu KiB, %llu us; 4 KiB pages %llu us; ratio %.1f\n", n,
	       piece >> 10, (unsigned long long)pool / 1000, (unsigned long long)ordinary / 1000,
	       (double)ordinary / pool);
	MUST(ordinary >= 20 * pool);
}

/* ---- */

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
#define CASE(name) { #name, case_##name }
	CASE(query), CASE(allocate), CASE(mapped), CASE(unmap), CASE(exhaustion),
	CASE(fragmentation),
	CASE(data), CASE(permission), CASE(refused), CASE(rereg), CASE(window), CASE(bank),
	CASE(fork),
	CASE(two_processes), CASE(killed), CASE(churn), CASE(registration),
	CASE(hold),		/* only if named */
};

/* All of the pool is free, once a case has ended. */
static void nothing_left(void)
{
	struct ibv_context *ctx = open_it();
	struct qhcadv_pool_attr attr = query(ctx);

	MUST(attr.free == attr.total);
}

static bool run_apart(void (*run)(void))
{
	int status;
	pid_t child;

	fflush(stdout);
	child = fork();
	if (!child) {
		alarm(120);
		run();
		fflush(stdout);
		_exit(0);
	}
	MUST(waitpid(child, &status, 0) == child);
	if (WIFSIGNALED(status))
		fprintf(stderr, "signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static bool wanted(char **names, const char *name)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(names[i], name))
			return true;
	return !names[0] && strcmp(name, "hold");
}

int main(int argc, char **argv)
{
	int option;
	bool ok;

	while ((option = getopt(argc, argv, "d:g:")) != -1)
		switch (option) {
		case 'd':
			device_name = optarg;
			break;
		case 'g':
			gid_index = parse_number(optarg, 0, INT_MAX);
			break;
		default:
			die("usage: %s -d DEVICE [-g GID-INDEX] [CASE...]", argv[0]);
		}
	if (!device_name)
		die("which device? -d");
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (!wanted(argv + optind, cases[i].name))
			continue;
		ok = run_apart(cases[i].run);
		ok = run_apart(nothing_left) && ok;
		tap_point(ok, "%s", cases[i].name);
	}
	return tap_end();
}
